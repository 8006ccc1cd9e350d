/*
 * A stack of bytes for each lane of a warp: what a call keeps until it returns. A warp has none until
 * its first push.
 */
#ifndef SIM_CALLS_H
#define SIM_CALLS_H

#include "machine/machine.h"

struct call_stack;

/* Empties the stacks when a warp starts; frees them when its memory goes. Both take NULL. */
void calls_reset(struct call_stack *stack);
void calls_free(struct call_stack *stack);

/* Room for `size` more bytes of the lane, or NULL when memory is exhausted. */
uint8_t *calls_push(struct warp *w, uint32_t lane, size_t size);
/* The lane's last `size` bytes, or NULL where it has fewer. */
const uint8_t *calls_top(const struct warp *w, uint32_t lane, size_t size);
/* Takes them off; valid until the next push. The lane has as many. */
const uint8_t *calls_pop(struct warp *w, uint32_t lane, size_t size);

/* Bytes of its stack that the lane has taken by alloca; NULL when memory is exhausted. */
uint32_t *calls_taken(struct warp *w, uint32_t lane);

#endif
