#!/bin/sh
# hewn mla from files, against float64: mla_cli.py.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/mla_cli
mkdir -p "$work"
if ! "$PYTHON" -c 'import subprocess, struct' 2>/dev/null; then
    skip "hewn mla against float64: no Python"
    finish
    exit
fi
HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=h200 "$PYTHON" "$SRC/tests/cli/mla_cli.py" "$(cd "$BUILD" && pwd)/hewn" "$work"
