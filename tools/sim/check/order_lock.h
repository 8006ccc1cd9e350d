/*
 * Locks: words that a thread takes by cas or exch, tests what that brought, and later sets back to the value that it
 * found. A lock orders what its holders do only if it is taken by an acquire. By the letter the accesses of two
 * holders, if they are strong, do not race without one; but a load may bring the value of before, and of two stores
 * that of the earlier holder may stay.
 */
#ifndef SIM_ORDER_LOCK_H
#define SIM_ORDER_LOCK_H

#include "check/order.h"

/* Lanes that access one location. */
struct lock_word {
    const struct insn *in;
    const struct order_cta *cta; /* of shared memory; NULL: global */
    uint64_t address;
    uint32_t lanes, size;
};

/* The word is read, by whatever: notes whether it is taken. True: it is, and its last holder had given it back.
 * `state`: NULL when nothing has been recorded of the word. */
bool order_lock_take(struct order_warp *w, struct lock_word word, const struct lock_state *state);
/* The word is written, by whatever. */
void order_lock_give_back(struct order_warp *w, struct lock_word word, struct lock_state *state);

#endif
