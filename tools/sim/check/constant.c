/* What stores write whatever runs first, and who waits (constant.h). */
#include "check/constant.h"

#include <stdlib.h>
#include <string.h>

static bool is_register(struct arg a, uint32_t offset)
{
    return !a.sink && a.bank == BANK_REGS && a.offset == offset;
}

/* Whether the instruction may write the register; of lists that are results and such that are not, any. */
static bool may_write(const struct insn *in, uint32_t offset)
{
    bool list;
    const uint32_t results = in->row ? row_results(in->row, &list) : 0;
    for (uint32_t i = 0; i < INSN_ARGS; i++)
        if (results >> i & 1 && is_register(in->arg[i], offset)) return true;
    if (!in->row || !strstr(in->row->args, "={")) return false;
    for (uint32_t i = 0; i < in->list_count; i++)
        if (is_register(in->list[i], offset)) return true;
    return false;
}

static bool constant_of(const struct kernel *k, struct arg a, struct arg *value)
{
    const struct insn *from = NULL;
    *value = a;
    if (a.sink || a.bank == BANK_CONST) return !a.sink;
    if (a.bank != BANK_REGS) return false;
    for (uint32_t i = 0; i < k->insn_count; i++) {
        if (!may_write(&k->insns[i], a.offset)) continue;
        if (from) return false;
        from = &k->insns[i];
    }
    if (!from || from->is.class != INSN_MOVE || from->guard != NO_GUARD || from->list_count)
        return false;
    *value = from->arg[1];
    return !value->sink && value->bank == BANK_CONST;
}

bool same_constant(const struct kernel *k, const struct insn *x, const struct insn *y)
{
    struct arg p, q;
    if (!x || !y || x->is.class != INSN_STORE || y->is.class != INSN_STORE || x->type != y->type ||
        x->list_count != 1 || y->list_count != 1)
        return false;
    if (!constant_of(k, x->list[0], &p) || !constant_of(k, y->list[0], &q)) return false;
    return p.bits == q.bits && memcmp(k->consts + p.offset, k->consts + q.offset, p.bits / 8U) == 0;
}

bool same_stored(const struct stored *a, const struct stored *b)
{
    return a->bytes && a->bytes == b->bytes && a->value == b->value;
}

static const uint32_t nobody = 0, several = UINT32_MAX;

static void note_writer(uint32_t *writer, const struct arg *a, uint32_t insn)
{
    if (a->sink || a->bank != BANK_REGS) return;
    writer[a->offset] = writer[a->offset] == nobody ? insn + 1 : several;
}

/* By offset of the register: the only instruction that writes it, plus 1. */
static uint32_t *only_writers(const struct kernel *k)
{
    uint32_t *writer = calloc(k->regs_bytes + 1UL, sizeof *writer);
    for (uint32_t i = 0; writer && i < k->insn_count; i++) {
        const struct insn *in = &k->insns[i];
        bool list;
        const uint32_t results = in->row ? row_results(in->row, &list) : 0;
        for (uint32_t j = 0; j < INSN_ARGS; j++)
            if (results >> j & 1) note_writer(writer, &in->arg[j], i);
        if (!in->row || !strstr(in->row->args, "={")) continue;
        for (uint32_t j = 0; j < in->list_count; j++) note_writer(writer, &in->list[j], i);
    }
    return writer;
}

static struct stored stored_by(const struct kernel *k, const uint32_t *writer,
                               const struct insn *in)
{
    struct stored s = {0};
    struct arg a = in->list_count == 1 ? in->list[0] : (struct arg){.sink = 1};
    const uint32_t size = ptx_type_bits(in->type) / 8U;
    if (in->is.class != INSN_STORE || size > sizeof s.value) return s;
    if (!a.sink && a.bank == BANK_REGS) {
        const uint32_t from = writer[a.offset];
        const struct insn *mov = from == nobody || from == several ? NULL : &k->insns[from - 1];
        if (!mov || mov->is.class != INSN_MOVE || mov->guard != NO_GUARD || mov->list_count)
            return s;
        a = mov->arg[1];
    }
    if (a.sink || a.bank != BANK_CONST || a.bits / 8U < size) return s;
    memcpy(&s.value, k->consts + a.offset, size);
    s.bytes = (uint8_t)size;
    return s;
}

struct stored *stored_constants(const struct kernel *k)
{
    uint32_t *writer = only_writers(k);
    struct stored *all = writer ? calloc(k->insn_count + 1UL, sizeof *all) : NULL;
    for (uint32_t i = 0; all && i < k->insn_count; i++) all[i] = stored_by(k, writer, &k->insns[i]);
    free(writer);
    return all;
}

bool kernel_waits(const struct kernel *k)
{
    for (uint32_t i = 0; k->global_sync && i < k->insn_count; i++) {
        const struct insn *in = &k->insns[i];
        if (in->is.class != INSN_LOAD && in->is.class != INSN_ATOMIC) continue;
        if (in->is.strong && in->is.scope >= SCOPE_GPU && in->used &&
            (in->space == SPACE_GLOBAL || in->space == SPACE_NONE))
            return true;
    }
    return false;
}
