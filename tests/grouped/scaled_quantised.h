/*
 * Quantised results of block-scaled products and of those of 16-bit inputs, whose f32 D is another kernel's and takes no
 * alpha: the test multiplies by it. A case runs three plans: one with D in f32; one with the same D quantised,
 * whose bytes must be those that hewn.h's rule makes of the former; and one that multiplies the latter, as its A, by
 * another B, against float64.
 */
#ifndef TESTS_SCALED_QUANTISED_H
#define TESTS_SCALED_QUANTISED_H

#include "scaled_case.h"

struct quantised_case {
    struct scaled_case first, second; /* the products; second.in: what the first one's D becomes */
    int act;
    int bias, factor; /* 1: there is one */
    int special; /* 1: bias and factor have NaN, infinities, zeros, numbers near the ends of fp32 */
};

/* What the quantised plan had beside the first product's data, on the host. */
struct quantised_terms {
    float *bias, *factor; /* of each row of B of each group; of each group */
};

/* Compares D, in `got`'s A, with what the rule makes of the f32 D of `from`. */
void quantised_judge(const struct quantised_case *q, const struct quantised_terms *t,
                     const struct scaled_data *from, const struct scaled_data *got);

struct rng;

/* The cases: of inputs by number, of variants, the last of which takes no words, of 16-bit inputs; and random ones. */
void quantised_each(struct device *dev, struct scaled_case (*of_inputs)(int), int inputs,
                    const char *const *variants, int variant_count);
void quantised_random(struct device *dev, struct scaled_case (*at_random)(struct rng *), int count);

#endif
