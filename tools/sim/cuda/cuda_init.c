/* Start-up, the lock around every call, what a call needs before it may go on, and shut-down. */
#include "cuda/array.h"
#include "cuda/running.h"
#include "hewn.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_OF(x)       #x
#define VERSION(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)
const char hewn_sim_version[] = VERSION(HEWN_VERSION_MAJOR, HEWN_VERSION_MINOR, HEWN_VERSION_PATCH);

struct driver driver;
_Thread_local bool call_in_callback;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void driver_note(const char *format, ...)
{
    va_list args;

    if (driver.settings.quiet) return;
    va_start(args, format);
    fputs("hewn-sim: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

/* Codes after which real hardware wants the context destroyed (Driver API reference, CUresult). */
bool result_is_sticky(int result)
{
    switch (result) {
    case HEWN_CU_CONTAINED:
    case HEWN_CU_ILLEGAL_ADDRESS:
    case HEWN_CU_LAUNCH_TIMEOUT:
    case HEWN_CU_ASSERT:
    case HEWN_CU_HARDWARE_STACK_ERROR:
    case HEWN_CU_ILLEGAL_INSTRUCTION:
    case HEWN_CU_MISALIGNED_ADDRESS:
    case HEWN_CU_INVALID_ADDRESS_SPACE:
    case HEWN_CU_INVALID_PC:
    case HEWN_CU_LAUNCH_FAILED:
    case HEWN_CU_TENSOR_MEMORY_LEAK:
    case HEWN_CU_EXTERNAL_DEVICE: return true;
    default: return false;
    }
}

void print_keep(char *text, size_t bytes)
{
    char *both =
        text && driver.printed ? realloc(driver.printed, driver.printed_bytes + bytes) : text;

    if (!text) return;
    if (both && both != text) memcpy(both + driver.printed_bytes, text, bytes);
    if (both != text) free(text);
    if (!both) return; /* no memory: the buffer on the device is bounded too */
    driver.printed = both;
    driver.printed_bytes += bytes;
}

void print_flush(void)
{
    if (!driver.printed) return;
    fwrite(driver.printed, 1, driver.printed_bytes, stdout);
    fflush(stdout);
    free(driver.printed);
    driver.printed = NULL;
    driver.printed_bytes = 0;
}

static int check_needs(struct call *call, unsigned needs)
{
    struct CUctx_st *context = call->context;

    if (driver.down) return HEWN_CU_DEINITIALIZED;
    if (needs & NEED_INIT && !driver.ready) return HEWN_CU_NOT_INITIALIZED;
    if (needs & NEED_CONTEXT) {
        if (!context) return HEWN_CU_INVALID_CONTEXT;
        if (!context->alive) return HEWN_CU_CONTEXT_IS_DESTROYED;
    }
    if (needs & NEED_HEALTHY && context->fault) return context->fault;
    if (needs & UNSAFE_IN_CAPTURE && capture_forbids()) return HEWN_CU_STREAM_CAPTURE_UNSUPPORTED;
    if (needs & SYNCHRONISES && context->strict_fault) {
        int fault = context->strict_fault;
        context->strict_fault = 0;
        return fault;
    }
    return 0;
}

void driver_lock(void)
{
    pthread_mutex_lock(&lock);
}

void driver_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

int call_enter(struct call *call, unsigned needs)
{
    *call = (struct call){0};
    if (call_in_callback) return call->rc = HEWN_CU_NOT_PERMITTED;
    pthread_mutex_lock(&lock);
    call->locked = true;
    call->context = context_current();
    if (needs & (UNSAFE_IN_CAPTURE | SYNCHRONISES | SHOWS_PRINTED)) print_flush();
    if (needs & (UNSAFE_IN_CAPTURE | SYNCHRONISES)) launch_settled();
    if (driver.deferred) deferred_progress();
    return call->rc = check_needs(call, needs);
}

/* Their owner may call the driver from here, so the lock is free by now. */
static void tell_ended(struct context_value *ended, bool tell)
{
    for (struct context_value *v; (v = ended);) {
        ended = v->next;
        if (tell && v->end) v->end(v->context, v->key, v->value);
        free(v);
    }
}

void call_leave(struct call *call)
{
    struct context_value *ended;

    if (!call->locked) return;
    ended = driver.ended;
    driver.ended = NULL;
    pthread_mutex_unlock(&lock);
    tell_ended(ended, true);
}

/* Filling fresh memory touches it, so what the host can hold bounds what the device lends. */
static uint64_t memory_limit(uint64_t device_bytes)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t host = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : device_bytes;

    return host < device_bytes ? host : device_bytes;
}

/*
 * Loads the stand-in for NVRTC that lies beside this library (tools/nvrtc), so that a program that looks for NVRTC
 * finds that one, wherever it would look. As a constructor: what calls cuInit may hold the loader's lock.
 */
__attribute__((constructor)) static void load_stand_in(void)
{
    static const char name[] = "libnvrtc.so.13";
    char path[PATH_MAX];
    const char *slash;
    Dl_info here;

    if (!dladdr(&lock, &here) || !here.dli_fname || !(slash = strrchr(here.dli_fname, '/'))) return;
    if ((size_t)(slash - here.dli_fname) + 1 + sizeof name > sizeof path) return;
    memcpy(path, here.dli_fname, (size_t)(slash - here.dli_fname) + 1);
    memcpy(path + (slash - here.dli_fname) + 1, name, sizeof name);
    if (!access(path, R_OK)) (void)dlopen(path, RTLD_LAZY | RTLD_LOCAL); /* it stays */
}

int cuInit(unsigned flags)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, 0)) return call.rc;
    if (flags) return HEWN_CU_INVALID_VALUE;
    if (driver.ready) return 0;
    if (!settings_read(&driver.settings)) return HEWN_CU_NO_DEVICE;
    driver.memory_limit = memory_limit(driver.settings.gpu.memory_bytes);
    mem_set_limit(driver.memory_limit);
    driver.ready = true;
    return 0;
}

int cuDriverGetVersion(int *version)
{
    if (!version) return HEWN_CU_INVALID_VALUE;
    *version = DRIVER_VERSION;
    return 0;
}

int cuProfilerStart(void)
{
    struct call call CALL_SCOPE;
    return call_enter(&call, CALL_PLAIN);
}

int cuProfilerStop(void)
{
    struct call call CALL_SCOPE;
    return call_enter(&call, CALL_PLAIN);
}

static const struct {
    int value;
    const char *name, *text;
} results[] = {
#define X(name, value, text) {value, (value) ? "CUDA_ERROR_" #name : "CUDA_SUCCESS", text},
    HEWN_CU_RESULTS(X)
#undef X
};

static int describe(int error, const char **out, bool name)
{
    if (!out) return HEWN_CU_INVALID_VALUE;
    *out = NULL;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i].value == error) *out = name ? results[i].name : results[i].text;
    return *out ? 0 : HEWN_CU_INVALID_VALUE;
}

int cuGetErrorName(hewn_cu_result error, const char **name)
{
    return describe(error, name, true);
}

int cuGetErrorString(hewn_cu_result error, const char **text)
{
    return describe(error, text, false);
}

/* At exit or dlclose everything goes, so that leak checkers see the program's own leaks only. A
 * launch still running on another thread keeps what it uses. */
__attribute__((destructor)) static void shut_down(void)
{
    size_t at = 0;
    struct CUctx_st *context;
    void *object;

    running_stop();
    if (pthread_mutex_trylock(&lock)) return;
    driver.down = true;
    launch_settled();
    while ((context = handle_next(HANDLE_CONTEXT, NULL, &at))) context_clear(context);
    for (at = 0; (object = handle_next(HANDLE_MODULE, NULL, &at));) module_unload(object);
    graphs_free_all();
    user_objects_free_all();
    greens_free_all();
    pools_free_all();
    virtual_free_all();
    for (at = 0; (context = handle_next(HANDLE_CONTEXT, NULL, &at));) free(context);
    tell_ended(driver.ended, false); /* whoever put them there may be gone */
    driver.ended = NULL;
    texture_drop_all();
    handle_free_all();
    mem_reset();
    pthread_mutex_unlock(&lock);
}
