#!/bin/sh
# What a program weighs that links one kernel family, cubins included: of all targets, and of one. Libraries
# of one target or one family say what they lack.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/sizes
rm -rf "$work"
mkdir -p "$work"
unset MAKEFLAGS MAKELEVEL # of the make that runs this: its -j asks for a jobserver

case $MODE in rel) ;; *)
    skip "sizes: a $MODE build is larger than what ships"
    finish
    exit
    ;;
esac

# program FAMILY [TYPE] <<DESCRIPTION: it plans that on the driver that argv[1] names, and prints what came of it.
program() {
    {
        cat <<EOF
#include "hewn.h"
#include <stdio.h>
static const hewn_attention_source keys = {.struct_size = sizeof keys, .length = 64};
int main(int argc, char **argv)
{
    hewn_driver_options options = {.struct_size = sizeof options, .path = argc > 1 ? argv[1] : 0};
    hewn_$1_desc desc = {.struct_size = sizeof desc, .in = ${2:-HEWN_BF16}, .out = HEWN_F32,
EOF
        cat
        cat <<EOF
    };
    hewn_driver *driver = 0;
    hewn_context *context = 0;
    hewn_$1_plan *plan = 0;
    hewn_error err = {0};
    (void)keys;
    int rc = hewn_driver_open(&options, &driver, &err);
    if (!rc) rc = hewn_context_attach_primary(driver, 0, &context, &err);
    if (!rc) rc = hewn_$1_plan_create(context, &desc, &plan, &err);
    printf("%s %s\n", rc ? hewn_status_name(rc) : "planned", err.message);
    hewn_$1_plan_destroy(plan);
    hewn_context_detach(context);
    hewn_driver_close(driver);
    return 0;
}
EOF
    } >"$work/$1.c"
}
program gemm <<EOF
        .m = 64, .n = 64, .k = 64
EOF
program attention <<EOF
        .batch = 1, .q_heads = 1, .kv_heads = 1, .qk_dim = 64, .q_length = 64, .source = {&keys}
EOF
program grouped HEWN_E4M3 <<EOF
        .groups = 2, .m = 64, .n = 64, .k = 64
EOF
program mla <<EOF
        .batch = 1, .q_heads = 16, .q_length = 1, .length = 64
EOF

# library NAME MAKE-VARIABLE: $work/NAME/libhewn.a, from copies of what is built; only lists change.
library() {
    dir=$work/lib_$1
    mkdir -p "$dir/obj/tools"
    cp -a "$BUILD/modules" "$BUILD/mod" "$dir/"
    cp -a "$BUILD/obj/modules" "$BUILD/obj/packs" "$BUILD/obj/runtime" "$dir/obj/" 2>/dev/null
    cp -a "$BUILD/obj/tools/mod" "$dir/obj/tools/"
    if make -f "$SRC/Makefile" --no-print-directory BUILD="$dir" MODE="$MODE" CC="$CC" PTXAS="$PTXAS" \
        "$2" "$dir/libhewn.a" "$dir/libhewn.so.0" >"$dir.log" 2>&1; then ok
    else fail "make $2" "$(tail -n 5 "$dir.log")"; fi
    if grep -q 'PTXAS' "$dir.log"; then fail "make $2 assembles kernels again" "$(grep PTXAS "$dir.log")"; else ok; fi
}
# link FAMILY LIBRARY PROGRAM
link() {
    if $CC -std=c11 -I"$SRC/include" "$work/$1.c" "$2" -ldl -o "$work/$3" 2>"$work/$3.err"; then ok
    else fail "$1 with $2 does not link" "$(cat "$work/$3.err")"; fi
}
# weigh FAMILY LIBRARY PROGRAM LIMIT WHAT: linked, and as large as it may be
weigh() {
    link "$1" "$2" "$3"
    bytes=$(wc -c <"$work/$3")
    printf '%9d bytes (limit %d): a program with %s of %s\n' "$bytes" "$4" "$1" "$5"
    if [ -z "$PTXAS" ]; then return; fi
    if [ "$bytes" -le "$4" ]; then ok; else fail "a program with $1 of $5: $bytes bytes, more than $4"; fi
}
# says PROGRAM GPU TEXT
says() {
    HEWN_SIM_GPU=$2 HEWN_SIM_QUIET=1 "$work/$1" "$SIM" >"$work/$1.out" 2>&1
    want "$1 on $2" "$3" "$work/$1.out"
}

# most FAMILY TARGETS: the bytes that a program with it may have. Attention brings decode, with its kernels for e4m3.
most() {
    case $1-$2 in
    attention-all) echo 2600000 ;;
    attention-*) echo 1600000 ;;
    gemm-sm_100f) echo 2000000 ;;
    gemm-*) echo 3800000 ;;
    grouped-*) echo 1500000 ;;
    *) echo 1000000 ;;
    esac
}

weigh grouped "$BUILD/libhewn.a" grouped "$(most grouped all)" "all targets"
says grouped h200 '^planned'
says grouped b200 '^planned'
[ -n "$PTXAS" ] || skip "sizes: no ptxas, so no cubins to count"
for family in gemm attention mla; do
    weigh $family "$BUILD/libhewn.a" $family "$(most $family all)" "all targets"
    says $family h200 '^planned'
    says $family b200 '^planned'
done
for target in sm_90a sm_100f; do
    library $target HEWN_TARGETS=$target
    for family in gemm attention mla; do
        weigh $family "$work/lib_$target/libhewn.a" ${family}_$target "$(most $family $target)" "$target alone"
    done
done
says gemm_sm_90a h200 '^planned'
says gemm_sm_90a b200 '^HEWN_ERR_NO_MODULE .*capability 10.0; shipped for: sm_90a$'
says attention_sm_100f b200 '^planned'
says attention_sm_100f h200 '^HEWN_ERR_NO_MODULE .*capability 9.0; shipped for: sm_100f$'
library attention HEWN_FAMILIES=attention
for family in gemm attention; do link $family "$work/lib_attention/libhewn.a" ${family}_without; done
says attention_without h200 '^planned'
says gemm_without h200 '^HEWN_ERR_NO_MODULE gemm: this library was built without the family$'
rm -rf "$work"/lib_*
finish
