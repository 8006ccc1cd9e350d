/*
 * Waits of some lanes of a warp, and their fences between proxies, on which other lanes rely without having met them
 * since. order.h takes a warp for one thread, so there a wait of one lane counts for all. But only bar.warp.sync or a wider
 * barrier orders lanes (PTX ISA "bar.warp.sync"). While lanes run together, this never shows. So it is
 * no error, but the verdict is sampled, not proved.
 */
#ifndef SIM_HEARD_H
#define SIM_HEARD_H

#include "check/order.h"

/* Every event of the warp. */
void heard_event(struct order *o, struct order_warp *w, const struct event *e);

#endif
