/*
 * hewn_gemm beside cuBLASLt on a GPU, at the shapes of the table in tests/BENCH.md, on bf16 and on e4m3 with sums
 * promoted to fp32 and without. Random inputs, buffers rotated past L2, outputs compared first; then chunks
 * of launches timed by events, the sides alternating without a pause, for BENCH_WARM_SECONDS before they
 * count. Medians over chunks. The peer runs the fastest of the algorithms that its heuristic offers, found
 * by trying each.
 */
#include "bench.h"
#include "bench_peer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 15 };
#define CHUNK_SECONDS 10e-3

/* The driver's functions that time needs. A side's launches are captured into a graph, so that what they
 * cost the host (some of either side's take longer than the smallest products) stays out. */
#define TIMING_FUNCTIONS(X)                                                            \
    X(stream_create, cuStreamCreate, (void **, unsigned))                              \
    X(capture_begin, cuStreamBeginCapture_v2, (void *, int))                           \
    X(capture_end, cuStreamEndCapture, (void *, void **))                              \
    X(instantiate, cuGraphInstantiateWithFlags, (void **, void *, unsigned long long)) \
    X(graph_launch, cuGraphLaunch, (void *, void *))                                   \
    X(exec_destroy, cuGraphExecDestroy, (void *))                                      \
    X(graph_destroy, cuGraphDestroy, (void *))                                         \
    X(event_create, cuEventCreate, (void **, unsigned))                                \
    X(record, cuEventRecord, (void *, void *))                                         \
    X(wait, cuEventSynchronize, (void *))                                              \
    X(elapsed, cuEventElapsedTime, (float *, void *, void *))

struct timing {
#define X(field, name, arguments) int(*field) arguments;
    TIMING_FUNCTIONS(X)
#undef X
    void *stream, *start, *stop;
    bool launches; /* time launches, not graphs */
};

static bool timing_open(const hewn_driver *driver, struct timing *t)
{
#define X(field, name, arguments)            \
    bench_resolve(driver, #name, &t->field); \
    if (!t->field) return false;
    TIMING_FUNCTIONS(X)
#undef X
    return !t->stream_create(&t->stream, 1) && !t->event_create(&t->start, 0) &&
           !t->event_create(&t->stop, 0);
}

/* Random sign and mantissa, exponent -3 … 0. */
static hewn_deviceptr random_buffer(struct device *dev, int type, size_t count, struct rng *r)
{
    uint64_t keep = type == HEWN_E4M3 ? 0x9F9F9F9F9F9F9F9FULL : 0x81FF81FF81FF81FFULL;
    uint64_t set = type == HEWN_E4M3 ? 0x2020202020202020ULL : 0x3E003E003E003E00ULL;
    size_t bytes = count * hewn_dtype_size(type);
    hewn_deviceptr p = 0;
    unsigned char *h = malloc(bytes);
    if (h && dev->mem_alloc(&p, bytes) == 0) {
        for (size_t i = 0; i < bytes; i += 8) {
            uint64_t bits = (rng_next(r) & keep) | set;
            memcpy(h + i, &bits, bytes - i < 8 ? bytes - i : 8);
        }
        dev->to_device(p, h, bytes);
    }
    free(h);
    return p;
}

bool problem_buffers(struct device *dev, struct problem *p, struct rng *r)
{
    int64_t bytes = (int64_t)hewn_dtype_size(p->in) * (p->m * p->k + p->n * p->k) + 2 * p->m * p->n;
    int64_t sets = 3 * (int64_t)(dev->info.l2_bytes > 0 ? dev->info.l2_bytes : 1) / bytes + 2;
    p->sets = sets > MAX_SETS ? MAX_SETS : (int)sets;
    for (int i = 0; i < p->sets; i++) {
        p->a[i] = random_buffer(dev, p->in, (size_t)(p->m * p->k), r);
        p->b[i] = random_buffer(dev, p->in, (size_t)(p->n * p->k), r);
        if (dev->mem_alloc(&p->d[i], (size_t)(2 * p->m * p->n))) p->d[i] = 0;
        if (!p->a[i] || !p->b[i] || !p->d[i]) return false;
    }
    return true;
}

bool problem_open(struct device *dev, struct problem *p, struct rng *r)
{
    hewn_error err = {0};
    if (!problem_buffers(dev, p, r)) return false;
    if (problem_plan(dev, p, NULL, 0, &err)) return true;
    fprintf(stderr, "plan: %s\n", err.message);
    return false;
}

bool problem_plan(struct device *dev, struct problem *p, const char *variant, uint32_t parts,
                  hewn_error *err)
{
    hewn_gemm_desc desc = {.struct_size = sizeof desc,
                           .m = p->m,
                           .n = p->n,
                           .k = p->k,
                           .in = p->in,
                           .out = HEWN_BF16,
                           .accumulate = p->fast ? HEWN_ACCUMULATE_FAST : HEWN_ACCUMULATE_FULL,
                           .with = p->scale_a ? HEWN_GEMM_WITH_SCALE_A | HEWN_GEMM_WITH_SCALE_B : 0,
                           .batch = 1,
                           .variant = variant,
                           .parts = parts,
                           .slices = 1};
    hewn_gemm_plan_destroy(p->plan);
    p->plan = NULL;
    return !hewn_gemm_plan_create(dev->context, &desc, &p->plan, err);
}

void problem_close(struct device *dev, struct problem *p)
{
    for (int i = 0; i < p->sets; i++) {
        dev->mem_free(p->a[i]);
        dev->mem_free(p->b[i]);
        dev->mem_free(p->d[i]);
    }
    hewn_gemm_plan_destroy(p->plan);
}

static int run(const struct problem *p, int set, void *stream)
{
    hewn_gemm_args args = {.struct_size = sizeof args,
                           .a = p->a[set],
                           .b = p->b[set],
                           .d = p->d[set],
                           .scale_a = p->scale_a,
                           .scale_b = p->scale_b,
                           .alpha = 1};
    if (p->scale_a) return hewn_gemm_plan_run(p->plan, &args, stream, NULL);
    return plain_product(p->plan, p->a[set], p->b[set], p->d[set], stream, NULL);
}

int problem_launch(const struct problem *p, int set)
{
    return run(p, set, NULL);
}

/* One side of a comparison. */
struct side {
    const struct problem *problem;
    const struct peer_product *peer; /* NULL: hewn */
    int algorithm;
    int count;  /* launches timed together */
    void *exec; /* they as a graph */
};

static int launch(const struct side *s, int set, void *stream)
{
    const struct problem *p = s->problem;
    if (s->peer) return peer_launch(s->peer, s->algorithm, p->a[set], p->b[set], p->d[set], stream);
    return run(p, set, stream);
}

static bool launch_all(const struct timing *t, const struct side *s)
{
    for (int i = 0; i < s->count; i++)
        if (launch(s, i % s->problem->sets, t->stream)) return false;
    return true;
}

/* Seconds per launch, of s->count launches. A meter is read while they run. */
static double chunk(const struct timing *t, const struct side *s, struct bench_meter *meter)
{
    float ms = 0;
    t->record(t->start, t->stream);
    if (t->launches ? !launch_all(t, s) : t->graph_launch(s->exec, t->stream))
        return (double)INFINITY;
    t->record(t->stop, t->stream);
    if (meter) bench_meter_sample(meter);
    if (t->wait(t->stop)) return (double)INFINITY;
    t->elapsed(&ms, t->start, t->stop);
    return (double)ms * 1e-3 / s->count;
}

static void side_close(const struct timing *t, struct side *s)
{
    if (s->exec) t->exec_destroy(s->exec);
    s->exec = NULL;
}

static bool side_open(const struct timing *t, struct side *s, int count)
{
    void *graph = NULL;
    bool ok;
    s->count = count;
    if (t->launches) return true;
    ok = !t->capture_begin(t->stream, 0) && launch_all(t, s);
    ok = !t->capture_end(t->stream, &graph) && graph && ok && !t->instantiate(&s->exec, graph, 0);
    if (graph) t->graph_destroy(graph);
    return ok;
}

/* Opens a side with so many launches that they take about `seconds`, 2 to 400. */
static bool side_fit(const struct timing *t, struct side *s, double seconds)
{
    double once;
    if (!side_open(t, s, 4)) return false;
    chunk(t, s, NULL);
    once = chunk(t, s, NULL);
    side_close(t, s);
    return side_open(t, s, (int)fmin(400, fmax(2, seconds / once)));
}

/* The fastest that runs; a first launch of each by itself, so that what loads then loads outside a capture.
 * Where none runs, `status` is the first one's. */
static int best_algorithm(const struct timing *t, const struct problem *p,
                          const struct peer_product *peer, int *status)
{
    double least = (double)INFINITY;
    int best = 0;
    *status = 0;
    for (int i = 0; i < peer_algorithms(peer); i++) {
        struct side s = {p, peer, i, 0, NULL};
        int failed = launch(&s, 0, t->stream);
        if (failed && !*status) *status = failed;
        if (!failed && side_fit(t, &s, 1e-3)) {
            double time = fmin(chunk(t, &s, NULL), chunk(t, &s, NULL));
            if (time < least) least = time, best = i;
        }
        side_close(t, &s);
    }
    if (least < (double)INFINITY) *status = 0;
    return best;
}

/* What a side puts out of the first set, read into `host`; the output is NaN before. */
static bool output_of(struct device *dev, const struct side *s, uint16_t *host, size_t count)
{
    memset(host, 0xFF, count * sizeof *host);
    return !dev->to_device(s->problem->d[0], host, count * sizeof *host) && !launch(s, 0, NULL) &&
           !dev->synchronize() && !dev->to_host(host, s->problem->d[0], count * sizeof *host);
}

/* Largest difference between the two sides' outputs, relative to the largest output; of every `step`-th
 * element. Infinite where a side fails or puts out NaN. */
static double disagreement(struct device *dev, const struct side *ours, const struct side *peer,
                           size_t step)
{
    size_t count = (size_t)(ours->problem->m * ours->problem->n);
    uint16_t *x = calloc(count, sizeof *x), *y = calloc(count, sizeof *y);
    double worst = (double)INFINITY, largest = 0;
    if (x && y && output_of(dev, ours, x, count) && output_of(dev, peer, y, count)) {
        worst = 0;
        for (size_t i = 0; worst < (double)INFINITY && i < count; i += step) {
            double difference = fabs(bench_bf16(x[i]) - bench_bf16(y[i]));
            if (!(difference <= worst)) worst = isnan(difference) ? (double)INFINITY : difference;
            largest = fmax(largest, fabs(bench_bf16(y[i])));
        }
    }
    free(x);
    free(y);
    return worst / (largest > 0 ? largest : 1);
}

/* ---- rows ---- */

/* What a row compares: a product, how the peer computes it, and in which section it is printed. */
struct contest {
    struct bench *bench;
    const struct timing *timing;
    struct problem *problem;
    struct peer_product *peer; /* NULL: none */
    int algorithm;
    const char *section;
};

/* Both sides round their sums to bf16 once; sums that differ in their last bits may round to neighbours,
 * 2^-7 of the largest value apart at most. On e4m3 the tensor core adds 32 products at a time to a sum of
 * which it keeps 13 fraction bits; a side promotes it to fp32 every 128 or, with fast sums, not at all. */
static double differ_limit(const struct problem *p)
{
    double additions = p->in != HEWN_E4M3 ? 0 : p->fast ? (double)p->k / 32 : 4;
    return 0x1p-7 + 2 * additions * 0x1p-13;
}

static void row_describe(const struct contest *c, struct bench_row *row)
{
    const struct problem *p = c->problem;
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    snprintf(row->section, sizeof row->section, "%s", c->section);
    snprintf(row->shape, sizeof row->shape, "%lld × %lld × %lld", (long long)p->m, (long long)p->n,
             (long long)p->k);
    snprintf(row->dtype, sizeof row->dtype, "%s", hewn_dtype_name(p->in));
    snprintf(row->peer, sizeof row->peer, "%s", c->peer ? "cuBLASLt" : "none");
    row->flop = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    row->ceiling = p->in == HEWN_E4M3 ? c->bench->ceiling_8 : c->bench->ceiling_16;
    row->differ_limit = differ_limit(p);
    if (p->plan && !hewn_gemm_plan_describe(p->plan, &info, NULL))
        snprintf(row->variant, sizeof row->variant, "%s/%u", info.variant, info.parts);
}

/* Adds one row; either side may be missing, not both. Compares every `step`-th element of the outputs. */
static void compare(const struct contest *c, size_t step)
{
    struct bench_row row = {
        .ours = (double)NAN, .theirs = (double)NAN, .spread = (double)NAN, .differ = (double)NAN};
    struct side sides[2] = {{.problem = c->problem},
                            {.problem = c->problem, .peer = c->peer, .algorithm = c->algorithm}};
    bool there[2] = {c->problem->plan != NULL, c->peer != NULL}, open;
    struct side *first = &sides[there[0] ? 0 : 1],
                *second = there[0] && there[1] ? &sides[1] : NULL;
    double times[2][CHUNKS], begin;
    row_describe(c, &row);
    if (!there[0] && !there[1]) return;
    if (second) row.differ = disagreement(&c->bench->dev, first, second, step);
    open = side_fit(c->timing, first, CHUNK_SECONDS) &&
           (!second || side_open(c->timing, second, first->count));
    begin = bench_now();
    for (int i = 0; open && i < CHUNKS;) {
        for (int j = 0; j < 2; j++)
            if (there[j])
                times[j][i] =
                    chunk(c->timing, &sides[j], i == CHUNKS / 2 ? &c->bench->meter : NULL);
        if (i || bench_now() - begin > BENCH_WARM_SECONDS) i++;
    }
    side_close(c->timing, &sides[0]);
    side_close(c->timing, &sides[1]);
    if (open && there[1]) row.theirs = bench_median(times[1], CHUNKS);
    if (open && there[0]) {
        row.ours = bench_median(times[0], CHUNKS);
        row.spread = (times[0][CHUNKS * 9 / 10] - times[0][CHUNKS / 10]) / row.ours;
    }
    bench_add(&c->bench->report, &row);
}

/* One launch of each side for a profiler, behind one that loads what must be. */
static void profile(const struct contest *c)
{
    struct side sides[2] = {{.problem = c->problem},
                            {.problem = c->problem, .peer = c->peer, .algorithm = c->algorithm}};
    bool there[2] = {c->problem->plan != NULL, c->peer != NULL};
    int (*start)(void), (*stop)(void);
    bench_resolve(c->bench->dev.driver, "cuProfilerStart", &start);
    bench_resolve(c->bench->dev.driver, "cuProfilerStop", &stop);
    if (!start || !stop) {
        bench_note(&c->bench->report, c->section, "no cuProfilerStart: nothing to profile");
        return;
    }
    for (int j = 0; j < 2; j++)
        if (there[j]) launch(&sides[j], 1, NULL);
    c->bench->dev.synchronize();
    start();
    for (int j = 0; j < 2; j++)
        if (there[j]) launch(&sides[j], 0, NULL);
    c->bench->dev.synchronize();
    stop();
}

static const struct {
    const char *variant;
    uint32_t parts;
} choices[] = {{"plain", 1}, {"pair", 1},  {"wide", 1},  {"small", 1}, {"narrow", 1}, {"split", 1},
               {"split", 2}, {"split", 3}, {"split", 4}, {"split", 5}, {"split", 7},  {"split", 8},
               {"flat", 1},  {"flat", 2},  {"flat", 3},  {"flat", 4},  {"flat", 6},   {"flat", 8}};

static void sweep(const struct contest *c)
{
    hewn_error err = {0};
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        if (problem_plan(&c->bench->dev, c->problem, choices[i].variant, choices[i].parts, &err))
            compare(c, 97);
        else
            fprintf(stderr, "plan: %s\n", err.message);
    }
}

/* ---- sections ---- */

static const int64_t shapes[][3] = {{1024, 1024, 1024}, {2048, 2048, 2048},   {4096, 4096, 4096},
                                    {8192, 8192, 8192}, {16384, 16384, 4096}, {4096, 7168, 2048},
                                    {128, 4096, 7168},  {64, 8192, 8192}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* Factors that would show in the outputs if a side left them out, so many bytes apart. */
enum { SCALE_APART = 256 };
static const float scales[2] = {0.75F, 1.5F};

/* One product in one form. Says in `err` why we do not compute it, where we do not. */
static void bench_shape(const struct contest *form, struct rng *r, const char *variant,
                        uint32_t parts, hewn_error *err)
{
    struct contest c = *form;
    struct problem *p = c.problem;
    int status = 0;
    struct peer_form peer = {.m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .e4m3 = p->in == HEWN_E4M3,
                             .fast = p->fast,
                             .scale_a = p->scale_a,
                             .scale_b = p->scale_b};
    if (problem_buffers(&c.bench->dev, p, r)) {
        problem_plan(&c.bench->dev, p, variant, parts, err);
        c.peer = peer_version() ? peer_product_new(&peer) : NULL;
        c.algorithm = c.peer ? best_algorithm(c.timing, p, c.peer, &status) : 0;
        if (status) bench_note(&c.bench->report, c.section, "cuBLASLt: status %d", status);
        if (c.bench->profile)
            profile(&c);
        else
            compare(&c, 1);
        if (c.bench->sweep && !c.bench->profile && p->in == HEWN_BF16) sweep(&c);
        peer_product_free(c.peer);
    }
    problem_close(&c.bench->dev, p);
}

static void bench_form(struct bench *b, const struct timing *t, const char *section, int in,
                       bool fast)
{
    struct rng r = {test_seed()};
    hewn_deviceptr scale_at = 0;
    hewn_error err = {0};
    if (b->dev.mem_alloc(&scale_at, 2 * SCALE_APART) ||
        b->dev.to_device(scale_at, &scales[0], sizeof scales[0]) ||
        b->dev.to_device(scale_at + SCALE_APART, &scales[1], sizeof scales[1]))
        return;
    for (size_t i = 0; i < SHAPES; i++) {
        struct problem p = {
            .m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2], .in = in, .fast = fast};
        struct contest c = {.bench = b, .timing = t, .problem = &p, .section = section};
        if (in == HEWN_E4M3) p.scale_a = scale_at, p.scale_b = scale_at + SCALE_APART;
        bench_shape(&c, &r, NULL, 0, &err);
    }
    b->dev.mem_free(scale_at);
    bench_section_ends(&b->report);
    if (err.status) bench_note(&b->report, section, "hewn_gemm: %.200s", err.message);
    bench_meter_note(&b->meter, &b->report, section);
}

static bool begin(struct bench *b, struct timing *t)
{
    if (!timing_open(b->dev.driver, t)) return false;
    t->launches = b->launches;
    if (peer_open(&b->dev))
        bench_fact(&b->report,
                   "products: peer cuBLASLt %zu, the fastest algorithm of its heuristic; %s",
                   peer_version(), t->launches ? "launches one by one" : "graphs of launches");
    else
        bench_fact(&b->report, "products: no cuBLASLt found");
    return true;
}

/* What may stand before a product's name. */
static const struct {
    const char *prefix, *section;
    int in;
    bool fast;
} forms[] = {{"", "gemm bf16", HEWN_BF16, false},
             {"e4m3:", "gemm e4m3", HEWN_E4M3, false},
             {"e4m3-fast:", "gemm e4m3, fast sums", HEWN_E4M3, true}};
enum { FORMS = sizeof forms / sizeof forms[0] };

void bench_gemm_named(struct bench *b, const char *name)
{
    struct problem p = {0};
    struct timing t = {0};
    struct contest c = {.bench = b, .timing = &t, .problem = &p};
    struct rng r = {test_seed()};
    long long m, n, k;
    char variant[16] = "";
    unsigned parts = 0;
    hewn_error err = {0};
    size_t form = FORMS - 1;
    while (form && strncmp(name, forms[form].prefix, strlen(forms[form].prefix)) != 0) form--;
    c.section = forms[form].section;
    if (sscanf(name + strlen(forms[form].prefix), "%lldx%lldx%lld:%15[a-z0-9]/%u", &m, &n, &k,
               variant, &parts) < 3) {
        fprintf(stderr, "bench: %s is not [e4m3:|e4m3-fast:]MxNxK[:VARIANT/PARTS]\n", name);
        return;
    }
    p.m = m, p.n = n, p.k = k, p.in = forms[form].in, p.fast = forms[form].fast;
    if (begin(b, &t)) bench_shape(&c, &r, variant[0] ? variant : NULL, parts, &err);
    if (err.status) fprintf(stderr, "plan: %s\n", err.message);
}

void bench_gemm(struct bench *b)
{
    struct timing t = {0};
    if (!begin(b, &t)) return;
    for (size_t i = 0; i < FORMS; i++)
        bench_form(b, &t, forms[i].section, forms[i].in, forms[i].fast);
}
