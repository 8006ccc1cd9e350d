/*
 * Waits by some lanes of a warp: heard.h. The code does not ask which accesses a wait protects: any counts. With bulk
 * groups it is any to the range of bytes that the lane's operations have used, by an instruction or by an
 * asynchronous operation; and any arrival.
 */
#include "check/heard.h"

#include "async/async.h"
#include "async/mbar.h"

#include <stdlib.h>

enum { HEARD_MOST = 8 };

enum heard_kind {
    HEARD_COPIES, /* bulk groups are complete */
    HEARD_READ,   /* the sources of bulk groups have been read */
    HEARD_PHASE,  /* of an mbarrier */
    HEARD_GRID,   /* griddepcontrol.wait */
    HEARD_FENCE,  /* no wait, but fence.proxy.async, which bridges what its thread knows */
    HEARD_OTHERS  /* all that there is no room for, whatever they are */
};

/* Waits for bulk groups, each lane's for its own. */
struct heard_groups {
    uint32_t lanes;             /* that have waited */
    uint32_t knows[WARP_LANES]; /* by lane: of whose waits */
};

struct heard_wait {
    uint8_t kind;
    const struct cta *cta; /* the mbarrier's, and its offset */
    uint32_t key;
    uint64_t phase;
    uint32_t lanes; /* that know of it */
};

struct heard {
    struct heard_wait at[HEARD_MOST];
    uint32_t count;
    struct heard_groups groups[2]; /* HEARD_COPIES, HEARD_READ */
    /* Lanes that have had something in a bulk group, the bytes between which it all lay in shared [0] and global [1]
     * memory, and the operation that is being announced: its lane, and whether it is in a bulk group. */
    uint32_t issued;
    struct heard_bytes {
        uint64_t low, high;
    } bytes[2][WARP_LANES];
    uint64_t token;
    uint32_t issuer;
    bool in_group;
};

static struct heard *heard_of(struct order *o, struct order_warp *w)
{
    if (!w->heard) w->heard = calloc(1, sizeof *w->heard);
    order_keep(o, w->heard != NULL);
    return w->heard;
}

static void drop(struct heard *h, uint32_t i)
{
    h->at[i] = h->at[--h->count];
}

static void groups_meet(struct heard_groups *g, uint32_t lanes, uint32_t live)
{
    uint32_t known = 0, all = g->lanes;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) known |= g->knows[first_lane(rest)];
    for (uint32_t rest = lanes; rest; rest &= rest - 1) g->knows[first_lane(rest)] = known;
    for (uint32_t rest = live; rest; rest &= rest - 1) all &= g->knows[first_lane(rest)];
    if (all == g->lanes) *g = (struct heard_groups){0};
}

/* A group is a thread's: a lane that has none waits for nothing, and no lane waits for another's (PTX ISA
 * "cp.async.bulk.wait_group"). What was known of a lane's wait is not known of its next. */
static void groups_pass(struct heard *h, const struct event *e, enum heard_kind kind)
{
    struct heard_groups *g = &h->groups[kind];
    const uint32_t lanes = e->lanes & h->issued;
    for (uint32_t l = 0; l < WARP_LANES; l++)
        g->knows[l] = (g->knows[l] & ~lanes) | (lanes & 1U << l);
    g->lanes |= lanes;
    groups_meet(g, 0, e->warp->live);
}

static uint64_t place_of(const struct event *e, uint64_t address)
{
    return e->space == SPACE_SHARED ? address & SHARED_OFFSET_MASK : address;
}

/* The ranges of bytes of an access: one of each lane, or those of an operation, which are in e->addresses if there are
 * several. */
static uint32_t ranges_of(const struct event *e)
{
    return e->addresses ? e->lanes : 1;
}

static uint64_t range_at(const struct event *e, uint32_t range)
{
    return place_of(e, e->addresses ? e->addresses[range] : e->address);
}

/* What an operation in a bulk group reads or writes. */
static void groups_access(struct heard *h, const struct event *e)
{
    struct heard_bytes *b = &h->bytes[e->space == SPACE_GLOBAL][h->issuer];
    for (uint32_t rest = ranges_of(e); rest; rest &= rest - 1) {
        const uint64_t low = range_at(e, first_lane(rest)), high = low + e->size;
        if (!b->high || low < b->low) b->low = low;
        if (high > b->high) b->high = high;
    }
}

/* Whether a lane goes on where another one has waited. Of an arrival it is not known for which bytes it is, and those of
 * an operation are told behind its issue. */
static bool groups_missed(const struct heard *h, enum heard_kind kind, const struct event *e)
{
    const struct heard_groups *g = &h->groups[kind];
    if (!g->lanes || e->kind == EV_ASYNC_ISSUE) return false;
    for (uint32_t rest = e->kind == EV_ACCESS ? ranges_of(e) : e->lanes; rest; rest &= rest - 1) {
        const uint32_t range = first_lane(rest), lane = e->token ? h->issuer : range;
        const uint32_t others = g->lanes & ~g->knows[lane];
        uint64_t at;
        if (e->kind != EV_ACCESS && others) return true;
        at = range_at(e, range);
        for (uint32_t o = others; o; o &= o - 1) {
            const struct heard_bytes *b = &h->bytes[e->space == SPACE_GLOBAL][first_lane(o)];
            if (at < b->high && at + e->size > b->low) return true;
        }
    }
    return false;
}

/* Lanes know what any of them knew. */
static void meet(struct heard *h, uint32_t lanes, uint32_t live)
{
    if ((live & ~lanes) == 0) h->count = 0;
    for (uint32_t i = h->count; i-- > 0;) {
        if (h->at[i].lanes & lanes) h->at[i].lanes |= lanes;
        if ((live & ~h->at[i].lanes) == 0) drop(h, i);
    }
    for (int i = 0; i < 2; i++)
        if (h->groups[i].lanes) groups_meet(&h->groups[i], lanes, live);
}

/* Waits without room share the last place; a lane counts there only if it knows of all of them. */
static void passes_too(struct heard *h, uint32_t lanes)
{
    struct heard_wait *last = &h->at[HEARD_MOST - 1];
    if (h->count == HEARD_MOST) {
        last->lanes &= lanes;
        return;
    }
    h->count = HEARD_MOST;
    *last = (struct heard_wait){.kind = HEARD_OTHERS, .lanes = lanes};
}

/* What lanes have waited for has a place. */
static void passes(struct order *o, struct order_warp *w, const struct event *e,
                   enum heard_kind kind)
{
    const uint32_t live = w->warp->live;
    const bool phase = kind == HEARD_PHASE;
    struct heard *h = w->heard;
    uint32_t i = 0;
    if (!h && (live & ~e->lanes) == 0) return;
    h = heard_of(o, w);
    if (!h) return;
    while (i < h->count && (h->at[i].kind != kind || h->at[i].cta != (phase ? e->cta : NULL) ||
                            h->at[i].key != (phase ? e->key : 0)))
        i++;
    if (i == h->count && (live & ~e->lanes) == 0) return;
    if (i >= HEARD_MOST - 1) {
        passes_too(h, e->lanes);
        return;
    }
    if (i == h->count) {
        h->count++;
        h->at[i].lanes = 0;
    } else if (phase && h->at[i].phase != e->value) {
        h->at[i].lanes = 0;
    }
    h->at[i].kind = (uint8_t)kind;
    h->at[i].cta = phase ? e->cta : NULL;
    h->at[i].key = phase ? e->key : 0;
    h->at[i].phase = phase ? e->value : 0;
    h->at[i].lanes |= e->lanes;
    if ((live & ~h->at[i].lanes) == 0) drop(h, i);
}

/* Whether a wait of that kind can be what an event comes after. */
static bool concerns(enum heard_kind kind, const struct event *e)
{
    if (kind == HEARD_FENCE)
        return e->kind == EV_ASYNC_ISSUE && e->in->is.class != INSN_COMMIT &&
               (e->in->is.engine == ENGINE_BULK || e->in->is.engine == ENGINE_TENSOR);
    if (e->kind != EV_ACCESS) return kind != HEARD_GRID;
    if (kind == HEARD_GRID) return e->space == SPACE_GLOBAL;
    if (kind == HEARD_READ) return e->space == SPACE_SHARED && e->access & ACCESS_WRITE;
    return e->space == SPACE_SHARED || e->space == SPACE_GLOBAL;
}

static void groups_use(struct order *o, struct heard *h, const struct event *e)
{
    for (int i = 0; i < 2; i++) {
        if (!concerns((enum heard_kind)i, e) || !groups_missed(h, (enum heard_kind)i, e)) continue;
        order_sampled(o, SAMPLED_LANES, e->in);
        h->groups[i] = (struct heard_groups){0};
    }
}

static void does(struct order *o, struct heard *h, const struct event *e)
{
    for (uint32_t i = 0; i < h->count; i++) {
        if (!(e->lanes & ~h->at[i].lanes) || !concerns((enum heard_kind)h->at[i].kind, e)) continue;
        order_sampled(o, SAMPLED_LANES, e->in);
        h->count = 0; /* once is enough */
    }
    groups_use(o, h, e);
}

/* Something that completes in a bulk group. */
static bool in_bulk_group(const struct insn *in)
{
    return (in->is.class == INSN_COPY || in->is.class == INSN_COPY_RED) &&
           in->is.engine != ENGINE_CP_ASYNC && in->is.signals != SIGNALS_BYTES;
}

static void on_issue(struct order *o, struct order_warp *w, const struct event *e)
{
    const bool in_group = in_bulk_group(e->in);
    struct heard *h = in_group ? heard_of(o, w) : w->heard;
    if (!h) return;
    if (in_group) h->issued |= e->lanes;
    h->in_group = in_group;
    h->issuer = first_lane(e->lanes);
    h->token = e->token;
}

/* What the operation that was issued last reads or writes. */
static void on_operation(struct order *o, struct heard *h, const struct event *e)
{
    if (e->token != h->token || !h->issued || e->tensor || !e->in) return;
    if (e->space == SPACE_SHARED ? e->cta != e->warp->cta : e->space != SPACE_GLOBAL) return;
    groups_use(o, h, e);
    if (h->in_group) groups_access(h, e);
}

void heard_event(struct order *o, struct order_warp *w, const struct event *e)
{
    struct heard *h = w->heard;
    switch (e->kind) {
    case EV_MBAR_PASS:
        if (e->value != FRESH_PHASE) passes(o, w, e, HEARD_PHASE);
        return;
    case EV_GROUP_WAIT:
        if (h && e->key == COMMIT_BULK)
            groups_pass(h, e, e->in->is.sources ? HEARD_READ : HEARD_COPIES);
        return;
    case EV_GRID_WAIT: passes(o, w, e, HEARD_GRID); return;
    case EV_FENCE:
        if (e->value == FENCE_PROXY_ASYNC) passes(o, w, e, HEARD_FENCE);
        return;
    case EV_ASYNC_ISSUE:
        if (e->in) on_issue(o, w, e);
        h = w->heard;
        break;
    case EV_ACCESS:
        if (h && e->token) on_operation(o, h, e);
        break;
    default: break;
    }
    if (!h || !(h->count || h->groups[0].lanes || h->groups[1].lanes)) return;
    switch (e->kind) {
    case EV_ACCESS:
    case EV_MBAR_ARRIVE:
        if (!e->token && e->in && !e->tensor) does(o, h, e);
        break;
    case EV_ASYNC_ISSUE:
        if (e->in) does(o, h, e);
        break;
    case EV_WARP_SYNC:
    case EV_BARRIER_ARRIVE:
    case EV_BARRIER_PASS:
    case EV_CLUSTER_ARRIVE:
    case EV_CLUSTER_PASS: meet(h, e->lanes, w->warp->live); break;
    default: break;
    }
}
