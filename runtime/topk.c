/* Top-k plans and their runs. What the kernel expects is in ptx/inc/topk.plan.h. */
#include "indexer.h"

#include "error.h"
#include "plan.h"

#include <stddef.h>
#include <stdlib.h>

enum {
    LEAST_PART = 4096, /* columns of a CTA: fewer are not worth another one */
    WORD = 4,
    UNIT = 4 /* columns of 16 bytes */
};

_Static_assert(offsetof(struct topk_scalars, cached) + 4 == TOPK_PARAM_BYTES,
               "the scalars are not laid out as the kernel's parameters");

/* ---- the plan -- */

/* CTAs of a row: twice as many while each has columns enough and every cluster an SM for each CTA. */
static uint32_t choose_cluster(const hewn_topk_plan *plan)
{
    const struct topk_problem *p = &plan->problem;
    const hewn_context *context = plan->context;
    uint64_t sms = (uint64_t)context->info.sm_count;
    uint32_t ctas = 1;
    if (!context->limits.cluster_launch || !context->driver->fn.launch_kernel_ex) return 1;
    while (ctas < TOPK_MOST_CTAS && (uint64_t)p->rows * 2 * ctas <= sms &&
           p->columns / (2 * ctas) >= LEAST_PART)
        ctas *= 2;
    return ctas;
}

/* Units of a CTA, where the row begins in the middle of one. */
static uint32_t most_units(const hewn_topk_plan *plan)
{
    uint32_t all = (plan->problem.columns + UNIT - 1) / UNIT + 1;
    uint32_t units = (all + plan->cluster - 1) / plan->cluster;
    return units < TOPK_CACHED ? units : TOPK_CACHED;
}

static int fill_scalars(hewn_topk_plan *plan, hewn_error *err)
{
    const struct topk_problem *p = &plan->problem;
    unsigned n = 0;
    plan->cluster = choose_cluster(plan);
    if (p->rows > INT32_MAX / plan->cluster)
        return hewn_fail(err, HEWN_ERR_LIMIT, "batch, queries: %u rows are more than a grid holds",
                         p->rows);
    plan->scalars = (struct topk_scalars){
        .row_bytes = p->value_row,
        .index_row = p->index_row,
        .columns = p->columns,
        .k = p->k,
        .queries = p->queries,
        .page_size = p->pages.page_size,
        .planes = p->pages.planes,
        .table_width = p->pages.table_width,
        .cached = most_units(plan),
    };
    if (plan->cluster > 1) {
        plan->attributes[n].id = HEWN_CU_LAUNCH_CLUSTER_DIMENSION;
        plan->attributes[n].value.cluster.x = plan->cluster;
        plan->attributes[n].value.cluster.y = 1;
        plan->attributes[n++].value.cluster.z = 1;
    }
    if (plan->context->driver->fn.launch_kernel_ex) {
        plan->attributes[n].id = HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION;
        plan->attributes[n++].value.flag = 1;
    }
    plan->config = (hewn_cu_launch_config){
        .grid_x = p->rows * plan->cluster,
        .grid_y = 1,
        .grid_z = 1,
        .block_x = TOPK_THREADS,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = 4 * UNIT * plan->scalars.cached,
        .attributes = plan->attributes,
        .attribute_count = n,
    };
    return HEWN_OK;
}

static int fill_plan(void *at, hewn_context *context, const void *given, hewn_error *err)
{
    hewn_topk_plan *plan = at;
    const hewn_topk_desc *desc = given;
    plan->context = context;
    int status = hewn_topk_check(desc, &plan->problem, err);
    if (!status) status = fill_scalars(plan, err);
    if (status) return status;
    return hewn_plan_load(context, hewn_topk_family(), "topk_f32", TOPK_SHARED, &plan->loaded, err);
}

int hewn_topk_plan_create(hewn_context *context, const hewn_topk_desc *desc, hewn_topk_plan **out,
                          hewn_error *err)
{
    return hewn_plan_create(sizeof(**out), context, HEWN_STRUCT_hewn_topk_desc, desc, fill_plan,
                            out, err);
}

void hewn_topk_plan_destroy(hewn_topk_plan *plan)
{
    free(plan);
}

int hewn_topk_plan_describe(const hewn_topk_plan *plan, hewn_topk_plan_info *out, hewn_error *err)
{
    if (!plan) return hewn_fail_null(err, "plan");
    const hewn_cu_launch_config *c = &plan->config;
    const hewn_topk_plan_info info = {
        .module = plan->loaded->module->name,
        .target = plan->loaded->module->target,
        .origin = plan->loaded->origin,
        .grid = {c->grid_x, c->grid_y, c->grid_z},
        .block = {c->block_x, c->block_y, c->block_z},
        .dynamic_shared = c->shared_bytes,
        .cluster = plan->cluster,
    };
    return hewn_struct_give(HEWN_STRUCT_hewn_topk_plan_info, &info, out, err);
}

/* ---- a run -- */

static int check_addresses(const hewn_topk_plan *plan, const hewn_topk_args *a, hewn_error *err)
{
    const struct topk_problem *p = &plan->problem;
    uint64_t entries = p->rows / p->queries * (uint64_t)p->pages.table_width;
    enum hewn_need some = p->columns > 0 ? ADDRESS_MUST : ADDRESS_MAY;
    const struct hewn_address list[] = {
        {"values", a->values, some, WORD, p->value_span, 0},
        {"table", a->table, p->pages.page_size ? some : ADDRESS_NONE, WORD, WORD * entries, 0},
        {"indices", a->indices, ADDRESS_MUST, WORD, p->index_span, 1},
        {"starts", a->starts, hewn_needed(p->starts), WORD, 0, 0},
        {"ends", a->ends, hewn_needed(p->ends), WORD, 0, 0},
    };
    return hewn_addresses_check(list, sizeof list / sizeof *list, err);
}

int hewn_topk_plan_run(const hewn_topk_plan *plan, const hewn_topk_args *args, hewn_stream stream,
                       hewn_error *err)
{
    hewn_topk_args a;
    int status = hewn_plan_take(plan, HEWN_STRUCT_hewn_topk_args, args, &a, err);
    if (!status) status = check_addresses(plan, &a, err);
    if (status) return status;
    struct topk_scalars scalars = plan->scalars;
    scalars.values = a.values;
    scalars.indices = a.indices;
    scalars.starts = a.starts;
    scalars.ends = a.ends;
    scalars.table = a.table;
    struct hewn_params params;
    hewn_params_begin(&params, NULL, 0);
    hewn_params_add(&params, &scalars, TOPK_SCALARS(HEWN_SCALAR_SIZE));
    return hewn_plan_launch(plan->context, plan->loaded, &plan->config, stream, &params, err);
}
