/*
 * The table, and the thread that reads it. A wait that blocks leaves its record until it is over. A wait that polls
 * writes its record again and again; the thread clears it after reading, so that one which does not come back for
 * POLL_SECONDS is over. When no record comes, goes or changes for the time that the user gave, it is a hang.
 */
#include "watch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TICK_NANOSECONDS 50000000
#define POLL_SECONDS     1.5
#define STOP_SECONDS     3.0
#define AFTER_SECONDS    10.0

enum { REGISTER_FLAGS = 3 /* portable, mapped */, EXIT_HUNG = 124 };

static struct watch_table *table;

/* What is known of a slot. */
static struct seen {
    struct watch_record record;
    double since, last; /* it stands there since; it was read last */
    bool polls;
} * seen;

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
static bool read_slot(uint32_t i, struct watch_record *out, bool *polls)
{
    volatile struct watch_record *slot = &table->slots[i];
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

/* Reads every slot once; true when something has moved. *polls: some that poll were there. */
static bool look(double time, uint32_t *waiting, bool *polls)
{
    bool moved = false;

    *waiting = 0;
    *polls = false;
    for (uint32_t i = 0; i < WATCH_SLOTS; i++) {
        struct seen *s = &seen[i];
        struct watch_record r;
        bool poll = false;

        if (read_slot(i, &r, &poll)) {
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

static void tell(uint32_t waiting, double seconds)
{
    struct waiting *list = calloc(waiting, sizeof *list);
    uint32_t n = 0;

    for (uint32_t i = 0; list && i < WATCH_SLOTS && n < waiting; i++) {
        if (!seen[i].record.site) continue;
        list[n].record = seen[i].record;
        list[n++].since = seen[i].since;
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

    for (uint32_t i = 0; i < WATCH_SLOTS; i++) any |= seen[i].record.site && seen[i].polls;
    __atomic_store_n(&table->stop, 1, __ATOMIC_SEQ_CST);
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
    memset(table->slots, 0, sizeof table->slots);
    memset(seen, 0, WATCH_SLOTS * sizeof *seen);
    __atomic_store_n(&table->stop, 0, __ATOMIC_SEQ_CST);
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

/* Memory of our own, which no context takes along when it ends. */
static bool start(void)
{
    pthread_t thread;
    void *memory =
        mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) return false;
    seen = calloc(WATCH_SLOTS, sizeof *seen);
    table = memory;
    if (seen && !pthread_create(&thread, NULL, watch, NULL)) {
        pthread_detach(thread);
        return true;
    }
    munmap(memory, sizeof *table);
    free(seen);
    table = NULL;
    return false;
}

/* For the current context, else for the first device's own. */
static uint64_t mapped(const struct driver_calls *d)
{
    uint64_t address = 0;
    void *context = NULL;
    bool pushed = false;

    if (!d->host_register || !d->host_pointer || !d->ctx_get_current) return 0;
    if (d->ctx_get_current(&context)) return 0;
    if (!context) {
        if (!d->primary_retain || !d->ctx_push || d->primary_retain(&context, 0)) return 0;
        pushed = !d->ctx_push(context);
    }
    if (d->host_pointer(&address, table, 0)) {
        address = 0;
        if (!d->host_register(table, sizeof *table, REGISTER_FLAGS) &&
            d->host_pointer(&address, table, 0))
            address = 0;
    }
    if (pushed) d->ctx_pop(&context);
    return address;
}

uint64_t watch_table_address(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const struct driver_calls *d = driver_calls();
    uint64_t address = 0;

    pthread_mutex_lock(&lock);
    if (d && (table || start())) address = mapped(d);
    pthread_mutex_unlock(&lock);
    return address;
}
