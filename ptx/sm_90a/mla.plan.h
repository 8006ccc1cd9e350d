/*
 * The plan of the sm_90a MLA decode: tiles, slots, shared memory, threads. #defines only, included by
 * mla.ptx, mla_gather.ptx and mla_few.ptx, by the runtime and by tools/mod. Bytes unless a name says
 * otherwise.
 */
#ifndef HEWN_SM90A_MLA_PLAN_H
#define HEWN_SM90A_MLA_PLAN_H

#include "../inc/mla.plan.h"

/* A chunk is 64 columns of 64 rows: of Q, or of a block of keys. A slot is a block. It is freed in
 * PIECES: chunks 0-3 and 4-7, the left and the right half of V, and 8. It is announced in LOADS: chunks
 * 0-1, 2-3, 4-5, 6-7 and 8. */
#define SM90A_MLA_CHUNK       (MLA_BLOCK * SWIZZLE_BYTES)
#define SM90A_MLA_CHUNKS      (MLA_QK_DIM / 64)
#define SM90A_MLA_HALF_CHUNKS (MLA_V_DIM / 128)
#define SM90A_MLA_HALF        (SM90A_MLA_HALF_CHUNKS * SM90A_MLA_CHUNK)
#define SM90A_MLA_SLOT        (SM90A_MLA_CHUNKS * SM90A_MLA_CHUNK)
#define SM90A_MLA_SLOTS       2
#define SM90A_MLA_PIECES      3
#define SM90A_MLA_LOADS       5

/* Dynamic shared memory, from its 1024-aligned start. */
#define SM90A_MLA_TILE_Q         (MLA_TILE_ROWS * 2 * MLA_QK_DIM)
#define SM90A_MLA_RING           SM90A_MLA_TILE_Q
#define SM90A_MLA_TILE_P         (SM90A_MLA_RING + SM90A_MLA_SLOTS * SM90A_MLA_SLOT)
#define SM90A_MLA_TILE_P_BYTES   (MLA_TILE_ROWS * 2 * MLA_BLOCK)
#define SM90A_MLA_DYNAMIC_SHARED (SM90A_MLA_TILE_P + SM90A_MLA_TILE_P_BYTES)
#define SM90A_MLA_STATIC_BYTES   3072 /* bound on barriers, records and row statistics */

/* Threads: a warpgroup of two producers, planner and an idle warp, then two consumer warpgroups.
 * Registers a thread after setmaxnreg. */
#define SM90A_MLA_THREADS       384
#define SM90A_MLA_PRODUCER_REGS 56
#define SM90A_MLA_CONSUMER_REGS 224

/* A decoded work item, handed from the planner to all others: offsets of u32 words. */
#define SM90A_MLA_RECORDS      2
#define SM90A_MLA_BLOCKS       0 /* of the item, or -1: none */
#define SM90A_MLA_KEY          4 /* its first key */
#define SM90A_MLA_KEYS         8 /* of the sequence */
#define SM90A_MLA_SEQUENCE     12
#define SM90A_MLA_PART         16 /* the slot of a part; -1: the item is a whole sequence */
#define SM90A_MLA_OWN          20 /* keys of its first list: kernels with a second cache */
#define SM90A_MLA_RECORD_BYTES 32

#define SM90A_MLA_CTAS_PER_SM 1

/* The kernels without boxes (mla_gather.ptx) have a warpgroup more, of loaders. Each piece of a
 * slot is announced. Their finders give the rows of a block, two blocks ahead at most, and the
 * keys among them, which stay until the consumers have masked the block. */
#define SM90A_MLA_GATHER_THREADS       512
#define SM90A_MLA_ROWS_FINDER_REGS     40 /* plain rows */
#define SM90A_MLA_ROWS_LOADER_REGS     56
#define SM90A_MLA_RECORD_FINDER_REGS   32
#define SM90A_MLA_RECORD_LOADER_REGS   64
#define SM90A_MLA_GATHER_CONSUMER_REGS 208
#define SM90A_MLA_ROWS                 2
#define SM90A_MLA_ROWS_BYTES           (4 * MLA_BLOCK)
#define SM90A_MLA_SEEN                 8

/* Of records of 584 bytes: 512 columns, which are all V, so a slot has two pieces. Scales of the rows of a
 * block stay until it is widened. */
#define SM90A_MLA_584_PIECES         2
#define SM90A_MLA_584_TILE_Q         (MLA_TILE_ROWS * 2 * MLA_V_DIM)
#define SM90A_MLA_584_SLOT           (2 * SM90A_MLA_HALF)
#define SM90A_MLA_584_HALF_SHIFT     15 /* a half is 2^15 bytes */
#define SM90A_MLA_584_RING           SM90A_MLA_584_TILE_Q
#define SM90A_MLA_584_TILE_P         (SM90A_MLA_584_RING + SM90A_MLA_SLOTS * SM90A_MLA_584_SLOT)
#define SM90A_MLA_584_DYNAMIC_SHARED (SM90A_MLA_584_TILE_P + SM90A_MLA_TILE_P_BYTES)
#define SM90A_MLA_584_STATIC_BYTES   5120
#define SM90A_MLA_584_FINDER_REGS    32
#define SM90A_MLA_584_LOADER_REGS    64
#define SM90A_MLA_584_CHUNKS         (MLA_584_ROTARY / 64) /* of e4m3 */
#define SM90A_MLA_584_SCALES         4                     /* blocks, a power of two */
#define SM90A_MLA_584_SCALES_BYTES   (MLA_584_SCALES * MLA_BLOCK)

/* Parameters of the kernels with a second cache, and of those of records of 584 bytes, which have one too.
 * They stand behind MLA_SCALARS. X(type, name, rule or meaning) */
#define SM90A_MLA_SECOND_SCALARS(X)                                      \
    X(u64, extra_kv, "address of the second cache")                      \
    X(u64, extra_lists, "address of the second lists")                   \
    X(u64, extra_lengths, "address of their lengths, or 0")              \
    X(u64, extra_step, "bytes between second lists")                     \
    X(u64, extra_token, "bytes between rows of the second cache")        \
    X(u64, extra_plane, "bytes between its pages")                       \
    X(u64, scales, "records of 584 bytes: from a page to its scales")    \
    X(u64, extra_scales, "the same of the second cache")                 \
    X(u32, extra_len, "the most entries of a second list; 0: no lists")  \
    X(u32, extra_share, "second lists that share a length")              \
    X(u32, extra_page, "keys in a page of the second cache, at least 1") \
    X(u32, extra_planes, "pages in it")
#define SM90A_MLA_SECOND_COUNT (SM90A_MLA_SECOND_SCALARS(SCALAR_ONE))
#define SM90A_MLA_SECOND_BYTES (0 SM90A_MLA_SECOND_SCALARS(SCALAR_BYTES))

/* The kernel of records for at most FEW_ROWS rows (mla_few.ptx). A slot is a block of records as they are
 * in the cache. A tile of P is also where a warpgroup gives the other one half of its O. */
#define SM90A_MLA_FEW_ROWS           16
#define SM90A_MLA_FEW_THREADS        384
#define SM90A_MLA_FEW_PRODUCER_REGS  56
#define SM90A_MLA_FEW_CONSUMER_REGS  224
#define SM90A_MLA_FEW_GROUPS         4 /* of columns that share a scale */
#define SM90A_MLA_FEW_CHUNK          (SM90A_MLA_FEW_ROWS * SWIZZLE_BYTES)
#define SM90A_MLA_FEW_TILE_Q         (SM90A_MLA_CHUNKS * SM90A_MLA_FEW_CHUNK)
#define SM90A_MLA_FEW_SLOT           (MLA_BLOCK * MLA_RECORD)
#define SM90A_MLA_FEW_SLOTS          4
#define SM90A_MLA_FEW_LOADERS        3
#define SM90A_MLA_FEW_LANES_ROWS     6 /* of a half, by cp.async: LEDGER.md */
#define SM90A_MLA_FEW_RING           SM90A_MLA_FEW_TILE_Q
#define SM90A_MLA_FEW_TILE_P         (SM90A_MLA_FEW_RING + SM90A_MLA_FEW_SLOTS * SM90A_MLA_FEW_SLOT)
#define SM90A_MLA_FEW_TILE_P_BYTES   (SM90A_MLA_FEW_ROWS * MLA_V_DIM / 2 * 4)
#define SM90A_MLA_FEW_DYNAMIC_SHARED (SM90A_MLA_FEW_TILE_P + 2 * SM90A_MLA_FEW_TILE_P_BYTES)

/* What its warps tell each other, by 4 bytes: the maxima of a warp's keys, of each row and group; the sums
 * of a warp's keys of each row. */
#define SM90A_MLA_FEW_MAXIMA (SM90A_MLA_FEW_ROWS + SM90A_MLA_FEW_GROUPS)

/* Of records of 584 bytes. Rows of a slot stand apart, so that eight of them are in different banks; behind
 * them are their scales. A group has 64 columns, and one those that have no scale. */
#define SM90A_MLA_FEW_584_CHUNKS     (MLA_584_ROTARY / 64) /* of e4m3 */
#define SM90A_MLA_FEW_584_LOADERS    3
#define SM90A_MLA_FEW_584_LANES_ROWS 0 /* slower with any: LEDGER.md */
#define SM90A_MLA_FEW_584_GROUPS     (MLA_V_DIM / 64)
#define SM90A_MLA_FEW_584_STRIDE     (MLA_584_ROW + 16)
#define SM90A_MLA_FEW_584_TILE_Q     (MLA_V_DIM / 64 * SM90A_MLA_FEW_CHUNK)
#define SM90A_MLA_FEW_584_SLOT       (MLA_BLOCK * (SM90A_MLA_FEW_584_STRIDE + MLA_584_SCALES))
#define SM90A_MLA_FEW_584_RING       SM90A_MLA_FEW_584_TILE_Q
#define SM90A_MLA_FEW_584_TILE_P \
    (SM90A_MLA_FEW_584_RING + SM90A_MLA_FEW_SLOTS * SM90A_MLA_FEW_584_SLOT)
#define SM90A_MLA_FEW_584_DYNAMIC_SHARED (SM90A_MLA_FEW_584_TILE_P + 2 * SM90A_MLA_FEW_TILE_P_BYTES)
#define SM90A_MLA_FEW_584_MAXIMA         (SM90A_MLA_FEW_ROWS + SM90A_MLA_FEW_584_GROUPS)

/* The worksheet, for `hewn worksheet`: lists as in gemm.plan.h. */

/* X(name, first warp, warps) */
#define SM90A_MLA_ROLES(X) \
    X(producer, 0, 2)      \
    X(planner, 2, 1)       \
    X(idle, 3, 1)          \
    X(consumer, 4, 8)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM90A_MLA_SHARED(X)                                  \
    X(tile_q, 0, SM90A_MLA_TILE_Q, 1)                        \
    X(ring, SM90A_MLA_RING, SM90A_MLA_SLOT, SM90A_MLA_SLOTS) \
    X(tile_p, SM90A_MLA_TILE_P, SM90A_MLA_TILE_P_BYTES, 1)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits) */
#define SM90A_MLA_HANDOFFS(X)                                  \
    X(full_bar, 32, 0, SM90A_MLA_HALF / 2, producer, consumer) \
    X(empty_bar, 2, 0, 0, consumer, producer)                  \
    X(q_full, 1, 0, SM90A_MLA_TILE_Q, planner, consumer)       \
    X(q_empty, 8, 0, 0, consumer, planner)                     \
    X(record_full, 1, 0, 0, planner, producer + consumer)      \
    X(record_empty, 10, 0, 0, producer + consumer, planner)

/* X(storage, writers, readers) */
#define SM90A_MLA_FLOWS(X)                                                                       \
    X(tile_q, planner.tma, consumer + consumer.mma)                                              \
    X(ring, producer.tma + producer.cp, consumer.mma)                                            \
    X(tile_p, consumer, consumer.mma)                                                            \
    X(row_stats, consumer, consumer)                                                             \
    X(row_sums, consumer, consumer)                                                              \
    X(sequence_sums, producer + planner + idle + consumer, producer + planner + idle + consumer) \
    X(first_item, producer + planner + idle + consumer, producer + planner + idle + consumer)    \
    X(records, planner, producer + consumer)

#define SM90A_MLA_GATHER_ROLES(X) \
    X(planner, 0, 1)              \
    X(finder, 1, 2)               \
    X(idle, 3, 1)                 \
    X(loader, 4, 4)               \
    X(consumer, 8, 8)

/* `latent`: arrivals of a half, 128 where it comes by cp.async, else 4 */
#define SM90A_MLA_GATHER_HANDOFFS(X, latent)                     \
    X(full_bar, latent, 0, 0, loader, consumer)                  \
    X(rotary_bar, 128, 0, 0, loader, consumer)                   \
    X(seen_full, 4, 0, 0, loader, consumer)                      \
    X(empty_bar, 1, 0, 0, consumer, loader)                      \
    X(q_full, 1, 0, SM90A_MLA_TILE_Q, planner, consumer)         \
    X(q_empty, 8, 0, 0, consumer, planner)                       \
    X(found_full, 2, 0, 0, finder, loader)                       \
    X(found_empty, 4, 0, 0, loader, finder)                      \
    X(record_full, 1, 0, 0, planner, finder + loader + consumer) \
    X(record_empty, 14, 0, 0, finder + loader + consumer, planner)

/* Records of 584 bytes: the finders' scales come by cp.async */
#define SM90A_MLA_584_SHARED(X)                                      \
    X(tile_q, 0, SM90A_MLA_584_TILE_Q, 1)                            \
    X(ring, SM90A_MLA_584_RING, SM90A_MLA_584_SLOT, SM90A_MLA_SLOTS) \
    X(tile_p, SM90A_MLA_584_TILE_P, SM90A_MLA_TILE_P_BYTES, 1)
#define SM90A_MLA_584_HANDOFFS(X)                                \
    X(full_bar, 4, 0, 0, loader, consumer)                       \
    X(empty_bar, 1, 0, 0, consumer, loader)                      \
    X(q_full, 1, 0, SM90A_MLA_584_TILE_Q, planner, consumer)     \
    X(q_empty, 8, 0, 0, consumer, planner)                       \
    X(found_full, 66, 0, 0, finder, loader)                      \
    X(found_empty, 4, 0, 0, loader, finder)                      \
    X(record_full, 1, 0, 0, planner, finder + loader + consumer) \
    X(record_empty, 14, 0, 0, finder + loader + consumer, planner)
#define SM90A_MLA_584_FLOWS(X)                    \
    SM90A_MLA_GATHER_FLOWS(X, loader + loader.cp) \
    X(row_scales, finder.cp, loader)

/* `latent`: how the loader writes a half */
#define SM90A_MLA_GATHER_FLOWS(X, latent)                         \
    X(tile_q, planner.tma, consumer + consumer.mma)               \
    X(ring, latent, consumer.mma)                                 \
    X(tile_p, consumer, consumer.mma)                             \
    X(row_stats, consumer, consumer)                              \
    X(row_sums, consumer, consumer)                               \
    X(found, finder, loader)                                      \
    X(seen, finder, consumer)                                     \
    X(sequence_sums, planner + finder + idle + loader + consumer, \
      planner + finder + idle + loader + consumer)                \
    X(first_item, planner + finder + idle + loader + consumer,    \
      planner + finder + idle + loader + consumer)                \
    X(records, planner, finder + loader + consumer)

#define SM90A_MLA_FEW_ROLES(X)          \
    X(planner, 0, 1)                    \
    X(loader, 1, SM90A_MLA_FEW_LOADERS) \
    X(consumer, 4, 8)

#define SM90A_MLA_FEW_SHARED(X)                                          \
    X(tile_q, 0, SM90A_MLA_FEW_TILE_Q, 1)                                \
    X(ring, SM90A_MLA_FEW_RING, SM90A_MLA_FEW_SLOT, SM90A_MLA_FEW_SLOTS) \
    X(tile_p, SM90A_MLA_FEW_TILE_P, SM90A_MLA_FEW_TILE_P_BYTES, 2)

#define SM90A_MLA_FEW_HANDOFFS(X)                            \
    X(full_bar, 66, 0, SM90A_MLA_FEW_SLOT, loader, consumer) \
    X(empty_bar, 4, 0, 0, consumer, loader)                  \
    X(q_full, 1, 0, SM90A_MLA_FEW_TILE_Q, planner, consumer) \
    X(q_empty, 8, 0, 0, consumer, planner)                   \
    X(record_full, 1, 0, 0, planner, loader + consumer)      \
    X(record_empty, 11, 0, 0, loader + consumer, planner)

/* `copies`: what loads records; `all`: all roles */
#define SM90A_MLA_FEW_FLOWS(X, copies, all)                    \
    X(tile_q, planner.tma + consumer, consumer + consumer.mma) \
    X(ring, copies + loader, consumer)                         \
    X(tile_p, consumer, consumer + consumer.mma)               \
    X(seen, loader, consumer)                                  \
    X(row_factors, consumer, consumer)                         \
    X(maxima, consumer, consumer)                              \
    X(row_sums, consumer, consumer)                            \
    X(sequence_sums, all, all)                                 \
    X(first_item, all, all)                                    \
    X(records, planner, loader + consumer)

#define SM90A_MLA_FEW_584_ROLES(X)          \
    X(planner, 0, 1)                        \
    X(loader, 1, SM90A_MLA_FEW_584_LOADERS) \
    X(consumer, 4, 8)
#define SM90A_MLA_FEW_584_SHARED(X)                                              \
    X(tile_q, 0, SM90A_MLA_FEW_584_TILE_Q, 1)                                    \
    X(ring, SM90A_MLA_FEW_584_RING, SM90A_MLA_FEW_584_SLOT, SM90A_MLA_FEW_SLOTS) \
    X(tile_p, SM90A_MLA_FEW_584_TILE_P, SM90A_MLA_FEW_TILE_P_BYTES, 2)
#define SM90A_MLA_FEW_584_HANDOFFS(X)                            \
    X(full_bar, 66, 0, SM90A_MLA_FEW_584_SLOT, loader, consumer) \
    X(empty_bar, 4, 0, 0, consumer, loader)                      \
    X(q_full, 1, 0, SM90A_MLA_FEW_584_TILE_Q, planner, consumer) \
    X(q_empty, 8, 0, 0, consumer, planner)                       \
    X(record_full, 1, 0, 0, planner, loader + consumer)          \
    X(record_empty, 11, 0, 0, loader + consumer, planner)

#endif
