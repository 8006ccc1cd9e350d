"""hewn mla from .npy files, against float64: a plain cache, pages, records of both kinds, lists, two caches."""
import math, os, random, struct, subprocess, sys

HEWN, WORK = sys.argv[1], sys.argv[2]
B, S, H, N, D, V, PAGE = 2, 2, 3, 40, 576, 512, 16
LENGTHS = [37, 20]
passed = failed = 0


def write(name, kind, shape, values):
    order = "|" if kind == "u1" else "<"
    header = "{'descr': '%s%s', 'fortran_order': False, 'shape': %s, }" % (order, kind, shape)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(os.path.join(WORK, name), "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        f.write(struct.pack("<%d%s" % (len(values), {"f4": "f", "i4": "i", "u1": "B"}[kind]), *values))


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


def near(name, o, lse, sees=None, rows=None, columns=D):
    """Worst error of a few columns, and of every log-sum-exp. sees(b, i): the keys that a query sees."""
    rows = rows or q
    worst = 0.0
    for b in range(B):
        for i in range(S):
            seen = sees(b, i) if sees else keys[b][:LENGTHS[b] - (S - 1 - i)]
            for h in range(H):
                row = rows[((b * S + i) * H + h) * columns:][:columns]
                scores = [sum(x * y for x, y in zip(row, k)) / columns ** 0.5 for k in seen]
                top = max(scores)
                p = [math.exp(s - top) for s in scores]
                for c in (0, 255, 256, 511):
                    want = sum(w * k[c] for k, w in zip(seen, p)) / sum(p)
                    worst = max(worst, abs(want - o[((b * S + i) * H + h) * V + c]))
                worst = max(worst, abs(top + math.log(sum(p)) - lse[(b * H + h) * S + i]))
    check(name, worst < 2e-3, "worst error %g" % worst)


def run(name, sees, *args):
    """hewn mla with q.npy; its results go to near()."""
    rc, out = hewn("q.npy", *args, "-o", "o.npy", "--lse", "lse.npy")
    check(name, rc == 0, out)
    if rc == 0:
        near(name, read("o.npy"), read("lse.npy"), sees)


def e4m3(x):
    """The byte of a multiple of 1/8 up to 1, all of which e4m3 has."""
    sign, x, exponent = (0x80 if x < 0 else 0), abs(x), 7
    if not x:
        return sign
    while x < 1:
        x, exponent = 2 * x, exponent - 1
    return sign | exponent << 3 | int((x - 1) * 8)


def record(key):
    """656 bytes. The scales are 2, 1, 1/2, 1/4, and the element times its scale is the key's."""
    scales = [2.0, 1.0, 0.5, 0.25]
    parts = bytes(e4m3(x / scales[c // 128]) for c, x in enumerate(key[:V]))
    rotary = b"".join(struct.pack("<f", x)[2:] for x in key[V:])
    return parts + struct.pack("<4f", *scales) + rotary


def numbers(n):
    return [random.randrange(-8, 9) / 8 for _ in range(n)]  # exact in bf16


random.seed(5)
q = numbers(B * S * H * D)
keys = [[numbers(D) for _ in range(N)] for _ in range(B)]
write("q.npy", "f4", (B, S, H, D), q)
write("c.npy", "f4", (B, N, D), [x for b in keys for row in b for x in row])
write("l.npy", "i4", (B,), LENGTHS)
run("a plain cache", None, "c.npy", "--lengths", "l.npy", "--causal")

table = [4, 0, 2, 1, 3, 5]
pool = [0.0] * (6 * PAGE * D)
for b in range(B):
    for j in range(N):
        at = (table[b * 3 + j // PAGE] * PAGE + j % PAGE) * D
        pool[at:at + D] = keys[b][j]
write("pool.npy", "f4", (6, PAGE, D), pool)
write("t.npy", "i4", (B, 3), table)
run("pages", None, "pool.npy", "--lengths", "l.npy", "--table", "t.npy", "--causal")

# Lists: W keys of its own for each query, some of them none, over the pool of pages and over one sequence's keys.
W = 24
lists, counts = [], []
for query in range(B * S):
    lists += random.sample(range(6 * PAGE), W - 4) + [-1, 6 * PAGE, -7, random.randrange(6 * PAGE)]
    counts.append([W, 5, W - 4, W - 1][query])
write("i.npy", "i4", (B, S, W), lists)
write("n.npy", "i4", (B, S), counts)


def listed(count):
    """What sees() is with the lists, of which the first count(query) entries count."""
    def sees(b, i):
        at = (b * S + i) * W
        return [pool[j * D:(j + 1) * D] for j in lists[at:at + count(b * S + i)] if 0 <= j < 6 * PAGE]
    return sees


run("lists over pages", listed(lambda query: W), "pool.npy", "--lists", "i.npy")
run("lists with lengths", listed(lambda query: counts[query]), "pool.npy", "--lists", "i.npy", "--lengths", "n.npy")
write("one.npy", "f4", (1, 6 * PAGE, D), pool)
run("lists over one cache", listed(lambda query: W), "one.npy", "--lists", "i.npy")

# Records: the keys are those of before, but for their range, which e4m3 must have.
scale_of = [2.0, 1.0, 0.5, 0.25]
for b in range(B):
    keys[b] = [[x * scale_of[c // 128] if c < V else x for c, x in enumerate(row)] for row in keys[b]]
write("r.npy", "u1", (B, N, 656), b"".join(record(row) for b in keys for row in b))
run("records", None, "r.npy", "--records", "--lengths", "l.npy", "--causal")
pool = [x for b in keys for row in b for x in row]
pool += [0.0] * (6 * PAGE * D - len(pool))
rows = [pool[at:at + D] for at in range(0, len(pool), D)]
write("rp.npy", "u1", (6, PAGE, 656), b"".join(record(row) for row in rows))
run("records by lists", listed(lambda query: W), "rp.npy", "--records", "--lists", "i.npy")

# Records of 584 bytes: 512 columns; scales 2, 1, 1/2, .. of 64 columns each, behind the rows of a sequence or page.
def split_page(page):
    code = [128 - g for g in range(7)]
    body = b"".join(bytes(e4m3(x / 2.0 ** (code[c // 64] - 127)) for c, x in enumerate(row[:448])) +
                    b"".join(struct.pack("<f", x)[2:] for x in row[448:V]) for row in page)
    return body + bytes(code + [9]) * len(page)


def split_rows(n):
    return [[x * 2.0 ** (1 - c // 64) if c < 448 else x for c, x in enumerate(numbers(V))] for _ in range(n)]


def split_run(name, sees, *args):
    rc, out = hewn("q5.npy", *args, "--records", "584", "-o", "o.npy", "--lse", "lse.npy")
    check(name, rc == 0, out)
    if rc == 0:
        near(name, read("o.npy"), read("lse.npy"), sees, q5, V)


q5 = numbers(B * S * H * V)
write("q5.npy", "f4", (B, S, H, V), q5)
ODD = 37  # rows: a page is no multiple of 16 bytes
sequences = [split_rows(ODD) for _ in range(B)]
write("s.npy", "u1", (B, ODD, 584), b"".join(split_page(s) for s in sequences))
split_run("records of 584 bytes", lambda b, i: sequences[b][:LENGTHS[b] - (S - 1 - i)], "s.npy", "--lengths", "l.npy",
          "--causal")
first, second = split_rows(6 * PAGE), split_rows(3 * ODD)
write("s1.npy", "u1", (6, PAGE, 584), b"".join(split_page(first[p * PAGE:][:PAGE]) for p in range(6)))
write("s2.npy", "u1", (3, ODD, 584), b"".join(split_page(second[p * ODD:][:ODD]) for p in range(3)))
lists2 = [random.choice([-1, 3 * ODD, *range(3 * ODD)]) for _ in range(B * S * 9)]
counts2 = [9, 0, 4, 7]
write("i2.npy", "i4", (B, S, 9), lists2)
write("n2.npy", "i4", (B, S), counts2)


def both(b, i):
    at = b * S + i
    return ([first[j] for j in lists[at * W:][:counts[at]] if 0 <= j < 6 * PAGE] +
            [second[j] for j in lists2[at * 9:][:counts2[at]] if 0 <= j < 3 * ODD])


split_run("two caches", both, "s1.npy", "--lists", "i.npy", "--lengths", "n.npy", "--cache2", "s2.npy", "--lists2",
          "i2.npy", "--lengths2", "n2.npy")

write("bytes.npy", "u1", (B, 1, 576), bytes(B * 576))
for name, args, words in (
        ("no cache", ("q.npy", "-o", "x.npy"), "two .npy files are needed"),
        ("no output", ("q.npy", "c.npy"), "-o O.npy is missing"),
        ("a table alone", ("q.npy", "pool.npy", "-o", "x.npy", "--table", "t.npy"), "--table needs --lengths"),
        ("another batch", ("q.npy", "pool.npy", "-o", "x.npy"), "they must be equal without --table"),
        ("Q of another rank", ("c.npy", "c.npy", "-o", "x.npy"), "c.npy"),
        ("lists and a table", ("q.npy", "pool.npy", "-o", "x.npy", "--lists", "i.npy", "--table", "t.npy", "--lengths",
                               "l.npy"), "--lists goes without --table"),
        ("lists and a mask", ("q.npy", "pool.npy", "-o", "x.npy", "--lists", "i.npy", "--causal"),
         "--lists goes without --causal"),
        ("lists of another shape", ("q.npy", "pool.npy", "-o", "x.npy", "--lists", "n.npy"), "n.npy"),
        ("lists that are floats", ("q.npy", "pool.npy", "-o", "x.npy", "--lists", "c.npy"), "want '<i4'"),
        ("records that are floats", ("q.npy", "c.npy", "-o", "x.npy", "--records"), "want '|u1'"),
        ("records of another size", ("q.npy", "bytes.npy", "-o", "x.npy", "--records"),
         "rows of bytes.npy have 576 elements, not 656"),
        ("Q of 576 columns", ("q.npy", "s.npy", "-o", "x.npy", "--records", "584"),
         "rows of q.npy have 576 elements, not 512"),
        ("second lists alone", ("q.npy", "c.npy", "-o", "x.npy", "--lists", "i.npy", "--lists2", "i2.npy"),
         "a second cache needs --lists, --cache2 and --lists2"),
        ("Q in f16 with records", ("q.npy", "r.npy", "-o", "x.npy", "--records", "--in", "f16"), "bf16"),
        ("a scale", ("q.npy", "c.npy", "-o", "x.npy", "--scale", "-1"), "--scale takes a number above 0")):
    rc, out = hewn(*args)
    check(name, rc != 0 and words in out, out)
print("mla_cli: %d passed, %d failed, 0 skipped" % (passed, failed))
sys.exit(failed != 0)
