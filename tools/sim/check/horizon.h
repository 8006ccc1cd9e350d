/*
 * What is known of other clusters: a clock for each of those that have handed something over.
 *
 * A horizon never changes once made; joining makes another one, which shares what is alike. So a flag
 * that thousands of clusters add to costs each of them one path of a tree, and a cluster that takes all of
 * it over copies a pointer. Only one thread handles horizons: clusters that can talk run on one.
 */
#ifndef SIM_HORIZON_H
#define SIM_HORIZON_H

#include "check/clock.h"

struct horizon; /* NULL: nothing is known of anybody */

/* One more, one fewer reference. */
struct horizon *horizon_keep(struct horizon *h);
void horizon_drop(struct horizon *h);

/* *into := both of them. False when there is no memory; *into then stays as it was. */
bool horizon_join(struct horizon **into, struct horizon *from);
/* The same with one cluster's clock, which is copied. */
bool horizon_add(struct horizon **into, uint32_t cluster, const struct clock *known);
/* *into := from. */
void horizon_set(struct horizon **into, struct horizon *from);

/* NULL: nothing is known of it. */
const struct clock *horizon_of(const struct horizon *h, uint32_t cluster);

#endif
