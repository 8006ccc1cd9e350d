#include "decode/bind.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a pattern element wants of a scalar. */
struct want {
    uint32_t bits;      /* 0: any width */
    enum ptx_type type; /* how constants convert */
    bool dest;
};

/* Where the next argument goes; copied, so that a refused alternative leaves no trace. */
struct cursor {
    uint32_t arg, list, address, operand;
};

void refuse(struct decode *d, uint32_t rank, const char *format, ...)
{
    va_list args;

    if (d->why[0] && rank < d->why_rank) return;
    d->why_rank = rank;
    va_start(args, format);
    vsnprintf(d->why, sizeof d->why, format, args);
    va_end(args);
}

static struct arg sink(void)
{
    return (struct arg){.sink = 1};
}

/* ---- slots and constants ---- */

static uint32_t slot_bits(enum ptx_type type)
{
    uint32_t bits = ptx_type_bits(type);

    return bits == 8 ? 16 : bits;
}

static uint32_t slot_bytes(uint32_t bits)
{
    return bits == 1 ? 4 : bits / 8U * WARP_LANES;
}

static uint32_t new_slot(struct decode *d, uint32_t bits)
{
    uint32_t align = bits == 1 ? 4 : 64;
    uint32_t offset = (d->regs_bytes + align - 1) & ~(align - 1);

    d->regs_bytes = offset + slot_bytes(bits);
    return offset;
}

uint32_t register_slot(struct decode *d, uint32_t reg)
{
    if (d->slots[reg] == NO_SLOT_YET)
        d->slots[reg] = new_slot(d, slot_bits(d->dc.entry->regs[reg].type));
    return d->slots[reg];
}

static bool grow_consts(struct decode *d, uint32_t need)
{
    uint32_t more = d->consts_capacity ? d->consts_capacity : 4096;
    uint8_t *bytes;

    while (more < need) more *= 2;
    if (more == d->consts_capacity) return true;
    bytes = realloc(d->consts, more);
    if (!bytes) {
        d->no_memory = true;
        return false;
    }
    memset(bytes + d->consts_capacity, 0, more - d->consts_capacity);
    d->consts = bytes;
    d->consts_capacity = more;
    return true;
}

/* Broadcasts `value` to all lanes in the constant bank. 128-bit values are sign-extended. */
static void broadcast(uint8_t *slot, uint32_t bits, uint64_t value)
{
    uint64_t high = value >> 63 ? UINT64_MAX : 0;
    uint32_t word = value & 1 ? FULL_MASK : 0;

    if (bits == 1) {
        memcpy(slot, &word, sizeof word);
        return;
    }
    for (size_t lane = 0; lane < WARP_LANES; lane++) {
        size_t size = bits == 128 ? 8 : bits / 8U;
        memcpy(slot + lane * size, &value, size);
        if (bits == 128) memcpy(slot + (WARP_LANES + lane) * size, &high, size);
    }
}

static uint64_t low_bits(uint64_t value, uint32_t bits)
{
    return bits >= 64 ? value : value & ((1ULL << bits) - 1);
}

static bool constant_arg(struct decode *d, uint32_t bits, uint64_t value, struct arg *out)
{
    struct constant_entry *all, *c;
    uint32_t bucket, offset;

    value = bits == 1 ? value != 0 : low_bits(value, bits);
    bucket = (uint32_t)((value * 0x9E3779B97F4A7C15ULL) >> 40) + bits;
    bucket %= CONST_BUCKETS;
    *out = (struct arg){.bank = BANK_CONST, .bits = (uint8_t)bits};
    for (uint32_t i = d->constant_heads[bucket]; i; i = d->constants[i - 1].next) {
        c = &d->constants[i - 1];
        if (c->bits != bits || c->value != value) continue;
        out->offset = c->offset;
        return true;
    }
    all = arena_grow(&d->scratch, d->constants, d->constant_count, &d->constant_capacity,
                     sizeof *all);
    offset = d->consts_bytes;
    if (!all || !grow_consts(d, offset + 512)) {
        d->no_memory = true;
        return false;
    }
    d->constants = all;
    all[d->constant_count] =
        (struct constant_entry){value, bits, offset, d->constant_heads[bucket]};
    d->constant_heads[bucket] = ++d->constant_count;
    broadcast(d->consts + offset, bits, value);
    d->consts_bytes = (offset + slot_bytes(bits) + 63U) & ~63U;
    out->offset = offset;
    return true;
}

bool constant_operand(struct decode *d, const struct operand *literal, struct arg *out)
{
    return constant_arg(d, 64, (uint64_t)literal->imm, out);
}

/* ---- addresses of variables ---- */

static bool address_slot(struct decode *d, const struct addr_slot *want, struct arg *out)
{
    struct addr_slot *all;

    *out = (struct arg){.bits = want->bits};
    for (uint32_t i = 0; i < d->address_count; i++) {
        const struct addr_slot *a = &d->addresses[i];
        if (a->var != want->var || a->addend != want->addend || a->bits != want->bits ||
            a->generic != want->generic)
            continue;
        out->offset = a->offset;
        return true;
    }
    all = arena_grow(&d->dc.kernel->arena, d->addresses, d->address_count, &d->address_capacity,
                     sizeof *all);
    if (!all) {
        d->no_memory = true;
        return false;
    }
    d->addresses = all;
    all[d->address_count] = *want;
    all[d->address_count].offset = out->offset = new_slot(d, want->bits);
    d->address_count++;
    return true;
}

/* The address of `var` + addend; bits 0 means the natural width. */
static bool variable_arg(struct decode *d, uint32_t rank, const struct ptx_var *var, int64_t addend,
                         bool generic, uint32_t bits, struct arg *out)
{
    uint64_t offset = var->offset + (uint64_t)addend;
    bool small = var->space == SPACE_SHARED && !generic; /* fits 32 bits */

    if (!bits) bits = small ? 32 : 64;
    if (var->is_extern && var->space != SPACE_SHARED) {
        refuse(d, rank, "extern variable '%s' is not defined in this module", var->name);
        return false;
    }
    small |= (var->space == SPACE_LOCAL || var->space == SPACE_PARAM) && !generic && bits == 32;
    if (bits != 64 && !(bits == 32 && small)) {
        refuse(d, rank, "the address of '%s' needs 64 bits", var->name);
        return false;
    }
    /* In 32 bits it is an offset, which cvta.param makes an address. */
    if (var->space == SPACE_PARAM)
        return constant_arg(d, bits, (bits == 32 ? 0 : PARAM_WINDOW) + offset, out);
    if (var->space == SPACE_LOCAL)
        return constant_arg(d, bits, (generic ? LOCAL_WINDOW : 0) + offset, out);
    return address_slot(
        d,
        &(struct addr_slot){
            .bits = (uint8_t)bits, .generic = generic, .var = var, .addend = addend},
        out);
}

/* The state spaces that the instruction names, as bits 1 << enum ptx_space. */
static uint32_t named_spaces(const struct decoder *dc)
{
    static const struct {
        const char *text;
        enum ptx_space space;
    } spaces[] = {
        {"shared", SPACE_SHARED}, {"shared::cta", SPACE_SHARED}, {"shared::cluster", SPACE_SHARED},
        {"global", SPACE_GLOBAL}, {"const", SPACE_CONST},        {"local", SPACE_LOCAL},
        {"param", SPACE_PARAM},   {"param::entry", SPACE_PARAM}, {"param::func", SPACE_PARAM}};
    uint32_t set = 0;

    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (mod_has(dc, spaces[i].text)) set |= 1U << spaces[i].space;
    return set;
}

/* ---- scalars ---- */

static const char *register_name(const struct decode *d, const struct operand *op)
{
    return d->dc.entry->regs[op->reg].name;
}

static bool register_arg(struct decode *d, uint32_t rank, const struct want *want,
                         const struct operand *op, struct arg *out)
{
    uint32_t bits = slot_bits(d->dc.entry->regs[op->reg].type);

    if (want->bits == 1 && bits != 1)
        refuse(d, rank, "operand %u: '%s' is not a predicate", rank + 1, register_name(d, op));
    else if (want->bits != 1 && bits == 1)
        refuse(d, rank, "operand %u: '%s' is a predicate", rank + 1, register_name(d, op));
    else if (want->bits && bits != want->bits)
        refuse(d, rank, "operand %u: '%s' is %u-bit, %u bits are needed", rank + 1,
               register_name(d, op), bits, want->bits);
    else if (op->negated && (want->bits != 1 || want->dest))
        refuse(d, rank, "operand %u: '!' has no place here", rank + 1);
    else {
        *out = (struct arg){
            .offset = register_slot(d, op->reg), .negated = op->negated, .bits = (uint8_t)bits};
        return true;
    }
    return false;
}

/* Floating types take floating literals only, integer types integers; bits and predicates either
 * kind as far as it fits. */
static bool literal_arg(struct decode *d, uint32_t rank, const struct want *want,
                        const struct operand *op, struct arg *out)
{
    uint32_t bits = want->bits ? want->bits : slot_bits(want->type);
    char kind = ptx_type_kind(want->type);
    bool whole = op->kind == OPD_INT;

    if (whole && kind == 'f' && bits >= 32) {
        refuse(d, rank, "operand %u: an integer constant for .%s (write it as 0f... or 0d...)",
               rank + 1, ptx_type_text(want->type));
        return false;
    }
    if (!whole && (bits < 32 || bits > 64 || kind == 'u' || kind == 's' || kind == 'v' ||
                   (bits == 64 && kind == 'b' && op->kind == OPD_F32))) {
        refuse(d, rank, "operand %u: a floating-point constant has no place here", rank + 1);
        return false;
    }
    return constant_arg(d, bits, whole ? (uint64_t)op->imm : ptx_literal_bits(op, want->type), out);
}

static bool is_dynamic(uint32_t sreg)
{
    return sreg == SR_CLOCK || sreg == SR_CLOCK_HI || sreg == SR_CLOCK64 ||
           sreg == SR_GLOBALTIMER || sreg == SR_GLOBALTIMER_LO || sreg == SR_GLOBALTIMER_HI;
}

static uint32_t sreg_bits(uint32_t sreg)
{
    if (sreg == SR_IS_EXPLICIT_CLUSTER) return 1;
    return sreg == SR_GRIDID || sreg == SR_CLOCK64 || sreg == SR_GLOBALTIMER ||
                   sreg == SR_CURRENT_GRAPH_EXEC
               ? 64
               : 32;
}

static bool special_arg(struct decode *d, uint32_t rank, const struct want *want, uint32_t sreg,
                        struct arg *out)
{
    uint32_t bits = sreg_bits(sreg);

    if (sreg == SR_COUNT) {
        refuse(d, rank, "operand %u: a special register that is not modelled", rank + 1);
        return false;
    }
    if (is_dynamic(sreg)) {
        refuse(d, rank, "operand %u: a clock register can only be the source of a mov", rank + 1);
        return false;
    }
    if (want->bits && want->bits != bits) {
        refuse(d, rank, "operand %u: this special register is %u-bit, %u bits are needed", rank + 1,
               bits, want->bits);
        return false;
    }
    if (d->sregs[sreg] == NO_SLOT_YET) d->sregs[sreg] = new_slot(d, bits);
    *out = (struct arg){.offset = d->sregs[sreg], .bits = (uint8_t)bits};
    return true;
}

static bool scalar(struct decode *d, uint32_t rank, const struct want *want,
                   const struct operand *op, struct arg *out)
{
    if (op->kind == OPD_REG) return register_arg(d, rank, want, op, out);
    if (want->dest) {
        if (op->kind == OPD_SINK) {
            *out = sink();
            return true;
        }
        refuse(d, rank, "operand %u: a destination must be a register", rank + 1);
        return false;
    }
    switch (op->kind) {
    case OPD_INT:
    case OPD_F32:
    case OPD_F64: return literal_arg(d, rank, want, op, out);
    case OPD_SREG: return special_arg(d, rank, want, op->reg, out);
    case OPD_VAR: return variable_arg(d, rank, op->var, op->imm, false, want->bits, out);
    default: refuse(d, rank, "operand %u: not a register or a constant", rank + 1); return false;
    }
}

/* ---- pattern elements ---- */

/* `0`, `1w`, `b32`, `p`, `r`, with or without `=`. False for a text that is none. */
static bool parse_want(const struct insn *types, const char *p, const char *end, struct want *out)
{
    size_t length;

    out->dest = *p == '=';
    p += out->dest;
    length = (size_t)(end - p);
    if (length == 1 && *p == 'p') {
        *out = (struct want){1, T_PRED, out->dest};
    } else if (length == 1 && *p == 'r') {
        out->type = (enum ptx_type)types->type;
        out->bits = 0;
        if (ptx_type_bits(out->type) < 16) out->type = T_B16;
    } else if (length && (*p == '0' || *p == '1')) {
        out->type = (enum ptx_type)(*p == '0' ? types->type : types->type2);
        out->bits = slot_bits(out->type);
        if (length == 2 && p[1] == 'w') {
            out->bits *= 2;
            out->type = out->bits == 32 ? T_B32 : out->bits == 64 ? T_B64 : T_B128;
        }
        return length == 1 || (length == 2 && p[1] == 'w');
    } else {
        out->type = ptx_type_named(p, length);
        out->bits = slot_bits(out->type);
        return out->type != T_NONE;
    }
    return true;
}

static bool add_list(struct decode *d, struct cursor *c, struct arg a)
{
    if (c->list == MAX_LIST) {
        refuse(d, c->operand, "too many registers in braces");
        return false;
    }
    d->list[c->list++] = a;
    return true;
}

/* .vN counts elements of the type; otherwise (mov) the elements are parts of one value. */
static enum ptx_type element_type(const struct decode *d, enum ptx_type type, uint32_t count)
{
    if (mod_has(&d->dc, "v2") || mod_has(&d->dc, "v4") || mod_has(&d->dc, "v8")) return type;
    switch (count ? ptx_type_bits(type) / count : 0) {
    case 16: return T_B16;
    case 32: return T_B32;
    case 64: return T_B64;
    default: return type;
    }
}

static bool bind_list(struct decode *d, struct cursor *c, const struct want *want,
                      const struct operand *op)
{
    const struct operand *items = op->kind == OPD_VECTOR ? op->items : op;
    uint32_t count = op->kind == OPD_VECTOR ? op->count : 1;
    struct want each = *want;
    struct arg a;

    if (!want->bits && count > 1) each.type = element_type(d, want->type, count);
    for (uint32_t i = 0; i < count; i++)
        if (!scalar(d, c->operand, &each, &items[i], &a) || !add_list(d, c, a)) return false;
    return true;
}

static bool bind_labels(struct decode *d, struct cursor *c, const struct operand *op)
{
    for (uint32_t i = 0; op->kind == OPD_VECTOR && i < op->count; i++) {
        if (op->items[i].kind != OPD_LABEL) break;
        if (!add_list(d, c, (struct arg){.offset = (uint32_t)op->items[i].imm})) return false;
        if (i + 1U == op->count) return true;
    }
    refuse(d, c->operand, "operand %u: not a list of branch targets", c->operand + 1);
    return false;
}

static bool bind_address(struct decode *d, struct cursor *c, const struct operand *op, bool tensor,
                         struct insn *out)
{
    const struct want coordinate = {32, T_B32, false}, offset = {0, T_B32, false};
    const struct operand *base = op->kind == OPD_ADDRESS ? &op->items[0] : NULL;
    uint32_t spaces = named_spaces(&d->dc), rank = c->operand;
    struct arg a = sink();

    if (!base || (op->count > 1) != tensor) {
        refuse(d, rank,
               tensor ? "operand %u: not a tensor address [map, {...}]"
                      : "operand %u: not an address in brackets",
               rank + 1);
        return false;
    }
    if (base->kind == OPD_VAR) {
        const struct ptx_var *var = base->var;
        if (!tensor && spaces && !(spaces & 1U << var->space)) {
            refuse(d, rank, "operand %u: '%s' is not in a state space of this instruction",
                   rank + 1, var->name);
            return false;
        }
        if (!variable_arg(d, rank, var, 0, !spaces, 0, &a)) return false;
    } else if (base->kind == OPD_REG) {
        if (!register_arg(d, rank, &(struct want){0, T_NONE, false}, base, &a)) return false;
        if (a.bits != 32 && a.bits != 64) {
            refuse(d, rank, "operand %u: '%s' is %u-bit, an address has 32 or 64 bits", rank + 1,
                   register_name(d, base), a.bits);
            return false;
        }
    }
    out->arg[c->arg] = a;
    if (c->address < sizeof out->imm / sizeof out->imm[0]) {
        out->imm[c->address++] = op->imm;
    } else if (op->imm) {
        refuse(d, rank, "operand %u: no place for an offset in this address", rank + 1);
        return false;
    }
    for (uint32_t i = 1; i < op->count; i++)
        if (!bind_list(d, c, i == 1 ? &coordinate : &offset, &op->items[i])) return false;
    return true;
}

static bool bind_integer(struct decode *d, struct cursor *c, const struct operand *op,
                         struct insn *out)
{
    if (op->kind == OPD_INT) return constant_arg(d, 64, (uint64_t)op->imm, &out->arg[c->arg]);
    refuse(d, c->operand, "operand %u: not an integer constant", c->operand + 1);
    return false;
}

static bool bind_label(struct decode *d, struct cursor *c, const struct operand *op,
                       struct insn *out)
{
    if (op->kind != OPD_LABEL) {
        refuse(d, c->operand, "operand %u: not a label", c->operand + 1);
        return false;
    }
    out->target = (uint32_t)op->imm;
    return true;
}

static bool bind_clock(struct decode *d, struct cursor *c, const struct operand *op,
                       struct insn *out)
{
    if (op->kind != OPD_SREG || !is_dynamic(op->reg)) {
        refuse(d, c->operand, "operand %u: not a clock register", c->operand + 1);
        return false;
    }
    if (out->type != T_NONE && sreg_bits(op->reg) != ptx_type_bits((enum ptx_type)out->type)) {
        refuse(d, c->operand, "operand %u: this special register is %u-bit", c->operand + 1,
               sreg_bits(op->reg));
        return false;
    }
    out->arg[c->arg] = (struct arg){.offset = op->reg, .bits = (uint8_t)sreg_bits(op->reg)};
    return true;
}

static bool bind_pair(struct decode *d, struct cursor *c, const char *p, const char *bar,
                      const char *end, const struct operand *op, struct insn *out)
{
    bool must = p + 2 == bar && p[1] == '_'; /* `=_|p` */
    const struct operand *first = op->kind == OPD_PAIR ? &op->items[0] : op;
    struct want want;

    if (must ? op->kind != OPD_PAIR || first->kind != OPD_SINK
             : !parse_want(out, p, bar, &want) ||
                   !scalar(d, c->operand, &want, first, &out->arg[c->arg])) {
        refuse(d, c->operand, "operand %u: not of the form %s", c->operand + 1,
               must ? "_|p" : "d|p");
        return false;
    }
    if (must) out->arg[c->arg] = sink();
    out->arg[c->arg + 1] = sink();
    if (op->kind != OPD_PAIR) return true;
    if (!parse_want(out, bar + 1, end, &want)) return false;
    want.dest = true;
    return scalar(d, c->operand, &want, &op->items[1], &out->arg[c->arg + 1]);
}

static bool is_text(const char *p, const char *end, const char *text)
{
    return strlen(text) == (size_t)(end - p) && !memcmp(p, text, (size_t)(end - p));
}

/* One alternative of one pattern element against one operand. */
static bool bind_element(struct decode *d, struct cursor *c, const char *p, const char *end,
                         const struct operand *op, struct insn *out)
{
    const char *bar = memchr(p, '|', (size_t)(end - p));
    struct want want;

    if (bar) return bind_pair(d, c, p, bar, end, op, out);
    if (is_text(p, end, "[]")) return bind_address(d, c, op, false, out);
    if (is_text(p, end, "[t]")) return bind_address(d, c, op, true, out);
    if (is_text(p, end, "i")) return bind_integer(d, c, op, out);
    if (is_text(p, end, "l")) return bind_label(d, c, op, out);
    if (is_text(p, end, "sr")) return bind_clock(d, c, op, out);
    if (is_text(p, end, "_") || is_text(p, end, "=_")) {
        if (op->kind != OPD_SINK) refuse(d, c->operand, "operand %u: not '_'", c->operand + 1);
        return op->kind == OPD_SINK;
    }
    if (is_text(p, end, "{l}")) return bind_labels(d, c, op);
    if (end[-1] == '}') {
        bool dest = *p == '=';
        uint32_t first = c->list;

        if (!parse_want(out, p + 1 + dest, end - 1, &want)) return false;
        want.dest = dest;
        if (!bind_list(d, c, &want, op)) return false;
        out->arg[c->arg] = d->list[first];
        return true;
    }
    return parse_want(out, p, end, &want) && scalar(d, c->operand, &want, op, &out->arg[c->arg]);
}

/* Elements from `p` on against operands from c.operand on; an optional element is tried present
 * first. */
static bool match_elements(struct decode *d, const char *p, struct cursor c, struct insn *out)
{
    const struct ptx_insn *src = d->dc.src;
    const char *end, *rest;
    uint32_t owns;
    bool optional;

    while (*p == ' ') p++;
    if (!*p) {
        d->list_count = c.list;
        if (c.operand == src->operand_count) return true;
        refuse(d, c.operand, "%u operands given, %u expected", src->operand_count, c.operand);
        return false;
    }
    rest = p + strcspn(p, " ");
    optional = rest[-1] == '?';
    end = rest - optional;
    owns = memchr(p, '|', (size_t)(end - p)) ? 2 : 1;
    for (const char *from = p; c.operand < src->operand_count && from < end;) {
        const char *slash = memchr(from, '/', (size_t)(end - from));
        const char *to = slash ? slash : end;
        struct cursor t = c;

        out->arg[c.arg] = sink();
        if (bind_element(d, &t, from, to, &src->operands[c.operand], out)) {
            t.arg += owns;
            t.operand++;
            if (match_elements(d, rest, t, out)) return true;
        }
        if (d->no_memory) return false;
        from = to + 1;
    }
    if (!optional) {
        if (c.operand >= src->operand_count)
            refuse(d, c.operand, "%u operands given, more expected", src->operand_count);
        return false;
    }
    for (uint32_t i = 0; i < owns; i++) out->arg[c.arg + i] = sink();
    c.arg += owns;
    return match_elements(d, rest, c, out);
}

bool bind_operands(struct decode *d, const char *pattern, struct insn *out)
{
    uint32_t spaces = named_spaces(&d->dc);
    uint32_t types = 0;

    for (uint32_t i = 0; i < d->dc.mod_count && types < 2; i++) {
        enum ptx_type type = mod_type(&d->dc, i);
        if (type != T_NONE) *(types++ ? &out->type2 : &out->type) = (uint8_t)type;
    }
    for (uint32_t s = SPACE_PARAM; s <= SPACE_LOCAL; s++)
        if (spaces & 1U << s) out->space = (uint8_t)s;
    if (spaces & 1U << SPACE_SHARED) out->space = SPACE_SHARED;
    return match_elements(d, pattern, (struct cursor){0}, out);
}

bool args_pattern_valid(const char *pattern, char *why, size_t size)
{
    static const char *const fixed[] = {"[]", "[t]", "i", "l", "sr", "_", "=_", "{l}"};
    const struct insn types = {.type = T_B32, .type2 = T_B32};
    uint32_t args = 0;

    for (const char *p = pattern; *p;) {
        const char *rest = p + strcspn(p, " "), *end = rest - (rest > p && rest[-1] == '?');

        for (const char *from = p; from < end;) {
            const char *to = from + strcspn(from, "/|? ");
            const char *a = from, *b = to;
            struct want want;
            bool ok = false;

            for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
                ok = ok || is_text(a, b, fixed[i]);
            if (!ok && b > a && b[-1] == '}') {
                a += *a == '=';
                ok = *a == '{' && a + 1 < b - 1 && parse_want(&types, a + 1, b - 1, &want);
            } else if (!ok && b > a) {
                ok = parse_want(&types, a, b, &want);
            }
            if (!ok) {
                snprintf(why, size, "bad operand pattern '%.*s'", (int)(rest - p), p);
                return false;
            }
            from = to + 1;
        }
        if (rest > p) args += memchr(p, '|', (size_t)(rest - p)) ? 2 : 1;
        p = rest + (*rest == ' ');
    }
    if (args <= INSN_ARGS) return true;
    snprintf(why, size, "%u arguments, %d at most", args, (int)INSN_ARGS);
    return false;
}
