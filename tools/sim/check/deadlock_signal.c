/*
 * Who could still signal an mbarrier: the code a sleeping warp would go on with, and the addresses its
 * registers hold, or will be computed from.
 */
#include "check/deadlock.h"

#include "decode/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- addresses that are computed later ---- */

#define NO_BASE UINT32_MAX

enum {
    CHAIN = 8,    /* definitions followed from an address back to a constant */
    LOOKED = 256, /* definitions looked at for one address */
    SLOTS = 64    /* larger variables are no array of mbarriers alone */
};

/* The constant part of a sum, where an index counts as 0. */
struct part {
    uint64_t value;
    bool known; /* holds a constant at all */
    bool whole; /* and nothing else */
};

/* The way back from one address. */
struct chase {
    const struct deadlock *d;
    uint32_t left; /* definitions that may still be looked at */
};

static struct part part_of(struct chase *h, struct arg a, uint32_t pc, uint32_t steps);

/* What the instruction at that place computes, whose result is arg[0]. */
static struct part computed(struct chase *h, uint32_t pc, uint32_t steps)
{
    static const struct part nothing;
    const struct insn *in = &h->d->group->launch->kernel->insns[pc];
    const enum address_step step = insn_address_step(in);
    struct part p, q;
    if (step == ADDRESS_NONE) return nothing; /* an index */
    if (step == ADDRESS_PRODUCT_SUM) {
        p = part_of(h, in->arg[3], pc, steps);
        p.whole = false;
        return p;
    }
    p = part_of(h, in->arg[1], pc, steps);
    if (step == ADDRESS_COPY) return p;
    if (step == ADDRESS_RANK || step == ADDRESS_CHOICE) {
        if (!p.known) p = part_of(h, in->arg[2], pc, steps);
        p.whole &= step == ADDRESS_RANK;
        return p;
    }
    q = part_of(h, in->arg[2], pc, steps);
    if (p.known) q.value += p.value;
    q.known |= p.known;
    q.whole &= p.whole;
    return q;
}

static bool defines(const struct insn *in, struct arg a)
{
    bool list;
    return in->row && in->arg[0].offset == a.offset && in->arg[0].bank == BANK_REGS &&
           !in->arg[0].sink && row_results(in->row, &list) & 1;
}

/* Of the definitions of a register the last one ahead of `pc` in the text that leads back to a constant. */
static struct part part_of(struct chase *h, struct arg a, uint32_t pc, uint32_t steps)
{
    const struct kernel *k = h->d->group->launch->kernel;
    struct part p = {0, false, false};
    uint32_t definitions = 0;
    if (a.sink || (a.bits != 32 && a.bits != 64)) return p;
    for (uint32_t i = 1; a.bank == BANK_REGS && i <= k->insn_count; i++) {
        const uint32_t at = (pc + k->insn_count - i) % k->insn_count;
        const struct insn *in = &k->insns[at];
        if (!defines(in, a)) continue;
        definitions++;
        if (!steps || p.known || !h->left) continue;
        if (in->is.class != INSN_ALU && in->is.class != INSN_MOVE) continue;
        h->left--;
        p = computed(h, at, steps - 1);
    }
    p.whole &= definitions == 1;
    if (definitions) return p;
    /* A literal, or the address of a variable, which stands in a register that nothing writes. */
    p.value = arg_lane(h->d->waiters[0].warp, a, 0);
    p.known = p.whole = true;
    return p;
}

/* The operand that is the address of the barrier, the last one in brackets; INSN_ARGS: none. */
static uint32_t address_of(const struct insn *in)
{
    uint32_t index = 0, at = INSN_ARGS;
    for (const char *c = in->row->args; *c; c++) {
        if (*c == '[') at = index;
        index += *c == ' ' || *c == '|';
    }
    return at < INSN_ARGS ? at : INSN_ARGS;
}

/* The offset written behind it. */
static uint64_t addend_of(const struct insn *in)
{
    uint32_t addresses = 0;
    for (const char *c = in->row->args; *c; c++) addresses += *c == '[';
    return addresses && addresses <= sizeof in->imm / sizeof in->imm[0]
               ? (uint64_t)in->imm[addresses - 1]
               : 0;
}

/* The constant part of the address of the barrier that the instruction signals. */
static struct signal_base base_of(const struct deadlock *d, const struct insn *in)
{
    const uint32_t at = address_of(in), pc = (uint32_t)(in - d->group->launch->kernel->insns);
    struct chase h = {d, LOOKED};
    struct signal_base base = {NO_BASE, false};
    struct part p = {0, false, false};
    if (at < INSN_ARGS) p = part_of(&h, in->arg[at], pc, CHAIN);
    if (!p.known) return base;
    base.at = (uint32_t)(p.value + addend_of(in)) & SHARED_OFFSET_MASK;
    base.whole = p.whole;
    return base;
}

void deadlock_find_bases(struct deadlock *d)
{
    const struct kernel *k = d->group->launch->kernel;
    d->bases = malloc((k->insn_count + 1U) * sizeof *d->bases);
    for (uint32_t i = 0; d->bases && i < k->insn_count; i++) {
        const struct insn *in = &k->insns[i];
        const bool of_barrier = in->row && (in->is.waits == WAITS_PHASE || signals(in));
        d->bases[i] = (struct signal_base){NO_BASE, false};
        if (of_barrier) d->bases[i] = base_of(d, in);
    }
}

/* Whether barriers lie next to one another from `base` up to `offset`, and no instruction is known to mean one of
 * those behind the first by name: one array. */
static bool one_array(const struct deadlock *d, const struct cta *c, uint32_t base, uint32_t offset)
{
    const struct kernel *k = d->group->launch->kernel;
    if (base > offset || (offset - base) % 8) return false;
    for (uint32_t at = base; at <= offset; at += 8) {
        const struct mbar *b = mbar_at(c, at);
        if (!b || !b->live) return false;
    }
    for (uint32_t i = 0; i < k->insn_count; i++)
        if (d->bases[i].at != NO_BASE && d->bases[i].at > base && d->bases[i].at <= offset)
            return false;
    return true;
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
    return r && r->count <= 8 * SLOTS && r == range_at(k, at);
}

bool deadlock_same_array(const struct deadlock *d, const struct cta *c, uint32_t a, uint32_t b)
{
    const uint32_t low = a < b ? a : b, high = a < b ? b : a;
    const struct kernel *k = d->group->launch->kernel;
    const struct name_range *r = range_at(k, a);
    if (r && r->count > 8 && r->count <= 8 * SLOTS) return r == range_at(k, b);
    return d->bases && one_array(d, c, low, high);
}

/* Whether the address, as the warp's registers stand, is the barrier's. */
static bool names_barrier(const struct kernel *k, const struct waiter *o, const struct insn *in,
                          uint32_t offset)
{
    const uint32_t at = address_of(in);
    if (at == INSN_ARGS || in->arg[at].sink) return false;
    for (uint32_t lanes = o->frag->mask; lanes; lanes &= lanes - 1) {
        const uint64_t value = arg_lane(o->warp, in->arg[at], first_lane(lanes));
        if (same_barrier(k, value + addend_of(in), offset)) return true;
    }
    return false;
}

/* The same of an address that is still to be computed. */
static bool will_name(const struct deadlock *d, const struct waiter *o, const struct insn *in,
                      uint32_t offset)
{
    const struct kernel *k = d->group->launch->kernel;
    const uint32_t base = d->bases ? d->bases[in - k->insns].at : NO_BASE;
    return base != NO_BASE &&
           (same_barrier(k, base, offset) || one_array(d, o->warp->cta, base, offset));
}

bool deadlock_means(const struct deadlock *d, const struct waiter *o, const struct insn *in,
                    uint32_t offset)
{
    const struct kernel *k = d->group->launch->kernel;
    const struct signal_base *base = d->bases ? &d->bases[in - k->insns] : NULL;
    if (base && base->whole) return base->at == offset;
    return names_barrier(k, o, in, offset) || will_name(d, o, in, offset);
}

bool deadlock_signals(const struct deadlock *d, const struct waiter *o, const struct insn *in,
                      uint32_t offset)
{
    return signals(in) && deadlock_means(d, o, in, offset);
}

bool deadlock_named_alone(const struct deadlock *d, uint32_t offset)
{
    const struct kernel *k = d->group->launch->kernel;
    for (uint32_t i = 0; d->bases && i < k->insn_count; i++)
        if (d->bases[i].whole && d->bases[i].at == offset && signals(&k->insns[i])) return true;
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
static bool ahead(const struct deadlock *d, const struct waiter *o, uint32_t key, bool onward,
                  bool (*has)(const struct deadlock *, const struct waiter *, const struct insn *,
                              uint32_t key))
{
    const struct kernel *k = d->group->launch->kernel;
    struct walk w = {.kernel = k, .onward = onward};
    bool found = false;
    w.seen = calloc(k->insn_count + 1U, sizeof *w.seen);
    w.stack = calloc(k->insn_count + 1U, sizeof *w.stack);
    if (w.seen && w.stack) visit(&w, o->frag->pc);
    while (w.depth && !found) {
        uint32_t pc = w.stack[--w.depth];
        found = has(d, o, &k->insns[pc], key);
        visit_next(&w, pc);
    }
    free(w.seen);
    free(w.stack);
    return found;
}

/* Whether one of the names in `list`, joined with +, is `name`. */
static bool is_among(const char *name, const char *list)
{
    const size_t length = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, "+"), at += *at == '+')
        if (strcspn(at, "+") == length && !strncmp(at, name, length)) return true;
    return false;
}

/* What the source says (`//@ handoff`) of a warp and a barrier: that its role signals it, that others do, or nothing. */
enum declared { SAYS_NOTHING, SAYS_OTHERS, SAYS_IT };

static enum declared declared(const struct deadlock *d, const struct waiter *o, uint32_t offset)
{
    const struct kernel *k = d->group->launch->kernel;
    const struct name_range *barrier = range_at(k, offset);
    const struct name_range *role = role_of_warp(k, o->warp->id);
    enum declared says = SAYS_NOTHING;
    if (!barrier || !role) return says;
    for (uint32_t i = 0; i < k->entry->note_count; i++) {
        char name[64], roles[256];
        if (sscanf(k->entry->notes[i].text, " handoff %63s %*s %*s %255s", name, roles) != 2 ||
            strcmp(name, barrier->name) != 0)
            continue;
        if (is_among(role->name, roles)) return SAYS_IT;
        says = SAYS_OTHERS;
    }
    return says;
}

bool deadlock_declared(const struct deadlock *d, const struct waiter *o, uint32_t offset)
{
    return declared(d, o, offset) == SAYS_IT;
}

/* Code that computes addresses can seem to mean barriers of others, so a declaration goes first. */
bool deadlock_may_signal(const struct deadlock *d, const struct waiter *o, uint32_t offset)
{
    return declared(d, o, offset) != SAYS_OTHERS && ahead(d, o, offset, false, deadlock_signals);
}

bool deadlock_signals_next(const struct deadlock *d, const struct waiter *o, uint32_t offset)
{
    return ahead(d, o, offset, true, deadlock_signals);
}

static bool copies_to_it(const struct deadlock *d, const struct waiter *o, const struct insn *in,
                         uint32_t offset)
{
    return in->is.signals == SIGNALS_BYTES && deadlock_signals(d, o, in, offset);
}

bool deadlock_may_copy(const struct deadlock *d, const struct waiter *o, uint32_t offset)
{
    return ahead(d, o, offset, false, copies_to_it);
}

/* The number is the first 32-bit source; one in a register may be any. */
static bool meets_at(const struct deadlock *d, const struct waiter *o, const struct insn *in,
                     uint32_t id)
{
    (void)d;
    if (in->is.class != INSN_BARRIER) return false;
    for (uint32_t i = in->row->args[0] == '='; i < 2; i++)
        if (!in->arg[i].sink && in->arg[i].bits == 32)
            return in->arg[i].bank != BANK_CONST ||
                   arg_lane(o->warp, in->arg[i], first_lane(o->frag->mask)) == id;
    return false;
}

bool deadlock_may_come(const struct deadlock *d, const struct waiter *o, uint32_t id)
{
    return ahead(d, o, id, false, meets_at);
}

bool deadlock_comes_next(const struct deadlock *d, const struct waiter *o, uint32_t id)
{
    return ahead(d, o, id, true, meets_at);
}
