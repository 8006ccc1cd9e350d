#!/bin/sh
# The engine's tokens beside those of the Python package tokenizers: 2,000 random texts, in the long suite 100,000.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/tokenizer
rm -rf "$work"
mkdir -p "$work"
if ! "$PYTHON" -c 'import tokenizers' 2>/dev/null; then
    skip "tokens beside the package tokenizers: $PYTHON has no such package"
elif [ "$MODE" != rel ] && [ "$MODE" != dbg ]; then
    skip 'tokens beside the package tokenizers: a sanitised build'
else
    each=250
    [ "$SUITE" = all ] && each=12500
    "$PYTHON" "$SRC/tests/engine/tokenizer.py" "$BUILD/hewn-engine" "$SRC" "$work" $each 1 >"$work/log" 2>&1
    status=$?
    while read -r kind count wrong; do
        case $wrong in
        0) ok ;;
        [0-9]*) fail "$kind: $wrong of $count texts have other tokens" "$(grep -A 2 "^  $kind " "$work/log" | head -n 9)" ;;
        esac
    done <<EOF
$(grep '^[a-z]' "$work/log")
EOF
    [ $((passed + failed)) -ge 8 ] && [ $status -le 1 ] || fail 'the comparison did not end' "$(tail -n 8 "$work/log")"
fi
finish
