"""Kernels in cubins: what of each decides how it executes, as one line a kernel."""

import hashlib
import pathlib
import struct

REGISTERS, FRAME, STACK, PARAMETER_BANK = 0x2F, 0x11, 0x23, 0x0A  # attributes of .nv.info

CUDA_MACHINE = 190


def sha(data):
    return hashlib.sha256(data).hexdigest()


class Elf:
    """The sections and symbols of a 64-bit little-endian ELF file."""

    def __init__(self, data):
        self.data = data
        start, number, names = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 60)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * i) for i in range(number)]
        strings = headers[names]
        self.sections = {self.text(strings, h[0]): h for h in headers}
        self.symbols = []
        if ".symtab" in self.sections:
            table = self.bytes(".symtab")
            names = self.sections[".strtab"]
            self.symbols = [self.text(names, struct.unpack_from("<I", table, i)[0])
                            for i in range(0, len(table), 24)]

    def text(self, strings, at):
        begin = strings[4] + at
        return self.data[begin:self.data.index(b"\0", begin)].decode()

    def bytes(self, name):
        header = self.sections.get(name)
        if not header:
            return b""
        return self.data[header[4]:header[4] + header[5]]

    def size(self, name):
        return self.sections[name][5] if name in self.sections else 0


def attributes(data):
    """(attribute, value) of a .nv.info section; a value of format 4 has its length before it."""
    at = 0
    while at + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:
            yield attribute, data[at:at + value]
            at += value
        else:
            yield attribute, struct.pack("<H", value)


def of_symbol(elf, attribute, entry):
    """The number that the file's .nv.info gives for a kernel."""
    for key, value in attributes(elf.bytes(".nv.info")):
        if key == attribute and elf.symbols[struct.unpack_from("<I", value)[0]] == entry:
            return struct.unpack_from("<I", value, 4)[0]
    return 0


def info(elf, entry):
    """A kernel's own attributes, without the symbol number in them, which depends on its neighbours."""
    parts = []
    for key, value in attributes(elf.bytes(".nv.info." + entry)):
        parts.append("%02x:%s" % (key, (value[4:] if key == PARAMETER_BANK else value).hex()))
    return ",".join(parts)


def relocations(elf, entry):
    table = elf.bytes(".rela.text." + entry)
    rows = [struct.unpack_from("<QQq", table, i) for i in range(0, len(table), 24)]
    return ",".join("%x:%x:%s:%x" % (at, kind & 0xFFFFFFFF, elf.symbols[kind >> 32], add)
                    for at, kind, add in rows)


def describe(elf, entry):
    return " ".join([
        "code=" + sha(elf.bytes(".text." + entry)),
        "bytes=%d" % elf.size(".text." + entry),
        "registers=%d" % of_symbol(elf, REGISTERS, entry),
        "frame=%d" % of_symbol(elf, FRAME, entry),
        "stack=%d" % of_symbol(elf, STACK, entry),
        "shared=%d" % elf.size(".nv.shared." + entry),
        "constant=%d" % elf.size(".nv.constant0." + entry),
        "info=" + sha(info(elf, entry).encode()),
        "relocations=" + sha(relocations(elf, entry).encode()),
        "portable=" + sha(elf.bytes(".nv.capmerc.text." + entry)),
    ])


def kernels(modules):
    """(key, line) of each kernel in the cubins below a directory, whatever their names: the key is
    architecture and entry."""
    for path in sorted(pathlib.Path(modules).rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        if data[:4] != b"\x7fELF" or struct.unpack_from("<H", data, 18)[0] != CUDA_MACHINE:
            continue
        elf = Elf(data)
        arch = "sm_%d" % (struct.unpack_from("<I", data, 48)[0] >> 8 & 0xFFFF)
        for name in elf.sections:
            if name.startswith(".text."):
                entry = name[len(".text."):]
                yield arch + " " + entry, describe(elf, entry)
