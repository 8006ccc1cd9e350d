/*
 * Accesses against the shadow of memory: an access that conflicts with an earlier one must be ordered
 * after it, by what its issuer knew when it was issued. A pair that is not is told whichever ran
 * first, so what is found does not depend on the schedule that ran.
 */
#include "ops/access.h"
#include "check/check.h"
#include "check/constant.h"
#include "check/launch_memory.h"
#include "machine/mem.h"
#include "decode/names.h"
#include "check/order_judge.h"
#include "check/order_tell.h"
#include "check/undefined.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TENSOR_ROW = TENSOR_BLOCKS, /* cells of one column */
    PAIR = 2                    /* cta_group::2 */
};

/* ---- touching ---- */

static void map_used(struct order *o, uint64_t address)
{
    for (uint32_t i = 0; i < o->map_count; i++) {
        if (o->maps[i] == address) return;
    }
    if (o->map_count < MAPS_KEPT) o->maps[o->map_count++] = address;
}

static const struct clock nothing;

/* The clock whose knowledge of a prior access settles it. */
static const struct clock *needs(const struct accessor *a)
{
    if (a->place == PLACE_TENSOR) return a->o->level < 2 ? &a->w->after : &nothing;
    if (a->e->proxy == PROXY_TENSORMAP) return &a->w->cta->described;
    if (reads_apart(a->e->in)) return &nothing;
    return a->e->proxy == PROXY_ASYNC ? &a->w->now.bridged : &a->w->now.known;
}

/* The order's one touch: what it remembers of cells holds for an operation's next event too. */
static struct touch *begin(struct accessor *a)
{
    struct order *o = a->o;
    struct touch *t = &o->touch;
    struct order_cluster *c = a->w->cta->cluster;
    struct world *world = a->place == PLACE_GLOBAL ? o->world : NULL;
    struct shadow *shadow = world ? &world->shadow : &c->shadow;
    const struct component *self = order_component(a->w, a->component);
    const bool write = (a->e->access & ACCESS_WRITE) != 0 || a->gives_back;
    const epoch e = epoch_make(world ? order_actor(a->w, a->component) : a->component, self->number,
                               order_insn_index(o, a->e->in));
    (void)shadow_collect(shadow);
    if (t->collections != shadow->collections || t->self != e || t->write != write ||
        t->shadow != shadow || o->touch_version != a->w->version || o->touch_strong != a->strong ||
        o->touch_place != (int)a->place || o->touch_proxy != a->e->proxy) {
        shadow_forget(t);
        t->self = e;
        t->write = write;
        t->shadow = shadow;
        t->collections = shadow->collections;
        o->touch_version = a->w->version;
        o->touch_strong = a->strong;
        o->touch_place = (int)a->place;
        o->touch_proxy = a->e->proxy;
    }
    t->async = a->e->proxy == PROXY_ASYNC && a->place != PLACE_TENSOR;
    t->copies = self->kind == COMPONENT_COPY && a->place == PLACE_SHARED;
    t->unordered = self->kind == COMPONENT_BULK_DONE || self->kind == COMPONENT_CP_ASYNC ||
                   self->kind == COMPONENT_REMOTE_STORE;
    t->overtakes = 0;
    t->asks_own = reads_apart(a->e->in);
    t->asks_queue = write && a->place == PLACE_TENSOR && a->e->in->is.class == INSN_TENSOR_COPY;
    t->now = &a->w->now;
    t->needs = needs(a);
    t->knows = world ? order_knows_abroad : NULL;
    t->judge = a->place == PLACE_TENSOR ? order_judge_tensor
               : world                  ? order_judge_abroad
                                        : order_judge;
    t->is_strong = order_is_strong;
    t->shows = order_shows;
    t->reads_strong = order_reads_strong;
    a->least = world ? SCOPE_GPU : c->cluster->cta_count > 1 ? SCOPE_CLUSTER : SCOPE_CTA;
    t->strong = a->strong && a->e->in->is.scope >= a->least;
    t->context = a;
    t->replaces = 0;
    t->lost = t->unwritten = t->written = t->overwrites = false;
    t->varies = t->again_first = t->again = false;
    t->first = true;
    return t;
}

/*
 * PTX ISA "Asynchronous operations": copies of one thread are in no order, until it waits for one of them. Which of two that
 * write one place comes last is chance; of two reductions it is no matter. `copies`: what both are.
 */
static void tell_overtakes(const struct accessor *a, const struct insn *other, const char *object,
                           const char *copies, const char *remedy)
{
    char message[360];
    (void)snprintf(message, sizeof message,
                   "writes %s, which an earlier %s of this warp (line %u) writes as well, and "
                   "nothing waits for that one: such copies are in no order, so either may come "
                   "last. Cheapest remedy: %s between the two.",
                   object, copies, other ? other->src->pos.line : 0, remedy);
    tell_alone(a->w, a->e->in, first_lane(a->e->lanes), FIND_RACE, object, message, other,
               "the earlier copy");
}

static void check_overtakes(const struct accessor *a, const struct touch *t)
{
    const struct insn *other = insn_at(a->o, epoch_insn(t->overtakes));
    const bool sums =
        other && other->is.class == INSN_COPY_RED && a->e->in->is.class == INSN_COPY_RED;
    const bool remote = a->class == CLASS_REMOTE_STORE;
    char object[96];
    if (remote && a->strong && other && other->is.strong) { /* red.async: sums come to the same */
        if (other->row != a->e->in->row) order_sampled(a->o, SAMPLED_OVERTAKES, a->e->in);
        return;
    }
    /* Lanes of one instruction that all store the same bytes to one place: kernels without elect.sync do. */
    if (a->class == CLASS_BULK && other == a->e->in && !sums &&
        order_groups_alike(a->w, epoch_number(t->overtakes)))
        return;
    order_sampled(a->o, SAMPLED_OVERTAKES, a->e->in);
    if (a->class == CLASS_BULK && !sums) {
        tell_overtakes(a, other, "global memory", "bulk copy",
                       "cp.async.bulk.wait_group (not .read)");
    } else if (a->place == PLACE_SHARED && other && other != a->e->in) {
        (void)name_shared(a->o->kernel, (uint32_t)a->at, object, sizeof object);
        tell_overtakes(a, other, object, remote ? "asynchronous store" : "copy of a thread",
                       remote ? "a wait for the phase on which the earlier one completes,"
                              : "a wait for the thread's copies");
    }
}

/* Where the launch reads and writes one place, a second run would read what this one wrote (repeat.h). */
static void note_reads_back(const struct accessor *a, const struct touch *t)
{
    if (a->place != PLACE_GLOBAL || !t->write) return;
    if (t->overwrites || a->gives_back || (a->e->access & ACCESS_READ))
        __atomic_store_n(&a->o->check->reads_back, true, __ATOMIC_RELAXED);
}

/* A store that changed what its warp had stored since its last release. Lanes that store to one address are one store. */
static void note_varied(const struct accessor *a, const struct touch *t)
{
    const bool apart = a->e->span && a->e->span->low != a->e->span->high;
    if (t->varies) a->o->varied[varied_slot(t->self)] = t->self;
    if (t->again_first || (t->again && apart)) a->o->again[varied_slot(t->self)] = t->self;
}

static void finish(struct accessor *a, const struct touch *t)
{
    struct component *self = order_component(a->w, a->component);
    note_reads_back(a, t);
    if (!a->e->value && self->kind == COMPONENT_WARP) note_varied(a, t);
    if (self->kind == COMPONENT_COPY && t->write && !self->over && a->place == PLACE_SHARED)
        self->over = t->replaces;
    if (t->overtakes) check_overtakes(a, t);
    if (t->shadow->failed)
        order_exhausted(a->o, t->shadow->most ? "room for the shadow of global memory" : NULL);
    if (t->lost) order_exhausted(a->o, "accesses of one place that are kept");
}

/* ---- shared memory ---- */

/* PTX ISA "Lifecycle of the mbarrier object": no ordinary access to a live one. */
static void check_clobber(const struct accessor *a, const struct order_cta *c, uint64_t at,
                          uint64_t bytes)
{
    char object[96], message[320];
    for (uint32_t i = 0; i < c->bar_slots; i++) {
        const struct order_bar *b = c->bars[i];
        const struct insn *init;
        if (!b || !b->live || at >= b->offset + 8U || at + bytes <= b->offset) continue;
        init = epoch_insn(b->init) < a->o->kernel->insn_count
                   ? &a->o->kernel->insns[epoch_insn(b->init)]
                   : NULL;
        (void)name_shared(a->o->kernel, b->offset, object, sizeof object);
        (void)snprintf(message, sizeof message,
                       "this instruction overwrites %s, which is a live mbarrier (bytes %u to %u "
                       "of the shared "
                       "window). Cheapest remedy: other memory, or mbarrier.inval after its last "
                       "use.",
                       object, b->offset, b->offset + 7);
        tell_alone(a->w, a->e->in, a->e->addresses ? NO_LANE : first_lane(a->e->lanes),
                   FIND_MBARRIER_CLOBBER, object, message, init, "the barrier is initialised here");
        return;
    }
}

/* Where variables of shared memory lie is the compiler's: a copy that begins in one must end there. */
static void check_past_end(const struct accessor *a, uint64_t at, uint64_t bytes)
{
    const struct ptx_entry *entry = a->o->kernel->entry;
    char object[96], message[320];
    for (uint32_t i = 0; i < entry->shared_count; i++) {
        const struct ptx_var *v = entry->shared[i];
        const uint64_t first = SHARED_RESERVED + v->offset, end = first + v->bytes;
        if (at < first || at >= end || at + bytes <= end) continue;
        (void)name_shared(a->o->kernel, (uint32_t)at, object, sizeof object);
        (void)snprintf(
            message, sizeof message,
            "the copy has %llu bytes from %s on and goes %llu bytes past the end of that variable "
            "of "
            "%llu bytes: what lies behind it is the compiler's choice. Cheapest remedy: a smaller "
            "copy, or a larger variable.",
            (unsigned long long)bytes, object, (unsigned long long)(at + bytes - end),
            (unsigned long long)v->bytes);
        tell_alone(a->w, a->e->in, NO_LANE, FIND_OOB, object, message, NULL, NULL);
    }
}

static void touch_shared(struct accessor *a, struct touch *t, struct cta *cta, uint64_t at,
                         uint64_t bytes)
{
    struct order_cta *c = order_cta_of(cta);
    if (!c || at >= cta->shared_bytes) return;
    if (c != a->w->cta) order_touch_peer(a->w, c, a->e);
    if (bytes > cta->shared_bytes - at) bytes = cta->shared_bytes - at;
    a->cta = c;
    a->at = at;
    a->bytes = bytes;
    if (t->write && at < c->bar_high && at + bytes > c->bar_low) check_clobber(a, c, at, bytes);
    if (a->class == CLASS_BULK || a->class == CLASS_COPY) check_past_end(a, at, bytes);
    if (t->write && c->undefined_bytes) undefined_overwritten(c, at, bytes);
    shadow_touch(t, c->shared, SHARED_CELL, at, bytes, 0);
}

/*
 * Bytes of shared memory that nobody wrote, loaded or stored away by a plain bulk copy: a warning at level
 * 2, for vector loads and rows that are masked later read padding too. Products and boxes of a tensor
 * store may reach over what counts.
 */
static void tell_fresh(const struct accessor *a, const struct touch *t)
{
    const struct event *e = a->e;
    char object[96], message[320];
    if (a->o->level < 2 || !t->unwritten || e->access != ACCESS_READ) return;
    if (e->token ? a->class != CLASS_BULK || e->in->is.shape == SHAPE_BOX
                 : e->in->is.class != INSN_LOAD || e->proxy != PROXY_GENERIC)
        return;
    sim_idiom(a->o->group, e->in, IDIOM_PADDING_READ);
    (void)name_shared(a->o->kernel, (uint32_t)a->at, object, sizeof object);
    (void)snprintf(
        message, sizeof message,
        "reads shared memory of which %s was ever written (%u bytes from %s on). Cheapest "
        "remedy: write it first, or read where it was written.",
        t->written ? "part only" : "nothing", (uint32_t)a->bytes, object);
    tell_warning(a->w, e->in, e->token ? first_lane(e->lanes) : NO_LANE, FIND_UNINIT, object,
                 message);
}

/* An atomic on bytes that nobody wrote depends on undefined values, unless it only stores a value. The
 * exception is the system's part of shared memory: there cooperative groups clear the bits of their
 * barriers by red.and, each warp its own. */
static void tell_garbage(const struct accessor *a, const struct touch *t)
{
    const struct insn *in = a->e->in;
    char object[96], message[320];
    if (!t->unwritten || (in->is.class != INSN_ATOMIC && in->is.class != INSN_RED)) return;
    if (!in->is.changes || a->at + a->bytes <= SHARED_RESERVED) return;
    (void)name_shared(a->o->kernel, (uint32_t)a->at, object, sizeof object);
    (void)snprintf(message, sizeof message,
                   "changes shared memory of which %s was ever written (%u bytes from %s on): what "
                   "it starts from is left over from other kernels. Cheapest remedy: store a first "
                   "value, then a barrier for all that change it.",
                   t->written ? "part only" : "nothing", (uint32_t)a->bytes, object);
    tell_alone(a->w, in, NO_LANE, FIND_UNINIT, object, message, NULL, NULL);
}

/* Address as lanes and operations give it: rank and offset. */
static void touch_window(struct accessor *a, struct touch *t, uint64_t address, uint64_t bytes)
{
    struct cta *cta;
    uint32_t offset;
    if (mem_shared(a->w->warp, (uint32_t)address, &cta, &offset))
        touch_shared(a, t, cta, offset, bytes);
}

/* PTX ISA "griddepcontrol": before its wait, nothing that the grid before wrote may be there yet. */
static void check_before(const struct accessor *a, const struct touch *t, uint64_t address,
                         uint64_t bytes)
{
    const struct launch_memory *before = a->o->check->before, *running[BESIDE_MOST], *m;
    const struct launch_access access = {.address = address,
                                         .bytes = bytes,
                                         .write = t->write,
                                         .strong = a->strong && a->e->in->is.scope >= SCOPE_GPU};
    const uint32_t grid = a->w->cta->cluster->grid;
    const bool waited = grid && clock_get(&a->w->now.known, grid);
    bool beyond;
    const uint32_t count = launch_memory_beside(before, waited, running, &beyond);
    char message[640];
    bool wrote = false;
    uint32_t line = 0, i = 0;
    while (i < count && !(line = launch_memory_line(running[i], &access, &wrote))) i++;
    if (i == count) {
        if (beyond) order_sampled(a->o, SAMPLED_OVERLAPS, a->e->in);
        return;
    }
    m = running[i];
    if (m == before)
        (void)snprintf(
            message, sizeof message,
            "%s global memory (0x%llx) before griddepcontrol.wait; the kernel before, %s, %s "
            "it at line %u and may still be running, for this launch is allowed to overlap "
            "it (programmatic stream serialization). Cheapest remedy: griddepcontrol.wait "
            "ahead of this.",
            t->write ? "writes" : "reads", (unsigned long long)address, launch_memory_kernel(m),
            wrote ? "writes" : "reads", line);
    else if (!waited)
        (void)snprintf(message, sizeof message,
                       "%s global memory (0x%llx) before griddepcontrol.wait; an earlier kernel, "
                       "%s, %s it at line %u and may still be running, because %s, the kernel "
                       "just before, let this one begin before it waited itself. Cheapest "
                       "remedy: griddepcontrol.wait ahead of this.",
                       t->write ? "writes" : "reads", (unsigned long long)address,
                       launch_memory_kernel(m), wrote ? "writes" : "reads", line,
                       launch_memory_kernel(before));
    else
        (void)snprintf(message, sizeof message,
                       "%s global memory (0x%llx), which an earlier kernel, %s, %s at line %u. "
                       "That one may still be "
                       "running: it let the kernel behind it, which never executes "
                       "griddepcontrol.wait, begin early and end "
                       "before it. griddepcontrol.wait waits for the kernel just before, %s, and "
                       "no other. Cheapest "
                       "remedy: griddepcontrol.wait in every kernel of the chain.",
                       t->write ? "writes" : "reads", (unsigned long long)address,
                       launch_memory_kernel(m), wrote ? "writes" : "reads", line,
                       launch_memory_kernel(before));
    tell_alone(a->w, a->e->in, NO_LANE, FIND_RACE, "global memory", message, NULL, NULL);
}

static void tell_beside(const struct accessor *a, const struct touch *t, uint64_t address,
                        const struct check_beside *b, uint32_t line, bool wrote)
{
    const char *where = b->in_graph ? "another branch of the graph" : "another stream";
    char message[640], other[300];
    if (b->memory)
        (void)snprintf(other, sizeof other, "%s, a launch of %s, %s at line %u",
                       launch_memory_kernel(b->memory), where, wrote ? "writes" : "reads", line);
    else
        (void)snprintf(other, sizeof other, "%s of %s %s", b->copied.name, where,
                       wrote ? b->copied.writes : "reads");
    (void)snprintf(message, sizeof message,
                   "%s global memory (0x%llx) that %s. Nothing orders the two %s, so either may "
                   "come first, or both may run at the same time. Cheapest remedy: %s",
                   t->write ? "writes" : "reads", (unsigned long long)address, other,
                   b->in_graph ? "branches" : "streams",
                   b->in_graph ? "an edge of the graph from the one node to the other."
                               : "record an event behind the one and let the other's stream wait "
                                 "for it, or submit both to one stream.");
    tell_alone(a->w, a->e->in, NO_LANE, FIND_RACE, "global memory", message, NULL, NULL);
}

/* The constant that the access stores, found once for each instruction. */
static const struct stored *stored_by(struct order *o, const struct insn *in)
{
    static const struct stored none;
    if (in->is.class != INSN_STORE) return &none;
    if (!o->stored) o->stored = stored_constants(o->kernel);
    return o->stored ? &o->stored[in - o->kernel->insns] : &none;
}

/* What another stream does that no event orders with this launch may come before it, after it, or at the same time. Where
 * either kernel looks at global memory by strong accesses, these may order them. */
static void check_beside(const struct accessor *a, const struct touch *t, uint64_t address,
                         uint64_t bytes)
{
    const struct check *check = a->o->check;
    struct launch_access access = {.address = address,
                                   .bytes = bytes,
                                   .write = t->write,
                                   .strong = a->strong && a->e->in->is.scope >= SCOPE_GPU};
    if (check->beside_gone) order_sampled(a->o, SAMPLED_BESIDE, a->e->in);
    if (t->write && check->beside_count) access.stores = stored_by(a->o, a->e->in);
    for (uint32_t i = 0; i < check->beside_count; i++) {
        const struct check_beside *b = &check->beside[i];
        bool wrote = false;
        uint32_t line = 0;
        if (b->memory) line = launch_memory_line(b->memory, &access, &wrote);
        if (!line && (b->memory || !copied_meets(&b->copied, address, bytes, t->write, &wrote)))
            continue;
        if (check->waits || (b->memory && launch_memory_waited(b->memory)))
            order_sampled(a->o, SAMPLED_BESIDE, a->e->in);
        else
            tell_beside(a, t, address, b, line, wrote);
    }
}

/* Which lines an SM may hold in its own cache, and which of these are old. */
static void note_lines(const struct accessor *a, const struct touch *t, uint64_t address,
                       uint64_t bytes)
{
    uint8_t *lines = world_lines(a->o->world, address);
    const uint64_t first = address % GLOBAL_PAGE / GLOBAL_CELL;
    const uint64_t last = (address + bytes - 1) % GLOBAL_PAGE / GLOBAL_CELL;
    if (!lines) {
        order_exhausted(a->o, NULL);
        return;
    }
    for (uint64_t i = first; i <= last; i++) {
        if (t->write)
            lines[i] |= lines[i] & LINE_LOADED ? LINE_STALE : 0;
        else if (!t->async && !a->strong)
            lines[i] |= LINE_LOADED;
    }
}

static void touch_global(struct accessor *a, struct touch *t, uint64_t address, uint64_t bytes)
{
    if (a->o->check->before) check_before(a, t, address, bytes);
    if (a->o->check->beside_count || a->o->check->beside_gone) check_beside(a, t, address, bytes);
    a->bytes = bytes;
    while (bytes) {
        const uint64_t in_page = address % GLOBAL_PAGE, room = GLOBAL_PAGE - in_page;
        const uint64_t part = bytes < room ? bytes : room;
        struct cell *cells = shadow_page(t->shadow, address);
        if (!cells) return;
        a->at = address;
        shadow_touch(t, cells, GLOBAL_CELL, in_page, part, address - in_page);
        if (a->o->world) note_lines(a, t, address, part);
        address += part;
        bytes -= part;
    }
}

/* A page's share of what is given back. */
static void forget_page(struct accessor *a, struct touch *t, uint64_t address, uint64_t bytes)
{
    const uint64_t in_page = address % GLOBAL_PAGE, first = in_page / GLOBAL_CELL;
    const uint64_t cells = (in_page + bytes + GLOBAL_CELL - 1) / GLOBAL_CELL - first;
    struct cell *page = shadow_page_there(t->shadow, address);
    if (!page) return;
    a->at = address;
    a->bytes = bytes;
    shadow_touch(t, page, GLOBAL_CELL, in_page, bytes, address - in_page);
    memset(page + first, 0, cells * sizeof *page);
    if (a->o->world) memset(world_lines(a->o->world, address) + first, 0, cells);
}

void order_heap_free(struct order *o, const struct event *e)
{
    struct event write = *e;
    struct accessor a = {.o = o,
                         .w = order_warp_of(e->warp),
                         .e = &write,
                         .place = PLACE_GLOBAL,
                         .gives_back = true};
    const uint64_t end = e->address + e->size;
    struct touch *t;
    write.access = ACCESS_WRITE;
    write.space = SPACE_GLOBAL;
    order_tick(a.w);
    a.component = a.w->chain[COMPONENT_WARP];
    t = begin(&a);
    for (uint64_t at = e->address; at < end; at += GLOBAL_PAGE - at % GLOBAL_PAGE) {
        const uint64_t room = GLOBAL_PAGE - at % GLOBAL_PAGE;
        forget_page(&a, t, at, end - at < room ? end - at : room);
    }
    finish(&a, t);
    o->touch.self = 0; /* what it remembers of cells holds no more */
}

void order_bar_word(struct order *o, const struct event *e)
{
    struct event write = *e;
    struct accessor a = {.o = o, .w = order_warp_of(e->warp), .e = &write, .place = PLACE_SHARED};
    struct touch *t;
    write.access = ACCESS_WRITE;
    write.space = SPACE_SHARED;
    write.addresses = NULL;
    write.value = 0;
    a.component = a.w->chain[COMPONENT_WARP];
    t = begin(&a);
    touch_shared(&a, t, e->cta, e->key, 8);
    finish(&a, t);
}

/* All the bytes of a generic access lie in the CTA's own shared memory, and none in an mbarrier. */
static bool in_own_shared(const struct accessor *a)
{
    const struct event *e = a->e;
    const struct cta *cta = a->w->warp->cta;
    const struct order_cta *c = a->w->cta;
    uint64_t low, end;
    if (a->place != PLACE_SHARED || e->token || !e->span || e->span->high >> SHARED_RANK_SHIFT ||
        cta->rank)
        return false;
    low = e->span->low;
    end = e->span->high + e->size;
    return low >= SHARED_RESERVED && end <= cta->shared_bytes &&
           (end <= c->bar_low || low >= c->bar_high);
}

/* touch_shared for such an access, of which all that it looks for is known. */
static void touch_own(struct accessor *a, struct touch *t, uint64_t at, uint64_t bytes)
{
    a->at = at;
    a->bytes = bytes;
    if (t->write && a->w->cta->undefined_bytes) undefined_overwritten(a->w->cta, at, bytes);
    shadow_touch(t, a->w->cta->shared, SHARED_CELL, at, bytes, 0);
}

/* Lanes whose pieces follow one another make one range. */
static void touch_lanes(struct accessor *a, struct touch *t,
                        void (*range)(struct accessor *, struct touch *, uint64_t, uint64_t))
{
    const struct event *e = a->e;
    uint64_t start = 0, bytes = 0;
    if (e->span && e->span->shape != SPAN_APART) {
        range(a, t, e->span->low, e->span->high - e->span->low + e->size);
        return;
    }
    for (uint32_t m = e->lanes; m; m &= m - 1) {
        const uint64_t at = e->addresses[first_lane(m)];
        if (bytes && at == start + bytes) {
            bytes += e->size;
            continue;
        }
        if (bytes && at >= start && at + e->size <= start + bytes) continue;
        if (bytes) range(a, t, start, bytes);
        start = at;
        bytes = e->size;
    }
    if (bytes) range(a, t, start, bytes);
}

/* ---- tensor memory ---- */

static bool tensor_ready(struct order *o, struct order_cta *c)
{
    if (c->tensor) return true;
    c->tensor = calloc(TENSOR_CELLS, sizeof *c->tensor);
    if (c->tensor && shadow_adopt(&c->cluster->shadow, c->tensor, TENSOR_CELLS)) return true;
    order_exhausted(o, NULL);
    return false;
}

/* e->address: lane and column; e->size: columns; e->key: blocks of 16 lanes, from lane 0 on. */
static void touch_tensor(struct accessor *a, struct touch *t, struct order_cta *c, uint32_t column,
                         uint32_t columns, uint32_t blocks)
{
    a->cta = c;
    a->at = column;
    a->bytes = columns;
    for (uint32_t i = column; i < column + columns && i < TMEM_COLUMNS; i++) {
        struct cell *cells = &c->tensor[(size_t)i * TENSOR_ROW];
        t->at = i;
        for (uint32_t rest = blocks; rest;) {
            const uint32_t first = first_lane(rest), run = first_lane(~(rest >> first));
            shadow_touch_cells(t, cells + first, run);
            rest &= ~(((1U << run) - 1U) << first);
        }
    }
}

/* Whether register i of the load or store is column i of 32 lanes, as .32x32b has it, and no other shape: as many
 * columns as registers, and two blocks of lanes. */
static bool column_a_register(const struct event *e)
{
    const uint32_t block = e->key ? first_lane((uint32_t)e->key) : 1;
    return e->size == e->in->list_count && block % 2 == 0 && e->key == 3U << block;
}

static void tell_unwritten(const struct accessor *a, const struct touch *t)
{
    char object[96], message[320];
    if (!(a->e->access & ACCESS_READ) || !t->unwritten) return;
    if (t->written && !a->e->value) return;
    if (a->class == CLASS_TMEM_LD && column_a_register(a->e)) return; /* followed */
    (void)name_columns(a->o->kernel, (uint32_t)a->at, (uint32_t)a->bytes, object, sizeof object);
    (void)snprintf(
        message, sizeof message,
        "%s %s, of which %s written since tcgen05.alloc. Cheapest remedy: %s.",
        a->class == CLASS_MMA ? "the operation reads" : "loads", object,
        t->written ? "part was never" : "nothing was ever",
        a->e->access == ACCESS_ATOMIC
            ? "enable-input-d false in the first tcgen05.mma of a sum"
            : "write the columns first (tcgen05.st, cp or mma), or read those that were");
    tell_alone(a->w, a->e->in, a->class == CLASS_MMA ? first_lane(a->e->lanes) : NO_LANE,
               FIND_TMEM_UNINIT, object, message, NULL, NULL);
}

/* A tcgen05.ld with columns that nothing has written, or a store of undefined values: those registers are followed. */
static void follow_unwritten(const struct accessor *a, const struct touch *t,
                             const struct order_cta *c)
{
    const struct event *e = a->e;
    const uint32_t first = (uint32_t)e->address & 0xFFFFU;
    if (a->class != CLASS_TMEM_LD || !(t->unwritten || c->undefined)) return;
    if (!column_a_register(e)) return;
    const uint32_t block = first_lane((uint32_t)e->key);
    uint32_t any = 0;
    bool list;
    for (uint32_t i = 0; i < e->size && first + i < TMEM_COLUMNS; i++) {
        const struct cell *cells = &c->tensor[(size_t)(first + i) * TENSOR_ROW + block];
        const uint32_t lanes = (cells[0].write ? 0 : 0xFFFFU) | (cells[1].write ? 0 : 0xFFFF0000U) |
                               (c->undefined ? c->undefined[first + i][block / 2] : 0);
        if (!lanes) continue;
        any |= lanes;
        undefined_load(a->o, a->w, e->in, e->in->list[i], lanes, !t->written);
    }
    if (!any) return;
    e->warp->undefined = true;
    /* The result behind the list, of tcgen05.ld.red, depends on all of them. */
    const uint32_t results = row_results(e->in->row, &list);
    for (uint32_t i = 1; i < INSN_ARGS; i++)
        if (results >> i & 1) undefined_load(a->o, a->w, e->in, e->in->arg[i], any, !t->written);
}

/* Which lanes of which columns hold undefined values from here on. What adds to a column leaves them as they are. */
static void note_undefined(const struct accessor *a, struct order_cta *c)
{
    const struct event *e = a->e;
    const bool stores = a->class == CLASS_TMEM_ST && column_a_register(e);
    const uint32_t first = (uint32_t)e->address & 0xFFFFU;
    if (e->access != ACCESS_WRITE || (!c->undefined && !(stores && a->w->undefined))) return;
    if (!c->undefined) c->undefined = calloc(TMEM_COLUMNS, sizeof *c->undefined);
    order_keep(a->o, c->undefined != NULL);
    for (uint32_t i = 0; c->undefined && i < e->size && first + i < TMEM_COLUMNS; i++) {
        uint32_t *lanes = c->undefined[first + i];
        for (uint32_t rest = e->key; rest; rest &= rest - 1)
            lanes[first_lane(rest) / 2] &= first_lane(rest) % 2 ? 0xFFFFU : 0xFFFF0000U;
        if (stores && a->w->undefined)
            lanes[first_lane((uint32_t)e->key) / 2] = undefined_lanes(a->w, e->in->list[i]);
    }
}

/* The epoch's instruction; NULL where there is none. */
static const struct insn *insn_of(const struct accessor *a, epoch e)
{
    return e ? insn_at(a->o, epoch_insn(e)) : NULL;
}

/* PTX ISA "Data Path Layout Organization": an accumulator's cell holds one element of 32 bits, or one of 16
 * in its low half, an operand's cell packed ones. Only tf32 has both alike. */
static bool sum_as_operand(const struct accessor *a, const struct order_cta *c, uint32_t column)
{
    for (uint32_t rest = a->e->key; rest; rest &= rest - 1) {
        const epoch e = c->tensor[(size_t)column * TENSOR_ROW + first_lane(rest)].write;
        const struct insn *in = insn_of(a, e);
        if (!in || in->is.class != INSN_MMA) return false;
    }
    return a->e->key != 0;
}

static void tell_sums(const struct accessor *a, const struct order_cta *c)
{
    const uint32_t first = (uint32_t)a->e->address & 0xFFFFU;
    char object[96], message[400];
    if (a->e->access != ACCESS_READ || a->e->in->is.class != INSN_MMA || a->e->in->is.cells) return;
    for (uint32_t i = first; i < first + a->e->size && i < TMEM_COLUMNS; i++) {
        if (!sum_as_operand(a, c, i)) continue;
        (void)name_columns(a->o->kernel, i, 1, object, sizeof object);
        (void)snprintf(message, sizeof message,
                       "the operation reads %s as an operand of packed elements, but nothing was "
                       "written there since a tcgen05.mma left its sums, one a cell. Cheapest "
                       "remedy: tcgen05.st of all columns that the operand has, at the place that "
                       "the operation is told.",
                       object);
        tell_alone(a->w, a->e->in, first_lane(a->e->lanes), FIND_TMEM_UNINIT, object, message,
                   insn_of(a, c->tensor[(size_t)i * TENSOR_ROW + first_lane(a->e->key)].write),
                   "the sums");
        return;
    }
}

static void access_tensor(struct accessor *a)
{
    struct order_cta *c = order_cta_of(a->e->cta);
    struct touch *t;
    if (!c || !tensor_ready(a->o, c)) return;
    a->place = PLACE_TENSOR;
    t = begin(a);
    touch_tensor(a, t, c, (uint32_t)a->e->address & 0xFFFFU, (uint32_t)a->e->size, a->e->key);
    tell_unwritten(a, t);
    follow_unwritten(a, t, c);
    note_undefined(a, c);
    tell_sums(a, c);
    finish(a, t);
}

static void clear_columns(struct order *o, struct order_cta *c, const struct event *e)
{
    memset(c->tensor + e->address * TENSOR_ROW, 0, e->size * TENSOR_ROW * sizeof *c->tensor);
    if (c->undefined) memset(c->undefined + e->address, 0, e->size * sizeof *c->undefined);
    o->touch.self = 0;
}

void order_tmem_alloc(struct order *o, const struct event *e)
{
    struct order_cta *c = order_cta_of(e->cta);
    struct order_warp *w = order_warp_of(e->warp);
    if (!c || !w || !tensor_ready(o, c)) return;
    clear_columns(o, c, e);
    if (e->in->flags != PAIR) return;
    order_tick(w);
    const uint32_t self = w->chain[COMPONENT_WARP];
    c->paired = epoch_make(self, order_component(w, self)->number, order_insn_index(o, e->in));
}

/* A pair's dealloc must come after the alloc of the other CTA: on a B300 it fails otherwise (NVIDIA/cutlass#3435). */
static void check_paired(const struct accessor *a)
{
    const struct stamp *now = &a->w->now;
    char object[96], message[400];
    if (a->e->in->flags != PAIR) return;
    const struct cta *cta = a->e->cta, *peer = cta->cluster->ctas[cta->rank ^ 1U];
    const struct order_cta *other = order_cta_of(peer);
    if (!other) return;
    const bool over = other->paired && (clock_knows(&now->known, other->paired) ||
                                        clock_knows(&now->caused, other->paired));
    if (over && !peer->tmem_pair.granted) return;
    (void)name_columns(a->o->kernel, (uint32_t)a->e->address, (uint32_t)a->e->size, object,
                       sizeof object);
    (void)snprintf(message, sizeof message,
                   "this CTA frees what the pair has allocated, and nothing says that CTA rank %u "
                   "of the pair is through with its tcgen05.alloc. Cheapest remedy: "
                   "barrier.cluster.arrive and .wait by both CTAs between the two.",
                   peer->rank);
    tell_alone(a->w, a->e->in, NO_LANE, FIND_TMEM_DEALLOC, object, message, NULL, NULL);
}

void order_tmem_dealloc(struct order *o, const struct event *e)
{
    struct order_cta *c = order_cta_of(e->cta);
    struct order_warp *w = order_warp_of(e->warp);
    struct accessor a = {.o = o, .w = w, .e = e, .place = PLACE_TENSOR, .gives_back = true};
    struct touch *t;
    if (!c || !w || !tensor_ready(o, c)) return;
    order_tick(w);
    a.component = w->chain[COMPONENT_WARP];
    t = begin(&a);
    touch_tensor(&a, t, c, (uint32_t)e->address, (uint32_t)e->size, (1U << TENSOR_BLOCKS) - 1U);
    clear_columns(o, c, e);
    finish(&a, t);
    check_paired(&a);
}

/* ---- all of them ---- */

static void access_memory(struct accessor *a)
{
    const struct event *e = a->e;
    struct touch *t;
    a->place = e->space == SPACE_SHARED ? PLACE_SHARED : PLACE_GLOBAL;
    if (e->proxy == PROXY_TENSORMAP) map_used(a->o, e->address);
    if (a->class == CLASS_BULK && a->place == PLACE_SHARED && e->access == ACCESS_READ)
        order_groups_source(a->w, e->addresses ? e->addresses[0] : e->address);
    t = begin(a);
    if (e->addresses && in_own_shared(a)) {
        a->cta = a->w->cta;
        touch_lanes(a, t, touch_own);
    } else if (e->addresses)
        touch_lanes(a, t, a->place == PLACE_SHARED ? touch_window : touch_global);
    else if (a->place == PLACE_SHARED)
        touch_shared(a, t, e->cta, e->address & SHARED_OFFSET_MASK, e->size);
    else
        touch_global(a, t, e->address, e->size);
    if (a->place == PLACE_SHARED) tell_fresh(a, t);
    if (a->place == PLACE_SHARED) tell_garbage(a, t);
    if (a->place == PLACE_SHARED && t->unwritten) undefined_fresh(a->o, a->w, e);
    finish(a, t);
}

void order_access(struct order *o, const struct event *e)
{
    struct accessor a = {.o = o, .w = order_warp_of(e->warp), .e = e};
    if (!e->in || !e->lanes) return;
    if (!e->tensor && e->space != SPACE_SHARED && e->space != SPACE_GLOBAL) return;
    a.strong = e->strong || e->in->is.strong;
    if (e->token) {
        if (o->issuing.token != e->token) return;
        a.component = e->access & ACCESS_WRITE ? o->issuing.write : o->issuing.read;
        a.class = (enum order_class)o->issuing.class;
    } else {
        order_tick(a.w);
        a.component = a.w->chain[COMPONENT_WARP];
    }
    if (!a.component) return;
    if (e->tensor)
        access_tensor(&a);
    else
        access_memory(&a);
}
