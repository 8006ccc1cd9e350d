/*
 * The plan of the sm_90a GEMM of few rows whose operands begin anywhere: roles, ring, shared memory. #defines
 * only, included by gemm_oddfew.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise.
 *
 * What a shape decides, the host computes and passes on: `columns` of D in a tile, a multiple of 16; `stages` of the
 * ring; parts of K; and from these the dynamic shared memory.
 */
#ifndef HEWN_SM90A_GEMM_ODDFEW_PLAN_H
#define HEWN_SM90A_GEMM_ODDFEW_PLAN_H

#include "../inc/gemm.plan.h"

/* All warps do the same. Warp w multiplies quarter w % 4 of a slice of k, and every other MMA's rows of B. */
#define SM90A_ODDFEW_WARPS    8
#define SM90A_ODDFEW_THREADS  (32 * SM90A_ODDFEW_WARPS)
#define SM90A_ODDFEW_QUARTERS 4

/* A slice of k: bytes of each row of A and B that a stage of the ring holds, and those of a quarter, which is
 * 32 elements. */
#define SM90A_ODDFEW_SLICE   256
#define SM90A_ODDFEW_QUARTER (SM90A_ODDFEW_SLICE / SM90A_ODDFEW_QUARTERS)

/* Copies: chunks of 16 bytes, of lines of 128. Threads of half a warp copy a row's slice. */
#define SM90A_ODDFEW_CHUNK     16
#define SM90A_ODDFEW_LINE      128
#define SM90A_ODDFEW_COPY_ROWS (2 * SM90A_ODDFEW_WARPS)

/* The most rows of D, columns of D in a tile, parts of K, stages; the least stages: a slice that is multiplied, the
 * one behind it, whose first chunk it needs, and one that is copied. */
#define SM90A_ODDFEW_ROWS         64
#define SM90A_ODDFEW_PARTS        16
#define SM90A_ODDFEW_LEAST_STAGES 3
#define SM90A_ODDFEW_STAGES       10
#define SM90A_ODDFEW_MMA_ROWS     16 /* of B */
/* Rows of A in the ring: the least of 8, 16, 32, 64 that holds m. A thread has 64 sums at most. */
#define SM90A_ODDFEW_A_ROWS(m)       ((m) <= 8 ? 8 : (m) <= 16 ? 16 : (m) <= 32 ? 32 : 64)
#define SM90A_ODDFEW_COLUMNS         256
#define SM90A_ODDFEW_MOST_COLUMNS(m) ((m) <= 16 ? 256 : (m) <= 32 ? 128 : 64)

/* The ring, a row's slices one behind another, then the next row's. The pad gives the rows that a quarter of a warp
 * reads at once different banks. */
#define SM90A_ODDFEW_RING_PAD           64
#define SM90A_ODDFEW_RING_PITCH(stages) ((stages)*SM90A_ODDFEW_SLICE + SM90A_ODDFEW_RING_PAD)
/* Sums of a quarter, in place of the ring: a row of D each, 16 bytes longer than its columns, so that the lanes that
 * write have different banks. */
#define SM90A_ODDFEW_SUM_PAD            16
#define SM90A_ODDFEW_SUM_PITCH(columns) (4 * (columns) + SM90A_ODDFEW_SUM_PAD)

#define SM90A_ODDFEW_RING_BYTES(rows, columns, stages) \
    (((rows) + (columns)) * SM90A_ODDFEW_RING_PITCH(stages))
#define SM90A_ODDFEW_SUM_BYTES(rows, columns) \
    (SM90A_ODDFEW_QUARTERS * (rows)*SM90A_ODDFEW_SUM_PITCH(columns))
#define SM90A_ODDFEW_DYNAMIC_SHARED (SM_SHARED_BYTES - 1024)

#define SM90A_ODDFEW_CTAS_PER_SM 2
#define SM90A_ODDFEW_D_ROWS      16 /* of map_d, which is not used */

#define SM90A_ODDFEW_CAN (GEMM_CAN_FINISH | GEMM_CAN_LOOSE)

/* What gemm_finish.inc asks for. */
#define SM90A_ODDFEW_GROUP_N 64

/* ---- the worksheet, which `hewn worksheet` compares with a run ---- */

/* X(name, first warp, warps) */
#define SM90A_ODDFEW_ROLES(X) X(consumer, 0, SM90A_ODDFEW_WARPS)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM90A_ODDFEW_SHARED(X) X(ring, 0, SM90A_ODDFEW_DYNAMIC_SHARED, 1)

/* X(storage, writers, readers) */
#define SM90A_ODDFEW_FLOWS(X) X(ring, consumer.cp + consumer, consumer)

#endif
