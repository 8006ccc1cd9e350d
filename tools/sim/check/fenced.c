/*
 * One lane's proxy fence for the writes of others: fenced.h. Of each lane's writes the range of bytes is kept, in shared
 * [0] and global [1] memory, until the lane fences itself. cp.async writes when the lane has waited for it.
 */
#include "check/fenced.h"

#include "async/async.h"
#include "async/mbar.h"
#include "check/spoken.h"

#include <stdlib.h>

struct fenced_bytes {
    uint64_t low[WARP_LANES], high[WARP_LANES];
};

struct fenced {
    struct fenced_writes {
        /* Lanes that have written and not fenced since: ahead of the last fence of any lane, so that order.h takes
         * these writes for bridged, and behind it. */
        uint32_t trusted, fresh;
        struct fenced_bytes old, latest; /* of the trusted and the fresh */
        /* By lane: the lanes whose writes all come before what it does next, and those of the trusted that a fence
         * stands behind. [WARP_LANES]: what lanes have arrived for at mbarriers. Any lane of these is in `reached` or
         * `passed`. */
        uint32_t reach[WARP_LANES + 1], bridged[WARP_LANES + 1], reached, passed;
    } space[2];
    uint32_t copies; /* lanes with cp.async that may not have landed, and its bytes */
    struct fenced_bytes copied;
    uint64_t token; /* the operation whose accesses are announced */
    uint32_t issuer;
};

static struct fenced *fenced_of(struct order *o, struct order_warp *w)
{
    if (!w->fenced_for) w->fenced_for = calloc(1, sizeof *w->fenced_for);
    order_keep(o, w->fenced_for != NULL);
    return w->fenced_for;
}

/* No lane knows any more of all that these lanes have written. */
static void unreach(struct fenced_writes *s, uint32_t lanes)
{
    if (!(s->reached & lanes)) return;
    for (uint32_t l = 0; l <= WARP_LANES; l++) s->reach[l] &= ~lanes;
    s->reached &= ~lanes;
}

static void unbridge(struct fenced_writes *s, uint32_t lanes)
{
    if (!(s->passed & lanes)) return;
    for (uint32_t l = 0; l <= WARP_LANES; l++) s->bridged[l] &= ~lanes;
    s->passed &= ~lanes;
}

static void add_bytes(struct fenced_bytes *b, uint32_t lane, bool first, uint64_t low,
                      uint64_t high)
{
    if (first || low < b->low[lane]) b->low[lane] = low;
    if (first || high > b->high[lane]) b->high[lane] = high;
}

static void on_write(struct order *o, struct order_warp *w, const struct event *e)
{
    struct fenced *f = fenced_of(o, w);
    struct fenced_writes *s = f ? &f->space[e->space == SPACE_GLOBAL] : NULL;
    if (!s) return;
    unreach(s, e->lanes);
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        const uint64_t at = e->addresses[lane];
        if (e->space == SPACE_SHARED && at > SHARED_OFFSET_MASK) continue; /* another CTA's */
        add_bytes(&s->latest, lane, !(s->fresh >> lane & 1), at, at + e->size);
        s->fresh |= 1U << lane;
    }
}

static void on_copy(struct order *o, struct order_warp *w, const struct event *e)
{
    struct fenced *f = fenced_of(o, w);
    const uint32_t lane = first_lane(e->lanes);
    const uint64_t at = e->address & SHARED_OFFSET_MASK;
    if (!f) return;
    add_bytes(&f->copied, lane, !(f->copies >> lane & 1), at, at + e->size);
    f->copies |= 1U << lane;
}

/* Copies of these lanes may have landed. */
static void land(struct fenced *f, uint32_t lanes)
{
    struct fenced_writes *s = &f->space[0];
    lanes &= f->copies;
    unreach(s, lanes);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        add_bytes(&s->latest, lane, !(s->fresh >> lane & 1), f->copied.low[lane],
                  f->copied.high[lane]);
    }
    s->fresh |= lanes;
}

static void on_copy_wait(struct fenced *f, const struct event *e)
{
    land(f, e->lanes);
    if (e->in->is.waits == WAITS_ISSUED || !e->value) f->copies &= ~e->lanes;
}

/* What these lanes have written needs no more looking at. */
static void settle_lanes(struct fenced_writes *s, uint32_t lanes)
{
    s->trusted &= ~lanes;
    s->fresh &= ~lanes;
    unreach(s, lanes);
    unbridge(s, lanes);
}

/* whole: by all lanes. Else those that do not fence have yet to be told of the fences of the others. */
static void fence_space(struct fenced_writes *s, uint32_t lanes, bool whole)
{
    const uint32_t own = (s->trusted | s->fresh) & lanes;
    if (whole) settle_lanes(s, lanes);
    unbridge(s, s->fresh);
    for (uint32_t rest = s->fresh; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        add_bytes(&s->old, lane, !(s->trusted >> lane & 1), s->latest.low[lane],
                  s->latest.high[lane]);
    }
    s->trusted |= s->fresh;
    s->fresh = 0;
    for (uint32_t rest = s->trusted ? lanes : 0; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        s->bridged[lane] |= s->reach[lane] | (whole ? 0 : own & 1U << lane);
        s->passed |= s->bridged[lane];
    }
}

static void on_fence(struct fenced *f, const struct event *e)
{
    const bool whole = e->lanes == e->warp->live;
    if (e->space != SPACE_GLOBAL) fence_space(&f->space[0], e->lanes, whole);
    if (e->space != SPACE_SHARED) fence_space(&f->space[1], e->lanes, whole);
}

/* Lanes know what any of them knew. */
static void meet(struct fenced_writes *s, uint32_t lanes, bool whole)
{
    uint32_t reach = (s->trusted | s->fresh) & lanes, bridged = 0;
    if (!(s->trusted | s->fresh)) return;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        reach |= s->reach[first_lane(rest)];
        bridged |= s->bridged[first_lane(rest)];
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        s->reach[first_lane(rest)] = reach;
        s->bridged[first_lane(rest)] = bridged;
    }
    s->reached |= reach;
    s->passed |= bridged;
    if (whole) settle_lanes(s, s->trusted & bridged & ~s->fresh);
}

/* Lanes hand on what they know, by an arrival at an mbarrier, or take what others have handed on. */
static void give(struct fenced_writes *s, uint32_t lanes)
{
    s->reach[WARP_LANES] |= (s->trusted | s->fresh) & lanes;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        s->reach[WARP_LANES] |= s->reach[first_lane(rest)];
        s->bridged[WARP_LANES] |= s->bridged[first_lane(rest)];
    }
    s->reached |= s->reach[WARP_LANES];
    s->passed |= s->bridged[WARP_LANES];
}

static void take(struct fenced_writes *s, uint32_t lanes, uint32_t landed)
{
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        s->reach[first_lane(rest)] |= s->reach[WARP_LANES] | landed;
        s->bridged[first_lane(rest)] |= s->bridged[WARP_LANES];
    }
    s->reached |= landed;
}

/* An mbarrier may also tell of copies. */
static void on_pass(struct fenced *f, const struct event *e)
{
    land(f, f->copies);
    take(&f->space[0], e->lanes, f->copies);
    take(&f->space[1], e->lanes, 0);
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
                       (struct spoken_span){.low = s->old.low[lane],
                                            .high = s->old.high[lane],
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
        if (low < s->old.high[lane] && s->old.low[lane] < high) return true;
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
    if (e->in->is.engine == ENGINE_CP_ASYNC && e->space == SPACE_SHARED) {
        on_copy(o, w, e);
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
        w->fenced_since[0] = w->fenced_since[1] = false;
    if (e->kind == EV_FENCE && e->value == FENCE_PROXY_ASYNC) {
        w->fenced_since[0] |= e->space != SPACE_GLOBAL;
        w->fenced_since[1] |= e->space != SPACE_SHARED;
    }
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
        for (int i = 0; i < 2; i++) meet(&f->space[i], e->lanes, e->lanes == e->warp->live);
        if (e->kind == EV_BARRIER_ARRIVE || e->kind == EV_CLUSTER_ARRIVE) on_release(o, w, e);
        return;
    case EV_GROUP_WAIT:
        if (e->key == COMMIT_CP_ASYNC) on_copy_wait(f, e);
        return;
    case EV_MBAR_PASS:
        if (e->value != FRESH_PHASE) on_pass(f, e);
        return;
    case EV_MBAR_ARRIVE:
        if (e->token) return;
        on_release(o, w, e);
        for (int i = 0; i < 2; i++) give(&f->space[i], e->lanes);
        return;
    default: return;
    }
}
