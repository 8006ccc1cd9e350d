/* The line that shows how far a launch is: HEWN_SIM_PROGRESS=1, on a terminal only. */
#include "machine/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { REDRAW_NANOSECONDS = 200000000 };

static bool wanted(void)
{
    const char *text = getenv("HEWN_SIM_PROGRESS");
    return text && strcmp(text, "1") == 0 && isatty(STDERR_FILENO);
}

static uint64_t monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

void progress_begin(struct launch *l)
{
    l->ctas_done = 0;
    l->drawn = false;
    l->shown = wanted() ? monotonic() : 0;
}

void progress_cta(struct launch *l)
{
    uint32_t done = __atomic_add_fetch(&l->ctas_done, 1, __ATOMIC_RELAXED);
    uint64_t shown = __atomic_load_n(&l->shown, __ATOMIC_RELAXED), now;
    if (!shown) return;
    now = monotonic();
    if (now - shown < REDRAW_NANOSECONDS) return;
    /* Whoever moves the time forward draws; the others have nothing newer to say. */
    if (!__atomic_compare_exchange_n(&l->shown, &shown, now, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED)) {
        return;
    }
    fprintf(stderr, "\r\033[K%s: %u/%u CTAs", l->kernel->entry->name, done,
            l->grid[0] * l->grid[1] * l->grid[2]);
    fflush(stderr);
    __atomic_store_n(&l->drawn, true, __ATOMIC_RELAXED);
}

void progress_end(struct launch *l)
{
    if (l->drawn) fputs("\r\033[K", stderr);
}
