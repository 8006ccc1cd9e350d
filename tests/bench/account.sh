#!/bin/sh
# The cycle model's account of the Blackwell attention kernels on 148 SMs, as `make account` prints it: where
# the tensor cores' time goes and what each role waits for. bf16, 4,096 queries and keys, one sequence. Then of
# decode and MLA: 148 sequences of 2,048 keys, one query of 16 or 64 heads each, a sequence a CTA. And of the indexer:
# as many of 4,096 keys, one query or four of 64 heads.
#
#     account.sh [DIM HEADS]...     head dimensions and query heads; without: 64 128 192 256 512, decode, MLA
#     account.sh works [PATTERN]    products, groups and attention of real sizes, as the library chooses their kernels: a line each,
#                                   and what binds. Minutes to an hour of all cores; PATTERN takes a part of the list
#
# What the model leaves out: bank conflicts, the latency of ordinary loads, and the power that the clock follows.
set -eu
build=${BUILD:-build}
work=$build/model
mkdir -p "$work"

# work GOAL WORDS…: a launch of account_work (its comment says what the words mean). Floors: multiply-adds at the tensor
# cores' full rate and the model's clock, the least bytes at the model's rate of device memory. BAND: the model's worst error on
# the hold-out (tests/others/model.txt), which every time here may be off by.
MEMORY=7.4e6 BAND=${BAND:-0.18}
work() {
    goal=$1
    shift
    case "$*" in $pattern) ;; *) return ;; esac
    rm -f "$work/trace.json"
    HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=b200 HEWN_SIM_CHECK=0 HEWN_SIM_SMS=148 HEWN_SIM_QUIET=1 HEWN_SIM_TRACE=$work/trace.json \
        "$build/tests/account_work" "$@" >"$work/out" 2>&1 || { cat "$work/out" >&2; return; }
    case "$2" in bf16 | f16) rate=8192 ;; e4m3 | mx8) rate=16384 ;; mx4 | nv4) rate=32768 ;; *) rate=8192 ;; esac
    grep -o '"microseconds":[0-9.]*\|"clock_mhz":[0-9]*' "$work/trace.json" | tr -d '"' | awk -F: -v what="$*" -v goal="$goal" \
        -v rate=$rate -v memory=$MEMORY -v band="$BAND" -v out="$(cat "$work/out")" '
        $1 == "microseconds" { us += $2 } $1 == "clock_mhz" { mhz = $2 }
        END {
            split(out, o, " ")
            tensor = 2 * o[3] / (148 * rate * mhz); bytes = o[4] / memory; floor = tensor > bytes ? tensor : bytes
            printf "%-40s %-32s %8.1f us, %6.0f TFLOP/s, %5.2f TB/s, %3.0f %% of the %s; goal %s; within %.0f %%\n", what, o[1], us,
                2e-6 * o[2] / us, o[4] / us * 1e-6, 100 * floor / us, (tensor > bytes ? "tensor cores" : "device memory"), goal, 100 * band
        }'
    "$build/hewn" timeline "$work/trace.json" | sed -n '2s/^/    /p'
}
# The shapes that the goals for Blackwell name.
works() {
    pattern=$1
    SIM=${SIM:-$build/sim/libcuda.so.1}
    work '<= 89 us' gemm bf16 4096 4096 4096
    work '>= 1540 TFLOP/s' gemm bf16 16384 16384 16384
    work '-' gemm e4m3 4096 7168 16384
    work '>= 2970 TFLOP/s' scaled mx8 1 4096 7168 16384
    work '>= 4900 TFLOP/s' scaled nv4 1 4096 4096 4096
    for m in 16 32 64 128; do work '>= 88 % of memory' gemm bf16 $m 16384 8192; done
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
if [ "${1:-}" = works ]; then
    works "${2:-*}"
    exit
fi

decode=$#
[ $# -gt 0 ] || set -- 64 16 96 16 128 16 192 16 256 8 512 4

account() { # QK V HEADS CAUSAL
    qk=$1 v=$2 heads=$3 length=4096
    name=attention_bf16_${qk}_$v
    json=$build/modules/sm_100f/$name.json
    shared=$(sed -n 's/.*"dynamic_shared": \([0-9]*\).*/\1/p' "$json")
    block=$(sed -n 's/.*"block": \[\([0-9]*\).*/\1/p' "$json")
    tiles=$((block / 128 - 2)) halves=$((v > 256 ? v / 256 : 1))
    blocks=$((length / (128 * tiles)))
    items=$((blocks * heads * halves))
    right=$(($4 ? 0 : 536870912))
    q=$((heads * qk * 2)) vb=$((heads * v * 2))
    {
        cat "$build/modules/sm_100f/$name.ptx"
        echo "//@ run: gpu b200; grid $((items < 148 ? items : 148)); block $block; shared $shared"
        echo "//@ run: buf q bf16[$((length * heads)),$qk] random; buf k bf16[$((length * heads)),$qk] random"
        echo "//@ run: buf v bf16[$((length * heads)),$v] random; buf o bf16[$((length * heads)),$v]"
        echo "//@ run: map map_q q dims=$qk,1,$heads,$length,1 strides=$((qk * 2)),$((qk * 2)),$q,$((q * length)) box=64,1,1,128,1 swizzle=128B l2=256B"
        for s in 0 1; do
            echo "//@ run: map map_k$s k dims=$qk,$length,$heads,1 strides=$q,$((qk * 2)),$((q * length)) box=64,128,1,1 swizzle=128B l2=256B"
            echo "//@ run: map map_v$s v dims=$v,$length,$heads,1 strides=$vb,$((v * 2)),$((vb * length)) box=64,64,1,1 swizzle=128B l2=256B"
        done
        printf '//@ run: params map_q, map_k0, map_v0, map_k1, map_v1, o, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '
        printf '%s, %s, %s, 0, 4, %s, %s, 0, ' $vb $((v * 2)) $((vb * length)) $((length * 4)) $((heads * length * 4))
        printf '%s, ' "$(awk "BEGIN { print 1.44269504 / sqrt($qk) }")"
        printf '%s, %s, 1, %s, 1, 1, 1, 1, 128, %s, %s, 0, 0, 0, 2, 1, 1, ' $items $blocks $heads $length $length
        printf '%s, 0, 0, 0, 536870912, 0, %s, 0, 0, 0, 0, 0, 128, 0, 64, 0\n' $length $right
    } >"$work/$name.ptx"
    HEWN_SIM_CHECK=0 HEWN_SIM_SMS=148 HEWN_SIM_QUIET=1 HEWN_SIM_TRACE=$work/trace.json "$build/hewn" run "$work/$name.ptx" >"$work/out" 2>&1 ||
        { cat "$work/out" >&2; exit 1; }
    echo "== head dimension $qk, $heads heads, $( [ "$4" = 1 ] && echo causal || echo full)"
    "$build/hewn" timeline "$work/trace.json" | sed 1d
}
while [ $# -gt 1 ]; do
    v=$1
    [ "$1" = 192 ] && v=128
    account "$1" $v "$2" 0
    account "$1" $v "$2" 1
    shift 2
done

# decode MODULE QK V HEADS ROW: ROW bytes of a key in memory; K and V one behind the other, or the cache of MLA. Of
# its records of 584 bytes the scales, 8 bytes each, stand behind all rows.
decode() {
    module=$1 qk=$2 v=$3 heads=$4 row=$5 length=2048 batch=148 list= gather=0
    json=$build/modules/sm_100f/$module.json
    shared=$(sed -n 's/.*"dynamic_shared": \([0-9]*\).*/\1/p' "$json")
    plane=$((row * length)) q=$((heads * qk * 2)) token=$row values=kv, values_token=$row
    case $module in mla*) list=', 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0' ;; esac
    case $module in *_e4m3 | *_656 | *_584) gather=1 ;; esac
    case $module in *_584) token=576 values=kv+$((576 * length)), values_token=8 ;; esac
    {
        cat "$build/modules/sm_100f/$module.ptx"
        echo "//@ run: gpu b200; grid $batch; block 512; shared $shared"
        echo "//@ run: buf q bf16[$((batch * heads)),$qk] random; buf kv bf16[$((batch * length)),$((row / 2))]; buf o bf16[$((batch * heads)),$v]"
        echo "//@ run: map map_q q dims=$qk,$heads,1,1,$batch strides=$((qk * 2)),$q,$q,$q box=64,$heads,1,1,1 swizzle=128B l2=128B"
        if [ $gather = 0 ]; then
            for t in k:$qk v:$v; do
                echo "//@ run: map map_${t%:*} kv dims=${t#*:},$length,1,$batch strides=$row,$row,$plane box=64,32,1,1 swizzle=128B l2=128B"
            done
        else
            for t in k v; do echo "//@ run: map map_$t q dims=64,1,1,1 strides=16,16,16 box=64,1,1,1 swizzle=128B l2=128B"; done
        fi
        echo "//@ run: params map_q, map_k, map_v, kv, $values o, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, $token, 0, $plane, $values_token, 0, $plane, $((heads * v * 2)), $((v * 2)), $((heads * v * 2)), 4, 4, $((heads * 4)), 0.05, $batch, 1, 1, $heads, $heads, 1, 1, $length, 0, 536870912, 536870912, 0, 0, 0, 32, $gather, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0$list"
    } >"$work/$module.ptx"
    HEWN_SIM_CHECK=0 HEWN_SIM_SMS=148 HEWN_SIM_QUIET=1 HEWN_SIM_TRACE=$work/trace.json "$build/hewn" run "$work/$module.ptx" >"$work/out" 2>&1 ||
        { cat "$work/out" >&2; exit 1; }
    echo "== $module, $batch sequences of $length keys, $heads heads, $((batch * length * row / 1000000)) MB of keys"
    "$build/hewn" timeline "$work/trace.json" | sed 1d
}
# indexer HEADS QUERIES: all keys of 148 sequences.
indexer() {
    module=indexer_e4m3_$1_$2 heads=$1 queries=$2 length=4096 batch=148
    shared=$(sed -n 's/.*"dynamic_shared": \([0-9]*\).*/\1/p' "$build/modules/sm_100f/$module.json")
    rows=$((batch * queries))
    {
        cat "$build/modules/sm_100f/$module.ptx"
        echo "//@ run: gpu b200; grid $batch; block 384; shared $shared"
        echo "//@ run: buf q u8[$rows,$heads,128] random; buf k u8[$((batch * length)),128] random; buf w f32[$rows,$heads]"
        echo "//@ run: buf scales f32[$((batch * length))]; buf out f32[$rows,$length]"
        echo "//@ run: map map_q q dims=128,$heads,$rows strides=128,$((128 * heads)) box=128,$heads,$queries swizzle=128B l2=128B"
        echo "//@ run: map map_k k dims=128,$length,$batch strides=128,$((128 * length)) box=128,128,1 swizzle=128B l2=128B"
        echo "//@ run: params map_q, map_k, out, w, scales, 0, 0, 0, $((4 * length)), $((4 * heads)), $((4 * length)), $heads, $queries, 1, $batch, $length, 0, $batch, 0, 128, 1"
    } >"$work/$module.ptx"
    HEWN_SIM_CHECK=0 HEWN_SIM_SMS=148 HEWN_SIM_QUIET=1 HEWN_SIM_TRACE=$work/trace.json "$build/hewn" run "$work/$module.ptx" >"$work/out" 2>&1 ||
        { cat "$work/out" >&2; exit 1; }
    echo "== $module, $batch sequences of $length keys, $((batch * length * 132 / 1000000)) MB of keys"
    "$build/hewn" timeline "$work/trace.json" | sed 1d
}
if [ $decode = 0 ]; then
    decode decode_bf16_64_64_16 64 64 16 256
    decode decode_bf16_128_128_16 128 128 16 512
    decode decode_bf16_128_128_16_e4m3 128 128 16 256
    decode decode_bf16_256_256_16 256 256 16 1024
    decode decode_bf16_256_256_16_e4m3 256 256 16 512
    decode mla_bf16 576 512 64 1152
    decode mla_bf16_656 576 512 64 656
    decode mla_bf16_584 512 512 64 584
    indexer 64 1
    indexer 64 4
fi
