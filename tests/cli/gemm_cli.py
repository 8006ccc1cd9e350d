#!/usr/bin/env python3
"""hewn gemm from files, with every option, against exact arithmetic: gemm_cli.py HEWN FOLDER.

Standard library only. Small integers make every sum exact, so results must be equal; relu is the one
activation that keeps them so, gelu and silu are only asked for their sign and size."""
import random
import struct
import subprocess
import sys

HEWN, FOLDER = sys.argv[1], sys.argv[2]
M, N, K = 37, 53, 70


def write(name, shape, values):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % repr(shape).encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    with open(f"{FOLDER}/{name}.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        file.write(struct.pack("<%df" % len(values), *values))


def read(name):
    data = open(f"{FOLDER}/{name}.npy", "rb").read()
    data = data[10 + struct.unpack("<H", data[8:10])[0]:]
    return struct.unpack("<%df" % (len(data) // 4), data)


rng = random.Random(1)
a, b, c, bias = ([rng.randint(-3, 3) for _ in range(n)] for n in (M * K, N * K, M * N, N))
sums = [sum(a[i * K + x] * b[j * K + x] for x in range(K)) for i in range(M) for j in range(N)]
write("a", (M, K), a)
write("b", (N, K), b)
write("c", (M, N), c)
write("bias", (N,), bias)
write("at", (K, M), [a[i * K + x] for x in range(K) for i in range(M)])
write("bt", (K, N), [b[j * K + x] for x in range(K) for j in range(N)])

RUNS = [  # files and options, what element (row i, column j) with sum s must be
    ("a b", lambda s, i, j: s),
    ("at b --trans-a", lambda s, i, j: s),
    ("a bt --trans-b", lambda s, i, j: s),
    ("at bt --trans-a --trans-b --alpha 0.5", lambda s, i, j: 0.5 * s),
    ("a b --c c --beta -2", lambda s, i, j: s - 2 * c[i * N + j]),
    ("a b --c c", lambda s, i, j: s),
    ("a b --bias bias", lambda s, i, j: s + bias[j]),
    ("a bt --trans-b --act relu --alpha -1 --c c --beta 3 --bias bias",
     lambda s, i, j: max(0, -s + 3 * c[i * N + j] + bias[j])),
]
NEAR = [("a b --act gelu", 0.18), ("a b --act silu", 0.28)]  # their least values


def run(options):
    words = [f"{FOLDER}/{w}.npy" if w in ("a", "b", "c", "at", "bt", "bias") else w for w in options.split()]
    return subprocess.run([HEWN, "gemm", *words, "-o", f"{FOLDER}/d.npy"], capture_output=True, text=True,
                          check=False)


def main():
    passed = failed = 0
    for options, rule in RUNS:
        done = run(options)
        want = [rule(sums[i * N + j], i, j) for i in range(M) for j in range(N)]
        wrong = sum(x != y for x, y in zip(read("d"), want)) if done.returncode == 0 else M * N
        passed, failed = passed + (wrong == 0), failed + (wrong > 0)
        if wrong:
            print(f"FAIL hewn gemm {options}: {wrong} of {M * N} elements differ\n    {done.stderr}")
    for options, least in NEAR:
        done = run(options)
        wrong = sum(y < -least or abs(y - max(s, 0)) > least for s, y in zip(sums, read("d")))
        passed, failed = passed + (wrong == 0), failed + (wrong > 0)
        if wrong:
            print(f"FAIL hewn gemm {options}: {wrong} of {M * N} elements are no {options.split()[-1]}\n"
                  f"    {done.stderr}")
    for options, words in (("a b --act tanh", "--act takes relu, gelu or silu"),
                           ("a b --beta 1", "--beta needs --c C.npy"),
                           ("a b --alpha x", "--alpha takes a number"),
                           ("a b --c a", "a.npy is 37 x 70, the product 37 x 53"),
                           ("a b --bias a", "a vector has 1"),
                           ("a b --trans-a", "the second dimensions (K) must be equal")):
        done = run(options)
        right = done.returncode != 0 and words in done.stderr
        passed, failed = passed + right, failed + (not right)
        if not right:
            print(f"FAIL hewn gemm {options}: want '{words}', status {done.returncode}\n    {done.stderr}")
    print(f"gemm_cli: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
