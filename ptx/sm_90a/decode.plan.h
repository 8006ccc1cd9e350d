/*
 * The plan of the sm_90a decode kernels: tiles, ring, shared memory, threads. #defines only,
 * included by decode.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise. A
 * variant is (qk, v, e, n): head dimension of Q and K, of V, bytes of an element of K and V (2; 1:
 * e4m3, beside 16-bit Q), query rows of a tile.
 */
#ifndef HEWN_SM90A_DECODE_PLAN_H
#define HEWN_SM90A_DECODE_PLAN_H

#include "../inc/decode.plan.h"

/* X(this prefix, target, qk, v, e, n): every variant; a module is one of an input dtype. */
#define SM90A_DECODE_VARIANTS(X)      \
    X(SM90A, sm_90a, 64, 64, 2, 16)   \
    X(SM90A, sm_90a, 64, 64, 2, 32)   \
    X(SM90A, sm_90a, 64, 64, 2, 64)   \
    X(SM90A, sm_90a, 96, 96, 2, 16)   \
    X(SM90A, sm_90a, 96, 96, 2, 32)   \
    X(SM90A, sm_90a, 96, 96, 2, 64)   \
    X(SM90A, sm_90a, 128, 128, 2, 16) \
    X(SM90A, sm_90a, 128, 128, 2, 32) \
    X(SM90A, sm_90a, 128, 128, 2, 64) \
    X(SM90A, sm_90a, 192, 128, 2, 16) \
    X(SM90A, sm_90a, 192, 128, 2, 32) \
    X(SM90A, sm_90a, 192, 128, 2, 64) \
    X(SM90A, sm_90a, 256, 256, 2, 16) \
    X(SM90A, sm_90a, 256, 256, 2, 32) \
    X(SM90A, sm_90a, 256, 256, 2, 64) \
    X(SM90A, sm_90a, 512, 512, 2, 16) \
    X(SM90A, sm_90a, 512, 512, 2, 32) \
    X(SM90A, sm_90a, 128, 128, 1, 16) \
    X(SM90A, sm_90a, 128, 128, 1, 32) \
    X(SM90A, sm_90a, 128, 128, 1, 64) \
    X(SM90A, sm_90a, 256, 256, 1, 16) \
    X(SM90A, sm_90a, 256, 256, 1, 32)

/* Columns of a chunk of Q and P, and of 16-bit K and V: one swizzle row. A unit of the ring is a block's
 * keys of one swizzle row of K or V, 16 KB: CHUNK columns, of e4m3 twice as many; the last unit of 96
 * columns is half a one. */
#define SM90A_DECODE_CHUNK         (SWIZZLE_BYTES / 2)
#define SM90A_DECODE_CHUNKS(d)     (((d) + SM90A_DECODE_CHUNK - 1) / SM90A_DECODE_CHUNK)
#define SM90A_DECODE_COLUMNS(e)    (SWIZZLE_BYTES / (e)) /* of a unit */
#define SM90A_DECODE_UNITS(d, e)   (((d) + SM90A_DECODE_COLUMNS(e) - 1) / SM90A_DECODE_COLUMNS(e))
#define SM90A_DECODE_UNIT          (DECODE_BLOCK * SWIZZLE_BYTES)
#define SM90A_DECODE_ROW_CHUNK(n)  ((n)*SWIZZLE_BYTES) /* of Q or P */
#define SM90A_DECODE_TILE_Q(qk, n) (SM90A_DECODE_CHUNKS(qk) * SM90A_DECODE_ROW_CHUNK(n))
#define SM90A_DECODE_TILE_P(n)     (2 * SM90A_DECODE_ROW_CHUNK(n)) /* a chunk: 64 keys */

/* Dynamic shared memory, from its 1024-aligned start: Q of two tiles, P, of e4m3 a warpgroup's share of a
 * unit as 16-bit elements, the ring of as many units as fit. */
#define SM90A_DECODE_P(qk, n)     (2 * SM90A_DECODE_TILE_Q(qk, n))
#define SM90A_DECODE_STAGE(qk, n) (SM90A_DECODE_P(qk, n) + SM90A_DECODE_TILE_P(n))
#define SM90A_DECODE_STAGE_BYTES  SM90A_DECODE_UNIT /* a warpgroup */
#define SM90A_DECODE_STAGES(e)    ((e) == 1 ? 2 : 0)
#define SM90A_DECODE_RING(qk, e, n) \
    (SM90A_DECODE_STAGE(qk, n) + SM90A_DECODE_STAGES(e) * SM90A_DECODE_STAGE_BYTES)
#define SM90A_DECODE_STATIC_BYTES 2048 /* bound on barriers, masks, maxima */
#define SM90A_DECODE_SLOTS(qk, e, n)                                               \
    ((SM_SHARED_BYTES - SM90A_DECODE_STATIC_BYTES - SM90A_DECODE_RING(qk, e, n)) / \
     SM90A_DECODE_UNIT)
#define SM90A_DECODE_DYNAMIC_SHARED(qk, e, n) \
    (SM90A_DECODE_RING(qk, e, n) + SM90A_DECODE_SLOTS(qk, e, n) * SM90A_DECODE_UNIT)

/* In the tile's Q behind its last block: sums of each warp's columns. In tile_p: a row's place in O and
 * its factor. */
#define SM90A_DECODE_OUT_BYTES  16 /* u64 address or 0, f32 factor, f32 log2-sum-exp of a part */
#define SM90A_DECODE_OUT_FACTOR 8
#define SM90A_DECODE_OUT_LSE    12

/* Threads: a warpgroup of producers, two of consumers. Registers after setmaxnreg. */
#define SM90A_DECODE_THREADS       384
#define SM90A_DECODE_WARPS         (SM90A_DECODE_THREADS / 32)
#define SM90A_DECODE_PRODUCER_REGS 88
#define SM90A_DECODE_CONSUMER_REGS \
    ((3 * SM_REGISTERS_8(SM90A_DECODE_THREADS) - SM90A_DECODE_PRODUCER_REGS) / 2)
#define SM90A_DECODE_ARRIVALS 128 /* of a full_bar: each producer thread, or one for all */

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
    SM90A_DECODE_STAGE_##e(X, qk, n)                            \
        X(ring, SM90A_DECODE_RING(qk, e, n), SM90A_DECODE_UNIT, SM90A_DECODE_SLOTS(qk, e, n))
#define SM90A_DECODE_STAGE_1(X, qk, n) \
    X(stage, SM90A_DECODE_STAGE(qk, n), SM90A_DECODE_STAGE_BYTES, 2)
#define SM90A_DECODE_STAGE_2(X, qk, n)

#define SM90A_DECODE_TMEM(X, qk, v)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits) */
#define SM90A_DECODE_HANDOFFS(X, qk, n)                                          \
    X(full_bar, SM90A_DECODE_ARRIVALS, 0, SM90A_DECODE_UNIT, producer, consumer) \
    X(empty_bar, 2, 0, 0, consumer, producer)                                    \
    X(q_full, 1, 0, SM90A_DECODE_TILE_Q(qk, n), producer, consumer)              \
    X(q_empty, 1, 0, 0, consumer, producer)

/* X(storage, writers, readers) */
#define SM90A_DECODE_FLOWS(X, e)                                \
    X(tile_q, producer.tma + consumer, consumer.mma + consumer) \
    X(tile_p, consumer, consumer.mma + consumer)                \
    SM90A_DECODE_RING_FLOWS_##e(X)
#define SM90A_DECODE_RING_FLOWS_1(X) \
    X(stage, consumer, consumer.mma) \
    X(ring, producer.tma + producer, consumer)
#define SM90A_DECODE_RING_FLOWS_2(X) X(ring, producer.tma + producer + consumer, consumer.mma)

#endif
