#!/bin/sh
# Thirty small attention cases that run every variant, right and clean under many schedules: 50 in
# check-all, 2 in check.
. "$SRC/tests/lib.sh"
out=$BUILD/tests/attention.out
export HEWN_LIBCUDA="$SIM" HEWN_SIM_QUIET=1 # also where a GPU answers
unset HEWN_SIM_CHECK HEWN_SIM_REPORT
seeds=2
[ "$SUITE" = all ] && seeds=50
for gpu in b200 h200; do
    for seed in $(seq 2 $((seeds + 1))); do # 1 is what the test programs themselves run under
        HEWN_SIM_GPU=$gpu HEWN_SIM_SEED=$seed timeout 600 "$BUILD/tests/attention" --small >"$out"
        grep -A 3 '^FAIL' "$out" | head -n 20
        counts=$(sed -n 's/^attention on .*: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$out")
        if [ -z "$counts" ]; then
            fail "seed $seed on $gpu ended without a closing line" "$(tail -n 5 "$out")"
            continue
        fi
        set -- $counts
        passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
        [ "$2" -eq 0 ] || printf '      under HEWN_SIM_SEED=%s on %s\n' "$seed" "$gpu"
    done
done
finish
