#include "device.h"

#include <stdlib.h>
#include <string.h>

/* An object pointer from dlsym-like lookups, as the function pointer it is. */
static bool lookup(const hewn_driver *driver, const char *name, void *slot)
{
    void *symbol = hewn_driver_symbol(driver, name);
    memcpy(slot, &symbol, sizeof symbol);
    return symbol != NULL;
}

bool device_open(struct device *d, hewn_error *why)
{
    return device_open_with(d, NULL, why);
}

bool device_open_with(struct device *d, const hewn_driver_options *options, hewn_error *why)
{
    memset(d, 0, sizeof *d);
    if (hewn_driver_open(options, &d->driver, why)) return false;
    if (hewn_context_attach_primary(d->driver, 0, &d->context, why)) goto fail;
    d->info.struct_size = sizeof d->info;
    if (hewn_context_describe_device(d->context, &d->info, why)) goto fail;
    if (lookup(d->driver, "cuMemAlloc_v2", &d->mem_alloc) &&
        lookup(d->driver, "cuMemFree_v2", &d->mem_free) &&
        lookup(d->driver, "cuMemcpyHtoD_v2", &d->to_device) &&
        lookup(d->driver, "cuMemcpyDtoH_v2", &d->to_host) &&
        lookup(d->driver, "cuCtxSynchronize", &d->synchronize))
        return true;
    if (why) strcpy(why->message, "the driver lacks memory functions");
fail:
    device_close(d);
    return false;
}

void device_close(struct device *d)
{
    hewn_context_detach(d->context);
    hewn_driver_close(d->driver);
    memset(d, 0, sizeof *d);
}

bool guarded_new(struct device *d, struct guarded *g, size_t size, unsigned char pattern)
{
    size_t whole = size + 2 * (size_t)GUARD_BYTES;
    void *fill = malloc(whole);
    memset(g, 0, sizeof *g);
    if (!fill || d->mem_alloc(&g->base, whole)) {
        free(fill);
        g->base = 0;
        return false;
    }
    memset(fill, pattern, whole);
    g->data = g->base + GUARD_BYTES;
    g->size = size;
    g->pattern = pattern;
    int rc = d->to_device(g->base, fill, whole);
    free(fill);
    return rc == 0;
}

void guarded_free(struct device *d, struct guarded *g)
{
    if (g->base) d->mem_free(g->base);
    g->base = 0;
}

static bool intact(struct device *d, hewn_deviceptr at, unsigned char pattern)
{
    unsigned char bytes[GUARD_BYTES];
    if (d->to_host(bytes, at, sizeof bytes)) return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i] != pattern) return false;
    return true;
}

const char *guarded_damage(struct device *d, const struct guarded *g)
{
    if (!intact(d, g->base, g->pattern)) return "left guard damaged";
    if (!intact(d, g->data + g->size, g->pattern)) return "right guard damaged";
    return NULL;
}
