/*
 * Counters in global memory that a launch leaves as they are. A kernel often asks an atomic which CTA comes last, or which
 * part of the work is next. Where nobody lowers the counter again, an equal launch behind it (a graph that is replayed)
 * begins with what the first one left: no CTA is the last then, and the work that it does is not done.
 *
 * Two equal launches are compared: same kernel, same grid, same parameters. It is an error if
 *   - an atomic whose answer decides where the code goes found a counter as the launch before had left it, and that one
 *     had found another value; and
 *   - an access to memory that another CTA than the first of a counter made in that launch was made by nobody now. What
 *     only the first one does may be meant to happen once.
 */
#ifndef SIM_COUNTERS_H
#define SIM_COUNTERS_H

#include "machine/event.h"

struct counters; /* of one launch */

/* NULL: the kernel has no such atomic, or memory is exhausted. */
struct counters *counters_new(const struct launch *l);
void counters_free(struct counters *c);

/* An access. All clusters of the launch must run on one thread. */
void counters_access(struct counters *c, const struct event *e);
/* The launch is over. Compares it with one before (NULL: none), and reports. */
void counters_judge(struct counters *c, const struct counters *before, const struct launch *l);

#endif
