/*
 * Projections in e4m3: rows of their weights, quantised once, times rows of activations, quantised as they are made.
 * A row has one scale, its largest number's over 448. Sums are f32, and what goes between layers is bf16 as without.
 */
#include "model_parts.h"

#include <string.h>

/* ---- weights -- */

/* Rows of bf16 on the device to e4m3 and scales. */
static int quantise(const struct model *m, const struct engine_quant *args, struct problem *p)
{
    hewn_error err;
    return model_passed(engine_quant(&m->kernels, args, m->gpu->stream, &err), &err, p);
}

int e4m3_upload(const struct model *m, const struct tensor *t, struct e4m3_upload *u,
                hewn_deviceptr out, hewn_deviceptr scales, struct problem *p)
{
    const int64_t rows = t->dim[0], n = t->dim[1], most = (int64_t)u->elements / n;
    if (most < 1)
        return problem(p, "%s: a row of %lld elements; --fp8 takes rows of up to %zu", t->name,
                       (long long)n, u->elements);
    for (int64_t from = 0, now; from < rows; from += now) {
        now = rows - from < most ? rows - from : most;
        const struct engine_quant args = {.x = u->staging,
                                          .out = out + (uint64_t)(from * n),
                                          .scales = scales + 4 * (uint64_t)from,
                                          .rows = now,
                                          .n = n};
        const size_t count = (size_t)(now * n);
        weights_bf16(t, (size_t)(from * n), count, u->bits);
        /* On the kernel's stream: a copy on the default one may return before it has arrived. */
        if (gpu_check(m->gpu,
                      m->gpu->to_device_async(u->staging, u->bits, count * sizeof *u->bits,
                                              m->gpu->stream),
                      t->name, p) ||
            quantise(m, &args, p) ||
            gpu_check(m->gpu, m->gpu->stream_wait(m->gpu->stream), t->name, p))
            return -1;
    }
    return 0;
}

/* ---- few rows: engine_project, but for gate and up, which hewn_gemm streams faster -- */

enum { FEW = 1, FEW_UNIT = 64, FEW_WIDEST = 16384, TILE = 16 };

/* Steps of few rows have a kernel of their own, except where a request has the same bits among many. */
void e4m3_open(struct model *m)
{
    const struct config *c = &m->config;
    const int64_t q = c->heads * c->head_dim, qkv = q + 2 * c->kv_heads * c->head_dim;
    const int64_t k[] = {c->hidden, q, c->intermediate};
    bool fits = qkv % TILE == 0;
    for (int i = 0; i < 3; i++) fits = fits && k[i] % FEW_UNIT == 0 && k[i] <= FEW_WIDEST;
    m->e4m3.ctas = 2 * m->kernels.sms; /* two an SM: one leaves it waiting */
    m->e4m3.few = fits && !m->options.invariant ? FEW : 0;
}

/* ---- plans -- */

static int plan(struct model *m, int64_t rows, int64_t n, int64_t k, uint32_t with,
                struct product_plan *out, struct problem *p)
{
    const hewn_gemm_desc desc = {
        .m = rows,
        .n = n,
        .k = k,
        .in = HEWN_E4M3,
        .out = HEWN_BF16,
        .bias_type = HEWN_BF16,
        .with = with | HEWN_GEMM_WITH_SCALE_ROWS | HEWN_GEMM_WITH_SCALE_COLUMNS,
        .constant_b = 1,
    };
    return model_plan_product(m, &desc, out, p);
}

int e4m3_plan(struct model *m, struct row_plans *r, struct problem *p)
{
    const struct config *c = &m->config;
    const int64_t q = c->heads * c->head_dim, kv = 2 * c->kv_heads * c->head_dim;
    const uint32_t qkv_bias = c->qkv_bias ? HEWN_GEMM_WITH_BIAS : 0;
    const uint32_t o_bias = c->o_bias ? HEWN_GEMM_WITH_BIAS : 0;
    if (plan(m, r->rows, 2 * c->intermediate, c->hidden, 0, &r->inner, p)) return -1;
    if (r->rows <= m->e4m3.few) return 0;
    return plan(m, r->rows, q + kv, c->hidden, qkv_bias, &r->qkv, p) ||
                   plan(m, r->rows, c->hidden, q, HEWN_GEMM_WITH_C | o_bias, &r->o, p) ||
                   plan(m, r->rows, c->hidden, c->intermediate, HEWN_GEMM_WITH_C, &r->down, p)
               ? -1
               : 0;
}

/* ---- a step -- */

/* Rows of x, normed by `norm` or gated by what stands `half` of a row behind them, times a projection. */
struct projection {
    hewn_deviceptr x, norm;
    int64_t k, n;           /* of x, of d */
    bool gates, feeds_gate; /* x is gate and factor; d is */
    const struct product_plan *plan;
    hewn_deviceptr weights, scales, bias, c, d;
};

/* Few rows: x is rounded already, with `scales`, or every CTA rounds all rows itself. */
static int project_few(const struct model *m, int64_t rows, const struct projection *j,
                       hewn_deviceptr x, hewn_deviceptr scales, struct problem *p)
{
    const struct engine_project args = {.x = x,
                                        .x_scales = scales,
                                        .w = j->norm,
                                        .b = j->weights,
                                        .b_scales = j->scales,
                                        .bias = j->bias,
                                        .c = j->c,
                                        .d = j->d,
                                        .rows = rows,
                                        .n = j->n,
                                        .k = j->k,
                                        .ctas = m->e4m3.ctas,
                                        .eps = m->config.norm_eps};
    hewn_error err;
    return model_passed(engine_project(&m->kernels, &args, m->gpu->stream, &err), &err, p);
}

static int project(const struct model *m, int64_t rows, const struct projection *j,
                   struct problem *p)
{
    const struct engine_quant quant = {.x = j->x,
                                       .up = j->gates ? j->x + 2 * (uint64_t)j->k : 0,
                                       .w = j->norm,
                                       .out = m->e4m3.rows,
                                       .scales = m->e4m3.scales,
                                       .rows = rows,
                                       .n = j->k,
                                       .row = j->gates ? 2 * j->k : j->k,
                                       .eps = m->config.norm_eps};
    const hewn_gemm_args args = {.struct_size = sizeof args,
                                 .a = m->e4m3.rows,
                                 .b = j->weights,
                                 .d = j->d,
                                 .c = j->c,
                                 .bias = j->bias,
                                 .beta = j->c ? 1 : 0,
                                 .scale_a = m->e4m3.scales,
                                 .scale_b = j->scales,
                                 .workspace = j->plan->workspace ? m->workspace : 0};
    hewn_error err;
    const bool few = rows <= m->e4m3.few && !j->feeds_gate;
    if (few && !j->gates) return project_few(m, rows, j, j->x, 0, p);
    if (quantise(m, &quant, p)) return -1;
    if (few) return project_few(m, rows, j, m->e4m3.rows, m->e4m3.scales, p);
    return model_passed(hewn_gemm_plan_run(j->plan->plan, &args, m->gpu->stream, &err), &err, p);
}

int e4m3_project(const struct model *m, const struct row_plans *plans,
                 const struct layer_weights *w, enum e4m3_projection which, struct problem *p)
{
    const struct config *c = &m->config;
    const int64_t q = c->heads * c->head_dim;
    const struct projection all[] = {
        [E4M3_QKV] = {.x = m->stream,
                      .norm = w->norm_in,
                      .k = c->hidden,
                      .n = q + 2 * c->kv_heads * c->head_dim,
                      .plan = &plans->qkv,
                      .weights = w->qkv,
                      .scales = w->e4m3.qkv,
                      .bias = w->qkv_bias,
                      .d = m->qkv},
        [E4M3_O] = {.x = m->mixed,
                    .k = q,
                    .n = c->hidden,
                    .plan = &plans->o,
                    .weights = w->o,
                    .scales = w->e4m3.o,
                    .bias = w->o_bias,
                    .c = m->stream,
                    .d = m->stream},
        [E4M3_INNER] = {.x = m->stream,
                        .norm = w->norm_post,
                        .k = c->hidden,
                        .n = 2 * c->intermediate,
                        .feeds_gate = true,
                        .plan = &plans->inner,
                        .weights = w->inner,
                        .scales = w->e4m3.inner,
                        .d = m->inner},
        [E4M3_DOWN] = {.x = m->inner,
                       .k = c->intermediate,
                       .n = c->hidden,
                       .gates = true,
                       .plan = &plans->down,
                       .weights = w->down,
                       .scales = w->e4m3.down,
                       .c = m->stream,
                       .d = m->stream},
    };
    return project(m, plans->rows, &all[which], p);
}

int e4m3_layer(const struct model *m, const struct rows *r, const struct layer_weights *w,
               struct problem *p)
{
    return e4m3_project(m, r->plans, w, E4M3_QKV, p) || model_attend(m, r, w, p) ||
                   e4m3_project(m, r->plans, w, E4M3_O, p) ||
                   e4m3_project(m, r->plans, w, E4M3_INNER, p) ||
                   e4m3_project(m, r->plans, w, E4M3_DOWN, p)
               ? -1
               : 0;
}
