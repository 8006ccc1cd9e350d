/*
 * The functions that stand before the driver's. A program finds them by its linker, by dlsym or by
 * cuGetProcAddress; all three lead here.
 */
#include "watch.h"
#include "image.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

#define HOOK(name, base, parameters) SHOWN int name parameters;
#include "hooks.def"
SHOWN void *dlsym(void *restrict handle, const char *restrict name);

enum { NOT_INITIALIZED = 3 };

typedef void any_function(void);

/* Object and function pointers have one size and form here, as POSIX asks for dlsym. */
static any_function *as_function(void *symbol)
{
    any_function *f;
    memcpy(&f, &symbol, sizeof f);
    return f;
}

static void *as_symbol(any_function *f)
{
    void *symbol;
    memcpy(&symbol, &f, sizeof symbol);
    return symbol;
}

/* ---- notes ---- */

void watch_note(const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "hewn watch: %s\n", text);
}

void watch_report(const char *format, ...)
{
    const char *path = getenv("HEWN_WATCH_REPORT");
    FILE *f = path && *path ? fopen(path, "a") : NULL;
    va_list args;

    if (!f) return;
    va_start(args, format);
    vfprintf(f, format, args);
    va_end(args);
    fputc('\n', f);
    fclose(f);
}

/* ---- the driver's own functions ---- */

static void *real_dlsym(void *handle, const char *name)
{
    static void *(*real)(void *, const char *);
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};

    for (size_t i = 0; !real && i < sizeof versions / sizeof versions[0]; i++) {
        void *symbol = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        memcpy(&real, &symbol, sizeof symbol);
    }
    return real ? real(handle, name) : NULL;
}

static struct hook {
    const char *name, *base;
    any_function *own, *real;
} hooks[] = {
#define HOOK(name, base, parameters) {#name, #base, (any_function *)name, NULL},
#include "hooks.def"
};

enum { HOOKS = sizeof hooks / sizeof hooks[0] };

static struct hook *hook_named(const char *name)
{
    if (name[0] != 'c' || name[1] != 'u') return NULL;
    for (size_t i = 0; i < HOOKS; i++)
        if (!strcmp(hooks[i].name, name)) return &hooks[i];
    return NULL;
}

/* The library that the last function came from. */
static void *driver_handle;

static void remember(struct hook *h, void *symbol)
{
    Dl_info info;
    void *handle = dladdr(symbol, &info) && info.dli_fname
                       ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                       : NULL;

    __atomic_store_n(&h->real, as_function(symbol), __ATOMIC_RELEASE);
    if (handle) __atomic_store_n(&driver_handle, handle, __ATOMIC_RELEASE);
}

static any_function *real_of(const char *name)
{
    struct hook *h = hook_named(name);
    any_function *real = __atomic_load_n(&h->real, __ATOMIC_ACQUIRE);
    void *symbol, *handle;

    if (real) return real;
    symbol = real_dlsym(RTLD_NEXT, name);
    if (!symbol) {
        handle = __atomic_load_n(&driver_handle, __ATOMIC_ACQUIRE);
        if (!handle) handle = dlopen("libcuda.so.1", RTLD_LAZY);
        symbol = handle ? real_dlsym(handle, name) : NULL;
    }
    if (symbol) remember(h, symbol);
    return as_function(symbol);
}

const struct driver_calls *driver_calls(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct driver_calls calls;
    static void *from;
    void *handle = __atomic_load_n(&driver_handle, __ATOMIC_ACQUIRE);

    if (!handle) return NULL;
    pthread_mutex_lock(&lock);
    if (from != handle) {
#define CALL(field, name, parameters)                 \
    {                                                 \
        void *symbol = real_dlsym(handle, #name);     \
        memcpy(&calls.field, &symbol, sizeof symbol); \
    }
#include "hooks.def"
        from = handle;
    }
    pthread_mutex_unlock(&lock);
    return &calls;
}

/* ---- how a program finds functions ---- */

/* A library that has machine code and PTX may look whether the driver is watched, and load the PTX. */
SHOWN extern const char hewn_watch_version[];
const char hewn_watch_version[] = "1";

void *dlsym(void *restrict handle, const char *restrict name)
{
    struct hook *h = hook_named(name);
    void *symbol = real_dlsym(handle, name);

    if (!symbol && !strcmp(name, "hewn_watch_version"))
        return (void *)(uintptr_t)hewn_watch_version;

    if (!h || !symbol || symbol == as_symbol(h->own)) return symbol;
    remember(h, symbol);
    return as_symbol(h->own);
}

/* What cuGetProcAddress found, replaced by ours. The driver chooses the variant by the version asked for; two of
 * ours have more than one, and both are called alike. */
static void replace(const char *name, int version, void **function)
{
    if (!name || !function || !*function) return;
    for (size_t i = HOOKS; i-- > 0;) {
        struct hook *h = &hooks[i];

        if (strcmp(h->base, name) != 0) continue;
        if (!strcmp(h->name, "cuGetProcAddress_v2") && version < 12000) continue;
        if (*function != as_symbol(h->own)) remember(h, *function);
        *function = as_symbol(h->own);
        return;
    }
}

int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    int (*real)(const char *, void **, int, uint64_t) =
        (int (*)(const char *, void **, int, uint64_t))real_of("cuGetProcAddress");
    const int rc = real ? real(name, function, version, flags) : NOT_INITIALIZED;

    if (!rc) replace(name, version, function);
    return rc;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    int (*real)(const char *, void **, int, uint64_t, int *) =
        (int (*)(const char *, void **, int, uint64_t, int *))real_of("cuGetProcAddress_v2");
    const int rc = real ? real(name, function, version, flags, status) : NOT_INITIALIZED;

    if (!rc) replace(name, version, function);
    return rc;
}

/* ---- what programs load ---- */

enum { LINK_PTX = 1, MOST_OPTIONS = 32, MODE_RELAXED = 2 };

/* The driver's own functions may call each other by names that lead here. */
static _Thread_local bool inside;

/* What stands behind the image in a call. Values are read and written by the driver. */
struct load_arguments {
    unsigned count, library_count;
    int *options, *library_options;
    void **values, **library_values;
    void *first[MOST_OPTIONS]; /* the values as the program gave them */
};

static void restore_values(const struct load_arguments *a)
{
    if (a->values && a->count <= MOST_OPTIONS)
        memcpy(a->values, a->first, a->count * sizeof *a->values);
}

static int load_module(const struct loader *l, const void *image, void **out)
{
    const struct load_arguments *a = l->arguments;

    restore_values(a);
    return driver_calls()->module_load(out, image, a->count, a->options, a->values);
}

static void unload_module(const struct loader *l, void *module)
{
    (void)l;
    driver_calls()->module_unload(module);
}

static int find_function(const struct loader *l, void *module, const char *name, void **out)
{
    (void)l;
    return driver_calls()->module_function(out, module, name);
}

static int function_attribute(const struct loader *l, int *value, int attribute, void *function)
{
    (void)l;
    return driver_calls()->function_attribute(value, attribute, function);
}

static int load_library(const struct loader *l, const void *image, void **out)
{
    const struct load_arguments *a = l->arguments;

    restore_values(a);
    return driver_calls()->library_load(out, image, a->options, a->values, a->count,
                                        a->library_options, a->library_values, a->library_count);
}

static void unload_library(const struct loader *l, void *library)
{
    (void)l;
    driver_calls()->library_unload(library);
}

static int find_kernel(const struct loader *l, void *library, const char *name, void **out)
{
    (void)l;
    return driver_calls()->library_kernel(out, library, name);
}

static int kernel_attribute(const struct loader *l, int *value, int attribute, void *kernel)
{
    return driver_calls()->kernel_attribute(value, attribute, kernel, l->device);
}

/* Threads that capture may load modules, but not do all that is done here. */
static int load_relaxed(struct loader *l, struct load_arguments *a, const void *image, void **out)
{
    const struct driver_calls *d = driver_calls();
    int mode = MODE_RELAXED, rc;

    if (a->values && a->count <= MOST_OPTIONS)
        memcpy(a->first, a->values, a->count * sizeof *a->values);
    l->arguments = a;
    inside = true;
    if (d->capture_mode) d->capture_mode(&mode);
    if (!d->ctx_get_device || d->ctx_get_device(&l->device)) l->device = 0;
    rc = load_watched(l, image, out);
    if (d->capture_mode) d->capture_mode(&mode);
    inside = false;
    return rc;
}

static int module_from(void **module, const void *image, struct load_arguments a)
{
    struct loader l = {load_module, unload_module, find_function, function_attribute, NULL, 0};

    return load_relaxed(&l, &a, image, module);
}

static int library_from(void **library, const void *image, struct load_arguments a)
{
    struct loader l = {load_library, unload_library, find_kernel, kernel_attribute, NULL, 0};

    return load_relaxed(&l, &a, image, library);
}

static bool modules_work(void)
{
    const struct driver_calls *d = inside ? NULL : driver_calls();

    return d && d->module_load && d->module_unload && d->module_function && d->function_attribute;
}

static bool libraries_work(void)
{
    const struct driver_calls *d = inside ? NULL : driver_calls();

    return d && d->library_load && d->library_unload && d->library_kernel && d->kernel_attribute;
}

/* The driver's own function of that name, or the end of the call. */
#define OWN(name)                                               \
    __typeof__(name) *own = (__typeof__(name) *)real_of(#name); \
    if (!own) return NOT_INITIALIZED

int cuModuleLoadData(void **module, const void *image)
{
    OWN(cuModuleLoadData);
    if (!module || !image || !modules_work()) return own(module, image);
    return module_from(module, image, (struct load_arguments){.count = 0});
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                       void **values)
{
    OWN(cuModuleLoadDataEx);
    if (!module || !image || !modules_work()) return own(module, image, count, options, values);
    return module_from(
        module, image,
        (struct load_arguments){.count = count, .options = options, .values = values});
}

int cuModuleLoadFatBinary(void **module, const void *image)
{
    OWN(cuModuleLoadFatBinary);
    if (!module || !image || !modules_work()) return own(module, image);
    return module_from(module, image, (struct load_arguments){.count = 0});
}

int cuModuleLoad(void **module, const char *path)
{
    char *image;
    size_t length;
    int rc;

    OWN(cuModuleLoad);
    if (!module || !path || !modules_work()) return own(module, path);
    image = image_read(path, &length);
    if (!image) return own(module, path);
    rc = module_from(module, image, (struct load_arguments){.count = 0});
    free(image);
    return rc;
}

int cuLibraryLoadData(void **library, const void *image, int *jit_options, void **jit_values,
                      unsigned jit_count, int *options, void **values, unsigned count)
{
    OWN(cuLibraryLoadData);
    if (!library || !image || !libraries_work())
        return own(library, image, jit_options, jit_values, jit_count, options, values, count);
    return library_from(library, image,
                        (struct load_arguments){.count = jit_count,
                                                .options = jit_options,
                                                .values = jit_values,
                                                .library_count = count,
                                                .library_options = options,
                                                .library_values = values});
}

int cuLibraryLoadFromFile(void **library, const char *path, int *jit_options, void **jit_values,
                          unsigned jit_count, int *options, void **values, unsigned count)
{
    char *image;
    size_t length;
    int rc;

    OWN(cuLibraryLoadFromFile);
    image = library && path && libraries_work() ? image_read(path, &length) : NULL;
    if (!image)
        return own(library, path, jit_options, jit_values, jit_count, options, values, count);
    rc = cuLibraryLoadData(library, image, jit_options, jit_values, jit_count, options, values,
                           count);
    free(image);
    return rc;
}

int cuLinkAddData_v2(void *link, int type, void *data, size_t size, const char *name,
                     unsigned count, int *options, void **values)
{
    char *text = NULL;
    size_t length = 0;
    int rc;

    OWN(cuLinkAddData_v2);
    if (type == LINK_PTX && data && modules_work()) {
        inside = true;
        text = link_watched(data, size, name, &length);
        inside = false;
    }
    if (!text) return own(link, type, data, size, name, count, options, values);
    rc = own(link, type, text, length, name, count, options, values);
    free(text);
    return rc;
}
