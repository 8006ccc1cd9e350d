/*
 * Every order of a small launch. The launch runs again and again from the start under a scheduler that takes one
 * step at a time (machine/steer.h), each time in another order, until every order that can make a difference has
 * been taken, or the budget is spent. Orders are judged by what comes out: what memory holds at the end, a hang, a fault, an
 * error that the machine itself finds. The checker has no part in it.
 *
 * A step is one instruction that other warps can notice (an access of shared, global or tensor memory, an operation on a
 * barrier, an exit), one poll answered False, or one stage of an asynchronous operation. Two orders that differ only in the
 * places of steps which do not touch one another count as one (search.c).
 */
#ifndef SIM_EXPLORE_H
#define SIM_EXPLORE_H

#include "machine/machine.h"
#include "machine/mem.h"

struct explore_limits {
    uint64_t orders; /* runs; 0: no limit */
    uint32_t steps;  /* of one run; 0: EXPLORE_STEPS */
    double seconds;  /* 0: no limit */
    /* Where not NULL, it says of what memory holds at the end of an order, or where it hangs, whether that is
     * fine: nothing is compared. */
    bool (*fine)(void *context);
    void *context;
};
enum { EXPLORE_STEPS = 600 };

/* What one order may come to, the worst first. */
#define EXPLORE_ENDS(X)                                              \
    X(FINE, "ends as the first order does")                          \
    X(DIFFERS, "leaves other values in memory than the first order") \
    X(ERROR, "breaks a rule of an instruction")                      \
    X(FAULT, "ends with a fault")                                    \
    X(HANG, "never ends")

enum explore_end {
#define X(name, text) EXPLORE_##name,
    EXPLORE_ENDS(X)
#undef X
};

enum { EXPLORE_SCHEDULE = 8192, EXPLORE_SEEDS = 200 };

struct exploration {
    uint64_t orders;        /* that ran to their end */
    uint64_t cut;           /* that were given up, because all that follows had been seen */
    uint64_t least;         /* more that are known to be left, where `all` is false */
    bool all;               /* every order; else the budget is spent, or a run was too long */
    bool broken;            /* out of memory, or a run that did not repeat: nothing is known */
    enum explore_end end;   /* of the first order that is not fine */
    int result;             /* its CUresult */
    struct finding finding; /* ERROR, FAULT, HANG: what was found */
    uint64_t
        differs_at; /* DIFFERS: the first word, and what the first order and this one leave there; 0: not known */
    uint32_t first, other;
    uint64_t seed; /* with which a usual run comes to the same; 0: none up to EXPLORE_SEEDS */
    char schedule[EXPLORE_SCHEDULE]; /* its first steps, a word (replay.h); "": too long for one */
};

/* The launch is filled as for launch_run; watchers, sink and steerer are not used. `memory` is what it may
 * change: put back before each run and at the end, compared after each. */
void explore_launch(const struct launch *l, const struct mem_piece *memory, size_t count,
                    const struct explore_limits *limits, struct exploration *out);

#endif
