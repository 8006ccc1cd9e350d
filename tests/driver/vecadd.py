#!/usr/bin/env python3
"""Adds two vectors through the driver API alone: ctypes, a PTX file (or the image that is its
argument), and whatever library HEWN_LIBCUDA names (libcuda.so.1 otherwise). Ends with "N passed, N failed, N skipped"."""

import array
import ctypes
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ATTRIBUTE_CLUSTER = 4
GUARD = 8  # floats after the output that must stay as they were
GUARD_VALUE = -7.0


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("attribute_count", ctypes.c_uint),
    ]


class Driver:
    """The library, with every result but success turned into an exception."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def call(*arguments):
            result = function(*arguments)
            if result:
                text = ctypes.c_char_p()
                self.library.cuGetErrorName(result, ctypes.byref(text))
                raise RuntimeError(f"{name}: {result} {(text.value or b'?').decode()}")

        return call


def upload(cuda, values):
    address = ctypes.c_uint64()
    cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * len(values)))
    data = array.array("f", values).tobytes()
    cuda.cuMemcpyHtoD_v2(address, data, ctypes.c_size_t(len(data)))
    return address


def download(cuda, address, count):
    data = ctypes.create_string_buffer(4 * count)
    cuda.cuMemcpyDtoH_v2(data, address, ctypes.c_size_t(4 * count))
    return array.array("f", data.raw).tolist()


def launch_plain(cuda, function, blocks, threads, params):
    cuda.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, None, params, None)


def launch_extended(cuda, function, blocks, threads, params):
    """As above in clusters of two, through the extensible entry point."""
    attribute = LaunchAttribute(id=ATTRIBUTE_CLUSTER)
    attribute.value[0:3] = [2, 1, 1]
    config = LaunchConfig(attributes=ctypes.pointer(attribute), attribute_count=1)
    config.grid[:] = [(blocks + 1) // 2 * 2, 1, 1]
    config.block[:] = [threads, 1, 1]
    cuda.cuLaunchKernelEx(ctypes.byref(config), function, params, None)


def check(cuda, function, launch, n, threads):
    """Wrong elements, as (index, want, got); an index past n means a guard was written."""
    a = [0.5 * i for i in range(n)]
    b = [1.0 - i % 97 for i in range(n)]
    want = [x + y for x, y in zip(a, b)] + [GUARD_VALUE] * GUARD
    pa, pb = upload(cuda, a), upload(cuda, b)
    pc = upload(cuda, [float("nan")] * n + [GUARD_VALUE] * GUARD)
    values = [pa, pb, pc, ctypes.c_uint32(n)]
    params = (ctypes.c_void_p * 4)(*[ctypes.addressof(v) for v in values])
    launch(cuda, function, (n + threads - 1) // threads, threads, params)
    cuda.cuCtxSynchronize()
    got = download(cuda, pc, n + GUARD)
    for address in (pa, pb, pc):
        cuda.cuMemFree_v2(address)
    return [(i, w, g) for i, (w, g) in enumerate(zip(want, got)) if w != g]


def main():
    path = os.environ.get("HEWN_LIBCUDA") or "libcuda.so.1"
    try:
        cuda = Driver(path)
        cuda.cuInit(0)
    except (OSError, RuntimeError) as reason:
        print(f"SKIP vecadd: {reason}")
        print("vecadd: 0 passed, 0 failed, 1 skipped")
        return 0
    name = ctypes.create_string_buffer(96)
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    cuda.cuDeviceGetName(name, len(name), 0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    image = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "vecadd.ptx")
    with open(image, "rb") as file:
        cuda.cuModuleLoadData(ctypes.byref(module), file.read() + b"\0")
    cuda.cuModuleGetFunction(ctypes.byref(function), module, b"vecadd")

    passed = failed = 0
    for launch in (launch_plain, launch_extended):
        for n, threads in ((1, 32), (31, 64), (1000, 128), (4096, 256), (12345, 96)):
            wrong = check(cuda, function, launch, n, threads)
            passed, failed = (passed, failed + 1) if wrong else (passed + 1, failed)
            if wrong:
                i, want, got = wrong[0]
                print(f"FAIL vecadd {launch.__name__} n={n} threads={threads}: {len(wrong)} wrong,"
                      f" first [{i}] want {want} got {got}")
    cuda.cuModuleUnload(module)
    cuda.cuDevicePrimaryCtxRelease_v2(0)
    print(f"vecadd on {name.value.decode()}: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
