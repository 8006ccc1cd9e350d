#include "reference_parts.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t tensor_elements(const struct tensor *t)
{
    size_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= (size_t)t->dim[i];
    return n;
}

void reference_load(struct run *r, const struct tensor *t)
{
    const size_t n = tensor_elements(t);
    for (size_t i = 0; i < n; i++) {
        uint16_t bits;
        weights_bf16(t, i, 1, &bits);
        r->weight[i] = bf16_value(bits);
    }
}

/* A row of weights to e4m3, with the arithmetic of the device; its scale. */
static double quantise_weights(float *w, size_t k)
{
    float most = 0, factor = 1;
    for (size_t e = 0; e < k; e++)
        if (fabsf(w[e]) > most) most = fabsf(w[e]);
    if (most > 0) factor = 448 / most;
    if (isinf(factor)) factor = FLT_MAX;
    for (size_t e = 0; e < k; e++) w[e] = e4m3_value(e4m3_of(w[e] * factor));
    return (double)(1 / factor);
}

/* A row that is multiplied, likewise, where roundings count. */
static const double *quantise_row(struct run *r, const double *x, size_t k)
{
    double most = 0;
    if (!r->rounded) return x;
    for (size_t e = 0; e < k; e++)
        if (fabs(x[e]) > most) most = fabs(x[e]);
    for (size_t e = 0; e < k; e++)
        r->quantised[e] =
            most > 0 ? (double)e4m3_value(e4m3_of((float)(x[e] * (448 / most)))) * (most / 448) : 0;
    return r->quantised;
}

static void e4m3_product(struct run *r, const double *x, size_t n, size_t k, double *out,
                         size_t out_row)
{
    for (size_t j = 0; j < n; j++) r->scales[j] = quantise_weights(r->weight + j * k, k);
    for (size_t i = 0; i < r->count; i++) {
        const double *row = quantise_row(r, x + i * k, k);
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t e = 0; e < k; e++) sum += row[e] * (double)r->weight[j * k + e];
            out[i * out_row + j] = sum * r->scales[j];
        }
    }
}

void reference_product(struct run *r, const double *x, const struct tensor *t, double *out,
                       size_t out_row)
{
    const size_t n = (size_t)t->dim[0], k = (size_t)t->dim[1];
    reference_load(r, t);
    if (r->c->e4m3 && t != r->model->head) {
        e4m3_product(r, x, n, k, out, out_row);
        return;
    }
    for (size_t i = 0; i < r->count; i++)
        for (size_t j = 0; j < n; j++) {
            const float *w = r->weight + j * k;
            double sum = 0;
            for (size_t e = 0; e < k; e++) sum += x[i * k + e] * (double)w[e];
            out[i * out_row + j] = sum;
        }
}

static void add_bias(struct run *r, const struct tensor *bias, double *out, size_t out_row)
{
    if (!bias) return;
    reference_load(r, bias);
    for (size_t i = 0; i < r->count; i++)
        for (size_t j = 0; j < (size_t)bias->dim[0]; j++)
            out[i * out_row + j] += (double)r->weight[j];
}

void reference_keep(const struct run *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = keep(r, x[i]);
}

void reference_norm(struct run *r, const struct tensor *t, const double *x, size_t x_row,
                    double eps, double *out)
{
    const size_t n = (size_t)t->dim[0];
    reference_load(r, t);
    for (size_t i = 0; i < r->count; i++, x += x_row, out += n) {
        double squares = 0, scale;
        for (size_t e = 0; e < n; e++) squares += x[e] * x[e];
        scale = 1 / sqrt(squares / (double)n + eps);
        for (size_t e = 0; e < n; e++) out[e] = keep(r, x[e] * scale * (double)r->weight[e]);
    }
}

/* Ahead of e4m3 the result is not rounded to bf16 as well. */
static void norm(struct run *r, const struct tensor *t)
{
    const bool rounded = r->rounded;
    r->rounded = rounded && (!r->c->e4m3 || t == r->model->norm);
    reference_norm(r, t, r->stream, (size_t)r->c->hidden, r->c->norm_eps, r->normed);
    r->rounded = rounded;
}

void reference_rotate(const struct run *r, double *x, size_t pair, size_t step, size_t position)
{
    const double angle = (double)position * r->angle[pair];
    const double a = x[0], b = x[step];
    const double c = cos(angle) * r->c->rope_size, s = sin(angle) * r->c->rope_size;
    x[0] = keep(r, a * c - b * s);
    x[step] = keep(r, b * c + a * s);
}

static void rotate(const struct run *r, double *head, size_t position)
{
    const size_t half = (size_t)r->c->head_dim / 2;
    for (size_t j = 0; j < half; j++) reference_rotate(r, head + j, j, half, position);
}

/* One query row of one head over the keys that it sees. */
static void attend(struct run *r, size_t i, size_t head)
{
    const struct config *c = r->c;
    const size_t d = (size_t)c->head_dim, heads = (size_t)c->heads, kv = (size_t)c->kv_heads;
    const size_t row = (heads + 2 * kv) * d, group = head / (heads / kv);
    const size_t from = c->window && i + 1 > (size_t)c->window ? i + 1 - (size_t)c->window : 0;
    const double *q = r->qkv + i * row + head * d;
    double *o = r->mixed + (i * heads + head) * d, largest = -INFINITY, sum = 0;
    for (size_t j = from; j <= i; j++) {
        const double *k = r->qkv + j * row + (heads + group) * d;
        double s = 0;
        for (size_t e = 0; e < d; e++) s += q[e] * k[e];
        r->scores[j] = s / sqrt((double)d);
        if (r->scores[j] > largest) largest = r->scores[j];
    }
    if (i >= r->whole) largest = ceil(largest / log(2)) * log(2);
    memset(o, 0, d * sizeof *o);
    for (size_t j = from; j <= i; j++) {
        const double *v = r->qkv + j * row + (heads + kv + group) * d;
        const double weight = exp(r->scores[j] - largest);
        sum += weight;
        for (size_t e = 0; e < d; e++) o[e] += keep(r, weight) * v[e];
    }
    for (size_t e = 0; e < d; e++) o[e] = keep(r, o[e] / sum);
}

/* Of each row the heads from `head` on, normed; they are rounded when they have rotated. */
static void norm_heads(struct run *r, const struct tensor *t, size_t row, size_t head, size_t count)
{
    const size_t d = (size_t)r->c->head_dim;
    if (!t) return;
    reference_load(r, t);
    for (size_t i = 0; i < r->count; i++)
        for (size_t h = head; h < head + count; h++) {
            double *x = r->qkv + i * row + h * d, squares = 0, scale;
            for (size_t e = 0; e < d; e++) squares += x[e] * x[e];
            scale = 1 / sqrt(squares / (double)d + r->c->norm_eps);
            for (size_t e = 0; e < d; e++) x[e] *= scale * (double)r->weight[e];
        }
}

static void attention(struct run *r, const struct layer_tensors *t)
{
    const struct config *c = r->c;
    const size_t d = (size_t)c->head_dim, heads = (size_t)c->heads, kv = (size_t)c->kv_heads;
    const size_t row = (heads + 2 * kv) * d;
    reference_product(r, r->normed, t->q, r->qkv, row);
    reference_product(r, r->normed, t->k, r->qkv + heads * d, row);
    reference_product(r, r->normed, t->v, r->qkv + (heads + kv) * d, row);
    add_bias(r, t->q_bias, r->qkv, row);
    add_bias(r, t->k_bias, r->qkv + heads * d, row);
    add_bias(r, t->v_bias, r->qkv + (heads + kv) * d, row);
    reference_keep(r, r->qkv, r->count * row);
    norm_heads(r, t->q_head_norm, row, 0, heads);
    norm_heads(r, t->k_head_norm, row, heads, kv);
    for (size_t i = 0; i < r->count; i++)
        for (size_t h = 0; h < heads + kv; h++) rotate(r, r->qkv + i * row + h * d, i);
    for (size_t i = 0; i < r->count; i++)
        for (size_t h = 0; h < heads; h++) attend(r, i, h);
}

void reference_add(struct run *r, const double *x, const struct tensor *t,
                   const struct tensor *bias)
{
    const size_t h = (size_t)r->c->hidden;
    reference_product(r, x, t, r->normed, h);
    add_bias(r, bias, r->normed, h);
    for (size_t i = 0; i < r->count * h; i++) r->stream[i] = keep(r, r->stream[i] + r->normed[i]);
}

void reference_dense(struct run *r, const double *x, const struct tensor *gate,
                     const struct tensor *up, size_t rows)
{
    const size_t width = (size_t)gate->dim[0], count = r->count;
    r->count = rows;
    reference_product(r, x, gate, r->inner, width);
    reference_product(r, x, up, r->inner_up, width);
    if (r->c->e4m3) { /* no epilogue of a product computes SwiGLU then */
        reference_keep(r, r->inner, rows * width);
        reference_keep(r, r->inner_up, rows * width);
    }
    for (size_t i = 0; i < rows * width; i++)
        r->inner[i] = keep(r, r->inner[i] / (1 + exp(-r->inner[i])) * r->inner_up[i]);
    r->count = count;
}

static void layer(struct run *r, const struct layer_tensors *t)
{
    norm(r, t->norm_in);
    if (r->c->kv_rank)
        reference_latent(r, t);
    else
        attention(r, t);
    reference_add(r, r->mixed, t->o, t->o_bias);
    norm(r, t->norm_post);
    if (t->expert) {
        reference_experts(r, t);
        return;
    }
    reference_dense(r, r->normed, t->gate, t->up, r->count);
    reference_add(r, r->inner, t->down, NULL);
}

static size_t largest_tensor(const struct checkpoint *m)
{
    size_t most = tensor_elements(m->embed);
    for (int64_t i = 0; i < m->config.layers; i++) {
#define LAYER_TENSOR(field, name, rows, columns, there)                 \
    if (m->layer[i].field && tensor_elements(m->layer[i].field) > most) \
        most = tensor_elements(m->layer[i].field);
        LAYER_TENSORS(LAYER_TENSOR)
#undef LAYER_TENSOR
        if (m->layer[i].expert && tensor_elements(m->layer[i].expert->gate) > most)
            most = tensor_elements(m->layer[i].expert->gate);
    }
    return most;
}

static void forward(struct run *r, const int32_t *tokens, double *out)
{
    const size_t h = (size_t)r->c->hidden;
    config_frequencies(r->c, r->angle);
    reference_load(r, r->model->embed);
    for (size_t i = 0; i < r->count; i++)
        for (size_t e = 0; e < h; e++)
            r->stream[i * h + e] = (double)r->weight[(size_t)tokens[i] * h + e];
    for (int64_t i = 0; i < r->c->layers; i++) layer(r, &r->model->layer[i]);
    norm(r, r->model->norm);
    reference_product(r, r->normed, r->model->head, out, (size_t)r->c->vocab);
}

/* The arrays of a run, one behind the other from `base` on: their elements. */
static size_t place(struct run *r, double *base)
{
    const struct config *c = r->c;
    const size_t n = r->count, h = (size_t)c->hidden, heads = (size_t)c->heads;
    const size_t wide =
        (size_t)(c->intermediate > c->shared_width ? c->intermediate : c->shared_width);
    const size_t inner = wide > (size_t)c->expert_width ? wide : (size_t)c->expert_width;
    const size_t key = (size_t)(c->kv_rank + c->rope_dim);
    const size_t row = c->kv_rank
                           ? heads * ((size_t)c->head_dim + key) + key + 2 * (size_t)c->q_rank
                           : (heads + 2 * (size_t)c->kv_heads) * (size_t)c->head_dim;
    const struct {
        double **out;
        size_t count;
    } arrays[] = {
        {&r->stream, n * h},
        {&r->normed, n * h},
        {&r->qkv, n * row},
        {&r->mixed, n * heads * (size_t)c->v_dim},
        {&r->inner, n * inner},
        {&r->inner_up, n * inner},
        {&r->scores, n + key},
        {&r->angle, (size_t)c->rope_dim},
        {&r->added, c->experts ? n * h : 0},
        {&r->made, c->experts ? h : 0},
        {&r->router, n * (size_t)c->experts},
        {&r->quantised, c->e4m3 ? h + inner + heads * (size_t)c->v_dim : 0},
        {&r->scales, c->e4m3 ? h + inner + row : 0},
    };
    size_t used = 0;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i].out = base ? base + used : NULL;
        used += arrays[i].count;
    }
    return used;
}

int reference_logits(const struct checkpoint *model, const int32_t *tokens, size_t count,
                     bool rounded, size_t whole, double *out, struct problem *p)
{
    struct run r = {.model = model,
                    .c = &model->config,
                    .count = count,
                    .rounded = rounded,
                    .whole = whole,
                    .margin = INFINITY};
    double *all;
    bool room;
    for (size_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= model->config.vocab)
            return problem(p, "token %zu is %d, outside the vocabulary of %lld", i, tokens[i],
                           (long long)model->config.vocab);
    all = malloc(place(&r, NULL) * sizeof *all);
    r.weight = malloc(largest_tensor(model) * sizeof *r.weight);
    room = all && r.weight;
    if (room) {
        place(&r, all);
        forward(&r, tokens, out);
    }
    free(all);
    free(r.weight);
    return room ? 0 : problem(p, "no memory for the reference of %zu tokens", count);
}

bool reference_agrees(const float *device, const double *exact, const double *rounded, size_t count,
                      struct reference_difference *out)
{
    bool finite = true;
    *out = (struct reference_difference){0};
    for (size_t i = 0; i < count; i++) {
        const double off = fabs((double)device[i] - exact[i]), fair = fabs(rounded[i] - exact[i]);
        finite = finite && isfinite(device[i]);
        const double between = (double)device[i] - rounded[i];
        out->rms += off * off;
        out->rms_between += between * between;
        out->rms_rounded += fair * fair;
        if (fair > out->most_rounded) out->most_rounded = fair;
        if (off > out->most) {
            out->most = off;
            out->worst = i;
        }
    }
    out->rms = sqrt(out->rms / (double)count);
    out->rms_rounded = sqrt(out->rms_rounded / (double)count);
    out->rms_between = sqrt(out->rms_between / (double)count);
    return finite && out->rms <= 1.5 * out->rms_rounded && out->most <= 2 * out->most_rounded;
}
