#!/bin/sh
# hewn check --schedules: many seeds, findings folded over them; and one seed, one everything, whatever the
# number of host threads.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/schedules
rm -rf "$work"
mkdir -p "$work"
out=$work/out report=$work/report.json
launch=$BUILD/tests/launch
unset HEWN_SIM_QUIET

# Two warps race for a flag; only where the second comes first does the store of null run. No two CTAs race:
# only one thread of the grid stores the word at the end.
kernel() { # NAME BODY
    cat >"$work/$1.ptx" <<EOT
.version 8.8
.target sm_100f
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<4>;
.shared .align 8 .b64 bar; .shared .align 16 .b8 tile[1024]; .shared .align 4 .b32 flag;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u64 %rd2, 64;
setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 32;
$2
mov.u32 %r7, %ctaid.x; or.b32 %r7, %r7, %r1; setp.eq.u32 %p3, %r7, 0; @%p3 st.global.u32 [%rd1+2048], 7;
ret;
}
EOT
}
kernel race '@%p1 st.shared.u32 [flag], 0; @%p2 st.shared.u32 [flag], 1; bar.sync 0; ld.shared.u32 %r3, [flag];
setp.eq.u32 %p3, %r3, 1; @%p3 bra FINE; st.global.u32 [%rd2], %r1; FINE:'
kernel always 'st.global.u32 [%rd2], %r1;'
kernel unmodelled 'pmevent 3;'
kernel clean ''
# A bulk copy and the cycles until it is seen to have landed, each thread's own word.
kernel bulk '@%p1 mbarrier.init.shared.b64 [bar], 1; @%p1 fence.mbarrier_init.release.cluster; bar.sync 0; mov.u32 %r4, %clock;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1024, [bar];
W: mbarrier.test_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra W;
mov.u32 %r5, %clock; sub.u32 %r5, %r5, %r4; mov.u32 %r6, %ctaid.x; mad.lo.u32 %r6, %r6, 64, %r1;
mul.wide.u32 %rd3, %r6, 4; add.u64 %rd3, %rd3, %rd1; st.global.u32 [%rd3+4096], %r5;'

checked() { # STATUS SCHEDULES NAME ARGS…
    want_status=$1 schedules=$2 name=$3
    shift 3
    rm -f "$report"
    timeout 120 "$BUILD/hewn" check --gpu b200 --schedules "$schedules" --report "$report" \
        "$launch" "$work/$name.ptx" "$@" >"$out" 2>&1
    status "$schedules schedules of $name" "$want_status" $?
}
checked 1 12 race 1 64
want 'race: some seeds, not all' 'under [1-9]* *[0-9]* *of 12 seeds: [0-9, ]*$' "$out"
want 'race: the seeds in the report' '"kind":"oob".*"seeds":\[[0-9,]*\]}$' "$report"
if [ "$(grep -c '"kind":"oob"' "$report")" = 1 ]; then ok; else fail 'race: equal findings are not folded' "$(cat "$report")"; fi
if [ "$(grep -c '^{"verdict":"error","kernel":"k","findings":[0-9]*,"basis":"proved"}$' "$report")" = 1 ]; then ok; else fail 'race: not one verdict' "$(cat "$report")"; fi
want 'race: the closing lines' '^hewn check: 12 schedules, seeds 1 to 12$' "$out"
HEWN_SIM_SEED=100 checked 1 3 always
want 'always: under every seed' 'under every seed' "$out"
want 'always: seeds from HEWN_SIM_SEED on' '"seeds":\[100,101,102\]' "$report"
checked 2 2 unmodelled
checked 0 3 clean
want 'clean: one verdict' '^{"verdict":"clean","kernel":"k","findings":0,"basis":"proved"}$' "$report"
checked 0 3 bulk
want 'bulk: explored, how far, and why' '"findings":0,"basis":"explored","schedules":3,"why":"ptx input:[0-9]*: ' "$report"
want 'bulk: in words' '^hewn check: 1 explored under these seeds: ptx input:[0-9]*: ' "$out"
"$BUILD/hewn" check --schedules 2 sh -c 'test $HEWN_SIM_SEED = 1 || exit 9' >"$out" 2>&1
status 'a program that fails under its second seed' 9 $?
want 'a program that fails under its second seed' 'seed 2: program exit 9' "$out"
for bad in 0 x -1; do
    "$BUILD/hewn" check --schedules $bad true >"$out" 2>&1
    status "--schedules $bad" 64 $?
done

# The extremes: seed 2 completes copies as early as legal, seed 3 as late, both beyond seed 1.
once() { # SEED THREADS NAME ARGS…: what it printed, its memory's hash and its report
    rm -f "$report"
    seed=$1 threads=$2 name=$3
    shift 3
    HEWN_SIM_SEED=$seed HEWN_SIM_THREADS=$threads HEWN_SIM_REPORT=$report HEWN_SIM_QUIET=1 HEWN_LIBCUDA=$SIM \
        timeout 60 "$launch" "$work/$name.ptx" "$@" 2>&1
    cat "$report"
}
for seed in 1 2 3; do once $seed 1 bulk 1 32 | head -n 1; done >"$out"
if [ "$(sort -u "$out" | grep -c memory)" = 3 ]; then ok
else fail 'seeds 1, 2 and 3 complete a copy at the same time' "$(cat "$out")"; fi

for name in race always bulk; do
    for seed in 1 2 3 4; do
        one=$(once $seed 1 $name 24 64) two=$(once $seed 2 $name 24 64)
        if [ "$one" = "$two" ]; then ok; else fail "$name, seed $seed: one thread and two differ" "$one" "$two"; fi
    done
done
for gpu in h200 b200; do
    for seed in 1 2 3 4; do
        for threads in 1 2; do
            rm -f "$report"
            HEWN_SIM_GPU=$gpu HEWN_SIM_SEED=$seed HEWN_SIM_THREADS=$threads HEWN_SIM_REPORT=$report HEWN_LIBCUDA=$SIM \
                "$BUILD/hewn" demo gemm -o "$work/demo$threads" >"$out" 2>&1
            status "demo on $gpu, seed $seed" 0 $?
            cp "$report" "$work/demo$threads/report"
        done
        if cmp "$work/demo1/c.npy" "$work/demo2/c.npy" && cmp "$work/demo1/report" "$work/demo2/report"; then ok
        else fail "demo on $gpu, seed $seed: one thread and two differ"; fi
    done
done

# CTAs that meet between two instructions: no seed need find it, some of twenty must.
meets() { # STATUS OPTIONS TEXT
    HEWN_LIBCUDA=$SIM timeout 60 "$BUILD/hewn" run "$SRC/tests/check/meets.ptx" --gpu h200 --schedules 20 $2 >"$out" 2>&1
    status "meets $2" "$1" $?
    want "meets $2" "$3" "$out"
}
meets 0 '' '20 clean, 0 review, 0 incomplete, 0 error'
meets 1 -DLATE 'under [1-9]* *[0-9]* *of 20 seeds'
meets 1 -DRESET 'under [1-9]* *[0-9]* *of 20 seeds'
want 'meets -DRESET: told at the poll' 'at ld.acquire.gpu.global.u32' "$out"

# Seeds of 3 modulo 4: a fence that is missing has its effect, and the run goes wrong; the repaired twin does not.
late() { # CASE SEED STATUS OPTIONS TEXT…
    what="$1 $4 with seed $2"
    HEWN_LIBCUDA=$SIM timeout 60 "$BUILD/hewn" run "$SRC/tests/zoo/$1.ptx" --seed "$2" $4 >"$out" 2>&1
    status "$what" "$3" $?
    shift 4
    for text; do want "$what" "$text" "$out"; done
}
right='results right in 1 of 1 runs' wrong='results right in 0 of 1 runs'
for case in 36-no-proxy-fence tilelang-2634 flashkda-24 refill-arrive-narrow; do
    late $case 2 1 '' 'error: proxy' "$right"
    for seed in 3 7; do
        late $case $seed 1 '' 'error: proxy: bytes of before' "$wrong" "with HEWN_SIM_SEED=$seed"
        late $case $seed 0 -DFIXED "$right"
    done
done
late grid-proxy-fence 2 1 '' 'error: proxy' "$right"
late grid-proxy-fence 3 1 '' 'error: proxy: bytes of before' 'bytes of global memory' "$wrong" 'with HEWN_SIM_SEED=3'
late grid-proxy-fence 3 0 -DFIXED "$right"
late map-release-missing 2 1 '' 'error: tensormap-proxy' "$right"
for options in '' -DACQUIRE; do
    late map-release-missing 3 1 "$options" 'error: tensormap-proxy: map of before' 'error: tma-desc' 'with HEWN_SIM_SEED=3'
done
late map-release-missing 3 0 -DFIXED "$right"
late cutlass-own-copies 2 1 '' 'error: race' "$right"
late cutlass-own-copies 3 1 '' 'error: race: bytes of before' "$wrong" 'with HEWN_SIM_SEED=3'
late cutlass-own-copies 3 0 -DFIXED "$right"
late triton-11498 2 1 '' 'error: mbarrier-init-order' "$right"
late triton-11498 3 1 '' 'error: mbarrier-init-order: one not there yet' 'error: deadlock' 'with HEWN_SIM_SEED=3'
late triton-11498 3 0 -DFIXED "$right"

# A lock whose reader withdraws and tries again for ever: named, though memory keeps changing.
for options in '' -DFIXED; do
    HEWN_LIBCUDA=$SIM timeout 120 "$BUILD/hewn" run "$SRC/tests/check/withdrawn.ptx" --gpu h200 $options >"$out" 2>&1
    if [ "$options" ]; then status 'a lock that is let go' 0 $?; else status 'a lock that is withdrawn' 1 $?; want 'a lock that is withdrawn' 'error: deadlock (cycle)' "$out"; fi
done
finish
