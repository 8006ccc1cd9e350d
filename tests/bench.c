/*
 * Speed, as ratios against a named peer in the same run. On a GPU: hewn_gemm beside cuBLASLt
 * (bench_gemm.c), and what plans and runs cost the host (bench_host.c; --host: that alone). On the
 * simulator: bench_sim.c.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
    if (argc < 2 || strcmp(argv[1], "--host") != 0) bench_gemm(&dev, argc, argv);
    device_close(&dev);
    bench_host();
    return 0;
}
