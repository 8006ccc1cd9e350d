/*
 * Graphs, shared by the files that make (cuda_graph.c, cuda_graph_node.c), record (cuda_capture.c) and run
 * them (cuda_graph_exec.c). A graph is nodes and edges. What runs is a copy of it whose nodes stand in an
 * order that respects every edge: running them in that order is one of the schedules that a graph allows.
 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "cuda/driver.h"

/* The value that decides a conditional node: a word of device memory, whose address is the handle. */
struct condition {
    uint64_t address;
    uint32_t value; /* at the beginning of a launch, where `assigns` */
    bool assigns;
    uint32_t uses; /* graphs and conditional nodes that name it */
};

/* Memory of allocation nodes: its addresses stay, its pages come and go with launches. */
struct graph_memory {
    uint64_t address, bytes;
    uint32_t uses; /* nodes, copies of them, and the allocation while it lives */
    unsigned long long owner, freed_by; /* ids of graphs; 0 none */
    struct CUctx_st *context;
};

struct user_reference {
    struct CUuserObject_st *object;
    unsigned count;
};

struct kernel_body {
    struct launch_request launch;
    void **pointers; /* one a parameter, into launch.params: what programs read back */
    hewn_cu_launch_value
        *attributes; /* those that change nothing here, kept to be read back; or NULL */
};

struct copy_body {
    bool explicit_params; /* `params` say it; else `request`, which a stream recorded */
    hewn_cu_memcpy3d params;
    struct copy_request request;
};

struct conditional_body {
    struct condition *condition;
    int type;
    unsigned size;
    struct CUgraph_st **graphs; /* [size] */
};

struct mem_op_body {
    unsigned count, flags;
    hewn_cu_mem_op *ops; /* [count] */
};

struct CUgraphNode_st {
    struct CUgraph_st *graph;
    int type;                      /* HEWN_CU_NODE_… */
    bool enabled, handled;         /* handled: programs may hold it */
    uint32_t index;                /* in graph->nodes */
    unsigned long long id, origin; /* its own; that of the node which it is a copy of, or 0 */
    struct edges in, out;
    struct CUctx_st *context;
    union {
        struct kernel_body kernel;
        struct copy_body copy;
        struct fill_request fill;
        hewn_cu_host_node host;
        struct CUgraph_st *child;
        struct CUevent_st *event; /* looked up before each use */
        struct {
            struct graph_memory *memory;
            hewn_cu_alloc_node params;
            hewn_cu_access *access;
        } alloc;
        uint64_t freed;
        struct mem_op_body mem_op;
        struct conditional_body conditional;
    };
};

struct CUgraph_st {
    unsigned long long id;
    struct CUgraphNode_st **nodes;
    uint32_t count, room;
    bool handled; /* programs may hold it */
    bool owned;   /* by a node or an instance: nobody else may destroy it */
    bool has_memory_nodes;
    uint32_t instances, captures;  /* of it; into it */
    struct condition **conditions; /* made for it */
    uint32_t condition_count;
    struct user_reference *objects;
    uint32_t object_count;
};

struct CUgraphExec_st {
    struct CUgraph_st *graph; /* nodes in running order */
    struct CUctx_st *context;
    unsigned long long flags, source; /* source: id of the graph that it was made from */
    struct known known;               /* with its last launch */
};

/* A capture in progress. Streams and events that take part point to it. */
struct capture {
    struct capture *next;
    struct CUgraph_st *graph;
    struct CUstream_st *origin;
    struct edges left;  /* last nodes of streams that are gone */
    int mode;           /* HEWN_CU_CAPTURE_… */
    const void *thread; /* who began it */
    unsigned long long id;
    bool invalid, given; /* given: the graph is the program's */
};

/* ---- edges ---- */

bool edges_have(const struct edges *edges, const struct CUgraphNode_st *node);
int edges_add(struct edges *edges, struct CUgraphNode_st *node, hewn_cu_edge data);
void edges_remove(struct edges *edges, const struct CUgraphNode_st *node);
void edges_clear(struct edges *edges);
/* Adds what `more` has and `edges` lack. */
int edges_join(struct edges *edges, const struct edges *more);
/* Makes `to` depend on `from`: 0, 1 where it does already, 2. */
int node_link(struct CUgraphNode_st *from, struct CUgraphNode_st *to, hewn_cu_edge data);

/* ---- graphs and nodes ---- */

struct CUgraph_st *graph_new(bool handled, bool owned);
/* A graph that programs name, or NULL. */
struct CUgraph_st *graph_named(hewn_cu_graph handle);
struct CUgraphNode_st *node_named(hewn_cu_node handle);
/* An empty node at the end of the graph. NULL: no memory. */
struct CUgraphNode_st *node_new(struct CUgraph_st *graph, int type);
/* Takes it out of its graph and frees it. */
void node_destroy(struct CUgraphNode_st *node);
/* Indices of the nodes in an order that respects the edges; false where there is a cycle. `order`
 * has graph->count entries. */
bool graph_order(const struct CUgraph_st *graph, uint32_t *order);
/* A copy; `ordered` puts the nodes into running order. Results: HEWN_CU_…; 1 for a cycle. */
int graph_copy(const struct CUgraph_st *graph, bool handled, bool owned, bool ordered,
               struct CUgraph_st **out);
/* The node of `copy`, or of a graph inside it, that was copied from `node`; or NULL. */
struct CUgraphNode_st *node_copied(struct CUgraph_st *copy, const struct CUgraphNode_st *node);

/* A condition made for `graph` too. */
int graph_add_condition(struct CUgraph_st *graph, struct condition *condition);
void condition_drop(struct condition *condition);

/* ---- what nodes do ---- */

/* Sets what the node does; it owns a copy then. On an error the node keeps what it had. */
int node_set_kernel(struct CUgraphNode_st *node, const hewn_cu_kernel_node *params);
int node_set_copy(struct CUgraphNode_st *node, const hewn_cu_memcpy3d *params);
int node_set_fill(struct CUgraphNode_st *node, const hewn_cu_memset_node *params);
int node_set_host(struct CUgraphNode_st *node, const hewn_cu_host_node *params);
int node_set_event(struct CUgraphNode_st *node, hewn_cu_event event);
int node_set_mem_ops(struct CUgraphNode_st *node, const hewn_cu_mem_op_node *params);
int node_set_alloc(struct CUgraphNode_st *node, const hewn_cu_alloc_node *params);
int node_set_free(struct CUgraphNode_st *node, uint64_t address);
int node_set_child(struct CUgraphNode_st *node, struct CUgraph_st *child, int ownership);
int node_set_conditional(struct CUgraphNode_st *node, const hewn_cu_conditional_node *params);
/* What a stream recorded; the node takes over what the work owns. */
int node_set_work(struct CUgraphNode_st *node, struct work *work);
/* `to`, fresh, does what `from` does. `ordered`: graphs inside it too are put in running order. */
int node_copy_body(const struct CUgraphNode_st *from, struct CUgraphNode_st *to, bool ordered);
void node_free_body(struct CUgraphNode_st *node);

/* ---- 3D copies of nodes: cuda_graph_copy.c ---- */

int copy3d_check(const hewn_cu_memcpy3d *copy, bool executes);
void copy3d_execute(const hewn_cu_memcpy3d *copy);
void copy3d_describe(const struct copy_request *request, hewn_cu_memcpy3d *out);

/* ---- memory of graphs: cuda_graph_memory.c ---- */

int graph_memory_new(uint64_t bytes, struct CUgraph_st *graph, struct graph_memory **out);
/* The memory that begins at `address`, or NULL. */
struct graph_memory *graph_memory_named(uint64_t address);
void graph_memory_use(struct graph_memory *memory);
void graph_memory_drop(struct graph_memory *memory);
/* Its pages come; 1 where they are there already. */
int graph_memory_allocate(struct graph_memory *memory, struct CUctx_st *context);

/* ---- user objects: cuda_user_object.c ---- */

int user_objects_copy(const struct CUgraph_st *from, struct CUgraph_st *to);
void user_objects_drop(struct CUgraph_st *graph);

#endif
