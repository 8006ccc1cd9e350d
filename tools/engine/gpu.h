/* The driver's functions that the engine calls beside hewn.h, and memory that is released together.
 */
#ifndef ENGINE_GPU_H
#define ENGINE_GPU_H

#include "problem.h"

#include "hewn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CUgraph_st *gpu_graph;
typedef struct CUgraphExec_st *gpu_graph_exec;

/* X(field, symbol, parameters) */
#define GPU_CALLS(X)                                                                        \
    X(alloc, "cuMemAlloc_v2", (hewn_deviceptr *, size_t))                                   \
    X(release, "cuMemFree_v2", (hewn_deviceptr))                                            \
    X(host_alloc, "cuMemAllocHost_v2", (void **, size_t))                                   \
    X(host_release, "cuMemFreeHost", (void *))                                              \
    X(fill, "cuMemsetD8_v2", (hewn_deviceptr, unsigned char, size_t))                       \
    X(to_device, "cuMemcpyHtoD_v2", (hewn_deviceptr, const void *, size_t))                 \
    X(to_device_async, "cuMemcpyHtoDAsync_v2",                                              \
      (hewn_deviceptr, const void *, size_t, hewn_stream))                                  \
    X(to_host_async, "cuMemcpyDtoHAsync_v2", (void *, hewn_deviceptr, size_t, hewn_stream)) \
    X(stream_create, "cuStreamCreate", (hewn_stream *, unsigned))                           \
    X(stream_destroy, "cuStreamDestroy_v2", (hewn_stream))                                  \
    X(stream_wait, "cuStreamSynchronize", (hewn_stream))                                    \
    X(capture_begin, "cuStreamBeginCapture_v2", (hewn_stream, int))                         \
    X(capture_end, "cuStreamEndCapture", (hewn_stream, gpu_graph *))                        \
    X(graph_make, "cuGraphInstantiateWithFlags",                                            \
      (gpu_graph_exec *, gpu_graph, unsigned long long))                                    \
    X(graph_launch, "cuGraphLaunch", (gpu_graph_exec, hewn_stream))                         \
    X(graph_destroy, "cuGraphDestroy", (gpu_graph))                                         \
    X(graph_exec_destroy, "cuGraphExecDestroy", (gpu_graph_exec))                           \
    X(wait_all, "cuCtxSynchronize", (void))                                                 \
    X(error_text, "cuGetErrorString", (int, const char **))

enum { GPU_BUFFERS = 64 };

struct gpu {
    hewn_driver *driver;
    hewn_context *context;
    hewn_stream stream;
#define GPU_CALL(field, symbol, parameters) int(*field) parameters;
    GPU_CALLS(GPU_CALL)
#undef GPU_CALL
    hewn_deviceptr buffer[GPU_BUFFERS];
    int buffers;
    size_t bytes; /* of all buffers */
};

/* Opens the driver, the primary context of device 0 and a stream. 0, or -1 after a message. */
int gpu_open(const char *path, struct gpu *out, struct problem *p);
/* The same for one of `ranks` processes, on the device of its number. Simulated devices are in one
 * process each, so that one is enough. */
int gpu_open_rank(const char *path, int rank, int ranks, struct gpu *out, struct problem *p);
void gpu_close(struct gpu *g);
/* Device memory, zeroed, until gpu_close. 0 after a message that names `what`. */
hewn_deviceptr gpu_memory(struct gpu *g, size_t size, const char *what, struct problem *p);
/* 0 where `result` is 0, else -1 after a message: what was done, and how the driver calls it. */
int gpu_check(const struct gpu *g, int result, const char *what, struct problem *p);

#endif
