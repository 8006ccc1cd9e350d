#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct run {
    const struct checkpoint *model;
    const struct config *c;
    size_t count;
    bool rounded;
    float *weight; /* of the matrix in use */
    double *stream, *normed, *qkv, *mixed, *inner, *inner_up, *angle, *scores;
};

static double keep(const struct run *r, double x)
{
    return r->rounded ? (double)bf16_value(bf16_of((float)x)) : x;
}

static size_t tensor_elements(const struct tensor *t)
{
    size_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= (size_t)t->dim[i];
    return n;
}

static void load(struct run *r, const struct tensor *t)
{
    const size_t n = tensor_elements(t);
    for (size_t i = 0; i < n; i++) {
        uint16_t bits;
        weights_bf16(t, i, 1, &bits);
        r->weight[i] = bf16_value(bits);
    }
}

/* out[i][j] = sum over x[i] and row j of the tensor; out has out_row elements a row. */
static void product(struct run *r, const double *x, const struct tensor *t, double *out,
                    size_t out_row)
{
    const size_t n = (size_t)t->dim[0], k = (size_t)t->dim[1];
    load(r, t);
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
    load(r, bias);
    for (size_t i = 0; i < r->count; i++)
        for (size_t j = 0; j < (size_t)bias->dim[0]; j++)
            out[i * out_row + j] += (double)r->weight[j];
}

static void keep_all(const struct run *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = keep(r, x[i]);
}

static void norm(struct run *r, const struct tensor *t)
{
    const size_t h = (size_t)r->c->hidden;
    load(r, t);
    for (size_t i = 0; i < r->count; i++) {
        const double *x = r->stream + i * h;
        double squares = 0, scale;
        for (size_t e = 0; e < h; e++) squares += x[e] * x[e];
        scale = 1 / sqrt(squares / (double)h + r->c->norm_eps);
        for (size_t e = 0; e < h; e++)
            r->normed[i * h + e] = keep(r, x[e] * scale * (double)r->weight[e]);
    }
}

static void rotate(const struct run *r, double *head, size_t position)
{
    const size_t half = (size_t)r->c->head_dim / 2;
    for (size_t j = 0; j < half; j++) {
        const double angle = (double)position * r->angle[j];
        const double a = head[j], b = head[j + half], c = cos(angle), s = sin(angle);
        head[j] = keep(r, a * c - b * s);
        head[j + half] = keep(r, b * c + a * s);
    }
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
    memset(o, 0, d * sizeof *o);
    for (size_t j = from; j <= i; j++) {
        const double *v = r->qkv + j * row + (heads + kv + group) * d;
        const double weight = exp(r->scores[j] - largest);
        sum += weight;
        for (size_t e = 0; e < d; e++) o[e] += keep(r, weight) * v[e];
    }
    for (size_t e = 0; e < d; e++) o[e] = keep(r, o[e] / sum);
}

static void attention(struct run *r, const struct layer_tensors *t)
{
    const struct config *c = r->c;
    const size_t d = (size_t)c->head_dim, heads = (size_t)c->heads, kv = (size_t)c->kv_heads;
    const size_t row = (heads + 2 * kv) * d;
    product(r, r->normed, t->q, r->qkv, row);
    product(r, r->normed, t->k, r->qkv + heads * d, row);
    product(r, r->normed, t->v, r->qkv + (heads + kv) * d, row);
    add_bias(r, t->q_bias, r->qkv, row);
    add_bias(r, t->k_bias, r->qkv + heads * d, row);
    add_bias(r, t->v_bias, r->qkv + (heads + kv) * d, row);
    keep_all(r, r->qkv, r->count * row);
    for (size_t i = 0; i < r->count; i++)
        for (size_t h = 0; h < heads + kv; h++) rotate(r, r->qkv + i * row + h * d, i);
    for (size_t i = 0; i < r->count; i++)
        for (size_t h = 0; h < heads; h++) attend(r, i, h);
}

/* stream += inputs times the tensor, + bias, rounded once. */
static void add_product(struct run *r, const double *x, const struct tensor *t,
                        const struct tensor *bias)
{
    const size_t h = (size_t)r->c->hidden;
    product(r, x, t, r->normed, h);
    add_bias(r, bias, r->normed, h);
    for (size_t i = 0; i < r->count * h; i++) r->stream[i] = keep(r, r->stream[i] + r->normed[i]);
}

static void layer(struct run *r, const struct layer_tensors *t)
{
    const size_t inner = r->count * (size_t)r->c->intermediate;
    norm(r, t->norm_in);
    attention(r, t);
    add_product(r, r->mixed, t->o, t->o_bias);
    norm(r, t->norm_post);
    product(r, r->normed, t->gate, r->inner, (size_t)r->c->intermediate);
    product(r, r->normed, t->up, r->inner_up, (size_t)r->c->intermediate);
    for (size_t i = 0; i < inner; i++)
        r->inner[i] = keep(r, r->inner[i] / (1 + exp(-r->inner[i])) * r->inner_up[i]);
    add_product(r, r->inner, t->down, NULL);
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
    }
    return most;
}

static void forward(struct run *r, const int32_t *tokens, double *out)
{
    const size_t h = (size_t)r->c->hidden;
    config_frequencies(r->c, r->angle);
    load(r, r->model->embed);
    for (size_t i = 0; i < r->count; i++)
        for (size_t e = 0; e < h; e++)
            r->stream[i * h + e] = (double)r->weight[(size_t)tokens[i] * h + e];
    for (int64_t i = 0; i < r->c->layers; i++) layer(r, &r->model->layer[i]);
    norm(r, r->model->norm);
    product(r, r->normed, r->model->head, out, (size_t)r->c->vocab);
}

int reference_logits(const struct checkpoint *model, const int32_t *tokens, size_t count,
                     bool rounded, double *out, struct problem *p)
{
    const struct config *c = &model->config;
    const size_t h = (size_t)c->hidden, d = (size_t)c->head_dim, heads = (size_t)c->heads;
    const size_t inner = (size_t)c->intermediate, row = (heads + 2 * (size_t)c->kv_heads) * d;
    struct run r = {.model = model, .c = c, .count = count, .rounded = rounded};
    double *all;
    bool room;
    for (size_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= c->vocab)
            return problem(p, "token %zu is %d, outside the vocabulary of %lld", i, tokens[i],
                           (long long)c->vocab);
    all = malloc((count * (2 * h + row + heads * d + 2 * inner + 1) + d) * sizeof *all);
    r.weight = malloc(largest_tensor(model) * sizeof *r.weight);
    room = all && r.weight;
    if (room) {
        r.stream = all;
        r.normed = r.stream + count * h;
        r.qkv = r.normed + count * h;
        r.mixed = r.qkv + count * row;
        r.inner = r.mixed + count * heads * d;
        r.inner_up = r.inner + count * inner;
        r.scores = r.inner_up + count * inner;
        r.angle = r.scores + count;
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
