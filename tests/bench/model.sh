#!/bin/sh
# The cycle model (tools/sim/trace/model.c) against measured times: our own product of 4096 x 4096 x 4096 bf16 on an H200, and
# kernels of others on a B200, whose times they published (tests/others/model.txt, with sources and the two sets).
# Prints one line for each, then the median and the worst error of each set: fit, hold, more (model.txt). A row with a limit fails when the model is
# further off. Part of `make check-all`, because a product takes half a minute. HEWN_OTHERS names the folder with the kernels of
# others as PTX, HEWN_TIRX a clone of mlc-ai/tirx-kernels, PYTHON an interpreter with apache-tvm (tests/others/others.md).
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/lib.sh"
if [ "${SUITE:-all}" != all ]; then finish; exit; fi
work=${BUILD:-build}/tests/model
rm -rf "$work"
mkdir -p "$work"
hewn=${BUILD:-build}/hewn
python=${PYTHON:-python3}
O=${HEWN_OTHERS:-} T=${HEWN_TIRX:-}

# timed GPU SMS COMMAND…: microseconds of its longest launch by the model. A launch that ran to its end without giving tensor memory
# back has a time, too: the program then fails with 721.
timed() {
    gpu=$1 sms=$2
    shift 2
    rm -f "$work/trace.json"
    HEWN_LIBCUDA=$SIM LD_LIBRARY_PATH=$(dirname "$SIM"):${CUDA_HOME:-/usr/local/cuda}/lib64 HEWN_SIM_GPU=$gpu HEWN_SIM_SMS=$sms HEWN_SIM_CHECK=0 \
        HEWN_SIM_QUIET=1 HEWN_SIM_TRACE=$work/trace.json timeout "${MODEL_SECONDS:-900}" "$@" >"$work/out" 2>&1 || grep -q '(721)' "$work/out" || return 1
    grep -o '"microseconds":[0-9.]*' "$work/trace.json" | cut -d: -f2 | sort -n | tail -n 1 | grep .
}
# compare SET NAME LEAST MOST MODEL LIMIT: one line; fails beyond LIMIT percent of the middle, or with "-" only reports
compare() {
    gap=$(awk -v a="$3" -v b="$4" -v m="$5" 'BEGIN { printf "%+.1f", 100 * (2 * m / (a + b) - 1) }')
    printf '%-4s %-44s %7.1f to %7.1f us measured, %7.1f us by the model, %6s %%\n' "$1" "$2" "$3" "$4" "$5" "$gap"
    echo "$1 $gap" >>"$work/gaps"
    [ "$6" = - ] && return
    if awk -v g="$gap" -v most="$6" 'BEGIN { exit !(g <= most && g >= -most) }'; then ok; else fail "$2: $gap % off, most $6"; fi
}
# program SET NAME LEAST MOST LIMIT KIND ARGUMENT…: a row of model.txt
program() {
    set_name=$1 name=$2 least=$3 most=$4 limit=$5 kind=$6
    shift 6
    case $kind in
    others)
        [ -e "$O/$1.ptx" ] || { skip "$name: no $1.ptx in HEWN_OTHERS" && return; }
        set -- "${BUILD:-build}/tests/others" "$O" "$1"
        ;;
    tirx)
        "$python" -c 'import tvm.tirx' 2>/dev/null && [ -d "$T/tirx_kernels" ] || { skip "$name: no HEWN_TIRX, or no TVM in PYTHON" && return; }
        set -- env PYTHONPATH="$T" "$python" "$here/../others/python/tirx_time.py" "$@"
        ;;
    esac
    if us=$(timed b200 148 "$@"); then compare "$set_name" "$name" "$least" "$most" "$us" "$limit"
    else fail "$name: does not run" "$(tail -n 5 "$work/out")"; fi
}
# errors SET: median and worst of its rows, by size
errors() {
    sed -n "s/^$1 //p" "$work/gaps" | tr -d '+-' | sort -n | awk -v s="$1" '{ g[NR] = $1 }
        END { if (NR) printf "%s: %d kernels, median error %.1f %%, worst %.1f %%\n", s, NR, (g[int((NR + 1) / 2)] + g[int(NR / 2) + 1]) / 2, g[NR] }'
}

{
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f2', 'fortran_order': False, 'shape': (4096, 4096), }"
    head -c $((2 * 4096 * 4096)) /dev/zero
} >"$work/zeros.npy"
ours() { timed "$1" "$2" "$hewn" gemm "$work/zeros.npy" "$work/zeros.npy" -o "$work/product.npy"; }
if us=$(ours h200 132); then compare ours 'ours, H200 (tests/BENCH.md)' 196 196 "$us" 15; else fail 'ours on h200' "$(cat "$work/out")"; fi
if us=$(ours b200 148); then printf '%-49s %29s %7.1f us by the model\n' 'ours, B200' 'nobody has measured it,' "$us"; else fail 'ours on b200' "$(cat "$work/out")"; fi

# MODEL_SET names one of the sets, MODEL_SECONDS the most that a row may take
sed '/^#/d; s/ *| */|/g' "$here/../others/model.txt" | grep "^${MODEL_SET:-}" >"$work/rows"
while IFS='|' read -r set_name name least most limit words; do
    # shellcheck disable=SC2086  # the program's words
    program "$set_name" "$name" "$least" "$most" "$limit" $words </dev/null
done <"$work/rows"
errors fit
errors hold
errors more
finish
