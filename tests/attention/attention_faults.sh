#!/bin/sh
# The e4m3 prefill kernel of sm_90a with faults of its V pipeline planted one by one into a copy of its text: those of a
# public kernel of the same kind, whose repair this pipeline's design follows. The checker must name each under every
# seed, by kind, storage and roles. Where a fault can go wrong in no legal order, the run must be clean: rings of one slot,
# because here the warp that loads is not one of those that transpose; and items without rows, whose roles agree.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/attention_faults
rm -rf "$work"
mkdir -p "$work"
unset HEWN_SIM_QUIET HEWN_SIM_GPU HEWN_LIBCUDA
hewn=$(cd "$BUILD" && pwd)/hewn
module=attention_e4m3_128_128
cases=$SRC/tests/mutate/sm_90a-$module.run
seeds='1 2 3'
[ "$SUITE" = all ] && seeds='1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20'

# plant NAME FILE SED: the kernel with FILE edited; the edit must change it.
plant() {
    mkdir -p "$work/$1/ptx"
    cp -r "$SRC/ptx/sm_90a" "$SRC/ptx/inc" "$work/$1/ptx/"
    if [ "$2" ]; then
        sed "$3" "$SRC/ptx/sm_90a/$2" >"$work/$1/ptx/sm_90a/$2"
        if cmp -s "$SRC/ptx/sm_90a/$2" "$work/$1/ptx/sm_90a/$2"; then
            fail "$1: the text has no such line any more"
            return 1
        fi
    fi
    $CC -E -undef -nostdinc -x assembler-with-cpp -DENTRY=hewn_$module -DIN_TYPE=e4m3 -DQK_DIM=128 -DV_DIM=128 \
        -DSOFTCAPS=0 "$work/$1/ptx/sm_90a/attention_e4m3.ptx" -o "$work/$1/k.i" &&
        "$BUILD/mod" ptx sm_90a $module "$work/$1/k.i" "$work/$1" "$work/$1/k.ptx"
}

# run NAME LAUNCH SEED: with the first three lines of the mutants' case, which name the buffers, and LAUNCH.
run() {
    { cat "$work/$1/k.ptx" && sed -n 1,3p "$cases" && cat "$2"; } >"$work/$1/run.ptx"
    (cd "$work/$1" && timeout 120 "$hewn" run --seed "$3" run.ptx) >"$work/$1.out.$3" 2>&1
}

# clean NAME LAUNCH
clean() {
    for seed in $seeds; do
        run "$1" "$2" $seed
        status "$1, seed $seed" 0 $?
        want "$1, seed $seed" ': 1 clean, 0 review, 0 incomplete, 0 error' "$work/$1.out.$seed"
    done
}

# named NAME LAUNCH TEXT TEXT: each TEXT is in the report
named() {
    for seed in $seeds; do
        run "$1" "$2" $seed
        status "$1, seed $seed" 1 $?
        want "$1, seed $seed" "$3" "$work/$1.out.$seed"
        want "$1, seed $seed" "$4" "$work/$1.out.$seed"
    done
}

# Causal items of one to three blocks.
sed -n '/map q_0/,/launch/p' "$cases" >"$work/causal"
# Packed: 19 sequences of one query each, in a plan for 130.
sed -n -e '/map ._2/p' "$cases" >"$work/packed"
sed -n -e '/^\/\/ Packed: 19/,/launch/p' "$cases" |
    sed -e 's/ 8, 19, 1, 19,/ 8, 57, 3, 19,/' -e 's/ 2, 2, 32, 1, 20,/ 2, 2, 32, 130, 20,/' >>"$work/packed"
grep -q ' 57, 3, 19, .* 32, 130, 20,' "$work/packed" || fail 'the packed case of the mutants has changed'

plant right '' '' && clean right "$work/causal" && clean right "$work/packed"

plant one_slot attention_e4m3.ptx 's/^#define SLOTS PLAN.*/#define SLOTS 1/' && clean one_slot "$work/causal"
plant ghost_items attention_planner.inc \
    '/PLAN_ITEM:/,/no rows/s/bra PLAN_LIVE;/bra PLAN_PLACED;/;/no rows/{n;s/.*/        \/\/ goes on/;}' &&
    clean ghost_items "$work/packed"

# The slot's number as the offset of what it holds: in bytes, and in units of 16.
slot='mad.lo.u32 %src, %slot, PLAN(RAW_SLOT)(V_DIM), %from_row;'
plant slot_unscaled attention_e4m3.ptx "s/$slot/add.u32 %src, %slot, %from_row;/" &&
    named slot_unscaled "$work/causal" 'attention_e4m3.ptx:[0-9]*: error: misaligned' \
        'which is not a multiple of 16'
plant slot_of_16 attention_e4m3.ptx "s/$slot/mad.lo.u32 %src, %slot, 16, %from_row;/" &&
    named slot_of_16 "$work/causal" 'error: [a-z-]*: raw_v\[[0-9]\]' \
        'transpose (warp [4-7]) of CTA'
# A wait at the reader's own pointer, which does not move, where the slot is meant.
plant own_pointer attention_e4m3.ptx \
    '/^    TRANSPOSE_BLOCK:/,/MBAR_WAIT/s/mad.lo.u32 %full_s, %slot, 8, %full;/mov.u32 %full_s, %full;/' &&
    named own_pointer "$work/causal" 'error: [a-z-]*: raw_[a-z]*\[[0-9]\]' \
        'transpose (warp [4-7]) of CTA ([01],0,0) reads .* which producer_v (warp 2)'
# The leading warp alone says that V is transposed.
plant leader_ahead attention_e4m3.ptx \
    's/MBAR_INIT(%full_s, 4)/MBAR_INIT(%full_s, 1)/
     s/@%leader MBAR_ARRIVE(%full_s) \/\/ signals V_FULL/setp.eq.and.u32 %skip, %warp, 0, %leader; @%skip MBAR_ARRIVE(%full_s) \/\/ signals V_FULL/' &&
    named leader_ahead "$work/causal" 'error: race: ring_v\[[0-9]\]' \
        'consumer (warp [0-9]*) of CTA ([01],0,0) asynchronously reads .* which transpose (warp [5-7])'
finish
