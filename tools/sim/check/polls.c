/* Polls that are asked again: polls.h. */
#include "check/polls.h"
#include "async/mbar.h"
#include "machine/exec.h"

#include <stdlib.h>

enum { STEPS_MOST = 256 /* instructions round a loop of polls */ };

/* Where the copy of a warp has come to. */
enum arrival { ARRIVAL_BACK, ARRIVAL_SAME_QUESTION, ARRIVAL_ELSEWHERE };

/* What each lane asks for: barrier, and phase or parity. */
struct asked {
    uint64_t arg[WARP_LANES][2];
};

static void ask(struct asked *q, const struct warp *w, const struct insn *poll)
{
    for (uint32_t lanes = w->live; lanes; lanes &= lanes - 1) {
        const uint32_t lane = first_lane(lanes);
        for (uint32_t i = 0; i < 2; i++) q->arg[lane][i] = arg_lane(w, poll->arg[i + 1], lane);
    }
}

/* Whether `in` asks, with the warp's registers as they are now, what `poll` has asked. */
static bool same_question(const struct warp *w, const struct asked *q, const struct insn *poll,
                          const struct insn *in)
{
    const uint32_t kind = MBAR_PARITY | MBAR_OWN_CTA;
    if (in->is.waits != WAITS_PHASE || (poll->flags & kind) != (in->flags & kind)) return false;
    for (uint32_t lanes = w->live; lanes; lanes &= lanes - 1) {
        const uint32_t lane = first_lane(lanes);
        for (uint32_t i = 0; i < 2; i++)
            if (q->arg[lane][i] != arg_lane(w, in->arg[i + 1], lane)) return false;
    }
    return true;
}

/* Executes on the copy what only computes, from behind the poll on, whose answer was False. */
static enum arrival go_round(struct warp *w, const struct asked *q, const struct insn *poll)
{
    const struct kernel *k = w->cta->group->launch->kernel;
    const uint32_t lanes = w->live, home = (uint32_t)(poll - k->insns);
    arg_set_pred(w, poll->arg[0], lanes, 0);
    w->frags[0].pc = home + 1;
    for (uint32_t n = 0; n < STEPS_MOST; n++) {
        const uint32_t pc = w->frags[0].pc;
        const struct insn *in = pc < k->insn_count ? &k->insns[pc] : NULL;
        uint32_t mask = lanes, bits;
        enum step s = STEP_NEXT;
        if (!in || w->frag_count != 1) return ARRIVAL_ELSEWHERE;
        if (in->guard != NO_GUARD) {
            memcpy(&bits, w->bank[BANK_REGS] + in->guard, sizeof bits);
            mask &= in->guard_negated ? ~bits : bits;
        }
        if (!mask) {
            w->frags[0].pc++;
            continue;
        }
        if (mask == lanes && same_question(w, q, poll, in))
            return in == poll ? ARRIVAL_BACK : ARRIVAL_SAME_QUESTION;
        if (in == poll) return ARRIVAL_ELSEWHERE;
        switch ((enum insn_class)in->is.class) {
        case INSN_ALU:
        case INSN_MOVE: s = in->fn(w, in, mask); break;
        case INSN_CONTROL:
            if (in->is.control == CONTROL_BRANCH)
                s = in->fn(w, in, mask);
            else if (in->is.control != CONTROL_NEXT)
                return ARRIVAL_ELSEWHERE;
            break;
        default: return ARRIVAL_ELSEWHERE;
        }
        if (s == STEP_NEXT)
            w->frags[0].pc++;
        else if (s != STEP_JUMP)
            return ARRIVAL_ELSEWHERE;
    }
    return ARRIVAL_ELSEWHERE;
}

/* Twice: what the first answer leaves in its predicate may differ from what was there before. */
static bool comes_back(struct order *o, const struct event *e)
{
    const size_t bytes = o->kernel->regs_bytes;
    struct warp copy = *e->warp;
    const struct frag *now = warp_frag(e->warp);
    uint8_t *regs = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    enum arrival at;
    struct asked q;
    uint64_t state = 0;
    order_keep(o, regs != NULL);
    if (!regs) return true;
    memcpy(regs, e->warp->bank[BANK_REGS], bytes);
    copy.bank[BANK_REGS] = regs;
    copy.frags[0] = *now;
    copy.frags[0].wait.kind = WAIT_NONE;
    copy.frags[0].watch_left = 0;
    copy.frag_count = 1;
    copy.current = 0;
    copy.live = now->mask;
    ask(&q, &copy, e->in);
    at = go_round(&copy, &q, e->in);
    if (at == ARRIVAL_BACK) {
        state = frag_state(&copy, &copy.frags[0]);
        at = go_round(&copy, &q, e->in);
    }
    if (at == ARRIVAL_BACK && state != frag_state(&copy, &copy.frags[0])) at = ARRIVAL_ELSEWHERE;
    free(regs);
    return at != ARRIVAL_ELSEWHERE;
}

void polls_look(struct order *o, const struct event *e)
{
    const uint32_t at = order_insn_index(o, e->in);
    if (!o->polls_seen) {
        o->polls_seen = calloc(o->kernel->insn_count + 1U, 1);
        order_keep(o, o->polls_seen != NULL);
    }
    if (!o->polls_seen || at >= o->kernel->insn_count || o->polls_seen[at]) return;
    o->polls_seen[at] = 1;
    if (!comes_back(o, e)) order_sampled(o, SAMPLED_POLLS, e->in);
}
