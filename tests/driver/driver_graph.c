/*
 * Graphs: made node by node or by capture, copied, changed, updated and launched. Most cases hold on a real driver
 * too; checks of the simulator's own promises run there only.
 */
#include "lib/driver_table.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { WORDS = 64, BYTES = 4 * WORDS };

static hewn_cu_module module;
static hewn_cu_stream stream;

static hewn_cu_kernel_node fill_params(hewn_cu_deviceptr *out, unsigned *value, void **params)
{
    params[0] = out;
    params[1] = value;
    return (hewn_cu_kernel_node){.function = function(module, "fill"),
                                 .grid_x = 2,
                                 .grid_y = 1,
                                 .grid_z = 1,
                                 .block_x = WORDS / 2,
                                 .block_y = 1,
                                 .block_z = 1,
                                 .params = params};
}

static hewn_cu_memcpy3d copy_params(hewn_cu_deviceptr dst, hewn_cu_deviceptr src)
{
    return (hewn_cu_memcpy3d){.src_type = HEWN_CU_MEMORY_DEVICE,
                              .src_device = src,
                              .dst_type = HEWN_CU_MEMORY_DEVICE,
                              .dst_device = dst,
                              .width = BYTES,
                              .height = 1,
                              .depth = 1};
}

static hewn_cu_memset_node set_params(hewn_cu_deviceptr dst, unsigned value)
{
    return (hewn_cu_memset_node){
        .dst = dst, .value = value, .element_size = 4, .width = WORDS, .height = 1};
}

static void add_one(void *user)
{
    ++*(int *)user;
}

/* The stream does not wait for the default stream, on which buffers are set. */
static void launch(hewn_cu_graph_exec exec)
{
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(cu.cuGraphLaunch(exec, stream), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
}

static hewn_cu_graph_exec instance(hewn_cu_graph graph)
{
    hewn_cu_graph_exec exec = NULL;
    CHECK_INT(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    return exec;
}

/* ---- explicit graphs ---- */

struct chain {
    hewn_cu_graph graph;
    hewn_cu_node set, kernel, copy, host;
    hewn_cu_deviceptr a, b;
    unsigned value;
    int calls;
};

/* a = 5; a = value; b = a; calls++ */
static void chain_make(struct chain *c)
{
    void *params[2];
    hewn_cu_memset_node set;
    hewn_cu_kernel_node kernel;
    hewn_cu_memcpy3d copy;
    hewn_cu_host_node host = {add_one, &c->calls};

    *c = (struct chain){.a = buffer(BYTES), .b = buffer(BYTES), .value = 7};
    CHECK_INT(cu.cuGraphCreate(&c->graph, 0), 0);
    /* The context is named: NULL is none for these two. */
    set = set_params(c->a, 5);
    CHECK_INT(cu.cuGraphAddMemsetNode(&c->set, c->graph, NULL, 0, &set, primary), 0);
    kernel = fill_params(&c->a, &c->value, params);
    CHECK_INT(cu.cuGraphAddKernelNode_v2(&c->kernel, c->graph, &c->set, 1, &kernel), 0);
    copy = copy_params(c->b, c->a);
    CHECK_INT(cu.cuGraphAddMemcpyNode(&c->copy, c->graph, &c->kernel, 1, &copy, primary), 0);
    CHECK_INT(cu.cuGraphAddHostNode(&c->host, c->graph, &c->copy, 1, &host), 0);
}

static void chain_free(struct chain *c)
{
    if (c->graph) CHECK_INT(cu.cuGraphDestroy(c->graph), 0);
    CHECK_INT(cu.cuMemFree_v2(c->a), 0);
    CHECK_INT(cu.cuMemFree_v2(c->b), 0);
}

static void test_explicit(void)
{
    struct chain c;
    hewn_cu_graph_exec exec;
    hewn_cu_node empty, bad[2];
    int type = -1;

    if (!test_case("a graph made node by node runs in the order of its edges")) return;
    chain_make(&c);
    CHECK_INT(cu.cuGraphAddEmptyNode(&empty, c.graph, &c.host, 1), 0);
    CHECK_INT(cu.cuGraphNodeGetType(empty, &type), 0);
    CHECK_INT(type, HEWN_CU_NODE_EMPTY);
    bad[0] = bad[1] = c.set;
    if (simulated) /* a real driver may trust these */
        CHECK_INT(cu.cuGraphAddEmptyNode(&empty, c.graph, bad, 2), HEWN_CU_INVALID_VALUE);
    c.value = 99; /* the node has a copy of its parameters */
    exec = instance(c.graph);
    CHECK_INT(cu.cuGraphDestroy(c.graph), 0);
    c.graph = NULL;
    for (int i = 0; i < 2; i++) launch(exec);
    CHECK_INT(count_wrong(c.b, 7, WORDS), 0);
    CHECK_INT(c.calls, 2);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    chain_free(&c);
}

/* The nodes stand in the reverse order of their dependencies. */
static void test_order(void)
{
    struct chain c;
    hewn_cu_graph_exec exec = NULL;
    hewn_cu_node first, last;
    hewn_cu_memset_node set;
    hewn_cu_instantiate_params params = {0};

    if (!test_case("edges decide the order, and a cycle is refused")) return;
    chain_make(&c);
    set = set_params(c.a, 11);
    CHECK_INT(cu.cuGraphAddMemsetNode(&last, c.graph, NULL, 0, &set, primary), 0);
    set = set_params(c.a, 12);
    CHECK_INT(cu.cuGraphAddMemsetNode(&first, c.graph, NULL, 0, &set, primary), 0);
    CHECK_INT(cu.cuGraphAddDependencies(c.graph, &first, &last, 1), 0);
    CHECK_INT(cu.cuGraphAddDependencies(c.graph, &last, &c.set, 1), 0);
    CHECK_INT(cu.cuGraphAddDependencies(c.graph, &last, &c.set, 1), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuGraphRemoveDependencies(c.graph, &c.set, &c.kernel, 1), 0);
    CHECK_INT(cu.cuGraphRemoveDependencies(c.graph, &c.set, &c.kernel, 1), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuGraphAddDependencies(c.graph, &c.kernel, &first, 1), 0);
    CHECK_INT(cu.cuGraphRemoveDependencies(c.graph, &c.kernel, &c.copy, 1), 0);
    CHECK_INT(cu.cuGraphAddDependencies(c.graph, &c.set, &c.copy, 1), 0);
    exec = instance(c.graph); /* kernel 7, first 12, last 11, set 5, copy */
    launch(exec);
    CHECK_INT(count_wrong(c.b, 5, WORDS), 0);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    CHECK_INT(cu.cuGraphAddDependencies(c.graph, &c.copy, &first, 1), 0);
    CHECK_INT(cu.cuGraphInstantiateWithParams(&exec, c.graph, &params), HEWN_CU_INVALID_VALUE);
    CHECK_INT(params.result, HEWN_CU_INSTANTIATE_STRUCTURE);
    chain_free(&c);
}

static void test_queries(void)
{
    struct chain c;
    hewn_cu_node nodes[8], from[8], to[8];
    size_t count = 0;

    if (!test_case("what a graph says of its nodes and edges")) return;
    chain_make(&c);
    CHECK_INT(cu.cuGraphGetNodes(c.graph, NULL, &count), 0);
    CHECK_INT(count, 4);
    count = 8;
    CHECK_INT(cu.cuGraphGetRootNodes(c.graph, nodes, &count), 0);
    CHECK_INT(count, 1);
    CHECK(nodes[0] == c.set && !nodes[7], "the root is %p, the rest %p", (void *)nodes[0],
          (void *)nodes[7]);
    count = 8;
    CHECK_INT(cu.cuGraphGetEdges(c.graph, from, to, &count), 0);
    CHECK_INT(count, 3);
    count = 1;
    CHECK_INT(cu.cuGraphGetNodes(c.graph, nodes, &count), 0);
    CHECK_INT(count, 1);
    count = 8;
    CHECK_INT(cu.cuGraphNodeGetDependencies(c.copy, nodes, &count), 0);
    CHECK(count == 1 && nodes[0] == c.kernel, "%zu nodes before the copy", count);
    count = 8;
    CHECK_INT(cu.cuGraphNodeGetDependentNodes(c.copy, nodes, &count), 0);
    CHECK(count == 1 && nodes[0] == c.host, "%zu nodes after the copy", count);
    CHECK_INT(cu.cuGraphDestroyNode(c.kernel), 0);
    CHECK_INT(cu.cuGraphGetEdges(c.graph, NULL, NULL, &count), 0);
    CHECK_INT(count, 1);
    chain_free(&c);
}

static void test_params(void)
{
    struct chain c;
    hewn_cu_graph_exec exec;
    hewn_cu_kernel_node kernel = {0};
    hewn_cu_memcpy3d copy = {0};
    hewn_cu_memset_node set = {0};
    hewn_cu_host_node host = {0};
    int other = 0;

    if (!test_case("a node's parameters are read and changed")) return;
    chain_make(&c);
    CHECK_INT(cu.cuGraphKernelNodeGetParams_v2(c.kernel, &kernel), 0);
    CHECK(kernel.function == function(module, "fill") && kernel.grid_x == 2, "grid %u",
          kernel.grid_x);
    CHECK_INT(*(unsigned *)kernel.params[1], 7);
    CHECK_INT(cu.cuGraphKernelNodeGetParams_v2(c.copy, &kernel), HEWN_CU_INVALID_VALUE);
    *(unsigned *)kernel.params[1] = 8;
    CHECK_INT(cu.cuGraphKernelNodeSetParams_v2(c.kernel, &kernel), 0);
    CHECK_INT(cu.cuGraphMemcpyNodeGetParams(c.copy, &copy), 0);
    CHECK(copy.dst_device == c.b && copy.width == BYTES, "%zu bytes", copy.width);
    copy.width = BYTES / 2;
    CHECK_INT(cu.cuGraphMemcpyNodeSetParams(c.copy, &copy), 0);
    CHECK_INT(cu.cuGraphMemsetNodeGetParams(c.set, &set), 0);
    CHECK(set.dst == c.a && set.value == 5 && set.width == WORDS, "set to %u", set.value);
    set.element_size = 3;
    CHECK_INT(cu.cuGraphMemsetNodeSetParams(c.set, &set), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuGraphHostNodeGetParams(c.host, &host), 0);
    CHECK(host.user == &c.calls, "user data %p", host.user);
    host.user = &other;
    CHECK_INT(cu.cuGraphHostNodeSetParams(c.host, &host), 0);
    CHECK_INT(cu.cuMemsetD32_v2(c.b, 1, WORDS), 0);
    exec = instance(c.graph);
    launch(exec);
    CHECK_INT(count_wrong(c.b, 8, WORDS / 2), 0);
    CHECK_INT(count_wrong(c.b + BYTES / 2, 1, WORDS / 2), 0);
    CHECK_INT(other, 1);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    chain_free(&c);
}

static void test_instances(void)
{
    struct chain c;
    hewn_cu_graph_exec exec;
    hewn_cu_memset_node set;
    hewn_cu_memcpy3d copy;
    hewn_cu_kernel_node kernel;
    void *params[2];
    unsigned value = 21, on = 9;

    if (!test_case("an instance is changed without its graph")) return;
    chain_make(&c);
    exec = instance(c.graph);
    kernel = fill_params(&c.a, &value, params);
    CHECK_INT(cu.cuGraphExecKernelNodeSetParams_v2(exec, c.kernel, &kernel), 0);
    launch(exec);
    CHECK_INT(count_wrong(c.b, 21, WORDS), 0);
    CHECK_INT(cu.cuGraphNodeSetEnabled(exec, c.kernel, 0), 0);
    CHECK_INT(cu.cuGraphNodeGetEnabled(exec, c.kernel, &on), 0);
    CHECK_INT(on, 0);
    launch(exec);
    CHECK_INT(count_wrong(c.b, 5, WORDS), 0);
    CHECK_INT(cu.cuGraphNodeSetEnabled(exec, c.host, 0), HEWN_CU_INVALID_VALUE);
    set = set_params(c.a, 31);
    CHECK_INT(cu.cuGraphExecMemsetNodeSetParams(exec, c.set, &set, primary), 0);
    copy = copy_params(c.b, c.a);
    copy.width = 4;
    CHECK_INT(cu.cuGraphExecMemcpyNodeSetParams(exec, c.copy, &copy, primary), 0);
    launch(exec);
    CHECK_INT(count_wrong(c.b, 31, 1) + count_wrong(c.b + 4, 5, WORDS - 1), 0);
    CHECK_INT(cu.cuGraphExecKernelNodeSetParams_v2(exec, c.set, &kernel), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    exec = instance(c.graph); /* the graph is as it was */
    launch(exec);
    CHECK_INT(count_wrong(c.b, 7, WORDS), 0);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    chain_free(&c);
}

static void test_clones(void)
{
    struct chain c;
    hewn_cu_graph clone = NULL, parent = NULL, child = NULL;
    hewn_cu_node found = NULL, node = NULL;
    hewn_cu_graph_exec exec;
    hewn_cu_memset_node set;
    size_t count = 0;

    if (!test_case("clones and child graphs are copies")) return;
    chain_make(&c);
    CHECK_INT(cu.cuGraphClone(&clone, c.graph), 0);
    CHECK_INT(cu.cuGraphNodeFindInClone(&found, c.kernel, clone), 0);
    CHECK(found && found != c.kernel, "the clone's node is the original's");
    CHECK_INT(cu.cuGraphDestroyNode(found), 0);
    CHECK_INT(cu.cuGraphGetNodes(c.graph, NULL, &count), 0);
    CHECK_INT(count, 4);
    CHECK_INT(cu.cuGraphCreate(&parent, 0), 0);
    CHECK_INT(cu.cuGraphAddChildGraphNode(&node, parent, NULL, 0, clone), 0);
    CHECK_INT(cu.cuGraphDestroy(clone), 0);
    CHECK_INT(cu.cuGraphChildGraphNodeGetGraph(node, &child), 0);
    CHECK_INT(cu.cuGraphGetNodes(child, NULL, &count), 0);
    CHECK_INT(count, 3);
    CHECK_INT(cu.cuMemsetD32_v2(c.b, 1, WORDS), 0);
    exec = instance(parent);
    launch(exec); /* without the kernel there is no edge between set and copy */
    CHECK_INT(c.calls, 1);
    count = 1;
    CHECK_INT(cu.cuGraphGetNodes(child, &found, &count), 0);
    set = set_params(c.a, 41);
    CHECK_INT(cu.cuGraphExecMemsetNodeSetParams(exec, found, &set, primary), 0);
    launch(exec);
    CHECK_INT(count_wrong(c.a, 41, WORDS), 0);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    CHECK_INT(cu.cuGraphDestroy(parent), 0);
    if (simulated) CHECK_INT(cu.cuGraphDestroy(child), HEWN_CU_INVALID_VALUE);
    chain_free(&c);
}

static void test_update(void)
{
    struct chain c, d;
    hewn_cu_graph_exec exec;
    hewn_cu_update_result info = {.result = -1};
    hewn_cu_node extra;

    if (!test_case("an instance is updated from a graph of the same shape")) return;
    chain_make(&c);
    chain_make(&d);
    exec = instance(c.graph);
    CHECK_INT(cu.cuGraphExecUpdate_v2(exec, d.graph, &info), 0);
    CHECK_INT(info.result, HEWN_CU_UPDATE_SUCCESS);
    launch(exec);
    CHECK(c.calls == 0 && d.calls == 1, "calls %d and %d", c.calls, d.calls);
    CHECK_INT(count_wrong(d.b, 7, WORDS), 0);
    CHECK_INT(cu.cuGraphAddEmptyNode(&extra, d.graph, NULL, 0), 0);
    CHECK_INT(cu.cuGraphExecUpdate_v2(exec, d.graph, &info), HEWN_CU_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK_INT(info.result, HEWN_CU_UPDATE_TOPOLOGY);
    CHECK_INT(cu.cuGraphDestroyNode(extra), 0);
    CHECK_INT(cu.cuGraphDestroyNode(d.host), 0);
    CHECK_INT(cu.cuGraphAddEmptyNode(&extra, d.graph, &d.copy, 1), 0);
    CHECK_INT(cu.cuGraphExecUpdate_v2(exec, d.graph, &info), HEWN_CU_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK_INT(info.result, HEWN_CU_UPDATE_NODE_TYPE);
    CHECK(info.error_node == extra, "the node that does not fit is another");
    launch(exec); /* as before the failed updates */
    CHECK_INT(d.calls, 2);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    chain_free(&c);
    chain_free(&d);
}

/* ---- the general form, attributes ---- */

static void test_any_node(void)
{
    struct chain c;
    hewn_cu_node_params params = {.type = HEWN_CU_NODE_MEMSET};
    hewn_cu_node node = NULL, second = NULL;
    hewn_cu_graph_exec exec;
    hewn_cu_launch_value value = {0}, got = {0};
    hewn_cu_edge early = {.from_port = 1, .type = HEWN_CU_EDGE_PROGRAMMATIC}, data;
    size_t count = 1;
    void *pointers[2];

    if (!test_case("nodes of every kind by one function; edge data; attributes")) return;
    chain_make(&c);
    params.memset = set_params(c.b, 51);
    CHECK_INT(cu.cuGraphAddNode_v2(&node, c.graph, &c.copy, NULL, 1, &params), 0);
    params.memset.value = 52;
    CHECK_INT(cu.cuGraphNodeSetParams(node, &params), 0);
    exec = instance(c.graph);
    launch(exec);
    CHECK_INT(count_wrong(c.b, 52, WORDS), 0);
    params.memset.value = 53;
    CHECK_INT(cu.cuGraphExecNodeSetParams(exec, node, &params), 0);
    launch(exec);
    CHECK_INT(count_wrong(c.b, 53, WORDS), 0);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    params = (hewn_cu_node_params){.type = HEWN_CU_NODE_KERNEL};
    params.kernel = fill_params(&c.b, &c.value, pointers);
    CHECK_INT(cu.cuGraphAddNode_v2(&second, c.graph, &c.kernel, &early, 1, &params), 0);
    CHECK_INT(cu.cuGraphNodeGetDependencies_v2(second, &node, &data, &count), 0);
    CHECK(count == 1 && data.type == HEWN_CU_EDGE_PROGRAMMATIC, "edge type %d", data.type);
    CHECK_INT(cu.cuGraphNodeGetDependencies(second, &node, &count), HEWN_CU_LOSSY_QUERY);
    value.flag = 1;
    CHECK_INT(cu.cuGraphKernelNodeSetAttribute(c.kernel, HEWN_CU_LAUNCH_COOPERATIVE, &value), 0);
    CHECK_INT(cu.cuGraphKernelNodeCopyAttributes(second, c.kernel), 0);
    CHECK_INT(cu.cuGraphKernelNodeGetAttribute(second, HEWN_CU_LAUNCH_COOPERATIVE, &got), 0);
    CHECK_INT(got.flag, 1);
    params.type = 99;
    CHECK_INT(cu.cuGraphAddNode_v2(&node, c.graph, NULL, NULL, 0, &params), HEWN_CU_INVALID_VALUE);
    chain_free(&c);
}

/* ---- events, memory, user objects ---- */

static void test_event_nodes(void)
{
    hewn_cu_graph graph;
    hewn_cu_event event, other, got = NULL;
    hewn_cu_node record, wait;
    hewn_cu_graph_exec exec;
    float ms = -1;

    if (!test_case("event nodes")) return;
    CHECK_INT(cu.cuEventCreate(&event, 0), 0);
    CHECK_INT(cu.cuEventCreate(&other, 0), 0);
    CHECK_INT(cu.cuGraphCreate(&graph, 0), 0);
    CHECK_INT(cu.cuGraphAddEventRecordNode(&record, graph, NULL, 0, event), 0);
    CHECK_INT(cu.cuGraphAddEventWaitNode(&wait, graph, &record, 1, event), 0);
    CHECK_INT(cu.cuGraphEventRecordNodeGetEvent(record, &got), 0);
    CHECK(got == event, "another event");
    exec = instance(graph);
    launch(exec);
    CHECK_INT(cu.cuGraphExecEventRecordNodeSetEvent(exec, record, other), 0);
    launch(exec);
    CHECK_INT(cu.cuEventElapsedTime(&ms, event, other), 0);
    CHECK(ms >= 0, "%g ms", (double)ms);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    CHECK_INT(cu.cuGraphDestroy(graph), 0);
    CHECK_INT(cu.cuEventDestroy_v2(event), 0);
    CHECK_INT(cu.cuEventDestroy_v2(other), 0);
}

static uint64_t graph_bytes(int attribute)
{
    uint64_t bytes = 0;
    CHECK_INT(cu.cuDeviceGetGraphMemAttribute(0, attribute, &bytes), 0);
    return bytes;
}

static void test_memory_nodes(void)
{
    enum { USED = 0 };
    hewn_cu_alloc_node alloc = {.pool = {.type = 1, .location = {.type = 1}}, .bytes = BYTES};
    hewn_cu_graph graph, clone, freeing;
    hewn_cu_node node, set, end;
    hewn_cu_memset_node fill;
    hewn_cu_graph_exec exec, second, freed;
    hewn_cu_deviceptr kept;

    if (!test_case("memory nodes")) return;
    CHECK_INT(cu.cuGraphCreate(&graph, 0), 0);
    CHECK_INT(cu.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &alloc), 0);
    kept = alloc.address;
    CHECK(kept, "no address");
    fill = set_params(kept, 61);
    CHECK_INT(cu.cuGraphAddMemsetNode(&set, graph, &node, 1, &fill, primary), 0);
    CHECK_INT(cu.cuGraphAddMemAllocNode(&node, graph, &set, 1, &alloc), 0);
    CHECK_INT(cu.cuGraphAddMemFreeNode(&end, graph, &node, 1, alloc.address), 0);
    CHECK_INT(cu.cuGraphAddMemFreeNode(&end, graph, &node, 1, alloc.address),
              HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuGraphClone(&clone, graph), HEWN_CU_NOT_SUPPORTED);
    CHECK_INT(cu.cuGraphDestroyNode(set), HEWN_CU_NOT_SUPPORTED);
    exec = instance(graph);
    CHECK_INT(cu.cuGraphInstantiateWithFlags(&second, graph, 0), HEWN_CU_NOT_SUPPORTED);
    launch(exec);
    CHECK_INT(count_wrong(kept, 61, WORDS), 0);
    CHECK(graph_bytes(USED) >= BYTES, "%llu bytes", (unsigned long long)graph_bytes(USED));
    CHECK_INT(cu.cuGraphLaunch(exec, stream), HEWN_CU_INVALID_VALUE); /* not freed yet */
    CHECK_INT(cu.cuMemFreeAsync(kept, stream), 0);
    launch(exec);
    CHECK_INT(count_wrong(kept, 61, WORDS), 0);
    CHECK_INT(cu.cuGraphCreate(&freeing, 0), 0);
    CHECK_INT(cu.cuGraphAddMemFreeNode(&end, freeing, NULL, 0, kept), 0);
    freed = instance(freeing);
    launch(freed);
    if (simulated) CHECK_INT(graph_bytes(USED), 0); /* an H200 still counted it */
    CHECK_INT(cu.cuDeviceGraphMemTrim(0), 0);
    CHECK_INT(cu.cuGraphExecDestroy(freed), 0);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    CHECK_INT(cu.cuGraphInstantiateWithFlags(&exec, graph, HEWN_CU_INSTANTIATE_AUTO_FREE), 0);
    for (int i = 0; i < 2; i++) launch(exec);
    CHECK_INT(cu.cuMemFree_v2(kept), 0);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    CHECK_INT(cu.cuGraphDestroy(freeing), 0);
    CHECK_INT(cu.cuGraphDestroy(graph), 0);
}

static void test_user_objects(void)
{
    hewn_cu_user_object object = NULL;
    hewn_cu_graph graph;
    hewn_cu_graph_exec exec;
    int gone = 0;

    if (!test_case("user objects live as long as a graph names them")) return;
    CHECK_INT(cu.cuUserObjectCreate(&object, &gone, add_one, 1, 0), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuUserObjectCreate(&object, &gone, add_one, 1, HEWN_CU_USER_OBJECT_NO_SYNC), 0);
    CHECK_INT(cu.cuGraphCreate(&graph, 0), 0);
    CHECK_INT(cu.cuGraphRetainUserObject(graph, object, 1, HEWN_CU_USER_OBJECT_MOVE), 0);
    exec = instance(graph);
    CHECK_INT(cu.cuGraphDestroy(graph), 0);
    launch(exec);
    CHECK_INT(gone, 0);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    if (simulated) CHECK_INT(gone, 1); /* another thread calls it on a real driver */
}

/* ---- captures ---- */

static void test_fork(void)
{
    hewn_cu_graph graph = NULL;
    hewn_cu_stream side = NULL;
    hewn_cu_event fork, join;
    hewn_cu_deviceptr a = buffer(BYTES), b = buffer(BYTES);
    hewn_cu_node from[8], to[8];
    size_t count = 0, roots = 0;

    if (!test_case("a capture records what streams and events order")) return;
    CHECK_INT(cu.cuStreamCreate(&side, HEWN_CU_STREAM_NON_BLOCKING), 0);
    CHECK_INT(cu.cuEventCreate(&fork, HEWN_CU_EVENT_DISABLE_TIMING), 0);
    CHECK_INT(cu.cuEventCreate(&join, HEWN_CU_EVENT_DISABLE_TIMING), 0);
    CHECK_INT(cu.cuStreamBeginCapture_v2(stream, HEWN_CU_CAPTURE_THREAD_LOCAL), 0);
    CHECK_INT(cu.cuMemsetD32Async(a, 1, WORDS, stream), 0);
    CHECK_INT(cu.cuEventRecord(fork, stream), 0);
    CHECK_INT(cu.cuStreamWaitEvent(side, fork, 0), 0);
    CHECK_INT(cu.cuMemsetD32Async(a, 2, WORDS, stream), 0);
    CHECK_INT(cu.cuMemsetD32Async(b, 3, WORDS, side), 0);
    CHECK_INT(cu.cuEventRecord(join, side), 0);
    CHECK_INT(cu.cuStreamWaitEvent(stream, join, 0), 0);
    CHECK_INT(cu.cuMemcpyDtoDAsync_v2(b, a, BYTES / 2, stream), 0);
    CHECK_INT(cu.cuStreamEndCapture(stream, &graph), 0);
    count = 8;
    CHECK_INT(cu.cuGraphGetEdges(graph, from, to, &count), 0);
    CHECK_INT(count, 4);
    CHECK_INT(cu.cuGraphGetRootNodes(graph, NULL, &roots), 0);
    CHECK_INT(roots, 1);
    CHECK_INT(cu.cuGraphDestroy(graph), 0);
    /* the side stream's work is not waited for */
    CHECK_INT(cu.cuStreamBeginCapture_v2(stream, HEWN_CU_CAPTURE_THREAD_LOCAL), 0);
    CHECK_INT(cu.cuEventRecord(fork, stream), 0);
    CHECK_INT(cu.cuStreamWaitEvent(side, fork, 0), 0);
    CHECK_INT(cu.cuMemsetD32Async(b, 3, WORDS, side), 0);
    CHECK_INT(cu.cuStreamEndCapture(stream, &graph), HEWN_CU_STREAM_CAPTURE_UNJOINED);
    CHECK_INT(cu.cuEventDestroy_v2(fork), 0);
    CHECK_INT(cu.cuEventDestroy_v2(join), 0);
    CHECK_INT(cu.cuStreamDestroy_v2(side), 0);
    CHECK_INT(cu.cuMemFree_v2(a), 0);
    CHECK_INT(cu.cuMemFree_v2(b), 0);
}

static void test_capture_to_graph(void)
{
    struct chain c;
    hewn_cu_graph got = NULL;
    hewn_cu_graph_exec exec;
    hewn_cu_node node;
    const hewn_cu_node *last = NULL;
    const hewn_cu_edge *edges = NULL;
    hewn_cu_memset_node set;
    uint64_t id = 0;
    size_t count = 0;
    int status = -1;

    if (!test_case("a capture into a graph, read and steered on the way")) return;
    chain_make(&c);
    CHECK_INT(cu.cuStreamBeginCaptureToGraph(stream, c.graph, &c.copy, NULL, 1,
                                             HEWN_CU_CAPTURE_THREAD_LOCAL),
              0);
    CHECK_INT(cu.cuMemsetD32Async(c.b, 71, WORDS / 2, stream), 0);
    CHECK_INT(cu.cuStreamGetCaptureInfo_v3(stream, &status, &id, &got, &last, &edges, &count), 0);
    CHECK_INT(status, HEWN_CU_CAPTURE_ACTIVE);
    CHECK(got == c.graph && count == 1 && id, "graph %p, %zu nodes", (void *)got, count);
    set = set_params(c.b + BYTES / 2, 72);
    set.width = WORDS / 2;
    CHECK_INT(cu.cuGraphAddMemsetNode(&node, c.graph, last, count, &set, primary), 0);
    CHECK_INT(cu.cuStreamUpdateCaptureDependencies(stream, &node, 1,
                                                   HEWN_CU_CAPTURE_SET_DEPENDENCIES),
              0);
    CHECK_INT(cu.cuMemsetD32Async(c.a, 73, WORDS, stream), 0);
    CHECK_INT(cu.cuStreamEndCapture(stream, &got), 0);
    CHECK(got == c.graph, "another graph");
    exec = instance(c.graph);
    launch(exec);
    CHECK_INT(count_wrong(c.b, 71, WORDS / 2) + count_wrong(c.b + BYTES / 2, 72, WORDS / 2), 0);
    CHECK_INT(count_wrong(c.a, 73, WORDS), 0);
    /* no instance is launched into a capture */
    CHECK_INT(cu.cuStreamBeginCapture_v2(stream, HEWN_CU_CAPTURE_THREAD_LOCAL), 0);
    CHECK_INT(cu.cuGraphLaunch(exec, stream), HEWN_CU_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_INT(cu.cuStreamEndCapture(stream, &got), HEWN_CU_STREAM_CAPTURE_INVALIDATED);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    chain_free(&c);
}

static void test_capture_memory(void)
{
    hewn_cu_graph graph = NULL;
    hewn_cu_graph_exec exec;
    hewn_cu_deviceptr scratch = 0, out = buffer(BYTES);
    hewn_cu_event event;
    size_t count = 0;

    if (!test_case("stream-ordered memory and external events in a capture")) return;
    CHECK_INT(cu.cuEventCreate(&event, 0), 0);
    CHECK_INT(cu.cuStreamBeginCapture_v2(stream, HEWN_CU_CAPTURE_GLOBAL), 0);
    CHECK_INT(cu.cuMemAllocAsync(&scratch, BYTES, stream), 0);
    CHECK_INT(cu.cuMemsetD32Async(scratch, 81, WORDS, stream), 0);
    CHECK_INT(cu.cuMemcpyDtoDAsync_v2(out, scratch, BYTES, stream), 0);
    CHECK_INT(cu.cuEventRecordWithFlags(event, stream, 1), 0);
    CHECK_INT(cu.cuMemFreeAsync(scratch, stream), 0);
    CHECK_INT(cu.cuStreamEndCapture(stream, &graph), 0);
    CHECK_INT(cu.cuGraphGetNodes(graph, NULL, &count), 0);
    CHECK_INT(count, 5);
    exec = instance(graph);
    for (int i = 0; i < 2; i++) launch(exec);
    CHECK_INT(count_wrong(out, 81, WORDS), 0);
    CHECK_INT(cu.cuEventSynchronize(event), 0);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    CHECK_INT(cu.cuGraphDestroy(graph), 0);
    CHECK_INT(cu.cuEventDestroy_v2(event), 0);
    CHECK_INT(cu.cuMemFree_v2(out), 0);
}

/* ---- conditional nodes ---- */

/* Sets a condition to the word at `from`, and counts that word down. */
static const char deciding[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);\n"
    ".visible .entry decide(.param .u64 handle, .param .u64 from) {\n"
    "  .reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
    "  ld.param.u64 %rd0, [handle]; ld.param.u64 %rd1, [from]; cvta.to.global.u64 %rd1, %rd1;\n"
    "  ld.global.u32 %r0, [%rd1]; sub.u32 %r1, %r0, 1; st.global.u32 [%rd1], %r1;\n"
    "  { .param .b64 a; .param .b32 b; st.param.b64 [a], %rd0; st.param.b32 [b], %r0;\n"
    "    call.uni cudaGraphSetConditional, (a, b); }\n"
    "  ret;\n}\n";

struct decision {
    hewn_cu_graph graph;
    hewn_cu_node node;
    hewn_cu_node_params conditional;
    hewn_cu_deviceptr word, out;
    hewn_cu_module code;
};

/* A graph whose first kernel decides about a conditional node from a word of memory. */
static void decision_make(struct decision *d, int type, unsigned size)
{
    void *params[2];
    hewn_cu_conditional handle = 0;
    hewn_cu_node first;
    hewn_cu_kernel_node kernel = {.grid_x = 1,
                                  .grid_y = 1,
                                  .grid_z = 1,
                                  .block_x = 1,
                                  .block_y = 1,
                                  .block_z = 1,
                                  .params = params};

    *d = (struct decision){.word = buffer(4), .out = buffer(BYTES), .code = load(deciding)};
    CHECK_INT(cu.cuGraphCreate(&d->graph, 0), 0);
    CHECK_INT(cu.cuGraphConditionalHandleCreate(&handle, d->graph, primary, 0, 0), 0);
    params[0] = &handle;
    params[1] = &d->word;
    kernel.function = function(d->code, "decide");
    CHECK_INT(cu.cuGraphAddKernelNode_v2(&first, d->graph, NULL, 0, &kernel), 0);
    d->conditional.type = HEWN_CU_NODE_CONDITIONAL;
    d->conditional.conditional.handle = handle;
    d->conditional.conditional.type = type;
    d->conditional.conditional.size = size;
    d->conditional.conditional.context = primary;
    CHECK_INT(cu.cuGraphAddNode_v2(&d->node, d->graph, &first, NULL, 1, &d->conditional), 0);
    if (type != HEWN_CU_COND_WHILE) return;
    CHECK_INT(cu.cuGraphAddKernelNode_v2(&first, d->conditional.conditional.graphs[0], NULL, 0,
                                         &kernel),
              0);
}

static void decision_run(struct decision *d, hewn_cu_graph_exec exec, unsigned word)
{
    CHECK_INT(cu.cuMemsetD32_v2(d->word, word, 1), 0);
    CHECK_INT(cu.cuMemsetD32_v2(d->out, 0, WORDS), 0);
    launch(exec);
}

static void decision_free(struct decision *d)
{
    CHECK_INT(cu.cuGraphDestroy(d->graph), 0);
    CHECK_INT(cu.cuMemFree_v2(d->word), 0);
    CHECK_INT(cu.cuMemFree_v2(d->out), 0);
    CHECK_INT(cu.cuModuleUnload(d->code), 0);
}

/* A real driver resolves cudaGraphSetConditional from the device runtime, which has to be linked. */
static void test_conditions(void)
{
    struct decision d;
    hewn_cu_graph *bodies;
    hewn_cu_graph_exec exec;
    hewn_cu_host_node host = {add_one, &d};
    hewn_cu_node node;
    hewn_cu_memset_node set;

    if (!test_case("conditional nodes: if, else, while, switch")) return;
    if (!simulated) {
        test_skip("needs the device runtime library");
        return;
    }
    for (int type = HEWN_CU_COND_IF; type <= HEWN_CU_COND_SWITCH; type += HEWN_CU_COND_SWITCH) {
        decision_make(&d, type, 2);
        bodies = d.conditional.conditional.graphs;
        for (unsigned i = 0; i < 2; i++) {
            set = set_params(d.out, 91 + i);
            CHECK_INT(cu.cuGraphAddMemsetNode(&node, bodies[i], NULL, 0, &set, primary), 0);
        }
        exec = instance(d.graph);
        decision_run(&d, exec, 1);
        CHECK_INT(count_wrong(d.out, type == HEWN_CU_COND_IF ? 91 : 92, WORDS), 0);
        decision_run(&d, exec, 0);
        CHECK_INT(count_wrong(d.out, type == HEWN_CU_COND_IF ? 92 : 91, WORDS), 0);
        decision_run(&d, exec, 2);
        CHECK_INT(count_wrong(d.out, type == HEWN_CU_COND_IF ? 91 : 0, WORDS), 0);
        CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
        decision_free(&d);
    }
    decision_make(&d, HEWN_CU_COND_WHILE, 1);
    exec = instance(d.graph);
    decision_run(&d, exec, 5);
    CHECK_INT(count_wrong(d.word, UINT32_MAX, 1), 0); /* counted down past 0 */
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    CHECK_INT(cu.cuGraphAddHostNode(&node, d.conditional.conditional.graphs[0], NULL, 0, &host), 0);
    CHECK_INT(cu.cuGraphInstantiateWithFlags(&exec, d.graph, 0), HEWN_CU_NOT_SUPPORTED);
    d.conditional.conditional.size = 2;
    CHECK_INT(cu.cuGraphAddNode_v2(&node, d.graph, NULL, NULL, 0, &d.conditional),
              HEWN_CU_INVALID_VALUE);
    decision_free(&d);
}

static void test_dot(void)
{
    struct chain c;
    const char *dir = getenv("TMPDIR");
    char path[256], all[4096] = "";
    FILE *file;

    if (!test_case("a graph as text for dot")) return;
    chain_make(&c);
    snprintf(path, sizeof path, "%s/hewn-graph-%d.dot", dir && *dir ? dir : "/tmp", (int)getpid());
    CHECK_INT(cu.cuGraphDebugDotPrint(c.graph, path, 1), 0);
    file = fopen(path, "r");
    CHECK(file, "nothing was written to %s", path);
    if (file) {
        all[fread(all, 1, sizeof all - 1, file)] = 0;
        fclose(file);
        remove(path);
        CHECK_TEXT(all, "digraph");
        CHECK_TEXT(all, "->");
        CHECK_TEXT(all, "fill");
    }
    CHECK_INT(cu.cuGraphDebugDotPrint(c.graph, "/nonexistent/x.dot", 0), HEWN_CU_OPERATING_SYSTEM);
    chain_free(&c);
}

int main(int argc, char **argv)
{
    if (!driver_begin("driver_graph", argc, argv)) return test_end();
    module = load(text);
    CHECK_INT(cu.cuStreamCreate(&stream, HEWN_CU_STREAM_NON_BLOCKING), 0);
    test_explicit();
    test_order();
    test_queries();
    test_params();
    test_instances();
    test_clones();
    test_update();
    test_any_node();
    test_event_nodes();
    test_memory_nodes();
    test_user_objects();
    test_fork();
    test_capture_to_graph();
    test_capture_memory();
    test_conditions();
    test_dot();
    CHECK_INT(cu.cuStreamDestroy_v2(stream), 0);
    CHECK_INT(cu.cuModuleUnload(module), 0);
    cu.cuDevicePrimaryCtxRelease_v2(0);
    return test_end();
}
