/* What is visible late: late.h. Times are numbers of the events below, from 1; 0 is never. */
#include "async/late.h"

#include "async/late_global.h"
#include "decode/names.h"
#include "machine/mem.h"
#include "ptx/window.h"

#include <stdlib.h>
#include <string.h>

/* The last generic store of a byte: when, by which warp of the cluster, and what the async proxy still has. */
struct late_byte {
    uint32_t time;
    uint16_t by;
    uint8_t before;
};

struct late_warp {
    uint32_t number;    /* in the record of global memory; 0: none */
    uint32_t passed;    /* it last came past what may have made others' stores known to it */
    uint32_t fenced;    /* its last fence.proxy.async of shared memory */
    uint32_t published; /* its last release that reaches the cluster, or fence.mbarrier_init */
};

struct late_init {
    uint32_t offset, time, by;
};

struct late_cta {
    struct late_cta *next;
    struct late_byte *bytes; /* by window offset; NULL: no store yet */
    struct late_init *inits;
    uint32_t init_count, init_capacity;
    struct late_warp warps[CTA_WARPS];
    /* Of the cluster, kept with its first CTA: stores and inits of before are covered, whoever made them. */
    uint32_t covered, covered_inits;
    uint32_t released; /* by any of its warps, last, for the whole cluster */
    uint32_t acquired; /* late_global_acquire_map */
};

/* Why an operation reads a byte late: no proxy fence, or no order, behind the store. */
enum late_why { LATE_NOT, LATE_FENCE, LATE_ORDER, LATE_WHYS };

/* What an operation of the async proxy reads late. */
struct late_range {
    struct late_range *next;
    uint64_t token;
    uint8_t *at;
    uint64_t name; /* offset in shared memory, or address */
    uint32_t size;
    bool global;
    uint8_t bytes[]; /* size of them: of before; while swapped, what memory has. Then as many
                        enum late_why */
};

struct late {
    struct observer base; /* first */
    struct group *group;
    struct late_cta *ctas;
    struct late_range *ranges;  /* of operations in flight */
    struct late_range *swapped; /* of the one that does its stage, the last one first */
    struct late_range
        *stores; /* older stores that come behind what operations in flight write there */
    struct late_global *global; /* NULL: not looked at */
    bool owns_global;
    uint32_t now;
};

static struct late *late_of(const struct group *g)
{
    return g->late;
}

/* The record of a CTA; NULL: no memory, so nothing of it is late. */
static struct late_cta *record_of(struct late *l, struct cta *cta)
{
    struct late_cta *c = cta->kept[SLOT_LATE].at;
    if (c || !(c = calloc(1, sizeof *c))) return c;
    c->next = l->ctas;
    l->ctas = c;
    cta->kept[SLOT_LATE].at = c;
    return c;
}

static struct late_warp *warp_of(struct late *l, const struct warp *w)
{
    struct late_cta *c = record_of(l, w->cta);
    return c ? &c->warps[w->id] : NULL;
}

static uint16_t number_of(const struct warp *w)
{
    return (uint16_t)(w->cta->rank * CTA_WARPS + w->id);
}

static struct late_warp *warp_numbered(struct late *l, const struct cta *cta, uint32_t number)
{
    struct late_cta *c = record_of(l, cta->cluster->ctas[number / CTA_WARPS]);
    return c ? &c->warps[number % CTA_WARPS] : NULL;
}

static bool is_late(struct late *l, struct cta *cta, const struct late_byte *b)
{
    const struct late_cta *all = record_of(l, cta->cluster->ctas[0]);
    const struct late_warp *by = warp_numbered(l, cta, b->by);
    return b->time && all && by && b->time > all->covered && b->time > by->fenced;
}

/* ---- stores ---- */

static void keep(struct late *l, const struct warp *w, struct cta *cta, uint32_t offset,
                 uint32_t size)
{
    struct late_cta *c = record_of(l, cta);
    if (!c || (uint64_t)offset + size > cta->shared_bytes) return;
    if (!c->bytes) c->bytes = calloc(cta->shared_bytes, sizeof *c->bytes);
    if (!c->bytes) return;
    for (uint32_t i = offset; i < offset + size; i++) {
        struct late_byte *b = &c->bytes[i];
        if (!is_late(l, cta, b)) b->before = cta->shared[i];
        b->time = l->now;
        b->by = number_of(w);
    }
}

/* A generic address that is none of a window's. */
static bool is_global(enum ptx_space space, uint64_t at)
{
    return space == SPACE_GLOBAL ||
           (space == SPACE_NONE && (at & WINDOW_MASK) != SHARED_WINDOW &&
            (at & WINDOW_MASK) != LOCAL_WINDOW && (at & WINDOW_MASK) != PARAM_WINDOW);
}

void late_keep_global(struct warp *w, uint64_t address, uint32_t size)
{
    struct late *l = late_of(w->cta->group);
    const struct late_warp *own = l->global ? warp_of(l, w) : NULL;
    if (own) late_global_keep(l->global, own->number, address, size);
}

void late_keep(struct warp *w, uint32_t lanes, enum ptx_space space,
               const uint64_t address[WARP_LANES], uint32_t size)
{
    struct late *l = late_of(w->cta->group);
    l->now++;
    for (uint32_t m = lanes; m; m &= m - 1) {
        const uint64_t at = address[first_lane(m)];
        struct cta *cta;
        uint32_t offset;
        if (l->global && is_global(space, at)) late_keep_global(w, at, size);
        if (space != SPACE_SHARED && (space != SPACE_NONE || (at & WINDOW_MASK) != SHARED_WINDOW))
            continue;
        if (mem_shared(w, (uint32_t)at, &cta, &offset)) keep(l, w, cta, offset, size);
    }
}

/* ---- operations ---- */

/* A wgmma may read the warp's operands when this warp issues it, so what other warps store reaches it only
 * if something has ordered it before. */
static enum late_why why_late(struct late *l, const struct event *e, struct cta *cta,
                              const struct late_byte *b)
{
    const bool wgmma = e->in->is.engine == ENGINE_WGMMA;
    const struct late_warp *own = wgmma && b->time ? warp_of(l, e->warp) : NULL;
    if (b->time && is_late(l, cta, b)) return LATE_FENCE;
    return own && b->by != number_of(e->warp) && b->time > own->passed ? LATE_ORDER : LATE_NOT;
}

/* What the operation reads of the range: bytes of before where they are late, of a wgmma all that memory has now.
 * False: nothing of it is late. */
static bool collect(struct late *l, const struct event *e, struct cta *cta, struct late_range *r)
{
    const struct late_cta *c = record_of(l, cta);
    const bool wgmma = e->in->is.engine == ENGINE_WGMMA;
    bool any = wgmma;
    memset(r->bytes + r->size, wgmma ? LATE_ORDER : LATE_NOT, r->size);
    for (uint32_t i = 0; c->bytes && i < r->size; i++) {
        const struct late_byte *b = &c->bytes[r->name + i];
        const enum late_why why = b->time ? why_late(l, e, cta, b) : LATE_NOT;
        if (why == LATE_NOT) continue;
        r->bytes[i] = b->before;
        r->bytes[r->size + i] = (uint8_t)why;
        any = true;
    }
    return any;
}

static struct late_range *range_new(const struct event *e, uint8_t *at, uint64_t name,
                                    uint32_t size)
{
    struct late_range *r = calloc(1, sizeof *r + 2 * (size_t)size);
    if (!r) return NULL;
    r->token = e->token;
    r->at = at;
    r->name = name;
    r->size = size;
    memcpy(r->bytes, at, size);
    return r;
}

static void add(struct late *l, struct late_range *r, bool any)
{
    if (!any) {
        free(r);
        return;
    }
    r->next = l->ranges;
    l->ranges = r;
}

/* The operation writes where stores lie that no fence has covered: they may come after it. Then the bytes are the async
 * proxy's own. */
static void file_write(struct late *l, const struct event *e, struct cta *cta, uint32_t offset,
                       uint32_t size)
{
    struct late_byte *bytes = record_of(l, cta)->bytes + offset;
    struct late_range *r = NULL;
    for (uint32_t i = 0; i < size; i++) {
        if (!bytes[i].time || !is_late(l, cta, &bytes[i])) continue;
        if (!r && !(r = range_new(e, cta->shared + offset, offset, size))) return;
        r->bytes[size + i] = LATE_FENCE;
    }
    memset(bytes, 0, size * sizeof *bytes);
    if (!r) return;
    r->next = l->stores;
    l->stores = r;
}

static void file(struct late *l, const struct event *e, struct cta *cta, uint32_t offset,
                 uint32_t size)
{
    struct late_cta *c = record_of(l, cta);
    struct late_range *r;
    if (!c || (uint64_t)offset + size > cta->shared_bytes) return;
    if (e->proxy == PROXY_GENERIC) { /* cp.async: stores, if not before now */
        if (e->access & ACCESS_WRITE) keep(l, e->warp, cta, offset, size);
        return;
    }
    if (e->access & ACCESS_WRITE) {
        if (c->bytes) file_write(l, e, cta, offset, size);
        return;
    }
    if (!c->bytes && e->in->is.engine != ENGINE_WGMMA) return;
    if (!(r = range_new(e, cta->shared + offset, offset, size))) return;
    add(l, r, collect(l, e, cta, r));
}

static void file_global(struct late *l, const struct event *e, uint64_t address, uint32_t size)
{
    struct late_range *r;
    if (e->access & ACCESS_WRITE) late_global_clear(l->global, address, size);
    if (e->access & ACCESS_WRITE || !size) return;
    if (!mem_range(address, size, NULL, NULL)) return; /* the copy itself tells it */
    if (!(r = range_new(e, (uint8_t *)(uintptr_t)address, address, size))) return;
    r->global = true;
    add(l, r, late_global_read(l->global, address, size, r->bytes, r->bytes + size, LATE_FENCE));
}

/* An operation says what it will access: ranges of global memory. */
static void on_operation_global(struct late *l, const struct event *e)
{
    if (!l->global || e->proxy != PROXY_ASYNC) return;
    if (!e->addresses) file_global(l, e, e->address, (uint32_t)e->size);
    for (uint32_t m = e->addresses ? e->lanes : 0; m; m &= m - 1)
        file_global(l, e, e->addresses[first_lane(m)], (uint32_t)e->size);
}

/* The same in shared memory. */
static void on_operation(struct late *l, const struct event *e)
{
    struct cta *cta;
    uint32_t offset;
    if (!e->addresses) {
        if (e->cta)
            file(l, e, e->cta, (uint32_t)e->address & SHARED_OFFSET_MASK, (uint32_t)e->size);
        return;
    }
    for (uint32_t m = e->lanes; m; m &= m - 1)
        if (mem_shared(e->warp, (uint32_t)e->addresses[first_lane(m)], &cta, &offset))
            file(l, e, cta, offset, (uint32_t)e->size);
}

static void swap(const struct late_range *from, uint8_t *bytes)
{
    for (uint32_t i = 0; i < from->size; i++) {
        const uint8_t other = from->at[i];
        if (!from->bytes[from->size + i]) continue;
        from->at[i] = bytes[i];
        bytes[i] = other;
    }
}

/* How many bytes are other than those of memory, by reason, and where the first of them is. */
struct late_count {
    uint32_t count[LATE_WHYS];
    uint64_t first[LATE_WHYS];
    bool global;
};

static void count_differing(const struct late_range *r, struct late_count *n)
{
    const uint8_t *now = r->at;
    if (!memcmp(now, r->bytes, r->size)) return;
    n->global |= r->global;
    for (uint32_t i = 0; i < r->size; i++) {
        const uint8_t why = r->bytes[r->size + i];
        if (why == LATE_NOT || now[i] == r->bytes[i]) continue;
        if (!n->count[why]++ || r->name + i < n->first[why]) n->first[why] = r->name + i;
    }
}

static void tell_read(const struct async_op *op, const struct late_count *n)
{
    struct group *g = op->cta->group;
    const unsigned long long seed = g->launch->seed;
    if (n->count[LATE_FENCE])
        sim_find(g, op->warp, op->in, op->lane, SEV_ERROR, FIND_PROXY, CAUSE_NONE,
                 "bytes of before",
                 "the operation reads %u bytes of %s memory, from 0x%llx on, as they were before "
                 "the store: no fence.proxy.async has made it visible to the async proxy. So does "
                 "every run with HEWN_SIM_SEED=%llu. Cheapest remedy: fence.proxy.async by the "
                 "storing thread, before its signal.",
                 n->count[LATE_FENCE], n->global ? "global" : "shared",
                 (unsigned long long)n->first[LATE_FENCE], seed);
    if (n->count[LATE_ORDER])
        sim_find(
            g, op->warp, op->in, op->lane, SEV_ERROR, FIND_RACE, CAUSE_NONE, "bytes of before",
            "the operation reads %u bytes of shared memory, from 0x%llx on, as they were before "
            "another warp's store: nothing orders it before this warp's part of the "
            "operation, which may start when this warp issues it. So does every run with "
            "HEWN_SIM_SEED=%llu. Cheapest remedy: a barrier of the warpgroup in front.",
            n->count[LATE_ORDER], (unsigned long long)n->first[LATE_ORDER], seed);
}

/* Memory has the late bytes of the operation from here on. */
static void swap_in(struct late *l, const struct async_op *op, struct late_count *n)
{
    for (struct late_range **at = &l->ranges, *r; (r = *at);) {
        if (r->token != op->token) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        r->next = l->swapped;
        l->swapped = r;
        count_differing(r, n);
        swap(r, r->bytes);
    }
}

/* What the stores left that come behind the operation. */
static void take_stores(const struct late *l, const struct async_op *op)
{
    for (struct late_range *r = l->stores; r; r = r->next)
        if (r->token == op->token) memcpy(r->bytes, r->at, r->size);
}

void late_before(struct group *g, const struct async_op *op)
{
    struct late *l = late_of(g);
    if (op->stage || (!l->ranges && !l->stores)) return;
    for (; op; op = op->joined) {
        struct late_count n = {{0}, {0}, false};
        take_stores(l, op);
        swap_in(l, op, &n);
        tell_read(op, &n);
    }
}

static void tell_stores(const struct async_op *op, const struct late_count *n)
{
    struct group *g = op->cta->group;
    if (!n->count[LATE_FENCE]) return;
    sim_find(
        g, op->warp, op->in, op->lane, SEV_ERROR, FIND_PROXY, CAUSE_NONE, "bytes of before",
        "%u bytes of shared memory that the operation writes, from 0x%llx on, are overwritten "
        "by an older store: no fence.proxy.async has made it visible to the async proxy. So it "
        "is in every run with HEWN_SIM_SEED=%llu. Cheapest remedy: fence.proxy.async by the "
        "storing thread, before its signal.",
        n->count[LATE_FENCE], (unsigned long long)n->first[LATE_FENCE],
        (unsigned long long)g->launch->seed);
}

/* The stores come now, behind what the operation has written in this stage. */
static void put_stores(struct late *l, const struct async_op *op, bool over)
{
    struct late_count n = {{0}, {0}, false};
    for (struct late_range **at = &l->stores, *r; (r = *at);) {
        if (r->token != op->token) {
            at = &r->next;
            continue;
        }
        count_differing(r, &n);
        for (uint32_t i = 0; i < r->size; i++)
            if (r->bytes[r->size + i]) r->at[i] = r->bytes[i];
        if (!over) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        free(r);
    }
    tell_stores(op, &n);
}

void late_after(struct group *g, const struct async_op *op, bool over)
{
    struct late *l = late_of(g);
    for (; l->stores && op; op = op->joined) put_stores(l, op, over);
    for (struct late_range *r; (r = l->swapped);) {
        l->swapped = r->next;
        swap(r, r->bytes);
        free(r);
    }
}

/* ---- tensor maps ---- */

const void *late_map(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address,
                     const void *bytes, uint8_t copy[128])
{
    struct late *l = late_of(w->cta->group);
    const struct late_cta *c =
        l->global && is_global(SPACE_NONE, address) ? record_of(l, w->cta) : NULL;
    if (!c) return bytes;
    memcpy(copy, bytes, 128);
    if (!late_global_read_map(l->global, c->acquired, address, 128, copy)) return bytes;
    sim_find(w->cta->group, w, in, lane, SEV_ERROR, FIND_TENSORMAP_PROXY, CAUSE_NONE,
             "map of before",
             "the copy uses the tensor map at 0x%llx as it was before the stores to it: no "
             "fence.proxy.tensormap has made them visible to tensor copies of this CTA. So does "
             "every run with HEWN_SIM_SEED=%llu. Cheapest remedy: "
             "fence.proxy.tensormap::generic.release by the storing thread, then a barrier or a "
             "flag, then the acquire form for this map by the issuing thread.",
             (unsigned long long)address, (unsigned long long)w->cta->group->launch->seed);
    return copy;
}

/* ---- mbarriers ---- */

static void on_init(struct late *l, const struct event *e)
{
    struct late_cta *c = record_of(l, e->cta);
    uint32_t i = 0;
    if (!c) return;
    if (c->bytes && e->key + 8 <= e->cta->shared_bytes)
        memset(c->bytes + e->key, 0, 8 * sizeof *c->bytes);
    while (i < c->init_count && c->inits[i].offset != e->key) i++;
    if (i == c->init_capacity) {
        const uint32_t capacity = 2 * c->init_capacity + 16;
        struct late_init *grown = realloc(c->inits, capacity * sizeof *grown);
        if (!grown) return;
        c->inits = grown;
        c->init_capacity = capacity;
    }
    if (i == c->init_count) c->init_count++;
    c->inits[i] = (struct late_init){e->key, l->now, number_of(e->warp)};
}

static void tell_lost(struct mbar_who who, const struct cta *cta, uint32_t offset)
{
    const struct launch *launch = cta->group->launch;
    char object[96];
    sim_find(
        cta->group, who.warp, who.in, who.lane, SEV_ERROR, FIND_MBARRIER_INIT_ORDER, CAUSE_NONE,
        "one not there yet",
        "what is done to %s of CTA rank %u comes before its mbarrier.init and is lost: nothing "
        "has made the init visible to this CTA. So it is in every run with HEWN_SIM_SEED=%llu. "
        "Cheapest remedy: fence.mbarrier_init by the initialising thread, then barrier.cluster "
        "by all.",
        name_shared(launch->kernel, offset, object, sizeof object), cta->rank,
        (unsigned long long)launch->seed);
}

bool late_lost(struct mbar_who who, struct cta *cta, uint32_t offset)
{
    struct late *l = late_of(cta->group);
    struct late_cta *c = record_of(l, cta), *all = record_of(l, cta->cluster->ctas[0]);
    if (!c || !all || who.warp->cta == cta) return false;
    for (uint32_t i = 0; i < c->init_count; i++) {
        const struct late_init *b = &c->inits[i];
        const struct late_warp *by = warp_numbered(l, cta, b->by);
        if (b->offset != offset) continue;
        if (!by || b->time < by->published || b->time < all->covered_inits) return false;
        tell_lost(who, cta, offset);
        return true;
    }
    return false;
}

/* ---- events ---- */

static void raise_to(uint32_t *to, uint32_t time)
{
    if (*to < time) *to = time;
}

/* The warp makes what it has done, and what it knows of others', visible in the cluster. */
static void publish(struct late *l, const struct warp *w)
{
    struct late_cta *all = record_of(l, w->cta->cluster->ctas[0]);
    struct late_warp *own = warp_of(l, w);
    if (!all || !own) return;
    own->published = all->released = l->now;
    raise_to(&all->covered_inits, own->passed);
}

/* The warp has come past what may have made others' stores known to it. */
static void pass(struct late *l, struct late_warp *own)
{
    own->passed = l->now;
    if (l->global) late_global_passed(l->global, own->number);
}

/* A barrier of the cluster brings what was released, which relaxed arrivals have not. */
static void on_cluster_pass(struct late *l, const struct warp *w)
{
    const struct late_cta *all = record_of(l, w->cta->cluster->ctas[0]);
    struct late_warp *own = warp_of(l, w);
    if (all && own) raise_to(&own->passed, all->released);
    if (own && l->global) late_global_passed(l->global, own->number);
}

/* Without a direction it is both. */
static void on_map_fence(struct late *l, const struct late_warp *own, const struct event *e)
{
    struct late_cta *c = record_of(l, e->warp->cta);
    if (!l->global || !c) return;
    if (e->access != ACCESS_READ) late_global_release_map(l->global, own->number);
    if (e->access != ACCESS_WRITE) late_global_acquire_map(l->global, &c->acquired);
}

static void on_fence(struct late *l, const struct event *e)
{
    struct late_cta *all = record_of(l, e->warp->cta->cluster->ctas[0]);
    struct late_warp *own = warp_of(l, e->warp);
    if (!all || !own) return;
    switch (e->value) {
    case FENCE_PROXY_TENSORMAP: on_map_fence(l, own, e); break;
    case FENCE_PROXY_ASYNC:
        if (l->global && e->space != SPACE_SHARED) late_global_fence(l->global, own->number);
        if (e->space == SPACE_GLOBAL) break;
        own->fenced = l->now;
        raise_to(&all->covered, own->passed);
        publish(l, e->warp);
        break;
    case FENCE_MBARRIER_INIT: own->published = l->now; break;
    case FENCE_MEMBAR: publish(l, e->warp); break;
    default: break;
    }
}

/* Another CTA begins in the same memory. */
static void on_start(struct late *l, const struct event *e)
{
    struct late_cta *c = record_of(l, e->cta);
    if (!c) return;
    c->warps[e->warp->id] = (struct late_warp){0};
    if (l->global) c->warps[e->warp->id].number = late_global_warp(l->global);
    if (e->warp->id) return;
    c->init_count = c->covered = c->covered_inits = c->released = c->acquired = 0;
    if (c->bytes) memset(c->bytes, 0, e->cta->shared_bytes * sizeof *c->bytes);
}

static void on_access(struct late *l, const struct event *e)
{
    struct late_warp *own;
    if (!e->in || !e->lanes || e->tensor) return;
    if (e->token) {
        if (e->space == SPACE_SHARED) on_operation(l, e);
        if (e->space == SPACE_GLOBAL) on_operation_global(l, e);
        return;
    }
    if (!e->strong) return;
    own = warp_of(l, e->warp);
    if (own && e->access & ACCESS_READ) pass(l, own);
    if (e->access & ACCESS_WRITE) publish(l, e->warp);
}

static void on_event(struct observer *o, const struct event *e)
{
    struct late *l = (struct late *)o;
    struct late_warp *own;
    l->now++;
    switch (e->kind) {
    case EV_ACCESS: on_access(l, e); break;
    case EV_FENCE: on_fence(l, e); break;
    case EV_MBAR_INIT: on_init(l, e); break;
    case EV_WARP_START: on_start(l, e); break;
    case EV_CLUSTER_ARRIVE:
        if (!e->in->is.relaxed) publish(l, e->warp);
        break;
    case EV_MBAR_ARRIVE:
        if (!e->token && !(e->in->flags & MBAR_RELAXED)) publish(l, e->warp);
        break;
    case EV_CLUSTER_PASS: on_cluster_pass(l, e->warp); break;
    case EV_BARRIER_PASS:
    case EV_MBAR_PASS:
    case EV_GRID_WAIT:
        own = warp_of(l, e->warp);
        if (own) pass(l, own);
        break;
    default: break;
    }
}

static void on_end(struct observer *o, bool completed)
{
    (void)o;
    (void)completed;
}

static void destroy(struct observer *o)
{
    struct late *l = (struct late *)o;
    for (struct late_range *r; (r = l->ranges); free(r)) l->ranges = r->next;
    for (struct late_range *r; (r = l->stores); free(r)) l->stores = r->next;
    for (struct late_cta *c; (c = l->ctas); free(c)) {
        l->ctas = c->next;
        free(c->bytes);
        free(c->inits);
    }
    if (l->owns_global) late_global_free(l->global);
    l->group->late = NULL;
    free(l);
}

static struct observer *open_group(struct watcher *base, struct group *g)
{
    const struct late_watcher *w = (const struct late_watcher *)base;
    struct late *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->base = (struct observer){
        .on_event = on_event, .on_end = on_end, .destroy = destroy, .accesses = true};
    l->group = g;
    l->global = w->global;
    if (w->wanted && !w->global) {
        l->global = late_global_new();
        l->owns_global = true;
    }
    g->late = l;
    return &l->base;
}

static void end(struct watcher *base, struct launch *l)
{
    (void)l;
    late_global_free(((struct late_watcher *)base)->global);
}

void late_attach(struct late_watcher *w, struct launch *l)
{
    if (l->seed % TEMPER_COUNT != TEMPER_LAZY || l->steerer || !l->check_level) return;
    *w = (struct late_watcher){.base = {.open = open_group, .on_end = end},
                               .wanted = late_global_wanted(l->kernel)};
    if (w->wanted && l->kernel->global_sync) w->global = late_global_new();
    launch_watch(l, &w->base);
}
