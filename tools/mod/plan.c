/* The plan headers as data, their derived numbers checked. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/modules.def"
#include "../../ptx/sm_100f/gemm.plan.h"
#include "../../ptx/sm_90a/gemm.plan.h"

#include <string.h>

static const char *const maps[] = PLAN_NAMES(GEMM_MAPS(PLAN_NAME, PLAN_NAME));
static const struct plan_scalar scalars[] = PLAN_SCALARS(GEMM_SCALARS(PLAN_SCALAR));

_Static_assert(sizeof scalars / sizeof *scalars == GEMM_SCALAR_COUNT + 1, "GEMM_SCALAR_COUNT");

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

#define TABLES(p, t)                                                                             \
    static const struct plan_range t##_roles[] = PLAN_RANGES(p##_ROLES(PLAN_ROLE));              \
    static const struct plan_range t##_shared[] = PLAN_RANGES(p##_SHARED(PLAN_SHARED));          \
    static const struct plan_range t##_tmem[] = PLAN_RANGES(p##_TMEM(PLAN_TMEM));                \
    static const struct plan_handoff t##_handoffs[] = PLAN_HANDOFFS(p##_HANDOFFS(PLAN_HANDOFF)); \
    static const struct plan_flow t##_flows[] = PLAN_FLOWS(p##_FLOWS(PLAN_FLOW));                \
    static const struct gemm_shape t##_shape = {                                                 \
        p##_TILE_M, p##_TILE_N, p##_TILE_K, p##_STAGES, p##_RASTER_ROWS, p##_D_ROWS,             \
    };

TABLES(SM90A_GEMM, sm_90a)
TABLES(SM100F_GEMM, sm_100f)

#define PLAN(p, t)                                                                                \
    {                                                                                             \
        .target = #t, .family = "gemm", .text = "gemm", .threads = p##_THREADS,                   \
        .dynamic_shared = p##_DYNAMIC_SHARED, .tmem_columns = p##_TMEM_COLUMNS,                   \
        .cluster = p##_CLUSTER, .ctas_per_sm = p##_CTAS_PER_SM, .maps = maps, .scalars = scalars, \
        .roles = t##_roles, .shared = t##_shared, .tmem = t##_tmem, .handoffs = t##_handoffs,     \
        .flows = t##_flows, .gemm = &t##_shape                                                    \
    }

static const struct plan gemm_plans[] = {PLAN(SM90A_GEMM, sm_90a), PLAN(SM100F_GEMM, sm_100f)};

static const struct plan *plan_gemm(const char *target)
{
    for (size_t i = 0; i < sizeof gemm_plans / sizeof *gemm_plans; i++)
        if (strcmp(gemm_plans[i].target, target) == 0) return &gemm_plans[i];
    return NULL;
}

#define MODULE(target, name) {#target, #name},
static const struct {
    const char *target, *name;
} modules[] = {HEWN_GEMM_MODULES(MODULE) HEWN_ATTENTION_MODULES(MODULE)};

static int find_plan(struct module_id *id)
{
    unsigned qk, v;
    int end = 0;

    if (strcmp(id->name, "attention_combine") == 0) {
        id->plan = plan_attention_combine(id->target);
    } else if (sscanf(id->name, "gemm_%7[a-z0-9]_%7[a-z0-9]%n", id->in, id->out, &end) == 2 &&
               !id->name[end]) {
        id->plan = plan_gemm(id->target);
    } else if (sscanf(id->name, "attention_%7[a-z0-9]_%u_%u%n", id->in, &qk, &v, &end) == 3 &&
               !id->name[end]) {
        id->plan = plan_attention(id->target, qk, v, strcmp(id->in, "e4m3") == 0 ? 1 : 2);
    } else {
        return complain(id->name, "is none of gemm_<input dtype>_<output dtype>, "
                                  "attention_<input dtype>_<qk_dim>_<v_dim>, attention_combine");
    }
    return id->plan ? 0 : complain(id->name, "has no plan for %s in tools/mod", id->target);
}

int plan_find(struct module_id *id, const char *target, const char *name)
{
    memset(id, 0, sizeof *id);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        if (strcmp(modules[i].target, target) != 0 || strcmp(modules[i].name, name) != 0) continue;
        id->target = modules[i].target;
        id->name = modules[i].name;
        return find_plan(id);
    }
    fprintf(stderr, "mod: no module %s for %s in ptx/modules.def\n", name, target);
    return -1;
}
