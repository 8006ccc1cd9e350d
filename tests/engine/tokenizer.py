"""Compares hewn-engine's tokens with the package tokenizers: tokenizer.py ENGINE SOURCE FOLDER COUNT SEED

Eight kinds of tokenizer are trained on texts of this tree. Each gets COUNT random texts of characters from all of
Unicode, with more of those on which splitting depends. A line a kind: its name, the texts, how many differ.
"""
import json
import os
import random
import subprocess
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

ENDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
PATTERNS = {
    "threes": ENDS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + REST,
    "composed": ENDS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + REST,
    "cases": r"[^\r\n\p{L}\p{N}]?[%s]*[%s]+%s?|[^\r\n\p{L}\p{N}]?[%s]+[%s]*%s?|\p{N}{1,3}|"
             % (UPPER, LOWER, ENDS, UPPER, LOWER, ENDS) + r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
KINDS = ["plain", "threes", "composed", "cases", "split", "legacy", "metaspace", "unknown"]
BEHAVIORS = ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]
SETS = [
    (35, "etaoin shrdlu ETAOIN'sStTdDmMlLrReEvV"),
    (15, " \t   \u00a0\u2003\u3000\r  "),
    (10, "0123456789\u0663\u00bd\u2167\u00b2"),
    (10, "!?.,;:'\"()[]{}<>/\\|@#$%^&*-_=+~`\u2581"),
    (10, "\u00e9\u00fc\u00df\u017fK\u00f1\u00e7\u00e0A\u030a\u1100\u1161\u11a8\u0301\u0323\u0308\u0345\u1e9b"),
    (4, ["<s>", "</s>", "<|end|>", "<unk>", " <|pad|> ", "WORD", "'\u017f", "'S", "'LL"]),
]
PLANES = [(0x20, 0x3000), (0x3000, 0xD800), (0xE000, 0x30000), (0x1F000, 0x20000)]

# Marks of Unicode 14, which the package's normalizer does not know.
NEW_MARKS = {0x898, *range(0x899, 0x8A0), 0xC3C, *range(0x1AC1, 0x1ACF), 0x1DFA, 0x10F82, 0x10F83, 0x10F84, 0x10F85,
             0x11070, 0x1E2AE}


def corpus(source):
    lines = []
    for name in ["README.md", "ptx/README.md", "tests/README.md", "runtime/gemm.c", "tools/sim/MANUAL.md"]:
        with open(os.path.join(source, name), encoding="utf-8") as f:
            lines += f.read().split("\n")
    return lines + ["F\u00fc\u00dfe na\u00efve \u2013 \u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4 \u043c\u0438\u0440\u0430"] * 5


def character(rng):
    at = rng.randrange(100)
    for share, members in SETS:
        if at < share:
            return rng.choice(members)
        at -= share
    while True:  # what later versions of Unicode assign is left out: the package and Python differ there
        c = chr(rng.randrange(*rng.choice(PLANES)))
        if unicodedata.category(c) not in ("Cn", "Co", "Cs") and ord(c) not in NEW_MARKS:
            return c


def text(rng, lines):
    if rng.random() < 0.2:
        return rng.choice(lines)[:200]
    return "".join(character(rng) for _ in range(rng.randrange(60))).replace("\n", "")


def trained(kind, lines, seed):
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if kind in ("legacy", "metaspace", "unknown"):
        t = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=["always", "first", "never"][seed % 3])
        special = ["<unk>", "<s>"] + (["<0x%02X>" % i for i in range(256)] if kind != "unknown" else [])
        if kind == "legacy":
            t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
        t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=1500, special_tokens=special, show_progress=False))
        saved = json.loads(t.to_str())
        saved["added_tokens"] = saved["added_tokens"][:2]
        if kind == "legacy":
            saved["pre_tokenizer"] = None
        t = Tokenizer.from_str(json.dumps(saved))
        t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
        return t
    t = Tokenizer(models.BPE(ignore_merges=kind == "threes"))
    if kind == "composed":
        t.normalizer = normalizers.NFC()
    if kind == "plain":
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=seed % 2 == 0)
    elif kind == "split":
        t.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=seed % 2 == 1),
             pre_tokenizers.Split("e", BEHAVIORS[seed % 5]), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    else:
        t.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(PATTERNS[kind]), "isolated"), bytes_of])
    t.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=1500, special_tokens=["<|begin|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False),
         processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", 0)])])
    return t


def main():
    engine, source, folder, count, seed = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    rng = random.Random(seed)
    lines = corpus(source)
    bad = False
    for i, kind in enumerate(KINDS):
        t = trained(kind, lines, seed + i)
        t.add_special_tokens([AddedToken("<|end|>", normalized=False),
                              AddedToken("<|pad|>", lstrip=True, rstrip=True, normalized=False)])
        t.add_tokens([AddedToken("WORD", single_word=True, normalized=True)])
        where = os.path.join(folder, kind)
        os.makedirs(where, exist_ok=True)
        t.save(os.path.join(where, "tokenizer.json"))
        texts = [text(rng, lines) for _ in range(count)]
        run = subprocess.run([engine, "tokens", where], input="\n".join(texts) + "\n", text=True,
                             capture_output=True, encoding="utf-8", check=False)
        got = run.stdout.split("\n")[:-1]
        if run.returncode or len(got) != count:
            print("  %s ended early: %s" % (kind, run.stderr[:500]))
            return 2
        differ = [(s, w, g) for s, g in zip(texts, got)
                  for w in [" ".join(map(str, t.encode(s).ids))] if w != g]
        for s, w, g in differ[:3]:
            print("  %s %r\n    want %s\n    got  %s" % (kind, s, w, g))
        print(kind, count, len(differ))
        bad = bad or bool(differ)
    return 1 if bad else 0


sys.exit(main())
