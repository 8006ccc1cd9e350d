/*
 * The plan of the sm_100f decode kernels, and of MLA, which is a variant of them: tiles, ring, shared
 * memory, tensor memory, threads. #defines only, included by decode.ptx, by the runtime and by
 * tools/mod. Bytes unless a name says otherwise. A variant is (qk, v, e, n): head dimension of Q and
 * K, of V, bytes of an element of K and V (2; 1: e4m3, beside 16-bit Q) or of a record of MLA, query
 * rows of a tile. Of MLA V is the first 512 columns of K.
 */
#ifndef HEWN_SM100F_DECODE_PLAN_H
#define HEWN_SM100F_DECODE_PLAN_H

#include "../inc/decode.plan.h"
#include "../inc/mla_record.plan.h"

/* X(this prefix, target, qk, v, e, n): every variant of decode; a module is one of an input dtype. */
#define SM100F_DECODE_VARIANTS(X)       \
    X(SM100F, sm_100f, 64, 64, 2, 16)   \
    X(SM100F, sm_100f, 64, 64, 2, 32)   \
    X(SM100F, sm_100f, 64, 64, 2, 64)   \
    X(SM100F, sm_100f, 96, 96, 2, 16)   \
    X(SM100F, sm_100f, 96, 96, 2, 32)   \
    X(SM100F, sm_100f, 96, 96, 2, 64)   \
    X(SM100F, sm_100f, 128, 128, 2, 16) \
    X(SM100F, sm_100f, 128, 128, 2, 32) \
    X(SM100F, sm_100f, 128, 128, 2, 64) \
    X(SM100F, sm_100f, 192, 128, 2, 16) \
    X(SM100F, sm_100f, 192, 128, 2, 32) \
    X(SM100F, sm_100f, 192, 128, 2, 64) \
    X(SM100F, sm_100f, 256, 256, 2, 16) \
    X(SM100F, sm_100f, 256, 256, 2, 32) \
    X(SM100F, sm_100f, 256, 256, 2, 64) \
    X(SM100F, sm_100f, 512, 512, 2, 32) \
    X(SM100F, sm_100f, 64, 64, 1, 16)   \
    X(SM100F, sm_100f, 64, 64, 1, 32)   \
    X(SM100F, sm_100f, 64, 64, 1, 64)   \
    X(SM100F, sm_100f, 96, 96, 1, 16)   \
    X(SM100F, sm_100f, 96, 96, 1, 32)   \
    X(SM100F, sm_100f, 96, 96, 1, 64)   \
    X(SM100F, sm_100f, 128, 128, 1, 16) \
    X(SM100F, sm_100f, 128, 128, 1, 32) \
    X(SM100F, sm_100f, 128, 128, 1, 64) \
    X(SM100F, sm_100f, 192, 128, 1, 16) \
    X(SM100F, sm_100f, 192, 128, 1, 32) \
    X(SM100F, sm_100f, 192, 128, 1, 64) \
    X(SM100F, sm_100f, 256, 256, 1, 16) \
    X(SM100F, sm_100f, 256, 256, 1, 32) \
    X(SM100F, sm_100f, 512, 512, 1, 32)

/* X(..): MLA; its records are those of inc/mla.plan.h. The parameters behind the others. */
#define SM100F_MLA_QK   576
#define SM100F_MLA_V    512
#define SM100F_MLA_ROWS 64
#define SM100F_MLA_VARIANTS(X)            \
    X(SM100F, sm_100f, 576, 512, 2, 64)   \
    X(SM100F, sm_100f, 576, 512, 656, 64) \
    X(SM100F, sm_100f, 512, 512, 584, 64)
#define SM100F_MLA_SCALARS(X)                                       \
    X(u64, lists, "address of the lists, or 0")                     \
    X(u64, list_step, "bytes between lists")                        \
    X(u32, queries, "lists of a sequence, or 1")                    \
    X(u32, length_share, "lists that share a length, or 1")         \
    X(u64, extra_lists, "address of the second lists, or 0")        \
    X(u64, extra_step, "bytes between them")                        \
    X(u64, extra_lengths, "address of their lengths, or 0")         \
    X(u64, extra_k, "address of the second cache")                  \
    X(u64, extra_v, "address of its scales, where these are apart") \
    X(u64, extra_token, "bytes between its rows")                   \
    X(u64, extra_plane, "bytes between its pages")                  \
    X(u32, extra_keys, "entries of a second list at most, or 0")    \
    X(u32, extra_share, "second lists that share a length, or 1")   \
    X(u32, extra_page, "rows of a page of the second cache")        \
    X(u32, extra_pages, "its pages")

/* Keys of a step: a block of DECODE_BLOCK, or a half of one where a whole block of K and V would not
 * leave room for the next. RECORDS: keys are records. V_SHARED: V is columns of K. */
#define SM100F_DECODE_STEP_KEYS(qk)   ((qk) >= 512 ? 64 : 128)
#define SM100F_DECODE_BLOCK_STEPS(qk) (DECODE_BLOCK / SM100F_DECODE_STEP_KEYS(qk))
#define SM100F_DECODE_RECORDS(e)      ((e) > 2)
#define SM100F_DECODE_V_SHARED(qk, e) ((qk) == SM100F_MLA_QK || SM100F_DECODE_RECORDS(e))

/* Columns of a chunk of Q, K and V: one swizzle row of 16-bit elements, of e4m3 one of 64 bytes. A unit of the
 * ring is a step's keys of a chunk, of records of 656 bytes of two; records are widened on their way into it. */
#define SM100F_DECODE_CHUNK     (SWIZZLE_BYTES / 2)
#define SM100F_DECODE_CHUNKS(d) (((d) + SM100F_DECODE_CHUNK - 1) / SM100F_DECODE_CHUNK)
#define SM100F_DECODE_ROW(e)    (SM100F_DECODE_CHUNK * ((e) == 2 ? 2 : 1)) /* of a unit, in memory */
/* Columns behind the last whole chunk, or 0. They have maps of their own, whose boxes are as wide: a box of a chunk
 * would ask for columns that there are not. Rows of their units are as long as the others; the rest stays as it was. */
#define SM100F_DECODE_TAIL(d) ((d) % SM100F_DECODE_CHUNK)
#define SM100F_DECODE_TAIL_MAPS(NEXT) \
    NEXT(tail_k)                      \
    NEXT(tail_v)
#define SM100F_DECODE_TAIL_MAP_COUNT 2
#define SM100F_DECODE_UNIT(qk, e)                                           \
    (SM100F_DECODE_STEP_KEYS(qk) * ((e) == 1            ? SWIZZLE_BYTES / 2 \
                                    : (e) == MLA_RECORD ? 2 * SWIZZLE_BYTES \
                                                        : SWIZZLE_BYTES))
#define SM100F_DECODE_ROW_CHUNK(n)   ((n)*SWIZZLE_BYTES) /* of Q or P */
#define SM100F_DECODE_TILE_Q(qk, n)  (SM100F_DECODE_CHUNKS(qk) * SM100F_DECODE_ROW_CHUNK(n))
#define SM100F_DECODE_Q_TILES(qk, e) (SM100F_DECODE_V_SHARED(qk, e) ? 1 : 2)
/* Beside e4m3 Q and P are sums of terms of e5m2: a chunk is 64 bytes a row of each term. TILE_T: those of Q. */
#define SM100F_DECODE_TERMS         3
#define SM100F_DECODE_TERM(n)       ((n)*SWIZZLE_BYTES / 2)
#define SM100F_DECODE_TERM_CHUNK(n) (SM100F_DECODE_TERMS * SM100F_DECODE_TERM(n))
#define SM100F_DECODE_TILE_T(qk, e, n) \
    ((e) == 1 ? SM100F_DECODE_CHUNKS(qk) * SM100F_DECODE_TERM_CHUNK(n) : 0)
#define SM100F_DECODE_TILE_P(qk, e, n)  \
    (SM100F_DECODE_STEP_KEYS(qk) / 64 * \
     ((e) == 1 ? SM100F_DECODE_TERM_CHUNK(n) : SM100F_DECODE_ROW_CHUNK(n)))
/* Of records of 656 bytes the ring has the columns that are V, and the others have two places behind it. */
#define SM100F_DECODE_STEP_UNITS(qk, v, e)           \
    ((e) == MLA_RECORD ? SM100F_DECODE_CHUNKS(v) / 2 \
                       : SM100F_DECODE_CHUNKS(qk) +  \
                             (SM100F_DECODE_V_SHARED(qk, e) ? 0 : SM100F_DECODE_CHUNKS(v)))
#define SM100F_DECODE_ROTARY(qk, e) \
    ((e) == MLA_RECORD ? SM100F_DECODE_STEP_KEYS(qk) * SWIZZLE_BYTES : 0)
#define SM100F_DECODE_ROTARY_PLACES 2

/* Dynamic shared memory, from its 1024-aligned start: Q of the tiles, P, the ring of as many units as
 * fit, at least those of a step. The two chunks of V that an MMA reads lie side by side: so the ring has
 * an even number of units, or whole steps where these have an odd number. Of records the ring has three
 * quarters of the room, or a step. Behind it are the stages, which hold units as they are in memory. */
#define SM100F_DECODE_T(qk, e, n) (SM100F_DECODE_Q_TILES(qk, e) * SM100F_DECODE_TILE_Q(qk, n))
#define SM100F_DECODE_P(qk, e, n) (SM100F_DECODE_T(qk, e, n) + SM100F_DECODE_TILE_T(qk, e, n))
#define SM100F_DECODE_P_TILES(e)  ((e) == 1 ? 2 : 1)
#define SM100F_DECODE_RING(qk, e, n) \
    (SM100F_DECODE_P(qk, e, n) + SM100F_DECODE_P_TILES(e) * SM100F_DECODE_TILE_P(qk, e, n))
#define SM100F_DECODE_STATIC_BYTES 3072 /* bound on barriers, masks, maxima, factors */
#define SM100F_DECODE_ROOM(qk, e, n) \
    (SM_SHARED_BYTES - SM100F_DECODE_STATIC_BYTES - SM100F_DECODE_RING(qk, e, n))
#define SM100F_DECODE_WHOLE(qk, v, e) \
    (SM100F_DECODE_STEP_UNITS(qk, v, e) % 2 ? SM100F_DECODE_STEP_UNITS(qk, v, e) : 2)
#define SM100F_DECODE_FIT(qk, v, e, room)                                 \
    ((room) / SM100F_DECODE_UNIT(qk, e) / SM100F_DECODE_WHOLE(qk, v, e) * \
     SM100F_DECODE_WHOLE(qk, v, e))
#define SM100F_DECODE_RING_ROOM(qk, e, n)                                                     \
    (SM100F_DECODE_RECORDS(e) ? (SM100F_DECODE_ROOM(qk, e, n) -                               \
                                 SM100F_DECODE_ROTARY_PLACES * SM100F_DECODE_ROTARY(qk, e)) / \
                                    4 * 3                                                     \
                              : SM100F_DECODE_ROOM(qk, e, n))
#define SM100F_DECODE_RING_FIT(qk, v, e, n) \
    SM100F_DECODE_FIT(qk, v, e, SM100F_DECODE_RING_ROOM(qk, e, n))
#define SM100F_DECODE_SLOTS(qk, v, e, n)                                              \
    (!SM100F_DECODE_RECORDS(e) ||                                                     \
             SM100F_DECODE_RING_FIT(qk, v, e, n) > SM100F_DECODE_STEP_UNITS(qk, v, e) \
         ? SM100F_DECODE_RING_FIT(qk, v, e, n)                                        \
         : SM100F_DECODE_STEP_UNITS(qk, v, e))
#define SM100F_DECODE_STAGE(qk) (SM100F_DECODE_STEP_KEYS(qk) * SM100F_DECODE_ROW(1))
#define SM100F_DECODE_ROTARY_AT(qk, v, e, n) \
    (SM100F_DECODE_RING(qk, e, n) + SM100F_DECODE_SLOTS(qk, v, e, n) * SM100F_DECODE_UNIT(qk, e))
#define SM100F_DECODE_STAGES_AT(qk, v, e, n) \
    (SM100F_DECODE_ROTARY_AT(qk, v, e, n) +  \
     SM100F_DECODE_ROTARY_PLACES * SM100F_DECODE_ROTARY(qk, e))
/* 64 KB or more on their way; of records of 584 bytes a step, whose rotary columns take two. */
#define SM100F_DECODE_MOST_STAGES(qk, v, e) \
    ((e) == MLA_RECORD ? 16 : SM100F_DECODE_STEP_UNITS(qk, v, e) + 1)
#define SM100F_DECODE_STAGES_FIT(qk, v, e, n)                                                \
    ((SM_SHARED_BYTES - SM100F_DECODE_STATIC_BYTES - SM100F_DECODE_STAGES_AT(qk, v, e, n)) / \
     SM100F_DECODE_STAGE(qk))
#define SM100F_DECODE_STAGES(qk, v, e, n)                                          \
    (!SM100F_DECODE_RECORDS(e) ? 0                                                 \
     : SM100F_DECODE_STAGES_FIT(qk, v, e, n) < SM100F_DECODE_MOST_STAGES(qk, v, e) \
         ? SM100F_DECODE_STAGES_FIT(qk, v, e, n)                                   \
         : SM100F_DECODE_MOST_STAGES(qk, v, e))
#define SM100F_DECODE_DYNAMIC_SHARED(qk, v, e, n) \
    (SM100F_DECODE_STAGES_AT(qk, v, e, n) +       \
     SM100F_DECODE_STAGES(qk, v, e, n) * SM100F_DECODE_STAGE(qk))

/* At the end of a tile tile_p has a row's place in O and its factor, then the sums of the warps. */
#define SM100F_DECODE_OUT_BYTES  16 /* u64 address or 0, f32 factor, f32 log2-sum-exp of a part */
#define SM100F_DECODE_OUT_FACTOR 8
#define SM100F_DECODE_OUT_LSE    12

/* Threads: a warpgroup of producers, two of softmax, one that holds a warp for each of the products, and
 * of records one for Q. Where keys are widened there are two of producers. */
#define SM100F_DECODE_PRODUCERS(qk, e, n) (SM100F_DECODE_RECORDS(e) ? 8 : 4)
#define SM100F_DECODE_QK_WARP(qk, e, n)   (SM100F_DECODE_PRODUCERS(qk, e, n) + 8)
#define SM100F_DECODE_PV_WARP(qk, e, n)   (SM100F_DECODE_QK_WARP(qk, e, n) + 1)
#define SM100F_DECODE_Q_WARP(qk, e, n)    (SM100F_DECODE_QK_WARP(qk, e, n) + 2)
#define SM100F_DECODE_WARPS(qk, e, n)     (SM100F_DECODE_QK_WARP(qk, e, n) + 4)
#define SM100F_DECODE_THREADS(qk, e, n)   (32 * SM100F_DECODE_WARPS(qk, e, n))
/* Of a full_bar: each producer thread, or one for all; of records of 656 bytes the warps that widen the unit. */
#define SM100F_DECODE_ARRIVALS(qk, e, n) \
    ((e) == MLA_RECORD ? 4 : 32 * SM100F_DECODE_PRODUCERS(qk, e, n))
/* Registers after setmaxnreg: softmax takes what the others give. */
#define SM100F_DECODE_PRODUCER_REGS(qk, e, n) (SM100F_DECODE_RECORDS(e) ? 64 : 88)
#define SM100F_DECODE_ISSUER_REGS(qk, e, n)   (SM100F_DECODE_RECORDS(e) ? 80 : 88)
#define SM100F_DECODE_LAUNCH_REGS(qk, e, n)   SM_REGISTERS_8(SM100F_DECODE_THREADS(qk, e, n))
#define SM100F_DECODE_SOFTMAX_REGS(qk, e, n)                                          \
    ((SM100F_DECODE_WARPS(qk, e, n) / 4 * SM100F_DECODE_LAUNCH_REGS(qk, e, n) -       \
      SM100F_DECODE_PRODUCERS(qk, e, n) / 4 * SM100F_DECODE_PRODUCER_REGS(qk, e, n) - \
      SM100F_DECODE_ISSUER_REGS(qk, e, n)) /                                          \
     2)

/* The softmax warpgroups share a step's keys, or where these are 64 the tile's rows. WARP_ROWS: rows of a
 * warp. SUMS: warps whose sums of a row are added up. */
#define SM100F_DECODE_WARP_ROWS(qk, n) ((n) / SM100F_DECODE_BLOCK_STEPS(qk))
#define SM100F_DECODE_SUMS(qk)         (8 / SM100F_DECODE_BLOCK_STEPS(qk))

/* Tensor memory: S of some steps, then O in slices of 128 columns of V; a column is a row of the tile. */
#define SM100F_DECODE_S_SHIFT(e)   ((e) == 1 ? 2 : 1)
#define SM100F_DECODE_S_BUFFERS(e) (1 << SM100F_DECODE_S_SHIFT(e))
/* Steps that QK runs ahead of PV at most: not so many that a place in the ring held a unit of V meanwhile, for
 * which QK does not wait. */
#define SM100F_DECODE_AHEAD(qk, v, e, n)                                             \
    (SM100F_DECODE_SLOTS(qk, v, e, n) > 3 * SM100F_DECODE_STEP_UNITS(qk, v, e)   ? 4 \
     : SM100F_DECODE_SLOTS(qk, v, e, n) > 2 * SM100F_DECODE_STEP_UNITS(qk, v, e) ? 3 \
                                                                                 : 2)
/* 1: S of a step is free as soon as P of S_BUFFERS steps before is there, and QK waits for that alone. So a place of the
 * ring has K in every pass, or V, the ring holds as many steps, and p_full has a barrier for each buffer of S. It is so
 * where softmax takes about as long as the MMAs of a step. */
#define SM100F_DECODE_S_BY_P(qk, e, n) ((e) == 1 && (qk) == 64 && (n) > 16)
#define SM100F_DECODE_P_SHIFT(qk, e, n) \
    (SM100F_DECODE_S_BY_P(qk, e, n) ? SM100F_DECODE_S_SHIFT(e) : SM100F_DECODE_P_TILES(e) - 1)
#define SM100F_DECODE_SLICES(v)       (((v) + 127) / 128)
#define SM100F_DECODE_O_COLUMN(e, n)  (SM100F_DECODE_S_BUFFERS(e) * (n))
#define SM100F_DECODE_O_COLUMNS(v, n) (SM100F_DECODE_SLICES(v) * (n))
#define SM100F_DECODE_TMEM_USED(v, e, n) \
    (SM100F_DECODE_O_COLUMN(e, n) + SM100F_DECODE_O_COLUMNS(v, n))
#define SM100F_DECODE_TMEM_COLUMNS(v, e, n)          \
    (SM100F_DECODE_TMEM_USED(v, e, n) <= 64    ? 64  \
     : SM100F_DECODE_TMEM_USED(v, e, n) <= 128 ? 128 \
     : SM100F_DECODE_TMEM_USED(v, e, n) <= 256 ? 256 \
                                               : 512)

#define SM100F_DECODE_CTAS_PER_SM 1

/* The worksheet, for `hewn worksheet`: lists as in gemm.plan.h, here of a variant. */

/* X(name, first warp, warps) */
#define SM100F_DECODE_ROLES(X, d, e, n)              \
    X(producer, 0, SM100F_DECODE_PRODUCERS(d, e, n)) \
    X(softmax, SM100F_DECODE_PRODUCERS(d, e, n), 8)  \
    X(qk, SM100F_DECODE_QK_WARP(d, e, n), 1)         \
    X(pv, SM100F_DECODE_PV_WARP(d, e, n), 1)         \
    SM100F_DECODE_ROLES_##e(X, d, e, n)
#define SM100F_DECODE_ROLES_656(X, d, e, n)    \
    X(query, SM100F_DECODE_Q_WARP(d, e, n), 1) \
    X(idle, (SM100F_DECODE_Q_WARP(d, e, n) + 1), 1)
#define SM100F_DECODE_ROLES_584           SM100F_DECODE_ROLES_656
#define SM100F_DECODE_ROLES_2(X, d, e, n) X(idle, SM100F_DECODE_Q_WARP(d, e, n), 2)
#define SM100F_DECODE_ROLES_1             SM100F_DECODE_ROLES_2

/* X(name, offset in dynamic shared memory, element bytes, elements) */
#define SM100F_DECODE_SHARED(X, qk, v, e, n)                                                       \
    X(tile_q, 0, SM100F_DECODE_TILE_Q(qk, n), SM100F_DECODE_Q_TILES(qk, e))                        \
    SM100F_DECODE_SHARED_T_##e(X, qk, e, n)                                                        \
        X(tile_p, SM100F_DECODE_P(qk, e, n), SM100F_DECODE_TILE_P(qk, e, n),                       \
          SM100F_DECODE_P_TILES(e)) X(ring, SM100F_DECODE_RING(qk, e, n),                          \
                                      SM100F_DECODE_UNIT(qk, e), SM100F_DECODE_SLOTS(qk, v, e, n)) \
            SM100F_DECODE_SHARED_##e(X, qk, v, e, n)
#define SM100F_DECODE_SHARED_T_1(X, qk, e, n) \
    X(terms, SM100F_DECODE_T(qk, e, n), SM100F_DECODE_TILE_T(qk, e, n), 1)
#define SM100F_DECODE_SHARED_T_2(X, qk, e, n)
#define SM100F_DECODE_SHARED_T_656(X, qk, e, n)
#define SM100F_DECODE_SHARED_T_584(X, qk, e, n)
#define SM100F_DECODE_SHARED_656(X, qk, v, e, n)                                 \
    X(rotary, SM100F_DECODE_ROTARY_AT(qk, v, e, n), SM100F_DECODE_ROTARY(qk, e), \
      SM100F_DECODE_ROTARY_PLACES)                                               \
    SM100F_DECODE_SHARED_584(X, qk, v, e, n)
#define SM100F_DECODE_SHARED_584(X, qk, v, e, n)                             \
    X(stages, SM100F_DECODE_STAGES_AT(qk, v, e, n), SM100F_DECODE_STAGE(qk), \
      SM100F_DECODE_STAGES(qk, v, e, n))
#define SM100F_DECODE_SHARED_1 SM100F_DECODE_SHARED_2
#define SM100F_DECODE_SHARED_2(X, qk, v, e, n)

/* X(name, first column, columns) */
#define SM100F_DECODE_TMEM(X, v, e, n) \
    X(s_0, 0, n)                       \
    X(s_1, n, n)                       \
    SM100F_DECODE_TMEM_##e(X, n) X(o, SM100F_DECODE_O_COLUMN(e, n), SM100F_DECODE_O_COLUMNS(v, n))
#define SM100F_DECODE_TMEM_1(X, n) X(s_2, 2 * (n), n) X(s_3, 3 * (n), n)
#define SM100F_DECODE_TMEM_2(X, n)
#define SM100F_DECODE_TMEM_656(X, n)
#define SM100F_DECODE_TMEM_584(X, n)

/* X(barrier, arrivals, least and most bytes of a phase, who signals, who waits) */
#define SM100F_DECODE_HANDOFFS(X, d, e, n)                                                   \
    SM100F_DECODE_HANDOFFS_##e(X, d, e, n) SM100F_DECODE_FREES_##e(X) SM100F_DECODE_S_##e(X) \
        SM100F_DECODE_P_##e(X, d, n)
/* Those that free S: of PV, or with S_BY_P of P. */
#define SM100F_DECODE_BY_PV(X)       X(p_full, 8, 0, 0, softmax, pv) X(o_full, 1, 0, 0, pv, softmax + qk)
#define SM100F_DECODE_BY_P(X)        X(p_full, 8, 0, 0, softmax, qk + pv) X(o_full, 1, 0, 0, pv, softmax)
#define SM100F_DECODE_P_2(X, d, n)   SM100F_DECODE_BY_PV(X)
#define SM100F_DECODE_P_656(X, d, n) SM100F_DECODE_BY_PV(X)
#define SM100F_DECODE_P_584(X, d, n) SM100F_DECODE_BY_PV(X)
#define SM100F_DECODE_P_1(X, d, n)   SM100F_DECODE_P_1_##d(X, n)
#define SM100F_DECODE_P_1_64(X, n)   SM100F_DECODE_P_1_64_##n(X)
#define SM100F_DECODE_P_1_64_16      SM100F_DECODE_BY_PV
#define SM100F_DECODE_P_1_64_32      SM100F_DECODE_BY_P
#define SM100F_DECODE_P_1_64_64      SM100F_DECODE_BY_P
#define SM100F_DECODE_P_1_96(X, n)   SM100F_DECODE_BY_PV(X)
#define SM100F_DECODE_P_1_128(X, n)  SM100F_DECODE_BY_PV(X)
#define SM100F_DECODE_P_1_192(X, n)  SM100F_DECODE_BY_PV(X)
#define SM100F_DECODE_P_1_256(X, n)  SM100F_DECODE_BY_PV(X)
#define SM100F_DECODE_P_1_512(X, n)  SM100F_DECODE_BY_PV(X)
#define SM100F_DECODE_S_1(X)         X(s_full, 1, 0, 0, qk, softmax)
#define SM100F_DECODE_S_2            SM100F_DECODE_S_1
#define SM100F_DECODE_S_584          SM100F_DECODE_S_1
#define SM100F_DECODE_S_656(X)       X(s_full, 1, 0, 0, qk, producer + softmax)
#define SM100F_DECODE_FREES_1(X)     X(empty_bar, 1, 0, 0, qk + pv, producer)
#define SM100F_DECODE_FREES_2        SM100F_DECODE_FREES_1
#define SM100F_DECODE_FREES_656      SM100F_DECODE_FREES_584
#define SM100F_DECODE_FREES_584(X)   X(empty_bar, 1, 0, 0, pv, producer) /* all units are V */
#define SM100F_DECODE_HANDOFFS_656(X, d, e, n)                            \
    X(full_bar, SM100F_DECODE_ARRIVALS(d, e, n), 0, 0, producer, qk + pv) \
    X(q_full, 1, 0, SM100F_DECODE_TILE_Q(d, n), query, softmax)           \
    X(q_wide, 8, 0, 0, softmax, qk)                                       \
    X(q_empty, 1, 0, 0, qk, query)
#define SM100F_DECODE_HANDOFFS_584 SM100F_DECODE_HANDOFFS_656
#define SM100F_DECODE_HANDOFFS_1(X, d, e, n)                                            \
    X(full_bar, SM100F_DECODE_ARRIVALS(d, e, n), 0, SM100F_DECODE_UNIT(d, e), producer, \
      softmax + qk + pv)                                                                \
    X(q_full, 1, 0, SM100F_DECODE_TILE_Q(d, n), producer, softmax)                      \
    X(q_wide, 8, 0, 0, softmax, qk)                                                     \
    X(q_empty, 1, 0, 0, qk, producer)
#define SM100F_DECODE_HANDOFFS_2(X, d, e, n)                                            \
    X(full_bar, SM100F_DECODE_ARRIVALS(d, e, n), 0, SM100F_DECODE_UNIT(d, e), producer, \
      softmax + qk + pv)                                                                \
    X(q_full, 1, 0, SM100F_DECODE_TILE_Q(d, n), producer, qk)                           \
    X(q_empty, 1, 0, 0, qk, producer)

/* X(storage, writers, readers) */
#define SM100F_DECODE_FLOWS(X, e)                                          \
    SM100F_DECODE_FLOWS_##e(X) X(tile_p, softmax, pv.mma + softmax)        \
        X(tmem_base, qk, softmax + qk + pv) X(maxima, softmax, softmax)    \
            X(references, softmax, softmax) X(limits, softmax, softmax)    \
                X(tree_masks, softmax, softmax) X(s_0, qk.mma, softmax.ld) \
                    X(s_1, qk.mma, softmax.ld) X(o, pv.mma + softmax.st, softmax.ld)
#define SM100F_DECODE_FLOWS_656(X) \
    X(rotary, producer.cp, qk.mma) \
    SM100F_DECODE_FLOWS_584(X)
#define SM100F_DECODE_FLOWS_584(X)                              \
    X(tile_q, query.tma + softmax, qk.mma + softmax)            \
    X(stages, producer.cp, producer)                            \
    X(ring, producer, qk.mma + pv.mma)                          \
    X(row_factors, softmax, softmax)                            \
    X(split_found, producer + softmax + qk + pv + query + idle, \
      producer + softmax + qk + pv + query + idle)              \
    X(split_sums, producer + softmax + qk + pv + query + idle,  \
      producer + softmax + qk + pv + query + idle)
#define SM100F_DECODE_FLOWS_1(X)                                                             \
    X(tile_q, producer.tma, softmax)                                                         \
    X(terms, softmax, qk.mma)                                                                \
    X(ring, producer.tma + producer.cp + softmax, qk.mma + pv.mma)                           \
    X(row_factors, softmax, softmax)                                                         \
    X(s_2, qk.mma, softmax.ld)                                                               \
    X(s_3, qk.mma, softmax.ld)                                                               \
    X(split_found, producer + softmax + qk + pv + idle, producer + softmax + qk + pv + idle) \
    X(split_sums, producer + softmax + qk + pv + idle, producer + softmax + qk + pv + idle)
#define SM100F_DECODE_FLOWS_2(X)                                                             \
    X(tile_q, producer.tma, qk.mma)                                                          \
    X(ring, producer.tma + producer.cp + softmax, qk.mma + pv.mma)                           \
    X(split_found, producer + softmax + qk + pv + idle, producer + softmax + qk + pv + idle) \
    X(split_sums, producer + softmax + qk + pv + idle, producer + softmax + qk + pv + idle)

#endif
