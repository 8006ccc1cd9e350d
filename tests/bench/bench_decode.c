/*
 * bench_decode: attention with few query rows on a GPU, GB/s of K and V a shape. The result is compared
 * with the prefill schedule's first, where that has the head dimensions. Times are of CUDA graphs whose
 * launches go round among copies of K and V that are larger than L2 together.
 *
 *   bench_decode               the named shapes
 *   bench_decode --random N    N shapes drawn by --seed S: batch 1 to 256, lengths 128 to 131,072
 *                              (uniform in log2), half of them ragged (half the length to all of it),
 *                              1 to 16 query heads a KV head, 1 to 8 KV heads, head dimensions 64, 96,
 *                              128, 192/128, 256 and 512, pages of 0, 1, 16, 64 and 128 keys
 *   bench_decode --only TEXT   those whose name has the text
 *   bench_decode --shape B,LENGTH,RAGGED,GROUP,KV_HEADS,QK,V,PAGE,QUERIES
 *                              one of one's own, in that order; may be given several times
 *   bench_decode --e4m3        K and V of e4m3, their bytes those of the bf16 values
 *   bench_decode --list        the shapes alone; needs no GPU
 */
#include "bench/gpu.h"
#include "lib/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 32 << 20 };
static const uint64_t l2_span = UINT64_C(400) << 20; /* K and V of all copies together, at least */
static const double floor_rate = 4.45e12;            /* bytes/s: what the fastest library reaches */

static bool e4m3;

struct shape {
    const char *name;
    int64_t batch, length, ragged, group, kv_heads, qk, v, page, queries;
};

static const struct shape named[] = {
    {"b1 8k", 1, 8192, 0, 4, 8, 128, 128, 0, 1},
    {"b1 131k", 1, 131072, 0, 4, 8, 128, 128, 0, 1},
    {"b16 8k", 16, 8192, 0, 4, 8, 128, 128, 0, 1},
    {"b64 4k", 64, 4096, 0, 4, 8, 128, 128, 0, 1},
    {"b128 4k", 128, 4096, 0, 4, 8, 128, 128, 0, 1},
    {"b128 4k page 128", 128, 4096, 0, 4, 8, 128, 128, 128, 1},
    {"b128 4k page 64", 128, 4096, 0, 4, 8, 128, 128, 64, 1},
    {"b128 4k page 16", 128, 4096, 0, 4, 8, 128, 128, 16, 1},
    {"b128 4k page 1", 128, 4096, 0, 4, 8, 128, 128, 1, 1},
    {"b128 4k ragged", 128, 4096, 1, 4, 8, 128, 128, 0, 1},
    {"b256 512 page 64", 256, 512, 0, 4, 8, 128, 128, 64, 1},
    {"b256 512 page 16", 256, 512, 0, 4, 8, 128, 128, 16, 1},
    {"b64 4k mha", 64, 4096, 0, 1, 8, 128, 128, 0, 1},
    {"b64 4k gqa8 q4", 64, 4096, 0, 8, 8, 128, 128, 0, 4},
    {"b64 4k gqa16 q4", 64, 4096, 0, 16, 8, 128, 128, 0, 4},
    {"b128 4k d64", 128, 4096, 0, 4, 8, 64, 64, 0, 1},
    {"b128 4k d96", 128, 4096, 0, 4, 8, 96, 96, 0, 1},
    {"b64 4k d192/128", 64, 4096, 0, 4, 8, 192, 128, 0, 1},
    {"b64 4k d256", 64, 4096, 0, 4, 8, 256, 256, 0, 1},
    {"b32 4k d512", 32, 4096, 0, 4, 8, 512, 512, 0, 1},
    {"b64 4k d256 page 16", 64, 4096, 0, 4, 8, 256, 256, 16, 1},
};

struct work {
    const struct shape *shape;
    int32_t *lengths;
    uint64_t bytes;              /* of K and V that are read */
    uint64_t k_span, v_span;     /* of one copy */
    uint64_t pages, table_width; /* of the pool */
    uint64_t copies;
    hewn_deviceptr q, o, other, kv, lens, table, workspace;
    hewn_attention_source source;
    hewn_attention_desc desc;
};

/* Values of about unit variance, bf16. */
static void fill(struct gpu *g)
{
    uint16_t *values = gpu_host(BLOCK);
    struct rng r = {7};
    for (size_t i = 0; i < BLOCK / 2; i++) {
        float x = (float)(rng_unit(&r) + rng_unit(&r) + rng_unit(&r) - 1.5) * 2;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        values[i] = (uint16_t)(bits >> 16);
    }
    g->pool[0] = gpu_repeat(g, values, BLOCK, g->pool_bytes);
    free(values);
}

/* ---- a shape -- */

static void draw_lengths(struct work *w, struct rng *r)
{
    const struct shape *s = w->shape;
    uint64_t keys = 0;
    w->lengths = malloc((size_t)s->batch * sizeof *w->lengths);
    if (!w->lengths) gpu_die("memory", "none");
    for (int64_t b = 0; b < s->batch; b++) {
        int64_t half = s->length / 2;
        w->lengths[b] = (int32_t)(s->ragged ? half + rng_below(r, (uint32_t)half + 1) : s->length);
        keys += (uint64_t)w->lengths[b];
    }
    w->bytes = keys * (uint64_t)(s->kv_heads * (s->qk + s->v)) * (e4m3 ? 1 : 2);
}

/* A table whose pages are a permutation of the pool's. */
static void make_table(struct gpu *g, struct work *w, struct rng *r)
{
    uint64_t n = w->pages;
    int32_t *pages = malloc(n * sizeof *pages);
    if (!pages) gpu_die("memory", "none");
    for (uint64_t i = 0; i < n; i++) pages[i] = (int32_t)i;
    for (uint64_t i = n; i > 1; i--) {
        uint64_t j = rng_below(r, (uint32_t)i);
        int32_t page = pages[i - 1];
        pages[i - 1] = pages[j], pages[j] = page;
    }
    w->table = gpu_allocate(g, n * sizeof *pages);
    gpu_need(g->d.to_device(w->table, pages, n * sizeof *pages), "copy");
    free(pages);
}

static void describe(struct work *w)
{
    const struct shape *s = w->shape;
    w->source = (hewn_attention_source){.struct_size = sizeof w->source,
                                        .keys = HEWN_KEYS_LENGTHS,
                                        .causal = s->queries > 1,
                                        .length = s->length,
                                        .page_size = s->page,
                                        .pages = (int64_t)w->pages,
                                        .table_width = (int64_t)w->table_width};
    w->desc = (hewn_attention_desc){.struct_size = sizeof w->desc,
                                    .batch = s->batch,
                                    .q_heads = s->group * s->kv_heads,
                                    .kv_heads = s->kv_heads,
                                    .qk_dim = s->qk,
                                    .v_dim = s->v,
                                    .q_length = s->queries,
                                    .in = HEWN_BF16,
                                    .out = HEWN_BF16,
                                    .kv = e4m3 ? HEWN_E4M3 : 0};
}

static bool open_work(struct gpu *g, struct work *w, const struct shape *s, struct rng *r)
{
    memset(w, 0, sizeof *w);
    w->shape = s;
    draw_lengths(w, r);
    uint64_t rows = (uint64_t)(s->batch * s->length);
    if (s->page) {
        w->table_width = (uint64_t)((s->length + s->page - 1) / s->page);
        w->pages = w->table_width * (uint64_t)s->batch;
        rows = w->pages * (uint64_t)s->page;
    }
    w->k_span = rows * (uint64_t)(s->kv_heads * s->qk) * (e4m3 ? 1 : 2);
    w->v_span = rows * (uint64_t)(s->kv_heads * s->v) * (e4m3 ? 1 : 2);
    uint64_t span = w->k_span + w->v_span;
    if (!span || span > g->pool_bytes) {
        free(w->lengths);
        return false;
    }
    w->copies = 1 + (w->bytes ? l2_span / w->bytes : 0);
    if (w->copies > g->pool_bytes / span) w->copies = g->pool_bytes / span;
    if (s->page) make_table(g, w, r);
    uint64_t heads = (uint64_t)(s->batch * s->queries * s->group * s->kv_heads);
    w->q = gpu_allocate(g, heads * (uint64_t)s->qk * 2);
    gpu_need(g->d2d(w->q, g->pool[0] + 4096, heads * (uint64_t)s->qk * 2), "copy");
    w->o = gpu_allocate(g, heads * (uint64_t)s->v * 2);
    w->other = gpu_allocate(g, heads * (uint64_t)s->v * 2);
    w->lens = gpu_allocate(g, (uint64_t)s->batch * 4);
    gpu_need(g->d.to_device(w->lens, w->lengths, (size_t)s->batch * 4), "copy");
    describe(w);
    return true;
}

static void close_work(struct gpu *g, struct work *w)
{
    const hewn_deviceptr list[] = {w->q, w->o, w->other, w->lens, w->table};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i]) g->d.mem_free(list[i]);
    free(w->lengths);
}

/* A plan of a schedule, and its workspace; NULL where there is none. */
static hewn_attention_plan *plan_of(struct gpu *g, struct work *w, int schedule)
{
    hewn_attention_plan *plan = NULL;
    hewn_attention_plan_info info = {.struct_size = sizeof info};
    hewn_error err = {0};
    w->desc.schedule = schedule;
    w->desc.source[0] = &w->source;
    if (hewn_attention_plan_create(g->d.context, &w->desc, &plan, &err)) {
        if (schedule == HEWN_SCHEDULE_DECODE) gpu_die("plan", err.message);
        return NULL;
    }
    gpu_need(hewn_attention_plan_describe(plan, &info, NULL), "describe");
    w->workspace = gpu_allocate(g, info.workspace);
    return plan;
}

static void run(struct gpu *g, struct work *w, hewn_attention_plan *plan, hewn_deviceptr o,
                uint64_t copy)
{
    hewn_error err = {0};
    hewn_attention_plan_info info = {.struct_size = sizeof info};
    hewn_deviceptr k = g->pool[0] + copy * (w->k_span + w->v_span);
    hewn_attention_source_args source = {.struct_size = sizeof source,
                                         .k = k,
                                         .v = k + w->k_span,
                                         .lengths = w->lens,
                                         .table = w->table};
    hewn_attention_args args = {.struct_size = sizeof args, .q = w->q, .o = o, .source = {&source}};
    hewn_attention_plan_describe(plan, &info, NULL);
    if (info.workspace) args.workspace = w->workspace;
    if (hewn_attention_plan_run(plan, &args, g->stream, &err)) gpu_die("run", err.message);
}

static float bf16_of(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The largest difference between two outputs, relative to the largest value. */
static double difference(struct gpu *g, const struct work *w)
{
    const struct shape *s = w->shape;
    size_t count = (size_t)(s->batch * s->queries * s->group * s->kv_heads * s->v);
    uint16_t *a = malloc(count * 2), *b = malloc(count * 2);
    double most = 0, worst = 0;
    if (!a || !b) gpu_die("memory", "none");
    gpu_need(g->d.to_host(a, w->o, count * 2), "copy");
    gpu_need(g->d.to_host(b, w->other, count * 2), "copy");
    for (size_t i = 0; i < count; i++) {
        double x = (double)bf16_of(a[i]), y = (double)bf16_of(b[i]);
        most = fmax(most, fabs(y));
        worst = isfinite(x) && isfinite(y) ? fmax(worst, fabs(x - y)) : INFINITY;
        if (isinf(worst)) break;
    }
    free(a), free(b);
    return worst / most;
}

/* Seconds of a launch: median over graph launches. */
static double time_of(struct gpu *g, struct work *w, hewn_attention_plan *plan)
{
    uint64_t launches = (uint64_t)(2e-3 * floor_rate / (double)w->bytes);
    if (launches < 8) launches = 8;
    if (launches > 400) launches = 400;
    gpu_time_begin(g);
    for (uint64_t i = 0; i < launches; i++) run(g, w, plan, w->o, i % w->copies);
    return gpu_time_end(g, launches);
}

static void show(const struct shape *s)
{
    printf("%-22s %4lld x %6lld%c %2lldx%lld d%lld/%lld page %3lld", s->name, (long long)s->batch,
           (long long)s->length, s->ragged ? '-' : ' ', (long long)s->group * s->queries,
           (long long)s->kv_heads, (long long)s->qk, (long long)s->v, (long long)s->page);
}

static void measure(struct gpu *g, const struct shape *s, uint64_t seed, bool prefill)
{
    struct work w;
    struct rng r = {seed};
    double other = NAN, apart = NAN;
    if (!open_work(g, &w, s, &r)) {
        printf("%-22s more than the pool\n", s->name);
        return;
    }
    hewn_attention_plan *plan = prefill ? plan_of(g, &w, HEWN_SCHEDULE_PREFILL) : NULL;
    if (plan) {
        run(g, &w, plan, w.other, 0);
        gpu_need(g->wait(g->stream), "prefill");
        other = time_of(g, &w, plan);
        hewn_attention_plan_destroy(plan);
        g->d.mem_free(w.workspace);
    }
    bool compare = plan != NULL;
    plan = plan_of(g, &w, HEWN_SCHEDULE_DECODE);
    run(g, &w, plan, w.o, 0);
    gpu_need(g->wait(g->stream), "decode");
    if (compare) apart = difference(g, &w);
    double us = time_of(g, &w, plan), rate = (double)w.bytes / us;
    show(s);
    printf("  %8.1f MB %9.2f us  %5.2f TB/s  %.3f of the floor; prefill %.2f us; apart %.1e%s\n",
           1e-6 * (double)w.bytes, 1e6 * us, 1e-12 * rate, rate / floor_rate, 1e6 * other, apart,
           apart > 0.02 ? "  WRONG" : "");
    fflush(stdout);
    hewn_attention_plan_destroy(plan);
    g->d.mem_free(w.workspace);
    close_work(g, &w);
}

/* ---- shapes -- */

/* 0 to below 1. */
static double share(struct rng *r)
{
    return (double)rng_below(r, 1U << 20) / (1U << 20);
}

static struct shape draw(struct rng *r)
{
    static const int64_t dims[][2] = {{64, 64},   {96, 96},   {128, 128}, {128, 128},
                                      {192, 128}, {256, 256}, {512, 512}};
    static const int64_t pages[] = {0, 1, 16, 64, 128}, groups[] = {1, 2, 4, 5, 8, 16};
    const int64_t *dim = dims[rng_below(r, 7)];
    struct shape s = {.name = "random", .qk = dim[0], .v = dim[1], .queries = 1};
    s.batch =
        (int64_t)exp2(8 * share(r)); /* one draw a statement: bench_peers.py draws in this order */
    s.length = (int64_t)exp2(7 + 10 * share(r));
    s.ragged = rng_below(r, 2);
    s.group = groups[rng_below(r, 6)];
    s.kv_heads = (int64_t)1 << rng_below(r, 4);
    s.page = pages[rng_below(r, 5)];
    return s;
}

/* `g` NULL: names the shape only. */
static void visit(struct gpu *g, const struct shape *s, uint64_t seed, bool prefill)
{
    if (g) {
        measure(g, s, seed, prefill);
        return;
    }
    show(s);
    printf("\n");
}

static struct shape own_shape(const char *text)
{
    long long n[9];
    if (sscanf(text, "%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld", &n[0], &n[1], &n[2], &n[3],
               &n[4], &n[5], &n[6], &n[7], &n[8]) != 9)
        gpu_die(text, "nine numbers, with commas");
    return (struct shape){"own", n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]};
}

int main(int argc, char **argv)
{
    struct shape own[32];
    size_t owned = 0;
    struct gpu gpu = {.pool = {0}}, *g = &gpu;
    long count = 0, seed = 1, gigabytes = 24;
    const char *only = NULL;
    bool prefill = true;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--random") && i + 1 < argc)
            count = strtol(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            seed = strtol(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else if (!strcmp(argv[i], "--pool") && i + 1 < argc)
            gigabytes = strtol(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--alone"))
            prefill = false;
        else if (!strcmp(argv[i], "--shape") && i + 1 < argc && owned < sizeof own / sizeof *own)
            own[owned++] = own_shape(argv[++i]);
        else if (!strcmp(argv[i], "--e4m3"))
            e4m3 = true, prefill = false;
        else if (!strcmp(argv[i], "--list"))
            g = NULL;
        else
            gpu_die(argv[i], "--random N, --seed S, --only TEXT, --pool GB, --alone, "
                             "--shape NUMBERS, --e4m3, --list");
    }
    if (g) {
        gpu_open(g);
        g->pool_bytes = (uint64_t)gigabytes << 30;
        fill(g);
    }
    for (size_t i = 0; i < owned; i++) visit(g, &own[i], 1, prefill);
    for (size_t i = 0; !count && !owned && i < sizeof named / sizeof *named; i++)
        if (!only || strstr(named[i].name, only)) visit(g, &named[i], 1, prefill);
    struct rng r = {(uint64_t)seed};
    for (long i = 0; i < count; i++) {
        struct shape s = draw(&r);
        while (2 * s.batch * s.length * s.kv_heads * (s.qk + s.v) > gigabytes << 30) s = draw(&r);
        visit(g, &s, (uint64_t)(seed + i), prefill);
    }
    if (g) gpu_close(g);
    return 0;
}
