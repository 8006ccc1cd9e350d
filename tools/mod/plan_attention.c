/* The attention plans as data: one plan a target and variant, its derived numbers checked. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/sm_100f/attention.plan.h"
#include "../../ptx/sm_90a/attention.plan.h"
#include "../../ptx/sm_90a/attention_e4m3.plan.h"

#include <string.h>

static const char *const maps[] = PLAN_NAMES(ATTENTION_MAPS(PLAN_NAME, PLAN_NAME));
static const struct plan_scalar scalars[] = PLAN_SCALARS(ATTENTION_SCALARS(PLAN_SCALAR));

/* What a variant must satisfy beside what the plan headers compute. */
#define CHECK(P, t, qk, v, e)                                                               \
    _Static_assert(P##_ATTENTION_DYNAMIC_SHARED(qk, e) + P##_ATTENTION_STATIC_BYTES <=      \
                       SM_SHARED_BYTES,                                                     \
                   "shared memory");                                                        \
    _Static_assert(P##_ATTENTION_V_HALVES(v) * P##_ATTENTION_ITEM_V(v) == (v), "V_HALVES"); \
    _Static_assert(P##_ATTENTION_THREADS(qk) <= 1024, "THREADS");
#define CHECK_HOPPER(P, t, qk, v, e)                                      \
    _Static_assert(P##_ATTENTION_CONSUMER_REGS(qk, 0) % 8 == 0 &&         \
                       P##_ATTENTION_CONSUMER_REGS(qk, 1) % 8 == 0,       \
                   "registers move in steps of 8");                       \
    _Static_assert(P##_ATTENTION_SLOT_V(qk, v) * P##_ATTENTION_V_BOX(v) * \
                           P##_ATTENTION_V_BOXES(v) ==                    \
                       P##_ATTENTION_SLOT(qk),                            \
                   "units of V fill a slot");
#define CHECK_BLACKWELL(P, t, qk, v, e)                                                \
    _Static_assert(P##_ATTENTION_O_COLUMN +                                            \
                           (P##_ATTENTION_ITEM_TILES(qk) - 1) * P##_ATTENTION_O_STEP + \
                           P##_ATTENTION_ITEM_V(v) <=                                  \
                       P##_ATTENTION_TMEM_COLUMNS,                                     \
                   "S and O of every tile fit the tensor memory");                     \
    _Static_assert(P##_ATTENTION_ITEM_TILES(qk) == 1 ||                                \
                       P##_ATTENTION_ITEM_V(v) <= P##_ATTENTION_O_STEP,                \
                   "O_STEP");                                                          \
    _Static_assert(P##_ATTENTION_ISSUE_REGS(qk) % 8 == 0, "registers move in steps of 8");

/* Whether the variants of a prefix promote their sums. */
#define IS_SUMS_SM90A           0
#define IS_SUMS_SM90A_E4M3      0
#define IS_SUMS_SM90A_E4M3_SUMS 1
#define IS_SUMS_SM100F          0

#define TABLES(P, t, qk, v, e)                                              \
    static const struct plan_range P##_roles_##qk##_##v##_##e[] =           \
        PLAN_RANGES(P##_ATTENTION_ROLES(PLAN_ROLE, qk));                    \
    static const struct plan_range P##_shared_##qk##_##v##_##e[] =          \
        PLAN_RANGES(P##_ATTENTION_SHARED(PLAN_SHARED, qk, v, e));           \
    static const struct plan_range P##_tmem_##qk##_##v##_##e[] =            \
        PLAN_RANGES(P##_ATTENTION_TMEM(PLAN_TMEM, qk, v));                  \
    static const struct plan_handoff P##_handoffs_##qk##_##v##_##e[] =      \
        PLAN_HANDOFFS(P##_ATTENTION_HANDOFFS(PLAN_HANDOFF_SPAN, qk, v, e)); \
    static const struct plan_flow P##_flows_##qk##_##v##_##e[] =            \
        PLAN_FLOWS(P##_ATTENTION_FLOWS(PLAN_FLOW, qk, v, e));               \
    static const struct attention_shape P##_shape_##qk##_##v##_##e = {      \
        .qk_dim = qk,                                                       \
        .v_dim = v,                                                         \
        .element = e,                                                       \
        .tile_rows = P##_ATTENTION_TILE_ROWS,                               \
        .item_tiles = P##_ATTENTION_ITEM_TILES(qk),                         \
        .v_halves = P##_ATTENTION_V_HALVES(v),                              \
        .row_bytes = P##_ATTENTION_ROW_BYTES,                               \
        .box_v = P##_ATTENTION_BOX_V(v),                                    \
        .slots = P##_ATTENTION_SLOTS(qk, e),                                \
        .sums = IS_SUMS_##P,                                                \
    };

SM90A_ATTENTION_VARIANTS(CHECK)
SM90A_ATTENTION_VARIANTS(CHECK_HOPPER)
SM90A_ATTENTION_VARIANTS(TABLES)
SM90A_E4M3_ATTENTION_VARIANTS(CHECK)
SM90A_E4M3_ATTENTION_VARIANTS(TABLES)
SM90A_E4M3_SUMS_ATTENTION_VARIANTS(CHECK)
SM90A_E4M3_SUMS_ATTENTION_VARIANTS(TABLES)
SM100F_ATTENTION_VARIANTS(CHECK)
SM100F_ATTENTION_VARIANTS(CHECK_BLACKWELL)
SM100F_ATTENTION_VARIANTS(TABLES)

#define PLAN(P, t, qk, v, e)                                   \
    {                                                          \
        .target = #t,                                          \
        .family = "attention",                                 \
        .text = "attention",                                   \
        .threads = P##_ATTENTION_THREADS(qk),                  \
        .dynamic_shared = P##_ATTENTION_DYNAMIC_SHARED(qk, e), \
        .tmem_columns = P##_ATTENTION_TMEM_COLUMNS,            \
        .cluster = 1,                                          \
        .ctas_per_sm = P##_ATTENTION_CTAS_PER_SM,              \
        .maps = maps,                                          \
        .scalars = scalars,                                    \
        .roles = P##_roles_##qk##_##v##_##e,                   \
        .shared = P##_shared_##qk##_##v##_##e,                 \
        .tmem = P##_tmem_##qk##_##v##_##e,                     \
        .handoffs = P##_handoffs_##qk##_##v##_##e,             \
        .flows = P##_flows_##qk##_##v##_##e,                   \
        .attention = &P##_shape_##qk##_##v##_##e,              \
    },

static const struct plan plans[] = {SM90A_ATTENTION_VARIANTS(PLAN) SM90A_E4M3_ATTENTION_VARIANTS(
    PLAN) SM90A_E4M3_SUMS_ATTENTION_VARIANTS(PLAN) SM100F_ATTENTION_VARIANTS(PLAN)};

const struct plan *plan_attention(const char *target, unsigned qk, unsigned v, unsigned element,
                                  int sums)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const struct attention_shape *s = plans[i].attention;
        if (strcmp(plans[i].target, target) == 0 && s->qk_dim == qk && s->v_dim == v &&
            s->element == element && s->sums == sums)
            return &plans[i];
    }
    return NULL;
}

/* ---- the combine kernel: no maps, no roles -- */

static const char *const no_maps[] = {NULL};
static const struct plan_scalar combine_scalars[] =
    PLAN_SCALARS(ATTENTION_COMBINE_SCALARS(PLAN_SCALAR));
static const struct plan_range no_ranges[] = PLAN_RANGES();
static const struct plan_handoff no_handoffs[] = PLAN_HANDOFFS();
static const struct plan_flow no_flows[] = PLAN_FLOWS();

#define COMBINE(t)                                                                              \
    {                                                                                           \
        .target = #t, .family = "attention", .text = "attention_combine",                       \
        .threads = 32 * ATTENTION_COMBINE_ROWS, .cluster = 1, .maps = no_maps,                  \
        .scalars = combine_scalars, .roles = no_ranges, .shared = no_ranges, .tmem = no_ranges, \
        .handoffs = no_handoffs, .flows = no_flows                                              \
    }

static const struct plan combine_plans[] = {COMBINE(sm_90a), COMBINE(sm_100f)};

const struct plan *plan_attention_combine(const char *target)
{
    for (size_t i = 0; i < sizeof combine_plans / sizeof *combine_plans; i++)
        if (strcmp(combine_plans[i].target, target) == 0) return &combine_plans[i];
    return NULL;
}
