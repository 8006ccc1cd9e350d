/*
 * Visibility as late as the PTX ISA lets it be, for launches whose seed is 3 modulo 4 (TEMPER_LAZY):
 *
 * - An operation of the async proxy reads what shared memory held before a generic store, as long as no
 *   fence.proxy.async can have covered the store.
 * - What such an operation writes over such a store is overwritten by it.
 * - So it is with what it reads from global memory, and with tensor maps there until fence.proxy.tensormap.
 * - A tensor map that is changed while a load through it is under way is read as it is when the load is made.
 * - wgmma reads a warp's operands as they are when that warp issues it, and not what other warps of the warpgroup store
 *   later, or what nothing has ordered before.
 * - What another CTA does to an mbarrier is lost, as long as nothing can have made its mbarrier.init visible there.
 *
 * "Can have" errs on the program's side: a fence covers what its own warp did before it, and what any warp did
 * before its own warp last came past a barrier or a flag. So a program that the ISA orders sees no difference, and
 * one that lacks the fence goes wrong where a GPU may: a finding says which bytes, and under which seed.
 */
#ifndef SIM_LATE_H
#define SIM_LATE_H

#include "async/mbar.h"
#include "machine/event.h"

struct late;

struct late_watcher {
    struct watcher base;        /* first */
    struct late_global *global; /* of all groups, where clusters talk through global memory */
    bool wanted;                /* late_global_wanted */
};

/* Watches the launch where its seed asks for it; `w` is the caller's, and lives as long as the launch. */
void late_attach(struct late_watcher *w, struct launch *l);

/* The group has a `late`: lanes of the warp are about to store `size` bytes each; one of them in global memory. */
void late_keep_global(struct warp *w, uint64_t address, uint32_t size);
void late_keep(struct warp *w, uint32_t lanes, enum ptx_space space,
               const uint64_t address[WARP_LANES], uint32_t size);
/* The same: an operation is about to do its next stage; it has done it; over: the last one. */
void late_before(struct group *g, const struct async_op *op);
void late_after(struct group *g, const struct async_op *op, bool over);
/* The same: the tensor map at that generic address, as a copy of the warp's CTA sees it: `bytes`, or `copy`. */
const void *late_map(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address,
                     const void *bytes, uint8_t copy[128]);
/* The same: whether an operation on another CTA's mbarrier comes before the barrier does; then it is lost. */
bool late_lost(struct mbar_who who, struct cta *cta, uint32_t offset);

#endif
