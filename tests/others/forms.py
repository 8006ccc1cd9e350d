#!/usr/bin/env python3
"""Which forms of instructions in somebody's PTX did our tests run?

    forms.py [--inline] [--list] DIR RAN…

DIR holds PTX files. A form is an opcode with its modifiers, in any order, and the special register that it reads.
RAN are files that a test wrote with HEWN_SIM_FORMS=FILE; their names, without a suffix, are the names of the tests.
--inline takes only what stands between the marks that a compiler puts around inline assembly. --list names for each
form the tests that ran it. The last line counts; each form that no test ran is named, and is exit status 1.
"""
import argparse
import collections
import pathlib
import re
import sys

INLINE = re.compile(r"// begin inline asm(.*?)// end inline asm", re.S)
OPCODE = re.compile(r"^(?:@!?%?\w+\s+)?([a-z][\w.:]*)\s*(.*)$", re.S)
REGISTER = re.compile(
    r"%(?:n?tid|n?ctaid|n?clusterid|cluster_n?ctaid)\.[xyz]\b|%(?:laneid|n?warpid|n?smid|gridid|lanemask_\w\w"
    r"|is_explicit_cluster|cluster_n?ctarank|\w+_smem_size|clock\w*|globaltimer\w*|envreg\d+|reserved_smem_\w+"
    r"|current_graph_exec)\b")


def canonical(opcode, registers):
    """Modifiers in one order; .shared is .shared::cta by the ISA."""
    mnemonic, *mods = opcode.split(".")
    mods = sorted("shared::cta" if m == "shared" else m for m in mods)
    return ".".join([mnemonic, *mods]) + "".join(" " + r for r in sorted(registers))


def forms_of(text, inline):
    """Each form of a PTX text, as the text has it, by its canonical spelling."""
    parts = INLINE.findall(text) if inline else [text]
    for part in parts:
        part = re.sub(r"//[^\n]*|/\*.*?\*/", "", part, flags=re.S)
        for statement in re.split(r"[;{}]", part):
            match = OPCODE.match(statement.strip())
            if not match or "." not in match.group(1) and match.group(1) not in ("exit", "trap", "ret"):
                continue
            registers = REGISTER.findall(match.group(2))
            spelling = match.group(1) + "".join(" " + r for r in sorted(registers))
            yield canonical(match.group(1), registers), spelling


def ran_of(path):
    """Canonical forms that a test wrote."""
    forms = set()
    for line in path.read_text().splitlines():
        opcode, *registers = line.split()
        forms.add(canonical(opcode, registers))
    return forms


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--inline", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("ran", type=pathlib.Path, nargs="+")
    args = parser.parse_args()
    wanted = {}
    for path in sorted(args.dir.glob("*.ptx")):
        for form, spelling in forms_of(path.read_text(), args.inline):
            wanted.setdefault(form, spelling)
    tests = collections.defaultdict(list)
    for path in args.ran:
        for form in ran_of(path):
            tests[form].append(path.stem)
    missing = [form for form in sorted(wanted) if form not in tests]
    for form in sorted(wanted) if args.list else []:
        print(f"{wanted[form]}: {' '.join(sorted(tests[form])) or 'none'}")
    for form in missing:
        print(f"no test ran {wanted[form]}")
    print(f"forms: {len(wanted) - len(missing)} of {len(wanted)} ran")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
