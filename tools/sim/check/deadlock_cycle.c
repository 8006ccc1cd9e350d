/*
 * Roles that wait for each other: each would signal what another waits for, but only after its own
 * wait. Told apart from a barrier that simply has no producer.
 */
#include "check/deadlock.h"

#include <stdlib.h>

enum { NODES = 64 }; /* waits looked at; more of them are the same circle in other CTAs */

struct circle {
    const struct deadlock *d;
    uint32_t node[NODES], count; /* indices of waiters */
    uint64_t next[NODES];        /* who could end the wait of a node, were its own to end */
};

static bool would_signal(const struct deadlock *d, const struct waiter *by, const struct waiter *of)
{
    const struct wait *t = &of->frag->wait;
    return by != of && by->warp->cta->cluster == t->cta->cluster &&
           deadlock_may_signal(d, by, t->key);
}

static void link_nodes(struct circle *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        for (uint32_t k = 0; k < c->count; k++) {
            if (would_signal(c->d, &c->d->waiters[c->node[k]], &c->d->waiters[c->node[i]]))
                c->next[i] |= UINT64_C(1) << k;
        }
    }
}

/* Everything that a node depends on, over any number of steps. */
static uint64_t reach(const struct circle *c, uint32_t from)
{
    uint64_t seen = c->next[from], before = 0;
    while (seen != before) {
        before = seen;
        for (uint64_t rest = before; rest; rest &= rest - 1) seen |= c->next[__builtin_ctzll(rest)];
    }
    return seen;
}

void deadlock_circles(const struct deadlock *d, struct judgement *all, uint32_t from, uint32_t to)
{
    struct circle c = {.d = d};
    for (uint32_t i = 0; i < d->count && c.count < NODES; i++) {
        if (all[i].weight == from && d->waiters[i].frag->wait.kind == WAIT_MBAR)
            c.node[c.count++] = i;
    }
    link_nodes(&c);
    for (uint32_t i = 0; i < c.count; i++) {
        if (!(reach(&c, i) >> i & 1)) continue;
        all[c.node[i]].cause = CAUSE_CYCLE;
        all[c.node[i]].weight = to;
    }
}
