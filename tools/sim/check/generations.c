/* Arrivals at named barriers, by generation: generations.h. */
#include "check/generations.h"

#include "check/order_tell.h"

#include <stdio.h>
#include <stdlib.h>

struct arrivals {
    epoch by[CTA_WARPS];
    uint32_t count;
};

struct generations {
    uint64_t now; /* the generation that `current` is of */
    struct arrivals before, current;
    bool told; /* once a barrier is enough: what follows would follow from it */
};

static struct generations *generations_of(struct order *o, struct order_cta *c, uint32_t id)
{
    struct generations **at = &c->generations[id];
    if (!*at) *at = calloc(1, sizeof **at);
    order_keep(o, *at != NULL);
    return *at;
}

static void tell_other(struct order *o, struct order_warp *w, const struct event *e, epoch other)
{
    const struct component *c = order_component(w, epoch_component(other));
    const struct insn *in = tell_insn(o, other);
    char object[24], message[480];
    (void)snprintf(object, sizeof object, "barrier %u", e->key);
    (void)snprintf(message, sizeof message,
                   "warp %u arrives at barrier %u, and nothing orders that after the arrival of "
                   "warp %u at line %u, which the generation before counts. In another order this "
                   "one counts there in the other's place, and the barrier lets the wrong warps "
                   "go on. Cheapest remedy: a barrier number for each pair of roles, or a wait for "
                   "the generation before.",
                   w->warp->id, e->key, c->warp->warp->id, in ? in->src->pos.line : 0);
    tell_alone(w, e->in, NO_LANE, FIND_BARRIER_ID, object, message, in,
               "the arrival in the generation before");
}

void generations_arrive(struct order *o, struct order_warp *w, const struct event *e,
                        const struct clock *after)
{
    struct generations *g = generations_of(o, w->cta, e->key % NAMED_BARRIERS);
    const bool strays = !clock_covers(&w->now.caused, after);
    if (!g) return;
    if (g->now != e->value) {
        if (g->now + 1 == e->value)
            g->before = g->current;
        else
            g->before.count = 0;
        g->current.count = 0;
        g->now = e->value;
    }
    for (uint32_t i = 0; strays && !g->told && i < g->before.count; i++) {
        if (clock_knows(&w->now.caused, g->before.by[i])) continue;
        g->told = true;
        tell_other(o, w, e, g->before.by[i]);
    }
    if (strays) order_sampled(o, SAMPLED_GENERATIONS, e->in);
    if (g->current.count < CTA_WARPS) g->current.by[g->current.count++] = order_here(w, e->in);
}

uint64_t generations_before(const struct order_cta *c, uint32_t id, uint64_t generation)
{
    const struct generations *g = c->generations[id % NAMED_BARRIERS];
    const struct arrivals *a = !g                         ? NULL
                               : g->now == generation     ? &g->before
                               : g->now + 1 == generation ? &g->current
                                                          : NULL;
    uint64_t warps = 0;
    for (uint32_t i = 0; a && i < a->count; i++)
        warps |= 1ULL << c->cluster->components[epoch_component(a->by[i])].warp->warp->id;
    return warps;
}
