/*
 * Latent attention: Q and a row of the cache by one or two products; Q's part without position
 * times the rows of kv_b that make keys, so that it can be compared with the cache as it is; then
 * hewn_mla, and what it makes times the rows of kv_b that make values. A chunk is computed as
 * sequences of 16 queries, each with the keys up to its last query.
 */
#include "model_parts.h"

enum { VECTOR = 512, ROTARY = 64, KEY = VECTOR + ROTARY };

/* What transformers' norms of latent vectors have, whatever config.json says. */
static const double latent_eps = 1e-6;

static int64_t nope(const struct config *c)
{
    return c->head_dim - c->rope_dim;
}

static int64_t q_columns(const struct config *c)
{
    return c->q_rank ? c->q_rank : c->heads * c->head_dim;
}

int64_t latent_row(const struct config *c)
{
    return q_columns(c) + KEY;
}

/* Of the last sequence of a chunk some queries stand behind the prompt. */
int64_t latent_length(const struct model *m)
{
    return m->options.context + LATENT_QUERIES;
}

int64_t latent_table_width(const struct model *m)
{
    return (latent_length(m) + m->options.page_size - 1) / m->options.page_size;
}

int64_t latent_groups(const struct model *m)
{
    return (m->options.chunk + LATENT_QUERIES - 1) / LATENT_QUERIES;
}

/* ---- plans -- */

static int plan_attention(struct model *m, struct row_plans *r, bool chunk, struct problem *p)
{
    const int64_t queries = chunk ? LATENT_QUERIES : 1;
    const hewn_mla_desc desc = {
        .struct_size = sizeof desc,
        .batch = (r->rows + queries - 1) / queries,
        .q_heads = m->config.heads,
        .q_length = queries,
        .length = chunk ? latent_length(m) : m->options.context,
        .page_size = m->options.page_size,
        .pages = m->options.pages,
        .table_width = chunk ? latent_table_width(m) : m->table_width,
        .scale = m->config.score_scale,
        .in = HEWN_BF16,
        .out = HEWN_BF16,
        .lengths = 1,
        .causal = chunk,
        .invariant = m->options.invariant,
    };
    hewn_mla_plan_info info = {.struct_size = sizeof info};
    hewn_error err;
    if (hewn_mla_plan_create(m->kernels.context, &desc, &r->latent.attention, &err) ||
        hewn_mla_plan_describe(r->latent.attention, &info, &err))
        return problem(p, "latent attention of %lld rows: %s", (long long)r->rows, err.message);
    r->latent.workspace = info.workspace;
    if (info.workspace > m->attention_workspace_bytes)
        m->attention_workspace_bytes = info.workspace;
    return 0;
}

int latent_plan(struct model *m, struct row_plans *r, bool chunk, struct problem *p)
{
    const struct config *c = &m->config;
    const int64_t of_head = (nope(c) + c->v_dim) * VECTOR, q = c->heads * c->head_dim;
    const hewn_gemm_desc first = {
        .out = HEWN_BF16, .m = r->rows, .n = latent_row(c), .k = c->hidden};
    const hewn_gemm_desc of_q = {.out = HEWN_BF16, .m = r->rows, .n = q, .k = c->q_rank};
    const hewn_gemm_desc widen = {.out = HEWN_BF16,
                                  .m = r->rows,
                                  .n = VECTOR,
                                  .k = nope(c),
                                  .batch = c->heads,
                                  .major_b = HEWN_MAJOR_MN,
                                  .lda = c->q_rank ? q : latent_row(c),
                                  .ldb = VECTOR,
                                  .ldd = c->heads * KEY,
                                  .stride_a = c->head_dim,
                                  .stride_b = of_head,
                                  .stride_d = KEY};
    const hewn_gemm_desc values = {.out = HEWN_BF16,
                                   .m = r->rows,
                                   .n = c->v_dim,
                                   .k = VECTOR,
                                   .batch = c->heads,
                                   .lda = c->heads * VECTOR,
                                   .ldd = c->heads * c->v_dim,
                                   .stride_a = VECTOR,
                                   .stride_b = of_head,
                                   .stride_d = c->v_dim};
    if (model_plan_product(m, &first, &r->qkv, p) ||
        (c->q_rank && model_plan_product(m, &of_q, &r->latent.q, p)) ||
        model_plan_product(m, &widen, &r->latent.widen, p) ||
        model_plan_product(m, &values, &r->latent.values, p))
        return -1;
    return plan_attention(m, r, chunk, p);
}

void latent_plan_free(struct row_plans *r)
{
    hewn_gemm_plan_destroy(r->latent.q.plan);
    hewn_gemm_plan_destroy(r->latent.widen.plan);
    hewn_gemm_plan_destroy(r->latent.values.plan);
    hewn_mla_plan_destroy(r->latent.attention);
}

/* ---- a chunk's sequences -- */

int latent_send_chunk(struct model *m, int64_t slot, int64_t rows, int64_t from, struct problem *p)
{
    const int64_t width = latent_table_width(m), groups = latent_groups(m);
    const int64_t count = (rows + LATENT_QUERIES - 1) / LATENT_QUERIES;
    const int32_t *pages = m->latent.pages + slot * m->table_width;
    int32_t *lengths = m->latent.staging, *table = lengths + groups;
    for (int64_t g = 0; g < count; g++) {
        lengths[g] = (int32_t)(from + LATENT_QUERIES * (g + 1));
        for (int64_t i = 0; i < width; i++)
            table[g * width + i] = i < m->table_width ? pages[i] : -1;
    }
    return gpu_check(m->gpu,
                     m->gpu->to_device_async(m->latent.lengths, lengths,
                                             (size_t)(groups + count * width) * sizeof *table,
                                             m->gpu->stream),
                     "a copy to the device", p);
}

/* ---- a step -- */

/* Q's vector, normed, times q_b. */
static int make_q(const struct model *m, const struct rows *r, const struct layer_weights *w,
                  struct problem *p)
{
    const struct config *c = &m->config;
    const struct engine_norm norm = {.x = m->qkv,
                                     .w = w->latent.q_norm,
                                     .out = m->latent.vector,
                                     .rows = r->plans->rows,
                                     .x_rows = r->plans->rows,
                                     .hidden = c->q_rank,
                                     .x_row = latent_row(c),
                                     .eps = latent_eps};
    hewn_error err;
    if (model_passed(engine_norm(&m->kernels, &norm, m->gpu->stream, &err), &err, p)) return -1;
    return model_product(m, &r->plans->latent.q, m->latent.vector, w->latent.q, 0, 0, m->latent.q,
                         p);
}

static int rotate(const struct model *m, const struct rows *r, const struct layer_weights *w,
                  hewn_deviceptr q, struct problem *p)
{
    const struct config *c = &m->config;
    const struct engine_latent args = {
        .vector = m->qkv + 2 * (uint64_t)q_columns(c),
        .q = q + 2 * (uint64_t)nope(c),
        .out = m->latent.wide + 2 * VECTOR,
        .positions = r->positions,
        .sequences = r->sequences,
        .rotation = m->rotation,
        .norm = w->latent.kv_norm,
        .cache = w->k,
        .table = m->table,
        .rows = r->plans->rows,
        .heads = c->heads,
        .vector_row = latent_row(c),
        .q_row = c->q_rank ? c->heads * c->head_dim : latent_row(c),
        .q_head = c->head_dim,
        .out_row = c->heads * KEY,
        .out_head = KEY,
        .positions_most = m->options.context,
        .sequences_most = m->options.slots,
        .pages = m->options.pages,
        .page_size = m->options.page_size,
        .table_width = m->table_width,
        .page = KEY * m->options.page_size,
        .token = KEY,
        .eps = latent_eps,
    };
    hewn_error err;
    return model_passed(engine_latent(&m->kernels, &args, m->gpu->stream, &err), &err, p);
}

int latent_attend(const struct model *m, const struct rows *r, const struct layer_weights *w,
                  struct problem *p)
{
    const struct config *c = &m->config;
    const struct latent_plans *plans = &r->plans->latent;
    const hewn_deviceptr q = c->q_rank ? m->latent.q : m->qkv;
    const bool chunk = r->offsets != 0;
    const hewn_mla_args args = {.struct_size = sizeof args,
                                .q = m->latent.wide,
                                .kv = w->k,
                                .o = m->latent.vector,
                                .lengths = chunk ? m->latent.lengths : r->lengths,
                                .table = chunk ? m->latent.table : m->table,
                                .workspace = plans->workspace ? m->attention_workspace : 0};
    hewn_error err;
    if (model_product(m, &r->plans->qkv, m->normed, w->qkv, 0, 0, m->qkv, p) ||
        (c->q_rank && make_q(m, r, w, p)) || rotate(m, r, w, q, p) ||
        model_product(m, &plans->widen, q, w->latent.kv, 0, 0, m->latent.wide, p) ||
        model_passed(hewn_mla_plan_run(plans->attention, &args, m->gpu->stream, &err), &err, p))
        return -1;
    return model_product(m, &plans->values, m->latent.vector,
                         w->latent.kv + 2 * VECTOR * (uint64_t)nope(c), 0, 0, m->mixed, p);
}
