# For test scripts: ok NAME / fail NAME WHY / skip NAME WHY, then finish.
passed=0 failed=0 skipped=0
self=$(basename "$0" .sh)
ok() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    printf 'FAIL %s: %s\n' "$self" "$1"
    shift
    [ $# -gt 0 ] && printf '%s\n' "$@" | head -n 12 | sed 's/^/      /'
    return 0
}
skip() {
    skipped=$((skipped + 1))
    printf 'SKIP %s: %s\n' "$self" "$1"
}
# want NAME TEXT FILE: FILE contains TEXT
want() { if grep -q -e "$2" "$3"; then ok; else fail "$1: no \"$2\" in the output" "$(tail -n 12 "$3")"; fi; }
# status NAME WANTED GOT
status() { if [ "$2" = "$3" ]; then ok; else fail "$1: exit status $3, want $2"; fi; }
finish() {
    printf '%s: %d passed, %d failed, %d skipped\n' "$self" $passed $failed $skipped
    [ $failed -eq 0 ]
}
