/*
 * Which arrivals each generation of a named barrier counts. If an arrival is not ordered after all
 * arrivals of the generation before, it may count there instead, in another order of the warps. The
 * barrier then releases other warps than in this run. This happens when two pairs of roles share a
 * barrier number, or when bar.arrive runs ahead.
 */
#ifndef SIM_GENERATIONS_H
#define SIM_GENERATIONS_H

#include "check/order.h"

/* EV_BARRIER_ARRIVE, before the warp releases anything. `after`: the clock at which the generation
 * before was complete. */
void generations_arrive(struct order *o, struct order_warp *w, const struct event *e,
                        const struct clock *after);
/* The warps (bit = warp) that arrived in the generation before `generation`. 0: not known. */
uint64_t generations_before(const struct order_cta *c, uint32_t id, uint64_t generation);

#endif
