/* DeepSeek's fields of config.json, as transformers reads them. */
#include "config_parts.h"

#include <math.h>

/* What the library's latent attention has: hewn_mla_desc. */
enum { MLA_RANK = 512, MLA_ROPE = 64, MLA_HEADS = 128 };

int take_count(const struct field_reader *r, const char *name, int64_t absent, int64_t *out)
{
    const struct json *value = json_get(r->root, name);
    *out = absent;
    if (!value) return 0;
    *out = 0;
    if (value->type == JSON_NULL || (json_whole(value, out) && *out == 0)) return 0;
    return take_size(r, name, 0, out);
}

/* A size that this engine has in one form alone. */
static int want_size(const struct field_reader *r, const char *name, int64_t value, int64_t only)
{
    if (value == only) return 0;
    return problem(r->p, "%s: %s is %lld; this engine has latent attention for %lld", r->path, name,
                   (long long)value, (long long)only);
}

int want_eighths(const struct field_reader *r, const char *name, int64_t value)
{
    if (value % 8 == 0) return 0;
    return problem(r->p, "%s: %s is %lld, no multiple of 8", r->path, name, (long long)value);
}

int want_range(const struct field_reader *r, const char *name, int64_t value, int64_t least,
               int64_t most)
{
    if (value >= least && value <= most) return 0;
    return problem(r->p, "%s: %s is %lld, outside %lld to %lld", r->path, name, (long long)value,
                   (long long)least, (long long)most);
}

static int take_latent(const struct field_reader *r, struct config *out)
{
    int64_t nope;
    bool interleaved;
    if (take_size(r, "kv_lora_rank", MLA_RANK, &out->kv_rank) ||
        take_count(r, "q_lora_rank", 1536, &out->q_rank) ||
        take_size(r, "qk_nope_head_dim", 128, &nope) ||
        take_size(r, "qk_rope_head_dim", MLA_ROPE, &out->rope_dim) ||
        take_size(r, "v_head_dim", 128, &out->v_dim) ||
        take_bool(r, "rope_interleave", true, &interleaved))
        return -1;
    if (!interleaved)
        return problem(r->p, "%s: rope_interleave is false; this engine rotates neighbours",
                       r->path);
    if (out->qkv_bias)
        return problem(r->p,
                       "%s: attention_bias is true; this engine has latent attention "
                       "without",
                       r->path);
    if (out->kv_heads != out->heads)
        return problem(r->p, "%s: num_key_value_heads is %lld, not num_attention_heads %lld",
                       r->path, (long long)out->kv_heads, (long long)out->heads);
    out->head_dim = nope + out->rope_dim;
    return want_size(r, "kv_lora_rank", out->kv_rank, MLA_RANK) ||
                   want_size(r, "qk_rope_head_dim", out->rope_dim, MLA_ROPE) ||
                   want_range(r, "num_attention_heads", out->heads, 1, MLA_HEADS) ||
                   want_eighths(r, "qk_nope_head_dim", nope) ||
                   want_eighths(r, "v_head_dim", out->v_dim) ||
                   want_eighths(r, "q_lora_rank", out->q_rank)
               ? -1
               : 0;
}

/* How V2's and V3's routers differ. */
static int take_router(const struct field_reader *r, bool v3, struct config *out)
{
    const struct json *method = json_get(r->root, "topk_method");
    const bool greedy = !v3 && (!method || json_is(method, "greedy"));
    if (want_text(r, "scoring_func", v3 ? "sigmoid" : "softmax") ||
        take_bool(r, "norm_topk_prob", v3, &out->router_normed) ||
        take_positive(r, r->root, "routed_scaling_factor", v3 ? 2.5 : 1, &out->router_scale))
        return -1;
    if (!greedy && want_text(r, "topk_method", v3 ? "noaux_tc" : "group_limited_greedy")) return -1;
    if (!v3 && out->router_normed)
        return problem(r->p, "%s: norm_topk_prob is true; this engine has it for deepseek_v3 alone",
                       r->path);
    out->router_sigmoid = out->router_bias = v3;
    if (!greedy) return 0;
    out->expert_groups = out->groups_kept = 1;
    return 0;
}

static int take_layers_experts(const struct field_reader *r, bool v3, struct config *out)
{
    int64_t shared, every, in_group;
    if (take_count(r, "n_routed_experts", v3 ? 256 : 64, &out->experts) ||
        take_count(r, "first_k_dense_replace", v3 ? 3 : 0, &out->dense_layers) ||
        take_count(r, "moe_layer_freq", 1, &every))
        return -1;
    if (every != 1)
        return problem(r->p, "%s: moe_layer_freq is %lld; this engine computes 1", r->path,
                       (long long)every);
    if (out->dense_layers > out->layers || !out->experts) out->dense_layers = out->layers;
    if (out->dense_layers == out->layers) {
        out->experts = 0;
        return 0;
    }
    if (take_size(r, "num_experts_per_tok", v3 ? 8 : 0, &out->expert_choices) ||
        take_size(r, "moe_intermediate_size", v3 ? 2048 : 1407, &out->expert_width) ||
        take_count(r, "n_shared_experts", v3 ? 1 : 0, &shared) ||
        take_size(r, "n_group", v3 ? 8 : 1, &out->expert_groups) ||
        take_size(r, "topk_group", v3 ? 4 : 1, &out->groups_kept) || take_router(r, v3, out) ||
        want_range(r, "n_routed_experts", out->experts, 1, EXPERTS_MAX) ||
        want_range(r, "n_group", out->expert_groups, 1, EXPERT_GROUPS_MAX) ||
        want_range(r, "topk_group", out->groups_kept, 1, out->expert_groups) ||
        want_eighths(r, "moe_intermediate_size", out->expert_width))
        return -1;
    out->shared_width = shared * out->expert_width;
    in_group = out->experts / out->expert_groups;
    if (out->experts % out->expert_groups || (v3 && in_group < 2))
        return problem(r->p, "%s: n_routed_experts is %lld, no multiple of n_group %lld%s", r->path,
                       (long long)out->experts, (long long)out->expert_groups,
                       v3 ? ", two or more for each" : "");
    return want_range(r, "num_experts_per_tok", out->expert_choices, 1,
                      in_group * out->groups_kept < EXPERT_CHOICES_MAX ? in_group * out->groups_kept
                                                                       : EXPERT_CHOICES_MAX);
}

int take_deepseek(const struct field_reader *r, struct config *out)
{
    const struct json *type = json_get(r->root, "model_type");
    const bool v3 = json_is(type, "deepseek_v3");
    if (!v3 && !json_is(type, "deepseek_v2")) return 0;
    return take_latent(r, out) || take_layers_experts(r, v3, out) ? -1 : 0;
}

int take_deepseek_scale(const struct field_reader *r, struct config *out)
{
    const struct json *rope = json_get(r->root, "rope_parameters");
    double all, size = 1;
    if (!out->kv_rank) return 0;
    if (!rope || rope->type == JSON_NULL) rope = json_get(r->root, "rope_scaling");
    if (take_mscale(r, rope, "mscale_all_dim", &all)) return -1;
    if (out->rope == ROPE_YARN && all > 0) size = config_yarn_scale(out, all);
    out->score_scale = size * size / sqrt((double)out->head_dim);
    return 0;
}
