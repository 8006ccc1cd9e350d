#!/bin/sh
# Kernels that others wrote (others.md) on the simulated H200: what every launch writes must hash to what an
# H200 wrote (h200.txt). HEWN_OTHERS names a folder with the kernels as PTX and the projects' own programs
# (programs.txt); what it lacks is skipped.
#
#   HEWN_OTHERS=… sh tests/others/others.sh              runs and compares
#   HEWN_OTHERS=… sh tests/others/others.sh record FILE  on a GPU: writes what h200.txt holds
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/lib.sh"
build=${BUILD:-build}
work=$build/others
cuda=${CUDA_HOME:-/usr/local/cuda}
O=${HEWN_OTHERS:-}

# Our stand-in for the CUDA runtime, which records what the projects' own programs launch. It needs cuda.h.
build_runtime() {
    mkdir -p "$work/lib"
    ${CC:-cc} -std=c11 -O2 -fPIC -shared -D_GNU_SOURCE -isystem "$cuda/include" -I"$here/.." -I"$here/../../runtime" \
        "$here/cudart/cudart.c" "$here/others_record.c" -o "$work/lib/libcudart.so.13" \
        -Wl,-soname,libcudart.so.13 -L"$build/sim" -l:libcuda.so.1 >"$work/cudart.log" 2>&1
}

# One line a buffer that a launch changed: label, launch, buffer, bytes, hash.
run_one() { # label file arguments
    rm -f "$work/$1.rec"
    case $2 in
    *.ptx) set -- "$1" "$build/tests/others" "$O ${2%.ptx}" ;;
    *) set -- "$1" "$O/$2" "$3" ;;
    esac
    OTHERS_RECORD=$work/$1.rec timeout 300 "$2" $3 >"$work/$1.out" 2>&1
    echo $? >"$work/$1.rc"
    sed "s/^/$1 /" "$work/$1.rec" 2>/dev/null
}

simulated() {
    HEWN_LIBCUDA=$SIM LD_LIBRARY_PATH=$work/lib:$(dirname "$SIM") HEWN_SIM_GPU=h200 HEWN_SIM_SMS=132 run_one "$@"
}

# Of the buffers in `shape-only` the hash does not count; `all` means every one.
without_hashes() { # label shape-only file
    for buffer in $2; do
        [ "$buffer" = all ] && buffer='[0-9]*'
        sed -i "s/^\\($1 [0-9]* $buffer [0-9]*\\) .*/\\1/" "$3"
    done
}

compare() { # label file arguments shape-only
    grep "^$1 " "$here/h200.txt" >"$work/$1.want"
    simulated "$1" "$2" "$3" >"$work/$1.got"
    without_hashes "$1" "$4" "$work/$1.want"
    without_hashes "$1" "$4" "$work/$1.got"
    if [ ! -s "$work/$1.want" ]; then
        fail "$1: no recording in tests/others/h200.txt"
    elif cmp -s "$work/$1.want" "$work/$1.got"; then
        ok
    else
        fail "$1: not what the H200 wrote (label, launch, buffer, bytes, hash)" \
            "$(diff "$work/$1.want" "$work/$1.got" | head -n 8)" "$(tail -n 3 "$work/$1.out")"
    fi
}

# label|file|arguments|shape-only, a line for every run, without the blanks around a field.
runs() {
    sed '/^#/d; s/ *| */|/g; s/ *$//' "$here/programs.txt"
}

mkdir -p "$work"
if [ "${1:-}" = record ]; then
    build_runtime
    export LD_LIBRARY_PATH="$work/lib:${LD_LIBRARY_PATH:-}"
    runs >"$work/runs"
    while IFS='|' read -r label file arguments _; do
        [ -e "$O/$file" ] && run_one "$label" "$file" "$arguments"
    done <"$work/runs" >"$2"
    exit 0
fi
if [ -z "$O" ]; then
    skip 'HEWN_OTHERS names no folder with the kernels of tests/others/others.md'
else
    runtime=0
    build_runtime || runtime=$?
    runs >"$work/runs"
    while IFS='|' read -r label file arguments shape_only; do
        if [ ! -e "$O/$file" ]; then
            skip "$label: no $file in HEWN_OTHERS"
        elif [ "${file%.ptx}" = "$file" ] && [ $runtime -ne 0 ]; then
            skip "$label: the stand-in for the CUDA runtime does not build with the headers of $cuda"
        else
            compare "$label" "$file" "$arguments" "$shape_only"
        fi
    done <"$work/runs"
fi
finish
