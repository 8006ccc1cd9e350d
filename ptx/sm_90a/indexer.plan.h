/*
 * The plan of the sm_90a indexer kernels: tiles, ring, shared memory, threads. #defines only, included by
 * indexer.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise. A variant is (h, n):
 * heads of a query, queries of a tile.
 */
#ifndef HEWN_SM90A_INDEXER_PLAN_H
#define HEWN_SM90A_INDEXER_PLAN_H

#include "../inc/indexer.plan.h"

/* X(this prefix, target, h, n): every variant, narrowest first for each h. */
#define SM90A_INDEXER_VARIANTS(X) \
    X(SM90A, sm_90a, 32, 2)       \
    X(SM90A, sm_90a, 32, 4)       \
    X(SM90A, sm_90a, 32, 8)       \
    X(SM90A, sm_90a, 64, 1)       \
    X(SM90A, sm_90a, 64, 2)       \
    X(SM90A, sm_90a, 64, 4)

/* Keys of a block. */
#define SM90A_INDEXER_BLOCK     64
#define SM90A_INDEXER_LOG_BLOCK 6

/* Dynamic shared memory, from its 1024-aligned start: Q of two tiles, the ring, its scales. */
#define SM90A_INDEXER_TILE_Q(h, n) ((h) * (n)*SWIZZLE_BYTES)
#define SM90A_INDEXER_TILES        2
#define SM90A_INDEXER_SLOT         (SM90A_INDEXER_BLOCK * SWIZZLE_BYTES)
#define SM90A_INDEXER_SLOTS        16 /* a power of two */
#define SM90A_INDEXER_LOG_SLOTS    4
#define SM90A_INDEXER_RING(h, n)   (SM90A_INDEXER_TILES * SM90A_INDEXER_TILE_Q(h, n))
#define SM90A_INDEXER_SCALES(h, n) \
    (SM90A_INDEXER_RING(h, n) + SM90A_INDEXER_SLOTS * SM90A_INDEXER_SLOT)
#define SM90A_INDEXER_SCALE_BYTES (4 * SM90A_INDEXER_BLOCK)
#define SM90A_INDEXER_DYNAMIC_SHARED(h, n) \
    (SM90A_INDEXER_SCALES(h, n) + SM90A_INDEXER_SLOTS * SM90A_INDEXER_SCALE_BYTES)
#define SM90A_INDEXER_STATIC_BYTES 1024 /* bound on barriers and sums */

/* Threads: a warpgroup of the producer and three idle warps, then two consumer warpgroups. Registers a
 * thread after setmaxnreg. */
#define SM90A_INDEXER_THREADS       384
#define SM90A_INDEXER_WARPS         (SM90A_INDEXER_THREADS / 32)
#define SM90A_INDEXER_PRODUCER_REGS 40
#define SM90A_INDEXER_CONSUMER_REGS 232

#define SM90A_INDEXER_CTAS_PER_SM 1

/* The worksheet, for `hewn worksheet`: lists as in gemm.plan.h, here of a variant. */

/* X(name, first warp, warps) */
#define SM90A_INDEXER_ROLES(X) \
    X(producer, 0, 1)          \
    X(idle, 1, 3)              \
    X(consumer, 4, 8)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM90A_INDEXER_SHARED(X, h, n)                                          \
    X(tile_q, 0, SM90A_INDEXER_TILE_Q(h, n), SM90A_INDEXER_TILES)              \
    X(ring, SM90A_INDEXER_RING(h, n), SM90A_INDEXER_SLOT, SM90A_INDEXER_SLOTS) \
    X(scales_of, SM90A_INDEXER_SCALES(h, n), SM90A_INDEXER_SCALE_BYTES, SM90A_INDEXER_SLOTS)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits) */
#define SM90A_INDEXER_HANDOFFS(X, h, n)                                                           \
    X(full_bar, 32, SM90A_INDEXER_SLOT, SM90A_INDEXER_SLOT + SM90A_INDEXER_SCALE_BYTES, producer, \
      consumer)                                                                                   \
    X(empty_bar, 4, 0, 0, consumer, producer)                                                     \
    X(q_full, 1, SM90A_INDEXER_TILE_Q(h, n), SM90A_INDEXER_TILE_Q(h, n), producer, consumer)      \
    X(q_empty, 8, 0, 0, consumer, producer)

/* X(storage, writers, readers) */
#define SM90A_INDEXER_FLOWS(X)                                      \
    X(tile_q, producer.tma, consumer.mma)                           \
    X(ring, producer.tma, consumer.mma)                             \
    X(scales_of, producer.tma + producer.cp, consumer)              \
    X(sums, producer + idle + consumer, producer + idle + consumer) \
    X(found, producer + idle + consumer, producer + idle + consumer)

#endif
