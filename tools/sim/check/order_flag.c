/* Flags in memory: what strong accesses hand over through a location (order.h). */
#include "check/order_lock.h"
#include "check/order_poll.h"

#include "machine/mem.h"

#include <stdlib.h>
#include <string.h>

enum { FLAGS_FIRST = 64, FLAGS_MOST = 1 << 14, POLLED_MOST = 1 << 12 };

static struct order_flag *flag_slot(struct order_flag *flags, uint32_t slots,
                                    const struct order_cta *cta, uint64_t address)
{
    uint64_t h = (address ^ (uintptr_t)cta >> 4) * 0x9E3779B97F4A7C15ULL;
    uint32_t i = (uint32_t)(h >> 40) & (slots - 1);
    while (flags[i].used && (flags[i].cta != cta || flags[i].address != address))
        i = (i + 1) & (slots - 1);
    return &flags[i];
}

static bool flags_grow(struct order_cluster *c)
{
    uint32_t slots = c->flag_slots ? 2 * c->flag_slots : FLAGS_FIRST;
    struct order_flag *grown = calloc(slots, sizeof *grown);
    if (!grown) return false;
    for (uint32_t i = 0; i < c->flag_slots; i++) {
        const struct order_flag *f = &c->flags[i];
        if (f->used) *flag_slot(grown, slots, f->cta, f->address) = *f;
    }
    free(c->flags);
    c->flags = grown;
    c->flag_slots = slots;
    return true;
}

/* The record of a location; past FLAGS_MOST all share one, which only ever orders too much. */
static struct order_flag *flag_make(struct order_cluster *c, const struct order_cta *cta,
                                    uint64_t address)
{
    struct order_flag *f;
    if (c->flag_slots && c->flag_count >= FLAGS_MOST) {
        f = flag_slot(c->flags, c->flag_slots, cta, address);
        if (f->used) return f;
        cta = NULL;
        address = 0;
    }
    if (2 * (c->flag_count + 1) > c->flag_slots && !flags_grow(c)) return NULL;
    f = flag_slot(c->flags, c->flag_slots, cta, address);
    if (!f->used) {
        f->used = true;
        f->cta = cta;
        f->address = address;
        c->flag_count++;
    }
    return f;
}

static struct order_flag *flag_find(const struct order_cluster *c, const struct order_cta *cta,
                                    uint64_t address)
{
    struct order_flag *f;
    if (!c->flag_slots) return NULL;
    f = flag_slot(c->flags, c->flag_slots, cta, address);
    if (!f->used && c->flag_count >= FLAGS_MOST) f = flag_slot(c->flags, c->flag_slots, NULL, 0);
    return f->used ? f : NULL;
}

static void flag_clear(struct order_flag *f, uint32_t ctas)
{
    stamp_clear(&f->released);
    for (uint32_t i = 0; f->narrow && i < ctas; i++) stamp_clear(&f->narrow[i]);
}

void flag_free(struct order_flag *f)
{
    stamp_free(&f->released);
    for (uint32_t i = 0; f->narrow && i < CLUSTER_CTAS; i++) stamp_free(&f->narrow[i]);
    free(f->narrow);
}

/* ---- fences ---- */

/* By the letter the fence of a release is of the thread that raises the flag: told once somebody acquires. */
static void tell_lent(struct order *o, const struct order_warp *w, const struct insn **lent)
{
    if (!*lent) return;
    sim_idiom(o->group, *lent, IDIOM_RELEASE_LENT);
    if (o->level >= 2 && !(o->told_of[order_insn_index(o, *lent)] & TOLD_LENT)) {
        o->told_of[order_insn_index(o, *lent)] |= TOLD_LENT;
        sim_find(o->group, w->warp, *lent, NO_LANE, SEV_WARNING, FIND_RACE, CAUSE_NONE, "",
                 "hands over what other threads have fenced before a barrier; this thread has not "
                 "fenced since. Cheapest remedy: fence.acq_rel.gpu by this thread, ahead of this "
                 "and behind the barrier.");
    }
    *lent = NULL;
}

/* What relaxed reads of this warp, and of those that met it at a barrier, have seen. */
static void take_observed(struct order *o, struct order_warp *w, const struct insn *in)
{
    const struct horizon *before = w->now.abroad;
    order_keep(o, world_take(w->cta->cluster->linear, &w->now, w->now.abroad_observed, NULL));
    if (w->now.abroad == before) return;
    sim_idiom(o->group, in, IDIOM_ACQUIRE_LENT);
    if (o->level < 2 || o->told_of[order_insn_index(o, in)] & TOLD_LENT) return;
    o->told_of[order_insn_index(o, in)] |= TOLD_LENT;
    sim_find(o->group, w->warp, in, NO_LANE, SEV_WARNING, FIND_RACE, CAUSE_NONE, "",
             "fences for what another thread has read before a barrier. By the letter the fence of "
             "an acquire is of the thread that reads the flag. Cheapest remedy: fence.acq_rel.gpu "
             "by that thread, behind its read and ahead of the barrier.");
}

/* PTX ISA "membar, fence": .acquire and .release are half of it each. */
void order_membar(struct order *o, struct order_warp *w, const struct event *e)
{
    const enum reach reach = order_reach(e->in);
    for (uint32_t i = REACH_CTA; i <= reach && e->access != ACCESS_WRITE; i++) {
        order_keep(o, stamp_join(&w->now, &w->observed[i]));
        stamp_clear(&w->observed[i]);
        w->acquired = e->in;
    }
    if (e->access != ACCESS_WRITE) tell_lent(o, w, &w->lent);
    if (reach == REACH_GPU && e->access != ACCESS_WRITE) take_observed(o, w, e->in);
    if (reach == REACH_GPU && e->access != ACCESS_READ) {
        order_keep(o, stamp_fence(&w->now));
        horizon_set(&w->posted, NULL);
        horizon_set(&w->posted_bridged, NULL);
    }
    for (uint32_t i = REACH_CTA; i <= reach && e->access != ACCESS_READ; i++)
        order_keep(o, stamp_copy(&w->fenced[i], &w->now));
    w->released = true; /* what comes now is not under the fence */
    w->version++;
}

/* ---- accesses ---- */

/*
 * PTX ISA "Release and acquire patterns": a release write, or a fence and then a strong write, hands
 * over; an acquire read, or a strong read and then a fence, takes. The scope of each must include the
 * other's thread. What is handed over goes on through atomics of others ("Observation order"), and ends
 * with a strong store of another thread.
 */
struct flag_access {
    struct order *o;
    struct order_warp *w;
    const struct order_cta *cta; /* of shared memory; NULL: global */
    uint64_t address;
    const struct insn *in;
    enum reach reach;
    bool unchanged; /* a store of what was there */
    uint32_t lanes, size;
};

static bool alone(const struct order_warp *w)
{
    return w->cta->cluster->cluster->cta_count == 1;
}

static bool changes(const struct insn *in)
{
    return in->is.class == INSN_ATOMIC || in->is.class == INSN_RED || in->is.class == INSN_COPY_RED;
}

/* The cluster's record, less what a store of another cluster has ended. */
static struct order_flag *flag_of(const struct flag_access *a, const struct world_flag *everywhere)
{
    struct order_flag *f = flag_find(a->w->cta->cluster, a->cta, a->address);
    if (f && everywhere && f->turn != everywhere->turn) {
        flag_clear(f, CLUSTER_CTAS);
        f->turn = everywhere->turn;
    }
    return f;
}

bool order_flag_locks(const struct order_warp *w, const struct order_cta *cta, uint64_t address)
{
    const struct world *world = w->cta->cluster->order->world;
    const struct world_flag *everywhere = world && !cta ? world_flag_find(world, address) : NULL;
    const struct order_flag *f = flag_find(w->cta->cluster, cta, address);
    return (everywhere && everywhere->lock.locks) || (f && f->lock.locks);
}

uint64_t order_flag_seen(const struct order_warp *w, uint64_t address)
{
    const struct order_flag *f = flag_find(w->cta->cluster, NULL, address);
    return f && f->address == address ? f->seen : 0;
}

static struct world_flag *world_flag_of(const struct flag_access *a)
{
    return a->o->world && !a->cta ? world_flag_find(a->o->world, a->address) : NULL;
}

static void take(const struct flag_access *a, enum reach needed, const struct stamp *from)
{
    if (a->reach < needed) return;
    if (a->in->is.acquire)
        order_acquire(a->w, from, a->in);
    else
        order_keep(a->o, stamp_join(&a->w->observed[needed], from));
}

/* Keeps the value that the location has now, which now.in has left (NULL: nobody), for polls (order_poll.h). */
static void remember(struct order *o, struct order_warp *w, struct world_flag *f,
                     struct world_past now, uint32_t lane, uint64_t address)
{
    const uint32_t self = w->chain[COMPONENT_WARP];
    const void *at = now.size <= sizeof now.value ? mem_peek(w->warp, lane, address) : NULL;
    if (!at || f->address != address) {
        o->world->blind = true;
        return;
    }
    if (now.in && changes(now.in)) {
        now.open = true;
        if (o->world->open_count < OPEN_MOST)
            o->world->open[o->world->open_count++] = (struct world_open){address, at};
        else
            now.size = 0; /* nobody will know */
    } else {
        memcpy(&now.value, at, now.size);
    }
    if (now.in) now.actor = order_actor(w, self);
    now.number = order_component(w, self)->number;
    order_keep(o, world_flag_past(f, now));
}

/* The number of the write that the record is of. */
static uint64_t past_number(const struct world_flag *f, const struct world_past *past)
{
    const uint64_t newest = f->past_count - 1, at = (uint64_t)(past - f->past);
    return newest - (newest - at) % PAST_KEPT;
}

/* What a read takes over of the world's record. False: nothing, not of the cluster's either. */
static bool answered(const struct flag_access *a, const struct world_flag *everywhere,
                     struct horizon **known, struct horizon **bridged)
{
    const struct poll p = {a->w, a->in, a->address, a->lanes, a->size};
    struct order_flag *f = flag_of(a, everywhere);
    const struct world_past *past = NULL;
    enum poll_answer answer;
    *known = everywhere->known;
    *bridged = everywhere->bridged;
    if (!everywhere->past || everywhere->address != a->address) return true;
    if (f && f->address != a->address) return true;
    answer = order_poll(&p, everywhere, f ? f->seen : 0, &past);
    if (answer == POLL_AGAIN) return false;
    if (answer == POLL_PAST) {
        *known = past->known;
        *bridged = past->bridged;
    }
    if (!f) f = flag_make(a->w->cta->cluster, NULL, a->address);
    order_keep(a->o, f != NULL);
    if (!f) return true;
    f->turn = everywhere->turn;
    f->seen = answer == POLL_PAST ? past_number(everywhere, past) : everywhere->past_count - 1;
    return true;
}

/* A location that nobody has raised, and that is asked for again: what it holds from now on is kept. */
static bool waits_for_first(const struct flag_access *a)
{
    struct world *world = a->o->world;
    const struct poll p = {a->w, a->in, a->address, a->lanes, a->size};
    struct world_flag *f;
    if (!world || a->cta || world->flag_count >= POLLED_MOST || a->reach < REACH_GPU ||
        a->in->is.class != INSN_LOAD || !(a->in->used & USE_STEERS) || !order_poll_again(&p))
        return false;
    f = world_flag_make(world, a->address);
    order_keep(a->o, f != NULL);
    if (f)
        remember(a->o, a->w, f, (struct world_past){.size = a->size}, first_lane(a->lanes),
                 a->address);
    return true;
}

static void take_lent(const struct flag_access *a, const struct world_flag *everywhere,
                      const struct order_flag *f)
{
    const struct insn *lent = everywhere && everywhere->lent ? everywhere->lent
                              : f                            ? f->lent
                                                             : NULL;
    if (lent) a->w->lent = lent;
    if (a->in->is.acquire) tell_lent(a->o, a->w, &a->w->lent);
}

static struct lock_word lock_word(const struct flag_access *a)
{
    return (struct lock_word){a->in, a->cta, a->address, a->lanes, a->size};
}

static struct lock_state *lock_of(struct world_flag *everywhere, struct order_flag *f)
{
    return everywhere ? &everywhere->lock : f ? &f->lock : NULL;
}

/* A lock is taken that its last holder has given back, without an acquire of what that one had fenced. */
static void take_lock(const struct flag_access *a, const struct order_flag *f,
                      struct horizon *known)
{
    const struct order_cluster *c = a->w->cta->cluster;
    struct horizon **locked = &a->w->now.locked;
    const enum reach needed = alone(a->w) ? REACH_CTA : REACH_CLUSTER;
    if (a->in->is.acquire) return;
    if (f && a->reach >= needed)
        order_keep(a->o, horizon_add(locked, c->linear, &f->released.known));
    if (f && f->narrow)
        order_keep(a->o, horizon_add(locked, c->linear, &f->narrow[a->w->cta->cta->rank].known));
    if (a->reach >= REACH_GPU) order_keep(a->o, horizon_join(locked, known));
    a->w->version++;
}

static void flag_read(const struct flag_access *a)
{
    struct world_flag *everywhere = world_flag_of(a);
    struct horizon *known = NULL, *bridged = NULL;
    struct order_flag *f;
    if (everywhere ? !answered(a, everywhere, &known, &bridged) : waits_for_first(a)) return;
    f = flag_of(a, everywhere);
    take_lent(a, everywhere, f);
    if (order_lock_take(a->w, lock_word(a), lock_of(everywhere, f))) take_lock(a, f, known);
    if (f && alone(a->w)) {
        take(a, REACH_CTA, &f->released);
    } else if (f) {
        if (f->narrow) take(a, REACH_CTA, &f->narrow[a->w->cta->cta->rank]);
        take(a, REACH_CLUSTER, &f->released);
    }
    if (!everywhere || a->reach < REACH_GPU) return;
    order_keep(a->o, world_take(a->w->cta->cluster->linear,
                                a->in->is.acquire ? &a->w->now : &a->w->observed[REACH_GPU], known,
                                bridged));
    a->w->version++;
    if (a->in->is.acquire) {
        a->w->acquired = a->in;
        return;
    }
    order_keep(a->o, world_join(a->o->world, &a->w->now.abroad_observed, known));
    if (changes(a->in) && a->in->used & USE_STEERS)
        order_keep(a->o, world_join(a->o->world, &a->w->now.abroad_seen, known));
}

static void give(const struct flag_access *a, enum reach needed, struct stamp *to)
{
    if (a->reach < needed) return;
    if (a->in->is.release)
        order_release(a->w, to, a->in);
    else
        order_keep(a->o, stamp_join(to, &a->w->fenced[needed]));
}

static bool narrow_make(struct order_flag *f)
{
    if (!f->narrow) f->narrow = calloc(CLUSTER_CTAS, sizeof *f->narrow);
    return f->narrow != NULL;
}

static void write_here(const struct flag_access *a, struct order_flag *f)
{
    if (!changes(a->in) && f->writer != a->w) flag_clear(f, CLUSTER_CTAS);
    if (!changes(a->in)) f->writer = a->w;
    if (alone(a->w)) {
        give(a, REACH_CTA, &f->released);
    } else if (narrow_make(f)) {
        give(a, REACH_CTA, &f->narrow[a->w->cta->cta->rank]);
        give(a, REACH_CLUSTER, &f->released);
    } else {
        order_exhausted(a->o, NULL);
    }
}

/* What other threads have fenced, and handed to this one, counts as fenced by it. False: there is no such thing. */
static bool join_fenced(const struct flag_access *a)
{
    struct order_warp *w = a->w;
    struct stamp *gpu = &w->fenced[REACH_GPU];
    if (clock_covers(&gpu->known, &w->now.fenced) &&
        (gpu->abroad == w->now.abroad || gpu->abroad == w->now.abroad_fenced ||
         !w->now.abroad_fenced))
        return false;
    for (int i = 0; i < REACHES; i++) order_keep(a->o, stamp_join_fenced(&w->fenced[i], &w->now));
    horizon_set(&w->posted, NULL);
    horizon_set(&w->posted_bridged, NULL);
    return true;
}

static bool post_fenced(const struct flag_access *a)
{
    struct order_warp *w = a->w;
    return w->posted || world_post(w->cta->cluster->linear, &w->fenced[REACH_GPU], &w->posted,
                                   &w->posted_bridged);
}

static bool hand_over(const struct flag_access *a, struct world_flag *f)
{
    struct order_warp *w = a->w;
    if (a->reach < REACH_GPU) return true;
    if (!a->in->is.release)
        return post_fenced(a) && world_join(a->o->world, &f->known, w->posted) &&
               world_join(a->o->world, &f->bridged, w->posted_bridged);
    w->released = true;
    w->handed_over = a->in;
    return world_post(w->cta->cluster->linear, &w->now, &f->known, &f->bridged);
}

static void write_everywhere(const struct flag_access *a, struct world_flag *f)
{
    if (!changes(a->in)) {
        const uint32_t writer = order_actor(a->w, a->w->chain[COMPONENT_WARP]);
        if (f->writer != writer) {
            horizon_set(&f->known, NULL);
            horizon_set(&f->bridged, NULL);
            f->turn++;
        }
        f->writer = writer;
    }
    order_keep(a->o, hand_over(a, f));
}

static void flag_write(const struct flag_access *a)
{
    struct order_warp *w = a->w;
    const bool gives = a->in->is.release || w->fenced[REACH_CTA].known.count || w->now.fenced.count;
    struct world_flag *everywhere = world_flag_of(a);
    struct order_flag *f = flag_of(a, everywhere);
    bool lent;
    /* Who sees the value may have seen it before this store: a flag that was left raised, or is raised twice. */
    if (gives && a->unchanged) {
        if (a->o->world && !a->cta) a->o->world->again = a->in;
        return;
    }
    if (gives && !everywhere && a->o->world && !a->cta) {
        everywhere = world_flag_make(a->o->world, a->address);
        if (!everywhere) order_exhausted(a->o, NULL);
    }
    if (gives && !f) {
        f = flag_make(w->cta->cluster, a->cta, a->address);
        if (!f) order_exhausted(a->o, NULL);
    }
    order_lock_give_back(w, lock_word(a), lock_of(everywhere, f));
    lent = gives && !a->in->is.release && join_fenced(a);
    if (f && (lent || !changes(a->in))) f->lent = lent ? a->in : NULL;
    if (everywhere && (lent || !changes(a->in))) everywhere->lent = lent ? a->in : NULL;
    if (everywhere) {
        write_everywhere(a, everywhere);
        remember(a->o, w, everywhere,
                 (struct world_past){.size = a->size,
                                     .known = everywhere->known,
                                     .bridged = everywhere->bridged,
                                     .in = a->in},
                 first_lane(a->lanes), a->address);
    }
    if (!f) return;
    write_here(a, f);
    if (everywhere) f->turn = everywhere->turn;
}

/*
 * A reduction shows its thread nothing. Nor do loads and atomics on whose answer nothing depends, neither what is executed
 * nor where: with another answer the same accesses would follow, so it orders none of them.
 */
static bool brings_value(const struct event *e)
{
    const uint8_t class = e->in->is.class;
    if (!(e->access & ACCESS_READ) || class == INSN_RED || class == INSN_COPY_RED) return false;
    return (class != INSN_LOAD && class != INSN_ATOMIC) || e->in->used;
}

/* Lanes at the first one's address. */
static uint32_t lanes_with(const struct event *e, uint32_t lanes)
{
    const uint64_t address = e->addresses[first_lane(lanes)];
    uint32_t same = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        if (e->addresses[first_lane(rest)] == address) same |= 1U << first_lane(rest);
    return same;
}

void order_flags(struct order *o, struct order_warp *w, const struct event *e)
{
    struct flag_access a = {.o = o, .w = w, .in = e->in, .reach = order_reach(e->in)};
    const bool brings = brings_value(e);
    a.unchanged = (e->in->is.class == INSN_STORE || e->in->is.class == INSN_ATOMIC) && e->value;
    a.size = (uint32_t)e->size;
    for (uint32_t m = e->addresses ? e->lanes : 1; m; m &= ~a.lanes) {
        a.lanes = e->addresses ? lanes_with(e, m) : m;
        a.address = e->addresses ? e->addresses[first_lane(m)] : e->address;
        a.cta = e->space == SPACE_SHARED && e->cta ? order_cta_of(e->cta) : NULL;
        if (a.cta) a.address &= SHARED_OFFSET_MASK;
        if (brings) flag_read(&a);
        if (e->access & ACCESS_WRITE) flag_write(&a);
    }
}

/* A weak write of global memory: a flag may be reset so. */
void order_flags_weak(struct order *o, struct order_warp *w, const struct event *e)
{
    struct world *world = o->world;
    if (!world || !world->flag_count || world->blind) return;
    if (!e->addresses || e->token) { /* a copy */
        const uint64_t end = e->address + e->size;
        world->blind =
            e->addresses || (e->address <= world->flag_high + 7 && end > world->flag_low);
        return;
    }
    if (e->span->low > world->flag_high + 7 || e->span->high + e->size <= world->flag_low) return;
    for (uint32_t m = e->lanes; m; m &= m - 1) {
        const uint32_t lane = first_lane(m);
        struct world_flag *f = world_flag_find(world, e->addresses[lane]);
        if (f && f->past)
            remember(o, w, f, (struct world_past){.size = (uint32_t)e->size, .in = e->in}, lane,
                     e->addresses[lane]);
    }
}
