/* Launches that wait for the host (running.h). */
#include "cuda/running.h"
#include "machine/mem.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum turn { TURN_LAUNCH, TURN_HOST, TURN_OVER };

struct running {
    struct CUctx_st *context;
    struct launch_request request; /* its parameters are the work's, which lives longer */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum turn turn;
    bool beside; /* it may run beside others that write what it polls */
    bool gives_up;
    int result;
};

/* ---- what a launch waits for ---- */

/* The loop in which the fragment sleeps has a strong load of memory that others can write. */
static bool polls(const struct launch *l, const struct warp *w, const struct frag *f,
                  bool (*others)(uint64_t))
{
    const struct kernel *k = l->kernel;

    if (f->wait.kind != WAIT_SPIN) return false;
    for (uint32_t pc = f->pc; pc <= f->watch_pc && pc < k->insn_count; pc++) {
        const struct insn *in = &k->insns[pc];
        if (!in->is.strong || in->is.class != INSN_LOAD) continue;
        if (in->space != SPACE_GLOBAL && in->space != SPACE_NONE) continue;
        if (others(arg_lane(w, in->arg[1], first_lane(f->mask)) + (uint64_t)in->imm[0]))
            return true;
    }
    return false;
}

static bool group_polls(const struct launch *l, const struct group *g, bool (*others)(uint64_t))
{
    for (uint32_t i = 0; i < g->resident_count; i++) {
        const struct cluster *c = g->resident[i];
        for (uint32_t r = 0; r < c->cta_count; r++) {
            for (uint32_t n = 0; n < c->ctas[r]->warp_count; n++) {
                const struct warp *w = &c->ctas[r]->warps[n];
                for (uint32_t j = 0; j < w->frag_count; j++)
                    if (polls(l, w, &w->frags[j], others)) return true;
            }
        }
    }
    return false;
}

static bool launch_polls(const struct launch *l, bool (*others)(uint64_t))
{
    for (uint32_t i = 0; i < l->group_count; i++)
        if (!l->groups[i].done && group_polls(l, &l->groups[i], others)) return true;
    return false;
}

/* ---- other processes ---- */

/* Where the launch stands: another number once warps have gone on to other waits, or CTAs ended. */
static uint64_t place_of(const struct launch *l)
{
    const uint64_t factor = 0x9E3779B97F4A7C15ULL;
    uint64_t place = driver.launches;

    for (uint32_t i = 0; i < l->group_count; i++) {
        const struct group *g = &l->groups[i];
        place = (place ^ g->ctas_done) * factor;
        for (uint32_t k = 0; !g->done && k < g->resident_count; k++) {
            const struct cluster *c = g->resident[k];
            for (uint32_t r = 0; r < c->cta_count; r++)
                for (uint32_t n = 0; n < c->ctas[r]->warp_count; n++)
                    for (uint32_t j = 0; j < c->ctas[r]->warps[n].frag_count; j++)
                        place = (place ^ c->ctas[r]->warps[n].frags[j].pc) * factor;
        }
    }
    return place;
}

bool running_waits_for_processes(const struct launch *l)
{
    const uint64_t second = 1000000000, most = 60 * second;
    static uint64_t place, last, waited; /* at one place, since the last look at it */
    const struct timespec nap = {.tv_nsec = 50000};
    struct timespec t;
    uint64_t now, gap;

    if (!ipc_shares() || !launch_polls(l, ipc_shared)) return false;
    clock_gettime(CLOCK_MONOTONIC, &t);
    now = (uint64_t)t.tv_sec * second + (uint64_t)t.tv_nsec;
    gap = now - last < second / 10 ? now - last : second / 10; /* more: it has computed meanwhile */
    waited = place == place_of(l) ? waited + gap : 0;
    place = place_of(l);
    last = now;
    if (waited > most) return false;
    nanosleep(&nap, NULL);
    return true;
}

/* ---- turns ---- */

static void give_turn(struct running *r, enum turn turn)
{
    pthread_mutex_lock(&r->lock);
    r->turn = turn;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void await_turn(struct running *r, bool launch)
{
    pthread_mutex_lock(&r->lock);
    while ((r->turn == TURN_LAUNCH) != launch) pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

static bool any_memory(uint64_t address)
{
    return mem_range(address, 1, NULL, NULL);
}

bool running_waits(struct running *r, const struct launch *l)
{
    if (!r || r->gives_up || !launch_polls(l, r->beside ? any_memory : memory_of_host))
        return false;
    give_turn(r, TURN_HOST);
    await_turn(r, true);
    return !r->gives_up;
}

bool running_ends(const struct running *r)
{
    return r && r->gives_up;
}

static void *run(void *argument)
{
    struct running *r = argument;

    await_turn(r, true);
    r->result = launch_execute(r->context, &r->request, r);
    give_turn(r, TURN_OVER);
    return NULL;
}

/* There is memory that the host can write. */
static bool host_has_memory(void)
{
    const struct memory *m;
    size_t at = 0;

    while ((m = handle_next(HANDLE_MEMORY, NULL, &at)))
        if (m->kind != MEMORY_DEVICE && m->kind != MEMORY_GRAPH) return true;
    return false;
}

/* Work of other streams or devices may run at the same time. A program that makes a stream is taken to make more. */
static bool others_beside(const struct CUctx_st *context, const struct launch_request *request)
{
    const struct CUstream_st *s;
    const struct CUctx_st *c;
    size_t at = 0;

    if (request->stream != &context->legacy_stream) return true;
    while ((s = handle_next(HANDLE_STREAM, context, &at)))
        if (s->flags & HEWN_CU_STREAM_NON_BLOCKING) return true;
    at = 0;
    while ((c = handle_next(HANDLE_CONTEXT, NULL, &at)))
        if (c != context) return true;
    return false;
}

static struct running *running_new(struct CUctx_st *context, const struct launch_request *request,
                                   bool beside)
{
    struct running *r = calloc(1, sizeof *r);

    if (!r) return NULL;
    r->context = context;
    r->beside = beside;
    r->request = *request;
    r->turn = TURN_HOST;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    if (!pthread_create(&r->thread, NULL, run, r)) return r;
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
    return NULL;
}

static void running_free(struct running *r)
{
    pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* ---- while the host works ---- */

enum { TICK_NANOSECONDS = 200000 };

/* Tries deferred work again while the host polls what a launch writes, and calls nobody. */
static struct {
    pthread_t thread;
    bool made, works; /* works: under the driver's lock */
    int stop;         /* __atomic */
} ticker;

static void *tick(void *unused)
{
    const struct timespec pause = {.tv_nsec = TICK_NANOSECONDS};
    bool works = true;

    while (works && !__atomic_load_n(&ticker.stop, __ATOMIC_RELAXED)) {
        nanosleep(&pause, NULL);
        driver_lock();
        deferred_progress();
        works = ticker.works = driver.deferred != NULL;
        driver_unlock();
    }
    return unused;
}

static void ticker_start(void)
{
    if (ticker.works) return;
    if (ticker.made) pthread_join(ticker.thread, NULL); /* it is about to end */
    ticker.works = ticker.made = !pthread_create(&ticker.thread, NULL, tick, NULL);
}

void running_stop(void)
{
    __atomic_store_n(&ticker.stop, 1, __ATOMIC_RELAXED);
    if (ticker.made) pthread_join(ticker.thread, NULL);
    ticker.made = ticker.works = false;
}

/* ---- for the driver ---- */

/* Gives the launch its turn. True when it is over. */
static bool go_on(struct running *r)
{
    give_turn(r, TURN_LAUNCH);
    await_turn(r, false);
    return r->turn == TURN_OVER;
}

int running_launch(struct CUctx_st *context, const struct launch_request *request,
                   struct running **running)
{
    int result;

    if (!*running && request->function->kernel->global_sync) {
        const bool beside = others_beside(context, request);
        if (beside || host_has_memory()) *running = running_new(context, request, beside);
    }
    if (!*running) return launch_execute(context, request, NULL);
    if (!go_on(*running)) {
        beside_tells(); /* it may have written what the host polls, and waits for the answer */
        ticker_start();
        return HEWN_CU_NOT_READY;
    }
    result = (*running)->result;
    running_free(*running);
    *running = NULL;
    return result;
}

void running_give_up(struct running *r)
{
    r->gives_up = true;
}

void running_end(struct running *r)
{
    if (!r) return;
    r->gives_up = true;
    if (r->turn != TURN_OVER) (void)go_on(r);
    running_free(r);
}
