/*
 * config.json: decoder-only transformers of the Llama family (Llama, Mistral, Qwen2). What a field
 * asks that this engine does not compute is refused by the field's name.
 */
#ifndef ENGINE_CONFIG_H
#define ENGINE_CONFIG_H

#include "problem.h"

#include <stdbool.h>
#include <stdint.h>

enum { EOS_MAX = 8 };

enum rope_kind { ROPE_DEFAULT, ROPE_LINEAR, ROPE_LLAMA3 };

struct config {
    int64_t hidden, layers, heads, kv_heads, head_dim, intermediate, vocab, positions;
    int64_t window; /* keys that a query sees, its own included; 0: all before it */
    double rope_theta, norm_eps;
    enum rope_kind rope;
    double rope_factor, rope_low, rope_high, rope_original; /* of ROPE_LINEAR and ROPE_LLAMA3 */
    bool tied;                                              /* lm_head is embed_tokens */
    bool qkv_bias, o_bias;
    int64_t eos[EOS_MAX];
    int eos_count;
};

/* Reads FOLDER/config.json, and the eos ids of FOLDER/generation_config.json where that is there.
 * 0, or -1 after a message. */
int config_read(const char *folder, struct config *out, struct problem *p);
/* The head_dim / 2 angles of one position, in radians. */
void config_frequencies(const struct config *c, double *out);

#endif
