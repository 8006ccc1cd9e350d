/* The worksheet's counts and storage, and how the groups' sheets become one: worksheet.h. */
#include "async/async.h"
#include "worksheet/worksheet.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- maps ---- */

static size_t map_slot(const struct sheet_map *m, uint64_t key)
{
    size_t i = (size_t)(key * 0x9E3779B97F4A7C15ULL >> 32) & (m->size - 1);
    while (m->keys[i] && m->keys[i] != key) i = (i + 1) & (m->size - 1);
    return i;
}

static bool map_grow(struct sheet_map *m)
{
    struct sheet_map grown = {.size = m->size ? 2 * m->size : 64, .count = m->count};
    grown.keys = calloc(grown.size, sizeof *grown.keys);
    grown.values = calloc(grown.size, sizeof *grown.values);
    if (!grown.keys || !grown.values) {
        map_clear(&grown);
        return false;
    }
    for (size_t i = 0; i < m->size; i++) {
        size_t at;
        if (!m->keys[i]) continue;
        at = map_slot(&grown, m->keys[i]);
        grown.keys[at] = m->keys[i];
        grown.values[at] = m->values[i];
    }
    map_clear(m);
    *m = grown;
    return true;
}

uint32_t *map_at(struct sheet_map *m, uint64_t key, uint32_t fresh)
{
    size_t at;
    if (2 * m->count >= m->size && !map_grow(m)) return NULL;
    at = map_slot(m, key);
    if (!m->keys[at]) {
        m->keys[at] = key;
        m->values[at] = fresh;
        m->count++;
    }
    return &m->values[at];
}

void map_clear(struct sheet_map *m)
{
    free(m->keys);
    free(m->values);
    *m = (struct sheet_map){0};
}

/* The element of a growing array that a key stands for, zeroed when new. Arrays are full at powers of
 * two, from 64 on. */
static void *element(struct sheet *s, struct sheet_map *map, void **array, size_t size,
                     uint64_t key)
{
    uint32_t count = (uint32_t)map->count, *at = map_at(map, key, count);
    if (!at) {
        s->exhausted = true;
        return NULL;
    }
    if (*at == count && map->count > count) {
        if (!(count & (count - 1)) && (!count || count >= 64)) {
            void *grown = realloc(*array, (count ? 2 * (size_t)count : 64) * size);
            if (!grown) {
                s->exhausted = true;
                map->count--; /* the key stays without an element: nothing reads an exhausted sheet */
                return NULL;
            }
            *array = grown;
        }
        memset((char *)*array + count * size, 0, size);
    }
    return (char *)*array + *at * size;
}
#define ELEMENT(of, list, key) \
    element(of, &(of)->list##_map, (void **)&(of)->list##s, sizeof *(of)->list##s, key)

/* ---- bounds ---- */

static const struct sheet_bounds NO_BOUNDS = {UINT64_MAX, 0};

void bounds_take(struct sheet_bounds *b, uint64_t value)
{
    if (value < b->low) b->low = value;
    if (value > b->high) b->high = value;
}

void bounds_merge(struct sheet_bounds *b, const struct sheet_bounds *other)
{
    if (other->low < b->low) b->low = other->low;
    if (other->high > b->high) b->high = other->high;
}

/* ---- a sheet ---- */

bool sheet_open(struct sheet *s, const struct launch *l)
{
    uint32_t bytes = SHARED_RESERVED + l->kernel->entry->shared_bytes + l->dynamic_shared;
    *s = (struct sheet){.launch = l,
                        .shared_grains = (bytes + SHEET_GRAIN - 1) / SHEET_GRAIN,
                        .tmem_columns = NO_BOUNDS};
    for (uint32_t w = 0; w < CTA_WARPS; w++) s->registers[w] = NO_BOUNDS;
    for (uint32_t c = 0; c < TMEM_COLUMNS; c++) s->tmem[c].made = NO_INSN;
    s->shared = malloc(s->shared_grains * sizeof *s->shared);
    for (uint32_t i = 0; s->shared && i < s->shared_grains; i++)
        s->shared[i] = (struct sheet_cell){.made = NO_INSN};
    return s->shared && ELEMENT(s, set, 1); /* set 0, nobody's, under the key of no other */
}

void sheet_close(struct sheet *s)
{
    free(s->sets);
    free(s->counts);
    free(s->barriers);
    free(s->links);
    free(s->shared);
    map_clear(&s->set_map);
    map_clear(&s->count_map);
    map_clear(&s->barrier_map);
    map_clear(&s->link_map);
    s->sets = NULL;
    s->counts = NULL;
    s->barriers = NULL;
    s->links = NULL;
    s->shared = NULL;
}

uint32_t sheet_insn(const struct sheet *s, const struct insn *in)
{
    return in ? (uint32_t)(in - s->launch->kernel->insns) : NO_INSN;
}

enum agent_kind agent_of(const struct event *e)
{
    return e->token ? (enum agent_kind)(AGENT_LOAD + (int)async_kind_of(e->in)) : AGENT_THREADS;
}

/* ---- sets of agents: few, so a cell holds a number ---- */

static uint32_t set_of(struct sheet *s, const struct agents *a)
{
    static const struct agents nobody;
    uint64_t key = 0xCBF29CE484222325ULL;
    if (memcmp(a, &nobody, sizeof nobody) == 0) return 0;
    for (int i = 0; i < AGENTS; i++) {
        key = (key ^ a->warps[0][i]) * 0x100000001B3ULL;
        key = (key ^ a->warps[1][i]) * 0x100000001B3ULL;
    }
    for (key |= 2;; key += 4) { /* never 0, nor 1, the key of the empty set */
        size_t count = s->set_map.count;
        struct agents *at;
        if (count >= SHEET_SETS) s->exhausted = true;
        if (s->exhausted) return 0;
        at = ELEMENT(s, set, key);
        if (!at) return 0;
        if (s->set_map.count > count) *at = *a;
        if (memcmp(at, a, sizeof *a) == 0) return (uint32_t)(at - s->sets);
    }
}

/* Adds to `count` cells; neighbours mostly hold the same set. */
static void touch(struct sheet *s, struct sheet_cell *cells, uint32_t count, enum agent_kind agent,
                  bool write, uint32_t warp, uint32_t insn)
{
    uint32_t from = UINT32_MAX, to = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct sheet_cell *c = &cells[i];
        if (write && insn < c->made) c->made = insn;
        if (c->set != from) {
            struct agents a = s->sets[c->set];
            from = c->set;
            a.warps[write][agent] |= 1U << warp;
            to = set_of(s, &a);
        }
        c->set = to;
    }
}

static void touch_shared(struct sheet *s, struct flow *f, const struct event *e, uint64_t address,
                         uint64_t size)
{
    uint32_t first = (uint32_t)address & SHARED_OFFSET_MASK, last;
    bool write = e->access != ACCESS_READ;
    if (!size || (first + size - 1) / SHEET_GRAIN >= s->shared_grains) return;
    last = (uint32_t)(first + size - 1) / SHEET_GRAIN;
    touch(s, &s->shared[first / SHEET_GRAIN], last - first / SHEET_GRAIN + 1, agent_of(e), write,
          e->warp->id, sheet_insn(s, e->in));
    flow_touch(f, e, write, first, (uint32_t)size);
}

static void touch_tmem(struct sheet *s, struct flow *f, const struct event *e)
{
    uint32_t first = (uint32_t)e->address & 0xFFFFU, count = (uint32_t)e->size;
    bool write = e->access != ACCESS_READ;
    if (first + count > TMEM_COLUMNS) return;
    touch(s, &s->tmem[first], count, agent_of(e), write, e->warp->id, sheet_insn(s, e->in));
    flow_touch(f, e, write, first, count);
}

/* ---- one group ---- */

struct worksheet {
    struct watcher watcher; /* first */
    struct sheet sheet;     /* of the groups that have ended */
    pthread_mutex_t lock;
};

struct group_sheet {
    struct observer base;
    struct worksheet *into;
    struct launch *launch;
    struct sheet sheet; /* and flow: from the first event to the group's end */
    struct flow *flow;
    bool over;
};

static void count(struct sheet *s, const struct event *e, uint64_t bytes)
{
    uint32_t insn = sheet_insn(s, e->in);
    struct sheet_count *c = ELEMENT(s, count, ((uint64_t)insn << 8 | e->warp->id) + 1);
    if (!c) return;
    c->insn = insn;
    c->warp = e->warp->id;
    c->lanes |= e->lanes;
    c->lane_steps += (uint32_t)__builtin_popcount(e->lanes);
    c->bytes += bytes;
}

static void access(struct group_sheet *o, const struct event *e)
{
    struct sheet *s = &o->sheet;
    uint32_t lanes = (uint32_t)__builtin_popcount(e->lanes);
    if (!e->tensor && e->space != SPACE_SHARED && e->space != SPACE_GLOBAL) return;
    if (!e->token) count(s, e, e->addresses ? lanes * e->size : e->size);
    if (e->tensor) {
        touch_tmem(s, o->flow, e);
    } else if (e->space == SPACE_SHARED && !e->addresses) {
        touch_shared(s, o->flow, e, e->address, e->size);
    } else if (e->space == SPACE_SHARED) {
        for (uint32_t rest = e->lanes; rest; rest &= rest - 1)
            touch_shared(s, o->flow, e, e->addresses[first_lane(rest)], e->size);
    }
}

static bool begin(struct group_sheet *o)
{
    if (sheet_open(&o->sheet, o->launch)) o->flow = flow_new(&o->sheet);
    if (o->flow) return true;
    sheet_close(&o->sheet);
    pthread_mutex_lock(&o->into->lock);
    o->into->sheet.exhausted = true;
    pthread_mutex_unlock(&o->into->lock);
    o->over = true;
    return false;
}

static void on_event(struct observer *base, const struct event *e)
{
    struct group_sheet *o = (struct group_sheet *)base;
    struct sheet *s = &o->sheet;
    if (o->over || (!o->flow && !begin(o)) || s->exhausted) return;
    switch (e->kind) {
    case EV_ACCESS: access(o, e); return;
    case EV_ASYNC_ISSUE: count(s, e, e->cost ? e->cost->bytes : 0); break;
    case EV_MBAR_ARRIVE:
        if (!e->token) count(s, e, 0);
        break;
    case EV_MBAR_INIT:
    case EV_MBAR_PASS:
    case EV_FENCE:
    case EV_BARRIER_ARRIVE:
    case EV_CLUSTER_ARRIVE:
    case EV_CLUSTER_PASS:
    case EV_GROUP_COMMIT:
    case EV_GROUP_WAIT:
    case EV_TMEM_WAIT:
    case EV_TMEM_DEALLOC: count(s, e, 0); break;
    case EV_TMEM_ALLOC: bounds_take(&s->tmem_columns, e->size); break;
    case EV_SETMAXNREG:
        bounds_take(&s->registers[e->warp->id], e->value);
        count(s, e, 0);
        break;
    default: break;
    }
    flow_event(o->flow, e);
}

/* ---- groups into one sheet ---- */

static void merge_cells(struct sheet *into, struct sheet_cell *cells, const struct sheet *from,
                        const struct sheet_cell *other, uint32_t n)
{
    uint32_t last_a = 0, last_b = 0, last = 0; /* empty with empty is empty */
    for (uint32_t i = 0; i < n; i++) {
        if (other[i].made < cells[i].made) cells[i].made = other[i].made;
        if (cells[i].set != last_a || other[i].set != last_b) {
            struct agents a = into->sets[cells[i].set];
            const struct agents *b = &from->sets[other[i].set];
            for (int k = 0; k < AGENTS; k++) {
                a.warps[0][k] |= b->warps[0][k];
                a.warps[1][k] |= b->warps[1][k];
            }
            last_a = cells[i].set;
            last_b = other[i].set;
            last = set_of(into, &a);
        }
        cells[i].set = last;
    }
}

static void merge_barrier(struct sheet *into, const struct sheet_barrier *b)
{
    struct sheet_barrier *at = sheet_barrier(into, b->kind, b->key);
    if (!at) return;
    if (b->made < at->made) at->made = b->made;
    bounds_merge(&at->count, &b->count);
    bounds_merge(&at->phases, &b->phases);
    bounds_merge(&at->arrivals, &b->arrivals);
    bounds_merge(&at->bytes, &b->bytes);
    for (int k = 0; k < AGENTS; k++) at->producers[k] |= b->producers[k];
    at->consumers |= b->consumers;
}

static void merge(struct sheet *into, const struct sheet *from)
{
    into->exhausted |= from->exhausted;
    if (into->exhausted) return;
    for (size_t i = 0; i < from->count_map.count; i++) {
        const struct sheet_count *c = &from->counts[i];
        struct sheet_count *at = ELEMENT(into, count, ((uint64_t)c->insn << 8 | c->warp) + 1);
        if (!at) return;
        at->insn = c->insn;
        at->warp = c->warp;
        at->lanes |= c->lanes;
        at->lane_steps += c->lane_steps;
        at->bytes += c->bytes;
    }
    for (size_t i = 0; i < from->barrier_map.count; i++) merge_barrier(into, &from->barriers[i]);
    for (size_t i = 0; i < from->link_map.count; i++) sheet_link(into, from->links[i]);
    merge_cells(into, into->shared, from, from->shared, into->shared_grains);
    merge_cells(into, into->tmem, from, from->tmem, TMEM_COLUMNS);
    for (uint32_t w = 0; w < CTA_WARPS; w++) bounds_merge(&into->registers[w], &from->registers[w]);
    bounds_merge(&into->tmem_columns, &from->tmem_columns);
}

struct sheet_barrier *sheet_barrier(struct sheet *s, uint8_t kind, uint32_t key)
{
    size_t known = s->barrier_map.count;
    struct sheet_barrier *b = ELEMENT(s, barrier, ((uint64_t)kind << 32 | key) + 1);
    if (b && s->barrier_map.count > known)
        *b = (struct sheet_barrier){.kind = kind,
                                    .key = key,
                                    .made = NO_INSN,
                                    .count = NO_BOUNDS,
                                    .phases = NO_BOUNDS,
                                    .arrivals = NO_BOUNDS,
                                    .bytes = NO_BOUNDS};
    return b;
}

void sheet_link(struct sheet *s, struct sheet_link link)
{
    /* Offsets and instructions: 24 bits each are enough for either. */
    uint64_t key = (uint64_t)link.what << 63 | (uint64_t)link.tensor << 62 |
                   (uint64_t)link.named << 61 | (uint64_t)link.by << 56 |
                   (uint64_t)(link.range & 0xFFFFFFU) << 24 | (link.id & 0xFFFFFFU);
    struct sheet_link *at = ELEMENT(s, link, key + 1);
    if (at) *at = link;
}

/* A group's own sheet is given back as soon as it is in the launch's. What its operations still do
 * after the group's end is not part of the run. */
static void hand_in(struct group_sheet *o)
{
    o->over = true;
    if (!o->flow) return;
    flow_end(o->flow);
    flow_free(o->flow);
    o->flow = NULL;
    pthread_mutex_lock(&o->into->lock);
    merge(&o->into->sheet, &o->sheet);
    pthread_mutex_unlock(&o->into->lock);
    sheet_close(&o->sheet);
}

static void on_end(struct observer *base, bool completed)
{
    (void)completed;
    hand_in((struct group_sheet *)base);
}

static void destroy(struct observer *base)
{
    hand_in((struct group_sheet *)base);
    free(base);
}

static struct observer *watch_open(struct watcher *w, struct group *g)
{
    struct group_sheet *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    o->base = (struct observer){
        .on_event = on_event, .on_end = on_end, .destroy = destroy, .accesses = true};
    o->into = (struct worksheet *)w;
    o->launch = g->launch;
    return &o->base;
}

struct worksheet *worksheet_attach(struct launch *l)
{
    struct worksheet *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    if (!sheet_open(&w->sheet, l)) {
        sheet_close(&w->sheet);
        free(w);
        return NULL;
    }
    pthread_mutex_init(&w->lock, NULL);
    w->watcher.open = watch_open;
    launch_watch(l, &w->watcher);
    return w;
}

void worksheet_end(struct worksheet *w, uint64_t number, const char *path)
{
    struct sheet_view view = {0};
    FILE *out = NULL;
    if (w->sheet.exhausted || !view_open(&view, &w->sheet)) {
        fprintf(stderr,
                "hewn-sim: HEWN_SIM_WORKSHEET: no worksheet of %s, launch %llu: out of memory, or "
                "more than %d different sets of warps share its storage\n",
                w->sheet.launch->kernel->entry->name, (unsigned long long)number, (int)SHEET_SETS);
    } else if (!(out = fopen(path, "a"))) {
        fprintf(stderr, "hewn-sim: HEWN_SIM_WORKSHEET=%s: %s\n", path, strerror(errno));
    } else {
        bool failed;
        sheet_write(&view, number, out);
        sheet_compare(&view, number, out);
        failed = ferror(out) != 0;
        if (fclose(out) || failed)
            fprintf(stderr, "hewn-sim: HEWN_SIM_WORKSHEET=%s: %s\n", path, strerror(errno));
    }
    view_close(&view);
    sheet_close(&w->sheet);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
