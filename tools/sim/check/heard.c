/* Waits by some lanes of a warp: heard.h. The code does not ask which accesses a wait protects: any counts. */
#include "check/heard.h"

#include "async/async.h"
#include "async/mbar.h"

#include <stdlib.h>

enum { HEARD_MOST = 8 };

enum heard_kind {
    HEARD_PHASE,  /* of an mbarrier */
    HEARD_COPIES, /* bulk groups are complete */
    HEARD_READ,   /* the sources of bulk groups have been read */
    HEARD_GRID    /* griddepcontrol.wait */
};

struct heard {
    struct {
        uint8_t kind;
        const struct cta *cta; /* the mbarrier's, and its offset */
        uint32_t key;
        uint64_t phase;
        uint32_t lanes; /* that know of it */
    } at[HEARD_MOST];
    uint32_t count;
};

static void drop(struct heard *h, uint32_t i)
{
    h->at[i] = h->at[--h->count];
}

/* Lanes know what any of them knew. */
static void meet(struct heard *h, uint32_t lanes, uint32_t live)
{
    for (uint32_t i = h->count; i-- > 0;) {
        if (h->at[i].lanes & lanes) h->at[i].lanes |= lanes;
        if ((live & ~h->at[i].lanes) == 0) drop(h, i);
    }
}

/* The place for a wait. Waits without room share the last place; then a lane counts there only if it
 * knows of all of them. */
static void passes(struct order *o, struct order_warp *w, const struct event *e,
                   enum heard_kind kind)
{
    const uint32_t live = w->warp->live;
    const bool phase = kind == HEARD_PHASE;
    struct heard *h = w->heard;
    uint32_t i = 0;
    if (!h && (live & ~e->lanes) == 0) return;
    if (!h) h = w->heard = calloc(1, sizeof *h);
    order_keep(o, h != NULL);
    if (!h) return;
    while (i < h->count && (h->at[i].kind != kind || h->at[i].cta != (phase ? e->cta : NULL) ||
                            h->at[i].key != (phase ? e->key : 0)))
        i++;
    if (i == h->count && (live & ~e->lanes) == 0) return;
    if (i == HEARD_MOST) {
        h->at[--i].lanes &= e->lanes;
        return;
    }
    if (i == h->count) {
        h->count++;
        h->at[i].lanes = 0;
    } else if (phase && h->at[i].phase != e->value) {
        h->at[i].lanes = 0;
    }
    h->at[i].kind = (uint8_t)kind;
    h->at[i].cta = phase ? e->cta : NULL;
    h->at[i].key = phase ? e->key : 0;
    h->at[i].phase = phase ? e->value : 0;
    h->at[i].lanes |= e->lanes;
    if ((live & ~h->at[i].lanes) == 0) drop(h, i);
}

/* Whether a wait of that kind can be what an event comes after. */
static bool concerns(enum heard_kind kind, const struct event *e)
{
    if (e->kind != EV_ACCESS) return kind == HEARD_PHASE || kind == HEARD_COPIES;
    if (kind == HEARD_GRID) return e->space == SPACE_GLOBAL;
    if (kind == HEARD_READ) return e->space == SPACE_SHARED && e->access & ACCESS_WRITE;
    return e->space == SPACE_SHARED || e->space == SPACE_GLOBAL;
}

static void does(struct order *o, struct heard *h, const struct event *e)
{
    for (uint32_t i = 0; i < h->count; i++) {
        if (!(e->lanes & ~h->at[i].lanes) || !concerns((enum heard_kind)h->at[i].kind, e)) continue;
        order_sampled(o, SAMPLED_LANES, e->in);
        h->count = 0; /* once is enough */
    }
}

void heard_event(struct order *o, struct order_warp *w, const struct event *e)
{
    struct heard *h = w->heard;
    switch (e->kind) {
    case EV_MBAR_PASS:
        if (e->value != FRESH_PHASE) passes(o, w, e, HEARD_PHASE);
        return;
    case EV_GROUP_WAIT:
        if (e->key == COMMIT_BULK) passes(o, w, e, e->in->is.sources ? HEARD_READ : HEARD_COPIES);
        return;
    case EV_GRID_WAIT: passes(o, w, e, HEARD_GRID); return;
    default: break;
    }
    if (!h || !h->count) return;
    switch (e->kind) {
    case EV_ACCESS:
    case EV_MBAR_ARRIVE:
        if (!e->token && e->in && !e->tensor) does(o, h, e);
        break;
    case EV_ASYNC_ISSUE:
        if (e->in) does(o, h, e);
        break;
    case EV_WARP_SYNC:
    case EV_BARRIER_ARRIVE:
    case EV_BARRIER_PASS:
    case EV_CLUSTER_ARRIVE:
    case EV_CLUSTER_PASS: meet(h, e->lanes, w->warp->live); break;
    default: break;
    }
}
