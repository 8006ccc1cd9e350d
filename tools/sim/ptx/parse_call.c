/*
 * Functions and calls. A module with functions is read in two passes: the first notes where bodies
 * stand and which functions they name; when everything is declared, each entry is read, the functions
 * that it can reach before it (module.h, struct ptx_function).
 */
#include "ptx/parse.h"

#include <string.h>

enum {
    FRAME_ALIGN = 16,
    RECURSIVE_STACK = 16 * 1024, /* bytes of a thread, where no bound follows from the text */
    TAKEN_MOST = 16 * 1024,      /* bytes that alloca has for a thread */
    MAX_CALL_ITEMS = 64
};

static uint32_t frame_round(uint32_t bytes)
{
    return (bytes + FRAME_ALIGN - 1U) & ~(FRAME_ALIGN - 1U);
}

uint64_t function_address(const struct symbol *symbol)
{
    return FUNCTION_WINDOW + FUNCTION_STEP * (symbol->first + 1ULL);
}

/* ---- the first pass ---- */

static struct text_place here(const struct parser *p)
{
    return (struct text_place){p->lex, p->tok, p->peeked};
}

static void go_to(struct parser *p, const struct text_place *place)
{
    p->lex = place->lex;
    p->tok = place->tok;
    p->peeked = place->peeked;
}

static bool add_use(struct parser *p, struct routine *r, uint32_t function)
{
    uint32_t *uses;

    for (uint32_t i = 0; i < r->use_count; i++)
        if (r->uses[i] == function) return true;
    uses = arena_grow(&p->scratch, r->uses, r->use_count, &r->use_capacity, sizeof *uses);
    if (!uses) return parse_memory(p);
    r->uses = uses;
    uses[r->use_count++] = function;
    return true;
}

/* From behind `{` to behind its `}`: which functions the body names, and whether it calls through
 * pointers. */
static bool scan_body(struct parser *p, struct routine *r)
{
    for (uint32_t depth = 1; depth;) {
        struct token tok = next(p);
        const struct symbol *symbol;
        uint32_t reg = NO_REG;

        if (tok.kind == TOK_END) return unexpected(p, "a closing bracket");
        if (tok.kind == TOK_PUNCT) depth += (uint32_t)(tok.punct == '{') - (tok.punct == '}');
        if (tok.kind == TOK_DOT &&
            (token_is(&tok, "callprototype") || token_is(&tok, "calltargets")))
            r->calls_pointers = true;
        if (tok.kind != TOK_NAME || tok.text[0] == '%') continue;
        symbol = scope_find(p, &tok, &reg);
        if (symbol && symbol->kind == SYM_FUNC && !add_use(p, r, symbol->first)) return false;
    }
    return true;
}

/* From behind the parameters: directives, then a body or a semicolon. */
static bool scan_rest(struct parser *p, struct routine *r)
{
    while (!at_punct(p, '{')) {
        if (accept(p, ';')) return true;
        if (peek(p)->kind == TOK_END) return unexpected(p, "a body");
        if (next(p).kind == TOK_DOT && token_is(&p->tok, "pragma") && !skip_past(p, ';'))
            return false;
    }
    next(p);
    r->has_body = true;
    return scan_body(p, r);
}

static bool skip_attributes(struct parser *p)
{
    while (peek(p)->kind == TOK_DOT) {
        next(p);
        if (accept(p, '(') && !skip_block(p, '(', ')')) return false;
    }
    return true;
}

/* The routine of a function's symbol; a prototype may have made it before. */
static struct routine *function_routine(struct parser *p, struct symbol *symbol)
{
    struct routine *all;

    if (symbol->first < p->function_count && p->functions[symbol->first].name == symbol->name)
        return &p->functions[symbol->first];
    all = arena_grow(&p->scratch, p->functions, p->function_count, &p->function_capacity,
                     sizeof *all);
    if (!all) return NULL;
    p->functions = all;
    symbol->first = p->function_count++;
    all[symbol->first] = (struct routine){.name = symbol->name, .pos = symbol->pos};
    return &all[symbol->first];
}

bool note_function(struct parser *p)
{
    struct text_place place = here(p);
    struct routine fresh = {0}, *r;
    struct symbol *symbol;
    struct token name;

    if (!skip_attributes(p) || (accept(p, '(') && !skip_block(p, '(', ')')) ||
        !expect_name(p, "a function name", &name))
        return false;
    symbol = scope_declare(p, &name, SYM_FUNC);
    if (!symbol) return false;
    r = function_routine(p, symbol);
    if (!r) return parse_memory(p);
    fresh = *r;
    if (accept(p, '(') && !skip_block(p, '(', ')')) return false;
    if (!scan_rest(p, &fresh)) return false;
    if (fresh.has_body && r->has_body && at_punct(p, '{')) return unexpected(p, "one body");
    if (fresh.has_body && !r->has_body) {
        fresh.place = place;
        fresh.pos = name.pos;
    }
    *r = fresh;
    return true;
}

bool parse_alias(struct parser *p)
{
    struct symbol *symbols[2];
    struct token name;

    for (int i = 0; i < 2; i++) {
        if ((i && !expect(p, ',')) || !expect_name(p, "a function", &name)) return false;
        symbols[i] = scope_symbol(p, &name);
        if (!symbols[i]) return unknown_name(p, &name);
        if (symbols[i]->kind != SYM_FUNC)
            return parse_fail(p, name.pos, "'%s' is not a function", symbols[i]->name);
    }
    if (p->functions[symbols[0]->first].has_body)
        return parse_fail(p, name.pos, "'%s' has a body and is no alias", symbols[0]->name);
    if (symbols[0]->first == symbols[1]->first)
        return parse_fail(p, name.pos, "'%s' is an alias of itself", symbols[0]->name);
    p->functions[symbols[0]->first].alias = symbols[1]->first + 1;
    symbols[0]->first = symbols[1]->first;
    return expect(p, ';');
}

bool note_entry(struct parser *p, uint32_t *first_note)
{
    struct routine r = {.place = here(p), .first_note = *first_note}, *all;
    struct token name;

    if (!expect_name(p, "an entry name", &name)) return false;
    if (accept(p, '(') && !skip_block(p, '(', ')')) return false;
    if (!scan_rest(p, &r)) return false;
    if (!r.has_body) return true;
    *first_note = p->lex.note_count;
    all = arena_grow(&p->scratch, p->waiting, p->waiting_count, &p->waiting_capacity, sizeof *all);
    if (!all) return parse_memory(p);
    p->waiting = all;
    all[p->waiting_count++] = r;
    return true;
}

bool parse_waiting(struct parser *p)
{
    struct text_place end = here(p);

    for (uint32_t i = 0; i < p->waiting_count; i++) {
        uint32_t first_note = p->waiting[i].first_note;

        go_to(p, &p->waiting[i].place);
        p->routines_wait = false;
        p->waiting[0] = p->waiting[i]; /* the one that parse_functions reads */
        if (!parse_entry(p, &first_note)) return false;
    }
    go_to(p, &end);
    return true;
}

/* ---- functions of an entry ---- */

/* `(` formals `)`, either list of a function. */
static bool parse_formals(struct parser *p, const struct ptx_formal **out, uint32_t *count)
{
    struct ptx_formal items[MAX_CALL_ITEMS + MAX_LANES], *copy;
    uint32_t n = 0, more = 0;

    if (!at_punct(p, ')')) do {
            struct src_pos pos = peek(p)->pos;

            if (!parse_formal(p, &items[n], &more)) return false;
            n += more;
            if (n > MAX_CALL_ITEMS)
                return parse_fail(p, pos, "more than %d parameters of a function",
                                  (int)MAX_CALL_ITEMS);
        } while (accept(p, ','));
    copy = arena_alloc(p->arena, (n + 1U) * sizeof *copy);
    if (!copy) return parse_memory(p);
    if (n) memcpy(copy, items, n * sizeof *copy);
    *out = copy;
    *count = n;
    return expect(p, ')');
}

/* How calls save registers, and that a function does not come back, change nothing here. */
static bool function_directives(struct parser *p)
{
    while (peek(p)->kind == TOK_DOT) {
        struct token tok = next(p);
        int64_t ignored;

        if (token_is(&tok, "pragma")) {
            if (!skip_past(p, ';')) return false;
        } else if (token_is(&tok, "abi_preserve") || token_is(&tok, "abi_preserve_control")) {
            if (!parse_bounded(p, "the number of registers", 0, INT32_MAX, &ignored)) return false;
        } else if (!token_is(&tok, "noreturn")) {
            return parse_fail(p, tok.pos, "unknown directive '.%.*s' of a function",
                              (int)tok.length, tok.text);
        }
    }
    return true;
}

static bool read_function(struct parser *p, struct ptx_function *f)
{
    struct token name;

    if (!scope_open(p) || !skip_attributes(p)) return false;
    if (accept(p, '(') && !parse_formals(p, &f->rets, &f->ret_count)) return false;
    if (!expect_name(p, "a function name", &name)) return false;
    if (accept(p, '(') && !parse_formals(p, &f->args, &f->arg_count)) return false;
    return function_directives(p) && parse_body(p) && scope_close(p);
}

/* Reads one function into the current entry, the functions that it names first. */
static bool gather(struct parser *p, uint32_t index)
{
    struct routine *r = &p->functions[index];
    const struct ptx_function **own;
    struct text_place back;
    struct ptx_function *f;

    if (r->alias) return gather(p, r->alias - 1); /* named before `.alias` was read */
    if (!r->has_body || r->state == ROUTINE_DONE) return true;
    if (r->state == ROUTINE_OPEN) return p->entry->recursive = true;
    if (++p->nesting > MAX_DEPTH) return parse_fail(p, r->pos, "calls are nested too deeply");
    r->state = ROUTINE_OPEN;
    for (uint32_t i = 0; i < r->use_count; i++)
        if (!gather(p, r->uses[i])) return false;
    r->state = ROUTINE_DONE;
    p->nesting--;

    f = arena_alloc(p->arena, sizeof *f);
    own = arena_grow(p->arena, p->own_functions, p->entry->function_count,
                     &p->own_function_capacity, sizeof *own);
    if (!f || !own) return parse_memory(p);
    p->own_functions = own;
    own[p->entry->function_count++] = f;
    f->name = r->name;
    f->address = FUNCTION_WINDOW + FUNCTION_STEP * (index + 1ULL);
    f->start = p->body_start = p->entry->insn_count;
    f->first_reg = p->entry->reg_count;
    p->function = f;
    back = here(p);
    go_to(p, &r->place);
    if (!read_function(p, f)) return false;
    go_to(p, &back);
    p->function = NULL;
    f->reg_count = p->entry->reg_count - f->first_reg;
    f->frame_bytes = frame_round(f->frame_bytes);
    return true;
}

/* The entry begins in its own frame, at 0. */
static bool begin_frame(struct parser *p)
{
    static const char *const mods[] = {"mov", "u64"};
    struct operand *operands = arena_alloc(p->arena, 2 * sizeof *operands);
    struct ptx_insn *insn = add_instruction(p);

    if (!operands || !insn) return parse_memory(p);
    operands[0] = (struct operand){.kind = OPD_REG, .reg = p->entry->frame_reg};
    operands[1] = (struct operand){.kind = OPD_INT};
    insn->pos = insn->ptx_pos = p->entry->pos;
    insn->text = "entry frame";
    insn->mods = mods;
    insn->mod_count = 2;
    insn->operands = operands;
    insn->operand_count = 2;
    return true;
}

static bool calls_pointers(const struct parser *p)
{
    for (uint32_t i = 0; i < p->function_count; i++)
        if (p->functions[i].state == ROUTINE_DONE && p->functions[i].calls_pointers) return true;
    return p->waiting[0].calls_pointers;
}

bool parse_functions(struct parser *p)
{
    const struct routine *entry = p->waiting;

    if (!p->waiting_count || !p->function_count) return true;
    p->own_functions = NULL;
    p->own_function_capacity = 0;
    p->entry->frame_reg = hidden_register(p, "frame", T_B64);
    if (p->entry->frame_reg == NO_REG) return false;
    for (uint32_t i = 0; i < p->function_count; i++) p->functions[i].state = ROUTINE_NEW;
    for (uint32_t i = 0; i < entry->use_count; i++)
        if (!gather(p, entry->uses[i])) return false;
    if (calls_pointers(p)) { /* what a pointer may hold: any function in an initial value, too */
        p->entry->recursive = true;
        for (uint32_t i = 0; i < p->function_count; i++)
            if (i < p->pointed_capacity && p->pointed[i] && !gather(p, i)) return false;
    }
    p->entry->functions = p->own_functions;
    p->entry->start = p->body_start = p->entry->insn_count;
    return p->entry->function_count ? begin_frame(p) : true;
}

/* The memory of alloca lies behind all frames. */
static void place_taken(const struct parser *p)
{
    struct ptx_entry *e = p->entry;

    for (uint32_t i = 0; i < e->insn_count && !e->taken_at; i++)
        if (!strcmp(p->insns[i].mods[0], "alloca")) e->taken_at = frame_round(e->local_bytes + 1);
    if (e->taken_at) e->local_bytes = e->taken_at + TAKEN_MOST;
}

bool place_stack(struct parser *p)
{
    struct ptx_entry *e = p->entry;
    uint64_t stack = e->recursive ? RECURSIVE_STACK : 0;

    if (!e->function_count) {
        e->local_bytes = e->frame_bytes;
        place_taken(p);
        return true;
    }
    e->frame_bytes = frame_round(e->frame_bytes);
    for (uint32_t i = 0; i < e->function_count; i++) stack += e->functions[i]->frame_bytes;
    e->local_bytes = (uint32_t)(e->frame_bytes + stack);
    place_taken(p);
    return true;
}

/* ---- calls ---- */

/* A place, a register or a constant: items[0 … *count-1]. A vector is as many as it has components. */
static bool call_item(struct parser *p, struct operand *items, uint32_t *count)
{
    struct src_pos pos = peek(p)->pos;
    struct operand item = {0};
    const struct operand *from = &item;

    *count = 1;
    if (!parse_operand(p, &item)) return false;
    if (item.kind == OPD_VECTOR) {
        *count = item.count;
        from = item.items;
    }
    if (*count > MAX_LANES)
        return parse_fail(p, pos, "more than %d registers in braces", (int)MAX_LANES);
    for (uint32_t i = 0; i < *count; i++) {
        items[i] = from[i];
        if (items[i].kind == OPD_NAME)
            return parse_fail(p, pos, "unknown name '%s'", items[i].name);
        if (items[i].kind == OPD_VAR && (!items[i].var->call_param || items[i].imm))
            return parse_fail(p, pos, "'%s' is no parameter of a call", items[i].var->name);
        if (items[i].kind > OPD_VAR && items[i].kind != OPD_SINK)
            return parse_fail(p, pos, "not a parameter, a register or a constant");
    }
    return true;
}

/* From behind `(`. */
static bool call_list(struct parser *p, const struct operand **out, uint32_t *count)
{
    struct operand items[MAX_CALL_ITEMS + MAX_LANES] = {{0}}, *copy;
    uint32_t n = 0, more = 0;

    if (!at_punct(p, ')')) do {
            struct src_pos pos = peek(p)->pos;

            if (!call_item(p, &items[n], &more)) return false;
            n += more;
            if (n > MAX_CALL_ITEMS)
                return parse_fail(p, pos, "more than %d parameters of a call", (int)MAX_CALL_ITEMS);
        } while (accept(p, ','));
    copy = arena_alloc(p->arena, (n + 1U) * sizeof *copy);
    if (!copy) return parse_memory(p);
    memcpy(copy, items, n * sizeof *copy);
    *out = copy;
    *count = n;
    return expect(p, ')');
}

static bool call_target(struct parser *p, struct ptx_call *call)
{
    const struct symbol *symbol;
    struct operand *target;
    struct token name;
    uint32_t reg = NO_REG;

    if (!expect_name(p, "a function", &name)) return false;
    symbol = scope_find(p, &name, &reg);
    if (!symbol) return unknown_name(p, &name);
    if (symbol->kind == SYM_FUNC) {
        call->callee = p->functions[symbol->first].name; /* an alias calls what it stands for */
        return true;
    }
    if (reg == NO_REG || symbol->lanes > 1)
        return parse_fail(p, name.pos, "'%s' is neither a function nor a register", symbol->name);
    target = arena_alloc(p->arena, sizeof *target);
    if (!target) return parse_memory(p);
    *target = (struct operand){.kind = OPD_REG, .reg = reg};
    call->target = target;
    return true;
}

bool parse_call(struct parser *p, struct ptx_insn *insn)
{
    struct ptx_call *call = arena_alloc(p->arena, sizeof *call);
    struct token list;

    if (!call) return parse_memory(p);
    call->caller = p->function;
    insn->call = call;
    if (accept(p, '(') && (!call_list(p, &call->rets, &call->ret_count) || !expect(p, ',')))
        return false;
    if (!call_target(p, call)) return false;
    while (accept(p, ',')) {
        if (accept(p, '(')) {
            if (!call_list(p, &call->args, &call->arg_count)) return false;
        } else if (!expect_name(p, "a prototype or a list of targets", &list)) {
            return false;
        }
    }
    return at_punct(p, ';') ? expect(p, ';') : unexpected(p, "',' or ';'");
}
