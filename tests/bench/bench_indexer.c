/*
 * bench_indexer: the indexer's logits and top-k on a GPU: microseconds a launch, beside what memory and the
 * tensor cores allow. Times are of CUDA graphs whose launches go round among copies of the input that are
 * larger than L2 together ("hot": one copy).
 *
 *   bench_indexer               all shapes
 *   bench_indexer --only TEXT   those whose name has the text
 *   bench_indexer --pool GB     memory for the inputs (24)
 *   bench_indexer --launches N  in a graph, instead of as many as take 4 ms
 */
#include "bench/gpu.h"
#include "lib/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 32 << 20, PAGE = 64, DIM = 128, KEY_BYTES = DIM + 4 };
static const uint64_t l2_span = UINT64_C(400) << 20; /* the inputs of all copies, at least */
static const double floor_rate = 4.45e12;            /* bytes/s: what the fastest library reaches */
static const double peak_rate = 1979e12;             /* FLOP/s of e4m3 */

enum work_kind { DECODE, PREFILL, TOPK, BOTH };

struct shape {
    const char *name;
    enum work_kind kind;
    int64_t batch, queries, length, heads, k;
    int ragged, hot;
};

static const struct shape shapes[] = {
    {"decode b1 8k", DECODE, 1, 1, 8192, 64, 0, 0, 0},
    {"decode b1 128k", DECODE, 1, 1, 131072, 64, 0, 0, 0},
    {"decode b8 32k", DECODE, 8, 1, 32768, 64, 0, 0, 0},
    {"decode b32 4k", DECODE, 32, 1, 4096, 64, 0, 0, 0},
    {"decode b32 32k", DECODE, 32, 1, 32768, 64, 0, 0, 0},
    {"decode b128 4k", DECODE, 128, 1, 4096, 64, 0, 0, 0},
    {"decode b128 32k", DECODE, 128, 1, 32768, 64, 0, 0, 0},
    {"decode b128 32k ragged", DECODE, 128, 1, 32768, 64, 0, 1, 0},
    {"decode b128 128k", DECODE, 128, 1, 131072, 64, 0, 0, 0},
    {"decode b64 32k next 2", DECODE, 64, 2, 32768, 64, 0, 0, 0},
    {"decode b64 32k next 4", DECODE, 64, 4, 32768, 64, 0, 0, 0},
    {"decode b64 32k 32 heads", DECODE, 64, 1, 32768, 32, 0, 0, 0},
    {"prefill 4k", PREFILL, 1, 4096, 4096, 64, 0, 0, 1},
    {"prefill 4k of 16k", PREFILL, 1, 4096, 16384, 64, 0, 0, 1},
    {"prefill 4k of 64k", PREFILL, 1, 4096, 65536, 64, 0, 0, 1},
    {"prefill 4k of 64k 32 heads", PREFILL, 1, 4096, 65536, 32, 0, 0, 1},
    {"top 2048 of 1 x 8k", TOPK, 1, 1, 8192, 0, 2048, 0, 0},
    {"top 2048 of 1 x 128k", TOPK, 1, 1, 131072, 0, 2048, 0, 0},
    {"top 2048 of 1 x 1M", TOPK, 1, 1, 1048576, 0, 2048, 0, 0},
    {"top 2048 of 32 x 32k", TOPK, 32, 1, 32768, 0, 2048, 0, 0},
    {"top 2048 of 128 x 4k", TOPK, 128, 1, 4096, 0, 2048, 0, 0},
    {"top 2048 of 128 x 64k", TOPK, 128, 1, 65536, 0, 2048, 0, 0},
    {"top 2048 of 128 x 64k hot", TOPK, 128, 1, 65536, 0, 2048, 0, 1},
    {"top 512 of 128 x 64k hot", TOPK, 128, 1, 65536, 0, 512, 0, 1},
    {"top 2048 of 128 x 128k", TOPK, 128, 1, 131072, 0, 2048, 0, 0},
    {"top 2048 of 4096 x 16k", TOPK, 4096, 1, 16384, 0, 2048, 0, 0},
    {"both b32 32k top 2048", BOTH, 32, 1, 32768, 64, 2048, 0, 0},
    {"both b128 32k top 2048", BOTH, 128, 1, 32768, 64, 2048, 0, 0},
};

struct work {
    const struct shape *shape;
    hewn_indexer_plan *indexer;
    hewn_topk_plan *topk;
    hewn_deviceptr q, weights, out, starts, ends, table, indices, scales;
    uint64_t rows, keys, pairs; /* of all sequences */
    uint64_t pages, width;
    uint64_t span, copies; /* of the input in the pool: keys, or the rows of top-k */
};

/* The same block again and again: e4m3 of 0.5 to 1.9 and either sign, whose words are finite as f32; or f32
 * of about unit variance. */
static void fill(struct gpu *g, bool floats)
{
    unsigned char *block = gpu_host(BLOCK);
    struct rng r = {7};
    for (size_t i = 0; i < BLOCK; i += 4) {
        float x = rng_unit(&r) + rng_unit(&r) + rng_unit(&r);
        uint32_t bits = ((uint32_t)rng_next(&r) & 0x8F8F8F8FU) | 0x30303030U;
        if (floats) memcpy(&bits, &x, sizeof bits);
        memcpy(block + i, &bits, sizeof bits);
    }
    if (g->pool[0]) g->d.mem_free(g->pool[0]);
    g->pool[0] = gpu_repeat(g, block, BLOCK, g->pool_bytes);
    free(block);
}

/* ---- a shape -- */

/* The end of each row's keys: causal in a prefill, and half the length or more where lengths are ragged. */
static void make_ends(struct gpu *g, struct work *w)
{
    const struct shape *s = w->shape;
    int32_t *ends = gpu_host(w->rows * sizeof *ends);
    struct rng r = {5};
    for (int64_t b = 0; b < s->batch; b++) {
        int64_t half = s->length / 2, n = s->length;
        if (s->ragged) n = half + rng_below(&r, (uint32_t)half + 1);
        w->keys += (uint64_t)n;
        for (int64_t i = 0; i < s->queries; i++) {
            ends[b * s->queries + i] = (int32_t)(n - (s->queries - 1 - i));
            w->pairs += (uint64_t)ends[b * s->queries + i];
        }
    }
    w->ends = gpu_upload(g, ends, w->rows * sizeof *ends);
    free(ends);
}

/* The sequences' pages are a permutation of the pool's. */
static void make_table(struct gpu *g, struct work *w)
{
    int32_t *table = gpu_host(w->pages * sizeof *table);
    struct rng r = {3};
    for (uint64_t i = 0; i < w->pages; i++) {
        uint64_t j = rng_below(&r, (uint32_t)i + 1);
        table[i] = table[j];
        table[j] = (int32_t)i;
    }
    w->table = gpu_upload(g, table, w->pages * sizeof *table);
    free(table);
}

static void plan_indexer(struct gpu *g, struct work *w)
{
    const struct shape *s = w->shape;
    const bool paged = s->kind != PREFILL;
    hewn_error err = {0};
    const hewn_indexer_desc desc = {.struct_size = sizeof desc,
                                    .batch = s->batch,
                                    .queries = s->queries,
                                    .heads = s->heads,
                                    .dim = DIM,
                                    .length = s->length,
                                    .page_size = paged ? PAGE : 0,
                                    .pages = (int64_t)w->pages,
                                    .table_width = (int64_t)w->width,
                                    .in = HEWN_E4M3,
                                    .scales = paged,
                                    .ends = 1};
    if (hewn_indexer_plan_create(g->d.context, &desc, &w->indexer, &err))
        gpu_die("plan", err.message);
    w->q = gpu_allocate(g, w->rows * (uint64_t)(s->heads * DIM));
    w->weights = gpu_allocate(g, w->rows * (uint64_t)s->heads * 4);
    gpu_need(g->d2d(w->q, g->pool[0], w->rows * (uint64_t)(s->heads * DIM)), "copy");
    gpu_need(g->d2d(w->weights, g->pool[0], w->rows * (uint64_t)s->heads * 4), "copy");
    w->out = gpu_allocate(g, w->rows * (uint64_t)s->length * 4);
    if (!paged) w->scales = gpu_allocate(g, (uint64_t)(s->batch * s->length) * 4);
    if (!paged)
        gpu_need(g->d2d(w->scales, g->pool[0], (uint64_t)(s->batch * s->length) * 4), "copy");
}

static void plan_topk(struct gpu *g, struct work *w)
{
    const struct shape *s = w->shape;
    hewn_error err = {0};
    const hewn_topk_desc desc = {.struct_size = sizeof desc,
                                 .batch = s->batch,
                                 .queries = s->queries,
                                 .columns = s->length,
                                 .k = s->k,
                                 .page_size = s->kind == BOTH ? PAGE : 0,
                                 .pages = (int64_t)w->pages,
                                 .table_width = (int64_t)w->width,
                                 .ends = 1};
    if (hewn_topk_plan_create(g->d.context, &desc, &w->topk, &err)) gpu_die("plan", err.message);
    w->indices = gpu_allocate(g, w->rows * (uint64_t)s->k * 4);
}

static bool open_work(struct gpu *g, struct work *w, const struct shape *s)
{
    memset(w, 0, sizeof *w);
    w->shape = s;
    w->rows = (uint64_t)(s->batch * s->queries);
    if (s->kind == DECODE || s->kind == BOTH) {
        w->width = (uint64_t)((s->length + PAGE - 1) / PAGE);
        w->pages = w->width * (uint64_t)s->batch;
        w->span = w->pages * PAGE * KEY_BYTES;
    } else {
        w->span = (uint64_t)(s->batch * s->length) * (s->kind == TOPK ? 4 : DIM);
    }
    if (w->span > g->pool_bytes) return false;
    w->copies = s->hot ? 1 : 1 + l2_span / w->span;
    if (w->copies > g->pool_bytes / w->span) w->copies = g->pool_bytes / w->span;
    make_ends(g, w);
    if (w->pages) make_table(g, w);
    if (s->kind != TOPK) plan_indexer(g, w);
    if (s->k) plan_topk(g, w);
    return true;
}

static void close_work(struct gpu *g, struct work *w)
{
    const hewn_deviceptr list[] = {w->q,     w->weights, w->out,   w->ends,
                                   w->table, w->indices, w->scales};
    hewn_indexer_plan_destroy(w->indexer);
    hewn_topk_plan_destroy(w->topk);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i]) g->d.mem_free(list[i]);
}

static void run(struct gpu *g, const struct work *w, uint64_t copy)
{
    hewn_error err = {0};
    const hewn_deviceptr in = g->pool[0] + copy * w->span;
    const hewn_indexer_args a = {.struct_size = sizeof a,
                                 .q = w->q,
                                 .k = in,
                                 .k_scale = w->scales,
                                 .weights = w->weights,
                                 .out = w->out,
                                 .ends = w->ends,
                                 .table = w->table};
    const hewn_topk_args t = {.struct_size = sizeof t,
                              .values = w->indexer ? w->out : in,
                              .indices = w->indices,
                              .ends = w->ends,
                              .table = w->table};
    if (w->indexer && hewn_indexer_plan_run(w->indexer, &a, g->stream, &err))
        gpu_die("run", err.message);
    if (w->topk && hewn_topk_plan_run(w->topk, &t, g->stream, &err)) gpu_die("run", err.message);
}

/* Seconds of a launch, of `fixed` in a graph, or 0: as many as take 4 ms. */
static double time_of(struct gpu *g, const struct work *w, double guess, uint64_t fixed)
{
    uint64_t launches = (uint64_t)(4e-3 / guess);
    if (launches < 4) launches = 4;
    if (launches > 400) launches = 400;
    if (fixed) launches = fixed;
    gpu_time_begin(g);
    for (uint64_t i = 0; i < launches; i++) run(g, w, i % w->copies);
    return gpu_time_end(g, launches);
}

static void measure(struct gpu *g, const struct shape *s, uint64_t fixed)
{
    struct work w;
    double bytes = 0, flop = 0;
    if (!open_work(g, &w, s)) {
        printf("%-28s more than the pool\n", s->name);
        return;
    }
    if (w.indexer) {
        bytes += (double)w.keys * KEY_BYTES + 4 * (double)w.pairs;
        flop = 2.0 * (double)(s->heads * DIM) * (double)w.pairs;
    }
    if (w.topk && !w.indexer) bytes += 4 * (double)w.pairs; /* else they come out of L2 */
    double memory = bytes / floor_rate, tensor = flop / peak_rate;
    double least = memory > tensor ? memory : tensor;
    double time = time_of(g, &w, least + 3e-6, fixed);
    printf("%-28s %9.2f us  %6.2f TB/s %7.1f TFLOP/s  floors: memory %8.2f us, tensor %8.2f us; "
           "%.2f of the time\n",
           s->name, 1e6 * time, 1e-12 * bytes / time, 1e-12 * flop / time, 1e6 * memory,
           1e6 * tensor, least / time);
    fflush(stdout);
    close_work(g, &w);
}

int main(int argc, char **argv)
{
    struct gpu g = {.pool = {0}};
    long gigabytes = 24;
    uint64_t launches = 0;
    const char *only = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else if (!strcmp(argv[i], "--pool") && i + 1 < argc)
            gigabytes = strtol(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--launches") && i + 1 < argc)
            launches = strtoul(argv[++i], NULL, 0);
        else
            gpu_die(argv[i], "--only TEXT, --pool GB, --launches N");
    }
    gpu_open(&g);
    g.pool_bytes = ((uint64_t)gigabytes << 30) / BLOCK * BLOCK;
    for (int floats = 0; floats < 2; floats++) {
        fill(&g, floats);
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            if ((shapes[i].kind == TOPK) == floats && (!only || strstr(shapes[i].name, only)))
                measure(&g, &shapes[i], launches);
    }
    gpu_close(&g);
    return 0;
}
