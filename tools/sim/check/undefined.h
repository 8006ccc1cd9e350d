/*
 * Values that the ISA leaves undefined: a shuffle that reads a lane which does not execute it (PTX
 * ISA "shfl.sync"). A program may compute with such a value and drop it, as the upper lanes of a
 * reduction do, also by way of calls and local memory. It is an error if the value reaches other
 * memory, an address, an operand of another unit, or a branch.
 */
#ifndef SIM_UNDEFINED_H
#define SIM_UNDEFINED_H

#include "check/order.h"

/* EV_EXCHANGE, EV_PASSED, EV_VALUES and EV_ACCESS. */
void undefined_event(struct order *o, struct order_warp *w, const struct event *e);

#endif
