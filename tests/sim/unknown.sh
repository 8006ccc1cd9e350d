#!/bin/sh
# What is not modelled: real PTX, legal all around, each text holding one form that the machine does not know.
# The module loads, the launch fails with 801, the finding names file, line and instruction, the verdict is
# `incomplete` and hewn check exits with 2. Text that no PTX version knows does not load: 218.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/unknown
rm -rf "$work"
mkdir -p "$work"
out=$work/out report=$work/report.json
launch=$BUILD/tests/launch

# text NAME DECLARATIONS DIRECTIVES FORM: the form stands on line 60 of planted.cu
text() {
    cat >"$work/$1.ptx" <<EOT
.version 9.0
.target sm_100f
.address_size 64
# 1 "planted.cu"
$2
.visible .entry k(.param .u64 out) $3
{
.reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<4>; .reg .f32 %f<8>; .reg .f64 %d<8>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, 7;
add.u32 %r2, %r2, %r1; st.global.u32 [%rd1], %r2;
# 60 "planted.cu"
$4
st.global.u32 [%rd1+4], %r2;
ret;
}
EOT
}
# What ptxas says of the text, where there is one: accepted for what is only unmodelled, refused else.
assembles() { # NAME yes|no
    [ -n "$PTXAS" ] || return 0
    if "$PTXAS" -arch=sm_100f "$work/$1.ptx" -o "$work/$1.cubin" >"$work/$1.log" 2>&1; then says=yes; else says=no; fi
    # an assembler older than the text's PTX version cannot say
    if grep -q 'Unsupported .version' "$work/$1.log"; then skip "$1: this ptxas is too old for .version 9.0"; return 0; fi
    if [ $says = "$2" ]; then ok; else fail "$1: ptxas accepts it: $says, want $2" "$(cat "$work/$1.log")"; fi
}
planted() { # NAME DECLARATIONS DIRECTIVES FORM [LINE INSTRUCTION]
    text "$1" "$2" "$3" "$4"
    assembles "$1" yes
    rm -f "$report"
    "$BUILD/hewn" check --gpu b200 --report "$report" "$launch" "$work/$1.ptx" >"$out" 2>&1
    status "hewn check of $1" 2 $?
    want "$1: the module loads, the launch fails" 'load 0 launch 801 sync 0 again 0 memory' "$out"
    want "$1: the finding" '"kind":"unsupported",.*"kernel":"k","file":"planted.cu"' "$report"
    want "$1: the line" "\"line\":${5:-60}," "$report"
    if grep -F -q "\"instr\":\"${6:-${4%;}}\"" "$report"; then ok; else fail "$1: the instruction is not named" "$(cat "$report")"; fi
    want "$1: the verdict" '^{"verdict":"incomplete","kernel":"k","findings":1,"basis":"sampled","why":"part of it was not modelled[^"]*"}$' "$report"
}
refused() { # NAME DECLARATIONS DIRECTIVES FORM
    text "$1" "$2" "$3" "$4"
    assembles "$1" no
    HEWN_LIBCUDA=$SIM "$launch" "$work/$1.ptx" >"$out" 2>&1
    want "$1: the module does not load" 'init 0 load 218' "$out"
}

planted opcode '.global .surfref plane;' '' 'sured.b.add.1d.u32.trap [plane, {%r1}], %r2;'
planted modifier '' '' 'mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};'
planted types '' '' 'wmma.mma.sync.aligned.row.col.m16n16k8.f64.f64.f64.f64 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, {%d0, %d1, %d2, %d3}, {%d0, %d1, %d2, %d3}, {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7};'
planted register '' '' 'mov.u32 %r2, %pm3;'
planted texture '.global .texref image;' '' 'tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [image, {%f4, %f5}];'
planted surface '.global .surfref plane;' '' 'sust.b.2d.b32.trap [plane, {%r1, %r2}], %r2;'
planted multicast '' '' 'multimem.ld_reduce.weak.global.add.acc::f16.e4m3x4 %r2, [%rd1];'
planted trigger '' '' 'pmevent 3;'
refused nonsense '' '' 'frobnicate.u32 %r2, %r1;'
refused sass '' '' 'ldgsts.u32 [%rd1], %r1;'
refused nodirective '' '.frobnicate 3' ''
refused nospace '.register .u32 x;' '' ''
refused nospecial '' '' 'mov.u32 %r2, %frobnicate;'
refused nobank '.const[2] .align 4 .b8 c[64];' '' ''
refused constants '.const .align 4 .b8 c[65537];' '' 'ld.const.u32 %r2, [c];'

# A driver function that is not modelled is there, fails with 801 and is named once.
case $MODE in rel | dbg) ;; *) PYTHON=false ;; esac
if "$PYTHON" -c 'import ctypes' 2>/dev/null; then
    HEWN_SIM_QUIET=0 "$PYTHON" - "$SIM" >"$out" 2>&1 <<'EOT'
import ctypes, sys
cuda = ctypes.CDLL(sys.argv[1])
context = ctypes.c_void_p()
print('init', cuda.cuInit(0), 'context', cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
print('first', cuda.cuTexRefCreate(None), 'again', cuda.cuTexRefCreate(None))
EOT
    want 'a driver function that is not modelled' '^first 801 again 801$' "$out"
    if [ "$(grep -c 'cuTexRefCreate is not modelled' "$out")" = 1 ]; then ok; else fail 'it is not named once' "$(cat "$out")"; fi
else
    skip 'a driver function that is not modelled: no Python that can load this simulator'
fi
finish
