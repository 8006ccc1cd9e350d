/*
 * The plans of the sm_100f kernels of grouped products without block scales: tiles, rings, shared and tensor
 * memory, threads. #defines only, included by grouped.ptx, by the runtime and by tools/mod. Bytes unless a name says
 * otherwise. v: the variant; those with an h: inputs of 16 bits, without scales; with a g: likewise, SwiGLU, half as
 * many columns of D; without a letter: e4m3, f32 scales of 128 elements of k (inc/grouped.plan.h).
 */
#ifndef HEWN_SM100F_GROUPED_PLAN_H
#define HEWN_SM100F_GROUPED_PLAN_H

#include "../inc/grouped.plan.h"

/* ---- all variants: SM100F_GROUPED_<NAME>; ALL(NAME) in the kernel ---- */

/* Output boxes: each epilogue warp stores its own 32 rows, 128 bytes wide. */
#define SM100F_GROUPED_D_ROWS  32
#define SM100F_GROUPED_D_BYTES (SM100F_GROUPED_D_ROWS * GEMM_D_ROW_BYTES)

#define SM100F_GROUPED_TMEM_COLUMNS 512
#define SM100F_GROUPED_STATIC_BYTES 1024 /* bound on barriers */
#define SM100F_GROUPED_CTAS_PER_SM  1

/* Commits of a phase of empty_bar: one of each CTA of a pair, else two. Of four CTAs three, of all but the one across. */
#define SM100F_GROUPED_EMPTY_ARRIVALS 2

/* Rows by number: the rows of A that one copy brings, one below another. */
#define SM100F_GROUPED_GATHER_ROWS 4

/* ---- a variant: SM100F_GROUPED_<NAME>(variant); PLAN(NAME) in the kernel ---- */

/* X(prefix, target, variant) */
#define SM100F_GROUPED_VARIANTS(X) \
    X(SM100F, sm_100f, 128x128h)   \
    X(SM100F, sm_100f, 128x256h)   \
    X(SM100F, sm_100f, 128x128g)   \
    X(SM100F, sm_100f, 128x256g)   \
    X(SM100F, sm_100f, 128x128)    \
    X(SM100F, sm_100f, 128x256)

/* SCALES: GROUPED_..._SCALES. D_BUFFERS: staged boxes of output of a warp. IDLE: warps without a role, which fill
 * the producer's warpgroup where registers are moved to the epilogue's. */
/* clang-format off */
/*                               TILE_M  N  STAGES  RASTER_ROWS  SCALES  ACCUMULATORS  D_BUFFERS  IDLE */
#define SM100F_GROUPED_128x128h  128, 128,       6,          16,      2,            2,         2,    0
#define SM100F_GROUPED_128x256h  128, 256,       4,          16,      2,            2,         2,    0
#define SM100F_GROUPED_128x128g  128, 128,       6,          16,      3,            2,         2,    0
#define SM100F_GROUPED_128x256g  128, 256,       4,          16,      3,            2,         2,    0
#define SM100F_GROUPED_128x128   128, 128,       5,          16,      0,            4,         2,    0
#define SM100F_GROUPED_128x256   128, 256,       4,          16,      0,            2,         1,    2

#define SM100F_GROUPED_TILE_M(v)       SM100F_GROUPED_FIELD(TILE_M, SM100F_GROUPED_##v)
#define SM100F_GROUPED_TILE_N(v)       SM100F_GROUPED_FIELD(TILE_N, SM100F_GROUPED_##v)
#define SM100F_GROUPED_STAGES(v)       SM100F_GROUPED_FIELD(STAGES, SM100F_GROUPED_##v)
#define SM100F_GROUPED_RASTER_ROWS(v)  SM100F_GROUPED_FIELD(RASTER_ROWS, SM100F_GROUPED_##v)
#define SM100F_GROUPED_SCALES(v)       SM100F_GROUPED_FIELD(SCALES, SM100F_GROUPED_##v)
#define SM100F_GROUPED_ACCUMULATORS(v) SM100F_GROUPED_FIELD(ACCUMULATORS, SM100F_GROUPED_##v)
#define SM100F_GROUPED_D_BUFFERS(v)    SM100F_GROUPED_FIELD(D_BUFFERS, SM100F_GROUPED_##v)
#define SM100F_GROUPED_IDLE(v)         SM100F_GROUPED_FIELD(IDLE, SM100F_GROUPED_##v)
#define SM100F_GROUPED_GLU(v)          (SM100F_GROUPED_SCALES(v) == GROUPED_UNSCALED_GLU)
/* Columns of D in a tile. */
#define SM100F_GROUPED_TILE_D(v)       (SM100F_GROUPED_TILE_N(v) >> SM100F_GROUPED_GLU(v))
#define SM100F_GROUPED_FIELD(name, ...) SM100F_GROUPED_FIELD_##name(__VA_ARGS__)
#define SM100F_GROUPED_FIELD_TILE_M(m, n, s, r, c, a, d, i)       m
#define SM100F_GROUPED_FIELD_TILE_N(m, n, s, r, c, a, d, i)       n
#define SM100F_GROUPED_FIELD_STAGES(m, n, s, r, c, a, d, i)       s
#define SM100F_GROUPED_FIELD_RASTER_ROWS(m, n, s, r, c, a, d, i)  r
#define SM100F_GROUPED_FIELD_SCALES(m, n, s, r, c, a, d, i)       c
#define SM100F_GROUPED_FIELD_ACCUMULATORS(m, n, s, r, c, a, d, i) a
#define SM100F_GROUPED_FIELD_D_BUFFERS(m, n, s, r, c, a, d, i)    d
#define SM100F_GROUPED_FIELD_IDLE(m, n, s, r, c, a, d, i)         i
/* clang-format on */

/* With scales each k-block has an accumulator of its own, and twice as many warps add them up. */
#define SM100F_GROUPED_SCALED(v)         (SM100F_GROUPED_SCALES(v) == GROUPED_BLOCK_SCALES)
#define SM100F_GROUPED_EPILOGUE_WARPS(v) (4 << SM100F_GROUPED_SCALED(v))
#define SM100F_GROUPED_PRODUCER_WARP(v)  SM100F_GROUPED_EPILOGUE_WARPS(v)
#define SM100F_GROUPED_MMA_WARP(v)       (SM100F_GROUPED_PRODUCER_WARP(v) + 1)
#define SM100F_GROUPED_THREADS(v)        (32 * (SM100F_GROUPED_MMA_WARP(v) + 1 + SM100F_GROUPED_IDLE(v)))

/* Where warps are idle: registers a thread, of the epilogue's warpgroups and of the other, behind setmaxnreg. Of D's
 * elements of 2 and 4 bytes: those with which ptxas spills nothing. */
#define SM100F_GROUPED_EPILOGUE_REGS_2 216
#define SM100F_GROUPED_OTHER_REGS_2    72
#define SM100F_GROUPED_EPILOGUE_REGS_4 200
#define SM100F_GROUPED_OTHER_REGS_4    104

/* A stage: k-blocks of A and B, 128 bytes of each row. */
#define SM100F_GROUPED_A_BYTES(v)     (SM100F_GROUPED_TILE_M(v) * GEMM_ROW_BYTES)
#define SM100F_GROUPED_B_BYTES(v)     (SM100F_GROUPED_TILE_N(v) * GEMM_ROW_BYTES)
#define SM100F_GROUPED_STAGE_BYTES(v) (SM100F_GROUPED_A_BYTES(v) + SM100F_GROUPED_B_BYTES(v))

/* Tiles of 256 columns of clusters: where the last wave leaves half of the clusters idle, each of its tiles is two of half
 * as many columns. */
#define SM100F_GROUPED_HALVES(v) (SM100F_GROUPED_TILE_N(v) == 256)
#define SM100F_GROUPED_LEAST_BYTES(v) \
    (SM100F_GROUPED_STAGE_BYTES(v) - SM100F_GROUPED_HALVES(v) * SM100F_GROUPED_B_BYTES(v) / 2)

/* Dynamic shared memory, from its 1024-aligned start: rings of A, B, staged boxes of output. */
#define SM100F_GROUPED_RING_A 0
#define SM100F_GROUPED_RING_B(v) \
    (SM100F_GROUPED_RING_A + SM100F_GROUPED_STAGES(v) * SM100F_GROUPED_A_BYTES(v))
#define SM100F_GROUPED_STAGE_D(v) \
    (SM100F_GROUPED_RING_B(v) + SM100F_GROUPED_STAGES(v) * SM100F_GROUPED_B_BYTES(v))
#define SM100F_GROUPED_DYNAMIC_SHARED(v) \
    (SM100F_GROUPED_STAGE_D(v) +         \
     SM100F_GROUPED_EPILOGUE_WARPS(v) * SM100F_GROUPED_D_BUFFERS(v) * SM100F_GROUPED_D_BYTES)

/* ---- the worksheet, which `hewn worksheet` compares with a run ---- */

/* X(name, first warp, warps) */
#define SM100F_GROUPED_ROLES(X, v)                   \
    X(epilogue, 0, SM100F_GROUPED_EPILOGUE_WARPS(v)) \
    X(producer, SM100F_GROUPED_PRODUCER_WARP(v), 1)  \
    X(mma, SM100F_GROUPED_MMA_WARP(v), 1)            \
    SM100F_GROUPED_IF(SM100F_GROUPED_IDLE(v), ROLES)(X, v)
#define SM100F_GROUPED_ROLES_IF_0(X, v)
#define SM100F_GROUPED_ROLES_IF_2(X, v) X(idle, (SM100F_GROUPED_MMA_WARP(v) + 1), 2)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM100F_GROUPED_SHARED(X, v)                                                          \
    X(ring_a, SM100F_GROUPED_RING_A, SM100F_GROUPED_A_BYTES(v), SM100F_GROUPED_STAGES(v))    \
    X(ring_b, SM100F_GROUPED_RING_B(v), SM100F_GROUPED_B_BYTES(v), SM100F_GROUPED_STAGES(v)) \
    X(stage_d, SM100F_GROUPED_STAGE_D(v), SM100F_GROUPED_D_BYTES,                            \
      SM100F_GROUPED_EPILOGUE_WARPS(v) * SM100F_GROUPED_D_BUFFERS(v))

/* X(name, first column, columns); SM100F_GROUPED_<list>_IF_<number> */
#define SM100F_GROUPED_IF(flag, list)    SM100F_GROUPED_IF_OF(flag, list)
#define SM100F_GROUPED_IF_OF(flag, list) SM100F_GROUPED_##list##_IF_##flag
#define SM100F_GROUPED_TMEM(X, v) \
    SM100F_GROUPED_ACC(X, v, 0)   \
    SM100F_GROUPED_ACC(X, v, 1)   \
    SM100F_GROUPED_IF(SM100F_GROUPED_ACCUMULATORS(v), TMEM)(X, v)
#define SM100F_GROUPED_ACC(X, v, a) \
    X(acc_##a, (a * SM100F_GROUPED_TILE_N(v)), SM100F_GROUPED_TILE_N(v))
#define SM100F_GROUPED_TMEM_IF_2(X, v)
#define SM100F_GROUPED_TMEM_IF_4(X, v) \
    SM100F_GROUPED_ACC(X, v, 2)        \
    SM100F_GROUPED_ACC(X, v, 3)

/* X(barrier, arrivals, more of four CTAs, least and most bytes of a phase, who signals, who waits). X(storage, writers,
 * readers). */
#define SM100F_GROUPED_HANDOFFS(X, v)                                                              \
    X(full_bar, 1, 0, SM100F_GROUPED_LEAST_BYTES(v), SM100F_GROUPED_STAGE_BYTES(v), producer, mma) \
    X(empty_bar, SM100F_GROUPED_EMPTY_ARRIVALS, 1, 0, 0, mma, producer)                            \
    X(acc_full, 1, 0, 0, 0, mma, epilogue)                                                         \
    X(acc_empty, SM100F_GROUPED_EPILOGUE_WARPS(v), 0, 0, 0, epilogue, mma)
/* clang-format off */
#define SM100F_GROUPED_FLOWS(X, v)                \
    X(ring_a, producer.tma, mma.mma)              \
    X(ring_b, producer.tma, mma.mma)              \
    X(stage_d, epilogue, epilogue.tma + epilogue) \
    SM100F_GROUPED_IF(SM100F_GROUPED_IDLE(v), BASE)(X) \
    X(acc_0, mma.mma, epilogue.ld)                \
    X(acc_1, mma.mma, epilogue.ld)                \
    SM100F_GROUPED_IF(SM100F_GROUPED_ACCUMULATORS(v), FLOWS)(X)
/* clang-format on */
#define SM100F_GROUPED_BASE_IF_0(X) X(tmem_base, mma, epilogue + producer + mma)
#define SM100F_GROUPED_BASE_IF_2(X) X(tmem_base, mma, epilogue + producer + mma + idle)
#define SM100F_GROUPED_FLOWS_IF_2(X)
#define SM100F_GROUPED_FLOWS_IF_4(X) \
    X(acc_2, mma.mma, epilogue.ld)   \
    X(acc_3, mma.mma, epilogue.ld)

#endif
