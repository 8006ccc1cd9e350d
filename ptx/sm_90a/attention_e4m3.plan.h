/*
 * The plan of the sm_90a attention of e4m3 Q, K and V: tiles, rings, shared memory, threads. #defines
 * only, included by attention_e4m3.ptx, by the runtime and by tools/mod. Bytes unless a name says
 * otherwise. A variant is (qk, v, e): head dimension of Q and K, of V, and bytes of an element (1). A
 * record and its fields are those of attention.plan.h.
 */
#ifndef HEWN_SM90A_ATTENTION_E4M3_PLAN_H
#define HEWN_SM90A_ATTENTION_E4M3_PLAN_H

#include "attention.plan.h"

/* X(this prefix, target, qk, v, e): every variant. */
#define SM90A_E4M3_ATTENTION_VARIANTS(X) \
    X(SM90A_E4M3, sm_90a, 64, 64, 1)     \
    X(SM90A_E4M3, sm_90a, 96, 96, 1)     \
    X(SM90A_E4M3, sm_90a, 128, 128, 1)   \
    X(SM90A_E4M3, sm_90a, 192, 128, 1)   \
    X(SM90A_E4M3, sm_90a, 256, 256, 1)

#define SM90A_E4M3_ATTENTION_TILE_ROWS      SM90A_ATTENTION_TILE_ROWS
#define SM90A_E4M3_ATTENTION_ROW_BYTES      SWIZZLE_BYTES
#define SM90A_E4M3_ATTENTION_ITEM_TILES(qk) ((qk) == 64 ? 3 : 2)
#define SM90A_E4M3_ATTENTION_ITEM_V(v)      (v)
#define SM90A_E4M3_ATTENTION_V_HALVES(v)    1

/* A chunk of Q, K or V is 128 columns, a swizzle row. TMA fills up the last one with zeros, which
 * the products leave out. */
#define SM90A_E4M3_ATTENTION_CHUNK        SWIZZLE_BYTES
#define SM90A_E4M3_ATTENTION_CHUNKS(d)    (((d) + SWIZZLE_BYTES - 1) / SWIZZLE_BYTES)
#define SM90A_E4M3_ATTENTION_K_CHUNKS(qk) SM90A_E4M3_ATTENTION_CHUNKS(qk)
#define SM90A_E4M3_ATTENTION_V_BOXES(v)   SM90A_E4M3_ATTENTION_CHUNKS(v)

/* Keys of a consumer's step where sums are promoted: a block, or half of one where O of 256 columns
 * leaves no registers for more scores. Where they are not, a block, or two of them (WIDE), because a
 * step's barriers, references and waits cost as much for 256 keys as for 128. */
#define SM90A_E4M3_ATTENTION_STEP_KEYS(qk)  ((qk) == 256 ? 64 : ATTENTION_BLOCK)
#define SM90A_E4M3_ATTENTION_WIDE(qk, sums) (!(sums) && ((qk) == 96 || (qk) == 128))

/* The rings, of SLOTS slots each; a slot holds a block of K, of V as it was loaded, or of V
 * transposed: of the latter a row is a column of V, and its 128 bytes are the block's keys. */
#define SM90A_E4M3_ATTENTION_UNIT_BYTES (ATTENTION_BLOCK * SWIZZLE_BYTES)
#define SM90A_E4M3_ATTENTION_UNITS(qk)  SM90A_E4M3_ATTENTION_K_CHUNKS(qk)
#define SM90A_E4M3_ATTENTION_SLOT(qk) \
    (SM90A_E4M3_ATTENTION_UNITS(qk) * SM90A_E4M3_ATTENTION_UNIT_BYTES)
#define SM90A_E4M3_ATTENTION_K_UNITS(qk) SM90A_E4M3_ATTENTION_UNITS(qk)
#define SM90A_E4M3_ATTENTION_V_KEYS(v)   ATTENTION_BLOCK
#define SM90A_E4M3_ATTENTION_BOX_V(v)    ATTENTION_BLOCK
#define SM90A_E4M3_ATTENTION_RAW_SLOT(v) \
    (SM90A_E4M3_ATTENTION_V_BOXES(v) * SM90A_E4M3_ATTENTION_UNIT_BYTES)
#define SM90A_E4M3_ATTENTION_V_SLOT(v) ((v)*ATTENTION_BLOCK)

/* Dynamic shared memory, from its 1024-aligned start: Q's tiles, each in chunks; the rings of as
 * many slots as fit, at most 4; where sums are promoted (`sums` 1) the fp32 sums of O, a tile a consumer.
 * O of 256 columns has them in registers. V's columns of a variant follow from qk. */
#define SM90A_E4M3_ATTENTION_V_OF(qk) ((qk) == 192 ? 128 : (qk))
#define SM90A_E4M3_ATTENTION_Q_CHUNK  SM90A_ATTENTION_Q_CHUNK
#define SM90A_E4M3_ATTENTION_Q_TILE(qk) \
    (SM90A_E4M3_ATTENTION_K_CHUNKS(qk) * SM90A_E4M3_ATTENTION_Q_CHUNK)
#define SM90A_E4M3_ATTENTION_STATIC_BYTES 2048 /* bound on barriers and records */
#define SM90A_E4M3_ATTENTION_RING(qk) \
    (SM90A_E4M3_ATTENTION_ITEM_TILES(qk) * SM90A_E4M3_ATTENTION_Q_TILE(qk))
#define SM90A_E4M3_ATTENTION_SUMS_TILE(qk, sums) \
    ((sums) && (qk) != 256 ? SM90A_E4M3_ATTENTION_TILE_ROWS * SM90A_E4M3_ATTENTION_V_OF(qk) * 4 : 0)
#define SM90A_E4M3_ATTENTION_SUMS_BYTES(qk, sums) \
    (SM90A_E4M3_ATTENTION_ITEM_TILES(qk) * SM90A_E4M3_ATTENTION_SUMS_TILE(qk, sums))
#define SM90A_E4M3_ATTENTION_SLOTS_OF(qk)                           \
    (SM90A_E4M3_ATTENTION_SLOT(qk) +                                \
     SM90A_E4M3_ATTENTION_RAW_SLOT(SM90A_E4M3_ATTENTION_V_OF(qk)) + \
     SM90A_E4M3_ATTENTION_V_SLOT(SM90A_E4M3_ATTENTION_V_OF(qk)))
#define SM90A_E4M3_ATTENTION_SLOTS_MAX(qk, sums)                                            \
    ((SM_SHARED_BYTES - SM90A_E4M3_ATTENTION_STATIC_BYTES - SM90A_E4M3_ATTENTION_RING(qk) - \
      SM90A_E4M3_ATTENTION_SUMS_BYTES(qk, sums)) /                                          \
     SM90A_E4M3_ATTENTION_SLOTS_OF(qk))
#define SM90A_E4M3_ATTENTION_SLOTS_BESIDE(qk, sums) \
    (SM90A_E4M3_ATTENTION_SLOTS_MAX(qk, sums) < 4 ? SM90A_E4M3_ATTENTION_SLOTS_MAX(qk, sums) : 4)
#define SM90A_E4M3_ATTENTION_RAW(qk, sums) \
    (SM90A_E4M3_ATTENTION_RING(qk) +       \
     SM90A_E4M3_ATTENTION_SLOTS_BESIDE(qk, sums) * SM90A_E4M3_ATTENTION_SLOT(qk))
#define SM90A_E4M3_ATTENTION_RING_V(qk, v, sums) \
    (SM90A_E4M3_ATTENTION_RAW(qk, sums) +        \
     SM90A_E4M3_ATTENTION_SLOTS_BESIDE(qk, sums) * SM90A_E4M3_ATTENTION_RAW_SLOT(v))
#define SM90A_E4M3_ATTENTION_SUMS(qk, sums) \
    (SM90A_E4M3_ATTENTION_RING(qk) +        \
     SM90A_E4M3_ATTENTION_SLOTS_BESIDE(qk, sums) * SM90A_E4M3_ATTENTION_SLOTS_OF(qk))
#define SM90A_E4M3_ATTENTION_SHARED_BESIDE(qk, sums) \
    (SM90A_E4M3_ATTENTION_SUMS(qk, sums) + SM90A_E4M3_ATTENTION_SUMS_BYTES(qk, sums))
#define SM90A_E4M3_ATTENTION_SLOTS(qk, e)          SM90A_E4M3_ATTENTION_SLOTS_BESIDE(qk, 0)
#define SM90A_E4M3_ATTENTION_DYNAMIC_SHARED(qk, e) SM90A_E4M3_ATTENTION_SHARED_BESIDE(qk, 0)

/* Threads: a warpgroup of planner, producers and an idle warp, one that transposes V, then a
 * consumer warpgroup a tile. Where they join, planner, producer and two warps that transpose are one
 * warpgroup: of 64 columns because there are three consumers, of 256 and of wide steps because ptxas gives a
 * thread of 512 no more than 128 registers, fewer than O or S of 256 columns has. Registers a thread after
 * setmaxnreg: the consumers share what the others leave. */
#define SM90A_E4M3_ATTENTION_JOINS(qk, sums) \
    ((qk) == 64 || (qk) == 256 || SM90A_E4M3_ATTENTION_WIDE(qk, sums))
#define SM90A_E4M3_ATTENTION_LOADERS(qk, sums) \
    (SM90A_E4M3_ATTENTION_JOINS(qk, sums) ? 1 : 2) /* warpgroups */
#define SM90A_E4M3_ATTENTION_PRODUCERS(qk, sums) \
    (SM90A_E4M3_ATTENTION_JOINS(qk, sums) ? 1 : 2) /* warps */
#define SM90A_E4M3_ATTENTION_TRANSPOSERS(qk, sums) (SM90A_E4M3_ATTENTION_JOINS(qk, sums) ? 2 : 4)
#define SM90A_E4M3_ATTENTION_TRANSPOSE_WARP(qk, sums) \
    (SM90A_E4M3_ATTENTION_JOINS(qk, sums) ? 2 : 4) /* the first of them */
#define SM90A_E4M3_ATTENTION_WARPGROUPS(qk, sums) \
    (SM90A_E4M3_ATTENTION_ITEM_TILES(qk) + SM90A_E4M3_ATTENTION_LOADERS(qk, sums))
#define SM90A_E4M3_ATTENTION_THREADS_BESIDE(qk, sums) \
    (128 * SM90A_E4M3_ATTENTION_WARPGROUPS(qk, sums))
#define SM90A_E4M3_ATTENTION_THREADS(qk) SM90A_E4M3_ATTENTION_THREADS_BESIDE(qk, 0)
#define SM90A_E4M3_ATTENTION_PRODUCER_REGS(qk, sums) \
    (SM90A_E4M3_ATTENTION_JOINS(qk, sums) && !SM90A_E4M3_ATTENTION_WIDE(qk, sums) ? 56 : 40)
#define SM90A_E4M3_ATTENTION_TRANSPOSE_REGS 40
#define SM90A_E4M3_ATTENTION_LOADER_REGS(qk, sums)  \
    (SM90A_E4M3_ATTENTION_PRODUCER_REGS(qk, sums) + \
     (SM90A_E4M3_ATTENTION_LOADERS(qk, sums) == 2 ? SM90A_E4M3_ATTENTION_TRANSPOSE_REGS : 0))
#define SM90A_E4M3_ATTENTION_CONSUMER_REGS(qk, sums)                      \
    ((SM90A_E4M3_ATTENTION_WARPGROUPS(qk, sums) *                         \
          SM_REGISTERS_8(SM90A_E4M3_ATTENTION_THREADS_BESIDE(qk, sums)) - \
      SM90A_E4M3_ATTENTION_LOADER_REGS(qk, sums)) /                       \
     SM90A_E4M3_ATTENTION_ITEM_TILES(qk))

#define SM90A_E4M3_ATTENTION_TMEM_COLUMNS 0
#define SM90A_E4M3_ATTENTION_CTAS_PER_SM  1

/* Records: as of the 16-bit kernel. */
#define SM90A_E4M3_ATTENTION_RECORDS      SM90A_ATTENTION_RECORDS
#define SM90A_E4M3_ATTENTION_BLOCKS       SM90A_ATTENTION_BLOCKS
#define SM90A_E4M3_ATTENTION_BLOCKS_0     SM90A_ATTENTION_BLOCKS_0
#define SM90A_E4M3_ATTENTION_KEY          SM90A_ATTENTION_KEY
#define SM90A_E4M3_ATTENTION_KEYS         SM90A_ATTENTION_KEYS
#define SM90A_E4M3_ATTENTION_ALIGN        SM90A_ATTENTION_ALIGN
#define SM90A_E4M3_ATTENTION_BASE         SM90A_ATTENTION_BASE
#define SM90A_E4M3_ATTENTION_PLANE        SM90A_ATTENTION_PLANE
#define SM90A_E4M3_ATTENTION_LEFT         SM90A_ATTENTION_LEFT
#define SM90A_E4M3_ATTENTION_RIGHT        SM90A_ATTENTION_RIGHT
#define SM90A_E4M3_ATTENTION_TOKEN        SM90A_ATTENTION_TOKEN
#define SM90A_E4M3_ATTENTION_QUERIES      SM90A_ATTENTION_QUERIES
#define SM90A_E4M3_ATTENTION_SEQUENCE     SM90A_ATTENTION_SEQUENCE
#define SM90A_E4M3_ATTENTION_KV_HEAD      SM90A_ATTENTION_KV_HEAD
#define SM90A_E4M3_ATTENTION_HEAD_BLOCK   SM90A_ATTENTION_HEAD_BLOCK
#define SM90A_E4M3_ATTENTION_SPLIT        SM90A_ATTENTION_SPLIT
#define SM90A_E4M3_ATTENTION_Q_BASE       SM90A_ATTENTION_Q_BASE
#define SM90A_E4M3_ATTENTION_RECORD_BYTES SM90A_ATTENTION_RECORD_BYTES

/* The worksheet, for `hewn worksheet`: lists as in attention.plan.h. */

/* X(name, first warp, warps) */
#define SM90A_E4M3_ATTENTION_ROLES(X, qk) SM90A_E4M3_ATTENTION_ROLES_##qk(X, qk)
#define SM90A_E4M3_ATTENTION_ROLES_192(X, qk) \
    X(producer_k, 0, 1)                       \
    X(planner, 1, 1)                          \
    X(producer_v, 2, 1)                       \
    X(idle, 3, 1)                             \
    X(transpose, 4, 4)                        \
    X(consumer, 8, 4 * SM90A_E4M3_ATTENTION_ITEM_TILES(qk))
#define SM90A_E4M3_ATTENTION_ROLES_256(X, qk) \
    X(producer, 0, 1)                         \
    X(planner, 1, 1)                          \
    X(transpose, 2, 2)                        \
    X(consumer, 4, 4 * SM90A_E4M3_ATTENTION_ITEM_TILES(qk))
#define SM90A_E4M3_ATTENTION_ROLES_64  SM90A_E4M3_ATTENTION_ROLES_256
#define SM90A_E4M3_ATTENTION_ROLES_96  SM90A_E4M3_ATTENTION_ROLES_256
#define SM90A_E4M3_ATTENTION_ROLES_128 SM90A_E4M3_ATTENTION_ROLES_256

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM90A_E4M3_ATTENTION_SHARED(X, qk, v, e) SM90A_E4M3_ATTENTION_RINGS(X, qk, v, 0)
#define SM90A_E4M3_ATTENTION_RINGS(X, qk, v, sums)                                      \
    X(tile_q, 0, SM90A_E4M3_ATTENTION_Q_TILE(qk), SM90A_E4M3_ATTENTION_ITEM_TILES(qk))  \
    X(ring_k, SM90A_E4M3_ATTENTION_RING(qk), SM90A_E4M3_ATTENTION_SLOT(qk),             \
      SM90A_E4M3_ATTENTION_SLOTS_BESIDE(qk, sums))                                      \
    X(raw_v, SM90A_E4M3_ATTENTION_RAW(qk, sums), SM90A_E4M3_ATTENTION_RAW_SLOT(v),      \
      SM90A_E4M3_ATTENTION_SLOTS_BESIDE(qk, sums))                                      \
    X(ring_v, SM90A_E4M3_ATTENTION_RING_V(qk, v, sums), SM90A_E4M3_ATTENTION_V_SLOT(v), \
      SM90A_E4M3_ATTENTION_SLOTS_BESIDE(qk, sums))

/* X(name, first column, columns): this target has no tensor memory. */
#define SM90A_E4M3_ATTENTION_TMEM(X, qk, v)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits). `from_k`, `from_v`: who loads K
 * and V; `producers`: the producers. With pages, without soft cap: where loaders join, V is else the producer's. */
#define SM90A_E4M3_ATTENTION_HANDOFFS(X, qk, v, e) SM90A_E4M3_ATTENTION_HANDOFFS_##qk(X, qk, v, e)
#define SM90A_E4M3_ATTENTION_HANDOFFS_192(X, qk, v, e) \
    SM90A_E4M3_ATTENTION_HANDOFFS_APART(X, qk, v, e, 0)
#define SM90A_E4M3_ATTENTION_HANDOFFS_APART(X, qk, v, e, sums)                  \
    SM90A_E4M3_ATTENTION_HANDOFFS_BY(X, qk, v, e, sums, producer_k, producer_v, \
                                     producer_k + producer_v)
#define SM90A_E4M3_ATTENTION_HANDOFFS_256(X, qk, v, e) \
    SM90A_E4M3_ATTENTION_HANDOFFS_BY(X, qk, v, e, 0, producer, planner, producer)
#define SM90A_E4M3_ATTENTION_HANDOFFS_64  SM90A_E4M3_ATTENTION_HANDOFFS_256
#define SM90A_E4M3_ATTENTION_HANDOFFS_96  SM90A_E4M3_ATTENTION_HANDOFFS_256
#define SM90A_E4M3_ATTENTION_HANDOFFS_128 SM90A_E4M3_ATTENTION_HANDOFFS_256
#define SM90A_E4M3_ATTENTION_HANDOFFS_BY(X, qk, v, e, sums, from_k, from_v, producers)          \
    X(k_full, 1, 0, SM90A_E4M3_ATTENTION_SLOT(qk), from_k, consumer)                            \
    X(k_empty, SM90A_E4M3_ATTENTION_ITEM_TILES(qk), 0, 0, consumer, from_k)                     \
    X(raw_full, 1, 0, SM90A_E4M3_ATTENTION_RAW_SLOT(v), from_v, transpose)                      \
    X(raw_empty, SM90A_E4M3_ATTENTION_TRANSPOSERS(qk, sums), 0, 0, transpose, from_v)           \
    X(v_full, SM90A_E4M3_ATTENTION_TRANSPOSERS(qk, sums), 0, 0, transpose, consumer)            \
    X(v_empty, SM90A_E4M3_ATTENTION_ITEM_TILES(qk), 0, 0, consumer, transpose)                  \
    X(q_full, 1, 0, SM90A_E4M3_ATTENTION_Q_TILE(qk), planner, consumer)                         \
    X(q_empty, 1, 0, 0, consumer, planner)                                                      \
    X(record_full, 1, 0, 0, planner, producers + consumer)                                      \
    X(record_empty,                                                                             \
      4 * SM90A_E4M3_ATTENTION_ITEM_TILES(qk) + SM90A_E4M3_ATTENTION_PRODUCERS(qk, sums), 0, 0, \
      producers + consumer, planner)

/* X(storage, writers, readers) */
#define SM90A_E4M3_ATTENTION_FLOWS(X, qk, v, e) SM90A_E4M3_ATTENTION_FLOWS_##qk(X)
#define SM90A_E4M3_ATTENTION_FLOWS_192(X) \
    SM90A_E4M3_ATTENTION_FLOWS_BY(X, producer_k, producer_v, producer_k + producer_v)
#define SM90A_E4M3_ATTENTION_FLOWS_256(X)                                   \
    SM90A_E4M3_ATTENTION_FLOWS_BY(X, producer, planner, producer + planner) \
    X(planned, planner, planner)
#define SM90A_E4M3_ATTENTION_FLOWS_64  SM90A_E4M3_ATTENTION_FLOWS_256
#define SM90A_E4M3_ATTENTION_FLOWS_96  SM90A_E4M3_ATTENTION_FLOWS_256
#define SM90A_E4M3_ATTENTION_FLOWS_128 SM90A_E4M3_ATTENTION_FLOWS_256
#define SM90A_E4M3_ATTENTION_FLOWS_BY(X, from_k, from_v, producers) \
    X(tile_q, planner.tma, consumer.mma)                            \
    X(ring_k, from_k.tma, consumer.mma)                             \
    X(raw_v, from_v.tma, transpose)                                 \
    X(raw_keys, from_v, transpose)                                  \
    X(ring_v, transpose, consumer.mma)                              \
    X(records, planner, producers + consumer)

/* The variants whose sums are promoted, modules with _sums behind the name: what differs. */
#define SM90A_E4M3_SUMS_ATTENTION_VARIANTS(X) \
    X(SM90A_E4M3_SUMS, sm_90a, 64, 64, 1)     \
    X(SM90A_E4M3_SUMS, sm_90a, 96, 96, 1)     \
    X(SM90A_E4M3_SUMS, sm_90a, 128, 128, 1)   \
    X(SM90A_E4M3_SUMS, sm_90a, 192, 128, 1)   \
    X(SM90A_E4M3_SUMS, sm_90a, 256, 256, 1)
#define SM90A_E4M3_SUMS_ATTENTION_SLOTS(qk, e)          SM90A_E4M3_ATTENTION_SLOTS_BESIDE(qk, 1)
#define SM90A_E4M3_SUMS_ATTENTION_DYNAMIC_SHARED(qk, e) SM90A_E4M3_ATTENTION_SHARED_BESIDE(qk, 1)
#define SM90A_E4M3_SUMS_ATTENTION_SHARED(X, qk, v, e) \
    SM90A_E4M3_SUMS_ATTENTION_SHARED_##qk(X, qk, v)
#define SM90A_E4M3_SUMS_ATTENTION_SHARED_128(X, qk, v)                               \
    SM90A_E4M3_ATTENTION_RINGS(X, qk, v, 1)                                          \
    X(sums, SM90A_E4M3_ATTENTION_SUMS(qk, 1), SM90A_E4M3_ATTENTION_SUMS_TILE(qk, 1), \
      SM90A_E4M3_ATTENTION_ITEM_TILES(qk))
#define SM90A_E4M3_SUMS_ATTENTION_SHARED_64            SM90A_E4M3_SUMS_ATTENTION_SHARED_128
#define SM90A_E4M3_SUMS_ATTENTION_SHARED_96            SM90A_E4M3_SUMS_ATTENTION_SHARED_128
#define SM90A_E4M3_SUMS_ATTENTION_SHARED_192           SM90A_E4M3_SUMS_ATTENTION_SHARED_128
#define SM90A_E4M3_SUMS_ATTENTION_SHARED_256(X, qk, v) SM90A_E4M3_ATTENTION_RINGS(X, qk, v, 1)
#define SM90A_E4M3_SUMS_ATTENTION_HANDOFFS(X, qk, v, e) \
    SM90A_E4M3_SUMS_ATTENTION_HANDOFFS_##qk(X, qk, v, e)
#define SM90A_E4M3_SUMS_ATTENTION_HANDOFFS_64  SM90A_E4M3_ATTENTION_HANDOFFS_64
#define SM90A_E4M3_SUMS_ATTENTION_HANDOFFS_96  SM90A_E4M3_SUMS_ATTENTION_HANDOFFS_128
#define SM90A_E4M3_SUMS_ATTENTION_HANDOFFS_192 SM90A_E4M3_ATTENTION_HANDOFFS_192
#define SM90A_E4M3_SUMS_ATTENTION_HANDOFFS_256 SM90A_E4M3_ATTENTION_HANDOFFS_256
#define SM90A_E4M3_SUMS_ATTENTION_HANDOFFS_128(X, qk, v, e) \
    SM90A_E4M3_ATTENTION_HANDOFFS_APART(X, qk, v, e, 1)
#define SM90A_E4M3_SUMS_ATTENTION_FLOWS(X, qk, v, e) SM90A_E4M3_SUMS_ATTENTION_FLOWS_##qk(X, qk)
#define SM90A_E4M3_SUMS_ATTENTION_FLOWS_192(X, qk) \
    SM90A_E4M3_ATTENTION_FLOWS_192(X) X(sums, consumer, consumer)
#define SM90A_E4M3_SUMS_ATTENTION_FLOWS_64(X, qk) \
    SM90A_E4M3_ATTENTION_FLOWS_64(X) X(sums, consumer, consumer)
#define SM90A_E4M3_SUMS_ATTENTION_FLOWS_96         SM90A_E4M3_SUMS_ATTENTION_FLOWS_192
#define SM90A_E4M3_SUMS_ATTENTION_FLOWS_128        SM90A_E4M3_SUMS_ATTENTION_FLOWS_192
#define SM90A_E4M3_SUMS_ATTENTION_FLOWS_256(X, qk) SM90A_E4M3_ATTENTION_FLOWS_256(X)
#define SM90A_E4M3_SUMS_ATTENTION_ROLES(X, qk)     SM90A_E4M3_SUMS_ATTENTION_ROLES_##qk(X, qk)
#define SM90A_E4M3_SUMS_ATTENTION_ROLES_64         SM90A_E4M3_ATTENTION_ROLES_64
#define SM90A_E4M3_SUMS_ATTENTION_ROLES_96         SM90A_E4M3_ATTENTION_ROLES_192
#define SM90A_E4M3_SUMS_ATTENTION_ROLES_128        SM90A_E4M3_ATTENTION_ROLES_192
#define SM90A_E4M3_SUMS_ATTENTION_ROLES_192        SM90A_E4M3_ATTENTION_ROLES_192
#define SM90A_E4M3_SUMS_ATTENTION_ROLES_256        SM90A_E4M3_ATTENTION_ROLES_256
#define SM90A_E4M3_SUMS_ATTENTION_TMEM             SM90A_E4M3_ATTENTION_TMEM
#define SM90A_E4M3_SUMS_ATTENTION_TMEM_COLUMNS     SM90A_E4M3_ATTENTION_TMEM_COLUMNS
#define SM90A_E4M3_SUMS_ATTENTION_CTAS_PER_SM      SM90A_E4M3_ATTENTION_CTAS_PER_SM
#define SM90A_E4M3_SUMS_ATTENTION_STATIC_BYTES     SM90A_E4M3_ATTENTION_STATIC_BYTES
#define SM90A_E4M3_SUMS_ATTENTION_TILE_ROWS        SM90A_E4M3_ATTENTION_TILE_ROWS
#define SM90A_E4M3_SUMS_ATTENTION_ITEM_TILES       SM90A_E4M3_ATTENTION_ITEM_TILES
#define SM90A_E4M3_SUMS_ATTENTION_ITEM_V           SM90A_E4M3_ATTENTION_ITEM_V
#define SM90A_E4M3_SUMS_ATTENTION_V_HALVES         SM90A_E4M3_ATTENTION_V_HALVES
#define SM90A_E4M3_SUMS_ATTENTION_BOX_V            SM90A_E4M3_ATTENTION_BOX_V
#define SM90A_E4M3_SUMS_ATTENTION_ROW_BYTES        SM90A_E4M3_ATTENTION_ROW_BYTES
#define SM90A_E4M3_SUMS_ATTENTION_THREADS(qk)      SM90A_E4M3_ATTENTION_THREADS_BESIDE(qk, 1)

#endif
