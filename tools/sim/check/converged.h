/*
 * Lanes of one warp that are ordered only because they run together: one lane writes and another
 * reads the same bytes, or the other way round, without a bar.warp.sync or a wider barrier between.
 * Hardware before Volta promised that order; since Volta nothing does (PTX ISA "bar.warp.sync").
 * Much code relies on it, so it is an idiom: it is counted, and the verdict is not proved. If the
 * lanes have diverged at a branch, it is a race. The same is true of an mbarrier that one lane
 * initialises and another uses, and of the bytes of a lane's asynchronous operation. spoken.h is
 * about arrivals, heard.h about waits and fenced.h about proxy fences of one lane on which others rely. order_lanes.h reports more
 * at level 2.
 */
#ifndef SIM_CONVERGED_H
#define SIM_CONVERGED_H

#include "check/order.h"

/* Every event of the warp. */
void converged_event(struct order *o, struct order_warp *w, const struct event *e);

/* For another warp in the same place; NULL: there is nothing to clear. */
void converged_clear(struct converged *c);
void converged_free(struct converged *c);

#endif
