/* The decode plans as data: one plan a variant, its derived numbers checked. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/sm_100f/decode.plan.h"
#include "../../ptx/sm_90a/decode.plan.h"

#include <string.h>

static const char *const maps[] = PLAN_NAMES(DECODE_MAPS(PLAN_NAME, PLAN_NAME));
static const char *const maps_and_tails[] =
    PLAN_NAMES(DECODE_MAPS(PLAN_NAME, PLAN_NAME) SM100F_DECODE_TAIL_MAPS(PLAN_NAME));
static const struct plan_scalar scalars[] = PLAN_SCALARS(DECODE_SCALARS(PLAN_SCALAR));
static const struct plan_scalar mla_scalars[] =
    PLAN_SCALARS(DECODE_SCALARS(PLAN_SCALAR) SM100F_MLA_SCALARS(PLAN_SCALAR));
static const struct plan_range roles[] = PLAN_RANGES(SM90A_DECODE_ROLES(PLAN_ROLE));
static const struct plan_flow flows_1[] = PLAN_FLOWS(SM90A_DECODE_FLOWS(PLAN_FLOW, 1));
static const struct plan_flow flows_2[] = PLAN_FLOWS(SM90A_DECODE_FLOWS(PLAN_FLOW, 2));
static const struct plan_flow scaled_flows_1[] =
    PLAN_FLOWS(SM90A_DECODE_FLOWS(PLAN_FLOW, 1) SM90A_DECODE_SCALED_FLOWS(PLAN_FLOW));
#define scaled_flows_2 flows_2

/* Sums of 8 warps lie in tile_q, places of rows in tile_p. The tail of a block is zeroed while all of
 * its V is in the ring. */
#define CHECK(P, t, qk, v, h, e, n)                                                    \
    _Static_assert(P##_DECODE_DYNAMIC_SHARED(qk, e, n) + P##_DECODE_STATIC_BYTES(e) <= \
                       SM_SHARED_BYTES,                                                \
                   "shared memory");                                                   \
    _Static_assert(8 * 4 * (n) <= P##_DECODE_TILE_Q(qk, n) &&                          \
                       P##_DECODE_OUT_BYTES * (n) <= P##_DECODE_TILE_P(n),             \
                   "words at the end of a tile");                                      \
    _Static_assert(P##_DECODE_SLOTS(qk, e, n) >= P##_DECODE_UNITS(qk, qk, e) &&        \
                       P##_DECODE_SLOTS(qk, e, n) >= P##_DECODE_UNITS(v, qk, e) &&     \
                       P##_DECODE_SLOTS(qk, e, n) <= 32,                               \
                   "a block of K, then one of V, is in the ring at once");             \
    _Static_assert(24 * P##_DECODE_SLOTS(qk, e, n) +                                   \
                           ((e) == 1     ? 28                                          \
                            : (qk) == 64 ? 40                                          \
                                         : 20) *                                       \
                               (n) +                                                   \
                           96 <=                                                       \
                       P##_DECODE_STATIC_BYTES(e),                                     \
                   "STATIC_BYTES");                                                    \
    _Static_assert(P##_DECODE_CONSUMER_REGS(e) % 8 == 0, "registers move in steps of 8");

SM90A_DECODE_VARIANTS(CHECK)

#define TABLES(P, t, qk, v, h, e, n)                                               \
    static const struct plan_range t##_shared_##qk##_##v##_##h##_##e##_##n[] =     \
        PLAN_RANGES(P##_DECODE_SHARED(PLAN_SHARED, qk, v, e, n));                  \
    static const struct plan_handoff t##_handoffs_##qk##_##v##_##h##_##e##_##n[] = \
        PLAN_HANDOFFS(P##_DECODE_HANDOFFS(PLAN_HANDOFF_SPAN, qk, e, n));           \
    static const struct decode_shape t##_shape_##qk##_##v##_##h##_##e##_##n = {    \
        .qk_dim = qk,                                                              \
        .v_dim = v,                                                                \
        .heads = h,                                                                \
        .element = e,                                                              \
        .row_bytes = P##_DECODE_ROW(qk, e),                                        \
        .tile_rows = n,                                                            \
        .slots = P##_DECODE_SLOTS(qk, e, n),                                       \
    };

SM90A_DECODE_VARIANTS(TABLES)

static const struct plan_range no_ranges[] = PLAN_RANGES();

/* The two chunks of V that an MMA reads lie side by side. A wait skips no phase: decode.ptx. */
#define CHECK_BLACKWELL(P, t, qk, v, e, n)                                                      \
    _Static_assert(P##_DECODE_DYNAMIC_SHARED(qk, v, e, n) + P##_DECODE_STATIC_BYTES <=          \
                       SM_SHARED_BYTES,                                                         \
                   "shared memory");                                                            \
    _Static_assert((P##_DECODE_OUT_BYTES + 4 * P##_DECODE_SUMS(qk)) * (n) <=                    \
                       P##_DECODE_TILE_P(qk, e, n),                                             \
                   "words at the end of a tile");                                               \
    _Static_assert(P##_DECODE_SLOTS(qk, v, e, n) >= P##_DECODE_STEP_UNITS(qk, v, e) &&          \
                       P##_DECODE_SLOTS(qk, v, e, n) <= 32,                                     \
                   "a step is in the ring at once");                                            \
    _Static_assert((v) == 64 || P##_DECODE_V_SHARED(qk, e) || P##_DECODE_CHUNKS(qk) % 2 == 0 || \
                       P##_DECODE_SLOTS(qk, v, e, n) % P##_DECODE_STEP_UNITS(qk, v, e) == 0,    \
                   "two chunks of V lie side by side");                                         \
    _Static_assert(!P##_DECODE_S_BY_P(qk, e, n) ||                                              \
                       (P##_DECODE_SLOTS(qk, v, e, n) % P##_DECODE_STEP_UNITS(qk, v, e) == 0 && \
                        P##_DECODE_SLOTS(qk, v, e, n) >=                                        \
                            P##_DECODE_S_BUFFERS(e) * P##_DECODE_STEP_UNITS(qk, v, e)),         \
                   "QK runs ahead of PV");                                                      \
    _Static_assert(!P##_DECODE_RECORDS(e) || P##_DECODE_STAGES(qk, v, e, n) > 1,                \
                   "loads run ahead");                                                          \
    _Static_assert((e) != MLA_RECORD_584 ||                                                     \
                       P##_DECODE_STAGES(qk, v, e, n) == P##_DECODE_STEP_UNITS(qk, v, e) + 1,   \
                   "the stages are a step's");                                                  \
    _Static_assert(16 * P##_DECODE_SLOTS(qk, v, e, n) + ((e) == 2 ? 28 : 36) * (n) +            \
                           4 * P##_DECODE_WARPS(qk, e, n) + 144 <=                              \
                       P##_DECODE_STATIC_BYTES,                                                 \
                   "STATIC_BYTES");                                                             \
    _Static_assert(P##_DECODE_SOFTMAX_REGS(qk, e, n) % 8 == 0, "registers move in steps of 8"); \
    _Static_assert(P##_DECODE_TMEM_USED(v, e, n) <= P##_DECODE_TMEM_COLUMNS(v, e, n),           \
                   "TMEM_COLUMNS");

SM100F_DECODE_VARIANTS(CHECK_BLACKWELL)
SM100F_MLA_VARIANTS(CHECK_BLACKWELL)

static const struct plan_flow flows_100f_1[] = PLAN_FLOWS(SM100F_DECODE_FLOWS(PLAN_FLOW, 1));
static const struct plan_flow flows_100f_2[] = PLAN_FLOWS(SM100F_DECODE_FLOWS(PLAN_FLOW, 2));
static const struct plan_flow flows_100f_656[] = PLAN_FLOWS(SM100F_DECODE_FLOWS(PLAN_FLOW, 656));
static const struct plan_flow flows_100f_584[] = PLAN_FLOWS(SM100F_DECODE_FLOWS(PLAN_FLOW, 584));

#define TABLES_BLACKWELL(P, t, qk, v, e, n)                                  \
    static const struct plan_range t##_roles_##qk##_##v##_##e##_##n[] =      \
        PLAN_RANGES(P##_DECODE_ROLES(PLAN_ROLE, qk, e, n));                  \
    static const struct plan_range t##_shared_##qk##_##v##_##e##_##n[] =     \
        PLAN_RANGES(P##_DECODE_SHARED(PLAN_SHARED, qk, v, e, n));            \
    static const struct plan_range t##_tmem_##qk##_##v##_##e##_##n[] =       \
        PLAN_RANGES(P##_DECODE_TMEM(PLAN_TMEM, v, e, n));                    \
    static const struct plan_handoff t##_handoffs_##qk##_##v##_##e##_##n[] = \
        PLAN_HANDOFFS(P##_DECODE_HANDOFFS(PLAN_HANDOFF_SPAN, qk, e, n));     \
    static const struct decode_shape t##_shape_##qk##_##v##_##e##_##n = {    \
        .qk_dim = qk,                                                        \
        .v_dim = v,                                                          \
        .heads = 1,                                                          \
        .element = e,                                                        \
        .row_bytes = P##_DECODE_ROW(e),                                      \
        .tile_rows = n,                                                      \
        .slots = P##_DECODE_SLOTS(qk, v, e, n),                              \
    };

SM100F_DECODE_VARIANTS(TABLES_BLACKWELL)
SM100F_MLA_VARIANTS(TABLES_BLACKWELL)

#define PLAN_BLACKWELL(family_name, text_name, scalars_, P, t, qk, v, e, n) \
    {                                                                       \
        .target = #t,                                                       \
        .family = family_name,                                              \
        .text = text_name,                                                  \
        .threads = P##_DECODE_THREADS(qk, e, n),                            \
        .dynamic_shared = P##_DECODE_DYNAMIC_SHARED(qk, v, e, n),           \
        .tmem_columns = P##_DECODE_TMEM_COLUMNS(v, e, n),                   \
        .cluster = 1,                                                       \
        .ctas_per_sm = P##_DECODE_CTAS_PER_SM,                              \
        .maps = P##_DECODE_TAIL(qk) ? maps_and_tails : maps,                \
        .scalars = scalars_,                                                \
        .roles = t##_roles_##qk##_##v##_##e##_##n,                          \
        .shared = t##_shared_##qk##_##v##_##e##_##n,                        \
        .tmem = t##_tmem_##qk##_##v##_##e##_##n,                            \
        .handoffs = t##_handoffs_##qk##_##v##_##e##_##n,                    \
        .flows = flows_100f_##e,                                            \
        .decode = &t##_shape_##qk##_##v##_##e##_##n,                        \
    },
#define PLAN_DECODE(...) PLAN_BLACKWELL("decode", "decode", scalars, __VA_ARGS__)
#define PLAN_MLA(P, t, qk, v, e, n) \
    PLAN_BLACKWELL("mla", MLA_TEXT_##e, mla_scalars, P, t, qk, v, e, n)
#define MLA_TEXT_2   "mla"
#define MLA_TEXT_656 "mla_gather"
#define MLA_TEXT_584 "mla_gather"

#define PLAN(...)        PLAN_HOPPER(flows_, __VA_ARGS__)
#define PLAN_SCALED(...) PLAN_HOPPER(scaled_flows_, __VA_ARGS__)
#define PLAN_HOPPER(flows_of, P, t, qk, v, h, e, n)            \
    {                                                          \
        .target = #t,                                          \
        .family = "decode",                                    \
        .text = "decode",                                      \
        .threads = P##_DECODE_THREADS,                         \
        .dynamic_shared = P##_DECODE_DYNAMIC_SHARED(qk, e, n), \
        .cluster = 1,                                          \
        .ctas_per_sm = P##_DECODE_CTAS_PER_SM,                 \
        .maps = maps,                                          \
        .scalars = scalars,                                    \
        .roles = roles,                                        \
        .shared = t##_shared_##qk##_##v##_##h##_##e##_##n,     \
        .tmem = no_ranges,                                     \
        .handoffs = t##_handoffs_##qk##_##v##_##h##_##e##_##n, \
        .flows = flows_of##e,                                  \
        .decode = &t##_shape_##qk##_##v##_##h##_##e##_##n,     \
    },

/* The MLA variant is one of these texts on sm_100f, and a family of its own. */
static const struct plan plans[] = {SM90A_DECODE_VARIANTS(PLAN) SM100F_DECODE_VARIANTS(PLAN_DECODE)
                                        SM100F_MLA_VARIANTS(PLAN_MLA)};

/* With e4m3 keys beside bf16 rows. */
static const struct plan scaled_plans[] = {SM90A_DECODE_VARIANTS(PLAN_SCALED)};

static const struct plan *find(const struct plan *list, size_t count, const char *target,
                               const struct decode_shape *wanted)
{
    for (size_t i = 0; i < count; i++) {
        const struct decode_shape *s = list[i].decode;
        if (strcmp(list[i].target, target) == 0 && s->qk_dim == wanted->qk_dim &&
            s->v_dim == wanted->v_dim && s->heads == wanted->heads &&
            s->element == wanted->element && s->tile_rows == wanted->tile_rows)
            return &list[i];
    }
    return NULL;
}

const struct plan *plan_decode(const char *target, const char *in, unsigned qk, unsigned v,
                               unsigned heads, unsigned element, unsigned rows)
{
    const struct decode_shape wanted = {
        .qk_dim = qk, .v_dim = v, .heads = heads, .element = element, .tile_rows = rows};
    const struct plan *scaled = NULL;
    if (element == 1 && strcmp(in, "bf16") == 0)
        scaled = find(scaled_plans, sizeof scaled_plans / sizeof *scaled_plans, target, &wanted);
    return scaled ? scaled : find(plans, sizeof plans / sizeof *plans, target, &wanted);
}
