/* Devices and contexts: properties of a device, attaching to a context, detaching. */
#include "context.h"

#include "error.h"
#include "structs.h"

#include <stdlib.h>

struct device_facts {
    hewn_device_info info;
    struct hewn_limits limits;
};

/* CU_DEVICE_ATTRIBUTE_ name and where its value goes. */
#define DEVICE_FACTS(X)                                             \
    X(COMPUTE_CAPABILITY_MAJOR, info.cc_major)                      \
    X(COMPUTE_CAPABILITY_MINOR, info.cc_minor)                      \
    X(MULTIPROCESSOR_COUNT, info.sm_count)                          \
    X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, info.max_shared_per_block) \
    X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, info.shared_per_sm)     \
    X(MAX_REGISTERS_PER_MULTIPROCESSOR, info.registers_per_sm)      \
    X(L2_CACHE_SIZE, info.l2_bytes)                                 \
    X(CLOCK_RATE, info.clock_khz)                                   \
    X(MAX_GRID_DIM_X, limits.grid[0])                               \
    X(MAX_GRID_DIM_Y, limits.grid[1])                               \
    X(MAX_GRID_DIM_Z, limits.grid[2])                               \
    X(MAX_BLOCK_DIM_X, limits.block[0])                             \
    X(MAX_BLOCK_DIM_Y, limits.block[1])                             \
    X(MAX_BLOCK_DIM_Z, limits.block[2])                             \
    X(MAX_THREADS_PER_BLOCK, limits.threads_per_block)

/* Attributes that older drivers do not know: then the device lacks the feature. */
#define DEVICE_FEATURES(X)                   \
    X(CLUSTER_LAUNCH, limits.cluster_launch) \
    X(COOPERATIVE_LAUNCH, limits.cooperative_launch)

static int query_device(const hewn_driver *driver, hewn_cu_device device, int ordinal,
                        struct device_facts *facts, hewn_error *err)
{
    const struct hewn_driver_table *fn = &driver->fn;
    hewn_cu_result r;
#define X(name, member)                                                                      \
    r = fn->device_get_attribute(&facts->member, HEWN_CU_ATTR_##name, device);               \
    if (r)                                                                                   \
        return hewn_fail_driver(err, driver, r, "cuDeviceGetAttribute", "device %d: " #name, \
                                ordinal);
    DEVICE_FACTS(X)
#undef X
#define X(name, member)                                                                      \
    r = fn->device_get_attribute(&facts->member, HEWN_CU_ATTR_##name, device);               \
    if (r == HEWN_CU_INVALID_VALUE)                                                          \
        facts->member = 0;                                                                   \
    else if (r)                                                                              \
        return hewn_fail_driver(err, driver, r, "cuDeviceGetAttribute", "device %d: " #name, \
                                ordinal);
    DEVICE_FEATURES(X)
#undef X
    r = fn->device_get_name(facts->info.name, (int)sizeof facts->info.name, device);
    if (r) return hewn_fail_driver(err, driver, r, "cuDeviceGetName", "device %d", ordinal);
    facts->info.name[sizeof facts->info.name - 1] = '\0';
    size_t bytes = 0;
    r = fn->device_total_mem(&bytes, device);
    if (r) return hewn_fail_driver(err, driver, r, "cuDeviceTotalMem", "device %d", ordinal);
    facts->info.memory_bytes = bytes;
    facts->info.struct_size = sizeof facts->info;
    facts->info.ordinal = ordinal;
    facts->info.simulated = driver->simulated;
    return HEWN_OK;
}

static int find_device(const hewn_driver *driver, int ordinal, hewn_cu_device *out, hewn_error *err)
{
    if (driver->device_count == 0)
        return hewn_fail(err, HEWN_ERR_NO_DEVICE, "ordinal: %d, but the driver has no device",
                         ordinal);
    if (ordinal < 0 || ordinal >= driver->device_count)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "ordinal: %d is not in 0..%d, the driver's devices", ordinal,
                         driver->device_count - 1);
    hewn_cu_result r = driver->fn.device_get(out, ordinal);
    if (r) return hewn_fail_driver(err, driver, r, "cuDeviceGet", "device %d", ordinal);
    return HEWN_OK;
}

int hewn_driver_describe_device(const hewn_driver *driver, int ordinal, hewn_device_info *out,
                                hewn_error *err)
{
    if (!driver) return hewn_fail_null(err, "driver");
    hewn_cu_device device = 0;
    int status = find_device(driver, ordinal, &device, err);
    if (status) return status;
    struct device_facts facts = {0};
    status = query_device(driver, device, ordinal, &facts, err);
    if (status) return status;
    return hewn_struct_give(HEWN_STRUCT_hewn_device_info, &facts.info, out, err);
}

int hewn_context_describe_device(const hewn_context *context, hewn_device_info *out,
                                 hewn_error *err)
{
    if (!context) return hewn_fail_null(err, "context");
    return hewn_struct_give(HEWN_STRUCT_hewn_device_info, &context->info, out, err);
}

/* A CUdevice is its ordinal in every driver so far, but only the driver may say so. */
static int find_ordinal(const hewn_driver *driver, hewn_cu_device device, int *out, hewn_error *err)
{
    for (int i = 0; i < driver->device_count; i++) {
        hewn_cu_device candidate;
        hewn_cu_result r = driver->fn.device_get(&candidate, i);
        if (r) return hewn_fail_driver(err, driver, r, "cuDeviceGet", "device %d", i);
        *out = i;
        if (candidate == device) return HEWN_OK;
    }
    return hewn_fail(err, HEWN_ERR_NO_DEVICE,
                     "the current context's device %d is none of the driver's %d", device,
                     driver->device_count);
}

static int create_context(const hewn_driver *driver, hewn_cu_context cu, hewn_cu_device device,
                          int ordinal, hewn_context **out, hewn_error *err)
{
    struct device_facts facts = {0};
    int status = query_device(driver, device, ordinal, &facts, err);
    if (status) return status;
    struct hewn_context *context = calloc(1, sizeof *context);
    if (!context) return hewn_fail(err, HEWN_ERR_MEMORY, "out of host memory for the context");
    if (pthread_mutex_init(&context->loading, NULL)) {
        free(context);
        return hewn_fail(err, HEWN_ERR_MEMORY, "out of resources for the context's lock");
    }
    context->driver = driver;
    context->cu = cu;
    context->device = device;
    context->info = facts.info;
    context->limits = facts.limits;
    atomic_init(&context->loaded, NULL);
    atomic_init(&context->gemm_model, NULL);
    *out = context;
    return HEWN_OK;
}

static void free_context(hewn_context *context)
{
    pthread_mutex_destroy(&context->loading);
    free(atomic_load(&context->gemm_model));
    free(context);
}

int hewn_context_attach(hewn_driver *driver, hewn_context **out, hewn_error *err)
{
    if (!driver) return hewn_fail_null(err, "driver");
    if (!out) return hewn_fail_null(err, "out");
    hewn_cu_context current = NULL;
    hewn_cu_result r = driver->fn.ctx_get_current(&current);
    if (r) return hewn_fail_driver(err, driver, r, "cuCtxGetCurrent", "attach");
    if (!current)
        return hewn_fail(err, HEWN_ERR_NO_DEVICE,
                         "no CUDA context is current on this thread: make one current, or use "
                         "hewn_context_attach_primary");
    hewn_cu_device device = 0;
    r = driver->fn.ctx_get_device(&device);
    if (r) return hewn_fail_driver(err, driver, r, "cuCtxGetDevice", "attach");
    int ordinal = 0;
    int status = find_ordinal(driver, device, &ordinal, err);
    if (status) return status;
    return create_context(driver, current, device, ordinal, out, err);
}

int hewn_context_attach_primary(hewn_driver *driver, int ordinal, hewn_context **out,
                                hewn_error *err)
{
    if (!driver) return hewn_fail_null(err, "driver");
    if (!out) return hewn_fail_null(err, "out");
    hewn_cu_device device = 0;
    int status = find_device(driver, ordinal, &device, err);
    if (status) return status;
    hewn_cu_context previous = NULL, primary = NULL;
    hewn_cu_result r = driver->fn.ctx_get_current(&previous);
    if (r) return hewn_fail_driver(err, driver, r, "cuCtxGetCurrent", "attach");
    r = driver->fn.primary_ctx_retain(&primary, device);
    if (r)
        return hewn_fail_driver(err, driver, r, "cuDevicePrimaryCtxRetain", "device %d", ordinal);

    hewn_context *context = NULL;
    status = create_context(driver, primary, device, ordinal, &context, err);
    if (status) {
        driver->fn.primary_ctx_release(device);
        return status;
    }
    r = driver->fn.ctx_set_current(primary);
    if (r) {
        hewn_error_set_driver(err, driver, r, "cuCtxSetCurrent", "device %d: primary context",
                              ordinal);
        free_context(context);
        driver->fn.primary_ctx_release(device);
        return HEWN_ERR_DRIVER;
    }
    context->owned = 1;
    context->previous = previous;
    *out = context;
    return HEWN_OK;
}

/* Errors cannot be reported here, so each step is tried even if an earlier one failed. */
void hewn_context_detach(hewn_context *context)
{
    if (!context) return;
    const struct hewn_driver_table *fn = &context->driver->fn;
    struct hewn_loaded *loaded = atomic_load(&context->loaded);
    if (loaded) {
        int pushed = hewn_context_push(context, NULL) == HEWN_OK;
        hewn_loaded_free(context->driver, loaded);
        if (pushed) hewn_context_pop(context);
    }
    if (context->owned) {
        /* Only where ours is still current: the caller may have changed it, or be on another
         * thread than the one that attached. */
        hewn_cu_context current = NULL;
        fn->ctx_get_current(&current);
        if (current == context->cu) fn->ctx_set_current(context->previous);
        fn->primary_ctx_release(context->device);
    }
    free_context(context);
}

int hewn_context_push(const hewn_context *context, hewn_error *err)
{
    hewn_cu_result r = context->driver->fn.ctx_push_current(context->cu);
    if (r)
        return hewn_fail_driver(err, context->driver, r, "cuCtxPushCurrent",
                                "making the context current");
    return HEWN_OK;
}

void hewn_context_pop(const hewn_context *context)
{
    hewn_cu_context popped;
    context->driver->fn.ctx_pop_current(&popped);
}
