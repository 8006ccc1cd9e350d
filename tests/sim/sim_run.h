/*
 * Runs a kernel of PTX text on the machine itself, below the driver API, on a GPU as large as a B200 in
 * all but its SMs. For test programs that link the simulator's objects.
 */
#ifndef TESTS_SIM_RUN_H
#define TESTS_SIM_RUN_H

#include "explore/explore.h"

#include <stdbool.h>
#include <stdint.h>

struct launch_memory;

/* A launch in one dimension. 0: one CTA, 32 threads, no clusters, 4 SMs, one host thread, checks of level 1. */
struct run {
    uint32_t grid, block, cluster, dynamic_shared, sms, threads;
    int level;
    bool aliased; /* some memory has two addresses: said as the driver says it */
    uint64_t seed;
    const struct launch_memory *before; /* what the launch before did, where this may overlap it */
    struct launch_memory **after;       /* where not NULL: what this one did; the caller's */
    struct exploration
        *exploration; /* where not NULL: what its orders come to, tried before it runs */
    struct explore_limits limits; /* of that search, … */
    const char *replay; /* where not NULL: the schedule in whose order the launch runs, a word */
    bool strayed;       /* it did not fit */
    struct mem_piece memory; /* … and the memory by which orders are compared */
    char findings[1 << 14];  /* JSON lines of the last launch */
};

enum { RUN_PARAM_BYTES = 1024 };

/* Around a program's runs: findings go to a file of its own. False where there can be none. */
bool run_begin(void);
void run_end(void);
/* Runs the first entry of `text` with up to RUN_PARAM_BYTES of parameters; the CUresult, or -1 when it does
 * not parse, does not decode or is unsupported. */
int run_kernel(struct run *r, const char *text, const void *params, uint32_t param_bytes);
/* Whether the last launch made a finding of this kind. */
bool run_found(const struct run *r, const char *kind);

/* Device memory, which is host memory too. */
void *run_alloc(uint64_t bytes);
void run_free(void *p);

/* Where shared-memory address `a` of a box lies in swizzle mode `mode`: the XORs of PTX ISA "Swizzling
 * Modes". */
uint32_t run_swizzle(uint32_t mode, uint32_t a);

#endif
