/* The plans of the indexer and of top-k as data, their derived numbers checked, and what their manifests say
 * of the problem. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/inc/topk.plan.h"
#include "../../ptx/sm_100f/indexer.plan.h"
#include "../../ptx/sm_90a/indexer.plan.h"

#include <string.h>

static const char *const maps[] = PLAN_NAMES(INDEXER_MAPS(PLAN_NAME, PLAN_NAME));
static const struct plan_scalar scalars[] = PLAN_SCALARS(INDEXER_SCALARS(PLAN_SCALAR));
static const struct plan_range sm_90a_roles[] = PLAN_RANGES(SM90A_INDEXER_ROLES(PLAN_ROLE));
static const struct plan_range sm_100f_roles[] = PLAN_RANGES(SM100F_INDEXER_ROLES(PLAN_ROLE));
static const struct plan_flow sm_90a_flows[] = PLAN_FLOWS(SM90A_INDEXER_FLOWS(PLAN_FLOW));
static const struct plan_flow sm_100f_flows[] = PLAN_FLOWS(SM100F_INDEXER_FLOWS(PLAN_FLOW));
static const struct plan_range no_ranges[] = PLAN_RANGES();

#define CHECK(P, t, h, n)                                                                          \
    _Static_assert(P##_INDEXER_DYNAMIC_SHARED(h, n) + P##_INDEXER_STATIC_BYTES <= SM_SHARED_BYTES, \
                   "shared memory");                                                               \
    _Static_assert(P##_INDEXER_TILE_Q(h, n) % SWIZZLE_REPEAT == 0,                                 \
                   "tiles begin where the swizzle "                                                \
                   "repeats");                                                                     \
    _Static_assert((h) * (n) == 64 || (h) * (n) == 128 || (h) * (n) == 256, "columns of the MMA");

SM90A_INDEXER_VARIANTS(CHECK)
SM100F_INDEXER_VARIANTS(CHECK)

#define CHECK_BLACKWELL(P, t, h, n)                                                                \
    _Static_assert(P##_INDEXER_BUFFERS(h, n) == 1 << P##_INDEXER_LOG_BUFFERS(h, n) &&              \
                       P##_INDEXER_BUFFERS(h, n) >= P##_INDEXER_GROUPS,                            \
                   "a buffer of S for each warpgroup");                                            \
    _Static_assert(P##_INDEXER_TMEM_COLUMNS(h, n) == 256 || P##_INDEXER_TMEM_COLUMNS(h, n) == 512, \
                   "TMEM_COLUMNS");

SM100F_INDEXER_VARIANTS(CHECK_BLACKWELL)

_Static_assert(SM100F_INDEXER_SLOTS == 1 << SM100F_INDEXER_LOG_SLOTS && SM100F_INDEXER_TILES == 2 &&
                   SM100F_INDEXER_BLOCK == 1 << SM100F_INDEXER_LOG_BLOCK,
               "powers of two");

_Static_assert(SM90A_INDEXER_PRODUCER_REGS + 2 * SM90A_INDEXER_CONSUMER_REGS <= SM_REGISTERS / 128,
               "registers");
_Static_assert(SM90A_INDEXER_SLOTS == 1 << SM90A_INDEXER_LOG_SLOTS && SM90A_INDEXER_TILES == 2,
               "powers of two");
_Static_assert(SM90A_INDEXER_BLOCK == 1 << SM90A_INDEXER_LOG_BLOCK, "a power of two");

#define TABLES(P, t, h, n)                                                            \
    static const struct plan_range t##_shared_##h##_##n[] =                           \
        PLAN_RANGES(P##_INDEXER_SHARED(PLAN_SHARED, h, n));                           \
    static const struct plan_handoff t##_handoffs_##h##_##n[] =                       \
        PLAN_HANDOFFS(P##_INDEXER_HANDOFFS(PLAN_HANDOFF_SPAN, h, n));                 \
    static const struct indexer_shape t##_shape_##h##_##n = {h, n, P##_INDEXER_BLOCK, \
                                                             P##_INDEXER_SLOTS};

SM90A_INDEXER_VARIANTS(TABLES)
SM100F_INDEXER_VARIANTS(TABLES)

#define TABLE_BLACKWELL(P, t, h, n)                       \
    static const struct plan_range t##_tmem_##h##_##n[] = \
        PLAN_RANGES(P##_INDEXER_TMEM(PLAN_TMEM, h, n));

SM100F_INDEXER_VARIANTS(TABLE_BLACKWELL)

#define PLAN(P, t, h, n) PLAN_OF(P, t, h, n, 0, no_ranges)
#define PLAN_BLACKWELL(P, t, h, n) \
    PLAN_OF(P, t, h, n, P##_INDEXER_TMEM_COLUMNS(h, n), t##_tmem_##h##_##n)
#define PLAN_OF(P, t, h, n, columns, tmem_)                 \
    {                                                       \
        .target = #t,                                       \
        .family = "indexer",                                \
        .text = "indexer",                                  \
        .threads = P##_INDEXER_THREADS,                     \
        .dynamic_shared = P##_INDEXER_DYNAMIC_SHARED(h, n), \
        .tmem_columns = columns,                            \
        .cluster = 1,                                       \
        .ctas_per_sm = P##_INDEXER_CTAS_PER_SM,             \
        .maps = maps,                                       \
        .scalars = scalars,                                 \
        .roles = t##_roles,                                 \
        .shared = t##_shared_##h##_##n,                     \
        .tmem = tmem_,                                      \
        .handoffs = t##_handoffs_##h##_##n,                 \
        .flows = t##_flows,                                 \
        .indexer = &t##_shape_##h##_##n,                    \
    },

static const struct plan plans[] = {SM90A_INDEXER_VARIANTS(PLAN)
                                        SM100F_INDEXER_VARIANTS(PLAN_BLACKWELL)};

const struct plan *plan_indexer(const char *target, unsigned heads, unsigned queries)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const struct indexer_shape *s = plans[i].indexer;
        if (strcmp(plans[i].target, target) == 0 && s->heads == heads && s->queries == queries)
            return &plans[i];
    }
    return NULL;
}

/* ---- top-k -- */

_Static_assert(TOPK_BINS == 2 * TOPK_THREADS && TOPK_MAX_K <= 2 * TOPK_THREADS,
               "two bins and two of the largest keys a thread");
_Static_assert(2 * 4 * TOPK_BINS + 8 * TOPK_WARPS + 32 <= TOPK_STATIC_BYTES, "STATIC_BYTES");

static const char *const no_maps[] = {NULL};
static const struct plan_scalar topk_scalars[] = PLAN_SCALARS(TOPK_SCALARS(PLAN_SCALAR));
static const struct plan_handoff no_handoffs[] = PLAN_HANDOFFS();
static const struct plan_range topk_roles[] = PLAN_RANGES(TOPK_ROLES(PLAN_ROLE));
static const struct plan_flow topk_flows[] = PLAN_FLOWS(TOPK_FLOWS(PLAN_FLOW));

#define TOPK_PLAN(t)                   \
    {                                  \
        .target = #t,                  \
        .family = "topk",              \
        .text = "topk",                \
        .threads = TOPK_THREADS,       \
        .dynamic_shared = TOPK_SHARED, \
        .cluster = 1,                  \
        .maps = no_maps,               \
        .scalars = topk_scalars,       \
        .roles = topk_roles,           \
        .shared = no_ranges,           \
        .tmem = no_ranges,             \
        .handoffs = no_handoffs,       \
        .flows = topk_flows,           \
    },

static const struct plan topk_plans[] = {TOPK_PLAN(sm_90a) TOPK_PLAN(sm_100f)};

const struct plan *plan_topk(const char *target)
{
    for (size_t i = 0; i < sizeof topk_plans / sizeof *topk_plans; i++)
        if (strcmp(topk_plans[i].target, target) == 0) return &topk_plans[i];
    return NULL;
}

/* ---- the manifests: ptx/inc/indexer.plan.h, ptx/inc/topk.plan.h -- */

void indexer_write_problem(FILE *out, const struct module_id *id)
{
    fprintf(out, "  \"formula\": \"out[i][j] = scale[j] * sum_h weight[i][h] * max(q[i][h].k[j], 0)"
                 ", starts[i] <= j < ends[i]\",\n");
    fprintf(out,
            "  \"dtypes\": {\"q\": \"%s\", \"k\": \"%s\", \"scale\": \"f32\", \"weight\": \"f32\", "
            "\"sum\": \"f32\", \"out\": \"f32\"},\n",
            id->in, id->in);
}

void indexer_write_shape(FILE *out, const struct module_id *id)
{
    const struct indexer_shape *s = id->plan->indexer;
    fprintf(out, "  \"tensor_maps\": [\n");
    fprintf(out,
            "    {\"name\": \"%s\", \"tensor\": \"q\", \"dtype\": \"%s\", \"rank\": 3,\n"
            "     \"dims\": [\"dim\", \"heads\", \"rows\"], \"box\": [%d, %u, %u], ",
            maps[0], id->in, INDEXER_DIM, s->heads, s->queries);
    fprintf(out, "\"element_strides\": [1, 1, 1],\n"
                 "     \"interleave\": \"none\", \"swizzle\": \"128B\", \"out_of_bounds\": "
                 "\"zero\"},\n");
    fprintf(out,
            "    {\"name\": \"%s\", \"tensor\": \"k\", \"dtype\": \"%s\", \"rank\": 3,\n"
            "     \"dims\": [\"dim\", \"keys or page_size\", \"planes\"], "
            "\"box\": [%d, \"box\", 1], ",
            maps[1], id->in, INDEXER_DIM);
    fprintf(out, "\"element_strides\": [1, 1, 1],\n"
                 "     \"interleave\": \"none\", \"swizzle\": \"128B\", \"out_of_bounds\": "
                 "\"zero\"}\n");
    fprintf(out,
            "  ],\n  \"tile\": {\"queries\": %u, \"heads\": %u, \"keys\": %u},\n"
            "  \"slots\": %u,\n  \"grid\": [\"any number of CTAs\", \"1\", \"1\"],\n",
            s->queries, s->heads, s->block, s->slots);
}

void indexer_write_limits(FILE *out, const struct module_id *id)
{
    fprintf(out,
            "  \"limits\": {\"dim\": [1, %d], \"heads\": [1, %u], \"keys\": [0, %d], "
            "\"page_multiple\": %d, \"address_multiple\": 16, \"stride_multiple\": 16},\n",
            INDEXER_DIM, id->plan->indexer->heads, INDEXER_MAX_KEYS, INDEXER_LEAST_BOX);
}

void topk_write_problem(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out, "  \"formula\": \"indices[r] = the columns of the k largest of "
                 "values[r][starts[r] .. ends[r] - 1], ascending, -1 behind them\",\n");
    fprintf(out, "  \"dtypes\": {\"values\": \"f32\", \"indices\": \"i32\"},\n");
}

void topk_write_shape(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out,
            "  \"tensor_maps\": [],\n  \"clusters\": [1, %d],\n"
            "  \"grid\": [\"rows * CTAs of a cluster\", \"1\", \"1\"],\n",
            TOPK_MOST_CTAS);
}

void topk_write_limits(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out,
            "  \"limits\": {\"k\": [1, %d], \"columns\": [0, %d], \"cached\": [0, %d], "
            "\"address_multiple\": 4, \"stride_multiple\": 4},\n",
            TOPK_MAX_K, TOPK_MAX_COLUMNS, TOPK_CACHED);
}
