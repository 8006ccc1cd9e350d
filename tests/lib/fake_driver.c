#include "fake_driver.h"

#include "driver_abi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 8, LOG_SIZE_OPTION = HEWN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };

struct fake_driver fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local hewn_cu_context stack[MAX_DEPTH];
static _Thread_local int depth; /* stack[depth] is current */

/* A handle is the address of a byte that nobody reads. */
static char primary_context, foreign_context;

struct CUmod_st { /* what a hewn_cu_module points at */
    char function;
};

/* Counts a call and decides whether it fails. */
static int enter(const char *name)
{
    pthread_mutex_lock(&lock);
    fake.calls++;
    bool fails =
        fake.calls == fake.fail_at || (fake.fail_name && strcmp(fake.fail_name, name) == 0);
    if (fails) fake.failed = name;
    int code = fails ? fake.fail_code : HEWN_CU_SUCCESS;
    pthread_mutex_unlock(&lock);
    return code;
}

/* Every function begins so: a call made to fail has no effect, unless it is one that releases. */
#define ENTER(name)         \
    int code = enter(name); \
    if (code && !fake.releasing) return code

static hewn_cu_result fake_init(unsigned flags)
{
    ENTER("cuInit");
    return flags ? HEWN_CU_INVALID_VALUE : code;
}

static hewn_cu_result fake_driver_get_version(int *version)
{
    ENTER("cuDriverGetVersion");
    *version = 13000;
    return code;
}

static hewn_cu_result fake_device_get_count(int *count)
{
    ENTER("cuDeviceGetCount");
    *count = fake.device_count;
    return code;
}

static hewn_cu_result fake_device_get(hewn_cu_device *device, int ordinal)
{
    ENTER("cuDeviceGet");
    if (ordinal < 0 || ordinal >= fake.device_count) return HEWN_CU_INVALID_DEVICE;
    *device = ordinal;
    return code;
}

static hewn_cu_result fake_device_get_name(char *name, int size, hewn_cu_device device)
{
    ENTER("cuDeviceGetName");
    snprintf(name, (size_t)size, "Fake device %d", device);
    return code;
}

static hewn_cu_result fake_device_total_mem(size_t *bytes, hewn_cu_device device)
{
    ENTER("cuDeviceTotalMem");
    (void)device;
    *bytes = (size_t)1 << 37;
    return code;
}

static hewn_cu_result fake_device_get_attribute(int *value, int attribute, hewn_cu_device device)
{
    ENTER("cuDeviceGetAttribute");
    (void)device;
    switch (attribute) {
    case HEWN_CU_ATTR_COMPUTE_CAPABILITY_MAJOR: *value = fake.cc_major; break;
    case HEWN_CU_ATTR_COMPUTE_CAPABILITY_MINOR: *value = fake.cc_minor; break;
    case HEWN_CU_ATTR_MULTIPROCESSOR_COUNT: *value = 132; break;
    case HEWN_CU_ATTR_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = fake.max_shared; break;
    case HEWN_CU_ATTR_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = 233472; break;
    case HEWN_CU_ATTR_MAX_REGISTERS_PER_MULTIPROCESSOR: *value = 65536; break;
    case HEWN_CU_ATTR_L2_CACHE_SIZE: *value = 60 << 20; break;
    case HEWN_CU_ATTR_CLOCK_RATE: *value = 1980000; break;
    case HEWN_CU_ATTR_MAX_GRID_DIM_X: *value = 2147483647; break;
    case HEWN_CU_ATTR_MAX_GRID_DIM_Y:
    case HEWN_CU_ATTR_MAX_GRID_DIM_Z: *value = 65535; break;
    case HEWN_CU_ATTR_MAX_BLOCK_DIM_X:
    case HEWN_CU_ATTR_MAX_BLOCK_DIM_Y:
    case HEWN_CU_ATTR_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case HEWN_CU_ATTR_MAX_BLOCK_DIM_Z: *value = 64; break;
    case HEWN_CU_ATTR_CLUSTER_LAUNCH: *value = fake.cc_major >= 9; break;
    case HEWN_CU_ATTR_COOPERATIVE_LAUNCH: *value = 1; break;
    default: return HEWN_CU_INVALID_VALUE;
    }
    return code;
}

static hewn_cu_result fake_primary_ctx_retain(hewn_cu_context *context, hewn_cu_device device)
{
    ENTER("cuDevicePrimaryCtxRetain");
    (void)device;
    fake.retained++;
    *context = (hewn_cu_context)(void *)&primary_context;
    return code;
}

static hewn_cu_result fake_primary_ctx_release(hewn_cu_device device)
{
    ENTER("cuDevicePrimaryCtxRelease");
    (void)device;
    fake.retained--;
    return code;
}

static hewn_cu_result fake_ctx_get_current(hewn_cu_context *context)
{
    ENTER("cuCtxGetCurrent");
    *context = stack[depth];
    return code;
}

static hewn_cu_result fake_ctx_set_current(hewn_cu_context context)
{
    ENTER("cuCtxSetCurrent");
    stack[depth] = context;
    return code;
}

/* Never has its effect when it fails: a push is part of many a clean-up but releases nothing. */
static hewn_cu_result fake_ctx_push_current(hewn_cu_context context)
{
    int code = enter("cuCtxPushCurrent");
    if (code) return code;
    if (depth + 1 == MAX_DEPTH) return HEWN_CU_INVALID_CONTEXT;
    stack[++depth] = context;
    return HEWN_CU_SUCCESS;
}

/* Always has its effect: there is no second try for a caller to make. */
static hewn_cu_result fake_ctx_pop_current(hewn_cu_context *context)
{
    int code = enter("cuCtxPopCurrent");
    if (depth == 0) return HEWN_CU_INVALID_CONTEXT;
    *context = stack[depth--];
    return code;
}

static hewn_cu_result fake_ctx_get_device(hewn_cu_device *device)
{
    ENTER("cuCtxGetDevice");
    *device = 0;
    return code;
}

static hewn_cu_result new_module(hewn_cu_module *module, int code)
{
    if (!stack[depth]) return HEWN_CU_INVALID_CONTEXT;
    struct CUmod_st *m = calloc(1, sizeof *m);
    if (!m) return HEWN_CU_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    fake.modules++;
    fake.loads++;
    pthread_mutex_unlock(&lock);
    *module = m;
    return code;
}

static hewn_cu_result fake_module_load_data(hewn_cu_module *module, const void *image)
{
    ENTER("cuModuleLoadData");
    if (!image) return HEWN_CU_INVALID_VALUE;
    return new_module(module, code);
}

static hewn_cu_result fake_module_load_data_ex(hewn_cu_module *module, const void *image,
                                               unsigned count, int *options, void **values)
{
    int code = enter("cuModuleLoadDataEx");
    if (!code) return image ? new_module(module, code) : HEWN_CU_INVALID_VALUE;
    char *log = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == HEWN_CU_JIT_ERROR_LOG_BUFFER) log = values[i];
        if (options[i] == LOG_SIZE_OPTION) size = (size_t)(uintptr_t)values[i];
    }
    if (log && fake.jit_log) snprintf(log, size, "%s", fake.jit_log);
    return code;
}

static hewn_cu_result fake_module_unload(hewn_cu_module module)
{
    int code = enter("cuModuleUnload");
    pthread_mutex_lock(&lock);
    fake.modules--;
    pthread_mutex_unlock(&lock);
    free(module);
    return code;
}

static hewn_cu_result fake_module_get_function(hewn_cu_function *function, hewn_cu_module module,
                                               const char *name)
{
    ENTER("cuModuleGetFunction");
    if (strncmp(name, "hewn_", 5) != 0) return HEWN_CU_NOT_FOUND;
    *function = (hewn_cu_function)(void *)&module->function;
    return code;
}

static hewn_cu_result fake_func_get_attribute(int *value, int attribute, hewn_cu_function function)
{
    ENTER("cuFuncGetAttribute");
    (void)function;
    if (attribute != HEWN_CU_FUNC_SHARED_SIZE_BYTES) return HEWN_CU_INVALID_VALUE;
    *value = fake.static_shared;
    return code;
}

static hewn_cu_result fake_func_set_attribute(hewn_cu_function function, int attribute, int value)
{
    ENTER("cuFuncSetAttribute");
    (void)function;
    if (attribute != HEWN_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES) return HEWN_CU_INVALID_VALUE;
    return value + fake.static_shared > fake.max_shared ? HEWN_CU_INVALID_VALUE : code;
}

static hewn_cu_result fake_func_load(hewn_cu_function function)
{
    ENTER("cuFuncLoad");
    (void)function;
    return code;
}

static void record_launch(const unsigned shape[6], unsigned shared, unsigned attributes,
                          void **params)
{
    memcpy(fake.grid, shape, sizeof fake.grid);
    memcpy(fake.block, shape + 3, sizeof fake.block);
    fake.shared = shared;
    fake.attributes = attributes;
    fake.launches++;
    if (fake.launching) fake.launching(params);
}

static hewn_cu_result fake_launch_kernel(hewn_cu_function function, unsigned grid_x,
                                         unsigned grid_y, unsigned grid_z, unsigned block_x,
                                         unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                         hewn_cu_stream stream, void **params, void **extra)
{
    ENTER("cuLaunchKernel");
    (void)function, (void)stream, (void)extra;
    unsigned shape[] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
    record_launch(shape, shared_bytes, 0, params);
    return code;
}

static hewn_cu_result fake_launch_kernel_ex(const hewn_cu_launch_config *c,
                                            hewn_cu_function function, void **params, void **extra)
{
    ENTER("cuLaunchKernelEx");
    (void)function, (void)extra;
    unsigned shape[] = {c->grid_x, c->grid_y, c->grid_z, c->block_x, c->block_y, c->block_z};
    record_launch(shape, c->shared_bytes, c->attribute_count, params);
    return code;
}

static hewn_cu_result fake_tensor_map_encode_tiled(hewn_cu_tensor_map *map, int dtype,
                                                   uint32_t rank, void *address,
                                                   const uint64_t *dim, const uint64_t *stride,
                                                   const uint32_t *box,
                                                   const uint32_t *element_stride, int interleave,
                                                   int swizzle, int l2, int oob)
{
    ENTER("cuTensorMapEncodeTiled");
    struct fake_map told = {.address = (uint64_t)(uintptr_t)address,
                            .rank = (uint8_t)rank,
                            .dtype = (uint8_t)dtype,
                            .interleave = (uint8_t)interleave,
                            .swizzle = (uint8_t)swizzle,
                            .l2 = (uint8_t)l2,
                            .oob = (uint8_t)oob};
    for (uint32_t i = 0; i < rank; i++) {
        if (!dim[i]) return HEWN_CU_INVALID_VALUE; /* as the driver does */
        told.dim[i] = dim[i];
        if (i + 1 < rank) told.stride[i] = stride[i];
        told.box[i] = (uint16_t)box[i];
        told.element_stride[i] = (uint16_t)element_stride[i];
    }
    memset(map, 0, sizeof *map);
    memcpy(map->opaque, &told, sizeof told);
    return code;
}

static hewn_cu_result fake_replace_address(hewn_cu_tensor_map *map, void *address)
{
    ENTER("cuTensorMapReplaceAddress");
    uint64_t told = (uint64_t)(uintptr_t)address;
    memcpy((char *)map->opaque + offsetof(struct fake_map, address), &told, sizeof told);
    return code;
}

_Static_assert(sizeof(struct fake_map) <= sizeof(hewn_cu_tensor_map), "it must fit");

static hewn_cu_result fake_get_error_name(hewn_cu_result error, const char **name)
{
    ENTER("cuGetErrorName");
    switch (error) {
#define X(id, value, text) \
    case value: *name = "CUDA_ERROR_" #id; return code;
        HEWN_CU_RESULTS(X)
#undef X
    }
    return HEWN_CU_INVALID_VALUE;
}

static hewn_cu_result fake_get_error_string(hewn_cu_result error, const char **string)
{
    ENTER("cuGetErrorString");
    switch (error) {
#define X(id, value, text) \
    case value: *string = text; return code;
        HEWN_CU_RESULTS(X)
#undef X
    }
    return HEWN_CU_INVALID_VALUE;
}

/* exported symbol, function */
#define FAKE_FUNCTIONS(X)                                     \
    X(cuInit, fake_init)                                      \
    X(cuDriverGetVersion, fake_driver_get_version)            \
    X(cuDeviceGetCount, fake_device_get_count)                \
    X(cuDeviceGet, fake_device_get)                           \
    X(cuDeviceGetName, fake_device_get_name)                  \
    X(cuDeviceTotalMem_v2, fake_device_total_mem)             \
    X(cuDeviceGetAttribute, fake_device_get_attribute)        \
    X(cuDevicePrimaryCtxRetain, fake_primary_ctx_retain)      \
    X(cuDevicePrimaryCtxRelease_v2, fake_primary_ctx_release) \
    X(cuCtxGetCurrent, fake_ctx_get_current)                  \
    X(cuCtxSetCurrent, fake_ctx_set_current)                  \
    X(cuCtxPushCurrent_v2, fake_ctx_push_current)             \
    X(cuCtxPopCurrent_v2, fake_ctx_pop_current)               \
    X(cuCtxGetDevice, fake_ctx_get_device)                    \
    X(cuModuleLoadData, fake_module_load_data)                \
    X(cuModuleLoadDataEx, fake_module_load_data_ex)           \
    X(cuModuleUnload, fake_module_unload)                     \
    X(cuModuleGetFunction, fake_module_get_function)          \
    X(cuFuncGetAttribute, fake_func_get_attribute)            \
    X(cuFuncSetAttribute, fake_func_set_attribute)            \
    X(cuFuncLoad, fake_func_load)                             \
    X(cuLaunchKernel, fake_launch_kernel)                     \
    X(cuLaunchKernelEx, fake_launch_kernel_ex)                \
    X(cuTensorMapEncodeTiled, fake_tensor_map_encode_tiled)   \
    X(cuTensorMapReplaceAddress, fake_replace_address)        \
    X(cuGetErrorName, fake_get_error_name)                    \
    X(cuGetErrorString, fake_get_error_string)

void *fake_resolve(void *user, const char *symbol)
{
    (void)user;
    if (fake.symbol_count < FAKE_MAX_SYMBOLS) fake.symbols[fake.symbol_count++] = symbol;
    if (fake.absent && strcmp(symbol, fake.absent) == 0) return NULL;
    void *address = NULL;
#define X(name, function)                                 \
    if (strcmp(symbol, #name) == 0) {                     \
        void (*generic)(void) = (void (*)(void))function; \
        memcpy(&address, &generic, sizeof address);       \
    }
    FAKE_FUNCTIONS(X)
#undef X
    return address;
}

void fake_reset(void)
{
    memset(&fake, 0, sizeof fake);
    fake.device_count = 1;
    fake.cc_major = 9;
    fake.max_shared = 232448;
    fake.static_shared = 128;
    fake.fail_code = HEWN_CU_OUT_OF_MEMORY;
    depth = 0;
    stack[0] = NULL;
}

int fake_open(hewn_driver **out, hewn_error *err)
{
    hewn_driver_options options = {.struct_size = sizeof options, .resolve = fake_resolve};
    return hewn_driver_open(&options, out, err);
}

hewn_cu_context fake_current(void)
{
    return stack[depth];
}

hewn_cu_context fake_foreign_context(void)
{
    return (hewn_cu_context)(void *)&foreign_context;
}

void fake_set_current(hewn_cu_context context)
{
    stack[depth] = context;
}

int fake_stack_depth(void)
{
    return depth;
}
