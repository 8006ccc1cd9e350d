/*
 * The report of a launch: one finding is one JSON object on a line (HEWN_SIM_REPORT=FILE appends them) and
 * one paragraph on stderr; identical ones fold with a count. A launch ends with a verdict. What a
 * suppression names (suppress.h) is listed, and does not count for it.
 */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include "machine/finding.h"

#include <stdbool.h>

enum verdict { VERDICT_CLEAN, VERDICT_REVIEW, VERDICT_INCOMPLETE, VERDICT_ERROR };

/*
 * Why a verdict speaks only for the order that ran, strongest reason first; without one it is proved:
 * it holds for every order that the program allows (protocol.h). A wait with its failed polls is one
 * event: code that does something else after a False is taken to come to the same.
 */
#define SAMPLED_REASONS(X)                                                                  \
    X(UNCHECKED, "nothing looked at the order (HEWN_SIM_CHECK=0)")                          \
    X(INCOMPLETE, "part of it was not modelled, or not looked at")                          \
    X(ALIASED, "some memory has two addresses, and the checker takes them for two places")  \
    X(GENERATIONS, "an arrival here may count in another generation of the named barrier")  \
    X(LANES, "lanes of a warp are in order here only as long as they run together")         \
    X(COLLIDE, "lanes store different values to one place here, and any of them may stay")  \
    X(AGAIN, "this stores what is there, but in another order something else may be there") \
    X(POLLS, "after this poll has failed, the program does something else than poll again") \
    X(READ, "what this reads may depend on when it reads")                                  \
    X(OVERTAKES, "two copies of one warp write one place, and either may be the last")      \
    X(OVERLAPS, "more launches than are looked at may still run beside this")               \
    X(BESIDE, "launches of other streams, which nothing orders, may run beside this")       \
    X(UNWRITTEN, "what this stores depends on shared memory that nobody has written")       \
    X(CHANCE, "what this returns depends on the schedule")                                  \
    X(COLUMNS, "which CTA of an SM gets its tensor memory first depends on the order")      \
    X(PHASES, "which phase of the mbarrier is meant depends on the order")

enum sampled_reason {
#define X(name, text) SAMPLED_##name,
    SAMPLED_REASONS(X)
#undef X
        SAMPLED_REASON_COUNT
};

struct report;

/* One launch's report. `number` counts launches of the process from 1. */
struct report *report_new(const char *kernel, uint64_t number);
/* Copies the finding; folds it into an equal one (kind, cause, file, line, object). Thread-safe. */
void report_add(struct report *r, const struct finding *f);
/* For a launch: the same, as its sink. */
struct finding_sink *report_sink(struct report *r);
/* The launch's verdict is sampled: `line` of `file` (NULL: no place) is why. Of several reasons the
 * first in order stands, whichever came first in time. Thread-safe. */
void report_sampled(struct report *r, enum sampled_reason reason, const char *file, uint32_t line);
/* So many orders of the launch were run, each to its end: all there are, or at least `left` are left. */
void report_explored(struct report *r, uint64_t orders, bool all, uint64_t left);
/* The schedule of an order that went wrong, a word; copied. */
void report_replay(struct report *r, const char *schedule);
/* A line has an idiom (finding.h, IDIOMS); the verdict counts the lines that have one. `file` must live until the
 * report's end. Thread-safe. */
void report_idiom(struct report *r, const char *file, uint32_t line);
/* Writes everything (JSON to HEWN_SIM_REPORT, text to stderr unless HEWN_SIM_QUIET=1), ordered by
 * (group, seq), then the verdict and how it was reached; frees the report. */
enum verdict report_end(struct report *r);

/* Why a verdict is not proved, as report_sampled takes it; SAMPLED_REASON_COUNT: it is. */
struct report_basis {
    enum sampled_reason sampled;
    const char *file;
    uint32_t line;
};
/* What the launch's verdict rests on, where it has neither a finding nor an idiom; else false. */
bool report_basis(const struct report *r, struct report_basis *out);

/* Of a report that is not to be written: whether its verdict is proved without an error. */
bool report_holds(const struct report *r);
/* Whether it has an error, a warning or an idiom that the other has not, or one more often. */
bool report_adds(const struct report *r, const struct report *to);
/* Frees it, and writes nothing. NULL is fine. */
void report_drop(struct report *r);

const char *finding_kind_text(enum finding_kind kind);
const char *finding_cause_text(enum finding_cause cause);

#endif
