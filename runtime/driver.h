/* The driver as the runtime sees it: one table of functions, resolved once, immutable after. */
#ifndef HEWN_RUNTIME_DRIVER_H
#define HEWN_RUNTIME_DRIVER_H

#include "driver_abi.h"
#include "hewn.h"

#include <string.h>

/*
 * need, field of the table, base name, suffix of the exported name, CUDA version that introduced
 * this very form (1000*major + 10*minor), arguments.
 *
 * The exported name (base and suffix) fixes the binary interface; the base name is what cuda.h
 * calls it and may mean another form in another version. REQUIRED: nothing works without it.
 * OPTIONAL: what needs it says so, the rest goes on.
 */
#define HEWN_DRIVER_FUNCTIONS(X)                                                                   \
    X(REQUIRED, init, cuInit, , 2000, (unsigned flags))                                            \
    X(REQUIRED, driver_get_version, cuDriverGetVersion, , 2020, (int *version))                    \
    X(REQUIRED, device_get_count, cuDeviceGetCount, , 2000, (int *count))                          \
    X(REQUIRED, device_get, cuDeviceGet, , 2000, (hewn_cu_device * device, int ordinal))           \
    X(REQUIRED, device_get_name, cuDeviceGetName, , 2000,                                          \
      (char *name, int size, hewn_cu_device device))                                               \
    X(REQUIRED, device_total_mem, cuDeviceTotalMem, _v2, 3020,                                     \
      (size_t * bytes, hewn_cu_device device))                                                     \
    X(REQUIRED, device_get_attribute, cuDeviceGetAttribute, , 2000,                                \
      (int *value, int attribute, hewn_cu_device device))                                          \
    X(REQUIRED, primary_ctx_retain, cuDevicePrimaryCtxRetain, , 7000,                              \
      (hewn_cu_context * context, hewn_cu_device device))                                          \
    X(REQUIRED, primary_ctx_release, cuDevicePrimaryCtxRelease, _v2, 11000,                        \
      (hewn_cu_device device))                                                                     \
    X(REQUIRED, ctx_get_current, cuCtxGetCurrent, , 4000, (hewn_cu_context * context))             \
    X(REQUIRED, ctx_set_current, cuCtxSetCurrent, , 4000, (hewn_cu_context context))               \
    X(REQUIRED, ctx_push_current, cuCtxPushCurrent, _v2, 4000, (hewn_cu_context context))          \
    X(REQUIRED, ctx_pop_current, cuCtxPopCurrent, _v2, 4000, (hewn_cu_context * context))          \
    X(REQUIRED, ctx_get_device, cuCtxGetDevice, , 2000, (hewn_cu_device * device))                 \
    X(REQUIRED, module_load_data, cuModuleLoadData, , 2000,                                        \
      (hewn_cu_module * module, const void *image))                                                \
    X(OPTIONAL, module_load_data_ex, cuModuleLoadDataEx, , 2010,                                   \
      (hewn_cu_module * module, const void *image, unsigned count, int *options, void **values))   \
    X(REQUIRED, module_unload, cuModuleUnload, , 2000, (hewn_cu_module module))                    \
    X(REQUIRED, module_get_function, cuModuleGetFunction, , 2000,                                  \
      (hewn_cu_function * function, hewn_cu_module module, const char *name))                      \
    X(REQUIRED, func_get_attribute, cuFuncGetAttribute, , 2020,                                    \
      (int *value, int attribute, hewn_cu_function function))                                      \
    X(REQUIRED, func_set_attribute, cuFuncSetAttribute, , 9000,                                    \
      (hewn_cu_function function, int attribute, int value))                                       \
    X(OPTIONAL, func_load, cuFuncLoad, , 12040, (hewn_cu_function function))                       \
    X(REQUIRED, launch_kernel, cuLaunchKernel, , 4000,                                             \
      (hewn_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,               \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,                \
       hewn_cu_stream stream, void **params, void **extra))                                        \
    X(OPTIONAL, launch_kernel_ex, cuLaunchKernelEx, , 11060,                                       \
      (const hewn_cu_launch_config *config, hewn_cu_function function, void **params,              \
       void **extra))                                                                              \
    X(OPTIONAL, occupancy_max_active_clusters, cuOccupancyMaxActiveClusters, , 11070,              \
      (int *clusters, hewn_cu_function function, const hewn_cu_launch_config *config))             \
    X(OPTIONAL, tensor_map_encode_tiled, cuTensorMapEncodeTiled, , 12000,                          \
      (hewn_cu_tensor_map * map, int dtype, uint32_t rank, void *address, const uint64_t *dim,     \
       const uint64_t *stride, const uint32_t *box, const uint32_t *element_stride,                \
       int interleave, int swizzle, int l2, int oob))                                              \
    X(OPTIONAL, tensor_map_replace_address, cuTensorMapReplaceAddress, , 12000,                    \
      (hewn_cu_tensor_map * map, void *address))                                                   \
    X(OPTIONAL, get_error_name, cuGetErrorName, , 6000,                                            \
      (hewn_cu_result code, const char **name))                                                    \
    X(OPTIONAL, get_error_string, cuGetErrorString, , 6000,                                        \
      (hewn_cu_result code, const char **text))

/* Where the driver's interface has void * for what is a number: an address, a JIT option's value. */
static inline void *hewn_as_pointer(uintptr_t number)
{
    void *pointer;
    memcpy(&pointer, &number, sizeof pointer);
    return pointer;
}

struct hewn_driver_table {
#define X(need, field, base, suffix, since, arguments) hewn_cu_result(*field) arguments;
    HEWN_DRIVER_FUNCTIONS(X)
#undef X
};

struct hewn_driver {
    struct hewn_driver_table fn;
    void *library; /* NULL with a resolver */
    void *(*resolve)(void *user, const char *symbol);
    void *user;
    int version, device_count;
    int simulated;
    int watched; /* by hewn watch, which needs the PTX */
    char *path;
    char missing[512]; /* optional functions that are absent */
};

#endif
