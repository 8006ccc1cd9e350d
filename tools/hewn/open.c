/* Which driver a command talks to, and helpers around it. */
#include "cli.h"

#include "../engine/kernels.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const hewn_module *cli_module(size_t index, const char **family)
{
    const hewn_family *const families[] = {hewn_gemm_family(),    hewn_attention_family(),
                                           hewn_decode_family(),  hewn_mla_family(),
                                           hewn_indexer_family(), hewn_topk_family(),
                                           hewn_grouped_family(), hewn_w4_family(),
                                           hewn_engine_family()};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        size_t count = hewn_family_count(families[i]);
        if (family) *family = hewn_family_name(families[i]);
        if (index < count) return hewn_family_module(families[i], index);
        index -= count;
    }
    return NULL;
}

/* The file of the two, relative to this program, that is there. */
static bool beside(const char *const places[2], char *path, size_t size)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return false;
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < 2; i++) {
        int length = snprintf(path, size, "%s/%s", self, places[i]);
        if (length > 0 && (size_t)length < size && access(path, R_OK) == 0) return true;
    }
    return false;
}

bool cli_simulator(char *path, size_t size)
{
    static const char *const places[] = {"sim/libcuda.so.1", "../lib/hewn/sim/libcuda.so.1"};
    return beside(places, path, size);
}

bool cli_watcher(char *path, size_t size)
{
    static const char *const places[] = {"watch/libhewn-watch.so",
                                         "../lib/hewn/watch/libhewn-watch.so"};
    return beside(places, path, size);
}

/* True when something is worth falling back from: no library, or none of its devices. */
static bool usable(hewn_driver *driver)
{
    return driver && hewn_driver_device_count(driver) > 0;
}

static hewn_driver *open_simulator(const char *why, FILE *say)
{
    char path[PATH_MAX];
    hewn_driver *driver = NULL;
    hewn_driver_options options = {.struct_size = sizeof options, .path = path};
    hewn_error err = {0};
    if (!cli_simulator(path, sizeof path)) {
        cli_fail("no GPU (%s), and no simulated driver beside this program", why);
        return NULL;
    }
    if (isatty(STDERR_FILENO)) setenv("HEWN_SIM_PROGRESS", "1", 0);
    if (hewn_driver_open(&options, &driver, &err)) {
        cli_fail("%s", err.message);
        return NULL;
    }
    if (say) fprintf(say, "driver: simulated (no GPU here: %s)\n", why);
    return driver;
}

hewn_driver *cli_open_driver(FILE *say)
{
    hewn_driver *driver = NULL;
    hewn_error err = {0};
    char why[sizeof err.message];
    int rc;
    if (getenv("HEWN_LIBCUDA") && isatty(STDERR_FILENO)) setenv("HEWN_SIM_PROGRESS", "1", 0);
    rc = hewn_driver_open(NULL, &driver, &err);
    if (rc == 0 && usable(driver)) {
        bool simulated = hewn_driver_symbol(driver, "hewn_sim_version") != NULL;
        if (say)
            fprintf(say, "driver: %s%s, CUDA %d.%d\n", simulated ? "simulated, " : "",
                    hewn_driver_path(driver), hewn_driver_version(driver) / 1000,
                    hewn_driver_version(driver) % 1000 / 10);
        return driver;
    }
    hewn_driver_close(driver);
    snprintf(why, sizeof why, "%s", rc ? err.message : "the driver reports no device");
    if (getenv("HEWN_LIBCUDA")) {
        cli_fail("HEWN_LIBCUDA=%s: %s", getenv("HEWN_LIBCUDA"), why);
        return NULL;
    }
    return open_simulator(why, say);
}

bool cli_symbol(const hewn_driver *driver, const char *name, void *slot)
{
    void *symbol = hewn_driver_symbol(driver, name);
    if (!symbol) cli_fail("the driver has no %s", name);
    memcpy(slot, &symbol, sizeof symbol);
    return symbol != NULL;
}

bool cli_load_calls(const hewn_driver *driver, struct cli_calls *calls)
{
    return cli_symbol(driver, "cuMemAlloc_v2", &calls->alloc) &&
           cli_symbol(driver, "cuMemFree_v2", &calls->release) &&
           cli_symbol(driver, "cuMemcpyHtoD_v2", &calls->to_device) &&
           cli_symbol(driver, "cuMemcpyDtoH_v2", &calls->to_host) &&
           cli_symbol(driver, "cuCtxSynchronize", &calls->synchronize);
}

double cli_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *cli_cuda_error(const hewn_driver *driver, int result)
{
    int (*text_of)(int, const char **) = NULL;
    const char *text = NULL;
    void *symbol = hewn_driver_symbol(driver, "cuGetErrorString");
    memcpy(&text_of, &symbol, sizeof symbol);
    return text_of && text_of(result, &text) == 0 && text ? text : "unknown error";
}

int cli_dtype(const char *name)
{
    for (int t = HEWN_F32; t <= HEWN_BF16; t++)
        if (!strcmp(name, hewn_dtype_name(t))) return t;
    return -1;
}
