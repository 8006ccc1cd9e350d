#!/bin/sh
# The first hour with a Blackwell GPU: every test that a GPU can run, one process each, the careful ones first, a time
# limit on each. `make first-hour`; tests/first-hour.md says what each outcome means and what to send back.
#
#     BUILD=… SRC=… sh tests/bench/first_hour.sh
#
# FIRST_HOUR_ONLY a pattern of steps, FIRST_HOUR_SCALE multiplies the limits (1), FIRST_HOUR_SHARE the part of the cases
# (0/1). Leaves logs and results.tsv (step, outcome, seconds) in $BUILD/first-hour and packs them into
# $BUILD/first-hour.tar.gz. Under a test suite (SUITE) the simulated B200 poses as the GPU, with a small part of the
# cases, and the script is judged.
set -u
here=$(cd "$(dirname "$0")" && pwd)
bin=$BUILD/tests
hewn=$BUILD/hewn
suite=${SUITE:-}
if [ "$suite" ]; then
    . "$here/../lib/lib.sh"
    export HEWN_LIBCUDA="$SIM" HEWN_SIM_GPU=b200 HEWN_SIM_QUIET=1
    out=$BUILD/tests/first-hour
    FIRST_HOUR_SHARE=${FIRST_HOUR_SHARE:-1/90}
else
    unset HEWN_LIBCUDA
    out=$BUILD/first-hour
fi
share=${FIRST_HOUR_SHARE:-0/1}
scale=${FIRST_HOUR_SCALE:-1}
rm -rf "$out" "$out.tar.gz"
mkdir -p "$out"
: >"$out/results.tsv"

answers() { timeout 60 "$hewn" info >"$out/info.log" 2>&1 && grep -q '^device' "$out/info.log"; }
note() { # STEP OUTCOME SECONDS
    printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$out/results.tsv"
    [ "$suite" ] || printf '%-24s %-10s %5s s\n' "$1" "$2" "$3"
}
# step NAME SECONDS COMMAND…: once a step has left the device without an answer, no other one starts.
step() {
    name=$1 limit=$(awk -v s="$2" -v f="$scale" 'BEGIN { print s * f }')
    shift 2
    case $name in ${FIRST_HOUR_ONLY:-*}) ;; *) return ;; esac
    if [ -e "$out/lost" ]; then
        note "$name" 'not run' 0
        return
    fi
    start=$(date +%s)
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1
    case $? in
    0) said=right ;;
    124 | 137) said='no end' ;;
    *) said=wrong ;;
    esac
    note "$name" "$said" "$(($(date +%s) - start))"
    [ "$said" = right ] && return
    answers || { cp "$out/info.log" "$out/lost" && note 'the device' 'no answer' 0; }
}
# part NAME SECONDS [OPTION…]: a test program; where it does not end, once more under hewn watch, which names who waits.
part() {
    name=$1 limit=$2
    shift 2
    step "$name" "$limit" "$bin/$name" --share "$share" "$@"
    [ "$(tail -n 1 "$out/results.tsv" | cut -f 2)" = 'no end' ] || return
    step "$name-watch" "$limit" "$hewn" watch "$bin/$name" --share "$share"
}

steps() {
    # No tensor core: the driver, launches, tensor maps, small kernels.
    for t in driver_api driver_launch driver_memory driver_stream driver_beside driver_graph driver_repeat driver_link tensormap; do
        step "$t" 60 "$bin/$t"
    done
    part combine 120
    part topk 120
    # One product, then all; then what builds on tcgen05 in longer protocols.
    step one-product 60 "$bin/gemm" --case 0
    part gemm 900 --record "$out/results-gemm.txt"
    part indexer 180
    part grouped 300
    part kinds 300
    part scaled 300
    part grouped_sum 120
    part tuning 180
    step one-attention 60 "$bin/attention" --case 1
    part attention 900 --record "$out/results-attention.txt"
    part mla 300
    part serving 180
    part host 120
    part kernels 300
    part engine_model 180
    # Times, to stand beside the cycle model's.
    [ "$suite" ] && return
    step products 300 "$bin/bench_products" --seconds 120 512x512x512 4096x4096x4096 8192x8192x8192 16384x16384x16384 \
        16x8192x28672 128x8192x28672
    step bench 600 "$bin/bench" --out "$out"
    for tool in memcheck racecheck synccheck; do
        command -v compute-sanitizer >/dev/null || break
        for t in gemm attention; do
            step "$tool-$t" 300 compute-sanitizer --tool "$tool" --error-exitcode 9 "$bin/$t" --share 0/40
        done
    done
}

if ! answers || ! grep -qE 'compute capability 10\.[03]' "$out/info.log"; then
    if [ "$suite" ]; then fail 'the simulated B200 answers' "$(cat "$out/info.log")" && finish; exit; fi
    cat "$out/info.log"
    echo 'first-hour: no device of compute capability 10.0 or 10.3 answers; nothing was run' >&2
    exit 1
fi
steps
tar -C "$(dirname "$out")" -czf "$out.tar.gz" "$(basename "$out")"
if [ -z "$suite" ]; then
    echo "$(cut -f 2 "$out/results.tsv" | sort | uniq -c | awk '{ printf "%s%s %s", NR > 1 ? ", " : "", $1, $2 " " $3 }'); send $out.tar.gz"
    exit
fi

# The dry run: every step is right and packed, and a step that does not end is told and followed up.
while IFS="$(printf '\t')" read -r name said seconds; do
    if [ "$said" = right ]; then ok; else fail "$name: $said after $seconds s" "$(tail -n 5 "$out/$name.log")"; fi
done <"$out/results.tsv"
tar -tzf "$out.tar.gz" >"$out.list"
want 'the record of products is packed' results-gemm.txt "$out.list"
want 'the record of attention is packed' results-attention.txt "$out.list"
FIRST_HOUR_ONLY=topk* FIRST_HOUR_SCALE=0.0001 share=0/1
scale=$FIRST_HOUR_SCALE
part topk 120
want 'a step over its limit is told' "^topk	no end" "$out/results.tsv"
want 'it is run again under hewn watch' '^topk-watch' "$out/results.tsv"
finish
