#include "ptx/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors and tokens ---- */

bool parse_fail(struct parser *p, struct src_pos pos, const char *format, ...)
{
    va_list args;
    int n;

    if (p->failed) return false;
    p->failed = true;
    n = snprintf(p->diag->text, sizeof p->diag->text,
                 "%.200s, line %u; error: ", p->lex.files[pos.file], pos.line);
    va_start(args, format);
    vsnprintf(p->diag->text + n, sizeof p->diag->text - (size_t)n, format, args);
    va_end(args);
    return false;
}

bool parse_memory(struct parser *p)
{
    if (!p->failed) snprintf(p->diag->text, sizeof p->diag->text, "out of memory");
    p->failed = true;
    return false;
}

const struct token *peek(struct parser *p)
{
    if (!p->peeked) {
        p->tok = lex_next(&p->lex);
        p->peeked = true;
        if (p->tok.kind == TOK_BAD) {
            parse_fail(p, p->tok.pos, "%s", p->lex.error);
            p->tok.kind = TOK_END; /* nothing matches it, so every caller stops */
        }
    }
    return &p->tok;
}

struct token next(struct parser *p)
{
    struct token tok = *peek(p);

    if (tok.kind != TOK_END) p->peeked = false;
    return tok;
}

struct token peek_second(struct parser *p)
{
    struct lexer ahead;

    if (peek(p)->kind == TOK_END) return p->tok;
    ahead = p->lex; /* what it adds to files or notes is read again later */
    return lex_next(&ahead);
}

bool token_is(const struct token *tok, const char *text)
{
    return strlen(text) == tok->length && !memcmp(text, tok->text, tok->length);
}

bool at_punct(struct parser *p, int punct)
{
    return peek(p)->kind == TOK_PUNCT && p->tok.punct == punct;
}

bool accept(struct parser *p, int punct)
{
    if (!at_punct(p, punct)) return false;
    next(p);
    return true;
}

bool unexpected(struct parser *p, const char *what)
{
    const struct token *tok = peek(p);
    size_t length = tok->length > 60 ? 60 : tok->length;

    if (tok->kind == TOK_END)
        return parse_fail(p, tok->pos, "expected %s, found the end of the text", what);
    return parse_fail(p, tok->pos, "expected %s, found '%s%.*s'", what,
                      tok->kind == TOK_DOT ? "." : "", (int)length, tok->text);
}

bool expect(struct parser *p, int punct)
{
    const char what[] = {'\'', (char)punct, '\'', 0};

    return accept(p, punct) || unexpected(p, what);
}

bool expect_name(struct parser *p, const char *what, struct token *out)
{
    *out = *peek(p);
    if (out->kind != TOK_NAME) return unexpected(p, what);
    next(p);
    return true;
}

bool skip_block(struct parser *p, int open, int close)
{
    for (uint32_t depth = 1; depth;) {
        struct token tok = next(p);

        if (tok.kind == TOK_END) return unexpected(p, "a closing bracket");
        if (tok.kind == TOK_PUNCT && tok.punct == open) depth++;
        if (tok.kind == TOK_PUNCT && tok.punct == close) depth--;
    }
    return true;
}

bool skip_past(struct parser *p, int punct)
{
    while (!accept(p, punct)) {
        if (peek(p)->kind == TOK_END) return expect(p, punct);
        next(p);
    }
    return true;
}

/* ---- an entry's body ---- */

static bool body_directive(struct parser *p, struct token tok)
{
    enum ptx_space space = space_directive(&tok);

    if (space != SPACE_NONE) return parse_variables(p, space, false);
    if (token_is(&tok, "reg")) return parse_reg_directive(p);
    if (token_is(&tok, "loc")) return parse_loc(p);
    if (token_is(&tok, "pragma") || token_is(&tok, "callprototype") ||
        token_is(&tok, "calltargets"))
        return skip_past(p, ';');
    if (token_is(&tok, "extern") && space_directive(peek(p)) != SPACE_NONE) {
        tok = next(p);
        return parse_variables(p, space_directive(&tok), true);
    }
    return parse_fail(p, tok.pos, "unknown directive '.%.*s' in a body", (int)tok.length, tok.text);
}

static bool parse_label(struct parser *p, const struct token *name)
{
    struct symbol *label = scope_declare(p, name, SYM_LABEL);

    if (!label) return false;
    label->first = p->entry->insn_count;
    p->label_pending = true;
    if (peek(p)->kind == TOK_DOT && token_is(&p->tok, "branchtargets")) {
        next(p);
        return parse_branch_targets(p, label);
    }
    return true;
}

static bool parse_statement(struct parser *p)
{
    struct token tok;

    if (accept(p, ';')) return true;
    if (accept(p, '{')) return scope_open(p);
    if (accept(p, '}')) return scope_close(p);
    if (at_punct(p, '@')) return parse_guarded(p);
    if (peek(p)->kind == TOK_DOT) return body_directive(p, next(p));
    if (!expect_name(p, "an instruction", &tok)) return false;
    return accept(p, ':') ? parse_label(p, &tok) : parse_instruction(p, &tok);
}

/* Execution cannot run off the end: a body that does not close with an unguarded jump gets the `ret`
 * that running off means. */
static bool close_body(struct parser *p, const struct token *brace)
{
    static const char *const ret[] = {"ret"};
    static const char *const ends[] = {"ret", "exit", "trap", "bra"};
    struct ptx_insn *last =
        p->entry->insn_count > p->body_start ? &p->insns[p->entry->insn_count - 1] : NULL;

    for (size_t i = 0; last && i < sizeof ends / sizeof ends[0]; i++)
        if (!p->label_pending && last->guard == NO_REG && !strcmp(last->mods[0], ends[i]))
            return true;
    last = add_instruction(p);
    if (!last) return false;
    last->pos = last->ptx_pos = brace->pos;
    last->text = "ret";
    last->mods = ret;
    last->mod_count = 1;
    return true;
}

/* What the body left in scratch arrays moves to the module. */
static bool keep_body(struct parser *p)
{
    struct ptx_entry *entry = p->entry;
    struct ptx_reg *regs = arena_alloc(p->arena, (entry->reg_count + 1) * sizeof *regs);
    struct ptx_insn *insns = arena_alloc(p->arena, (entry->insn_count + 1) * sizeof *insns);

    if (!regs || !insns) return parse_memory(p);
    if (entry->reg_count) memcpy(regs, p->regs, entry->reg_count * sizeof *regs);
    if (entry->insn_count) memcpy(insns, p->insns, entry->insn_count * sizeof *insns);
    entry->regs = regs;
    entry->insns = insns;
    return true;
}

bool parse_body(struct parser *p)
{
    struct token brace;

    p->label_pending = false;
    p->loc = p->loc_last = NULL;
    if (!expect(p, '{') || !scope_open(p)) return false;
    while (p->depth >= 2) {
        brace = *peek(p);
        if (!parse_statement(p)) return false;
    }
    return close_body(p, &brace);
}

/* ---- performance and launch directives of an entry ---- */

/* The assembler takes any count. What no device has is kept as one more than the most that one has,
 * so that the launch fails. */
enum { MOST_THREADS = 1025, MOST_CTAS = 65, MOST_REGS = 255 };

static bool parse_dimensions(struct parser *p, const char *what, uint32_t most, uint32_t out[3])
{
    uint32_t n = 0;
    int64_t value;

    out[0] = out[1] = out[2] = 1;
    do {
        if (n == 3) return parse_fail(p, peek(p)->pos, "more than three values for %s", what);
        if (!parse_bounded(p, what, 1, INT32_MAX, &value)) return false;
        out[n++] = value < most ? (uint32_t)value : most;
    } while (accept(p, ','));
    return true;
}

static bool parse_count(struct parser *p, const char *what, uint32_t most, uint32_t *out)
{
    int64_t value;

    if (!parse_bounded(p, what, 1, INT32_MAX, &value)) return false;
    *out = value < most ? (uint32_t)value : most;
    return true;
}

static bool entry_directive(struct parser *p, struct token tok)
{
    struct ptx_entry *e = p->entry;
    uint32_t ignored;

    if (token_is(&tok, "maxntid")) return parse_dimensions(p, ".maxntid", MOST_THREADS, e->maxntid);
    if (token_is(&tok, "reqntid")) return parse_dimensions(p, ".reqntid", MOST_THREADS, e->reqntid);
    if (token_is(&tok, "reqnctapercluster"))
        return parse_dimensions(p, ".reqnctapercluster", MOST_CTAS, e->reqnctapercluster);
    if (token_is(&tok, "minnctapersm"))
        return parse_count(p, ".minnctapersm", MOST_CTAS, &e->minnctapersm);
    if (token_is(&tok, "maxnctapersm")) return parse_count(p, ".maxnctapersm", MOST_CTAS, &ignored);
    if (token_is(&tok, "local_maxnreg"))
        return parse_count(p, ".local_maxnreg", MOST_REGS, &ignored);
    if (token_is(&tok, "maxnreg")) return parse_count(p, ".maxnreg", MOST_REGS, &e->maxnreg);
    if (token_is(&tok, "maxclusterrank"))
        return parse_count(p, ".maxclusterrank", MOST_CTAS, &e->maxclusterrank);
    if (token_is(&tok, "explicitcluster")) return e->explicit_cluster = true;
    if (token_is(&tok, "blocksareclusters")) return e->blocks_are_clusters = true;
    if (token_is(&tok, "pragma")) return skip_past(p, ';');
    return parse_fail(p, tok.pos, "unknown directive '.%.*s' of an entry", (int)tok.length,
                      tok.text);
}

/* Directives that exclude or need each other. */
static bool directives_agree(struct parser *p, const struct token *name)
{
    const struct ptx_entry *e = p->entry;

    if (e->maxntid[0] && e->reqntid[0])
        return parse_fail(p, name->pos, "entry '%s' has both .maxntid and .reqntid", e->name);
    if (e->maxclusterrank && e->reqnctapercluster[0])
        return parse_fail(p, name->pos,
                          "entry '%s' has both .maxclusterrank and .reqnctapercluster", e->name);
    if (e->blocks_are_clusters && (!e->reqntid[0] || !e->reqnctapercluster[0]))
        return parse_fail(p, name->pos,
                          "entry '%s': .blocksareclusters needs .reqntid and .reqnctapercluster",
                          e->name);
    return true;
}

static bool new_entry(struct parser *p, const struct token *name)
{
    for (uint32_t i = 0; i < p->module->entry_count; i++)
        if (token_is(name, p->entries[i].name))
            return parse_fail(p, name->pos, "entry '%s' is already defined at line %u",
                              p->entries[i].name, p->entries[i].pos.line);
    p->entries = arena_grow(p->arena, p->entries, p->module->entry_count, &p->entry_capacity,
                            sizeof *p->entries);
    if (!p->entries) return parse_memory(p);
    p->entry = &p->entries[p->module->entry_count];
    memset(p->entry, 0, sizeof *p->entry);
    p->entry->pos = name->pos;
    p->entry->frame_reg = NO_REG;
    p->entry->name = arena_strndup(p->arena, name->text, name->length);
    if (!p->entry->name) return parse_memory(p);
    p->own_shared_count = 0;
    p->body_start = 0;
    for (uint32_t i = 0; i < p->shared_count; i++) p->shared[i].copy = NULL;
    return true;
}

bool parse_entry(struct parser *p, uint32_t *first_note)
{
    struct token name;

    if (!expect_name(p, "an entry name", &name) || !new_entry(p, &name) || !parse_functions(p) ||
        !scope_open(p))
        return false;
    if (at_punct(p, '(') && !parse_entry_params(p)) return false;
    while (peek(p)->kind == TOK_DOT)
        if (!entry_directive(p, next(p))) return false;
    if (!directives_agree(p, &name)) return false;
    if (!accept(p, ';')) {
        if (!parse_body(p) || !place_shared(p) || !place_stack(p) || !keep_body(p)) return false;
        p->entry->note_count = p->lex.note_count - *first_note;
        if (p->entry->note_count) p->entry->notes = p->lex.notes + *first_note;
        *first_note = p->lex.note_count;
        p->module->entry_count++;
    }
    p->entry = NULL;
    return scope_close(p);
}

/* ---- the module ---- */

static bool parse_version(struct parser *p)
{
    struct token tok = next(p);
    const char *dot = tok.kind == TOK_F64 ? memchr(tok.text, '.', tok.length) : NULL;

    if (!dot || dot - tok.text > 3 || tok.length - (size_t)(dot - tok.text) != 2)
        return parse_fail(p, tok.pos, "malformed .version");
    for (size_t i = 0; i < tok.length; i++)
        if (tok.text[i] != '.')
            p->module->version = p->module->version * 10U + (uint32_t)(tok.text[i] - '0');
    return true;
}

static bool parse_target(struct parser *p)
{
    struct token name;

    if (!expect_name(p, "a target", &name)) return false;
    p->module->target = arena_strndup(p->arena, name.text, name.length);
    if (!p->module->target) return parse_memory(p);
    while (accept(p, ',')) /* debug, texmode_…: change nothing here */
        if (!expect_name(p, "a target option", &name)) return false;
    return true;
}

static bool parse_address_size(struct parser *p)
{
    struct src_pos pos = peek(p)->pos;
    int64_t size;

    if (!parse_bounded(p, ".address_size", 32, 64, &size)) return false;
    return size == 64 ||
           parse_fail(p, pos, ".address_size %d is not supported, only 64", (int)size);
}

static bool parse_file_directive(struct parser *p)
{
    next(p); /* index */
    if (peek(p)->kind != TOK_STRING) return unexpected(p, "a file name");
    next(p);
    while (accept(p, ',')) next(p); /* time stamp, size */
    return true;
}

static bool is_linkage(const struct token *tok)
{
    return token_is(tok, "visible") || token_is(tok, "extern") || token_is(tok, "weak") ||
           token_is(tok, "common");
}

static bool module_directive(struct parser *p, struct token tok, uint32_t *first_note)
{
    bool is_extern = false;

    for (; tok.kind == TOK_DOT && is_linkage(&tok); tok = next(p))
        is_extern = is_extern || token_is(&tok, "extern");
    if (tok.kind != TOK_DOT)
        return parse_fail(p, tok.pos, "expected a directive, found '%.*s'",
                          (int)(tok.length > 60 ? 60 : tok.length), tok.text);
    if (!p->module->target && !token_is(&tok, "target"))
        return parse_fail(p, tok.pos, "expected .target, found '.%.*s'", (int)tok.length, tok.text);
    if (space_directive(&tok) != SPACE_NONE)
        return parse_variables(p, space_directive(&tok), is_extern);
    if (token_is(&tok, "entry"))
        return p->routines_wait ? note_entry(p, first_note) : parse_entry(p, first_note);
    if (token_is(&tok, "func")) return note_function(p);
    if (token_is(&tok, "target")) return parse_target(p);
    if (token_is(&tok, "address_size")) return parse_address_size(p);
    if (token_is(&tok, "file")) return parse_file_directive(p);
    if (token_is(&tok, "section")) {
        if (peek(p)->kind == TOK_DOT || peek(p)->kind == TOK_NAME) next(p);
        return expect(p, '{') && skip_block(p, '{', '}');
    }
    if (token_is(&tok, "pragma")) return skip_past(p, ';');
    if (token_is(&tok, "alias")) return parse_alias(p);
    return parse_fail(p, tok.pos, "unknown directive '.%.*s'", (int)tok.length, tok.text);
}

static bool parse_module(struct parser *p)
{
    struct token tok = next(p);
    uint32_t first_note = 0;

    if (tok.kind != TOK_DOT || !token_is(&tok, "version"))
        return parse_fail(p, tok.pos, "the text must start with .version");
    if (!parse_version(p)) return false;
    while (peek(p)->kind != TOK_END) {
        if (accept(p, ';')) continue;
        if (!module_directive(p, next(p), &first_note)) return false;
    }
    if (!p->module->target) parse_fail(p, peek(p)->pos, "missing .target");
    return !p->failed && parse_waiting(p);
}

int ptx_parse(const char *text, size_t length, struct ptx_module **out, struct ptx_diag *diag)
{
    return ptx_parse_file(NULL, text, length, out, diag);
}

int ptx_parse_file(const char *name, const char *text, size_t length, struct ptx_module **out,
                   struct ptx_diag *diag)
{
    struct parser *p = calloc(1, sizeof *p);
    struct ptx_module *module = calloc(1, sizeof *module);
    bool ok = false;

    *out = NULL;
    if (!p || !module) {
        snprintf(diag->text, sizeof diag->text, "out of memory");
    } else {
        p->diag = diag;
        p->module = module;
        p->arena = &module->arena;
        p->routines_wait = memmem(text, length, ".func", 5) != NULL;
        ok = lex_start(&p->lex, p->arena, name, text, length)
                 ? loc_read_files(p, text, length) && parse_module(p) && place_globals(p)
                 : parse_memory(p);
        module->files = p->lex.files;
        module->file_count = p->lex.file_count;
        module->globals = p->globals;
        module->entries = p->entries;
    }
    if (p) arena_free(&p->scratch);
    free(p);
    if (ok)
        *out = module;
    else
        ptx_module_free(module);
    return ok ? 0 : -1;
}
