/*
 * Launches that need not run again. Programs that measure time launch a kernel hundreds of times over the
 * same data. A launch is a function of its request, the seed and the memory that it can reach. So where one
 * ran twice alike, changed no byte the second time and finds memory as it was then, a third run would
 * change nothing either, and would be judged alike: it is counted and reported, and not run.
 *
 * Where the checks saw that a launch wrote no place that it had read, one run is enough: the second would read what
 * the first has read, and write what is there. Not so where CTAs talk to one another (kernel->global_sync): a flag
 * that the first run left raised may let the second go on too early.
 *
 * A launch that does change memory is kept with what it changed (recall.h): where an equal launch finds memory as that
 * one found it, those changes are written, and it is reported alike. Programs that time a chain of kernels repeat such
 * launches: each finds what the one before it left. Here too not where CTAs talk to one another.
 */
#ifndef SIM_REPEAT_H
#define SIM_REPEAT_H

#include "cuda/driver.h"
#include "check/report.h"

/* One launch, from before it runs until after its report. */
struct repeat {
    struct repeated *kept;   /* what is known of the request, or NULL: it always runs */
    uint64_t before;         /* digest of memory; 0: not taken */
    uint64_t began;          /* nanoseconds */
    uint64_t consts, in_use; /* before it ran: digest of the module's constants, bytes allocated */
    struct snapshot *snapshot; /* memory before it, or NULL */
    bool skip;                 /* need not run: report it as `basis` says */
    struct report_basis basis;
};

/* Looks the request up. */
void repeat_begin(struct repeat *r, const struct launch_request *request);
/* It ran. silent: with no error, and no printed text. reads_back: it may have written what it had read, its CTAs
 * may talk to one another, or nobody looked. Before report_end. */
void repeat_ran(struct repeat *r, const struct report *report, bool silent, bool reads_back);
/* It will not run. */
void repeat_drop(struct repeat *r);
/* Forgets all: a kernel goes. */
void repeat_forget(void);

#endif
