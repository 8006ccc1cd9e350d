/*
 * One lane's proxy fence for the writes of others: fenced.h. Of each lane's writes the range of bytes is kept, in shared
 * [0] and global [1] memory, until the lane fences itself.
 */
#include "check/fenced.h"

#include "check/spoken.h"

#include <stdlib.h>

struct fenced {
    struct fenced_writes {
        uint32_t lanes;                             /* that have written and not fenced since */
        uint32_t trusted;                           /* of them: another lane has fenced since */
        uint64_t low[WARP_LANES], high[WARP_LANES]; /* their bytes */
        /* By lane: the lanes whose writes come before what it does next, and those of them that a fence stands
         * behind. Any other lane of these is in `spread`. */
        uint32_t reach[WARP_LANES], bridged[WARP_LANES], spread;
    } space[2];
    uint64_t token; /* the operation whose accesses are announced */
    uint32_t issuer;
};

static struct fenced *fenced_of(struct order *o, struct order_warp *w)
{
    if (!w->fenced_for) w->fenced_for = calloc(1, sizeof *w->fenced_for);
    order_keep(o, w->fenced_for != NULL);
    return w->fenced_for;
}

/* Nothing is known any more of what these lanes have written before. */
static void begin_anew(struct fenced_writes *s, uint32_t lanes)
{
    s->trusted &= ~lanes;
    if (!(s->spread & lanes)) return;
    for (uint32_t l = 0; l < WARP_LANES; l++) {
        s->reach[l] &= ~lanes;
        s->bridged[l] &= ~lanes;
    }
    s->spread &= ~lanes;
}

static void add_bytes(struct fenced_writes *s, uint32_t lane, uint64_t low, uint64_t high)
{
    const bool first = !(s->lanes >> lane & 1);
    if (first || low < s->low[lane]) s->low[lane] = low;
    if (first || high > s->high[lane]) s->high[lane] = high;
    s->lanes |= 1U << lane;
}

static void on_write(struct order *o, struct order_warp *w, const struct event *e)
{
    struct fenced *f = fenced_of(o, w);
    struct fenced_writes *s = f ? &f->space[e->space == SPACE_GLOBAL] : NULL;
    if (!s) return;
    begin_anew(s, e->lanes);
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        const uint64_t at = e->addresses[lane];
        if (e->space == SPACE_SHARED && at > SHARED_OFFSET_MASK) continue; /* another CTA's */
        add_bytes(s, lane, at, at + e->size);
    }
}

static void fence_space(struct fenced_writes *s, uint32_t lanes)
{
    uint32_t reached = 0;
    s->lanes &= ~lanes;
    begin_anew(s, lanes);
    if (!s->lanes) return;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        s->bridged[lane] |= s->reach[lane];
        reached |= s->reach[lane];
    }
    s->trusted |= s->lanes;
}

static void on_fence(struct fenced *f, const struct event *e)
{
    if (e->space != SPACE_GLOBAL) fence_space(&f->space[0], e->lanes);
    if (e->space != SPACE_SHARED) fence_space(&f->space[1], e->lanes);
}

/* Lanes know what any of them knew. */
static void meet(struct fenced_writes *s, uint32_t lanes)
{
    uint32_t reach = s->lanes & lanes, bridged = 0;
    if (!s->lanes) return;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        reach |= s->reach[first_lane(rest)];
        bridged |= s->bridged[first_lane(rest)];
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        s->reach[first_lane(rest)] = reach;
        s->bridged[first_lane(rest)] = bridged;
    }
    s->spread |= reach | bridged;
}

/* The lanes whose writes pass for bridged, and no fence stands between them and these lanes. */
static uint32_t unfenced(const struct fenced_writes *s, uint32_t lanes)
{
    uint32_t left = s->trusted;
    for (uint32_t rest = left ? lanes : 0; rest; rest &= rest - 1)
        left &= ~s->bridged[first_lane(rest)];
    return left;
}

/* Other warps may rely on what these lanes release. */
static void on_release(struct order *o, struct order_warp *w, const struct event *e)
{
    const struct fenced *f = w->fenced_for;
    for (int i = 0; i < 2 && e->in; i++) {
        const struct fenced_writes *s = &f->space[i];
        for (uint32_t rest = unfenced(s, e->lanes); rest; rest &= rest - 1) {
            const uint32_t lane = first_lane(rest);
            spoken_add(o, w, e->in,
                       (struct spoken_span){.low = s->low[lane],
                                            .high = s->high[lane],
                                            .write = true,
                                            .global = i == 1,
                                            .unfenced = true});
        }
    }
}

static bool uses(const struct fenced_writes *s, uint32_t lanes, uint64_t low, uint64_t high)
{
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        if (low < s->high[lane] && s->low[lane] < high) return true;
    }
    return false;
}

/* What an operation of the asynchronous proxy reads or writes. */
static void on_operation(struct order *o, const struct fenced *f, const struct event *e)
{
    const struct fenced_writes *s = &f->space[e->space == SPACE_GLOBAL];
    const uint32_t lanes = unfenced(s, 1U << f->issuer);
    for (uint32_t rest = e->addresses ? e->lanes : 1; lanes && rest; rest &= rest - 1) {
        uint64_t at = e->addresses ? e->addresses[first_lane(rest)] : e->address;
        if (e->space == SPACE_SHARED) at &= SHARED_OFFSET_MASK;
        if (!uses(s, lanes, at, at + e->size)) continue;
        order_sampled(o, SAMPLED_LANES, e->in);
        sim_idiom(o->group, e->in, IDIOM_LANES_IN_STEP);
        return;
    }
}

static void on_access(struct order *o, struct order_warp *w, const struct event *e)
{
    const struct fenced *f = w->fenced_for;
    if (e->tensor || !e->in) return;
    if (e->space != SPACE_SHARED && e->space != SPACE_GLOBAL) return;
    if (!e->token) {
        if (e->addresses && e->proxy == PROXY_GENERIC && e->access & ACCESS_WRITE)
            on_write(o, w, e);
        return;
    }
    if (!f || e->token != f->token || e->proxy != PROXY_ASYNC) return;
    if (e->space == SPACE_GLOBAL || e->cta == w->warp->cta) on_operation(o, f, e);
}

void fenced_event(struct order *o, struct order_warp *w, const struct event *e)
{
    struct fenced *f = w->fenced_for;
    if (e->kind == EV_ACCESS) {
        on_access(o, w, e);
        return;
    }
    if (e->kind == EV_MBAR_PASS || e->kind == EV_BARRIER_PASS || e->kind == EV_CLUSTER_PASS)
        w->fenced_since = false;
    if (e->kind == EV_FENCE && e->value == FENCE_PROXY_ASYNC) w->fenced_since = true;
    if (!f) return;
    switch (e->kind) {
    case EV_ASYNC_ISSUE:
        f->token = e->token;
        f->issuer = first_lane(e->lanes);
        return;
    case EV_FENCE:
        if (e->value == FENCE_PROXY_ASYNC) on_fence(f, e);
        return;
    case EV_WARP_SYNC:
    case EV_BARRIER_ARRIVE:
    case EV_BARRIER_PASS:
    case EV_CLUSTER_ARRIVE:
    case EV_CLUSTER_PASS:
        for (int i = 0; i < 2; i++) meet(&f->space[i], e->lanes);
        if (e->kind == EV_BARRIER_ARRIVE || e->kind == EV_CLUSTER_ARRIVE) on_release(o, w, e);
        return;
    case EV_MBAR_ARRIVE:
        if (!e->token) on_release(o, w, e);
        return;
    default: return;
    }
}
