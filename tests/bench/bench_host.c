/*
 * The host's side of plans and runs, in microseconds: planning with the kernel loaded, one run, and the
 * launches that it makes, made again by the driver alone with the same attributes and parameters. Then plans of
 * products of drawn shapes, which choose their kernel among all, and the same with that kernel named.
 */
#include "bench.h"
#include "lib/counting_driver.h"
#include "lib/host_work.h"

#include <math.h>
#include <stdio.h>

enum {
    SAMPLES = 61,
    LAUNCHES = 200,
    PLANS = 20,
    SHAPES = 160, /* drawn */
    AGAIN = 21    /* plans of each */
};                /* what is in flight stays below a stream's 1024 */

struct host_times {
    double plan, run, raw;
};

static bool sample(struct device *dev, struct host_work *w, struct host_times *t)
{
    double start, raw = 0;
    bool ok = true;
    start = bench_now();
    for (int i = 0; ok && i < PLANS; i++) {
        host_work_drop_plan(w);
        ok = !host_work_plan(dev, w, NULL);
    }
    t->plan = (bench_now() - start) / PLANS;
    start = bench_now();
    for (int i = 0; ok && i < LAUNCHES; i++) ok = !host_work_run(w, NULL, NULL);
    t->run = (bench_now() - start) / LAUNCHES;
    ok = ok && !dev->synchronize();
    counting_repeat(LAUNCHES, &raw);
    ok = ok && !host_work_run(w, NULL, NULL);
    counting_repeat(0, NULL);
    t->raw = raw;
    return ok && !dev->synchronize();
}

static void bench_kind(struct device *dev, enum host_kind kind, struct bench_report *report)
{
    struct host_work w;
    struct host_times t;
    hewn_error err = {0};
    double plan[SAMPLES], run[SAMPLES], raw[SAMPLES], above[SAMPLES];
    bool ok = host_work_open(dev, kind, &w, &err);
    if (!ok) {
        bench_note(report, "", "%s: %s", host_kind_name(kind), err.message);
        return;
    }
    ok = sample(dev, &w, &t); /* warms up */
    for (int i = 0; ok && i < SAMPLES; i++) {
        ok = sample(dev, &w, &t);
        plan[i] = t.plan, run[i] = t.run, raw[i] = t.raw, above[i] = t.run - t.raw;
    }
    if (ok)
        bench_note(
            report, "",
            "host, %s, launches %d: plan %.2f us, run %.2f, raw launches %.2f, run - raw %.2f",
            host_kind_name(kind), host_kind_launches(kind), 1e6 * bench_median(plan, SAMPLES),
            1e6 * bench_median(run, SAMPLES), 1e6 * bench_median(raw, SAMPLES),
            1e6 * bench_median(above, SAMPLES));
    host_work_close(dev, &w);
}

/* Seconds of a plan, the median; or NaN. */
static double plan_seconds(struct device *dev, const hewn_gemm_desc *d, hewn_gemm_plan_info *info)
{
    double seconds[AGAIN];
    for (int i = -1; i < AGAIN; i++) { /* the first loads the kernel */
        hewn_gemm_plan *plan = NULL;
        const double start = bench_now();
        if (hewn_gemm_plan_create(dev->context, d, &plan, NULL)) return (double)NAN;
        if (i >= 0) seconds[i] = bench_now() - start;
        info->struct_size = sizeof *info;
        hewn_gemm_plan_describe(plan, info, NULL);
        hewn_gemm_plan_destroy(plan);
    }
    return bench_median(seconds, AGAIN);
}

static int64_t log_uniform(struct rng *r, double from, double to, int64_t grain)
{
    const double u = ((double)rng_unit(r) + 1) / 2;
    return (int64_t)ceil(from * pow(to / from, u) / (double)grain) * grain;
}

/* As bench_products draws them, bf16. */
static void bench_choice(struct device *dev, struct bench_report *report)
{
    static const int grains[] = {64, 64, 8, 1};
    struct rng r = {1};
    double chosen[SHAPES], named[SHAPES];
    int count = 0;
    for (int i = 0; i < SHAPES; i++) {
        const int64_t grain = grains[rng_below(&r, 4)], m = log_uniform(&r, 1, 16384, 1);
        hewn_gemm_plan_info info = {0}, again = {0};
        hewn_gemm_desc d = {.struct_size = sizeof d, .m = m, .in = HEWN_BF16, .out = HEWN_BF16};
        d.n = log_uniform(&r, 64, 28672, grain);
        d.k = log_uniform(&r, 64, 28672, grain);
        chosen[count] = plan_seconds(dev, &d, &info);
        d.variant = info.variant, d.parts = info.parts, d.slices = info.slices;
        named[count] = plan_seconds(dev, &d, &again);
        count += chosen[count] > 0 && named[count] > 0;
    }
    if (!count) return;
    const double median = bench_median(chosen, count); /* sorts */
    bench_note(report, "",
               "host, product, %d drawn shapes: plan that chooses %.2f us, 95th percentile %.2f, "
               "the longest %.2f; with its kernel named %.2f",
               count, 1e6 * median, 1e6 * chosen[count * 95 / 100], 1e6 * chosen[count - 1],
               1e6 * bench_median(named, count));
}

void bench_host(struct bench_report *report)
{
    struct device dev;
    hewn_error err = {0};
    const hewn_driver_options *options = counting_options(&err);
    if (!options || !device_open_with(&dev, options, &err)) {
        fprintf(stderr, "bench: %s\n", err.message);
        return;
    }
    bench_note(report, "",
               "host time, medians of %d; raw launches: the same by cuLaunchKernelEx alone",
               SAMPLES);
    for (int kind = 0; kind < HOST_KINDS; kind++) bench_kind(&dev, (enum host_kind)kind, report);
    bench_choice(&dev, report);
    device_close(&dev);
}
