#!/bin/sh
# The MLA kernel with a fault of its schedule planted: consumer 0 lends P only where consumer 1 has a block of its
# own, so an odd number of blocks hangs. The checker must name the barrier's waiters; the kernel as it is must be
# clean, and so must the faulty one be on an even number. tests/zoo/mla-odd-blocks.ptx is the same in small.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/mla_hang
rm -rf "$work"
mkdir -p "$work"
unset HEWN_SIM_QUIET HEWN_SIM_GPU HEWN_LIBCUDA
cases=$SRC/tests/mutate/sm_90a-mla_bf16.run

kernel() { # FILE KEYS FAULT: one sequence of so many keys, whole
    {
        echo '#define ENTRY hewn_mla_bf16'
        echo '#define IN_TYPE bf16'
        [ "$3" = 0 ] || echo '#define LEND add.u32 %t0, %turn, 1; setp.lt.u32 %skip, %t0, %blocks; setp.eq.or.u32 %skip, %half, 1, %skip; @%skip bar.arrive %bar_own, 256;'
        echo "#include \"$(cd "$SRC" && pwd)/ptx/sm_90a/mla.ptx\""
        sed -n -e '1,3p' -e '/map q_0/p' "$cases"
        echo "//@ run: map k_0 kv dims=576,$2,1 strides=1152,1152000 box=64,64,1 swizzle=128B l2=128B"
        echo "//@ run: params q_0, k_0, kv, o, lse, 0, 0, 0, 0, 0, 0, 0, 1152, 1152000, 32768, 2048, 32768, 4, 4, 64, 0.06, 1, 16, 1, 16, 1, 2, 0, $2, 0, 1, 0, 64, 0, 0, 0, 1, 1"
        echo '//@ run: launch'
    } >"$work/$1.ptx"
    timeout 60 "$BUILD/hewn" run "$work/$1.ptx" >"$work/$1.out" 2>&1
}

kernel right 300 0
status 'five blocks' 0 $?
kernel even 256 1
status 'four blocks, the last P not lent: nobody waits for it' 0 $?
kernel odd 300 1
want 'five blocks, the last P not lent: a hang' 'error: deadlock' "$work/odd.out"
want 'by the barrier whose arrival was left out' 'error: deadlock (participants): barrier 1$' "$work/odd.out"
want 'and who waits for P' 'Meanwhile warp 4 and 3 more wait for barrier 3' "$work/odd.out"
finish
