/*
 * Order between lanes of one warp, which order.h does not look for: what some lanes write to shared memory
 * and another one hands to an asynchronous operation or, by its arrival, to another warp; and memory that one
 * lane has waited for and others write again. Lanes that run converged never show it, and much code relies
 * on that; the ISA orders them only by bar.warp.sync or a wider barrier. So this is asked at level 2 alone,
 * and answers with warnings.
 */
#ifndef SIM_ORDER_LANES_H
#define SIM_ORDER_LANES_H

#include "machine/event.h"

struct lanes;

/* NULL when memory is exhausted. */
struct lanes *lanes_new(struct group *g);
void lanes_free(struct lanes *l);
void lanes_event(struct lanes *l, const struct event *e);

#endif
