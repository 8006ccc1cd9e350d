#!/bin/sh
# The MLA kernels under several schedules: clean, and the same bits at every seed and number of host threads; and
# against the worksheet that they declare.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/mla_schedules
rm -rf "$work"
mkdir -p "$work"
mla=$BUILD/tests/mla
unset HEWN_SIM_QUIET HEWN_SIM_GPU HEWN_LIBCUDA
seeds=2
[ "$SUITE" = all ] && seeds=50

# 8: many blocks over several CTAs; 13: two tiles, causal; 19: pages of 61, row by row; 22: every length; 28: split.
for case in 8 13 19 22; do
    timeout 900 "$BUILD/hewn" check --gpu h200 --schedules $seeds "$mla" --case $case >"$work/out" 2>&1
    status "$seeds schedules of case $case" 0 $?
done
for case in 13 22; do
    timeout 120 "$BUILD/hewn" worksheet --gpu h200 "$mla" --case $case >"$work/out" 2>&1
    want "case $case: declared and seen" '^declared and seen agree' "$work/out"
done

bits() { # SEED THREADS
    HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=h200 HEWN_SIM_QUIET=1 HEWN_SIM_CHECK=0 HEWN_SIM_SEED=$1 HEWN_SIM_THREADS=$2 \
        "$mla" --digest --share 0/2 | grep '^digest'
}
first=$(bits 1 1)
for other in '2 1' '3 2'; do
    set -- $other
    if [ "$(bits "$1" "$2")" = "$first" ]; then ok
    else fail "other bits with seed $1 and $2 threads"; fi
done
finish
