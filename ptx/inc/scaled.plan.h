/*
 * What the kernels of block-scaled products agree on: the parameter list and the layout of scales. They belong to
 * the family grouped and share its groups and tiles (grouped.plan.h). #defines only: PTX, the runtime, tools/mod
 * and the tests include this.
 *
 *   D[r][c] = alpha[g] * sum over k: (scale_a[r][k / v] * A[r][k]) * (scale_b[g][c][k / v] * B[g][c][k])
 *
 * for every row r of group g; v elements of k share a scale. Kinds:
 *   mx8   A and B each e4m3, e5m2 or e2m1; scales ue8m0, v = 32
 *   mx4   A and B e2m1; scales ue8m0, v = 32
 *   nv4   A and B e2m1; scales ue4m3, v = 16
 *   mw8   as mx8; v = 32 or 128; scales are words of 4 of them
 *   h16   A and B bf16 or both f16; no scales; D is e4m3 or e2m1
 *
 * Scales lie in atoms of 512 bytes: 128 rows and 4 scales along k; that of row r and scale j of an atom is byte
 * (r % 32) * 16 + r / 32 * 4 + j. Atoms of the same rows lie one behind another along k. Of mw8 a word has 4 scales
 * along k of a row, the first in its lowest byte; words of neighbouring rows are neighbours.
 *
 * map     | tensor          | dimensions, innermost first                  | box                    | swizzle
 * map_a   | A               | {k, m, groups or 1}                          | {128 bytes, CTA_M, 1}  | 128 B
 * map_b   | B               | {k, n, groups}                               | {128 bytes, LOAD_N, 1} | 128 B
 * map_d   | D, output dtype | {whole, m, groups or 1}                      | {128 bytes, 32, 1}     | 128 B
 * map_sa  | scale_a, u32    | {128, atoms along k, m / 128, groups or 1}   | {128, ATOMS, 1, 1}     | none
 * map_sb  | scale_b, u32    | {128, atoms along k, n / 128, groups}        | {128, ATOMS, LOAD_ATOMS, 1} | none
 * mw8:
 * map_sa  | scale_a, u32    | {m, words along k, groups or 1}              | {CTA_M, 1, 1}          | none
 * map_sb  | scale_b, u32    | {n, words along k, groups}                   | {128 LOAD_ATOMS, 1, 1} | none
 * of tiles of 192 columns of pairs, with atoms:
 * map_n   | B               | as map_b                                     | {128 bytes, 32, 1}     | 128 B
 * Others do not use map_n, h16 neither map_sa nor map_sb.
 * D of e4m3 or e2m1 has scales, in atoms along n: as a product with k = n reads scale_a. It and they are stored by lanes,
 * not through map_d.
 *
 * CTA_M and LOAD_N are a tile's rows and columns, of a pair of CTAs half of them; tiles in the scalars' rules are the
 * pair's, or, of a cluster of four CTAs, those of both pairs; a box of A then has half of CTA_M. A and B are bytes, of
 * h16 their dtype; of mx8 and mw8, e2m1 is 16U4_ALIGN16B, which TMA widens to a byte an element. map_d ends at the last whole 16-byte chunk
 * of a row, as in gemm.plan.h.
 *
 * Where map_n is used, and 128 or 64 columns of each pair suffice for the last column of tiles, those tiles are so narrow, and
 * come behind all groups' others: waves of whole tiles end with them.
 */
#ifndef HEWN_PTX_SCALED_PLAN_H
#define HEWN_PTX_SCALED_PLAN_H

#include "grouped.plan.h"

#define SCALED_ATOM_BYTES  512
#define SCALED_ATOM_ROWS   128
#define SCALED_ATOM_SCALES 4

/* Of mw8: a scale for 128 elements, so a word for 4 k-blocks. Its log2, in a bit of `formats` that an instruction
 * descriptor has 0. */
#define SCALED_COARSE 2

/* What is done with the sums before they are quantised. SWIGLU: B's rows are 32 of gate and 32 of up in turn, tiles_n is
 * that of 2n columns. */
#define SCALED_ACT_RELU   1
#define SCALED_ACT_GELU   2
#define SCALED_ACT_SILU   3
#define SCALED_ACT_SWIGLU 4

#define SCALED_MAPS(FIRST, NEXT) \
    FIRST(map_a)                 \
    NEXT(map_b)                  \
    NEXT(map_d)                  \
    NEXT(map_sa)                 \
    NEXT(map_sb)                 \
    NEXT(map_n)
#define SCALED_MAP_COUNT (SCALED_MAPS(MAP_ONE, MAP_ONE))

/* X(type, name, rule or meaning). m, n, blocks and the tiles of all groups are below 2^31. */
#define SCALED_SCALARS(X)                                                                  \
    X(u64, d, "address of D")                                                              \
    X(u64, d_pitch, "bytes between rows of D")                                             \
    X(u64, d_plane, "bytes between planes of D")                                           \
    X(u64, rows, "kind != 0 ? address of counts or offsets, i32 : any")                    \
    X(u64, alpha, "address of an f32 for each group, or 0: 1")                             \
    X(u32, groups, "groups")                                                               \
    X(u32, m, "rows of a plane")                                                           \
    X(u32, n, "n")                                                                         \
    X(u32, k_blocks, "blocks of 128 k, of mx4 and nv4 of 256, of h16 of 64")               \
    X(u32, tiles_n, "(n + tile_n - 1) / tile_n")                                           \
    X(u32, raster_rows, "rows of tiles of a group that are walked together")               \
    X(u32, kind, "0 planes, 1 counts, 2 offsets")                                          \
    X(u32, align,                                                                          \
      "offsets: a power of two, 128 or more, of mw8 4, of h16 1; first rows are rounded "  \
      "up to this")                                                                        \
    X(u32, formats,                                                                        \
      "A's format << 7 | B's << 10, as in an instruction descriptor; of mw8 with "         \
      "v = 128 also SCALED_COARSE")                                                        \
    X(u32, act, "of a quantised D: SCALED_ACT_..., as hewn_act; else 0")                   \
    X(u64, scale_d, "the same: address of D's scales; else any, as are those that follow") \
    X(u64, scale_d_row, "the same: bytes between atoms of 128 rows and of the next")       \
    X(u64, scale_d_plane, "the same: bytes between scales of planes of D")                 \
    X(u64, bias, "the same: address of an f32 for each row of B of each group, or 0: 0")   \
    X(u64, factor, "the same: address of an f32 for each group, or 0: 1")

#define SCALED_PARAM_BYTES  (SCALED_MAP_COUNT * MAP_BYTES SCALED_SCALARS(SCALAR_BYTES))

#endif
