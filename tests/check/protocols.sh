#!/bin/sh
# Small barrier protocols, right (-DFIXED) and wrong, many of them wrong only in orders that a run as a rule does
# not take: the verdict must be right from one run, whatever the seed. Each stands beside a model of itself for
# Spin, which goes through every order: the two must agree. So must hewn's own search through all orders.
. "$SRC/tests/lib/lib.sh"
unset HEWN_SIM_QUIET
work=$BUILD/tests/protocols
rm -rf "$work"
mkdir -p "$work"
case $BUILD in /*) hewn=$BUILD/hewn ;; *) hewn=$PWD/$BUILD/hewn ;; esac
sources=$(cd "$SRC/tests/check/protocols" && pwd)

# says NAME DEFINE SEED: 0 clean, 1 an error
says() { HEWN_LIBCUDA=$SIM "$hewn" run "$sources/$1.ptx" $2 --seed "$3" >"$work/out" 2>&1; }

# spin_says NAME DEFINE: errors that an exhaustive search finds
spin_says() {
    (cd "$work" && cp "$sources"/*.pml . && spin $2 -a "$1.pml" >spin.log 2>&1 &&
        $CC -O1 -w -DSAFETY -o pan pan.c >>spin.log 2>&1 && ./pan -m100000 >pan.log 2>&1 &&
        sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
}

# again NAME: the order that the report names is taken again, with the same steps under any seed.
again() {
    word=$(sed -n 's/^  to see the bad order: --replay //p' "$work/out")
    for seed in 1 2; do
        HEWN_LIBCUDA=$SIM "$hewn" run "$sources/$1.ptx" --replay "$word" --seed $seed >"$work/again$seed" 2>&1
        status "$1 --replay $word, seed $seed" 1 $?
    done
    sed -n '/^  [0-9]/p' "$work/again1" >"$work/steps1"
    sed -n '/^  [0-9]/p' "$work/again2" >"$work/steps2"
    if [ -s "$work/steps1" ] && cmp "$work/steps1" "$work/steps2" >/dev/null; then ok
    else fail "$1: --replay $word takes other steps under seed 2" "$(diff "$work/steps1" "$work/steps2" | head -n 5)"; fi
    if grep -q 'no warp can run any more' "$work/out"; then
        want "$1: --replay hangs as the order did" 'error: deadlock' "$work/again1"
    fi
}

for file in "$sources"/*.ptx; do
    name=$(basename "$file" .ptx)
    for define in "" -DFIXED; do
        want=1
        [ -n "$define" ] && want=0
        HEWN_LIBCUDA=$SIM "$hewn" run "$sources/$name.ptx" $define --json >"$work/out" 2>&1
        want "$name $define: proved" '"verdict":.*"basis":"proved"}$' "$work/out"
        for seed in 1 2 3 4 5 6 7 8; do
            says "$name" "$define" $seed
            got=$?
            if [ $got -eq $want ]; then ok; else fail "$name $define, seed $seed: exit status $got, want $want" "$(cat "$work/out")"; fi
        done
        HEWN_LIBCUDA=$SIM "$hewn" run "$sources/$name.ptx" $define --explore >"$work/out" 2>&1
        if [ $want -eq 0 ]; then
            want "$name $define: no order is bad" 'explored (all [0-9]* order' "$work/out"
        elif grep -q 'explored (all' "$work/out"; then
            fail "$name: no order is bad" "$(cat "$work/out")"
        else
            want "$name: some order is bad" 'explored ([0-9]* order' "$work/out"
            again "$name"
        fi
        command -v spin >/dev/null 2>&1 || continue
        errors=$(spin_says "$name" "$define")
        if [ "$errors" = $want ]; then ok; else fail "$name $define: Spin finds '$errors' errors, want $want" "$(tail -n 5 "$work/spin.log")"; fi
    done
done
# Words that fit nothing.
replay() { # STATUS WANT WORD
    HEWN_LIBCUDA=$SIM "$hewn" run "$sources/ring.ptx" -DFIXED --replay "$3" >"$work/out" 2>&1
    status "--replay $3" "$1" $?
    want "--replay $3" "$2" "$work/out"
}
replay 2 'HEWN_SIM_REPLAY does not fit this launch: behind step 1 the one' 1:w0,w77
replay 0 '0 review, 0 incomplete, 0 error' 2:w0
printf '1:w0\n' >"$work/word"
replay 0 'the schedule ends' "@$work/word"
for word in w0 0:w0 1:q 1:w0x0; do replay 1 'HEWN_SIM_REPLAY: ' "$word"; done

command -v spin >/dev/null 2>&1 || skip "spin not found: the protocols are not held against its search"
finish
