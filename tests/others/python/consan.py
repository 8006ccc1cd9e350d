"""Triton's tests of its concurrency sanitizer, judged by the simulator instead of by ConSan.

    python consan.py LOG CLONE/python/test/gluon/test_consan.py [-k EXPRESSION] [--deselect CASE]…

The interpreter needs pytest, numpy and Triton, and LD_LIBRARY_PATH the simulator. PyTorch is not needed: of it the tests
take empty tensors and random numbers, which a stand-in below makes. Each kernel is compiled without ConSan's
instrumentation and launched in a process of its own. Whether ConSan must reject it is what the test asserts of that
process. A line of LOG is a JSON object: case, label (rejected, passed, skipped, broken), verdict (clean, review, error,
incomplete, none), kinds, why. The last line printed counts them.
"""
import collections
import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
import types

import numpy as np

LIMIT = 240  # seconds of one case
ORDER = ("none", "clean", "review", "incomplete", "error")

# ---- as much of PyTorch as the tests use ----


class dtype:
    def __init__(self, name, numpy_type):
        self.name, self.numpy, self.itemsize = name, np.dtype(numpy_type), np.dtype(numpy_type).itemsize

    def __repr__(self):
        return "torch." + self.name


class Device:
    type, index = "cuda", 0

    def __init__(self, *ignored):
        pass

    def __str__(self):
        return "cuda:0"


class Driver:
    """The driver, opened by the process that launches, and its context."""

    library = None

    @classmethod
    def call(cls, function, *arguments):
        if not cls.library:
            cls.library = ctypes.CDLL("libcuda.so.1")
            context = ctypes.c_void_p()
            cls.library.cuInit(0)
            cls.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
            cls.library.cuCtxSetCurrent(context)
        code = getattr(cls.library, function)(*arguments)
        if code:
            raise RuntimeError(f"{function}: CUDA error {code}")


class Tensor:
    device = Device()

    def __init__(self, values, kind, filled=True):
        self.shape, self.dtype, at = tuple(values.shape), kind, ctypes.c_uint64()
        values = np.ascontiguousarray(values, kind.numpy)
        Driver.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(max(values.nbytes, 1)))
        if filled and values.nbytes:
            Driver.call("cuMemcpyHtoD_v2", at, values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(values.nbytes))
        self.at = at.value

    def data_ptr(self):
        return self.at

    def element_size(self):
        return self.dtype.itemsize

    def numel(self):
        return int(np.prod(self.shape))

    def dim(self):
        return len(self.shape)

    ndim = property(dim)

    def size(self, axis=None):
        return self.shape if axis is None else self.shape[axis]

    def stride(self, axis=None):
        strides = tuple(int(np.prod(self.shape[i + 1:])) for i in range(len(self.shape)))
        return strides if axis is None else strides[axis]

    def is_contiguous(self):
        return True

    def reshape(self, *shape):
        self.shape = tuple(shape)
        return self

    def record_stream(self, stream):
        pass

    def all(self):
        return True


def tensor(make, filled=True):
    def of(*shape, dtype=None, device=None, **ignored):
        shape = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return Tensor(make(shape), dtype or sys.modules["torch"].float32, filled)

    return of


def stand_in():
    torch, random = types.ModuleType("torch"), np.random.RandomState(5)
    for name, kind in (("bool", "?"), ("int8", "i1"), ("int16", "i2"), ("int32", "i4"), ("int64", "i8"), ("uint8", "u1"),
                       ("float16", "f2"), ("bfloat16", "u2"), ("float32", "f4"), ("float64", "f8"),
                       ("float8_e4m3fn", "u1"), ("float8_e5m2", "u1")):
        setattr(torch, name, dtype(name, kind))
    torch.float, torch.int, torch.half = torch.float32, torch.int32, torch.float16
    torch.dtype, torch.Tensor, torch.device = dtype, Tensor, Device
    torch.version = types.SimpleNamespace(hip=None, cuda="13.0")
    torch.randn = tensor(lambda shape: random.standard_normal(shape))
    torch.zeros = tensor(np.zeros)
    torch.empty = tensor(np.zeros, filled=False)
    torch.empty_like = lambda t, **ignored: Tensor(np.zeros(t.shape), t.dtype, False)
    torch.full_like = lambda t, value, **ignored: Tensor(np.full(t.shape, value), t.dtype)
    torch.arange = lambda n, dtype, device: Tensor(np.arange(n), dtype)
    torch.isnan = lambda t: t
    torch.testing = types.SimpleNamespace(assert_close=lambda *ignored, **also: None)
    cuda = torch.cuda = types.ModuleType("torch.cuda")
    capability = {"h200": (9, 0), "b300": (10, 3)}.get(os.environ.get("HEWN_SIM_GPU"), (10, 0))
    cuda.is_available = lambda: True
    cuda.get_device_capability = lambda device=None: capability
    cuda.current_device = lambda: 0
    cuda.set_device = lambda device: None
    cuda.current_stream = lambda device=None: types.SimpleNamespace(cuda_stream=0)
    cuda.default_stream = cuda.current_stream
    cuda.stream = lambda stream: contextlib.nullcontext()
    cuda.synchronize = lambda device=None: Driver.call("cuCtxSynchronize")
    sys.modules["torch"], sys.modules["torch.cuda"] = torch, cuda


# ---- a case ----


def judged(path):
    """The worst verdict of the launches, and the kinds of what was found."""
    verdict, kinds = "none", collections.Counter()
    if os.path.exists(path):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                entry = json.loads(line)
                if "verdict" in entry:
                    verdict = max(verdict, entry["verdict"], key=ORDER.index)
                elif entry.get("severity") in ("error", "review", "warning"):
                    kinds[f"{entry['severity']} {entry['kind']}"] += 1
    return verdict, sorted(kinds)


class Plugin:
    def __init__(self, log):
        self.log, self.table = open(log, "w", buffering=1, encoding="utf-8"), collections.Counter()

    def run(self, function, arguments=(), keywords=None, env=None):
        """In place of Triton's run_in_process: the parent process never opens the driver."""
        arguments = list(arguments)
        for i, a in enumerate(arguments):
            if hasattr(a, "setenv"):
                set_env = a.setenv
                a.setenv = lambda name, value, *rest: name == "TRITON_INSTRUMENTATION_MODE" or set_env(name, value)
        if function.__name__ == "run_failing_kernel":
            arguments[1] = False
        child = os.fork()
        if not child:
            signal.alarm(LIMIT)
            with open(self.said, "a", encoding="utf-8") as said:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                try:
                    function(*arguments, **(keywords or {}))
                    Driver.call("cuCtxSynchronize")
                except BaseException:
                    said.write(traceback.format_exc())
                finally:
                    said.flush()
                    os._exit(0)
        os.waitpid(child, 0)
        return types.SimpleNamespace(exc=None, driver_stderr_output="")

    def pytest_runtest_logstart(self, nodeid, location):
        folder = tempfile.mkdtemp(prefix="consan-")
        self.report, self.said = os.path.join(folder, "report"), os.path.join(folder, "said")
        os.environ["HEWN_SIM_REPORT"] = self.report
        self.label, self.why = "passed", ""

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            self.label = "skipped"
        elif report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.why = crash.message if crash else str(report.longrepr)
            self.label = "rejected" if self.why.startswith("AssertionError") or self.why.startswith("assert ") else "broken"

    def pytest_runtest_logfinish(self, nodeid, location):
        verdict, kinds = judged(self.report)
        if verdict == "none" and os.path.exists(self.said):
            with open(self.said, encoding="utf-8", errors="replace") as said:
                self.why = said.read()[-600:]
        shutil.rmtree(os.path.dirname(self.report), ignore_errors=True)
        self.table[self.label, verdict] += 1
        self.log.write(json.dumps({"case": nodeid.split("::")[-1], "label": self.label, "verdict": verdict,
                                   "kinds": kinds, "why": self.why[:600]}) + "\n")


def main():
    import pytest
    stand_in()
    import triton._internal_testing
    from triton.experimental.gluon.language.nvidia import ampere, blackwell, hopper
    # Names that Triton 3.9 has changed.
    ampere.async_copy.async_copy_global_to_shared = ampere.async_copy.async_load
    for gpu in hopper, blackwell:
        gpu.tma.async_copy_shared_to_global = gpu.tma.async_store
    plugin = Plugin(sys.argv[1])
    triton._internal_testing.run_in_process = plugin.run
    about_consan = "not initializes_allocations_with_nan and not uses_profile_scratch"  # no kernels of their own
    pytest.main(["-q", "-k", about_consan, "--tb=short", "-p", "no:cacheprovider", "-p", "no:faulthandler", *sys.argv[2:]], plugins=[plugin])
    for (label, verdict), count in sorted(plugin.table.items()):
        print(f"{label:9} {verdict:10} {count}")


main()
