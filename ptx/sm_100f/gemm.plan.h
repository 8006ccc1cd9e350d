/*
 * The plan of the sm_100f GEMM: tile, ring, shared memory, tensor memory, threads. #defines only,
 * included by gemm.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise. The
 * form is that of sm_90a/gemm.plan.h.
 */
#ifndef HEWN_SM100F_GEMM_PLAN_H
#define HEWN_SM100F_GEMM_PLAN_H

#include "../inc/gemm.plan.h"

/* ---- all variants: SM100F_GEMM_<NAME>; ALL(NAME) in the kernel ---- */

/* Warps: four of the epilogue, then the producer's, then that of the MMAs. */
#define SM100F_GEMM_EPILOGUE_WARPS 4
#define SM100F_GEMM_PRODUCER_WARP  SM100F_GEMM_EPILOGUE_WARPS

/* Output boxes: each epilogue warp stores its own 32 rows, the lanes of tensor memory that it can
 * reach, 128 bytes wide. */
#define SM100F_GEMM_D_ROWS  32
#define SM100F_GEMM_D_BYTES (SM100F_GEMM_D_ROWS * GEMM_D_ROW_BYTES)

/* fp32 accumulators of 128 lanes in tensor memory: one in the making, one on its way out. */
#define SM100F_GEMM_ACCUMULATORS 2
#define SM100F_GEMM_ACC_COLUMNS  256
#define SM100F_GEMM_TMEM_COLUMNS (SM100F_GEMM_ACCUMULATORS * SM100F_GEMM_ACC_COLUMNS)

#define SM100F_GEMM_STATIC_BYTES 1024 /* bound on barriers */

/* Grid: min(tiles, SMs * CTAS_PER_SM) CTAs, each walking tiles ctaid, ctaid + grid, ... */
#define SM100F_GEMM_CTAS_PER_SM 1

/* ---- a variant: SM100F_GEMM_<NAME>(variant); PLAN(NAME) in the kernel ---- */

/* X(prefix, target, variant, kind), as on sm_90a. GATED: GEMM_MODE_GLU is for it, because half of a
 * tile's columns are whole boxes of output. SIDES: GEMM_MODE_PAIR_N is, SIDES is 2. Of equal cost the runtime
 * takes the first. */
#define SM100F_GEMM_VARIANTS(X)        \
    X(SM100F, sm_100f, pair, GATED)    \
    X(SM100F, sm_100f, pair192, SIDES) \
    X(SM100F, sm_100f, pair128, GATED) \
    X(SM100F, sm_100f, plain, GATED)   \
    X(SM100F, sm_100f, 128x128, GATED) \
    X(SM100F, sm_100f, 128x64, WHOLE)  \
    X(SM100F, sm_100f, loose, LOOSE)

/* TILE_M x TILE_N: the part of D that a CTA stores. PAIR_M 2: two CTAs, one below the other, whose
 * tensor cores multiply one tile together (cta_group::2); each loads its own rows of A and half of
 * B's. PRODUCERS: warps that load; of several, each loads rows of any alignment through registers
 * (inc/loose.inc). STAGES: k-blocks in the rings. RASTER_ROWS: rows of tiles (a pair's) that are
 * walked together, see inc/raster.inc: one wave on 148 SMs covers about 2048 x 2368 of D, the squarest
 * footprint in L2. SIDES: pairs side by side that a cluster can have; each CTA then loads half of its rows of A,
 * for itself and for its like in the other pair. */
/* clang-format off */
/*                         TILE_M   N  PAIR_M PRODUCERS STAGES RASTER_ROWS SIDES */
#define SM100F_GEMM_pair      128, 256,     2,        1,     6,          8,    1
#define SM100F_GEMM_pair192   128, 192,     2,        1,     6,          8,    2
#define SM100F_GEMM_pair128   128, 128,     2,        1,     8,          8,    1
#define SM100F_GEMM_plain     128, 256,     1,        1,     4,         16,    1
#define SM100F_GEMM_128x128   128, 128,     1,        1,     6,         16,    1
#define SM100F_GEMM_128x64    128,  64,     1,        1,     8,         16,    1
#define SM100F_GEMM_loose     128, 128,     1,        8,     6,         16,    1

#define SM100F_GEMM_TILE_M(v)      SM100F_GEMM_FIELD(TILE_M, SM100F_GEMM_##v)
#define SM100F_GEMM_TILE_N(v)      SM100F_GEMM_FIELD(TILE_N, SM100F_GEMM_##v)
#define SM100F_GEMM_PAIR_M(v)      SM100F_GEMM_FIELD(PAIR_M, SM100F_GEMM_##v)
#define SM100F_GEMM_PRODUCERS(v)   SM100F_GEMM_FIELD(PRODUCERS, SM100F_GEMM_##v)
#define SM100F_GEMM_STAGES(v)      SM100F_GEMM_FIELD(STAGES, SM100F_GEMM_##v)
#define SM100F_GEMM_RASTER_ROWS(v) SM100F_GEMM_FIELD(RASTER_ROWS, SM100F_GEMM_##v)
#define SM100F_GEMM_SIDES(v)       SM100F_GEMM_FIELD(SIDES, SM100F_GEMM_##v)

#define SM100F_GEMM_FIELD(name, ...) SM100F_GEMM_FIELD_##name(__VA_ARGS__)
#define SM100F_GEMM_FIELD_TILE_M(m, n, p, l, s, r, d)      m
#define SM100F_GEMM_FIELD_TILE_N(m, n, p, l, s, r, d)      n
#define SM100F_GEMM_FIELD_PAIR_M(m, n, p, l, s, r, d)      p
#define SM100F_GEMM_FIELD_PRODUCERS(m, n, p, l, s, r, d)   l
#define SM100F_GEMM_FIELD_STAGES(m, n, p, l, s, r, d)      s
#define SM100F_GEMM_FIELD_RASTER_ROWS(m, n, p, l, s, r, d) r
#define SM100F_GEMM_FIELD_SIDES(m, n, p, l, s, r, d)       d
/* clang-format on */

#define SM100F_GEMM_LOOSE(v)       (SM100F_GEMM_PRODUCERS(v) > 1)
#define SM100F_GEMM_MMA_WARP(v)    (SM100F_GEMM_PRODUCER_WARP + SM100F_GEMM_PRODUCERS(v))
#define SM100F_GEMM_ALL_THREADS(v) (32 * (SM100F_GEMM_MMA_WARP(v) + 1))

#define SM100F_GEMM_PAIR_N(v)    1
#define SM100F_GEMM_PARTS(v)     1
#define SM100F_GEMM_FITTED(v)    0
#define SM100F_GEMM_D_BUFFERS(v) 2

/* MN-major operands come in boxes of MN_BOX rows. */
#define SM100F_GEMM_CAN(v)                              \
    (GEMM_CAN_FINISH | GEMM_CAN_FP8 | GEMM_CAN_SCALES | \
     (SM100F_GEMM_LOAD_N(v) % GEMM_MN_BOX ? 0 : GEMM_CAN_MN))

/* A CTA's part of a k-block: its rows of A, its share of B's. What one phase of full_bar waits for:
 * the parts of the pair, at the first CTA's barrier. */
#define SM100F_GEMM_LOAD_N(v)  (SM100F_GEMM_TILE_N(v) / SM100F_GEMM_PAIR_M(v))
#define SM100F_GEMM_A_BYTES(v) (SM100F_GEMM_TILE_M(v) * GEMM_ROW_BYTES)
#define SM100F_GEMM_B_BYTES(v) (SM100F_GEMM_LOAD_N(v) * GEMM_ROW_BYTES)
#define SM100F_GEMM_FULL_BYTES(v) \
    (SM100F_GEMM_PAIR_M(v) * (SM100F_GEMM_A_BYTES(v) + SM100F_GEMM_B_BYTES(v)))

/* Dynamic shared memory, from its 1024-aligned start: A's ring, B's, the staged boxes of output. */
#define SM100F_GEMM_RING_A    0
#define SM100F_GEMM_RING_B(v) (SM100F_GEMM_RING_A + SM100F_GEMM_STAGES(v) * SM100F_GEMM_A_BYTES(v))
#define SM100F_GEMM_STAGE_D(v) \
    (SM100F_GEMM_RING_B(v) + SM100F_GEMM_STAGES(v) * SM100F_GEMM_B_BYTES(v))
#define SM100F_GEMM_DYNAMIC_SHARED(v) \
    (SM100F_GEMM_STAGE_D(v) +         \
     SM100F_GEMM_EPILOGUE_WARPS * SM100F_GEMM_D_BUFFERS(v) * SM100F_GEMM_D_BYTES)

/* ---- the worksheet, which `hewn worksheet` compares with a run ---- */

/* X(name, first warp, warps) */
#define SM100F_GEMM_ROLES(X, v)                                      \
    X(epilogue, 0, SM100F_GEMM_EPILOGUE_WARPS)                       \
    X(producer, SM100F_GEMM_PRODUCER_WARP, SM100F_GEMM_PRODUCERS(v)) \
    X(mma, SM100F_GEMM_MMA_WARP(v), 1)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM100F_GEMM_SHARED(X, v, kind)                                              \
    X(ring_a, SM100F_GEMM_RING_A, SM100F_GEMM_A_BYTES(v), SM100F_GEMM_STAGES(v))    \
    X(ring_b, SM100F_GEMM_RING_B(v), SM100F_GEMM_B_BYTES(v), SM100F_GEMM_STAGES(v)) \
    X(stage_d, SM100F_GEMM_STAGE_D(v), SM100F_GEMM_D_BYTES,                         \
      SM100F_GEMM_EPILOGUE_WARPS *SM100F_GEMM_D_BUFFERS(v))

/* X(name, first column, columns) */
#define SM100F_GEMM_TMEM(X)              \
    X(acc_0, 0, SM100F_GEMM_ACC_COLUMNS) \
    X(acc_1, SM100F_GEMM_ACC_COLUMNS, SM100F_GEMM_ACC_COLUMNS)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits): roles. X(storage, writers,
 * readers): a role's threads, its .tma, its .mma, its .ld (tcgen05.ld). Roles of any CTA of a cluster. */
#define SM100F_GEMM_HANDOFFS(X, v, kind)                                                  \
    SM100F_GEMM_FULL_##kind(X, v) X(empty_bar, SM100F_GEMM_SIDES(v), 0, 0, mma, producer) \
        X(acc_full, 1, 0, 0, mma, epilogue)                                               \
            X(acc_empty, SM100F_GEMM_EPILOGUE_WARPS *SM100F_GEMM_PAIR_M(v), 0, 0, epilogue, mma)
#define SM100F_GEMM_FULL_WHOLE(X, v) \
    X(full_bar, 1, SM100F_GEMM_FULL_BYTES(v), SM100F_GEMM_FULL_BYTES(v), producer, mma)
#define SM100F_GEMM_FULL_GATED(X, v) SM100F_GEMM_FULL_WHOLE(X, v)
#define SM100F_GEMM_FULL_SIDES(X, v) SM100F_GEMM_FULL_WHOLE(X, v)
/* every warp, and one for what comes by TMA */
#define SM100F_GEMM_FULL_LOOSE(X, v) \
    X(full_bar, 1 + SM100F_GEMM_PRODUCERS(v), 0, SM100F_GEMM_FULL_BYTES(v), producer, mma)
#define SM100F_GEMM_FLOWS(X, kind)                                           \
    SM100F_GEMM_FLOWS_##kind(X) X(tmem_base, mma, epilogue + producer + mma) \
        X(acc_0, mma.mma, epilogue.ld) X(acc_1, mma.mma, epilogue.ld)
#define SM100F_GEMM_FLOWS_WHOLE(X)   \
    X(ring_a, producer.tma, mma.mma) \
    X(ring_b, producer.tma, mma.mma) \
    X(stage_d, epilogue, epilogue.tma + epilogue)
#define SM100F_GEMM_FLOWS_GATED(X) SM100F_GEMM_FLOWS_WHOLE(X)
#define SM100F_GEMM_FLOWS_SIDES(X) SM100F_GEMM_FLOWS_WHOLE(X)
#define SM100F_GEMM_FLOWS_LOOSE(X)              \
    X(ring_a, producer + producer.tma, mma.mma) \
    X(ring_b, producer + producer.tma, mma.mma) \
    X(stage_d, epilogue, epilogue)

#endif
