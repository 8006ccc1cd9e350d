/*
 * The plan of the sm_90a attention: tiles, ring, shared memory, threads. #defines only, included by
 * attention.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise. A variant is
 * (qk, v, e): head dimension of Q and K, of V, and bytes of an element (2).
 */
#ifndef HEWN_SM90A_ATTENTION_PLAN_H
#define HEWN_SM90A_ATTENTION_PLAN_H

#include "../inc/attention.plan.h"

/* X(this prefix, target, qk, v, e): every variant; a module is one of an input dtype of e bytes. */
#define SM90A_ATTENTION_VARIANTS(X) \
    X(SM90A, sm_90a, 64, 64, 2)     \
    X(SM90A, sm_90a, 128, 128, 2)   \
    X(SM90A, sm_90a, 192, 128, 2)   \
    X(SM90A, sm_90a, 256, 256, 2)

/* A tile is what one consumer warpgroup holds: the rows of one wgmma. */
#define SM90A_ATTENTION_TILE_ROWS      64
#define SM90A_ATTENTION_ROW_BYTES      128 /* of a swizzled row: 64 elements */
#define SM90A_ATTENTION_ITEM_TILES(qk) 2
#define SM90A_ATTENTION_ITEM_V(v)      (v)
#define SM90A_ATTENTION_V_HALVES(v)    1

/* The ring: slots of UNITS units of 16 KB. A unit of K is 128 keys of 64 columns, a unit of V
 * V_KEYS keys of all columns in boxes of 64 columns, of 256 columns a whole slot (a box of V is not
 * smaller than 8 KB). A block has as many 16 KB of either as the head dimension has 64s: K_UNITS,
 * V_UNITS. Two a slot where both counts are even: a wait costs a consumer some 100 cycles. */
#define SM90A_ATTENTION_UNIT_BYTES  16384
#define SM90A_ATTENTION_UNITS(qk)   ((qk) % 128 ? 1 : 2)
#define SM90A_ATTENTION_K_UNITS(qk) ((qk) / 64)
#define SM90A_ATTENTION_V_KEYS(v)   ((v) == 64 ? 128 : 64)
#define SM90A_ATTENTION_BOX_V(v)    SM90A_ATTENTION_V_KEYS(v)
#define SM90A_ATTENTION_V_UNITS(v)  ((v) / 64)
#define SM90A_ATTENTION_V_BOXES(v)  ((v) / 64)
#define SM90A_ATTENTION_V_BOX(v)    (SM90A_ATTENTION_V_KEYS(v) * 128)

/* Dynamic shared memory, from its 1024-aligned start: Q's tiles, each in chunks of 64 columns; the
 * ring. */
#define SM90A_ATTENTION_Q_CHUNK      8192 /* 64 rows x 128 B */
#define SM90A_ATTENTION_Q_TILE(qk)   ((qk) / 64 * 8192)
#define SM90A_ATTENTION_RING(qk)     (SM90A_ATTENTION_ITEM_TILES(qk) * ((qk) / 64) * 8192)
#define SM90A_ATTENTION_STATIC_BYTES 1024 /* bound on barriers and records */
#define SM90A_ATTENTION_SLOTS(qk, e) ((qk) == 64 ? 12 : (qk) == 128 ? 6 : (qk) == 192 ? 11 : 5)
#define SM90A_ATTENTION_DYNAMIC_SHARED(qk, e) \
    (SM90A_ATTENTION_RING(qk) + SM90A_ATTENTION_SLOTS(qk, e) * SM90A_ATTENTION_UNITS(qk) * 16384)

/* Threads: a warpgroup of loader, planner and two idle warps, then a consumer warpgroup a tile.
 * Registers a thread after setmaxnreg, of 3 * 168: 56 + 2 * 224, with a V of 256 columns
 * 40 + 2 * 232. */
#define SM90A_ATTENTION_THREADS(qk) (128 * (SM90A_ATTENTION_ITEM_TILES(qk) + 1))

/* A decoded work item, handed from the planner warp to all others: u32 words; pairs by source. */
#define SM90A_ATTENTION_RECORDS      4
#define SM90A_ATTENTION_RECORD_BYTES 96
#define SM90A_ATTENTION_BLOCKS       0  /* blocks of the item, -1: no more items */
#define SM90A_ATTENTION_BLOCKS_0     4  /* how many of them are source 0's */
#define SM90A_ATTENTION_KEY          8  /* first key of the first block */
#define SM90A_ATTENTION_KEYS         16 /* keys of the sequence */
#define SM90A_ATTENTION_ALIGN        24 /* position of query 0 */
#define SM90A_ATTENTION_BASE         32 /* row of key 0 */
#define SM90A_ATTENTION_PLANE        40 /* sequence coordinate of K and V */
#define SM90A_ATTENTION_LEFT         48 /* the window */
#define SM90A_ATTENTION_RIGHT        56
#define SM90A_ATTENTION_TOKEN        64 /* first query token of the item */
#define SM90A_ATTENTION_QUERIES      68 /* queries of the sequence */
#define SM90A_ATTENTION_SEQUENCE     72
#define SM90A_ATTENTION_KV_HEAD      76
#define SM90A_ATTENTION_HEAD_BLOCK   80
#define SM90A_ATTENTION_SPLIT        84
#define SM90A_ATTENTION_Q_BASE       88 /* row of query 0 in Q and O */

#define SM90A_ATTENTION_TMEM_COLUMNS 0
#define SM90A_ATTENTION_CTAS_PER_SM  1

/* The worksheet, for `hewn worksheet`: lists as in gemm.plan.h, here of a variant. */

/* X(name, first warp, warps) */
#define SM90A_ATTENTION_ROLES(X, qk) \
    X(loader, 0, 1)                  \
    X(planner, 1, 1)                 \
    X(idle, 2, 2)                    \
    X(consumer, 4, 8)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM90A_ATTENTION_SHARED(X, qk, v, e)                                  \
    X(tile_q, 0, SM90A_ATTENTION_Q_TILE(qk), SM90A_ATTENTION_ITEM_TILES(qk)) \
    X(ring, SM90A_ATTENTION_RING(qk), SM90A_ATTENTION_UNITS(qk) * 16384,     \
      SM90A_ATTENTION_SLOTS(qk, e))

/* X(name, first column, columns): this target has no tensor memory. */
#define SM90A_ATTENTION_TMEM(X, qk, v)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits) */
#define SM90A_ATTENTION_HANDOFFS(X, qk, v, e)                              \
    X(full_bar, 1, 0, SM90A_ATTENTION_UNITS(qk) * 16384, loader, consumer) \
    X(empty_bar, 2, 0, 0, consumer, loader)                                \
    X(q_full_bar, 1, 0, SM90A_ATTENTION_Q_TILE(qk), planner, consumer)     \
    X(q_empty_bar, 1, 0, 0, consumer, planner)                             \
    X(record_full_bar, 1, 0, 0, planner, loader + consumer)                \
    X(record_empty_bar, 9, 0, 0, loader + consumer, planner)               \
    X(raw_bar, 1, 0, SM90A_ATTENTION_UNITS(qk) * 16384, loader, loader)

/* X(storage, writers, readers) */
#define SM90A_ATTENTION_FLOWS(X, qk, v, e)     \
    X(tile_q, planner.tma, consumer.mma)       \
    X(ring, loader.tma + loader, consumer.mma) \
    X(records, planner, loader + consumer)

#endif
