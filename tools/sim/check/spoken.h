/*
 * Memory that lanes of a warp have read or written, and for which another lane of the warp has spoken:
 * it arrived at an mbarrier without having met them since. order.h takes the warp for one thread, so
 * there the arrival comes after their accesses. But only bar.warp.sync or a wider barrier orders lanes
 * (PTX ISA "bar.warp.sync"). If another warp then relies on the arrival, the verdict is sampled.
 */
#ifndef SIM_SPOKEN_H
#define SIM_SPOKEN_H

#include "check/order.h"

struct spoken_span {
    uint64_t low, high; /* shared memory: offsets in the warp's CTA */
    bool write, global;
    bool unfenced; /* only for the asynchronous proxy: fenced.h */
};

/* A lane has arrived by `in` for others that have used the span. */
void spoken_add(struct order *o, struct order_warp *w, const struct insn *in,
                struct spoken_span span);
/* All lanes of the warp have met: what it releases from now on comes after all of them. */
void spoken_met(struct order_warp *w);
/* An access, of whatever kind. */
void spoken_access(struct order *o, const struct order_warp *w, const struct event *e);

#endif
