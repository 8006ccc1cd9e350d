#!/bin/sh
# What compilers since CUDA 12 write around their instructions: versions, targets, directives, sections of debugging
# data, names of reserved shared memory; and the forms of instructions that came with them. Each text runs and gives the values that stand with it; where there is a
# ptxas, it takes and refuses what the simulator does.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/toolchains
rm -rf "$work"
mkdir -p "$work"
out=$work/out

# What ptxas says of $work/NAME.ptx for ARCH, where there is one that knows the text's version.
assembles() { # NAME ARCH yes|no
    [ -n "$PTXAS" ] || return 0
    if "$PTXAS" -arch="$2" "$work/$1.ptx" -o "$work/$1.cubin" >"$work/$1.log" 2>&1; then says=yes; else says=no; fi
    if grep -q 'Unsupported .version' "$work/$1.log"; then return 0; fi
    if [ $says = "$3" ]; then ok; else fail "$1: ptxas accepts it: $says, want $3" "$(cat "$work/$1.log")"; fi
}
# text NAME VERSION TARGET BEFORE DIRECTIVES BODY: the body has the address of `o` in %rd1.
text() {
    cat >"$work/$1.ptx" <<EOT
.version $2
.target $3
.address_size 64
$4
.visible .entry k(.param .u64 o)
$5
{
.reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<4>; .reg .f32 %f<8>;
ld.param.u64 %rd1, [o]; cvta.to.global.u64 %rd1, %rd1;
$6
ret;
}
EOT
}
# runs NAME GPU VERSION TARGET BEFORE DIRECTIVES BODY VALUE…: the first words of `o`.
runs() {
    name=$1 gpu=$2 target=$4
    text "$1" "$3" "$4" "$5" "$6" "$7"
    shift 7
    assembles "$name" "${target%%,*}" yes
    printf '%s\n' "$@" >"$work/$name.want"
    rm -f "$work/$name.npy"
    "$BUILD/hewn" run --gpu "$gpu" "$work/$name.ptx" --buf "o u32[$#]" ${grid:+--grid "$grid"} --block 32 --params o \
        --out "o $work/$name.npy" >"$out" 2>&1
    status "$name" 0 $?
    tail -c $((4 * $#)) "$work/$name.npy" | od -An -v -tu4 | tr -s ' ' '\n' | sed '/^$/d' >"$work/$name.got"
    if cmp -s "$work/$name.want" "$work/$name.got"; then ok; else fail "$name: the values" "$(cat "$work/$name.got")" "$(cat "$out")"; fi
}
# refused NAME VERSION TARGET BEFORE DIRECTIVES BODY WORDS
refused() {
    text "$1" "$2" "$3" "$4" "$5" "$6"
    assembles "$1" "${3%%,*}" no
    HEWN_SIM_QUIET=0 "$BUILD/hewn" run --gpu h200 "$work/$1.ptx" --buf 'o u32[4]' --block 32 --params o >"$out" 2>&1
    status "$1" 1 $?
    want "$1" "$7" "$out"
}

for v in 7.8 8.0 8.3 8.8 9.0 9.1 9.2 9.3 9.4 9.5; do
    runs "version-$v" h200 $v "$([ $v = 7.8 ] && echo sm_90 || echo sm_90a)" '' '' 'st.global.u32 [%rd1], 7;' 7
done
refused version-9.6 9.6 sm_90a '' '' '' 'line 1; error: .version 9.6 is newer than 9.5'
for t in b200:sm_100a b200:sm_100f b300:sm_100f b300:sm_103a b300:sm_103f b200:sm_100 h200:sm_75; do
    runs "target-${t#*:}" "${t%:*}" 8.8 "${t#*:}" '' '' 'st.global.u32 [%rd1], 7;' 7
done
runs target-debug h200 8.8 'sm_90a, texmode_independent' '' '' 'st.global.u32 [%rd1], 7;' 7

# Two clusters of two CTAs: each CTA adds its number.
grid=2
runs clusters h200 9.0 sm_90a '' '.blocksareclusters .reqntid 32, 1, 1 .reqnctapercluster 2, 1, 1' '
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %nclusterid.x; mov.u32 %r4, %tid.x;
mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2; mad.lo.u32 %r5, %r2, 10, %r3; add.u32 %r5, %r5, %r1;
setp.eq.u32 %p1, %r4, 0; @%p1 st.global.u32 [%rd2], %r5;' 42 43 44 45
grid=
runs bounds h200 9.0 sm_90a '' '.maxnreg 300 .minnctapersm 100' 'st.global.u32 [%rd1], 7;' 7
runs explicit h200 9.0 sm_90a '' '.maxntid 64, 2 .maxnreg 64' 'st.global.u32 [%rd1], 7;' 7
runs reserved h200 9.0 sm_90a '' '' '
mov.u32 %r1, %reserved_smem_offset_begin; mov.u32 %r2, %reserved_smem_offset_end;
mov.u32 %r3, %reserved_smem_offset_cap; mov.u32 %r4, %reserved_smem_offset_0; mov.u32 %r5, %reserved_smem_offset_1;
mov.u32 %r6, %tid.x; setp.eq.u32 %p1, %r6, 0; @!%p1 bra L; st.shared.u32 [%r5+284], 9; ld.shared.u32 %r7, [%r5+284];
L: @%p1 st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; @%p1 st.global.u32 [%rd1+16], %r7;' 0 1024 1024 0 9
runs graph h200 9.0 sm_90a '' '' 'mov.u64 %rd2, %current_graph_exec; st.global.u64 [%rd1], %rd2;' 0 0
runs functions h200 9.0 sm_90a '
.func (.param .b32 r) f (.param .b32 n) .abi_preserve 8 .abi_preserve_control 2
{ .reg .b32 %r<4>; ld.param.b32 %r1, [n]; add.s32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) g (.param .b32 n);
.alias g, f;
.func stop () .noreturn { trap; }' '' '
{ .param .b32 a; .param .b32 b; st.param.b32 [a], 6; call (b), g, (a); ld.param.b32 %r1, [b]; }
setp.eq.u32 %p1, %r1, 0; @!%p1 bra ON; call stop;
ON: st.global.u32 [%rd1], %r1;' 7
runs linkage h200 9.0 sm_90a '
.common .global .align 4 .u32 c[2];
.weak .global .align 4 .u32 w = 3;
.visible .global .attribute(.managed) .align 4 .u32 m = 4;
.visible .const .align 16 .b128 q = 5;
.pragma "nounroll";' '' '
.pragma "enable_smem_spilling"; .pragma "frequency 3";
ld.global.u32 %r1, [c+4]; ld.global.u32 %r2, [w]; ld.global.u32 %r3, [m]; ld.const.u32 %r4, [q];
st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};' 0 3 4 5
runs debugging h200 8.8 sm_90a '
.file 1 "/home/someone/a.cu", 1700000000, 523
.file 2 "/home/someone/b.cuh"
.section .debug_str
{
$L__info_string0:
.b8 102
.b8 111,111,0
}
.section .debug_info
{
.b32 21
.b64 .debug_str
.b32 $L__info_string0
}' '' '
$L__func_begin0: .loc 1 12 3
.loc 2 33 5, function_name $L__info_string0, inlined_at 1 12 3
st.global.u32 [%rd1], 7;
.loc 2 34 5, function_name $L__info_string0+4, inlined_at 1 12 3
$L__tmp0:' 7

# Forms that came with PTX 8.6 to 9.4.
runs narrow b200 9.2 sm_100f '' '' '
.reg .b16 %h<3>;
mov.b32 %r1, 0x40003F80; cvt.rn.satfinite.e4m3x2.bf16x2 %h1, %r1; cvt.u32.u16 %r2, %h1;
cvt.rn.bf16x2.e4m3x2 %r3, %h1; mov.b32 %r4, 0xC0003F80; cvt.relu.rn.satfinite.e5m2x2.bf16x2 %h2, %r4;
cvt.u32.u16 %r5, %h2; cvt.rn.bf16x2.e5m2x2 %r6, %h2; st.global.v4.u32 [%rd1], {%r2, %r3, %r5, %r6};' \
    16440 1073758080 60 16256
runs polynomials h200 9.3 sm_90a '' '' '
mov.u64 %rd2, 3; mov.u64 %rd3, 8; clmad.lo.u64 %rd4, %rd2, %rd2, %rd3;
mov.u64 %rd2, 0x8000000000000000; mov.u64 %rd3, 2; mov.u64 %rd5, 4; clmad.hi.u64 %rd5, %rd2, %rd3, %rd5;
st.global.v2.u64 [%rd1], {%rd4, %rd5};' 13 0 5 0
runs subnormal h200 9.4 sm_90a '.global .f32 x = 0f00000001; .global .f32 y = 0f00000001;' '' '
mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; mov.b32 %f1, 2;
atom.add.noftz.global.f32 %f2, [x], %f1; red.global.add.noftz.f32 [y], %f1; ld.global.f32 %f3, [x]; ld.global.f32 %f4, [y];
st.global.v4.f32 [%rd1], {%f2, %f3, %f4, %f4};
L:' 1 3 3 3
runs zeros b200 9.0 sm_100f '.shared .align 16 .b32 z[8];' '' '
mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; mov.u32 %r2, 7;
st.shared.v4.u32 [z], {%r2, %r2, %r2, %r2}; st.shared.v4.u32 [z+16], {%r2, %r2, %r2, %r2};
mov.u32 %r11, z; st.bulk.weak.shared::cta [%r11+8], 16, 0; ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [z]; ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [z+16];
st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6}; st.global.v4.u32 [%rd1+16], {%r7, %r8, %r9, %r10};
L:' 7 7 0 0 0 0 7 7
runs async b200 8.8 sm_100f '' '' '
mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; mov.u32 %r2, 7; mov.u32 %r3, 4;
st.async.release.gpu.global.u32 [%rd1], %r2; st.async.mmio.release.sys.global.u32 [%rd1+4], %r2;
red.async.release.gpu.global.add.u32 [%rd1], %r3; red.async.mmio.release.sys.global.max.u32 [%rd1+4], %r3;
L:' 11 7
runs mmio h200 9.3 sm_90a '' '' '
mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; mov.u32 %r2, 7;
st.mmio.release.sys.global.u32 [%rd1], %r2; ld.mmio.acquire.sys.global.u32 %r3, [%rd1]; st.global.u32 [%rd1+4], %r3;
L:' 7 7
runs remote h200 9.3 sm_90a '.shared .align 16 .b8 b[16]; .shared .align 8 .b64 bar;' '' '
.reg .b128 %q; .reg .b64 %s;
mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; mov.b64 %rd2, 0x200000001; mov.b64 %rd3, 0x400000003;
mov.b128 %q, {%rd2, %rd3}; mbarrier.init.layout::v0.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster;
mov.u32 %r2, b; mov.u32 %r3, bar; mapa.shared::cluster.u32 %r2, %r2, 0; mapa.shared::cluster.u32 %r3, %r3, 0;
mbarrier.arrive.expect_tx.shared::cta.b64 %s, [bar], 16;
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b128 [%r2], %q, [%r3];
W: mbarrier.try_wait.parity.phase_type::primary.shared::cta.b64 %p2, [bar], 0; @!%p2 bra W;
ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [b]; st.global.v4.u32 [%rd1], {%r4, %r5, %r6, %r7};
L:' 1 2 3 4
runs sums h200 9.4 sm_90a '.shared .align 16 .f32 x[4];' '' '
mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; mov.b32 %f1, 1; mov.b32 %f2, 3;
st.global.v4.f32 [%rd1], {%f1, %f1, %f1, %f1}; st.shared.v4.f32 [x], {%f2, %f2, %f2, %f2}; fence.proxy.async;
mov.u32 %r2, x; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f32 [%rd1], [%r2], 16;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
L:' 4 4 4 4
refused wide 8.8 sm_90a '' '' 'ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];' 'need .target sm_100'
refused bits 9.0 sm_90a '' '' 'setp.lt.b32 %p1, %r1, %r2;' '.lt does not compare bits'
refused signs 9.0 sm_90a '' '' 'setp.hi.s32 %p1, %r1, %r2;' '.hi compares unsigned values'

refused noreturn 9.0 sm_90a '' .noreturn '' "line 6; error: unknown directive '.noreturn' of an entry"
refused threads 9.0 sm_90a '' '.maxntid 64 .reqntid 32' '' "entry 'k' has both .maxntid and .reqntid"
refused ranks 9.0 sm_90a '' '.maxclusterrank 4 .reqnctapercluster 2' '' 'has both .maxclusterrank and'
refused noclusters 9.0 sm_90a '' '.blocksareclusters .reqntid 32' '' 'needs .reqntid and .reqnctapercluster'
refused noregisters 9.0 sm_90a '' '.maxnreg 0' '' 'maxnreg'
refused vector 9.0 sm_90a '.global .v4 .b64 x;' '' '' 'a vector of more than 128 bits'
refused eight 9.0 sm_90a '.global .v8 .b32 x;' '' '' 'a vector of more than 128 bits'
refused ofafunction 9.0 sm_90a '.func f() .maxnreg 3 { ret; }' '' 'call f;' "unknown directive '.maxnreg' of a function"
refused aliases 9.0 sm_90a '.func f() { ret; }
.alias f, f;' '' '' "'f'"
refused newer 9.0 sm_90a '.frobnicate 3;' '' '' "line 4; error: unknown directive '.frobnicate'"
finish
