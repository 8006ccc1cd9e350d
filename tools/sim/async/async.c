/*
 * The engine for work in flight: a heap of operations that may run, ordered by (ready, token);
 * first-in first-out pipes, of which only the head is in the heap; commit groups per lane.
 * Operations are recycled in size classes, so that a kernel in its main loop allocates nothing.
 */
#include "async/async.h"
#include "async/late.h"
#include "machine/event.h"

#include <stdlib.h>

enum {
    CACHE_LINE = 64,
    CLASS_SMALLEST = 64, /* bytes of payload in class 0; each class doubles */
    CLASSES = 22,
    HEAP_FIRST = 256,
    LATE_FACTOR = 64, /* of the typical latency */
    RING_FIRST = 4    /* commit groups of one lane and kind before the ring grows */
};

/* An operation and its payload in one block; `all` chains every block of the group. */
struct op_block {
    struct op_block *all;
    struct async_op op;
    _Alignas(16) unsigned char payload[];
};

/* Its order stands beside the operation: comparing two then touches neither. */
struct heap_entry {
    uint64_t ready, token;
    struct async_op *op;
};

struct async_heap {
    struct heap_entry *ops;
    size_t count, capacity;
    size_t blocks; /* ever allocated: capacity keeps up with it, so that a push cannot fail */
    struct op_block *all;
    struct async_op *free[CLASSES]; /* linked by next */
};

struct commit_entry {
    uint32_t pending; /* operations not over */
    uint32_t unread;  /* operations whose sources are not yet read */
};

/* Groups [first, open) are closed, `open` collects; entry of group n is ring[n % capacity]. */
struct commit_queue {
    uint64_t first, open;
    uint32_t capacity; /* a power of two */
    struct commit_entry *ring, own[RING_FIRST];
};

struct commit_lane {
    struct commit_queue queue[COMMIT_KINDS];
    uint32_t copies;         /* cp.async in flight */
    struct async_op *behind; /* arrives that wait for them, oldest first */
};

/* ---- heap ---- */

static bool before(const struct heap_entry *a, const struct heap_entry *b)
{
    return a->ready != b->ready ? a->ready < b->ready : a->token < b->token;
}

/* Puts it at `i` or above. */
static void heap_rise(struct async_heap *h, size_t i, struct heap_entry entry)
{
    while (i > 0 && before(&entry, &h->ops[(i - 1) / 2])) {
        h->ops[i] = h->ops[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->ops[i] = entry;
}

static void heap_push(struct async_heap *h, struct async_op *op)
{
    heap_rise(h, h->count++, (struct heap_entry){op->ready, op->token, op});
}

/* Takes out the one at `i`. */
static struct async_op *heap_take(struct async_heap *h, size_t i)
{
    struct async_op *taken = h->ops[i].op;
    const struct heap_entry last = h->ops[--h->count];
    if (i == h->count) return taken;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= h->count) break;
        if (child + 1 < h->count && before(&h->ops[child + 1], &h->ops[child])) child++;
        if (!before(&h->ops[child], &last)) break;
        h->ops[i] = h->ops[child];
        i = child;
    }
    heap_rise(h, i, last);
    return taken;
}

static bool heap_reserve(struct async_heap *h, size_t wanted)
{
    size_t capacity = h->capacity ? h->capacity : HEAP_FIRST;
    struct heap_entry *ops;
    while (capacity < wanted) capacity *= 2;
    if (capacity == h->capacity) return true;
    ops = realloc(h->ops, capacity * sizeof *ops);
    if (!ops) return false;
    h->ops = ops;
    h->capacity = capacity;
    return true;
}

void async_heap_free(struct group *g)
{
    struct async_heap *h = g->heap;
    if (!h) return;
    while (h->all) {
        struct op_block *block = h->all;
        h->all = block->all;
        free(block);
    }
    free(h->ops);
    free(h);
    g->heap = NULL;
}

/* ---- operations ---- */

static struct op_block *block_of(struct async_op *op)
{
    return (struct op_block *)(void *)((char *)op - offsetof(struct op_block, op));
}

void *async_payload(struct async_op *op)
{
    return block_of(op)->payload;
}

static struct async_op *block_take(struct async_heap *h, unsigned size_class)
{
    struct async_op *op = h->free[size_class];
    struct op_block *block;
    if (op) {
        h->free[size_class] = op->next;
        return op;
    }
    if (!heap_reserve(h, h->blocks + 1)) return NULL;
    block = malloc(sizeof *block + ((size_t)CLASS_SMALLEST << size_class));
    if (!block) return NULL;
    block->all = h->all;
    h->all = block;
    h->blocks++;
    return &block->op;
}

static void recycle(struct async_heap *h, struct async_op *op)
{
    op->next = h->free[op->size_class];
    h->free[op->size_class] = op;
}

static struct commit_lane *lanes_of(struct warp *w)
{
    struct commit_lane *lanes = w->async->lanes;
    if (lanes) return lanes;
    lanes = calloc(WARP_LANES, sizeof *lanes);
    if (!lanes) return NULL;
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        for (int kind = 0; kind < COMMIT_KINDS; kind++) {
            struct commit_queue *q = &lanes[lane].queue[kind];
            q->ring = q->own;
            q->capacity = RING_FIRST;
        }
    }
    w->async->lanes = lanes;
    return lanes;
}

struct async_op *async_new(struct warp *w, const struct insn *in, uint32_t lane, async_run_fn *run,
                           size_t payload_size)
{
    struct group *g = w->cta->group;
    unsigned size_class = 0;
    struct async_op *op;
    if (!g->heap) g->heap = calloc(1, sizeof *g->heap);
    if (!g->heap || !lanes_of(w)) return NULL;
    while (((size_t)CLASS_SMALLEST << size_class) < payload_size) {
        if (++size_class == CLASSES) return NULL;
    }
    op = block_take(g->heap, size_class);
    if (!op) return NULL;
    memset(op, 0, sizeof *op);
    op->run = run;
    op->token = ++g->async_seq;
    op->warp = w;
    op->lane = lane;
    op->in = in;
    op->cta = w->cta;
    op->commit = COMMIT_KINDS;
    op->payload_size = payload_size;
    op->size_class = (uint8_t)size_class;
    memset(async_payload(op), 0, payload_size);
    return op;
}

void async_discard(struct async_op *op)
{
    recycle(op->cta->group->heap, op);
}

/* Later than any program should count on: warps will have stopped for it where they can. */
static uint64_t late(struct group *g, struct async_latency l)
{
    uint32_t cycles = LATE_FACTOR * l.typical;
    return cycles + sim_random(g, cycles + 1);
}

/* The seed's choice of a delay (enum temper). */
static uint64_t delay(struct group *g, struct async_latency l)
{
    uint32_t spread = l.spread < l.typical ? l.spread : l.typical;
    uint64_t cycles;
    switch (g->temper) {
    case TEMPER_EAGER: return 1;
    case TEMPER_LAZY: return late(g, l) + 1;
    case TEMPER_TORN: return sim_random(g, 2) ? 1 : late(g, l) + 1;
    default: break;
    }
    switch (sim_random(g, 8)) {
    case 0: return 1;
    case 1: cycles = 4ULL * l.typical + sim_random(g, 4 * l.typical + 1); break;
    default: cycles = l.typical - spread + sim_random(g, 2 * spread + 1); break;
    }
    return cycles ? cycles : 1;
}

static void publish(struct group *g, enum event_kind kind, const struct async_op *op)
{
    if (!g->observer) return;
    observe(g, &(struct event){.kind = (uint8_t)kind,
                               .lanes = 1U << op->lane,
                               .warp = op->warp,
                               .in = op->in,
                               .cta = op->cta,
                               .token = op->token,
                               .cost = &op->cost});
}

static void announce(struct group *g, struct async_op *op)
{
    op->cta->in_flight++;
    publish(g, EV_ASYNC_ISSUE, op);
}

static void accept(struct group *g, struct async_op *op, struct async_latency latency)
{
    op->latency = latency;
    op->ready = g->now + delay(g, latency);
    announce(g, op);
}

/* True where it is the only one, at the head. */
static bool pipe_push(struct async_pipe *pipe, struct async_op *op)
{
    const bool first = !pipe->tail;
    if (first)
        pipe->head = op;
    else
        pipe->tail->next = op;
    pipe->tail = op;
    return first;
}

static struct async_op *pipe_pop(struct async_pipe *pipe)
{
    struct async_op *op = pipe->head;
    pipe->head = op->next;
    if (!pipe->head) pipe->tail = NULL;
    op->next = NULL;
    return op;
}

void async_submit(struct group *g, struct async_op *op, struct async_pipe *pipe,
                  struct async_latency latency)
{
    accept(g, op, latency);
    op->pipe = pipe;
    if (!pipe || pipe_push(pipe, op)) heap_push(g->heap, op);
}

void async_hold(struct group *g, struct async_op *op, struct async_pipe *held)
{
    announce(g, op);
    pipe_push(held, op);
}

void async_join(struct group *g, struct async_pipe *const held[], uint32_t count,
                struct async_pipe *pipe, struct async_latency latency)
{
    struct async_op *all = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (!held[i]->head) return;
    for (uint32_t i = count; i-- > 0;) {
        struct async_op *op = pipe_pop(held[i]);
        op->joined = all;
        all = op;
    }
    if (!all) return; /* of no pipe */
    all->latency = latency;
    all->ready = g->now + delay(g, latency);
    all->pipe = pipe;
    if (pipe_push(pipe, all)) heap_push(g->heap, all);
}

void async_submit_after_copies(struct group *g, struct async_op *op, struct async_latency latency)
{
    struct commit_lane *lane = &op->warp->async->lanes[op->lane];
    struct async_op **at = &lane->behind;
    accept(g, op, latency);
    if (!lane->copies) {
        heap_push(g->heap, op);
        return;
    }
    op->copies_before = lane->copies;
    while (*at) at = &(*at)->next;
    *at = op;
}

/* ---- commit groups ---- */

static struct commit_entry *entry_of(struct commit_queue *q, uint64_t number)
{
    return &q->ring[number & (q->capacity - 1)];
}

static void retire(struct commit_queue *q)
{
    while (q->first < q->open && !entry_of(q, q->first)->pending) q->first++;
}

static bool ring_grow(struct commit_queue *q)
{
    uint32_t capacity = 2 * q->capacity;
    struct commit_entry *ring = calloc(capacity, sizeof *ring);
    if (!ring) return false;
    for (uint64_t n = q->first; n <= q->open; n++) ring[n & (capacity - 1)] = *entry_of(q, n);
    if (q->ring != q->own) free(q->ring);
    q->ring = ring;
    q->capacity = capacity;
    return true;
}

static uint64_t queue_close(struct commit_queue *q)
{
    retire(q);
    /* Where memory is exhausted the group stays open and takes in the next one: waits then wait
     * for more than they asked for, which is always legal. */
    if (q->open - q->first + 1 == q->capacity && !ring_grow(q)) return q->open;
    *entry_of(q, q->open + 1) = (struct commit_entry){0};
    return q->open++;
}

static uint32_t group_lanes(enum commit_kind kind, uint32_t lanes)
{
    return kind == COMMIT_WGMMA ? 1U : lanes; /* one sequence for the warp */
}

static struct commit_queue *queue_of(const struct async_op *op)
{
    uint32_t lane = op->commit == COMMIT_WGMMA ? 0 : op->lane;
    return &op->warp->async->lanes[lane].queue[op->commit];
}

void async_in_group(struct async_op *op, enum commit_kind kind)
{
    struct commit_queue *q;
    op->commit = (uint8_t)kind;
    q = queue_of(op);
    op->commit_number = q->open;
    entry_of(q, q->open)->pending++;
    entry_of(q, q->open)->unread++;
    if (kind == COMMIT_CP_ASYNC) op->warp->async->lanes[op->lane].copies++;
}

uint64_t commit_close(struct warp *w, enum commit_kind kind, uint32_t lanes)
{
    struct commit_lane *all = w->async->lanes;
    uint64_t number = 0;
    uint32_t first, rest = group_lanes(kind, lanes);
    if (!all) return 0; /* no operation ever: an empty group, complete from the start */
    first = first_lane(rest);
    for (; rest; rest &= rest - 1) {
        uint32_t lane = first_lane(rest);
        uint64_t closed = queue_close(&all[lane].queue[kind]);
        if (lane == first) number = closed;
    }
    return number;
}

static bool queue_done(struct commit_queue *q, uint64_t pending, bool read_only)
{
    uint64_t end;
    retire(q);
    if (q->open - q->first <= pending) return true;
    end = q->open - pending;
    for (uint64_t n = q->first; n < end; n++) {
        const struct commit_entry *e = entry_of(q, n);
        if (read_only ? e->unread : e->pending) return false;
    }
    return true;
}

bool commit_done(const struct warp *w, enum commit_kind kind, uint32_t lanes, uint64_t pending,
                 bool read_only)
{
    struct commit_lane *all = w->async->lanes;
    uint32_t rest = group_lanes(kind, lanes);
    if (!all) return true;
    for (; rest; rest &= rest - 1) {
        if (!queue_done(&all[first_lane(rest)].queue[kind], pending, read_only)) return false;
    }
    return true;
}

uint64_t commit_closed(const struct warp *w, enum commit_kind kind)
{
    return w->async->lanes ? w->async->lanes[0].queue[kind].open : 0;
}

bool commit_reached(const struct warp *w, enum commit_kind kind, uint64_t groups)
{
    struct commit_queue *q = w->async->lanes ? &w->async->lanes[0].queue[kind] : NULL;
    if (!q || q->open < groups) return groups == 0;
    retire(q);
    for (uint64_t n = q->first; n < groups; n++) {
        if (entry_of(q, n)->pending) return false;
    }
    return true;
}

/* ---- completion ---- */

static void sources_read(struct async_op *op)
{
    if (op->sources_read) return;
    op->sources_read = true;
    if (op->commit != COMMIT_KINDS) {
        struct commit_entry *e = entry_of(queue_of(op), op->commit_number);
        if (!--e->unread) sim_wake(op->cta, WAIT_GROUPS, op->commit);
    }
}

/* A cp.async copy landed: arrives that waited for it last may now run. */
static void release_behind(struct group *g, const struct async_op *copy)
{
    struct commit_lane *lane = &copy->warp->async->lanes[copy->lane];
    struct async_op **at = &lane->behind;
    lane->copies--;
    while (*at) {
        struct async_op *op = *at;
        if (op->token < copy->token || --op->copies_before) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        op->next = NULL;
        op->ready = g->now + delay(g, op->latency);
        heap_push(g->heap, op);
    }
}

static void finish(struct group *g, struct async_op *op)
{
    struct warp_async *wa = op->warp->async;
    struct async_pipe *pipe = op->pipe;
    if (pipe) {
        pipe_pop(pipe);
        if (pipe->head) heap_push(g->heap, pipe->head);
    }
    if (op->commit != COMMIT_KINDS) {
        struct commit_entry *e = entry_of(queue_of(op), op->commit_number);
        sources_read(op);
        if (!--e->pending) sim_wake(op->cta, WAIT_GROUPS, op->commit);
        if (op->commit == COMMIT_CP_ASYNC) release_behind(g, op);
    }
    if (pipe && (pipe == &wa->tmem_ld || pipe == &wa->tmem_st)) {
        sim_wake(op->cta, WAIT_TENSOR, WAKE_ANY);
    }
    op->cta->in_flight--;
    publish(g, EV_ASYNC_DONE, op);
    recycle(g->heap, op);
}

/* Its next stage; it is in no heap. */
static void run_stage(struct group *g, struct async_op *op)
{
    bool over;
    g->progress++;
    if (g->late) late_before(g, op);
    over = op->run(g, op);
    if (g->late) late_after(g, op, over);
    if (over) {
        while (op) {
            struct async_op *joined = op->joined;
            finish(g, op);
            op = joined;
        }
    } else {
        sources_read(op);
        op->stage++;
        op->ready = g->now + delay(g, op->latency);
        heap_push(g->heap, op);
    }
}

/* Thousands of copies may be in flight, more than a cache holds, and the next one is known. */
static void fetch_ahead(const struct async_op *op)
{
    for (size_t at = 0; at < sizeof *op + CLASS_SMALLEST; at += CACHE_LINE)
        __builtin_prefetch((const char *)op + at, 1);
}

bool async_advance(struct group *g)
{
    struct async_heap *h = g->heap;
    bool ran = false;
    while (h && h->count && h->ops[0].ready <= g->now && !g->failed) {
        struct async_op *op = heap_take(h, 0);
        ran = true;
        if (h->count) fetch_ahead(h->ops[0].op);
        run_stage(g, op);
    }
    return ran;
}

size_t async_offers(const struct group *g, struct async_op **ops, size_t room)
{
    const struct async_heap *h = g->heap;
    for (size_t i = 0; h && i < h->count && i < room; i++) ops[i] = h->ops[i].op;
    return h ? h->count : 0;
}

static bool copies_in_flight(const struct warp *w)
{
    const struct commit_lane *lanes = w->async->lanes;
    for (uint32_t lane = 0; lanes && lane < WARP_LANES; lane++)
        if (lanes[lane].copies) return true;
    return false;
}

size_t async_copies(const struct warp *w, const struct async_op **ops, size_t room)
{
    const struct async_heap *h = w->cta->group->heap;
    size_t count = 0;
    if (!copies_in_flight(w)) return 0;
    for (size_t i = 0; i < h->count; i++) {
        const struct async_op *op = h->ops[i].op;
        if (op->warp != w || op->commit != COMMIT_CP_ASYNC) continue;
        if (count < room) ops[count] = op;
        count++;
    }
    return count;
}

void async_run(struct group *g, struct async_op *op)
{
    struct async_heap *h = g->heap;
    size_t i = 0;
    while (h->ops[i].op != op) i++;
    run_stage(g, heap_take(h, i));
}

uint64_t async_next(const struct group *g)
{
    return g->heap && g->heap->count ? g->heap->ops[0].ready : UINT64_MAX;
}

/* ---- per-warp state ---- */

struct warp_async *warp_async_new(void)
{
    return calloc(1, sizeof(struct warp_async));
}

void warp_async_reset(struct warp_async *a)
{
    struct commit_lane *lanes = a->lanes;
    memset(a, 0, sizeof *a);
    a->lanes = lanes;
    for (uint32_t lane = 0; lanes && lane < WARP_LANES; lane++) {
        lanes[lane].copies = 0;
        lanes[lane].behind = NULL;
        for (int kind = 0; kind < COMMIT_KINDS; kind++) {
            struct commit_queue *q = &lanes[lane].queue[kind];
            q->first = q->open = 0;
            q->ring[0] = (struct commit_entry){0};
        }
    }
}

void warp_async_free(struct warp_async *a)
{
    if (!a) return;
    for (uint32_t lane = 0; a->lanes && lane < WARP_LANES; lane++) {
        for (int kind = 0; kind < COMMIT_KINDS; kind++) {
            struct commit_queue *q = &a->lanes[lane].queue[kind];
            if (q->ring != q->own) free(q->ring);
        }
    }
    free(a->lanes);
    free(a);
}
