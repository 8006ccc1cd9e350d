/* The checker, as a launch has it. */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#include "check/copied.h"
#include "check/report.h"
#include "machine/event.h"

struct counters;
struct launch_memory;
struct world;

/* Launches, and copies, of other streams that a launch is compared with, at most. */
enum { BESIDE_LAUNCHES = 8, BESIDE_COPIES = 56, CHECK_BESIDE = BESIDE_LAUNCHES + BESIDE_COPIES };

struct check_beside {
    struct launch_memory *memory; /* NULL: a copy or a fill */
    struct copied copied;
    bool in_graph; /* another branch of the graph that runs */
};

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
    /* Of other streams, what nothing orders with this launch. beside_gone: there is more. */
    struct check_beside beside[CHECK_BESIDE];
    uint32_t beside_count;
    bool beside_gone;
    bool waits; /* kernel_waits, if there is anything beside it */
};

/*
 * Has the launch checked as its check_level says, and its findings go to `report`, which the caller made and
 * will end. Level 0 explains deadlocks and no more. `c` is the caller's: zero but for keeps_memory, keeps_counters, and what was before.
 */
void check_attach(struct check *c, struct launch *l, struct report *report);

#endif
