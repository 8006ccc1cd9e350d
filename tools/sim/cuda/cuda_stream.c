/* Streams, and the work that they execute at once or record. */
#include "cuda/driver.h"
#include "cuda/running.h"

#include <stdlib.h>

enum { PRIORITY_HIGHEST = -5 };

int stream_priority(int asked)
{
    return asked > 0 ? 0 : asked < PRIORITY_HIGHEST ? PRIORITY_HIGHEST : asked;
}

struct CUstream_st *stream_named(struct CUctx_st *context, hewn_cu_stream handle)
{
    struct CUstream_st *stream;

    if (!handle || handle == HEWN_CU_STREAM_LEGACY) return &context->legacy_stream;
    if (handle == HEWN_CU_STREAM_PER_THREAD) return &context->thread_stream;
    stream = handle_get(handle, HANDLE_STREAM);
    return stream && stream->context == context ? stream : NULL;
}

void stream_clear(struct CUstream_st *stream)
{
    capture_leave(stream);
    free(stream->shown_nodes);
    free(stream->shown_edges);
    free(stream->attributes);
    stream->shown_nodes = NULL;
    stream->shown_edges = NULL;
    stream->attributes = NULL;
}

void stream_destroy(struct CUstream_st *stream)
{
    stream_clear(stream);
    handle_drop(stream);
    stream->destroyed = deferred_of(stream);
    if (stream->destroyed) return;
    beside_close(stream);
    free(stream);
}

/* ---- work ---- */

void work_free(struct work *work)
{
    running_end(work->running);
    if (work->kind == WORK_LAUNCH) free(work->launch.params);
    if (work->kind == WORK_MEM_OPS) free(work->mem_ops.ops);
    if (work->kind == WORK_HOST && work->host.owned) free(work->host.user);
}

/* The function runs inside the driver and may not call it back (Driver API, cuLaunchHostFunc). */
void host_execute(void (*function)(void *user), void *user)
{
    bool inside = call_in_callback;

    call_in_callback = true;
    function(user);
    call_in_callback = inside;
}

int work_run(struct CUctx_st *context, struct work *work)
{
    if (work->kind != WORK_LAUNCH) launch_settled();
    switch (work->kind) {
    case WORK_LAUNCH: return running_launch(context, &work->launch, &work->running);
    case WORK_COPY:
        copy_execute(&work->copy);
        beside_copy(&work->copy);
        break;
    case WORK_FILL:
        fill_execute(&work->fill);
        beside_fill(&work->fill);
        break;
    case WORK_HOST:
        beside_hosts();
        host_execute(work->host.function, work->host.user);
        break;
    case WORK_MEM_OPS:
        return mem_ops_execute(work->mem_ops.count, work->mem_ops.ops, &work->mem_ops.next);
    case WORK_GRAPH:
        if (!handle_get(work->exec, HANDLE_EXEC)) return HEWN_CU_INVALID_HANDLE;
        return graph_execute(context, work->exec);
    case WORK_FREE: return memory_free_after(NULL, work->freed);
    }
    return 0;
}

int stream_submit(struct CUstream_st *stream, struct work *work)
{
    int rc = capture_implicit(stream);

    if (!rc && stream->capture) return capture_work(stream, work);
    if (!rc && driver.deferred && deferred_before(stream)) return deferred_work(stream, work);
    if (!rc) {
        beside_enter(stream);
        rc = work_run(stream->context, work);
    }
    if (rc == HEWN_CU_NOT_READY) return deferred_work(stream, work);
    work_free(work);
    return rc;
}

int stream_new(struct CUctx_st *context, unsigned flags, int priority, struct CUgreenCtx_st *green,
               uint32_t sm_count, hewn_cu_stream *stream)
{
    struct CUstream_st *fresh = calloc(1, sizeof *fresh);

    if (!fresh) return HEWN_CU_OUT_OF_MEMORY;
    fresh->context = context;
    fresh->flags = flags;
    fresh->priority = stream_priority(priority);
    fresh->id = ++driver.next_id + 2; /* 1 and 2 are the default streams */
    fresh->green = green;
    fresh->sm_count = sm_count;
    beside_open(fresh);
    if (handle_add(fresh, HANDLE_STREAM, fresh, context)) {
        beside_close(fresh);
        free(fresh);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    *stream = fresh;
    return 0;
}

/* ---- the API ---- */

int enter_stream(struct call *call, unsigned needs, hewn_cu_stream handle,
                 struct CUstream_st **stream)
{
    int rc = call_enter(call, needs);

    *stream = rc ? NULL : stream_named(call->context, handle);
    if (!rc && !*stream) rc = call->rc = HEWN_CU_INVALID_HANDLE;
    return rc;
}

int cuStreamCreate(hewn_cu_stream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

int cuStreamCreateWithPriority(hewn_cu_stream *stream, unsigned flags, int priority)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!stream || flags > HEWN_CU_STREAM_NON_BLOCKING) return HEWN_CU_INVALID_VALUE;
    return stream_new(call.context, flags, priority, NULL, 0, stream);
}

int cuStreamDestroy_v2(hewn_cu_stream stream)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;

    if (call_enter(&call, CALL_RELEASE)) return call.rc;
    s = handle_get(stream, HANDLE_STREAM);
    if (!s) return HEWN_CU_INVALID_HANDLE;
    stream_destroy(s);
    return call.context->fault;
}

/* Waiting for a stream, or asking after it, while it captures makes the capture invalid. */
static int refuse_capturing(struct CUstream_st *stream)
{
    int rc = capture_implicit(stream);

    if (rc || !stream->capture) return rc;
    capture_invalidate(stream->capture);
    return HEWN_CU_STREAM_CAPTURE_UNSUPPORTED;
}

int cuStreamSynchronize(hewn_cu_stream stream)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;
    int rc;

    if (enter_stream(&call, CALL_PLAIN | SHOWS_PRINTED, stream, &s)) return call.rc;
    rc = refuse_capturing(s);
    if (rc) return rc;
    launch_settled();
    deferred_finish_stream(s);
    if (stream_named(call.context, stream)) beside_host_stream(s); /* else destroyed meanwhile */
    if (call.context->fault) return call.context->fault;
    rc = call.context->strict_fault;
    call.context->strict_fault = 0;
    return rc;
}

int cuStreamQuery(hewn_cu_stream stream)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;

    int rc;

    if (enter_stream(&call, CALL_PLAIN, stream, &s)) return call.rc;
    rc = refuse_capturing(s);
    if (!rc && deferred_before(s)) rc = HEWN_CU_NOT_READY;
    if (!rc) beside_host_stream(s);
    return rc;
}

int cuStreamGetFlags(hewn_cu_stream stream, unsigned *flags)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;

    if (enter_stream(&call, CALL_PLAIN, stream, &s)) return call.rc;
    if (!flags) return HEWN_CU_INVALID_VALUE;
    *flags = s->flags;
    return 0;
}

int cuStreamGetPriority(hewn_cu_stream stream, int *priority)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;

    if (enter_stream(&call, CALL_PLAIN, stream, &s)) return call.rc;
    if (!priority) return HEWN_CU_INVALID_VALUE;
    *priority = s->priority;
    return 0;
}

int cuStreamGetCtx(hewn_cu_stream stream, hewn_cu_context *context)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;

    if (enter_stream(&call, CALL_PLAIN, stream, &s)) return call.rc;
    if (!context) return HEWN_CU_INVALID_VALUE;
    *context = s->context;
    return 0;
}

int cuStreamGetDevice(hewn_cu_stream stream, hewn_cu_device *device)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;

    if (enter_stream(&call, CALL_PLAIN, stream, &s)) return call.rc;
    if (!device) return HEWN_CU_INVALID_VALUE;
    *device = 0;
    return 0;
}

int cuStreamGetId(hewn_cu_stream stream, unsigned long long *id)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;

    if (enter_stream(&call, CALL_PLAIN, stream, &s)) return call.rc;
    if (!id) return HEWN_CU_INVALID_VALUE;
    *id = s->id;
    return 0;
}
