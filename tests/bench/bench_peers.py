#!/usr/bin/env python3
"""Decode, short queries, chunked prefill, MLA and the indexer of hewn beside the peers that peers*.py lists.

    bench_peers.py LIBHEWN [--random N] [--e4m3 N] [--tree] [--chunked] [--mla] [--sparse] [--indexer] [--named]
                   [--seed S] [--only TEXT] [--skip N] [--first N] [--ways A,B] [--pool GB] [--list]

One process, the same tensors for all. Each way's output is compared with hewn's, and hewn's with a softmax
in fp32 of one sequence; a way that differs has no ratio. Times are of CUDA graphs of several launches, which
go round among copies of K and V that are larger than L2 together. The ways' graphs run in turn; medians.

--random draws as bench_decode does, from the same seed. --e4m3 draws N shapes with e4m3 K and V. The folder
PEERS holds what peers.py loads, PYTHONPATH the packages. A peer that is missing, or cannot do a shape, is
named below its line. --first N takes the first N shapes of each kind. --list prints the shapes alone and needs no GPU.
"""
import argparse
import gc
import dataclasses
import math
import os
import statistics
import sys

L2_SPAN = 400 << 20  # bytes of K and V of all copies together, at least
FLOOR = 4.45e12      # bytes/s that the fastest library reaches
REPEATS = 9


@dataclasses.dataclass
class Shape:
    name: str
    batch: int
    length: int
    ragged: int
    group: int
    kv_heads: int
    qk: int
    v: int
    page: int
    queries: int
    kv: str = "bf16"
    tree: bool = False
    seed: int = 1

    @property
    def heads(self):
        return self.group * self.kv_heads

    def text(self):
        tail = "-" if self.ragged else " "
        marks = (" e4m3" if self.kv == "e4m3" else "") + (" tree" if self.tree else "")
        return (f"{self.name:<20} {self.batch:4} x {self.length:6}{tail} q{self.queries:<3} "
                f"{self.group:3}x{self.kv_heads:<2} d{self.qk}/{self.v} page {self.page:3}{marks}")


# ---- shapes


class Rng:
    """tests/lib/harness.c's generator."""

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        mask = (1 << 64) - 1
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        return ((z ^ z >> 31) >> 32) * bound >> 32

    def share(self):
        return self.below(1 << 20) / (1 << 20)


def named():
    """The shapes that bench_decode names, read from its table."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench_decode.c")
    text = open(path, encoding="utf-8").read()
    for row in text[text.index("named[] = {"):].split("\n")[1:]:
        if row.startswith("};"):
            return
        name, *numbers = row.strip(" {},").split(", ")
        yield Shape(name.strip('"'), *map(int, numbers))


def draw(rng, dims):
    """In the order in which bench_decode draws."""
    qk, v = dims[rng.below(len(dims))]
    batch = int(2**(8 * rng.share()))
    length = int(2**(7 + 10 * rng.share()))
    ragged = rng.below(2)
    group = (1, 2, 4, 5, 8, 16)[rng.below(6)]
    kv_heads = 1 << rng.below(4)
    page = (0, 1, 16, 64, 128)[rng.below(5)]
    return Shape("random", batch, length, ragged, group, kv_heads, qk, v, page, 1)


def drawn(count, seed, pool, e4m3):
    dims = [(64, 64), (96, 96), (128, 128), (128, 128), (192, 128), (256, 256), (512, 512)]
    if e4m3:
        dims = [(128, 128), (256, 256)]
    rng = Rng(seed + (1 << 32 if e4m3 else 0))
    for i in range(count):
        shape = draw(rng, dims)
        while 2 * shape.batch * shape.length * shape.kv_heads * (shape.qk + shape.v) > pool:
            shape = draw(rng, dims)
        shape.seed = seed + i
        shape.name, shape.kv = (f"e4m3 {i}", "e4m3") if e4m3 else (f"random {i}", "bf16")
        yield shape


def trees():
    for batch, length, queries, page in ((1, 32768, 16, 64), (16, 8192, 8, 16), (32, 4096, 16, 128),
                                         (64, 4096, 8, 64), (64, 2048, 4, 16), (8, 16384, 32, 64)):
        group = 4 if queries <= 16 else 2
        yield Shape(f"tree {queries}", batch, length, batch > 8, group, 8, 128, 128, page, queries, tree=True)


def chunked():
    for batch, length, page, group, dim in ((1, 32768, 16, 4, 128), (4, 32768, 16, 4, 128), (4, 32768, 64, 4, 128),
                                            (4, 32768, 128, 8, 128), (4, 32768, 16, 4, 64), (2, 32768, 16, 4, 256)):
        yield Shape(f"512 x 32k d{dim}", batch, length, 0, group, 8, dim, dim, page, 512)


def mla():
    for heads in (16, 64, 128):
        for batch, length, ragged, queries in ((1, 32768, 0, 1), (16, 8192, 0, 1), (64, 4096, 0, 1),
                                               (128, 4096, 1, 1), (128, 4096, 0, 1), (64, 4096, 0, 2)):
            yield Shape(f"mla h{heads}", batch, length, ragged, heads, 1, 576, 512, 64, queries)


@dataclasses.dataclass
class Lists:
    batch: int
    queries: int
    heads: int
    topk: int
    rows: int  # of the cache, for all sequences together
    records: bool
    page: int = 64
    qk: int = 576
    v: int = 512

    def text(self):
        kind = "records" if self.records else "bf16"
        return (f"lists {kind:<8} {self.batch:4} x q{self.queries:<5} {self.heads:3} heads, {self.topk} of "
                f"{self.rows} rows")


def sparse():
    for heads in (8, 16, 64, 128):
        for batch, queries in ((1, 1), (16, 1), (128, 1), (128, 2)):
            yield Lists(batch, queries, heads, 2048, max(batch, 16) * 16384, True)
    for heads in (64, 128):
        for queries, topk in ((512, 512), (4096, 2048)):
            yield Lists(1, queries, heads, topk, 65536, False)


@dataclasses.dataclass
class Indexed:
    batch: int
    queries: int
    length: int
    heads: int
    page: int
    qk: int = 128
    v: int = 0

    def text(self):
        kind = "decode" if self.page else "prefill"
        return f"indexer {kind:<7} {self.batch:4} x {self.length:6}  q{self.queries:<5} {self.heads:3} heads"


def indexer():
    for heads in (64, 32):
        for batch, length, queries in ((1, 131072, 1), (8, 32768, 1), (32, 4096, 1), (32, 32768, 1), (128, 4096, 1),
                                       (128, 32768, 1), (64, 32768, 2)):
            yield Indexed(batch, queries, length, heads, 64)
        for length in (4096, 16384, 65536):
            yield Indexed(1, 4096, length, heads, 0)


# ---- a shape's tensors


class Work:
    """Q, lengths, the block table and copies of K and V. Without pages a sequence has `span` rows."""

    def __init__(self, shape, pool):
        s, self.shape = shape, shape
        rng, half = Rng(s.seed), s.length // 2
        self.host_lengths = [half + rng.below(half + 1) if s.ragged else s.length for _ in range(s.batch)]
        self.latent = s.qk == 576
        row = s.kv_heads * (s.qk if self.latent else s.qk + s.v) * (1 if s.kv == "e4m3" else 2)
        self.bytes = sum(self.host_lengths) * row
        self.span = -(-s.length // 64) * 64
        self.width = -(-s.length // s.page) if s.page else 0
        self.pages = self.width * s.batch
        rows = self.pages * s.page if s.page else s.batch * self.span
        count = min(1 + L2_SPAN // max(self.bytes, 1), pool // (rows * row))
        if not count:
            raise MemoryError("more than the pool")
        torch.manual_seed(s.seed)
        first = (self.pages, s.page) if s.page else (s.batch, self.span)
        self.copies = [self.cache(first) for _ in range(count)]
        self.q = torch.randn(s.batch, s.queries, s.heads, s.qk, device="cuda").bfloat16()
        self.lengths = torch.tensor(self.host_lengths, dtype=torch.int32, device="cuda")
        self.table = None
        if s.page:
            order = torch.randperm(self.pages, device="cuda", dtype=torch.int32)
            self.table = order.view(s.batch, self.width).contiguous()
        self.tree_mask = self.tree() if s.tree else None

    def cache(self, first):
        s = self.shape
        made = [torch.empty(*first, s.kv_heads, d, dtype=torch.bfloat16, device="cuda").normal_()
                for d in ((s.qk, ) if self.latent else (s.qk, s.v))]
        if s.kv == "e4m3":
            made = [x.to(torch.float8_e4m3fn) for x in made]
        return made[0].view(*first, s.qk) if self.latent else tuple(made)

    def tree(self):
        """A mask a query: itself and its ancestors, with parents drawn."""
        s, rng, rows = self.shape, Rng(99), []
        for _ in range(s.batch):
            masks = []
            for i in range(s.queries):
                masks.append(1 << i | (masks[rng.below(i)] if i else 0))
            rows.append(masks)
        return torch.tensor(rows, dtype=torch.int64, device="cuda")

    def packed_mask(self):
        """The trees as FlashInfer takes masks: bits of every query's keys, a sequence in whole bytes; and where
        each sequence's bytes begin."""
        queries, parts = self.shape.queries, []
        bits = (self.tree_mask[:, :, None] >> torch.arange(queries, device="cuda") & 1).bool()
        weights = 2**torch.arange(8, device="cuda", dtype=torch.int32)
        for row, n in zip(bits, self.host_lengths):
            mask = torch.ones(queries, n, dtype=torch.bool, device="cuda")
            mask[:, n - queries:] = row
            flat = torch.nn.functional.pad(mask.view(-1).int(), (0, -mask.numel() % 8))
            parts.append((flat.view(-1, 8) * weights).sum(1).to(torch.uint8))
        ends = torch.tensor([0] + [len(x) for x in parts], device="cuda").cumsum(0).int()
        return torch.cat(parts), ends

    def as_pages(self):
        if self.shape.page:
            return self.shape.page, self.table
        count = self.span // 16
        return 16, torch.arange(self.shape.batch * count, dtype=torch.int32, device="cuda").view(-1, count)

    def empty_out(self):
        s = self.shape
        return torch.full((s.batch, s.queries, s.heads, s.v), math.nan, dtype=torch.bfloat16, device="cuda")

    def reference(self, b):
        """fp32 of sequence b: [query, head, v]."""
        s, n = self.shape, self.host_lengths[b]
        kv = self.copies[0] if not self.latent else (self.copies[0][..., None, :], self.copies[0][..., None, :512])
        if s.page:
            kv = (x[self.table[b].long()].flatten(0, 1) for x in kv)
        else:
            kv = (x[b] for x in kv)
        k, v = (x[:n].float() for x in kv)
        q = self.q[b].view(s.queries, s.kv_heads, s.group, s.qk).float()
        score = torch.einsum("qhgd,khd->hgqk", q, k) * s.qk**-0.5
        if s.queries > 1:
            at = torch.arange(n, device="cuda")[None] - (n - s.queries)
            row = torch.arange(s.queries, device="cuda")[:, None]
            seen = at <= row
            if s.tree:
                seen = (at < 0) | (self.tree_mask[b][:, None] >> at.clamp(0) & 1).bool()
            score.masked_fill_(~seen, -math.inf)
        return torch.einsum("hgqk,khd->qhgd", score.softmax(-1), v).reshape(s.queries, s.heads, s.v)


# ---- measuring


def apart(a, b):
    """The largest difference relative to the largest value; infinite where either is not finite."""
    x, y = a.float(), b.float()
    if not (x.isfinite().all() and y.isfinite().all()):
        return math.inf
    return ((x - y).abs().max() / y.abs().max()).item()


def capture(way, work, launches):
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    gc.collect()  # the end of an older graph would spoil the capture
    gc.disable()
    try:
        with torch.cuda.graph(graph, stream=side):
            for i in range(launches):
                way.run(i % len(work.copies))
    finally:
        gc.enable()
    graph.replay()
    torch.cuda.synchronize()
    return graph


def medians(graphs, launches):
    """Microseconds a launch; the ways' graphs run in turn."""
    times = {name: [] for name in graphs}
    for graph in list(graphs.values()) * 2:  # the clocks rise
        graph.replay()
    for _ in range(REPEATS):
        for name, graph in graphs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times[name].append(1e3 * begin.elapsed_time(end) / launches)
    return {name: statistics.median(t) for name, t in times.items()}


def short(error):
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:90]}"


def prepare(work, makers):
    """The ways whose output is right, their graphs, and what the others said."""
    launches = max(8, min(400, int(2e-3 * FLOOR / work.bytes)))
    if work.shape.queries > 64:
        launches = 4
    ways, graphs, said, base = {}, {}, {}, None
    for name, make in makers.items():
        try:
            ways[name] = way = make(work)
            out = way.run(0)
            torch.cuda.synchronize()
            if name == "hewn":
                base = out.clone()
                far = apart(base[0], work.reference(0))
            else:
                far = apart(out, base)
            if far > 0.02:
                said[name] = f"WRONG {far:.1e}"
                continue
            graphs[name] = capture(way, work, launches)
        except Exception as error:  # whatever a peer raises for what it does not offer
            said[name] = short(error)
            if "CUDA error" in said[name] or "illegal" in said[name]:
                raise
            if name == "hewn":
                break
    return ways, graphs, said, launches


def measure(shape, makers, pool, make_work):
    try:
        work = make_work(shape, pool)
    except MemoryError as error:
        print(f"{shape.text()}  {error}", flush=True)
        return None
    ways, graphs, said, launches = prepare(work, makers)
    us = medians(graphs, launches) if "hewn" in graphs else {}
    for way in ways.values():
        getattr(way, "close", lambda: None)()
    peers = {name: t for name, t in us.items() if name != "hewn"}
    line = f"{shape.text()} {1e-6 * work.bytes:8.1f} MB  "
    rate = ratio = None
    if us:
        rate = 1e-6 * work.bytes / us["hewn"]
        line += f"hewn {us['hewn']:9.2f} us {rate:5.2f} TB/s"
        if work.latent or shape.queries > 64:
            flops = 2 * shape.queries * shape.heads * sum(work.host_lengths) * (shape.qk + shape.v)
            line += f" {1e-6 * flops / us['hewn']:6.1f} TFLOP/s"
    line += "".join(f"  {name} {t:.2f}" for name, t in peers.items())
    if peers and us:
        ratio = min(peers.values()) / us["hewn"]
        line += f"  ratio {ratio:.3f} to {min(peers, key=peers.get)}"
    print(line, flush=True)
    for name, text in said.items():
        print(f"    {name}: {text}", flush=True)
    return (shape, work.bytes, min(work.host_lengths), rate, ratio) if us else None


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(title, rows):
    ratios = [r[4] for r in rows if r[4]]
    if ratios:
        print(f"== {title}: {len(rows)} shapes, {len(ratios)} with a peer: geomean {geomean(ratios):.3f}, "
              f"least {min(ratios):.3f}")
    for label, want in (("no pages or pages from 16", lambda s: s.page != 1), ("page 1", lambda s: s.page == 1)):
        rates = [r[3] for r in rows if r[1] >= 500e6 and r[2] >= 2048 and want(r[0]) and r[0].queries == 1]
        if rates:
            print(f"   500 MB or more, 2k keys or more, {label}: {len(rates)} shapes, least "
                  f"{min(rates):.2f} TB/s, mean {statistics.mean(rates):.2f}")
    sys.stdout.flush()


def selection(options):
    pool = options.pool << 30
    groups = {}
    if options.named:
        groups["named"] = list(named())
    if options.random:
        groups[f"random, seed {options.seed}"] = list(drawn(options.random, options.seed, pool, False))
    if options.e4m3:
        groups[f"e4m3, seed {options.seed}"] = list(drawn(options.e4m3, options.seed, pool, True))
    for name, make in (("tree", trees), ("chunked", chunked), ("mla", mla), ("sparse", sparse),
                       ("indexer", indexer)):
        if getattr(options, name):
            groups[name] = list(make())
    for name in groups:
        groups[name] = [s for s in groups[name] if options.only in s.text()][options.skip:options.first]
    return groups


def versions():
    print(torch.cuda.get_device_name(0), "torch", torch.__version__, "cuDNN", torch.backends.cudnn.version())
    for name in ("cudnn", "flashinfer"):
        try:
            print(name, __import__(name).__version__)
        except Exception as error:  # a broken package raises anything
            print(name, "is missing:", short(error))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("library")
    for name in ("random", "e4m3"):
        parser.add_argument("--" + name, type=int, default=0)
    for name in ("tree", "chunked", "mla", "sparse", "indexer", "named", "list"):
        parser.add_argument("--" + name, action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pool", type=int, default=24)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--first", type=int, default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--ways", default="")
    options = parser.parse_args()
    groups = selection(options)
    if options.list:
        for shapes in groups.values():
            for shape in shapes:
                print(shape.text())
        return
    global torch
    import torch
    import peers
    import peers_indexer
    import peers_sparse
    versions()
    library = peers.library(options.library)
    chosen = options.ways.split(",") if options.ways else None
    with torch.inference_mode():
        for title, shapes in groups.items():
            make_work, ways = {
                "mla": (Work, peers.mla_ways), "sparse": (peers_sparse.Work, peers_sparse.ways),
                "indexer": (peers_indexer.Work, peers_indexer.ways),
            }.get(title, (Work, peers.attention_ways))
            makers = ways(library)
            makers = {n: m for n, m in makers.items() if not chosen or n in chosen or n == "hewn"}
            rows = []
            for shape in shapes:
                rows.append(measure(shape, makers, options.pool << 30, make_work))
                torch.cuda.empty_cache()
            summary(title, [row for row in rows if row])


if __name__ == "__main__":
    main()
