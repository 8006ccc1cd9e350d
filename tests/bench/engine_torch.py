#!/usr/bin/env python3
"""A decoder-only model of the Llama family in PyTorch, at the shapes of tests/engine/bench_engine.c: random weights,
layers compiled by torch.compile, a static cache, each step captured into one CUDA graph, greedy. Attention is the
fastest of PyTorch's backends, which are timed first. With --fp8 1 everything is timed again with the projections'
weights and the rows that they multiply rounded to e4m3, a scale a row, behind attention by the backend that was the
fastest before.

    python3 tests/bench/engine_torch.py [--shape 8b] [--layers N] [--keys 4096] [--prompt 8192] [--slots 1,8,64]
        [--steps 20] [--fp8 1]
"""
import argparse
import os
import time

# A compiled layer is found again by its text, which does not name the backend of its attention.
os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

SHAPES = {  # hidden, layers, heads, KV heads, head dimension, intermediate, vocabulary
    "8b": (4096, 32, 32, 8, 128, 14336, 128256),
    "1b": (2048, 16, 32, 8, 64, 8192, 128256),
    "small": (256, 2, 4, 2, 64, 512, 512),
}
BACKENDS = {
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}
DEVICE, TYPE = "cuda", torch.bfloat16


def weights(shape):
    hidden, layers, heads, kv_heads, dim, inner, vocab = shape

    def some(*size):
        return torch.randn(*size, device=DEVICE, dtype=TYPE) * 0.01

    one = torch.ones(hidden, device=DEVICE, dtype=TYPE)
    layer = [
        (one, some((heads + 2 * kv_heads) * dim, hidden), some(hidden, heads * dim), one,
         some(2 * inner, hidden), some(hidden, inner))
        for _ in range(layers)
    ]
    return some(vocab, hidden), layer, one, some(vocab, hidden)


def rounded(x):
    """Rows of e4m3, and a scale of each."""
    f = x.float()
    scale = f.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448
    return (f / scale).to(torch.float8_e4m3fn), scale


def project(x, w):
    """x times the rows of w: bf16, or e4m3 with scales."""
    if not isinstance(w, tuple):
        return F.linear(x, w)
    rows, scale = rounded(x.flatten(0, -2))
    out = torch._scaled_mm(rows, w[0].t(), scale_a=scale, scale_b=w[1].t(), out_dtype=TYPE)
    return out.view(*x.shape[:-1], -1)


def norm(x, w):
    f = x.float()
    return (f * torch.rsqrt(f.square().mean(-1, keepdim=True) + 1e-5)).to(TYPE) * w


def rotate(x, cos, sin):
    low, high = x.chunk(2, -1)
    return torch.cat((low * cos - high * sin, high * cos + low * sin), -1)


def make_layer(shape, repeat):
    _, _, heads, kv_heads, dim, _, _ = shape

    def layer(x, w, k_cache, v_cache, cos, sin, position, causal):
        """x: [batch, tokens, hidden]; the cache holds [batch, KV heads, keys, dim]; tokens go to `position` on."""
        norm_in, qkv, o, norm_post, gate_up, down = w
        batch, tokens, _ = x.shape
        q, k, v = project(norm(x, norm_in), qkv).view(
            batch, tokens, heads + 2 * kv_heads, dim).transpose(1, 2).split(
                [heads, kv_heads, kv_heads], 1)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k_cache[:, :, position:position + tokens] = k
        v_cache[:, :, position:position + tokens] = v
        keys = position + tokens
        k, v = k_cache[:, :, :keys], v_cache[:, :, :keys]
        if repeat:  # one query token of a KV head's group is as many rows of one head
            q = q.reshape(batch, kv_heads, heads // kv_heads, dim)
            mixed = F.scaled_dot_product_attention(q, k, v)
            mixed = mixed.reshape(batch, heads, 1, dim)
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        x = x + project(mixed.transpose(1, 2).reshape(batch, tokens, heads * dim), o)
        gate, up = project(norm(x, norm_post), gate_up).chunk(2, -1)
        return x + project(F.silu(gate) * up, down)

    return torch.compile(layer, dynamic=False)


def best_of(run, steps, rounds=3):
    best = 1e9
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            run()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / steps)
    return best


def capture(step):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            step()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        step()
    return graph


def make_step(shape, model, batch, tokens, position, cache, repeat):
    hidden, layers, heads, kv_heads, dim, inner, vocab = shape
    embed, layer_weights, last, head = model
    layer = make_layer(shape, repeat)
    ids = torch.randint(0, vocab, (batch, tokens), device=DEVICE)
    angle = torch.arange(position, position + tokens, device=DEVICE)[:, None] * 5e5**(
        -torch.arange(dim // 2, device=DEVICE) * 2.0 / dim)
    cos, sin = angle.cos().to(TYPE), angle.sin().to(TYPE)

    def step():
        x = F.embedding(ids, embed)
        for i in range(layers):
            x = layer(x, layer_weights[i], cache[i][0][:batch], cache[i][1][:batch], cos, sin, position,
                      tokens > 1)
        return F.linear(norm(x[:, -1], last), head).float().argmax(-1)

    return step


def timed(shape, model, batch, tokens, position, cache, steps, only=None):
    """Seconds of the fastest backend, or of `only`, and its name."""
    found = (1e9, "none")
    ways = [(n, b, False) for n, b in BACKENDS.items() if n != "efficient"]
    if tokens == 1:
        ways += [(n + ", group as rows", b, True) for n, b in BACKENDS.items() if n != "efficient"]
    for name, backend, repeat in ways:
        if only not in (None, name):
            continue
        torch._dynamo.reset()
        try:
            with torch.no_grad(), sdpa_kernel(backend):
                graph = capture(make_step(shape, model, batch, tokens, position, cache, repeat))
                seconds = best_of(graph.replay, steps)
        except RuntimeError as error:
            print(f"  {name}: {str(error).splitlines()[0][:90]}", flush=True)
            continue
        print(f"  {name}: {1e3 * seconds:.3f} ms", flush=True)
        found = min(found, (seconds, name))
        del graph
    return found


def run(args, shape, model, slots, kind, best):
    """Each step's time; best: the backend of each, filled or obeyed."""
    _, layers, _, kv_heads, dim, _, _ = shape

    def cache_of(batch, length):
        return [[torch.randn(batch, kv_heads, length, dim, device=DEVICE, dtype=TYPE) for _ in range(2)]
                for _ in range(layers)]

    cache = cache_of(max(slots), args.keys + 1)
    for batch in slots:
        seconds, name = timed(shape, model, batch, 1, args.keys, cache, args.steps, best.get(batch))
        best[batch] = name
        print(f"{kind} decode  {batch:3d} requests at {args.keys} keys: {1e3 * seconds:8.3f} ms a step, "
              f"{batch / seconds:7.0f} tokens/s ({name})", flush=True)
    if args.prompt:
        del cache
        cache = cache_of(1, args.prompt)
        seconds, name = timed(shape, model, 1, args.prompt, 0, cache, 2, best.get("prompt"))
        best["prompt"] = name
        print(f"{kind} prefill {args.prompt} tokens: {1e3 * seconds:.2f} ms, {args.prompt / seconds:.0f} tokens/s "
              f"({name})", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=SHAPES, default="8b")
    parser.add_argument("--layers", type=int, default=0)
    parser.add_argument("--keys", type=int, default=4096)
    parser.add_argument("--prompt", type=int, default=8192)
    parser.add_argument("--slots", default="1,8,64")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--fp8", type=int, default=0)
    args = parser.parse_args()
    shape = SHAPES[args.shape]
    if args.layers:
        shape = (shape[0], args.layers) + shape[2:]
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "cuDNN", torch.backends.cudnn.version())
    model = weights(shape)
    slots = [int(s) for s in args.slots.split(",")]
    best = {}
    run(args, shape, model, slots, "bf16", best)
    if args.fp8:
        embed, layer, last, head = model
        for i, (norm_in, qkv, o, norm_post, gate_up, down) in enumerate(layer):
            layer[i] = (norm_in, rounded(qkv), rounded(o), norm_post, rounded(gate_up), rounded(down))
        run(args, shape, (embed, layer, last, head), slots, "e4m3", best)


if __name__ == "__main__":
    main()
