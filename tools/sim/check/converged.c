/*
 * Order between lanes by convergence alone: converged.h. The last accesses of each warp are kept until
 * its lanes meet. Lanes may also learn of each other through other warps: one arrives at an mbarrier,
 * another waits. The code does not ask whether it is the same mbarrier, so it may miss a finding but
 * invents none. Of accesses for which there is no room, only the range of each lane's addresses is
 * kept; if another lane accesses that range, the verdict is sampled.
 */
#include "check/converged.h"

#include "check/converged_ring.h"
#include "check/order_tell.h"
#include "check/spoken.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE_BITS = 6, PLACES = 1 << PLACE_BITS };

struct converged {
    struct ring writes, reads;
    uint32_t groups[WARP_LANES]; /* of cp.async, that each lane has closed */
    uint64_t token;              /* the operation whose accesses are announced */
    uint32_t issuers;
    /* Lanes that arrive by one instruction, one after the other. */
    struct {
        const struct insn *in;
        const struct cta *cta; /* the mbarrier's, and its offset */
        uint64_t step;
        uint32_t key, lanes;
    } arrived;
};

/* Which lanes of an access have bytes whose address hashes to a place: most pairs of lanes need not be compared. */
struct lane_places {
    bool made;
    uint64_t ones, some; /* as of lane_access */
    uint32_t grain;      /* an address without its lowest bits is hashed: as many as the size has */
    uint32_t lanes[PLACES];
};

static struct converged *converged_of(struct order *o, struct order_warp *w)
{
    if (!w->converged) w->converged = calloc(1, sizeof *w->converged);
    order_keep(o, w->converged != NULL);
    return w->converged;
}

/* The address bits that all the lanes of an access have, and those that any has. */
static void measure(struct lane_places *p, const struct event *e)
{
    uint64_t ones = UINT64_MAX, some = 0;
    if (e->lanes == FULL_MASK) {
        for (uint32_t l = 0; l < WARP_LANES; l++) {
            ones &= e->addresses[l];
            some |= e->addresses[l];
        }
    } else {
        for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
            ones &= e->addresses[first_lane(rest)];
            some |= e->addresses[first_lane(rest)];
        }
    }
    p->ones = ones;
    p->some = some;
}

static void keep(struct order *o, struct ring *r, const struct event *e, uint64_t low,
                 uint64_t high, const struct lane_places *p)
{
    struct lane_access *a = ring_next(o, r);
    if (!a) return;
    a->in = e->in;
    a->low = low;
    a->high = high;
    a->lanes = e->lanes;
    a->over = a->told = false;
    memset(a->stepped, 0, sizeof a->stepped);
    a->stepped[0] = e->lanes; /* they run together here */
    a->size = (uint32_t)e->size;
    a->space = e->space;
    a->write = (e->access & ACCESS_WRITE) != 0;
    a->copy = a->init = false;
    a->strong = event_is_strong(e);
    a->marked = event_is_marked(e);
    a->shape = (uint8_t)e->span->shape;
    a->aligned = e->span->aligned && (e->size & (e->size - 1)) == 0;
    a->ones = p->ones;
    a->some = p->some;
    a->bits = 0;
    if (a->shape == SPAN_APART) memcpy(a->address, e->addresses, sizeof a->address);
}

static void each_lane(struct converged *c, const struct event *e, int ways)
{
    if (!c) return;
    ring_each(&c->writes, e->lanes, e->warp->born, ways);
    ring_each(&c->reads, e->lanes, e->warp->born, ways);
}

static uint32_t *place_of(struct lane_places *p, uint64_t grain)
{
    return &p->lanes[grain * 0x9E3779B97F4A7C15ULL >> (64 - PLACE_BITS)];
}

static void make_places(struct lane_places *p, const struct event *e)
{
    memset(p->lanes, 0, sizeof p->lanes);
    p->grain = 0;
    while (2ULL << p->grain <= e->size) p->grain++;
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        const uint64_t first = e->addresses[lane], last = first + e->size - 1;
        for (uint64_t g = first >> p->grain; g <= last >> p->grain; g++)
            *place_of(p, g) |= 1U << lane;
    }
    p->made = true;
}

/* near[lane of e]: the lanes of `a` that may have some of its bytes; true if any may but the lane itself. */
static bool lanes_near(struct lane_places *p, const struct lane_access *a, const struct event *e,
                       uint32_t near[WARP_LANES])
{
    bool any = false;
    if (!p->made) make_places(p, e);
    memset(near, 0, WARP_LANES * sizeof *near);
    for (uint32_t rest = a->lanes; rest; rest &= rest - 1) {
        const uint32_t other = first_lane(rest);
        const uint64_t first = lane_address(a, other), last = first + a->size - 1;
        uint32_t lanes = 0;
        for (uint64_t g = first >> p->grain; g <= last >> p->grain; g++) lanes |= *place_of(p, g);
        lanes &= ~(1U << other);
        any |= lanes != 0;
        for (; lanes; lanes &= lanes - 1) near[first_lane(lanes)] |= 1U << other;
    }
    return any;
}

/* The address bits in which some lane of `e` differs from the same lane of `a`. */
static uint64_t lanes_differ(const struct lane_access *a, const struct event *e)
{
    uint64_t differ = 0;
    if (e->lanes == FULL_MASK && a->shape == SPAN_APART) {
        for (uint32_t l = 0; l < WARP_LANES; l++) differ |= a->address[l] ^ e->addresses[l];
        return differ;
    }
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
        const uint32_t l = first_lane(rest);
        differ |= lane_address(a, l) ^ e->addresses[l];
    }
    return differ;
}

/* No two lanes of `a` have the same bits [from, from + bits) of their addresses. */
static bool lanes_distinct(struct lane_access *a, uint32_t from, uint32_t bits)
{
    uint64_t seen = 0;
    if (a->bits == bits && a->from == from) return a->distinct;
    for (uint32_t rest = a->lanes; rest; rest &= rest - 1)
        seen |= 1ULL << (lane_address(a, first_lane(rest)) >> from & ((1ULL << bits) - 1));
    a->from = (uint8_t)from;
    a->bits = (uint8_t)bits;
    a->distinct = __builtin_popcountll(seen) == __builtin_popcount(a->lanes);
    return a->distinct;
}

/*
 * Quick answers for the two most frequent patterns: an address bit tells all bytes of one access from all of the other;
 * or a few address bits tell the lanes apart, and each lane has them alike in both. An access is aligned to its
 * size, so its bytes have the higher bits of its address. True: no lane has bytes of another one.
 */
static bool lanes_apart(struct lane_access *a, const struct event *e, const struct lane_places *p)
{
    const uint64_t size = a->size > e->size ? a->size : e->size, rest = ~(size - 1);
    const uint64_t vary = a->some & ~a->ones & rest;
    uint32_t from, limit, bits;
    uint64_t differ;
    if (!a->aligned || !e->span->aligned || (size & (size - 1)) != 0) return false;
    if (((p->ones & ~a->some) | (a->ones & ~p->some)) & rest) return true;
    if (!vary || (e->lanes & ~a->lanes)) return false;
    differ = lanes_differ(a, e) & rest;
    from = (uint32_t)__builtin_ctzll(vary);
    limit = differ ? (uint32_t)__builtin_ctzll(differ) : 64;
    if (limit <= from) return false;
    bits = limit - from < PLACE_BITS ? limit - from : PLACE_BITS;
    return lanes_distinct(a, from, bits);
}

/* Lanes that have come apart from those of `e`, and have not run with them since that access. */
static uint32_t apart_from(const struct lane_access *a, const struct event *e)
{
    const uint32_t apart = e->warp->live & ~warp_frag(e->warp)->mask;
    for (uint32_t i = 0; i < STEPPED_SETS; i++)
        if (!(e->lanes & ~a->stepped[i])) return apart & ~a->stepped[i];
    return apart;
}

/* A lane whose bytes of the earlier access another lane now has, and the two have not met since: one that has come
 * apart from the fragment rather than one of it; NO_LANE. */
static uint32_t crossed(struct lane_access *a, const struct event *e, struct lane_places *p)
{
    const uint32_t apart = apart_from(a, e);
    uint32_t found = NO_LANE, near[WARP_LANES];
    /* A row upon the same row: each lane has its own bytes again. */
    if (a->shape == SPAN_ROW && e->span->shape == SPAN_ROW && a->low == e->span->low &&
        a->size == e->size)
        return NO_LANE;
    if (a->over || lanes_apart(a, e, p)) return NO_LANE;
    if (!lanes_near(p, a, e, near)) return NO_LANE;
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        const uint64_t low = e->addresses[lane], high = low + e->size;
        uint32_t others = near[lane];
        if (low >= a->high || high <= a->low) continue;
        if (a->told) others &= ~a->knows[lane];
        for (; others; others &= others - 1) {
            const uint32_t other = first_lane(others);
            const uint64_t at = lane_address(a, other);
            if (at >= high || low >= at + a->size) continue;
            if (apart >> other & 1) return other;
            found = other;
        }
    }
    return found;
}

static const char *did(bool write, bool past)
{
    return write ? past ? "wrote" : "writes" : past ? "read" : "reads";
}

/* Nothing orders lanes that have come apart, on any hardware. */
static void tell_apart(struct order *o, struct order_warp *w, const struct event *e,
                       const struct lane_access *a, uint32_t other)
{
    char message[400];
    uint8_t *told = &o->told_of[order_insn_index(o, e->in)];
    if (*told & TOLD_APART) return;
    *told |= TOLD_APART | TOLD_IN_STEP;
    if (a->init) {
        (void)snprintf(message, sizeof message,
                       "uses an mbarrier that lane %u of this warp initialised at line %u. The two "
                       "have come apart at a branch and have not met since: which of them is first "
                       "is open. Cheapest remedy: bar.warp.sync by both, between the two.",
                       other, a->in->src->pos.line);
        tell_alone(w, e->in, NO_LANE, FIND_MBARRIER_INIT_ORDER, "", message, a->in,
                   "the barrier is initialised here");
        return;
    }
    (void)snprintf(message, sizeof message,
                   "%s bytes of %s memory that lane %u of this warp %s at line %u. The two have "
                   "come apart at a branch and have not met since: which of them is first is open. "
                   "Cheapest remedy: bar.warp.sync by both, between the two.",
                   did(e->access & ACCESS_WRITE, false),
                   e->space == SPACE_SHARED ? "shared" : "global", other, did(a->write, true),
                   a->in->src->pos.line);
    tell_alone(w, e->in, NO_LANE, FIND_RACE, "", message, a->in, "the other access");
}

static void tell_in_step(struct order *o, const struct event *e, const struct lane_access *a)
{
    uint8_t *told = &o->told_of[order_insn_index(o, e->in)];
    if (*told & TOLD_IN_STEP) return;
    *told |= TOLD_IN_STEP;
    order_sampled(o, SAMPLED_LANES, e->in);
    sim_idiom(o->group, e->in, IDIOM_LANES_IN_STEP);
    /* Of shared memory, what another lane stored before: order_lanes.c. */
    if (o->level < 2) return;
    if (a->init) {
        sim_find(o->group, e->warp, e->in, NO_LANE, SEV_WARNING, FIND_MBARRIER_INIT_ORDER,
                 CAUSE_NONE, "",
                 "uses an mbarrier that another lane of this warp initialised at line %u, with no "
                 "bar.warp.sync between. Lanes that run converged hide it. Cheapest remedy: "
                 "bar.warp.sync between the two.",
                 a->in->src->pos.line);
        return;
    }
    if (e->space == SPACE_SHARED && a->write && !a->copy && !e->in->is.by_volatile &&
        !(e->token && e->proxy == PROXY_GENERIC))
        return;
    sim_find(o->group, e->warp, e->in, NO_LANE, SEV_WARNING, FIND_RACE, CAUSE_NONE, "",
             "%s bytes of %s memory that another lane of this warp %s at line %u, with no "
             "bar.warp.sync between. Lanes that run converged hide it. Cheapest remedy: "
             "bar.warp.sync between the two.",
             did(e->access & ACCESS_WRITE, false), e->space == SPACE_SHARED ? "shared" : "global",
             did(a->write, true), a->in->src->pos.line);
}

/* Whether a lane has bytes that lie among those of another lane's accesses that were lost. */
static bool among_lost(const struct lost *l, const struct event *e)
{
    const int where = e->space == SPACE_GLOBAL;
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        for (uint32_t other = l->lanes[where] & ~(1U << lane); other; other &= other - 1) {
            const uint32_t n = first_lane(other);
            if (e->addresses[lane] < l->high[where][n] &&
                l->low[where][n] < e->addresses[lane] + e->size)
                return true;
        }
    }
    return false;
}

static void check(struct order *o, struct order_warp *w, struct ring *r, const struct event *e,
                  uint64_t low, uint64_t high, struct lane_places *p)
{
    const bool strong = e->kind == EV_ACCESS && event_is_strong(e);
    const bool marked = e->kind == EV_ACCESS && event_is_marked(e);
    for (int i = 0; i < 2 - strong; i++)
        if (r->lost[i] && r->lost[i]->lanes[e->space == SPACE_GLOBAL] && among_lost(r->lost[i], e))
            order_sampled(o, SAMPLED_LANES, e->in);
    for (uint32_t i = 0; i < r->count; i++) {
        struct lane_access *a = &r->at[i];
        uint32_t other;
        if (a->copy && a->in == e->in && a->step == w->warp->steps) continue; /* being issued */
        if (a->init && e->kind == EV_ACCESS) continue; /* of what is no barrier any more */
        if (a->space != e->space || low >= a->high || high <= a->low) continue;
        if (a->write && e->access == ACCESS_WRITE && e->value) continue; /* what is there already */
        if ((a->strong && marked) || (a->marked && strong)) continue;
        other = crossed(a, e, p);
        if (other == NO_LANE) continue;
        if (apart_from(a, e) >> other & 1 && !(e->kind == EV_MBAR_ARRIVE && e->token))
            tell_apart(o, w, e, a, other);
        else
            tell_in_step(o, e, a);
    }
}

/* ---- lanes of one store ---- */

static bool same_values(const struct event *e, uint32_t one, uint32_t other)
{
    for (uint32_t i = 0; i < e->in->list_count; i++)
        if (arg_lane(e->warp, e->in->list[i], one) != arg_lane(e->warp, e->in->list[i], other))
            return false;
    return true;
}

/* A lane that stores another value to the place of an earlier lane; NO_LANE: there is none. */
static uint32_t colliding(const struct event *e, uint32_t *with)
{
    uint32_t places[PLACES] = {0};
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        const uint64_t address = e->span->shape == SPAN_ONE ? e->span->low : e->addresses[lane];
        uint32_t *place = &places[address * 0x9E3779B97F4A7C15ULL >> (64 - PLACE_BITS)];
        for (uint32_t others = *place; others; others &= others - 1) {
            const uint32_t other = first_lane(others);
            if (e->span->shape != SPAN_ONE && e->addresses[other] != address) continue;
            *with = other;
            if (!same_values(e, lane, other)) return lane;
        }
        *place |= 1U << lane;
    }
    return NO_LANE;
}

/* PTX ISA "st" does not say which lane's value stays, and nothing can order them. */
static void check_store(struct order *o, const struct event *e)
{
    uint8_t *told = &o->told_of[order_insn_index(o, e->in)];
    uint32_t lane, with = 0;
    if (e->span->shape == SPAN_ROW || *told & TOLD_COLLIDE || e->in->is.class != INSN_STORE) return;
    lane = colliding(e, &with);
    if (lane == NO_LANE) return;
    *told |= TOLD_COLLIDE;
    order_sampled(o, SAMPLED_COLLIDE, e->in);
    if (o->level < 2) return;
    sim_find(
        o->group, e->warp, e->in, lane, SEV_WARNING, FIND_RACE, CAUSE_NONE, "",
        "lanes %u and %u store different values to one place of %s memory: which of them stays is "
        "open. Cheapest remedy: one lane stores, or an atomic.",
        with, lane, e->space == SPACE_SHARED ? "shared" : "global");
}

/* A poll, or a counter: kept once, as it is now. */
static bool again(struct ring *r, const struct event *e)
{
    const bool one = (e->lanes & (e->lanes - 1)) == 0;
    for (uint32_t i = 0; i < r->count; i++) {
        struct lane_access *a = &r->at[i];
        if (a->in != e->in || a->lanes != e->lanes || a->low != e->span->low || a->over) continue;
        if (!one && (a->shape == SPAN_APART || a->shape != e->span->shape)) continue;
        if (!a->told) return true;
    }
    return false;
}

static void on_access(struct order *o, struct order_warp *w, const struct event *e)
{
    struct converged *c = converged_of(o, w);
    struct lane_places places;
    const bool write = (e->access & ACCESS_WRITE) != 0;
    const uint64_t low = e->span->low, high = e->span->high + e->size;
    if (!c) return;
    if (e->access == ACCESS_WRITE && !event_is_strong(e)) check_store(o, e);
    if (event_is_strong(e) && again(write ? &c->writes : &c->reads, e)) return;
    places.made = false;
    measure(&places, e);
    if (!(o->told_of[order_insn_index(o, e->in)] & TOLD_APART)) {
        check(o, w, &c->writes, e, low, high, &places);
        if (write) check(o, w, &c->reads, e, low, high, &places);
    }
    keep(o, write ? &c->writes : &c->reads, e, low, high, &places);
}

/* ---- what one lane does: a copy, an operation, something with an mbarrier ---- */

/*
 * Bytes [low, low + size) of `like`'s space, by one lane. An asynchronous operation that a lane sets going comes after
 * what that lane has done, and knows no more of the others than an access of its own.
 */
static void check_range(struct order *o, struct order_warp *w, const struct event *like,
                        uint32_t lane, uint64_t low, uint64_t size)
{
    struct converged *c = w->converged;
    uint64_t addresses[WARP_LANES];
    const struct lane_span span = {.low = low, .high = low, .shape = SPAN_APART};
    struct event e = *like;
    struct lane_places places;
    if (o->told_of[order_insn_index(o, e.in)] & TOLD_APART) return;
    e.lanes = 1U << lane;
    e.address = 0;
    addresses[lane] = low;
    e.addresses = addresses;
    e.span = &span;
    e.size = size;
    e.value = 0;
    places.made = false;
    places.ones = places.some = low;
    check(o, w, &c->writes, &e, low, low + size, &places);
    if (e.access & ACCESS_WRITE) check(o, w, &c->reads, &e, low, low + size, &places);
}

/* The record of an instruction that lanes execute one by one; a new one for the first of them. */
static struct lane_access *lane_by_lane(struct order *o, struct order_warp *w,
                                        const struct event *e)
{
    struct ring *r = &w->converged->writes;
    struct lane_access *a;
    if (r->count) {
        a = &r->at[(r->next + r->capacity - 1) % r->capacity];
        if ((a->copy || a->init) && a->in == e->in && a->step == w->warp->steps) return a;
    }
    a = ring_next(o, r);
    if (!a) return NULL;
    *a = (struct lane_access){.in = e->in,
                              .low = UINT64_MAX,
                              .space = SPACE_SHARED,
                              .shape = SPAN_APART,
                              .write = true,
                              .step = w->warp->steps};
    return a;
}

static void add_lane(struct lane_access *a, uint32_t lane, uint64_t at, uint32_t size)
{
    a->size = size;
    a->lanes |= 1U << lane;
    a->stepped[0] |= 1U << lane;
    a->address[lane] = at;
    if (at < a->low) a->low = at;
    if (at + size > a->high) a->high = at + size;
}

/*
 * A lane's cp.async. A wait for its groups says that lane's copies are complete, to that lane (PTX ISA
 * "cp.async.wait_group"): what tells the others is a bar.warp.sync behind it.
 */
static void on_copy(struct order *o, struct order_warp *w, const struct event *e)
{
    const uint32_t lane = first_lane(e->lanes);
    const uint64_t at = e->address & SHARED_OFFSET_MASK;
    struct lane_access *a;
    check_range(o, w, e, lane, at, e->size);
    a = lane_by_lane(o, w, e);
    if (!a) return;
    a->copy = true;
    a->group[lane] = w->converged->groups[lane];
    add_lane(a, lane, at, (uint32_t)e->size);
}

/* PTX ISA "cp.async.commit_group": groups are a thread's. */
static void on_copy_group(struct order_warp *w, const struct event *e)
{
    struct converged *c = w->converged;
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        if (e->kind == EV_GROUP_COMMIT) c->groups[lane]++;
        for (uint32_t i = 0; i < c->writes.count && e->kind == EV_GROUP_WAIT; i++) {
            struct lane_access *a = &c->writes.at[i];
            if (!a->copy || !(a->lanes >> lane & 1)) continue;
            if (e->in->is.waits == WAITS_ISSUED || a->group[lane] + e->value < c->groups[lane])
                a->waited |= 1U << lane;
        }
    }
}

/* cp.async.mbarrier.arrive: the phase tells of the lane's copies so far. */
static void copies_told_of(struct converged *c, uint32_t lanes)
{
    for (uint32_t i = 0; i < c->writes.count; i++)
        if (c->writes.at[i].copy) c->writes.at[i].told_of |= lanes;
}

/* What an operation of some lanes reads and writes. A product of the whole warp has a fence that says what comes before. */
static void on_operation(struct order *o, struct order_warp *w, const struct event *e)
{
    struct converged *c = converged_of(o, w);
    uint32_t lane;
    if (!c || c->token != e->token || c->issuers == w->warp->live || e->tensor) return;
    if (e->space == SPACE_SHARED ? e->cta != w->warp->cta : e->space != SPACE_GLOBAL) return;
    lane = first_lane(c->issuers);
    if (e->in->is.engine == ENGINE_CP_ASYNC && e->space == SPACE_SHARED) {
        on_copy(o, w, e);
    } else if (!e->addresses) {
        check_range(o, w, e, lane,
                    e->space == SPACE_SHARED ? e->address & SHARED_OFFSET_MASK : e->address,
                    e->size);
    } else if (c->writes.count || (e->access & ACCESS_WRITE && c->reads.count)) {
        for (uint32_t rest = e->lanes; rest; rest &= rest - 1) /* as many ranges, not lanes */
            check_range(o, w, e, lane, e->addresses[first_lane(rest)], e->size);
    }
}

/* An mbarrier that a lane of this warp has made or is about to use. */
static void on_barrier_word(struct order *o, struct order_warp *w, const struct event *e)
{
    struct converged *c = w->converged;
    struct event use = *e;
    bool made = false;
    if (e->cta != w->warp->cta || !e->in) return;
    use.space = SPACE_SHARED;
    use.access = ACCESS_READ;
    use.addresses = NULL;
    if (e->kind == EV_MBAR_INIT) {
        struct lane_access *a = converged_of(o, w) ? lane_by_lane(o, w, e) : NULL;
        if (!a) return;
        a->init = true;
        add_lane(a, first_lane(e->lanes), e->key, 8);
        return;
    }
    for (uint32_t i = 0; c && i < c->writes.count; i++) made |= c->writes.at[i].init;
    for (uint32_t rest = made ? e->lanes : 0; rest; rest &= rest - 1)
        check_range(o, w, &use, first_lane(rest), e->key, 8);
}

void converged_clear(struct converged *c)
{
    if (!c) return;
    ring_clear(&c->writes, true);
    ring_clear(&c->reads, true);
    memset(c->groups, 0, sizeof c->groups);
    c->arrived.lanes = 0;
}

void converged_free(struct converged *c)
{
    if (!c) return;
    ring_free(&c->writes);
    ring_free(&c->reads);
    free(c);
}

/* Whether the ring has an access of lanes that have come apart from those that arrive now, in which none of the latter
 * took part and of which they have not heard: in another order it comes after the arrival. */
static bool left_behind(const struct ring *r, const struct event *e)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const struct lane_access *a = &r->at[i];
        if (a->over || a->init || a->space != SPACE_SHARED || a->lanes & e->lanes) continue;
        if (!(a->lanes & apart_from(a, e))) continue;
        if (!a->told || a->lanes & ~a->knows[first_lane(e->lanes)]) return true;
    }
    return false;
}

/* Bytes of lanes that have not arrived, of which those that have do not know. */
static struct spoken_span span_of(const struct lane_access *a, uint32_t lanes)
{
    struct spoken_span s = {
        .low = UINT64_MAX, .write = a->write, .global = a->space == SPACE_GLOBAL};
    uint32_t others = a->lanes & ~lanes;
    if (a->copy) others &= a->waited; /* else the arrival tells nothing of them */
    for (uint32_t rest = a->told ? lanes : 0; rest; rest &= rest - 1)
        others &= ~a->knows[first_lane(rest)];
    for (; others; others &= others - 1) {
        const uint64_t at = lane_address(a, first_lane(others));
        if (at < s.low) s.low = at;
        if (at + a->size > s.high) s.high = at + a->size;
    }
    return s;
}

static void speak(struct order *o, struct order_warp *w, const struct ring *r, uint32_t lanes,
                  const struct insn *in)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const struct lane_access *a = &r->at[i];
        struct spoken_span s;
        if (a->over || a->init) continue;
        s = span_of(a, lanes);
        if (s.low < s.high) spoken_add(o, w, in, s);
    }
    for (int i = 0; i < 4; i++) {
        const struct lost *l = r->lost[i & 1];
        const int where = i >> 1;
        for (uint32_t rest = l ? l->lanes[where] & ~lanes : 0; rest; rest &= rest - 1) {
            const uint32_t lane = first_lane(rest);
            spoken_add(o, w, in,
                       (struct spoken_span){.low = l->low[where][lane],
                                            .high = l->high[where][lane],
                                            .write = r == &w->converged->writes,
                                            .global = where == 1});
        }
    }
}

/* The lanes that have arrived are all that do by that instruction. */
static void arrived(struct order *o, struct order_warp *w)
{
    struct converged *c = w->converged;
    w->cta->cluster->speaker = NULL;
    if (!c || !c->arrived.lanes) return;
    speak(o, w, &c->reads, c->arrived.lanes, c->arrived.in);
    speak(o, w, &c->writes, c->arrived.lanes, c->arrived.in);
    c->arrived.lanes = 0;
}

/* What another warp does comes after the whole instruction, though the warp that arrived may sleep behind it. */
static void end_arrival(struct order *o, const struct order_warp *w)
{
    struct order_warp *s = w->cta->cluster->speaker;
    if (s && (s != w || s->converged->arrived.step != w->warp->steps)) arrived(o, s);
}

static void note_arrival(struct order *o, struct order_warp *w, const struct event *e)
{
    struct converged *c = w->converged;
    if (e->token || !e->in) return;
    if (c->arrived.lanes && (c->arrived.key != e->key || c->arrived.cta != e->cta)) arrived(o, w);
    c->arrived.in = e->in;
    c->arrived.cta = e->cta;
    c->arrived.step = w->warp->steps;
    c->arrived.key = e->key;
    c->arrived.lanes |= e->lanes;
    w->cta->cluster->speaker = w;
}

/* Some lanes arrive for the whole warp. */
static void arrives(struct order *o, const struct converged *c, const struct event *e)
{
    if (e->token || !e->in || !e->lanes) return;
    if (!left_behind(&c->reads, e) && !left_behind(&c->writes, e)) return;
    order_sampled(o, SAMPLED_LANES, e->in);
    sim_idiom(o->group, e->in, IDIOM_LANES_IN_STEP);
}

static int ways_of(const struct event *e)
{
    switch (e->kind) {
    case EV_WARP_SYNC: return 0;
    case EV_BARRIER_ARRIVE:
    case EV_CLUSTER_ARRIVE:
    case EV_MBAR_ARRIVE: return GIVES;
    case EV_BARRIER_PASS:
    case EV_CLUSTER_PASS: return TAKES;
    default: return GIVES | TAKES;
    }
}

static void on_any_access(struct order *o, struct order_warp *w, const struct event *e)
{
    spoken_access(o, w, e);
    if (e->token && e->in) on_operation(o, w, e);
    if (e->token || !e->addresses || e->tensor || !e->in) return;
    if (e->space != SPACE_SHARED && e->space != SPACE_GLOBAL) return;
    on_access(o, w, e);
    if (!event_is_strong(e)) return;
    /* PTX ISA "red": relaxed, and nothing comes back. */
    each_lane(w->converged, e,
              (e->access & ACCESS_WRITE ? GIVES : 0) |
                  (e->access & ACCESS_READ && e->in->is.class != INSN_RED ? TAKES : 0));
}

static void on_issue(struct order *o, struct order_warp *w, const struct event *e)
{
    if (!converged_of(o, w)) return;
    if (e->in && e->in->is.class == INSN_COMMIT && e->in->is.engine != ENGINE_TENSOR)
        copies_told_of(w->converged, e->lanes);
    w->converged->token = e->token;
    w->converged->issuers = e->lanes;
}

void converged_event(struct order *o, struct order_warp *w, const struct event *e)
{
    end_arrival(o, w);
    switch (e->kind) {
    case EV_ACCESS: on_any_access(o, w, e); return;
    case EV_HEAP_FREE:
        if (!w->converged) return;
        ring_forget(&w->converged->writes, e->address, e->address + e->size);
        ring_forget(&w->converged->reads, e->address, e->address + e->size);
        return;
    case EV_GROUP_COMMIT:
    case EV_GROUP_WAIT:
        if (w->converged && e->key == COMMIT_CP_ASYNC) on_copy_group(w, e);
        return;
    case EV_ASYNC_ISSUE: on_issue(o, w, e); return;
    case EV_MBAR_INIT:
    case EV_MBAR_INVAL:
    case EV_MBAR_EXPECT:
    case EV_MBAR_FALSE:
    case EV_ASYNC_BAR: on_barrier_word(o, w, e); return;
    case EV_WARP_SYNC:
    case EV_BARRIER_ARRIVE:
    case EV_BARRIER_PASS:
    case EV_CLUSTER_ARRIVE:
    case EV_CLUSTER_PASS: break;
    case EV_MBAR_PASS:
        on_barrier_word(o, w, e);
        each_lane(w->converged, e, TAKES);
        return;
    case EV_MBAR_ARRIVE:
        on_barrier_word(o, w, e);
        if (!w->converged) return;
        arrives(o, w->converged, e);
        note_arrival(o, w, e);
        break;
    case EV_TOGETHER:
        if (!w->converged) return;
        ring_step(&w->converged->writes, e->lanes);
        ring_step(&w->converged->reads, e->lanes);
        return;
    default: return;
    }
    if (!w->converged) return;
    if ((e->warp->born & ~e->lanes) == 0) spoken_met(w);
    ring_meet(&w->converged->writes, e->lanes, e->warp->born, ways_of(e));
    ring_meet(&w->converged->reads, e->lanes, e->warp->born, ways_of(e));
}
