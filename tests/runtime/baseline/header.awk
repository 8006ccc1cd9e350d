# Reads hewn.h and prints what a caller can rely on, one fact a line, tab-separated:
#   struct    NAME  sized|frozen
#   field     STRUCT  NAME  POINTER-TO-IT (a C type; "" for a pointer to a function)  1 if a pointer
#   value     ENUMERATOR
#   declaration  TEXT (a function, an object, a type)
# Made for the way hewn.h is written: one typedef a struct, no nesting, no conditional declarations.
function trim(s) {
    gsub(/[ \t\n]+/, " ", s)
    sub(/^ /, "", s)
    sub(/ $/, "", s)
    return s
}
function field(struct, text, base, count, i, parts, name, stars, dims) {
    text = trim(text)
    if (text == "") return
    if (match(text, /\(\*[a-z_0-9]+\)/)) {
        printf "field\t%s\t%s\t\t1\n", struct, substr(text, RSTART + 2, RLENGTH - 3)
        return
    }
    sub(/^HEWN_ALIGNED_64 /, "", text)
    count = split(text, parts, /,/)
    for (i = 1; i <= count; i++) {
        parts[i] = trim(parts[i])
        match(parts[i], /\**[A-Za-z_0-9]+(\[[0-9]+\])?$/)
        if (i == 1) base = trim(substr(parts[i], 1, RSTART - 1))
        name = substr(parts[i], RSTART)
        stars = dims = ""
        while (sub(/^\*/, "", name)) stars = stars "*"
        if (match(name, /\[/)) {
            dims = substr(name, RSTART)
            name = substr(name, 1, RSTART - 1)
        }
        printf "field\t%s\t%s\t%s\t%d\n", struct, name,
            dims == "" ? base " " stars "*" : base " " stars "(*)" dims, stars != ""
    }
}
function statement(text, body, name, count, i, parts) {
    text = trim(text)
    if (text ~ /^typedef struct hewn_[a-z_0-9]+ \{/) {
        name = text
        sub(/^typedef struct /, "", name)
        sub(/ .*/, "", name)
        body = text
        sub(/^[^{]*\{/, "", body)
        sub(/\}[^}]*$/, "", body)
        printf "struct\t%s\t%s\n", name, body ~ /^ ?size_t struct_size;/ ? "sized" : "frozen"
        count = split(body, parts, /;/)
        for (i = 1; i <= count; i++) field(name, parts[i])
    } else if (text ~ /^typedef enum /) {
        name = text
        sub(/ ?\{.*\}/, "", name)
        printf "declaration\t%s\n", name
        sub(/^[^{]*\{/, "", text)
        sub(/\}.*/, "", text)
        count = split(text, parts, /,/)
        for (i = 1; i <= count; i++) {
            sub(/=.*/, "", parts[i])
            if (trim(parts[i]) != "") printf "value\t%s\n", trim(parts[i])
        }
    } else if (text ~ /hewn_/) {
        printf "declaration\t%s\n", text
    }
}
/^#/ { next }
{ all = all $0 "\n" }
END {
    while ((at = index(all, "/*")) > 0) {
        rest = substr(all, at)
        all = substr(all, 1, at - 1) " " substr(rest, index(rest, "*/") + 2)
    }
    sub(/extern "C" \{/, "", all)
    depth = 0
    text = ""
    length_of_all = length(all)
    for (i = 1; i <= length_of_all; i++) {
        c = substr(all, i, 1)
        if (c == "{") depth++
        if (c == "}") depth--
        if (c == ";" && depth == 0) {
            statement(text)
            text = ""
        } else text = text c
    }
}
