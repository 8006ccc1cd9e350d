/*
 * The plans of the sm_90a kernels of the family grouped: tiles, rings, shared memory, threads. #defines only,
 * included by grouped.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise.
 *
 *   variant | a CTA's tile | a consumer warpgroup's share | for
 *   64x128  |  64 x 128    | 64 x 128 of half the k       | few rows a group, few tiles
 *   64x64   |  64 x 64     | 64 x 64 of half the k        | few rows and few tiles of the broader ones
 *   64x256  |  64 x 256    | 64 x 128, side by side       | few rows a group
 *   128x128 | 128 x 128    | 64 x 128, one below another  | between
 *   128x160 | 128 x 160    | 64 x 160                     | between
 *   128x192 | 128 x 192    | 64 x 192                     | many rows a group
 *   256x128 | 256 x 128    | 128 x 128, 64 rows at a time | very many rows a group
 *   64x128c, 128x128c: as those without the c; each column of B has scales of its own
 *   128x128g, 128x256g: likewise, SwiGLU: half as many columns of D
 *   64x128h ..: inputs of 16 bits, without scales; 64x128h: 64 x 64, side by side; 128x256h, a share of 64 x 256, for many rows a group
 */
#ifndef HEWN_SM90A_GROUPED_PLAN_H
#define HEWN_SM90A_GROUPED_PLAN_H

#include "../inc/grouped.plan.h"

/* ---- all variants: SM90A_GROUPED_<NAME>; ALL(NAME) in the kernel ---- */

#define SM90A_GROUPED_PRODUCER_WARPS 4
#define SM90A_GROUPED_CONSUMER_WARPS 8
#define SM90A_GROUPED_THREADS        (32 * (SM90A_GROUPED_PRODUCER_WARPS + SM90A_GROUPED_CONSUMER_WARPS))
#define SM90A_GROUPED_PRODUCER_REGS  40
#define SM90A_GROUPED_CONSUMER_REGS  232
/* With GATHER, whose producer is four warps. */
#define SM90A_GROUPED_GATHER_PRODUCER_REGS 56
#define SM90A_GROUPED_GATHER_CONSUMER_REGS 224

/* Output boxes: each consumer warp stores 16 rows at a time, 128 bytes wide. */
#define SM90A_GROUPED_D_ROWS  16
#define SM90A_GROUPED_D_BYTES (SM90A_GROUPED_D_ROWS * GEMM_D_ROW_BYTES)

/* What a stage says beside its operands: {first row of the tile in its plane, first column, plane of D, end of
 * the group's rows}, {0, or 1: no tile follows, unused, B's scales of the first and of the next 128 columns}.
 * All but the scales count in the first k-block of a tile alone. */
#define SM90A_GROUPED_PLACE_BYTES  32
#define SM90A_GROUPED_PLACE_LAST   16
#define SM90A_GROUPED_PLACE_SCALES 24

#define SM90A_GROUPED_TMEM_COLUMNS 0
#define SM90A_GROUPED_STATIC_BYTES 1024 /* bound on barriers */

/* Grid: as many clusters as fit the device, at most one a tile. */
#define SM90A_GROUPED_CTAS_PER_SM 1

/* Arrivals at empty_bar: two of every consumer warp, one in each CTA of a pair. */
#define SM90A_GROUPED_EMPTY_ARRIVALS (2 * SM90A_GROUPED_CONSUMER_WARPS)

/* ---- a variant: SM90A_GROUPED_<NAME>(variant); PLAN(NAME) in the kernel ---- */

/* X(prefix, target, variant) */
#define SM90A_GROUPED_VARIANTS(X) \
    X(SM90A, sm_90a, 64x128)      \
    X(SM90A, sm_90a, 64x256)      \
    X(SM90A, sm_90a, 128x128)     \
    X(SM90A, sm_90a, 128x160)     \
    X(SM90A, sm_90a, 128x192)     \
    X(SM90A, sm_90a, 64x128c)     \
    X(SM90A, sm_90a, 128x128c)    \
    X(SM90A, sm_90a, 64x128h)     \
    X(SM90A, sm_90a, 64x256h)     \
    X(SM90A, sm_90a, 128x128h)    \
    X(SM90A, sm_90a, 128x256h)    \
    X(SM90A, sm_90a, 128x128g)    \
    X(SM90A, sm_90a, 128x256g)    \
    X(SM90A, sm_90a, 256x128)     \
    X(SM90A, sm_90a, 64x64)

/* clang-format off */
/*                             TILE_M  N  D_BUFFERS  STAGES  RASTER_ROWS  SCALES  PARTS */
#define SM90A_GROUPED_64x128     64, 128,         2,      6,          16,       0,      1
#define SM90A_GROUPED_64x256     64, 256,         2,      4,          16,       0,      0
#define SM90A_GROUPED_128x128   128, 128,         2,      5,          16,       0,      0
#define SM90A_GROUPED_128x160   128, 160,         2,      5,          16,       0,      0
#define SM90A_GROUPED_128x192   128, 192,         3,      4,          16,       0,      0
#define SM90A_GROUPED_64x128c    64, 128,         2,      6,          16,       1,      1
#define SM90A_GROUPED_128x128c  128, 128,         2,      5,          16,       1,      0
#define SM90A_GROUPED_64x128h    64, 128,         2,      8,          16,       2,      1
#define SM90A_GROUPED_64x256h    64, 256,         2,      4,          16,       2,      0
#define SM90A_GROUPED_128x128h  128, 128,         2,      6,          16,       2,      0
#define SM90A_GROUPED_128x256h  128, 256,         2,      4,          16,       2,      0
#define SM90A_GROUPED_128x128g  128, 128,         2,      6,          16,       3,      0
#define SM90A_GROUPED_128x256g  128, 256,         2,      4,          16,       3,      0
#define SM90A_GROUPED_256x128   256, 128,         4,      3,           8,       0,      0
#define SM90A_GROUPED_64x64      64,  64,         1,     12,          16,       0,      0

#define SM90A_GROUPED_TILE_M(v)      SM90A_GROUPED_FIELD(TILE_M, SM90A_GROUPED_##v)
#define SM90A_GROUPED_TILE_N(v)      SM90A_GROUPED_FIELD(TILE_N, SM90A_GROUPED_##v)
#define SM90A_GROUPED_D_BUFFERS(v)   SM90A_GROUPED_FIELD(D_BUFFERS, SM90A_GROUPED_##v)
#define SM90A_GROUPED_STAGES(v)      SM90A_GROUPED_FIELD(STAGES, SM90A_GROUPED_##v)
#define SM90A_GROUPED_RASTER_ROWS(v) SM90A_GROUPED_FIELD(RASTER_ROWS, SM90A_GROUPED_##v)
/* Scales of B: 0: one for 128 columns; 1: one for each; 2: neither A nor B, whose elements have 16 bits, have any;
 * 3: likewise, SwiGLU. */
#define SM90A_GROUPED_SCALES(v)      SM90A_GROUPED_FIELD(SCALES, SM90A_GROUPED_##v)
/* 1: CTAs of a cluster may share a tile's k-blocks. BY_K: the consumers do, of tiles of 64 rows with scales. */
#define SM90A_GROUPED_PARTS(v)       SM90A_GROUPED_FIELD(PARTS, SM90A_GROUPED_##v)
#define SM90A_GROUPED_BY_K(v) \
    (SM90A_GROUPED_TILE_M(v) == 64 && SM90A_GROUPED_TILE_N(v) <= 128 && !SM90A_GROUPED_PLAIN(v))
#define SM90A_GROUPED_COLUMNS(v)     (SM90A_GROUPED_SCALES(v) == GROUPED_COLUMN_SCALES)
#define SM90A_GROUPED_PLAIN(v)       (SM90A_GROUPED_SCALES(v) >= GROUPED_UNSCALED)
#define SM90A_GROUPED_GLU(v)         (SM90A_GROUPED_SCALES(v) == GROUPED_UNSCALED_GLU)
/* Columns of D in a tile. */
#define SM90A_GROUPED_TILE_D(v)      (SM90A_GROUPED_TILE_N(v) >> SM90A_GROUPED_GLU(v))

#define SM90A_GROUPED_FIELD(name, ...) SM90A_GROUPED_FIELD_##name(__VA_ARGS__)
#define SM90A_GROUPED_FIELD_TILE_M(m, n, d, s, r, c, p)         m
#define SM90A_GROUPED_FIELD_TILE_N(m, n, d, s, r, c, p)         n
#define SM90A_GROUPED_FIELD_D_BUFFERS(m, n, d, s, r, c, p)      d
#define SM90A_GROUPED_FIELD_STAGES(m, n, d, s, r, c, p)         s
#define SM90A_GROUPED_FIELD_RASTER_ROWS(m, n, d, s, r, c, p)    r
#define SM90A_GROUPED_FIELD_PARTS(m, n, d, s, r, c, p)          p
#define SM90A_GROUPED_FIELD_SCALES(m, n, d, s, r, c, p)         c
/* clang-format on */

/* A consumer warpgroup's rows and columns: the two share the tile's rows, its columns or, BY_K, its k-blocks. */
#define SM90A_GROUPED_GROUP_M(v) (SM90A_GROUPED_TILE_M(v) == 256 ? 128 : 64)
#define SM90A_GROUPED_GROUP_N(v)                                                     \
    (SM90A_GROUPED_TILE_M(v) > 64 || SM90A_GROUPED_BY_K(v) ? SM90A_GROUPED_TILE_N(v) \
                                                           : SM90A_GROUPED_TILE_N(v) / 2)

/* A stage: k-blocks of A and B, A's scales. These come in boxes of at most 128 rows of the tile, S_BOX bytes apart. */
#define SM90A_GROUPED_A_BYTES(v) (SM90A_GROUPED_TILE_M(v) * GEMM_ROW_BYTES)
#define SM90A_GROUPED_B_BYTES(v) (SM90A_GROUPED_TILE_N(v) * GEMM_ROW_BYTES)
#define SM90A_GROUPED_S_BOXES(v) ((SM90A_GROUPED_TILE_M(v) + 127) / 128)
#define SM90A_GROUPED_S_ROWS(v)  (SM90A_GROUPED_TILE_M(v) / SM90A_GROUPED_S_BOXES(v) + 4)
#define SM90A_GROUPED_S_BOX(v)   ((SM90A_GROUPED_S_ROWS(v) * 4 + 127) / 128 * 128)
#define SM90A_GROUPED_S_BYTES(v) \
    (SM90A_GROUPED_PLAIN(v) ? 0 : SM90A_GROUPED_S_BOXES(v) * SM90A_GROUPED_S_ROWS(v) * 4)
#define SM90A_GROUPED_S_PITCH(v) \
    (SM90A_GROUPED_PLAIN(v) ? 0 : SM90A_GROUPED_S_BOXES(v) * SM90A_GROUPED_S_BOX(v))
#define SM90A_GROUPED_STAGE_BYTES(v) \
    (SM90A_GROUPED_A_BYTES(v) + SM90A_GROUPED_B_BYTES(v) + SM90A_GROUPED_S_BYTES(v))

/* What a stage has of B's scales, where each column has its own; how many lanes copy scales of B. */
#define SM90A_GROUPED_C_BYTES(v) (SM90A_GROUPED_COLUMNS(v) * SM90A_GROUPED_TILE_N(v) * 4)
#define SM90A_GROUPED_COPY_LANES(v) \
    (SM90A_GROUPED_PLAIN(v) ? 0 : SM90A_GROUPED_COLUMNS(v) ? 32 : SM90A_GROUPED_BY_K(v) ? 1 : 2)
#define SM90A_GROUPED_FULL_ARRIVALS(v) (1 + SM90A_GROUPED_COPY_LANES(v))

/* Dynamic shared memory, from its 1024-aligned start: A's ring, B's, staged boxes of output, A's scales,
 * places, the scales of B's columns, sums that other parts of K send. BY_K these have an area of their own; else they lie
 * where boxes would, because parts store nothing by TMA. */
#define SM90A_GROUPED_RING_A 0
#define SM90A_GROUPED_RING_B(v) \
    (SM90A_GROUPED_RING_A + SM90A_GROUPED_STAGES(v) * SM90A_GROUPED_A_BYTES(v))
#define SM90A_GROUPED_STAGE_D(v) \
    (SM90A_GROUPED_RING_B(v) + SM90A_GROUPED_STAGES(v) * SM90A_GROUPED_B_BYTES(v))
#define SM90A_GROUPED_RING_S(v) \
    (SM90A_GROUPED_STAGE_D(v) + \
     SM90A_GROUPED_CONSUMER_WARPS * SM90A_GROUPED_D_BUFFERS(v) * SM90A_GROUPED_D_BYTES)
#define SM90A_GROUPED_PLACE(v) \
    (SM90A_GROUPED_RING_S(v) + SM90A_GROUPED_STAGES(v) * SM90A_GROUPED_S_PITCH(v))
#define SM90A_GROUPED_RING_C(v) \
    (SM90A_GROUPED_PLACE(v) + SM90A_GROUPED_STAGES(v) * SM90A_GROUPED_PLACE_BYTES)
#define SM90A_GROUPED_RING_END(v) \
    (SM90A_GROUPED_RING_C(v) + SM90A_GROUPED_STAGES(v) * SM90A_GROUPED_C_BYTES(v))
#define SM90A_GROUPED_PART_BYTES 4096 /* a consumer warp's area */
#define SM90A_GROUPED_PART(v) \
    (SM90A_GROUPED_BY_K(v) ? SM90A_GROUPED_RING_END(v) : SM90A_GROUPED_STAGE_D(v))
#define SM90A_GROUPED_DYNAMIC_SHARED(v)                                                         \
    (SM90A_GROUPED_RING_END(v) + (SM90A_GROUPED_BY_K(v) && SM90A_GROUPED_PARTS(v)               \
                                      ? SM90A_GROUPED_CONSUMER_WARPS * SM90A_GROUPED_PART_BYTES \
                                      : 0))

/* ---- the worksheet, which `hewn worksheet` compares with a run ---- */

/* X(name, first warp, warps). _rows: with GATHER. */
#define SM90A_GROUPED_ROLES(X) \
    X(producer, 0, 1)          \
    X(idle, 1, 3)              \
    X(consumer_0, 4, 4)        \
    X(consumer_1, 8, 4)

#define SM90A_GROUPED_ROLES_rows(X)              \
    X(producer, 0, SM90A_GROUPED_PRODUCER_WARPS) \
    X(consumer_0, 4, 4)                          \
    X(consumer_1, 8, 4)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM90A_GROUPED_SHARED(X, v)                                                        \
    X(ring_a, SM90A_GROUPED_RING_A, SM90A_GROUPED_A_BYTES(v), SM90A_GROUPED_STAGES(v))    \
    X(ring_b, SM90A_GROUPED_RING_B(v), SM90A_GROUPED_B_BYTES(v), SM90A_GROUPED_STAGES(v)) \
    X(stage_d, SM90A_GROUPED_STAGE_D(v), SM90A_GROUPED_D_BYTES,                           \
      SM90A_GROUPED_CONSUMER_WARPS *SM90A_GROUPED_D_BUFFERS(v))                           \
    X(place, SM90A_GROUPED_PLACE(v), SM90A_GROUPED_PLACE_BYTES, SM90A_GROUPED_STAGES(v))  \
    SM90A_GROUPED_IF(SM90A_GROUPED_SCALES(v), SHARED)                                     \
    (X, v) SM90A_GROUPED_IF(SM90A_GROUPED_PARTS(v), SHARED_PARTS)(X, v)
#define SM90A_GROUPED_SHARED_PARTS_IF_0(X, v)
#define SM90A_GROUPED_SHARED_PARTS_IF_1(X, v) \
    X(part_area, SM90A_GROUPED_PART(v), SM90A_GROUPED_PART_BYTES, SM90A_GROUPED_CONSUMER_WARPS)
#define SM90A_GROUPED_SHARED_IF_0(X, v) \
    X(scales_a, SM90A_GROUPED_RING_S(v), SM90A_GROUPED_S_PITCH(v), SM90A_GROUPED_STAGES(v))
#define SM90A_GROUPED_SHARED_IF_2(X, v)
#define SM90A_GROUPED_SHARED_IF_3(X, v)
#define SM90A_GROUPED_SHARED_IF_1(X, v) \
    SM90A_GROUPED_SHARED_IF_0(X, v)     \
    X(scales_b, SM90A_GROUPED_RING_C(v), SM90A_GROUPED_C_BYTES(v), SM90A_GROUPED_STAGES(v))
/* SM90A_GROUPED_<list>_IF_<scales> */
#define SM90A_GROUPED_IF(flag, list)    SM90A_GROUPED_IF_OF(flag, list)
#define SM90A_GROUPED_IF_OF(flag, list) SM90A_GROUPED_##list##_IF_##flag

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits); 0 bytes: no tile follows */
#define SM90A_GROUPED_HANDOFFS(X, v)                                                       \
    X(full_bar, SM90A_GROUPED_FULL_ARRIVALS(v), 0, SM90A_GROUPED_STAGE_BYTES(v), producer, \
      consumer_0 + consumer_1)                                                             \
    X(empty_bar, SM90A_GROUPED_EMPTY_ARRIVALS, 0, 0, consumer_0 + consumer_1, producer)    \
    SM90A_GROUPED_IF(SM90A_GROUPED_PARTS(v), HANDOFFS_PARTS)(X)

#define SM90A_GROUPED_HANDOFFS_rows(X, v)                                                     \
    X(full_bar, 1 + 32 * SM90A_GROUPED_PRODUCER_WARPS, 0, SM90A_GROUPED_B_BYTES(v), producer, \
      consumer_0 + consumer_1)                                                                \
    X(empty_bar, SM90A_GROUPED_EMPTY_ARRIVALS, 0, 0, consumer_0 + consumer_1, producer)       \
    SM90A_GROUPED_IF(SM90A_GROUPED_PARTS(v), HANDOFFS_PARTS)(X)

/* part_full: bytes of a chunk of 8 columns, of which there are 4 to 8; part_ready: arrivals of one other part */
#define SM90A_GROUPED_HANDOFFS_PARTS_IF_0(X)
#define SM90A_GROUPED_HANDOFFS_PARTS_IF_1(X)                                    \
    X(part_full, 1, 512, 512, consumer_0 + consumer_1, consumer_0 + consumer_1) \
    X(part_ready, 1, 0, 0, consumer_0 + consumer_1, consumer_0 + consumer_1)

/* X(storage, writers, readers) */
#define SM90A_GROUPED_FLOWS(X, v)                            \
    X(ring_a, producer.tma, consumer_0.mma + consumer_1.mma) \
    SM90A_GROUPED_FLOWS_ALL(X, v, producer.tma)
#define SM90A_GROUPED_FLOWS_rows(X, v)                      \
    X(ring_a, producer.cp, consumer_0.mma + consumer_1.mma) \
    SM90A_GROUPED_FLOWS_ALL(X, v, producer.cp)
#define SM90A_GROUPED_FLOWS_ALL(X, v, by)                                                          \
    X(ring_b, producer.tma, consumer_0.mma + consumer_1.mma)                                       \
    X(stage_d, consumer_0 + consumer_1, consumer_0.tma + consumer_1.tma + consumer_0 + consumer_1) \
    SM90A_GROUPED_IF(SM90A_GROUPED_SCALES(v), FLOWS)(X, by)
#define SM90A_GROUPED_FLOWS_IF_0(X, by)      \
    X(scales_a, by, consumer_0 + consumer_1) \
    X(place, producer + producer.cp, consumer_0 + consumer_1)
#define SM90A_GROUPED_FLOWS_IF_1(X, by)         \
    X(scales_a, by, consumer_0 + consumer_1)    \
    X(place, producer, consumer_0 + consumer_1) \
    X(scales_b, producer.cp, consumer_0 + consumer_1)
#define SM90A_GROUPED_FLOWS_IF_2(X, by) X(place, producer, consumer_0 + consumer_1)
#define SM90A_GROUPED_FLOWS_IF_3(X, by) SM90A_GROUPED_FLOWS_IF_2(X, by)

#endif
