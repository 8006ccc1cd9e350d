/*
 * The plans of the sm_90a GEMM: tiles, rings, shared memory, threads. #defines only, included by
 * gemm.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise.
 *
 * One text, seven variants: -DVARIANT=name picks the numbers SM90A_GEMM_<NAME>_*; plain's have no
 * name. Numbers without a variant's name that stand in the first section hold for all.
 *
 *   variant | a CTA's tile | in a cluster                              | for
 *   plain   | 128 x 256    | one CTA                                   | drivers without clusters
 *   pair    | 128 x 256    | two, one below the other: half of B each  | large products
 *   wide    | 256 x 192    | two, side by side: half of A each         | the largest, 16-bit inputs
 *   small   | 128 x 128    | two, side by side: half of A each         | smaller ones
 *   narrow  | 128 x  64    | two, side by side: half of A each         | still smaller ones
 *   split   | 128 x  64    | parts of K                                | few tiles, long K
 *   flat    |  64 x 128    | parts of K                                | the same with m <= 64
 *
 * "Half of B each": each CTA of the pair loads half of the tile both need, and multicasts it.
 * Parts of K: 1 to 8 CTAs of a cluster sum up the same tile over
 * [k_blocks * part / parts, k_blocks * (part + 1) / parts) and add up through shared memory.
 */
#ifndef HEWN_SM90A_GEMM_PLAN_H
#define HEWN_SM90A_GEMM_PLAN_H

#include "../inc/gemm.plan.h"

/* ---- all variants ---- */

/* k-blocks of ROW_BYTES of an operand, TILE_K elements of 16 bits or twice as many of 8: one swizzle
 * row. */
#define SM90A_GEMM_ROW_BYTES 128
#define SM90A_GEMM_TILE_K    64

/* Threads: a producer warpgroup and two consumer warpgroups. */
#define SM90A_GEMM_THREADS        384
#define SM90A_GEMM_PRODUCER_WARPS 4
#define SM90A_GEMM_CONSUMER_WARPS 8

/* Registers a thread after setmaxnreg: 24 + 2 * 240 = 3 * 168, the pool of 384 threads. */
#define SM90A_GEMM_PRODUCER_REGS 24
#define SM90A_GEMM_CONSUMER_REGS 240

/* Output boxes: each consumer warp stores its own 16 rows, 128 bytes wide; up to D_BUFFERS at
 * once, or in turn. */
#define SM90A_GEMM_D_ROWS    16
#define SM90A_GEMM_D_BYTES   2048 /* D_ROWS * GEMM_D_ROW_BYTES */

#define SM90A_GEMM_TMEM_COLUMNS 0

/* Grid: min(tiles, SMs * CTAS_PER_SM) CTAs, each walking tiles ctaid, ctaid + grid, ...; clusters
 * likewise, with the tiles of their CTAs together for a tile. */
#define SM90A_GEMM_CTAS_PER_SM 1

/* What a consumer warp gets from other parts: 12 slots of 512 bytes (inc/parts.inc). */
#define SM90A_GEMM_PARTIAL_BYTES 6144

/* Where a tile lies in D, with its last stage: first row and column, problem; whether one follows. */
#define SM90A_GEMM_PLACE_BYTES 16

/* Of all variants: GROUP_M x GROUP_N of the tile is a consumer warpgroup's. The rings hold STAGES
 * k-blocks, A's before B's, from a 1024-aligned start of dynamic shared memory. Raster: tile rows
 * (a cluster's) walked together, see inc/raster.inc. */

/* ---- plain ---- */

#define SM90A_GEMM_CAN            (GEMM_CAN_MN | GEMM_CAN_FINISH | GEMM_CAN_FP8)
#define SM90A_GEMM_TILE_M         128
#define SM90A_GEMM_TILE_N         256
#define SM90A_GEMM_GROUP_M        64
#define SM90A_GEMM_GROUP_N        256
#define SM90A_GEMM_PAIR_M         1
#define SM90A_GEMM_PAIR_N         1
#define SM90A_GEMM_PARTS          1
#define SM90A_GEMM_D_BUFFERS      2
#define SM90A_GEMM_STAGES         4
#define SM90A_GEMM_A_BYTES        16384  /* TILE_M * TILE_K * 2 */
#define SM90A_GEMM_B_BYTES        32768  /* TILE_N * TILE_K * 2 */
#define SM90A_GEMM_STAGE_BYTES    49152  /* A_BYTES + B_BYTES: what one FULL phase waits for */
#define SM90A_GEMM_RING_A         0
#define SM90A_GEMM_RING_B         65536  /* RING_A + STAGES * A_BYTES */
#define SM90A_GEMM_STAGE_D        196608 /* RING_B + STAGES * B_BYTES */
#define SM90A_GEMM_PLACE          229376 /* STAGE_D + 8 warps * D_BUFFERS * D_BYTES */
#define SM90A_GEMM_DYNAMIC_SHARED 229440 /* PLACE + STAGES * PLACE_BYTES */
/* 16 x 8.25 tiles of one wave on 132 SMs cover about 2048 x 2112 of D, the squarest in L2. */
#define SM90A_GEMM_RASTER_ROWS 16

/* ---- pair ---- */

#define SM90A_GEMM_PAIR_CAN            SM90A_GEMM_CAN
#define SM90A_GEMM_PAIR_TILE_M         128
#define SM90A_GEMM_PAIR_TILE_N         256
#define SM90A_GEMM_PAIR_GROUP_M        64
#define SM90A_GEMM_PAIR_GROUP_N        256
#define SM90A_GEMM_PAIR_PAIR_M         2
#define SM90A_GEMM_PAIR_PAIR_N         1
#define SM90A_GEMM_PAIR_PARTS          1
#define SM90A_GEMM_PAIR_D_BUFFERS      2
#define SM90A_GEMM_PAIR_STAGES         4
#define SM90A_GEMM_PAIR_A_BYTES        16384
#define SM90A_GEMM_PAIR_B_BYTES        32768
#define SM90A_GEMM_PAIR_STAGE_BYTES    49152
#define SM90A_GEMM_PAIR_RING_A         0
#define SM90A_GEMM_PAIR_RING_B         65536
#define SM90A_GEMM_PAIR_STAGE_D        196608
#define SM90A_GEMM_PAIR_PLACE          229376
#define SM90A_GEMM_PAIR_DYNAMIC_SHARED 229440
#define SM90A_GEMM_PAIR_RASTER_ROWS    8 /* 8 x 8.25 tiles of 256 x 256 */

/* ---- wide ---- */

/* Sums of 192 registers leave no room for those that are promoted. */
#define SM90A_GEMM_WIDE_CAN            (GEMM_CAN_MN | GEMM_CAN_FINISH)
#define SM90A_GEMM_WIDE_TILE_M         256
#define SM90A_GEMM_WIDE_TILE_N         192
#define SM90A_GEMM_WIDE_GROUP_M        128
#define SM90A_GEMM_WIDE_GROUP_N        192
#define SM90A_GEMM_WIDE_PAIR_M         1
#define SM90A_GEMM_WIDE_PAIR_N         2
#define SM90A_GEMM_WIDE_PARTS          1
#define SM90A_GEMM_WIDE_D_BUFFERS      3
#define SM90A_GEMM_WIDE_STAGES         3
#define SM90A_GEMM_WIDE_A_BYTES        32768
#define SM90A_GEMM_WIDE_B_BYTES        24576
#define SM90A_GEMM_WIDE_STAGE_BYTES    57344
#define SM90A_GEMM_WIDE_RING_A         0
#define SM90A_GEMM_WIDE_RING_B         98304
#define SM90A_GEMM_WIDE_STAGE_D        172032
#define SM90A_GEMM_WIDE_PLACE          221184
#define SM90A_GEMM_WIDE_DYNAMIC_SHARED 221232
#define SM90A_GEMM_WIDE_RASTER_ROWS    8 /* 8 x 8.25 tiles of 256 x 384 */

/* ---- small ---- */

#define SM90A_GEMM_SMALL_CAN            SM90A_GEMM_CAN
#define SM90A_GEMM_SMALL_TILE_M         128
#define SM90A_GEMM_SMALL_TILE_N         128
#define SM90A_GEMM_SMALL_GROUP_M        64
#define SM90A_GEMM_SMALL_GROUP_N        128
#define SM90A_GEMM_SMALL_PAIR_M         1
#define SM90A_GEMM_SMALL_PAIR_N         2
#define SM90A_GEMM_SMALL_PARTS          1
#define SM90A_GEMM_SMALL_D_BUFFERS      2
#define SM90A_GEMM_SMALL_STAGES         6
#define SM90A_GEMM_SMALL_A_BYTES        16384
#define SM90A_GEMM_SMALL_B_BYTES        16384
#define SM90A_GEMM_SMALL_STAGE_BYTES    32768
#define SM90A_GEMM_SMALL_RING_A         0
#define SM90A_GEMM_SMALL_RING_B         98304
#define SM90A_GEMM_SMALL_STAGE_D        196608
#define SM90A_GEMM_SMALL_PLACE          229376
#define SM90A_GEMM_SMALL_DYNAMIC_SHARED 229472
#define SM90A_GEMM_SMALL_RASTER_ROWS    16

/* ---- narrow ---- */

#define SM90A_GEMM_NARROW_CAN            SM90A_GEMM_CAN
#define SM90A_GEMM_NARROW_TILE_M         128
#define SM90A_GEMM_NARROW_TILE_N         64
#define SM90A_GEMM_NARROW_GROUP_M        64
#define SM90A_GEMM_NARROW_GROUP_N        64
#define SM90A_GEMM_NARROW_PAIR_M         1
#define SM90A_GEMM_NARROW_PAIR_N         2
#define SM90A_GEMM_NARROW_PARTS          1
#define SM90A_GEMM_NARROW_D_BUFFERS      2
#define SM90A_GEMM_NARROW_STAGES         8
#define SM90A_GEMM_NARROW_A_BYTES        16384
#define SM90A_GEMM_NARROW_B_BYTES        8192
#define SM90A_GEMM_NARROW_STAGE_BYTES    24576
#define SM90A_GEMM_NARROW_RING_A         0
#define SM90A_GEMM_NARROW_RING_B         131072
#define SM90A_GEMM_NARROW_STAGE_D        196608
#define SM90A_GEMM_NARROW_PLACE          229376
#define SM90A_GEMM_NARROW_DYNAMIC_SHARED 229504
#define SM90A_GEMM_NARROW_RASTER_ROWS    16

/* ---- split ---- */

#define SM90A_GEMM_SPLIT_CAN            SM90A_GEMM_CAN
#define SM90A_GEMM_SPLIT_TILE_M         128
#define SM90A_GEMM_SPLIT_TILE_N         64
#define SM90A_GEMM_SPLIT_GROUP_M        64
#define SM90A_GEMM_SPLIT_GROUP_N        64
#define SM90A_GEMM_SPLIT_PAIR_M         1
#define SM90A_GEMM_SPLIT_PAIR_N         1
#define SM90A_GEMM_SPLIT_PARTS          8
#define SM90A_GEMM_SPLIT_STAGES         7
#define SM90A_GEMM_SPLIT_A_BYTES        16384
#define SM90A_GEMM_SPLIT_B_BYTES        8192
#define SM90A_GEMM_SPLIT_STAGE_BYTES    24576
#define SM90A_GEMM_SPLIT_RING_A         0
#define SM90A_GEMM_SPLIT_RING_B         114688
#define SM90A_GEMM_SPLIT_PARTIAL        172032 /* RING_B + STAGES * B_BYTES */
#define SM90A_GEMM_SPLIT_PLACE          221184 /* PARTIAL + 8 warps * PARTIAL_BYTES */
#define SM90A_GEMM_SPLIT_DYNAMIC_SHARED 221296
#define SM90A_GEMM_SPLIT_RASTER_ROWS    16

/* ---- flat ---- */

#define SM90A_GEMM_FLAT_CAN            SM90A_GEMM_CAN
#define SM90A_GEMM_FLAT_TILE_M         64
#define SM90A_GEMM_FLAT_TILE_N         128
#define SM90A_GEMM_FLAT_GROUP_M        64
#define SM90A_GEMM_FLAT_GROUP_N        64
#define SM90A_GEMM_FLAT_PAIR_M         1
#define SM90A_GEMM_FLAT_PAIR_N         1
#define SM90A_GEMM_FLAT_PARTS          8
#define SM90A_GEMM_FLAT_STAGES         7
#define SM90A_GEMM_FLAT_A_BYTES        8192
#define SM90A_GEMM_FLAT_B_BYTES        16384
#define SM90A_GEMM_FLAT_STAGE_BYTES    24576
#define SM90A_GEMM_FLAT_RING_A         0
#define SM90A_GEMM_FLAT_RING_B         57344
#define SM90A_GEMM_FLAT_PARTIAL        172032
#define SM90A_GEMM_FLAT_PLACE          221184
#define SM90A_GEMM_FLAT_DYNAMIC_SHARED 221296
#define SM90A_GEMM_FLAT_RASTER_ROWS    16

/* ---- what gemm.ptx reads of a variant: PLAN(name) ---- */

#define SM90A_GEMM_PLAN_plain(name) SM90A_GEMM_##name
#define SM90A_GEMM_PLAN_pair(name)  SM90A_GEMM_PAIR_##name
#define SM90A_GEMM_PLAN_wide(name)  SM90A_GEMM_WIDE_##name
#define SM90A_GEMM_PLAN_small(name) SM90A_GEMM_SMALL_##name
#define SM90A_GEMM_PLAN_narrow(name) SM90A_GEMM_NARROW_##name
#define SM90A_GEMM_PLAN_split(name) SM90A_GEMM_SPLIT_##name
#define SM90A_GEMM_PLAN_flat(name)  SM90A_GEMM_FLAT_##name

/* ---- the worksheet, for `hewn worksheet` to hold against a run ---- */

/* X(name, first warp, warps) */
#define SM90A_GEMM_ROLES(X)                                                                        \
    X(producer, 0, 4)                                                                              \
    X(consumer_0, 4, 4)                                                                            \
    X(consumer_1, 8, 4)

/* X(name, offset in dynamic shared memory, element bytes, elements), of the variant P: all, without
 * and with parts */
#define SM90A_GEMM_SHARED_ALL(X, P)                                                                \
    X(ring_a, P##_RING_A, P##_A_BYTES, P##_STAGES)                                                 \
    X(ring_b, P##_RING_B, P##_B_BYTES, P##_STAGES)                                                 \
    X(place, P##_PLACE, SM90A_GEMM_PLACE_BYTES, P##_STAGES)
#define SM90A_GEMM_SHARED_WHOLE(X, P)                                                              \
    SM90A_GEMM_SHARED_ALL(X, P) X(stage_d, P##_STAGE_D, SM90A_GEMM_D_BYTES, 8 * P##_D_BUFFERS)
#define SM90A_GEMM_SHARED_PARTS(X, P)                                                              \
    SM90A_GEMM_SHARED_ALL(X, P)                                                                    \
    X(partial, P##_PARTIAL, SM90A_GEMM_PARTIAL_BYTES, SM90A_GEMM_CONSUMER_WARPS)

/* X(name, first column, columns): this target has no tensor memory. */
#define SM90A_GEMM_TMEM(X)

/* X(barrier, arrivals, bytes of a phase, who signals, who waits): roles. X(storage, writers,
 * readers): a role's threads, its .tma, its .mma (wgmma). Roles of any CTA of the cluster. */
#define SM90A_GEMM_HANDOFFS_WHOLE(X, P)                                                            \
    X(full_bar, 1, P##_STAGE_BYTES, producer, consumer_0 + consumer_1)                             \
    X(empty_bar, SM90A_GEMM_CONSUMER_WARPS *P##_PAIR_M *P##_PAIR_N, 0, consumer_0 + consumer_1,    \
      producer)
/* part_full: bytes of a slot, of which there are 4 to 12; part_free: arrivals of one other part */
#define SM90A_GEMM_HANDOFFS_PARTS(X, P)                                                            \
    SM90A_GEMM_HANDOFFS_WHOLE(X, P)                                                                \
    X(part_full, 1, 512, consumer_0 + consumer_1, consumer_0 + consumer_1)                         \
    X(part_free, 1, 0, consumer_0 + consumer_1, consumer_0 + consumer_1)

#define SM90A_GEMM_FLOWS_WHOLE(X)                                                                  \
    X(ring_a, producer.tma, consumer_0.mma + consumer_1.mma)                                       \
    X(ring_b, producer.tma, consumer_0.mma + consumer_1.mma)                                       \
    X(place, producer, consumer_0 + consumer_1)                                                    \
    X(stage_d, consumer_0 + consumer_1, consumer_0.tma + consumer_1.tma + consumer_0 + consumer_1)
#define SM90A_GEMM_FLOWS_PARTS(X)                                                                  \
    X(ring_a, producer.tma, consumer_0.mma + consumer_1.mma)                                       \
    X(ring_b, producer.tma, consumer_0.mma + consumer_1.mma)                                       \
    X(place, producer, consumer_0 + consumer_1)                                                    \
    X(partial, consumer_0 + consumer_1, consumer_0 + consumer_1)

#endif
