#!/bin/sh
# A copy of each product kernel whose empty-slot barrier waits for one arrival more than ever comes:
# hewn check must end soon, fail, and name barrier, phase, waiting role, missing arrivals and line.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/hang
mkdir -p "$work"
if ! "$PYTHON" -c 'import ctypes' 2>/dev/null; then
    skip "a kernel that hangs: no Python with ctypes to launch it"
    finish
    exit
fi
case $MODE in rel | dbg) ;; *)
    skip "a kernel that hangs: Python cannot load the simulator of MODE=$MODE"
    finish
    exit
    ;;
esac

hang() { # GPU TARGET
    good=$BUILD/modules/$2/gemm_bf16_f32.ptx
    bad=$work/$2.ptx
    out=$work/$2.out
    report=$work/$2.json
    rm -f "$report"
    # the init of empty_bar: one arrival more
    sed 's/\(mbarrier\.init[^,]*%empty_s[^,]*, *\)\([0-9]*\)/\1(\2 + 1)/' "$good" >"$bad"
    if cmp -s "$good" "$bad"; then fail "$2: the text has no init of the empty barriers to break"; return; fi
    line=$(grep -n 'MBAR_INIT(%empty_s' "$SRC/ptx/$2/gemm.ptx" | cut -d: -f1)
    timeout 60 "$BUILD/hewn" check --gpu "$1" --report "$report" "$PYTHON" "$SRC/tests/driver/gemm_ctypes.py" \
        --ptx "$bad" --size 200x300x700 --batch 1 "$BUILD/modules/$2/gemm_bf16_f32.json" >"$out" 2>&1
    status "$2: hewn check of a kernel that hangs" 1 $?
    want "$2: kind and cause" '"kind":"deadlock","cause":"arrival-count"' "$report"
    want "$2: the barrier by name" '"object":"empty_bar\[[0-3]\]"' "$report"
    want "$2: the line of the init" "\"file\":\"ptx/$2/gemm.ptx\",\"line\":$line," "$report"
    want "$2: the waiting role" 'producer' "$report"
    want "$2: the phase" 'phase' "$report"
    want "$2: the missing arrivals" 'of [0-9]* arrivals' "$report"
    want "$2: verdict" '{"verdict":"error"' "$report"
    want "$2: the program sees a launch time-out" '702' "$out"
}
unset HEWN_SIM_QUIET
hang h200 sm_90a
hang b200 sm_100f
finish
