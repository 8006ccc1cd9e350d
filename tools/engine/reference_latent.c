#include "reference_parts.h"

#include <math.h>
#include <string.h>

/* What transformers' norms of latent vectors have, whatever config.json says. */
static const double latent_eps = 1e-6;

struct latent { /* of qkv, each behind the other */
    double *q, *wide, *key,
        *rank; /* Q, Q as the cache is, the cache, the vector of Q and its norm */
    size_t heads, dim, nope, v_dim, key_dim, kv_rank;
};

static struct latent place(const struct run *r)
{
    const struct config *c = r->c;
    struct latent l = {.q = r->qkv,
                       .heads = (size_t)c->heads,
                       .dim = (size_t)c->head_dim,
                       .nope = (size_t)(c->head_dim - c->rope_dim),
                       .v_dim = (size_t)c->v_dim,
                       .key_dim = (size_t)(c->kv_rank + c->rope_dim),
                       .kv_rank = (size_t)c->kv_rank};
    l.wide = l.q + r->count * l.heads * l.dim;
    l.key = l.wide + r->count * l.heads * l.key_dim;
    l.rank = l.key + r->count * l.key_dim;
    return l;
}

/* Q, of the stream or of its latent vector, and the rows of the cache. */
static void project(struct run *r, const struct layer_tensors *t, const struct latent *l)
{
    const size_t row = l->heads * l->dim;
    reference_product(r, r->normed, t->kv_a, l->key, l->key_dim);
    reference_keep(r, l->key, r->count * l->key_dim);
    /* The norm's rows are contiguous, so they go where Q in the cache's form comes later. */
    reference_norm(r, t->kv_a_norm, l->key, l->key_dim, latent_eps, l->wide);
    for (size_t i = 0; i < r->count; i++)
        memcpy(l->key + i * l->key_dim, l->wide + i * l->kv_rank, l->kv_rank * sizeof *l->key);
    if (t->q_a) {
        const size_t rank = (size_t)t->q_a->dim[0];
        reference_product(r, r->normed, t->q_a, l->rank, rank);
        reference_keep(r, l->rank, r->count * rank);
        reference_norm(r, t->q_a_norm, l->rank, rank, latent_eps, l->rank + r->count * rank);
        reference_product(r, l->rank + r->count * rank, t->q_b, l->q, row);
    } else {
        reference_product(r, r->normed, t->q, l->q, row);
    }
    reference_keep(r, l->q, r->count * row);
}

static void rotate(const struct run *r, const struct latent *l)
{
    for (size_t i = 0; i < r->count; i++)
        for (size_t pair = 0; pair < (l->dim - l->nope) / 2; pair++) {
            reference_rotate(r, l->key + i * l->key_dim + l->kv_rank + 2 * pair, pair, 1, i);
            for (size_t h = 0; h < l->heads; h++)
                reference_rotate(r, l->q + (i * l->heads + h) * l->dim + l->nope + 2 * pair, pair,
                                 1, i);
        }
}

/* Rows of kv_b: for each head nope rows that make keys, v_dim rows that make values. */
static const float *rows_of(const struct run *r, const struct latent *l, size_t head)
{
    return r->weight + head * (l->nope + l->v_dim) * l->kv_rank;
}

static void widen(const struct run *r, const struct latent *l)
{
    for (size_t i = 0; i < r->count; i++)
        for (size_t h = 0; h < l->heads; h++) {
            const double *q = l->q + (i * l->heads + h) * l->dim;
            double *out = l->wide + (i * l->heads + h) * l->key_dim;
            for (size_t e = 0; e < l->kv_rank; e++) {
                double sum = 0;
                for (size_t j = 0; j < l->nope; j++)
                    sum += q[j] * (double)rows_of(r, l, h)[j * l->kv_rank + e];
                out[e] = keep(r, sum);
            }
            memcpy(out + l->kv_rank, q + l->nope, (l->dim - l->nope) * sizeof *out);
        }
}

static void attend(struct run *r, const struct latent *l, size_t i, size_t head)
{
    const double *q = l->wide + (i * l->heads + head) * l->key_dim;
    double *vector = r->scores + r->count, largest = -INFINITY, sum = 0;
    const float *w = rows_of(r, l, head) + l->nope * l->kv_rank;
    for (size_t j = 0; j <= i; j++) {
        double s = 0;
        for (size_t e = 0; e < l->key_dim; e++) s += q[e] * l->key[j * l->key_dim + e];
        r->scores[j] = s * r->c->score_scale;
        if (r->scores[j] > largest) largest = r->scores[j];
    }
    memset(vector, 0, l->kv_rank * sizeof *vector);
    for (size_t j = 0; j <= i; j++) {
        const double weight = exp(r->scores[j] - largest);
        sum += weight;
        for (size_t e = 0; e < l->kv_rank; e++)
            vector[e] += keep(r, weight) * l->key[j * l->key_dim + e];
    }
    for (size_t e = 0; e < l->kv_rank; e++) vector[e] = keep(r, vector[e] / sum);
    for (size_t v = 0; v < l->v_dim; v++) {
        double value = 0;
        for (size_t e = 0; e < l->kv_rank; e++) value += vector[e] * (double)w[v * l->kv_rank + e];
        r->mixed[(i * l->heads + head) * l->v_dim + v] = keep(r, value);
    }
}

void reference_latent(struct run *r, const struct layer_tensors *t)
{
    const struct latent l = place(r);
    project(r, t, &l);
    rotate(r, &l);
    reference_load(r, t->kv_b);
    widen(r, &l);
    for (size_t i = 0; i < r->count; i++)
        for (size_t h = 0; h < l.heads; h++) attend(r, &l, i, h);
}
