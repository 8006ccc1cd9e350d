/* Footprints of steps: footprint.h. */
#include "explore/footprint.h"
#include "async/mbar.h"

#include <stdlib.h>

enum { TOUCHES_FIRST = 8, MBAR_BYTES = 8 };

void footprint_add(struct footprint *f, struct touch t)
{
    struct touch *last = f->count ? &f->touch[f->count - 1] : NULL;
    if (last && t.space <= TOUCH_TENSOR && last->space == t.space && last->mode == t.mode &&
        last->of == t.of && last->turn == t.turn && t.low <= last->high && last->low <= t.high) {
        if (t.low < last->low) last->low = t.low;
        if (t.high > last->high) last->high = t.high;
        return;
    }
    if (!f->touch || f->count == f->capacity) {
        uint32_t capacity = f->capacity ? 2 * f->capacity : TOUCHES_FIRST;
        struct touch *grown = realloc(f->touch, capacity * sizeof *grown);
        if (!grown) {
            f->failed = true;
            return;
        }
        f->touch = grown;
        f->capacity = capacity;
    }
    f->touch[f->count++] = t;
}

void footprint_join(struct footprint *f, const struct footprint *other)
{
    for (uint32_t i = 0; i < other->count; i++) footprint_add(f, other->touch[i]);
}

/* ---- events ---- */

void footprint_touch(struct footprint *f, enum touch_space space, enum touch_mode mode, uint32_t of,
                     uint64_t low, uint64_t bytes)
{
    footprint_add(f, (struct touch){.space = (uint8_t)space,
                                    .mode = (uint8_t)mode,
                                    .of = of,
                                    .turn = mode == TOUCH_LEARN ? UINT64_MAX : 0,
                                    .low = low,
                                    .high = low + bytes});
}

static void on_access(struct footprint *f, const struct event *e)
{
    const enum touch_mode mode = e->access == ACCESS_READ ? TOUCH_READ : TOUCH_WRITE;
    enum touch_space space = TOUCH_GLOBAL;
    uint32_t of = 0;
    if (e->tensor)
        space = TOUCH_TENSOR;
    else if (e->space == SPACE_SHARED)
        space = TOUCH_SHARED;
    else if (e->space != SPACE_GLOBAL)
        return;
    if (space != TOUCH_GLOBAL) of = e->cta->linear;
    if (e->cta && e->warp && e->cta != e->warp->cta)
        footprint_touch(f, TOUCH_LIVE, TOUCH_READ, e->cta->linear, 0, 1);
    if (!e->addresses) {
        footprint_touch(f, space, mode, of,
                        space == TOUCH_TENSOR ? e->address & 0xFFFF : e->address, e->size);
        return;
    }
    for (uint32_t i = 0; i < WARP_LANES; i++) {
        uint64_t at = e->addresses[i];
        if (e->token ? i >= e->lanes : !(e->lanes >> i & 1)) continue;
        if (space == TOUCH_SHARED) at &= (1U << SHARED_RANK_SHIFT) - 1;
        footprint_touch(f, space, mode, of, at, e->size);
    }
}

static void on_mbar(struct footprint *f, const struct event *e)
{
    const struct mbar *b = mbar_at(e->cta, e->key);
    struct touch t = {.space = TOUCH_MBAR,
                      .mode = TOUCH_WRITE,
                      .of = e->cta->linear,
                      .turn = b ? b->phase : 0,
                      .low = e->key,
                      .high = e->key + 1};
    switch ((enum event_kind)e->kind) {
    case EV_MBAR_ARRIVE:
        /* The state that an arrival returns counts those before it. */
        if (e->token || !e->in || e->in->arg[0].sink || e->in->unread) t.mode = TOUCH_ARRIVE;
        break;
    case EV_MBAR_TX: t.mode = TOUCH_BYTES; break;
    case EV_MBAR_PASS:
    case EV_MBAR_FALSE:
    case EV_ASYNC_BAR: t.mode = TOUCH_READ; break;
    case EV_MBAR_REACH:
        if (b && b->live) return;
        t.mode = TOUCH_READ;
        break;
    default: break;
    }
    if (e->kind == EV_MBAR_PHASE) {
        for (uint32_t i = 0; i < f->count; i++) {
            struct touch *o = &f->touch[i];
            if (o->space == TOUCH_MBAR && o->of == t.of && o->low == t.low) o->completes = true;
        }
        return;
    }
    if (e->warp && e->cta != e->warp->cta)
        footprint_touch(f, TOUCH_LIVE, TOUCH_READ, e->cta->linear, 0, 1);
    footprint_touch(f, TOUCH_SHARED, TOUCH_BARRIER, e->cta->linear, e->key, MBAR_BYTES);
    footprint_add(f, t);
}

static void on_barrier(struct footprint *f, const struct event *e)
{
    const bool named = e->kind == EV_BARRIER_ARRIVE || e->kind == EV_BARRIER_PASS;
    struct touch t = {.space = named ? TOUCH_NAMED : TOUCH_CLUSTER,
                      .mode = TOUCH_LEARN,
                      .of = named ? e->cta->linear : e->cta->cluster->linear,
                      .turn = e->value,
                      .low = e->key,
                      .high = e->key + 1};
    if (e->kind == EV_BARRIER_ARRIVE || e->kind == EV_CLUSTER_ARRIVE) {
        t.mode = TOUCH_ARRIVE;
        if (!named) {
            for (uint32_t r = 0; r < e->cta->cluster->cta_count; r++)
                footprint_touch(f, TOUCH_LIVE, TOUCH_READ, e->cta->cluster->ctas[r]->linear, 0, 1);
        } else if (e->cta->barriers[e->key].whole) {
            footprint_touch(f, TOUCH_LIVE, TOUCH_READ, t.of, 0, 1);
        }
    }
    footprint_add(f, t);
}

void footprint_settle(struct footprint *f, const struct cta *c)
{
    for (uint32_t i = 0; i < f->count; i++) {
        struct touch *t = &f->touch[i];
        if (t->mode != TOUCH_ARRIVE) continue;
        if (t->space == TOUCH_NAMED && t->of == c->linear)
            t->completes = c->barriers[t->low].generation != t->turn;
        if (t->space == TOUCH_CLUSTER) t->completes = c->cluster->phase != t->turn;
    }
}

static uint64_t groups_of(const struct warp *w, uint32_t kind)
{
    return actor_warp(w) | kind;
}

void footprint_event(struct footprint *f, const struct event *e)
{
    switch ((enum event_kind)e->kind) {
    case EV_ACCESS: on_access(f, e); break;
    case EV_BARRIER_ARRIVE:
    case EV_BARRIER_PASS:
    case EV_CLUSTER_ARRIVE:
    case EV_CLUSTER_PASS: on_barrier(f, e); break;
    case EV_MBAR_INIT:
    case EV_MBAR_REACH:
    case EV_MBAR_INVAL:
    case EV_MBAR_EXPECT:
    case EV_MBAR_ARRIVE:
    case EV_MBAR_TX:
    case EV_MBAR_PHASE:
    case EV_MBAR_PASS:
    case EV_MBAR_FALSE:
    case EV_ASYNC_BAR: on_mbar(f, e); break;
    case EV_GROUP_WAIT:
        footprint_touch(f, TOUCH_GROUPS, TOUCH_LEARN, 0, groups_of(e->warp, e->key), 1);
        break;
    case EV_TMEM_WAIT:
        footprint_touch(f, TOUCH_GROUPS, TOUCH_LEARN, 0, groups_of(e->warp, COMMIT_KINDS), 1);
        break;
    case EV_TMEM_ALLOC:
    case EV_TMEM_DEALLOC:
    case EV_SETMAXNREG:
    case EV_HEAP_FREE: footprint_touch(f, TOUCH_POOL, TOUCH_WRITE, 0, 0, 1); break;
    case EV_REGISTERS: footprint_touch(f, TOUCH_REGS, TOUCH_READ, 0, actor_warp(e->warp), 1); break;
    case EV_WARP_EXIT:
        if (e->warp->born) footprint_touch(f, TOUCH_LIVE, TOUCH_FINISH, e->warp->cta->linear, 0, 1);
        break;
    default: break;
    }
}

void footprint_wait(struct footprint *f, const struct warp *w, const struct wait *t)
{
    switch ((enum wait_kind)t->kind) {
    case WAIT_MBAR:
        footprint_touch(f, TOUCH_SHARED, TOUCH_BARRIER, t->cta->linear, t->key, MBAR_BYTES);
        footprint_touch(f, TOUCH_MBAR, TOUCH_READ, t->cta->linear, t->key, 1);
        break;
    case WAIT_BARRIER:
        footprint_touch(f, TOUCH_NAMED, TOUCH_LEARN, w->cta->linear, t->key, 1);
        break;
    case WAIT_CLUSTER:
        footprint_touch(f, TOUCH_CLUSTER, TOUCH_LEARN, w->cta->cluster->linear, 0, 1);
        break;
    case WAIT_GROUPS:
        footprint_touch(f, TOUCH_GROUPS, TOUCH_LEARN, 0, groups_of(w, t->key), 1);
        break;
    case WAIT_TENSOR:
        footprint_touch(f, TOUCH_GROUPS, TOUCH_LEARN, 0, groups_of(w, COMMIT_KINDS), 1);
        break;
    case WAIT_TMEM_ALLOC:
    case WAIT_REGISTERS: footprint_touch(f, TOUCH_POOL, TOUCH_READ, 0, 0, 1); break;
    default: break;
    }
}

/* ---- relations ---- */

static bool counted(const struct touch *t)
{
    return t->mode == TOUCH_ARRIVE || t->mode == TOUCH_BYTES;
}

static enum relation relation(const struct touch *a, const struct touch *b)
{
    if (a->space != b->space || a->of != b->of || a->high <= b->low || b->high <= a->low)
        return RELATION_NONE;
    if (a->space == TOUCH_OP || a->space == TOUCH_PIPE) return RELATION_CAUSE;
    /* A wait that was satisfied stays so whatever comes behind it. */
    if (a->mode == TOUCH_LEARN) return RELATION_NONE;
    if (b->mode == TOUCH_LEARN)
        return a->mode == TOUCH_READ || a->turn > b->turn ? RELATION_NONE : RELATION_CAUSE;
    if (a->mode != b->mode) return RELATION_RACE;
    if (counted(a)) return a->turn == b->turn ? RELATION_NONE : RELATION_RACE;
    return a->mode == TOUCH_WRITE ? RELATION_RACE : RELATION_NONE;
}

enum relation footprint_relation(const struct footprint *first, const struct footprint *second)
{
    enum relation most = RELATION_NONE;
    for (uint32_t i = 0; i < first->count; i++) {
        for (uint32_t j = 0; j < second->count; j++) {
            enum relation r = relation(&first->touch[i], &second->touch[j]);
            if (r > most) most = r;
        }
    }
    return most;
}

bool footprint_apart(const struct footprint *a, const struct footprint *b)
{
    for (uint32_t i = 0; i < a->count; i++) {
        for (uint32_t j = 0; j < b->count; j++) {
            const struct touch *s = &a->touch[i], *t = &b->touch[j];
            if (relation(s, t) != RELATION_NONE || relation(t, s) != RELATION_NONE) return false;
            if (counted(s) && s->mode == t->mode && s->space == t->space && s->of == t->of &&
                s->low == t->low && (s->completes || t->completes))
                return false;
        }
    }
    return true;
}
