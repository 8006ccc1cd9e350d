/*
 * The host's side of plans and runs, in microseconds: planning with the kernel loaded, one run, and the
 * launches that it makes, made again by the driver alone with the same attributes and parameters.
 */
#include "bench.h"
#include "lib/counting_driver.h"
#include "lib/host_work.h"

#include <math.h>
#include <stdio.h>

enum {
    SAMPLES = 61,
    LAUNCHES = 200,
    PLANS = 20
}; /* what is in flight stays below a stream's 1024 */

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
    device_close(&dev);
}
