#!/usr/bin/env python3
"""c = a + b, where a and c are one memory under two addresses (cuMemMap): the simulated driver takes them for two places, so it
must not call the launch proved. With one address for each memory it must. REPORT is the file for the verdicts."""

import ctypes
import json
import os
import sys

import vecadd

N, ON_DEVICE, READ_WRITE = 256, 1, 3


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Properties(ctypes.Structure):  # CUmemAllocationProp
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", Location),
                ("security", ctypes.c_void_p), ("rest", ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


def main():
    report = sys.argv[1]
    os.environ["HEWN_SIM_REPORT"] = report
    open(report, "w").close()
    cuda = vecadd.Driver(os.environ["HEWN_LIBCUDA"])
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    memory = [ctypes.c_uint64(), ctypes.c_uint64()]
    base, size = ctypes.c_uint64(), ctypes.c_size_t()
    location = Location(ON_DEVICE, 0)
    properties, access = Properties(type=1, location=location), Access(location, READ_WRITE)

    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    with open(os.path.join(vecadd.HERE, "vecadd.ptx"), "rb") as file:
        cuda.cuModuleLoadData(ctypes.byref(module), file.read() + b"\0")
    cuda.cuModuleGetFunction(ctypes.byref(function), module, b"vecadd")
    cuda.cuMemGetAllocationGranularity(ctypes.byref(size), ctypes.byref(properties), 0)
    cuda.cuMemAddressReserve(ctypes.byref(base), ctypes.c_size_t(3 * size.value), ctypes.c_size_t(0), ctypes.c_uint64(0),
                             ctypes.c_uint64(0))
    for m in memory:
        cuda.cuMemCreate(ctypes.byref(m), size, ctypes.byref(properties), ctypes.c_uint64(0))
    places = [ctypes.c_uint64(base.value + i * size.value) for i in range(3)]

    def add(last):
        cuda.cuMemMap(places[2], size, ctypes.c_size_t(0), last, ctypes.c_uint64(0))
        cuda.cuMemSetAccess(base, ctypes.c_size_t(3 * size.value), ctypes.byref(access), ctypes.c_size_t(1))
        cuda.cuMemsetD32_v2(base, 0, ctypes.c_size_t(N))
        values = [places[0], places[1], places[2], ctypes.c_uint32(N)]
        params = (ctypes.c_void_p * 4)(*[ctypes.addressof(v) for v in values])
        vecadd.launch_plain(cuda, function, 1, N, params)
        cuda.cuCtxSynchronize()
        cuda.cuMemUnmap(places[2], size)

    for place, m in zip(places, memory):
        cuda.cuMemMap(place, size, ctypes.c_size_t(0), m, ctypes.c_uint64(0))
    add(memory[0])
    memory.append(ctypes.c_uint64())
    cuda.cuMemCreate(ctypes.byref(memory[2]), size, ctypes.byref(properties), ctypes.c_uint64(0))
    add(memory[2])
    with open(report) as file:
        verdicts = [v for v in map(json.loads, file) if "verdict" in v]
    print([(v["verdict"], v["basis"]) for v in verdicts])
    return 0 if [v["basis"] for v in verdicts] == ["sampled", "proved"] else 1


if __name__ == "__main__":
    sys.exit(main())
