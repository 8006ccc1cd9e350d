#!/bin/sh
# Mutants of the shipped kernels under the checker (tests/mutate/mutate.c): all of them in check-all, a few of each
# text in check. A kernel text without a case in tests/mutate/ fails.
. "$SRC/tests/lib/lib.sh"
out=$BUILD/tests/mutate.out
unset HEWN_SIM_QUIET HEWN_SIM_GPU HEWN_SIM_CHECK
export HEWN_LIBCUDA="$SIM" # also where a GPU answers
ulimit -c 0
sample=768
[ "$SUITE" = all ] && sample=1
for kernel in "$SRC"/ptx/sm_*/*.ptx; do
    target=$(basename "$(dirname "$kernel")") name=$(basename "$kernel" .ptx)
    case=
    for run in "$SRC/tests/mutate/$target-$name.run" "$SRC/tests/mutate/$target-$name"_*.run; do
        module=$(basename "$run" .run) module=${module#*-}
        if [ "$module" != "$name" ] && [ -f "$SRC/ptx/$target/$module.ptx" ]; then continue; fi # another text's
        if [ -f "$run" ]; then case=$run; fi
    done
    # A text whose modules have other names: the case says which text it is for.
    [ "$case" ] || case=$(grep -lx "// Text: $name" "$SRC/tests/mutate/$target"-*.run)
    if [ "$case" ]; then ok
    else fail "no case for the mutants of $target/$name"; fi
done
"$BUILD/tests/mutate" --sample $sample --ptxas "$PTXAS" "$BUILD/hewn" "$BUILD/modules" "$SRC/tests/mutate" >"$out"
grep -A 1 '^FAIL' "$out"
grep '^SKIP' "$out"
[ "$SUITE" = all ] && cat "$out"
counts=$(sed -n 's/^mutate: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$out")
if [ -z "$counts" ]; then
    fail "the mutants ended without a closing line" "$(tail -n 5 "$out")"
else
    set -- $counts
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
fi
finish
