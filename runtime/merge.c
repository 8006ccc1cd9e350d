/* Merging partial results of attention: the rules of hewn_merge_desc, the plan, a run of it. */
#include "attention.h"

#include "error.h"
#include "plan.h"

#include <stddef.h>
#include <stdlib.h>

enum {
    MAX_ROWS = INT32_MAX, /* the kernel's row number is 32-bit */
    LSE_BYTES = 4,
    STEPS = 4 /* of lse: token, head, batch, part */
};

static const uint64_t stride_end = UINT64_C(1) << 40; /* bytes, as of every tensor */

struct hewn_merge_plan {
    const hewn_context *context;
    const struct hewn_loaded *loaded;
    struct attention_tensor part, o;
    uint64_t part_span, part_lse_span,
        lse_span; /* bytes from the first row to the end of the last */
    int sink;
    uint32_t parts;
    struct attention_combine_scalars scalars; /* without addresses */
    hewn_cu_launch_config config;             /* without stream */
};

/* ---- the description -- */

static int check_range(const char *name, int64_t value, int64_t least, int64_t most,
                       hewn_error *err)
{
    if (value >= least && value <= most) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is not in %lld..%lld", name,
                     (long long)value, (long long)least, (long long)most);
}

static int check_dtype(const char *name, int dtype, hewn_error *err)
{
    const char *text = hewn_dtype_name(dtype);
    if (dtype == HEWN_F32 || dtype == HEWN_F16 || dtype == HEWN_BF16) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: dtype %d (%s) is none of f32, f16, bf16", name,
                     dtype, text ? text : "unknown");
}

static int check_counts(const hewn_merge_desc *d, hewn_error *err)
{
    int status = check_range("batch", d->batch, 1, INT32_MAX, err);
    if (!status) status = check_range("length", d->length, 0, INT32_MAX, err);
    if (!status) status = check_range("heads", d->heads, 1, INT32_MAX, err);
    if (!status)
        status =
            check_range("dim", d->dim, ATTENTION_COMBINE_COLUMNS, ATTENTION_COMBINE_MAX_DIM, err);
    if (!status) status = check_range("parts", d->parts, 1, ATTENTION_MAX_SPLITS, err);
    if (!status) status = check_range("sink", d->sink, 0, 1, err);
    if (!status) status = check_range("layout", d->layout, 0, HEWN_LAYOUT_BHSD, err);
    if (!status) status = check_dtype("in", d->in, err);
    if (!status) status = check_dtype("out", d->out, err);
    if (status) return status;
    if (d->dim % ATTENTION_COMBINE_COLUMNS)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "dim: %lld is not a multiple of %d",
                         (long long)d->dim, ATTENTION_COMBINE_COLUMNS);
    if (d->length && d->batch > MAX_ROWS / d->length / d->heads)
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "batch, length, heads: %lld, %lld, %lld are more than %d rows",
                         (long long)d->batch, (long long)d->length, (long long)d->heads, MAX_ROWS);
    return HEWN_OK;
}

/* `elements` of `size` bytes as a stride of that many bytes' alignment; 0 stands for `contiguous`. */
static int check_step(const char *name, int64_t elements, uint64_t contiguous, uint64_t size,
                      uint64_t align, uint64_t *bytes, hewn_error *err)
{
    if (elements < 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld elements is negative", name,
                         (long long)elements);
    uint64_t value = elements ? (uint64_t)elements : contiguous;
    if (value > (stride_end - 1) / size)
        return hewn_fail(err, elements ? HEWN_ERR_ARGUMENT : HEWN_ERR_LIMIT,
                         "%s: %llu elements of %d B is not below 2^40 B", name,
                         (unsigned long long)value, (int)size);
    *bytes = value * size;
    if (*bytes % align)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %llu B is not a multiple of %d B", name,
                         (unsigned long long)*bytes, (int)align);
    return HEWN_OK;
}

/* *span += (count - 1) * step, where there is anything. */
static int extend(const char *name, uint64_t *span, uint64_t count, uint64_t step, hewn_error *err)
{
    uint64_t more;
    if (!count || !*span) return HEWN_OK;
    if (__builtin_mul_overflow(count - 1, step, &more) || __builtin_add_overflow(*span, more, span))
        return hewn_fail(err, HEWN_ERR_LIMIT, "%s: %llu times %llu B is past 2^64 B", name,
                         (unsigned long long)(count - 1), (unsigned long long)step);
    return HEWN_OK;
}

/* O and the parts' O. Where the parts' strides are 0 one of them is contiguous, as O is. */
static int check_tensors(hewn_merge_plan *plan, const hewn_merge_desc *d, hewn_error *err)
{
    struct attention_tensor rows = {.columns = (uint64_t)d->dim,
                                    .tokens = (uint64_t)d->length,
                                    .heads = (uint64_t)d->heads,
                                    .planes = (uint64_t)d->batch};
    struct attention_combine_scalars *s = &plan->scalars;
    plan->part = plan->o = rows;
    plan->part.name = "part";
    plan->part.element = hewn_dtype_size(d->in);
    plan->o.name = "o";
    plan->o.element = hewn_dtype_size(d->out);
    int status = hewn_attention_check_tensor(
        &plan->part, (const int64_t[]){d->part_token, d->part_head, d->part_batch}, d->layout, err);
    if (!status)
        status = hewn_attention_check_tensor(
            &plan->o, (const int64_t[]){d->o_token, d->o_head, d->o_batch}, d->layout, err);
    if (!status) status = hewn_attention_check_rows(&plan->o, err);
    if (!status)
        status = check_step("part_step", d->part_step, plan->part.span / plan->part.element,
                            plan->part.element, ATTENTION_ALIGN, &s->part_o_split, err);
    plan->part_span = plan->part.span;
    if (!status) status = extend("part_step", &plan->part_span, plan->parts, s->part_o_split, err);
    if (status) return status;
    s->part_o_token = plan->part.token;
    s->part_o_head = plan->part.head;
    s->part_o_batch = plan->part.plane;
    s->o_token = plan->o.token;
    s->o_head = plan->o.head;
    s->o_batch = plan->o.plane;
    return HEWN_OK;
}

/* The parts' lse: strides of the caller's, or as hewn_attention writes it. */
static int check_lse(hewn_merge_plan *plan, const hewn_merge_desc *d, hewn_error *err)
{
    struct attention_combine_scalars *s = &plan->scalars;
    uint64_t rows = (uint64_t)(d->batch * d->length * d->heads);
    const struct {
        const char *name;
        int64_t given;
        uint64_t contiguous, count;
        uint64_t *bytes;
    } steps[STEPS] = {
        {"lse_token", d->lse_token, 1, (uint64_t)d->length, &s->part_lse_token},
        {"lse_head", d->lse_head, (uint64_t)d->length, (uint64_t)d->heads, &s->part_lse_head},
        {"lse_batch", d->lse_batch, (uint64_t)(d->length * d->heads), (uint64_t)d->batch,
         &s->part_lse_batch},
        {"lse_step", d->lse_step, rows, (uint64_t)d->parts, &s->part_lse_split},
    };
    plan->part_lse_span = LSE_BYTES;
    for (int i = 0; i < STEPS; i++) {
        int status = check_step(steps[i].name, steps[i].given, steps[i].contiguous, LSE_BYTES,
                                LSE_BYTES, steps[i].bytes, err);
        if (!status)
            status =
                extend(steps[i].name, &plan->part_lse_span, steps[i].count, *steps[i].bytes, err);
        if (status) return status;
    }
    s->lse_token = LSE_BYTES;
    s->lse_head = LSE_BYTES * (uint64_t)d->length;
    s->lse_batch = LSE_BYTES * (uint64_t)(d->length * d->heads);
    plan->lse_span = LSE_BYTES * rows;
    return HEWN_OK;
}

static int fill_plan(void *at, hewn_context *context, const void *given, hewn_error *err)
{
    hewn_merge_plan *plan = at;
    const hewn_merge_desc *d = given;
    struct attention_combine_scalars *s = &plan->scalars;
    plan->context = context;
    int status = check_counts(d, err);
    if (status) return status;
    plan->sink = d->sink;
    plan->parts = (uint32_t)d->parts;
    status = check_tensors(plan, d, err);
    if (!status) status = check_lse(plan, d, err);
    if (status) return status;
    s->rows = (uint32_t)(d->batch * d->length * d->heads);
    s->q_tokens = (uint32_t)d->length;
    s->q_heads = (uint32_t)d->heads;
    s->v_dim = (uint32_t)d->dim;
    s->splits = (uint32_t)d->parts;
    s->part_type = (uint32_t)d->in;
    s->out_type = (uint32_t)d->out;
    plan->config = hewn_attention_combine_config(s->rows);
    return hewn_attention_load_combine(context, &plan->loaded, err);
}

/* ---- the public functions -- */

int hewn_merge_plan_create(hewn_context *context, const hewn_merge_desc *desc,
                           hewn_merge_plan **out, hewn_error *err)
{
    return hewn_plan_create(sizeof(**out), context, HEWN_STRUCT_hewn_merge_desc, desc, fill_plan,
                            out, err);
}

void hewn_merge_plan_destroy(hewn_merge_plan *plan)
{
    free(plan);
}

int hewn_merge_plan_describe(const hewn_merge_plan *plan, hewn_merge_plan_info *out,
                             hewn_error *err)
{
    if (!plan) return hewn_fail_null(err, "plan");
    const hewn_cu_launch_config *c = &plan->config;
    hewn_merge_plan_info info = {
        .module = plan->loaded->module->name,
        .target = plan->loaded->module->target,
        .origin = plan->loaded->origin,
        .grid = {c->grid_x, c->grid_y, c->grid_z},
        .block = {c->block_x, c->block_y, c->block_z},
    };
    return hewn_struct_give(HEWN_STRUCT_hewn_merge_plan_info, &info, out, err);
}

/* ---- the run -- */

static int check_addresses(const hewn_merge_plan *plan, const hewn_merge_args *a, hewn_error *err)
{
    uint64_t sinks = (uint64_t)LSE_BYTES * plan->scalars.q_heads;
    const struct hewn_address list[] = {
        {"o", a->o, ADDRESS_MUST, ATTENTION_ALIGN, plan->o.span, 1},
        {"lse", a->lse, ADDRESS_MAY, LSE_BYTES, plan->lse_span, 1},
        {"part_o", a->part_o, ADDRESS_MUST, ATTENTION_ALIGN, plan->part_span, 0},
        {"part_lse", a->part_lse, ADDRESS_MUST, LSE_BYTES, plan->part_lse_span, 0},
        {"sink", a->sink, hewn_needed(plan->sink), LSE_BYTES, sinks, 0},
    };
    return hewn_addresses_check(list, sizeof list / sizeof *list, err);
}

int hewn_merge_plan_run(const hewn_merge_plan *plan, const hewn_merge_args *args,
                        hewn_stream stream, hewn_error *err)
{
    hewn_merge_args a;
    int status = hewn_plan_take(plan, HEWN_STRUCT_hewn_merge_args, args, &a, err);
    if (status || !plan->scalars.rows) return status;
    status = check_addresses(plan, &a, err);
    if (status) return status;
    struct attention_combine_scalars scalars = plan->scalars;
    scalars.part_o = a.part_o;
    scalars.part_lse = a.part_lse;
    scalars.o = a.o;
    scalars.lse = a.lse;
    scalars.sink = a.sink;
    return hewn_attention_launch_combine(plan->context, &plan->config, plan->loaded, &scalars,
                                         stream, err);
}
