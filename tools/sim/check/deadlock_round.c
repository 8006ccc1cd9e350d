/*
 * Where in its loop a warp waits, and what it has come past: who leaves an arrival out for the first time has no earlier
 * arrival that would tell.
 */
#include "check/deadlock.h"

/* The instructions of a loop: from the target of the branch that goes back to the branch. */
struct loop {
    uint32_t first, last;
};

/* A loop that only polls does nothing but compute beside the wait. */
static bool does_more(const struct kernel *k, struct loop l, uint32_t wait)
{
    for (uint32_t i = l.first; i <= l.last; i++) {
        const struct insn *in = &k->insns[i];
        if (i == wait || !in->row || in->is.control != CONTROL_NEXT) continue;
        if (in->is.class != INSN_ALU && in->is.class != INSN_MOVE) return true;
    }
    return false;
}

/* The innermost one around the wait; false: none. */
static bool loop_around(const struct kernel *k, uint32_t wait, struct loop *out)
{
    bool found = false;
    for (uint32_t i = wait; i < k->insn_count; i++) {
        const struct insn *in = &k->insns[i];
        const struct loop l = {in->target, i};
        if (in->is.control != CONTROL_BRANCH || l.first > wait) continue;
        if (found && l.last - l.first >= out->last - out->first) continue;
        if (!does_more(k, l, wait)) continue;
        *out = l;
        found = true;
    }
    return found;
}

static bool signals_within(const struct deadlock *d, const struct waiter *o, struct loop l,
                           uint32_t offset)
{
    for (uint32_t i = l.first; i <= l.last; i++)
        if (deadlock_signals(d, o, &d->group->launch->kernel->insns[i], offset)) return true;
    return false;
}

bool deadlock_signals_in_round(const struct deadlock *d, const struct waiter *o, uint32_t offset)
{
    const struct kernel *k = d->group->launch->kernel;
    const struct loop all = {0, k->insn_count - 1};
    struct loop round;
    if (loop_around(k, (uint32_t)(o->in - k->insns), &round) && signals_within(d, o, round, offset))
        return true;
    return !signals_within(d, o, all, offset);
}

bool deadlock_in_round(const struct deadlock *d, const struct waiter *o, const struct insn *in)
{
    const struct kernel *k = d->group->launch->kernel;
    const uint32_t pc = (uint32_t)(in - k->insns);
    struct loop round;
    return loop_around(k, (uint32_t)(o->in - k->insns), &round) && round.first <= pc &&
           pc <= round.last;
}

bool deadlock_in_turn(const struct deadlock *d, const struct waiter *o, uint32_t key,
                      uint32_t offset)
{
    const struct kernel *k = d->group->launch->kernel;
    uint32_t waits = 0, arrivals = 0;
    struct loop round;
    if (!loop_around(k, (uint32_t)(o->in - k->insns), &round)) return true;
    for (uint32_t i = round.first; i <= round.last; i++) {
        const struct insn *in = &k->insns[i];
        if (!in->row) continue;
        waits += in->is.waits == WAITS_PHASE && deadlock_means(d, o, in, key);
        arrivals += deadlock_signals(d, o, in, offset);
    }
    return arrivals >= waits;
}

bool deadlock_came_past(const struct deadlock *d, const struct waiter *o, uint32_t offset)
{
    const struct kernel *k = d->group->launch->kernel;
    const uint32_t wait = (uint32_t)(o->in - k->insns);
    struct loop round;
    if (o->frag->wait.kind != WAIT_MBAR || !loop_around(k, wait, &round)) return false;
    if (!signals_within(d, o, round, offset)) return false;
    return check_passes(d->group, o->warp, o->in) || !deadlock_signals_next(d, o, offset);
}
