/*
 * What a step touches, as far as other steps can notice: gathered from the events of the machine. Two steps may be
 * exchanged without effect unless their footprints conflict.
 */
#ifndef SIM_FOOTPRINT_H
#define SIM_FOOTPRINT_H

#include "async/async.h"
#include "machine/event.h"

/* What is touched. `of` is a CTA's number in the grid, or as said. */
enum touch_space {
    TOUCH_GLOBAL,  /* of 0; low, high: addresses */
    TOUCH_SHARED,  /* low, high: offsets */
    TOUCH_TENSOR,  /* columns */
    TOUCH_MBAR,    /* offset */
    TOUCH_NAMED,   /* barrier */
    TOUCH_CLUSTER, /* of a cluster: its barrier */
    TOUCH_LIVE,    /* which threads have exited */
    TOUCH_POOL,    /* registers, columns of tensor memory */
    TOUCH_GROUPS,  /* low: warp and kind of its commit groups */
    TOUCH_OP,      /* an operation in flight: low: its actor */
    TOUCH_PIPE,    /* low: of which the operations take effect in order */
    TOUCH_REGS     /* low: a warp's registers that operations write */
};

enum touch_mode {
    TOUCH_READ,
    TOUCH_WRITE,
    TOUCH_BARRIER, /* the bytes in which a barrier lies, by an operation on it */
    TOUCH_ARRIVE,  /* of one turn of a barrier; no difference which comes first */
    TOUCH_BYTES,   /* the same of bytes that complete */
    TOUCH_FINISH,  /* parts of what somebody waits for */
    TOUCH_LEARN    /* a wait that was satisfied, and stays so */
};

struct touch {
    uint8_t space, mode;
    bool completes; /* ARRIVE, BYTES: it was the last one of its turn */
    uint32_t of;
    uint64_t turn;      /* ARRIVE, BYTES */
    uint64_t low, high; /* [low, high) */
};

struct footprint {
    struct touch *touch;
    uint32_t count, capacity;
    bool failed; /* no memory */
};

/* An actor: a warp, or an operation in flight: the n-th that the warp has issued, from 1. */
typedef uint64_t actor;
static inline actor actor_warp(const struct warp *w)
{
    return (uint64_t)(w->cta->linear * CTA_WARPS + w->id) << 32;
}

void footprint_add(struct footprint *f, struct touch t);
void footprint_touch(struct footprint *f, enum touch_space space, enum touch_mode mode, uint32_t of,
                     uint64_t low, uint64_t bytes);
/* The step is over: whether its arrivals at barriers of the CTA and its cluster were the last ones. */
void footprint_settle(struct footprint *f, const struct cta *c);
void footprint_join(struct footprint *f, const struct footprint *other);
/* What the event adds to the step in which it happens. Accesses of operations are announced when they are issued: not to be
 * added then. */
void footprint_event(struct footprint *f, const struct event *e);
/* A fragment that is asleep looks at what it waits for. */
void footprint_wait(struct footprint *f, const struct warp *w, const struct wait *t);

/* How two steps, the second right behind the first, depend on one another. */
enum relation {
    RELATION_NONE,
    RELATION_CAUSE, /* the first makes the second possible, or must come first anyway */
    RELATION_RACE   /* they may come the other way round, with another effect */
};
enum relation footprint_relation(const struct footprint *first, const struct footprint *second);
/* Whether two steps that are possible at the same place may be exchanged. */
bool footprint_apart(const struct footprint *a, const struct footprint *b);

#endif
