#!/bin/sh
# The command line: what it prints, what it refuses, and its exit statuses.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/cli
rm -rf "$work"
mkdir -p "$work"
hewn=$BUILD/hewn
out=$work/out
run() { HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=${gpu:-b200} "$hewn" "$@" >"$out" 2>&1; }

# Help: the list, each command's own page, and the hint under a wrong option.
run help
status "hewn help" 0 $?
for command in $(sed -n 's/^  \([a-z]*\)  .*/\1/p' "$out"); do
    run "$command" --help
    status "hewn $command --help" 0 $?
    want "hewn $command --help" "^usage: hewn $command" "$out"
done
run help nothing
status "help on an unknown command" 64 $?
run gemm --nothing
want "a wrong option" "'hewn help gemm' lists the options" "$out"

run info
status "hewn info" 0 $?
want "info names the driver" "^driver: simulated" "$out"
want "info names the device" "compute capability 10.0" "$out"
want "info says what would run" "gemm_bf16_f32 *sm_100f *ptx" "$out"
gpu=h200 run info
want "info on an H200" "gemm_f16_bf16 *sm_90a *ptx" "$out"

run modules
status "hewn modules" 0 $?
for target in sm_90a sm_100f; do want "modules lists $target" "^gemm  *gemm_bf16_f32  *$target" "$out"; done
want "modules lists attention" "^attention *attention_bf16_128_128  *sm_100f" "$out"
run extract gemm_bf16_f32 --target sm_100f -o "$work/k.ptx"
if cmp -s "$work/k.ptx" "$BUILD/modules/sm_100f/gemm_bf16_f32.ptx"; then ok; else fail "extract gives another text than the build"; fi
run extract gemm_bf16_f32 --target sm_90a --what json
want "extract --what json" '"entry": "hewn_gemm_bf16_f32"' "$out"
run extract gemm_bf16_f32
status "extract of an ambiguous name" 1 $?
want "extract of an ambiguous name" "choose with --target" "$out"
run extract nothing
status "extract of an unknown name" 1 $?

gpu=h200 run tune 128x256x512
status "hewn tune" 0 $?
want "tune prints a row of C" '^{128, 256, 512, 1, HEWN_BF16, HEWN_BF16, "[a-z0-9-]*", [0-9]*, [0-9]*}, /\*' "$out"
want "tune says that a simulator's times are none" "say nothing about a GPU" "$out"
gpu=h200 run tune 64x64x256 --in e4m3 --out f32 --batch 2
status "hewn tune of 8 bits" 0 $?
want "tune of 8 bits" '^{64, 64, 256, 2, HEWN_E4M3, HEWN_F32, ' "$out"
run tune 8x8x16 --in s8
status "tune of what no kernel takes" 1 $?
want "tune of what no kernel takes" "in: s8: .* does not have it" "$out"
gpu=h200 run tune 100000x100000x100000 --batch 1000000
status "tune of what no device holds" 1 $?
run tune 8x8
status "tune of no product" 64 $?
run tune 8x8x8 --out q
status "tune of no dtype" 64 $?

run demo -o "$work/demo"
status "hewn demo" 0 $?
want "demo's product is right" "^right:  every element" "$out"
want "demo's attention is right" "^right:  O and its log-sum-exps" "$out"
want "demo names the kernel" "^kernel: attention_bf16_128_128, .* for sm_100f" "$out"
want "demo begins a worksheet" "^worksheet of hewn_attention_bf16_128_128" "$out"
if ! "$PYTHON" -c 'import zlib' 2>/dev/null; then skip "the map of hewn demo: no Python with zlib"
elif "$PYTHON" - "$work/demo/attention.png" 2>"$work/why" <<'END'; then ok; else fail "the map is no picture" "$(cat "$work/why")"; fi
import struct, sys, zlib
data = open(sys.argv[1], "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n"
at, chunks = 8, {}
while at < len(data):
    length, = struct.unpack(">I", data[at:at + 4])
    body, crc = data[at + 4:at + 8 + length], data[at + 8 + length:at + 12 + length]
    assert zlib.crc32(body) == struct.unpack(">I", crc)[0], "CRC"
    chunks[body[:4]] = body[4:]
    at += 12 + length
width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
rows = zlib.decompress(chunks[b"IDAT"])
assert (width, height, len(rows)) == (256, 256, 256 * 129), (width, height, len(rows))
for y in range(height):  # the largest weight of a row is black; what the mask hides is white
    row = rows[129 * y + 1:129 * y + 129]
    levels = [row[x // 2] >> (4 - 4 * (x % 2)) & 15 for x in range(width)]
    assert min(levels) == 0 and levels[y + 1:] == [15] * (width - 1 - y), y
END
run gemm "$work/demo/a.npy" "$work/demo/b.npy" -o "$work/c.npy"
status "hewn gemm" 0 $?
if cmp -s "$work/c.npy" "$work/demo/c.npy"; then ok; else fail "hewn gemm and hewn demo disagree on the same files"; fi
for types in "bf16 f16" "f16 bf16" "f16 f32"; do
    # shellcheck disable=SC2086
    set -- $types
    run gemm "$work/demo/a.npy" "$work/demo/b.npy" -o "$work/c.npy" --in "$1" --out "$2"
    status "hewn gemm --in $1 --out $2" 0 $?
done

run gemm "$work/demo/a.npy" "$work/demo/c.npy" -o "$work/x.npy"
status "K that differs" 1 $?
want "K that differs" "second dimensions (K) must be equal" "$out"
run gemm "$work/demo/a.npy" "$work/none.npy" -o "$work/x.npy"
want "a file that is not there" "none.npy: No such file" "$out"
head -c 5000 "$work/demo/a.npy" >"$work/short.npy"
run gemm "$work/short.npy" "$work/demo/b.npy" -o "$work/x.npy"
status "a file cut short" 1 $?
want "a file cut short" "the header says .* bytes of data" "$out"
if [ -e "$work/x.npy" ]; then fail "a refused product left an output file"; else ok; fi
run gemm "$work/demo/a.npy"
status "one input" 64 $?
run gemm a b -o c --in f64
want "an unknown dtype" "takes bf16 or f16" "$out"
run frobnicate
status "an unknown command" 64 $?
HEWN_LIBCUDA=/nonexistent/libcuda.so "$hewn" info >"$out" 2>&1
status "a driver that is not there" 1 $?
want "a driver that is not there" "/nonexistent/libcuda.so" "$out"
HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=gtx480 "$hewn" info >"$out" 2>&1
status "a GPU that is not simulated" 1 $?
want "a GPU that is not simulated" "h200" "$out"

# hewn attention: the demo's arrays give the demo's result; options change it; bad input is named
attend() { run attention "$work/demo/q.npy" "$work/demo/k.npy" "$work/demo/v.npy" "$@"; }
attend -o "$work/o.npy" --causal --lse "$work/lse.npy"
status "hewn attention" 0 $?
if cmp -s "$work/o.npy" "$work/demo/o.npy"; then ok; else fail "hewn attention and hewn demo disagree on the same files"; fi
refused() { # NAME TEXT ARGUMENTS…
    label=$1 text=$2
    shift 2
    run attention "$@"
    if [ $? -eq 0 ]; then fail "$label: accepted"; else want "$label" "$text" "$out"; fi
}
q=$work/demo/q.npy
refused "two files" "three .npy files or one .safetensors file" "$q" "$q" -o "$work/y.npy"
refused "no output" "-o O.npy is missing" "$q" "$q" "$q"
refused "a name for a .npy" "names a tensor of a .safetensors file" "$q" "$q" "$q" -o "$work/y.npy" --q x
refused "no name for a tensor" "--v NAME is missing: which tensor of the file is V" x.safetensors --q a --k b -o "$work/y.npy"
refused "a window of one number" "takes L,R" "$q" "$q" "$q" -o "$work/y.npy" --window 3
refused "a window that ends in a letter" "takes L,R" "$q" "$q" "$q" -o "$work/y.npy" --window 3,4x
refused "a window of -2" "takes L,R" "$q" "$q" "$q" -o "$work/y.npy" --window -2,0
refused "a scale of 0" "takes a number above 0" "$q" "$q" "$q" -o "$work/y.npy" --scale 0
refused "a scale that is no number" "takes a number above 0" "$q" "$q" "$q" -o "$work/y.npy" --scale nan
refused "a layout of its own" "takes bshd or bhsd" "$q" "$q" "$q" -o "$work/y.npy" --layout sbhd
refused "float32 inputs to the kernel" "takes bf16 or f16" "$q" "$q" "$q" -o "$work/y.npy" --in f32
refused "float64 results" "takes f32, f16 or bf16" "$q" "$q" "$q" -o "$work/y.npy" --out f64
refused "half a split" "takes a number, 0: chosen" "$q" "$q" "$q" -o "$work/y.npy" --splits 0.5
refused "a matrix" "2 dimensions, \[B,S,H,D\] has 4" "$work/demo/a.npy" "$q" "$q" -o "$work/y.npy"
refused "an absent file" "none.npy: No such file" "$q" "$q" "$work/none.npy" -o "$work/y.npy"
refused "a sink that is no vector" "4 dimensions, a vector has 1" "$q" "$q" "$q" -o "$work/y.npy" --sink "$q"
if [ -e "$work/y.npy" ]; then fail "a refused attention left an output file"; else ok; fi

# What was meant; help of every command, whatever follows; nothing checked.
"$hewn" chekc >"$out" 2>&1
status 'a command with a slip' 64 $?
want 'a command with a slip' "'chekc' is not a command; did you mean check?" "$out"
"$hewn" xyzzy >"$out" 2>&1
status 'an unknown command' 64 $?
if grep -q 'did you mean' "$out"; then fail 'an unknown command: a wild guess' "$(cat "$out")"; else ok; fi
"$hewn" demo --sizee 3 >"$out" 2>&1
status 'an option with a slip' 64 $?
want 'an option with a slip' "'--sizee' is not understood; did you mean --size?" "$out"
for command in $("$hewn" --help | sed -n 's/^  \([a-z][a-z]*\)  *.*/\1/p'); do
    "$hewn" "$command" --help more >"$out" 2>&1
    status "hewn $command --help" 0 $?
    want "hewn $command --help" "^usage: hewn $command" "$out"
done
"$hewn" check true >"$out" 2>&1
status 'nothing checked' 2 $?
want 'nothing checked' 'nothing was checked: no kernel was launched' "$out"

# hewn check: the program's status where all is clean, else its own
"$hewn" check --gpu b200 "$hewn" demo gemm -o "$work/checked" >"$out" 2>&1
status "check of a clean program" 0 $?
want "check counts launches" "1 launch: 1 clean" "$out"
"$hewn" check sh -c 'exit 7' >"$out" 2>&1
status "check passes the program's status on" 7 $?
"$hewn" check --gpu gtx480 true >"$out" 2>&1
status "check of an unknown GPU" 64 $?
"$hewn" check /nonexistent/program >"$out" 2>&1
status "check of a program that is not there" 127 $?
finish
