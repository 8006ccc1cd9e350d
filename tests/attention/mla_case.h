/*
 * The MLA cases, their data on the host, and the judge.
 *
 * Per case, against one softmax in float64 over every key that a row sees:
 *
 *   O, an element  |O - ref| <= (u_P + e) sum_j p_j |v_j| + u_O |ref| + floor, u half a step of a type at
 *                  1, e = 2^-20 + 2^-22 scale |q| max|c| + 2^-27 keys for fp32 sums and exponentials,
 *                  floor the smallest steps of both types. Kernels that do not round elements of records
 *                  (`exact`) have products of P and scales in f16, multiples of 2^-35 of the largest P
 *                  times the largest scale: floor also 2^-34 max|scale| max|x| keys / sum_j p_j, p relative
 *                  to the largest, x the e4m3, both maxima over the sequence's keys
 *   O, whole       |O - ref| <= 1.25 |ideal - ref| (Euclidean norms), where the ideal kernel is float64
 *                  but rounds P, relative to a number below the row's maximum by a factor of up to 2
 *                  (relative to the maximum itself the largest P is 1, without an error, and kernels do
 *                  not follow the maximum that closely), and O. Only where P has 2^14 roundings or more
 *                  and scores deviate by about 1, as in attention_judge.h; lists that name few rows
 *                  again and again have scores, and roundings, alike
 *   lse            within 1e-5 + 2^-22 (scale |q| max|c| + |sink|), -inf where no key is seen
 *   padding        of O and lse untouched
 *
 * An element of a packed record is what the header says: its e4m3 times its scale. Kernels that round that
 * to bf16 do so as ptx/inc/mla.plan.h says, and so does the reference then. The others (`exact`) do not.
 */
#ifndef TESTS_MLA_CASE_H
#define TESTS_MLA_CASE_H

#include "lib/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MLA_QK = 576, MLA_V = 512, MLA_POISON = 0xA5 };  /* MLA_QK: at most */
enum { MLA_WIDE_RECORD = 656, MLA_SPLIT_RECORD = 584 }; /* bytes of a record */

enum mla_wrong { MLA_RIGHT, MLA_BAD_LENGTHS, MLA_BAD_PAGES, MLA_BAD_LISTS };

struct mla_case {
    int batch, heads, queries, length; /* with lists: rows of the whole cache */
    int page;                          /* 0: not paged */
    int in, out;                       /* hewn_dtype */
    int causal, sink, lse;
    int list;  /* the width of lists, or 0 */
    int extra; /* the width of second lists, or 0: no second cache, which has half the rows */
    int extra_page, extra_ragged; /* as page and ragged */
    int packed;                   /* bytes of a record, 656 or 584; 0: plain rows */
    int steep; /* scales of 656-byte records grow from block to block of a sequence, twofold, 7 times */
    int ragged; /* lengths from 0 to `length` or `list`, both among them; else all have that. With lists,
                    2: one for each list */
    int spread;  /* strides larger than contiguous */
    float sharp; /* about the scores' standard deviation */
    enum mla_wrong wrong;
    uint64_t seed;
};

/* A cache, with its lists and lengths. Rows: of a page, or of all. Strides are in elements, a list's in entries. */
struct mla_pool {
    int page, rows, most, ragged;
    int64_t planes, token, plane, stride;
    size_t base, bytes, length_count, list_count; /* base: where it is in kv */
    int32_t *lengths, *lists;
};

struct mla_data {
    struct mla_case c;
    hewn_mla_desc desc;
    struct mla_pool pool[2]; /* the second may be without rows */
    bool exact;              /* elements of records are not rounded */
    uint16_t *q;
    unsigned char *kv, *o;
    float *lse, *sink;
    int32_t *table;
    size_t q_count, o_bytes, lse_count, table_count;
};

void mla_case_name(const struct mla_case *c, char *out, size_t size);
bool mla_data_new(struct mla_data *d, const struct mla_case *c);
void mla_data_free(struct mla_data *d);
/* The offset of a cache row in bytes, or -1: outside the pool, or no key. */
int64_t mla_row(const struct mla_data *d, int sequence, int query, int key);
int mla_keys(const struct mla_data *d, int sequence, int query);
/* Elements of a query and of a key. */
int mla_columns(const struct mla_case *c);
/* Raises both to the largest scale and e4m3 of the record at an offset. */
void mla_extremes(const struct mla_data *d, int64_t at, double *scale, double *code);
/* The elements of the row at an offset. */
void mla_key(const struct mla_data *d, int64_t at, double out[MLA_QK]);
double mla_value(int dtype, uint16_t bits);

struct mla_figures {
    double error, ideal; /* relative, of the whole O */
    double lse;
};
/* Fails the current case where a rule is broken. */
struct mla_figures mla_judge(const struct mla_data *d);

#endif
