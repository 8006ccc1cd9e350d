/* What the module builder writes into the library: packs, modules, families. All of it is constant. */
#ifndef HEWN_RUNTIME_MODULE_H
#define HEWN_RUNTIME_MODULE_H

#include "hewn.h"
#include "unpack.h"

/* A file in a pack. */
struct hewn_image {
    const char *arch; /* of a cubin: "sm_90a", "sm_100", "sm_103"; "ptx"; "json" */
    const struct hewn_pack *pack;
    size_t offset, size;
    const char *sha256; /* of its bytes, 64 hex digits */
};

/* One kernel: its PTX text and manifest always, cubins where ptxas was there at build time. Similar
 * modules share their packs. */
struct hewn_module {
    const char *name, *target, *entry;
    struct hewn_image ptx, manifest;
    const struct hewn_image *images; /* the cubins */
    size_t image_count;
    const char *cubins; /* their architectures, spaces between */
};

struct hewn_family {
    const char *name;
    const hewn_module *const *modules;
    const unsigned short *by_name; /* places in `modules`, in the order of names */
    size_t module_count;
};

#endif
