#include "tiny.h"

#include "lib/harness.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 96, PATH = 512, TENSORS = 1024 };

struct entry {
    char name[NAME];
    long rows, columns; /* columns 0: a vector */
    double around;      /* the values' mean */
    double width;
};

struct writer {
    const struct tiny *t;
    struct entry entry[TENSORS];
    int count;
    struct rng rng;
};

struct tiny tiny_llama(uint64_t seed)
{
    return (struct tiny){.hidden = 64,
                         .layers = 1,
                         .heads = 2,
                         .kv_heads = 1,
                         .head_dim = 64,
                         .intermediate = 64,
                         .vocab = 128,
                         .positions = 128,
                         .dtype = "BF16",
                         .seed = seed};
}

bool tiny_folder(char *path, size_t size)
{
    const char *where = getenv("TMPDIR");
    snprintf(path, size, "%s/hewn-engine-XXXXXX", where ? where : "/tmp");
    return mkdtemp(path) != NULL;
}

void tiny_remove(const char *path)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    char name[PATH];
    while (d && (e = readdir(d)) != NULL) {
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.') unlink(name);
    }
    if (d) closedir(d);
    rmdir(path);
}

bool tiny_file(const char *folder, const char *name, const void *data, size_t size)
{
    char path[PATH];
    FILE *f;
    bool done;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "wb");
    if (!f) return false;
    done = fwrite(data, 1, size, f) == size;
    return fclose(f) == 0 && done;
}

bool tiny_text(const char *folder, const char *name, const char *text)
{
    return tiny_file(folder, name, text, strlen(text));
}

static void add(struct writer *w, long rows, long columns, double around, double width,
                const char *format, int layer)
{
    struct entry *e = &w->entry[w->count++];
    *e = (struct entry){.rows = rows, .columns = columns, .around = around, .width = width};
    snprintf(e->name, sizeof e->name, format, layer);
}

static bool is_deepseek(const struct tiny *t)
{
    return t->experts && t->type == TINY_USUAL;
}

static void add_gated(struct writer *w, int i, long width, const char *where)
{
    static const char *const names[2][3] = {{"gate_proj", "up_proj", "down_proj"},
                                            {"w1", "w3", "w2"}};
    const bool mixtral = w->t->type == TINY_MIXTRAL;
    const long h = w->t->hidden;
    char format[NAME];
    for (int part = 0; part < 3; part++) {
        const long columns = part < 2 ? h : width;
        snprintf(format, sizeof format, "model.layers.%%d.%s.%s%s.weight",
                 mixtral ? "block_sparse_moe" : "mlp", where, names[mixtral][part]);
        add(w, part < 2 ? width : h, columns, 0, sqrt(3.0 / (double)columns), format, i);
    }
}

/* Latent attention. */
static void add_latent(struct writer *w, int i)
{
    const struct tiny *t = w->t;
    const long h = t->hidden, q = (long)t->heads * (t->nope + 64), v = (long)t->heads * t->v_dim;
    const long made = (long)t->heads * (t->nope + t->v_dim);
    const double in = sqrt(3.0 / (double)h);
    if (t->q_rank) {
        add(w, t->q_rank, h, 0, in, "model.layers.%d.self_attn.q_a_proj.weight", i);
        add(w, t->q_rank, 0, 1, 0.25, "model.layers.%d.self_attn.q_a_layernorm.weight", i);
        add(w, q, t->q_rank, 0, sqrt(3.0 / t->q_rank), "model.layers.%d.self_attn.q_b_proj.weight",
            i);
    } else {
        add(w, q, h, 0, in, "model.layers.%d.self_attn.q_proj.weight", i);
    }
    add(w, 512 + 64, h, 0, in, "model.layers.%d.self_attn.kv_a_proj_with_mqa.weight", i);
    add(w, 512, 0, 1, 0.25, "model.layers.%d.self_attn.kv_a_layernorm.weight", i);
    add(w, made, 512, 0, sqrt(3.0 / 512), "model.layers.%d.self_attn.kv_b_proj.weight", i);
    add(w, h, v, 0, sqrt(3.0 / (double)v), "model.layers.%d.self_attn.o_proj.weight", i);
}

/* A router whose scores lie well apart, experts, and what all tokens pass. */
static void add_experts(struct writer *w, int i)
{
    const struct tiny *t = w->t;
    char where[NAME];
    add(w, t->experts, t->hidden, 0, 4 * sqrt(3.0 / t->hidden),
        t->type == TINY_MIXTRAL ? "model.layers.%d.block_sparse_moe.gate.weight"
                                : "model.layers.%d.mlp.gate.weight",
        i);
    if (is_deepseek(t))
        add(w, t->experts, 0, 0.25, 0.25, "model.layers.%d.mlp.gate.e_score_correction_bias", i);
    for (int e = 0; e < t->experts; e++) {
        snprintf(where, sizeof where, "experts.%d.", e);
        add_gated(w, i, t->expert_width, where);
    }
    if (is_deepseek(t)) add_gated(w, i, t->expert_width, "shared_experts.");
}

static void add_heads(struct writer *w, int i)
{
    static const char *const bias[] = {"model.layers.%d.self_attn.q_proj.bias",
                                       "model.layers.%d.self_attn.k_proj.bias",
                                       "model.layers.%d.self_attn.v_proj.bias"};
    const struct tiny *t = w->t;
    const long h = t->hidden, d = t->head_dim, q = t->heads * d, kv = t->kv_heads * d;
    const double in = sqrt(3.0 / (double)h);
    add(w, q, h, 0, in, "model.layers.%d.self_attn.q_proj.weight", i);
    add(w, kv, h, 0, in, "model.layers.%d.self_attn.k_proj.weight", i);
    add(w, kv, h, 0, in, "model.layers.%d.self_attn.v_proj.weight", i);
    add(w, h, q, 0, sqrt(3.0 / (double)q), "model.layers.%d.self_attn.o_proj.weight", i);
    for (int b = 0; (t->bias || t->o_bias) && b < 3; b++) add(w, b ? kv : q, 0, 0, 1, bias[b], i);
    if (t->o_bias) add(w, h, 0, 0, 1, "model.layers.%d.self_attn.o_proj.bias", i);
    if (t->type != TINY_QWEN3 && t->type != TINY_QWEN3_MOE) return;
    add(w, d, 0, 1, 0.25, "model.layers.%d.self_attn.q_norm.weight", i);
    add(w, d, 0, 1, 0.25, "model.layers.%d.self_attn.k_norm.weight", i);
}

/* Widths keep the stream's size about the same from layer to layer. */
static void list_tensors(struct writer *w)
{
    const struct tiny *t = w->t;
    const long h = t->hidden;
    const double in = sqrt(3.0 / (double)h); /* of uniform numbers with variance 1 / h */
    add(w, t->vocab, h, 0, 1.5, "model.embed_tokens.weight", 0);
    for (int i = 0; i < t->layers; i++) {
        add(w, h, 0, 1, 0.25, "model.layers.%d.input_layernorm.weight", i);
        add(w, h, 0, 1, 0.25, "model.layers.%d.post_attention_layernorm.weight", i);
        if (is_deepseek(t))
            add_latent(w, i);
        else
            add_heads(w, i);
        if (t->experts && (i || !is_deepseek(t)))
            add_experts(w, i);
        else
            add_gated(w, i, t->intermediate, "");
    }
    add(w, h, 0, 1, 0.25, "model.norm.weight", 0);
    if (!t->tied) add(w, t->vocab, h, 0, in, "lm_head.weight", 0);
}

static size_t elements(const struct entry *e)
{
    return (size_t)e->rows * (size_t)(e->columns ? e->columns : 1);
}

static size_t dtype_bytes(const struct tiny *t)
{
    return strcmp(t->dtype, "F32") ? 2 : 4;
}

static void put_value(const struct tiny *t, double value, unsigned char *to)
{
    const float wide = (float)value;
    uint16_t half;
    if (!strcmp(t->dtype, "F32")) {
        memcpy(to, &wide, sizeof wide);
        return;
    }
    half = strcmp(t->dtype, "F16") ? double_to_bf16(value) : double_to_f16(value);
    memcpy(to, &half, sizeof half);
}

/* The tensors from `from` on, every `step`-th. */
static bool write_shard(struct writer *w, const char *folder, const char *name, int from, int step)
{
    const size_t width = dtype_bytes(w->t), header_room = 256 * (size_t)w->count + 16;
    size_t data = 0, length = 8, total = 0, at;
    unsigned char *file;
    bool done;
    for (int i = from; i < w->count; i += step) total += elements(&w->entry[i]) * width;
    file = malloc(header_room + total);
    if (!file) return false;
    for (int i = from; i < w->count; i += step) {
        const struct entry *e = &w->entry[i];
        char shape[64];
        snprintf(shape, sizeof shape, e->columns ? "%ld,%ld" : "%ld", e->rows, e->columns);
        length += (size_t)snprintf((char *)file + length, header_room - length,
                                   "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":"
                                   "[%zu,%zu]}",
                                   i == from ? '{' : ',', e->name, w->t->dtype, shape, data,
                                   data + elements(e) * width);
        data += elements(e) * width;
    }
    file[length++] = '}';
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)((length - 8) >> 8 * i & 255);
    at = length;
    for (int i = from; i < w->count; i += step)
        for (size_t k = elements(&w->entry[i]); k > 0; k--, at += width)
            put_value(w->t, w->entry[i].around + w->entry[i].width * (double)rng_unit(&w->rng),
                      file + at);
    done = tiny_file(folder, name, file, at);
    free(file);
    return done;
}

static bool write_tensors(struct writer *w, const char *folder)
{
    const size_t room = 256 * (size_t)w->count + 64;
    char name[NAME];
    char *index;
    size_t length = 0;
    bool done = true;
    if (!w->t->shards) return write_shard(w, folder, "model.safetensors", 0, 1);
    index = malloc(room);
    if (!index) return false;
    length += (size_t)snprintf(index, room, "{\"metadata\":{},\"weight_map\":");
    for (int i = 0; i < w->count; i++)
        length +=
            (size_t)snprintf(index + length, room - length, "%c\"%s\":\"model-%d.safetensors\"",
                             i ? ',' : '{', w->entry[i].name, i % w->t->shards);
    snprintf(index + length, room - length, "}}");
    for (int i = 0; done && i < w->t->shards; i++) {
        snprintf(name, sizeof name, "model-%d.safetensors", i);
        done = write_shard(w, folder, name, i, w->t->shards);
    }
    done = done && tiny_text(folder, "model.safetensors.index.json", index);
    free(index);
    return done;
}

bool tiny_write(const char *folder, const struct tiny *t)
{
    static const char *const types[] = {"", "qwen3", "qwen3_moe", "mixtral"};
    struct writer *w = calloc(1, sizeof *w);
    char config[2048], window[1024] = "";
    bool done;
    if (!w) return false;
    w->t = t;
    w->rng.state = t->seed;
    list_tensors(w);
    if (t->window) snprintf(window, sizeof window, ", \"sliding_window\": %d", t->window);
    if (t->type == TINY_MIXTRAL || t->type == TINY_QWEN3_MOE)
        snprintf(window, sizeof window,
                 ", \"%s\": %d, \"num_experts_per_tok\": %d,\n \"moe_intermediate_size\": %d, "
                 "\"norm_topk_prob\": true",
                 t->type == TINY_MIXTRAL ? "num_local_experts" : "num_experts", t->experts,
                 t->choices, t->expert_width);
    if (is_deepseek(t))
        snprintf(window, sizeof window,
                 ",\n \"n_routed_experts\": %d, \"num_experts_per_tok\": %d, \"n_group\": 2, "
                 "\"topk_group\": 1,\n \"moe_intermediate_size\": %d, \"n_shared_experts\": 1, "
                 "\"first_k_dense_replace\": 1,\n \"kv_lora_rank\": 512, \"q_lora_rank\": %d, "
                 "\"qk_nope_head_dim\": %d,\n \"qk_rope_head_dim\": 64, \"v_head_dim\": %d",
                 t->experts, t->choices, t->expert_width, t->q_rank, t->nope, t->v_dim);
    snprintf(config, sizeof config,
             "{\"model_type\": \"%s\", \"hidden_size\": %d, \"num_hidden_layers\": %d,\n"
             " \"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"head_dim\": %d,\n"
             " \"intermediate_size\": %d, \"vocab_size\": %d, \"max_position_embeddings\": %d,\n"
             " \"rms_norm_eps\": 1e-5, \"hidden_act\": \"silu\", \"rope_theta\": 10000.0,\n"
             " \"tie_word_embeddings\": %s, \"eos_token_id\": null, \"rope_scaling\": %s%s%s}\n",
             t->type      ? types[t->type]
             : t->experts ? "deepseek_v3"
             : t->window  ? "mistral"
             : t->bias    ? "qwen2"
                          : "llama",
             t->hidden, t->layers, t->heads, t->kv_heads, t->head_dim,
             t->type == TINY_MIXTRAL ? t->expert_width : t->intermediate, t->vocab, t->positions,
             t->tied ? "true" : "false", t->rope_scaling ? t->rope_scaling : "null",
             t->o_bias ? ",\n \"attention_bias\": true" : "", window);
    done = tiny_text(folder, "config.json", config) && write_tensors(w, folder);
    free(w);
    return done;
}

/* The character that stands for a byte, escaped as JSON asks. */
static int put_byte(char *to, size_t room, int byte)
{
    int c = byte;
    if (byte <= 32) c = 256 + byte;
    if (byte >= 127 && byte <= 160) c = 289 + byte - 127;
    if (byte == 173) c = 323;
    return snprintf(to, room, "\\u%04x", (unsigned)c);
}

bool tiny_tokenizer(const char *folder, const char *const *merges, int count)
{
    const size_t room = 8192 + 128 * (size_t)count;
    char *text = malloc(room);
    size_t n = 0;
    bool done;
    if (!text) return false;
    n += (size_t)snprintf(text, room,
                          "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":%d,\"content\":"
                          "\"<|end|>\",\"special\":true,\"normalized\":false}],\"normalizer\":null,"
                          "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                          "\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\"},"
                          "\"model\":{\"type\":\"BPE\",\"vocab\":{",
                          256 + count);
    for (int b = 0; b < 256; b++) {
        n += (size_t)snprintf(text + n, room - n, "%s\"", b ? "," : "");
        n += (size_t)put_byte(text + n, room - n, b);
        n += (size_t)snprintf(text + n, room - n, "\":%d", b);
    }
    for (int i = 0; i < count; i++) {
        const char *blank = strchr(merges[i], ' ');
        n += (size_t)snprintf(text + n, room - n, ",\"%.*s%s\":%d", (int)(blank - merges[i]),
                              merges[i], blank + 1, 256 + i);
    }
    n += (size_t)snprintf(text + n, room - n, "},\"merges\":[");
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, room - n, "%s\"%s\"", i ? "," : "", merges[i]);
    snprintf(text + n, room - n, "]}}");
    done = tiny_text(folder, "tokenizer.json", text);
    free(text);
    return done;
}
