/*
 * Global memory as late.h has it: what generic stores have left that the async proxy, or the proxy of tensor maps, need
 * not see yet. One record for a launch whose clusters talk through global memory (they run on one thread), else one
 * for each group. Warps have numbers, which are never used again.
 */
#ifndef SIM_LATE_GLOBAL_H
#define SIM_LATE_GLOBAL_H

#include "machine/event.h"

struct late_global;

/* Whether the kernel reads global memory by one of these proxies. */
bool late_global_wanted(const struct kernel *k);
/* NULL when memory is exhausted. */
struct late_global *late_global_new(void);
void late_global_free(struct late_global *g);

/* The number of a warp that starts; 0: no memory, so nothing that it stores is late. */
uint32_t late_global_warp(struct late_global *g);
/* The warp is about to store there by the generic proxy. */
void late_global_keep(struct late_global *g, uint32_t warp, uint64_t address, uint32_t size);
/* The async proxy writes there. */
void late_global_clear(struct late_global *g, uint64_t address, uint64_t size);
/* The warp came past what may have made others' stores known to it. */
void late_global_passed(struct late_global *g, uint32_t warp);
/* fence.proxy.async of global memory; the two forms of fence.proxy.tensormap, of which acquire is for a CTA: the time of
 * its last one is the caller's. */
void late_global_fence(struct late_global *g, uint32_t warp);
void late_global_release_map(struct late_global *g, uint32_t warp);
void late_global_acquire_map(struct late_global *g, uint32_t *acquired);

/* What an operation of the async proxy reads from there on: bytes[size], of before where late[i] is then true. False:
 * nothing of it is late. */
bool late_global_read(struct late_global *g, uint64_t address, uint64_t size, uint8_t *bytes,
                      uint8_t *late, uint8_t why);
/* The same of a tensor map, for a CTA that acquired last at that time. */
bool late_global_read_map(struct late_global *g, uint32_t acquired, uint64_t address, uint32_t size,
                          uint8_t *bytes);

#endif
