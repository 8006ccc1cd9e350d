/*
 * What the decoder has no form for, in instructions that it has: variables in frames, sums as
 * operands, moves of vectors.
 */
#include "ptx/parse.h"

#include <string.h>

/* A new instruction in the place of the last one, which moves up: what it is made for, so that it has
 * the same place and text. NULL after parse_fail. */
static struct ptx_insn *insert_before(struct parser *p, const char *const *mods,
                                      const struct operand *operands, uint16_t count)
{
    struct ptx_insn user = p->insns[p->entry->insn_count - 1], *fresh;

    if (!add_instruction(p)) return NULL;
    fresh = &p->insns[p->entry->insn_count - 2];
    p->insns[p->entry->insn_count - 1] = user;
    *fresh = (struct ptx_insn){.pos = user.pos,
                               .ptx_pos = user.ptx_pos,
                               .loc = user.loc,
                               .text = user.text,
                               .guard = NO_REG,
                               .mods = mods,
                               .mod_count = 2,
                               .operands = operands,
                               .operand_count = count};
    return fresh;
}

/* `*out` = register + addend, computed before the last instruction. */
static bool add_before(struct parser *p, const char *name, uint32_t reg, int64_t addend,
                       struct operand *out)
{
    static const char *const add[][2] = {{"add", "s16"}, {"add", "s32"}, {"add", "s64"}};
    uint32_t bits = ptx_type_bits(p->regs[reg].type);
    uint32_t sum = hidden_register(p, name, p->regs[reg].type);
    struct operand *operands = arena_alloc(p->arena, 3 * sizeof *operands);

    if (!operands) return parse_memory(p);
    if (sum == NO_REG) return false;
    operands[0] = (struct operand){.kind = OPD_REG, .reg = sum};
    operands[1] = (struct operand){.kind = OPD_REG, .reg = reg};
    operands[2] = (struct operand){.kind = OPD_INT, .imm = addend};
    *out = operands[0];
    return insert_before(p, add[bits == 16 ? 0 : bits == 32 ? 1 : 2], operands, 3) != NULL;
}

/* ---- variables in frames ---- */

static bool is_param(const char *mod)
{
    return !strcmp(mod, "param") || !strcmp(mod, "param::func");
}

/* ld.param and st.param of a frame are local accesses. */
static bool name_local(struct parser *p, struct ptx_insn *insn)
{
    const char **mods = arena_alloc(p->arena, insn->mod_count * sizeof *mods);

    if (!mods) return parse_memory(p);
    for (uint16_t i = 0; i < insn->mod_count; i++)
        mods[i] = is_param(insn->mods[i]) ? "local" : insn->mods[i];
    insn->mods = mods;
    return true;
}

static bool in_frame(const struct operand *o)
{
    return o->kind == OPD_VAR && o->var->space == SPACE_LOCAL;
}

static bool lower_frame(struct parser *p)
{
    uint32_t count = p->insns[p->entry->insn_count - 1].operand_count;

    for (uint32_t i = 0; i < count; i++) {
        struct ptx_insn *insn = &p->insns[p->entry->insn_count - 1];
        const struct operand *old = &insn->operands[i];
        const struct operand *var = old->kind == OPD_ADDRESS ? &old->items[0] : old;
        struct operand *operands, *items;

        if (!in_frame(var)) continue;
        if (var->var->call_param && !name_local(p, insn)) return false;
        if (!p->function) continue;
        operands = arena_alloc(p->arena, count * sizeof *operands);
        items = arena_alloc(p->arena, (old->count + 1U) * sizeof *items);
        if (!operands || !items) return parse_memory(p);
        memcpy(operands, insn->operands, count * sizeof *operands);
        if (old->kind == OPD_ADDRESS) {
            memcpy(items, old->items, old->count * sizeof *items);
            operands[i].items = items;
            if (!add_before(p, var->var->name, p->entry->frame_reg, (int64_t)var->var->offset,
                            &items[0]))
                return false;
        } else if (!add_before(p, var->var->name, p->entry->frame_reg,
                               (int64_t)var->var->offset + var->imm, &operands[i])) {
            return false;
        }
        p->insns[p->entry->insn_count - 1].operands = operands;
    }
    return true;
}

/* ---- sums ---- */

/* `add.u32 d, a + 1, b`: an addend behind a source register. */
static bool lower_sums(struct parser *p)
{
    const struct ptx_insn *insn = &p->insns[p->entry->insn_count - 1];
    uint32_t count = insn->operand_count;
    struct operand *operands = NULL;

    for (uint32_t i = 0; i < count; i++) {
        struct operand o = p->insns[p->entry->insn_count - 1].operands[i];
        char kind;

        if (o.kind != OPD_REG || !o.imm) continue;
        kind = ptx_type_kind(p->regs[o.reg].type);
        if (i == 0 || o.negated || !strchr("bus", kind) ||
            ptx_type_bits(p->regs[o.reg].type) < 16 || ptx_type_bits(p->regs[o.reg].type) > 64)
            return parse_fail(p, p->insns[p->entry->insn_count - 1].ptx_pos,
                              "operand %u: '%s' takes no addend", i + 1, p->regs[o.reg].name);
        if (!operands) {
            operands = arena_alloc(p->arena, count * sizeof *operands);
            if (!operands) return parse_memory(p);
            memcpy(operands, p->insns[p->entry->insn_count - 1].operands, count * sizeof *operands);
        }
        if (!add_before(p, p->regs[o.reg].name, o.reg, o.imm, &operands[i])) return false;
        p->insns[p->entry->insn_count - 1].operands = operands;
    }
    return true;
}

/* ---- moves of vectors ---- */

/* The components that `mov.v2` and `mov.v4` have, 0 for another instruction. */
static uint32_t vector_move(const struct ptx_insn *insn)
{
    if (insn->mod_count != 3 || insn->operand_count != 2 || strcmp(insn->mods[0], "mov") != 0)
        return 0;
    return !strcmp(insn->mods[1], "v2") ? 2 : !strcmp(insn->mods[1], "v4") ? 4 : 0;
}

static bool is_vector(struct parser *p, const struct ptx_insn *insn, uint32_t operand,
                      uint32_t lanes)
{
    const struct operand *o = &insn->operands[operand];

    return (o->kind == OPD_VECTOR && o->count == lanes) ||
           parse_fail(p, insn->ptx_pos, "operand %u of mov.v%u is no vector of %u elements",
                      operand + 1, lanes, lanes);
}

/* Whether a component is written before a later one reads it. */
static bool overlaps(const struct operand *to, const struct operand *from)
{
    for (uint32_t i = 0; i < to->count; i++)
        for (uint32_t k = i + 1; k < to->count; k++)
            if (to->items[i].kind == OPD_REG && from->items[k].kind == OPD_REG &&
                to->items[i].reg == from->items[k].reg)
                return true;
    return false;
}

/* One move before the instruction, guarded as it is. */
static bool move_one(struct parser *p, const char *const *mods, struct operand to,
                     struct operand from)
{
    struct operand *operands = arena_alloc(p->arena, 2 * sizeof *operands);
    const struct ptx_insn *insn;
    struct ptx_insn *move;

    if (!operands) return parse_memory(p);
    operands[0] = to;
    operands[1] = from;
    move = insert_before(p, mods, operands, 2);
    if (!move) return false;
    insn = &p->insns[p->entry->insn_count - 1];
    move->guard = insn->guard;
    move->guard_negated = insn->guard_negated;
    return true;
}

/* The components in new registers, so that none is written before it is read. */
static bool move_aside(struct parser *p, const char *const *mods, enum ptx_type type,
                       struct operand *from, struct operand aside[MAX_LANES])
{
    for (uint32_t i = 0; i < from->count; i++) {
        aside[i] = (struct operand){.kind = OPD_REG, .reg = hidden_register(p, "vector", type)};
        if (aside[i].reg == NO_REG || !move_one(p, mods, aside[i], from->items[i])) return false;
    }
    from->items = aside;
    return true;
}

/* `mov.v2.u32 {a, b}, {c, d}`: a move each, in the place of the instruction. */
static bool lower_vector_move(struct parser *p)
{
    const struct ptx_insn *insn = &p->insns[p->entry->insn_count - 1];
    uint32_t lanes = vector_move(insn);
    struct operand to, from, aside[MAX_LANES] = {{0}};
    const char **mods;
    enum ptx_type type;

    if (!lanes) return true;
    if (!is_vector(p, insn, 0, lanes) || !is_vector(p, insn, 1, lanes)) return false;
    to = insn->operands[0];
    from = insn->operands[1];
    type = ptx_type_named(insn->mods[2], strlen(insn->mods[2]));
    if (type == T_NONE || type == T_PRED) return true; /* for the decoder to refuse */
    mods = arena_alloc(p->arena, 2 * sizeof *mods);
    if (!mods) return parse_memory(p);
    mods[0] = insn->mods[0];
    mods[1] = insn->mods[2];
    if (overlaps(&to, &from) && !move_aside(p, mods, type, &from, aside)) return false;
    for (uint32_t i = 0; i < lanes; i++)
        if (to.items[i].kind != OPD_SINK && !move_one(p, mods, to.items[i], from.items[i]))
            return false;
    p->entry->insn_count--;
    p->label_pending = true; /* there may be no move, and a label behind the last instruction */
    return true;
}

bool lower_instruction(struct parser *p)
{
    return lower_frame(p) && lower_sums(p) && lower_vector_move(p);
}
