/*
 * What the clusters of a launch have to do with one another: one shadow of global memory for all of them,
 * and the flags by which they synchronise. Only kernels in which clusters can talk have a world
 * (kernel->global_sync); their clusters run on one thread. Others have a shadow for each cluster, which
 * launch_memory.c compares when all is over.
 *
 * PTX ISA "Memory Consistency Model": two accesses of different clusters are ordered only by causality, that
 * is by release and acquire patterns of .gpu or .sys scope on one location, of which the second observes
 * the first, and by what orders the threads of a cluster. Not followed: the order of fence.sc, which alone
 * never orders accesses here.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "check/horizon.h"
#include "check/shadow.h"

/* A component of some cluster that has touched global memory, alive or gone. Epochs of the world's shadow
 * have its number for their component. */
struct actor {
    uint32_t cluster, component;
    uint32_t cta[3];
    uint8_t kind, warp;
};

/* A location by which clusters synchronise, and what whoever reads it now may take over. */
struct world_flag {
    uint64_t address;
    struct horizon *known, *bridged;
    const struct insn *lent; /* as order_flag.lent */
    uint32_t turn;   /* changes when a plain strong store takes the place of what was handed over */
    uint32_t writer; /* actor of the last such store */
    bool used;
};

/* What is known of the copies that an SM may have of a line, by cells of GLOBAL_CELL bytes. */
enum { LINE_LOADED = 1 /* by a plain load */, LINE_STALE = 2 /* and written since */ };

struct world_lines {
    uint64_t number; /* address / GLOBAL_PAGE, plus 1; 0: unused */
    uint8_t line[PAGE_CELLS];
};

/* Joins that were made of late: many flags have one history. */
enum { JOINS_KEPT = 256 };
struct world_join {
    struct horizon *a, *b, *both;
};

struct world {
    struct shadow shadow;
    struct world_lines *lines; /* open addressing, at most half full */
    uint32_t line_slots, line_count;
    struct actor *actors; /* [0] unused */
    uint32_t actor_count, actor_capacity;
    struct world_flag *flags; /* open addressing, at most half full */
    uint32_t flag_slots, flag_count;
    struct world_join joins[JOINS_KEPT];
};

/* NULL: no memory. At most `most` bytes are used for the shadow. */
struct world *world_new(uint64_t most);
void world_free(struct world *w);

/* 0: no memory, or too many. */
uint32_t world_actor(struct world *w, struct actor a);
static inline const struct actor *world_actor_of(const struct world *w, epoch e)
{
    return &w->actors[epoch_component(e)];
}

/* The location's record; NULL: there is none yet, or no memory for it. */
struct world_flag *world_flag_find(const struct world *w, uint64_t address);
struct world_flag *world_flag_make(struct world *w, uint64_t address);

/* The lines of the page of that address; NULL: no memory. */
uint8_t *world_lines(struct world *w, uint64_t address);

/* horizon_join, cheap where the same was done before. */
bool world_join(struct world *w, struct horizon **into, struct horizon *from);

/* What a stamp of the cluster is to others: `bridged` as far as global memory goes. False: no memory. */
bool world_post(uint32_t cluster, const struct stamp *s, struct horizon **known,
                struct horizon **bridged);
/* Joins to a stamp of the cluster what is handed over to it. */
bool world_take(uint32_t cluster, struct stamp *s, struct horizon *known, struct horizon *bridged);

#endif
