#include "phases.h"
#include "mbar.h"
#include "names.h"
#include "order.h"
#include "report.h"

#include <stdlib.h>

enum { NAME = 96 };

/* What one warp did at a barrier, first of all its last wait that passed. */
struct pass {
    const struct insn *in;
    uint64_t phase;           /* plus 1; 0: none */
    uint32_t number;          /* the warp's own, when it passed */
    uint32_t turns, arrivals; /* phases it waited for, arrivals it brought, for the ledger */
};

struct bar_phases {
    const struct cta *cta; /* NULL: unused */
    uint32_t offset;
    struct pass pass[CTA_WARPS];
    /* The last arrival: */
    const struct warp *by;
    const struct insn *in;
    uint32_t lane, version;
    uint64_t phase, token;
    bool told_overrun, told_phase, told_bytes;
};

/* A wait that passed for the phase that its warp had waited for before. */
struct stale {
    const struct warp *warp;
    const struct insn *in;
    char object[NAME];
    uint64_t phase;
};

struct phases {
    struct group *group;
    struct bar_phases **bars; /* open addressing by CTA and offset, at most half full */
    size_t mask, count;
    struct stale stale; /* the last one of the group */
    bool exhausted;
};

/* ---- records ---- */

static struct bar_phases **place(struct bar_phases **bars, size_t mask, const struct cta *cta,
                                 uint32_t offset)
{
    uint64_t h = ((uintptr_t)cta >> 6) * 0x9E3779B97F4A7C15ULL + offset * 0xD1B54A32D192ED03ULL;
    size_t i = (size_t)(h >> 32) & mask;
    while (bars[i] && (bars[i]->cta != cta || bars[i]->offset != offset)) i = (i + 1) & mask;
    return &bars[i];
}

static bool grow(struct phases *p)
{
    size_t size = 2 * (p->mask + 1);
    struct bar_phases **grown = calloc(size, sizeof *grown);
    if (!grown) return false;
    for (size_t i = 0; i <= p->mask; i++) {
        if (p->bars[i]) *place(grown, size - 1, p->bars[i]->cta, p->bars[i]->offset) = p->bars[i];
    }
    free(p->bars);
    p->bars = grown;
    p->mask = size - 1;
    return true;
}

static void on_init(struct phases *p, const struct event *e)
{
    struct bar_phases **at = place(p->bars, p->mask, e->cta, e->key);
    if (!*at) {
        if (2 * (p->count + 1) > p->mask && !grow(p)) {
            p->exhausted = true;
            return;
        }
        at = place(p->bars, p->mask, e->cta, e->key);
        *at = malloc(sizeof **at);
        if (!*at) {
            p->exhausted = true;
            return;
        }
        p->count++;
    }
    **at = (struct bar_phases){.cta = e->cta, .offset = e->key};
}

static const char *object_of(const struct phases *p, const struct bar_phases *b, char name[NAME])
{
    return name_shared(p->group->launch->kernel, b->offset, name, NAME);
}

/* ---- arrivals ---- */

/* Lanes that arrive by one and the same instruction, one after the other, in different phases. */
static bool lanes_spill(const struct bar_phases *b, const struct event *e, uint64_t phase)
{
    uint32_t lane = first_lane(e->lanes);
    if (b->by != e->warp || b->in != e->in || b->lane >= lane || b->phase + 1 != phase)
        return false;
    if (e->token) return b->token && e->token - b->token < WARP_LANES;
    return !b->token && b->version == e->warp->order->version;
}

static void tell_overrun(struct phases *p, struct bar_phases *b, const struct event *e,
                         uint64_t phase, bool lanes)
{
    char name[NAME];
    const struct insn *other = b->in;
    b->told_overrun = true;
    object_of(p, b, name);
    if (lanes) {
        sim_find(p->group, e->warp, e->in, first_lane(e->lanes), SEV_ERROR, FIND_MBARRIER_OVERRUN,
                 CAUSE_NONE, name,
                 "several lanes of a warp arrive at %s by this one instruction, and each completes "
                 "a phase (now phase %llu): the barrier counts fewer arrivals than come; elect one "
                 "lane, or count them all",
                 name, (unsigned long long)phase);
        return;
    }
    sim_find(p->group, e->warp, e->in, first_lane(e->lanes), SEV_ERROR, FIND_MBARRIER_OVERRUN,
             CAUSE_NONE, name,
             "this arrival at %s counts for phase %llu here, but nothing orders it behind the end "
             "of phase %llu (the arrival before it: line %u): on another schedule it is one too "
             "many there, and somebody else's is missing",
             name, (unsigned long long)phase, (unsigned long long)phase - 1,
             other ? other->src->pos.line : e->in->src->pos.line);
}

static void on_arrive(struct phases *p, const struct event *e)
{
    struct bar_phases *b = *place(p->bars, p->mask, e->cta, e->key);
    const struct order_bar *known = order_bar_at(e->cta, e->key);
    const struct mbar *now = mbar_at(e->cta, e->key);
    if (!b || !known || !now || !e->warp) return;
    if (!b->told_overrun && now->phase) {
        if (lanes_spill(b, e, now->phase))
            tell_overrun(p, b, e, now->phase, true);
        else if (!e->token && !(e->in->flags & MBAR_RELAXED) &&
                 !clock_covers(&order_known(e->warp)->known, &known->point.done.known))
            tell_overrun(p, b, e, now->phase, false);
    }
    /* What it releases must differ from what it handed over before, or nobody could tell. */
    if (!e->token && (b->by != e->warp || b->phase != now->phase)) order_tick(e->warp->order);
    if (e->warp->cta == e->cta) b->pass[e->warp->id].arrivals += (uint32_t)e->value;
    b->by = e->warp;
    b->in = e->in;
    b->lane = first_lane(e->lanes);
    b->version = e->warp->order->version;
    b->phase = now->phase;
    b->token = e->token;
}

/* ---- bytes ---- */

static const struct insn *expecting_before(const struct mbar *b)
{
    for (uint32_t i = 0; i < b->kept_before; i++) {
        if (b->before[i].bytes > 0) return b->before[i].in;
    }
    return NULL;
}

/* A copy of phase k + 1 must be issued behind the end of phase k: else phase k completed without
 * waiting for all the bytes that its copies bring. */
static void on_copy(struct phases *p, const struct event *e)
{
    struct bar_phases *b = *place(p->bars, p->mask, e->cta, e->key);
    const struct order_bar *known = order_bar_at(e->cta, e->key);
    const struct mbar *now = mbar_at(e->cta, e->key);
    const struct insn *expected;
    char name[NAME];
    if (!b || !known || !now || !e->warp || !e->value || b->told_bytes) return;
    if (clock_covers(&order_known(e->warp)->known, &known->point.done.known)) return;
    expected = expecting_before(now);
    b->told_bytes = true;
    object_of(p, b, name);
    sim_find(p->group, e->warp, expected ? expected : e->in, first_lane(e->lanes), SEV_ERROR,
             FIND_MBARRIER_TX, CAUSE_NONE, name,
             "a copy (line %u) is issued for phase %llu of %s here, but nothing orders it behind "
             "the end of phase %llu: that phase expected fewer bytes than its copies bring, and "
             "completed without this one",
             e->in->src->pos.line, (unsigned long long)e->value, name,
             (unsigned long long)e->value - 1);
}

/* ---- waits ---- */

/* Where an earlier wait took an old phase for a new one, all that follows is its doing. */
static void tell_phase(struct phases *p, struct bar_phases *b, const struct warp *w,
                       const struct insn *in, const char *text)
{
    const struct stale *s = &p->stale;
    char name[NAME];
    if (b->told_phase) return;
    b->told_phase = true;
    if (s->in) {
        sim_find(p->group, (struct warp *)(uintptr_t)s->warp, s->in, NO_LANE, SEV_ERROR,
                 FIND_MBARRIER_PHASE, CAUSE_NONE, s->object,
                 "this wait on %s returned at once, for phase %llu, which its warp had waited for "
                 "before: its parity was not carried on. What followed ran ahead, up to %s",
                 s->object, (unsigned long long)s->phase, object_of(p, b, name));
        return;
    }
    object_of(p, b, name);
    sim_find(p->group, (struct warp *)(uintptr_t)w, in, NO_LANE, SEV_ERROR, FIND_MBARRIER_PHASE,
             CAUSE_NONE, name, "%s: %s", name, text);
}

static void on_pass_before(struct phases *p, const struct event *e)
{
    struct bar_phases *b = *place(p->bars, p->mask, e->cta, e->key);
    const struct pass *pass;
    if (!b || e->value + 1 == 0) return; /* the phase before a fresh barrier's first */
    pass = &b->pass[e->warp->id];
    if (pass->phase == e->value + 1 && pass->in == e->in && e->in->flags & MBAR_PARITY) {
        p->stale = (struct stale){.warp = e->warp, .in = e->in, .phase = e->value};
        object_of(p, b, p->stale.object);
    }
    if (e->value >= pass->phase + 2 && (e->value - pass->phase) % 2 == 0)
        tell_phase(p, b, e->warp, e->in,
                   "this wait passed two phases late: the one that its warp had next to wait for "
                   "was over, and the one after it too; nothing makes the arrivals wait for this "
                   "waiter, and parity cannot tell them apart");
}

static void on_pass_after(struct phases *p, const struct event *e)
{
    struct bar_phases *b = *place(p->bars, p->mask, e->cta, e->key);
    struct order_warp *w = e->warp->order;
    struct pass *pass;
    if (!b || e->value + 1 == 0) return;
    pass = &b->pass[e->warp->id];
    if (pass->phase > e->value) return;
    order_tick(w);
    *pass = (struct pass){.in = e->in,
                          .phase = e->value + 1,
                          .turns = pass->turns + 1,
                          .arrivals = pass->arrivals,
                          .number = order_component(w, w->chain[COMPONENT_WARP])->number};
}

/* Phase e->value is complete: whoever waited for the one before must be known to have passed. */
static void on_phase_after(struct phases *p, const struct event *e)
{
    struct bar_phases *b = *place(p->bars, p->mask, e->cta, e->key);
    const struct order_bar *known = order_bar_at(e->cta, e->key);
    if (!b || !known || !e->value || b->told_phase) return;
    for (uint32_t i = 0; i < e->cta->warp_count; i++) {
        const struct warp *w = &e->cta->warps[i];
        const struct pass *pass = &b->pass[i];
        if (pass->phase != e->value) continue;
        if (clock_get(&known->point.done.known, w->order->chain[COMPONENT_WARP]) >= pass->number)
            continue;
        tell_phase(
            p, b, w, pass->in,
            "the next phase completed, and nothing orders it behind this wait: a waiter that "
            "comes a little later finds the phase over and the next one too, and parity "
            "cannot tell which");
    }
}

/* ---- those who wait for ever ---- */

static void look_at_waiter(struct phases *p, const struct warp *w, const struct frag *f)
{
    const struct wait *t = &f->wait;
    struct bar_phases *b = *place(p->bars, p->mask, t->cta, t->key);
    const struct mbar *now = mbar_at(t->cta, t->key);
    uint64_t next;
    if (!b || !now) return;
    next = b->pass[w->id].phase;
    if (next && now->phase == next + 1 && t->value == (now->phase & 1))
        tell_phase(p, b, w, &p->group->launch->kernel->insns[f->pc],
                   "the phase that this warp had next to wait for is complete, but the wait names "
                   "the parity of the one after it, which never comes: the parity was not carried "
                   "on from the last wait");
    if (now->phase >= next + 2 && (now->phase - next) % 2 == 0)
        tell_phase(p, b, w, &p->group->launch->kernel->insns[f->pc],
                   "this wait came too late: the phase that its warp had next to wait for is over, "
                   "and the one after it too, so that it waits for one that never comes; nothing "
                   "makes the arrivals wait for this waiter");
}

void phases_end(struct phases *p)
{
    struct group *g = p->group;
    for (uint32_t i = 0; g->failed && g->result == 702 && i < g->resident_count; i++) {
        const struct cluster *cl = g->resident[i];
        for (uint32_t r = 0; r < cl->cta_count; r++) {
            for (uint32_t j = 0; j < cl->ctas[r]->warp_count; j++) {
                const struct warp *w = &cl->ctas[r]->warps[j];
                for (uint32_t f = 0; f < w->frag_count; f++)
                    if (w->frags[f].wait.kind == WAIT_MBAR) look_at_waiter(p, w, &w->frags[f]);
            }
        }
    }
    if (p->exhausted)
        sim_find(g, NULL, NULL, NO_LANE, SEV_WARNING, FIND_UNSUPPORTED, CAUSE_NONE, "",
                 "the checker ran out of memory: phases of mbarriers were not looked at");
}

bool phases_ledger(const struct phases *p, const struct cta *cta, uint32_t offset, uint32_t warp,
                   uint32_t *turns, uint32_t *arrivals)
{
    const struct bar_phases *b = *place(p->bars, p->mask, cta, offset);
    if (!b) return false;
    *turns = b->pass[warp].turns;
    *arrivals = b->pass[warp].arrivals;
    return *turns || *arrivals;
}

/* ---- events ---- */

void phases_before(struct phases *p, const struct event *e)
{
    if (e->kind == EV_MBAR_ARRIVE)
        on_arrive(p, e);
    else if (e->kind == EV_MBAR_PASS)
        on_pass_before(p, e);
    else if (e->kind == EV_ASYNC_BAR)
        on_copy(p, e);
}

void phases_after(struct phases *p, const struct event *e)
{
    if (e->kind == EV_MBAR_INIT)
        on_init(p, e);
    else if (e->kind == EV_MBAR_PASS)
        on_pass_after(p, e);
    else if (e->kind == EV_MBAR_PHASE)
        on_phase_after(p, e);
}

struct phases *phases_new(struct group *g)
{
    struct phases *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->group = g;
    p->mask = 63;
    p->bars = calloc(p->mask + 1, sizeof *p->bars);
    if (p->bars) return p;
    free(p);
    return NULL;
}

void phases_free(struct phases *p)
{
    if (!p) return;
    for (size_t i = 0; i <= p->mask; i++) free(p->bars[i]);
    free(p->bars);
    free(p);
}
