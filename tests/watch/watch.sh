#!/bin/sh
# hewn watch, with the simulated driver in the GPU's place: hangs are named, repaired kernels and our own give the
# results that they gave unwatched, and what is not watched is named.
. "$SRC/tests/lib/lib.sh"
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
work=$BUILD/tests/watch
hewn=$BUILD/hewn
out=$work/out
mkdir -p "$work"
unset HEWN_SIM_GPU HEWN_LIBCUDA
case $MODE in rel | dbg) ;; *)
    skip "hewn watch: programs without the sanitiser of MODE=$MODE cannot preload it"
    finish
    exit
    ;;
esac

# watch GPU OPTION… PROGRAM…: on a driver whose hangs stay
watch() {
    gpu=$1
    shift
    HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=$gpu HEWN_SIM_HANG=1 HEWN_SIM_CHECK=0 timeout 120 "$hewn" watch "$@" >"$out" 2>&1
}

# hang CASE GPU WHO [WHAT]: named after the second that --after gives, on an idle machine before the next one is over
# (hardware.sh asks for that); here other tests run beside it, and ten seconds are the bound. WHO waits at a
# line that the case marks, for WHAT. Then the repaired twin runs, right and watched.
hang() {
    name=$1 case=$SRC/tests/zoo/$1.ptx
    watch "$2" --after 1 "$hewn" run "$case"
    status "$name: hewn watch of a hang" 1 $?
    want "$name: within seconds" '^hewn watch: zoo hangs: for [1-9]\.[0-9] s nothing has moved' "$out"
    lines=$(grep -n 'zoo: here' "$case" | cut -d: -f1 | tr '\n' '|' | sed 's/|$//; s/|/\\|/g')
    [ -n "$5" ] && lines=$5
    want "$name: who, where, for what" "^  $3 waits\{0,1\} at [^ ]*$name.ptx:\($lines\) for $4" "$out"
    watch "$2" --after 20 "$hewn" run "$case" -DFIXED
    status "$name: the repaired twin" 0 $?
    want "$name: the repaired twin's results" 'results right in 1 of 1' "$out"
    want "$name: the repaired twin is watched" '1 kernel watched, 0 unwatched; no hang' "$out"
}
hang 01-arrival-count h200 'warp 0 and 3 more of CTA (0,0,0)' 'ready, parity 0. It was initialised for 128 arrivals' 25
hang 03-barrier-in-branch h200 'warp 0 and 3 more of CTA (0,0,0)' 'barrier 0' ''
hang 04-advance-skipped h200 'warp 3 of CTA (0,0,0)' 'full, parity 1' ''
hang 05-one-k-tile-less h200 'warp 0 of CTA (0,0,0)' 'empty, parity 0' ''
hang 06-same-parity h200 'warp 0 of CTA (0,0,0)' 'empty, parity 0.* in a circle' ''
hang 09-no-copy-targets-it h200 'warp 1 of CTA (0,0,0)' 'full_v, parity 0.* No instruction that signals it' ''
hang mla-odd-blocks h200 'warp 4 and 3 more of CTA (0,0,0)' 'barrier 1' ''
hang helion-3620 h200 'warp 4 and 3 more of CTA (0,0,0)' 'registers' ''
hang more-partner-left h200 'warp 0 of CTA (0,0,0)' 'barrier 1' ''
hang triton-9456 h200 'warp 0 and 1 more in 2 CTAs, the first (0,0,0)' 'the cluster barrier' ''
hang each-holds-half b200 'warp 0 and 7 more in 8 CTAs, the first (0,0,0)' 'tensor-memory columns' ''
hang more-clock-flag h200 'warp 0 of CTA (0,0,0)' 'memory' 56

watch h200 --after 1 "$hewn" run "$SRC/tests/zoo/03-barrier-in-branch.ptx"
want 'the other role' '^  meanwhile warp 4 and 3 more of CTA (0,0,0) wait at .* for ready, parity 0' "$out"

# What ends the kernel: its own poll, or else the end of the process.
watch h200 --after 1 --report "$work/report" "$hewn" run "$SRC/tests/zoo/01-arrival-count.ptx"
want 'a poll ends its kernel' 'the launch failed: .* (700)' "$out"
want 'the report has the hang' '"kind":"deadlock","cause":"arrival-count","kernel":"zoo"' "$work/report"
want 'the report has the object' '"object":"ready"' "$work/report"
watch h200 --after 1 "$hewn" run "$SRC/tests/zoo/more-partner-left.ptx"
want 'where nobody polls the process ends' 'hewn watch: no wait polls, so this process is ended' "$out"

# Our product, launched from Python, whose empty barriers count one arrival more than ever comes.
if "$PYTHON" -c 'import ctypes' 2>/dev/null; then
    sed 's/\(mbarrier\.init[^,]*%empty_s[^,]*, *\)\([0-9]*\)/\1(\2 + 1)/' "$BUILD/modules/sm_90a/gemm_bf16_f32.ptx" >"$work/bad.ptx"
    LD_LIBRARY_PATH=$(dirname "$SIM") watch h200 --after 1 "$PYTHON" "$SRC/tests/driver/gemm_ctypes.py" \
        --ptx "$work/bad.ptx" --size 200x300x700 --batch 1 "$BUILD/modules/sm_90a/gemm_bf16_f32.json"
    status 'a product that hangs' 1 $?
    want 'its role, file and barrier' 'producer (warp [0-9]*).* wait.* at ptx/sm_90a/gemm[_a-z]*.inc:[0-9]* for empty_bar\[[0-3]\], parity' "$out"
    want 'its other role' 'consumer_[01] (warp [0-9]*) and .* wait at ptx/sm_90a/gemm[_a-z]*.inc:[0-9]* for full_bar\[[0-3]\], parity' "$out"
    # Tables of records come and go with their contexts; with more than eight, the rest uses the host's.
    for stay in '' stay; do
        # shellcheck disable=SC2086
        LD_LIBRARY_PATH=$(dirname "$SIM") watch h200 --after 5 "$PYTHON" "$SRC/tests/watch/contexts.py" $stay
        status "contexts $stay" 0 $?
        want "contexts $stay" '^all launched' "$out"
        want "contexts $stay: watched" '24 kernels watched, 0 unwatched; no hang' "$out"
    done
else
    skip 'a product that hangs, contexts: no Python with ctypes to launch them'
fi

# The same in attention: the planner waits as well, for consumers that hang, and is not the cause.
attention=attention_bf16_192_128
{
    cat "$SRC/tests/mutate/sm_90a-$attention.run"
    sed 's/\(mbarrier\.init[^,]*%empty_s[^,]*, *\)2;/\13;/' "$BUILD/modules/sm_90a/$attention.ptx"
} >"$work/attention.ptx"
watch h200 --after 1 "$hewn" run "$work/attention.ptx"
status 'attention that hangs' 1 $?
want 'attention: its role, file and barrier' '^  producer_k (warp 0).* wait.* at ptx/sm_90a/attention.ptx:[0-9]* for empty_bar\[[0-9]*\], parity' "$out"
want 'attention: in a circle' 'initialised for 3 arrivals .* in a circle' "$out"

# Kernels that do not hang: the digests that a GPU gave.
for t in gemm attention; do
    share=0/400
    [ "$SUITE" = all ] && share=0/40
    [ $t = attention ] && share=0/60
    watch h200 --after 60 "$BUILD/tests/$t" --share $share --digests "$SRC/tests/golden/results-$t.txt"
    status "$t, watched" 0 $?
    want "$t, watched: results" '^'$t' on .* 0 failed' "$out"
    want "$t, watched: all kernels" '[1-9][0-9]* kernels* watched, 0 unwatched; no hang' "$out"
done

# Overhead, by the cycle model: in the launch that each demo makes last.
attention=
[ "$SUITE" = all ] && attention=attention
for what in 'gemm --size 1024x512x1024' $attention; do
    for how in '' "$hewn watch"; do
        # shellcheck disable=SC2086
        (cd "$work" && HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=h200 HEWN_SIM_CHECK=0 HEWN_SIM_TRACE=$work/trace timeout 300 \
            $how "$hewn" demo $what) >"$out" 2>&1
        status "hewn demo $what" 0 $?
        "$hewn" timeline "$work/trace" | sed -n 's/^\([0-9.]*\) us on .*/\1/p' >"$work/time${how:+.watched}"
    done
    printf 'overhead of hewn demo %s, by the cycle model: %s us, watched %s us\n' "$what" "$(cat "$work/time")" "$(cat "$work/time.watched")"
    if awk '{ getline watched <"'"$work/time.watched"'"; exit !($1 > 0 && watched > 0 && watched < 1.25 * $1) }' "$work/time"; then ok
    else fail "hewn demo $what: overhead" "$(cat "$work/time" "$work/time.watched")"; fi
done

# Every text (some, in a short run) assembles with no more registers than it had, and without spills. An SM gives a
# thread's registers out by eights, so 151 and 152 count as equal.
if [ -n "$PTXAS" ]; then
    count=0
    for text in "$BUILD"/modules/*/*.ptx; do
        count=$((count + 1))
        [ "$SUITE" = all ] || [ $((count % 33)) = 0 ] || continue
        target=$(basename "$(dirname "$text")")
        name=$target/$(basename "$text" .ptx)
        "$BUILD/tests/watch_text" "$text" "$work/text.ptx" >"$out" || fail "$name: rewriting" "$(cat "$out")"
        "$PTXAS" -v -arch "$target" "$work/text.ptx" -o "$work/text.cubin" >"$out" 2>&1 || fail "$name: ptxas" "$(cat "$out")"
        "$PTXAS" -v -arch "$target" "$text" -o "$work/text.cubin" >"$work/before" 2>&1
        # ptxas lets the products of 8-bit few rows wait for each other once they are watched: slower, not wrong. A
        # text that uses all of its registers may spill up to 64 bytes.
        case $name in */gemm_fp8_*_few) loss= ;; *) loss='/Potential/p' ;; esac
        for o in "$out" "$work/before"; do
            sed -n "s/.*Used \\([0-9]*\\) registers.*/\\1/p; $loss" "$o" |
                awk '/^[0-9]+$/ { $0 = int(($1 + 7) / 8) * 8 " registers" } { print }' >"$o.registers"
            sed -n 's/.* \([0-9]*\) bytes spill stores.*/\1/p' "$o" | awk '$1 > 64' >>"$o.registers"
        done
        if awk 'NR == FNR { had[FNR] = $0; next }
            { if (/ registers$/ ? $1 > had[FNR] + 0 : $0 != had[FNR]) more = 1; last = FNR }
            END { exit more || last + 1 in had }' "$work/before.registers" "$out.registers"; then ok; else fail "$name: registers or spills change" "$(cat "$work/before.registers" "$out.registers")"; fi
    done
else
    skip 'rewritten texts: no ptxas'
fi

# Every form of a wait.
forms=$SRC/tests/watch/forms.ptx
"$BUILD/tests/watch_text" "$forms" "$work/text.ptx" >"$out"
want 'forms: all waits are found' '^1 kernels, 16 waits, 0 loops' "$out"
status 'forms: lines keep their numbers' "$(wc -l <"$forms")" "$(wc -l <"$work/text.ptx")"
if [ -n "$PTXAS" ]; then
    "$PTXAS" -arch sm_90a "$work/text.ptx" -o "$work/text.cubin" >"$out" 2>&1
    status 'forms: ptxas' 0 $?
fi
watch h200 --after 20 "$hewn" run "$forms"
status 'forms' 0 $?
want 'forms: results' 'results right in 1 of 1' "$out"
want 'forms: watched' '1 kernel watched, 0 unwatched; no hang' "$out"
printf '.version 8.0\n.target sm_90a\n.visible .entry broken()\n{\n    bar.sync 0\n}\n' >"$work/broken.ptx"
"$BUILD/tests/watch_text" "$work/broken.ptx" "$work/text.ptx" >"$out" 2>&1
status 'a text that does not end' 1 $?
want 'a text that does not end' 'line 5: an instruction without a semicolon' "$out"

# What is left alone, and options.
watch h200 --ignore zoo "$hewn" run "$SRC/tests/zoo/01-arrival-count.ptx" -DFIXED
status 'an ignored kernel' 0 $?
want 'an ignored kernel' '0 kernels watched' "$out"
"$hewn" watch --after soon true >"$out" 2>&1
status '--after soon' 64 $?
want '--after soon' "takes seconds from 0.5 to 86400, not 'soon'" "$out"
"$hewn" watch >"$out" 2>&1
status 'no program' 64 $?
"$hewn" watch sh -c 'exit 7' >"$out" 2>&1
status "the program's status" 7 $?
want 'nothing to watch' 'nothing was watched' "$out"

# Programs that nvcc built, with the runtime library inside and beside: a loop over a flag that nobody sets.
nvcc=$CUDA_HOME/bin/nvcc
if [ -x "$nvcc" ]; then
    cat >"$work/spin.cu" <<'PROGRAM'
#include <cstdio>
#include <cuda_runtime.h>
__device__ int flag;
__global__ void waiter(int *out, int set)
{
    if (threadIdx.x == 0 && set) atomicExch(&flag, 1);
    if (threadIdx.x == 32) while (*(volatile int *)&flag == 0) { }
    __syncthreads();
    out[threadIdx.x] = threadIdx.x;
}
int main(int argc, char **argv)
{
    int *out, host[64];
    cudaMalloc(&out, sizeof host);
    waiter<<<1, 64>>>(out, argc > 1);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    if (argc > 1) printf("last %d\n", host[63]);
}
PROGRAM
    for runtime in static shared; do
        "$nvcc" -arch=compute_90 -lineinfo -cudart $runtime -o "$work/spin" "$work/spin.cu" 2>"$out" || fail "nvcc -cudart $runtime" "$(cat "$out")"
        LD_LIBRARY_PATH=$(dirname "$SIM"):$CUDA_HOME/lib64 watch h200 --after 1 "$work/spin"
        status "cudart $runtime: a flag that nobody sets" 1 $?
        want "cudart $runtime: who waits for it" 'warp 1 of CTA (0,0,0) waits at .*spin.cu:7 for memory' "$out"
        want "cudart $runtime: who waits for those" 'meanwhile warp 0 and 1 more of CTA (0,0,0) wait at .*spin.cu:8 for barrier 0' "$out"
        LD_LIBRARY_PATH=$(dirname "$SIM"):$CUDA_HOME/lib64 watch h200 --after 20 "$work/spin" set
        status "cudart $runtime: a flag that is set" 0 $?
        want "cudart $runtime: a flag that is set" '^last 63' "$out"
    done
    "$nvcc" -gencode arch=compute_90,code=sm_90 -o "$work/spin" "$work/spin.cu" 2>"$out" || fail "nvcc, machine code" "$(cat "$out")"
    LD_LIBRARY_PATH=$(dirname "$SIM") watch h200 "$work/spin" set
    want 'machine code alone' 'runs unwatched: the fat binary holds machine code only' "$out"
else
    skip 'programs built with nvcc: no nvcc at CUDA_HOME'
fi
finish
