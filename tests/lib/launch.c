/*
 * launch FILE.ptx [CTAS [THREADS [CLUSTER]]]: launches the entry `k(.param .u64 out)` of a PTX text and
 * prints what each step came to, for scripts:
 *
 *     init 0 load 0 launch 0 sync 702 again 702 memory 0123456789abcdef
 *
 * `memory` is a hash of the 64 KiB behind `out`, which begin as zeros. A step that failed is the last.
 */
#include "driver_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_BYTES = 65536, TEXT_MAX = 1 << 20 };

#define FUNCTIONS(X)                                                                        \
    X(cuInit, (unsigned flags))                                                             \
    X(cuCtxCreate_v2, (hewn_cu_context * context, unsigned flags, hewn_cu_device device))   \
    X(cuCtxDestroy_v2, (hewn_cu_context context))                                           \
    X(cuCtxSynchronize, (void))                                                             \
    X(cuModuleLoadData, (hewn_cu_module * module, const void *image))                       \
    X(cuModuleGetFunction, (hewn_cu_function * f, hewn_cu_module module, const char *name)) \
    X(cuMemAlloc_v2, (hewn_cu_deviceptr * address, size_t bytes))                           \
    X(cuMemsetD8_v2, (hewn_cu_deviceptr address, unsigned char value, size_t bytes))        \
    X(cuMemcpyDtoH_v2, (void *host, hewn_cu_deviceptr address, size_t bytes))               \
    X(cuLaunchKernelEx,                                                                     \
      (const hewn_cu_launch_config *config, hewn_cu_function f, void **params, void **extra))
#define X(name, parameters) static hewn_cu_result(*name) parameters;
FUNCTIONS(X)
#undef X

static int open_driver(void)
{
    const char *path = getenv("HEWN_LIBCUDA");
    void *library = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *found;
    if (!library) return fprintf(stderr, "launch: %s\n", dlerror()), -1;
#define X(name, parameters)        \
    found = dlsym(library, #name); \
    if (!found) return -1;         \
    memcpy(&name, &found, sizeof found);
    FUNCTIONS(X)
#undef X
    return 0;
}

/* Prints the step and its result; true when it went well. */
static int step(const char *name, int result)
{
    printf("%s %d ", name, result);
    return result == 0;
}

static int launch(const char *ptx, const unsigned shape[3])
{
    static unsigned char memory[OUT_BYTES];
    hewn_cu_launch_attribute cluster = {.id = HEWN_CU_LAUNCH_CLUSTER_DIMENSION,
                                        .value.cluster = {shape[2], 1, 1}};
    hewn_cu_launch_config config = {.grid_x = shape[0],
                                    .grid_y = 1,
                                    .grid_z = 1,
                                    .block_x = shape[1],
                                    .block_y = 1,
                                    .block_z = 1,
                                    .attributes = &cluster,
                                    .attribute_count = shape[2] > 1};
    hewn_cu_context context = NULL;
    hewn_cu_module module = NULL;
    hewn_cu_function f = NULL;
    hewn_cu_deviceptr out = 0;
    uint64_t hash = 14695981039346656037U; /* FNV-1a */
    void *params[] = {&out};

    if (!step("init", cuInit(0)) || cuCtxCreate_v2(&context, 0, 0) ||
        cuMemAlloc_v2(&out, OUT_BYTES) || cuMemsetD8_v2(out, 0, OUT_BYTES) ||
        !step("load", cuModuleLoadData(&module, ptx)) || cuModuleGetFunction(&f, module, "k"))
        return 1;
    (void)step("launch", cuLaunchKernelEx(&config, f, params, NULL));
    (void)step("sync", cuCtxSynchronize());
    if (!step("again", cuCtxSynchronize()) || cuMemcpyDtoH_v2(memory, out, OUT_BYTES)) return 1;
    for (size_t i = 0; i < OUT_BYTES; i++) hash = (hash ^ memory[i]) * 1099511628211U;
    printf("memory %016llx", (unsigned long long)hash);
    return cuCtxDestroy_v2(context);
}

int main(int argc, char **argv)
{
    static char text[TEXT_MAX];
    unsigned shape[3] = {1, 32, 1};
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!f) return fprintf(stderr, "usage: launch FILE.ptx [CTAS [THREADS [CLUSTER]]]\n"), 64;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    for (int i = 2; i < argc && i < 5; i++) shape[i - 2] = (unsigned)strtoul(argv[i], NULL, 10);
    if (open_driver()) return 1;
    (void)launch(text, shape);
    putchar('\n');
    return 0;
}
