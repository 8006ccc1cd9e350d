/*
 * What the kernels of products with 4-bit weights agree on: the parameter list, the packed weights.
 * #defines only: PTX, the runtime, tools/mod and the tests include this.
 *
 *   D[i][j] = sum over groups g: scale[j][g] * sum over k of g: X[i][k] * (W[j][k] - zero[j][g])
 *
 * X is m x k of 16-bit floats, W is n x k. A k-block is 128 k, a chunk 64 rows of W. n and k are
 * padded with zero weights up to whole chunks and k-blocks.
 *
 * Packed weights. Block (kb, c), of k-block kb and chunk c, begins at byte
 * (kb * chunks + c) * W4_BLOCK_BYTES:
 *
 *   0                    words of half 0 (64 k), then of half 1: 16 bytes for each of 128 threads
 *   4096                 scales: a row of 64 for each group of the block, 16 bits each
 *   4096 + 128 * groups  zero points of uint4: likewise, 8 bits each; else absent
 *
 * groups: groups of a k-block, 1, 2 or 4. A scale for a whole row stands once for each k-block, as
 * for groups of 128. In a row of 64 scales or zero points, entry 2 * (8 * w + r) is that of row
 * 16 * w + r of the chunk, the next entry that of row 16 * w + r + 8; w < 4, r < 8.
 *
 * Thread t = 32 * w + 4 * r + q of a warpgroup holds word s, s < 4, of a half h: its 8 elements are
 * of rows 16 * w + r (low) and 16 * w + r + 8 (high) of the chunk and of columns
 * 64 * h + 16 * s + 2 * q + {0, 1, 8, 9} of the k-block: an A fragment of m64nNk16. Its nibbles, the
 * lowest first: low 0, high 0, low 8, high 8, low 1, high 1, low 9, high 9. int4 is stored with its
 * sign bit inverted, so that 8 stands for 0.
 *
 * map   | dimensions, innermost first | box
 * map_x | {k, m, 1}                   | {64, rows, 1}
 * of 16-bit floats, 128-byte swizzle, no interleave, element strides 1, out of bounds reads as zero.
 */
#ifndef HEWN_PTX_W4_PLAN_H
#define HEWN_PTX_W4_PLAN_H

#include "common.plan.h"

#define W4_BLOCK_K     128
#define W4_HALF_K      64
#define W4_CHUNK       64
#define W4_WORDS_BYTES (W4_CHUNK * W4_BLOCK_K / 2)
#define W4_HALF_BYTES  (W4_WORDS_BYTES / 2)
#define W4_SCALE_ROW   (2 * W4_CHUNK)
#define W4_ZERO_ROW    W4_CHUNK

/* zeros: 1 with zero points, else 0. */
#define W4_BLOCK_BYTES(groups, zeros) \
    (W4_WORDS_BYTES + (groups) * (W4_SCALE_ROW + (zeros)*W4_ZERO_ROW))

#define W4_MAX_GROUPS 4
#define W4_MAX_BYTES  W4_BLOCK_BYTES(W4_MAX_GROUPS, 1)

/* `out`: the type of D. */
#define W4_OUT_F32  0
#define W4_OUT_BF16 1
#define W4_OUT_F16  2

#define W4_MAPS(FIRST, NEXT) FIRST(map_x)
#define W4_MAP_COUNT         (W4_MAPS(MAP_ONE, MAP_ONE))

/* X(type, name, rule or meaning) */
#define W4_SCALARS(X)                                                                 \
    X(u64, w, "address of the packed weights, a multiple of 16")                      \
    X(u64, d, "address of D")                                                         \
    X(u64, d_row, "bytes between rows of D")                                          \
    X(u32, m, "rows of D")                                                            \
    X(u32, n, "columns of D")                                                         \
    X(u32, k_blocks, "k-blocks")                                                      \
    X(u32, all_chunks, "chunks of W")                                                 \
    X(u32, tile_chunks, "chunks of a tile, 1 to 4")                                   \
    X(u32, tiles_n, "tiles of W")                                                     \
    X(u32, rows, "rows of a tile of D: 8, 16, 32 or 64, at most the variant's")       \
    X(u32, groups, "groups of a k-block: 1, 2 or 4")                                  \
    X(u32, stages, "stages of the ring, at least 2 where a part has as many k-blocks") \
    X(u32, out, "type of D: W4_OUT_...")                                              \
    X(u32, wide, "1: D and its rows begin at multiples of 4 elements, else 0")

#define W4_SCALAR_COUNT (W4_SCALARS(SCALAR_ONE))
#define W4_PARAM_BYTES  (W4_MAP_COUNT * MAP_BYTES W4_SCALARS(SCALAR_BYTES))

#endif
