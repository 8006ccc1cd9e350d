/* The decode plans as data: one plan a variant, its derived numbers checked. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/sm_90a/decode.plan.h"

#include <string.h>

static const char *const maps[] = PLAN_NAMES(DECODE_MAPS(PLAN_NAME, PLAN_NAME));
static const struct plan_scalar scalars[] = PLAN_SCALARS(DECODE_SCALARS(PLAN_SCALAR));
static const struct plan_range roles[] = PLAN_RANGES(SM90A_DECODE_ROLES(PLAN_ROLE));
static const struct plan_flow flows_1[] = PLAN_FLOWS(SM90A_DECODE_FLOWS(PLAN_FLOW, 1));
static const struct plan_flow flows_2[] = PLAN_FLOWS(SM90A_DECODE_FLOWS(PLAN_FLOW, 2));

/* Sums of 8 warps lie in tile_q, places of rows in tile_p. The tail of a block is zeroed while all of
 * its V is in the ring. */
#define CHECK(P, t, qk, v, e, n)                                                        \
    _Static_assert(P##_DECODE_DYNAMIC_SHARED(qk, e, n) + P##_DECODE_STATIC_BYTES(e) <=  \
                       SM_SHARED_BYTES,                                                 \
                   "shared memory");                                                    \
    _Static_assert(8 * 4 * (n) <= P##_DECODE_TILE_Q(qk, n) &&                           \
                       P##_DECODE_OUT_BYTES * (n) <= P##_DECODE_TILE_P(n),              \
                   "words at the end of a tile");                                       \
    _Static_assert(P##_DECODE_SLOTS(qk, e, n) >= P##_DECODE_UNITS(qk, qk, e) &&         \
                       P##_DECODE_SLOTS(qk, e, n) >= P##_DECODE_UNITS(v, qk, e) &&      \
                       P##_DECODE_SLOTS(qk, e, n) <= 32,                                \
                   "a block of K, then one of V, is in the ring at once");              \
    _Static_assert(24 * P##_DECODE_SLOTS(qk, e, n) + ((e) == 1 ? 28 : 20) * (n) + 96 <= \
                       P##_DECODE_STATIC_BYTES(e),                                      \
                   "STATIC_BYTES");                                                     \
    _Static_assert(P##_DECODE_CONSUMER_REGS(e) % 8 == 0, "registers move in steps of 8");

SM90A_DECODE_VARIANTS(CHECK)

#define TABLES(P, t, qk, v, e, n)                                            \
    static const struct plan_range t##_shared_##qk##_##v##_##e##_##n[] =     \
        PLAN_RANGES(P##_DECODE_SHARED(PLAN_SHARED, qk, v, e, n));            \
    static const struct plan_handoff t##_handoffs_##qk##_##v##_##e##_##n[] = \
        PLAN_HANDOFFS(P##_DECODE_HANDOFFS(PLAN_HANDOFF_SPAN, qk, e, n));     \
    static const struct decode_shape t##_shape_##qk##_##v##_##e##_##n = {    \
        .qk_dim = qk,                                                        \
        .v_dim = v,                                                          \
        .element = e,                                                        \
        .row_bytes = P##_DECODE_ROW(qk, e),                                  \
        .tile_rows = n,                                                      \
        .slots = P##_DECODE_SLOTS(qk, e, n),                                 \
    };

SM90A_DECODE_VARIANTS(TABLES)

static const struct plan_range no_ranges[] = PLAN_RANGES();

#define PLAN(P, t, qk, v, e, n)                                \
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
        .shared = t##_shared_##qk##_##v##_##e##_##n,           \
        .tmem = no_ranges,                                     \
        .handoffs = t##_handoffs_##qk##_##v##_##e##_##n,       \
        .flows = flows_##e,                                    \
        .decode = &t##_shape_##qk##_##v##_##e##_##n,           \
    },

static const struct plan plans[] = {SM90A_DECODE_VARIANTS(PLAN)};

const struct plan *plan_decode(const char *target, unsigned qk, unsigned v, unsigned element,
                               unsigned rows)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const struct decode_shape *s = plans[i].decode;
        if (strcmp(plans[i].target, target) == 0 && s->qk_dim == qk && s->v_dim == v &&
            s->element == element && s->tile_rows == rows)
            return &plans[i];
    }
    return NULL;
}
