/*
 * The plan of the sm_90a GEMM: tile, ring, shared memory, threads. #defines only, included by
 * gemm.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise.
 */
#ifndef HEWN_SM90A_GEMM_PLAN_H
#define HEWN_SM90A_GEMM_PLAN_H

#include "../inc/gemm.plan.h"

/* One CTA computes TILE_M x TILE_N of D from k-blocks of TILE_K (128 bytes of bf16 or f16: one
 * swizzle row). */
#define SM90A_GEMM_TILE_M 128
#define SM90A_GEMM_TILE_N 256
#define SM90A_GEMM_TILE_K 64
#define SM90A_GEMM_STAGES 4

/* Threads: a producer warpgroup and two consumer warpgroups of 64 x TILE_N each. */
#define SM90A_GEMM_THREADS        384
#define SM90A_GEMM_PRODUCER_WARPS 4
#define SM90A_GEMM_CONSUMER_WARPS 8
#define SM90A_GEMM_GROUP_ROWS     64 /* rows of D a consumer warpgroup owns */

/* Registers a thread after setmaxnreg: 24 + 2 * 240 = 3 * 168, the pool of 384 threads. */
#define SM90A_GEMM_PRODUCER_REGS 24
#define SM90A_GEMM_CONSUMER_REGS 240

/* Output boxes: each consumer warp stores its own 16 rows, 128 bytes wide, through two buffers. */
#define SM90A_GEMM_D_ROWS    16
#define SM90A_GEMM_D_BYTES   2048 /* D_ROWS * GEMM_D_ROW_BYTES */
#define SM90A_GEMM_D_BUFFERS 2

/* Dynamic shared memory, from its 1024-aligned start. */
#define SM90A_GEMM_A_BYTES        16384 /* TILE_M * TILE_K * 2 */
#define SM90A_GEMM_B_BYTES        32768 /* TILE_N * TILE_K * 2 */
#define SM90A_GEMM_STAGE_BYTES    49152 /* A_BYTES + B_BYTES: what one FULL phase waits for */
#define SM90A_GEMM_RING_A         0
#define SM90A_GEMM_RING_B         65536  /* RING_A + STAGES * A_BYTES */
#define SM90A_GEMM_STAGE_D        196608 /* RING_B + STAGES * B_BYTES */
#define SM90A_GEMM_DYNAMIC_SHARED 229376 /* STAGE_D + 8 warps * D_BUFFERS * D_BYTES */

#define SM90A_GEMM_TMEM_COLUMNS 0
#define SM90A_GEMM_CLUSTER      1

/* Grid: min(tiles, SMs * CTAS_PER_SM) CTAs, each walking tiles ctaid, ctaid + grid, ... */
#define SM90A_GEMM_CTAS_PER_SM 1
/* Tile rows walked together (see inc/raster.inc): 16 x 8.25 tiles of one wave on 132 SMs cover
 * about 2048 x 2112 of D, the squarest footprint in L2. */
#define SM90A_GEMM_RASTER_ROWS 16

/* X(name, first warp, warps) */
#define SM90A_GEMM_ROLES(X)                                                                        \
    X(producer, 0, 4)                                                                              \
    X(consumer_0, 4, 4)                                                                            \
    X(consumer_1, 8, 4)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM90A_GEMM_SHARED(X)                                                                       \
    X(ring_a, SM90A_GEMM_RING_A, SM90A_GEMM_A_BYTES, SM90A_GEMM_STAGES)                            \
    X(ring_b, SM90A_GEMM_RING_B, SM90A_GEMM_B_BYTES, SM90A_GEMM_STAGES)                            \
    X(stage_d, SM90A_GEMM_STAGE_D, SM90A_GEMM_D_BYTES, 16)

/* X(name, first column, columns): this target has no tensor memory. */
#define SM90A_GEMM_TMEM(X)

/* The worksheet, for `hewn worksheet` to hold against a run. X(barrier, arrivals, bytes of a phase,
 * who signals, who waits): roles. X(storage, writers, readers): a role's threads, its .tma, its .mma
 * (wgmma). */
#define SM90A_GEMM_HANDOFFS(X)                                                                     \
    X(full_bar, 1, SM90A_GEMM_STAGE_BYTES, producer, consumer_0 + consumer_1)                      \
    X(empty_bar, SM90A_GEMM_CONSUMER_WARPS, 0, consumer_0 + consumer_1, producer)
#define SM90A_GEMM_FLOWS(X)                                                                        \
    X(ring_a, producer.tma, consumer_0.mma + consumer_1.mma)                                       \
    X(ring_b, producer.tma, consumer_0.mma + consumer_1.mma)                                       \
    X(stage_d, consumer_0 + consumer_1, consumer_0.tma + consumer_1.tma + consumer_0 + consumer_1)

#endif
