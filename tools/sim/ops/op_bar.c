/*
 * Barriers of a CTA (bar, barrier.cta) and of a cluster (barrier.cluster). Their state:
 * machine/barrier.c.
 */
#include "machine/exec.h"

#include <stdio.h>

enum { BARRIER_MOST = 1024 /* threads */ };

static void publish(struct warp *w, const struct insn *in, enum event_kind kind, uint32_t lanes,
                    uint32_t key, uint64_t value)
{
    const struct group *g = w->cta->group;
    struct event e = {.kind = (uint8_t)kind,
                      .lanes = lanes,
                      .warp = w,
                      .in = in,
                      .cta = w->cta,
                      .key = key,
                      .value = value};
    observe(g, &e);
}

static uint32_t live_warps(const struct cta *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->warp_count; i++) n += c->warps[i].live != 0;
    return n;
}

/* ---- named barriers: arriving and waiting ---- */

struct barrier_call {
    uint32_t id, count;
    bool whole;
    enum barrier_reduce reduce;
    uint32_t votes; /* executing lanes whose predicate holds */
};

#define BARRIER_FAULT(w, in, id, ...)                                                            \
    sim_fault(w, in, NO_LANE, 715, FIND_BARRIER_ID, CAUSE_NONE, barrier_name((char[24]){0}, id), \
              __VA_ARGS__)

static const char *barrier_name(char *out, uint32_t id)
{
    snprintf(out, 24, "barrier %u", id);
    return out;
}

static enum step call_check(struct warp *w, const struct insn *in, const struct barrier_call *call)
{
    const struct named_barrier *b;
    if (call->id >= NAMED_BARRIERS) {
        return BARRIER_FAULT(w, in, call->id, "barrier number %u is not one of 0 to %d", call->id,
                             NAMED_BARRIERS - 1);
    }
    if (!call->whole &&
        (call->count == 0 || call->count % WARP_LANES || call->count > BARRIER_MOST)) {
        return BARRIER_FAULT(w, in, call->id,
                             "thread count %u is not a multiple of %d from %d to %d", call->count,
                             WARP_LANES, WARP_LANES, BARRIER_MOST);
    }
    b = &w->cta->barriers[call->id];
    if (!b->expected) return STEP_NEXT;
    if (call->count != b->expected && !(call->whole && b->whole)) {
        return BARRIER_FAULT(
            w, in, call->id,
            "this instruction gives a count of %u threads, but others (line %u) gave %u; all must "
            "give the same count",
            call->count, b->in->src->pos.line, b->expected);
    }
    if (call->reduce != b->reduce) {
        return BARRIER_FAULT(w, in, call->id,
                             "barrier.red and other barrier instructions (line %u) meet in one "
                             "generation",
                             b->in->src->pos.line);
    }
    return STEP_NEXT;
}

static void arrive(struct warp *w, const struct insn *in, uint32_t mask,
                   const struct barrier_call *call)
{
    struct cta *c = w->cta;
    struct named_barrier *b = &c->barriers[call->id];
    if (!b->expected) {
        b->expected = call->count;
        b->whole = call->whole;
        b->reduce = (uint8_t)call->reduce;
    }
    b->in = in;
    b->votes += (uint32_t)__builtin_popcount(call->votes);
    b->voters += (uint32_t)__builtin_popcount(mask);
    b->lanes[w->id] |= mask;
    c->group->progress++;
    if (c->group->observer) publish(w, in, EV_BARRIER_ARRIVE, mask, call->id, b->generation);
    if (!(w->live & ~b->lanes[w->id])) barrier_count_warp(w, call->id);
    barrier_check(c, call->id);
}

/* arg[at]: the barrier's number; arg[at + 1]: the thread count, where there is one. */
static void call_fill(const struct warp *w, const struct insn *in, uint32_t mask, uint32_t at,
                      struct barrier_call *call)
{
    const struct named_barrier *b;
    uint32_t lane = first_lane(mask);
    call->id = (uint32_t)arg_lane(w, in->arg[at], lane);
    call->whole = in->arg[at + 1].sink;
    if (!call->whole) {
        call->count = (uint32_t)arg_lane(w, in->arg[at + 1], lane);
        return;
    }
    b = &w->cta->barriers[call->id % NAMED_BARRIERS];
    call->count = b->expected && b->whole ? b->expected : live_warps(w->cta) * WARP_LANES;
}

static enum step sync(struct warp *w, const struct insn *in, uint32_t mask,
                      struct barrier_call *call)
{
    struct frag *f = warp_frag(w);
    const struct named_barrier *b;
    uint64_t generation = f->wait.value;
    if (f->wait.kind != WAIT_BARRIER || !f->wait.arrived) {
        if (call_check(w, in, call) == STEP_FAULT) return STEP_FAULT;
        b = &w->cta->barriers[call->id];
        generation = b->generation;
        arrive(w, in, mask, call);
        if (b->generation == generation) {
            if (f->mask != mask) frag_split(w, f->mask & ~mask, f->pc + 1);
            w->cta->barriers[call->id].warps_waiting |= 1ULL << w->id;
            sim_block(w, WAIT_BARRIER, w->cta, call->id, generation);
            f->wait.arrived = true;
            return STEP_BLOCK;
        }
    } else {
        b = &w->cta->barriers[f->wait.key];
        if (b->generation == f->wait.value) {
            return sim_block(w, WAIT_BARRIER, w->cta, f->wait.key, f->wait.value);
        }
    }
    w->last_barrier = in;
    if (w->cta->group->observer) {
        publish(w, in, EV_BARRIER_PASS, mask, call->id, generation);
    }
    return STEP_NEXT;
}

static enum step exec_bar_sync(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct barrier_call call = {.reduce = REDUCE_NONE};
    call_fill(w, in, mask, 0, &call);
    return sync(w, in, mask, &call);
}

int bind_bar_sync(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_bar_sync;
    return 0;
}

static enum step exec_bar_arrive(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct barrier_call call = {.reduce = REDUCE_NONE};
    call_fill(w, in, mask, 0, &call);
    if (call_check(w, in, &call) == STEP_FAULT) return STEP_FAULT;
    arrive(w, in, mask, &call);
    w->last_barrier = in;
    return STEP_NEXT;
}

int bind_bar_arrive(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_bar_arrive;
    return 0;
}

static enum step exec_bar_red(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct barrier_call call = {.reduce = (enum barrier_reduce)in->flags};
    enum step s;
    uint32_t result;
    call_fill(w, in, mask, 1, &call);
    call.votes = arg_pred(w, in->arg[3]) & mask;
    s = sync(w, in, mask, &call);
    if (s != STEP_NEXT) return s;
    result = w->cta->barriers[call.id].result;
    if (in->flags != REDUCE_POPC) {
        arg_set_pred(w, in->arg[0], mask, result ? FULL_MASK : 0);
        return STEP_NEXT;
    }
    for (; mask; mask &= mask - 1) arg_set_lane(w, in->arg[0], first_lane(mask), result);
    return STEP_NEXT;
}

/* flags: enum barrier_reduce */
int bind_bar_red(struct decoder *dc, struct insn *out)
{
    out->flags = mod_has(dc, "popc") ? REDUCE_POPC : mod_has(dc, "and") ? REDUCE_AND : REDUCE_OR;
    out->fn = exec_bar_red;
    return 0;
}

/* ---- the cluster barrier ---- */

static enum step cluster_fault(struct warp *w, const struct insn *in, const char *what)
{
    return sim_fault(w, in, NO_LANE, 715, FIND_COLLECTIVE_PARTIAL, CAUSE_CLUSTER,
                     "the cluster barrier",
                     "a thread %s; in each phase of the cluster barrier every thread arrives once "
                     "and then waits",
                     what);
}

static enum step exec_cluster_arrive(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct cluster *cl = w->cta->cluster;
    if (w->cluster_armed & mask) return cluster_fault(w, in, "arrives again before it has waited");
    w->cluster_armed |= mask;
    w->cluster_arrived |= mask;
    cl->arrived_threads += (uint32_t)__builtin_popcount(mask);
    w->last_barrier = in;
    w->cta->group->progress++;
    if (w->cta->group->observer) publish(w, in, EV_CLUSTER_ARRIVE, mask, 0, cl->phase);
    cluster_barrier_check(cl);
    return STEP_NEXT;
}

int bind_cluster_arrive(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_cluster_arrive;
    return 0;
}

static enum step exec_cluster_wait(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct cluster *cl = w->cta->cluster;
    if (mask & ~w->cluster_armed) return cluster_fault(w, in, "waits without having arrived");
    if (w->cluster_arrived & mask) {
        return sim_block(w, WAIT_CLUSTER, cl->ctas[0], 0, cl->phase);
    }
    w->cluster_armed &= ~mask;
    w->last_barrier = in;
    if (w->cta->group->observer) publish(w, in, EV_CLUSTER_PASS, mask, 0, cl->phase - 1);
    return STEP_NEXT;
}

int bind_cluster_wait(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_cluster_wait;
    return 0;
}
