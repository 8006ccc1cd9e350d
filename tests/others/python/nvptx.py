"""Kernels compiled by clang's NVPTX back end, at -O0 and -O2, on the driver that LD_LIBRARY_PATH names; NumPy judges.

    CLANG=clang++ python nvptx.py [NAME]…

Each kernel is a few lines of C++ with one array in and one out, and the same thing in NumPy with float64 (or exact
integers). No header of CUDA is needed. The last line counts; exit status 1: some value is wrong, or a text is refused.
"""
import ctypes
import os
import subprocess
import sys
import tempfile

import numpy as np

N, THREADS = 1024, 128
HEAD = """
#define GLOBAL extern "C" __attribute__((global)) void
#define DEVICE __attribute__((device))
#define NOINLINE __attribute__((device, noinline))
#define SHARED __attribute__((shared))
#define T __nvvm_read_ptx_sreg_tid_x()
#define B __nvvm_read_ptx_sreg_ctaid_x()
#define I (B * 128 + T)
#define SYNC __nvvm_bar_sync(0)
typedef unsigned u32; typedef unsigned long long u64;
"""
F, U = np.float32, np.uint32


def blocks(x):
    return x.reshape(-1, THREADS)


def collatz(x):
    out = np.zeros(N, np.int64)
    v = (x % 1000 + 1).astype(np.int64)
    for _ in range(400):
        out += v != 1
        v = np.where(v == 1, 1, np.where(v % 2, 3 * v + 1, v // 2))
    return out


def life(x):
    grid = (x & 1).reshape(32, 32).astype(int)
    around = sum(np.roll(np.roll(grid, a, 0), b, 1) for a in (-1, 0, 1) for b in (-1, 0, 1)) - grid
    return ((around == 3) | ((around == 2) & (grid == 1))).astype(int).ravel()


def xorshift(x):
    v = x.astype(np.uint64) | np.uint64(1)
    for _ in range(16):
        v ^= v << np.uint64(13)
        v ^= v >> np.uint64(7)
        v ^= v << np.uint64(17)
    return v >> np.uint64(32)


def switch(x):
    k = x % 7
    y = (x >> 8).astype(np.int64)
    return np.select([k == i for i in range(7)], [y + 1, y * 3, y ^ 0x55, y // 5, 7 - y, y % 11, y << 2]) & 0xffffffff


# name: type, the body of the kernel (x in, y out), what it computes
KERNELS = {
    "axpy": (F, "y[I] = 2.5f * x[I] + 1;", lambda x: 2.5 * x + 1),
    "horner": (F, "double v = x[I], s = 0; for (int k = 9; k >= 0; k--) s = s * v + 1.0 / (k + 1); y[I] = s;",
               lambda x: sum(x**k / (k + 1) for k in range(10))),
    "divide": (F, "y[I] = x[I] / (x[(I + 1) % 1024] + 4.0f);", lambda x: x / (np.roll(x, -1) + 4)),
    "root": (F, "y[I] = __nvvm_sqrt_rn_f(x[I] * x[I] + 1);", lambda x: np.sqrt(x * x + 1)),
    "stencil": (F, "float s = 0; for (int k = -3; k <= 3; k++) { int i = (int)I + k; if (i >= 0 && i < 1024) s += x[i]; } y[I] = s;",
                lambda x: np.convolve(x, np.ones(7), "same")),
    "reverse": (F, "SHARED static float s[128]; s[T] = x[I]; SYNC; y[I] = s[127 - T];",
                lambda x: blocks(x)[:, ::-1].ravel()),
    "total": (F, "SHARED static float s[128]; s[T] = x[I]; for (int d = 64; d; d >>= 1) { SYNC; if (T < d) s[T] += s[T + d]; }"
              " SYNC; y[I] = s[0];", lambda x: np.repeat(blocks(x).sum(1), THREADS)),
    "prefix": (F, "SHARED static float s[128]; s[T] = x[I]; for (int d = 1; d < 128; d *= 2) { SYNC; float v = T >= d ? s[T - d] : 0;"
               " SYNC; s[T] += v; } y[I] = s[T];", lambda x: np.cumsum(blocks(x), 1).ravel()),
    "product": (F, "float s = 0; int r = I / 32, c = I % 32; for (int k = 0; k < 32; k++) s += x[r * 32 + k] * x[k * 32 + c]; y[I] = s;",
                lambda x: (x.reshape(32, 32) @ x.reshape(32, 32)).ravel()),
    "transpose": (F, "SHARED static float s[32][33]; for (int k = T; k < 1024; k += 128) s[k / 32][k % 32] = x[k]; SYNC;"
                  " y[I] = s[I % 32][I / 32];", lambda x: x.reshape(32, 32).T.ravel()),
    "sort": (F, "SHARED static float s[128]; s[T] = x[I]; for (u32 k = 2; k <= 128; k *= 2) for (u32 j = k / 2; j; j /= 2) { SYNC;"
             " u32 o = T ^ j; if (o > T) { float a = s[T], b = s[o]; if ((a > b) == !(T & k)) { s[T] = b; s[o] = a; } } } SYNC;"
             " y[I] = s[T];", lambda x: np.sort(blocks(x), 1).ravel()),
    "shuffle": (F, "float v = x[I]; for (int d = 16; d; d >>= 1) v += __nvvm_shfl_sync_down_f32(~0u, v, d, 31);"
                " y[I] = __nvvm_shfl_sync_idx_f32(~0u, v, 0, 31);", lambda x: np.repeat(x.reshape(-1, 32).sum(1), 32)),
    "normal": (F, "float m = 0, q = 0; int r = I / 32 * 32; for (int k = 0; k < 32; k++) m += x[r + k]; m /= 32;"
               " for (int k = 0; k < 32; k++) q += (x[r + k] - m) * (x[r + k] - m); y[I] = (x[I] - m) / __nvvm_sqrt_rn_f(q / 32 + 1e-3f);",
               lambda x: ((r := x.reshape(-1, 32)) - r.mean(1, keepdims=True)).ravel()
               / np.sqrt(np.repeat(r.var(1), 32) + 1e-3)),
    "calls": (F, "y[I] = f(x[I], 3);", lambda x: ((x * 2 + 1) * 2 + 1) * 2 + 1,
              "NOINLINE float f(float v, int n) { while (n--) v = v * 2 + 1; return v; }"),
    "pointers": (F, "y[I] = table[I % 3](x[I]);", lambda x: np.select([np.arange(N) % 3 == i for i in range(3)], [x + 1, x * x, -x]),
                 "NOINLINE float f0(float v) { return v + 1; } NOINLINE float f1(float v) { return v * v; }"
                 " NOINLINE float f2(float v) { return -v; } typedef float (*call)(float); DEVICE call table[3] = {f0, f1, f2};"),
    "local": (F, "float a[16]; for (int k = 0; k < 16; k++) a[k] = x[(I + k) % 1024] * k; y[I] = a[(int)I * 7 % 16] + a[I % 5];",
              lambda x: (g := lambda k: np.roll(x, 0)[(np.arange(N) + k) % N] * k)(np.arange(N) * 7 % 16) + g(np.arange(N) % 5)),
    "structs": (F, "struct { float a; int b; double c; } s[4]; for (int k = 0; k < 4; k++) { s[k].a = x[I] + k; s[k].b = k; s[k].c = k * 0.5; }"
                " int i = I & 3; y[I] = s[i].a * s[i].b + s[3 - i].c;",
                lambda x: (x + (i := np.arange(N) % 4)) * i + (3 - i) * 0.5),
    "constant": (F, "y[I] = weights[I % 5] * x[I];", lambda x: np.array([.5, .25, 2, -1, 3])[np.arange(N) % 5] * x,
                 "__attribute__((constant)) float weights[5] = {.5f, .25f, 2, -1, 3};"),
    "histogram": (U, "__nvvm_atom_add_gen_i((int *)y + x[I] % 64, 1);", lambda x: np.bincount(x % 64, minlength=N)),
    "exchange": (U, "u32 *p = y + x[I] % 16, o = *(volatile u32 *)p, e; do { e = o; o = __nvvm_atom_cas_gen_i((int *)p, e, e > x[I] ? e : x[I]); }"
                 " while (o != e);", lambda x: np.array([x[x % 16 == i].max() if i < 16 else 0 for i in range(N)])),
    "bits": (U, "u32 v = x[I]; y[I] = __builtin_popcount(v) * 1000000 + __builtin_clz(v | 1) * 1000 + __builtin_bitreverse32(v) % 1000;",
             lambda x: np.array([bin(v).count("1") * 10**6 + (32 - (v | 1).bit_length()) * 1000 + int(f"{v:032b}"[::-1], 2) % 1000
                                 for v in map(int, x)])),
    "wide": (U, "u64 v = x[I] * 0x9E3779B97F4A7C15ull; v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9ull; y[I] = v / 1000003 ^ v % 977;",
             lambda x: np.array([((w := (v ^ v >> 30) * 0xBF58476D1CE4E5B9 % 2**64) // 1000003 ^ w % 977) & 0xffffffff
                                 for v in (int(k) * 0x9E3779B97F4A7C15 % 2**64 for k in x)])),
    "signed": (U, "int v = (int)x[I]; y[I] = v / 7 + v % 13 + (v >> 3);",
               lambda x: np.array([int(v / 7) + int(np.fmod(v, 13)) + (v >> 3) for v in map(int, x.astype(np.int32))]) & 0xffffffff),
    "gcd": (U, "u32 a = x[I] % 5000 + 1, b = x[(I + 1) % 1024] % 5000 + 1; while (b) { u32 t = a % b; a = b; b = t; } y[I] = a;",
            lambda x: np.gcd(x % 5000 + 1, np.roll(x, -1) % 5000 + 1)),
    "collatz": (U, "u32 v = x[I] % 1000 + 1, n = 0; while (v != 1 && n < 400) { v = v & 1 ? 3 * v + 1 : v >> 1; n++; } y[I] = n;", collatz),
    "life": (U, "int r = I / 32, c = I % 32, n = 0; for (int a = -1; a <= 1; a++) for (int b = -1; b <= 1; b++) if (a || b)"
             " n += x[(r + a & 31) * 32 + (c + b & 31)] & 1; y[I] = n == 3 || (n == 2 && x[I] & 1);", life),
    "xorshift": (U, "u64 v = x[I] | 1; for (int k = 0; k < 16; k++) { v ^= v << 13; v ^= v >> 7; v ^= v << 17; } y[I] = v >> 32;", xorshift),
    "switch": (U, "u32 v = x[I] >> 8; switch (x[I] % 7) { case 0: v++; break; case 1: v *= 3; break; case 2: v ^= 0x55; break; case 3: v /= 5;"
               " break; case 4: v = 7 - v; break; case 5: v %= 11; break; default: v <<= 2; } y[I] = v;", switch),
}


class Driver:
    """One context, and what a kernel needs of it."""

    def __init__(self):
        self.cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        self.must(self.cuda.cuInit(0))
        self.must(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        self.must(self.cuda.cuCtxSetCurrent(context))

    @staticmethod
    def must(code):
        if code:
            raise RuntimeError(f"the driver answers {code}")

    def run(self, text, x):
        """y of the kernel `k` in the text."""
        module, kernel, at = ctypes.c_void_p(), ctypes.c_void_p(), [ctypes.c_uint64(), ctypes.c_uint64()]
        y = np.zeros_like(x)
        self.must(self.cuda.cuModuleLoadData(ctypes.byref(module), text + b"\0"))
        self.must(self.cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"k"))
        for address, host in zip(at, (x, y)):
            self.must(self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(host.nbytes)))
            self.must(self.cuda.cuMemcpyHtoD_v2(address, host.ctypes, ctypes.c_size_t(host.nbytes)))
        params = (ctypes.c_void_p * 2)(*[ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in at])
        self.must(self.cuda.cuLaunchKernel(kernel, N // THREADS, 1, 1, THREADS, 1, 1, 0, None, params, None))
        self.must(self.cuda.cuMemcpyDtoH_v2(y.ctypes, at[1], ctypes.c_size_t(y.nbytes)))
        return y


def compiled(name, level):
    kind, body, _, *before = KERNELS[name]
    word = "float" if kind is F else "u32"
    source = f"{HEAD}{''.join(before)}\nGLOBAL k(const {word} *x, {word} *y) {{ {body} }}\n"
    command = [os.environ.get("CLANG", "clang++"), "-x", "cuda", "--cuda-gpu-arch=sm_70", "--cuda-device-only", "-nocudainc",
               "-nocudalib", "-S", level, "-w", "-Xclang", "-target-feature", "-Xclang", "+ptx64", "-o", "-", "-"]
    return subprocess.run(command, input=source.encode(), stdout=subprocess.PIPE, check=True).stdout


def main():
    draw = np.random.default_rng(31)
    driver, right, all_of = Driver(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in sys.argv[1:] or KERNELS:
            kind, reference = KERNELS[name][0], KERNELS[name][2]
            x = draw.uniform(-1, 1, N).astype(F) if kind is F else draw.integers(0, 2**32, N, dtype=np.uint32)
            want = reference(x.astype(np.float64) if kind is F else x)
            for level in ("-O0", "-O2"):
                all_of += 1
                try:
                    got = driver.run(compiled(name, level), x)
                except (RuntimeError, subprocess.CalledProcessError) as why:
                    print(f"{name} {level}: {why}")
                    continue
                bound = 2.0**-18 * np.maximum(abs(want), 1) if kind is F else 0.5
                worst = int(np.argmax(abs(got.astype(np.float64) - want) / bound))
                good = bool((abs(got.astype(np.float64) - want) <= bound).all())
                right += good
                if not good:
                    print(f"{name} {level}: [{worst}] want {want[worst]} got {got[worst]}")
    print(f"nvptx: {right} of {all_of} right")
    sys.exit(right < all_of)


if __name__ == "__main__":
    main()
