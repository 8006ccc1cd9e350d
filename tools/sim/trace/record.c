/* Events into a record: record.h. */
#include "trace/record.h"

#include <stdlib.h>

static const struct {
    const char *track, *text;
} op_texts[ASYNC_KINDS] = {
    [ASYNC_LOAD] = {"TMA", "load"},         [ASYNC_STORE] = {"TMA", "store"},
    [ASYNC_CP_ASYNC] = {"TMA", "cp.async"}, [ASYNC_REMOTE] = {"TMA", "remote"},
    [ASYNC_MMA] = {"MMA", "mma"},           [ASYNC_TENSOR_COPY] = {"MMA", "copy"},
    [ASYNC_COMMIT] = {"MMA", "commit"},     [ASYNC_TMEM_LOAD] = {"TMEM", "ld"},
    [ASYNC_TMEM_STORE] = {"TMEM", "st"}};

const char *trace_op_text(enum async_kind kind)
{
    return op_texts[kind].text;
}
const char *trace_op_track(enum async_kind kind)
{
    return op_texts[kind].track;
}

/* Room for one more in a growing array; false when there is none. */
static bool room(struct record *r, void **array, size_t count, size_t *capacity, size_t size)
{
    size_t grown = *capacity ? 2 * *capacity : 64;
    void *bytes;
    if (count < *capacity) return true;
    bytes = realloc(*array, grown * size);
    if (!bytes) {
        r->exhausted = true;
        return false;
    }
    *array = bytes;
    *capacity = grown;
    return true;
}

#define ADD(r, list)                                                           \
    (room(r, (void **)&(r)->list##s, (r)->list##_count, &(r)->list##_capacity, \
          sizeof *(r)->list##s)                                                \
         ? (int32_t)(r)->list##_count++                                        \
         : TRACE_NONE)

/* ---- warps and their items ---- */

static void start_cta(struct record *r, const struct cta *c)
{
    int32_t at = ADD(r, cta);
    if (at == TRACE_NONE) return;
    r->ctas[at] = (struct trace_cta){.linear = c->linear,
                                     .rank = c->rank,
                                     .cluster = c->cluster->linear,
                                     .first_warp = (int32_t)r->warp_count,
                                     .barriers = TRACE_NONE};
}

/* Places in the record. */
static uint32_t warp_index(const struct warp *w)
{
    return w->kept[SLOT_TRACE].number;
}
static uint32_t cta_index(const struct cta *c)
{
    return c->kept[SLOT_TRACE].number;
}

static void start_warp(struct record *r, struct warp *w)
{
    struct trace_warp *t;
    int32_t at;
    if (w->id == 0) start_cta(r, w->cta);
    at = ADD(r, warp);
    if (r->exhausted) return;
    w->cta->kept[SLOT_TRACE].number = (uint32_t)r->cta_count - 1;
    w->kept[SLOT_TRACE].number = (uint32_t)at;
    r->ctas[cta_index(w->cta)].warp_count++;
    t = &r->warps[at];
    *t = (struct trace_warp){.cta = (int32_t)cta_index(w->cta), .id = w->id, .work = w->work};
    for (int q = 0; q < QUEUES; q++) t->first_op[q] = t->last_op[q] = TRACE_NONE;
}

static void add_item(struct record *r, const struct event *e, struct trace_item item)
{
    struct trace_warp *t = &r->warps[warp_index(e->warp)];
    size_t capacity = t->item_capacity;
    if (++r->item_count > RECORD_ITEMS) r->exhausted = true;
    if (r->exhausted || !room(r, (void **)&t->items, t->item_count, &capacity, sizeof item)) return;
    t->item_capacity = (uint32_t)capacity;
    for (int p = 0; p < PIPES; p++) item.work.of[p] = e->warp->work.of[p] - t->work.of[p];
    item.lines = t->lines;
    item.sectors = t->sectors;
    item.in = e->in;
    t->work = e->warp->work;
    t->lines = t->sectors = 0;
    t->items[t->item_count++] = item;
}

/* ---- loads and stores ---- */

/* Pieces of 2^shift bytes that the lanes touch, one after the other; a piece that comes back later counts again. */
static uint32_t pieces(const struct event *e, unsigned shift)
{
    uint64_t last = UINT64_MAX;
    uint32_t count = 0;
    for (uint32_t lanes = e->lanes; lanes; lanes &= lanes - 1) {
        const uint64_t address = e->addresses[first_lane(lanes)];
        const uint64_t from = address >> shift, to = (address + e->size - 1) >> shift;
        count += (uint32_t)(to - from) + (from != last);
        last = to;
    }
    return count;
}

/* A thread's own accesses; those of operations are in their cost. Shared memory: as if no banks met. */
static void access_memory(struct record *r, const struct event *e)
{
    struct trace_warp *t = &r->warps[warp_index(e->warp)];
    if (!e->addresses || e->token || e->tensor) return;
    if (e->space == SPACE_SHARED)
        t->lines += ((uint32_t)__builtin_popcount(e->lanes) * (uint32_t)e->size + 127) / 128;
    if (e->space != SPACE_GLOBAL) return;
    t->lines += pieces(e, 7);
    if (e->access & ACCESS_WRITE) t->sectors += pieces(e, 5);
}

/* ---- barriers ---- */

static int32_t new_barrier(struct record *r, const struct cta *c, enum barrier_kind kind,
                           uint32_t key)
{
    struct trace_cta *owner = &r->ctas[cta_index(c)];
    int32_t at = ADD(r, barrier);
    if (at == TRACE_NONE) return at;
    r->barriers[at] = (struct trace_barrier){.kind = (uint8_t)kind,
                                             .cta = (int32_t)cta_index(c),
                                             .key = key,
                                             .next = owner->barriers,
                                             .first = TRACE_NONE,
                                             .last = TRACE_NONE};
    owner->barriers = at;
    return at;
}

/* The newest of that place: an mbarrier may be initialised there again. */
static int32_t find_barrier(struct record *r, const struct cta *c, enum barrier_kind kind,
                            uint32_t key)
{
    for (int32_t at = r->ctas[cta_index(c)].barriers; at != TRACE_NONE; at = r->barriers[at].next) {
        if (r->barriers[at].kind == kind && r->barriers[at].key == key) return at;
    }
    return new_barrier(r, c, kind, key);
}

/* The phase of that number, made if it is the barrier's next; TRACE_NONE for one before the first. */
static int32_t find_phase(struct record *r, int32_t barrier, uint64_t number)
{
    struct trace_barrier *b;
    int32_t at;
    if (barrier == TRACE_NONE) return TRACE_NONE;
    b = &r->barriers[barrier];
    at = b->last;
    if (at != TRACE_NONE && r->phases[at].number >= number) {
        if (r->phases[at].number == number) return at;
        for (at = b->first; at != TRACE_NONE && r->phases[at].number != number;)
            at = r->phases[at].next;
        return at;
    }
    at = ADD(r, phase);
    if (at == TRACE_NONE) return at;
    r->phases[at] = (struct trace_phase){.barrier = barrier, .number = number, .next = TRACE_NONE};
    if (b->last == TRACE_NONE)
        b->first = at;
    else
        r->phases[b->last].next = at;
    b->last = at;
    return at;
}

/* The phase of an mbarrier that arrivals go to now. */
static int32_t open_phase(struct record *r, const struct cta *c, uint32_t key)
{
    int32_t barrier = find_barrier(r, c, BARRIER_MBAR, key);
    const struct trace_barrier *b;
    uint64_t number = 0;
    if (barrier == TRACE_NONE) return TRACE_NONE;
    b = &r->barriers[barrier];
    if (b->last != TRACE_NONE)
        number = r->phases[b->last].number + (r->phases[b->last].complete ? 1 : 0);
    return find_phase(r, barrier, number);
}

static const struct cta *cluster_owner(const struct cta *c)
{
    return c->cluster->ctas[0];
}

/* ---- operations ---- */

int queue_of_op(const struct trace_op *op)
{
    switch (op->kind) {
    case ASYNC_STORE: return COMMIT_BULK;
    case ASYNC_CP_ASYNC: return COMMIT_CP_ASYNC;
    case ASYNC_MMA: return op->in->is.engine == ENGINE_WGMMA ? COMMIT_WGMMA : QUEUES;
    case ASYNC_TMEM_LOAD: return QUEUE_TMEM_LOAD;
    case ASYNC_TMEM_STORE: return QUEUE_TMEM_STORE;
    default: return QUEUES;
    }
}

static void issue(struct record *r, const struct event *e)
{
    struct trace_warp *t = &r->warps[warp_index(e->warp)];
    int32_t at = ADD(r, op);
    int queue;
    if (at == TRACE_NONE) return;
    r->ops[at] = (struct trace_op){.kind = (uint8_t)async_kind_of(e->in),
                                   .lane = (uint16_t)first_lane(e->lanes),
                                   .warp = (int32_t)warp_index(e->warp),
                                   .signals = TRACE_NONE,
                                   .next = TRACE_NONE,
                                   .cost = e->cost ? *e->cost : (struct async_cost){0},
                                   .token = e->token,
                                   .in = e->in};
    queue = queue_of_op(&r->ops[at]);
    if (queue < QUEUES) {
        if (t->last_op[queue] == TRACE_NONE)
            t->first_op[queue] = at;
        else
            r->ops[t->last_op[queue]].next = at;
        t->last_op[queue] = at;
        t->op_count[queue]++;
    }
    add_item(r, e, (struct trace_item){.kind = ITEM_ISSUE, .ref = at});
}

static int32_t find_op(const struct record *r, uint64_t token)
{
    /* Tokens rise with the index. */
    size_t low = 0, high = r->op_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->ops[middle].token < token)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->op_count && r->ops[low].token == token ? (int32_t)low : TRACE_NONE;
}

/* An arrival, or bytes, by an operation (token) or by the warp itself. */
static void signal_phase(struct record *r, const struct event *e, int32_t phase)
{
    int32_t op = e->token ? find_op(r, e->token) : TRACE_NONE, at;
    if (phase == TRACE_NONE) return;
    if (!e->token) {
        r->phases[phase].signals++;
        add_item(r, e, (struct trace_item){.kind = ITEM_ARRIVE, .ref = phase});
        return;
    }
    if (op == TRACE_NONE || (at = ADD(r, signal)) == TRACE_NONE) return;
    r->signals[at] = (struct trace_signal){phase, r->ops[op].signals};
    r->ops[op].signals = at;
    r->phases[phase].signals++;
}

/* ---- waits ---- */

static void group_commit(struct record *r, const struct event *e)
{
    struct trace_warp *t = &r->warps[warp_index(e->warp)];
    t->ends[e->key][t->groups[e->key]++ % GROUP_ENDS] = t->op_count[e->key];
}

static void drain(struct record *r, const struct event *e, int queue, int32_t upto)
{
    add_item(r, e,
             (struct trace_item){.kind = ITEM_DRAIN,
                                 .queue = (uint8_t)queue,
                                 .read_only = e->in && e->in->is.sources,
                                 .ref = upto});
}

static void group_wait(struct record *r, const struct event *e)
{
    const struct trace_warp *t = &r->warps[warp_index(e->warp)];
    uint64_t groups = t->groups[e->key];
    uint32_t upto = 0;
    /* Further back than the ends kept: long over. */
    if (e->value < groups && e->value < GROUP_ENDS)
        upto = t->ends[e->key][(groups - 1 - e->value) % GROUP_ENDS];
    drain(r, e, (int)e->key, (int32_t)upto);
}

static void pass(struct record *r, const struct event *e, int32_t phase)
{
    add_item(r, e, (struct trace_item){.kind = ITEM_PASS, .ref = phase});
}

static void on_event(struct observer *o, const struct event *e)
{
    struct record *r = (struct record *)o;
    if (r->exhausted) return;
    switch (e->kind) {
    case EV_ACCESS: access_memory(r, e); break;
    case EV_WARP_START: start_warp(r, e->warp); break;
    case EV_WARP_EXIT:
        if (!e->warp->live) add_item(r, e, (struct trace_item){.kind = ITEM_EXIT});
        break;
    case EV_ASYNC_ISSUE: issue(r, e); break;
    case EV_MBAR_INIT: new_barrier(r, e->cta, BARRIER_MBAR, e->key); break;
    case EV_MBAR_ARRIVE:
    case EV_MBAR_TX: signal_phase(r, e, open_phase(r, e->cta, e->key)); break;
    case EV_MBAR_PHASE: {
        int32_t phase = open_phase(r, e->cta, e->key);
        if (phase != TRACE_NONE) r->phases[phase].complete = true;
        break;
    }
    case EV_MBAR_PASS:
        pass(r, e,
             e->value == UINT64_MAX
                 ? TRACE_NONE
                 : find_phase(r, find_barrier(r, e->cta, BARRIER_MBAR, e->key), e->value));
        break;
    case EV_BARRIER_ARRIVE:
        signal_phase(r, e, find_phase(r, find_barrier(r, e->cta, BARRIER_NAMED, e->key), e->value));
        break;
    case EV_BARRIER_PASS:
        pass(r, e, find_phase(r, find_barrier(r, e->cta, BARRIER_NAMED, e->key), e->value));
        break;
    case EV_CLUSTER_ARRIVE:
        signal_phase(r, e,
                     find_phase(r, find_barrier(r, cluster_owner(e->cta), BARRIER_CLUSTER, 0),
                                e->value));
        break;
    case EV_CLUSTER_PASS:
        pass(r, e,
             find_phase(r, find_barrier(r, cluster_owner(e->cta), BARRIER_CLUSTER, 0), e->value));
        break;
    case EV_GROUP_COMMIT: group_commit(r, e); break;
    case EV_GROUP_WAIT: group_wait(r, e); break;
    case EV_TMEM_WAIT: {
        int queue = e->value ? QUEUE_TMEM_STORE : QUEUE_TMEM_LOAD;
        drain(r, e, queue, (int32_t)r->warps[warp_index(e->warp)].op_count[queue]);
        break;
    }
    default: break;
    }
}

static void on_end(struct observer *o, bool completed)
{
    (void)o;
    (void)completed;
}

static void outlive(struct observer *o)
{
    (void)o;
}

struct record *record_new(struct group *g)
{
    struct record *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->base = (struct observer){.on_event = on_event, .on_end = on_end, .destroy = outlive};
    r->index = g->index;
    return r;
}

void record_free(struct record *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->warp_count; i++) free(r->warps[i].items);
    free(r->ctas);
    free(r->warps);
    free(r->ops);
    free(r->signals);
    free(r->barriers);
    free(r->phases);
    free(r);
}
