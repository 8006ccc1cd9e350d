#!/usr/bin/env python3
"""A hewn kernel launched from Python with ctypes and json alone.

    HEWN_LIBCUDA=build/sim/libcuda.so.1 python3 tests/driver/gemm_ctypes.py build/modules/sm_100f/gemm_bf16_f32.json

Reads the manifest, loads the module beside it (the cubin for this device where there is one and the
driver takes it, else the PTX text), builds the tensor maps that the manifest describes, launches with
cuLaunchKernelEx, and compares every element with exact arithmetic. Options: --ptx FILE (another text
for the same manifest), --size MxNxK, --batch N.
"""
import argparse
import ctypes as c
import json
import os
import pathlib
import random
import struct
import sys

DTYPE = {"f16": 6, "f32": 7, "bf16": 9}  # CUtensorMapDataType
SIZE = {"f16": 2, "f32": 4, "bf16": 2}
SCALAR = {"u32": c.c_uint32, "u64": c.c_uint64, "f32": c.c_float}
SWIZZLE = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
OUT_OF_BOUNDS = {"zero": 0, "nan": 1}
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
CC_MAJOR, CC_MINOR, SM_COUNT = 75, 76, 16  # CUdevice_attribute


class Driver:
    """The driver library; every call is checked."""

    def __init__(self):
        self.lib = c.CDLL(os.environ.get("HEWN_LIBCUDA", "libcuda.so.1"))

    def __getattr__(self, name):
        function = getattr(self.lib, name)

        def call(*args):
            result = function(*args)
            if result:
                text = c.c_char_p()
                self.lib.cuGetErrorString(result, c.byref(text))
                raise RuntimeError(f"{name}: {result} ({(text.value or b'?').decode()})")

        return call


class LaunchConfig(c.Structure):
    _fields_ = [("grid", c.c_uint * 3), ("block", c.c_uint * 3), ("shared", c.c_uint),
                ("stream", c.c_void_p), ("attributes", c.c_void_p), ("attribute_count", c.c_uint)]


def pack(value, dtype):
    """A small integer as the dtype, nearest even, as bytes."""
    if dtype == "bf16":
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    return struct.pack("<e" if dtype == "f16" else "<f", value)


def unpack(data, dtype):
    if dtype == "bf16":
        return struct.unpack("<f", b"\0\0" + data)[0]
    return struct.unpack("<e" if dtype == "f16" else "<f", data)[0]


def load_module(driver, manifest, path, ptx, capability):
    """Cubin first, then PTX, as the runtime does. Returns (module, what it came from)."""
    module = c.c_void_p()
    if not ptx:
        for image in manifest["architectures"]:
            if image["arch"].rstrip("af") == "sm_%d%d" % capability:
                data = (path.parent / image["file"]).read_bytes()
                if driver.lib.cuModuleLoadData(c.byref(module), data) == 0:
                    return module, "cubin " + image["arch"]
    text = pathlib.Path(ptx or path.with_suffix(".ptx")).read_bytes()
    driver.cuModuleLoadData(c.byref(module), text + b"\0")
    return module, "ptx"


def tensor_map(driver, spec, address, dims, leading, problem_stride):
    """CUtensorMap for a batch of row-major matrices; strides in bytes, dimension 0 contiguous."""
    storage = c.create_string_buffer(128 + 64)
    aligned = (c.addressof(storage) + 63) // 64 * 64
    rank = spec["rank"]
    driver.cuTensorMapEncodeTiled(
        c.c_void_p(aligned), DTYPE[spec["dtype"]], rank, c.c_uint64(address),
        (c.c_uint64 * rank)(*dims), (c.c_uint64 * (rank - 1))(leading, problem_stride),
        (c.c_uint32 * rank)(*spec["box"]), (c.c_uint32 * rank)(*spec["element_strides"]), 0,
        SWIZZLE[spec["swizzle"]], 2, OUT_OF_BOUNDS[spec["out_of_bounds"]])
    return c.string_at(aligned, 128)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("manifest", type=pathlib.Path)
    parser.add_argument("--ptx")
    parser.add_argument("--size", default="150x300x200")
    parser.add_argument("--batch", type=int, default=2)
    options = parser.parse_args()
    manifest = json.loads(options.manifest.read_text())
    m, n, k = (int(x) for x in options.size.split("x"))
    batch = options.batch

    driver = Driver()
    device, context, value = c.c_int(), c.c_void_p(), c.c_int()
    driver.cuInit(0)
    driver.cuDeviceGet(c.byref(device), 0)
    attributes = []
    for attribute in (CC_MAJOR, CC_MINOR, SM_COUNT):
        driver.cuDeviceGetAttribute(c.byref(value), attribute, device)
        attributes.append(value.value)
    driver.cuDevicePrimaryCtxRetain(c.byref(context), device)
    driver.cuCtxSetCurrent(context)
    module, origin = load_module(driver, manifest, options.manifest, options.ptx,
                                 tuple(attributes[:2]))
    function = c.c_void_p()
    driver.cuModuleGetFunction(c.byref(function), module, manifest["entry"].encode())
    driver.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, manifest["dynamic_shared"])

    # Small integers: every sum is exact, so the result must be equal, not merely close.
    rng = random.Random(7)
    types = manifest["dtypes"]
    rows = {"A": m, "B": n, "D": m}
    cols = {"A": k, "B": k, "D": n}
    values, strides, pointers = {}, {}, {}
    for tensor in "ABD":
        dtype = types[tensor.lower()]
        pitch = (cols[tensor] * SIZE[dtype] + 15) // 16 * 16
        strides[tensor] = (pitch, pitch * rows[tensor])
        image = bytearray(b"\xff" * (strides[tensor][1] * batch))
        if tensor != "D":
            values[tensor] = [[[rng.randint(-2, 2) for _ in range(k)] for _ in range(rows[tensor])]
                              for _ in range(batch)]
            for b, matrix in enumerate(values[tensor]):
                for r, row in enumerate(matrix):
                    start = b * strides[tensor][1] + r * pitch
                    image[start:start + k * SIZE[dtype]] = b"".join(pack(v, dtype) for v in row)
        pointers[tensor] = c.c_uint64()
        driver.cuMemAlloc_v2(c.byref(pointers[tensor]), c.c_size_t(len(image)))
        driver.cuMemcpyHtoD_v2(pointers[tensor], bytes(image), c.c_size_t(len(image)))

    problem = {"m": m, "n": n, "k": k, "batch": batch, "step_a": 1, "step_b": 1, "max": max}
    maps = {spec["name"]: tensor_map(driver, spec, pointers[spec["tensor"]].value,
                                     [eval(rule, {}, problem) for rule in spec["dims"]],
                                     *strides[spec["tensor"]]) for spec in manifest["tensor_maps"]}
    tile = manifest["tile"]
    tiles_m, tiles_n = -(-m // tile["m"]), -(-n // tile["n"])
    scalars = {"d": pointers["D"].value, "d_pitch": strides["D"][0], "d_plane": strides["D"][1],
               "m": m, "n": n, "k_blocks": -(-k // tile["k"]), "tiles_m": tiles_m,
               "tiles_n": tiles_n, "tiles": tiles_m * tiles_n * batch, "step_a": 1, "step_b": 1,
               "raster_rows": min(tiles_m, manifest["raster_rows"]), "mode": 0, "columns": 0, "stages": 0,
               "c": 0, "c_pitch": 0, "c_plane": 0, "bias": 0, "scale_a": 0, "scale_b": 0, "finish": 0,
               "alpha": 1.0, "beta": 0.0}
    arguments = [c.create_string_buffer(maps[p["name"]], 128) if p["name"] in maps
                 else SCALAR[p["type"]](scalars[p["name"]]) for p in manifest["parameters"]]
    pointer_list = (c.c_void_p * len(arguments))(*(c.addressof(a) for a in arguments))
    config = LaunchConfig(grid=(min(scalars["tiles"], attributes[2]), 1, 1),
                          block=tuple(manifest["block"]), shared=manifest["dynamic_shared"])
    driver.cuLaunchKernelEx(c.byref(config), function, pointer_list, None)
    driver.cuCtxSynchronize()

    dtype, wrong = types["d"], 0
    out = c.create_string_buffer(strides["D"][1] * batch)
    driver.cuMemcpyDtoH_v2(out, pointers["D"], c.c_size_t(len(out)))
    for b in range(batch):
        for i in range(m):
            for j in range(n):
                start = b * strides["D"][1] + i * strides["D"][0] + j * SIZE[dtype]
                got = unpack(out[start:start + SIZE[dtype]], dtype)
                want = sum(x * y for x, y in zip(values["A"][b][i], values["B"][b][j]))
                wrong += got != unpack(pack(want, dtype), dtype)
    print(f"{manifest['entry']} from {origin}: {batch * m * n - wrong} of {batch * m * n} elements right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
