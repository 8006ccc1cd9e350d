/*
 * Plans of products with 4-bit weights: a checked problem, the kernel for a device, everything
 * except the addresses; and their runs. What the kernel expects is in ptx/inc/w4.plan.h.
 */
#include "w4.h"

#include "error.h"
#include "plan.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { TMA_ALIGN = 16, TOGETHER = 4 };

_Static_assert(offsetof(struct w4_scalars, wide) + 4 + W4_MAP_COUNT * MAP_BYTES == W4_PARAM_BYTES,
               "the scalars are not laid out as the kernel's parameters");

/* ---- the plan -- */

static int choose_shape(hewn_w4_plan *plan, hewn_error *err)
{
    const struct w4_problem *p = &plan->problem;
    const hewn_context *context = plan->context;
    int clusters = context->limits.cluster_launch && context->driver->fn.launch_kernel_ex;
    uint32_t tile = p->tile;
    if (p->parts > 1 && !context->driver->fn.launch_kernel_ex)
        return hewn_fail(err, HEWN_ERR_SYMBOL,
                         "parts: %u need cuLaunchKernelEx, which the driver lacks", p->parts);
    if (p->parts > 1 && !clusters)
        return hewn_fail(err, HEWN_ERR_LIMIT, "parts: %u need clusters, which the device lacks",
                         p->parts);
    if (tile > 2 && p->groups == W4_MAX_GROUPS && p->m > 32)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "tile: %u is more than 128, the most with groups of 32 and m above 32",
                         tile * W4_CHUNK);
    hewn_w4_choose(p, (uint32_t)context->info.sm_count, clusters, &plan->shape);
    const struct w4_shape *s = &plan->shape;
    if (s->tiles_n * s->tiles_m > INT32_MAX / s->parts)
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "m, n: %llu tiles of %u parts are more than a grid holds",
                         (unsigned long long)(s->tiles_n * s->tiles_m), s->parts);
    return HEWN_OK;
}

static unsigned fill_attributes(hewn_w4_plan *plan)
{
    unsigned n = 0;
    if (plan->shape.parts > 1) {
        plan->attributes[n].id = HEWN_CU_LAUNCH_CLUSTER_DIMENSION;
        plan->attributes[n].value.cluster.x = plan->shape.parts;
        plan->attributes[n].value.cluster.y = 1;
        plan->attributes[n++].value.cluster.z = 1;
    }
    if (plan->context->driver->fn.launch_kernel_ex) {
        plan->attributes[n].id = HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION;
        plan->attributes[n++].value.flag = 1;
    }
    return n;
}

static void fill_scalars(hewn_w4_plan *plan)
{
    const struct w4_problem *p = &plan->problem;
    const struct w4_shape *s = &plan->shape;
    plan->scalars = (struct w4_scalars){
        .d_row = p->d_row,
        .m = p->m,
        .n = p->n,
        .k_blocks = p->k_blocks,
        .all_chunks = p->chunks,
        .tile_chunks = s->tile,
        .tiles_n = (uint32_t)s->tiles_n,
        .rows = s->rows,
        .groups = p->groups,
        .stages = s->stages,
        .out = p->out == HEWN_F32    ? W4_OUT_F32
               : p->out == HEWN_BF16 ? W4_OUT_BF16
                                     : W4_OUT_F16,
    };
    plan->config = (hewn_cu_launch_config){
        .grid_x = (uint32_t)(s->tiles_n * s->tiles_m) * s->parts,
        .grid_y = 1,
        .grid_z = 1,
        .block_x = SM90A_W4_THREADS,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = s->shared,
        .attributes = plan->attributes,
        .attribute_count = fill_attributes(plan),
    };
}

static const char *const map_names[W4_MAP_COUNT] = {"x"};

static int prepare_map(hewn_w4_plan *plan, hewn_error *err)
{
    const struct w4_problem *p = &plan->problem;
    plan->map.desc = (hewn_tensormap_desc){
        .struct_size = sizeof(hewn_tensormap_desc),
        .dtype = p->in == HEWN_BF16 ? HEWN_TENSORMAP_BF16 : HEWN_TENSORMAP_F16,
        .rank = 3,
        .dim = {p->k, p->m, 1},
        .stride = {p->x_row, p->x_row},
        .box = {W4_HALF_K, plan->shape.rows, 1},
        .element_stride = {1, 1, 1, 1, 1},
        .swizzle = HEWN_TENSORMAP_SWIZZLE_128B,
        .l2 = HEWN_TENSORMAP_L2_128B,
    };
    return hewn_plan_prepare_maps(plan->context, &plan->map, map_names, W4_MAP_COUNT, err);
}

static int load_kernel(hewn_w4_plan *plan, hewn_context *context, hewn_error *err)
{
    char name[32];
    snprintf(name, sizeof name, "w4_%s_%s_%u", hewn_dtype_name(plan->problem.in),
             hewn_w4_format_name(plan->problem.format), plan->shape.width);
    int status = hewn_plan_need_maps(context, name, err);
    return status ? status
                  : hewn_plan_load(context, hewn_w4_family(), name, SM90A_W4_DYNAMIC_SHARED,
                                   &plan->loaded, err);
}

static int fill_plan(void *at, hewn_context *context, const void *given, hewn_error *err)
{
    hewn_w4_plan *plan = at;
    const hewn_w4_desc *desc = given;
    plan->context = context;
    int status = hewn_w4_check(desc, &plan->problem, err);
    if (!status) status = choose_shape(plan, err);
    if (!status) status = load_kernel(plan, context, err);
    if (!status)
        status = hewn_context_push(context, err); /* the driver answers for the current one */
    if (status) return status;
    fill_scalars(plan);
    status = prepare_map(plan, err);
    hewn_context_pop(context);
    return status;
}

int hewn_w4_plan_create(hewn_context *context, const hewn_w4_desc *desc, hewn_w4_plan **out,
                        hewn_error *err)
{
    return hewn_plan_create(sizeof(**out), context, HEWN_STRUCT_hewn_w4_desc, desc, fill_plan, out,
                            err);
}

void hewn_w4_plan_destroy(hewn_w4_plan *plan)
{
    free(plan);
}

int hewn_w4_plan_describe(const hewn_w4_plan *plan, hewn_w4_plan_info *out, hewn_error *err)
{
    if (!plan) return hewn_fail_null(err, "plan");
    const hewn_cu_launch_config *c = &plan->config;
    const hewn_w4_plan_info info = {
        .module = plan->loaded->module->name,
        .target = plan->loaded->module->target,
        .origin = plan->loaded->origin,
        .grid = {c->grid_x, c->grid_y, c->grid_z},
        .block = {c->block_x, c->block_y, c->block_z},
        .cluster = {plan->shape.parts, 1, 1},
        .dynamic_shared = c->shared_bytes,
        .tile_rows = plan->shape.rows,
        .tile_columns = plan->shape.tile * W4_CHUNK,
        .parts = plan->shape.parts,
        .stages = plan->shape.stages,
        .blocks = plan->problem.k_blocks,
        .packed = plan->problem.packed,
    };
    return hewn_struct_give(HEWN_STRUCT_hewn_w4_plan_info, &info, out, err);
}

/* ---- a run -- */

static int check_addresses(const hewn_w4_plan *plan, const hewn_w4_args *a, hewn_error *err)
{
    const struct w4_problem *p = &plan->problem;
    const struct hewn_address list[] = {
        {"x", a->x, ADDRESS_MUST, TMA_ALIGN, p->x_span, 0},
        {"w", a->w, ADDRESS_MUST, TMA_ALIGN, p->packed, 0},
        {"d", a->d, ADDRESS_MUST, (uint32_t)hewn_dtype_size(p->out), p->d_span, 1},
    };
    return hewn_addresses_check(list, sizeof list / sizeof *list, err);
}

int hewn_w4_plan_run(const hewn_w4_plan *plan, const hewn_w4_args *args, hewn_stream stream,
                     hewn_error *err)
{
    hewn_w4_args a;
    hewn_cu_tensor_map map;
    int status = hewn_plan_take(plan, HEWN_STRUCT_hewn_w4_args, args, &a, err);
    if (!status) status = check_addresses(plan, &a, err);
    if (!status)
        status = hewn_plan_place_maps(plan->context, &plan->map, map_names, &a.x, W4_MAP_COUNT,
                                      &map, err);
    if (status) return status;
    struct w4_scalars scalars = plan->scalars;
    uint64_t four = TOGETHER * (uint64_t)hewn_dtype_size(plan->problem.out);
    scalars.w = a.w;
    scalars.d = a.d;
    scalars.wide = (a.d | scalars.d_row) % four == 0;
    struct hewn_params params;
    hewn_params_begin(&params, &map, W4_MAP_COUNT);
    hewn_params_add(&params, &scalars, W4_SCALARS(HEWN_SCALAR_SIZE));
    return hewn_plan_launch(plan->context, plan->loaded, &plan->config, stream, &params, err);
}
