#!/bin/sh
# The worksheet of both product kernels: what they declare is what they do; its numbers are those that the
# problem's size gives; no seed and no number of host threads shows in it; a note that is wrong, or a
# kernel that does something else than its notes, is told by name. And a text without notes.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/worksheet
rm -rf "$work"
mkdir -p "$work"
hewn=$BUILD/hewn
out=$work/out
size=600x774x530 # 5 x 4 tiles, 9 k-blocks, 5 tiles a CTA; rows of 3096 B end inside a 16-byte chunk

sheet() { "$hewn" worksheet --gpu "$1" "$hewn" demo gemm -o "$work/demo" --size $size --variant ${2:-plain} >"$out" 2>&1; }
agree() { # GPU DECLARATIONS STAGES PHASES
    sheet "$1"
    status "hewn worksheet ($1)" 0 $?
    want "$1: declared and seen" "^declared and seen agree: $2 declarations, 0 of them not wholly seen" "$out"
    want "$1: the ring's phases" "^full_bar\[$3\] .*| $4\$" "$out"
    want "$1: bytes of a phase" '49,152 B' "$out"
    want "$1: a stage's lifetime" '^ring_a  *| TMA load (producer) *| full_bar\[s\] *| empty_bar\[s\]$' "$out"
    want "$1: a staged box's lifetime" '^stage_d .* cp.async.bulk.wait_group.read (line' "$out"
}
agree h200 13 4 "11\.\.12"
want "registers" '^producer  *| 0-3  *| 24 ' "$out"
want "an empty slot's phase" '^empty_bar\[4\] *| 8 *| 8 arrivals' "$out"
agree b200 18 4 "11\.\.12"
want "accumulators" '^acc_1 *| 256-511 *| MMA (mma) -> tcgen05.ld (epilogue)' "$out"
want "an accumulator's lifetime" '^acc_1 *| MMA (mma) *| acc_full\[s\] *| acc_empty\[s\]$' "$out"
want "accumulators' phases" '^acc_full\[2\].*| 2\.\.3$' "$out"

# In the tiles between, three barriers are for parts of K, which this run has not.
for variant in pair wide small narrow 128x96 128x160m 128x192n 128x224; do
    sheet h200 $variant
    status "hewn worksheet (h200, $variant)" 0 $?
    seen='13 declarations, 0'
    case $variant in 128x*) seen='16 declarations, 6' ;; esac
    want "$variant: declared and seen" "^declared and seen agree: $seen of them not wholly seen" "$out"
    want "$variant: an empty slot's phase" '^empty_bar\[[0-9]\] *| 16 *| 16 arrivals' "$out"
done

seeds='1 2'
[ "$SUITE" = all ] && seeds='1 2 3 4'
for gpu in h200 b200; do
    for seed in $seeds; do
        for threads in 1 2; do
            [ $seed -gt 1 ] && [ $threads = 1 ] && continue
            rm -f "$work/again"
            HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=$gpu HEWN_SIM_SEED=$seed HEWN_SIM_THREADS=$threads \
                HEWN_SIM_WORKSHEET=$work/again "$hewn" demo gemm -o "$work/demo" --size $size --variant plain >/dev/null 2>&1
            [ $seed$threads = 11 ] && mv "$work/again" "$work/$gpu.json" && continue
            if cmp -s "$work/$gpu.json" "$work/again"; then ok; else
                fail "$gpu: the worksheet differs under seed $seed, $threads threads" "$(diff "$work/$gpu.json" "$work/again")"
            fi
        done
    done
done

# 180 k-blocks of two loads and 48 KB; 4 MMAs each, by one thread or by each of 4 warps.
for gpu in h200 b200; do want "$gpu: loads" '"role":"producer".* TMA load 360 (8,640 KB)' "$work/$gpu.json"; done
want "wgmma of a warpgroup" '"role":"consumer_1".* wgmma.mma_async 2,880,' "$work/h200.json"
want "MMAs" '"role":"mma".* tcgen05.mma 720,' "$work/b200.json"
want "tiles: a commit each, and one a k-block" '"role":"mma".* tcgen05.commit 200,' "$work/b200.json"

HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=b200 HEWN_SIM_WORKSHEET=$work/no/such/folder "$hewn" demo gemm -o "$work/demo" >"$out" 2>&1
want "a file that cannot be written" 'HEWN_SIM_WORKSHEET=.*no/such/folder: ' "$out"
"$hewn" worksheet --gpu b200 --launch 7 "$hewn" demo gemm -o "$work/demo" >"$out" 2>&1
status "a launch that there is not" 1 $?
want "a launch that there is not" 'no launch 7' "$out"
"$hewn" worksheet --gpu b200 true >"$out" 2>&1
status "a program that launches nothing" 2 $?
"$hewn" worksheet --gpu b100 true >"$out" 2>&1
status "a GPU that there is not" 64 $?

case $MODE in rel | dbg) ;; *) PYTHON= ;; esac
if [ -z "$PYTHON" ] || ! "$PYTHON" -c 'import ctypes' 2>/dev/null; then
    skip "kernels and notes that disagree: no Python with ctypes that can load the simulator"
    finish
    exit
fi
"$PYTHON" - "$work/h200.json" "$work/b200.json" >"$out" 2>&1 <<'END'
import json, sys
for path in sys.argv[1:]:
    rows = [json.loads(line) for line in open(path)]
    assert rows[0]["worksheet"] == "launch" and rows[-1]["worksheet"] == "verdict"
    assert all(not isinstance(v, (dict, list)) for row in rows for v in row.values()), "a row that is not flat"
END
status "rows are flat JSON: $(tail -n 1 "$out")" 0 $?

run() { # TARGET PTX
    gpu=h200
    [ "$1" = sm_100f ] && gpu=b200
    HEWN_SIM_SMS=1 timeout 60 "$hewn" worksheet --gpu $gpu "$PYTHON" "$SRC/tests/driver/gemm_ctypes.py" --ptx "$2" \
        --size 24x274x520 --batch 1 "$BUILD/modules/$1/gemm_bf16_f32.json" >"$out" 2>&1
}
edited() { # TARGET SED: the text edited, run, and found different
    good=$BUILD/modules/$1/gemm_bf16_f32.ptx
    edit=$2
    sed "$2" "$good" >"$work/bad.ptx"
    if cmp -s "$good" "$work/bad.ptx"; then fail "$1: nothing to edit by $2"; fi
    run "$1" "$work/bad.ptx"
    status "$1: $2" 1 $?
}
told() { want "$edit" "^$1 *| $2 *| $3\$" "$out"; } # WHAT DECLARED SEEN: a line of the differences
for target in sm_90a sm_100f; do
    edited $target 's/@ handoff full_bar 1 49152/@ handoff full_bar 2 49168/; /@ flow ring_a/d; /@ handoff empty_bar/d
        s/@ flow ring_b producer.tma/@ flow ring_b producer/; s/\(@ shared ring_b .*\) [34]$/\1 2/; s/\(@ flow stage_d .*\)/\1 twice/'
    told 'handoff full_bar' 'count 2' 'count 1'
    told 'handoff full_bar' 'bytes 49168' 'bytes 49152'
    told 'handoff empty_bar' 'nothing' 'all\|producer, mma'
    told 'storage ring_a' 'nothing' 'all\|producer, mma'
    told 'flow ring_b' 'writers producer' 'writers producer.tma'
    told 'storage shared+0x[0-9a-f]* (line [0-9]*)' 'nothing' 'all\|producer, mma'
    told 'note at line [0-9]*' 'flow stage_d .*' 'a wrong number of words'
done
edited sm_100f 's/\(@ handoff empty_bar.*\) mma producer/\1 mma producer+epilogue/; /@ tmem acc_1/d'
told 'handoff empty_bar' 'consumers epilogue, producer' 'consumers producer'
told 'storage columns 256-[0-9]* (line[ 0-9)]*' 'nothing' 'epilogue, mma'
told 'flow acc_1' 'storage' 'no such storage'
edited sm_100f '/@ role mma/d'
told 'role warp 5' 'nothing' 'warps that no role holds'
# The kernel, not the note: twice the arrivals of every consumer warp.
edited sm_90a 's/\(mbarrier\.init[^,]*%empty_s[^,]*, *\)8/\116/; s/\(mbarrier\.arrive[^;]*%empty_before\]\)/\1, 2/'
told 'handoff empty_bar' 'count 8' 'count 16'

sed '/^\/\/@/d' "$BUILD/modules/sm_90a/gemm_bf16_f32.ptx" >"$work/foreign.ptx"
run sm_90a "$work/foreign.ptx"
status "a text without notes" 0 $?
want "a text without notes" 'the source declares no worksheet' "$out"
want "roles by what warps do" '^warp 0  *| 0  *| 24 ' "$out"
want "roles by what warps do" '^warps 1-3  *| 1-3  *| 24 ' "$out"
line=$(grep -n 'LOAD_A(%dst_a, %k' "$SRC/ptx/sm_90a/gemm_load.inc" | cut -d: -f1)
want "storage by offset and line: 24 rows reach one pair of warps" "^shared+0x[0-9a-f]* (line $line) *| 0 *| 4,096 *| TMA load (warp 0) -> wgmma (warps 4-5)" "$out"
finish
