#!/bin/sh
# Modules from another language: ctypes and json, nothing of ours but the files in build/modules.
. "$SRC/tests/lib/lib.sh"
log=$BUILD/tests/python.log
if ! "$PYTHON" -c 'import ctypes, json' 2>/dev/null; then
    skip "Python examples: no Python with ctypes"
    finish
    exit
fi
case $MODE in rel | dbg) ;; *)
    skip "Python examples: an interpreter without the sanitiser of MODE=$MODE cannot load the simulator"
    finish
    exit
    ;;
esac

for gpu in h200 b200; do
    if HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=$gpu "$PYTHON" "$SRC/tests/driver/vecadd.py" >"$log" 2>&1; then ok
    else fail "vecadd.py on $gpu" "$(cat "$log")"; fi
done
if HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=h200 HEWN_SIM_QUIET=1 "$PYTHON" "$SRC/tests/driver/aliased.py" "$BUILD/tests/aliased.json" >"$log" 2>&1; then ok
else fail "memory under two addresses" "$(cat "$log")"; fi
product() { # GPU TARGET NAME
    if HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=$1 "$PYTHON" "$SRC/tests/driver/gemm_ctypes.py" "$BUILD/modules/$2/$3.json" >"$log" 2>&1; then
        want "$3 on $1" "90000 of 90000 elements right" "$log"
    else fail "gemm_ctypes.py: $3 for $2 on $1" "$(tail -n 5 "$log")"; fi
}
product h200 sm_90a gemm_bf16_f32
product b200 sm_100f gemm_bf16_f32
product b200 sm_100f gemm_f16_bf16
product b300 sm_100f gemm_f16_f16
finish
