#!/bin/sh
# hewn attention from files of every kind it reads, against float64: attention_cli.py.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/attention_cli
mkdir -p "$work"
if ! "$PYTHON" -c 'import subprocess, struct' 2>/dev/null; then
    skip "hewn attention against float64: no Python"
    finish
    exit
fi
HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=b200 "$PYTHON" "$SRC/tests/cli/attention_cli.py" "$BUILD/hewn" "$work"
