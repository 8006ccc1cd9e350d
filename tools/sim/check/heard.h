/*
 * What some lanes of a warp have waited for, and others rely on without having met them since: order.h takes a warp
 * for one thread, so a wait of one lane counts for all. Between lanes only bar.warp.sync or a wider barrier orders
 * (PTX ISA "bar.warp.sync"). Lanes that run together never show it; so it is no error, but the verdict is not proved.
 */
#ifndef SIM_HEARD_H
#define SIM_HEARD_H

#include "check/order.h"

/* Every event of the warp. */
void heard_event(struct order *o, struct order_warp *w, const struct event *e);

#endif
