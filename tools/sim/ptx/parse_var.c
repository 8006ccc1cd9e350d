#include "ptx/parse.h"
#include "ptx/window.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PART_ALIGN = 256 }; /* of the initialised and of the other global variables */

enum {
    MAX_DIMS = 8,
    MAX_VECTOR_BITS = 128,
    MAX_ALIGN = 1 << 12,
    MAX_STATIC_SHARED = 48 * 1024, /* the assembler's limit for every target */
    MAX_CONST = 64 * 1024,
    MAX_LOCAL = 512 * 1024
};
#define MAX_VAR_BYTES  (1ULL << 36)
#define MAX_INIT_BYTES (1ULL << 28)

static uint64_t align_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) & ~(align - 1);
}

enum ptx_space space_directive(const struct token *tok)
{
    static const struct {
        const char *text;
        enum ptx_space space;
    } spaces[] = {{"shared", SPACE_SHARED},
                  {"global", SPACE_GLOBAL},
                  {"const", SPACE_CONST},
                  {"local", SPACE_LOCAL},
                  {"param", SPACE_PARAM}};

    for (size_t i = 0; tok->kind == TOK_DOT && i < sizeof spaces / sizeof spaces[0]; i++)
        if (token_is(tok, spaces[i].text)) return spaces[i].space;
    return SPACE_NONE;
}

/* ---- registers ---- */

static bool add_register(struct parser *p, const char *name, enum ptx_type type)
{
    struct ptx_reg *regs;

    if (!name) return parse_memory(p);
    if (p->entry->reg_count >= MAX_REGS)
        return parse_fail(p, peek(p)->pos, "more than %d registers in one entry", (int)MAX_REGS);
    regs = arena_grow(&p->scratch, p->regs, p->entry->reg_count, &p->reg_capacity, sizeof *regs);
    if (!regs) return parse_memory(p);
    p->regs = regs;
    regs[p->entry->reg_count++] = (struct ptx_reg){name, type};
    return true;
}

/* One register of a declaration, or the components of a vector. */
static bool add_lanes(struct parser *p, const char *name, enum ptx_type type, uint32_t lanes)
{
    if (!name) return parse_memory(p);
    if (lanes == 1) return add_register(p, name, type);
    for (uint32_t i = 0; i < lanes; i++)
        if (!add_register(p, arena_printf(p->arena, "%s.%c", name, "xyzw"[i]), type)) return false;
    return true;
}

/* `%r<8>`, from the number on. */
static bool register_range(struct parser *p, const struct token *name, enum ptx_type type,
                           uint32_t lanes)
{
    struct token count = next(p); /* no expression: '>' would go on with it */
    struct symbol *symbol;

    if (count.kind != TOK_INT || !count.value || count.value > MAX_REGS)
        return parse_fail(p, count.pos, "register count '%.*s' is not in 1..%d",
                          (int)(count.length > 20 ? 20 : count.length), count.text, (int)MAX_REGS);
    if (!expect(p, '>')) return false;
    symbol = scope_declare(p, name, SYM_RANGE);
    if (!symbol) return false;
    symbol->first = p->entry->reg_count;
    symbol->count = (uint32_t)count.value;
    symbol->lanes = lanes;
    for (uint32_t i = 0; i < symbol->count; i++)
        if (!add_lanes(p, arena_printf(p->arena, "%s%u", symbol->name, i), type, lanes))
            return false;
    return true;
}

static bool declare_register(struct parser *p, const struct token *name, enum ptx_type type,
                             uint32_t lanes)
{
    struct symbol *symbol;

    symbol = scope_declare(p, name, SYM_REG);
    if (!symbol) return false;
    symbol->first = p->entry->reg_count;
    symbol->count = 1;
    symbol->lanes = lanes;
    return add_lanes(p, symbol->name, type, lanes);
}

uint32_t hidden_register(struct parser *p, const char *name, enum ptx_type type)
{
    return add_register(p, name, type) ? p->entry->reg_count - 1 : NO_REG;
}

static uint32_t vector_lanes(const struct token *tok)
{
    if (tok->kind != TOK_DOT) return 0;
    return token_is(tok, "v2") ? 2 : token_is(tok, "v4") ? 4 : token_is(tok, "v8") ? 8 : 0;
}

/* `.u32` or `.v2 .u32` of a register. */
static bool register_type(struct parser *p, enum ptx_type *type, uint32_t *lanes)
{
    struct token tok;

    *lanes = vector_lanes(peek(p));
    if (*lanes) next(p);
    tok = next(p);
    *type = tok.kind == TOK_DOT ? ptx_type_named(tok.text, tok.length) : T_NONE;
    if (*type == T_NONE || *lanes > 4 || (*lanes && *type == T_PRED))
        return parse_fail(p, tok.pos, "malformed register type '%.*s'", (int)tok.length, tok.text);
    if (!*lanes) *lanes = 1;
    return true;
}

bool parse_reg_directive(struct parser *p)
{
    struct token name;
    enum ptx_type type;
    uint32_t lanes;

    if (!register_type(p, &type, &lanes)) return false;
    do {
        if (!expect_name(p, "a register name", &name)) return false;
        if (accept(p, '<')) {
            if (!register_range(p, &name, type, lanes)) return false;
        } else if (!declare_register(p, &name, type, lanes)) {
            return false;
        }
    } while (accept(p, ','));
    return expect(p, ';');
}

/* ---- variables ---- */

struct declarator {
    struct ptx_var var;
    struct token name;
    uint32_t dims;
    uint64_t dim[MAX_DIMS + 1]; /* the last one counts a vector's components */
    bool unsized;               /* `[]` */
    bool opaque;                /* .texref and its kin: a handle, no value */
    uint8_t *bytes;             /* initial value */
    uint64_t capacity;
};

static bool alignment(struct parser *p, uint32_t *align)
{
    struct src_pos pos = peek(p)->pos;
    int64_t value;

    if (!parse_bounded(p, "alignment", 1, MAX_ALIGN, &value)) return false;
    if (value & (value - 1))
        return parse_fail(p, pos, "alignment %" PRId64 " is not a power of two", value);
    *align = (uint32_t)value;
    return true;
}

/* `.ptr {.space} {.align N}` says what a parameter points to: nothing that execution needs. */
static bool pointer_attribute(struct parser *p)
{
    uint32_t ignored;

    if (space_directive(peek(p)) != SPACE_NONE) next(p);
    if (peek(p)->kind != TOK_DOT || !token_is(peek(p), "align")) return true;
    next(p);
    return alignment(p, &ignored);
}

/* Texture references are not modelled, only objects: what reads one fails, the variable is a name. */
static bool opaque_type(const struct token *tok)
{
    return token_is(tok, "texref") || token_is(tok, "samplerref") || token_is(tok, "surfref");
}

/* Alignment, vector and type, in any order. */
static bool parse_type(struct parser *p, struct declarator *d)
{
    uint32_t lanes = 1;

    d->var.align = 0;
    while (peek(p)->kind == TOK_DOT) {
        struct token tok = next(p);
        enum ptx_type type = ptx_type_named(tok.text, tok.length);

        if (type != T_NONE && type != T_PRED && d->var.type == T_NONE) {
            d->var.type = type;
        } else if (opaque_type(&tok) && d->var.space == SPACE_GLOBAL) {
            d->var.type = T_B64;
            d->opaque = true;
        } else if (vector_lanes(&tok)) {
            lanes = vector_lanes(&tok);
        } else if (token_is(&tok, "align")) {
            if (!alignment(p, &d->var.align)) return false;
        } else if (token_is(&tok, "ptr") && d->var.space == SPACE_PARAM) {
            if (!pointer_attribute(p)) return false;
        } else if (token_is(&tok, "attribute")) {
            if (!expect(p, '(') || !skip_block(p, '(', ')')) return false;
        } else {
            return parse_fail(p, tok.pos, "'.%.*s' is no type of a variable", (int)tok.length,
                              tok.text);
        }
    }
    if (d->var.type == T_NONE) return unexpected(p, "a type");
    if (lanes > 4 ||
        lanes * ptx_type_bits(d->var.type) > (lanes > 1 ? MAX_VECTOR_BITS : UINT32_MAX))
        return parse_fail(p, peek(p)->pos, "a vector of more than %d bits", (int)MAX_VECTOR_BITS);
    d->dim[MAX_DIMS] = lanes;
    d->var.elem_bytes = ptx_type_bits(d->var.type) / 8U * lanes;
    if (!d->var.align) d->var.align = d->var.elem_bytes;
    return true;
}

static bool parse_dims(struct parser *p, struct declarator *d)
{
    uint64_t total = d->var.elem_bytes;

    d->dims = 0;
    d->unsized = false;
    while (accept(p, '[')) {
        struct src_pos pos = peek(p)->pos;
        int64_t n = 0;

        if (d->dims == MAX_DIMS) return parse_fail(p, pos, "more than %d dimensions", MAX_DIMS);
        if (!d->dims && at_punct(p, ']'))
            d->unsized = true;
        else if (!parse_bounded(p, "array size", 0, INT64_MAX, &n))
            return false;
        if ((uint64_t)n > MAX_VAR_BYTES / (total ? total : 1))
            return parse_fail(p, pos, "'%.*s' is too large", (int)d->name.length, d->name.text);
        if (!d->unsized || d->dims) total *= (uint64_t)n;
        d->dim[d->dims++] = (uint64_t)n;
        if (!expect(p, ']')) return false;
    }
    d->var.is_array = d->dims > 0;
    d->var.bytes = d->unsized ? 0 : total;
    return true;
}

/* ---- initial values ---- */

/* Scalars below one item of brace level `level`; the level past the dimensions is a vector's. */
static uint64_t scalars_below(const struct declarator *d, uint32_t level)
{
    uint64_t n = level <= d->dims ? d->dim[MAX_DIMS] : 1;

    for (uint32_t i = level; i < d->dims; i++) n *= d->dim[i];
    return n;
}

/* A function's address is taken where calls through pointers may find it. */
static bool point_at(struct parser *p, uint32_t function)
{
    bool *pointed;

    while (function >= p->pointed_capacity) {
        pointed = arena_grow(&p->scratch, p->pointed, p->pointed_capacity, &p->pointed_capacity,
                             sizeof *pointed);
        if (!pointed) return parse_memory(p);
        p->pointed = pointed;
    }
    return p->pointed[function] = true;
}

/* `f`, `x`, `x+8`, `generic(x)+8`: a function's address as a number, a variable's as a relocation
 * (in this machine generic addresses of global and constant variables are their own). */
static bool initial_address(struct parser *p, struct ptx_reloc *reloc, struct operand *value)
{
    const struct symbol *symbol;
    struct constant addend = {0, false};
    struct token name;
    uint32_t reg;
    bool generic;

    if (!expect_name(p, "a name", &name)) return false;
    generic = token_is(&name, "generic") && accept(p, '(');
    if (generic && !expect_name(p, "a name", &name)) return false;
    symbol = scope_find(p, &name, &reg);
    if (generic && !expect(p, ')')) return false;
    if (!symbol || (symbol->kind != SYM_FUNC && symbol->kind != SYM_VAR))
        return unknown_name(p, &name);
    if ((at_punct(p, '+') || at_punct(p, '-')) && !parse_constant(p, &addend)) return false;
    if (symbol->kind == SYM_FUNC) {
        value->imm = (int64_t)function_address(symbol) + addend.value;
        return point_at(p, symbol->first);
    }
    if (symbol->var->space != SPACE_GLOBAL && symbol->var->space != SPACE_CONST)
        return parse_fail(p, name.pos, "the address of '%s' is not known before the launch",
                          symbol->name);
    reloc->var = symbol->var;
    reloc->addend = addend.value;
    return true;
}

/* A literal, or an address; `0xFF00(address)` takes the bits of the mask, shifted down. */
static bool initial_bits(struct parser *p, struct declarator *d, uint64_t at, uint32_t size,
                         struct operand *value)
{
    struct ptx_reloc reloc = {.at = at, .size = size}, *keep;
    bool masked = peek(p)->kind == TOK_INT && p->tok.value;
    struct token second = masked ? peek_second(p) : (struct token){0};

    masked = masked && second.kind == TOK_PUNCT && second.punct == '(';
    if (!masked && (peek(p)->kind != TOK_NAME || token_is(peek(p), "WARP_SZ")))
        return parse_literal(p, value);
    if (masked) {
        reloc.shift = (uint32_t)__builtin_ctzll(next(p).value);
        next(p);
    }
    value->kind = OPD_INT;
    if (!initial_address(p, &reloc, value) || (masked && !expect(p, ')'))) return false;
    value->imm = (int64_t)((uint64_t)value->imm >> reloc.shift);
    if (!reloc.var) return true;
    keep = arena_alloc(p->arena, sizeof *keep);
    if (!keep) return parse_memory(p);
    *keep = reloc;
    keep->next = d->var.relocs;
    d->var.relocs = keep;
    return true;
}

static bool store_scalar(struct parser *p, struct declarator *d, uint64_t index)
{
    uint32_t size = ptx_type_bits(d->var.type) / 8U;
    uint64_t at = index * size;
    struct src_pos pos = peek(p)->pos;
    struct operand value = {0};
    uint64_t bits[2] = {0, 0};

    if (!initial_bits(p, d, at, size, &value)) return false;
    if (!d->unsized && at + size > d->var.bytes)
        return parse_fail(p, pos, "too many initial values for '%.*s'", (int)d->name.length,
                          d->name.text);
    if (at + size > MAX_INIT_BYTES) return parse_fail(p, pos, "initial value is too large");
    if (at + size > d->capacity) {
        uint64_t more = d->unsized ? (at + size) * 2 : d->var.bytes;
        uint8_t *bytes = more <= MAX_INIT_BYTES * 2 ? arena_alloc(p->arena, more) : NULL;
        if (!bytes) return parse_memory(p);
        if (d->bytes) memcpy(bytes, d->bytes, d->capacity);
        d->bytes = bytes;
        d->capacity = more;
    }
    bits[0] = ptx_literal_bits(&value, d->var.type);
    bits[1] = value.kind == OPD_INT && value.imm < 0 ? UINT64_MAX : 0;
    memcpy(d->bytes + at, bits, size);
    return true;
}

/* From behind `{`. Items may be braced by dimension or run on. */
static bool braces(struct parser *p, struct declarator *d, uint32_t level, uint64_t base,
                   uint64_t *end)
{
    uint64_t at = base;

    if (++p->nesting > MAX_DEPTH)
        return parse_fail(p, peek(p)->pos, "initial value is nested too deeply");
    *end = base;
    do {
        if (at_punct(p, '}')) break;
        if (accept(p, '{')) {
            uint64_t inner;
            if (!braces(p, d, level + 1, at, &inner)) return false;
            at += scalars_below(d, level + 1);
        } else if (!store_scalar(p, d, at++)) {
            return false;
        }
        *end = at;
    } while (accept(p, ','));
    p->nesting--;
    return expect(p, '}');
}

static bool initial_value(struct parser *p, struct declarator *d)
{
    struct src_pos pos = peek(p)->pos;
    uint64_t end = 1;

    if (d->opaque) return expect(p, '{') && skip_block(p, '{', '}');
    if (d->var.space != SPACE_GLOBAL && d->var.space != SPACE_CONST)
        return parse_fail(p, pos, "only .global and .const variables have initial values");
    if (d->var.is_extern) return parse_fail(p, pos, "an extern variable has no initial value");
    if (accept(p, '{') ? !braces(p, d, 0, 0, &end) : !store_scalar(p, d, 0)) return false;
    if (d->unsized) {
        uint64_t row = scalars_below(d, 1);
        uint64_t rows = row ? (end + row - 1) / row : 0;

        if (rows * row > MAX_INIT_BYTES) return parse_fail(p, pos, "initial value is too large");
        d->var.bytes = rows * row * (ptx_type_bits(d->var.type) / 8U);
        if (d->var.bytes > d->capacity && d->bytes) { /* the last row may be shorter */
            uint8_t *bytes = arena_alloc(p->arena, d->var.bytes);
            if (!bytes) return parse_memory(p);
            memcpy(bytes, d->bytes, d->capacity);
            d->bytes = bytes;
        }
        d->unsized = false;
    }
    d->var.init = d->bytes;
    return true;
}

/* ---- places ---- */

/* Lays out constants; what is global has its place only at the end (place_globals). */
static bool place_image(struct parser *p, struct ptx_var *var)
{
    uint64_t *bytes =
        var->space == SPACE_GLOBAL ? &p->module->global_bytes : &p->module->const_bytes;
    const struct ptx_var **globals;

    globals = arena_grow(p->arena, p->globals, p->module->global_count, &p->global_capacity,
                         sizeof *globals);
    if (!globals) return parse_memory(p);
    p->globals = globals;
    globals[p->module->global_count++] = var;
    if (var->is_extern) return true;
    var->offset = align_up(*bytes, var->align);
    *bytes = var->offset + var->bytes;
    if (var->space == SPACE_CONST && *bytes > MAX_CONST)
        return parse_fail(p, var->pos, "too much constant data (%" PRIu64 " bytes, %d max)", *bytes,
                          (int)MAX_CONST);
    return *bytes <= MAX_VAR_BYTES ||
           parse_fail(p, var->pos, "the module's variables need more than 64 GiB");
}

struct placed {
    struct ptx_var *var;
    uint32_t order; /* of declaration */
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    const struct ptx_var *v = x->var, *w = y->var;

    if (!v->init != !w->init) return v->init ? 1 : -1;
    if (v->align != w->align) return v->align > w->align ? -1 : 1;
    if (v->bytes != w->bytes) return v->bytes < w->bytes ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* As ptxas does: what has no initial value first and apart, by alignment, then from small to large. Programs pass arrays
 * of words to what needs 16 bytes, and are right where they run. */
bool place_globals(struct parser *p)
{
    struct placed *all = arena_alloc(&p->scratch, (p->module->global_count + 1) * sizeof *all);
    uint64_t at = 0;
    uint32_t count = 0;

    if (!all) return parse_memory(p);
    for (uint32_t i = 0; i < p->module->global_count; i++) {
        struct ptx_var *var = (struct ptx_var *)p->globals[i];
        if (var->space != SPACE_GLOBAL || var->is_extern) continue;
        all[count] = (struct placed){var, count};
        count++;
    }
    qsort(all, count, sizeof *all, compare_placed);
    for (uint32_t i = 0; i < count; i++) {
        const bool part = !i || !all[i].var->init != !all[i - 1].var->init;
        at = align_up(at, part && all[i].var->align < PART_ALIGN ? PART_ALIGN : all[i].var->align);
        all[i].var->offset = at;
        at += all[i].var->bytes;
    }
    p->module->global_bytes = at;
    return true;
}

static bool remember_shared(struct parser *p, struct ptx_var *var)
{
    if (p->depth) {
        struct ptx_var **own = arena_grow(&p->scratch, p->own_shared, p->own_shared_count,
                                          &p->own_shared_capacity, sizeof *own);
        if (!own) return parse_memory(p);
        p->own_shared = own;
        own[p->own_shared_count++] = var;
    } else {
        struct shared_var *all =
            arena_grow(&p->scratch, p->shared, p->shared_count, &p->shared_capacity, sizeof *all);
        if (!all) return parse_memory(p);
        p->shared = all;
        all[p->shared_count++] = (struct shared_var){var, NULL};
    }
    return true;
}

/* In the frame of the entry or of the function being read. */
static bool place_local(struct parser *p, struct ptx_var *var)
{
    uint32_t *bytes = p->function ? &p->function->frame_bytes : &p->entry->frame_bytes;
    uint64_t at = align_up(*bytes, var->align);

    if (at + var->bytes > MAX_LOCAL)
        return parse_fail(p, var->pos, "more than %d bytes of local memory", (int)MAX_LOCAL);
    var->offset = at;
    *bytes = (uint32_t)(at + var->bytes);
    return true;
}

static bool place(struct parser *p, struct ptx_var *var)
{
    switch (var->space) {
    case SPACE_SHARED: return remember_shared(p, var);
    case SPACE_GLOBAL:
    case SPACE_CONST: return place_image(p, var);
    case SPACE_LOCAL:
        return p->depth ? place_local(p, var)
                        : parse_fail(p, var->pos, "module-scope .local is not supported");
    default: /* a call's parameter */
        if (!p->depth) return parse_fail(p, var->pos, ".param outside an entry");
        var->space = SPACE_LOCAL;
        var->call_param = true;
        return place_local(p, var);
    }
}

static bool declare_variable(struct parser *p, struct declarator *d)
{
    struct ptx_var *var = arena_alloc(p->arena, sizeof *var);
    struct symbol *symbol;

    if (!var) return parse_memory(p);
    if (d->unsized && !(d->var.is_extern && d->dims == 1))
        return parse_fail(p, d->name.pos, "'%.*s' needs a size", (int)d->name.length, d->name.text);
    symbol = scope_declare(p, &d->name, SYM_VAR);
    if (!symbol) return false;
    *var = d->var;
    var->name = symbol->name;
    var->pos = d->name.pos;
    symbol->var = var;
    return place(p, var);
}

static bool parse_declarators(struct parser *p, struct declarator *first)
{
    do {
        struct declarator d = *first;

        if (!expect_name(p, "a variable name", &d.name) || !parse_dims(p, &d)) return false;
        if (accept(p, '=') && !initial_value(p, &d)) return false;
        if (!declare_variable(p, &d)) return false;
    } while (accept(p, ','));
    return expect(p, ';');
}

bool parse_variables(struct parser *p, enum ptx_space space, bool is_extern)
{
    struct declarator d = {0};

    d.var.space = space;
    d.var.is_extern = is_extern;
    if (space == SPACE_CONST && at_punct(p, '['))
        return parse_fail(p, peek(p)->pos, "constant banks are not supported since PTX 2.2");
    return parse_type(p, &d) && parse_declarators(p, &d);
}

/* ---- parameters ---- */

static bool parse_param(struct parser *p, struct ptx_var *var, struct token *name)
{
    struct declarator d = {0};
    struct token tok = next(p);
    uint64_t at;

    if (tok.kind != TOK_DOT || !token_is(&tok, "param"))
        return parse_fail(p, tok.pos, "expected .param, found '%.*s'", (int)tok.length, tok.text);
    d.var.space = SPACE_PARAM;
    if (!parse_type(p, &d) || !expect_name(p, "a parameter name", &d.name) || !parse_dims(p, &d))
        return false;
    if (d.unsized)
        return parse_fail(p, d.name.pos, "'%.*s' needs a size", (int)d.name.length, d.name.text);
    at = align_up(p->entry->param_bytes, d.var.align);
    if (d.var.bytes > MAX_PARAM_BYTES || at + d.var.bytes > MAX_PARAM_BYTES)
        return parse_fail(p, d.name.pos, "more than %d bytes of parameters", (int)MAX_PARAM_BYTES);
    *var = d.var;
    var->offset = at;
    var->pos = d.name.pos;
    p->entry->param_bytes = (uint32_t)(at + d.var.bytes);
    *name = d.name;
    return true;
}

bool parse_entry_params(struct parser *p)
{
    struct ptx_var *params = NULL;
    struct token *names = NULL;
    uint32_t count = 0, var_capacity = 0, name_capacity = 0;

    if (!expect(p, '(')) return false;
    if (!at_punct(p, ')')) do {
            params = arena_grow(p->arena, params, count, &var_capacity, sizeof *params);
            names = arena_grow(&p->scratch, names, count, &name_capacity, sizeof *names);
            if (!params || !names) return parse_memory(p);
            if (!parse_param(p, &params[count], &names[count])) return false;
            count++;
        } while (accept(p, ','));
    for (uint32_t i = 0; i < count; i++) { /* only now: the array has stopped moving */
        struct symbol *symbol = scope_declare(p, &names[i], SYM_VAR);
        if (!symbol) return false;
        params[i].name = symbol->name;
        symbol->var = &params[i];
    }
    p->entry->params = params;
    p->entry->param_count = count;
    return expect(p, ')');
}

/* A vector is as many formals as it has components. */
static bool register_formal(struct parser *p, struct ptx_formal *out, uint32_t *count)
{
    struct token name;
    enum ptx_type type;

    if (!register_type(p, &type, count) || !expect_name(p, "a parameter name", &name) ||
        !declare_register(p, &name, type, *count))
        return false;
    for (uint32_t i = 0; i < *count; i++)
        out[i] = (struct ptx_formal){NULL, p->entry->reg_count - *count + i};
    return true;
}

bool parse_formal(struct parser *p, struct ptx_formal *out, uint32_t *count)
{
    struct declarator d = {0};
    struct token tok = next(p);
    const struct symbol *symbol;
    uint32_t reg;

    if (tok.kind == TOK_DOT && token_is(&tok, "reg")) return register_formal(p, out, count);
    if (tok.kind != TOK_DOT || !token_is(&tok, "param"))
        return parse_fail(p, tok.pos, "expected .param, found '%.*s'", (int)tok.length, tok.text);
    d.var.space = SPACE_PARAM;
    if (!parse_type(p, &d) || !expect_name(p, "a parameter name", &d.name) || !parse_dims(p, &d))
        return false;
    if (d.unsized) d.unsized = false; /* `[]`: variable arguments, which no caller here passes */
    if (!declare_variable(p, &d)) return false;
    symbol = scope_find(p, &d.name, &reg);
    *out = (struct ptx_formal){symbol->var, NO_REG};
    *count = 1;
    return true;
}

/* ---- shared memory of an entry ---- */

const struct ptx_var *use_variable(struct parser *p, struct ptx_var *var)
{
    for (uint32_t i = 0; var->space == SPACE_SHARED && i < p->shared_count; i++) {
        struct shared_var *s = &p->shared[i];

        if (s->var != var) continue;
        if (!s->copy) {
            s->copy = arena_alloc(p->arena, sizeof *s->copy);
            if (!s->copy) return NULL;
            *s->copy = *var;
        }
        return s->copy;
    }
    return var;
}

/* Static variables in order of declaration, module scope first; extern ones where they end. The
 * window offset, not the offset in the static part, is what alignment is about. */
bool place_shared(struct parser *p)
{
    struct ptx_entry *entry = p->entry;
    uint32_t count = p->shared_count + p->own_shared_count;
    const struct ptx_var **vars = arena_alloc(p->arena, (count + 1) * sizeof *vars);
    struct ptx_var **all = arena_alloc(&p->scratch, (count + 1) * sizeof *all);
    uint32_t used = 0, extern_align = 1;
    uint64_t at = SHARED_RESERVED;

    if (!vars || !all) return parse_memory(p);
    for (uint32_t i = 0; i < p->shared_count; i++)
        if (p->shared[i].copy) all[used++] = p->shared[i].copy;
    for (uint32_t i = 0; i < p->own_shared_count; i++) all[used++] = p->own_shared[i];
    entry->shared_align = 1;
    for (uint32_t i = 0; i < used; i++) {
        struct ptx_var *var = all[i];

        if (var->align > entry->shared_align) entry->shared_align = var->align;
        if (var->is_extern) {
            if (var->align > extern_align) extern_align = var->align;
            continue;
        }
        at = align_up(at, var->align);
        var->offset = at - SHARED_RESERVED;
        at += var->bytes;
        if (at - SHARED_RESERVED > MAX_STATIC_SHARED)
            return parse_fail(p, var->pos,
                              "entry '%s' uses too much shared data (%" PRIu64 " bytes, %d max)",
                              entry->name, at - SHARED_RESERVED, (int)MAX_STATIC_SHARED);
        vars[entry->shared_count++] = var;
    }
    at = align_up(at, extern_align);
    entry->shared_bytes = (uint32_t)(at - SHARED_RESERVED);
    entry->shared = vars;
    for (uint32_t i = 0; i < used; i++)
        if (all[i]->is_extern) all[i]->offset = entry->shared_bytes;
    return true;
}
