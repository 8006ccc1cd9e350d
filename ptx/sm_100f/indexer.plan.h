/*
 * The plan of the sm_100f indexer kernels: tiles, ring, shared memory, tensor memory, threads. #defines
 * only, included by indexer.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise. A
 * variant is (h, n): heads of a query, queries of a tile.
 */
#ifndef HEWN_SM100F_INDEXER_PLAN_H
#define HEWN_SM100F_INDEXER_PLAN_H

#include "../inc/indexer.plan.h"

/* X(this prefix, target, h, n): every variant, narrowest first for each h. */
#define SM100F_INDEXER_VARIANTS(X) \
    X(SM100F, sm_100f, 32, 2)      \
    X(SM100F, sm_100f, 32, 4)      \
    X(SM100F, sm_100f, 32, 8)      \
    X(SM100F, sm_100f, 64, 1)      \
    X(SM100F, sm_100f, 64, 2)      \
    X(SM100F, sm_100f, 64, 4)      \
    X(SM100F, sm_100f, 128, 1)     \
    X(SM100F, sm_100f, 128, 2)

/* Keys of a block: the rows of an MMA. */
#define SM100F_INDEXER_BLOCK     128
#define SM100F_INDEXER_LOG_BLOCK 7

/* Dynamic shared memory, from its 1024-aligned start: Q of two tiles, the ring, its scales, the weights
 * of a tile for each consumer warpgroup. */
#define SM100F_INDEXER_COLUMNS(h, n) ((h) * (n))
#define SM100F_INDEXER_TILE_Q(h, n)  (SM100F_INDEXER_COLUMNS(h, n) * SWIZZLE_BYTES)
#define SM100F_INDEXER_TILES         2
#define SM100F_INDEXER_SLOT          (SM100F_INDEXER_BLOCK * SWIZZLE_BYTES)
#define SM100F_INDEXER_SLOTS         8 /* a power of two */
#define SM100F_INDEXER_LOG_SLOTS     3
#define SM100F_INDEXER_RING(h, n)    (SM100F_INDEXER_TILES * SM100F_INDEXER_TILE_Q(h, n))
#define SM100F_INDEXER_SCALES(h, n) \
    (SM100F_INDEXER_RING(h, n) + SM100F_INDEXER_SLOTS * SM100F_INDEXER_SLOT)
#define SM100F_INDEXER_SCALE_BYTES (4 * SM100F_INDEXER_BLOCK)
#define SM100F_INDEXER_WEIGHTS(h, n) \
    (SM100F_INDEXER_SCALES(h, n) + SM100F_INDEXER_SLOTS * SM100F_INDEXER_SCALE_BYTES)
#define SM100F_INDEXER_WEIGHT_BYTES(h, n) (4 * SM100F_INDEXER_COLUMNS(h, n))
#define SM100F_INDEXER_GROUPS             2 /* consumer warpgroups */
#define SM100F_INDEXER_DYNAMIC_SHARED(h, n) \
    (SM100F_INDEXER_WEIGHTS(h, n) + SM100F_INDEXER_GROUPS * SM100F_INDEXER_WEIGHT_BYTES(h, n))
#define SM100F_INDEXER_STATIC_BYTES 1024 /* bound on barriers and sums */

/* Tensor memory: S of so many blocks. */
#define SM100F_INDEXER_BUFFERS(h, n)     (SM100F_INDEXER_COLUMNS(h, n) > 128 ? 2 : 4)
#define SM100F_INDEXER_LOG_BUFFERS(h, n) (SM100F_INDEXER_COLUMNS(h, n) > 128 ? 1 : 2)
#define SM100F_INDEXER_TMEM_COLUMNS(h, n) \
    (SM100F_INDEXER_BUFFERS(h, n) * SM100F_INDEXER_COLUMNS(h, n))

/* Threads: a warpgroup of producer, mma and two idle warps, then the consumers. */
#define SM100F_INDEXER_THREADS 384
#define SM100F_INDEXER_WARPS   (SM100F_INDEXER_THREADS / 32)

#define SM100F_INDEXER_CTAS_PER_SM 1

/* The worksheet, for `hewn worksheet`: lists as in gemm.plan.h, here of a variant. */

/* X(name, first warp, warps) */
#define SM100F_INDEXER_ROLES(X) \
    X(producer, 0, 1)           \
    X(mma, 1, 1)                \
    X(idle, 2, 2)               \
    X(consumer, 4, 8)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM100F_INDEXER_SHARED(X, h, n)                                                          \
    X(tile_q, 0, SM100F_INDEXER_TILE_Q(h, n), SM100F_INDEXER_TILES)                             \
    X(ring, SM100F_INDEXER_RING(h, n), SM100F_INDEXER_SLOT, SM100F_INDEXER_SLOTS)               \
    X(scales_of, SM100F_INDEXER_SCALES(h, n), SM100F_INDEXER_SCALE_BYTES, SM100F_INDEXER_SLOTS) \
    X(weights_of, SM100F_INDEXER_WEIGHTS(h, n), SM100F_INDEXER_WEIGHT_BYTES(h, n),              \
      SM100F_INDEXER_GROUPS)

/* X(name, first column, columns) */
#define SM100F_INDEXER_TMEM(X, h, n) X(s, 0, SM100F_INDEXER_TMEM_COLUMNS(h, n))

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits) */
#define SM100F_INDEXER_HANDOFFS(X, h, n)                                                   \
    X(full_bar, 32, SM100F_INDEXER_SLOT, SM100F_INDEXER_SLOT + SM100F_INDEXER_SCALE_BYTES, \
      producer, mma + consumer)                                                            \
    X(empty_bar, 4, 0, 0, consumer, producer)                                              \
    X(q_full, 1, SM100F_INDEXER_TILE_Q(h, n), SM100F_INDEXER_TILE_Q(h, n), producer, mma)  \
    X(q_empty, 1, 0, 0, mma, producer)                                                     \
    X(s_full, 1, 0, 0, mma, consumer)                                                      \
    X(s_empty, 4, 0, 0, consumer, mma)

/* X(storage, writers, readers) */
#define SM100F_INDEXER_FLOWS(X)                                                 \
    X(tile_q, producer.tma, mma.mma)                                            \
    X(ring, producer.tma, mma.mma)                                              \
    X(scales_of, producer.tma + producer.cp, consumer)                          \
    X(weights_of, consumer, consumer)                                           \
    X(s, mma.mma, consumer.ld)                                                  \
    X(tmem_base, mma, producer + mma + idle + consumer)                         \
    X(sums, producer + mma + idle + consumer, producer + mma + idle + consumer) \
    X(found, producer + mma + idle + consumer, producer + mma + idle + consumer)

#endif
