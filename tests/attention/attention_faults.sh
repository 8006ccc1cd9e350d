#!/bin/sh
# The e4m3 prefill kernel of sm_90a with faults of its V pipeline planted one by one into a copy of its text: those of a
# public kernel of the same kind, whose repair this pipeline's design follows. The checker must name each under every
# seed, by kind, storage or barrier, and roles.
#
# Two of them can go wrong here in no legal order: rings of one slot, because the warp that loads is not one of those that
# transpose; and items without rows, because the planner alone decides about them. Of these the checker must prove that
# every order is free of errors. For that the poll whose answer the kernel looks at (LOOK_AHEAD) always says "not yet",
# one of its legal answers; a proof covers no poll with two. Beside each stands the form in which the fault does go wrong:
# the warps that transpose also hold the next slot before they let go of this one; and a role of its own opinion about
# items without rows, or a record rewritten while others still read it.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/attention_faults
rm -rf "$work"
mkdir -p "$work"
unset HEWN_SIM_QUIET HEWN_SIM_GPU HEWN_LIBCUDA
hewn=$(cd "$BUILD" && pwd)/hewn
module=attention_e4m3_128_128_sums
cases=$SRC/tests/mutate/sm_90a-$module.run
seeds=${SEEDS:-'1 3'}
[ "$SUITE" = all ] && seeds='1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20'

# plant NAME [FILE SED]...: the kernel with each FILE edited; the edit must change it.
plant() {
    name=$1
    mkdir -p "$work/$1/ptx"
    cp -r "$SRC/ptx/sm_90a" "$SRC/ptx/inc" "$work/$1/ptx/"
    shift
    while [ $# -ge 2 ]; do
        edited=$work/$name/ptx/sm_90a/$1
        cp "$edited" "$work/before"
        sed "$2" "$work/before" >"$edited"
        if cmp -s "$work/before" "$edited"; then
            fail "$name: the text has no such line any more"
            return 1
        fi
        shift 2
    done
    set -- "$name"
    $CC -E -undef -nostdinc -x assembler-with-cpp -DENTRY=hewn_$module -DIN_TYPE=e4m3 -DQK_DIM=128 -DV_DIM=128 \
        -DSOFTCAPS=0 -DPROMOTES=1 "$work/$1/ptx/sm_90a/attention_e4m3.ptx" -o "$work/$1/k.i" &&
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

# proved NAME LAUNCH: clean, and so in every order; one seed is enough
proved() {
    run "$1" "$2" 1
    status "$1" 0 $?
    want "$1" ': 1 clean, 0 review, 0 incomplete, 0 error' "$work/$1.out.1"
    want "$1: in every order" '^hewn run: 1 proved for every order' "$work/$1.out.1"
}

# named NAME LAUNCH TEXT...: each TEXT is in the report
named() {
    name=$1 launch=$2
    shift 2
    for seed in $seeds; do
        run "$name" "$launch" $seed
        status "$name, seed $seed" 1 $?
        for text; do want "$name, seed $seed" "$text" "$work/$name.out.$seed"; done
    done
}

# Causal items of one to three blocks.
sed -n '/map q_0/,/launch/p' "$cases" >"$work/causal"
# Packed: 19 sequences of one query each, in a plan for 130.
sed -n -e '/map ._2/p' "$cases" >"$work/packed"
sed -n -e '/^\/\/ Packed: 19/,/launch/p' "$cases" |
    sed -e 's/ 8, 19, 1, 19,/ 8, 57, 3, 19,/' -e 's/ 2, 2, 32, 1, 20,/ 2, 2, 32, 130, 20,/' >>"$work/packed"
grep -q ' 57, 3, 19, .* 32, 130, 20,' "$work/packed" || fail 'the packed case of the mutants has changed'

plant right && clean right "$work/causal" && clean right "$work/packed"

# Edits of more than one fault. never: the poll's answer is "not yet".
one='s/^#define SLOTS PLAN.*/#define SLOTS 1/'
ghosts='/PLAN_ITEM:/,/no rows/s/bra PLAN_LIVE;/bra PLAN_PLACED;/;/no rows/{n;s/.*/        \/\/ goes on/;}'
never='s/mbarrier.test_wait.parity.shared::cta.b64 tmp_ready, \[%full_s\], want;/setp.ne.u32 tmp_ready, 0, 0;/'

# A scratch ring of one slot.
plant one_slot attention_e4m3.ptx "$one" && clean one_slot "$work/causal"
plant one_slot_proof attention_e4m3.ptx "$one" attention_e4m3_consume.inc "$never" &&
    proved one_slot_proof "$work/causal"
# It goes wrong where those who empty it wait for its next slot first. With several slots they may.
hold='s|^        MBAR_WAIT(%full_s, %parity) // waits RAW_FULL\[s\]|&\
        mov.u32 %t1, %slot;\
        mov.u32 %t2, %parity;\
        RING_NEXT(%t1, %t2, SLOTS)\
        xor.b32 %t2, %t2, 1;\
        mov.u32 %free, raw_empty;\
        mad.lo.u32 %t1, %t1, 8, %free;\
        MBAR_WAIT(%t1, %t2) // waits RAW_EMPTY of the next slot|'
plant holds_next attention_e4m3.ptx "$hold" && clean holds_next "$work/causal"
plant one_slot_held attention_e4m3.ptx "$one" attention_e4m3.ptx "$hold" &&
    named one_slot_held "$work/causal" 'error: deadlock (cycle): raw_empty' \
        'Missing is transpose (warp [4-7]), which waits for raw_empty (line [0-9]*): the phase that it would'

# Items without rows.
plant ghost_items attention_planner.inc "$ghosts" && clean ghost_items "$work/packed"
plant ghost_items_proof attention_planner.inc "$ghosts" attention_e4m3_consume.inc "$never" &&
    proved ghost_items_proof "$work/packed"
# producer_v passes over them, the others do not.
plant ghost_items_skipped attention_planner.inc "$ghosts" attention_e4m3.ptx \
    '/^    V_ITEM:/,/BEGIN_ITEM/s|^        BEGIN_ITEM|        RECORD_OF_ITEM(%x)\
        ld.shared.s32 %i, [%x + PLAN(TOKEN)];\
        ld.shared.s32 %x, [%x + PLAN(QUERIES)];\
        setp.ge.s32 %skip, %i, %x;\
        @%skip bra V_ITEM_DONE;\
&|' &&
    named ghost_items_skipped "$work/packed" 'error: deadlock (no-producer): raw_full\[[0-9]\]' \
        'Missing is producer_v (warp 2), .* some way through its loop leaves it out'
# The record of the item is written before those who read the last one are done with it.
plant ghost_items_early attention_planner.inc 's/^        MBAR_WAIT(%rec_empty, %rec_parity).*/        \/\/ does not wait/' &&
    named ghost_items_early "$work/packed" 'error: race: records+' \
        'planner (warp 1) of CTA ([01],0,0) writes .* which [a-z_]* (warp [0-9]*) of CTA ([01],0,0) reads'

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
    '/^    TRANSPOSE_BLOCK:/,/MBAR_WAIT/s/mad.lo.u32 %full_s, %slot, 8, %full_s;/\/\/ always the first/' &&
    named own_pointer "$work/causal" 'error: [a-z-]*: raw_[a-z]*\[[0-9]\]' \
        'transpose (warp [4-7]) of CTA ([01],0,0) reads .* which producer_v (warp 2)'
# The leading warp alone says that V is transposed.
plant leader_ahead attention_e4m3.ptx \
    's/MBAR_INIT(%full_s, TRANSPOSERS)/MBAR_INIT(%full_s, 1)/
     s/@%leader MBAR_ARRIVE(%full_s) \/\/ signals V_FULL/setp.eq.and.u32 %skip, %warp, 0, %leader; @%skip MBAR_ARRIVE(%full_s) \/\/ signals V_FULL/' &&
    named leader_ahead "$work/causal" 'error: race: ring_v\[[0-9]\]' \
        'consumer (warp [0-9]*) of CTA ([01],0,0) asynchronously reads .* which transpose (warp [5-7])'
finish
