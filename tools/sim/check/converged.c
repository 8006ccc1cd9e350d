/*
 * Order between lanes by convergence alone: converged.h. A few of the last accesses of each warp are kept, until
 * lanes meet. What orders lanes in a roundabout way (an mbarrier, an atomic) counts as a meeting of the lanes
 * that execute it, and accesses that are not kept any more are forgotten: this hides, and never invents.
 */
#include "check/converged.h"

#include "check/order_tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 8 }; /* accesses of a warp; as many reads besides */
enum { PLACE_BITS = 6, PLACES = 1 << PLACE_BITS };
enum { STEPPED_SETS = 4 };

struct lane_access {
    const struct insn *in;
    uint64_t low, high; /* all of it lies between */
    uint32_t lanes;
    bool over; /* all lanes know of it */
    bool told; /* some lanes have met since, and `knows` says what they know */
    /* Disjoint sets of lanes that have stood at one shuffle or vote since: that orders no memory,
     * but they have run together again. Where there are more sets, the last ones count. */
    uint32_t stepped[STEPPED_SETS];
    uint32_t
        knows[WARP_LANES + 1]; /* by lane: the lanes whose part of it has come to be known there;
                                       [WARP_LANES]: what has left the warp */
    uint32_t size;
    uint8_t space;
    uint8_t shape; /* enum span_shape */
    bool write;
    bool copy; /* by cp.async, lane by lane, in the warp's instruction `step` */
    uint64_t step;
    bool aligned;        /* to its size, a power of two */
    uint64_t ones, some; /* address bits that all its lanes have, and that any has */
    uint8_t from, bits;  /* the window of address bits that `distinct` is about; bits 0: none yet */
    bool distinct;       /* no two lanes have the same bits there */
    uint64_t address[WARP_LANES]; /* of SPAN_APART only */
};

struct ring {
    struct lane_access at[KEPT];
    uint32_t count, next;
};

struct converged {
    struct ring writes, reads;
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

static uint64_t address_of(const struct lane_access *a, uint32_t lane)
{
    if (a->shape == SPAN_APART) return a->address[lane];
    return a->shape == SPAN_ROW ? a->low + (uint64_t)lane * a->size : a->low;
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

static void keep(struct ring *r, const struct event *e, uint64_t low, uint64_t high,
                 const struct lane_places *p)
{
    struct lane_access *a = &r->at[r->next];
    r->next = (r->next + 1) % KEPT;
    if (r->count < KEPT) r->count++;
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
    a->copy = false;
    a->shape = (uint8_t)e->span->shape;
    a->aligned = e->span->aligned && (e->size & (e->size - 1)) == 0;
    a->ones = p->ones;
    a->some = p->some;
    a->bits = 0;
    if (a->shape == SPAN_APART) memcpy(a->address, e->addresses, sizeof a->address);
}

/* Each of the lanes now knows what any of them knew; `outside`: as does whoever else takes part. */
static void tell_lanes(struct lane_access *a, uint32_t lanes, uint32_t all, bool outside)
{
    uint32_t known = outside ? a->knows[WARP_LANES] : 0;
    for (uint32_t l = 0; !a->told && l < WARP_LANES; l++) a->knows[l] = 1U << l;
    if (!a->told) known = a->knows[WARP_LANES] = 0;
    a->told = true;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) known |= a->knows[first_lane(rest)];
    for (uint32_t rest = lanes; rest; rest &= rest - 1) a->knows[first_lane(rest)] = known;
    if (outside) a->knows[WARP_LANES] = known;
    known = all;
    for (uint32_t rest = all; rest; rest &= rest - 1) known &= a->knows[first_lane(rest)];
    a->over = known == all;
}

/* bar.warp.sync orders the lanes that it names. Whatever else they meet at may lead to the other lanes
 * too. Lanes that have exited come to no meeting, even where its mask names them: nothing says that
 * what they did is over. */
static void meet(struct ring *r, uint32_t lanes, uint32_t all, bool outside)
{
    bool over = true;
    if ((all & ~lanes) == 0) {
        r->count = r->next = 0;
        return;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        if (!r->at[i].over) tell_lanes(&r->at[i], lanes, all, outside);
        over &= r->at[i].over;
    }
    if (over) r->count = r->next = 0;
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
        const uint64_t first = address_of(a, other), last = first + a->size - 1;
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
        differ |= address_of(a, l) ^ e->addresses[l];
    }
    return differ;
}

/* No two lanes of `a` have the same bits [from, from + bits) of their addresses. */
static bool lanes_distinct(struct lane_access *a, uint32_t from, uint32_t bits)
{
    uint64_t seen = 0;
    if (a->bits == bits && a->from == from) return a->distinct;
    for (uint32_t rest = a->lanes; rest; rest &= rest - 1)
        seen |= 1ULL << (address_of(a, first_lane(rest)) >> from & ((1ULL << bits) - 1));
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
            const uint64_t at = address_of(a, other);
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
    if (e->space == SPACE_SHARED && a->write && !a->copy && !e->in->is.by_volatile) return;
    sim_find(o->group, e->warp, e->in, NO_LANE, SEV_WARNING, FIND_RACE, CAUSE_NONE, "",
             "%s bytes of %s memory that another lane of this warp %s at line %u, with no "
             "bar.warp.sync between. Lanes that run converged hide it. Cheapest remedy: "
             "bar.warp.sync between the two.",
             did(e->access & ACCESS_WRITE, false), e->space == SPACE_SHARED ? "shared" : "global",
             did(a->write, true), a->in->src->pos.line);
}

static void check(struct order *o, struct order_warp *w, struct ring *r, const struct event *e,
                  uint64_t low, uint64_t high, struct lane_places *p)
{
    for (uint32_t i = 0; i < r->count; i++) {
        struct lane_access *a = &r->at[i];
        uint32_t other;
        if (a->space != e->space || low >= a->high || high <= a->low) continue;
        if (a->write && e->access == ACCESS_WRITE && e->value) continue; /* what is there already */
        other = crossed(a, e, p);
        if (other == NO_LANE) continue;
        if (apart_from(a, e) >> other & 1)
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

static void on_access(struct order *o, struct order_warp *w, const struct event *e)
{
    struct converged *c = converged_of(o, w);
    struct lane_places places;
    const bool write = (e->access & ACCESS_WRITE) != 0;
    const uint64_t low = e->span->low, high = e->span->high + e->size;
    if (!c) return;
    if (e->access == ACCESS_WRITE) check_store(o, e);
    places.made = false;
    measure(&places, e);
    if (!(o->told_of[order_insn_index(o, e->in)] & TOLD_APART)) {
        check(o, w, &c->writes, e, low, high, &places);
        if (write) check(o, w, &c->reads, e, low, high, &places);
    }
    if (write)
        keep(&c->writes, e, low, high, &places);
    else
        keep(&c->reads, e, low, high, &places);
}

/*
 * A lane's cp.async. A wait for its groups says that lane's copies are complete, to that lane (PTX ISA
 * "cp.async.wait_group"): what tells the others is a bar.warp.sync behind it.
 */
static void on_copy(struct order *o, struct order_warp *w, const struct event *e)
{
    struct converged *c = converged_of(o, w);
    const uint32_t lane = first_lane(e->lanes);
    const uint64_t at = e->address & SHARED_OFFSET_MASK;
    struct lane_access *a;
    if (!c) return;
    a = &c->writes.at[(c->writes.next + KEPT - 1) % KEPT];
    if (!c->writes.count || !a->copy || a->in != e->in || a->step != w->warp->steps) {
        a = &c->writes.at[c->writes.next];
        c->writes.next = (c->writes.next + 1) % KEPT;
        if (c->writes.count < KEPT) c->writes.count++;
        *a = (struct lane_access){.in = e->in,
                                  .low = at,
                                  .size = (uint32_t)e->size,
                                  .space = SPACE_SHARED,
                                  .shape = SPAN_APART,
                                  .write = true,
                                  .copy = true,
                                  .step = w->warp->steps};
    }
    a->lanes |= 1U << lane;
    a->address[lane] = at;
    if (at < a->low) a->low = at;
    if (at + e->size > a->high) a->high = at + e->size;
}

/* A wait for groups tells other lanes nothing of copies. (What else they did may come to them in a roundabout way.) */
static void waited(struct ring *r, uint32_t lanes, uint32_t all)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (!r->at[i].copy && !r->at[i].over) tell_lanes(&r->at[i], lanes, all, true);
}

void converged_clear(struct converged *c)
{
    if (!c) return;
    c->writes.count = c->writes.next = 0;
    c->reads.count = c->reads.next = 0;
}

/* Another lane may get the same bytes: what was done to them is no matter any more. */
static void forget(struct ring *r, uint64_t low, uint64_t high)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->at[i].space == SPACE_GLOBAL && low < r->at[i].high && high > r->at[i].low)
            r->at[i].over = true;
}

/* Whether the ring has an access of lanes that have come apart from those that arrive now, in which none of the latter
 * took part and of which they have not heard: in another order it comes after the arrival. */
static bool left_behind(const struct ring *r, const struct event *e)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const struct lane_access *a = &r->at[i];
        if (a->over || a->space != SPACE_SHARED || a->lanes & e->lanes) continue;
        if (!(a->lanes & apart_from(a, e))) continue;
        if (!a->told || a->lanes & ~a->knows[first_lane(e->lanes)]) return true;
    }
    return false;
}

/* Some lanes arrive for the whole warp. */
static void arrives(struct order *o, const struct converged *c, const struct event *e)
{
    if (e->token || !e->in || !e->lanes) return;
    if (!left_behind(&c->reads, e) && !left_behind(&c->writes, e)) return;
    order_sampled(o, SAMPLED_LANES, e->in);
    sim_idiom(o->group, e->in, IDIOM_LANES_IN_STEP);
}

/* These lanes run together again, and with those that ran with any of them. */
static void step(struct ring *r, uint32_t lanes)
{
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t *sets = r->at[i].stepped, before[STEPPED_SETS], joined = lanes, kept = 1;
        if (!(lanes & ~sets[0])) continue;
        memcpy(before, sets, sizeof before);
        for (uint32_t n = 0; n < STEPPED_SETS; n++)
            if (before[n] & lanes) joined |= before[n];
        memset(sets, 0, sizeof before);
        sets[0] = joined;
        for (uint32_t n = 0; n < STEPPED_SETS && kept < STEPPED_SETS; n++)
            if (before[n] & ~joined) sets[kept++] = before[n];
    }
}

void converged_event(struct order *o, struct order_warp *w, const struct event *e)
{
    switch (e->kind) {
    case EV_ACCESS:
        if (e->token && e->in && e->in->is.engine == ENGINE_CP_ASYNC && !e->addresses &&
            e->space == SPACE_SHARED && e->access == ACCESS_WRITE && e->cta == e->warp->cta) {
            on_copy(o, w, e);
            return;
        }
        if (e->token || !e->addresses || e->tensor || !e->in) return;
        if (e->space != SPACE_SHARED && e->space != SPACE_GLOBAL) return;
        if ((!e->strong && !e->in->is.strong) || (e->in->is.by_volatile && !e->in->used)) {
            on_access(o, w, e);
            return;
        }
        break;
    case EV_HEAP_FREE:
        if (!w->converged) return;
        forget(&w->converged->writes, e->address, e->address + e->size);
        forget(&w->converged->reads, e->address, e->address + e->size);
        return;
    case EV_WARP_SYNC:
    case EV_BARRIER_ARRIVE:
    case EV_BARRIER_PASS:
    case EV_CLUSTER_ARRIVE:
    case EV_CLUSTER_PASS:
    case EV_MBAR_PASS: break;
    case EV_MBAR_ARRIVE:
        if (w->converged) arrives(o, w->converged, e);
        break;
    case EV_TOGETHER:
        if (!w->converged) return;
        step(&w->converged->writes, e->lanes);
        step(&w->converged->reads, e->lanes);
        return;
    case EV_GROUP_WAIT:
        if (!w->converged) return;
        waited(&w->converged->writes, e->lanes, e->warp->born);
        waited(&w->converged->reads, e->lanes, e->warp->born);
        return;
    default: return;
    }
    if (!w->converged) return;
    meet(&w->converged->writes, e->lanes, e->warp->born, e->kind != EV_WARP_SYNC);
    meet(&w->converged->reads, e->lanes, e->warp->born, e->kind != EV_WARP_SYNC);
}
