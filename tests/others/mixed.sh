#!/bin/sh
# Programs of several collections, each built by one call of nvcc for compute_90 and run on the simulated H200.
#
#   HEWN_TRAINING=… HEWN_LLMC=… HEWN_CUTLASS=… sh tests/others/mixed.sh [NAME…]     all programs of mixed.txt, or the named ones
#
# The variables name clones of olcf/cuda-training-series, karpathy/llm.c and NVIDIA/cutlass. Nothing in them is changed. A row
# is class and name; logs are in others/mixed below the build folder. The last line counts.
# Settings: BUILD (build), CUDA_HOME (/usr/local/cuda), LIMIT (seconds of the processor for one run, 120).
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-build}" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
work=$build/others/mixed
passed=0 failed=0 skipped=0
mkdir -p "$work"

column() { # NAME FIELD
    grep "^$1 *|" "$here/mixed.txt" | cut -d '|' -f "$2" | sed 's/^ *//;s/ *$//'
}
clone_of() { # COLLECTION
    case $1 in
    TRAINING) echo "$HEWN_TRAINING" ;;
    LLMC) echo "$HEWN_LLMC" ;;
    CUTLASS) echo "$HEWN_CUTLASS" ;;
    esac
}
build_one() { # NAME CLONE
    options=
    case $(column "$1" 4) in
    LLMC) options='-O3 --use_fast_math -std=c++17 -lcublas -lcublasLt' ;;
    CUTLASS) options="-std=c++17 -O2 --expt-relaxed-constexpr -I$2/include -I$2/tools/util/include -I$2/examples/common" ;;
    esac
    # shellcheck disable=SC2086
    "$cuda/bin/nvcc" -arch=compute_90 -lineinfo "$2/$(column "$1" 3)" $options -o "$work/$1" >"$work/$1.build" 2>&1
}
run_one() { # NAME: prints its class
    words=$(column "$1" 6)
    (
        # shellcheck disable=SC3045
        ulimit -t "${LIMIT:-120}"
        # shellcheck disable=SC2046
        LD_LIBRARY_PATH=$build/sim:$cuda/lib64 HEWN_SIM_GPU=${HEWN_SIM_GPU:-h200} \
            timeout -k 5 1800 "$work/$1" $(column "$1" 5) >"$work/$1.log" 2>&1 </dev/null
    )
    code=$?
    if [ $code = 124 ] || [ $code -ge 137 ]; then
        echo slow
    elif [ $code = 0 ] && [ -n "$words" ] && grep -q "$words" "$work/$1.log"; then
        echo right
    elif [ $code = 0 ] && [ -z "$words" ]; then
        echo runs
    else
        echo wrong
    fi
}

names=${*:-$(grep -v '^#' "$here/mixed.txt" | cut -d '|' -f 1)}
for name in $names; do
    clone=$(clone_of "$(column "$name" 2)")
    if [ ! -d "$clone" ] || [ ! -x "$cuda/bin/nvcc" ]; then
        echo "SKIP $name: HEWN_$(column "$name" 2) names no clone, or there is no nvcc at CUDA_HOME"
        skipped=$((skipped + 1))
        continue
    fi
    class=build
    [ ! -x "$work/$name" ] && ! build_one "$name" "$clone" || class=$(run_one "$name")
    printf '%-6s %s  %s\n' "$class" "$name" "$(column "$name" 5)"
    case $class in
    right | runs) passed=$((passed + 1)) ;;
    slow) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
done
echo "mixed: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
