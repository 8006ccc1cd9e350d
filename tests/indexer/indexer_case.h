/*
 * The indexer's cases, their data on the host, and the judge.
 *
 * A logit against float64, u = 2^-24. The product of one head is summed by the tensor core as gemm_judge.c
 * says of 8-bit floats, 32 elements an instruction, M the largest |product| or |sum so far|:
 *
 *   H = sum over instructions of 33 2^-13 (M + H so far), then 2^-13 (|sum| + H so far)
 *
 * max(., 0) does not enlarge an error. Then |out - ref| <= |scale| (sum_h |w_h| H_h + (heads + 5) u sum_h
 * |w_h| (|s_h| + H_h)) + 2^-126: products and sums in fp32, and the scale. That is loose where heads are
 * many, so each case also runs on small integers, scales powers of two: every sum is then exact, and every
 * logit must be. Elements outside a row's range, gaps and guards keep their poison.
 */
#ifndef TESTS_INDEXER_CASE_H
#define TESTS_INDEXER_CASE_H

#include "lib/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INDEXER_POISON = 0x5A5A5A5A };

enum indexer_wrong { RIGHT, BAD_RANGES, BAD_PAGES, NAN_KEYS };

struct indexer_case {
    int batch, queries, heads, dim, length;
    int page;     /* 0: not paged */
    int in_pages; /* scales lie there */
    int starts, ends;
    int spread; /* strides larger than contiguous */
    int exact;  /* small integers */
    enum indexer_wrong wrong;
    uint64_t seed;
};

struct indexer_data {
    struct indexer_case c;
    hewn_indexer_desc desc;
    int rows;
    unsigned char *q, *k; /* e4m3; k with scales, if they lie there */
    float *scales, *weights;
    uint32_t *out; /* bits */
    int32_t *starts, *ends, *table;
    size_t q_bytes, k_bytes, scale_count, weight_count, out_count, table_count;
};

void indexer_case_name(const struct indexer_case *c, char *out, size_t size);
bool indexer_data_new(struct indexer_data *d, const struct indexer_case *c);
void indexer_data_free(struct indexer_data *d);

/* The keys that a row sees. */
void indexer_range(const struct indexer_data *d, int row, int *from, int *to);
/* Where a key and its scale are; false outside the pool. */
bool indexer_key(const struct indexer_data *d, int sequence, int key, const unsigned char **at,
                 float *scale);

/* Fails the current case where a rule is broken; the largest share of a tolerance that was used. */
double indexer_judge(const struct indexer_data *d);

#endif
