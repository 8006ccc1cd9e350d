/* The records of clusters, CTAs and warps: made when a warp starts, used again for the next cluster in the
 * same place (order.h). */
#include "check/check.h"
#include "check/converged.h"
#include "check/launch_memory.h"
#include "decode/names.h"
#include "check/order.h"
#include "check/order_tell.h"
#include "check/protocol.h"

#include <stdio.h>
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
    if (b->peers) point_free(b->peers);
    free(b->peers);
    protocol_free(b->protocol);
    free(b->copies);
    free(b->covers);
    free(b);
}

static void warp_clear(struct order_warp *w)
{
    if (!w->warp) return; /* none has run here */
    stamp_free(&w->now);
    for (int i = 0; i < REACHES; i++) {
        stamp_free(&w->fenced[i]);
        stamp_free(&w->observed[i]);
    }
    horizon_drop(w->posted);
    horizon_drop(w->posted_bridged);
    clock_free(&w->after);
    for (int i = 0; i < COMMIT_KINDS; i++) order_groups_free(w->groups[i]);
    free(w->slots);
    free(w->regs);
    free(w->undefined);
    free(w->reaches);
    converged_free(w->converged);
    free(w->heard);
    free(w->fenced_for);
    free(w->passes);
    free(w->taken);
    *w = (struct order_warp){0};
}

/* For another warp in the same place, which will need as much memory. */
static void warp_renew(struct order_warp *w)
{
    struct warp *warp = w->warp; /* says that there is something to free */
    struct stamp now = w->now;
    struct converged *converged = w->converged;
    w->now = (struct stamp){0};
    w->converged = NULL;
    warp_clear(w);
    stamp_clear(&now);
    converged_clear(converged);
    w->warp = warp;
    w->now = now;
    w->converged = converged;
}

static void cta_free(struct order_cta *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < CTA_WARPS; i++) warp_clear(&c->warps[i]);
    for (uint32_t i = 0; i < NAMED_BARRIERS; i++) {
        point_free(&c->named[i]);
        free(c->generations[i]);
    }
    clock_free(&c->described);
    horizon_drop(c->described_abroad);
    for (uint32_t i = 0; i < c->bar_slots; i++) {
        if (c->bars[i]) bar_free(c->bars[i]);
    }
    free(c->bars);
    free(c->shared);
    free(c->tensor);
    free(c->undefined);
    free(c->undefined_bytes);
    free(c->spoken);
    free(c);
}

static void cta_reset(struct order_cta *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < CTA_WARPS; i++) warp_renew(&c->warps[i]);
    for (uint32_t i = 0; i < NAMED_BARRIERS; i++) {
        sync_point_clear(&c->named[i]);
        free(c->generations[i]);
        c->generations[i] = NULL;
    }
    for (uint32_t i = 0; i < c->bar_slots; i++) {
        if (c->bars[i]) bar_free(c->bars[i]);
        c->bars[i] = NULL;
    }
    c->bar_count = c->bar_low = c->bar_high = 0;
    clock_clear(&c->described);
    horizon_set(&c->described_abroad, NULL);
    if (c->shared) memset(c->shared, 0, c->shared_cells * sizeof *c->shared);
    if (c->tensor) memset(c->tensor, 0, TENSOR_CELLS * sizeof *c->tensor);
    if (c->undefined) memset(c->undefined, 0, TMEM_COLUMNS * sizeof *c->undefined);
    free(c->undefined_bytes);
    free(c->spoken);
    c->undefined_bytes = NULL;
    c->spoken = NULL;
    c->waited = c->goes_early = false;
}

/* What the cluster did to global memory goes to the launch. */
static void cluster_end(struct order_cluster *c)
{
    struct launch_memory *m = c->order->check->memory;
    bool holds = false;
    for (uint32_t i = 0; i < CLUSTER_CTAS && c->ctas[i]; i++)
        holds |= c->ctas[i]->waited && !c->ctas[i]->goes_early;
    if (m && holds) launch_memory_holds(m);
    if (m && !c->order->world) launch_memory_take(m, &c->shadow, c->order->kernel, c->linear);
}

/* Ready for another cluster in the same place. */
static void cluster_reset(struct order_cluster *c)
{
    cluster_end(c);
    for (uint32_t i = 0; i < CLUSTER_CTAS; i++) cta_reset(c->ctas[i]);
    for (uint32_t i = 0; i < c->flag_slots; i++) flag_free(&c->flags[i]);
    if (c->flag_slots) memset(c->flags, 0, c->flag_slots * sizeof *c->flags);
    c->flag_count = c->arrival_count = c->grid = 0;
    c->speaker = NULL;
    clock_clear(&c->described);
    c->component_count = 1;
    sync_point_clear(&c->barrier);
    shadow_reset(&c->shadow);
}

static void cluster_free(struct order_cluster *c)
{
    for (uint32_t i = 0; i < CLUSTER_CTAS; i++) cta_free(c->ctas[i]);
    for (uint32_t i = 0; i < c->flag_slots; i++) flag_free(&c->flags[i]);
    for (uint32_t i = 0; i < c->arrival_capacity; i++) {
        stamp_free(&c->arrivals[i].brings);
        clock_free(&c->arrivals[i].after);
    }
    point_free(&c->barrier);
    clock_free(&c->described);
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

bool order_written(const struct cta *cta, uint32_t offset)
{
    const struct order_cta *c = order_cta_of(cta);
    return !c || offset / SHARED_CELL >= c->shared_cells || c->shared[offset / SHARED_CELL].write;
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
    warp_renew(w);
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

/* PTX ISA "mapa", CUDA "Distributed Shared Memory": all CTAs of the cluster must have started. Whoever comes
 * after anything that a warp of that CTA did knows it. */
static bool knows_running(const struct order_warp *w, const struct order_cta *other)
{
    for (uint32_t i = 0; i < CTA_WARPS; i++) {
        const uint32_t self = other->warps[i].chain[COMPONENT_WARP];
        if (self && clock_get(&w->now.caused, self)) return true;
    }
    return false;
}

void order_touch_peer(struct order_warp *w, const struct order_cta *other, const struct event *e)
{
    const uint32_t rank = other->cta->rank;
    struct order_reach *reach;
    char message[400];
    if (!(w->running >> rank & 1) && !knows_running(w, other)) {
        (void)snprintf(message, sizeof message,
                       "%s shared memory of CTA rank %u of the cluster, and nothing says that "
                       "this CTA has started: its shared memory may still be another's. Cheapest "
                       "remedy: barrier.cluster.arrive and wait by all threads of the cluster "
                       "before the first such access.",
                       e->kind != EV_ACCESS         ? "uses an mbarrier in"
                       : (e->access & ACCESS_WRITE) ? "writes"
                                                    : "reads",
                       rank);
        tell_alone(w, e->in, NO_LANE, FIND_CLUSTER_START, "", message, NULL, NULL);
    }
    w->running |= 1U << rank;
    if (e->token || e->kind != EV_ACCESS) return;
    if (!w->reaches) w->reaches = calloc(CLUSTER_CTAS, sizeof *w->reaches);
    order_keep(w->cta->cluster->order, w->reaches != NULL);
    if (!w->reaches) return;
    reach = &w->reaches[rank];
    for (int i = 0; i < 2; i++) {
        if (!(e->access & (i ? ACCESS_WRITE : ACCESS_READ))) continue;
        reach->number[i] = order_component(w, w->chain[COMPONENT_WARP])->number;
        reach->in[i] = e->in;
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

/* The same, or was told so by .cta scope: which hands over no writes, but an arrival comes after those before it. */
static bool heard(const struct order_cta *own, const struct order_warp *other, uint32_t number)
{
    for (uint32_t i = 0; i < CTA_WARPS; i++)
        if (clock_get(&own->warps[i].now.narrow, other->chain[COMPONENT_WARP]) >= number)
            return true;
    return knows(own, other, number);
}

/* Arrivals from other CTAs: a relaxed barrier.cluster.arrive behind one lets the CTA exit before it comes. */
static void exit_arrivals(const struct order_cta *own)
{
    const struct kernel *kernel = own->cluster->order->kernel;
    for (uint32_t i = 0; i < own->bar_slots; i++) {
        const struct order_bar *b = own->bars[i];
        char object[96];
        if (!b || !b->live || b->reached <= b->passed || heard(own, b->reacher, b->reach_number))
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

/* Whether some warp of the CTA comes after what the other warp did up to `number`, whatever memory says. */
static bool follows(const struct order_cta *own, const struct order_warp *other, uint32_t number)
{
    for (uint32_t i = 0; i < CTA_WARPS; i++)
        if (clock_get(&own->warps[i].now.caused, other->chain[COMPONENT_WARP]) >= number)
            return true;
    return false;
}

/* Loads and stores from another CTA: a load that has its value is over, a store is when it is visible. */
static void exit_reach(const struct order_cta *own, struct order_warp *w)
{
    const struct order_reach *reach = &w->reaches[own->cta->rank];
    for (int i = 0; i < 2; i++) {
        if (!reach->number[i] ||
            (i ? knows(own, w, reach->number[i]) : follows(own, w, reach->number[i])))
            continue;
        tell_alone(w, reach->in[i], NO_LANE, FIND_CLUSTER_EXIT, "",
                   i ? "the CTA whose shared memory this writes exits, and nothing there says that "
                       "it has. Cheapest remedy: barrier.cluster.arrive.release behind it, and the "
                       "CTA waits before it exits."
                     : "the CTA whose shared memory this reads exits, and nothing there says that "
                       "it has. Cheapest remedy: barrier.cluster.arrive behind it, and the CTA "
                       "waits before it exits.",
                   NULL, NULL);
    }
}

static void exit_reaches(const struct order_cta *own)
{
    for (uint32_t r = 0; r < CLUSTER_CTAS; r++) {
        struct order_cta *other = own->cluster->ctas[r];
        for (uint32_t i = 0; other && other != own && i < CTA_WARPS; i++)
            if (other->warps[i].reaches) exit_reach(own, &other->warps[i]);
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
        exit_reaches(own);
    }
    for (uint32_t id = 1; c && id < c->component_count; id++) {
        const struct component *copy = &c->components[id];
        const bool store = copy->kind == COMPONENT_REMOTE_STORE;
        char object[96];
        if ((copy->kind != COMPONENT_COPY && !store) || !copy->bar || copy->bar->cta != own ||
            !copy->in || seen(c, id, copy->number))
            continue;
        tell_alone(
            copy->warp, copy->in, NO_LANE, store ? FIND_CLUSTER_EXIT : FIND_PENDING_AT_EXIT,
            name_shared(o->kernel, copy->bar->offset, object, sizeof object),
            store ? "the CTA in whose shared memory this is to land exits, and nobody there has "
                    "waited for the phase on which it completes. Cheapest remedy: a wait for that "
                    "phase before the CTA exits."
                  : "the CTA exits, but nobody has waited for the phase on which this copy "
                    "completes: it may still write shared memory that the CTA has given up",
            NULL, NULL);
    }
}
