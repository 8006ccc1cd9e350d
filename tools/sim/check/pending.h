/*
 * Operations that their CTA leaves behind (pending-at-exit), and tcgen05.commit by a thread that has
 * nothing to commit (commit-empty). A bulk-group operation counts as left behind unless its thread
 * waited for its group, whether or not it happened to be over; others while they are in flight,
 * and at level 2 a commit's arrival too when nobody waited for its phase: that it has come is luck.
 */
#ifndef SIM_PENDING_H
#define SIM_PENDING_H

#include "machine/event.h"

struct pending_table {
    struct group *group;
    struct warp_record *records; /* open addressing by warp; warps keep their addresses */
    size_t mask;
    struct pending **chains; /* by token; a power of two of them */
    size_t chain_count, count;
    struct pending *free;
    struct arrived *arrived; /* level 2 only */
    bool exhausted;
};

bool pending_open(struct pending_table *t, struct group *g);
void pending_close(struct pending_table *t);
void pending_event(struct pending_table *t, const struct event *e);

#endif
