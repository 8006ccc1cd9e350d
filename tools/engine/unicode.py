"""Writes unicode_table.c from Python's unicodedata: unicode.py > unicode_table.c

General categories as ranges, and canonical decompositions with combining classes for NFC.
"""
import sys
import unicodedata

NAMES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn".split()


def ranges(value):
    """Where value(character) changes: [(first character, value)]."""
    out = []
    for c in range(sys.maxunicode + 1):
        v = value(chr(c))
        if not out or out[-1][1] != v:
            out.append((c, v))
    return out


def write(kind, name, rows, width=8):
    print("const %s %s[] = {" % (kind, name))
    for i in range(0, len(rows), width):
        print("    " + " ".join(r + "," for r in rows[i:i + width]))
    print("};")
    print("const size_t %s_count = sizeof %s / sizeof %s[0];" % (name, name, name))


def decompositions():
    rows = []
    for c in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(c)).split()
        if not parts or parts[0].startswith("<"):
            continue
        first, second = int(parts[0], 16), int(parts[1], 16) if len(parts) > 1 else 0
        back = unicodedata.normalize("NFC", chr(c)) == chr(c)
        rows.append("{0x%X, 0x%X, 0x%X, %d}" % (c, first, second, back))
    return rows


print("/* Made by unicode.py from Unicode %s. Do not edit. */" % unicodedata.unidata_version)
print('#include "unicode.h"\n')
print('const char unicode_version[] = "%s";\n' % unicodedata.unidata_version)
write("uint32_t", "unicode_categories",
      ["0x%X" % (c << 5 | v) for c, v in ranges(lambda x: NAMES.index(unicodedata.category(x)))])
write("uint32_t", "unicode_classes",
      ["0x%X" % (c << 8 | v) for c, v in ranges(unicodedata.combining)])
write("struct unicode_pair", "unicode_pairs", decompositions(), 3)
