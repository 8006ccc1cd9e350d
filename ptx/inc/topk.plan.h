/*
 * What the top-k kernel needs on every target: the parameter list, threads, shared memory. #defines only:
 * PTX, the runtime, tools/mod and the tests include this.
 *
 *   indices[r] = the columns of the k largest of values[r][starts[r] .. ends[r] - 1], ascending
 *
 * Rows. `rows` rows of f32, row_bytes apart, a multiple of 4. Row r's columns are clamp(starts[r], 0,
 * columns) to clamp(ends[r], 0, columns) - 1; no starts: from 0, no ends: to `columns`. No others are read.
 *
 * Order. -0 equals 0. Of equal elements, lower columns come first. NaN and -infinity are never chosen: a row
 * with fewer other elements gives fewer columns. Entries behind them are -1.
 *
 * Output. Entry e of row r lies r * index_row + 4 e bytes behind `indices`. With a page size, column j
 * becomes row j of a paged pool, table[(r / queries) * table_width + j / page_size] * page_size +
 * j % page_size; -1 where that table entry is not in 0 .. planes - 1.
 *
 * Clusters. The CTAs of a cluster, 1 to TOPK_MOST_CTAS, share a row; grid.x is rows times their number. Of
 * its part of a row, a CTA keeps the first 4 * cached elements in dynamic shared memory, 16 * cached bytes;
 * the rest is read again for each pass.
 */
#ifndef HEWN_PTX_TOPK_PLAN_H
#define HEWN_PTX_TOPK_PLAN_H

#include "common.plan.h"

#define TOPK_MAX_K       2048
#define TOPK_MAX_COLUMNS 0x1fffffff
#define TOPK_MOST_CTAS   8 /* a portable cluster */

#define TOPK_THREADS      1024
#define TOPK_WARPS        (TOPK_THREADS / 32)
#define TOPK_LOG_BINS     11
#define TOPK_BINS         (1 << TOPK_LOG_BINS) /* two a thread */
#define TOPK_STATIC_BYTES 17408                /* bound on histograms and sums */
#define TOPK_CACHED       ((SM_SHARED_BYTES - TOPK_STATIC_BYTES) / 16) /* at most */
#define TOPK_SHARED       (16 * TOPK_CACHED)                           /* dynamic, at most */

/* X(role, first warp, warps) */
#define TOPK_ROLES(X) X(select, 0, TOPK_WARPS)

/* X(storage, writers, readers). Readers may be of other CTAs of the cluster. Dynamic shared memory is not listed:
 * its size is the launch's. */
#define TOPK_FLOWS(X)           \
    X(bins, select, select)     \
    X(warps_of, select, select) \
    X(found, select, select)    \
    X(bounds, select, select)   \
    X(totals, select, select)

/* X(type, name, rule or meaning) */
#define TOPK_SCALARS(X)                                       \
    X(u64, values, "address of the rows, f32")                \
    X(u64, indices, "address of the columns, i32")            \
    X(u64, starts, "address of rows first columns, or 0")     \
    X(u64, ends, "address of rows ends of columns, or 0")     \
    X(u64, table, "address of the block table, or 0")         \
    X(u64, row_bytes, "bytes between rows of values")         \
    X(u64, index_row, "bytes between rows of indices")        \
    X(u32, columns, "columns of a row, or the most of any")   \
    X(u32, k, "entries of a row of indices")                  \
    X(u32, queries, "rows of a sequence")                     \
    X(u32, page_size, "columns in a page, or 0")              \
    X(u32, planes, "pages in the pool")                       \
    X(u32, table_width, "entries of a sequence in the table") \
    X(u32, cached, "16-byte units in dynamic shared memory")

/* The first scalar stands behind no map: its own separator. */
#define TOPK_PARAM_BYTES  (0 TOPK_SCALARS(SCALAR_BYTES))

#endif
