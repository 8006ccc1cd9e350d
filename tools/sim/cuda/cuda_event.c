/* Events. Their clock is the host's: streams execute at once, so time between two events is what
 * the simulation took, not a prediction of the device's. */
#include "cuda/driver.h"

#include <stdlib.h>
#include <time.h>

enum { EVENT_FLAGS = 7 }; /* blocking sync, disable timing, interprocess */

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

int event_record(struct CUevent_st *event, struct CUstream_st *stream)
{
    if (stream && stream->capture) {
        event->recorded = false;
        return capture_event(event, stream);
    }
    event_leaves(event);
    event->recorded = true;
    beside_record(event, stream);
    event->time_ns = clock_ns();
    return 0;
}

void event_destroy(struct CUevent_st *event)
{
    handle_drop(event);
    event_leaves(event);
    free(event);
}

/* Enters a call about an event. */
static int enter_event(struct call *call, unsigned needs, hewn_cu_event handle,
                       struct CUevent_st **event)
{
    int rc = call_enter(call, needs);

    *event = rc ? NULL : handle_get(handle, HANDLE_EVENT);
    if (!rc && !*event) rc = call->rc = HEWN_CU_INVALID_HANDLE;
    return rc;
}

int cuEventCreate(hewn_cu_event *event, unsigned flags)
{
    struct call call CALL_SCOPE;
    struct CUevent_st *fresh;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!event || flags > EVENT_FLAGS) return HEWN_CU_INVALID_VALUE;
    fresh = calloc(1, sizeof *fresh);
    if (!fresh) return HEWN_CU_OUT_OF_MEMORY;
    fresh->context = call.context;
    fresh->flags = flags;
    if (handle_add(fresh, HANDLE_EVENT, fresh, call.context)) {
        free(fresh);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    *event = fresh;
    return 0;
}

int cuEventDestroy_v2(hewn_cu_event event)
{
    struct call call CALL_SCOPE;
    struct CUevent_st *e;

    if (enter_event(&call, CALL_RELEASE, event, &e)) return call.rc;
    event_destroy(e);
    return call.context->fault;
}

int cuEventRecord(hewn_cu_event event, hewn_cu_stream stream)
{
    return cuEventRecordWithFlags(event, stream, 0);
}

int cuEventRecordWithFlags(hewn_cu_event event, hewn_cu_stream stream, unsigned flags)
{
    enum { EXTERNAL = 1 };
    struct call call CALL_SCOPE;
    struct CUevent_st *e;
    struct CUstream_st *s;
    int rc;

    if (enter_event(&call, CALL_PLAIN, event, &e)) return call.rc;
    s = stream_named(call.context, stream);
    if (!s || e->context != call.context) return HEWN_CU_INVALID_HANDLE;
    if (flags > EXTERNAL) return HEWN_CU_INVALID_VALUE;
    rc = capture_implicit(s);
    if (rc) return rc;
    if (flags && s->capture) return capture_external(s, e, true);
    if (!s->capture && deferred_before(s)) return deferred_record(s, e);
    return event_record(e, s);
}

/* All work before it is done by the time it is recorded; an event never recorded counts as done. */
static int ask(struct CUevent_st *event)
{
    if (!event->capture) return 0;
    capture_invalidate(event->capture);
    return HEWN_CU_CAPTURED_EVENT;
}

int cuEventQuery(hewn_cu_event event)
{
    struct call call CALL_SCOPE;
    struct CUevent_st *e;

    int rc;

    if (enter_event(&call, CALL_PLAIN, event, &e)) return call.rc;
    rc = ask(e);
    if (!rc && deferred_event(e)) rc = HEWN_CU_NOT_READY;
    if (!rc) beside_host_event(e);
    return rc;
}

int cuEventSynchronize(hewn_cu_event event)
{
    struct call call CALL_SCOPE;
    struct CUevent_st *e;
    int rc;

    if (enter_event(&call, CALL_PLAIN | SHOWS_PRINTED, event, &e)) return call.rc;
    rc = ask(e);
    if (rc) return rc;
    launch_settled();
    deferred_finish_event(e);
    if (handle_get(event, HANDLE_EVENT)) beside_host_event(e); /* else destroyed meanwhile */
    if (call.context->fault) return call.context->fault;
    rc = call.context->strict_fault;
    call.context->strict_fault = 0;
    return rc;
}

int cuEventElapsedTime_v2(float *milliseconds, hewn_cu_event start, hewn_cu_event end)
{
    struct call call CALL_SCOPE;
    struct CUevent_st *a, *b;

    if (enter_event(&call, CALL_PLAIN, start, &a)) return call.rc;
    b = handle_get(end, HANDLE_EVENT);
    if (!milliseconds) return HEWN_CU_INVALID_VALUE;
    if (!b || !a->recorded || !b->recorded || (a->flags | b->flags) & HEWN_CU_EVENT_DISABLE_TIMING)
        return HEWN_CU_INVALID_HANDLE;
    if (deferred_event(a) || deferred_event(b)) return HEWN_CU_NOT_READY;
    beside_host_event(a);
    beside_host_event(b);
    *milliseconds = (float)((double)(int64_t)(b->time_ns - a->time_ns) / 1e6);
    return 0;
}

int cuStreamWaitEvent(hewn_cu_stream stream, hewn_cu_event event, unsigned flags)
{
    enum { EXTERNAL = 1 };
    struct call call CALL_SCOPE;
    struct CUevent_st *e;
    struct CUstream_st *s;

    if (enter_event(&call, CALL_PLAIN, event, &e)) return call.rc;
    s = stream_named(call.context, stream);
    if (!s) return HEWN_CU_INVALID_HANDLE;
    if (flags > EXTERNAL) return HEWN_CU_INVALID_VALUE;
    if (flags && s->capture) return capture_external(s, e, false);
    if (e->capture) return capture_join(s, e);
    if (s->capture && e->recorded) { /* a captured graph may not depend on work outside it */
        capture_invalidate(s->capture);
        return HEWN_CU_STREAM_CAPTURE_ISOLATION;
    }
    if (!s->capture && (deferred_event(e) || deferred_before(s))) return deferred_wait(s, e);
    if (!s->capture) beside_wait(s, e);
    return 0;
}
