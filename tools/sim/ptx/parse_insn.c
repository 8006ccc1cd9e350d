#include "ptx/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_OPERANDS = 32, MAX_ADDRESS_PARTS = 6, MAX_ITEMS = 256, MAX_MODS = 32 };

static const struct {
    const char *text;
    enum special_reg sreg;
} special_regs[] = {
#define X(name, text) {text, SR_##name},
    SPECIAL_REGS(X)
#undef X
};

/* Those that PTX has besides, with how many follow one another: not modelled. */
static const struct {
    const char *name, *suffix;
    unsigned count; /* 0: no number */
} other_regs[] = {{"%pm", "", 8}, {"%pm", "_64", 8}, {"%envreg", "", 32}};

static bool other_register(const struct token *name)
{
    char text[40];

    for (size_t i = 0; i < sizeof other_regs / sizeof other_regs[0]; i++) {
        if (!other_regs[i].count && token_is(name, other_regs[i].name)) return true;
        for (unsigned n = 0; n < other_regs[i].count; n++) {
            snprintf(text, sizeof text, "%s%u%s", other_regs[i].name, n, other_regs[i].suffix);
            if (token_is(name, text)) return true;
        }
    }
    return false;
}

/* A copy in the module's arena. */
static struct operand *keep(struct parser *p, const struct operand *items, uint32_t count)
{
    struct operand *copy = arena_alloc(p->arena, (count + 1U) * sizeof *copy);

    if (copy)
        memcpy(copy, items, count * sizeof *copy);
    else
        parse_memory(p);
    return copy;
}

/* `%tid.x`: true when the name (and the component behind it, then consumed) is a special register. */
static bool special_register(struct parser *p, const struct token *name, struct operand *out)
{
    size_t length = name->length;
    bool dotted = peek(p)->kind == TOK_DOT && peek(p)->length == 1;

    for (size_t i = 0; i < sizeof special_regs / sizeof special_regs[0]; i++) {
        const char *text = special_regs[i].text, *dot = strchr(text, '.');

        if (strncmp(text, name->text, length) != 0) continue;
        if (dot ? !dotted || (size_t)(dot - text) != length || dot[1] != peek(p)->text[0]
                : strlen(text) != length)
            continue;
        if (dot) next(p);
        out->kind = OPD_SREG;
        out->reg = special_regs[i].sreg;
        return true;
    }
    if (!other_register(name)) return false;
    out->kind = OPD_SREG;
    out->reg = SR_COUNT;
    return true;
}

/* `v.x`, or all of `v` as a vector; its components are registers first … first+lanes-1. */
static bool vector_register(struct parser *p, const struct token *name, uint32_t first,
                            uint32_t lanes, struct operand *out)
{
    struct operand items[MAX_LANES] = {{0}};
    struct token tok = *peek(p);

    if (tok.kind == TOK_DOT) {
        static const char names[] = "xyzwrgba";
        const char *at = tok.length == 1 ? strchr(names, tok.text[0]) : NULL;
        uint32_t lane = at ? (uint32_t)(at - names) % MAX_LANES : MAX_LANES;

        if (!at || lane >= lanes)
            return parse_fail(p, tok.pos, "'%.*s' has no component '.%.*s'", (int)name->length,
                              name->text, (int)tok.length, tok.text);
        next(p);
        out->kind = OPD_REG;
        out->reg = first + lane;
        return true;
    }
    for (uint32_t i = 0; i < lanes; i++)
        items[i] = (struct operand){.kind = OPD_REG, .reg = first + i};
    out->kind = OPD_VECTOR;
    out->count = (uint16_t)lanes;
    out->items = keep(p, items, lanes);
    return out->items != NULL;
}

/* A signed constant behind a variable or a base register; 0 if there is none. */
static bool parse_displacement(struct parser *p, int64_t *out)
{
    struct constant c = {0, false};

    if ((at_punct(p, '+') || at_punct(p, '-')) && !parse_constant(p, &c)) return false;
    *out = c.value;
    return true;
}

/* `v[2]`, from behind the bracket: memory or, in instructions that compute with addresses, the address of an
 * element. Elements are those of the type; a vector's count as one each. */
static bool element_operand(struct parser *p, const struct ptx_var *var, struct operand *out)
{
    struct operand item = {.kind = OPD_VAR, .var = var};
    struct constant index;

    if (!parse_constant(p, &index) || !expect(p, ']')) return false;
    item.imm = index.value * (int64_t)(ptx_type_bits(var->type) / 8);
    *out = item;
    if (p->computes_address) return true;
    item.imm = 0;
    out->kind = OPD_ADDRESS;
    out->var = NULL;
    out->count = 1;
    out->items = keep(p, &item, 1);
    return out->items != NULL;
}

/* A label or a function; which one is known when the block closes. */
static bool label_operand(struct parser *p, const struct token *name, struct operand *out)
{
    out->kind = OPD_NAME;
    out->name = arena_strndup(p->arena, name->text, name->length);
    return out->name || parse_memory(p);
}

static bool named_operand(struct parser *p, struct operand *out)
{
    struct token name = next(p);
    const struct symbol *symbol;
    uint32_t reg = 0;

    if (token_is(&name, "_")) {
        out->kind = OPD_SINK;
        return true;
    }
    symbol = scope_find(p, &name, &reg);
    if (!symbol) {
        if (name.text[0] == '%') return special_register(p, &name, out) || unknown_name(p, &name);
        return label_operand(p, &name, out);
    }
    switch (symbol->kind) {
    case SYM_REG:
    case SYM_RANGE:
        if (symbol->lanes > 1) return vector_register(p, &name, reg, symbol->lanes, out);
        out->kind = OPD_REG;
        out->reg = reg;
        return true;
    case SYM_VAR:
        out->kind = OPD_VAR;
        out->var = use_variable(p, symbol->var);
        if (!out->var) return parse_memory(p);
        return accept(p, '[') ? element_operand(p, out->var, out)
                              : parse_displacement(p, &out->imm);
    case SYM_FUNC:
        out->kind = OPD_INT;
        out->imm = (int64_t)function_address(symbol);
        return true;
    default: return label_operand(p, &name, out);
    }
}

/* From behind `{`. */
static bool vector_operand(struct parser *p, struct operand *out)
{
    struct operand items[MAX_ITEMS];
    uint32_t count = 0;

    do {
        struct src_pos pos = peek(p)->pos;
        struct operand item = {0};

        if (count == MAX_ITEMS)
            return parse_fail(p, pos, "more than %d registers in braces", (int)MAX_ITEMS);
        if (at_punct(p, '{') || at_punct(p, '[')) return unexpected(p, "a register or a constant");
        if (!parse_operand(p, &item)) return false;
        if (item.kind == OPD_NAME) return parse_fail(p, pos, "unknown name '%s'", item.name);
        if (item.kind == OPD_PAIR || item.kind == OPD_VECTOR || item.negated)
            return parse_fail(p, pos, "not a register or a constant");
        items[count++] = item;
    } while (accept(p, ','));
    out->kind = OPD_VECTOR;
    out->count = (uint16_t)count;
    out->items = keep(p, items, count);
    return out->items && expect(p, '}');
}

/* From behind `[`: base and displacement, then the coordinate lists of a tensor address. */
static bool address_operand(struct parser *p, struct operand *out)
{
    struct operand items[MAX_ADDRESS_PARTS] = {{0}};
    struct src_pos pos = peek(p)->pos;
    uint32_t count = 1;

    if (peek(p)->kind == TOK_NAME && !token_is(peek(p), "WARP_SZ")) {
        struct token name = *peek(p);
        uint32_t reg;

        if (!scope_find(p, &name, &reg)) return unknown_name(p, &name);
        if (!named_operand(p, &items[0])) return false;
    } else if (!parse_literal(p, &items[0])) {
        return false;
    }
    if (items[0].kind != OPD_REG && items[0].kind != OPD_VAR && items[0].kind != OPD_INT)
        return parse_fail(p, pos, "not a register, variable or constant that can be an address");
    if (items[0].kind == OPD_REG) {
        if (!parse_displacement(p, &out->imm)) return false;
    } else { /* the displacement belongs to the address as a whole */
        out->imm = items[0].imm;
        items[0].imm = 0;
    }
    while (accept(p, ',')) {
        pos = peek(p)->pos;
        if (count == MAX_ADDRESS_PARTS) return parse_fail(p, pos, "too many parts in an address");
        if (!parse_operand(p, &items[count])) return false;
        if (items[count].kind == OPD_NAME)
            return parse_fail(p, pos, "unknown name '%s'", items[count].name);
        count++;
    }
    out->kind = OPD_ADDRESS;
    out->count = (uint16_t)count;
    out->items = keep(p, items, count);
    return out->items && expect(p, ']');
}

/* `d|p`, from behind the first half. */
static bool pair_operand(struct parser *p, struct operand *out)
{
    struct operand items[2] = {*out, {0}};
    struct src_pos pos = peek(p)->pos;

    if (peek(p)->kind != TOK_NAME) return unexpected(p, "a register");
    if (!named_operand(p, &items[1])) return false;
    if (items[1].kind != OPD_REG && items[1].kind != OPD_SINK)
        return parse_fail(p, pos, "the second half of a pair must be a register or '_'");
    *out = (struct operand){.kind = OPD_PAIR, .count = 2, .items = keep(p, items, 2)};
    return out->items != NULL;
}

bool parse_operand(struct parser *p, struct operand *out)
{
    const struct token *tok = peek(p);

    if (accept(p, '{')) return vector_operand(p, out);
    if (accept(p, '[')) return address_operand(p, out);
    if (at_punct(p, '!') && peek_second(p).kind == TOK_NAME) {
        struct src_pos pos = next(p).pos;
        if (!named_operand(p, out)) return false;
        if (out->kind != OPD_REG) return parse_fail(p, pos, "'!' needs a predicate register");
        out->negated = true;
        return true;
    }
    if (tok->kind == TOK_NAME && !token_is(tok, "WARP_SZ")) {
        if (!named_operand(p, out)) return false;
        if ((out->kind == OPD_REG || out->kind == OPD_SINK) && accept(p, '|'))
            return pair_operand(p, out);
        return true;
    }
    return parse_literal(p, out);
}

/* `r + 1` where no address is meant: operand.imm, which lower.c adds. */
static bool addend(struct parser *p, struct operand *out)
{
    struct constant c = {0, false};

    if (out->kind != OPD_REG || !at_punct(p, '+')) return true;
    if (!parse_constant(p, &c)) return false;
    out->imm = c.value;
    return true;
}

/* `.b1` or `.h32` behind a register of a video instruction: operand.name. */
static bool part_selector(struct parser *p, struct operand *out)
{
    struct token tok = *peek(p);
    if (out->kind != OPD_REG || tok.kind != TOK_DOT) return true;
    next(p);
    out->name = arena_strndup(p->arena, tok.text, tok.length);
    return out->name || parse_memory(p);
}

static bool parse_operands(struct parser *p, struct ptx_insn *insn)
{
    const char *name = insn->mods[0];
    bool video = name[0] == 'v' && strcmp(name, "vote") != 0;
    bool branch = !strcmp(name, "bra") || !strcmp(name, "brx");
    struct operand items[MAX_OPERANDS] = {{0}}, *operands;
    struct src_pos pos[MAX_OPERANDS];
    uint32_t count = 0;

    p->computes_address = !strcmp(name, "mov") || !strcmp(name, "cvta");
    if (!strcmp(name, "call")) return parse_call(p, insn);
    if (accept(p, ';')) return true;
    do {
        pos[count] = peek(p)->pos;
        if (count + 1 == MAX_OPERANDS) return parse_fail(p, pos[count], "too many operands");
        if (!parse_operand(p, &items[count])) return false;
        if (video && !part_selector(p, &items[count])) return false;
        if (!addend(p, &items[count])) return false;
        count++;
    } while (accept(p, ','));
    operands = keep(p, items, count);
    if (!operands) return false;
    for (uint32_t i = 0; i < count; i++)
        if (operands[i].kind == OPD_NAME && !scope_fixup(p, &operands[i], pos[i], branch))
            return false;
    insn->operands = operands;
    insn->operand_count = (uint16_t)count;
    return at_punct(p, ';') ? expect(p, ';') : unexpected(p, "',' or ';'");
}

struct ptx_insn *add_instruction(struct parser *p)
{
    struct ptx_insn *insns =
        arena_grow(&p->scratch, p->insns, p->entry->insn_count, &p->insn_capacity, sizeof *insns);

    if (!insns) {
        parse_memory(p);
        return NULL;
    }
    p->insns = insns;
    p->label_pending = false;
    insns[p->entry->insn_count] = (struct ptx_insn){.guard = NO_REG};
    return &insns[p->entry->insn_count++];
}

static bool parse_guard(struct parser *p, struct ptx_insn *insn)
{
    struct token name;
    uint32_t reg = NO_REG;

    insn->guard_negated = accept(p, '!');
    if (!expect_name(p, "a predicate register", &name)) return false;
    if (!scope_find(p, &name, &reg)) return unknown_name(p, &name);
    if (reg == NO_REG || p->regs[reg].type != T_PRED)
        return parse_fail(p, name.pos, "guard '%.*s' is not a predicate register", (int)name.length,
                          name.text);
    insn->guard = reg;
    return true;
}

/* The opcode's dot-separated parts, its first already read. */
static bool parse_mods(struct parser *p, const struct token *name, struct ptx_insn *insn)
{
    const char *mods[MAX_MODS], **copy;
    uint16_t count = 0;
    struct token tok = *name;

    for (;;) {
        if (count == MAX_MODS) return parse_fail(p, tok.pos, "too many modifiers");
        mods[count] = arena_strndup(p->arena, tok.text, tok.length);
        if (!mods[count++]) return parse_memory(p);
        if (peek(p)->kind != TOK_DOT) break;
        tok = next(p);
    }
    copy = arena_alloc(p->arena, count * sizeof *copy);
    if (!copy) return parse_memory(p);
    memcpy(copy, mods, count * sizeof *copy);
    insn->mods = copy;
    insn->mod_count = count;
    return true;
}

/* `name` is the opcode's first part, already consumed; `start` the instruction's first byte. */
static bool finish_instruction(struct parser *p, const struct token *name, const char *start,
                               struct ptx_insn *insn)
{
    const char *end;

    insn->ptx_pos = name->pos;
    insn->loc = p->loc;
    insn->pos = p->loc ? p->loc->pos : name->pos;
    if (!parse_mods(p, name, insn) || !parse_operands(p, insn)) return false;
    for (end = p->lex.at; end > start && (end[-1] == ';' || (unsigned char)end[-1] <= ' ');) end--;
    insn->text = lex_slice(&p->lex, start, end);
    return insn->text ? lower_instruction(p) : parse_memory(p);
}

bool parse_guarded(struct parser *p)
{
    struct ptx_insn *insn = add_instruction(p);
    struct token at = next(p), name;

    return insn && parse_guard(p, insn) && expect_name(p, "an instruction", &name) &&
           finish_instruction(p, &name, at.text, insn);
}

bool parse_instruction(struct parser *p, const struct token *name)
{
    struct ptx_insn *insn = add_instruction(p);

    return insn && finish_instruction(p, name, name->text, insn);
}

/* `.branchtargets L0, L1, …;` behind its label. */
bool parse_branch_targets(struct parser *p, struct symbol *label)
{
    struct operand items[MAX_ITEMS] = {{0}}, *targets;
    struct src_pos pos[MAX_ITEMS];
    uint32_t count = 0;

    do {
        struct token name;

        if (!expect_name(p, "a label", &name)) return false;
        if (count == MAX_ITEMS) return parse_fail(p, name.pos, "too many branch targets");
        if (!label_operand(p, &name, &items[count])) return false;
        pos[count++] = name.pos;
    } while (accept(p, ','));
    targets = keep(p, items, count);
    if (!targets) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!scope_fixup(p, &targets[i], pos[i], true)) return false;
    label->items = targets;
    label->count = count;
    return expect(p, ';');
}
