/*
 * Values that the ISA leaves undefined: what a shuffle brings from a lane that does not execute it (PTX ISA
 * "shfl.sync"). Such a value may be computed with and dropped, as the upper lanes of a reduction do. It is an
 * error when it comes to memory, to an address, to an operation of another unit, or to what a thread does next.
 */
#ifndef SIM_UNDEFINED_H
#define SIM_UNDEFINED_H

#include "check/order.h"

/* EV_EXCHANGE and EV_VALUES. */
void undefined_event(struct order *o, struct order_warp *w, const struct event *e);

#endif
