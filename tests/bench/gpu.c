/* What the benches of decode, MLA and the indexer share. */
#include "bench/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5 };

_Noreturn void gpu_die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(1);
}

void gpu_need(int result, const char *what)
{
    char text[32];
    snprintf(text, sizeof text, "CUresult %d", result);
    if (result) gpu_die(what, text);
}

static void resolve(const struct gpu *g, const char *name, void *slot)
{
    void *symbol = hewn_driver_symbol(g->d.driver, name);
    if (!symbol) gpu_die(name, "not there");
    memcpy(slot, &symbol, sizeof symbol);
}

void gpu_open(struct gpu *g)
{
    hewn_error err = {0};
    if (!device_open(&g->d, &err)) gpu_die("device", err.message);
    resolve(g, "cuMemcpyDtoD_v2", &g->d2d);
    resolve(g, "cuStreamCreate", &g->stream_create);
    resolve(g, "cuStreamBeginCapture_v2", &g->begin);
    resolve(g, "cuStreamEndCapture", &g->end);
    resolve(g, "cuGraphInstantiateWithFlags", &g->instantiate);
    resolve(g, "cuGraphLaunch", &g->launch);
    resolve(g, "cuGraphExecDestroy", &g->exec_destroy);
    resolve(g, "cuGraphDestroy", &g->graph_destroy);
    resolve(g, "cuEventCreate", &g->event_create);
    resolve(g, "cuEventRecord", &g->event_record);
    resolve(g, "cuEventSynchronize", &g->event_wait);
    resolve(g, "cuEventElapsedTime", &g->elapsed);
    resolve(g, "cuStreamSynchronize", &g->wait);
    gpu_need(g->stream_create(&g->stream, 1), "stream");
    for (int i = 0; i < 2; i++) gpu_need(g->event_create(&g->events[i], 0), "event");
}

void gpu_close(struct gpu *g)
{
    for (size_t i = 0; i < sizeof g->pool / sizeof *g->pool; i++)
        if (g->pool[i]) g->d.mem_free(g->pool[i]);
    device_close(&g->d);
}

void *gpu_host(uint64_t bytes)
{
    void *at = malloc(bytes ? (size_t)bytes : 1);
    if (!at) gpu_die("host memory", "none");
    return at;
}

hewn_deviceptr gpu_allocate(struct gpu *g, uint64_t bytes)
{
    hewn_deviceptr at = 0;
    gpu_need(g->d.mem_alloc(&at, bytes ? bytes : 16), "memory");
    return at;
}

hewn_deviceptr gpu_upload(struct gpu *g, const void *from, uint64_t bytes)
{
    hewn_deviceptr at = gpu_allocate(g, bytes);
    gpu_need(g->d.to_device(at, from, bytes), "copy");
    return at;
}

hewn_deviceptr gpu_repeat(struct gpu *g, const void *block, uint64_t block_bytes, uint64_t bytes)
{
    hewn_deviceptr base = gpu_allocate(g, bytes);
    for (uint64_t at = 0; at < bytes; at += block_bytes) {
        uint64_t n = bytes - at < block_bytes ? bytes - at : block_bytes;
        gpu_need(at ? g->d2d(base + at, base, n) : g->d.to_device(base, block, n), "copy");
    }
    return base;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void gpu_time_begin(struct gpu *g)
{
    gpu_need(g->begin(g->stream, 0), "capture");
}

double gpu_time_end(struct gpu *g, uint64_t launches)
{
    void *graph = NULL, *exec = NULL;
    double times[REPEATS];
    gpu_need(g->end(g->stream, &graph), "capture");
    gpu_need(g->instantiate(&exec, graph, 0), "graph");
    gpu_need(g->launch(exec, g->stream), "graph");
    for (int i = 0; i < REPEATS; i++) {
        float ms = 0;
        gpu_need(g->event_record(g->events[0], g->stream), "event");
        gpu_need(g->launch(exec, g->stream), "graph");
        gpu_need(g->event_record(g->events[1], g->stream), "event");
        gpu_need(g->event_wait(g->events[1]), "run");
        gpu_need(g->elapsed(&ms, g->events[0], g->events[1]), "event");
        times[i] = 1e-3 * (double)ms / (double)launches;
    }
    g->exec_destroy(exec), g->graph_destroy(graph);
    qsort(times, REPEATS, sizeof *times, ascending);
    return times[REPEATS / 2];
}
