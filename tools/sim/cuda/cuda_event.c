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

void event_record(struct CUevent_st *event, const struct CUstream_st *stream)
{
    event->capture = stream->capture;
    event->recorded = !stream->capture;
    event->time_ns = clock_ns();
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
    handle_drop(e);
    free(e);
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
    if (flags && s->capture) return HEWN_CU_NOT_SUPPORTED; /* event nodes are not modelled */
    rc = capture_implicit(s);
    if (!rc) event_record(e, s);
    return rc;
}

/* All work before it is done by the time it is recorded; an event never recorded counts as done. */
static int ask(struct CUevent_st *event)
{
    if (!event->capture) return 0;
    graph_invalidate(event->capture);
    return HEWN_CU_CAPTURED_EVENT;
}

int cuEventQuery(hewn_cu_event event)
{
    struct call call CALL_SCOPE;
    struct CUevent_st *e;

    if (enter_event(&call, CALL_PLAIN, event, &e)) return call.rc;
    return ask(e);
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
    if (e->capture) return capture_join(s, e->capture);
    if (s->capture && e->recorded) { /* a captured graph may not depend on work outside it */
        graph_invalidate(s->capture);
        return HEWN_CU_STREAM_CAPTURE_ISOLATION;
    }
    return 0;
}
