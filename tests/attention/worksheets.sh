#!/bin/sh
# What the worksheets of decode, prefill, MLA, the indexer and top-k declare is what they do, in runs of `serving`.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/worksheets
mkdir -p "$work"
out=$work/out
serving=$BUILD/tests/serving

# The replayed graphs of each kind: lengths of every sort, and none.
cases=$(HEWN_LIBCUDA=$SIM "$serving" --list | awk '/replayed/ { print $1 }')
want_kinds=11
found=0
for n in $cases; do
    found=$((found + 1))
    for gpu in h200 b200; do
        HEWN_SIM_QUIET=1 "$BUILD/hewn" worksheet --gpu $gpu "$serving" --case "$n" >"$out" 2>&1
        code=$?
        if grep -q '^SKIP .*shipped for' "$out" || grep -q '^SKIP .*no kernel for' "$out"; then continue; fi
        name="case $n on $gpu"
        status "hewn worksheet, $name" 0 $code
        want "$name: a worksheet is declared" '^declared and seen agree: [1-9][0-9]* declarations' "$out"
        want "$name: nothing differs" '^[0-9]* launches in all: [1-9][0-9]* declare a worksheet, 0 differ from it' "$out"
    done
done
status "kinds of kernels" $want_kinds $found
finish
