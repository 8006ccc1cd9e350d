#!/bin/sh
# The product kernels of sm_100f, each with each of its ways of loading and of finishing (build/tests/kinds --plans):
# right and clean under 50 seeds, and what their worksheets declare is what they do. In check two of them under one seed.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/plans
mkdir -p "$work"
out=$work/out
unset HEWN_SIM_QUIET HEWN_SIM_GPU HEWN_LIBCUDA
export HEWN_SIM_SMS=4 # several tiles a CTA, pair or two pairs
cases=2,28 seeds=1
[ "$SUITE" = all ] && cases=$(seq -s , 0 31) seeds=50
for n in $(echo $cases | tr , ' '); do
    timeout 600 "$BUILD/hewn" check --gpu b200 --schedules $seeds "$BUILD/tests/kinds" --plans --case "$n" >"$out" 2>&1
    status "$seeds schedules of case $n" 0 $?
    timeout 100 "$BUILD/hewn" worksheet --gpu b200 "$BUILD/tests/kinds" --plans --case "$n" >"$out" 2>&1
    status "worksheet of case $n" 0 $?
    want "case $n: nothing declared is left out" ' 0 of them not wholly seen\|, 0 differ from it' "$out"
done
finish
