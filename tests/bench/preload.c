/*
 * Times hewn_family_preload: how long a context takes to load every module of a family that its device
 * runs. The context's device and driver stay open between runs.
 *
 *     build/tests/preload [RUNS]      prints the fastest and the median run of each family
 */
#include "hewn.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 20, RUNS_MOST = 1000 };

static double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Preloads `family` into a context of its own; the time, below 0 after a failure. */
static double time_once(hewn_driver *driver, const hewn_family *family, hewn_error *err)
{
    hewn_context *context = NULL;
    if (hewn_context_attach_primary(driver, 0, &context, err)) return -1;
    double start = milliseconds();
    int status = hewn_family_preload(context, family, err);
    double time = milliseconds() - start;
    hewn_context_detach(context);
    return status ? -1 : time;
}

static int time_family(hewn_driver *driver, const char *name, const hewn_family *family, int runs)
{
    double times[RUNS_MOST] = {0};
    hewn_error err = {0};
    for (int i = 0; i < runs; i++) {
        times[i] = time_once(driver, family, &err);
        if (times[i] < 0) {
            printf("%-9s %s\n", name, err.message);
            return 1;
        }
    }
    qsort(times, (size_t)runs, sizeof times[0], by_value);
    printf("%-9s preload of all modules: fastest %8.3f ms, median %8.3f ms, of %d runs\n", name,
           times[0], times[runs / 2], runs);
    return 0;
}

int main(int argc, char **argv)
{
    int runs = argc > 1 ? atoi(argv[1]) : RUNS;
    hewn_driver *driver = NULL;
    hewn_context *kept = NULL; /* the primary context lives as long as this */
    hewn_error err = {0};
    if (runs < 1 || runs > RUNS_MOST) {
        fprintf(stderr, "usage: preload [RUNS], 1 to %d\n", RUNS_MOST);
        return 2;
    }
    if (hewn_driver_open(NULL, &driver, &err) ||
        hewn_context_attach_primary(driver, 0, &kept, &err)) {
        fprintf(stderr, "preload: %s\n", err.message);
        hewn_driver_close(driver);
        return 1;
    }
    int failed = time_family(driver, "gemm", hewn_gemm_family(), runs) +
                 time_family(driver, "attention", hewn_attention_family(), runs);
    hewn_context_detach(kept);
    hewn_driver_close(driver);
    return failed != 0;
}
