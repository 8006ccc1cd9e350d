/* A context as the runtime's files share it. Only the list of modules changes after it is attached. */
#ifndef HEWN_RUNTIME_CONTEXT_H
#define HEWN_RUNTIME_CONTEXT_H

#include "driver.h"
#include "module.h"

#include <pthread.h>
#include <stdatomic.h>

/* What a launch may ask of the device, beyond hewn_device_info. */
struct hewn_limits {
    int grid[3], block[3];
    int threads_per_block;
    int cluster_launch, cooperative_launch;
};

/* A module loaded into a context; immutable once on the list, freed by hewn_context_detach. */
struct hewn_loaded {
    struct hewn_loaded *next;
    const hewn_module *module;
    hewn_cu_module handle;
    hewn_cu_function function;
    char origin[24];
};

struct hewn_context {
    const hewn_driver *driver;
    hewn_cu_context cu;
    hewn_cu_context previous; /* what hewn_context_attach_primary found current; only if owned */
    hewn_cu_device device;
    int owned; /* the primary context was retained here */
    hewn_device_info info;
    struct hewn_limits limits;
    pthread_mutex_t loading;              /* held while modules are added */
    _Atomic(struct hewn_loaded *) loaded; /* newest first; read without the lock */
    _Atomic(void *)
        gemm_model; /* what the first plan of a product computes for all; malloc, or NULL */
};

/* Makes the context current until the pop. Failure changes nothing. */
int hewn_context_push(const hewn_context *context, hewn_error *err);
void hewn_context_pop(const hewn_context *context);

/* The member of `family` by that name which this device runs best, or NULL. */
const hewn_module *hewn_family_choose(const hewn_family *family, const char *name, int cc_major,
                                      int cc_minor);
/* Words for HEWN_ERR_NO_MODULE, listing what the family ships. `name` may be NULL. */
void hewn_error_set_no_module(const hewn_context *context, const hewn_family *family,
                              const char *name, hewn_error *err);
/* The module as loaded in this context, loading it where it is not. The context must be current. */
int hewn_context_load(hewn_context *context, const hewn_module *module,
                      const struct hewn_loaded **out, hewn_error *err);
/* The same, its kernel allowed that many bytes of dynamic shared memory; any context may be current. */
int hewn_load_kernel(hewn_context *context, const hewn_module *module, uint32_t dynamic_shared,
                     const struct hewn_loaded **out, hewn_error *err);
/* NULL while it is not loaded. */
const struct hewn_loaded *hewn_context_find(const hewn_context *context, const hewn_module *module);
/* Unloads and frees a whole list; the context must be current. */
void hewn_loaded_free(const hewn_driver *driver, struct hewn_loaded *list);

/* cuTensorMapEncodeTiled without any check, at `address` instead of the description's own; element
 * strides must not be 0 here. */
hewn_cu_result hewn_tensormap_encode_raw(const hewn_driver *driver, hewn_cu_tensor_map *map,
                                         const hewn_tensormap_desc *desc, hewn_deviceptr address);

/* A tensor map without its address. Where the driver can replace that (CUDA 12.0), a plan encodes the
 * map once, because replacing takes a fifth of the time of encoding. Not aligned, because plans are
 * not. */
struct hewn_map {
    hewn_tensormap_desc desc; /* without address; element strides not 0 */
    unsigned char encoded[sizeof(hewn_cu_tensor_map)];
};

/* Fills `encoded` from the description, neither of which is checked. */
hewn_cu_result hewn_map_prepare(const hewn_driver *driver, struct hewn_map *map);
/* The map at `address`, into `out`. hewn_map_call: the driver function that does this, for messages. */
hewn_cu_result hewn_map_place(const hewn_driver *driver, const struct hewn_map *map,
                              hewn_deviceptr address, hewn_cu_tensor_map *out);
const char *hewn_map_call(const hewn_driver *driver);

/* Launches an already checked configuration, by cuLaunchKernel where the driver has no
 * cuLaunchKernelEx and there is no attribute that would need it. */
int hewn_launch_config(const hewn_driver *driver, const hewn_cu_launch_config *config,
                       hewn_cu_function function, void **params, hewn_error *err);

#endif
