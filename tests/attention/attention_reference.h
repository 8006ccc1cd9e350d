/*
 * One softmax in float64 over every key that a row sees, in whatever source: straight from the formula
 * of hewn.h, a key at a time as to what is visible. Beside it the ideal kernel, which is float64 too
 * but for P = exp(s - m), m the row's true maximum, which it rounds to the input dtype (e4m3: 256 P)
 * before the product with V. Inputs are the stored values times their scales.
 */
#ifndef TESTS_ATTENTION_REFERENCE_H
#define TESTS_ATTENTION_REFERENCE_H

#include "attention_data.h"

struct attention_row {
    int64_t b, h, i;
    int64_t columns;
    bool empty;     /* sees no key */
    bool poisoned;  /* a score is NaN or +inf: so is all of its row */
    bool undefined; /* keys are seen, every score is -inf: 0/0 */
    double max;     /* of the visible scores */
    double sum;     /* of exp(s - max) */
    double sink;    /* exp(sink - max), or 0 */
    double lse;     /* ln(sum + sink) + max; empty: the sink, or -inf */
    /* sum_j exp(s_j - max) V_j, exactly and with P rounded; without 1 / (sum + sink) */
    const double *o, *ideal;
    /* The sum over the columns of the variance that rounding P brings into o, taken over all
     * references that P may be relative to; and of how many independent roundings it is made. */
    double variance, samples;
    double reach; /* sum_j p_j |V_j|, which bounds |o| */
    double floor; /* what the smallest step of P adds at most to |o| */
    double score; /* scale |q| max |k| of the keys seen, their finite part: what s is the sum of */
    double cut;   /* what sums of 13 fraction bits may take from a score, of the keys seen, or 0 */
    double lse_cut; /* and from the lse */
    int64_t keys;   /* seen */
};

/* Calls see(user[thread], row) for every row, from two threads. False when memory is short. */
enum { ATTENTION_THREADS = 2 };
bool attention_reference(const struct attention_data *d,
                         void (*see)(void *user, const struct attention_row *row),
                         void *const *user);

#endif
