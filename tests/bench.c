/*
 * Speed, as ratios against a named peer in the same run.
 *
 *   bench [--out FOLDER] [--attention-peer FILE] [--only SECTION] [--launches] [--sweep]
 *         [MxNxK[:VARIANT/PARTS]]…
 *
 * On a GPU: the tensor cores' ceiling, products beside cuBLASLt, attention beside cuDNN, the host cost of
 * one launch beside a raw cuLaunchKernelEx; tables in FOLDER (bench_report.h). --only: ceiling, gemm,
 * attention or host; --launches and --sweep as bench.h says; products named instead of all. On the
 * simulator: bench_sim.c, but where --only names a section, that section, whose times mean nothing there.
 */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CHUNKS = 15 };

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
static void bench_host(struct bench *b)
{
    struct device *dev = &b->dev;
    int (*load)(void **, const void *), (*find)(void **, void *, const char *);
    int (*launch)(const struct raw_config *, void *, void **, void **);
    void *module = NULL, *function = NULL;
    struct problem p = {.m = 128, .n = 256, .k = 64, .in = HEWN_BF16};
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
    double own = 1e6 * bench_median(ours, CHUNKS * 4), least = 1e6 * bench_median(raw, CHUNKS * 4);
    bench_note(
        &b->report, "",
        "one launch: hewn_gemm_run %.2f us, raw cuLaunchKernelEx %.2f us, difference %.2f us", own,
        least, own - least);
    problem_close(dev, &p);
}

static const char *value_of(int argc, char **argv, const char *name)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], name)) return argv[i + 1];
    return NULL;
}

static bool has(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name)) return true;
    return false;
}

static bool is_product(const char *text)
{
    long long m, n, k;
    return sscanf(text, "%lldx%lldx%lld", &m, &n, &k) == 3;
}

static int bench_gpu(struct bench *b, const char *only, const char *out, int argc, char **argv)
{
    bool good = true, named = false;
    bench_meter_open(&b->meter, &b->dev, &b->report);
    if (!only || !strcmp(only, "ceiling")) bench_ceiling(b);
    for (int i = 1; i < argc; i++)
        if (is_product(argv[i])) named = true, bench_gemm_named(b, argv[i]);
    if (!named) {
        if (!only || !strcmp(only, "gemm")) bench_gemm(b);
        if (!only || !strcmp(only, "attention")) bench_attention(b);
        if (!only || !strcmp(only, "host")) bench_host(b);
    }
    if (out) good = bench_write(&b->report, out);
    if (b->report.wrong) printf("%d rows whose outputs differ\n", b->report.wrong);
    return good && !b->report.wrong ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct bench b = {.ceiling_16 = (double)NAN, .ceiling_8 = (double)NAN};
    const char *only = value_of(argc, argv, "--only"), *out = value_of(argc, argv, "--out");
    hewn_error err = {0};
    int status;
    /* --work INDEX SIZE PEER: one process of bench_sim.c's table */
    if (argc == 5 && !strcmp(argv[1], "--work"))
        return bench_work(atoi(argv[2]), (unsigned)atoi(argv[3]), atoi(argv[4]), STDOUT_FILENO);
    test_begin("bench", 1, argv);
    b.attention_peer = value_of(argc, argv, "--attention-peer");
    b.sweep = has(argc, argv, "--sweep");
    b.launches = has(argc, argv, "--launches");
    if (!device_open(&b.dev, &err)) {
        printf("no GPU here: %s\n", err.message);
        return getenv("HEWN_LIBCUDA") ? 1 : 0;
    }
    if (b.dev.info.simulated && !only) {
        device_close(&b.dev);
        return bench_simulator();
    }
    status = bench_gpu(&b, only, out, argc, argv);
    bench_report_free(&b.report);
    device_close(&b.dev);
    return status;
}
