#!/bin/sh
# What version 0.2 of hewn.h promised still holds: baseline/hewn-0.2.h is that header, kept as it was.
# Today's header must offer all of it. A program compiled against it must run with a library whose structs
# have grown, and one compiled against grown structs with today's library, field by field.
. "$SRC/tests/lib/lib.sh"
from=$SRC/tests/runtime/baseline
work=$BUILD/tests/baseline
old=$work/old new=$work/new
mkdir -p "$old" "$new"
cp "$from/hewn-0.2.h" "$old/hewn.h"
warn='-std=c11 -O1 -Wall -Wextra -Wpedantic -Werror'

# facts HEADER FILE: what a caller can rely on, by baseline/header.awk.
facts() { awk -f "$from/header.awk" "$1" >"$2"; }
facts "$old/hewn.h" "$work/old.facts"

# Numbers of the old header, as assertions for the new one and as sizes for the caller.
awk -F '\t' '
    BEGIN { print "#include \"hewn.h\"\n#include <stdio.h>\nint main(int argc, char **argv)\n{\n(void)argv;" }
    $1 == "struct" {
        rule = $3 == "sized" ? ">=" : "=="
        printf "if (argc == 1) printf(\"_Static_assert(sizeof(%s) %s %%zu, \\\"size of %s\\\");\\n\", sizeof(%s));\n", $2, rule, $2, $2
        if ($3 == "sized") printf "else printf(\"enum { FIRST_SIZE_%s = %%zu };\\n\", sizeof(%s));\n", $2, $2
    }
    $1 == "field" { printf "if (argc == 1) printf(\"_Static_assert(offsetof(%s, %s) == %%zu, \\\"place of %s.%s\\\");\\n\", offsetof(%s, %s));\n", $2, $3, $2, $3, $2, $3 }
    $1 == "value" { printf "if (argc == 1) printf(\"_Static_assert(%s == %%d, \\\"value of %s\\\");\\n\", (int)%s);\n", $2, $2, $2 }
    END { print "return 0;\n}" }' "$work/old.facts" >"$work/numbers.c"
if ! $CC -std=c11 -I"$old" "$work/numbers.c" -o "$work/numbers" 2>"$work/err"; then
    fail "the old header does not compile" "$(cat "$work/err")"
    finish
    exit
fi
{
    echo '#include "hewn.h"'
    "$work/numbers"
    awk -F '\t' '
        $1 == "declaration" { print $2 ";" }
        $1 == "field" && $4 != "" { printf "_Static_assert(_Generic(&((%s *)0)->%s, %s: 1, default: 0), \"type of %s.%s\");\n", $2, $3, $4, $2, $3 }' "$work/old.facts"
} >"$work/promises.c"

# promises HEADER: 0 where the header keeps all of them.
promises() {
    facts "$1/hewn.h" "$work/now.facts"
    cp "$work/promises.c" "$work/check.c"
    awk -F '\t' '
        function ends() { if (sized) printf "_Static_assert(offsetof(%s, %s) + sizeof(((%s *)0)->%s) == sizeof(%s), \"%s: padding at the end\");\n", name, last, name, last, name, name }
        $1 == "struct" { ends(); sized = $3 == "sized"; name = $2 }
        $1 == "field" { last = $3 }
        END { ends() }' "$work/now.facts" >>"$work/check.c"
    $CC $warn -I"$1" -fsyntax-only "$work/check.c" 2>"$work/err"
}
if promises "$SRC/include"; then ok; else fail "hewn.h broke a promise of version 0.2" "$(grep error "$work/err")"; fi

# broken WHAT WORDS SED: the assertions see a header that `SED` spoiled.
broken() {
    mkdir -p "$work/broken"
    sed "$3" "$SRC/include/hewn.h" >"$work/broken/hewn.h"
    if cmp -s "$SRC/include/hewn.h" "$work/broken/hewn.h"; then fail "$1: the header is unchanged"
    elif promises "$work/broken"; then fail "$1: not noticed"
    else want "$1" "$2" "$work/err"; fi
}
broken "a field that moved" 'place of hewn_gemm_desc.m' 's/^    int64_t m, n, k;/    int64_t n, m, k;/'
broken "a field of another type" 'type of hewn_gemm_args.beta' 's/^    float beta;/    uint32_t beta;/'
broken "a field that is gone" 'windows' 's/^    int windows; /    int window; /'
broken "another value" 'value of HEWN_E5M2' 's/HEWN_E5M2 = 4/HEWN_E5M2 = 5/'
broken "another parameter" 'conflicting types' 's/^int hewn_version(void);/int hewn_version(int);/'
broken "a frozen struct that grew" 'size of hewn_error' 's/char message\[480\]/char message[488]/'
broken "a struct that ends in padding" 'hewn_launch_desc: padding' 's/^    hewn_stream stream;/&\n    int later;/'

case $MODE in rel | dbg) ;; *)
    skip "old programs with grown structs: the library of a $MODE build needs the sanitiser in each of them"
    finish
    exit
    ;;
esac

# The grown header: today's, each struct that may grow with two words more.
facts "$SRC/include/hewn.h" "$work/now.facts"
{
    echo '/^#define HEWN_VERSION_MAJOR/i #define HEWN_TEST_TAIL'
    awk -F '\t' '$1 == "struct" && $3 == "sized" {
        print "/^} " $2 ";/i \\    uint64_t test_tail[2];" }' "$work/now.facts"
} >"$work/grow.sed"
sed -f "$work/grow.sed" "$SRC/include/hewn.h" >"$new/hewn.h"

# What both sides of a call agree on: the sizes and the fields of version 0.2.
"$work/numbers" sizes >"$work/sizes.inc"
awk -F '\t' '
    function ends() { if (sized) print "END(" name ")" }
    $1 == "struct" { ends(); sized = $3 == "sized"; name = $2; if (sized) print "STRUCT(" name ")" }
    $1 == "field" && sized { print "FIELD(" name ", " $3 ", " $5 ")" }
    END { ends() }' "$work/old.facts" >"$work/fields.inc"

grown=
for f in "$SRC"/runtime/*.c; do
    o=$new/$(basename "$f" .c).o
    grown="$grown $o"
    if ! $CC $warn -D_GNU_SOURCE -I"$new" -c "$f" -o "$o" 2>"$work/err"; then
        fail "a library with grown structs does not compile" "$(cat "$work/err")"
        finish
        exit
    fi
done

# between NAME CALLER LIBRARY OBJECTS…: a program compiled against the header in CALLER runs with the
# library whose header is in LIBRARY.
between() {
    name=$1 caller=$2 library=$3
    shift 3
    include="-D_GNU_SOURCE -I$work -I$from"
    if $CC $warn -I"$caller" $include -c "$from/caller.c" -o "$work/caller.o" 2>"$work/err" &&
        $CC $warn -I"$library" $include -I"$SRC/runtime" -c "$from/probe.c" -o "$work/probe.o" 2>"$work/err" &&
        $CC -Wl,--wrap=hewn_struct_take,--wrap=hewn_struct_give "$work/caller.o" "$work/probe.o" "$@" \
            "$BUILD/libhewn.a" -ldl -lm -lpthread -o "$work/program" 2>"$work/err"; then
        HEWN_LIBCUDA="$SIM" HEWN_SIM_GPU=h200 "$work/program" >"$work/log" 2>&1
        if [ $? -eq 0 ]; then ok; else fail "$name" "$(cat "$work/log")"; fi
        echo "$name: $(tail -n 1 "$work/log")"
    else
        fail "$name: it does not build" "$(cat "$work/err")"
    fi
}
between "a program of version 0.2 with today's library" "$old" "$SRC/include"
between "a program of version 0.2 with grown structs in the library" "$old" "$new" $grown
between "a program with grown structs with today's library" "$new" "$SRC/include"
finish
