/* What clusters have to do with one another (world.h). */
#include "check/world.h"

#include <stdlib.h>
#include <string.h>

enum { ACTORS_FIRST = 64, LINES_FIRST = 64, FLAGS_FIRST = 64, FLAGS_MOST = 1 << 20 };

struct world *world_new(uint64_t most)
{
    struct world *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->shadow.most = most;
    w->actor_count = 1;
    return w;
}

static void past_free(struct world_flag *f)
{
    for (uint32_t i = 0; f->past && i < PAST_KEPT; i++) {
        horizon_drop(f->past[i].known);
        horizon_drop(f->past[i].bridged);
    }
    free(f->past);
}

void world_free(struct world *w)
{
    if (!w) return;
    for (uint32_t i = 0; i < w->flag_slots; i++) {
        horizon_drop(w->flags[i].known);
        horizon_drop(w->flags[i].bridged);
        past_free(&w->flags[i]);
    }
    for (uint32_t i = 0; i < JOINS_KEPT; i++) {
        horizon_drop(w->joins[i].a);
        horizon_drop(w->joins[i].b);
        horizon_drop(w->joins[i].both);
    }
    shadow_free(&w->shadow);
    free(w->lines);
    free(w->flags);
    free(w->actors);
    free(w);
}

uint32_t world_actor(struct world *w, struct actor a)
{
    if (w->actor_count > COMPONENT_MAX) return 0;
    if (w->actor_count >= w->actor_capacity) {
        const uint32_t capacity = w->actor_capacity ? 2 * w->actor_capacity : ACTORS_FIRST;
        struct actor *grown = realloc(w->actors, capacity * sizeof *grown);
        if (!grown) return 0;
        w->actors = grown;
        w->actor_capacity = capacity;
    }
    w->actors[w->actor_count] = a;
    return w->actor_count++;
}

/* ---- flags ---- */

static struct world_flag *flag_slot(struct world_flag *flags, uint32_t slots, uint64_t address)
{
    uint32_t i = (uint32_t)(address * 0x9E3779B97F4A7C15ULL >> 40) & (slots - 1);
    while (flags[i].used && flags[i].address != address) i = (i + 1) & (slots - 1);
    return &flags[i];
}

static bool flags_grow(struct world *w)
{
    const uint32_t slots = w->flag_slots ? 2 * w->flag_slots : FLAGS_FIRST;
    struct world_flag *grown = calloc(slots, sizeof *grown);
    if (!grown) return false;
    for (uint32_t i = 0; i < w->flag_slots; i++) {
        if (w->flags[i].used) *flag_slot(grown, slots, w->flags[i].address) = w->flags[i];
    }
    free(w->flags);
    w->flags = grown;
    w->flag_slots = slots;
    return true;
}

/* Past FLAGS_MOST all share the record of address 0, which only ever orders too much. */
struct world_flag *world_flag_find(const struct world *w, uint64_t address)
{
    struct world_flag *f;
    if (!w->flag_slots) return NULL;
    f = flag_slot(w->flags, w->flag_slots, address);
    if (!f->used && w->flag_count >= FLAGS_MOST) f = flag_slot(w->flags, w->flag_slots, 0);
    return f->used ? f : NULL;
}

struct world_flag *world_flag_make(struct world *w, uint64_t address)
{
    struct world_flag *f = world_flag_find(w, address);
    if (f) return f;
    if (w->flag_count >= FLAGS_MOST) address = 0;
    if (2 * (w->flag_count + 1) > w->flag_slots && !flags_grow(w)) return NULL;
    f = flag_slot(w->flags, w->flag_slots, address);
    f->used = true;
    f->address = address;
    w->flag_count++;
    if (!w->flag_high || address < w->flag_low) w->flag_low = address;
    if (address > w->flag_high) w->flag_high = address;
    return f;
}

void world_flags_close(struct world *w)
{
    for (uint32_t i = 0; i < w->open_count; i++) {
        struct world_flag *f = world_flag_find(w, w->open[i].address);
        struct world_past *last = f && f->past ? &f->past[(f->past_count - 1) % PAST_KEPT] : NULL;
        if (!last || !last->open) continue;
        memcpy(&last->value, w->open[i].at, last->size);
        last->open = false;
    }
    w->open_count = 0;
}

bool world_flag_past(struct world_flag *f, struct world_past now)
{
    struct world_past *p;
    if (!f->past) f->past = calloc(PAST_KEPT, sizeof *f->past);
    if (!f->past) return false;
    p = &f->past[f->past_count++ % PAST_KEPT];
    horizon_set(&p->known, now.known);
    horizon_set(&p->bridged, now.bridged);
    p->value = now.value;
    p->open = now.open;
    p->size = now.size;
    p->actor = now.actor;
    p->number = now.number;
    p->in = now.in;
    return true;
}

/* ---- lines ---- */

static struct world_lines *lines_slot(struct world_lines *lines, uint32_t slots, uint64_t number)
{
    uint32_t i = (uint32_t)(number * 0x9E3779B97F4A7C15ULL >> 40) & (slots - 1);
    while (lines[i].number && lines[i].number != number) i = (i + 1) & (slots - 1);
    return &lines[i];
}

static bool lines_grow(struct world *w)
{
    const uint32_t slots = w->line_slots ? 2 * w->line_slots : LINES_FIRST;
    struct world_lines *grown = calloc(slots, sizeof *grown);
    if (!grown) return false;
    for (uint32_t i = 0; i < w->line_slots; i++) {
        const struct world_lines *l = &w->lines[i];
        if (l->number) *lines_slot(grown, slots, l->number) = *l;
    }
    free(w->lines);
    w->lines = grown;
    w->line_slots = slots;
    return true;
}

uint8_t *world_lines(struct world *w, uint64_t address)
{
    const uint64_t number = address / GLOBAL_PAGE + 1;
    struct world_lines *l;
    if (2 * (w->line_count + 1) > w->line_slots && !lines_grow(w)) return NULL;
    l = lines_slot(w->lines, w->line_slots, number);
    w->line_count += !l->number;
    l->number = number;
    return l->line;
}

bool world_join(struct world *w, struct horizon **into, struct horizon *from)
{
    const uint64_t h = ((uintptr_t)*into ^ (uintptr_t)from << 1) * 0x9E3779B97F4A7C15ULL;
    struct world_join *j = &w->joins[h >> 56];
    if (!*into || !from || *into == from) return horizon_join(into, from);
    if (j->a == *into && j->b == from) {
        horizon_set(into, j->both);
        return true;
    }
    horizon_set(&j->a, *into);
    horizon_set(&j->b, from);
    if (!horizon_join(into, from)) {
        horizon_set(&j->a, NULL);
        return false;
    }
    horizon_set(&j->both, *into);
    return true;
}

/* ---- stamps ---- */

bool world_post(uint32_t cluster, const struct stamp *s, struct horizon **known,
                struct horizon **bridged)
{
    return horizon_join(known, s->abroad) && horizon_join(bridged, s->abroad_bridged) &&
           horizon_add(known, cluster, &s->known) && horizon_add(bridged, cluster, &s->bridged) &&
           (!s->bridged_global.count || horizon_add(bridged, cluster, &s->bridged_global));
}

bool world_take(uint32_t cluster, struct stamp *s, struct horizon *known, struct horizon *bridged)
{
    /* What the cluster itself had handed over comes home. */
    const struct clock *own = horizon_of(known, cluster), *passed = horizon_of(bridged, cluster);
    return (!own || (clock_join(&s->known, own) && clock_join(&s->caused, own))) &&
           (!passed || clock_join(&s->bridged_global, passed)) && horizon_join(&s->abroad, known) &&
           horizon_join(&s->abroad_bridged, bridged);
}
