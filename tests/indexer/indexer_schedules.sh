#!/bin/sh
# The indexer's kernels under several schedules: clean, and against the worksheet that they declare.
. "$SRC/tests/lib/lib.sh"
. "$SRC/tests/lib/schedules.sh"
for gpu in h200 b200; do
    # 5: 127 keys without pages; 13: 64 heads, 4 queries; 20: 32 heads, 17 queries; 32: pages of 24, their scales apart.
    schedules $gpu "$BUILD/tests/indexer" 5 13 20 32
    sheets $gpu "$BUILD/tests/indexer" 13 32
done
finish
