/*
 * The plan of the sm_100f attention: tiles, ring, shared memory, tensor memory, threads. #defines
 * only, included by attention.ptx, by the runtime and by tools/mod. Bytes unless a name says
 * otherwise. A variant is (qk, v, e): head dimension of Q and K, of V, and bytes of an element.
 */
#ifndef HEWN_SM100F_ATTENTION_PLAN_H
#define HEWN_SM100F_ATTENTION_PLAN_H

#include "../inc/attention.plan.h"

/* X(this prefix, target, qk, v, e): every variant; a module is one of an input dtype of e bytes. */
#define SM100F_ATTENTION_VARIANTS(X) \
    X(SM100F, sm_100f, 64, 64, 2)    \
    X(SM100F, sm_100f, 96, 96, 2)    \
    X(SM100F, sm_100f, 128, 128, 2)  \
    X(SM100F, sm_100f, 192, 128, 2)  \
    X(SM100F, sm_100f, 256, 256, 2)  \
    X(SM100F, sm_100f, 512, 512, 2)  \
    X(SM100F, sm_100f, 64, 64, 1)    \
    X(SM100F, sm_100f, 96, 96, 1)    \
    X(SM100F, sm_100f, 128, 128, 1)  \
    X(SM100F, sm_100f, 192, 128, 1)  \
    X(SM100F, sm_100f, 256, 256, 1)  \
    X(SM100F, sm_100f, 512, 512, 1)

/* Slots of the ring and sub-tiles of Q are TILE_ROWS swizzle rows. A V slot has half a block's
 * keys, as P is handed over, of V_COLUMNS columns. */
#define SM100F_ATTENTION_TILE_ROWS  128
#define SM100F_ATTENTION_ROW_BYTES  SWIZZLE_BYTES
#define SM100F_ATTENTION_SLOT_BYTES (SM100F_ATTENTION_TILE_ROWS * SM100F_ATTENTION_ROW_BYTES)
#define SM100F_ATTENTION_V_KEYS     64
#define SM100F_ATTENTION_V_PARTS    (ATTENTION_BLOCK / SM100F_ATTENTION_V_KEYS)
#define SM100F_ATTENTION_V_COLUMNS  128

/* Query tiles of a work item. Two, a softmax warpgroup each, as long as both O and both S fit the
 * 512 columns of tensor memory; beyond, one tile with S double-buffered. */
#define SM100F_ATTENTION_ITEM_TILES(qk) SM100F_ATTENTION_JOIN(SM100F_ATTENTION_TILES_, qk)
#define SM100F_ATTENTION_TILES_64       2
#define SM100F_ATTENTION_TILES_96       2
#define SM100F_ATTENTION_TILES_128      2
#define SM100F_ATTENTION_TILES_192      2
#define SM100F_ATTENTION_TILES_256      1
#define SM100F_ATTENTION_TILES_512      1
/* Columns of V in a work item: O of 128 rows and 512 columns would fill tensor memory alone, so
 * head dimension 512 is computed in two halves of V's columns, S in each. */
#define SM100F_ATTENTION_ITEM_V(v)   ((v) <= 256 ? (v) : 256)
#define SM100F_ATTENTION_V_HALVES(v) ((v) / SM100F_ATTENTION_ITEM_V(v))

/* Slots that one block of K takes, each ROW_BYTES of the head dimension; and one block of V. */
#define SM100F_ATTENTION_K_SLOTS(qk, e) \
    (((qk) * (e) + SM100F_ATTENTION_ROW_BYTES - 1) / SM100F_ATTENTION_ROW_BYTES)
#define SM100F_ATTENTION_V_CHUNKS(v) \
    ((SM100F_ATTENTION_ITEM_V(v) + SM100F_ATTENTION_V_COLUMNS - 1) / SM100F_ATTENTION_V_COLUMNS)
#define SM100F_ATTENTION_V_SLOTS(v) (SM100F_ATTENTION_V_PARTS * SM100F_ATTENTION_V_CHUNKS(v))
/* TMA boxes of a V slot, each V_KEYS rows of ROW_BYTES: for V_COLUMNS columns, or all of V's. */
#define SM100F_ATTENTION_BOX_V(v) SM100F_ATTENTION_V_KEYS
#define SM100F_ATTENTION_V_BOXES(v, e)                                                             \
    (SM100F_ATTENTION_K_SLOTS((v) < SM100F_ATTENTION_V_COLUMNS ? (v) : SM100F_ATTENTION_V_COLUMNS, \
                              e))

/* Dynamic shared memory, from its 1024-aligned start: Q's tiles, the ring, the staged output rows
 * of a tile. The ring has as many slots as fit, at most 10. */
#define SM100F_ATTENTION_Q_TILE(qk, e) \
    (SM100F_ATTENTION_K_SLOTS(qk, e) * SM100F_ATTENTION_SLOT_BYTES)
#define SM100F_ATTENTION_O_PITCH       (SWIZZLE_BYTES + 16) /* 16 against bank conflicts */
#define SM100F_ATTENTION_STAGE_O_BYTES (SM100F_ATTENTION_TILE_ROWS * SM100F_ATTENTION_O_PITCH)
#define SM100F_ATTENTION_STATIC_BYTES  4096 /* bound on barriers and row statistics */
#define SM100F_ATTENTION_RING(qk, e) \
    (SM100F_ATTENTION_ITEM_TILES(qk) * SM100F_ATTENTION_Q_TILE(qk, e))
#define SM100F_ATTENTION_RING_MAX(qk, e)                                                 \
    ((SM_SHARED_BYTES - SM100F_ATTENTION_STATIC_BYTES - SM100F_ATTENTION_STAGE_O_BYTES - \
      SM100F_ATTENTION_RING(qk, e)) /                                                    \
     SM100F_ATTENTION_SLOT_BYTES)
#define SM100F_ATTENTION_SLOTS(qk, e) \
    (SM100F_ATTENTION_RING_MAX(qk, e) < 10 ? SM100F_ATTENTION_RING_MAX(qk, e) : 10)
#define SM100F_ATTENTION_STAGE_O(qk, e) \
    (SM100F_ATTENTION_RING(qk, e) + SM100F_ATTENTION_SLOTS(qk, e) * SM100F_ATTENTION_SLOT_BYTES)
#define SM100F_ATTENTION_DYNAMIC_SHARED(qk, e) \
    (SM100F_ATTENTION_STAGE_O(qk, e) + SM100F_ATTENTION_STAGE_O_BYTES)

/* Threads: a softmax warpgroup a tile, a correction warpgroup, and one that holds the producer warp
 * and the MMA warp. */
#define SM100F_ATTENTION_WARPGROUPS(qk)      (SM100F_ATTENTION_ITEM_TILES(qk) + 2)
#define SM100F_ATTENTION_THREADS(qk)         (128 * SM100F_ATTENTION_WARPGROUPS(qk))
#define SM100F_ATTENTION_CORRECTION_WARP(qk) (4 * SM100F_ATTENTION_ITEM_TILES(qk))
#define SM100F_ATTENTION_PRODUCER_WARP(qk)   (SM100F_ATTENTION_CORRECTION_WARP(qk) + 4)
#define SM100F_ATTENTION_MMA_WARP(qk)        (SM100F_ATTENTION_CORRECTION_WARP(qk) + 5)
#define SM100F_ATTENTION_MMA_WARPS(qk)       (1 + SM100F_ATTENTION_P_APART(qk))

/* Registers a thread after setmaxnreg; the issuing warpgroup has what the others leave. With one
 * tile the correction keeps what it was launched with. */
#define SM100F_ATTENTION_LAUNCH_REGS(qk)  SM_REGISTERS_8(SM100F_ATTENTION_THREADS(qk))
#define SM100F_ATTENTION_SOFTMAX_REGS(qk) (SM100F_ATTENTION_ITEM_TILES(qk) == 2 ? 192 : 232)
#define SM100F_ATTENTION_CORRECTION_REGS(qk) \
    (SM100F_ATTENTION_ITEM_TILES(qk) == 2 ? 80 : SM100F_ATTENTION_LAUNCH_REGS(qk))
#define SM100F_ATTENTION_ISSUE_REGS(qk)                                    \
    (SM100F_ATTENTION_WARPGROUPS(qk) * SM100F_ATTENTION_LAUNCH_REGS(qk) -  \
     SM100F_ATTENTION_ITEM_TILES(qk) * SM100F_ATTENTION_SOFTMAX_REGS(qk) - \
     SM100F_ATTENTION_CORRECTION_REGS(qk))

/* Of the 16 pairs of 32 columns, those whose exponentials the multiply-add pipe computes. None
 * where the MMAs of a step take longer than its exponentials. */
#define SM100F_ATTENTION_EXP_SHARE(qk) SM100F_ATTENTION_JOIN(SM100F_ATTENTION_EXP_SHARE_, qk)
#define SM100F_ATTENTION_EXP_SHARE_64  4
#define SM100F_ATTENTION_EXP_SHARE_96  3
#define SM100F_ATTENTION_EXP_SHARE_128 3
#define SM100F_ATTENTION_EXP_SHARE_192 3
#define SM100F_ATTENTION_EXP_SHARE_256 0
#define SM100F_ATTENTION_EXP_SHARE_512 0

/* Tensor memory: two S of 128 columns, each overlaid by its P; then O of each tile, O_STEP columns
 * apart where there are two. Where P fits between two O, it lies there instead (P_APART), and S is
 * free for the next QK as soon as it has been read. QK and PV then have a warp each. */
#define SM100F_ATTENTION_TMEM_COLUMNS 512
#define SM100F_ATTENTION_S_COLUMNS    ATTENTION_BLOCK
#define SM100F_ATTENTION_O_COLUMN     (2 * SM100F_ATTENTION_S_COLUMNS)
#define SM100F_ATTENTION_O_STEP       128
#define SM100F_ATTENTION_P_APART(qk)  SM100F_ATTENTION_JOIN(SM100F_ATTENTION_APART_, qk)
#define SM100F_ATTENTION_APART_64     1
#define SM100F_ATTENTION_APART_96     0
#define SM100F_ATTENTION_APART_128    0
#define SM100F_ATTENTION_APART_192    0
#define SM100F_ATTENTION_APART_256    0
#define SM100F_ATTENTION_APART_512    0

#define SM100F_ATTENTION_CTAS_PER_SM 1

/* The worksheet, for `hewn worksheet`: lists as in gemm.plan.h, here of a variant. */

/* X(name, first warp, warps) */
#define SM100F_ATTENTION_ROLES(X, qk)                                       \
    X(softmax, 0, SM100F_ATTENTION_CORRECTION_WARP(qk))                     \
    X(correction, SM100F_ATTENTION_CORRECTION_WARP(qk), 4)                  \
    X(producer, SM100F_ATTENTION_PRODUCER_WARP(qk), 1)                      \
    X(mma, SM100F_ATTENTION_MMA_WARP(qk), SM100F_ATTENTION_MMA_WARPS(qk))   \
    X(idle, SM100F_ATTENTION_MMA_WARP(qk) + SM100F_ATTENTION_MMA_WARPS(qk), \
      3 - SM100F_ATTENTION_MMA_WARPS(qk))

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM100F_ATTENTION_SHARED(X, qk, v, e)                                      \
    X(tile_q, 0, SM100F_ATTENTION_Q_TILE(qk, e), SM100F_ATTENTION_ITEM_TILES(qk)) \
    X(ring, SM100F_ATTENTION_RING(qk, e), SM100F_ATTENTION_SLOT_BYTES,            \
      SM100F_ATTENTION_SLOTS(qk, e))                                              \
    X(stage_o, SM100F_ATTENTION_STAGE_O(qk, e), SM100F_ATTENTION_O_PITCH,         \
      SM100F_ATTENTION_TILE_ROWS)

/* X(name, first column, columns); P lies over the first columns of its S, or apart. */
#define SM100F_ATTENTION_TMEM(X, qk, v)                            \
    X(s_0, 0, SM100F_ATTENTION_S_COLUMNS)                          \
    X(s_1, SM100F_ATTENTION_S_COLUMNS, SM100F_ATTENTION_S_COLUMNS) \
    SM100F_ATTENTION_TMEM_P(X, qk, v)                              \
    SM100F_ATTENTION_TMEM_O(X, qk, v)
#define SM100F_ATTENTION_TMEM_P(X, qk, v) \
    SM100F_ATTENTION_JOIN(SM100F_ATTENTION_TMEM_P_, SM100F_ATTENTION_P_APART(qk))(X, v)
#define SM100F_ATTENTION_TMEM_O(X, qk, v) \
    SM100F_ATTENTION_JOIN(SM100F_ATTENTION_TMEM_O_, SM100F_ATTENTION_ITEM_TILES(qk))(X, v)
#define SM100F_ATTENTION_TMEM_P_0(X, v)
#define SM100F_ATTENTION_TMEM_P_1(X, v)                                    \
    X(p_0, SM100F_ATTENTION_O_COLUMN + (v), SM100F_ATTENTION_O_STEP - (v)) \
    X(p_1, SM100F_ATTENTION_O_COLUMN + SM100F_ATTENTION_O_STEP + (v), SM100F_ATTENTION_O_STEP - (v))
#define SM100F_ATTENTION_TMEM_O_1(X, v) \
    X(o_0, SM100F_ATTENTION_O_COLUMN, SM100F_ATTENTION_ITEM_V(v))
#define SM100F_ATTENTION_TMEM_O_2(X, v)                           \
    X(o_0, SM100F_ATTENTION_O_COLUMN, SM100F_ATTENTION_ITEM_V(v)) \
    X(o_1, SM100F_ATTENTION_O_COLUMN + SM100F_ATTENTION_O_STEP, SM100F_ATTENTION_ITEM_V(v))

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits) */
#define SM100F_ATTENTION_HANDOFFS(X, qk, v, e)                            \
    X(q_full, 1, 128, SM100F_ATTENTION_Q_TILE(qk, e), producer, mma)      \
    X(q_empty, 1, 0, 0, mma, producer)                                    \
    X(full_bar, 1, 0, SM100F_ATTENTION_SLOT_BYTES, producer, mma)         \
    X(empty_bar, 1, 0, 0, mma, producer)                                  \
    X(tail_full, 1, 128, SM100F_ATTENTION_SLOT_BYTES, producer, producer) \
    X(s_full, 1, 0, 0, mma, softmax)                                      \
    X(scale_full, 4, 0, 0, softmax, correction)                           \
    X(p_full, 8, 0, 0, softmax + correction, mma)                         \
    X(p_rest_full, 4, 0, 0, softmax, mma)                                 \
    X(sum_full, 4, 0, 0, softmax, correction)                             \
    X(sum_empty, 4, 0, 0, correction, softmax)                            \
    SM100F_ATTENTION_HANDOFFS_S(X, qk)
#define SM100F_ATTENTION_HANDOFFS_S(X, qk) \
    SM100F_ATTENTION_JOIN(SM100F_ATTENTION_HANDOFFS_S_, SM100F_ATTENTION_P_APART(qk))(X)
#define SM100F_ATTENTION_HANDOFFS_S_0(X) X(o_full, 1, 0, 0, mma, correction)
#define SM100F_ATTENTION_HANDOFFS_S_1(X) \
    X(s_free, 4, 0, 0, softmax, mma)     \
    X(o_full, 1, 0, 0, mma, softmax + correction)

/* X(storage, writers, readers) */
#define SM100F_ATTENTION_FLOWS(X, qk, v, e)                  \
    X(tile_q, producer.tma, mma.mma)                         \
    X(ring, producer.tma + producer, mma.mma)                \
    X(stage_o, correction, correction.tma)                   \
    X(row_scale, softmax, correction)                        \
    X(row_sum, softmax, correction)                          \
    X(row_top, softmax, correction)                          \
    X(tmem_base, mma, softmax + correction + producer + mma) \
    SM100F_ATTENTION_FLOWS_S(X, qk)                          \
    SM100F_ATTENTION_FLOWS_O(X, qk)
#define SM100F_ATTENTION_FLOWS_S(X, qk) \
    SM100F_ATTENTION_JOIN(SM100F_ATTENTION_FLOWS_S_, SM100F_ATTENTION_P_APART(qk))(X)
#define SM100F_ATTENTION_FLOWS_O(X, qk) \
    SM100F_ATTENTION_JOIN(SM100F_ATTENTION_FLOWS_O_, SM100F_ATTENTION_ITEM_TILES(qk))(X)
#define SM100F_ATTENTION_FLOWS_S_0(X)                  \
    X(s_0, mma.mma + softmax.st, softmax.ld + mma.mma) \
    X(s_1, mma.mma + softmax.st, softmax.ld + mma.mma)
#define SM100F_ATTENTION_FLOWS_S_1(X) \
    X(s_0, mma.mma, softmax.ld)       \
    X(s_1, mma.mma, softmax.ld)       \
    X(p_0, softmax.st, mma.mma)       \
    X(p_1, softmax.st, mma.mma)
#define SM100F_ATTENTION_FLOWS_O_1(X) X(o_0, mma.mma + correction.st, correction.ld)
#define SM100F_ATTENTION_FLOWS_O_2(X)              \
    X(o_0, mma.mma + correction.st, correction.ld) \
    X(o_1, mma.mma + correction.st, correction.ld)

#define SM100F_ATTENTION_JOIN_(a, b) a##b
#define SM100F_ATTENTION_JOIN(a, b)  SM100F_ATTENTION_JOIN_(a, b)

#endif
