/*
 * Memory that lanes of a warp have read or written, and for which another lane of it has spoken: it arrived at an
 * mbarrier without having met them since. The order of the warp says that the arrival comes after their accesses; between
 * lanes nothing does (PTX ISA "bar.warp.sync"). Where another warp then relies on it, the verdict is sampled.
 */
#ifndef SIM_SPOKEN_H
#define SIM_SPOKEN_H

#include "check/order.h"

struct spoken_span {
    uint64_t low, high; /* shared memory: offsets in the warp's CTA */
    bool write, global;
};

/* A lane has arrived by `in` for others that have used the span. */
void spoken_add(struct order *o, struct order_warp *w, const struct insn *in,
                struct spoken_span span);
/* All lanes of the warp have met: what it releases from now on comes after all of them. */
void spoken_met(struct order_warp *w);
/* An access, of whatever kind. */
void spoken_access(struct order *o, const struct order_warp *w, const struct event *e);

#endif
