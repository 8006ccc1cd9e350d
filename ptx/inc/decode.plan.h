/*
 * Decode: attention with few query rows and many keys. What the kernels, the runtime, tools/mod and
 * the tests agree on. #defines only.
 *
 *   O[i] = sum_j exp(scale q_i.k_j) V[j] / (sum_j exp(scale q_i.k_j) + exp(sink)),  j visible to i
 *
 * Rows, masks, soft cap, lengths, paging and outputs are those of attention.plan.h, with one source, without
 * windows ahead of each other's parts: a row tile has `rows` = tokens * pack rows, at most
 * TILE_ROWS (the variant's), row r being token r / pack and head r % pack of them.
 *
 * Tiles. Those of a sequence are numbered (kv_head * head_blocks + head_block) * row_tiles +
 * row_tile, row_tiles = ceil(queries / tokens) of this sequence. All of them visit the blocks of
 * DECODE_BLOCK keys, from multiples of it, that any query of the sequence can see. How tiles and
 * blocks are shared among CTAs: split.plan.h.
 *
 * tree: query i of a sequence sees key keys - queries + j, 0 <= j < 64, only where bit j of its mask
 * is set; masks are numbered as rows of q_len a sequence, packed as tokens.
 *
 * With `cluster` the grid is one cluster a tile: sm_90a/decode_cluster.inc. Then `groups` is 1.
 *
 * Where a tile has two or four KV heads (sm_90a/decode_pair.inc, decode_quad.inc), they count as one head of
 * so many times the columns and the group, and boxes of Q have pack / 2 or pack / 4 rows of a token.
 *
 * With `groups` > 1 group i has the tiles of kv_head * head_blocks + head_block = i, and those of a
 * sequence are its row tiles.
 *
 * map   | dimensions, innermost first                              | box
 * map_q | {qk_dim, group, kv_heads, q_len or tokens, batch}        | {64, pack, 1, tokens, 1}
 * map_k | {qk_dim, kv_len or tokens or page, kv_heads, batch or pages} | {128 B, box, 1, 1}
 * map_v | {v_dim, likewise}                                        | {128 B, box, 1, 1}
 * box: a power of two, at most DECODE_BLOCK; where paged it divides page_size.
 * With `gather` keys are paged and fetched row by row instead, and no map is read. Packed tokens:
 * batch is 1. 128-byte swizzle, no interleave, element strides 1, out of bounds reads as zero.
 */
#ifndef HEWN_PTX_DECODE_PLAN_H
#define HEWN_PTX_DECODE_PLAN_H

#include "split.plan.h"

#define DECODE_BLOCK     128
#define DECODE_CHUNK     16         /* blocks of a part at fixed counts: 2048 keys */
#define DECODE_WHOLE     0x400000   /* or as many: no tile has more, so CTAs take whole tiles */
#define DECODE_UNBOUNDED 0x20000000 /* ATTENTION_UNBOUNDED: positions stay below 2^29 */

#define DECODE_MAPS(FIRST, NEXT) \
    FIRST(map_q)                 \
    NEXT(map_k)                  \
    NEXT(map_v)
#define DECODE_MAP_COUNT (DECODE_MAPS(MAP_ONE, MAP_ONE))

/* X(type, name, rule or meaning) */
#define DECODE_SCALARS(X)                                                     \
    X(u64, k, "address of K")                                                 \
    X(u64, v, "address of V")                                                 \
    X(u64, o, "address of O")                                                 \
    X(u64, lse, "address of the log-sum-exps, f32, or 0")                     \
    X(u64, sink, "address of q_heads sink logits, f32, or 0")                 \
    X(u64, cu_q, "address of batch + 1 query offsets, or 0")                  \
    X(u64, window, "address of batch window lengths, or 0")                   \
    X(u64, lengths, "address of key lengths or offsets, or 0")                \
    X(u64, table, "address of the block table, or 0")                         \
    X(u64, tree, "address of a u64 mask a query, or 0")                       \
    X(u64, k_scale, "e4m3: address of K's scales, f32, or 0")                 \
    X(u64, v_scale, "e4m3: address of V's scales, f32, or 0")                 \
    X(u64, part_o, "address of the parts' rows of v_dim, f32: split.plan.h")  \
    X(u64, part_lse, "address of their log2-sum-exps, f32")                   \
    X(u64, records, "address of the records, or 0: no tile is split")         \
    X(u64, k_token, "bytes between tokens of K")                              \
    X(u64, k_head, "bytes between heads of K")                                \
    X(u64, k_plane, "bytes between pages of K")                               \
    X(u64, v_token, "bytes between tokens of V")                              \
    X(u64, v_head, "bytes between heads of V")                                \
    X(u64, v_plane, "bytes between pages of V")                               \
    X(u64, o_token, "bytes between tokens of O")                              \
    X(u64, o_head, "bytes between heads of O")                                \
    X(u64, o_batch, "bytes between sequences of O; packed: 0")                \
    X(u64, lse_token, "bytes between tokens of lse")                          \
    X(u64, lse_head, "bytes between their heads")                             \
    X(u64, lse_batch, "bytes between their sequences; packed: 0")             \
    X(f32, scale_log2, "scale * log2(e), or 2 cap log2(e): attention.plan.h") \
    X(u32, batch, "batch")                                                    \
    X(u32, kv_heads, "kv_heads")                                              \
    X(u32, head_blocks, "(group + pack - 1) / pack")                          \
    X(u32, group, "q_heads / kv_heads")                                       \
    X(u32, pack, "query heads in a tile")                                     \
    X(u32, tokens, "query tokens in a tile: pack * tokens <= TILE_ROWS")      \
    X(u32, q_len, "queries of a sequence, or the most of any")                \
    X(u32, kv_len, "keys of a sequence, or the most of any")                  \
    X(u32, offsets, "1: lengths are offsets")                                 \
    X(u32, left, "keys seen before a query's position")                       \
    X(u32, right, "keys seen after a query's position")                       \
    X(u32, page_size, "keys in a page, or 0")                                 \
    X(u32, pages, "pages in the pool")                                        \
    X(u32, table_width, "entries of a sequence in the table")                 \
    X(u32, box, "rows of a box")                                              \
    X(u32, gather, "1: keys are fetched row by row")                          \
    X(u32, out_type, "ATTENTION_OUT_F32, _F16 or _BF16")                      \
    X(u32, groups, "1, or kv_heads * head_blocks: see split.plan.h")          \
    X(f32, cap_log2, "2 scale log2(e) / cap, or 0: no soft cap")              \
    X(u32, chunk, "blocks of a part at fixed counts, or 0: split.plan.h")     \
    X(u32, chunks, "with chunk: parts of a tile at most")                     \
    X(u32, row_tiles, "with chunk: row tiles of a head block at most")        \
    X(u32, tiles, "with chunk or cluster: tiles of a sequence at most")       \
    X(u32, cluster, "CTAs of a cluster, which has a tile; 0: even shares")    \
    X(u32, k_scale_step, "1: a scale a KV head, 0: one for all")              \
    X(u32, v_scale_step, "1: a scale a KV head, 0: one for all")

#define DECODE_SCALAR_COUNT (DECODE_SCALARS(SCALAR_ONE))
#define DECODE_PARAM_BYTES  (DECODE_MAP_COUNT * MAP_BYTES DECODE_SCALARS(SCALAR_BYTES))

#endif
