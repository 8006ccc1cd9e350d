/*
 * Order between lanes of one warp (lanes.h). PTX ISA "bar.warp.sync": participating threads' accesses are
 * ordered; "Async Proxy": the writer's fence comes before the barrier. An arrival at an mbarrier counts as a
 * handover of all that its lanes did (hides, never invents), and so do lists that are full.
 */
#include "lanes.h"

#include "async.h"
#include "mem.h"

#include <stdlib.h>
#include <string.h>

enum { SPANS = 16, HOLDS = 16 };

/* Shared bytes that a lane wrote and has not handed to the other lanes. */
struct span {
    uint64_t low, high;
    const struct insn *in;
    bool fenced; /* by fence.proxy.async since */
    bool met;    /* a barrier since: generic accesses of the others are in order */
};

/* A bulk operation that reads shared bytes, until the whole warp knows that it has. */
struct hold {
    uint64_t token, low, high, group; /* group: of its lane, from 1; 0 before commit_group */
    uint32_t lane;
    bool awaited; /* by its lane */
    const struct insn *in;
};

struct lane_record {
    const struct warp *warp; /* NULL: unused */
    struct lane_record *next;
    uint32_t spans[WARP_LANES], holds;
    struct span span[WARP_LANES][SPANS];
    struct hold hold[HOLDS];
    uint64_t groups[WARP_LANES]; /* bulk groups closed */
    uint64_t token;              /* the operation whose accesses are announced */
    uint32_t issuers;
    uint32_t
        before; /* lanes whose tcgen05.fence::before_thread_sync was no barrier's business yet */
};

struct lanes {
    struct group *group;
    struct lane_record *records;
};

static struct lane_record *record_of(struct lanes *l, const struct warp *w)
{
    struct lane_record *r = l->records;
    while (r && r->warp != w) r = r->next;
    if (r || !(r = calloc(1, sizeof *r))) return r;
    r->warp = w;
    r->next = l->records;
    l->records = r;
    return r;
}

static void record_clear(struct lane_record *r)
{
    const struct warp *w = r->warp;
    struct lane_record *next = r->next;
    memset(r, 0, sizeof *r);
    r->warp = w;
    r->next = next;
}

static bool overlap(uint64_t low, uint64_t high, uint64_t from, uint64_t to)
{
    return low < to && from < high;
}

static void tell_written(struct lanes *l, const struct event *e, const struct span *s,
                         uint32_t lane)
{
    sim_find(
        l->group, e->warp, e->in, first_lane(e->lanes), SEV_WARNING,
        s->fenced ? FIND_RACE : FIND_PROXY, CAUSE_NONE, "",
        "the asynchronous operation reads bytes %llu to %llu of shared memory, which lane %u of "
        "this warp wrote (line %u) with no %s. Lanes that run converged hide it. Cheapest "
        "remedy: fence.proxy.async by the writers, then bar.warp.sync, then the operation.",
        (unsigned long long)s->low, (unsigned long long)s->high - 1, lane, s->in->src->pos.line,
        s->fenced ? "bar.warp.sync since" : "fence.proxy.async of its own before a bar.warp.sync");
}

static void tell_waited(struct lanes *l, const struct event *e, const struct hold *h, uint32_t lane)
{
    sim_find(l->group, e->warp, e->in, lane, SEV_WARNING, FIND_ASYNC_REUSE, CAUSE_NONE, "",
             "writes shared memory that a bulk operation of lane %u (line %u) reads: that lane has "
             "waited for it, but no bar.warp.sync has told this one. Lanes that run converged hide "
             "it. Cheapest remedy: bar.warp.sync behind the cp.async.bulk.wait_group.",
             h->lane, h->in->src->pos.line);
}

static void tell_lanes(struct lanes *l, const struct event *e, const struct span *s,
                       uint32_t writer, uint32_t lane)
{
    sim_find(
        l->group, e->warp, e->in, lane, SEV_WARNING, FIND_RACE, CAUSE_NONE, "",
        "%s bytes of shared memory that lane %u of this warp wrote (line %u), with no "
        "bar.warp.sync since. Lanes that run converged hide it. Cheapest remedy: bar.warp.sync "
        "between the two.",
        e->access & ACCESS_WRITE ? "writes" : "reads", writer, s->in->src->pos.line);
}

/* A generic access to bytes that another lane wrote by another instruction. */
static void check_others(struct lanes *l, struct lane_record *r, const struct event *e,
                         uint32_t lane, uint64_t low)
{
    for (uint32_t i = 0; i < WARP_LANES; i++) {
        if (i == lane) continue;
        for (uint32_t k = 0; k < r->spans[i]; k++) {
            const struct span *s = &r->span[i][k];
            if (s->met || s->in == e->in || !overlap(low, low + e->size, s->low, s->high)) continue;
            tell_lanes(l, e, s, i, lane);
            r->spans[i] = 0;
        }
    }
}

static void check_holds(struct lanes *l, const struct lane_record *r, const struct event *e,
                        uint32_t lane, uint64_t low)
{
    for (uint32_t k = 0; k < r->holds; k++) {
        const struct hold *h = &r->hold[k];
        if (!h->awaited || h->lane == lane || !overlap(low, low + e->size, h->low, h->high))
            continue;
        tell_waited(l, e, h, lane);
        return;
    }
}

/* Bytes that a lane writes; next to what it has written by the same instruction they are one span. */
static void write_span(struct lane_record *r, const struct event *e, uint32_t lane, uint64_t low)
{
    const uint64_t high = low + e->size;
    struct span *s = r->span[lane];
    uint32_t i = 0;
    while (i < r->spans[lane] && (low != s[i].low || high != s[i].high)) i++;
    if (i == SPANS) i = r->spans[lane] = 0;
    if (i == r->spans[lane]) r->spans[lane]++;
    s[i] = (struct span){.low = low, .high = high, .in = e->in};
}

static void read_range(struct lanes *l, struct lane_record *r, const struct event *e, uint64_t low,
                       uint64_t high)
{
    const uint32_t lane = first_lane(r->issuers);
    struct event at = *e;
    at.lanes = r->issuers;
    for (uint32_t i = 0; i < WARP_LANES; i++) {
        if (r->issuers >> i & 1) continue;
        for (uint32_t k = 0; k < r->spans[i]; k++) {
            if (!overlap(low, high, r->span[i][k].low, r->span[i][k].high)) continue;
            tell_written(l, &at, &r->span[i][k], i);
            r->spans[i] = 0;
        }
    }
    if (strncmp(e->in->row->name, "cp.", 3) != 0 || r->holds == HOLDS) return;
    r->hold[r->holds++] =
        (struct hold){.token = e->token, .low = low, .high = high, .lane = lane, .in = e->in};
}

static void on_access(struct lanes *l, struct lane_record *r, const struct event *e)
{
    const bool async = e->token && e->proxy == PROXY_ASYNC;
    if (e->tensor || e->space != SPACE_SHARED || (async && e->token != r->token)) return;
    if (!async && (e->token || !e->addresses || e->strong)) return;
    if (async && !(e->access & ACCESS_READ)) return;
    if (!e->addresses) {
        uint64_t low = e->address & SHARED_OFFSET_MASK;
        if (e->cta == e->warp->cta) read_range(l, r, e, low, low + e->size);
        return;
    }
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
        struct cta *cta;
        uint32_t lane = first_lane(rest), offset;
        if (!mem_shared(e->warp, (uint32_t)e->addresses[lane], &cta, &offset)) continue;
        if (cta != e->warp->cta) continue;
        if (async) {
            read_range(l, r, e, offset, offset + e->size);
            continue;
        }
        check_others(l, r, e, lane, offset);
        if (!(e->access & ACCESS_WRITE)) continue;
        check_holds(l, r, e, lane, offset);
        write_span(r, e, lane, offset);
    }
}

/* The lanes know of each other; of writes only what their own fences covered reaches the async proxy. */
static void on_sync(struct lane_record *r, uint32_t lanes)
{
    uint32_t kept = 0;
    r->before &= ~lanes;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        uint32_t n = 0;
        for (uint32_t k = 0; k < r->spans[lane]; k++) {
            r->span[lane][k].met = true;
            if (!r->span[lane][k].fenced) r->span[lane][n++] = r->span[lane][k];
        }
        r->spans[lane] = n;
    }
    for (uint32_t k = 0; k < r->holds; k++)
        if (!r->hold[k].awaited || !(lanes >> r->hold[k].lane & 1)) r->hold[kept++] = r->hold[k];
    r->holds = kept;
}

/* fence.proxy.async.global is no matter of shared memory. */
static void on_fence(struct lane_record *r, const struct event *e)
{
    if (e->space == SPACE_GLOBAL) return;
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1)
        for (uint32_t k = 0, lane = first_lane(rest); k < r->spans[lane]; k++)
            r->span[lane][k].fenced = true;
}

static void on_group(struct lane_record *r, const struct event *e)
{
    if (e->key != COMMIT_BULK) return;
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1)
        r->groups[first_lane(rest)] += e->kind == EV_GROUP_COMMIT;
    for (uint32_t k = 0; k < r->holds; k++) {
        struct hold *h = &r->hold[k];
        if (!(e->lanes >> h->lane & 1)) continue;
        if (e->kind == EV_GROUP_COMMIT)
            h->group = h->group ? h->group : r->groups[h->lane];
        else if (h->group && h->group + e->value <= r->groups[h->lane])
            h->awaited = true;
    }
}

/* PTX ISA "tcgen05.fence": a thread's fence covers its own operations; one that arrives for all of them has
 * to come after their fences. */
static void on_arrive(struct lanes *l, struct lane_record *r, const struct event *e)
{
    if (e->token) return;
    if (r->before & ~e->lanes)
        sim_find(
            l->group, e->warp, e->in, first_lane(e->lanes), SEV_WARNING, FIND_TMEM_WAIT, CAUSE_NONE,
            "",
            "arrives, but lane %u of this warp executed tcgen05.fence::before_thread_sync with no "
            "bar.warp.sync since: its loads and stores of tensor memory are not handed over. "
            "Cheapest remedy: bar.warp.sync between the fences and the arrival.",
            first_lane(r->before & ~e->lanes));
    r->before = 0;
    on_sync(r, e->lanes);
}

void lanes_event(struct lanes *l, const struct event *e)
{
    struct lane_record *r = e->warp ? record_of(l, e->warp) : NULL;
    if (!r) return;
    switch (e->kind) {
    case EV_WARP_START: record_clear(r); break;
    case EV_ACCESS: on_access(l, r, e); break;
    case EV_ASYNC_ISSUE:
        r->token = e->token;
        r->issuers = e->lanes;
        break;
    case EV_FENCE:
        if (e->value == FENCE_PROXY_ASYNC) on_fence(r, e);
        if (e->value == FENCE_TCGEN05_BEFORE) r->before |= e->lanes;
        break;
    case EV_WARP_SYNC:
    case EV_BARRIER_ARRIVE:
    case EV_CLUSTER_ARRIVE: on_sync(r, e->lanes); break;
    case EV_MBAR_ARRIVE: on_arrive(l, r, e); break;
    case EV_GROUP_COMMIT:
    case EV_GROUP_WAIT: on_group(r, e); break;
    default: break;
    }
}

struct lanes *lanes_new(struct group *g)
{
    struct lanes *l = calloc(1, sizeof *l);
    if (l) l->group = g;
    return l;
}

void lanes_free(struct lanes *l)
{
    while (l && l->records) {
        struct lane_record *next = l->records->next;
        free(l->records);
        l->records = next;
    }
    free(l);
}
