/* The one device and what it says about itself. */
#include "cuda/driver.h"

#include <stdio.h>

enum {
    MAX_THREADS = 1024,
    SHARED_DEFAULT = 48 * 1024, /* what a block gets without opting in */
    MAX_GRID_X = 0x7FFFFFFF,
    MAX_GRID_YZ = 65535
};

/* Attribute, value in terms of `gpu`. What is not listed has the value 0: not supported, no limit
 * that a compute program meets (textures, surfaces, interop). */
#define ATTRIBUTE_VALUES(X)                                      \
    X(MAX_THREADS_PER_BLOCK, MAX_THREADS)                        \
    X(MAX_BLOCK_DIM_X, MAX_THREADS)                              \
    X(MAX_BLOCK_DIM_Y, MAX_THREADS)                              \
    X(MAX_BLOCK_DIM_Z, 64)                                       \
    X(MAX_GRID_DIM_X, MAX_GRID_X)                                \
    X(MAX_GRID_DIM_Y, MAX_GRID_YZ)                               \
    X(MAX_GRID_DIM_Z, MAX_GRID_YZ)                               \
    X(MAX_SHARED_MEMORY_PER_BLOCK, SHARED_DEFAULT)               \
    X(TOTAL_CONSTANT_MEMORY, 65536)                              \
    X(WARP_SIZE, WARP_LANES)                                     \
    X(MAX_PITCH, 0x7FFFFFFF)                                     \
    X(MAX_REGISTERS_PER_BLOCK, gpu->regs_per_sm)                 \
    X(CLOCK_RATE, gpu->clock_khz)                                \
    X(TEXTURE_ALIGNMENT, 512)                                    \
    X(GPU_OVERLAP, 1)                                            \
    X(MULTIPROCESSOR_COUNT, gpu->sm_count)                       \
    X(CAN_MAP_HOST_MEMORY, 1)                                    \
    X(SURFACE_ALIGNMENT, 512)                                    \
    X(CONCURRENT_KERNELS, 1)                                     \
    X(ECC_ENABLED, 1)                                            \
    X(PCI_BUS_ID, 1)                                             \
    X(MEMORY_CLOCK_RATE, 3201000)                                \
    X(GLOBAL_MEMORY_BUS_WIDTH, gpu->cc_major == 9 ? 6144 : 8192) \
    X(L2_CACHE_SIZE, gpu->l2_bytes)                              \
    X(MAX_THREADS_PER_MULTIPROCESSOR, gpu->threads_per_sm)       \
    X(ASYNC_ENGINE_COUNT, 3)                                     \
    X(UNIFIED_ADDRESSING, 1)                                     \
    X(TEXTURE_PITCH_ALIGNMENT, 32)                               \
    X(COMPUTE_CAPABILITY_MAJOR, gpu->cc_major)                   \
    X(COMPUTE_CAPABILITY_MINOR, gpu->cc_minor)                   \
    X(STREAM_PRIORITIES_SUPPORTED, 1)                            \
    X(GLOBAL_L1_CACHE_SUPPORTED, 1)                              \
    X(LOCAL_L1_CACHE_SUPPORTED, 1)                               \
    X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, gpu->shared_per_sm)  \
    X(MAX_REGISTERS_PER_MULTIPROCESSOR, gpu->regs_per_sm)        \
    X(MANAGED_MEMORY, 1)                                         \
    X(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2)                  \
    X(CONCURRENT_MANAGED_ACCESS, 1)                              \
    X(COMPUTE_PREEMPTION_SUPPORTED, 1)                           \
    X(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1)                \
    X(COOPERATIVE_LAUNCH, 1)                                     \
    X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, gpu->shared_optin)      \
    X(HOST_REGISTER_SUPPORTED, 1)                                \
    X(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1)                    \
    X(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1)            \
    X(GENERIC_COMPRESSION_SUPPORTED, 1)                          \
    X(CAN_USE_64_BIT_STREAM_MEM_OPS, 1)                          \
    X(CAN_USE_STREAM_WAIT_VALUE_NOR, 1)                          \
    X(MAX_BLOCKS_PER_MULTIPROCESSOR, gpu->ctas_per_sm)           \
    X(MAX_ACCESS_POLICY_WINDOW_SIZE, 0x08000000)                 \
    X(RESERVED_SHARED_MEMORY_PER_BLOCK, SHARED_RESERVED)         \
    X(MEMORY_POOLS_SUPPORTED, 1)                                 \
    X(CLUSTER_LAUNCH, 1)                                         \
    X(MEM_SYNC_DOMAIN_COUNT, 4)                                  \
    X(TENSOR_MAP_ACCESS_SUPPORTED, 1)                            \
    X(UNIFIED_FUNCTION_POINTERS, 1)                              \
    X(MULTICAST_SUPPORTED, 1)

static int attribute_value(int attribute, const struct gpu *gpu)
{
    switch (attribute) {
#define X(name, value) \
    case HEWN_CU_ATTR_##name: return (int)(value);
        ATTRIBUTE_VALUES(X)
#undef X
    default: return 0;
    }
}

/* Enters a call about `device`. */
static int enter_device(struct call *call, hewn_cu_device device, const void *out)
{
    if (call_enter(call, NEED_INIT)) return call->rc;
    if (!out) return call->rc = HEWN_CU_INVALID_VALUE;
    return call->rc = device ? HEWN_CU_INVALID_DEVICE : 0;
}

int cuDeviceGet(hewn_cu_device *device, int ordinal)
{
    struct call call CALL_SCOPE;
    if (enter_device(&call, ordinal, device)) return call.rc;
    *device = ordinal;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    struct call call CALL_SCOPE;
    if (enter_device(&call, 0, count)) return call.rc;
    *count = 1;
    return 0;
}

int cuDeviceGetName(char *name, int size, hewn_cu_device device)
{
    struct call call CALL_SCOPE;
    if (enter_device(&call, device, name)) return call.rc;
    if (size < 1) return HEWN_CU_INVALID_VALUE;
    snprintf(name, (size_t)size, "%s", driver.settings.gpu.name);
    return 0;
}

int cuDeviceGetUuid_v2(void *uuid16, hewn_cu_device device)
{
    struct call call CALL_SCOPE;
    uint8_t uuid[16] = "hewn-simulator";

    if (enter_device(&call, device, uuid16)) return call.rc;
    uuid[14] = (uint8_t)driver.settings.gpu.cc_major;
    uuid[15] = (uint8_t)driver.settings.gpu.cc_minor;
    memcpy(uuid16, uuid, sizeof uuid);
    return 0;
}

int cuDeviceGetUuid(void *uuid16, hewn_cu_device device)
{
    return cuDeviceGetUuid_v2(uuid16, device);
}

int cuDeviceTotalMem_v2(size_t *bytes, hewn_cu_device device)
{
    struct call call CALL_SCOPE;
    if (enter_device(&call, device, bytes)) return call.rc;
    *bytes = driver.settings.gpu.memory_bytes;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, hewn_cu_device device)
{
    struct call call CALL_SCOPE;
    if (enter_device(&call, device, value)) return call.rc;
    if (attribute < 1 || attribute > HEWN_CU_ATTR_LAST) return HEWN_CU_INVALID_VALUE;
    *value = attribute_value(attribute, &driver.settings.gpu);
    return 0;
}

int cuDeviceComputeCapability(int *major, int *minor, hewn_cu_device device)
{
    struct call call CALL_SCOPE;
    if (enter_device(&call, device, major)) return call.rc;
    if (!minor) return HEWN_CU_INVALID_VALUE;
    *major = (int)driver.settings.gpu.cc_major;
    *minor = (int)driver.settings.gpu.cc_minor;
    return 0;
}

static const char bus_id[] = "0000:01:00.0"; /* domain, bus and device as the attributes say */

int cuDeviceGetPCIBusId(char *id, int size, hewn_cu_device device)
{
    struct call call CALL_SCOPE;
    if (enter_device(&call, device, id)) return call.rc;
    if (size < (int)sizeof bus_id) return HEWN_CU_INVALID_VALUE;
    memcpy(id, bus_id, sizeof bus_id);
    return 0;
}

int cuDeviceGetByPCIBusId(hewn_cu_device *device, const char *id)
{
    struct call call CALL_SCOPE;
    if (enter_device(&call, 0, device)) return call.rc;
    if (!id) return HEWN_CU_INVALID_VALUE;
    if (strcmp(id, bus_id) != 0) return HEWN_CU_INVALID_DEVICE;
    *device = 0;
    return 0;
}

int cuDeviceCanAccessPeer(int *can, hewn_cu_device device, hewn_cu_device peer)
{
    struct call call CALL_SCOPE;
    if (enter_device(&call, device, can)) return call.rc;
    if (peer) return HEWN_CU_INVALID_DEVICE;
    *can = 0;
    return 0;
}

/* ---- peers: there is one device, which is none of its own ---- */

int cuDeviceGetP2PAttribute(int *value, int attribute, hewn_cu_device device, hewn_cu_device peer)
{
    enum { FIRST = 1, LAST = 5 };
    struct call call CALL_SCOPE;

    (void)device;
    (void)peer;
    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!value || attribute < FIRST || attribute > LAST) return HEWN_CU_INVALID_VALUE;
    return HEWN_CU_INVALID_DEVICE;
}

int cuDeviceGetP2PAtomicCapabilities(unsigned *capabilities, const int *operations, unsigned count,
                                     hewn_cu_device device, hewn_cu_device peer)
{
    int unused;

    if (!capabilities || !operations || !count) return HEWN_CU_INVALID_VALUE;
    return cuDeviceGetP2PAttribute(&unused, 1, device, peer);
}

int cuCtxEnablePeerAccess(hewn_cu_context peer, unsigned flags)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (flags) return HEWN_CU_INVALID_VALUE;
    if (!peer || !handle_get(peer, HANDLE_CONTEXT)) return HEWN_CU_INVALID_CONTEXT;
    return peer == call.context ? HEWN_CU_INVALID_DEVICE : HEWN_CU_PEER_ACCESS_UNSUPPORTED;
}

int cuCtxDisablePeerAccess(hewn_cu_context peer)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!peer || !handle_get(peer, HANDLE_CONTEXT)) return HEWN_CU_INVALID_CONTEXT;
    return HEWN_CU_PEER_ACCESS_NOT_ENABLED;
}

/* ---- what few programs ask ---- */

/* Across PCIe no atomic operation of the device is one for the host too. */
int cuDeviceGetHostAtomicCapabilities(unsigned *capabilities, const int *operations, unsigned count,
                                      hewn_cu_device device)
{
    struct call call CALL_SCOPE;

    if (enter_device(&call, device, capabilities)) return call.rc;
    if (!operations || !count) return HEWN_CU_INVALID_VALUE;
    memset(capabilities, 0, count * sizeof *capabilities);
    return 0;
}

/* Texels of a texture over linear memory. */
int cuDeviceGetTexture1DLinearMaxWidth(size_t *width, int format, unsigned channels,
                                       hewn_cu_device device)
{
    enum { MAX_TEXELS = 1 << 28 };
    struct call call CALL_SCOPE;

    if (enter_device(&call, device, width)) return call.rc;
    if (format < 1 || (channels != 1 && channels != 2 && channels != 4))
        return HEWN_CU_INVALID_VALUE;
    *width = MAX_TEXELS;
    return 0;
}

/* Contexts bound to some of the SMs need a service that shares the device among processes. */
int cuDeviceGetExecAffinitySupport(int *supported, int type, hewn_cu_device device)
{
    struct call call CALL_SCOPE;

    if (enter_device(&call, device, supported)) return call.rc;
    if (type) return HEWN_CU_INVALID_VALUE;
    *supported = 0;
    return 0;
}

int cuCtxGetExecAffinity(void *affinity, int type)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!affinity || type) return HEWN_CU_INVALID_VALUE;
    return HEWN_CU_UNSUPPORTED_EXEC_AFFINITY;
}
