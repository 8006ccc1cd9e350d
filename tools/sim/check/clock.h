/*
 * Vector clocks: who knows what of whom.
 *
 * A component is something that acts in program order: a warp, or what it set going and will not
 * wait for in between (enum component_kind, order.h). Its actions are numbered from 1. A clock says,
 * for each component, up to which number its actions are known to be over; joining two clocks is what
 * a release and the acquire that sees it do. An epoch is one action: the component, its number then,
 * and the instruction, for reports.
 *
 * Entries may claim too much (two actions may share a number, a prefix may be claimed where only part
 * of it is known), so that an error is missed; never too little, which would invent one.
 */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* component << 44 | number << 20 | instruction; 0: no action. */
typedef uint64_t epoch;

enum { EPOCH_INSN_BITS = 20, EPOCH_NUMBER_BITS = 24, EPOCH_COMPONENT_BITS = 20 };
#define EPOCH_INSN_MAX   ((1U << EPOCH_INSN_BITS) - 1)
#define EPOCH_NUMBER_MAX ((1U << EPOCH_NUMBER_BITS) - 1)
/* Components of a world (world.h) are 1 to this; the largest code of the field marks what is no epoch
 * (shadow.h). A cluster has fewer, for its clocks have an entry for each. */
#define COMPONENT_MAX ((1U << EPOCH_COMPONENT_BITS) - 2)
enum { CLUSTER_COMPONENTS_MAX = (1 << 14) - 2 };

static inline epoch epoch_make(uint32_t component, uint32_t number, uint32_t insn)
{
    return (uint64_t)component << (EPOCH_NUMBER_BITS + EPOCH_INSN_BITS) |
           (uint64_t)number << EPOCH_INSN_BITS | insn;
}
static inline uint32_t epoch_component(epoch e)
{
    return (uint32_t)(e >> (EPOCH_NUMBER_BITS + EPOCH_INSN_BITS));
}
static inline uint32_t epoch_number(epoch e)
{
    return (uint32_t)(e >> EPOCH_INSN_BITS) & EPOCH_NUMBER_MAX;
}
static inline uint32_t epoch_insn(epoch e)
{
    return (uint32_t)e & EPOCH_INSN_MAX;
}

/* Zeroed: knows nothing. Entries from `count` on are 0. */
struct clock {
    uint32_t *at;
    uint32_t count, capacity;
};

static inline uint32_t clock_get(const struct clock *c, uint32_t component)
{
    return component < c->count ? c->at[component] : 0;
}
/* The action is over as far as `c` goes. */
static inline bool clock_knows(const struct clock *c, epoch e)
{
    return clock_get(c, epoch_component(e)) >= epoch_number(e);
}

/* Those that may need memory return false when there is none; the clock then stays as it was. */
bool clock_raise(struct clock *c, uint32_t component, uint32_t number); /* entry := max */
bool clock_join(struct clock *into, const struct clock *from);          /* every entry := max */
/* The same with what both `a` and `b` know. */
bool clock_join_met(struct clock *into, const struct clock *a, const struct clock *b);
bool clock_copy(struct clock *to, const struct clock *from);
/* Everything that `b` knows, `a` knows. */
bool clock_covers(const struct clock *a, const struct clock *b);
static inline void clock_clear(struct clock *c)
{
    c->count = 0;
}
void clock_free(struct clock *c);

struct horizon;

/*
 * What a release hands over: `known`, and of that `bridged`, generic accesses that a proxy fence has
 * since made visible to the async proxy (PTX ISA "Async Proxy"). bridged is never ahead of known, nor known
 * of caused: what must have happened before, whether or not its accesses are visible. A copy's bytes, say,
 * come after all that its issuer came after, but show nothing of it.
 */
struct stamp {
    struct clock known, bridged, caused;
    /* What arrivals of .cta scope have handed to other CTAs: what was read is over, what was written may
     * not be there yet. */
    struct clock narrow;
    struct clock narrow_bridged; /* of that, what a proxy fence had covered */
    /* What fences of shared or of global memory alone made visible there, besides `bridged`. */
    struct clock bridged_shared, bridged_global;
    /* known and bridged of other clusters, of which global memory is all that matters (horizon.h). */
    struct horizon *abroad, *abroad_bridged;
    /* What a fence of .gpu scope has covered, by whichever thread: practice lets each thread fence what it
     * stored, then one thread raises the flag behind a barrier of the CTA; by the letter that one would have
     * to fence. */
    struct clock fenced;
    struct horizon *abroad_fenced;
    /* What relaxed reads have shown to be over, for a fence to acquire: likewise by whichever thread. Of that,
     * what atomics have shown (order_judge.c, judge_seen). */
    struct horizon *abroad_observed, *abroad_seen;
    /* What holders of a lock had fenced before they gave it back, where it was then taken without an acquire
     * (order_lock.c); the clusters' own accesses too. */
    struct horizon *locked;
};

bool stamp_raise(struct stamp *s, uint32_t component, uint32_t number);
/* The same without the bridge: an action of the generic proxy. */
bool stamp_raise_generic(struct stamp *s, uint32_t component, uint32_t number);
bool stamp_join(struct stamp *into, const struct stamp *from);
bool stamp_copy(struct stamp *to, const struct stamp *from);
/* A fence of .gpu scope covers what is known. */
bool stamp_fence(struct stamp *s);
/* Joins what was covered, as known. */
bool stamp_join_fenced(struct stamp *into, const struct stamp *from);
void stamp_clear(struct stamp *s);
void stamp_free(struct stamp *s);

#endif
