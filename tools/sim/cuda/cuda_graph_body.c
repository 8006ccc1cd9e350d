/* What the nodes of graphs do: taking it from a program's parameters, copying it, freeing it. */
#include "cuda/graph.h"

#include <stdlib.h>

static void *copy_of(const void *from, size_t bytes)
{
    void *copy = malloc(bytes ? bytes : 1);
    if (copy && bytes) memcpy(copy, from, bytes);
    return copy;
}

/* ---- kernels ---- */

static void kernel_drop(struct kernel_body *k)
{
    free(k->launch.params);
    free(k->pointers);
    free(k->attributes);
}

/* The body of a request, whose parameters it takes over; they are freed where memory runs out. */
static int kernel_make(const struct launch_request *request, const hewn_cu_launch_value *attributes,
                       struct kernel_body *out)
{
    const struct ptx_entry *e = request->function->kernel->entry;

    *out = (struct kernel_body){.launch = *request};
    out->pointers = calloc(e->param_count + (size_t)1, sizeof(void *));
    if (attributes)
        out->attributes = copy_of(attributes, HEWN_CU_LAUNCH_COUNT * sizeof *attributes);
    if (!out->pointers || (attributes && !out->attributes)) {
        kernel_drop(out);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < e->param_count; i++)
        out->pointers[i] = out->launch.params + e->params[i].offset;
    return 0;
}

/* A CUkernel is the CUfunction of its library's module here; both may be given. */
static struct CUfunc_st *function_of(const hewn_cu_kernel_node *p)
{
    const void *kernel = p->kernel, *function = p->function;

    if (kernel && function && kernel != function) return NULL;
    return handle_get(function ? function : kernel, HANDLE_FUNCTION);
}

int node_set_kernel(struct CUgraphNode_st *node, const hewn_cu_kernel_node *p)
{
    const struct kernel_body *before = &node->kernel;
    struct launch_request request = before->launch; /* its attributes stay */
    struct kernel_body fresh;
    int rc;

    request.params = NULL;
    request.function = function_of(p);
    if (!request.function) return HEWN_CU_INVALID_VALUE;
    if (node->kernel.launch.function && handle_get(before->launch.function, HANDLE_FUNCTION) &&
        before->launch.function->module->context != request.function->module->context)
        return HEWN_CU_INVALID_VALUE;
    memcpy(request.grid, &p->grid_x, sizeof request.grid);
    memcpy(request.block, &p->block_x, sizeof request.block);
    request.dynamic_shared = p->shared_bytes;
    rc = launch_describe(&request, p->params, p->extra);
    if (!rc) rc = kernel_make(&request, before->attributes, &fresh);
    if (rc) return rc;
    kernel_drop(&node->kernel);
    node->kernel = fresh;
    if (p->context) node->context = p->context;
    return 0;
}

static int kernel_copy(const struct kernel_body *from, struct kernel_body *to)
{
    struct launch_request request = from->launch;
    size_t bytes;

    if (!handle_get(request.function, HANDLE_FUNCTION)) return HEWN_CU_INVALID_HANDLE;
    bytes = (request.function->kernel->entry->param_bytes + (size_t)64) / 64 * 64;
    request.params = aligned_alloc(64, bytes);
    if (!request.params) return HEWN_CU_OUT_OF_MEMORY;
    memcpy(request.params, from->launch.params, bytes);
    return kernel_make(&request, from->attributes, to);
}

/* ---- copies, fills, host functions, events ---- */

int node_set_copy(struct CUgraphNode_st *node, const hewn_cu_memcpy3d *params)
{
    int rc = copy3d_check(params, false);

    if (rc) return rc;
    node->copy.explicit_params = true;
    node->copy.params = *params;
    return 0;
}

int node_set_fill(struct CUgraphNode_st *node, const hewn_cu_memset_node *p)
{
    struct fill_request fill = {.dst = (uint8_t *)(uintptr_t)p->dst,
                                .value = p->value,
                                .element = p->element_size,
                                .width = p->width,
                                .height = p->height,
                                .pitch = p->pitch};
    int rc;

    if (fill.element != 1 && fill.element != 2 && fill.element != 4) return HEWN_CU_INVALID_VALUE;
    if (!fill.height || !fill.width) return HEWN_CU_INVALID_VALUE;
    rc = fill_check(&fill);
    if (rc && !graph_memory_around(p->dst, 1)) return rc;
    node->fill = fill;
    return 0;
}

int node_set_host(struct CUgraphNode_st *node, const hewn_cu_host_node *params)
{
    if (!params->function) return HEWN_CU_INVALID_VALUE;
    node->host = *params;
    return 0;
}

int node_set_event(struct CUgraphNode_st *node, hewn_cu_event event)
{
    if (!handle_get(event, HANDLE_EVENT)) return HEWN_CU_INVALID_VALUE;
    node->event = event;
    return 0;
}

int node_set_mem_ops(struct CUgraphNode_st *node, const hewn_cu_mem_op_node *params)
{
    struct mem_op_body fresh = {.count = params->count, .flags = params->flags};
    int rc = mem_ops_check(params->count, params->ops, params->flags);

    if (rc) return rc;
    fresh.ops = copy_of(params->ops, params->count * sizeof *params->ops);
    if (!fresh.ops) return HEWN_CU_OUT_OF_MEMORY;
    free(node->mem_op.ops);
    node->mem_op = fresh;
    return 0;
}

int node_set_work(struct CUgraphNode_st *node, struct work *work)
{
    int rc = 0;

    switch (work->kind) {
    case WORK_LAUNCH: rc = kernel_make(&work->launch, NULL, &node->kernel); break;
    case WORK_COPY: node->copy.request = work->copy; break;
    case WORK_FILL: node->fill = work->fill; break;
    case WORK_HOST: node->host = (hewn_cu_host_node){work->host.function, work->host.user}; break;
    case WORK_MEM_OPS:
        node->mem_op.count = work->mem_ops.count;
        node->mem_op.ops = work->mem_ops.ops;
        break;
    case WORK_GRAPH:
    case WORK_FREE: break; /* they become nodes of their own where they are submitted */
    }
    return rc;
}

/* ---- memory nodes ---- */

int node_set_alloc(struct CUgraphNode_st *node, const hewn_cu_alloc_node *params)
{
    enum { PINNED = 1, ON_DEVICE = 1, ON_HOST = 2 };
    const hewn_cu_location *where = &params->pool.location;
    hewn_cu_access *access;
    int rc;

    if (params->pool.type != PINNED || !params->bytes) return HEWN_CU_INVALID_VALUE;
    if (params->pool.handle_types) return HEWN_CU_NOT_SUPPORTED;
    if (where->type != ON_DEVICE && where->type != ON_HOST) return HEWN_CU_INVALID_VALUE;
    if (where->type == ON_DEVICE && where->id) return HEWN_CU_INVALID_DEVICE;
    if (params->access_count && !params->access) return HEWN_CU_INVALID_VALUE;
    access = copy_of(params->access, params->access_count * sizeof *access);
    if (!access) return HEWN_CU_OUT_OF_MEMORY;
    rc = graph_memory_new(params->bytes, node->graph, &node->alloc.memory);
    if (rc) {
        free(access);
        return rc;
    }
    node->alloc.access = access;
    node->alloc.params = *params;
    node->alloc.params.access = access;
    node->alloc.params.address = node->alloc.memory->address;
    node->graph->has_memory_nodes = true;
    return 0;
}

/* One free node an allocation, in the graph that allocates or in another; an allocation of the
 * program's stream-ordered memory is none of a graph's. */
int node_set_free(struct CUgraphNode_st *node, uint64_t address)
{
    struct graph_memory *memory = graph_memory_named(address);

    if (!memory || memory->freed_by == memory->owner) return HEWN_CU_INVALID_VALUE;
    if (memory->freed_by && node->graph->id == memory->owner) return HEWN_CU_INVALID_VALUE;
    if (memory->freed_by == node->graph->id) return HEWN_CU_INVALID_VALUE;
    memory->freed_by = node->graph->id;
    graph_memory_use(memory);
    node->freed = address;
    node->graph->has_memory_nodes = true;
    return 0;
}

/* ---- graphs inside ---- */

int node_set_child(struct CUgraphNode_st *node, struct CUgraph_st *child, int ownership)
{
    struct CUgraph_st *own = child;
    int rc = 0;

    if (ownership == HEWN_CU_CHILD_CLONE) {
        if (child->has_memory_nodes) return HEWN_CU_NOT_SUPPORTED;
        rc = graph_copy(child, true, true, false, &own);
    } else if (ownership != HEWN_CU_CHILD_MOVE || child->owned || child->captures ||
               child->instances) {
        return HEWN_CU_INVALID_VALUE;
    }
    if (rc) return rc;
    own->owned = true;
    if (own->has_memory_nodes) node->graph->has_memory_nodes = true;
    node->child = own;
    return 0;
}

static void bodies_free(struct conditional_body *c)
{
    for (unsigned i = 0; c->graphs && i < c->size; i++)
        if (c->graphs[i]) graph_destroy(c->graphs[i]);
    free(c->graphs);
    condition_drop(c->condition);
}

int node_set_conditional(struct CUgraphNode_st *node, const hewn_cu_conditional_node *p)
{
    enum { SIZE_MAX_SWITCH = 1 << 20 };
    struct conditional_body body = {.type = p->type, .size = p->size};

    body.condition = handle_get((const void *)(uintptr_t)p->handle, HANDLE_CONDITION);
    if (!body.condition || p->type < HEWN_CU_COND_IF || p->type > HEWN_CU_COND_SWITCH)
        return HEWN_CU_INVALID_VALUE;
    if (!p->size || p->size > SIZE_MAX_SWITCH || (p->type == HEWN_CU_COND_WHILE && p->size > 1) ||
        (p->type == HEWN_CU_COND_IF && p->size > 2))
        return HEWN_CU_INVALID_VALUE;
    body.graphs = calloc(p->size, sizeof(struct CUgraph_st *));
    if (!body.graphs) return HEWN_CU_OUT_OF_MEMORY;
    body.condition->uses++;
    for (unsigned i = 0; i < p->size; i++) {
        body.graphs[i] = graph_new(true, true);
        if (body.graphs[i]) continue;
        bodies_free(&body);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    node->conditional = body;
    return 0;
}

static int conditional_copy(const struct conditional_body *from, struct CUgraphNode_st *node,
                            bool ordered)
{
    struct conditional_body body = *from;
    int rc = 0;

    body.graphs = calloc(body.size, sizeof(struct CUgraph_st *));
    if (!body.graphs) return HEWN_CU_OUT_OF_MEMORY;
    body.condition->uses++;
    for (unsigned i = 0; i < body.size && !rc; i++)
        rc = graph_copy(from->graphs[i], node->graph->handled, true, ordered, &body.graphs[i]);
    if (rc)
        bodies_free(&body);
    else
        node->conditional = body;
    return rc;
}

/* ---- copying and freeing ---- */

static int alloc_copy(const struct CUgraphNode_st *from, struct CUgraphNode_st *to)
{
    size_t bytes = from->alloc.params.access_count * sizeof *from->alloc.access;
    hewn_cu_access *access = copy_of(from->alloc.access, bytes);

    if (!access) return HEWN_CU_OUT_OF_MEMORY;
    to->alloc = from->alloc;
    to->alloc.access = access;
    to->alloc.params.access = access;
    graph_memory_use(to->alloc.memory);
    return 0;
}

int node_copy_body(const struct CUgraphNode_st *from, struct CUgraphNode_st *to, bool ordered)
{
    switch (from->type) {
    case HEWN_CU_NODE_KERNEL: return kernel_copy(&from->kernel, &to->kernel);
    case HEWN_CU_NODE_MEMCPY: to->copy = from->copy; break;
    case HEWN_CU_NODE_MEMSET: to->fill = from->fill; break;
    case HEWN_CU_NODE_HOST: to->host = from->host; break;
    case HEWN_CU_NODE_GRAPH:
        return graph_copy(from->child, to->graph->handled, true, ordered, &to->child);
    case HEWN_CU_NODE_WAIT_EVENT:
    case HEWN_CU_NODE_EVENT_RECORD: to->event = from->event; break;
    case HEWN_CU_NODE_MEM_ALLOC: return alloc_copy(from, to);
    case HEWN_CU_NODE_MEM_FREE:
        to->freed = from->freed;
        graph_memory_use(graph_memory_named(from->freed));
        break;
    case HEWN_CU_NODE_BATCH_MEM_OP:
        to->mem_op = from->mem_op;
        to->mem_op.ops = copy_of(from->mem_op.ops, from->mem_op.count * sizeof(hewn_cu_mem_op));
        return to->mem_op.ops ? 0 : HEWN_CU_OUT_OF_MEMORY;
    case HEWN_CU_NODE_CONDITIONAL: return conditional_copy(&from->conditional, to, ordered);
    default: break;
    }
    return 0;
}

/* A node may be freed before it was given anything to do. */
void node_free_body(struct CUgraphNode_st *node)
{
    switch (node->type) {
    case HEWN_CU_NODE_KERNEL: kernel_drop(&node->kernel); break;
    case HEWN_CU_NODE_GRAPH:
        if (node->child) graph_destroy(node->child);
        break;
    case HEWN_CU_NODE_MEM_ALLOC:
        free(node->alloc.access);
        if (node->alloc.memory) graph_memory_drop(node->alloc.memory);
        break;
    case HEWN_CU_NODE_MEM_FREE:
        if (node->freed) graph_memory_drop(graph_memory_named(node->freed));
        break;
    case HEWN_CU_NODE_BATCH_MEM_OP: free(node->mem_op.ops); break;
    case HEWN_CU_NODE_CONDITIONAL:
        if (node->conditional.graphs) bodies_free(&node->conditional);
        break;
    default: break;
    }
}
