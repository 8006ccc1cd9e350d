#!/bin/sh
# The zoo on the simulator (tests/zoo/zoo.c), and every text of it, repaired or not, through ptxas.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/zoo-ptx
mkdir -p "$work"
unset HEWN_SIM_QUIET HEWN_LIBCUDA HEWN_SIM_GPU
out=$BUILD/tests/zoo.out
seeds=6
[ "$SUITE" = all ] && seeds=40
"$BUILD/tests/zoo" --open skip --seeds $seeds "$BUILD/hewn" "$SRC"/tests/zoo/*.ptx >"$out"
grep -A 1 '^FAIL' "$out"
grep '^SKIP' "$out"
counts=$(sed -n 's/^zoo: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$out")
if [ -z "$counts" ]; then
    fail "the zoo ended without a closing line" "$(tail -n 5 "$out")"
else
    set -- $counts
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
fi

# What practice accepts and the letter does not: silent as a rule, a warning at level 2.
HEWN_LIBCUDA=$SIM HEWN_SIM_CHECK=2 timeout 60 "$BUILD/hewn" run "$SRC/tests/zoo/ok-read-arrive-refill.ptx" >"$work.log" 2>&1
status 'a refill without a proxy fence, at level 2' 1 $?
want 'a refill without a proxy fence, at level 2' 'warning: proxy' "$work.log"

# So is what lanes of one warp do without a bar.warp.sync, and what is read before it is written.
level_2() { # CASE STATUS OPTIONS TEXT…
    what="$1 at level 2 $3"
    HEWN_LIBCUDA=$SIM HEWN_SIM_CHECK=2 timeout 60 "$BUILD/hewn" run "$SRC/tests/zoo/$1.ptx" $3 >"$work.log" 2>&1
    status "$what" "$2" $?
    shift 3
    for text; do want "$what" "$text" "$work.log"; done
}
clean=' 0 review, 0 incomplete, 0 error'
level_2 ok-lanes-converged 1 '' 'warning: race' 'warning: async-reuse' 'no bar.warp.sync since' 'no bar.warp.sync has told'
level_2 ok-lanes-converged 1 -DLATE 'warning: async-reuse'
level_2 ok-warp-speaks 1 '' 'warning: race' 'neither arrived anywhere since'
level_2 ok-warp-speaks 1 -DLATE 'warning: race' 'of warp 0 wrote'
level_2 ok-warp-speaks 1 -DREAD 'warning: race' 'of warp 0 read'
level_2 ok-warp-speaks 1 -DFENCE 'warning: proxy' 'comes after the last barrier'
level_2 ok-warp-speaks 1 -DGLOBAL 'warning: proxy' 'of global memory'
level_2 ok-warp-speaks 0 -DFIXED "$clean"
level_2 ok-warp-speaks 0 '-DREAD -DFIXED' "$clean"
level_2 ok-lanes-fence 0 '' "$clean"
level_2 ok-lanes-fence 0 -DFIXED "$clean"
level_2 lanes-fence-ahead 1 '' 'warning: proxy' 'puts between the two'
level_2 lanes-fence-ahead 1 -DPASSED 'warning: proxy'
level_2 lanes-fence-ahead 0 -DTOLD "$clean"
level_2 lanes-fence-ahead 0 -DFIXED "$clean"
level_2 ok-init-unfenced 1 '' 'warning: mbarrier-init-order' 'visible to that'
level_2 ok-init-unfenced 0 -DFIXED "$clean"
level_2 ok-init-unfenced 0 -DPROXY "$clean"
level_2 ok-commit-unwaited 1 '' 'warning: pending-at-exit' 'nobody waited'
level_2 ok-commit-unwaited 0 -DFIXED "$clean"

level_2 ok-fresh-stored 1 '' 'warning: uninit' 'depends on shared memory that nobody has written'
level_2 ok-fresh-stored 0 -DFIXED "$clean"

# At level 1 they are counted, and the closing line says so.
for f in load-without-fence ok-box-beside ok-grid-ticket; do
    HEWN_LIBCUDA=$SIM timeout 60 "$BUILD/hewn" run "$SRC/tests/zoo/$f.ptx" >"$work.log" 2>&1
    status "$f, counted" 0 $?
    want "$f, counted" "1 clean,$clean; 1 idiom by the letter (--pedantic)$" "$work.log"
    HEWN_LIBCUDA=$SIM timeout 60 "$BUILD/hewn" run "$SRC/tests/zoo/$f.ptx" --pedantic >"$work.log" 2>&1
    status "$f, --pedantic" 1 $?
    want "$f, --pedantic" "$f.ptx:[0-9]*: warning: " "$work.log"
done

# Other forms of the cases, told by a define.
form() { # CASE STATUS OPTIONS TEXT…
    what="$1 $3"
    HEWN_LIBCUDA=$SIM HEWN_SIM_CHECK=1 timeout 60 "$BUILD/hewn" run "$SRC/tests/zoo/$1.ptx" $3 >"$work.log" 2>&1
    status "$what" "$2" $?
    shift 3
    for text; do want "$what" "$text" "$work.log"; done
}
form ok-init-fenced-again 0 -DLATE "$clean"
form ok-init-fenced-again 0 -DALL "$clean"
form ok-heap-again 0 -DTOGETHER "$clean"
form ok-halves-take-turns 0 -DONE "$clean"
form ok-halves-take-turns 0 --explore "$clean"
form 16-other-slot 1 --explore 'So does a run with HEWN_SIM_SEED=[0-9]*'
form 06-same-parity 1 --explore 'So does a run with HEWN_SIM_SEED=1'
form ok-halves-take-turns 0 "-DONE --explore" "$clean"
in_step() { # CASE [FORM]
    form $1 0 "$2" 'lanes of a warp are in order here only as long as they run together' "$clean"
    form $1 0 "$2 -DFIXED" 'proved for every order' "$clean"
}
for f in lanes-halves lanes-copy-unsynced lanes-left-reading lanes-copy-met lanes-heard-many lanes-fence-mma; do
    in_step $f
done
in_step lanes-copy-unsynced -DHALVES
for d in '' -DWAITS -DCOPIES; do in_step lanes-init $d; done
form lanes-init 1 -DAPART 'error: mbarrier-'
form lanes-init 0 '-DAPART -DFIXED' 'proved for every order' "$clean"
for d in '' -DBULK -DSOURCE -DWRITTEN; do in_step lanes-refill $d; done
for d in '' -DMANY; do in_step lanes-read-long-ago $d; done
for d in '' -DFILLS -DGLOBAL -DSLEEPS; do in_step lanes-spoken-for $d; done
for d in '' -DSTORED -DOWN -DGIVEN '-DSTORED -DLOADED' '-DSTORED -DGIVEN'; do in_step lanes-heard-by-one "$d"; done
for d in '' -DPASSED -DGIVEN '-DGIVEN -DNARROW' -DAGAIN '-DGIVEN -DAGAIN' -DCOPIES; do in_step lanes-fence-ahead "$d"; done
form lanes-fence-ahead 0 -DTOLD 'proved for every order' "1 clean,$clean$"
form ok-warp-speaks 0 -DFENCE 'lanes of a warp are in order here only as long as they run together' "$clean"
form ok-lanes-fence 0 '' 'proved for every order' "$clean"
form pegainfer-542 1 '' 'error: mbarrier-overrun'
if head -n 1 "$work.log" | grep -q 'error: mbarrier-overrun'; then ok; else fail 'pegainfer-542: a race is told ahead of its cause' "$(head -n 1 "$work.log")"; fi
for seed in 5 7 8; do
    form flashinfer-4533 1 "--seed $seed" 'error: barrier-id'
    if head -n 1 "$work.log" | grep -q 'error: barrier-id'; then ok; else fail 'flashinfer-4533: a race is told ahead of its cause' "$(head -n 1 "$work.log")"; fi
done
form grid-reset-unseen 1 '' 'It was 0x2, which warp 0 of CTA (.,0,0) left at line' 'line 31 took that away'
for d in -DSHARED -DATOMIC; do
    form more-clock-flag 1 $d 'error: deadlock (no-producer)'
    form more-clock-flag 0 "$d -DFIXED" "$clean"
done
for d in -DNAMED -DCLUSTER; do
    form more-exited-barrier 1 $d 'warning: collective-partial'
    form more-exited-barrier 0 "$d -DFIXED" "$clean"
done
for d in -DATOMIC -DREAD -DARRIVE -DCOPY -DMULTICAST; do
    form more-peer-early 1 $d 'error: cluster-start'
    form more-peer-early 0 "$d -DFIXED" "$clean"
done
form refill-arrive-narrow 1 -DSTORE 'error: proxy'
form refill-arrive-narrow 0 '-DSTORE -DFIXED' "1 clean,$clean; 1 idiom by the letter (--pedantic)$"
form refill-arrive-narrow 1 -DREMOTE 'error: race' 'arrival and wait need .cluster'
form more-peer-leaves 1 -DWRITE 'error: cluster-exit'
form more-peer-leaves 1 -DRELAXED 'error: cluster-exit'
form more-peer-leaves 0 '-DWRITE -DFIXED' "$clean"
for d in -DSYNC -DAHEAD; do
    form more-barrier-shared 1 $d 'error: barrier-id'
    form more-barrier-shared 0 "$d -DFIXED" "$clean"
done
for d in '' -DCALL -DSHUFFLE -DGLOBAL -DTREE -DBACK; do
    form ok-lanes-in-step 0 "$d" 'lanes of a warp are in order here only as long as they run together' "$clean"
    form ok-lanes-in-step 0 "$d -DFIXED" 'proved for every order' "$clean"
done
form ok-lanes-in-step 0 -DVOLATILE 'lanes of a warp are in order here only as long as they run together' "$clean"
form ok-lanes-in-step 0 '-DVOLATILE -DFIXED' 'what this reads may depend on when it reads' "$clean"
level_2 ok-lanes-in-step 1 '' 'warning: race'
level_2 ok-lanes-in-step 1 -DVOLATILE 'warning: race' 'bytes of shared memory that another lane'
level_2 ok-lanes-in-step 1 -DGLOBAL 'warning: race' 'bytes of global memory that another lane'
for d in -DAFTER -DGLOBAL '-DAFTER -DGLOBAL'; do
    form more-lanes-apart 1 "$d" 'error: race'
    form more-lanes-apart 0 "$d -DFIXED" "$clean"
done
for d in -DATOM -DSTORE -DLATER; do form peer-atomic-counted-early 1 $d 'error: race'; done
form peer-atomic-counted-early 0 '-DLATER -DFIXED' "$clean"
for d in -DBOTH -DATOMIC -DSHARED; do form grid-volatile-data 1 $d 'error: race'; done
for d in -DSCOPE -DCTA -DLEADER -DSWAP; do
    form grid-lock-volatile 1 $d 'error: race' 'ordered only by a lock'
    form grid-lock-volatile 0 "$d -DFIXED" "$clean"
done
form ok-lock-unfenced 0 -DLIST "$clean"
form grid-volatile-data 0 '-DSHARED -DFIXED' "$clean"
for d in -DSTORED -DATOMIC -DFENCE; do form grid-acquire-unread 1 $d 'error: race'; done
for d in -DATOM -DCAS -DPART; do form shared-atomic-uninit 1 $d 'error: uninit'; done
form shared-atomic-uninit 0 '-DATOM -DFIXED' "$clean"
for d in -DCOPY -DOTHER; do
    form grid-constant-written 1 $d 'error: race' 'its cache does not follow stores'
    form grid-constant-written 0 "$d -DFIXED" "$clean"
done
form ok-matrix-alike 1 -DAPART 'error: race'
form ok-address-word 1 -DSTORED 'error: proxy'
form lanes-left 0 -DNAMED 'only as long as they run together'
form more-exited-shuffle 1 -DDECIDES 'error: collective-partial'
form more-exited-shuffle 1 -DMASKED 'error: collective-partial'
form more-exited-shuffle 0 '-DDECIDES -DFIXED' "$clean"
form more-exited-in-call 1 -DPARAM 'error: collective-partial'
form more-exited-in-call 0 '-DPARAM -DFIXED' "$clean"
form more-exited-matrix 1 -DLAST 'error: collective-partial'
form more-exited-matrix 1 -DLOADS 'error: collective-partial'
form more-exited-matrix 0 '-DLOADS -DFIXED' "$clean"
form more-inval-early 1 -DREUSE 'error: mbarrier-uninit'
form more-inval-early 1 -DAGAIN 'error: mbarrier-'
form more-inval-early 0 '-DREUSE -DFIXED' "$clean"
form more-inval-early 0 '-DAGAIN -DFIXED' "$clean"
form more-init-over-data 1 -DSTORE 'error: \(race\|mbarrier-clobber\)'
form more-init-over-data 0 '-DSTORE -DFIXED' "$clean"
form ok-fresh-stored 0 '' "1 clean,$clean; 1 idiom" 'shared memory that nobody has written'
form ok-fresh-stored 0 -DDROPPED 'proved for every order'
form deepgemm-343 1 '--seed 3' 'elements are wrong'
form undefined-staged 0 -DOVER "$clean"
form more-remote-overtakes 0 -DADDED "$clean"
for f in arrive-narrow wait-narrow; do form $f 1 -DLEFT 'error: race' 'which is meant where none is written'; done
form ok-wait-narrow 0 -DLEFT "$clean"
form more-stores-overtake 1 -DREDUCE 'error: race'
form more-stores-overtake 0 '-DREDUCE -DFIXED' "$clean"
form map-release-missing 1 -DACQUIRE 'error: tensormap-proxy'
form more-half-warpgroup 1 -DSTAY 'error: deadlock (participants)' 'All four warps of a warpgroup must execute it'
form more-freed-at-home 1 '' 'has arrivals that nobody waits for'
form grid-not-resident 1 '' 'needs all of it resident at once'

# Who is to blame for a hang of five to seven roles.
kernel=more-seven-roles
hang() { # NUMBER CAUSE OBJECT
    form $kernel 1 "-DHANG=$1" "error: deadlock ($2): $3"
}
hang 2 trip-count empty
hang 3 trip-count sched_full
hang 4 trip-count o_scaled
hang 5 no-producer o_free
hang 6 arrival-count o_scaled
hang 7 arrival-count sched_empty
hang 8 no-producer p_full
hang 9 tx-bytes full
hang 10 trip-count o_free
hang 11 trip-count full
hang 12 trip-count stats
hang 13 participants 'barrier 1'
hang 14 trip-count empty
kernel=more-persistent
hang 2 no-producer 'empty.0'
hang 3 no-producer 'empty.1'
hang 4 no-producer 'acc_empty.0'
hang 5 phase 'empty.0'
hang 6 arrival-count 'full.0'
hang 7 trip-count asked
hang 8 tx-bytes asked
hang 9 trip-count 'acc_empty.0'
hang 10 trip-count heard
kernel=more-take-turns
hang 1 arrival-count tile_read
hang 2 tx-bytes 'k_full.2'
hang 4 participants 'barrier 1'
hang 7 trip-count o_ready
hang 8 arrival-count tile_read
want 'more-take-turns -DHANG=8: who may come yet' 'Perhaps missing is warp 5 of CTA rank 0, which waits for' "$work.log"
hang 9 trip-count o_taken
hang 10 trip-count o_ready
form more-take-turns 1 '' "no other warp's code ahead has a barrier instruction with this number"
kernel=more-turns
hang 2 trip-count 'order.1'
hang 3 trip-count 'order.2'
hang 4 trip-count extra_empty
hang 5 trip-count extra_empty
hang 6 trip-count extra_full
hang 7 trip-count 'empty.0'
block() { form more-turns 1 "-DBLOCK -DHANG=$1" "error: deadlock ($2): block+$3"; } # NUMBER CAUSE OFFSET
block 1 cycle 0x30
block 2 trip-count 0x38
block 3 trip-count 0x40
block 7 trip-count 0x18

kernel=more-pair
hang 2 tx-bytes 'full.0'
hang 3 arrival-count acc_empty
hang 7 cluster acc_full
hang 8 tx-bytes 'full.0'
hang 9 tx-bytes 'full.1'
form more-pair 1 -DHANG=4 'error: tmem-wait'
form more-pair 1 -DHANG=5 'error: async-reuse: tile_a'
form more-pair 1 -DHANG=6 'error: cluster-exit: acc_empty'
form scales-in-flight 1 -DUNWRITTEN 'error: tmem-uninit: TMEM column 20'
form scales-in-flight 1 -DAPART 'error: tmem-uninit: TMEM columns 24..27'

form trtllm-15338 0 -DSHORT 'after this poll has failed, the program does something else than poll again' "$clean"
form trtllm-15338 0 '-DSHORT -DFIXED' 'proved for every order'
form trtllm-15338 1 '-DSHORT --explore' 'error: race'
for d in -DSTAGED -DBACK; do form cudnn-frontend-702 1 "$d -DFIXED" 'error: tmem-uninit' 'that nothing has written since'; done
form cudnn-frontend-702 0 '-DHALF -DFIXED' "$clean" 'proved for every order'
# grown NAME CASE AWK STATUS TEXT…: a copy of the case that AWK has lengthened
grown() {
    awk "$3" "$SRC/tests/zoo/$2.ptx" | sed "s|#include \"|&$(cd "$SRC/tests/zoo" && pwd)/|" >"$work/$1.ptx"
    HEWN_LIBCUDA=$SIM timeout 60 "$BUILD/hewn" run "$work/$1.ptx" >"$work.log" 2>&1
    status "$1" "$4" $?
    what=$1
    shift 4
    for text; do want "$what" "$text" "$work.log"; done
}
# tcgen05.ld.red is of sm_103.
grown red-of-unwritten cudnn-frontend-702 '/HALF.$/ { print "#define RED" } { sub(/sm_100f/, "sm_103f"); print }' 1 'error: tmem-uninit' 'that nothing has written since'
# An undefined value is followed through that many registers; where there is no room for all, the verdict says so.
through='/mov.b32 %sum, %v;/ {
    printf ".reg .f32 %%r<%d>;\nmov.b32 %%r0, %%v;\n", n
    for (i = 1; i < n; i++) printf "add.f32 %%r%d, %%r%d, %%r%d;\n", i, i - 1, i - 1
    printf "mov.f32 %%sum, %%r%d;\n", n - 1; next } { print }'
grown through-300-registers cudnn-frontend-702 "BEGIN { n = 300 } $through" 1 'error: tmem-uninit'
grown through-1100-registers cudnn-frontend-702 "BEGIN { n = 1100 } $through" 1 'incomplete'
# The first launch of a chain is still looked at from the fourth; from the sixth its record is gone.
chain='/run: entry second/ { while (n--) print; next } { print }'
grown chain-of-4 launch-let-go "BEGIN { n = 2 } $chain" 1 'error: race'
grown chain-of-6 launch-let-go "BEGIN { n = 4 } $chain" 0 "$clean" 'more launches than are looked at'
form launch-let-go 1 -DREAD 'error: race' 'reads it at line'
form launch-let-go 0 '-DREAD -DFIXED' ' 0 review, 0 incomplete, 0 error'
form launch-let-go 0 -DATOMIC ' 0 review, 0 incomplete, 0 error'

form more-half-gives 1 '' 'all warps of a warpgroup must execute the same setmaxnreg'

# The shipped kernels are clean: one case here, all of them in check-all.
case=--case\ 37
[ "$SUITE" = all ] && case=
for gpu in h200 b200; do
    HEWN_SIM_QUIET=1 timeout 600 "$BUILD/hewn" check --gpu $gpu "$BUILD/tests/gemm" $case >"$work.log" 2>&1
    status "the product kernels on $gpu, checked" 0 $?
    want "the product kernels on $gpu, checked" ' 0 review, 0 incomplete, 0 error' "$work.log"
    HEWN_SIM_QUIET=1 timeout 600 "$BUILD/hewn" check --gpu $gpu --schedules 100 "$BUILD/tests/gemm" --case 23 >"$work.log" 2>&1
    status "a product on $gpu under 100 seeds" 0 $?
    want "a product on $gpu under 100 seeds" ' 1 clean, 0 review, 0 incomplete, 0 error' "$work.log"
done

# One text: NAME is the file's, with .fixed for the repaired twin.
assemble() { # FILE DEFINE NAME
    if ! "$BUILD/hewn" run "$1" $2 --text "$work/$3.ptx" 2>"$work/$3.log"; then return; fi
    arch=$(sed -n 's/^ *\.target *\(sm_[0-9a-z]*\).*/\1/p' "$work/$3.ptx" | head -n 1)
    "$PTXAS" -arch="$arch" "$work/$3.ptx" -o "$work/$3.cubin" >"$work/$3.log" 2>&1 && : >"$work/$3.ok"
}
if [ -z "$PTXAS" ]; then
    skip "the zoo's texts through ptxas: no ptxas here"
else
    rm -f "$work"/*
    for f in "$SRC"/tests/zoo/*.ptx; do
        name=$(basename "$f" .ptx)
        assemble "$f" -DFIXED "$name.fixed" &
        assemble "$f" '' "$name"
        wait
        for n in "$name" "$name.fixed"; do
            if [ -f "$work/$n.ok" ]; then ok; else fail "ptxas refuses $n" "$(cat "$work/$n.log")"; fi
        done
    done
fi
finish
