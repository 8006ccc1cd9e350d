/* Findings: what is wrong with a program, where, and in which words. */
#ifndef SIM_FINDING_H
#define SIM_FINDING_H

#include <stdint.h>

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
    const char *suppressed; /* the rule that names it, once the report is complete; else NULL */
};

/* Where the findings of a launch go. Several threads may call it. */
struct finding_sink {
    /* Copies the finding. */
    void (*add)(struct finding_sink *s, const struct finding *f);
};

#endif
