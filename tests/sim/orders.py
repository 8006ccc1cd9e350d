#!/usr/bin/env python3
"""Asks ptxas which orders of modifiers it takes, and writes tests/sim/orders.txt.

    python3 tests/sim/orders.py build/tests/sim_orders ptxas tests/sim/orders.txt

For each row of the simulator's table it draws instructions, finds operands that ptxas takes, and asks for the orders
that sim_orders.c describes. A line that names no instruction stands behind all questions: ptxas reports every error of
its front end and then stops, so a thousand questions cost a tenth of a second."""
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile

VERSION = '9.5'
INSTANCES, DRAWN, FEW = 2, 100, 4
TARGETS = {'a': ['sm_90a'], 'f': ['sm_103a', 'sm_100a'], '-': ['sm_103a', 'sm_90a']}
WIDTHS = {'b1024': 1024, 'pred': 1, 'b1': 32, 's4': 32, 'u4': 32}
PREFIX = {1: '%p', 16: '%h', 32: '%r', 64: '%rd', 128: '%q'}
TYPE = re.compile(r'^(([busf]|bf|tf)(1|2|4|8|16|32|64|128|1024)|(f|bf|u|s)(16|32)x2|ue?\d*m?\d*x2|ue8m0x2|e\dm\d(x2)?|pred)$')


def width(type_name):
    """Bits of the register that holds the type."""
    if type_name in WIDTHS:
        return WIDTHS[type_name]
    if type_name.endswith('x2'):
        digits = re.match(r'(?:f|bf|u|s)(\d+)x2', type_name)
        return 2 * int(digits.group(1)) if digits else 16
    digits = re.match(r'[a-z]+(\d+)$', type_name)
    return max(16, int(digits.group(1))) if digits else 16


def expand(operands):
    """`{%r10:3}` to {%r10, %r11, %r12}."""
    def spell(found):
        name, first, count = found.group(1), int(found.group(2)), int(found.group(3))
        return '{' + ', '.join(f'%{name}{first + i}' for i in range(count)) + '}'
    return re.sub(r'\{%([a-z]+)(\d+):(\d+)\}', spell, operands)


class Assembler:
    def __init__(self, path):
        self.path = path
        self.folder = tempfile.mkdtemp()

    def ask(self, target, questions):
        """Whether ptxas takes each of the instructions. After a syntax error it does not say all about the rest, so
        the line that has it is left out and the others are asked again."""
        taken = [False] * len(questions)
        left = list(range(len(questions)))
        while left:
            fatal, refused = self.errors(target, [questions[i] for i in left])
            if fatal is None:
                for number, i in enumerate(left):
                    taken[i] = number not in refused
                break
            del left[min(fatal, len(left) - 1)]
        return taken

    def errors(self, target, questions):
        """The line with a syntax error, or None; the lines with any error."""
        head = (f'.version {VERSION}\n.target {target}\n.address_size 64\n'
                '.visible .entry k(.param .align 16 .b8 o[64]) {.reg .b16 %h<40>; .reg .b32 %r<300>; .reg .b64 %rd<140>;'
                ' .reg .b128 %q<10>; .reg .pred %p<9>; .shared .align 1024 .b8 s[4096];\nB: .branchtargets L;\n')
        source = os.path.join(self.folder, 'ask.ptx')
        with open(source, 'w') as file:
            file.write(head + ''.join(expand(q) + ';\n' for q in questions) + 'frobnicate.u32 %r1;\nL: ret; }\n')
        got = subprocess.run([self.path, '-arch=' + target, source, '-o', os.path.join(self.folder, 'out')],
                             capture_output=True, text=True)
        refused, fatal = set(), None
        for line, kind in re.findall(r'line (\d+); (error|fatal)', got.stderr):
            refused.add(int(line) - head.count('\n') - 1)
            if kind == 'fatal':
                fatal = int(line) - head.count('\n') - 1
        if fatal is None and len(questions) not in refused:
            sys.exit('ptxas says something else: ' + got.stderr[:400])
        return fatal, refused

    def ask_all(self, target, questions, at_once=3000):
        return [a for i in range(0, len(questions), at_once) for a in self.ask(target, questions[i:i + at_once])]


def register(bits, number):
    return f'{PREFIX[bits]}{number}'


def list_sizes(name, parts, is_dest):
    if name.startswith('wgmma'):
        n = int(re.match(r'm64n(\d+)k', next(p for p in parts if p.startswith('m64n'))).group(1))
        return [n // 2, n // 4] if is_dest else [4]
    return [1, 2, 4, 8] if 'mma' in name and not name.startswith('tcgen05') else [1, 2, 4, 8, 16, 32, 64, 128]


def lists(element, name, parts, bits, is_dest):
    most = {16: 8, 32: 128, 64: 16, 128: 2}
    widths = [16, 32, 64, 128] if element == '{r}' else [bits]
    vector = [int(p[1]) for p in parts if p in ('v2', 'v4', 'v8')]
    for n in vector or list_sizes(name, parts, is_dest):
        for b in widths:
            if n > most[b] or (element == '{r}' and n * b > 256):
                continue
            if n == 1 and element in ('{r}', '{0}'):
                yield register(b, 10)
            else:
                yield f'{{%{PREFIX[b][1:]}{(10 if is_dest else 100) if b == 32 else 10}:{n}}}'


def spellings(element, name, parts):
    """What could stand for one element of the row's operand pattern (tools/sim/decode/decode.h)."""
    types = [p for p in parts if TYPE.match(p)]
    found = [None] if element.endswith('?') else []
    for way in element.rstrip('?').split('/'):
        is_dest, way = way.startswith('='), way.lstrip('=')
        way, pair = way.split('|')[0], '|' in way
        number = 3 if is_dest else 4
        fixed = {'_': ['_|%p1'], '[]': ['[%r1]'] if name.startswith('tcgen05') else ['[%rd1]', '[%r1]'], 'l': ['L'], '{l}': ['B'], 'sr': ['%clock', '%clock64'],
                 'i': ['1', '0'] if 'mma' in name and 'tcgen05' not in name else ['1', '16', '128', '0', '96', '-1'],
                 'p': ['%p1', '%p1|%p3'] if pair else ['%p1'] if is_dest else ['%p2']}
        if way == '[t]':
            rank = 5 if any('4' in p for p in parts if p.startswith('tile')) else int(parts[0][0])
            found.append('[%%rd2, {%%r20:%d}]' % rank)
        elif way in fixed:
            found += fixed[way]
        else:
            bare = way.strip('{}')
            if bare in ('0', '1', '0w', 'r'):
                index = 1 if bare == '1' or (bare == 'r' and not is_dest and len(types) > 1) else 0
                bits = width(types[index] if index < len(types) else 'b32') * (2 if bare == '0w' else 1)
            else:
                bits = width(bare)
            bits = bits if bits in PREFIX else 64
            if way.startswith('{'):
                found += lists(way, name, parts, bits, is_dest)
            else:
                found.append(register(bits, number))
                found += [register(bits, number) + '|%p1'] if pair else []
    return found


def instances(row, assembler, random_numbers):
    """Up to INSTANCES of (target, opcode, operands) that ptxas takes, those with the most modifiers first."""
    name, mods, args, _, arch = row
    groups = [(g.startswith('['), g.strip('[]').split('|')) for g in mods.split()]
    drawn = {}
    for attempt in range(36):
        parts = [random_numbers.choice(words) for optional, words in groups
                 if not optional or random_numbers.random() < (1, 0.6, 0.3, 0.1)[attempt % 4]]
        drawn[tuple(parts)] = True
    drawn = sorted(drawn, key=lambda parts: -len(parts))
    for target in TARGETS[arch]:
        questions, about = [], []
        for parts in drawn:
            ways = [spellings(e, name, parts) for e in args.split()]
            total = 1
            for way in ways:
                total *= len(way)
            some = (itertools.product(*ways) if total <= 300 else
                    (tuple(random_numbers.choice(w) for w in ways) for _ in range(300)))
            for choice in some:
                operands = ', '.join(c for c in choice if c is not None)
                questions.append('.'.join((name,) + parts) + ' ' + operands)
                about.append((parts, operands))
        found = {}
        for taken, (parts, operands) in zip(assembler.ask_all(target, questions), about):
            if taken:
                found.setdefault(parts, operands)
        if found:
            return [(target, '.'.join((name,) + parts), found[parts]) for parts in drawn if parts in found][:INSTANCES]
    return []


def orders(opcode, fixed):
    """As in sim_orders.c."""
    first, *words = opcode.split('.')
    n, state, mask = len(words), 0xCBF29CE484222325, (1 << 64) - 1
    for byte in opcode.encode():
        state = (state ^ byte) * 0x100000001B3 & mask
    found = [words]
    for i in range(n - 1):
        found.append(words[:i] + [words[i + 1], words[i]] + words[i + 2:])
    head, free = words[:fixed - 1], words[fixed - 1:]
    if len(free) <= FEW:
        found += [head + list(some) for some in itertools.permutations(free)]
    else:
        for _ in range(DRAWN):
            some = list(free)
            for i in range(len(free) - 1, 0, -1):
                state = (state * 6364136223846793005 + 1442695040888963407) & mask
                j = (state >> 33) % (i + 1)
                some[i], some[j] = some[j], some[i]
            found.append(head + some)
    return ['.'.join([first, *some]) for some in found]


def fixed_parts(opcode, names):
    """How many parts of an opcode come first and in order."""
    return max([1] + [name.count('.') + 1 for name in names if (opcode + '.').startswith(name + '.')])


def digits(answers):
    """A bit an answer, the first in the top bit."""
    if all(answers):
        return '*'
    answers = answers + [False] * (-len(answers) % 4)
    return ''.join('%x' % sum(8 >> i for i in range(4) if answers[at + i]) for at in range(0, len(answers), 4))


def main():
    program, ptxas, out = sys.argv[1:]
    assembler, random_numbers = Assembler(ptxas), random.Random(95)
    version = re.search(r'V([\d.]+)', subprocess.run([ptxas, '--version'], capture_output=True, text=True).stdout)
    rows = [line.split('\t') for line in
            subprocess.run([program, '--rows'], capture_output=True, text=True).stdout.splitlines()]
    with open(os.path.join(os.path.dirname(__file__), '../../tools/sim/decode/opcodes.def')) as file:
        names = re.findall(r'W\("(.*?)"\)', file.read())
    lines, asked = {}, 0
    for row in rows:
        found = instances(row, assembler, random_numbers)
        if not found:
            print('nothing of this row is taken:', row[0], row[1][:60])
        for target, opcode, operands in found:
            fixed = fixed_parts(opcode, names)
            some = orders(opcode, fixed)
            answers = assembler.ask_all(target, [o + ' ' + operands for o in some])
            lines[target, opcode] = f'{target}\t{opcode}\t{fixed}\t{operands}\t{digits(answers)}\n'
            asked += len(some)
    with open(out, 'w') as file:
        file.write(f'# Which orders of modifiers ptxas {version.group(1)} takes: sim_orders.c reads, orders.py writes.\n')
        file.writelines(lines.values())
    print(f'{len(lines)} instructions, {asked} orders')


if __name__ == '__main__':
    main()
