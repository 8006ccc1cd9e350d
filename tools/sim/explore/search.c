/*
 * The search through the orders of a launch: dynamic partial-order reduction with source sets and sleep sets, after
 * Abdulla, Aronis, Jonsson and Sagonas, "Source sets: a foundation for optimal dynamic partial order reduction" (2017).
 *
 * A run is a row of steps. Two steps that race (footprint.h), with nothing between them that orders them, must
 * also be tried the other way round: at the place of the first one another actor is then to go first, one that leads
 * to the second step without the first. The run is repeated up to there, and goes on from there. An actor that was tried
 * at a place sleeps in what is tried there later, until a step touches what it would do.
 */
#include "explore/explore.h"
#include "explore/images.h"
#include "explore/replay.h"
#include "async/mbar.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CHOICES = 12 /* actors that may lead to a race's second step, as far as they are kept */ };

/* An actor and the step that it would take at a place. */
struct tried {
    actor who;
    struct footprint step;
};

/* Actors of which one is to be tried at a place. */
struct wanted {
    actor who[CHOICES];
    uint32_t count, next;
};

/* A step of the run, and the place before it. */
struct node {
    actor who;
    struct footprint step;
    struct tried *tried; /* whose runs from here are over */
    uint32_t tried_count, tried_capacity;
    const struct tried **asleep;
    uint32_t asleep_count, asleep_capacity;
    struct wanted *wanted;
    uint32_t wanted_count, wanted_capacity;
    actor *unable; /* could take no step here */
    uint32_t unable_count, unable_capacity;
    uint64_t *before; /* bit: a step that must come before it */
};

struct search {
    struct node *nodes; /* [most + 1] */
    uint32_t most, words;
    uint32_t depth;  /* steps of this run so far */
    uint32_t forced; /* of them, such as are repeated; the last is another than before */
    bool stale;      /* the actor that was to go first could not */
    bool too_long;
    bool failed;
};

/* The array with room for one more than `count`. It is the same array, without that room, when memory is exhausted. */
static void *grown(struct search *s, void *array, uint32_t count, uint32_t *capacity, size_t size)
{
    uint32_t wanted = *capacity ? 2 * *capacity : 4;
    char *more;
    if (count < *capacity) return array;
    more = realloc(array, wanted * size);
    if (!more) {
        s->failed = true;
        return array;
    }
    memset(more + *capacity * size, 0, (wanted - *capacity) * size);
    *capacity = wanted;
    return more;
}

static void copy_step(struct search *s, struct footprint *to, const struct footprint *from)
{
    to->count = 0;
    footprint_join(to, from);
    s->failed |= to->failed;
}

/* ---- sets ---- */

static bool sleeps(const struct node *n, actor who)
{
    for (uint32_t i = 0; i < n->asleep_count; i++)
        if (n->asleep[i]->who == who) return true;
    return false;
}

static bool was_tried(const struct node *n, actor who)
{
    for (uint32_t i = 0; i < n->tried_count; i++)
        if (n->tried[i].who == who) return true;
    return false;
}

static bool is_unable(const struct node *n, actor who)
{
    for (uint32_t i = 0; i < n->unable_count; i++)
        if (n->unable[i] == who) return true;
    return false;
}

static void put_to_sleep(struct search *s, struct node *n, const struct tried *t)
{
    if (sleeps(n, t->who)) return;
    n->asleep = grown(s, n->asleep, n->asleep_count, &n->asleep_capacity, sizeof *n->asleep);
    if (n->asleep_count < n->asleep_capacity) n->asleep[n->asleep_count++] = t;
}

/* Who sleeps at the place behind n's step: who slept there or was tried, and is not touched by the step. */
static void inherit_sleep(struct search *s, const struct node *n, struct node *next)
{
    next->asleep_count = 0;
    for (uint32_t i = 0; i < n->asleep_count; i++)
        if (n->asleep[i]->who != n->who && footprint_apart(&n->asleep[i]->step, &n->step))
            put_to_sleep(s, next, n->asleep[i]);
    for (uint32_t i = 0; i < n->tried_count; i++)
        if (n->tried[i].who != n->who && footprint_apart(&n->tried[i].step, &n->step))
            put_to_sleep(s, next, &n->tried[i]);
}

/* ---- races ---- */

static bool comes_before(const struct node *n, uint32_t i)
{
    return n->before[i / 64] >> (i % 64) & 1;
}

static void add_before(const struct search *s, struct node *n, uint32_t i)
{
    for (uint32_t w = 0; w < s->words; w++) n->before[w] |= s->nodes[i].before[w];
    n->before[i / 64] |= 1ULL << (i % 64);
}

/* Wants, at the place of step `first`, somebody to go first who leads to step `second` without it. */
static void want(struct search *s, uint32_t first, uint32_t second)
{
    struct node *at = &s->nodes[first];
    struct wanted w = {.count = 0};
    for (uint32_t i = first + 1; i <= second; i++) {
        bool begins = true;
        const actor who = s->nodes[i].who;
        if (i != second && comes_before(&s->nodes[i], first)) continue;
        for (uint32_t k = first + 1; k < i && begins; k++)
            begins = comes_before(&s->nodes[k], first) || !comes_before(&s->nodes[i], k);
        if (!begins) continue;
        if (is_unable(at, who)) continue;
        if (was_tried(at, who) || at->who == who || sleeps(at, who)) return;
        for (uint32_t k = 0; k < at->wanted_count; k++)
            if (at->wanted[k].who[at->wanted[k].next] == who) return;
        if (w.count < CHOICES) w.who[w.count++] = who;
    }
    if (!w.count) return;
    at->wanted = grown(s, at->wanted, at->wanted_count, &at->wanted_capacity, sizeof w);
    if (at->wanted_count == at->wanted_capacity) return;
    /* The second step's own actor first: if it cannot go, the others may still lead there. */
    for (uint32_t k = 0; k < w.count; k++) {
        if (w.who[k] != s->nodes[second].who) continue;
        w.who[k] = w.who[0];
        w.who[0] = s->nodes[second].who;
    }
    at->wanted[at->wanted_count++] = w;
}

/* Whether the actor of `later` exists because of step `first`. */
static bool issued(const struct node *first, actor later)
{
    for (uint32_t i = 0; i < first->step.count; i++) {
        const struct touch *t = &first->step.touch[i];
        if (t->space == TOUCH_OP && t->low <= later && later < t->high) return true;
    }
    return false;
}

/* Orders step `at` behind those before it, and wants the races that it ends turned round. */
static void judge(struct search *s, uint32_t at)
{
    struct node *n = &s->nodes[at];
    bool own = false;
    memset(n->before, 0, s->words * sizeof *n->before);
    for (uint32_t i = at; i-- > 0;) {
        const struct node *o = &s->nodes[i];
        enum relation r;
        if (comes_before(n, i)) continue;
        if (o->who == n->who && !own) {
            own = true;
            add_before(s, n, i);
            continue;
        }
        r = footprint_relation(&o->step, &n->step);
        if (r == RELATION_NONE) continue;
        if (r == RELATION_RACE && !issued(o, n->who)) want(s, i, at);
        add_before(s, n, i);
    }
}

/* ---- a run ---- */

static actor choose(void *context, struct walk_offer *offer)
{
    struct search *s = context;
    struct node *n = &s->nodes[s->depth];
    if (s->depth == s->most) {
        s->too_long = true;
        return WALK_NOBODY;
    }
    if (s->depth < s->forced) {
        offer->insists = true;
        for (uint32_t i = 0; i < offer->count; i++)
            if (offer->can[i] == n->who) return n->who;
        s->stale = true;
        return WALK_NOBODY;
    }
    if (offer->count) {
        const actor usual = walk_usual(offer, s->depth ? s->nodes[s->depth - 1].who : WALK_NOBODY);
        if (!sleeps(n, usual)) return usual;
    }
    for (uint32_t i = 0; i < offer->count; i++)
        if (!sleeps(n, offer->can[i])) return offer->can[i];
    return WALK_NOBODY;
}

static void idle(void *context, actor who)
{
    struct search *s = context;
    (void)who;
    if (s->depth < s->forced) s->stale = true;
}

static void took(void *context, actor who, const struct footprint *f)
{
    struct search *s = context;
    struct node *n = &s->nodes[s->depth];
    n->who = who;
    copy_step(s, &n->step, f);
    s->depth++;
    if (s->depth > s->forced || s->depth == s->forced) {
        struct node *next = &s->nodes[s->depth];
        inherit_sleep(s, n, next);
        next->tried_count = next->wanted_count = next->unable_count = 0;
    }
}

/* The deepest place where somebody is still to be tried; false: none. */
static bool next_run(struct search *s)
{
    while (s->depth > 0) {
        struct node *n = &s->nodes[s->depth - 1];
        if (!was_tried(n, n->who)) {
            n->tried = grown(s, n->tried, n->tried_count, &n->tried_capacity, sizeof *n->tried);
            if (n->tried_count < n->tried_capacity) {
                n->tried[n->tried_count].who = n->who;
                copy_step(s, &n->tried[n->tried_count++].step, &n->step);
            }
        }
        while (n->wanted_count) {
            struct wanted *w = &n->wanted[n->wanted_count - 1];
            const actor who = w->who[w->next];
            if (is_unable(n, who)) {
                if (++w->next == w->count) n->wanted_count--;
                continue;
            }
            if (was_tried(n, who) || sleeps(n, who)) {
                n->wanted_count--;
                continue;
            }
            n->who = who;
            s->forced = s->depth;
            return true;
        }
        s->depth--;
    }
    return false;
}

/* The actor that was to go first at the last forced place cannot. */
static void give_way(struct search *s)
{
    struct node *n = &s->nodes[s->forced - 1];
    s->depth = s->forced;
    n->unable = grown(s, n->unable, n->unable_count, &n->unable_capacity, sizeof *n->unable);
    if (n->unable_count < n->unable_capacity) n->unable[n->unable_count++] = n->who;
    n->who = n->tried[n->tried_count - 1].who;
}

static bool open_search(struct search *s, uint32_t most)
{
    memset(s, 0, sizeof *s);
    s->most = most;
    s->words = (most + 64) / 64;
    s->nodes = calloc(most + 1, sizeof *s->nodes);
    for (uint32_t i = 0; s->nodes && i <= most; i++) {
        s->nodes[i].before = calloc(s->words, sizeof(uint64_t));
        if (!s->nodes[i].before) return false;
    }
    return s->nodes != NULL;
}

static void close_search(struct search *s)
{
    for (uint32_t i = 0; s->nodes && i <= s->most; i++) {
        struct node *n = &s->nodes[i];
        for (uint32_t k = 0; k < n->tried_capacity; k++) free(n->tried[k].step.touch);
        free(n->tried);
        free(n->asleep);
        free(n->wanted);
        free(n->unable);
        free(n->before);
        free(n->step.touch);
    }
    free(s->nodes);
}

/* ---- all of them ---- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum { LAUNCH_TIMEOUT = 702 };

static enum explore_end end_of(const struct walk *w, int result, const struct images *m,
                               const struct explore_limits *limits, bool first)
{
    if (limits->fine && (!result || result == LAUNCH_TIMEOUT))
        return limits->fine(limits->context) ? EXPLORE_FINE : EXPLORE_DIFFERS;
    if (result == LAUNCH_TIMEOUT) return EXPLORE_HANG;
    if (result) return EXPLORE_FAULT;
    if (w->found) return EXPLORE_ERROR;
    if (first) images_keep(m);
    return images_same(m) ? EXPLORE_FINE : EXPLORE_DIFFERS;
}

/* One order. False: the search is over. */
static bool run_once(struct search *s, struct walk *w, const struct launch *l,
                     const struct images *m, const struct explore_limits *limits,
                     struct exploration *out)
{
    const uint32_t repeated = s->forced ? s->forced - 1 : 0;
    s->depth = 0;
    s->stale = false;
    images_restore(m);
    out->result = walk_run(w, l);
    if (w->failed || s->failed) {
        out->broken = true;
        return false;
    }
    if (s->stale) {
        if (s->depth + 1 != s->forced) {
            out->broken = true;
            return false;
        }
        give_way(s);
        out->cut++;
        return true;
    }
    for (uint32_t i = repeated; i < s->depth; i++) judge(s, i);
    if (s->too_long || w->too_long) return false;
    if (w->gave_up) {
        out->cut++;
        return true;
    }
    out->end = end_of(w, out->result, m, limits, out->orders == 0);
    out->orders++;
    if (out->end == EXPLORE_FINE) return true;
    out->finding = w->finding;
    if (out->end == EXPLORE_DIFFERS && !limits->fine)
        (void)images_differ(m, &out->differs_at, &out->first, &out->other);
    return false;
}

/* ---- the order in a word ---- */

/* Whether memory holds at the end what the exploration tells of the order. */
static bool leaves_same(const struct images *m, const struct exploration *x)
{
    uint64_t at;
    uint32_t first, other;
    if (x->end != EXPLORE_DIFFERS || !x->differs_at) return true;
    return images_differ(m, &at, &first, &other) && at == x->differs_at && other == x->other;
}

/* Whether the schedule's first steps, and the usual ones behind them, come to the same. */
static bool prefix_shows(const struct launch *l, const struct images *m,
                         const struct explore_limits *limits, const struct exploration *x,
                         const struct schedule *s, uint32_t steps)
{
    struct launch run = *l;
    struct replay r = {.told = NULL};
    enum explore_end end;
    images_restore(m);
    run.watchers = NULL;
    replay_attach(&r, &run, s, steps);
    walk_listen(&r.walk, &run);
    launch_run(&run);
    free(run.printed);
    end = end_of(&r.walk, run.result, m, limits, false);
    replay_end(&r);
    return !r.strayed && !r.endless && !r.walk.failed && !r.walk.too_long && end == x->end &&
           run.result == x->result && leaves_same(m, x);
}

/* The fewest steps of the run's that lead to its end. What is longer leads there too, as a rule; the whole run does. */
static void write_schedule(const struct search *s, const struct launch *l, const struct images *m,
                           const struct explore_limits *limits, struct exploration *out)
{
    struct schedule all = {NULL, 0, 0};
    uint32_t low = 0, high = s->depth;
    bool kept = true;
    for (uint32_t i = 0; i < s->depth && kept; i++) kept = schedule_add(&all, s->nodes[i].who);
    while (kept && low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (prefix_shows(l, m, limits, out, &all, middle))
            high = middle;
        else
            low = middle + 1;
    }
    if (!kept || !schedule_write(&all, high, out->schedule, sizeof out->schedule))
        out->schedule[0] = '\0';
    schedule_free(&all);
}

/* ---- the same by a seed ---- */

struct seed_run {
    struct finding_sink sink;
    bool found; /* an error */
};

static void on_finding(struct finding_sink *sink, const struct finding *f)
{
    struct seed_run *r = (struct seed_run *)sink;
    r->found |= f->severity == SEV_ERROR;
}

/* Whether a usual run with that seed ends as the order did. */
static bool seed_shows(const struct launch *l, const struct images *m, const struct exploration *x,
                       uint64_t seed)
{
    struct launch run = *l;
    struct seed_run r = {.sink = {.add = on_finding}};
    images_restore(m);
    run.seed = seed;
    run.sink = &r.sink;
    run.watchers = NULL;
    run.shown = 0;
    run.host_threads = 1;
    launch_run(&run);
    free(run.printed);
    if (x->end == EXPLORE_DIFFERS) return !run.result && !images_same(m);
    if (x->end == EXPLORE_ERROR) return r.found;
    return run.result == x->result;
}

static void find_seed(const struct launch *l, const struct images *m, struct exploration *x)
{
    for (uint64_t seed = 1; seed <= EXPLORE_SEEDS && !x->seed; seed++)
        if (seed_shows(l, m, x, seed)) x->seed = seed;
}

static uint64_t left(const struct search *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->depth; i++) n += s->nodes[i].wanted_count;
    return n;
}

void explore_launch(const struct launch *l, const struct mem_piece *memory, size_t count,
                    const struct explore_limits *limits, struct exploration *out)
{
    struct images m = {.memory = NULL};
    struct search s;
    const double began = seconds();
    struct walk w = {.choose = choose, .idle = idle, .took = took, .context = &s};
    bool bounded = false, more = true;
    memset(out, 0, sizeof *out);
    if (!open_search(&s, limits->steps ? limits->steps : EXPLORE_STEPS) ||
        !images_take(&m, memory, count)) {
        out->broken = true;
        more = false;
    }
    while (more) {
        more = run_once(&s, &w, l, &m, limits, out);
        bounded |= w.bounded;
        if (!more) break;
        if (!next_run(&s)) {
            out->all = !bounded;
            break;
        }
        if (limits->orders && out->orders + out->cut >= limits->orders) break;
        if (limits->seconds > 0 && seconds() - began > limits->seconds) break;
    }
    if (!out->all) out->least = left(&s);
    if (out->end != EXPLORE_FINE && !out->broken) {
        write_schedule(&s, l, &m, limits, out);
        if (!limits->fine) find_seed(l, &m, out);
    }
    images_free(&m);
    walk_close(&w);
    close_search(&s);
}
