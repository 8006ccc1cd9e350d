"""Triton's tutorials that are programs, as test cases: HEWN_TRITON names a clone. Benches are left out."""
import glob
import os
import re
import runpy

import triton.testing

FOLDER = os.path.join(os.environ["HEWN_TRITON"], "python", "tutorials")


class NoBench:
    def __init__(self, *ignored, **also):
        pass

    def __call__(self, *ignored, **also):
        return self

    def run(self, *ignored, **also):
        pass


def program(path):
    def case(capsys, monkeypatch):
        monkeypatch.setattr(triton.testing, "perf_report", NoBench)
        monkeypatch.setattr(triton.testing, "do_bench", lambda *ignored, **also: 1.0)
        monkeypatch.setattr(triton.testing, "do_bench_cudagraph", lambda *ignored, **also: 1.0)
        runpy.run_path(path, run_name="__main__")
        said = capsys.readouterr().out
        assert "❌" not in said and "differ." not in said, said
        for difference in re.findall(r"maximum difference [^0-9]*([0-9.e+-]+)", said):
            assert float(difference) < 1e-5, said

    return case


for path in sorted(glob.glob(os.path.join(FOLDER, "[0-9]*.py"))):
    with open(path, encoding="utf-8") as source:
        if "\ndef test_" not in source.read() or "layer-norm" in path:
            name = os.path.basename(path)[:-3].replace("-", "_")
            globals()["test_" + name] = program(path)
