/* The records of clusters, CTAs and warps: made when a warp starts, used again for the next cluster in the
 * same place (order.h). */
#include "check/check.h"
#include "check/launch_memory.h"
#include "decode/names.h"
#include "check/order.h"
#include "check/order_tell.h"
#include "check/protocol.h"

#include <stdlib.h>

void sync_point_clear(struct sync_point *p)
{
    p->generation = 0;
    stamp_clear(&p->current);
    stamp_clear(&p->done);
}

enum { SHADOW_LEAST = 1 << 24 }; /* bytes of global shadow that any cluster may have */

static void point_free(struct sync_point *p)
{
    stamp_free(&p->current);
    stamp_free(&p->done);
}

static void bar_free(struct order_bar *b)
{
    point_free(&b->point);
    protocol_free(b->protocol);
    free(b->copies);
    free(b);
}

static void warp_clear(struct order_warp *w)
{
    stamp_free(&w->now);
    stamp_free(&w->fenced);
    stamp_free(&w->observed);
    clock_free(&w->after);
    for (int i = 0; i < COMMIT_KINDS; i++) free(w->groups[i]);
    free(w->slots);
    free(w->regs);
    *w = (struct order_warp){0};
}

static void cta_free(struct order_cta *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < CTA_WARPS; i++) warp_clear(&c->warps[i]);
    for (uint32_t i = 0; i < NAMED_BARRIERS; i++) point_free(&c->named[i]);
    clock_free(&c->described);
    for (uint32_t i = 0; i < c->bar_slots; i++) {
        if (c->bars[i]) bar_free(c->bars[i]);
    }
    free(c->bars);
    free(c->shared);
    free(c->tensor);
    free(c);
}

static void cta_reset(struct order_cta *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < CTA_WARPS; i++) warp_clear(&c->warps[i]);
    for (uint32_t i = 0; i < NAMED_BARRIERS; i++) sync_point_clear(&c->named[i]);
    for (uint32_t i = 0; i < c->bar_slots; i++) {
        if (c->bars[i]) bar_free(c->bars[i]);
        c->bars[i] = NULL;
    }
    c->bar_count = c->bar_low = c->bar_high = 0;
    clock_clear(&c->described);
    if (c->shared) memset(c->shared, 0, c->shared_cells * sizeof *c->shared);
    if (c->tensor) memset(c->tensor, 0, TENSOR_CELLS * sizeof *c->tensor);
}

static bool insn_strong(void *context, uint32_t index)
{
    struct order *o = context;
    return index < o->kernel->insn_count && o->kernel->insns[index].is.strong;
}

/* What the cluster did to global memory goes to the launch. */
static void cluster_end(struct order_cluster *c)
{
    struct order *o = c->order;
    struct launch_memory *m = o->check->memory;
    if (m) launch_memory_take(m, &c->shadow, c->linear, c->talks, insn_strong, o);
}

/* Ready for another cluster in the same place. */
static void cluster_reset(struct order_cluster *c)
{
    cluster_end(c);
    for (uint32_t i = 0; i < CLUSTER_CTAS; i++) cta_reset(c->ctas[i]);
    for (uint32_t i = 0; i < c->flag_slots; i++) stamp_free(&c->flags[i].released);
    if (c->flag_slots) memset(c->flags, 0, c->flag_slots * sizeof *c->flags);
    c->flag_count = c->arrival_count = c->grid = 0;
    c->talks = false;
    c->component_count = 1;
    sync_point_clear(&c->barrier);
    shadow_reset(&c->shadow);
}

static void cluster_free(struct order_cluster *c)
{
    for (uint32_t i = 0; i < CLUSTER_CTAS; i++) cta_free(c->ctas[i]);
    for (uint32_t i = 0; i < c->flag_slots; i++) stamp_free(&c->flags[i].released);
    for (uint32_t i = 0; i < c->arrival_capacity; i++) {
        stamp_free(&c->arrivals[i].brings);
        clock_free(&c->arrivals[i].after);
    }
    point_free(&c->barrier);
    shadow_free(&c->shadow);
    free(c->flags);
    free(c->arrivals);
    free(c->components);
    free(c);
}

/* The record of the cluster; of another one if this has begun in the same place. */
static struct order_cluster *cluster_begin(struct order *o, const struct cluster *cl)
{
    struct order_cluster *c = o->clusters;
    while (c && c->cluster != cl) c = c->next;
    if (c && c->linear == cl->linear) return c;
    if (c) {
        cluster_reset(c);
        c->linear = cl->linear;
        return c;
    }
    c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (struct order_cluster){
        .order = o, .next = o->clusters, .cluster = cl, .linear = cl->linear, .component_count = 1};
    c->shadow.most = ORDER_MEMORY_MOST / o->group->launch->group_count / o->group->resident_limit;
    if (c->shadow.most < SHADOW_LEAST) c->shadow.most = SHADOW_LEAST;
    o->clusters = c;
    return c;
}

static struct order_cta *cta_begin(struct order_cluster *c, struct cta *cta)
{
    struct order_cta **at = &c->ctas[cta->rank];
    if (!*at) {
        *at = calloc(1, sizeof **at);
        if (!*at) return NULL;
        (*at)->shared_cells = (cta->shared_bytes + SHARED_CELL - 1) / SHARED_CELL;
        (*at)->shared = calloc((*at)->shared_cells, sizeof(struct cell));
        if (!(*at)->shared || !shadow_adopt(&c->shadow, (*at)->shared, (*at)->shared_cells)) {
            free((*at)->shared);
            free(*at);
            *at = NULL;
            return NULL;
        }
    }
    (*at)->cta = cta;
    (*at)->cluster = c;
    cta->kept[SLOT_CHECK].at = *at;
    return *at;
}

void order_begin(struct order *o, const struct event *e)
{
    struct order_cluster *c = cluster_begin(o, e->cta->cluster);
    struct order_cta *cta = c ? cta_begin(c, e->cta) : NULL;
    struct order_warp *w;
    uint32_t self;
    if (!cta) {
        order_exhausted(o, NULL);
        return;
    }
    w = &cta->warps[e->warp->id];
    warp_clear(w);
    w->warp = e->warp;
    w->cta = cta;
    self = order_chain(w, COMPONENT_WARP);
    if (!self) return;
    order_component(w, self)->number = 1;
    order_keep(o, stamp_raise_generic(&w->now, self, 1));
    e->warp->kept[SLOT_CHECK].at = w;
}

void order_clusters_end(struct order *o)
{
    for (struct order_cluster *c = o->clusters; c; c = c->next) cluster_end(c);
}

void order_clusters_free(struct order *o)
{
    while (o->clusters) {
        struct order_cluster *c = o->clusters;
        o->clusters = c->next;
        cluster_free(c);
    }
}

/* Whether some warp of the cluster has seen the operation complete. */
static bool seen(const struct order_cluster *c, uint32_t component, uint32_t number)
{
    for (uint32_t r = 0; r < CLUSTER_CTAS; r++) {
        for (uint32_t i = 0; c->ctas[r] && i < CTA_WARPS; i++) {
            if (clock_get(&c->ctas[r]->warps[i].now.known, component) >= number) return true;
        }
    }
    return false;
}

/* An arrival of tcgen05.commit comes after the operations that it tracks, how long after is not said, nor
 * that two commits of a thread arrive in order (PTX ISA "tcgen05.commit"). */
static void exit_commits(const struct order_cta *own)
{
    const struct kernel *kernel = own->cluster->order->kernel;
    for (uint32_t i = 0; i < own->bar_slots; i++) {
        const struct order_bar *b = own->bars[i];
        char object[96];
        if (!b || !b->live || b->committed <= b->passed) continue;
        tell_warning(b->committer, b->commit, NO_LANE, FIND_PENDING_AT_EXIT,
                     name_shared(kernel, b->offset, object, sizeof object),
                     "the CTA exits, but nobody has waited for the phase in which this commit "
                     "arrives: that what it tracks is complete does not say that it has arrived, "
                     "and the CTA has given the barrier's memory up");
    }
}

/* Whether some warp of the CTA is ordered behind what the other warp did up to `number`. */
static bool knows(const struct order_cta *own, const struct order_warp *other, uint32_t number)
{
    for (uint32_t i = 0; i < CTA_WARPS; i++)
        if (clock_get(&own->warps[i].now.known, other->chain[COMPONENT_WARP]) >= number)
            return true;
    return false;
}

/* Arrivals from other CTAs: a relaxed barrier.cluster.arrive behind one lets the CTA exit before it comes. */
static void exit_arrivals(const struct order_cta *own)
{
    const struct kernel *kernel = own->cluster->order->kernel;
    for (uint32_t i = 0; i < own->bar_slots; i++) {
        const struct order_bar *b = own->bars[i];
        char object[96];
        if (!b || !b->live || b->reached <= b->passed || knows(own, b->reacher, b->reach_number))
            continue;
        tell_alone(
            b->reacher, b->reach, NO_LANE, FIND_CLUSTER_EXIT,
            name_shared(kernel, b->offset, object, sizeof object),
            "the CTA of this mbarrier exits, and nothing there says that this arrival has come: "
            "nobody has waited for its phase, nor acquired what this thread has released since. "
            "Cheapest remedy: barrier.cluster.arrive.release behind it, and the CTA waits before "
            "it exits.",
            NULL, NULL);
    }
}

/* Copies that nobody has seen complete may land in memory that the CTA has given up, whether or not
 * they happen to be over. */
void order_exit(struct order *o, const struct cta *cta)
{
    const struct order_cta *own = order_cta_of(cta);
    const struct order_cluster *c = own ? own->cluster : NULL;
    if (own) {
        exit_commits(own);
        exit_arrivals(own);
    }
    for (uint32_t id = 1; c && id < c->component_count; id++) {
        const struct component *copy = &c->components[id];
        char object[96];
        if (copy->kind != COMPONENT_COPY || !copy->bar || copy->bar->cta != own || !copy->in ||
            seen(c, id, copy->number))
            continue;
        tell_alone(
            copy->warp, copy->in, NO_LANE, FIND_PENDING_AT_EXIT,
            name_shared(o->kernel, copy->bar->offset, object, sizeof object),
            "the CTA exits, but nobody has waited for the phase on which this copy completes: "
            "it may still write shared memory that the CTA has given up",
            NULL, NULL);
    }
}
