/* A model's configuration and its tensors, found and checked once. */
#ifndef ENGINE_CHECKPOINT_H
#define ENGINE_CHECKPOINT_H

#include "config.h"
#include "weights.h"

/* Whether layer i of a struct config c has these. */
#define LAYER_HEADS  (!c->kv_rank)
#define LAYER_LATENT (c->kv_rank)
#define LAYER_DENSE  (i < c->dense_layers)
#define LAYER_SHARED (!LAYER_DENSE && c->shared_width)

/*
 * The tensors of a layer: X(field, name behind "model.layers.N.", rows, columns, whether it is
 * there), of a struct config c and layer number i. Columns 0: a vector. Rows that lie side by side
 * here are one matrix on the device, in this order.
 */
#define LAYER_TENSORS(X)                                                                        \
    X(norm_in, "input_layernorm.weight", c->hidden, 0, true)                                    \
    X(q, "self_attn.q_proj.weight", c->heads * c->head_dim, c->hidden, !c->q_rank)              \
    X(k, "self_attn.k_proj.weight", c->kv_heads * c->head_dim, c->hidden, LAYER_HEADS)          \
    X(v, "self_attn.v_proj.weight", c->kv_heads * c->head_dim, c->hidden, LAYER_HEADS)          \
    X(q_bias, "self_attn.q_proj.bias", c->heads * c->head_dim, 0, c->qkv_bias)                  \
    X(k_bias, "self_attn.k_proj.bias", c->kv_heads * c->head_dim, 0, c->qkv_bias)               \
    X(v_bias, "self_attn.v_proj.bias", c->kv_heads * c->head_dim, 0, c->qkv_bias)               \
    X(q_a, "self_attn.q_a_proj.weight", c->q_rank, c->hidden, c->q_rank)                        \
    X(kv_a, "self_attn.kv_a_proj_with_mqa.weight", c->kv_rank + c->rope_dim, c->hidden,         \
      LAYER_LATENT)                                                                             \
    X(q_a_norm, "self_attn.q_a_layernorm.weight", c->q_rank, 0, c->q_rank)                      \
    X(kv_a_norm, "self_attn.kv_a_layernorm.weight", c->kv_rank, 0, LAYER_LATENT)                \
    X(q_b, "self_attn.q_b_proj.weight", c->heads * c->head_dim, c->q_rank, c->q_rank)           \
    X(kv_b, "self_attn.kv_b_proj.weight", c->heads *(c->head_dim - c->rope_dim + c->v_dim),     \
      c->kv_rank, LAYER_LATENT)                                                                 \
    X(q_head_norm, "self_attn.q_norm.weight", c->head_dim, 0, c->head_norms)                    \
    X(k_head_norm, "self_attn.k_norm.weight", c->head_dim, 0, c->head_norms)                    \
    X(o, "self_attn.o_proj.weight", c->hidden, c->heads * c->v_dim, true)                       \
    X(o_bias, "self_attn.o_proj.bias", c->hidden, 0, c->o_bias)                                 \
    X(norm_post, "post_attention_layernorm.weight", c->hidden, 0, true)                         \
    X(gate, "mlp.gate_proj.weight", c->intermediate, c->hidden, LAYER_DENSE)                    \
    X(up, "mlp.up_proj.weight", c->intermediate, c->hidden, LAYER_DENSE)                        \
    X(down, "mlp.down_proj.weight", c->hidden, c->intermediate, LAYER_DENSE)                    \
    X(router, "mlp.gate.weight", c->experts, c->hidden, !LAYER_DENSE)                           \
    X(router_bias, "mlp.gate.e_score_correction_bias", c->experts, 0,                           \
      !LAYER_DENSE && c->router_bias)                                                           \
    X(shared_gate, "mlp.shared_experts.gate_proj.weight", c->shared_width, c->hidden,           \
      LAYER_SHARED)                                                                             \
    X(shared_up, "mlp.shared_experts.up_proj.weight", c->shared_width, c->hidden, LAYER_SHARED) \
    X(shared_down, "mlp.shared_experts.down_proj.weight", c->hidden, c->shared_width, LAYER_SHARED)

/* Of an expert: X(field, name behind "model.layers.N.mlp.experts.E.", Mixtral's behind
 * "model.layers.N.block_sparse_moe.experts.E.", rows, columns). */
#define EXPERT_TENSORS(X)                                                \
    X(gate, "gate_proj.weight", "w1.weight", c->expert_width, c->hidden) \
    X(up, "up_proj.weight", "w3.weight", c->expert_width, c->hidden)     \
    X(down, "down_proj.weight", "w2.weight", c->hidden, c->expert_width)

struct expert_tensors {
#define EXPERT_TENSOR(field, name, mixtral, rows, columns) const struct tensor *field;
    EXPERT_TENSORS(EXPERT_TENSOR)
#undef EXPERT_TENSOR
};

struct layer_tensors {
#define LAYER_TENSOR(field, name, rows, columns, there) const struct tensor *field;
    LAYER_TENSORS(LAYER_TENSOR)
#undef LAYER_TENSOR
    struct expert_tensors *expert; /* NULL: a dense layer */
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
