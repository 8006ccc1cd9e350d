/*
 * The timeline of a launch: what its groups did (record.h), timed by a cycle model (model.h) and
 * written as a Chrome/Perfetto trace (timeline.c).
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdint.h>

struct launch;
struct group;
struct observer;
struct trace;
struct worksheet;

/* NULL: no memory. */
struct trace *trace_new(void);
/* The observer of one group, called as groups open, which several threads may do. NULL: no memory. */
struct observer *trace_observer(struct trace *t, struct group *g);
/* Times what was recorded and appends it to the file, which is then complete; `number` counts launches
 * of the process. What cannot be written is said on stderr. Frees the trace. */
void trace_end(struct trace *t, const struct launch *l, uint64_t number, const char *path);

/* The worksheet of a launch (worksheet.h), in the same way: the file gets its rows as JSON lines. */
struct worksheet *worksheet_new(const struct launch *l);
struct observer *worksheet_observer(struct worksheet *w, struct group *g);
void worksheet_end(struct worksheet *w, uint64_t number, const char *path);

#endif
