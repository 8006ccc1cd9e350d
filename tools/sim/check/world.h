/*
 * Synchronisation between the clusters of a launch: one shadow of global memory for all clusters,
 * and the flags through which they synchronise. A launch has a world only if its kernel can
 * synchronise through global memory (kernel->global_sync). Its clusters then run on one thread. In
 * other launches each cluster has its own shadow, and launch_memory.c compares the shadows at the
 * end.
 *
 * PTX ISA "Memory Consistency Model": two accesses of different clusters are ordered by causality
 * order alone. It is made of release and acquire patterns of .gpu or .sys scope on one location,
 * where the acquire observes the release, and of what orders the threads inside a cluster. The
 * order between two fence.sc is not modelled: it never orders accesses here.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "check/horizon.h"
#include "check/shadow.h"

/* A component (order.h) of a cluster that has accessed global memory. The cluster may have ended.
 * The epochs in the world's shadow name an actor's number as their component. */
struct actor {
    uint32_t cluster, component;
    uint32_t cta[3];
    uint8_t kind, warp;
    uint32_t
        described; /* up to which number a fence.proxy.tensormap of the release form covered it */
};

/* One of the last values of such a location, and what an acquire took over that read it. */
enum { PAST_KEPT = 32 };
struct world_past {
    uint64_t value;
    struct horizon *known, *bridged;
    bool open; /* by an atomic, which is announced before it works: the value is not known yet */
    uint32_t size, actor, number; /* who wrote it; actor 0: nobody */
    const struct insn *in;        /* by what; NULL: nobody */
};

/* order_lock.h: whether a location is a lock, and whether its last write gave that back, by which value. */
struct lock_state {
    bool locks, given_back;
    uint64_t free;
};

/* A location through which clusters synchronise, and the knowledge that an acquire of it takes
 * over. */
struct world_flag {
    uint64_t address;
    struct horizon *known, *bridged;
    const struct insn *lent; /* as order_flag.lent */
    uint32_t turn;   /* changes when a strong store, not an atomic, ends the release sequence */
    uint32_t writer; /* actor of the last such store */
    bool used;
    struct world_past *past; /* of write n (from 0): [n % PAST_KEPT]; NULL: none yet */
    uint64_t past_count;
    struct lock_state lock;
};

/* Whether an SM may hold an old copy of a line in its L1, for cells of GLOBAL_CELL bytes. */
enum { LINE_LOADED = 1 /* by a plain load */, LINE_STALE = 2 /* and written since */ };

struct world_lines {
    uint64_t number; /* address / GLOBAL_PAGE, plus 1; 0: unused */
    uint8_t line[PAGE_CELLS];
};

/* A cache of recent joins: many flags have the same history. */
enum { JOINS_KEPT = 256 };
struct world_join {
    struct horizon *a, *b, *both;
};

enum { OPEN_MOST = 32 /* one a lane */ };

struct world {
    struct shadow shadow;
    struct world_lines *lines; /* open addressing, at most half full */
    uint32_t line_slots, line_count;
    struct actor *actors; /* [0] unused */
    uint32_t actor_count, actor_capacity;
    struct world_flag *flags; /* open addressing, at most half full */
    uint32_t flag_slots, flag_count;
    uint64_t flag_low, flag_high; /* addresses of flags */
    struct world_open {
        uint64_t address;
        const void *at;
    } open[OPEN_MOST]; /* flags whose last record is open, and where they are */
    uint32_t open_count;
    bool blind; /* a flag was written in a way that leaves no record of its values */
    struct world_join joins[JOINS_KEPT];
    const struct insn *again; /* the last store of a flag that left it as it was; NULL: none */
};

/* NULL when memory is exhausted. The shadow uses at most `most` bytes. */
struct world *world_new(uint64_t most);
void world_free(struct world *w);

/* The actor's number. 0 when memory is exhausted or there are too many. */
uint32_t world_actor(struct world *w, struct actor a);
static inline const struct actor *world_actor_of(const struct world *w, epoch e)
{
    return &w->actors[epoch_component(e)];
}

/* The location's record. find: NULL when there is none yet; make: NULL when memory is exhausted. */
struct world_flag *world_flag_find(const struct world *w, uint64_t address);
struct world_flag *world_flag_make(struct world *w, uint64_t address);

/* The location has a new value; what acquires of it take over is what the record says. False: no memory. */
bool world_flag_past(struct world_flag *f, struct world_past now);
/* The atomics that were announced have worked: closes the records that they left open. */
void world_flags_close(struct world *w);

/* The lines of the page that holds the address. NULL when memory is exhausted. */
uint8_t *world_lines(struct world *w, uint64_t address);

/* horizon_join with a cache of recent joins. */
bool world_join(struct world *w, struct horizon **into, struct horizon *from);

/* Turns a stamp of the cluster into horizons that other clusters can take over; `bridged` is the
 * part that counts for global memory. False when memory is exhausted. */
bool world_post(uint32_t cluster, const struct stamp *s, struct horizon **known,
                struct horizon **bridged);
/* Joins the horizons to a stamp of the cluster. False when memory is exhausted. */
bool world_take(uint32_t cluster, struct stamp *s, struct horizon *known, struct horizon *bridged);

#endif
