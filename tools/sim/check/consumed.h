/*
 * Which mbarrier phases waits have passed, for deadlock reports (deadlock.h: check_consumed).
 */
#ifndef SIM_CONSUMED_H
#define SIM_CONSUMED_H

#include "machine/event.h"

/* Open addressing by CTA and offset, at most half full. */
struct consumed_table {
    struct consumed *entries;
    size_t mask, count;
    bool exhausted;
};

bool consumed_open(struct consumed_table *t);
void consumed_close(struct consumed_table *t);
/* EV_MBAR_INIT, EV_MBAR_PASS */
void consumed_event(struct consumed_table *t, const struct event *e);
/* As check_consumed. */
bool consumed_passed(const struct consumed_table *t, const struct cta *owner, uint32_t offset,
                     uint64_t phase);

#endif
