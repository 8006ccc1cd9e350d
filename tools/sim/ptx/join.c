#include "ptx/join.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tokens ---- */

enum token_kind { TOK_END, TOK_NAME, TOK_DIRECTIVE, TOK_NUMBER, TOK_STRING, TOK_MARK };

struct token {
    enum token_kind kind;
    const char *at;
    size_t length;
};

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Past blanks, comments and line markers. */
static const char *skip_blank(const char *p)
{
    for (;;) {
        while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n') p++;
        if (*p == '#' || (p[0] == '/' && p[1] == '/')) {
            p += strcspn(p, "\n");
        } else if (p[0] == '/' && p[1] == '*') {
            const char *end = strstr(p + 2, "*/");
            p = end ? end + 2 : p + strlen(p);
        } else {
            return p;
        }
    }
}

static struct token next_token(const char **cursor)
{
    const char *p = skip_blank(*cursor);
    struct token t = {TOK_MARK, p, 1};

    if (!*p) {
        t.kind = TOK_END;
        t.length = 0;
    } else if (*p == '"') {
        t.kind = TOK_STRING;
        while (p[t.length] && p[t.length] != '"')
            t.length += p[t.length] == '\\' && p[t.length + 1] ? 2 : 1;
        if (p[t.length]) t.length++;
    } else if (is_digit(*p)) {
        t.kind = TOK_NUMBER;
        while (name_char(p[t.length]) || (p[t.length] == '.' && is_digit(p[t.length + 1])))
            t.length++;
    } else if (name_char(*p) || (*p == '.' && name_char(p[1]))) {
        t.kind = *p == '.' ? TOK_DIRECTIVE : TOK_NAME;
        while (name_char(p[t.length])) t.length++;
    }
    *cursor = p + t.length;
    return t;
}

static bool token_is(const struct token *t, const char *text)
{
    return strlen(text) == t->length && !memcmp(t->at, text, t->length);
}

static bool token_mark(const struct token *t, char mark)
{
    return t->kind == TOK_MARK && *t->at == mark;
}

/* ---- statements of module scope ---- */

enum statement_kind { ST_HEADER, ST_VARIABLE, ST_FUNCTION, ST_ENTRY, ST_OTHER };
enum linkage { LINK_NONE, LINK_VISIBLE, LINK_WEAK, LINK_EXTERN };

struct statement {
    const char *begin, *end; /* from the end of the one before */
    enum statement_kind kind;
    enum linkage linkage;
    bool defines, shared, renamed;
    struct token name;
};

struct input {
    const char *text, *name;
    struct statement *all;
    size_t count, room;
    unsigned last_file; /* highest index of a .file directive */
    size_t number;      /* from 1 */
};

static bool is_space(const struct token *t)
{
    return token_is(t, ".global") || token_is(t, ".const") || token_is(t, ".shared") ||
           token_is(t, ".tex") || token_is(t, ".local");
}

/* What a directive at the head of a statement makes of it. */
static void take_directive(struct statement *s, const struct token *t)
{
    if (token_is(t, ".version") || token_is(t, ".target") || token_is(t, ".address_size"))
        s->kind = ST_HEADER;
    else if (token_is(t, ".func"))
        s->kind = ST_FUNCTION;
    else if (token_is(t, ".entry"))
        s->kind = ST_ENTRY;
    else if (token_is(t, ".visible"))
        s->linkage = LINK_VISIBLE;
    else if (token_is(t, ".weak") || token_is(t, ".common"))
        s->linkage = LINK_WEAK;
    else if (token_is(t, ".extern"))
        s->linkage = LINK_EXTERN;
    else if (is_space(t) && s->kind == ST_OTHER) {
        s->kind = ST_VARIABLE;
        s->shared = token_is(t, ".shared");
    }
}

/* Header and .file directives end with their line. */
static bool ends_with_line(const struct token *first)
{
    return token_is(first, ".version") || token_is(first, ".target") ||
           token_is(first, ".address_size") || token_is(first, ".file");
}

/* Reads one statement from *cursor; false at the end of the text. */
static bool read_statement(const char **cursor, struct statement *s, unsigned *last_file)
{
    const char *p = *cursor;
    struct token t = next_token(&p);
    int parens = 0, braces = 0;

    *s = (struct statement){.begin = *cursor, .kind = ST_OTHER};
    if (t.kind == TOK_END) return false;
    if (ends_with_line(&t)) {
        take_directive(s, &t);
        if (token_is(&t, ".file")) {
            unsigned index = (unsigned)strtoul(p, NULL, 10);
            if (index > *last_file) *last_file = index;
        }
        s->end = *cursor = p + strcspn(p, "\n");
        return true;
    }
    for (; t.kind != TOK_END; t = next_token(&p)) {
        if (token_mark(&t, '(')) parens++;
        if (token_mark(&t, ')')) parens--;
        if (token_mark(&t, '{')) {
            if (!braces++ && s->kind != ST_VARIABLE) s->defines = true;
        }
        if (token_mark(&t, '}') && !--braces && s->kind != ST_VARIABLE) break;
        if (token_mark(&t, ';') && !braces) break;
        if (braces || parens) continue;
        if (t.kind == TOK_DIRECTIVE && !s->name.length) take_directive(s, &t);
        if (t.kind == TOK_NAME && !s->name.length) s->name = t;
    }
    if (s->kind == ST_VARIABLE) s->defines = s->linkage != LINK_EXTERN;
    s->end = *cursor = p;
    return true;
}

static bool read_input(struct input *in)
{
    const char *p = in->text;
    struct statement s;

    while (read_statement(&p, &s, &in->last_file)) {
        if (in->count == in->room) {
            size_t room = in->room ? 2 * in->room : 32;
            struct statement *all = realloc(in->all, room * sizeof *all);
            if (!all) return false;
            in->all = all;
            in->room = room;
        }
        in->all[in->count++] = s;
    }
    return true;
}

/* ---- names of all inputs ---- */

struct join {
    struct input *inputs;
    size_t count;
    char *message;
    size_t room;
    char *out;
    size_t length, capacity;
    bool no_memory;
};

static bool same_name(const struct statement *a, const struct statement *b)
{
    return a->name.length && a->name.length == b->name.length &&
           !memcmp(a->name.at, b->name.at, a->name.length);
}

/* The first statement of an input that is like `s` in name, and passes `want`. */
static struct statement *find(struct input *in, const struct statement *s,
                              bool (*want)(const struct statement *))
{
    for (size_t i = 0; i < in->count; i++)
        if (same_name(&in->all[i], s) && want(&in->all[i])) return &in->all[i];
    return NULL;
}

static bool is_global_definition(const struct statement *s)
{
    return s->defines && (s->linkage == LINK_VISIBLE || s->linkage == LINK_WEAK);
}

static bool is_strong_definition(const struct statement *s)
{
    return s->defines && (s->linkage == LINK_VISIBLE || s->kind == ST_ENTRY);
}

static bool is_anything(const struct statement *s)
{
    return s->kind != ST_HEADER;
}

static bool is_own(const struct statement *s)
{
    return s->linkage == LINK_NONE && (s->kind == ST_VARIABLE || s->kind == ST_FUNCTION);
}

static const struct statement *definition_of(struct join *j, const struct statement *s)
{
    const struct statement *found = NULL;

    for (size_t i = 0; i < j->count && !found; i++)
        found = find(&j->inputs[i], s, is_global_definition);
    return found;
}

/* What the driver itself provides. */
static bool is_provided(const struct statement *s)
{
    static const char *const names[] = {"vprintf", "malloc", "free", "__assertfail",
                                        "cudaGraphSetConditional"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (token_is(&s->name, names[i])) return true;
    return s->shared; /* extern shared memory is what the launch gives */
}

static enum join_status check_duplicates(struct join *j)
{
    for (size_t a = 0; a < j->count; a++) {
        for (size_t i = 0; i < j->inputs[a].count; i++) {
            const struct statement *s = &j->inputs[a].all[i];
            if (!is_strong_definition(s)) continue;
            for (size_t b = a + 1; b < j->count; b++) {
                if (!find(&j->inputs[b], s, is_strong_definition)) continue;
                snprintf(j->message, j->room,
                         "multiple definition of '%.*s' in '%s', first defined in '%s'",
                         (int)s->name.length, s->name.at, j->inputs[b].name, j->inputs[a].name);
                return JOIN_DUPLICATE;
            }
        }
    }
    return JOIN_OK;
}

static enum join_status check_undefined(struct join *j)
{
    for (size_t a = 0; a < j->count; a++) {
        for (size_t i = 0; i < j->inputs[a].count; i++) {
            const struct statement *s = &j->inputs[a].all[i];
            if (s->linkage != LINK_EXTERN || s->defines || is_provided(s) || definition_of(j, s))
                continue;
            snprintf(j->message, j->room, "undefined reference to '%.*s' in '%s'",
                     (int)s->name.length, s->name.at, j->inputs[a].name);
            return JOIN_UNDEFINED;
        }
    }
    return JOIN_OK;
}

/* A name of a text's own that another text has too is given the text's number. */
static void mark_renamed(struct join *j)
{
    for (size_t a = 0; a < j->count; a++)
        for (size_t i = 0; i < j->inputs[a].count; i++) {
            struct statement *s = &j->inputs[a].all[i];
            for (size_t b = 0; b < j->count && is_own(s); b++)
                if (b != a && find(&j->inputs[b], s, is_anything)) s->renamed = true;
        }
}

/* ---- writing ---- */

static void put(struct join *j, const char *text, size_t length)
{
    if (j->no_memory) return;
    if (j->length + length + 1 > j->capacity) {
        size_t capacity = 2 * j->capacity + length + 1024;
        char *out = realloc(j->out, capacity);
        if (!out) {
            j->no_memory = true;
            return;
        }
        j->out = out;
        j->capacity = capacity;
    }
    memcpy(j->out + j->length, text, length);
    j->length += length;
    j->out[j->length] = '\0';
}

static bool is_renamed(const struct input *in, const struct token *t)
{
    struct statement key = {.name = *t};

    for (size_t i = 0; i < in->count; i++)
        if (in->all[i].renamed && same_name(&in->all[i], &key)) return true;
    return false;
}

/* The statement with changed names, and with indices of files behind those of earlier inputs. */
static void put_statement(struct join *j, const struct input *in, const struct statement *s,
                          unsigned file_base)
{
    const char *p = s->begin, *done = s->begin;
    bool file_next = false;
    char number[40];

    for (struct token t = next_token(&p); t.kind != TOK_END && t.at < s->end; t = next_token(&p)) {
        bool file = file_next && t.kind == TOK_NUMBER;
        file_next = token_is(&t, ".loc") || token_is(&t, ".file") || token_is(&t, "inlined_at");
        if (!file && !(t.kind == TOK_NAME && is_renamed(in, &t))) continue;
        if (file)
            snprintf(number, sizeof number, "%lu", strtoul(t.at, NULL, 10) + file_base);
        else
            snprintf(number, sizeof number, "__%zu", in->number);
        put(j, done, (size_t)((file ? t.at : t.at + t.length) - done));
        put(j, number, strlen(number));
        done = t.at + t.length;
    }
    put(j, done, (size_t)(s->end - done));
}

/* True for a statement that another of the same name, before it or defining it, makes needless. */
static bool is_needless(struct join *j, const struct input *in, const struct statement *s)
{
    bool weak = s->linkage == LINK_WEAK && s->defines;

    if (s->linkage != LINK_EXTERN && !weak) return false;
    if (s->linkage == LINK_EXTERN && s->kind == ST_VARIABLE && definition_of(j, s)) return true;
    for (size_t b = 0; b < j->count; b++) {
        const struct statement *other;
        if (weak && (other = find(&j->inputs[b], s, is_strong_definition)) && other != s)
            return true;
        if (&j->inputs[b] == in) return false;
        other = find(&j->inputs[b], s, weak ? is_global_definition : is_anything);
        if (other && (weak || other->linkage == LINK_EXTERN)) return true;
    }
    return false;
}

/* Declarations first, so that each name is known where it is used; then variables, then code. */
static int pass_of(const struct statement *s)
{
    switch (s->kind) {
    case ST_HEADER: return -1;
    case ST_FUNCTION: return s->defines ? 2 : 0;
    case ST_ENTRY: return 2;
    case ST_VARIABLE: return 1;
    default: return s->name.length ? 2 : 0; /* .file and the like; .alias */
    }
}

static unsigned long arch_of(const struct token *target)
{
    const char *p = memchr(target->at, '_', target->length);
    return p ? strtoul(p + 1, NULL, 10) : 0;
}

static void put_header(struct join *j)
{
    struct token target = {0};
    double version = 0;
    char line[96];

    for (size_t a = 0; a < j->count; a++) {
        for (size_t i = 0; i < j->inputs[a].count; i++) {
            const struct statement *s = &j->inputs[a].all[i];
            const char *p = s->begin;
            struct token word = next_token(&p), value = next_token(&p);
            if (s->kind != ST_HEADER) continue;
            if (token_is(&word, ".version") && strtod(value.at, NULL) > version)
                version = strtod(value.at, NULL);
            if (token_is(&word, ".target") && (!target.at || arch_of(&value) > arch_of(&target)))
                target = value;
        }
    }
    snprintf(line, sizeof line, ".version %.1f\n.target %.*s\n.address_size 64\n", version,
             (int)(target.length < 40 ? target.length : 40), target.at ? target.at : "");
    put(j, line, strlen(line));
}

static void put_all(struct join *j)
{
    put_header(j);
    for (int pass = 0; pass < 3; pass++) {
        unsigned file_base = 0;
        for (size_t a = 0; a < j->count; a++) {
            const struct input *in = &j->inputs[a];
            for (size_t i = 0; i < in->count; i++)
                if (pass_of(&in->all[i]) == pass && !is_needless(j, in, &in->all[i]))
                    put_statement(j, in, &in->all[i], file_base);
            file_base += in->last_file + 1;
            put(j, "\n", 1);
        }
    }
}

enum join_status ptx_join(const char *const *texts, const char *const *names, size_t count,
                          int complete, char **out, char *message, size_t room)
{
    struct join j = {.count = count, .message = message, .room = room};
    enum join_status status = JOIN_OK;

    *out = NULL;
    j.inputs = calloc(count + 1, sizeof *j.inputs);
    if (!j.inputs) return JOIN_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        j.inputs[i].text = texts[i];
        j.inputs[i].name = names[i];
        j.inputs[i].number = i + 1;
        if (!read_input(&j.inputs[i])) status = JOIN_NO_MEMORY;
    }
    if (!status) status = check_duplicates(&j);
    if (!status && complete) status = check_undefined(&j);
    if (!status) {
        mark_renamed(&j);
        put_all(&j);
        if (j.no_memory) status = JOIN_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) free(j.inputs[i].all);
    free(j.inputs);
    if (status)
        free(j.out);
    else
        *out = j.out;
    return status;
}
