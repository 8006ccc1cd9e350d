/*
 * What the machine says of itself: device, driver, limits, and the clocks and power seen while sections
 * run. Clocks and power come from NVML (libnvidia-ml.so.1, opened at run time); without it they stay out.
 */
#ifndef TESTS_BENCH_METER_H
#define TESTS_BENCH_METER_H

#include "bench_report.h"
#include "lib/device.h"

struct bench_meter {
    void *gpu; /* NVML's handle; NULL: no NVML */
    int (*clock)(void *gpu, int which, unsigned *mhz);
    int (*power)(void *gpu, unsigned *milliwatts);
    int (*reasons)(void *gpu, unsigned long long *bits);
    unsigned sm_least, sm_most, memory_most, watts_most; /* of the samples since the last report */
    int samples, capped;                                 /* capped: power held the clock down */
};

/* Opens the meter and adds the facts of device and driver. */
void bench_meter_open(struct bench_meter *m, struct device *dev, struct bench_report *r);
/* One sample; call while the GPU works. */
void bench_meter_sample(struct bench_meter *m);
/* Adds a note of the samples since the last one to the section ("": a fact), and forgets them. */
void bench_meter_note(struct bench_meter *m, struct bench_report *r, const char *section);

#endif
