/*
 * What a run of a case must have put out, against attention_reference.h. Per case:
 *
 *   O, whole   |O - ref| <= 1.25 |ideal - ref| + 2^-22 |ref|   (Euclidean norms over all finite rows,
 *              unnormalised ones as if they were normalised; the floor is fp32's where the ideal kernel
 *              is exact, as when a row sees one key).
 *              P may be rounded relative to any reference that row_max may be; the ideal kernel takes
 *              the true maximum, where the largest P is exact. So where the inputs are not the usual
 *              ones, of unit variance and scale, where the roundings are fewer than 400, or where exact
 *              ones spare the ideal kernel more than a tenth of the variance expected over all references,
 *              as in rows of two or three keys:
 *                - its error is the one expected over all references if that is larger,
 *                - 1.25 is at least 1 + 5 / sqrt(N), five standard deviations of the ratio of two samples
 *                  of N roundings; N = (sum v)^2 / sum (v^2 / n) over rows with v the variance that
 *                  rounding brings and n its roundings, at most as many as columns or keys that count
 *                  (Welch, Satterthwaite),
 *                - the floor is 2^-22 (1 + scale |q| max|k| + |sink|): fp32 scores.
 *   O, a row   |O - ref| <= (u_P + e) sum_j p_j |V_j| + floor + u_O |ref|, u half a step of a type at 1,
 *              e = 2^-20 + 2^-22 scale |q| max|k| + 2^-27 keys for fp32 sums and exponentials, floor
 *              the smallest steps. No rounding exceeds it. Outputs in e4m3 count times their scale.
 *   cosine     >= 0.999998 with the usual inputs, where the ideal kernel has a fifth of that to spare: it
 *              has 0.9999986 with P in bf16, and 0.9999973 with O in bf16 too (1.66e-3 each)
 *   lse        within 1e-5 + 2^-22 (scale |q| max|k| + |sink|), -inf where no key is seen
 *   row_max    within the same of [max - 8 ln 2, max]; 0 where no key is seen
 *   NaN        in every column of a row with a NaN or +inf score and in its lse, nowhere else. Rows of
 *              -inf alone are 0/0 and not compared.
 *   short sums what 13 fraction bits take from a score, cut (attention_reference.c, cut_of_product), is added
 *              to what fp32 scores may bring: to the bound of row_max, averaged with P's weights to that of
 *              lse, and to the floor of O, whole. Of a row of O, e is greater by
 *              e^(2 cut) - 1 and 34 2^-13 for each 32 keys and 16 more: 32 products and the sum so far, each
 *              cut to 2^-13 of the largest, then the sum again; 16 for the ends of blocks. Where sums
 *              are promoted after n blocks, for 4 n times 32 keys at most
 *   padding    of O, lse and row_max untouched
 */
#ifndef TESTS_ATTENTION_JUDGE_H
#define TESTS_ATTENTION_JUDGE_H

#include "attention_data.h"

struct attention_figures {
    double error, ideal, limit, cosine; /* of O; errors are relative */
    double samples;                     /* N */
    double lse;                         /* the worst error */
};

/* Fails the current case where a rule is broken. */
struct attention_figures attention_judge(const struct attention_data *d);

#endif
