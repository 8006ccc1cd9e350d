/* The table of hewn_gemm_tune: which kernel is the fastest for a product. */
#ifndef HEWN_RUNTIME_GEMM_TABLE_H
#define HEWN_RUNTIME_GEMM_TABLE_H

#include "hewn.h"

enum { GEMM_TABLE_NAME = 24 }; /* bytes of a target's or a variant's name, its NUL included */

/* What a line is for; compared byte by byte, so all of it is set, names padded with NULs. */
struct gemm_table_key {
    char target[GEMM_TABLE_NAME];
    int64_t sm_count, in, in_b, out, major_a, major_b, accumulate, batch, m, n, k;
};

struct gemm_table_line {
    struct gemm_table_key key;
    char variant[GEMM_TABLE_NAME];
    uint32_t parts, slices;
    double seconds;
};

/* The key of a description that has been checked. */
void hewn_gemm_table_key(const hewn_gemm_desc *d, const char *target, int sm_count,
                         struct gemm_table_key *key);
/* The line of a description that looks into its table. NULL: none. */
const struct gemm_table_line *hewn_gemm_table_find(const hewn_gemm_desc *d, const char *target,
                                                   int sm_count);
/* Adds a line, or replaces that of the same key. */
int hewn_gemm_table_put(hewn_gemm_table *table, const struct gemm_table_line *line,
                        hewn_error *err);

#endif
