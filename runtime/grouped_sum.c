/* Weighted sums of rows: plans and their runs. What the kernel expects is in ptx/inc/grouped_sum.plan.h. */
#include "grouped.h"

#include "error.h"
#include "plan.h"

#include "../ptx/inc/grouped_sum.plan.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { X, D, INDEX, WEIGHTS, TENSORS, WORD = 4 };

/* The kernel's parameters, in their order. */
#define LIST(type, name, rule) type name;
#define u64                    uint64_t
#define u32                    uint32_t
struct sum_scalars {
    GROUPED_SUM_SCALARS(LIST)
};
#undef u32
#undef u64
#undef LIST
_Static_assert(offsetof(struct sum_scalars, units) + 4 == GROUPED_SUM_PARAM_BYTES,
               "the scalars are not laid out as the kernel's parameters");

struct hewn_grouped_sum_plan {
    const hewn_context *context;
    const struct hewn_loaded *loaded;
    uint64_t span[TENSORS];
    struct sum_scalars scalars;   /* without addresses */
    hewn_cu_launch_config config; /* without stream */
    hewn_cu_launch_attribute attribute;
};

static const char *const names[TENSORS][2] = {[X] = {"ldx", "x_rows"},
                                              [D] = {"ldd", "rows"},
                                              [INDEX] = {"index_row", "rows"},
                                              [WEIGHTS] = {"weight_row", "rows"}};

/* ---- the plan -- */

static int check_types(const hewn_grouped_sum_desc *d, hewn_error *err)
{
    static const struct {
        int in, out;
    } pairs[] = {
#define PAIR(in, out) {HEWN_##in, HEWN_##out},
#define HEWN_bf16     HEWN_BF16
#define HEWN_f16      HEWN_F16
#define HEWN_f32      HEWN_F32
        GROUPED_SUM_TYPES(PAIR)
#undef PAIR
    };
    const char *in = hewn_dtype_name(d->in), *out = hewn_dtype_name(d->out);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].in == d->in && pairs[i].out == d->out) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT,
                     "in, out: dtypes %d (%s) and %d (%s) are not two of bf16, f16, f32, or of 16 "
                     "bits and unlike",
                     d->in, in ? in : "unknown", d->out, out ? out : "unknown");
}

static int check(hewn_grouped_sum_plan *plan, const hewn_grouped_sum_desc *d, hewn_error *err)
{
    const struct {
        const char *name;
        int64_t value;
    } counts[] = {{"rows", d->rows}, {"terms", d->terms}, {"n", d->n}, {"x_rows", d->x_rows}};
    int status = check_types(d, err);
    for (size_t i = 0; !status && i < sizeof counts / sizeof *counts; i++)
        status = hewn_grouped_range(counts[i].name, counts[i].value, 1, INT32_MAX, err);
    if (status) return status;
    const uint64_t rows = (uint64_t)d->rows, n = (uint64_t)d->n, terms = (uint64_t)d->terms;
    struct grouped_tensor t[TENSORS] = {
        [X] = {n, (uint64_t)d->x_rows, 1, .element = (uint32_t)hewn_dtype_size(d->in)},
        [D] = {n, rows, 1, .element = (uint32_t)hewn_dtype_size(d->out)},
        [INDEX] = {terms, rows, 1, .element = WORD, .align = WORD},
        [WEIGHTS] = {terms, rows, 1, .element = WORD, .align = WORD},
    };
    const int64_t strides[TENSORS] = {d->ldx, d->ldd, d->index_row, d->weight_row};
    uint64_t *const pitches[TENSORS] = {&plan->scalars.x_row, &plan->scalars.d_row,
                                        &plan->scalars.index_row, &plan->scalars.weight_row};
    for (int i = 0; !status && i < TENSORS; i++) {
        status = hewn_grouped_extent(&t[i], names[i], strides[i], t[i].columns, 0, err);
        *pitches[i] = t[i].pitch;
        plan->span[i] = t[i].span;
    }
    return status;
}

static int fill_plan(void *at, hewn_context *context, const void *given, hewn_error *err)
{
    hewn_grouped_sum_plan *plan = at;
    const hewn_grouped_sum_desc *d = given;
    char name[48];
    plan->context = context;
    int status = check(plan, d, err);
    if (status) return status;
    const uint32_t n = (uint32_t)d->n;
    const uint32_t items = n / GROUPED_SUM_COLUMNS + n % GROUPED_SUM_COLUMNS;
    const uint32_t units = d->terms <= GROUPED_SUM_TWO ? 2 : 1;
    const uint32_t each = GROUPED_SUM_THREADS * units, ctas = (items + each - 1) / each;
    if (d->rows > INT32_MAX / (int64_t)ctas)
        return hewn_fail(err, HEWN_ERR_LIMIT, "rows, n: %lld rows of %u CTAs are more than %d",
                         (long long)d->rows, ctas, INT32_MAX);
    plan->scalars.x_rows = (uint32_t)d->x_rows;
    plan->scalars.terms = (uint32_t)d->terms;
    plan->scalars.n = n;
    plan->scalars.ctas = ctas;
    plan->scalars.units = units;
    plan->attribute.id = HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION;
    plan->attribute.value.flag = 1;
    plan->config = (hewn_cu_launch_config){
        .grid_x = (uint32_t)d->rows * ctas,
        .grid_y = 1,
        .grid_z = 1,
        .block_x = GROUPED_SUM_THREADS,
        .block_y = 1,
        .block_z = 1,
        .attributes = &plan->attribute,
        .attribute_count = context->driver->fn.launch_kernel_ex ? 1 : 0,
    };
    snprintf(name, sizeof name, "grouped_sum_%s_%s", hewn_dtype_name(d->in),
             hewn_dtype_name(d->out));
    return hewn_plan_load(context, hewn_grouped_family(), name, 0, &plan->loaded, err);
}

int hewn_grouped_sum_plan_create(hewn_context *context, const hewn_grouped_sum_desc *desc,
                                 hewn_grouped_sum_plan **out, hewn_error *err)
{
    return hewn_plan_create(sizeof(**out), context, HEWN_STRUCT_hewn_grouped_sum_desc, desc,
                            fill_plan, out, err);
}

void hewn_grouped_sum_plan_destroy(hewn_grouped_sum_plan *plan)
{
    free(plan);
}

int hewn_grouped_sum_plan_describe(const hewn_grouped_sum_plan *plan,
                                   hewn_grouped_sum_plan_info *out, hewn_error *err)
{
    if (!plan) return hewn_fail_null(err, "plan");
    const hewn_cu_launch_config *c = &plan->config;
    const hewn_grouped_sum_plan_info info = {
        .module = plan->loaded->module->name,
        .target = plan->loaded->module->target,
        .origin = plan->loaded->origin,
        .grid = {c->grid_x, c->grid_y, c->grid_z},
        .block = {c->block_x, c->block_y, c->block_z},
    };
    return hewn_struct_give(HEWN_STRUCT_hewn_grouped_sum_plan_info, &info, out, err);
}

/* ---- a run -- */

int hewn_grouped_sum_plan_run(const hewn_grouped_sum_plan *plan, const hewn_grouped_sum_args *args,
                              hewn_stream stream, hewn_error *err)
{
    hewn_grouped_sum_args a;
    int status = hewn_plan_take(plan, HEWN_STRUCT_hewn_grouped_sum_args, args, &a, err);
    if (status) return status;
    const struct hewn_address list[TENSORS] = {
        [X] = {"x", a.x, ADDRESS_MUST, GROUPED_ALIGN, plan->span[X], 0},
        [D] = {"d", a.d, ADDRESS_MUST, GROUPED_ALIGN, plan->span[D], 1},
        [INDEX] = {"index", a.index, ADDRESS_MUST, WORD, plan->span[INDEX], 0},
        [WEIGHTS] = {"weights", a.weights, ADDRESS_MAY, WORD, plan->span[WEIGHTS], 0},
    };
    status = hewn_addresses_check(list, TENSORS, err);
    if (status) return status;
    struct sum_scalars scalars = plan->scalars;
    scalars.x = a.x;
    scalars.d = a.d;
    scalars.index = a.index;
    scalars.weights = a.weights;
    struct hewn_params params;
    hewn_params_begin(&params, NULL, 0);
    hewn_params_add(&params, &scalars, GROUPED_SUM_SCALARS(HEWN_SCALAR_SIZE));
    return hewn_plan_launch(plan->context, plan->loaded, &plan->config, stream, &params, err);
}
