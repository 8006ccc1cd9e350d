#!/bin/sh
# libhewn.so.0 from another language.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/ctypes
mkdir -p "$work"
if ! "$PYTHON" -c 'import ctypes' 2>/dev/null; then
    skip "libhewn.so.0 from Python: no Python with ctypes"
    finish
    exit
fi
case $MODE in rel | dbg) ;; *)
    skip "libhewn.so.0 from Python: an interpreter without the sanitiser of MODE=$MODE cannot load it"
    finish
    exit
    ;;
esac
HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=h200 "$PYTHON" "$SRC/tests/runtime/hewn_ctypes.py" "$BUILD/libhewn.so.0" >"$work/log" 2>&1
status "hewn_ctypes.py" 0 $?
version=$(awk '/define HEWN_VERSION_/ {v = v s $3; s = "."} END {print v}' "$SRC/include/hewn.h")
want "the version" "^hewn $version on" "$work/log"
want "a product" "^gemm: 384 of 384 right" "$work/log"
want "an attention" "^attention: 192 of 192 right" "$work/log"
want "an error" "^error: m: 0 is not at least 1" "$work/log"
finish
