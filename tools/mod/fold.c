/*
 * Constant expressions of a PTX line, as the preprocessor leaves them, become their values: the text reads
 * better, and a plan header may compute what PTX takes only as a literal (.maxntid, array sizes,
 * setmaxnreg). Values are 64-bit and signed, as in PTX; the operators are those of C.
 */
#include "mod.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct fold {
    const char *at, *end;
    int wrong; /* what was read is no constant expression */
};

/* The binary operators with their levels of precedence; a longer spelling comes first. */
static const struct infix {
    const char *text;
    int level;
} infixes[] = {{"<<", 7}, {">>", 7}, {"<=", 6}, {">=", 6}, {"==", 5}, {"!=", 5},
               {"||", 0}, {"&&", 1}, {"<", 6},  {">", 6},  {"|", 2},  {"^", 3},
               {"&", 4},  {"+", 8},  {"-", 8},  {"*", 9},  {"/", 9},  {"%", 9}};
enum { INFIXES = sizeof infixes / sizeof *infixes, LEVELS = 10 };

static long long read_choice(struct fold *f);

static void skip_space(struct fold *f)
{
    while (f->at < f->end && isspace((unsigned char)*f->at)) f->at++;
}

static int is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static int take(struct fold *f, const char *text)
{
    size_t length = strlen(text);

    skip_space(f);
    if ((size_t)(f->end - f->at) < length || memcmp(f->at, text, length) != 0) return 0;
    f->at += length;
    return 1;
}

/* An integer, decimal or hexadecimal; 0f3F800000, a float, is none. */
static long long read_integer(struct fold *f)
{
    char *stop;
    unsigned long long value;

    skip_space(f);
    if (f->at == f->end || !isdigit((unsigned char)*f->at)) return f->wrong = 1;
    value = strtoull(f->at, &stop, 0);
    if (stop < f->end && is_word(*stop)) f->wrong = 1;
    if (value > LLONG_MAX) f->wrong = 1; /* PTX takes that for unsigned */
    f->at = stop;
    return (long long)value;
}

static long long read_unary(struct fold *f)
{
    long long value;

    if (f->wrong) return 0;
    if (take(f, "-")) return (long long)(0 - (unsigned long long)read_unary(f));
    if (take(f, "~")) return ~read_unary(f);
    if (take(f, "!")) return !read_unary(f);
    if (!take(f, "(")) return read_integer(f);
    value = read_choice(f);
    if (!take(f, ")")) f->wrong = 1;
    return value;
}

static long long apply(struct fold *f, const char *infix, long long a, long long b)
{
    unsigned long long x = (unsigned long long)a, y = (unsigned long long)b;

    switch (*infix) {
    case '+': return (long long)(x + y);
    case '-': return (long long)(x - y);
    case '*': return (long long)(x * y);
    case '/':
    case '%':
        if (b <= 0) return f->wrong = 1;
        return *infix == '/' ? a / b : a % b;
    case '^': return a ^ b;
    case '&': return infix[1] ? a && b : (a & b);
    case '|': return infix[1] ? a || b : (a | b);
    case '=': return a == b;
    case '!': return a != b;
    }
    if (infix[0] == infix[1]) {
        if (b < 0 || b > 63) return f->wrong = 1;
        return *infix == '<' ? (long long)(x << y) : a >> b;
    }
    if (infix[1]) return *infix == '<' ? a <= b : a >= b;
    return *infix == '<' ? a < b : a > b;
}

/* The operator of this level that comes next, or NULL. */
static const char *take_infix(struct fold *f, int level)
{
    skip_space(f);
    for (int i = 0; i < INFIXES; i++) {
        size_t length = strlen(infixes[i].text);
        if ((size_t)(f->end - f->at) < length || memcmp(f->at, infixes[i].text, length) != 0)
            continue;
        if (infixes[i].level != level) return NULL;
        f->at += length;
        return infixes[i].text;
    }
    return NULL;
}

static long long read_binary(struct fold *f, int level)
{
    const char *infix;
    long long value;

    if (level == LEVELS) return read_unary(f);
    value = read_binary(f, level + 1);
    while (!f->wrong && (infix = take_infix(f, level)))
        value = apply(f, infix, value, read_binary(f, level + 1));
    return value;
}

static long long read_choice(struct fold *f)
{
    long long value = read_binary(f, 0), yes, no;

    if (f->wrong || !take(f, "?")) return value;
    yes = read_choice(f);
    if (!take(f, ":")) f->wrong = 1;
    if (f->wrong) return 0;
    no = read_choice(f);
    return value ? yes : no;
}

/* Whether an operand may begin at `at`: behind a comma, an opening bracket, the + of an address, or the
 * space after a mnemonic. */
static int operand_begins(const char *line, const char *at)
{
    const char *c = at;

    while (c > line && isspace((unsigned char)c[-1])) c--;
    if (c == line) return 0;
    if (c[-1] == ',' || c[-1] == '[') return 1;
    if (c[-1] == '+') {
        for (c--; c > line && isspace((unsigned char)c[-1]); c--) continue;
        return c > line && is_word(c[-1]);
    }
    return c < at && is_word(c[-1]) && *at != '-'; /* which is an address's, behind a word */
}

/* The end of the constant expression at `at`, which is longer than one number; NULL: there is none. */
static const char *read_expression(const char *at, const char *end, long long *value)
{
    struct fold f = {at, end, 0};
    const char *last;

    if (!isdigit((unsigned char)*at) && !strchr("(-~!", *at)) return NULL;
    *value = read_choice(&f);
    if (f.wrong) return NULL;
    for (last = f.at; last > at && isspace((unsigned char)last[-1]); last--) continue;
    skip_space(&f);
    if (f.at < end && !strchr(",;]}", *f.at)) return NULL;
    for (const char *c = at; c < last; c++)
        if (!isalnum((unsigned char)*c) && !(c == at && *c == '-')) return last;
    return NULL;
}

void fold_line(FILE *out, const char *line, size_t length)
{
    const char *end = line + length, *stop;
    long long value;
    int quoted = 0;

    for (const char *at = line; at < end;) {
        quoted ^= *at == '"';
        if (!quoted && operand_begins(line, at) && (stop = read_expression(at, end, &value))) {
            fprintf(out, "%lld", value);
            at = stop;
        } else {
            fputc(*at++, out);
        }
    }
}
