#!/bin/sh
# Kernels that Python tools make at run time, on the simulated driver, by those tools' own tests and examples.
#
#   HEWN_TRITON=… HEWN_TINYGRAD=… HEWN_CUTLASS=… PYTHON=… sh tests/others/python.sh [triton | tinygrad | cute]…
#
# Each variable names a clone; PYTHON an interpreter with pytest, PyTorch (for CUDA) and the tool. Without a clone or a
# package that part is skipped, by name. Nothing of the clones is changed. Logs: others/python/ below the build folder.
# Settings: BUILD (build), SEED (18) and DRAW (60) for Triton, LIMIT (seconds for one case, 240), GPUS (h200 b200).
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-build}" && pwd)
python=${PYTHON:-python3}
limit=${LIMIT:-240}
logs=$build/others/python
. "$here/../lib/lib.sh"
mkdir -p "$logs"
export LD_LIBRARY_PATH="$build/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" HEWN_SIM_QUIET=1
export TRITON_PTXAS_PATH="$build/sim/bin/ptxas" TRITON_PTXAS_BLACKWELL_PATH="$build/sim/bin/ptxas"

lacks() { # PACKAGE… : one that is not there
    for package; do
        "$python" -c "import $package" 2>/dev/null || { echo "$package" && return 0; }
    done
    return 1
}

triton() { # tutorials and unit tests, drawn by the seed
    if [ ! -d "$HEWN_TRITON/python/tutorials" ]; then skip "triton: HEWN_TRITON names no clone" && return; fi
    if missing=$(lacks pytest torch triton); then skip "triton: $python has no $missing" && return; fi
    for gpu in ${GPUS:-h200 b200}; do
        echo "== Triton on $gpu, seed ${SEED:-18}"
        (cd "$HEWN_TRITON" && HEWN_SIM_GPU=$gpu "$python" "$here/python/cases.py" --host-torch --limit "$limit" \
            --draw "${DRAW:-60}" --seed "${SEED:-18}" --log "$logs/triton-$gpu-${SEED:-18}.log" python/test/unit/language \
            python/test/unit/cuda python/test/unit/runtime python/test/gluon/test_core.py \
            python/test/gluon/test_lowerings.py python/tutorials/06-fused-attention.py python/tutorials/gluon/*-*.py \
            "$here/python/triton_scripts.py")
        status "triton on $gpu" 0 $?
    done
}

tinygrad() { # test_ops, every case
    if [ ! -f "$HEWN_TINYGRAD/test/backend/test_ops.py" ]; then skip "tinygrad: HEWN_TINYGRAD names no clone" && return; fi
    if missing=$(lacks pytest torch); then skip "tinygrad: $python has no $missing" && return; fi
    echo "== tinygrad's test_ops through PTX, on h200"
    (cd "$HEWN_TINYGRAD" && HEWN_SIM_GPU=h200 DEV=CUDA:PTX PYTHONPATH="$HEWN_TINYGRAD" "$python" "$here/python/cases.py" \
        --limit "$limit" --log "$logs/tinygrad.log" test/backend/test_ops.py)
    status tinygrad 0 $?
}

example() { # GPU PROGRAM ARGUMENT… : prints PASS
    gpu=$1 program=$2 log=$logs/$(basename "$2" .py)-$1.log
    shift 2
    HEWN_SIM_GPU=$gpu HEWN_SIM_QUIET=0 CUTE_DSL_LINEINFO=1 "$python" "$here/python/host_torch.py" \
        "$HEWN_CUTLASS/examples/python/CuTeDSL/cute/$program" "$@" >"$log" 2>&1 && grep -q '^PASS' "$log"
    code=$?
    [ $code = 0 ] && echo "right $program on $gpu"
    status "$program on $gpu" 0 $code
}

cute() { # examples of CuTe DSL through its own compiler and launcher; each compares with PyTorch
    if [ ! -d "$HEWN_CUTLASS/examples/python/CuTeDSL/cute" ]; then skip "cute: HEWN_CUTLASS names no clone" && return; fi
    if missing=$(lacks torch cutlass.cute); then skip "cute: $python has no $missing" && return; fi
    once="--warmup_iterations 0 --iterations 1"
    # shellcheck disable=SC2086
    {
        example h200 ampere/kernel/elementwise/elementwise_add.py --M 64 --N 64
        example h200 hopper/kernel/dense_gemm/dense_gemm.py --mnkl 256,256,128,1 --tile_shape_mn 128,128 $once
        example h200 hopper/kernel/attention/fmha.py --q_shape 1,256,1,128 --k_shape 1,256,1,128 $once
        example b200 blackwell/kernel/dense_gemm/dense_gemm.py --mnkl 256,256,128,1 --mma_tiler_mn 128,128 $once
        example b200 blackwell/kernel/attention/fmha/fmha.py --q_shape 1,256,1,128 --k_shape 1,256,1,128 $once
    }
}

[ $# -gt 0 ] || set -- triton tinygrad cute
for part; do
    case $part in
    triton | tinygrad | cute) $part ;;
    *) echo "$part is none of triton, tinygrad, cute" && exit 2 ;;
    esac
done
finish
