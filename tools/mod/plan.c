/* The plan headers as data, their derived numbers checked. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/modules.def"
#include "../../ptx/sm_100f/gemm.plan.h"
#include "../../ptx/sm_90a/gemm.plan.h"

#include <string.h>

static const char *const maps[] = PLAN_NAMES(GEMM_MAPS(PLAN_NAME, PLAN_NAME));
static const char *const odd_maps[] = PLAN_NAMES(GEMM_ODD_MAPS(PLAN_NAME, PLAN_NAME));
static const struct plan_scalar scalars[] = PLAN_SCALARS(GEMM_SCALARS(PLAN_SCALAR));

/* What every plan must satisfy: P is its target's prefix, v its variant. */
#define CHECK(P, t, v, kind)                                                              \
    _Static_assert(P##_GEMM_TILE_M(v) <= 256 && P##_GEMM_TILE_N(v) <= 256,                \
                   "a TMA box side is at most 256");                                      \
    _Static_assert(P##_GEMM_D_BYTES % SWIZZLE_REPEAT == 0 &&                              \
                       P##_GEMM_A_BYTES(v) % SWIZZLE_REPEAT == 0 &&                       \
                       P##_GEMM_B_BYTES(v) % SWIZZLE_REPEAT == 0,                         \
                   "tiles and boxes begin where the swizzle repeats");                    \
    _Static_assert(P##_GEMM_DYNAMIC_SHARED(v) + P##_GEMM_STATIC_BYTES <= SM_SHARED_BYTES, \
                   "shared memory");

/* Two consumer warpgroups of one or two blocks of 64 rows share the tile, behind one another or side by
 * side. */
#define CHECK_HOPPER(P, t, v, kind)                                                      \
    _Static_assert((P##_GEMM_GROUP_M(v) == 64 || P##_GEMM_GROUP_M(v) == 128) &&          \
                       2 * P##_GEMM_GROUP_M(v) * P##_GEMM_GROUP_N(v) ==                  \
                           P##_GEMM_TILE_M(v) * P##_GEMM_TILE_N(v),                      \
                   "GROUP_M");                                                           \
    _Static_assert(P##_GEMM_PAIR_M(v) * P##_GEMM_PAIR_N(v) <= 2 &&                       \
                       P##_GEMM_PAIR_M(v) * P##_GEMM_PAIR_N(v) * P##_GEMM_PARTS(v) <= 8, \
                   "a portable cluster has at most 8 CTAs");                             \
    _Static_assert(32 * P##_GEMM_STAGES(v) <= P##_GEMM_THREADS,                          \
                   "a warp makes a stage's barriers");                                   \
    CHECK_##kind(P, v)
#define CHECK_WHOLE(P, v)                                                         \
    _Static_assert(P##_GEMM_PARTS(v) == 1, "PARTS");                              \
    _Static_assert(P##_GEMM_D_BUFFERS(v) >= (P##_GEMM_GROUP_M(v) == 128 ? 3 : 2), \
                   "boxes staged at once");
/* Of `parts`, each gets (parts - 1) * ceil(ranges / parts) ranges of 32 columns at most: at most 12. */
#define CHECK_SHARES(P, v)                                              \
    _Static_assert(P##_GEMM_D_BUFFERS(v) >= 2, "boxes staged at once"); \
    CHECK_EXCHANGED(P, v)
#define CHECK_FITTED(P, v) CHECK_EXCHANGED(P, v)
#define CHECK_TALL(P, v)                                                                       \
    _Static_assert(P##_GEMM_GROUP_M(v) == 128 && P##_GEMM_GROUP_N(v) % 32 == 0 &&              \
                       P##_GEMM_PARTS(v) == 1 && P##_GEMM_PAIR_M(v) * P##_GEMM_PAIR_N(v) == 1, \
                   "a consumer has two ranges of rows of the MMA; nobody shares K");
#define CHECK_EXCHANGED(P, v)                                                                \
    _Static_assert(P##_GEMM_GROUP_M(v) == 64 && P##_GEMM_GROUP_N(v) >= 64 &&                 \
                       P##_GEMM_GROUP_N(v) % 16 == 0,                                        \
                   "ranges of 32 columns or half, two at least");                            \
    _Static_assert(P##_GEMM_AREA_BYTES(v) >= (P##_GEMM_GROUP_N(v) == 256   ? 12              \
                                              : P##_GEMM_GROUP_N(v) == 224 ? 10              \
                                              : P##_GEMM_GROUP_N(v) > 160  ? 8               \
                                                                           : 7) *             \
                                                 2048,                                       \
                   "sums of other parts");                                                   \
    _Static_assert(P##_GEMM_PAIR_M(v) * P##_GEMM_PAIR_N(v) == 1, "mode says what a cluster " \
                                                                 "shares");
#define CHECK_PARTS(P, v)                                                                     \
    _Static_assert(P##_GEMM_GROUP_N(v) == 8 * GEMM_PART_BLOCKS, "a warp's sums are 16 x 64"); \
    _Static_assert(P##_GEMM_PAIR_M(v) * P##_GEMM_PAIR_N(v) == 1,                              \
                   "all CTAs of the cluster are parts");

#define CHECK_LOOSE(P, v) CHECK_PARTS(P, v)
#define CHECK_GLU(P, v)                                             \
    CHECK_SHARES(P, v)                                              \
    _Static_assert(                                                 \
        P##_GEMM_TILE_M(v) == 128 && P##_GEMM_TILE_N(v) % 128 == 0, \
        "a warpgroup has both factors of its columns, in ranges of 32, an even number");
/* The least box is a quarter of a tile: whole rows of 128 bytes, 16 of them. */
#define CHECK_SPREAD(P, v)                                                                   \
    _Static_assert(P##_GEMM_D_BUFFERS(v) >= (P##_GEMM_GROUP_N(v) > 64 ? 2 : 1),              \
                   "boxes staged at once");                                                  \
    _Static_assert(P##_GEMM_PARTS(v) == 1 && P##_GEMM_PAIR_M(v) * P##_GEMM_PAIR_N(v) == 1 && \
                       P##_GEMM_TILE_M(v) % 4 == 0 && P##_GEMM_TILE_N(v) % 4 == 0,           \
                   "mode says what a cluster shares");

/* Sums of other parts lie in the rings as with SHARES. A part of one k-block has units for all warps, or
 * the host gives it two. */
#define CHECK_ODD(P, v)                                                                       \
    _Static_assert(P##_GEMM_GROUP_M(v) == 64 && P##_GEMM_TILE_M(v) == 128 &&                  \
                       P##_GEMM_TILE_N(v) % P##_GEMM_UNIT_ROWS == 0 && P##_GEMM_SHARES(v) &&  \
                       P##_GEMM_PAIR_M(v) * P##_GEMM_PAIR_N(v) == 1,                          \
                   "units of 64 rows, nobody shares loads");                                  \
    _Static_assert(P##_GEMM_LAND(v) % 128 == 0 && P##_GEMM_LAND_BOX_BYTES % 128 == 0,         \
                   "boxes of TMA begin on 128 bytes");                                        \
    _Static_assert(P##_GEMM_ALL_LANDS(v) <= P##_GEMM_THREADS / 32,                            \
                   "a warp makes a barrier of the slots");                                    \
    _Static_assert(P##_GEMM_AREA_BYTES(v) >= 6 * 2048 &&                                      \
                       P##_GEMM_PARTS(v) <= (P##_GEMM_GROUP_N(v) > 128 ? 4 : 7),              \
                   "sums of other parts");                                                    \
    _Static_assert(2 * P##_GEMM_UNITS(v) >= P##_GEMM_PRODUCER_WARPS, "two k-blocks for all"); \
    _Static_assert(P##_GEMM_STAGES(v) >= 2, "a warp's units are up to two k-blocks apart");

/* A lane of tensor memory is a row of the tile. A pair's tile is one MMA of 256 rows. */
#define CHECK_BLACKWELL(P, t, v, kind)                                                         \
    _Static_assert(P##_GEMM_EPILOGUE_WARPS * P##_GEMM_D_ROWS == P##_GEMM_TILE_M(v), "D_ROWS"); \
    _Static_assert(P##_GEMM_TILE_N(v) <= P##_GEMM_ACC_COLUMNS && P##_GEMM_TILE_N(v) % 64 == 0, \
                   "an accumulator's columns, whole boxes of output");                         \
    _Static_assert(P##_GEMM_STAGES(v) >= P##_GEMM_ACCUMULATORS && P##_GEMM_STAGES(v) <= 32,    \
                   "a thread of warp 0 makes the barriers of a stage and of an accumulator");  \
    CHECK_GATED_##kind(P, v)

#define CHECK_GATED_WHOLE(P, v) _Static_assert(P##_GEMM_SIDES(v) == 1, "SIDES");
#define CHECK_GATED_SIDES(P, v)                                                               \
    _Static_assert(P##_GEMM_SIDES(v) == 2 && P##_GEMM_PAIR_M(v) == 2 &&                       \
                       P##_GEMM_LOAD_N(v) % GEMM_MN_BOX && !(P##_GEMM_CAN(v) & GEMM_CAN_GLU), \
                   "pairs whose operands are K-major (LOAD_A)");
#define CHECK_GATED_LOOSE(P, v)                                          \
    _Static_assert(P##_GEMM_TILE_M(v) >= 16 * P##_GEMM_PRODUCERS(v) &&   \
                       P##_GEMM_TILE_N(v) >= 16 * P##_GEMM_PRODUCERS(v), \
                   "a warp of the producer has 16 rows (inc/loose.inc)");
#define CHECK_GATED_GATED(P, v) \
    _Static_assert(P##_GEMM_TILE_N(v) % GEMM_D_ROW_BYTES == 0, "half of it is whole boxes");

SM90A_GEMM_VARIANTS(CHECK)
SM90A_GEMM_VARIANTS(CHECK_HOPPER)
SM100F_GEMM_VARIANTS(CHECK)
SM100F_GEMM_VARIANTS(CHECK_BLACKWELL)

/* Of 2 to 8 parts, 7 send the most slots to each: (parts - 1) * ceil(blocks / parts). */
_Static_assert(GEMM_PART_SLOTS == 6 * ((GEMM_PART_BLOCKS + 6) / 7), "GEMM_PART_SLOTS");
_Static_assert(SM90A_GEMM_CONSUMER_REGS % 8 == 0, "setmaxnreg moves registers in steps of 8");
_Static_assert(SM100F_GEMM_TMEM_COLUMNS <= 512, "TMEM_COLUMNS");

/* ODD_<kind>: whether the kernel has a tensor map for every class of rows. */
#define ODD_WHOLE     0
#define ODD_PARTS     0
#define ODD_LOOSE     0
#define ODD_SHARES    0
#define ODD_EXCHANGED 0
#define ODD_FITTED    0
#define ODD_TALL      0
#define ODD_GLU       0
#define ODD_SPREAD    0
#define ODD_GATED     0
#define ODD_SIDES     0
#define ODD_ODD       1

#define TABLES(P, t, v, kind)                                                                      \
    static const struct plan_range t##_##v##_roles[] = PLAN_RANGES(P##_GEMM_ROLES(PLAN_ROLE, v));  \
    static const struct plan_range t##_##v##_tmem[] = PLAN_RANGES(P##_GEMM_TMEM(PLAN_TMEM));       \
    static const struct plan_range t##_##v##_shared[] =                                            \
        PLAN_RANGES(P##_GEMM_SHARED(PLAN_SHARED, v, kind));                                        \
    static const struct plan_handoff t##_##v##_handoffs[] =                                        \
        PLAN_HANDOFFS(P##_GEMM_HANDOFFS(PLAN_HANDOFF_SPAN, v, kind));                              \
    static const struct plan_flow t##_##v##_flows[] = PLAN_FLOWS(P##_GEMM_FLOWS(PLAN_FLOW, kind)); \
    static const struct gemm_shape t##_##v##_shape = {                                             \
        .tile_m = P##_GEMM_TILE_M(v),                                                              \
        .tile_n = P##_GEMM_TILE_N(v),                                                              \
        .row_bytes = GEMM_ROW_BYTES,                                                               \
        .pair_m = P##_GEMM_PAIR_M(v),                                                              \
        .pair_n = P##_GEMM_PAIR_N(v),                                                              \
        .parts = P##_GEMM_PARTS(v),                                                                \
        .stages = P##_GEMM_STAGES(v),                                                              \
        .raster_rows = P##_GEMM_RASTER_ROWS(v),                                                    \
        .d_rows = P##_GEMM_D_ROWS,                                                                 \
        .can = P##_GEMM_CAN(v),                                                                    \
        .odd = ODD_##kind,                                                                         \
        .glu = (P##_GEMM_CAN(v) & GEMM_CAN_GLU) != 0,                                              \
        .variant_kind = #kind,                                                                     \
    };

SM90A_GEMM_VARIANTS(TABLES)
SM100F_GEMM_VARIANTS(TABLES)

#define PLAN(P, t, v, kind)                                     \
    {                                                           \
        #v,                                                     \
        {                                                       \
            .target = #t,                                       \
            .family = "gemm",                                   \
            .text = "gemm",                                     \
            .threads = P##_GEMM_ALL_THREADS(v),                 \
            .dynamic_shared = P##_GEMM_DYNAMIC_SHARED(v),       \
            .tmem_columns = P##_GEMM_TMEM_COLUMNS,              \
            .cluster = P##_GEMM_PAIR_M(v) * P##_GEMM_PAIR_N(v), \
            .ctas_per_sm = P##_GEMM_CTAS_PER_SM,                \
            .maps = ODD_##kind ? odd_maps : maps,               \
            .scalars = scalars,                                 \
            .roles = t##_##v##_roles,                           \
            .shared = t##_##v##_shared,                         \
            .tmem = t##_##v##_tmem,                             \
            .handoffs = t##_##v##_handoffs,                     \
            .flows = t##_##v##_flows,                           \
            .gemm = &t##_##v##_shape,                           \
        },                                                      \
    },

static const struct {
    const char *variant;
    struct plan plan;
} gemm_plans[] = {SM90A_GEMM_VARIANTS(PLAN) SM100F_GEMM_VARIANTS(PLAN)};

static const struct plan *plan_gemm(const char *target, const char *variant)
{
    if (strcmp(variant, "few") == 0) return plan_gemm_few(target);
    if (strcmp(variant, "glufew") == 0) return plan_gemm_glufew(target);
    if (strcmp(variant, "oddfew") == 0) return plan_gemm_oddfew(target);
    if (strcmp(variant, "oddsmall") == 0) return plan_gemm_oddsmall(target);
    for (size_t i = 0; i < sizeof gemm_plans / sizeof *gemm_plans; i++)
        if (strcmp(gemm_plans[i].plan.target, target) == 0 &&
            strcmp(gemm_plans[i].variant, variant) == 0)
            return &gemm_plans[i].plan;
    return NULL;
}

#define MODULE(target, name) {#target, #name},
static const struct {
    const char *target, *name;
} modules[] = {HEWN_GEMM_MODULES(MODULE) HEWN_ATTENTION_MODULES(MODULE) HEWN_DECODE_MODULES(MODULE)
                   HEWN_MLA_MODULES(MODULE) HEWN_INDEXER_MODULES(MODULE) HEWN_TOPK_MODULES(MODULE)
                       HEWN_GROUPED_MODULES(MODULE) HEWN_W4_MODULES(MODULE)
                           HEWN_ENGINE_MODULES(MODULE)};

static int find_plan(struct module_id *id)
{
    unsigned qk, v, rows, heads = 1, queries;
    char variant[16] = "";
    int end = 0;

    if (strcmp(id->name, "attention_combine") == 0) {
        id->plan = plan_attention_combine(id->target);
    } else if (strcmp(id->name, "gemm_combine") == 0) {
        id->plan = plan_combine(id->target, id->name);
    } else if (sscanf(id->name, "gemm_%7[a-z0-9]_%7[a-z0-9]_%15[a-z0-9]", id->in, id->out,
                      variant) >= 2) {
        id->plan = plan_gemm(id->target, *variant ? variant : "plain");
    } else if (sscanf(id->name, "attention_%7[a-z0-9]_%u_%u%n", id->in, &qk, &v, &end) == 3 &&
               (!id->name[end] || strcmp(id->name + end, "_cap") == 0 ||
                strcmp(id->name + end, "_sums") == 0 || strcmp(id->name + end, "_pages") == 0)) {
        id->plan = plan_attention(id->target, qk, v, strcmp(id->in, "e4m3") == 0 ? 1 : 2,
                                  strcmp(id->name + end, "_sums") == 0);
    } else if (sscanf(id->name, "decode_%7[a-z0-9]_%u_%u_%u%n", id->in, &qk, &v, &rows, &end) ==
               4) {
        const char *rest = id->name + end;
        unsigned element = strncmp(rest, "_e4m3", 5) == 0 ? 1 : 2;
        rest += element == 1 ? 5 : 0;
        if (!*rest || sscanf(rest, "_x%u", &heads) == 1)
            id->plan = plan_decode(id->target, id->in, qk, v, heads, element, rows);
    } else if (strcmp(id->name, "decode_combine") == 0 || strcmp(id->name, "mla_combine") == 0) {
        id->plan = plan_combine(id->target, id->name);
    } else if (sscanf(id->name, "mla_%7[a-z0-9]_%15[a-z0-9_]", id->in, variant) >= 1) {
        id->plan = plan_mla(id->target, variant);
    } else if (sscanf(id->name, "indexer_%7[a-z0-9]_%u_%u%n", id->in, &heads, &queries, &end) ==
                   3 &&
               !id->name[end]) {
        id->plan = plan_indexer(id->target, heads, queries);
    } else if (strcmp(id->name, "topk_f32") == 0) {
        id->plan = plan_topk(id->target);
    } else if (sscanf(id->name, "grouped_sum_%7[a-z0-9]_%7[a-z0-9]%n", id->in, id->out, &end) ==
                   2 &&
               !id->name[end]) {
        id->plan = plan_grouped_sum(id->target);
    } else if (sscanf(id->name, "grouped_%7[a-z0-9]_%7[a-z0-9]_%15[a-z0-9_]", id->in, id->out,
                      variant) == 3) {
        id->plan = plan_scaled(id->target, id->in, id->out, variant);
        if (!id->plan) id->plan = plan_grouped(id->target, variant);
    } else if (sscanf(id->name, "w4_%7[a-z0-9]_%15[a-z0-9]_%u%n", id->in, variant, &rows, &end) ==
                   3 &&
               !id->name[end]) {
        id->plan = plan_w4(id->target, variant, rows);
    } else if (sscanf(id->name, "engine_%15[a-z0-9]_%7[a-z0-9]%n", variant, id->in, &end) == 2 &&
               !id->name[end]) {
        id->plan = plan_engine(id->target, variant);
    } else {
        return complain(
            id->name,
            "is none of gemm_<input dtype>_<output dtype>[_<variant>], gemm_combine, "
            "attention_<input dtype>_<qk_dim>_<v_dim>[_cap, _sums or _pages], attention_combine, "
            "decode_<input dtype>_<qk_dim>_<v_dim>_<rows>[_e4m3][_x<heads>], decode_combine, "
            "mla_<input dtype>[_rows or _<record>[x<rows>][_two]], mla_combine, "
            "indexer_<input dtype>_<heads>_<queries>, topk_f32, "
            "grouped_<input dtype>_<output dtype>_<variant>[_rows], "
            "grouped_sum_<input dtype>_<output dtype>, "
            "w4_<dtype of X>_<format>_<width>, engine_<kernel>_<dtype>");
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
