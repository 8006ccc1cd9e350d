/*
 * A layer's experts: logits of the router, each row's experts, their places; the experts' gate and
 * up projections of rows by number, down, and each row's weighted sum. The sum stays apart from the
 * stream until the next norm adds it. Of ranks by tensor it goes into the rank's part, with what all
 * tokens pass.
 */
#include "model_parts.h"

/* Rows of all experts, and those that one has where they are dealt out evenly. */
static int64_t places(const struct model *m, const struct row_plans *r)
{
    return r->rows * m->config.expert_choices;
}

static int64_t expected(const struct model *m, const struct row_plans *r)
{
    const int64_t each = places(m, r) / m->config.experts;
    return each ? each : 1;
}

static int64_t logits_row(const struct config *c)
{
    return (c->experts + 3) / 4 * 4;
}

static int plan_grouped(struct model *m, const struct row_plans *r, bool inner,
                        hewn_grouped_plan **out, struct problem *p)
{
    const struct config *c = &m->config;
    const hewn_grouped_desc desc = {
        .struct_size = sizeof desc,
        .groups = c->experts,
        .m = places(m, r),
        .n = inner ? c->expert_width : c->hidden,
        .k = inner ? c->hidden : c->expert_width,
        .expected_m = expected(m, r),
        .stride_b = inner ? m->experts.inner_stride : m->experts.down_stride,
        .in = HEWN_BF16,
        .out = HEWN_BF16,
        .kind = HEWN_GROUPED_OFFSETS,
        .act = inner ? HEWN_ACT_SWIGLU : HEWN_ACT_NONE,
        .a_rows = inner ? r->rows : 0,
    };
    hewn_error err;
    if (!hewn_grouped_plan_create(m->kernels.context, &desc, out, &err)) return 0;
    return problem(p, "experts of %lld rows: %s", (long long)r->rows, err.message);
}

static int plan_sum(struct model *m, struct row_plans *r, struct problem *p)
{
    const struct config *c = &m->config;
    const hewn_grouped_sum_desc desc = {.struct_size = sizeof desc,
                                        .rows = r->rows,
                                        .terms = c->expert_choices,
                                        .n = c->hidden,
                                        .x_rows = places(m, r),
                                        .in = HEWN_BF16,
                                        .out = HEWN_BF16};
    hewn_error err;
    if (!hewn_grouped_sum_plan_create(m->kernels.context, &desc, &r->experts.sum, &err)) return 0;
    return problem(p, "sums of experts of %lld rows: %s", (long long)r->rows, err.message);
}

int experts_plan(struct model *m, struct row_plans *r, struct problem *p)
{
    const struct config *c = &m->config;
    const hewn_gemm_desc router = {
        .m = r->rows, .n = c->experts, .k = c->hidden, .out = HEWN_F32, .ldd = logits_row(c)};
    const hewn_gemm_desc inner = {.out = HEWN_BF16,
                                  .m = r->rows,
                                  .n = c->shared_width,
                                  .k = c->hidden,
                                  .act = HEWN_ACT_SWIGLU};
    const hewn_gemm_desc down = {.out = HEWN_BF16,
                                 .m = r->rows,
                                 .n = c->hidden,
                                 .k = c->shared_width,
                                 .with = HEWN_GEMM_WITH_C};
    if (model_plan_product(m, &router, &r->experts.router, p) ||
        (c->shared_width && (model_plan_product(m, &inner, &r->experts.shared_inner, p) ||
                             model_plan_product(m, &down, &r->experts.shared_down, p))) ||
        plan_grouped(m, r, true, &r->experts.inner, p) ||
        plan_grouped(m, r, false, &r->experts.down, p))
        return -1;
    return plan_sum(m, r, p);
}

void experts_plan_free(struct row_plans *r)
{
    hewn_gemm_plan_destroy(r->experts.router.plan);
    hewn_gemm_plan_destroy(r->experts.shared_inner.plan);
    hewn_gemm_plan_destroy(r->experts.shared_down.plan);
    hewn_grouped_plan_destroy(r->experts.inner);
    hewn_grouped_plan_destroy(r->experts.down);
    hewn_grouped_sum_plan_destroy(r->experts.sum);
}

/* ---- a step -- */

/* Which experts a row goes to, and where. */
static int route(const struct model *m, const struct rows *r, const struct layer_weights *w,
                 struct problem *p)
{
    const struct config *c = &m->config;
    const struct expert_buffers *b = &m->experts;
    const struct engine_route choose = {.logits = b->logits,
                                        .bias = w->experts.router_bias,
                                        .positions = r->positions,
                                        .choice = b->choice,
                                        .weights = b->weights,
                                        .rows = r->plans->rows,
                                        .experts = c->experts,
                                        .choices = c->expert_choices,
                                        .groups = c->expert_groups,
                                        .groups_kept = c->groups_kept,
                                        .logits_row = logits_row(c),
                                        .sigmoid = c->router_sigmoid,
                                        .normed = c->router_normed,
                                        .scale = c->router_scale};
    const struct engine_place place = {.choice = b->choice,
                                       .offsets = b->offsets,
                                       .index = b->index,
                                       .place = b->place,
                                       .rows = r->plans->rows,
                                       .choices = c->expert_choices,
                                       .experts = c->experts};
    hewn_error err;
    if (model_product(m, &r->plans->experts.router, m->normed, w->experts.router, 0, 0, b->logits,
                      p) ||
        model_passed(engine_route(&m->kernels, &choose, m->gpu->stream, &err), &err, p))
        return -1;
    return model_passed(engine_place(&m->kernels, &place, m->gpu->stream, &err), &err, p);
}

int experts_run(const struct model *m, const struct rows *r, const struct layer_weights *w,
                struct problem *p)
{
    const struct expert_plans *plans = &r->plans->experts;
    const struct expert_buffers *b = &m->experts;
    const bool apart = m->part && !m->config.shared_width; /* a rank's part is this sum alone */
    const hewn_grouped_args inner = {.struct_size = sizeof inner,
                                     .a = m->normed,
                                     .b = w->experts.inner,
                                     .d = b->inner,
                                     .rows = b->offsets,
                                     .index = b->index};
    const hewn_grouped_args down = {.struct_size = sizeof down,
                                    .a = b->inner,
                                    .b = w->experts.down,
                                    .d = b->made,
                                    .rows = b->offsets};
    const hewn_grouped_sum_args sum = {.struct_size = sizeof sum,
                                       .x = b->made,
                                       .d = apart ? m->part : b->added,
                                       .index = b->place,
                                       .weights = b->weights};
    hewn_stream stream = m->gpu->stream;
    hewn_error err;
    if (route(m, r, w, p) ||
        model_passed(hewn_grouped_plan_run(plans->inner, &inner, stream, &err), &err, p) ||
        model_passed(hewn_grouped_plan_run(plans->down, &down, stream, &err), &err, p) ||
        model_passed(hewn_grouped_sum_plan_run(plans->sum, &sum, stream, &err), &err, p))
        return -1;
    if (!m->config.shared_width) return 0;
    if (model_product(m, &plans->shared_inner, m->normed, w->experts.shared_inner, 0, 0, m->inner,
                      p))
        return -1;
    return model_product(m, &plans->shared_down, m->inner, w->experts.shared_down, 0,
                         m->part ? b->added : m->stream, m->part ? m->part : m->stream, p);
}
