#!/bin/sh
# The manuals: their generated parts are as the code says, their links, paths, commands, options and variables
# exist, their C compiles and their programs run, README.md is short, and the man page is clean. A planted manual with one mistake of
# each sort shows that the checks can fail.
. "$SRC/tests/lib/lib.sh"
mkdir -p "$BUILD/tests/docs"
build=$(cd "$BUILD" && pwd)
work=$build/tests/docs
cd "$SRC" || exit 1
unset HEWN_SIM_QUIET HEWN_SIM_GPU HEWN_SIM_CHECK
find . -name '*.md' ! -path './.git/*' ! -path './build*' ! -path "$build/*" | sed 's|^\./||' | sort >"$work/manuals"

# extract FILE: a line for each thing to check: LINE, what (link, code, command, name, anchor), text
extract() {
    awk -v OFS='\t' '
        function each(text, pattern, what, cut,    at) {
            while (match(text, pattern)) {
                at = substr(text, RSTART + cut, RLENGTH - cut - (what == "name" ? 0 : 1))
                print NR, what, at
                text = substr(text, RSTART + RLENGTH)
            }
        }
        /^## / { renames = /^## Names of/ } # the first column of the tables there has old names
        {
            now = $0
            if (renames) sub(/^\|[^|]*\|/, "", now)
            each(now, "(HEWN_[A-Z0-9]|hewn_[a-z0-9])[A-Za-z0-9_]+", "name", 0)
        }
        /^<!-- generated: \$ /, /^<!-- end -->/ { next }
        /^ *```/ { fenced = !fenced; next }
        fenced { print NR, "command", $0; next }
        /^    / { print NR, "command", substr($0, 5); next }
        /^#+ / {
            slug = tolower($0); sub(/^#+ +/, "", slug); gsub(/[^a-z0-9 _-]/, "", slug); gsub(/ /, "-", slug)
            print NR, "anchor", slug
        }
        {
            each($0, "\\]\\([^)]*\\)", "link", 2)
            each($0, "src=\"[^\"]*\"", "link", 5)
            each($0, "`[^`]+`", "code", 1)
        }' "$1"
}

# complain FILE LINE WHAT: counted by the caller
complain() { printf '%s:%s: %s\n' "$1" "$2" "$3"; }

anchors_of() { extract "$1" | awk -F '\t' '$2 == "anchor" { print $3 }'; }

link() { # FILE LINE TARGET
    case $3 in http://* | https://*) return ;; esac
    target=${3%%#*}
    path=$1
    [ -n "$target" ] && path=$(dirname "$1")/$target
    if [ ! -e "$path" ]; then complain "$1" "$2" "link to $3: no such file"; return; fi
    case $3 in
    *#*) anchors_of "$path" | grep -qx -- "${3#*#}" || complain "$1" "$2" "link to $3: no such heading" ;;
    esac
}

# A name in code is a path when it begins with a folder of the tree, or ends as source files do.
code() { # FILE LINE TEXT
    case $3 in
    *[!A-Za-z0-9_./*{},-]* | *NAME* | *FILE* | *FAMILY* | *DIR* | *TRACE*) return ;;
    build/tests/logs) ;;
    build/*)
        [ -e "$build/${3#build/}" ] || grep -qF "/${3#build/}" Makefile tests/tests.mk ptx/modules.mk ||
            complain "$1" "$2" "$3: the build makes no such file"
        ;;
    tests/* | tools/* | ptx/* | runtime/* | include/* | .ci/*)
        # shellcheck disable=SC2086
        set -- "$1" "$2" "$3" $3
        [ -e "$4" ] || complain "$1" "$2" "$3: no such file"
        ;;
    */*) ;;
    *.c | *.h | *.def | *.md | *.mk | *.sh | *.py | *.inc | *.svg | *.txt)
        [ -n "$(find . -name "$3" ! -path './build*' -print -quit)" ] || grep -rqF -- "$3" tools tests/*/*.[ch] ||
            complain "$1" "$2" "$3: no file of this name, and none that a program writes"
        ;;
    esac
}

name() { # FILE LINE NAME, or the beginning of names, which ends in _
    case $3 in *_) whole= ;; *) whole=-w ;; esac
    grep -rq $whole --include='*.[ch]' --include='*.sh' --include='*.py' --include='*.def' --include='Makefile' \
        --include='*.mk' -- "$3" include runtime tools tests ptx Makefile || complain "$1" "$2" "$3 is nowhere in the code"
}

make_word() { # FILE LINE WORD
    case $3 in
    *=*) grep -q "\b${3%%=*}\b" Makefile tests/tests.mk ptx/modules.mk ||
        complain "$1" "$2" "make $3: no such variable" ;;
    -*) ;;
    *) grep -qE "^(\.PHONY:.* )?([a-z -]* )?$3( |:|$)" Makefile tests/tests.mk ptx/modules.mk ||
        complain "$1" "$2" "make $3: no such target" ;;
    esac
}

# The words of a command line, as far as they are ours: make, hewn, a test program, a script.
command_line() { # FILE LINE TEXT
    file=$1 at=$2 program='' topic=''
    set -f
    # shellcheck disable=SC2086
    set -- ${3%%  #*}
    set +f
    for word; do
        case $program:$word in
        tests:--*)
            grep -rqF --include='*.c' -- "\"$word\"" tests || complain "$file" "$at" "$word: no test program takes it"
            ;;
        tests:*) ;;
        *:hewn | *:build/hewn) program=hewn topic='' ;;
        *:make) program=make ;;
        *:build/tests/NAME | *:build/tests/logs) return ;;
        *:build/tests/*)
            program=tests
            [ -e "$build/${word#build/}" ] || complain "$file" "$at" "$word: no such program"
            ;;
        :sh | :'$' | :HEWN_*=*) ;;
        :tests/*) code "$file" "$at" "$word"; return ;;
        :*) return ;;
        make:'#') return ;;
        make:*) make_word "$file" "$at" "$word" ;;
        hewn:./* | hewn:PROGRAM | hewn:…) return ;;
        hewn:-*)
            grep -q -- "^  ${word%%=*}\b" "$work/help.$topic" 2>/dev/null || [ "$word" = --help ] ||
                [ "$word" = --version ] || complain "$file" "$at" "hewn $topic $word: no such option"
            ;;
        hewn:*)
            if [ -z "$topic" ]; then
                topic=$word
                case $word in COMMAND | help) return ;; esac
                "$build/hewn" help "$topic" >"$work/help.$topic" 2>/dev/null ||
                    { complain "$file" "$at" "hewn $topic: no such command"; return; }
            fi
            ;;
        esac
    done
}

# faults FILE: everything that is wrong in it, a line each
faults() {
    extract "$1" | while IFS="$(printf '\t')" read -r line what text; do
        case $what in
        link) link "$1" "$line" "$text" ;;
        code)
            code "$1" "$line" "$text"
            case $text in make\ * | hewn\ * | build/tests/*) command_line "$1" "$line" "$text" ;; esac
            ;;
        command) command_line "$1" "$line" "$text" ;;
        name) name "$1" "$line" "$text" ;;
        esac
    done
}

# ---- what is generated ----
# shellcheck disable=SC2046
if "$build/docs" --check "$build" $(grep -l '^<!-- generated: ' $(cat "$work/manuals")) >"$work/out" 2>&1; then ok
else fail 'generated parts are stale: run make docs' "$(cat "$work/out")"; fi
sed 's/^| `race` | error/| `race` | warning/' tools/sim/MANUAL.md >"$work/stale.md"
"$build/docs" --check "$build" "$work/stale.md" >"$work/out" 2>&1
status 'a stale table is found' 1 $?

# ---- links, paths, commands, names ----
while read -r manual; do
    faults "$manual" >"$work/out"
    if [ -s "$work/out" ]; then fail "$manual" "$(cat "$work/out")"; else ok; fi
done <"$work/manuals"
{
    printf '%s\n' '# Planted' '[a](none.md) [b](#nowhere)' '`tests/none.c` `no-such-file.c` `build/none`'
    printf '%s\n' '`make none` `hewn none` `hewn check --none ./app` HEWN_''ABSENT'
    printf '%s\n' '' '    build/tests/none --list' '    build/tests/gemm --none' '    make NONE=1 check' '    sh tests/none.sh'
} >"$work/planted.md"
faults "$work/planted.md" >"$work/out"
status 'mistakes found in a planted manual' 13 "$(wc -l <"$work/out" | tr -d ' ')"

# ---- README.md, and the C in the manuals ----
lines=$(wc -l <README.md)
if [ "$lines" -le 200 ]; then ok; else fail "README.md has $lines lines, 200 at most"; fi
blocks=0 programs=0
while read -r manual; do
    rm -f "$work"/block*.c
    awk -v out="$work/block" '/^```c$/ { on = 1; n++; next } /^```$/ { on = 0 } on { print > (out n ".c") }' "$manual"
    for block in "$work"/block*.c; do
        [ -e "$block" ] || continue
        blocks=$((blocks + 1))
        # shellcheck disable=SC2086
        if $CC -std=c11 -Wall -Wextra -Werror -Iinclude -Itests -c "$block" -o "$work/block.o" 2>"$work/out"; then ok
        else fail "a block of C in $manual does not compile" "$(cat "$work/out")"; fi
        if ! grep -q '^int main' "$block" || ! grep -q '<hewn.h>' "$block"; then continue; fi
        case $MODE in rel | dbg) ;; *) skip "the program in $manual: no sanitiser is linked to it"; continue ;; esac
        programs=$((programs + 1))
        if $CC -std=c11 -Iinclude "$block" "$build/libhewn.a" -ldl -o "$work/program" >"$work/out" 2>&1 &&
            HEWN_LIBCUDA=$SIM HEWN_SIM_STRICT=1 "$work/program" >"$work/out" 2>&1; then ok
        else fail "the program in $manual does not run on the simulator" "$(cat "$work/out")"; fi
    done
done <"$work/manuals"
if [ "$blocks" -gt 0 ]; then ok; else fail 'no block of C was found'; fi
case $MODE in rel | dbg) if [ $programs -gt 0 ]; then ok; else fail 'no complete program was found'; fi ;; esac

# ---- every room, command, option and variable is told ----
for room in tests/*/ tools/sim/*/; do
    [ -n "$(ls "$room")" ] || continue # a folder left empty is no room
    case $room in tests/*) manual=tests/README.md ;; *) manual=tools/sim/MANUAL.md ;; esac
    if grep -q "^|.*\`${room%/}[/\`]" $manual; then ok; else fail "$manual has no row for $room"; fi
done
for option in $(grep -oh '"--[a-z][a-z-]*"' tools/hewn/*.c | tr -d '"' | sort -u); do
    case $option in --help | --version) continue ;; esac
    if grep -q -- "\"$option\"\|X(${option#--})" tools/hewn/usage.def tools/hewn/run_text.c; then ok
    else fail "$option is understood, and usage.def does not tell it"; fi
done
for name in $(grep -roh 'getenv("HEWN_[A-Z_]*")' runtime tools | sed 's/.*("\(.*\)")/\1/' | sort -u); do
    case $name in HEWN_WATCH_*) manual=tools/watch/MANUAL.md ;; *) manual=tools/sim/MANUAL.md ;; esac
    if grep -q "^| \`$name\`" $manual; then ok; else fail "$name is read, and $manual does not tell it"; fi
done

# ---- every form of tcgen05, of copies, mbarriers and clusters that a kernel uses is known elsewhere ----
# rowless FILE…: forms in these texts that no row of IDIOMS.md has
names='tcgen05|clusterlaunchcontrol|cp\.async\.bulk|cp\.reduce\.async|mbarrier|mapa|barrier\.cluster|fence\.proxy|fence\.mbarrier_init|st\.async|red\.async|multimem|(ld|st|red|atom)\.[a-z]*\.sys'
sed -nE "s/^\| \`(($names)\.[^\`]*)\`.*/\1/p" ptx/sm_100f/IDIOMS.md >"$work/rows"
rowless() {
    sed 's/ \.multicast/.multicast/' "$@" | grep -ohE "\b($names)\.[a-zA-Z0-9_.:]*" | sort -u | while read -r form; do
        # shellcheck disable=SC2254  # the row is a pattern
        while read -r row; do case $form in $row) continue 2 ;; esac; done <"$work/rows"
        printf '%s\n' "$form"
    done
}
rowless "$build"/modules/sm_100f/*.ptx >"$work/out"
if [ -s "$work/out" ]; then fail 'ptx/sm_100f/IDIOMS.md has no row for:' "$(cat "$work/out")"; else ok; fi
echo 'tcgen05.shift.cta_group::1.down [%r1]; tcgen05.wait::ld.sync.aligned; mapa.shared::cluster.u64 %rd1, %rd2, 1;' >"$work/planted.ptx"
status 'forms of a planted text without a row' 'mapa.shared::cluster.u64 tcgen05.shift.cta_group::1.down' "$(rowless "$work/planted.ptx" | xargs)"
if command -v mandoc >/dev/null 2>&1; then # the page has a version and no date
    mandoc -Tlint -Wall "$build/hewn.1" | grep -v 'missing date' >"$work/out"
    if [ -s "$work/out" ]; then fail 'the man page' "$(cat "$work/out")"; else ok; fi
else
    skip 'the man page: no mandoc here'
fi
finish
