/* A deadlock in words: who waits, for what, what has come of it, who should have and where they are. */
#include "check/deadlock.h"
#include "check/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { NAME = 96, WAITS_TOLD = 12, LEDGER_LINES = 8 };

/* ---- text that ends where its room ends ---- */

struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *format, ...)
{
    va_list args;
    int n;
    va_start(args, format);
    n = vsnprintf(t->at, t->left, format, args);
    va_end(args);
    if (n < 0) return;
    if ((size_t)n >= t->left) n = t->left ? (int)t->left - 1 : 0;
    t->at += n;
    t->left -= (size_t)n;
}

static const struct kernel *kernel_of(const struct deadlock *d)
{
    return d->group->launch->kernel;
}

static uint32_t line_of(const struct insn *in)
{
    return in->src->pos.line;
}

static bool clustered(const struct deadlock *d)
{
    return d->group->resident_count && d->group->resident[0]->cta_count > 1;
}

/* "producer (warp 4)", in clusters "producer (warp 4) of CTA rank 1" */
static void say_warp(struct text *t, const struct deadlock *d, const struct cta *c, uint32_t warp)
{
    char name[NAME];
    say(t, "%s", name_warp(kernel_of(d), warp, name, sizeof name));
    if (clustered(d)) say(t, " of CTA rank %u", c->rank);
}

/* What a wait is for, as it is called in the source. */
static void say_object(struct text *t, const struct deadlock *d, const struct waiter *o)
{
    static const char *const texts[] = {
#define X(name, text) text,
        WAIT_KINDS(X)
#undef X
    };
    const struct wait *w = &o->frag->wait;
    char name[NAME];
    switch (w->kind) {
    case WAIT_MBAR:
        say(t, "%s", name_shared(kernel_of(d), w->key, name, sizeof name));
        if (w->cta != o->warp->cta) say(t, " of CTA rank %u", w->cta->rank);
        break;
    case WAIT_BARRIER: say(t, "barrier %u", w->key); break;
    default: say(t, "%s", texts[w->kind]); break;
    }
}

/* ---- the other waits, folded ---- */

static bool same_role(const struct deadlock *d, uint32_t a, uint32_t b)
{
    return a == b || role_of_warp(kernel_of(d), a) == role_of_warp(kernel_of(d), b);
}

/* One line for waits of one role at one instruction for one thing. */
static bool same_wait(const struct deadlock *d, const struct waiter *a, const struct waiter *b)
{
    return a->in == b->in && a->frag->wait.kind == b->frag->wait.kind &&
           a->frag->wait.key == b->frag->wait.key && a->warp->cta->rank == b->warp->cta->rank &&
           same_role(d, a->warp->id, b->warp->id);
}

/* How many waits are as waiter `i`; 0 when an earlier one tells them. */
static uint32_t fold(const struct deadlock *d, uint32_t i)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < d->count; k++) {
        if (!same_wait(d, &d->waiters[i], &d->waiters[k])) continue;
        if (k < i) return 0;
        n++;
    }
    return n;
}

/* "consumer (warp 4) and 3 more wait for full_bar[1] (phase 2) at line 88" */
static void say_wait(struct text *t, const struct deadlock *d, const struct waiter *o, uint32_t n)
{
    const struct wait *w = &o->frag->wait;
    const struct mbar *b = w->kind == WAIT_MBAR ? mbar_at(w->cta, w->key) : NULL;
    say_warp(t, d, o->warp->cta, o->warp->id);
    if (n > 1) say(t, " and %u more", n - 1);
    say(t, n > 1 ? " wait for " : " waits for ");
    say_object(t, d, o);
    if (b) say(t, " (phase %" PRIu64 ", parity %" PRIu64 ")", b->phase, w->value);
}

static void relate(const struct deadlock *d, struct finding *f, const struct insn *in,
                   const char *note)
{
    struct finding_related *r;
    if (f->related_count == FINDING_RELATED) return;
    r = &f->related[f->related_count++];
    r->file = ptx_file(kernel_of(d)->module, in->src->pos);
    r->line = line_of(in);
    snprintf(r->note, sizeof r->note, "%s", note);
}

static void relate_waits(const struct deadlock *d, struct finding *f)
{
    for (uint32_t i = 0; i < d->count; i++) {
        struct finding_related scratch;
        struct text t = {scratch.note, sizeof scratch.note};
        uint32_t n = fold(d, i);
        if (!n) continue;
        say_wait(&t, d, &d->waiters[i], n);
        relate(d, f, d->waiters[i].in, scratch.note);
    }
}

static void say_others(struct text *t, const struct deadlock *d, const struct judgement *j)
{
    uint32_t told = 0, left = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        uint32_t n = fold(d, i);
        if (!n || same_wait(d, &d->waiters[i], j->by)) continue;
        if (told == WAITS_TOLD) {
            left++;
            continue;
        }
        say(t, told++ ? "; " : " Meanwhile ");
        say_wait(t, d, &d->waiters[i], n);
        say(t, " (line %u)", line_of(d->waiters[i].in));
    }
    if (left) say(t, "; and %u other waits", left);
    if (told) say(t, ".");
}

/* Warps of the waiter's CTA that have exited. */
static void say_exited(struct text *t, const struct deadlock *d, const struct cta *c)
{
    uint32_t n = 0, first = 0;
    for (uint32_t i = c->warp_count; i-- > 0;) {
        if (c->warps[i].live) continue;
        first = i;
        n++;
    }
    if (!n) return;
    say(t, " ");
    say_warp(t, d, c, first);
    if (n > 1) say(t, " and %u more warp%s", n - 1, n == 2 ? "" : "s");
    say(t, n > 1 ? " have exited." : " has exited.");
}

/* Clusters that have yet to find room: a wait for one of them can never end. */
static void say_unstarted(struct text *t, const struct deadlock *d)
{
    const struct launch *l = d->group->launch;
    uint32_t total = launch_cluster_count(l), n = 0;
    for (uint32_t i = 0; i < l->group_count; i++) {
        if (!d->group->together && &l->groups[i] != d->group) continue; /* another thread runs it */
        const uint32_t next = l->groups[i].next_cluster;
        if (next < total) n += (total - next + l->group_count - 1) / l->group_count;
    }
    n *= launch_cluster_size(l);
    if (n)
        say(t,
            " %u CTA%s of the grid cannot start until others end: whoever waits for the whole grid "
            "needs all of it resident at once.",
            n, n == 1 ? "" : "s");
}

/* ---- mbarriers ---- */

static bool same_arrival(const struct deadlock *d, const struct mbar_arrival *a,
                         const struct mbar_arrival *b)
{
    return a->in == b->in && a->cta == b->cta && a->async == b->async && a->count == b->count &&
           a->bytes == b->bytes && same_role(d, a->warp, b->warp);
}

/* "consumer (warp 4) and 3 more, each with 1 arrival (line 21)"; likes fold. */
static void say_arrivals(struct text *t, const struct deadlock *d, const struct mbar_arrival *log,
                         uint32_t kept)
{
    for (uint32_t i = 0; i < kept; i++) {
        const struct mbar_arrival *a = &log[i];
        uint32_t like = 0, before = 0;
        for (uint32_t k = 0; k < kept; k++) {
            if (!same_arrival(d, a, &log[k])) continue;
            before += k < i;
            like++;
        }
        if (before) continue;
        say(t, i ? ", " : "");
        say_warp(t, d, a->cta, a->warp);
        if (a->async) say(t, "'s asynchronous operation");
        if (like > 1) say(t, " and %u more, each", like - 1);
        if (a->count) say(t, " with %u arrival%s", a->count, a->count == 1 ? "" : "s");
        if (a->bytes > 0) say(t, " expecting %" PRId64 " bytes", a->bytes);
        if (a->bytes < 0) say(t, " bringing %" PRId64 " bytes", -a->bytes);
        say(t, " (line %u)", line_of(a->in));
    }
    if (!kept) say(t, "nobody");
}

static void say_ahead(struct text *t, const struct judgement *j)
{
    if (!j->sibling) return;
    say(t,
        " The same barrier of CTA rank %u is phases ahead: the multicast mask or the remote "
        "arrivals leave CTA rank %u out.",
        j->sibling->rank, j->by->frag->wait.cta->rank);
}

static void say_mbar_reason(struct text *t, const struct judgement *j, const struct mbar_state *s)
{
    uint32_t came = s->expected - s->pending;
    uint64_t parity = j->by->frag->wait.value;
    switch (j->cause) {
    case CAUSE_TX_BYTES:
        if (s->tx > 0) {
            say(t,
                " All arrivals came, but %d of the expected bytes never will: no copy that "
                "signals this barrier is in flight.",
                s->tx);
            say_ahead(t, j);
        } else {
            say(t, " All arrivals came, but copies brought %d bytes more than were expected.",
                -s->tx);
        }
        break;
    case CAUSE_PHASE:
        if (j->bar->phase) {
            say(t,
                " Phase %" PRIu64 " is complete and nobody has waited for it: this wait asks for "
                "parity %" PRIu64 ", that is for the next phase, where parity %" PRIu64
                " was meant.",
                j->bar->phase - 1, parity, 1 - parity);
        } else {
            say(t,
                " The first wait of the side that fills asks for parity %" PRIu64
                " of a fresh barrier; parity %" PRIu64 " (the phase before the first) passes at "
                "once.",
                parity, 1 - parity);
        }
        break;
    case CAUSE_ARRIVAL_COUNT:
        if (came && j->perhaps)
            say(t, " It was initialised for %u arrivals a phase (line %u), and %u came so far.",
                s->expected, line_of(j->bar->init_in), came);
        else if (came)
            say(t, " It was initialised for %u arrivals a phase (line %u), but only %u come%s.",
                s->expected, line_of(j->bar->init_in), came, came == 1 ? "s" : "");
        else
            say(t,
                " Copies brought bytes, but nobody arrives: it was initialised for %u arrival%s a "
                "phase "
                "(line %u), as a rule a mbarrier.arrive.expect_tx in the CTA of the barrier.",
                s->expected, s->expected == 1 ? "" : "s", line_of(j->bar->init_in));
        if (j->sibling)
            say(t,
                " The same barrier of CTA rank %u has arrivals that nobody waits for: perhaps they "
                "were meant for this one.",
                j->sibling->rank);
        break;
    case CAUSE_CLUSTER: say_ahead(t, j); break;
    case CAUSE_CYCLE:
        if (!j->bar->total_arrivals && !j->own)
            say(t, " Nothing has ever arrived there: those who would arrive wait in turn, in a "
                   "circle, each to signal only after its own wait. One of them must begin: with "
                   "an arrival ahead of its loop, or with a first wait for the phase before the "
                   "first (parity 1).");
        break;
    case CAUSE_NO_PRODUCER:
        say(t, " Nothing has ever arrived there, and nothing is in flight that could.");
        break;
    default: break;
    }
}

/* "consumer (warp 1) waited for full 6 times, arrived at empty 6 times;" */
/* False: nothing is known of the warp. */
static bool say_ledger(struct text *t, const struct deadlock *d, const char *lead,
                       const struct cta *c, uint32_t warp)
{
    uint32_t told = 0, turns, arrivals;
    char name[NAME];
    for (const struct mbar *b = mbar_next(c, NULL); b; b = mbar_next(c, b)) {
        if (!check_ledger(d->group, c, b->offset, warp, &turns, &arrivals)) continue;
        if (told == LEDGER_LINES) break;
        say(t, "%s", told++ ? ", " : lead);
        if (told == 1) {
            say_warp(t, d, c, warp);
            say(t, " has ");
        }
        name_shared(kernel_of(d), b->offset, name, sizeof name);
        if (turns) say(t, "waited for %u phase%s of", turns, turns == 1 ? "" : "s");
        if (turns && arrivals) say(t, " and ");
        if (arrivals) say(t, "arrived %u time%s at", arrivals, arrivals == 1 ? "" : "s");
        say(t, " %s", name);
    }
    if (told) say(t, ".");
    return told > 0;
}

static void say_wait_of(struct text *t, const struct deadlock *d, const struct warp *w)
{
    for (uint32_t i = 0; i < d->count; i++) {
        const struct waiter *o = &d->waiters[i];
        if (o->warp != w) continue;
        say(t, ", which waits for ");
        say_object(t, d, o);
        say(t, " (line %u)", line_of(o->in));
        return;
    }
}

/* Too few arrivals came, and the code ahead of that warp has one. */
static void say_perhaps(struct text *t, const struct deadlock *d, const struct warp *w)
{
    say(t, " Perhaps missing is ");
    say_warp(t, d, w->cta, w->id);
    say_wait_of(t, d, w);
    say(t, ": it may arrive once that wait is over. If so, look there first.");
}

static void say_missing(struct text *t, const struct deadlock *d, const struct judgement *j)
{
    const struct warp *w = j->missing;
    say(t, " Missing is ");
    say_warp(t, d, w->cta, w->id);
    if (!w->live) {
        say(t,
            ", which came in the phase before and has exited since: the two loops do not make the "
            "same number of turns.");
        return;
    }
    say_wait_of(t, d, w);
    if (j->own) {
        say(t, ": the phase that it would complete itself. It must arrive before it waits; in a "
               "ring, the slot "
               "that it waits for is the one that it still holds.");
        return;
    }
    if (j->slot) {
        char name[NAME];
        name_shared(kernel_of(d), j->slot->offset, name, sizeof name);
        say(t,
            ". It has arrived at another slot of the array, %s: some way through its loop leaves "
            "out the arrival here.",
            name);
        return;
    }
    if (j->came_past) {
        say(t, ". It has come past the arrival: some way through its loop leaves it out.");
        return;
    }
    if (j->went_on) {
        say(t, ". It has been at that wait since it last arrived here, and went round without "
               "arriving: some way through its loop leaves the arrival out.");
        return;
    }
    say(t, j->cause == CAUSE_TRIP_COUNT ? ", after its loop: the two loops do not make the same "
                                          "number of turns."
                                        : ".");
}

static void tell_mbar(struct text *t, const struct deadlock *d, const struct judgement *j)
{
    const struct wait *w = &j->by->frag->wait;
    const struct mbar *b = j->bar;
    struct mbar_state s = mbar_load(w->cta, w->key);
    char name[NAME];
    name_shared(kernel_of(d), w->key, name, sizeof name);
    say_warp(t, d, j->by->warp->cta, j->by->warp->id);
    say(t,
        " waits at line %u for phase %" PRIu64 " (parity %" PRIu64 ") of %s, which never "
        "completes: %u of %u arrivals pending, %d bytes pending.",
        line_of(j->by->in), b->phase, w->value, name, s.pending, s.expected, s.tx);
    say_mbar_reason(t, j, &s);
    say(t, " Arrived in this phase: ");
    say_arrivals(t, d, b->log, b->kept);
    say(t, ".");
    if (b->phase) {
        say(t, " Arrived in the phase before: ");
        say_arrivals(t, d, b->before, b->kept_before);
        say(t, ".");
    }
    if (j->missing) say_missing(t, d, j);
    if (j->perhaps) say_perhaps(t, d, j->perhaps);
    if (j->cause == CAUSE_TRIP_COUNT && j->missing) {
        const bool told = say_ledger(t, d, " So far ", j->by->warp->cta, j->by->warp->id);
        say_ledger(t, d, told ? " " : " So far ", j->missing->cta, j->missing->id);
    }
}

/* ---- other waits ---- */

static void tell_barrier(struct text *t, const struct deadlock *d, const struct judgement *j)
{
    const struct wait *w = &j->by->frag->wait;
    const struct named_barrier *b = &w->cta->barriers[w->key];
    uint32_t told = 0;
    say_warp(t, d, j->by->warp->cta, j->by->warp->id);
    say(t, " waits at line %u for barrier %u: %u of %u threads have come (", line_of(j->by->in),
        w->key, b->arrived, b->expected);
    for (uint32_t i = 0; i < w->cta->warp_count; i++) {
        if (!(b->warps_arrived >> i & 1)) continue;
        say(t, told++ ? ", " : "");
        say_warp(t, d, w->cta, i);
    }
    say(t, ").");
    if (j->missing && j->nobody) {
        say(t, " Nobody else comes: no other warp's code ahead has a barrier instruction with this "
               "number. Perhaps one of them names another barrier than it should.");
    } else if (j->missing) {
        say_missing(t, d, j);
    } else if (j->cause == CAUSE_EXITED) {
        say(t, " Too few warps are left: the others have exited, and a barrier with a thread count "
               "does not do without them.");
    } else if (deadlock_came(d, j->by) * WARP_LANES > b->expected) {
        say(t,
            " It counts %u threads, but %u come to it by this instruction: the others met in "
            "groups of %u and went on, and nobody is left for these.",
            b->expected, deadlock_came(d, j->by) * WARP_LANES, b->expected);
    } else {
        say(t, " That is more than the CTA has left to send.");
    }
}

static void tell_converge(struct text *t, const struct deadlock *d, const struct judgement *j)
{
    const struct waiter *by = j->by;
    say_warp(t, d, by->warp->cta, by->warp->id);
    say(t,
        " stands with lanes 0x%08x at a warp-wide instruction (line %u) that lanes 0x%08x never "
        "reach",
        by->frag->mask, line_of(by->in), j->missing_lanes);
    for (uint32_t i = 0; i < d->count; i++) {
        const struct waiter *o = &d->waiters[i];
        if (o->warp != by->warp || o == by) continue;
        say(t, ": lanes 0x%08x wait for ", o->frag->mask);
        say_object(t, d, o);
        say(t, " (line %u)", line_of(o->in));
    }
    say(t, ". All live lanes of the warp must execute it together.");
}

/* A warpgroup of which only some warps gave registers back. */
static void say_half_given(struct text *t, const struct deadlock *d, const struct cta *c,
                           uint32_t quota)
{
    enum { WARPGROUP = 4 };
    for (uint32_t first = 0; first < c->warp_count; first += WARPGROUP) {
        const struct warp *gave = NULL, *kept = NULL;
        for (uint32_t i = first; i < first + WARPGROUP && i < c->warp_count; i++) {
            if (c->warps[i].reg_quota < quota) gave = &c->warps[i];
            if (c->warps[i].reg_quota == quota) kept = &c->warps[i];
        }
        if (!gave || !kept) continue;
        say(t, " Of one warpgroup ");
        say_warp(t, d, c, gave->id);
        say(t, " gave registers back and ");
        say_warp(t, d, c, kept->id);
        say(t, " did not: all warps of a warpgroup must execute the same setmaxnreg.");
        return;
    }
}

static void tell_registers(struct text *t, const struct deadlock *d, const struct judgement *j)
{
    const struct waiter *by = j->by;
    const struct cta *c = by->warp->cta;
    uint32_t quota = launch_quota(d->group->launch), held = 0;
    for (uint32_t i = 0; i < c->warp_count; i++) held += c->warps[i].reg_quota;
    say_warp(t, d, c, by->warp->id);
    say(t,
        " waits at line %u for %" PRIu64
        " registers a thread. The CTA has %u (%u warps of %u), its "
        "warps hold %u and %" PRId64 " are free; no other warp gives any back.",
        line_of(by->in), by->frag->wait.value, c->warp_count * quota, c->warp_count, quota, held,
        c->pool_free);
    say_half_given(t, d, c, quota);
}

static void tell_tmem(struct text *t, const struct deadlock *d, const struct judgement *j)
{
    const struct sm *sm = j->by->warp->cta->sm;
    const struct cta *last = NULL;
    say_warp(t, d, j->by->warp->cta, j->by->warp->id);
    say(t, " waits at line %u for %" PRIu64 " tensor-memory columns. Of the SM's %d are held:",
        line_of(j->by->in), j->by->frag->wait.value, TMEM_COLUMNS);
    for (uint32_t i = 0; i < TMEM_COLUMNS / 32; i++) {
        const struct cta *o = sm->tmem_owner[i];
        if (!o || o == last) continue;
        say(t, " %u by CTA (%u,%u,%u)", o->tmem_held, o->id[0], o->id[1], o->id[2]);
        last = o;
    }
    say(t, "; nobody frees any.");
}

static void tell_other(struct text *t, const struct deadlock *d, const struct judgement *j)
{
    say_warp(t, d, j->by->warp->cta, j->by->warp->id);
    say(t, " waits at line %u for ", line_of(j->by->in));
    say_object(t, d, j->by);
    say(t, ", which nothing that still runs can bring.");
}

static void say_writer(struct text *t, const struct world *world, const struct world_past *by)
{
    const struct actor *a = &world->actors[by->actor];
    if (!by->in) return;
    say(t, ", which warp %u of CTA (%u,%u,%u) left at line %u", a->warp, a->cta[0], a->cta[1],
        a->cta[2], line_of(by->in));
}

static void tell_spin(struct text *t, const struct deadlock *d, const struct judgement *j)
{
    const struct polled *p = &j->polled;
    tell_other(t, d, j);
    if (!j->polls) return;
    say(t, " It is 0x%" PRIx64, p->value);
    if (p->last->in != j->by->in) say_writer(t, p->world, p->last);
    if (!p->last->in) say(t, ", as it was: nobody has written there");
    if (p->missed) {
        say(t, ". It was 0x%" PRIx64, p->missed->value);
        say_writer(t, p->world, p->missed);
        say(t,
            ", with which the poll would have ended: line %u took that away, and does not wait "
            "until it has been seen",
            line_of(j->guilty));
    }
    say(t, ".");
}

static void tell_groups(struct text *t, const struct deadlock *d, const struct judgement *j)
{
    const struct cta *c = j->by->warp->cta;
    if (!j->missing) {
        tell_other(t, d, j);
        return;
    }
    say_warp(t, d, c, j->by->warp->id);
    say(t,
        " waits at line %u for a wgmma (line %u). All four warps of a warpgroup must execute it, "
        "and ",
        line_of(j->by->in), line_of(j->guilty));
    say_warp(t, d, c, j->missing->id);
    say(t, " does not.");
}

static void tell_cluster(struct text *t, const struct deadlock *d, const struct judgement *j)
{
    const struct cluster *c = j->by->warp->cta->cluster;
    say_warp(t, d, j->by->warp->cta, j->by->warp->id);
    say(t,
        " waits at line %u for the cluster barrier: %u of the cluster's %u live threads have "
        "arrived.",
        line_of(j->by->in), c->arrived_threads, c->live_threads);
}

void deadlock_tell(const struct deadlock *d, const struct judgement *j, struct finding *f)
{
    struct text t = {f->message, sizeof f->message};
    struct text object = {f->object, sizeof f->object};
    uint32_t kind = j->by->frag->wait.kind;
    if (kind == WAIT_MBAR || kind == WAIT_BARRIER) say_object(&object, d, j->by);
    if (kind == WAIT_CLUSTER) say(&object, "the cluster barrier");
    switch (kind) {
    case WAIT_MBAR:
        if (j->bar) {
            tell_mbar(&t, d, j);
            relate(d, f, j->bar->init_in, "the barrier is initialised here");
        } else {
            tell_other(&t, d, j);
        }
        break;
    case WAIT_BARRIER: tell_barrier(&t, d, j); break;
    case WAIT_CONVERGE:
    case WAIT_WARPSYNC: tell_converge(&t, d, j); break;
    case WAIT_REGISTERS: tell_registers(&t, d, j); break;
    case WAIT_TMEM_ALLOC: tell_tmem(&t, d, j); break;
    case WAIT_GROUPS: tell_groups(&t, d, j); break;
    case WAIT_CLUSTER: tell_cluster(&t, d, j); break;
    case WAIT_SPIN: tell_spin(&t, d, j); break;
    default: tell_other(&t, d, j); break;
    }
    say_others(&t, d, j);
    say_exited(&t, d, j->by->warp->cta);
    say_unstarted(&t, d);
    relate_waits(d, f);
}
