/* Values that stores write whatever runs first (constant.h). */
#include "check/constant.h"

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
