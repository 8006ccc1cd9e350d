/*
 * What the GEMM kernels of every target agree on: the parameter list and the shape of one staged
 * output row. #defines only: PTX, the runtime and tools/mod include this.
 *
 *   D[b] = A[b] * transpose(B[b]),  A: m x k, B: n x k, D: m x n, rows contiguous
 *
 * That is, A and B are K-major; `mode` says where one is MN-major: A as k rows of m, B as k of n.
 *
 * Parameters, in order: three tensor maps, then scalars of 64 and 32 bits, no gaps.
 *
 *   map    | tensor          | dimensions {0, 1, 2} | box {0, 1, 2}                 | swizzle
 *   map_a  | A, input dtype  | {k, m, batch or 1}   | {TILE_K, TILE_M, 1}           | 128 B
 *          | MN-major        | {m, k, batch or 1}   | {64, TILE_K, 1}               | 128 B
 *   map_b  | B, input dtype  | {k, n, batch or 1}   | {TILE_K, TILE_N, 1}           | 128 B
 *          | GLU             | {k, 2n, batch or 1}  | {TILE_K, TILE_N / 2, 1}       | 128 B
 *          | MN-major        | {n, k, batch or 1}   | {64, TILE_K, 1}               | 128 B
 *   map_d  | D, output dtype | {whole, m, batch}    | {128 B of columns, D_ROWS, 1} | 128 B
 *
 * TMA stores clip a row at multiples of 16 bytes only: what lies between the end of a ragged row
 * and the next such multiple would be overwritten (measured on an H200; loads clip by element). So
 * map_d ends at the last whole 16-byte chunk of a row, whole = n rounded down to a chunk, and the
 * kernels store the up to 15 bytes behind it themselves (inc/tail.inc). Where a row is shorter than
 * a chunk, map_d has one chunk and no store goes through it.
 *
 * No interleave, element strides 1, out of bounds reads as zero. TILE_* and D_ROWS are those of
 * the target's own gemm.plan.h.
 *
 * GEMM_SCALARS(X): X(type, name, rule), the rule in C over the problem (m, n, k, batch), the tile
 * shape and other scalars. Beyond the rules: every value is at least 1 (where 0 means something,
 * 0), and m, n, k and `tiles` are below 2^31 (coordinates are signed 32-bit; the tile counter must
 * not wrap).
 */
#ifndef HEWN_PTX_GEMM_PLAN_H
#define HEWN_PTX_GEMM_PLAN_H

#include "common.plan.h"

/* FIRST(name) NEXT(name) ...: in PTX, only NEXT writes a comma. */
#define GEMM_MAPS(FIRST, NEXT) \
    FIRST(map_a)               \
    NEXT(map_b)                \
    NEXT(map_d)

/* Of the kernels of rows of any length (GEMM_ODD_...). */
#define GEMM_ODD_MAPS(FIRST, NEXT) \
    FIRST(map_a0)                  \
    NEXT(map_a1)                   \
    NEXT(map_a2)                   \
    NEXT(map_a3)                   \
    NEXT(map_a4)                   \
    NEXT(map_a5)                   \
    NEXT(map_a6)                   \
    NEXT(map_a7)                   \
    NEXT(map_b0)                   \
    NEXT(map_b1)                   \
    NEXT(map_b2)                   \
    NEXT(map_b3)                   \
    NEXT(map_b4)                   \
    NEXT(map_b5)                   \
    NEXT(map_b6)                   \
    NEXT(map_b7)

#define GEMM_SCALARS(X)                                                                     \
    X(u64, d, "address of D")                                                               \
    X(u64, d_pitch, "bytes between rows of D")                                              \
    X(u64, d_plane, "bytes between problems of D")                                          \
    X(u64, c, "finish & 2 ? address of C : 0")                                              \
    X(u64, c_pitch, "bytes between rows of C")                                              \
    X(u64, c_plane, "bytes between problems of C")                                          \
    X(u64, bias, "finish & 12 ? address of bias : 0")                                       \
    X(u64, scale_a, "address of an f32, with finish & 64 of m, or 0")                       \
    X(u64, scale_b, "address of an f32, with finish & 128 of n, or 0")                      \
    X(u32, m, "m")                                                                          \
    X(u32, n, "n")                                                                          \
    X(u32, k_blocks, "(k + tile_k - 1) / tile_k")                                           \
    X(u32, tiles_m, "(m + tile_m - 1) / tile_m")                                            \
    X(u32, tiles_n, "(n + tile_n - 1) / tile_n")                                            \
    X(u32, tiles, "tiles_m * tiles_n * batch")                                              \
    X(u32, step_a, "stride_a != 0")                                                         \
    X(u32, step_b, "stride_b != 0")                                                         \
    X(u32, raster_rows, "min(tiles_m, raster_rows)")                                        \
    X(u32, mode, "a_mn + 2 * b_mn; fp8: a_e5m2 + 2 * b_e5m2 + 4 * full; 128 glu")           \
    X(u32, finish, "1 factors, 2 C, 4, 8 bias, 16 .. act, 64, 128 scales of rows, columns") \
    X(u32, columns, "of D in a tile, where the plan decides it; else 0")                    \
    X(u32, stages, "of the ring, k-blocks to fetch early or teams, as the plan says; or 0") \
    X(f32, alpha, "finish & 1 ? alpha : any")                                               \
    X(f32, beta, "finish & 2 ? beta : any")

#define GEMM_MAP_COUNT    (GEMM_MAPS(MAP_ONE, MAP_ONE))
#define GEMM_SCALAR_COUNT (GEMM_SCALARS(SCALAR_ONE))
#define GEMM_PARAM_BYTES  (GEMM_MAP_COUNT * MAP_BYTES GEMM_SCALARS(SCALAR_BYTES))

/* Bits of `mode`. 16-bit inputs: the operand is MN-major. Of 8 bits: it is e5m2, not e4m3; sums are
 * promoted, those of each k-block added in fp32. On sm_100f all sums are fp32. */
#define GEMM_MODE_A_MN    1
#define GEMM_MODE_B_MN    2
#define GEMM_MODE_A_E5M2  1
#define GEMM_MODE_B_E5M2  2
#define GEMM_MODE_PROMOTE 4
/* Two CTAs of a cluster share loads, in kernels whose plan says SHARES: PAIR_M: their tiles lie one below
 * the other, and each loads half of B's; PAIR_N: side by side, half of A's. One of them at most. On sm_100f two
 * pairs side by side, in kernels whose SIDES is 2; the box of A then has half the rows. */
#define GEMM_MODE_PAIR_M 8
#define GEMM_MODE_PAIR_N 16
/* On sm_100f, in kernels that can do GEMM_CAN_GLU beside all else: it is done, see there. The tile of D has half
 * the columns, a box of B half the rows, in a pair as many. */
#define GEMM_MODE_GLU 128
/* Kernels of kind SPREAD: a cluster is a rectangle of tiles, 1 << LOG_M below each other and 1 << LOG_N side by
 * side. Bits 0-1 from there on: the logarithm. */
#define GEMM_MODE_LOG_M 8
#define GEMM_MODE_LOG_N 10
/* B is not written by earlier grids of the stream, so a kernel may read it before these are complete: sm_90a's few, and
 * no other. */
#define GEMM_MODE_CONSTANT_B (1 << 26)
/* Kernels that can do GEMM_CAN_LOOSE: the operand's addresses or strides are not multiples of 16 bytes.
 * The parameter of its tensor map then holds GEMM_LOOSE_... in place of a map. */
#define GEMM_MODE_LOOSE_A  32
#define GEMM_MODE_LOOSE_B  64
#define GEMM_LOOSE_ADDRESS 0  /* u64: of the first element */
#define GEMM_LOOSE_PITCH   8  /* u64: bytes between rows, as they are stored */
#define GEMM_LOOSE_PLANE   16 /* u64: bytes between problems */
#define GEMM_LOOSE_OUTER   24 /* u32: rows */
#define GEMM_LOOSE_INNER   28 /* u32: elements of a row */

/* Kernels with a tensor map for every eighth row of A and of B, as they are stored: 16-bit rows
 * that are CLASSES apart begin at the same place among 16 bytes, whatever their pitch. Map i begins
 * at the 16 bytes that hold the first element of row i. Its dimensions are {elements from there to
 * the row's end, rows i, i + CLASSES, .., batch or 1}, its box is {ROW_BYTES, CLASSES rows, 1}, not
 * swizzled. Where row i does not exist, it is row 0's map. `mode` says where rows begin: SHIFT_A:
 * bits 0-2: the element of 16 bytes with which the first row begins; 3-5: how many elements further
 * on each next one begins. SHIFT_B likewise. TAIL: bits 0-5: rows of k in the last k-block, less 1. */
#define GEMM_ODD_CLASSES   8
#define GEMM_ODD_ROW_BYTES 144
#define GEMM_ODD_SHIFT_A   8
#define GEMM_ODD_SHIFT_B   14
#define GEMM_ODD_TAIL      20

/* Bits of `finish`; with none, D is the sums, rounded. Else
 *   D = act(alpha * scale_a * scale_b * sum + beta * C + bias[column])
 * The factors with SCALE (of the scales, those that have an address), C of D's dtype, BIAS of D's
 * dtype or, BIAS_F32, fp32; one of the activations or none. ROWS, in modules that can do SCALES: scale_a has m
 * numbers, one a row, those of each problem of A from a multiple of 4 numbers on; COLUMNS: likewise
 * scale_b, n numbers. */
#define GEMM_FINISH_SCALE    1
#define GEMM_FINISH_C        2
#define GEMM_FINISH_BIAS     4
#define GEMM_FINISH_BIAS_F32 8
#define GEMM_FINISH_ACT      0x30 /* which: */
#define GEMM_FINISH_RELU     0x10
#define GEMM_FINISH_GELU     0x20
#define GEMM_FINISH_SILU     0x30
#define GEMM_FINISH_ROWS     0x40
#define GEMM_FINISH_COLUMNS  0x80

/* Bits of a kernel's CAN, what it does beyond sums of 16-bit K-major operands: MN-major ones,
 * `finish`, 8-bit ones; LOOSE: every matrix and bias may begin at any element, rows be of any
 * length; PLANE: then problems of A and B may be any number of bytes apart; F32: results of 32
 * bits; KINDS: modules of e4m3 and of s8 alone; SCALES: a scale for each row and column. GLU, and nothing
 * else: D[b] = silu(x) * y, x and y the first and the last n columns of alpha * scale_a * scale_b *
 * A[b] * transpose(B[b]), B: 2n x k; a tile of D has half of the tile's columns. */
#define GEMM_CAN_MN     1
#define GEMM_CAN_FINISH 2
#define GEMM_CAN_FP8    4
#define GEMM_CAN_LOOSE  8
#define GEMM_CAN_PLANE  16
#define GEMM_CAN_F32    32
#define GEMM_CAN_KINDS  64
#define GEMM_CAN_GLU    128
#define GEMM_CAN_SCALES 256

/* What a variant's KINDS says: there are modules of e4m3 and of s8 alone; it has B's rows twice. */
#define GEMM_KINDS_TYPES 1
#define GEMM_KINDS_GLU   2
/* And: the plan decides a side of the tile (sm_90a). */
#define GEMM_KINDS_FIT 4
/* `stages` of such kernels: the ring's, and from bit FIT_FETCHES on the k-blocks to fetch early. */
#define GEMM_FIT_RING    15
#define GEMM_FIT_FETCHES 4

/* Bytes of A's or B's row in a k-block, and elements of an MN-major box's row: one swizzle row. */
#define GEMM_ROW_BYTES SWIZZLE_BYTES
#define GEMM_MN_BOX    (SWIZZLE_BYTES / 2)

/* One row of a staged output box: one swizzle row. */
#define GEMM_D_ROW_BYTES SWIZZLE_BYTES
/* What a TMA store writes whole. */
#define GEMM_D_CHUNK_BYTES 16

/* Parts of K (inc/parts.inc): a warp's sums are GEMM_PART_BLOCKS blocks of 8 columns, and a block
 * is a slot of 16 bytes a lane. A part gets ceil(blocks / parts) of them from each of the others:
 * of up to 8 parts, 7 send the most. */
#define GEMM_PART_BLOCKS     8
#define GEMM_PART_SLOT_BYTES 512
#define GEMM_PART_SLOTS      12

#endif
