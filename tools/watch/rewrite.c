#include "rewrite.h"
#include "snippet.h"

#include "ptx/lex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPERANDS = 8, LOOP_INSNS = 64, SALT = 0x9E37 };

/* What goes where in the text: `text` in place of [at, at + removed). */
struct edit {
    const char *at, *text;
    size_t removed;
};

struct statement {
    const char *begin, *end; /* from the guard, if any, to behind the semicolon */
    struct span guard, name, insn;
    bool guard_negated;
    struct span operands[MAX_OPERANDS];
    uint32_t operand_count;
    struct src_pos pos;
};

struct label {
    struct span name;
    uint32_t insn, depth; /* the instruction behind it; depth of the braces */
};

struct scan {
    const struct watch_request *request;
    struct watch_result *out;
    struct lexer lex;
    struct token ahead;
    bool has_ahead, failed;
    struct edit *edits;
    uint32_t edit_count, edit_capacity;
    struct watch_site *sites;
    uint32_t site_capacity;
    const char **kernels;
    uint32_t kernel_capacity;
    uint32_t *unknown;
    uint32_t unknown_capacity;
    /* of the body being read */
    const char *function;
    bool flat;        /* its blocks have one dimension */
    const char *body; /* behind its brace */
    bool counter;     /* has hewn_watch_n */
    struct label *labels;
    uint32_t label_count, label_capacity;
    struct statement *insns;
    uint32_t insn_count, insn_capacity;
    struct span *registers; /* declared without % */
    uint32_t register_count, register_capacity;
};

static bool fail(struct scan *s, const char *what, struct src_pos pos)
{
    if (!s->failed)
        snprintf(s->out->error, sizeof s->out->error, "%.80s, line %u: %.90s",
                 s->lex.file_count ? s->lex.files[pos.file] : "", pos.line, what);
    s->failed = true;
    return false;
}

/* Room for one more in an array of the arena; false after fail. */
static bool room(struct scan *s, void *items, uint32_t count, uint32_t *capacity, size_t size)
{
    void **array = items;
    void *grown =
        count < *capacity ? *array : arena_grow(&s->out->arena, *array, count, capacity, size);

    if (!grown) return fail(s, "out of memory", s->lex.pos);
    *array = grown;
    return true;
}

/* ---- tokens ---- */

static struct token take(struct scan *s)
{
    if (!s->has_ahead) s->ahead = lex_next(&s->lex);
    s->has_ahead = false;
    if (s->ahead.kind == TOK_BAD) fail(s, s->lex.error, s->ahead.pos);
    return s->ahead;
}

static struct token look(struct scan *s)
{
    if (!s->has_ahead) s->ahead = lex_next(&s->lex);
    s->has_ahead = true;
    return s->ahead;
}

static bool is_punct(struct token t, int punct)
{
    return t.kind == TOK_PUNCT && t.punct == punct;
}

static bool over(struct token t)
{
    return t.kind == TOK_END || t.kind == TOK_BAD;
}

static bool word_is(struct token t, const char *text)
{
    return t.length == strlen(text) && !memcmp(t.text, text, t.length);
}

static bool same(struct span a, struct span b)
{
    return a.length == b.length && !memcmp(a.at, b.at, a.length);
}

/* Whether an instruction's name is `words`, or those and more modifiers. */
static bool named(struct span name, const char *words)
{
    const size_t n = strlen(words);

    return name.length >= n && !memcmp(name.at, words, n) &&
           (name.length == n || name.at[n] == '.');
}

/* ---- edits ---- */

static bool add_edit(struct scan *s, const char *at, size_t removed, const char *text)
{
    if (!text) return fail(s, "out of memory", s->lex.pos);
    if (!room(s, &s->edits, s->edit_count, &s->edit_capacity, sizeof *s->edits)) return false;
    s->edits[s->edit_count++] = (struct edit){at, text, removed};
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct edit *x = a, *y = b;

    if (x->at != y->at) return x->at > y->at ? 1 : -1;
    return (x->removed > y->removed) - (x->removed < y->removed);
}

static bool apply(struct scan *s)
{
    const char *from = s->request->text, *end = from + s->request->length;
    size_t length = s->request->length, n = 0;
    char *text;

    qsort(s->edits, s->edit_count, sizeof *s->edits, by_place);
    for (uint32_t i = 0; i < s->edit_count; i++)
        length += strlen(s->edits[i].text) - s->edits[i].removed;
    text = arena_alloc(&s->out->arena, length + 1);
    if (!text) return fail(s, "out of memory", s->lex.pos);
    for (uint32_t i = 0; i <= s->edit_count; i++) {
        const struct edit *e = i < s->edit_count ? &s->edits[i] : NULL;
        const size_t kept = (size_t)((e ? e->at : end) - from);

        memcpy(text + n, from, kept);
        n += kept;
        if (!e) break;
        memcpy(text + n, e->text, strlen(e->text));
        n += strlen(e->text);
        from = e->at + e->removed;
    }
    s->out->text = text;
    s->out->length = length;
    return true;
}

/* ---- sites ---- */

/* [register + constant], [symbol], …; false: nothing that can be stored. */
static bool split_address(struct scan *s, struct span operand, struct snippet *out)
{
    const char *at = operand.at + 1, *end = operand.at + operand.length - 1, *name;

    if (operand.length < 3 || *operand.at != '[' || *end != ']') return false;
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    name = at;
    while (at < end && *at != '+' && *at != '-' && *at != ' ' && *at != '\t') at++;
    out->barrier = (struct span){name, (size_t)(at - name)};
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    if (at < end && *at == '+') at++;
    out->offset = (struct span){at, (size_t)(end - at)};
    out->barrier_is_symbol = *name != '%' && (*name < '0' || *name > '9');
    for (uint32_t i = 0; i < s->register_count && out->barrier_is_symbol; i++)
        if (same(s->registers[i], out->barrier)) out->barrier_is_symbol = false;
    return out->barrier.length > 0;
}

static const char *marked_file(const struct scan *s, struct src_pos pos)
{
    return pos.file ? s->lex.files[pos.file] : NULL;
}

/* Adds a site and begins its snippet; false after fail. */
static bool begin_site(struct scan *s, const struct statement *st, enum watch_kind kind,
                       const char *what, struct snippet *out)
{
    const uint32_t n = s->out->site_count;

    if (!room(s, &s->sites, n, &s->site_capacity, sizeof *s->sites)) return false;
    s->sites[n] = (struct watch_site){
        .function = s->function,
        .text = lex_slice(&s->lex, st->insn.at, st->end - 1),
        .file = marked_file(s, st->pos),
        .what = what,
        .pos = st->pos,
        .kind = kind,
    };
    if (!s->sites[n].text) return fail(s, "out of memory", st->pos);
    *out = (struct snippet){
        .tables = s->request->tables,
        .site = s->request->first_site + n,
        .label = s->request->first_site + n,
        .salt = s->out->kernel_count * SALT,
        .guard = st->guard,
        .guard_negated = st->guard_negated,
        .flat = s->flat,
        .insn = st->insn,
    };
    s->out->site_count++;
    return true;
}

/* The counter stands at the start of the body, before the first site that counts. */
static bool need_counter(struct scan *s)
{
    if (s->counter) return true;
    s->counter = true;
    return add_edit(s, s->body, 0, SNIPPET_COUNTER);
}

static bool add_wait(struct scan *s, const struct statement *st, enum watch_kind kind, int operand,
                     const char *what)
{
    struct snippet snippet;
    char *text = NULL;

    if (kind != WATCH_BLOCK && st->operand_count < 3)
        return fail(s, "a poll without its three operands", st->pos);
    if (!begin_site(s, st, kind, what, &snippet)) return false;
    if (kind == WATCH_BLOCK) {
        if (operand >= 0 && (uint32_t)operand < st->operand_count) {
            snippet.barrier = st->operands[operand];
            s->sites[s->out->site_count - 1].has_barrier = true;
        }
        text = snippet_block(&s->out->arena, &snippet);
    } else {
        snippet.done = st->operands[0];
        snippet.value = st->operands[2];
        if (split_address(s, st->operands[operand], &snippet))
            s->sites[s->out->site_count - 1].has_barrier = true;
        else
            snippet.barrier.length = 0;
        if (kind == WATCH_TEST && !need_counter(s)) return false;
        text = kind == WATCH_TRY ? snippet_try(&s->out->arena, &snippet)
                                 : snippet_test(&s->out->arena, &snippet);
    }
    return add_edit(s, st->begin, (size_t)(st->end - st->begin), text);
}

/* ---- loops that poll memory ---- */

static bool is_busy(struct span name)
{
#define BUSY(words) \
    if (named(name, words)) return true;
#include "waits.def"
    return false;
}

static bool is_read(struct span name)
{
#define READ(words) \
    if (named(name, words)) return true;
#include "waits.def"
    return false;
}

static bool is_poll(struct span name)
{
    return named(name, "mbarrier.try_wait") || named(name, "mbarrier.test_wait");
}

static bool add_unknown(struct scan *s, const struct statement *st)
{
    if (!room(s, &s->unknown, s->out->unknown_count, &s->unknown_capacity, sizeof *s->unknown))
        return false;
    s->unknown[s->out->unknown_count++] = st->pos.line;
    return true;
}

/* The loop from instruction `first` to the branch, which is the last one so far. */
static bool add_loop(struct scan *s, uint32_t first, const struct statement *branch)
{
    bool reads = false, busy = false;
    struct snippet snippet;

    for (uint32_t i = first; i < s->insn_count; i++) {
        const struct span name = s->insns[i].name;

        if (is_poll(name)) return true; /* it has a record of its own */
        reads |= is_read(name);
        busy |= is_busy(name);
    }
    if (!reads) return true;
    if (busy) return true; /* it works; atomics between the work are no wait */
    if (s->insn_count - first > LOOP_INSNS) return add_unknown(s, branch);
    if (!need_counter(s) || !begin_site(s, branch, WATCH_SPIN, "memory", &snippet)) return false;
    return add_edit(s, branch->begin, 0, snippet_spin(&s->out->arena, &snippet));
}

static bool see_branch(struct scan *s, const struct statement *st)
{
    if (st->operand_count != 1) return true;
    for (uint32_t i = s->label_count; i-- > 0;)
        if (same(s->labels[i].name, st->operands[0])) return add_loop(s, s->labels[i].insn, st);
    return true;
}

/* ---- statements ---- */

static bool ignored(const struct scan *s)
{
    return s->request->ignore && s->request->ignore(s->request->user, s->function);
}

static bool see_instruction(struct scan *s, const struct statement *st)
{
    if (!room(s, &s->insns, s->insn_count, &s->insn_capacity, sizeof *s->insns)) return false;
    s->insns[s->insn_count++] = *st;
#define WAIT(words, kind, operand, what) \
    if (named(st->name, words)) return add_wait(s, st, WATCH_##kind, operand, what);
#include "waits.def"
    return !named(st->name, "bra") || see_branch(s, st);
}

static struct span span_to(const char *from, const char *to)
{
    while (from < to && (unsigned char)*from <= ' ') from++;
    while (to > from && (unsigned char)to[-1] <= ' ') to--;
    return (struct span){from, (size_t)(to - from)};
}

/* Operands up to the semicolon, cut at the commas outside of brackets. */
static bool read_operands(struct scan *s, struct statement *st)
{
    const char *from = s->lex.at;
    int depth = 0;

    if (s->has_ahead) from = s->ahead.text;
    for (;;) {
        const struct token t = take(s);
        const bool ends = is_punct(t, ';');

        if (over(t)) return fail(s, "an instruction without a semicolon", st->pos);
        if (t.kind != TOK_PUNCT) continue;
        depth += t.punct == '[' || t.punct == '{' || t.punct == '(';
        depth -= t.punct == ']' || t.punct == '}' || t.punct == ')';
        if (!ends && (t.punct != ',' || depth)) continue;
        if (st->operand_count < MAX_OPERANDS) {
            const struct span o = span_to(from, t.text);
            if (o.length) st->operands[st->operand_count++] = o;
        }
        from = t.text + 1;
        if (ends) break;
    }
    st->end = from;
    return true;
}

/* From its name on, which has been taken. */
static bool read_instruction(struct scan *s, struct token name, struct statement *st)
{
    const char *end = name.text + name.length;

    st->pos = name.pos;
    while (look(s).kind == TOK_DOT && look(s).text == end + 1) {
        const struct token t = take(s);
        end = t.text + t.length;
    }
    st->name = (struct span){name.text, (size_t)(end - name.text)};
    if (!read_operands(s, st)) return false;
    st->insn = (struct span){name.text, (size_t)(st->end - name.text)};
    return see_instruction(s, st);
}

static bool read_guarded(struct scan *s, struct token at)
{
    struct statement st = {.begin = at.text};
    struct token t = take(s);

    if (is_punct(t, '!')) {
        st.guard_negated = true;
        t = take(s);
    }
    st.guard = (struct span){t.text, t.length};
    t = take(s);
    if (t.kind != TOK_NAME) return fail(s, "a guard without an instruction", t.pos);
    return read_instruction(s, t, &st);
}

/* `.reg` and other directives inside a body, to the semicolon; `.loc` ends with its line. */
static bool read_directive(struct scan *s, struct token dot)
{
    const bool registers = word_is(dot, "reg");

    if (word_is(dot, "loc")) {
        if (s->has_ahead) return fail(s, ".loc in an unexpected place", dot.pos);
        while (s->lex.at < s->lex.end && *s->lex.at != '\n') s->lex.at++;
        return true;
    }
    for (;;) {
        const struct token t = take(s);

        if (over(t)) return fail(s, "a directive without a semicolon", dot.pos);
        if (is_punct(t, ';')) return true;
        if (!registers || t.kind != TOK_NAME || *t.text == '%') continue;
        if (!room(s, &s->registers, s->register_count, &s->register_capacity, sizeof *s->registers))
            return false;
        s->registers[s->register_count++] = (struct span){t.text, t.length};
    }
}

static bool read_name(struct scan *s, struct token name, uint32_t depth)
{
    struct statement st = {.begin = name.text};

    if (!is_punct(look(s), ':')) return read_instruction(s, name, &st);
    take(s);
    if (!room(s, &s->labels, s->label_count, &s->label_capacity, sizeof *s->labels)) return false;
    s->labels[s->label_count++] = (struct label){{name.text, name.length}, s->insn_count, depth};
    return true;
}

/* From behind the brace that opens it. */
static bool read_body(struct scan *s)
{
    uint32_t depth = 1;

    s->body = s->lex.at;
    s->counter = false;
    s->label_count = s->insn_count = s->register_count = 0;
    while (depth && !s->failed) {
        const struct token t = take(s);

        if (over(t)) return fail(s, "a body without an end", t.pos);
        if (is_punct(t, '{'))
            depth++;
        else if (is_punct(t, '}')) {
            depth--;
            while (s->label_count && s->labels[s->label_count - 1].depth > depth) s->label_count--;
        } else if (t.kind == TOK_DOT)
            (void)read_directive(s, t);
        else if (is_punct(t, '@'))
            (void)read_guarded(s, t);
        else if (t.kind == TOK_NAME)
            (void)read_name(s, t, depth);
        else if (!is_punct(t, ';'))
            return fail(s, "a statement that is not understood", t.pos);
    }
    return !s->failed;
}

static bool skip_body(struct scan *s)
{
    for (uint32_t depth = 1; depth;) {
        const struct token t = take(s);

        if (over(t)) return fail(s, "a body without an end", t.pos);
        depth += is_punct(t, '{');
        depth -= is_punct(t, '}');
    }
    return true;
}

/* ---- the module ---- */

/* `.reqntid 128, 1, 1` and the like, from behind the directive: whether y and z are 1. */
static bool read_flat(struct scan *s)
{
    bool flat = true;

    for (int i = 0; look(s).kind == TOK_INT; i++) {
        if (i && s->ahead.value != 1) flat = false;
        take(s);
        if (!is_punct(look(s), ',')) break;
        take(s);
    }
    return flat;
}

/* From behind `.entry` or `.func`: the name is the first one outside of the parentheses. */
static bool read_function(struct scan *s, bool entry)
{
    const char *name = NULL;
    int depth = 0;

    s->flat = false;
    for (;;) {
        const struct token t = take(s);

        if (over(t)) return fail(s, "a function without a body", t.pos);
        if (t.kind == TOK_DOT && (word_is(t, "reqntid") || word_is(t, "maxntid")))
            s->flat = read_flat(s);
        depth += is_punct(t, '(') - is_punct(t, ')');
        if (is_punct(t, ';') && !depth) return true; /* a prototype */
        if (!name && !depth && t.kind == TOK_NAME) {
            name = arena_strndup(&s->out->arena, t.text, t.length);
            if (!name) return fail(s, "out of memory", t.pos);
        }
        if (!is_punct(t, '{') || depth) continue;
        if (!name) return fail(s, "a function without a name", t.pos);
        s->function = name;
        if (entry) {
            if (!room(s, &s->kernels, s->out->kernel_count, &s->kernel_capacity,
                      sizeof *s->kernels))
                return false;
            s->kernels[s->out->kernel_count++] = name;
        }
        return ignored(s) ? skip_body(s) : read_body(s);
    }
}

static bool read_module(struct scan *s)
{
    while (!s->failed) {
        const struct token t = take(s);

        if (t.kind == TOK_END) return true;
        if (t.kind != TOK_DOT) continue;
        if (word_is(t, "entry") || word_is(t, "func")) {
            if (!read_function(s, word_is(t, "entry"))) return false;
        } else if (word_is(t, "section")) {
            while (!over(look(s)) && !is_punct(look(s), '{')) take(s);
            take(s);
            if (!skip_body(s)) return false;
        }
    }
    return false;
}

int watch_rewrite(const struct watch_request *request, struct watch_result *out)
{
    struct scan s = {.request = request, .out = out};

    memset(out, 0, sizeof *out);
    if (!lex_start(&s.lex, &out->arena, NULL, request->text, request->length)) {
        snprintf(out->error, sizeof out->error, "out of memory");
        return -1;
    }
    if (!read_module(&s) || !apply(&s)) return -1;
    out->sites = s.sites;
    out->kernels = s.kernels;
    out->unknown_lines = s.unknown;
    return 0;
}
