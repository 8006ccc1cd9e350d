/*
 * Stream capture and graphs: a capture records launches, copies, fills and host functions in call
 * order, and a graph is that list. Call order respects every dependency that streams and events
 * express, so replaying it in order is one of the orders that the graph allows.
 */
#include "cuda/driver.h"

#include <stdlib.h>

struct work_list {
    struct work *works;
    size_t count, capacity;
};

struct CUgraph_st {
    struct work_list list;
    /* while it is being captured: */
    int mode;           /* HEWN_CU_CAPTURE_… */
    const void *thread; /* who began it */
    bool capturing, invalid;
};

struct CUgraphExec_st {
    struct work_list list;
    struct CUctx_st *context;
};

/* The calling thread's way with captures; its address also tells threads apart. */
static _Thread_local int thread_mode = HEWN_CU_CAPTURE_GLOBAL;

/* ---- lists of work ---- */

static int list_append(struct work_list *list, const struct work *work)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        struct work *works = realloc(list->works, capacity * sizeof *works);
        if (!works) return HEWN_CU_OUT_OF_MEMORY;
        list->works = works;
        list->capacity = capacity;
    }
    list->works[list->count++] = *work;
    return 0;
}

static void list_free(struct work_list *list)
{
    for (size_t i = 0; i < list->count; i++) work_free(&list->works[i]);
    free(list->works);
}

/* Appends a copy that owns its own parameters. */
static int list_append_copy(struct work_list *list, const struct work *work)
{
    struct work copy = *work;
    int rc;

    if (work->kind == WORK_LAUNCH) {
        size_t bytes = (work->launch.function->kernel->entry->param_bytes + (size_t)64) / 64 * 64;
        copy.launch.params = aligned_alloc(64, bytes);
        if (!copy.launch.params) return HEWN_CU_OUT_OF_MEMORY;
        memcpy(copy.launch.params, work->launch.params, bytes);
    }
    rc = list_append(list, &copy);
    if (rc) work_free(&copy);
    return rc;
}

/* A graph keeps no module or memory alive: what it names may be gone when it is used. */
static int work_check(const struct work *work)
{
    switch (work->kind) {
    case WORK_LAUNCH:
        return handle_get(work->launch.function, HANDLE_FUNCTION) ? 0 : HEWN_CU_INVALID_HANDLE;
    case WORK_COPY: return copy_check(&work->copy);
    case WORK_FILL: return fill_check(&work->fill);
    case WORK_HOST: break;
    }
    return 0;
}

int graph_append(struct CUgraph_st *graph, struct work *work)
{
    if (graph->invalid) return HEWN_CU_STREAM_CAPTURE_INVALIDATED;
    return list_append(&graph->list, work);
}

void graph_invalidate(struct CUgraph_st *graph)
{
    graph->invalid = true;
}

void graph_destroy(struct CUgraph_st *graph)
{
    handle_drop(graph);
    list_free(&graph->list);
    free(graph);
}

void exec_destroy(struct CUgraphExec_st *exec)
{
    handle_drop(exec);
    list_free(&exec->list);
    free(exec);
}

/* ---- captures ---- */

/* A thread-local capture concerns its own thread, a global one every thread, unless the asking
 * thread relaxed itself (Driver API, cuThreadExchangeStreamCaptureMode). */
static bool capture_concerns(const struct CUgraph_st *graph)
{
    bool own = graph->thread == &thread_mode;

    if (!graph->capturing || thread_mode == HEWN_CU_CAPTURE_RELAXED) return false;
    if (graph->mode == HEWN_CU_CAPTURE_RELAXED) return false;
    return own || (graph->mode == HEWN_CU_CAPTURE_GLOBAL && thread_mode == HEWN_CU_CAPTURE_GLOBAL);
}

bool capture_forbids(void)
{
    size_t at = 0;
    struct CUgraph_st *graph;
    bool forbidden = false;

    if (!driver.captures) return false;
    while ((graph = handle_next(HANDLE_GRAPH, NULL, &at))) {
        if (!capture_concerns(graph)) continue;
        graph->invalid = true;
        forbidden = true;
    }
    return forbidden;
}

int capture_implicit(const struct CUstream_st *stream)
{
    size_t at = 0;
    struct CUstream_st *other;

    if (!stream->legacy || !driver.captures) return 0;
    while ((other = handle_next(HANDLE_STREAM, stream->context, &at))) {
        if (!other->capture || other->flags & HEWN_CU_STREAM_NON_BLOCKING) continue;
        other->capture->invalid = true;
        return HEWN_CU_STREAM_CAPTURE_IMPLICIT;
    }
    return 0;
}

int capture_join(struct CUstream_st *stream, struct CUgraph_st *graph)
{
    if (stream->legacy) {
        graph->invalid = true;
        return HEWN_CU_STREAM_CAPTURE_IMPLICIT;
    }
    if (stream->capture && stream->capture != graph) {
        stream->capture->invalid = graph->invalid = true;
        return HEWN_CU_STREAM_CAPTURE_MERGE;
    }
    stream->capture = graph;
    return 0;
}

/* Lets every stream and event out of a capture. */
static void capture_dissolve(struct CUgraph_st *graph, struct CUctx_st *context)
{
    size_t at = 0;
    struct CUstream_st *stream;
    struct CUevent_st *event;

    graph->capturing = false;
    driver.captures--;
    if (context->thread_stream.capture == graph) {
        context->thread_stream.capture = NULL;
        context->thread_stream.capture_origin = false;
    }
    while ((stream = handle_next(HANDLE_STREAM, context, &at))) {
        if (stream->capture != graph) continue;
        stream->capture = NULL;
        stream->capture_origin = false;
    }
    for (at = 0; (event = handle_next(HANDLE_EVENT, context, &at));)
        if (event->capture == graph) event->capture = NULL;
}

void capture_leave(struct CUstream_st *stream)
{
    struct CUgraph_st *graph = stream->capture;
    bool origin = stream->capture_origin;

    if (!graph) return;
    graph->invalid = true;
    stream->capture = NULL;
    stream->capture_origin = false;
    if (!origin) return;
    capture_dissolve(graph, stream->context);
    graph_destroy(graph);
}

int cuStreamBeginCapture_v2(hewn_cu_stream stream, int mode)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;
    struct CUgraph_st *graph;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    s = stream_named(call.context, stream);
    if (!s) return HEWN_CU_INVALID_HANDLE;
    if (mode < HEWN_CU_CAPTURE_GLOBAL || mode > HEWN_CU_CAPTURE_RELAXED)
        return HEWN_CU_INVALID_VALUE;
    if (s->legacy) return HEWN_CU_STREAM_CAPTURE_UNSUPPORTED;
    if (s->capture) return HEWN_CU_ILLEGAL_STATE;
    graph = calloc(1, sizeof *graph);
    if (!graph) return HEWN_CU_OUT_OF_MEMORY;
    if (handle_add(graph, HANDLE_GRAPH, graph, NULL)) {
        free(graph);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    graph->mode = mode;
    graph->thread = &thread_mode;
    graph->capturing = true;
    driver.captures++;
    s->capture = graph;
    s->capture_origin = true;
    return 0;
}

int cuStreamEndCapture(hewn_cu_stream stream, hewn_cu_graph *graph)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;
    struct CUgraph_st *g;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    s = stream_named(call.context, stream);
    if (!s) return HEWN_CU_INVALID_HANDLE;
    if (!graph) return HEWN_CU_INVALID_VALUE;
    g = s->capture;
    if (!g) return HEWN_CU_ILLEGAL_STATE;
    if (!s->capture_origin) return HEWN_CU_STREAM_CAPTURE_UNMATCHED;
    if (g->mode != HEWN_CU_CAPTURE_RELAXED && g->thread != &thread_mode)
        return HEWN_CU_STREAM_CAPTURE_WRONG_THREAD;
    capture_dissolve(g, call.context);
    *graph = g->invalid ? NULL : g;
    if (!g->invalid) return 0;
    graph_destroy(g);
    return HEWN_CU_STREAM_CAPTURE_INVALIDATED;
}

int cuStreamIsCapturing(hewn_cu_stream stream, int *status)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;
    int rc;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    s = stream_named(call.context, stream);
    if (!s) return HEWN_CU_INVALID_HANDLE;
    if (!status) return HEWN_CU_INVALID_VALUE;
    rc = capture_implicit(s);
    if (rc) return rc;
    *status = !s->capture           ? HEWN_CU_CAPTURE_NONE
              : s->capture->invalid ? HEWN_CU_CAPTURE_INVALIDATED
                                    : HEWN_CU_CAPTURE_ACTIVE;
    return 0;
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
    struct call call CALL_SCOPE;
    int before = thread_mode;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!mode || *mode < HEWN_CU_CAPTURE_GLOBAL || *mode > HEWN_CU_CAPTURE_RELAXED)
        return HEWN_CU_INVALID_VALUE;
    thread_mode = *mode;
    *mode = before;
    return 0;
}

/* ---- graphs ---- */

/* A graph that is complete, or NULL. */
static struct CUgraph_st *graph_named(hewn_cu_graph handle)
{
    struct CUgraph_st *graph = handle_get(handle, HANDLE_GRAPH);
    return graph && !graph->capturing ? graph : NULL;
}

int cuGraphInstantiateWithFlags(hewn_cu_graph_exec *exec, hewn_cu_graph graph,
                                unsigned long long flags)
{
    enum { KNOWN_FLAGS = 15, DEVICE_LAUNCH = 4 };
    struct call call CALL_SCOPE;
    struct CUgraph_st *g;
    struct CUgraphExec_st *fresh;
    int rc = 0;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    g = graph_named(graph);
    if (!exec || !g || flags > KNOWN_FLAGS) return HEWN_CU_INVALID_VALUE;
    if (flags & DEVICE_LAUNCH) return HEWN_CU_NOT_SUPPORTED;
    fresh = calloc(1, sizeof *fresh);
    if (!fresh) return HEWN_CU_OUT_OF_MEMORY;
    fresh->context = call.context;
    for (size_t i = 0; i < g->list.count && !rc; i++) {
        rc = work_check(&g->list.works[i]);
        if (!rc) rc = list_append_copy(&fresh->list, &g->list.works[i]);
    }
    if (!rc) rc = handle_add(fresh, HANDLE_EXEC, fresh, NULL);
    if (rc) {
        exec_destroy(fresh);
        return rc;
    }
    *exec = fresh;
    return 0;
}

int cuGraphInstantiate_v2(hewn_cu_graph_exec *exec, hewn_cu_graph graph, void **node, char *log,
                          size_t log_size)
{
    if (node) *node = NULL;
    if (log && log_size) *log = '\0';
    return cuGraphInstantiateWithFlags(exec, graph, 0);
}

int cuGraphUpload(hewn_cu_graph_exec exec, hewn_cu_stream stream)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!handle_get(exec, HANDLE_EXEC)) return HEWN_CU_INVALID_VALUE;
    return stream_named(call.context, stream) ? 0 : HEWN_CU_INVALID_HANDLE;
}

int cuGraphLaunch(hewn_cu_graph_exec exec, hewn_cu_stream stream)
{
    struct call call CALL_SCOPE;
    struct CUgraphExec_st *e;
    struct CUstream_st *s;
    int rc;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    e = handle_get(exec, HANDLE_EXEC);
    s = stream_named(call.context, stream);
    if (!e) return HEWN_CU_INVALID_VALUE;
    if (!s) return HEWN_CU_INVALID_HANDLE;
    rc = capture_implicit(s);
    for (size_t i = 0; i < e->list.count && !rc && !call.context->fault; i++) {
        rc = work_check(&e->list.works[i]);
        if (rc) break;
        rc = s->capture ? list_append_copy(&s->capture->list, &e->list.works[i])
                        : work_run(call.context, &e->list.works[i]);
    }
    return rc;
}

int cuGraphDestroy(hewn_cu_graph graph)
{
    struct call call CALL_SCOPE;
    struct CUgraph_st *g;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    g = graph_named(graph);
    if (!g) return HEWN_CU_INVALID_VALUE;
    graph_destroy(g);
    return 0;
}

int cuGraphExecDestroy(hewn_cu_graph_exec exec)
{
    struct call call CALL_SCOPE;
    struct CUgraphExec_st *e;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    e = handle_get(exec, HANDLE_EXEC);
    if (!e) return HEWN_CU_INVALID_VALUE;
    exec_destroy(e);
    return 0;
}

int cuGraphGetNodes(hewn_cu_graph graph, void **nodes, size_t *count)
{
    struct call call CALL_SCOPE;
    struct CUgraph_st *g;
    size_t room;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    g = graph_named(graph);
    if (!g || !count) return HEWN_CU_INVALID_VALUE;
    room = *count;
    *count = g->list.count;
    if (!nodes) return 0;
    for (size_t i = 0; i < room; i++) nodes[i] = i < g->list.count ? &g->list.works[i] : NULL;
    if (room < *count) *count = room;
    return 0;
}
