#!/bin/sh
# hewn.h beside the real cuda.h, in both orders, as C and as C++.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/headers
mkdir -p "$work"
include=${CUDA_HOME:+-isystem $CUDA_HOME/include}

# beside LABEL COMPILER FLAGS…
beside() {
    label=$1
    shift
    for order in "hewn.h cuda.h" "cuda.h hewn.h"; do
        for header in $order; do printf '#include <%s>\n' "$header"; done >"$work/order.c"
        echo 'hewn_stream same(CUstream s); hewn_stream same(CUstream s) { return s; }' >>"$work/order.c"
        if "$@" -Wall -Wextra -Wpedantic -Werror -I"$SRC/include" $include -fsyntax-only "$work/order.c" \
            2>"$work/err"; then ok
        else fail "$label, $order" "$(cat "$work/err")"; fi
    done
}

echo '#include <cuda.h>' >"$work/probe.c"
if ! $CC $include -fsyntax-only "$work/probe.c" 2>/dev/null; then
    skip "hewn.h beside cuda.h: no cuda.h here"
    finish
    exit
fi
beside "as C" $CC -std=c11
if command -v "${CXX:-c++}" >/dev/null 2>&1; then beside "as C++" "${CXX:-c++}" -x c++
else skip "hewn.h beside cuda.h as C++: no C++ compiler"; fi
finish
