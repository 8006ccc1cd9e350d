#!/bin/sh
# The suites under compute-sanitizer, on a GPU alone: every case under memcheck, racecheck and synccheck, a line
# for each tool and suite, "gemm under memcheck: N cases, 0 errors". `make sanitize`; not part of `make check`,
# for a tool makes a launch tens to hundreds of times as slow.
#
#     BUILD=… sh tests/bench/sanitize.sh
#
# SANITIZE_TOOLS some of the tools, SANITIZE_SUITES some of gemm, attention, combine, mla, indexer, topk, grouped,
# serving;
# SANITIZE_TOOLS some of the tools, SANITIZE_SUITES some of gemm, attention, combine, mla, indexer, topk, w4, serving;
# SANITIZE_LIMIT seconds for each of the runs (600), SANITIZE_SHARES processes for each tool on gemm, which has the
# most cases (4), SANITIZER the program. All runs go at once: each is a process that keeps one core busy. Logs are
# left in $BUILD/tests/sanitize.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/lib.sh"
build=${BUILD:-build}
work=$build/tests/sanitize
SANITIZER=${SANITIZER:-$(command -v compute-sanitizer || echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")}
tools=${SANITIZE_TOOLS:-memcheck racecheck synccheck}
suites=${SANITIZE_SUITES:-gemm attention combine mla indexer topk grouped w4 serving}

# synccheck follows 512 mbarriers of a grid unless told; clusters that cut K in parts have more.
options() { [ "$1" != synccheck ] || echo --num-cuda-barriers 4096; }

shares() { [ "$1" = gemm ] && echo "${SANITIZE_SHARES:-4}" || echo 1; }

# Of a tool's logs: cases that passed, and what it counted, in its last line, "ERROR SUMMARY: N errors" or
# "… (N errors, N warnings)". Nothing where a run did not get to its end.
total() { awk -v logs="$1" '{ sum += $1 } END { if (NR == logs) print sum }'; }
errors() {
    for log in "$@"; do
        sed -n 's/^=* *[A-Z]* SUMMARY: .*(\([0-9]*\) error.*/\1/p; s/^=* *ERROR SUMMARY: \([0-9]*\) error.*/\1/p' "$log" | tail -n 1
    done | total $#
}
cases() {
    for log in "$@"; do sed -n 's/^.*: \([0-9]*\) passed, 0 failed, [0-9]* skipped$/\1/p' "$log" | tail -n 1; done | total $#
}

unset HEWN_LIBCUDA
if ! "$build/hewn" info 2>/dev/null | head -n 1 | grep '^driver: ' | grep -qv 'no GPU here'; then
    skip 'no GPU answers here'
elif [ ! -x "$SANITIZER" ]; then
    skip "no compute-sanitizer at $SANITIZER"
else
    rm -rf "$work" && mkdir -p "$work"
    for tool in $tools; do
        for suite in $suites; do
            n=$(shares "$suite") i=0
            while [ "$i" -lt "$n" ]; do
                timeout "${SANITIZE_LIMIT:-600}" "$SANITIZER" --tool "$tool" $(options "$tool") --error-exitcode 9 \
                    "$build/tests/$suite" --share "$i/$n" >"$work/$suite.$tool.$i" 2>&1 &
                i=$((i + 1))
            done
        done
    done
    wait
    for tool in $tools; do
        for suite in $suites; do
            count=$(cases "$work/$suite.$tool".*) found=$(errors "$work/$suite.$tool".*)
            if [ -n "$count" ] && [ "$count" -gt 0 ] && [ "$found" = 0 ]; then
                printf '%s under %s: %s cases, 0 errors\n' "$suite" "$tool" "$count"
                ok
            else
                fail "$suite under $tool: ${found:-unknown} errors" "$(cat "$work/$suite.$tool".* | grep -m 1 -A 6 '^=* *[A-Z][a-z].*')" \
                    "$(tail -q -n 1 "$work/$suite.$tool".*)"
            fi
        done
    done
fi
finish
