/*
 * Accesses of a warp's lanes that are not yet ordered before all other lanes of the warp: converged.c.
 * A lane "knows" of an access that comes before what the lane does next. Writes are in one ring,
 * reads in another.
 */
#ifndef SIM_CONVERGED_RING_H
#define SIM_CONVERGED_RING_H

#include "check/order.h"

enum { KEPT_FIRST = 8, KEPT_MOST = 64 }; /* writes of a warp; as many reads besides */
enum { STEPPED_SETS = 4 };

struct lane_access {
    const struct insn *in;
    uint64_t low, high; /* all its bytes are in [low, high) */
    uint32_t lanes;
    bool over; /* all lanes know of it */
    bool told; /* some lanes have met since; `knows` says which know of which part */
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
    bool copy;           /* by cp.async, lane by lane, in the warp's instruction `step` */
    bool init;           /* mbarrier.init, likewise */
    bool strong, marked; /* marked: strong, or a volatile access whose value is unused */
    uint64_t step;
    /* Copies: how many groups each lane had closed before; the lanes that have waited for their
     * copies, and those whose copies an mbarrier reports. */
    uint32_t group[WARP_LANES];
    uint32_t waited, told_of;
    bool aligned;        /* to its size, a power of two */
    uint64_t ones, some; /* address bits that all its lanes have, and that any has */
    uint8_t from, bits;  /* the window of address bits that `distinct` is about; bits 0: none yet */
    bool distinct;       /* no two lanes have the same bits there */
    uint64_t address[WARP_LANES]; /* of SPAN_APART only */
};

/* Accesses for which there was no room, in shared [0] and global [1] memory. */
struct lost {
    uint32_t lanes[2];
    uint64_t low[2][WARP_LANES], high[2][WARP_LANES];
};

struct ring {
    struct lane_access *at;
    uint32_t count, next, capacity;
    struct lost *lost[2]; /* weak accesses and strong ones; NULL: none was ever lost */
};

/* How a meeting of lanes involves other warps: an arrival gives, a wait takes, an atomic may do both. */
enum { GIVES = 1, TAKES = 2 };

bool event_is_strong(const struct event *e);
bool event_is_marked(const struct event *e);
uint64_t lane_address(const struct lane_access *a, uint32_t lane);
bool access_in_flight(const struct lane_access *a);

/* A place for one more access; NULL: no memory. */
struct lane_access *ring_next(struct order *o, struct ring *r);
void ring_free(struct ring *r);
void ring_clear(struct ring *r, bool really);
/* Lanes exchange knowledge with other warps as `ways` says; in ring_meet also with each other, in
 * ring_each each by itself. `all`: the lanes of the warp. */
void ring_meet(struct ring *r, uint32_t lanes, uint32_t all, int ways);
void ring_each(struct ring *r, uint32_t lanes, uint32_t all, int ways);
/* These lanes run together again. */
void ring_step(struct ring *r, uint32_t lanes);
/* This range of global memory was freed. */
void ring_forget(struct ring *r, uint64_t low, uint64_t high);

#endif
