/*
 * The plans of the sm_90a GEMM: tiles, rings, shared memory, threads. #defines only, included by
 * gemm.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise.
 *
 * One text for all variants; -DVARIANT=name picks one.
 *
 *   variant | a CTA's tile | in a cluster                              | for
 *   gluN    | 128 x 2N     | likewise, never parts of K                | pairs of columns, N of D
 *   plain   | 128 x 256    | one CTA                                   | drivers without clusters
 *   pair    | 128 x 256    | two, one below the other: half of B each  | large products
 *   wide    | 256 x 192    | two, side by side: half of A each         | the largest, 16-bit inputs
 *   small   | 128 x 128    | two, side by side: half of A each         | smaller ones, MN-major
 *   narrow  | 128 x  64    | two, side by side: half of A each         | still smaller ones, MN-major
 *   split   | 128 x  64    | parts of K                                | few tiles, long K
 *   flat    |  64 x 128    | parts of K                                | the same with m <= 64
 *   loose   | 128 x  64    | parts of K                                | rows of any length
 *   oddN    | 128 x N      | parts of K                                | rows of any length, 16 bits
 *   MxN     | M x N        | as `mode` says: loads shared by none or   | all between; K-major inputs
 *           |              | by two either way, and parts of K         |
 *   Mx128   | M x 128      | likewise, with A and B exchanged: rows of | few rows; rows between 128s
 *           |              | A are columns of the MMA, 80 to 160       |
 *   anyx128 | N x 128      | as Mx128, N a multiple of 8 up to 256      | what fits a wave: few
 *           |              | that the plan decides                     | or many rows
 *   128xany | 128 x N      | as MxN, N likewise                        | the same of columns
 *   anyx64  | N x 64       | as anyx128, N a multiple of 16 up to 256  | few rows, all of them
 *           |              |                                           | in one tile
 *   anyx256 | N x 256      | as anyx128, N from 64 to 160, no parts    | large products whose
 *           |              |                                           | last wave has little
 *   64x64,  | M x N        | a rectangle of tiles, up to 8: a row's A  | 4 to 12 us: many small
 *   128x64, |              | and a column's B are loaded once          | tiles, one wave;
 *   128x80, |              |                                           | 128x128r: one wave of
 *   128x128r|              |                                           | larger ones
 *
 * "Half of B each": each CTA of the pair loads half of the tile that both need, and multicasts it.
 * Parts of K: 1 to 8 CTAs of a cluster sum up the same tile over [k_blocks * part / parts, k_blocks
 * * (part + 1) / parts) and add up through shared memory.
 */
#ifndef HEWN_SM90A_GEMM_PLAN_H
#define HEWN_SM90A_GEMM_PLAN_H

#include "../inc/gemm.plan.h"

/* ---- all variants: SM90A_GEMM_<NAME>; ALL(NAME) in the kernel ---- */

/* Threads: a producer warpgroup and two consumer warpgroups. Registers a thread after setmaxnreg:
 * the consumers share what the producer leaves of the CTA's. */
#define SM90A_GEMM_PRODUCER_WARPS 4
#define SM90A_GEMM_CONSUMER_WARPS 8
#define SM90A_GEMM_THREADS        (32 * (SM90A_GEMM_PRODUCER_WARPS + SM90A_GEMM_CONSUMER_WARPS))
#define SM90A_GEMM_ALL_THREADS(v) SM90A_GEMM_THREADS /* of every variant */
#define SM90A_GEMM_PRODUCER_REGS  24
#define SM90A_GEMM_CONSUMER_REGS \
    ((3 * SM_REGISTERS_8(SM90A_GEMM_THREADS) - SM90A_GEMM_PRODUCER_REGS) / 2)

/* Variants with ODD: the producer's warps shift rows, so they need registers of their own. */
#define SM90A_GEMM_SHIFT_REGS 88
#define SM90A_GEMM_SUM_REGS   ((3 * SM_REGISTERS_8(SM90A_GEMM_THREADS) - SM90A_GEMM_SHIFT_REGS) / 2)

/* Output boxes: each consumer warp stores its own 16 rows, 128 bytes wide; up to D_BUFFERS at
 * once, or in turn. */
#define SM90A_GEMM_D_ROWS  16
#define SM90A_GEMM_D_BYTES (SM90A_GEMM_D_ROWS * GEMM_D_ROW_BYTES)

/* Where a tile lies in D: first row and column, problem; and whether a tile follows. */
#define SM90A_GEMM_PLACE_BYTES 16

#define SM90A_GEMM_TMEM_COLUMNS 0

#define SM90A_GEMM_STATIC_BYTES 1024 /* bound on barriers */

/* Grid: min(tiles, SMs * CTAS_PER_SM) CTAs, each walking tiles ctaid, ctaid + grid, ...; clusters
 * likewise, with the tiles of their CTAs together for a tile. */
#define SM90A_GEMM_CTAS_PER_SM 1

/* ---- a variant: SM90A_GEMM_<NAME>(variant); PLAN(NAME) in the kernel ---- */

/* X(prefix, target, variant, kind): every variant; kind PARTS: parts of K; SHARES; EXCHANGED: that, and
 * the operands exchanged; SPREAD: SHARES is 2; else WHOLE. Of equal
 * cost the runtime takes the first: `plain`, which needs no clusters, comes behind those that share
 * loads. */
#define SM90A_GEMM_VARIANTS(X)           \
    X(SM90A, sm_90a, pair, WHOLE)        \
    X(SM90A, sm_90a, wide, WHOLE)        \
    X(SM90A, sm_90a, small, WHOLE)       \
    X(SM90A, sm_90a, narrow, WHOLE)      \
    X(SM90A, sm_90a, flat, PARTS)        \
    X(SM90A, sm_90a, split, PARTS)       \
    X(SM90A, sm_90a, loose, LOOSE)       \
    X(SM90A, sm_90a, odd64, ODD)         \
    X(SM90A, sm_90a, odd128, ODD)        \
    X(SM90A, sm_90a, odd256, ODD)        \
    X(SM90A, sm_90a, 64x256, SHARES)     \
    X(SM90A, sm_90a, 128x96, SHARES)     \
    X(SM90A, sm_90a, 128x128, SHARES)    \
    X(SM90A, sm_90a, 128x144, SHARES)    \
    X(SM90A, sm_90a, 128x160, SHARES)    \
    X(SM90A, sm_90a, 128x192, SHARES)    \
    X(SM90A, sm_90a, 128x224, SHARES)    \
    X(SM90A, sm_90a, 128x256, SHARES)    \
    X(SM90A, sm_90a, 80x128, EXCHANGED)  \
    X(SM90A, sm_90a, 96x128, EXCHANGED)  \
    X(SM90A, sm_90a, 160x128, EXCHANGED) \
    X(SM90A, sm_90a, anyx128, FITTED)    \
    X(SM90A, sm_90a, 128xany, FITTED)    \
    X(SM90A, sm_90a, anyx64, FITTED)     \
    X(SM90A, sm_90a, anyx256, TALL)      \
    X(SM90A, sm_90a, glu128, GLU)        \
    X(SM90A, sm_90a, glu64, GLU)         \
    X(SM90A, sm_90a, plain, WHOLE)       \
    X(SM90A, sm_90a, 64x64, SPREAD)      \
    X(SM90A, sm_90a, 64x96, SPREAD)      \
    X(SM90A, sm_90a, 128x64, SPREAD)     \
    X(SM90A, sm_90a, 128x80, SPREAD)     \
    X(SM90A, sm_90a, 128x128r, SPREAD)

/* LOOSE, in conditions of the preprocessor: operands and results of any alignment. */
#define SM90A_GEMM_LOOSE(v)    SM90A_GEMM_LOOSE_##v
#define SM90A_GEMM_LOOSE_loose 1

/* EXCHANGED, likewise: columns of B are the rows of the MMA, rows of A its columns. Results of 16 bits. */
#define SM90A_GEMM_EXCHANGED(v)      SM90A_GEMM_EXCHANGED_##v
#define SM90A_GEMM_EXCHANGED_80x128  1
#define SM90A_GEMM_EXCHANGED_96x128  1
#define SM90A_GEMM_EXCHANGED_160x128 1
#define SM90A_GEMM_EXCHANGED_anyx128 1
#define SM90A_GEMM_EXCHANGED_anyx64  1
#define SM90A_GEMM_EXCHANGED_anyx256 1

/* TILE_M, TILE_N: a CTA's tile. GROUP_M: rows of it that a consumer warpgroup computes, 64 or 128.
 * PAIR_M, PAIR_N: tiles of a cluster that shares loads. SHARES: `mode` says whether a cluster shares loads
 * and how: none, two tiles one below the other, or two side by side; PAIR_M and PAIR_N are 1. 2: likewise for a
 * rectangle of up to 8 tiles, each part of whose operands is loaded once for all that need it. PARTS: the
 * most parts of K. D_BUFFERS: boxes of output that a warp stages. STAGES: k-blocks in the rings.
 * RASTER_ROWS: rows of tiles (a cluster's) that are walked together, see inc/raster.inc: one wave of
 * clusters on 132 SMs covers a part of D about 2048 rows high and as wide, which reads least from L2.
 * LANDS: units that a warp of the producer has on their way (ODD); 0: TMA loads straight into the
 * rings. KINDS: GEMM_KINDS_...; without GEMM_KINDS_TYPES, inputs of 16 or, as fp8, of 8 bits. */
/* clang-format off */
/*                        TILE_M N  GROUP_M  PAIR_M N  SHARES  PARTS D_BUFFERS STAGES RASTER_ROWS LANDS KINDS */
#define SM90A_GEMM_plain   128, 256,     64,     1, 1,      0,     1,       2,      4,      16,        0,        0
#define SM90A_GEMM_pair    128, 256,     64,     2, 1,      0,     1,       2,      4,       8,        0,        0
#define SM90A_GEMM_wide    256, 192,    128,     1, 2,      0,     1,       3,      3,       8,        0,        0
#define SM90A_GEMM_small   128, 128,     64,     1, 2,      0,     1,       2,      6,      16,        0,        0
#define SM90A_GEMM_narrow  128,  64,     64,     1, 2,      0,     1,       2,      8,      16,        0,        0
#define SM90A_GEMM_split   128,  64,     64,     1, 1,      0,     8,       0,      7,      16,        0,        0
#define SM90A_GEMM_flat     64, 128,     64,     1, 1,      0,     8,       0,      7,      16,        0,        0
#define SM90A_GEMM_loose   128,  64,     64,     1, 1,      0,     8,       0,      7,      16,        0,        0
#define SM90A_GEMM_odd64   128,  64,     64,     1, 1,      1,     7,       1,      4,      16,        3,        0
#define SM90A_GEMM_odd128  128, 128,     64,     1, 1,      1,     7,       1,      3,      16,        3,        0
#define SM90A_GEMM_odd256  128, 256,     64,     1, 1,      1,     4,       1,      2,      16,        3,        0
#define SM90A_GEMM_64x256   64, 256,     64,     1, 1,      1,     8,       2,      4,      16,        0,        0
#define SM90A_GEMM_128x96  128,  96,     64,     1, 1,      1,     8,       2,      6,      16,        0,        0
#define SM90A_GEMM_128x128 128, 128,     64,     1, 1,      1,     8,       2,      6,      16,        0,        1
#define SM90A_GEMM_128x144 128, 144,     64,     1, 1,      1,     8,       2,      5,      16,        0,        0
#define SM90A_GEMM_128x160 128, 160,     64,     1, 1,      1,     8,       2,      5,      16,        0,        0
#define SM90A_GEMM_128x192 128, 192,     64,     1, 1,      1,     8,       2,      4,      16,        0,        1
#define SM90A_GEMM_128x224 128, 224,     64,     1, 1,      1,     8,       2,      4,      16,        0,        0
#define SM90A_GEMM_128x256 128, 256,     64,     1, 1,      1,     8,       2,      4,      16,        0,        1
#define SM90A_GEMM_80x128   80, 128,     64,     1, 1,      1,     8,       1,      8,      24,        0,        1
#define SM90A_GEMM_96x128   96, 128,     64,     1, 1,      1,     8,       1,      7,      20,        0,        0
#define SM90A_GEMM_160x128 160, 128,     64,     1, 1,      1,     8,       1,      5,      12,        0,        0
#define SM90A_GEMM_anyx128 256, 128,     64,     1, 1,      2,     8,       1,      4,      16,        0,        4
#define SM90A_GEMM_128xany 128, 256,     64,     1, 1,      2,     8,       1,      4,      16,        0,        4
#define SM90A_GEMM_anyx64  256,  64,     64,     1, 1,      2,     8,       1,      5,      16,        0,        4
#define SM90A_GEMM_anyx256 160, 256,    128,     1, 1,      2,     1,       1,      4,      16,        0,        4
#define SM90A_GEMM_glu128  128, 256,     64,     1, 1,      1,     8,       2,      4,      16,        0,        2
#define SM90A_GEMM_glu64   128, 128,     64,     1, 1,      1,     8,       2,      6,      16,        0,        2
#define SM90A_GEMM_64x64    64,  64,     64,     1, 1,      2,     1,       1,     12,      32,        0,        0
#define SM90A_GEMM_64x96    64,  96,     64,     1, 1,      2,     1,       2,      9,      32,        0,        0
#define SM90A_GEMM_128x64  128,  64,     64,     1, 1,      2,     1,       2,      8,      16,        0,        0
#define SM90A_GEMM_128x80  128,  80,     64,     1, 1,      2,     1,       2,      7,      16,        0,        0
#define SM90A_GEMM_128x128r 128, 128,    64,     1, 1,      2,     1,       2,      6,      16,        0,        0

#define SM90A_GEMM_TILE_M(v)      SM90A_GEMM_FIELD(TILE_M, SM90A_GEMM_##v)
#define SM90A_GEMM_TILE_N(v)      SM90A_GEMM_FIELD(TILE_N, SM90A_GEMM_##v)
#define SM90A_GEMM_GROUP_M(v)     SM90A_GEMM_FIELD(GROUP_M, SM90A_GEMM_##v)
#define SM90A_GEMM_PAIR_M(v)      SM90A_GEMM_FIELD(PAIR_M, SM90A_GEMM_##v)
#define SM90A_GEMM_PAIR_N(v)      SM90A_GEMM_FIELD(PAIR_N, SM90A_GEMM_##v)
#define SM90A_GEMM_SHARES(v)      SM90A_GEMM_FIELD(SHARES, SM90A_GEMM_##v)
#define SM90A_GEMM_PARTS(v)       SM90A_GEMM_FIELD(PARTS, SM90A_GEMM_##v)
#define SM90A_GEMM_D_BUFFERS(v)   SM90A_GEMM_FIELD(D_BUFFERS, SM90A_GEMM_##v)
#define SM90A_GEMM_STAGES(v)      SM90A_GEMM_FIELD(STAGES, SM90A_GEMM_##v)
#define SM90A_GEMM_RASTER_ROWS(v) SM90A_GEMM_FIELD(RASTER_ROWS, SM90A_GEMM_##v)
#define SM90A_GEMM_LANDS(v)       SM90A_GEMM_FIELD(LANDS, SM90A_GEMM_##v)
#define SM90A_GEMM_KINDS(v)       SM90A_GEMM_FIELD(KINDS, SM90A_GEMM_##v)

#define SM90A_GEMM_FIELD(name, ...) SM90A_GEMM_FIELD_##name(__VA_ARGS__)
#define SM90A_GEMM_FIELD_TILE_M(m, n, g, pm, pn, sh, parts, d, s, r, l, ki)        m
#define SM90A_GEMM_FIELD_TILE_N(m, n, g, pm, pn, sh, parts, d, s, r, l, ki)        n
#define SM90A_GEMM_FIELD_GROUP_M(m, n, g, pm, pn, sh, parts, d, s, r, l, ki)       g
#define SM90A_GEMM_FIELD_PAIR_M(m, n, g, pm, pn, sh, parts, d, s, r, l, ki)        pm
#define SM90A_GEMM_FIELD_PAIR_N(m, n, g, pm, pn, sh, parts, d, s, r, l, ki)        pn
#define SM90A_GEMM_FIELD_SHARES(m, n, g, pm, pn, sh, parts, d, s, r, l, ki)        sh
#define SM90A_GEMM_FIELD_PARTS(m, n, g, pm, pn, sh, parts, d, s, r, l, ki)         parts
#define SM90A_GEMM_FIELD_D_BUFFERS(m, n, g, pm, pn, sh, parts, d, s, r, l, ki)     d
#define SM90A_GEMM_FIELD_STAGES(m, n, g, pm, pn, sh, parts, d, s, r, l, ki)        s
#define SM90A_GEMM_FIELD_RASTER_ROWS(m, n, g, pm, pn, sh, parts, d, s, r, l, ki)   r
#define SM90A_GEMM_FIELD_LANDS(m, n, g, pm, pn, sh, parts, d, s, r, l, ki)         l
#define SM90A_GEMM_FIELD_KINDS(m, n, g, pm, pn, sh, parts, d, s, r, l, ki)         ki
/* clang-format on */

/* Columns of a consumer warpgroup's share in the MMA: the two share the tile's rows or its columns. */
#define SM90A_GEMM_GROUP_N(v) \
    (SM90A_GEMM_TILE_M(v) * SM90A_GEMM_TILE_N(v) / 2 / SM90A_GEMM_GROUP_M(v))

/* Sums of 128 rows leave no room for those that are promoted; small and narrow are left to MN-major operands, which
 * have no 8 bits. A kernel that shares loads as `mode` says has no code for them: boxes of 64 rows do not divide its tiles. */
#define SM90A_GEMM_CAN(v)                                                                  \
    (SM90A_GEMM_ODD(v) ? GEMM_CAN_FINISH | GEMM_CAN_MN                                     \
     : SM90A_GEMM_KINDS(v) & GEMM_KINDS_GLU                                                \
         ? GEMM_CAN_FINISH | GEMM_CAN_GLU                                                  \
         : GEMM_CAN_FINISH | (SM90A_GEMM_SHARES(v) ? 0 : GEMM_CAN_MN) |                    \
               (SM90A_GEMM_PAIR_N(v) == 1 && !SM90A_GEMM_FITTED(v) ? GEMM_CAN_FP8 : 0) |   \
               (SM90A_GEMM_KINDS(v) & GEMM_KINDS_TYPES ? GEMM_CAN_KINDS | GEMM_CAN_SCALES : 0))

/* FITTED: the plan decides the rows of an anyx128 tile, the columns of a 128xany tile: `columns`, a multiple of
 * FIT_UNIT, of 2 FIT_UNIT where two CTAs load half of them each. The rings have as many stages as fit where
 * those of the largest tile would lie: `stages`, FIT_STAGES at most. A's ring begins first, B's behind it.
 * Parts of K need two ranges, which different parts finish: if one part finished all, no other would wait for
 * it, and part_ready could be two phases ahead of a warp that waits. */
#define SM90A_GEMM_FITTED(v)        ((SM90A_GEMM_KINDS(v) & GEMM_KINDS_FIT) != 0)
#define SM90A_GEMM_FIT_UNIT         8
#define SM90A_GEMM_FIT_LEAST(parts) ((parts) > 1 ? 40 : 24) /* of a consumer; but for anyx64 it has all */
#define SM90A_GEMM_FIT_LEAST_TALL   64                      /* of anyx256 */
#define SM90A_GEMM_FIT_STAGES       12
#define SM90A_GEMM_MOST_STAGES(v) \
    (SM90A_GEMM_FITTED(v) ? SM90A_GEMM_FIT_STAGES : SM90A_GEMM_STAGES(v))

/* A k-block of A and of B: one stage, and what one phase of full_bar waits for. */
#define SM90A_GEMM_A_BYTES(v)     (SM90A_GEMM_TILE_M(v) * GEMM_ROW_BYTES)
#define SM90A_GEMM_B_BYTES(v)     (SM90A_GEMM_TILE_N(v) * GEMM_ROW_BYTES)
#define SM90A_GEMM_STAGE_BYTES(v) (SM90A_GEMM_A_BYTES(v) + SM90A_GEMM_B_BYTES(v))

/* ODD: TMA loads rows from the 16 bytes on in which they begin, and the producer's warps shift them
 * into the rings (gemm_odd.inc). Rows come in units of 64, of A and then of B, whose boxes are 16
 * bytes wider than a k-block, eight rows each. The warps take units in turn, each into slots of its
 * own. */
#define SM90A_GEMM_ODD(v)         (SM90A_GEMM_LANDS(v) > 0)
#define SM90A_GEMM_UNIT_ROWS      64
#define SM90A_GEMM_UNIT_BYTES     (SM90A_GEMM_UNIT_ROWS * GEMM_ROW_BYTES)
#define SM90A_GEMM_UNITS_A(v)     (SM90A_GEMM_TILE_M(v) / SM90A_GEMM_UNIT_ROWS)
#define SM90A_GEMM_UNITS(v)       (SM90A_GEMM_UNITS_A(v) + SM90A_GEMM_TILE_N(v) / SM90A_GEMM_UNIT_ROWS)
#define SM90A_GEMM_LAND_BYTES     (SM90A_GEMM_UNIT_ROWS * GEMM_ODD_ROW_BYTES)
#define SM90A_GEMM_LAND_BOX_BYTES (SM90A_GEMM_LAND_BYTES / GEMM_ODD_CLASSES)
#define SM90A_GEMM_ALL_LANDS(v)   (SM90A_GEMM_PRODUCER_WARPS * SM90A_GEMM_LANDS(v))

/* Arrivals at empty_bar: of every consumer warp that reads the stage, in each CTA of the pair; with SHARES
 * as in a pair always, from one CTA where there is no other. SPREAD: at least, of one CTA alone. */
#define SM90A_GEMM_EMPTY_ARRIVALS(v)                                           \
    (SM90A_GEMM_CONSUMER_WARPS * SM90A_GEMM_PAIR_M(v) * SM90A_GEMM_PAIR_N(v) * \
     (1 + (SM90A_GEMM_SHARES(v) == 1)))

/* What a consumer warp gets from other parts: in slots (inc/parts.inc), or, with SHARES, in its part of
 * the rings (sm_90a/gemm_parts.inc). */
#define SM90A_GEMM_AREA_BYTES(v) \
    (SM90A_GEMM_STAGES(v) * SM90A_GEMM_STAGE_BYTES(v) / SM90A_GEMM_CONSUMER_WARPS)
#define SM90A_GEMM_PARTIAL_BYTES(v) \
    (SM90A_GEMM_PARTS(v) > 1 && !SM90A_GEMM_SHARES(v) ? GEMM_PART_SLOTS * GEMM_PART_SLOT_BYTES : 0)

/* Dynamic shared memory, from its 1024-aligned start: A's ring, B's, the staged boxes of output, the
 * units that come by TMA (ODD) or the partial sums, a warp's behind another's, and the places. */
#define SM90A_GEMM_RING_A     0
#define SM90A_GEMM_RING_B(v)  (SM90A_GEMM_RING_A + SM90A_GEMM_STAGES(v) * SM90A_GEMM_A_BYTES(v))
#define SM90A_GEMM_STAGE_D(v) (SM90A_GEMM_RING_B(v) + SM90A_GEMM_STAGES(v) * SM90A_GEMM_B_BYTES(v))
#define SM90A_GEMM_LAND(v)   \
    (SM90A_GEMM_STAGE_D(v) + \
     SM90A_GEMM_CONSUMER_WARPS * SM90A_GEMM_D_BUFFERS(v) * SM90A_GEMM_D_BYTES)
#define SM90A_GEMM_PARTIAL(v) (SM90A_GEMM_LAND(v) + SM90A_GEMM_ALL_LANDS(v) * SM90A_GEMM_LAND_BYTES)
#define SM90A_GEMM_PLACE(v) \
    (SM90A_GEMM_PARTIAL(v) + SM90A_GEMM_CONSUMER_WARPS * SM90A_GEMM_PARTIAL_BYTES(v))
#define SM90A_GEMM_DYNAMIC_SHARED(v) \
    (SM90A_GEMM_PLACE(v) + SM90A_GEMM_MOST_STAGES(v) * SM90A_GEMM_PLACE_BYTES)

/* ---- the worksheet, which `hewn worksheet` compares with a run ---- */

/* X(name, first warp, warps) */
#define SM90A_GEMM_ROLES(X, v)                \
    X(producer, 0, SM90A_GEMM_PRODUCER_WARPS) \
    X(consumer_0, 4, 4)                       \
    X(consumer_1, 8, 4)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM90A_GEMM_SHARED(X, v, kind)                                            \
    X(ring_a, SM90A_GEMM_RING_A, SM90A_GEMM_A_BYTES(v), SM90A_GEMM_STAGES(v))    \
    X(ring_b, SM90A_GEMM_RING_B(v), SM90A_GEMM_B_BYTES(v), SM90A_GEMM_STAGES(v)) \
    X(place, SM90A_GEMM_PLACE(v), SM90A_GEMM_PLACE_BYTES, SM90A_GEMM_STAGES(v))  \
    SM90A_GEMM_SHARED_##kind(X, v)
#define SM90A_GEMM_SHARED_WHOLE(X, v)                     \
    X(stage_d, SM90A_GEMM_STAGE_D(v), SM90A_GEMM_D_BYTES, \
      SM90A_GEMM_CONSUMER_WARPS *SM90A_GEMM_D_BUFFERS(v))
#define SM90A_GEMM_SHARED_SHARES(X, v)    SM90A_GEMM_SHARED_WHOLE(X, v)
#define SM90A_GEMM_SHARED_GLU(X, v)       SM90A_GEMM_SHARED_SHARES(X, v)
#define SM90A_GEMM_SHARED_EXCHANGED(X, v) SM90A_GEMM_SHARED_WHOLE(X, v)
#define SM90A_GEMM_SHARED_SPREAD(X, v)    SM90A_GEMM_SHARED_WHOLE(X, v)
#define SM90A_GEMM_SHARED_FITTED(X, v)    SM90A_GEMM_SHARED_WHOLE(X, v)
#define SM90A_GEMM_SHARED_TALL(X, v)      SM90A_GEMM_SHARED_WHOLE(X, v)
#define SM90A_GEMM_SHARED_ODD(X, v) \
    SM90A_GEMM_SHARED_WHOLE(X, v)   \
    X(land, SM90A_GEMM_LAND(v), SM90A_GEMM_LAND_BYTES, SM90A_GEMM_ALL_LANDS(v))
#define SM90A_GEMM_SHARED_LOOSE(X, v) SM90A_GEMM_SHARED_PARTS(X, v)
#define SM90A_GEMM_SHARED_PARTS(X, v) \
    X(partial, SM90A_GEMM_PARTIAL(v), SM90A_GEMM_PARTIAL_BYTES(v), SM90A_GEMM_CONSUMER_WARPS)

/* X(name, first column, columns): this target has no tensor memory. */
#define SM90A_GEMM_TMEM(X)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits): roles. X(storage, writers,
 * readers): a role's threads, its .tma, its .mma (wgmma). Roles of any CTA of the cluster. */
#define SM90A_GEMM_HANDOFFS(X, v, kind)                                                     \
    SM90A_GEMM_FULL_##kind(X, v)                                                            \
        X(empty_bar, SM90A_GEMM_EMPTY_ARRIVALS(v), 0, 0, consumer_0 + consumer_1, producer) \
            SM90A_GEMM_HANDOFFS_##kind(X)
#define SM90A_GEMM_FULL_WHOLE(X, v)                                                \
    X(full_bar, 1, SM90A_GEMM_STAGE_BYTES(v), SM90A_GEMM_STAGE_BYTES(v), producer, \
      consumer_0 + consumer_1)
#define SM90A_GEMM_FULL_PARTS(X, v)     SM90A_GEMM_FULL_WHOLE(X, v)
#define SM90A_GEMM_FULL_SHARES(X, v)    SM90A_GEMM_FULL_WHOLE(X, v)
#define SM90A_GEMM_FULL_GLU(X, v)       SM90A_GEMM_FULL_SHARES(X, v)
#define SM90A_GEMM_FULL_EXCHANGED(X, v) SM90A_GEMM_FULL_WHOLE(X, v)
#define SM90A_GEMM_FULL_SPREAD(X, v)    SM90A_GEMM_FULL_WHOLE(X, v)
#define SM90A_GEMM_FULL_FITTED(X, v)    SM90A_GEMM_FULL_WHOLE(X, v)
#define SM90A_GEMM_FULL_TALL(X, v)      SM90A_GEMM_FULL_WHOLE(X, v)
/* thread 0 and every warp; what comes by TMA */
#define SM90A_GEMM_FULL_LOOSE(X, v)                                                    \
    X(full_bar, 1 + SM90A_GEMM_PRODUCER_WARPS, 0, SM90A_GEMM_STAGE_BYTES(v), producer, \
      consumer_0 + consumer_1)
#define SM90A_GEMM_FULL_ODD(X, v)                                             \
    X(full_bar, SM90A_GEMM_UNITS(v), 0, 0, producer, consumer_0 + consumer_1) \
    X(land_full, 1, SM90A_GEMM_LAND_BYTES, SM90A_GEMM_LAND_BYTES, producer, producer)
#define SM90A_GEMM_HANDOFFS_WHOLE(X)
#define SM90A_GEMM_HANDOFFS_SPREAD(X)
#define SM90A_GEMM_HANDOFFS_TALL(X)
/* part_full: bytes of a warp's range of 32 columns, of which there are none to 12; part_ready: arrivals of
 * one other part */
#define SM90A_GEMM_HANDOFFS_SHARES(X)                                             \
    X(part_full, 1, 2048, 2048, consumer_0 + consumer_1, consumer_0 + consumer_1) \
    X(part_ready, SM90A_GEMM_CONSUMER_WARPS, 0, 0, consumer_0 + consumer_1,       \
      consumer_0 + consumer_1)                                                    \
    X(part_done, 2 * SM90A_GEMM_CONSUMER_WARPS, 0, 0, consumer_0 + consumer_1, producer)
#define SM90A_GEMM_HANDOFFS_GLU(X)       SM90A_GEMM_HANDOFFS_SHARES(X)
#define SM90A_GEMM_HANDOFFS_EXCHANGED(X) SM90A_GEMM_HANDOFFS_SHARES(X)
#define SM90A_GEMM_HANDOFFS_FITTED(X)    SM90A_GEMM_HANDOFFS_SHARES(X)
#define SM90A_GEMM_HANDOFFS_ODD(X)       SM90A_GEMM_HANDOFFS_SHARES(X)
#define SM90A_GEMM_HANDOFFS_LOOSE(X)     SM90A_GEMM_HANDOFFS_PARTS(X)
/* part_full: bytes of a slot, of which there are 4 to 12; part_empty: arrivals of one other part */
#define SM90A_GEMM_HANDOFFS_PARTS(X)                                                     \
    X(part_full, 1, GEMM_PART_SLOT_BYTES, GEMM_PART_SLOT_BYTES, consumer_0 + consumer_1, \
      consumer_0 + consumer_1)                                                           \
    X(part_empty, 1, 0, 0, consumer_0 + consumer_1, consumer_0 + consumer_1)

#define SM90A_GEMM_FLOWS(X, kind)                                               \
    SM90A_GEMM_RING_FLOWS_##kind(X) X(place, producer, consumer_0 + consumer_1) \
        SM90A_GEMM_FLOWS_##kind(X)
#define SM90A_GEMM_RING_FLOWS_WHOLE(X)                       \
    X(ring_a, producer.tma, consumer_0.mma + consumer_1.mma) \
    X(ring_b, producer.tma, consumer_0.mma + consumer_1.mma)
#define SM90A_GEMM_RING_FLOWS_PARTS(X)     SM90A_GEMM_RING_FLOWS_WHOLE(X)
#define SM90A_GEMM_RING_FLOWS_SHARES(X)    SM90A_GEMM_RING_FLOWS_WHOLE(X)
#define SM90A_GEMM_RING_FLOWS_GLU(X)       SM90A_GEMM_RING_FLOWS_SHARES(X)
#define SM90A_GEMM_RING_FLOWS_EXCHANGED(X) SM90A_GEMM_RING_FLOWS_WHOLE(X)
#define SM90A_GEMM_RING_FLOWS_SPREAD(X)    SM90A_GEMM_RING_FLOWS_WHOLE(X)
#define SM90A_GEMM_RING_FLOWS_FITTED(X)    SM90A_GEMM_RING_FLOWS_WHOLE(X)
#define SM90A_GEMM_RING_FLOWS_TALL(X)      SM90A_GEMM_RING_FLOWS_WHOLE(X)
#define SM90A_GEMM_RING_FLOWS_LOOSE(X)                                  \
    X(ring_a, producer + producer.tma, consumer_0.mma + consumer_1.mma) \
    X(ring_b, producer + producer.tma, consumer_0.mma + consumer_1.mma)
#define SM90A_GEMM_RING_FLOWS_ODD(X)                     \
    X(ring_a, producer, consumer_0.mma + consumer_1.mma) \
    X(ring_b, producer, consumer_0.mma + consumer_1.mma) \
    X(land, producer.tma, producer)
#define SM90A_GEMM_FLOWS_ODD(X)   X(stage_d, consumer_0 + consumer_1, consumer_0 + consumer_1)
#define SM90A_GEMM_FLOWS_LOOSE(X) SM90A_GEMM_FLOWS_PARTS(X)
#define SM90A_GEMM_FLOWS_WHOLE(X) \
    X(stage_d, consumer_0 + consumer_1, consumer_0.tma + consumer_1.tma + consumer_0 + consumer_1)
#define SM90A_GEMM_FLOWS_SHARES(X)    SM90A_GEMM_FLOWS_WHOLE(X)
#define SM90A_GEMM_FLOWS_GLU(X)       SM90A_GEMM_FLOWS_SHARES(X)
#define SM90A_GEMM_FLOWS_EXCHANGED(X) X(stage_d, consumer_0 + consumer_1, consumer_0 + consumer_1)
#define SM90A_GEMM_FLOWS_PARTS(X)     X(partial, consumer_0 + consumer_1, consumer_0 + consumer_1)
#define SM90A_GEMM_FLOWS_SPREAD(X)    SM90A_GEMM_FLOWS_WHOLE(X)
#define SM90A_GEMM_FLOWS_FITTED(X)    SM90A_GEMM_FLOWS_WHOLE(X)
#define SM90A_GEMM_FLOWS_TALL(X)      SM90A_GEMM_FLOWS_WHOLE(X)

#endif
