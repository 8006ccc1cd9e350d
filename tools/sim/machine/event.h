/*
 * What happened: handlers publish typed events; the observers that a launch attaches (checker, timeline,
 * worksheet) consume them and cannot change a result, but for async/late.h. Publishing costs one test when nobody watches. One
 * event describes one warp-level action.
 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "machine/machine.h"

#define EVENTS(X)                                                                                  \
    X(ACCESS, "lanes access memory: space, address[], size, write/read/atomic, proxy, strong")     \
    X(WORKED, "the atomic announced last has worked; only where clusters can talk")                \
    X(FENCE, "a fence: value = enum fence_kind; access: WRITE release, READ acquire, 0 both; space: of"  \
            " FENCE_PROXY_ASYNC the only memory it is for")                                        \
    X(BARRIER_ARRIVE, "named barrier key: arrival; value = generation")                            \
    X(BARRIER_PASS, "named barrier key: a waiting warp goes on")                                   \
    X(WARP_SYNC, "lanes have met at a bar.warp.sync")                                              \
    X(TOGETHER, "lanes stand at one instruction of the whole warp; only where group.meetings")     \
    X(CLUSTER_ARRIVE, "cluster barrier arrival; value = phase")                                    \
    X(CLUSTER_PASS, "cluster barrier passed")                                                      \
    X(MBAR_INIT, "mbarrier at cta:key initialised; value = count")                                 \
    X(MBAR_REACH, "another CTA's mbarrier is about to be used, if it is one")                      \
    X(MBAR_INVAL, "mbarrier invalidated")                                                          \
    X(MBAR_EXPECT, "expected bytes raised; value = bytes")                                         \
    X(MBAR_ARRIVE, "value = arrivals; token = async operation behind it, 0 for a thread's own")    \
    X(MBAR_TX, "bytes completed; value = bytes; token = the copy")                                 \
    X(MBAR_PHASE, "phase completed; value = its number")                                           \
    X(MBAR_PASS, "a wait returned True; value = phase number")                                     \
    X(MBAR_FALSE, "a poll answers False, and something reads the answer")                          \
    X(ASYNC_ISSUE, "operation token issued; its accesses are announced before the next one's")     \
    X(ASYNC_BAR, "operation token will complete bytes on mbarrier cta:key in phase value")         \
    X(TILE, "a tensor copy stages a box in shared memory: address, size; key = identity of the box; "  \
            "tile")                                                                                \
    X(PRODUCT, "a matrix product, or a copy of scale factors, is issued: its operands in shared memory "  \
               "of cta; product")                                                                  \
    X(ASYNC_DONE, "operation token complete")                                                      \
    X(GROUP_COMMIT, "commit group closed; key = enum commit_kind, value = its number")             \
    X(GROUP_WAIT, "wait_group passed; key = enum commit_kind, value = groups that may be pending") \
    X(TMEM_ALLOC, "columns allocated: address = first, size = count")                              \
    X(TMEM_DEALLOC, "columns freed")                                                               \
    X(TMEM_WAIT, "tcgen05.wait passed; value 0 = ld, 1 = st")                                      \
    X(HEAP_FREE, "device code gives memory back: address, size")                                   \
    X(SETMAXNREG, "value = registers per thread")                                                  \
    X(GRID_WAIT, "griddepcontrol.wait passed")                                                     \
    X(GRID_GO, "griddepcontrol.launch_dependents: the next grid may begin")                        \
    X(REGISTERS, "an instruction is about to touch registers of wgmma or tcgen05.ld (insn.watched)")\
    X(EXCHANGE, "lanes get values that others hold: addresses[lane] = whose, NO_LANE: undefined; only where"  \
            " some are, or some register of the warp may be")                                       \
    X(VALUES, "an instruction is about to run in a warp some of whose registers may be undefined; lanes:"    \
            " those whose guard holds, perhaps none of the fragment's")                             \
    X(PASSED, "a call or its end gave register arg[0] of `in`, or size bytes of local memory at addresses[0], what" \
            " arg[2] or the bytes at addresses[1] hold; registers: NO_LANE stands in addresses")             \
    X(WARP_START, "a warp begins")                                                                 \
    X(WARP_EXIT, "lanes exit")

enum event_kind {
#define X(name, text) EV_##name,
    EVENTS(X)
#undef X
    EV_COUNT
};

/* How the addresses of a warp's access lie. */
enum span_shape {
    SPAN_APART, /* anyhow */
    SPAN_ONE,   /* all 32 lanes at one address */
    SPAN_ROW    /* all 32 lanes, each right behind the one before */
};

/* The lowest and the highest address of an active lane; aligned: all are multiples of the size. */
struct lane_span {
    uint64_t low, high;
    enum span_shape shape;
    bool aligned;
};

enum access_kind { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_ATOMIC = 3 };
enum proxy { PROXY_GENERIC, PROXY_ASYNC, PROXY_TENSORMAP };
enum fence_kind {
    FENCE_MEMBAR,           /* membar / fence.sc / fence.acq_rel */
    FENCE_PROXY_ASYNC,
    FENCE_PROXY_TENSORMAP,
    FENCE_MBARRIER_INIT,
    FENCE_WGMMA,
    FENCE_TCGEN05_BEFORE,
    FENCE_TCGEN05_AFTER,
    FENCE_PROXY_ALIAS
};

/* Barriers of every kind, for whoever counts them. */
enum barrier_kind { BARRIER_MBAR, BARRIER_NAMED, BARRIER_CLUSTER };

struct async_cost;
struct tmap_tile;
struct product;

struct event {
    uint8_t kind;      /* enum event_kind */
    uint8_t space;     /* ACCESS: enum ptx_space, or SPACE_NONE with tensor = true */
    uint8_t access;    /* enum access_kind */
    uint8_t proxy;     /* enum proxy */
    bool strong;       /* volatile, relaxed, acquire, release, atomic */
    bool tensor;       /* ACCESS to tensor memory: address = lane<<16 | column, size = columns, key =
                          blocks of 16 lanes (bit i: lanes 16i on), value 1 where all of it counts and
                          not only some. ACCESS by lanes: value 1 for a write that changed nothing */
    uint32_t lanes;    /* lanes of the warp that did it */
    struct warp *warp; /* who; for asynchronous operations the issuer */
    const struct insn *in;
    struct cta *cta;   /* whose shared/tensor memory or barrier */
    uint32_t key; /* ACCESS to shared memory through a matrix descriptor: 1 */
    uint64_t value;
    uint64_t token;    /* async operation: group-unique sequence number, 0 none */
    const uint64_t *addresses; /* ACCESS by lanes: 32 addresses in `space`'s own terms; else NULL. With
                                  a token they are an operation's ranges, `lanes` saying how many */
    const struct lane_span *span; /* of those addresses; NULL with a token */
    uint64_t address;  /* ACCESS without lanes; FENCE_PROXY_TENSORMAP: the map, where size is not 0
                          (or addresses: a map for each lane) */
    uint64_t size;     /* bytes (per lane where addresses is set) */
    const struct async_cost *cost; /* ASYNC_ISSUE */
    const struct tmap_tile *tile;  /* TILE; async/tmap_copy.h */
    const struct product *product; /* PRODUCT; ops/smem_desc.h */
};

struct observer {
    void (*on_event)(struct observer *o, const struct event *e);
    void (*on_end)(struct observer *o, bool completed); /* the group has finished */
    void (*destroy)(struct observer *o);
    bool accesses; /* wants EV_ACCESS; publishers that have work to do for it may skip it otherwise */
    struct observer *next; /* of the same group */
};

static inline void observe(const struct group *g, const struct event *e)
{
    for (struct observer *o = g->observer; o; o = o->next) o->on_event(o, e);
}

static inline bool observes_accesses(const struct group *g)
{
    for (const struct observer *o = g->observer; o; o = o->next) {
        if (o->accesses) return true;
    }
    return false;
}

/* Who watches a launch. Any function but `open` may be NULL, `open` too where no group is to be observed. */
struct watcher {
    /* The observer of one group, called as groups open. NULL: no memory. */
    struct observer *(*open)(struct watcher *w, struct group *g);
    /* Nothing in the group can run any more: says why, a finding. */
    void (*on_deadlock)(struct watcher *w, struct group *g);
    /* The launch is over, its groups closed. */
    void (*on_end)(struct watcher *w, struct launch *l);
    struct watcher *next; /* of the same launch */
};

/* Adds a watcher, before launch_run. Of each group the first one's observer hears of an event first. */
static inline void launch_watch(struct launch *l, struct watcher *w)
{
    struct watcher **at = &l->watchers;
    while (*at) at = &(*at)->next;
    *at = w;
}

#endif
