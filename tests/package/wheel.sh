#!/bin/sh
# make wheel: the wheel installs into a fresh environment, and what it holds works from there.
. "$SRC/tests/lib/lib.sh"
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
SRC=$(cd "$SRC" && pwd)
work=$BUILD/tests/wheel
log=$work/log
rm -rf "$work"
mkdir -p "$work"
case $MODE in rel | dbg) ;; *)
    skip "the wheel of a $MODE build needs its runtime"
    finish
    exit
    ;;
esac
if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
    skip "the wheel: no Python with venv and ensurepip"
    finish
    exit
fi

if make -f "$SRC/Makefile" --no-print-directory -j2 BUILD="$BUILD" PTXAS="$PTXAS" CC="$CC" MODE="$MODE" PYTHON="$PYTHON" wheel >"$log" 2>&1; then ok
else fail "make wheel" "$(tail -n 5 "$log")"; fi
wheel=$(ls "$BUILD"/hewn-*.whl)
status "one wheel" 1 "$(printf '%s\n' "$wheel" | wc -l)"

# The tag promises a glibc that has every symbol asked for.
needed=$("$NM" -D --undefined-only "$BUILD/hewn" "$BUILD/sim/libcuda.so.1" "$BUILD/sim/libnvrtc.so.13" "$BUILD/sim/bin/ptxas" | sed -n 's/.*@GLIBC_2\.\([0-9]*\).*/\1/p' | sort -n | tail -n 1)
promised=$(printf '%s' "$wheel" | sed -n 's/.*-manylinux_2_\([0-9]*\)_.*/\1/p')
if [ "${promised:-0}" -ge "${needed:-0}" ] && [ -n "$promised" ]; then ok; else fail "the tag: glibc 2.$promised, needed 2.$needed"; fi

"$PYTHON" -m venv "$work/venv" >"$log" 2>&1
bin=$work/venv/bin
if "$bin/pip" install --no-index --no-deps --disable-pip-version-check "$wheel" >"$log" 2>&1; then ok
else fail "pip install" "$(tail -n 5 "$log")"; fi
# From elsewhere, and with nothing of the build in the environment.
installed() { (cd "$work" && env -u HEWN_LIBCUDA -u HEWN_SIM_QUIET -u LD_LIBRARY_PATH PATH="$bin:$PATH" "$@") >"$log" 2>&1; }
cp "$SRC/tests/driver/vecadd.ptx" "$work"
installed hewn info
status "hewn info" 0 $?
installed hewn run "$SRC/tests/zoo/01-arrival-count.ptx"
status "hewn run finds the bug" 1 $?
want "hewn run finds the bug" 'deadlock (arrival-count)' "$log"
installed hewn check --gpu h200 "$PYTHON" "$SRC/tests/driver/vecadd.py"
status "hewn check of a program" 0 $?
want "hewn check runs it on the simulator" 'vecadd on NVIDIA H200 (hewn simulator): 10 passed' "$log"
installed "$work/venv/lib/hewn/sim/bin/ptxas" vecadd.ptx -o vecadd.cubin
status "the stand-in for ptxas" 0 $?
installed hewn demo -o "$work/demo"
status "hewn demo" 0 $?
want "hewn demo" 'every element of C agrees with float64' "$log"
"$bin/pip" uninstall -y hewn >"$log" 2>&1
if [ ! -e "$bin/hewn" ] && [ ! -e "$work/venv/lib/hewn/sim/libcuda.so.1" ] && [ ! -e "$work/venv/lib/hewn/sim/libnvrtc.so.13" ]; then ok; else fail "pip uninstall leaves files"; fi
finish
