/*
 * What the kernel of weighted sums of rows needs on every target: the parameter list, threads. #defines only:
 * PTX, the runtime, tools/mod and the tests include this.
 *
 *   D[r][c] = sum over j = 0 .. terms - 1, ascending: weights[r][j] * X[index[r][j]][c]
 *
 * Sums begin at 0; each term is one fma in fp32, and the sum is rounded once, to nearest even. A term whose number
 * is not in 0 .. x_rows - 1 is left out: neither its weight nor a row is read. Without weights they are 1.
 *
 * Items: units of 8 columns, and behind the last whole unit columns. A thread has `units` items of a row, as many
 * as a CTA has threads apart.
 */
#ifndef HEWN_PTX_GROUPED_SUM_PLAN_H
#define HEWN_PTX_GROUPED_SUM_PLAN_H

#include "common.plan.h"

#define GROUPED_SUM_WARPS   4
#define GROUPED_SUM_THREADS (32 * GROUPED_SUM_WARPS)
#define GROUPED_SUM_COLUMNS 8                       /* of a unit */
#define GROUPED_SUM_LOADS   8                       /* terms whose rows are loaded together */
#define GROUPED_SUM_TWO     (GROUPED_SUM_LOADS / 2) /* at most so many terms: a thread has two items */

/* X(role, first warp, warps) */
#define GROUPED_SUM_ROLES(X) X(sum, 0, GROUPED_SUM_WARPS)

/* X(input dtype, output dtype) */
#define GROUPED_SUM_TYPES(X) \
    X(bf16, bf16)            \
    X(bf16, f32)             \
    X(f16, f16)              \
    X(f16, f32)              \
    X(f32, bf16)             \
    X(f32, f16)              \
    X(f32, f32)

/* X(type, name, rule or meaning). Grid: {rows * ctas, 1, 1}. */
#define GROUPED_SUM_SCALARS(X)                                           \
    X(u64, x, "address of X, a multiple of 16")                          \
    X(u64, d, "address of D, a multiple of 16")                          \
    X(u64, index, "address of row numbers, i32")                         \
    X(u64, weights, "address of weights, f32, or 0: all are 1")          \
    X(u64, x_row, "bytes between rows of X, a multiple of 16")           \
    X(u64, d_row, "bytes between rows of D, a multiple of 16")           \
    X(u64, index_row, "bytes between rows of index")                     \
    X(u64, weight_row, "bytes between rows of weights")                  \
    X(u32, x_rows, "rows of X")                                          \
    X(u32, terms, "terms of a sum")                                      \
    X(u32, n, "columns")                                                 \
    X(u32, ctas, "CTAs of a row: its items / (128 * units), rounded up") \
    X(u32, units, "2 where terms <= 4, else 1")

/* The first scalar stands behind no map: its own separator. */
#define GROUPED_SUM_PARAM_BYTES  (0 GROUPED_SUM_SCALARS(SCALAR_BYTES))

#endif
