/*
 * The machine: what exists while a launch runs, and who owns it.
 *
 *   launch ─ group ─┬─ sm (tensor memory, registers)      one group = the SMs that one cluster needs;
 *                   ├─ cluster ─ cta ─ warp ─ frag         a group runs on one host thread at a time,
 *                   └─ async operations in flight          has its own clock and random stream
 *
 * Clusters are dealt to groups round-robin and in order, so what happens inside a group depends
 * on the seed alone, never on host threads. Where a kernel lets clusters talk (OPF_GLOBAL_SYNC) all
 * groups advance in turn on one thread; else groups run to completion, several at a time.
 *
 * A waiting fragment does not spin: its handler returned STEP_BLOCK with frag.wait set, and sim_wake
 * makes it run the same instruction again.
 */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include "decode/decode.h"
#include "machine/finding.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    CTA_WARPS = 32,
    CLUSTER_CTAS = 16,
    NAMED_BARRIERS = 16,
    TMEM_LANES = 128,
    TMEM_COLUMNS = 512
};

/* What a simulated device is (HEWN_SIM_GPU); the driver part fills it, the machine reads it. */
struct gpu {
    const char *name;
    uint32_t cc_major, cc_minor;
    uint32_t sm_count;
    uint32_t shared_optin, shared_per_sm; /* 232,448 and 233,472 on 9.0 and 10.x */
    uint32_t regs_per_sm, threads_per_sm, ctas_per_sm;
    uint32_t clock_khz, l2_bytes;
    uint64_t memory_bytes;
};

/* name: why a fragment sleeps; the text completes "waits for …" in reports. */
#define WAIT_KINDS(X)                                                                              \
    X(NONE, "")                                                                                    \
    X(CONVERGE, "the other lanes of its warp at a warp-wide instruction")                          \
    X(WARPSYNC, "bar.warp.sync")                                                                   \
    X(MBAR, "an mbarrier phase")         /* key: shared offset, cta: whose, value: parity/phase */ \
    X(BARRIER, "a named barrier")        /* key: id */                                             \
    X(CLUSTER, "the cluster barrier")                                                              \
    X(GROUPS, "its commit groups")       /* key: enum commit_kind */                               \
    X(TENSOR, "its tensor-memory accesses")                                                        \
    X(TMEM_ALLOC, "free tensor-memory columns")                                                    \
    X(REGISTERS, "registers of the pool (setmaxnreg)")                                             \
    X(SPIN, "a value in memory to change")                                                         \
    X(SLEEP, "nanosleep")              /* value: clock at which it ends */

enum wait_kind {
#define X(name, text) WAIT_##name,
    WAIT_KINDS(X)
#undef X
};

struct wait {
    uint8_t kind;
    bool ready;    /* woken: run the instruction again */
    bool arrived;  /* barriers: this fragment's arrival is already counted */
    bool expired;  /* polls: nothing can make it true now; answer False */
    uint32_t need; /* lanes a CONVERGE/WARPSYNC wants */
    uint32_t key;
    struct cta *cta; /* whose object */
    uint64_t value;
    uint64_t last_poll; /* hash of the warp's state at an earlier answer False, 0 if none */
    uint64_t poll_progress; /* group->progress then */
    uint32_t polls, poll_window; /* answers False since, and after how many the hash is renewed */
    bool stuck;         /* a poll that came round to the same state with nothing changed between */
    bool timed;         /* WAIT_SPIN: time alone may end it; value: clock at which to look again */
    uint64_t since;     /* group clock when it fell asleep */
};

/* Lanes that share a program counter. Masks of a warp's fragments are disjoint, their union is
 * warp.live. */
struct frag {
    uint32_t pc, mask;
    struct wait wait; /* kind WAIT_NONE while runnable */
    /* Spin detection (exec.c): backward branches since it last blocked, and a sample of its state. */
    uint32_t back;
    uint32_t look; /* it is not looked at again before `back` is as large */
    uint32_t watch_pc, watch_left;
    uint64_t watch_hash, watch_changes;
    uint32_t round; /* `back` when it last came to a state again though memory had changed; 0: never */
    uint64_t watch_clock; /* what its clocks show while it is watched; 0: it has read none since */
    bool deferred; /* others of the warp go first: it has looped for long */
};

struct call_stack; /* calls.h */
struct warp_async; /* async.h: commit groups, tensor pipes, in-flight registers */
struct mbar_table; /* mbar.h */
struct async_heap;
struct launch;
struct machine_hooks;
struct watcher; /* event.h */
struct steerer; /* steer.h */
struct late; /* async/late.h */

/* What observers keep with a warp or a CTA, each in a slot of its own that nobody else looks at. */
enum observer_slot { SLOT_CHECK, SLOT_TRACE, SLOT_LATE, OBSERVER_SLOTS };
union kept {
    void *at;
    uint32_t number;
};

enum { MEM_HINTS = 4, REG_MOVES = 4 };

struct warp {
    uint8_t *bank[2]; /* [BANK_REGS] mutable, [BANK_CONST] shared by all warps of the kernel */
    struct cta *cta;
    uint32_t id;      /* in its CTA */
    uint32_t live;    /* lanes that have not exited */
    uint32_t born;    /* lanes that it began with */
    bool undefined;   /* EV_EXCHANGE has said that registers of it hold what the ISA leaves undefined, or the
                         checker has found it of a load: EV_VALUES are published */
    uint32_t frag_count, current;
    struct frag frags[WARP_LANES];
    uint32_t reg_quota;   /* registers per thread, moved by setmaxnreg */
    const struct insn *reg_moves[REG_MOVES]; /* the first setmaxnreg that it executed */
    uint32_t reg_moved;   /* how many it has executed */
    struct warp_async *async;
    uint32_t loading; /* loads in flight whose registers are still to come (tcgen05.ld) */
    struct call_stack *calls; /* NULL before its first call */
    uint8_t *local;       /* local memory, WARP_LANES x kernel local_bytes, or NULL */
    const void *mem_hints[MEM_HINTS]; /* mem.h: allocations touched of late, the newest first */
    uint32_t carry;       /* the condition code's carry flag, bit = lane (add.cc and its kin) */
    uint64_t steps;       /* instructions executed, all fragments */
    uint64_t blocked_steps; /* of these, such as only fell asleep, to be executed again */
    uint64_t lane_steps;  /* lane-instructions executed */
    struct pipe_work work;     /* of `steps` that are not blocked; wraps */
    uint32_t run_slot;    /* place in the group's list of runnable warps, or NO_SLOT */
    uint32_t cluster_arrived; /* lanes that arrived in the cluster barrier's current phase */
    uint32_t cluster_armed;   /* lanes that arrived and have not waited yet */
    const struct insn *last_barrier; /* the barrier instruction it last passed, for reports */
    union kept kept[OBSERVER_SLOTS]; /* zero when it starts */
};
#define NO_SLOT UINT32_MAX

enum barrier_reduce { REDUCE_NONE, REDUCE_POPC, REDUCE_AND, REDUCE_OR };

struct named_barrier {
    bool whole;        /* no count given: every thread of the CTA that has not exited */
    uint8_t reduce;    /* enum barrier_reduce of the current generation */
    uint32_t expected; /* threads, 0 while idle */
    uint32_t arrived;  /* threads */
    uint64_t generation;
    uint64_t warps_arrived, warps_waiting; /* bit = warp id */
    uint32_t lanes[CTA_WARPS]; /* that arrived, by warp; all-ones once the warp is counted whole */
    uint32_t votes, voters;    /* barrier.red: lanes whose predicate was true; lanes that voted */
    uint32_t result;           /* of the last completed reduction */
    const struct insn *in;     /* an instruction that arrived, for reports */
};

/* A CTA's half of a cta_group::2 allocation in progress; all zero when there is none. */
struct tmem_pair {
    struct warp *warp; /* asks, waiting for the peer or for columns */
    uint32_t columns;
    bool granted;      /* the peer took columns for both, from chunk `first` on */
    uint32_t first;
};

struct cta {
    struct group *group;
    struct cluster *cluster;
    struct sm *sm;
    uint32_t id[3], linear; /* in the grid */
    uint32_t rank;          /* in the cluster */
    uint8_t *shared;        /* shared_bytes, indexed by window offset (reserved part included) */
    uint32_t shared_bytes;
    uint32_t dynamic_offset; /* window offset of extern shared */
    struct named_barrier barriers[NAMED_BARRIERS];
    struct mbar_table *mbars;
    struct warp *warps;
    uint32_t warp_count, warps_live;
    int64_t pool_free;      /* registers released by setmaxnreg.dec and not yet taken */
    uint32_t tmem_held;     /* columns allocated and not freed */
    uint32_t tmem_freed;    /* bit c: chunk c was its own, and it gave it back */
    const struct insn *tmem_free_in; /* by this instruction, the last that did */
    bool tmem_relinquished;
    uint32_t tmem_wanted;   /* columns that a warp waits for, 0 none */
    uint32_t tmem_smallest; /* smallest allocation so far (an alloc may not grow), 0 none */
    struct tmem_pair tmem_pair;
    uint32_t cta_group;     /* cta_group of the first tcgen05 instruction, 0 none yet */
    uint64_t in_flight;     /* async operations that still touch this CTA's memory or barriers */
    union kept kept[OBSERVER_SLOTS]; /* zero in fresh memory; stays for the next CTA there */
};

struct cluster {
    struct group *group;
    uint32_t linear, id[3];
    uint32_t cta_count, ctas_live;
    struct cta *ctas[CLUSTER_CTAS];
    /* barrier.cluster: one phase */
    uint32_t arrived_threads, live_threads; /* arrived ones that have not exited; not exited */
    uint64_t phase;
    bool cancel_failed; /* a thread of it saw clusterlaunchcontrol.try_cancel fail */
};

/* Tensor memory by column: cell[c][lane], so that a column is 128 consecutive words. */
struct sm {
    uint32_t id;
    uint32_t (*tmem)[TMEM_LANES];    /* [TMEM_COLUMNS], allocated at first use */
    struct cta *tmem_owner[TMEM_COLUMNS / 32]; /* by 32-column chunk */
    uint8_t tmem_base[TMEM_COLUMNS / 32];      /* 1 at the first chunk of an allocation */
    uint8_t tmem_chunks[TMEM_COLUMNS / 32];    /* at that chunk: length in chunks */
};

/*
 * The extremes a seed goes to, by its remainder modulo 4, so that four seeds in a row meet them all.
 * Work in flight takes effect: 1 at times about typical, now and then at an extreme; 2 as early as
 * is legal; 3 as late, when warps have long had nothing else to do; 0 each operation at one of the two.
 * With 3, what needs a fence to be visible is visible as late as its absence allows (async/late.h).
 * With 1 every runnable warp is as likely to be next; with the others half the groups run the warp
 * that ranks first as long as it can, and the last one only when no other can, until ranks are redrawn.
 */
enum temper { TEMPER_TORN, TEMPER_MIXED, TEMPER_EAGER, TEMPER_LAZY, TEMPER_COUNT };

enum { GROUP_ALIGN = 128 };

struct group {
    /* Groups lie behind one another and are run by different host threads: no cache line, nor the pair
     * that a processor fetches, holds parts of two. */
    _Alignas(GROUP_ALIGN) struct launch *launch;
    uint32_t index;
    enum temper temper;
    bool ranked;        /* warps run by rank, a hash of their place and this salt */
    uint64_t rank_salt;
    uint64_t now;      /* cycles */
    uint64_t progress; /* bumped by every change of state that a waiting fragment could see */
    /* Fragments asleep in WAIT_SPIN or under watch. While it is not 0, whoever changes memory (a
     * store, an atomic or an asynchronous write that leaves another value than it found) calls
     * sim_wake_all(g, WAIT_SPIN). */
    uint32_t spinning;
    bool meetings; /* somebody wants EV_TOGETHER */
    uint64_t rng;
    struct sm *sms;
    uint32_t sm_count;
    struct cluster **resident; /* clusters running here */
    uint32_t resident_count, resident_limit;
    uint32_t next_cluster;     /* next linear cluster index of this group */
    struct async_heap *heap;
    uint64_t async_seq;
    struct observer *observer; /* event.h: first of a list; NULL when nobody watches */
    struct late *late; /* async/late.h: what is visible late; NULL: nothing */
    uint64_t lane_steps;
    uint64_t finding_seq;  /* orders this group's findings */
    uint32_t *idioms;      /* [kernel->insn_count]: bit = enum idiom that has been counted there; NULL: none */
    struct warp **runnable; /* warps with a fragment that can run */
    uint32_t runnable_count, runnable_capacity;
    uint32_t poll_step;    /* cycles by which the clock moves when only polls are left */
    uint64_t time_step;    /* cycles by which it moves when the polls wait for nothing but time */
    uint64_t clock_held;   /* what the program's clocks show while only polls are left: sched.c */
    uint32_t clock_reads;  /* since it was set, or since polls were last answered and one before */
    uint64_t poll_progress; /* `progress` when poll_step was last reset */
    uint64_t changes;      /* of memory, while somebody spins */
    uint64_t next_sleep;   /* clock at which the first nanosleep ends, UINT64_MAX none */
    uint64_t next_look;    /* clock at which the first WAIT_SPIN that is timed looks again, likewise */
    bool together;         /* other groups of the launch may talk to this one, and run in turns with it */
    uint32_t aside;        /* rounds for which it leaves them their turns: between a strong access and what comes next */
    uint32_t draining;     /* clusters without live warps that have operations in flight */
    struct machine_pool *pool; /* cta.c: CTAs to use again */
    char *printed;         /* text of vprintf so far, not terminated */
    size_t printed_bytes, printed_capacity;
    uint32_t ctas_done;
    int result;            /* CUresult of its first fault */
    bool done, failed;
};

struct launch {
    const struct kernel *kernel;
    const struct gpu *gpu;
    const struct machine_hooks *hooks; /* hooks.h */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t dynamic_shared;
    const uint8_t *params; /* param_bytes, 64-byte aligned */
    uint32_t param_bytes;
    uint64_t grid_workspace; /* of a cooperative launch: what its grid barrier counts in; else 0 */
    uint8_t *globals, *consts; /* the module's images */
    uint32_t sm_count, host_threads;
    uint64_t seed;
    bool stays_hung;        /* HEWN_SIM_HANG: where nothing can run any more, polls go on */
    bool (*outside)(struct launch *l); /* nothing can run any more: true when memory may have changed from
                              outside, so that polls should look again; NULL: never */
    void *outside_context;
    int check_level;        /* 0 to 3: how much is to be looked at (HEWN_SIM_CHECK) */
    struct finding_sink *sink; /* for findings; NULL: nobody wants them */
    struct watcher *watchers;  /* event.h: a list; NULL: nobody watches (launch_watch) */
    struct steerer *steerer;   /* steer.h: decides what runs next; NULL: the seed does */
    struct group *groups;
    uint32_t group_count;
    uint32_t ctas_done;    /* for the progress line; __atomic, as is the next */
    uint64_t shown;        /* nanoseconds of the monotonic clock at which it was last drawn or the
                              launch began; 0: not wanted */
    bool drawn;
    uint8_t *executed;     /* of each instruction, whether a lane executed it; NULL: not wanted */
    char *printed;         /* text of vprintf, group after group; the caller frees it */
    size_t printed_bytes;
    int result;            /* CUresult: 0, or the first fault */
};

/* What a program's clock shows, in cycles. It stands still while only polls are left, but not for a loop
 * that does nothing but look at it. */
enum { CLOCK_READS_HELD = 4096 };
static inline uint64_t group_clock(struct group *g)
{
    if (g->poll_progress != g->progress || !g->clock_held) return g->now;
    if (++g->clock_reads > CLOCK_READS_HELD) g->clock_held = g->now;
    return g->clock_held;
}

/* ---- operands ---- */

static inline void *arg_dst(const struct warp *w, struct arg a) { return w->bank[BANK_REGS] + a.offset; }
static inline const void *arg_src(const struct warp *w, struct arg a) { return w->bank[a.bank] + a.offset; }

/* A predicate operand's lanes, negation applied. */
static inline uint32_t arg_pred(const struct warp *w, struct arg a)
{
    uint32_t bits;
    memcpy(&bits, w->bank[a.bank] + a.offset, sizeof bits);
    return a.negated ? ~bits : bits;
}

static inline void arg_set_pred(const struct warp *w, struct arg a, uint32_t mask, uint32_t bits)
{
    uint32_t old;
    if (a.sink) return;
    memcpy(&old, arg_dst(w, a), sizeof old);
    old = (old & ~mask) | (bits & mask);
    memcpy(arg_dst(w, a), &old, sizeof old);
}

/* One lane of a 32- or 64-bit (or 16-bit) operand, zero-extended. */
static inline uint64_t arg_lane(const struct warp *w, struct arg a, uint32_t lane)
{
    const uint8_t *p = arg_src(w, a);
    uint64_t v = 0;
    if (a.bits == 1) return arg_pred(w, a) >> lane & 1U;
    memcpy(&v, p + (size_t)lane * (a.bits / 8U), a.bits / 8U);
    return v;
}

static inline void arg_set_lane(const struct warp *w, struct arg a, uint32_t lane, uint64_t value)
{
    if (a.sink) return;
    memcpy((uint8_t *)arg_dst(w, a) + (size_t)lane * (a.bits / 8U), &value, a.bits / 8U);
}

static inline struct frag *warp_frag(struct warp *w) { return &w->frags[w->current]; }
static inline uint32_t first_lane(uint32_t mask) { return (uint32_t)__builtin_ctz(mask); }

/* ---- scheduling (sched.c) ---- */

/* Puts the current fragment to sleep; returns STEP_BLOCK for the handler to pass on. */
enum step sim_block(struct warp *w, enum wait_kind kind, struct cta *cta, uint32_t key,
                    uint64_t value);
/* Wakes fragments of `cta`'s cluster that wait for (kind, cta, key); any key when key is
 * WAKE_ANY. Counts as progress. */
#define WAKE_ANY UINT32_MAX
void sim_wake(struct cta *cta, enum wait_kind kind, uint32_t key);
/* Wakes every fragment of the group that waits for `kind` (TMEM_ALLOC: other CTAs may wait). */
void sim_wake_all(struct group *g, enum wait_kind kind);

/* Uniform in [0, bound), from the group's seeded stream. */
uint32_t sim_random(struct group *g, uint32_t bound);

/* Runs a launch to its end: returns the CUresult, also left in launch->result. The caller has filled
 * everything above `groups`. */
int launch_run(struct launch *launch);

/* ---- fragments (exec.c) ---- */

/* Runs a warp's fragments for up to `budget` instructions. STEP_BLOCK: all fragments sleep. */
enum step warp_run(struct warp *w, uint32_t budget);
/* Splits lanes off the current fragment: `taken` continue at `target`, the rest at pc+1. */
enum step frag_branch(struct warp *w, uint32_t taken, uint32_t target);
/* Ends lanes of the current fragment. */
enum step frag_exit(struct warp *w, uint32_t lanes);
/* For .sync collectives with a member mask: 1 when the lanes of `need` (less the exited) are all in
 * the current fragment; else puts it to sleep (CONVERGE) until they are, and returns 0. */
int frag_converge(struct warp *w, uint32_t need);

/* ---- faults ---- */

/* Hands a finding that is complete to the launch's sink. */
void sim_report(const struct launch *l, const struct finding *f);
/* Where a finding points: file, lines and text of an instruction. */
void finding_at(struct finding *f, const struct ptx_module *module, const struct ptx_insn *src);

/* Records a finding of error severity and ends the launch with `result`. Returns STEP_FAULT. */
enum step sim_fault(struct warp *w, const struct insn *in, uint32_t lane, int result,
                    enum finding_kind kind, enum finding_cause cause, const char *object,
                    const char *format, ...) __attribute__((format(printf, 8, 9)));

/* For `lane`: none in particular. */
#define NO_LANE UINT32_MAX

/* Records a finding; the launch goes on. `w` may be NULL for what no warp did. */
void sim_find(struct group *g, struct warp *w, const struct insn *in, uint32_t lane,
              enum finding_severity severity, enum finding_kind kind, enum finding_cause cause,
              const char *object, const char *format, ...) __attribute__((format(printf, 9, 10)));
/* Counts an idiom at that instruction, once a group. Warnings of level 2 are the caller's. */
void sim_idiom(struct group *g, const struct insn *in, enum idiom idiom);

#endif
