/*
 * Lanes of one warp that are in order only because they run together: one writes and another reads the same bytes,
 * or the other way round, with no bar.warp.sync nor a wider barrier between. Hardware before Volta promised
 * that order, since then nothing does (PTX ISA "bar.warp.sync"). Much code relies on it: an idiom, counted, and the
 * verdict is not proved. order_lanes.h says more at level 2. Where the lanes have come apart at a branch, it is a
 * race.
 */
#ifndef SIM_CONVERGED_H
#define SIM_CONVERGED_H

#include "check/order.h"

/* Every event of the warp. */
void converged_event(struct order *o, struct order_warp *w, const struct event *e);

#endif
