/* config.json of Mixtral and Qwen3-MoE: experts in every layer, chosen by softmax. */
#include "config_parts.h"

/* Some layers of Qwen3-MoE may be dense ones; here none is. */
static int want_all_sparse(const struct field_reader *r)
{
    const struct json *dense = json_get(r->root, "mlp_only_layers");
    int64_t every;
    if (dense && dense->type != JSON_NULL && (dense->type != JSON_ARRAY || dense->length))
        return problem(r->p, "%s: mlp_only_layers names layers; this engine has experts in all",
                       r->path);
    if (take_count(r, "decoder_sparse_step", 1, &every)) return -1;
    if (every == 1) return 0;
    return problem(r->p, "%s: decoder_sparse_step is %lld; this engine computes 1", r->path,
                   (long long)every);
}

int take_experts(const struct field_reader *r, struct config *out)
{
    const struct json *type = json_get(r->root, "model_type");
    const bool mixtral = json_is(type, "mixtral");
    /* Some versions of transformers write one of the names for both types. */
    const char *const experts =
        json_get(r->root, "num_experts") ? "num_experts" : "num_local_experts";
    const char *const width = mixtral ? "intermediate_size" : "moe_intermediate_size";
    if (!mixtral && !json_is(type, "qwen3_moe")) return 0;
    if (take_size(r, experts, mixtral ? 8 : 128, &out->experts) ||
        take_size(r, "num_experts_per_tok", mixtral ? 2 : 8, &out->expert_choices) ||
        take_size(r, width, mixtral ? 0 : 768, &out->expert_width) ||
        take_bool(r, "norm_topk_prob", mixtral, &out->router_normed) ||
        want_range(r, experts, out->experts, 1, EXPERTS_MAX) ||
        want_range(r, "num_experts_per_tok", out->expert_choices, 1,
                   out->experts < EXPERT_CHOICES_MAX ? out->experts : EXPERT_CHOICES_MAX) ||
        want_eighths(r, width, out->expert_width) || (!mixtral && want_all_sparse(r)))
        return -1;
    out->mixtral = mixtral;
    out->router_normed = out->router_normed || mixtral;
    out->router_scale = 1;
    out->expert_groups = out->groups_kept = 1;
    out->dense_layers = 0;
    return 0;
}
