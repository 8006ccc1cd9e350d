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
        fi
        command -v spin >/dev/null 2>&1 || continue
        errors=$(spin_says "$name" "$define")
        if [ "$errors" = $want ]; then ok; else fail "$name $define: Spin finds '$errors' errors, want $want" "$(tail -n 5 "$work/spin.log")"; fi
    done
done
command -v spin >/dev/null 2>&1 || skip "spin not found: the protocols are not held against its search"
finish
