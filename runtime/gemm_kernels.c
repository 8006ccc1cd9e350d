#include "gemm_kernels.h"

#include "error.h"

#include "../ptx/sm_100f/gemm.plan.h"
#include "../ptx/sm_90a/gemm.plan.h"

#include <string.h>

#define KERNEL(P, t, v, kind) KERNEL_##kind(P, t, v)
#define KERNEL_WHOLE(P, t, v) ROW(P, t, v, #v, P##_GEMM_PAIR_M(v), P##_GEMM_PAIR_N(v), 0)
#define KERNEL_PARTS(P, t, v) KERNEL_WHOLE(P, t, v)
/* One module, three variants: each tile alone, pairs along m, pairs along n. */
#define KERNEL_SHARES(P, t, v)                   \
    ROW(P, t, v, #v, 1, 1, 0)                    \
    ROW(P, t, v, #v "m", 2, 1, GEMM_MODE_PAIR_M) \
    ROW(P, t, v, #v "n", 1, 2, GEMM_MODE_PAIR_N)
#define ROW(P, t, v, name, m, n, how)              \
    {.target = #t,                                 \
     .variant = (name),                            \
     .module = #v,                                 \
     .tile_m = P##_GEMM_TILE_M(v),                 \
     .tile_n = P##_GEMM_TILE_N(v),                 \
     .row_bytes = GEMM_ROW_BYTES,                  \
     .stages = P##_GEMM_STAGES(v),                 \
     .pair_m = (m),                                \
     .pair_n = (n),                                \
     .parts = P##_GEMM_PARTS(v),                   \
     .threads = P##_GEMM_THREADS,                  \
     .d_rows = P##_GEMM_D_ROWS,                    \
     .dynamic_shared = P##_GEMM_DYNAMIC_SHARED(v), \
     .tmem_columns = P##_GEMM_TMEM_COLUMNS,        \
     .ctas_per_sm = P##_GEMM_CTAS_PER_SM,          \
     .raster_rows = P##_GEMM_RASTER_ROWS(v) / (m), \
     .can = P##_GEMM_CAN(v),                       \
     .mode = (how)},

static const struct hewn_gemm_kernel kernels[] = {SM90A_GEMM_VARIANTS(KERNEL)
                                                      SM100F_GEMM_VARIANTS(KERNEL)};

const struct hewn_gemm_kernel *hewn_gemm_kernels(size_t *count)
{
    *count = sizeof kernels / sizeof kernels[0];
    return kernels;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

uint32_t hewn_gemm_tile_k(const struct hewn_gemm_kernel *kernel, uint64_t element)
{
    return (uint32_t)(kernel->row_bytes / element);
}

/* A cluster lies within a GPC, and GPCs have different numbers of SMs: an H200 of 132 SMs holds 66
 * clusters of 2, 30 of 4, 15 of 8 (measured): all SMs, or ten elevenths of them. */
uint32_t hewn_gemm_clusters(uint32_t sm_count, uint32_t cluster)
{
    return (cluster <= 2 ? sm_count : sm_count - sm_count / 11) / cluster;
}

/*
 * Cost in SM cycles, fitted to an H200 and 16-bit inputs; only the order matters, and other targets have
 * one variant. With clusters of pair * parts CTAs, `tiles` of a pair's size, and
 *     waves = ceil(tiles / clusters that fit),  blocks = ceil(k_blocks / parts):
 *   multiply = tile_m * tile_n * row_bytes / 4096           a k-block on the tensor cores, which take 32
 *              + BESIDE * (tile_m / 128, rounded up)        bytes of a row a step, whatever the dtype
 *   inbound  = bytes of a k-block / SM_BYTES                a k-block into an SM
 *   memory   = (A + B + D) / MEMORY_BYTES                   everything once from memory
 *   l2       = what all CTAs load, halves of pairs once, / L2_BYTES
 *   cost     = max(memory, l2, waves * blocks * max(multiply, inbound)) + waves * tile
 *   tile     = FILL + tile_m * tile_n / 32, with parts EXCHANGE more
 * ..._BYTES: bytes a cycle, of an SM or of all; SM_BYTES is such that 64 x 8192 x 8192 goes to flat (36.7
 * us) and not to narrow (44.4). Promoted sums of 8-bit inputs cost no more here, though they take 2 to 16 %
 * longer than fast ones: small, which promotes all its columns at once, takes longer still than pair.
 */
enum {
    CLUSTER_MOST = 8, /* CTAs of a portable cluster */
    SM_BYTES = 44,
    L2_BYTES = 6000,
    MEMORY_BYTES = 2300,
    BESIDE = 48,
    FILL = 500,
    EXCHANGE = 1200
};

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t cost(const struct hewn_gemm_kernel *k, uint32_t parts,
                     const struct hewn_gemm_extent *p, uint32_t sm_count)
{
    uint64_t pair = (uint64_t)k->pair_m * k->pair_n, area = (uint64_t)k->tile_m * k->tile_n;
    uint64_t tiles = ceil_div(p->m, (uint64_t)k->tile_m * k->pair_m) *
                     ceil_div(p->n, (uint64_t)k->tile_n * k->pair_n) * p->batch;
    uint64_t waves = ceil_div(tiles, hewn_gemm_clusters(sm_count, (uint32_t)pair * parts));
    uint64_t k_blocks = ceil_div(p->k, hewn_gemm_tile_k(k, p->in)), row = k->row_bytes;
    uint64_t multiply = area * row / 4096 + BESIDE * ceil_div(k->tile_m, 128);
    uint64_t inbound = (k->tile_m + k->tile_n) * row / SM_BYTES;
    uint64_t once =
        (p->batch_a * p->m + p->batch_b * p->n) * p->k * p->in + p->batch * p->m * p->n * p->out;
    uint64_t loads =
        tiles * pair * k_blocks * (k->tile_m / k->pair_n + k->tile_n / k->pair_m) * row;
    uint64_t memory = larger(once / MEMORY_BYTES, loads / L2_BYTES);
    uint64_t compute = waves * ceil_div(k_blocks, parts) * larger(multiply, inbound);
    return larger(memory, compute) + waves * (FILL + area / 32 + (parts > 1 ? EXCHANGE : 0));
}

int hewn_gemm_choose(const char *target, const char *variant, uint32_t parts,
                     const struct hewn_gemm_extent *problem, uint32_t sm_count, int clusters,
                     struct hewn_gemm_choice *out, hewn_error *err)
{
    uint64_t least = UINT64_MAX;
    int known = 0;
    out->kernel = NULL;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        const struct hewn_gemm_kernel *k = &kernels[i];
        if (strcmp(k->target, target) != 0) continue;
        known = 1;
        int lacks = (problem->need & ~k->can) != 0;
        if (variant && strcmp(variant, k->variant) != 0) continue;
        for (uint32_t p = 1; p <= k->parts; p++) {
            uint32_t cluster = k->pair_m * k->pair_n * p;
            if ((parts && p != parts) || (cluster > 1 && !clusters) || cluster > CLUSTER_MOST ||
                !hewn_gemm_clusters(sm_count, cluster) ||
                ceil_div(problem->k, hewn_gemm_tile_k(k, problem->in)) < p)
                continue;
            /* A kernel that lacks something is chosen only if there is no other; the caller then says
             * what it lacks. */
            uint64_t c = lacks ? UINT64_MAX - 1 : cost(k, p, problem, sm_count);
            if (c >= least) continue;
            least = c;
            *out = (struct hewn_gemm_choice){k, p};
        }
    }
    if (out->kernel || !known) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT,
                     "variant, parts: no kernel for %s is called \"%s\" and takes %u parts of K "
                     "here (%d SMs, %llu k; clusters: %s)",
                     target, variant ? variant : "", parts, (int)sm_count,
                     (unsigned long long)problem->k, clusters ? "yes" : "no");
}
