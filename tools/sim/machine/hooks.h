/*
 * What the machine needs from the rooms that build on it: operations in flight and mbarriers (async),
 * tensor memory (ops). A launch carries the table; ops/table.c fills it.
 */
#ifndef SIM_HOOKS_H
#define SIM_HOOKS_H

#include "machine/machine.h"

struct async_op;

struct machine_hooks {
    /* A warp's pipes and commit groups. NULL: no memory. Reset: as new, for the next CTA's warp. */
    struct warp_async *(*warp_new)(void);
    void (*warp_reset)(struct warp_async *a);
    void (*warp_free)(struct warp_async *a);
    /* A CTA's mbarriers, likewise. Free takes NULL. */
    struct mbar_table *(*mbars_new)(uint32_t shared_bytes);
    void (*mbars_reset)(struct mbar_table *t);
    void (*mbars_free)(struct mbar_table *t);
    /* The CTA's threads have exited, its operations are over: takes back what it did not give back. */
    void (*cta_retire)(struct cta *c);

    /* Runs what is due at g->now. True if anything ran. */
    bool (*advance)(struct group *g);
    /* Clock of the earliest operation that can run, UINT64_MAX when none is in flight. */
    uint64_t (*next)(const struct group *g);
    /* For a launch that is steered: the operations that may take effect, up to `room` of them in no order;
     * returns how many there are. One of them does its next stage. */
    size_t (*offers)(const struct group *g, struct async_op **ops, size_t room);
    void (*run)(struct group *g, struct async_op *op);
    /* Frees the group's operations, in flight or not. */
    void (*group_close)(struct group *g);
    /* Whether `in` names a register that is still to come (asked only while w->loading is not 0). */
    bool (*awaits_load)(const struct warp *w, const struct insn *in);
};

#endif
