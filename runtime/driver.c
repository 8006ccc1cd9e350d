/* Opening the driver: the library or the caller's resolver, the function table, cuInit. */
#include "driver.h"

#include "error.h"
#include "structs.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum need { OPTIONAL, REQUIRED };

struct symbol {
    enum need need;
    int since;
    const char *exported, *base;
    size_t offset; /* of the slot in struct hewn_driver_table */
};

static const struct symbol symbols[] = {
#define X(need, field, base, suffix, since, arguments) \
    {need, since, #base #suffix, #base, offsetof(struct hewn_driver_table, field)},
    HEWN_DRIVER_FUNCTIONS(X)
#undef X
};

/* CUDA 12.0 and later; asked for only what the library's own symbol table lacks. */
typedef hewn_cu_result (*get_proc_address)(const char *base, void **function, int version,
                                           uint64_t flags, int *status);

static void *lookup(const struct hewn_driver *driver, const char *exported)
{
    if (driver->resolve) return driver->resolve(driver->user, exported);
    return dlsym(driver->library, exported);
}

/* A driver refuses to name a function for a version above its own, so each is asked for by the
 * version that introduced it, which also fixes its form. */
static void *lookup_by_version(const struct hewn_driver *driver, const struct symbol *symbol)
{
    void *address = lookup(driver, symbol->exported);
    if (address || driver->resolve) return address;
    void *entry = dlsym(driver->library, "cuGetProcAddress_v2");
    if (!entry) return NULL;
    get_proc_address get;
    memcpy(&get, &entry, sizeof get); /* ISO C has no cast from object to function pointer */
    int status = 0;
    if (get(symbol->base, &address, symbol->since, 0, &status) != HEWN_CU_SUCCESS) return NULL;
    return address;
}

static void append_name(char *list, size_t size, const char *name)
{
    size_t used = strlen(list);
    if (used < size) snprintf(list + used, size - used, "%s%s", used ? ", " : "", name);
}

static int resolve_all(struct hewn_driver *driver, hewn_error *err)
{
    char required[256] = "";
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        const struct symbol *s = &symbols[i];
        void *address = lookup_by_version(driver, s);
        memcpy((char *)&driver->fn + s->offset, &address, sizeof address);
        if (address) continue;
        if (s->need == REQUIRED)
            append_name(required, sizeof required, s->exported);
        else
            append_name(driver->missing, sizeof driver->missing, s->exported);
    }
    driver->simulated = lookup(driver, "hewn_sim_version") != NULL;
    driver->watched = lookup(driver, "hewn_watch_version") != NULL;
    if (required[0])
        return hewn_fail(err, HEWN_ERR_SYMBOL, "%s lacks required driver functions: %s",
                         hewn_driver_path(driver), required);
    return HEWN_OK;
}

static int open_library(struct hewn_driver *driver, const char *path, hewn_error *err)
{
    const char *from = "options.path";
    if (!path) {
        path = getenv("HEWN_LIBCUDA");
        from = "HEWN_LIBCUDA";
    }
    if (!path || !path[0]) {
        path = "libcuda.so.1";
        from = "default";
    }
    /* NODELETE: a driver owns threads and exit handlers, so its code must outlive our handle. */
    driver->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!driver->library) {
        const char *why = dlerror();
        return hewn_fail(err, HEWN_ERR_NO_DRIVER, "driver library '%s' (%s) cannot be opened: %s",
                         path, from, why ? why : "no reason given");
    }
    struct link_map *map = NULL;
    if (dlinfo(driver->library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0])
        path = map->l_name;
    driver->path = strdup(path);
    if (!driver->path)
        return hewn_fail(err, HEWN_ERR_MEMORY, "out of host memory for the driver's path");
    return HEWN_OK;
}

static int start(struct hewn_driver *driver, hewn_error *err)
{
    hewn_cu_result r = driver->fn.init(0);
    if (r == HEWN_CU_NO_DEVICE) {
        hewn_error_set_driver(err, driver, r, "cuInit", "%s", hewn_driver_path(driver));
        if (err) err->status = HEWN_ERR_NO_DEVICE;
        return HEWN_ERR_NO_DEVICE;
    }
    if (r) return hewn_fail_driver(err, driver, r, "cuInit", "%s", hewn_driver_path(driver));
    r = driver->fn.driver_get_version(&driver->version);
    if (r)
        return hewn_fail_driver(err, driver, r, "cuDriverGetVersion", "%s",
                                hewn_driver_path(driver));
    r = driver->fn.device_get_count(&driver->device_count);
    if (r)
        return hewn_fail_driver(err, driver, r, "cuDeviceGetCount", "%s", hewn_driver_path(driver));
    return HEWN_OK;
}

int hewn_driver_open(const hewn_driver_options *options, hewn_driver **out, hewn_error *err)
{
    hewn_driver_options o = {.struct_size = sizeof o};
    if (!out) return hewn_fail_null(err, "out");
    int status =
        options ? hewn_struct_take(HEWN_STRUCT_hewn_driver_options, options, &o, err) : HEWN_OK;
    if (status) return status;
    if (o.resolve && o.path)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "path: '%s' is given together with `resolve`; give only one", o.path);
    struct hewn_driver *driver = calloc(1, sizeof *driver);
    if (!driver) return hewn_fail(err, HEWN_ERR_MEMORY, "out of host memory for the driver");
    driver->resolve = o.resolve;
    driver->user = o.user;
    if (!driver->resolve) status = open_library(driver, o.path, err);
    if (!status) status = resolve_all(driver, err);
    if (!status) status = start(driver, err);
    if (status) {
        hewn_driver_close(driver);
        return status;
    }
    *out = driver;
    return HEWN_OK;
}

void hewn_driver_close(hewn_driver *driver)
{
    if (!driver) return;
    if (driver->library) dlclose(driver->library);
    free(driver->path);
    free(driver);
}

const char *hewn_driver_path(const hewn_driver *driver)
{
    if (!driver) return NULL;
    return driver->path ? driver->path : "(resolver)";
}

int hewn_driver_version(const hewn_driver *driver)
{
    return driver ? driver->version : 0;
}

int hewn_driver_device_count(const hewn_driver *driver)
{
    return driver ? driver->device_count : 0;
}

const char *hewn_driver_missing(const hewn_driver *driver)
{
    return driver ? driver->missing : NULL;
}

void *hewn_driver_symbol(const hewn_driver *driver, const char *symbol)
{
    return driver && symbol ? lookup(driver, symbol) : NULL;
}
