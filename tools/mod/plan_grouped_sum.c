/* The plans of weighted sums of rows as data, and what their manifests say: ptx/inc/grouped_sum.plan.h. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/inc/grouped_sum.plan.h"

#include <string.h>

_Static_assert(GROUPED_SUM_COLUMNS * 2 == 16, "a unit of 16 bits is one load");

static const char *const no_maps[] = {NULL};
static const struct plan_scalar scalars[] = PLAN_SCALARS(GROUPED_SUM_SCALARS(PLAN_SCALAR));
static const struct plan_range roles[] = PLAN_RANGES(GROUPED_SUM_ROLES(PLAN_ROLE));
static const struct plan_range no_ranges[] = PLAN_RANGES();
static const struct plan_handoff no_handoffs[] = PLAN_HANDOFFS();
static const struct plan_flow no_flows[] = PLAN_FLOWS();

#define PLAN(t)                         \
    {                                   \
        .target = #t,                   \
        .family = "grouped",            \
        .text = "grouped_sum",          \
        .threads = GROUPED_SUM_THREADS, \
        .cluster = 1,                   \
        .maps = no_maps,                \
        .scalars = scalars,             \
        .roles = roles,                 \
        .shared = no_ranges,            \
        .tmem = no_ranges,              \
        .handoffs = no_handoffs,        \
        .flows = no_flows,              \
    },

static const struct plan plans[] = {PLAN(sm_90a) PLAN(sm_100f)};

const struct plan *plan_grouped_sum(const char *target)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (strcmp(plans[i].target, target) == 0) return &plans[i];
    return NULL;
}

void grouped_sum_write_problem(FILE *out, const struct module_id *id)
{
    fprintf(out,
            "  \"formula\": \"D[r][c] = sum over j = 0 .. terms - 1: weights[r][j] * "
            "X[index[r][j]][c]\",\n"
            "  \"dtypes\": {\"x\": \"%s\", \"index\": \"i32\", \"weights\": \"f32\", \"sum\": "
            "\"f32\", \"d\": \"%s\"},\n",
            id->in, id->out);
}

void grouped_sum_write_shape(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out, "  \"tensor_maps\": [],\n  \"grid\": [\"rows * ctas\", \"1\", \"1\"],\n");
}

void grouped_sum_write_limits(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out, "  \"limits\": {\"x_rows\": [1, 2147483647], \"terms\": [1, 2147483647], "
                 "\"n\": [1, 2147483647], \"address_multiple\": 16, \"stride_multiple\": 16},\n");
}
