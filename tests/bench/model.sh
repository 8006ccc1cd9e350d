#!/bin/sh
# The cycle model (tools/sim/trace/model.c) against measured times of products of 4096 x 4096 x 4096 bf16: our own
# on an H200, and kernels of others on a B200, whose times they published (tests/others/model.txt, with sources).
# Prints one line for each. A row with a limit fails when the model is further off. Part of `make check-all`,
# because a product takes half a minute. HEWN_OTHERS names the folder with the kernels of others as PTX
# (tests/others/others.md).
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/lib.sh"
if [ "${SUITE:-all}" != all ]; then finish; exit; fi
work=${BUILD:-build}/tests/model
rm -rf "$work"
mkdir -p "$work"
hewn=${BUILD:-build}/hewn
O=${HEWN_OTHERS:-}

# timed GPU SMS COMMAND…: microseconds of its longest launch by the model
timed() {
    gpu=$1 sms=$2
    shift 2
    rm -f "$work/trace.json"
    HEWN_LIBCUDA=$SIM LD_LIBRARY_PATH=$(dirname "$SIM") HEWN_SIM_GPU=$gpu HEWN_SIM_SMS=$sms HEWN_SIM_CHECK=0 \
        HEWN_SIM_QUIET=1 HEWN_SIM_TRACE=$work/trace.json timeout 300 "$@" >"$work/out" 2>&1 || return 1
    grep -o '"microseconds":[0-9.]*' "$work/trace.json" | cut -d: -f2 | sort -n | tail -n 1
}
# compare NAME MEASURED MODEL LIMIT: one line; fails beyond LIMIT percent, or with "-" only reports
compare() {
    gap=$(awk -v a="$2" -v b="$3" 'BEGIN { printf "%+.1f", 100 * (b - a) / a }')
    printf '%-44s %7.1f us measured, %7.1f us by the model, %6s %%\n' "$1" "$2" "$3" "$gap"
    [ "$4" = - ] && return
    if awk -v g="$gap" -v most="$4" 'BEGIN { exit !(g <= most && g >= -most) }'; then ok; else fail "$1: $gap % off, most $4"; fi
}

{
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f2', 'fortran_order': False, 'shape': (4096, 4096), }"
    head -c $((2 * 4096 * 4096)) /dev/zero
} >"$work/zeros.npy"
ours() { timed "$1" "$2" "$hewn" gemm "$work/zeros.npy" "$work/zeros.npy" -o "$work/product.npy"; }
if us=$(ours h200 132); then compare 'ours, H200 (tests/BENCH.md)' 196 "$us" 15; else fail 'ours on h200' "$(cat "$work/out")"; fi
if us=$(ours b200 148); then printf '%-44s %26s %7.1f us by the model\n' 'ours, B200' 'nobody has measured it,' "$us"; else fail 'ours on b200' "$(cat "$work/out")"; fi

if [ -z "$O" ]; then
    skip 'HEWN_OTHERS names no folder with the kernels of tests/others/others.md'
else
    sed '/^#/d; s/ *| */|/g' "$here/../others/model.txt" >"$work/rows"
    while IFS='|' read -r name teraflops limit kernel; do
        us=$(awk -v t="$teraflops" 'BEGIN { print 2 * 4096 ^ 3 / t / 1e6 }')
        if [ ! -e "$O/$kernel.ptx" ]; then
            skip "$name: no $kernel.ptx in HEWN_OTHERS"
        elif ! model=$(timed b200 148 "${BUILD:-build}/tests/others" "$O" "$kernel"); then
            fail "$name: does not run" "$(tail -n 5 "$work/out")"
        else
            compare "$name" "$us" "$model" "$limit"
        fi
    done <"$work/rows"
fi
finish
