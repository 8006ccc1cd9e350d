/* Small checkpoints with random weights, written as Hugging Face lays them out. */
#ifndef TESTS_ENGINE_TINY_H
#define TESTS_ENGINE_TINY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What decides, besides the sizes: heads that are normed, experts in every layer. */
enum tiny_type { TINY_USUAL, TINY_QWEN3, TINY_QWEN3_MOE, TINY_MIXTRAL };

struct tiny {
    int hidden, layers, heads, kv_heads, head_dim, intermediate, vocab, positions;
    bool tied;
    bool bias, o_bias;        /* of Q, K and V, as Qwen2 has it; of these and O, a Llama's */
    const char *rope_scaling; /* JSON, or NULL */
    const char *dtype;        /* "BF16", "F16" or "F32" */
    int window;               /* as Mistral's; 0: none */
    int shards;               /* files that hold the tensors; 0: one, without an index */
    uint64_t seed;
    bool e4m3; /* opened so; the files do not tell */
    enum tiny_type type;
    /* Of TINY_USUAL a model as DeepSeek's, where `experts` is above 0: latent attention, heads of nope + 64 and
     * v_dim elements, the first layer dense, `choices` experts a token of one of two groups. */
    int experts, choices, expert_width, q_rank, nope, v_dim;
};

/* One layer of two heads, bf16, a vocabulary of 128: enough for requests, whose steps are few launches. */
struct tiny tiny_llama(uint64_t seed);

/* A folder below the system's for temporary files; its path is written to `path`. */
bool tiny_folder(char *path, size_t size);
/* Removes the folder and the files in it. */
void tiny_remove(const char *path);
/* Writes one file of the folder. */
bool tiny_file(const char *folder, const char *name, const void *data, size_t size);
bool tiny_text(const char *folder, const char *name, const char *text);
/* Writes config.json and the tensors. */
bool tiny_write(const char *folder, const struct tiny *t);
/* A byte-level tokenizer.json of 256 bytes' tokens, then merges, then "<|end|>". */
bool tiny_tokenizer(const char *folder, const char *const *merges, int count);

#endif
