/*
 * What the kernels of the indexer family agree on: the parameter list, the tiles, the blocks of keys, the
 * shares. #defines only: PTX, the runtime, tools/mod and the tests include this.
 *
 *   out[i][j] = scale[j] * sum_h weight[i][h] * max(q[i][h].k[j], 0), starts[i] <= j < ends[i]
 *
 * Queries. `rows` queries, `queries` of each sequence: query i is query i % queries of sequence
 * i / queries. q[i] has `heads` heads of the key's dimension, at most INDEXER_DIM; all heads see the same
 * key. A NaN product stays NaN.
 *
 * Ranges. Query i sees keys clamp(starts[i], 0, keys) to clamp(ends[i], 0, keys); no starts: from 0, no
 * ends: to `keys`. Elements of out outside the range are not written.
 *
 * Tiles. A variant is (heads, queries): a tile has so many queries of one sequence, each padded with zeros
 * to so many heads; heads * queries columns of an MMA whose rows are keys. `each` tiles a sequence.
 *
 * Blocks of keys, 64 on sm_90a and 128 on sm_100f, from multiples of that. A tile has the blocks from its
 * least start to its largest end. All tiles' blocks, one behind the other, T of them, are divided over the CTAs: CTA c of n
 * computes blocks floor(c T / n) to floor((c + 1) T / n) - 1. No two write the same element.
 *
 * Paging. page_size 0: none; key j of sequence b is row j of plane b. Else it is row j % page_size of plane
 * table[b * table_width + j / page_size]; a plane outside 0 .. planes - 1 reads as zeros, scales included.
 * The scale of row r of plane p lies p * scale_plane + 4 r bytes behind `scales`. A block is loaded in boxes
 * of `box` rows: the largest power of two that divides page_size, a block at most (and that for 0).
 *
 * map   | dimensions, innermost first                  | box
 * map_q | {dim, heads of a query, rows}                | {128, heads, queries} of the variant
 * map_k | {dim, keys or page_size, batch or planes}    | {128, box, 1}
 * of bytes, 128-byte swizzle, no interleave, element strides 1, out of bounds reads as zero.
 */
#ifndef HEWN_PTX_INDEXER_PLAN_H
#define HEWN_PTX_INDEXER_PLAN_H

#include "common.plan.h"

#define INDEXER_DIM       128 /* of a key, at most: one swizzle row of e4m3 */
#define INDEXER_LEAST_BOX 8 /* rows: where the swizzle repeats */
#define INDEXER_MAX_KEYS  0x1fffffff
#define INDEXER_MAX_UNITS 0x7fffffff /* blocks of all tiles */

#define INDEXER_MAPS(FIRST, NEXT) \
    FIRST(map_q)                  \
    NEXT(map_k)
#define INDEXER_MAP_COUNT (INDEXER_MAPS(MAP_ONE, MAP_ONE))

/* X(type, name, rule or meaning) */
#define INDEXER_SCALARS(X)                                               \
    X(u64, out, "address of out, f32")                                   \
    X(u64, weights, "address of rows * heads weights, f32")              \
    X(u64, scales, "address of the first key's scale, f32")              \
    X(u64, starts, "address of rows first keys, or 0")                   \
    X(u64, ends, "address of rows ends of keys, or 0")                   \
    X(u64, table, "address of the block table, or 0")                    \
    X(u64, out_row, "bytes between rows of out")                         \
    X(u64, weight_row, "bytes between rows of weights")                  \
    X(u64, scale_plane, "bytes between scales of sequences or of pages") \
    X(u32, heads, "heads of a query, at most the variant's")             \
    X(u32, queries, "queries of a sequence")                             \
    X(u32, each, "tiles of a sequence")                                  \
    X(u32, tiles, "tiles of all sequences")                              \
    X(u32, keys, "keys of a sequence, or the most of any")               \
    X(u32, page_size, "keys in a page, or 0")                            \
    X(u32, planes, "pages in the pool, or batch")                        \
    X(u32, table_width, "entries of a sequence in the table")            \
    X(u32, box, "rows of a box of map_k")                                \
    X(u32, bulk, "1: box is a block, scales and scale_plane are multiples of 16")

#define INDEXER_PARAM_BYTES  (INDEXER_MAP_COUNT * MAP_BYTES INDEXER_SCALARS(SCALAR_BYTES))

#endif
