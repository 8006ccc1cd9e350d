/* Phases that depend on the order: protocol.h. */
#include "check/protocol.h"
#include "check/deadlock.h"
#include "async/mbar.h"
#include "check/order_tell.h"

#include <stdlib.h>

enum { PARTIES_FIRST = 4, PARTIES_MOST = 1024 };

/* Actions, each once. */
struct parties {
    epoch *at;
    uint32_t count, capacity;
};

struct protocol {
    struct parties older;   /* arrivals and copies of the phase two before the current one */
    struct parties before;  /* of the phase before it */
    struct parties current; /* of the current one */
    struct parties passed;  /* waits that the phase before the current one satisfied */
    struct clock after;     /* what those of the current phase come after */
    epoch ahead; /* a wait by some lanes of a warp, for the phase before the first; 0 none */
    epoch again; /* a wait by a warp that this phase had let pass before; 0 none */
    /* The last arrival: who, by what and in which turn of the barrier. */
    const struct order_warp *by;
    const struct insn *in;
    uint32_t lane;
    uint32_t waited; /* lanes of that warp that a wait for its phase has let pass since */
    uint64_t token, turn, phase;
    uint64_t turns; /* phases completed */
    struct ledger {
        uint32_t waits, arrivals; /* phases it waited for, arrivals it brought */
        uint64_t waited;          /* the last of them, plus 1 */
        uint64_t steps[2];        /* of the warp at its last arrival and the one before; 0 none */
        uint64_t turn;            /* completed phases when lanes of it last passed a wait … */
        uint32_t lanes;           /* … and which lanes that were */
    } ledger[CTA_WARPS];          /* of the owner's warps */
    bool told;                    /* once a barrier is enough: what follows would follow from it */
};

void protocol_free(struct protocol *p)
{
    if (!p) return;
    free(p->older.at);
    free(p->before.at);
    free(p->current.at);
    free(p->passed.at);
    clock_free(&p->after);
    free(p);
}

void protocol_init(struct order_bar *b)
{
    struct protocol *p = b->protocol;
    if (!p) return;
    p->older.count = p->before.count = p->current.count = p->passed.count = 0;
    clock_clear(&p->after);
    p->again = p->ahead = 0;
    p->by = NULL;
    p->told = false;
    memset(p->ledger, 0, sizeof p->ledger);
}

/* The barrier's record, made at first use. */
static struct protocol *record_of(struct order *o, struct order_bar *b)
{
    if (!b->protocol) {
        b->protocol = calloc(1, sizeof *b->protocol);
        if (!b->protocol) order_exhausted(o, NULL);
    }
    return b->protocol;
}

/* The same; NULL when there is nothing to look for any more. */
static struct protocol *protocol_of(struct order *o, struct order_bar *b)
{
    struct protocol *p = record_of(o, b);
    return p && !p->told ? p : NULL;
}

bool protocol_ledger(const struct order_bar *b, uint32_t warp, uint32_t *waits, uint32_t *arrivals)
{
    const struct protocol *p = b->protocol;
    if (!p) return false;
    *waits = p->ledger[warp].waits;
    *arrivals = p->ledger[warp].arrivals;
    return *waits || *arrivals;
}

static void note_arrival(struct order *o, struct order_warp *w, struct order_bar *b,
                         const struct event *e, uint64_t step)
{
    struct protocol *p = record_of(o, b);
    struct ledger *l = p && w->cta == b->cta ? &p->ledger[w->warp->id] : NULL;
    if (!l) return;
    l->arrivals += (uint32_t)e->value;
    if (l->steps[0] >= step)
        return; /* lanes of one instruction; an operation overtaken by a later one */
    l->steps[1] = l->steps[0];
    l->steps[0] = step;
}

#define ANY_KEY UINT32_MAX

/* How often the warp passed the wait `in` (NULL: any) for the object `key`, after the step `from` and up to `to`; false:
 * not all of that is kept. */
static bool passes_between(const struct order_warp *w, const struct insn *in, uint32_t key,
                           uint64_t from, uint64_t to, uint32_t *passes)
{
    const struct order_passes *p = w->passes;
    const uint32_t kept = !p ? 0 : p->count < PASSES_KEPT ? p->count : PASSES_KEPT;
    *passes = 0;
    for (uint32_t i = 0; i < kept; i++) {
        if ((key != ANY_KEY && p->at[i].key != key) || (in && p->at[i].in != in)) continue;
        *passes += p->at[i].step > from && p->at[i].step <= to;
    }
    return p && (p->count <= PASSES_KEPT || p->at[p->count % PASSES_KEPT].step <= from);
}

uint32_t protocol_passes(const struct order_warp *w, const struct insn *in)
{
    uint32_t passes;
    passes_between(w, in, ANY_KEY, 0, UINT64_MAX, &passes);
    return passes;
}

/* Passed the wait as often since its last arrival as between the one before and that, and at least
 * once. So it did with all its waits together: in a loop inside a loop, a ring's slot may come once or twice a turn. */
static bool came_round(const struct order_warp *w, const struct ledger *l, const struct insn *at,
                       uint32_t key)
{
    uint32_t before = 1, since;
    if (!passes_between(w, at, key, l->steps[0], UINT64_MAX, &since) || !since) return false;
    if (!l->steps[1]) return true;
    if (!passes_between(w, at, key, l->steps[1], l->steps[0], &before) || since < before)
        return false;
    return passes_between(w, NULL, ANY_KEY, l->steps[0], UINT64_MAX, &since) &&
           passes_between(w, NULL, ANY_KEY, l->steps[1], l->steps[0], &before) && since >= before;
}

bool protocol_went_on(const struct order_bar *b, const struct order_warp *w, const struct insn *at,
                      uint32_t key, bool straight)
{
    const struct ledger *l = b->protocol ? &b->protocol->ledger[w->warp->id] : NULL;
    if (!l || w->cta != b->cta || !l->steps[0]) return false;
    /* Of a ring's first turn nothing is known to compare with: it must be the same slot. In a loop that a compiler has
     * unrolled to its end, each turn has a wait of its own: there the slot alone tells. */
    return (l->steps[1] && came_round(w, l, at, ANY_KEY)) ||
           came_round(w, l, straight ? NULL : at, key);
}

bool protocol_left_out(const struct order_bar *b, const struct order_warp *w)
{
    const struct ledger *l = b->protocol ? &b->protocol->ledger[w->warp->id] : NULL;
    const struct order_passes *p = w->passes;
    const uint32_t kept = !p ? 0 : p->count < PASSES_KEPT ? p->count : PASSES_KEPT;
    uint32_t last = kept, passes, before, since;
    if (!l || w->cta != b->cta || !l->steps[0]) return false;
    for (uint32_t i = 0; i < kept; i++) {
        if (p->at[i].step > l->steps[0]) continue;
        if (last == kept || p->at[i].step > p->at[last].step) last = i;
    }
    if (last == kept) return false;
    /* A loop inside the round comes by that wait several times for one arrival. */
    if (!passes_between(w, p->at[last].in, ANY_KEY, l->steps[1], l->steps[0], &before) ||
        !passes_between(w, p->at[last].in, ANY_KEY, l->steps[0], UINT64_MAX, &since) ||
        since < before)
        return false;
    return passes_between(w, p->at[last].in, p->at[last].key, l->steps[0], UINT64_MAX, &passes) &&
           passes;
}

static bool same_action(epoch a, epoch b)
{
    return epoch_component(a) == epoch_component(b) && epoch_number(a) == epoch_number(b);
}

/* Of one warp or operation the latest action stands for the earlier ones, which it comes after. */
static void parties_add(struct order *o, struct parties *p, epoch self)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (epoch_component(p->at[i]) != epoch_component(self)) continue;
        if (epoch_number(p->at[i]) <= epoch_number(self)) p->at[i] = self;
        return;
    }
    if (p->count == p->capacity) {
        uint32_t capacity = p->capacity ? 2 * p->capacity : PARTIES_FIRST;
        epoch *grown = capacity > PARTIES_MOST ? NULL : realloc(p->at, capacity * sizeof *grown);
        if (!grown) {
            order_exhausted(o, capacity > PARTIES_MOST ? "participants of an mbarrier" : NULL);
            return;
        }
        p->at = grown;
        p->capacity = capacity;
    }
    p->at[p->count++] = self;
}

/* The first of them that who comes after `after` need not come after; 0 none. */
static epoch stray(const struct parties *p, const struct clock *after)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (!clock_knows(after, p->at[i])) return p->at[i];
    }
    return 0;
}

/* Lanes that arrive by one and the same instruction, one after the other, but in different phases, and not
 * because the later one has waited for the phase before. */
static bool spills(const struct protocol *p, const struct order_warp *w, const struct event *e)
{
    if (p->by != w || p->in != e->in || p->lane >= first_lane(e->lanes) || p->turn == p->turns)
        return false;
    if (!e->token) return (e->lanes & ~p->waited) != 0;
    return e->token - p->token < WARP_LANES;
}

static void arrived(struct order *o, struct order_warp *w, struct order_bar *b,
                    const struct event *e)
{
    struct protocol *p = b->protocol;
    if (spills(p, w, e)) {
        p->told = true;
        tell_phase(o, w, b, e->in, TELL_LANES_SPILL, 0);
    }
    p->by = w;
    p->in = e->in;
    p->lane = first_lane(e->lanes);
    p->waited = 0;
    p->token = e->token;
    p->turn = p->turns;
    p->phase = b->point.generation;
}

/* Something counts in the current phase: it must come after all of the phase before. */
static void counts(struct order *o, struct order_warp *w, struct order_bar *b,
                   const struct insn *in, enum tell_phase_kind early, const struct clock *after,
                   epoch self)
{
    struct protocol *p = protocol_of(o, b);
    epoch other;
    if (!p) return;
    other = stray(&p->before, after);
    if (other && !same_action(other, self)) {
        p->told = true;
        tell_phase(o, w, b, in, early, other);
    }
    parties_add(o, &p->current, self);
    if (!clock_join(&p->after, after)) order_exhausted(o, NULL);
}

void protocol_arrive(struct order *o, struct order_warp *w, struct order_bar *b,
                     const struct event *e, const struct clock *after, epoch self, uint64_t step)
{
    note_arrival(o, w, b, e, step);
    if (!protocol_of(o, b)) return;
    if (e->token) arrived(o, w, b, e);
    counts(o, w, b, e->in, TELL_ARRIVES_EARLY, after, self);
    if (!e->token && protocol_of(o, b)) arrived(o, w, b, e);
}

void protocol_arrive_lane(struct order *o, struct order_warp *w, struct order_bar *b,
                          const struct event *e)
{
    note_arrival(o, w, b, e, w->warp->steps);
    if (protocol_of(o, b)) arrived(o, w, b, e);
}

void protocol_copy(struct order *o, struct order_warp *w, struct order_bar *b,
                   const struct insn *in, epoch self)
{
    counts(o, w, b, in, TELL_COPIES_EARLY, &w->now.caused, self);
}

/* Whether one of the lanes has passed in this phase before. Lanes may leave a poll apart. A token names its phase, so
 * it is never one that was not turned. */
static bool passed_again(const struct protocol *p, struct ledger *l, const struct event *e)
{
    const bool again = e->in->flags & MBAR_PARITY && l->turn == p->turns && l->lanes & e->lanes;
    if (l->turn != p->turns) l->lanes = 0;
    l->turn = p->turns;
    l->lanes |= e->lanes;
    return again;
}

void protocol_pass(struct order_warp *w, struct order_bar *b, const struct event *e)
{
    struct order *o = w->cta->cluster->order;
    struct protocol *p = record_of(o, b);
    struct ledger *l;
    epoch other;
    if (!p) return;
    l = w->cta == b->cta ? &p->ledger[w->warp->id] : NULL;
    if (l && l->waited != e->value + 1 && e->value != FRESH_PHASE) {
        l->waits++;
        l->waited = e->value + 1;
    }
    if (p->by == w && e->value != FRESH_PHASE && e->value >= p->phase) p->waited |= e->lanes;
    if (p->told) return;
    other = e->in->flags & MBAR_PARITY ? stray(&p->older, &w->now.caused) : 0;
    if (other) {
        p->told = true;
        tell_phase(o, w, b, e->in, TELL_WAITS_EARLY, other);
    }
    if (l && passed_again(p, l, e)) p->again = order_here(w, e->in);
    if (e->value == FRESH_PHASE && e->lanes != w->warp->live) p->ahead = order_here(w, e->in);
    parties_add(o, &p->passed, order_here(w, e->in));
}

/* Older phases are over, because everything of a later one comes after them. */
void protocol_end(struct order *o, struct order_warp *w, const struct order_bar *b,
                  const struct insn *in)
{
    struct protocol *p = b->protocol;
    epoch other;
    if (!p || p->told) return;
    other = stray(&p->passed, &w->now.caused);
    if (!other) other = stray(&p->current, &w->now.caused);
    if (!other) other = stray(&p->before, &w->now.caused);
    if (!other) return;
    p->told = true;
    tell_phase(o, w, b, in, TELL_ENDS_EARLY, other);
}

/* Lanes have run ahead of a sister that sets the phase going: they pass by the barrier's first state, where
 * they would wait if the warp had stayed together, as hardware has it. */
static bool ran_ahead(const struct protocol *p, const struct order_cluster *c, epoch late)
{
    const struct order_warp *w = c->components[epoch_component(late)].warp;
    for (uint32_t i = 0; late == p->ahead && i < p->current.count; i++) {
        if (c->components[epoch_component(p->current.at[i])].warp == w) return true;
    }
    return false;
}

void protocol_phase(struct order *o, struct order_bar *b)
{
    struct protocol *p = protocol_of(o, b);
    const struct order_cluster *c = b->cta->cluster;
    struct parties spare;
    epoch late;
    if (!p) return;
    if (!clock_join(&b->point.current.caused, &p->after)) order_exhausted(o, NULL);
    late = stray(&p->passed, &b->point.current.caused);
    if (late && ran_ahead(p, c, late)) {
        order_sampled(o, SAMPLED_LANES, tell_insn(o, late));
    } else if (late) {
        p->told = true;
        tell_phase(o, c->components[epoch_component(late)].warp, b, tell_insn(o, late),
                   TELL_WAITS_LATE, p->current.count ? p->current.at[p->current.count - 1] : 0);
        return;
    }
    spare = p->older;
    p->older = p->before;
    p->before = p->current;
    p->current = spare;
    p->current.count = p->passed.count = 0;
    p->again = 0;
    p->turns++;
    clock_clear(&p->after);
}

/* A warp that sleeps for a phase of `b` although it does not know the phase before to be over: had it
 * looked earlier, its parity would have meant that one's predecessor, and passed. */
static void check_sleeper(struct order *o, struct order_warp *w, const struct frag *f)
{
    struct order_bar *b = order_bar_at(f->wait.cta, f->wait.key);
    struct protocol *p = b ? protocol_of(o, b) : NULL;
    const struct event use = {.in = &o->kernel->insns[f->pc], .lanes = f->mask};
    epoch other = p ? stray(&p->before, &w->now.caused) : 0;
    if (b) order_check_init(w, b, &use);
    if (!other || epoch_component(other) == w->chain[COMPONENT_WARP]) return;
    p->told = true;
    tell_phase(o, w, b, &o->kernel->insns[f->pc], TELL_SLEEPS_LATE, other);
}

/* To wait twice for a phase is legal; where nothing goes on any more, it tells of a parity that was
 * not turned. */
static void check_passed_twice(struct order *o, const struct order_cta *c)
{
    for (uint32_t i = 0; i < c->bar_slots; i++) {
        struct order_bar *b = c->bars[i];
        struct protocol *p = b && b->live ? b->protocol : NULL;
        if (!p || p->told || !p->again) continue;
        p->told = true;
        tell_phase(o, c->cluster->components[epoch_component(p->again)].warp, b,
                   tell_insn(o, p->again), TELL_PASSES_TWICE, 0);
    }
}

void protocol_stuck(struct order *o)
{
    const struct group *g = o->group;
    for (const struct order_cluster *c = o->clusters; c; c = c->next) {
        for (uint32_t r = 0; r < CLUSTER_CTAS; r++)
            if (c->ctas[r]) check_passed_twice(o, c->ctas[r]);
    }
    for (uint32_t i = 0; i < g->resident_count; i++) {
        const struct cluster *c = g->resident[i];
        for (uint32_t r = 0; r < c->cta_count; r++) {
            for (uint32_t n = 0; n < c->ctas[r]->warp_count; n++) {
                const struct warp *w = &c->ctas[r]->warps[n];
                struct order_warp *known = order_warp_of(w);
                for (uint32_t j = 0; known && j < w->frag_count; j++) {
                    if (w->frags[j].wait.kind == WAIT_MBAR) check_sleeper(o, known, &w->frags[j]);
                }
            }
        }
    }
}
