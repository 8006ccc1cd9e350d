/* Functions: attributes, parameters, and how many CTAs and clusters fit the device. */
#include "cuda/driver.h"
#include "machine/registers.h"

enum {
    MAX_THREADS = 1024,
    REGS_STEP = 8, /* registers are given out in steps of 8 a thread */
    PORTABLE_CLUSTER = 8
};

static uint32_t volume(const uint32_t dim[3])
{
    return dim[0] * dim[1] * dim[2];
}

static const struct ptx_entry *entry_of(const struct CUfunc_st *f)
{
    return f->kernel->entry;
}

/* Threads that the launch bounds allow, 0 where the source names none. */
static uint32_t bound_threads(const struct CUfunc_st *f)
{
    const struct ptx_entry *e = entry_of(f);
    return e->reqntid[0] ? volume(e->reqntid) : e->maxntid[0] ? volume(e->maxntid) : 0;
}

uint32_t function_registers(const struct CUfunc_st *f)
{
    return entry_registers(entry_of(f), driver.settings.gpu.regs_per_sm);
}

/* Threads that the registers of an SM carry, in whole warps. */
static uint32_t threads_by_registers(const struct CUfunc_st *f)
{
    uint32_t regs = function_registers(f);

    if (!regs) return driver.settings.gpu.threads_per_sm;
    regs = (regs + REGS_STEP - 1) / REGS_STEP * REGS_STEP;
    return driver.settings.gpu.regs_per_sm / (regs * WARP_LANES) * WARP_LANES;
}

uint32_t function_max_threads(const struct CUfunc_st *f)
{
    uint32_t bound = bound_threads(f), by_regs = threads_by_registers(f);
    uint32_t threads = bound && bound < MAX_THREADS ? bound : MAX_THREADS;

    return threads < by_regs ? threads : by_regs;
}

uint32_t function_ctas_per_sm(const struct CUfunc_st *f, uint32_t threads, uint64_t dynamic_shared)
{
    const struct gpu *gpu = &driver.settings.gpu;
    uint64_t shared = entry_of(f)->shared_bytes + dynamic_shared + SHARED_RESERVED;
    uint32_t rounded = (threads + WARP_LANES - 1) / WARP_LANES * WARP_LANES;
    uint32_t ctas = gpu->ctas_per_sm;

    if (!threads || threads > MAX_THREADS || shared > gpu->shared_per_sm) return 0;
    if (gpu->shared_per_sm / shared < ctas) ctas = (uint32_t)(gpu->shared_per_sm / shared);
    if (gpu->threads_per_sm / rounded < ctas) ctas = gpu->threads_per_sm / rounded;
    if (threads_by_registers(f) / rounded < ctas) ctas = threads_by_registers(f) / rounded;
    return ctas;
}

uint32_t function_clusters(const struct CUfunc_st *f, uint32_t size, uint32_t threads,
                           uint64_t dynamic_shared)
{
    uint32_t groups = gpu_clusters(&driver.settings.gpu, size);

    return (groups ? groups : 1) * function_ctas_per_sm(f, threads, dynamic_shared);
}

bool function_cluster(const struct CUfunc_st *f, uint32_t out[3])
{
    const uint32_t *compiled = entry_of(f)->reqnctapercluster;
    const uint32_t *dim = compiled[0] ? compiled : f->required_cluster;

    for (int i = 0; i < 3; i++) out[i] = dim[i] ? dim[i] : 1;
    return dim[0] || dim[1] || dim[2];
}

/* ---- attributes ---- */

static int get_attribute(const struct CUfunc_st *f, int attribute, int *value)
{
    const struct ptx_entry *e = entry_of(f);
    const struct gpu *gpu = &driver.settings.gpu;
    const uint32_t *cluster = e->reqnctapercluster[0] ? e->reqnctapercluster : f->required_cluster;
    uint32_t regs = function_registers(f), v;

    switch (attribute) {
    case HEWN_CU_FUNC_MAX_THREADS_PER_BLOCK: v = function_max_threads(f); break;
    case HEWN_CU_FUNC_SHARED_SIZE_BYTES: v = e->shared_bytes; break;
    case HEWN_CU_FUNC_CONST_SIZE_BYTES: v = (uint32_t)f->module->ptx->const_bytes; break;
    case HEWN_CU_FUNC_LOCAL_SIZE_BYTES: v = e->frame_bytes; break;
    case HEWN_CU_FUNC_NUM_REGS: v = regs ? regs : REGISTERS_UNBOUND; break;
    case HEWN_CU_FUNC_PTX_VERSION: v = target_arch(f->module->ptx->target); break;
    case HEWN_CU_FUNC_BINARY_VERSION: v = gpu->cc_major * 10 + gpu->cc_minor; break;
    case HEWN_CU_FUNC_CACHE_MODE_CA: v = 0; break;
    case HEWN_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES: v = f->max_dynamic_shared; break;
    case HEWN_CU_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT: v = (uint32_t)f->carveout; break;
    case HEWN_CU_FUNC_CLUSTER_SIZE_MUST_BE_SET:
        v = e->explicit_cluster || e->reqnctapercluster[0];
        break;
    case HEWN_CU_FUNC_REQUIRED_CLUSTER_WIDTH: v = cluster[0]; break;
    case HEWN_CU_FUNC_REQUIRED_CLUSTER_HEIGHT: v = cluster[1]; break;
    case HEWN_CU_FUNC_REQUIRED_CLUSTER_DEPTH: v = cluster[2]; break;
    case HEWN_CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        v = (uint32_t)f->non_portable_cluster;
        break;
    case HEWN_CU_FUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        v = (uint32_t)f->scheduling_policy;
        break;
    default: return HEWN_CU_INVALID_VALUE;
    }
    *value = (int)v;
    return 0;
}

static int set_dynamic_shared(struct CUfunc_st *f, int bytes)
{
    uint32_t fixed = entry_of(f)->shared_bytes;

    if (bytes < 0 || fixed + (uint32_t)bytes > driver.settings.gpu.shared_optin)
        return HEWN_CU_INVALID_VALUE;
    f->max_dynamic_shared = (uint32_t)bytes;
    return 0;
}

/* Cluster dimensions may be set at run time where the source names none (800 where it does). */
static int set_cluster(struct CUfunc_st *f, int axis, int value)
{
    if (entry_of(f)->reqnctapercluster[0]) return HEWN_CU_NOT_PERMITTED;
    if (value < 0 || value > CLUSTER_CTAS) return HEWN_CU_INVALID_VALUE;
    f->required_cluster[axis] = (uint32_t)value;
    return 0;
}

static int set_within(int *slot, int value, int low, int high)
{
    if (value < low || value > high) return HEWN_CU_INVALID_VALUE;
    *slot = value;
    return 0;
}

static int set_attribute(struct CUfunc_st *f, int attribute, int value)
{
    switch (attribute) {
    case HEWN_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES: return set_dynamic_shared(f, value);
    case HEWN_CU_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return set_within(&f->carveout, value, -1, 100);
    case HEWN_CU_FUNC_REQUIRED_CLUSTER_WIDTH: return set_cluster(f, 0, value);
    case HEWN_CU_FUNC_REQUIRED_CLUSTER_HEIGHT: return set_cluster(f, 1, value);
    case HEWN_CU_FUNC_REQUIRED_CLUSTER_DEPTH: return set_cluster(f, 2, value);
    case HEWN_CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        return set_within(&f->non_portable_cluster, value, 0, 1);
    case HEWN_CU_FUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return set_within(&f->scheduling_policy, value, 0, 2);
    default: return HEWN_CU_INVALID_VALUE; /* read-only, or none */
    }
}

static int param_info(const struct CUfunc_st *f, size_t index, size_t *offset, size_t *size)
{
    const struct ptx_entry *e = entry_of(f);

    if (!offset || index >= e->param_count) return HEWN_CU_INVALID_VALUE;
    *offset = e->params[index].offset;
    if (size) *size = e->params[index].bytes;
    return 0;
}

/* For calls that have none. */
static const char no_output;

/* Enters a call about a function (or kernel); `out` is what it must not lack. */
static int enter_function(struct call *call, unsigned needs, const void *handle, const void *out,
                          struct CUfunc_st **f)
{
    int rc = call_enter(call, needs);

    *f = rc ? NULL : handle_get(handle, HANDLE_FUNCTION);
    if (!rc && !out) rc = call->rc = HEWN_CU_INVALID_VALUE;
    if (!rc && !*f) rc = call->rc = HEWN_CU_INVALID_HANDLE;
    return rc;
}

int cuFuncGetAttribute(int *value, int attribute, hewn_cu_function function)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, CALL_PLAIN, function, value, &f)) return call.rc;
    return get_attribute(f, attribute, value);
}

int cuFuncSetAttribute(hewn_cu_function function, int attribute, int value)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, CALL_PLAIN, function, &no_output, &f)) return call.rc;
    return set_attribute(f, attribute, value);
}

int cuFuncSetCacheConfig(hewn_cu_function function, int config)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, CALL_PLAIN, function, &no_output, &f)) return call.rc;
    return config < 0 || config > 3 ? HEWN_CU_INVALID_VALUE : 0;
}

int cuFuncSetSharedMemConfig(hewn_cu_function function, int config)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, CALL_PLAIN, function, &no_output, &f)) return call.rc;
    return config < 0 || config > 2 ? HEWN_CU_INVALID_VALUE : 0;
}

int cuFuncGetModule(hewn_cu_module *module, hewn_cu_function function)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, CALL_PLAIN, function, module, &f)) return call.rc;
    *module = f->module;
    return 0;
}

int cuFuncGetName(const char **name, hewn_cu_function function)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, CALL_PLAIN, function, name, &f)) return call.rc;
    *name = entry_of(f)->name;
    return 0;
}

int cuFuncGetParamInfo(hewn_cu_function function, size_t index, size_t *offset, size_t *size)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, CALL_PLAIN, function, offset, &f)) return call.rc;
    return param_info(f, index, offset, size);
}

int cuFuncIsLoaded(int *state, hewn_cu_function function)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, CALL_PLAIN, function, state, &f)) return call.rc;
    *state = 1;
    return 0;
}

int cuFuncLoad(hewn_cu_function function)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    return enter_function(&call, CALL_PLAIN, function, &no_output, &f);
}

/* ---- kernels of a library ---- */

int cuKernelGetFunction(hewn_cu_function *function, hewn_cu_kernel kernel)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, CALL_PLAIN, kernel, function, &f)) return call.rc;
    *function = f;
    return 0;
}

int cuKernelGetLibrary(hewn_cu_library *library, hewn_cu_kernel kernel)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, NEED_INIT, kernel, library, &f)) return call.rc;
    *library = (hewn_cu_library)(void *)f->module;
    return 0;
}

int cuKernelGetName(const char **name, hewn_cu_kernel kernel)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, NEED_INIT, kernel, name, &f)) return call.rc;
    *name = entry_of(f)->name;
    return 0;
}

int cuKernelGetAttribute(int *value, int attribute, hewn_cu_kernel kernel, hewn_cu_device device)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, NEED_INIT, kernel, value, &f)) return call.rc;
    return device ? HEWN_CU_INVALID_DEVICE : get_attribute(f, attribute, value);
}

int cuKernelSetAttribute(int attribute, int value, hewn_cu_kernel kernel, hewn_cu_device device)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, NEED_INIT, kernel, &call, &f)) return call.rc;
    return device ? HEWN_CU_INVALID_DEVICE : set_attribute(f, attribute, value);
}

int cuKernelSetCacheConfig(hewn_cu_kernel kernel, int config, hewn_cu_device device)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, NEED_INIT, kernel, &call, &f)) return call.rc;
    if (device) return HEWN_CU_INVALID_DEVICE;
    return config < 0 || config > 3 ? HEWN_CU_INVALID_VALUE : 0;
}

int cuKernelGetParamInfo(hewn_cu_kernel kernel, size_t index, size_t *offset, size_t *size)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    if (enter_function(&call, NEED_INIT, kernel, offset, &f)) return call.rc;
    return param_info(f, index, offset, size);
}

/* ---- occupancy ---- */

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, hewn_cu_function function, int threads,
                                                size_t dynamic_shared)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads,
                                                                dynamic_shared, 0);
}

int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, hewn_cu_function function,
                                                         int threads, size_t dynamic_shared,
                                                         unsigned flags)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;

    if (enter_function(&call, CALL_PLAIN, function, blocks, &f)) return call.rc;
    if (threads < 1 || threads > MAX_THREADS || flags > 1) return HEWN_CU_INVALID_VALUE;
    *blocks = 0;
    if ((uint32_t)threads <= function_max_threads(f))
        *blocks = (int)function_ctas_per_sm(f, (uint32_t)threads, dynamic_shared);
    return 0;
}

int cuOccupancyMaxPotentialBlockSize(int *min_grid, int *block, hewn_cu_function function,
                                     size_t (*shared_of)(int block), size_t dynamic_shared,
                                     int limit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid, block, function, shared_of,
                                                     dynamic_shared, limit, 0);
}

int cuOccupancyMaxPotentialBlockSizeWithFlags(int *min_grid, int *block, hewn_cu_function function,
                                              size_t (*shared_of)(int block), size_t dynamic_shared,
                                              int limit, unsigned flags)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    uint32_t most = 0, threads;

    if (enter_function(&call, CALL_PLAIN, function, min_grid, &f)) return call.rc;
    if (!block || limit < 0 || flags > 1) return HEWN_CU_INVALID_VALUE;
    *block = *min_grid = 0;
    threads = function_max_threads(f);
    if (limit && (uint32_t)limit < threads) threads = (uint32_t)limit;
    while (threads) { /* most threads on the SM; among equals the largest block */
        size_t shared = shared_of ? shared_of((int)threads) : dynamic_shared;
        uint32_t ctas = function_ctas_per_sm(f, threads, shared);
        if (ctas * threads > most) {
            most = ctas * threads;
            *block = (int)threads;
            *min_grid = (int)(ctas * driver.settings.gpu.sm_count);
        }
        threads = (threads - 1) / WARP_LANES * WARP_LANES;
    }
    return 0;
}

int cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, hewn_cu_function function, int blocks,
                                            int threads)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    uint32_t share, fixed;

    if (enter_function(&call, CALL_PLAIN, function, bytes, &f)) return call.rc;
    if (blocks < 1 || threads < 1 || threads > MAX_THREADS) return HEWN_CU_INVALID_VALUE;
    if ((uint32_t)blocks > function_ctas_per_sm(f, (uint32_t)threads, 0))
        return HEWN_CU_INVALID_VALUE;
    share = driver.settings.gpu.shared_per_sm / (uint32_t)blocks;
    fixed = entry_of(f)->shared_bytes + SHARED_RESERVED;
    share = share > fixed ? share - fixed : 0;
    if (share > driver.settings.gpu.shared_optin - entry_of(f)->shared_bytes)
        share = driver.settings.gpu.shared_optin - entry_of(f)->shared_bytes;
    *bytes = share;
    return 0;
}

/* The product, or 0 where it is above `most` (or a factor is 0). */
static uint32_t bounded_volume(uint64_t x, uint64_t y, uint64_t z, uint32_t most)
{
    if (x > most || y > most || z > most || x * y * z > most) return 0;
    return (uint32_t)(x * y * z);
}

/* The cluster that a configuration asks for, in CTAs; the compiled one where it asks for none; 0
 * where it is too large. */
static uint32_t config_cluster(const struct CUfunc_st *f, const hewn_cu_launch_config *config)
{
    uint32_t most = f->non_portable_cluster ? CLUSTER_CTAS : PORTABLE_CLUSTER, fixed[3];

    for (unsigned i = 0; i < config->attribute_count; i++) {
        const hewn_cu_launch_attribute *a = &config->attributes[i];
        if (a->id == HEWN_CU_LAUNCH_CLUSTER_DIMENSION)
            return bounded_volume(a->value.cluster.x, a->value.cluster.y, a->value.cluster.z, most);
    }
    if (!function_cluster(f, fixed)) return 1;
    return bounded_volume(fixed[0], fixed[1], fixed[2], most);
}

int cuOccupancyMaxActiveClusters(int *clusters, hewn_cu_function function,
                                 const hewn_cu_launch_config *config)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    uint32_t size, threads;

    if (enter_function(&call, CALL_PLAIN, function, clusters, &f)) return call.rc;
    if (!config || (config->attribute_count && !config->attributes)) return HEWN_CU_INVALID_VALUE;
    size = config_cluster(f, config);
    if (!size) return HEWN_CU_INVALID_CLUSTER_SIZE;
    threads = bounded_volume(config->block_x, config->block_y, config->block_z, MAX_THREADS);
    if (!threads) return HEWN_CU_INVALID_VALUE;
    *clusters = 0;
    if (threads <= function_max_threads(f))
        *clusters = (int)function_clusters(f, size, threads, config->shared_bytes);
    return 0;
}

int cuOccupancyMaxPotentialClusterSize(int *size, hewn_cu_function function,
                                       const hewn_cu_launch_config *config)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    uint32_t most;

    if (enter_function(&call, CALL_PLAIN, function, size, &f)) return call.rc;
    if (!config) return HEWN_CU_INVALID_VALUE;
    most = f->non_portable_cluster ? CLUSTER_CTAS : PORTABLE_CLUSTER;
    if (entry_of(f)->maxclusterrank && entry_of(f)->maxclusterrank < most)
        most = entry_of(f)->maxclusterrank;
    *size = (int)most;
    return 0;
}
