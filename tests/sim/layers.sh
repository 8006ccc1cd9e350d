#!/bin/sh
# The simulator's rooms and their order: an include leads to its own room or to one on the left, never to a
# sibling, and names its room; no two headers have one name; what stands left of a room links without it.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/layers
rm -rf "$work"
mkdir -p "$work"

# judge TREE: each breach in a line of its own. Rooms of one rank are siblings.
judge() {
    (cd "$1" && find . -type f \( -name '*.[ch]' -o -name '*.def' \) | sort | xargs awk '
        BEGIN {
            n = split("ptx:1 decode:2 machine:3 async:4 ops:5 check:6 explore:6 trace:6 worksheet:6 cuda:7", rooms, " ")
            for (i = 1; i <= n; i++) { split(rooms[i], r, ":"); rank[r[1]] = r[2] }
            outside["cuda/hewn.h"] = outside["cuda/driver_abi.h"] = 1
        }
        FNR == 1 {
            parts = split(substr(FILENAME, 3), path, "/")
            room = path[1]; name = path[parts]
            if (parts != 2 || !(room in rank)) print FILENAME ": in no room of the order"
            if (name ~ /\.h$/ && name in seen) print FILENAME ": has the name of " seen[name]
            seen[name] = FILENAME
            have[room "/" name] = 1
        }
        /^[ \t]*#[ \t]*include/ {
            target = $0
            system_header = target ~ /^[^"]*</
            sub(/^[^"<]*["<]/, "", target); sub(/[">].*/, "", target)
            if (system_header) {
                if (target ~ /^([a-z]+|sys\/[a-z]+)[.]h$/ && !("cuda/" target in outside)) next
                print FILENAME ":" FNR ": no header of the system: <" target ">"
                next
            }
            if (room "/" target in outside) next
            if (split(target, to, "/") != 2 || !(to[1] in rank)) print FILENAME ":" FNR ": names no room: " target
            else if (to[1] != room && rank[to[1]] >= rank[room])
                print FILENAME ":" FNR ": leads from " room " to " to[1] ": " target
            else { wanted[target] = FILENAME ":" FNR }
        }
        END { for (t in wanted) if (!(t in have)) print wanted[t] ": includes what is not there: " t }')
}

breaches=$(judge "$SRC/tools/sim")
if [ -z "$breaches" ]; then ok; else fail 'includes against the order' "$breaches"; fi

# plant NAME FILE LINE WANT: one line more in a copy of the tree is one breach, and is told as WANT.
plant() {
    rm -rf "$work/tree"
    cp -R "$SRC/tools/sim" "$work/tree"
    chmod -R u+w "$work/tree"
    mkdir -p "$work/tree/$(dirname "$2")"
    printf '%s\n' "$3" >>"$work/tree/$2"
    got=$(judge "$work/tree")
    case $got in
    *"$4"*) if [ "$(printf '%s\n' "$got" | wc -l)" = 1 ]; then ok; else fail "$1: more than was planted" "$got"; fi ;;
    *) fail "$1: not told" "$got" ;;
    esac
}
plant 'to the right' decode/decode.c '#include "machine/machine.h"' 'leads from decode to machine'
plant 'far to the right' async/mbar.h '  #  include "check/report.h"' 'leads from async to check'
plant 'to a sibling' worksheet/worksheet.h '#include "trace/record.h"' 'leads from worksheet to trace'
plant 'no room' check/order.c '#include "order.h"' 'names no room: order.h'
plant 'out of the tree' ops/op_mem.c '#include "../runtime/driver.h"' 'names no room'
plant 'the API, elsewhere than in cuda' machine/mem.c '#include "driver_abi.h"' 'names no room: driver_abi.h'
plant 'in angle brackets' machine/mem.c '#include <check/report.h>' 'no header of the system: <check/report.h>'
plant 'nothing there' machine/mem.c '#include "ptx/nothing.h"' 'what is not there: ptx/nothing.h'
plant 'two headers of one name' check/calls.h '/* */' 'has the name of ./'
plant 'a room of no rank' extra/extra.c '/* */' 'in no room'

# Shared objects without an undefined symbol: each prefix of the order, and each sibling on top of the last.
# links ROOM…: links their objects alone
links() {
    objects=
    for room in "$@"; do
        for source in "$SRC/tools/sim/$room"/*.c; do
            objects="$objects $BUILD/obj/tools/sim/$room/$(basename "$source" .c).o"
        done
    done
    # Split into words on purpose.
    $CC -shared -Wl,-z,defs $objects -o "$work/rooms.so" -lm -lpthread >"$work/link.log" 2>&1
}
alone() { if links "$@"; then ok; else fail "$* do not link alone" "$(cat "$work/link.log")"; fi; }
case $MODE in
rel | dbg)
    left=
    for room in ptx decode machine async ops; do
        left="$left $room"
        alone $left
    done
    for room in check explore trace worksheet; do alone $left $room; done
    if links ptx decode machine ops; then fail 'ops link without async: the test sees nothing'; else ok; fi
    ;;
*) skip "prefixes of a $MODE build need its runtime" ;;
esac
finish
