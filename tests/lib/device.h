/* Opens a driver for a test program: HEWN_LIBCUDA where set, and device buffers with guards. */
#ifndef TESTS_DEVICE_H
#define TESTS_DEVICE_H

#include "hewn.h"

#include <stdbool.h>

struct device {
    hewn_driver *driver;
    hewn_context *context;
    hewn_device_info info;
    /* driver functions that tests need beyond hewn.h */
    int (*mem_alloc)(hewn_deviceptr *, size_t);
    int (*mem_free)(hewn_deviceptr);
    int (*to_device)(hewn_deviceptr, const void *, size_t);
    int (*to_host)(void *, hewn_deviceptr, size_t);
    int (*synchronize)(void);
};

/* False (with the reason in `why`) when no driver, device or context can be had. */
bool device_open(struct device *d, hewn_error *why);
/* The same through `options` (NULL: as device_open). */
bool device_open_with(struct device *d, const hewn_driver_options *options, hewn_error *why);
void device_close(struct device *d);

/* A device buffer of `size` bytes between two guards of 4 KiB, all filled with `pattern`. */
struct guarded {
    hewn_deviceptr base, data;
    size_t size;
    unsigned char pattern;
};
enum { GUARD_BYTES = 4096 };

bool guarded_new(struct device *d, struct guarded *g, size_t size, unsigned char pattern);
void guarded_free(struct device *d, struct guarded *g);
/* NULL when both guards are untouched, else which one is not. */
const char *guarded_damage(struct device *d, const struct guarded *g);

#endif
