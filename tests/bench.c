/*
 * Speed, as ratios against a named peer in the same run. On a GPU: hewn_gemm beside cuBLASLt
 * (bench_gemm.c), and the host cost of one launch beside a raw cuLaunchKernelEx. On the simulator:
 * bench_sim.c.
 */
#include "bench.h"

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
    test_begin("bench", 1, argv);
    if (!device_open(&dev, &err)) {
        fprintf(stderr, "bench: %s\n", err.message);
        return 1;
    }
    if (dev.info.simulated) {
        device_close(&dev);
        return bench_simulator();
    }
    bench_gemm(&dev, argc, argv);
    bench_host(&dev);
    device_close(&dev);
    return 0;
}
