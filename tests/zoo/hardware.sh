#!/bin/sh
# The Hopper part of the zoo on a GPU: every case and its repaired twin, plain and under each tool of
# compute-sanitizer, a process of its own each, killed when its time is over (a kernel ends with its
# process). `make zoo-gpu`; hardware.md is what it said on an H200.
#
#     BUILD=… SRC=… sh tests/zoo/hardware.sh
#
# ZOO_JOBS processes at once (4), ZOO_PLAIN and ZOO_LIMIT seconds for a plain run and for one under a tool
# (6, 20), ZOO_ONLY a pattern of names, ZOO_TOOLS some of the tools, ZOO_TWINS `bug`, `fixed` or both, SANITIZER
# the program. Nothing starts later than ZOO_SECONDS after the
# beginning (900): what was not asked then reads "not asked". Leaves in $BUILD/zoo-gpu a log for each
# run, results.tsv (case, twin, tool, said, seconds) and table.md.
set -u
export SRC BUILD
out=$BUILD/zoo-gpu
hewn=$BUILD/hewn
SANITIZER=${SANITIZER:-$(command -v compute-sanitizer || echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")}
tools=${ZOO_TOOLS:-memcheck racecheck synccheck initcheck}
twins=${ZOO_TWINS:-bug fixed}
export SANITIZER
unset HEWN_SIM_QUIET HEWN_SIM_CHECK

# What a log says in few words: the tool's first complaint, or what hewn run said.
summary() { # LOG STATUS TOOL
    complaint=$(grep -m 1 -E '^=+ *(Error|Warning|Invalid|Program hit|Barrier error|Uninit|Race|Potential|Illegal|Hardware|Misaligned|Fatal|Missing|Divergent|Warpgroup|Internal|Unknown|Trace)' "$1" |
        sed -E 's/^=+ *//; s/0x[0-9a-f]{6,}/0x…/g; s/\|/or/g')
    where=$(grep -m 1 -oE 'at zoo(\(\))?\+0x[0-9a-f]+|at zoo[^ ]*' "$1")
    case $complaint$where in *"$where"*"$where") where= ;; esac
    if [ "$3" != plain ]; then
        printf '%s' "${complaint:-nothing}${where:+, $where}"
    elif [ "$2" = 124 ] || [ "$2" = 137 ]; then
        printf 'hang'
    elif grep -q 'results right in 1 of 1' "$1"; then
        printf 'right'
    elif grep -q 'elements are wrong' "$1"; then
        printf 'wrong: %s' "$(sed -n 's/^.*: \([0-9]* of [0-9]* elements\) are wrong.*/\1/p' "$1" | head -n 1)"
    elif grep -q '^hewn: the launch failed' "$1"; then
        sed -n 's/^hewn: the launch failed: //p' "$1" | head -n 1 | tr -d '\n'
    elif grep -q '^hewn: ' "$1"; then
        printf 'refused: %s' "$(sed -n 's/^hewn: //p' "$1" | head -n 1 | cut -c 1-90)"
    else
        printf 'status %s' "$2"
    fi
}

if [ "${1:-}" = one ]; then # CASE TWIN TOOL
    log=$out/$2.$3.$4.log
    [ "$(date +%s)" -lt "$ZOO_END" ] || exit 0
    define='' limit=${ZOO_LIMIT:-20}
    [ "$3" = fixed ] && define=-DFIXED
    set -- "$2" "$3" "$4" "$hewn" run "$SRC/tests/zoo/$2.ptx" $define
    start=$(date +%s%N)
    case $3 in
    plain) limit=${ZOO_PLAIN:-6} kill=TERM ;;
    *) kill=INT ;; # as a user would stop it: the tool may still say what it saw
    esac
    (
        tool=$3 && shift 3
        [ "$tool" = plain ] || set -- "$SANITIZER" --tool "$tool" --target-processes all --print-limit 3 "$@"
        exec timeout -s $kill -k 2 "$limit" "$@"
    ) >"$log" 2>&1 </dev/null
    status=$?
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$(summary "$log" $status "$3")" \
        $((($(date +%s%N) - start) / 1000000)) >>"$out/results.tsv"
    exit 0
fi

many() { xargs -r -P "${ZOO_JOBS:-4}" -L 1 sh "$SRC/tests/zoo/hardware.sh" one; }
said() { # CASE TWIN TOOL
    text=$(awk -F '\t' -v c="$1" -v t="$2" -v k="$3" '$1 == c && $2 == t && $3 == k {print $4}' "$out/results.tsv")
    printf '%s' "${text:-not asked}"
}
hung() { awk -F '\t' -v want="$1" '$3 == "plain" && ($4 == "hang") == want {print $1, $2}' "$out/results.tsv"; }
under_tools() { # ended|hung TWIN
    for tool in $tools; do sed -n "s/ $2\$/ $2 $tool/p" "$out/$1"; done
}

rm -rf "$out"
mkdir -p "$out"
: >"$out/results.tsv"
ZOO_END=$(($(date +%s) + ${ZOO_SECONDS:-900}))
export ZOO_END
if ! "$hewn" info 2>/dev/null | head -n 1 | grep '^driver: ' | grep -qv 'no GPU here'; then
    echo 'SKIP the zoo on a GPU: none answers here (HEWN_LIBCUDA names another driver)'
    exit 0
fi
for f in "$SRC"/tests/zoo/*${ZOO_ONLY:-}*.ptx; do
    grep -q '^\.target sm_90' "$f" && basename "$f" .ptx
done >"$out/cases"
for twin in $twins; do
    [ "$twin" = fixed ] && legal='^ok-' || legal='^$' # what is legal has no repaired twin
    sed "/$legal/d; s/\$/ $twin plain/" "$out/cases"
done | many
hung 0 >"$out/ended"
hung 1 >"$out/hung"
if [ -x "$SANITIZER" ]; then
    under_tools ended bug | many
    under_tools hung bug | many
    under_tools ended fixed | many
fi

{
    echo '| case | hardware | memcheck | racecheck | synccheck | initcheck | hewn check |'
    echo '|---|---|---|---|---|---|---|'
    for twin in $twins; do
        while read -r case; do
            case $twin$case in fixedok-*) continue ;; esac
            row="| $case$([ "$twin" = fixed ] && echo ', repaired')"
            for tool in plain $tools; do row="$row | $(said "$case" $twin "$tool")"; done
            want=$(sed -n 's/^.*\/\/@ zoo: .*; want //p' "$SRC/tests/zoo/$case.ptx")
            [ "$twin" = fixed ] && want=clean
            echo "$row | $want |"
        done <"$out/cases"
    done
} >"$out/table.md"

# The GPU still answers, and every repaired twin was right on it.
wrong=$(awk -F '\t' '$2 == "fixed" && $3 == "plain" && $4 != "right" {print $1 ": " $4}' "$out/results.tsv")
last=$(timeout 20 "$hewn" run "$SRC/tests/zoo/ok-two-copies.ptx" 2>&1 | grep -c 'right in 1 of 1')
[ -z "$wrong" ] || printf 'FAIL repaired, and not right on this device: %s\n' "$wrong"
[ "$last" = 1 ] || echo 'FAIL the device does not answer after the last run'
printf 'zoo-gpu: %d cases, %d runs, %d hung when run plain; the table is in %s\n' "$(wc -l <"$out/cases")" \
    "$(wc -l <"$out/results.tsv")" "$(grep -c ' bug$' "$out/hung")" "$out/table.md"
[ -z "$wrong" ] && [ "$last" = 1 ]
