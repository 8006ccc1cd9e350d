#!/bin/sh
# hewn fidelity: every instruction has a claim, and each claim of an H200's bits has a recorded kernel.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/fidelity
rm -rf "$work"
mkdir -p "$work/ptx"
hewn=$BUILD/hewn
judge=$(cd "$BUILD/tests" && pwd)/sim_fidelity
out=$work/out

HEWN_LIBCUDA=$SIM "$BUILD/tests/golden" --ptx "$work/ptx" >"$out" 2>&1
status 'the kernels that were recorded' 0 $?
(cd "$work/ptx" && find . -name '*.ptx' -print0 | xargs -0 -n 100000 "$judge") >"$out" 2>&1
status 'claims beside what was recorded' 0 $?
[ "$(tail -n 1 "$out" | grep -c ' 0 failed')" = 1 ] || cat "$out"

"$hewn" fidelity >"$out" 2>&1
status 'hewn fidelity' 0 $?
want 'an approximation has its bound' '^rsqrt  .* bounded  *H200  *9.54e-7 relative$' "$out"
want 'tcgen05 has no hardware behind it' '^tcgen05.alloc  .* exact  *ISA$' "$out"
want 'what is missing' '^cctl  *not modelled$' "$out"
want 'the sum' 'forms: .* compared with an H200; [0-9]* instructions not modelled$' "$out"
"$hewn" fidelity ex2 >"$out" 2>&1
status 'hewn fidelity ex2' 0 $?
want 'the form' '^ex2 approx ' "$out"
want 'its claim' '^    results: bounded, compared with: H200; 16 bits: 1 ulp; f32 exact$' "$out"
"$hewn" fidelity nothing >"$out" 2>&1
status 'no such instruction' 1 $?
want 'its name' "PTX has no instruction 'nothing'" "$out"
finish
