#include "gpu.h"

#include <limits.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STREAM_NON_BLOCKING = 1 };

/* The simulated driver beside this program. */
static bool simulator(char *path, size_t size)
{
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    static const char *const places[] = {"sim/libcuda.so.1", "../sim/libcuda.so.1",
                                         "../lib/hewn/sim/libcuda.so.1"};
    if (n <= 0) return false;
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const int length = snprintf(path, size, "%s/%s", self, places[i]);
        if (length > 0 && (size_t)length < size && access(path, R_OK) == 0) return true;
    }
    return false;
}

static int open_driver(const char *path, struct gpu *g, struct problem *p)
{
    char beside[PATH_MAX];
    hewn_driver_options options = {.struct_size = sizeof options, .path = path};
    hewn_error err = {0};
    if (hewn_driver_open(&options, &g->driver, &err) == 0) {
        if (path || getenv("HEWN_LIBCUDA") || hewn_driver_device_count(g->driver) > 0) return 0;
        hewn_driver_close(g->driver);
        g->driver = NULL;
    } else if (path || getenv("HEWN_LIBCUDA")) {
        return problem(p, "%s", err.message);
    }
    if (!simulator(beside, sizeof beside))
        return problem(p, "no GPU answers, and no simulated driver lies beside this program");
    options.path = beside;
    if (hewn_driver_open(&options, &g->driver, &err)) return problem(p, "%s", err.message);
    return 0;
}

static int load_calls(struct gpu *g, struct problem *p)
{
    void *symbol;
#define GPU_CALL(field, name, parameters)                         \
    symbol = hewn_driver_symbol(g->driver, name);                 \
    if (!symbol) return problem(p, "the driver has no %s", name); \
    memcpy(&g->field, &symbol, sizeof symbol);
    GPU_CALLS(GPU_CALL)
#undef GPU_CALL
    return 0;
}

/* The context of the rank's device. */
static int attach(struct gpu *g, int rank, int ranks, struct problem *p)
{
    const int devices = hewn_driver_device_count(g->driver);
    hewn_device_info info = {.struct_size = sizeof info};
    hewn_error err = {0};
    if (hewn_context_attach_primary(g->driver, rank < devices ? rank : 0, &g->context, &err) ||
        hewn_context_describe_device(g->context, &info, &err))
        return problem(p, "%s", err.message);
    if (devices < ranks && !info.simulated)
        return problem(p, "%d ranks need as many GPUs; the driver has %d", ranks, devices);
    return 0;
}

int gpu_open_rank(const char *path, int rank, int ranks, struct gpu *out, struct problem *p)
{
    *out = (struct gpu){.driver = NULL};
    if (open_driver(path, out, p) || load_calls(out, p) || attach(out, rank, ranks, p) ||
        gpu_check(out, out->stream_create(&out->stream, STREAM_NON_BLOCKING), "a stream", p)) {
        gpu_close(out);
        return -1;
    }
    return 0;
}

int gpu_open(const char *path, struct gpu *out, struct problem *p)
{
    return gpu_open_rank(path, 0, 1, out, p);
}

void gpu_close(struct gpu *g)
{
    if (g->stream) {
        g->stream_wait(g->stream);
        g->stream_destroy(g->stream);
    }
    for (int i = 0; i < g->buffers; i++) g->release(g->buffer[i]);
    hewn_context_detach(g->context);
    hewn_driver_close(g->driver);
    *g = (struct gpu){.driver = NULL};
}

int gpu_check(const struct gpu *g, int result, const char *what, struct problem *p)
{
    const char *text = NULL;
    if (!result) return 0;
    if (g->error_text(result, &text) || !text) text = "unknown error";
    return problem(p, "%s: the driver answers %d: %s", what, result, text);
}

hewn_deviceptr gpu_memory(struct gpu *g, size_t size, const char *what, struct problem *p)
{
    hewn_deviceptr address = 0;
    int result;
    if (g->buffers == GPU_BUFFERS) return problem(p, "%s: too many buffers", what), 0;
    result = g->alloc(&address, size ? size : 1);
    if (result) {
        problem(p, "%s: no device memory for %zu bytes beside %zu (driver: %d)", what, size,
                g->bytes, result);
        return 0;
    }
    g->buffer[g->buffers++] = address;
    g->bytes += size;
    /* On the default stream; done before any work of ours begins, as model_open waits for it. */
    if (gpu_check(g, g->fill(address, 0, size ? size : 1), what, p)) return 0;
    return address;
}
