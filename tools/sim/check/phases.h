/*
 * Whether the phases of mbarriers are what every schedule would make of them. They are when each
 * arrival of phase k + 1 comes after phase k is complete, and each wait for phase k has passed before
 * phase k + 1 completes, both by happens-before and not by luck; then one run stands for all. Where
 * not, an arrival may count for the phase before (mbarrier-overrun), as may bytes (mbarrier-tx), or a waiter that comes late may take
 * a phase for another of the same parity (mbarrier-phase). Needs the clocks of order.h.
 */
#ifndef SIM_PHASES_H
#define SIM_PHASES_H

#include "event.h"

struct phases;

/* NULL when memory is exhausted. */
struct phases *phases_new(struct group *g);
void phases_free(struct phases *p);
/* Sees each event twice: before order.c has taken it in, and after. */
void phases_before(struct phases *p, const struct event *e);
void phases_after(struct phases *p, const struct event *e);
/* How many phases of the barrier the warp (of its CTA) has waited for, and how many arrivals it or its
 * operations brought; false where neither. */
bool phases_ledger(const struct phases *p, const struct cta *cta, uint32_t offset, uint32_t warp,
                   uint32_t *turns, uint32_t *arrivals);
/* Nothing comes any more: looks at those who still wait. */
void phases_end(struct phases *p);

#endif
