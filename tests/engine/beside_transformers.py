"""Compares the engine with transformers: beside_transformers.py ENGINE FOLDER COUNT SEED

Saves COUNT random checkpoints of Llama, Mistral and Qwen2, lets the engine draw a few tokens from each with
--check (its logits on the device against its own float64 reference), and compares that reference with the
model of transformers in float64. That one keeps norms, rotations and softmax in fp32, so the bound is 1e-4 of
the largest logit. Ends with "N passed, N failed".
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


def random_model(rng):
    kv = rng.choice([1, 1, 2])
    heads, dim = kv * rng.choice([1, 2, 4]), 64 if rng.random() < 0.7 else 128
    common = dict(vocab_size=rng.choice([97, 128, 260, 512]), hidden_size=heads * dim,
                  num_hidden_layers=rng.choice([1, 2, 3]), num_attention_heads=heads, num_key_value_heads=kv,
                  intermediate_size=8 * rng.randrange(4, 40), max_position_embeddings=256, rms_norm_eps=1e-5,
                  initializer_range=rng.choice([0.05, 0.1]), bos_token_id=None, eos_token_id=None,
                  tie_word_embeddings=rng.random() < 0.5, rope_theta=rng.choice([1e4, 5e5]))
    kind = rng.choice(["llama", "llama", "mistral", "qwen2"])
    if kind == "llama":
        if rng.random() < 0.5:
            common["rope_scaling"] = rng.choice([{"type": "linear", "factor": 4.0, "rope_type": "linear"}, LLAMA3])
        config = transformers.LlamaConfig(attention_bias=rng.random() < 0.3, **common)
    elif kind == "mistral":
        config = transformers.MistralConfig(sliding_window=rng.choice([None, 12]), **common)
    else:
        config = transformers.Qwen2Config(use_sliding_window=False, **common)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name:
                p.uniform_(0.75, 1.25)
            elif "bias" in name:
                p.uniform_(-0.5, 0.5)
    return kind, model.to(torch.bfloat16)


def compare(engine, folder, rng):
    kind, model = random_model(rng)
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
    # Read again: what came to bf16 has rounded the frequencies of its rotations too.
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32,
                                                              attn_implementation="eager").double()
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
    failed = 0
    for i in range(count):
        torch.manual_seed(seed + i)
        why = compare(engine, os.path.join(folder, "model"), random.Random(seed + i))
        if why:
            failed += 1
            print("FAIL seed %d: %s" % (seed + i, why))
    print("transformers %s: %d passed, %d failed" % (transformers.__version__, count - failed, failed))
    return 1 if failed else 0


sys.exit(main())
