#include "ranks_shard.h"

#include <stdlib.h>

/* What a rank has of a dimension. */
struct share {
    int64_t first, count;
};

static int split(int64_t all, int64_t multiple, const struct ranks *r, const char *what,
                 struct share *out, struct problem *p)
{
    if (all % (r->count * multiple))
        return problem(p, "%s is %lld; %d ranks split it only as a multiple of %lld", what,
                       (long long)all, r->count, (long long)(r->count * multiple));
    out->count = all / r->count;
    out->first = out->count * r->rank;
    return 0;
}

/* Heads of K and V are shared where there are fewer than ranks. */
static int split_keys(int64_t all, const struct ranks *r, struct share *out, struct problem *p)
{
    if (all >= r->count) return split(all, 1, r, "num_key_value_heads", out, p);
    if (r->count % all)
        return problem(p, "num_key_value_heads is %lld; %d ranks are no multiple of it",
                       (long long)all, r->count);
    *out = (struct share){r->rank / (r->count / all), 1};
    return 0;
}

struct shares {
    struct share q, kv, inner; /* rows of Q, of K and V; columns of the feed-forward */
};

static const struct tensor *rows_of(struct shard *s, size_t *used, const struct tensor *t,
                                    struct share rows)
{
    if (!t) return NULL;
    s->parts[*used] = weights_part(t, rows.first, rows.count, 0, t->rank > 1 ? t->dim[1] : 0);
    return &s->parts[(*used)++];
}

static const struct tensor *columns_of(struct shard *s, size_t *used, const struct tensor *t,
                                       struct share columns)
{
    s->parts[*used] = weights_part(t, 0, t->dim[0], columns.first, columns.count);
    return &s->parts[(*used)++];
}

static void split_layer(struct shard *s, size_t *used, const struct layer_tensors *from,
                        const struct shares *parts, bool first, struct layer_tensors *to)
{
    *to = *from;
    to->q = rows_of(s, used, from->q, parts->q);
    to->k = rows_of(s, used, from->k, parts->kv);
    to->v = rows_of(s, used, from->v, parts->kv);
    to->q_bias = rows_of(s, used, from->q_bias, parts->q);
    to->k_bias = rows_of(s, used, from->k_bias, parts->kv);
    to->v_bias = rows_of(s, used, from->v_bias, parts->kv);
    to->o = columns_of(s, used, from->o, parts->q);
    to->gate = rows_of(s, used, from->gate, parts->inner);
    to->up = rows_of(s, used, from->up, parts->inner);
    to->down = columns_of(s, used, from->down, parts->inner);
    if (!first) to->o_bias = NULL;
}

/* Heads to rows. */
static struct share scaled(struct share s, int64_t by)
{
    return (struct share){s.first * by, s.count * by};
}

int shard_open(const struct checkpoint *whole, const struct ranks *r, struct shard *out,
               struct problem *p)
{
    enum { PARTS = 10 }; /* tensors of a layer that are split */
    struct config *c = &out->checkpoint.config;
    struct shares parts;
    size_t used = 0;
    *out = (struct shard){.checkpoint = *whole};
    out->checkpoint.weights = NULL;
    out->checkpoint.layer = calloc((size_t)c->layers, sizeof *out->checkpoint.layer);
    out->parts = calloc(PARTS * (size_t)c->layers, sizeof *out->parts);
    if (!out->checkpoint.layer || !out->parts) {
        shard_close(out);
        return problem(p, "no memory for a rank's part of %lld layers", (long long)c->layers);
    }
    if (r->split == RANKS_BY_CONTEXT && !c->kv_rank) {
        for (int64_t i = 0; i < c->layers; i++) out->checkpoint.layer[i] = whole->layer[i];
        return 0;
    }
    if (c->kv_rank || c->experts) {
        shard_close(out);
        return problem(p,
                       "ranks split heads of K and V and a dense feed-forward; this model has %s",
                       c->kv_rank ? "latent attention" : "experts");
    }
    if (split(c->heads, 1, r, "num_attention_heads", &parts.q, p) ||
        split_keys(c->kv_heads, r, &parts.kv, p) ||
        split(c->intermediate, 8, r, "intermediate_size", &parts.inner, p)) {
        shard_close(out);
        return -1;
    }
    c->heads = parts.q.count;
    c->kv_heads = parts.kv.count;
    c->intermediate = parts.inner.count;
    c->o_bias = c->o_bias && r->rank == 0;
    parts.q = scaled(parts.q, c->head_dim);
    parts.kv = scaled(parts.kv, c->head_dim);
    for (int64_t i = 0; i < c->layers; i++)
        split_layer(out, &used, &whole->layer[i], &parts, r->rank == 0, &out->checkpoint.layer[i]);
    return 0;
}

void shard_close(struct shard *s)
{
    free(s->checkpoint.layer);
    free(s->parts);
    *s = (struct shard){.parts = NULL};
}
