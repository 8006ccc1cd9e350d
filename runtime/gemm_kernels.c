/* The variants of the GEMM kernels, of every target, by the numbers of their plan headers. */
#include "gemm_kernels.h"

#include "../ptx/sm_100f/gemm.plan.h"
#include "../ptx/sm_100f/gemm_few.plan.h"
#include "../ptx/sm_90a/gemm.plan.h"
#include "../ptx/sm_90a/gemm_few.plan.h"
#include "../ptx/sm_90a/gemm_oddfew.plan.h"
#include "../ptx/sm_90a/gemm_oddsmall.plan.h"

#include <string.h>

enum { EARLY = 8 }; /* k-blocks: `fetches` of kernels that spread tiles */

/*
 * Parts of K that are tried where nothing names them: bits 0 to 7, a byte for each variant of a module, in their order.
 * Left out are those that the model chooses seldom, and then for little: of 12,600 drawn problems (both sizes of inputs,
 * results of 4 bytes, batches, slices of K, 78 and 114 SMs) they save 0.05 % of the time by the model; of 49,000
 * others 0.1 %, 16 % at most. Without them a plan takes half of the time.
 */
#define ALL UINT32_MAX
/* clang-format off */
#define TRIED_pair     UINT64_C(0x1)
#define TRIED_wide     UINT64_C(0x1)
#define TRIED_small    UINT64_C(0x1)
#define TRIED_narrow   UINT64_C(0x1)
#define TRIED_flat     UINT64_C(0x9f)
#define TRIED_split    UINT64_C(0xbf)
#define TRIED_plain    UINT64_C(0x1)
#define TRIED_64x256   UINT64_C(0xb01)
#define TRIED_128x96   UINT64_C(0xb0d04)
#define TRIED_128x128  UINT64_C(0x90b05)
#define TRIED_128x144  UINT64_C(0xb0780)
#define TRIED_128x160  UINT64_C(0x90110)
#define TRIED_128x192  UINT64_C(0xd0d07)
#define TRIED_128x224  UINT64_C(0x10109)
#define TRIED_128x256  UINT64_C(0x10100)
#define TRIED_80x128   UINT64_C(0xf0f67)
#define TRIED_96x128   UINT64_C(0x10f08)
#define TRIED_160x128  UINT64_C(0x90014)
#define TRIED_anyx128  UINT64_C(0x102010209020907)
#define TRIED_128xany  UINT64_C(0x10000030b030902)
#define TRIED_anyx64   UINT64_C(0x30208)
#define TRIED_anyx256  UINT64_C(0x1000101)
#define TRIED_64x64    UINT64_C(0x101010101)
#define TRIED_64x96    UINT64_C(0x1010100)
#define TRIED_128x64   UINT64_C(0x101010001010101)
#define TRIED_128x80   UINT64_C(0x101000101010100)
#define TRIED_128x128r UINT64_C(0x1000101010101)
#define TRIED_loose    ~UINT64_C(0)
#define TRIED_odd64    ~UINT64_C(0)
#define TRIED_odd128   ~UINT64_C(0)
#define TRIED_odd256   ~UINT64_C(0)
#define TRIED_glu128   ~UINT64_C(0)
#define TRIED_glu64    ~UINT64_C(0)
/* clang-format on */
#define SM90A_TRIED(v, i)  ((uint32_t)(TRIED_##v >> 8 * (i)) & 0xFF)
#define SM100F_TRIED(v, i) ALL

#define MOST                  (GEMM_CAN_PLANE | GEMM_CAN_F32)
#define KERNEL(P, t, v, kind) KERNEL_##kind(P, t, v)
#define KERNEL_WHOLE(P, t, v) \
    ROW(P, t, v, #v, P##_GEMM_PAIR_M(v), P##_GEMM_PAIR_N(v), 0, MOST, 0, 0, 0)
#define KERNEL_PARTS(P, t, v) KERNEL_WHOLE(P, t, v)
#define KERNEL_LOOSE(P, t, v) ROW(P, t, v, #v, 1, 1, 0, GEMM_CAN_LOOSE | MOST, 0, 0, 0)
#define KERNEL_ODD(P, t, v)   ROW(P, t, v, #v, 1, 1, 0, GEMM_CAN_LOOSE | GEMM_CAN_F32, 1, 0, 0)
/* One module, three variants: each tile alone, pairs along m, pairs along n. */
#define KERNEL_SHARES(P, t, v) KERNEL_THREE(P, t, v, MOST)
/* Of one module, as it is, and for SwiGLU of K-major inputs. */
#define KERNEL_GATED(P, t, v) \
    KERNEL_WHOLE(P, t, v)     \
    ROW(P, t, v, #v "-glu", P##_GEMM_PAIR_M(v), 1, GEMM_MODE_GLU, MOST | GEMM_CAN_GLU, 0, 0, 0)
/* Of one module: pairs, and two pairs side by side. */
#define KERNEL_SIDES(P, t, v) \
    KERNEL_WHOLE(P, t, v)     \
    ROW(P, t, v, #v "n", P##_GEMM_PAIR_M(v), 2, GEMM_MODE_PAIR_N, MOST, 0, 0, 0)
/* Results of 16 bits. */
#define KERNEL_GLU(P, t, v)       KERNEL_THREE(P, t, v, MOST)
#define KERNEL_EXCHANGED(P, t, v) KERNEL_THREE(P, t, v, GEMM_CAN_PLANE)
#define KERNEL_THREE(P, t, v, more)                             \
    ROW(P, t, v, #v, 1, 1, 0, more, 0, 0, 0)                    \
    ROW(P, t, v, #v "m", 2, 1, GEMM_MODE_PAIR_M, more, 0, 0, 1) \
    ROW(P, t, v, #v "n", 1, 2, GEMM_MODE_PAIR_N, more, 0, 0, 2)
/* One module: each tile alone, and rectangles of tiles. FITTED: of a tile that the plan decides; with more rows
 * than columns A and B are exchanged; TALL: with more columns, too. */
#define KERNEL_SPREAD(P, t, v) RECTANGLES(P, t, v, MOST)
#define KERNEL_FITTED(P, t, v) \
    RECTANGLES(P, t, v, P##_GEMM_TILE_M(v) > P##_GEMM_TILE_N(v) ? GEMM_CAN_PLANE : MOST)
#define KERNEL_TALL(P, t, v) RECTANGLES(P, t, v, GEMM_CAN_PLANE)
#define RECTANGLES(P, t, v, more)             \
    SPREAD(P, t, v, #v, 0, 0, more, 0)        \
    SPREAD(P, t, v, #v "-1x2", 0, 1, more, 1) \
    SPREAD(P, t, v, #v "-1x4", 0, 2, more, 2) \
    SPREAD(P, t, v, #v "-2x1", 1, 0, more, 3) \
    SPREAD(P, t, v, #v "-2x2", 1, 1, more, 4) \
    SPREAD(P, t, v, #v "-2x4", 1, 2, more, 5) \
    SPREAD(P, t, v, #v "-4x1", 2, 0, more, 6) \
    SPREAD(P, t, v, #v "-4x2", 2, 1, more, 7)
#define SPREAD(P, t, v, name, log_m, log_n, more, i) \
    ROW(P, t, v, name, 1 << (log_m), 1 << (log_n),   \
        (log_m) << GEMM_MODE_LOG_M | (log_n) << GEMM_MODE_LOG_N, more, 0, 1, i)
#define ROW(P, t, v, name, m, n, how, more, maps, spreads, i) \
    {.target = #t,                                            \
     .variant = (name),                                       \
     .module = #v,                                            \
     .tile_m = P##_GEMM_TILE_M(v),                            \
     .tile_n = P##_GEMM_TILE_N(v),                            \
     .row_bytes = GEMM_ROW_BYTES,                             \
     .stages = P##_GEMM_STAGES(v),                            \
     .pair_m = (m),                                           \
     .pair_n = (n),                                           \
     .parts = IS_GLU(P, v) ? 1 : P##_GEMM_PARTS(v),           \
     .glu = IS_GLU(P, v) || (how) == GEMM_MODE_GLU,           \
     .threads = P##_GEMM_ALL_THREADS(v),                      \
     .d_rows = P##_GEMM_D_ROWS,                               \
     .dynamic_shared = P##_GEMM_DYNAMIC_SHARED(v),            \
     .tmem_columns = P##_GEMM_TMEM_COLUMNS,                   \
     .ctas_per_sm = P##_GEMM_CTAS_PER_SM,                     \
     .raster_rows = P##_GEMM_RASTER_ROWS(v) / (m),            \
     .can = (P##_GEMM_CAN(v) & ~UNGATED(how)) | (more),       \
     .mode = (how),                                           \
     .odd = (maps),                                           \
     .fetches = (spreads)*EARLY,                              \
     .fitted = P##_GEMM_FITTED(v),                            \
     .exchanged = !((more)&GEMM_CAN_F32),                     \
     .tried = P##_TRIED(v, i)},

#define KERNEL_FEW(name, glued, able)            \
    {.target = "sm_90a",                         \
     .variant = name,                            \
     .module = name,                             \
     .tile_m = SM90A_FEW_ROWS,                   \
     .tile_n = SM90A_FEW_COLUMNS,                \
     .row_bytes = GEMM_ROW_BYTES,                \
     .stages = SM90A_FEW_STAGES,                 \
     .pair_m = 1,                                \
     .pair_n = 1,                                \
     .parts = SM90A_FEW_PARTS,                   \
     .threads = SM90A_FEW_THREADS,               \
     .d_rows = SM90A_FEW_D_ROWS,                 \
     .dynamic_shared = SM90A_FEW_DYNAMIC_SHARED, \
     .tmem_columns = 0,                          \
     .ctas_per_sm = SM90A_FEW_CTAS_PER_SM,       \
     .raster_rows = 1,                           \
     .can = (able) | MOST,                       \
     .glu = glued,                               \
     .most_m = SM90A_FEW_ROWS,                   \
     .tried = ALL,                               \
     .few = HEWN_GEMM_FEW},

#define KERNEL_LANES                              \
    {.target = "sm_100f",                         \
     .variant = "few",                            \
     .module = "few",                             \
     .tile_m = SM100F_FEW_ROWS,                   \
     .tile_n = SM100F_FEW_COLUMNS,                \
     .row_bytes = GEMM_ROW_BYTES,                 \
     .stages = SM100F_FEW_STAGES,                 \
     .pair_m = 1,                                 \
     .pair_n = 1,                                 \
     .parts = 1,                                  \
     .threads = SM100F_FEW_THREADS,               \
     .d_rows = SM100F_FEW_D_ROWS,                 \
     .dynamic_shared = SM100F_FEW_DYNAMIC_SHARED, \
     .tmem_columns = SM100F_FEW_TMEM_COLUMNS,     \
     .ctas_per_sm = SM100F_FEW_CTAS_PER_SM,       \
     .raster_rows = 1,                            \
     .can = SM100F_FEW_CAN | MOST,                \
     .most_m = SM100F_FEW_ROWS,                   \
     .tried = ALL,                                \
     .few = HEWN_GEMM_LANES},

#define KERNEL_ODDFEW                               \
    {.target = "sm_90a",                            \
     .variant = "oddfew",                           \
     .module = "oddfew",                            \
     .tile_m = SM90A_ODDFEW_ROWS,                   \
     .tile_n = SM90A_ODDFEW_COLUMNS,                \
     .row_bytes = SM90A_ODDFEW_SLICE,               \
     .stages = SM90A_ODDFEW_STAGES,                 \
     .pair_m = 1,                                   \
     .pair_n = 1,                                   \
     .parts = SM90A_ODDFEW_PARTS,                   \
     .threads = SM90A_ODDFEW_THREADS,               \
     .d_rows = SM90A_ODDFEW_D_ROWS,                 \
     .dynamic_shared = SM90A_ODDFEW_DYNAMIC_SHARED, \
     .tmem_columns = 0,                             \
     .ctas_per_sm = SM90A_ODDFEW_CTAS_PER_SM,       \
     .raster_rows = 1,                              \
     .can = SM90A_ODDFEW_CAN | MOST,                \
     .most_m = SM90A_ODDFEW_ROWS,                   \
     .tried = ALL,                                  \
     .few = HEWN_GEMM_ODDFEW},

#define KERNEL_ODDSMALL(name, side)                   \
    {.target = "sm_90a",                              \
     .variant = name,                                 \
     .module = "oddsmall",                            \
     .tile_m = side,                                  \
     .tile_n = side,                                  \
     .row_bytes = SM90A_ODDSMALL_STEP,                \
     .stages = 1,                                     \
     .pair_m = 1,                                     \
     .pair_n = 1,                                     \
     .parts = SM90A_ODDSMALL_PARTS,                   \
     .threads = SM90A_ODDSMALL_THREADS,               \
     .d_rows = SM90A_ODDSMALL_D_ROWS,                 \
     .dynamic_shared = SM90A_ODDSMALL_DYNAMIC_SHARED, \
     .tmem_columns = 0,                               \
     .ctas_per_sm = SM90A_ODDSMALL_CTAS_PER_SM,       \
     .raster_rows = 1,                                \
     .can = SM90A_ODDSMALL_CAN | MOST,                \
     .tried = ALL,                                    \
     .few = HEWN_GEMM_ODD##side},

#define IS_GLU(P, v) ((P##_GEMM_CAN(v) & GEMM_CAN_GLU) != 0)
#define UNGATED(how) \
    ((how) == GEMM_MODE_GLU ? (uint32_t)GEMM_CAN_MN | (uint32_t)GEMM_CAN_SCALES : 0U)

#define HOPPER                                                                    \
    KERNEL_FEW("few", 0, SM90A_FEW_CAN)                                           \
    KERNEL_FEW("glufew", 1, SM90A_GLUFEW_CAN)                                     \
    KERNEL_ODDFEW KERNEL_ODDSMALL("odd16x16", 16) KERNEL_ODDSMALL("odd32x32", 32) \
        SM90A_GEMM_VARIANTS(KERNEL)

static const struct hewn_gemm_kernel kernels[] = {HOPPER KERNEL_LANES SM100F_GEMM_VARIANTS(KERNEL)};

enum {
    KERNELS = sizeof kernels / sizeof kernels[0],
    HOPPERS = sizeof(struct hewn_gemm_kernel[]){HOPPER} / sizeof(struct hewn_gemm_kernel)
};

_Static_assert((int)HOPPERS <= (int)HEWN_GEMM_KERNELS_MOST &&
                   (int)KERNELS - (int)HOPPERS <= (int)HEWN_GEMM_KERNELS_MOST,
               "a model has no room for so many");

const struct hewn_gemm_kernel *hewn_gemm_kernels(size_t *count)
{
    *count = KERNELS;
    return kernels;
}

const struct hewn_gemm_kernel *hewn_gemm_kernels_of(const char *target, size_t *count)
{
    *count = HOPPERS;
    if (strcmp(target, kernels[0].target) == 0) return kernels;
    *count = strcmp(target, kernels[HOPPERS].target) == 0 ? KERNELS - HOPPERS : 0;
    return kernels + HOPPERS;
}

uint32_t hewn_gemm_tile_k(const struct hewn_gemm_kernel *kernel, uint64_t element)
{
    return (uint32_t)(kernel->row_bytes / element);
}

/* A cluster lies within a GPC, and GPCs have different numbers of SMs. An H200 of 132 SMs holds 66 clusters
 * of 2, 39 of 3, 30 of 4 and 15 of 8 (measured); 18 of 6 and 16 of 7 take twice as long as fewer do. So: all
 * SMs, or ten elevenths of them, and where a cluster is no power of two, one or two less. One cluster more
 * than fits runs behind all others. Of more than 8 CTAs a GPC, which has up to 18 SMs, holds one: 9 parts in 11
 * clusters take twice as long as 8. */
uint32_t hewn_gemm_clusters(uint32_t sm_count, uint32_t cluster)
{
    if (cluster > HEWN_GEMM_CLUSTER) return sm_count / 18;
    uint32_t fit = (cluster <= 2 ? sm_count : sm_count - sm_count / 11) / cluster;
    uint32_t less = cluster == 6 ? 3 : cluster > 4 ? 2 : 1;
    return fit > less && cluster & (cluster - 1) ? fit - less : fit;
}
