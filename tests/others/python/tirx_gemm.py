"""mlc-ai/tirx-kernels' dense GEMM, compiled by its own compiler, on TVM's own runtime; every element against float64.

    PYTHONPATH=CLONE python tirx_gemm.py [M N K]     prints PASS

The half-steps of rule: sums in fp32, relative 2^-23 of the sum of |a b| for each product, and the rounding to f16.
"""
import sys

import numpy
import tvm
from tirx_kernels.gemm import fp16_bf16_gemm
from tirx_kernels.runner import compile_kernel

m, n, k = (int(word) for word in sys.argv[1:4]) if len(sys.argv) > 3 else (1024, 1024, 1024)
draw = numpy.random.default_rng(18)
a, b = (draw.uniform(-1, 1, shape).astype(numpy.float16) for shape in ((m, k), (n, k)))
gpu = tvm.cuda(0)
with tvm.target.Target("cuda"):
    program = compile_kernel(fp16_bf16_gemm.get_kernel("fp16", m, n, k))
    operands = [tvm.runtime.tensor(x, device=gpu) for x in (a, b, numpy.full((m, n), numpy.nan, numpy.float16))]
    program(*operands)
    gpu.sync()
got = operands[2].numpy().astype(numpy.float64)
wide = a.astype(numpy.float64), b.astype(numpy.float64)
want = wide[0] @ wide[1].T
bound = 2.0**-23 * k * (abs(wide[0]) @ abs(wide[1]).T) + 2.0**-11 * abs(want) + 2.0**-24
worst = numpy.max(abs(got - want) / bound)
print(f"{m} x {n} x {k}: the largest error is {worst:.3f} of its bound")
print("PASS" if worst <= 1 else "FAIL")
sys.exit(not worst <= 1)
