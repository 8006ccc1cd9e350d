#!/bin/sh
# What programs outside the tree rely on: the simulator's environment, its error codes, the findings and
# verdicts in the report, the exit statuses of hewn check, and results that do not depend on threads.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/contract
rm -rf "$work"
mkdir -p "$work"
out=$work/out report=$work/report.json
launch=$BUILD/tests/launch

# ptx NAME DECLARATIONS BODY: a text with the entry k(out); out is in %rd1, %tid.x in %r1, %ctaid.x in %r2
ptx() {
    cat >"$work/$1.ptx" <<EOF
.version 8.8
.target sm_100f
.address_size 64
$2
.visible .entry k(.param .u64 out)
{
.reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<4>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
$3
ret;
}
EOF
}
# launch_on NAME ARGS…: the report and the output are fresh afterwards
launch_on() {
    name=$1
    shift
    rm -f "$report"
    HEWN_LIBCUDA=$SIM HEWN_SIM_REPORT=${to:-$report} timeout 60 "$launch" "$work/$name.ptx" "$@" >"$out" 2>&1
}
# comes_to NAME TEXT KIND VERDICT: the launch prints TEXT; the report holds KIND (- none) and VERDICT
comes_to() {
    launch_on "$1"
    want "$1" "$2" "$out"
    if [ "$3" != - ]; then want "$1: finding" "\"kind\":\"$3\",.*\"line\":[1-9]" "$report"; fi
    if [ "$4" != - ]; then want "$1: verdict" "^{\"verdict\":\"$4\",\"kernel\":\"k\",\"findings\":[0-9]*,\"basis\":" "$report"; fi
}

ptx clean '' 'st.global.u32 [%rd1], %r1;'
ptx oob '' 'mov.u64 %rd2, 64; st.global.u32 [%rd2], %r1;'
ptx misaligned '' 'add.u64 %rd2, %rd1, 1; st.global.u32 [%rd2], %r1;'
ptx trap '' 'trap;'
ptx assert '.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);' '
{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
st.param.b64 [a], %rd1; st.param.b64 [b], %rd1; st.param.b32 [c], %r1; st.param.b64 [d], %rd1;
st.param.b64 [e], %rd1; call.uni __assertfail, (a, b, c, d, e); }'
ptx othercall '.extern .func __assertfailure(.param .b64 a);' '{ .param .b64 a; call.uni __assertfailure, (a); }'
ptx leak '.shared .align 16 .b32 base[4];' \
    'tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32;'
ptx partial '' 'setp.lt.u32 %p1, %r1, 5; @%p1 bar.warp.sync 0xffffffff; @%p1 redux.sync.add.u32 %r3, %r1, 0xffffffff;'
ptx hang '.shared .align 8 .b64 full_bar;' 'setp.ne.u32 %p1, %r1, 0; @!%p1 mbarrier.init.shared.b64 [full_bar], 2;
bar.sync 0; @!%p1 mbarrier.arrive.shared.b64 _, [full_bar];
W: mbarrier.try_wait.parity.shared.b64 %p2, [full_bar], 0; @!%p2 bra W;'
ptx unmodelled '' 'pmevent 3;'
# malloc and free of device code, and the number of arguments that vprintf returns
heap='.extern .func (.param .b64 r) malloc(.param .b64 n); .extern .func free(.param .b64 p);
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[9] = {37, 100, 32, 37, 42, 100, 32, 120, 0};' # "%d %*d x"
get='{ .param .b64 n, r; st.param.b64 [n], 64; call.uni (r), malloc, (n); ld.param.b64 %rd2, [r]; }'
put='{ .param .b64 p; st.param.b64 [p], %rd2; call.uni free, (p); }'
ptx heap "$heap" "$get st.u32 [%rd2+60], %r1; ld.u32 %r3, [%rd2+60]; setp.ne.u32 %p1, %r3, %r1; @%p1 trap; $put"
ptx heapend "$heap" "$get st.u32 [%rd2+64], %r1;"
ptx heaptwice "$heap" "$get $put $put"
ptx heapforeign "$heap" "mov.u64 %rd2, %rd1; $put"
ptx parsed "$heap" '.local .align 8 .b8 list[16]; mov.u64 %rd2, list; cvta.local.u64 %rd2, %rd2; st.u32 [%rd2], 4;
st.u32 [%rd2+4], 3; st.u32 [%rd2+8], 5; mov.u64 %rd3, text; cvta.global.u64 %rd3, %rd3;
{ .param .b64 f, a; .param .b32 r; st.param.b64 [f], %rd3; st.param.b64 [a], %rd2; call.uni (r), vprintf, (f, a);
ld.param.b32 %r3, [r]; } setp.ne.u32 %p1, %r3, 3; @%p1 trap;'
ptx broken '' 'mov.u32 %nothing, 1;'
sed 's/^\.target.*/.target sm_90a/' "$work/clean.ptx" >"$work/elsewhere.ptx"
sed 's/^\.version.*/.version 99.0/' "$work/clean.ptx" >"$work/newer.ptx"
echo 'no module' >"$work/unknown.ptx"

comes_to clean 'launch 0 sync 0 again 0 memory' - clean
comes_to oob 'launch 0 sync 700 again 700' oob error
comes_to misaligned 'launch 0 sync 716 again 716' misaligned error
comes_to trap 'launch 0 sync 719 again 719' trap error
comes_to assert 'launch 0 sync 710 again 710' trap error
comes_to leak 'launch 0 sync 721 again 721' tmem-leak error
comes_to hang 'launch 0 sync 702 again 702' deadlock error
want 'hang: cause' '"cause":"arrival-count"' "$report"
want 'hang: barrier' '"object":"full_bar' "$report"
want 'hang: arrivals' '1 of 2 arrivals' "$report"
comes_to unmodelled 'load 0 launch 801 sync 0 again 0' unsupported incomplete
want 'unmodelled: the instruction' '"instr":"pmevent 3"' "$report"
comes_to othercall 'load 0 launch 801 sync 0 again 0' unsupported incomplete
comes_to heap 'launch 0 sync 0 again 0' - clean
comes_to heapend 'launch 0 sync 700 again 700' oob error
comes_to heaptwice 'launch 0 sync 700 again 700' use-after-free error
comes_to heapforeign 'launch 0 sync 700 again 700' use-after-free error
comes_to parsed 'sync 0 again 0' - clean
comes_to broken 'load 218' - -
comes_to elsewhere 'load 218' - -
comes_to newer 'load 222' - -
comes_to unknown 'load 200' - -
launch_on clean 0
want 'no CTAs' 'launch 1 sync 0' "$out"
launch_on clean 1 1025
want 'too many threads' 'launch 1 sync 0' "$out"

# How the verdict was reached: proved where the order cannot matter, else sampled, with the line that says why.
# reached BASIS NAME [WHY] -- DECLARATIONS BODY, two warps a CTA, two CTAs
reached() {
    basis=$1 name=$2 why=$3
    ptx "basis-$name" "$4" "$5"
    launch_on "basis-$name" 2 64
    case $basis in
    proved) want "$name: proved" '"basis":"proved"}$' "$report" ;;
    *) want "$name: sampled" "\"basis\":\"sampled\",\"why\":\"ptx input:[0-9]*: $why" "$report" ;;
    esac
}
reached proved plain '' '' 'bar.sync 0; red.global.add.u32 [%rd1+4], 1;'
reached sampled atom 'what this reads' '' 'atom.global.add.u32 %r3, [%rd1+4], 1;'
reached sampled flag 'what this reads' '' 'ld.relaxed.gpu.global.u32 %r3, [%rd1+4];'
reached sampled clock 'what this returns' '' 'mov.u32 %r3, %clock;'
reached sampled columns 'which CTA of an SM' '.shared .align 16 .b32 base[4];' 'setp.gt.u32 %p1, %r1, 31; @%p1 bra END;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32; ld.shared.u32 %r3, [base];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32; END:'
# A lane writes what the others read next, in step.
reached sampled lanes 'lanes of a warp are in order' '.shared .b32 word[2];' 'shr.u32 %r2, %r1, 5; mov.u32 %r3, word; mad.lo.u32 %r2, %r2, 4, %r3;
and.b32 %r3, %r1, 31; setp.eq.u32 %p1, %r3, 0; @%p1 st.shared.u32 [%r2], %r1; ld.shared.u32 %r3, [%r2];'
want 'lanes: the idiom is counted' '"findings":0,"idioms":1,' "$report"
# Warp 0 stores 0 and then 1 by one instruction, the other one 1, as is there: 0 in another order. Both are in one CTA.
reached sampled again 'this stores what is there' '.shared .b32 found;' 'setp.gt.u32 %p1, %r1, 31; selp.b32 %r3, 1, 0, %p1;
and.b32 %r2, %r1, 31; setp.ne.u32 %p1, %r2, 0; @%p1 bra DONE; NEXT: st.shared.b32 [found], %r3; add.u32 %r3, %r3, 1;
setp.le.u32 %p1, %r3, 1; @%p1 bra NEXT; DONE: bar.sync 0; ld.shared.b32 %r3, [found];'
# A warp that only signals, twice: nothing keeps its second signal behind the first generation.
pair='setp.gt.u32 %p1, %r1, 31; @%p1 bra WAITS; bar.arrive 1, 64; SECOND bar.arrive 1, 64; bra END;
WAITS: bar.sync 1, 64; BACK bar.sync 1, 64; END:'
reached proved generations '' '' "$(echo "$pair" | sed 's/SECOND//; s/BACK//')"
want 'generations: an error in every order' '"severity":"error","kind":"barrier-id"' "$report"
reached proved generations-kept '' '' "$(echo "$pair" | sed 's/SECOND/bar.sync 2, 64;/; s/BACK/bar.arrive 2, 64;/')"
HEWN_SIM_CHECK=0 launch_on clean
want 'unchecked: sampled' '"basis":"sampled","why":"nothing looked at the order' "$report"

# settings: a bad value is named and fails cuInit; nothing is guessed
refused() { # NAME VALUE
    env "$1=$2" HEWN_LIBCUDA="$SIM" "$launch" "$work/clean.ptx" >"$out" 2>&1
    want "$1='$2'" "hewn-sim: $1=" "$out"
    want "$1='$2'" '^init 100' "$out"
}
for gpu in gtx480 B200; do refused HEWN_SIM_GPU $gpu; done
for sms in 0 1025 -1 many '4 ' ' 4'; do refused HEWN_SIM_SMS "$sms"; done
for seed in -1 ' -1' 18446744073709551616 x; do refused HEWN_SIM_SEED "$seed"; done
for threads in 0 257; do refused HEWN_SIM_THREADS $threads; done
refused HEWN_SIM_CHECK 4
refused HEWN_SIM_STRICT yes
refused HEWN_SIM_QUIET 2
refused HEWN_SIM_HANG 2
refused HEWN_SIM_REPORT /nonexistent/report
if [ -c /dev/full ]; then
    to=/dev/full launch_on clean
    want 'a report that cannot be written' 'hewn-sim: HEWN_SIM_REPORT: /dev/full' "$out"
    "$BUILD/hewn" modules >/dev/full 2>"$out"
    status 'output that cannot be written' 1 $?
else
    skip 'a report that cannot be written: no /dev/full'
fi

# one seed, one result and one report, whatever the number of host threads
ptx order '' 'atom.global.add.u32 %r3, [%rd1], 1; mad.lo.u32 %r4, %r2, 32, %r1; mul.wide.u32 %rd2, %r4, 4;
add.u64 %rd2, %rd2, %rd1; st.global.u32 [%rd2+64], %r3;'
ptx faults '' 'rem.u32 %r3, %r2, 3; setp.eq.u32 %p1, %r3, 2; add.u64 %rd2, %rd1, 1; @%p1 st.global.u32 [%rd2], %r3;'
for name in order faults; do
    for sms in 1 2 3 8; do
        first=
        for threads in 1 2 4; do
            HEWN_SIM_SMS=$sms HEWN_SIM_THREADS=$threads HEWN_SIM_SEED=7 launch_on $name 40
            cat "$report" >>"$out"
            if [ -z "$first" ]; then first=$(cat "$out")
            elif [ "$first" = "$(cat "$out")" ]; then ok
            else fail "$name on $sms SMs: $threads threads and one differ" "$first" "$(cat "$out")"; fi
        done
    done
done

# hewn check: the worst verdict decides, else the program
checked() { # STATUS NAME
    "$BUILD/hewn" check --gpu b200 --report "$report" "$launch" "$work/$2.ptx" >"$out" 2>&1
    status "hewn check of $2" "$1" $?
}
rm -f "$report"
checked 1 oob
checked 2 unmodelled
checked 0 clean
if [ "$(grep -c '^{"verdict"' "$report")" = 3 ]; then ok; else fail "the report is not appended to"; fi
HEWN_SIM_REPORT=$work/mine.json "$BUILD/hewn" check "$launch" "$work/trap.ptx" >"$out" 2>&1
status 'hewn check with HEWN_SIM_REPORT' 1 $?
want 'hewn check with HEWN_SIM_REPORT' '"kind":"trap"' "$work/mine.json"
if "$PYTHON" -c 'import json' 2>/dev/null; then
    if "$PYTHON" - "$report" >"$out" 2>&1 <<'EOF'
import json, sys
finding = {'severity': str, 'kind': str, 'cause': str, 'kernel': str, 'file': str, 'line': int,
           'launch': int, 'cta': list, 'warp': int, 'lane': int, 'instr': str, 'object': str,
           'message': str, 'related': list}
for line in open(sys.argv[1]):
    entry = json.loads(line)
    if 'verdict' in entry:
        assert set(entry) - {'why', 'suppressed', 'schedules', 'idioms'} == {'verdict', 'kernel', 'findings', 'basis'}, line
        assert entry['verdict'] in ('clean', 'review', 'incomplete', 'error'), line
    else:
        for key, kind in finding.items():
            assert isinstance(entry[key], kind), (key, line)
        assert entry['severity'] in ('error', 'warning', 'advice') and len(entry['cta']) == 3, line
EOF
    then ok; else fail 'the report is not what the design says' "$(cat "$out")"; fi
else
    skip 'the JSON of the report: no Python'
fi
finish
