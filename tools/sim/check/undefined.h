/*
 * Values that the ISA leaves undefined: a load of shared memory that nobody has written; a shuffle that reads a lane which does not execute it (PTX
 * ISA "shfl.sync"); a tcgen05.ld that brings columns which nothing has written, among others that were.
 * A program may compute with such a value and drop it, as the upper lanes of a reduction do, also by way of
 * calls and local memory. It is an error if the value reaches other memory, an address, an operand of another
 * unit, or a branch. What comes from unwritten columns may also go back to tensor memory, where it is
 * followed by columns (order_access.c), and to shared memory, where it is followed by bytes until a thread loads
 * them: an epilogue stages whole boxes, and copies clip them. Not so where a load had no written column at all.
 */
#ifndef SIM_UNDEFINED_H
#define SIM_UNDEFINED_H

#include "check/order.h"

/* EV_EXCHANGE, EV_PASSED, EV_VALUES and EV_ACCESS. */
void undefined_event(struct order *o, struct order_warp *w, const struct event *e);

/* The lanes get an undefined value in register `r` by the instruction `in`, which completes later. `whole`: it is a
 * tcgen05.ld none of whose columns anything has written. What that brings may be dropped, but not staged. */
void undefined_load(struct order *o, struct order_warp *w, const struct insn *in, struct arg r,
                    uint32_t lanes, bool whole);

/* The lanes whose value in the register is undefined. */
uint32_t undefined_lanes(const struct order_warp *w, struct arg r);

/* A load or store of shared memory, whose access has been judged: undefined values go there, or come from there. */
void undefined_staged(struct order *o, struct order_warp *w, const struct event *e);
/* A load of shared memory of which some was never written. */
void undefined_fresh(struct order *o, struct order_warp *w, const struct event *e);
/* These bytes of a CTA that has undefined_bytes get other values. */
void undefined_overwritten(struct order_cta *c, uint64_t at, uint64_t bytes);

#endif
