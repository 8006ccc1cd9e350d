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
#define SM90A_ATTENTION_ROW_BYTES      SWIZZLE_BYTES
#define SM90A_ATTENTION_ITEM_TILES(qk) 2
#define SM90A_ATTENTION_ITEM_V(v)      (v)
#define SM90A_ATTENTION_V_HALVES(v)    1

/* Columns of a chunk of Q or K, and of a box of V: one swizzle row of 16-bit elements. */
#define SM90A_ATTENTION_CHUNK        (SWIZZLE_BYTES / 2)
#define SM90A_ATTENTION_K_CHUNKS(qk) ((qk) / SM90A_ATTENTION_CHUNK)
#define SM90A_ATTENTION_V_BOXES(v)   ((v) / SM90A_ATTENTION_CHUNK)

/* The ring: slots of UNITS units of 16 KB. A unit of K is the block's keys of one chunk, a unit of
 * V V_KEYS keys of all columns in boxes of a chunk; of 256 columns it is a whole slot, since a box
 * of V is not smaller than 8 KB. A block has as many units of either as the head dimension has
 * chunks: K_UNITS, V_UNITS. A slot has two where both counts are even: a wait costs a consumer some
 * 100 cycles. */
#define SM90A_ATTENTION_UNIT_BYTES  (ATTENTION_BLOCK * SWIZZLE_BYTES)
#define SM90A_ATTENTION_UNITS(qk)   ((qk) % 128 ? 1 : 2)
#define SM90A_ATTENTION_SLOT(qk)    (SM90A_ATTENTION_UNITS(qk) * SM90A_ATTENTION_UNIT_BYTES)
#define SM90A_ATTENTION_K_UNITS(qk) SM90A_ATTENTION_K_CHUNKS(qk)
#define SM90A_ATTENTION_V_KEYS(v)   ((v) == 64 ? 128 : 64)
#define SM90A_ATTENTION_V_UNITS(v)  SM90A_ATTENTION_V_BOXES(v)
#define SM90A_ATTENTION_BOX_V(v)    SM90A_ATTENTION_V_KEYS(v)
#define SM90A_ATTENTION_V_BOX(v)    (SM90A_ATTENTION_V_KEYS(v) * SWIZZLE_BYTES)
/* Eight rows of a chunk, which the swizzle permutes among themselves. */
#define SM90A_ATTENTION_OCTET (8 * SWIZZLE_BYTES)
/* Units of V in a slot, each V_KEYS keys of all columns. */
#define SM90A_ATTENTION_SLOT_V(qk, v) \
    (SM90A_ATTENTION_SLOT(qk) / (SM90A_ATTENTION_V_BOX(v) * SM90A_ATTENTION_V_BOXES(v)))

/* Dynamic shared memory, from its 1024-aligned start: Q's tiles, each in chunks; the ring of as
 * many slots as fit, at most 12. */
#define SM90A_ATTENTION_Q_CHUNK      (SM90A_ATTENTION_TILE_ROWS * SWIZZLE_BYTES)
#define SM90A_ATTENTION_Q_TILE(qk)   (SM90A_ATTENTION_K_CHUNKS(qk) * SM90A_ATTENTION_Q_CHUNK)
#define SM90A_ATTENTION_RING(qk)     (SM90A_ATTENTION_ITEM_TILES(qk) * SM90A_ATTENTION_Q_TILE(qk))
#define SM90A_ATTENTION_STATIC_BYTES 1024 /* bound on barriers and records */
#define SM90A_ATTENTION_RING_MAX(qk)                                               \
    ((SM_SHARED_BYTES - SM90A_ATTENTION_STATIC_BYTES - SM90A_ATTENTION_RING(qk)) / \
     SM90A_ATTENTION_SLOT(qk))
#define SM90A_ATTENTION_SLOTS(qk, e) \
    (SM90A_ATTENTION_RING_MAX(qk) < 12 ? SM90A_ATTENTION_RING_MAX(qk) : 12)
#define SM90A_ATTENTION_DYNAMIC_SHARED(qk, e) \
    (SM90A_ATTENTION_RING(qk) + SM90A_ATTENTION_SLOTS(qk, e) * SM90A_ATTENTION_SLOT(qk))

/* Producers of pages, and how many of them share a slot: of 256 columns all, of K and V; of 192 two,
 * of K. Without pages it is one. */
#define SM90A_ATTENTION_PRODUCERS(qk) ((qk) > 128 ? 3 : 2)
#define SM90A_ATTENTION_PARTS(qk)     ((qk) == 256 ? 3 : SM90A_ATTENTION_PRODUCERS(qk) - 1)

/* Threads: a warpgroup of planner, producers and, up to 128 columns, an idle warp; then a consumer
 * warpgroup a tile.
 * Registers a thread after setmaxnreg: the consumers share what the loading warpgroup leaves. Those of
 * head dimension 128 need more with f16 (1) than with bf16 (0). */
#define SM90A_ATTENTION_WARPGROUPS(qk)         (SM90A_ATTENTION_ITEM_TILES(qk) + 1)
#define SM90A_ATTENTION_THREADS(qk)            (128 * SM90A_ATTENTION_WARPGROUPS(qk))
#define SM90A_ATTENTION_PRODUCER_REGS(qk, f16) ((qk) > 128 || ((qk) == 128 && (f16)) ? 40 : 56)
#define SM90A_ATTENTION_CONSUMER_REGS(qk, f16)                                       \
    ((SM90A_ATTENTION_WARPGROUPS(qk) * SM_REGISTERS_8(SM90A_ATTENTION_THREADS(qk)) - \
      SM90A_ATTENTION_PRODUCER_REGS(qk, f16)) /                                      \
     SM90A_ATTENTION_ITEM_TILES(qk))

/* A decoded work item, handed from the planner warp to all others: offsets of u32 words. A pair is
 * one word of source 0 and one of source 1. Stores of two words rely on QUERIES behind TOKEN and on
 * KV_HEAD behind SEQUENCE. */
/* clang-format off */
#define SM90A_ATTENTION_RECORDS      4
#define SM90A_ATTENTION_BLOCKS       0                              /* of the item, or -1: none */
#define SM90A_ATTENTION_BLOCKS_0     (SM90A_ATTENTION_BLOCKS + 4)   /* those of source 0 */
#define SM90A_ATTENTION_KEY          (SM90A_ATTENTION_BLOCKS_0 + 4) /* pair: first key */
#define SM90A_ATTENTION_KEYS         (SM90A_ATTENTION_KEY + 8)      /* pair: keys of the sequence */
#define SM90A_ATTENTION_ALIGN        (SM90A_ATTENTION_KEYS + 8)     /* pair: position of query 0 */
#define SM90A_ATTENTION_BASE         (SM90A_ATTENTION_ALIGN + 8)    /* pair: row of key 0 */
#define SM90A_ATTENTION_PLANE        (SM90A_ATTENTION_BASE + 8)     /* pair: coordinate in K, V */
#define SM90A_ATTENTION_LEFT         (SM90A_ATTENTION_PLANE + 8)    /* pair: the window */
#define SM90A_ATTENTION_RIGHT        (SM90A_ATTENTION_LEFT + 8)     /* pair: the window */
#define SM90A_ATTENTION_TOKEN        (SM90A_ATTENTION_RIGHT + 8)    /* first query token */
#define SM90A_ATTENTION_QUERIES      (SM90A_ATTENTION_TOKEN + 4)    /* of the sequence */
#define SM90A_ATTENTION_SEQUENCE     (SM90A_ATTENTION_QUERIES + 4)
#define SM90A_ATTENTION_KV_HEAD      (SM90A_ATTENTION_SEQUENCE + 4)
#define SM90A_ATTENTION_HEAD_BLOCK   (SM90A_ATTENTION_KV_HEAD + 4)
#define SM90A_ATTENTION_SPLIT        (SM90A_ATTENTION_HEAD_BLOCK + 4)
#define SM90A_ATTENTION_Q_BASE       (SM90A_ATTENTION_SPLIT + 4)    /* row of query 0 */
#define SM90A_ATTENTION_RECORD_BYTES ((SM90A_ATTENTION_Q_BASE + 4 + 15) / 16 * 16)
/* clang-format on */

#define SM90A_ATTENTION_TMEM_COLUMNS 0
#define SM90A_ATTENTION_CTAS_PER_SM  1

/* The worksheet, for `hewn worksheet`: lists as in gemm.plan.h, here of a variant. */

/* X(name, first warp, warps) */
#define SM90A_ATTENTION_ROLES(X, qk) \
    X(producer_k, 0, 1)              \
    X(planner, 1, 1)                 \
    X(producer_v, 2, 1)              \
    SM90A_ATTENTION_WARP_3_##qk(X) X(consumer, 4, 4 * SM90A_ATTENTION_ITEM_TILES(qk))
#define SM90A_ATTENTION_WARP_3_64(X)  X(idle, 3, 1)
#define SM90A_ATTENTION_WARP_3_128(X) X(idle, 3, 1)
#define SM90A_ATTENTION_WARP_3_192(X) X(producer_more, 3, 1)
#define SM90A_ATTENTION_WARP_3_256(X) X(producer_more, 3, 1)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM90A_ATTENTION_SHARED(X, qk, v, e)                                  \
    X(tile_q, 0, SM90A_ATTENTION_Q_TILE(qk), SM90A_ATTENTION_ITEM_TILES(qk)) \
    X(ring, SM90A_ATTENTION_RING(qk), SM90A_ATTENTION_SLOT(qk), SM90A_ATTENTION_SLOTS(qk, e))

/* X(name, first column, columns): this target has no tensor memory. */
#define SM90A_ATTENTION_TMEM(X, qk, v)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits), with pages. Without, it is
 * producer_k for all producers, and full_bar has one arrival. `producers`: all of them; `tail`: the one that
 * makes rows of V zero. */
#define SM90A_ATTENTION_HANDOFFS(X, qk, v, e) SM90A_ATTENTION_HANDOFFS_##qk(X, qk, v, e)
#define SM90A_ATTENTION_HANDOFFS_64(X, qk, v, e) \
    SM90A_ATTENTION_HANDOFFS_BY(X, qk, v, e, 1, producer_k + producer_v, producer_v)
#define SM90A_ATTENTION_HANDOFFS_128 SM90A_ATTENTION_HANDOFFS_64
#define SM90A_ATTENTION_HANDOFFS_192(X, qk, v, e) \
    SM90A_ATTENTION_HANDOFFS_BY(X, qk, v, e, 2, producer_k + producer_v + producer_more, producer_v)
#define SM90A_ATTENTION_HANDOFFS_256(X, qk, v, e) \
    SM90A_ATTENTION_HANDOFFS_BY(X, qk, v, e, 3, producer_k + producer_v + producer_more, producer_k)
#define SM90A_ATTENTION_HANDOFFS_BY(X, qk, v, e, parts, producers, tail)                      \
    X(full_bar, parts, 0, SM90A_ATTENTION_SLOT(qk), producers, consumer)                      \
    X(empty_bar, SM90A_ATTENTION_ITEM_TILES(qk), 0, 0, consumer, producers)                   \
    X(q_full, 1, 0, SM90A_ATTENTION_Q_TILE(qk), planner, consumer)                            \
    X(q_empty, 1, 0, 0, consumer, planner)                                                    \
    X(record_full, 1, 0, 0, planner, producers + consumer)                                    \
    X(record_empty, 4 * SM90A_ATTENTION_ITEM_TILES(qk) + SM90A_ATTENTION_PRODUCERS(qk), 0, 0, \
      producers + consumer, planner)                                                          \
    X(tail_full, 1, 0, SM90A_ATTENTION_SLOT(qk), tail, tail)

/* X(storage, writers, readers) */
#define SM90A_ATTENTION_FLOWS(X, qk, v, e) SM90A_ATTENTION_FLOWS_##qk(X)
#define SM90A_ATTENTION_FLOWS_64(X)                                           \
    SM90A_ATTENTION_FLOWS_BY(X, producer_k.tma + producer_v.tma + producer_v, \
                             producer_k + producer_v)
#define SM90A_ATTENTION_FLOWS_128 SM90A_ATTENTION_FLOWS_64
#define SM90A_ATTENTION_FLOWS_192(X)                                                              \
    SM90A_ATTENTION_FLOWS_BY(X, producer_k.tma + producer_v.tma + producer_v + producer_more.tma, \
                             producer_k + producer_v + producer_more)
#define SM90A_ATTENTION_FLOWS_256(X)                                                              \
    SM90A_ATTENTION_FLOWS_BY(X, producer_k.tma + producer_k + producer_v.tma + producer_more.tma, \
                             producer_k + producer_v + producer_more)
#define SM90A_ATTENTION_FLOWS_BY(X, loads, producers) \
    X(tile_q, planner.tma, consumer.mma)              \
    X(ring, loads, consumer.mma)                      \
    X(records, planner, producers + consumer)

#endif
