#!/bin/sh
# A program of 10,000 launches on the simulator: its memory stays as it is, and a report file costs one write call a
# launch. The CPU times are printed.
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

rm -f "$work"/*

# once NAME VARIABLE…: "EARLY LATE SECONDS WRITES" of that run, in $work/NAME
once() {
    name=$1
    shift
    env HEWN_LIBCUDA="$SIM" HEWN_SIM_GPU=h200 HEWN_SIM_QUIET=1 "$@" "$BUILD/tests/many_launches" $launches >"$work/out" 2>&1
    status "$launches launches, $name" 0 $?
    sed -n 's/^resident \([0-9]*\) then \([0-9]*\) KiB, CPU \([0-9.]*\) s, \(-*[0-9]*\) writes$/\1 \2 \3 \4/p' "$work/out" >"$work/$name"
}
once plain
once report HEWN_SIM_REPORT="$work/json"
if awk '{ if ($2 - $1 > most) most = $2 - $1 } END { exit !(NR == 2 && most <= 2048) }' "$work/plain" "$work/report"; then ok
else fail 'many launches: memory grows by more than 2 MiB' "$(cat "$work/plain" "$work/report")"; fi
awk 'NR == 1 { plain = $3 } END { printf "'$launches' launches: %s s of CPU time, with a report file %s s\n", plain, $3 }' "$work/plain" "$work/report"
if grep -q ' -1$' "$work/plain"; then skip 'many launches: writes of a report: /proc/self/io does not count here'
elif [ "$(awk '{ print $4 }' "$work/report")" -le $((launches + 16)) ] && [ "$(wc -l <"$work/json")" -eq $launches ]; then ok
else fail 'many launches: not one line and one write a launch' "$(cat "$work/plain" "$work/report"; wc -l "$work/json")"; fi
finish
