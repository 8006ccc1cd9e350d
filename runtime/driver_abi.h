/*
 * The part of the CUDA driver's binary interface that hewn uses: types, constants and layouts, under
 * names of our own, so that it may stand beside cuda.h. The runtime calls through it, the simulated
 * driver implements it; tests/runtime/abi.c checks every constant and layout against a real cuda.h where one
 * is found. Source: CUDA Driver API reference, 13.0.
 */
#ifndef HEWN_DRIVER_ABI_H
#define HEWN_DRIVER_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int hewn_cu_result;
typedef int hewn_cu_device;
typedef unsigned long long hewn_cu_deviceptr;
typedef struct CUctx_st *hewn_cu_context;
typedef struct CUmod_st *hewn_cu_module;
typedef struct CUfunc_st *hewn_cu_function;
typedef struct CUstream_st *hewn_cu_stream;
typedef struct CUevent_st *hewn_cu_event;
typedef struct CUlib_st *hewn_cu_library;
typedef struct CUkern_st *hewn_cu_kernel;
typedef struct CUgraph_st *hewn_cu_graph;
typedef struct CUgraphExec_st *hewn_cu_graph_exec;

/* name (CUDA_ERROR_ name in cuda.h), value, text of cuGetErrorString */
#define HEWN_CU_RESULTS(X)                                                                         \
    X(SUCCESS, 0, "no error")                                                                      \
    X(INVALID_VALUE, 1, "invalid argument")                                                        \
    X(OUT_OF_MEMORY, 2, "out of memory")                                                           \
    X(NOT_INITIALIZED, 3, "initialization error")                                                  \
    X(DEINITIALIZED, 4, "driver shutting down")                                                    \
    X(NO_DEVICE, 100, "no CUDA-capable device is detected")                                        \
    X(INVALID_DEVICE, 101, "invalid device ordinal")                                               \
    X(INVALID_IMAGE, 200, "device kernel image is invalid")                                        \
    X(INVALID_CONTEXT, 201, "invalid device context")                                              \
    X(NO_BINARY_FOR_GPU, 209, "no kernel image is available for execution on the device")          \
    X(UNSUPPORTED_LIMIT, 215, "limit is not supported on this architecture")                       \
    X(PEER_ACCESS_UNSUPPORTED, 217, "these two devices cannot reach each other's memory")           \
    X(INVALID_PTX, 218, "a PTX JIT compilation failed")                                            \
    X(UNSUPPORTED_PTX_VERSION, 222, "PTX was compiled with an unsupported toolchain")              \
    X(UNSUPPORTED_EXEC_AFFINITY, 224, "the kind of execution affinity is not supported")           \
    X(CONTAINED, 226, "invalid access of peer GPU memory over nvlink or a hardware error")         \
    X(INVALID_SOURCE, 300, "device kernel image is invalid")                                       \
    X(FILE_NOT_FOUND, 301, "file not found")                                                       \
    X(OPERATING_SYSTEM, 304, "OS call failed or operation not supported on this OS")               \
    X(INVALID_HANDLE, 400, "invalid resource handle")                                              \
    X(ILLEGAL_STATE, 401, "the operation cannot be performed in the present state")                \
    X(LOSSY_QUERY, 402, "the answer would leave out what edges say")                               \
    X(NOT_FOUND, 500, "named symbol not found")                                                    \
    X(NOT_READY, 600, "device not ready")                                                          \
    X(ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                            \
    X(LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch")                     \
    X(LAUNCH_TIMEOUT, 702, "the launch timed out and was terminated")                              \
    X(PEER_ACCESS_ALREADY_ENABLED, 704, "access to the peer is enabled already")                   \
    X(PEER_ACCESS_NOT_ENABLED, 705, "access to the peer is not enabled")                           \
    X(PRIMARY_CONTEXT_ACTIVE, 708, "cannot set while device is active in this process")            \
    X(CONTEXT_IS_DESTROYED, 709, "context is destroyed")                                           \
    X(ASSERT, 710, "device-side assert triggered")                                                 \
    X(HOST_MEMORY_ALREADY_REGISTERED, 712, "host memory range already registered")                 \
    X(HOST_MEMORY_NOT_REGISTERED, 713, "pointer is no registered host memory")                     \
    X(HARDWARE_STACK_ERROR, 714, "hardware stack error")                                           \
    X(ILLEGAL_INSTRUCTION, 715, "an illegal instruction was encountered")                          \
    X(MISALIGNED_ADDRESS, 716, "misaligned address")                                               \
    X(INVALID_ADDRESS_SPACE, 717, "operation not supported on global/shared address space")        \
    X(INVALID_PC, 718, "invalid program counter")                                                  \
    X(LAUNCH_FAILED, 719, "unspecified launch failure")                                            \
    X(COOPERATIVE_LAUNCH_TOO_LARGE, 720, "too many blocks in cooperative launch")                  \
    X(TENSOR_MEMORY_LEAK, 721, "tensor memory not completely freed")                               \
    X(NOT_PERMITTED, 800, "operation not permitted")                                               \
    X(NOT_SUPPORTED, 801, "operation not supported")                                               \
    X(STREAM_CAPTURE_UNSUPPORTED, 900, "operation not permitted when stream is capturing")         \
    X(STREAM_CAPTURE_INVALIDATED, 901, "operation failed due to a previous error during capture")  \
    X(STREAM_CAPTURE_MERGE, 902, "operation would merge separate capture sequences")               \
    X(STREAM_CAPTURE_UNMATCHED, 903, "capture was not ended in the same stream as it began")       \
    X(STREAM_CAPTURE_UNJOINED, 904, "capturing stream has unjoined work")                          \
    X(STREAM_CAPTURE_ISOLATION, 905, "a dependency would cross the boundary of a capture")         \
    X(STREAM_CAPTURE_IMPLICIT, 906, "legacy stream would depend on a capturing stream")            \
    X(CAPTURED_EVENT, 907, "event was last recorded in a capturing stream")                        \
    X(STREAM_CAPTURE_WRONG_THREAD, 908, "thread-local capture ended by another thread")            \
    X(GRAPH_EXEC_UPDATE_FAILURE, 910, "the graph does not fit the instance that it would update")  \
    X(EXTERNAL_DEVICE, 911, "an async error has occurred in external entity outside of CUDA")      \
    X(INVALID_CLUSTER_SIZE, 912, "invalid cluster size")                                           \
    X(INVALID_RESOURCE_TYPE, 914, "invalid resource type")                                         \
    X(INVALID_RESOURCE_CONFIGURATION, 915, "invalid resource configuration")                       \
    X(UNKNOWN, 999, "unknown error")

enum {
#define X(name, value, text) HEWN_CU_##name = value,
    HEWN_CU_RESULTS(X)
#undef X
};

/* CU_DEVICE_ATTRIBUTE_ name, value: those with something to say about a compute device */
#define HEWN_CU_DEVICE_ATTRIBUTES(X)                                                               \
    X(MAX_THREADS_PER_BLOCK, 1) X(MAX_BLOCK_DIM_X, 2) X(MAX_BLOCK_DIM_Y, 3) X(MAX_BLOCK_DIM_Z, 4)  \
    X(MAX_GRID_DIM_X, 5) X(MAX_GRID_DIM_Y, 6) X(MAX_GRID_DIM_Z, 7)                                 \
    X(MAX_SHARED_MEMORY_PER_BLOCK, 8) X(TOTAL_CONSTANT_MEMORY, 9) X(WARP_SIZE, 10)                 \
    X(MAX_PITCH, 11) X(MAX_REGISTERS_PER_BLOCK, 12) X(CLOCK_RATE, 13) X(TEXTURE_ALIGNMENT, 14)     \
    X(GPU_OVERLAP, 15) X(MULTIPROCESSOR_COUNT, 16) X(KERNEL_EXEC_TIMEOUT, 17) X(INTEGRATED, 18)    \
    X(CAN_MAP_HOST_MEMORY, 19) X(COMPUTE_MODE, 20) X(SURFACE_ALIGNMENT, 30)                        \
    X(CONCURRENT_KERNELS, 31) X(ECC_ENABLED, 32) X(PCI_BUS_ID, 33) X(PCI_DEVICE_ID, 34)            \
    X(TCC_DRIVER, 35) X(MEMORY_CLOCK_RATE, 36) X(GLOBAL_MEMORY_BUS_WIDTH, 37)                      \
    X(L2_CACHE_SIZE, 38) X(MAX_THREADS_PER_MULTIPROCESSOR, 39) X(ASYNC_ENGINE_COUNT, 40)           \
    X(UNIFIED_ADDRESSING, 41) X(PCI_DOMAIN_ID, 50) X(TEXTURE_PITCH_ALIGNMENT, 51)                  \
    X(COMPUTE_CAPABILITY_MAJOR, 75) X(COMPUTE_CAPABILITY_MINOR, 76)                                \
    X(STREAM_PRIORITIES_SUPPORTED, 78) X(GLOBAL_L1_CACHE_SUPPORTED, 79)                            \
    X(LOCAL_L1_CACHE_SUPPORTED, 80) X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)                    \
    X(MAX_REGISTERS_PER_MULTIPROCESSOR, 82) X(MANAGED_MEMORY, 83)                                  \
    X(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 87) X(CONCURRENT_MANAGED_ACCESS, 89)                  \
    X(COMPUTE_PREEMPTION_SUPPORTED, 90) X(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91)             \
    X(COOPERATIVE_LAUNCH, 95) X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                             \
    X(HOST_REGISTER_SUPPORTED, 99) X(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)                     \
    X(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103) X(GENERIC_COMPRESSION_SUPPORTED, 107)      \
    X(CAN_USE_64_BIT_STREAM_MEM_OPS, 122) X(CAN_USE_STREAM_WAIT_VALUE_NOR, 123)                    \
    X(MAX_BLOCKS_PER_MULTIPROCESSOR, 106) X(MAX_PERSISTING_L2_CACHE_SIZE, 108)                     \
    X(MAX_ACCESS_POLICY_WINDOW_SIZE, 109) X(RESERVED_SHARED_MEMORY_PER_BLOCK, 111)                 \
    X(MEMORY_POOLS_SUPPORTED, 115) X(CLUSTER_LAUNCH, 120) X(MEM_SYNC_DOMAIN_COUNT, 126)            \
    X(TENSOR_MAP_ACCESS_SUPPORTED, 127) X(UNIFIED_FUNCTION_POINTERS, 129)                          \
    X(MULTICAST_SUPPORTED, 132)

enum {
#define X(name, value) HEWN_CU_ATTR_##name = value,
    HEWN_CU_DEVICE_ATTRIBUTES(X)
#undef X
};

enum { HEWN_CU_ATTR_LAST = 147 }; /* the highest number that 13.0 knows */

/* CU_FUNC_ATTRIBUTE_ name, value */
#define HEWN_CU_FUNC_ATTRIBUTES(X)                                                                 \
    X(MAX_THREADS_PER_BLOCK, 0) X(SHARED_SIZE_BYTES, 1) X(CONST_SIZE_BYTES, 2)                     \
    X(LOCAL_SIZE_BYTES, 3) X(NUM_REGS, 4) X(PTX_VERSION, 5) X(BINARY_VERSION, 6)                   \
    X(CACHE_MODE_CA, 7) X(MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                        \
    X(PREFERRED_SHARED_MEMORY_CARVEOUT, 9) X(CLUSTER_SIZE_MUST_BE_SET, 10)                         \
    X(REQUIRED_CLUSTER_WIDTH, 11) X(REQUIRED_CLUSTER_HEIGHT, 12) X(REQUIRED_CLUSTER_DEPTH, 13)     \
    X(NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14) X(CLUSTER_SCHEDULING_POLICY_PREFERENCE, 15)

enum {
#define X(name, value) HEWN_CU_FUNC_##name = value,
    HEWN_CU_FUNC_ATTRIBUTES(X)
#undef X
};

/* CU_LAUNCH_ATTRIBUTE_ name, value */
#define HEWN_CU_LAUNCH_ATTRIBUTES(X)                                                               \
    X(IGNORE, 0) X(ACCESS_POLICY_WINDOW, 1) X(COOPERATIVE, 2) X(SYNCHRONIZATION_POLICY, 3)         \
    X(CLUSTER_DIMENSION, 4) X(CLUSTER_SCHEDULING_POLICY_PREFERENCE, 5)                             \
    X(PROGRAMMATIC_STREAM_SERIALIZATION, 6) X(PROGRAMMATIC_EVENT, 7) X(PRIORITY, 8)                \
    X(MEM_SYNC_DOMAIN_MAP, 9) X(MEM_SYNC_DOMAIN, 10) X(PREFERRED_CLUSTER_DIMENSION, 11)            \
    X(LAUNCH_COMPLETION_EVENT, 12) X(DEVICE_UPDATABLE_KERNEL_NODE, 13)                             \
    X(PREFERRED_SHARED_MEMORY_CARVEOUT, 14)

enum {
#define X(name, value) HEWN_CU_LAUNCH_##name = value,
    HEWN_CU_LAUNCH_ATTRIBUTES(X)
#undef X
    HEWN_CU_LAUNCH_COUNT
};

/* CU_POINTER_ATTRIBUTE_ name, value */
#define HEWN_CU_POINTER_ATTRIBUTES(X)                                                              \
    X(CONTEXT, 1) X(MEMORY_TYPE, 2) X(DEVICE_POINTER, 3) X(HOST_POINTER, 4) X(SYNC_MEMOPS, 6)      \
    X(BUFFER_ID, 7) X(IS_MANAGED, 8) X(DEVICE_ORDINAL, 9) X(RANGE_START_ADDR, 11)                  \
    X(RANGE_SIZE, 12) X(MAPPED, 13) X(ALLOWED_HANDLE_TYPES, 14) X(ACCESS_FLAGS, 16)                \
    X(MEMPOOL_HANDLE, 17)

enum {
#define X(name, value) HEWN_CU_POINTER_##name = value,
    HEWN_CU_POINTER_ATTRIBUTES(X)
#undef X
};

/* CU_LIMIT_ name, value */
#define HEWN_CU_LIMITS(X)                                                                          \
    X(STACK_SIZE, 0) X(PRINTF_FIFO_SIZE, 1) X(MALLOC_HEAP_SIZE, 2) X(DEV_RUNTIME_SYNC_DEPTH, 3)    \
    X(DEV_RUNTIME_PENDING_LAUNCH_COUNT, 4) X(MAX_L2_FETCH_GRANULARITY, 5)                          \
    X(PERSISTING_L2_CACHE_SIZE, 6)

enum {
#define X(name, value) HEWN_CU_LIMIT_##name = value,
    HEWN_CU_LIMITS(X)
#undef X
};

typedef union hewn_cu_launch_value {
    char pad[64];
    struct {
        unsigned x, y, z;
    } cluster;
    int flag; /* cooperative, programmatic stream serialisation, priority */
} hewn_cu_launch_value;

typedef struct hewn_cu_launch_attribute {
    int id;
    char pad[8 - sizeof(int)];
    hewn_cu_launch_value value;
} hewn_cu_launch_attribute;

typedef struct hewn_cu_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
    unsigned shared_bytes;
    hewn_cu_stream stream;
    hewn_cu_launch_attribute *attributes;
    unsigned attribute_count;
} hewn_cu_launch_config;

/* CU_LAUNCH_PARAM_… of the `extra` argument */
#define HEWN_CU_PARAM_END ((void *)0)
#define HEWN_CU_PARAM_BUFFER_POINTER ((void *)1)
#define HEWN_CU_PARAM_BUFFER_SIZE ((void *)2)

/* CUtensorMap: 128 bytes, the encoder wants its output 64-byte aligned. Enum values are those of
 * hewn_tensormap_* in hewn.h. */
typedef struct hewn_cu_tensor_map {
    _Alignas(64) uint64_t opaque[16];
} hewn_cu_tensor_map;

/* CU_JIT_ name, value; scalars travel inside the option's void * */
#define HEWN_CU_JIT_OPTIONS(X)                                                                     \
    X(MAX_REGISTERS, 0) X(THREADS_PER_BLOCK, 1) X(WALL_TIME, 2) X(INFO_LOG_BUFFER, 3)              \
    X(INFO_LOG_BUFFER_SIZE_BYTES, 4) X(ERROR_LOG_BUFFER, 5) X(ERROR_LOG_BUFFER_SIZE_BYTES, 6)      \
    X(OPTIMIZATION_LEVEL, 7) X(TARGET_FROM_CUCONTEXT, 8) X(TARGET, 9) X(GENERATE_DEBUG_INFO, 11)   \
    X(LOG_VERBOSE, 12) X(GENERATE_LINE_INFO, 13)

enum {
#define X(name, value) HEWN_CU_JIT_##name = value,
    HEWN_CU_JIT_OPTIONS(X)
#undef X
};

enum { HEWN_CU_JIT_OPTION_COUNT = 35 }; /* ids that 13.0 knows */

enum { HEWN_CU_STREAM_NON_BLOCKING = 1, HEWN_CU_EVENT_DISABLE_TIMING = 2 };

/* Stream handles with a meaning of their own; NULL is the legacy default stream too. */
#define HEWN_CU_STREAM_LEGACY ((hewn_cu_stream)1)
#define HEWN_CU_STREAM_PER_THREAD ((hewn_cu_stream)2)

enum { /* CUstreamCaptureMode, CUstreamCaptureStatus */
    HEWN_CU_CAPTURE_GLOBAL = 0,
    HEWN_CU_CAPTURE_THREAD_LOCAL = 1,
    HEWN_CU_CAPTURE_RELAXED = 2,
    HEWN_CU_CAPTURE_NONE = 0,
    HEWN_CU_CAPTURE_ACTIVE = 1,
    HEWN_CU_CAPTURE_INVALIDATED = 2
};

enum { /* CUmemorytype */
    HEWN_CU_MEMORY_HOST = 1,
    HEWN_CU_MEMORY_DEVICE = 2,
    HEWN_CU_MEMORY_ARRAY = 3,
    HEWN_CU_MEMORY_UNIFIED = 4
};

/* CUDA_MEMCPY2D; pitches and widths in bytes */
typedef struct hewn_cu_memcpy2d {
    size_t src_x, src_y;
    int src_type; /* HEWN_CU_MEMORY_… */
    const void *src_host;
    hewn_cu_deviceptr src_device;
    void *src_array;
    size_t src_pitch;
    size_t dst_x, dst_y;
    int dst_type;
    void *dst_host;
    hewn_cu_deviceptr dst_device;
    void *dst_array;
    size_t dst_pitch;
    size_t width, height;
} hewn_cu_memcpy2d;

/* CUDA_MEMCPY3D; arrays ignore pitches and heights */
typedef struct hewn_cu_memcpy3d {
    size_t src_x, src_y, src_z, src_level;
    int src_type;
    const void *src_host;
    hewn_cu_deviceptr src_device;
    void *src_array, *src_reserved;
    size_t src_pitch, src_height;
    size_t dst_x, dst_y, dst_z, dst_level;
    int dst_type;
    void *dst_host;
    hewn_cu_deviceptr dst_device;
    void *dst_array, *dst_reserved;
    size_t dst_pitch, dst_height;
    size_t width, height, depth;
} hewn_cu_memcpy3d;

/* CUipcMemHandle, CUipcEventHandle */
typedef struct hewn_cu_ipc_handle {
    unsigned char bytes[64];
} hewn_cu_ipc_handle;

typedef struct CUarray_st *hewn_cu_array;
typedef struct CUmipmappedArray_st *hewn_cu_mipmapped_array;

enum { /* CUarray_format, of one channel */
       HEWN_CU_FORMAT_U8 = 1,
       HEWN_CU_FORMAT_U16 = 2,
       HEWN_CU_FORMAT_U32 = 3,
       HEWN_CU_FORMAT_S8 = 8,
       HEWN_CU_FORMAT_S16 = 9,
       HEWN_CU_FORMAT_S32 = 10,
       HEWN_CU_FORMAT_F16 = 16,
       HEWN_CU_FORMAT_F32 = 32
};

enum { /* CUDA_ARRAY3D_… */
       HEWN_CU_ARRAY_LAYERED = 1,
       HEWN_CU_ARRAY_SURFACE = 2,
       HEWN_CU_ARRAY_CUBEMAP = 4,
       HEWN_CU_ARRAY_GATHER = 8
};

/* CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR; sizes in elements, 0 for a dimension that is not there */
typedef struct hewn_cu_array_desc {
    size_t width, height;
    int format;
    unsigned channels;
} hewn_cu_array_desc;
typedef struct hewn_cu_array3d_desc {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
} hewn_cu_array3d_desc;

enum { /* CUresourcetype */
       HEWN_CU_RESOURCE_ARRAY = 0,
       HEWN_CU_RESOURCE_MIPMAPPED_ARRAY = 1,
       HEWN_CU_RESOURCE_LINEAR = 2,
       HEWN_CU_RESOURCE_PITCH2D = 3
};
/* CUDA_RESOURCE_DESC */
typedef struct hewn_cu_resource_desc {
    int type;
    union {
        hewn_cu_array array;
        hewn_cu_mipmapped_array mipmapped;
        struct {
            hewn_cu_deviceptr address;
            int format;
            unsigned channels;
            size_t bytes;
        } linear;
        struct {
            hewn_cu_deviceptr address;
            int format;
            unsigned channels;
            size_t width, height, pitch;
        } pitch2d;
        int reserved[32];
    } of;
    unsigned flags;
} hewn_cu_resource_desc;

enum { /* CU_TRSF_… */
       HEWN_CU_TEXTURE_AS_INTEGER = 1,
       HEWN_CU_TEXTURE_NORMALIZED = 2,
       HEWN_CU_TEXTURE_SRGB = 16
};
/* CUDA_TEXTURE_DESC */
typedef struct hewn_cu_texture_desc {
    int address_mode[3],
        filter; /* CUaddress_mode wrap 0, clamp, mirror, border; CUfilter_mode point 0, linear */
    unsigned flags, anisotropy;
    int level_filter;
    float level_bias, least_level, most_level, border[4];
    int reserved[12];
} hewn_cu_texture_desc;

/* CUDA_RESOURCE_VIEW_DESC */
typedef struct hewn_cu_resource_view_desc {
    int format;
    size_t width, height, depth;
    unsigned first_level, last_level, first_layer, last_layer, reserved[16];
} hewn_cu_resource_view_desc;

enum { /* CUdriverProcAddressQueryResult, the last argument of cuGetProcAddress_v2 */
    HEWN_CU_PROC_FOUND = 0,
    HEWN_CU_PROC_NOT_FOUND = 1,
    HEWN_CU_PROC_VERSION_NOT_SUFFICIENT = 2
};

#endif
