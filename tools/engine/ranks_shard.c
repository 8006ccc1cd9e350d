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
    struct share heads;         /* of Q, and of latent attention */
    struct share kv;            /* heads of K and V; of latent attention none */
    struct share inner;         /* columns of the feed-forward */
    struct share shared, width; /* of what all tokens pass, of an expert */
};

static const struct tensor *rows_of(struct shard *s, const struct tensor *t, struct share rows)
{
    if (!t) return NULL;
    s->parts[s->used] = weights_part(t, rows.first, rows.count, 0, t->rank > 1 ? t->dim[1] : 0);
    return &s->parts[s->used++];
}

static const struct tensor *columns_of(struct shard *s, const struct tensor *t,
                                       struct share columns)
{
    if (!t) return NULL;
    s->parts[s->used] = weights_part(t, 0, t->dim[0], columns.first, columns.count);
    return &s->parts[s->used++];
}

/* Heads to rows. */
static struct share scaled(struct share s, int64_t by)
{
    return (struct share){s.first * by, s.count * by};
}

/* Each rank has all experts, and of each as many columns. */
static int split_experts(struct shard *s, const struct layer_tensors *from,
                         const struct shares *parts, struct layer_tensors *to, struct problem *p)
{
    const int64_t experts = s->checkpoint.config.experts;
    if (!from->expert) return 0;
    to->expert = calloc((size_t)experts, sizeof *to->expert);
    if (!to->expert)
        return problem(p, "no memory for a rank's part of %lld experts", (long long)experts);
    for (int64_t e = 0; e < experts; e++) {
        to->expert[e].gate = rows_of(s, from->expert[e].gate, parts->width);
        to->expert[e].up = rows_of(s, from->expert[e].up, parts->width);
        to->expert[e].down = columns_of(s, from->expert[e].down, parts->width);
    }
    to->shared_gate = rows_of(s, from->shared_gate, parts->shared);
    to->shared_up = rows_of(s, from->shared_up, parts->shared);
    to->shared_down = columns_of(s, from->shared_down, parts->shared);
    return 0;
}

static int split_layer(struct shard *s, const struct layer_tensors *from,
                       const struct shares *parts, bool first, struct layer_tensors *to,
                       struct problem *p)
{
    const struct config *c = &s->checkpoint.config;
    const struct share q = scaled(parts->heads, c->head_dim), kv = scaled(parts->kv, c->head_dim);
    *to = *from;
    to->expert = NULL;
    to->q = rows_of(s, from->q, q);
    to->k = rows_of(s, from->k, kv);
    to->v = rows_of(s, from->v, kv);
    to->q_bias = rows_of(s, from->q_bias, q);
    to->k_bias = rows_of(s, from->k_bias, kv);
    to->v_bias = rows_of(s, from->v_bias, kv);
    to->q_b = rows_of(s, from->q_b, q);
    to->kv_b = rows_of(s, from->kv_b, scaled(parts->heads, c->head_dim - c->rope_dim + c->v_dim));
    to->o = columns_of(s, from->o, scaled(parts->heads, c->v_dim));
    to->gate = rows_of(s, from->gate, parts->inner);
    to->up = rows_of(s, from->up, parts->inner);
    to->down = columns_of(s, from->down, parts->inner);
    if (!first) to->o_bias = NULL;
    return split_experts(s, from, parts, to, p);
}

/* What each rank has, and the config of this one. */
static int share_out(const struct ranks *r, struct config *c, struct shares *out, struct problem *p)
{
    const char *const width = c->mixtral ? "intermediate_size" : "moe_intermediate_size";
    *out = (struct shares){.kv = {0, 0}};
    if (split(c->heads, 1, r, "num_attention_heads", &out->heads, p) ||
        (!c->kv_rank && split_keys(c->kv_heads, r, &out->kv, p)) ||
        (c->dense_layers && split(c->intermediate, 8, r, "intermediate_size", &out->inner, p)) ||
        (c->experts && split(c->expert_width, 8, r, width, &out->width, p)) ||
        (c->shared_width &&
         split(c->shared_width, 8, r, "the shared experts' width", &out->shared, p)))
        return -1;
    c->heads = out->heads.count;
    c->kv_heads = c->kv_rank ? c->heads : out->kv.count;
    if (c->dense_layers) c->intermediate = out->inner.count;
    c->expert_width = out->width.count;
    c->shared_width = out->shared.count;
    c->o_bias = c->o_bias && r->rank == 0;
    return 0;
}

static int split_all(const struct checkpoint *whole, const struct ranks *r, struct shard *out,
                     struct problem *p)
{
    struct config *c = &out->checkpoint.config;
    struct shares parts;
    if (r->split == RANKS_BY_CONTEXT && c->kv_rank)
        return problem(p, "by context: ranks share K and V of heads; this model has latent "
                          "attention, which ranks split by tensor alone");
    if (r->split == RANKS_BY_CONTEXT) {
        for (int64_t i = 0; i < c->layers; i++) out->checkpoint.layer[i] = whole->layer[i];
        return 0;
    }
    if (share_out(r, c, &parts, p)) return -1;
    out->splits = true;
    for (int64_t i = 0; i < c->layers; i++)
        if (split_layer(out, &whole->layer[i], &parts, r->rank == 0, &out->checkpoint.layer[i], p))
            return -1;
    return 0;
}

int shard_open(const struct checkpoint *whole, const struct ranks *r, struct shard *out,
               struct problem *p)
{
    enum { PARTS = 15, EXPERT_PARTS = 3 }; /* tensors of a layer that are split */
    const struct config *c = &whole->config;
    const size_t parts = (size_t)c->layers * (PARTS + EXPERT_PARTS * (size_t)c->experts);
    *out = (struct shard){.checkpoint = *whole};
    out->checkpoint.weights = NULL;
    out->checkpoint.layer = calloc((size_t)c->layers, sizeof *out->checkpoint.layer);
    out->parts = calloc(parts, sizeof *out->parts);
    if (!out->checkpoint.layer || !out->parts) {
        shard_close(out);
        return problem(p, "no memory for a rank's part of %lld layers", (long long)c->layers);
    }
    if (split_all(whole, r, out, p) == 0) return 0;
    shard_close(out);
    return -1;
}

void shard_close(struct shard *s)
{
    for (int64_t i = 0; s->checkpoint.layer && s->splits && i < s->checkpoint.config.layers; i++)
        free(s->checkpoint.layer[i].expert);
    free(s->checkpoint.layer);
    free(s->parts);
    *s = (struct shard){.parts = NULL};
}
