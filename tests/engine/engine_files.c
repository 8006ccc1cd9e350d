/* The files of a model: what is right is read; what lies, ends early or asks for what the engine
 * does not compute is refused by a sentence that names file, field, value and rule; and damaged
 * files never do more than that. */
#include "tiny.h"

#include "engine/config.h"
#include "engine/json.h"
#include "engine/pattern.h"
#include "engine/tokenizer.h"
#include "engine/unicode.h"
#include "engine/weights.h"
#include "lib/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tiny model;
static char folder[256];

/* ---- JSON ---- */

static void json_refused(const char *text, const char *rule)
{
    struct problem p = {""};
    struct json_document *d;
    if (!test_case("JSON %.40s", text)) return;
    d = json_read(text, strlen(text), "a.json", &p);
    CHECK(!d, "was accepted");
    CHECK_TEXT(p.text, rule);
    CHECK_TEXT(p.text, "a.json");
    json_free(d);
}

static void test_json_errors(void)
{
    char deep[200] = "";
    memset(deep, '[', 100);
    json_refused("", "ends where a value should stand");
    json_refused("{\"a\":1", "ends where ',' or '}' should stand");
    json_refused("[1,]", "byte 3 is 0x5d where a value should stand");
    json_refused("{\"a\" 1}", "where ':' should stand");
    json_refused("{\"a\":1,\"a\":2}", "has the name \"a\" twice");
    json_refused("[01]", "byte 2 is 0x31 where ',' or ']' should stand");
    json_refused("[1.]", "where a digit should stand");
    json_refused("[+1]", "where a value should stand");
    json_refused("nul", "where a value should stand");
    json_refused("[NaN]", "where a value should stand");
    json_refused("[1] x", "where the end should stand");
    json_refused("\"\\x\"", "where an escape should stand");
    json_refused("\"\\ud800\"", "the other half of a surrogate pair");
    json_refused("\"\\udc00\"", "a low surrogate without a high one");
    json_refused("\"\\ud800\\u0041\"", "whose second half is 0x41");
    json_refused("\"a\nb\"", "0x0a where a character of UTF-8");
    json_refused("\"\xC0\xAF\"", "0xc0 where a character of UTF-8");
    json_refused(deep, "nests deeper than 64");
}

static void test_json(void)
{
    static const char text[] =
        " {\"a\": [1, -2.5e1, true, null], \"\": {}, \"\\u00e9\\ud83d\\ude00\": \"x\\n\"}";
    struct problem p = {""};
    struct json_document *d;
    const struct json *a;
    int64_t whole;
    if (!test_case("JSON that is right")) return;
    d = json_read(text, sizeof text - 1, "text", &p);
    CHECK(d, "%s", p.text);
    a = json_get(json_root(d), "a");
    CHECK(a && a->length == 4 && a->in->next->number < -24.9 && a->in->next->next->truth, "array");
    CHECK(a && json_whole(a->in, &whole) && whole == 1, "whole");
    CHECK(a && !json_whole(a->in->next->next, &whole), "true is no number");
    CHECK(json_is(json_get(json_root(d), "\xC3\xA9\xF0\x9F\x98\x80"), "x\n"), "escapes");
    json_free(d);
}

/* ---- tensors ---- */

static void put_tensors(const char *header, size_t data)
{
    unsigned char file[1024] = {0};
    const size_t n = strlen(header);
    file[0] = (unsigned char)(n & 255);
    file[1] = (unsigned char)(n >> 8);
    for (size_t i = 0; i < n; i++) file[8 + i] = (unsigned char)header[i];
    for (size_t i = 0; i < data; i++) file[8 + n + i] = (unsigned char)(i * 37);
    tiny_file(folder, "model.safetensors", file, 8 + n + data);
}

static void tensors_refused(const char *what, const char *header, size_t data, const char *rule)
{
    struct problem p = {""};
    struct weights *w;
    if (!test_case("tensors: %s", what)) return;
    put_tensors(header, data);
    w = weights_open(folder, &p);
    CHECK(!w, "was accepted");
    CHECK_TEXT(p.text, rule);
    CHECK_TEXT(p.text, "model.safetensors");
    weights_close(w);
}

#define TENSOR(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define Q TENSOR("q", "F16", "[2,3]", "[0,12]")

static void test_tensor_errors(void)
{
    tensors_refused("no object", "[]", 0, "the header is an array, not an object");
    tensors_refused("no dtype", "{\"q\":{\"shape\":[1],\"data_offsets\":[0,2]}}", 2,
                    "'q': dtype is absent, not a string");
    tensors_refused("an unknown dtype", "{" TENSOR("q", "F12", "[1]", "[0,2]") "}", 2,
                    "dtype 'F12' is unknown");
    tensors_refused("no offsets", "{\"q\":{\"shape\":[1],\"dtype\":\"F16\"}}", 2,
                    "'q': data_offsets are no two whole numbers");
    tensors_refused("a fraction", "{" TENSOR("q", "F16", "[1.5]", "[0,3]") "}", 3,
                    "shape[0] is no whole number");
    tensors_refused("a shape beyond all memory",
                    "{" TENSOR("q", "F16", "[1099511627776,1099511627776]", "[0,2]") "}", 2,
                    "more than 2^62 bytes");
    tensors_refused("fewer bytes than the shape", "{" TENSOR("q", "F16", "[7]", "[0,12]") "}", 12,
                    "F16 of its shape is 14 bytes, data_offsets say 12");
    tensors_refused("beyond the data", "{" Q "}", 11, "0 to 12, the data has 11 bytes");
    tensors_refused("a gap", "{" Q "," TENSOR("k", "F32", "[1]", "[13,17]") "}", 17,
                    "'k' begins at byte 13 of the data, the one before it ends at 12");
    tensors_refused("an overlap", "{" Q "," TENSOR("k", "F32", "[1]", "[8,12]") "}", 12,
                    "'k' begins at byte 8");
    tensors_refused("data that no tensor owns", "{" Q "}", 13, "end at byte 12 of the data");
    tensors_refused("data without a tensor", "{}", 1, "end at byte 0 of the data, which has 1");
}

static void test_tensors(void)
{
    static const char *const dtypes[] = {"BF16", "F16", "F32"};
    struct problem p = {""};
    for (int i = 0; i < 6; i++) {
        struct tiny t = model;
        struct weights *w;
        const struct tensor *x;
        uint16_t bits[4];
        t.dtype = dtypes[i % 3];
        t.shards = i / 3 * 3;
        if (!test_case("tensors of %s in %d files", t.dtype, t.shards ? t.shards : 1)) continue;
        CHECK(tiny_write(folder, &t), "could not write");
        w = weights_open(folder, &p);
        CHECK(w, "%s", p.text);
        if (!w) continue;
        CHECK_INT(weights_count(w), 2 * 9 + 3);
        x = weights_want(w, "model.norm.weight", (const int64_t[TENSOR_RANK]){64}, &p);
        CHECK(x, "%s", p.text);
        if (x) weights_bf16(x, 60, 4, bits);
        for (size_t k = 0; x && k < 4; k++)
            CHECK_INT(bits[k], double_to_bf16(weights_value(x, 60 + k)));
        CHECK(!weights_want(w, "model.norm.weight", (const int64_t[TENSOR_RANK]){65}, &p), "shape");
        CHECK_TEXT(p.text, "'model.norm.weight': dimension 0 is 64, config.json asks for 65");
        CHECK(!weights_want(w, "nothing", (const int64_t[TENSOR_RANK]){1}, &p), "absent");
        CHECK_TEXT(p.text, "no tensor 'nothing'");
        weights_close(w);
        if (t.shards)
            tiny_text(folder, "model.safetensors.index.json",
                      "{\"weight_map\":{\"lm_head.weight\":\"model-0.safetensors\"}}");
        w = t.shards ? weights_open(folder, &p) : NULL;
        CHECK(!w, "an index that lies was accepted");
        if (t.shards) CHECK_TEXT(p.text, "'lm_head.weight' should be in model-0.safetensors");
        weights_close(w);
        tiny_remove(folder);
        tiny_folder(folder, sizeof folder);
    }
}

/* ---- e4m3 ---- */

/* Each number is its own, and halfway between two stands the even one. */
static void test_e4m3_numbers(void)
{
    if (!test_case("e4m3, all numbers")) return;
    for (int c = 0; c < 127; c++) {
        const float value = e4m3_value((uint8_t)c), next = e4m3_value((uint8_t)(c + 1));
        CHECK_INT(e4m3_of(value), c);
        CHECK_INT(e4m3_of(-value), c | 0x80);
        if (c == 126) break;
        CHECK_INT(e4m3_of((value + next) / 2), c + (c & 1));
        CHECK_INT(e4m3_of(value * 0.51f + next * 0.49f), c);
        CHECK_INT(e4m3_of(value * 0.49f + next * 0.51f), c + 1);
    }
    CHECK_INT(e4m3_of(1e9f), 0x7E);
    CHECK(isnan(e4m3_value(0x7F)) && e4m3_of(e4m3_value(0xFF)) == 0xFF, "NaN");
    CHECK(e4m3_value(0x38) == 1.0f && e4m3_value(0x7E) == 448.0f && e4m3_value(1) == 0x1p-9f,
          "1, the largest, the least");
}

/* A matrix of 130 x 129 and its scales, `rows` x `columns` of them. */
static void test_e4m3_scales(const char *end, int rows, int columns, int per_row, int per_column)
{
    enum { ROWS = 130, COLUMNS = 129, BYTES = ROWS * COLUMNS };
    static unsigned char file[BYTES + 1024];
    char header[512];
    float scale[ROWS];
    struct problem p = {""};
    const struct tensor *t;
    struct weights *w;
    const size_t scales = sizeof(float) * (size_t)(rows * columns);
    if (!test_case("e4m3 with %d x %d scales, %s", rows, columns, end)) return;
    const int n =
        snprintf(header, sizeof header,
                 "{\"w\":{\"dtype\":\"F8_E4M3\",\"shape\":[%d,%d],\"data_offsets\":[0,%d]},"
                 "\"w%s\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[%d,%zu]}}",
                 ROWS, COLUMNS, BYTES, end, rows, columns, BYTES, BYTES + scales);
    memset(file, 0, 8);
    file[0] = (unsigned char)(n & 255);
    file[1] = (unsigned char)(n >> 8);
    memcpy(file + 8, header, (size_t)n);
    for (int i = 0; i < BYTES; i++) file[8 + n + i] = (unsigned char)(i * 37 % 127);
    for (int i = 0; i < rows * columns; i++) scale[i] = 0.25f + (float)i;
    memcpy(file + 8 + n + BYTES, scale, scales);
    tiny_file(folder, "model.safetensors", file, 8 + (size_t)n + BYTES + scales);
    w = weights_open(folder, &p);
    CHECK(w, "%s", p.text);
    t = w ? weights_want(w, "w", (const int64_t[TENSOR_RANK]){ROWS, COLUMNS}, &p) : NULL;
    CHECK(t, "%s", p.text);
    for (int r = 0; t && r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c += 43) {
            const int i = r * COLUMNS + c, s = r / per_row * columns + c / per_column;
            const float want = e4m3_value((uint8_t)(i * 37 % 127)) * (0.25f + (float)s);
            uint16_t bits;
            CHECK(weights_value(t, (size_t)i) == (double)want, "[%d][%d]", r, c);
            weights_bf16(t, (size_t)i, 1, &bits);
            CHECK_INT(bits, bf16_of(want));
        }
    weights_close(w);
}

static void test_e4m3(void)
{
    test_e4m3_numbers();
    test_e4m3_scales("_scale_inv", 2, 2, 128, 128);
    test_e4m3_scales("_scale", 130, 1, 1, 129);
    test_e4m3_scales("_scale", 1, 1, 130, 129);
#define E TENSOR("w", "F8_E4M3", "[2,3]", "[0,6]")
    tensors_refused("e4m3 without a scale", "{" E "}", 6, "no tensor of that name with _scale_inv");
    tensors_refused("e4m3 with three scales",
                    "{" E "," TENSOR("w_scale", "F32", "[3]", "[6,18]") "}", 18,
                    "'w_scale' has 3 numbers; 'w' of 2 x 3 wants one, one a row");
    tensors_refused("e4m3 with a scale of F16",
                    "{" E "," TENSOR("w_scale_inv", "F16", "[1]", "[6,8]") "}", 8,
                    "'w_scale_inv' is F16; scales are F32 or BF16");
    tensors_refused("e4m3 with scales of five dimensions",
                    "{" E "," TENSOR("w_scale", "F32", "[1,1,1,1,1]", "[6,10]") "}", 10,
                    "'w_scale' has 5 dimensions; scales have at most two");
    tensors_refused("e4m3 of three dimensions",
                    "{" TENSOR("w", "F8_E4M3", "[1,2,3]", "[0,6]") "," TENSOR("w_scale_inv", "F32",
                                                                              "[1]", "[6,10]") "}",
                    10, "neither a matrix nor a vector");
#undef E
}

/* ---- config.json ---- */

enum { USUAL = 16 };
static const char *const llama[USUAL][2] = {
    {"model_type", "\"llama\""},  {"hidden_size", "128"},       {"num_hidden_layers", "2"},
    {"num_attention_heads", "2"}, {"num_key_value_heads", "1"}, {"intermediate_size", "96"},
    {"vocab_size", "260"},        {"rms_norm_eps", "1e-5"},
};
static const char *const deepseek[USUAL][2] = {
    {"model_type", "\"deepseek_v3\""},
    {"hidden_size", "128"},
    {"num_hidden_layers", "2"},
    {"num_attention_heads", "2"},
    {"intermediate_size", "96"},
    {"vocab_size", "260"},
    {"n_routed_experts", "8"},
    {"n_group", "2"},
    {"topk_group", "1"},
    {"num_experts_per_tok", "2"},
    {"kv_lora_rank", "512"},
    {"first_k_dense_replace", "1"},
    {"max_position_embeddings", "4096"},
    {"moe_intermediate_size", "64"},
};

/* A config.json with `field` in place of the usual one; rule NULL: it is accepted. */
static void config_tried(const char *const usual[USUAL][2], const char *field, const char *value,
                         const char *rule)
{
    char text[1024];
    size_t n = 0;
    struct problem p = {""};
    struct config c;
    if (!test_case("config.json: %s %s", field, value)) return;
    n += (size_t)snprintf(text, sizeof text, "{\"x\":0");
    for (size_t i = 0; i < USUAL && usual[i][0]; i++)
        if (strcmp(usual[i][0], field) != 0)
            n +=
                (size_t)snprintf(text + n, sizeof text - n, ",\"%s\":%s", usual[i][0], usual[i][1]);
    snprintf(text + n, sizeof text - n, ",\"%s\":%s}", field, value);
    tiny_text(folder, "config.json", text);
    if (!rule) {
        CHECK(config_read(folder, &c, &p) == 0, "%s", p.text);
        return;
    }
    CHECK(config_read(folder, &c, &p) == -1, "was accepted");
    CHECK_TEXT(p.text, rule);
    CHECK_TEXT(p.text, "config.json: ");
}

static void config_refused(const char *field, const char *value, const char *rule)
{
    config_tried(llama, field, value, rule);
}

/* What cosines and sines are multiplied by and, times the root of the head's dimension, scores; as
 * transformers computes them. */
static void test_yarn(void)
{
    static const char *const given[] = {"", ",\"mscale\":2,\"mscale_all_dim\":0.5", ",\"mscale\":2",
                                        ",\"mscale\":2,\"mscale_all_dim\":null",
                                        ",\"mscale\":1,\"mscale_all_dim\":0"};
    const double usual = 1 + 0.1 * log(4), wide = 1 + 0.2 * log(4), narrow = 1 + 0.05 * log(4);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        const double size = i == 1 ? wide / narrow : usual, score = i == 1 ? narrow * narrow : 1;
        char text[1024];
        struct problem p = {""};
        struct config c = {0};
        size_t n = 0;
        if (!test_case("yarn%s", given[i])) continue;
        for (size_t k = 0; k < USUAL && deepseek[k][0]; k++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%c\"%s\":%s", k ? ',' : '{',
                                  deepseek[k][0], deepseek[k][1]);
        snprintf(text + n, sizeof text - n,
                 ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,"
                 "\"original_max_position_embeddings\":1024%s}}",
                 given[i]);
        tiny_text(folder, "config.json", text);
        CHECK(config_read(folder, &c, &p) == 0, "%s", p.text);
        CHECK(fabs(c.rope_size - size) < 1e-12, "size %.17g, want %.17g", c.rope_size, size);
        CHECK(fabs(c.score_scale * sqrt((double)c.head_dim) - score) < 1e-12, "scores %.17g",
              c.score_scale);
    }
}

static void test_deepseek(void)
{
    static const char *const tried[][3] = {
        {"q_lora_rank", "null", NULL},
        {"rope_scaling",
         "{\"type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":1024}", NULL},
        {"kv_lora_rank", "256", "kv_lora_rank is 256; this engine has latent attention for 512"},
        {"qk_rope_head_dim", "32",
         "qk_rope_head_dim is 32; this engine has latent attention for 64"},
        {"qk_nope_head_dim", "100", "qk_nope_head_dim is 100, no multiple of 8"},
        {"num_key_value_heads", "1", "num_key_value_heads is 1, not num_attention_heads 2"},
        {"rope_interleave", "false", "rope_interleave is false"},
        {"attention_bias", "true", "attention_bias is true"},
        {"n_routed_experts", "9", "n_routed_experts is 9, no multiple of n_group 2"},
        {"n_routed_experts", "2048", "n_routed_experts is 2048, outside 1 to 1024"},
        {"topk_group", "3", "topk_group is 3, outside 1 to 2"},
        {"num_experts_per_tok", "5", "num_experts_per_tok is 5, outside 1 to 4"},
        {"moe_intermediate_size", "20", "moe_intermediate_size is 20, no multiple of 8"},
        {"moe_layer_freq", "2", "moe_layer_freq is 2; this engine computes 1"},
        {"scoring_func", "\"softmax\"",
         "scoring_func is softmax; this engine computes only sigmoid"},
        {"topk_method", "\"greedy\"", "topk_method is greedy; this engine computes only noaux_tc"},
        {"model_type", "\"deepseek_v2\"", NULL},
    };
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        config_tried(deepseek, tried[i][0], tried[i][1], tried[i][2]);
}

static void test_experts(void)
{
    static const char *const usual[USUAL][2] = {
        {"model_type", "\"qwen3_moe\""}, {"hidden_size", "128"},       {"num_hidden_layers", "2"},
        {"num_attention_heads", "2"},    {"num_key_value_heads", "1"}, {"intermediate_size", "256"},
        {"vocab_size", "100"},           {"num_experts", "8"},         {"num_experts_per_tok", "2"},
        {"moe_intermediate_size", "64"}};
    static const char *const tried[][3] = {
        {"norm_topk_prob", "true", NULL},
        {"mlp_only_layers", "[]", NULL},
        {"mlp_only_layers", "[1]", "mlp_only_layers names layers"},
        {"decoder_sparse_step", "2", "decoder_sparse_step is 2; this engine computes 1"},
        {"num_experts_per_tok", "9", "num_experts_per_tok is 9, outside 1 to 8"},
        {"num_local_experts", "6", NULL},
        {"num_experts", "2048", "num_experts is 2048, outside 1 to 1024"},
        {"moe_intermediate_size", "20", "moe_intermediate_size is 20, no multiple of 8"},
        {"use_sliding_window", "true", "use_sliding_window is true"},
        {"model_type", "\"mixtral\"", NULL},
        {"model_type", "\"qwen3\"", NULL},
        {"model_type", "\"qwen2_moe\"", "model_type is qwen2_moe; this engine computes llama"},
    };
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        config_tried(usual, tried[i][0], tried[i][1], tried[i][2]);
}

static void test_config(void)
{
    config_refused("torch_dtype", "\"bfloat16\"", NULL);
    config_refused("eos_token_id", "[1, 2]", NULL);
    config_refused("rope_parameters", "{\"rope_type\":\"default\",\"rope_theta\":5e5}", NULL);
    config_refused("model_type", "\"gpt2\"", "model_type is gpt2");
    config_refused("hidden_size", "null", "hidden_size is null");
    config_refused("hidden_size", "128.5", "hidden_size is a fraction, not a whole number");
    config_refused("hidden_size", "0", "hidden_size is 0, outside 1 to");
    config_refused("hidden_size", "132", "head_dim is 66; this engine has attention for 64");
    config_refused("intermediate_size", "100", "intermediate_size is 100, no multiple of 8");
    config_refused("num_key_value_heads", "3", "is 2, no multiple of num_key_value_heads 3");
    config_refused("rms_norm_eps", "-1", "rms_norm_eps is -1, not above 0");
    config_refused("hidden_act", "\"gelu\"", "hidden_act is gelu; this engine computes only silu");
    config_refused("mlp_bias", "true", "mlp_bias is true");
    config_refused("quantization_config", "{}", "quant_method is absent");
    config_refused("quantization_config", "{\"quant_method\":\"gptq\"}", "quant_method is gptq");
    config_refused("quantization_config",
                   "{\"quant_method\":\"fp8\",\"weight_block_size\":[64,128]}",
                   "weight_block_size is not [128, 128]");
    config_refused("quantization_config",
                   "{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}", NULL);
    config_refused("partial_rotary_factor", "0.5", "partial_rotary_factor is 0.5");
    config_refused("tie_word_embeddings", "1", "tie_word_embeddings is a number, not true");
    config_refused("eos_token_id", "260", "eos_token_id 260 is outside the vocabulary of 260");
    config_refused("eos_token_id", "\"x\"", "eos_token_id holds a string");
    config_refused("rope_scaling", "{\"type\":\"longrope\"}", "the rope type longrope is none of");
    config_refused("rope_scaling",
                   "{\"type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":64}",
                   "factor is 4, not max_position_embeddings 2048 over");
    config_refused("rope_scaling",
                   "{\"type\":\"yarn\",\"factor\":2,\"original_max_position_embeddings\":1024,"
                   "\"truncate\":false}",
                   "truncate is false");
    config_refused("rope_scaling", "{\"type\":\"linear\"}", "factor is absent");
    config_refused("rope_scaling",
                   "{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,"
                   "\"high_freq_factor\":1,\"original_max_position_embeddings\":8192}",
                   "high_freq_factor is 1, not above low_freq_factor 4");
}

/* ---- patterns and tokens ---- */

static void pattern_refused(const char *text, const char *rule)
{
    struct problem p = {""};
    struct pattern *x;
    if (!test_case("pattern %s", text)) return;
    x = pattern_compile(text, strlen(text), "file", &p);
    CHECK(!x, "was accepted");
    CHECK_TEXT(p.text, rule);
    pattern_free(x);
}

static void test_patterns(void)
{
    pattern_refused("(a", "')' should stand at byte 2");
    pattern_refused("a)", "')' without a group at byte 1");
    pattern_refused("[a", "']' should stand");
    pattern_refused("\\p{Greek}", "a property that is no general category");
    pattern_refused("(?<=a)b", "a group that is not modelled");
    pattern_refused("(ab)+", "a repeated group");
    pattern_refused("a+?", "a lazy, possessive or repeated repeat");
    pattern_refused("^a", "an operator that is not modelled");
    pattern_refused("\\bx", "an escape that is not modelled");
    pattern_refused("[b-a]", "a range that does not rise");
    pattern_refused("(?i:\xC3\xA9)", "a character beyond ASCII");
}

static void encodes(const struct tokenizer *t, const char *text, const char *want)
{
    struct tokens ids = {.id = NULL};
    struct problem p = {""};
    char got[512] = "", back[512] = "";
    size_t n = 0, bytes = 0;
    CHECK(tokenizer_encode(t, text, strlen(text), true, &ids, &p) == 0, "%s", p.text);
    for (size_t i = 0; i < ids.count; i++) {
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%d", i ? " " : "", ids.id[i]);
        bytes += tokenizer_decode(t, ids.id[i], i == 0, back + bytes, sizeof back - bytes);
    }
    CHECK(!strcmp(got, want), "'%s': want %s got %s", text, want, got);
    CHECK(strstr(text, "<|") || (bytes == strlen(text) && !memcmp(back, text, bytes)),
          "'%s' comes back as '%.*s'", text, (int)bytes, back);
    free(ids.id);
}

static void test_tokens(void)
{
    /* U+0120 is a blank. */
    static const char *const merges[] = {"l o",        "h e", "l l",    "he ll",
                                         "\xC4\xA0 w", "o r", "hell o", "lo w"};
    struct problem p = {""};
    struct tokenizer *t;
    if (!test_case("tokens of a small vocabulary")) return;
    CHECK(tiny_tokenizer(folder, merges, 8), "could not write");
    t = tokenizer_open(folder, &p);
    CHECK(t, "%s", p.text);
    if (!t) return;
    CHECK_INT(tokenizer_size(t), 265);
    encodes(t, "", "");
    /* "l o" ranks before "l l", so no "hell" is left to join. */
    encodes(t, "hello", "257 108 256");
    encodes(t, "hell low", "259 32 263");
    encodes(t, "hello world", "257 108 256 260 261 108 100");
    encodes(t, "a  w", "97 32 260");
    encodes(t, "12\xC3\xA9", "49 50 195 169");
    encodes(t, "w<|end|>w", "119 264 119");
    CHECK(tokenizer_encode(t, "a\xFF", 2, true, &(struct tokens){.id = NULL}, &p) == -1, "UTF-8");
    CHECK_TEXT(p.text, "byte 1 is 0xff, which is no UTF-8");
    tokenizer_close(t);
}

static void tokenizer_refused(const char *text, const char *rule)
{
    struct problem p = {""};
    struct tokenizer *t;
    if (!test_case("tokenizer.json: %.60s", rule)) return;
    tiny_text(folder, "tokenizer.json", text);
    t = tokenizer_open(folder, &p);
    CHECK(!t, "was accepted");
    CHECK_TEXT(p.text, rule);
    CHECK_TEXT(p.text, "tokenizer.json");
    tokenizer_close(t);
}

#define BPE(more) \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[]}" more "}"

static void test_tokenizer_errors(void)
{
    tokenizer_refused("{}", "model.vocab is absent");
    tokenizer_refused("{\"model\":{\"type\":\"Unigram\"}}", "model of type Unigram");
    tokenizer_refused("{\"model\":{\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}",
                      "'b' has the id of 'a'");
    tokenizer_refused("{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}}", "the id of 'a'");
    tokenizer_refused("{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}",
                      "model.merges[0]: 'a' and 'a', and both joined");
    tokenizer_refused("{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"aa\"]}}",
                      "model.merges[0] is no pair");
    tokenizer_refused("{\"model\":{\"vocab\":{},\"merges\":[],\"unk_token\":\"u\"}}",
                      "model.unk_token is not in model.vocab");
    tokenizer_refused(BPE(",\"normalizer\":{\"type\":\"Lowercase\"}"),
                      "normalizer of type Lowercase is not modelled");
    tokenizer_refused(BPE(",\"pre_tokenizer\":{\"type\":\"Whitespace\"}"),
                      "pre_tokenizer of type Whitespace is not modelled");
    tokenizer_refused(BPE(",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\"}"),
                      "replacement is ''");
    tokenizer_refused(BPE(",\"post_processor\":{\"type\":\"BertProcessing\"}"),
                      "post_processor of type BertProcessing");
    tokenizer_refused(BPE(",\"decoder\":{\"type\":\"WordPiece\"}"), "decoder of type WordPiece");
    tokenizer_refused(BPE(",\"added_tokens\":[{\"id\":0,\"content\":\"x\"}]"),
                      "'x' has the id of 'a'");
    tokenizer_refused(BPE(",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\","
                          "\"pattern\":{\"Regex\":\"(?<a>b)\"}}"),
                      "a group that is not modelled");
}

static void test_nfc(void)
{
    static const char *const pairs[][2] = {
        {"e\xCC\x81", "\xC3\xA9"},                                /* a letter and its accent */
        {"\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "\xEA\xB0\x81"}, /* three jamo */
        {"q\xCC\x87\xCC\xA3", "q\xCC\xA3\xCC\x87"}, /* marks in the order of classes */
        {"\xE2\x84\xAB", "\xC3\x85"},               /* a single character for another */
        {"a\xCC\xA3\xCC\x82", "\xE1\xBA\xAD"},      /* two marks */
    };
    if (!test_case("NFC")) return;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        size_t length;
        char *made = unicode_nfc(pairs[i][0], strlen(pairs[i][0]), &length);
        CHECK(made && length == strlen(pairs[i][1]) && !memcmp(made, pairs[i][1], length),
              "pair %zu", i);
        free(made);
    }
}

/* ---- damage ---- */

static void *slurp(const char *name, size_t *size)
{
    char path[512];
    char *data = malloc(1 << 20);
    FILE *f;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "rb");
    *size = f && data ? fread(data, 1, 1 << 20, f) : 0;
    if (f) fclose(f);
    return data;
}

/* Reads the folder as the engine would; what it says does not matter. */
static void read_all(void)
{
    struct problem p;
    struct config c;
    struct tokenizer *t;
    struct tokens ids = {.id = NULL};
    struct weights *w = weights_open(folder, &p);
    const struct tensor *x = w ? weights_find(w, "model.norm.weight") : NULL;
    if (x && x->dtype >= 0 && x->rank == 1 && x->dim[0] > 0)
        CHECK(weights_value(x, (size_t)x->dim[0] - 1) < 1e39, "read");
    weights_close(w);
    CHECK(config_read(folder, &c, &p) <= 0, "status");
    t = tokenizer_open(folder, &p);
    if (t) tokenizer_encode(t, "hello world 12 <|end|>", 22, true, &ids, &p);
    for (size_t i = 0; t && i < ids.count; i++) {
        char out[16];
        tokenizer_decode(t, ids.id[i], false, out, sizeof out);
    }
    free(ids.id);
    tokenizer_close(t);
}

static void test_damage(const char *name, size_t within, int rounds)
{
    static const char *const merges[] = {"l o", "h e"};
    size_t size;
    char *good, *bad;
    struct rng r = {test_seed()};
    if (!test_case("%d damaged copies of %s", rounds, name)) return;
    CHECK(tiny_write(folder, &model) && tiny_tokenizer(folder, merges, 2), "could not write");
    good = slurp(name, &size);
    bad = malloc(size + 1);
    for (int i = 0; bad && good && size && i < rounds; i++) {
        const size_t most = size < within ? size : within;
        memcpy(bad, good, size);
        for (uint32_t k = 1 + rng_below(&r, 3); k > 0; k--) {
            static const char marks[] = "{}[]\",:0123456789-e\\ ";
            const size_t at = rng_below(&r, (uint32_t)most);
            bad[at] = rng_below(&r, 2) ? marks[rng_below(&r, sizeof marks - 1)]
                                       : (char)rng_below(&r, 256);
        }
        tiny_file(folder, name, bad, rng_below(&r, 8) ? size : rng_below(&r, (uint32_t)size));
        read_all();
    }
    free(good);
    free(bad);
}

int main(int argc, char **argv)
{
    test_begin("engine_files", argc, argv);
    model = tiny_llama(1);
    model.layers = 2;
    if (!tiny_folder(folder, sizeof folder)) return 1;
    test_json_errors();
    test_json();
    test_tensor_errors();
    test_tensors();
    test_e4m3();
    test_config();
    test_yarn();
    test_deepseek();
    test_experts();
    test_patterns();
    test_tokens();
    test_tokenizer_errors();
    test_nfc();
    test_damage("model.safetensors", 2048, 400);
    test_damage("config.json", 1024, 400);
    test_damage("tokenizer.json", 8192, 400);
    tiny_remove(folder);
    return test_end();
}
