/*
 * Happens-before in one group. order.c keeps, event by event, what every warp, barrier and
 * asynchronous operation knows of the others. order_access.c compares each access with the shadow
 * of memory; order_judge.c says what two accesses are that are not ordered, and order_tell.c reports them.
 *
 * Each order_cluster has its own clocks, because clusters share global memory only. If a kernel can
 * synchronise through global memory, world.h has its shadow and flags, and a horizon holds what one
 * cluster knows of the others. In other kernels launch_memory.c compares the clusters at the end. A
 * warp is one thread of the order: converged.h and order_lanes.h look at the lanes of a warp.
 *
 * The rules come from the PTX ISA: the memory consistency model, "Asynchronous operations" and
 * "Proxies". Where the ISA leaves a rule open, the comment says "interpretation".
 */
#ifndef SIM_ORDER_H
#define SIM_ORDER_H

#include "async/async.h"
#include "check/clock.h"
#include "check/report.h"
#include "check/shadow.h"
#include "check/world.h"
#include "machine/event.h"

struct check;

/*
 * Components of a clock. Those of one warp up to COMPONENT_CHAINS are chains: their operations
 * complete in order, so one number stands for all earlier ones. A copy that completes on an
 * mbarrier has a slot instead. All copies of one warp for one phase of one barrier share a number,
 * because the phase completes only when all of them have. A slot is free again once its warp has
 * seen it complete.
 */
#define COMPONENT_KINDS(X)                                                                       \
    X(WARP, "the warp itself")                                                                   \
    X(TENSOR, "tcgen05.mma, cp, shift")                                                          \
    X(TENSOR_FENCED, "those before a tcgen05.fence::before_thread_sync, complete or not")        \
    X(TMEM_LD, "tcgen05.ld")                                                                     \
    X(TMEM_ST, "tcgen05.st")                                                                     \
    X(LD_FENCED, "loads before a tcgen05.fence::before_thread_sync, in numbers of TMEM_LD")      \
    X(LD_USED, "loads some of whose registers their warp has used since, in numbers of TMEM_LD") \
    X(ST_FENCED, "stores likewise")                                                              \
    X(WGMMA, "wgmma.mma_async")                                                                  \
    X(CP_ASYNC, "cp.async")                                                                      \
    X(BULK_READ, "bulk-group operations, as far as they read their source")                      \
    X(BULK_DONE, "bulk-group operations")                                                        \
    X(GRID, "the grid before, which griddepcontrol.wait waits for; its number is 1")             \
    X(INIT_FENCED, "mbarrier.init before a fence.mbarrier_init, in the warp's own numbers")      \
    X(CHAINS, "")                                                                                \
    X(COPY, "copies by the async proxy that complete on an mbarrier")                            \
    X(REMOTE_STORE, "st.async and red.async")

enum component_kind {
#define X(name, text) COMPONENT_##name,
    COMPONENT_KINDS(X)
#undef X
};

enum { ISSUES_KEPT = 8 };

struct component {
    uint8_t kind;
    struct order_warp *warp;
    uint32_t number; /* of its latest action; a warp's own: under which accesses are filed now */
    uint32_t actor;  /* of the world; 0 before its first access to global memory */
    /* The issuing warp's own number when action n was issued: issued[n % ISSUES_KEPT]. */
    uint32_t issued[ISSUES_KEPT];
    /* Slots: where the copies of `number` complete, and what the first of them wrote over. */
    struct order_bar *bar;
    uint64_t phase;
    epoch over;
    const struct insn *in; /* of the first of them */
};

/* Which operations of a warp's chain are complete: of each lane those up to done[lane], so all up to `prefix`. */
struct lane_cover {
    uint32_t done[WARP_LANES], prefix;
};

/*
 * Commit groups of one kind: after which action of the chain each lane's last groups ended. Groups belong to a
 * thread, and a chain to the warp: `lane_of` says which lane issued each action. A lane that works by itself,
 * while operations of other lanes are in flight, has chains of its own.
 */
enum { GROUPS_KEPT = 16 };
struct order_groups {
    uint32_t closed[WARP_LANES];
    uint32_t end[WARP_LANES][GROUPS_KEPT]; /* of group n (from 0): [n % GROUPS_KEPT] */
    uint8_t *lane_of;                      /* [number - 1] */
    uint32_t count, capacity;
    uint64_t step; /* of the last instruction that issued; its lanes so far */
    uint32_t step_lanes;
    uint64_t source;      /* from where that instruction's first bulk store reads */
    bool several_sources; /* others of it read elsewhere */
    uint32_t alone;       /* lanes that have waited while operations of others were in flight */
    struct lane_cover cover[2];  /* sources read; complete */
    uint32_t own[WARP_LANES][2]; /* components; 0: none */
    uint32_t own_end[WARP_LANES][GROUPS_KEPT];
};

/* A warp's last generic read ([0]) and write ([1]) in another CTA's shared memory: the warp's
 * number then, and the instruction. */
struct order_reach {
    uint32_t number[2];
    const struct insn *in[2];
};

/* The last waits that a warp passed, at most PASSES_KEPT. */
enum { PASSES_KEPT = 128 };
struct order_passes {
    struct {
        const struct insn *in;
        uint32_t key; /* the mbarrier's offset, the barrier's number */
        uint64_t step;
    } at[PASSES_KEPT];
    uint32_t count;
};
/* How far two threads are apart. Synchronisation needs a scope that includes both. */
enum reach { REACH_CTA, REACH_CLUSTER, REACH_GPU, REACHES };

struct order_warp {
    struct warp *warp;
    struct order_cta *cta;
    struct stamp now;
    uint32_t chain[COMPONENT_CHAINS]; /* components; 0 until first used */
    bool released;        /* `now` was handed over: the next access needs a new number */
    uint32_t version;     /* changes whenever `now` does */
    uint64_t arrive_step; /* of the warp's last arrival at an mbarrier */
    /* By enum reach. fenced: `now` at the last fence, which later relaxed writes release. observed:
     * what relaxed reads saw, which the next fence acquires. */
    struct stamp fenced[REACHES], observed[REACHES];
    struct horizon *posted,
        *posted_bridged;     /* fenced[REACH_GPU] for other clusters; made when needed */
    const struct insn *lent; /* order_flag.lent of the flag that relaxed reads saw; NULL: none */
    struct clock after;      /* `now` at the last tcgen05.fence::after_thread_sync */
    struct order_groups *groups[COMMIT_KINDS];
    uint32_t
        tensor[WARP_LANES]; /* number of each lane's last action of the chain TENSOR; 0: none */
    uint32_t *slots, slot_count, slot_capacity; /* components */
    struct wgmma_regs *regs;                    /* order_regs.c */
    struct undefined *undefined;                /* undefined.c; NULL: nothing was */
    struct order_reach *reaches;                /* [CLUSTER_CTAS], by rank; NULL: none yet */
    struct order_passes *passes;                /* NULL: none yet */
    struct order_taken *taken;                  /* order_lock.c; NULL: nothing was taken */
    struct converged *converged;                /* converged.c; NULL: no access yet */
    struct heard *heard;                        /* heard.c; NULL: no lane ever waited alone */
    struct fenced *fenced_for;                  /* fenced.c; NULL: no lane has written yet */
    /* A lane has made a fence between proxies since the warp's last wait: for shared [0], for global memory [1]. */
    bool fenced_since[2];
    uint32_t running; /* bit = rank: the CTA is known to run, or its absence was reported */
    const struct insn *acquired, *handed_over; /* its last acquire and release, for reports */
};

/* A barrier with many arrivals. `current` joins what they release; `done` is what a wait for the
 * last complete generation or phase acquires. `current` is never cleared: a later phase comes after
 * all earlier ones. */
struct sync_point {
    uint64_t generation;
    struct stamp current, done;
};

struct bar_copy {
    uint32_t component, number;
    uint64_t phase;
};

struct bar_cover {
    uint32_t component;
    struct lane_cover cover;
};

struct order_bar {
    struct order_cta *cta;
    uint32_t offset;
    bool live;
    struct sync_point point;
    /* What arrivals of other CTAs hand over, in kernels with waits of .cta scope, which take none of it; NULL:
     * none has come, or `point` has it too. */
    struct sync_point *peers;
    epoch init;
    uint32_t init_lane,
        init_fenced;               /* the initialiser's number at its fence.mbarrier_init; 0 none */
    const struct order_warp *last; /* who arrived last, at which of its instructions */
    uint64_t last_step;
    struct bar_copy *copies; /* whose bytes are to come */
    uint32_t copy_count, copy_capacity;
    struct bar_cover *covers; /* of warps whose lanes arrived by cp.async.mbarrier.arrive */
    uint32_t cover_count, cover_capacity;
    /* passed: the last phase that a wait has passed. committed (level 2): the last phase at which a
     * tcgen05.commit arrived, with that commit and its warp. Both plus 1; 0: none. */
    uint64_t passed, committed;
    const struct insn *commit;
    struct order_warp *committer;
    /* The last arrival from another CTA: its phase plus 1, the instruction, the warp and the warp's
     * number. */
    uint64_t reached;
    const struct insn *reach;
    struct order_warp *reacher;
    uint32_t reach_number;
    struct protocol *protocol; /* protocol.c */
};

struct order_cta {
    struct cta *cta;
    struct order_cluster *cluster;
    struct order_warp warps[CTA_WARPS];
    struct sync_point named[NAMED_BARRIERS];
    struct generations *generations[NAMED_BARRIERS]; /* generations.c; NULL: not used yet */
    struct order_bar **bars; /* open addressing by offset, at most half full */
    uint32_t bar_slots, bar_count;
    uint32_t bar_low, bar_high; /* bytes in which live barriers lie */
    /* What fence.proxy.tensormap::generic.acquire made visible to tensor copies: of this cluster, and of
     * others (there by actor.described too). */
    struct clock described;
    struct horizon *described_abroad;
    struct cell *shared; /* SHARED_CELL bytes each */
    uint32_t shared_cells;
    struct cell *tensor; /* [TMEM_COLUMNS][TMEM_BLOCKS], from the first allocation on */
    /* [TMEM_COLUMNS]: lanes that hold undefined values; NULL: none yet */
    uint32_t (*undefined)[TMEM_LANES / WARP_LANES];
    struct undefined_bytes *undefined_bytes; /* of shared memory, undefined.c; NULL: none yet */
    struct spoken *spoken;                   /* spoken.c; NULL: nothing yet */
    epoch paired;                            /* its last tcgen05.alloc with cta_group::2; 0: none */
    bool waited;                             /* a thread executed griddepcontrol.wait */
    bool goes_early; /* one let the next grid begin, and knew of no such wait */
};

/* Strong writes of one location and what they release within the cluster. */
struct order_flag {
    const struct order_cta *cta; /* of shared memory; NULL: global */
    uint64_t address;
    struct stamp
        released; /* with .cluster scope or wider, or any scope if the cluster has one CTA */
    struct stamp
        *narrow; /* [CTAs of the cluster]: with .cta scope; NULL if the cluster has one CTA */
    const struct order_warp *writer; /* of the last store that ended a release sequence */
    uint32_t turn;                   /* of the world's record of the location */
    const struct insn *lent; /* the last write that relied on a fence of another warp; NULL: none */
    uint64_t seen; /* the number of the write that the cluster's last poll of it rests on */
    struct lock_state lock; /* of shared memory; world_flag has it for global memory */
    bool used;
};

/* A tcgen05.commit or cp.async.mbarrier.arrive that has been issued but has not arrived. */
struct order_arrival {
    uint64_t token;
    struct stamp brings;
    struct clock after; /* what it comes after */
    uint64_t step;      /* of the warp, when it was issued */
    uint32_t lane,
        number; /* cp.async.mbarrier.arrive: whose copies, of those up to this one of the chain */
};

struct order_cluster {
    struct order *order;
    struct order_cluster *next;
    const struct cluster *cluster;
    uint32_t linear;
    struct component *components; /* [0] unused */
    uint32_t component_count, component_capacity;
    struct order_cta *ctas[CLUSTER_CTAS];
    /* Its lanes may still be arriving, one by one: converged.c. */
    struct order_warp *speaker;
    struct sync_point barrier; /* barrier.cluster */
    struct clock described;    /* what the release form of that fence covered */
    uint32_t grid;             /* component GRID of some warp; 0 none has waited yet */
    struct order_flag *flags;  /* open addressing, at most half full */
    uint32_t flag_slots, flag_count;
    struct order_arrival *arrivals;
    uint32_t arrival_count, arrival_capacity;
    struct shadow shadow;
};

/* The class of an asynchronous operation: decides its component. */
enum order_class {
    CLASS_OTHER,
    CLASS_MMA,    /* tcgen05.mma, cp, shift */
    CLASS_COMMIT, /* tcgen05.commit */
    CLASS_TMEM_LD,
    CLASS_TMEM_ST,
    CLASS_WGMMA,
    CLASS_CP_ASYNC,
    CLASS_CP_ARRIVE, /* cp.async.mbarrier.arrive */
    CLASS_BULK,      /* completes in a bulk group */
    CLASS_COPY,      /* completes on an mbarrier */
    CLASS_REMOTE_STORE
};
enum { MAPS_KEPT = 64, MAP_BYTES = 128 };

/* The operation that is being issued. */
struct issuing {
    uint64_t token;
    struct order_warp *warp;
    const struct insn *in;
    uint8_t class;
    uint32_t read, write; /* components of its reads and writes; 0: none */
};

enum told_of {
    TOLD_IN_STEP = 1,
    TOLD_APART = 2,
    TOLD_LENT = 4,
    TOLD_COLLIDE = 8,
    TOLD_RELAXED = 16
};

/* order_poll.c: whether what a poll brought decides anything where its loop has ended. */
enum { POLL_EXITS = 64 };
struct poll_exit {
    const struct insn *poll;
    uint32_t pc;
    bool free;
};

struct stored;

enum { VARIED = 64 };
static inline uint32_t varied_slot(epoch e)
{
    return (uint32_t)(e ^ e >> 20 ^ e >> 44) % VARIED;
}

struct order {
    struct group *group;
    struct check *check;
    struct world *world; /* of the launch; NULL if clusters cannot synchronise */
    const struct kernel *kernel;
    int level;
    struct order_cluster *clusters;
    bool *sampled;    /* [kernel->insn_count]: order_sampled was called for it */
    uint8_t *told_of; /* [kernel->insn_count]: what was reported for it, bits of enum told_of */
    struct issuing issuing;
    struct touch touch; /* order_access.c */
    uint32_t touch_version;
    bool touch_strong;
    int touch_place, touch_proxy;
    uint64_t maps[MAPS_KEPT]; /* addresses of tensor maps in global memory that copies have used */
    uint32_t map_count;
    struct told *told;     /* order_tell.c */
    struct stored *stored; /* by instruction, once asked for (constant.h) */
    /* Stores that changed what their warp had stored since its last release: by another instruction; by the same. */
    epoch varied[VARIED], again[VARIED];
    uint32_t told_count, told_capacity;
    struct poll_exit exits[POLL_EXITS];
    uint8_t *polls_seen; /* [kernel->insn_count]: polls.c has looked at it; NULL: at none */
    bool narrow_waits;   /* of .cta scope */
    bool exhausted;      /* memory or a bound ran out: the verdict cannot be clean */
    const char *limit;   /* the bound's name; NULL: host memory */
    bool ended;
};

/* ---- order.c ---- */

/* NULL when memory is exhausted. */
struct order *order_new(struct group *g, struct check *check);
void order_free(struct order *o);
void order_event(struct order *o, const struct event *e);
/* The group has ended: reports what is left to report. */
void order_end(struct order *o);

/* The records of a warp and of a CTA; NULL before it starts. */
static inline struct order_warp *order_warp_of(const struct warp *w)
{
    return w->kept[SLOT_CHECK].at;
}
static inline struct order_cta *order_cta_of(const struct cta *c)
{
    return c->kept[SLOT_CHECK].at;
}

/* What a warp knows, and the record of an mbarrier (NULL: none yet), for the checks of barriers. */
static inline const struct stamp *order_known(const struct warp *w)
{
    return &order_warp_of(w)->now;
}
struct order_bar *order_bar_at(const struct cta *cta, uint32_t offset);
/* Whether anything has been written to the SHARED_CELL bytes around `offset` since the CTA began. */
bool order_written(const struct cta *cta, uint32_t offset);
/* The instruction of e uses the barrier: may it rely on the mbarrier.init? */
void order_check_init(struct order_warp *w, struct order_bar *b, const struct event *e);

/* ---- for the rest of the checker ---- */

/* done: whether an allocation succeeded; if not, host memory counts as exhausted. */
void order_keep(struct order *o, bool done);
/* The warp releases what it knows into `to`; acquires what `from` holds. */
void order_release(struct order_warp *w, struct stamp *to, const struct insn *in);
void order_acquire(struct order_warp *w, const struct stamp *from, const struct insn *in);
/* The component of one of the warp's chains, made at first use. 0 when a bound is reached. */
uint32_t order_chain(struct order_warp *w, enum component_kind kind);
static inline struct component *order_component(const struct order_warp *w, uint32_t id)
{
    return &w->cta->cluster->components[id];
}
/* A new component; 0 when a bound is reached. The number of its next action. */
uint32_t order_component_new(struct order_warp *w, enum component_kind kind);
uint32_t order_act(struct order_warp *w, uint32_t component);
/* The component's actor in the world. 0 when a bound is reached. */
uint32_t order_actor(struct order_warp *w, uint32_t component);
/* The warp now knows that action `number` of the component is complete. */
void order_learn(struct order_warp *w, uint32_t component, uint32_t number);
/* From here on the verdict is sampled, because of that instruction. */
void order_sampled(struct order *o, enum sampled_reason reason, const struct insn *in);
/* The same for an instruction that reads a value which may differ in another order. */
void order_read(struct order *o, const struct insn *in);
/* Gives the warp a new number if its last one was released. */
void order_tick(struct order_warp *w);
/* The epoch of the warp's current action, at that instruction. */
epoch order_here(const struct order_warp *w, const struct insn *in);
/* From here on the verdict cannot be clean. `limit` names the bound; NULL: host memory. */
void order_exhausted(struct order *o, const char *limit);
static inline uint32_t order_insn_index(const struct order *o, const struct insn *in)
{
    size_t i = in ? (size_t)(in - o->kernel->insns) : EPOCH_INSN_MAX;
    return i < EPOCH_INSN_MAX ? (uint32_t)i : EPOCH_INSN_MAX;
}

/* ---- order_fence.c ---- */

/* A fence of any kind. */
void order_fence(struct order *o, struct order_warp *w, const struct event *e);

/* ---- order_flag.c ---- */

void flag_free(struct order_flag *f);
/* The reach of a strong access or a fence, by its scope. */
static inline enum reach order_reach(const struct insn *in)
{
    return in->is.scope >= SCOPE_GPU       ? REACH_GPU
           : in->is.scope == SCOPE_CLUSTER ? REACH_CLUSTER
                                           : REACH_CTA;
}
/* membar and fence. */
void order_membar(struct order *o, struct order_warp *w, const struct event *e);

/* A strong access to shared or global memory. */
void order_flags(struct order *o, struct order_warp *w, const struct event *e);
/* A weak write of global memory. */
void order_flags_weak(struct order *o, struct order_warp *w, const struct event *e);
/* The number of the write of that location in global memory which the cluster has seen; older values are over for it. */
uint64_t order_flag_seen(const struct order_warp *w, uint64_t address);
/* The location is a lock (order_lock.h). `cta`: of shared memory; NULL: global. */
bool order_flag_locks(const struct order_warp *w, const struct order_cta *cta, uint64_t address);

/* ---- order_groups.c ---- */

/* A lane issues a cp.async or (bulk) an operation of a bulk group: sets i->read and i->write. */
void order_groups_issue(struct order_warp *w, bool bulk, uint32_t lane, struct issuing *i);
void order_groups_commit(struct order_warp *w, const struct event *e);
void order_groups_wait(struct order *o, struct order_warp *w, const struct event *e);
/* cp.async.mbarrier.arrive is issued; it arrives. */
void order_groups_brings(struct order_warp *w, struct order_arrival *a);
void order_groups_arrive(struct order_warp *w, struct order_bar *b, const struct order_arrival *a);
/* The warp's own action of a chain of groups is complete, though the chain is not up to there. */
bool order_groups_over(const struct order_warp *w, epoch action);
/* The bulk store that is being issued reads shared memory at `source`. */
void order_groups_source(struct order_warp *w, uint64_t source);
/* Whether bulk store `number` is that of another lane of the instruction that is being issued, from the same source. */
bool order_groups_alike(const struct order_warp *w, uint32_t number);
void order_groups_free(struct order_groups *g);

/* ---- order_life.c ---- */

/* Bytes of all shadows of global memory together, and of the launch's record. */
#define ORDER_MEMORY_MOST ((uint64_t)2 << 30)

/* EV_WARP_START */
void order_begin(struct order *o, const struct event *e);
/* Passes the clusters' accesses to global memory to the launch's record. */
void order_clusters_end(struct order *o);
void order_clusters_free(struct order *o);
void sync_point_clear(struct sync_point *p);

/* The last warp of a CTA has exited: looks for arrivals that may still come. */
void order_exit(struct order *o, const struct cta *cta);
/* The warp's instruction accesses shared memory of another CTA, or an mbarrier there. */
void order_touch_peer(struct order_warp *w, const struct order_cta *other, const struct event *e);

/* ---- order_access.c ---- */

void order_access(struct order *o, const struct event *e);
/* Columns of tensor memory are allocated, or freed. */
void order_tmem_alloc(struct order *o, const struct event *e);
void order_tmem_dealloc(struct order *o, const struct event *e);
/* free() on the device: counts as a write of the whole block. Its shadow is then cleared, because
 * the heap may give the block out again. */
void order_heap_free(struct order *o, const struct event *e);
/* EV_MBAR_INIT: counts as a store to the word. */
void order_bar_word(struct order *o, const struct event *e);

#endif
