/*
 * A stand-in for NVRTC, beside the simulated driver. It hands every call on to the real NVRTC. Where a program
 * asks for machine code of a device, it adds -lineinfo, because NVRTC then leaves the PTX in the image, and that
 * is what the simulated driver runs. The driver loads this library when it is loaded itself (cuda_init.c), so a
 * program that asks for NVRTC by its name gets this one.
 *
 * The real one is the first of: nvidia/cu13/lib beside Python's packages that are loaded, folders of
 * LD_LIBRARY_PATH, lib64 and lib of CUDA_HOME, of CUDA_PATH and of /usr/local/cuda, the system's folders.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LIBRARY "libnvrtc.so.13"

enum { NVRTC_INTERNAL_ERROR = 11, PATH_BYTES = 4096 };

typedef int hewn_nvrtc_result;

/* Calls that are handed on as they are: name, parameters, arguments. */
#define NVRTC_CALLS(X)                                                                            \
    X(nvrtcVersion, (int *major, int *minor), (major, minor))                                     \
    X(nvrtcGetNumSupportedArchs, (int *count), (count))                                           \
    X(nvrtcGetSupportedArchs, (int *archs), (archs))                                              \
    X(nvrtcCreateProgram,                                                                         \
      (void **program, const char *text, const char *name, int headers, const char *const *texts, \
       const char *const *names),                                                                 \
      (program, text, name, headers, texts, names))                                               \
    X(nvrtcDestroyProgram, (void **program), (program))                                           \
    X(nvrtcGetPTXSize, (void *program, size_t *bytes), (program, bytes))                          \
    X(nvrtcGetPTX, (void *program, char *out), (program, out))                                    \
    X(nvrtcGetCUBINSize, (void *program, size_t *bytes), (program, bytes))                        \
    X(nvrtcGetCUBIN, (void *program, char *out), (program, out))                                  \
    X(nvrtcGetLTOIRSize, (void *program, size_t *bytes), (program, bytes))                        \
    X(nvrtcGetLTOIR, (void *program, char *out), (program, out))                                  \
    X(nvrtcGetOptiXIRSize, (void *program, size_t *bytes), (program, bytes))                      \
    X(nvrtcGetOptiXIR, (void *program, char *out), (program, out))                                \
    X(nvrtcGetProgramLogSize, (void *program, size_t *bytes), (program, bytes))                   \
    X(nvrtcGetProgramLog, (void *program, char *out), (program, out))                             \
    X(nvrtcAddNameExpression, (void *program, const char *name), (program, name))                 \
    X(nvrtcGetLoweredName, (void *program, const char *name, const char **lowered),               \
      (program, name, lowered))                                                                   \
    X(nvrtcGetPCHHeapSize, (size_t * bytes), (bytes))                                             \
    X(nvrtcSetPCHHeapSize, (size_t bytes), (bytes))                                               \
    X(nvrtcGetPCHCreateStatus, (void *program), (program))                                        \
    X(nvrtcGetPCHHeapSizeRequired, (void *program, size_t *bytes), (program, bytes))              \
    X(nvrtcSetFlowCallback, (void *program, int (*ask)(void *, void *), void *payload),           \
      (program, ask, payload))

#define VISIBLE               __attribute__((visibility("default")))
#define X(name, params, args) VISIBLE hewn_nvrtc_result name params;
NVRTC_CALLS(X)
#undef X
VISIBLE hewn_nvrtc_result nvrtcCompileProgram(void *program, int count, const char *const *options);
VISIBLE const char *nvrtcGetErrorString(hewn_nvrtc_result result);

/* ---- the real library ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *real;
static struct stat self; /* this file */

/* Whether `folder`, of so many bytes, holds another library of that name, which is then open. */
static bool open_in(const char *folder, size_t bytes, const char *below)
{
    char path[PATH_BYTES];
    struct stat found;
    const int n = snprintf(path, sizeof path, "%.*s%s/%s", (int)bytes, folder, below, LIBRARY);

    if (n <= 0 || n >= PATH_BYTES || stat(path, &found)) return false;
    if (found.st_dev == self.st_dev && found.st_ino == self.st_ino) return false;
    real = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    return real != NULL;
}

static bool open_in_list(const char *list)
{
    while (list) {
        const char *end = strchr(list, ':');
        const size_t bytes = end ? (size_t)(end - list) : strlen(list);
        if (bytes && open_in(list, bytes, "")) return true;
        list = end ? end + 1 : NULL;
    }
    return false;
}

static bool open_in_toolkit(const char *home)
{
    return home && (open_in(home, strlen(home), "/lib64") || open_in(home, strlen(home), "/lib"));
}

/* Stores the folder of Python's packages that a loaded object is in: it may hold the package nvidia-cuda-nvrtc. */
static int find_packages(struct dl_phdr_info *info, size_t size, void *folder)
{
    static const char *const names[] = {"/site-packages/", "/dist-packages/"};

    (void)size;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *at = info->dlpi_name ? strstr(info->dlpi_name, names[i]) : NULL;
        const size_t bytes = at ? (size_t)(at - info->dlpi_name) + strlen(names[i]) : 0;
        if (!at || bytes >= PATH_BYTES) continue;
        memcpy(folder, info->dlpi_name, bytes);
        ((char *)folder)[bytes] = '\0';
        return 1;
    }
    return 0;
}

static void open_real(void)
{
    static const char *const system_folders[] = {
        "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"};
    char packages[PATH_BYTES];
    Dl_info here;

    if (dladdr(&once, &here) && here.dli_fname) (void)stat(here.dli_fname, &self);
    if (dl_iterate_phdr(find_packages, packages) &&
        open_in(packages, strlen(packages), "nvidia/cu13/lib"))
        return;
    if (open_in_list(getenv("LD_LIBRARY_PATH")) || open_in_toolkit(getenv("CUDA_HOME")) ||
        open_in_toolkit(getenv("CUDA_PATH")) || open_in_toolkit("/usr/local/cuda"))
        return;
    for (size_t i = 0; i < sizeof system_folders / sizeof system_folders[0]; i++)
        if (open_in(system_folders[i], strlen(system_folders[i]), "")) return;
    fputs("hewn-sim: " LIBRARY
          " of the CUDA toolkit is not found; name its folder in LD_LIBRARY_PATH, or the toolkit "
          "in CUDA_HOME\n",
          stderr);
}

/* Stores the function of that name in *call. */
static bool find(const char *name, void *call)
{
    void *found;

    pthread_once(&once, open_real);
    found = real ? dlsym(real, name) : NULL;
    memcpy(call, &found, sizeof found); /* ISO C cannot cast it */
    return found != NULL;
}

/* ---- calls ---- */

#define X(name, params, args)                                         \
    hewn_nvrtc_result name params                                     \
    {                                                                 \
        hewn_nvrtc_result(*call) params;                              \
        return find(#name, &call) ? call args : NVRTC_INTERNAL_ERROR; \
    }
NVRTC_CALLS(X)
#undef X

const char *nvrtcGetErrorString(hewn_nvrtc_result result)
{
    const char *(*call)(hewn_nvrtc_result);
    return find(__func__, &call) ? call(result) : "NVRTC_ERROR_INTERNAL_ERROR";
}

/* Whether machine code is asked for, and no option is there that keeps the PTX beside it. */
static bool lacks_lines(int count, const char *const *options)
{
    static const char *const keeps[] = {"-lineinfo", "--generate-line-info", "-G",
                                        "--device-debug"};
    bool machine = false;

    for (int i = 0; i < count; i++) {
        if (!options[i]) return false;
        machine |= !strncmp(options[i], "sm_", 3) || strstr(options[i], "=sm_");
        for (size_t k = 0; k < sizeof keeps / sizeof keeps[0]; k++)
            if (!strcmp(options[i], keeps[k])) return false;
    }
    return machine;
}

hewn_nvrtc_result nvrtcCompileProgram(void *program, int count, const char *const *options)
{
    hewn_nvrtc_result (*call)(void *, int, const char *const *), result;
    const char **more;

    if (!find(__func__, &call)) return NVRTC_INTERNAL_ERROR;
    if (count <= 0 || !options || !lacks_lines(count, options))
        return call(program, count, options);
    more = calloc((size_t)count + 1, sizeof *more);
    if (!more) return NVRTC_INTERNAL_ERROR;
    memcpy(more, options, (size_t)count * sizeof *more);
    more[count] = "-lineinfo";
    result = call(program, count + 1, more);
    free(more);
    return result;
}
