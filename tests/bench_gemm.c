/*
 * hewn_gemm beside cuBLASLt on a GPU, at the shapes of the README's table. Random inputs, buffers rotated
 * past L2, both sides warmed up, chunks of launches timed by events, the sides alternating; medians over
 * chunks. The peer runs the fastest of the algorithms that its heuristic offers, found by trying each.
 */
#include "bench.h"
#include "bench_peer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 15 };

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

static hewn_deviceptr random_buffer(struct device *dev, size_t count, struct rng *r)
{
    hewn_deviceptr p = 0;
    uint16_t *h = malloc(count * sizeof *h);
    if (h && dev->mem_alloc(&p, count * sizeof *h) == 0) {
        for (size_t i = 0; i < count; i += 4) {
            /* random sign and mantissa, exponent -3 … 0 */
            uint64_t bits = (rng_next(r) & 0x81FF81FF81FF81FFULL) | 0x3E003E003E003E00ULL;
            memcpy(h + i, &bits, (count - i < 4 ? count - i : 4) * sizeof *h);
        }
        dev->to_device(p, h, count * sizeof *h);
    }
    free(h);
    return p;
}

bool problem_open(struct device *dev, struct problem *p, struct rng *r)
{
    int64_t bytes = 2 * (p->m * p->k + p->n * p->k + p->m * p->n);
    int64_t sets = 3 * (int64_t)(dev->info.l2_bytes > 0 ? dev->info.l2_bytes : 1) / bytes + 2;
    p->sets = sets > MAX_SETS ? MAX_SETS : (int)sets;
    for (int i = 0; i < p->sets; i++) {
        p->a[i] = random_buffer(dev, (size_t)(p->m * p->k), r);
        p->b[i] = random_buffer(dev, (size_t)(p->n * p->k), r);
        if (dev->mem_alloc(&p->d[i], (size_t)(2 * p->m * p->n))) p->d[i] = 0;
        if (!p->a[i] || !p->b[i] || !p->d[i]) return false;
    }
    return problem_plan(dev, p, NULL, 0);
}

bool problem_plan(struct device *dev, struct problem *p, const char *variant, uint32_t parts)
{
    hewn_gemm_desc desc = {.struct_size = sizeof desc,
                           .m = p->m,
                           .n = p->n,
                           .k = p->k,
                           .in = HEWN_BF16,
                           .out = HEWN_BF16,
                           .batch = 1,
                           .variant = variant,
                           .parts = parts};
    hewn_error err = {0};
    hewn_gemm_plan_destroy(p->plan);
    p->plan = NULL;
    if (!hewn_gemm_plan_create(dev->context, &desc, &p->plan, &err)) return true;
    fprintf(stderr, "plan: %s\n", err.message);
    return false;
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

int problem_launch(const struct problem *p, int set)
{
    return hewn_gemm_run(p->plan, p->a[set], p->b[set], p->d[set], NULL, NULL);
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
    return hewn_gemm_run(p->plan, p->a[set], p->b[set], p->d[set], stream, NULL);
}

static bool launch_all(const struct timing *t, const struct side *s)
{
    for (int i = 0; i < s->count; i++)
        if (launch(s, i % s->problem->sets, t->stream)) return false;
    return true;
}

/* Seconds per launch, of s->count launches. */
static double chunk(const struct timing *t, const struct side *s)
{
    float ms = 0;
    t->record(t->start, t->stream);
    if (t->launches ? !launch_all(t, s) : t->graph_launch(s->exec, t->stream))
        return (double)INFINITY;
    t->record(t->stop, t->stream);
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
    chunk(t, s);
    once = chunk(t, s);
    side_close(t, s);
    return side_open(t, s, (int)fmin(400, fmax(2, seconds / once)));
}

static int best_algorithm(const struct timing *t, const struct problem *p,
                          const struct peer_product *peer)
{
    double least = (double)INFINITY;
    int best = 0;
    for (int i = 0; i < peer_algorithms(peer); i++) {
        struct side s = {p, peer, i, 0, NULL};
        if (side_fit(t, &s, 1e-3)) {
            double time = fmin(chunk(t, &s), chunk(t, &s));
            if (time < least) least = time, best = i;
        }
        side_close(t, &s);
    }
    return best;
}

/* Largest difference between the two sides' outputs, relative to the largest output; of every `step`-th
 * element. */
static double disagreement(struct device *dev, const struct side *ours, const struct side *peer,
                           size_t step)
{
    const struct problem *p = ours->problem;
    size_t count = (size_t)(p->m * p->n);
    uint16_t *x = calloc(count, sizeof *x), *y = calloc(count, sizeof *y);
    const bool have = x && y && !launch(ours, 0, NULL) && !dev->synchronize() &&
                      !dev->to_host(x, p->d[0], 2 * count) && !launch(peer, 0, NULL) &&
                      !dev->synchronize() && !dev->to_host(y, p->d[0], 2 * count);
    double worst = have ? 0 : (double)INFINITY, largest = 0;
    for (size_t i = 0; have && i < count; i += step) {
        double difference = fabs(bf16_to_double(x[i]) - bf16_to_double(y[i]));
        worst = difference <= worst ? worst : difference; /* NaN stays */
        largest = fmax(largest, fabs(bf16_to_double(y[i])));
    }
    free(x);
    free(y);
    return worst / (largest > 0 ? largest : 1);
}

/* One row; the peer may be missing. Returns peer time / hewn time, or NAN. */
static double compare(struct device *dev, const struct timing *t, const struct problem *p,
                      const struct peer_product *product, int algorithm, size_t step)
{
    struct side ours = {p, NULL, 0, 0, NULL}, peer = {p, product, algorithm, 0, NULL};
    double t_ours[CHUNKS], t_peer[CHUNKS], flop = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    double differ = product ? disagreement(dev, &ours, &peer, step) : (double)NAN;
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    bool open = side_fit(t, &ours, 3e-3) && (!product || side_open(t, &peer, ours.count));
    for (int i = -1; open && i < CHUNKS; i++) { /* the first warms up */
        t_ours[i < 0 ? 0 : i] = chunk(t, &ours);
        t_peer[i < 0 ? 0 : i] = product ? chunk(t, &peer) : (double)NAN;
    }
    side_close(t, &ours);
    side_close(t, &peer);
    if (!open || hewn_gemm_plan_describe(p->plan, &info, NULL)) return (double)NAN;
    double o = bench_median(t_ours, CHUNKS), q = bench_median(t_peer, CHUNKS);
    double spread = (t_ours[CHUNKS * 9 / 10] - t_ours[CHUNKS / 10]) / o;
    printf("%6lld x %5lld x %5lld  %9.1f %8.1f  %9.1f %8.1f  %6.3f  %6.1f%%  %8.1e  %s/%u\n",
           (long long)p->m, (long long)p->n, (long long)p->k, 1e6 * o, 1e-12 * flop / o, 1e6 * q,
           1e-12 * flop / q, q / o, 100 * spread, differ, info.variant, info.parts);
    fflush(stdout);
    return q / o;
}

static const struct {
    const char *variant;
    uint32_t parts;
} choices[] = {{"plain", 1}, {"pair", 1},  {"small", 1}, {"narrow", 1}, {"split", 1}, {"split", 2},
               {"split", 3}, {"split", 4}, {"split", 5}, {"split", 7},  {"split", 8}, {"flat", 1},
               {"flat", 2},  {"flat", 3},  {"flat", 4},  {"flat", 6},   {"flat", 8}};

static double bench_shape(struct device *dev, const struct timing *t, bool peer, bool sweep,
                          struct problem *p)
{
    struct peer_product *product = peer ? peer_product_new(p->m, p->n, p->k) : NULL;
    int algorithm = product ? best_algorithm(t, p, product) : 0;
    double ratio = compare(dev, t, p, product, algorithm, 1);
    for (size_t i = 0; sweep && i < sizeof choices / sizeof choices[0]; i++)
        if (problem_plan(dev, p, choices[i].variant, choices[i].parts))
            compare(dev, t, p, product, algorithm, 97);
    peer_product_free(product);
    return ratio;
}

/* "MxNxK[:VARIANT/PARTS]" */
static void bench_named(struct device *dev, const struct timing *t, bool peer, struct rng *r,
                        const char *name)
{
    struct problem p = {0};
    long long m, n, k;
    char variant[16] = "";
    unsigned parts = 0;
    if (sscanf(name, "%lldx%lldx%lld:%15[a-z0-9]/%u", &m, &n, &k, variant, &parts) < 3) {
        fprintf(stderr, "bench: %s is not MxNxK[:VARIANT/PARTS]\n", name);
        return;
    }
    p.m = m, p.n = n, p.k = k;
    if (problem_open(dev, &p, r) && problem_plan(dev, &p, variant[0] ? variant : NULL, parts))
        bench_shape(dev, t, peer, false, &p);
    problem_close(dev, &p);
}

void bench_gemm(struct device *dev, int argc, char **argv)
{
    static const int64_t shapes[][3] = {{1024, 1024, 1024},   {2048, 2048, 2048},
                                        {4096, 4096, 4096},   {8192, 8192, 8192},
                                        {16384, 16384, 4096}, {4096, 7168, 2048},
                                        {128, 4096, 7168},    {64, 8192, 8192}};
    enum { SHAPES = sizeof shapes / sizeof shapes[0] };
    struct timing t = {0};
    struct rng r = {test_seed()};
    bool peer = peer_open(dev), sweep = false;
    double logarithms = 0;
    int named = 0;
    if (!timing_open(dev->driver, &t)) return;
    for (int i = 1; i < argc; i++) {
        sweep |= !strcmp(argv[i], "--sweep");
        t.launches |= !strcmp(argv[i], "--launches");
    }
    printf("GEMM, bf16 in and out, on %s; peer: %s; %s\n", dev->info.name,
           peer ? "cuBLASLt, the fastest algorithm of its heuristic" : "none found",
           t.launches ? "launches" : "graphs of launches");
    printf("%22s  %9s %8s  %9s %8s  %6s  %7s  %8s  %s\n", "m x n x k", "hewn us", "TFLOP/s",
           "peer us", "TFLOP/s", "ratio", "spread", "differ", "variant/parts");
    for (int i = 1; i < argc; i++)
        if (argv[i][0] != '-') named++, bench_named(dev, &t, peer, &r, argv[i]);
    if (named > 0) return;
    for (size_t i = 0; i < SHAPES; i++) {
        struct problem p = {.m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2]};
        if (problem_open(dev, &p, &r)) logarithms += log(bench_shape(dev, &t, peer, sweep, &p));
        problem_close(dev, &p);
    }
    printf(
        "geometric mean of the ratios %.3f. ratio: peer time / hewn time (above 1 hewn is faster); "
        "spread: of hewn's times, 10th to 90th percentile; differ: largest difference / largest "
        "value\n",
        exp(logarithms / SHAPES));
}
