/*
 * The state of named barriers and of the cluster's.
 *
 * A named barrier counts warps, 32 threads each. Where lanes of a warp come apart (barrier without
 * .aligned), the warp counts once all its live lanes have come. Without a thread count it is for
 * every thread that has not exited: exits lower what it waits for (PTX ISA exit).
 */
#include "machine/exec.h"

static void barrier_complete(struct cta *c, uint32_t id)
{
    struct named_barrier *b = &c->barriers[id];
    uint32_t result = b->votes;
    uint64_t generation = b->generation + 1;
    if (b->reduce == REDUCE_AND) result = b->votes == b->voters;
    if (b->reduce == REDUCE_OR) result = b->votes != 0;
    memset(b, 0, sizeof *b);
    b->generation = generation;
    b->result = result;
    sim_wake(c, WAIT_BARRIER, id);
}

void barrier_check(struct cta *c, uint32_t id)
{
    const struct named_barrier *b = &c->barriers[id];
    if (b->expected && b->arrived >= b->expected) barrier_complete(c, id);
}

void barrier_count_warp(struct warp *w, uint32_t id)
{
    struct named_barrier *b = &w->cta->barriers[id];
    b->lanes[w->id] = 0;
    b->arrived += WARP_LANES;
    b->warps_arrived |= 1ULL << w->id;
}

void cluster_barrier_check(struct cluster *cl)
{
    if (!cl->live_threads || cl->arrived_threads != cl->live_threads) return;
    cl->phase++;
    cl->arrived_threads = 0;
    for (uint32_t r = 0; r < cl->cta_count; r++) {
        for (uint32_t i = 0; i < cl->ctas[r]->warp_count; i++) {
            cl->ctas[r]->warps[i].cluster_arrived = 0;
        }
    }
    sim_wake(cl->ctas[0], WAIT_CLUSTER, 0);
}

void barriers_exit(struct warp *w, uint32_t lanes)
{
    struct cta *c = w->cta;
    struct cluster *cl = c->cluster;
    for (uint32_t id = 0; id < NAMED_BARRIERS; id++) {
        struct named_barrier *b = &c->barriers[id];
        if (!b->expected) continue;
        if (b->lanes[w->id] && !(w->live & ~b->lanes[w->id]))
            barrier_count_warp(w, id);
        else if (!w->live && b->whole && !(b->warps_arrived >> w->id & 1))
            b->expected -= WARP_LANES;
        barrier_check(c, id);
    }
    cl->live_threads -= (uint32_t)__builtin_popcount(lanes);
    cl->arrived_threads -= (uint32_t)__builtin_popcount(lanes & w->cluster_arrived);
    w->cluster_arrived &= ~lanes;
    cluster_barrier_check(cl);
}
