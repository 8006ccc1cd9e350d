/*
 * For tests of the driver API itself: a library opened at run time, every function of the interface
 * typed by the table that the simulator is made from, and a module to play with. A program includes
 * this in one file.
 */
#ifndef TESTS_DRIVER_TABLE_H
#define TESTS_DRIVER_TABLE_H

#include "cuda/graph_abi.h"
#include "driver_abi.h"
#include "harness.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* NULL where the library lacks the function. */
static struct {
#define API(base, symbol, since, parameters) hewn_cu_result(*symbol) parameters;
#define ALIAS(base, symbol, since, target, parameters, arguments) \
    hewn_cu_result(*symbol) parameters;
#define PROC(base, symbol, since)
#define STUB(base, symbol, since) hewn_cu_result (*symbol)(void);
#include "cuda/cuda_api.def"
#undef API
#undef ALIAS
#undef PROC
#undef STUB
} cu;

static void *library;
static bool simulated; /* the library is the simulator */
static hewn_cu_context primary;

/* False when it cannot be opened; dlerror() says why. */
static bool load_library(const char *path)
{
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
#define TAKE(symbol)                              \
    do {                                          \
        void *found = dlsym(library, #symbol);    \
        memcpy(&cu.symbol, &found, sizeof found); \
    } while (0);
#define API(base, symbol, since, parameters)                      TAKE(symbol)
#define ALIAS(base, symbol, since, target, parameters, arguments) TAKE(symbol)
#define PROC(base, symbol, since)
#define STUB(base, symbol, since) TAKE(symbol)
#include "cuda/cuda_api.def"
#undef API
#undef ALIAS
#undef PROC
#undef STUB
    simulated = dlsym(library, "hewn_sim_version") != NULL;
    return true;
}

/* Begins the test `name` in a primary context of the library that HEWN_LIBCUDA names. False where
 * there is no library or no device: a case was skipped, and the program ends. */
static inline bool driver_begin(const char *name, int argc, char **argv)
{
    const char *path = getenv("HEWN_LIBCUDA");
    char device[96] = "";

    test_begin(name, argc, argv);
    if (!load_library(path && *path ? path : "libcuda.so.1")) {
        if (test_case("a driver library")) test_skip("%s", dlerror());
        return false;
    }
    if (cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&primary, 0) || cu.cuCtxSetCurrent(primary)) {
        if (test_case("a device")) test_skip("no context can be had");
        return false;
    }
    cu.cuDeviceGetName(device, sizeof device, 0);
    test_where("%s", device);
    return true;
}

/* Two entries that any device of compute capability 9.0 or later runs, and module variables. */
static const char text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter = 41;\n"
    ".visible .const .align 8 .b32 table[4] = {1, 2, 3, 4};\n"
    /* out[i] = value for every thread i of the grid */
    ".visible .entry fill(.param .u64 out, .param .u32 value) {\n"
    "  .reg .b32 %r<5>; .reg .b64 %rd<3>;\n"
    "  mov.u32 %r0, %tid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %ctaid.x;\n"
    "  mad.lo.u32 %r3, %r1, %r2, %r0; ld.param.u32 %r4, [value];\n"
    "  ld.param.u64 %rd0, [out]; cvta.to.global.u64 %rd0, %rd0;\n"
    "  mul.wide.u32 %rd1, %r3, 4; add.u64 %rd2, %rd0, %rd1;\n"
    "  st.global.u32 [%rd2], %r4; ret;\n}\n"
    /* at most 64 threads; 256 bytes of static and any dynamic shared memory */
    ".visible .entry bounded(.param .u8 a, .param .u64 b, .param .align 8 .b8 c[12])\n"
    ".maxntid 64, 1, 1\n{\n"
    "  .shared .align 16 .b8 fixed[256];\n  .reg .b32 %r<2>;\n"
    "  mov.u32 %r0, fixed; mov.u32 %r1, 7; st.shared.u32 [%r0], %r1; ret;\n}\n";

static inline hewn_cu_module load(const char *ptx)
{
    hewn_cu_module module = NULL;
    CHECK_INT(cu.cuModuleLoadData(&module, ptx), 0);
    return module;
}

static inline hewn_cu_function function(hewn_cu_module module, const char *name)
{
    hewn_cu_function f = NULL;
    CHECK_INT(cu.cuModuleGetFunction(&f, module, name), 0);
    return f;
}

static inline hewn_cu_deviceptr buffer(size_t bytes)
{
    hewn_cu_deviceptr address = 0;
    CHECK_INT(cu.cuMemAlloc_v2(&address, bytes), 0);
    return address;
}

static inline int fill_on(hewn_cu_function f, hewn_cu_deviceptr out, unsigned value,
                          unsigned blocks, unsigned threads, hewn_cu_stream stream)
{
    void *params[] = {&out, &value};
    return cu.cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

/* Words of device memory that differ from `want`. */
static inline unsigned count_wrong(hewn_cu_deviceptr at, unsigned want, unsigned words)
{
    unsigned *host = calloc(words, sizeof *host), wrong = 0;

    if (!host) return words;
    CHECK_INT(cu.cuMemcpyDtoH_v2(host, at, words * sizeof *host), 0);
    for (unsigned i = 0; i < words; i++) wrong += host[i] != want;
    free(host);
    return wrong;
}

#endif
