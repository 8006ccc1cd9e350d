/*
 * The plan of the sm_100f attention: tiles, ring, shared memory, tensor memory, threads. #defines
 * only, included by attention.ptx, by the runtime and by tools/mod. Bytes unless a name says
 * otherwise. A variant is (qk, v, e): head dimension of Q and K, of V, and bytes of an element.
 */
#ifndef HEWN_SM100F_ATTENTION_PLAN_H
#define HEWN_SM100F_ATTENTION_PLAN_H

#include "../inc/attention.plan.h"

#define SM100F_ATTENTION_TILE_ROWS  128
#define SM100F_ATTENTION_ROW_BYTES  128   /* of a swizzled row: 64 elements of 16 bits, 128 of 8 */
#define SM100F_ATTENTION_SLOT_BYTES 16384 /* 128 rows; a ring slot, a sub-tile of Q */
#define SM100F_ATTENTION_V_KEYS     64    /* keys of a V slot: half a block, as P is handed over */
#define SM100F_ATTENTION_V_PARTS    2     /* V slots, and parts of P, of a block */
#define SM100F_ATTENTION_V_COLUMNS  128   /* columns of a V slot */

/* Query tiles of a work item. Two, a softmax warpgroup each, as long as both O and both S fit the
 * 512 TMEM columns; beyond, one tile with S double-buffered. */
#define SM100F_ATTENTION_ITEM_TILES(qk) ((qk) <= 192 ? 2 : 1)
/* Columns of V in a work item: O of 128 rows and 512 columns would fill TMEM alone, so head
 * dimension 512 is computed in two halves of V's columns, S in each. */
#define SM100F_ATTENTION_ITEM_V(v)   ((v) <= 256 ? (v) : 256)
#define SM100F_ATTENTION_V_HALVES(v) ((v) / SM100F_ATTENTION_ITEM_V(v))

/* Slots that one block of K takes, each ROW_BYTES of the head dimension; and one block of V. */
#define SM100F_ATTENTION_K_SLOTS(qk, e) (((qk) * (e) + 127) / 128)
#define SM100F_ATTENTION_V_CHUNKS(v)    ((SM100F_ATTENTION_ITEM_V(v) + 127) / 128)
#define SM100F_ATTENTION_V_SLOTS(v)     (2 * SM100F_ATTENTION_V_CHUNKS(v))
/* TMA boxes of a V slot: each V_KEYS rows of ROW_BYTES. */
#define SM100F_ATTENTION_V_BOXES(v, e) ((v) * (e) >= 256 ? (e) : ((v) * (e) + 127) / 128)

/* Dynamic shared memory, from its 1024-aligned start: Q's tiles, the staged output rows, the ring. */
#define SM100F_ATTENTION_Q_BYTES(qk, e)                                                            \
    (SM100F_ATTENTION_ITEM_TILES(qk) * SM100F_ATTENTION_K_SLOTS(qk, e) * 16384)
#define SM100F_ATTENTION_O_PITCH      144 /* a staged row: 128 bytes, and 16 against bank conflicts */
#define SM100F_ATTENTION_O_BYTES      18432 /* 128 rows */
#define SM100F_ATTENTION_STATIC_BYTES 4096  /* bound on barriers and row statistics */
#define SM100F_ATTENTION_RING_MAX(qk, e)                                                           \
    ((232448 - 4096 - 18432 - SM100F_ATTENTION_Q_BYTES(qk, e)) / 16384)
#define SM100F_ATTENTION_SLOTS(qk, e)                                                              \
    (SM100F_ATTENTION_RING_MAX(qk, e) < 10 ? SM100F_ATTENTION_RING_MAX(qk, e) : 10)
#define SM100F_ATTENTION_RING(qk, e)    (SM100F_ATTENTION_Q_BYTES(qk, e))
#define SM100F_ATTENTION_STAGE_O(qk, e) \
    (SM100F_ATTENTION_RING(qk, e) + SM100F_ATTENTION_SLOTS(qk, e) * 16384)
#define SM100F_ATTENTION_DYNAMIC_SHARED(qk, e) (SM100F_ATTENTION_STAGE_O(qk, e) + 18432)

/* Threads: a warpgroup a softmax tile, a correction warpgroup, and one that holds the producer warp
 * and the MMA warp. Registers a thread after setmaxnreg: of 512 threads' 4 x 128, of 384's 3 x 168. */
#define SM100F_ATTENTION_THREADS(qk)         (128 * (SM100F_ATTENTION_ITEM_TILES(qk) + 2))
#define SM100F_ATTENTION_CORRECTION_WARP(qk) (4 * SM100F_ATTENTION_ITEM_TILES(qk))
#define SM100F_ATTENTION_PRODUCER_WARP(qk)   (SM100F_ATTENTION_CORRECTION_WARP(qk) + 4)
#define SM100F_ATTENTION_MMA_WARP(qk)        (SM100F_ATTENTION_CORRECTION_WARP(qk) + 5)
#define SM100F_ATTENTION_SOFTMAX_REGS_2      192 /* with two tiles: 2 * 192 + 80 + 48 = 4 * 128 */
#define SM100F_ATTENTION_CORRECTION_REGS_2   80
#define SM100F_ATTENTION_ISSUE_REGS_2        48
#define SM100F_ATTENTION_SOFTMAX_REGS_1      232 /* with one: 232 + 168 + 104 = 3 * 168 */
#define SM100F_ATTENTION_ISSUE_REGS_1        104

/* P is exp2 of at most THRESHOLD: rows are rescaled when their maximum has grown by more than that
 * (log2). P of e4m3 is stored times 2^P_SHIFT, so that 1 is well inside its range of 448. */
#define SM100F_ATTENTION_THRESHOLD 8
#define SM100F_ATTENTION_P_SHIFT   8

/* Tensor memory: two S of 128 columns, each overlaid by its P; then O of each tile. */
#define SM100F_ATTENTION_TMEM_COLUMNS 512
#define SM100F_ATTENTION_S_COLUMNS    128
#define SM100F_ATTENTION_O_COLUMN     256
#define SM100F_ATTENTION_O_STEP       128 /* columns between the tiles' O, where there are two */

#define SM100F_ATTENTION_CTAS_PER_SM 1

/* The worksheet, as in gemm.plan.h: the lists of a variant. */
#define SM100F_ATTENTION_ROLES(X, qk)
#define SM100F_ATTENTION_SHARED(X, qk, v, e)
#define SM100F_ATTENTION_TMEM(X, qk, v)
#define SM100F_ATTENTION_HANDOFFS(X, qk, v, e)
#define SM100F_ATTENTION_FLOWS(X, qk, v, e)

#endif
