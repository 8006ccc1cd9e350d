/*
 * The plan of the sm_90a GEMM of small products whose operands begin anywhere: roles, tiles, shared memory.
 * #defines only, included by gemm_oddsmall.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise.
 *
 * One text for both variants, whose tiles have `columns` rows and columns: 16 or 32.
 */
#ifndef HEWN_SM90A_GEMM_ODDSMALL_PLAN_H
#define HEWN_SM90A_GEMM_ODDSMALL_PLAN_H

#include "../inc/gemm.plan.h"

/* All warps do the same, each with steps of k of its own. A CTA is 1, 2, 4 or 8 teams of warps, each with a tile. */
#define SM90A_ODDSMALL_WARPS   8
#define SM90A_ODDSMALL_THREADS (32 * SM90A_ODDSMALL_WARPS)

/* A step of k: bytes of each row of A and B, a chunk for each lane of a quad. */
#define SM90A_ODDSMALL_CHUNK 16
#define SM90A_ODDSMALL_STEP  64

/* The sides of a tile, the most parts of K. */
#define SM90A_ODDSMALL_LEAST_SIDE 16
#define SM90A_ODDSMALL_SIDE       32
#define SM90A_ODDSMALL_PARTS      8

/* Sums of a warp: a row of D each, longer than its columns, so that the lanes that write have different banks. */
#define SM90A_ODDSMALL_SUM_PAD         32
#define SM90A_ODDSMALL_SUM_PITCH(side) (4 * (side) + SM90A_ODDSMALL_SUM_PAD)
#define SM90A_ODDSMALL_SUM_BYTES(side) \
    (SM90A_ODDSMALL_WARPS * (side)*SM90A_ODDSMALL_SUM_PITCH(side))
#define SM90A_ODDSMALL_DYNAMIC_SHARED SM90A_ODDSMALL_SUM_BYTES(SM90A_ODDSMALL_SIDE)

#define SM90A_ODDSMALL_CTAS_PER_SM 2
#define SM90A_ODDSMALL_D_ROWS      16 /* of map_d, which is not used */

#define SM90A_ODDSMALL_CAN (GEMM_CAN_FINISH | GEMM_CAN_LOOSE)

/* What gemm_finish.inc asks for. */
#define SM90A_ODDSMALL_GROUP_N 64

/* ---- the worksheet, which `hewn worksheet` compares with a run ---- */

/* X(name, first warp, warps) */
#define SM90A_ODDSMALL_ROLES(X) X(consumer, 0, SM90A_ODDSMALL_WARPS)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM90A_ODDSMALL_SHARED(X) X(sums, 0, SM90A_ODDSMALL_DYNAMIC_SHARED, 1)

/* X(storage, writers, readers) */
#define SM90A_ODDSMALL_FLOWS(X) X(sums, consumer, consumer)

#endif
