#!/bin/sh
# Where a report points: the line of the source that a compiler's .loc names, with the calls that it put code in place of;
# the line of the PTX; names of files and kernels; and what a refused load or launch says.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/lines
rm -rf "$work"
mkdir -p "$work"
out=$work/out report=$work/report.json
hewn=$BUILD/hewn

# tell FILE: what is reported of a run of its kernel, in $out
tell() { HEWN_SIM_QUIET=0 "$hewn" run --gpu h200 "$1" --buf 'o u32[64]' --block 64 --params o >"$out" 2>&1; }

# Two instructions of one source line race; the third reads where nothing is, inlined twice.
cat >"$work/located.ptx" <<'EOT'
.version 8.8
.target sm_90a
.address_size 64
.visible .entry _ZN3lib5racesILi4EEEvPj(.param .u64 o)
{
.reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<2>;
.shared .align 4 .b32 _ZZN3lib5racesILi4EEEvPjE4tile[64];
.loc 1 10 3
ld.param.u64 %rd1, [o]; mov.u32 %r1, %tid.x; mov.u32 %r2, _ZZN3lib5racesILi4EEEvPjE4tile;
mad.lo.u32 %r3, %r1, 4, %r2; sub.u32 %r4, 63, %r1; mad.lo.u32 %r4, %r4, 4, %r2;
.loc 1 12 5
st.shared.u32 [%r3], %r1;
ld.shared.u32 %r5, [%r4];
.loc 1 12 9
ld.shared.u32 %r6, [%r4];
.loc 1 20 7
add.u32 %r5, %r5, %r6;
.loc 2 33 4, function_name $L__name, inlined_at 1 20 7
add.u32 %r5, %r5, 1;
.loc 2 5 2, function_name $L__name+4, inlined_at 2 33 4
st.global.u32 [%rd1+1073741824], %r5;
ret;
}
.file 1 "/src/app.cu"
.file 2 "/src/helper.cuh"
.section .debug_str
{
$L__name:
.b8 102,0
}
EOT
sed 's/+1073741824//' "$work/located.ptx" >"$work/racing.ptx"
tell "$work/racing.ptx"
want 'the line of the source' '^/src/app.cu:12: error: race: tile' "$out"
if [ "$(grep -c '^/src/app.cu:12: error: race' "$out")" -le 2 ]; then ok; else fail 'one line is not told once' "$(cat "$out")"; fi
want 'the line of the PTX' 'at st.shared.u32 \[%r3\], %r1 (line 12 of the PTX)' "$out"
HEWN_SIM_QUIET=0 "$hewn" run --gpu h200 "$work/located.ptx" --buf 'o u32[64]' --block 64 --params o \
    --report "$report" >"$out" 2>&1
want 'an address in inlined code' '^/src/helper.cuh:5: error: oob' "$out"
want 'the call' '^  /src/helper.cuh:33: note: inlined here' "$out"
want 'the call of the call' '^  /src/app.cu:20: note: inlined here' "$out"
want 'the kernel as it is written' 'in lib::races<4>, launch 1' "$out"
want 'the JSON line' '"kernel":"_ZN3lib5racesILi4EEEvPj","file":"/src/helper.cuh","line":5,"launch":1,.*,"repeats":0,"ptx_line":21}$' "$report"
want 'the calls in JSON' '{"file":"/src/helper.cuh","line":33,"note":"inlined here"},{"file":"/src/app.cu","line":20,' "$report"

# Code of the toolkit's headers: the line that calls it. Where there is no other line, the header's.
for header in /usr/local/cuda/include/x.hpp /opt/cuda-13.0/targets/sbsa-linux/include/x.hpp \
    /v/nvidia/cu13/include/cccl/cuda/x.h /usr/include/sm_30_intrinsics.hpp; do
    sed "s|/src/helper.cuh|$header|" "$work/located.ptx" >"$work/header.ptx"
    tell "$work/header.ptx"
    want "the line that calls $header" '^/src/app.cu:20: error: oob' "$out"
    sed "s|/src/app.cu|$header|" "$work/header.ptx" >"$work/headers.ptx"
    tell "$work/headers.ptx"
    want "a line of $header" "^$header:5: error: oob" "$out"
done
sed 's|/src/helper.cuh|/src/cuda-13-samples/include/x.cuh|' "$work/located.ptx" >"$work/header.ptx"
tell "$work/header.ptx"
want 'a header of the program' '^/src/cuda-13-samples/include/x.cuh:5: error: oob' "$out"

# Without .loc: the file's own name and lines.
sed '/^\.loc/d' "$work/located.ptx" >"$work/plain.ptx"
tell "$work/plain.ptx"
want 'the name of the PTX file' "^$work/plain.ptx:15: error: oob" "$out"
grep -v 'PTX)' "$out" >"$work/rest"
if cmp -s "$out" "$work/rest"; then ok; else fail 'the line of the PTX is said twice' "$(cat "$out")"; fi

# What cannot be: malformed .loc.
for loc in '.loc 1' '.loc 1 2 3, inlined_at' '.loc 1 2 3, function_name x +'; do
    printf '.version 8.8\n.target sm_90a\n.address_size 64\n.entry k() {\n%s\nret; }\n' "$loc" >"$work/bad.ptx"
    "$hewn" run --gpu h200 "$work/bad.ptx" >"$out" 2>&1
    status "$loc" 1 $?
    want "$loc" 'bad.ptx, line [0-9]*; error: expected' "$out"
done
# A file that is not named, a line 0: the text's own lines.
printf '.version 8.8\n.target sm_90a\n.address_size 64\n.entry k() {\n.loc 7 2 3\ntrap;\n.loc 1 0 0\nret; }\n.file 1 "a.cu"\n' >"$work/odd.ptx"
HEWN_SIM_QUIET=0 "$hewn" run --gpu h200 "$work/odd.ptx" >"$out" 2>&1
want 'a file without a name' "^$work/odd.ptx:6: error: trap" "$out"

# A refused load and a refused launch say why, once.
launch=$BUILD/tests/launch
printf '.version 8.8\n.target sm_90a\n.address_size 64\n.entry k(.param .u64 o) .reqntid 7 {\nret; }\n' >"$work/seven.ptx"
HEWN_SIM_QUIET=0 HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=h200 "$launch" "$work/seven.ptx" >"$out" 2>&1
want 'a refused launch' '^hewn-sim: k does not launch (1): the source fixes another block' "$out"
if [ "$(grep -c 'does not launch' "$out")" = 1 ]; then ok; else fail 'a refused launch is not told once' "$(cat "$out")"; fi
printf '.version 8.8\n.target sm_90a\n.address_size 64\n.entry k(.param .u64 o) {\nfrobnicate; }\n' >"$work/none.ptx"
HEWN_SIM_QUIET=0 HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=h200 "$launch" "$work/none.ptx" >"$out" 2>&1
want 'a refused load' "^hewn-sim: a module does not load (218): ptx input, line 5; error: no PTX instruction is named" "$out"
finish
