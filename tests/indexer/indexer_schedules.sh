#!/bin/sh
# The indexer's kernels under several schedules: clean, and against the worksheet that they declare.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/indexer_schedules
rm -rf "$work"
mkdir -p "$work"
indexer=$BUILD/tests/indexer
unset HEWN_SIM_QUIET HEWN_SIM_GPU HEWN_LIBCUDA
seeds=2
[ "$SUITE" = all ] && seeds=50
for gpu in h200 b200; do
    # 5: 127 keys without pages; 13: 64 heads, 4 queries; 20: 32 heads, 17 queries; 32: pages of 24, their scales apart.
    for case in 5 13 20 32; do
        timeout 900 "$BUILD/hewn" check --gpu $gpu --schedules $seeds "$indexer" --case $case >"$work/out" 2>&1
        status "$seeds schedules of case $case on $gpu" 0 $?
    done
    for case in 13 32; do
        timeout 120 "$BUILD/hewn" worksheet --gpu $gpu "$indexer" --case $case >"$work/out" 2>&1
        want "case $case on $gpu: declared and seen" '^declared and seen agree' "$work/out"
    done
done
finish
