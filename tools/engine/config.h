/*
 * config.json: decoder-only transformers of the Llama family (Llama, Mistral, Qwen2, Qwen3), with
 * experts (Mixtral, Qwen3-MoE), and those of DeepSeek (V2, V3). What a field asks that this engine does not compute is refused by the field's
 * name.
 */
#ifndef ENGINE_CONFIG_H
#define ENGINE_CONFIG_H

#include "problem.h"

#include <stdbool.h>
#include <stdint.h>

enum { EOS_MAX = 8 };

enum rope_kind { ROPE_DEFAULT, ROPE_LINEAR, ROPE_LLAMA3, ROPE_YARN };

/* What the router's kernel holds. */
enum { EXPERTS_MAX = 1024, EXPERT_GROUPS_MAX = 32, EXPERT_CHOICES_MAX = 32 };

struct config {
    int64_t hidden, layers, heads, kv_heads, head_dim, intermediate, vocab, positions;
    int64_t window; /* keys that a query sees, its own included; 0: all before it */
    double rope_theta, norm_eps;
    enum rope_kind rope;
    double rope_factor, rope_low, rope_high, rope_original; /* of all but ROPE_DEFAULT */
    double rope_size; /* cosines and sines are multiplied by it */
    int64_t rope_dim; /* elements of a head that rotate */
    int64_t v_dim;    /* elements of a head of V */
    /* Latent attention: a token's key and value are made of a vector of kv_rank elements and
     * rope_dim rotary ones, neighbours of which form the pairs that rotate. 0: none. q_rank: Q is
     * made of such a vector, too; 0: of the stream. */
    int64_t kv_rank, q_rank;
    double score_scale; /* of scores, in place of 1 / sqrt(head_dim); latent attention alone */
    /* Experts of the layers behind the first `dense_layers`; 0: none. A token goes to
     * expert_choices of them, which lie in the best groups_kept of expert_groups groups. */
    int64_t experts, dense_layers, expert_choices, expert_groups, groups_kept;
    int64_t expert_width, shared_width; /* of an expert, and of what all tokens pass; 0: nothing */
    bool router_sigmoid; /* scores are sigmoids, and a group's score is that of its best two; else
                            softmax, and its best */
    bool router_bias;    /* added to scores for the choice alone */
    bool router_normed;  /* the chosen scores are divided by their sum */
    double router_scale; /* then multiplied by this */
    bool tied;           /* lm_head is embed_tokens */
    bool qkv_bias, o_bias;
    bool head_norms; /* every head of Q and K is normed before it rotates */
    bool mixtral;    /* the tensors of experts have Mixtral's names */
    bool e4m3; /* not of the file: what the projections multiply is rounded to e4m3 */
    int64_t eos[EOS_MAX];
    int eos_count;
};

/* Reads FOLDER/config.json, and the eos ids of FOLDER/generation_config.json where that is there.
 * 0, or -1 after a message. */
int config_read(const char *folder, struct config *out, struct problem *p);
/* Sets what follows from the sizes where whole heads rotate and no layer has experts. */
void config_plain(struct config *c);
/* The rope_dim / 2 angles of one position, in radians. */
void config_frequencies(const struct config *c, double *out);

#endif
