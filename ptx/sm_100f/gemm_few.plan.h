/*
 * The plan of the sm_100f GEMM of few rows: roles, rings, shared memory, tensor memory. #defines only, included by
 * gemm_few.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise.
 *
 * What a shape decides, the host computes and passes on: `columns` of D in a tile (where B is MN-major, a multiple
 * of 64) and `stages` of the ring.
 */
#ifndef HEWN_SM100F_GEMM_FEW_PLAN_H
#define HEWN_SM100F_GEMM_FEW_PLAN_H

#include "../inc/gemm.plan.h"

/* Four epilogue warps, the TMA producer warp, the MMA warp. */
#define SM100F_FEW_EPILOGUE_WARPS 4
#define SM100F_FEW_PRODUCER_WARP  SM100F_FEW_EPILOGUE_WARPS
#define SM100F_FEW_MMA_WARP       (SM100F_FEW_PRODUCER_WARP + 1)
#define SM100F_FEW_THREADS        (32 * (SM100F_FEW_MMA_WARP + 1))

/* The most rows of D; columns of D in a tile, the rows of an MMA; stages. */
#define SM100F_FEW_ROWS          256
#define SM100F_FEW_COLUMNS       128
#define SM100F_FEW_LEAST_COLUMNS 16
#define SM100F_FEW_STAGES        12
/* The most CTAs of a cluster, which share their loads of A. */
#define SM100F_FEW_SHARE 4

/* Columns of the MMA: rows of D come out of tensor memory in steps of 32. */
#define SM100F_FEW_STEP     32
#define SM100F_FEW_MMA_N(m) (((m) + SM100F_FEW_STEP - 1) / SM100F_FEW_STEP * SM100F_FEW_STEP)

/* A k-block of B, whatever `columns` is, because the MMA reads all rows; of A. MN-major: in boxes of 64. */
#define SM100F_FEW_B_BYTES        (SM100F_FEW_COLUMNS * GEMM_ROW_BYTES)
#define SM100F_FEW_MN_BYTES       (GEMM_MN_BOX * GEMM_ROW_BYTES)
#define SM100F_FEW_MN_BOXES(rows) (((rows) + GEMM_MN_BOX - 1) / GEMM_MN_BOX)
#define SM100F_FEW_A_BYTES(m, a_mn) \
    ((a_mn) ? SM100F_FEW_MN_BOXES(m) * SM100F_FEW_MN_BYTES : SM100F_FEW_MMA_N(m) * GEMM_ROW_BYTES)

/* The most dynamic shared memory: what an SM leaves beside the barriers. */
#define SM100F_FEW_STATIC_BYTES   1024
#define SM100F_FEW_DYNAMIC_SHARED (SM_SHARED_BYTES - SM100F_FEW_STATIC_BYTES)

/* fp32 accumulators of 128 lanes in tensor memory: one in the making, one on its way out. */
#define SM100F_FEW_ACCUMULATORS 2
#define SM100F_FEW_ACC_COLUMNS  SM100F_FEW_ROWS
#define SM100F_FEW_TMEM_COLUMNS (SM100F_FEW_ACCUMULATORS * SM100F_FEW_ACC_COLUMNS)

#define SM100F_FEW_CTAS_PER_SM 1
#define SM100F_FEW_D_ROWS      32 /* of map_d, which is not used */

#define SM100F_FEW_CAN (GEMM_CAN_MN | GEMM_CAN_FINISH | GEMM_CAN_FP8 | GEMM_CAN_SCALES)

/* ---- the worksheet, which `hewn worksheet` compares with a run ---- */

/* X(name, first warp, warps) */
#define SM100F_FEW_ROLES(X)                   \
    X(epilogue, 0, SM100F_FEW_EPILOGUE_WARPS) \
    X(producer, SM100F_FEW_PRODUCER_WARP, 1)  \
    X(mma, SM100F_FEW_MMA_WARP, 1)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM100F_FEW_SHARED(X) X(ring, 0, SM100F_FEW_DYNAMIC_SHARED, 1)

/* X(name, first column, columns) */
#define SM100F_FEW_TMEM(X)              \
    X(acc_0, 0, SM100F_FEW_ACC_COLUMNS) \
    X(acc_1, SM100F_FEW_ACC_COLUMNS, SM100F_FEW_ACC_COLUMNS)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits) */
#define SM100F_FEW_HANDOFFS(X)                                                                \
    X(full_bar, 1, 2 * GEMM_ROW_BYTES, SM100F_FEW_B_BYTES + SM100F_FEW_ROWS * GEMM_ROW_BYTES, \
      producer, mma)                                                                          \
    X(empty_bar, SM100F_FEW_SHARE, 0, 0, mma + producer, producer)                            \
    X(acc_full, 1, 0, 0, mma, epilogue)                                                       \
    X(acc_empty, SM100F_FEW_EPILOGUE_WARPS, 0, 0, epilogue, mma)

/* X(storage, writers, readers) */
#define SM100F_FEW_FLOWS(X)                      \
    X(ring, producer.tma + epilogue, mma.mma)    \
    X(tmem_base, mma, epilogue + producer + mma) \
    X(acc_0, mma.mma, epilogue.ld)               \
    X(acc_1, mma.mma, epilogue.ld)

#endif
