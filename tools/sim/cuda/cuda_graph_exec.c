/* Instances of graphs: making, launching, updating and destroying them. */
#include "cuda/graph.h"

#include <stdlib.h>

/* Calls `f` on every node of the graph and of the graphs inside it until it returns an error. */
static int for_each_node(struct CUgraph_st *graph, bool in_body,
                         int (*f)(struct CUgraphNode_st *node, bool in_body, void *user),
                         void *user)
{
    int rc = 0;

    for (uint32_t i = 0; i < graph->count && !rc; i++) {
        struct CUgraphNode_st *n = graph->nodes[i];
        rc = f(n, in_body, user);
        if (!rc && n->type == HEWN_CU_NODE_GRAPH) rc = for_each_node(n->child, in_body, f, user);
        for (unsigned k = 0; n->type == HEWN_CU_NODE_CONDITIONAL && k < n->conditional.size; k++)
            if (!rc) rc = for_each_node(n->conditional.graphs[k], true, f, user);
    }
    return rc;
}

/* ---- instances ---- */

/* Bodies of conditional nodes may hold these kinds alone. */
static bool body_may_hold(int type)
{
    switch (type) {
    case HEWN_CU_NODE_KERNEL:
    case HEWN_CU_NODE_MEMCPY:
    case HEWN_CU_NODE_MEMSET:
    case HEWN_CU_NODE_GRAPH:
    case HEWN_CU_NODE_EMPTY:
    case HEWN_CU_NODE_CONDITIONAL: return true;
    default: return false;
    }
}

/* `user`: where the origin of the offending node goes. */
static int settle_node(struct CUgraphNode_st *node, bool in_body, void *user)
{
    int rc = 0;

    if (in_body && !body_may_hold(node->type)) rc = HEWN_CU_NOT_SUPPORTED;
    if (node->type == HEWN_CU_NODE_KERNEL) rc = launch_settle(&node->kernel.launch);
    if (rc) *(unsigned long long *)user = node->origin;
    return rc;
}

/* The node of `graph`, or of one inside it, with that id; NULL. */
static struct CUgraphNode_st *node_by_id(struct CUgraph_st *graph, unsigned long long id)
{
    struct CUgraphNode_st *found = NULL;

    for (uint32_t i = 0; i < graph->count && !found; i++) {
        struct CUgraphNode_st *n = graph->nodes[i];
        if (n->id == id) return n;
        if (n->type == HEWN_CU_NODE_GRAPH) found = node_by_id(n->child, id);
        for (unsigned k = 0; n->type == HEWN_CU_NODE_CONDITIONAL && k < n->conditional.size; k++)
            if (!found) found = node_by_id(n->conditional.graphs[k], id);
    }
    return found;
}

static void count_instance(unsigned long long id, int change)
{
    size_t at = 0;
    struct CUgraph_st *graph;

    while ((graph = handle_next(HANDLE_GRAPH, NULL, &at)))
        if (graph->id == id) graph->instances += (uint32_t)change;
}

void exec_destroy(struct CUgraphExec_st *exec)
{
    handle_drop(exec);
    count_instance(exec->source, -1);
    if (exec->graph) graph_destroy(exec->graph);
    free(exec);
}

static int exec_make(struct call *call, struct CUgraph_st *graph, unsigned long long flags,
                     struct CUgraphExec_st **out, unsigned long long *bad_node)
{
    struct CUgraphExec_st *fresh = calloc(1, sizeof *fresh);
    int rc;

    if (!fresh) return HEWN_CU_OUT_OF_MEMORY;
    rc = graph_copy(graph, false, true, true, &fresh->graph);
    if (!rc) rc = for_each_node(fresh->graph, false, settle_node, bad_node);
    if (!rc) rc = handle_add(fresh, HANDLE_EXEC, fresh, NULL);
    fresh->context = call->context;
    fresh->flags = flags;
    fresh->source = graph->id;
    graph->instances++;
    if (rc)
        exec_destroy(fresh);
    else
        *out = fresh;
    return rc;
}

int cuGraphInstantiateWithParams(hewn_cu_graph_exec *exec, hewn_cu_graph graph,
                                 hewn_cu_instantiate_params *p)
{
    enum { KNOWN_FLAGS = 15 };
    struct call call CALL_SCOPE;
    struct CUgraph_st *g;
    unsigned long long bad = 0;
    int rc;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    g = graph_named(graph);
    if (!exec || !p) return HEWN_CU_INVALID_VALUE;
    p->error_node = NULL;
    p->result = HEWN_CU_INSTANTIATE_ERROR;
    if (!g || p->flags > KNOWN_FLAGS || g->captures) return HEWN_CU_INVALID_VALUE;
    if (p->flags & HEWN_CU_INSTANTIATE_DEVICE_LAUNCH) return HEWN_CU_NOT_SUPPORTED;
    if (p->flags & HEWN_CU_INSTANTIATE_UPLOAD && !stream_named(call.context, p->upload))
        return HEWN_CU_INVALID_HANDLE;
    if (g->has_memory_nodes && g->instances) return HEWN_CU_NOT_SUPPORTED;
    rc = exec_make(&call, g, p->flags, exec, &bad);
    p->error_node = bad ? node_by_id(g, bad) : NULL;
    if (!rc) p->result = HEWN_CU_INSTANTIATED;
    if (rc == HEWN_CU_INVALID_VALUE && !bad) p->result = HEWN_CU_INSTANTIATE_STRUCTURE;
    if (rc == HEWN_CU_NOT_SUPPORTED) p->result = HEWN_CU_INSTANTIATE_UNSUPPORTED;
    return rc;
}

int cuGraphInstantiateWithFlags(hewn_cu_graph_exec *exec, hewn_cu_graph graph,
                                unsigned long long flags)
{
    hewn_cu_instantiate_params params = {.flags = flags};

    if (flags & HEWN_CU_INSTANTIATE_UPLOAD) return HEWN_CU_INVALID_VALUE; /* there is no stream */
    return cuGraphInstantiateWithParams(exec, graph, &params);
}

/* The forms of CUDA 10 and 11: a log, which stays empty, and the offending node. */
int cuGraphInstantiate_v2(hewn_cu_graph_exec *exec, hewn_cu_graph graph, hewn_cu_node *node,
                          char *log, size_t log_size)
{
    hewn_cu_instantiate_params params = {0};
    int rc = cuGraphInstantiateWithParams(exec, graph, &params);

    if (node) *node = params.error_node;
    if (log && log_size) *log = '\0';
    return rc;
}

int cuGraphExecGetFlags(hewn_cu_graph_exec exec, uint64_t *flags)
{
    struct call call CALL_SCOPE;
    const struct CUgraphExec_st *e;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    e = handle_get(exec, HANDLE_EXEC);
    if (!e || !flags) return HEWN_CU_INVALID_VALUE;
    *flags = e->flags;
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

/* A kernel, a fill or a copy of an instance can be left out of its launches. */
static struct CUgraphNode_st *switchable(hewn_cu_graph_exec exec, hewn_cu_node node)
{
    struct CUgraphExec_st *e = handle_get(exec, HANDLE_EXEC);
    const struct CUgraphNode_st *n = node_named(node);

    if (!e || !n || n->type > HEWN_CU_NODE_MEMSET) return NULL;
    return node_copied(e->graph, n);
}

int cuGraphNodeSetEnabled(hewn_cu_graph_exec exec, hewn_cu_node node, unsigned enabled)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *n;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    n = switchable(exec, node);
    if (!n) return HEWN_CU_INVALID_VALUE;
    n->enabled = enabled != 0;
    return 0;
}

int cuGraphNodeGetEnabled(hewn_cu_graph_exec exec, hewn_cu_node node, unsigned *enabled)
{
    struct call call CALL_SCOPE;
    const struct CUgraphNode_st *n;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    n = switchable(exec, node);
    if (!n || !enabled) return HEWN_CU_INVALID_VALUE;
    *enabled = n->enabled;
    return 0;
}

/* ---- launches ---- */

struct run {
    struct CUctx_st *context;
    const void *identity;              /* of the launch, for kernels that may overlap */
    const struct CUgraphNode_st *last; /* the kernel that ran just before, or NULL */
};

static int run_graph(struct run *run, struct CUgraph_st *graph);

/* A kernel may begin before the one before ends where an edge between them says so. */
static int run_kernel(struct run *run, const struct CUgraphNode_st *n)
{
    struct launch_request request = n->kernel.launch;

    if (!handle_get(request.function, HANDLE_FUNCTION)) return HEWN_CU_INVALID_HANDLE;
    request.stream = run->identity;
    request.overlaps = false;
    for (uint32_t i = 0; i < n->in.count; i++)
        if (n->in.at[i].node == run->last && n->in.at[i].data.type == HEWN_CU_EDGE_PROGRAMMATIC)
            request.overlaps = true;
    run->last = n;
    return launch_execute(run->context, &request, NULL);
}

static int run_copy(const struct copy_body *copy)
{
    struct copy_request request = copy->request;
    int rc = copy->explicit_params ? copy3d_check(&copy->params, true) : copy_check(&copy->request);

    if (rc) return rc;
    if (copy->explicit_params) {
        copy3d_execute(&copy->params);
        if (copy3d_request(&copy->params, &request)) return 0;
    } else {
        copy_execute(&copy->request);
    }
    beside_copy(&request);
    return 0;
}

static int run_free(uint64_t address)
{
    struct memory *m = memory_named(address);

    if (!m || m->kind != MEMORY_GRAPH) return HEWN_CU_INVALID_VALUE;
    beside_freed(NULL, m->address, m->bytes);
    memory_release(m);
    return 0;
}

static uint32_t value_of(const struct condition *condition)
{
    return *(const uint32_t *)(uintptr_t)condition->address;
}

static int run_conditional(struct run *run, const struct conditional_body *c)
{
    uint32_t value = value_of(c->condition);
    int rc = 0;

    switch (c->type) {
    case HEWN_CU_COND_IF:
        if (value) return run_graph(run, c->graphs[0]);
        return c->size > 1 ? run_graph(run, c->graphs[1]) : 0;
    case HEWN_CU_COND_WHILE:
        while (!rc && !run->context->fault && value_of(c->condition))
            rc = run_graph(run, c->graphs[0]);
        return rc;
    default: return value < c->size ? run_graph(run, c->graphs[value]) : 0;
    }
}

/* A graph runs from end to end; a wait in it must be over when its turn comes. */
static int run_mem_ops(const struct mem_op_body *body)
{
    unsigned next = 0;
    int rc = mem_ops_execute(body->count, body->ops, &next);

    if (rc != HEWN_CU_NOT_READY) return rc;
    driver_note("a graph waits for a value at 0x%llx that nothing has written yet, which is not "
                "modelled: write it before the launch",
                body->ops[next].value.address);
    return HEWN_CU_NOT_SUPPORTED;
}

static int run_node(struct run *run, struct CUgraphNode_st *n)
{
    struct CUevent_st *event;
    int rc;

    if (n->type == HEWN_CU_NODE_KERNEL) return run_kernel(run, n);
    launch_settled();
    run->last = NULL;
    switch (n->type) {
    case HEWN_CU_NODE_MEMCPY: return run_copy(&n->copy);
    case HEWN_CU_NODE_MEMSET:
        rc = fill_check(&n->fill);
        if (rc) return rc;
        fill_execute(&n->fill);
        beside_fill(&n->fill);
        return 0;
    case HEWN_CU_NODE_HOST:
        beside_hosts();
        host_execute(n->host.function, n->host.user);
        return 0;
    case HEWN_CU_NODE_GRAPH: return run_graph(run, n->child);
    case HEWN_CU_NODE_EVENT_RECORD:
        event = handle_get(n->event, HANDLE_EVENT);
        if (event) event_record(event, NULL);
        return event ? 0 : HEWN_CU_INVALID_HANDLE;
    case HEWN_CU_NODE_WAIT_EVENT:
        event = handle_get(n->event, HANDLE_EVENT);
        if (event) beside_waits(event);
        return event ? 0 : HEWN_CU_INVALID_HANDLE;
    case HEWN_CU_NODE_MEM_ALLOC:
        rc = graph_memory_allocate(n->alloc.memory, run->context);
        if (!rc) beside_allocated(NULL, n->alloc.memory->address, n->alloc.memory->bytes);
        return rc;
    case HEWN_CU_NODE_MEM_FREE: return run_free(n->freed);
    case HEWN_CU_NODE_BATCH_MEM_OP: return run_mem_ops(&n->mem_op);
    case HEWN_CU_NODE_CONDITIONAL: return run_conditional(run, &n->conditional);
    default: return 0;
    }
}

/* Each node comes right behind the one before. */
static bool in_a_row(const struct CUgraph_st *graph)
{
    for (uint32_t i = 1; i < graph->count; i++)
        if (!edges_have(&graph->nodes[i]->in, graph->nodes[i - 1])) return false;
    return true;
}

static int run_in_order(struct run *run, struct CUgraphNode_st *n, struct known *clocks)
{
    int rc;

    if (!clocks) return n->enabled ? run_node(run, n) : 0;
    beside_node_begin(clocks, n->index);
    for (uint32_t i = 0; i < n->in.count; i++) beside_node_after(clocks, n->in.at[i].node->index);
    rc = n->enabled ? run_node(run, n) : 0;
    beside_node_end(clocks, n->index);
    return rc;
}

static int run_graph(struct run *run, struct CUgraph_st *graph)
{
    struct known *clocks = in_a_row(graph) ? NULL : beside_fork(graph->count);
    int rc = 0;

    for (uint32_t i = 0; i < graph->condition_count; i++) {
        const struct condition *c = graph->conditions[i];
        if (c->assigns) *(uint32_t *)(uintptr_t)c->address = c->value;
    }
    for (uint32_t i = 0; i < graph->count && !rc && !run->context->fault; i++)
        rc = run_in_order(run, graph->nodes[i], clocks);
    beside_join(clocks, graph->count);
    return rc;
}

/* What an earlier launch allocated must be free again, or is freed where the instance says so.
 * `user`: the instance. */
static int clear_allocation(struct CUgraphNode_st *node, bool in_body, void *user)
{
    const struct CUgraphExec_st *exec = user;
    struct memory *m;

    (void)in_body;
    if (node->type != HEWN_CU_NODE_MEM_ALLOC) return 0;
    m = memory_named(node->alloc.memory->address);
    if (!m) return 0;
    if (!(exec->flags & HEWN_CU_INSTANTIATE_AUTO_FREE)) return HEWN_CU_INVALID_VALUE;
    memory_release(m);
    return 0;
}

int graph_execute(struct CUctx_st *context, struct CUgraphExec_st *exec)
{
    struct run run = {context, exec, NULL};
    int rc = for_each_node(exec->graph, false, clear_allocation, exec);
    if (rc) return rc;
    beside_graph_begin(&exec->known);
    rc = run_graph(&run, exec->graph);
    beside_graph_end(&exec->known);
    return rc;
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
    struct work work = {.kind = WORK_GRAPH};
    int rc;

    if (call_enter(&call, CALL_PLAIN | SHOWS_PRINTED)) return call.rc;
    e = handle_get(exec, HANDLE_EXEC);
    s = stream_named(call.context, stream);
    if (!e) return HEWN_CU_INVALID_VALUE;
    if (!s) return HEWN_CU_INVALID_HANDLE;
    rc = capture_implicit(s);
    if (rc) return rc;
    if (s->capture) { /* as driver 580 has it */
        capture_invalidate(s->capture);
        return HEWN_CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    work.exec = e;
    return stream_submit(s, &work);
}

/* ---- updates ---- */

static int mismatch(hewn_cu_update_result *info, int result, unsigned long long *bad,
                    const struct CUgraphNode_st *node)
{
    info->result = result;
    *bad = node ? node->origin : 0;
    return HEWN_CU_GRAPH_EXEC_UPDATE_FAILURE;
}

static bool same_edges(const struct CUgraphNode_st *a, const struct CUgraphNode_st *b)
{
    if (a->in.count != b->in.count) return false;
    for (uint32_t i = 0; i < a->in.count; i++)
        if (!edges_have(&b->in, b->graph->nodes[a->in.at[i].node->index])) return false;
    return true;
}

/* HEWN_CU_UPDATE_…: whether `to`, of the same kind, may stand for `from` (reference, cuGraphExecUpdate). */
static int update_allowed(const struct CUgraphNode_st *from, const struct CUgraphNode_st *to)
{
    const struct launch_request *a = &from->kernel.launch, *b = &to->kernel.launch;

    switch (from->type) {
    case HEWN_CU_NODE_KERNEL:
        if (handle_get(a->function, HANDLE_FUNCTION) &&
            a->function->module->context != b->function->module->context)
            return HEWN_CU_UPDATE_FUNCTION;
        return a->cooperative == b->cooperative ? 0 : HEWN_CU_UPDATE_ATTRIBUTES;
    case HEWN_CU_NODE_MEMCPY: {
        hewn_cu_memcpy3d x = from->copy.params, y = to->copy.params;
        if (!from->copy.explicit_params) copy3d_describe(&from->copy.request, &x);
        if (!to->copy.explicit_params) copy3d_describe(&to->copy.request, &y);
        return x.src_type == y.src_type && x.dst_type == y.dst_type ? 0 : HEWN_CU_UPDATE_PARAMETERS;
    }
    case HEWN_CU_NODE_MEMSET:
        if (from->fill.height == 1 && to->fill.height == 1) return 0;
        return from->fill.height == to->fill.height && from->fill.width == to->fill.width &&
                       from->fill.element == to->fill.element && from->fill.pitch == to->fill.pitch
                   ? 0
                   : HEWN_CU_UPDATE_PARAMETERS;
    case HEWN_CU_NODE_MEM_ALLOC:
    case HEWN_CU_NODE_MEM_FREE: return HEWN_CU_UPDATE_NOT_SUPPORTED;
    case HEWN_CU_NODE_CONDITIONAL:
        return from->conditional.condition == to->conditional.condition &&
                       from->conditional.type == to->conditional.type &&
                       from->conditional.size == to->conditional.size
                   ? 0
                   : HEWN_CU_UPDATE_PARAMETERS;
    default: return 0;
    }
}

static int compare(const struct CUgraph_st *old, const struct CUgraph_st *fresh,
                   hewn_cu_update_result *info, unsigned long long *bad)
{
    int rc = 0;

    if (old->count != fresh->count) return mismatch(info, HEWN_CU_UPDATE_TOPOLOGY, bad, NULL);
    for (uint32_t i = 0; i < old->count && !rc; i++) {
        const struct CUgraphNode_st *a = old->nodes[i], *b = fresh->nodes[i];
        int result = !same_edges(a, b)    ? HEWN_CU_UPDATE_TOPOLOGY
                     : a->type != b->type ? HEWN_CU_UPDATE_NODE_TYPE
                                          : update_allowed(a, b);
        if (result) return mismatch(info, result, bad, b);
        if (a->type == HEWN_CU_NODE_GRAPH) rc = compare(a->child, b->child, info, bad);
        for (unsigned k = 0; a->type == HEWN_CU_NODE_CONDITIONAL && k < a->conditional.size; k++)
            if (!rc) rc = compare(a->conditional.graphs[k], b->conditional.graphs[k], info, bad);
    }
    return rc;
}

/* What two nodes do changes places; who they are does not. */
static void exchange(struct CUgraphNode_st *a, struct CUgraphNode_st *b)
{
    struct CUgraphNode_st old = *a, fresh = *b;

    *a = fresh;
    *b = old;
    a->graph = old.graph, b->graph = fresh.graph;
    a->enabled = old.enabled;
    a->index = old.index, b->index = fresh.index;
    a->id = old.id, b->id = fresh.id;
    a->origin = old.origin, b->origin = fresh.origin;
    a->in = old.in, b->in = fresh.in;
    a->out = old.out, b->out = fresh.out;
}

static void take_over(struct CUgraph_st *old, struct CUgraph_st *fresh)
{
    for (uint32_t i = 0; i < old->count; i++) {
        struct CUgraphNode_st *a = old->nodes[i], *b = fresh->nodes[i];
        if (a->type == HEWN_CU_NODE_GRAPH)
            take_over(a->child, b->child);
        else if (a->type == HEWN_CU_NODE_CONDITIONAL)
            for (unsigned k = 0; k < a->conditional.size; k++)
                take_over(a->conditional.graphs[k], b->conditional.graphs[k]);
        else
            exchange(a, b);
    }
}

/* Updates `old`, a graph of an instance, to what `graph` says. */
static int update(struct CUgraph_st *old, struct CUgraph_st *graph, hewn_cu_update_result *info)
{
    struct CUgraph_st *fresh;
    unsigned long long bad = 0;
    int rc;

    *info = (hewn_cu_update_result){.result = HEWN_CU_UPDATE_ERROR};
    if (graph->captures) return HEWN_CU_INVALID_VALUE;
    rc = graph_copy(graph, false, true, true, &fresh);
    if (rc) return rc;
    rc = for_each_node(fresh, false, settle_node, &bad);
    if (!rc) rc = compare(old, fresh, info, &bad);
    info->error_node = bad ? node_by_id(graph, bad) : NULL;
    if (!rc) {
        take_over(old, fresh);
        info->result = HEWN_CU_UPDATE_SUCCESS;
    }
    graph_destroy(fresh);
    return rc;
}

int cuGraphExecUpdate_v2(hewn_cu_graph_exec exec, hewn_cu_graph graph, hewn_cu_update_result *info)
{
    struct call call CALL_SCOPE;
    struct CUgraphExec_st *e;
    struct CUgraph_st *g;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!info) return HEWN_CU_INVALID_VALUE;
    *info = (hewn_cu_update_result){.result = HEWN_CU_UPDATE_ERROR};
    e = handle_get(exec, HANDLE_EXEC);
    g = graph_named(graph);
    return e && g ? update(e->graph, g, info) : HEWN_CU_INVALID_VALUE;
}

int cuGraphExecUpdate(hewn_cu_graph_exec exec, hewn_cu_graph graph, hewn_cu_node *error_node,
                      int *result)
{
    hewn_cu_update_result info = {0};
    int rc = cuGraphExecUpdate_v2(exec, graph, &info);

    if (error_node) *error_node = info.error_node;
    if (result) *result = info.result;
    return rc;
}

int cuGraphExecChildGraphNodeSetParams(hewn_cu_graph_exec exec, hewn_cu_node node,
                                       hewn_cu_graph child)
{
    struct call call CALL_SCOPE;
    struct CUgraphExec_st *e;
    struct CUgraphNode_st *n;
    struct CUgraph_st *g;
    hewn_cu_update_result info;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    e = handle_get(exec, HANDLE_EXEC);
    n = node_named(node);
    g = graph_named(child);
    if (!e || !n || !g || n->type != HEWN_CU_NODE_GRAPH) return HEWN_CU_INVALID_VALUE;
    n = node_copied(e->graph, n);
    return n ? update(n->child, g, &info) : HEWN_CU_INVALID_VALUE;
}
