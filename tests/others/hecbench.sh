#!/bin/sh
# Programs of HeCBench, built by their own makefiles for compute_90 and run on the simulated H200.
#
#   HEWN_HECBENCH=… sh tests/others/hecbench.sh [NAME…]      all programs of hecbench.txt, or the named ones
#
# HEWN_HECBENCH is a clone of github.com/zjin-lcf/HeCBench. Each program is built in a copy below the build folder,
# together with its neighbours, whose data some read. A row is class, seconds of the processor and name. The last line
# counts. Settings: BUILD (build), CUDA_HOME (/usr/local/cuda), LIMIT (seconds of the processor, 120), JOBS (2).
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-build}" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
list=$here/hecbench.txt
work=$build/others/hecbench

if [ -z "$HEWN_HECBENCH" ] || [ ! -d "$HEWN_HECBENCH/src" ] || [ ! -x "$cuda/bin/nvcc" ]; then
    echo "SKIP hecbench: HEWN_HECBENCH names no clone of HeCBench, or there is no nvcc at CUDA_HOME"
    echo "hecbench: 0 passed, 0 failed, 1 skipped"
    exit 0
fi

# The column `field` of a program's line: 2 arguments, 3 program, 4 the words that its output must have, 5 options of make.
column() { # name field
    grep "^$1 *|" "$list" | cut -d '|' -f "$2" | sed 's/^ *//;s/ *$//'
}

build_one() { # name
    mkdir -p "$work/src"
    for d in "$HEWN_HECBENCH/src/${1%-cuda}"-*; do
        rm -rf "$work/src/$(basename "$d")"
        cp -r "$d" "$work/src"
    done
    cd "$work/src/$1" || exit 1
    find . -name '*.bz2' -exec bunzip2 -k {} +
    # shellcheck disable=SC2046
    PATH=$cuda/bin:$PATH make ARCH=compute_90 CC=nvcc $(column "$1" 5)
}

# Classes: right, runs (it does not check itself), wrong, refused (something is not modelled), slow, build. Status 1 beside
# the right words is of programs that know the answer for their full size only.
classify() { # status log words
    if [ "$1" = 124 ] || [ "$1" -ge 137 ]; then
        echo slow
    elif grep -qE 'not modelled|not supported by the simulat' "$2"; then
        echo refused
    elif [ -n "$3" ] && [ "$1" -le 1 ] && grep -qE "$3" "$2"; then
        echo right
    elif [ -n "$3" ] || [ "$1" != 0 ] || grep -qE 'FAIL|Fail|fail|Error:|mismatch' "$2"; then
        echo wrong
    else
        echo runs
    fi
}

run_one() { # name
    if ! (build_one "$1") >"$work/$1.build" 2>&1; then
        echo "build       0 s  $1" >"$work/$1.row"
        return
    fi
    cd "$work/src/$1" || exit 1
    program=$(column "$1" 3)
    (
        # shellcheck disable=SC3045
        ulimit -t "${LIMIT:-120}"
        # shellcheck disable=SC2046
        LD_LIBRARY_PATH=$build/sim:$cuda/lib64 HEWN_SIM_GPU=${HEWN_SIM_GPU:-h200} \
            timeout -k 5 1800 "${program:-./main}" $(column "$1" 2) >"$work/$1.log" 2>&1 </dev/null
        echo $? >"$work/$1.status"
        times | tail -n 1 >"$work/$1.times"
    )
    seconds=$(sed 's/m.*//' "$work/$1.times") # minutes
    rest=$(sed 's/^[0-9]*m\([0-9]*\).*/\1/' "$work/$1.times")
    printf '%-7s %4d s  %s  %s\n' "$(classify "$(cat "$work/$1.status")" "$work/$1.log" "$(column "$1" 4)")" \
        $((60 * seconds + rest)) "$1" "$(column "$1" 2)" >"$work/$1.row"
}

if [ "$1" = --one ]; then
    run_one "$2"
    cat "$work/$2.row"
    exit
fi
mkdir -p "$work"
names=${*:-$(grep -v '^#' "$list" | cut -d '|' -f 1)}
for n in $names; do echo "$n"; done | xargs -n 1 -P "${JOBS:-2}" sh "$0" --one
for n in $names; do cat "$work/$n.row"; done | awk '{ n[$1]++ } END {
    printf "hecbench: %d passed, %d failed, %d skipped\n", n["right"] + n["runs"], n["wrong"] + n["build"], n["refused"] + n["slow"]
    exit n["wrong"] + n["build"] > 0 }'
