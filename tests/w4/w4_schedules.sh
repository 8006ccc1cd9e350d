#!/bin/sh
# The kernels of 4-bit weights under several schedules: clean, and against the worksheet that they declare.
. "$SRC/tests/lib/lib.sh"
. "$SRC/tests/lib/schedules.sh"
# 30, 52: groups of 32, of 128; 140: four chunks, zero points, 64 rows; 174 to 184: parts of K, short last chunk.
schedules h200 "$BUILD/tests/w4" 30 52 140 174 180
sheets h200 "$BUILD/tests/w4" 176 180 184
finish
