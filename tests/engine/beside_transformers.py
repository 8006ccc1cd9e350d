"""Compares the engine with transformers: beside_transformers.py ENGINE FOLDER COUNT SEED [KIND]..

Saves COUNT random checkpoints of the kinds below, or of those that are named, lets the engine draw a few
tokens from each with --check (its logits on the device against its own float64 reference), and compares
that reference with the model of transformers in float64. That one keeps norms, rotations and softmax in
fp32, so the bound is 1e-4 of the largest logit. Ends with "N passed, N failed". Needs transformers 4.51 or
later.
"""
import os
import random
import shutil
import subprocess
import sys

import torch
import transformers

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}


YARN = {"type": "yarn", "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64,
        "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}


def random_deepseek(rng):
    groups, heads = rng.choice([1, 2, 4]), rng.choice([1, 2, 3, 5])
    kept, each = rng.randrange(1, groups + 1), rng.choice([2, 4, 8])
    return transformers.DeepseekV3Config(
        vocab_size=rng.choice([97, 128, 260]), hidden_size=8 * rng.randrange(4, 20), intermediate_size=96,
        moe_intermediate_size=8 * rng.randrange(1, 9), num_hidden_layers=rng.choice([1, 2, 3]),
        num_attention_heads=heads, num_key_value_heads=heads, n_shared_experts=rng.choice([1, 2]),
        n_routed_experts=groups * each, n_group=groups, topk_group=kept,
        num_experts_per_tok=rng.randrange(1, min(6, kept * each) + 1), first_k_dense_replace=rng.choice([0, 1]),
        kv_lora_rank=512, q_lora_rank=8 * rng.randrange(2, 12), qk_rope_head_dim=64,
        qk_nope_head_dim=8 * rng.randrange(2, 17), v_head_dim=8 * rng.randrange(2, 17),
        norm_topk_prob=rng.random() < 0.5, routed_scaling_factor=rng.choice([1.0, 2.5]), max_position_embeddings=256,
        rms_norm_eps=1e-5, initializer_range=rng.choice([0.05, 0.1]), bos_token_id=None, eos_token_id=None,
        rope_scaling=YARN if rng.random() < 0.5 else None)


def random_deepseek_v2(rng):
    method = rng.choice(["greedy", "group_limited_greedy"])
    groups, heads = rng.choice([1, 2, 4]), rng.choice([1, 2, 3, 5])
    kept, each = rng.randrange(1, groups + 1), rng.choice([2, 4, 8])
    most = groups * each if method == "greedy" else kept * each
    return transformers.DeepseekV2Config(
        vocab_size=rng.choice([97, 128, 260]), hidden_size=8 * heads * rng.randrange(2, 8), intermediate_size=96,
        moe_intermediate_size=8 * rng.randrange(1, 9), num_hidden_layers=rng.choice([1, 2, 3]),
        num_attention_heads=heads, num_key_value_heads=heads, n_shared_experts=rng.choice([1, 2]),
        n_routed_experts=groups * each, n_group=groups, topk_group=kept, topk_method=method,
        num_experts_per_tok=rng.randrange(1, min(6, most) + 1), first_k_dense_replace=rng.choice([0, 1]),
        kv_lora_rank=512, q_lora_rank=rng.choice([None, 8 * rng.randrange(2, 12)]), qk_rope_head_dim=64,
        qk_nope_head_dim=8 * rng.randrange(2, 17), v_head_dim=8 * rng.randrange(2, 17), norm_topk_prob=False,
        routed_scaling_factor=rng.choice([1.0, 16.0]), max_position_embeddings=256, rms_norm_eps=1e-5,
        initializer_range=rng.choice([0.05, 0.1]), bos_token_id=None, eos_token_id=None,
        rope_scaling=YARN if rng.random() < 0.5 else None)


def random_experts(rng, kind, common):
    experts = rng.choice([4, 7, 16])
    chosen = rng.randrange(1, min(4, experts) + 1)
    if kind == "mixtral":
        return transformers.MixtralConfig(num_local_experts=experts, num_experts_per_tok=chosen,
                                          sliding_window=rng.choice([None, 12]), **common)
    return transformers.Qwen3MoeConfig(
        num_experts=experts, num_experts_per_tok=chosen, moe_intermediate_size=8 * rng.randrange(2, 12),
        norm_topk_prob=rng.random() < 0.5, head_dim=rng.choice([64, 128]), attention_bias=rng.random() < 0.3, **common)


KINDS = ["llama", "llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "mixtral", "deepseek_v2", "deepseek_v3",
         "deepseek_v3"]


def random_model(rng, kinds):
    kv = rng.choice([1, 1, 2])
    heads, dim = kv * rng.choice([1, 2, 4]), 64 if rng.random() < 0.7 else 128
    common = dict(vocab_size=rng.choice([97, 128, 260, 512]), hidden_size=heads * dim,
                  num_hidden_layers=rng.choice([1, 2, 3]), num_attention_heads=heads, num_key_value_heads=kv,
                  intermediate_size=8 * rng.randrange(4, 40), max_position_embeddings=256, rms_norm_eps=1e-5,
                  initializer_range=rng.choice([0.05, 0.1]), bos_token_id=None, eos_token_id=None,
                  tie_word_embeddings=rng.random() < 0.5, rope_theta=rng.choice([1e4, 5e5]))
    kind = rng.choice(kinds)
    if kind == "llama":
        if rng.random() < 0.5:
            common["rope_scaling"] = rng.choice([{"type": "linear", "factor": 4.0, "rope_type": "linear"}, LLAMA3])
        config = transformers.LlamaConfig(attention_bias=rng.random() < 0.3, **common)
    elif kind == "deepseek_v3":
        config = random_deepseek(rng)
    elif kind == "deepseek_v2":
        config = random_deepseek_v2(rng)
    elif kind in ("mixtral", "qwen3_moe"):
        config = random_experts(rng, kind, common)
    elif kind == "qwen3":
        config = transformers.Qwen3Config(head_dim=rng.choice([64, 128]), attention_bias=rng.random() < 0.3, **common)
    elif kind == "mistral":
        config = transformers.MistralConfig(sliding_window=rng.choice([None, 12]), **common)
    else:
        config = transformers.Qwen2Config(use_sliding_window=False, **common)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager" # grouped products have no float64
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name:
                p.uniform_(0.75, 1.25)
            elif "bias" in name:
                p.uniform_(-0.5, 0.5)
            elif name.endswith(("mlp.gate.weight", "moe.gate.weight")): # scores well apart
                p.normal_(0, 0.4)
        for name, p in model.named_buffers():
            if "e_score" in name: # all chances are above 0, which stands for "not to be chosen" in some versions
                p.uniform_(0, 0.5)
    return kind, model.to(torch.bfloat16)


def in_float64(model):
    """A new model with these weights: what came to bf16 has rounded the frequencies of its rotations too."""
    wide = type(model)(model.config)
    wide.config._experts_implementation = "eager"
    wide.load_state_dict({name: value.float() for name, value in model.state_dict().items()})
    wide = wide.double().eval()
    for part in wide.modules():
        if "Router" in type(part).__name__: # its weights are fp32, and decide the type of what follows
            part.forward = lambda x, route=part.forward: tuple(
                y.double() if y.is_floating_point() else y for y in route(x))
    return wide


def compare(engine, folder, rng, kinds):
    kind, model = random_model(rng, kinds)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, safe_serialization=True)
    vocab = model.config.vocab_size
    prompt = [rng.randrange(vocab) for _ in range(rng.randrange(1, 60))]
    run = subprocess.run([engine, "run", folder, "--ids", " ".join(map(str, prompt)), "-n", "3", "--check", "--dump",
                          "--chunk", str(rng.choice([16, 32, 64]))], capture_output=True, text=True, check=False)
    lines = run.stdout.split("\n")
    drawn = [line for line in lines if line.startswith("drawn: ")]
    if run.returncode or not drawn:
        return "%s: %s %s" % (kind, run.stdout[:300], run.stderr[-300:])
    tokens = prompt + list(map(int, drawn[0].split()[1:]))
    model = in_float64(model)
    with torch.no_grad():
        want = model(torch.tensor([tokens[:-1]])).logits[0].double()[len(prompt) - 1:]
    rows = [list(map(float, line.split()[1:])) for line in lines if line.startswith("logits: ")]
    exact = torch.tensor([row[1::2] for row in rows], dtype=torch.float64)
    off = ((exact - want).abs().max() / want.abs().max()).item()
    if not off < 1e-4:
        return "%s: float64 differs by %.3g of the largest logit, in %s" % (kind, off, model.config)
    return None


def main():
    engine, folder, count, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    kinds = sys.argv[5:] or KINDS
    failed = 0
    for i in range(count):
        torch.manual_seed(seed + i)
        why = compare(engine, os.path.join(folder, "model"), random.Random(seed + i), kinds)
        if why:
            failed += 1
            print("FAIL seed %d: %s" % (seed + i, why), flush=True)
    print("transformers %s: %d passed, %d failed" % (transformers.__version__, count - failed, failed))
    return 1 if failed else 0


sys.exit(main())
