/* What a poll of a flag could have read: order_poll.h. */
#include "check/order_poll.h"

#include "check/deadlock.h"
#include "machine/exec.h"
#include "machine/mem.h"

#include <stdlib.h>

enum { STEPS_MOST = 256, STATES_MOST = 4096, TAINTS = 16 };

#define POLL_VISITED 0x80000000U

/* ---- what the thread does with a value ---- */

/* A copy of the warp that has the lanes of the poll alone, and the registers of all. */
struct trial {
    struct warp warp;
    uint32_t pc; /* of the first instruction that does more than compute */
    bool back;   /* which is the poll */
    bool lost;   /* the lanes part, or too many steps */
};

static bool only_computes(const struct insn *in)
{
    return in->is.class == INSN_ALU || in->is.class == INSN_MOVE ||
           (in->is.class == INSN_CONTROL && in->is.control <= CONTROL_BRANCH);
}

static void go_on(struct trial *t, const struct kernel *k, const struct insn *poll)
{
    struct warp *w = &t->warp;
    t->lost = true;
    for (uint32_t n = 0; n < STEPS_MOST; n++) {
        const uint32_t pc = w->frags[0].pc, lanes = w->frags[0].mask;
        const struct insn *in = pc < k->insn_count ? &k->insns[pc] : NULL;
        uint32_t mask = lanes, bits;
        enum step s;
        if (!in || w->frag_count != 1) return;
        if (in->guard != NO_GUARD) {
            memcpy(&bits, w->bank[BANK_REGS] + in->guard, sizeof bits);
            mask &= in->guard_negated ? ~bits : bits;
        }
        t->pc = pc;
        t->back = in == poll;
        t->lost = t->back && mask != lanes;
        if (mask && !only_computes(in)) return;
        t->lost = true;
        s = mask ? in->fn(w, in, mask) : STEP_NEXT;
        if (s == STEP_NEXT)
            w->frags[0].pc++;
        else if (s != STEP_JUMP)
            return;
    }
}

/* The lanes go on from behind the poll, which has brought `value`. */
static void try_value(const struct poll *p, struct trial *t, uint8_t *regs, uint64_t value)
{
    const struct kernel *k = p->w->cta->cluster->order->kernel;
    const struct arg to = p->in->arg[0];
    memcpy(regs, p->w->warp->bank[BANK_REGS], k->regs_bytes);
    t->warp = *p->w->warp;
    t->warp.bank[BANK_REGS] = regs;
    t->warp.frags[0] = *warp_frag(p->w->warp);
    t->warp.frags[0].mask = p->lanes;
    t->warp.frags[0].wait.kind = WAIT_NONE;
    t->warp.frags[0].watch_left = 0;
    t->warp.frags[0].pc = (uint32_t)(p->in - k->insns) + 1;
    t->warp.frag_count = 1;
    t->warp.current = 0;
    t->warp.live = p->lanes;
    for (uint32_t rest = p->lanes; rest; rest &= rest - 1)
        memcpy(regs + to.offset + (size_t)first_lane(rest) * p->size, &value, p->size);
    go_on(t, k, p->in);
}

/* ---- whether it matters which value it was ---- */

/* Registers that may differ, by the place of each in `at`, along all ways from an instruction on. */
struct taint {
    const struct kernel *k;
    uint32_t at[TAINTS], count;
    uint32_t *state; /* [insn_count]: bits by place, and POLL_VISITED */
    uint32_t *todo, todo_count;
    bool calls; /* the warp has called functions: where a return leads is not known */
    bool matters;
};

static uint32_t taint_bit(struct taint *t, const struct arg *a, bool make)
{
    if (a->bank != BANK_REGS || a->sink) return 0;
    for (uint32_t i = 0; i < t->count; i++)
        if (t->at[i] == a->offset) return 1U << i;
    if (!make) return 0;
    if (t->count == TAINTS) {
        t->matters = true;
        return 0;
    }
    t->at[t->count] = a->offset;
    return 1U << t->count++;
}

static void taint_go(struct taint *t, uint32_t pc, uint32_t bits)
{
    if (!bits || pc >= t->k->insn_count || (t->state[pc] & bits) == bits) return;
    if (!(t->state[pc] & POLL_VISITED)) t->todo[t->todo_count++] = pc;
    t->state[pc] |= bits | POLL_VISITED;
}

static uint32_t read_of(struct taint *t, const struct insn *in, uint32_t results, bool list)
{
    uint32_t read = 0;
    for (uint32_t i = 0; i < INSN_ARGS; i++)
        if (!(results >> i & 1)) read |= taint_bit(t, &in->arg[i], false);
    for (uint32_t i = 0; !list && i < in->list_count; i++)
        read |= taint_bit(t, &in->list[i], false);
    return read;
}

static uint32_t written_of(struct taint *t, const struct insn *in, uint32_t results, bool list,
                           bool make)
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < INSN_ARGS; i++)
        if (results >> i & 1) written |= taint_bit(t, &in->arg[i], make);
    for (uint32_t i = 0; list && i < in->list_count; i++)
        written |= taint_bit(t, &in->list[i], make);
    return written;
}

/* Stores of data may differ: who reads them is ordered, or is found. But not where they are to go, nor a flag. */
static bool stores_data(struct taint *t, const struct insn *in)
{
    return in->is.class == INSN_STORE && !in->is.strong && in->space == SPACE_GLOBAL &&
           !taint_bit(t, &in->arg[0], false);
}

static void taint_step(struct taint *t, uint32_t pc)
{
    const struct insn *in = &t->k->insns[pc];
    const bool guarded = in->guard != NO_GUARD;
    bool list = false;
    uint32_t bits = t->state[pc] & ~POLL_VISITED, results, read;
    if (!in->row) return;
    results = row_results(in->row, &list);
    read = read_of(t, in, results, list) & bits;
    if (guarded)
        read |= taint_bit(t, &(struct arg){.offset = in->guard, .bank = BANK_REGS}, false) & bits
                    ? UINT32_MAX
                    : 0;
    if (read == UINT32_MAX || in->is.control > CONTROL_BRANCH) {
        const bool ends =
            in->is.control == CONTROL_EXIT || (in->is.control == CONTROL_RETURN && !t->calls);
        t->matters |= read == UINT32_MAX || !ends;
        if (guarded) taint_go(t, pc + 1, bits);
        return;
    }
    if (read && (in->is.class == INSN_ALU || in->is.class == INSN_MOVE)) {
        bits |= written_of(t, in, results, list, true);
    } else {
        t->matters |= read && !stores_data(t, in);
        if (!guarded) bits &= ~written_of(t, in, results, list, false);
    }
    if (in->is.control == CONTROL_BRANCH) taint_go(t, in->target, bits);
    if (in->is.control != CONTROL_BRANCH || guarded) taint_go(t, pc + 1, bits);
}

/* The register that was loaded decides nothing from `pc` on. */
static bool taint_free(const struct kernel *k, struct arg loaded, uint32_t pc, bool calls)
{
    struct taint t = {.k = k, .calls = calls};
    uint32_t steps = 0;
    t.state = calloc(k->insn_count, sizeof *t.state);
    t.todo = calloc(k->insn_count, sizeof *t.todo);
    if (t.state && t.todo) {
        taint_go(&t, pc, taint_bit(&t, &loaded, true));
        while (t.todo_count && !t.matters && steps++ < STATES_MOST) {
            const uint32_t at = t.todo[--t.todo_count];
            t.state[at] &= ~POLL_VISITED;
            taint_step(&t, at);
        }
    }
    steps = !t.state || !t.todo || t.matters || t.todo_count;
    free(t.state);
    free(t.todo);
    return steps == 0;
}

static bool decides_nothing(struct order *o, const struct poll *p, uint32_t pc)
{
    struct poll_exit *x = &o->exits[(p->in - o->kernel->insns + pc) % POLL_EXITS];
    if (x->poll != p->in || x->pc != pc) {
        x->free = taint_free(o->kernel, p->in->arg[0], pc, p->w->warp->calls != NULL);
        x->poll = p->in;
        x->pc = pc;
    }
    return x->free;
}

/* ---- which value ---- */

/* Two trials have come to the same: all registers alike but the one that was loaded. */
static bool alike(const struct poll *p, const struct trial *a, const struct trial *b)
{
    const uint8_t *x = a->warp.bank[BANK_REGS], *y = b->warp.bank[BANK_REGS];
    const size_t from = p->in->arg[0].offset, to = from + (size_t)WARP_LANES * p->size;
    const size_t bytes = p->w->cta->cluster->order->kernel->regs_bytes;
    if (b->lost || b->back || a->pc != b->pc) return false;
    return !memcmp(x, y, from) && (to >= bytes || !memcmp(x + to, y + to, bytes - to));
}

/* The write comes before the poll, so that older values cannot be the answer. */
static bool knows_write(const struct order_warp *w, const struct world *world,
                        const struct world_past *past)
{
    const struct actor *by = &world->actors[past->actor];
    const struct clock *c = by->cluster == w->cta->cluster->linear
                                ? &w->now.known
                                : horizon_of(w->now.abroad, by->cluster);
    return !past->actor || (c && clock_get(c, by->component) >= past->number);
}

static bool value_of(const struct poll *p, uint64_t *value)
{
    const void *at = mem_peek(p->w->warp, first_lane(p->lanes), p->address);
    *value = 0;
    if (at) memcpy(value, at, p->size);
    return at != NULL;
}

static enum poll_answer answer(const struct poll *p, const struct world_flag *f, uint64_t from,
                               const struct world_past **past, uint8_t *regs, size_t bytes)
{
    struct order *o = p->w->cta->cluster->order;
    struct trial now = {.lost = false}, then = {.lost = false};
    uint64_t value, oldest = f->past_count;
    if (!value_of(p, &value)) return POLL_NONE;
    try_value(p, &now, regs, value);
    if (now.lost) return POLL_NONE;
    if (now.back) return POLL_AGAIN;
    if (f->past[(f->past_count - 1) % PAST_KEPT].value != value) return POLL_NONE;
    while (oldest > from && f->past_count - oldest < PAST_KEPT) {
        const struct world_past *older = &f->past[(oldest - 1) % PAST_KEPT];
        if (older->size != p->size) break;
        oldest--;
        if (knows_write(p->w, o->world, older)) break;
    }
    for (uint64_t i = oldest; i + 1 < f->past_count; i++) {
        *past = &f->past[i % PAST_KEPT];
        try_value(p, &then, regs + bytes, (*past)->value);
        if (alike(p, &now, &then) && decides_nothing(o, p, now.pc)) return POLL_PAST;
    }
    return POLL_NONE;
}

/* Room for the registers of two trials; NULL: nothing can be said of the poll. */
static uint8_t *trial_room(const struct poll *p, size_t *bytes)
{
    struct order *o = p->w->cta->cluster->order;
    const struct arg to = p->in->arg[0];
    uint8_t *regs;
    *bytes = (o->kernel->regs_bytes + 63U) / 64 * 64 + 64;
    if (p->in->is.class != INSN_LOAD || p->in->list_count > 1 || to.bank != BANK_REGS || to.sink ||
        p->size > sizeof(uint64_t) || to.bits != 8 * p->size)
        return NULL;
    regs = aligned_alloc(64, 2 * *bytes);
    order_keep(o, regs != NULL);
    return regs;
}

enum poll_answer order_poll(const struct poll *p, const struct world_flag *f, uint64_t from,
                            const struct world_past **past)
{
    enum poll_answer a = POLL_NONE;
    size_t bytes;
    uint8_t *regs = p->w->cta->cluster->order->world->blind ? NULL : trial_room(p, &bytes);
    if (regs) a = answer(p, f, from, past, regs, bytes);
    free(regs);
    return a;
}

static bool again_with(const struct poll *p, uint8_t *regs, uint64_t value)
{
    struct trial t = {.lost = false};
    try_value(p, &t, regs, value);
    return !t.lost && t.back;
}

bool order_poll_again(const struct poll *p)
{
    uint64_t value;
    size_t bytes;
    uint8_t *regs = trial_room(p, &bytes);
    const bool again = regs && value_of(p, &value) && again_with(p, regs, value);
    free(regs);
    return again;
}

/* ---- for reports of hangs ---- */

/* The newest value that would have ended the poll, and the write that took it away. One that the cluster knew to be over
 * is not what it waits for. */
static void find_missed(const struct poll *p, const struct world_flag *f, uint8_t *regs,
                        struct polled *out)
{
    const uint64_t kept = f->past_count < PAST_KEPT ? f->past_count : PAST_KEPT;
    const uint64_t seen = order_flag_seen(p->w, p->address);
    for (uint64_t i = 1; i < kept && f->past_count - 1 - i >= seen; i++) {
        const struct world_past *old = &f->past[(f->past_count - 1 - i) % PAST_KEPT];
        const struct world_past *after = &f->past[(f->past_count - i) % PAST_KEPT];
        struct trial t = {.lost = false};
        if (old->size != p->size) return;
        try_value(p, &t, regs, old->value);
        if (t.lost || t.back) continue;
        out->missed = old;
        out->taken_by = after;
        return;
    }
}

/* The write that left the present value; a poll by an atomic writes too, which is passed over. */
static const struct world_past *last_of(const struct world_flag *f, const struct insn *poll)
{
    const struct world_past *last = &f->past[(f->past_count - 1) % PAST_KEPT];
    for (uint64_t i = 0; i < f->past_count && i < PAST_KEPT; i++) {
        const struct world_past *past = &f->past[(f->past_count - 1 - i) % PAST_KEPT];
        if (past->value != last->value) break;
        if (past->in != poll) return past;
    }
    return last;
}

bool order_polled(const struct order_warp *w, const struct insn *in, uint32_t lanes,
                  struct polled *out)
{
    const uint32_t size = in->arg[0].bits / 8U;
    struct world *world = w->cta->cluster->order->world;
    struct poll p = {.w = w, .in = in, .lanes = lanes, .size = size};
    struct world_flag *f;
    size_t bytes;
    uint8_t *regs;
    *out = (struct polled){.world = world};
    const bool atomic = in->is.class == INSN_ATOMIC && in->space == SPACE_GLOBAL;
    if (!world || (in->is.class != INSN_LOAD && !atomic) || !lanes) return false;
    p.address = arg_lane(w->warp, in->arg[1], first_lane(lanes)) + (uint64_t)in->imm[0];
    f = world_flag_find(world, p.address);
    if (!f || !f->past || f->address != p.address || !value_of(&p, &out->value)) return false;
    world_flags_close(world);
    out->last = last_of(f, in);
    if (out->last->size != size || out->last->value != out->value) return false;
    regs = trial_room(&p, &bytes);
    if (regs && again_with(&p, regs, out->value)) find_missed(&p, f, regs, out);
    free(regs);
    return true;
}
