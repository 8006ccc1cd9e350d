/* Registers of operations in flight (order_regs.h). */
#include "check/order_regs.h"
#include "check/order_tell.h"

#include <stdio.h>
#include <stdlib.h>

enum { SLOT_ALIGN = 64, A_REGISTERS = 4 };

/* One register slot. */
struct wgmma_reg {
    uint32_t busy; /* the last operation that uses it, in numbers of the warp's chain; 0 none */
    uint32_t insn; /* that operation's instruction */
    bool result;   /* as part of D, else of A */
    bool touched;  /* by other instructions, since the last wgmma.fence */
    bool written;  /* by anything, ever: registers hold garbage when a kernel begins */
    uint32_t toucher;
    uint32_t loaded; /* by that tcgen05.ld, in numbers of the warp's chain; 0 none, or used since */
};

struct wgmma_regs {
    uint32_t count, waited; /* operations up to `waited` are complete */
    struct wgmma_reg at[];
};

static struct wgmma_regs *regs_of(struct order *o, struct order_warp *w)
{
    uint32_t count = o->kernel->regs_bytes / SLOT_ALIGN + 1;
    if (w->regs) return w->regs;
    w->regs = calloc(1, sizeof *w->regs + count * sizeof w->regs->at[0]);
    if (w->regs)
        w->regs->count = count;
    else
        order_exhausted(o, NULL);
    return w->regs;
}

static struct wgmma_reg *reg_of(struct wgmma_regs *r, struct arg a)
{
    if (a.sink || a.bank != BANK_REGS || a.bits < 16) return NULL;
    return &r->at[a.offset / SLOT_ALIGN];
}

/* Whether D is added to: scale-d. */
static bool accumulates(const struct order_warp *w, const struct insn *in)
{
    return arg_pred(w->warp, in->arg[in->is.adds]) & 1U;
}

void regs_issue(struct order *o, struct order_warp *w, const struct insn *in)
{
    struct wgmma_regs *r = regs_of(o, w);
    const uint32_t number = order_component(w, w->chain[COMPONENT_WGMMA])->number;
    const uint32_t a_regs = in->src->operands[1].kind == OPD_VECTOR ? A_REGISTERS : 0;
    const struct wgmma_reg *stale = NULL;
    bool fresh = false;
    if (!r) return;
    for (uint32_t i = 0; i < in->list_count; i++) {
        struct wgmma_reg *reg = reg_of(r, in->list[i]);
        if (!reg) continue;
        if (reg->touched) stale = reg;
        reg->busy = number;
        reg->insn = order_insn_index(o, in);
        reg->result = i + a_regs < in->list_count;
        fresh |= !reg->written && (!reg->result || accumulates(w, in));
        reg->written = true;
    }
    if (fresh)
        tell_alone(
            w, in, NO_LANE, FIND_UNINIT, "",
            "wgmma.mma_async takes in registers that nothing has written, which hold anything. "
            "Cheapest remedy: scale-d false where D begins, or values written first.",
            NULL, NULL);
    if (!stale) return;
    tell_alone(w, in, NO_LANE, FIND_WGMMA_FENCE, "",
               "wgmma.mma_async uses registers that another instruction has read or written since "
               "the last wgmma.fence. Cheapest remedy: wgmma.fence.sync.aligned after that "
               "instruction and before this one.",
               &o->kernel->insns[stale->toucher], "the register is touched here");
    regs_fence(w);
}

void regs_load(struct order *o, struct order_warp *w, const struct insn *in)
{
    struct wgmma_regs *r = regs_of(o, w);
    for (uint32_t i = 0; r && i < in->list_count; i++) {
        struct wgmma_reg *reg = reg_of(r, in->list[i]);
        if (reg) reg->loaded = order_component(w, w->chain[COMPONENT_TMEM_LD])->number;
    }
}

static void tell_used(struct order *o, struct order_warp *w, const struct insn *in)
{
    sim_idiom(o->group, in, IDIOM_LOAD_USED);
    if (o->level < 2) return;
    sim_find(o->group, w->warp, in, NO_LANE, SEV_WARNING, FIND_TMEM_WAIT, CAUSE_NONE, "",
             "uses a register of tcgen05.ld before a tcgen05.wait::ld has said that it holds what "
             "was loaded. Cheapest remedy: tcgen05.wait::ld.sync.aligned before this.");
}

/* Loads complete in order: a register in use stands for all loads up to its own. */
static void use_loaded(struct order *o, struct order_warp *w, const struct insn *in,
                       struct wgmma_reg *reg)
{
    uint32_t used;
    if (!reg || !reg->loaded) return;
    /* PTX ISA "tcgen05.ld": asynchronous, so the letter asks for the wait even here. */
    if (clock_get(&w->now.known, w->chain[COMPONENT_TMEM_LD]) < reg->loaded) tell_used(o, w, in);
    used = order_chain(w, COMPONENT_LD_USED);
    if (used) order_learn(w, used, reg->loaded);
    reg->loaded = 0;
}

void regs_wait(struct order_warp *w, uint32_t number)
{
    if (w->regs && w->regs->waited < number) w->regs->waited = number;
}

void regs_fence(struct order_warp *w)
{
    for (uint32_t i = 0; w->regs && i < w->regs->count; i++) w->regs->at[i].touched = false;
}

/* The instruction's first operand, or its list, is what it writes. */
static bool writes(const struct insn *in, bool list, uint32_t index)
{
    const char *args = in->row->args;
    if (args[0] != '=') return false;
    return list ? args[1] == '{' : index == 0;
}

static void touch_register(struct order *o, struct order_warp *w, const struct event *e,
                           struct wgmma_reg *reg, bool wrote)
{
    char message[320];
    if (reg->busy > w->regs->waited && (reg->result || wrote)) {
        (void)snprintf(message, sizeof message,
                       "%s a register of %s while wgmma.mma_async is in flight: no "
                       "wgmma.wait_group has said that it is complete. Cheapest remedy: "
                       "wgmma.commit_group and wgmma.wait_group before this.",
                       wrote ? "writes" : "reads", reg->result ? "D" : "A");
        tell_alone(w, e->in, NO_LANE, FIND_WGMMA_WAIT, "", message, &o->kernel->insns[reg->insn],
                   "the operation in flight");
    }
    reg->touched = true;
    reg->written |= wrote;
    reg->toucher = order_insn_index(o, e->in);
}

/* A copy from register to register: compilers put these between operations that share accumulators,
 * and the assembler makes them one register. The copy stands for the original. */
static bool plain_copy(struct wgmma_regs *r, const struct insn *in)
{
    const struct wgmma_reg *from;
    struct wgmma_reg *to;
    if (in->is.class != INSN_MOVE || in->list_count > 1) return false;
    to = reg_of(r, in->arg[0]);
    from = reg_of(r, in->arg[1]);
    if (!to || !from || in->arg[0].bits != in->arg[1].bits) return false;
    *to = *from;
    to->written = true; /* by the copy; writes to a register that no wgmma names are not told of */
    return true;
}

void regs_touch(struct order *o, struct order_warp *w, const struct event *e)
{
    struct wgmma_regs *r = regs_of(o, w);
    const struct insn *in = e->in;
    if (!r) return;
    for (uint32_t i = 0; i < INSN_ARGS; i++) use_loaded(o, w, in, reg_of(r, in->arg[i]));
    for (uint32_t i = 0; i < in->list_count; i++) use_loaded(o, w, in, reg_of(r, in->list[i]));
    if (plain_copy(r, in)) return;
    for (uint32_t i = 0; i < INSN_ARGS; i++) {
        struct wgmma_reg *reg = reg_of(r, in->arg[i]);
        if (reg) touch_register(o, w, e, reg, writes(in, false, i));
    }
    for (uint32_t i = 0; i < in->list_count; i++) {
        struct wgmma_reg *reg = reg_of(r, in->list[i]);
        if (reg) touch_register(o, w, e, reg, writes(in, true, i));
    }
}
