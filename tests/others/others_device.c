/* The device, its buffers, tensor maps and launches, for the drivers of this folder. */
#include "lib/driver_table.h"
#include "lib/number.h"
#include "others.h"
#include "others_record.h"

#include <stdarg.h>
#include <stdio.h>

static const char *modules;

void fatal(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

void must(int rc, const char *what)
{
    const char *why = NULL;

    if (!rc) return;
    if (cu.cuGetErrorString) cu.cuGetErrorString((hewn_cu_result)rc, &why);
    fatal("%s: %d, %s", what, rc, why ? why : "unknown error");
}

/* ---- the device ---- */

static int synchronize(void)
{
    return (int)cu.cuCtxSynchronize();
}

static int to_host(void *to, hewn_cu_deviceptr from, size_t bytes)
{
    return (int)cu.cuMemcpyDtoH_v2(to, from, bytes);
}

static int to_device(hewn_cu_deviceptr to, const void *from, size_t bytes)
{
    return (int)cu.cuMemcpyHtoD_v2(to, from, bytes);
}

void device_begin(const char *folder)
{
    static const struct record_calls calls = {synchronize, to_host, to_device};
    const char *path = getenv("HEWN_LIBCUDA");

    if (!load_library(path && *path ? path : "libcuda.so.1")) fatal("%s", dlerror());
    must((int)cu.cuInit(0), "cuInit");
    must((int)cu.cuDevicePrimaryCtxRetain(&primary, 0), "cuDevicePrimaryCtxRetain");
    must((int)cu.cuCtxSetCurrent(primary), "cuCtxSetCurrent");
    record_through(&calls);
    modules = folder;
}

void device_finish(void)
{
    must(synchronize(), "a launch");
    must((int)cu.cuDevicePrimaryCtxRelease_v2(0), "cuDevicePrimaryCtxRelease");
}

/* ---- modules ---- */

static char *read_module(const char *file)
{
    char path[4096], *ptx = NULL;
    long size = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s.ptx", modules, file);
    f = fopen(path, "rb");
    if (f && !fseek(f, 0, SEEK_END) && (size = ftell(f)) > 0 && !fseek(f, 0, SEEK_SET))
        ptx = calloc(1, (size_t)size + 1);
    if (!ptx || fread(ptx, 1, (size_t)size, f) != (size_t)size) fatal("%s cannot be read", path);
    fclose(f);
    return ptx;
}

/* The name behind the ".entry" at `at`, without its parameters. */
static void entry_name(const char *at, char *name, size_t bytes)
{
    size_t length;

    at += strlen(".entry");
    at += strspn(at, " \t\n");
    length = strcspn(at, " \t\n(");
    if (length >= bytes)
        fatal("an entry's name has %zu characters, more than %zu", length, bytes - 1);
    memcpy(name, at, length);
    name[length] = 0;
}

static void find_entry(const char *ptx, const char *file, const char *part, char *name,
                       size_t bytes)
{
    char each[4096];
    int found = 0;

    for (const char *at = ptx; (at = strstr(at, ".entry")) != NULL; at++) {
        entry_name(at, each, sizeof each);
        if (!strstr(each, part)) continue;
        found++;
        snprintf(name, bytes, "%s", each);
    }
    if (found != 1)
        fatal("%s.ptx has %d entries with \"%s\" in their name, want 1", file, found, part);
}

hewn_cu_function entry_of(const char *file, const char *part)
{
    static char log[4096];
    int options[] = {HEWN_CU_JIT_ERROR_LOG_BUFFER, HEWN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    hewn_cu_module module = NULL;
    hewn_cu_function f = NULL;
    char name[4096], *ptx = read_module(file);

    find_entry(ptx, file, part, name, sizeof name);
    if (cu.cuModuleLoadDataEx(&module, ptx, 2, options, values)) fatal("%s.ptx: %s", file, log);
    must((int)cu.cuModuleGetFunction(&f, module, name), name);
    free(ptx);
    return f;
}

/* ---- buffers ---- */

hewn_cu_deviceptr device_buffer(size_t bytes)
{
    hewn_cu_deviceptr at = 0;

    must((int)cu.cuMemAlloc_v2(&at, bytes), "cuMemAlloc");
    must((int)cu.cuMemsetD8_v2(at, RECORD_POISON, bytes), "cuMemsetD8");
    record_allocated(at, bytes);
    return at;
}

hewn_cu_deviceptr zeroed_buffer(size_t bytes)
{
    hewn_cu_deviceptr at = device_buffer(bytes);

    must((int)cu.cuMemsetD8_v2(at, 0, bytes), "cuMemsetD8");
    return at;
}

hewn_cu_deviceptr copied_buffer(const void *from, size_t bytes)
{
    hewn_cu_deviceptr at = device_buffer(bytes);

    must(to_device(at, from, bytes), "cuMemcpyHtoD");
    return at;
}

hewn_cu_deviceptr random_buffer(int dtype, size_t count, uint64_t seed, double scale)
{
    const size_t size = hewn_dtype_size(dtype);
    unsigned char *host = calloc(count, size);
    struct rng r = {seed};
    hewn_cu_deviceptr at;

    if (!host) fatal("no memory for %zu elements", count);
    for (size_t i = 0; i < count; i++)
        number_store(dtype, (double)rng_unit(&r) * scale, host + i * size);
    at = copied_buffer(host, count * size);
    free(host);
    return at;
}

/* ---- tensor maps and launches ---- */

void tensor_map(hewn_cu_tensor_map *map, hewn_cu_deviceptr at, const struct tensor *t)
{
    static const uint32_t steps[] = {1, 1, 1, 1, 1};

    must((int)cu.cuTensorMapEncodeTiled(map, t->dtype, t->rank, (void *)(uintptr_t)at, t->dims,
                                        t->strides, t->box, steps, HEWN_TENSORMAP_INTERLEAVE_NONE,
                                        t->swizzle, t->l2, HEWN_TENSORMAP_OOB_ZERO),
         "cuTensorMapEncodeTiled");
}

struct tensor paneled(int dtype, uint64_t rows, uint64_t cols, uint32_t box_rows, uint32_t box_cols,
                      int swizzle)
{
    const uint32_t size = dtype == HEWN_TENSORMAP_U8 ? 1 : dtype == HEWN_TENSORMAP_F32 ? 4 : 2;
    const uint32_t bytes = swizzle == HEWN_TENSORMAP_SWIZZLE_64B ? 64 : 128, panel = bytes / size;

    return (struct tensor){.dtype = dtype,
                           .rank = 3,
                           .dims = {panel, rows, cols / panel},
                           .strides = {cols * size, bytes},
                           .box = {panel, box_rows, box_cols / panel},
                           .swizzle = swizzle};
}

static unsigned at_least_one(unsigned n)
{
    return n ? n : 1;
}

void launch(const struct launch *l, void **params)
{
    hewn_cu_launch_attribute cluster = {.id = HEWN_CU_LAUNCH_CLUSTER_DIMENSION,
                                        .value.cluster = {l->cluster, 1, 1}};
    hewn_cu_launch_config config = {.grid_x = l->grid[0],
                                    .grid_y = at_least_one(l->grid[1]),
                                    .grid_z = at_least_one(l->grid[2]),
                                    .block_x = l->block[0],
                                    .block_y = at_least_one(l->block[1]),
                                    .block_z = 1,
                                    .shared_bytes = l->shared,
                                    .attributes = &cluster,
                                    .attribute_count = l->cluster > 0};

    must((int)cu.cuFuncSetAttribute(l->function, HEWN_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    (int)l->shared),
         "cuFuncSetAttribute");
    record_before();
    must((int)cu.cuLaunchKernelEx(&config, l->function, params, NULL), "cuLaunchKernelEx");
    record_after();
}
