#!/bin/sh
# A program of 10,000 launches on the simulator: its memory stays as it is, and a report file costs at most 0.3 of the
# time. Each way runs three times in turn; the quickest counts. Where that is too slow each way has six more turns, as
# another program may have slowed the first.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/many
mkdir -p "$work"
case $MODE in rel | dbg) ;; *)
    skip "many launches: times and memory of MODE=$MODE say nothing"
    finish
    exit
    ;;
esac
launches=10000

# once NAME VARIABLE…: its line goes to $work/NAME
once() {
    name=$1
    shift
    env HEWN_LIBCUDA="$SIM" HEWN_SIM_GPU=h200 HEWN_SIM_QUIET=1 "$@" "$BUILD/tests/many_launches" $launches >"$work/out" 2>&1
    status "$launches launches, $name" 0 $?
    sed -n 's/^resident \([0-9]*\) then \([0-9]*\) KiB, CPU \([0-9.]*\) s$/\1 \2 \3/p' "$work/out" >>"$work/$name"
}
rm -f "$work"/*
least() { awk 'NR == 1 || $3 < least { least = $3 } END { print least }' "$1"; }
quick=1 turns=0
while [ $turns -lt 3 ] || { [ $quick -ne 0 ] && [ $turns -lt 9 ]; }; do
    turns=$((turns + 1))
    once plain
    once report HEWN_SIM_REPORT="$work/json"
    plain=$(least "$work/plain") report=$(least "$work/report")
    awk "BEGIN { exit !($report <= 1.3 * $plain) }"
    quick=$?
done
if awk '{ if ($2 - $1 > most) most = $2 - $1 } END { exit !(NR >= 6 && most <= 2048) }' "$work/plain" "$work/report"; then ok
else fail 'many launches: memory grows by more than 2 MiB' "$(cat "$work/plain" "$work/report")"; fi
printf '%s launches: %s s of CPU time, with a report file %s s\n' $launches "$plain" "$report"
if [ $quick -eq 0 ]; then ok; else fail 'many launches: a report file takes more than 0.3 of the time' "$plain $report"; fi
finish
