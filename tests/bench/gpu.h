/* What the benches of decode, MLA and the indexer share, and the test serving: the GPU, memory on it, the time of a graph. A step that
 * fails ends the program. */
#ifndef TESTS_GPU_H
#define TESTS_GPU_H

#include "lib/device.h"

#include <stdint.h>

struct gpu {
    struct device d;
    hewn_stream stream;
    int (*d2d)(hewn_deviceptr, hewn_deviceptr, size_t);
    int (*begin)(hewn_stream, int); /* capture into a graph */
    int (*end)(hewn_stream, void **);
    int (*instantiate)(void **, void *, unsigned long long);
    int (*launch)(void *, hewn_stream);
    int (*exec_destroy)(void *), (*graph_destroy)(void *);
    int (*event_create)(void **, unsigned), (*event_record)(void *, hewn_stream);
    int (*event_wait)(void *), (*elapsed)(float *, void *, void *);
    int (*wait)(hewn_stream);
    int (*stream_create)(hewn_stream *, unsigned);
    void *events[2];
    hewn_deviceptr pool[3]; /* where the bench keeps its keys */
    uint64_t pool_bytes;    /* of each */
};

_Noreturn void gpu_die(const char *what, const char *why);
/* Ends the program unless the driver's result is 0. */
void gpu_need(int result, const char *what);
void gpu_open(struct gpu *g);
void gpu_close(struct gpu *g);
void *gpu_host(uint64_t bytes);
hewn_deviceptr gpu_allocate(struct gpu *g, uint64_t bytes);
hewn_deviceptr gpu_upload(struct gpu *g, const void *from, uint64_t bytes);
/* `bytes` made of copies of one block of host memory. */
hewn_deviceptr gpu_repeat(struct gpu *g, const void *block, uint64_t block_bytes, uint64_t bytes);

/* The time of what is enqueued on the stream between these two, captured as a graph: seconds divided by
 * `launches`, the median of a few runs. */
void gpu_time_begin(struct gpu *g);
double gpu_time_end(struct gpu *g, uint64_t launches);

#endif
