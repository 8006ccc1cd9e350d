/*
 * The thread that reads the tables. A wait that blocks leaves its record until it is over. A wait that polls
 * writes its record again and again; the thread clears it after reading, so that one which does not come back for
 * POLL_SECONDS is over. When no record comes, goes or changes for the time that the user gave, it is a hang.
 */
#include "watch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TICK_NANOSECONDS 50000000
#define POLL_SECONDS     1.5
#define STOP_SECONDS     3.0
#define AFTER_SECONDS    10.0

enum { EXIT_HUNG = 124 };

/* What is known of a slot. */
struct seen {
    struct watch_record record;
    double since, last; /* it stands there since; it was read last */
    bool polls;
};
static struct seen *seen[WATCH_TABLES]; /* of each table its slots */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void tick(void)
{
    const struct timespec pause = {.tv_nsec = TICK_NANOSECONDS};

    nanosleep(&pause, NULL);
}

static double after(void)
{
    const char *text = getenv("HEWN_WATCH_AFTER");
    const double seconds = text ? strtod(text, NULL) : 0;

    return seconds > 0 ? seconds : AFTER_SECONDS;
}

/* Copies a slot; a poll's is cleared. False: nobody waits there. */
static bool read_slot(volatile struct watch_record *slot, struct watch_record *out, bool *polls)
{
    const struct watched_module *m;
    const struct watch_site *site;
    const uint32_t number = slot->site;

    if (!number) return false;
    out->site = number;
    out->cta_x = slot->cta_x;
    out->cta_yz = slot->cta_yz;
    out->who = slot->who;
    out->barrier = slot->barrier;
    out->value = slot->value;
    out->offset = slot->offset;
    site = watched_site(number, &m);
    if (!site) return false;
    if (site->kind == WATCH_BLOCK || !site->has_barrier)
        out->barrier = out->value = out->offset = 0;
    out->unused = 0;
    *polls = site->kind != WATCH_BLOCK;
    if (*polls) slot->site = 0;
    return true;
}

/* Reads a table's slots once, as `look` does. */
static bool look_at(volatile struct watch_record *slots, struct seen *known, double time,
                    uint32_t *waiting, bool *polls)
{
    bool moved = false;

    for (uint32_t i = 0; i < WATCH_SLOTS; i++) {
        struct seen *s = &known[i];
        struct watch_record r;
        bool poll = false;

        if (read_slot(&slots[i], &r, &poll)) {
            if (memcmp(&r, &s->record, sizeof r) != 0) {
                s->record = r;
                s->since = time;
                moved = true;
            }
            s->last = time;
            s->polls = poll;
            *polls |= poll;
        } else if (s->record.site && (!s->polls || time - s->last > POLL_SECONDS)) {
            s->record.site = 0;
            moved = true;
        }
        *waiting += s->record.site != 0;
    }
    return moved;
}

/* Reads every slot once; true when something has moved. *polls: some that poll were there. */
static bool look(double time, uint32_t *waiting, bool *polls)
{
    bool moved = false;

    *waiting = 0;
    *polls = false;
    for (uint32_t t = 0; t < WATCH_TABLES; t++) {
        volatile struct watch_record *slots = watch_slots(t);

        if (!slots) continue;
        if (!seen[t]) seen[t] = calloc(WATCH_SLOTS, sizeof *seen[t]);
        if (seen[t]) moved |= look_at(slots, seen[t], time, waiting, polls);
    }
    return moved;
}

static void tell(uint32_t waiting, double seconds)
{
    struct waiting *list = calloc(waiting, sizeof *list);
    uint32_t n = 0;

    for (uint32_t i = 0; list && i < WATCH_TABLES * WATCH_SLOTS && n < waiting; i++) {
        const struct seen *s = seen[i / WATCH_SLOTS];

        if (!s || !s[i % WATCH_SLOTS].record.site) continue;
        list[n].record = s[i % WATCH_SLOTS].record;
        list[n++].since = s[i % WATCH_SLOTS].since;
    }
    tell_hang(list, n, seconds);
    free(list);
}

/* Polls end their kernel now; where nobody polls, nothing but the end of the process frees the device. */
static void stop(void)
{
    const double begin = now();
    double last = begin;
    uint32_t waiting;
    bool polls, any = false;

    for (uint32_t t = 0; t < WATCH_TABLES; t++)
        for (uint32_t i = 0; seen[t] && i < WATCH_SLOTS; i++)
            any |= seen[t][i].record.site && seen[t][i].polls;
    watch_stop(true);
    while (any && now() - begin < STOP_SECONDS && now() - last < POLL_SECONDS) {
        tick();
        look(now(), &waiting, &polls);
        if (polls) last = now();
    }
    if (!any || now() - begin >= STOP_SECONDS) {
        watch_note("%s, so this process is ended", any ? "the waits do not end" : "no wait polls");
        fflush(NULL);
        _exit(EXIT_HUNG);
    }
    watch_note("the kernel was ended by a store to an invalid address (700)");
    watch_clear();
    for (uint32_t t = 0; t < WATCH_TABLES; t++)
        if (seen[t]) memset(seen[t], 0, WATCH_SLOTS * sizeof *seen[t]);
    watch_stop(false);
}

static void *watch(void *unused)
{
    const double limit = after();
    double moved = now();

    (void)unused;
    for (;;) {
        uint32_t waiting;
        bool polls;
        double time;

        tick();
        time = now();
        if (look(time, &waiting, &polls) || !waiting) moved = time;
        if (time - moved < limit) continue;
        tell(waiting, time - moved);
        stop();
        moved = now();
    }
    return NULL;
}

/* Starts the thread with the first table. */
bool watch_start(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, watch, NULL)) return false;
    pthread_detach(thread);
    return true;
}
