/*
 * Speed, as ratios against a named peer in the same run. On a GPU: hewn_gemm beside cuBLAS at the
 * shapes of the README's table, and the host cost of one launch beside a raw cuLaunchKernelEx. On the
 * simulator: bench_sim.c.
 *
 * GPU method: random inputs, buffers rotated past L2, both sides warmed up, chunks of launches timed
 * by events, the sides alternating; medians over chunks.
 */
#include "bench.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CHUNKS = 15 };

struct events {
    int (*create)(void **, unsigned);
    int (*record)(void *, void *);
    int (*wait)(void *);
    int (*elapsed)(float *, void *, void *);
    int (*destroy)(void *);
    void *start, *stop;
};

/* cuBLAS by its public C interface, where the machine has it. */
struct cublas {
    void *handle;
    int (*gemm)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *,
                int, int, const void *, void *, int, int, int, int);
};
enum { CUBLAS_N = 0, CUBLAS_T = 1, CUDA_BF16 = 14, COMPUTE_32F = 68 };

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, ascending);
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

void bench_resolve(const hewn_driver *driver, const char *name, void *slot)
{
    void *symbol = hewn_driver_symbol(driver, name);
    memcpy(slot, &symbol, sizeof symbol);
}

static bool events_open(const hewn_driver *driver, struct events *e)
{
    bench_resolve(driver, "cuEventCreate", &e->create);
    bench_resolve(driver, "cuEventRecord", &e->record);
    bench_resolve(driver, "cuEventSynchronize", &e->wait);
    bench_resolve(driver, "cuEventElapsedTime", &e->elapsed);
    return e->create && e->record && e->wait && e->elapsed && !e->create(&e->start, 0) &&
           !e->create(&e->stop, 0);
}

static bool cublas_open(struct cublas *c)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    void *library = NULL, *symbol;
    int (*create)(void **);
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < 3 && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    symbol = dlsym(library, "cublasCreate_v2");
    memcpy(&create, &symbol, sizeof symbol);
    symbol = dlsym(library, "cublasGemmEx");
    memcpy(&c->gemm, &symbol, sizeof symbol);
    return create && c->gemm && create(&c->handle) == 0;
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
    hewn_gemm_desc desc = {.struct_size = sizeof desc,
                           .m = p->m,
                           .n = p->n,
                           .k = p->k,
                           .in = HEWN_BF16,
                           .out = HEWN_BF16,
                           .batch = 1};
    hewn_error err = {0};
    int64_t bytes = 2 * (p->m * p->k + p->n * p->k + p->m * p->n);
    int64_t sets = 3 * (int64_t)(dev->info.l2_bytes > 0 ? dev->info.l2_bytes : 1) / bytes + 2;
    p->sets = sets > MAX_SETS ? MAX_SETS : (int)sets;
    for (int i = 0; i < p->sets; i++) {
        p->a[i] = random_buffer(dev, (size_t)(p->m * p->k), r);
        p->b[i] = random_buffer(dev, (size_t)(p->n * p->k), r);
        if (dev->mem_alloc(&p->d[i], (size_t)(2 * p->m * p->n))) p->d[i] = 0;
        if (!p->a[i] || !p->b[i] || !p->d[i]) return false;
    }
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

/* Column-major D^T (n x m) = B (as k x n, transposed) times A (as k x m). */
static int launch_peer(const struct cublas *c, const struct problem *p, int set)
{
    float one = 1, zero = 0;
    const void *a, *b;
    void *d;
    memcpy(&a, &p->a[set], sizeof a);
    memcpy(&b, &p->b[set], sizeof b);
    memcpy(&d, &p->d[set], sizeof d);
    return c->gemm(c->handle, CUBLAS_T, CUBLAS_N, (int)p->n, (int)p->m, (int)p->k, &one, b,
                   CUDA_BF16, (int)p->k, a, CUDA_BF16, (int)p->k, &zero, d, CUDA_BF16, (int)p->n,
                   COMPUTE_32F, -1);
}

/* Seconds per launch of `count` launches. */
static double chunk(struct events *e, const struct cublas *c, const struct problem *p, int count)
{
    float ms = 0;
    e->record(e->start, NULL);
    for (int i = 0; i < count; i++)
        if (c ? launch_peer(c, p, i % p->sets) : problem_launch(p, i % p->sets)) return NAN;
    e->record(e->stop, NULL);
    if (e->wait(e->stop)) return NAN;
    e->elapsed(&ms, e->start, e->stop);
    return (double)ms * 1e-3 / count;
}

/* Largest difference between the two sides' outputs, relative to the largest output. */
static double disagreement(struct device *dev, const struct cublas *c, const struct problem *p)
{
    size_t count = (size_t)(p->m * p->n);
    uint16_t *x = calloc(count, sizeof *x), *y = calloc(count, sizeof *y);
    double worst = 0, largest = 0;
    if (!x || !y) {
        free(x);
        free(y);
        return INFINITY;
    }
    if (problem_launch(p, 0) || dev->synchronize() || dev->to_host(x, p->d[0], 2 * count) ||
        launch_peer(c, p, 0) || dev->synchronize() || dev->to_host(y, p->d[0], 2 * count))
        worst = INFINITY;
    for (size_t i = 0; worst < (double)INFINITY && i < count; i++) {
        worst = fmax(worst, fabs(bf16_to_double(x[i]) - bf16_to_double(y[i])));
        largest = fmax(largest, fabs(bf16_to_double(y[i])));
    }
    free(x);
    free(y);
    return worst / (largest > 0 ? largest : 1);
}

static void bench_shape(struct device *dev, struct events *e, const struct cublas *c,
                        struct problem *p)
{
    double ours[CHUNKS], peer[CHUNKS], t_ours,
        t_peer = NAN, flop = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    double differ = c ? disagreement(dev, c, p) : NAN;
    double once = chunk(e, NULL, p, 4);
    int count = (int)fmin(400, fmax(2, 3e-3 / once));
    chunk(e, NULL, p, count);
    if (c) chunk(e, c, p, count);
    for (int i = 0; i < CHUNKS; i++) {
        ours[i] = chunk(e, NULL, p, count);
        if (c) peer[i] = chunk(e, c, p, count);
    }
    t_ours = bench_median(ours, CHUNKS);
    if (c) t_peer = bench_median(peer, CHUNKS);
    printf("%6lld x %5lld x %5lld  %9.1f %8.1f  %9.1f %8.1f  %6.3f  %8.1e\n", (long long)p->m,
           (long long)p->n, (long long)p->k, 1e6 * t_ours, 1e-12 * flop / t_ours, 1e6 * t_peer,
           1e-12 * flop / t_peer, t_peer / t_ours, differ);
}

static void bench_gpu(struct device *dev)
{
    static const int64_t shapes[][3] = {{1024, 1024, 1024},   {2048, 2048, 2048},
                                        {4096, 4096, 4096},   {8192, 8192, 8192},
                                        {16384, 16384, 4096}, {4096, 7168, 2048},
                                        {128, 4096, 7168},    {64, 8192, 8192}};
    struct events e = {0};
    struct cublas c;
    struct rng r = {test_seed()};
    bool peer = cublas_open(&c);
    if (!events_open(dev->driver, &e)) return;
    printf("GEMM, bf16 in and out, on %s; peer: %s\n", dev->info.name,
           peer ? "cuBLAS (cublasGemmEx)" : "none found");
    printf("%22s  %9s %8s  %9s %8s  %6s  %8s\n", "m x n x k", "hewn us", "TFLOP/s", "peer us",
           "TFLOP/s", "ratio", "differ");
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct problem p = {.m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2]};
        if (problem_open(dev, &p, &r)) bench_shape(dev, &e, peer ? &c : NULL, &p);
        problem_close(dev, &p);
    }
    printf("ratio: peer time / hewn time (above 1 hewn is faster); differ: largest difference / "
           "largest value\n");
}

/* ---- host cost of a launch ---- */

static const char empty_ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                                ".visible .entry nothing(.param .align 64 .b8 maps[384],\n"
                                ".param .align 4 .b8 rest[36])\n{\n ret;\n}\n";

struct raw_config { /* CUlaunchConfig */
    unsigned grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned attribute_count;
};

/* Interleaved batches of both, so that clock drift hits both alike; microseconds per launch. */
static void bench_host(struct device *dev)
{
    int (*load)(void **, const void *), (*find)(void **, void *, const char *);
    int (*launch)(const struct raw_config *, void *, void **, void **);
    void *module = NULL, *function = NULL;
    struct problem p = {.m = 128, .n = 256, .k = 64};
    struct raw_config config = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
    static unsigned char maps[384], rest[36];
    void *params[] = {maps, rest};
    struct rng r = {test_seed()};
    double ours[CHUNKS * 4], raw[CHUNKS * 4];
    enum { BATCH = 400 };
    bench_resolve(dev->driver, "cuModuleLoadData", &load);
    bench_resolve(dev->driver, "cuModuleGetFunction", &find);
    bench_resolve(dev->driver, "cuLaunchKernelEx", &launch);
    if (!load || !find || !launch || load(&module, empty_ptx) ||
        find(&function, module, "nothing") || !problem_open(dev, &p, &r))
        return;
    for (int i = 0; i < CHUNKS * 4; i++) {
        double start = bench_now();
        for (int j = 0; j < BATCH; j++) launch(&config, function, params, NULL);
        raw[i] = (bench_now() - start) / BATCH;
        dev->synchronize();
        start = bench_now();
        for (int j = 0; j < BATCH; j++) problem_launch(&p, 0);
        ours[i] = (bench_now() - start) / BATCH;
        dev->synchronize();
    }
    double a = 1e6 * bench_median(ours, CHUNKS * 4), b = 1e6 * bench_median(raw, CHUNKS * 4);
    printf("host cost of one launch: hewn_gemm_run %.2f us, raw cuLaunchKernelEx %.2f us, "
           "difference %.2f us\n",
           a, b, a - b);
    problem_close(dev, &p);
}

int main(int argc, char **argv)
{
    struct device dev;
    hewn_error err = {0};
    /* --work INDEX SIZE PEER: one process of bench_sim.c's table */
    if (argc == 5 && !strcmp(argv[1], "--work"))
        return bench_work(atoi(argv[2]), (unsigned)atoi(argv[3]), atoi(argv[4]), STDOUT_FILENO);
    test_begin("bench", argc, argv);
    if (!device_open(&dev, &err)) {
        fprintf(stderr, "bench: %s\n", err.message);
        return 1;
    }
    if (dev.info.simulated) {
        device_close(&dev);
        return bench_simulator();
    }
    bench_gpu(&dev);
    bench_host(&dev);
    device_close(&dev);
    return 0;
}
