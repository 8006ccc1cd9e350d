/*
 * Sharing the keys of a batch evenly over a persistent grid, planned on the device from the lengths
 * alone. #defines only: PTX and C include this.
 *
 * A tile is one set of query rows with one set of keys: (sequence, number of the tile in it). All
 * tiles of a sequence have the same number of key blocks. A tile costs SPLIT_OVERHEAD units and one
 * for each block; the list of work is the units of all tiles, one behind the other, sequence by
 * sequence. Of `total` units, each of the first `grid` = min(CTAs, total) CTAs takes share =
 * total / grid, the first `more` = total % grid of them one more: CTA c from c * share +
 * min(c, more) on. So no CTA of these is without units.
 *
 * Groups. Where every sequence has the same tiles for each of several heads, the CTAs may be divided
 * into `groups` of equal size, each with a list of its own, which all are alike: CTA i of group g is
 * CTA i * groups + g of the grid. They then read the heads of a token at about the same time, which
 * are neighbours in memory. Below, CTAs are counted in their group.
 *
 * Partial results. A tile whose blocks lie in one CTA is written by it. A tile over CTAs a .. b is a
 * split tile; each of them leaves a part in one of its two slots: a, the tile's first CTA, in slot
 * 2a + 1, because the tile is its last; the others in slot 2c, because the tile is their first.
 * CTA a writes record a, which says so. Every CTA of the grid writes its record, `parts` 0 where it
 * is no tile's first; a CTA is that of at most one split tile. So the combine kernel needs nothing
 * but the records, and the workspace no initial state:
 *   part_o   2 * CTAs x rows x v_dim of f32, normalised
 *   part_lse 2 * CTAs x rows of f32, log2 of the sum of the part's 2^score
 *   records  CTAs x SPLIT_RECORD_BYTES
 *
 * Parts at fixed counts. With `chunk` > 0, which a kernel may have (SPLIT_CHUNKS), a tile's parts begin
 * at multiples of `chunk` blocks, whatever else is in the list, and a CTA computes those whose first
 * unit is one of its: part 0 begins with the tile's overhead, another with its first block. So a row's
 * bits depend on its own keys alone. Part i of tile t, numbered over all sequences, has slot
 * t * chunks + i; the CTA of part 0 writes record t, and all tiles have one.
 *   part_o, part_lse as above of tiles * chunks slots; records tiles x SPLIT_RECORD_BYTES
 */
#ifndef HEWN_PTX_SPLIT_PLAN_H
#define HEWN_PTX_SPLIT_PLAN_H

#include "common.plan.h"

#ifndef SPLIT_OVERHEAD
#define SPLIT_OVERHEAD 1 /* units: set-up and output of a tile, in key blocks */
#endif
#define SPLIT_MAX_UNITS 0x7fffffff /* of all tiles: numbers of units are 32-bit */

/* A record: offsets of u32 words. Row r of the tile is query token TOKEN + r / pack of the sequence
 * and query head HEAD + r % pack, and exists where these are below TOKENS and HEADS. Where pack is
 * HEADS, rows run on across tokens: behind the last head comes the next token's first. */
#define SPLIT_RECORD_PARTS    0 /* 0: none, the rest is not written */
#define SPLIT_RECORD_SEQUENCE 4
#define SPLIT_RECORD_BASE     8 /* row of the sequence's token 0 in O: 0 unless packed */
#define SPLIT_RECORD_TOKEN    12
#define SPLIT_RECORD_TOKENS   16
#define SPLIT_RECORD_HEAD     20
#define SPLIT_RECORD_HEADS    24
#define SPLIT_RECORD_BYTES    32

/*
 * The combine kernel: of each record's tile and each of its rows
 *   M = max(max_p lse_p, sink),  w_p = 2^(lse_p - M),
 *   O = sum_p w_p O_p / (sum_p w_p + 2^(sink - M)),
 *   lse = ln 2 * (M + log2(sum_p w_p + 2^(sink - M))).
 * Grid {records, ceil(rows / step), 1}, block {32 * SPLIT_COMBINE_WARPS, 1, 1}. v_dim is a multiple
 * of 32. The more parts, the more warps share a row. Where few of many records have parts, `firsts`
 * lists those, -1 standing for none, and the grid is {firsts, ...}. Part i of record r is in slot
 * r * record_step + i * part_step, part 0 first_slot behind that. Where tiles are fewer than records,
 * `search` is the number of records, and the grid {tiles, ...}: CTA x has the x-th record with parts.
 * With cu_q, record r is tile r % row_tiles of sequence r / tiles, and is not there where the sequence
 * has no such queries.
 */
#define SPLIT_COMBINE_WARPS 8
#define SPLIT_COMBINE_SCALARS(X)                               \
    X(u64, part_o, "address of the parts' O, f32")             \
    X(u64, part_lse, "address of the parts' lse, f32, log2")   \
    X(u64, records, "address of the records")                  \
    X(u64, firsts, "address of their numbers; 0: all of them") \
    X(u64, o, "address of O")                                  \
    X(u64, lse, "address of the log-sum-exps, f32, or 0")      \
    X(u64, sink, "address of q_heads sink logits, f32, or 0")  \
    X(u64, cu_q, "address of batch + 1 query offsets, or 0")   \
    X(u64, o_token, "bytes between tokens of O")               \
    X(u64, o_head, "bytes between heads of O")                 \
    X(u64, o_batch, "bytes between sequences of O")            \
    X(u64, lse_token, "bytes between tokens of lse")           \
    X(u64, lse_head, "bytes between their heads")              \
    X(u64, lse_batch, "bytes between their sequences")         \
    X(u32, rows, "rows of a tile")                             \
    X(u32, pack, "query heads among them")                     \
    X(u32, step, "rows of a CTA")                              \
    X(u32, part_step, "slots between parts")                   \
    X(u32, record_step, "slots between records' first parts")  \
    X(u32, first_slot, "slots that part 0 lies further")       \
    X(u32, v_dim, "columns of O")                              \
    X(u32, q_len, "with cu_q: queries of a sequence at most")  \
    X(u32, tokens, "with cu_q: query tokens of a tile")        \
    X(u32, row_tiles, "with cu_q: row tiles of a head block")  \
    X(u32, tiles, "with cu_q: tiles of a sequence")            \
    X(u32, out_type, "0: f32, 1: f16, 2: bf16")                \
    X(u32, search, "records to search, at most 256; or 0")
#define SPLIT_COMBINE_PARAM_BYTES  (0 SPLIT_COMBINE_SCALARS(SCALAR_BYTES))

#endif
