#!/bin/sh
# libFuzzer on every reader of tests/fuzz/fuzz.h, with AddressSanitizer and UndefinedBehaviorSanitizer:
# SECONDS_EACH seconds each (make fuzz), 5 as a part of make check-all. Corpora stay in $BUILD/fuzz, what
# breaks a reader in $BUILD/fuzz/found. Settings: FUZZ_TARGETS some of the readers, FUZZ_CC another clang.
set -u
. "$SRC/tests/lib/lib.sh"

if [ "${SUITE:-all}" != all ]; then finish; exit; fi
seconds=${SECONDS_EACH:-5}
clang=${FUZZ_CC:-clang}
case $BUILD in /*) dir=$BUILD/fuzz ;; *) dir=$PWD/$BUILD/fuzz ;; esac
mkdir -p "$dir/found"

# A build of its own: every object has the fuzzer's counters.
printf 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d && n ? 0 : 0; }\n' >"$dir/empty.c"
if ! "$clang" -fsanitize=fuzzer,address,undefined "$dir/empty.c" -o "$dir/empty" 2>/dev/null; then
    skip "no clang with libFuzzer here (FUZZ_CC)"
    finish
    exit
fi
engine=$dir/build/tests/fuzzer
# What make was called with here is not for this build.
if ! env -u MAKEFLAGS -u MAKEOVERRIDES make -C "$SRC" MODE=fuzz BUILD="$dir/build" CC="$clang" PTXAS= "$engine" >"$dir/build.log" 2>&1; then
    fail "the fuzzer does not build" "$(tail -n 12 "$dir/build.log")"
    finish
    exit
fi
"$BUILD/tests/fuzz" --write "$dir" || fail "no seeds"
# The zoo's kernels as the front end sees them, behind the preprocessor: every family of instructions.
for f in "$SRC"/tests/zoo/*.ptx; do
    "$clang" -E -P -undef -nostdinc -x assembler-with-cpp -I"$SRC/tests/zoo" -I"$SRC/ptx" "$f" \
        -o "$dir/ptx/zoo-$(basename "$f" .ptx)" 2>/dev/null
done
targets=${FUZZ_TARGETS:-$(sed -n 's/^ *X(\([a-z0-9]*\), .*/\1/p' "$SRC/tests/fuzz/fuzz.h")}
for t in $targets; do
    ln -sf build/tests/fuzzer "$dir/fuzzer_$t"
    if "$dir/fuzzer_$t" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 -max_len=65536 -close_fd_mask=1 \
        -artifact_prefix="$dir/found/$t-" "$dir/$t" >"$dir/$t.log" 2>&1; then
        ok
        printf '%s: %s\n' "$t" "$(tail -n 1 "$dir/$t.log")"
    else
        fail "$t" "$(grep -e ERROR -e SUMMARY -e 'Test unit' -e '    #[0-9] ' "$dir/$t.log")"
    fi
done
finish
