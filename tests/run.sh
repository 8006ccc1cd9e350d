#!/bin/sh
# Runs every test and adds up the closing lines. Called by make, which sets BUILD SRC CC PTXAS NM PYTHON
# CUDA_HOME MODE SIM_TESTS; `run.sh check`, `run.sh all`, or `run.sh share` for a part that a sanitised build
# can do in minutes.
#
# Each test program ends with "name on where: N passed, N failed, N skipped". A program that ends
# without such a line, or with a status that contradicts it, counts as one failure.
set -u
suite=${1:-check}
bin=$BUILD/tests
logs=$BUILD/tests/logs
mkdir -p "$logs"
case $BUILD in /*) absolute=$BUILD ;; *) absolute=$PWD/$BUILD ;; esac
sim=$absolute/sim/libcuda.so.1
passed=0 failed=0 skipped=0

# A sanitised simulator is loaded by programs that carry the same sanitiser; Python does not.
add_line() { # log status label
    counts=$(sed -n 's/^.*: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$1" | tail -n 1)
    set -- "$1" "$2" "$3" $counts
    if [ $# -ne 6 ] || { [ "$2" -ne 0 ] && [ "$5" -eq 0 ]; }; then
        failed=$((failed + 1))
        printf 'FAIL %s: exit status %s, no closing line that says why\n' "$3" "$2"
        tail -n 20 "$1" | sed 's/^/    /'
        return
    fi
    passed=$((passed + $4)) failed=$((failed + $5)) skipped=$((skipped + $6))
}

# Runs stand in lists, which are functions. Several lanes (processes) work on a list side by side: each goes
# through it in order and does the runs that no other lane has claimed. This process goes through the list as well
# and shows each run once it has ended, so the output is in the order of the list.
#
# run LABEL COMMAND…: one test program, its output kept in a log; failures and skips are shown.
run() {
    label=$1
    shift
    number=$((number + 1))
    log=$logs/$(printf '%s' "$label" | tr -c 'A-Za-z0-9_\n' '-').log
    ended=$logs/queue/$number.ended
    if [ "$lane" ]; then
        if mkdir "$logs/queue/$number" 2>/dev/null; then work "$@"; fi
    else
        show
    fi
}

# One run, in a lane. Its status and its seconds are in $ended afterwards.
work() {
    start=$(date +%s)
    "$@" >"$log" 2>"$log.err" &
    child=$!
    wait $child
    printf '%s %s\n' $? "$(($(date +%s) - start))" >"$ended.part"
    mv "$ended.part" "$ended"
}

# Whether a lane still runs. One that was killed leaves its run without an end.
working() {
    for worker in $workers; do
        if kill -0 "$worker" 2>/dev/null; then return 0; fi
    done
    return 1
}

show() {
    [ -t 2 ] && printf '\r\033[K… %s' "$label" >&2
    while [ ! -f "$ended" ] && working; do sleep 0.1; done
    [ -f "$ended" ] || echo '255 0' >"$ended"
    [ -t 2 ] && printf '\r\033[K' >&2
    read -r status seconds <"$ended"
    grep -A 7 '^FAIL' "$log" | head -n 60
    grep '^SKIP' "$log" | sort | uniq -c | sed 's/^ *\([0-9]*\) SKIP/SKIP (\1)/' | head -n 20
    printf '%-52s %s  (%ss)\n' "$label" "$(tail -n 1 "$log" | sed 's/^.*: //')" "$seconds"
    add_line "$log" "$status" "$label"
}

# run_all LANES LIST: the runs that the function LIST names.
run_all() {
    rm -rf "$logs/queue"
    mkdir -p "$logs/queue"
    workers= number=0
    for lane in $(seq "$1"); do
        (
            child=
            trap 'kill $child 2>/dev/null; exit 1' TERM
            $2
        ) &
        workers="$workers $!"
    done
    trap 'kill $workers 2>/dev/null; exit 130' INT TERM HUP
    lane=
    $2
    wait
    trap - INT TERM HUP
}

# run_shares COUNT LABEL COMMAND…: as COUNT runs, each with one thirteenth of the cases, a prime, so that no kind is left out.
run_shares() {
    shares=$1 whole=$2
    shift 2
    for share in $(seq 0 $((shares - 1))); do run "$whole, share $share of 13" "$@" --share "$share/13"; done
}

on() { # GPU COMMAND…: on the simulator
    gpu=$1
    shift
    HEWN_LIBCUDA=$sim HEWN_SIM_GPU=$gpu HEWN_SIM_QUIET=1 "$@"
}
# of GPU SHARE SHARE: the share of the cases in a short run, on h200 and on others; the long run does them all.
of() {
    if [ "$suite" = all ]; then echo 0/1; elif [ "$1" = h200 ] || [ $# -eq 2 ]; then echo "$2"; else echo "$3"; fi
}
real() { env -u HEWN_LIBCUDA "$@"; }
script() { run "$(basename "$1" .sh)" env SIM="$sim" SUITE="$suite" HEWN_SIM_QUIET=1 sh "$1"; }

on_simulator() {
    short=2 # of thirteen shares; the long run does them all
    [ "$suite" = all ] && short=13
    script "$SRC/tests/watch/watch.sh" # it waits most of the time
    script "$SRC/tests/mutate/mutate.sh" # the longest ones, so that the lanes end together
    script "$SRC/tests/zoo/zoo.sh"
    for t in abi bench_test fold $SIM_TESTS; do
        case $t in
        layout) run "$t" "$bin/$t" --share "$(of - 0/3)" --words ;;
        sim_tensor) run "$t" "$bin/$t" --share "$(of - 0/7)" --words ;;
        *) run "$t" "$bin/$t" ;;
        esac
    done
    for t in badinput inject packs params npy safetensors engine_files; do run "$t" on b200 "$bin/$t"; done
    for gpu in h200 b200; do
        run "driver_api on $gpu" on $gpu "$bin/driver_api"
        run "driver_launch on $gpu" on $gpu "$bin/driver_launch"
        run "driver_texture on $gpu" on $gpu "$bin/driver_texture"
        run "driver_graph on $gpu" on $gpu "$bin/driver_graph"
        run "driver_stream on $gpu" on $gpu "$bin/driver_stream"
        run "driver_beside on $gpu" on $gpu "$bin/driver_beside"
        run "driver_repeat on $gpu" on $gpu "$bin/driver_repeat"
        run "driver_memory on $gpu" on $gpu "$bin/driver_memory"
        run "driver_link on $gpu" on $gpu "$bin/driver_link"
        run "tensormap on $gpu" on $gpu "$bin/tensormap"
        run_shares $short "gemm on $gpu" on $gpu "$bin/gemm" --digests "$SRC/tests/golden/results-gemm.txt"
        run "gemm --random 24 on $gpu" on $gpu env HEWN_SIM_SMS=132 "$bin/gemm" --random 24
        [ "$suite" = all ] && run "gemm --random 2400 on $gpu" on $gpu "$bin/gemm" --random 2400
        [ "$suite" = all ] && run "gemm --random 2400 on $gpu, 132 SMs" on $gpu env HEWN_SIM_SMS=132 "$bin/gemm" --random 2400
        run "kinds on $gpu" on $gpu "$bin/kinds" --share "0/$([ "$suite" = all ] && echo 1 || echo 3)"
        [ "$suite" = all ] && run "kinds --random 2000 on $gpu" on $gpu "$bin/kinds" --random 2000
        run "tuning on $gpu" on $gpu "$bin/tuning"
        run_shares $short "attention on $gpu" on $gpu "$bin/attention" --digests "$SRC/tests/golden/results-attention.txt"
        run "host on $gpu" on $gpu "$bin/host"
        run "mla on $gpu" on $gpu "$bin/mla" --share "$([ "$suite" = all ] && echo 0/1 || { [ $gpu = h200 ] && echo 1/4 || echo 2/4; })"
        [ "$suite" = all ] && run "mla --random 300 on $gpu" on $gpu "$bin/mla" --random 300
        run "indexer on $gpu" on $gpu "$bin/indexer" --share "$(of $gpu 0/3 1/3)" --words
        [ "$suite" = all ] && run "indexer --random 300 on $gpu" on $gpu "$bin/indexer" --random 300
        run "topk on $gpu" on $gpu "$bin/topk"
        run "grouped on $gpu" on $gpu "$bin/grouped" --share "0/$([ "$suite" = all ] && echo 1 || echo 3)"
        run "grouped --random $([ "$suite" = all ] && echo 2000 || echo 6), 132 SMs, on $gpu" on $gpu env HEWN_SIM_SMS=132 \
            "$bin/grouped" --random "$([ "$suite" = all ] && echo 2000 || echo 6)"
        run "grouped_sum on $gpu" on $gpu "$bin/grouped_sum"
        [ "$suite" = all ] && run "grouped_sum --random 1000 on $gpu" on $gpu "$bin/grouped_sum" --random 1000
        run "scaled on $gpu" on $gpu "$bin/scaled" --share "0/$([ "$suite" = all ] && echo 1 || echo 5)"
        [ "$suite" = all ] && run "scaled --random 2000 on $gpu" on $gpu "$bin/scaled" --random 2000
        [ "$suite" = all ] && run "scaled --quantised 500 on $gpu" on $gpu "$bin/scaled" --quantised 500
        run "w4 on $gpu" on $gpu "$bin/w4" --share "$(of $gpu 0/3 0/3)"
        run "kernels on $gpu" on $gpu "$bin/kernels"
        [ "$suite" = all ] && run "kernels --random 1000 on $gpu" on $gpu "$bin/kernels" --random 1000
        [ "$suite" = all ] && run "w4 --random 300 on $gpu" on $gpu "$bin/w4" --random 300
        run "serving on $gpu" on $gpu "$bin/serving" --share "$(of $gpu 0/3 1/3)"
        run "engine_model on $gpu" on $gpu env HEWN_SIM_STRICT=1 "$bin/engine_model" --share "$(of $gpu 0/2 1/2)"
        [ "$suite" = all ] && run "engine_model, 32 streams, on $gpu" on $gpu "$bin/engine_model" --case 18 --streams 32
        run "engine_requests on $gpu" on $gpu "$bin/engine_requests" --count "$([ "$suite" = all ] && echo 200 || echo 12)"
        { [ "$suite" = all ] || [ $gpu = h200 ]; } &&
            run "engine_ranks on $gpu" on $gpu env HEWN_SIM_STRICT=1 HEWN_LIBNCCL="$absolute/tests/nccl/libnccl.so.2" "$bin/engine_ranks"
        [ "$suite" = all ] && run "topk --random 300 on $gpu" on $gpu "$bin/topk" --random 300
        [ "$suite" = all ] && run "attention --grid on $gpu" on $gpu "$bin/attention" --grid
        [ "$suite" = all ] && run "attention --random 2000 on $gpu" on $gpu "$bin/attention" --random 2000
        run "combine on $gpu" on $gpu env HEWN_SIM_STRICT=1 "$bin/combine"
        run "compiled on $gpu" on $gpu env HEWN_TEST_CUDA="$SRC/tests/driver/nvcc" "$bin/compiled"
    done
    if [ "$suite" = all ]; then
        run "grouped --random 2000, 132 SMs, on b300" on b300 env HEWN_SIM_SMS=132 "$bin/grouped" --random 2000
        run "scaled --random 2000 on b300" on b300 "$bin/scaled" --random 2000
    fi
    [ "$suite" = all ] && run "layout --all" "$bin/layout" --all
    run "golden on h200" on h200 "$bin/golden" "$SRC/tests/golden"
    for t in "$SRC"/tests/*/*.sh; do
        case $t in */lib/* | */watch.sh | */mutate.sh | */zoo.sh | */sanitize.sh | */account.sh | */hardware.sh) continue ;; esac
        script "$t"
    done
}

# Every program, those that take longest with the fewest of their cases; 7, 17 and 61 leave out no kind, as 13 above. No
# scripts: most need an unsanitised interpreter.
a_share() {
    for t in abi bench_test fold badinput packs params npy safetensors engine_files; do run "$t" on b200 "$bin/$t"; done
    for t in $SIM_TESTS; do run "$t, a share" "$bin/$t" --share 0/4; done
    for gpu in h200 b200; do
        for t in driver_api driver_launch driver_graph driver_stream driver_beside driver_repeat driver_memory driver_link driver_texture tensormap; do run "$t on $gpu" on $gpu "$bin/$t"; done
        run "gemm on $gpu, a share" on $gpu "$bin/gemm" --share 0/61
        run "kinds on $gpu, a share" on $gpu "$bin/kinds" --share 0/12
        run "tuning on $gpu, a share" on $gpu "$bin/tuning" --share 0/7
        run "attention on $gpu, a share" on $gpu "$bin/attention" --share 0/20
        run "combine on $gpu, a share" on $gpu "$bin/combine" --share 0/4
        run "compiled on $gpu" on $gpu env HEWN_TEST_CUDA="$SRC/tests/driver/nvcc" "$bin/compiled"
        run "mla on $gpu, a share" on $gpu "$bin/mla" --share 0/17
        run "serving on $gpu, a share" on $gpu "$bin/serving" --share 0/7
        run "engine_model on $gpu, a share" on $gpu "$bin/engine_model" --share 0/3
        run "engine_requests on $gpu" on $gpu "$bin/engine_requests" --count 30
        run "engine_ranks on $gpu, a share" on $gpu env HEWN_LIBNCCL="$absolute/tests/nccl/libnccl.so.2" "$bin/engine_ranks" --share 0/3
    done
    for gpu in h200 b200; do run "indexer on $gpu, a share" on $gpu "$bin/indexer" --share 0/8; done
    for gpu in h200 b200; do run "topk on $gpu, a share" on $gpu "$bin/topk" --share 0/4; done
    run "grouped on h200, a share" on h200 "$bin/grouped" --share 0/17
    for gpu in h200 b200; do run "grouped_sum on $gpu" on $gpu "$bin/grouped_sum"; done
    run "scaled on b200, a share" on b200 "$bin/scaled" --share 0/17
    for gpu in h200 b200; do run "w4 on $gpu, a share" on $gpu "$bin/w4" --share 0/8; done
    for gpu in h200 b200; do run "kernels on $gpu" on $gpu "$bin/kernels"; done
    run "golden on h200, a share" on h200 "$bin/golden" "$SRC/tests/golden" --share 0/16
    run "zoo, one seed" "$bin/zoo" --open skip --seeds 1 "$BUILD/hewn" "$SRC"/tests/zoo/*.ptx
}

on_gpu() {
    for t in driver_api driver_launch driver_graph driver_stream driver_beside driver_repeat driver_memory driver_link driver_texture tensormap combine mla indexer topk grouped grouped_sum scaled w4 kernels serving host tuning kinds; do run "$t on the GPU" real "$bin/$t"; done
    run "engine_requests on the GPU" real "$bin/engine_requests" --count 10000
    for t in gemm attention; do
        run "$t on the GPU" real "$bin/$t" --digests "$SRC/tests/golden/results-$t.txt"
    done
    run "gemm --random 2000 on the GPU" real "$bin/gemm" --random 2000
    run "compiled on the GPU" real env HEWN_TEST_CUDA="$SRC/tests/driver/nvcc" "$bin/compiled"
}

# One lane more than there are cores, because runs wait for one another's threads, for compilers and for the clock.
# More than four gain nothing: many runs keep several cores busy themselves.
lanes=$(($(nproc 2>/dev/null || echo 1) + 1))
[ "$lanes" -le 4 ] || lanes=4
if [ "$suite" = share ]; then
    run_all "$lanes" a_share
else
    run_all "$lanes" on_simulator
fi
if [ "$suite" = share ]; then
    :
elif real "$BUILD/hewn" info 2>/dev/null | grep -q '^driver: .*CUDA' &&
    ! real "$BUILD/hewn" info 2>/dev/null | head -n 1 | grep -q simulated; then
    run_all 1 on_gpu
else
    echo 'SKIP tests on a GPU: no CUDA device answers here'
    skipped=$((skipped + 1))
fi

printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ]
