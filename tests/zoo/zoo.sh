#!/bin/sh
# The zoo on the simulator (tests/zoo/zoo.c), and every text of it, repaired or not, through ptxas.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/zoo-ptx
mkdir -p "$work"
unset HEWN_SIM_QUIET HEWN_LIBCUDA HEWN_SIM_GPU
out=$BUILD/tests/zoo.out
seeds=20
[ "$SUITE" = all ] && seeds=40
"$BUILD/tests/zoo" --open skip --seeds $seeds "$BUILD/hewn" "$SRC"/tests/zoo/*.ptx >"$out"
grep -A 1 '^FAIL' "$out"
grep '^SKIP' "$out"
counts=$(sed -n 's/^zoo: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$out")
if [ -z "$counts" ]; then
    fail "the zoo ended without a closing line" "$(tail -n 5 "$out")"
else
    set -- $counts
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
fi

# What practice accepts and the letter does not: silent as a rule, a warning at level 2.
HEWN_LIBCUDA=$SIM HEWN_SIM_CHECK=2 timeout 60 "$BUILD/hewn" run "$SRC/tests/zoo/ok-read-arrive-refill.ptx" >"$work.log" 2>&1
status 'a refill without a proxy fence, at level 2' 1 $?
want 'a refill without a proxy fence, at level 2' 'warning: proxy' "$work.log"

# So is what lanes of one warp do without a bar.warp.sync, and what is read before it is written.
level_2() { # CASE STATUS OPTIONS TEXT…
    what="$1 at level 2 $3"
    HEWN_LIBCUDA=$SIM HEWN_SIM_CHECK=2 timeout 60 "$BUILD/hewn" run "$SRC/tests/zoo/$1.ptx" $3 >"$work.log" 2>&1
    status "$what" "$2" $?
    shift 3
    for text; do want "$what" "$text" "$work.log"; done
}
clean=' 0 review, 0 incomplete, 0 error'
level_2 ok-lanes-converged 1 '' 'warning: race' 'warning: async-reuse' 'no bar.warp.sync since' 'no bar.warp.sync has told'
level_2 ok-lanes-converged 1 -DLATE 'warning: async-reuse'
level_2 ok-warp-speaks 1 '' 'warning: race' 'neither arrived anywhere since'
level_2 ok-warp-speaks 1 -DLATE 'warning: race' 'of warp 0 wrote'
level_2 ok-warp-speaks 1 -DREAD 'warning: race' 'of warp 0 read'
level_2 ok-warp-speaks 1 -DFENCE 'warning: proxy' 'comes after the last barrier'
level_2 ok-warp-speaks 1 -DGLOBAL 'warning: proxy' 'of global memory'
level_2 ok-warp-speaks 0 -DFIXED "$clean"
level_2 ok-warp-speaks 0 '-DREAD -DFIXED' "$clean"
level_2 ok-commit-unwaited 1 '' 'warning: pending-at-exit' 'nobody waited'
level_2 ok-commit-unwaited 0 -DFIXED "$clean"

# The shipped kernels are clean: one case here, all of them in check-all.
case=--case\ 37
[ "$SUITE" = all ] && case=
for gpu in h200 b200; do
    HEWN_SIM_QUIET=1 timeout 600 "$BUILD/hewn" check --gpu $gpu "$BUILD/tests/gemm" $case >"$work.log" 2>&1
    status "the product kernels on $gpu, checked" 0 $?
    want "the product kernels on $gpu, checked" ' 0 review, 0 incomplete, 0 error' "$work.log"
    HEWN_SIM_QUIET=1 timeout 600 "$BUILD/hewn" check --gpu $gpu --schedules 100 "$BUILD/tests/gemm" --case 23 >"$work.log" 2>&1
    status "a product on $gpu under 100 seeds" 0 $?
    want "a product on $gpu under 100 seeds" ' 1 clean, 0 review, 0 incomplete, 0 error' "$work.log"
done

# One text: NAME is the file's, with .fixed for the repaired twin.
assemble() { # FILE DEFINE NAME
    if ! "$BUILD/hewn" run "$1" $2 --text "$work/$3.ptx" 2>"$work/$3.log"; then return; fi
    arch=$(sed -n 's/^ *\.target *\(sm_[0-9a-z]*\).*/\1/p' "$work/$3.ptx" | head -n 1)
    "$PTXAS" -arch="$arch" "$work/$3.ptx" -o "$work/$3.cubin" >"$work/$3.log" 2>&1 && : >"$work/$3.ok"
}
if [ -z "$PTXAS" ]; then
    skip "the zoo's texts through ptxas: no ptxas here"
else
    rm -f "$work"/*
    for f in "$SRC"/tests/zoo/*.ptx; do
        name=$(basename "$f" .ptx)
        assemble "$f" -DFIXED "$name.fixed" &
        assemble "$f" '' "$name"
        wait
        for n in "$name" "$name.fixed"; do
            if [ -f "$work/$n.ok" ]; then ok; else fail "ptxas refuses $n" "$(cat "$work/$n.log")"; fi
        done
    done
fi
finish
