/*
 * bench_engine --ranks N: one GPU alone, then the links between N, then decode with weights split and a
 * prompt with tokens split, each beside its bound. The bound of decode: the step alone, times the share of
 * the bytes that a rank reads, and the step's all-reduces by NCCL timed by themselves; the same where sums go
 * through the GPUs' memory (engine_exchange), whose time with the norm in it, and that of the norm alone, stand
 * beside. That of the prompt: the time alone over N, and the gathers of K and V timed by themselves.
 */
#include "bench_engine.h"

#include "engine/ranks_shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum part { ALONE, LINKS, BY_TENSOR, DIRECT, BY_CONTEXT };
enum { REPEATS = 5 };

static const int64_t rows_of_steps[] = {1, 8, 64};
enum { STEPS_OF = sizeof rows_of_steps / sizeof rows_of_steps[0] };

struct times { /* shared by the processes */
    double decode[STEPS_OF], prefill;
    double sums[STEPS_OF], gathers;              /* all of a step; all of the prompt */
    double exchanges[STEPS_OF], norms[STEPS_OF]; /* with its norm; a norm without */
};

struct work {
    const struct bench_ranks *bench;
    enum part part;
    struct times *times;
};

/* ---- links ---- */

enum kind { SUM, GATHER, EXCHANGE, NORM };

struct link { /* what is timed, `count` of it in a graph */
    struct ranks *r;
    struct gpu *g;
    const struct engine_kernels *k;
    hewn_deviceptr at; /* three blocks of `most` numbers */
    int64_t most, hidden;
    int count;
};

static int enqueue(const struct link *l, enum kind kind, int64_t numbers, int i, struct problem *p)
{
    const struct exchange *x = &l->r->exchange;
    const hewn_deviceptr part = l->at + 2 * (uint64_t)l->most, out = part + 2 * (uint64_t)l->most;
    const int64_t rows = numbers / l->hidden;
    const struct engine_norm norm = {.x = l->at,
                                     .y = part,
                                     .h = l->at,
                                     .w = part,
                                     .out = out,
                                     .rows = rows,
                                     .x_rows = rows,
                                     .hidden = l->hidden};
    const struct engine_exchange exchange = {.x = l->at,
                                             .part = part,
                                             .inbox = exchange_inbox(x, l->r, i % 2),
                                             .peers = x->peers,
                                             .h = l->at,
                                             .w = part,
                                             .out = out,
                                             .rank = l->r->rank,
                                             .ranks = l->r->count,
                                             .rows = rows,
                                             .hidden = l->hidden,
                                             .inbox_rank = x->inbox_rank,
                                             .ctas = x->ctas};
    hewn_error err = {0};
    int status = 0;
    if (kind == SUM) return collectives_sum(&l->r->nccl, l->at, numbers, l->g->stream, p);
    if (kind == GATHER) return collectives_gather(&l->r->nccl, l->at, numbers, l->g->stream, p);
    if (kind == EXCHANGE) status = engine_exchange(l->k, &exchange, l->g->stream, &err);
    if (kind == NORM) status = engine_norm(l->k, &norm, l->g->stream, &err);
    return status ? problem(p, "%s", err.message) : 0;
}

/* The least seconds of a graph of them. */
static int time_graph(const struct link *l, enum kind kind, int64_t numbers, double *out,
                      struct problem *p)
{
    const struct gpu *g = l->g;
    gpu_graph graph = NULL;
    gpu_graph_exec exec = NULL;
    int failed = enqueue(l, kind, numbers, 0, p) || enqueue(l, kind, numbers, 1, p);
    *out = 1e9;
    if (failed || gpu_check(g, g->stream_wait(g->stream), "a collective", p) ||
        gpu_check(g, g->capture_begin(g->stream, 1), "a capture", p))
        return -1;
    for (int i = 0; !failed && i < l->count; i++) failed = enqueue(l, kind, numbers, i, p);
    if (gpu_check(g, g->capture_end(g->stream, &graph), "a capture", p) ||
        gpu_check(g, g->graph_make(&exec, graph, 0), "a graph", p))
        return -1;
    for (int i = 0; !failed && i < REPEATS; i++) {
        const double start = seconds();
        failed = gpu_check(g, g->graph_launch(exec, g->stream), "collectives", p) ||
                 gpu_check(g, g->stream_wait(g->stream), "collectives", p);
        if (seconds() - start < *out) *out = seconds() - start;
    }
    g->graph_exec_destroy(exec);
    g->graph_destroy(graph);
    return failed ? -1 : 0;
}

/* Sums of some rows, on both ways. */
static int time_sums(const struct link *l, int i, struct times *t, struct problem *p)
{
    const int64_t numbers = rows_of_steps[i] * l->hidden;
    const double each = 1e6 / l->count;
    if (time_graph(l, SUM, numbers, &t->sums[i], p) ||
        time_graph(l, NORM, numbers, &t->norms[i], p) ||
        (l->r->exchange.inbox && time_graph(l, EXCHANGE, numbers, &t->exchanges[i], p)))
        return -1;
    if (l->r->rank) return 0;
    printf("link    sum of %6.1f KiB: all-reduce %.1f us, norm %.1f us, ",
           2.0 * (double)numbers / 1024, each * t->sums[i], each * t->norms[i]);
    if (l->r->exchange.inbox)
        printf("exchange with norm %.1f us\n", each * t->exchanges[i]);
    else
        printf("no exchange here\n");
    return 0;
}

static int time_links(struct ranks *r, const struct work *w, struct gpu *g, struct problem *p)
{
    const struct bench_ranks *b = w->bench;
    const struct config *c = &b->config;
    const int64_t kv = 2 * c->kv_heads * c->head_dim, rows = (b->chunk + r->count - 1) / r->count;
    const int64_t chunks = (b->prompt + b->chunk - 1) / b->chunk;
    const int64_t all = rows * r->count * kv, step = 64 * c->hidden, most = all > step ? all : step;
    struct engine_kernels kernels;
    hewn_error err = {0};
    struct link l = {.r = r,
                     .g = g,
                     .k = &kernels,
                     .at = gpu_memory(g, 6 * (size_t)most, "what the ranks exchange", p),
                     .most = most,
                     .hidden = c->hidden,
                     .count = (int)(2 * c->layers)};
    double took;
    if (!l.at || exchange_open(r, g, 64, c->hidden, p)) return -1;
    if (engine_kernels_open(&kernels, g->context, &err)) return problem(p, "%s", err.message);
    for (int i = 0; i < STEPS_OF; i++)
        if (time_sums(&l, i, w->times, p)) return -1;
    l.count = (int)c->layers;
    if (time_graph(&l, GATHER, rows * kv, &took, p)) return -1;
    w->times->gathers = took * (double)chunks;
    if (r->rank == 0)
        printf("link    all-gather of %6.1f KiB a rank: %7.1f us, %.0f GB/s into a GPU\n",
               2.0 * (double)(rows * kv) / 1024, 1e6 * took / (double)c->layers,
               2e-9 * (double)(rows * kv * (r->count - 1)) * (double)c->layers / took);
    return 0;
}

/* ---- steps ---- */

static void tell_bound(const struct work *w, const struct config *part, int i, double took)
{
    const struct bench_ranks *b = w->bench;
    const struct times *t = w->times;
    const double share =
        (weight_bytes(part) + cache_bytes(part, rows_of_steps[i], b->keys)) /
        (weight_bytes(&b->config) + cache_bytes(&b->config, rows_of_steps[i], b->keys));
    const double half = t->decode[i] * share, bound = half + t->sums[i];
    printf("        bound %.3f ms: %.3f of the step alone (%.3f ms), all-reduces %.3f ms; %.3f of "
           "it\n",
           1e3 * bound, share, 1e3 * t->decode[i], 1e3 * t->sums[i], bound / took);
    if (w->part == DIRECT)
        printf(
            "        with what exchanges take more than norms, %.3f ms, in their place: %.3f ms; "
            "%.3f of it\n",
            1e3 * (t->exchanges[i] - t->norms[i]), 1e3 * (half + t->exchanges[i] - t->norms[i]),
            (half + t->exchanges[i] - t->norms[i]) / took);
}

static int lead(const struct work *w, struct model *m, struct problem *p)
{
    const struct bench_ranks *b = w->bench;
    double took = 0;
    for (int i = 0; i < STEPS_OF && w->part != BY_CONTEXT; i++) {
        if (rows_of_steps[i] > b->slots) continue;
        if (time_decode(m, rows_of_steps[i], b->keys, b->steps, &took, p)) return -1;
        if (w->part == ALONE)
            w->times->decode[i] = took;
        else
            tell_bound(w, &m->config, i, took);
    }
    if (w->part == BY_TENSOR || w->part == DIRECT) return 0;
    if (time_prefill(m, b->prompt, &took, p)) return -1;
    if (w->part == BY_CONTEXT) {
        const double bound = w->times->prefill / b->ranks + w->times->gathers;
        printf("        bound %.2f ms: alone %.2f over %d, gathers %.2f; %.3f of it\n", 1e3 * bound,
               1e3 * w->times->prefill, b->ranks, 1e3 * w->times->gathers, bound / took);
    }
    w->times->prefill = took;
    return 0;
}

static int with_model(struct ranks *r, const struct work *w, struct gpu *g, struct problem *p)
{
    const struct bench_ranks *b = w->bench;
    const int64_t beside = b->keys + 128; /* ROOM of bench_engine.c */
    const struct model_options options = {.slots = b->slots,
                                          .chunk = b->chunk,
                                          .context = beside > b->prompt ? beside : b->prompt,
                                          .pages =
                                              beside / 64 * b->slots + b->prompt / 64 + b->slots,
                                          .by_nccl = w->part != DIRECT,
                                          .tuning = b->tuning,
                                          .ranks = w->part == ALONE ? NULL : r};
    struct fake f;
    struct shard shard = {.parts = NULL};
    struct model *m = NULL;
    int failed = fake_open(&f, &b->config) ? 0 : problem(p, "no memory");
    if (!failed) failed = shard_open(&f.c, r, &shard, p);
    if (!failed) failed = model_open(g, &shard.checkpoint, &options, &m, p);
    if (!failed) failed = r->rank ? model_follow(m, p) : lead(w, m, p);
    model_close(m);
    shard_close(&shard);
    fake_close(&f);
    return failed;
}

static int rank_main(struct ranks *r, void *user)
{
    const struct work *w = user;
    struct problem p = {""};
    struct gpu g = {.driver = NULL};
    int failed = gpu_open_rank(NULL, r->rank, r->count, &g, &p);
    if (!failed && w->part != ALONE) failed = ranks_join(r, &p);
    if (!failed) failed = w->part == LINKS ? time_links(r, w, &g, &p) : with_model(r, w, &g, &p);
    if (failed && !ranks_leader_failed(r))
        fprintf(stderr, "bench_engine: rank %d: %s\n", r->rank, p.text);
    ranks_close(r, failed);
    if (g.driver) gpu_close(&g);
    return failed ? 1 : 0;
}

int bench_ranks(const struct bench_ranks *b)
{
    static const char *const names[] = {"one GPU", "links", "by tensor, sums by NCCL",
                                        "by tensor, sums in the GPUs' memory", "by context"};
    struct times *times =
        mmap(NULL, sizeof *times, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct work w = {b, ALONE, times};
    int status = 0;
    if (times == MAP_FAILED) return 1;
    for (int part = ALONE; !status && part <= BY_CONTEXT; part++) {
        w.part = (enum part)part;
        printf("%s:\n", names[part]);
        status = ranks_run(part == ALONE ? 1 : b->ranks,
                           part == BY_CONTEXT ? RANKS_BY_CONTEXT : RANKS_BY_TENSOR, rank_main, &w);
    }
    munmap(times, sizeof *times);
    return status;
}
