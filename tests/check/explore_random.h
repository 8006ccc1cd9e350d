/*
 * Small random kernels: a few warps that hand words of memory to one another through barriers of all kinds, most of them
 * right when made, then damaged or not. Results go to memory: what the warps read is summed up in `out`.
 */
#ifndef TESTS_EXPLORE_RANDOM_H
#define TESTS_EXPLORE_RANDOM_H

#include "lib/harness.h"

enum { RANDOM_WARPS = 4, RANDOM_EVENTS = 12, RANDOM_TEXT = 1 << 15 };

struct random_kernel {
    uint32_t warps; /* of a CTA */
    uint32_t ctas;  /* of the one cluster */
    uint32_t damages;
    char text[RANDOM_TEXT]; /* an entry k(.param .u64 in, .param .u64 out) */
};

/* The kernel depends on what is drawn alone. */
void random_kernel(struct random_kernel *k, struct rng *r);

/*
 * The same for the lanes of one warp: three lanes, and a thread of another warp (`together`). In
 * `apart`, which can be explored, each lane is a warp of its own, with a named barrier in place of
 * bar.warp.sync; nothing else orders lanes. What is proved of `together` must be true of all orders of
 * `apart`.
 */
void random_lanes(struct random_kernel *together, struct random_kernel *apart, struct rng *r);

#endif
