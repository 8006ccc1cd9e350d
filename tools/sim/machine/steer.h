/*
 * A launch whose order somebody else decides, one action at a time, in place of the seed. All its clusters
 * are then in one group, on the calling thread. Clocks move by one with every action, a nanosleep ends when
 * it is looked at, and no poll is answered False unless the steerer says so.
 */
#ifndef SIM_STEER_H
#define SIM_STEER_H

#include "machine/machine.h"

struct async_op;

struct steerer {
    /* Does what happens next in the group, by the functions below. False: nothing can, a deadlock. */
    bool (*turn)(struct steerer *s, struct group *g);
};

/* Whether the warp can execute something, and what; NULL: the end of the body. */
bool steer_ahead(struct warp *w, const struct insn **in);
/* Executes one instruction of a warp for which steer_ahead is true. */
void steer_step(struct warp *w);
/* Answers False to the first poll at which the warp sleeps, but not by those lanes: it can be executed again. NULL:
 * there is none. */
const struct frag *steer_refuse(struct warp *w, uint32_t but);
/* Ends the warp's nanosleeps. */
void steer_rouse(struct warp *w);

#endif
