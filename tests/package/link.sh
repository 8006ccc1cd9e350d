#!/bin/sh
# What a program linked with libhewn.a drags in and what libhewn.so.0 exports: libc and the dynamic loader, no C++, no cudart, only
# the kernel families it calls; and how large the runtime is without kernels.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/link
mkdir -p "$work"

cat >"$work/driver_only.c" <<'EOF'
#include "hewn.h"
int main(void)
{
    hewn_driver *d = 0;
    int rc = hewn_driver_open(0, &d, 0);
    hewn_driver_close(d);
    return rc == 0 ? 0 : 0;
}
EOF
cat >"$work/gemm_user.c" <<'EOF'
#include "hewn.h"
int main(void)
{
    hewn_gemm_plan *p = 0;
    return hewn_gemm_plan_create(0, 0, &p, 0) < 0 ? 0 : 1;
}
EOF
cat >"$work/attention_user.c" <<'EOF'
#include "hewn.h"
int main(void)
{
    hewn_attention_plan *p = 0;
    return hewn_attention_plan_create(0, 0, &p, 0) < 0 ? 0 : 1;
}
EOF
case $MODE in rel | dbg) ;; *)
    skip "symbols of a $MODE build are the sanitiser's as well as ours"
    finish
    exit
    ;;
esac

for p in driver_only gemm_user attention_user; do
    if $CC -std=c11 -I"$SRC/include" "$work/$p.c" "$BUILD/libhewn.a" -ldl -o "$work/$p" 2>"$work/$p.err"; then ok
    else fail "$p does not link with -ldl alone" "$(cat "$work/$p.err")"; fi
    if "$work/$p"; then ok; else fail "$p does not run"; fi
    extra=$(ldd "$work/$p" | awk '{print $1}' | grep -v -E '^(linux-vdso|libc\.so|libdl\.so|/lib.*/ld-linux|libpthread\.so)')
    if [ -z "$extra" ]; then ok; else fail "$p needs more than libc and libdl" "$extra"; fi
done

foreign=$($NM -u "$work/gemm_user" | grep -E ' (_Z|__cxa_throw|__gxx|cuda[A-Z])')
if [ -z "$foreign" ]; then ok; else fail "C++ or cudart symbols" "$foreign"; fi
stray=$($NM -g --defined-only "$BUILD/libhewn.a" | awk 'NF == 3 {print $3}' | grep -v '^hewn_')
if [ -z "$stray" ]; then ok; else fail "external symbols without the prefix hewn_" "$stray"; fi
# The shared library exports the functions that hewn.h declares and nothing else; it is made of what is in
# the archive.
so=$BUILD/libhewn.so.0
$NM -D --defined-only "$so" | awk '{print $NF}' | sort >"$work/exported"
sed -n 's/^[a-z].*[ *]\(hewn_[a-z0-9_]*\)(.*/\1/p' "$SRC/include/hewn.h" | sort -u >"$work/declared"
if [ -s "$work/exported" ] && ! grep -v '^hewn_' "$work/exported"; then ok; else fail "$so exports more than hewn_"; fi
if diff "$work/declared" "$work/exported" >"$work/exports.diff"; then ok
else fail "$so exports (>) other functions than hewn.h declares (<)" "$(cat "$work/exports.diff")"; fi
if readelf -d "$so" | grep -q 'SONAME.*\[libhewn\.so\.0\]'; then ok; else fail "$so has no soname libhewn.so.0"; fi
if readelf -d "$so" | grep -q TEXTREL; then fail "$so has text relocations"; else ok; fi
extra=$(ldd "$so" | awk '{print $1}' | grep -v -E '^(linux-vdso|libc\.so|libdl\.so|/lib.*/ld-linux|libpthread\.so)')
if [ -z "$extra" ]; then ok; else fail "$so needs more than libc and libdl" "$extra"; fi
if $CC -std=c11 -I"$SRC/include" "$work/gemm_user.c" "$so" -o "$work/shared_user" && LD_LIBRARY_PATH=$BUILD "$work/shared_user"; then ok
else fail "a program linked with $so does not run"; fi
if $CC -shared -Wl,--whole-archive "$BUILD/libhewn.a" -Wl,--no-whole-archive -ldl -o "$work/whole.so" 2>"$work/whole.err" &&
    $NM -D --defined-only "$work/whole.so" | awk '{print $NF}' | grep '^hewn_' | sort | diff "$work/declared" - >/dev/null; then ok
else fail "no shared library can be made of libhewn.a" "$(cat "$work/whole.err")"; fi

if $NM "$work/driver_only" | grep -q 'hewn_module_sm'; then
    fail "a program that calls no kernel family links kernels"
else ok; fi
# families USER OWN OTHER: the user's own kernels are linked, nothing of the other family is
families() {
    if $NM "$work/$1" | grep -q "hewn_module_sm_.*_$2_"; then ok; else fail "$1 links no $2 kernel"; fi
    if $NM "$work/$1" | grep -q "hewn_.*$3"; then fail "$1 links $3" "$($NM "$work/$1" | grep "hewn_.*$3")"; else ok; fi
    echo "$1: $(size "$work/$1" | awk 'NR == 2 {print $1 + $2}') bytes of text and data"
}
families gemm_user gemm attention
families attention_user attention gemm

text=$(find "$BUILD/obj/runtime" -name '*.o' -exec size {} + | awk '$1 ~ /^[0-9]+$/ && $NF !~ /TOTALS/ {t += $1} END {print t + 0}')
echo "runtime text without kernels: $text bytes"
# 128 KB for plans and runs, 16 KB for tuning at run time, 10 KB each for grouped products and for 4-bit weights, 4 KB for block scales,
# 8 KB for weighted sums of rows, which are linked only where used, and for groups on Blackwell
if [ "$text" -gt 0 ] && [ "$text" -lt 180224 ]; then ok; else fail "runtime text is $text bytes, the limit is 180223"; fi
data=$(find "$BUILD/obj/runtime" -name '*.o' ! -name describe.o -exec $NM {} + | grep -E ' [bBdD] ' | grep -v -E '\.rel\.ro')
if [ -z "$data" ] || [ -z "$(echo "$data" | grep -E ' [bB] ')" ]; then ok; else fail "the runtime has global mutable state" "$data"; fi
# But for the list of what describe.c has unpacked, which no plan and no launch links.
data=$($NM "$BUILD/obj/runtime/describe.o" | grep -E ' [bBdD] ' | grep -v ' b kept$')
if [ -z "$data" ]; then ok; else fail "describe.c has more global mutable state than its list" "$data"; fi
if $NM "$work/gemm_user" | grep -q ' hewn_module_describe'; then fail "a program that plans links describe.c"; else ok; fi

for std in c99 c11; do
    echo '#include "hewn.h"' >"$work/header.c"
    if $CC -std=$std -Wall -Wextra -Wpedantic -Werror -I"$SRC/include" -fsyntax-only "$work/header.c" 2>"$work/header.err"; then ok
    else fail "hewn.h as $std" "$(cat "$work/header.err")"; fi
done
if command -v "${CXX:-c++}" >/dev/null 2>&1; then
    if "${CXX:-c++}" -x c++ -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$SRC/include/hewn.h" 2>"$work/header.err"; then ok
    else fail "hewn.h as C++" "$(cat "$work/header.err")"; fi
else
    skip "hewn.h as C++: no C++ compiler"
fi
finish
