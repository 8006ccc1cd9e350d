/*
 * The plan of the sm_90a decode kernels: tiles, ring, shared memory, threads. #defines only,
 * included by decode.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise. A
 * variant is (qk, v, h, e, n): columns of K and of V, KV heads that these are of, bytes of an element of K
 * and V (2; 1: e4m3, beside 16-bit Q), query rows of a tile. With h of 2 and 4 that many heads lie side by
 * side in memory and in the tile: two of 64 or 96 columns, decode_pair.inc; four of 96, decode_quad.inc.
 */
#ifndef HEWN_SM90A_DECODE_PLAN_H
#define HEWN_SM90A_DECODE_PLAN_H

#include "../inc/decode.plan.h"

/* X(this prefix, target, qk, v, h, e, n): every variant; a module is one of an input dtype. Of those that
 * serve the same heads, pairs come first, then fewer rows. */
#define SM90A_DECODE_VARIANTS(X)         \
    X(SM90A, sm_90a, 128, 128, 2, 2, 16) \
    X(SM90A, sm_90a, 128, 128, 2, 2, 32) \
    X(SM90A, sm_90a, 128, 128, 2, 2, 64) \
    X(SM90A, sm_90a, 64, 64, 1, 2, 16)   \
    X(SM90A, sm_90a, 64, 64, 1, 2, 32)   \
    X(SM90A, sm_90a, 64, 64, 1, 2, 64)   \
    X(SM90A, sm_90a, 192, 192, 2, 2, 32) \
    X(SM90A, sm_90a, 192, 192, 2, 2, 64) \
    X(SM90A, sm_90a, 96, 96, 1, 2, 16)   \
    X(SM90A, sm_90a, 96, 96, 1, 2, 32)   \
    X(SM90A, sm_90a, 96, 96, 1, 2, 64)   \
    X(SM90A, sm_90a, 128, 128, 1, 2, 16) \
    X(SM90A, sm_90a, 128, 128, 1, 2, 32) \
    X(SM90A, sm_90a, 128, 128, 1, 2, 64) \
    X(SM90A, sm_90a, 192, 128, 1, 2, 16) \
    X(SM90A, sm_90a, 192, 128, 1, 2, 32) \
    X(SM90A, sm_90a, 192, 128, 1, 2, 64) \
    X(SM90A, sm_90a, 256, 256, 1, 2, 16) \
    X(SM90A, sm_90a, 256, 256, 1, 2, 32) \
    X(SM90A, sm_90a, 256, 256, 1, 2, 64) \
    X(SM90A, sm_90a, 512, 512, 1, 2, 16) \
    X(SM90A, sm_90a, 512, 512, 1, 2, 32) \
    X(SM90A, sm_90a, 128, 128, 2, 1, 16) \
    X(SM90A, sm_90a, 128, 128, 2, 1, 32) \
    X(SM90A, sm_90a, 128, 128, 2, 1, 64) \
    X(SM90A, sm_90a, 64, 64, 1, 1, 16)   \
    X(SM90A, sm_90a, 64, 64, 1, 1, 32)   \
    X(SM90A, sm_90a, 64, 64, 1, 1, 64)   \
    X(SM90A, sm_90a, 384, 384, 4, 1, 32) \
    X(SM90A, sm_90a, 96, 96, 1, 1, 16)   \
    X(SM90A, sm_90a, 96, 96, 1, 1, 32)   \
    X(SM90A, sm_90a, 96, 96, 1, 1, 64)   \
    X(SM90A, sm_90a, 128, 128, 1, 1, 16) \
    X(SM90A, sm_90a, 128, 128, 1, 1, 32) \
    X(SM90A, sm_90a, 128, 128, 1, 1, 64) \
    X(SM90A, sm_90a, 192, 128, 1, 1, 16) \
    X(SM90A, sm_90a, 192, 128, 1, 1, 32) \
    X(SM90A, sm_90a, 192, 128, 1, 1, 64) \
    X(SM90A, sm_90a, 256, 256, 1, 1, 16) \
    X(SM90A, sm_90a, 256, 256, 1, 1, 32) \
    X(SM90A, sm_90a, 512, 512, 1, 1, 16) \
    X(SM90A, sm_90a, 512, 512, 1, 1, 32)

/* A chunk: columns of Q or P, or of 16-bit K and V, in a swizzle row. */
#define SM90A_DECODE_CHUNK         (SWIZZLE_BYTES / 2)
#define SM90A_DECODE_CHUNKS(d)     (((d) + SM90A_DECODE_CHUNK - 1) / SM90A_DECODE_CHUNK)
#define SM90A_DECODE_ROW_CHUNK(n)  ((n)*SWIZZLE_BYTES) /* of Q or P */
#define SM90A_DECODE_Q_CHUNKS(qk)  ((qk) == 384 ? 2 : SM90A_DECODE_CHUNKS(qk))
#define SM90A_DECODE_TILE_Q(qk, n) (SM90A_DECODE_Q_CHUNKS(qk) * SM90A_DECODE_ROW_CHUNK(n))
#define SM90A_DECODE_TILE_P(n)     (2 * SM90A_DECODE_ROW_CHUNK(n)) /* a chunk: 64 keys */

/* A unit of the ring is a block's keys of one swizzle row of K or V: 64 columns of 16 bits, 128 of e4m3,
 * or 64 of e4m3 where 128 would leave half a unit of K empty: its rows are then swizzled as rows of 64
 * bytes. The last unit of 96 columns is half a one, or three quarters. */
#define SM90A_DECODE_COLUMNS(qk, e) ((e) == 1 && (qk) != 64 && (qk) != 192 ? 128 : 64)
#define SM90A_DECODE_ROW(qk, e)     (SM90A_DECODE_COLUMNS(qk, e) * (e))
#define SM90A_DECODE_UNIT(qk, e)    (DECODE_BLOCK * SM90A_DECODE_ROW(qk, e))
#define SM90A_DECODE_UNITS(d, qk, e) \
    (((d) + SM90A_DECODE_COLUMNS(qk, e) - 1) / SM90A_DECODE_COLUMNS(qk, e))

/* Dynamic shared memory, from its 1024-aligned start: Q of two tiles, P, the ring of as many units as
 * fit. */
#define SM90A_DECODE_P(qk, n)    (2 * SM90A_DECODE_TILE_Q(qk, n))
#define SM90A_DECODE_RING(qk, n) (SM90A_DECODE_P(qk, n) + SM90A_DECODE_TILE_P(n))
/* Bound on barriers, masks, maxima, and with e4m3 factors of rows. */
#define SM90A_DECODE_STATIC_BYTES(e) ((e) == 1 ? 2688 : 3072)
#define SM90A_DECODE_SLOTS(qk, e, n)                                               \
    ((SM_SHARED_BYTES - SM90A_DECODE_STATIC_BYTES(e) - SM90A_DECODE_RING(qk, n)) / \
     SM90A_DECODE_UNIT(qk, e))
#define SM90A_DECODE_DYNAMIC_SHARED(qk, e, n) \
    (SM90A_DECODE_RING(qk, n) + SM90A_DECODE_SLOTS(qk, e, n) * SM90A_DECODE_UNIT(qk, e))

/* In the tile's Q behind its last block: sums of each warp's columns. In tile_p: a row's place in O and
 * its factor. */
#define SM90A_DECODE_OUT_BYTES  16 /* u64 address or 0, f32 factor, f32 log2-sum-exp of a part */
#define SM90A_DECODE_OUT_FACTOR 8
#define SM90A_DECODE_OUT_LSE    12

/* What the producers tell of a tile, u32: sequence (-1: no more tiles), begin, end, blocks; token,
 * head_block, kv_head, keys; queries, q_base, q_plane, left; first, parts. */
#define SM90A_DECODE_TILE_WORDS 16

/* Threads: a warpgroup of producers, two of consumers. Registers after setmaxnreg. */
#define SM90A_DECODE_THREADS          384
#define SM90A_DECODE_WARPS            (SM90A_DECODE_THREADS / 32)
#define SM90A_DECODE_PRODUCER_REGS(e) ((e) == 1 ? 72 : 88)
#define SM90A_DECODE_CONSUMER_REGS(e) \
    ((3 * SM_REGISTERS_8(SM90A_DECODE_THREADS) - SM90A_DECODE_PRODUCER_REGS(e)) / 2)
#define SM90A_DECODE_ARRIVALS 128 /* of a full_bar: each producer thread, or one for all */
#define SM90A_DECODE_RELEASES(e) \
    ((e) == 1 ? 8 : 2) /* of an empty_bar: consumer warps, or warpgroups */

#define SM90A_DECODE_TMEM_COLUMNS 0
#define SM90A_DECODE_CTAS_PER_SM  1

/* The worksheet, for `hewn worksheet`: lists as in gemm.plan.h, here of a variant. */

/* X(name, first warp, warps) */
#define SM90A_DECODE_ROLES(X) \
    X(producer, 0, 4)         \
    X(consumer, 4, 8)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM90A_DECODE_SHARED(X, qk, v, e, n)                     \
    X(tile_q, 0, SM90A_DECODE_TILE_Q(qk, n), 2)                 \
    X(tile_p, SM90A_DECODE_P(qk, n), SM90A_DECODE_TILE_P(n), 1) \
    X(ring, SM90A_DECODE_RING(qk, n), SM90A_DECODE_UNIT(qk, e), SM90A_DECODE_SLOTS(qk, e, n))

#define SM90A_DECODE_TMEM(X, qk, v)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits) */
#define SM90A_DECODE_HANDOFFS(X, qk, e, n)                                              \
    X(full_bar, SM90A_DECODE_ARRIVALS, 0, SM90A_DECODE_UNIT(qk, e), producer, consumer) \
    X(empty_bar, SM90A_DECODE_RELEASES(e), 0, 0, consumer, producer)                    \
    X(q_full, 1, 0, SM90A_DECODE_TILE_Q(qk, n), producer, consumer)                     \
    X(q_empty, 1, 0, 0, consumer, producer)

/* X(storage, writers, readers) */
#define SM90A_DECODE_FLOWS(X, e)                                \
    X(tile_q, producer.tma + consumer, consumer.mma + consumer) \
    X(tile_p, consumer, consumer.mma + consumer)                \
    X(maxima, consumer, consumer)                               \
    X(tree_masks, consumer, consumer)                           \
    X(limits, consumer, consumer)                               \
    X(tile_words, producer, consumer)                           \
    X(split_found, producer + consumer, producer + consumer)    \
    X(split_sums, producer + consumer, producer + consumer)     \
    SM90A_DECODE_RING_FLOWS_##e(X)
#define SM90A_DECODE_RING_FLOWS_1(X) X(ring, producer.tma + producer, consumer)
#define SM90A_DECODE_RING_FLOWS_2(X) X(ring, producer.tma + producer + consumer, consumer.mma)
/* Beside e4m3 keys, rows of bf16 are scaled. */
#define SM90A_DECODE_SCALED_FLOWS(X) X(row_factors, consumer, consumer)

#endif
