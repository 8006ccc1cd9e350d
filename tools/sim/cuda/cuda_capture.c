/*
 * Stream capture. A stream that captures knows the nodes that its next node will depend on; an event
 * recorded there keeps them, and a stream that waits for the event joins the capture with them.
 */
#include "cuda/graph.h"

#include <stdlib.h>

/* The calling thread's way with captures; its address also tells threads apart. */
static _Thread_local int thread_mode = HEWN_CU_CAPTURE_GLOBAL;

/* ---- what a capture forbids ---- */

/* A thread-local capture concerns its own thread, a global one every thread, unless the asking
 * thread relaxed itself (Driver API, cuThreadExchangeStreamCaptureMode). */
static bool capture_concerns(const struct capture *capture)
{
    bool own = capture->thread == &thread_mode;

    if (thread_mode == HEWN_CU_CAPTURE_RELAXED) return false;
    if (capture->mode == HEWN_CU_CAPTURE_RELAXED) return false;
    return own ||
           (capture->mode == HEWN_CU_CAPTURE_GLOBAL && thread_mode == HEWN_CU_CAPTURE_GLOBAL);
}

bool capture_forbids(void)
{
    bool forbidden = false;

    for (struct capture *c = driver.captures; c; c = c->next) {
        if (!capture_concerns(c)) continue;
        c->invalid = true;
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

void capture_invalidate(struct capture *capture)
{
    capture->invalid = true;
}

/* ---- who takes part ---- */

static void stream_leaves(struct CUstream_st *stream)
{
    stream->capture = NULL;
    edges_clear(&stream->last);
}

void event_leaves(struct CUevent_st *event)
{
    event->capture = NULL;
    edges_clear(&event->last);
}

/* What the next node of the stream depends on becomes what the event stands for. */
int capture_event(struct CUevent_st *event, const struct CUstream_st *stream)
{
    event_leaves(event);
    event->capture = stream->capture;
    return edges_join(&event->last, &stream->last);
}

int capture_join(struct CUstream_st *stream, const struct CUevent_st *event)
{
    if (stream->legacy) {
        event->capture->invalid = true;
        return HEWN_CU_STREAM_CAPTURE_IMPLICIT;
    }
    if (stream->capture && stream->capture != event->capture) {
        stream->capture->invalid = event->capture->invalid = true;
        return HEWN_CU_STREAM_CAPTURE_MERGE;
    }
    if (event->capture->invalid) return HEWN_CU_STREAM_CAPTURE_INVALIDATED;
    stream->capture = event->capture;
    return edges_join(&stream->last, &event->last);
}

/* The streams of the context that take part, one after the other; *at begins at 0. */
static struct CUstream_st *next_stream(const struct capture *capture, struct CUctx_st *context,
                                       size_t *at)
{
    struct CUstream_st *stream;

    if (!*at && context->thread_stream.capture == capture) {
        *at = 1; /* a cursor counts slots, and the first one is looked at again */
        return &context->thread_stream;
    }
    if (*at) --*at;
    while ((stream = handle_next(HANDLE_STREAM, context, at)))
        if (stream->capture == capture) break;
    ++*at;
    return stream;
}

/* Lets every stream and event out of a capture, and forgets it. */
static void capture_end(struct capture *capture, struct CUctx_st *context)
{
    size_t at = 0;
    struct CUstream_st *stream;
    struct CUevent_st *event;
    struct capture **link = &driver.captures;

    while (*link != capture) link = &(*link)->next;
    *link = capture->next;
    capture->graph->captures--;
    while ((stream = next_stream(capture, context, &at))) stream_leaves(stream);
    for (at = 0; (event = handle_next(HANDLE_EVENT, context, &at));)
        if (event->capture == capture) event_leaves(event);
    edges_clear(&capture->left);
    free(capture);
}

void capture_leave(struct CUstream_st *stream)
{
    struct capture *capture = stream->capture;
    struct CUgraph_st *graph;
    bool given;

    if (!capture) return;
    if (capture->origin != stream) { /* what it did must be joined all the same */
        if (edges_join(&capture->left, &stream->last)) capture->invalid = true;
        stream_leaves(stream);
        return;
    }
    graph = capture->graph;
    given = capture->given;
    capture_end(capture, stream->context);
    if (!given) graph_destroy(graph);
}

/* ---- nodes ---- */

int capture_node(struct CUstream_st *stream, int type, struct CUgraphNode_st **out)
{
    *out = NULL;
    if (stream->capture->invalid) return HEWN_CU_STREAM_CAPTURE_INVALIDATED;
    *out = node_new(stream->capture->graph, type);
    if (!*out) return HEWN_CU_OUT_OF_MEMORY;
    (*out)->context = stream->context;
    return 0;
}

int capture_node_done(struct CUstream_st *stream, struct CUgraphNode_st *node)
{
    static const hewn_cu_edge plain, early = {.from_port = 1, .type = HEWN_CU_EDGE_PROGRAMMATIC};
    bool overlaps = node->type == HEWN_CU_NODE_KERNEL && node->kernel.launch.overlaps;
    struct edges fresh = {0};
    int rc = 0;

    for (uint32_t i = 0; i < stream->last.count && !rc; i++) {
        struct CUgraphNode_st *from = stream->last.at[i].node;
        hewn_cu_edge data = stream->last.at[i].data;
        if (overlaps && from->type == HEWN_CU_NODE_KERNEL) data = early;
        rc = node_link(from, node, data);
    }
    if (!rc) rc = edges_add(&fresh, node, plain);
    if (rc) return rc;
    edges_clear(&stream->last);
    stream->last = fresh;
    return 0;
}

int capture_external(struct CUstream_st *stream, struct CUevent_st *event, bool record)
{
    struct CUgraphNode_st *node;
    int rc =
        capture_node(stream, record ? HEWN_CU_NODE_EVENT_RECORD : HEWN_CU_NODE_WAIT_EVENT, &node);

    if (!rc) rc = node_set_event(node, event);
    if (!rc) rc = capture_node_done(stream, node);
    return capture_failed(node, rc);
}

int capture_alloc(struct CUstream_st *stream, size_t bytes, hewn_cu_deviceptr *address)
{
    const hewn_cu_alloc_node params = {.pool = {.type = 1, .location = {.type = 1}},
                                       .bytes = bytes};
    struct CUgraphNode_st *node;
    int rc = capture_node(stream, HEWN_CU_NODE_MEM_ALLOC, &node);

    if (!rc) rc = node_set_alloc(node, &params);
    if (!rc) rc = capture_node_done(stream, node);
    if (!rc) *address = node->alloc.params.address;
    return capture_failed(node, rc);
}

int capture_free(struct CUstream_st *stream, hewn_cu_deviceptr address)
{
    struct CUgraphNode_st *node;
    int rc = capture_node(stream, HEWN_CU_NODE_MEM_FREE, &node);

    if (!rc) rc = node_set_free(node, address);
    if (!rc) rc = capture_node_done(stream, node);
    return capture_failed(node, rc);
}

int capture_failed(struct CUgraphNode_st *node, int rc)
{
    if (rc && node) node_destroy(node);
    return rc;
}

static int node_type(enum work_kind kind)
{
    switch (kind) {
    case WORK_LAUNCH: return HEWN_CU_NODE_KERNEL;
    case WORK_COPY: return HEWN_CU_NODE_MEMCPY;
    case WORK_FILL: return HEWN_CU_NODE_MEMSET;
    case WORK_MEM_OPS: return HEWN_CU_NODE_BATCH_MEM_OP;
    default: return HEWN_CU_NODE_HOST;
    }
}

int capture_work(struct CUstream_st *stream, struct work *work)
{
    struct CUgraphNode_st *node;
    int rc = capture_node(stream, node_type(work->kind), &node);

    if (rc) {
        work_free(work);
        return rc;
    }
    rc = node_set_work(node, work);
    if (!rc) rc = capture_node_done(stream, node);
    return capture_failed(node, rc);
}

/* ---- the API ---- */

/* Enters a call about a stream's capture. */
static struct CUstream_st *enter(struct call *call, hewn_cu_stream handle)
{
    struct CUstream_st *s;

    if (call_enter(call, CALL_PLAIN)) return NULL;
    s = stream_named(call->context, handle);
    if (!s) call->rc = HEWN_CU_INVALID_HANDLE;
    return s;
}

static int begin(struct CUstream_st *stream, struct CUgraph_st *graph, bool given, int mode)
{
    struct capture *fresh = calloc(1, sizeof *fresh);

    if (!fresh) return HEWN_CU_OUT_OF_MEMORY;
    *fresh = (struct capture){.next = driver.captures,
                              .graph = graph,
                              .origin = stream,
                              .mode = mode,
                              .thread = &thread_mode,
                              .id = ++driver.next_id,
                              .given = given};
    driver.captures = fresh;
    graph->captures++;
    stream->capture = fresh;
    return 0;
}

static int begin_allowed(const struct CUstream_st *stream, int mode)
{
    if (mode < HEWN_CU_CAPTURE_GLOBAL || mode > HEWN_CU_CAPTURE_RELAXED)
        return HEWN_CU_INVALID_VALUE;
    if (stream->legacy) return HEWN_CU_STREAM_CAPTURE_UNSUPPORTED;
    return stream->capture ? HEWN_CU_ILLEGAL_STATE : 0;
}

int cuStreamBeginCapture_v2(hewn_cu_stream stream, int mode)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s = enter(&call, stream);
    struct CUgraph_st *graph;
    int rc;

    if (!s) return call.rc;
    rc = begin_allowed(s, mode);
    if (rc) return rc;
    graph = graph_new(true, false);
    if (!graph) return HEWN_CU_OUT_OF_MEMORY;
    rc = begin(s, graph, false, mode);
    if (rc) graph_destroy(graph);
    return rc;
}

int cuStreamBeginCapture(hewn_cu_stream stream)
{
    return cuStreamBeginCapture_v2(stream, HEWN_CU_CAPTURE_GLOBAL);
}

/* The nodes that a program names as dependencies, all of `graph`. */
static int take_dependencies(struct CUgraph_st *graph, const hewn_cu_node *nodes,
                             const hewn_cu_edge *data, size_t count, struct edges *out)
{
    int rc = 0;

    if (count && !nodes) return HEWN_CU_INVALID_VALUE;
    for (size_t i = 0; i < count && !rc; i++) {
        struct CUgraphNode_st *node = node_named(nodes[i]);
        if (!node || node->graph != graph) return HEWN_CU_INVALID_VALUE;
        if (!edges_have(out, node)) rc = edges_add(out, node, data ? data[i] : (hewn_cu_edge){0});
    }
    return rc;
}

int cuStreamBeginCaptureToGraph(hewn_cu_stream stream, hewn_cu_graph graph,
                                const hewn_cu_node *dependencies, const hewn_cu_edge *data,
                                size_t count, int mode)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s = enter(&call, stream);
    struct edges first = {0};
    struct CUgraph_st *g;
    int rc;

    if (!s) return call.rc;
    g = graph_named(graph);
    if (!g) return HEWN_CU_INVALID_VALUE;
    rc = begin_allowed(s, mode);
    if (!rc) rc = take_dependencies(g, dependencies, data, count, &first);
    if (!rc) rc = begin(s, g, true, mode);
    if (rc)
        edges_clear(&first);
    else
        s->last = first;
    return rc;
}

/* Marks `node` and all that it depends on; the work list is the marks' own order. */
static int mark(bool *seen, struct CUgraphNode_st *const *nodes, uint32_t count,
                const struct edges *from)
{
    uint32_t *todo = calloc((size_t)count + 1, sizeof *todo), left = 0;

    if (!todo) return HEWN_CU_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < from->count; i++) {
        if (seen[from->at[i].node->index]) continue;
        seen[from->at[i].node->index] = true;
        todo[left++] = from->at[i].node->index;
    }
    while (left) {
        const struct edges *in = &nodes[todo[--left]]->in;
        for (uint32_t i = 0; i < in->count; i++) {
            if (seen[in->at[i].node->index]) continue;
            seen[in->at[i].node->index] = true;
            todo[left++] = in->at[i].node->index;
        }
    }
    free(todo);
    return 0;
}

static bool all_seen(const bool *seen, const struct edges *last)
{
    for (uint32_t i = 0; i < last->count; i++)
        if (!seen[last->at[i].node->index]) return false;
    return true;
}

/* Every stream that joined must have come back: its last nodes lie before the origin's. */
static int check_joined(const struct capture *capture, struct CUctx_st *context)
{
    const struct CUgraph_st *graph = capture->graph;
    bool *seen = calloc((size_t)graph->count + 1, sizeof *seen);
    struct CUstream_st *stream;
    size_t at = 0;
    int rc = seen ? mark(seen, graph->nodes, graph->count, &capture->origin->last)
                  : HEWN_CU_OUT_OF_MEMORY;

    if (!rc && !all_seen(seen, &capture->left)) rc = HEWN_CU_STREAM_CAPTURE_UNJOINED;
    while (!rc && (stream = next_stream(capture, context, &at)))
        if (!all_seen(seen, &stream->last)) rc = HEWN_CU_STREAM_CAPTURE_UNJOINED;
    free(seen);
    return rc;
}

int cuStreamEndCapture(hewn_cu_stream stream, hewn_cu_graph *graph)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s = enter(&call, stream);
    struct capture *c;
    struct CUgraph_st *g;
    bool given;
    int rc;

    if (!s) return call.rc;
    c = s->capture;
    if (!c) return HEWN_CU_ILLEGAL_STATE;
    if (!graph && !c->given) return HEWN_CU_INVALID_VALUE;
    if (c->origin != s) return HEWN_CU_STREAM_CAPTURE_UNMATCHED;
    if (c->mode != HEWN_CU_CAPTURE_RELAXED && c->thread != &thread_mode)
        return HEWN_CU_STREAM_CAPTURE_WRONG_THREAD;
    rc = c->invalid ? HEWN_CU_STREAM_CAPTURE_INVALIDATED : check_joined(c, call.context);
    g = c->graph;
    given = c->given;
    capture_end(c, call.context);
    if (graph) *graph = rc ? NULL : g;
    if (rc && !given) graph_destroy(g);
    return rc;
}

static int status_of(const struct CUstream_st *s)
{
    return !s->capture           ? HEWN_CU_CAPTURE_NONE
           : s->capture->invalid ? HEWN_CU_CAPTURE_INVALIDATED
                                 : HEWN_CU_CAPTURE_ACTIVE;
}

int cuStreamIsCapturing(hewn_cu_stream stream, int *status)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s = enter(&call, stream);
    int rc;

    if (!s) return call.rc;
    if (!status) return HEWN_CU_INVALID_VALUE;
    rc = capture_implicit(s);
    if (!rc) *status = status_of(s);
    return rc;
}

/* The arrays that a program is shown stay with the stream until it asks again. */
static int show_last(struct CUstream_st *s)
{
    uint32_t count = s->last.count;
    hewn_cu_node *nodes = realloc(s->shown_nodes, (count + (size_t)1) * sizeof *nodes);
    hewn_cu_edge *edges;

    if (!nodes) return HEWN_CU_OUT_OF_MEMORY;
    s->shown_nodes = nodes;
    edges = realloc(s->shown_edges, (count + (size_t)1) * sizeof *edges);
    if (!edges) return HEWN_CU_OUT_OF_MEMORY;
    s->shown_edges = edges;
    for (uint32_t i = 0; i < count; i++) {
        nodes[i] = s->last.at[i].node;
        edges[i] = s->last.at[i].data;
    }
    return 0;
}

int cuStreamGetCaptureInfo_v3(hewn_cu_stream stream, int *status, uint64_t *id,
                              hewn_cu_graph *graph, const hewn_cu_node **nodes,
                              const hewn_cu_edge **edges, size_t *count)
{
    static const hewn_cu_edge plain;
    struct call call CALL_SCOPE;
    struct CUstream_st *s = enter(&call, stream);
    int rc;

    if (!s) return call.rc;
    if (!status || (edges && !nodes)) return HEWN_CU_INVALID_VALUE;
    rc = capture_implicit(s);
    if (rc) return rc;
    *status = status_of(s);
    if (*status != HEWN_CU_CAPTURE_ACTIVE) return 0;
    for (uint32_t i = 0; nodes && !edges && i < s->last.count; i++)
        if (memcmp(&s->last.at[i].data, &plain, sizeof plain) != 0) return HEWN_CU_LOSSY_QUERY;
    rc = show_last(s);
    if (rc) return rc;
    if (id) *id = s->capture->id;
    if (graph) *graph = s->capture->graph;
    if (nodes) *nodes = s->shown_nodes;
    if (edges) *edges = s->shown_edges;
    if (count) *count = s->last.count;
    return 0;
}

int cuStreamGetCaptureInfo_v2(hewn_cu_stream stream, int *status, uint64_t *id,
                              hewn_cu_graph *graph, const hewn_cu_node **nodes, size_t *count)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, NULL, count);
}

int cuStreamGetCaptureInfo(hewn_cu_stream stream, int *status, uint64_t *id)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

int cuStreamUpdateCaptureDependencies_v2(hewn_cu_stream stream, const hewn_cu_node *nodes,
                                         const hewn_cu_edge *data, size_t count, unsigned flags)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s = enter(&call, stream);
    struct edges named = {0};
    int rc;

    if (!s) return call.rc;
    if (!s->capture) return HEWN_CU_ILLEGAL_STATE;
    if (s->capture->invalid) return HEWN_CU_STREAM_CAPTURE_INVALIDATED;
    if (flags > HEWN_CU_CAPTURE_SET_DEPENDENCIES) return HEWN_CU_INVALID_VALUE;
    rc = take_dependencies(s->capture->graph, nodes, data, count, &named);
    if (!rc && flags == HEWN_CU_CAPTURE_SET_DEPENDENCIES) {
        edges_clear(&s->last);
        s->last = named;
        return 0;
    }
    if (!rc) rc = edges_join(&s->last, &named);
    edges_clear(&named);
    return rc;
}

int cuStreamUpdateCaptureDependencies(hewn_cu_stream stream, const hewn_cu_node *nodes,
                                      size_t count, unsigned flags)
{
    return cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, count, flags);
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
