#!/bin/sh
# Outside decode and ops nobody asks an instruction for its name, its modifiers or its handler: what it is stands in
# its traits (tools/sim/decode/traits.h). Opcodes are read from decode's lists. The parser is left out, because calls,
# labels and video operands have a syntax of their own.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/opcodes
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd) # judge reads it from another directory

# Words that are printed or are features of the host, never compared with an instruction: FILE WORD…
printed='
check/order.h cp.async tcgen05.ld tcgen05.st wgmma.mma_async
check/order_lanes.c fence.proxy.async.shared::cta.
machine/finding.h setmaxnreg trap
machine/lanes.h fma row->name
machine/machine.h bar.warp.sync nanosleep
trace/record.c cp.async mma ld st
trace/timeline.c exit
worksheet/worksheet.h cp cp.async mma tcgen05.cp ld tcgen05.ld st tcgen05.st
worksheet/worksheet_text.c barrier row->name src->mods
worksheet/worksheet_view.c wgmma
'
# The names of the table and of all that PTX has, one a line.
names() {
    {
        cat "$1"/decode/ops_*.def | sed -n 's/^ *[A-Z_]*("\([a-z][a-z0-9_.:]*\)".*/\1/p'
        tr ' ' '\n' <"$1/decode/mnemonics.def" | sed -n 's/^M("\(.*\)")$/\1/p'
    } | sort -u
}
# judge TREE: each breach in a line of its own.
judge() {
    names "$1" >"$work/names"
    printf '%s' "$printed" >"$work/printed"
    (cd "$1" && find machine async check trace worksheet cuda -type f | sort | xargs awk -v q="'" '
        function told(word) { if (!((FILENAME, word) in allowed)) print FILENAME ":" FNR ": " word }
        # An opcode, or the beginning of one: tcgen05.mma, tcgen05., tcgen05
        function opcode(word,   first) {
            if (word !~ /^[a-z][a-z0-9_]*([.][a-zA-Z0-9_:]+)*[.]?$/) return 0
            first = word
            sub(/[.].*/, "", first)
            return first in heads
        }
        BEGIN { part = "\"([^\"\\\\]|\\\\.)*\"|" q "([^" q "\\\\]|\\\\.)" q "|/[*]|//" }
        FILENAME ~ /names$/ { sub(/[.].*/, ""); heads[$0] = 1; next }
        FILENAME ~ /printed$/ { for (i = 2; i <= NF; i++) allowed[$1, $i] = 1; next }
        FNR == 1 { comment = 0 }
        {
            rest = $0; code = ""
            while (rest != "") {
                if (comment) {
                    at = index(rest, "*/")
                    rest = at ? substr(rest, at + 2) : ""
                    if (at) comment = 0
                    continue
                }
                if (!match(rest, part)) { code = code rest; break }
                code = code substr(rest, 1, RSTART - 1)
                got = substr(rest, RSTART, RLENGTH)
                rest = substr(rest, RSTART + RLENGTH)
                if (got == "//") break
                if (got == "/*") comment = 1
                else if (got ~ /^"/ && opcode(substr(got, 2, length(got) - 2))) told(substr(got, 2, length(got) - 2))
            }
            n = split("row->name row->mods src->mods op_rows", asked, " ")
            for (i = 1; i <= n; i++) if (index(code, asked[i])) told(asked[i])
            if (code ~ /(->|[.])fn *[!=]=/) told("fn")
        }' "$work/names" "$work/printed")
}

if [ "$(names "$SRC/tools/sim" | wc -l)" -gt 150 ]; then ok; else fail 'the table has too few names'; fi
breaches=$(judge "$SRC/tools/sim")
if [ -z "$breaches" ]; then ok; else fail 'opcodes outside decode and ops' "$breaches"; fi

# plant NAME FILE LINE WANT: one line more in a copy of the tree is one breach, and is told as WANT.
plant() {
    rm -rf "$work/tree"
    cp -R "$SRC/tools/sim" "$work/tree"
    chmod -R u+w "$work/tree"
    printf '%s\n' "$3" >>"$work/tree/$2"
    got=$(judge "$work/tree")
    case $got in
    "$2":*": $4") ok ;;
    *) fail "$1: want $4" "$got" ;;
    esac
}
plant 'a comparison' check/order.c 'bool f(const char *s) { return strcmp(s, "redux.sync") == 0; }' redux.sync
plant 'a comparison of the beginning' trace/record.c 'bool f(const char *s) { return !strncmp(s, "tcgen05.", 8); }' tcgen05.
plant 'of an instruction without a row' check/order.c 'bool f(const char *s) { return !strcmp(s, "multimem.st"); }' multimem.st
plant 'a table' async/kind.c 'static const char *const names[] = {"st.async"};' st.async
plant 'behind a comment' check/order.c 'int i; /* "ld" */ const char *s = "ld";' ld
plant 'the row' machine/exec.c 'const char *f(const struct insn *in) { return in->row->name; }' 'row->name'
plant 'modifiers' check/pending.c 'const char *f(const struct insn *in) { return in->src->mods[1]; }' 'src->mods'
plant 'a handler' check/pending.c 'bool f(const struct insn *in) { return in->fn == exec_alloc; }' fn
plant 'a handler, in an array' check/pending.c 'bool f(const struct insn *in) { return in[1].fn != exec_alloc; }' fn
plant 'a row of the table' cuda/cuda_module.c 'bool f(const struct insn *in) { return in->row == &op_rows[3]; }' op_rows
finish
