#include "ptx/lex.h"

#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 4096, MAX_DECIMAL = 64, MAX_SLICE = 200 };

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$';
}

static int hex_digit(int c)
{
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return INT_MAX;
}

/* The character `ahead` of the current one, or -1 behind the end. */
static int look(const struct lexer *lex, size_t ahead)
{
    return (size_t)(lex->end - lex->at) > ahead ? (unsigned char)lex->at[ahead] : -1;
}

bool lex_start(struct lexer *lex, struct arena *arena, const char *name, const char *text,
               size_t length)
{
    *lex = (struct lexer){.arena = arena, .at = text, .end = text + length, .line_start = true};
    lex->pos.line = 1;
    lex->files = arena_grow(arena, NULL, 0, &lex->file_capacity, sizeof *lex->files);
    if (!lex->files) return false;
    lex->files[lex->file_count] = name ? arena_strndup(arena, name, strlen(name)) : "ptx input";
    return lex->files[lex->file_count++] != NULL;
}

static struct token bad(struct lexer *lex, struct token tok, const char *why)
{
    snprintf(lex->error, sizeof lex->error, "%s", why);
    tok.kind = TOK_BAD;
    return tok;
}

/* ---- what lies between tokens ---- */

/* Index of a file name, added if new; MAX_FILES when there are too many or no memory. */
static uint32_t file_index(struct lexer *lex, const char *text, size_t length)
{
    const char **files;

    for (uint32_t i = lex->file_count; i-- > 0;)
        if (strlen(lex->files[i]) == length && !memcmp(lex->files[i], text, length)) return i;
    if (lex->file_count >= MAX_FILES) return MAX_FILES;
    files = arena_grow(lex->arena, lex->files, lex->file_count, &lex->file_capacity, sizeof *files);
    if (!files) return MAX_FILES;
    lex->files = files;
    files[lex->file_count] = arena_strndup(lex->arena, text, length);
    return files[lex->file_count] ? lex->file_count++ : MAX_FILES;
}

uint32_t lex_file(struct lexer *lex, const char *name, size_t length)
{
    uint32_t index = file_index(lex, name, length);

    return index == MAX_FILES ? 0 : index;
}

static void skip_blanks(struct lexer *lex)
{
    while (look(lex, 0) == ' ' || look(lex, 0) == '\t') lex->at++;
}

static void skip_line(struct lexer *lex)
{
    while (lex->at < lex->end && *lex->at != '\n') lex->at++;
}

/* `# N "file"` or `#line N "file"`: the next line is line N of that file. Stops at the line's end. */
static bool line_marker(struct lexer *lex)
{
    uint64_t line = 0;

    lex->at++;
    skip_blanks(lex);
    if (lex->end - lex->at > 4 && !memcmp(lex->at, "line", 4)) lex->at += 4;
    skip_blanks(lex);
    if (!is_digit(look(lex, 0))) return false;
    while (is_digit(look(lex, 0)) && line <= UINT32_MAX)
        line = line * 10 + (uint64_t)(*lex->at++ - '0');
    if (line > UINT32_MAX) return false;
    skip_blanks(lex);
    if (look(lex, 0) == '"') {
        const char *name = ++lex->at;
        while (lex->at < lex->end && *lex->at != '"' && *lex->at != '\n') lex->at++;
        if (look(lex, 0) != '"') return false;
        lex->pos.file = file_index(lex, name, (size_t)(lex->at - name));
        if (lex->pos.file == MAX_FILES) return false;
    }
    skip_line(lex);
    lex->pos.line = (uint32_t)line - 1U; /* the newline still to come counts one */
    return true;
}

static bool add_note(struct lexer *lex, const char *text)
{
    struct ptx_note *notes =
        arena_grow(lex->arena, lex->notes, lex->note_count, &lex->note_capacity, sizeof *notes);
    const char *end = lex->at;

    if (!notes) return false;
    lex->notes = notes;
    while (text < end && (*text == ' ' || *text == '\t')) text++;
    while (end > text && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) end--;
    notes[lex->note_count].pos = lex->pos;
    notes[lex->note_count].text = arena_strndup(lex->arena, text, (size_t)(end - text));
    return notes[lex->note_count++].text != NULL;
}

/* Skips a comment at the cursor; false with lex->error when it does not end. */
static bool skip_comment(struct lexer *lex)
{
    const char *start = lex->at;

    if (look(lex, 1) == '/') {
        skip_line(lex);
        if (lex->at - start > 3 && start[2] == '@' && !add_note(lex, start + 3)) {
            snprintf(lex->error, sizeof lex->error, "out of memory");
            return false;
        }
        return true;
    }
    for (lex->at += 2; look(lex, 0) != '*' || look(lex, 1) != '/'; lex->at++) {
        if (lex->at >= lex->end) {
            snprintf(lex->error, sizeof lex->error, "comment without an end");
            return false;
        }
        if (*lex->at == '\n') lex->pos.line++;
    }
    lex->at += 2;
    return true;
}

/* Up to the next token. False with lex->error. */
static bool skip_space(struct lexer *lex)
{
    for (;;) {
        int c = look(lex, 0);

        if (c == '\n') {
            lex->pos.line++;
            lex->line_start = true;
            lex->at++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            lex->at++;
        } else if (c == '#' && lex->line_start) {
            if (!line_marker(lex)) {
                snprintf(lex->error, sizeof lex->error, "malformed line marker");
                return false;
            }
        } else if (c == '/' && (look(lex, 1) == '/' || look(lex, 1) == '*')) {
            if (!skip_comment(lex)) return false;
        } else {
            return true;
        }
    }
}

/* ---- numbers ---- */

/* 0f/0d and exactly `digits` hexadecimal digits. */
static struct token float_bits(struct lexer *lex, struct token tok, int digits)
{
    for (int i = 0; i < digits; i++) {
        int digit = hex_digit(look(lex, (size_t)i + 2));
        if (digit > 15)
            return bad(lex, tok,
                       digits == 8 ? "0f needs 8 hexadecimal digits"
                                   : "0d needs 16 hexadecimal digits");
        tok.value = tok.value << 4 | (uint64_t)digit;
    }
    lex->at += digits + 2;
    tok.kind = digits == 8 ? TOK_F32 : TOK_F64;
    return is_word(look(lex, 0)) ? bad(lex, tok, "malformed number") : tok;
}

static struct token decimal_float(struct lexer *lex, struct token tok, size_t length)
{
    char text[MAX_DECIMAL], *end;
    locale_t plain;
    double value;

    if (length >= sizeof text) return bad(lex, tok, "number too long");
    memcpy(text, lex->at, length);
    text[length] = 0;
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* the program's locale may want a comma */
    if (!plain) return bad(lex, tok, "out of memory");
    value = strtod_l(text, &end, plain);
    freelocale(plain);
    lex->at += length;
    if (*end || is_word(look(lex, 0))) return bad(lex, tok, "malformed number");
    memcpy(&tok.value, &value, sizeof value);
    tok.kind = TOK_F64;
    return tok;
}

/* Length of a decimal floating literal at the cursor, 0 if it is none. */
static size_t float_length(const struct lexer *lex)
{
    size_t n = 0, mantissa;
    bool fraction = false;

    while (is_digit(look(lex, n))) n++;
    if (look(lex, n) == '.' && is_digit(look(lex, n + 1))) {
        fraction = true;
        for (n++; is_digit(look(lex, n));) n++;
    }
    mantissa = n;
    if (look(lex, n) == 'e' || look(lex, n) == 'E') {
        n++;
        if (look(lex, n) == '+' || look(lex, n) == '-') n++;
        if (is_digit(look(lex, n))) {
            while (is_digit(look(lex, n))) n++;
            return n;
        }
    }
    return fraction ? mantissa : 0;
}

static struct token integer(struct lexer *lex, struct token tok)
{
    uint64_t base = 10;
    size_t digits = 0;
    int second = look(lex, 1);

    if (look(lex, 0) == '0') {
        base = second == 'x' || second == 'X' ? 16 : second == 'b' || second == 'B' ? 2 : 8;
        lex->at += base == 8 ? 0 : 2;
    }
    for (;; digits++) {
        int digit = hex_digit(look(lex, 0));
        if (digit >= (int)base) break;
        if (tok.value > (UINT64_MAX - (uint64_t)digit) / base)
            return bad(lex, tok, "integer does not fit 64 bits");
        tok.value = tok.value * base + (uint64_t)digit;
        lex->at++;
    }
    tok.kind = TOK_INT;
    tok.is_unsigned = tok.value > INT64_MAX;
    if (look(lex, 0) == 'U' || look(lex, 0) == 'u') {
        tok.is_unsigned = true;
        lex->at++;
    }
    if (!digits || is_word(look(lex, 0))) return bad(lex, tok, "malformed number");
    return tok;
}

static struct token number(struct lexer *lex, struct token tok)
{
    int second = look(lex, 1);
    size_t length;

    if (look(lex, 0) == '0') {
        if (second == 'f' || second == 'F') return float_bits(lex, tok, 8);
        if (second == 'd' || second == 'D') return float_bits(lex, tok, 16);
        if (second == 'x' || second == 'X') return integer(lex, tok);
    }
    length = float_length(lex);
    return length ? decimal_float(lex, tok, length) : integer(lex, tok);
}

/* ---- tokens ---- */

static struct token dot_word(struct lexer *lex, struct token tok)
{
    const char *start = ++lex->at;

    for (;;) {
        while (is_word(look(lex, 0))) lex->at++;
        if (look(lex, 0) != ':' || look(lex, 1) != ':' || !is_word(look(lex, 2))) break;
        lex->at += 2;
    }
    tok.kind = TOK_DOT;
    tok.text = start;
    tok.length = (size_t)(lex->at - start);
    return tok.length ? tok : bad(lex, tok, "stray '.'");
}

static struct token string(struct lexer *lex, struct token tok)
{
    const char *start = ++lex->at;

    while (lex->at < lex->end && *lex->at != '"' && *lex->at != '\n') lex->at++;
    if (look(lex, 0) != '"') return bad(lex, tok, "string without an end");
    tok.kind = TOK_STRING;
    tok.text = start;
    tok.length = (size_t)(lex->at++ - start);
    return tok;
}

static struct token punctuation(struct lexer *lex, struct token tok)
{
    static const struct {
        char text[3];
        int punct;
    } pairs[] = {{"<<", PUNCT_SHL}, {">>", PUNCT_SHR}, {"<=", PUNCT_LE},  {">=", PUNCT_GE},
                 {"==", PUNCT_EQ},  {"!=", PUNCT_NE},  {"&&", PUNCT_AND}, {"||", PUNCT_OR}};
    int c = look(lex, 0), second = look(lex, 1);

    tok.kind = TOK_PUNCT;
    tok.punct = c;
    tok.length = 1;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (pairs[i].text[0] == c && pairs[i].text[1] == second) {
            tok.punct = pairs[i].punct;
            tok.length = 2;
        }
    if (tok.length == 1 && (c <= ' ' || c > '~' || !strchr("{}()[]<>,;:@!~+-*/%&|^=?", c))) {
        snprintf(lex->error, sizeof lex->error,
                 c > ' ' && c <= '~' ? "stray '%c'" : "stray byte 0x%02x", c);
        tok.kind = TOK_BAD;
    }
    lex->at += tok.length;
    return tok;
}

struct token lex_next(struct lexer *lex)
{
    struct token tok = {.kind = TOK_END};
    bool ok = skip_space(lex);
    int c = look(lex, 0);

    tok.pos = lex->pos;
    tok.text = lex->at;
    lex->line_start = false;
    if (!ok) {
        tok.kind = TOK_BAD;
        return tok;
    }
    if (c < 0) return tok;
    if (c == '.') return dot_word(lex, tok);
    if (c == '"') return string(lex, tok);
    if (is_digit(c)) {
        tok = number(lex, tok);
        tok.length = (size_t)(lex->at - tok.text);
        return tok;
    }
    if (is_word(c) || (c == '%' && is_word(look(lex, 1)) && !is_digit(look(lex, 1)))) {
        lex->at++;
        while (is_word(look(lex, 0))) lex->at++;
        tok.kind = TOK_NAME;
        tok.length = (size_t)(lex->at - tok.text);
        return tok;
    }
    return punctuation(lex, tok);
}

const char *lex_slice(struct lexer *lex, const char *begin, const char *end)
{
    char text[MAX_SLICE + 4];
    size_t n = 0;
    bool blank = false;

    while (begin < end && n < MAX_SLICE) {
        if (end - begin > 1 && begin[0] == '/' && begin[1] == '/') {
            while (begin < end && *begin != '\n') begin++;
            continue;
        }
        if (end - begin > 1 && begin[0] == '/' && begin[1] == '*') {
            for (begin += 2; end - begin > 1 && (begin[0] != '*' || begin[1] != '/');) begin++;
            begin += end - begin > 1 ? 2 : end - begin;
            blank = true;
            continue;
        }
        if (*begin > ' ') {
            if (blank && n) text[n++] = ' ';
            text[n++] = *begin;
            blank = false;
        } else {
            blank = true;
        }
        begin++;
    }
    for (int dots = 0; begin < end && dots < 3; dots++) text[n++] = '.';
    return arena_strndup(lex->arena, text, n);
}
