#!/bin/sh
# hewn run: statements in the file and on the command line, results in and out, exit status, errors that
# name argument, value and rule.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/run
mkdir -p "$work"
unset HEWN_SIM_QUIET HEWN_SIM_GPU
export HEWN_LIBCUDA="$SIM" # also where a GPU answers
hewn=$BUILD/hewn
cat >"$work/axpy.ptx" <<'PTX'
.version 8.0
.target sm_90
.address_size 64
//@ run: grid 2; block 16; buf x f32[32] iota; buf y f32[2,16] const 1; params x, y, 2.5
//@ run: expect y iota 1 2.5
.visible .entry axpy(.param .u64 x, .param .u64 y, .param .f32 a) // y += a * x
{
    .reg .b32 %i, %n;
    .reg .b64 %x, %y;
    .reg .f32 %a, %v, %w;
    mov.u32 %i, %ctaid.x;
    mov.u32 %n, %tid.x;
    mad.lo.u32 %i, %i, 16, %n;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.f32 %a, [a];
    mad.wide.u32 %x, %i, 4, %x;
    mad.wide.u32 %y, %i, 4, %y;
    ld.global.f32 %v, [%x];
    ld.global.f32 %w, [%y];
    fma.rn.f32 %w, %a, %v, %w;
    st.global.f32 [%y], %w;
    ret;
}
PTX
try() { # NAME STATUS TEXT ARGS…
    name=$1 want=$2 text=$3
    shift 3
    timeout 60 "$hewn" run "$@" >"$work/out" 2>&1
    status "$name" "$want" $?
    want "$name" "$text" "$work/out"
}
try 'as the file says' 0 'right in 1 of 1' "$work/axpy.ptx"
try 'many schedules' 0 'right in 7 of 7' "$work/axpy.ptx" --schedules 7
try 'an option overrides' 0 'right in 1 of 1' "$work/axpy.ptx" --params 'x, y, -1' --expect 'y iota 1 -1'
try 'a wrong result' 1 'y: 31 of 32 elements are wrong; the worst, \[1,15\]: want 63' "$work/axpy.ptx" \
    --expect 'y iota 1 2'
try 'a tolerance' 0 'right in' "$work/axpy.ptx" --expect 'y iota 1 2.25 tol=0.2'
try 'out to .npy' 0 'right in' "$work/axpy.ptx" --out "y $work/y.npy"
try '.npy as expected' 0 'right in' "$work/axpy.ptx" --expect "y file $work/y.npy"
try '.npy as contents' 0 'right in' "$work/axpy.ptx" --buf "y f32[2,16] file $work/y.npy" \
    --expect 'y iota 1 5'
try '.npy of another shape' 1 'y.npy: shape (2, 16), want (32,)' "$work/axpy.ptx" \
    --buf "y f32[32] file $work/y.npy"
# random: a u8 gets every byte that is no NaN as e4m3, another integer every value, bounded ones what is between.
try 'random bytes' 0 'right in' "$work/axpy.ptx" --buf 'r u8[8192] random' --buf 's s8[8192] random' \
    --buf 't u8[8192] random 3 9' --out "r $work/r.npy" --out "s $work/s.npy" --out "t $work/t.npy"
for drawn in 'r 254' 's 256' 't 6'; do
    set -- $drawn
    values=$(tail -c 8192 "$work/$1.npy" | od -An -v -tu1 -w1 | sort -nu)
    status "values of $1" "$2" "$(echo "$values" | wc -l)"
done
status "the least and the largest of t" "3 8" "$(echo $values | cut -d " " -f 1,6)"
try 'JSON' 0 '{"run":".*axpy.ptx","seed":3,"step":"over","result":0,"simulated":true,"results":"right","message":""}' \
    "$work/axpy.ptx" --json --seed 3
try 'JSON has the verdict' 0 '{"verdict":"clean","kernel":"axpy","findings":0,"basis":"proved"}' "$work/axpy.ptx" --json
try 'a finding' 1 'oob' "$work/axpy.ptx" --buf 'y f32[4]' --expect 'y zeros'
try 'another entry' 1 "entry: 'saxpy' is none of the text's (axpy)" "$work/axpy.ptx" --entry saxpy
try 'too few parameters' 1 'params: 2 are given, entry axpy has 3' "$work/axpy.ptx" --params 'x, y'
try 'no number' 1 "params: 'two' for a is no buffer, no map and no number of type .f32" \
    "$work/axpy.ptx" --params 'x, y, two'
try 'a bad shape' 1 "buf y: dimension 0: 1 to 2^32 elements" "$work/axpy.ptx" --buf 'y f32[0]'
try 'a bad type' 1 "type: 'f8' is none of u8, s8" "$work/axpy.ptx" --buf 'y f8[4]'
try 'a bad box' 1 'm: box' "$work/axpy.ptx" --map 'm x box=512'
try 'a bad swizzle' 1 "swizzle: '96B' is none of none, 32B" "$work/axpy.ptx" --map 'm x box=8 swizzle=96B'
try 'an unknown statement' 64 "'--colour' is not understood" "$work/axpy.ptx" --colour red
try 'a bad device' 64 "gpu takes h200, b200 or b300, not 'tpu'" "$work/axpy.ptx" --gpu tpu
try 'no file' 64 'a PTX file is missing'
try 'the notation' 0 'A statement describes one part of a run' --help
sed 's/^    ret;/    tcgen05.nonsense;\n    ret;/' "$work/axpy.ptx" >"$work/unknown.ptx"
try 'what is not modelled' 2 'not modelled: tcgen05.nonsense' "$work/unknown.ptx"
sed 's/^    ret;/    ret/' "$work/axpy.ptx" >"$work/broken.ptx"
try 'what is no PTX' 1 '(218)' "$work/broken.ptx"
sed 's/iota 1 2.5/iota 1 STEP/; s/^\.version/#define FACTOR %a\n.version/; s/%w, %a, %v/%w, FACTOR, %v/' \
    "$work/axpy.ptx" | sed 's|^//@ run: expect.*|//@ run TWICE: expect y iota 1 5; params x, y, 5|' >"$work/cpp.ptx"
try 'preprocessed, for a macro' 0 'right in 1 of 1' "$work/cpp.ptx" -DTWICE
CC="env gcc -O2" try 'CC may be several words' 0 'right in 1 of 1' "$work/cpp.ptx" -DTWICE

# What a launch executed: a branch that no lane takes, a guard that is never true.
sed 's/^    st.global/    setp.eq.u32 %p, %i, 99;\n    @%p bra DONE;\n    @%p mov.f32 %w, %a;\n    st.global/; s/^    ret/DONE:\n    ret/
    s/^    .reg .b32/    .reg .pred %p;\n    .reg .b32/' "$work/axpy.ptx" >"$work/guarded.ptx"
rm -f "$work/executed"
HEWN_SIM_EXECUTED=$work/executed try 'the instructions that were executed' 0 'right in 1 of 1' "$work/guarded.ptx"
want 'a launch' '^launch axpy$' "$work/executed"
want 'an instruction' '^executed .*guarded.ptx:[0-9]* st.global.f32' "$work/executed"
want 'a guard that was never true' '^never .*guarded.ptx:[0-9]* mov.f32 %w, %a\|^never .*@%p mov.f32' "$work/executed"
finish
