/*
 * The plan of the sm_90a kernels of products with 4-bit weights: roles, ring, shared memory.
 * #defines only, included by w4.ptx, by the runtime and by tools/mod. Bytes unless a name says
 * otherwise.
 *
 * A variant is (format, width): the most rows of D in a tile. What a shape decides, the host
 * computes and passes on: chunks of a tile, `rows`, `stages` of the ring, parts of K, and from
 * these the dynamic shared memory.
 */
#ifndef HEWN_SM90A_W4_PLAN_H
#define HEWN_SM90A_W4_PLAN_H

#include "../inc/w4.plan.h"

/* X(this prefix, target, format, width): every variant. */
#define SM90A_W4_VARIANTS(X)    \
    X(SM90A, sm_90a, int4, 16)  \
    X(SM90A, sm_90a, int4, 64)  \
    X(SM90A, sm_90a, uint4, 16) \
    X(SM90A, sm_90a, uint4, 64)

/* Two consumer warpgroups, then a producer warp. */
#define SM90A_W4_CONSUMER_WARPS   8
#define SM90A_W4_CONSUMER_THREADS (32 * SM90A_W4_CONSUMER_WARPS)
#define SM90A_W4_PRODUCER_WARPS   1
#define SM90A_W4_THREADS          (32 * (SM90A_W4_CONSUMER_WARPS + SM90A_W4_PRODUCER_WARPS))

/* The most chunks of a tile, parts of K, stages. */
#define SM90A_W4_CHUNKS 4
#define SM90A_W4_PARTS  8
#define SM90A_W4_STAGES 24

/* Columns of the MMA: the least of 8, 16, 32, 64 that holds m rows of D, or 64. */
#define SM90A_W4_MMA_N(m) ((m) <= 8 ? 8 : (m) <= 16 ? 16 : (m) <= 32 ? 32 : 64)

/* A k-block of X: two boxes of 64 k, `rows` rows of 128 bytes each. */
#define SM90A_W4_X_BYTES(rows) (2 * (rows) * SWIZZLE_BYTES)

/* Sums of a part, in place of the ring: a row of D each, 16 bytes longer than its chunks, so that
 * the lanes that write have different banks. */
#define SM90A_W4_SUM_PITCH(chunks) ((chunks) * W4_CHUNK * 4 + 16)

/* The most dynamic shared memory: what an SM leaves beside the barriers. */
#define SM90A_W4_STATIC_BYTES   1024
#define SM90A_W4_DYNAMIC_SHARED (SM_SHARED_BYTES - SM90A_W4_STATIC_BYTES)

#define SM90A_W4_CTAS_16 2
#define SM90A_W4_CTAS_64 1

/* ---- the worksheet, which `hewn worksheet` compares with a run ---- */

/* X(name, first warp, warps) */
#define SM90A_W4_ROLES(X)   \
    X(consumer_0, 0, 4)     \
    X(consumer_1, 4, 4)     \
    X(producer, 8, SM90A_W4_PRODUCER_WARPS)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits). empty_bar: 4 where
 * a tile has only one chunk. */
#define SM90A_W4_HANDOFFS(X)                                          \
    X(full_bar, 1, W4_BLOCK_BYTES(1, 0) + SM90A_W4_X_BYTES(8),        \
      SM90A_W4_CHUNKS *W4_MAX_BYTES + SM90A_W4_X_BYTES(64), producer, \
      consumer_0 + consumer_1)                                        \
    X(empty_bar, 8, 0, 0, consumer_0 + consumer_1, producer)

/* Dynamic shared memory is not listed, nor its flows: its size is the launch's. */

#endif
