/*
 * Finding kind layout: the descriptor of an MMA does not fit what tensor copies staged.
 *
 * Each chunk of an operand comes from a place in the tensor (boxes.h). A product makes sense if
 * every row i of A (column of B) has a tensor row r(i), and every j has a tensor column k(j), so
 * that element (i, j) comes from row r(i) and column k(j). The rules:
 * - Inside one box each coordinate changes along the rows or along k, not along both.
 * - Two elements of an operand are not the same staged bytes.
 * - Of a row that a copy staged in part, nothing along k lies in bytes that nobody has written.
 * - Along k, A and B go through their boxes in the same order and begin at the same place.
 * - No staged row or step of k is skipped: it lies between others that products read, and nothing
 *   ever reads it. An unusual but consistent order is no finding. An operand of unknown origin is
 *   not looked at.
 */
#ifndef SIM_LAYOUT_H
#define SIM_LAYOUT_H

#include "check/boxes.h"

struct layout;

/* The chunks of one CTA's shared memory, by address. */
struct chunks {
    struct chunk *at;
    uint32_t count;
};

/* NULL when memory is exhausted. */
struct layout *layout_new(struct group *g, struct boxes *boxes);
void layout_free(struct layout *l);
/* EV_PRODUCT */
void layout_product(struct layout *l, const struct event *e, const struct chunks *chunks);
/* EV_GROUP_WAIT of wgmma: the accumulators are complete. */
void layout_wait(struct layout *l, const struct event *e);
/* The first chunk of the box is about to be overwritten. */
void layout_close(struct layout *l, struct box *box, const struct chunks *chunks);

#endif
