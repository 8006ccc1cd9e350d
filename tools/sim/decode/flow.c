/*
 * What is done with the values that strong loads and atomics bring. Over the whole kernel at once, by registers: the order
 * of instructions is not looked at, so a value may be said to be used where it is not, never the other way round. Values
 * are followed through shared, local and parameter memory, each as one place; not through global memory.
 */
#include "decode/bind.h"

#include <string.h>

enum { SPACES = SPACE_LOCAL + 1 };

struct flow {
    const struct insn *insns;
    uint32_t count;
    uint8_t *used;          /* enum insn_use bits by register: offset / 4 */
    uint8_t memory[SPACES]; /* the same of what is loaded from a space */
    bool changed;
};

static void use(struct flow *f, const struct arg *a, uint8_t how)
{
    uint8_t *u;
    if (a->bank != BANK_REGS || a->sink) return;
    u = &f->used[a->offset / 4];
    if ((*u & how) == how) return;
    *u |= how;
    f->changed = true;
}

static uint8_t use_of(const struct flow *f, const struct arg *a)
{
    return a->bank == BANK_REGS && !a->sink ? f->used[a->offset / 4] : 0;
}

static bool touches_memory(const struct insn *in)
{
    return in->is.class == INSN_LOAD || in->is.class == INSN_STORE || in->is.class == INSN_ATOMIC ||
           in->is.class == INSN_RED;
}

static bool computes(const struct insn *in)
{
    return in->is.class == INSN_ALU || in->is.class == INSN_MOVE || in->is.class == INSN_MATRIX ||
           in->is.class == INSN_LANES;
}

/* Bit i: insn.arg[i] says where the instruction is to work. */
static uint32_t addresses_of(const struct insn *in)
{
    uint32_t mask = 0, index = 0;
    if (computes(in)) return 0;
    if (!touches_memory(in)) return UINT32_MAX;
    for (const char *p = in->row->args; *p; p++) {
        if (*p == '[') mask |= 1U << index;
        index += *p == ' ' || *p == '|';
    }
    return mask;
}

/* How the instruction's results are used. */
static uint8_t results_use(const struct flow *f, const struct insn *in, uint32_t results, bool list)
{
    uint8_t how = 0;
    for (uint32_t i = 0; i < INSN_ARGS; i++)
        if (results >> i & 1) how |= use_of(f, &in->arg[i]);
    for (uint32_t i = 0; list && i < in->list_count; i++) how |= use_of(f, &in->list[i]);
    return how;
}

/* Of a space that stores may reach what is loaded; a generic address has any. */
static uint8_t stored_use(const struct flow *f, const struct insn *in)
{
    if (in->space != SPACE_NONE) return f->memory[in->space];
    return f->memory[SPACE_SHARED] | f->memory[SPACE_LOCAL] | f->memory[SPACE_PARAM];
}

static void load_use(struct flow *f, const struct insn *in, uint8_t how)
{
    static const uint8_t kept[] = {SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM};
    for (uint32_t i = 0; i < sizeof kept; i++) {
        if (in->space != SPACE_NONE && in->space != kept[i]) continue;
        if ((f->memory[kept[i]] & how) == how) continue;
        f->memory[kept[i]] |= how;
        f->changed = true;
    }
}

static void follow(struct flow *f, const struct insn *in)
{
    bool list;
    const uint32_t results = row_results(in->row, &list);
    const uint8_t how = results_use(f, in, results, list);
    const bool memory = touches_memory(in);
    const uint32_t addresses = addresses_of(in);
    uint8_t sources = memory ? 0 : how;
    if (in->guard != NO_GUARD)
        use(f, &(struct arg){.offset = in->guard, .bank = BANK_REGS}, USE_STEERS);
    if (in->is.control == CONTROL_TABLE) sources |= USE_STEERS;
    if (memory && how && results) load_use(f, in, how);
    if (memory && in->is.class != INSN_LOAD) sources |= stored_use(f, in);
    for (uint32_t i = 0; i < INSN_ARGS; i++)
        if (!(results >> i & 1))
            use(f, &in->arg[i], (uint8_t)(sources | (addresses >> i & 1 ? USE_ADDRESS : 0)));
    if (addresses == UINT32_MAX) sources |= USE_ADDRESS;
    for (uint32_t i = 0; !list && i < in->list_count; i++) use(f, &in->list[i], sources);
}

bool mark_uses(struct decode *d, struct insn *insns, uint32_t count)
{
    struct flow f = {.insns = insns, .count = count, .changed = true};
    f.used = arena_alloc(&d->scratch, d->regs_bytes / 4U + 1U);
    if (!f.used) return false;
    while (f.changed) {
        f.changed = false;
        for (uint32_t i = count; i--;)
            if (insns[i].row) follow(&f, &insns[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        bool list;
        if (!insns[i].row || (insns[i].is.class != INSN_ATOMIC && insns[i].is.class != INSN_LOAD))
            continue;
        insns[i].used = results_use(&f, &insns[i], row_results(insns[i].row, &list), list);
    }
    return true;
}

enum address_step insn_address_step(const struct insn *in)
{
    static const struct {
        const char *name;
        enum address_step step;
    } steps[] = {
        {"mov", ADDRESS_COPY},    {"cvta", ADDRESS_COPY},       {"cvta.to", ADDRESS_COPY},
        {"cvt", ADDRESS_COPY},    {"mapa", ADDRESS_RANK},       {"and", ADDRESS_CHOICE},
        {"selp", ADDRESS_CHOICE}, {"add", ADDRESS_SUM},         {"or", ADDRESS_SUM},
        {"xor", ADDRESS_SUM},     {"mad", ADDRESS_PRODUCT_SUM},
    };

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (!strcmp(in->row->name, steps[i].name)) return steps[i].step;
    return ADDRESS_NONE;
}
