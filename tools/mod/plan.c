/* The plan headers as data, their derived numbers checked. */
#include "mod.h"

#include "../../ptx/modules.def"
#include "../../ptx/sm_100f/gemm.plan.h"
#include "../../ptx/sm_90a/gemm.plan.h"

#include <string.h>

#define NAME(name) #name,
const char *const plan_maps[] = {GEMM_MAPS(NAME, NAME) NULL};

#define SCALAR(type, name, rule) {#name, rule},
const struct plan_scalar plan_scalars[] = {GEMM_SCALARS(SCALAR){NULL, NULL}};

_Static_assert(sizeof plan_scalars / sizeof *plan_scalars == GEMM_SCALAR_COUNT + 1,
               "GEMM_SCALAR_COUNT");

/* What every plan's layout must satisfy; p is its prefix. Two bytes an input element. */
#define CHECK_PLAN(p)                                                                            \
    _Static_assert(p##_A_BYTES == p##_TILE_M * p##_TILE_K * 2, "A_BYTES");                       \
    _Static_assert(p##_B_BYTES == p##_TILE_N * p##_TILE_K * 2, "B_BYTES");                       \
    _Static_assert(p##_STAGE_BYTES == p##_A_BYTES + p##_B_BYTES, "STAGE_BYTES");                 \
    _Static_assert(p##_TILE_K * 2 == 128, "a row of a stage is one 128-byte swizzle row");       \
    _Static_assert(p##_TILE_M <= 256 && p##_TILE_N <= 256, "a TMA box side is at most 256");     \
    _Static_assert(p##_RING_B == p##_RING_A + p##_STAGES * p##_A_BYTES, "RING_B");               \
    _Static_assert(p##_STAGE_D == p##_RING_B + p##_STAGES * p##_B_BYTES, "STAGE_D");             \
    _Static_assert(p##_D_BYTES == p##_D_ROWS * GEMM_D_ROW_BYTES, "D_BYTES");                     \
    _Static_assert(p##_D_BYTES % 1024 == 0, "a swizzled box repeats every 1024 bytes");          \
    _Static_assert(p##_RING_A % 1024 == 0 && p##_A_BYTES % 1024 == 0 && p##_B_BYTES % 1024 == 0, \
                   "tiles begin on 1024 bytes")

CHECK_PLAN(SM90A_GEMM);
CHECK_PLAN(SM100F_GEMM);

_Static_assert(SM90A_GEMM_DYNAMIC_SHARED == SM90A_GEMM_STAGE_D + SM90A_GEMM_CONSUMER_WARPS *
                                                                     SM90A_GEMM_D_BUFFERS *
                                                                     SM90A_GEMM_D_BYTES,
               "DYNAMIC_SHARED");
_Static_assert(SM90A_GEMM_CONSUMER_WARPS *SM90A_GEMM_D_ROWS == SM90A_GEMM_TILE_M, "D_ROWS");
_Static_assert(SM90A_GEMM_THREADS == 32 * (SM90A_GEMM_PRODUCER_WARPS + SM90A_GEMM_CONSUMER_WARPS),
               "THREADS");
/* 65536 registers over the CTA, in steps of 8 a thread. */
_Static_assert(SM90A_GEMM_PRODUCER_REGS + 2 * SM90A_GEMM_CONSUMER_REGS <=
                   3 * (65536 / SM90A_GEMM_THREADS / 8 * 8),
               "register pool");
_Static_assert(SM100F_GEMM_DYNAMIC_SHARED == SM100F_GEMM_STAGE_D + SM100F_GEMM_EPILOGUE_WARPS *
                                                                       SM100F_GEMM_D_BUFFERS *
                                                                       SM100F_GEMM_D_BYTES,
               "DYNAMIC_SHARED");
_Static_assert(SM100F_GEMM_EPILOGUE_WARPS *SM100F_GEMM_D_ROWS == SM100F_GEMM_TILE_M, "D_ROWS");
_Static_assert(SM100F_GEMM_ACCUMULATORS *SM100F_GEMM_ACC_COLUMNS <= SM100F_GEMM_TMEM_COLUMNS,
               "TMEM_COLUMNS");
_Static_assert(SM100F_GEMM_ACC_COLUMNS == SM100F_GEMM_TILE_N, "one fp32 column a column of D");

#define ROLE(name, first, warps)           {#name, first, 1, warps},
#define SHARED(name, offset, bytes, count) {#name, offset, bytes, count},
#define TMEM(name, first, columns)         {#name, first, 1, columns},
#define END           \
    {                 \
        NULL, 0, 0, 0 \
    }
#define HANDOFF(name, count, bytes, from, to) {#name, count, bytes, #from, #to},
#define FLOW(name, writers, readers)          {#name, #writers, #readers},
#define END_HANDOFFS           \
    {                          \
        NULL, 0, 0, NULL, NULL \
    }
#define END_FLOWS        \
    {                    \
        NULL, NULL, NULL \
    }

static const struct plan_range sm_90a_roles[] = {SM90A_GEMM_ROLES(ROLE) END};
static const struct plan_range sm_90a_shared[] = {SM90A_GEMM_SHARED(SHARED) END};
static const struct plan_range sm_90a_tmem[] = {SM90A_GEMM_TMEM(TMEM) END};
static const struct plan_handoff sm_90a_handoffs[] = {SM90A_GEMM_HANDOFFS(HANDOFF) END_HANDOFFS};
static const struct plan_flow sm_90a_flows[] = {SM90A_GEMM_FLOWS(FLOW) END_FLOWS};
static const struct plan_range sm_100f_roles[] = {SM100F_GEMM_ROLES(ROLE) END};
static const struct plan_range sm_100f_shared[] = {SM100F_GEMM_SHARED(SHARED) END};
static const struct plan_range sm_100f_tmem[] = {SM100F_GEMM_TMEM(TMEM) END};
static const struct plan_handoff sm_100f_handoffs[] = {SM100F_GEMM_HANDOFFS(HANDOFF) END_HANDOFFS};
static const struct plan_flow sm_100f_flows[] = {SM100F_GEMM_FLOWS(FLOW) END_FLOWS};

#define PLAN(p, t)                                                                              \
    {                                                                                           \
        .target = #t, .family = "gemm", .tile_m = p##_TILE_M, .tile_n = p##_TILE_N,             \
        .tile_k = p##_TILE_K, .stages = p##_STAGES, .threads = p##_THREADS,                     \
        .dynamic_shared = p##_DYNAMIC_SHARED, .tmem_columns = p##_TMEM_COLUMNS,                 \
        .cluster = p##_CLUSTER, .ctas_per_sm = p##_CTAS_PER_SM, .raster_rows = p##_RASTER_ROWS, \
        .d_rows = p##_D_ROWS, .roles = t##_roles, .shared = t##_shared, .tmem = t##_tmem,       \
        .handoffs = t##_handoffs, .flows = t##_flows                                            \
    }

static const struct plan plans[] = {PLAN(SM90A_GEMM, sm_90a), PLAN(SM100F_GEMM, sm_100f)};

#define MODULE(target, name) {#target, #name},
static const struct {
    const char *target, *name;
} modules[] = {HEWN_GEMM_MODULES(MODULE)};

int plan_find(struct module_id *id, const char *target, const char *name)
{
    memset(id, 0, sizeof *id);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        if (strcmp(modules[i].target, target) != 0 || strcmp(modules[i].name, name) != 0) continue;
        for (size_t p = 0; p < sizeof plans / sizeof *plans; p++)
            if (strcmp(plans[p].target, target) == 0) id->plan = &plans[p];
        id->target = modules[i].target;
        id->name = modules[i].name;
        if (!id->plan) return complain(target, "has no plan in tools/mod/plan.c");
        if (sscanf(name, "gemm_%7[a-z0-9]_%7[a-z0-9]", id->in, id->out) != 2)
            return complain(name, "is not gemm_<input dtype>_<output dtype>");
        return 0;
    }
    fprintf(stderr, "mod: no module %s for %s in ptx/modules.def\n", name, target);
    return -1;
}
