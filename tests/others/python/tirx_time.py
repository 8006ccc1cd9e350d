"""Launches one kernel of mlc-ai/tirx-kernels, compiled by its own compiler, for tests/bench/model.sh.

    PYTHONPATH=CLONE python tirx_time.py bf16|f16|fp8|nvfp4 M N K
    PYTHONPATH=CLONE python tirx_time.py grouped GROUPS M N K              e4m3, groups of about M rows
    PYTHONPATH=CLONE python tirx_time.py attention ROWS HEADS KEY_HEADS full|causal
    PYTHONPATH=CLONE python tirx_time.py mqa QUERIES KEYS HEADS SIZE       an indexer's logits, e4m3
    PYTHONPATH=CLONE python tirx_time.py hc M N K                          tf32, with the rows' squares

Products are of zeros; attention's operands are random, because its kernel branches on them. Results are not looked at.
"""
import os
import sys
import types

import ml_dtypes
import numpy

# The kernels' modules import these for their own checks and peers.
for name, members in (
    ("deep_gemm", ()),
    ("deep_gemm.utils", ()),
    ("deep_gemm.utils.math", ("per_block_cast_to_fp8", "per_token_cast_to_fp8")),
    ("flashinfer", ("SfLayout", "nvfp4_quantize")),
):
    sys.modules[name] = types.ModuleType(name)
    for member in members:
        setattr(sys.modules[name], member, None)

import tvm
import tvm.s_tir.analysis
from tirx_kernels.runner import compile_kernel

# TVM 0.27.0.post1 finds the fp8 kernel's own helper ill-formed; the kernel it makes is right.
tvm.s_tir.analysis.verify_well_formed = lambda *_, **__: True


def product(name, dtype, m, n, k):
    from tirx_kernels.gemm import fp16_bf16_gemm

    shapes = (m, k), (n, k), (m, n)
    return fp16_bf16_gemm.get_kernel(name, m, n, k), [numpy.zeros(s, dtype) for s in shapes]


def bf16(m, n, k):
    return product("bf16", ml_dtypes.bfloat16, m, n, k)


def f16(m, n, k):
    return product("fp16", numpy.float16, m, n, k)


def fp8(m, n, k):
    from tirx_kernels.gemm import fp8_blockwise_gemm

    operands = [numpy.zeros((rows, k), ml_dtypes.float8_e4m3fn) for rows in (m, n)]
    scales = [numpy.zeros((-(-k // 128) // 4, rows), numpy.uint32) for rows in (m, n)]
    return fp8_blockwise_gemm.get_kernel(m, n, k), operands + scales + [numpy.zeros((m, n), ml_dtypes.bfloat16)]


def nvfp4(m, n, k):
    from tirx_kernels.gemm import nvfp4_gemm

    operands = [numpy.zeros((rows, k // 2), numpy.uint8) for rows in (m, n)]
    scales = [numpy.zeros((rows, k // 16), numpy.uint8) for rows in (m, n)]
    rest = [numpy.ones(1, numpy.float32), numpy.zeros((m, n), ml_dtypes.bfloat16)]
    return nvfp4_gemm.get_kernel(m, n, k), operands + scales + rest


def grouped(groups, m, n, k):
    from tirx_kernels.gemm import grouped_fp8_gemm_contiguous as module

    asked = {"num_groups": groups, "expected_m_per_group": m, "N": n, "K": k}
    seed = next((c["seed"] for c in module.BENCH_CONFIGS if asked.items() <= c.items()), 0)
    actual, aligned = module._make_actual_ms(groups, m, seed)
    layout = numpy.full(sum(aligned), -1, numpy.int32)
    for group, (count, start) in enumerate(zip(actual, numpy.cumsum([0] + aligned))):
        layout[start : start + count] = group
    rows = len(layout)
    operands = [numpy.zeros(shape, ml_dtypes.float8_e4m3fn) for shape in ((rows, k), (groups, n, k))]
    scales = [numpy.zeros(shape, numpy.uint32) for shape in ((k // 512, rows), (groups, k // 512, n))]
    return module.get_kernel(groups, n, k, M=rows), operands + scales + [numpy.zeros((rows, n), ml_dtypes.bfloat16), layout]


def mqa(queries, keys, heads, size):
    """The first chunk and its mirror of context parallelism, as the baseline's dense_cp."""
    from tirx_kernels.deepgemm import mqa_logits_fp8 as module

    config = {"num_heads": heads, "head_dim": size, "logits_dtype": "float32", "compressed_logits": False}
    kernel = module.get_kernel(seq_len=128 // heads, seq_len_kv=256, disable_cp=True, num_sms=148, logits_stride_override=None, **config)
    chunk, parts = queries // 2, keys // queries
    first, last = parts // 3 * chunk, (2 * parts - 1 - parts // 3) * chunk
    ends = numpy.concatenate([numpy.arange(at, at + chunk, dtype=numpy.int32) for at in (first, last)])
    stride = (keys + 256 + 7) // 8 * 8
    return kernel, [
        *(queries, keys, 0, stride),
        *(numpy.zeros(queries, numpy.int32), ends),
        numpy.zeros((queries, stride), numpy.float32),
        numpy.zeros((queries * heads, size), numpy.uint8),
        numpy.zeros((keys, size), numpy.uint8),
        numpy.zeros(keys, numpy.float32),
        numpy.zeros((queries, heads), numpy.float32),
    ]


def hc(m, n, k):
    from tirx_kernels.deepgemm import tf32_hc_prenorm_gemm as module

    kernel = module.get_kernel(m=m, n=n, k=k, num_splits=1, seed=0, num_sms=148)
    tvm.register_global_func("tvm_callback_cuda_postproc", lambda code, _: module._tf32_hc_cuda_postproc(code), override=True)
    shapes = ((m, k), ml_dtypes.bfloat16), ((n, k), numpy.float32), ((m, n), numpy.float32), ((m,), numpy.float32)
    return kernel, [m, *(numpy.zeros(*shape) for shape in shapes)]


def attention(rows, heads, key_heads, mask):
    from tirx_kernels.attention import flash_attention4

    # The kernel gives tensor memory back while other warps still use it, which ends a launch here. Left out, it ends with its CTA.
    flash_attention4.T.TMEMPool.dealloc = lambda self: None
    draw = numpy.random.default_rng(18)
    kernel = flash_attention4.get_kernel(1, rows, heads, key_heads, 128, is_causal=mask == "causal")
    shapes = [(1, rows, count, 128) for count in (heads, key_heads, key_heads, heads)]
    return kernel, [draw.standard_normal(shape).astype(numpy.float16) for shape in shapes]


KERNELS = {f.__name__: f for f in (bf16, f16, fp8, nvfp4, grouped, attention, mqa, hc)}
words = [int(word) if word.isdigit() else word for word in sys.argv[2:]]
with tvm.target.Target("cuda"):
    kernel, arrays = KERNELS[sys.argv[1]](*words)
    program = compile_kernel(kernel)
    gpu = tvm.cuda(0)
    try:
        program(*[a if isinstance(a, int) else tvm.runtime.tensor(a, device=gpu) for a in arrays])
        gpu.sync()
    except tvm.error.InternalError as error:
        # Attention gives tensor memory back while other warps use it, which is a finding; it runs to its end all the same.
        print(error)
        sys.stdout.flush()
os._exit(0)
