/*
 * The scheduler: deals clusters to groups, lets a group's warps run in turns that its seed decides,
 * keeps its clock, and finds out when nothing can run any more.
 *
 * The progress rule. When no warp can run, the clock jumps to the next asynchronous operation or to
 * the end of the next nanosleep. When there is neither, waits that a program polls (mbarriers) are answered
 * False, so that bounded retries reach their bound. A poll that comes round with the same registers while
 * nothing else has happened is stuck; when all that sleep are stuck, or wait for what cannot be polled,
 * it is a deadlock.
 *
 * A loop that reads a clock between its polls would never come round. So the program's clocks stand still
 * while only polls are left, and for a loop that is watched (exec.c). When all polls are stuck and a clock
 * was read, time may still end the wait: the clock leaps, each time twice as far, and the polls are tried
 * again. It is a deadlock when the clock has passed every bound that a program can mean (TIME_STEP_LAST).
 */
#include "machine/exec.h"
#include "machine/hooks.h"
#include "machine/steer.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
    QUANTUM = 64,             /* instructions a warp runs at most before another is chosen */
    TURN_QUANTA = 32,         /* quanta of a group before the next group's turn, where they talk */
    RANK_TURNS = 256,         /* turns for which ranks hold, on average */
    POLL_STEP_FIRST = 256,    /* cycles */
    POLL_STEP_LAST = 1 << 21, /* about a millisecond */
    HUNG_NANOSECONDS = 1000000
};
#define TIME_STEP_FIRST (1ULL << 14)
#define TIME_STEP_LAST  (1ULL << 52) /* about a month */

/* ---- random ---- */

/* splitmix64 */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15ULL;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
    return z ^ z >> 31;
}

/* Where nobody draws, the same each time, and no chance event that is one of several. */
uint32_t sim_random(struct group *g, uint32_t bound)
{
    if (g->launch->steerer) return bound - 1;
    return (uint32_t)((random_next(&g->rng) >> 32) * bound >> 32);
}

/* ---- sleeping and waking ---- */

void warp_ready(struct warp *w)
{
    struct group *g = w->cta->group;
    if (w->run_slot != NO_SLOT) return;
    w->run_slot = g->runnable_count;
    g->runnable[g->runnable_count++] = w;
}

static void warp_unready(struct group *g, struct warp *w)
{
    struct warp *last = g->runnable[--g->runnable_count];
    g->runnable[w->run_slot] = last;
    last->run_slot = w->run_slot;
    w->run_slot = NO_SLOT;
}

enum step sim_block(struct warp *w, enum wait_kind kind, struct cta *cta, uint32_t key,
                    uint64_t value)
{
    struct group *g = w->cta->group;
    struct frag *f = warp_frag(w);
    if (!wait_is_pause(kind)) frag_unwatch(w, f);
    if (f->wait.kind == WAIT_NONE) f->wait.since = g->now;
    f->wait.kind = (uint8_t)kind;
    f->wait.ready = f->wait.expired = false;
    f->wait.need = 0;
    f->wait.key = key;
    f->wait.cta = cta;
    f->wait.value = value;
    if (kind == WAIT_SLEEP && value < g->next_sleep) g->next_sleep = value;
    return STEP_BLOCK;
}

static void wake_cta(struct cta *c, enum wait_kind kind, const struct cta *whose, uint32_t key)
{
    for (uint32_t i = 0; i < c->warp_count; i++) {
        struct warp *w = &c->warps[i];
        for (uint32_t j = 0; j < w->frag_count; j++) {
            struct frag *f = &w->frags[j];
            if (f->wait.kind != kind || f->wait.ready) continue;
            if (whose && f->wait.cta != whose) continue;
            if (key == WAKE_ANY || f->wait.key == key) frag_wake(w, f);
        }
    }
}

void sim_wake(struct cta *cta, enum wait_kind kind, uint32_t key)
{
    const struct cluster *cluster = cta->cluster;
    cta->group->progress++;
    for (uint32_t r = 0; r < cluster->cta_count; r++) wake_cta(cluster->ctas[r], kind, cta, key);
}

static void wake_group(struct group *g, enum wait_kind kind)
{
    for (uint32_t i = 0; i < g->resident_count; i++) {
        const struct cluster *c = g->resident[i];
        for (uint32_t r = 0; r < c->cta_count; r++) wake_cta(c->ctas[r], kind, NULL, WAKE_ANY);
    }
}

void sim_wake_all(struct group *g, enum wait_kind kind)
{
    struct launch *l = g->launch;
    g->progress++;
    if (kind == WAIT_SPIN) g->changes++;
    if (kind != WAIT_SPIN || !l->kernel->global_sync) {
        wake_group(g, kind);
        return;
    }
    for (uint32_t i = 0; i < l->group_count; i++) wake_group(&l->groups[i], kind);
}

uint64_t changes_seen(const struct group *g)
{
    const struct launch *l = g->launch;
    uint64_t sum = 0;
    if (!l->kernel->global_sync) return g->changes;
    for (uint32_t i = 0; i < l->group_count; i++) sum += l->groups[i].changes;
    return sum;
}

void spin_count(struct group *g, int delta)
{
    struct launch *l = g->launch;
    if (!l->kernel->global_sync) {
        g->spinning += (uint32_t)delta;
        return;
    }
    for (uint32_t i = 0; i < l->group_count; i++) l->groups[i].spinning += (uint32_t)delta;
}

/* Does `act` to every fragment that sleeps for that reason; true when any of them said so. */
static bool for_each_wait(struct group *g, enum wait_kind kind,
                          bool (*act)(struct group *g, struct warp *w, struct frag *f))
{
    bool any = false;
    for (uint32_t i = 0; i < g->resident_count; i++) {
        const struct cluster *c = g->resident[i];
        for (uint32_t r = 0; r < c->cta_count; r++) {
            for (uint32_t n = 0; n < c->ctas[r]->warp_count; n++) {
                struct warp *w = &c->ctas[r]->warps[n];
                for (uint32_t j = 0; j < w->frag_count; j++)
                    if (w->frags[j].wait.kind == kind) any |= act(g, w, &w->frags[j]);
            }
        }
    }
    return any;
}

/* Wakes it if its time has come; *next: the first time that has not. */
static bool wake_due(const struct group *g, struct warp *w, struct frag *f, uint64_t *next)
{
    if (f->wait.ready) return false;
    if (f->wait.value <= g->now) {
        frag_wake(w, f);
        return true;
    }
    if (f->wait.value < *next) *next = f->wait.value;
    return false;
}

static bool end_sleep(struct group *g, struct warp *w, struct frag *f)
{
    return wake_due(g, w, f, &g->next_sleep);
}

static bool look_again(struct group *g, struct warp *w, struct frag *f)
{
    return f->wait.timed && wake_due(g, w, f, &g->next_look);
}

/* Ends the nanosleeps that are due and finds the next; likewise loops that look at the time. */
static void wake_sleepers(struct group *g)
{
    if (g->next_sleep <= g->now) {
        g->next_sleep = UINT64_MAX;
        for_each_wait(g, WAIT_SLEEP, end_sleep);
    }
    if (g->next_look <= g->now) {
        g->next_look = UINT64_MAX;
        for_each_wait(g, WAIT_SPIN, look_again);
    }
}

/* ---- polls when nothing else happens ---- */

/*
 * Whether a sleeping poll should be answered False. Not when an earlier answer, with the warp in the
 * same state and no progress since, led back here. The state to compare with is renewed after 1, 2,
 * 4, … answers (Brent's cycle search), so that loops over several barriers are seen through as well.
 */
static bool poll_expires(const struct group *g, const struct warp *w, struct frag *f)
{
    struct wait *t = &f->wait;
    uint64_t state;
    if (t->poll_progress != g->progress) t->last_poll = 0;
    if (t->last_poll && t->stuck) return false;
    state = frag_state(w, f);
    if (!t->last_poll) {
        t->poll_progress = g->progress;
        t->last_poll = state;
        t->polls = 0;
        t->poll_window = 1;
    } else if (t->last_poll == state) {
        t->stuck = true;
        return false;
    } else if (++t->polls >= t->poll_window) {
        t->last_poll = state;
        t->polls = 0;
        if (t->poll_window <= UINT32_MAX / 2) t->poll_window *= 2;
    }
    return true;
}

static bool expire_poll(struct group *g, struct warp *w, struct frag *f)
{
    if (!poll_expires(g, w, f)) return false;
    frag_wake(w, f);
    f->wait.expired = true;
    return true;
}

static bool try_again(struct group *g, struct warp *w, struct frag *f)
{
    (void)g;
    (void)w;
    f->wait.last_poll = 0;
    f->wait.stuck = false;
    return true;
}

static void hold_clock(struct group *g)
{
    g->clock_held = g->now;
    g->clock_reads = 0;
}

/* Everything is stuck. Whether time can still end a wait: then its polls are answered again, later. */
static bool let_time_pass(struct group *g)
{
    bool polls;
    if (g->time_step > TIME_STEP_LAST) return false;
    polls = g->clock_reads && for_each_wait(g, WAIT_MBAR, try_again);
    if (!polls && g->next_look == UINT64_MAX) return false;
    g->now += g->time_step;
    g->time_step *= 2;
    hold_clock(g);
    if (polls) polls = for_each_wait(g, WAIT_MBAR, expire_poll);
    wake_sleepers(g);
    return polls || g->runnable_count;
}

/* As on hardware: a launch that can never end goes on polling, and the host goes on beside it. */
static bool stay_hung(struct group *g)
{
    const struct timespec pause = {.tv_nsec = HUNG_NANOSECONDS};
    if (!g->launch->stays_hung) return false;
    nanosleep(&pause, NULL);
    g->now += POLL_STEP_LAST;
    for_each_wait(g, WAIT_MBAR, try_again);
    for_each_wait(g, WAIT_MBAR, expire_poll);
    sim_wake_all(g, WAIT_SPIN);
    return true;
}

/* ---- a group's turn ---- */

enum turn { TURN_RAN, TURN_STUCK, TURN_OVER };

/* Retires finished clusters; `force` those too whose operations will never run. */
static void retire_clusters(struct group *g, bool force)
{
    for (uint32_t i = 0; i < g->resident_count;) {
        struct cluster *c = g->resident[i];
        if (c->ctas_live == 0 && (force || cluster_drained(c))) {
            g->draining--;
            cluster_retire(g, i);
        } else {
            i++;
        }
    }
}

/* What ended with the last live lane of a warp. */
static void warp_finished(struct group *g, struct warp *w)
{
    struct cta *c = w->cta;
    g->lane_steps += w->lane_steps;
    if (c->warps_live) return;
    g->ctas_done++;
    progress_cta(g->launch);
    if (--c->cluster->ctas_live == 0) g->draining++;
}

static void run_async(struct group *g)
{
    const struct machine_hooks *hooks = g->launch->hooks;
    if (hooks->next(g) <= g->now && hooks->advance(g) && g->spinning) sim_wake_all(g, WAIT_SPIN);
}

/* No warp can run: moves the clock to where one can. */
static enum turn group_idle(struct group *g)
{
    uint64_t next = g->launch->hooks->next(g);
    if (g->next_sleep < next) next = g->next_sleep;
    if (next != UINT64_MAX) {
        if (next > g->now) g->now = next;
        run_async(g);
        wake_sleepers(g);
        return TURN_RAN;
    }
    if (g->draining) {
        retire_clusters(g, true);
        return TURN_RAN;
    }
    if (g->poll_progress != g->progress) {
        g->poll_step = POLL_STEP_FIRST;
        g->time_step = TIME_STEP_FIRST;
        hold_clock(g);
    }
    g->poll_progress = g->progress;
    if (!for_each_wait(g, WAIT_MBAR, expire_poll)) return TURN_STUCK;
    if (g->clock_reads) g->clock_reads = 1;
    g->now += g->poll_step;
    if (g->poll_step < POLL_STEP_LAST) g->poll_step *= 2;
    return TURN_RAN;
}

static uint64_t rank_of(const struct group *g, const struct warp *w)
{
    uint64_t place = g->rank_salt ^ ((uint64_t)w->cta->linear << 8 | w->id);
    return random_next(&place);
}

/* The warp whose turn it is. */
static struct warp *choose_warp(struct group *g)
{
    struct warp *first = g->runnable[0];
    if (!g->ranked) return g->runnable[sim_random(g, g->runnable_count)];
    /* Ranks change, so that a warp that polls cannot keep from running whom it waits for. */
    if (sim_random(g, RANK_TURNS) == 0) g->rank_salt = random_next(&g->rng);
    for (uint32_t i = 1; i < g->runnable_count; i++)
        if (rank_of(g, g->runnable[i]) > rank_of(g, first)) first = g->runnable[i];
    return first;
}

/* Often a single instruction, often a long run: orders that a uniform choice would hardly meet. */
static uint32_t choose_quantum(struct group *g)
{
    uint32_t r = sim_random(g, 8 * QUANTUM);
    if (r < QUANTUM) return 1;
    if (r < 4 * QUANTUM) return QUANTUM;
    return 1 + r % QUANTUM;
}

static bool warp_asleep(const struct warp *w)
{
    for (uint32_t i = 0; i < w->frag_count; i++) {
        if (frag_runnable(&w->frags[i])) return false;
    }
    return true;
}

/* What follows from instructions that a warp has executed. */
static void warp_ran(struct group *g, struct warp *w)
{
    if (g->failed) return;
    if (warp_asleep(w)) warp_unready(g, w);
    if (!w->live) warp_finished(g, w);
}

/* ---- launches that are steered (steer.h) ---- */

void steer_step(struct warp *w)
{
    warp_run(w, 1);
    w->cta->group->now++;
    warp_ran(w->cta->group, w);
}

const struct frag *steer_refuse(struct warp *w, uint32_t but)
{
    for (uint32_t i = 0; i < w->frag_count; i++) {
        struct frag *f = &w->frags[i];
        if (f->wait.kind != WAIT_MBAR || f->wait.ready || f->mask & but) continue;
        frag_wake(w, f);
        f->wait.expired = true;
        return f;
    }
    return NULL;
}

void steer_rouse(struct warp *w)
{
    for (uint32_t i = 0; i < w->frag_count; i++) {
        struct frag *f = &w->frags[i];
        if (f->wait.kind == WAIT_SLEEP && !f->wait.ready) frag_wake(w, f);
    }
}

static enum turn steered_turn(struct group *g)
{
    struct steerer *s = g->launch->steerer;
    if (s->turn(s, g)) return TURN_RAN;
    if (!g->draining) return TURN_STUCK;
    retire_clusters(g, true);
    return TURN_RAN;
}

static enum turn group_turn(struct group *g)
{
    struct warp *w;
    uint64_t before;
    if (g->draining) retire_clusters(g, false);
    if (g->resident_count < g->resident_limit && group_fill(g) < 0) {
        g->result = 2;
        g->failed = true;
    }
    if (g->failed || !g->resident_count) return TURN_OVER;
    if (g->launch->steerer) return steered_turn(g);
    if (!g->runnable_count) return group_idle(g);

    w = choose_warp(g);
    before = w->steps;
    warp_run(w, choose_quantum(g));
    g->now += w->steps - before;
    warp_ran(g, w);
    run_async(g);
    wake_sleepers(g);
    return TURN_RAN;
}

static void group_finish(struct group *g)
{
    if (g->done) return;
    g->done = true;
    for (struct observer *o = g->observer; o; o = o->next) o->on_end(o, !g->failed);
}

static void deadlocked(struct group *g)
{
    bool told = false;
    for (struct watcher *w = g->launch->watchers; w; w = w->next) {
        if (!w->on_deadlock) continue;
        w->on_deadlock(w, g);
        told = true;
    }
    if (!told)
        sim_find(g, NULL, NULL, NO_LANE, SEV_ERROR, FIND_DEADLOCK, CAUSE_NONE, "",
                 "no warp can run any more");
    g->result = 702;
    g->failed = true;
    group_finish(g);
}

/* ---- launch ---- */

static void group_run(struct group *g)
{
    enum turn t;
    do t = group_turn(g);
    while (t == TURN_RAN ||
           (t == TURN_STUCK && !g->launch->steerer && (let_time_pass(g) || stay_hung(g))));
    if (t == TURN_STUCK)
        deadlocked(g);
    else
        group_finish(g);
}

/* How many quanta a group has before the next one's turn: often a whole turn, now and then hardly any, so that another
 * group comes between two instructions of a short kernel. */
static uint32_t choose_turn(struct group *g)
{
    return sim_random(g, 4) ? TURN_QUANTA : 1 + sim_random(g, 4);
}

/* Others than the launch may write to memory that it polls. */
static bool look_outside(struct launch *l)
{
    uint32_t live = 0;
    while (live < l->group_count && l->groups[live].done) live++;
    if (live == l->group_count || !l->outside || !l->outside(l)) return false;
    sim_wake_all(&l->groups[live], WAIT_SPIN);
    return true;
}

/* Groups whose clusters may talk take turns, each round from another one on; a fault in one ends them all. */
static void run_together(struct launch *l)
{
    for (uint32_t i = 0; i < l->group_count; i++) l->groups[i].together = l->group_count > 1;
    for (;;) {
        const uint32_t first = sim_random(&l->groups[0], l->group_count);
        bool ran = false, aside = false;
        for (uint32_t i = 0; i < l->group_count; i++) {
            struct group *g = &l->groups[(first + i) % l->group_count];
            const uint32_t quanta = choose_turn(g);
            enum turn t = g->done ? TURN_OVER : TURN_RAN;
            if (g->aside && !g->done) {
                g->aside--;
                aside = true;
                continue;
            }
            for (uint32_t n = 0; n < quanta && t == TURN_RAN && !g->aside; n++) {
                t = group_turn(g);
                ran |= t == TURN_RAN;
            }
            if (t == TURN_OVER) group_finish(g);
            if (g->failed) return;
        }
        if (!ran && aside) {
            for (uint32_t i = 0; i < l->group_count; i++) l->groups[i].aside = 0;
            continue;
        }
        if (!ran && look_outside(l)) continue;
        for (uint32_t i = 0; !ran && i < l->group_count; i++)
            if (!l->groups[i].done && let_time_pass(&l->groups[i])) ran = true;
        for (uint32_t i = 0; !ran && i < l->group_count; i++)
            if (!l->groups[i].done && stay_hung(&l->groups[i])) ran = true;
        if (!ran) break;
    }
    for (uint32_t i = 0; i < l->group_count; i++) {
        if (!l->groups[i].done) deadlocked(&l->groups[i]);
    }
}

struct work {
    struct launch *launch;
    uint32_t next; /* group to take, __atomic */
};

static void *worker(void *argument)
{
    struct work *work = argument;
    for (;;) {
        uint32_t i = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED);
        if (i >= work->launch->group_count) return NULL;
        group_run(&work->launch->groups[i]);
    }
}

/* Groups that cannot talk run to their end, each on the thread that takes it. Where a thread cannot
 * be had the others do its share. */
static void run_apart(struct launch *l)
{
    enum { THREADS = 64 };
    struct work work = {.launch = l};
    pthread_t threads[THREADS];
    uint32_t wanted = l->host_threads < l->group_count ? l->host_threads : l->group_count;
    uint32_t started = 0;
    if (wanted > THREADS) wanted = THREADS;
    while (started + 1 < wanted && !pthread_create(&threads[started], NULL, worker, &work)) {
        started++;
    }
    worker(&work);
    while (started) pthread_join(threads[--started], NULL);
}

static int groups_open(struct launch *l)
{
    uint32_t size = launch_cluster_size(l), clusters = launch_cluster_count(l);
    uint32_t count = l->sm_count / size;
    if (count == 0) count = 1;
    if (count > clusters) count = clusters;
    if (l->steerer) count = 1;
    l->groups = aligned_alloc(GROUP_ALIGN, count * sizeof *l->groups);
    if (!l->groups) return -1;
    memset(l->groups, 0, count * sizeof *l->groups);
    l->group_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct group *g = &l->groups[i];
        uint64_t mixed = l->seed + i;
        g->launch = l;
        g->index = i;
        g->rng = random_next(&mixed);
        g->temper = (enum temper)(l->seed % TEMPER_COUNT);
        if (g->temper != TEMPER_MIXED) {
            g->ranked = sim_random(g, 2);
            g->rank_salt = random_next(&g->rng);
        }
        g->next_sleep = g->next_look = UINT64_MAX;
        g->poll_progress = UINT64_MAX; /* no poll was answered yet */
        g->next_cluster = i;
        if (group_open(g)) return -1;
    }
    return 0;
}

/* What the groups printed, one after the other: an order that host threads do not decide. */
static void gather_printed(struct launch *l)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < l->group_count; i++) bytes += l->groups[i].printed_bytes;
    l->printed_bytes = 0;
    l->printed = bytes ? malloc(bytes) : NULL;
    for (uint32_t i = 0; l->printed && i < l->group_count; i++) {
        const struct group *g = &l->groups[i];
        if (g->printed_bytes) memcpy(l->printed + l->printed_bytes, g->printed, g->printed_bytes);
        l->printed_bytes += g->printed_bytes;
    }
}

int launch_run(struct launch *l)
{
    l->result = 0;
    forms_note(l->kernel);
    executed_begin(l);
    progress_begin(l);
    if (groups_open(l))
        l->result = 2;
    else if (l->kernel->global_sync && !l->steerer)
        run_together(l);
    else
        run_apart(l);
    progress_end(l);
    executed_end(l);
    gather_printed(l);
    for (uint32_t i = 0; i < l->group_count; i++) {
        /* The first in order, not in time: results do not depend on host threads. */
        if (!l->result) l->result = l->groups[i].result;
        group_close(&l->groups[i]);
    }
    for (struct watcher *w = l->watchers; w; w = w->next) {
        if (w->on_end) w->on_end(w, l);
    }
    free(l->groups);
    l->groups = NULL;
    l->group_count = 0;
    return l->result;
}
