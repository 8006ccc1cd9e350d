/*
 * Who is ordered after whom: every event that orders something moves the clocks of order.h. The table
 * of these rules is in the PTX ISA's "Memory Consistency Model", "Asynchronous operations", and the
 * sections of the instructions named below.
 */
#include "check/order.h"
#include "check/check.h"
#include "ops/access.h"
#include "check/converged.h"
#include "check/fenced.h"
#include "check/deadlock.h"
#include "check/generations.h"
#include "check/heard.h"
#include "check/launch_memory.h"
#include "async/mbar.h"
#include "decode/names.h"
#include "check/order_judge.h"
#include "check/order_regs.h"
#include "check/order_tell.h"
#include "check/polls.h"
#include "check/protocol.h"
#include "check/undefined.h"

#include <stdio.h>
#include <stdlib.h>

enum { LAUNCH_TIMEOUT = 702 /* the result of a deadlock */ };
enum { BARS_FIRST = 32, COPIES_FIRST = 4 };

void order_exhausted(struct order *o, const char *limit)
{
    if (!o->exhausted) o->limit = limit;
    o->exhausted = true;
}

void order_keep(struct order *o, bool done)
{
    if (!done) order_exhausted(o, NULL);
}

void order_sampled(struct order *o, enum sampled_reason reason, const struct insn *in)
{
    report_sampled(o->check->report, reason, in ? ptx_file(o->kernel->module, in->src->pos) : NULL,
                   in ? in->src->pos.line : 0);
}

/* ---- what instructions mean ---- */

static enum order_class class_of(const struct insn *in)
{
    switch ((enum insn_class)in->is.class) {
    case INSN_MMA: return in->is.engine == ENGINE_WGMMA ? CLASS_WGMMA : CLASS_MMA;
    case INSN_TENSOR_COPY: return CLASS_MMA;
    case INSN_COMMIT: return in->is.engine == ENGINE_TENSOR ? CLASS_COMMIT : CLASS_CP_ARRIVE;
    case INSN_TMEM_LOAD: return CLASS_TMEM_LD;
    case INSN_TMEM_STORE: return CLASS_TMEM_ST;
    case INSN_REMOTE_STORE: return CLASS_REMOTE_STORE;
    case INSN_CANCEL: return CLASS_COPY;
    case INSN_COPY:
    case INSN_COPY_RED:
        if (in->is.engine == ENGINE_CP_ASYNC) return CLASS_CP_ASYNC;
        return in->is.signals == SIGNALS_BYTES ? CLASS_COPY : CLASS_BULK;
    default: return CLASS_OTHER;
    }
}

/* ---- components ---- */

uint32_t order_component_new(struct order_warp *w, enum component_kind kind)
{
    struct order_cluster *c = w->cta->cluster;
    if (c->component_count > CLUSTER_COMPONENTS_MAX) {
        order_exhausted(c->order, "components of a cluster's clocks");
        return 0;
    }
    if (c->component_count >= c->component_capacity) {
        uint32_t capacity = c->component_capacity ? 2 * c->component_capacity : 64;
        struct component *grown = realloc(c->components, capacity * sizeof *grown);
        if (!grown) {
            order_exhausted(c->order, NULL);
            return 0;
        }
        c->components = grown;
        c->component_capacity = capacity;
    }
    c->components[c->component_count] = (struct component){.kind = (uint8_t)kind, .warp = w};
    return c->component_count++;
}

uint32_t order_chain(struct order_warp *w, enum component_kind kind)
{
    if (!w->chain[kind]) w->chain[kind] = order_component_new(w, kind);
    return w->chain[kind];
}

uint32_t order_actor(struct order_warp *w, uint32_t component)
{
    struct component *c = order_component(w, component);
    const struct cta *cta = w->cta->cta;
    struct actor a = {.cluster = w->cta->cluster->linear,
                      .component = component,
                      .kind = c->kind,
                      .warp = (uint8_t)w->warp->id};
    if (c->actor) return c->actor;
    memcpy(a.cta, cta->id, sizeof a.cta);
    c->actor = world_actor(w->cta->cluster->order->world, a);
    if (!c->actor) order_exhausted(w->cta->cluster->order, "warps that access global memory");
    return c->actor;
}

static uint32_t own_number(const struct order_warp *w)
{
    return order_component(w, w->chain[COMPONENT_WARP])->number;
}

/* The next action of a component that the warp sets going. */
uint32_t order_act(struct order_warp *w, uint32_t id)
{
    struct component *c = order_component(w, id);
    uint32_t number = ++c->number;
    if (number == EPOCH_NUMBER_MAX) order_exhausted(w->cta->cluster->order, "a clock's numbers");
    c->issued[number % ISSUES_KEPT] = own_number(w);
    return number;
}

epoch order_here(const struct order_warp *w, const struct insn *in)
{
    return epoch_make(w->chain[COMPONENT_WARP], own_number(w),
                      order_insn_index(w->cta->cluster->order, in));
}

void order_learn(struct order_warp *w, uint32_t component, uint32_t number)
{
    order_keep(w->cta->cluster->order, stamp_raise(&w->now, component, number));
    w->version++;
}

void order_tick(struct order_warp *w)
{
    uint32_t self = w->chain[COMPONENT_WARP];
    struct component *c = order_component(w, self);
    if (!w->released) return;
    w->released = false;
    if (++c->number == EPOCH_NUMBER_MAX)
        order_exhausted(w->cta->cluster->order, "a clock's numbers");
    order_keep(w->cta->cluster->order, stamp_raise_generic(&w->now, self, c->number));
    w->version++;
}

/* ---- handing over and taking ---- */

void order_release(struct order_warp *w, struct stamp *to, const struct insn *in)
{
    order_keep(w->cta->cluster->order, stamp_join(to, &w->now));
    w->released = true;
    w->handed_over = in;
}

void order_acquire(struct order_warp *w, const struct stamp *from, const struct insn *in)
{
    order_keep(w->cta->cluster->order, stamp_join(&w->now, from));
    w->version++;
    w->acquired = in;
}

/* The generation before `generation` is complete. */
static void point_turn(struct order *o, struct sync_point *p, uint64_t generation)
{
    if (p->generation == generation) return;
    order_keep(o, stamp_copy(&p->done, &p->current));
    p->generation = generation;
}

static void point_pass(struct order_warp *w, struct sync_point *p, uint64_t passed,
                       const struct insn *in)
{
    order_acquire(w, p->generation <= passed ? &p->current : &p->done, in);
}

/* ---- named barriers and the cluster's ---- */

/*
 * PTX ISA "barrier": .aligned says that all threads of the warp execute it, else it is undefined; __syncthreads
 * compiles to it. Since compute capability 7.0 hardware waits for the threads that have not exited, and the
 * CUDA C++ Programming Guide says so: no order of the program goes wrong, hence no error. It is a warning because the
 * lanes that left have often left work undone, which nothing else can see.
 */
static void check_exited(struct order_warp *w, const struct event *e)
{
    const uint32_t gone = w->warp->born & ~e->lanes;
    char message[400];
    if (!gone || !(e->in->row->flags & OPF_ALIGNED)) return;
    (void)snprintf(message, sizeof message,
                   "%d lanes of this warp have exited (0x%08x), and an aligned barrier is for all "
                   "threads of a warp (PTX ISA, barrier). Hardware since sm_70 waits for those "
                   "that are left, so it does not hang; what the lanes that left should have done "
                   "is missing. Cheapest remedy: the lanes stay and skip their work. If they have "
                   "none: barrier.sync without .aligned, or --suppress collective-partial.",
                   __builtin_popcount(gone), gone);
    tell_warning(w, e->in, first_lane(e->lanes), FIND_COLLECTIVE_PARTIAL, "", message);
}

/* For reports of hangs. */
static void note_pass(struct order_warp *w, const struct insn *in, uint32_t key)
{
    struct order_passes *p = w->passes;
    if (!p) p = w->passes = calloc(1, sizeof *p);
    order_keep(w->cta->cluster->order, p != NULL);
    if (!p) return;
    if (p->count && p->at[(p->count - 1) % PASSES_KEPT].step == w->warp->steps) return;
    p->at[p->count % PASSES_KEPT].in = in;
    p->at[p->count % PASSES_KEPT].key = key;
    p->at[p->count++ % PASSES_KEPT].step = w->warp->steps;
}

/*
 * By the letter, only a fence behind a relaxed read or wait acquires what it has seen. libcu++ has a
 * CTA barrier in place of the fence (for_each_canceled), and the barrier comes after all accesses of
 * the threads that arrive.
 */
static void acquire_by_barrier(struct order *o, struct order_warp *w, const struct insn *in)
{
    struct stamp *seen = &w->observed[REACH_CTA];
    if (!seen->known.count) return;
    order_keep(o, stamp_join(&w->now, seen));
    stamp_clear(seen);
    w->version++;
    sim_idiom(o->group, in, IDIOM_WAIT_RELAXED);
    if (o->level < 2 || o->told_of[order_insn_index(o, in)] & TOLD_RELAXED) return;
    o->told_of[order_insn_index(o, in)] |= TOLD_RELAXED;
    sim_find(o->group, w->warp, in, NO_LANE, SEV_WARNING, FIND_RACE, CAUSE_NONE, "",
             "stands behind a relaxed wait or read in place of a fence. By the letter nothing is "
             "acquired. Cheapest remedy: .acquire there, or fence.acq_rel.cta behind it.");
}

static void on_barrier(struct order *o, struct order_warp *w, const struct event *e)
{
    struct sync_point *p = &w->cta->named[e->key % NAMED_BARRIERS];
    if (e->kind == EV_BARRIER_ARRIVE) {
        check_exited(w, e);
        acquire_by_barrier(o, w, e->in);
        point_turn(o, p, e->value);
        order_tick(w); /* a number that nobody who waited before can know */
        generations_arrive(o, w, e, &p->done.caused);
        order_release(w, &p->current, e->in);
    } else {
        note_pass(w, e->in, e->key);
        /* It has slept through a later generation, of others: what is kept is too much for it. */
        if (p->generation > e->value + 1) order_sampled(o, SAMPLED_GENERATIONS, e->in);
        point_pass(w, p, e->value, e->in);
    }
}

/* PTX ISA "barrier.cluster": arrive releases unless relaxed; a relaxed one still publishes what
 * fence.mbarrier_init covered. */
static void on_cluster(struct order *o, struct order_warp *w, const struct event *e)
{
    struct sync_point *p = &w->cta->cluster->barrier;
    uint32_t fenced = w->chain[COMPONENT_INIT_FENCED];
    if (e->kind == EV_CLUSTER_PASS) {
        point_pass(w, p, e->value, e->in);
        return;
    }
    check_exited(w, e);
    point_turn(o, p, e->value);
    if (!e->in->is.relaxed) {
        order_release(w, &p->current, e->in);
        return;
    }
    order_keep(o, clock_join(&p->current.caused, &w->now.caused));
    w->released = true; /* what comes now comes after */
    if (fenced) order_keep(o, stamp_raise(&p->current, fenced, order_component(w, fenced)->number));
}

/* ---- mbarriers ---- */

static struct order_bar **bar_slot(struct order_bar **bars, uint32_t slots, uint32_t offset)
{
    uint32_t i = (offset / 8) * 0x9E3779B1U & (slots - 1);
    while (bars[i] && bars[i]->offset != offset) i = (i + 1) & (slots - 1);
    return &bars[i];
}

struct order_bar *order_bar_at(const struct cta *cta, uint32_t offset)
{
    const struct order_cta *c = order_cta_of(cta);
    return c && c->bar_slots ? *bar_slot(c->bars, c->bar_slots, offset) : NULL;
}

static bool bars_grow(struct order_cta *c)
{
    uint32_t slots = c->bar_slots ? 2 * c->bar_slots : BARS_FIRST;
    struct order_bar **grown = calloc(slots, sizeof(*grown));
    if (!grown) return false;
    for (uint32_t i = 0; i < c->bar_slots; i++) {
        if (c->bars[i]) *bar_slot(grown, slots, c->bars[i]->offset) = c->bars[i];
    }
    free(c->bars);
    c->bars = grown;
    c->bar_slots = slots;
    return true;
}

static struct order_bar *bar_make(struct order_cta *c, uint32_t offset)
{
    struct order_bar *b = order_bar_at(c->cta, offset);
    if (b) return b;
    if (2 * (c->bar_count + 1) > c->bar_slots && !bars_grow(c)) return NULL;
    b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->cta = c;
    b->offset = offset;
    c->bar_count++;
    *bar_slot(c->bars, c->bar_slots, offset) = b;
    return b;
}

static void on_bar_init(struct order *o, struct order_warp *w, const struct event *e)
{
    struct order_cta *c = order_cta_of(e->cta);
    struct order_bar *b = bar_make(c, e->key);
    if (!b) {
        order_exhausted(o, NULL);
        return;
    }
    order_tick(w);
    if (!b->live) order_bar_word(o, e); /* over a live one: told by the machine */
    sync_point_clear(&b->point);
    if (b->peers) sync_point_clear(b->peers);
    protocol_init(b);
    b->copy_count = b->cover_count = 0;
    b->last = NULL;
    b->passed = b->committed = b->reached = 0;
    b->live = true;
    b->init = epoch_make(w->chain[COMPONENT_WARP], own_number(w), order_insn_index(o, e->in));
    b->init_lane = first_lane(e->lanes);
    b->init_fenced = 0;
    if (!c->bar_high || b->offset < c->bar_low) c->bar_low = b->offset;
    if (b->offset + 8 > c->bar_high) c->bar_high = b->offset + 8;
}

/* Whether the warp may rely on the barrier being initialised: by what it knows, or through the
 * initialiser's fence.mbarrier_init and a cluster barrier since (PTX ISA "fence.mbarrier_init"). */
void order_check_init(struct order_warp *w, struct order_bar *b, const struct event *e)
{
    const struct component *by = order_component(w, epoch_component(b->init));
    uint32_t fenced = by->warp->chain[COMPONENT_INIT_FENCED];
    if (!b->live || clock_knows(&w->now.known, b->init)) return;
    if (b->init_fenced && fenced && clock_get(&w->now.known, fenced) >= b->init_fenced) return;
    tell_init(w, b, e);
    b->init = epoch_make(w->chain[COMPONENT_WARP], 0, epoch_insn(b->init)); /* once is enough */
}

/* The copies that count in a phase up to this one are complete. */
static void bar_collect(struct order *o, struct order_bar *b, uint64_t phase)
{
    const struct component *components = b->cta->cluster->components;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->copy_count; i++) {
        const struct bar_copy *copy = &b->copies[i];
        if (copy->phase > phase)
            b->copies[kept++] = *copy;
        else if (components[copy->component].kind == COMPONENT_REMOTE_STORE) /* generic proxy */
            order_keep(o, stamp_raise_generic(&b->point.current, copy->component, copy->number));
        else
            order_keep(o, stamp_raise(&b->point.current, copy->component, copy->number));
    }
    b->copy_count = kept;
}

static struct order_arrival *arrival_of(struct order_cluster *c, uint64_t token)
{
    for (uint32_t i = 0; i < c->arrival_count; i++) {
        if (c->arrivals[i].token == token) return &c->arrivals[i];
    }
    return NULL;
}

static void on_async_arrive(struct order *o, struct order_warp *w, struct order_bar *b,
                            const struct event *e)
{
    const struct order_arrival *a = arrival_of(w->cta->cluster, e->token);
    bool commit = class_of(e->in) == CLASS_COMMIT;
    uint32_t chain = w->chain[commit ? COMPONENT_TENSOR : COMPONENT_CP_ASYNC];
    b->last = NULL;
    if (commit && o->level >= 2) {
        b->committed = b->point.generation + 1;
        b->commit = e->in;
        b->committer = w;
    }
    if (!a) return;
    if (!chain) chain = w->chain[COMPONENT_WARP];
    protocol_arrive(o, w, b, e, &a->after,
                    epoch_make(chain, clock_get(&a->after, chain), order_insn_index(o, e->in)),
                    a->step);
    order_keep(o, stamp_join(&b->point.current, &a->brings));
    if (!commit) order_groups_arrive(w, b, a);
}

/* How far a fence must reach that goes with a relaxed operation on the barrier. */
static enum reach order_reach_of(const struct order_warp *w, const struct order_bar *b)
{
    return w->cta->cluster->cluster->cta_count > 1 || w->cta != b->cta ? REACH_CLUSTER : REACH_CTA;
}

/* What proxy fences have covered of what `from` knows, for such as are told by .cta scope alone; of shared memory. */
static bool hand_narrow(struct clock *bridged, const struct stamp *from)
{
    return clock_join(bridged, &from->bridged) && clock_join(bridged, &from->bridged_shared) &&
           clock_join(bridged, &from->narrow_bridged);
}

/*
 * PTX ISA "mbarrier.arrive", "Scope": a release of .cta scope hands nothing to threads of another CTA, and that is the scope
 * where none is written. Libraries give storage back so: reads are taken to be over, for their values were used before
 * (interpretation), but writes are not there, save what order_judge's stays_home says.
 */
static bool arrives_narrow(struct order_warp *w, struct order_bar *b, const struct event *e)
{
    struct order *o = w->cta->cluster->order;
    if (w->cta == b->cta || e->in->flags & MBAR_CLUSTER_SCOPE) return false;
    order_keep(o, clock_join(&b->point.current.caused, &w->now.caused));
    order_keep(o, clock_join(&b->point.current.narrow, &w->now.known) &&
                      hand_narrow(&b->point.current.narrow_bridged, &w->now));
    w->handed_over = e->in;
    return true;
}

/* Where an arrival leaves what it hands over. */
static struct stamp *handed_to(struct order *o, const struct order_warp *w, struct order_bar *b)
{
    if (w->cta == b->cta || !o->narrow_waits) return &b->point.current;
    if (!b->peers) b->peers = calloc(1, sizeof *b->peers);
    order_keep(o, b->peers && clock_join(&b->point.current.caused, &w->now.caused));
    return b->peers ? &b->peers->current : &b->point.current;
}

static void on_bar_arrive(struct order *o, struct order_warp *w, const struct event *e)
{
    struct order_bar *b = order_bar_at(e->cta, e->key);
    if (!b) return;
    if (e->token) {
        on_async_arrive(o, w, b, e);
        return;
    }
    /* Lanes arrive one by one, but the warp once. */
    if (b->last == w && b->last_step == w->warp->steps) {
        protocol_arrive_lane(o, w, b, e);
        return;
    }
    b->last = w;
    b->last_step = w->warp->steps;
    order_check_init(w, b, e);
    /* Lanes that signal the barriers of several CTAs by one instruction do so at once (interpretation;
     * libraries let the CTA that hears of one arrival rely on the others). */
    if (w->arrive_step != w->warp->steps) order_tick(w);
    w->arrive_step = w->warp->steps;
    if (w->cta != b->cta) {
        b->reached = b->point.generation + 1;
        b->reach = e->in;
        b->reacher = w;
        b->reach_number = order_component(w, w->chain[COMPONENT_WARP])->number;
    }
    protocol_arrive(o, w, b, e, &w->now.caused, order_here(w, e->in), w->warp->steps);
    if (!(e->in->flags & MBAR_RELAXED) && !arrives_narrow(w, b, e)) {
        order_release(w, handed_to(o, w, b), e->in);
    } else {
        order_keep(o, stamp_join(handed_to(o, w, b), &w->fenced[order_reach_of(w, b)]));
        w->released = true; /* what comes now comes after */
    }
}

static void on_bar_phase(struct order *o, const struct event *e)
{
    struct order_bar *b = order_bar_at(e->cta, e->key);
    if (!b) return;
    bar_collect(o, b, e->value);
    protocol_phase(o, b);
    point_turn(o, &b->point, e->value + 1);
    if (b->peers) point_turn(o, b->peers, e->value + 1);
}

/* A wait of .cta scope takes nothing from threads of other CTAs, as an arrival hands nothing to them. */
static void take_peers(struct order_warp *w, const struct order_bar *b, const struct insn *in)
{
    const struct stamp *from = &b->peers->done;
    struct clock *narrow = &w->now.narrow;
    if (in->flags & MBAR_CLUSTER_SCOPE)
        order_acquire(w, from, in);
    else
        order_keep(w->cta->cluster->order, clock_join(narrow, &from->known) &&
                                               clock_join(narrow, &from->narrow) &&
                                               hand_narrow(&w->now.narrow_bridged, from));
}

static void on_bar_pass(struct order_warp *w, const struct event *e)
{
    struct order_bar *b = order_bar_at(e->cta, e->key);
    if (!b) return;
    order_check_init(w, b, e);
    order_tick(w);
    note_pass(w, e->in, e->key);
    polls_look(w->cta->cluster->order, e);
    if (e->value != FRESH_PHASE && b->passed < e->value + 1) b->passed = e->value + 1;
    protocol_pass(w, b, e);
    if (!(e->in->flags & MBAR_RELAXED)) {
        order_acquire(w, &b->point.done, e->in);
        if (b->peers) take_peers(w, b, e->in);
    } else {
        struct order *o = w->cta->cluster->order;
        struct stamp *observed = &w->observed[order_reach_of(w, b)];
        order_keep(o, clock_join(&w->now.caused, &b->point.done.caused));
        order_keep(o, stamp_join(observed, &b->point.done));
        if (b->peers) order_keep(o, stamp_join(observed, &b->peers->done));
    }
    w->released = true;
}

/* ---- copies that complete on a barrier ---- */

static bool slot_add(struct order_warp *w, uint32_t id)
{
    if (w->slot_count == w->slot_capacity) {
        uint32_t capacity = w->slot_capacity ? 2 * w->slot_capacity : 8;
        uint32_t *grown = realloc(w->slots, capacity * sizeof *grown);
        if (!grown) return false;
        w->slots = grown;
        w->slot_capacity = capacity;
    }
    w->slots[w->slot_count++] = id;
    return true;
}

/* The warp's slot for that phase of the barrier, a slot whose last copies it has seen complete, or a
 * new one. */
static uint32_t slot_for(struct order_warp *w, enum component_kind kind, struct order_bar *b,
                         uint64_t phase)
{
    uint32_t free_slot = 0;
    struct component *c;
    for (uint32_t i = 0; i < w->slot_count; i++) {
        c = order_component(w, w->slots[i]);
        if (c->kind != kind) continue;
        if (c->bar == b && c->phase == phase) return w->slots[i];
        if (!free_slot && (clock_get(&w->now.known, w->slots[i]) >= c->number ||
                           clock_get(&w->now.narrow, w->slots[i]) >= c->number))
            free_slot = w->slots[i];
    }
    if (!free_slot) {
        free_slot = order_component_new(w, kind);
        if (!free_slot) return 0;
        order_keep(w->cta->cluster->order, slot_add(w, free_slot));
    }
    (void)order_act(w, free_slot);
    c = order_component(w, free_slot);
    c->bar = b;
    c->phase = phase;
    c->over = 0;
    return free_slot;
}

static void bar_expect(struct order *o, struct order_bar *b, struct bar_copy copy)
{
    for (uint32_t i = 0; i < b->copy_count; i++) {
        if (b->copies[i].component == copy.component && b->copies[i].number == copy.number) return;
    }
    if (b->copy_count == b->copy_capacity) {
        uint32_t capacity = b->copy_capacity ? 2 * b->copy_capacity : COPIES_FIRST;
        struct bar_copy *grown = realloc(b->copies, capacity * sizeof *grown);
        if (!grown) {
            order_exhausted(o, NULL);
            return;
        }
        b->copies = grown;
        b->copy_capacity = capacity;
    }
    b->copies[b->copy_count++] = copy;
}

/* mbarrier.init is a store of the generic proxy, and a copy signals by the async proxy. That a barrier of the CTA suffices
 * between the two is practice (interpretation). */
static void check_init_proxy(struct order *o, const struct order_warp *w, const struct order_bar *b,
                             const struct event *e)
{
    char object[96];
    if (o->level < 2 || !b->live || b->init_fenced || !epoch_number(b->init)) return;
    if (clock_knows(&w->now.bridged, b->init) || clock_knows(&w->now.bridged_shared, b->init))
        return;
    sim_idiom(o->group, e->in, IDIOM_INIT_UNFENCED);
    sim_find(
        o->group, e->warp, e->in, first_lane(e->lanes), SEV_WARNING, FIND_MBARRIER_INIT_ORDER,
        CAUSE_NONE, name_shared(o->kernel, b->offset, object, sizeof object),
        "the copy signals an mbarrier by the async proxy, and no fence has made its "
        "mbarrier.init (line %u), a generic store, visible to that. Cheapest remedy: "
        "fence.mbarrier_init.release.cluster by the initialising thread, behind the last init.",
        insn_at(o, epoch_insn(b->init))->src->pos.line);
}

/* PTX ISA "Asynchronous operations": the complete_tx of a copy hands over that copy alone. */
static void on_async_bar(struct order *o, struct order_warp *w, const struct event *e)
{
    struct order_bar *b = order_bar_at(e->cta, e->key);
    enum component_kind kind =
        o->issuing.class == CLASS_REMOTE_STORE ? COMPONENT_REMOTE_STORE : COMPONENT_COPY;
    uint32_t id;
    if (!b || o->issuing.token != e->token) return;
    order_check_init(w, b, e);
    if (kind == COMPONENT_COPY) check_init_proxy(o, w, b, e);
    id = slot_for(w, kind, b, e->value);
    if (!id) return;
    o->issuing.read = o->issuing.write = id;
    order_component(w, id)->in = e->in;
    protocol_copy(o, w, b, e->in,
                  epoch_make(id, order_component(w, id)->number, order_insn_index(o, e->in)));
    w->released = true; /* whoever sees the copy complete knows that its warp has come so far */
    bar_expect(o, b, (struct bar_copy){id, order_component(w, id)->number, e->value});
}

/* ---- issue ---- */

static struct order_arrival *arrival_new(struct order_cluster *c, uint64_t token)
{
    if (c->arrival_count == c->arrival_capacity) {
        uint32_t capacity = c->arrival_capacity ? 2 * c->arrival_capacity : 8;
        struct order_arrival *grown = realloc(c->arrivals, capacity * sizeof *grown);
        if (!grown) return NULL;
        memset(grown + c->arrival_capacity, 0, (capacity - c->arrival_capacity) * sizeof *grown);
        c->arrivals = grown;
        c->arrival_capacity = capacity;
    }
    c->arrivals[c->arrival_count].token = token;
    stamp_clear(&c->arrivals[c->arrival_count].brings);
    return &c->arrivals[c->arrival_count++];
}

/*
 * tcgen05.commit brings the tensor operations of its thread so far (PTX ISA "tcgen05.commit"), and those that other
 * lanes issued before the last of these, and what they came after, which is all that the warp knows: operands that
 * it saw arrive are as good as seen by whoever waits. cp.async.mbarrier.arrive brings the copies.
 */
static void on_issue_arrival(struct order *o, struct order_warp *w, const struct event *e,
                             enum order_class class)
{
    uint32_t id = w->chain[class == CLASS_COMMIT ? COMPONENT_TENSOR : COMPONENT_CP_ASYNC];
    struct order_arrival *a = arrival_new(w->cta->cluster, e->token);
    if (!a) {
        order_exhausted(o, NULL);
        return;
    }
    order_keep(o, clock_copy(&a->after, &w->now.caused));
    a->step = w->warp->steps;
    if (id) order_keep(o, clock_raise(&a->after, id, order_component(w, id)->number));
    if (class == CLASS_COMMIT) {
        const uint32_t last = w->tensor[first_lane(e->lanes)];
        order_release(w, &a->brings, e->in);
        if (last) order_keep(o, stamp_raise(&a->brings, id, last));
    } else {
        a->lane = first_lane(e->lanes);
        a->number = id ? order_component(w, id)->number : 0;
        order_groups_brings(w, a);
    }
    w->released = true; /* `after` hands over the present number */
}

static void on_issue(struct order *o, struct order_warp *w, const struct event *e)
{
    static const uint8_t chains[][2] = {[CLASS_MMA] = {COMPONENT_TENSOR, COMPONENT_TENSOR},
                                        [CLASS_TMEM_LD] = {COMPONENT_TMEM_LD, COMPONENT_TMEM_LD},
                                        [CLASS_TMEM_ST] = {COMPONENT_TMEM_ST, COMPONENT_TMEM_ST},
                                        [CLASS_WGMMA] = {COMPONENT_WGMMA, COMPONENT_WGMMA},
                                        [CLASS_CP_ASYNC] = {COMPONENT_CP_ASYNC, COMPONENT_CP_ASYNC},
                                        [CLASS_BULK] = {COMPONENT_BULK_READ, COMPONENT_BULK_DONE},
                                        [CLASS_REMOTE_STORE] = {0, 0}};
    enum order_class class;
    if (!e->in) return;
    class = class_of(e->in);
    order_tick(w);
    o->issuing =
        (struct issuing){.token = e->token, .warp = w, .in = e->in, .class = (uint8_t) class};
    if (class == CLASS_COMMIT || class == CLASS_CP_ARRIVE) {
        on_issue_arrival(o, w, e, class);
        return;
    }
    if (class == CLASS_OTHER || !chains[class][0]) return; /* a slot: on_async_bar */
    if (class == CLASS_CP_ASYNC || class == CLASS_BULK) {
        order_groups_issue(w, class == CLASS_BULK, first_lane(e->lanes), &o->issuing);
        return;
    }
    o->issuing.read = order_chain(w, (enum component_kind)chains[class][0]);
    o->issuing.write = order_chain(w, (enum component_kind)chains[class][1]);
    if (!o->issuing.read || !o->issuing.write) return;
    (void)order_act(w, o->issuing.read);
    if (o->issuing.write != o->issuing.read) (void)order_act(w, o->issuing.write);
    if (class == CLASS_WGMMA) {
        regs_issue(o, w, e->in);
        w->released = true; /* wait_warpgroup */
    }
    if (class == CLASS_MMA)
        w->tensor[first_lane(e->lanes)] = order_component(w, o->issuing.write)->number;
    if (class == CLASS_TMEM_LD) regs_load(o, w, e->in);
}

static void on_done(struct order_warp *w, const struct event *e)
{
    struct order_cluster *c = w->cta->cluster;
    struct order_arrival *a = arrival_of(c, e->token);
    struct order_arrival spare;
    if (!a) return;
    spare = *a;
    *a = c->arrivals[--c->arrival_count];
    c->arrivals[c->arrival_count] = spare;
}

/* ---- other waits ---- */

/* The grid before is one component for the cluster: whoever knows it has been waited for. */
static void on_grid_wait(struct order_warp *w, const struct event *e)
{
    struct order_cluster *c = w->cta->cluster;
    w->cta->waited = true;
    if (!c->grid) {
        c->grid = order_chain(w, COMPONENT_GRID);
        launch_memory_waits(c->order->check->memory);
    }
    if (c->grid) order_learn(w, c->grid, 1);
    w->acquired = e->in;
}

/* The CTA's first thread to come here counts, and in another order that is another one. */
static void on_grid_go(struct order_warp *w)
{
    const uint32_t grid = w->cta->cluster->grid;
    if (grid && clock_get(&w->now.known, grid))
        w->cta->waited = true; /* or a thread of a peer has, and told it */
    else
        w->cta->goes_early = true;
}

static void on_tmem_wait(struct order_warp *w, const struct event *e)
{
    uint32_t id = w->chain[e->value ? COMPONENT_TMEM_ST : COMPONENT_TMEM_LD];
    if (id) order_learn(w, id, order_component(w, id)->number);
}

void order_read(struct order *o, const struct insn *in)
{
    bool *sampled = &o->sampled[in - o->kernel->insns];
    if (*sampled) return;
    *sampled = true;
    order_sampled(o, SAMPLED_READ, in);
}

/* A thread's strong access that brings a value: another order may bring another one. */
static void on_strong_read(struct order *o, const struct event *e)
{
    if (!e->token && (e->access & ACCESS_READ) && e->in->is.class != INSN_RED) order_read(o, e->in);
}

/* ---- events ---- */

void order_event(struct order *o, const struct event *e)
{
    struct order_warp *w = e->warp ? order_warp_of(e->warp) : NULL;
    if (e->kind == EV_WARP_START && !o->exhausted) order_begin(o, e);
    if (!w || o->exhausted) return;
    if (o->world && o->world->open_count) world_flags_close(o->world);
    converged_event(o, w, e);
    heard_event(o, w, e);
    fenced_event(o, w, e);
    switch (e->kind) {
    case EV_ACCESS:
        if (w->undefined) undefined_event(o, w, e);
        if (e->strong && (e->space == SPACE_GLOBAL || e->space == SPACE_SHARED)) {
            /* Reads take before the access is judged, writes hand over after it. */
            struct event part = *e;
            on_strong_read(o, e);
            part.access = e->access & ACCESS_READ;
            order_flags(o, w, &part);
            order_access(o, e);
            part.access = e->access & ACCESS_WRITE;
            order_flags(o, w, &part);
        } else {
            order_access(o, e);
            if (e->space == SPACE_SHARED) undefined_staged(o, w, e);
            if (e->space == SPACE_GLOBAL && e->access & ACCESS_WRITE) order_flags_weak(o, w, e);
        }
        break;
    case EV_FENCE: order_fence(o, w, e); break;
    case EV_WARP_EXIT:
        /* barrier.cluster waits for threads that have not exited: it comes after those that have, but not
         * a phase that is over already. */
        point_turn(o, &w->cta->cluster->barrier, e->cta->cluster->phase);
        order_keep(o, clock_join(&w->cta->cluster->barrier.current.caused, &w->now.caused));
        if (!e->cta->warps_live) order_exit(o, e->cta);
        break;
    case EV_BARRIER_ARRIVE:
    case EV_BARRIER_PASS: on_barrier(o, w, e); break;
    case EV_CLUSTER_ARRIVE:
    case EV_CLUSTER_PASS: on_cluster(o, w, e); break;
    case EV_MBAR_INIT: on_bar_init(o, w, e); break;
    case EV_MBAR_INVAL: {
        struct order_bar *b = order_bar_at(e->cta, e->key);
        if (!b) break;
        protocol_end(o, w, b, e->in);
        b->live = false;
        break;
    }
    case EV_MBAR_REACH:
        if (order_cta_of(e->cta)) order_touch_peer(w, order_cta_of(e->cta), e);
        break;
    case EV_MBAR_ARRIVE: on_bar_arrive(o, w, e); break;
    case EV_MBAR_PHASE: on_bar_phase(o, e); break;
    case EV_MBAR_PASS: on_bar_pass(w, e); break;
    case EV_MBAR_FALSE: polls_look(o, e); break;
    case EV_ASYNC_ISSUE: on_issue(o, w, e); break;
    case EV_ASYNC_BAR: on_async_bar(o, w, e); break;
    case EV_ASYNC_DONE: on_done(w, e); break;
    case EV_GROUP_COMMIT: order_groups_commit(w, e); break;
    case EV_GROUP_WAIT: order_groups_wait(o, w, e); break;
    case EV_TMEM_WAIT: on_tmem_wait(w, e); break;
    case EV_GRID_WAIT: on_grid_wait(w, e); break;
    case EV_GRID_GO: on_grid_go(w); break;
    case EV_HEAP_FREE: order_heap_free(o, e); break;
    case EV_TMEM_ALLOC: order_tmem_alloc(o, e); break;
    case EV_TMEM_DEALLOC: order_tmem_dealloc(o, e); break;
    case EV_REGISTERS: regs_touch(o, w, e); break;
    case EV_EXCHANGE:
    case EV_PASSED:
    case EV_VALUES: undefined_event(o, w, e); break;
    default: break;
    }
}

struct order *order_new(struct group *g, struct check *check)
{
    struct order *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    /* Groups are opened one after the other. */
    if (!check->memory) check->memory = launch_memory_new(ORDER_MEMORY_MOST);
    if (g->launch->kernel->global_sync && !check->world)
        check->world = world_new(ORDER_MEMORY_MOST);
    if (!check->memory || (g->launch->kernel->global_sync && !check->world)) {
        free(o);
        return NULL;
    }
    o->world = check->world;
    o->group = g;
    g->meetings = true;
    o->check = check;
    o->kernel = g->launch->kernel;
    o->level = g->launch->check_level;
    o->sampled = calloc(o->kernel->insn_count + 1, sizeof *o->sampled);
    o->told_of = calloc(o->kernel->insn_count + 1, sizeof *o->told_of);
    if (!o->sampled || !o->told_of) {
        free(o->sampled);
        free(o->told_of);
        free(o);
        return NULL;
    }
    for (uint32_t i = 0; i < o->kernel->insn_count; i++) {
        const struct insn *in = &o->kernel->insns[i];
        o->narrow_waits |= in->is.waits == WAITS_PHASE && !(in->flags & MBAR_CLUSTER_SCOPE);
    }
    if (o->kernel->insn_count > EPOCH_INSN_MAX) order_exhausted(o, "instructions of a kernel");
    return o;
}

void order_end(struct order *o)
{
    if (o->ended) return;
    if (o->group->result == LAUNCH_TIMEOUT) protocol_stuck(o);
    order_clusters_end(o);
    tell_end(o);
    o->ended = true;
}

void order_free(struct order *o)
{
    if (!o) return;
    order_end(o);
    order_clusters_free(o);
    free(o->sampled);
    free(o->polls_seen);
    free(o->stored);
    free(o->told_of);
    free(o);
}
