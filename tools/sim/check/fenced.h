/*
 * Writes of a warp's lanes that only another lane's fence.proxy.async comes after. order.h takes a warp for one
 * thread, so there that fence bridges the writes of all lanes. But a fence bridges what its own thread has done or
 * has learned of (PTX ISA "Proxy-preserved base causality order"): it must come after a bar.warp.sync or a wider
 * barrier behind the write. A lane that hands on another lane's fence must have met that lane since. If an asynchronous
 * operation relies on such a fence, the verdict is sampled.
 */
#ifndef SIM_FENCED_H
#define SIM_FENCED_H

#include "check/order.h"

/* Every event of the warp, behind converged_event. */
void fenced_event(struct order *o, struct order_warp *w, const struct event *e);

#endif
