"""Launches one kernel of mlc-ai/tirx-kernels, compiled by its own compiler, for tests/bench/model.sh.

    PYTHONPATH=CLONE python tirx_time.py bf16|fp8|nvfp4 M N K
    PYTHONPATH=CLONE python tirx_time.py attention ROWS HEADS KEY_HEADS full|causal

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


def bf16(m, n, k):
    from tirx_kernels.gemm import fp16_bf16_gemm

    shapes = (m, k), (n, k), (m, n)
    return fp16_bf16_gemm.get_kernel("bf16", m, n, k), [numpy.zeros(s, ml_dtypes.bfloat16) for s in shapes]


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


def attention(rows, heads, key_heads, mask):
    from tirx_kernels.attention import flash_attention4

    # The kernel gives tensor memory back while other warps still use it, which ends a launch here. Left out, it ends with its CTA.
    flash_attention4.T.TMEMPool.dealloc = lambda self: None
    draw = numpy.random.default_rng(18)
    kernel = flash_attention4.get_kernel(1, rows, heads, key_heads, 128, is_causal=mask == "causal")
    shapes = [(1, rows, count, 128) for count in (heads, key_heads, key_heads, heads)]
    return kernel, [draw.standard_normal(shape).astype(numpy.float16) for shape in shapes]


words = [int(word) if word.isdigit() else word for word in sys.argv[2:]]
with tvm.target.Target("cuda"):
    kernel, arrays = {"bf16": bf16, "fp8": fp8, "nvfp4": nvfp4, "attention": attention}[sys.argv[1]](*words)
    program = compile_kernel(kernel)
    gpu = tvm.cuda(0)
    try:
        program(*[tvm.runtime.tensor(array, device=gpu) for array in arrays])
        gpu.sync()
    except tvm.error.InternalError as error:
        # Attention gives tensor memory back while other warps use it, which is a finding; it runs to its end all the same.
        print(error)
        sys.stdout.flush()
os._exit(0)
