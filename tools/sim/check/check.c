/*
 * The checker of one group: hands every event to those who judge. It changes no result.
 *
 *   pending.c   operations left behind, commits of nothing
 *   consumed.c  which mbarrier phases were waited for
 *   staged.c    tiles that copies staged: what became of them, and advice
 *   layout.c    products whose descriptors do not fit such tiles
 *   order.c     happens-before, and by it memory, tensor memory, registers and the phases of mbarriers
 *   order_lanes.c  order between lanes of one warp, at level 2
 *   lane_waits.c   lanes that may miss a phase, at level 3
 *   world.c     what clusters that can talk know of one another
 *   launch_memory.c  global memory across clusters that cannot, and across launches
 *   counters.c  counters that a launch leaves to the next
 */
#include "check/check.h"
#include "check/consumed.h"
#include "check/counters.h"
#include "check/deadlock.h"
#include "check/generations.h"
#include "check/lane_waits.h"
#include "check/order_lanes.h"
#include "check/launch_memory.h"
#include "check/order.h"
#include "check/order_poll.h"
#include "check/pending.h"
#include "check/protocol.h"
#include "check/staged.h"
#include "check/world.h"

#include <stdlib.h>

struct checker {
    struct observer base;
    struct group *group;
    struct counters *counters; /* the launch's, or NULL */
    struct pending_table pending;
    struct consumed_table consumed;
    struct order *order;
    struct staged *staged;
    struct lanes *lanes;      /* NULL below level 2 */
    struct lane_waits *waits; /* NULL below level 3 */
};

static void on_event(struct observer *o, const struct event *e)
{
    struct checker *c = (struct checker *)o;
    order_event(c->order, e);
    staged_event(c->staged, e);
    if (c->lanes) lanes_event(c->lanes, e);
    if (c->waits) lane_waits_event(c->waits, e);
    if (e->kind == EV_ACCESS) {
        if (c->counters) counters_access(c->counters, e);
        return;
    }
    pending_event(&c->pending, e);
    if (e->kind == EV_MBAR_INIT || e->kind == EV_MBAR_PASS) consumed_event(&c->consumed, e);
}

static void on_end(struct observer *o, bool completed)
{
    struct checker *c = (struct checker *)o;
    (void)completed;
    order_end(c->order);
    staged_end(c->staged);
    if (c->pending.exhausted || c->consumed.exhausted) {
        sim_find(c->group, NULL, NULL, NO_LANE, SEV_WARNING, FIND_UNSUPPORTED, CAUSE_NONE, "",
                 "the checker ran out of memory: operations left behind by a CTA may have been "
                 "missed");
    }
}

/* The checker of the group, or NULL where nobody checks. */
static const struct checker *checker_of(const struct group *g)
{
    for (const struct observer *o = g->observer; o; o = o->next) {
        if (o->on_event == on_event) return (const struct checker *)o;
    }
    return NULL;
}

bool check_consumed(const struct group *g, const struct cta *owner, uint32_t offset, uint64_t phase)
{
    const struct checker *c = checker_of(g);
    return !c || consumed_passed(&c->consumed, owner, offset, phase);
}

bool check_ledger(const struct group *g, const struct cta *owner, uint32_t offset, uint32_t warp,
                  uint32_t *turns, uint32_t *arrivals)
{
    const struct order_bar *b = checker_of(g) ? order_bar_at(owner, offset) : NULL;
    return b && protocol_ledger(b, warp, turns, arrivals);
}

uint32_t check_passes(const struct group *g, const struct warp *w, const struct insn *at)
{
    const struct order_warp *o = checker_of(g) ? order_warp_of(w) : NULL;
    return o ? protocol_passes(o, at) : 0;
}

bool check_went_on(const struct group *g, const struct cta *owner, uint32_t offset,
                   const struct warp *w, const struct insn *at, uint32_t key, bool straight)
{
    const struct order_bar *b = checker_of(g) ? order_bar_at(owner, offset) : NULL;
    return b && order_warp_of(w) && protocol_went_on(b, order_warp_of(w), at, key, straight);
}

bool check_left_out(const struct group *g, const struct cta *owner, uint32_t offset,
                    const struct warp *w)
{
    const struct order_bar *b = checker_of(g) ? order_bar_at(owner, offset) : NULL;
    return b && order_warp_of(w) && protocol_left_out(b, order_warp_of(w));
}

bool check_polled(const struct group *g, const struct warp *w, const struct insn *in,
                  uint32_t lanes, struct polled *out)
{
    const struct order_warp *o = checker_of(g) ? order_warp_of(w) : NULL;
    return o && order_polled(o, in, lanes, out);
}

uint64_t check_came_before(const struct group *g, const struct cta *cta, uint32_t id)
{
    const struct order_cta *c = checker_of(g) ? order_cta_of(cta) : NULL;
    return c ? generations_before(c, id, cta->barriers[id].generation) : 0;
}

static void destroy(struct observer *o)
{
    struct checker *c = (struct checker *)o;
    pending_close(&c->pending);
    consumed_close(&c->consumed);
    order_free(c->order);
    staged_free(c->staged);
    lanes_free(c->lanes);
    lane_waits_free(c->waits);
    free(c);
}

/* Instructions whose results are the schedule's, whatever synchronises it: that one stands in the text is
 * enough. Which columns an allocation gets depends on the CTAs that share the SM. */
static void note_chance(const struct check *c, const struct launch *l)
{
    const bool shared = l->grid[0] * l->grid[1] * l->grid[2] > 1 && launch_residency(l) > 1;
    for (uint32_t i = 0; i < l->kernel->insn_count; i++) {
        const struct insn *in = &l->kernel->insns[i];
        const bool columns = shared && in->is.class == INSN_TMEM_ALLOC;
        if (!in->is.chance && !columns) continue;
        report_sampled(c->report, in->is.chance ? SAMPLED_CHANCE : SAMPLED_COLUMNS,
                       ptx_file(l->kernel->module, in->src->pos), in->src->pos.line);
    }
}

static void watch_end(struct watcher *w, struct launch *l)
{
    struct check *c = (struct check *)w;
    if (l->check_level > 0)
        note_chance(c, l);
    else
        report_sampled(c->report, SAMPLED_UNCHECKED, NULL, 0);
    if (c->world && c->memory) launch_memory_take_world(c->memory, c->world, l->kernel);
    world_free(c->world);
    c->world = NULL;
    if (c->counters) counters_judge(c->counters, c->counters_before, l);
    if (!c->memory) return;
    launch_memory_judge(c->memory, l);
    if (c->keeps_memory) return;
    launch_memory_free(c->memory);
    c->memory = NULL;
}

static void watch_deadlock(struct watcher *w, struct group *g)
{
    (void)w;
    deadlock_report(g);
}

static struct observer *watch_open(struct watcher *w, struct group *g)
{
    const int level = g->launch->check_level;
    struct checker *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->base = (struct observer){
        .on_event = on_event, .on_end = on_end, .destroy = destroy, .accesses = true};
    c->group = g;
    c->counters = ((struct check *)w)->counters;
    if (pending_open(&c->pending, g) && consumed_open(&c->consumed))
        c->order = order_new(g, (struct check *)w);
    if (c->order) c->staged = staged_new(g);
    if (c->staged && level >= 2) c->lanes = lanes_new(g);
    if (c->lanes && level >= 3) c->waits = lane_waits_new(g);
    if (c->staged && (level < 2 || c->lanes) && (level < 3 || c->waits)) return &c->base;
    destroy(&c->base);
    return NULL;
}

void check_attach(struct check *c, struct launch *l, struct report *report)
{
    c->watcher = (struct watcher){.open = l->check_level > 0 ? watch_open : NULL,
                                  .on_deadlock = watch_deadlock,
                                  .on_end = watch_end};
    c->report = report;
    if (c->keeps_counters && l->check_level > 0) c->counters = counters_new(l);
    l->sink = report_sink(report);
    launch_watch(l, &c->watcher);
}
