/*
 * Why a group can go no further. Every sleeping fragment's wait is judged by what is known about the
 * thing it waits for: an mbarrier's word, its arrivals in this phase and the one before, which
 * warps have left or stand elsewhere. A wait whose missing arrival is explained by another wait
 * weighs little; the one that nothing else explains is the cause.
 */
#include "check/deadlock.h"
#include "check/world.h"

#include <stdlib.h>

/* How sure a judgement is. Above SURE: nothing else that happens could have explained it. */
enum weight {
    EXPLAINED = 1,        /* by another wait */
    BEHIND_MBARRIERS = 2, /* who should come waits for mbarriers, which nobody here holds up */
    PERHAPS_PAST = 3,     /* another one, which never came, has come past its arrival */
    SPINS = 10,
    MISSED = 12,           /* a value that would have ended the poll has come and gone */
    COPY_TO_COME = 15,     /* bytes are expected, and who may copy them waits at something else */
    NEVER_STARTED = 20,    /* nothing ever arrived, but some waiter might have come later */
    IN_A_CIRCLE = 21,      /* and those who would have wait for each other */
    PERHAPS_TOO_FEW = 22,  /* arrivals came, fewer than counted; some waiter might come yet */
    STARTS_WRONG = 25,     /* nothing ever arrived, and the waiter is who should begin */
    COMES_NEXT = 29,       /* who should come waits at something else, on the way */
    STANDS_ELSEWHERE = 30, /* who should come waits at something else */
    CAME_PAST = 31,        /* nothing ever arrived, and who should have has gone on */
    LEFT_ONE = 34,         /* who came last has exited, and another one may come */
    LOOPS_PART = 35,       /* who should come again has left its loop */
    MISSED_A_TURN = 37,    /* who came in an older phase has been round its loop since */
    NOBODY = 38,           /* nothing ever arrived, and no waiter would */
    TOO_FEW = 40,          /* arrivals came, fewer than counted, and no other waiter would */
    SURE = 50,
    RESOURCES = SURE,
    LEFT = 55,    /* who should come has exited */
    WENT_ON = 57, /* who should come has been round its loop and did not */
    LANES_APART = 60,
    SIBLING = 65,
    UNARMED = 66,      /* bytes came, and nobody arrives */
    SAME_AS_EVER = 70, /* everyone came who came before, and that is not enough */
    SKIPPED = 75,
    BYTES = 80
};

/* ---- gathering ---- */

/* What a spinning loop at that pc looks at: the first strong read of the smallest loop around it that has
 * one; the pc itself where none has. */
static uint32_t polled_at(const struct kernel *k, uint32_t pc)
{
    uint32_t best = UINT32_MAX, found = pc;
    for (uint32_t i = pc; i < k->insn_count; i++) {
        const struct insn *in = &k->insns[i];
        if (in->is.control != CONTROL_BRANCH || in->target > pc || i - in->target >= best) continue;
        for (uint32_t n = in->target; n <= i; n++) {
            const struct insn *read = &k->insns[n];
            if (!read->is.strong || (read->is.class != INSN_LOAD && read->is.class != INSN_ATOMIC))
                continue;
            best = i - in->target;
            found = n;
            break;
        }
    }
    return found;
}

static uint32_t sleepers(const struct deadlock *d, struct waiter *out)
{
    const struct group *g = d->group;
    const struct kernel *k = g->launch->kernel;
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->resident_count; i++) {
        const struct cluster *cl = g->resident[i];
        for (uint32_t r = 0; r < cl->cta_count; r++) {
            for (uint32_t j = 0; j < cl->ctas[r]->warp_count; j++) {
                struct warp *w = &cl->ctas[r]->warps[j];
                for (uint32_t f = 0; f < w->frag_count; f++, n++) {
                    const struct frag *frag = &w->frags[f];
                    if (!out) continue;
                    out[n].warp = w;
                    out[n].frag = frag;
                    out[n].in =
                        &k->insns[frag->wait.kind == WAIT_SPIN ? polled_at(k, frag->pc) : frag->pc];
                }
            }
        }
    }
    return n;
}

/* ---- what is known about a warp ---- */

/* The wait that keeps `w` from going on (of several fragments, one that is not merely waiting for
 * its sisters), or NULL when all its lanes have exited. */
static const struct waiter *wait_of(const struct deadlock *d, const struct warp *w)
{
    const struct waiter *found = NULL;
    for (uint32_t i = 0; i < d->count; i++) {
        const struct waiter *o = &d->waiters[i];
        if (o->warp != w) continue;
        if (!found || found->frag->wait.kind == WAIT_CONVERGE) found = o;
    }
    return found;
}

/* Whether the instruction lies inside a loop. */
static bool in_loop(const struct kernel *k, const struct insn *in)
{
    uint32_t pc = (uint32_t)(in - k->insns);
    for (uint32_t i = pc; i < k->insn_count; i++) {
        if (k->insns[i].is.control == CONTROL_BRANCH && k->insns[i].target <= pc) return true;
    }
    return false;
}

static bool starts_copies(const struct insn *in)
{
    return in->is.engine == ENGINE_CP_ASYNC || in->is.engine == ENGINE_BULK ||
           in->is.signals == SIGNALS_EXPECT || in->is.signals == SIGNALS_EXPECT_ARRIVAL;
}

/* What the other side of a ring does next: takes what was copied, or is done with it. */
static bool uses_data(const struct insn *in)
{
    switch (in->is.engine) {
    case ENGINE_WGMMA:
    case ENGINE_TENSOR:
    case ENGINE_TMEM: return true;
    case ENGINE_THREAD: break;
    default: return false;
    }
    return in->is.class == INSN_LOAD || in->is.signals == SIGNALS_ARRIVAL ||
           in->is.control == CONTROL_EXIT || in->is.control == CONTROL_RETURN;
}

/* Whether the code after the wait starts copies: the filling side of a ring. */
static bool fills(const struct kernel *k, const struct insn *in)
{
    const struct insn *end = k->insns + k->insn_count;
    for (in++; in < end; in++) {
        if (starts_copies(in)) return true;
        if (uses_data(in)) return false;
    }
    return false;
}

/* ---- mbarriers ---- */

static bool arrived_now(const struct mbar *b, const struct mbar_arrival *a)
{
    for (uint32_t i = 0; i < b->kept; i++) {
        if (b->log[i].warp == a->warp && b->log[i].cta == a->cta && b->log[i].in == a->in) {
            return true;
        }
    }
    return false;
}

/* Whether a warp arrived in the phase before and has not yet in this one: at all, or by the same
 * instruction. Compilers unroll loops, so the same arrival may be another instruction. */
static bool absent(const struct mbar *b, const struct mbar_arrival *a, bool at_all)
{
    if (!a->count || arrived_now(b, a)) return false;
    for (uint32_t i = 0; at_all && i < b->kept; i++) {
        if (b->log[i].warp == a->warp && b->log[i].cta == a->cta && b->log[i].count) return false;
    }
    return true;
}

static const struct insn *expecting(const struct mbar *b)
{
    for (uint32_t i = 0; i < b->kept; i++) {
        if (b->log[i].bytes > 0) return b->log[i].in;
    }
    return NULL;
}

/* From copies of that CTA, NULL: of any. */
static bool bytes_came(const struct mbar *b, const struct cta *from)
{
    for (uint32_t i = 0; i < b->kept; i++) {
        if (b->log[i].bytes < 0 && (!from || b->log[i].cta == from)) return true;
    }
    return false;
}

static bool any_arrival(const struct mbar *b)
{
    for (uint32_t i = 0; i < b->kept; i++) {
        if (b->log[i].count) return true;
    }
    return false;
}

/* A CTA of the cluster whose barrier at the same place has arrivals that nobody waits for, while this one misses some. */
static const struct cta *went_astray(const struct deadlock *d, const struct wait *t,
                                     const struct mbar *b)
{
    const struct cluster *cl = t->cta->cluster;
    for (uint32_t r = 0; r < cl->cta_count; r++) {
        const struct cta *o = cl->ctas[r];
        const struct mbar *same = o == t->cta ? NULL : mbar_at(o, b->offset);
        bool waited = false;
        if (!same || !same->live || same->phase != b->phase || !any_arrival(same)) continue;
        for (uint32_t i = 0; i < d->count; i++) {
            const struct wait *at = &d->waiters[i].frag->wait;
            waited = waited || (at->kind == WAIT_MBAR && at->cta == o && at->key == b->offset);
        }
        if (!waited) return o;
    }
    return NULL;
}

/* Whether all that has arrived of late came by instructions that reach barriers of their own CTA alone. */
static bool stays_at_home(const struct mbar *b)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < b->kept + b->kept_before; i++) {
        const struct mbar_arrival *a = i < b->kept ? &b->log[i] : &b->before[i - b->kept];
        if (a->async || !a->in || !(a->in->flags & MBAR_OWN_CTA)) return false;
        seen++;
    }
    return seen != 0;
}

/* A CTA of the cluster whose barrier at the same place is phases ahead, where what one CTA does may signal those of others. */
static const struct cta *sibling_ahead(const struct cta *c, const struct mbar *b)
{
    for (uint32_t r = 0; r < c->cluster->cta_count; r++) {
        const struct cta *o = c->cluster->ctas[r];
        const struct mbar *same = o == c ? NULL : mbar_at(o, b->offset);
        if (!same || !same->live || same->phase <= b->phase || !same->total_arrivals) continue;
        if (!stays_at_home(b) || !stays_at_home(same)) return o;
    }
    return NULL;
}

/* A waiter that has not arrived in this phase and could yet, if its own wait ended. */
static const struct warp *others_may_come(const struct deadlock *d, const struct wait *t,
                                          const struct mbar *b)
{
    for (uint32_t i = 0; i < d->count; i++) {
        const struct waiter *o = &d->waiters[i];
        bool came = false;
        if (o->warp->cta->cluster != t->cta->cluster) continue;
        if (o->frag->wait.kind == WAIT_MBAR && o->frag->wait.cta == t->cta &&
            o->frag->wait.key == t->key) {
            continue;
        }
        for (uint32_t n = 0; n < b->kept; n++) {
            came |=
                b->log[n].cta == o->warp->cta && b->log[n].warp == o->warp->id && b->log[n].count;
        }
        if (!came && deadlock_may_signal(d, o, t->key)) return o->warp;
    }
    return NULL;
}

/* Whether a warp that has expected no bytes of this phase may yet copy some, and nobody of its CTA has. */
static bool copy_may_come(const struct deadlock *d, const struct wait *t, const struct mbar *b)
{
    for (uint32_t i = 0; i < d->count; i++) {
        const struct waiter *o = &d->waiters[i];
        const struct wait *at = &o->frag->wait;
        const struct mbar *own = o->warp->cta == t->cta ? NULL : mbar_at(o->warp->cta, t->key);
        /* Bytes for the barrier at the same place in the copying CTA have gone astray: they do not come twice. */
        bool here = (own && own->live && bytes_came(own, o->warp->cta)) ||
                    o->warp->cta->cluster != t->cta->cluster || bytes_came(b, o->warp->cta) ||
                    (at->kind == WAIT_MBAR && at->cta == t->cta && at->key == t->key);
        for (uint32_t n = 0; n < b->kept && !here; n++)
            here = b->log[n].cta == o->warp->cta && b->log[n].warp == o->warp->id;
        if (!here && deadlock_may_copy(d, o, t->key)) return true;
    }
    return false;
}

static bool waits_for(const struct waiter *o, const struct wait *t)
{
    const struct wait *own = &o->frag->wait;
    return own->kind == t->kind && own->cta == t->cta && own->key == t->key;
}

/* Whether the waiter has been round its loop since it last arrived at what `t` waits for. Who waits for the same must have
 * arrived in that loop (`arrival`, NULL where not known), and not once ahead of it. */
static bool went_round(const struct deadlock *d, const struct waiter *at, const struct wait *t,
                       const struct insn *arrival)
{
    const struct wait *own = &at->frag->wait;
    if (waits_for(at, t) && (!arrival || !deadlock_in_round(d, at, arrival))) return false;
    if (deadlock_named_alone(d, t->key) && check_left_out(d->group, t->cta, t->key, at->warp))
        return true;
    return check_went_on(d->group, t->cta, t->key, at->warp, at->in, own->key,
                         own->kind != WAIT_MBAR || deadlock_in_turn(d, at, own->key, t->key)) &&
           deadlock_signals_in_round(d, at, t->key);
}

/* Whether another role, which has arrived there before and not in this phase, may yet. */
static bool another_may(const struct deadlock *d, const struct wait *t, const struct mbar *b,
                        const struct warp *left)
{
    for (uint32_t i = 0; i < t->cta->warp_count; i++) {
        const struct warp *w = &t->cta->warps[i];
        const struct waiter *at = wait_of(d, w);
        uint32_t waits, arrivals;
        bool came = false;
        for (uint32_t n = 0; n < b->kept; n++)
            came |= b->log[n].cta == t->cta && b->log[n].warp == i;
        if (w == left || came || !at) continue;
        if (check_ledger(d->group, t->cta, t->key, i, &waits, &arrivals) && arrivals &&
            deadlock_may_signal(d, at, t->key))
            return true;
    }
    return false;
}

/* Everyone who came in earlier phases may come again: where is one that has not? */
static void judge_absent(const struct deadlock *d, struct judgement *j,
                         const struct mbar_arrival *a)
{
    const struct kernel *k = d->group->launch->kernel;
    const struct wait *t = &j->by->frag->wait;
    const struct warp *w = &a->cta->warps[a->warp];
    const struct waiter *at = wait_of(d, w);
    const bool went_on = at && went_round(d, at, t, a->in);
    const bool after = at && !in_loop(k, at->in) &&
                       (at->frag->wait.kind == WAIT_BARRIER || at->frag->wait.kind == WAIT_CLUSTER);
    const uint32_t weight = !at       ? (another_may(d, t, j->bar, w) ? LEFT_ONE : LEFT)
                            : went_on ? WENT_ON
                            : after   ? LOOPS_PART
                                      : EXPLAINED;
    if (j->missing && weight <= j->weight) return;
    j->missing = w;
    j->weight = weight;
    j->went_on = went_on;
    j->cause = weight == EXPLAINED ? CAUSE_CYCLE : CAUSE_TRIP_COUNT;
}

/* Roles may take turns at a barrier: who came in the phase before need not be who is missing now. */
static void judge_turns(const struct deadlock *d, struct judgement *j)
{
    const struct wait *t = &j->by->frag->wait;
    for (uint32_t i = 0; i < t->cta->warp_count; i++) {
        const struct warp *w = &t->cta->warps[i];
        const struct waiter *at = wait_of(d, w);
        uint32_t waits, arrivals;
        bool came = false;
        for (uint32_t n = 0; n < j->bar->kept; n++)
            came |= j->bar->log[n].cta == t->cta && j->bar->log[n].warp == i;
        if (came || !at || waits_for(at, t)) continue;
        if (!check_ledger(d->group, t->cta, t->key, i, &waits, &arrivals)) arrivals = 0;
        if (arrivals ? !went_round(d, at, t, NULL) : !deadlock_came_past(d, at, t->key)) continue;
        if (!arrivals && j->weight != EXPLAINED) continue;
        j->missing = w;
        j->weight = arrivals ? MISSED_A_TURN : PERHAPS_PAST;
        j->went_on = arrivals != 0;
        j->came_past = !arrivals;
        j->cause = CAUSE_TRIP_COUNT;
        if (arrivals) return;
    }
}

/* Whether the waiter arrived at `o`, of late, by an instruction that may mean the mbarrier `b` as well. */
static bool same_arrival_at(const struct deadlock *d, const struct waiter *at, const struct mbar *o,
                            const struct mbar *b)
{
    for (uint32_t i = 0; i < o->kept + o->kept_before; i++) {
        const struct mbar_arrival *a = i < o->kept ? &o->log[i] : &o->before[i - o->kept];
        if (a->count && a->cta == at->warp->cta && a->warp == at->warp->id &&
            deadlock_signals(d, at, a->in, b->offset))
            return true;
    }
    return false;
}

/* A slot of the array at which that warp should have arrived after this one: a ring begins with the first.
 * *any: it has arrived at some slot. */
static const struct mbar *slot_behind(const struct deadlock *d, const struct cta *c,
                                      const struct waiter *at, const struct mbar *b, bool *any)
{
    *any = false;
    for (const struct mbar *o = mbar_next(c, NULL); o; o = mbar_next(c, o)) {
        if (o == b || !deadlock_same_array(d, c, o->offset, b->offset)) continue;
        if (!same_arrival_at(d, at, o, b)) continue;
        *any = true;
        if (o->offset > b->offset || o->phase > 1) return o;
    }
    return NULL;
}

/* Nothing ever arrived: is there a warp that has come past its arrival, or gone on to another slot of the ring? */
static void judge_first(const struct deadlock *d, struct judgement *j)
{
    const struct wait *t = &j->by->frag->wait;
    for (uint32_t i = 0; i < t->cta->warp_count; i++) {
        const struct waiter *at = wait_of(d, &t->cta->warps[i]);
        bool any;
        if (!at || waits_for(at, t)) continue;
        if (!deadlock_may_signal(d, at, t->key)) continue;
        j->slot = slot_behind(d, t->cta, at, j->bar, &any);
        any &= !deadlock_named_alone(d, t->key);
        if (!j->slot && (any || !deadlock_came_past(d, at, t->key))) continue;
        j->missing = at->warp;
        j->weight = CAME_PAST;
        j->came_past = !j->slot;
        return;
    }
}

/* Nothing ever arrived, and nobody else would: does a role that the source declares to signal the barrier wait for
 * that very phase? */
static void judge_own(const struct deadlock *d, struct judgement *j)
{
    const struct wait *t = &j->by->frag->wait;
    for (uint32_t i = 0; i < t->cta->warp_count; i++) {
        const struct waiter *at = wait_of(d, &t->cta->warps[i]);
        if (!at || !waits_for(at, t) || !deadlock_declared(d, at, t->key)) continue;
        if (!deadlock_may_signal(d, at, t->key)) continue;
        j->missing = at->warp;
        j->cause = CAUSE_CYCLE;
        j->own = true;
        return;
    }
}

/* Nobody who came before is missing: too few come, or none ever did. */
static void judge_arrivals(const struct deadlock *d, struct judgement *j)
{
    const struct wait *t = &j->by->frag->wait;
    const struct mbar *b = j->bar;
    if (!any_arrival(b) && bytes_came(b, NULL)) {
        j->cause = CAUSE_ARRIVAL_COUNT;
        j->guilty = b->init_in;
        j->weight =
            !sibling_ahead(t->cta, b) && others_may_come(d, t, b) ? PERHAPS_TOO_FEW : UNARMED;
    } else if ((j->sibling = sibling_ahead(t->cta, b)) != NULL) {
        j->cause = CAUSE_CLUSTER;
        j->weight = SIBLING;
    } else if (any_arrival(b)) {
        j->cause = CAUSE_ARRIVAL_COUNT;
        j->guilty = b->init_in;
        j->sibling = went_astray(d, t, b);
        if (!b->kept_before) j->perhaps = others_may_come(d, t, b);
        j->weight = b->kept_before ? SAME_AS_EVER : j->perhaps ? PERHAPS_TOO_FEW : TOO_FEW;
    } else {
        j->cause = CAUSE_NO_PRODUCER;
        j->weight = others_may_come(d, t, b) ? NEVER_STARTED : NOBODY;
        if (j->weight == NEVER_STARTED && !b->total_arrivals) judge_first(d, j);
        if (j->weight == NOBODY && !b->total_arrivals) judge_own(d, j);
    }
}

static void judge_mbar(const struct deadlock *d, struct judgement *j)
{
    const struct wait *t = &j->by->frag->wait;
    const struct mbar *b = mbar_at(t->cta, t->key);
    if (!b || !b->live) return;
    j->bar = b;
    if (mbar_load(t->cta, t->key).pending == 0) {
        j->cause = CAUSE_TX_BYTES;
        j->sibling = sibling_ahead(t->cta, b);
        j->weight = !j->sibling && copy_may_come(d, t, b) ? COPY_TO_COME : BYTES;
        if (expecting(b)) j->guilty = expecting(b);
        return;
    }
    if (b->phase && !any_arrival(b) && !check_consumed(d->group, t->cta, t->key, b->phase - 1)) {
        j->cause = CAUSE_PHASE;
        j->weight = SKIPPED;
        return;
    }
    for (int at_all = 1; at_all >= 0 && !j->missing; at_all--) {
        for (uint32_t i = 0; i < b->kept_before; i++)
            if (absent(b, &b->before[i], at_all)) judge_absent(d, j, &b->before[i]);
    }
    if (!j->missing) judge_arrivals(d, j);
    if (j->missing && j->weight == EXPLAINED) judge_turns(d, j);
}

/* ---- other waits ---- */

uint32_t deadlock_came(const struct deadlock *d, const struct waiter *by)
{
    const struct cta *c = by->warp->cta;
    uint32_t came = 0;
    for (uint32_t i = 0; i < c->warp_count; i++) {
        bool here = c->warps[i].last_barrier == by->in;
        for (uint32_t k = 0; k < d->count; k++)
            here = here || (d->waiters[k].warp == &c->warps[i] && d->waiters[k].in == by->in);
        came += here;
    }
    return came;
}

/* The warp that a barrier misses, of those that live: one that came in the generation before, else one whose code
 * still has that barrier, else any, of which *nobody says that it is. */
static const struct warp *missing_at(const struct deadlock *d, const struct cta *c, uint32_t id,
                                     bool *nobody)
{
    const uint64_t arrived = c->barriers[id].warps_arrived,
                   before = check_came_before(d->group, c, id);
    const struct warp *found = NULL;
    uint32_t best = 0;
    for (uint32_t i = 0; i < c->warp_count; i++) {
        const struct warp *w = &c->warps[i];
        const struct waiter *at = w->live ? wait_of(d, w) : NULL;
        const uint32_t rank = before >> i & 1 ? 3 : at && deadlock_may_come(d, at, id) ? 2 : 1;
        if (!w->live || arrived >> i & 1 || rank < best) continue;
        found = w;
        best = rank;
    }
    *nobody = best == 1;
    return found;
}

/* The wait of the missing warp explains why it has not come: the barrier is on its way. */
static bool on_its_way(const struct deadlock *d, const struct judgement *j, uint32_t id)
{
    const struct waiter *at = j->missing ? wait_of(d, j->missing) : NULL;
    return at && at->frag->wait.kind == WAIT_BARRIER && deadlock_comes_next(d, at, id);
}

/* It waits for a value in memory, which is told of itself. */
static bool polls(const struct deadlock *d, const struct warp *w)
{
    const struct waiter *at = w ? wait_of(d, w) : NULL;
    return at && at->frag->wait.kind == WAIT_SPIN;
}

/* Whether the wait `of` may end by what a warp that waits at the named barrier does next, over any number of steps. */
static bool held_up_at(const struct deadlock *d, const struct waiter *by, const struct waiter *of,
                       uint64_t *seen)
{
    for (uint32_t i = 0; i < d->count && i < 64; i++) {
        const struct waiter *o = &d->waiters[i];
        const struct wait *t = &o->frag->wait;
        if (*seen >> i & 1 || o->warp->cta != by->warp->cta) continue;
        if (!deadlock_may_signal(d, o, of->frag->wait.key)) continue;
        *seen |= UINT64_C(1) << i;
        if (t->kind == WAIT_BARRIER && t->key == by->frag->wait.key) return true;
        if (t->kind != WAIT_MBAR || held_up_at(d, by, o, seen)) return true;
    }
    return false;
}

/* It waits for an mbarrier, and nobody who waits at the named barrier holds that up. */
static bool held_up_elsewhere(const struct deadlock *d, const struct waiter *by,
                              const struct waiter *o)
{
    uint64_t seen = 0;
    return o->frag->wait.kind == WAIT_MBAR && !held_up_at(d, by, o, &seen);
}

/* So does the missing warp, which has the barrier on its way, or every warp that has not come. */
static bool behind_mbarriers(const struct deadlock *d, const struct judgement *j)
{
    const struct waiter *by = j->by, *missing = j->missing ? wait_of(d, j->missing) : NULL;
    bool any = false;
    if (missing && deadlock_comes_next(d, missing, by->frag->wait.key) &&
        held_up_elsewhere(d, by, missing))
        return true;
    for (uint32_t i = 0; i < d->count; i++) {
        const struct waiter *o = &d->waiters[i];
        const struct wait *t = &o->frag->wait;
        if (o->warp->cta != by->warp->cta) continue;
        if (t->kind == WAIT_BARRIER && t->key == by->frag->wait.key) continue;
        if (t->kind == WAIT_CONVERGE || t->kind == WAIT_WARPSYNC) continue;
        if (!held_up_elsewhere(d, by, o)) return false;
        any = true;
    }
    return any;
}

static void judge_barrier(const struct deadlock *d, struct judgement *j)
{
    const struct wait *t = &j->by->frag->wait;
    const struct named_barrier *b = &t->cta->barriers[t->key];
    uint32_t coming = 0;
    for (uint32_t i = 0; i < t->cta->warp_count; i++)
        if (t->cta->warps[i].live && !(b->warps_arrived >> i & 1)) coming += WARP_LANES;
    j->cause = CAUSE_PARTICIPANTS;
    j->weight = STANDS_ELSEWHERE;
    j->missing = missing_at(d, t->cta, t->key, &j->nobody);
    if (on_its_way(d, j, t->key)) j->weight = COMES_NEXT;
    if (polls(d, j->missing)) j->weight = EXPLAINED;
    if (j->weight == STANDS_ELSEWHERE && behind_mbarriers(d, j)) j->weight = BEHIND_MBARRIERS;
    if (b->arrived + coming < b->expected) {
        j->missing = NULL;
        j->weight = LEFT;
        if (b->expected <= t->cta->warp_count * WARP_LANES &&
            deadlock_came(d, j->by) * WARP_LANES <= b->expected) {
            j->cause = CAUSE_EXITED;
        }
    }
}

/* Lanes that wait for their sisters: the cause when those wait for them in turn, at another place. */
static void judge_converge(const struct deadlock *d, struct judgement *j)
{
    const struct wait *t = &j->by->frag->wait;
    const struct warp *w = j->by->warp;
    bool apart = true;
    j->kind = FIND_COLLECTIVE_PARTIAL;
    j->cause = CAUSE_NONE;
    j->missing_lanes = t->need & w->live & ~j->by->frag->mask;
    for (uint32_t i = 0; i < d->count; i++) {
        const struct waiter *o = &d->waiters[i];
        if (o->warp != w || !(o->frag->mask & j->missing_lanes)) continue;
        apart =
            apart && (o->frag->wait.kind == WAIT_CONVERGE || o->frag->wait.kind == WAIT_WARPSYNC);
    }
    j->weight = apart ? LANES_APART : EXPLAINED;
}

/* A wgmma begins when all four warps of the warpgroup have issued it: who has not? */
static void judge_groups(const struct deadlock *d, struct judgement *j)
{
    const struct warp *w = j->by->warp;
    const struct cta *c = w->cta;
    const struct async_op *held = w->async->wgmma_held.head;
    if (j->by->frag->wait.key != COMMIT_WGMMA || !held) return;
    for (uint32_t i = w->id & ~3U; i <= (w->id | 3U) && i < c->warp_count; i++) {
        const struct warp *o = &c->warps[i];
        const struct waiter *at = wait_of(d, o);
        if (o == w || (o->async && o->async->wgmma_held.head)) continue;
        if (at && at->frag->wait.kind == WAIT_GROUPS) continue;
        j->cause = CAUSE_PARTICIPANTS;
        j->guilty = held->in;
        j->missing = o;
        j->weight = at ? STANDS_ELSEWHERE : LEFT;
        if (!at) return;
    }
}

/* Columns held by a CTA that itself waits for something else explain the wait. */
static void judge_tmem(const struct deadlock *d, struct judgement *j)
{
    const struct sm *sm = j->by->warp->cta->sm;
    j->cause = CAUSE_TMEM_ALLOC;
    j->weight = RESOURCES;
    for (uint32_t i = 0; i < d->count; i++) {
        const struct waiter *o = &d->waiters[i];
        if (o->warp->cta->sm != sm || !o->warp->cta->tmem_held) continue;
        if (o->frag->wait.kind == WAIT_TMEM_ALLOC) return;
    }
    for (uint32_t i = 0; i < d->count; i++) {
        const struct cta *c = d->waiters[i].warp->cta;
        if (c != j->by->warp->cta && c->sm == sm && c->tmem_held) j->weight = EXPLAINED;
    }
}

/* All warps that the cluster barrier misses poll, or wait for mbarriers at which the one that waits here would not
 * arrive: they are told of themselves. */
static bool at_mbarriers(const struct deadlock *d, const struct waiter *by)
{
    bool any = false;
    for (uint32_t i = 0; i < d->count; i++) {
        const struct waiter *o = &d->waiters[i];
        const uint8_t kind = o->frag->wait.kind;
        if (o->warp->cta->cluster != by->warp->cta->cluster) continue;
        if (kind == WAIT_CLUSTER || kind == WAIT_CONVERGE || kind == WAIT_WARPSYNC) continue;
        if (kind != WAIT_MBAR && kind != WAIT_SPIN) return false;
        if (kind == WAIT_MBAR && deadlock_may_signal(d, by, o->frag->wait.key)) return false;
        any = true;
    }
    return any;
}

static void judge(const struct deadlock *d, const struct waiter *by, struct judgement *j)
{
    memset(j, 0, sizeof *j);
    j->kind = FIND_DEADLOCK;
    j->cause = CAUSE_CYCLE;
    j->weight = EXPLAINED;
    j->by = by;
    j->guilty = by->in;
    switch (by->frag->wait.kind) {
    case WAIT_MBAR: judge_mbar(d, j); break;
    case WAIT_BARRIER: judge_barrier(d, j); break;
    case WAIT_CONVERGE:
    case WAIT_WARPSYNC: judge_converge(d, j); break;
    case WAIT_CLUSTER:
        j->cause = CAUSE_CLUSTER;
        j->weight = at_mbarriers(d, by) ? EXPLAINED : STANDS_ELSEWHERE;
        break;
    case WAIT_REGISTERS:
        j->cause = CAUSE_SETMAXNREG;
        j->weight = RESOURCES;
        break;
    case WAIT_GROUPS: judge_groups(d, j); break;
    case WAIT_TMEM_ALLOC: judge_tmem(d, j); break;
    case WAIT_SPIN:
        j->cause = CAUSE_NO_PRODUCER;
        j->weight = SPINS;
        j->polls = check_polled(d->group, by->warp, by->in, by->frag->mask, &j->polled);
        if (!j->polls || !j->polled.missed || !j->polled.taken_by->in) break;
        j->guilty = j->polled.taken_by->in;
        j->weight = MISSED;
        break;
    default: break;
    }
}

/* ---- choosing ---- */

/* Nothing has started: where several roles wait for barriers that nobody ever arrived at, the
 * filling side should have passed its first wait (parity 1 on a fresh barrier), and did not. */
static void first_waits(const struct deadlock *d, struct judgement *all)
{
    const struct kernel *k = d->group->launch->kernel;
    const struct judgement *first = NULL;
    bool several = false;
    for (uint32_t i = 0; i < d->count; i++) {
        if (all[i].weight != NEVER_STARTED || all[i].bar->phase) continue;
        if (!first) first = &all[i];
        several = several || all[i].bar != first->bar;
    }
    for (uint32_t i = 0; several && i < d->count; i++) {
        const struct wait *t = &all[i].by->frag->wait;
        if (all[i].weight != NEVER_STARTED || all[i].bar->phase || !fills(k, all[i].by->in) ||
            check_consumed(d->group, t->cta, t->key, FRESH_PHASE)) {
            continue;
        }
        all[i].cause = CAUSE_PHASE;
        all[i].weight = STARTS_WRONG;
    }
}

static const struct judgement *choose(const struct deadlock *d, const struct judgement *all)
{
    const struct judgement *best = &all[0];
    for (uint32_t i = 1; i < d->count; i++) {
        if (all[i].weight > best->weight) best = &all[i];
    }
    return best;
}

static void report(const struct deadlock *d, const struct judgement *j)
{
    struct group *g = d->group;
    const struct kernel *k = g->launch->kernel;
    const struct warp *w = j->by->warp;
    struct finding f = {.severity = SEV_ERROR,
                        .kind = j->kind,
                        .cause = j->cause,
                        .kernel = k->entry->name,
                        .group = g->index,
                        .seq = g->finding_seq++,
                        .warp = (int32_t)w->id,
                        .lane = (int32_t)first_lane(j->by->frag->mask)};
    finding_at(&f, k->module, j->guilty->src);
    memcpy(f.cta, w->cta->id, sizeof f.cta);
    deadlock_tell(d, j, &f);
    sim_report(g->launch, &f);
}

void deadlock_report(struct group *g)
{
    struct deadlock d = {.group = g};
    struct judgement *all;
    d.count = sleepers(&d, NULL);
    d.waiters = calloc(d.count + 1, sizeof *d.waiters);
    all = calloc(d.count + 1, sizeof *all);
    if (d.waiters && all && d.count) {
        sleepers(&d, d.waiters);
        deadlock_find_bases(&d);
        for (uint32_t i = 0; i < d.count; i++) judge(&d, &d.waiters[i], &all[i]);
        first_waits(&d, all);
        deadlock_circles(&d, all, NEVER_STARTED, IN_A_CIRCLE);
        report(&d, choose(&d, all));
    } else {
        sim_find(g, NULL, NULL, NO_LANE, SEV_ERROR, FIND_DEADLOCK, CAUSE_NONE, "",
                 "no warp can run any more; host memory is too short to say why");
    }
    free(all);
    free(d.waiters);
    free(d.bases);
}
