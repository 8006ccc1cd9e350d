/* The combine kernels of decode and MLA (ptx/inc/split.inc) and of products (ptx/inc/gemm_combine.inc):
 * one plan a family, and what their manifests say of the problem. No maps, no roles. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/inc/gemm_combine.plan.h"
#include "../../ptx/inc/split.plan.h"

#include <string.h>

static const char *const no_maps[] = {NULL};
static const struct plan_scalar scalars[] = PLAN_SCALARS(SPLIT_COMBINE_SCALARS(PLAN_SCALAR));
static const struct plan_scalar gemm_scalars[] = PLAN_SCALARS(GEMM_COMBINE_SCALARS(PLAN_SCALAR));
static const struct plan_range no_ranges[] = PLAN_RANGES();
static const struct plan_handoff no_handoffs[] = PLAN_HANDOFFS();
static const struct plan_flow no_flows[] = PLAN_FLOWS();

#define PLAN(f, t, warps, list)  \
    {                            \
        .target = #t,            \
        .family = #f,            \
        .text = #f "_combine",   \
        .threads = 32 * (warps), \
        .cluster = 1,            \
        .maps = no_maps,         \
        .scalars = list,         \
        .roles = no_ranges,      \
        .shared = no_ranges,     \
        .tmem = no_ranges,       \
        .handoffs = no_handoffs, \
        .flows = no_flows,       \
    },

static const struct plan plans[] = {
    PLAN(decode, sm_90a, SPLIT_COMBINE_WARPS, scalars)
        PLAN(decode, sm_100f, SPLIT_COMBINE_WARPS, scalars)
            PLAN(mla, sm_90a, SPLIT_COMBINE_WARPS, scalars)
                PLAN(mla, sm_100f, SPLIT_COMBINE_WARPS, scalars)
                    PLAN(gemm, sm_90a, GEMM_COMBINE_WARPS, gemm_scalars)
                        PLAN(gemm, sm_100f, GEMM_COMBINE_WARPS, gemm_scalars)};

const struct plan *plan_combine(const char *target, const char *text)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (strcmp(plans[i].target, target) == 0 && strcmp(plans[i].text, text) == 0)
            return &plans[i];
    return NULL;
}

void combine_write_problem(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out, "  \"formula\": \"O = sum_p 2^(lse_p - M) * O_p / "
                 "(sum_p 2^(lse_p - M) + 2^(sink - M)), M = max_p lse_p\",\n");
    fprintf(out, "  \"dtypes\": {\"part_o\": \"f32\", \"sum\": \"f32\", \"o\": \"out_type\"},\n");
}

void combine_write_shape(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out, "  \"tensor_maps\": [],\n"
                 "  \"grid\": [\"records\", \"(rows + step - 1) / step\", \"1\"],\n");
}

void combine_write_limits(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out, "  \"limits\": {\"rows\": [1, 64], \"v_dim\": [32, 512], "
                 "\"address_multiple\": 16, \"stride_multiple\": 16},\n");
}

void gemm_combine_write_problem(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(
        out,
        "  \"formula\": \"D = act(alpha * scale_a * scale_b * sum_s part[s] + beta * C + bias)\",\n"
        "  \"dtypes\": {\"part\": \"f32\", \"sum\": \"f32\", \"d\": \"out_type\"},\n");
}

void gemm_combine_write_shape(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out,
            "  \"tensor_maps\": [],\n"
            "  \"grid\": [\"(m * ((n + %d) / %d) * groups + %d) / %d\", \"1\", \"1\"],\n",
            GEMM_COMBINE_COLUMNS - 1, GEMM_COMBINE_COLUMNS, GEMM_COMBINE_THREADS - 1,
            GEMM_COMBINE_THREADS);
}

void gemm_combine_write_limits(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out,
            "  \"limits\": {\"m\": [1, 2147483647], \"n\": [1, 2147483647], \"slices\": [1, %d], "
            "\"address_multiple\": 16, \"row_stride_multiple\": 16},\n",
            GEMM_MAX_SLICES);
}
