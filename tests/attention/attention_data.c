#include "attention_data.h"

#include "lib/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN, HEAD, BATCH };

int64_t attention_v_dim(const struct attention_case *c)
{
    return c->v ? c->v : c->qk == 192 ? 128 : c->qk;
}

static int64_t at_least_1(int64_t x)
{
    return x > 1 ? x : 1;
}

/* ---- lengths ---- */

static int64_t draw_length(struct rng *r, int64_t most, int64_t ragged)
{
    if (ragged == 0 || most == 0) return most;
    if (ragged == 2 && rng_below(r, 3) == 0) return 0;
    if (rng_below(r, 3) == 0) return most;
    return 1 + rng_below(r, (uint32_t)most);
}

static int32_t *draw_offsets(struct rng *r, const struct attention_case *c, int64_t most)
{
    int32_t *offsets = calloc((size_t)c->b + 1, sizeof *offsets);
    for (int64_t b = 0; offsets && b < c->b; b++)
        offsets[b + 1] = offsets[b] + (int32_t)draw_length(r, most, c->ragged);
    return offsets;
}

static bool draw_source(struct attention_data *d, int s, struct rng *r)
{
    const struct attention_case_source *cs = &d->c.source[s];
    hewn_attention_source *ds = &d->source[s];
    ds->keys = (int)cs->keys;
    ds->length = cs->sk;
    ds->causal = (int)cs->causal;
    ds->window_back = cs->left + 1; /* a case leaves out the query's own position; -1: all */
    ds->window_ahead = cs->right + 1;
    ds->windows = cs->win != 0;
    if (cs->keys == HEWN_KEYS_PACKED) {
        d->lengths[s] = draw_offsets(r, &d->c, cs->sk);
        d->lengths_count[s] = (size_t)d->c.b + 1;
        if (d->lengths[s]) ds->tokens = at_least_1(d->lengths[s][d->c.b] + d->c.tail);
        return d->lengths[s] != NULL;
    }
    if (cs->keys == HEWN_KEYS_LENGTHS) {
        d->lengths_count[s] = (size_t)d->c.b;
        d->lengths[s] = calloc((size_t)d->c.b, sizeof(int32_t));
        for (int64_t b = 0; d->lengths[s] && b < d->c.b; b++)
            d->lengths[s][b] = (int32_t)draw_length(r, cs->sk, d->c.ragged);
        return d->lengths[s] != NULL;
    }
    return true;
}

/* Every page that a sequence uses, shuffled over a pool that has some to spare; entries that no key
 * uses hold what no page is called. */
static bool draw_pages(struct attention_data *d, int s, struct rng *r)
{
    const struct attention_case_source *cs = &d->c.source[s];
    hewn_attention_source *ds = &d->source[s];
    int64_t used = 0, next = 0;
    ds->page_size = cs->page;
    ds->table_width = at_least_1((cs->sk + cs->page - 1) / cs->page + (d->c.ragged ? 2 : 0));
    for (int64_t b = 0; b < d->c.b; b++)
        used += (attention_keys(d, s, b) + cs->page - 1) / cs->page;
    ds->pages = used + 1 + rng_below(r, 3);
    d->table_count[s] = (size_t)(d->c.b * ds->table_width);
    d->table[s] = calloc(d->table_count[s], sizeof(int32_t));
    int32_t *order = calloc((size_t)ds->pages, sizeof *order);
    if (!d->table[s] || !order) {
        free(order);
        return false;
    }
    for (int64_t n = 0; n < ds->pages; n++) {
        int64_t at = rng_below(r, (uint32_t)n + 1);
        order[n] = order[at];
        order[at] = (int32_t)n;
    }
    for (int64_t b = 0; b < d->c.b; b++)
        for (int64_t n = 0; n < ds->table_width; n++) {
            bool in_use = n * cs->page < attention_keys(d, s, b);
            d->table[s][b * ds->table_width + n] = in_use       ? order[next++]
                                                   : n % 2 == 0 ? -1
                                                                : 0x7FFFFFF0;
        }
    free(order);
    return true;
}

static bool draw_windows(struct attention_data *d, struct rng *r)
{
    int64_t win = d->c.source[0].win, most = win < 0 ? -win : win;
    if (!win) return true;
    d->windows_count = (size_t)d->c.b;
    d->windows = calloc((size_t)d->c.b, sizeof *d->windows);
    for (int64_t b = 0; d->windows && b < d->c.b; b++)
        d->windows[b] = (int32_t)(b % 2 == 0 ? most : rng_below(r, (uint32_t)most + 1));
    if (d->windows && win < 0) d->windows[d->c.b - 1] = 0;
    return d->windows != NULL;
}

/* ---- tensors ---- */

/* 16 bytes in elements: strides are multiples of it. */
static int64_t stride_unit(int dtype)
{
    return 16 / (int64_t)hewn_dtype_size(dtype);
}

/* The dimensions nested in a drawn order, each level padded by up to three units. */
static void draw_strides(struct attention_tensor *t, struct rng *r)
{
    static const int orders[6][3] = {{TOKEN, HEAD, BATCH}, {HEAD, TOKEN, BATCH},
                                     {TOKEN, BATCH, HEAD}, {BATCH, TOKEN, HEAD},
                                     {HEAD, BATCH, TOKEN}, {BATCH, HEAD, TOKEN}};
    const int *order = orders[rng_below(r, 6)];
    int64_t unit = stride_unit(t->dtype), size = t->columns;
    for (int level = 0; level < 3; level++) {
        size = (size + unit - 1) / unit * unit + unit * rng_below(r, 4);
        t->stride[order[level]] = size;
        size *= at_least_1(t->extent[order[level]]);
    }
}

static void contiguous(struct attention_tensor *t, int64_t layout)
{
    int inner = layout == HEWN_LAYOUT_BSHD ? HEAD : TOKEN,
        outer = layout == HEWN_LAYOUT_BSHD ? TOKEN : HEAD;
    t->stride[inner] = t->columns;
    t->stride[outer] = t->columns * t->extent[inner];
    t->stride[BATCH] = t->columns * t->extent[inner] * t->extent[outer];
}

static bool tensor_new(struct attention_tensor *t, const struct attention_case *c, struct rng *r,
                       unsigned char fill)
{
    int64_t elements = t->columns;
    if (c->pad)
        draw_strides(t, r);
    else
        contiguous(t, c->layout);
    for (int n = 0; n < 3; n++) elements += t->stride[n] * (at_least_1(t->extent[n]) - 1);
    t->size = (size_t)elements * hewn_dtype_size(t->dtype);
    t->bytes = malloc(t->size);
    if (t->bytes) memset(t->bytes, fill, t->size);
    return t->bytes != NULL;
}

static struct attention_tensor shape(int64_t dtype, int64_t columns, int64_t tokens, int64_t heads,
                                     int64_t batch)
{
    return (struct attention_tensor){
        .dtype = (int)dtype, .columns = columns, .extent = {tokens, heads, batch}};
}

/* Strides go into the description only where they are drawn. */
static bool query_tensors(struct attention_data *d, struct rng *r)
{
    const struct attention_case *c = &d->c;
    hewn_attention_desc *s = &d->desc;
    int64_t tokens = c->packed ? s->q_tokens : c->sq, batch = c->packed ? 1 : c->b;
    d->q = shape(c->in, c->qk, tokens, c->hq, batch);
    d->o = shape(c->out, attention_v_dim(c), tokens, c->hq, batch);
    if (!tensor_new(&d->q, c, r, 0xFF) || !tensor_new(&d->o, c, r, ATTENTION_POISON)) return false;
    if (!c->pad) return true;
    s->q_token = d->q.stride[TOKEN], s->q_head = d->q.stride[HEAD];
    s->o_token = d->o.stride[TOKEN], s->o_head = d->o.stride[HEAD];
    if (!c->packed) s->q_batch = d->q.stride[BATCH], s->o_batch = d->o.stride[BATCH];
    return true;
}

static bool key_tensors(struct attention_data *d, int s, struct rng *r)
{
    const struct attention_case *c = &d->c;
    hewn_attention_source *ds = &d->source[s];
    bool packed = c->source[s].keys == HEWN_KEYS_PACKED, paged = c->source[s].page != 0;
    int64_t tokens = paged ? ds->page_size : packed ? ds->tokens : ds->length;
    int64_t batch = paged ? ds->pages : packed ? 1 : c->b;
    int64_t kv = c->kv ? c->kv : c->in;
    d->k[s] = shape(kv, c->qk, tokens, c->hkv, batch);
    d->v[s] = shape(kv, attention_v_dim(c), tokens, c->hkv, batch);
    if (!tensor_new(&d->k[s], c, r, 0xFF) || !tensor_new(&d->v[s], c, r, 0xFF)) return false;
    if (!c->pad) return true;
    ds->k_token = d->k[s].stride[TOKEN], ds->k_head = d->k[s].stride[HEAD];
    ds->v_token = d->v[s].stride[TOKEN], ds->v_head = d->v[s].stride[HEAD];
    if (!packed) ds->k_batch = d->k[s].stride[BATCH], ds->v_batch = d->v[s].stride[BATCH];
    return true;
}

/* ---- values ---- */

/* The sum of four uniform numbers, of variance 1. */
static double draw_value(struct rng *r)
{
    uint64_t bits = rng_next(r);
    int64_t sum = (int64_t)(bits & 0xFFFF) + (int64_t)(bits >> 16 & 0xFFFF) +
                  (int64_t)(bits >> 32 & 0xFFFF) + (int64_t)(bits >> 48);
    return (double)(sum - 131070) * (0x1.bb67ae8584caap0 / 65536.0); /* sqrt(3) */
}

static void fill_row(const struct attention_tensor *t, size_t at, double factor, struct rng *r)
{
    for (int64_t x = 0; x < t->columns; x++)
        attention_store(t, at + (size_t)x, draw_value(r) * factor);
}

/* Behind fill_row: what the pattern does to values of Q, K and V. */
static void change_row(const struct attention_case *c, const struct attention_tensor *t, size_t at,
                       bool of_v, struct rng *r)
{
    for (int64_t x = 0; x < t->columns; x++) {
        const double value = attention_load(t, at + (size_t)x);
        if (c->pattern == PATTERN_OUTLIERS && !rng_below(r, 1000))
            attention_store(t, at + (size_t)x, 50 * value);
        if (c->pattern == PATTERN_SHIFTED && of_v) attention_store(t, at + (size_t)x, value + 1);
    }
}

/* One row in 19: NaN, and infinities where there are any, in one column. */
static void maybe_special(const struct attention_tensor *t, size_t at, struct rng *r)
{
    static const double values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    if (rng_below(r, 19)) return;
    double value = values[t->dtype == HEWN_E4M3 ? 0 : rng_below(r, 3)];
    attention_store(t, at + rng_below(r, (uint32_t)t->columns), value);
}

static double key_factor(int64_t pattern, int64_t j, int64_t keys)
{
    if (pattern == PATTERN_RISING) return 0.25 + 2.0 * (double)j / (double)keys;
    return pattern == PATTERN_SPIKES && j % 61 == 60 ? 8.0 : 1.0;
}

/* What a pattern adds to the scores of key j of a sequence of so many; the scale is the usual one. */
static double score_lift(const struct attention_case *c, int64_t j, int64_t keys)
{
    double peak = (double)c->peak / 100.0;
    int64_t block = j / 128;
    if (c->pattern == PATTERN_STEPS) return peak * (double)block;
    if (c->pattern == PATTERN_BELOW) return peak * (double)block - 40;
    return c->pattern == PATTERN_JUMP && j >= keys - keys / 3 ? peak : 0;
}

/* The last column of Q is a constant where that of K lifts the scores. It is the last because tensor
 * cores truncate their sums: a large one should not be added to many times. */
enum { LIFT = 16 };

static bool lifts(const struct attention_case *c)
{
    return c->pattern == PATTERN_STEPS || c->pattern == PATTERN_JUMP || c->pattern == PATTERN_BELOW;
}

static void fill_k_row(struct attention_data *d, int s, size_t at, int64_t j, int64_t keys,
                       struct rng *r)
{
    const struct attention_case *c = &d->c;
    fill_row(&d->k[s], at, key_factor(c->pattern, j, keys), r);
    change_row(c, &d->k[s], at, false, r);
    if (c->pattern == PATTERN_SPECIALS && rng_below(r, 4) == 0) maybe_special(&d->k[s], at, r);
    if (lifts(c))
        attention_store(&d->k[s], at + (size_t)c->qk - 1,
                        score_lift(c, j, keys) * sqrt((double)c->qk) / LIFT);
}

static void fill(struct attention_data *d, struct rng *r)
{
    const struct attention_case *c = &d->c;
    for (int64_t b = 0; b < c->b; b++) {
        for (int64_t i = 0; i < attention_queries(d, b); i++)
            for (int64_t h = 0; h < c->hq; h++) {
                size_t at = attention_q_row(d, &d->q, b, h, i);
                double factor = lifts(c) ? 1.0 : (double)c->peak / 100.0;
                if (c->fade && rng_below(r, 3)) factor = ldexp(factor, -(int)rng_below(r, 121));
                fill_row(&d->q, at, factor, r);
                change_row(c, &d->q, at, false, r);
                if (lifts(c)) attention_store(&d->q, at + (size_t)c->qk - 1, LIFT);
                if (c->pattern == PATTERN_SPECIALS) maybe_special(&d->q, at, r);
            }
        for (int s = 0; s < c->sources; s++)
            for (int64_t j = 0; j < attention_keys(d, s, b); j++)
                for (int64_t h = 0; h < c->hkv; h++) {
                    size_t at = attention_kv_row(d, &d->k[s], s, b, h, j);
                    fill_k_row(d, s, at, j, attention_keys(d, s, b), r);
                    at = attention_kv_row(d, &d->v[s], s, b, h, j);
                    fill_row(&d->v[s], at, 1.0, r);
                    change_row(c, &d->v[s], at, true, r);
                }
    }
}

/* V as columns, each a multiple of 16 bytes from the next; strides are said where they are not the usual ones. */
static bool turn(struct attention_data *d, int s)
{
    const struct attention_tensor *v = &d->v[s];
    struct attention_tensor *t = &d->turned[s];
    const int64_t tokens = v->extent[TOKEN], apart = (tokens + 15) / 16 * 16;
    const int64_t rows = v->columns * v->extent[HEAD] * v->extent[BATCH];
    t->dtype = v->dtype, t->columns = tokens;
    t->size = (size_t)(apart * rows);
    t->bytes = malloc(t->size + 1);
    if (!t->bytes) return false;
    memset(t->bytes, 0xFF, t->size + 1);
    for (int64_t row = 0; row < rows; row++) {
        const int64_t head = row / v->columns % v->extent[HEAD];
        const int64_t plane = row / v->columns / v->extent[HEAD];
        const unsigned char *from =
            v->bytes + row % v->columns + head * v->stride[HEAD] + plane * v->stride[BATCH];
        for (int64_t j = 0; j < tokens; j++) t->bytes[row * apart + j] = from[j * v->stride[TOKEN]];
    }
    if (apart == tokens) return true;
    d->source[s].v_token = apart;
    d->source[s].v_head = apart * v->columns;
    d->source[s].v_batch = apart * v->columns * v->extent[HEAD];
    return true;
}

static float *draw_floats(struct rng *r, int64_t count, double low, double high, size_t *n)
{
    float *x = malloc((size_t)count * sizeof *x);
    *n = (size_t)count;
    for (int64_t i = 0; x && i < count; i++)
        x[i] = (float)(low + (high - low) * ((double)rng_unit(r) + 1.0) / 2.0);
    return x;
}

/* Scales of a tensor of so many heads, and where the case has a gap between sequences the stride. */
static int64_t scale_count(const struct attention_case *c, int64_t scaling, int64_t heads,
                           int64_t *batch)
{
    const bool each = scaling >= SCALING_SEQUENCE_HEAD;
    if (scaling == SCALING_TENSOR) return 1;
    if (scaling == SCALING_KV_HEAD || scaling == SCALING_SEQUENCE_KV_HEAD) heads = c->hkv;
    if (each && c->sgap) *batch = heads + c->sgap;
    return each ? (c->b - 1) * (heads + c->sgap) + heads : heads;
}

static bool draw_scalars(struct attention_data *d, struct rng *r)
{
    const struct attention_case *c = &d->c;
    bool ok = true;
    if (c->sink) ok = (d->sink = draw_floats(r, c->hq, -2.0, 6.0, &d->sink_count)) != NULL;
    /* a head without a sink among others that have one */
    if (ok && c->sink && c->hq > 2) d->sink[c->hq / 2] = -INFINITY;
    if (ok && c->qs) {
        const int64_t count = scale_count(c, c->qs, c->hq, &d->desc.q_scale_batch);
        ok = (d->q_scale = draw_floats(r, count, 0.6, 1.7, &d->q_scale_count)) != NULL;
    }
    if (ok && c->ks) {
        const int64_t count = scale_count(c, c->ks, c->hkv, &d->desc.k_scale_batch);
        ok = (d->k_scale = draw_floats(r, count, 0.6, 1.7, &d->k_scale_count)) != NULL;
    }
    if (ok && c->vs) {
        const int64_t count = scale_count(c, c->vs, c->hkv, &d->desc.v_scale_batch);
        ok = (d->v_scale = draw_floats(r, count, 0.2, 3.0, &d->v_scale_count)) != NULL;
    }
    /* values of V, times its scale, are 10 at most: nothing reaches 448 */
    if (ok && c->os) ok = (d->o_scale = draw_floats(r, 1, 0.03, 0.2, &d->o_scale_count)) != NULL;
    return ok;
}

static bool outputs(struct attention_data *d)
{
    int64_t rows = d->c.packed ? d->desc.q_tokens : d->c.b * d->c.sq;
    d->lse_count = (size_t)(rows * d->c.hq);
    size_t bytes = (d->lse_count + 1) * sizeof(float);
    d->lse = malloc(bytes);
    d->row_max = d->c.unnorm ? malloc(bytes) : NULL;
    if (!d->lse || (!d->row_max && d->c.unnorm)) return false;
    attention_poison(d);
    return true;
}

void attention_poison(struct attention_data *d)
{
    memset(d->o.bytes, ATTENTION_POISON, d->o.size);
    memset(d->lse, ATTENTION_POISON, d->lse_count * sizeof(float));
    if (d->row_max) memset(d->row_max, ATTENTION_POISON, d->lse_count * sizeof(float));
}

static int scales_of(int64_t scaling)
{
    return scaling == SCALING_NONE ? HEWN_SCALES_TENSOR : (int)scaling - 1;
}

/* A case says "never" by nothing: recorded digests are older than promotion. */
static int attention_promotion_of(const struct attention_case *c)
{
    return c->in == HEWN_E4M3 && !c->promo ? -1 : (int)c->promo;
}

static void describe(struct attention_data *d)
{
    const struct attention_case *c = &d->c;
    d->desc = (hewn_attention_desc){.struct_size = sizeof d->desc,
                                    .batch = c->b,
                                    .q_heads = c->hq,
                                    .kv_heads = c->hkv,
                                    .qk_dim = c->qk,
                                    .v_dim = c->v,
                                    .q_length = c->sq,
                                    .q_packed = (int)c->packed,
                                    .in = (int)c->in,
                                    .out = (int)c->out,
                                    .layout = (int)c->layout,
                                    .scale = (double)c->scale / 1000.0,
                                    .sink = (int)c->sink,
                                    .unnormalised = (int)c->unnorm,
                                    .q_scales = scales_of(c->qs),
                                    .k_scales = scales_of(c->ks),
                                    .v_scales = scales_of(c->vs),
                                    .promotion = attention_promotion_of(c),
                                    .v_layout = (int)c->vt,
                                    .pack = c->pack,
                                    .splits = c->splits,
                                    .schedule = (int)c->schedule,
                                    .tree = (int)c->tree,
                                    .invariant = (int)c->inv,
                                    .kv = (int)c->kv,
                                    .softcap = (double)c->cap / 100.0};
    for (int s = 0; s < 2; s++) d->source[s].struct_size = sizeof d->source[s];
}

/* A mask a query: its own token, and any of the others. */
static bool draw_tree(struct attention_data *d, struct rng *r)
{
    int64_t rows = d->c.packed ? d->desc.q_tokens : d->c.b * d->c.sq;
    if (!d->c.tree) return true;
    d->tree_count = (size_t)rows;
    d->tree = calloc((size_t)rows, sizeof *d->tree);
    for (int64_t n = 0; d->tree && n < rows; n++)
        d->tree[n] = rng_next(r) | (uint64_t)1 << (n % 64);
    return d->tree != NULL;
}

bool attention_data_new(struct attention_data *d, const struct attention_case *c)
{
    struct rng r = {(uint64_t)c->data * UINT64_C(0x9e3779b97f4a7c15)};
    struct rng strides = {(uint64_t)c->pad};
    memset(d, 0, sizeof *d);
    d->c = *c;
    describe(d);
    if (c->packed) {
        d->cu_q = draw_offsets(&r, c, c->sq);
        d->cu_q_count = (size_t)c->b + 1;
        if (!d->cu_q) return false;
        d->desc.q_tokens = at_least_1(d->cu_q[c->b] + c->tail);
    }
    if (!query_tensors(d, &strides)) return false;
    for (int s = 0; s < c->sources; s++)
        if (!draw_source(d, s, &r) || (c->source[s].page && !draw_pages(d, s, &r)) ||
            !key_tensors(d, s, &strides))
            return false;
    if (!draw_windows(d, &r) || !draw_tree(d, &r) || !draw_scalars(d, &r) || !outputs(d))
        return false;
    fill(d, &r);
    for (int s = 0; c->vt && s < c->sources; s++)
        if (!turn(d, s)) return false;
    return true;
}

void attention_data_free(struct attention_data *d)
{
    for (int s = 0; s < 2; s++) {
        free(d->k[s].bytes);
        free(d->v[s].bytes);
        free(d->turned[s].bytes);
        free(d->lengths[s]);
        free(d->table[s]);
    }
    free(d->q.bytes);
    free(d->o.bytes);
    free(d->cu_q);
    free(d->windows);
    free(d->tree);
    free(d->sink);
    free(d->q_scale);
    free(d->k_scale);
    free(d->v_scale);
    free(d->o_scale);
    free(d->lse);
    free(d->row_max);
    memset(d, 0, sizeof *d);
}

/* ---- what the header says of sequences, rows and masks ---- */

int64_t attention_queries(const struct attention_data *d, int64_t b)
{
    return d->c.packed ? d->cu_q[b + 1] - d->cu_q[b] : d->c.sq;
}

int64_t attention_keys(const struct attention_data *d, int s, int64_t b)
{
    int64_t most = d->c.source[s].sk, n = most;
    if (d->c.source[s].keys == HEWN_KEYS_LENGTHS) n = d->lengths[s][b];
    if (d->c.source[s].keys == HEWN_KEYS_PACKED) n = d->lengths[s][b + 1] - d->lengths[s][b];
    return n < 0 ? 0 : n > most ? most : n;
}

size_t attention_q_row(const struct attention_data *d, const struct attention_tensor *t, int64_t b,
                       int64_t h, int64_t i)
{
    int64_t token = d->c.packed ? d->cu_q[b] + i : i, batch = d->c.packed ? 0 : b;
    return (size_t)(token * t->stride[TOKEN] + h * t->stride[HEAD] + batch * t->stride[BATCH]);
}

size_t attention_kv_row(const struct attention_data *d, const struct attention_tensor *t, int s,
                        int64_t b, int64_t h, int64_t j)
{
    const struct attention_case_source *cs = &d->c.source[s];
    int64_t token = j, batch = b;
    if (cs->keys == HEWN_KEYS_PACKED) token = d->lengths[s][b] + j, batch = 0;
    if (cs->page) {
        batch = d->table[s][b * d->source[s].table_width + j / cs->page];
        token = j % cs->page;
    }
    return (size_t)(token * t->stride[TOKEN] + h * t->stride[HEAD] + batch * t->stride[BATCH]);
}

size_t attention_lse_index(const struct attention_data *d, int64_t b, int64_t h, int64_t i)
{
    if (d->c.packed) return (size_t)(h * d->desc.q_tokens + d->cu_q[b] + i);
    return (size_t)((b * d->c.hq + h) * d->c.sq + i);
}

double attention_load(const struct attention_tensor *t, size_t element)
{
    return number_load(t->dtype, t->bytes + element * hewn_dtype_size(t->dtype));
}

void attention_store(const struct attention_tensor *t, size_t element, double value)
{
    number_store(t->dtype, value, t->bytes + element * hewn_dtype_size(t->dtype));
}

/* One of the scales: `heads` of a sequence, where there are several, `stride` apart if that is not 0. */
static double scale_at(const float *scales, int64_t scaling, int64_t b, int64_t stride,
                       int64_t heads, int64_t head)
{
    if (!scales) return 1.0;
    const int64_t base = scaling >= SCALING_SEQUENCE_HEAD ? b * (stride ? stride : heads) : 0;
    return (double)scales[scaling == SCALING_TENSOR ? 0 : base + head];
}

double attention_output_scale(const struct attention_data *d)
{
    return d->o_scale ? (double)*d->o_scale : 1.0;
}

double attention_score_scale(const struct attention_data *d, int64_t b, int64_t head)
{
    const struct attention_case *c = &d->c;
    bool of_kv = c->qs == SCALING_KV_HEAD || c->qs == SCALING_SEQUENCE_KV_HEAD;
    double scale = d->c.scale ? d->desc.scale : 1.0 / sqrt((double)d->c.qk);
    int64_t kv_head = head / (d->c.hq / d->c.hkv);
    scale *= scale_at(d->q_scale, c->qs, b, d->desc.q_scale_batch, of_kv ? c->hkv : c->hq,
                      of_kv ? kv_head : head);
    return scale * scale_at(d->k_scale, c->ks, b, d->desc.k_scale_batch, c->hkv, kv_head);
}

double attention_value_scale(const struct attention_data *d, int64_t b, int64_t head)
{
    const struct attention_case *c = &d->c;
    return scale_at(d->v_scale, c->vs, b, d->desc.v_scale_batch, c->hkv, head / (c->hq / c->hkv));
}

bool attention_visible(const struct attention_data *d, int s, int64_t b, int64_t i, int64_t j)
{
    const hewn_attention_source *ds = &d->source[s];
    int64_t p = i + attention_keys(d, s, b) - attention_queries(d, b);
    if (j < 0 || j >= attention_keys(d, s, b)) return false;
    if (ds->windows && j <= p - d->windows[b]) return false;
    if (ds->window_back && j <= p - ds->window_back) return false;
    if (ds->window_ahead && j >= p + ds->window_ahead) return false;
    if (ds->causal && j > p) return false;
    int64_t drafted = j - p + i; /* number among the last keys */
    if (!d->tree || drafted < 0) return true;
    int64_t row = d->cu_q ? d->cu_q[b] + i : b * d->c.sq + i;
    return d->tree[row] >> drafted & 1;
}

/* ---- outputs outside the rows ---- */

static size_t touched_bytes(const float *x, const unsigned char *owned, size_t count)
{
    size_t touched = 0;
    const unsigned char *bytes = (const unsigned char *)x;
    for (size_t n = 0; x && n < count * sizeof *x; n++)
        touched += !owned[n / sizeof *x] && bytes[n] != ATTENTION_POISON;
    return touched;
}

/* Marks O's bytes and lse's elements of query row i of sequence b, at any head. */
static void own(const struct attention_data *d, int64_t b, int64_t i, unsigned char *o,
                unsigned char *lse)
{
    size_t size = hewn_dtype_size(d->o.dtype);
    for (int64_t h = 0; h < d->c.hq; h++) {
        memset(o + attention_q_row(d, &d->o, b, h, i) * size, 1, (size_t)d->o.columns * size);
        lse[attention_lse_index(d, b, h, i)] = 1;
    }
}

size_t attention_touched(const struct attention_data *d, bool tail_free)
{
    unsigned char *o = calloc(d->o.size, 1), *lse = calloc(d->lse_count + 1, 1);
    size_t touched = 0;
    if (o && lse) {
        for (int64_t b = 0; b < d->c.b; b++)
            for (int64_t i = 0; i < attention_queries(d, b); i++) own(d, b, i, o, lse);
        for (int64_t i = 0; d->c.packed && tail_free && d->cu_q[d->c.b] + i < d->desc.q_tokens; i++)
            own(d, d->c.b, i, o, lse);
        for (size_t n = 0; n < d->o.size; n++)
            touched += !o[n] && d->o.bytes[n] != ATTENTION_POISON;
        touched += touched_bytes(d->lse, lse, d->lse_count);
        touched += touched_bytes(d->row_max, lse, d->lse_count);
    }
    free(o);
    free(lse);
    return touched;
}
