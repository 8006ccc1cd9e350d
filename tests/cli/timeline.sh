#!/bin/sh
# The timeline: what HEWN_SIM_TRACE writes is JSON, its shares add up, it does not depend on host threads,
# and `hewn timeline` draws it and refuses what is no trace.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/timeline
rm -rf "$work"
mkdir -p "$work"
hewn=$BUILD/hewn
out=$work/out
trace() { HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=$1 HEWN_SIM_THREADS=$2 HEWN_SIM_TRACE=$3 "$hewn" demo gemm -o "$work/demo" >"$out" 2>&1; }
share() { sed -n "s/.*\"busy $2\":\([0-9.]*\).*/\1/p" "$1"; }

for gpu in h200 b200; do
    json=$work/$gpu.json
    trace $gpu 1 "$json"
    status "a product with a trace ($gpu)" 0 $?
    trace $gpu 2 "$work/again.json"
    if cmp -s "$json" "$work/again.json"; then ok; else fail "$gpu: the trace depends on host threads"; fi
    want "$gpu: the launch is summed up" '"name":"launch","args":{"launch":1,"kernel":"hewn_gemm' "$json"
    want "$gpu: a track a role" '"name":"thread_name","args":{"name":"producer (warp' "$json"
    want "$gpu: waits" '"cat":"wait".*"name":"wait full_bar\[0\]","args":{"line":' "$json"
    want "$gpu: phases" '"cat":"phase"' "$json"
    busy=$(share "$json" "tensor cores")
    if awk "BEGIN { exit !($busy > 0.05 && $busy <= 1) }"; then ok; else fail "$gpu: tensor cores busy $busy"; fi
    # What the tensor cores are not busy they are idle for one reason or another.
    sum=$(grep '"name":"launch"' "$json" | grep -o '"[^"]*":[0-9.]*' |
        sed -n 's/^"\(busy tensor cores\|idle [^"]*\)"://p' | awk '{ s += $1 } END { print s }')
    if awk "BEGIN { exit !($sum > 0.995 && $sum < 1.005) }"; then ok; else fail "$gpu: busy and idle add up to $sum"; fi
    "$hewn" timeline "$json" -o "$work/$gpu.svg" >"$out" 2>&1
    status "hewn timeline ($gpu)" 0 $?
    want "hewn timeline says what binds ($gpu)" "us on [0-9]* SMs: .*tensor cores busy" "$out"
    want "hewn timeline lists the idle time ($gpu)" "copies into shared memory" "$out"
    want "the picture has the roles ($gpu)" ">producer (warp" "$work/$gpu.svg"
done

if [ -n "$PYTHON" ]; then
    "$PYTHON" - "$work" >"$out" 2>&1 <<'END'
import json, sys, xml.dom.minidom
for gpu in ("h200", "b200"):
    events = json.load(open(f"{sys.argv[1]}/{gpu}.json"))["traceEvents"]
    assert all(e["dur"] >= 0 for e in events if e["ph"] == "X"), "a slice that ends before it begins"
    last = {}
    for e in events:  # slices of a warp or a barrier follow one another
        if e["ph"] == "X" and (e["tid"] < 100 or e["tid"] >= 1000):
            key = e["pid"], e["tid"]
            assert e["ts"] >= last.get(key, 0) - 0.002, (key, e)
            last[key] = e["ts"] + (e["dur"] if e["cat"] != "issue" else 0)
    xml.dom.minidom.parse(f"{sys.argv[1]}/{gpu}.svg")
END
    status "traces are JSON in order, pictures XML: $(tail -n 1 "$out")" 0 $?
else
    skip "no Python: the trace is not parsed as JSON"
fi

# What `make account` launches, one of each kind.
for words in "gemm bf16 64 256 128" "scaled nv4 2 100 256 128" "grouped bf16 3 100 256 128" "attention 1 2 256 64 causal" \
    "decode e4m3 2 16 256 128" "mla 656 2 16 128" "indexer 2 64 1 256"; do
    # shellcheck disable=SC2086 # words
    HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=b200 HEWN_SIM_TRACE=$work/work.json "$BUILD/tests/account_work" $words >"$out" 2>&1
    status "account_work $words: $(tail -n 1 "$out")" 0 $?
    want "account_work $words" "^[a-z][a-z0-9_]* [1-9][0-9]* [1-9][0-9]* [1-9][0-9]*$" "$out"
done

# A launch that hangs ends in its report, with a trace or without.
HEWN_LIBCUDA=$SIM HEWN_SIM_TRACE=$work/hang.json "$hewn" run "$SRC/tests/zoo/12-wrong-parity.ptx" >"$out" 2>&1
status "a launch that hangs, with a trace" 1 $?
want "a launch that hangs, with a trace" "timed out and was terminated (702)" "$out"

"$hewn" timeline "$work/none.json" >"$out" 2>&1
status "a trace that is not there" 1 $?
printf '{"traceEvents":[]}\n' >"$work/other.json"
"$hewn" timeline "$work/other.json" >"$out" 2>&1
status "a file that is no trace" 1 $?
want "a file that is no trace" "no trace that HEWN_SIM_TRACE wrote" "$out"
"$hewn" timeline "$work/b200.json" --cta 999 >"$out" 2>&1
status "a CTA that the trace lacks" 1 $?
want "a CTA that the trace lacks" "holds no CTA 999 of launch 1" "$out"
"$hewn" timeline "$work/b200.json" --from 3 --to 2 >"$out" 2>&1
status "a picture that ends before it begins" 64 $?
trace b200 1 "$work/no/such/folder.json"
want "a trace that cannot be written" "HEWN_SIM_TRACE=.* cannot be written" "$out"
finish
