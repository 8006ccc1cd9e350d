/*
 * Who could still signal an mbarrier: the code a sleeping warp would go on with, and the addresses its
 * registers hold.
 */
#include "check/deadlock.h"

#include <stdlib.h>

/* Instructions that bring arrivals or bytes. */
static bool signals(const struct insn *in)
{
    return in->is.signals == SIGNALS_ARRIVAL || in->is.signals == SIGNALS_EXPECT_ARRIVAL ||
           in->is.signals == SIGNALS_BYTES;
}

/* The smallest named range of shared memory that holds `offset`, or NULL. */
static const struct name_range *range_at(const struct kernel *k, uint32_t offset)
{
    const struct name_range *best = NULL;
    for (uint32_t i = 0; i < k->buffer_count; i++) {
        const struct name_range *r = &k->buffers[i];
        if (offset >= r->first && offset - r->first < r->count &&
            (!best || r->count < best->count)) {
            best = r;
        }
    }
    return best;
}

/* The same barrier, or another of its array: a ring's slot may be computed late. */
static bool same_barrier(const struct kernel *k, uint64_t address, uint32_t offset)
{
    uint32_t at = (uint32_t)address & SHARED_OFFSET_MASK;
    uint64_t window = address & WINDOW_MASK;
    const struct name_range *r;
    if (window != 0 && window != SHARED_WINDOW) return false;
    if (at == offset) return true;
    r = range_at(k, offset);
    return r && r == range_at(k, at);
}

/* Whether an address among the operands, as the warp's registers stand, is the barrier's. */
static bool names_barrier(const struct kernel *k, const struct waiter *o, const struct insn *in,
                          uint32_t offset)
{
    for (uint32_t lanes = o->frag->mask; lanes; lanes &= lanes - 1) {
        uint32_t lane = first_lane(lanes);
        for (uint32_t i = 0; i < INSN_ARGS; i++) {
            uint64_t value;
            if (in->arg[i].sink || (in->arg[i].bits != 32 && in->arg[i].bits != 64)) continue;
            value = arg_lane(o->warp, in->arg[i], lane);
            for (uint32_t n = 0; n < sizeof in->imm / sizeof in->imm[0]; n++) {
                if (same_barrier(k, value + (uint64_t)in->imm[n], offset)) return true;
            }
        }
    }
    return false;
}

/* ---- reachable code ---- */

struct walk {
    const struct kernel *kernel;
    bool onward; /* follows no branch that goes back */
    uint8_t *seen;
    uint32_t *stack, depth;
};

static void visit(struct walk *w, uint32_t pc)
{
    if (pc >= w->kernel->insn_count || w->seen[pc]) return;
    w->seen[pc] = 1;
    w->stack[w->depth++] = pc;
}

static void visit_next(struct walk *w, uint32_t pc)
{
    const struct insn *in = &w->kernel->insns[pc];
    const bool table = in->is.control == CONTROL_TABLE;
    const bool falls = in->is.control == CONTROL_NEXT || in->is.control == CONTROL_CALL;
    if (in->is.control == CONTROL_BRANCH && (!w->onward || in->target > pc)) visit(w, in->target);
    for (uint32_t i = 0; table && i < in->list_count; i++) visit(w, in->list[i].offset);
    if (in->guard != NO_GUARD || falls) visit(w, pc + 1);
}

/* Whether `has` holds for an instruction that the waiter may still come to, its own included. */
static bool ahead(const struct kernel *k, const struct waiter *o, uint32_t key, bool onward,
                  bool (*has)(const struct kernel *, const struct waiter *, const struct insn *,
                              uint32_t key))
{
    struct walk w = {.kernel = k, .onward = onward};
    bool found = false;
    w.seen = calloc(k->insn_count + 1U, sizeof *w.seen);
    w.stack = calloc(k->insn_count + 1U, sizeof *w.stack);
    if (w.seen && w.stack) visit(&w, o->frag->pc);
    while (w.depth && !found) {
        uint32_t pc = w.stack[--w.depth];
        found = has(k, o, &k->insns[pc], key);
        visit_next(&w, pc);
    }
    free(w.seen);
    free(w.stack);
    return found;
}

static bool signals_it(const struct kernel *k, const struct waiter *o, const struct insn *in,
                       uint32_t offset)
{
    return signals(in) && names_barrier(k, o, in, offset);
}

bool deadlock_may_signal(const struct kernel *k, const struct waiter *o, uint32_t offset)
{
    return ahead(k, o, offset, false, signals_it);
}

static bool copies_to_it(const struct kernel *k, const struct waiter *o, const struct insn *in,
                         uint32_t offset)
{
    return in->is.signals == SIGNALS_BYTES && names_barrier(k, o, in, offset);
}

bool deadlock_may_copy(const struct kernel *k, const struct waiter *o, uint32_t offset)
{
    return ahead(k, o, offset, false, copies_to_it);
}

/* The number is the first 32-bit source; one in a register may be any. */
static bool meets_at(const struct kernel *k, const struct waiter *o, const struct insn *in,
                     uint32_t id)
{
    (void)k;
    if (in->is.class != INSN_BARRIER) return false;
    for (uint32_t i = in->row->args[0] == '='; i < 2; i++)
        if (!in->arg[i].sink && in->arg[i].bits == 32)
            return in->arg[i].bank != BANK_CONST ||
                   arg_lane(o->warp, in->arg[i], first_lane(o->frag->mask)) == id;
    return false;
}

bool deadlock_may_come(const struct kernel *k, const struct waiter *o, uint32_t id)
{
    return ahead(k, o, id, false, meets_at);
}

bool deadlock_comes_next(const struct kernel *k, const struct waiter *o, uint32_t id)
{
    return ahead(k, o, id, true, meets_at);
}
