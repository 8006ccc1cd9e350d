#!/bin/sh
# The MLA kernels under several schedules: clean, and the same bits at every seed and number of host threads; and
# against the worksheet that they declare.
. "$SRC/tests/lib/lib.sh"
. "$SRC/tests/lib/schedules.sh"
mla=$BUILD/tests/mla

share=0/36 others='3 2' many= # of the cases, for bits; seeds and threads; a case of many queries, four seconds
[ "$SUITE" = all ] && share=0/4 others='2 1 3 2' many=36
bits() { # GPU SEED THREADS
    HEWN_LIBCUDA=$SIM HEWN_SIM_GPU=$1 HEWN_SIM_QUIET=1 HEWN_SIM_CHECK=0 HEWN_SIM_SEED=$2 HEWN_SIM_THREADS=$3 \
        "$mla" --digest --share $share | grep '^digest'
}
for gpu in h200 b200; do
    # 8: many blocks over several CTAs; 13: two tiles, causal; 19: pages of 61, row by row; 22: every length. 71:
    # records of 584 bytes, causal, split; 78: two caches of them. On an H200 also 30: lists with holes; 36: lists,
    # many queries; 48: records, causal, split; few rows of records: 53: many items, causal, 57: lists, 77: two caches
    # of 584 bytes; two caches, 76 of records of 656 bytes, 83 of plain rows.
    lists='71 78' listed='71 78'
    [ $gpu = h200 ] && lists="30 $many 48 53 57 71 76 77 78 83" listed='30 48 53 71 76 77 78 83'
    schedules $gpu "$mla" 8 13 19 22 $lists
    sheets $gpu "$mla" 13 22 $listed
    first=$(bits $gpu 1 1)
    set -- $others
    while [ $# -gt 0 ]; do
        if [ "$(bits $gpu "$1" "$2")" = "$first" ]; then ok
        else fail "other bits on $gpu with seed $1 and $2 threads"; fi
        shift 2
    done
done
finish
