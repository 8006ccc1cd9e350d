/* What the files of the program `rates` share: a launch that is timed by itself. */
#ifndef TESTS_RATES_H
#define TESTS_RATES_H

#include "lib/device.h"

#include <stdbool.h>
#include <stdint.h>

enum { RESULTS = 4, MAX_CTAS = 4096 };

/* The kernel "k" of a text, launched with (out, base, span, chunk, stages, n, map). CTA i of it writes u64
 * out[4 * i + 0 ... 2]: cycles, start and end in nanoseconds. */
struct job {
    const char *text;
    uint64_t span;
    uint32_t chunk, stages, n, ctas, threads, shared;
    void *map; /* a tensor map; NULL where the kernel has none */
};

struct answer {
    double cycles;      /* median of the CTAs */
    double nanoseconds; /* from the first's start to the last's end */
    double clock_mhz;   /* of the median CTA */
};

/* The second run counts: the first warms caches and clocks. */
bool measure(struct device *d, hewn_deviceptr out, hewn_deviceptr base, struct job j,
             struct answer *answer);

/* Rows at random, by each way that a kernel has to load them. */
bool rates_of_rows(struct device *d, hewn_deviceptr out, hewn_deviceptr base, uint64_t whole,
                   uint32_t sms);

#endif
