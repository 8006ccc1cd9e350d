/*
 * A horizon is what one cluster knows of the others: a vector clock for each cluster that it has
 * heard of.
 *
 * Horizons are immutable trees. Joining two makes a new one, which shares their equal parts. So
 * each of thousands of clusters that add to one flag pays for one path of the tree, and a cluster
 * that acquires the flag copies a pointer. Horizons are not thread-safe: clusters that synchronise
 * through global memory run on one thread.
 */
#ifndef SIM_HORIZON_H
#define SIM_HORIZON_H

#include "check/clock.h"

struct horizon; /* NULL: empty */

/* Reference counting; both take NULL. */
struct horizon *horizon_keep(struct horizon *h);
void horizon_drop(struct horizon *h);

/* *into := the join of *into and from. False when memory is exhausted; *into is then unchanged. */
bool horizon_join(struct horizon **into, struct horizon *from);
/* The same with the clock of one cluster, which is copied. */
bool horizon_add(struct horizon **into, uint32_t cluster, const struct clock *known);
/* *into := from; the reference that *into held is dropped. */
void horizon_set(struct horizon **into, struct horizon *from);

/* The clock of that cluster. NULL when the horizon has none. */
const struct clock *horizon_of(const struct horizon *h, uint32_t cluster);

#endif
