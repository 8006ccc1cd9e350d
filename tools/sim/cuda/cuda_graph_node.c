/* The API that makes nodes, and reads and changes what they do. */
#include "cuda/graph.h"

#include <stdlib.h>

/* ---- adding ---- */

/* A new node with its dependencies, which does nothing yet. */
static int add(struct call *call, hewn_cu_graph graph, int type, const hewn_cu_node *dependencies,
               const hewn_cu_edge *data, size_t count, struct CUgraphNode_st **out)
{
    struct CUgraph_st *g = graph_named(graph);
    struct CUgraphNode_st *node;

    *out = NULL;
    if (!g || (count && !dependencies)) return HEWN_CU_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        const struct CUgraphNode_st *d = node_named(dependencies[i]);
        if (!d || d->graph != g) return HEWN_CU_INVALID_VALUE;
    }
    node = node_new(g, type);
    if (!node) return HEWN_CU_OUT_OF_MEMORY;
    node->context = call->context;
    for (size_t i = 0; i < count; i++) {
        int rc = node_link(dependencies[i], node, data ? data[i] : (hewn_cu_edge){0});
        if (!rc) continue;
        node_destroy(node);
        return rc;
    }
    *out = node;
    return 0;
}

/* Ends an addition: the program gets the node, or it goes. */
static int added(int rc, struct CUgraphNode_st *node, hewn_cu_node *out)
{
    if (rc && node) node_destroy(node);
    if (!rc) *out = node;
    return rc;
}

#define BEGIN_ADD(type, given)                           \
    struct call call CALL_SCOPE;                         \
    struct CUgraphNode_st *n;                            \
    int rc;                                              \
    if (call_enter(&call, NEED_INIT)) return call.rc;    \
    if (!node || !(given)) return HEWN_CU_INVALID_VALUE; \
    rc = add(&call, graph, HEWN_CU_NODE_##type, dependencies, NULL, count, &n)

int cuGraphAddKernelNode_v2(hewn_cu_node *node, hewn_cu_graph graph,
                            const hewn_cu_node *dependencies, size_t count,
                            const hewn_cu_kernel_node *params)
{
    BEGIN_ADD(KERNEL, params);
    if (!rc) rc = node_set_kernel(n, params);
    return added(rc, n, node);
}

/* The structs of CUDA 11 end before what 12 added. */
static hewn_cu_kernel_node kernel_from_v1(const hewn_cu_kernel_node *params)
{
    hewn_cu_kernel_node full = {0};
    if (params) memcpy(&full, params, offsetof(hewn_cu_kernel_node, kernel));
    return full;
}

int cuGraphAddKernelNode(hewn_cu_node *node, hewn_cu_graph graph, const hewn_cu_node *dependencies,
                         size_t count, const hewn_cu_kernel_node *params)
{
    hewn_cu_kernel_node full = kernel_from_v1(params);
    return cuGraphAddKernelNode_v2(node, graph, dependencies, count, params ? &full : NULL);
}

int cuGraphAddMemcpyNode(hewn_cu_node *node, hewn_cu_graph graph, const hewn_cu_node *dependencies,
                         size_t count, const hewn_cu_memcpy3d *params, hewn_cu_context context)
{
    BEGIN_ADD(MEMCPY, params);
    if (!rc) rc = node_set_copy(n, params);
    if (!rc && context) n->context = context;
    return added(rc, n, node);
}

int cuGraphAddMemsetNode(hewn_cu_node *node, hewn_cu_graph graph, const hewn_cu_node *dependencies,
                         size_t count, const hewn_cu_memset_node *params, hewn_cu_context context)
{
    BEGIN_ADD(MEMSET, params);
    if (!rc) rc = node_set_fill(n, params);
    if (!rc && context) n->context = context;
    return added(rc, n, node);
}

int cuGraphAddHostNode(hewn_cu_node *node, hewn_cu_graph graph, const hewn_cu_node *dependencies,
                       size_t count, const hewn_cu_host_node *params)
{
    BEGIN_ADD(HOST, params);
    if (!rc) rc = node_set_host(n, params);
    return added(rc, n, node);
}

int cuGraphAddEmptyNode(hewn_cu_node *node, hewn_cu_graph graph, const hewn_cu_node *dependencies,
                        size_t count)
{
    BEGIN_ADD(EMPTY, true);
    return added(rc, n, node);
}

static bool holds(const struct CUgraph_st *graph, const struct CUgraph_st *inside)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct CUgraphNode_st *n = graph->nodes[i];
        if (n->type == HEWN_CU_NODE_GRAPH && (n->child == inside || holds(n->child, inside)))
            return true;
        for (unsigned k = 0; n->type == HEWN_CU_NODE_CONDITIONAL && k < n->conditional.size; k++)
            if (n->conditional.graphs[k] == inside || holds(n->conditional.graphs[k], inside))
                return true;
    }
    return false;
}

static int set_child(struct CUgraphNode_st *node, hewn_cu_graph handle, int ownership)
{
    struct CUgraph_st *child = graph_named(handle);

    if (!child || child == node->graph || holds(child, node->graph)) return HEWN_CU_INVALID_VALUE;
    return node_set_child(node, child, ownership);
}

int cuGraphAddChildGraphNode(hewn_cu_node *node, hewn_cu_graph graph,
                             const hewn_cu_node *dependencies, size_t count, hewn_cu_graph child)
{
    BEGIN_ADD(GRAPH, child);
    if (!rc) rc = set_child(n, child, HEWN_CU_CHILD_CLONE);
    return added(rc, n, node);
}

int cuGraphAddEventRecordNode(hewn_cu_node *node, hewn_cu_graph graph,
                              const hewn_cu_node *dependencies, size_t count, hewn_cu_event event)
{
    BEGIN_ADD(EVENT_RECORD, event);
    if (!rc) rc = node_set_event(n, event);
    return added(rc, n, node);
}

int cuGraphAddEventWaitNode(hewn_cu_node *node, hewn_cu_graph graph,
                            const hewn_cu_node *dependencies, size_t count, hewn_cu_event event)
{
    BEGIN_ADD(WAIT_EVENT, event);
    if (!rc) rc = node_set_event(n, event);
    return added(rc, n, node);
}

int cuGraphAddBatchMemOpNode(hewn_cu_node *node, hewn_cu_graph graph,
                             const hewn_cu_node *dependencies, size_t count,
                             const hewn_cu_mem_op_node *params)
{
    BEGIN_ADD(BATCH_MEM_OP, params);
    if (!rc) rc = node_set_mem_ops(n, params);
    if (!rc && params->context) n->context = params->context;
    return added(rc, n, node);
}

int cuGraphAddMemAllocNode(hewn_cu_node *node, hewn_cu_graph graph,
                           const hewn_cu_node *dependencies, size_t count,
                           hewn_cu_alloc_node *params)
{
    BEGIN_ADD(MEM_ALLOC, params);
    if (!rc) rc = node_set_alloc(n, params);
    if (!rc) params->address = n->alloc.params.address;
    return added(rc, n, node);
}

int cuGraphAddMemFreeNode(hewn_cu_node *node, hewn_cu_graph graph, const hewn_cu_node *dependencies,
                          size_t count, hewn_cu_deviceptr address)
{
    BEGIN_ADD(MEM_FREE, address);
    if (!rc) rc = node_set_free(n, address);
    return added(rc, n, node);
}

/* ---- the one function for every kind ---- */

static int set_any(struct CUgraphNode_st *n, hewn_cu_node_params *p, bool fresh)
{
    int rc;

    switch (n->type) {
    case HEWN_CU_NODE_KERNEL: return node_set_kernel(n, &p->kernel);
    case HEWN_CU_NODE_MEMCPY:
        if (p->memcpy.flags || p->memcpy.reserved) return HEWN_CU_INVALID_VALUE;
        return node_set_copy(n, &p->memcpy.copy);
    case HEWN_CU_NODE_MEMSET: return node_set_fill(n, &p->memset);
    case HEWN_CU_NODE_HOST: return node_set_host(n, &p->host);
    case HEWN_CU_NODE_EVENT_RECORD:
    case HEWN_CU_NODE_WAIT_EVENT: return node_set_event(n, p->event);
    case HEWN_CU_NODE_BATCH_MEM_OP: return node_set_mem_ops(n, &p->mem_op);
    case HEWN_CU_NODE_EXT_SEMAS_SIGNAL:
    case HEWN_CU_NODE_EXT_SEMAS_WAIT: return HEWN_CU_NOT_SUPPORTED;
    default: break;
    }
    if (!fresh) return HEWN_CU_INVALID_VALUE; /* of the other kinds nothing can be changed */
    switch (n->type) {
    case HEWN_CU_NODE_GRAPH: return set_child(n, p->child.graph, p->child.ownership);
    case HEWN_CU_NODE_EMPTY: return 0;
    case HEWN_CU_NODE_MEM_ALLOC:
        rc = node_set_alloc(n, &p->alloc);
        if (!rc) p->alloc.address = n->alloc.params.address;
        return rc;
    case HEWN_CU_NODE_MEM_FREE: return node_set_free(n, p->freed);
    case HEWN_CU_NODE_CONDITIONAL:
        rc = node_set_conditional(n, &p->conditional);
        if (!rc) p->conditional.graphs = n->conditional.graphs;
        return rc;
    default: return HEWN_CU_INVALID_VALUE;
    }
}

static bool params_sane(const hewn_cu_node_params *p)
{
    return p && !p->reserved0[0] && !p->reserved0[1] && !p->reserved0[2] && !p->reserved2;
}

int cuGraphAddNode_v2(hewn_cu_node *node, hewn_cu_graph graph, const hewn_cu_node *dependencies,
                      const hewn_cu_edge *data, size_t count, hewn_cu_node_params *params)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *n;
    int rc;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!node || !params_sane(params) || params->type < 0 ||
        params->type > HEWN_CU_NODE_CONDITIONAL)
        return HEWN_CU_INVALID_VALUE;
    rc = add(&call, graph, params->type, dependencies, data, count, &n);
    if (!rc) rc = set_any(n, params, true);
    return added(rc, n, node);
}

int cuGraphAddNode(hewn_cu_node *node, hewn_cu_graph graph, const hewn_cu_node *dependencies,
                   size_t count, hewn_cu_node_params *params)
{
    return cuGraphAddNode_v2(node, graph, dependencies, NULL, count, params);
}

int cuGraphNodeSetParams(hewn_cu_node node, hewn_cu_node_params *params)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *n;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    n = node_named(node);
    if (!n || !params_sane(params) || params->type != n->type) return HEWN_CU_INVALID_VALUE;
    return set_any(n, params, false);
}

/* The node of the instance that was made from `node`, if it is of a type; or NULL. */
static struct CUgraphNode_st *instance_node(hewn_cu_graph_exec exec, hewn_cu_node node, int type)
{
    struct CUgraphExec_st *e = handle_get(exec, HANDLE_EXEC);
    struct CUgraphNode_st *n = node_named(node);

    if (!e || !n || (type >= 0 && n->type != type)) return NULL;
    return node_copied(e->graph, n);
}

int cuGraphExecNodeSetParams(hewn_cu_graph_exec exec, hewn_cu_node node,
                             hewn_cu_node_params *params)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *n;
    int rc;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    n = params_sane(params) ? instance_node(exec, node, params->type) : NULL;
    if (!n) return HEWN_CU_INVALID_VALUE;
    rc = set_any(n, params, false);
    if (!rc && n->type == HEWN_CU_NODE_KERNEL) rc = launch_settle(&n->kernel.launch);
    return rc;
}

/* ---- one pair of functions a kind: of a node, and of its copy in an instance ---- */

#define SET(symbol, exec_symbol, TYPE, params_type, set)                                   \
    int symbol(hewn_cu_node node, params_type params)                                      \
    {                                                                                      \
        struct call call CALL_SCOPE;                                                       \
        struct CUgraphNode_st *n;                                                          \
        if (call_enter(&call, NEED_INIT)) return call.rc;                                  \
        n = node_named(node);                                                              \
        if (!n || n->type != HEWN_CU_NODE_##TYPE || !params) return HEWN_CU_INVALID_VALUE; \
        return set(n, params);                                                             \
    }                                                                                      \
    int exec_symbol(hewn_cu_graph_exec exec, hewn_cu_node node, params_type params)        \
    {                                                                                      \
        struct call call CALL_SCOPE;                                                       \
        struct CUgraphNode_st *n;                                                          \
        if (call_enter(&call, NEED_INIT)) return call.rc;                                  \
        n = instance_node(exec, node, HEWN_CU_NODE_##TYPE);                                \
        if (!n || !params) return HEWN_CU_INVALID_VALUE;                                   \
        return set(n, params);                                                             \
    }

/* The new function and shape must suit what the node's attributes ask for. */
static int set_kernel_settled(struct CUgraphNode_st *n, const hewn_cu_kernel_node *params)
{
    int rc = node_set_kernel(n, params);
    return rc || n->handled ? rc : launch_settle(&n->kernel.launch);
}

SET(cuGraphKernelNodeSetParams_v2, cuGraphExecKernelNodeSetParams_v2, KERNEL,
    const hewn_cu_kernel_node *, set_kernel_settled)
SET(cuGraphHostNodeSetParams, cuGraphExecHostNodeSetParams, HOST, const hewn_cu_host_node *,
    node_set_host)
SET(cuGraphEventRecordNodeSetEvent, cuGraphExecEventRecordNodeSetEvent, EVENT_RECORD, hewn_cu_event,
    node_set_event)
SET(cuGraphEventWaitNodeSetEvent, cuGraphExecEventWaitNodeSetEvent, WAIT_EVENT, hewn_cu_event,
    node_set_event)
SET(cuGraphBatchMemOpNodeSetParams, cuGraphExecBatchMemOpNodeSetParams, BATCH_MEM_OP,
    const hewn_cu_mem_op_node *, node_set_mem_ops)

int cuGraphKernelNodeSetParams(hewn_cu_node node, const hewn_cu_kernel_node *params)
{
    hewn_cu_kernel_node full = kernel_from_v1(params);
    return cuGraphKernelNodeSetParams_v2(node, params ? &full : NULL);
}

int cuGraphExecKernelNodeSetParams(hewn_cu_graph_exec exec, hewn_cu_node node,
                                   const hewn_cu_kernel_node *params)
{
    hewn_cu_kernel_node full = kernel_from_v1(params);
    return cuGraphExecKernelNodeSetParams_v2(exec, node, params ? &full : NULL);
}

/* These take a context in the instance's form alone. */
int cuGraphMemcpyNodeSetParams(hewn_cu_node node, const hewn_cu_memcpy3d *params)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *n;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    n = node_named(node);
    if (!n || n->type != HEWN_CU_NODE_MEMCPY || !params) return HEWN_CU_INVALID_VALUE;
    return node_set_copy(n, params);
}

int cuGraphMemsetNodeSetParams(hewn_cu_node node, const hewn_cu_memset_node *params)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *n;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    n = node_named(node);
    if (!n || n->type != HEWN_CU_NODE_MEMSET || !params) return HEWN_CU_INVALID_VALUE;
    return node_set_fill(n, params);
}

int cuGraphExecMemcpyNodeSetParams(hewn_cu_graph_exec exec, hewn_cu_node node,
                                   const hewn_cu_memcpy3d *params, hewn_cu_context context)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *n;

    (void)context;
    if (call_enter(&call, NEED_INIT)) return call.rc;
    n = instance_node(exec, node, HEWN_CU_NODE_MEMCPY);
    if (!n || !params) return HEWN_CU_INVALID_VALUE;
    return node_set_copy(n, params);
}

int cuGraphExecMemsetNodeSetParams(hewn_cu_graph_exec exec, hewn_cu_node node,
                                   const hewn_cu_memset_node *params, hewn_cu_context context)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *n;

    (void)context;
    if (call_enter(&call, NEED_INIT)) return call.rc;
    n = instance_node(exec, node, HEWN_CU_NODE_MEMSET);
    if (!n || !params) return HEWN_CU_INVALID_VALUE;
    return node_set_fill(n, params);
}

/* ---- reading ---- */

/* Enters a call that reads a node of a type into `out`. */
static struct CUgraphNode_st *enter_read(struct call *call, hewn_cu_node node, int type,
                                         const void *out)
{
    struct CUgraphNode_st *n;

    if (call_enter(call, NEED_INIT)) return NULL;
    n = node_named(node);
    if (n && n->type == type && out) return n;
    call->rc = HEWN_CU_INVALID_VALUE;
    return NULL;
}

#define BEGIN_READ(TYPE, out)                                                           \
    struct call call CALL_SCOPE;                                                        \
    const struct CUgraphNode_st *n = enter_read(&call, node, HEWN_CU_NODE_##TYPE, out); \
    if (!n) return call.rc

static hewn_cu_kernel_node kernel_params(const struct CUgraphNode_st *n)
{
    const struct launch_request *r = &n->kernel.launch;
    bool live = handle_get(r->function, HANDLE_FUNCTION);
    bool of_library = live && !r->function->module->context;

    return (hewn_cu_kernel_node){.function = r->function,
                                 .kernel = of_library ? (hewn_cu_kernel)r->function : NULL,
                                 .grid_x = r->grid[0],
                                 .grid_y = r->grid[1],
                                 .grid_z = r->grid[2],
                                 .block_x = r->block[0],
                                 .block_y = r->block[1],
                                 .block_z = r->block[2],
                                 .shared_bytes = r->dynamic_shared,
                                 .params = n->kernel.pointers,
                                 .context = n->context};
}

int cuGraphKernelNodeGetParams_v2(hewn_cu_node node, hewn_cu_kernel_node *params)
{
    BEGIN_READ(KERNEL, params);
    *params = kernel_params(n);
    return 0;
}

int cuGraphKernelNodeGetParams(hewn_cu_node node, hewn_cu_kernel_node *params)
{
    hewn_cu_kernel_node full;
    BEGIN_READ(KERNEL, params);
    full = kernel_params(n);
    memcpy(params, &full, offsetof(hewn_cu_kernel_node, kernel));
    return 0;
}

int cuGraphMemcpyNodeGetParams(hewn_cu_node node, hewn_cu_memcpy3d *params)
{
    BEGIN_READ(MEMCPY, params);
    if (n->copy.explicit_params)
        *params = n->copy.params;
    else
        copy3d_describe(&n->copy.request, params);
    return 0;
}

/* Without the context: the first version of the struct, which this function has always filled. */
int cuGraphMemsetNodeGetParams(hewn_cu_node node, hewn_cu_memset_node *params)
{
    hewn_cu_memset_node full;
    BEGIN_READ(MEMSET, params);
    full = (hewn_cu_memset_node){.dst = (uint64_t)(uintptr_t)n->fill.dst,
                                 .pitch = n->fill.pitch,
                                 .value = n->fill.value,
                                 .element_size = n->fill.element,
                                 .width = n->fill.width,
                                 .height = n->fill.height};
    memcpy(params, &full, offsetof(hewn_cu_memset_node, context));
    return 0;
}

int cuGraphHostNodeGetParams(hewn_cu_node node, hewn_cu_host_node *params)
{
    BEGIN_READ(HOST, params);
    *params = n->host;
    return 0;
}

int cuGraphChildGraphNodeGetGraph(hewn_cu_node node, hewn_cu_graph *graph)
{
    BEGIN_READ(GRAPH, graph);
    *graph = n->child;
    return 0;
}

int cuGraphEventRecordNodeGetEvent(hewn_cu_node node, hewn_cu_event *event)
{
    BEGIN_READ(EVENT_RECORD, event);
    *event = n->event;
    return 0;
}

int cuGraphEventWaitNodeGetEvent(hewn_cu_node node, hewn_cu_event *event)
{
    BEGIN_READ(WAIT_EVENT, event);
    *event = n->event;
    return 0;
}

int cuGraphMemAllocNodeGetParams(hewn_cu_node node, hewn_cu_alloc_node *params)
{
    BEGIN_READ(MEM_ALLOC, params);
    *params = n->alloc.params;
    return 0;
}

int cuGraphMemFreeNodeGetParams(hewn_cu_node node, hewn_cu_deviceptr *address)
{
    BEGIN_READ(MEM_FREE, address);
    *address = n->freed;
    return 0;
}

int cuGraphBatchMemOpNodeGetParams(hewn_cu_node node, hewn_cu_mem_op_node *params)
{
    BEGIN_READ(BATCH_MEM_OP, params);
    *params = (hewn_cu_mem_op_node){n->context, n->mem_op.count, n->mem_op.ops, n->mem_op.flags};
    return 0;
}

/* ---- attributes of kernel nodes ---- */

static int attribute_set(struct kernel_body *k, int id, const hewn_cu_launch_value *value)
{
    struct launch_request *r = &k->launch;

    if (id <= HEWN_CU_LAUNCH_IGNORE || id >= HEWN_CU_LAUNCH_COUNT) return HEWN_CU_INVALID_VALUE;
    if (id == HEWN_CU_LAUNCH_DEVICE_UPDATABLE_KERNEL_NODE) return HEWN_CU_NOT_SUPPORTED;
    if (!k->attributes) k->attributes = calloc(HEWN_CU_LAUNCH_COUNT, sizeof *k->attributes);
    if (!k->attributes) return HEWN_CU_OUT_OF_MEMORY;
    k->attributes[id] = *value;
    switch (id) {
    case HEWN_CU_LAUNCH_COOPERATIVE: r->cooperative = value->flag != 0; break;
    case HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION: r->overlaps = value->flag != 0; break;
    case HEWN_CU_LAUNCH_CLUSTER_DIMENSION:
        r->cluster[0] = value->cluster.x;
        r->cluster[1] = value->cluster.y;
        r->cluster[2] = value->cluster.z;
        r->cluster_given = r->cluster[0] || r->cluster[1] || r->cluster[2];
        break;
    default: break;
    }
    return 0;
}

static void attribute_get(const struct kernel_body *k, int id, hewn_cu_launch_value *value)
{
    memset(value, 0, sizeof *value);
    if (k->attributes) *value = k->attributes[id];
    if (id == HEWN_CU_LAUNCH_COOPERATIVE) value->flag = k->launch.cooperative;
    if (id == HEWN_CU_LAUNCH_CLUSTER_DIMENSION && k->launch.cluster_given) {
        value->cluster.x = k->launch.cluster[0];
        value->cluster.y = k->launch.cluster[1];
        value->cluster.z = k->launch.cluster[2];
    }
}

int cuGraphKernelNodeSetAttribute(hewn_cu_node node, int id, const hewn_cu_launch_value *value)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *n = enter_read(&call, node, HEWN_CU_NODE_KERNEL, value);
    return n ? attribute_set(&n->kernel, id, value) : call.rc;
}

int cuGraphKernelNodeGetAttribute(hewn_cu_node node, int id, hewn_cu_launch_value *value)
{
    BEGIN_READ(KERNEL, value);
    if (id <= HEWN_CU_LAUNCH_IGNORE || id >= HEWN_CU_LAUNCH_COUNT) return HEWN_CU_INVALID_VALUE;
    attribute_get(&n->kernel, id, value);
    return 0;
}

int cuGraphKernelNodeCopyAttributes(hewn_cu_node dst, hewn_cu_node src)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *from = enter_read(&call, src, HEWN_CU_NODE_KERNEL, src), *to;
    hewn_cu_launch_value value;
    int rc = 0;

    if (!from) return call.rc;
    to = node_named(dst);
    if (!to || to->type != HEWN_CU_NODE_KERNEL) return HEWN_CU_INVALID_VALUE;
    for (int id = 1; id < HEWN_CU_LAUNCH_COUNT && !rc; id++) {
        if (id == HEWN_CU_LAUNCH_DEVICE_UPDATABLE_KERNEL_NODE) continue;
        attribute_get(&from->kernel, id, &value);
        rc = attribute_set(&to->kernel, id, &value);
    }
    return rc;
}

/* ---- conditional handles ---- */

int cuGraphConditionalHandleCreate(hewn_cu_conditional *handle, hewn_cu_graph graph,
                                   hewn_cu_context context, unsigned value, unsigned flags)
{
    struct call call CALL_SCOPE;
    struct condition *fresh;
    struct CUgraph_st *g;
    int rc;

    (void)context;
    if (call_enter(&call, NEED_INIT)) return call.rc;
    g = graph_named(graph);
    if (!handle || !g || flags > HEWN_CU_COND_ASSIGN_DEFAULT) return HEWN_CU_INVALID_VALUE;
    fresh = calloc(1, sizeof *fresh);
    if (!fresh) return HEWN_CU_OUT_OF_MEMORY;
    fresh->value = value;
    fresh->assigns = flags == HEWN_CU_COND_ASSIGN_DEFAULT;
    rc = mem_alloc(sizeof(uint32_t), &fresh->address);
    if (rc) {
        free(fresh);
        return rc;
    }
    *(uint32_t *)(uintptr_t)fresh->address = value;
    fresh->uses = 1;
    rc = handle_add((const void *)(uintptr_t)fresh->address, HANDLE_CONDITION, fresh, NULL);
    if (!rc) rc = graph_add_condition(g, fresh);
    *handle = fresh->address;
    condition_drop(fresh); /* the graph has it now, or nobody */
    return rc;
}
