/*
 * Registers of wgmma.mma_async between its issue and the wait for it (PTX ISA "wgmma.fence",
 * "wgmma.mma_async", "wgmma.wait_group"), and those that a tcgen05.ld delivers: whoever uses one has
 * waited for the load. A register is known by its place in the register file.
 */
#ifndef SIM_ORDER_REGS_H
#define SIM_ORDER_REGS_H

#include "check/order.h"

/* The instruction that is being issued. */
void regs_issue(struct order *o, struct order_warp *w, const struct insn *in);
/* A tcgen05.ld that is being issued. */
void regs_load(struct order *o, struct order_warp *w, const struct insn *in);
/* The warp's operations up to that number are complete. */
void regs_wait(struct order_warp *w, uint32_t number);
void regs_fence(struct order_warp *w);
/* EV_REGISTERS: another instruction reads or writes registers that some wgmma uses. */
void regs_touch(struct order *o, struct order_warp *w, const struct event *e);

#endif
