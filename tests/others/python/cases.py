"""Runs test cases of others under pytest on the simulated driver, and writes what became of each.

    python cases.py [--limit S] [--host-torch] [--draw N --seed S] --log LOG [FILE | FILE::CASE]…

A case that ends the process, or runs for more than S seconds, is recorded as such, and the next one starts in a new
process. So is the next one after a fault, because a fault stays with the context. A line of LOG is a JSON object:
case, outcome (right, wrong, skipped, idle, slow, died), seconds, launches, findings, why. Idle: it launched nothing.

With --draw the cases are drawn: first a test function, from the sorted names of all that the files have, then one of
its cases. A function whose case skips itself or launches nothing is replaced by the next one drawn. Python's
random.Random(seed) shuffles the functions and picks the cases.
"""
import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
IDLE = ("skipped", "idle")
DRIVER = ("CUDA error", "ptxas", "PTXAS", "[CUDA]", "CUDA_ERROR")  # in a failure that the driver may have caused


class Plugin:
    """Inside pytest: one line of the log for each case."""

    def __init__(self, log, limit):
        self.log, self.limit = open(log, "a", buffering=1), limit
        self.report = os.environ["HEWN_SIM_REPORT"]
        self.outcome, self.why, self.began, self.offset = None, "", 0, 0

    def pytest_runtest_logstart(self, nodeid, location):  # nodeid: relative to the root
        import faulthandler
        self.outcome, self.why, self.began = "right", "", time.time()
        self.offset = os.path.getsize(self.report) if os.path.exists(self.report) else 0
        self.log.write(json.dumps({"case": "/" + nodeid, "outcome": "begun"}) + "\n")
        faulthandler.dump_traceback_later(self.limit, exit=True, file=sys.__stderr__)

    def pytest_runtest_logreport(self, report):
        if report.skipped and self.outcome == "right":
            self.outcome = "skipped"
            self.why = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)[-200:]
        elif report.failed:
            self.outcome = "wrong"
            crash = getattr(report.longrepr, "reprcrash", None)
            self.why = (crash.message if crash else str(report.longrepr))[-2000:]

    def launches(self):
        """The verdicts and findings that the simulator has written since the case began."""
        verdicts, findings = 0, collections.Counter()
        if os.path.exists(self.report):
            with open(self.report) as lines:
                lines.seek(self.offset)
                for line in lines:
                    entry = json.loads(line)
                    if "verdict" in entry:
                        verdicts += 1
                    elif entry.get("level") in ("error", "warning"):
                        findings[f"{entry['level']} {entry['kind']} {entry.get('ptx_line') or entry.get('line')}"] += 1
        return verdicts, dict(findings)

    def pytest_runtest_logfinish(self, nodeid, location):
        import ctypes
        import faulthandler
        faulthandler.cancel_dump_traceback_later()
        dead = ctypes.CDLL("libcuda.so.1").cuCtxSynchronize() not in (0, 3, 201)  # 3, 201: it was not used
        launches, findings = self.launches()
        outcome = "idle" if self.outcome == "right" and not launches else self.outcome
        self.log.write(json.dumps({"case": "/" + nodeid, "outcome": outcome, "seconds": round(time.time() - self.began, 1),
                                   "launches": launches, "findings": findings, "why": self.why}) + "\n")
        if dead:
            os._exit(9)


def inside(options):
    """The process that runs pytest."""
    import pytest
    if options.host_torch:
        import host_torch
        host_torch.start()
    arguments = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "--rootdir=/", "--tb=short"]
    sys.exit(pytest.main(arguments + ["@" + options.inside], plugins=[Plugin(options.log, options.limit)]))


def read(log):
    """The last line of each case; a case that only began ended its process."""
    results = {}
    if os.path.exists(log):
        with open(log) as lines:
            for line in lines:
                entry = json.loads(line)
                results[entry["case"]] = entry
    return results


def elsewhere(entry):
    """Whether a case failed for a reason that has nothing to do with the driver."""
    if entry["outcome"] != "wrong":
        return False
    return "cuBLAS Error" in entry["why"] or not (entry["launches"] or any(word in entry["why"] for word in DRIVER))


def run(options, cases):
    """Runs the cases, in as many processes as it takes."""
    before = read(options.log)  # of a run that was broken off
    left = [case for case in cases if before.get(case, {"outcome": "begun"})["outcome"] == "begun"]
    while left:
        listing = options.log + ".cases"
        with open(listing, "w") as out:
            out.write("\n".join(left) + "\n")
        command = [sys.executable, os.path.join(HERE, "cases.py"), "--inside", listing, "--log", options.log,
                   "--limit", str(options.limit)] + (["--host-torch"] if options.host_torch else [])
        began = time.time()
        with open(options.log + ".out", "a") as out:
            code = subprocess.call(command, stdout=out, stderr=out, env=dict(os.environ, PYTHONPATH=os.pathsep.join(
                [HERE] + ([os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []))))
        results = read(options.log)
        with open(options.log, "a") as log:
            for case in left:
                if results.get(case, {}).get("outcome") == "begun":
                    late = time.time() - began >= options.limit
                    log.write(json.dumps({"case": case, "outcome": "slow" if late else "died", "seconds": 0,
                                          "launches": 0, "findings": {}, "why": f"exit status {code}"}) + "\n")
        after = [case for case in left if case not in results]
        if len(after) == len(left):
            sys.exit(f"no case ran; see {options.log}.out")
        left = after


def collect(files):
    command = [sys.executable, "-m", "pytest", "--co", "-q", "-o", "addopts=", "--rootdir=/", "-p", "no:cacheprovider"]
    listing = subprocess.run(command + [os.path.abspath(name) for name in files], capture_output=True, text=True,
                             check=False)
    return ["/" + line for line in listing.stdout.splitlines() if re.match(r"\S+\.py::", line)]


def draw(options):
    """Runs cases until `draw` of them have launched something."""
    functions = collections.defaultdict(list)
    for case in collect(options.cases):
        functions[case.split("[")[0]].append(case)
    dice = random.Random(options.seed)
    names = sorted(functions, key=os.path.basename)  # wherever the clone lies
    dice.shuffle(names)
    order = [dice.choice(functions[name]) for name in names]
    print(f"{len(names)} test functions with {sum(map(len, functions.values()))} cases")
    done = []
    while len(done) < options.draw and order:
        batch, order = order[:options.draw - len(done)], order[options.draw - len(done):]
        run(options, batch)
        results = read(options.log)
        for entry in (results[case] for case in batch):
            if elsewhere(entry):
                print("elsewhere", entry["case"], entry["why"].strip().split("\n")[-1][:160])
            elif entry["outcome"] not in IDLE:
                done.append(entry)
    return done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--host-torch", action="store_true")
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", required=True)
    parser.add_argument("--inside")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    if options.inside:
        inside(options)
    os.environ.setdefault("HEWN_SIM_REPORT", options.log + ".report")
    if options.draw:
        done = draw(options)
    else:
        cases = [case for name in options.cases for case in (collect([name]) if "::" not in name else [name])]
        run(options, cases)
        done = [entry for entry in read(options.log).values() if entry["outcome"] not in IDLE and not elsewhere(entry)]
    for entry in done:
        if entry["outcome"] != "right" or entry["findings"]:
            print(entry["outcome"], entry["case"], entry["findings"] or "", entry["why"].split("\n")[0][:160])
    count = collections.Counter(entry["outcome"] for entry in done)
    print(f"{count['right']} of {len(done)} right", dict(count))
    sys.exit(count["right"] < 0.95 * len(done))


if __name__ == "__main__":
    main()
