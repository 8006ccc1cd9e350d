/*
 * What one launch did, as the timeline needs it: per warp the order of its issues, arrivals and
 * waits with the instructions between; operations in flight and what they signal; the phases of
 * barriers and what completed them. It holds no times: those are the cycle model's (model.h), which
 * fills the fields marked so. Of the schedule a deterministic kernel ran under only the order of a
 * warp's diverged lanes shows in it.
 */
#ifndef SIM_TRACE_RECORD_H
#define SIM_TRACE_RECORD_H

#include "async/async.h"
#include "async/kind.h"
#include "machine/event.h"

enum { TRACE_NONE = -1, GROUP_ENDS = 16 };

/* What a warp's waits cover, in issue order. The first three are enum commit_kind. */
enum trace_queue { QUEUE_TMEM_LOAD = COMMIT_KINDS, QUEUE_TMEM_STORE, QUEUES };

enum item_kind {
    ITEM_ISSUE,  /* ref: operation */
    ITEM_ARRIVE, /* ref: phase */
    ITEM_PASS,   /* ref: phase that had to be complete, TRACE_NONE for the one before the first */
    ITEM_DRAIN,  /* ref: operations of `queue`, from the warp's first, that had to be over */
    ITEM_EXIT    /* of the last lanes */
};

struct trace_item {
    uint8_t kind, queue;
    bool read_only;        /* ITEM_DRAIN: that their sources are read is enough */
    struct pipe_work work; /* of the warp's instructions since its last item */
    uint32_t lines;        /* of 128 bytes that their loads and stores touch */
    uint32_t sectors;      /* of 32 bytes that they write in global memory */
    int32_t ref;
    const struct insn *in;
    double begin, end; /* model */
};

struct trace_op {
    uint8_t kind;
    uint16_t lane;
    int32_t warp;
    int32_t signals; /* phases it arrives or delivers at: first of a list */
    int32_t next;    /* of the same queue of its warp */
    struct async_cost cost;
    uint64_t token;
    const struct insn *in;
    double issued, begin, read, done; /* model */
};

struct trace_signal {
    int32_t phase, next;
};

struct trace_barrier {
    uint8_t kind;        /* enum barrier_kind */
    int32_t cta;         /* owner; of a cluster barrier its CTA of rank 0 */
    uint32_t key;        /* mbarrier: window offset; named barrier: its number */
    int32_t next;        /* of the CTA */
    int32_t first, last; /* phases */
};

struct trace_phase {
    int32_t barrier;
    uint64_t number;
    int32_t next;     /* of the barrier */
    uint32_t signals; /* arrivals and deliveries that completed it */
    bool complete;
    uint32_t missing;       /* model, as are the rest: signals still to come */
    int32_t by_op, by_warp; /* the last to come, TRACE_NONE neither */
    double since, at;
};

struct trace_warp {
    int32_t cta;
    uint32_t id;
    uint32_t item_count, item_capacity;
    struct trace_item *items;
    struct pipe_work work;   /* of the warp at its last item */
    uint32_t lines, sectors; /* since then */
    int32_t first_op[QUEUES], last_op[QUEUES];
    uint32_t op_count[QUEUES];
    uint32_t groups[COMMIT_KINDS];           /* closed so far */
    uint32_t ends[COMMIT_KINDS][GROUP_ENDS]; /* operations up to the end of the newest ones */
};

struct trace_cta {
    uint32_t linear, rank, cluster;
    int32_t first_warp;
    uint32_t warp_count;
    int32_t barriers;
};

/* One of each group; growing arrays, linked by index. */
struct record {
    struct observer base;
    uint32_t index; /* of the group */
    struct trace_cta *ctas;
    struct trace_warp *warps;
    struct trace_op *ops;
    struct trace_signal *signals;
    struct trace_barrier *barriers;
    struct trace_phase *phases;
    size_t cta_count, warp_count, op_count, signal_count, barrier_count, phase_count;
    size_t cta_capacity, warp_capacity, op_capacity, signal_capacity, barrier_capacity,
        phase_capacity;
    size_t item_count; /* in all */
    bool exhausted;    /* of memory, or of RECORD_ITEMS */
};

/* Bounds a record's memory: about 100 MB a group. */
enum { RECORD_ITEMS = 1 << 21 };

/* Observes a group; NULL: no memory. Outlives the group: record_free. */
struct record *record_new(struct group *g);
void record_free(struct record *r);

/* enum trace_queue or commit_kind; QUEUES: waits of its warp do not cover it. */
int queue_of_op(const struct trace_op *op);
/* "load", and the timeline's track for it, "TMA" */
const char *trace_op_text(enum async_kind kind);
const char *trace_op_track(enum async_kind kind);

#endif
