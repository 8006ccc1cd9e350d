#!/usr/bin/env python3
"""Records what a build's kernels and checker do, and compares two such records.

    oracle.py record OUT --build BUILD --source SRC [options]
    oracle.py compare OLD NEW [options]

A record has four parts, a file each in OUT:

    cubins   the machine code of each kernel, its registers and other resources
    zoo      findings and verdicts of each case of tests/zoo, as it is and with -DFIXED, seeds 1 .. N
    tests    findings and verdicts of all launches that the test programs and scripts make on the simulator
    mutants  what the checker says of each mutant of tests/mutate

A line is a key (the kernel, case or mutant), a count and one thing that was said, with tabs between them.
Two builds agree when they say the same of every key, each the same number of times, in whatever order.

Recording runs programs of BUILD; nothing is written there or in SRC. --share I/N records one share of the
keys of `tests`, the same ones in every build. Comparing exits with 1 when anything differs.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

import cubins

HERE = pathlib.Path(__file__).resolve().parent
PARTS = ("cubins", "zoo", "tests", "mutants")
TIMEOUT = 900  # seconds, for one case

# Test programs that launch kernels, and on which devices. Each case is a process and a key of its own, except
# where a program prepares all cases before it runs one.
DEVICES = ("h200", "b200")
PROGRAMS = {
    "sim_exec": ("",), "sim_ops": ("",), "sim_async": ("",), "sim_tensor": ("",), "sim_tma": ("",),
    "sim_check": ("",), "recorded": ("",), "golden": ("h200",), "driver_api": DEVICES,
    "driver_launch": DEVICES, "gemm": DEVICES, "attention": DEVICES, "host": DEVICES,
    "combine": DEVICES, "compiled": DEVICES,
}
WHOLE = ("golden",)
SCRIPTS = ("attention_schedules", "contract", "hang", "hewnrun", "protocols", "report", "schedules",
           "unknown", "worksheet")


class Recorder:
    def __init__(self, options, scratch):
        self.options = options
        self.build = pathlib.Path(options.build).resolve()
        self.source = pathlib.Path(options.source).resolve()
        self.scratch = pathlib.Path(scratch)
        self.share, self.shares = (int(n) for n in options.share.split("/"))
        self.tee = self.scratch / "tee.so"
        self.simulator = self.build / "sim" / "libcuda.so.1"

    def mine(self, key):
        return zlib.crc32(key.encode()) % self.shares == self.share

    # ---- set-up ----

    def prepare(self):
        """The preloaded library, and a build directory in which scripts may write."""
        compiler = os.environ.get("CC", "cc").split()
        subprocess.run(compiler + ["-std=c11", "-O2", "-shared", "-fPIC", str(HERE / "tee.c"), "-o",
                                   str(self.tee), "-ldl"], check=True)
        build = self.scratch / "build"
        (build / "tests").mkdir(parents=True)
        for path in self.build.iterdir():
            if path.name != "tests":
                (build / path.name).symlink_to(path)
        for path in (self.build / "tests").iterdir():
            if path.is_file():
                (build / "tests" / path.name).symlink_to(path)

    def find(self, name):
        """The file or directory of the source tree's tests, in whatever room it lies."""
        found = sorted((self.source / "tests").rglob(name))
        return found[0] if found else None

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("HEWN_")}
        env.update(HEWN_LIBCUDA=str(self.simulator), HEWN_SIM_QUIET="1", HEWN_SIM_THREADS="1", LC_ALL="C")
        env.update({k: str(v) for k, v in more.items()})
        return env

    def plain(self, line):
        """A line without what differs from one run to the next: directories and host addresses."""
        line = line.rstrip("\n").replace("\t", " ")
        for path, name in ((self.scratch / "build", "BUILD"), (self.build, "BUILD"),
                           (self.source, "SRC")):
            line = line.replace(str(path), name)
        line = re.sub(r"/tmp/[\w./-]+", "TEMPORARY", line)
        return re.sub(r"\b0x[0-9a-f]{9,15}\b", "ADDRESS", line)

    def run(self, command, env, stdin=None):
        """Exit status and standard output; a program that takes too long has the status 'killed'."""
        try:
            done = subprocess.run([str(c) for c in command], env=env, cwd=self.source, timeout=TIMEOUT,
                                  stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, errors="replace")
        except subprocess.TimeoutExpired:
            return "killed", ""
        return done.returncode, done.stdout

    def teed(self, command, env):
        """Exit status, output, and the lines of all reports that the command's processes wrote."""
        with tempfile.NamedTemporaryFile("r", dir=self.scratch, errors="replace") as tee:
            env = dict(env, LD_PRELOAD=str(self.tee), HEWN_ORACLE_TEE=tee.name)
            status, output = self.run(command, env)
            return status, output, tee.read().splitlines()

    # ---- the zoo ----

    def zoo_jobs(self):
        for path in sorted((self.source / "tests" / "zoo").glob("*.ptx")):
            level = re.search(r"//@ zoo:.*; *level (\d)", path.read_text())
            for fixed in ("", "-DFIXED"):
                key = (path.name + " " + fixed).strip()
                yield key, lambda p=path, f=fixed, l=level: self.zoo(p, f, l.group(1) if l else "1")

    def zoo(self, path, fixed, level):
        env = self.environment(HEWN_SIM_CHECK=level)
        command = [self.build / "hewn", "run", path.relative_to(self.source), "--json", "--schedules",
                   self.options.seeds]
        status, output = self.run(command + ([fixed] if fixed else []), env)
        lines, seed = [], []
        for line in output.splitlines():
            seed.append(line)
            if line.startswith('{"run"'):  # closes a seed's lines
                number = json.loads(line)["seed"]
                lines += ["seed %d %s" % (number, s) for s in seed]
                seed = []
        return lines + seed + ["status %s" % status]

    # ---- test programs and scripts ----

    def program(self, name):
        path = self.build / "tests" / name
        arguments = []
        golden = self.source / "tests" / "golden"
        if name == "golden":
            arguments = [golden]
        if name in ("gemm", "attention"):
            arguments = ["--digests", golden / ("results-%s.txt" % name)]
        return [path] + arguments

    def case_jobs(self):
        """A job for each case of each program, so that an added case moves no other."""
        compiled = self.find("classic.ptx")
        for name, devices in PROGRAMS.items():
            if not (self.build / "tests" / name).exists():
                raise SystemExit("oracle: %s has no tests/%s" % (self.build, name))
            for device in devices:
                env = self.environment(HEWN_SIM_GPU=device or "b200", HEWN_SIM_REPORT="/dev/null")
                if name == "compiled" and compiled:
                    env["HEWN_TEST_CUDA"] = str(compiled.parent)
                for options, case in self.cases(name, env):
                    key = " ".join(filter(None, (name, device, self.plain(case))))
                    if self.mine(key):
                        yield key, lambda n=name, e=env, o=options: self.case(n, e, o)

    def cases(self, name, env):
        """Options that choose a case, and its name."""
        if name in WHOLE:
            return [([], "")]
        listed = self.run(self.program(name) + ["--list"], env)[1]
        return [(["--case", number], case) for number, case in re.findall(r"(?m)^ *(\d+)  (.*)$", listed)]

    def case(self, name, env, options):
        status, _, lines = self.teed(self.program(name) + options, env)
        return lines + ["status %s" % status]

    def script_jobs(self):
        for name in SCRIPTS:
            path = self.find(name + ".sh")
            if path and self.mine("script " + name):
                yield "script " + name, lambda p=path: self.script(p)

    def script(self, path):
        build = self.scratch / "build"
        env = self.environment(SRC=self.source, BUILD=build, SIM=self.simulator, SUITE="check", MODE="rel",
                               PYTHON=sys.executable, CC=os.environ.get("CC", "cc"), PTXAS="", NM="nm",
                               CUDA_HOME="")
        status, _, lines = self.teed(["sh", path], env)
        return lines + ["status %s" % status]

    # ---- mutants ----

    def mutants(self):
        """One run: the program keeps every core busy itself, and writes a line a mutant."""
        report = self.scratch / "mutants"
        program = self.options.mutate or self.build / "tests" / "mutate"
        command = [program, "--sample", self.options.sample, "--jobs", self.options.jobs, "--report", report,
                   "--ptxas", self.options.ptxas, self.build / "hewn", self.build / "modules",
                   self.source / "tests" / "mutate"]
        env = self.environment()
        del env["HEWN_SIM_QUIET"]
        subprocess.run([str(c) for c in command], env=env, stdout=subprocess.DEVNULL, check=False)
        if not report.exists():
            raise SystemExit("oracle: %s writes no report; --mutate names a newer one" % program)
        for line in report.read_text(errors="replace").splitlines():
            key, *said = line.split("\t")
            yield key, [" ".join(said[:2])] + said[2:]

    # ---- all of it ----

    def jobs(self, part):
        if part == "zoo":
            return list(self.zoo_jobs())
        return list(self.script_jobs()) + list(self.case_jobs())

    def record(self, part):
        if part == "cubins":
            return [(k, [line]) for k, line in cubins.kernels(self.build / "modules")]
        if part == "mutants":
            return list(self.mutants())
        jobs, times = self.jobs(part), []

        def timed(job):
            start = time.monotonic()
            lines = job[1]()
            times.append((time.monotonic() - start, job[0]))
            return lines

        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            said = list(zip((k for k, _ in jobs), pool.map(timed, jobs)))
        for seconds, key in sorted(times, reverse=True)[:self.options.slowest]:
            print("  %6.1f s  %s" % (seconds, key))
        return said


def record(options):
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    parts = options.parts.split(",")
    with tempfile.TemporaryDirectory(prefix="hewn-oracle-") as scratch:
        recorder = Recorder(options, scratch)
        recorder.prepare()
        for part in parts:
            counts = collections.Counter()
            keys = set()
            for key, lines in recorder.record(part):
                keys.add(key)
                counts.update((key, recorder.plain(line)) for line in lines)
            with open(out / part, "w") as f:
                for (key, line), n in sorted(counts.items()):
                    f.write("%s\t%d\t%s\n" % (key, n, line))
            print("%s: %d recorded" % (part, len(keys)), flush=True)
    return 0


# ---- comparing ----


def without_lines(line):
    """Lines of kernel sources are replaced, since a comment moves them; others stay."""
    line = re.sub(r'("file":"ptx/[^"]*","line":)\d+', r"\1*", line)
    line = re.sub(r"(\bptx/[\w./-]+\.\w+(?::|, line ))\d+", r"\1*", line)
    if '"file":"ptx/' in line:
        line = re.sub(r"\bline \d+", "line *", line)
    return line


def folded(text):
    """Sums and products of plain numbers are replaced by their values, as the module builder does."""
    def value(found):
        try:
            return str(eval(found.group(0).replace("/", "//")))  # digits and operators alone
        except (SyntaxError, ZeroDivisionError):
            return found.group(0)
    before = None
    while before != text:
        before = text
        text = re.sub(r"\((\d+)\)", r"\1", text)
        text = re.sub(r"(?<![\w.])\d+(?: [*/+-] \d+)+(?![\w.])", value, text)
    return text


def renamed(text, key, names):
    for old, new, scope in names:
        if key.startswith(scope):
            text = re.sub(r"(?<!\w)%s(?!\w)" % re.escape(old), new.replace("\\", r"\\"), text)
    return text


def read_part(path, options, names):
    """key -> Counter of lines, as far as they are compared."""
    said = collections.defaultdict(collections.Counter)
    with open(path) as f:
        for row in f:
            key, n, line = row.rstrip("\n").split("\t", 2)
            key, line = renamed(key, key, names), renamed(line, key, names)
            if options.ignore_lines:
                line = without_lines(line)
            if options.fold:
                key, line = folded(key), folded(line)
            if options.ignore_registers:
                key, line = (re.sub(r"%[a-z_]\w*", "%*", t) for t in (key, line))
            said[key][line] += int(n)
    return said


def read_names(path):
    """Rows of a file: old name, new name, and how the keys begin that this is about (all, if left out)."""
    if not path:
        return []
    rows = [row.split() for row in open(path) if row.strip() and not row.startswith("#")]
    return [(old, new, scope[0] if scope else "") for old, new, *scope in rows]


def show_difference(key, gone, come, options):
    """The first few lines on either side, from shortly before they begin to differ."""
    print("  " + key)
    begin = 0
    if gone and come:
        begin = len(os.path.commonprefix([min(gone), min(come)])) - 40
    for sign, lines in (("-", gone), ("+", come)):
        for line, n in sorted(lines.items())[:3]:
            start = max(0, begin)
            print("    %s %s%s%s" % (sign, "%d times " % n if n > 1 else "", "… " if start else "",
                                     line[start:start + options.width]))


def compare_part(part, options):
    old_path, new_path = (pathlib.Path(d) / part for d in (options.old, options.new))
    if not old_path.exists() and not new_path.exists():
        return 0
    if not old_path.exists() or not new_path.exists():
        print("%s: recorded in one of the two only" % part)
        return 1
    old = read_part(old_path, options, read_names(options.map))
    new = read_part(new_path, options, [])
    gone, come = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    differ = sorted(k for k in old.keys() & new.keys() if old[k] != new[k])
    same = len(old.keys() & new.keys()) - len(differ)
    print("%s: same %d, differ %d, only old %d, only new %d" %
          (part, same, len(differ), len(gone), len(come)))
    for title, keys in (("only old", gone), ("only new", come)):
        for key in keys[:options.show]:
            print("  %s: %s" % (title, key))
    for key in differ[:options.show]:
        show_difference(key, old[key] - new[key], new[key] - old[key], options)
    return len(differ) + len(gone) + (0 if options.allow_new else len(come))


def compare(options):
    worst = [compare_part(part, options) for part in PARTS]
    return 1 if any(worst) else 0


def arguments():
    parser = argparse.ArgumentParser(description="Records what kernels and checker do; compares records.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("record")
    p.add_argument("out")
    p.add_argument("--build", required=True, help="the build directory")
    p.add_argument("--source", required=True, help="the tree that it was built from")
    p.add_argument("--parts", default=",".join(PARTS), help="some of " + ",".join(PARTS))
    p.add_argument("--seeds", default="20", help="of the zoo: 1 .. N")
    p.add_argument("--share", default="0/1", help="I/N: one share of the tests' cases")
    p.add_argument("--sample", default="1", help="every N-th mutant")
    p.add_argument("--mutate", help="the program of the mutants, if not that of the build")
    p.add_argument("--ptxas", default=shutil.which("ptxas") or "", help="tells equal mutants by their code")
    p.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    p.add_argument("--slowest", type=int, default=0, help="print the N keys that took longest, a part")
    p = verbs.add_parser("compare")
    p.add_argument("old")
    p.add_argument("new")
    p.add_argument("--map", help="a file of names in OLD that have changed: old, new, and how keys begin")
    p.add_argument("--ignore-lines", action="store_true", help="line numbers of files below ptx/")
    p.add_argument("--fold", action="store_true", help="compare constant expressions by their values")
    p.add_argument("--ignore-registers", action="store_true", help="names of registers")
    p.add_argument("--allow-new", action="store_true", help="keys that NEW alone has are no difference")
    p.add_argument("--show", type=int, default=10, help="how many keys are shown a part")
    p.add_argument("--width", type=int, default=400, help="how much is shown of a line")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = arguments()
    sys.exit(record(chosen) if chosen.verb == "record" else compare(chosen))
