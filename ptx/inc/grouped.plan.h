/*
 * What the kernels of the family grouped agree on: the parameter list, the groups, the scales. #defines
 * only: PTX, the runtime, tools/mod and the tests include this.
 *
 *   D[r][c] = sum over blocks b of 128 k: scale_a[r][b] * scale_b[g][c / 128][b] * (A[r] . B[g][c] in b)
 *
 * for every row r of group g; where each column has scales of its own, scale_b[g][c][b]. A and B are e4m3, K-major;
 * the product of a block is the tensor cores' sum, scales and what follows are fp32. Inputs of 16 bits have no scales:
 *
 *   D[r][c] = A[r] . B[g][c], summed up in fp32 by the tensor cores
 *
 * GLU: B has 2n rows, D[r][c] = silu(A[r] . B[g][c]) * (A[r] . B[g][n + c]); a tile has TILE_N / 2 columns of D.
 *
 * Groups. `kind` says where the rows of group g lie:
 *   GROUPED_PLANES    rows 0 .. m - 1 of plane g of A, D and scale_a
 *   GROUPED_COUNTS    rows 0 .. clamp(rows[g], 0, m) - 1 of plane g
 *   GROUPED_OFFSETS   rows up(clamp(rows[g], 0, m)) .. clamp(rows[g + 1], 0, m) - 1 of plane 0; up rounds up
 *                     to a multiple of `align`
 * A group whose end is not behind its first row is empty. Other rows of D are not written.
 *
 * Tiles. A group of r rows has ceil(r / TILE_M) rows of tiles, tiles_n columns. The tiles of all groups, one
 * group behind the other, are numbered from 0; CTA c of n computes tiles c, c + n, ...: a group has as many
 * tiles as its rows need and an empty one none. With `pair` these are pairs, which clusters of two compute:
 * two tiles one below the other, whose halves of B each CTA loads for both; in a last row of tiles that is
 * alone, two tiles side by side, which share A likewise. With `pair` 2, on sm_100f, clusters of four compute two such
 * pairs side by side, and share A, too: two columns of tiles count as one in `tiles_n`. Not with rows by number.
 *
 * map     | tensor          | dimensions, innermost first            | box                         | swizzle
 * map_a   | A, input dtype  | {k, m, groups or 1}                    | {128 B of k, TILE_M, 1}     | 128 B
 * map_b   | B, input dtype  | {k, n, groups}                         | {128 B of k, TILE_N, 1}     | 128 B
 * map_d   | D, output dtype | {whole, m, groups or 1}                | {128 B of columns, 16, 1}   | 128 B
 * map_s   | scale_a, f32    | {m, blocks of k, groups or 1}          | {TILE_M + 4, 1, 1}          | none
 * Without scales map_s is not used, except as follows.
 * With `pair` the boxes of A and B have half as many rows, with 2 those of A a quarter; with GLU those of B always half.
 * On sm_100f, with `pair` and tiles of 256 columns, map_s is that of B in boxes of 64 rows: where the last wave of tiles leaves
 * half of the clusters idle, each of its tiles is two of half as many columns, so a run has more tiles than above.
 * map_d ends at the last whole 16-byte chunk of a row, as in inc/gemm.plan.h.
 */
#ifndef HEWN_PTX_GROUPED_PLAN_H
#define HEWN_PTX_GROUPED_PLAN_H

#include "gemm.plan.h"

#define GROUPED_PLANES  0
#define GROUPED_COUNTS  1
#define GROUPED_OFFSETS 2

/* What scales of B a kernel takes, if any: one for 128 columns, or each column's. GLU: below. */
#define GROUPED_BLOCK_SCALES  0
#define GROUPED_COLUMN_SCALES 1
#define GROUPED_UNSCALED      2
#define GROUPED_UNSCALED_GLU  3

/* Elements of k, and columns of B, that share a scale. */
#define GROUPED_BLOCK 128

#define GROUPED_MAPS(FIRST, NEXT) \
    FIRST(map_a)                  \
    NEXT(map_b)                   \
    NEXT(map_d)                   \
    NEXT(map_s)
#define GROUPED_MAP_COUNT (GROUPED_MAPS(MAP_ONE, MAP_ONE))

/* X(type, name, rule or meaning). m, n, blocks and the tiles of all groups are below 2^31. */
#define GROUPED_SCALARS(X)                                                            \
    X(u64, d, "address of D")                                                         \
    X(u64, d_pitch, "bytes between rows of D")                                        \
    X(u64, d_plane, "bytes between planes of D")                                      \
    X(u64, scale_b, "address of B's scales, f32")                                     \
    X(u64, scale_b_row, "bytes between scales of 128 columns and of the next; where " \
                        "each column has its own, of a block of k and of the next")   \
    X(u64, scale_b_plane, "bytes between scales of groups")                           \
    X(u64, rows, "kind != 0 ? address of counts or offsets, i32 : any")               \
    X(u64, index, "rows of A by number: address of i32 for every row of D; else any") \
    X(u64, a, "the same: address of A")                                               \
    X(u64, a_pitch, "the same: bytes between rows of A; sm_100f: between planes of "  \
                    "scale_a")                                                        \
    X(u64, scale_a, "the same: address of scale_a")                                   \
    X(u64, scale_a_row, "the same: bytes between blocks of k of scale_a")             \
    X(u32, groups, "groups")                                                          \
    X(u32, m, "rows of a plane")                                                      \
    X(u32, n, "n")                                                                    \
    X(u32, k_blocks, "(bytes of a row of A + 127) / 128")                             \
    X(u32, tiles_n, "(n + tile_n - 1) / tile_n")                                      \
    X(u32, raster_rows, "rows of tiles of a group that are walked together")          \
    X(u32, kind, "0 planes, 1 counts, 2 offsets")                                     \
    X(u32, align, "offsets: first rows are rounded up to this; a power of two")       \
    X(u32, pair, "CTAs of a cluster share loads: 1: two, sm_100f: 2: four; else 0")   \
    X(u32, a_rows, "the same: rows of A")                                             \
    X(u32, k, "the same: bytes of a row of A")

#define GROUPED_PARAM_BYTES  (GROUPED_MAP_COUNT * MAP_BYTES GROUPED_SCALARS(SCALAR_BYTES))

#endif
