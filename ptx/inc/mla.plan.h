/*
 * What the kernels of multi-head latent attention (MLA, decode) agree on: the parameter list, the rows
 * of a tile, the blocks of keys, the parts. #defines only: PTX, the runtime, tools/mod and the tests
 * include this.
 *
 *   O[i] = sum_j exp(scale q_i.c_j) c_j[0..511] / (sum_j exp(scale q_i.c_j) + exp(sink)),  j visible
 *
 * A cache row c_j is one token's latent vector of 512 elements and 64 rotary ones behind it. All 576
 * are the key; the first 512 are also the value. Every query head sees the same cache.
 *
 * Rows. Row r of a sequence is query r / q_heads, head r % q_heads of its rows = q_len * q_heads rows;
 * `groups` tiles of MLA_TILE_ROWS rows. A tile never has rows of two sequences.
 *
 * Masks. A sequence has n = clamp(lengths[b], 0, kv_len) keys (no lengths: kv_len). Query i sees keys
 * j < n, and with `causal` j < n - (q_len - 1 - i).
 *
 * Blocks of MLA_BLOCK keys from multiples of it: ceil(n / MLA_BLOCK) of a sequence.
 *
 * Parts. `groups` groups of `shares` CTAs share the blocks of all sequences as split.plan.h says: a
 * group computes one row tile of every sequence, CTA i * groups + g tile g. A sequence is a tile there.
 * Where whole sequences give no CTA more than MLA_SLACK blocks above its share, CTA i of a group
 * computes sequences i, i + shares, .. whole. So it does where `part_records` is 0. On sm_90a, where there
 * are n = shares / batch >= 2 CTAs for each sequence, and the same holds of the n-th part of a sequence: CTA
 * i has part i % n of sequence i / n, so many blocks as the other parts or one more, as split.plan.h would
 * write it.
 *
 * Paging. page_size 0: none; key j of sequence b is row j of plane b. Else it is row j % page_size of
 * plane table[b * table_width + j / page_size]; a plane outside 0 .. planes - 1 reads as zeros. Row r
 * of plane p begins p * kv_plane + r * kv_token bytes behind kv. Blocks that are full of keys are
 * loaded in boxes of `box` rows, a power of two of at least 8 that divides page_size (MLA_BLOCK where
 * that is 0 or a multiple of it); box 0, and the last rows of a sequence: row by row.
 *
 * Lists. With lists, query i of sequence b has keys of its own: the first n entries of list
 * b * queries + i, list_step bytes apart, n = clamp(lengths[(b * queries + i) / length_share], 0,
 * kv_len), kv_len the most entries. Entry e is row e % page_size of plane e / page_size, and no key where
 * it is negative or that plane not below planes. A sequence of the kernel, of which it has `batch`, is
 * then one query: q_len is 1, rows q_heads; row tile t of it is rows i * q_heads + 64 t on of map_q.
 * Without lists, queries and length_share are 1.
 *
 * Second lists, of kernels that have their parameters: query i sees the entries of a second list, too, which
 * name rows of a second cache of the same kind. The keys of the second stand behind those of the first: they
 * are one sequence of keys for blocks, parts, the sink and the log-sum-exp.
 *
 * Records. A cache row of 656 bytes, at multiples of 16: 512 e4m3, 4 f32 scales, 64 rotary elements of
 * bf16. Column c of the vector is bf16(fma(x, hi, bf16(x * lo))), x the e4m3 as a number, its code alone
 * (0x7f counts as 480), hi = bf16(scale[c / 128]), lo = bf16(scale[c / 128] - hi): exact where the scale
 * is a power of two, else x * scale rounded, at most a step away. mla_few.ptx of sm_90a does not round it:
 * it multiplies sums over x and weights by the scale. There 0x7f is NaN.
 *
 * Records of 584 bytes, which have 512 columns, all of them V: rows of 576 bytes, 448 e4m3 and 64 rotary
 * elements of bf16; behind all rows of a plane their scales, 8 bytes each, one a 64 columns of e4m3 and one
 * unused. Column c is bf16(x 2^(s - 127)), s the byte c / 64. On sm_100f the parameters of V describe scales, on
 * sm_90a `scales` and `extra_scales`, bytes from a page to its scales. mla_few.ptx has weights times scales in
 * f16, down to 2^-35 of the largest weight times the largest scale of the group's columns.
 *
 * The kernels without boxes, mla_gather.ptx, are for lists and for records; mla_few.ptx is for records
 * where `rows` is at most 16. They give rows by their offset in the cache, in units of 16 bytes: it
 * is below 2^36 - 16 bytes.
 *
 * map   | dimensions, innermost first                  | box
 * map_q | {576 or 512, rows, batch}                    | {64, MLA_TILE_ROWS, 1}; mla_few.ptx: {64, 16, 1}
 * map_k | {576, kv_len or page_size, batch or planes}  | {64, box or 64, 1}
 * 128-byte swizzle, no interleave, element strides 1, out of bounds reads as zero.
 *
 * lse = ln(sum_j exp(scale q.c_j) + exp(sink)); rows that see no key: O 0, lse -inf (the sink's logit
 * where there is one).
 */
#ifndef HEWN_PTX_MLA_PLAN_H
#define HEWN_PTX_MLA_PLAN_H

#define SPLIT_OVERHEAD 2 /* blocks: set-up and output of a part */
#include "mla_record.plan.h"
#include "split.plan.h"

#define MLA_QK_DIM    576
#define MLA_V_DIM     512
#define MLA_BLOCK     64
#define MLA_TILE_ROWS 64
#define MLA_MAX_PAGE  256
#define MLA_SLACK     5          /* blocks: what parts cost, written and merged */
#define MLA_FEW       8          /* sequences a CTA: more are split without a look at the largest */
#define MLA_MAX_KEYS  0x1fffffff /* positions stay below 2^29 */

#define MLA_MAPS(FIRST, NEXT) \
    FIRST(map_q)              \
    NEXT(map_k)
#define MLA_MAP_COUNT (MLA_MAPS(MAP_ONE, MAP_ONE))

/* X(type, name, rule or meaning) */
#define MLA_SCALARS(X)                                                                        \
    X(u64, kv, "address of the cache")                                                        \
    X(u64, o, "address of O")                                                                 \
    X(u64, lse, "address of the log-sum-exps, f32, or 0")                                     \
    X(u64, sink, "address of q_heads sink logits, f32, or 0")                                 \
    X(u64, lengths, "address of batch key lengths, or 0")                                     \
    X(u64, table, "address of the block table, or 0")                                         \
    X(u64, part_o, "address of the parts' O, f32")                                            \
    X(u64, part_lse, "address of the parts' lse, f32, log2")                                  \
    X(u64, part_records, "address of the records; 0: no parts")                               \
    X(u64, firsts,                                                                            \
      "address of batch * groups numbers: a sequence's first CTA where it is split, else -1") \
    X(u64, kv_token, "bytes between rows of the cache")                                       \
    X(u64, kv_plane, "bytes between its sequences or pages")                                  \
    X(u64, o_token, "bytes between tokens of O")                                              \
    X(u64, o_head, "bytes between heads of O")                                                \
    X(u64, o_batch, "bytes between sequences of O")                                           \
    X(u64, lse_token, "bytes between tokens of lse")                                          \
    X(u64, lse_head, "bytes between its heads")                                               \
    X(u64, lse_batch, "bytes between its sequences")                                          \
    X(f32, scale_log2, "scale * log2(e), above 0")                                            \
    X(u32, batch, "batch")                                                                    \
    X(u32, q_heads, "query heads")                                                            \
    X(u32, q_len, "queries of a sequence")                                                    \
    X(u32, rows, "q_len * q_heads")                                                           \
    X(u32, groups, "(rows + 63) / 64")                                                        \
    X(u32, shares, "grid / groups")                                                           \
    X(u32, causal, "1: a query sees no key behind its own")                                   \
    X(u32, kv_len, "keys of a sequence, or the most of any")                                  \
    X(u32, page_size, "keys in a page, or 0")                                                 \
    X(u32, planes, "pages in the pool, or batch")                                             \
    X(u32, table_width, "entries of a sequence in the table")                                 \
    X(u32, box, "rows of a box of map_k; 0: no boxes")                                        \
    X(u32, out_type, "0 f32, 1 f16, 2 bf16 (hewn_dtype)")                                     \
    X(u64, lists, "address of the lists, or 0: not by lists")                                 \
    X(u64, list_step, "bytes between lists")                                                  \
    X(u32, queries, "lists of a sequence, or 1")                                              \
    X(u32, length_share, "lists that share a length, or 1")

#define MLA_SCALAR_COUNT (MLA_SCALARS(SCALAR_ONE))
#define MLA_PARAM_BYTES  (MLA_MAP_COUNT * MAP_BYTES MLA_SCALARS(SCALAR_BYTES))

#define MLA_ROW_UNIT 16 /* bytes */

#define MLA_OUT_F32  0
#define MLA_OUT_F16  1
#define MLA_OUT_BF16 2

#endif
