/* Findings: what is wrong with a program, where, and in which words. */
#ifndef SIM_FINDING_H
#define SIM_FINDING_H

#include <stdint.h>

enum finding_severity { SEV_ERROR, SEV_WARNING, SEV_ADVICE };

/* Kind as printed, usual severity, meaning. Add, never rename. */
#define FINDING_KINDS(X)                                                                          \
    X(DEADLOCK, "deadlock", SEV_ERROR, "No warp can continue. The cause says why.")               \
    X(MBARRIER_UNINIT, "mbarrier-uninit", SEV_ERROR, "An mbarrier is used before mbarrier.init.") \
    X(MBARRIER_OVERRUN, "mbarrier-overrun", SEV_ERROR,                                            \
      "More arrivals come than the phase has pending.")                                           \
    X(MBARRIER_TX, "mbarrier-tx", SEV_ERROR,                                                      \
      "The bytes that arrive differ from the bytes expected.")                                    \
    X(MBARRIER_PHASE, "mbarrier-phase", SEV_ERROR,                                                \
      "A wait ends, or may end, with another phase than the one that it is for.")                 \
    X(MBARRIER_CLOBBER, "mbarrier-clobber", SEV_ERROR, "A live mbarrier is overwritten.")         \
    X(MBARRIER_INIT_ORDER, "mbarrier-init-order", SEV_ERROR,                                      \
      "An mbarrier is used where its initialisation is not yet visible.")                         \
    X(RACE, "race", SEV_ERROR, "Nothing orders two accesses, of which at least one is a write.")  \
    X(PROXY, "proxy", SEV_ERROR,                                                                  \
      "Ordered accesses use the generic and the async proxy without a proxy fence.")              \
    X(ASYNC_REUSE, "async-reuse", SEV_ERROR,                                                      \
      "Memory is used again while an asynchronous operation may still access it.")                \
    X(TENSORMAP_PROXY, "tensormap-proxy", SEV_ERROR,                                              \
      "A changed tensor map is used without the tensor map proxy fence.")                         \
    X(TMEM_RACE, "tmem-race", SEV_ERROR, "Nothing orders two accesses to tensor memory.")         \
    X(TMEM_WAIT, "tmem-wait", SEV_ERROR,                                                          \
      "An operation on tensor memory is not waited for. Warning, level 2: only a fence is "       \
      "missing.")                                                                                 \
    X(TMEM_UNINIT, "tmem-uninit", SEV_ERROR,                                                      \
      "Columns of tensor memory are read that nothing has written.")                              \
    X(TMEM_BOUNDS, "tmem-bounds", SEV_ERROR, "An access lies outside the allocated columns.")     \
    X(TMEM_LANE, "tmem-lane", SEV_ERROR,                                                          \
      "A warp names lanes of tensor memory that belong to another warp.")                         \
    X(TMEM_ALLOC, "tmem-alloc", SEV_ERROR, "An allocation of tensor memory breaks a rule.")       \
    X(TMEM_DEALLOC, "tmem-dealloc", SEV_ERROR,                                                    \
      "Columns are freed while in use, or used after they were freed.")                           \
    X(TMEM_LEAK, "tmem-leak", SEV_ERROR, "A CTA exits and has not freed its columns.")            \
    X(MMA_DESC, "mma-desc", SEV_ERROR, "A matrix or instruction descriptor breaks a rule.")       \
    X(WGMMA_FENCE, "wgmma-fence", SEV_ERROR,                                                      \
      "wgmma uses registers without the wgmma.fence that must come before.")                      \
    X(WGMMA_WAIT, "wgmma-wait", SEV_ERROR,                                                        \
      "An accumulator or operand is touched before the wait that allows it.")                     \
    X(COLLECTIVE_PARTIAL, "collective-partial", SEV_ERROR,                                        \
      "Not all threads of the warp or CTA execute a collective instruction together.")            \
    X(BARRIER_ID, "barrier-id", SEV_ERROR,                                                        \
      "One named barrier is used with two thread counts, or by two unordered sets of warps.")     \
    X(CLUSTER_EXIT, "cluster-exit", SEV_ERROR,                                                    \
      "A CTA exits while another CTA still uses its shared memory.")                              \
    X(CLUSTER_START, "cluster-start", SEV_ERROR,                                                  \
      "A CTA uses shared memory of another CTA that may not have started.")                       \
    X(CLUSTER_CANCEL, "cluster-cancel", SEV_ERROR,                                                \
      "A cluster is requested after a request failed, or a failed request's answer is read.")     \
    X(PENDING_AT_EXIT, "pending-at-exit", SEV_ERROR,                                              \
      "A CTA exits while a copy that uses its shared memory is in flight.")                       \
    X(COMMIT_EMPTY, "commit-empty", SEV_WARNING, "tcgen05.commit has no operation to wait for.")  \
    X(OOB, "oob", SEV_ERROR, "An address lies outside every allocation and variable.")            \
    X(MISALIGNED, "misaligned", SEV_ERROR, "An address is not a multiple of the access size.")    \
    X(USE_AFTER_FREE, "use-after-free", SEV_ERROR, "Memory is used after it was freed.")          \
    X(UNINIT, "uninit", SEV_ERROR,                                                                \
      "wgmma reads unwritten registers. Warning, level 2 only: unwritten shared memory.")         \
    X(SMEM_LIMIT, "smem-limit", SEV_ERROR,                                                        \
      "A launch wants more shared memory than the function or the device allows.")                \
    X(TMA_DESC, "tma-desc", SEV_ERROR, "A tensor map, or a copy through it, breaks a rule.")      \
    X(TMA_OOB_BOX, "tma-oob-box", SEV_WARNING, "A box lies wholly outside its tensor.")           \
    X(LAYOUT, "layout", SEV_ERROR,                                                                \
      "A descriptor does not fit the way in which a tensor copy staged the operand.")             \
    X(UNREAD_TILE, "unread-tile", SEV_ADVICE, "Staged bytes are never read.")                     \
    X(TILE_REPEAT, "tile-repeat", SEV_ADVICE, "The same box is loaded again.")                    \
    X(SERIALISED, "serialised", SEV_ADVICE,                                                       \
      "Each asynchronous operation is waited for right after its issue.")                         \
    X(FENCE_UNNEEDED, "fence-unneeded", SEV_ADVICE,                                               \
      "With --advise: the launch is proved without this fence or barrier too.")                   \
    X(STALE_COUNTER, "stale-counter", SEV_ERROR,                                                  \
      "A counter still has the value that an earlier launch left, which changes a decision.")     \
    X(SETMAXNREG, "setmaxnreg", SEV_ERROR, "setmaxnreg breaks a rule.")                           \
    X(TRAP, "trap", SEV_ERROR, "The kernel executed trap.")                                       \
    X(UNSUPPORTED, "unsupported", SEV_ERROR,                                                      \
      "Not modelled, or a limit was reached. The verdict is incomplete.")

enum finding_kind {
#define X(name, text, severity, meaning) FIND_##name,
    FINDING_KINDS(X)
#undef X
        FIND_COUNT
};

/* Cause of a deadlock as printed, meaning. Add, never rename. */
#define FINDING_CAUSES(X)                                                                   \
    X(NONE, "", "")                                                                         \
    X(ARRIVAL_COUNT, "arrival-count", "Fewer arrivals come than the barrier expects.")      \
    X(NO_PRODUCER, "no-producer",                                                           \
      "Nothing in the program arrives on the barrier or copies to it.")                     \
    X(PHASE, "phase", "The wait names the wrong parity.")                                   \
    X(TX_BYTES, "tx-bytes", "Fewer bytes come than the barrier expects.")                   \
    X(PARTICIPANTS, "participants", "Not all threads of a barrier or collective reach it.") \
    X(EXITED, "exited", "A warp or CTA that should arrive has exited.")                     \
    X(CYCLE, "cycle", "Warps wait for each other.")                                         \
    X(TRIP_COUNT, "trip-count", "The loops of two roles run a different number of times.")  \
    X(TMEM_ALLOC, "tmem-alloc", "tcgen05.alloc waits for columns that nobody frees.")       \
    X(SETMAXNREG, "setmaxnreg", "setmaxnreg.inc waits for registers that nobody releases.") \
    X(CLUSTER, "cluster", "A CTA of the cluster does not reach the cluster barrier.")

enum finding_cause {
#define X(name, text, meaning) CAUSE_##name,
    FINDING_CAUSES(X)
#undef X
        CAUSE_COUNT
};

struct ptx_loc;
/* What practice relies on and the ISA does not allow, or what is legal and often an error: its name, the
 * level from which on it is looked for, the section of the PTX ISA. Counted in the verdict, and a warning at
 * level 2. */
#define IDIOMS(X)                                                                            \
    X(LANES_IN_STEP, "lanes-in-step", 1,                                                     \
      "Lanes of one warp hand data to one another and rely on running together.",            \
      "Instruction bar.warp.sync")                                                           \
    X(LANES_SPEAK, "lanes-speak", 2,                                                         \
      "One lane fences, arrives or waits for what other lanes of its warp have done.",       \
      "Instruction bar.warp.sync")                                                           \
    X(REFILL_UNFENCED, "refill-unfenced", 1,                                                 \
      "Memory is read, then written by an asynchronous copy, with no proxy fence between.",  \
      "Async Proxy")                                                                         \
    X(INIT_UNFENCED, "init-unfenced", 2,                                                     \
      "A copy signals an mbarrier whose init no fence has made visible to the async proxy.", \
      "Async Proxy")                                                                         \
    X(RELEASE_LENT, "release-lent", 1,                                                       \
      "A thread sets a flag after a CTA barrier, but other threads made the fence.",         \
      "Release and acquire patterns")                                                        \
    X(ACQUIRE_LENT, "acquire-lent", 1,                                                       \
      "A thread polls a flag, but after a CTA barrier another thread makes the fence.",      \
      "Release and acquire patterns")                                                        \
    X(WAIT_RELAXED, "wait-relaxed", 1,                                                       \
      "A relaxed wait or read, with a CTA barrier behind it in place of a fence.",           \
      "Release and acquire patterns")                                                        \
    X(TICKET_UNFENCED, "ticket-unfenced", 1,                                                 \
      "An atomic shows that others are done; their data is used without a fence after it.",  \
      "Causality order")                                                                     \
    X(AFTER_MISSING, "after-missing", 1,                                                     \
      "tcgen05.fence::after_thread_sync is missing after a wait.",                           \
      "tcgen05 Memory Consistency Model")                                                    \
    X(BEFORE_MISSING, "before-missing", 2,                                                   \
      "tcgen05.fence::before_thread_sync is missing after tcgen05.wait.",                    \
      "tcgen05 Memory Consistency Model")                                                    \
    X(LOAD_USED, "load-used", 1,                                                             \
      "Only the use of its registers waits for a tcgen05.ld, no tcgen05.wait::ld.",          \
      "Instruction tcgen05.ld")                                                              \
    X(SCOPE_LEFT_OUT, "scope-left-out", 1,                                                   \
      "Tensor memory, or shared memory to be written over, is handed to another CTA by an "  \
      "mbarrier arrival or wait of .cta scope.",                                             \
      "Instruction mbarrier.arrive")                                                         \
    X(COLUMNS_LEFT, "columns-left", 1,                                                       \
      "Columns are freed, or stored to, after a relaxed barrier of the cluster.",            \
      "Instruction barrier.cluster")                                                         \
    X(COPY_QUEUED, "copy-queued", 1,                                                         \
      "tcgen05.cp writes what an earlier tcgen05.mma of its thread may still use.",          \
      "tcgen05 Memory Consistency Model")                                                    \
    X(QUARTER_LEFT_OUT, "quarter-left-out", 1,                                               \
      "An address of tensor memory names quarter 0 instead of the warp's own lanes.",        \
      "tcgen05 Access restrictions")                                                         \
    X(COMMIT_WINDOW, "commit-window", 1,                                                     \
      "tcgen05.commit is given a shared address where a generic one belongs.",               \
      "Instruction tcgen05.commit")                                                          \
    X(COMMIT_UNWAITED, "commit-unwaited", 1,                                                 \
      "A CTA ends, and nobody has waited for its last tcgen05.commit.",                      \
      "Instruction tcgen05.commit")                                                          \
    X(STORE_UNWAITED, "store-unwaited", 1,                                                   \
      "A CTA ends before its last bulk stores are known to have read shared memory.",        \
      "Instruction cp.async.bulk.wait_group")                                                \
    X(COPY_UNWAITED, "copy-unwaited", 1,                                                     \
      "A CTA ends before its last cp.async copies are known to be complete.",                \
      "Instruction cp.async.wait_group")                                                     \
    X(PADDING_READ, "padding-read", 2, "Shared memory is read that nobody has written.",     \
      "Instruction ld")                                                                      \
    X(UNWRITTEN_STORED, "unwritten-stored", 1,                                               \
      "Global memory gets values that depend on shared memory that nobody has written.",     \
      "Instruction ld")                                                                      \
    X(BOX_BESIDE, "box-beside", 1,                                                           \
      "A box lies wholly outside its tensor, others of the same stage do not (legal).",      \
      "Instruction cp.async.bulk.tensor")

enum idiom {
#define X(name, text, level, meaning, section) IDIOM_##name,
    IDIOMS(X)
#undef X
        IDIOM_COUNT
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
    uint32_t ptx_line;         /* of the PTX text; 0: none. As `line` where the text has no .loc */
    const struct ptx_loc *loc; /* of the source that the text was compiled from, or NULL */
    uint32_t group;            /* order key with seq: reports do not depend on host threads */
    uint64_t seq;
    uint32_t
        behind; /* a race on what decides nothing: offset of the mbarrier that the later side last waited for; arrivals
                        too many: of their mbarrier; else 0 */
    uint32_t cta[3];
    int32_t warp, lane; /* -1: none in particular */
    char object[96];    /* "full_bar[2]", "tile_a[1]", "TMEM columns 256..383", "" */
    char message[1600];
    uint32_t related_count;
    struct finding_related related[FINDING_RELATED];
    uint32_t repeats;       /* identical ones folded into this */
    const char *suppressed; /* the rule that names it, once the report is complete; else NULL */
};

/* Where the findings of a launch go. Several threads may call it. */
struct finding_sink {
    /* Copies the finding. */
    void (*add)(struct finding_sink *s, const struct finding *f);
    /* An idiom at a line; NULL: nobody counts them. */
    void (*idiom)(struct finding_sink *s, enum idiom idiom, const char *file, uint32_t line);
};

#endif
