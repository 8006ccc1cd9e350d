#!/bin/sh
# hewn watch on a GPU: hangs of the zoo, and one planted in our own product and in our attention, each named in time,
# with a process after it that finds the device usable; our own kernels' digests; what watching costs.
# `make watch-gpu`.
#
#     BUILD=… SRC=… sh tests/watch/hardware.sh
#
# WATCH_AFTER seconds for --after (2), WATCH_LIMIT seconds for a run (30), WATCH_ONLY a pattern of names, WATCH_JOBS
# hangs at once (1). WATCH_PARTS names some of `hangs digests overhead`. With HEWN_LIBCUDA and HEWN_SIM_HANG=1 it runs on
# the simulator. Leaves its logs and table.md in $BUILD/watch-gpu.
set -u
out=$BUILD/watch-gpu
hewn=$BUILD/hewn
after=${WATCH_AFTER:-2}
limit=${WATCH_LIMIT:-30}
parts=${WATCH_PARTS:-hangs digests overhead}
bad=0
rm -rf "$out"
mkdir -p "$out"
if ! "$hewn" info 2>/dev/null | head -n 1 | grep '^driver: ' | grep -qv 'no GPU here'; then
    echo 'SKIP hewn watch on a GPU: none answers here (HEWN_LIBCUDA names another driver)'
    exit 0
fi

# hang NAME OBJECT PROGRAM…: one row of the table in NAME.row; OBJECT must be named.
hang() {
    name=$1 object=$2 log=$out/$1.log
    shift 2
    timeout -k 2 "$limit" "$hewn" watch --after "$after" --report "$out/$name.json" "$@" >"$log" 2>&1
    status=$?
    seconds=$(sed -n 's/^hewn watch: .* hangs: for \([0-9.]*\) s .*/\1/p' "$log" | head -n 1)
    next=$(timeout -k 2 "$limit" "$hewn" run "$SRC/tests/zoo/ok-many-phases.ptx" 2>&1 | grep -c 'right in 1 of 1')
    said=$(sed -n '/ hangs: /{n;s/^  //;s/\.\( .*\)*$//p;q;}' "$log")
    verdict=named
    awk "BEGIN { exit !(${seconds:-1000} <= $after + 1) }" || verdict="not in time"
    printf '%s\n' "$said" | grep -q -- "$object" || verdict="another barrier"
    [ "$status" = 1 ] || verdict="status $status"
    [ "$next" = 1 ] || verdict="$verdict; the next process fails"
    printf '| %s | %s | %s | %s |\n' "$name" "$verdict" "${seconds:--}" "$said" | tee "$out/$name.row"
}

# start NAME OBJECT PROGRAM…: the same beside up to WATCH_JOBS - 1 others.
started=0
start() {
    case $1 in *${WATCH_ONLY:-}*) ;; *) return ;; esac
    [ $((started % ${WATCH_JOBS:-1})) = 0 ] && wait
    started=$((started + 1))
    hang "$@" &
}

hangs() {
    printf '| hang | verdict | after, seconds | said |\n|---|---|---|---|\n' | tee "$out/table.md"
    while read -r case object; do
        start "$case" "$object" "$hewn" run "$SRC/tests/zoo/$case.ptx"
    done <"$out/cases"
    # One arrival more than ever comes, on the barriers that free the slots of a ring.
    more='s/\(mbarrier\.init[^,]*%empty_s[^,]*, *\)\([0-9]*\);/\1(\2 + 1);/'
    sed "$more" "$BUILD/modules/sm_90a/gemm_bf16_f32.ptx" >"$out/product.ptx"
    start product empty_bar "${PYTHON:-python3}" "$SRC/tests/driver/gemm_ctypes.py" --ptx "$out/product.ptx" \
        --size 2000x3000x700 --batch 1 "$BUILD/modules/sm_90a/gemm_bf16_f32.json"
    attention=attention_bf16_192_128
    { cat "$SRC/tests/mutate/sm_90a-$attention.run" && sed "/%empty_s\], 2;/$more" "$BUILD/modules/sm_90a/$attention.ptx"; } >"$out/attention.ptx"
    start attention empty_bar "$hewn" run "$out/attention.ptx"
    wait
    cat "$out"/*.row >>"$out/table.md"
    bad=$((bad + $(cat "$out"/*.row | grep -vc '^| [^|]* | named |')))
}
cat >"$out/cases" <<'CASES'
01-arrival-count ready
03-barrier-in-branch barrier 0
04-advance-skipped full
05-one-k-tile-less empty
06-same-parity empty
09-no-copy-targets-it full_v
12-wrong-parity ready
17-ghost-tiles empty
35-warps-fewer ready
flashinfer-2996 barrier 0
mla-odd-blocks barrier 1
more-bytes-missing full
more-clock-flag memory
more-cycle ping
more-partner-left barrier 1
triton-9456 the cluster barrier
CASES
# Kernels that do not hang: the recorded digests, then times.
digests() {
    for t in gemm attention; do
        "$hewn" watch --after 60 "$BUILD/tests/$t" ${WATCH_SHARE:+--share "$WATCH_SHARE"} \
            --digests "$SRC/tests/golden/results-$t.txt" >"$out/$t.log" 2>&1 || bad=$((bad + 1))
        grep -v '^SKIP' "$out/$t.log" | tail -n 2
    done
}
overhead() {
    "$BUILD/tests/watch_times" >"$out/plain" && "$hewn" watch "$BUILD/tests/watch_times" >"$out/watched" 2>"$out/overhead.log" || bad=$((bad + 1))
    grep '^hewn watch' "$out/overhead.log"
    paste "$out/plain" "$out/watched" | awk -F '\t' '{ printf "%s: %s, watched %s, %.2f times as long\n", $1, $2, $4, $4 / $2 }'
}
for part in $parts; do $part; done
printf 'watch-gpu: %d wrong; the table is in %s\n' "$bad" "$out/table.md"
[ "$bad" = 0 ]
