/*
 * The cases of products with 4-bit weights, their data on the host, and the judge.
 *
 * An element against float64, u = 2^-24. The sum P of the products of a half k-block, 64 k, or of a
 * group of 32, is the tensor core's, 16 products an instruction (gemm_judge.c):
 *
 *   H = sum over instructions of 17 * 2^-25 * M + 2 u |sum so far|,
 *       M the largest |product| or |sum so far|
 *
 * Each P is multiplied by its scale s and added in fp32; then the parts of K are added:
 *
 *   |D - ref| <= sum of |s| H + u * sum over P of |D so far| + parts * u * sum of |s P|
 *                + half an ulp of D's type
 *
 * That is loose where groups are many, so each case also runs on small integers, scales powers of
 * two: all sums are then exact, and so must D be. Gaps between rows and guards keep their poison.
 */
#ifndef TESTS_W4_CASE_H
#define TESTS_W4_CASE_H

#include "lib/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { W4_POISON = 0x5A };

struct w4_case {
    int m, n, k, group, in, out, format;
    unsigned parts, tile; /* 0: chosen */
    int spread;           /* 1: rows further apart than they are long */
    int askew;            /* elements by which D is off a multiple of 16 bytes */
    int exact;            /* small integers */
    uint64_t seed;
};

struct w4_data {
    struct w4_case c;
    hewn_w4_desc desc;
    hewn_w4_weights weights;
    int groups; /* of a row */
    unsigned char *x, *values, *scales, *zeros, *packed, *d;
    size_t x_bytes, d_bytes;
    uint64_t packed_bytes;
};

void w4_case_name(const struct w4_case *c, char *out, size_t size);
bool w4_data_new(struct w4_data *d, const struct w4_case *c);
void w4_data_free(struct w4_data *d);

/* Weight j, k less its zero point, and its scale. */
double w4_weight(const struct w4_data *d, int j, int k, double *scale);

/* Fails the current case where an element is beyond its tolerance; the largest share of one that
 * was used. parts: of K, as the plan says. */
double w4_judge(const struct w4_data *d, unsigned parts);

#endif
