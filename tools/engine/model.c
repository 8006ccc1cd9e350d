/* One step of a model: what is enqueued, in order. */
#include "model_parts.h"
#include "model_ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CAPTURE_THREAD_LOCAL = 1 };

int model_passed(int status, const hewn_error *err, struct problem *p)
{
    return status ? problem(p, "%s", err->message) : 0;
}

/* ---- products ---- */

int model_product(const struct model *m, const struct product_plan *plan, hewn_deviceptr a,
                  hewn_deviceptr b, hewn_deviceptr bias, hewn_deviceptr c, hewn_deviceptr d,
                  struct problem *p)
{
    const hewn_gemm_args args = {.struct_size = sizeof args,
                                 .a = a,
                                 .b = b,
                                 .d = d,
                                 .c = c,
                                 .bias = bias,
                                 .beta = c ? 1 : 0,
                                 .workspace = plan->workspace ? m->workspace : 0};
    hewn_error err;
    return model_passed(hewn_gemm_plan_run(plan->plan, &args, m->gpu->stream, &err), &err, p);
}

/* ---- attention, of a chunk or of all slots ---- */

static int attend(const struct model *m, const struct rows *r, const struct layer_weights *w,
                  struct problem *p)
{
    const struct attention_plan *plan = &r->plans->attention;
    const hewn_attention_source_args source = {.struct_size = sizeof source,
                                               .k = w->k,
                                               .v = w->v,
                                               .lengths = r->lengths,
                                               .table = r->table};
    const hewn_attention_args args = {.struct_size = sizeof args,
                                      .q = m->qkv,
                                      .o = m->mixed,
                                      .cu_q = r->offsets,
                                      .workspace = plan->workspace ? m->attention_workspace : 0,
                                      .source = {&source}};
    hewn_error err;
    return model_passed(hewn_attention_plan_run(plan->plan, &args, m->gpu->stream, &err), &err, p);
}

static struct engine_cache cache_of(const struct model *m, const struct layer_weights *w)
{
    const struct config *c = &m->config;
    const int64_t token = c->kv_heads * c->head_dim;
    return (struct engine_cache){.rotation = m->rotation,
                                 .q_norm = w->q_norm,
                                 .k_norm = w->k_norm,
                                 .k = w->k,
                                 .v = w->v,
                                 .table = m->table,
                                 .positions_most = m->options.context,
                                 .pages = m->options.pages,
                                 .page_size = m->options.page_size,
                                 .table_width = m->table_width,
                                 .page = token * m->options.page_size,
                                 .head = c->head_dim,
                                 .token = token,
                                 .eps = c->norm_eps};
}

/* Rows of `qkv`, which have these heads. */
static int rotate(const struct model *m, const struct engine_rope *rows,
                  const struct layer_weights *w, struct problem *p)
{
    struct engine_rope args = *rows;
    hewn_error err;
    args.cache = cache_of(m, w);
    args.dim = m->config.head_dim;
    args.sequences_most = m->options.slots;
    return model_passed(engine_rope(&m->kernels, &args, m->gpu->stream, &err), &err, p);
}

/* Q of this rank's rows; K and V of them, which the ranks then exchange, so that each has those of
 * the whole chunk in its cache. */
static int project_shared(const struct model *m, const struct rows *r,
                          const struct layer_weights *w, struct problem *p)
{
    const struct config *c = &m->config;
    const int64_t q = c->heads * c->head_dim, kv = 2 * c->kv_heads * c->head_dim;
    const int64_t own = r->plans->rows * kv;
    const hewn_deviceptr to = m->gathered + 2 * (uint64_t)(own * m->ranks->rank);
    const hewn_deviceptr kv_bias = w->qkv_bias ? w->qkv_bias + 2 * (uint64_t)q : 0;
    const struct engine_rope queries = {.qkv = m->qkv,
                                        .positions = r->positions,
                                        .sequences = r->sequences,
                                        .rows = r->plans->rows,
                                        .q_heads = c->heads};
    const struct engine_rope keys = {.qkv = m->gathered,
                                     .positions = r->all_positions,
                                     .sequences = r->all_sequences,
                                     .rows = r->all_rows,
                                     .kv_heads = c->kv_heads};
    if (model_product(m, &r->plans->kv, m->normed, w->qkv + 2 * (uint64_t)(q * c->hidden), kv_bias,
                      0, to, p) ||
        collectives_gather(&m->ranks->nccl, m->gathered, own, m->gpu->stream, p) ||
        model_product(m, &r->plans->qkv, m->normed, w->qkv, w->qkv_bias, 0, m->qkv, p) ||
        rotate(m, &queries, w, p))
        return -1;
    return rotate(m, &keys, w, p);
}

/* Rotation, cache and attention of all slots in one launch. */
static int attend_slots(const struct model *m, const struct rows *r, const struct layer_weights *w,
                        struct problem *p)
{
    const struct config *c = &m->config;
    const struct engine_attend args = {.cache = cache_of(m, w),
                                       .qkv = m->qkv,
                                       .positions = r->positions,
                                       .o = m->mixed,
                                       .workspace = m->attention_workspace,
                                       .counters = m->counters,
                                       .rows = r->plans->rows,
                                       .q_heads = c->heads,
                                       .kv_heads = c->kv_heads,
                                       .dim = c->head_dim,
                                       .columns = m->columns,
                                       .scale = 1 / sqrt((double)c->head_dim)};
    hewn_error err;
    return model_passed(engine_attend(&m->kernels, &args, m->gpu->stream, &err), &err, p);
}

int model_attend(const struct model *m, const struct rows *r, const struct layer_weights *w,
                 struct problem *p)
{
    if (!r->plans->attention.plan) return attend_slots(m, r, w, p);
    const struct engine_rope all = {.qkv = m->qkv,
                                    .positions = r->positions,
                                    .sequences = r->sequences,
                                    .rows = r->plans->rows,
                                    .q_heads = m->config.heads,
                                    .kv_heads = m->config.kv_heads};
    return rotate(m, &all, w, p) || attend(m, r, w, p) ? -1 : 0;
}

/* From normed to mixed. */
static int project(const struct model *m, const struct rows *r, const struct layer_weights *w,
                   struct problem *p)
{
    if (r->all_rows) return project_shared(m, r, w, p) || attend(m, r, w, p) ? -1 : 0;
    if (model_product(m, &r->plans->qkv, m->normed, w->qkv, w->qkv_bias, 0, m->qkv, p)) return -1;
    return model_attend(m, r, w, p);
}

/* ---- layers ---- */

/* Ranks by tensor add their parts up, unless engine_exchange does it. */
static int sum_parts(const struct model *m, const struct rows *r, struct problem *p)
{
    if (!m->part || r->exchanges) return 0;
    return collectives_sum(&m->ranks->nccl, m->part, r->plans->rows * m->config.hidden,
                           m->gpu->stream, p);
}

/* What a projection adds to the stream. Ranks by tensor add theirs up first, and the next norm adds
 * the sum to the stream. */
static int add(const struct model *m, const struct rows *r, const struct product_plan *plan,
               hewn_deviceptr a, hewn_deviceptr b, hewn_deviceptr bias, struct problem *p)
{
    if (!m->part) return model_product(m, plan, a, b, bias, m->stream, m->stream, p);
    return model_product(m, plan, a, b, bias, 0, m->part, p) || sum_parts(m, r, p) ? -1 : 0;
}

/* The stream and the sum of all ranks' parts, normed to `normed`; with `keeps`, also back onto the
 * stream. A step's sums take the halves of the inboxes in turn, and it has two in every layer. */
static int exchange(const struct model *m, int64_t rows, int half, bool keeps, hewn_deviceptr w,
                    struct problem *p)
{
    const struct exchange *x = &m->ranks->exchange;
    const struct engine_exchange args = {.x = m->stream,
                                         .part = m->part,
                                         .inbox = exchange_inbox(x, m->ranks, half),
                                         .peers = x->peers,
                                         .h = keeps ? m->stream : 0,
                                         .w = w,
                                         .out = m->normed,
                                         .rank = m->ranks->rank,
                                         .ranks = m->ranks->count,
                                         .rows = rows,
                                         .hidden = m->config.hidden,
                                         .inbox_rank = x->inbox_rank,
                                         .ctas = x->ctas,
                                         .eps = m->config.norm_eps};
    hewn_error err;
    return model_passed(engine_exchange(&m->kernels, &args, m->gpu->stream, &err), &err, p);
}

/* Of the stream, onto which `added` goes before, unless that is 0. `half`: which sum of the layer. */
static int norm(const struct model *m, const struct rows *r, hewn_deviceptr added, int half,
                hewn_deviceptr w, struct problem *p)
{
    const int64_t rows = r->plans->rows;
    const struct engine_norm args = {.x = m->stream,
                                     .y = added,
                                     .h = added ? m->stream : 0,
                                     .w = w,
                                     .out = m->normed,
                                     .rows = rows,
                                     .x_rows = rows,
                                     .hidden = m->config.hidden,
                                     .eps = m->config.norm_eps};
    hewn_error err;
    if (r->exchanges) return exchange(m, rows, half, true, w, p);
    return model_passed(engine_norm(&m->kernels, &args, m->gpu->stream, &err), &err, p);
}

/* The tokens' rows of the embedding into the stream, and the first layer's norm. */
static int embed(const struct model *m, const struct rows *r, struct problem *p)
{
    const struct engine_norm args = {.x = m->embed,
                                     .index = r->tokens,
                                     .h = m->stream,
                                     .w = m->layer[0].norm_in,
                                     .out = m->config.e4m3 || r->plans->lean ? 0 : m->normed,
                                     .rows = r->plans->rows,
                                     .x_rows = m->config.vocab,
                                     .hidden = m->config.hidden,
                                     .eps = m->config.norm_eps};
    hewn_error err;
    return model_passed(engine_norm(&m->kernels, &args, m->gpu->stream, &err), &err, p);
}

/* From normed to mixed. */
static int attention(const struct model *m, const struct rows *r, const struct layer_weights *w,
                     struct problem *p)
{
    if (m->config.kv_rank) return latent_attend(m, r, w, p);
    return project(m, r, w, p);
}

/* From normed onto the stream; experts and ranks leave a part to the next norm. */
static int inner(const struct model *m, const struct rows *r, const struct layer_weights *w,
                 struct problem *p)
{
    if (w->experts.inner) return experts_run(m, r, w, p) || sum_parts(m, r, p) ? -1 : 0;
    if (model_product(m, &r->plans->inner, m->normed, w->inner, 0, 0, m->inner, p)) return -1;
    return add(m, r, &r->plans->down, m->inner, w->down, 0, p);
}

/* What the norm behind layer i adds to the stream. */
static hewn_deviceptr added_by(const struct model *m, int64_t i)
{
    return m->layer[i].experts.inner && !m->part ? m->experts.added : m->part;
}

int model_multiply(const struct model *m, int64_t rows, const struct engine_multiply *what,
                   struct problem *p)
{
    struct engine_multiply args = *what;
    hewn_error err;
    args.rows = rows;
    args.ctas = m->kernels.sms;
    args.eps = m->config.norm_eps;
    return model_passed(engine_multiply(&m->kernels, &args, m->gpu->stream, &err), &err, p);
}

void model_lean(const struct model *m, const struct layer_weights *w, struct lean_layer *out)
{
    const struct config *c = &m->config;
    const int64_t q = c->heads * c->head_dim;
    *out = (struct lean_layer){.qkv = {.x = m->stream,
                                       .norm = w->norm_in,
                                       .weights = w->qkv,
                                       .bias = w->qkv_bias,
                                       .d = m->qkv,
                                       .n = q + 2 * c->kv_heads * c->head_dim,
                                       .k = c->hidden},
                               .o = {.x = m->mixed,
                                     .weights = w->o,
                                     .bias = w->o_bias,
                                     .c = m->stream,
                                     .d = m->stream,
                                     .n = c->hidden,
                                     .k = q}};
}

/* From the stream to the stream. The feed-forward's larger products are faster by hewn_gemm, behind a norm. */
static int lean_layer(const struct model *m, const struct rows *r, const struct layer_weights *w,
                      struct problem *p)
{
    const int64_t rows = r->plans->rows;
    struct lean_layer l;
    model_lean(m, w, &l);
    return model_multiply(m, rows, &l.qkv, p) || model_attend(m, r, w, p) ||
                   model_multiply(m, rows, &l.o, p) || norm(m, r, 0, 0, w->norm_post, p) ||
                   inner(m, r, w, p)
               ? -1
               : 0;
}

/* From the normed input of layer i to the normed input of what follows; the last one is not normed.
 */
static int layer(const struct model *m, const struct rows *r, int64_t i, struct problem *p)
{
    const struct layer_weights *w = &m->layer[i];
    if (m->config.e4m3) return e4m3_layer(m, r, w, p);
    if (r->plans->lean) return lean_layer(m, r, w, p);
    if (attention(m, r, w, p) || add(m, r, &r->plans->o, m->mixed, w->o, w->o_bias, p) ||
        norm(m, r, m->part, 0, w->norm_post, p) || inner(m, r, w, p))
        return -1;
    return i + 1 < m->config.layers ? norm(m, r, added_by(m, i), 1, m->layer[i + 1].norm_in, p) : 0;
}

static int layers(const struct model *m, const struct rows *r, struct problem *p)
{
    if (embed(m, r, p)) return -1;
    for (int64_t i = 0; i < m->config.layers; i++)
        if (layer(m, r, i, p)) return -1;
    return 0;
}

/* Logits of rows of the stream, those of `index` or all, then a token for each. With `exchanges`,
 * the ranks' last parts are still apart. */
static int draw(const struct model *m, const struct row_plans *plans, bool exchanges,
                hewn_deviceptr index, int64_t stream_rows, hewn_deviceptr slot_of,
                struct problem *p)
{
    const struct engine_norm last = {.x = m->stream,
                                     .y = added_by(m, m->config.layers - 1),
                                     .index = index,
                                     .w = m->norm,
                                     .out = m->normed,
                                     .rows = plans->rows,
                                     .x_rows = stream_rows,
                                     .hidden = m->config.hidden,
                                     .eps = m->config.norm_eps};
    const struct engine_sample sample = {.logits = m->logits,
                                         .slot_of = slot_of,
                                         .slots = &m->slots,
                                         .rows = plans->rows,
                                         .vocab = m->config.vocab,
                                         .row = m->logits_row,
                                         .type = HEWN_F32};
    const struct engine_advance advance = {.slot_of = slot_of,
                                           .slots = &m->slots,
                                           .stops = m->stops,
                                           .rows = plans->rows,
                                           .stop_count = m->config.eos_count};
    hewn_error err;
    if (exchanges ? exchange(m, plans->rows, 1, false, m->norm, p)
                  : model_passed(engine_norm(&m->kernels, &last, m->gpu->stream, &err), &err, p))
        return -1;
    if (model_product(m, &plans->head, m->normed, m->head, 0, 0, m->logits, p) ||
        model_passed(engine_sample(&m->kernels, &sample, m->gpu->stream, &err), &err, p))
        return -1;
    return model_passed(engine_advance(&m->kernels, &advance, m->gpu->stream, &err), &err, p);
}

/* ---- slots ---- */

static int send(const struct model *m, hewn_deviceptr to, const void *from, size_t size,
                struct problem *p)
{
    return gpu_check(m->gpu, m->gpu->to_device_async(to, from, size, m->gpu->stream),
                     "a copy to the device", p);
}

static int wait_for_all(struct model *m, struct problem *p)
{
    m->small_used = 0;
    return gpu_check(m->gpu, m->gpu->stream_wait(m->gpu->stream), "a step", p);
}

/* By way of pinned memory: the driver may wait for the stream before it copies from other memory,
 * and does not promise to have read it when the call returns. */
static int send_small(struct model *m, hewn_deviceptr to, const void *from, size_t size,
                      struct problem *p)
{
    unsigned char *at;
    if (size > m->small_size - m->small_used && wait_for_all(m, p)) return -1;
    at = m->small + m->small_used;
    memcpy(at, from, size);
    m->small_used += (size + 7) / 8 * 8;
    return send(m, to, at, size, p);
}

/* One number of a slot. */
static int set(struct model *m, hewn_deviceptr array, int64_t slot, int64_t value,
               struct problem *p)
{
    const int32_t number = (int32_t)value;
    return send_small(m, array + (uint64_t)slot * sizeof number, &number, sizeof number, p);
}

int model_enter(struct model *m, int64_t slot, const struct model_request *r, struct problem *p)
{
    const struct engine_slots *s = &m->slots;
    if (r->page_count > m->table_width)
        return problem(p, "a request of %lld pages; a slot has %lld", (long long)r->page_count,
                       (long long)m->table_width);
    if (model_tell_enter(m, slot, r, p)) return -1;
    for (int64_t i = 0; m->config.kv_rank && i < m->table_width; i++)
        m->latent.pages[slot * m->table_width + i] = i < r->page_count ? r->pages[i] : -1;
    if (set(m, s->tokens, slot, -1, p) || set(m, s->positions, slot, -1, p) ||
        set(m, s->lengths, slot, 0, p) || set(m, s->limits, slot, r->limit, p) ||
        set(m, s->cancelled, slot, 0, p) || set(m, s->reasons, slot, 0, p) ||
        set(m, s->counts, slot, 0, p) ||
        send_small(m, s->settings + (uint64_t)slot * sizeof r->sampling, &r->sampling,
                   sizeof r->sampling, p))
        return -1;
    return send_small(m, m->table + (uint64_t)(slot * m->table_width) * sizeof *r->pages, r->pages,
                      (size_t)r->page_count * sizeof *r->pages, p);
}

static int place(struct model *m, int64_t slot, int32_t token, int64_t position, struct problem *p)
{
    return set(m, m->slots.tokens, slot, token, p) ||
                   set(m, m->slots.positions, slot, position, p) ||
                   set(m, m->slots.lengths, slot, position + 1, p)
               ? -1
               : 0;
}

int model_place(struct model *m, int64_t slot, int32_t token, int64_t position, struct problem *p)
{
    if (model_tell(m, MODEL_PLACE, slot, token, position, p)) return -1;
    return place(m, slot, token, position, p);
}

int model_cancel(struct model *m, int64_t slot, struct problem *p)
{
    if (model_tell(m, MODEL_CANCEL, slot, 0, 0, p)) return -1;
    return set(m, m->slots.cancelled, slot, 1, p);
}

/* ---- steps ---- */

/* How a chunk is cut: rank r of `ranks` has tokens r * share and on, `rows` rows with those that hold
 * none. */
struct cut {
    int64_t ranks, rank, count, share, rows;
};

static int64_t own_first(const struct cut *c)
{
    return c->rank * c->share < c->count ? c->rank * c->share : c->count;
}

static int64_t own_end(const struct cut *c)
{
    const int64_t end = (c->rank + 1) * c->share;
    return end < c->count ? end : c->count;
}

/* The chunk's numbers into the staging memory, which nothing reads any more, then to the device. */
static int send_chunk(struct model *m, int64_t slot, const int32_t *tokens, const struct cut *cut,
                      int64_t from, struct problem *p)
{
    const struct chunk_input *in = &m->input;
    const int64_t rows = cut->ranks * cut->rows;
    int32_t *at = m->staging;
    int32_t *first[3];
    if (wait_for_all(m, p)) return -1;
    at[0] = 0;
    at[1] = (int32_t)(own_end(cut) - own_first(cut));
    at[2] = (int32_t)(from + own_end(cut));
    at[3] = (int32_t)((cut->count - 1) % cut->share);
    at[4] = (int32_t)slot;
    for (int i = 0; i < 3; i++)
        first[i] = at + ((i == 0   ? in->tokens
                          : i == 1 ? in->positions
                                   : in->sequences) -
                         in->base) /
                            sizeof *at;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t row = i % cut->rows, token = i / cut->rows * cut->share + row;
        const bool there = row < cut->share && token < cut->count;
        first[0][i] = there ? tokens[token] : -1;
        first[1][i] = there ? (int32_t)(from + token) : -1;
        first[2][i] = there ? (int32_t)slot : -1;
    }
    return send(m, in->base, at, (size_t)(in->sequences - in->base) + (size_t)rows * sizeof *at, p);
}

/* The last token's row of the stream, and of what the last norm adds to it, from the rank that has
 * it to all. */
static int share_last(const struct model *m, const struct cut *cut, struct problem *p)
{
    const int64_t last = cut->count - 1, hidden = m->config.hidden;
    const hewn_deviceptr rows[] = {m->stream, added_by(m, m->config.layers - 1)};
    for (size_t i = 0; cut->ranks > 1 && i < sizeof rows / sizeof *rows; i++)
        if (rows[i] && collectives_broadcast(&m->ranks->nccl,
                                             rows[i] + 2 * (uint64_t)(last % cut->share * hidden),
                                             hidden, (int)(last / cut->share), m->gpu->stream, p))
            return -1;
    return 0;
}

int model_prefill(struct model *m, int64_t slot, const int32_t *tokens, int64_t count, int64_t from,
                  bool last, struct problem *p)
{
    const struct chunk_input *in = &m->input;
    struct cut cut = {.ranks = m->gathered ? m->ranks->count : 1, .count = count};
    struct rows r = {.plans = m->prefill,
                     .lengths = in->length,
                     .table = m->table + (uint64_t)(slot * m->table_width) * sizeof(int32_t),
                     .offsets = in->offsets};
    uint64_t own;
    if (count < 1 || count > m->options.chunk || from < 0 || from + count > m->options.context)
        return problem(p, "%lld tokens from position %lld: a chunk has 1 to %lld, a request %lld",
                       (long long)count, (long long)from, (long long)m->options.chunk,
                       (long long)m->options.context);
    if (model_tell_prefill(m, slot, tokens, count, from, last, p)) return -1;
    cut.rank = cut.ranks > 1 ? m->ranks->rank : 0;
    cut.share = (count + cut.ranks - 1) / cut.ranks;
    while (r.plans->rows < cut.share) r.plans++;
    cut.rows = r.plans->rows;
    own = (uint64_t)(cut.rank * cut.rows) * sizeof(int32_t);
    r.tokens = in->tokens + own;
    r.positions = in->positions + own;
    r.sequences = in->sequences + own;
    if (m->gathered) {
        r.all_rows = cut.ranks * cut.rows;
        r.all_positions = in->positions;
        r.all_sequences = in->sequences;
    }
    if (send_chunk(m, slot, tokens, &cut, from, p) ||
        (m->config.kv_rank && latent_send_chunk(m, slot, cut.rows, from, p)) || layers(m, &r, p))
        return -1;
    if (!last) return 0;
    if (place(m, slot, tokens[count - 1], from + count - 1, p) || share_last(m, &cut, p)) return -1;
    return draw(m, &m->decode[0], false, in->last, cut.rows, in->last + sizeof(int32_t), p);
}

static int enqueue_decode(const struct model *m, const struct row_plans *plans, struct problem *p)
{
    const struct rows r = {.plans = plans,
                           .tokens = m->slots.tokens,
                           .positions = m->slots.positions,
                           .lengths = m->slots.lengths,
                           .table = m->table,
                           .exchanges = m->part && m->ranks->exchange.inbox};
    if (layers(m, &r, p)) return -1;
    return draw(m, plans, r.exchanges, 0, plans->rows, 0, p);
}

static int capture(const struct model *m, struct row_plans *plans, struct problem *p)
{
    const struct gpu *g = m->gpu;
    gpu_graph graph = NULL;
    int failed = gpu_check(g, g->capture_begin(g->stream, CAPTURE_THREAD_LOCAL), "a capture", p);
    if (failed) return -1;
    failed = enqueue_decode(m, plans, p);
    if (g->capture_end(g->stream, &graph) && !failed)
        failed = problem(p, "the capture of a decode step did not end well");
    if (!failed)
        failed = gpu_check(g, g->graph_make(&plans->graph, graph, 0), "a graph of a step", p);
    if (graph) g->graph_destroy(graph);
    return failed;
}

int model_capture(struct model *m, struct problem *p)
{
    for (int i = 0; i < m->decode_count && !m->options.no_graphs; i++)
        if (capture(m, &m->decode[i], p)) return -1;
    return 0;
}

int model_decode(struct model *m, int64_t slots, struct problem *p)
{
    struct row_plans *plans = m->decode;
    if (slots < 1 || slots > m->options.slots)
        return problem(p, "%lld slots: the model has 1 to %lld", (long long)slots,
                       (long long)m->options.slots);
    if (model_tell(m, MODEL_DECODE, 0, slots, 0, p)) return -1;
    while (plans->rows < slots) plans++;
    if (!plans->graph) return enqueue_decode(m, plans, p);
    return gpu_check(m->gpu, m->gpu->graph_launch(plans->graph, m->gpu->stream), "a step", p);
}

/* ---- results ---- */

static int fetch(const struct model *m, void *to, hewn_deviceptr from, size_t size,
                 struct problem *p)
{
    return gpu_check(m->gpu, m->gpu->to_host_async(to, from, size, m->gpu->stream),
                     "a copy from the device", p);
}

int model_read(struct model *m, struct model_state *out, struct problem *p)
{
    const size_t n = (size_t)m->options.slots;
    int32_t *at = m->staging + m->staging_count - 3 * n; /* behind the chunk's */
    out->reasons = at;
    out->counts = at + n;
    out->sampled = at + 2 * n;
    return fetch(m, at, m->slots.reasons, 3 * n * sizeof *at, p) || wait_for_all(m, p) ? -1 : 0;
}

int model_history(struct model *m, int64_t slot, int64_t from, int64_t count, int32_t *out,
                  struct problem *p)
{
    const uint64_t at = (uint64_t)(slot * m->history_row + from) * sizeof *out;
    if (fetch(m, out, m->slots.history + at, (size_t)count * sizeof *out, p)) return -1;
    return wait_for_all(m, p);
}

int model_logits(struct model *m, int64_t row, float *out, struct problem *p)
{
    const uint64_t at = (uint64_t)(row * m->logits_row) * sizeof *out;
    if (fetch(m, out, m->logits + at, (size_t)m->config.vocab * sizeof *out, p)) return -1;
    return wait_for_all(m, p);
}
