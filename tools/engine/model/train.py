#!/usr/bin/env python3
"""Trains the model of `make demo`: a Llama of 853,120 parameters that knows one book.

The book is Alice's Adventures in Wonderland by Lewis Carroll, 1865, in the public domain; alice.txt
is the Millennium Fulcrum Edition 2.9.

    python3 train.py tokenizer   writes tokenizer.json and tokens.bin (needs the package tokenizers)
    python3 train.py train       writes config.json and model.safetensors (needs PyTorch and a GPU)

The model knows its book by heart (after 4,000 steps the loss is 0.04 a token; 9.7 on the last
1,024 tokens, which it never saw): it shows that an engine reads a checkpoint right, not how well a
small model writes. Training took 80 s on one H200.
"""

import json
import math
import pathlib
import re
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
BOS, EOS = "<|begin_of_text|>", "<|end_of_text|>"
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "hidden_act": "silu",
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "mlp_bias": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "torch_dtype": "bfloat16",
}
STEPS, BATCH, WINDOW, WARMUP, RATE, SEED = 4000, 64, 256, 100, 3e-3, 1865


def chapters():
    """The book's chapters, each paragraph on one line; verses and letters keep their lines."""
    text = (HERE / "alice.txt").read_text(encoding="ascii")
    for part in re.split(r"\n\s+CHAPTER [IVX]+\n", text)[1:]:
        lines = []
        for block in re.split(r"\n\s*\n", part.split("THE END")[0]):
            rows = [row.strip() for row in block.strip("\n").split("\n")]
            indent = min(len(row) - len(row.lstrip()) for row in block.strip("\n").split("\n"))
            joined = ("\n" if indent > 3 else " ").join(row for row in rows if row)
            if joined:
                lines.append(re.sub(r"  +", " ", joined))
        yield "\n\n".join(lines)


def make_tokenizer():
    """Byte-level BPE of 512 tokens as Hugging Face writes it, and the book in its tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=CONFIG["vocab_size"],
        special_tokens=[BOS, EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(chapters(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, 0)]
    )
    tokenizer.save(str(HERE / "tokenizer.json"))
    ids = [i for chapter in chapters() for i in tokenizer.encode(chapter).ids + [1]]
    (HERE / "tokens.bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
    print(f"{len(ids)} tokens")


def write_safetensors(path, tensors):
    """One safetensors file of bf16: the header's length, the header, the bytes in its order."""
    import torch

    header, at, parts = {}, 0, []
    for name, tensor in sorted(tensors.items()):
        rounded = tensor.detach().to(torch.bfloat16).contiguous().cpu()
        data = rounded.view(torch.int16).numpy().tobytes()
        span = [at, at + len(data)]
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": span}
        at += len(data)
        parts.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def build(torch):
    """The Llama forward of one window, with the parameter names of Hugging Face."""
    from torch import nn
    from torch.nn import functional as f

    c = CONFIG
    hidden, dim = c["hidden_size"], c["head_dim"]
    heads, kv = c["num_attention_heads"], c["num_key_value_heads"]

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(hidden))

        def forward(self, x):
            mean = x.pow(2).mean(-1, keepdim=True)
            return self.weight * x * torch.rsqrt(mean + c["rms_norm_eps"])

    def linear(n, k):
        layer = nn.Linear(k, n, bias=False)
        nn.init.normal_(layer.weight, std=0.02)
        return layer

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q_proj, self.k_proj = linear(heads * dim, hidden), linear(kv * dim, hidden)
            self.v_proj, self.o_proj = linear(kv * dim, hidden), linear(hidden, heads * dim)

        def forward(self, x, cos, sin):
            b, t, _ = x.shape

            def rotate(y):
                low, high = y.chunk(2, -1)
                return y * cos + torch.cat((-high, low), -1) * sin

            q = rotate(self.q_proj(x).view(b, t, heads, dim).transpose(1, 2))
            k = rotate(self.k_proj(x).view(b, t, kv, dim).transpose(1, 2))
            v = self.v_proj(x).view(b, t, kv, dim).transpose(1, 2)
            k, v = (y.repeat_interleave(heads // kv, 1) for y in (k, v))
            out = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.o_proj(out.transpose(1, 2).reshape(b, t, heads * dim))

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_proj = linear(c["intermediate_size"], hidden)
            self.up_proj = linear(c["intermediate_size"], hidden)
            self.down_proj = linear(hidden, c["intermediate_size"])

        def forward(self, x):
            return self.down_proj(f.silu(self.gate_proj(x)) * self.up_proj(x))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.input_layernorm, self.self_attn = Norm(), Attention()
            self.post_attention_layernorm, self.mlp = Norm(), Mlp()

        def forward(self, x, cos, sin):
            x = x + self.self_attn(self.input_layernorm(x), cos, sin)
            return x + self.mlp(self.post_attention_layernorm(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed_tokens = nn.Embedding(c["vocab_size"], hidden)
            nn.init.normal_(self.embed_tokens.weight, std=0.02)
            self.layers = nn.ModuleList(Layer() for _ in range(c["num_hidden_layers"]))
            self.norm = Norm()

        def forward(self, ids):
            at = torch.arange(ids.shape[1], device=ids.device).float()
            rate = c["rope_theta"] ** (-torch.arange(0, dim, 2, device=ids.device).float() / dim)
            angle = torch.outer(at, rate).repeat(1, 2)
            x = self.embed_tokens(ids)
            for layer in self.layers:
                x = layer(x, angle.cos(), angle.sin())
            return self.norm(x) @ self.embed_tokens.weight.T

    return Model()


def train():
    """AdamW with a cosine of the rate; weights are rounded to bf16 once, at the end."""
    import torch
    from torch.nn import functional as f

    torch.manual_seed(SEED)
    raw = (HERE / "tokens.bin").read_bytes()
    ids = torch.tensor(struct.unpack(f"<{len(raw) // 2}H", raw), dtype=torch.long, device="cuda")
    held = ids[-WINDOW * 4 - 1:]
    ids = ids[: -WINDOW * 4]
    model = build(torch).cuda()
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                                   {"params": vectors, "weight_decay": 0.0}], betas=(0.9, 0.98))

    def loss_of(rows):
        return f.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())

    for step in range(STEPS):
        part = step / STEPS
        rate = RATE * min((step + 1) / WARMUP, 0.05 + 0.95 * (0.5 + 0.5 * math.cos(math.pi * part)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        start = torch.randint(0, len(ids) - WINDOW - 1, (BATCH,), device="cuda")
        loss = loss_of(ids[start[:, None] + torch.arange(WINDOW + 1, device="cuda")])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 250 == 0 or step == STEPS - 1:
            with torch.no_grad():
                other = loss_of(torch.stack([held[i: i + WINDOW + 1]
                                             for i in range(0, WINDOW * 4, WINDOW)]))
            print(f"step {step}: loss {loss.item():.3f}, held out {other.item():.3f}", flush=True)
    tensors = {f"model.{name}": p for name, p in model.named_parameters()}
    print(f"{sum(p.numel() for p in tensors.values())} parameters")
    write_safetensors(HERE / "model.safetensors", tensors)
    (HERE / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    show(torch, model.double())


def show(torch, model):
    """A greedy continuation by the rounded weights, in float64, as token ids and their number."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.to(torch.bfloat16).double())
        raw = (HERE / "tokens.bin").read_bytes()
        ids = list(struct.unpack("<24H", raw[:48]))
        for _ in range(120):
            ids.append(int(model(torch.tensor([ids[-512:]], device="cuda"))[0, -1].argmax()))
    print("greedy", ids)


if __name__ == "__main__":
    commands = {"tokenizer": make_tokenizer, "train": train}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]]()
