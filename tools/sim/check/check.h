/* The checker, as a launch has it. */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#include "check/report.h"
#include "machine/event.h"

struct counters;
struct launch_memory;
struct world;

/* Launches of other streams that a launch is compared with, at most. */
enum { CHECK_BESIDE = 8 };

struct check {
    struct watcher watcher; /* first */
    struct report *report;
    struct launch_memory *memory; /* what the launch did to global memory … */
    struct world *world; /* what its clusters do to one another, where they can (world.h) */
    bool
        reads_back; /* some global memory was read and then written, or changed by atomics; known with checks only */
    bool keeps_memory; /* … until the caller frees it; else until the end of the launch */
    bool
        keeps_counters; /* what it did with counters (counters.h) is then in `counters`, the caller's to free */
    struct counters *counters;
    const struct counters *counters_before; /* of an earlier launch of the kernel, or NULL */
    const struct launch_memory *before;     /* of a launch that may not be over yet (programmatic
                                           dependent launch), or NULL */
    /* Of launches of other streams that nothing orders with this one. beside_gone: there are more. */
    struct launch_memory *beside[CHECK_BESIDE];
    uint32_t beside_count;
    bool beside_gone;
};

/*
 * Has the launch checked as its check_level says, and its findings go to `report`, which the caller made and
 * will end. Level 0 explains deadlocks and no more. `c` is the caller's: zero but for keeps_memory, keeps_counters, and what was before.
 */
void check_attach(struct check *c, struct launch *l, struct report *report);

#endif
