"""hewn mla from .npy files, against float64: a plain cache, and the same keys in pages of a pool."""
import math, os, random, struct, subprocess, sys

HEWN, WORK = sys.argv[1], sys.argv[2]
B, S, H, N, D, V, PAGE = 2, 2, 3, 40, 576, 512, 16
LENGTHS = [37, 20]
passed = failed = 0


def write(name, kind, shape, values):
    header = "{'descr': '<%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(os.path.join(WORK, name), "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        f.write(struct.pack("<%d%s" % (len(values), {"f4": "f", "i4": "i"}[kind]), *values))


def read(name):
    with open(os.path.join(WORK, name), "rb") as f:
        data = f.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack("<%df" % ((len(data) - start) // 4), data[start:])


def hewn(*args):
    run = subprocess.run([HEWN, "mla", *args], cwd=WORK, capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def check(name, good, why=""):
    global passed, failed
    passed, failed = passed + good, failed + (not good)
    if not good:
        print("FAIL mla_cli: %s: %s" % (name, why))


def near(name, o, lse):
    """Worst error of a few columns, and of every log-sum-exp."""
    worst = 0.0
    for b in range(B):
        for i in range(S):
            for h in range(H):
                row = q[((b * S + i) * H + h) * D:][:D]
                seen = LENGTHS[b] - (S - 1 - i)
                scores = [sum(x * y for x, y in zip(row, keys[b][j])) / 24 for j in range(seen)]
                top = max(scores)
                p = [math.exp(s - top) for s in scores]
                for c in (0, 255, 256, 511):
                    want = sum(w * keys[b][j][c] for j, w in enumerate(p)) / sum(p)
                    worst = max(worst, abs(want - o[((b * S + i) * H + h) * V + c]))
                worst = max(worst, abs(top + math.log(sum(p)) - lse[(b * H + h) * S + i]))
    check(name, worst < 2e-3, "worst error %g" % worst)


def numbers(n):
    return [random.randrange(-8, 9) / 8 for _ in range(n)]  # exact in bf16


random.seed(5)
q = numbers(B * S * H * D)
keys = [[numbers(D) for _ in range(N)] for _ in range(B)]
write("q.npy", "f4", (B, S, H, D), q)
write("c.npy", "f4", (B, N, D), [x for b in keys for row in b for x in row])
write("l.npy", "i4", (B,), LENGTHS)
rc, out = hewn("q.npy", "c.npy", "-o", "o.npy", "--lse", "lse.npy", "--lengths", "l.npy", "--causal")
check("a plain cache", rc == 0, out)
if rc == 0:
    near("a plain cache", read("o.npy"), read("lse.npy"))

table = [4, 0, 2, 1, 3, 5]
pool = [0.0] * (6 * PAGE * D)
for b in range(B):
    for j in range(N):
        at = (table[b * 3 + j // PAGE] * PAGE + j % PAGE) * D
        pool[at:at + D] = keys[b][j]
write("pool.npy", "f4", (6, PAGE, D), pool)
write("t.npy", "i4", (B, 3), table)
rc, out = hewn("q.npy", "pool.npy", "-o", "op.npy", "--lse", "lp.npy", "--lengths", "l.npy", "--table", "t.npy",
               "--causal")
check("pages", rc == 0, out)
if rc == 0:
    near("pages", read("op.npy"), read("lp.npy"))

for name, args, words in (
        ("no cache", ("q.npy", "-o", "x.npy"), "two .npy files are needed"),
        ("no output", ("q.npy", "c.npy"), "-o O.npy is missing"),
        ("a table alone", ("q.npy", "pool.npy", "-o", "x.npy", "--table", "t.npy"), "--table needs --lengths"),
        ("another batch", ("q.npy", "pool.npy", "-o", "x.npy"), "they must be equal without --table"),
        ("Q of another rank", ("c.npy", "c.npy", "-o", "x.npy"), "c.npy"),
        ("a scale", ("q.npy", "c.npy", "-o", "x.npy", "--scale", "-1"), "--scale takes a number above 0")):
    rc, out = hewn(*args)
    check(name, rc != 0 and words in out, out)
print("mla_cli: %d passed, %d failed, 0 skipped" % (passed, failed))
sys.exit(failed != 0)
