#!/bin/sh
# The command line: what it prints, what it refuses, and its exit statuses.
. "$SRC/tests/lib.sh"
work=$BUILD/tests/cli
rm -rf "$work"
mkdir -p "$work"
hewn=$BUILD/hewn
out=$work/out
run() { HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=${gpu:-b200} "$hewn" "$@" >"$out" 2>&1; }

run info
status "hewn info" 0 $?
want "info names the driver" "^driver: simulated" "$out"
want "info names the device" "compute capability 10.0" "$out"
want "info says what would run" "gemm_bf16_f32 *sm_100f *ptx" "$out"
gpu=h200 run info
want "info on an H200" "gemm_f16_bf16 *sm_90a *ptx" "$out"

run modules
status "hewn modules" 0 $?
for target in sm_90a sm_100f; do want "modules lists $target" "^gemm  *gemm_bf16_f32  *$target" "$out"; done
run extract gemm_bf16_f32 --target sm_100f -o "$work/k.ptx"
if cmp -s "$work/k.ptx" "$BUILD/modules/sm_100f/gemm_bf16_f32.ptx"; then ok; else fail "extract gives another text than the build"; fi
run extract gemm_bf16_f32 --target sm_90a --what json
want "extract --what json" '"entry": "hewn_gemm_bf16_f32"' "$out"
run extract gemm_bf16_f32
status "extract of an ambiguous name" 1 $?
want "extract of an ambiguous name" "choose with --target" "$out"
run extract nothing
status "extract of an unknown name" 1 $?

run demo -o "$work/demo"
status "hewn demo" 0 $?
want "demo is right" "^right:" "$out"
run gemm "$work/demo/a.npy" "$work/demo/b.npy" -o "$work/c.npy"
status "hewn gemm" 0 $?
if cmp -s "$work/c.npy" "$work/demo/c.npy"; then ok; else fail "hewn gemm and hewn demo disagree on the same files"; fi
for types in "bf16 f16" "f16 bf16" "f16 f32"; do
    # shellcheck disable=SC2086
    set -- $types
    run gemm "$work/demo/a.npy" "$work/demo/b.npy" -o "$work/c.npy" --in "$1" --out "$2"
    status "hewn gemm --in $1 --out $2" 0 $?
done

run gemm "$work/demo/a.npy" "$work/demo/c.npy" -o "$work/x.npy"
status "K that differs" 1 $?
want "K that differs" "second dimensions (K) must be equal" "$out"
run gemm "$work/demo/a.npy" "$work/none.npy" -o "$work/x.npy"
want "a file that is not there" "none.npy: No such file" "$out"
head -c 5000 "$work/demo/a.npy" >"$work/short.npy"
run gemm "$work/short.npy" "$work/demo/b.npy" -o "$work/x.npy"
status "a file cut short" 1 $?
want "a file cut short" "the header says .* bytes of data" "$out"
if [ -e "$work/x.npy" ]; then fail "a refused product left an output file"; else ok; fi
run gemm "$work/demo/a.npy"
status "one input" 64 $?
run gemm a b -o c --in f64
want "an unknown dtype" "takes bf16 or f16" "$out"
run frobnicate
status "an unknown command" 64 $?
HEWN_LIBCUDA=/nonexistent/libcuda.so "$hewn" info >"$out" 2>&1
status "a driver that is not there" 1 $?
want "a driver that is not there" "/nonexistent/libcuda.so" "$out"
HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=gtx480 "$hewn" info >"$out" 2>&1
status "a GPU that is not simulated" 1 $?
want "a GPU that is not simulated" "h200" "$out"

# hewn check: the program's status where all is clean, else its own
"$hewn" check --gpu b200 "$hewn" demo -o "$work/checked" >"$out" 2>&1
status "check of a clean program" 0 $?
want "check counts launches" "1 launch: 1 clean" "$out"
"$hewn" check sh -c 'exit 7' >"$out" 2>&1
status "check passes the program's status on" 7 $?
"$hewn" check --gpu gtx480 true >"$out" 2>&1
status "check of an unknown GPU" 64 $?
"$hewn" check /nonexistent/program >"$out" 2>&1
status "check of a program that is not there" 127 $?
finish
