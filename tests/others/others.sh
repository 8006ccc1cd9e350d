#!/bin/sh
# Kernels that others wrote (others.md), compiled from their sources and run on the simulated H200: what
# every launch writes must hash to what a H200 wrote (others/h200.txt). HEWN_OTHERS names a folder with
# checkouts of cutlass, ThunderKittens, fast.cu, DeepGEMM and flash-attention at the commits of others.md;
# without it, or without nvcc, there is nothing to compile and the test is skipped.
#
#   HEWN_OTHERS=… sh tests/others/others.sh              builds what is missing in $BUILD/others, runs, compares
#   HEWN_OTHERS=… sh tests/others/others.sh record FILE  on a GPU: writes what h200.txt holds; builds nothing
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/lib.sh"
work=${BUILD:-build}/others
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
O=${HEWN_OTHERS:-}
CUTLASS="-std=c++17 -I$O/cutlass/include -I$O/cutlass/tools/util/include -I$O/cutlass/examples/common"
FAST='-std=c++17 --use_fast_math -DNDEBUG'
KITTENS="-std=c++20 --use_fast_math -DNDEBUG -DKITTENS_HOPPER -I$O/ThunderKittens"
KITTENS="$KITTENS -I$O/ThunderKittens/include -I$O/ThunderKittens/prototype"

# The executable carries PTX alone, which the driver compiles: every driver gets the same text.
build() { # name source flags
    [ -x "$work/$1" ] && return 0
    case $2 in */*) source=$O/$2 ;; *) source=$here/$2 ;; esac
    flags=$(eval "printf '%s' \"$(printf '%s' "$3" | sed 's/"/\\\\\\"/g')\"")
    for half in cudart record; do
        ${CC:-cc} -std=c11 -O2 -D_GNU_SOURCE -isystem "${nvcc%/bin/nvcc}/include" \
            -c "$here/$half.c" -o "$work/$half.o" || return 1
    done
    ln -sf "$SIM" "$work/libcuda.so"
    "$nvcc" -w -O2 -cudart none --no-compress --expt-relaxed-constexpr --expt-extended-lambda \
        -gencode arch=compute_90a,code=compute_90a $flags -I"$here" "$source" "$work/cudart.o" \
        "$work/record.o" -o "$work/$1" -L"$work" -lcuda -lpthread >"$work/$1.log" 2>&1
}

# One line a buffer that a launch changed: label, launch, buffer, bytes, hash.
run_one() { # label program arguments
    rm -f "$work/$1.rec"
    OTHERS_RECORD=$work/$1.rec timeout 300 "$work/$2" $3 >"$work/$1.out" 2>&1
    echo $? >"$work/$1.rc"
    sed "s/^/$1 /" "$work/$1.rec" 2>/dev/null
}

simulated() {
    LD_LIBRARY_PATH=$(dirname "$SIM") HEWN_SIM_GPU=h200 HEWN_SIM_SMS=132 run_one "$@"
}

# Of buffers named in `shape_only`, or all with `all`, the hash does not count: only that the launch wrote them.
without_hashes() { # label shape-only file
    for buffer in $2; do
        [ "$buffer" = all ] && buffer='[0-9]*'
        sed -i "s/^\\($1 [0-9]* $buffer [0-9]*\\) .*/\\1/" "$3"
    done
}

compare() { # label program arguments shape-only
    grep "^$1 " "$here/h200.txt" >"$work/$1.want"
    simulated "$1" "$2" "$3" >"$work/$1.got"
    without_hashes "$1" "$4" "$work/$1.want"
    without_hashes "$1" "$4" "$work/$1.got"
    if [ ! -s "$work/$1.want" ]; then
        fail "$1: no recording in others/h200.txt"
    elif cmp -s "$work/$1.want" "$work/$1.got"; then
        ok
    else
        fail "$1: not what the H200 wrote (label, launch, buffer, bytes, hash)" \
            "$(diff "$work/$1.want" "$work/$1.got" | head -n 8)" "$(tail -n 3 "$work/$1.out")"
    fi
}

# label|program|arguments|shape-only|source|flags, a line for every run.
runs() {
    sed '/^#/d' "$here/programs.txt" | while IFS='|' read -r name source flags many shape_only; do
        name=$(echo $name) source=$(echo $source) several=$(echo "$many" | tr -cd ';')
        echo "$many" | tr ';' '\n' | while read -r arguments; do
            label=$name${several:+_$arguments}
            echo "$label|$name|$arguments|$(echo $shape_only)|$source|$flags"
        done
    done
}

if [ "${1:-}" = record ]; then
    runs >"$work/runs"
    while IFS='|' read -r label name arguments _; do
        run_one "$label" "$name" "$arguments"
    done <"$work/runs" >"$2"
    exit 0
fi
if [ -z "$O" ]; then
    skip 'HEWN_OTHERS names no folder with checkouts of the projects of others.md'
elif [ ! -x "$nvcc" ]; then
    skip "no nvcc at $nvcc"
else
    mkdir -p "$work"
    runs >"$work/runs"
    while IFS='|' read -r label name arguments shape_only source flags; do
        if build "$name" "$source" "$flags"; then
            compare "$label" "$name" "$arguments" "$shape_only"
        else
            fail "$label: does not compile" "$(tail -n 5 "$work/$name.log")"
        fi
    done <"$work/runs"
fi
finish
