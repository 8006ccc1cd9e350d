/*
 * Commit groups, and cp.async.mbarrier.arrive: which operations of a warp they leave complete. Both are a thread's
 * (PTX ISA "cp.async.bulk.commit_group", "cp.async.mbarrier.arrive"): a lane that waits knows nothing of what
 * other lanes have issued. wgmma groups are the warp's.
 */
#include "check/order.h"

#include "async/async.h"
#include "check/order_regs.h"

#include <stdlib.h>
#include <string.h>

enum { LOG_FIRST = 256, COVERS_FIRST = 2, READ = 0, DONE = 1 };

static struct order_groups *groups_of(struct order_warp *w, uint32_t kind)
{
    if (!w->groups[kind]) {
        w->groups[kind] = calloc(1, sizeof *w->groups[kind]);
        if (!w->groups[kind]) order_exhausted(w->cta->cluster->order, NULL);
    }
    return w->groups[kind];
}

void order_groups_free(struct order_groups *g)
{
    if (!g) return;
    free(g->lane_of);
    free(g);
}

static uint32_t chain_of_group(uint32_t kind)
{
    return kind == COMMIT_CP_ASYNC ? COMPONENT_CP_ASYNC
           : kind == COMMIT_BULK   ? COMPONENT_BULK_DONE
                                   : COMPONENT_WGMMA;
}

static uint32_t number_of(const struct order_warp *w, uint32_t component)
{
    return component ? order_component(w, component)->number : 0;
}

/* ---- issue ---- */

static bool log_lane(struct order_groups *g, uint32_t lane)
{
    if (g->count == g->capacity) {
        uint32_t capacity = g->capacity ? 2 * g->capacity : LOG_FIRST;
        uint8_t *grown = realloc(g->lane_of, capacity);
        if (!grown) return false;
        g->lane_of = grown;
        g->capacity = capacity;
    }
    g->lane_of[g->count++] = (uint8_t)lane;
    return true;
}

static void advance(const struct order_groups *g, struct lane_cover *c)
{
    while (c->prefix < g->count && c->done[g->lane_of[c->prefix]] > c->prefix) c->prefix++;
}

/* The lane did not take part in the last instruction that issued, which is not known to be complete. */
static bool apart(const struct order_warp *w, const struct order_groups *g, uint32_t lane)
{
    if (!g->count || g->step == w->warp->steps || g->step_lanes >> lane & 1) return false;
    return g->cover[DONE].prefix < g->count;
}

static void issue_own(struct order_warp *w, struct order_groups *g, bool bulk, uint32_t lane,
                      struct issuing *i)
{
    uint32_t *own = g->own[lane];
    if (!own[DONE]) {
        own[DONE] = order_component_new(w, bulk ? COMPONENT_BULK_DONE : COMPONENT_CP_ASYNC);
        own[READ] = bulk ? order_component_new(w, COMPONENT_BULK_READ) : own[DONE];
    }
    i->read = own[READ];
    i->write = own[DONE];
    if (!i->read || !i->write) return;
    (void)order_act(w, i->read);
    if (i->write != i->read) (void)order_act(w, i->write);
}

void order_groups_issue(struct order_warp *w, bool bulk, uint32_t lane, struct issuing *i)
{
    struct order_groups *g = groups_of(w, bulk ? COMMIT_BULK : COMMIT_CP_ASYNC);
    if (!g) return;
    if (g->own[lane][DONE] || g->alone >> lane & 1 || apart(w, g, lane)) {
        issue_own(w, g, bulk, lane, i);
        return;
    }
    i->read = order_chain(w, bulk ? COMPONENT_BULK_READ : COMPONENT_CP_ASYNC);
    i->write = order_chain(w, bulk ? COMPONENT_BULK_DONE : COMPONENT_CP_ASYNC);
    if (!i->read || !i->write) return;
    (void)order_act(w, i->read);
    if (i->write != i->read) (void)order_act(w, i->write);
    if (g->step != w->warp->steps) {
        g->step = w->warp->steps;
        g->step_lanes = 0;
        g->several_sources = false;
    }
    g->step_lanes |= 1U << lane;
    order_keep(w->cta->cluster->order, log_lane(g, lane));
}

void order_groups_source(struct order_warp *w, uint64_t source)
{
    struct order_groups *g = w->groups[COMMIT_BULK];
    if (!g) return;
    if ((g->step_lanes & (g->step_lanes - 1)) == 0) g->source = source;
    if (g->source != source) g->several_sources = true;
}

bool order_groups_alike(const struct order_warp *w, uint32_t number)
{
    const struct order_groups *g = w->groups[COMMIT_BULK];
    if (!g || g->step != w->warp->steps || g->several_sources) return false;
    return number_of(w, w->chain[COMPONENT_BULK_DONE]) - number <
           (uint32_t)__builtin_popcount(g->step_lanes);
}

/* ---- groups ---- */

void order_groups_commit(struct order_warp *w, const struct event *e)
{
    struct order_groups *g = groups_of(w, e->key);
    const uint32_t end = number_of(w, w->chain[chain_of_group(e->key)]);
    uint32_t lanes = e->key == COMMIT_WGMMA ? 1 : e->lanes;
    if (!g) return;
    for (; lanes; lanes &= lanes - 1) {
        const uint32_t lane = first_lane(lanes), group = g->closed[lane]++ % GROUPS_KEPT;
        g->end[lane][group] = end;
        g->own_end[lane][group] = number_of(w, g->own[lane][DONE]);
    }
}

/* The newest group of the lane that a wait for all but `pending` leaves complete: its place; GROUPS_KEPT: none. */
static uint32_t newest(const struct order_groups *g, uint32_t lane, uint64_t pending)
{
    if (pending >= GROUPS_KEPT || g->closed[lane] <= pending) return GROUPS_KEPT;
    return (g->closed[lane] - 1 - (uint32_t)pending) % GROUPS_KEPT;
}

/* Under which number of its warp an action was issued; one no longer kept: the oldest that is, which
 * orders rather too much than too little. */
static uint32_t issued_at(const struct component *c, uint32_t number)
{
    if (c->number - number >= ISSUES_KEPT) number = c->number - ISSUES_KEPT + 1;
    return c->issued[number % ISSUES_KEPT];
}

/* A wgmma is an operation of the warpgroup: the other warps' parts are complete too, so those warps have
 * come as far as to issue them (one thread may speak for the four); what else they did is not visible. */
static void wait_warpgroup(struct order *o, struct order_warp *w, uint32_t end)
{
    struct order_warp *first = &w->cta->warps[w->warp->id & ~3U];
    for (struct order_warp *other = first; end && other < first + 4; other++) {
        uint32_t id = other->chain[COMPONENT_WGMMA];
        if (other == w || !id) continue;
        order_learn(w, id, end);
        order_keep(o, clock_raise(&w->now.caused, other->chain[COMPONENT_WARP],
                                  issued_at(order_component(w, id), end)));
    }
}

static void wait_wgmma(struct order *o, struct order_warp *w, const struct event *e)
{
    const struct order_groups *g = groups_of(w, e->key);
    const uint32_t id = w->chain[COMPONENT_WGMMA];
    uint32_t group, end;
    if (!g || !id) return;
    group = newest(g, 0, e->value);
    end = group < GROUPS_KEPT ? g->end[0][group] : 0;
    if (e->in->is.waits == WAITS_ISSUED) end = number_of(w, id);
    order_learn(w, id, end);
    regs_wait(w, end);
    wait_warpgroup(o, w, end);
}

static void raise(uint32_t *to, uint32_t number)
{
    if (*to < number) *to = number;
}

/* cp.async is of the generic proxy: known, not bridged. */
static void learn(struct order *o, struct order_warp *w, bool bulk, uint32_t component,
                  uint32_t number)
{
    if (!component || !number) return;
    if (bulk) {
        order_learn(w, component, number);
        return;
    }
    order_keep(o, stamp_raise_generic(&w->now, component, number));
    w->version++;
}

static void wait_lane(struct order *o, struct order_warp *w, struct order_groups *g,
                      const struct event *e, uint32_t lane)
{
    const bool bulk = e->key == COMMIT_BULK, all = e->in->is.waits == WAITS_ISSUED;
    const uint32_t group = newest(g, lane, e->value), *own = g->own[lane];
    uint32_t end = group < GROUPS_KEPT ? g->end[lane][group] : 0;
    uint32_t own_end = group < GROUPS_KEPT ? g->own_end[lane][group] : 0;
    if (all) end = number_of(w, w->chain[chain_of_group(e->key)]);
    if (all) own_end = number_of(w, own[DONE]);
    raise(&g->cover[READ].done[lane], end);
    learn(o, w, bulk, own[READ], own_end);
    if (e->in->is.sources) return;
    raise(&g->cover[DONE].done[lane], end);
    learn(o, w, bulk, own[DONE], own_end);
}

void order_groups_wait(struct order *o, struct order_warp *w, const struct event *e)
{
    const bool bulk = e->key == COMMIT_BULK;
    struct order_groups *g = groups_of(w, e->key);
    if (!g) return;
    w->acquired = e->in;
    if (e->key == COMMIT_WGMMA) {
        wait_wgmma(o, w, e);
        return;
    }
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) wait_lane(o, w, g, e, first_lane(rest));
    advance(g, &g->cover[READ]);
    advance(g, &g->cover[DONE]);
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1)
        if (g->cover[READ].done[first_lane(rest)] > g->cover[READ].prefix)
            g->alone |= 1U << first_lane(rest);
    if (bulk) learn(o, w, true, w->chain[COMPONENT_BULK_READ], g->cover[READ].prefix);
    learn(o, w, bulk, w->chain[chain_of_group(e->key)], g->cover[DONE].prefix);
}

bool order_groups_over(const struct order_warp *w, epoch action)
{
    static const struct {
        uint8_t chain, group, cover;
    } chains[] = {{COMPONENT_BULK_READ, COMMIT_BULK, READ},
                  {COMPONENT_BULK_DONE, COMMIT_BULK, DONE},
                  {COMPONENT_CP_ASYNC, COMMIT_CP_ASYNC, DONE}};
    const uint32_t number = epoch_number(action);
    for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        const struct order_groups *g = w->groups[chains[i].group];
        if (!g || w->chain[chains[i].chain] != epoch_component(action) || !number ||
            number > g->count)
            continue;
        return g->cover[chains[i].cover].done[g->lane_of[number - 1]] >= number;
    }
    return false;
}

/* ---- cp.async.mbarrier.arrive ---- */

void order_groups_brings(struct order_warp *w, struct order_arrival *a)
{
    const struct order_groups *g = w->groups[COMMIT_CP_ASYNC];
    const uint32_t own = g ? g->own[a->lane][DONE] : 0;
    if (own)
        order_keep(w->cta->cluster->order, stamp_raise_generic(&a->brings, own, number_of(w, own)));
}

static struct bar_cover *cover_of(struct order_bar *b, uint32_t component)
{
    for (uint32_t i = 0; i < b->cover_count; i++)
        if (b->covers[i].component == component) return &b->covers[i];
    if (b->cover_count == b->cover_capacity) {
        uint32_t capacity = b->cover_capacity ? 2 * b->cover_capacity : COVERS_FIRST;
        struct bar_cover *grown = realloc(b->covers, capacity * sizeof *grown);
        if (!grown) return NULL;
        b->covers = grown;
        b->cover_capacity = capacity;
    }
    b->covers[b->cover_count] = (struct bar_cover){.component = component};
    return &b->covers[b->cover_count++];
}

/* Who waits for the phase learns of the copies of the lanes that have arrived. */
void order_groups_arrive(struct order_warp *w, struct order_bar *b, const struct order_arrival *a)
{
    struct order *o = w->cta->cluster->order;
    const struct order_groups *g = w->groups[COMMIT_CP_ASYNC];
    const uint32_t id = w->chain[COMPONENT_CP_ASYNC];
    struct bar_cover *c = g && id ? cover_of(b, id) : NULL;
    order_keep(o, c || !g || !id);
    if (!c) return;
    raise(&c->cover.done[a->lane], a->number);
    advance(g, &c->cover);
    order_keep(o, stamp_raise_generic(&b->point.current, id, c->cover.prefix));
}
