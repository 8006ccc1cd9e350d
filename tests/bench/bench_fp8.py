#!/usr/bin/env python3
"""Attention with e4m3 Q, K and V: hewn beside cuDNN and FlashAttention-3, on one GPU and the same tensors.

    bench_fp8.py LIBHEWN|none [--only TEXT] [--first N] [--accuracy] [--list]

The eighteen rows of the bf16 table in tests/BENCH.md, then twelve with packed or paged sequences, then rows whose
scores are larger. Outputs are compared with a softmax in fp32 first; a way that differs has no time. Times are
medians of CUDA graphs that go round among copies of the tensors, which together do not fit L2; the ways' graphs run
in turn. FLOP: 4 * dimension a query head, query and key that it sees. `none`: the peers alone. The folder PEERS holds
fa3_fp8.so, PYTHONPATH the package cudnn; a way that is missing, or cannot do a row, is named below the row.

--accuracy: instead of times, the error of each way against float64 for three distributions of the values.
"""
import argparse
import dataclasses
import sys

import bench_peers as bench

L2_SPAN = 200 << 20  # bytes of a row's copies of Q, K and V together, at least
# Two roundings to e4m3, of P and O, each of an error of 2^-4 / sqrt(3) of the value at most, in norm.
FAR = 0.0511
# Sums of 13 fraction bits take up to 2^-13 of the largest score, some 4 deviations squared, from every score, four
# times.
FAR_OF_SCORES = 2.0**-9
LAUNCHES = 4


@dataclasses.dataclass
class Shape:
    name: str
    dim: int
    heads: int
    kv_heads: int
    q_lens: tuple
    k_lens: tuple
    causal: bool
    packed: bool = False
    page: int = 0
    scaled: bool = False
    deviation: int = 1  # of Q and K: scores grow with its square

    def text(self):
        mask = "causal" if self.causal else "full"
        return f"{self.name:<24} d{self.dim:<3} {self.heads:2}/{self.kv_heads:<2} {mask:6}"


def table():
    for dim in (64, 128, 256):
        for causal in (False, True):
            for length, batch in ((1024, 16), (4096, 4), (16384, 1)):
                lens = (length,) * batch
                yield Shape(f"{batch} x {length}", dim, 2048 // dim, 2048 // dim, lens, lens, causal)


LONG = (16384, 4096, 4096, 2048, 2048, 2048, 1536, 512)


def drawn(seed, count, low, high):
    rng = bench.Rng(seed)
    return tuple(low + rng.below(high - low + 1) for _ in range(count))


def ragged():
    for dim in (64, 128, 256):
        yield Shape("packed, 512 to 16384", dim, 2048 // dim, 2048 // dim, LONG, LONG, True, packed=True)
    short = drawn(1, 64, 16, 1000)
    for dim in (64, 128, 256):
        yield Shape("packed, 64 of 16 to 1000", dim, 4096 // dim, 1024 // dim, short, short, True, packed=True)
    some = tuple(0 if i % 3 == 0 else n for i, n in enumerate(drawn(2, 24, 1, 4096)))
    yield Shape("packed, a third empty", 128, 16, 4, some, some, True, packed=True)
    keys = drawn(3, 4, 16000, 32000)
    for dim, page in ((64, 64), (128, 16), (128, 64), (128, 128), (256, 64)):
        yield Shape(f"4 x 1024 + keys, page {page}", dim, 4096 // dim, 1024 // dim, (1024,) * 4, keys, True, page=page)


def peaked():
    for dim in (64, 128, 256):
        for deviation in (1, 8):
            lens = (8192,) * 2
            yield Shape(f"2 x 8192, deviation {deviation}", dim, 2048 // dim, 2048 // dim, lens, lens, False,
                        deviation=deviation)


def apart(work, out):
    """Norm of the difference from fp32 over the norm, of a few heads and rows."""
    s, worst = work.shape, 0.0
    longest = work.k_lens.index(work.k_max)
    for b in {longest, len(work.k_lens) - 1}:
        n = work.q_lens[b]
        for head in {0, s.heads - 1}:
            for rows in (slice(0, min(n, 512)), slice(max(0, n - 512), n)):
                want = work.reference(b, head, rows)
                got = work.output(out, b)[rows, head]
                norm = want.norm()
                far = (got - want).norm() / norm if norm else got.norm()
                worst = max(worst, far.item()) if far.isfinite() else float("inf")
    return worst


def prepare(work, makers):
    ways, graphs, said, far = {}, {}, {}, {}
    for name, make in makers.items():
        try:
            ways[name] = way = make(work)
            for out in work.outs.values():
                out.fill_(float("nan"))
            far[name] = apart(work, way.run(0))
            if not far[name] < FAR + FAR_OF_SCORES * (work.shape.deviation**2 - 1):
                said[name] = f"WRONG {far[name]:.1e}"
                continue
            graphs[name] = bench.capture(way, work, max(LAUNCHES, len(work.copies)))
        except Exception as error:  # whatever a peer raises for what it does not offer
            said[name] = bench.short(error)
            if "CUDA error" in said[name] or "illegal" in said[name]:
                raise
    return ways, graphs, said, far


def normal(size, seed):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(size, generator=generator, device="cuda")


def measure(shape, makers):
    def values(size, seed):
        return normal(size, seed) * (shape.deviation if seed % 3 < 2 else 1)

    work = peers_fp8.Work(shape, L2_SPAN, values)
    ways, graphs, said, far = prepare(work, makers)
    us = bench.medians(graphs, max(LAUNCHES, len(work.copies))) if graphs else {}
    for way in ways.values():
        getattr(way, "close", lambda: None)()
    line = shape.text()
    for name, t in us.items():
        line += f"  {name} {t:8.1f} us {1e-6 * work.flops / t:6.0f} TFLOP/s ({far[name]:.3f})"
    rest = [t for name, t in us.items() if name != "hewn"]
    ratio = min(rest) / us["hewn"] if rest and "hewn" in us else None
    print(line + (f"  ratio {ratio:.3f}" if ratio else ""), flush=True)
    for name, text in said.items():
        print(f"    {name}: {text}", flush=True)
    return ratio


def outliers(size, seed):
    """One value in 1,000 is 50 times as large."""
    values = normal(size, seed)
    generator = torch.Generator("cuda").manual_seed(1000 + seed)
    return torch.where(torch.rand(size, generator=generator, device="cuda") < 1e-3, 50 * values, values)


def rising(size, seed):
    """Keys grow along the sequence, and with them the maximum of the scores."""
    values = normal(size, seed)
    if seed % 3 == 1:
        values *= 0.25 + 2 * torch.arange(size[-3], device="cuda")[:, None, None] / size[-3]
    return values


def accuracy_shapes():
    for dim in (64, 128, 256):
        for causal, keys in ((False, 4096), (True, 4096), (False, 131072)):
            yield Shape(f"2048 beside {keys}", dim, 4, 4, (2048,), (keys,), causal, scaled=True)


def against_float64(work, out):
    """Norm of the error over the norm, and the largest error over the largest value, of 512 rows of each head."""
    pairs = [(work.output(out, 0)[-512:, head].double(), work.reference(0, head, slice(1536, 2048), torch.float64))
             for head in range(work.shape.heads)]
    got, want = (torch.cat(x) for x in zip(*pairs))
    return ((got - want).norm() / want.norm()).item(), ((got - want).abs().max() / want.abs().max()).item()


def accuracy(makers, only):
    """From each row's Q, K and V as they are stored: their own rounding to e4m3 does not count."""
    for name, make in (("normal", normal), ("outliers", outliers), ("rising", rising)):
        for shape in accuracy_shapes():
            if only not in shape.text():
                continue
            work, line = peers_fp8.Work(shape, 1, make), f"{name:<9}{shape.text()}"
            for way_name, maker in makers.items():
                try:
                    way = maker(work)
                    norm, most = against_float64(work, way.run(0))
                    line += f"  {way_name} {100 * norm:.2f} % ({100 * most:.2f})"
                    getattr(way, "close", lambda: None)()
                except Exception as error:  # as in prepare
                    line += f"  {way_name} -"
                    if "CUDA error" in bench.short(error):
                        raise
            print(line, flush=True)
            torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--only", default="")
    parser.add_argument("--first", type=int, default=None)
    parser.add_argument("--accuracy", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    groups = {"table": list(table()), "ragged and paged": list(ragged()), "peaked": list(peaked())}
    for name in groups:
        groups[name] = [s for s in groups[name] if options.only in s.text()][:options.first]
    if options.list:
        for shapes in groups.values():
            for shape in shapes:
                print(shape.text())
        return
    global torch, peers_fp8
    import torch
    import peers
    import peers_fp8
    bench.torch = torch
    bench.versions()
    library = None if options.library == "none" else peers.library(options.library)
    makers = peers_fp8.ways(library)
    if options.accuracy:
        with torch.inference_mode():
            accuracy(peers_fp8.accuracy_ways(library), options.only)
        return
    with torch.inference_mode():
        for title, shapes in groups.items():
            ratios = []
            for shape in shapes:
                ratios.append(measure(shape, makers))
                torch.cuda.empty_cache()
            ratios = [r for r in ratios if r]
            if ratios:
                print(f"== {title}: {len(ratios)} rows: geomean {bench.geomean(ratios):.3f}, "
                      f"least {min(ratios):.3f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
