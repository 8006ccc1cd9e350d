/*
 * The plans of the sm_100f kernels of block-scaled products: tiles, rings, shared and tensor memory, threads.
 * #defines only, included by scaled.ptx, by the runtime and by tools/mod. Bytes unless a name says otherwise.
 * v: the variant, i: the kind of inputs.
 */
#ifndef HEWN_SM100F_SCALED_PLAN_H
#define HEWN_SM100F_SCALED_PLAN_H

#include "../inc/scaled.plan.h"

/* ---- all variants: SM100F_SCALED_<NAME>; ALL(NAME) in the kernel ---- */

#define SM100F_SCALED_EPILOGUE_WARPS 4
#define SM100F_SCALED_PRODUCER_WARP  SM100F_SCALED_EPILOGUE_WARPS
#define SM100F_SCALED_MMA_WARP       (SM100F_SCALED_PRODUCER_WARP + 1)
#define SM100F_SCALED_THREADS        (32 * (SM100F_SCALED_MMA_WARP + 1))

/* Output boxes: each epilogue warp stores its own 32 rows, 128 bytes wide. */
#define SM100F_SCALED_D_ROWS    32
#define SM100F_SCALED_D_BYTES   (SM100F_SCALED_D_ROWS * GEMM_D_ROW_BYTES)
#define SM100F_SCALED_D_BUFFERS 2

#define SM100F_SCALED_ACCUMULATORS 2
#define SM100F_SCALED_TMEM_COLUMNS 512
#define SM100F_SCALED_STATIC_BYTES 1024 /* bound on barriers */
#define SM100F_SCALED_CTAS_PER_SM  1

/* K-blocks whose scales are in tensor memory: one is multiplied, one is copied. */
#define SM100F_SCALED_SLOTS 2

/* ---- a variant ---- */

/* X(prefix, target, variant) and X(prefix, target, variant, kind of inputs) */
#define SM100F_SCALED_VARIANTS(X) \
    X(SM100F, sm_100f, 128x128)   \
    X(SM100F, sm_100f, 128x192)   \
    X(SM100F, sm_100f, 256x128)   \
    X(SM100F, sm_100f, 256x192)   \
    X(SM100F, sm_100f, 256x256)
#define SM100F_SCALED_PLANS(X)       \
    X(SM100F, sm_100f, 128x128, mx8) \
    X(SM100F, sm_100f, 128x128, mx4) \
    X(SM100F, sm_100f, 128x128, nv4) \
    X(SM100F, sm_100f, 128x192, mx8) \
    X(SM100F, sm_100f, 128x192, mx4) \
    X(SM100F, sm_100f, 128x192, nv4) \
    X(SM100F, sm_100f, 128x128, mw8) \
    X(SM100F, sm_100f, 128x192, mw8) \
    X(SM100F, sm_100f, 256x128, mx8) \
    X(SM100F, sm_100f, 256x128, mx4) \
    X(SM100F, sm_100f, 256x128, nv4) \
    X(SM100F, sm_100f, 256x192, mx8) \
    X(SM100F, sm_100f, 256x192, mx4) \
    X(SM100F, sm_100f, 256x192, nv4) \
    X(SM100F, sm_100f, 256x128, mw8) \
    X(SM100F, sm_100f, 256x192, mw8) \
    X(SM100F, sm_100f, 128x128, h16) \
    X(SM100F, sm_100f, 128x192, h16) \
    X(SM100F, sm_100f, 256x192, h16) \
    X(SM100F, sm_100f, 256x256, h16)

/* PAIR_M 2: two CTAs multiply one tile together; each has half of its rows and loads half of B's. RASTER_ROWS: rows of
 * tiles that are walked together. B_ATOMS: atoms along n that a tile touches. SIDES: pairs side by side that a cluster
 * can have; they share loads of A. */
/* clang-format off */
/*                             TILE_M  N  PAIR_M  STAGES  RASTER_ROWS  B_ATOMS  SIDES */
#define SM100F_SCALED_128x128  128, 128,       1,      5,          16,       1,     1
#define SM100F_SCALED_128x192  128, 192,       1,      4,          16,       2,     1
#define SM100F_SCALED_256x128  256, 128,       2,      6,           8,       1,     1
#define SM100F_SCALED_256x192  256, 192,       2,      5,           8,       2,     2
#define SM100F_SCALED_256x256  256, 256,       2,      6,           8,       2,     1

#define SM100F_SCALED_TILE_M(v)      SM100F_SCALED_FIELD(TILE_M, SM100F_SCALED_##v)
#define SM100F_SCALED_TILE_N(v)      SM100F_SCALED_FIELD(TILE_N, SM100F_SCALED_##v)
#define SM100F_SCALED_PAIR_M(v)      SM100F_SCALED_FIELD(PAIR_M, SM100F_SCALED_##v)
#define SM100F_SCALED_STAGES(v)      SM100F_SCALED_FIELD(STAGES, SM100F_SCALED_##v)
#define SM100F_SCALED_RASTER_ROWS(v) SM100F_SCALED_FIELD(RASTER_ROWS, SM100F_SCALED_##v)
#define SM100F_SCALED_B_ATOMS(v)     SM100F_SCALED_FIELD(B_ATOMS, SM100F_SCALED_##v)
#define SM100F_SCALED_FIELD(name, ...) SM100F_SCALED_FIELD_##name(__VA_ARGS__)
#define SM100F_SCALED_FIELD_TILE_M(m, n, p, s, r, b, d)      m
#define SM100F_SCALED_FIELD_TILE_N(m, n, p, s, r, b, d)      n
#define SM100F_SCALED_FIELD_PAIR_M(m, n, p, s, r, b, d)      p
#define SM100F_SCALED_FIELD_STAGES(m, n, p, s, r, b, d)      s
#define SM100F_SCALED_FIELD_RASTER_ROWS(m, n, p, s, r, b, d) r
#define SM100F_SCALED_FIELD_B_ATOMS(m, n, p, s, r, b, d)     b
#define SM100F_SCALED_FIELD_SIDES(m, n, p, s, r, b, d)       d

/* A kind: elements of k in a stage, those of a scale (at least), atoms of scales along k. WORDS 1: scales come as words
 * of rows, of which mma makes atoms. ATOMS 0: there are no scales. */
/*                            K  VECTOR  ATOMS  WORDS */
#define SM100F_SCALED_mx8    128,    32,     1,     0
#define SM100F_SCALED_mx4    256,    32,     2,     0
#define SM100F_SCALED_nv4    256,    16,     4,     0
#define SM100F_SCALED_mw8    128,    32,     1,     1
#define SM100F_SCALED_h16     64,     0,     0,     0
#define SM100F_SCALED_TILE_K(i)      SM100F_SCALED_KIND(K, SM100F_SCALED_##i)
#define SM100F_SCALED_VECTOR(i)      SM100F_SCALED_KIND(VECTOR, SM100F_SCALED_##i)
#define SM100F_SCALED_ATOMS(i)       SM100F_SCALED_KIND(ATOMS, SM100F_SCALED_##i)
#define SM100F_SCALED_WORDS(i)       SM100F_SCALED_KIND(WORDS, SM100F_SCALED_##i)
#define SM100F_SCALED_KIND(name, ...) SM100F_SCALED_KIND_##name(__VA_ARGS__)
#define SM100F_SCALED_KIND_K(k, v, a, w)      k
#define SM100F_SCALED_KIND_VECTOR(k, v, a, w) v
#define SM100F_SCALED_KIND_ATOMS(k, v, a, w)  a
#define SM100F_SCALED_KIND_WORDS(k, v, a, w)  w
/* clang-format on */

#define SM100F_SCALED_SIDES(v, i) SM100F_SCALED_FIELD(SIDES, SM100F_SCALED_##v)

/* Tiles of 192 columns of pairs: the last column of tiles may have 64 or 128 columns of each pair; boxes of B of half of 64. */
#define SM100F_SCALED_NARROW_N       64
#define SM100F_SCALED_NARROW_LOAD    (SM100F_SCALED_NARROW_N / 2)
#define SM100F_SCALED_NARROWS(v, i)  (SM100F_SCALED_SIDES(v, i) == 2 && SM100F_SCALED_ATOMS(i) > 0)

/* Atoms of B's scales along n that a CTA loads: of a pair each loads half, or the first all, for both; words each loads
 * for itself. */
#define SM100F_SCALED_LOAD_ATOMS(v, i)                                   \
    (SM100F_SCALED_WORDS(i) ? SM100F_SCALED_B_ATOMS(v)                   \
                            : (SM100F_SCALED_B_ATOMS(v) +                \
                               SM100F_SCALED_PAIR_M(v) - 1) / SM100F_SCALED_PAIR_M(v))

/* A CTA's stage: k-blocks of its rows of A and its share of B's, 128 bytes of each, and their scales, of B those of the
 * whole tile. */
#define SM100F_SCALED_CTA_M(v)       (SM100F_SCALED_TILE_M(v) / SM100F_SCALED_PAIR_M(v))
#define SM100F_SCALED_LOAD_N(v)      (SM100F_SCALED_TILE_N(v) / SM100F_SCALED_PAIR_M(v))
#define SM100F_SCALED_A_BYTES(v)     (SM100F_SCALED_CTA_M(v) * GEMM_ROW_BYTES)
#define SM100F_SCALED_B_BYTES(v)     (SM100F_SCALED_LOAD_N(v) * GEMM_ROW_BYTES)
#define SM100F_SCALED_SA_BYTES(i)    (SM100F_SCALED_ATOMS(i) * SCALED_ATOM_BYTES)
#define SM100F_SCALED_SB_BYTES(v, i) (SM100F_SCALED_B_ATOMS(v) * SM100F_SCALED_SA_BYTES(i))
#define SM100F_SCALED_STAGE_BYTES(v, i)                                                \
    (SM100F_SCALED_A_BYTES(v) + SM100F_SCALED_B_BYTES(v) + SM100F_SCALED_SA_BYTES(i) + \
     SM100F_SCALED_SB_BYTES(v, i))

/* What a phase of full_bar waits for: the stages of both CTAs of a pair. What TMA counts of e2m1 that it widens
 * to bytes is the half: a stage of mx8 may have A or B of that, of mw8 both. */
#define SM100F_SCALED_FULL_BYTES(v, i)                           \
    (SM100F_SCALED_PAIR_M(v) * (SM100F_SCALED_STAGE_BYTES(v, i) - \
                                SM100F_SCALED_PAIR_WORDS(v, i) * SM100F_SCALED_WORD_BYTES(v, i)))
/* Words of a pair: each CTA makes atoms of its own, which a barrier of its own tells it of. */
#define SM100F_SCALED_PAIR_WORDS(v, i) (SM100F_SCALED_WORDS(i) && SM100F_SCALED_PAIR_M(v) == 2)
#define SM100F_SCALED_WORD_BYTES(v, i) (SM100F_SCALED_SA_BYTES(i) + SM100F_SCALED_SB_BYTES(v, i))
#define SM100F_SCALED_WIDER_BYTES(v)                                                \
    (SM100F_SCALED_A_BYTES(v) > SM100F_SCALED_B_BYTES(v) ? SM100F_SCALED_A_BYTES(v) \
                                                         : SM100F_SCALED_B_BYTES(v))
#define SM100F_SCALED_LEAST_BYTES(v, i)                                                        \
    (SM100F_SCALED_FULL_BYTES(v, i) -                                                          \
     (SM100F_SCALED_NARROWS(v, i)                                                              \
          ? (SM100F_SCALED_TILE_N(v) - SM100F_SCALED_NARROW_N) * GEMM_ROW_BYTES                \
          : 0) -                                                                               \
     (SM100F_SCALED_WORDS(i)                                                                    \
          ? SM100F_SCALED_PAIR_M(v) * (SM100F_SCALED_A_BYTES(v) + SM100F_SCALED_B_BYTES(v)) / 2  \
      : SM100F_SCALED_ATOMS(i) == 1 ? SM100F_SCALED_PAIR_M(v) * SM100F_SCALED_WIDER_BYTES(v) / 2 \
                                    : 0))

/* Dynamic shared memory, from its 1024-aligned start: rings of A, B, staged boxes of output, rings of scales. */
#define SM100F_SCALED_RING_A 0
#define SM100F_SCALED_RING_B(v) \
    (SM100F_SCALED_RING_A + SM100F_SCALED_STAGES(v) * SM100F_SCALED_A_BYTES(v))
#define SM100F_SCALED_STAGE_D(v) \
    (SM100F_SCALED_RING_B(v) + SM100F_SCALED_STAGES(v) * SM100F_SCALED_B_BYTES(v))
#define SM100F_SCALED_RING_SA(v) \
    (SM100F_SCALED_STAGE_D(v) +  \
     SM100F_SCALED_EPILOGUE_WARPS * SM100F_SCALED_D_BUFFERS * SM100F_SCALED_D_BYTES)
#define SM100F_SCALED_RING_SB(v, i) \
    (SM100F_SCALED_RING_SA(v) + SM100F_SCALED_STAGES(v) * SM100F_SCALED_SA_BYTES(i))
#define SM100F_SCALED_DYNAMIC_SHARED(v, i) \
    (SM100F_SCALED_RING_SB(v, i) + SM100F_SCALED_STAGES(v) * SM100F_SCALED_SB_BYTES(v, i))

/* Tensor memory: the accumulators, then slots of scales. An atom takes 4 columns; of A's scales ATOMS, of B's for
 * each of them B_ATOMS. */
#define SM100F_SCALED_ATOM_COLUMNS  4
#define SM100F_SCALED_TMEM_SA(v)    (SM100F_SCALED_ACCUMULATORS * SM100F_SCALED_TILE_N(v))
#define SM100F_SCALED_SA_COLUMNS(i) (SM100F_SCALED_ATOMS(i) * SM100F_SCALED_ATOM_COLUMNS)
#define SM100F_SCALED_TMEM_SB(v, i) \
    (SM100F_SCALED_TMEM_SA(v) + SM100F_SCALED_SLOTS * SM100F_SCALED_SA_COLUMNS(i))
#define SM100F_SCALED_SB_COLUMNS(v, i) (SM100F_SCALED_B_ATOMS(v) * SM100F_SCALED_SA_COLUMNS(i))
#define SM100F_SCALED_USED_COLUMNS(v, i) \
    (SM100F_SCALED_TMEM_SB(v, i) + SM100F_SCALED_SLOTS * SM100F_SCALED_SB_COLUMNS(v, i))

/* ---- the worksheet, which `hewn worksheet` compares with a run ---- */

/* X(name, first warp, warps) */
#define SM100F_SCALED_ROLES(X)                   \
    X(epilogue, 0, SM100F_SCALED_EPILOGUE_WARPS) \
    X(producer, SM100F_SCALED_PRODUCER_WARP, 1)  \
    X(mma, SM100F_SCALED_MMA_WARP, 1)

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM100F_SCALED_SHARED(X, v, i)                                                        \
    X(ring_a, SM100F_SCALED_RING_A, SM100F_SCALED_A_BYTES(v), SM100F_SCALED_STAGES(v))       \
    X(ring_b, SM100F_SCALED_RING_B(v), SM100F_SCALED_B_BYTES(v), SM100F_SCALED_STAGES(v))    \
    X(stage_d, SM100F_SCALED_STAGE_D(v), SM100F_SCALED_D_BYTES,                              \
      SM100F_SCALED_EPILOGUE_WARPS *SM100F_SCALED_D_BUFFERS)                                 \
    SM100F_SCALED_RINGS_##i(X, v, i)
#define SM100F_SCALED_RINGS_mx8(X, v, i)                                                     \
    X(ring_sa, SM100F_SCALED_RING_SA(v), SM100F_SCALED_SA_BYTES(i), SM100F_SCALED_STAGES(v)) \
    X(ring_sb, SM100F_SCALED_RING_SB(v, i), SM100F_SCALED_SB_BYTES(v, i), SM100F_SCALED_STAGES(v))
#define SM100F_SCALED_RINGS_mx4(X, v, i) SM100F_SCALED_RINGS_mx8(X, v, i)
#define SM100F_SCALED_RINGS_nv4(X, v, i) SM100F_SCALED_RINGS_mx8(X, v, i)
#define SM100F_SCALED_RINGS_mw8(X, v, i) SM100F_SCALED_RINGS_mx8(X, v, i)
#define SM100F_SCALED_RINGS_h16(X, v, i)

/* X(name, first column, columns) */
#define SM100F_SCALED_TMEM(X, v, i)                            \
    X(acc_0, 0, SM100F_SCALED_TILE_N(v))                       \
    X(acc_1, SM100F_SCALED_TILE_N(v), SM100F_SCALED_TILE_N(v)) \
    SM100F_SCALED_SLOTS_##i(X, v, i)
#define SM100F_SCALED_SLOTS_mx8(X, v, i)                                                       \
    X(scales_a, SM100F_SCALED_TMEM_SA(v), (SM100F_SCALED_SLOTS * SM100F_SCALED_SA_COLUMNS(i))) \
    X(scales_b, SM100F_SCALED_TMEM_SB(v, i), (SM100F_SCALED_SLOTS * SM100F_SCALED_SB_COLUMNS(v, i)))
#define SM100F_SCALED_SLOTS_mx4(X, v, i) SM100F_SCALED_SLOTS_mx8(X, v, i)
#define SM100F_SCALED_SLOTS_nv4(X, v, i) SM100F_SCALED_SLOTS_mx8(X, v, i)
#define SM100F_SCALED_SLOTS_mw8(X, v, i) SM100F_SCALED_SLOTS_mx8(X, v, i)
#define SM100F_SCALED_SLOTS_h16(X, v, i)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits). X(storage, writers, readers). mma
 * waits at empty_bar, too, where there are scales: for the products of two k-blocks before, whose scales the next ones
 * overwrite. Roles of any CTA of a cluster. */
#define SM100F_SCALED_HANDOFFS(X, v, i)                                                            \
    SM100F_SCALED_IF(SM100F_SCALED_PAIR_M(v), SM100F_SCALED_WORDS(i))(X, v, i)                     \
    SM100F_SCALED_EMPTY_##i(X, v, i)                                                               \
    X(acc_full, 1, 0, 0, mma, epilogue)                                                            \
    X(acc_empty, SM100F_SCALED_EPILOGUE_WARPS *SM100F_SCALED_PAIR_M(v), 0, 0, epilogue, mma)
#define SM100F_SCALED_EMPTY_mx8(X, v, i) \
    X(empty_bar, SM100F_SCALED_SIDES(v, i), 0, 0, mma, producer + mma)
#define SM100F_SCALED_EMPTY_mx4(X, v, i) SM100F_SCALED_EMPTY_mx8(X, v, i)
#define SM100F_SCALED_EMPTY_nv4(X, v, i) SM100F_SCALED_EMPTY_mx8(X, v, i)
#define SM100F_SCALED_EMPTY_mw8(X, v, i) SM100F_SCALED_EMPTY_mx8(X, v, i)
#define SM100F_SCALED_EMPTY_h16(X, v, i) \
    X(empty_bar, SM100F_SCALED_SIDES(v, i), 0, 0, mma, producer)
#define SM100F_SCALED_IF(pair, words)    SM100F_SCALED_IF_OF(pair, words)
#define SM100F_SCALED_IF_OF(pair, words) SM100F_SCALED_FULL_##pair##_##words
#define SM100F_SCALED_FULL_1_0(X, v, i) \
    X(full_bar, 1, SM100F_SCALED_LEAST_BYTES(v, i), SM100F_SCALED_FULL_BYTES(v, i), producer, mma)
#define SM100F_SCALED_FULL_1_1(X, v, i) SM100F_SCALED_FULL_1_0(X, v, i)
#define SM100F_SCALED_FULL_2_0(X, v, i) SM100F_SCALED_FULL_1_0(X, v, i)
#define SM100F_SCALED_FULL_2_1(X, v, i)                                                        \
    X(full_bar, 2, SM100F_SCALED_LEAST_BYTES(v, i), SM100F_SCALED_FULL_BYTES(v, i),            \
      producer + mma, mma)                                                                     \
    X(words_bar, 1, SM100F_SCALED_WORD_BYTES(v, i), SM100F_SCALED_WORD_BYTES(v, i), producer, mma)
#define SM100F_SCALED_FLOWS(X, i)                 \
    X(ring_a, producer.tma, mma.mma)              \
    X(ring_b, producer.tma, mma.mma)              \
    SM100F_SCALED_FLOWS_##i(X)                    \
    X(tmem_base, mma, epilogue + producer + mma)  \
    X(acc_0, mma.mma, epilogue.ld)                \
    X(acc_1, mma.mma, epilogue.ld)
/* A quantised D does not pass through it. */
#define SM100F_SCALED_STAGED(X) X(stage_d, epilogue, epilogue.tma + epilogue)
#define SM100F_SCALED_FLOWS_mx8(X)     \
    X(ring_sa, producer.tma, mma.copy) \
    X(ring_sb, producer.tma, mma.copy) \
    X(scales_a, mma.copy, mma.mma)     \
    X(scales_b, mma.copy, mma.mma)
#define SM100F_SCALED_FLOWS_mx4(X) SM100F_SCALED_FLOWS_mx8(X)
#define SM100F_SCALED_FLOWS_nv4(X) SM100F_SCALED_FLOWS_mx8(X)
#define SM100F_SCALED_FLOWS_mw8(X)                 \
    X(ring_sa, producer.tma + mma, mma.copy + mma) \
    X(ring_sb, producer.tma + mma, mma.copy + mma) \
    X(scales_a, mma.copy, mma.mma)                 \
    X(scales_b, mma.copy, mma.mma)
#define SM100F_SCALED_FLOWS_h16(X)

#endif
