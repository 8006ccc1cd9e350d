#!/usr/bin/env python3
"""libhewn.so.0 from Python with ctypes alone: a product, an attention, an error.

    HEWN_LIBCUDA=build/sim/libcuda.so.1 HEWN_SIM_GPU=h200 python3 tests/runtime/hewn_ctypes.py LIBHEWN

The structures are those of include/hewn.h. ctypes fills a new structure with zeros, which is the default
of every field, so only struct_size and what is asked for must be set.
"""
import ctypes as c
import struct
import sys

F32, F16, BF16 = 0, 1, 2
WITH_C, WITH_BIAS, WITH_ALPHA = 1, 2, 16
ADDRESS = c.c_ulonglong


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("driver_code", c.c_int), ("message", c.c_char * 480)]


class Sized(c.Structure):
    """A structure that may grow: struct_size first."""

    def __init__(self, **fields):
        super().__init__(struct_size=c.sizeof(self), **fields)


def many(ctype, names):
    return [(name, ctype) for name in names.split()]


class DeviceInfo(Sized):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char * 96)] + many(
        c.c_int, "ordinal cc_major cc_minor sm_count max_shared_per_block shared_per_sm "
        "registers_per_sm l2_bytes clock_khz simulated") + [("memory_bytes", c.c_uint64)]


class GemmDesc(Sized):
    _fields_ = ([("struct_size", c.c_size_t)] + many(c.c_int64, "m n k batch") + many(
        c.c_int, "in_ in_b out bias_type major_a major_b accumulate act") + many(
            c.c_uint32, "with_ parts") + many(
                c.c_int64, "lda ldb ldc ldd stride_a stride_b stride_c stride_d") +
                [("variant", c.c_char_p)])


class GemmArgs(Sized):
    _fields_ = ([("struct_size", c.c_size_t)] + many(ADDRESS, "a b d c bias scale_a scale_b") +
                many(c.c_float, "alpha beta"))


class GemmInfo(Sized):
    _fields_ = ([("struct_size", c.c_size_t)] + many(c.c_char_p, "module target origin variant") +
                many(c.c_uint32 * 3, "grid block cluster") +
                many(c.c_uint32, "dynamic_shared tmem_columns tile_m tile_n tile_k stages parts"))


class Source(Sized):
    _fields_ = ([("struct_size", c.c_size_t)] + many(c.c_int, "keys causal windows") + many(
        c.c_int64, "length tokens page_size pages table_width k_token k_head k_batch v_token v_head "
        "v_batch window_back window_ahead"))


class AttentionDesc(Sized):
    _fields_ = ([("struct_size", c.c_size_t)] + many(
        c.c_int64, "batch q_heads kv_heads qk_dim v_dim q_length q_tokens q_token q_head q_batch "
        "o_token o_head o_batch") + [("scale", c.c_double)] + many(c.c_int64, "pack splits") + many(
            c.c_int, "in_ out layout q_packed sink unnormalised q_scales k_scales v_scales") +
                [("source", c.POINTER(Source) * 2)])


class SourceArgs(Sized):
    _fields_ = [("struct_size", c.c_size_t)] + many(ADDRESS, "k v lengths table windows")


class AttentionArgs(Sized):
    _fields_ = ([("struct_size", c.c_size_t)] + many(
        ADDRESS, "q o lse row_max sink q_scale k_scale v_scale cu_q workspace") +
                [("source", c.POINTER(SourceArgs) * 2)])


class Hewn:
    """The library; a call that fails raises what the library says."""

    def __init__(self, path):
        self.lib = c.CDLL(path)
        self.lib.hewn_driver_symbol.restype = c.c_void_p
        self.driver, self.context = c.c_void_p(), c.c_void_p()
        self("driver_open", None, c.byref(self.driver))
        self("context_attach_primary", self.driver, 0, c.byref(self.context))

    def __call__(self, name, *args):
        error = Error()
        if getattr(self.lib, "hewn_" + name)(*args, c.byref(error)):
            raise ValueError(error.message.decode())

    def cuda(self, symbol, *args):
        address = self.lib.hewn_driver_symbol(self.driver, symbol.encode())
        result = c.CFUNCTYPE(c.c_int, *(type(a) for a in args))(address)(*args)
        if result:
            raise RuntimeError(f"{symbol}: {result}")

    def upload(self, data):
        device = ADDRESS()
        self.cuda("cuMemAlloc_v2", c.pointer(device), c.c_size_t(len(data)))
        self.cuda("cuMemcpyHtoD_v2", device, c.c_char_p(data), c.c_size_t(len(data)))
        return device.value

    def floats(self, device, count):
        out = (c.c_float * count)()
        self.cuda("cuMemcpyDtoH_v2", c.pointer(out), ADDRESS(device), c.c_size_t(4 * count))
        return list(out)


def bf16(values):
    """Small integers, which bf16 holds exactly."""
    return b"".join(struct.pack("<f", v)[2:] for v in values)


def f32(values):
    return struct.pack(f"<{len(values)}f", *values)


def product(hewn):
    m, n, k = 24, 16, 40
    a = [i % 7 - 3 for i in range(m * k)]
    b = [i % 5 - 2 for i in range(n * k)]
    bias = [10 * j for j in range(n)]
    desc = GemmDesc(m=m, n=n, k=k, in_=BF16, out=F32, with_=WITH_BIAS | WITH_ALPHA)
    plan, info = c.c_void_p(), GemmInfo()
    hewn("gemm_plan_create", hewn.context, c.byref(desc), c.byref(plan))
    hewn("gemm_plan_describe", plan, c.byref(info))
    args = GemmArgs(a=hewn.upload(bf16(a)), b=hewn.upload(bf16(b)), d=hewn.upload(bytes(4 * m * n)),
                    bias=hewn.upload(f32(bias)), alpha=2)
    hewn("gemm_plan_run", plan, c.byref(args), None)
    want = [2 * sum(a[i * k + x] * b[j * k + x] for x in range(k)) + bias[j]
            for i in range(m) for j in range(n)]
    wrong = sum(x != y for x, y in zip(hewn.floats(args.d, m * n), want))
    hewn.lib.hewn_gemm_plan_destroy(plan)
    print(f"gemm: {m * n - wrong} of {m * n} right, {info.module.decode()} for {info.target.decode()}")
    return wrong == 0


def attention(hewn):
    """Equal keys, so O is the mean of the rows of V that a query sees."""
    dim, queries, keys = 64, 3, 5
    v = [4 * j for j in range(keys) for _ in range(dim)]
    source = Source(length=keys, causal=1)
    desc = AttentionDesc(batch=1, q_heads=1, kv_heads=1, qk_dim=dim, q_length=queries, in_=BF16,
                         out=F32, source=(c.POINTER(Source) * 2)(c.pointer(source)))
    plan = c.c_void_p()
    hewn("attention_plan_create", hewn.context, c.byref(desc), c.byref(plan))
    at = SourceArgs(k=hewn.upload(bf16([1] * (keys * dim))), v=hewn.upload(bf16(v)))
    args = AttentionArgs(q=hewn.upload(bf16([1] * (queries * dim))),
                         o=hewn.upload(bytes(4 * queries * dim)),
                         source=(c.POINTER(SourceArgs) * 2)(c.pointer(at)))
    hewn("attention_plan_run", plan, c.byref(args), None)
    o = hewn.floats(args.o, queries * dim)
    hewn.lib.hewn_attention_plan_destroy(plan)
    wrong = 0
    for i in range(queries):
        seen = keys - queries + i + 1
        want = sum(4 * j for j in range(seen)) / seen
        wrong += sum(abs(x - want) > 0.05 for x in o[i * dim:(i + 1) * dim])
    print(f"attention: {queries * dim - wrong} of {queries * dim} right")
    return wrong == 0


def refusal(hewn):
    try:
        hewn("gemm_plan_create", hewn.context, c.byref(GemmDesc(n=1, k=1, in_=BF16)),
             c.byref(c.c_void_p()))
    except ValueError as error:
        print("error:", error)
        return "m: 0" in str(error)
    return False


def main():
    hewn = Hewn(sys.argv[1])
    info = DeviceInfo()
    hewn("context_describe_device", hewn.context, c.byref(info))
    version = hewn.lib.hewn_version()
    print(f"hewn {version // 10000}.{version // 100 % 100}.{version % 100} on {info.name.decode()}, "
          f"{info.sm_count} SMs")
    good = [product(hewn), attention(hewn), refusal(hewn)]
    hewn.lib.hewn_context_detach(hewn.context)
    hewn.lib.hewn_driver_close(hewn.driver)
    return not all(good)


if __name__ == "__main__":
    sys.exit(main())
