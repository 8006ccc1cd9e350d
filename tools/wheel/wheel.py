#!/usr/bin/env python3
"""Writes a Python wheel of programs and libraries: wheel.py OUT_DIR VERSION NM PLACE=FILE...

PLACE is a path inside the wheel's .data folder: scripts/NAME goes to the environment's bin, data/PATH
to its prefix. The wheel has no Python code. Its tag names the oldest glibc that has every symbol that
the files ask for. Prints the path of the wheel.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile

SUMMARY = "Simulated CUDA driver: runs and checks PTX of any toolchain on a CPU"
OLDEST = (2, 17)  # manylinux has no tag for less


def glibc(nm, files):
    """The newest GLIBC_2.N that a symbol of these files needs, as (2, N)."""
    newest = OLDEST
    for path in files:
        symbols = subprocess.run([nm, "-D", "--undefined-only", path], check=True,
                                 capture_output=True, text=True).stdout
        for major, minor in re.findall(r"@+GLIBC_(\d+)\.(\d+)", symbols):
            newest = max(newest, (int(major), int(minor)))
    return newest


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def main():
    if len(sys.argv) < 5:
        sys.exit("usage: wheel.py OUT_DIR VERSION NM PLACE=FILE...")
    folder, version, nm = sys.argv[1:4]
    files = dict(pair.split("=", 1) for pair in sys.argv[4:])
    elves = [path for path in files.values() if is_elf(path)]
    tag = "py3-none-manylinux_%d_%d_%s" % (*glibc(nm, elves), os.uname().machine)
    contents = []  # name, bytes, mode
    for place, path in files.items():
        with open(path, "rb") as file:
            contents.append((f"hewn-{version}.data/{place}", file.read(),
                             0o755 if path in elves else 0o644))
    info = f"hewn-{version}.dist-info"
    contents.append((f"{info}/METADATA", f"Metadata-Version: 2.1\nName: hewn\nVersion: {version}\n"
                     f"Summary: {SUMMARY}\n".encode(), 0o644))
    contents.append((f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: hewn make wheel\n"
                     f"Root-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644))
    record = ""
    for name, data, _ in contents:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    contents.append((f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode(), 0o644))

    path = os.path.join(folder, f"hewn-{version}-{tag}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data, mode in contents:
            entry = zipfile.ZipInfo(name)  # dated 1980: one build, one wheel
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    print(path)


if __name__ == "__main__":
    main()
