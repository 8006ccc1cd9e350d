#!/bin/sh
# hewn gemm with every option, against exact arithmetic: gemm_cli.py.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/gemm_cli
mkdir -p "$work"
if ! "$PYTHON" -c 'import subprocess, struct' 2>/dev/null; then
    skip "hewn gemm against exact arithmetic: no Python"
    finish
    exit
fi
HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=h200 "$PYTHON" "$SRC/tests/cli/gemm_cli.py" "$BUILD/hewn" "$work"
