/*
 * Work that cannot run yet, because a stream waits for a value that nothing has written. Everything else executes
 * as it is submitted; what comes behind such a wait stands in one list, in the order of submission, and is
 * looked at again whenever the driver is called. Whoever waits for it on the host gives up the lock meanwhile.
 */
#include "cuda/driver.h"
#include "cuda/running.h"

#include <stdlib.h>
#include <time.h>

enum { GIVE_UP_SECONDS = 10 }; /* of waiting for launches that wait for the host */

enum deferred_kind { DEFERRED_WORK, DEFERRED_RECORD, DEFERRED_WAIT };

struct deferred {
    struct deferred *next;
    struct CUstream_st *stream;
    unsigned long long ticket, awaited; /* awaited: ticket of the record that a wait is for */
    enum deferred_kind kind;
    struct work work;
    struct CUevent_st *event; /* looked up before it is used */
};

/* The legacy stream and the streams that do not opt out of it wait for each other. */
static bool in_order(const struct CUstream_st *a, const struct CUstream_st *b)
{
    if (a == b) return true;
    if (a->context != b->context || a->legacy == b->legacy) return false;
    return !((a->legacy ? b : a)->flags & HEWN_CU_STREAM_NON_BLOCKING);
}

bool deferred_before(const struct CUstream_st *stream)
{
    for (const struct deferred *p = driver.deferred; p; p = p->next)
        if (in_order(p->stream, stream)) return true;
    return false;
}

bool deferred_of(const struct CUstream_st *stream)
{
    for (const struct deferred *p = driver.deferred; p; p = p->next)
        if (p->stream == stream) return true;
    return false;
}

static bool ticket_deferred(unsigned long long ticket)
{
    for (const struct deferred *p = driver.deferred; p; p = p->next)
        if (p->ticket == ticket) return true;
    return false;
}

/* The ticket of the last record of the event that is still to come, or 0. */
static unsigned long long record_deferred(const struct CUevent_st *event)
{
    unsigned long long ticket = 0;

    for (const struct deferred *p = driver.deferred; p; p = p->next)
        if (p->kind == DEFERRED_RECORD && p->event == event) ticket = p->ticket;
    return ticket;
}

bool deferred_event(const struct CUevent_st *event)
{
    return record_deferred(event) != 0;
}

/* Takes over `work`. */
static int append(struct CUstream_st *stream, enum deferred_kind kind, struct work *work,
                  struct CUevent_st *event)
{
    struct deferred *fresh = calloc(1, sizeof *fresh), **link = &driver.deferred;

    if (!fresh) {
        if (work) work_free(work);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    fresh->stream = stream;
    fresh->kind = kind;
    fresh->event = event;
    if (kind == DEFERRED_WAIT) fresh->awaited = record_deferred(event);
    if (work) fresh->work = *work;
    fresh->ticket = ++driver.next_id;
    while (*link) link = &(*link)->next;
    *link = fresh;
    return 0;
}

int deferred_work(struct CUstream_st *stream, struct work *work)
{
    return append(stream, DEFERRED_WORK, work, NULL);
}

int deferred_record(struct CUstream_st *stream, struct CUevent_st *event)
{
    return append(stream, DEFERRED_RECORD, NULL, event);
}

int deferred_wait(struct CUstream_st *stream, struct CUevent_st *event)
{
    return append(stream, DEFERRED_WAIT, NULL, event);
}

/* ---- progress ---- */

static bool blocked(const struct deferred *item)
{
    for (const struct deferred *p = driver.deferred; p != item; p = p->next)
        if (in_order(p->stream, item->stream)) return true;
    return item->kind == DEFERRED_WAIT && ticket_deferred(item->awaited);
}

/* A stream that a program destroyed goes with its last work. */
static void drop(struct deferred **link)
{
    struct deferred *p = *link;
    struct CUstream_st *stream = p->stream;

    *link = p->next;
    if (p->kind == DEFERRED_WORK) work_free(&p->work);
    free(p);
    if (!stream->destroyed || deferred_of(stream)) return;
    beside_close(stream);
    free(stream);
}

/* False while it has to wait. */
static bool execute(struct deferred *p)
{
    struct CUctx_st *context = p->stream->context;
    struct CUevent_st *event = handle_get(p->event, HANDLE_EVENT);
    int rc = 0;

    beside_enter(p->stream);
    if (p->kind == DEFERRED_WAIT) beside_wait(p->stream, event);
    if (p->kind == DEFERRED_RECORD && event) rc = event_record(event, NULL);
    if (p->kind == DEFERRED_WORK && !context->fault) rc = work_run(context, &p->work);
    if (rc == HEWN_CU_NOT_READY) return false;
    if (rc && !context->fault) context->fault = rc; /* the call that submitted it has returned */
    return true;
}

void deferred_progress(void)
{
    struct deferred **link = &driver.deferred;

    if (driver.progressing) return;
    driver.progressing = true;
    while (*link) {
        if (blocked(*link) || !execute(*link)) {
            link = &(*link)->next;
            continue;
        }
        drop(link);
        link = &driver.deferred; /* it may have let earlier ones go on */
    }
    driver.progressing = false;
}

void deferred_clear(const struct CUctx_st *context)
{
    struct deferred **link = &driver.deferred;

    while (*link) {
        if ((*link)->stream->context == context)
            drop(link);
        else
            link = &(*link)->next;
    }
}

/* ---- waiting on the host ---- */

/* Another thread may have destroyed the stream meanwhile. */
static bool stream_waits(const void *what)
{
    bool live = handle_get(what, HANDLE_STREAM);

    for (const struct deferred *p = driver.deferred; p; p = p->next) {
        const struct CUctx_st *c = p->stream->context;
        if (p->stream == what) return true;
        if (!live && what != &c->legacy_stream && what != &c->thread_stream) continue;
        if (in_order(p->stream, what)) return true;
    }
    return false;
}

static bool context_waits(const void *context)
{
    for (const struct deferred *p = driver.deferred; p; p = p->next)
        if (p->stream->context == context) return true;
    return false;
}

static bool event_waits(const void *event)
{
    return deferred_event(event);
}

/* Whoever should write what launches poll has had the time. */
static void give_up(void)
{
    for (struct deferred *p = driver.deferred; p; p = p->next)
        if (p->work.running) running_give_up(p->work.running);
}

/* Another thread, or memory that it writes to, ends this. */
static void wait_while(bool (*waits)(const void *what), const void *what)
{
    const struct timespec pause = {.tv_nsec = 100000};
    struct timespec begin, now;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (deferred_progress(), waits(what)) {
        driver_unlock();
        nanosleep(&pause, NULL);
        driver_lock();
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (!driver.settings.hang && now.tv_sec - begin.tv_sec > GIVE_UP_SECONDS) give_up();
    }
}

void deferred_finish_stream(const struct CUstream_st *stream)
{
    if (driver.deferred) wait_while(stream_waits, stream);
}

void deferred_finish_context(const struct CUctx_st *context)
{
    if (driver.deferred) wait_while(context_waits, context);
}

void deferred_finish_event(const struct CUevent_st *event)
{
    if (driver.deferred) wait_while(event_waits, event);
}
