#!/bin/sh
# The stand-in for ptxas: what it prints, what it refuses, its exit statuses, and that its image runs.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/ptxas
rm -rf "$work"
mkdir -p "$work"
ptxas=$BUILD/sim/bin/ptxas
out=$work/out
run() { "$ptxas" "$@" >"$out" 2>&1; }

# text NAME VERSION TARGET BODY: $work/NAME.ptx
text() {
    printf '.version %s\n.target %s\n.address_size 64\n%s\n' "$2" "$3" ".visible .entry k(.param .u64 p) .reqntid 128
{
.reg .b32 %r<4>;
.shared .align 4 .b8 s[1024];
$4
ret;
}" >"$work/$1.ptx"
}
text good 8.0 sm_90 'mov.u32 %r0, %tid.x;'

run --version
status "--version" 0 $?
want "tools learn the release from --version" 'release 13\.[0-9]*, V13\.' "$out"
run --help
want "--help" '^Usage' "$out"

run -v -lineinfo --regAllocOptLevel=2 -O3 --opt-level 3 --fmad=false --fmad true -m64 --gpu-name=sm_90a \
    "$work/good.ptx" -o "$work/good.cubin"
status "the usual options" 0 $?
want "-v names the entry and the GPU" "Compiling entry function 'k' for 'sm_90a'" "$out"
want "-v: registers and shared memory" 'Used 255 registers, 1024 bytes smem' "$out"
[ -s "$work/good.cubin" ] && ok || fail "no image"
run -arch sm_90 --output-file="$work/same.cubin" "$work/good.ptx"
if cmp -s "$work/good.cubin" "$work/same.cubin"; then ok; else fail "--output-file= gives another image than -o"; fi
(cd "$work" && "../../sim/bin/ptxas" good.ptx) >"$out" 2>&1
if cmp -s "$work/good.cubin" "$work/elf.o"; then ok; else fail "no elf.o without -o" "$(cat "$out")"; fi
run -arch compute_90 "$work/good.ptx" -o "$work/none"
status "a virtual GPU" 0 $?
[ ! -e "$work/none" ] && ok || fail "an image for a virtual GPU"
run -arch sm_90 -o "$work/string.cubin" -ias "$(cat "$work/good.ptx")
"
if cmp -s "$work/good.cubin" "$work/string.cubin"; then ok; else fail "-ias gives another image than the file" "$(cat "$out")"; fi

# refused NAME TEXT ARGUMENTS…: exit status 255, that text, no image
refused() {
    name=$1 say=$2
    shift 2
    rm -f "$work/refused"
    run "$@" -o "$work/refused"
    status "$name" 255 $?
    want "$name" "$say" "$out"
    [ ! -e "$work/refused" ] && ok || fail "$name: an image all the same"
}
text wrong 8.0 sm_90 'foo.u32 %r0;'
refused "an unknown instruction" "^ptxas $work/wrong.ptx, line 8; error   : .*'foo'" "$work/wrong.ptx"
want "and the last line" '^ptxas fatal   : Ptx assembly aborted due to errors' "$out"
text operand 8.0 sm_90 'add.u32 %r0, %r1;'
refused "a missing operand" 'operand.ptx, line 8; error   : ' "$work/operand.ptx"
text newer 19.0 sm_90 ''
refused "a new version" 'Unsupported .version 19.0' "$work/newer.ptx"
text exact 8.0 sm_90a ''
refused "sm_90a on a later GPU" "'sm_90a' cannot be compiled to future" -arch sm_100a "$work/exact.ptx"
refused "a target above the GPU" 'SM version specified by .target is higher' -arch sm_80 "$work/good.ptx"
text family 8.8 sm_100f ''
refused "a family's target elsewhere" "'sm_100f' cannot be compiled" -arch sm_120a "$work/family.ptx"
run -arch sm_103a "$work/family.ptx" -o "$work/family.cubin"
status "a family's target on its later member" 0 $?
text older 6.0 sm_30 ''
run -arch sm_90 "$work/older.ptx" -o "$work/older.cubin"
status "a target that no compiler makes any more" 0 $?
text large 8.0 sm_90 '.shared .align 4 .b8 more[49160]; mov.u32 %r0, more;'
refused "too much static shared memory" 'too much shared data (50184 bytes, 49152 max)' "$work/large.ptx"
printf 'garbage\n' >"$work/garbage.ptx"
refused "no PTX" 'garbage.ptx, line 1; error   : ' "$work/garbage.ptx"
refused "an unknown GPU" "'sm_9' is not defined for option 'gpu-name'" -arch=sm_9 "$work/good.ptx"
refused "no such file" "Input file '$work/absent.ptx' could not be opened" "$work/absent.ptx"
refused "no input" "no input file" -v
refused "two inputs" "one input file at a time" "$work/good.ptx" "$work/good.ptx"
run "$work/good.ptx" -o
status "-o without a file" 255 $?
run "$work/good.ptx" -o "$work/no/such/folder"
status "a file that cannot be made" 255 $?
want "a file that cannot be made" "Output file '$work/no/such/folder' could not be opened" "$out"

# What is PTX but not modelled loads, and does not launch.
text unmodelled 8.0 sm_90 'pmevent 3;'
run "$work/unmodelled.ptx" -o "$work/unmodelled"
status "an instruction that is not modelled" 0 $?
want "an instruction that is not modelled" 'unmodelled.ptx, line 8; warning : .* will not launch' "$out"
run -w "$work/unmodelled.ptx" -o "$work/unmodelled"
[ ! -s "$out" ] && ok || fail "-w: a warning" "$(cat "$out")"
run -Werror "$work/unmodelled.ptx" -o "$work/strict"
status "-Werror" 255 $?

# hewn check names it to Triton, unless another is named already.
TRITON_PTXAS_PATH=mine "$BUILD/hewn" check sh -c 'echo "$TRITON_PTXAS_PATH $TRITON_PTXAS_BLACKWELL_PATH"' >"$out" 2>&1
want "hewn check names the stand-in" "^mine .*/sim/bin/ptxas$" "$out"

# The image runs as the text does, from a program that loads it as it would a cubin.
case $MODE in rel | dbg)
    if "$PYTHON" -c 'import ctypes' 2>/dev/null; then
        run "$SRC/tests/driver/vecadd.ptx" -o "$work/vecadd.cubin"
        for gpu in h200 b200; do
            if HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=$gpu "$PYTHON" "$SRC/tests/driver/vecadd.py" "$work/vecadd.cubin" \
                >"$out" 2>&1; then ok; else fail "the image on $gpu" "$(cat "$out")"; fi
        done
    else skip "the image runs: no Python with ctypes"; fi ;;
*) skip "the image runs: an interpreter without the sanitiser of MODE=$MODE cannot load the simulator" ;;
esac
finish
