/*
 * The plan of the sm_100f GEMM: tile, ring, shared memory, tensor memory, threads. #defines only,
 * included by gemm.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise.
 */
#ifndef HEWN_SM100F_GEMM_PLAN_H
#define HEWN_SM100F_GEMM_PLAN_H

#include "../inc/gemm.plan.h"

/* One CTA computes TILE_M x TILE_N of D from k-blocks of TILE_K (128 bytes of bf16 or f16: one
 * swizzle row). */
#define SM100F_GEMM_TILE_M 128
#define SM100F_GEMM_TILE_N 256
#define SM100F_GEMM_TILE_K 64
#define SM100F_GEMM_ROW_BYTES 128
#define SM100F_GEMM_STAGES 4

/* Threads: four epilogue warps, the TMA producer warp, the MMA warp. */
#define SM100F_GEMM_THREADS        192
#define SM100F_GEMM_EPILOGUE_WARPS 4
#define SM100F_GEMM_PRODUCER_WARP  4
#define SM100F_GEMM_MMA_WARP       5

/* Output boxes: each epilogue warp stores its own 32 rows, 128 bytes wide, through two buffers. */
#define SM100F_GEMM_D_ROWS    32
#define SM100F_GEMM_D_BYTES   4096 /* D_ROWS * GEMM_D_ROW_BYTES */
#define SM100F_GEMM_D_BUFFERS 2

/* Dynamic shared memory, from its 1024-aligned start. */
#define SM100F_GEMM_A_BYTES        16384 /* TILE_M * TILE_K * 2 */
#define SM100F_GEMM_B_BYTES        32768 /* TILE_N * TILE_K * 2 */
#define SM100F_GEMM_STAGE_BYTES    49152 /* A_BYTES + B_BYTES: what one FULL phase waits for */
#define SM100F_GEMM_RING_A         0
#define SM100F_GEMM_RING_B         65536  /* RING_A + STAGES * A_BYTES */
#define SM100F_GEMM_STAGE_D        196608 /* RING_B + STAGES * B_BYTES */
#define SM100F_GEMM_DYNAMIC_SHARED 229376 /* STAGE_D + 4 warps * D_BUFFERS * D_BYTES */

/* Tensor memory: two fp32 accumulators of 128 lanes, one in the making and one on its way out. */
#define SM100F_GEMM_ACCUMULATORS 2
#define SM100F_GEMM_ACC_COLUMNS  256
#define SM100F_GEMM_TMEM_COLUMNS 512

/* Cluster: one CTA, which shares no loads and sums up all of K. */
#define SM100F_GEMM_PAIR_M 1
#define SM100F_GEMM_PAIR_N 1
#define SM100F_GEMM_PARTS  1

#define SM100F_GEMM_CAN 0

/* Grid: min(tiles, SMs * CTAS_PER_SM) CTAs, each walking tiles ctaid, ctaid + grid, ... */
#define SM100F_GEMM_CTAS_PER_SM 1
/* Tile rows walked together (see inc/raster.inc): 16 x 9.25 tiles of one wave on 148 SMs cover
 * about 2048 x 2368 of D, the squarest footprint in L2. */
#define SM100F_GEMM_RASTER_ROWS 16

/* X(name, first warp, warps) */
#define SM100F_GEMM_ROLES(X)                                                                       \
    X(epilogue, 0, SM100F_GEMM_EPILOGUE_WARPS)                                                     \
    X(producer, SM100F_GEMM_PRODUCER_WARP, 1)                                                      \
    X(mma, SM100F_GEMM_MMA_WARP, 1)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM100F_GEMM_SHARED(X)                                                                      \
    X(ring_a, SM100F_GEMM_RING_A, SM100F_GEMM_A_BYTES, SM100F_GEMM_STAGES)                         \
    X(ring_b, SM100F_GEMM_RING_B, SM100F_GEMM_B_BYTES, SM100F_GEMM_STAGES)                         \
    X(stage_d, SM100F_GEMM_STAGE_D, SM100F_GEMM_D_BYTES, 8)

/* X(name, first column, columns) */
#define SM100F_GEMM_TMEM(X)                                                                        \
    X(acc_0, 0, SM100F_GEMM_ACC_COLUMNS)                                                           \
    X(acc_1, 256, SM100F_GEMM_ACC_COLUMNS)

/* The worksheet, for `hewn worksheet` to hold against a run. X(barrier, arrivals, bytes of a phase,
 * who signals, who waits): roles. X(storage, writers, readers): a role's threads, its .tma, its
 * .mma, its .ld (tcgen05.ld). */
#define SM100F_GEMM_HANDOFFS(X)                                                                    \
    X(full_bar, 1, SM100F_GEMM_STAGE_BYTES, producer, mma)                                         \
    X(empty_bar, 1, 0, mma, producer)                                                              \
    X(acc_full, 1, 0, mma, epilogue)                                                               \
    X(acc_empty, SM100F_GEMM_EPILOGUE_WARPS, 0, epilogue, mma)
#define SM100F_GEMM_FLOWS(X)                                                                       \
    X(ring_a, producer.tma, mma.mma)                                                               \
    X(ring_b, producer.tma, mma.mma)                                                               \
    X(stage_d, epilogue, epilogue.tma + epilogue)                                                  \
    X(tmem_base, mma, epilogue + producer + mma)                                                   \
    X(acc_0, mma.mma, epilogue.ld)                                                                 \
    X(acc_1, mma.mma, epilogue.ld)

#endif
