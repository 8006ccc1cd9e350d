/*
 * Which arrivals a generation of a named barrier counts. Where an arrival does not come after all of those that the
 * generation before counted, another order lets it count there, in the place of one of them: then the barrier
 * lets other warps go on than it did in this run. So happens when two pairs of roles share a number, or when
 * bar.arrive runs ahead.
 */
#ifndef SIM_GENERATIONS_H
#define SIM_GENERATIONS_H

#include "check/order.h"

/* EV_BARRIER_ARRIVE, before the warp hands anything over; after: what the generation before was completed by. */
void generations_arrive(struct order *o, struct order_warp *w, const struct event *e,
                        const struct clock *after);
/* Bit = warp: those that the generation before `generation` of the CTA's barrier counts; 0 where none is known. */
uint64_t generations_before(const struct order_cta *c, uint32_t id, uint64_t generation);

#endif
