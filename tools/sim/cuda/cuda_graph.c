/* Graphs: nodes, edges, copies, and what a program may ask about their structure. */
#include "cuda/graph.h"

#include <stdlib.h>

/* ---- edges ---- */

static uint32_t edge_index(const struct edges *edges, const struct CUgraphNode_st *node)
{
    uint32_t i = 0;
    while (i < edges->count && edges->at[i].node != node) i++;
    return i;
}

bool edges_have(const struct edges *edges, const struct CUgraphNode_st *node)
{
    return edge_index(edges, node) < edges->count;
}

int edges_add(struct edges *edges, struct CUgraphNode_st *node, hewn_cu_edge data)
{
    if (edges->count == edges->room) {
        uint32_t room = edges->room ? 2 * edges->room : 4;
        struct edge *at = realloc(edges->at, room * sizeof *at);
        if (!at) return HEWN_CU_OUT_OF_MEMORY;
        edges->at = at;
        edges->room = room;
    }
    edges->at[edges->count++] = (struct edge){node, data};
    return 0;
}

void edges_remove(struct edges *edges, const struct CUgraphNode_st *node)
{
    uint32_t i = edge_index(edges, node);

    if (i == edges->count) return;
    edges->count--;
    memmove(edges->at + i, edges->at + i + 1, (edges->count - i) * sizeof *edges->at);
}

void edges_clear(struct edges *edges)
{
    free(edges->at);
    *edges = (struct edges){0};
}

int edges_join(struct edges *edges, const struct edges *more)
{
    int rc = 0;

    for (uint32_t i = 0; i < more->count && !rc; i++)
        if (!edges_have(edges, more->at[i].node))
            rc = edges_add(edges, more->at[i].node, more->at[i].data);
    return rc;
}

static bool edge_is_plain(const hewn_cu_edge *data)
{
    return !data->from_port && !data->to_port && !data->type;
}

/* Programmatic edges go between kernels, from one of their two early ports. */
static bool edge_is_legal(const struct CUgraphNode_st *from, const struct CUgraphNode_st *to,
                          const hewn_cu_edge *data)
{
    static const unsigned char zeros[sizeof data->reserved];

    if (memcmp(data->reserved, zeros, sizeof zeros) != 0 || data->to_port) return false;
    if (edge_is_plain(data)) return true;
    if (from->type != HEWN_CU_NODE_KERNEL || data->from_port > HEWN_CU_PORT_LAUNCH_ORDER)
        return false;
    return data->type == HEWN_CU_EDGE_PROGRAMMATIC && data->from_port &&
           to->type == HEWN_CU_NODE_KERNEL;
}

int node_link(struct CUgraphNode_st *from, struct CUgraphNode_st *to, hewn_cu_edge data)
{
    int rc;

    if (from == to || edges_have(&to->in, from) || !edge_is_legal(from, to, &data))
        return HEWN_CU_INVALID_VALUE;
    rc = edges_add(&to->in, from, data);
    if (rc) return rc;
    rc = edges_add(&from->out, to, data);
    if (rc) edges_remove(&to->in, from);
    return rc;
}

static void node_unlink(struct CUgraphNode_st *from, struct CUgraphNode_st *to)
{
    edges_remove(&to->in, from);
    edges_remove(&from->out, to);
}

/* ---- conditions ---- */

int graph_add_condition(struct CUgraph_st *graph, struct condition *condition)
{
    struct condition **all =
        realloc(graph->conditions, (graph->condition_count + 1) * sizeof(struct condition *));

    if (!all) return HEWN_CU_OUT_OF_MEMORY;
    graph->conditions = all;
    all[graph->condition_count++] = condition;
    condition->uses++;
    return 0;
}

void condition_drop(struct condition *condition)
{
    if (--condition->uses) return;
    handle_drop((const void *)(uintptr_t)condition->address);
    mem_free(condition->address);
    free(condition);
}

/* ---- graphs and nodes ---- */

struct CUgraph_st *graph_named(hewn_cu_graph handle)
{
    return handle_get(handle, HANDLE_GRAPH);
}

struct CUgraphNode_st *node_named(hewn_cu_node handle)
{
    return handle_get(handle, HANDLE_NODE);
}

struct CUgraph_st *graph_new(bool handled, bool owned)
{
    struct CUgraph_st *graph = calloc(1, sizeof *graph);

    if (!graph) return NULL;
    graph->id = ++driver.next_id;
    graph->handled = handled;
    graph->owned = owned;
    if (!handled || !handle_add(graph, HANDLE_GRAPH, graph, NULL)) return graph;
    free(graph);
    return NULL;
}

static void node_free(struct CUgraphNode_st *node)
{
    if (node->handled) handle_drop(node);
    node_free_body(node);
    edges_clear(&node->in);
    edges_clear(&node->out);
    free(node);
}

void graph_destroy(struct CUgraph_st *graph)
{
    if (graph->handled) handle_drop(graph);
    for (uint32_t i = 0; i < graph->count; i++) node_free(graph->nodes[i]);
    for (uint32_t i = 0; i < graph->condition_count; i++) condition_drop(graph->conditions[i]);
    user_objects_drop(graph);
    free(graph->conditions);
    free(graph->nodes);
    free(graph);
}

/* Graphs inside others go with these. */
void graphs_free_all(void)
{
    size_t at = 0;
    struct CUgraphExec_st *exec;
    struct CUgraph_st *graph;

    while ((exec = handle_next(HANDLE_EXEC, NULL, &at))) exec_destroy(exec);
    for (at = 0; (graph = handle_next(HANDLE_GRAPH, NULL, &at));)
        if (!graph->owned) graph_destroy(graph);
}

struct CUgraphNode_st *node_new(struct CUgraph_st *graph, int type)
{
    struct CUgraphNode_st *node;

    if (graph->count == graph->room) {
        uint32_t room = graph->room ? 2 * graph->room : 16;
        struct CUgraphNode_st **nodes = realloc(graph->nodes, room * sizeof *nodes);
        if (!nodes) return NULL;
        graph->nodes = nodes;
        graph->room = room;
    }
    node = calloc(1, sizeof *node);
    if (!node) return NULL;
    node->graph = graph;
    node->type = type;
    node->enabled = true;
    node->id = ++driver.next_id;
    node->handled = graph->handled;
    if (node->handled && handle_add(node, HANDLE_NODE, node, NULL)) {
        free(node);
        return NULL;
    }
    node->index = graph->count;
    graph->nodes[graph->count++] = node;
    return node;
}

void node_destroy(struct CUgraphNode_st *node)
{
    struct CUgraph_st *graph = node->graph;

    while (node->in.count) node_unlink(node->in.at[0].node, node);
    while (node->out.count) node_unlink(node, node->out.at[0].node);
    graph->count--;
    for (uint32_t i = node->index; i < graph->count; i++) {
        graph->nodes[i] = graph->nodes[i + 1];
        graph->nodes[i]->index = i;
    }
    node_free(node);
}

/* Nodes as they were made, where that respects the edges; else each as soon as all before it are out. */
bool graph_order(const struct CUgraph_st *graph, uint32_t *order)
{
    uint32_t *waits = NULL, done = 0, first = 0;
    bool sorted = true;

    for (uint32_t i = 0; i < graph->count; i++) {
        const struct edges *in = &graph->nodes[i]->in;
        order[i] = i;
        for (uint32_t k = 0; k < in->count; k++) sorted &= in->at[k].node->index < i;
    }
    if (sorted) return true;
    waits = calloc(graph->count, sizeof *waits);
    if (!waits) return false;
    for (uint32_t i = 0; i < graph->count; i++) {
        waits[i] = graph->nodes[i]->in.count;
        if (!waits[i]) order[done++] = i;
    }
    for (; first < done; first++) {
        const struct edges *out = &graph->nodes[order[first]]->out;
        for (uint32_t k = 0; k < out->count; k++)
            if (!--waits[out->at[k].node->index]) order[done++] = out->at[k].node->index;
    }
    free(waits);
    return done == graph->count;
}

/* ---- copies ---- */

static int copy_nodes(const struct CUgraph_st *graph, struct CUgraph_st *copy,
                      const uint32_t *order, uint32_t *place, bool ordered)
{
    int rc = 0;

    for (uint32_t i = 0; i < graph->count && !rc; i++) {
        const struct CUgraphNode_st *from = graph->nodes[order[i]];
        struct CUgraphNode_st *to = node_new(copy, from->type);

        if (!to) return HEWN_CU_OUT_OF_MEMORY;
        place[from->index] = i;
        to->origin = from->id;
        to->enabled = from->enabled;
        to->context = from->context;
        rc = node_copy_body(from, to, ordered);
    }
    for (uint32_t i = 0; i < graph->count && !rc; i++) {
        const struct edges *in = &graph->nodes[i]->in;
        for (uint32_t k = 0; k < in->count && !rc; k++)
            rc = node_link(copy->nodes[place[in->at[k].node->index]], copy->nodes[place[i]],
                           in->at[k].data);
    }
    return rc;
}

int graph_copy(const struct CUgraph_st *graph, bool handled, bool owned, bool ordered,
               struct CUgraph_st **out)
{
    struct CUgraph_st *copy = graph_new(handled, owned);
    uint32_t *order = calloc(2 * (size_t)graph->count + 1, sizeof *order);
    int rc = copy && order ? 0 : HEWN_CU_OUT_OF_MEMORY;

    if (!rc && !graph_order(graph, order)) {
        if (ordered) rc = HEWN_CU_INVALID_VALUE;
        for (uint32_t i = 0; i < graph->count; i++) order[i] = i;
    }
    if (!rc && !ordered)
        for (uint32_t i = 0; i < graph->count; i++) order[i] = i;
    if (!rc) rc = copy_nodes(graph, copy, order, order + graph->count, ordered);
    for (uint32_t i = 0; i < graph->condition_count && !rc; i++)
        rc = graph_add_condition(copy, graph->conditions[i]);
    if (!rc) rc = user_objects_copy(graph, copy);
    free(order);
    if (rc && copy) graph_destroy(copy);
    if (rc) return rc;
    copy->has_memory_nodes = graph->has_memory_nodes;
    *out = copy;
    return 0;
}

struct CUgraphNode_st *node_copied(struct CUgraph_st *copy, const struct CUgraphNode_st *node)
{
    struct CUgraphNode_st *found = NULL;

    if (node->index < copy->count && copy->nodes[node->index]->origin == node->id)
        return copy->nodes[node->index];
    for (uint32_t i = 0; i < copy->count && !found; i++) {
        struct CUgraphNode_st *n = copy->nodes[i];
        if (n->origin == node->id) return n;
        if (n->type == HEWN_CU_NODE_GRAPH) found = node_copied(n->child, node);
        for (uint32_t k = 0; n->type == HEWN_CU_NODE_CONDITIONAL && k < n->conditional.size; k++)
            if (!found) found = node_copied(n->conditional.graphs[k], node);
    }
    return found;
}

/* ---- the API: graphs ---- */

int cuGraphCreate(hewn_cu_graph *graph, unsigned flags)
{
    struct call call CALL_SCOPE;
    struct CUgraph_st *fresh;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!graph || flags) return HEWN_CU_INVALID_VALUE;
    fresh = graph_new(true, false);
    if (!fresh) return HEWN_CU_OUT_OF_MEMORY;
    *graph = fresh;
    return 0;
}

int cuGraphDestroy(hewn_cu_graph graph)
{
    struct call call CALL_SCOPE;
    struct CUgraph_st *g;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    g = graph_named(graph);
    if (!g || g->owned || g->captures) return HEWN_CU_INVALID_VALUE;
    graph_destroy(g);
    return 0;
}

int cuGraphClone(hewn_cu_graph *clone, hewn_cu_graph original)
{
    struct call call CALL_SCOPE;
    struct CUgraph_st *g;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    g = graph_named(original);
    if (!clone || !g) return HEWN_CU_INVALID_VALUE;
    if (g->has_memory_nodes) return HEWN_CU_NOT_SUPPORTED;
    return graph_copy(g, true, false, false, clone);
}

int cuGraphNodeFindInClone(hewn_cu_node *node, hewn_cu_node original, hewn_cu_graph clone)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *from;
    struct CUgraph_st *g;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    from = node_named(original);
    g = graph_named(clone);
    if (!node || !from || !g) return HEWN_CU_INVALID_VALUE;
    *node = node_copied(g, from);
    return *node ? 0 : HEWN_CU_INVALID_VALUE;
}

/* ---- the API: structure ---- */

/* What list functions agree on: `*count` has the room on entry. Without an array it becomes the
 * total; with one it becomes what was given, and the rest of the array is cleared. */
struct answer {
    size_t room, total;
};

static struct answer answer_begin(const void *array, const size_t *count)
{
    return (struct answer){array ? *count : 0, 0};
}

static void answer_node(struct answer *a, hewn_cu_node *out, struct CUgraphNode_st *node)
{
    if (a->total < a->room) out[a->total] = node;
    a->total++;
}

static void answer_end(const struct answer *a, hewn_cu_node *out, size_t *count)
{
    for (size_t i = a->total; i < a->room; i++) out[i] = NULL;
    *count = out && a->room < a->total ? a->room : a->total;
}

static int list_nodes(hewn_cu_graph graph, hewn_cu_node *nodes, size_t *count, bool roots)
{
    struct call call CALL_SCOPE;
    struct CUgraph_st *g;
    struct answer a;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    g = graph_named(graph);
    if (!g || !count) return HEWN_CU_INVALID_VALUE;
    a = answer_begin(nodes, count);
    for (uint32_t i = 0; i < g->count; i++)
        if (!roots || !g->nodes[i]->in.count) answer_node(&a, nodes, g->nodes[i]);
    answer_end(&a, nodes, count);
    return 0;
}

int cuGraphGetNodes(hewn_cu_graph graph, hewn_cu_node *nodes, size_t *count)
{
    return list_nodes(graph, nodes, count, false);
}

int cuGraphGetRootNodes(hewn_cu_graph graph, hewn_cu_node *nodes, size_t *count)
{
    return list_nodes(graph, nodes, count, true);
}

/* An answer without edge data would hide what these edges say. */
static bool would_lose(const struct edges *edges, const hewn_cu_edge *data)
{
    for (uint32_t i = 0; i < edges->count && !data; i++)
        if (!edge_is_plain(&edges->at[i].data)) return true;
    return false;
}

int cuGraphGetEdges_v2(hewn_cu_graph graph, hewn_cu_node *from, hewn_cu_node *to,
                       hewn_cu_edge *data, size_t *count)
{
    struct call call CALL_SCOPE;
    struct CUgraph_st *g;
    struct answer a, b;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    g = graph_named(graph);
    if (!g || !count || !from != !to || (data && !from)) return HEWN_CU_INVALID_VALUE;
    a = b = answer_begin(from, count);
    for (uint32_t i = 0; i < g->count; i++) {
        const struct edges *in = &g->nodes[i]->in;
        if (from && would_lose(in, data)) return HEWN_CU_LOSSY_QUERY;
        for (uint32_t k = 0; k < in->count; k++) {
            if (data && a.total < a.room) data[a.total] = in->at[k].data;
            answer_node(&a, from, in->at[k].node);
            answer_node(&b, to, g->nodes[i]);
        }
    }
    answer_end(&a, from, count);
    answer_end(&b, to, count);
    return 0;
}

int cuGraphGetEdges(hewn_cu_graph graph, hewn_cu_node *from, hewn_cu_node *to, size_t *count)
{
    return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

static int list_neighbours(hewn_cu_node node, bool out, hewn_cu_node *nodes, hewn_cu_edge *data,
                           size_t *count)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *n;
    const struct edges *edges;
    struct answer a;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    n = node_named(node);
    if (!n || !count || (data && !nodes)) return HEWN_CU_INVALID_VALUE;
    edges = out ? &n->out : &n->in;
    if (nodes && would_lose(edges, data)) return HEWN_CU_LOSSY_QUERY;
    a = answer_begin(nodes, count);
    for (uint32_t i = 0; i < edges->count; i++) {
        if (data && i < a.room) data[i] = edges->at[i].data;
        answer_node(&a, nodes, edges->at[i].node);
    }
    answer_end(&a, nodes, count);
    return 0;
}

int cuGraphNodeGetDependencies_v2(hewn_cu_node node, hewn_cu_node *nodes, hewn_cu_edge *data,
                                  size_t *count)
{
    return list_neighbours(node, false, nodes, data, count);
}

int cuGraphNodeGetDependencies(hewn_cu_node node, hewn_cu_node *nodes, size_t *count)
{
    return list_neighbours(node, false, nodes, NULL, count);
}

int cuGraphNodeGetDependentNodes_v2(hewn_cu_node node, hewn_cu_node *nodes, hewn_cu_edge *data,
                                    size_t *count)
{
    return list_neighbours(node, true, nodes, data, count);
}

int cuGraphNodeGetDependentNodes(hewn_cu_node node, hewn_cu_node *nodes, size_t *count)
{
    return list_neighbours(node, true, nodes, NULL, count);
}

int cuGraphNodeGetType(hewn_cu_node node, int *type)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *n;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    n = node_named(node);
    if (!n || !type) return HEWN_CU_INVALID_VALUE;
    *type = n->type;
    return 0;
}

/* The two ends of an edge that a program names, both in `g`; false otherwise. */
static bool ends_named(const struct CUgraph_st *g, hewn_cu_node from, hewn_cu_node to,
                       struct CUgraphNode_st **a, struct CUgraphNode_st **b)
{
    *a = node_named(from);
    *b = node_named(to);
    return *a && *b && (*a)->graph == g && (*b)->graph == g;
}

int cuGraphAddDependencies_v2(hewn_cu_graph graph, const hewn_cu_node *from, const hewn_cu_node *to,
                              const hewn_cu_edge *data, size_t count)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *a, *b;
    struct CUgraph_st *g;
    int rc = 0;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    g = graph_named(graph);
    if (!g || (count && (!from || !to))) return HEWN_CU_INVALID_VALUE;
    for (size_t i = 0; i < count && !rc; i++) {
        hewn_cu_edge edge = data ? data[i] : (hewn_cu_edge){0};
        if (!ends_named(g, from[i], to[i], &a, &b)) return HEWN_CU_INVALID_VALUE;
        rc = node_link(a, b, edge);
    }
    return rc;
}

int cuGraphAddDependencies(hewn_cu_graph graph, const hewn_cu_node *from, const hewn_cu_node *to,
                           size_t count)
{
    return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}

int cuGraphRemoveDependencies_v2(hewn_cu_graph graph, const hewn_cu_node *from,
                                 const hewn_cu_node *to, const hewn_cu_edge *data, size_t count)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *a, *b;
    struct CUgraph_st *g;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    g = graph_named(graph);
    if (!g || (count && (!from || !to))) return HEWN_CU_INVALID_VALUE;
    if (g->has_memory_nodes) return HEWN_CU_NOT_SUPPORTED;
    for (size_t i = 0; i < count; i++) {
        static const hewn_cu_edge plain;
        uint32_t k;
        if (!ends_named(g, from[i], to[i], &a, &b)) return HEWN_CU_INVALID_VALUE;
        k = edge_index(&b->in, a);
        if (k == b->in.count ||
            memcmp(data ? &data[i] : &plain, &b->in.at[k].data, sizeof plain) != 0)
            return HEWN_CU_INVALID_VALUE;
        node_unlink(a, b);
    }
    return 0;
}

int cuGraphRemoveDependencies(hewn_cu_graph graph, const hewn_cu_node *from, const hewn_cu_node *to,
                              size_t count)
{
    return cuGraphRemoveDependencies_v2(graph, from, to, NULL, count);
}

int cuGraphDestroyNode(hewn_cu_node node)
{
    struct call call CALL_SCOPE;
    struct CUgraphNode_st *n;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    n = node_named(node);
    if (!n || n->graph->captures) return HEWN_CU_INVALID_VALUE;
    if (n->graph->has_memory_nodes) return HEWN_CU_NOT_SUPPORTED;
    node_destroy(n);
    return 0;
}
