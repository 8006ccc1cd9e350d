/*
 * The CUDA runtime calls that the programs of others.md make, over the driver API. others.sh builds
 * libcudart.so.13 from this file, so a program that is linked with the shared runtime records its
 * launches, on any libcuda.so.1.
 */
#include "others/others_record.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNTIME_VERSION = 13000 };

static cudaError_t last_error;

static cudaError_t result(CUresult rc)
{
    if (rc) last_error = (cudaError_t)rc;
    if (rc) fprintf(stderr, "cudart: driver error %d\n", (int)rc);
    return (cudaError_t)rc;
}

static int synchronize(void)
{
    return (int)cuCtxSynchronize();
}

static int to_host(void *to, CUdeviceptr from, size_t bytes)
{
    return (int)cuMemcpyDtoH(to, from, bytes);
}

static int to_device(CUdeviceptr to, const void *from, size_t bytes)
{
    return (int)cuMemcpyHtoD(to, from, bytes);
}

static void start(void)
{
    static const struct record_calls calls = {synchronize, to_host, to_device};
    static bool started;
    CUcontext context;
    if (started) return;
    started = true;
    record_through(&calls);
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        fprintf(stderr, "cudart: the driver does not start\n");
}

/* ---- what the host stubs of nvcc register: fat binaries, kernels, variables ---- */

/* The wrapper that nvcc puts into the host object; `image` is what cuModuleLoadData takes. */
typedef struct fat_wrapper {
    int magic, version;
    const void *image;
    void *unused;
} fat_wrapper;

typedef struct fat_binary {
    const fat_wrapper *wrapper;
    CUmodule module;
} fat_binary;

typedef struct symbol {
    const void *host;
    fat_binary *fat;
    const char *name;
    CUfunction function;
} symbol;

static symbol *symbols;
static unsigned symbol_count;

static CUmodule module_of(fat_binary *fat)
{
    char log[4096] = "";
    CUjit_option option[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *value[2] = {log, (void *)(uintptr_t)sizeof log};
    if (fat->module) return fat->module;
    start();
    CUresult rc = cuModuleLoadDataEx(&fat->module, fat->wrapper->image, 2, option, value);
    if (rc) fprintf(stderr, "cudart: module does not load (%d): %s\n", (int)rc, log);
    return fat->module;
}

static symbol *find(const void *host)
{
    for (unsigned i = 0; i < symbol_count; i++)
        if (symbols[i].host == host) return &symbols[i];
    return NULL;
}

static CUfunction function_of(const void *host)
{
    symbol *s = find(host);
    if (!s) return NULL;
    if (!s->function) result(cuModuleGetFunction(&s->function, module_of(s->fat), s->name));
    return s->function;
}

static CUdeviceptr variable_of(const void *host)
{
    CUdeviceptr address = 0;
    symbol *s = find(host);
    if (s) result(cuModuleGetGlobal(&address, NULL, module_of(s->fat), s->name));
    return address;
}

static void add_symbol(void **handle, const void *host, const char *name)
{
    symbol *grown = realloc(symbols, (symbol_count + 1) * sizeof *grown);
    if (!grown) return;
    symbols = grown;
    symbols[symbol_count++] = (symbol){.host = host, .fat = (fat_binary *)handle, .name = name};
}

void **__cudaRegisterFatBinary(void *wrapper);
void **__cudaRegisterFatBinary(void *wrapper)
{
    fat_binary *fat = calloc(1, sizeof *fat);
    if (fat) fat->wrapper = wrapper;
    return (void **)fat;
}

void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}
void __cudaUnregisterFatBinary(void **handle);
void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}
char __cudaInitModule(void **handle);
char __cudaInitModule(void **handle)
{
    return handle != NULL;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    add_symbol(handle, host, name);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t bytes, int constant, int global);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t bytes, int constant, int global)
{
    (void)device, (void)external, (void)bytes, (void)constant, (void)global;
    add_symbol(handle, host, name);
}

/* ---- launches ---- */

typedef struct launch_shape {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} launch_shape;

/* <<<…>>> pushes, the kernel's host stub pops: never more than one deep in a program. */
static launch_shape pushed;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    pushed = (launch_shape){grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = pushed.grid, *block = pushed.block, *shared = pushed.shared;
    memcpy(stream, &pushed.stream, sizeof pushed.stream);
    return cudaSuccess;
}

static cudaError_t launch(const CUlaunchConfig *config, const void *host, void **arguments)
{
    CUfunction function = function_of(host);
    if (!function) return cudaErrorInvalidDeviceFunction;
    record_before();
    cudaError_t rc = result(cuLaunchKernelEx(config, function, arguments, NULL));
    record_after();
    return rc;
}

static cudaError_t launch_plain(const void *host, dim3 grid, dim3 block, void **arguments,
                                size_t shared, cudaStream_t stream, bool cooperative)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    CUlaunchConfig config = {grid.x,  grid.y,           grid.z, block.x,    block.y,
                             block.z, (unsigned)shared, stream, &attribute, cooperative};
    return launch(&config, host, arguments);
}

cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream)
{
    return launch_plain(host, grid, block, arguments, shared, stream, false);
}

cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **arguments,
                                        size_t shared, cudaStream_t stream)
{
    return launch_plain(host, grid, block, arguments, shared, stream, true);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *host, void **arguments)
{
    CUlaunchConfig config = {c->gridDim.x,
                             c->gridDim.y,
                             c->gridDim.z,
                             c->blockDim.x,
                             c->blockDim.y,
                             c->blockDim.z,
                             (unsigned)c->dynamicSmemBytes,
                             c->stream,
                             (CUlaunchAttribute *)c->attrs, /* the same layout and numbers */
                             c->numAttrs};
    return launch(&config, host, arguments);
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    memcpy(kernel, &host, sizeof host);
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream)
{
    return launch_plain((const void *)kernel, grid, block, arguments, shared, stream, false);
}

cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute attribute, int value)
{
    return result(cuFuncSetAttribute(function_of(host), (CUfunction_attribute)attribute, value));
}

cudaError_t cudaFuncSetCacheConfig(const void *host, enum cudaFuncCache config)
{
    return result(cuFuncSetCacheConfig(function_of(host), (CUfunc_cache)config));
}

static int function_attribute(const void *host, CUfunction_attribute attribute)
{
    int value = 0;
    result(cuFuncGetAttribute(&value, attribute, function_of(host)));
    return value;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *host)
{
    memset(a, 0, sizeof *a);
    a->sharedSizeBytes = (size_t)function_attribute(host, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    a->maxThreadsPerBlock = function_attribute(host, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    a->numRegs = function_attribute(host, CU_FUNC_ATTRIBUTE_NUM_REGS);
    a->maxDynamicSharedSizeBytes =
        function_attribute(host, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *host, int block,
                                                          size_t shared)
{
    return result(cuOccupancyMaxActiveBlocksPerMultiprocessor(n, function_of(host), block, shared));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *host,
                                                                   int block, size_t shared,
                                                                   unsigned flags)
{
    (void)flags;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(n, host, block, shared);
}

cudaError_t cudaOccupancyMaxActiveClusters(int *n, const void *host, const cudaLaunchConfig_t *c)
{
    CUlaunchConfig config = {c->gridDim.x,
                             c->gridDim.y,
                             c->gridDim.z,
                             c->blockDim.x,
                             c->blockDim.y,
                             c->blockDim.z,
                             (unsigned)c->dynamicSmemBytes,
                             c->stream,
                             (CUlaunchAttribute *)c->attrs,
                             c->numAttrs};
    return result(cuOccupancyMaxActiveClusters(n, function_of(host), &config));
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    CUdeviceptr address = 0;
    start();
    cudaError_t rc = result(cuMemAlloc(&address, bytes ? bytes : 1));
    if (rc) return rc;
    cuMemsetD8(address, RECORD_POISON, bytes ? bytes : 1);
    record_allocated(address, bytes ? bytes : 1);
    *p = (void *)(uintptr_t)address;
    return rc;
}

cudaError_t cudaFree(void *p)
{
    start();
    if (!p) return cudaSuccess;
    record_freed((CUdeviceptr)p);
    return result(cuMemFree((CUdeviceptr)p));
}

cudaError_t cudaMallocAsync(void **p, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    return cudaMalloc(p, bytes);
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
    cudaStreamSynchronize(stream);
    return cudaFree(p);
}

cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned flags)
{
    CUdeviceptr address = 0;
    start();
    cudaError_t rc = result(cuMemAllocManaged(&address, bytes, flags));
    if (!rc) record_allocated(address, bytes);
    *p = (void *)(uintptr_t)address;
    return rc;
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags)
{
    start();
    return result(cuMemHostAlloc(p, bytes, flags));
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    return cudaHostAlloc(p, bytes, 0);
}
cudaError_t cudaFreeHost(void *p)
{
    return result(cuMemFreeHost(p));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)kind;
    start();
    if (!bytes) return cudaSuccess;
    return result(cuMemcpyAsync((CUdeviceptr)to, (CUdeviceptr)from, bytes, stream));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    start();
    return bytes ? result(cuMemcpy((CUdeviceptr)to, (CUdeviceptr)from, bytes)) : cudaSuccess;
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    cudaError_t rc = cudaSuccess;
    for (size_t y = 0; !rc && y < height; y++)
        rc =
            cudaMemcpy((char *)to + y * to_pitch, (const char *)from + y * from_pitch, width, kind);
    return rc;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream)
{
    start();
    if (!bytes) return cudaSuccess;
    return result(cuMemsetD8Async((CUdeviceptr)p, (unsigned char)value, bytes, stream));
}

cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
    return cudaMemsetAsync(p, value, bytes, NULL);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    start();
    return result(cuMemGetInfo(available, total));
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p)
{
    CUmemorytype type = 0;
    memset(a, 0, sizeof *a);
    start();
    CUresult rc = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)p);
    a->type = rc ? cudaMemoryTypeUnregistered : (enum cudaMemoryType)type; /* the same numbers */
    a->devicePointer = a->hostPointer = (void *)(uintptr_t)p;
    return cudaSuccess;
}

cudaError_t cudaGetSymbolAddress(void **p, const void *host)
{
    *p = (void *)(uintptr_t)variable_of(host);
    return *p ? cudaSuccess : cudaErrorInvalidSymbol;
}

cudaError_t cudaMemcpyToSymbol(const void *host, const void *from, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind)
{
    return cudaMemcpy((char *)(uintptr_t)variable_of(host) + offset, from, bytes, kind);
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *host, size_t bytes, size_t offset,
                                 enum cudaMemcpyKind kind)
{
    return cudaMemcpy(to, (char *)(uintptr_t)variable_of(host) + offset, bytes, kind);
}

/* ---- streams, events, errors, the device ---- */

cudaError_t cudaDeviceSynchronize(void)
{
    start();
    return result(cuCtxSynchronize());
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    start();
    return result(cuStreamCreate(stream, flags));
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return result(cuStreamDestroy(stream));
}
cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    return result(cuStreamSynchronize(s));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    (void)stream;
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    return result(cuStreamWaitEvent(stream, event, flags));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    start();
    return result(cuEventCreate(event, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, 0);
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    return result(cuEventRecord(e, s));
}
cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    return result(cuEventSynchronize(e));
}
cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    return result(cuEventDestroy(e));
}
cudaError_t cudaEventQuery(cudaEvent_t e)
{
    return (cudaError_t)cuEventQuery(e);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    return result(cuEventElapsedTime(ms, from, to));
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t rc = last_error;
    last_error = cudaSuccess;
    return rc;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

const char *cudaGetErrorString(cudaError_t rc)
{
    const char *text = NULL;
    cuGetErrorString((CUresult)rc, &text);
    return text ? text : "unknown error";
}

const char *cudaGetErrorName(cudaError_t rc)
{
    const char *text = NULL;
    cuGetErrorName((CUresult)rc, &text);
    return text ? text : "unknown";
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    start();
    return device ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    start();
    return result(cuDeviceGetCount(count));
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    start();
    return result(cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device));
}

cudaError_t cudaDriverGetVersion(int *version)
{
    return result(cuDriverGetVersion(version));
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = RUNTIME_VERSION;
    return cudaSuccess;
}

/* What the programs read; everything else stays zero. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    size_t available;
    start();
    memset(p, 0, sizeof *p);
    const struct {
        int *to;
        CUdevice_attribute attribute;
    } read[] = {
        {&p->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
        {&p->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
        {&p->multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
        {&p->warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
        {&p->maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
        {&p->maxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
        {&p->regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
        {&p->l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
        {&p->maxGridSize[0], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
        {&p->maxGridSize[1], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
        {&p->maxGridSize[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z},
        {&p->cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
    };
    for (unsigned i = 0; i < sizeof read / sizeof *read; i++)
        result(cuDeviceGetAttribute(read[i].to, read[i].attribute, device));
    int bytes = 0;
    cuDeviceGetAttribute(&bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device);
    p->sharedMemPerBlock = (size_t)bytes;
    cuDeviceGetAttribute(&bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
    p->sharedMemPerBlockOptin = (size_t)bytes;
    cuMemGetInfo(&available, &p->totalGlobalMem);
    return result(cuDeviceGetName(p->name, sizeof p->name, device));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    start();
    cudaError_t rc = result(cuGetProcAddress(name, function, (int)version, flags, &status));
    if (found) *found = (enum cudaDriverEntryPointQueryResult)status;
    return rc;
}

#undef cudaGetDriverEntryPoint
cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *found);
cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *found)
{
    return cudaGetDriverEntryPointByVersion(name, function, RUNTIME_VERSION, flags, found);
}
