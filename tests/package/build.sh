#!/bin/sh
# The build itself: the modules with and without ptxas, nothing rebuilt when nothing changed, install and
# uninstall, a read-only source tree.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/build
rm -rf "$work"
mkdir -p "$work"
log=$work/log
# From the same folder as the build and with the same BUILD: dependency files name both.
unset MAKEFLAGS MAKELEVEL # of the make that runs this: its -j asks for a jobserver
quiet_make() { make -f "$SRC/Makefile" --no-print-directory MODE="$MODE" CC="$CC" "$@" >"$log" 2>&1; }

again=$(make -f "$SRC/Makefile" --no-print-directory BUILD="$BUILD" MODE="$MODE" CC="$CC" PTXAS="$PTXAS" all 2>&1 | grep -v 'Nothing to be done')
if [ -z "$again" ]; then ok; else fail "make has work to do right after make" "$again"; fi

if [ -n "$PTXAS" ]; then
    for module in $(sed -n 's|^ *X(\([a-z0-9_]*\), *\([a-z0-9_]*\)).*|\1/\2|p' "$SRC/ptx/modules.def"); do
        case $module in sm_90a/*) archs=sm_90a ;; *) archs='sm_100 sm_103' ;; esac
        for arch in $archs; do
            cubin=$BUILD/modules/$module.$arch.cubin
            if [ -s "$cubin" ]; then ok; else fail "no $cubin"; fi
        done
    done
    for json in "$BUILD"/modules/*/*.json; do
        if grep -q '"spill' "$json" && ! grep -E '"spill[a-z_]*": *[1-9]' "$json" >/dev/null; then ok
        else fail "$json does not say zero spills"; fi
    done
    # what ptxas only mentions must fail the build
    good=$BUILD/obj/modules/sm_90a/gemm_bf16_f32.sm_90a.log
    if "$BUILD/mod" vet "$good" >"$log" 2>&1; then ok; else fail "vet of a clean ptxas log" "$(cat "$log")"; fi
    sed 's/0 bytes spill stores/16 bytes spill stores/' "$good" >"$work/spill.log"
    if "$BUILD/mod" vet "$work/spill.log" >"$log" 2>&1; then fail "vet lets spills pass"; else want "vet" "spill" "$log"; fi
    for advisory in "Potential Performance Loss: wgmma.mma_async instructions are serialized (C7510)" \
        "setmaxnreg ignored to maintain minimum register requirements (C7508)"; do
        { cat "$good"; echo "ptxas info    : $advisory"; } >"$work/advisory.log"
        if "$BUILD/mod" vet "$work/advisory.log" >"$log" 2>&1; then fail "vet lets pass: $advisory"; else ok; fi
    done
else
    skip "cubins, registers and spills: no ptxas"
fi

# What the library holds can be chosen; a word that names nothing is an error that lists what there is.
for bad in HEWN_TARGETS=sm_80 HEWN_FAMILIES=conv HEWN_TARGETS= HEWN_FAMILIES=; do
    if quiet_make BUILD="$work/none" -n $bad all; then fail "make $bad passes"; else ok; fi
    case $bad in HEWN_T*) there='sm_100f sm_90a' ;; *) there='attention decode engine gemm grouped indexer mla topk w4' ;; esac
    want "make $bad" "${bad%=*}.*: $there" "$log"
done

for less in HEWN_TARGETS=sm_90a HEWN_FAMILIES=attention; do
    if quiet_make BUILD="$work/none" -n $less check; then fail "make $less check passes"; else ok; fi
    case $less in HEWN_T*) lacks=sm_100f ;; *) lacks='decode engine gemm grouped indexer mla topk w4' ;; esac
    want "make $less check" "leave out: $lacks" "$log"
done

if [ "$SUITE" = all ]; then
    if quiet_make BUILD="$work/bare" PTXAS= CUDA_HOME=/nonexistent all; then ok; else fail "build without a toolkit" "$(tail -n 5 "$log")"; fi
    want "build without a toolkit says so" "ptxas not found" "$log"
fi

if quiet_make BUILD="$BUILD" PTXAS="$PTXAS" PREFIX=/usr DESTDIR="$work/root" install; then ok
else fail "make install" "$(tail -n 5 "$log")"; fi
for f in include/hewn.h lib/libhewn.a lib/libhewn.so lib/libhewn.so.0 lib/pkgconfig/hewn.pc bin/hewn share/man/man1/hewn.1 \
    lib/hewn/sim/libcuda.so.1 lib/hewn/sim/libnvrtc.so.13 lib/hewn/sim/bin/ptxas lib/hewn/watch/libhewn-watch.so; do
    if [ -e "$work/root/usr/$f" ]; then ok; else fail "install leaves no $f"; fi
done
# what the library holds, and not what an earlier build with other settings left
installed=$work/root/usr/share/hewn/modules
diff -r "$BUILD/modules" "$installed" | grep -v "^Only in $BUILD" >"$log"
if [ ! -s "$log" ]; then ok; else fail "other modules are installed than built" "$(cat "$log")"; fi
status "installed PTX texts" "$("$BUILD/hewn" modules | sed 1d | wc -l)" "$(find "$installed" -name '*.ptx' | wc -l)"
# pkg_config OPTIONS…: of the installed tree
pkg_config() {
    PKG_CONFIG_PATH=$work/root/usr/lib/pkgconfig pkg-config --define-variable=prefix="$work/root/usr" "$@" hewn
}
if command -v pkg-config >/dev/null 2>&1; then
    cat >"$work/use.c" <<'EOF'
#include <hewn.h>
int main(void)
{
    return hewn_dtype_size(HEWN_BF16) == 2 && hewn_family_count(hewn_gemm_family()) > 0 ? 0 : 1;
}
EOF
    shared=$(pkg_config --cflags --libs)
    # with the shared library beside it, the archive is asked for by its name
    static=$(pkg_config --static --cflags --libs | sed 's/-lhewn/-l:libhewn.a/')
    case $MODE in rel | dbg)
        # shellcheck disable=SC2086
        if $CC "$work/use.c" $shared -o "$work/use" && LD_LIBRARY_PATH=$work/root/usr/lib "$work/use" &&
            readelf -d "$work/use" | grep -q 'NEEDED.*libhewn\.so\.0'; then ok
        else fail "a program built with pkg-config --libs hewn" "$shared"; fi
        # shellcheck disable=SC2086
        if $CC "$work/use.c" $static -o "$work/use" && "$work/use" &&
            ! readelf -d "$work/use" | grep -q libhewn; then ok
        else fail "a program built with pkg-config --static --libs hewn" "$static"; fi ;;
    esac
else
    skip "pkg-config file: no pkg-config"
fi
if "$work/root/usr/bin/hewn" modules | grep -q gemm_bf16_f32; then ok; else fail "the installed hewn lists no modules"; fi
if quiet_make BUILD="$BUILD" PREFIX=/usr DESTDIR="$work/root" uninstall && [ -z "$(find "$work/root" ! -type d)" ]; then ok
else fail "uninstall leaves files" "$(find "$work/root" ! -type d)"; fi
finish
