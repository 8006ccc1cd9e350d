/*
 * Cases of grouped products, their data on the host, and the judge.
 *
 * An element against float64, u = 2^-24. The tensor core's sum of a block, as gemm_judge.c says of 8-bit
 * floats, 32 elements an instruction, M the largest |product| or |sum so far|:
 *
 *   H = sum over instructions of 33 2^-13 (M + H so far), then 2^-13 (|sum| + H so far)
 *
 * Scales of a block multiply that by s = |scale_a scale_b|, whose product rounds once; each addition of a block
 * rounds once: |out - ref| <= sum_b s (H_b + u |sum_b|) + blocks * u * sum_b s (|sum_b| + H_b) + the rounding to
 * D + 2^-126. Inputs of 16 bits have no blocks: H is what gemm_judge.c says of them, E + H. That is loose, so each case also runs on small integers with scales that are powers of two:
 * every sum is then exact, and SwiGLU, whose rule is that of gemm_judge.c, has the error of its own arithmetic alone. Rows of no group, gaps and guards keep their poison.
 */
#ifndef TESTS_GROUPED_CASE_H
#define TESTS_GROUPED_CASE_H

#include "lib/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GROUPED_POISON = 0x5A };

/* How many rows groups have: any; mostly none or few; all; values that break the rules. */
enum grouped_rows { ROWS_ANY, ROWS_FEW, ROWS_ALL, ROWS_WRONG, ROWS_KINDS };

struct grouped_case {
    int kind; /* hewn_grouped_kind */
    int groups, m, n, k;
    int align;  /* 0: 1 */
    int a_rows; /* 0: A has the rows of D */
    int in, out;
    int spread; /* strides larger than contiguous, by so many units of 16 elements */
    int expected_m;
    int exact;  /* small integers */
    int scales; /* hewn_grouped_scales */
    int act;    /* hewn_act */
    enum grouped_rows rows;
    const char *variant;
    uint64_t seed;
};

struct grouped_data {
    struct grouped_case c;
    hewn_grouped_desc desc;
    int planes, blocks, blocks_n;
    int block;                /* elements of k that are summed up at once: all without scales */
    size_t element;           /* bytes of one of A, B */
    unsigned char *a, *b, *d; /* d: elements of `out` */
    float *scale_a, *scale_b;
    int32_t *rows, *index;
    size_t a_bytes, b_bytes, d_bytes, scale_a_count, scale_b_count, row_count, index_count;
};

/* The scale of B for a column and a block of k. */
float grouped_scale_b(const struct grouped_data *d, int group, int column, int block);

void grouped_case_name(const struct grouped_case *c, char *out, size_t size);
bool grouped_data_new(struct grouped_data *d, const struct grouped_case *c);
void grouped_data_free(struct grouped_data *d);

/* The rows of a group in its plane: first, and one behind the last. */
void grouped_range(const struct grouped_data *d, int group, int *first, int *end);

/* The row of A, and of its scales, that row `row` of a plane takes, and its plane; -1: zeros. */
int grouped_row_of_a(const struct grouped_data *d, int plane, int row, int *a_plane);

/* Fails the current case where a rule is broken; the largest share of a tolerance that was used. */
double grouped_judge(const struct grouped_data *d);

#endif
