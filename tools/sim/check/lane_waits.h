/*
 * Whether each lane of a warp has looked at an mbarrier before its next phase is complete. The lanes
 * of one wait need not leave it together, and one lane may go on for the warp: it loads, the loads are
 * used, the slot comes free again. A lane that looks only then finds a parity that stands for the
 * phase to come. The lanes must have met (bar.warp.sync, a shuffle, any .aligned instruction) before
 * something that the next phase comes after. Converged lanes never show it, so this is asked at
 * level 3 alone, and answers with a warning.
 */
#ifndef SIM_LANE_WAITS_H
#define SIM_LANE_WAITS_H

#include "check/order.h"

struct lane_waits;

/* NULL when memory is exhausted. */
struct lane_waits *lane_waits_new(struct group *g);
void lane_waits_free(struct lane_waits *l);
/* Every event, after order_event. */
void lane_waits_event(struct lane_waits *l, const struct event *e);

#endif
