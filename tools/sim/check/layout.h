/*
 * Products whose descriptors do not fit what tensor copies staged (kind layout).
 *
 * Each chunk of an operand comes from a place in the tensor (boxes.h). A product means something if there are
 * a row r(i) for each row i of A (column of B) and a k(j) for each j, so that element (i, j) comes from r(i)
 * and k(j). Inside one box this is looked at dimension by dimension: a coordinate may change along the rows
 * or along k, not along both. Two elements of an operand may not be the same staged bytes. Along k, A and B
 * must go through their boxes in the same order and from the same place. Where an order is unusual but
 * consistent, and where the origin is not known, nothing is said. What an order leaves out tells more: rows
 * or steps of k that were staged between those that products read, and that nobody ever read.
 */
#ifndef SIM_LAYOUT_H
#define SIM_LAYOUT_H

#include "check/boxes.h"

struct layout;

/* The chunks of one CTA's shared memory. */
struct chunks {
    struct chunk *at;
    uint32_t count;
};

/* NULL: no memory. */
struct layout *layout_new(struct group *g, struct boxes *boxes);
void layout_free(struct layout *l);
/* EV_PRODUCT */
void layout_product(struct layout *l, const struct event *e, const struct chunks *chunks);
/* EV_GROUP_WAIT of wgmma: sums are complete. */
void layout_wait(struct layout *l, const struct event *e);
/* The box is about to lose its first chunk. */
void layout_close(struct layout *l, struct box *box, const struct chunks *chunks);

#endif
