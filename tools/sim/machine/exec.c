/*
 * The executor: runs the fragments of one warp.
 *
 * Lanes that share a pc are a fragment. The runnable fragment with the lowest pc runs until it meets
 * the pc of another one (they merge) or passes it (the other's turn), which re-joins the arms of
 * structured code at its join point. A fragment that sleeps lets the others go on. One that has
 * looped for long stands back behind the others, so that no lane can keep a sister from running.
 *
 * Warp-wide instructions (OPF_ALIGNED) run once every live lane stands at them; until then the early
 * ones sleep (WAIT_CONVERGE) and merge with the late ones.
 *
 * Spinning: a loop that polls memory never calls a handler that could sleep. After SPIN_BRANCHES
 * backward branches the fragment is watched: when it comes back to the same branch with the same
 * registers and no memory changed meanwhile (group->changes), it would go round for ever, and sleeps
 * until something changes. A loop that counts never repeats its state and runs to its bound. One that
 * reads a clock would not either, so its clocks stand still while it is watched; then time may end the
 * loop, and it looks again every LOOK_CYCLES, and when nothing else can run any more (sched.c).
 *
 * Going round: after ROUNDS backward branches it is noted where the same registers come back though memory has
 * changed. When all that could run do so, they only undo one another's steps: the launch ends as one that hangs.
 */
#include "machine/exec.h"
#include "machine/hooks.h"
#include "machine/steer.h"

enum {
    SPIN_BRANCHES = 1024, /* a fragment is looked at after every so many backward branches … */
    SPIN_SHARE = 256, /* … for this fraction of the branches so far, to find long cycles too … */
    SPIN_REST = 16, /* … and then not for this fraction: a look hashes registers at every branch */
    LOOK_CYCLES = 1 << 14,
    ROUNDS = 1 << 16,
    ROUND_SHARE = 8,       /* a state came back within the last such fraction of the branches */
    OUTSIDE_BACK = 1 << 17 /* branches that others have time for to let a launch out of its loops */
};

/* ---- waking and hashing ---- */

void frag_wake(struct warp *w, struct frag *f)
{
    if (f->wait.kind == WAIT_SPIN && !f->wait.ready) spin_count(w->cta->group, -1);
    f->wait.ready = true;
    f->wait.stuck = false;
    warp_ready(w);
}

static uint64_t hash_mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15ULL;
    return h ^ h >> 29;
}

uint64_t frag_state(const struct warp *w, const struct frag *f)
{
    const struct kernel *k = w->cta->group->launch->kernel;
    const uint8_t *p = w->bank[BANK_REGS];
    uint64_t a = hash_mix(f->pc, f->mask), b = 1, c = 2, d = 3, v[4];
    size_t n = k->regs_bytes, i = 0;
    /* Four chains, so that the multiplications overlap. */
    for (; i + sizeof v <= n; i += sizeof v) {
        memcpy(v, p + i, sizeof v);
        a = hash_mix(a, v[0]);
        b = hash_mix(b, v[1]);
        c = hash_mix(c, v[2]);
        d = hash_mix(d, v[3]);
    }
    if (i < n) {
        memset(v, 0, sizeof v);
        memcpy(v, p + i, n - i);
        a = hash_mix(hash_mix(hash_mix(a, v[0]), v[1]), hash_mix(v[2], v[3]));
    }
    a = hash_mix(hash_mix(hash_mix(a, b), c), d);
    return a ? a : 1;
}

/* After an instruction has gone through: the wait is over, the history of its polls stays. */
static void wait_clear(struct frag *f)
{
    /* A loop that only sleeps or re-joins its warp between its polls is still the same loop. */
    if (!wait_is_pause(f->wait.kind)) f->back = f->look = 0;
    f->wait.kind = WAIT_NONE;
    f->wait.ready = f->wait.arrived = f->wait.expired = f->wait.stuck = false;
}

/* After a sleep in a spinning loop: one look round the loop decides whether to sleep again. */
static void spin_resume(struct frag *f)
{
    f->wait.kind = WAIT_NONE;
    f->wait.ready = false;
    f->back |= SPIN_BRANCHES - 1;
    f->look = 0;
}

/* ---- reshaping ---- */

static void frag_remove(struct warp *w, uint32_t index)
{
    uint32_t last = --w->frag_count;
    if (index != last) w->frags[index] = w->frags[last];
    if (w->current == last) w->current = index;
}

static void merge_into(struct warp *w, struct frag *f, uint32_t other)
{
    frag_unwatch(w, f);
    frag_unwatch(w, &w->frags[other]);
    f->mask |= w->frags[other].mask;
    f->deferred = f->deferred && w->frags[other].deferred;
    frag_remove(w, other);
}

/* Whether `f` may take in or be taken in at its pc: it has not yet begun its instruction. */
static bool frag_fresh(const struct frag *f)
{
    return f->wait.kind == WAIT_NONE || f->wait.kind == WAIT_CONVERGE;
}

void frag_split(struct warp *w, uint32_t lanes, uint32_t pc)
{
    struct frag *f = warp_frag(w), *n = &w->frags[w->frag_count++];
    frag_unwatch(w, f);
    f->mask &= ~lanes;
    memset(n, 0, sizeof *n);
    n->pc = pc;
    n->mask = lanes;
    n->back = f->back;
}

/*
 * Makes the fragment that should run next the current one, merged with those that stand at its pc.
 * *stop: the pc at which another fragment waits for it to come by. False: all are asleep.
 */
static bool pick(struct warp *w, uint32_t *stop)
{
    uint32_t best = NO_SLOT, deferred = NO_SLOT;
    for (uint32_t i = 0; i < w->frag_count; i++) {
        const struct frag *f = &w->frags[i];
        uint32_t *slot = f->deferred ? &deferred : &best;
        if (frag_runnable(f) && (*slot == NO_SLOT || f->pc < w->frags[*slot].pc)) *slot = i;
    }
    if (best == NO_SLOT) {
        best = deferred;
        if (best == NO_SLOT) return false;
        for (uint32_t i = 0; i < w->frag_count; i++) w->frags[i].deferred = false;
    }
    w->current = best;
    *stop = UINT32_MAX;
    if (w->frags[best].wait.kind == WAIT_SPIN) spin_resume(&w->frags[best]);
    if (w->frag_count == 1) return true;

    for (uint32_t i = 0; i < w->frag_count; i++) {
        struct frag *f = warp_frag(w);
        const struct frag *o = &w->frags[i];
        if (o == f || o->pc < f->pc || !frag_fresh(o)) continue;
        if (o->pc > f->pc) {
            if (o->pc < *stop) *stop = o->pc;
        } else if (frag_fresh(f)) {
            merge_into(w, f, i);
            i--;
        } else {
            *stop = f->pc + 1; /* it finishes a wait the others have yet to begin */
        }
    }
    return true;
}

/* ---- spinning ---- */

void frag_unwatch(struct warp *w, struct frag *f)
{
    if (!f->watch_left) return;
    f->watch_left = 0;
    spin_count(w->cta->group, -1);
}

uint64_t frag_clock(struct warp *w)
{
    struct frag *f = warp_frag(w);
    if (!f->watch_left) return group_clock(w->cta->group);
    if (!f->watch_clock) {
        f->watch_clock = group_clock(w->cta->group);
        f->watch_hash = 0;
    }
    return f->watch_clock;
}

/* It went round its loop and nothing has changed. */
static void spin_sleep(struct warp *w, struct frag *f)
{
    struct group *g = w->cta->group;
    f->watch_left = 0; /* its count in `spinning` carries over to the sleep */
    f->wait.kind = WAIT_SPIN;
    f->wait.ready = false;
    f->wait.cta = w->cta;
    f->wait.since = g->now;
    f->wait.timed = f->watch_clock != 0;
    f->wait.value = g->now + LOOK_CYCLES;
    if (f->wait.timed && f->wait.value < g->next_look) g->next_look = f->wait.value;
}

static void watch_state(struct warp *w, struct frag *f, uint32_t from)
{
    f->watch_pc = from;
    f->watch_hash = frag_state(w, f);
    f->watch_changes = changes_seen(w->cta->group);
}

/* Whether nobody will let the fragment out: it goes round, polls, or waits for one that does. */
static bool stays_in(const struct frag *f)
{
    if (f->wait.kind == WAIT_NONE) return f->round && f->back - f->round <= f->back / ROUND_SHARE;
    return f->wait.kind == WAIT_SPIN ? !f->wait.timed : f->wait.kind != WAIT_SLEEP;
}

static bool warp_stays_in(const struct warp *w)
{
    for (uint32_t i = 0; i < w->frag_count; i++)
        if (!stays_in(&w->frags[i])) return false;
    return true;
}

static bool group_stays_in(const struct group *g)
{
    if (g->launch->hooks->next(g) != UINT64_MAX) return false;
    for (uint32_t i = 0; i < g->resident_count; i++) {
        const struct cluster *c = g->resident[i];
        for (uint32_t k = 0; k < c->cta_count; k++)
            for (uint32_t n = 0; n < c->ctas[k]->warp_count; n++)
                if (!warp_stays_in(&c->ctas[k]->warps[n])) return false;
    }
    return true;
}

/* All that could run go round. What is outside of the launch may still let them out, for a while. */
static bool all_stay_in(const struct group *g, uint32_t back)
{
    const struct launch *l = g->launch;
    if ((l->outside && back < OUTSIDE_BACK) || l->stays_hung || l->steerer) return false;
    if (!l->kernel->global_sync) return group_stays_in(g);
    for (uint32_t i = 0; i < l->group_count; i++)
        if (!group_stays_in(&l->groups[i])) return false;
    return true;
}

/* It came to the same registers again, though memory has changed. */
static bool came_round(struct warp *w, struct frag *f, uint32_t from)
{
    f->round = f->back;
    if (!all_stay_in(w->cta->group, f->back)) return false;
    (void)sim_fault(w, &w->cta->group->launch->kernel->insns[from], NO_LANE, 702, FIND_DEADLOCK,
                    CAUSE_CYCLE, "",
                    "the warp has gone round for %u backward branches and comes to the same "
                    "registers again and again. Memory changes, but all warps that can run go "
                    "round like this one, and each undoes what another waits for; the others "
                    "wait for them. Cheapest remedy: let one side win, by a ticket or an order of "
                    "the locks, rather than withdraw and try again.",
                    f->back);
    return true;
}

/* A backward branch of the current fragment, which already stands at its target. True: the launch ends here. */
static bool looped(struct warp *w, struct frag *f, uint32_t from)
{
    struct group *g = w->cta->group;
    if (f->watch_left && !f->watch_hash) {
        watch_state(w, f, from); /* the clock has only now come to a stand */
    } else if (f->watch_left) {
        const bool still = f->watch_changes == changes_seen(g);
        const bool same = f->watch_pc == from && (still || f->back >= ROUNDS) &&
                          f->watch_hash == frag_state(w, f);
        if (same && still)
            spin_sleep(w, f);
        else if (same && came_round(w, f, from))
            return true;
        else if (--f->watch_left == 0)
            spin_count(g, -1);
    } else if (++f->back % SPIN_BRANCHES == 0 && f->back >= f->look) {
        f->look = f->back + f->back / SPIN_REST;
        f->deferred = w->frag_count > 1;
        f->watch_left = f->back / SPIN_SHARE;
        f->watch_clock = 0;
        watch_state(w, f, from);
        spin_count(g, 1);
    }
    return false;
}

enum step frag_branch(struct warp *w, uint32_t taken, uint32_t target)
{
    struct frag *f = warp_frag(w);
    uint32_t from = f->pc;
    if (taken != f->mask) {
        f->pc = from + 1;
        if (target == f->pc) return STEP_JUMP;
        frag_split(w, taken, target);
        if (target > from) return STEP_JUMP;
        w->current = w->frag_count - 1;
        f = warp_frag(w);
    }
    f->pc = target;
    return target <= from && looped(w, f, from) ? STEP_FAULT : STEP_JUMP;
}

enum step frag_exit(struct warp *w, uint32_t lanes)
{
    struct group *g = w->cta->group;
    struct frag *f = warp_frag(w);
    frag_unwatch(w, f);
    w->live &= ~lanes;
    f->mask &= ~lanes;
    if (f->mask)
        f->pc++;
    else
        frag_remove(w, w->current);
    for (uint32_t i = 0; i < w->frag_count; i++) {
        struct frag *o = &w->frags[i];
        if (o->wait.kind == WAIT_CONVERGE || o->wait.kind == WAIT_WARPSYNC) frag_wake(w, o);
    }
    g->progress++;
    if (!w->live) w->cta->warps_live--;
    if (g->observer) {
        struct event e = {.kind = EV_WARP_EXIT, .lanes = lanes, .warp = w, .cta = w->cta};
        observe(g, &e);
    }
    barriers_exit(w, lanes);
    return STEP_JUMP;
}

int frag_converge(struct warp *w, uint32_t need)
{
    struct frag *f = warp_frag(w);
    need &= w->live;
    if ((need & ~f->mask) == 0) return 1;
    sim_block(w, WAIT_CONVERGE, w->cta, 0, 0);
    f->wait.need = need;
    return 0;
}

/* ---- running ---- */

/* An OPF_ALIGNED instruction that needs lanes which are no more. */
static enum step aligned_short(struct warp *w, const struct insn *in)
{
    return sim_fault(w, in, NO_LANE, 715, FIND_COLLECTIVE_PARTIAL, CAUSE_NONE, "",
                     "%d of the 32 lanes of this warp %s (lanes 0x%08x are left); all of them must "
                     "execute this warp-wide instruction, each has its part of what it works on. "
                     "Cheapest remedy: keep whole warps, and leave out what the lanes do besides.",
                     __builtin_popcount(~w->live),
                     w->born == FULL_MASK ? "have exited" : "have exited or never were", w->live);
}

/* An OPF_ALIGNED instruction that not all 32 lanes are about to execute; STEP_NEXT: it may go on. */
static enum step aligned_partial(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct frag *f = warp_frag(w);
    if (mask == w->live) return in->row->flags & OPF_EXITS ? STEP_NEXT : aligned_short(w, in);
    if (mask == f->mask) {
        frag_converge(w, w->live);
        return STEP_BLOCK;
    }
    return sim_fault(w, in, first_lane(f->mask & ~mask), 715, FIND_COLLECTIVE_PARTIAL, CAUSE_NONE,
                     "",
                     "the guard of this warp-wide instruction is false for %d of the %d lanes that "
                     "reach it (lanes 0x%08x execute it); all lanes of the warp must execute it "
                     "together",
                     __builtin_popcount(f->mask & ~mask), __builtin_popcount(f->mask), mask);
}

static uint32_t guard_mask(const struct warp *w, const struct insn *in)
{
    uint32_t bits;
    memcpy(&bits, w->bank[BANK_REGS] + in->guard, sizeof bits);
    return in->guard_negated ? ~bits : bits;
}

/* Tells the checker that the instruction touches registers that a wgmma may be using, or that it may touch
 * some that hold undefined values. */
static void publish_registers(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct event e = {.kind = EV_REGISTERS, .lanes = mask, .warp = w, .in = in, .cta = w->cta};
    if (in->watched && mask) observe(w->cta->group, &e);
    e.kind = EV_VALUES;
    if (w->undefined) observe(w->cta->group, &e);
}

/* The instruction of the current fragment, for the lanes whose guard holds. */
static inline enum step run_insn(struct warp *w, const struct insn *in, uint32_t mask)
{
    if (!mask) { /* the guard may be false for no good reason */
        publish_registers(w, in, mask);
        return STEP_NEXT;
    }
    if (mask != FULL_MASK && (in->row->flags & OPF_ALIGNED)) {
        enum step s = aligned_partial(w, in, mask);
        if (s != STEP_NEXT) return s;
    }
    if (w->loading && w->cta->group->launch->hooks->awaits_load(w, in))
        return sim_block(w, WAIT_TENSOR, w->cta, 0, 0);
    if (in->watched | w->undefined) publish_registers(w, in, mask);
    return in->fn(w, in, mask);
}

enum { ASIDE_CHANGE = 4, ASIDE_LOAD = 64, ASIDE_ROUNDS = 4 };

/* Whether the group stands aside behind an access by which clusters talk: what another one does just there is what
 * grid barriers, locks and tickets go wrong by. */
static bool stands_aside(struct group *g, const struct insn *in)
{
    const bool load = in->is.class == INSN_LOAD;
    if (!load && in->is.class != INSN_STORE && in->is.class != INSN_ATOMIC &&
        in->is.class != INSN_RED)
        return false;
    if (in->space == SPACE_SHARED || sim_random(g, load ? ASIDE_LOAD : ASIDE_CHANGE)) return false;
    g->aside = 1 + sim_random(g, ASIDE_ROUNDS);
    return true;
}

static void add_work(struct pipe_work *sum, const struct pipe_work *of, uint32_t times)
{
    for (int p = 0; p < PIPES; p++) sum->of[p] += times * of->of[p];
}

/* Runs the current fragment until `stop`, `budget` instructions, or something that asks for a new
 * choice. */
static enum step run_frag(struct warp *w, uint64_t budget, uint32_t stop)
{
    const struct kernel *k = w->cta->group->launch->kernel;
    const struct insn *insns = k->insns;
    uint8_t *executed = w->cta->group->launch->executed;
    struct frag *f = warp_frag(w);
    const uint32_t whole = f->mask;
    uint64_t n = 0;
    enum step s = STEP_NEXT;
    do {
        const struct insn *in = &insns[f->pc];
        uint32_t mask = f->mask;
        if (f->pc >= k->insn_count) { /* the end of the body is an exit */
            s = frag_exit(w, mask);
            break;
        }
        n++;
        w->steps++;
        add_work(&w->work, &in->work, 1);
        if (in->guard != NO_GUARD) mask &= guard_mask(w, in);
        if (executed && mask) __atomic_store_n(&executed[f->pc], 1, __ATOMIC_RELAXED);
        s = (mask | w->undefined) ? run_insn(w, in, mask) : STEP_NEXT;
        if (s == STEP_NEXT) {
            if (f->wait.kind != WAIT_NONE) wait_clear(f);
            f->pc++;
            if (in->is.strong && w->cta->group->together && stands_aside(w->cta->group, in))
                budget = n;
        } else if (s != STEP_JUMP || w->frag_count != 1 || w->frags[0].mask != whole ||
                   w->frags[0].wait.kind != WAIT_NONE) {
            if (s == STEP_BLOCK) add_work(&w->work, &in->work, UINT32_MAX);
            break;
        }
    } while (n < budget && f->pc < stop);
    w->blocked_steps += s == STEP_BLOCK;
    w->lane_steps += n * (uint32_t)__builtin_popcount(whole);
    return s;
}

bool steer_ahead(struct warp *w, const struct insn **in)
{
    const struct kernel *k = w->cta->group->launch->kernel;
    uint32_t stop;
    if (!w->live || !pick(w, &stop)) return false;
    *in = warp_frag(w)->pc < k->insn_count ? &k->insns[warp_frag(w)->pc] : NULL;
    return true;
}

enum step warp_run(struct warp *w, uint32_t budget)
{
    uint64_t end = w->steps + budget;
    while (w->steps < end) {
        uint32_t stop;
        if (!pick(w, &stop)) return STEP_BLOCK;
        if (run_frag(w, end - w->steps, stop) == STEP_FAULT) return STEP_FAULT;
        if (w->cta->group->aside) return STEP_NEXT;
    }
    return STEP_NEXT;
}
