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

/* What every plan's layout must satisfy; p is its prefix, c that of what a target's variants share.
 * Two bytes an input element. */
#define CHECK_PLAN(c, p)                                                                         \
    _Static_assert(p##_A_BYTES == p##_TILE_M * c##_TILE_K * 2, "A_BYTES");                       \
    _Static_assert(p##_B_BYTES == p##_TILE_N * c##_TILE_K * 2, "B_BYTES");                       \
    _Static_assert(p##_STAGE_BYTES == p##_A_BYTES + p##_B_BYTES, "STAGE_BYTES");                 \
    _Static_assert(c##_ROW_BYTES == 128 && c##_TILE_K * 2 == c##_ROW_BYTES,                      \
                   "a row of a stage is one 128-byte swizzle row");                              \
    _Static_assert(p##_TILE_M <= 256 && p##_TILE_N <= 256, "a TMA box side is at most 256");     \
    _Static_assert(p##_RING_B == p##_RING_A + p##_STAGES * p##_A_BYTES, "RING_B");               \
    _Static_assert(c##_D_BYTES == c##_D_ROWS * GEMM_D_ROW_BYTES, "D_BYTES");                     \
    _Static_assert(c##_D_BYTES % 1024 == 0, "a swizzled box repeats every 1024 bytes");          \
    _Static_assert(p##_RING_A % 1024 == 0 && p##_A_BYTES % 1024 == 0 && p##_B_BYTES % 1024 == 0, \
                   "tiles begin on 1024 bytes")

#define RING_END(p) (p##_RING_B + p##_STAGES * p##_B_BYTES)

/* Two consumer warpgroups of one or two blocks of 64 rows share the tile, behind one another or side by
 * side. */
#define CHECK_HOPPER(p)                                                                       \
    CHECK_PLAN(SM90A_GEMM, p);                                                                \
    _Static_assert((p##_GROUP_M == 64 || p##_GROUP_M == 128) &&                               \
                       2 * p##_GROUP_M * p##_GROUP_N == p##_TILE_M * p##_TILE_N,              \
                   "GROUP_M, GROUP_N");                                                       \
    _Static_assert(p##_PAIR_M * p##_PAIR_N <= 2 && p##_PAIR_M * p##_PAIR_N * p##_PARTS <= 8,  \
                   "a portable cluster has at most 8 CTAs");                                  \
    _Static_assert(32 * p##_STAGES <= SM90A_GEMM_THREADS, "a warp makes a stage's barriers"); \
    _Static_assert(p##_DYNAMIC_SHARED == p##_PLACE + p##_STAGES * SM90A_GEMM_PLACE_BYTES,     \
                   "DYNAMIC_SHARED")
#define CHECK_WHOLE(p)                                                                             \
    CHECK_HOPPER(p);                                                                               \
    _Static_assert(p##_D_BUFFERS >= (p##_GROUP_N == 192 ? 3 : 2), "boxes staged at once");         \
    _Static_assert(p##_GROUP_M == 64 || !(p##_CAN & GEMM_CAN_FP8), "registers for promoted sums"); \
    _Static_assert(p##_STAGE_D == RING_END(p), "STAGE_D");                                         \
    _Static_assert(p##_PLACE == p##_STAGE_D + SM90A_GEMM_CONSUMER_WARPS * p##_D_BUFFERS *          \
                                                  SM90A_GEMM_D_BYTES,                              \
                   "PLACE")
#define CHECK_PARTS(p)                                                                 \
    CHECK_HOPPER(p);                                                                   \
    _Static_assert(p##_GROUP_N == 64, "partial sums of a warp are 16 x 64");           \
    _Static_assert(p##_PAIR_M * p##_PAIR_N == 1, "all CTAs of the cluster are parts"); \
    _Static_assert(p##_PARTIAL == RING_END(p), "PARTIAL");                             \
    _Static_assert(                                                                    \
        p##_PLACE == p##_PARTIAL + SM90A_GEMM_CONSUMER_WARPS * SM90A_GEMM_PARTIAL_BYTES, "PLACE")

CHECK_WHOLE(SM90A_GEMM);
CHECK_WHOLE(SM90A_GEMM_PAIR);
CHECK_WHOLE(SM90A_GEMM_WIDE);
CHECK_WHOLE(SM90A_GEMM_SMALL);
CHECK_WHOLE(SM90A_GEMM_NARROW);
CHECK_PARTS(SM90A_GEMM_SPLIT);
CHECK_PARTS(SM90A_GEMM_FLAT);
CHECK_PLAN(SM100F_GEMM, SM100F_GEMM);
_Static_assert(SM100F_GEMM_STAGE_D == RING_END(SM100F_GEMM), "STAGE_D");

_Static_assert(SM90A_GEMM_PARTIAL_BYTES == 12 * 512,
               "the most (parts - 1) * (8 / parts rounded up)");
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

/* c: the prefix of what a target's variants share, p: the variant's, t: its tables'. The lists of a
 * target with one variant bear its name alone; KIND(P) gives those of the others. */
#define TABLES_OF(c, p, t)                                                          \
    static const struct plan_range t##_roles[] = PLAN_RANGES(c##_ROLES(PLAN_ROLE)); \
    static const struct plan_range t##_tmem[] = PLAN_RANGES(c##_TMEM(PLAN_TMEM));   \
    static const struct gemm_shape t##_shape = {                                    \
        p##_TILE_M, p##_TILE_N, c##_ROW_BYTES,   p##_PAIR_M, p##_PAIR_N,            \
        p##_PARTS,  p##_STAGES, p##_RASTER_ROWS, c##_D_ROWS, p##_CAN,               \
    };
#define TABLES(p, t)                                                                             \
    TABLES_OF(p, p, t)                                                                           \
    static const struct plan_range t##_shared[] = PLAN_RANGES(p##_SHARED(PLAN_SHARED));          \
    static const struct plan_handoff t##_handoffs[] = PLAN_HANDOFFS(p##_HANDOFFS(PLAN_HANDOFF)); \
    static const struct plan_flow t##_flows[] = PLAN_FLOWS(p##_FLOWS(PLAN_FLOW));
#define TABLES_HOPPER(p, t, KIND)                                   \
    TABLES_OF(SM90A_GEMM, p, t)                                     \
    static const struct plan_range t##_shared[] =                   \
        PLAN_RANGES(SM90A_GEMM_SHARED_##KIND(PLAN_SHARED, p));      \
    static const struct plan_handoff t##_handoffs[] =               \
        PLAN_HANDOFFS(SM90A_GEMM_HANDOFFS_##KIND(PLAN_HANDOFF, p)); \
    static const struct plan_flow t##_flows[] = PLAN_FLOWS(SM90A_GEMM_FLOWS_##KIND(PLAN_FLOW));

TABLES_HOPPER(SM90A_GEMM, sm_90a, WHOLE)
TABLES_HOPPER(SM90A_GEMM_PAIR, sm_90a_pair, WHOLE)
TABLES_HOPPER(SM90A_GEMM_WIDE, sm_90a_wide, WHOLE)
TABLES_HOPPER(SM90A_GEMM_SMALL, sm_90a_small, WHOLE)
TABLES_HOPPER(SM90A_GEMM_NARROW, sm_90a_narrow, WHOLE)
TABLES_HOPPER(SM90A_GEMM_SPLIT, sm_90a_split, PARTS)
TABLES_HOPPER(SM90A_GEMM_FLAT, sm_90a_flat, PARTS)
TABLES(SM100F_GEMM, sm_100f)

#define PLAN(c, p, t, real, name)                                                             \
    {                                                                                         \
        name,                                                                                 \
        {                                                                                     \
            .target = real, .family = "gemm", .text = "gemm", .threads = c##_THREADS,         \
            .dynamic_shared = p##_DYNAMIC_SHARED, .tmem_columns = c##_TMEM_COLUMNS,           \
            .cluster = p##_PAIR_M * p##_PAIR_N, .ctas_per_sm = c##_CTAS_PER_SM, .maps = maps, \
            .scalars = scalars, .roles = t##_roles, .shared = t##_shared, .tmem = t##_tmem,   \
            .handoffs = t##_handoffs, .flows = t##_flows, .gemm = &t##_shape                  \
        }                                                                                     \
    }

static const struct {
    const char *variant; /* as the module's name has it: "" none */
    struct plan plan;
} gemm_plans[] = {PLAN(SM90A_GEMM, SM90A_GEMM, sm_90a, "sm_90a", ""),
                  PLAN(SM90A_GEMM, SM90A_GEMM_PAIR, sm_90a_pair, "sm_90a", "pair"),
                  PLAN(SM90A_GEMM, SM90A_GEMM_WIDE, sm_90a_wide, "sm_90a", "wide"),
                  PLAN(SM90A_GEMM, SM90A_GEMM_SMALL, sm_90a_small, "sm_90a", "small"),
                  PLAN(SM90A_GEMM, SM90A_GEMM_NARROW, sm_90a_narrow, "sm_90a", "narrow"),
                  PLAN(SM90A_GEMM, SM90A_GEMM_SPLIT, sm_90a_split, "sm_90a", "split"),
                  PLAN(SM90A_GEMM, SM90A_GEMM_FLAT, sm_90a_flat, "sm_90a", "flat"),
                  PLAN(SM100F_GEMM, SM100F_GEMM, sm_100f, "sm_100f", "")};

static const struct plan *plan_gemm(const char *target, const char *variant)
{
    for (size_t i = 0; i < sizeof gemm_plans / sizeof *gemm_plans; i++)
        if (strcmp(gemm_plans[i].plan.target, target) == 0 &&
            strcmp(gemm_plans[i].variant, variant) == 0)
            return &gemm_plans[i].plan;
    return NULL;
}

#define MODULE(target, name) {#target, #name},
static const struct {
    const char *target, *name;
} modules[] = {HEWN_GEMM_MODULES(MODULE) HEWN_ATTENTION_MODULES(MODULE)};

static int find_plan(struct module_id *id)
{
    unsigned qk, v;
    char variant[16] = "";
    int end = 0;

    if (strcmp(id->name, "attention_combine") == 0) {
        id->plan = plan_attention_combine(id->target);
    } else if (sscanf(id->name, "gemm_%7[a-z0-9]_%7[a-z0-9]_%15[a-z0-9]", id->in, id->out,
                      variant) >= 2) {
        id->plan = plan_gemm(id->target, variant);
    } else if (sscanf(id->name, "attention_%7[a-z0-9]_%u_%u%n", id->in, &qk, &v, &end) == 3 &&
               !id->name[end]) {
        id->plan = plan_attention(id->target, qk, v, strcmp(id->in, "e4m3") == 0 ? 1 : 2);
    } else {
        return complain(id->name, "is none of gemm_<input dtype>_<output dtype>[_<variant>], "
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
