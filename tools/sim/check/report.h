/*
 * Findings: what is reported, in which words, and where it goes. One finding is one JSON object on a
 * line (HEWN_SIM_REPORT=FILE appends them) and one paragraph on stderr; identical ones fold with a
 * count. A launch ends with a verdict. What a suppression names (suppress.h) is listed, and does not
 * count for it.
 */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct ptx_module;
struct src_pos;

enum finding_severity { SEV_ERROR, SEV_WARNING, SEV_ADVICE };

/* kind as printed, default severity. Add, never rename. */
#define FINDING_KINDS(X)                                                                           \
    X(DEADLOCK, "deadlock", SEV_ERROR)                                                             \
    X(MBARRIER_UNINIT, "mbarrier-uninit", SEV_ERROR)                                               \
    X(MBARRIER_OVERRUN, "mbarrier-overrun", SEV_ERROR)                                             \
    X(MBARRIER_TX, "mbarrier-tx", SEV_ERROR)                                                       \
    X(MBARRIER_PHASE, "mbarrier-phase", SEV_ERROR)                                                 \
    X(MBARRIER_CLOBBER, "mbarrier-clobber", SEV_ERROR)                                             \
    X(MBARRIER_INIT_ORDER, "mbarrier-init-order", SEV_ERROR)                                       \
    X(RACE, "race", SEV_ERROR)                                                                     \
    X(PROXY, "proxy", SEV_ERROR)                                                                   \
    X(ASYNC_REUSE, "async-reuse", SEV_ERROR)                                                       \
    X(TENSORMAP_PROXY, "tensormap-proxy", SEV_ERROR)                                               \
    X(TMEM_RACE, "tmem-race", SEV_ERROR)                                                           \
    X(TMEM_WAIT, "tmem-wait", SEV_ERROR)                                                           \
    X(TMEM_UNINIT, "tmem-uninit", SEV_ERROR)                                                       \
    X(TMEM_BOUNDS, "tmem-bounds", SEV_ERROR)                                                       \
    X(TMEM_LANE, "tmem-lane", SEV_ERROR)                                                           \
    X(TMEM_ALLOC, "tmem-alloc", SEV_ERROR)                                                         \
    X(TMEM_DEALLOC, "tmem-dealloc", SEV_ERROR)                                                     \
    X(TMEM_LEAK, "tmem-leak", SEV_ERROR)                                                           \
    X(MMA_DESC, "mma-desc", SEV_ERROR)                                                             \
    X(WGMMA_FENCE, "wgmma-fence", SEV_ERROR)                                                       \
    X(WGMMA_WAIT, "wgmma-wait", SEV_ERROR)                                                         \
    X(COLLECTIVE_PARTIAL, "collective-partial", SEV_ERROR)                                         \
    X(BARRIER_ID, "barrier-id", SEV_ERROR)                                                         \
    X(CLUSTER_EXIT, "cluster-exit", SEV_ERROR)                                                     \
    X(CLUSTER_CANCEL, "cluster-cancel", SEV_ERROR)                                                 \
    X(PENDING_AT_EXIT, "pending-at-exit", SEV_ERROR)                                               \
    X(COMMIT_EMPTY, "commit-empty", SEV_WARNING)                                                   \
    X(OOB, "oob", SEV_ERROR)                                                                       \
    X(MISALIGNED, "misaligned", SEV_ERROR)                                                         \
    X(USE_AFTER_FREE, "use-after-free", SEV_ERROR)                                                 \
    X(UNINIT, "uninit", SEV_ERROR)                                                                 \
    X(SMEM_LIMIT, "smem-limit", SEV_ERROR)                                                         \
    X(TMA_DESC, "tma-desc", SEV_ERROR)                                                             \
    X(TMA_OOB_BOX, "tma-oob-box", SEV_WARNING)                                                     \
    X(UNREAD_TILE, "unread-tile", SEV_ADVICE)                                                      \
    X(TILE_REPEAT, "tile-repeat", SEV_ADVICE)                                                      \
    X(SERIALISED, "serialised", SEV_ADVICE)                                                        \
    X(FENCE_UNNEEDED, "fence-unneeded", SEV_ADVICE)                                                \
    X(SETMAXNREG, "setmaxnreg", SEV_ERROR)                                                         \
    X(TRAP, "trap", SEV_ERROR)                                                                     \
    X(UNSUPPORTED, "unsupported", SEV_ERROR)

enum finding_kind {
#define X(name, text, severity) FIND_##name,
    FINDING_KINDS(X)
#undef X
    FIND_COUNT
};

#define FINDING_CAUSES(X)                                                                          \
    X(NONE, "")                                                                                    \
    X(ARRIVAL_COUNT, "arrival-count")                                                              \
    X(NO_PRODUCER, "no-producer")                                                                  \
    X(PHASE, "phase")                                                                              \
    X(TX_BYTES, "tx-bytes")                                                                        \
    X(PARTICIPANTS, "participants")                                                                \
    X(EXITED, "exited")                                                                            \
    X(CYCLE, "cycle")                                                                              \
    X(TRIP_COUNT, "trip-count")                                                                    \
    X(TMEM_ALLOC, "tmem-alloc")                                                                    \
    X(SETMAXNREG, "setmaxnreg")                                                                    \
    X(CLUSTER, "cluster")

enum finding_cause {
#define X(name, text) CAUSE_##name,
    FINDING_CAUSES(X)
#undef X
    CAUSE_COUNT
};

enum { FINDING_RELATED = 8 };

struct finding_related {
    const char *file;
    uint32_t line;
    char note[200];
};

struct finding {
    enum finding_severity severity;
    enum finding_kind kind;
    enum finding_cause cause;
    const char *kernel, *file, *instr; /* instr: the instruction's text */
    uint32_t line;
    uint32_t group;  /* order key with seq: reports do not depend on host threads */
    uint64_t seq;
    uint32_t cta[3];
    int32_t warp, lane; /* -1: none in particular */
    char object[96];    /* "full_bar[2]", "tile_a[1]", "TMEM columns 256..383", "" */
    char message[1600];
    uint32_t related_count;
    struct finding_related related[FINDING_RELATED];
    uint32_t repeats;   /* identical ones folded into this */
    const char *suppressed; /* the rule that names it, from report_end on; else NULL */
};

enum verdict { VERDICT_CLEAN, VERDICT_REVIEW, VERDICT_INCOMPLETE, VERDICT_ERROR };

/*
 * Why a verdict speaks only for the order that ran, strongest reason first; without one it is proved:
 * it holds for every order that the program allows (protocol.h). A wait with its failed polls is one
 * event: code that does something else after a False is taken to come to the same.
 */
#define SAMPLED_REASONS(X)                                                                         \
    X(UNCHECKED, "nothing looked at the order (HEWN_SIM_CHECK=0)")                                 \
    X(INCOMPLETE, "part of it was not modelled, or not looked at")                                 \
    X(GENERATIONS, "an arrival here may count in another generation of the named barrier")         \
    X(READ, "what this reads may depend on when it reads")                                         \
    X(CHANCE, "what this returns depends on the schedule")                                         \
    X(COLUMNS, "which CTA of an SM gets its tensor memory first depends on the order")             \
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
/* The launch's verdict is sampled: `line` of `file` (NULL: no place) is why. Of several reasons the
 * first in order stands, whichever came first in time. Thread-safe. */
void report_sampled(struct report *r, enum sampled_reason reason, const char *file, uint32_t line);
uint32_t report_count(const struct report *r, enum finding_severity severity);
/* Writes everything (JSON to HEWN_SIM_REPORT, text to stderr unless HEWN_SIM_QUIET=1), ordered by
 * (group, seq), then the verdict and how it was reached; frees the report. */
enum verdict report_end(struct report *r);

const char *finding_kind_text(enum finding_kind kind);
const char *finding_cause_text(enum finding_cause cause);

#endif
