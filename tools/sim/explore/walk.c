/* One run, step by step: walk.h. */
#include "explore/walk.h"
#include "machine/exec.h"
#include "machine/hooks.h"

#include <stdlib.h>

enum {
    PRIVATE_MOST = 100000, /* instructions between two steps */
    REFUSALS = 3,          /* of a warp's polls in one run, while others can run */
    OFFERS_FIRST = 64
};

/* An operation in flight, and what it will touch. */
struct walk_op {
    actor actor;
    uint64_t token;
    struct footprint touches;
};

struct walk_warp {
    actor actor;
    uint64_t issued;
    uint32_t refused;
};

/* Makes room for one more; false when memory is exhausted. */
static bool room(struct walk *w, void **at, uint32_t count, uint32_t *capacity, size_t size)
{
    uint32_t wanted = *capacity ? 2 * *capacity : OFFERS_FIRST;
    char *grown;
    if (count < *capacity) return true;
    grown = realloc(*at, wanted * size);
    if (!grown) {
        w->failed = true;
        return false;
    }
    memset(grown + *capacity * size, 0, (wanted - *capacity) * size);
    *at = grown;
    *capacity = wanted;
    return true;
}

static struct walk_warp *warp_of(struct walk *w, actor who)
{
    static struct walk_warp spare;
    for (uint32_t i = 0; i < w->warp_count; i++)
        if (w->warps[i].actor == who) return &w->warps[i];
    void *at = w->warps;
    if (!room(w, &at, w->warp_count, &w->warp_capacity, sizeof *w->warps)) return &spare;
    w->warps = at;
    w->warps[w->warp_count] = (struct walk_warp){.actor = who};
    return &w->warps[w->warp_count++];
}

static struct walk_op *op_of(const struct walk *w, uint64_t token)
{
    for (uint32_t i = 0; i < w->op_count; i++)
        if (w->ops[i].token == token) return &w->ops[i];
    return NULL;
}

/* ---- what happens ---- */

static void on_issue(struct walk *w, const struct event *e)
{
    void *at = w->ops;
    struct walk_op *op;
    if (!room(w, &at, w->op_count, &w->op_capacity, sizeof *w->ops)) return;
    w->ops = at;
    op = &w->ops[w->op_count++];
    op->token = e->token;
    op->actor = actor_warp(e->warp) | ++warp_of(w, actor_warp(e->warp))->issued;
    op->touches.count = 0;
    footprint_touch(&w->step, TOUCH_OP, TOUCH_WRITE, 0, op->actor, 1);
}

static void on_event(struct observer *o, const struct event *e)
{
    struct walk *w = (struct walk *)((char *)o - offsetof(struct walk, observer));
    if (e->kind == EV_ASYNC_ISSUE) {
        on_issue(w, e);
    } else if (e->kind == EV_ACCESS && e->token && w->issuing) {
        struct walk_op *op = op_of(w, e->token);
        if (op) footprint_event(&op->touches, e);
    } else {
        footprint_event(&w->step, e);
    }
}

static void keep_observer(struct observer *o)
{
    (void)o;
}

static void ended(struct observer *o, bool completed)
{
    (void)o;
    (void)completed;
}

static struct observer *observer_of(struct watcher *watcher, struct group *g)
{
    struct walk *w = (struct walk *)((char *)watcher - offsetof(struct walk, watcher));
    (void)g;
    w->observer = (struct observer){
        .on_event = on_event, .on_end = ended, .destroy = keep_observer, .accesses = true};
    return &w->observer;
}

static void on_finding(struct finding_sink *s, const struct finding *f)
{
    struct walk *w = (struct walk *)((char *)s - offsetof(struct walk, sink));
    if (f->severity != SEV_ERROR || w->found) return;
    w->found = true;
    w->finding = *f;
}

/* ---- instructions that nobody else notices ---- */

static bool is_private(const struct insn *in)
{
    if (!in || in->watched) return false;
    switch ((enum insn_class)in->is.class) {
    case INSN_ALU:
    case INSN_MOVE:
    case INSN_MATRIX:
    case INSN_LANES:
    case INSN_GRID:
    case INSN_FENCE:
    case INSN_GROUP: return true;
    case INSN_CONTROL:
        return in->is.control != CONTROL_EXIT && in->is.control != CONTROL_TRAP &&
               in->is.control != CONTROL_RETURN;
    case INSN_LOAD:
        return in->space == SPACE_PARAM || in->space == SPACE_CONST || in->space == SPACE_LOCAL;
    default: return false;
    }
}

/* Lets the warp run up to its next step. */
static void run_ahead(struct walk *w, struct warp *warp)
{
    const struct group *g = warp->cta->group;
    const struct insn *in;
    for (uint32_t n = 0; !g->failed; n++) {
        steer_rouse(warp);
        if (!steer_ahead(warp, &in) || !is_private(in)) return;
        if (n == PRIVATE_MOST) {
            w->too_long = true;
            warp->cta->group->failed = true;
            return;
        }
        steer_step(warp);
    }
}

/* ---- steps ---- */

static bool changes(const struct footprint *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (f->touch[i].mode != TOUCH_READ && f->touch[i].mode != TOUCH_LEARN &&
            f->touch[i].mode != TOUCH_BARRIER)
            return true;
    return false;
}

static void begin(struct walk *w, bool issuing)
{
    w->step.count = 0;
    w->issuing = issuing;
}

/* One instruction. False: it only fell asleep. */
static bool execute(struct walk *w, struct warp *warp)
{
    const struct group *g = warp->cta->group;
    const struct insn *in;
    while (steer_ahead(warp, &in)) {
        uint64_t before = warp->blocked_steps;
        begin(w, true);
        w->at = in;
        w->act = WALK_EXECUTES;
        for (uint32_t i = 0; i < warp->frag_count; i++)
            if (!frag_runnable(&warp->frags[i]))
                footprint_wait(&w->step, warp, &warp->frags[i].wait);
        steer_step(warp);
        if (g->failed || w->found || warp->blocked_steps == before || changes(&w->step))
            return true;
    }
    return false;
}

/* The poll at which the warp sleeps is answered False, and the warp comes to its next step, or back. */
static bool answer(struct walk *w, struct warp *warp, uint32_t but, uint32_t *pc, uint32_t *of,
                   uint64_t *state)
{
    const struct insn *in;
    const struct frag *f = steer_refuse(warp, but);
    const uint32_t frags = warp->frag_count;
    uint32_t lanes;
    if (!f) return false;
    *of = lanes = f->mask;
    *pc = f->pc;
    w->at = f->pc < warp->cta->group->launch->kernel->insn_count
                ? &warp->cta->group->launch->kernel->insns[f->pc]
                : NULL;
    w->act = WALK_REFUSED;
    footprint_wait(&w->step, warp, &f->wait);
    steer_step(warp);
    run_ahead(w, warp);
    *state = 0;
    if (warp->cta->group->failed || !steer_ahead(warp, &in)) return true;
    f = warp_frag(warp);
    /* Lanes of one poll may ask for different phases, and come apart. */
    if (f->pc == *pc && f->mask == lanes && warp->frag_count == frags && !changes(&w->step))
        *state = frag_state(warp, f);
    return true;
}

/* A poll is answered False. False: that leads back to it, and changes nothing; so it is with the polls of all lanes. */
static bool refuse(struct walk *w, struct warp *warp, bool free)
{
    struct walk_warp *known = warp_of(w, actor_warp(warp));
    uint32_t pc, again, lanes, same, but = 0;
    uint64_t state, later;
    if (!free && known->refused >= REFUSALS) {
        w->bounded = true;
        return false;
    }
    begin(w, true);
    while (answer(w, warp, but, &pc, &lanes, &state)) {
        if (!state) {
            known->refused++;
            return true;
        }
        /* The first answer may differ from what its predicate held before; the second tells. */
        steer_step(warp);
        if (!answer(w, warp, but, &again, &same, &later) || again != pc || later != state) {
            known->refused++;
            return true;
        }
        but |= lanes;
        /* It is asleep again; lanes that came apart from it may ask for another phase. */
        steer_step(warp);
    }
    return false;
}

static struct warp *warp_at(const struct group *g, actor who)
{
    const uint32_t linear = (uint32_t)(who >> 32) / CTA_WARPS,
                   id = (uint32_t)(who >> 32) % CTA_WARPS;
    for (uint32_t i = 0; i < g->resident_count; i++) {
        const struct cluster *c = g->resident[i];
        for (uint32_t r = 0; r < c->cta_count; r++)
            if (c->ctas[r]->linear == linear && id < c->ctas[r]->warp_count)
                return &c->ctas[r]->warps[id];
    }
    return NULL;
}

static void op_touches(struct walk *w, const struct async_op *op)
{
    for (; op; op = op->joined) {
        const struct walk_op *known = op_of(w, op->token);
        const actor issuer = actor_warp(op->warp);
        if (!known) continue;
        footprint_join(&w->step, &known->touches);
        footprint_touch(&w->step, TOUCH_OP, TOUCH_WRITE, 0, known->actor, 1);
        if (op->pipe) {
            const size_t place = (size_t)((const char *)op->pipe - (const char *)op->warp->async);
            const bool own = place < sizeof *op->warp->async;
            footprint_touch(&w->step, TOUCH_PIPE, TOUCH_WRITE, 0,
                            own ? issuer | place : op->cta->linear, 1);
            footprint_touch(&w->step, TOUCH_GROUPS, TOUCH_FINISH, 0, issuer | COMMIT_KINDS, 1);
            footprint_touch(&w->step, TOUCH_REGS, TOUCH_WRITE, 0, issuer, 1);
        }
        if (op->commit != COMMIT_KINDS)
            footprint_touch(&w->step, TOUCH_GROUPS, TOUCH_FINISH, 0, issuer | op->commit, 1);
        if (op->in->is.class == INSN_COMMIT)
            footprint_touch(&w->step, TOUCH_GROUPS, TOUCH_LEARN, 0, issuer | COMMIT_CP_ASYNC, 1);
    }
}

static bool run_op(struct walk *w, struct group *g, actor who)
{
    enum { MOST = 256 };
    struct async_op *ops[MOST];
    size_t n = g->launch->hooks->offers(g, ops, MOST);
    for (size_t i = 0; i < n && i < MOST; i++) {
        const struct walk_op *op = op_of(w, ops[i]->token);
        if (!op || op->actor != who) continue;
        begin(w, false);
        w->at = ops[i]->in;
        w->act = WALK_OPERATION;
        op_touches(w, ops[i]);
        g->launch->hooks->run(g, ops[i]);
        return true;
    }
    return false;
}

/* Lets the actor take a step. False: it cannot. */
static bool step(struct walk *w, struct group *g, actor who)
{
    struct warp *warp;
    if ((uint32_t)who) return run_op(w, g, who);
    warp = warp_at(g, who);
    if (!warp) return false;
    if (!execute(w, warp) && (g->failed || !refuse(w, warp, w->offer.insists))) return false;
    footprint_settle(&w->step, warp->cta);
    return true;
}

/* ---- turns ---- */

static void offer(struct walk *w, actor who)
{
    void *at = w->offer.can;
    if (!room(w, &at, w->offer.count, &w->offer.capacity, sizeof *w->offer.can)) return;
    w->offer.can = at;
    w->offer.can[w->offer.count++] = who;
}

static void withdraw(struct walk *w, actor who)
{
    struct walk_offer *o = &w->offer;
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->can[i] != who) continue;
        if (i < o->polls) o->polls--;
        memmove(&o->can[i], &o->can[i + 1], (o->count - i - 1) * sizeof *o->can);
        o->count--;
        return;
    }
}

typedef void warp_fn(struct walk *w, struct warp *warp);

static void each_warp(struct walk *w, const struct group *g, warp_fn *act)
{
    for (uint32_t i = 0; i < g->resident_count && !g->failed; i++) {
        const struct cluster *c = g->resident[i];
        for (uint32_t r = 0; r < c->cta_count; r++)
            for (uint32_t n = 0; n < c->ctas[r]->warp_count && !g->failed; n++)
                act(w, &c->ctas[r]->warps[n]);
    }
}

static void offer_running(struct walk *w, struct warp *warp)
{
    const struct insn *in;
    if (steer_ahead(warp, &in)) offer(w, actor_warp(warp));
}

static void offer_polls(struct walk *w, struct warp *warp)
{
    const struct insn *in;
    if (steer_ahead(warp, &in)) return;
    for (uint32_t i = 0; i < warp->frag_count; i++) {
        if (warp->frags[i].wait.kind != WAIT_MBAR) continue;
        offer(w, actor_warp(warp));
        return;
    }
}

/* Who gets tensor memory first, and when a loop looks again, is decided by rules that are not the steerer's. */
static void look_for_unjudged(struct walk *w, struct warp *warp)
{
    for (uint32_t i = 0; i < warp->frag_count; i++) {
        const uint8_t kind = warp->frags[i].wait.kind;
        w->too_long |= kind == WAIT_TMEM_ALLOC || kind == WAIT_SLEEP || kind == WAIT_SPIN;
    }
}

static void make_offer(struct walk *w, const struct group *g)
{
    enum { MOST = 256 };
    struct async_op *ops[MOST];
    size_t n = g->launch->hooks->offers(g, ops, MOST);
    w->offer.count = 0;
    each_warp(w, g, offer_running);
    for (size_t i = 0; i < n && i < MOST; i++) {
        const struct walk_op *op = op_of(w, ops[i]->token);
        if (op) offer(w, op->actor);
    }
    w->offer.polls = w->offer.count;
    each_warp(w, g, offer_polls);
}

/* A warp that could run has only fallen asleep at a poll: it goes behind those that can run. */
static bool demote(struct walk *w, const struct group *g, actor who)
{
    const uint32_t count = w->offer.count;
    struct warp *warp = (uint32_t)who ? NULL : warp_at(g, who);
    for (uint32_t i = 0; warp && i < w->offer.polls; i++) {
        if (w->offer.can[i] != who) continue;
        withdraw(w, who);
        offer_polls(w, warp);
        return w->offer.count == count;
    }
    return false;
}

static bool turn(struct steerer *s, struct group *g)
{
    struct walk *w = (struct walk *)s;
    each_warp(w, g, run_ahead);
    if (w->failed || w->found) g->failed = true;
    if (g->failed) return true;
    make_offer(w, g);
    while (w->offer.count) {
        actor who;
        w->offer.insists = !w->offer.polls;
        who = w->choose(w->context, &w->offer);
        if (who == WALK_NOBODY) {
            w->gave_up = g->failed = true;
            return true;
        }
        if (step(w, g, who)) {
            each_warp(w, g, run_ahead);
            w->failed |= w->step.failed;
            w->took(w->context, who, &w->step);
            return true;
        }
        if (!demote(w, g, who)) {
            w->idle(w->context, who);
            withdraw(w, who);
        }
        if (g->failed) return true;
    }
    each_warp(w, g, look_for_unjudged);
    g->failed |= w->too_long;
    return g->failed;
}

void walk_attach(struct walk *w, struct launch *l)
{
    w->steerer.turn = turn;
    w->watcher = (struct watcher){.open = observer_of};
    w->op_count = w->warp_count = 0;
    w->failed = w->gave_up = w->bounded = w->too_long = w->found = false;
    l->steerer = &w->steerer;
    l->shown = 0;
    l->host_threads = 1;
    launch_watch(l, &w->watcher);
}

void walk_listen(struct walk *w, struct launch *l)
{
    w->sink = (struct finding_sink){.add = on_finding};
    l->sink = &w->sink;
}

int walk_run(struct walk *w, const struct launch *l)
{
    struct launch run = *l;
    run.watchers = NULL;
    walk_attach(w, &run);
    walk_listen(w, &run);
    launch_run(&run);
    free(run.printed);
    return run.result;
}

void walk_close(struct walk *w)
{
    for (uint32_t i = 0; i < w->op_capacity; i++) free(w->ops[i].touches.touch);
    free(w->ops);
    free(w->warps);
    free(w->offer.can);
    free(w->step.touch);
}
