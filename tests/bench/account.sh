#!/bin/sh
# The cycle model's account of the Blackwell attention kernels on 148 SMs, as `make account` prints it: where
# the tensor cores' time goes and what each role waits for. bf16, 4,096 queries and keys, one sequence. Then of
# decode and MLA: 148 sequences of 2,048 keys, one query of 16 or 64 heads each, a sequence a CTA. And of the indexer:
# as many of 4,096 keys, one query or four of 64 heads.
#
#     account.sh [DIM HEADS]...     head dimensions and query heads; without: 64 96 128 192 256 512, decode, MLA, the indexer
#     account.sh works [PATTERN]    products, groups and attention of real sizes: a line each, and what binds. Minutes to an
#                                   hour of all cores; PATTERN takes a part of the list
#     account.sh groups [FIRST LAST]  drawn groups of rows of three kinds, seeds FIRST to LAST (1 to 6): their time beside the
#                                   larger of two: the bytes read at the model's rate of memory, and the dense product of as
#                                   many rows, each group's rounded up to the tile. A minute or more a draw
#     account.sh drawn [FIRST LAST]  drawn decode and MLA, seeds FIRST to LAST (1 to 40), of 20 to 45 us of bytes: their time beside
#                                   the largest of what their bytes, MMAs and exponentials alone take. A minute a draw
#
# Kernels are those that the library chooses. What the model leaves out: bank conflicts, the latency of ordinary loads,
# and the power that the clock follows.
set -eu
build=${BUILD:-build}
work=${WORK:-$build/model}
mkdir -p "$work"

# launch WORDS…: a launch of account_work (its comment says what the words mean), into $work/out and $work/trace.json
launch() {
    rm -f "$work/trace.json"
    HEWN_LIBCUDA=${SIM:-$build/sim/libcuda.so.1} HEWN_SIM_GPU=b200 HEWN_SIM_CHECK=0 HEWN_SIM_SMS=148 HEWN_SIM_QUIET=1 \
        HEWN_SIM_TRACE=$work/trace.json "$build/tests/account_work" "$@" >"$work/out" 2>&1 || {
        cat "$work/out" >&2
        return 1
    }
}
account() {
    launch "$@"
    echo "== $*: $(cut -d ' ' -f 1 "$work/out")"
    "$build/hewn" timeline "$work/trace.json" | sed 1d
}

# band WORDS…: how far above the model's time kernels of a kind were measured, least and most, in percent: of all rows of the kind
# in the tables of tools/sim/MANUAL.md, persistent ones with pairs only. Products of 16 bits of more than 0.3 ms are slowed by the power
# limit, which the model does not have. Of few rows: on an H200, beside the model of one (tests/BENCH.md). Of others that are limited by
# device memory nothing is known.
band() {
    case "$*" in
    attention*) echo -3 9 ;;
    gemm\ *\ 16384\ 16384\ *) echo 13 27 ;;
    gemm\ *16\ 4096\ *) echo -2 15 ;;
    gemm\ *16\ [1-9]\ * | gemm\ *16\ [1-9][0-9]\ * | gemm\ *16\ 128\ 16384\ *) echo 0 8 ;;
    scaled\ nv4\ * | scaled\ mx4\ *) echo -5 8 ;;
    gemm\ e4m3* | scaled\ *\ 1\ * | *\ 8\ 1024\ *) echo -9 17 ;;
    esac
}

# work GOAL WORDS…: a launch in a line. Floors: multiply-adds at the tensor cores' full rate and the model's clock, the
# least bytes at the model's rate of device memory. Then the times that its band stands for.
MEMORY=7.4e6
work() {
    goal=$1
    shift
    case "$*" in $pattern) ;; *) return ;; esac
    launch "$@" || return 0
    case "$2" in bf16 | f16) rate=8192 ;; e4m3 | mx8 | mw8) rate=16384 ;; mx4 | nv4) rate=32768 ;; *) rate=8192 ;; esac
    grep -o '"microseconds":[0-9.]*\|"clock_mhz":[0-9]*' "$work/trace.json" | tr -d '"' | awk -F: -v what="$*" -v goal="$goal" \
        -v rate=$rate -v memory=$MEMORY -v band="$(band "$@")" -v out="$(cat "$work/out")" '
        $1 == "microseconds" { us += $2 } $1 == "clock_mhz" { mhz = $2 }
        END {
            split(out, o, " ")
            known = split(band, by, " ") ? sprintf("%.1f to %.1f us", us * (1 + by[1] / 100), us * (1 + by[2] / 100)) : "unknown"
            tensor = 2 * o[3] / (148 * rate * mhz); bytes = o[4] / memory; floor = tensor > bytes ? tensor : bytes
            printf "%-40s %-32s %8.1f us, %6.0f TFLOP/s, %5.2f TB/s, %3.0f %% of the %s; goal %s; band: %s\n", what, o[1], us,
                2e-6 * o[2] / us, o[4] / us * 1e-6, 100 * floor / us, (tensor > bytes ? "tensor cores" : "device memory"), goal, known
        }'
    "$build/hewn" timeline "$work/trace.json" | sed -n '2s/^/    /p'
}
# The shapes that the goals for Blackwell name.
works() {
    pattern=$1
    work '<= 89 us' gemm bf16 4096 4096 4096
    work '>= 1540 TFLOP/s' gemm bf16 16384 16384 16384
    work '-' gemm e4m3 4096 7168 16384
    for type in mx8 mw8; do work '>= 2970 TFLOP/s' scaled $type 1 4096 7168 16384; done
    work '>= 4900 TFLOP/s' scaled nv4 1 4096 4096 4096
    for m in 16 32 64 128; do work '>= 88 % of memory' gemm bf16 $m 16384 8192; done
    work '>= 88 % of memory' gemm bf16 64 7168 20480
    for m in 96 128; do work '>= 88 % of memory' gemm bf16 $m 8192 20480; done
    work '>= 93 %' grouped bf16 8 1024 4096 7168
    work '>= 93 %' grouped e4m3 8 1024 4096 7168
    work '>= 93 %' scaled mx8 8 1024 4096 7168
    work '>= 93 %' scaled nv4 8 1024 4096 7168
    work '>= 93 %' scaled mx8 64 32 4096 7168
    work '>= 1535 TFLOP/s' attention 4 16 8192 128 full
    work '>= 1420 TFLOP/s' attention 4 16 8192 128 causal
    work '>= 1050 TFLOP/s' attention 4 16 8192 64 full
    work '>= 1550 TFLOP/s' attention 4 8 8192 256 full
}
# groups FIRST LAST
groups() {
    for type in bf16 e4m3 mx8; do
        seed=$1
        while [ "$seed" -le "$2" ]; do
            launch ragged $type "$seed" || return 1
            grep -o '"microseconds":[0-9.]*' "$work/trace.json" | cut -d: -f2 | tr '\n' ' ' | awk -v memory=$MEMORY -v type=$type \
                -v seed="$seed" -v shape="$(sed -n 1p "$work/out")" -v out="$(sed -n 2p "$work/out")" '{
                split(out, o, " ")
                bytes = o[4] / memory; bound = bytes > $2 ? bytes : $2
                printf "%s %s: %s: %s %.1f us; bytes %.1f, dense %.1f: %.3f of the larger\n", type, seed, shape, o[1], $1, bytes, $2, $1 / bound
            }'
            seed=$((seed + 1))
        done
    done
}
# shape SEED: words of account_work: of seven draws four are decode, two kinds of rows, and three MLA, three kinds; batch 1 to 512,
# heads of a KV head 1 to 64, of MLA 8 to 128, both by their logarithm; 128 to 131,072 keys.
shape() {
    awk -v seed="$1" 'function draw() { x = (x * 16807) % 2147483647; return x / 2147483647 }
        BEGIN {
            x = ((seed * 7919 + 17) * (seed + 31)) % 2147483647
            for (i = 0; i < 5; i++) draw()
            kinds = split("bf16 e4m3 bf16 e4m3 plain 656 584", kind, " ")
            dims = split("64 96 128 192 256 512", dim, " ")
            k = kind[1 + int(kinds * draw())]
            d = dim[1 + int(dims * draw())]
            mla = k != "bf16" && k != "e4m3"
            row = k == "plain" ? 1152 : mla ? k + 0 : (d + (d == 192 ? 128 : d)) * (k == "bf16" ? 2 : 1)
            do {
                batch = int(2 ^ (9.01 * draw()))
                heads = int((mla ? 8 : 1) * 2 ^ ((mla ? 4.01 : 6.01) * draw()))
                keys = int((20 + 25 * draw()) * 7.4e6 / (row * batch))
            } while (keys < 128 || keys > 131072)
            if (mla) print "mla", k, batch, heads, keys
            else print "decode", k, batch, heads, keys, d
        }'
}
# drawn FIRST LAST
drawn() {
    seed=$1
    while [ "$seed" -le "$2" ]; do
        # shellcheck disable=SC2046
        launch $(shape "$seed") || return 1
        grep -o '"microseconds":[0-9.]*\|"busy [a-z ]*":[0-9.]*' "$work/trace.json" | tr -d '"' | awk -F: -v seed="$seed" \
            -v words="$(shape "$seed")" -v out="$(cut -d ' ' -f 1 "$work/out")" '
            $1 == "microseconds" { us = $2; all += us; parts = parts (parts ? " + " : "") us }
            { busy[$1] += us * $2 }
            END {
                m = busy["busy device memory"]; t = busy["busy tensor cores"]; f = busy["busy function units"]
                floor = m > t ? m : t; floor = f > floor ? f : floor
                printf "%s: %s: %s %.1f us (%s); memory %.1f, tensor cores %.1f, function units %.1f: %.3f of the largest\n", seed, words, out,
                    all, parts, m, t, f, all / floor
            }'
        seed=$((seed + 1))
    done
}
if [ "${1:-}" = drawn ]; then
    drawn "${2:-1}" "${3:-${2:-40}}"
    exit
fi
if [ "${1:-}" = groups ]; then
    groups "${2:-1}" "${3:-${2:-6}}"
    exit
fi
if [ "${1:-}" = works ]; then
    works "${2:-*}"
    exit
fi

all=$#
[ $# -gt 0 ] || set -- 64 16 96 16 128 16 192 16 256 8 512 4
while [ $# -gt 1 ]; do
    for mask in full causal; do account attention 1 "$2" 4096 "$1" $mask; done
    shift 2
done
[ $all = 0 ] || exit 0
for of in 'bf16 64' 'bf16 128' 'e4m3 128' 'bf16 256' 'e4m3 256'; do
    account decode "${of% *}" 148 16 2048 "${of#* }"
done
for cache in plain 656 584; do account mla $cache 148 64 2048; done
for queries in 1 4; do account indexer 148 64 $queries 4096; done
