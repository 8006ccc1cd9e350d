#!/bin/sh
# The report: its lines against tests/check/report.schema.json, its words in the schema and the zoo, and
# what --suppress does to it.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/report
rm -rf "$work"
mkdir -p "$work"
hewn=$BUILD/hewn out=$work/out report=$work/report.json
zoo=$SRC/tests/zoo schema=$SRC/tests/check/report.schema.json words=$SRC/tools/sim/machine/finding.h
unset HEWN_SIM_QUIET HEWN_SIM_GPU HEWN_SIM_SUPPRESS
export HEWN_LIBCUDA="$SIM" # also where a GPU answers

# equal NAME FILE FILE: the same lines in both
equal() { if diff "$2" "$3" >"$work/diff"; then ok; else fail "$1" "$(cat "$work/diff")"; fi; }

# ---- every word of finding.h: in the schema; those that are said: in the zoo ----
# listed MACRO: its words; listed MACRO TEXT: those whose row contains TEXT
listed() {
    awk -v macro="define $1(X)" -v text="${2:-}" '
        index($0, macro) { on = 1; next }
        on && /^ *X\(/ { split($0, part, "\""); word = part[2] }
        on && index($0, text) { print word }
        on && !/\\$/ { exit }' "$words" | sort -u
}
in_schema() { # NAME: the words of that enum
    awk -v name="\"$1\": { \"enum\"" 'index($0, name) { on = 1; next } on && /\]/ { exit } on' "$schema" |
        grep -o '"[^"]*"' | tr -d '"' | sort
}
listed FINDING_KINDS >"$work/kinds"
listed FINDING_CAUSES >"$work/causes"
sed -n 's/^static const char \*const severity_texts\[\] = {\(.*\)};/\1/p' "$SRC/tools/sim/check/report.c" |
    tr -d '" ' | tr ',' '\n' | sort >"$work/severity"
for list in kinds causes severity; do
    if [ -s "$work/$list" ]; then ok; else fail "finding.h: no $list read"; fi
    in_schema "$(echo $list | sed 's/s$//')" >"$work/$list.schema"
    equal "$list: finding.h (<) and the schema (>) differ" "$work/$list" "$work/$list.schema"
done

# Kinds that nothing emits are those that finding.h calls reserved; all others have a case of the zoo.
sed -n 's/^ *X(\([A-Z_]*\), "\([a-z-]*\)", SEV_.*/\1 \2/p' "$words" | while read -r name text; do
    grep -rqw --include='*.c' "FIND_$name" "$SRC/tools/sim" && echo "$text" >>"$work/emitted" || echo "$text"
done | sort >"$work/silent"
listed FINDING_KINDS Reserved >"$work/reserved"
equal 'kinds that nothing emits (<) and those that finding.h calls reserved (>) differ' "$work/silent" "$work/reserved"
grep -ho 'want \(error\|warning\|advice\) [a-z-]*' "$zoo"/*.ptx | sed 's/.* //' | sort -u >"$work/kinds.zoo"
sort "$work/emitted" | comm -23 - "$work/kinds.zoo" >"$work/missing"
if [ -s "$work/missing" ]; then fail 'kinds without a case in tests/zoo' "$(cat "$work/missing")"; else ok; fi
grep -ho 'want error deadlock [a-z-]*' "$zoo"/*.ptx | sed 's/.* //' | sort -u >"$work/causes.zoo"
grep . "$work/causes" | comm -23 - "$work/causes.zoo" >"$work/missing"
if [ -s "$work/missing" ]; then fail 'causes without a case in tests/zoo' "$(cat "$work/missing")"; else ok; fi

# ---- advice about a kernel that is launched twice: printed once, in the JSON report twice ----
sed "s|^//@ run: block 32.*|&; launch; launch|; s|\"zoo.inc\"|\"$(cd "$zoo" && pwd)/zoo.inc\"|" "$zoo/42-no-overlap.ptx" >"$work/twice.ptx"
"$hewn" run "$work/twice.ptx" --report "$report" >"$out" 2>&1
status 'advice, launched twice' 0 $?
status 'advice, printed' 1 "$(grep -c 'advice: serialised' "$out")"
status 'advice, in JSON' 2 "$(grep -c '"kind":"serialised"' "$report")"

# ---- suppressions ----
suppressed() { # STATUS ARGS…: two runs of a race, one under twenty seeds would do the same
    want_status=$1
    shift
    rm -f "$report"
    timeout 60 "$hewn" run "$zoo/36-no-proxy-fence.ptx" --report "$report" "$@" >"$out" 2>&1
    status "suppress: $*" "$want_status" $?
}
line=$(grep -n '// zoo: here' "$zoo/36-no-proxy-fence.ptx" | cut -d: -f1 | tail -n 1)
suppressed 1
line=$(sed -n 's/.*"kind":"proxy".*36-no-proxy-fence.ptx","line":\([0-9]*\),"launch".*/\1/p' "$report")
for rule in proxy proxy:36-no-proxy-fence.ptx "proxy:zoo/36-no-proxy-fence.ptx:$line"; do
    suppressed 0 --suppress "$rule"
    want "$rule: the text says so" "^  suppressed by $rule: 1 finding\$" "$out"
    want "$rule: the finding is listed" "\"kind\":\"proxy\".*,\"suppressed\":\"$rule\"}\$" "$report"
    want "$rule: the verdict" '^{"verdict":"clean","kernel":"zoo","findings":0,"suppressed":1,"basis":"proved"}$' "$report"
done
for rule in race proxy:no-proxy-fence.ptx "proxy:36-no-proxy-fence.ptx:$((line + 1))"; do
    suppressed 1 --suppress "$rule"
    if grep -q suppressed "$report" "$out"; then fail "$rule suppresses what it does not name"; else ok; fi
done
printf '# one that we know\nrace:x.ptx:7\n proxy # all\n' >"$work/rules"
suppressed 0 --suppress race --suppress "@$work/rules"
want 'rules of a file' '^  suppressed by proxy: 1 finding$' "$out"
suppressed 0 --schedules 2 --suppress proxy
want 'under two seeds' '^  suppressed by proxy: 1 finding$' "$out"
want 'under two seeds: the verdict' '2 runs: 2 clean' "$out"
# Seed 3 lets the missing fence take effect: no verdict, but the result is wrong.
suppressed 1 --schedules 3 --suppress proxy
want 'under three seeds: the verdict' '3 runs: 3 clean' "$out"
want 'under three seeds: the result' 'elements are wrong' "$out"
HEWN_SIM_SUPPRESS='race, proxy' suppressed 0
want 'by the environment' '^  suppressed by proxy: 1 finding$' "$out"
for bad in rase 'race:' 'race::3' "@$work/none" unsupported; do
    suppressed 1 --suppress "$bad"
    want "$bad is refused" "HEWN_SIM_SUPPRESS: .*$bad" "$out"
done
rm -f "$report"
for rule in '' "--suppress proxy"; do
    # shellcheck disable=SC2086
    timeout 60 "$hewn" check --gpu h200 --schedules 2 --report "$report" $rule \
        env HEWN_SIM_CHECK=1 "$hewn" run "$zoo/36-no-proxy-fence.ptx" >"$out" 2>&1
    status "hewn check $rule of a race" $((1 - (${#rule} > 0))) $?
done

# ---- the schema ----
if [ -z "$PYTHON" ] || ! "$PYTHON" -c 'import jsonschema; jsonschema.Draft202012Validator' 2>/dev/null; then
    skip "reports against the schema: no Python with jsonschema 4 (PyPI) here"
    finish
    exit
fi
rm -f "$report"
for f in "$zoo"/*.ptx; do timeout 60 "$hewn" run "$f" --json 2>/dev/null; done >"$work/lines"
timeout 60 "$hewn" run "$zoo/36-no-proxy-fence.ptx" --report "$report" --suppress proxy >"$out" 2>&1
timeout 60 "$hewn" check --gpu b200 --schedules 2 --report "$report" "$hewn" demo gemm -o "$work/demo" >"$out" 2>&1
timeout 60 "$hewn" check --gpu h200 --schedules 3 --report "$report" "$BUILD/tests/launch" "$work/none.ptx" >"$out" 2>&1
cat "$report" >>"$work/lines"
"$PYTHON" - "$schema" "$work/lines" >"$out" 2>&1 <<'END'
import json, sys
from jsonschema import Draft202012Validator
schema = json.load(open(sys.argv[1]))
Draft202012Validator.check_schema(schema)
check, bad, seen = Draft202012Validator(schema), 0, {}
for n, line in enumerate(open(sys.argv[2], encoding="utf-8"), 1):
    value = json.loads(line)
    for key in ("severity", "verdict", "run"):
        seen[key] = seen.get(key, 0) + (key in value)
    for error in check.iter_errors(value):
        bad += 1
        print("line %d: %s" % (n, line.strip()), *[e.message for e in error.context or [error]], sep="\n  ")
assert all(seen.values()), seen
# The schema can fail: a finding with a word, a field or a type that is not there.
good = next(json.loads(l) for l in open(sys.argv[2]) if l.startswith('{"severity"'))
for change in ({"kind": "rase"}, {"line": "7"}, {"more": 1}, {"cta": [0, 0]}, {"severity": "fatal"}):
    assert not check.is_valid({**good, **change}), change
assert not check.is_valid({k: v for k, v in good.items() if k != "lane"})
print(seen, "lines,", bad, "bad")
sys.exit(bad > 0)
END
status "lines against the schema: $(tail -n 1 "$out")" 0 $?
finish
