#include "config_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };

/* Sizes beyond these are mistakes; they keep products of sizes far from overflow. */
static const int64_t size_most = INT64_C(1) << 24;
/* What transformers takes where a Mistral's config.json does not name sliding_window. */
static const int64_t mistral_window = 4096;
static const double turn = 6.283185307179586;

int take_size(const struct field_reader *r, const char *name, int64_t absent, int64_t *out)
{
    const struct json *value = json_get(r->root, name);
    if (!value || value->type == JSON_NULL) {
        *out = absent;
        return absent ? 0 : problem(r->p, "%s: %s is %s", r->path, name, json_type_name(value));
    }
    if (!json_whole(value, out))
        return problem(r->p, "%s: %s is %s, not a whole number", r->path, name,
                       value->type == JSON_NUMBER ? "a fraction" : json_type_name(value));
    if (*out < 1 || *out > size_most)
        return problem(r->p, "%s: %s is %lld, outside 1 to %lld", r->path, name, (long long)*out,
                       (long long)size_most);
    return 0;
}

int take_positive(const struct field_reader *r, const struct json *in, const char *name,
                  double absent, double *out)
{
    const struct json *value = json_get(in, name);
    if (!value || value->type == JSON_NULL) {
        *out = absent;
        return absent > 0 ? 0 : problem(r->p, "%s: %s is %s", r->path, name, json_type_name(value));
    }
    if (value->type != JSON_NUMBER)
        return problem(r->p, "%s: %s is %s, not a number", r->path, name, json_type_name(value));
    if (!(value->number > 0) || !isfinite(value->number))
        return problem(r->p, "%s: %s is %g, not above 0 and finite", r->path, name, value->number);
    *out = value->number;
    return 0;
}

int take_bool(const struct field_reader *r, const char *name, bool absent, bool *out)
{
    const struct json *value = json_get(r->root, name);
    *out = absent;
    if (!value || value->type == JSON_NULL) return 0;
    if (value->type != JSON_BOOL)
        return problem(r->p, "%s: %s is %s, not true or false", r->path, name,
                       json_type_name(value));
    *out = value->truth;
    return 0;
}

int want_text(const struct field_reader *r, const char *name, const char *only)
{
    const struct json *value = json_get(r->root, name);
    if (!value || value->type == JSON_NULL || json_is(value, only)) return 0;
    return problem(r->p, "%s: %s is %s%.60s; this engine computes only %s", r->path, name,
                   value->type == JSON_STRING ? "" : json_type_name(value),
                   value->type == JSON_STRING ? value->text : "", only);
}

static int take_eos(const struct field_reader *r, const struct json *value, struct config *out)
{
    const struct json *e = value;
    if (!value || value->type == JSON_NULL) return 0;
    out->eos_count = 0;
    if (value->type == JSON_ARRAY) e = value->in;
    for (; e; e = value->type == JSON_ARRAY ? e->next : NULL) {
        if (out->eos_count == EOS_MAX)
            return problem(r->p, "%s: eos_token_id has more than %d numbers", r->path, EOS_MAX);
        if (!json_whole(e, &out->eos[out->eos_count]))
            return problem(r->p, "%s: eos_token_id holds %s, not a token's number", r->path,
                           json_type_name(e));
        if (out->eos[out->eos_count] < 0 || out->eos[out->eos_count] >= out->vocab)
            return problem(r->p, "%s: eos_token_id %lld is outside the vocabulary of %lld", r->path,
                           (long long)out->eos[out->eos_count], (long long)out->vocab);
        out->eos_count++;
    }
    return 0;
}

int take_mscale(const struct field_reader *r, const struct json *in, const char *name, double *out)
{
    const struct json *value = json_get(in, name);
    *out = 0;
    if (!value || value->type == JSON_NULL ||
        (value->type == JSON_NUMBER && !(value->number > 0) && !(value->number < 0)))
        return 0;
    return take_positive(r, in, name, 0, out);
}

/* YaRN: few turns are stretched, many stay, and cosines and sines grow with the factor. */
static int take_yarn(const struct field_reader *r, const struct json *rope, struct config *out)
{
    const struct json *truncate = json_get(rope, "truncate");
    double size, all;
    out->rope = ROPE_YARN;
    if (truncate && truncate->type == JSON_BOOL && !truncate->truth)
        return problem(r->p,
                       "%s: truncate is false; this engine rounds the bounds of yarn to whole "
                       "pairs",
                       r->path);
    if (take_positive(r, rope, "factor", 0, &out->rope_factor) ||
        take_positive(r, rope, "original_max_position_embeddings", 0, &out->rope_original) ||
        take_positive(r, rope, "beta_slow", 1, &out->rope_low) ||
        take_positive(r, rope, "beta_fast", 32, &out->rope_high) ||
        take_mscale(r, rope, "mscale", &size) || take_mscale(r, rope, "mscale_all_dim", &all))
        return -1;
    if (out->rope_high <= out->rope_low)
        return problem(r->p, "%s: beta_fast is %g, not above beta_slow %g", r->path, out->rope_high,
                       out->rope_low);
    /* Where they differ, versions of transformers take one or the other. */
    if (fabs((double)out->positions / out->rope_original - out->rope_factor) >
        1e-6 * out->rope_factor)
        return problem(r->p,
                       "%s: factor is %g, not max_position_embeddings %lld over "
                       "original_max_position_embeddings %g",
                       r->path, out->rope_factor, (long long)out->positions, out->rope_original);
    /* Without both of them transformers takes neither. */
    out->rope_size = size > 0 && all > 0
                         ? config_yarn_scale(out, size) / config_yarn_scale(out, all)
                         : config_yarn_scale(out, 1);
    return take_positive(r, rope, "attention_factor", out->rope_size, &out->rope_size);
}

/* rope_scaling, or rope_parameters as newer files call it, with rope_theta in it. */
static int take_rope(const struct field_reader *r, struct config *out)
{
    const struct json *rope = json_get(r->root, "rope_parameters"), *type;
    const struct json *theta_in = r->root;
    /* What transformers takes where there is none. */
    const double theta = json_is(json_get(r->root, "model_type"), "mixtral") ? 1e6 : 1e4;
    if (!rope || rope->type == JSON_NULL) rope = json_get(r->root, "rope_scaling");
    if (json_get(rope, "rope_theta")) theta_in = rope;
    if (take_positive(r, theta_in, "rope_theta", theta, &out->rope_theta)) return -1;
    if (!rope || rope->type == JSON_NULL) return 0;
    if (rope->type != JSON_OBJECT)
        return problem(r->p, "%s: rope_scaling is %s, not an object", r->path,
                       json_type_name(rope));
    type = json_get(rope, "rope_type");
    if (!type) type = json_get(rope, "type");
    if (!type || json_is(type, "default")) return 0;
    if (json_is(type, "linear")) {
        out->rope = ROPE_LINEAR;
        return take_positive(r, rope, "factor", 0, &out->rope_factor);
    }
    if (json_is(type, "yarn")) return take_yarn(r, rope, out);
    if (!json_is(type, "llama3"))
        return problem(r->p,
                       "%s: the rope type %.40s is none of default, linear, llama3, yarn, which "
                       "this engine computes",
                       r->path, type->type == JSON_STRING ? type->text : json_type_name(type));
    out->rope = ROPE_LLAMA3;
    if (take_positive(r, rope, "factor", 0, &out->rope_factor) ||
        take_positive(r, rope, "low_freq_factor", 0, &out->rope_low) ||
        take_positive(r, rope, "high_freq_factor", 0, &out->rope_high) ||
        take_positive(r, rope, "original_max_position_embeddings", 0, &out->rope_original))
        return -1;
    if (out->rope_high <= out->rope_low)
        return problem(r->p, "%s: high_freq_factor is %g, not above low_freq_factor %g", r->path,
                       out->rope_high, out->rope_low);
    return 0;
}

/* Weights of e4m3 with scales: weights.c finds these beside the weights, so that all that is read here is whether
 * they are such ones. */
static int check_quantized(const struct field_reader *r)
{
    const struct json *given = json_get(r->root, "quantization_config"), *method, *block;
    int64_t rows, columns;
    if (!given || given->type == JSON_NULL) return 0;
    method = json_get(given, "quant_method");
    block = json_get(given, "weight_block_size");
    if (!json_is(method, "fp8") && !json_is(method, "fbgemm_fp8"))
        return problem(
            r->p,
            "%s: quantization_config: quant_method is %.60s; this engine reads fp8 and "
            "fbgemm_fp8",
            r->path, method && method->type == JSON_STRING ? method->text : json_type_name(method));
    if (!block || block->type == JSON_NULL) return 0;
    if (block->type == JSON_ARRAY && block->length == 2 && json_whole(block->in, &rows) &&
        json_whole(block->in->next, &columns) && rows == 128 && columns == 128)
        return 0;
    return problem(r->p, "%s: quantization_config: weight_block_size is not [128, 128]", r->path);
}

static int take_family(const struct field_reader *r, struct config *out)
{
    const struct json *type = json_get(r->root, "model_type");
    const struct json *rotary = json_get(r->root, "partial_rotary_factor"), *window;
    const bool qwen3 = json_is(type, "qwen3") || json_is(type, "qwen3_moe");
    const bool qwen2 = json_is(type, "qwen2"), qwen = qwen2 || qwen3;
    const bool mistral = json_is(type, "mistral"), mixtral = json_is(type, "mixtral");
    bool bias, mlp_bias, sliding;
    const bool deepseek = json_is(type, "deepseek_v2") || json_is(type, "deepseek_v3");
    if (!json_is(type, "llama") && !mistral && !mixtral && !qwen && !deepseek)
        return problem(r->p,
                       "%s: model_type is %.60s; this engine computes llama, mistral, mixtral, "
                       "qwen2, qwen3, qwen3_moe, deepseek_v2, deepseek_v3",
                       r->path,
                       type && type->type == JSON_STRING ? type->text : json_type_name(type));
    if (check_quantized(r)) return -1;
    if (rotary && rotary->type == JSON_NUMBER && fabs(rotary->number - 1) > 0)
        return problem(r->p, "%s: partial_rotary_factor is %g; this engine rotates whole heads",
                       r->path, rotary->number);
    if (want_text(r, "hidden_act", "silu") || take_bool(r, "attention_bias", false, &bias) ||
        take_bool(r, "mlp_bias", false, &mlp_bias) ||
        take_bool(r, "use_sliding_window", !qwen, &sliding))
        return -1;
    if (mlp_bias)
        return problem(r->p, "%s: mlp_bias is true; this engine has no bias there", r->path);
    if (take_bool(r, "tie_word_embeddings", false, &out->tied)) return -1;
    out->qkv_bias = (bias && !mixtral) || qwen2;
    out->o_bias = bias && !qwen2 && !mixtral;
    out->head_norms = qwen3;
    if (!sliding || deepseek || json_is(type, "llama")) return 0;
    if (qwen)
        return problem(r->p,
                       "%s: use_sliding_window is true; this engine has one mask for all "
                       "layers",
                       r->path);
    window = json_get(r->root, "sliding_window");
    if (window ? window->type == JSON_NULL : mixtral) return 0;
    return take_size(r, "sliding_window", mistral_window, &out->window);
}

static int check_shapes(const struct field_reader *r, const struct config *c)
{
    if (c->heads % c->kv_heads)
        return problem(r->p,
                       "%s: num_attention_heads is %lld, no multiple of num_key_value_heads %lld",
                       r->path, (long long)c->heads, (long long)c->kv_heads);
    if (!c->kv_rank && c->head_dim != 64 && c->head_dim != 96 && c->head_dim != 128 &&
        c->head_dim != 256)
        return problem(r->p, "%s: head_dim is %lld; this engine has attention for 64, 96, 128, 256",
                       r->path, (long long)c->head_dim);
    if (c->hidden % 8 || c->intermediate % 8)
        return problem(r->p, "%s: %s is %lld, no multiple of 8", r->path,
                       c->hidden % 8 ? "hidden_size" : "intermediate_size",
                       (long long)(c->hidden % 8 ? c->hidden : c->intermediate));
    return 0;
}

void config_plain(struct config *c)
{
    c->rope_dim = c->v_dim = c->head_dim;
    c->dense_layers = c->layers;
    c->rope_size = 1;
}

static int take_sizes(const struct field_reader *r, struct config *out)
{
    const struct json *type = json_get(r->root, "model_type");
    int64_t even;
    if (take_size(r, "hidden_size", 0, &out->hidden) ||
        take_size(r, "num_hidden_layers", 0, &out->layers) ||
        take_size(r, "num_attention_heads", 0, &out->heads) ||
        take_size(r, "num_key_value_heads", out->heads, &out->kv_heads) ||
        take_size(r, "intermediate_size", 0, &out->intermediate) ||
        take_size(r, "vocab_size", 0, &out->vocab) ||
        take_size(r, "max_position_embeddings", 2048, &out->positions) ||
        take_positive(r, r->root, "rms_norm_eps", json_is(type, "mixtral") ? 1e-5 : 1e-6,
                      &out->norm_eps))
        return -1;
    even = json_is(type, "qwen3") ? 128 : out->hidden / out->heads;
    if (take_size(r, "head_dim", even ? even : 1, &out->head_dim)) return -1;
    config_plain(out);
    return 0;
}

/* generation_config.json may name more ends of a text than config.json. */
static int take_generation(const char *folder, struct config *out, struct problem *p)
{
    char path[PATH_ROOM];
    struct json_document *d;
    int failed;
    snprintf(path, sizeof path, "%s/generation_config.json", folder);
    if (access(path, F_OK)) return 0;
    d = json_read_file(path, p);
    if (!d) return -1;
    failed = take_eos(&(struct field_reader){path, json_root(d), p},
                      json_get(json_root(d), "eos_token_id"), out);
    json_free(d);
    return failed;
}

int config_read(const char *folder, struct config *out, struct problem *p)
{
    char path[PATH_ROOM];
    struct json_document *d;
    struct field_reader r = {.path = path, .p = p};
    int failed;
    *out = (struct config){0};
    snprintf(path, sizeof path, "%s/config.json", folder);
    d = json_read_file(path, p);
    if (!d) return -1;
    r.root = json_root(d);
    if (r.root->type != JSON_OBJECT)
        failed = problem(p, "%s is %s, not an object", path, json_type_name(r.root));
    else
        failed = take_family(&r, out) || take_sizes(&r, out) || take_experts(&r, out) ||
                 take_deepseek(&r, out) || take_rope(&r, out) || take_deepseek_scale(&r, out) ||
                 take_eos(&r, json_get(r.root, "eos_token_id"), out) ||
                 take_generation(folder, out, p) || check_shapes(&r, out);
    json_free(d);
    return failed ? -1 : 0;
}

double config_yarn_scale(const struct config *c, double mscale)
{
    return c->rope_factor <= 1 ? 1 : 0.1 * mscale * log(c->rope_factor) + 1;
}

/* The number of the pair that turns so often within the original context, not a whole one. */
static double yarn_pair(const struct config *c, double turns)
{
    return (double)c->rope_dim * log(c->rope_original / (turns * turn)) / (2 * log(c->rope_theta));
}

/* How much of pair i's angle stays as it is, 0 to 1. */
static double yarn_keep(const struct config *c, int64_t i)
{
    const double from = fmax(floor(yarn_pair(c, c->rope_high)), 0);
    double to = fmin(ceil(yarn_pair(c, c->rope_low)), (double)c->rope_dim - 1);
    if (to - from <= 0 && to - from >= 0) to += 0.001;
    return 1 - fmin(fmax(((double)i - from) / (to - from), 0), 1);
}

void config_frequencies(const struct config *c, double *out)
{
    for (int64_t i = 0; i < c->rope_dim / 2; i++) {
        double f = pow(c->rope_theta, -2.0 * (double)i / (double)c->rope_dim), keep = 1;
        if (c->rope == ROPE_LINEAR) keep = 0;
        if (c->rope == ROPE_YARN) keep = yarn_keep(c, i);
        if (c->rope == ROPE_LLAMA3) {
            /* Turns that the original context makes: few of them are stretched, many stay. */
            const double turns = c->rope_original * f / turn;
            keep = (turns - c->rope_low) / (c->rope_high - c->rope_low);
            keep = keep < 0 ? 0 : keep > 1 ? 1 : keep;
        }
        if (c->rope != ROPE_DEFAULT) f = (1 - keep) * f / c->rope_factor + keep * f;
        out[i] = f;
    }
}
