#include "checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 128 };

static int find_experts(const struct checkpoint *all, int64_t i, struct layer_tensors *out,
                        struct problem *p)
{
    const struct config *c = &all->config;
    char full[NAME_ROOM];
    out->expert = calloc((size_t)c->experts, sizeof *out->expert);
    if (!out->expert)
        return problem(p, "no memory for the names of %lld experts", (long long)c->experts);
    for (int64_t e = 0; e < c->experts; e++) {
#define EXPERT_TENSOR(field, name, of_mixtral, rows, columns)                         \
    const int64_t dim_##field[TENSOR_RANK] = {rows, columns};                         \
    snprintf(full, sizeof full, "model.layers.%lld.%s.experts.%lld.%s", (long long)i, \
             c->mixtral ? "block_sparse_moe" : "mlp", (long long)e,                   \
             c->mixtral ? of_mixtral : name);                                         \
    out->expert[e].field = weights_want(all->weights, full, dim_##field, p);          \
    if (!out->expert[e].field) return -1;
        EXPERT_TENSORS(EXPERT_TENSOR)
#undef EXPERT_TENSOR
    }
    return 0;
}

/* A tensor's name behind "model.layers.N.". */
static const char *layer_name(const struct config *c, const char *name)
{
    return c->mixtral && !strcmp(name, "mlp.gate.weight") ? "block_sparse_moe.gate.weight" : name;
}

static int find_layer(const struct checkpoint *all, int64_t i, struct layer_tensors *out,
                      struct problem *p)
{
    const struct config *c = &all->config;
    char full[NAME_ROOM];
#define LAYER_TENSOR(field, name, rows, columns, there)                                         \
    if (there) {                                                                                \
        const int64_t dim[TENSOR_RANK] = {rows, columns};                                       \
        snprintf(full, sizeof full, "model.layers.%lld.%s", (long long)i, layer_name(c, name)); \
        out->field = weights_want(all->weights, full, dim, p);                                  \
        if (!out->field) return -1;                                                             \
    }
    LAYER_TENSORS(LAYER_TENSOR)
#undef LAYER_TENSOR
    return LAYER_DENSE ? 0 : find_experts(all, i, out, p);
}

static int find_all(struct checkpoint *out, struct problem *p)
{
    const struct config *c = &out->config;
    const int64_t table[TENSOR_RANK] = {c->vocab, c->hidden}, vector[TENSOR_RANK] = {c->hidden};
    out->embed = weights_want(out->weights, "model.embed_tokens.weight", table, p);
    out->norm = out->embed ? weights_want(out->weights, "model.norm.weight", vector, p) : NULL;
    if (!out->norm) return -1;
    out->head = c->tied ? out->embed : weights_want(out->weights, "lm_head.weight", table, p);
    if (!out->head) return -1;
    out->layer = calloc((size_t)c->layers, sizeof *out->layer);
    if (!out->layer) return problem(p, "no memory for %lld layers", (long long)c->layers);
    for (int64_t i = 0; i < c->layers; i++)
        if (find_layer(out, i, &out->layer[i], p)) return -1;
    return 0;
}

int checkpoint_open(const char *folder, struct checkpoint *out, struct problem *p)
{
    *out = (struct checkpoint){.weights = NULL};
    if (config_read(folder, &out->config, p)) return -1;
    out->weights = weights_open(folder, p);
    if (out->weights && find_all(out, p) == 0) return 0;
    checkpoint_close(out);
    return -1;
}

void checkpoint_close(struct checkpoint *c)
{
    for (int64_t i = 0; c->layer && i < c->config.layers; i++) free(c->layer[i].expert);
    free(c->layer);
    weights_close(c->weights);
    *c = (struct checkpoint){.weights = NULL};
}
