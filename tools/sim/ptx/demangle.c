/*
 * A part of the grammar of the Itanium C++ ABI, "External Names (a.k.a. Mangling)": enough to read a name's scopes and
 * to step over everything else. Types and expressions are skipped by their brackets, so that an argument too deep or too
 * new for this reads as "...". Work is bounded: each step consumes a character, and depth is limited.
 */
#include "ptx/demangle.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NESTING = 64, SHOWN_ARGS = 48 };

struct reader {
    const char *at, *end;
    char *out;
    size_t used, size;
    int depth;
};

static void put(struct reader *r, const char *text, size_t length)
{
    for (size_t i = 0; i < length && r->used + 1 < r->size; i++) r->out[r->used++] = text[i];
    if (r->size) r->out[r->used] = 0;
}

static int peek(const struct reader *r)
{
    return r->at < r->end ? (unsigned char)*r->at : 0;
}

static bool take(struct reader *r, char c)
{
    if (peek(r) != c) return false;
    r->at++;
    return true;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

/* A length and as many characters. */
static bool source_name(struct reader *r, const char **name, size_t *length)
{
    size_t n = 0;

    if (!is_digit(peek(r))) return false;
    while (is_digit(peek(r)) && n < 100000) n = n * 10 + (size_t)(*r->at++ - '0');
    if (!n || n > (size_t)(r->end - r->at)) return false;
    *name = r->at;
    *length = n;
    r->at += n;
    return true;
}

/* Behind `S`: `_`, `0_`, `t` and the like. */
static bool substitution(struct reader *r)
{
    while (is_digit(peek(r)) || (peek(r) >= 'A' && peek(r) <= 'Z')) r->at++;
    if (take(r, '_')) return true;
    if (peek(r) < 'a' || peek(r) > 'z') return false;
    r->at++;
    return true;
}

static bool skip_to_end(struct reader *r);

/* Behind `L`: a type, a value, `E`. */
static bool skip_literal(struct reader *r)
{
    if (peek(r) == 'N' || peek(r) == 'S' || is_digit(peek(r))) {
        const char *name;
        size_t length;

        if (take(r, 'N')   ? !skip_to_end(r)
            : take(r, 'S') ? !substitution(r)
                           : !source_name(r, &name, &length))
            return false;
    }
    while (peek(r) && peek(r) != 'E') r->at++;
    return take(r, 'E');
}

/* One piece of a type, an expression or a nested name. */
static bool skip_piece(struct reader *r)
{
    const char *name;
    size_t length;
    int c = peek(r);

    if (is_digit(c)) return source_name(r, &name, &length);
    if (!c || c == 'E') return false;
    r->at++;
    if (c == 'L') return is_digit(peek(r)) && r->depth == 0 ? true : skip_literal(r);
    if (c == 'S' || c == 'T') return substitution(r);
    if (c == 'I' || c == 'N' || c == 'X' || c == 'J' || c == 'F') return skip_to_end(r);
    if (c == 'A') { /* an array's size */
        while (is_digit(peek(r))) r->at++;
        return take(r, '_');
    }
    if (c == 'D' && peek(r)) { /* decltype and its kin have an E; DF16_, Dv4_ numbers */
        c = (unsigned char)*r->at++;
        if (c == 'T' || c == 't') return skip_to_end(r);
        while (is_digit(peek(r))) r->at++;
        if (c == 'F' || c == 'v') (void)(take(r, '_') || take(r, 'b'));
    }
    return true;
}

static bool skip_to_end(struct reader *r)
{
    bool ok = true;

    if (++r->depth > MAX_NESTING) return false;
    while (ok && !take(r, 'E')) ok = skip_piece(r);
    r->depth--;
    return ok;
}

static const char *builtin(int c)
{
    static const char letters[] = "vwbcahstijlmxynofdeg";
    static const char *const names[] = {"void",        "wchar_t",
                                        "bool",        "char",
                                        "signed char", "unsigned char",
                                        "short",       "unsigned short",
                                        "int",         "unsigned",
                                        "long",        "unsigned long",
                                        "long long",   "unsigned long long",
                                        "__int128",    "unsigned __int128",
                                        "float",       "double",
                                        "long double", "__float128"};
    const char *at = c ? strchr(letters, c) : NULL;

    return at ? names[at - letters] : NULL;
}

static bool nested_name(struct reader *r);

/* `Lb1E`, `Li4E`, `Lin3E`: the value, if it is a plain one. */
static bool literal_argument(struct reader *r)
{
    const char *start = r->at;

    if (builtin(start[0]) && start + 1 < r->end) {
        const char *value = start + 1;
        bool negative = *value == 'n';
        size_t length;

        value += negative;
        length = strspn(value, "0123456789");
        if (length && value + length < r->end && value[length] == 'E') {
            if (negative) put(r, "-", 1);
            if (*start == 'b')
                put(r, *value == '1' ? "true" : "false", *value == '1' ? 4 : 5);
            else
                put(r, value, length);
            r->at = value + length + 1;
            return true;
        }
    }
    put(r, "...", 3);
    return skip_literal(r);
}

/* Type constructors before a type take one more piece: P, R, K and the like. */
static bool skip_type(struct reader *r)
{
    while (peek(r) && strchr("PROKVCGr", peek(r))) r->at++;
    if (peek(r) == 'A' ||
        peek(r) == 'M') { /* an element behind the size, a member behind the class */
        if (!skip_piece(r)) return false;
        return skip_type(r);
    }
    if (peek(r) == 'D' && r->at + 1 < r->end && (r->at[1] == 'v' || r->at[1] == 'p'))
        return skip_piece(r) && skip_type(r);
    if (!skip_piece(r)) return false;
    while (peek(r) == 'I') /* arguments of the name just skipped */
        if (!skip_piece(r)) return false;
    return true;
}

static bool argument(struct reader *r)
{
    const char *name = builtin(peek(r));
    size_t length;

    if (name) {
        put(r, name, strlen(name));
        r->at++;
        return true;
    }
    if (take(r, 'L')) return literal_argument(r);
    if (is_digit(peek(r))) {
        if (!source_name(r, &name, &length)) return false;
        put(r, name, length);
        if (peek(r) != 'I') return true;
        put(r, "<...>", 5);
        return skip_piece(r);
    }
    put(r, "...", 3);
    if (peek(r) == 'X' || peek(r) == 'J') return skip_piece(r);
    return skip_type(r);
}

/* Behind `I`: `<int, 4>`, or `<...>` where they are long. */
static bool arguments(struct reader *r)
{
    const size_t start = r->used;
    bool first = true;

    if (++r->depth > MAX_NESTING) return false;
    put(r, "<", 1);
    while (!take(r, 'E')) {
        if (!first) put(r, ", ", 2);
        first = false;
        if (!argument(r)) return false;
    }
    r->depth--;
    if (r->used > start + SHOWN_ARGS) {
        r->used = start + 1;
        put(r, "...", 3);
    }
    put(r, ">", 1);
    return true;
}

static bool one_name(struct reader *r)
{
    static const char anonymous[] = "_GLOBAL__N_";
    const char *name;
    size_t length;

    (void)take(r, 'L'); /* internal linkage */
    if (!source_name(r, &name, &length)) return false;
    if (length > sizeof anonymous - 1 && !memcmp(name, anonymous, sizeof anonymous - 1))
        put(r, "(anonymous)", 11);
    else
        put(r, name, length);
    return peek(r) == 'I' ? take(r, 'I') && arguments(r) : true;
}

/* Behind `N`. */
static bool nested_name(struct reader *r)
{
    bool first = true;

    while (peek(r) && strchr("rVK", peek(r))) r->at++;
    while (!take(r, 'E')) {
        if (take(r, 'S')) {
            const bool is_std = peek(r) == 't';

            if (!substitution(r)) return false;
            if (is_std) put(r, "std", 3);
            if (peek(r) == 'I' && (!take(r, 'I') || !arguments(r))) return false;
            first = first && !is_std;
            continue;
        }
        if (!first) put(r, "::", 2);
        first = false;
        if (!one_name(r)) return false;
    }
    return !first;
}

/* Behind `_Z`. */
static bool encoding(struct reader *r)
{
    if (take(r, 'Z')) { /* of a function's local: its own name alone */
        const size_t start = r->used;

        if (!encoding(r)) return false;
        while (!take(r, 'E')) /* the function's parameters */
            if (!skip_piece(r)) return false;
        r->used = start;
        return one_name(r);
    }
    if (take(r, 'N')) return nested_name(r);
    if (peek(r) == 'S' && r->at + 1 < r->end && r->at[1] == 't') {
        r->at += 2;
        put(r, "std::", 5);
    }
    return one_name(r);
}

char *demangle(const char *name, char *out, size_t size)
{
    struct reader r = {.at = name + 2, .end = name + strlen(name), .out = out, .size = size};

    if (strncmp(name, "_Z", 2) != 0 || !encoding(&r)) snprintf(out, size, "%s", name);
    return out;
}
