/*
 * Host side of an attention case: the description, tensors with the strides it names, tables. What no
 * sequence owns holds NaN (inputs) or POISON (outputs): padding between rows, unused rows of pages,
 * pages that no table names, rows behind a sequence's last.
 */
#ifndef TESTS_ATTENTION_DATA_H
#define TESTS_ATTENTION_DATA_H

#include "attention_case.h"

#include "hewn.h"

enum { ATTENTION_POISON = 0xA5 };

struct attention_tensor {
    unsigned char *bytes;
    size_t size;
    int dtype;
    int64_t columns;
    int64_t extent[3], stride[3]; /* token, head, batch (or page); elements */
};

struct attention_data {
    struct attention_case c;
    hewn_attention_desc desc; /* without its sources, the next field */
    hewn_attention_source source[2];
    struct attention_tensor q, o, k[2], v[2];
    struct attention_tensor turned[2]; /* V as columns, where the case has it so; without strides */
    int32_t *cu_q, *lengths[2], *table[2], *windows; /* NULL where unused */
    size_t cu_q_count, lengths_count[2], table_count[2], windows_count;
    uint64_t *tree; /* NULL where unused */
    size_t tree_count;
    float *sink, *q_scale, *k_scale, *v_scale, *o_scale; /* NULL where unused */
    size_t sink_count, q_scale_count, k_scale_count, v_scale_count, o_scale_count;
    float *lse, *row_max; /* out; row_max NULL unless unnormalised */
    size_t lse_count;
    bool short_sums; /* the device keeps 13 fraction bits of the sums of 8-bit products */
};

/* False when memory is short. */
bool attention_data_new(struct attention_data *d, const struct attention_case *c);
void attention_data_free(struct attention_data *d);
/* The outputs as before a run. */
void attention_poison(struct attention_data *d);

int64_t attention_v_dim(const struct attention_case *c);
/* The factor of the dot product of stored values, of stored V, and of stored O. */
double attention_score_scale(const struct attention_data *d, int64_t b, int64_t head);
double attention_value_scale(const struct attention_data *d, int64_t b, int64_t head);
double attention_output_scale(const struct attention_data *d);

/* Lengths of sequence b: of its queries, of its keys in source s. What breaks the rules counts as the
 * header says: below 0 as 0, above the longest as this. */
int64_t attention_queries(const struct attention_data *d, int64_t b);
int64_t attention_keys(const struct attention_data *d, int s, int64_t b);

/* First element of a row, in elements of the tensor. */
size_t attention_q_row(const struct attention_data *d, const struct attention_tensor *t, int64_t b,
                       int64_t h, int64_t i);
size_t attention_kv_row(const struct attention_data *d, const struct attention_tensor *t, int s,
                        int64_t b, int64_t h, int64_t j);
/* Index of lse and row_max. */
size_t attention_lse_index(const struct attention_data *d, int64_t b, int64_t h, int64_t i);

double attention_load(const struct attention_tensor *t, size_t element);
void attention_store(const struct attention_tensor *t, size_t element, double value);

/* The header's rule: does query i of sequence b see key j of source s? */
bool attention_visible(const struct attention_data *d, int s, int64_t b, int64_t i, int64_t j);

/* Bytes of O, lse and row_max that are no row of a sequence but do not hold the
 * poison any more. Packed rows behind the last sequence count unless `tail_free`. */
size_t attention_touched(const struct attention_data *d, bool tail_free);

#endif
