"""cuDNN's attention through PyTorch, the peer that tests/bench/bench_cudnn.c drives.

bench_attention.py FOLDER: Q, K and V are the files q, k and v there, bf16. First a line that names the
versions, then an answer a line of input:

    fixed DIM HEADS CAUSAL LENGTH BATCH TIMES
                                           ways NAME…; scores are TIMES as large as usual
    ragged DIM HEADS LENGTH…               ways NAME…
    rise DIM LENGTH KEYS RISE              ok; the first column of Q is then the root of DIM, that of K RISE for
                                           each KEYS keys
    output NAME                            ok; the output is the file o
    time NAME LAUNCHES                     microseconds of each on the GPU, after one or two that warm up

A line that begins with '#' says why a way is missing; "error …" answers what failed.
"""
import os
import sys


def load(folder, name):
    path = os.path.join(folder, name)
    count = os.path.getsize(path) // 2
    return torch.from_file(path, size=count, dtype=torch.bfloat16).to("cuda")


class Way:
    """One way to compute a shape: `call` returns the output, `shown` brings it into our layout."""

    def __init__(self, call, shown=lambda o: o):
        self.call, self.shown = call, shown
        call()
        torch.cuda.synchronize()

    def output(self):
        return self.shown(self.call())

    def time(self, launches):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(launches + 1)]
        for _ in range(2):
            self.call()
        for event in events[:-1]:
            event.record()
            self.call()
        events[-1].record()
        torch.cuda.synchronize()
        return [1e3 * a.elapsed_time(b) for a, b in zip(events, events[1:])]


class Profiled(Way):
    """A way whose call keeps the host longer than the GPU: what its kernels take, by the profiler."""

    def time(self, launches):
        self.call()
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(launches):
                self.call()
            torch.cuda.synchronize()
        kernels = [e.self_device_time_total for e in profile.key_averages()]
        return [sum(kernels) / launches] * launches


def sdpa(q, k, v, causal, scale=None):
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)


def fixed(dim, heads, causal, length, batch, times):
    count = batch * heads * length * dim
    q, k, v = (x[:count].view(batch, heads, length, dim) for x in data)
    return {"cuDNN": Way(lambda: sdpa(q, k, v, bool(causal), times / dim**0.5))}


def padded(packed, lengths):
    """[tokens, heads, dim] as [batch, heads, longest, dim], zeros behind each sequence."""
    out = packed.new_zeros(len(lengths), packed.shape[1], max(lengths), packed.shape[2])
    for row, x in zip(out, packed.split(lengths)):
        row[:, : len(x)] = x.transpose(0, 1)
    return out


def way_padded(q, k, v, lengths):
    wide = [padded(x, lengths) for x in (q, k, v)]
    return Way(
        lambda: sdpa(*wide, True),
        lambda o: torch.cat([row[:, :length].transpose(0, 1) for row, length in zip(o, lengths)]),
    )


def way_varlen(q, k, v, lengths):
    ends = torch.tensor([0] + lengths, device="cuda").cumsum(0).int()
    longest = max(lengths)
    call = torch.ops.aten._cudnn_attention_forward
    return Profiled(lambda: call(q, k, v, None, ends, ends, longest, longest, False, 0.0, True, False)[0])


def way_sequences(q, k, v, lengths):
    parts = [[x.transpose(0, 1).unsqueeze(0) for x in t.split(lengths)] for t in (q, k, v)]
    return Way(
        lambda: [sdpa(*part, True) for part in zip(*parts)],
        lambda o: torch.cat([x[0].transpose(0, 1) for x in o]),
    )


def ragged(dim, heads, *lengths):
    lengths = list(lengths)
    tokens = sum(lengths)
    q, k, v = (x[: tokens * heads * dim].view(tokens, heads, dim) for x in data)
    found = {}
    for name, make in (("padded", way_padded), ("varlen", way_varlen), ("sequences", way_sequences)):
        try:
            found["cuDNN-" + name] = make(q, k, v, lengths)
        except Exception as error:  # whatever PyTorch raises for what it does not offer
            print("#", name, type(error).__name__, str(error).replace("\n", " ")[:160], flush=True)
    return found


def rise(dim, length, keys, step):
    q, k = (x.view(-1, dim) for x in data[:2])
    q[:, 0] = dim**0.5
    k[:, 0] = torch.arange(len(k), device="cuda") % length // keys * step


def answer(words):
    global ways
    if words[0] == "rise":
        rise(*map(int, words[1:]))
        return "ok"
    if words[0] in ("fixed", "ragged"):
        ways = {}
        torch.cuda.empty_cache()
        ways = {"fixed": fixed, "ragged": ragged}[words[0]](*map(int, words[1:]))
        return " ".join(["ways", *ways])
    if words[0] == "output":
        out = ways[words[1]].output().contiguous().cpu().view(torch.int16).numpy()
        out.tofile(os.path.join(sys.argv[1], "o"))
        return "ok"
    return " ".join(f"{us:.3f}" for us in ways[words[1]].time(int(words[2])))


try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    data = [load(sys.argv[1], name) for name in "qkv"]
    print("cuDNN", torch.backends.cudnn.version(), "through PyTorch", torch.__version__, flush=True)
except Exception as error:
    print("error", type(error).__name__, error, flush=True)
    sys.exit(1)
ways = {}
with torch.no_grad():
    for line in sys.stdin:
        try:
            print(answer(line.split()), flush=True)
        except Exception as error:
            print("error", type(error).__name__, str(error).replace("\n", " ")[:160], flush=True)
