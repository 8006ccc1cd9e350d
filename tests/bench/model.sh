#!/bin/sh
# The cycle model (tools/sim/trace/model.c) against measured times of products of 4096 x 4096 x 4096 bf16, the
# same kernels run through it: our own on an H200, and what others published of theirs on a B200
# (tests/others/model.txt, with sources). Prints a line for each; one that is to be met and is more than 15 %
# off is a failure. Part of `make check-all`, for a product takes half a minute; those of others are compiled
# here, by nvcc, from checkouts in $HEWN_OTHERS (others.sh), for PTX alone.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/lib.sh"
if [ "${SUITE:-all}" != all ]; then finish; exit; fi
work=${BUILD:-build}/tests/model
rm -rf "$work"
mkdir -p "$work"
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
hewn=${BUILD:-build}/hewn
O=${HEWN_OTHERS:-}
KITTENS="-std=c++20 --use_fast_math -DNDEBUG -DKITTENS_BLACKWELL -I$O/ThunderKittens/include -I$O/ThunderKittens/prototype"

# timed GPU SMS COMMAND…: microseconds of its longest launch by the model
timed() {
    gpu=$1 sms=$2
    shift 2
    rm -f "$work/trace.json"
    HEWN_LIBCUDA=$SIM LD_LIBRARY_PATH=$(dirname "$SIM") HEWN_SIM_GPU=$gpu HEWN_SIM_SMS=$sms HEWN_SIM_CHECK=0 \
        HEWN_SIM_QUIET=1 HEWN_SIM_TRACE=$work/trace.json timeout 300 "$@" >"$work/out" 2>&1 || return 1
    grep -o '"microseconds":[0-9.]*' "$work/trace.json" | cut -d: -f2 | sort -n | tail -n 1
}
# held NAME MEASURED MODEL MOST: one line; MOST percent off at most, - : reported alone
held() {
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
if us=$(ours h200 132); then held 'ours, H200 (README, "Speed")' 203.2 "$us" 15; else fail 'ours on h200' "$(cat "$work/out")"; fi
if us=$(ours b200 148); then printf '%-44s %26s %7.1f us by the model\n' 'ours, B200' 'nobody has measured it,' "$us"; else fail 'ours on b200' "$(cat "$work/out")"; fi

if [ -z "$O" ]; then
    skip 'HEWN_OTHERS names no folder with checkouts of the projects of others.md'
elif [ ! -x "$nvcc" ]; then
    skip "no nvcc at $nvcc"
else
    for half in cudart record; do
        ${CC:-cc} -std=c11 -O2 -D_GNU_SOURCE -isystem "${nvcc%/bin/nvcc}/include" \
            -c "$here/../others/$half.c" -o "$work/$half.o" || fail "$half.c"
    done
    ln -sf "$(cd "$(dirname "$SIM")" && pwd)/libcuda.so.1" "$work/libcuda.so"
    sed '/^#/d' "$here/../others/model.txt" >"$work/rows"
    while IFS='|' read -r name teraflops most source flags; do
        name=$(echo $name) us=$(awk -v t="$teraflops" 'BEGIN { print 2 * 4096 ^ 3 / t / 1e6 }')
        flags=$(eval "printf '%s' \"$(printf '%s' "$flags" | sed 's/"/\\\\\\"/g')\"")
        if ! "$nvcc" -w -O3 -cudart none --no-compress --expt-relaxed-constexpr --expt-extended-lambda \
            -gencode arch=compute_100a,code=compute_100a $flags -I"$here/../others" "$here/../others/$(echo $source)" \
            "$work/cudart.o" "$work/record.o" -o "$work/program" -L"$work" -lcuda -lpthread >"$work/out" 2>&1; then
            fail "$name: does not compile" "$(tail -n 5 "$work/out")"
        elif ! model=$(timed b200 148 "$work/program"); then
            fail "$name: does not run" "$(tail -n 5 "$work/out")"
        else
            held "$name" "$us" "$model" "$(echo $most)"
        fi
    done <"$work/rows"
fi
finish
