/*
 * What the engine's kernels need on every target: parameter lists, threads, shared memory. #defines only: PTX,
 * tools/engine, tools/mod and the tests include this. What each computes: tools/engine/kernels.h.
 *
 * A unit is 8 elements of bf16, 16 bytes. Strides ending in _row are in bytes. An index, a slot, a position or a
 * page is compared as an unsigned number, so one below 0 is outside.
 */
#ifndef HEWN_PTX_ENGINE_PLAN_H
#define HEWN_PTX_ENGINE_PLAN_H

#include "common.plan.h"

#define ENGINE_UNIT 8

/* ---- norm: a CTA a row, which it keeps in dynamic shared memory -- */

#define ENGINE_NORM_WARPS   16
#define ENGINE_NORM_THREADS (32 * ENGINE_NORM_WARPS)
#define ENGINE_NORM_HIDDEN  65536 /* at most */
#define ENGINE_NORM_SHARED  (2 * ENGINE_NORM_HIDDEN)

/* X(role, first warp, warps) */
#define ENGINE_NORM_ROLES(X) X(row, 0, ENGINE_NORM_WARPS)
/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits) */
#define ENGINE_NORM_HANDOFFS(X)
/* X(storage, writers, readers). Dynamic shared memory is not listed: its size is the launch's. */
#define ENGINE_NORM_FLOWS(X) X(sums, row, row)

/* X(type, name, rule or meaning). Grid: {rows, 1, 1}. */
#define ENGINE_NORM_SCALARS(X)                                     \
    X(u64, x, "address of rows, a multiple of 16")                 \
    X(u64, y, "address of rows that are added, or 0")              \
    X(u64, index, "address of row numbers of x and y, i32, or 0")  \
    X(u64, h, "address of sums, or 0")                             \
    X(u64, w, "address of weights")                                \
    X(u64, out, "address of normed rows, or 0")                    \
    X(u64, x_row, "bytes between rows of x, a multiple of 16")     \
    X(u64, y_row, "bytes between rows of y, a multiple of 16")     \
    X(u64, h_row, "bytes between rows of h, a multiple of 16")     \
    X(u64, out_row, "bytes between rows of out, a multiple of 16") \
    X(u32, x_rows, "rows of x")                                    \
    X(u32, units, "columns / 8")                                   \
    X(f32, eps, "added to the mean of squares")

/* ---- a paged cache of keys and values, and what new keys need: parameters of rope and of attend -- */

#define ENGINE_CACHE_ADDRESSES(X)                                      \
    X(u64, rotation, "address of cosines and sines, a multiple of 16") \
    X(u64, q_norm, "address of weights of Q, or 0")                    \
    X(u64, k_norm, "address of weights of K, or 0")                    \
    X(u64, k, "address of the pool of K, a multiple of 16")            \
    X(u64, v, "address of the pool of V, a multiple of 16")            \
    X(u64, table, "address of the block table, i32; of rope, or 0")
#define ENGINE_CACHE_STRIDES(X)                                         \
    X(u64, page_row, "bytes between pages, a multiple of 16")           \
    X(u64, head_row, "bytes between heads of a page, a multiple of 16") \
    X(u64, token_row, "bytes between keys, a multiple of 16")

/* ---- rope: dim / 8 lanes a head; a lane has 4 elements of each half -- */

#define ENGINE_ROPE_WARPS   8
#define ENGINE_ROPE_THREADS (32 * ENGINE_ROPE_WARPS)
#define ENGINE_ROPE_DIM     256 /* at most: a warp has a head */

#define ENGINE_ROPE_ROLES(X) X(head, 0, ENGINE_ROPE_WARPS)
#define ENGINE_ROPE_HANDOFFS(X)
#define ENGINE_ROPE_FLOWS(X)

/* Grid: {rows, heads of Q, K and V / (warp_heads * 8), rounded up, 1}. */
#define ENGINE_ROPE_SCALARS(X)                                        \
    X(u64, qkv, "address of rows of Q, K and V, a multiple of 16")    \
    X(u64, positions, "address of positions, i32")                    \
    X(u64, sequences, "address of sequences, i32, or 0")              \
    ENGINE_CACHE_ADDRESSES(X)                                         \
    X(u64, qkv_row, "bytes between rows of qkv, a multiple of 16")    \
    ENGINE_CACHE_STRIDES(X)                                           \
    X(u32, q_heads, "heads of Q")                                     \
    X(u32, kv_heads, "heads of K")                                    \
    X(u32, lanes, "dim / 8")                                          \
    X(u32, warp_heads, "32 / lanes, rounded down")                    \
    X(u32, positions_most, "positions that rotation has")             \
    X(u32, sequences_most, "sequences that the table has")            \
    X(u32, pages, "pages in the pools")                               \
    X(u32, page_size, "keys in a page")                               \
    X(u32, table_width, "entries of a sequence in the table")         \
    X(f32, eps, "added to the mean of squares of a head")

/* ---- attend: a CTA a part of a row and of a head of K and V; a ring of dynamic shared memory a warp -- */

#define ENGINE_ATTEND_WARPS   8
#define ENGINE_ATTEND_THREADS (32 * ENGINE_ATTEND_WARPS)
#define ENGINE_ATTEND_CTAS    2     /* of an SM */
#define ENGINE_ATTEND_RING    98304 /* bytes of all warps' */
#define ENGINE_ATTEND_STRIP   16    /* keys */
#define ENGINE_ATTEND_ROWS    32    /* at most: a lane a row */
#define ENGINE_ATTEND_GROUP   8   /* heads of Q a head of K and V, at most: rows of an MMA's half */
#define ENGINE_ATTEND_COLUMNS 64 /* at most: two parts a lane */
#define ENGINE_ATTEND_KEYS    (1 << 24)
#define ENGINE_ATTEND_TABLE   ENGINE_ATTEND_THREADS /* entries of tables that are kept in shared memory */
/* Of a CTA in the workspace: O of a part, f32; behind all of these, each head's maximum and sum. */
#define ENGINE_ATTEND_PART(dim) (4 * ENGINE_ATTEND_GROUP * (dim))
#define ENGINE_ATTEND_BOUNDS    (8 * ENGINE_ATTEND_GROUP)
#define ENGINE_ATTEND_STATIC    (4 * 8 * ENGINE_ATTEND_COLUMNS + 64 * ENGINE_ATTEND_WARPS + 48 + 4 * ENGINE_ATTEND_TABLE)

#define ENGINE_ATTEND_ROLES(X) X(strip, 0, ENGINE_ATTEND_WARPS)
#define ENGINE_ATTEND_HANDOFFS(X)
#define ENGINE_ATTEND_FLOWS(X) \
    X(bounds, strip, strip)    \
    X(weights, strip, strip)   \
    X(inverse, strip, strip)   \
    X(tables, strip, strip)    \
    X(arrived, strip, strip)

/* Grid: {columns * kv_heads, 1, 1}. */
#define ENGINE_ATTEND_SCALARS(X)                                           \
    X(u64, qkv, "address of rows of Q, K and V, a multiple of 16")         \
    X(u64, positions, "address of positions, i32")                         \
    ENGINE_CACHE_ADDRESSES(X)                                              \
    X(u64, o, "address of rows of O, a multiple of 16")                    \
    X(u64, parts, "address of a part of O for each CTA, f32")              \
    X(u64, bounds_of, "address of their maxima and sums, f32")             \
    X(u64, counters, "address of a counter for each row and head, u32: 0") \
    X(u64, qkv_row, "bytes between rows of qkv, a multiple of 16")         \
    X(u64, o_row, "bytes between rows of O, a multiple of 16")             \
    ENGINE_CACHE_STRIDES(X)                                                \
    X(u32, rows, "rows, at most columns and 32")                           \
    X(u32, columns, "columns of CTAs, at most 64")                        \
    X(u32, kv_heads, "heads of K")                                         \
    X(u32, group, "heads of Q a head of K, at most 8")                     \
    X(u32, positions_most, "positions of a row, at most 2^24")             \
    X(u32, pages, "pages in the pools")                                    \
    X(u32, page_strips, "keys in a page / 16")                             \
    X(u32, table_width, "entries of a row in the table")                   \
    X(f32, scale_log2, "factor of scores times log2(e)")                   \
    X(f32, eps, "added to the mean of squares of a head")

/* ---- multiply: a warp has every eighth chunk of k; a ring of dynamic shared memory a warp, then sums of tiles -- */

#define ENGINE_MULTIPLY_WARPS   8
#define ENGINE_MULTIPLY_THREADS (32 * ENGINE_MULTIPLY_WARPS)
#define ENGINE_MULTIPLY_ROWS    8   /* at most */
#define ENGINE_MULTIPLY_CHUNK   256 /* elements of k */
#define ENGINE_MULTIPLY_KEPT    (2 * ENGINE_MULTIPLY_WARPS) /* chunks that stay in registers: with norm, at most */
#define ENGINE_MULTIPLY_STAGES  3
#define ENGINE_MULTIPLY_ROW     576 /* bytes from row to row of a stage: fragments of two rows lie in all banks */
#define ENGINE_MULTIPLY_RING    (ENGINE_MULTIPLY_WARPS * ENGINE_MULTIPLY_STAGES * 16 * ENGINE_MULTIPLY_ROW)
#define ENGINE_MULTIPLY_SHARED  (ENGINE_MULTIPLY_RING + 2 * 512 * ENGINE_MULTIPLY_WARPS)
#define ENGINE_MULTIPLY_STATIC  (8 * ENGINE_MULTIPLY_WARPS * ENGINE_MULTIPLY_STAGES + 32 + 4 * 8 * ENGINE_MULTIPLY_WARPS)

#define ENGINE_MULTIPLY_ROLES(X) X(k, 0, ENGINE_MULTIPLY_WARPS)
#define ENGINE_MULTIPLY_HANDOFFS(X)
#define ENGINE_MULTIPLY_FLOWS(X) X(squares, k, k)

/* Grid: {CTAs, 1, 1}. */
#define ENGINE_MULTIPLY_SCALARS(X)                                          \
    X(u64, x, "address of rows, a multiple of 16")                          \
    X(u64, norm, "address of weights of a norm, or 0")                      \
    X(u64, weights, "address of rows of weights, constant, a multiple of 16") \
    X(u64, bias, "address of what is added to each row, or 0")              \
    X(u64, c, "address of rows that are added, or 0")                       \
    X(u64, d, "address of results")                                         \
    X(u64, x_row, "bytes between rows of x, a multiple of 16")              \
    X(u64, d_row, "bytes between rows of c and d")                          \
    X(u32, rows, "rows, at most 8")                                         \
    X(u32, chunks, "k / 256; with norm at most 16")                         \
    X(u32, tiles, "columns / 16")                                           \
    X(f32, eps, "added to the mean of squares")

/* ---- swiglu: a thread has two units of a row, a CTA's units apart -- */

#define ENGINE_SWIGLU_WARPS   8
#define ENGINE_SWIGLU_THREADS (32 * ENGINE_SWIGLU_WARPS)

#define ENGINE_SWIGLU_ROLES(X) X(unit, 0, ENGINE_SWIGLU_WARPS)
#define ENGINE_SWIGLU_HANDOFFS(X)
#define ENGINE_SWIGLU_FLOWS(X)

/* Grid: {rows, units / 512, rounded up, 1}. */
#define ENGINE_SWIGLU_SCALARS(X)                                             \
    X(u64, gate, "address of gates, a multiple of 16")                       \
    X(u64, up, "address of factors, a multiple of 16")                       \
    X(u64, out, "address of products, a multiple of 16")                     \
    X(u64, in_row, "bytes between rows of gate and of up, a multiple of 16") \
    X(u64, out_row, "bytes between rows of out, a multiple of 16")           \
    X(u32, units, "columns / 8")

/* ---- quant: a CTA a row, which it keeps in dynamic shared memory -- */

#define ENGINE_QUANT_WARPS   32
#define ENGINE_QUANT_THREADS (32 * ENGINE_QUANT_WARPS)
#define ENGINE_QUANT_COLUMNS 65536 /* at most */
#define ENGINE_QUANT_SHARED  (2 * ENGINE_QUANT_COLUMNS)
#define ENGINE_QUANT_MOST_CTAS 4 /* of a row */

#define ENGINE_QUANT_ROLES(X) X(row, 0, ENGINE_QUANT_WARPS)
#define ENGINE_QUANT_HANDOFFS(X)
/* A writer of met may be of another CTA of the cluster. */
#define ENGINE_QUANT_FLOWS(X) X(sums, row, row) X(maxima, row, row) X(met, row, row)

/* Grid: {rows * CTAs of a cluster, 1, 1}. */
#define ENGINE_QUANT_SCALARS(X)                                          \
    X(u64, x, "address of rows, a multiple of 16")                       \
    X(u64, up, "address of factors of a SwiGLU, or 0")                   \
    X(u64, w, "address of weights of a norm, or 0")                      \
    X(u64, out, "address of rows of e4m3, a multiple of 8")              \
    X(u64, scales, "address of a scale for each row, f32")               \
    X(u64, x_row, "bytes between rows of x and of up, a multiple of 16") \
    X(u64, out_row, "bytes between rows of out, a multiple of 8")        \
    X(u32, units, "columns / 8")                                         \
    X(f32, eps, "added to the mean of squares")

/* ---- project: eight warps have 128 columns each of a k-block, a ninth copies; rows in dynamic shared memory -- */

#define ENGINE_PROJECT_WARPS       8
#define ENGINE_PROJECT_MULTIPLIERS (32 * ENGINE_PROJECT_WARPS)
#define ENGINE_PROJECT_THREADS     (ENGINE_PROJECT_MULTIPLIERS + 32)
#define ENGINE_PROJECT_ROWS        8     /* at most */
#define ENGINE_PROJECT_COLUMNS     65536 /* k at most */
#define ENGINE_PROJECT_ROUNDED \
    2048                           /* columns for each warp of a row, where it rounds rows itself */
#define ENGINE_PROJECT_TILE     16 /* rows of b */
#define ENGINE_PROJECT_PIECE    64 /* columns of a row that four lanes read */
#define ENGINE_PROJECT_BLOCK    1024 /* columns of a stage */
#define ENGINE_PROJECT_PAD      64
#define ENGINE_PROJECT_PITCH    (ENGINE_PROJECT_BLOCK + ENGINE_PROJECT_PAD)
#define ENGINE_PROJECT_STAGE    (ENGINE_PROJECT_TILE * ENGINE_PROJECT_PITCH)
#define ENGINE_PROJECT_STAGES   12 /* at most */
#define ENGINE_PROJECT_PART_ROW 80 /* a row's sums of a tile, padded: bytes */
#define ENGINE_PROJECT_PART     (ENGINE_PROJECT_ROWS * ENGINE_PROJECT_PART_ROW)
#define ENGINE_PROJECT_STATIC                                                            \
    (2 * ENGINE_PROJECT_WARPS * (ENGINE_PROJECT_PART + 8) + 16 * ENGINE_PROJECT_STAGES + \
     4 * ENGINE_PROJECT_ROWS + 16)
#define ENGINE_PROJECT_SHARED (SM_SHARED_BYTES - ENGINE_PROJECT_STATIC - 128)

#define ENGINE_PROJECT_ROLES(X) \
    X(consumer, 0, ENGINE_PROJECT_WARPS) X(producer, ENGINE_PROJECT_WARPS, 1)
#define ENGINE_PROJECT_HANDOFFS(X)                                                              \
    X(full_bar, 1, ENGINE_PROJECT_TILE *ENGINE_PROJECT_PIECE,                                   \
      ENGINE_PROJECT_TILE *ENGINE_PROJECT_BLOCK, producer, consumer)                            \
    X(empty_bar, ENGINE_PROJECT_WARPS, 0, 0, consumer, producer)                                \
    X(rows_bar, 1, ENGINE_PROJECT_PIECE, ENGINE_PROJECT_ROWS *ENGINE_PROJECT_COLUMNS, consumer, \
      consumer)
#define ENGINE_PROJECT_FLOWS(X)   \
    X(parts, consumer, consumer)  \
    X(sums, consumer, consumer)   \
    X(maxima, consumer, consumer) \
    X(scales, consumer, consumer)

/* Grid: {CTAs, 1, 1}. */
#define ENGINE_PROJECT_SCALARS(X)                                                    \
    X(u64, x, "address of rows of bf16, or with x_scales of e4m3, a multiple of 16") \
    X(u64, x_scales, "address of scales of rows, f32, or 0")                         \
    X(u64, w, "address of weights of a norm, or 0")                                  \
    X(u64, b, "address of rows of e4m3, a multiple of 16")                           \
    X(u64, b_scales, "address of their scales, f32")                                 \
    X(u64, bias, "address of what is added to columns, bf16, or 0")                  \
    X(u64, c, "address of what is added, bf16, or 0")                                \
    X(u64, d, "address of results, bf16")                                            \
    X(u64, x_row, "bytes between rows of x, a multiple of 16")                       \
    X(u64, c_row, "bytes between rows of c")                                         \
    X(u64, d_row, "bytes between rows of d")                                         \
    X(u32, rows, "rows of x")                                                        \
    X(u32, k, "columns of x and b, a multiple of 64")                                \
    X(u32, half, "with SwiGLU: rows of b between its factors; else 0")               \
    X(u32, tiles, "rows of b / 16")                                                  \
    X(u32, stages, "of the ring")                                                    \
    X(u32, warps, "that norm and round a row")                                       \
    X(f32, eps, "added to the mean of squares")

/* ---- sample: a cluster a row, each CTA a part of it in dynamic shared memory -- */

#define ENGINE_SAMPLE_WARPS     32
#define ENGINE_SAMPLE_THREADS   (32 * ENGINE_SAMPLE_WARPS)
#define ENGINE_SAMPLE_LOG_BINS  11
#define ENGINE_SAMPLE_BINS      (1 << ENGINE_SAMPLE_LOG_BINS) /* two a thread */
#define ENGINE_SAMPLE_VOCAB     262144                        /* at most */
#define ENGINE_SAMPLE_MOST_CTAS 8                             /* a portable cluster */
#define ENGINE_SAMPLE_PART      (ENGINE_SAMPLE_VOCAB / ENGINE_SAMPLE_MOST_CTAS)
#define ENGINE_SAMPLE_SHARED    (4 * ENGINE_SAMPLE_PART)
#define ENGINE_SAMPLE_STATIC    (16 * ENGINE_SAMPLE_BINS + 16 * ENGINE_SAMPLE_WARPS + 128)
#define ENGINE_SETTINGS_BYTES   24 /* struct engine_sampling */

#define ENGINE_SAMPLE_ROLES(X) X(draw, 0, ENGINE_SAMPLE_WARPS)
/* Readers may be of other CTAs of the cluster. */
#define ENGINE_SAMPLE_HANDOFFS(X)
#define ENGINE_SAMPLE_FLOWS(X) \
    X(bins, draw, draw)        \
    X(warps_of, draw, draw)    \
    X(found, draw, draw)       \
    X(bounds, draw, draw)      \
    X(mass_of, draw, draw)     \
    X(kept_of, draw, draw)

/* Grid: {rows * CTAs of a cluster, 1, 1}. */
#define ENGINE_SAMPLE_SCALARS(X)                                     \
    X(u64, logits, "address of logits, a multiple of 16")            \
    X(u64, slot_of, "address of slots of rows, i32, or 0")           \
    X(u64, positions, "address of positions, i32")                   \
    X(u64, settings, "address of 24-byte settings, a multiple of 8") \
    X(u64, sampled, "address of drawn tokens, i32")                  \
    X(u64, row_bytes, "bytes between rows, a multiple of 16")        \
    X(u32, slots, "slots")                                           \
    X(u32, vocab, "logits of a row")                                 \
    X(u32, cta_units, "16-byte units of a CTA: those of a row / CTAs of a cluster, rounded up")

/* ---- advance: a thread a row -- */

#define ENGINE_ADVANCE_WARPS   4
#define ENGINE_ADVANCE_THREADS (32 * ENGINE_ADVANCE_WARPS)

#define ENGINE_ADVANCE_ROLES(X) X(slot, 0, ENGINE_ADVANCE_WARPS)
#define ENGINE_ADVANCE_HANDOFFS(X)
#define ENGINE_ADVANCE_FLOWS(X)

/* Why a request ended: enum engine_reason. */
#define ENGINE_REASON_STOPPED   1
#define ENGINE_REASON_LENGTH    2
#define ENGINE_REASON_CANCELLED 3
#define ENGINE_REASON_NO_TOKEN  4

/* Grid: {rows / 128, rounded up, 1, 1}. */
#define ENGINE_ADVANCE_SCALARS(X)                          \
    X(u64, slot_of, "address of slots of rows, i32, or 0") \
    X(u64, tokens, "address of tokens, i32")               \
    X(u64, positions, "address of positions, i32")         \
    X(u64, lengths, "address of lengths, i32")             \
    X(u64, sampled, "address of drawn tokens, i32")        \
    X(u64, limits, "address of limits, i32")               \
    X(u64, cancelled, "address of marks, i32")             \
    X(u64, reasons, "address of reasons, i32")             \
    X(u64, counts, "address of counts, i32")               \
    X(u64, history, "address of drawn tokens so far, i32") \
    X(u64, stops, "address of stop tokens, i32")           \
    X(u32, rows, "rows")                                   \
    X(u32, slots, "slots")                                 \
    X(u32, history_row, "tokens that a history holds")     \
    X(u32, stop_count, "stop tokens")

/* ---- route: a warp a row, whose scores lie in dynamic shared memory, once as they are and once for the choice -- */

#define ENGINE_ROUTE_WARPS   4
#define ENGINE_ROUTE_THREADS (32 * ENGINE_ROUTE_WARPS)
#define ENGINE_ROUTE_EXPERTS 1024 /* at most */
#define ENGINE_ROUTE_GROUPS  32   /* at most: a lane a group */
#define ENGINE_ROUTE_CHOICES 32   /* at most: a lane a choice */
#define ENGINE_ROUTE_SHARED  (8 * ENGINE_ROUTE_WARPS * ENGINE_ROUTE_EXPERTS)

#define ENGINE_ROUTE_ROLES(X) X(row, 0, ENGINE_ROUTE_WARPS)
#define ENGINE_ROUTE_HANDOFFS(X)
#define ENGINE_ROUTE_FLOWS(X)

/* Grid: {rows / 4, rounded up, 1, 1}. */
#define ENGINE_ROUTE_SCALARS(X)                                    \
    X(u64, logits, "address of logits, f32")                       \
    X(u64, bias, "address of what the choice adds to scores, f32, or 0") \
    X(u64, positions, "address of positions, i32, or 0")           \
    X(u64, choice, "address of chosen experts, i32")               \
    X(u64, weights, "address of their weights, f32")               \
    X(u64, logits_row, "bytes between rows of logits")             \
    X(u32, rows, "rows")                                           \
    X(u32, experts, "experts")                                     \
    X(u32, choices, "experts of a row")                            \
    X(u32, groups, "groups of experts")                            \
    X(u32, groups_kept, "groups that experts are chosen of")       \
    X(u32, group_experts, "experts / groups")                      \
    X(u32, sigmoid, "1: scores are sigmoids, a group's that of its best two; 0: softmax, its best") \
    X(u32, normed, "1: weights are divided by their sum")          \
    X(f32, scale, "weights are multiplied by it")

/* ---- place: a warp an expert -- */

#define ENGINE_PLACE_WARPS   8
#define ENGINE_PLACE_THREADS (32 * ENGINE_PLACE_WARPS)

#define ENGINE_PLACE_ROLES(X) X(expert, 0, ENGINE_PLACE_WARPS)
#define ENGINE_PLACE_HANDOFFS(X)
#define ENGINE_PLACE_FLOWS(X)

/* Grid: {experts / 8, rounded up, 1, 1}. */
#define ENGINE_PLACE_SCALARS(X)                                         \
    X(u64, choice, "address of chosen experts, i32")                    \
    X(u64, offsets, "address of experts + 1 numbers of first places, i32") \
    X(u64, index, "address of the rows of places, i32")                 \
    X(u64, place, "address of the places of choices, i32")              \
    X(u32, count, "rows * choices")                                     \
    X(u32, choices, "experts of a row")                                 \
    X(u32, experts, "experts")

/* ---- latent: a warp the vector of a row, or four heads of Q -- */

#define ENGINE_LATENT_WARPS   8
#define ENGINE_LATENT_THREADS (32 * ENGINE_LATENT_WARPS)
#define ENGINE_LATENT_RANK    512 /* elements of the vector */
#define ENGINE_LATENT_ROTARY  64  /* and of what rotates */
#define ENGINE_LATENT_ROW     (ENGINE_LATENT_RANK + ENGINE_LATENT_ROTARY)
#define ENGINE_LATENT_LANES   (ENGINE_LATENT_ROTARY / ENGINE_UNIT) /* of a head */
#define ENGINE_LATENT_HEADS   (32 / ENGINE_LATENT_LANES)           /* of a warp */

#define ENGINE_LATENT_ROLES(X) X(head, 0, ENGINE_LATENT_WARPS)
#define ENGINE_LATENT_HANDOFFS(X)
#define ENGINE_LATENT_FLOWS(X)

/* Grid: {rows, (1 + heads / 4, rounded up) / 8, rounded up, 1}. */
#define ENGINE_LATENT_SCALARS(X)                                       \
    X(u64, vector, "address of rows of 576, a multiple of 16")         \
    X(u64, q, "address of the rotary elements of Q, a multiple of 16") \
    X(u64, out, "address of where they go, a multiple of 16")          \
    X(u64, positions, "address of positions, i32")                     \
    X(u64, sequences, "address of sequences, i32, or 0")               \
    X(u64, rotation, "address of cosines and sines, a multiple of 16") \
    X(u64, norm, "address of 512 weights, a multiple of 16")           \
    X(u64, cache, "address of the pool of rows of 576, a multiple of 16") \
    X(u64, table, "address of the block table, i32")                   \
    X(u64, vector_row, "bytes between rows, a multiple of 16")         \
    X(u64, q_row, "bytes between rows of q, a multiple of 16")         \
    X(u64, q_head, "bytes between its heads, a multiple of 16")        \
    X(u64, out_row, "bytes between rows of out, a multiple of 16")     \
    X(u64, out_head, "bytes between its heads, a multiple of 16")      \
    X(u64, page_row, "bytes between pages, a multiple of 16")          \
    X(u64, token_row, "bytes between rows of a page, a multiple of 16") \
    X(u32, heads, "heads of Q")                                        \
    X(u32, positions_most, "positions that rotation has")              \
    X(u32, sequences_most, "sequences that the table has")             \
    X(u32, pages, "pages in the pool")                                 \
    X(u32, page_size, "rows in a page")                                \
    X(u32, table_width, "entries of a sequence in the table")          \
    X(f32, eps, "added to the mean of squares of the vector")

/* ---- exchange: a CTA a row and those `CTAs` behind it; weights and a row in dynamic shared memory -- */

#define ENGINE_EXCHANGE_WARPS   16
#define ENGINE_EXCHANGE_THREADS (32 * ENGINE_EXCHANGE_WARPS)
#define ENGINE_EXCHANGE_HIDDEN  32768 /* at most */
#define ENGINE_EXCHANGE_SHARED  (4 * ENGINE_EXCHANGE_HIDDEN)
#define ENGINE_EXCHANGE_RANKS   16         /* at most */
#define ENGINE_EXCHANGE_MARK    0x80008000 /* a word of an inbox that nothing was sent for */

#define ENGINE_EXCHANGE_ROLES(X) X(row, 0, ENGINE_EXCHANGE_WARPS)
#define ENGINE_EXCHANGE_HANDOFFS(X)
#define ENGINE_EXCHANGE_FLOWS(X) X(sums, row, row)

/* Grid: {CTAs, all of them resident, 1, 1}. */
#define ENGINE_EXCHANGE_SCALARS(X)                                      \
    X(u64, x, "address of rows of the stream, a multiple of 16")        \
    X(u64, part, "address of this GPU's rows, a multiple of 16")        \
    X(u64, inbox, "address of rows that others sent, a multiple of 16") \
    X(u64, peers, "address of the bytes from inbox to where rows for each rank go, i64") \
    X(u64, h, "address of sums, or 0")                                  \
    X(u64, w, "address of weights")                                     \
    X(u64, out, "address of normed rows, or 0")                         \
    X(u64, inbox_rank, "bytes between the rows of ranks in the inbox, a multiple of 16") \
    X(u32, rank, "this GPU's rank")                                     \
    X(u32, ranks, "ranks, two at least")                                \
    X(u32, rows, "rows")                                                \
    X(u32, units, "columns / 8")                                        \
    X(f32, eps, "added to the mean of squares")

/* Of the kernel `k`: the first scalar stands behind no map. */
#define ENGINE_SCALAR_COUNT(k) (ENGINE_##k##_SCALARS(SCALAR_ONE))
#define ENGINE_PARAM_BYTES(k)  (0 ENGINE_##k##_SCALARS(SCALAR_BYTES))

#endif
