/*
 * What the attention kernels of every target agree on: the parameter list, the rows of a tile, the
 * KV blocks, the masks. #defines only: PTX, the runtime, tools/mod and the tests include this.
 *
 *   O[i] = sum_j exp(scale q_i.k_j) V[j] / (sum_j exp(scale q_i.k_j) + exp(sink)),  j visible to i
 *
 * Rows. A tile has TILE_ROWS rows (the target's plan): `tokens` query tokens of `pack` query heads
 * each, pack * tokens <= TILE_ROWS; row r is token r / pack, head r % pack of them. Rows from
 * pack * tokens on are idle. The heads of a tile share one KV head: query head = kv_head * group +
 * head_block * pack + r % pack, and is idle where head_block * pack + r % pack >= group.
 *
 * Masks. A source is a set of keys: source 0, and source 1 where `sources` is 2. Query token i (of
 * q_len in its sequence) stands at position p = i + kv_len - q_len of a source and sees its keys
 * j with  max(0, p - left) <= j < min(kv_len, p + right + 1):  causal is right = 0; no bound is
 * ATTENTION_UNBOUNDED. With `window` the sequence's left is window[sequence] - 1.
 *
 * Soft cap. With cap_log2 a score scale q.k becomes cap * tanh(scale q.k / cap), before masks and sink:
 * products become tanh(..) / 2 = 1/2 - 1 / (1 + 2^(cap_log2 q.k)), and scale_log2 is 2 cap log2(e).
 *
 * Blocks. Keys are taken in blocks of ATTENTION_BLOCK from multiples of it. A work item visits the
 * blocks of source 0 that any of its rows can see, then those of source 1; split s of `splits`
 * takes blocks [n * s / splits, n * (s + 1) / splits) of these n.
 *
 * Work items, in the order in which the persistent CTAs take them (CTA c of the grid: items c,
 * 2 grid - 1 - c, 2 grid + c, 4 grid - 1 - c, ...; on sm_90a of another order, by sections of KV
 * heads: sm_90a/attention_load.inc):
 *   item = (((q_block * batch + sequence) * kv_heads + kv_head) * head_blocks + head_block)
 *          * v_halves + v_half) * splits + split,   the q_block counted from the last, which is the
 * longest under a causal mask. A q_block is ITEM_TILES tiles (the target's plan). v_halves is 2
 * where a work item computes half of V's columns only (the target's plan), else 1.
 *
 * Lengths. lengths_N: address of int32, or 0: every sequence has kv_len_N keys. offsets_N 1: it is
 * batch + 1 offsets into packed tokens (cu_seqlens); 0: batch lengths, tensors padded or paged.
 * cu_q: address of batch + 1 int32 offsets, or 0: every sequence has q_len queries. Lengths below 0
 * count as 0, above q_len and kv_len as these.
 *
 * Paging. page_size_N 0: none. Else key j of sequence b is row j % page_size of page
 * table_N[b * table_width_N + j / page_size]; a page outside the pool reads as zeros.
 * Loads are boxes of box_k_N (box_v_N) rows, a power of two: ATTENTION_BLOCK (the V slot's keys,
 * the target's plan), or where paged the largest power of two, at most that, that divides
 * page_size.
 *
 * map   | dimensions, innermost first                                  | box
 * map_q | {qk_dim, group, kv_heads, q_len or tokens, batch}            | {128 B, pack, 1, tokens, 1}
 * map_k | {qk_dim, kv_len or tokens or page, kv_heads, batch or pages} | {128 B, box_k, 1, 1}
 * map_v | {v_dim, likewise}                                            | {128 B, box_v, 1, 1}
 * map_k1, map_v1: source 1 (with one source: as source 0). Packed tokens: batch is 1. 128-byte
 * swizzle, no interleave, element strides 1, out of bounds reads as zero.
 *
 * Outputs are stored row by row, with any strides that are multiples of 16 bytes (O) or 4 (lse,
 * row_max); packed: the batch strides are 0 and tokens count from the start of the packing.
 * lse = ln(sum_j exp(scale q.k_j) + exp(sink)); rows that see no key: O 0, lse -inf (the sink's
 * logit where there is one). normalise 0: O = sum_j exp(scale q.k_j - row_max) V[j], so the
 * normalised O is O * exp(row_max - lse); row_max is the reference the kernel used, within
 * 8 ln 2 below the true maximum of scale q.k or equal to it, and 0 for rows that see no key.
 */
#ifndef HEWN_PTX_ATTENTION_PLAN_H
#define HEWN_PTX_ATTENTION_PLAN_H

#include "common.plan.h"

#define ATTENTION_BLOCK      128
#define ATTENTION_UNBOUNDED  0x20000000 /* positions stay below 2^29: sums of two fit an int32 */
#define ATTENTION_MAX_SPLITS 256        /* of at most 2^23 blocks: n * s is exact in 32 bits */
#define ATTENTION_MAX_PAGE   256

/* FIRST(name) NEXT(name) ...: in PTX, only NEXT writes a comma. */
#define ATTENTION_MAPS(FIRST, NEXT) \
    FIRST(map_q)                    \
    NEXT(map_k0)                    \
    NEXT(map_v0)                    \
    NEXT(map_k1)                    \
    NEXT(map_v1)
#define ATTENTION_MAP_COUNT (ATTENTION_MAPS(MAP_ONE, MAP_ONE))

/* X(type, name, rule or meaning) */
#define ATTENTION_O_STRIDES(X)                   \
    X(u64, o_token, "bytes between tokens of O") \
    X(u64, o_head, "bytes between heads of O")   \
    X(u64, o_batch, "bytes between sequences of O")
#define ATTENTION_LSE_STRIDES(X)                                 \
    X(u64, lse_token, "bytes between tokens of lse and row_max") \
    X(u64, lse_head, "bytes between their heads")                \
    X(u64, lse_batch, "bytes between their sequences")
#define ATTENTION_SCALARS(X)                                                       \
    X(u64, o, "address of O")                                                      \
    X(u64, lse, "address of the log-sum-exps, f32, or 0")                          \
    X(u64, row_max, "address of the row maxima, f32, or 0")                        \
    X(u64, sink, "address of q_heads sink logits, f32, or 0")                      \
    X(u64, q_scale, "address of Q's scales, f32, or 0")                            \
    X(u64, k_scale, "address of K's scales, f32, or 0")                            \
    X(u64, v_scale, "address of V's scales, f32, or 0")                            \
    X(u64, o_scale, "address of the scale of e4m3 outputs, f32, or 0")             \
    X(u64, cu_q, "address of batch + 1 query offsets, or 0")                       \
    X(u64, window, "address of batch window lengths of source 0, or 0")            \
    X(u64, lengths_0, "address of key lengths or offsets of source 0, or 0")       \
    X(u64, lengths_1, "the same of source 1")                                      \
    X(u64, table_0, "address of source 0's block table, or 0")                     \
    X(u64, table_1, "the same of source 1")                                        \
    ATTENTION_O_STRIDES(X)                                                         \
    X(u64, o_split, "bytes between splits of O")                                   \
    ATTENTION_LSE_STRIDES(X)                                                       \
    X(u64, lse_split, "bytes between their splits")                                \
    X(f32, scale_log2, "scale * log2(e), above 0; with a soft cap 2 cap log2(e)")  \
    X(u32, items, "q_blocks * batch * kv_heads * head_blocks * v_halves * splits") \
    X(u32, q_blocks, "(q_len + tokens * item_tiles - 1) / (tokens * item_tiles)")  \
    X(u32, batch, "batch")                                                         \
    X(u32, kv_heads, "kv_heads")                                                   \
    X(u32, head_blocks, "(group + pack - 1) / pack")                               \
    X(u32, splits, "splits")                                                       \
    X(u32, group, "q_heads / kv_heads")                                            \
    X(u32, pack, "query heads in a tile")                                          \
    X(u32, tokens, "tile_rows / pack")                                             \
    X(u32, q_len, "queries of a sequence, or the most of any")                     \
    X(u32, q_tokens, "rows of Q and O: q_len, or all tokens of the packing")       \
    X(u32, q_scale_step, "1: a scale a query head, 0: not")                        \
    X(u32, q_scale_kv_step, "1: a scale of Q a KV head, 0: not")                   \
    X(u32, k_scale_step, "1: a scale a KV head, 0: one for all")                   \
    X(u32, v_scale_step, "1: a scale a KV head, 0: one for all")                   \
    X(u32, q_scale_batch, "scales of Q between sequences, 0: the same for all")    \
    X(u32, k_scale_batch, "the same of K")                                         \
    X(u32, v_scale_batch, "the same of V")                                         \
    X(u32, promotion, "sm_90a, e4m3: blocks between sums in fp32, 0: never; flag") \
    X(u32, out_type, "ATTENTION_OUT_F32, _F16, _BF16 or, of e4m3 inputs, _E4M3")   \
    X(u32, normalise, "1: divide by the sum")                                      \
    X(u32, sources, "1 or 2")                                                      \
    X(u32, kv_len_0, "keys of a sequence in source 0, or the most of any")         \
    X(u32, kv_len_1, "the same of source 1")                                       \
    X(u32, offsets_0, "1: lengths_0 are offsets")                                  \
    X(u32, offsets_1, "1: lengths_1 are offsets")                                  \
    X(u32, left_0, "keys seen before a query's position in source 0")              \
    X(u32, left_1, "the same in source 1")                                         \
    X(u32, right_0, "keys seen after a query's position in source 0")              \
    X(u32, right_1, "the same in source 1")                                        \
    X(u32, page_size_0, "keys in a page of source 0, or 0")                        \
    X(u32, page_size_1, "the same of source 1")                                    \
    X(u32, table_width_0, "entries of a sequence in table_0")                      \
    X(u32, table_width_1, "the same in table_1")                                   \
    X(u32, box_k_0, "rows of a box of map_k0")                                     \
    X(u32, box_k_1, "rows of a box of map_k1")                                     \
    X(u32, box_v_0, "rows of a box of map_v0")                                     \
    X(u32, box_v_1, "rows of a box of map_v1")                                     \
    X(f32, cap_log2, "2 scale log2(e) / cap, or 0: no soft cap")

#define ATTENTION_SCALAR_COUNT (ATTENTION_SCALARS(SCALAR_ONE))
#define ATTENTION_PARAM_BYTES  (ATTENTION_MAP_COUNT * MAP_BYTES ATTENTION_SCALARS(SCALAR_BYTES))

/* In `promotion`, beside a number of blocks: V is transposed as it is. Its map is then {kv_len, v_dim, kv_heads,
 * batch}, box {128, v_dim, 1, 1}; it is neither paged nor packed. */
#define ATTENTION_V_TRANSPOSED 0x80000000
#define ATTENTION_NO_PROMOTION 0x7FFFFFFF

/* out_type: the values of hewn_dtype. */
#define ATTENTION_OUT_F32  0
#define ATTENTION_OUT_F16  1
#define ATTENTION_OUT_BF16 2
#define ATTENTION_OUT_E4M3 3 /* of O / o_scale */

/*
 * The combine kernel (attention_combine): partial results of `splits` splits, each rows of v_dim of
 * part_type, normalised, with their lse, merged by
 *   M = max(max_s lse_s, sink),  w_s = exp(lse_s - M),
 *   O = sum_s w_s O_s / (sum_s w_s + exp(sink - M)),
 *   lse = M + ln(sum_s w_s + exp(sink - M)).
 * A row is (sequence or 0, token, query head), numbered (sequence * q_tokens + token) * q_heads +
 * head. Of the parts, strides are multiples of 16 bytes (O) or 4 (lse). One warp a row; grid
 * {ceil(rows / ATTENTION_COMBINE_ROWS), 1, 1}, block {32 * ATTENTION_COMBINE_ROWS, 1, 1}. v_dim is a
 * multiple of 32, at most 512. Rows of padding in a packing hold whatever the parts hold.
 */
#define ATTENTION_COMBINE_ROWS    4
#define ATTENTION_COMBINE_COLUMNS 32 /* v_dim is a multiple of it */
#define ATTENTION_COMBINE_MAX_DIM 512
#define ATTENTION_PART_STRIDES(X)                                    \
    X(u64, part_o_token, "bytes between tokens of the parts' O")     \
    X(u64, part_o_head, "bytes between their heads")                 \
    X(u64, part_o_batch, "bytes between their sequences")            \
    X(u64, part_o_split, "bytes between splits")                     \
    X(u64, part_lse_token, "bytes between tokens of the parts' lse") \
    X(u64, part_lse_head, "bytes between their heads")               \
    X(u64, part_lse_batch, "bytes between their sequences")          \
    X(u64, part_lse_split, "bytes between splits")
#define ATTENTION_COMBINE_SCALARS(X)                                        \
    X(u64, part_o, "address of the parts' O")                               \
    X(u64, part_lse, "address of the parts' lse, f32")                      \
    X(u64, o, "address of O")                                               \
    X(u64, lse, "address of the log-sum-exps, f32, or 0")                   \
    X(u64, sink, "address of q_heads sink logits, f32, or 0")               \
    X(u64, o_scale, "address of the scale of e4m3 outputs, f32, or 0")      \
    ATTENTION_PART_STRIDES(X)                                               \
    ATTENTION_O_STRIDES(X)                                                  \
    ATTENTION_LSE_STRIDES(X)                                                \
    X(u32, rows, "batch * q_tokens * q_heads (packed: q_tokens * q_heads)") \
    X(u32, q_tokens, "tokens of a sequence (packed: of the packing)")       \
    X(u32, q_heads, "query heads")                                          \
    X(u32, v_dim, "columns of O")                                           \
    X(u32, splits, "splits")                                                \
    X(u32, part_type, "ATTENTION_OUT_F32, _F16 or _BF16, of the parts' O")  \
    X(u32, out_type, "the same of O, or ATTENTION_OUT_E4M3")
#define ATTENTION_COMBINE_SCALAR_COUNT (ATTENTION_COMBINE_SCALARS(SCALAR_ONE))
#define ATTENTION_COMBINE_PARAM_BYTES  (0 ATTENTION_COMBINE_SCALARS(SCALAR_BYTES))

#endif
