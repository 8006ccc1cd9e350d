#include "counting_driver.h"

#include "../../runtime/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- the thread that counts ---- */

static _Thread_local struct {
    bool armed;
    int depth; /* of driver functions */
    struct counts counts;
    int repeat;
    double *seconds;
} own;

void counting_begin(void)
{
    memset(&own.counts, 0, sizeof own.counts);
    own.armed = true;
}

struct counts counting_end(void)
{
    own.armed = false;
    return own.counts;
}

void counting_repeat(int count, double *seconds)
{
    own.repeat = count;
    own.seconds = seconds;
}

/* ---- allocations ---- */

#ifdef __has_feature
#define SANITISED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITISED 1
#else
#define SANITISED 0
#endif

#if defined __GLIBC__ && !SANITISED
#define SEES_ALLOCATIONS 1

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

static void note(long *outside)
{
    if (!own.armed) return;
    if (own.depth)
        own.counts.inside++;
    else
        ++*outside;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT void *malloc(size_t size)
{
    note(&own.counts.allocations);
    return __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    note(&own.counts.allocations);
    return __libc_calloc(count, size);
}

EXPORT void *realloc(void *p, size_t size)
{
    note(&own.counts.allocations);
    return __libc_realloc(p, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    note(&own.counts.allocations);
    return __libc_memalign(alignment, size);
}

EXPORT int posix_memalign(void **p, size_t alignment, size_t size)
{
    note(&own.counts.allocations);
    *p = __libc_memalign(alignment, size);
    return *p ? 0 : 12; /* ENOMEM */
}

EXPORT void free(void *p)
{
    if (own.armed && p && !own.depth) own.counts.frees++;
    __libc_free(p);
}

EXPORT void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    note(&own.counts.maps);
    long address = syscall(SYS_mmap, at, size, protection, flags, fd, offset);
    return hewn_as_pointer((uintptr_t)address); /* -1 is MAP_FAILED, errno is set */
}
#else
#define SEES_ALLOCATIONS 0
#endif

bool counting_sees_allocations(void)
{
    return SEES_ALLOCATIONS;
}

/* ---- the driver's functions ---- */

static struct hewn_driver_table real;
static void *library;

static void enter(long *counter, const char *name)
{
    if (own.armed && own.depth == 0) {
        ++*counter;
        if (counter == &own.counts.other && !own.counts.first_other) own.counts.first_other = name;
    }
    own.depth++;
}

/* X(field, counter, parameters, arguments): all of the runtime's table but the two launches */
#define FUNCTIONS(X)                                                                               \
    X(init, other, (unsigned flags), (flags))                                                      \
    X(driver_get_version, other, (int *version), (version))                                        \
    X(device_get_count, other, (int *count), (count))                                              \
    X(device_get, other, (hewn_cu_device * device, int ordinal), (device, ordinal))                \
    X(device_get_name, other, (char *name, int size, hewn_cu_device device), (name, size, device)) \
    X(device_total_mem, other, (size_t * bytes, hewn_cu_device device), (bytes, device))           \
    X(device_get_attribute, other, (int *value, int attribute, hewn_cu_device device),             \
      (value, attribute, device))                                                                  \
    X(primary_ctx_retain, other, (hewn_cu_context * context, hewn_cu_device device),               \
      (context, device))                                                                           \
    X(primary_ctx_release, other, (hewn_cu_device device), (device))                               \
    X(ctx_get_current, other, (hewn_cu_context * context), (context))                              \
    X(ctx_set_current, other, (hewn_cu_context context), (context))                                \
    X(ctx_push_current, other, (hewn_cu_context context), (context))                               \
    X(ctx_pop_current, other, (hewn_cu_context * context), (context))                              \
    X(ctx_get_device, other, (hewn_cu_device * device), (device))                                  \
    X(module_load_data, loads, (hewn_cu_module * module, const void *image), (module, image))      \
    X(module_load_data_ex, loads,                                                                  \
      (hewn_cu_module * module, const void *image, unsigned count, int *options, void **values),   \
      (module, image, count, options, values))                                                     \
    X(module_unload, other, (hewn_cu_module module), (module))                                     \
    X(module_get_function, other,                                                                  \
      (hewn_cu_function * function, hewn_cu_module module, const char *name),                      \
      (function, module, name))                                                                    \
    X(func_get_attribute, other, (int *value, int attribute, hewn_cu_function function),           \
      (value, attribute, function))                                                                \
    X(func_set_attribute, other, (hewn_cu_function function, int attribute, int value),            \
      (function, attribute, value))                                                                \
    X(func_load, other, (hewn_cu_function function), (function))                                   \
    X(occupancy_max_active_clusters, other,                                                        \
      (int *clusters, hewn_cu_function function, const hewn_cu_launch_config *config),             \
      (clusters, function, config))                                                                \
    X(tensor_map_encode_tiled, encodes,                                                            \
      (hewn_cu_tensor_map * map, int dtype, uint32_t rank, void *address, const uint64_t *dim,     \
       const uint64_t *stride, const uint32_t *box, const uint32_t *element_stride,                \
       int interleave, int swizzle, int l2, int oob),                                              \
      (map, dtype, rank, address, dim, stride, box, element_stride, interleave, swizzle, l2, oob)) \
    X(tensor_map_replace_address, encodes, (hewn_cu_tensor_map * map, void *address),              \
      (map, address))                                                                              \
    X(get_error_name, other, (hewn_cu_result code, const char **name), (code, name))               \
    X(get_error_string, other, (hewn_cu_result code, const char **text), (code, text))

#define WRAPPER(field, counter, parameters, arguments) \
    static hewn_cu_result count_##field parameters     \
    {                                                  \
        enter(&own.counts.counter, #field);            \
        hewn_cu_result r = real.field arguments;       \
        own.depth--;                                   \
        return r;                                      \
    }
FUNCTIONS(WRAPPER)
#undef WRAPPER

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A launch, or where it is to be repeated the launches and their time. */
#define LAUNCH(field, parameters, arguments)                                 \
    static hewn_cu_result count_##field parameters                           \
    {                                                                        \
        hewn_cu_result r;                                                    \
        enter(&own.counts.launches, #field);                                 \
        double start = own.repeat ? now() : 0;                               \
        r = real.field arguments;                                            \
        for (int i = 1; i < own.repeat && !r; i++) r = real.field arguments; \
        if (own.repeat) *own.seconds += (now() - start) / own.repeat;        \
        own.depth--;                                                         \
        return r;                                                            \
    }
LAUNCH(launch_kernel,
       (hewn_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
        hewn_cu_stream stream, void **params, void **extra),
       (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params,
        extra))
LAUNCH(launch_kernel_ex,
       (const hewn_cu_launch_config *config, hewn_cu_function function, void **params,
        void **extra),
       (config, function, params, extra))

static const struct hewn_driver_table counted = {
#define FIELD(field, counter, parameters, arguments) .field = count_##field,
    FUNCTIONS(FIELD)
#undef FIELD
        .launch_kernel = count_launch_kernel,
    .launch_kernel_ex = count_launch_kernel_ex,
};

#define ONE(...) +1
_Static_assert((0 FUNCTIONS(ONE)) + 2 == (0 HEWN_DRIVER_FUNCTIONS(ONE)),
               "a function of the runtime's table is not counted");
#undef ONE

/* What is not in the table (tests ask for more) is the driver's own. */
static void *resolve(void *user, const char *symbol)
{
    static const struct {
        const char *name;
        size_t offset;
    } slots[] = {
#define X(need, field, base, suffix, since, arguments) \
    {#base #suffix, offsetof(struct hewn_driver_table, field)},
        HEWN_DRIVER_FUNCTIONS(X)
#undef X
    };
    void *address = dlsym(library, symbol), *wrapper;
    (void)user;
    for (size_t i = 0; address && i < sizeof slots / sizeof slots[0]; i++) {
        if (strcmp(slots[i].name, symbol) != 0) continue;
        memcpy((char *)&real + slots[i].offset, &address, sizeof address);
        memcpy(&wrapper, (const char *)&counted + slots[i].offset, sizeof wrapper);
        return wrapper;
    }
    return address;
}

const hewn_driver_options *counting_options(hewn_error *err)
{
    static const hewn_driver_options options = {.struct_size = sizeof options, .resolve = resolve};
    const char *path = getenv("HEWN_LIBCUDA");
    if (!library)
        library = dlopen(path && path[0] ? path : "libcuda.so.1", RTLD_NOW | RTLD_NODELETE);
    if (library) return &options;
    if (err) snprintf(err->message, sizeof err->message, "%.200s", dlerror());
    return NULL;
}
