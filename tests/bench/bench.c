/*
 * Speed, as ratios against a named peer in the same run.
 *
 *   bench [--out FOLDER] [--attention-peer FILE] [--only SECTION] [--launches] [--sweep] [--profile]
 *         [[e4m3:|e4m3-fast:]MxNxK[:VARIANT/PARTS]]…
 *
 * On a GPU: the tensor cores' ceiling, products beside cuBLASLt, attention beside cuDNN, what plans and
 * runs cost the host; tables in FOLDER (bench_report.h). --only: ceiling, gemm,
 * attention or host; --launches, --sweep and --profile as bench.h says; products named instead of all. On
 * the simulator: bench_sim.c, but where --only names a section, that section, whose times mean nothing there.
 */
#include "bench.h"

#include <math.h>
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
    const char *colon = strncmp(text, "e4m3", 4) ? NULL : strchr(text, ':');
    return sscanf(colon ? colon + 1 : text, "%lldx%lldx%lld", &m, &n, &k) == 3;
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
        if (!only || !strcmp(only, "host")) bench_host(&b->report);
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
    b.profile = has(argc, argv, "--profile");
    if (!device_open(&b.dev, &err)) {
        printf("SKIP bench: products beside cuBLASLt, attention beside cuDNN: no GPU answers "
               "here: %s\n",
               err.message);
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
