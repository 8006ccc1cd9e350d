/* What a model needs before its first step: weights on the device, plans, memory. */
#include "model_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements that are converted at a time; a tensor's start on the device is a multiple of 256 bytes.
 */
enum { CONVERT = 1 << 20, ALIGN = 256, SMALL = 16, INPUT_HEAD = 8, SMALL_ROOM = 1 << 16 };
/* Rows of a step that engine_attend may have. */
enum { ATTEND_ROWS = 16, LEAN_ROWS = 8, LEAN_HIDDEN = 4096 };

static const int64_t slots_usual = 8, chunk_usual = 256, page_usual = 64;

/* ---- options ---- */

static bool shares_chunks(const struct model *m)
{
    return m->ranks && m->ranks->split == RANKS_BY_CONTEXT;
}

static bool adds_parts(const struct model *m)
{
    return m->ranks && m->ranks->split == RANKS_BY_TENSOR;
}

static int64_t or_usual(int64_t value, int64_t usual)
{
    return value ? value : usual;
}

/* Products of e4m3 have rows of a multiple of 16 bytes. */
static int check_fp8(struct model *m, struct problem *p)
{
    const struct config *c = &m->config;
    if (!c->e4m3) return 0;
    if (m->ranks || c->kv_rank || c->experts)
        return problem(p, "fp8: not for %s",
                       m->ranks ? "several ranks" : "latent attention and experts");
    if (c->hidden % 16 || c->intermediate % 16)
        return problem(p, "fp8: %s is %lld, no multiple of 16",
                       c->hidden % 16 ? "hidden_size" : "intermediate_size",
                       (long long)(c->hidden % 16 ? c->hidden : c->intermediate));
    e4m3_open(m);
    return 0;
}

static int take_options(struct model *m, const struct model_options *given, struct problem *p)
{
    struct model_options *o = &m->options;
    *o = *given;
    m->ranks = given->ranks;
    o->slots = or_usual(o->slots, slots_usual);
    o->context = or_usual(o->context, m->config.positions);
    o->chunk = or_usual(o->chunk, chunk_usual);
    o->page_size = or_usual(o->page_size, page_usual);
    if (o->slots < 1 || o->slots > 1024)
        return problem(p, "slots: %lld is outside 1 to 1024", (long long)o->slots);
    if (o->context < 1 || o->context > m->config.positions)
        return problem(p, "context: %lld is outside 1 to the model's %lld", (long long)o->context,
                       (long long)m->config.positions);
    if (o->chunk < 1 || o->chunk > 65536)
        return problem(p, "chunk: %lld is outside 1 to 65536", (long long)o->chunk);
    if (o->page_size < 1 || o->page_size > 256)
        return problem(p, "page size: %lld is outside 1 to 256", (long long)o->page_size);
    /* An all-reduce over more ranks adds in orders that depend on its size. */
    if (o->invariant && adds_parts(m) && m->ranks->count > 2)
        return problem(p, "invariant: the sums of %d ranks by tensor have no fixed order; 2 have",
                       m->ranks->count);
    if (check_fp8(m, p)) return -1;
    m->table_width = (o->context + o->page_size - 1) / o->page_size;
    o->pages = or_usual(o->pages, m->table_width * o->slots);
    if (o->pages < 1) return problem(p, "pages: %lld is below 1", (long long)o->pages);
    m->logits_row = (m->config.vocab + 3) / 4 * 4;
    m->history_row = o->context;
    return 0;
}

/* A chunk's rows that this GPU computes, at most. */
static int64_t chunk_rows(const struct model *m)
{
    const int64_t ranks = shares_chunks(m) ? m->ranks->count : 1;
    return (m->options.chunk + ranks - 1) / ranks;
}

/* ---- weights ---- */

/* Rows of tensors that lie one behind the other on the device. */
struct uploader {
    struct model *m;
    struct problem *p;
    uint16_t *bits;
    hewn_deviceptr base, staging; /* staging 0: no e4m3 */
    uint64_t used, size;          /* of the memory of all weights */
};

static uint64_t padded(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static uint64_t tensor_elements(const struct tensor *t)
{
    uint64_t n = t ? 1 : 0;
    for (int i = 0; t && i < t->rank; i++) n *= (uint64_t)t->dim[i];
    return n;
}

/* Up to three tensors, in order; a NULL is passed over. Their address, 0 where there is none or
 * after a message. */
static hewn_deviceptr upload(struct uploader *u, const struct tensor *a, const struct tensor *b,
                             const struct tensor *c)
{
    const struct tensor *const all[] = {a, b, c};
    const hewn_deviceptr address = u->base + u->used;
    uint64_t done = 0;
    if (!a) return 0;
    for (int i = 0; i < 3; i++)
        for (uint64_t from = 0; all[i] && from < tensor_elements(all[i]); from += CONVERT) {
            const uint64_t left = tensor_elements(all[i]) - from;
            const size_t count = (size_t)(left < CONVERT ? left : CONVERT);
            weights_bf16(all[i], (size_t)from, count, u->bits);
            if (gpu_check(u->m->gpu,
                          u->m->gpu->to_device(address + done, u->bits, count * sizeof *u->bits),
                          all[i]->name, u->p))
                return 0;
            done += count * sizeof *u->bits;
        }
    u->used += padded(done);
    return address;
}

/* The same of matrices whose rows are rounded to e4m3; behind them the rows' scales. */
static hewn_deviceptr upload_e4m3(struct uploader *u, const struct tensor *a,
                                  const struct tensor *b, const struct tensor *c,
                                  hewn_deviceptr *scales)
{
    const struct tensor *const all[] = {a, b, c};
    const hewn_deviceptr address = u->base + u->used;
    struct e4m3_upload room = {.bits = u->bits, .staging = u->staging, .elements = CONVERT};
    uint64_t elements = 0, rows = 0;
    for (int i = 0; i < 3; i++) elements += tensor_elements(all[i]);
    *scales = address + padded(elements);
    elements = 0;
    for (int i = 0; i < 3 && all[i]; i++) {
        if (e4m3_upload(u->m, all[i], &room, address + elements, *scales + 4 * rows, u->p))
            return 0;
        elements += tensor_elements(all[i]);
        rows += (uint64_t)all[i]->dim[0];
    }
    u->used += padded(elements) + padded(4 * rows);
    return address;
}

/* A projection: of three, two or one matrices, whose scales go to `scales` where they are e4m3. */
static hewn_deviceptr upload_projection(struct uploader *u, const struct tensor *a,
                                        const struct tensor *b, const struct tensor *c,
                                        hewn_deviceptr *scales)
{
    if (!a || !u->staging) return upload(u, a, b, c);
    return upload_e4m3(u, a, b, c, scales);
}

/* One tensor as f32. */
static hewn_deviceptr upload_f32(struct uploader *u, const struct tensor *t)
{
    const hewn_deviceptr address = u->base + u->used;
    const uint64_t count = tensor_elements(t);
    float *numbers = malloc((size_t)count * sizeof *numbers);
    int failed = numbers ? 0 : problem(u->p, "no memory to load the weights");
    for (uint64_t i = 0; numbers && i < count; i++) numbers[i] = (float)weights_value(t, (size_t)i);
    if (!failed)
        failed = gpu_check(u->m->gpu,
                           u->m->gpu->to_device(address, numbers, (size_t)count * sizeof *numbers),
                           t->name, u->p);
    free(numbers);
    u->used += padded(count * sizeof *numbers);
    return failed ? 0 : address;
}

static uint64_t expert_bytes(const struct config *c)
{
    return padded(4 * (uint64_t)(c->expert_width * c->hidden)) +
           padded(2 * (uint64_t)(c->expert_width * c->hidden));
}

/* Of e4m3 also its scales. */
static uint64_t layer_bytes(const struct config *c, const struct tensor *t)
{
    const uint64_t n = tensor_elements(t);
    if (!t || !c->e4m3 || t->rank < 2) return padded(2 * n);
    return padded(n) + padded(4 * (uint64_t)t->dim[0]);
}

static uint64_t weight_bytes(const struct checkpoint *c)
{
    uint64_t bytes = padded(2 * tensor_elements(c->embed)) + padded(2 * tensor_elements(c->norm)) +
                     (c->head == c->embed ? 0 : padded(2 * tensor_elements(c->head)));
    for (int64_t i = 0; i < c->config.layers; i++) {
#define LAYER_TENSOR(field, name, rows, columns, there) \
    bytes += layer_bytes(&c->config, c->layer[i].field);
        LAYER_TENSORS(LAYER_TENSOR)
#undef LAYER_TENSOR
        if (c->layer[i].expert)
            bytes += (uint64_t)c->config.experts * expert_bytes(&c->config) +
                     padded(4 * tensor_elements(c->layer[i].router_bias));
    }
    return bytes;
}

static int upload_latent(struct uploader *u, const struct layer_tensors *t, struct layer_weights *w)
{
    struct latent_weights *l = &w->latent;
    w->qkv = upload(u, t->q_a ? t->q_a : t->q, t->kv_a, NULL);
    l->q = upload(u, t->q_b, NULL, NULL);
    l->q_norm = upload(u, t->q_a_norm, NULL, NULL);
    l->kv_norm = upload(u, t->kv_a_norm, NULL, NULL);
    l->kv = upload(u, t->kv_b, NULL, NULL);
    return w->qkv && l->kv_norm && l->kv && ((l->q && l->q_norm) || !t->q_b) ? 0 : -1;
}

/* All experts' gate and up, then all their down, each the same distance from the one before. */
static int upload_experts(struct uploader *u, const struct layer_tensors *t,
                          struct layer_weights *w)
{
    struct expert_weights *x = &w->experts;
    const struct config *c = &u->m->config;
    const uint64_t matrix = 2 * (uint64_t)(c->expert_width * c->hidden);
    x->router = upload(u, t->router, NULL, NULL);
    x->router_bias = t->router_bias ? upload_f32(u, t->router_bias) : 0;
    x->shared_inner = upload(u, t->shared_gate, t->shared_up, NULL);
    x->shared_down = upload(u, t->shared_down, NULL, NULL);
    x->inner = u->base + u->used;
    for (int64_t e = 0; e < c->experts; e++)
        if (!upload(u, t->expert[e].gate, t->expert[e].up, NULL)) return -1;
    x->down = u->base + u->used;
    for (int64_t e = 0; e < c->experts; e++)
        if (!upload(u, t->expert[e].down, NULL, NULL)) return -1;
    u->m->experts.inner_stride = (int64_t)(padded(2 * matrix) / 2);
    u->m->experts.down_stride = (int64_t)(padded(matrix) / 2);
    return x->router && (x->router_bias || !t->router_bias) &&
                   ((x->shared_inner && x->shared_down) || !t->shared_gate)
               ? 0
               : -1;
}

static int upload_layer(struct uploader *u, const struct layer_tensors *t, struct layer_weights *w)
{
    w->norm_in = upload(u, t->norm_in, NULL, NULL);
    if (t->kv_a ? upload_latent(u, t, w)
                : !(w->qkv = upload_projection(u, t->q, t->k, t->v, &w->e4m3.qkv)))
        return -1;
    w->qkv_bias = upload(u, t->q_bias, t->k_bias, t->v_bias);
    w->q_norm = upload(u, t->q_head_norm, NULL, NULL);
    w->k_norm = upload(u, t->k_head_norm, NULL, NULL);
    w->o = upload_projection(u, t->o, NULL, NULL, &w->e4m3.o);
    w->o_bias = upload(u, t->o_bias, NULL, NULL);
    w->norm_post = upload(u, t->norm_post, NULL, NULL);
    w->inner = upload_projection(u, t->gate, t->up, NULL, &w->e4m3.inner);
    w->down = upload_projection(u, t->down, NULL, NULL, &w->e4m3.down);
    if (!w->norm_in || !w->o || !w->norm_post || (!w->qkv_bias && t->q_bias) ||
        (!w->o_bias && t->o_bias) || ((!w->q_norm || !w->k_norm) && t->q_head_norm) ||
        ((!w->inner || !w->down) && t->gate))
        return -1;
    return t->expert ? upload_experts(u, t, w) : 0;
}

static int upload_all(struct model *m, const struct checkpoint *c, struct problem *p)
{
    struct uploader u = {.m = m, .p = p, .size = weight_bytes(c)};
    int failed;
    m->layer = calloc((size_t)m->config.layers, sizeof *m->layer);
    u.bits = malloc(CONVERT * sizeof *u.bits);
    u.base = gpu_memory(m->gpu, u.size, "the weights", p);
    if (u.base && m->config.e4m3) u.staging = gpu_memory(m->gpu, 2 * CONVERT, "weights", p);
    failed = !u.base || (m->config.e4m3 && !u.staging) ? -1
             : !u.bits || !m->layer                    ? problem(p, "no memory to load the weights")
                                                       : 0;
    if (!failed) {
        m->embed = upload(&u, c->embed, NULL, NULL);
        m->norm = upload(&u, c->norm, NULL, NULL);
        m->head = c->head == c->embed ? m->embed : upload(&u, c->head, NULL, NULL);
        failed = m->embed && m->norm && m->head ? 0 : -1;
    }
    for (int64_t i = 0; !failed && i < m->config.layers; i++)
        failed = upload_layer(&u, &c->layer[i], &m->layer[i]);
    free(u.bits);
    return failed;
}

/* Cosines and sines of every position, rounded once from float64. */
static int upload_rotation(struct model *m, struct problem *p)
{
    const int64_t half = m->config.rope_dim / 2, count = m->options.context * half;
    const size_t size = (size_t)count * 2 * sizeof(float);
    double *angle = malloc((size_t)half * sizeof *angle);
    float *pairs = malloc(size);
    int failed = angle && pairs ? 0 : problem(p, "no memory for the rotations");
    if (!failed) {
        config_frequencies(&m->config, angle);
        for (int64_t i = 0; i < count; i++) {
            const int64_t position = i / half;
            const double turned = (double)position * angle[i % half];
            pairs[2 * i] = (float)(cos(turned) * m->config.rope_size);
            pairs[2 * i + 1] = (float)(sin(turned) * m->config.rope_size);
        }
        m->rotation = gpu_memory(m->gpu, size, "the rotations", p);
        failed = !m->rotation ||
                 gpu_check(m->gpu, m->gpu->to_device(m->rotation, pairs, size), "the rotations", p);
    }
    free(angle);
    free(pairs);
    return failed ? -1 : 0;
}

/* ---- plans ---- */

int model_plan_product(struct model *m, const hewn_gemm_desc *desc, struct product_plan *plan,
                       struct problem *p)
{
    hewn_gemm_desc d = *desc;
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    hewn_error err;
    d.struct_size = sizeof d;
    if (d.in != HEWN_E4M3) d.in = HEWN_BF16;
    d.invariant = m->options.invariant;
    if (tuning_product(&m->tuning, &d, p)) return -1;
    d.table = m->tuning.table;
    if (hewn_gemm_plan_create(m->kernels.context, &d, &plan->plan, &err) ||
        hewn_gemm_plan_describe(plan->plan, &info, &err))
        return problem(p, "a product of %lld x %lld x %lld: %s", (long long)d.m, (long long)d.n,
                       (long long)d.k, err.message);
    plan->workspace = info.workspace;
    if (info.workspace > m->workspace_bytes) m->workspace_bytes = info.workspace;
    return 0;
}

static int plan_product(struct model *m, int64_t rows, int64_t n, int64_t k, uint32_t with, int act,
                        int out, int64_t ldd, struct product_plan *plan, struct problem *p)
{
    const hewn_gemm_desc desc = {.m = rows,
                                 .n = n,
                                 .k = k,
                                 .out = out,
                                 .bias_type = out,
                                 .act = act,
                                 .with = with,
                                 .ldd = ldd,
                                 .constant_b = 1};
    return model_plan_product(m, &desc, plan, p);
}

/* Columns of engine_attend where the model's decode can use it, else 0. Its parts, hence a row's bits, depend on
 * the other rows, so it is not for invariant steps. */
static void choose_columns(struct model *m)
{
    const struct config *c = &m->config;
    if (m->options.invariant || c->kv_rank || c->window || m->options.page_size % 16 ||
        (c->head_dim != 64 && c->head_dim != 128) || c->heads > 8 * c->kv_heads ||
        m->options.context > INT64_C(1) << 24)
        return;
    m->columns = engine_attend_columns(m->kernels.sms, c->kv_heads);
}

/* Two columns a row at least: of fewer, rows of unequal lengths are shared out more evenly by hewn_attention. */
static bool attends(const struct model *m, int64_t rows, bool chunk)
{
    return !chunk && rows <= ATTEND_ROWS && 2 * rows <= m->columns;
}

/* Whether a step of so many rows has engine_multiply's products. */
static bool is_lean(const struct model *m, int64_t rows, bool chunk)
{
    const struct config *c = &m->config;
    return !m->options.no_lean && attends(m, rows, chunk) && rows <= LEAN_ROWS && !c->e4m3 &&
           !m->ranks && !c->experts && c->hidden % 256 == 0 && c->hidden <= LEAN_HIDDEN &&
           c->intermediate % 256 == 0 && c->heads * c->head_dim % 256 == 0;
}

/* Attention of a chunk of one request (packed, so that its length is read on the device), or of
 * `rows` requests with a query each. */
static int plan_attention(struct model *m, int64_t rows, bool chunk, struct attention_plan *plan,
                          struct problem *p)
{
    const struct config *c = &m->config;
    const int64_t kv_heads = chunk && shares_chunks(m) ? 0 : c->kv_heads;
    const int64_t row = (c->heads + 2 * kv_heads) * c->head_dim;
    const hewn_attention_source source = {.struct_size = sizeof source,
                                          .keys = HEWN_KEYS_LENGTHS,
                                          .causal = 1,
                                          .length = m->options.context,
                                          .page_size = m->options.page_size,
                                          .pages = m->options.pages,
                                          .table_width = m->table_width,
                                          .window_back = c->window};
    const hewn_attention_desc desc = {.struct_size = sizeof desc,
                                      .batch = chunk ? 1 : rows,
                                      .q_heads = c->heads,
                                      .kv_heads = c->kv_heads,
                                      .qk_dim = c->head_dim,
                                      .q_length = chunk ? rows : 1,
                                      .q_tokens = chunk ? rows : 0,
                                      .q_packed = chunk,
                                      .q_token = row,
                                      .q_head = c->head_dim,
                                      .q_batch = chunk ? 0 : row,
                                      .in = HEWN_BF16,
                                      .out = HEWN_BF16,
                                      .layout = HEWN_LAYOUT_BSHD,
                                      .source = {&source},
                                      .schedule = !m->options.invariant ? HEWN_SCHEDULE_CHOSEN
                                                  : chunk && c->head_dim != 96
                                                      ? HEWN_SCHEDULE_PREFILL
                                                      : HEWN_SCHEDULE_DECODE,
                                      .invariant = m->options.invariant};
    hewn_attention_plan_info info = {.struct_size = sizeof info};
    hewn_error err;
    if (attends(m, rows, chunk)) {
        const uint64_t bytes = engine_attend_workspace(m->columns, c->kv_heads, c->head_dim);
        if (bytes > m->attention_workspace_bytes) m->attention_workspace_bytes = bytes;
        return 0;
    }
    if (hewn_attention_plan_create(m->kernels.context, &desc, &plan->plan, &err) ||
        hewn_attention_plan_describe(plan->plan, &info, &err))
        return problem(p, "attention of %lld rows: %s", (long long)rows, err.message);
    plan->workspace = info.workspace;
    if (info.workspace > m->attention_workspace_bytes)
        m->attention_workspace_bytes = info.workspace;
    return 0;
}

/* Up to the product o, whose rows are mixed's. Where ranks share chunks, K and V are apart. */
static int plan_heads(struct model *m, struct row_plans *r, bool chunk, struct problem *p)
{
    const struct config *c = &m->config;
    const int64_t q = c->heads * c->head_dim, kv = 2 * c->kv_heads * c->head_dim;
    const bool apart = chunk && shares_chunks(m);
    const uint32_t bias = c->qkv_bias ? HEWN_GEMM_WITH_BIAS : 0;
    if (c->kv_rank) return latent_plan(m, r, chunk, p);
    if (plan_product(m, r->rows, apart ? q : q + kv, c->hidden, bias, 0, HEWN_BF16, 0, &r->qkv,
                     p) ||
        (apart && plan_product(m, r->rows, kv, c->hidden, bias, 0, HEWN_BF16, 0, &r->kv, p)))
        return -1;
    return plan_attention(m, r->rows, chunk, &r->attention, p);
}

static int plan_head(struct model *m, struct row_plans *r, struct problem *p)
{
    return plan_product(m, r->rows, m->config.vocab, m->config.hidden, 0, 0, HEWN_F32,
                        m->logits_row, &r->head, p);
}

static int plan_rows(struct model *m, struct row_plans *r, int64_t rows, bool chunk,
                     struct problem *p)
{
    const struct config *c = &m->config;
    const uint32_t sum = adds_parts(m) ? 0 : HEWN_GEMM_WITH_C;
    const uint32_t bias = c->o_bias ? HEWN_GEMM_WITH_BIAS : 0;
    r->rows = rows;
    r->lean = is_lean(m, rows, chunk);
    if (c->e4m3) {
        if (e4m3_plan(m, r, p) || plan_attention(m, rows, chunk, &r->attention, p)) return -1;
        return chunk ? 0 : plan_head(m, r, p);
    }
    if ((r->lean
             ? plan_attention(m, rows, chunk, &r->attention, p)
             : plan_heads(m, r, chunk, p) || plan_product(m, rows, c->hidden, c->heads * c->v_dim,
                                                          sum | bias, 0, HEWN_BF16, 0, &r->o, p)) ||
        (c->dense_layers &&
         (plan_product(m, rows, c->intermediate, c->hidden, 0, HEWN_ACT_SWIGLU, HEWN_BF16, 0,
                       &r->inner, p) ||
          plan_product(m, rows, c->hidden, c->intermediate, sum, 0, HEWN_BF16, 0, &r->down, p))) ||
        (c->experts && experts_plan(m, r, p)))
        return -1;
    return chunk ? 0 : plan_head(m, r, p);
}

/* 1, 2, 4, .. rows of decode; 16, 64, .. of a chunk. */
static int plan_counts(struct model *m, struct problem *p)
{
    const int64_t slots = m->options.slots, chunk = chunk_rows(m);
    choose_columns(m);
    for (int64_t rows = 1;; rows *= 2) {
        const int64_t now = rows < slots ? rows : slots;
        if (plan_rows(m, &m->decode[m->decode_count++], now, false, p)) return -1;
        if (now == slots) break;
    }
    for (int64_t rows = SMALL;; rows *= 4) {
        const int64_t now = rows < chunk ? rows : chunk;
        if (plan_rows(m, &m->prefill[m->prefill_count++], now, true, p)) return -1;
        if (now == chunk) break;
    }
    return 0;
}

static int plan_all(struct model *m, struct problem *p)
{
    const int failed = tuning_open(&m->tuning, m->gpu, &m->options, p) || plan_counts(m, p) ||
                       tuning_save(&m->tuning, p);
    tuning_close(&m->tuning);
    return failed ? -1 : 0;
}

/* ---- memory ---- */

struct wanted {
    hewn_deviceptr *out;
    int64_t count;
    size_t element;
    const char *what;
};

static int allocate(struct model *m, const struct wanted *w, size_t count, struct problem *p)
{
    for (size_t i = 0; i < count; i++) {
        *w[i].out = gpu_memory(m->gpu, (size_t)w[i].count * w[i].element, w[i].what, p);
        if (!*w[i].out) return -1;
    }
    return 0;
}

static int allocate_slots(struct model *m, struct problem *p)
{
    struct engine_slots *s = &m->slots;
    const int64_t n = m->options.slots;
    const struct wanted all[] = {
#define ENGINE_SLOT_ARRAY(name) {&s->name, n, sizeof(int32_t), "slots"},
        ENGINE_SLOT_ARRAYS(ENGINE_SLOT_ARRAY)
#undef ENGINE_SLOT_ARRAY
            {&s->settings, n, sizeof(struct engine_sampling), "slots"},
    };
    s->slots = n;
    s->history_row = m->history_row;
    /* What model_read copies lies together. */
    const struct wanted read = {&s->reasons, 3 * n, sizeof(int32_t), "slots"};
    if (allocate(m, &read, 1, p)) return -1;
    s->counts = s->reasons + (uint64_t)n * sizeof(int32_t);
    s->sampled = s->counts + (uint64_t)n * sizeof(int32_t);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const struct wanted one = {all[i].out, all[i].out == &s->history ? n * m->history_row : n,
                                   all[i].element, all[i].what};
        if (!*one.out && allocate(m, &one, 1, p)) return -1;
    }
    if (gpu_check(m->gpu, m->gpu->fill(s->tokens, 0xFF, (size_t)n * sizeof(int32_t)), "slots", p) ||
        gpu_check(m->gpu, m->gpu->fill(s->positions, 0xFF, (size_t)n * sizeof(int32_t)), "slots",
                  p))
        return -1;
    return 0;
}

static int allocate_cache(struct model *m, struct problem *p)
{
    const struct config *c = &m->config;
    const int64_t row = c->kv_rank ? c->kv_rank + c->rope_dim : c->kv_heads * c->head_dim;
    const uint64_t pools = c->kv_rank ? 1 : 2; /* of a layer */
    const uint64_t layer_bytes = 2 * (uint64_t)(m->options.pages * m->options.page_size * row);
    const hewn_deviceptr base =
        gpu_memory(m->gpu, pools * (uint64_t)c->layers * layer_bytes,
                   "the cache, which fewer pages, slots or positions make smaller", p);
    if (!base) return -1;
    for (int64_t i = 0; i < c->layers; i++) {
        m->layer[i].k = base + pools * (uint64_t)i * layer_bytes;
        m->layer[i].v = c->kv_rank ? 0 : m->layer[i].k + layer_bytes;
    }
    return 0;
}

static int allocate_input(struct model *m, struct problem *p)
{
    const int64_t chunk = chunk_rows(m) * (shares_chunks(m) ? m->ranks->count : 1);
    const int64_t count = INPUT_HEAD + 3 * chunk;
    const struct wanted base = {&m->input.base, count, sizeof(int32_t), "a chunk's tokens"};
    struct chunk_input *in = &m->input;
    void *pinned = NULL;
    if (allocate(m, &base, 1, p)) return -1;
    in->offsets = in->base;
    in->length = in->base + 2 * sizeof(int32_t);
    in->last = in->base + 3 * sizeof(int32_t); /* and behind it the slot */
    in->tokens = in->base + INPUT_HEAD * sizeof(int32_t);
    in->positions = in->tokens + (uint64_t)chunk * sizeof(int32_t);
    in->sequences = in->positions + (uint64_t)chunk * sizeof(int32_t);
    m->staging_count = (size_t)(count + 3 * m->options.slots);
    if (gpu_check(m->gpu, m->gpu->host_alloc(&pinned, m->staging_count * sizeof *m->staging),
                  "pinned memory", p))
        return -1;
    m->staging = pinned;
    memset(m->staging, 0, m->staging_count * sizeof *m->staging);
    m->small_size = SMALL_ROOM + padded((uint64_t)m->table_width * sizeof(int32_t));
    if (gpu_check(m->gpu, m->gpu->host_alloc(&pinned, m->small_size), "pinned memory", p))
        return -1;
    m->small = pinned;
    return 0;
}

/* Rows up to a whole sequence of a chunk: those behind the last one are computed and not used. */
static int allocate_latent(struct model *m, int64_t rows, struct problem *p)
{
    const struct config *c = &m->config;
    struct latent_buffers *l = &m->latent;
    const int64_t all = (rows + LATENT_QUERIES - 1) / LATENT_QUERIES * LATENT_QUERIES;
    const int64_t vectors = c->heads * c->kv_rank, groups = latent_groups(m);
    const int64_t entries = groups * (1 + latent_table_width(m)), slots = m->options.slots;
    const struct wanted wanted[] = {
        {&l->q, all * c->heads * c->head_dim, 2, "activations"},
        {&l->wide, all * c->heads * (c->kv_rank + c->rope_dim), 2, "activations"},
        {&l->vector, all * (vectors > c->q_rank ? vectors : c->q_rank), 2, "activations"},
        {&l->lengths, entries, sizeof(int32_t), "a chunk's table"},
    };
    void *pinned = NULL;
    if (allocate(m, wanted, sizeof wanted / sizeof wanted[0], p)) return -1;
    l->table = l->lengths + (uint64_t)groups * sizeof(int32_t);
    l->pages = calloc((size_t)(slots * m->table_width), sizeof *l->pages);
    if (!l->pages) return problem(p, "no memory for the pages of %lld slots", (long long)slots);
    if (gpu_check(m->gpu, m->gpu->host_alloc(&pinned, (size_t)entries * sizeof *l->staging),
                  "pinned memory", p))
        return -1;
    l->staging = pinned;
    return 0;
}

static int allocate_experts(struct model *m, int64_t rows, struct problem *p)
{
    const struct config *c = &m->config;
    struct expert_buffers *x = &m->experts;
    const int64_t places = rows * c->expert_choices;
    const struct wanted wanted[] = {
        {&x->logits, rows * (c->experts + 3), sizeof(float), "the router"},
        {&x->choice, places, sizeof(int32_t), "the router"},
        {&x->weights, places, sizeof(float), "the router"},
        {&x->offsets, c->experts + 1, sizeof(int32_t), "the router"},
        {&x->index, places, sizeof(int32_t), "the router"},
        {&x->place, places, sizeof(int32_t), "the router"},
        {&x->inner, places * c->expert_width, 2, "what experts compute"},
        {&x->made, places * c->hidden, 2, "what experts compute"},
        {&x->added, rows * c->hidden, 2, "what experts compute"},
    };
    return allocate(m, wanted, sizeof wanted / sizeof wanted[0], p);
}

/* What a projection multiplies has so many elements at most. */
static int64_t e4m3_widest(const struct config *c)
{
    const int64_t q = c->heads * c->v_dim;
    const int64_t most = c->hidden > q ? c->hidden : q;
    return most > c->intermediate ? most : c->intermediate;
}

static int allocate_all(struct model *m, struct problem *p)
{
    const struct config *c = &m->config;
    const int64_t slots = m->options.slots, chunk = chunk_rows(m);
    const int64_t rows = slots > chunk ? slots : chunk, kv = 2 * c->kv_heads * c->head_dim;
    const int64_t row = c->kv_rank ? latent_row(c) : c->heads * c->head_dim + kv;
    const int64_t wide = c->intermediate > c->shared_width ? c->intermediate : c->shared_width;
    const struct wanted part = {&m->part, rows * c->hidden, 2, "activations"};
    const struct wanted gathered = {&m->gathered, chunk * (m->ranks ? m->ranks->count : 1) * kv, 2,
                                    "activations"};
    const struct wanted all[] = {
        {&m->stream, rows * c->hidden, 2, "activations"},
        {&m->normed, rows * c->hidden, 2, "activations"},
        {&m->qkv, rows * row, 2, "activations"},
        {&m->mixed, rows * c->heads * c->v_dim, 2, "activations"},
        {&m->inner, rows * wide * (c->e4m3 ? 2 : 1), 2, "activations"},
        {&m->logits, slots * m->logits_row, sizeof(float), "logits"},
        {&m->workspace, (int64_t)m->workspace_bytes, 1, "a workspace"},
        {&m->attention_workspace, (int64_t)m->attention_workspace_bytes, 1, "a workspace"},
        {&m->counters, ATTEND_ROWS * c->kv_heads, sizeof(uint32_t), "counters"},
        {&m->table, slots * m->table_width, sizeof(int32_t), "the block table"},
        {&m->stops, EOS_MAX, sizeof(int32_t), "stop tokens"},
    };
    const struct wanted e4m3[] = {{&m->e4m3.rows, rows * e4m3_widest(c), 1, "activations"},
                                  {&m->e4m3.scales, rows, sizeof(float), "activations"}};
    int32_t stops[EOS_MAX] = {0};
    for (int i = 0; i < c->eos_count; i++) stops[i] = (int32_t)c->eos[i];
    if (allocate(m, all, sizeof all / sizeof all[0], p) ||
        (adds_parts(m) && allocate(m, &part, 1, p)) || (c->e4m3 && allocate(m, e4m3, 2, p)) ||
        (shares_chunks(m) && allocate(m, &gathered, 1, p)) || allocate_slots(m, p) ||
        allocate_cache(m, p) || allocate_input(m, p) ||
        (c->kv_rank && allocate_latent(m, rows, p)) || (c->experts && allocate_experts(m, rows, p)))
        return -1;
    return gpu_check(m->gpu, m->gpu->to_device(m->stops, stops, sizeof stops), "stop tokens", p);
}

/* The first collective of a kind and size opens channels, which a capture must not. */
static int warm(const struct model *m, struct problem *p)
{
    const struct collectives *c = m->ranks ? &m->ranks->nccl : NULL;
    const int64_t hidden = m->config.hidden;
    const hewn_stream stream = m->gpu->stream;
    for (int i = 0; m->part && i < m->decode_count; i++)
        if (collectives_sum(c, m->part, m->decode[i].rows * hidden, stream, p)) return -1;
    if (m->gathered && collectives_broadcast(c, m->stream, hidden, 0, stream, p)) return -1;
    return 0;
}

int model_open(struct gpu *gpu, const struct checkpoint *checkpoint,
               const struct model_options *options, struct model **out, struct problem *p)
{
    struct model *m = calloc(1, sizeof *m);
    hewn_error err;
    if (!m) return problem(p, "no memory");
    m->gpu = gpu;
    m->config = checkpoint->config;
    if (engine_kernels_open(&m->kernels, gpu->context, &err)) {
        model_close(m);
        return problem(p, "%s", err.message);
    }
    if (take_options(m, options, p) || upload_all(m, checkpoint, p) || upload_rotation(m, p) ||
        plan_all(m, p) || allocate_all(m, p) ||
        (m->part && !m->options.by_nccl &&
         exchange_open(m->ranks, gpu, m->options.slots, m->config.hidden, p)) ||
        warm(m, p) || gpu_check(gpu, gpu->wait_all(), "the model's memory", p) ||
        model_capture(m, p)) {
        model_close(m);
        return -1;
    }
    *out = m;
    return 0;
}

static void free_plans(const struct model *m, struct row_plans *r)
{
    if (r->graph) m->gpu->graph_exec_destroy(r->graph);
    hewn_gemm_plan_destroy(r->qkv.plan);
    hewn_gemm_plan_destroy(r->kv.plan);
    hewn_gemm_plan_destroy(r->o.plan);
    hewn_gemm_plan_destroy(r->inner.plan);
    hewn_gemm_plan_destroy(r->down.plan);
    hewn_gemm_plan_destroy(r->head.plan);
    hewn_attention_plan_destroy(r->attention.plan);
    latent_plan_free(r);
    experts_plan_free(r);
}

/* Device memory goes with the struct gpu. */
void model_close(struct model *m)
{
    if (!m) return;
    if (m->gpu->stream) m->gpu->stream_wait(m->gpu->stream);
    for (int i = 0; i < m->decode_count; i++) free_plans(m, &m->decode[i]);
    for (int i = 0; i < m->prefill_count; i++) free_plans(m, &m->prefill[i]);
    if (m->staging) m->gpu->host_release(m->staging);
    if (m->small) m->gpu->host_release(m->small);
    if (m->latent.staging) m->gpu->host_release(m->latent.staging);
    free(m->latent.pages);
    free(m->layer);
    free(m);
}
