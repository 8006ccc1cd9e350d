/* The cases of tests/gemm: groups of them, a file for each kind, and what these files share. */
#ifndef TESTS_GEMM_CASES_H
#define TESTS_GEMM_CASES_H

#include "gemm_case.h"

struct gemm_turn {
    int index;       /* of the case in its group */
    struct rng *rng; /* the group's */
};

/* ANY_TARGET, or the major number of the compute capability that has the group's kernels. */
enum { ANY_TARGET = 0, SM_90A = 9, SM_100F = 10 };

struct gemm_group {
    int count;     /* of cases; 0 ends a list */
    int target;    /* ANY_TARGET, SM_90A, SM_100F */
    uint64_t seed; /* added to the test's, for `rng` */
    void (*make)(struct gemm_case *g, struct gemm_turn turn);
    int sms; /* that the device must have at least */
};

extern const struct gemm_group gemm_shape_groups[], gemm_tile_groups[], gemm_few_groups[],
    gemm_odd_groups[], gemm_turned_groups[], gemm_broad_groups[];

/* ---- what the makers of cases share -- */

extern const int gemm_out_types[3];

int64_t gemm_round_up(int64_t x, int64_t unit);
/* Leading dimensions padded to 16 bytes, then by that many more such units; batches one behind the other. */
void gemm_set_layout(hewn_gemm_desc *s, int64_t pad_a, int64_t pad_b, int64_t pad_d);
/* What comes behind the sums, by number. The layout must be set. */
enum { FINISHES = 15 };
void gemm_set_finish(struct gemm_case *g, int index, int64_t pad_c);
/* A random case of aligned operands, with what all targets have. */
void gemm_random(struct gemm_case *g, struct rng *r);
/* Of the whole contract (gemm_random.c). `finish` is good until the next one. */
struct gemm_device {
    int major, sms; /* of its compute capability; its SMs */
};
void gemm_drawn(struct gemm_case *g, const struct gemm_device *device, struct rng *r);
/* Fails the case where too many wishes were refused. */
void gemm_judge_wishes(const struct gemm_wishes *wishes);

#endif
