/* What the module builder writes into the library: images, modules, families. All of it is constant. */
#ifndef HEWN_RUNTIME_MODULE_H
#define HEWN_RUNTIME_MODULE_H

#include "hewn.h"

/* What cuModuleLoadData takes: a fat binary, or a plain cubin where the build had no tool for more. */
struct hewn_image {
    const char *arch; /* of a cubin: "sm_90a", "sm_100", "sm_103"; "ptx" */
    const void *data;
    size_t size;
    const char *sha256; /* of the data, 64 hex digits */
};

/* One kernel: its PTX text always, cubins where ptxas was there at build time. Modules that differ in
 * dtypes alone share their cubins. */
struct hewn_module {
    const char *name, *target, *entry;
    const char *manifest; /* JSON, NUL-terminated */
    size_t manifest_size;
    const char *sha256; /* of the PTX text, */
    size_t ptx_size;    /* and its bytes without the NUL */
    struct hewn_image ptx;
    const struct hewn_image *const *images;
    size_t image_count;
};

struct hewn_family {
    const char *name;
    const hewn_module *const *modules;
    size_t module_count;
};

#endif
