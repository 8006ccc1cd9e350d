/*
 * What fences order: the memory fences of the PTX ISA, those between proxies, and those of mbarrier.init, wgmma and tcgen05.
 * The rules are in the sections of these instructions.
 */
#include "check/order.h"
#include "check/order_regs.h"

static void on_init_fence(struct order_warp *w, uint32_t lanes)
{
    struct order_cta *c = w->cta;
    const uint32_t id = order_chain(w, COMPONENT_INIT_FENCED), self = w->chain[COMPONENT_WARP];
    const uint32_t number = order_component(w, self)->number;
    if (!id) return;
    order_component(w, id)->number = number;
    for (uint32_t i = 0; i < c->bar_slots; i++) {
        struct order_bar *b = c->bars[i];
        if (b && b->live && !b->init_fenced && epoch_component(b->init) == self &&
            lanes >> b->init_lane & 1)
            b->init_fenced = number; /* the first is enough: later ones take nothing back */
    }
}

/* tcgen05.fence::before_thread_sync: what the chain has so far is before what comes after. */
static void fence_chain(struct order_warp *w, enum component_kind chain, enum component_kind fenced)
{
    uint32_t id = w->chain[chain], to = id ? order_chain(w, fenced) : 0;
    if (to) order_learn(w, to, order_component(w, id)->number);
}

/* fence.proxy.tensormap, release form: what the warp knows is visible to those who acquire, whichever map they name
 * (interpretation: hides, never invents). */
static void describe(struct order *o, struct order_warp *w)
{
    struct order_cluster *c = w->cta->cluster;
    order_keep(o, clock_join(&c->described, &w->now.known));
    for (uint32_t i = 1; o->world && i < c->component_count; i++) {
        const uint32_t number = clock_get(&c->described, i);
        struct actor *a = c->components[i].actor ? &o->world->actors[c->components[i].actor] : NULL;
        if (a && a->described < number) a->described = number;
    }
}

void order_fence(struct order *o, struct order_warp *w, const struct event *e)
{
    switch (e->value) {
    case FENCE_MEMBAR: order_membar(o, w, e); break;
    case FENCE_PROXY_ASYNC:
        /* Every form, the one-way ones too (interpretation): both ways. These also have an order and a scope; they
         * release and acquire as a fence does (interpretation: hides, never invents). */
        if (e->access == ACCESS_READ) order_membar(o, w, e);
        order_keep(o, clock_copy(e->space == SPACE_SHARED   ? &w->now.bridged_shared
                                 : e->space == SPACE_GLOBAL ? &w->now.bridged_global
                                                            : &w->now.bridged,
                                 &w->now.known));
        if (e->space != SPACE_SHARED) horizon_set(&w->now.abroad_bridged, w->now.abroad);
        if (e->access == ACCESS_WRITE) order_membar(o, w, e);
        w->released = true;
        w->version++;
        break;
    case FENCE_PROXY_TENSORMAP:
        if (e->access != ACCESS_READ) describe(o, w);
        if (e->access != ACCESS_WRITE) {
            order_keep(o, clock_join_met(&w->cta->described, &w->now.known,
                                         &w->cta->cluster->described) &&
                              horizon_join(&w->cta->described_abroad, w->now.abroad));
        }
        w->released = true;
        w->version++;
        break;
    case FENCE_MBARRIER_INIT: on_init_fence(w, e->lanes); break;
    case FENCE_TCGEN05_BEFORE:
        fence_chain(w, COMPONENT_TENSOR, COMPONENT_TENSOR_FENCED);
        fence_chain(w, COMPONENT_TMEM_LD, COMPONENT_LD_FENCED);
        fence_chain(w, COMPONENT_TMEM_ST, COMPONENT_ST_FENCED);
        break;
    case FENCE_TCGEN05_AFTER:
        order_keep(o, clock_copy(&w->after, &w->now.known));
        w->version++;
        break;
    case FENCE_WGMMA: regs_fence(w); break;
    default: break;
    }
}
