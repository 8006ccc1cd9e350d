/*
 * Lanes that may miss a phase: lane_waits.h. Waits that are too many to be kept are forgotten, and lanes
 * that arrive somewhere count as having met: this hides, and never invents.
 */
#include "check/lane_waits.h"

#include "async/mbar.h"
#include "decode/names.h"

#include <stdlib.h>

enum { KEPT = 16 }; /* waits of a warp */

/* A wait that several lanes passed. */
struct lane_wait {
    const struct insn *in; /* NULL: unused */
    const struct cta *owner;
    uint32_t offset, lanes;
    uint32_t apart;  /* of the lanes, those that have neither met others nor arrived since */
    uint32_t number; /* the warp's own when the last of them met; 0: not yet, or they arrived */
    uint64_t phase;
};

struct warp_waits {
    struct lane_wait at[KEPT];
    uint32_t next;
    uint32_t open; /* waits with lanes apart */
};

struct lane_waits {
    struct group *group;
    struct warp_waits **warps; /* by warp number in its CTA, CTA by CTA */
    const struct cta **ctas;
    uint32_t count, capacity;
};

static struct warp_waits *waits_of(struct lane_waits *l, const struct cta *cta, uint32_t warp)
{
    uint32_t i = 0;
    while (i < l->count && l->ctas[i] != cta) i++;
    if (i == l->count) {
        if (l->count == l->capacity) {
            const uint32_t capacity = l->capacity ? 2 * l->capacity : 8;
            const struct cta **ctas = realloc(l->ctas, capacity * sizeof *ctas);
            struct warp_waits **warps;
            if (ctas) l->ctas = ctas;
            warps = ctas ? realloc(l->warps, capacity * sizeof *warps) : NULL;
            if (!warps) return NULL;
            l->warps = warps;
            l->capacity = capacity;
        }
        l->warps[i] = calloc(CTA_WARPS, sizeof **l->warps);
        if (!l->warps[i]) return NULL;
        l->ctas[i] = cta;
        l->count++;
    }
    return &l->warps[i][warp];
}

static void on_pass(struct warp_waits *w, const struct event *e)
{
    struct lane_wait *a = &w->at[w->next];
    if (!(e->lanes & (e->lanes - 1))) return;
    w->next = (w->next + 1) % KEPT;
    if (a->in && a->apart) w->open--;
    *a = (struct lane_wait){.in = e->in,
                            .owner = e->cta,
                            .offset = e->key,
                            .lanes = e->lanes,
                            .apart = e->lanes,
                            .phase = e->value};
    w->open++;
}

/* What lies behind this point has a number of its own. */
static void on_meet(struct warp_waits *w, struct warp *warp, uint32_t lanes, bool arrives)
{
    struct order_warp *o = order_warp_of(warp);
    uint32_t number = 0;
    if (!w->open || !o) return;
    if (!arrives) {
        o->released = true;
        order_tick(o);
        number = order_component(o, o->chain[COMPONENT_WARP])->number;
    }
    for (uint32_t i = 0; i < KEPT; i++) {
        struct lane_wait *a = &w->at[i];
        if (!a->in || !(a->apart & lanes)) continue;
        a->apart &= ~lanes;
        if (!arrives) a->number = number;
        w->open -= !a->apart;
    }
}

static void tell(const struct lane_waits *l, const struct cta *cta, uint32_t warp,
                 const struct lane_wait *a)
{
    struct warp *w = &((struct cta *)(uintptr_t)cta)->warps[warp];
    char object[96];
    (void)name_shared(l->group->launch->kernel, a->offset, object, sizeof object);
    sim_find(l->group, w, a->in, NO_LANE, SEV_WARNING, FIND_MBARRIER_PHASE, CAUSE_NONE, object,
             "%d lanes of this warp wait here for one phase of %s, and the phase after it can be "
             "complete before all of them have looked: nothing that it comes after waits for "
             "lanes that are behind. Such a lane finds the parity of a phase to come, and waits "
             "for that. Lanes that run converged hide it. Cheapest remedy: bar.warp.sync between "
             "the wait and what the first lane does next for the warp.",
             __builtin_popcount(a->lanes), object);
}

/* A phase is complete: the waits for the one before it had to be over. */
static void on_phase(struct lane_waits *l, const struct event *e)
{
    const struct order_bar *b = order_bar_at(e->cta, e->key);
    if (!b) return;
    for (uint32_t c = 0; c < l->count; c++) {
        for (uint32_t n = 0; n < CTA_WARPS; n++) {
            struct warp_waits *w = &l->warps[c][n];
            const struct order_cta *o = order_cta_of(l->ctas[c]);
            for (uint32_t i = 0; o && i < KEPT; i++) {
                struct lane_wait *a = &w->at[i];
                if (!a->in || a->owner != e->cta || a->offset != e->key || a->phase + 1 != e->value)
                    continue;
                if (a->apart ||
                    clock_get(&b->point.done.caused, o->warps[n].chain[COMPONENT_WARP]) < a->number)
                    tell(l, l->ctas[c], n, a);
                w->open -= a->apart != 0;
                a->in = NULL;
            }
        }
    }
}

/* Whether the event shows that the whole warp stands at one instruction. */
static bool collective(const struct event *e)
{
    if (e->kind == EV_ACCESS) return !e->token && e->in && e->in->row->flags & OPF_ALIGNED;
    return e->kind != EV_MBAR_ARRIVE && e->kind != EV_MBAR_TX && e->kind != EV_ASYNC_DONE &&
           e->in && e->in->row->flags & OPF_ALIGNED;
}

void lane_waits_event(struct lane_waits *l, const struct event *e)
{
    struct warp_waits *w;
    if (e->kind == EV_MBAR_PHASE) {
        on_phase(l, e);
        return;
    }
    w = e->warp ? waits_of(l, e->warp->cta, e->warp->id) : NULL;
    if (!w) return;
    if (e->kind == EV_WARP_START)
        memset(w, 0, sizeof *w);
    else if (e->kind == EV_MBAR_PASS)
        on_pass(w, e);
    else if (e->kind == EV_TOGETHER || e->kind == EV_WARP_SYNC)
        on_meet(w, e->warp, e->lanes, false);
    else if (e->kind == EV_MBAR_ARRIVE && !e->token)
        on_meet(w, e->warp, e->lanes, true);
    else if (collective(e))
        on_meet(w, e->warp, FULL_MASK, false);
}

struct lane_waits *lane_waits_new(struct group *g)
{
    struct lane_waits *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->group = g;
    return l;
}

void lane_waits_free(struct lane_waits *l)
{
    if (!l) return;
    for (uint32_t i = 0; i < l->count; i++) free(l->warps[i]);
    free(l->warps);
    free((void *)l->ctas);
    free(l);
}
