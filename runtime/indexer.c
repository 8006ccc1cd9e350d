/*
 * Indexer plans: a checked problem, the kernel for a device, everything except the addresses; and their
 * runs. What the kernel expects is in ptx/inc/indexer.plan.h.
 */
#include "indexer.h"

#include "error.h"
#include "plan.h"

#include "../ptx/sm_100f/indexer.plan.h"
#include "../ptx/sm_90a/indexer.plan.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { TMA_ALIGN = 16, WORD = 4 };

_Static_assert(offsetof(struct indexer_scalars, bulk) + 4 + INDEXER_MAP_COUNT * MAP_BYTES ==
                   INDEXER_PARAM_BYTES,
               "the scalars are not laid out as the kernel's parameters");

/* ---- the plan -- */

static const struct variant {
    const char *target;
    uint32_t heads, queries, block, threads, shared, ctas; /* ctas: of an SM */
} variants[] = {
#define X(prefix, target, h, n)             \
    {#target,                               \
     h,                                     \
     n,                                     \
     prefix##_INDEXER_BLOCK,                \
     prefix##_INDEXER_THREADS,              \
     prefix##_INDEXER_DYNAMIC_SHARED(h, n), \
     prefix##_INDEXER_CTAS_PER_SM},
    SM90A_INDEXER_VARIANTS(X) SM100F_INDEXER_VARIANTS(X)
#undef X
};

/* Of the device's: the fewest heads that hold a query's; of these, the fewest queries that hold a sequence's,
 * or the most there are. NULL: none has so many heads, or the device has none. */
static const struct variant *choose_variant(const hewn_context *context,
                                            const struct indexer_problem *p)
{
    const struct variant *best = NULL;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        const struct variant *v = &variants[i];
        if (v->heads < p->heads ||
            !hewn_target_runs_on(v->target, context->info.cc_major, context->info.cc_minor))
            continue;
        if (!best || (v->heads == best->heads && best->queries < p->queries)) best = v;
    }
    return best;
}

/* Rows of a box of keys: the largest power of two that divides a page and a block. */
static uint32_t box_rows(const struct indexer_problem *p, uint32_t block)
{
    uint32_t box = p->pages.page_size & (0U - p->pages.page_size);
    return !box || box > block ? block : box;
}

static int fill_scalars(hewn_indexer_plan *plan, const struct variant *v, hewn_error *err)
{
    const struct indexer_problem *p = &plan->problem;
    uint64_t each = (p->queries + (uint64_t)v->queries - 1) / v->queries;
    uint64_t tiles = each * p->batch, blocks = (p->length + (uint64_t)v->block - 1) / v->block,
             units = tiles * (blocks ? blocks : 1);
    uint32_t sms = (uint32_t)plan->context->info.sm_count * v->ctas, box = box_rows(p, v->block);
    if (blocks > INDEXER_MAX_UNITS / tiles)
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "batch, queries, length: %u rows of %u keys are more blocks than the "
                         "kernel can count",
                         p->rows, p->length);
    plan->tile_queries = v->queries;
    plan->tile_heads = v->heads;
    plan->block_keys = v->block;
    plan->scalars = (struct indexer_scalars){
        .out_row = p->out_row,
        .weight_row = p->weight_row,
        .scale_plane = p->scale_plane,
        .heads = p->heads,
        .queries = p->queries,
        .each = (uint32_t)each,
        .tiles = (uint32_t)tiles,
        .keys = p->length,
        .page_size = p->pages.page_size,
        .planes = p->pages.planes,
        .table_width = p->pages.table_width,
        .box = box,
        .bulk = box == v->block && p->scale_plane % TMA_ALIGN == 0,
    };
    plan->overlap[0].id = HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION;
    plan->overlap[0].value.flag = 1;
    plan->config = (hewn_cu_launch_config){
        .grid_x = units < sms ? (uint32_t)units : sms,
        .grid_y = 1,
        .grid_z = 1,
        .block_x = v->threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = v->shared,
        .attributes = plan->overlap,
        .attribute_count = plan->context->driver->fn.launch_kernel_ex != NULL,
    };
    return HEWN_OK;
}

static hewn_tensormap_desc map_of(uint32_t dim, uint64_t rows, uint64_t row, uint64_t planes,
                                  uint64_t plane, uint32_t box_rows, uint32_t box_planes)
{
    return (hewn_tensormap_desc){
        .struct_size = sizeof(hewn_tensormap_desc),
        .dtype = HEWN_TENSORMAP_U8,
        .rank = 3,
        .dim = {dim, rows, planes},
        .stride = {row, plane},
        .box = {INDEXER_DIM, box_rows, box_planes},
        .element_stride = {1, 1, 1, 1, 1},
        .swizzle = HEWN_TENSORMAP_SWIZZLE_128B,
        .l2 = HEWN_TENSORMAP_L2_128B,
    };
}

static const char *const map_names[INDEXER_MAP_COUNT] = {"q", "k"};

/* Keys that are none are described as one row of Q, which is never read: the driver refuses a map without
 * elements. */
static int prepare_maps(hewn_indexer_plan *plan, hewn_error *err)
{
    const struct indexer_problem *p = &plan->problem;
    uint32_t keys = p->pages.page_size ? p->pages.page_size : p->length, box = plan->scalars.box;
    plan->maps[0].desc = map_of(p->dim, p->heads, p->q_head, p->rows, p->q_row, plan->tile_heads,
                                plan->tile_queries);
    plan->maps[1].desc = p->k_span
                             ? map_of(p->dim, keys, p->k_token, p->pages.planes, p->k_plane, box, 1)
                             : map_of(p->dim, 1, TMA_ALIGN, 1, TMA_ALIGN, box, 1);
    return hewn_plan_prepare_maps(plan->context, plan->maps, map_names, INDEXER_MAP_COUNT, err);
}

static int load_kernel(hewn_indexer_plan *plan, hewn_context *context, const struct variant *v,
                       hewn_error *err)
{
    char name[32];
    snprintf(name, sizeof name, "indexer_%s_%u_%u", hewn_dtype_name(plan->problem.in), v->heads,
             v->queries);
    int status = hewn_plan_need_maps(context, name, err);
    return status ? status
                  : hewn_plan_load(context, hewn_indexer_family(), name, v->shared, &plan->loaded,
                                   err);
}

/* No variant: the device runs none, which the first of all says, or none has so many heads. */
static int refuse_heads(hewn_indexer_plan *plan, hewn_context *context, hewn_error *err)
{
    int status = load_kernel(plan, context, variants, err);
    return status ? status
                  : hewn_fail(err, HEWN_ERR_NO_MODULE,
                              "heads: %u are more than the 64 that kernels of %s have",
                              plan->problem.heads, variants->target);
}

static int fill_plan(void *at, hewn_context *context, const void *given, hewn_error *err)
{
    hewn_indexer_plan *plan = at;
    const hewn_indexer_desc *desc = given;
    plan->context = context;
    int status = hewn_indexer_check(desc, &plan->problem, err);
    if (status) return status;
    const struct variant *v = choose_variant(context, &plan->problem);
    if (!v) return refuse_heads(plan, context, err);
    status = fill_scalars(plan, v, err);
    if (!status) status = load_kernel(plan, context, v, err);
    if (!status)
        status = hewn_context_push(context, err); /* the driver answers for the current one */
    if (status) return status;
    status = prepare_maps(plan, err);
    hewn_context_pop(context);
    return status;
}

int hewn_indexer_plan_create(hewn_context *context, const hewn_indexer_desc *desc,
                             hewn_indexer_plan **out, hewn_error *err)
{
    return hewn_plan_create(sizeof(**out), context, HEWN_STRUCT_hewn_indexer_desc, desc, fill_plan,
                            out, err);
}

void hewn_indexer_plan_destroy(hewn_indexer_plan *plan)
{
    free(plan);
}

int hewn_indexer_plan_describe(const hewn_indexer_plan *plan, hewn_indexer_plan_info *out,
                               hewn_error *err)
{
    if (!plan) return hewn_fail_null(err, "plan");
    const hewn_cu_launch_config *c = &plan->config;
    const hewn_indexer_plan_info info = {
        .module = plan->loaded->module->name,
        .target = plan->loaded->module->target,
        .origin = plan->loaded->origin,
        .grid = {c->grid_x, c->grid_y, c->grid_z},
        .block = {c->block_x, c->block_y, c->block_z},
        .dynamic_shared = c->shared_bytes,
        .tile_queries = plan->tile_queries,
        .tile_heads = plan->tile_heads,
        .block_keys = plan->block_keys,
    };
    return hewn_struct_give(HEWN_STRUCT_hewn_indexer_plan_info, &info, out, err);
}

/* ---- a run -- */

static int check_addresses(const hewn_indexer_plan *plan, const hewn_indexer_args *a,
                           hewn_error *err)
{
    const struct indexer_problem *p = &plan->problem;
    enum hewn_need keys = p->length > 0 ? ADDRESS_MUST : ADDRESS_MAY;
    enum hewn_need rows = p->k_span > 0 ? keys : ADDRESS_MAY;
    const struct hewn_address list[] = {
        {"q", a->q, ADDRESS_MUST, TMA_ALIGN, p->q_span, 0},
        {"k", a->k, rows, TMA_ALIGN, p->k_span, 0},
        {"weights", a->weights, ADDRESS_MUST, WORD, p->weight_span, 0},
        {"out", a->out, keys, WORD, p->out_span, 1},
        {"k_scale", a->k_scale, p->in_pages ? ADDRESS_NONE : rows, WORD, 0, 0},
        {"starts", a->starts, hewn_needed(p->starts), WORD, 0, 0},
        {"ends", a->ends, hewn_needed(p->ends), WORD, 0, 0},
        {"table", a->table, p->pages.page_size ? keys : ADDRESS_NONE, WORD, 0, 0},
    };
    return hewn_addresses_check(list, sizeof list / sizeof *list, err);
}

static int launch(const hewn_indexer_plan *plan, const hewn_indexer_args *a, hewn_stream stream,
                  hewn_error *err)
{
    const struct indexer_problem *p = &plan->problem;
    hewn_cu_tensor_map maps[INDEXER_MAP_COUNT];
    const hewn_deviceptr at[INDEXER_MAP_COUNT] = {a->q, p->k_span ? a->k : a->q};
    int status = hewn_plan_place_maps(plan->context, plan->maps, map_names, at, INDEXER_MAP_COUNT,
                                      maps, err);
    if (status) return status;
    struct indexer_scalars scalars = plan->scalars;
    scalars.out = a->out;
    scalars.weights = a->weights;
    scalars.scales = p->in_pages ? a->k + p->pages.page_size * p->k_token : a->k_scale;
    scalars.bulk &= scalars.scales % TMA_ALIGN == 0;
    scalars.starts = a->starts;
    scalars.ends = a->ends;
    scalars.table = a->table;
    struct hewn_params params;
    hewn_params_begin(&params, maps, INDEXER_MAP_COUNT);
    hewn_params_add(&params, &scalars, INDEXER_SCALARS(HEWN_SCALAR_SIZE));
    return hewn_plan_launch(plan->context, plan->loaded, &plan->config, stream, &params, err);
}

int hewn_indexer_plan_run(const hewn_indexer_plan *plan, const hewn_indexer_args *args,
                          hewn_stream stream, hewn_error *err)
{
    hewn_indexer_args a;
    int status = hewn_plan_take(plan, HEWN_STRUCT_hewn_indexer_args, args, &a, err);
    if (!status) status = check_addresses(plan, &a, err);
    return status ? status : launch(plan, &a, stream, err);
}
