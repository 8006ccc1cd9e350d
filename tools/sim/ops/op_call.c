/*
 * Calls (PTX ISA, Control Flow Instructions: call, ret). All lanes of a warp share the registers of a
 * function, lane by lane, so only the frame and the way back belong to a call: they stand on a stack
 * of the lane. Where a function may be called while it runs, its registers of the outer activation
 * are kept there too.
 */
#include "decode/bind.h"
#include "machine/calls.h"
#include "machine/exec.h"
#include "machine/mem.h"
#include "ops/print.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ALLOCA_ALIGN = 8, HARDWARE_STACK_ERROR = 714, INVALID_PC = 718, LAUNCH_ASSERT = 710 };

/* A register, as it is saved. */
struct saved_slot {
    uint32_t offset;
    uint8_t bits;
};

/* A parameter at one end of a call: in a frame, or in a register or constant. */
struct place {
    bool in_frame;
    struct arg arg;
    uint32_t offset, bytes;
};

struct callee {
    const struct ptx_function *function;
    const struct place *rets, *args;
    const struct saved_slot *slots; /* when the entry is recursive */
    uint32_t slot_count;
    size_t saved_bytes; /* of one lane's slots */
};

struct call_site {
    const struct ptx_call *call;
    const struct callee *callee; /* NULL: by the pointer in insn.arg[0] */
    const struct place *rets, *args;
    struct arg frame; /* the frame register */
};

/* ---- binding ---- */

static bool bind_place(struct decode *d, const struct operand *o, const struct ptx_formal *formal,
                       struct place *out)
{
    uint32_t reg = formal ? formal->reg : o ? o->reg : 0;
    const struct ptx_var *var = formal ? formal->var : o && o->kind == OPD_VAR ? o->var : NULL;
    struct decoder *dc = &d->dc;

    *out = (struct place){.bytes = 8};
    if (!formal && !o) return false;
    if (var) {
        out->in_frame = true;
        out->offset = (uint32_t)var->offset;
        out->bytes = (uint32_t)var->bytes;
    } else if (formal || o->kind == OPD_REG) {
        uint32_t bits = ptx_type_bits(dc->entry->regs[reg].type);

        out->arg =
            (struct arg){.offset = register_slot(d, reg), .bits = (uint8_t)(bits == 8 ? 16 : bits)};
        out->bytes = bits < 8 ? 1 : bits / 8U;
    } else if (o->kind != OPD_SINK) {
        if (!constant_operand(d, o, &out->arg)) return false;
    } else {
        out->arg.sink = 1;
    }
    return true;
}

static const struct place *bind_formals(struct decode *d, const struct ptx_formal *formals,
                                        uint32_t count)
{
    struct place *places = bind_alloc(&d->dc, (count + 1U) * sizeof *places);

    for (uint32_t i = 0; places && i < count; i++)
        if (!bind_place(d, NULL, &formals[i], &places[i])) return NULL;
    return places;
}

static const struct place *bind_actuals(struct decode *d, const struct operand *items,
                                        uint32_t count)
{
    struct place *places = bind_alloc(&d->dc, (count + 1U) * sizeof *places);

    for (uint32_t i = 0; places && i < count; i++)
        if (!bind_place(d, &items[i], NULL, &places[i])) return NULL;
    return places;
}

static bool bind_saved(struct decode *d, struct callee *c)
{
    const struct ptx_function *f = c->function;
    struct saved_slot *slots;

    if (!d->dc.entry->recursive) return true;
    slots = bind_alloc(&d->dc, (f->reg_count + 1U) * sizeof *slots);
    if (!slots) return false;
    for (uint32_t i = 0; i < f->reg_count; i++) {
        uint32_t bits = ptx_type_bits(d->dc.entry->regs[f->first_reg + i].type);

        slots[i].bits = (uint8_t)(bits == 8 ? 16 : bits);
        slots[i].offset = register_slot(d, f->first_reg + i);
        c->saved_bytes += bits == 1 ? 1 : slots[i].bits / 8U;
    }
    c->slots = slots;
    c->slot_count = f->reg_count;
    return true;
}

/* The kernel's table of functions, made at its first call. */
static const struct callee *callees(struct decode *d)
{
    const struct ptx_entry *e = d->dc.entry;
    struct callee *all;

    if (d->dc.kernel->callees) return d->dc.kernel->callees;
    all = bind_alloc(&d->dc, (e->function_count + 1U) * sizeof *all);
    for (uint32_t i = 0; all && i < e->function_count; i++) {
        const struct ptx_function *f = e->functions[i];

        all[i].function = f;
        all[i].rets = bind_formals(d, f->rets, f->ret_count);
        all[i].args = bind_formals(d, f->args, f->arg_count);
        if (!all[i].rets || !all[i].args || !bind_saved(d, &all[i])) return NULL;
    }
    d->dc.kernel->callees = all;
    return all;
}

/* ---- what a lane's stack holds ---- */

struct record {
    const struct call_site *site;
    const struct callee *callee;
    uint64_t frame; /* of the caller */
    uint32_t return_pc;
    uint32_t taken; /* by alloca, of the caller */
};

static bool top(const struct warp *w, uint32_t lane, struct record *out)
{
    const uint8_t *at = calls_top(w, lane, sizeof *out);

    if (at) memcpy(out, at, sizeof *out);
    return at != NULL;
}

/* ---- values ---- */

static uint8_t *frame_at(struct warp *w, uint32_t lane, uint64_t frame, const struct place *p)
{
    const struct ptx_entry *e = w->cta->group->launch->kernel->entry;

    if (!w->local || frame + p->offset + p->bytes > e->local_bytes) return NULL;
    return w->local + (size_t)lane * e->local_bytes + frame + p->offset;
}

/* Tells the checker of a value that goes from one place to another. */
static void publish_passed(struct warp *w, const struct insn *in, uint32_t lane,
                           const struct place *from, uint64_t from_frame, const struct place *to,
                           uint64_t to_frame)
{
    struct insn passing = *in;
    const uint64_t addresses[2] = {to->in_frame ? to_frame + to->offset : NO_LANE,
                                   from->in_frame ? from_frame + from->offset : NO_LANE};
    struct event e = {.kind = EV_PASSED,
                      .lanes = 1U << lane,
                      .warp = w,
                      .in = &passing,
                      .addresses = addresses,
                      .size = from->bytes < to->bytes ? from->bytes : to->bytes};

    if (!w->undefined) return;
    passing.arg[0] = to->arg;
    passing.arg[2] = from->arg;
    e.cta = w->cta;
    observe(w->cta->group, &e);
}

/* Copies one parameter from one end to the other, as many bytes as both have. */
static void pass(struct warp *w, const struct insn *in, uint32_t lane, const struct place *from,
                 uint64_t from_frame, const struct place *to, uint64_t to_frame)
{
    const uint8_t *source = from->in_frame ? frame_at(w, lane, from_frame, from) : NULL;
    uint8_t *sink = to->in_frame ? frame_at(w, lane, to_frame, to) : NULL;
    uint32_t bytes = from->bytes < to->bytes ? from->bytes : to->bytes;
    uint64_t value = 0;

    publish_passed(w, in, lane, from, from_frame, to, to_frame);
    if (source && sink) {
        memmove(sink, source, bytes);
        return;
    }
    if (source)
        memcpy(&value, source, bytes < 8 ? bytes : 8);
    else
        value = arg_lane(w, from->arg, lane);
    if (sink)
        memcpy(sink, &value, bytes < 8 ? bytes : 8);
    else if (to->arg.bits == 1)
        arg_set_pred(w, to->arg, 1U << lane, value ? FULL_MASK : 0);
    else
        arg_set_lane(w, to->arg, lane, value);
}

static void save_slots(const struct warp *w, const struct callee *c, uint32_t lane, uint8_t *to)
{
    for (uint32_t i = 0; i < c->slot_count; i++) {
        const uint8_t *slot = w->bank[BANK_REGS] + c->slots[i].offset;
        uint32_t bits = c->slots[i].bits, word;

        if (bits == 1) {
            memcpy(&word, slot, sizeof word);
            *to++ = word >> lane & 1U;
        } else if (bits == 128) { /* two halves, each of all lanes */
            memcpy(to, slot + (size_t)lane * 8, 8);
            memcpy(to + 8, slot + (WARP_LANES + (size_t)lane) * 8, 8);
            to += 16;
        } else {
            memcpy(to, slot + (size_t)lane * (bits / 8U), bits / 8U);
            to += bits / 8U;
        }
    }
}

static void restore_slots(const struct warp *w, const struct callee *c, uint32_t lane,
                          const uint8_t *from)
{
    for (uint32_t i = 0; i < c->slot_count; i++) {
        uint8_t *slot = w->bank[BANK_REGS] + c->slots[i].offset;
        uint32_t bits = c->slots[i].bits, word;

        if (bits == 1) {
            memcpy(&word, slot, sizeof word);
            word = (word & ~(1U << lane)) | (uint32_t)*from++ << lane;
            memcpy(slot, &word, sizeof word);
        } else if (bits == 128) {
            memcpy(slot + (size_t)lane * 8, from, 8);
            memcpy(slot + (WARP_LANES + (size_t)lane) * 8, from + 8, 8);
            from += 16;
        } else {
            memcpy(slot + (size_t)lane * (bits / 8U), from, bits / 8U);
            from += bits / 8U;
        }
    }
}

/* ---- call ---- */

static enum step enter(struct warp *w, const struct insn *in, const struct callee *callee,
                       uint32_t lane)
{
    const struct call_site *site = in->aux;
    const struct launch *l = w->cta->group->launch;
    const struct ptx_entry *e = l->kernel->entry;
    const struct ptx_function *f = callee->function;
    struct record record = {.site = site,
                            .callee = callee,
                            .frame = arg_lane(w, site->frame, lane),
                            .return_pc = (uint32_t)(in - l->kernel->insns) + 1};
    uint64_t frame =
        record.frame + (site->call->caller ? site->call->caller->frame_bytes : e->frame_bytes);
    uint32_t *taken;
    uint8_t *at;

    if (frame + f->frame_bytes > (e->taken_at ? e->taken_at : e->local_bytes))
        return sim_fault(w, in, lane, HARDWARE_STACK_ERROR, FIND_OOB, CAUSE_NONE, "",
                         "the call of '%s' needs %u bytes of stack at %llu of %u", f->name,
                         f->frame_bytes, (unsigned long long)frame, e->local_bytes);
    at = calls_push(w, lane, callee->saved_bytes + sizeof record);
    if (!at) return sim_fault(w, in, lane, 2, FIND_OOB, CAUSE_NONE, "", "out of memory for calls");
    save_slots(w, callee, lane, at);
    taken = calls_taken(w, lane);
    record.taken = taken ? *taken : 0;
    memcpy(at + callee->saved_bytes, &record, sizeof record);
    for (uint32_t i = 0; i < site->call->arg_count && i < f->arg_count; i++)
        pass(w, in, lane, &site->args[i], record.frame, &callee->args[i], frame);
    arg_set_lane(w, site->frame, lane, frame);
    return STEP_NEXT;
}

/* `lanes` of the current fragment go on at `pc`; the rest meets the instruction again. */
static enum step go_on(struct warp *w, uint32_t lanes, uint32_t pc)
{
    struct frag *f = warp_frag(w);

    if (lanes == f->mask)
        f->pc = pc;
    else
        frag_split(w, lanes, pc);
    return STEP_JUMP;
}

/* Which function a pointer means, or NULL. */
static const struct callee *pointed(const struct kernel *k, uint64_t address)
{
    for (uint32_t i = 0; i < k->entry->function_count; i++)
        if (k->callees[i].function->address == address) return &k->callees[i];
    return NULL;
}

static enum step exec_call(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct call_site *site = in->aux;
    const struct callee *callee = site->callee;
    uint32_t lanes = mask;

    if (!callee) { /* one function at a time */
        uint32_t lane = first_lane(mask);
        uint64_t address = arg_lane(w, in->arg[0], lane);

        callee = pointed(w->cta->group->launch->kernel, address);
        if (!callee)
            return sim_fault(w, in, lane, INVALID_PC, FIND_OOB, CAUSE_NONE, "",
                             "0x%llx is the address of no function that this call may reach",
                             (unsigned long long)address);
        for (uint32_t rest = mask; rest; rest &= rest - 1)
            if (arg_lane(w, in->arg[0], first_lane(rest)) != address)
                lanes &= ~(1U << first_lane(rest));
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        if (enter(w, in, callee, first_lane(rest)) == STEP_FAULT) return STEP_FAULT;
    return go_on(w, lanes, callee->function->start);
}

/* ---- ret ---- */

static void leave(struct warp *w, const struct insn *in, uint32_t lane, const struct record *r)
{
    const struct callee *c = r->callee;
    const struct call_site *site = r->site;
    uint64_t frame = arg_lane(w, site->frame, lane);
    uint64_t held[2] = {0, 0};

    /* A value in a register of the callee would be lost with it. */
    for (uint32_t i = 0; i < c->function->ret_count && i < 2; i++)
        if (!c->rets[i].in_frame) held[i] = arg_lane(w, c->rets[i].arg, lane);
    restore_slots(w, c, lane, calls_pop(w, lane, sizeof *r + c->saved_bytes));
    for (uint32_t i = 0; i < site->call->ret_count && i < c->function->ret_count; i++) {
        const struct place *to = &site->rets[i];

        if (c->rets[i].in_frame) {
            pass(w, in, lane, &c->rets[i], frame, to, r->frame);
        } else if (to->in_frame) {
            uint8_t *sink = frame_at(w, lane, r->frame, to);
            if (sink) memcpy(sink, &held[i % 2], to->bytes < 8 ? to->bytes : 8);
        } else if (to->arg.bits == 1) {
            arg_set_pred(w, to->arg, 1U << lane, held[i % 2] ? FULL_MASK : 0);
        } else {
            arg_set_lane(w, to->arg, lane, held[i % 2]);
        }
        if (!c->rets[i].in_frame) publish_passed(w, in, lane, &c->rets[i], frame, to, r->frame);
    }
    arg_set_lane(w, site->frame, lane, r->frame);
    *calls_taken(w, lane) = r->taken;
}

/* Lanes that came from one place go back together; the others run the instruction again. */
static enum step exec_ret(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct record r, first;
    uint32_t lanes = 0;

    if (!top(w, first_lane(mask), &first)) return frag_exit(w, mask);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t lane = first_lane(rest);

        if (!top(w, lane, &r) || r.return_pc != first.return_pc) continue;
        leave(w, in, lane, &r);
        lanes |= 1U << lane;
    }
    return go_on(w, lanes, first.return_pc);
}

/* ---- memory of the stack ---- */

/* PTX ISA "alloca": in the frame of the function, so gone when that returns. */
static enum step exec_alloca(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct ptx_entry *e = w->cta->group->launch->kernel->entry;

    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        const uint64_t bytes = arg_lane(w, in->arg[1], lane), room = e->local_bytes - e->taken_at;
        const uint64_t align = in->arg[2].sink ? ALLOCA_ALIGN : arg_lane(w, in->arg[2], lane);
        uint32_t *taken = calls_taken(w, lane);
        uint64_t at;

        if (!taken || !align || align & (align - 1))
            return sim_fault(w, in, lane, taken ? HARDWARE_STACK_ERROR : 2, FIND_OOB, CAUSE_NONE,
                             "", "an alignment of %llu is no power of two",
                             (unsigned long long)align);
        at = (e->taken_at + *taken + align - 1) / align * align;
        if (bytes > room || at + bytes > e->local_bytes)
            return sim_fault(w, in, lane, HARDWARE_STACK_ERROR, FIND_OOB, CAUSE_NONE, "",
                             "%llu bytes of stack are asked for, after %u; a thread has %llu",
                             (unsigned long long)bytes, *taken, (unsigned long long)room);
        *taken = (uint32_t)(at + bytes - e->taken_at);
        arg_set_lane(w, in->arg[0], lane, at);
    }
    return STEP_NEXT;
}

static enum step exec_stacksave(struct warp *w, const struct insn *in, uint32_t mask)
{
    const uint32_t begin = w->cta->group->launch->kernel->entry->taken_at;

    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest), *taken = calls_taken(w, lane);
        arg_set_lane(w, in->arg[0], lane, begin + (taken ? *taken : 0));
    }
    return STEP_NEXT;
}

static enum step exec_stackrestore(struct warp *w, const struct insn *in, uint32_t mask)
{
    const uint32_t begin = w->cta->group->launch->kernel->entry->taken_at;

    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        const uint64_t at = arg_lane(w, in->arg[0], lane);
        uint32_t *taken = calls_taken(w, lane);

        if (!taken || at < begin || at - begin > *taken)
            return sim_fault(w, in, lane, HARDWARE_STACK_ERROR, FIND_OOB, CAUSE_NONE, "",
                             "0x%llx was not saved by stacksave", (unsigned long long)at);
        *taken = (uint32_t)(at - begin);
    }
    return STEP_NEXT;
}

static int bind_stack(struct insn *out, exec_fn *fn)
{
    out->fn = fn;
    return 0;
}

int bind_alloca(struct decoder *dc, struct insn *out)
{
    (void)dc;
    return bind_stack(out, exec_alloca);
}

int bind_stacksave(struct decoder *dc, struct insn *out)
{
    (void)dc;
    return bind_stack(out, exec_stacksave);
}

int bind_stackrestore(struct decoder *dc, struct insn *out)
{
    (void)dc;
    return bind_stack(out, exec_stackrestore);
}

static enum step exec_end(struct warp *w, const struct insn *in, uint32_t mask)
{
    (void)in;
    return frag_exit(w, mask);
}

int bind_ret(struct decoder *dc, struct insn *out)
{
    bool in_function = dc->src < dc->entry->insns + dc->entry->start;

    out->fn = in_function ? exec_ret : exec_end;
    return 0;
}

/* ---- system calls ---- */

static uint64_t argument(struct warp *w, const struct call_site *site, uint32_t index,
                         uint32_t lane)
{
    const struct place *p = &site->args[index];
    uint64_t frame = arg_lane(w, site->frame, lane), value = 0;
    const uint8_t *at = p->in_frame ? frame_at(w, lane, frame, p) : NULL;

    if (!p->in_frame) return arg_lane(w, p->arg, lane);
    if (at) memcpy(&value, at, p->bytes < 8 ? p->bytes : 8);
    return value;
}

/* What a system call returns to `lane`, where the program wants it. */
static void give(struct warp *w, const struct call_site *site, uint32_t lane, uint64_t value)
{
    const struct place *p = site->rets;

    if (!site->call->ret_count) return;
    if (p->in_frame) {
        uint8_t *at = frame_at(w, lane, arg_lane(w, site->frame, lane), p);
        if (at) memcpy(at, &value, p->bytes < 8 ? p->bytes : 8);
    } else {
        arg_set_lane(w, p->arg, lane, value);
    }
}

static enum step exec_vprintf(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct call_site *site = in->aux;

    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t lane = first_lane(rest);
        int32_t parsed;

        if (!print_lane(w, in, lane, argument(w, site, 0, lane), argument(w, site, 1, lane),
                        &parsed))
            return STEP_FAULT;
        give(w, site, lane, (uint32_t)parsed);
    }
    return STEP_NEXT;
}

static enum step exec_malloc(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct call_site *site = in->aux;

    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t lane = first_lane(rest);
        uint64_t address = 0;

        if (mem_heap_alloc(argument(w, site, 0, lane), &address)) address = 0;
        give(w, site, lane, address);
    }
    return STEP_NEXT;
}

/* While the memory is still there: what others may be doing to it is looked at first. */
static void publish_free(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address)
{
    struct event e = {
        .kind = EV_HEAP_FREE, .lanes = 1U << lane, .warp = w, .in = in, .cta = w->cta};

    if (!address || !w->cta->group->observer) return;
    if (!mem_range(address, 1, &e.address, &e.size) || e.address != address) return;
    observe(w->cta->group, &e);
}

static enum step exec_free(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct call_site *site = in->aux;

    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t lane = first_lane(rest);
        uint64_t address = argument(w, site, 0, lane);

        publish_free(w, in, lane, address);
        if (address && mem_heap_free(address))
            return sim_fault(w, in, lane, 700, FIND_USE_AFTER_FREE, CAUSE_NONE, "",
                             "frees 0x%" PRIx64 ", which no malloc of device code has returned, or "
                             "which is free already",
                             address);
    }
    return STEP_NEXT;
}

/* cudaGraphSetConditional(handle, value): the handle of a condition is the address of its word. */
static enum step exec_set_condition(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct call_site *site = in->aux;

    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t lane = first_lane(rest), value = (uint32_t)argument(w, site, 1, lane);
        void *at = mem_at(w, in, lane, SPACE_GLOBAL, argument(w, site, 0, lane), sizeof value,
                          sizeof value, ACCESS_WRITE, false);

        if (!at) return STEP_FAULT;
        memcpy(at, &value, sizeof value);
    }
    return STEP_NEXT;
}

/* A text of the program's, as far as it can be read. */
static void read_text(struct warp *w, uint32_t lane, uint64_t address, char *out, size_t size)
{
    size_t n = 0;

    for (; n + 1 < size; n++) {
        const char *c = mem_peek(w, lane, address + n);
        if (!c || !*c) break;
        out[n] = *c;
    }
    out[n] = 0;
}

/* __assertfail(message, file, line, function, size of a character) */
static enum step exec_assert(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct call_site *site = in->aux;
    uint32_t lane = first_lane(mask);
    char message[200] = "", file[200] = "", function[200] = "";
    uint32_t line = 0;

    if (site->call->arg_count >= 4) {
        read_text(w, lane, argument(w, site, 0, lane), message, sizeof message);
        read_text(w, lane, argument(w, site, 1, lane), file, sizeof file);
        line = (uint32_t)argument(w, site, 2, lane);
        read_text(w, lane, argument(w, site, 3, lane), function, sizeof function);
    }
    return sim_fault(w, in, lane, LAUNCH_ASSERT, FIND_TRAP, CAUSE_NONE, "",
                     "a device assertion failed in %d lane%s (0x%08x): %s:%u: %s: `%s`",
                     __builtin_popcount(mask), mask & (mask - 1) ? "s" : "", mask, file, line,
                     function, message);
}

static int bind_system(struct decoder *dc, struct insn *out, const struct ptx_call *call)
{
    if (!strcmp(call->callee, "__assertfail")) {
        out->fn = exec_assert;
    } else if (!strcmp(call->callee, "vprintf") && call->arg_count == 2) {
        out->fn = exec_vprintf;
    } else if (!strcmp(call->callee, "malloc") && call->arg_count == 1 && call->ret_count == 1) {
        out->fn = exec_malloc;
        dc->kernel->global_sync = true; /* one order of allocations, so one set of addresses */
    } else if (!strcmp(call->callee, "free") && call->arg_count == 1) {
        out->fn = exec_free;
        dc->kernel->global_sync = true;
    } else if (!strcmp(call->callee, "cudaGraphSetConditional") && call->arg_count == 2) {
        out->fn = exec_set_condition;
    } else {
        return bind_unsupported(dc, "'%s' has no body in this module", call->callee);
    }
    return 0;
}

static bool bind_pointer(struct decode *d, const struct ptx_call *call, struct insn *out)
{
    uint32_t reg = call->target->reg;

    if (ptx_type_bits(d->dc.entry->regs[reg].type) != 64) return false;
    out->arg[0] = (struct arg){.offset = register_slot(d, reg), .bits = 64};
    return true;
}

int bind_call(struct decoder *dc, struct insn *out)
{
    struct decode *d = (struct decode *)dc;
    const struct ptx_call *call = dc->src->call;
    const struct ptx_entry *e = dc->entry;
    struct call_site *site = bind_alloc(dc, sizeof *site);
    const struct callee *all = callees(d);

    if (!site || !all) return d->no_memory ? -1 : -2;
    site->call = call;
    site->rets = bind_actuals(d, call->rets, call->ret_count);
    site->args = bind_actuals(d, call->args, call->arg_count);
    if (!site->rets || !site->args) return d->no_memory ? -1 : -2;
    site->frame = (struct arg){.sink = 1};
    if (e->frame_reg != NO_REG && e->function_count)
        site->frame = (struct arg){.offset = register_slot(d, e->frame_reg), .bits = 64};
    out->aux = site;
    out->fn = exec_call;
    if (!call->callee)
        return bind_pointer(d, call, out) ? 0 : bind_invalid(dc, "a function pointer has 64 bits");
    for (uint32_t i = 0; i < e->function_count && !site->callee; i++)
        if (!strcmp(all[i].function->name, call->callee)) site->callee = &all[i];
    if (!site->callee) return bind_system(dc, out, call);
    if (call->arg_count != site->callee->function->arg_count ||
        call->ret_count != site->callee->function->ret_count)
        return bind_invalid(dc, "'%s' takes %u parameters and returns %u values", call->callee,
                            site->callee->function->arg_count, site->callee->function->ret_count);
    return 0;
}
