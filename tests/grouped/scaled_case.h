/*
 * Cases of block-scaled products, their data on the host, and the judge.
 *
 * An element against float64, with every operand decoded exactly. Of an instruction (32 elements of k, of e2m1
 * alone 64, of 16 bits 16) the tensor cores align products to the largest of them and of the sum so far, M, and keep at least
 * 24 fraction bits; the sum is then rounded:
 *
 *   H = sum over instructions of (elements + 1) 2^-23 (M + H so far), then 2^-23 (|sum| + H so far)
 *
 * and alpha multiplies: |out - ref| <= |alpha| (H + u (|sum| + H)) + the rounding to D + 2^-126. Every other run
 * has small integers and scales whose products are short: the result is then exact, bit for bit. Rows of no
 * group, gaps and guards keep their poison.
 */
#ifndef TESTS_SCALED_CASE_H
#define TESTS_SCALED_CASE_H

#include "lib/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCALED_POISON = 0x5A };

struct scaled_case {
    int kind; /* hewn_grouped_kind */
    int groups, m, n, k;
    int in, in_b, scales,
        layout; /* hewn_dtype, hewn_grouped_scales or 0: of 16 bits, hewn_grouped_layout */
    int out, align;
    int spread; /* strides larger than contiguous */
    int exact;
    int alpha; /* 1: a factor for each group */
    int few;   /* 1: groups have few rows or none */
    const char *variant;
    uint64_t seed;
};

/* A or B: rows of elements, and the bytes of their scales. */
struct scaled_side {
    int dtype, rows, planes;
    unsigned char *bytes, *scales;
    size_t size, scale_size;
    int64_t row, plane, atom_row,
        atom_plane; /* bytes; atom_row: with words, from one along k to the next */
    int words;      /* the layout of scales */
};

struct scaled_data {
    struct scaled_case c;
    hewn_grouped_desc desc;
    struct scaled_side a, b;
    int planes;
    unsigned char *d;
    float *alpha;
    int32_t *rows;
    size_t d_bytes, row_count;
};

void scaled_case_name(const struct scaled_case *c, char *out, size_t size);
bool scaled_data_new(struct scaled_data *d, const struct scaled_case *c);
void scaled_data_free(struct scaled_data *d);

/* The rows of a group in its plane: first, and one behind the last. */
void scaled_range(const struct scaled_data *d, int group, int *first, int *end);
/* Elements of k that share a scale. */
int scaled_vector(const struct scaled_case *c);
/* Where the scale of a row and of the vector at `j` lies. */
unsigned char *scaled_scale(const struct scaled_side *s, int plane, int row, int j);

/* Fails the current case where a rule is broken; the largest share of a tolerance that was used. */
double scaled_judge(const struct scaled_data *d);

#endif
