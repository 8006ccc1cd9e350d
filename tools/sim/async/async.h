/*
 * Work in flight. Every asynchronous operation (TMA, bulk and cp.async copies, wgmma, tcgen05.mma/cp/
 * ld/st/commit, remote arrives) is one async_op; it takes effect when its run function is called,
 * at a time the seeded scheduler chose, never before operations ahead of it in its pipe.
 */
#ifndef SIM_ASYNC_H
#define SIM_ASYNC_H

#include "machine/machine.h"

struct async_op;

/* Does stage `op->stage` of the operation. Returns true when the operation is over; false to be
 * called again, with the stage counted up, for the next one (a bulk store: 0 reads its source, 1
 * writes). Once stage 0 is done the sources count as read (`.read` waits). */
typedef bool async_run_fn(struct group *g, struct async_op *op);

/* A first-in first-out pipe: an operation of it runs only when it is the oldest. */
struct async_pipe {
    struct async_op *head, *tail;
};

/* Typical latencies in cycles of one stage, the scheduler's middle choice. */
struct async_latency {
    uint32_t typical, spread;
};

/* What an operation takes, for the timeline's cycle model: set before async_submit. */
struct async_cost {
    uint32_t cycles;    /* of the tensor core, or of the tensor memory's data path */
    uint32_t bytes;     /* moved */
    uint32_t shared_by; /* operations that a multicast fetches for together; else 0 or 1 */
    uint64_t where;     /* global address it begins at, telling a first fetch from a repeated one */
};

enum commit_kind { COMMIT_CP_ASYNC, COMMIT_BULK, COMMIT_WGMMA, COMMIT_KINDS };

struct async_op {
    async_run_fn *run;
    struct async_pipe *pipe; /* NULL: unordered */
    struct async_op *next;   /* in the pipe */
    struct async_op *joined; /* the next of the operations that run as one with this; async_join */
    uint64_t token;          /* sequence number in the group, from 1 */
    uint64_t ready;          /* clock at which it may run */
    uint32_t stage;
    struct warp *warp; /* issuer */
    uint32_t lane;
    const struct insn *in;
    struct cta *cta; /* issuer's */
    uint8_t commit;  /* enum commit_kind it belongs to, or COMMIT_KINDS */
    uint64_t commit_number;
    size_t payload_size;
    struct async_cost cost;
    /* Kept by async.c: */
    struct async_latency latency;
    uint32_t copies_before; /* cp.async copies of its lane that must land first */
    uint8_t size_class;
    bool sources_read;
    /* payload follows, 16-byte aligned: async_payload() */
};

/* A new operation with a zeroed payload, or NULL when memory is exhausted (the caller faults with
 * out-of-memory). Recycled after its last run. */
struct async_op *async_new(struct warp *w, const struct insn *in, uint32_t lane, async_run_fn *run,
                           size_t payload_size);
void *async_payload(struct async_op *op);
/* Files it: picks its ready time from the seed (biased to extremes: as early or as late as legal). */
void async_submit(struct group *g, struct async_op *op, struct async_pipe *pipe,
                  struct async_latency latency);
/* As async_submit, but not before every cp.async copy its lane has in flight has landed. */
void async_submit_after_copies(struct group *g, struct async_op *op, struct async_latency latency);
/* Announces an operation that runs only together with those of other warps: it waits in `held`, the
 * first-in first-out of its warp. */
void async_hold(struct group *g, struct async_op *op, struct async_pipe *held);
/* Where each of `count` warps holds an operation, submits the oldest of each as one: the first one's run
 * function is called once for all (they hang on its `joined`), and all are over at once. */
void async_join(struct group *g, struct async_pipe *const held[], uint32_t count,
                struct async_pipe *pipe, struct async_latency latency);
/* Gives back an operation that was never submitted. */
void async_discard(struct async_op *op);
/* Adds the operation to the open commit group of its issuing lane (wgmma: of the warp). Before
 * async_submit. */
void async_in_group(struct async_op *op, enum commit_kind kind);

/* Runs everything due at g->now. True if anything ran. */
bool async_advance(struct group *g);
/* Clock of the earliest runnable operation, UINT64_MAX when nothing is in flight. */
uint64_t async_next(const struct group *g);
/* Operations that may run, up to `room` of them in no order; returns how many there are. Runs the next stage of
 * one of them. */
size_t async_offers(const struct group *g, struct async_op **ops, size_t room);
void async_run(struct group *g, struct async_op *op);
/* The warp's cp.async copies in flight, up to `room` of them in no order; returns how many there are. */
size_t async_copies(const struct warp *w, const struct async_op **ops, size_t room);
/* Frees the group's operations, in flight or not; for the end of a launch. */
void async_heap_free(struct group *g);

/* ---- commit groups, per lane ---- */

/* Closes the open group of each lane in `lanes`; returns the group number of the first lane. */
uint64_t commit_close(struct warp *w, enum commit_kind kind, uint32_t lanes);
/* True when, for every lane in `lanes`, at most `pending` of the newest closed groups are
 * incomplete. `read_only`: incomplete means sources not yet read. */
bool commit_done(const struct warp *w, enum commit_kind kind, uint32_t lanes, uint64_t pending,
                 bool read_only);

/* Groups of `kind` that lane 0 has closed so far, and whether that many are, and all of them complete. */
uint64_t commit_closed(const struct warp *w, enum commit_kind kind);
bool commit_reached(const struct warp *w, enum commit_kind kind, uint64_t groups);

/* ---- per-warp state ---- */

enum wgmma_step { WGMMA_WAIT, WGMMA_COMMIT, WGMMA_FENCE, WGMMA_STEPS };

struct warp_async {
    struct async_pipe wgmma;      /* the warpgroup's operations, in its first warp */
    struct async_pipe wgmma_held; /* this warp's, until all four warps have issued theirs */
    struct async_pipe tensor, tmem_ld, tmem_st; /* tensor: mma, cp, shift, commit in order */
    uint32_t tmem_st_pending;
    struct commit_lane *lanes; /* WARP_LANES entries, at first use; async.c */
    bool wgmma_fenced;         /* a wgmma.fence came since registers were last touched */
    bool wgmma_uneven;         /* it was said that the warpgroup's warps do not execute alike: */
    struct wgmma_steps {
        uint32_t count; /* executed */
        const struct insn *last;
    } wgmma_steps[WGMMA_STEPS];
};

struct warp_async *warp_async_new(void);
void warp_async_free(struct warp_async *a);
/* As new, for the next CTA's warp; nothing of the last one may be in flight. */
void warp_async_reset(struct warp_async *a);

#endif
