#!/usr/bin/env python3
"""hewn attention from files, against float64: attention_cli.py HEWN FOLDER.

Standard library only. Arrays are small; each option is in at least one case. Tolerance of an element:
P is rounded to the input type (2^-9 of bf16, 2^-12 of f16, of weights that sum to at most 1), the scores
and sums are fp32, the result is rounded to its type."""
import array
import math
import os
import random
import struct
import subprocess
import sys

HEWN, FOLDER = sys.argv[1], sys.argv[2]
NPY = {"f32": "<f4", "f16": "<f2", "bf16": "<V2", "i32": "<i4"}
DTYPES = {"e4m3": "F8_E4M3"}
ULP = {"f32": 2.0 ** -23, "f16": 2.0 ** -11, "bf16": 2.0 ** -8}


def e4m3(code):
    exponent, fraction = code >> 3 & 15, code & 7
    size = (8 + fraction) * 2.0 ** (exponent - 10) if exponent else fraction * 2.0 ** -9
    return -size if code & 128 else size


CODES = {e4m3(code): code for code in range(255) if code != 127}


def to_bytes(kind, values):
    if kind == "i32":
        return struct.pack("<%di" % len(values), *values)
    if kind == "e4m3":
        return bytes(CODES[x] for x in values)
    if kind == "f16":
        return struct.pack("<%de" % len(values), *values)
    data = struct.pack("<%df" % len(values), *values)
    if kind == "bf16":
        words = struct.unpack("<%dI" % len(values), data)
        data = struct.pack("<%dH" % len(values), *((w + 0x7FFF + (w >> 16 & 1)) >> 16 for w in words))
    return data


def from_bytes(kind, data):
    if kind == "bf16":
        words = array.array("H", data)
        data = array.array("I", (w << 16 for w in words)).tobytes()
    code = "e" if kind == "f16" else "f"
    return list(struct.unpack("<%d%s" % (len(data) // (2 if kind == "f16" else 4), code), data))


def rounded(kind, values):
    if kind == "e4m3":
        return [min(CODES, key=lambda x: abs(x - y)) for y in values]
    return from_bytes(kind, to_bytes(kind, values))


def write_npy(name, kind, shape, values):
    text = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (NPY[kind], tuple(shape))
    text = text.ljust(118 - 1) + "\n"
    path = "%s/%s" % (FOLDER, name)
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + to_bytes(kind, values))
    return path


def read_npy(path, kind):
    data = open(path, "rb").read()
    length, = struct.unpack("<H", data[8:10])
    header = data[10:10 + length].decode()
    assert "'%s'" % NPY[kind] in header, header
    shape = [int(x) for x in header.split("(")[1].split(")")[0].split(",") if x.strip()]
    return shape, from_bytes(kind, data[10 + length:])


def write_safetensors(name, tensors):
    entries, data = ['"__metadata__":{"format":"np"}'], b""
    for key, (kind, shape, values) in tensors.items():
        piece = to_bytes(kind, values)
        entries.append('"%s":{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}' %
                       (key, DTYPES.get(kind, kind.upper()), list(shape), len(data), len(data) + len(piece)))
        data += piece
    header = ("{" + ",".join(entries) + "}").encode()
    path = "%s/%s" % (FOLDER, name)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + data)
    return path


class Case:
    def __init__(self, b, s, t, heads, kv, d, v_dim=0, kind="f32", into=None, out="f32", bhsd=False,
                 causal=False, window=(-1, -1), scale=0.0, softcap=0.0, sink=False, splits=0,
                 safetensors=False, invariant=False, gpu="b200", lengths=None, page=0, cache=None,
                 k_scale=0.0, v_scale=0.0):
        self.__dict__.update(locals())
        self.v_dim = v_dim or d
        self.into = into or ("f16" if kind == "f16" else "bf16")

    def shape(self, length, heads, dim):
        return (self.b, heads, length, dim) if self.bhsd else (self.b, length, heads, dim)

    def at(self, length, heads, dim, b, i, h):
        return ((b * heads + h) * length + i if self.bhsd else (b * length + i) * heads + h) * dim

    def keys(self, b):
        return self.lengths[b] if self.lengths else self.t

    def sees(self, b, i, j):
        p, (left, right) = i + self.keys(b) - self.s, self.window
        return ((left < 0 or j >= p - left) and (right < 0 or j <= p + right) and
                not (self.causal and j > p))

    def row(self, q, k, v, sink, b, i, h):
        """O and lse of one row, in float64."""
        g = h // (self.heads // self.kv)
        at = self.at(self.s, self.heads, self.d, b, i, h)
        query = q[at:at + self.d]
        scores = {}
        for j in filter(lambda j: self.sees(b, i, j), range(self.keys(b))):
            at = self.at(self.t, self.kv, self.d, b, j, g)
            scores[j] = math.fsum(map(float.__mul__, query, k[at:at + self.d])) * \
                (self.scale or self.d ** -0.5)
        if self.softcap:
            scores = {j: self.softcap * math.tanh(x / self.softcap) for j, x in scores.items()}
        extra = [sink[h]] if sink else []
        if not scores and not extra:
            return [0.0] * self.v_dim, -math.inf
        most = max(list(scores.values()) + extra)
        weights = {j: math.exp(x - most) for j, x in scores.items()}
        total = math.fsum(list(weights.values()) + [math.exp(x - most) for x in extra])
        o = [0.0] * self.v_dim
        for j, w in weights.items():
            at = self.at(self.t, self.kv, self.v_dim, b, j, g)
            for c, x in enumerate(v[at:at + self.v_dim]):
                o[c] += w * x / total
        return o, most + math.log(total)

    def pool(self, values, heads, dim, table):
        """The sequences of K or V as pages in a pool; rows that no sequence has are large."""
        pages = [[100.0] * (self.page * heads * dim) for _ in range(max(map(max, table)) + 2)]
        for b, entries in enumerate(table):
            for j in range(self.keys(b)):
                for h in range(heads):
                    at = self.at(self.t, heads, dim, b, j, h)
                    if self.bhsd:
                        to = (h * self.page + j % self.page) * dim
                    else:
                        to = (j % self.page * heads + h) * dim
                    pages[entries[j // self.page]][to:to + dim] = values[at:at + dim]
        shape = (heads, self.page, dim) if self.bhsd else (self.page, heads, dim)
        return (len(pages), *shape), [x for page in pages for x in page]

    def tables(self, r):
        """The options of lengths and pages, and the table."""
        if not self.lengths:
            return [], None
        options = ["--lengths", write_npy("lengths.npy", "i32", (self.b,), self.lengths)]
        if not self.page:
            return options, None
        width = -(-max(self.lengths) // self.page)
        numbers = r.sample(range(self.b * width + 2), self.b * width)
        table = [numbers[b * width:(b + 1) * width] for b in range(self.b)]
        options += ["--table", write_npy("table.npy", "i32", (self.b, width), numbers)]
        return options, table

    def files(self, arrays, table):
        kinds = [self.kind, self.cache or self.kind, self.cache or self.kind]
        shapes = [self.shape(self.s, self.heads, self.d), self.shape(self.t, self.kv, self.d),
                  self.shape(self.t, self.kv, self.v_dim)]
        if table:
            for i, dim in (1, self.d), (2, self.v_dim):
                shapes[i], arrays[i] = self.pool(arrays[i], self.kv, dim, table)
                arrays[i] = [min(x, 100.0) for x in arrays[i]]
        if self.safetensors:
            return [write_safetensors("in.safetensors", {
                "layer.0/" + n: (kind, shape, rounded(kind, values) if kind == "e4m3" else values)
                for n, kind, shape, values in zip("vkq", kinds[::-1], shapes[::-1], arrays[::-1])}),
                "--q", "layer.0/q", "--k", "layer.0/k", "--v", "layer.0/v"]
        return [write_npy(n + ".npy", self.kind, shape, values)
                for n, shape, values in zip("qkv", shapes, arrays)]

    def run(self, r):
        counts = [self.s * self.heads * self.d, self.t * self.kv * self.d, self.t * self.kv * self.v_dim]
        arrays = [[r.gauss(0, 1) for _ in range(self.b * n)] for n in counts]
        sink = rounded("f32", [r.gauss(0, 2) for _ in range(self.heads)]) if self.sink else None
        options, table = self.tables(r)
        command = [HEWN, "attention"] + self.files(list(arrays), table) + options
        command += ["--k-scale", repr(self.k_scale)] if self.k_scale else []
        command += ["--v-scale", repr(self.v_scale)] if self.v_scale else []
        command += ["-o", FOLDER + "/o.npy", "--lse", FOLDER + "/lse.npy", "--out", self.out]
        command += ["--causal"] if self.causal else []
        command += ["--invariant"] if self.invariant else []
        command += ["--window", "%d,%d" % self.window] if self.window != (-1, -1) else []
        command += ["--scale", repr(self.scale)] if self.scale else []
        command += ["--softcap", repr(self.softcap)] if self.softcap else []
        command += ["--splits", str(self.splits)] if self.splits else []
        command += ["--layout", "bhsd"] if self.bhsd else []
        command += ["--in", self.into] if self.kind == "f32" and self.into != "bf16" else []
        command += ["--sink", write_npy("sink.npy", "f32", (self.heads,), sink)] if sink else []
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              env=dict(os.environ, HEWN_SIM_GPU=self.gpu))
        if done.returncode:
            return done.stdout.decode()
        arrays = [rounded(self.into, rounded(kind, x)) for kind, x in
                  zip([self.kind, self.cache or self.kind, self.cache or self.kind], arrays)]
        for i, scale in (1, self.k_scale), (2, self.v_scale):
            arrays[i] = [x * (scale or 1.0) for x in arrays[i]]
        return self.compare(arrays, sink)

    def compare(self, arrays, sink):
        shape, o = read_npy(FOLDER + "/o.npy", self.out)
        lse_shape, lse = read_npy(FOLDER + "/lse.npy", "f32")
        if tuple(shape) != self.shape(self.s, self.heads, self.v_dim):
            return "O has shape %s" % shape
        if lse_shape != [self.b, self.heads, self.s]:
            return "lse has shape %s" % lse_shape
        reach = max(abs(x) for x in arrays[2])  # of V
        bound = reach * (ULP[self.into] + ULP[self.out] + 2.0 ** -18)
        for b in range(self.b):
            for h in range(self.heads):
                for i in range(self.s):
                    want, want_lse = self.row(*arrays, sink, b, i, h)
                    at = self.at(self.s, self.heads, self.v_dim, b, i, h)
                    for c, x in enumerate(want):
                        if not abs(o[at + c] - x) <= bound:
                            return "O of (%d,%d,%d) column %d: want %g got %g" % (b, i, h, c, x, o[at + c])
                    got = lse[(b * self.heads + h) * self.s + i]
                    if not (got == want_lse or abs(got - want_lse) <= 1e-5 * max(1.0, abs(want_lse))):
                        return "lse of (%d,%d,%d): want %g got %g" % (b, i, h, want_lse, got)
        return None


CASES = {
    "two sequences, more keys than queries": Case(2, 3, 140, 2, 2, 64),
    "float16 files, causal, four heads on two": Case(1, 20, 20, 4, 2, 64, kind="f16", causal=True),
    "float32 files to an f16 kernel, f16 result": Case(1, 9, 30, 2, 1, 64, into="f16", out="f16"),
    "bf16 result, a scale of its own": Case(1, 9, 30, 2, 1, 64, out="bf16", scale=0.3),
    "a soft cap": Case(1, 70, 80, 2, 1, 64, scale=1.0, softcap=3.5, causal=True, gpu="h200"),
    "parts at fixed counts": Case(1, 1, 2200, 2, 1, 64, invariant=True, gpu="h200"),
    "[B,H,S,D], a window": Case(2, 12, 40, 2, 1, 64, bhsd=True, window=(5, 2)),
    "a window to the left, causal": Case(1, 30, 30, 1, 1, 96, window=(7, -1), causal=True),
    "more queries than keys: rows that see none": Case(1, 25, 10, 2, 2, 128, causal=True),
    "a sink": Case(1, 6, 40, 3, 3, 64, sink=True, causal=True),
    "a sink, and rows that see nothing else": Case(1, 8, 4, 2, 2, 64, sink=True, causal=True),
    "three splits": Case(1, 2, 300, 8, 1, 64, splits=3, causal=True),
    "V narrower than K": Case(1, 5, 20, 1, 1, 192, v_dim=128),
    "F16 tensors": Case(1, 5, 20, 2, 1, 64, kind="f16", safetensors=True),
    "BF16 tensors": Case(1, 5, 20, 2, 1, 64, kind="bf16", safetensors=True, causal=True),
    "lengths": Case(3, 1, 40, 4, 2, 64, lengths=[40, 0, 17], causal=True, gpu="h200"),
    "pages": Case(3, 2, 40, 4, 2, 64, lengths=[40, 1, 17], page=8, causal=True),
    "pages, [B,H,S,D]": Case(2, 70, 90, 2, 1, 64, lengths=[90, 71], page=16, bhsd=True, causal=True, gpu="h200"),
    "F8_E4M3 keys and values in pages": Case(2, 1, 60, 4, 2, 64, kind="bf16", cache="e4m3", lengths=[60, 33],
                                             page=16, k_scale=0.5, v_scale=3.0, safetensors=True, gpu="h200"),
    "F8_E4M3 keys and values": Case(1, 3, 70, 4, 1, 128, kind="f16", cache="e4m3", safetensors=True,
                                    causal=True, gpu="h200"),
    "F32 tensors": Case(1, 5, 20, 2, 2, 64, safetensors=True, bhsd=True),
}


# Shapes of Q, K, V (and the sink), and what must be said of them.
REFUSED = {
    "other batches": ([(2, 4, 1, 64), (1, 4, 1, 64), (1, 4, 1, 64)], "Q is (2, 4, 1, 64) and K is (1, 4, 1, 64): B must be equal"),
    "other head dimensions": ([(1, 4, 1, 64), (1, 4, 1, 128), (1, 4, 1, 128)], "D must be equal"),
    "V longer than K": ([(1, 4, 1, 64), (1, 4, 1, 64), (1, 5, 1, 64)], "K is (1, 4, 1, 64) and V is (1, 5, 1, 64): B, S and H must be equal"),
    "V of other heads": ([(1, 4, 2, 64), (1, 4, 2, 64), (1, 4, 1, 64)], "B, S and H must be equal"),
    "heads that do not divide": ([(1, 4, 3, 64), (1, 4, 2, 64), (1, 4, 2, 64)], "q_heads: 3 is not a multiple of kv_heads, 2"),
    "a head dimension without a kernel": ([(1, 4, 1, 80), (1, 4, 1, 80), (1, 4, 1, 80)], "80"),
    "a sink of other heads": ([(1, 4, 2, 64), (1, 4, 2, 64), (1, 4, 2, 64), (3,)], "holds 3 logits, Q has 2 heads"),
}


def refuse(shapes, rule):
    paths = [write_npy(n + ".npy", "f32", shape, [0.0] * math.prod(shape)) for n, shape in zip("qkvs", shapes)]
    command = [HEWN, "attention", *paths[:3], "-o", FOLDER + "/none.npy", *(["--sink", paths[3]] if paths[3:] else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    said = done.stdout.decode()
    return None if done.returncode == 1 and rule in said else "status %d, said %s" % (done.returncode, said)


def wrong(case, spoil, rule):
    """A case whose options `spoil` changes; the program names what is wrong."""
    r = random.Random(9)
    arrays = [[0.5] * (case.b * n) for n in
              (case.s * case.heads * case.d, case.t * case.kv * case.d, case.t * case.kv * case.v_dim)]
    options, table = case.tables(r)
    command = [HEWN, "attention"] + case.files(arrays, table) + spoil(options) + ["-o", FOLDER + "/none.npy"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                          env=dict(os.environ, HEWN_SIM_GPU=case.gpu))
    said = done.stdout.decode()
    return None if done.returncode in (1, 64) and rule in said else "status %d, said %s" % (done.returncode, said)


def lengths_of(values):
    return lambda options: options[:1] + [write_npy("bad.npy", "i32", (len(values),), values)] + options[2:]


def table_of(values, width):
    return lambda options: options[:3] + [write_npy("bad.npy", "i32", (len(values) // width, width), values)]


PAGED = Case(2, 1, 40, 2, 1, 64, lengths=[40, 9], page=16, gpu="h200")
WRONG = {
    "a length below 0": (PAGED, lengths_of([40, -1]), "source[0].lengths[1]: -1 is not in 0..40"),
    "a length above S": (Case(2, 1, 40, 2, 1, 64, lengths=[40, 9]), lengths_of([41, 9]), "lengths[0]: 41 is not in 0..40"),
    "a page outside the pool": (PAGED, table_of([0, 1, 99, 3, 0, 0], 3), "source[0].table[2]: page 99"),
    "a narrow table": (PAGED, table_of([0, 1, 2, 3], 2), "bad.npy"),
    "a table without lengths": (PAGED, lambda options: options[2:], "--table needs --lengths"),
    "a scale without 8-bit keys": (PAGED, lambda options: options + ["--k-scale", "2"], "are for K and V of F8_E4M3"),
    "8-bit queries": (Case(1, 1, 20, 2, 1, 64, kind="e4m3", cache="e4m3", safetensors=True), list,
                      "F8_E4M3 is for K and V, Q is F32, F16 or BF16"),
}


def main():
    r, passed, failed = random.Random(5), 0, 0
    results = [(name, case.run(r)) for name, case in CASES.items()]
    results += [(name, refuse(*what)) for name, what in REFUSED.items()]
    results += [(name, wrong(*what)) for name, what in WRONG.items()]
    for name, why in results:
        passed, failed = passed + (why is None), failed + (why is not None)
        if why:
            print("FAIL attention_cli: %s: %s" % (name, why))
    print("attention_cli: %d passed, %d failed, 0 skipped" % (passed, failed))
    return failed != 0


sys.exit(main())
