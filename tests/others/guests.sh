#!/bin/sh
# Kernels of FlashMLA, FlashInfer and TIRx, built from their sources as they are, on the simulated driver; float64 judges.
#
#   HEWN_FLASHMLA=… HEWN_FLASHINFER=… HEWN_CUTLASS=… HEWN_CCCL=… HEWN_TIRX=… PYTHON=… sh tests/others/guests.sh
#
# Each variable names a clone (others.md has the commits); FlashMLA and FlashInfer include CUTLASS, FlashInfer a CCCL newer
# than CUDA 13.0's. PYTHON is an interpreter with apache-tvm and numpy, for TIRx. What is missing is skipped, by name.
# nvcc makes shared libraries with PTX alone, by the projects' own options; LD_LIBRARY_PATH is the only thing that says
# which driver they run on. build/tests/guests calls their host functions. Settings: BUILD (build), CUDA_HOME (/usr/local/cuda).
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-build}" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
work=$build/others/guests
. "$here/../lib/lib.sh"
mkdir -p "$work"

# A library of what follows the two names; the options and folders are in $options.
library() { # NAME ARCHITECTURE SOURCE…
    [ -e "$work/lib$1.so" ] && return
    name=$1 code=$2
    shift 2
    # shellcheck disable=SC2086
    "$cuda/bin/nvcc" -O3 -DNDEBUG -lineinfo --expt-relaxed-constexpr --use_fast_math $options \
        -gencode "arch=compute_$code,code=compute_$code" -Xcompiler -fPIC -shared -cudart shared \
        -o "$work/lib$name.so" "$@" >"$work/$name.log" 2>&1 || { fail "lib$name.so: see $work/$name.log" && return 1; }
}

flashmla() {
    if [ ! -d "$HEWN_FLASHMLA/csrc" ] || [ ! -d "$HEWN_CUTLASS/include" ]; then
        skip "FlashMLA: HEWN_FLASHMLA or HEWN_CUTLASS names no clone"
        return
    fi
    c=$HEWN_FLASHMLA/csrc
    options="-std=c++20 --expt-extended-lambda -D_USE_MATH_DEFINES -U__CUDA_NO_HALF_OPERATORS__ -U__CUDA_NO_HALF_CONVERSIONS__
        -U__CUDA_NO_HALF2_OPERATORS__ -U__CUDA_NO_BFLOAT16_CONVERSIONS__ -I$c -I$c/kerutils/include -I$c/sm90
        -I$HEWN_CUTLASS/include -I$HEWN_CUTLASS/tools/util/include"
    library flashmla90 90a "$c/sm90/decode/dense/instantiations/bf16.cu" "$c/smxx/decode/combine/combine.cu" \
        "$c/smxx/decode/get_decoding_sched_meta/get_decoding_sched_meta.cu"
    library flashmla100 100a "$c/sm100/prefill/sparse/fwd/head64/instantiations/phase1_k512.cu"
}

# The instance comes from the project's own template; the types that it asks for are those of default_params.cuh.
flashinfer() {
    if [ ! -d "$HEWN_FLASHINFER/include" ] || [ ! -d "$HEWN_CUTLASS/include" ] || [ ! -d "$HEWN_CCCL/libcudacxx" ]; then
        skip "FlashInfer: HEWN_FLASHINFER, HEWN_CUTLASS or HEWN_CCCL names no clone"
        return
    fi
    cat >"$work/single_prefill_sm90_config.inc" <<END
#include <flashinfer/attention/hopper/default_params.cuh>
#include <flashinfer/attention/hopper/variants.cuh>
#include <flashinfer/attention/mask.cuh>
namespace flashinfer { using Params = SinglePrefillParams<cutlass::float_e4m3_t, cutlass::float_e4m3_t, cutlass::half_t>; }
END
    sed 's/{{ head_dim_qk }}/128/; s/{{ mask_mode }}/MaskMode::kCausal/; s/{{ use_sliding_window }}/false/
        s/{{ variant_name }}/DefaultFP8Attention/' "$HEWN_FLASHINFER/csrc/single_prefill_fp8_sm90_kernel_inst.jinja" \
        >"$work/single_prefill_fp8_sm90.cu"
    options="-std=c++17 -I$work -I$HEWN_CCCL/libcudacxx/include -I$HEWN_CCCL/cub -I$HEWN_CCCL/thrust
        -I$HEWN_FLASHINFER/include -I$HEWN_CUTLASS/include -I$HEWN_CUTLASS/tools/util/include"
    library flashinfer90 90a "$work/single_prefill_fp8_sm90.cu"
}

# By its own compiler, which takes machine code from NVRTC; our stand-in has NVRTC keep the PTX in it.
tirx() {
    python=${PYTHON:-python3}
    if [ ! -d "$HEWN_TIRX/tirx_kernels" ]; then skip "TIRx: HEWN_TIRX names no clone" && return; fi
    for package in numpy torch tvm.tirx; do
        "$python" -c "import $package" 2>/dev/null || { skip "TIRx: $python has no $package" && return; }
    done
    PYTHONPATH=$HEWN_TIRX HEWN_SIM_GPU=b200 "$python" "$here/python/tirx_gemm.py" >"$work/tirx.log" 2>&1
    status "TIRx: see $work/tirx.log" 0 $?
    grep '^[0-9]' "$work/tirx.log"
}

if [ -x "$cuda/bin/nvcc" ]; then
    flashmla
    flashinfer
    export LD_LIBRARY_PATH="$build/sim:$cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    if [ -n "$(ls "$work"/*.so 2>/dev/null)" ]; then
        for gpu in h200 b200; do
            HEWN_GUESTS=$work HEWN_SIM_GPU=$gpu "$build/tests/guests" >"$work/$gpu.log" 2>&1
            status "on $gpu: see $work/$gpu.log" 0 $?
            grep -e '^[a-z].*: .*, [a-z]*proved' -e '^guests:' "$work/$gpu.log"
        done
    fi
    tirx
else
    skip "no nvcc at CUDA_HOME"
fi
finish
