/*
 * Polls of a flag in global memory. What a poll hands over is asked for the order in which it hands over least: an answer
 * that leads back to the same load hands over nothing, for it need not have been asked; one that leads on may have been
 * an older value, the oldest with which the thread would have gone on in the same way. What is found then does not depend
 * on how far others had come when this run happened to look.
 */
#ifndef SIM_ORDER_POLL_H
#define SIM_ORDER_POLL_H

#include "check/order.h"

/* Lanes that load one location. */
struct poll {
    const struct order_warp *w;
    const struct insn *in;
    uint64_t address;
    uint32_t lanes, size;
};

enum poll_answer {
    POLL_NONE,  /* no poll, or nothing is known of it: the value that is there */
    POLL_AGAIN, /* it is asked again */
    POLL_PAST   /* *past: a value of before may have been the answer */
};

/* `from`: no value older than that of the location's write number `from` can be the answer. */
enum poll_answer order_poll(const struct poll *p, const struct world_flag *f, uint64_t from,
                            const struct world_past **past);

/* Whether the location, of which nothing is recorded yet, is asked for again. */
bool order_poll_again(const struct poll *p);

struct polled;
/* For reports of hangs: deadlock.h. False: nothing is known. */
bool order_polled(const struct order_warp *w, const struct insn *in, uint32_t lanes,
                  struct polled *out);

#endif
