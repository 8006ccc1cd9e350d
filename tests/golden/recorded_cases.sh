#!/bin/sh
# Each result that a GPU gave is held against a case of today. A case's text names its data, and these follow from its
# number: where a case is added in the middle, those behind it ask for results that nobody recorded, and pass.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/recorded-cases
mkdir -p "$work"
for t in gemm attention; do
    HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=h200 HEWN_SIM_SMS=132 "$BUILD/tests/$t" --list | sed 's/^ *[0-9]*  *//' | sort >"$work/$t.cases"
    sed 1d "$SRC/tests/golden/results-$t.txt" | cut -d ' ' -f 3- | sort >"$work/$t.recorded"
    lost=$(comm -13 "$work/$t.cases" "$work/$t.recorded")
    if [ -s "$work/$t.recorded" ] && [ -z "$lost" ]; then ok; else fail "$t: recorded cases that are none" "$lost"; fi
done
finish
