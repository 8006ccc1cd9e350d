/*
 * The plan of the sm_90a GEMM of few rows: roles, rings, shared memory. #defines only, included by gemm_few.ptx, by
 * the runtime and by tools/mod. Bytes unless a name says otherwise.
 *
 * What a shape decides, the host computes and passes on: `columns` of D in a tile (a multiple of 8; where B is
 * MN-major, of 64), `stages` of the ring, parts of K, and from these the dynamic shared memory.
 */
#ifndef HEWN_SM90A_GEMM_FEW_PLAN_H
#define HEWN_SM90A_GEMM_FEW_PLAN_H

#include "../inc/gemm.plan.h"

/* Two consumer warpgroups, then a producer warp. */
#define SM90A_FEW_CONSUMER_WARPS   8
#define SM90A_FEW_CONSUMER_THREADS (32 * SM90A_FEW_CONSUMER_WARPS)
#define SM90A_FEW_PRODUCER_WARPS   1
#define SM90A_FEW_THREADS          (32 * (SM90A_FEW_CONSUMER_WARPS + SM90A_FEW_PRODUCER_WARPS))

/* The most rows of D, columns of D in a tile, parts of K, stages. Columns come in chunks, the rows of an MMA, of
 * which a warpgroup has two at most. */
#define SM90A_FEW_ROWS    64
#define SM90A_FEW_COLUMNS 256
#define SM90A_FEW_CHUNK   64
#define SM90A_FEW_PARTS   8
#define SM90A_FEW_STAGES  24

/* Columns of the MMA: the least of 8, 16, 32, 64 that holds m rows of D. */
#define SM90A_FEW_MMA_N(m) ((m) <= 8 ? 8 : (m) <= 16 ? 16 : (m) <= 32 ? 32 : 64)

/* A k-block of B and of A. */
#define SM90A_FEW_CHUNK_BYTES (SM90A_FEW_CHUNK * GEMM_ROW_BYTES)
#define SM90A_FEW_B_BYTES(columns) \
    (((columns) + SM90A_FEW_CHUNK - 1) / SM90A_FEW_CHUNK * SM90A_FEW_CHUNK_BYTES)
#define SM90A_FEW_A_BYTES(m, a_mn) \
    ((a_mn) ? SM90A_FEW_CHUNK_BYTES : SM90A_FEW_MMA_N(m) * GEMM_ROW_BYTES)

/* Sums of a part, in place of the ring: a row of D each, 16 bytes longer than its chunks, so that the lanes that
 * write have different banks. */
#define SM90A_FEW_SUM_PAD            16
#define SM90A_FEW_SUM_PITCH(columns) (SM90A_FEW_B_BYTES(columns) / 32 + SM90A_FEW_SUM_PAD)

/* The most dynamic shared memory: what an SM leaves beside the barriers. */
#define SM90A_FEW_STATIC_BYTES   1024
#define SM90A_FEW_DYNAMIC_SHARED (SM_SHARED_BYTES - SM90A_FEW_STATIC_BYTES)

#define SM90A_FEW_CTAS_PER_SM 2
#define SM90A_FEW_D_ROWS      16 /* of map_d, which is not used */

#define SM90A_FEW_CAN \
    (GEMM_CAN_MN | GEMM_CAN_FINISH | GEMM_CAN_FP8 | GEMM_CAN_KINDS | GEMM_CAN_SCALES)

/* With B's rows twice, K-major inputs of 16 bits: columns of a tile come in chunks, half of its rows of B. */
#define SM90A_GLUFEW_CAN (GEMM_CAN_FINISH | GEMM_CAN_GLU)

/* What gemm_finish.inc asks for. */
#define SM90A_FEW_GROUP_N 64

/* ---- the worksheet, which `hewn worksheet` compares with a run ---- */

/* X(name, first warp, warps) */
#define SM90A_FEW_ROLES(X) \
    X(consumer_0, 0, 4)    \
    X(consumer_1, 4, 4)    \
    X(producer, 8, SM90A_FEW_PRODUCER_WARPS)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM90A_FEW_SHARED(X) X(ring, 0, SM90A_FEW_DYNAMIC_SHARED, 1)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits). empty_bar: 8 where a tile has more
 * than one chunk. */
#define SM90A_FEW_HANDOFFS(X)                                                 \
    X(full_bar, 1, 9 * GEMM_ROW_BYTES,                                        \
      SM90A_FEW_B_BYTES(SM90A_FEW_COLUMNS) + SM90A_FEW_CHUNK_BYTES, producer, \
      consumer_0 + consumer_1)                                                \
    X(empty_bar, 4, 0, 0, consumer_0 + consumer_1, producer)

/* X(storage, writers, readers) */
#define SM90A_FEW_FLOWS(X)                          \
    X(ring, producer.tma + consumer_0 + consumer_1, \
      consumer_0.mma + consumer_1.mma + consumer_0 + consumer_1)

#endif
