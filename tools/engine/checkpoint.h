/* A model's configuration and its tensors, found and checked once. */
#ifndef ENGINE_CHECKPOINT_H
#define ENGINE_CHECKPOINT_H

#include "config.h"
#include "weights.h"

/*
 * The tensors of a layer: X(field, name behind "model.layers.N.", rows, columns, whether it is
 * there), of a struct config c. Columns 0: a vector. Rows that lie side by side here are one matrix
 * on the device, in this order.
 */
#define LAYER_TENSORS(X)                                                          \
    X(norm_in, "input_layernorm.weight", c->hidden, 0, true)                      \
    X(q, "self_attn.q_proj.weight", c->heads * c->head_dim, c->hidden, true)      \
    X(k, "self_attn.k_proj.weight", c->kv_heads * c->head_dim, c->hidden, true)   \
    X(v, "self_attn.v_proj.weight", c->kv_heads * c->head_dim, c->hidden, true)   \
    X(q_bias, "self_attn.q_proj.bias", c->heads * c->head_dim, 0, c->qkv_bias)    \
    X(k_bias, "self_attn.k_proj.bias", c->kv_heads * c->head_dim, 0, c->qkv_bias) \
    X(v_bias, "self_attn.v_proj.bias", c->kv_heads * c->head_dim, 0, c->qkv_bias) \
    X(o, "self_attn.o_proj.weight", c->hidden, c->heads * c->head_dim, true)      \
    X(o_bias, "self_attn.o_proj.bias", c->hidden, 0, c->o_bias)                   \
    X(norm_post, "post_attention_layernorm.weight", c->hidden, 0, true)           \
    X(gate, "mlp.gate_proj.weight", c->intermediate, c->hidden, true)             \
    X(up, "mlp.up_proj.weight", c->intermediate, c->hidden, true)                 \
    X(down, "mlp.down_proj.weight", c->hidden, c->intermediate, true)

struct layer_tensors {
#define LAYER_TENSOR(field, name, rows, columns, there) const struct tensor *field;
    LAYER_TENSORS(LAYER_TENSOR)
#undef LAYER_TENSOR
};

struct checkpoint {
    struct config config;
    struct weights *weights;
    const struct tensor *embed, *norm, *head; /* head: embed where they are tied */
    struct layer_tensors *layer;
};

/* 0, or -1 after a message that names file, tensor and rule; then nothing is left open. */
int checkpoint_open(const char *folder, struct checkpoint *out, struct problem *p);
void checkpoint_close(struct checkpoint *c);

#endif
