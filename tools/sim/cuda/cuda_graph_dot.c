/* cuGraphDebugDotPrint: a graph as text for the program `dot`. */
#include "cuda/graph.h"

#include <stdio.h>

enum { /* CUgraphDebugDot_flags: what the text shows of each node */
       DOT_VERBOSE = 1,
       DOT_KERNEL = 4,
       DOT_COPY = 8,
       DOT_FILL = 16,
       DOT_HOST = 32,
       DOT_EVENT = 64,
       DOT_HANDLES = 1024,
       DOT_ALLOC = 2048,
       DOT_FREE = 4096,
       DOT_CONDITIONAL = 32768,
       DOT_FLAGS = 65535
};

static const char *type_word(int type)
{
    switch (type) {
#define X(name, value, word) \
    case HEWN_CU_NODE_##name: return word;
        HEWN_CU_NODE_TYPES(X)
#undef X
    default: return "?";
    }
}

static void print_copy(FILE *out, const struct copy_body *copy)
{
    hewn_cu_memcpy3d c = copy->params;

    if (!copy->explicit_params) copy3d_describe(&copy->request, &c);
    fprintf(out, "\\n%zu x %zu x %zu bytes", c.width, c.height, c.depth);
}

static void print_params(FILE *out, const struct CUgraphNode_st *n, unsigned flags)
{
    const struct launch_request *r = &n->kernel.launch;
    bool all = flags & DOT_VERBOSE;

    switch (n->type) {
    case HEWN_CU_NODE_KERNEL:
        if (handle_get(r->function, HANDLE_FUNCTION))
            fprintf(out, "\\n%s", r->function->kernel->entry->name);
        if (all || flags & DOT_KERNEL)
            fprintf(out, "\\n<<<(%u,%u,%u),(%u,%u,%u),%u>>>", r->grid[0], r->grid[1], r->grid[2],
                    r->block[0], r->block[1], r->block[2], r->dynamic_shared);
        break;
    case HEWN_CU_NODE_MEMCPY:
        if (all || flags & DOT_COPY) print_copy(out, &n->copy);
        break;
    case HEWN_CU_NODE_MEMSET:
        if (all || flags & DOT_FILL)
            fprintf(out, "\\n%p = %u, %zu x %zu of %u bytes", (void *)n->fill.dst, n->fill.value,
                    n->fill.width, n->fill.height, n->fill.element);
        break;
    case HEWN_CU_NODE_HOST:
        if (all || flags & DOT_HOST) fprintf(out, "\\nuser data %p", n->host.user);
        break;
    case HEWN_CU_NODE_EVENT_RECORD:
    case HEWN_CU_NODE_WAIT_EVENT:
        if (all || flags & DOT_EVENT) fprintf(out, "\\nevent %p", (void *)n->event);
        break;
    case HEWN_CU_NODE_MEM_ALLOC:
        if (all || flags & DOT_ALLOC)
            fprintf(out, "\\n%zu bytes at 0x%llx", n->alloc.params.bytes, n->alloc.params.address);
        break;
    case HEWN_CU_NODE_MEM_FREE:
        if (all || flags & DOT_FREE) fprintf(out, "\\n0x%llx", (unsigned long long)n->freed);
        break;
    case HEWN_CU_NODE_CONDITIONAL:
        if (all || flags & DOT_CONDITIONAL)
            fprintf(out, "\\nhandle 0x%llx, %u bodies",
                    (unsigned long long)n->conditional.condition->address, n->conditional.size);
        break;
    default: break;
    }
}

/* `id` counts the graphs of the text, so that names of nodes are its own. */
static void print_graph(FILE *out, const struct CUgraph_st *graph, unsigned flags, unsigned *id)
{
    unsigned own = (*id)++;

    fprintf(out, "subgraph cluster_%u {\nlabel=\"graph_%u\"\n", own, own);
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct CUgraphNode_st *n = graph->nodes[i];
        fprintf(out, "\"graph_%u_node_%u\"[shape=\"record\" label=\"%u\\n%s", own, i, i,
                type_word(n->type));
        if (flags & (DOT_VERBOSE | DOT_HANDLES)) fprintf(out, "\\n%p", (const void *)n);
        print_params(out, n, flags);
        fprintf(out, "\"];\n");
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct CUgraphNode_st *n = graph->nodes[i];
        for (uint32_t k = 0; k < n->in.count; k++)
            fprintf(out, "\"graph_%u_node_%u\" -> \"graph_%u_node_%u\";\n", own,
                    n->in.at[k].node->index, own, i);
    }
    fprintf(out, "}\n");
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct CUgraphNode_st *n = graph->nodes[i];
        if (n->type == HEWN_CU_NODE_GRAPH) print_graph(out, n->child, flags, id);
        for (unsigned k = 0; n->type == HEWN_CU_NODE_CONDITIONAL && k < n->conditional.size; k++)
            print_graph(out, n->conditional.graphs[k], flags, id);
    }
}

int cuGraphDebugDotPrint(hewn_cu_graph graph, const char *path, unsigned flags)
{
    struct call call CALL_SCOPE;
    const struct CUgraph_st *g;
    unsigned id = 1;
    FILE *out;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    g = graph_named(graph);
    if (!g || !path || flags > DOT_FLAGS) return HEWN_CU_INVALID_VALUE;
    out = fopen(path, "w");
    if (!out) return HEWN_CU_OPERATING_SYSTEM;
    fprintf(out, "digraph dot {\n");
    print_graph(out, g, flags, &id);
    fprintf(out, "}\n");
    return fclose(out) ? HEWN_CU_OPERATING_SYSTEM : 0;
}
