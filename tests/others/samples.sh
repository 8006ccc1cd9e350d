#!/bin/sh
# NVIDIA's cuda-samples, built by plain nvcc for compute_90 and run on the simulated H200.
#
#   HEWN_SAMPLES=… sh tests/others/samples.sh [NAME…]      all samples, or the named ones
#
# HEWN_SAMPLES is a clone of github.com/NVIDIA/cuda-samples. Nothing of it is changed: each sample is copied to a
# folder of its own below the build folder, with the log of its build and of its run. The last lines count.
# Settings: BUILD (build), CUDA_HOME (/usr/local/cuda), LIMIT (seconds for one run, 60), JOBS (2),
# CUDART (static or shared), NVCC (a compiler of another version; CUDA_HOME has its headers and libraries).
# CLANG (a clang++) compiles instead of nvcc, for compute_86, with the headers and the runtime library of CUDA_HOME
# (12.9, say); the driver API's samples are not for it. Samples that need graphics, other CUDA libraries or MPI are not listed here.
# What each needs beyond its name stands in samples.txt.
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-build}" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
limit=${LIMIT:-60}
list=$here/samples.txt
work=$build/others/samples-${CLANG:+clang-}${CUDART:-static}
nvcc=${NVCC:-$cuda/bin/nvcc}
sim=$build/sim/libcuda.so.1

if [ -z "$HEWN_SAMPLES" ] || [ ! -d "$HEWN_SAMPLES/Samples" ] || [ ! -x "${CLANG:-$nvcc}" ]; then
    echo "SKIP samples: HEWN_SAMPLES names no clone of cuda-samples, or there is no nvcc at CUDA_HOME and no CLANG"
    echo "samples: 0 passed, 0 failed, 1 skipped"
    exit 0
fi

# The column `field` of a sample's line: 2 group, 3 options of the build, 4 arguments.
column() { # name field
    grep "^$1 *|" "$list" | cut -d '|' -f "$2" | sed 's/^ *//;s/ *$//'
}

# Kernels that the sample loads by itself, as a fat binary and as PTX, under the names that its makefile gives them.
build_kernels() {
    for k in *_kernel.cu; do
        [ -e "$k" ] || continue
        "$nvcc" -arch=compute_90 -I"$HEWN_SAMPLES/Common" -fatbin -o "${k%.cu}64.fatbin" "$k"
        "$nvcc" -arch=compute_90 -I"$HEWN_SAMPLES/Common" -ptx -o "${k%.cu}64.ptx" "$k"
    done
}

# The headers come before those that the system may have. clang 14 knows texture references, which CUDA 12 has no
# more: the name of that header's guard leaves them out. The image has PTX beside machine code for sm_86.
clang_compile() { # name sources… options…
    target=$1
    shift
    case ${CUDART:-static} in static) library=cudart_static ;; *) library=cudart ;; esac
    "$CLANG" -x cuda --cuda-path="$cuda" --cuda-gpu-arch=sm_86 -Wno-unknown-cuda-version \
        -D__CLANG_CUDA_TEXTURE_INTRINSICS_H__ -isystem "$cuda/include" -std=c++17 -w -O2 -I"$HEWN_SAMPLES/Common" \
        -I. -Iinc "$@" -o "$target" -L"$cuda/lib64" "-l$library" -ldl -lrt -lpthread -Xlinker "$sim"
}

build_one() { # name
    rm -rf "${work:?}/$1"
    mkdir -p "$work/$1"
    cp -r "$HEWN_SAMPLES"/Samples/[0-6]_*/"$1"/. "$work/$1"
    cd "$work/$1" || exit 1
    sources=$(find . -name '*.cu' -o -name '*.cpp' -o -name '*.c')
    case $(column "$1" 2) in
    nvrtc) # the headers where the sample's own build puts them
        sources=$(find . -name '*.cpp')
        ln -s "$cuda"/include/cooperative_groups* "$cuda/include/cccl/nv" "$cuda/include/cccl/cuda" .
        ;;
    driver) build_kernels && sources=$(find . -name '*.cpp' -o -name '*.c') ;;
    mixed) build_kernels ;;
    esac
    for s in $(column "$1" 3); do
        case $s in +*) sources="$sources $HEWN_SAMPLES/Common/${s#+}" ;; esac
    done
    options=$(column "$1" 3 | tr ' ' '\n' | grep -v '^+' | tr '\n' ' ')
    # shellcheck disable=SC2086
    [ "$CLANG" ] && { clang_compile "$1" $sources $options; return; }
    # shellcheck disable=SC2086
    "$nvcc" -std=c++17 -arch=compute_90 -cudart "${CUDART:-static}" --extended-lambda -w -O2 -I"$HEWN_SAMPLES/Common" -I. \
        -Iinc -Xcompiler -fopenmp $sources -o "$1" -Xlinker "$sim" $options
}

# Classes: right, wrong, refused (a function or instruction that is not modelled), slow, build, waived (by the sample).
classify() { # status log
    if [ "$1" = 124 ] || [ "$1" = 137 ]; then
        echo slow
    elif [ "$1" = 0 ] && ! grep -qE 'FAILED|Test failed|mismatch' "$2"; then
        echo right
    elif [ "$1" = 2 ]; then # EXIT_WAIVED of the samples
        echo waived
    elif grep -qE 'not modelled|not supported by the simulat' "$2"; then
        echo refused
    else
        echo wrong
    fi
}

run_one() { # name
    if ! (build_one "$1") >"$work/$1.build" 2>&1; then
        echo "build   0 $1" >"$work/$1.row"
        return
    fi
    cd "$work/$1" || exit 1
    begin=$(date +%s)
    # shellcheck disable=SC2046
    LD_LIBRARY_PATH=$build/sim:$cuda/lib64 HEWN_SIM_GPU=${HEWN_SIM_GPU:-h200} HEWN_SIM_QUIET=${HEWN_SIM_QUIET:-0} \
        timeout -k 5 "$limit" "./$1" $(column "$1" 4) >"$work/$1.log" 2>&1 </dev/null
    status=$?
    end=$(date +%s)
    printf '%-7s %3d s  %s  %s\n' "$(classify $status "$work/$1.log")" $((end - begin)) "$1" \
        "$(column "$1" 4)" >"$work/$1.row"
    rm -rf "${work:?}/$1"
}

if [ "$1" = --one ]; then
    run_one "$2"
    cat "$work/$2.row"
    exit
fi
mkdir -p "$work"
names=${*:-$(grep -v '^#' "$list" | cut -d '|' -f 1)}
for n in $names; do echo "$n"; done | xargs -n 1 -P "${JOBS:-2}" sh "$0" --one
for n in $names; do cat "$work/$n.row"; done | cut -d ' ' -f 1 | sort | uniq -c | sort -rn
for n in $names; do cat "$work/$n.row"; done | awk '{ n[$1]++ } END {
    printf "samples: %d passed, %d failed, %d skipped\n", n["right"], n["wrong"] + n["build"], n["refused"] + n["slow"] + n["waived"]
    exit n["wrong"] + n["build"] > 0 }'
