/*
 * The timeline of a launch: what its groups did (record.h), timed by a cycle model (model.h) and
 * written as a Chrome/Perfetto trace (timeline.c).
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdint.h>

struct launch;
struct trace;

/* Records what the launch does. NULL: no memory. */
struct trace *trace_attach(struct launch *l);
/* The launch is over: times what was recorded and appends it to the file, which is then complete; `number`
 * counts launches of the process. What cannot be written is said on stderr. Frees the trace. */
void trace_end(struct trace *t, const struct launch *l, uint64_t number, const char *path);

#endif
