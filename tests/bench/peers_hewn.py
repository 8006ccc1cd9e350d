"""libhewn.so.0 for the peers' benches: structures read from include/hewn.h, so that they are always its own.

    HEWN_LIBCUDA=build/sim/libcuda.so.1 HEWN_SIM_GPU=h200 python3 tests/bench/peers_hewn.py LIBHEWN

runs a small attention and a small MLA, and says whether they are right.
"""
import ctypes as c
import os
import re
import struct
import sys

F32, F16, BF16, E4M3 = 0, 1, 2, 3
LENGTHS, PACKED = 1, 2
PREFILL, DECODE = 1, 2
HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include/hewn.h")
TYPES = {
    "size_t": c.c_size_t, "int": c.c_int, "int32_t": c.c_int32, "uint32_t": c.c_uint32,
    "int64_t": c.c_int64, "uint64_t": c.c_uint64, "float": c.c_float, "double": c.c_double,
    "char": c.c_char, "hewn_deviceptr": c.c_ulonglong,
}


def field(ctype, text):
    """`*name[count]` as (name, ctypes type)."""
    match = re.fullmatch(r"\s*(\**)\s*(\w+)\s*(?:\[(\d+)\])?\s*", text)
    stars, name, count = match.groups()
    kind = c.c_void_p if stars else ctype
    return name, kind * int(count) if count else kind


def fields(body, known):
    for line in body.split(";"):
        match = re.match(r"\s*(?:const\s+)?(?:struct\s+)?(\w+)\s*(.*)", line, re.S)
        if match:
            ctype = known.get(match[1])
            for text in match[2].split(","):
                yield field(ctype, text)


def structures(path=HEADER):
    """Every `typedef struct hewn_x {...} hewn_x;` of the header. A pointer is a plain address."""
    text = re.sub(r"/\*.*?\*/", "", open(path, encoding="utf-8").read(), flags=re.S)
    known = dict(TYPES)
    for name, body in re.findall(r"typedef struct (hewn_\w+) \{(.*?)\} \1;", text, re.S):
        if "(" not in body:  # no function pointers, no HEWN_ALIGNED_64
            try:
                known[name] = type(name, (c.Structure,), {"_fields_": list(fields(body, known))})
            except (TypeError, AttributeError):
                continue  # a structure that no bench needs
    return known


class Hewn:
    """The library; a call that fails raises what the library says."""

    def __init__(self, path):
        self.lib, self.types = c.CDLL(path), structures()
        self.lib.hewn_driver_symbol.restype = c.c_void_p
        self.driver, self.context = c.c_void_p(), c.c_void_p()
        self("driver_open", None, c.byref(self.driver))
        self("context_attach_primary", self.driver, 0, c.byref(self.context))

    def __call__(self, name, *args):
        error = self.types["hewn_error"]()
        if getattr(self.lib, "hewn_" + name)(*args, c.byref(error)):
            raise ValueError(error.message.decode())

    def new(self, name, **values):
        kind = self.types["hewn_" + name]
        unknown = set(values) - {name for name, _ in kind._fields_}
        if unknown:
            raise ValueError(f"hewn_{name} has no {', '.join(sorted(unknown))}")
        return kind(struct_size=c.sizeof(kind), **values)

    def plan(self, family, desc):
        return Plan(self, family, desc)


class Plan:
    """A plan of a family. `keep` holds what its structures point to."""

    def __init__(self, hewn, family, desc):
        self.hewn, self.family, self.handle = hewn, family, c.c_void_p()
        hewn(family + "_plan_create", hewn.context, c.byref(desc), c.byref(self.handle))
        self.info = hewn.new(family + "_plan_info")
        hewn(family + "_plan_describe", self.handle, c.byref(self.info))
        self.call = getattr(hewn.lib, f"hewn_{family}_plan_run")
        self.error = hewn.types["hewn_error"]()

    def run(self, args, stream):
        if self.call(self.handle, c.byref(args), c.c_void_p(stream), c.byref(self.error)):
            raise ValueError(self.error.message.decode())

    def close(self):
        getattr(self.hewn.lib, f"hewn_{self.family}_plan_destroy")(self.handle)


def pair(*structs):
    """The `source` field of hewn_attention_desc and _args."""
    return (c.c_void_p * 2)(*(c.addressof(s) for s in structs))


# ---- the self-test


def upload(hewn, data):
    device = c.c_ulonglong()
    for symbol, args in (("cuMemAlloc_v2", (c.pointer(device), c.c_size_t(len(data)))),
                         ("cuMemcpyHtoD_v2", (device, c.c_char_p(data), c.c_size_t(len(data))))):
        address = hewn.lib.hewn_driver_symbol(hewn.driver, symbol.encode())
        if c.CFUNCTYPE(c.c_int, *(type(a) for a in args))(address)(*args):
            raise RuntimeError(symbol)
    return device.value


def workspace(hewn, plan):
    return upload(hewn, bytes(plan.info.workspace)) if plan.info.workspace else 0


def means(hewn, o, rows, dim, want):
    """Whether all of a row of O equals what was wanted of it, a mean of values."""
    out = (c.c_float * (rows * dim))()
    address = hewn.lib.hewn_driver_symbol(hewn.driver, b"cuMemcpyDtoH_v2")
    copy = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_ulonglong, c.c_size_t)(address)
    copy(c.cast(out, c.c_void_p), o, 4 * rows * dim)
    return all(abs(x - want) < 0.05 for x in out)


def halves(values):
    return b"".join(struct.pack("<f", v)[2:] for v in values)


def main():
    hewn = Hewn(sys.argv[1])
    keys, dim, good = 7, 64, []
    source = hewn.new("attention_source", length=keys, keys=LENGTHS)
    desc = hewn.new("attention_desc", batch=1, q_heads=2, kv_heads=1, qk_dim=dim, q_length=1,
                    source=pair(source), **{"in": BF16})
    plan = hewn.plan("attention", desc)
    lengths = upload(hewn, struct.pack("<i", keys))
    at = hewn.new("attention_source_args", k=upload(hewn, halves([1] * keys * dim)), lengths=lengths,
                  v=upload(hewn, halves(j for j in range(keys) for _ in range(dim))))
    args = hewn.new("attention_args", q=upload(hewn, halves([1] * 2 * dim)), source=pair(at),
                    o=upload(hewn, bytes(4 * 2 * dim)), workspace=workspace(hewn, plan))
    plan.run(args, None)
    good.append(means(hewn, args.o, 2, dim, (keys - 1) / 2))
    desc = hewn.new("mla_desc", batch=1, q_heads=2, q_length=1, length=keys, lengths=1, **{"in": BF16})
    plan = hewn.plan("mla", desc)
    args = hewn.new("mla_args", q=upload(hewn, bytes(2 * 2 * 576)), lengths=lengths,
                    workspace=workspace(hewn, plan), o=upload(hewn, bytes(4 * 2 * 512)),
                    kv=upload(hewn, halves(j for j in range(keys) for _ in range(576))))
    plan.run(args, None)
    good.append(means(hewn, args.o, 2, 512, (keys - 1) / 2))
    print("attention, MLA:", good)
    return not all(good)


if __name__ == "__main__":
    sys.exit(main())
