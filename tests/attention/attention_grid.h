/* The lists of attention cases. Each calls visit(user, case) for one after the other. */
#ifndef TESTS_ATTENTION_GRID_H
#define TESTS_ATTENTION_GRID_H

#include "attention_case.h"

typedef void attention_visit(void *user, struct attention_case *c);

/* A few of everything: every module, mask, layout, source, output. */
void attention_sample(attention_visit *visit, void *user);
/* Few query rows, and head dimensions that only the decode schedule has on sm_90a. */
void attention_few_rows(attention_visit *visit, void *user);
/* Soft caps, on targets that have them. */
void attention_capped(attention_visit *visit, void *user);
/* K and V of fewer bytes than Q. */
void attention_narrow(attention_visit *visit, void *user);
/* 256 columns from small pages. */
void attention_small_pages(attention_visit *visit, void *user);
/* e4m3 inputs; and a drawn case of them with scales and outputs of all kinds, else as it is. */
void attention_eight_bit(attention_visit *visit, void *user);
/* e4m3 inputs whose scores are all negative. */
void attention_below_zero(attention_visit *visit, void *user);
void attention_random_promoted(struct rng *r, struct attention_case *c);
void attention_random_eight_bit(struct rng *r, struct attention_case *c);
/* A drawn case with e4m3 K and V, where decode can take it; else as it is. */
void attention_random_narrow(struct rng *r, struct attention_case *c);
/* Every head dimension, length, mask and head ratio. */
void attention_grid(attention_visit *visit, void *user);
/* A case of the whole contract, small. */
void attention_random(struct rng *r, struct attention_case *c);

#endif
