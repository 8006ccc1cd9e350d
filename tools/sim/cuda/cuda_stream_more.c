/* Streams, continued: callbacks, attributes, and events of a whole context. */
#include "cuda/driver.h"

#include <stdlib.h>

/* ---- callbacks ---- */

struct callback {
    hewn_cu_stream_callback *function;
    hewn_cu_stream stream;
    void *user;
};

static void run_callback(void *user)
{
    const struct callback *c = user;
    c->function(c->stream, 0, c->user);
}

/* Unlike cuLaunchHostFunc it cannot become part of a graph. */
int cuStreamAddCallback(hewn_cu_stream stream, hewn_cu_stream_callback *function, void *user,
                        unsigned flags)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;
    struct callback *callback;
    struct work work = {.kind = WORK_HOST, .host = {.function = run_callback, .owned = true}};

    if (enter_stream(&call, CALL_PLAIN, stream, &s)) return call.rc;
    if (!function || flags) return HEWN_CU_INVALID_VALUE;
    if (s->capture) {
        capture_invalidate(s->capture);
        return HEWN_CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    callback = malloc(sizeof *callback);
    if (!callback) return HEWN_CU_OUT_OF_MEMORY;
    *callback = (struct callback){function, stream, user};
    work.host.user = callback;
    return stream_submit(s, &work);
}

/* ---- attributes ---- */

static bool is_stream_attribute(int id)
{
    switch (id) {
    case HEWN_CU_LAUNCH_ACCESS_POLICY_WINDOW:
    case HEWN_CU_LAUNCH_SYNCHRONIZATION_POLICY:
    case HEWN_CU_LAUNCH_PRIORITY:
    case HEWN_CU_LAUNCH_MEM_SYNC_DOMAIN_MAP:
    case HEWN_CU_LAUNCH_MEM_SYNC_DOMAIN: return true;
    default: return false;
    }
}

static bool make_attributes(struct CUstream_st *s)
{
    if (!s->attributes) s->attributes = calloc(HEWN_CU_LAUNCH_COUNT, sizeof *s->attributes);
    return s->attributes;
}

int cuStreamSetAttribute(hewn_cu_stream stream, int id, const hewn_cu_launch_value *value)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;

    if (enter_stream(&call, CALL_PLAIN, stream, &s)) return call.rc;
    if (!value || !is_stream_attribute(id)) return HEWN_CU_INVALID_VALUE;
    if (!make_attributes(s)) return HEWN_CU_OUT_OF_MEMORY;
    if (id == HEWN_CU_LAUNCH_PRIORITY)
        s->priority = stream_priority(value->flag);
    else
        s->attributes[id] = *value;
    return 0;
}

int cuStreamGetAttribute(hewn_cu_stream stream, int id, hewn_cu_launch_value *value)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;

    if (enter_stream(&call, CALL_PLAIN, stream, &s)) return call.rc;
    if (!value || !is_stream_attribute(id)) return HEWN_CU_INVALID_VALUE;
    memset(value, 0, sizeof *value);
    if (s->attributes) *value = s->attributes[id];
    if (id == HEWN_CU_LAUNCH_PRIORITY) value->flag = s->priority;
    return 0;
}

int cuStreamCopyAttributes(hewn_cu_stream dst, hewn_cu_stream src)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *from, *to;

    if (enter_stream(&call, CALL_PLAIN, src, &from)) return call.rc;
    to = stream_named(call.context, dst);
    if (!to) return HEWN_CU_INVALID_HANDLE;
    if (!make_attributes(from) || !make_attributes(to)) return HEWN_CU_OUT_OF_MEMORY;
    if (from != to)
        memcpy(to->attributes, from->attributes, HEWN_CU_LAUNCH_COUNT * sizeof *to->attributes);
    to->priority = from->priority;
    return 0;
}

/* Who may touch managed memory meanwhile: everybody may here. */
int cuStreamAttachMemAsync(hewn_cu_stream stream, hewn_cu_deviceptr address, size_t bytes,
                           unsigned flags)
{
    enum { GLOBAL = 1, HOST = 2, SINGLE = 4 };
    struct call call CALL_SCOPE;
    struct CUstream_st *s;
    const struct memory *m;

    if (enter_stream(&call, CALL_PLAIN, stream, &s)) return call.rc;
    m = memory_named(address);
    if (!m || m->kind != MEMORY_MANAGED || (bytes && bytes != m->bytes))
        return HEWN_CU_INVALID_VALUE;
    if (flags != GLOBAL && flags != HOST && flags != SINGLE) return HEWN_CU_INVALID_VALUE;
    return s->capture ? HEWN_CU_STREAM_CAPTURE_UNSUPPORTED : 0;
}

/* ---- a context's work as a whole ---- */

/* Enters a call about an event and a context of the program's. */
static int enter_context(struct call *call, hewn_cu_context context, hewn_cu_event event,
                         struct CUevent_st **out)
{
    struct CUctx_st *named;
    size_t at = 0;
    const struct CUstream_st *s;

    *out = NULL;
    if (call_enter(call, CALL_PLAIN)) return call->rc;
    named = context ? handle_get(context, HANDLE_CONTEXT) : call->context;
    *out = handle_get(event, HANDLE_EVENT);
    if (!named || !named->alive) return call->rc = HEWN_CU_INVALID_CONTEXT;
    if (!*out || (*out)->context != named) return call->rc = HEWN_CU_INVALID_HANDLE;
    while ((s = handle_next(HANDLE_STREAM, named, &at))) {
        if (!s->capture) continue;
        capture_invalidate(s->capture);
        return call->rc = HEWN_CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    return 0;
}

int cuCtxRecordEvent(hewn_cu_context context, hewn_cu_event event)
{
    struct call call CALL_SCOPE;
    struct CUevent_st *e;

    if (enter_context(&call, context, event, &e)) return call.rc;
    return event_record(e, NULL);
}

/* All that was recorded is done already. */
int cuCtxWaitEvent(hewn_cu_context context, hewn_cu_event event)
{
    struct call call CALL_SCOPE;
    struct CUevent_st *e;

    if (enter_context(&call, context, event, &e) || !e) return call.rc;
    if (e->capture) return HEWN_CU_CAPTURED_EVENT;
    beside_host_event(e); /* all that comes later is behind it */
    return 0;
}

int cuStreamGetCtx_v2(hewn_cu_stream stream, hewn_cu_context *context, void **green)
{
    int rc = cuStreamGetCtx(stream, context);
    hewn_cu_green part = NULL;

    if (!rc && green) rc = cuStreamGetGreenCtx(stream, &part);
    if (!rc && green) *green = part;
    return rc;
}
