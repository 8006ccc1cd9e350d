/*
 * Order between lanes of one warp (order_lanes.h). PTX ISA "bar.warp.sync": participating threads' accesses are
 * ordered. "Causality order": a proxy fence counts where it stands on the way from the write to the operation, so it is the
 * writer's, ahead of the barrier, or that of a lane which the barrier has told. Other warps learn of a lane's accesses
 * from its own arrivals or from a lane that it has met. An arrival at an mbarrier counts as a handover of
 * all that its lanes did (hides, never invents), and so do lists that are full.
 */
#include "check/order_lanes.h"

#include "async/async.h"
#include "machine/mem.h"

#include <stdlib.h>
#include <string.h>

enum { SPANS = 16, READS = 8, HOLDS = 16 };

/* Shared bytes that a lane wrote (or read, for other warps to write over), until all know of it. */
struct span {
    uint64_t low, high;
    const struct insn *in;
    bool fenced;      /* by fence.proxy.async since */
    bool elsewhere;   /* by fence.proxy.async.global only */
    bool met;         /* a barrier of lanes since: generic accesses of the others are in order */
    bool ready;       /* the same of the fence: so is the async proxy */
    uint32_t bridged; /* lanes that have made one behind such a barrier, or have met one that has */
    bool
        told; /* a release since, by its lane or by one that it has met: other warps' accesses are */
    bool handed; /* the same of the fence */
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
    const struct cta *cta;   /* of the warp, which may be gone */
    uint32_t id;             /* the warp's in it */
    struct lane_record *next;
    uint32_t spans[WARP_LANES], reads[WARP_LANES], holds;
    struct span span[WARP_LANES][SPANS];
    struct span read[WARP_LANES][READS]; /* read, and not told of */
    uint64_t open_low, open_high;        /* all that is not told of lies between */
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
    r->cta = w->cta;
    r->id = w->id;
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
    r->cta = w->cta;
    r->id = w->id;
    r->next = next;
}

/* A warp of an earlier CTA that stood where this one's now does. */
static void forget(struct lanes *l, const struct warp *w)
{
    for (struct lane_record *r = l->records; r; r = r->next)
        if (r->warp != w && r->cta == w->cta && r->id == w->id) r->cta = NULL;
}

static bool overlap(uint64_t low, uint64_t high, uint64_t from, uint64_t to)
{
    return low < to && from < high;
}

static void tell_written(struct lanes *l, const struct event *e, const struct span *s,
                         uint32_t lane)
{
    sim_idiom(l->group, e->in, IDIOM_LANES_SPEAK);
    sim_find(
        l->group, e->warp, e->in, first_lane(e->lanes), SEV_WARNING,
        s->fenced ? FIND_RACE : FIND_PROXY, CAUSE_NONE, "",
        "the asynchronous operation reads bytes %llu to %llu of shared memory, which lane %u of "
        "this warp wrote (line %u) with no %s. Lanes that run converged hide it. Cheapest "
        "remedy: fence.proxy.async by the writers, then bar.warp.sync, then the operation.",
        (unsigned long long)s->low, (unsigned long long)s->high - 1, lane, s->in->src->pos.line,
        s->fenced ? "bar.warp.sync since"
                  : "fence.proxy.async that a bar.warp.sync puts between the two");
}

static void tell_unfenced(struct lanes *l, const struct event *e, const struct span *s,
                          uint32_t lane)
{
    sim_idiom(l->group, e->in, IDIOM_LANES_SPEAK);
    sim_find(
        l->group, e->warp, e->in, lane, SEV_WARNING, FIND_PROXY, CAUSE_NONE, "",
        "the asynchronous operation reads bytes %llu to %llu of shared memory, which this lane "
        "wrote (line %u); the only fence since is of global memory. Cheapest remedy: "
        "fence.proxy.async.shared::cta.",
        (unsigned long long)s->low, (unsigned long long)s->high - 1, s->in->src->pos.line);
}

static void tell_waited(struct lanes *l, const struct event *e, const struct hold *h, uint32_t lane)
{
    sim_idiom(l->group, e->in, IDIOM_LANES_SPEAK);
    sim_find(l->group, e->warp, e->in, lane, SEV_WARNING, FIND_ASYNC_REUSE, CAUSE_NONE, "",
             "writes shared memory that a bulk operation of lane %u (line %u) reads: that lane has "
             "waited for it, but no bar.warp.sync has told this one. Lanes that run converged hide "
             "it. Cheapest remedy: bar.warp.sync behind the cp.async.bulk.wait_group.",
             h->lane, h->in->src->pos.line);
}

static void tell_lanes(struct lanes *l, const struct event *e, const struct span *s,
                       uint32_t writer, uint32_t lane)
{
    sim_idiom(l->group, e->in, IDIOM_LANES_SPEAK);
    sim_find(
        l->group, e->warp, e->in, lane, SEV_WARNING, FIND_RACE, CAUSE_NONE, "",
        "%s bytes of shared memory that lane %u of this warp wrote (line %u), with no "
        "bar.warp.sync since. Lanes that run converged hide it. Cheapest remedy: bar.warp.sync "
        "between the two.",
        e->access & ACCESS_WRITE ? "writes" : "reads", writer, s->in->src->pos.line);
}

/* What keeps other warps from an access to the span; NULL: nothing that is known here. */
static const char *missing(const struct span *s, const struct event *e)
{
    if (!s->told)
        return "That lane has neither arrived anywhere since nor met the lane that did, "
               "so "
               "nothing orders the two. Lanes that run converged hide it. Cheapest remedy: "
               "bar.warp.sync "
               "between that access and the arrival which speaks for the warp.";
    if (e->proxy != PROXY_ASYNC || !(e->access & ACCESS_READ)) return NULL;
    if (s->fenced && !s->handed)
        return "Its fence.proxy.async comes after the last barrier that it met the arriving lane "
               "at. Lanes that run converged hide it. Cheapest remedy: the fence by the writers, "
               "then bar.warp.sync, then the arrival.";
    if (s->elsewhere && !s->fenced)
        return "The only proxy fence since is of global memory. Cheapest remedy: "
               "fence.proxy.async.shared::cta.";
    return NULL;
}

static void tell_warps(struct lanes *l, const struct event *e, const struct span *s,
                       const struct lane_record *other, uint32_t other_lane, uint32_t lane,
                       const char *did)
{
    sim_idiom(l->group, e->in, IDIOM_LANES_SPEAK);
    sim_find(l->group, e->warp, e->in, lane, SEV_WARNING, s->told ? FIND_PROXY : FIND_RACE,
             CAUSE_NONE, "", "%s bytes of shared memory that lane %u of warp %u %s (line %u). %s",
             e->access & ACCESS_WRITE ? "writes" : "reads", other_lane, other->id, did,
             s->in->src->pos.line, missing(s, e));
}

/* The first span of a lane's list that the event must not touch yet; told of once. */
static void check_list(struct lanes *l, const struct event *e, const struct lane_record *r,
                       uint32_t other_lane, uint32_t lane, struct span *list, uint32_t count,
                       uint64_t low, uint64_t high)
{
    const bool wrote = list == r->span[other_lane];
    for (uint32_t k = 0; k < count; k++) {
        if (!overlap(low, high, list[k].low, list[k].high) || !missing(&list[k], e)) continue;
        tell_warps(l, e, &list[k], r, other_lane, lane, wrote ? "wrote" : "read");
        list[k].told = list[k].handed = true;
        list[k].elsewhere = false;
        return;
    }
}

/* An access, by whatever proxy, to bytes [low, high) of a CTA in which other warps' lanes may be at work. */
static void check_warps(struct lanes *l, const struct event *e, uint32_t lane, uint64_t low,
                        uint64_t high)
{
    for (struct lane_record *r = l->records; r; r = r->next) {
        if (r->warp == e->warp || r->cta != e->warp->cta) continue;
        if (!overlap(low, high, r->open_low, r->open_high)) continue;
        for (uint32_t i = 0; i < WARP_LANES; i++) {
            check_list(l, e, r, i, lane, r->span[i], r->spans[i], low, high);
            if (e->access & ACCESS_WRITE)
                check_list(l, e, r, i, lane, r->read[i], r->reads[i], low, high);
        }
    }
}

static void open_span(struct lane_record *r, uint64_t low, uint64_t high)
{
    if (r->open_low == r->open_high) r->open_low = low;
    if (low < r->open_low) r->open_low = low;
    if (high > r->open_high) r->open_high = high;
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
    open_span(r, low, high);
}

static void read_span(struct lane_record *r, const struct event *e, uint32_t lane, uint64_t low)
{
    if (r->reads[lane] == READS) r->reads[lane] = 0;
    r->read[lane][r->reads[lane]++] = (struct span){.low = low, .high = low + e->size, .in = e->in};
    open_span(r, low, low + e->size);
}

static void read_range(struct lanes *l, struct lane_record *r, const struct event *e, uint64_t low,
                       uint64_t high)
{
    const uint32_t lane = first_lane(r->issuers);
    struct event at = *e;
    at.lanes = r->issuers;
    for (uint32_t i = 0; i < WARP_LANES; i++) {
        const bool own = r->issuers >> i & 1;
        for (uint32_t k = 0; k < r->spans[i]; k++) {
            const struct span *s = &r->span[i][k];
            if (!overlap(low, high, s->low, s->high)) continue;
            if (s->ready || s->bridged & r->issuers || (own && (s->fenced || !s->elsewhere)))
                continue;
            if (own)
                tell_unfenced(l, &at, s, i);
            else
                tell_written(l, &at, s, i);
            r->spans[i] = 0;
        }
    }
    if ((e->in->is.class != INSN_COPY && e->in->is.class != INSN_COPY_RED) || r->holds == HOLDS)
        return;
    r->hold[r->holds++] =
        (struct hold){.token = e->token, .low = low, .high = high, .lane = lane, .in = e->in};
}

static bool settled(const struct span *s)
{
    return s->told && (!s->fenced || s->handed) && (!s->elsewhere || s->fenced);
}

/* A release by these lanes: other warps can learn from it what they, and those that they met, have done. */
static void publish(struct lane_record *r, uint32_t lanes)
{
    r->open_low = r->open_high = 0;
    for (uint32_t i = 0; i < WARP_LANES; i++) {
        const bool own = lanes >> i & 1;
        uint32_t kept = 0;
        for (uint32_t k = 0; k < r->spans[i]; k++) {
            struct span *s = &r->span[i][k];
            s->told |= own || s->met;
            s->handed |= (own ? s->fenced : s->ready) || s->bridged & lanes;
            if (s->ready && s->handed) continue;
            r->span[i][kept++] = *s;
            if (!settled(s)) open_span(r, s->low, s->high);
        }
        r->spans[i] = kept;
        kept = 0;
        for (uint32_t k = 0; k < r->reads[i] && !own; k++) {
            if (r->read[i][k].met) continue;
            r->read[i][kept++] = r->read[i][k];
            open_span(r, r->read[i][k].low, r->read[i][k].high);
        }
        r->reads[i] = kept;
    }
}

static void on_access(struct lanes *l, struct lane_record *r, const struct event *e)
{
    const bool async = e->token && e->proxy == PROXY_ASYNC;
    if (!e->token && e->strong) publish(r, e->lanes); /* it may be a release */
    if (e->tensor || e->space != SPACE_SHARED || (async && e->token != r->token)) return;
    if (!async && (e->token || !e->addresses || e->strong)) return;
    if (!e->addresses) {
        uint64_t low = e->address & SHARED_OFFSET_MASK;
        if (e->cta != e->warp->cta) return;
        check_warps(l, e, first_lane(r->issuers), low, low + e->size);
        if (e->access & ACCESS_READ) read_range(l, r, e, low, low + e->size);
        return;
    }
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
        struct cta *cta;
        uint32_t lane = first_lane(rest), offset;
        if (!mem_shared(e->warp, (uint32_t)e->addresses[lane], &cta, &offset)) continue;
        if (cta != e->warp->cta) continue;
        check_warps(l, e, async ? first_lane(r->issuers) : lane, offset, offset + e->size);
        if (async) {
            if (e->access & ACCESS_READ) read_range(l, r, e, offset, offset + e->size);
            continue;
        }
        check_others(l, r, e, lane, offset);
        if (!(e->access & ACCESS_WRITE)) {
            read_span(r, e, lane, offset);
            continue;
        }
        check_holds(l, r, e, lane, offset);
        write_span(r, e, lane, offset);
    }
}

/* The lanes know of each other, and of what is fenced. */
static void on_meet(struct lane_record *r, uint32_t lanes)
{
    uint32_t kept = 0;
    r->before &= ~lanes;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        for (uint32_t k = 0; k < r->spans[lane]; k++) {
            struct span *s = &r->span[lane][k];
            s->met = true;
            s->ready = s->fenced;
        }
        for (uint32_t k = 0; k < r->reads[lane]; k++) r->read[lane][k].met = true;
    }
    for (uint32_t i = 0; i < WARP_LANES; i++)
        for (uint32_t k = 0; k < r->spans[i]; k++)
            if (r->span[i][k].bridged & lanes) r->span[i][k].bridged |= lanes;
    for (uint32_t k = 0; k < r->holds; k++)
        if (!r->hold[k].awaited || !(lanes >> r->hold[k].lane & 1)) r->hold[kept++] = r->hold[k];
    r->holds = kept;
}

static void on_sync(struct lane_record *r, uint32_t lanes)
{
    on_meet(r, lanes);
    publish(r, lanes);
}

/* What a thread issues may release for it: a commit does (PTX ISA "tcgen05.commit"), copies and products do
 * not. */
static bool releases(const struct insn *in)
{
    return in->is.engine != ENGINE_BULK &&
           (in->is.class != INSN_MMA || in->is.engine != ENGINE_TENSOR);
}

/* fence.proxy.async.global is no matter of shared memory. Behind a barrier a lane's fence covers what others wrote. */
static void on_fence(struct lane_record *r, const struct event *e)
{
    const bool elsewhere = e->space == SPACE_GLOBAL;
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        const bool own = e->lanes >> lane & 1;
        for (uint32_t k = 0; k < r->spans[lane]; k++) {
            struct span *s = &r->span[lane][k];
            if (!elsewhere && s->met) s->bridged |= e->lanes;
            if (!own) continue;
            *(elsewhere ? &s->elsewhere : &s->fenced) = true;
            open_span(r, s->low, s->high);
        }
    }
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
    if (r->before & ~e->lanes) {
        sim_idiom(l->group, e->in, IDIOM_LANES_SPEAK);
        sim_find(
            l->group, e->warp, e->in, first_lane(e->lanes), SEV_WARNING, FIND_TMEM_WAIT, CAUSE_NONE,
            "",
            "arrives, but lane %u of this warp executed tcgen05.fence::before_thread_sync with no "
            "bar.warp.sync since: its loads and stores of tensor memory are not handed over. "
            "Cheapest remedy: bar.warp.sync between the fences and the arrival.",
            first_lane(r->before & ~e->lanes));
    }
    r->before = 0;
    on_sync(r, e->lanes);
}

void lanes_event(struct lanes *l, const struct event *e)
{
    struct lane_record *r = e->warp ? record_of(l, e->warp) : NULL;
    if (!r) return;
    switch (e->kind) {
    case EV_WARP_START:
        forget(l, e->warp);
        record_clear(r);
        break;
    case EV_ACCESS: on_access(l, r, e); break;
    case EV_ASYNC_ISSUE:
        r->token = e->token;
        r->issuers = e->lanes;
        if (releases(e->in)) publish(r, e->lanes);
        break;
    case EV_FENCE:
        if (e->value == FENCE_PROXY_ASYNC) on_fence(r, e);
        if (e->value == FENCE_MEMBAR || e->access == ACCESS_WRITE)
            publish(r, e->lanes); /* what follows may be a release */
        if (e->value == FENCE_TCGEN05_BEFORE) r->before |= e->lanes;
        break;
    case EV_WARP_SYNC: on_meet(r, e->lanes); break;
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
