#!/bin/sh
# The simulated library has every function of the real one, as the toolkit's library for linking lists them: a program
# that looks its functions up fails at the call it makes and not before.
. "$SRC/tests/lib/lib.sh"
real=$CUDA_HOME/lib64/stubs/libcuda.so
if [ ! -f "$real" ] || ! command -v nm >/dev/null; then
    skip "the library's functions: no toolkit at CUDA_HOME, or no nm"
    finish
    exit
fi
dir=$BUILD/tests/symbols
mkdir -p "$dir"
names() { nm -D --defined-only "$1" | sed -n 's/.* [TWDA] \(cu[A-Z][A-Za-z0-9_]*\).*/\1/p' | sort -u; }
names "$real" >"$dir/real"
names "$SIM" >"$dir/ours"
[ "$(wc -l <"$dir/real")" -gt 500 ] && ok || fail "the toolkit's library lists $(wc -l <"$dir/real") functions"
# Graphs, pools and the legacy linker: their newer variants.
later=
missing=$(comm -23 "$dir/real" "$dir/ours" | grep -vE "$later")
[ -z "$missing" ] && ok || fail "functions that the simulated library lacks" "$missing"
# The names of per-thread default streams are the functions themselves.
for name in cuMemcpyHtoD_v2_ptds cuLaunchKernel_ptsz cuStreamSynchronize_ptsz; do
    [ "$(nm -D "$SIM" | sed -n "s/ . $name\$//p")" = "$(nm -D "$SIM" | sed -n "s/ . ${name%_pt*}\$//p")" ] && ok ||
        fail "$name is another function than ${name%_pt*}"
done
finish
