/*
 * The driver API as programs use it, on whatever library HEWN_LIBCUDA names: devices, contexts,
 * modules, functions, memory, streams, graphs. Most cases hold on a real driver too; checks of the
 * simulator's own promises run there only. Launches and faults: driver_launch.c.
 */
#include "lib/cubin.h"
#include "lib/driver_table.h"

#include <pthread.h>
#include <stdio.h>

/* ---- start-up ---- */

static void test_start(void)
{
    int count = 0, version = 0;

    if (!test_case("nothing works before cuInit")) {
        cu.cuInit(0);
        return;
    }
    CHECK_INT(cu.cuDeviceGetCount(&count), HEWN_CU_NOT_INITIALIZED);
    CHECK_INT(cu.cuDriverGetVersion(&version), 0);
    CHECK(version >= 12000, "version %d", version);
    CHECK_INT(cu.cuInit(1), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuInit(0), 0);
    CHECK_INT(cu.cuInit(0), 0);
}

static void test_exports(void)
{
    int version = 0;

    if (!test_case("every function of the table is exported")) return;
    cu.cuDriverGetVersion(&version);
#define API(base, symbol, since, parameters) \
    CHECK(cu.symbol || since > version, "%s is not exported", #symbol);
#define ALIAS(base, symbol, since, target, parameters, arguments) \
    CHECK(cu.symbol, "%s is not exported", #symbol);
#define PROC(base, symbol, since)
#define STUB(base, symbol, since) CHECK(cu.symbol || !simulated, "%s is not exported", #symbol);
#include "cuda/cuda_api.def"
#undef API
#undef ALIAS
#undef PROC
#undef STUB
}

static void test_errors(void)
{
    const char *name = NULL;

    if (!test_case("error names and texts")) return;
    CHECK_INT(cu.cuGetErrorName(0, &name), 0);
    CHECK_TEXT(name, "CUDA_SUCCESS");
    CHECK_INT(cu.cuGetErrorName(HEWN_CU_INVALID_PTX, &name), 0);
    CHECK_TEXT(name, "CUDA_ERROR_INVALID_PTX");
    CHECK_INT(cu.cuGetErrorString(HEWN_CU_INVALID_VALUE, &name), 0);
    CHECK_TEXT(name, "invalid argument");
    CHECK_INT(cu.cuGetErrorName(12345, &name), HEWN_CU_INVALID_VALUE);
    CHECK(!name, "an unknown code has the name %s", name);
}

static void test_device(void)
{
    hewn_cu_device device = -1;
    int value = 0, major = 0, minor = 0;
    char name[96] = "";
    size_t bytes = 0;

    if (!test_case("what the device says of itself")) return;
    CHECK_INT(cu.cuDeviceGet(&device, 0), 0);
    CHECK_INT(cu.cuDeviceGet(&device, -1), HEWN_CU_INVALID_DEVICE);
    CHECK_INT(cu.cuDeviceGet(NULL, 0), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuDeviceGetName(name, sizeof name, 0), 0);
    CHECK(name[0], "the name is empty");
    CHECK_INT(cu.cuDeviceTotalMem_v2(&bytes, 0), 0);
    CHECK(bytes > (size_t)1 << 30, "%zu bytes", bytes);
    CHECK_INT(cu.cuDeviceGetAttribute(&major, HEWN_CU_ATTR_COMPUTE_CAPABILITY_MAJOR, 0), 0);
    CHECK_INT(cu.cuDeviceGetAttribute(&minor, HEWN_CU_ATTR_COMPUTE_CAPABILITY_MINOR, 0), 0);
    CHECK(major >= 9, "compute capability %d.%d", major, minor);
    CHECK_INT(cu.cuDeviceGetAttribute(&value, HEWN_CU_ATTR_WARP_SIZE, 0), 0);
    CHECK_INT(value, 32);
    CHECK_INT(cu.cuDeviceGetAttribute(&value, 0, 0), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuDeviceGetAttribute(&value, 100000, 0), HEWN_CU_INVALID_VALUE);
    if (!simulated) return;
    CHECK_TEXT(name, "simulator");
    CHECK_INT(cu.cuDeviceGetAttribute(&value, HEWN_CU_ATTR_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0),
              0);
    CHECK_INT(value, 232448);
}

static void test_proc_address(void)
{
    void *found = NULL, *older = NULL;
    int status = -1, version = 0;

    if (!test_case("cuGetProcAddress finds variants by version")) return;
    cu.cuDriverGetVersion(&version);
    CHECK_INT(cu.cuGetProcAddress_v2("cuLaunchKernelEx", &found, 12000, 0, &status), 0);
    CHECK(found && status == HEWN_CU_PROC_FOUND, "function %p status %d", found, status);
    CHECK_INT(cu.cuGetProcAddress_v2("cuLaunchKernelEx", &found, 11000, 0, &status), 0);
    CHECK(!found && status == HEWN_CU_PROC_VERSION_NOT_SUFFICIENT, "status %d", status);
    CHECK_INT(cu.cuGetProcAddress_v2("cuNoSuchThing", &found, 12000, 0, &status), 0);
    CHECK(!found && status == HEWN_CU_PROC_NOT_FOUND, "status %d", status);
    CHECK_INT(cu.cuGetProcAddress_v2("cuInit", &found, version + 1000, 0, &status),
              HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuGetProcAddress_v2("cuMemcpyHtoD", &found, 12000, 2, NULL), 0);
    CHECK(found, "no per-thread cuMemcpyHtoD");
    CHECK_INT(cu.cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, NULL), 0);
    CHECK_INT(cu.cuGetProcAddress_v2("cuMemAlloc", &older, 2000, 0, NULL), 0);
    CHECK(found != older, "the 32-bit cuMemAlloc is the current one");
    if (simulated) /* driver 580 crashes on a null name */
        CHECK_INT(cu.cuGetProcAddress_v2(NULL, &found, 12000, 0, NULL), HEWN_CU_INVALID_VALUE);
}

/* ---- contexts ---- */

static void test_contexts(void)
{
    hewn_cu_context current = primary, other = NULL;
    hewn_cu_deviceptr address;
    hewn_cu_device device = -1;
    unsigned flags;
    int active = -1;

    if (test_case("no context is current until one is made so")) {
        CHECK_INT(cu.cuCtxSetCurrent(NULL), 0);
        CHECK_INT(cu.cuCtxGetCurrent(&current), 0);
        CHECK(!current, "there is a current context");
        CHECK_INT(cu.cuMemAlloc_v2(&address, 64), HEWN_CU_INVALID_CONTEXT);
        CHECK_INT(cu.cuCtxSynchronize(), HEWN_CU_INVALID_CONTEXT);
        CHECK_INT(cu.cuCtxSetCurrent(primary), 0);
        CHECK_INT(cu.cuCtxGetDevice(&device), 0);
        CHECK_INT(device, 0);
    }
    if (test_case("the primary context counts its users")) {
        CHECK_INT(cu.cuDevicePrimaryCtxRetain(&other, 0), 0);
        CHECK(other == primary, "two primary contexts");
        CHECK_INT(cu.cuDevicePrimaryCtxRelease_v2(0), 0);
        CHECK_INT(cu.cuDevicePrimaryCtxGetState(0, &flags, &active), 0);
        CHECK_INT(active, 1);
        CHECK_INT(cu.cuDevicePrimaryCtxRetain(&other, 7777), HEWN_CU_INVALID_DEVICE);
    }
    if (test_case("created contexts stack")) {
        CHECK_INT(cu.cuCtxCreate_v2(&other, 0, 0), 0);
        CHECK_INT(cu.cuCtxGetCurrent(&current), 0);
        CHECK(current == other, "a created context is not current");
        CHECK_INT(cu.cuCtxPushCurrent_v2(primary), 0);
        CHECK_INT(cu.cuCtxPopCurrent_v2(&current), 0);
        CHECK(current == primary, "pop returned another context");
        if (simulated) { /* a use more, as before CUDA 4 */
            hewn_cu_context again = NULL;
            CHECK_INT(cu.cuCtxAttach(&again, 1), HEWN_CU_INVALID_VALUE);
            CHECK_INT(cu.cuCtxAttach(&again, 0), 0);
            CHECK(again == other, "cuCtxAttach does not give the current context");
            CHECK_INT(cu.cuCtxDetach(other), 0);
        }
        CHECK_INT(cu.cuCtxDestroy_v2(other), 0);
        CHECK_INT(cu.cuCtxGetCurrent(&current), 0);
        CHECK(current == primary, "the context below is not current again");
        if (simulated) {
            CHECK_INT(cu.cuCtxSetCurrent(other), HEWN_CU_CONTEXT_IS_DESTROYED);
            CHECK_INT(cu.cuCtxDestroy_v2(primary), HEWN_CU_INVALID_CONTEXT);
        }
    }
    if (test_case("limits")) {
        size_t value = 0;
        CHECK_INT(cu.cuCtxGetLimit(&value, HEWN_CU_LIMIT_MALLOC_HEAP_SIZE), 0);
        CHECK_INT(value, 8 << 20);
        if (simulated) CHECK_INT(cu.cuCtxGetLimit(&value, 1000), HEWN_CU_UNSUPPORTED_LIMIT);
    }
}

/* ---- modules ---- */

static void test_module_errors(void)
{
    static const char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0}; /* a header, and nothing else */
    hewn_cu_module module = NULL;
    hewn_cu_function f = NULL;
    char log[256] = "";
    int options[] = {HEWN_CU_JIT_ERROR_LOG_BUFFER, HEWN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};

    if (test_case("images that are no module")) {
        CHECK_INT(cu.cuModuleLoadData(&module, "garbage"), HEWN_CU_INVALID_IMAGE);
        CHECK_INT(cu.cuModuleLoadData(&module, "# 1 \"a.ptx\"\n.version 8.0\n.target sm_90\n"),
                  HEWN_CU_INVALID_IMAGE);
        CHECK_INT(cu.cuModuleLoadData(&module, ".version 99.0\n.target sm_90\n"),
                  HEWN_CU_UNSUPPORTED_PTX_VERSION);
        CHECK_INT(cu.cuModuleLoadData(NULL, text), HEWN_CU_INVALID_VALUE);
        CHECK_INT(cu.cuModuleLoadData(&module, NULL), HEWN_CU_INVALID_VALUE);
        CHECK_INT(cu.cuModuleLoad(&module, "/no/such/file.ptx"), HEWN_CU_FILE_NOT_FOUND);
        if (simulated) {
            CHECK_INT(cu.cuModuleLoadData(&module, ""), HEWN_CU_INVALID_IMAGE);
            CHECK_INT(cu.cuModuleLoadData(&module, elf), HEWN_CU_NO_BINARY_FOR_GPU);
        }
    }
    if (test_case("PTX that does not compile fills the log")) {
        CHECK_INT(cu.cuModuleLoadDataEx(&module,
                                        ".version 8.0\n.target sm_90\n.address_size 64\n"
                                        ".visible .entry k() { mov.u32 %nowhere, 1; ret; }\n",
                                        2, options, values),
                  HEWN_CU_INVALID_PTX);
        CHECK_TEXT(log, "line 4");
        CHECK_TEXT(log, "%nowhere");
        if (simulated) CHECK_INT((uintptr_t)values[1], strlen(log));
    }
    if (test_case("PTX for a target that this device cannot run")) {
        values[1] = (void *)(uintptr_t)sizeof log;
        CHECK_INT(cu.cuModuleLoadDataEx(&module,
                                        ".version 8.8\n.target sm_120a\n.address_size 64\n"
                                        ".visible .entry k() { ret; }\n",
                                        2, options, values),
                  HEWN_CU_INVALID_PTX);
        CHECK(log[0], "the log is empty");
    }
    if (simulated && test_case("a cubin that holds its PTX")) {
        static uint8_t cubin[512];
        cubin_make(cubin, ".version 8.0\n.target sm_90\n.address_size 64\n"
                          ".visible .entry k() { ret; }\n");
        module = load((const char *)cubin);
        CHECK_INT(cu.cuLaunchKernel(function(module, "k"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
                  0);
        CHECK_INT(cu.cuModuleUnload(module), 0);
    }
    if (test_case("names that a module lacks")) {
        hewn_cu_deviceptr address;
        module = load(text);
        CHECK_INT(cu.cuModuleGetFunction(&f, module, "nobody"), HEWN_CU_NOT_FOUND);
        CHECK_INT(cu.cuModuleGetGlobal_v2(&address, NULL, module, "nobody"), HEWN_CU_NOT_FOUND);
        CHECK_INT(cu.cuModuleGetFunction(&f, module, NULL), HEWN_CU_INVALID_VALUE);
        CHECK_INT(cu.cuModuleUnload(module), 0);
        if (simulated) CHECK_INT(cu.cuModuleUnload(module), HEWN_CU_INVALID_HANDLE);
    }
}

/* Which .target runs on which device: exact a, family f, plain not newer. */
static void test_targets(void)
{
    static const struct {
        const char *target;
        int runs_on; /* bit 0: 9.0, bit 1: 10.0, bit 2: 10.3 */
    } targets[] = {{"sm_90", 7},   {"sm_90a", 1},  {"sm_80", 7},  {"sm_100", 6},
                   {"sm_100a", 2}, {"sm_100f", 6}, {"sm_103", 4}, {"sm_103a", 4},
                   {"sm_103f", 4}, {"sm_110f", 0}, {"sm_120a", 0}};
    int major = 0, minor = 0, bit;

    if (!test_case("targets against the device")) return;
    if (!simulated) {
        test_skip("the simulator's three devices are meant");
        return;
    }
    cu.cuDeviceComputeCapability(&major, &minor, 0);
    bit = major == 9 ? 1 : minor == 0 ? 2 : 4;
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        hewn_cu_module module = NULL;
        char ptx[160];
        int want = targets[i].runs_on & bit ? 0 : HEWN_CU_INVALID_PTX, got;

        snprintf(ptx, sizeof ptx, ".version 9.0 .target %s .address_size 64\n.entry k() { ret; }",
                 targets[i].target);
        got = cu.cuModuleLoadData(&module, ptx);
        CHECK(got == want, "%s on %d.%d: want %d got %d", targets[i].target, major, minor, want,
              got);
        if (!got) cu.cuModuleUnload(module);
    }
}

/* Which of a fat binary's compressed texts a device takes; tests/sim/fatbin/README.md says how the
 * file was made. */
static void test_fat_targets(void)
{
    const char *slash = strrchr(__FILE__, '/'), *want;
    hewn_cu_module module = NULL;
    hewn_cu_function f;
    int major = 0, minor = 0;
    char path[512];

    if (!test_case("a fat binary of several targets")) return;
    cu.cuDeviceComputeCapability(&major, &minor, 0);
    want = major == 9 ? "on_90a" : major == 10 && minor == 0 ? "on_100f" : "on_103a";
    if (major != 9 && (major != 10 || (minor != 0 && minor != 3))) {
        test_skip("the file has no text for compute capability %d.%d alone", major, minor);
        return;
    }
    snprintf(path, sizeof path, "%.*s/targets.fatbin", (int)(slash - __FILE__), __FILE__);
    CHECK_INT(cu.cuModuleLoad(&module, path), 0);
    if (!module) return;
    CHECK_INT(cu.cuModuleGetFunction(&f, module, want), 0);
    CHECK_INT(cu.cuModuleGetFunction(&f, module, "on_90"), HEWN_CU_NOT_FOUND);
    CHECK_INT(cu.cuModuleUnload(module), 0);
}

static void test_globals(void)
{
    hewn_cu_module module;
    hewn_cu_deviceptr address = 0;
    size_t bytes = 0;
    unsigned value = 0, table[4] = {0};

    if (!test_case("module variables")) return;
    module = load(text);
    CHECK_INT(cu.cuModuleGetGlobal_v2(&address, &bytes, module, "counter"), 0);
    CHECK_INT(bytes, 4);
    CHECK_INT(cu.cuMemcpyDtoH_v2(&value, address, 4), 0);
    CHECK_INT(value, 41);
    CHECK_INT(cu.cuModuleGetGlobal_v2(&address, &bytes, module, "table"), 0);
    CHECK_INT(bytes, 16);
    CHECK_INT(cu.cuMemcpyDtoH_v2(table, address, 16), 0);
    CHECK(table[0] == 1 && table[3] == 4, "table is %u … %u", table[0], table[3]);
    value = 9;
    CHECK_INT(cu.cuMemcpyHtoD_v2(address, &value, 4), 0);
    CHECK_INT(cu.cuModuleUnload(module), 0);
}

static void test_libraries(void)
{
    hewn_cu_library lib = NULL;
    hewn_cu_kernel kernel = NULL;
    hewn_cu_function f = NULL;
    hewn_cu_deviceptr out;

    if (!test_case("a library's kernel launches as a function")) return;
    CHECK_INT(cu.cuLibraryLoadData(&lib, text, NULL, NULL, 0, NULL, NULL, 0), 0);
    CHECK_INT(cu.cuLibraryGetKernel(&kernel, lib, "nobody"), HEWN_CU_NOT_FOUND);
    CHECK_INT(cu.cuLibraryGetKernel(&kernel, lib, "fill"), 0);
    CHECK_INT(cu.cuKernelGetFunction(&f, kernel), 0);
    out = buffer(256);
    CHECK_INT(fill_on(f, out, 5, 1, 64, NULL), 0);
    CHECK_INT(count_wrong(out, 5, 64), 0);
    CHECK_INT(fill_on((hewn_cu_function)(void *)kernel, out, 6, 1, 64, NULL), 0);
    CHECK_INT(count_wrong(out, 6, 64), 0);
    CHECK_INT(cu.cuMemFree_v2(out), 0);
    CHECK_INT(cu.cuLibraryUnload(lib), 0);
}

/* ---- functions ---- */

static int attribute(hewn_cu_function f, int which)
{
    int value = -1;
    CHECK_INT(cu.cuFuncGetAttribute(&value, which, f), 0);
    return value;
}

static void test_functions(void)
{
    hewn_cu_module module;
    hewn_cu_function f;
    size_t offset = 0, size = 0;
    int blocks = 0;

    if (!test_case("function attributes, parameters and occupancy")) return;
    module = load(text);
    f = function(module, "bounded");
    CHECK_INT(attribute(f, HEWN_CU_FUNC_SHARED_SIZE_BYTES), 256);
    CHECK_INT(attribute(f, HEWN_CU_FUNC_MAX_THREADS_PER_BLOCK), 64);
    CHECK_INT(attribute(f, HEWN_CU_FUNC_PTX_VERSION), 90);
    CHECK_INT(cu.cuFuncGetParamInfo(f, 1, &offset, &size), 0);
    CHECK(offset == 8 && size == 8, "parameter 1 at %zu, %zu bytes", offset, size);
    CHECK_INT(cu.cuFuncGetParamInfo(f, 2, &offset, &size), 0);
    CHECK(offset == 16 && size == 12, "parameter 2 at %zu, %zu bytes", offset, size);
    CHECK_INT(cu.cuFuncGetParamInfo(f, 3, &offset, &size), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuFuncSetAttribute(f, HEWN_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000), 0);
    CHECK_INT(attribute(f, HEWN_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES), 100000);
    CHECK_INT(cu.cuFuncSetAttribute(f, HEWN_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448),
              HEWN_CU_INVALID_VALUE); /* with 256 static bytes that is too much */
    CHECK_INT(cu.cuFuncSetAttribute(f, HEWN_CU_FUNC_NUM_REGS, 10), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 64, 100000), 0);
    CHECK_INT(blocks, 2);
    CHECK_INT(cu.cuModuleUnload(module), 0);
}

/* ---- memory ---- */

static void test_allocations(void)
{
    hewn_cu_deviceptr address = 0, base = 0;
    size_t bytes = 0, before = 0, after = 0;

    if (!test_case("allocations")) return;
    CHECK_INT(cu.cuMemAlloc_v2(&address, 0), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemAlloc_v2(NULL, 64), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemAlloc_v2(&address, (size_t)1 << 50), HEWN_CU_OUT_OF_MEMORY);
    CHECK_INT(cu.cuMemFree_v2(0), 0);
    CHECK_INT(cu.cuMemGetInfo_v2(&before, &bytes), 0);
    address = buffer(1000);
    CHECK_INT(address % 256, 0);
    CHECK_INT(cu.cuMemGetAddressRange_v2(&base, &bytes, address + 999), 0);
    CHECK(base == address && bytes >= 1000, "range %llx, %zu bytes", base, bytes);
    if (simulated) CHECK_INT(bytes, 1000);
    CHECK_INT(cu.cuMemFree_v2(address + 4), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemFree_v2(address), 0);
    CHECK_INT(cu.cuMemFree_v2(address), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemGetInfo_v2(&after, &bytes), 0);
    if (simulated) CHECK_INT(after, before);
}

static void test_copies(void)
{
    hewn_cu_deviceptr a, b;
    unsigned char host[64], back[64] = {0};
    hewn_cu_memcpy2d pitched = {.src_type = HEWN_CU_MEMORY_HOST,
                                .src_host = host,
                                .src_pitch = 8,
                                .dst_type = HEWN_CU_MEMORY_DEVICE,
                                .dst_pitch = 16,
                                .dst_x = 4,
                                .width = 8,
                                .height = 3};

    if (!test_case("copies, fills and their bounds")) return;
    for (unsigned i = 0; i < sizeof host; i++) host[i] = (unsigned char)(i + 1);
    a = buffer(64);
    b = buffer(64);
    CHECK_INT(cu.cuMemcpyHtoD_v2(a, host, 64), 0);
    CHECK_INT(cu.cuMemcpyDtoD_v2(b, a, 64), 0);
    CHECK_INT(cu.cuMemcpyDtoH_v2(back, b, 64), 0);
    CHECK(!memcmp(host, back, 64), "the bytes changed on the way");
    CHECK_INT(cu.cuMemcpyHtoD_v2(a, host, 0), 0);
    CHECK_INT(cu.cuMemcpyHtoD_v2(0x10, host, 8), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemsetD32_v2(a, 0x01020304, 16), 0);
    CHECK_INT(count_wrong(a, 0x01020304, 16), 0);
    CHECK_INT(cu.cuMemsetD32_v2(a + 2, 0, 4), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemsetD16_v2(a, 0xABCD, 32), 0);
    CHECK_INT(count_wrong(a, 0xABCDABCD, 16), 0);
    CHECK_INT(cu.cuMemsetD8_v2(a, 0, 64), 0);
    pitched.dst_device = a;
    CHECK_INT(cu.cuMemcpy2D_v2(&pitched), 0);
    CHECK_INT(cu.cuMemcpyDtoH_v2(back, a, 64), 0);
    CHECK(back[3] == 0 && back[4] == 1 && back[11] == 8 && back[12] == 0 && back[20] == 9 &&
              back[43] == 24 && back[44] == 0,
          "rows of a pitched copy are misplaced");
    if (simulated) {
        CHECK_INT(cu.cuMemcpyHtoD_v2(a, host, 65), HEWN_CU_INVALID_VALUE);
        CHECK_INT(cu.cuMemcpyDtoH_v2(back, b + 60, 8), HEWN_CU_INVALID_VALUE);
        CHECK_INT(cu.cuMemsetD8_v2(b + 1, 0, 64), HEWN_CU_INVALID_VALUE);
    }
    CHECK_INT(cu.cuMemFree_v2(a), 0);
    CHECK_INT(cu.cuMemFree_v2(b), 0);
}

static void test_host_memory(void)
{
    void *host = NULL, *page = NULL;
    hewn_cu_deviceptr seen = 0, managed = 0;
    hewn_cu_module module;
    unsigned type = 0;

    if (!test_case("host memory that kernels write")) return;
    module = load(text);
    CHECK_INT(cu.cuMemHostAlloc(&host, 256, 2), 0);
    CHECK_INT(cu.cuMemHostGetDevicePointer_v2(&seen, host, 0), 0);
    CHECK_INT(fill_on(function(module, "fill"), seen, 8, 1, 64, NULL), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(((unsigned *)host)[63], 8);
    CHECK_INT(cu.cuPointerGetAttribute(&type, HEWN_CU_POINTER_MEMORY_TYPE, seen), 0);
    CHECK_INT(type, HEWN_CU_MEMORY_HOST);
    CHECK_INT(cu.cuMemFreeHost(host), 0);
    CHECK_INT(cu.cuMemAllocManaged(&managed, 256, 1), 0);
    CHECK_INT(fill_on(function(module, "fill"), managed, 9, 1, 64, NULL), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(((unsigned *)(uintptr_t)managed)[63], 9);
    CHECK_INT(cu.cuPointerGetAttribute(&type, HEWN_CU_POINTER_IS_MANAGED, managed), 0);
    CHECK_INT(type & 0xFF, 1);
    CHECK_INT(cu.cuMemFree_v2(managed), 0);
    if (!posix_memalign(&page, 4096, 8192)) {
        CHECK_INT(cu.cuMemHostRegister_v2(page, 8192, 0), 0);
        CHECK_INT(cu.cuMemHostRegister_v2(page, 8192, 0), HEWN_CU_HOST_MEMORY_ALREADY_REGISTERED);
        CHECK_INT(cu.cuMemHostUnregister(page), 0);
        CHECK_INT(cu.cuMemHostUnregister(page), HEWN_CU_HOST_MEMORY_NOT_REGISTERED);
        free(page);
    }
    CHECK_INT(cu.cuPointerGetAttribute(&type, HEWN_CU_POINTER_MEMORY_TYPE, 0x1000),
              HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuModuleUnload(module), 0);
}

/* ---- streams, events, graphs ---- */

static void test_streams(void)
{
    hewn_cu_stream stream = NULL;
    hewn_cu_event start = NULL, end = NULL, untimed = NULL;
    int priority = 1;
    float ms = -1;

    if (!test_case("streams and events")) return;
    CHECK_INT(cu.cuStreamCreateWithPriority(&stream, HEWN_CU_STREAM_NON_BLOCKING, -1), 0);
    CHECK_INT(cu.cuStreamCreate(&stream, 99), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuStreamGetPriority(stream, &priority), 0);
    CHECK_INT(priority, -1);
    CHECK_INT(cu.cuEventCreate(&start, 0), 0);
    CHECK_INT(cu.cuEventCreate(&end, 0), 0);
    CHECK_INT(cu.cuEventCreate(&untimed, HEWN_CU_EVENT_DISABLE_TIMING), 0);
    CHECK_INT(cu.cuEventQuery(start), 0);
    CHECK_INT(cu.cuEventElapsedTime(&ms, start, end), HEWN_CU_INVALID_HANDLE);
    CHECK_INT(cu.cuEventRecord(start, stream), 0);
    CHECK_INT(cu.cuStreamWaitEvent(NULL, start, 0), 0);
    CHECK_INT(cu.cuEventRecord(end, stream), 0);
    CHECK_INT(cu.cuEventRecord(untimed, stream), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    CHECK_INT(cu.cuEventSynchronize(end), 0);
    CHECK_INT(cu.cuEventElapsedTime(&ms, start, end), 0);
    CHECK(ms >= 0 && ms < 1e4F, "%g ms between two events", (double)ms);
    CHECK_INT(cu.cuEventElapsedTime(&ms, start, untimed), HEWN_CU_INVALID_HANDLE);
    CHECK_INT(cu.cuEventDestroy_v2(start), 0);
    CHECK_INT(cu.cuEventDestroy_v2(end), 0);
    CHECK_INT(cu.cuEventDestroy_v2(untimed), 0);
    CHECK_INT(cu.cuStreamDestroy_v2(stream), 0);
    if (simulated) CHECK_INT(cu.cuStreamQuery(stream), HEWN_CU_INVALID_HANDLE);
}

static void test_graphs(void)
{
    hewn_cu_module module;
    hewn_cu_stream stream = NULL;
    hewn_cu_graph graph = NULL;
    hewn_cu_graph_exec exec = NULL;
    hewn_cu_deviceptr a, b;
    size_t nodes = 0;
    int status = -1;

    if (!test_case("captured work runs when its graph is launched")) return;
    module = load(text);
    a = buffer(256);
    b = buffer(256);
    CHECK_INT(cu.cuMemsetD32_v2(b, 1, 64), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(cu.cuStreamCreate(&stream, HEWN_CU_STREAM_NON_BLOCKING), 0);
    CHECK_INT(cu.cuStreamBeginCapture_v2(stream, HEWN_CU_CAPTURE_THREAD_LOCAL), 0);
    CHECK_INT(cu.cuStreamIsCapturing(stream, &status), 0);
    CHECK_INT(status, HEWN_CU_CAPTURE_ACTIVE);
    CHECK_INT(fill_on(function(module, "fill"), a, 77, 2, 32, stream), 0);
    CHECK_INT(cu.cuMemcpyDtoDAsync_v2(b, a, 128, stream), 0);
    CHECK_INT(cu.cuMemsetD32Async(a, 78, 4, stream), 0);
    CHECK_INT(cu.cuStreamEndCapture(stream, &graph), 0);
    CHECK_INT(cu.cuGraphGetNodes(graph, NULL, &nodes), 0);
    CHECK_INT(nodes, 3);
    CHECK_INT(count_wrong(b, 1, 64), 0);
    CHECK_INT(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    CHECK_INT(cu.cuGraphDestroy(graph), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(cu.cuMemsetD32_v2(b, 1, 64), 0);
        CHECK_INT(cu.cuCtxSynchronize(), 0); /* the stream does not wait for the default stream */
        CHECK_INT(cu.cuGraphLaunch(exec, stream), 0);
        CHECK_INT(cu.cuStreamSynchronize(stream), 0);
        CHECK_INT(count_wrong(b, 77, 32) + count_wrong(b + 128, 1, 32), 0);
        CHECK_INT(count_wrong(a, 78, 4) + count_wrong(a + 16, 77, 60), 0);
    }
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    CHECK_INT(cu.cuStreamDestroy_v2(stream), 0);
    CHECK_INT(cu.cuMemFree_v2(a), 0);
    CHECK_INT(cu.cuMemFree_v2(b), 0);
    CHECK_INT(cu.cuModuleUnload(module), 0);
}

static void test_capture_rules(void)
{
    hewn_cu_stream stream = NULL, side = NULL;
    hewn_cu_graph graph = NULL;
    hewn_cu_event event = NULL;
    hewn_cu_deviceptr address = 0;
    int status = -1;

    if (!test_case("calls that a capture forbids")) return;
    CHECK_INT(cu.cuStreamBeginCapture_v2(NULL, 0), HEWN_CU_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_INT(cu.cuStreamCreate(&stream, HEWN_CU_STREAM_NON_BLOCKING), 0);
    CHECK_INT(cu.cuStreamCreate(&side, HEWN_CU_STREAM_NON_BLOCKING), 0);
    CHECK_INT(cu.cuEventCreate(&event, HEWN_CU_EVENT_DISABLE_TIMING), 0);
    CHECK_INT(cu.cuStreamBeginCapture_v2(stream, HEWN_CU_CAPTURE_GLOBAL), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), HEWN_CU_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_INT(cu.cuStreamIsCapturing(stream, &status), 0);
    CHECK_INT(status, HEWN_CU_CAPTURE_INVALIDATED);
    CHECK_INT(cu.cuStreamEndCapture(stream, &graph), HEWN_CU_STREAM_CAPTURE_INVALIDATED);
    CHECK(!graph, "an invalid capture gave a graph");
    CHECK_INT(cu.cuStreamBeginCapture_v2(stream, HEWN_CU_CAPTURE_GLOBAL), 0);
    CHECK_INT(cu.cuMemAlloc_v2(&address, 64), HEWN_CU_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_INT(cu.cuStreamEndCapture(stream, &graph), HEWN_CU_STREAM_CAPTURE_INVALIDATED);
    /* fork to another stream by an event, and join */
    CHECK_INT(cu.cuStreamBeginCapture_v2(stream, HEWN_CU_CAPTURE_RELAXED), 0);
    CHECK_INT(cu.cuEventRecord(event, stream), 0);
    CHECK_INT(cu.cuStreamWaitEvent(side, event, 0), 0);
    CHECK_INT(cu.cuStreamIsCapturing(side, &status), 0);
    CHECK_INT(status, HEWN_CU_CAPTURE_ACTIVE);
    CHECK_INT(cu.cuEventRecord(event, side), 0);
    CHECK_INT(cu.cuStreamWaitEvent(stream, event, 0), 0);
    CHECK_INT(cu.cuStreamEndCapture(stream, &graph), 0);
    CHECK_INT(cu.cuStreamIsCapturing(side, &status), 0);
    CHECK_INT(status, HEWN_CU_CAPTURE_NONE);
    CHECK_INT(cu.cuGraphDestroy(graph), 0);
    CHECK_INT(cu.cuEventDestroy_v2(event), 0);
    CHECK_INT(cu.cuStreamDestroy_v2(side), 0);
    CHECK_INT(cu.cuStreamDestroy_v2(stream), 0);
}

static void increment(void *user)
{
    ++*(int *)user;
}

static void test_host_function(void)
{
    hewn_cu_stream stream = NULL;
    int calls = 0;

    if (!test_case("host functions run in stream order")) return;
    CHECK_INT(cu.cuStreamCreate(&stream, 0), 0);
    CHECK_INT(cu.cuLaunchHostFunc(stream, increment, &calls), 0);
    CHECK_INT(cu.cuLaunchHostFunc(stream, increment, &calls), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    CHECK_INT(calls, 2);
    CHECK_INT(cu.cuStreamDestroy_v2(stream), 0);
}

/* ---- tensor maps ---- */

static void test_tensor_maps(void)
{
    hewn_cu_tensor_map map;
    uint64_t dim[2] = {64, 128}, stride[1] = {128};
    uint32_t box[2] = {64, 32}, step[2] = {1, 1};
    hewn_cu_deviceptr address;
    void *at;
    enum { F16 = 6, SWIZZLE_128B = 3 };

    if (!test_case("tensor maps are checked when they are encoded")) return;
    address = buffer(64 * 128 * 2);
    at = (void *)(uintptr_t)address;
    CHECK_INT(cu.cuTensorMapEncodeTiled(&map, F16, 2, at, dim, stride, box, step, 0, SWIZZLE_128B,
                                        0, 0),
              0);
    CHECK_INT(cu.cuTensorMapReplaceAddress(&map, (char *)at + 256), 0);
    CHECK_INT(cu.cuTensorMapEncodeTiled(&map, F16, 2, (char *)at + 8, dim, stride, box, step, 0, 0,
                                        0, 0),
              HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuTensorMapEncodeTiled(&map, F16, 0, at, dim, stride, box, step, 0, 0, 0, 0),
              HEWN_CU_INVALID_VALUE);
    box[1] = 257;
    CHECK_INT(cu.cuTensorMapEncodeTiled(&map, F16, 2, at, dim, stride, box, step, 0, 0, 0, 0),
              HEWN_CU_INVALID_VALUE);
    box[1] = 32;
    stride[0] = 136;
    CHECK_INT(cu.cuTensorMapEncodeTiled(&map, F16, 2, at, dim, stride, box, step, 0, 0, 0, 0),
              HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemFree_v2(address), 0);
}

static void test_wide_maps(void)
{
    hewn_cu_tensor_map map;
    uint64_t dim[3] = {64, 40, 4}, stride[2] = {128, 5120};
    uint32_t step[3] = {1, 1, 1};
    enum { F16 = 6, MAJOR = 75, W128 = 1 };
    /* channels, interleave, swizzle, mode; whether compute capability 10 takes it, and an H200 */
    static const struct {
        uint32_t channels;
        int interleave, swizzle, mode;
        bool good, hopper;
    } requests[] = {{64, 0, 3, 0, true, true},   {32, 0, 2, W128, true, true},
                    {64, 0, 4, 0, true, false},  {64, 0, 0, 0, false, true},
                    {16, 0, 1, 0, false, true},  {64, 0, 5, 0, false, false},
                    {64, 0, 6, 0, false, false}, {64, 1, 3, 0, false, true},
                    {64, 0, 3, 2, false, false}, {64, 0, 2, 0, false, false}};
    int major = 0;

    if (!test_case("im2col wide maps")) return;
    CHECK_INT(cu.cuDeviceGetAttribute(&major, MAJOR, 0), 0);
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        bool good = major >= 10 ? requests[i].good : requests[i].hopper;
        bool any_width = major >= 10 && requests[i].mode == W128;
        int rc = cu.cuTensorMapEncodeIm2colWide(&map, F16, 3, (void *)(uintptr_t)4096, dim, stride,
                                                -1, -1, requests[i].channels, 2000, step,
                                                requests[i].interleave, requests[i].mode,
                                                requests[i].swizzle, 0, 0);
        /* W takes at most 1024 pixels a column; W128 does not look, but on Hopper. */
        CHECK(rc == (good && any_width ? 0 : HEWN_CU_INVALID_VALUE), "request %zu, 2000 pixels: %d",
              i, rc);
        rc = cu.cuTensorMapEncodeIm2colWide(&map, F16, 3, (void *)(uintptr_t)4096, dim, stride, -1,
                                            -1, requests[i].channels, 96, step,
                                            requests[i].interleave, requests[i].mode,
                                            requests[i].swizzle, 0, 0);
        CHECK(rc == (good ? 0 : HEWN_CU_INVALID_VALUE), "request %zu: %d", i, rc);
    }
}

/* ---- threads ---- */

static void *work_in_thread(void *user)
{
    hewn_cu_module module = NULL;
    hewn_cu_function f = NULL;
    hewn_cu_deviceptr out = 0;
    unsigned host[64] = {0}, value = (unsigned)(uintptr_t)user;
    uintptr_t bad = 0;

    bad |= (uintptr_t)cu.cuCtxSetCurrent(primary);
    bad |= (uintptr_t)cu.cuModuleLoadData(&module, text);
    bad |= (uintptr_t)cu.cuModuleGetFunction(&f, module, "fill");
    for (int i = 0; i < 8 && !bad; i++) {
        bad |= (uintptr_t)cu.cuMemAlloc_v2(&out, sizeof host);
        bad |= (uintptr_t)fill_on(f, out, value, 2, 32, HEWN_CU_STREAM_PER_THREAD);
        bad |= (uintptr_t)cu.cuStreamSynchronize(HEWN_CU_STREAM_PER_THREAD);
        bad |= (uintptr_t)cu.cuMemcpyDtoH_v2(host, out, sizeof host);
        bad |= host[0] != value || host[63] != value;
        bad |= (uintptr_t)cu.cuMemFree_v2(out);
    }
    bad |= (uintptr_t)cu.cuModuleUnload(module);
    return (void *)bad;
}

static void test_threads(void)
{
    pthread_t threads[4];
    void *bad = NULL;

    if (!test_case("threads share a context")) return;
    for (uintptr_t i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, work_in_thread, (void *)(i + 100))) abort();
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &bad);
        CHECK(!bad, "thread %d: results or'ed to %lu", i, (unsigned long)(uintptr_t)bad);
    }
}

/* The simulator gives everything back when it goes. The allocations left alive here are for a leak
 * checker to miss; addresses repeat only where the reserved range was given back too. */
static void test_unload(const char *path)
{
    hewn_cu_deviceptr kept[2] = {0, 0}, freed = 0;
    if (!simulated || !test_case("unloading with allocations alive")) return;
    for (size_t i = 0; i < 2; i++) {
        dlclose(library);
        if (dlopen(path, RTLD_NOW | RTLD_NOLOAD)) {
            test_skip("the library stays loaded");
            return;
        }
        CHECK(load_library(path), "%s", dlerror());
        CHECK_INT(cu.cuInit(0), 0);
        CHECK_INT(cu.cuDevicePrimaryCtxRetain(&primary, 0), 0);
        CHECK_INT(cu.cuCtxSetCurrent(primary), 0);
        CHECK_INT(cu.cuMemAlloc_v2(&kept[i], 1000), 0);
        CHECK_INT(cu.cuMemAlloc_v2(&freed, 1000), 0);
        CHECK_INT(cu.cuMemFree_v2(freed), 0);
    }
    CHECK(kept[0] == kept[1], "allocated at 0x%llx, then at 0x%llx", kept[0], kept[1]);
    dlclose(library);
}

int main(int argc, char **argv)
{
    const char *path = getenv("HEWN_LIBCUDA");
    char name[96] = "";

    test_begin("driver_api", argc, argv);
    if (!load_library(path && *path ? path : "libcuda.so.1")) {
        if (test_case("a driver library")) test_skip("%s", dlerror());
        return test_end();
    }
    test_start();
    if (cu.cuDevicePrimaryCtxRetain(&primary, 0) || cu.cuCtxSetCurrent(primary)) {
        if (test_case("a device")) test_skip("no context can be had");
        return test_end();
    }
    cu.cuDeviceGetName(name, sizeof name, 0);
    test_where("%s", name);
    test_exports();
    test_errors();
    test_device();
    test_proc_address();
    test_contexts();
    test_module_errors();
    test_targets();
    test_fat_targets();
    test_globals();
    test_libraries();
    test_functions();
    test_allocations();
    test_copies();
    test_host_memory();
    test_streams();
    test_graphs();
    test_capture_rules();
    test_host_function();
    test_tensor_maps();
    test_wide_maps();
    test_threads();
    cu.cuDevicePrimaryCtxRelease_v2(0);
    test_unload(path);
    return test_end();
}
