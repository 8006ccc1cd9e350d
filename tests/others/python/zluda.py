"""The PTX tests of vosen/ZLUDA with their own expected values, on the driver that LD_LIBRARY_PATH names.

    python zluda.py CLONE [NAME]…

ptx/src/test/spirv_run/mod.rs of the clone says for each text what goes in and what comes out. Each test has a process
of its own. Classes: right, wrong (other values, or a fault), refused (the driver does not load the text or launch the
kernel: the driver says why). Values count bit by bit; results of the approximate functions to 2^-20. What has no
expected values there is only loaded. ptxas, if it is on PATH, says which of the refused texts it refuses as well.
"""
import collections
import ctypes
import math
import os
import re
import shutil
import struct
import subprocess
import sys

APPROXIMATE = {"sin", "cos", "lg2", "ex2", "tanh", "rcp", "rsqrt", "sqrt", "div_approx"}
FORMAT = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "u64": "Q", "i64": "q", "f16": "e",
          "f32": "f", "f64": "d"}
SHARED_BYTES = 1024  # as their runner gives each launch


def number(word, kind):
    """A Rust expression of a value of that type, as its bytes."""
    word = word.strip()
    bits = re.fullmatch(r"(?:half::)?f(16|32)::from_bits\((\w+)\)", word)
    if bits:
        return int(bits.group(2), 0).to_bytes(int(bits.group(1)) // 8, "little")
    word = re.sub(r"(?:half::)?f\d+::from_f\d+\((.*)\)", r"\1", word)
    word = re.sub(r"(?:half::)?f16::NAN\.to_bits\(\)", "0x7e00", word)
    special = {"NAN": math.nan, "INFINITY": math.inf, "NEG_INFINITY": -math.inf}
    match = re.fullmatch(r"(?:half::)?f\d+::(\w+)", word)
    if match:
        return struct.pack("<" + FORMAT[kind], special[match.group(1)])
    match = re.fullmatch(r"([ui])(\d+)::(MIN|MAX|max_value\(\))", word)
    if match:
        signed, width = match.group(1) == "i", int(match.group(2))
        value = -(1 << width - 1) if match.group(3) == "MIN" and signed else (1 << width - signed) - 1
        return struct.pack("<" + FORMAT[kind], value)
    word = word.replace("std::f32::consts::PI", repr(math.pi))
    word = re.sub(r"(?<![x\da-fA-F_])([\d.]+)(f32|f64)", r"\1", word)
    word = re.sub(r"_?([ui](8|16|32|64))\b", "", word)
    word = re.sub(r"_+", "_", word)
    value = 1.0
    for part in word.split("/"):  # PI / 2
        part = part.strip()
        factor = float(part) if re.search(r"[.e]", part) and "x" not in part else int(part, 0)
        value = factor if value == 1.0 else value / factor
    if FORMAT[kind] in "efd":
        return struct.pack("<" + FORMAT[kind], float(value))
    width = struct.calcsize(FORMAT[kind])
    return (int(value) & (1 << 8 * width) - 1).to_bytes(width, "little")


def values(text):
    """A Rust array: its type and its bytes."""
    words = [word for word in re.sub(r"//[^\n]*", "", text).split(",") if word.strip()]
    kinds = [re.search(r"([ui](?:8|16|32|64)|f16|f32|f64)\s*(?:$|::)", word) for word in words]
    kind = next((found.group(1) for found in kinds if found), None)
    kind = "u16" if any("to_bits" in word for word in words) else kind
    kind = kind or ("f64" if any("." in word for word in words) else "i32")
    return kind, b"".join(number(word, kind) for word in words)


def tests_of(clone):
    """name, input or None, output or None, threads."""
    text = re.sub(r"^\s*//[^\n]*\n", "", open(f"{clone}/ptx/src/test/spirv_run/mod.rs").read(), flags=re.M)
    for match in re.finditer(r"^test_ptx(_with_32|_warp)?!\((.*?)\);", text, re.M | re.S):
        name, *arrays = [part.strip() for part in re.split(r",\s*(?=\[)", match.group(2), maxsplit=2)]
        arrays = [array.rstrip(", \n")[1:-1] for array in arrays]
        if match.group(1) == "_warp":
            yield name, None, arrays[0], 64
        else:
            yield (name, *(arrays + [None, None])[:2], 1)


def run(path, name, given, wanted, threads):
    """In a process of its own: class and why."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, module, kernel = (ctypes.c_void_p() for _ in range(3))
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    code = cuda.cuModuleLoadData(ctypes.byref(module), open(path, "rb").read() + b"\0")
    if code:
        return "refused", f"does not load: {code}"
    if wanted is None:
        return "loads", ""
    if cuda.cuModuleGetFunction(ctypes.byref(kernel), module, name.encode()):
        return "refused", "no such kernel"
    kind, want = values(wanted)
    put = values(given)[1] if given is not None else b""
    at = [ctypes.c_uint64(), ctypes.c_uint64()]
    for address, size in zip(at, (len(put), len(want))):
        cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
    cuda.cuMemcpyHtoD_v2(at[0], put, ctypes.c_size_t(len(put)))
    cuda.cuMemsetD8_v2(at[1], 0, ctypes.c_size_t(len(want)))
    order = at if given is not None else [at[1], at[1]]
    params = (ctypes.c_void_p * 2)(*[ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in order])
    code = cuda.cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, SHARED_BYTES, None, params, None)
    if code:
        return "refused", f"does not launch: {code}"
    got = ctypes.create_string_buffer(len(want))
    code = cuda.cuMemcpyDtoH_v2(got, at[1], ctypes.c_size_t(len(want)))
    if code:
        return "wrong", f"fault {code}"
    form = f"<{len(want) // struct.calcsize(FORMAT[kind])}{FORMAT[kind]}"
    a, b = struct.unpack(form, got.raw), struct.unpack(form, want)
    near = name in APPROXIMATE and all(abs(x - y) <= 2.0**-20 * max(abs(y), 1) for x, y in zip(a, b))
    return ("right", "") if got.raw == want or near else ("wrong", f"want {b[:8]} got {a[:8]}")


def main():
    clone, names = sys.argv[1], sys.argv[2:]
    tests = [test for test in tests_of(clone) if not names or test[0] in names]
    count = collections.Counter()
    for name, given, wanted, threads in tests:
        path = f"{clone}/ptx/src/test/spirv_run/{name}.ptx"
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.dup2(writer, 3)
            os.write(3, "\t".join(run(path, name, given, wanted, threads)).encode())
            os._exit(0)
        os.close(writer)
        text = os.fdopen(reader).read()
        os.waitpid(child, 0)
        kind, why = text.split("\t") if text else ("wrong", "the process ended")
        if kind == "refused" and shutil.which("ptxas"):
            code = subprocess.run(["ptxas", "-arch=sm_90a", "-o", os.devnull, path], capture_output=True, check=False).returncode
            kind, why = ("refused", why + ", and ptxas takes it") if not code else ("refused as by ptxas", why)
        count[kind] += 1
        if kind not in ("right", "loads"):
            print(f"{kind}: {name}: {why}", flush=True)
    print(f"zluda: {sum(count.values())} tests:", ", ".join(f"{n} {kind}" for kind, n in count.most_common()))
    sys.exit(count["wrong"] > 0)


if __name__ == "__main__":
    main()
