/* Launching: a shape checked against the device's limits, attributes on the stack, one driver call. */
#include "context.h"

#include "error.h"
#include "structs.h"

#include <stdint.h>

enum {
    MAX_ATTRIBUTES = 3,
    MAX_CLUSTER = 16, /* CTAs; more than 8 only where the function's attribute allows it */
    DEPENDENT_LAUNCH_CC = 9
};

static const char axes[] = "xyz";

static int check_axis(const char *what, int axis, uint32_t value, int limit, hewn_error *err)
{
    if (value >= 1 && value <= (uint32_t)limit) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s.%c: %u is not in 1..%d", what, axes[axis], value,
                     limit);
}

static int check_cluster(const hewn_context *context, const hewn_launch_desc *d, hewn_error *err)
{
    uint64_t ctas = 1;
    for (int i = 0; i < 3; i++) {
        int status = check_axis("cluster", i, d->cluster[i], MAX_CLUSTER, err);
        if (status) return status;
        if (d->grid[i] % d->cluster[i])
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "grid.%c: %u is not a multiple of cluster.%c, %u", axes[i], d->grid[i],
                             axes[i], d->cluster[i]);
        ctas *= d->cluster[i];
    }
    if (ctas > MAX_CLUSTER)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "cluster: %ux%ux%u is %llu CTAs, more than %d",
                         d->cluster[0], d->cluster[1], d->cluster[2], (unsigned long long)ctas,
                         MAX_CLUSTER);
    if (!context->limits.cluster_launch)
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "cluster: device %d (compute capability %d.%d) has no clusters",
                         context->info.ordinal, context->info.cc_major, context->info.cc_minor);
    return HEWN_OK;
}

static int has_cluster(const hewn_launch_desc *d)
{
    return d->cluster[0] || d->cluster[1] || d->cluster[2];
}

static int check_shape(const hewn_context *context, const hewn_launch_desc *d, hewn_error *err)
{
    const struct hewn_limits *limits = &context->limits;
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        int status = check_axis("grid", i, d->grid[i], limits->grid[i], err);
        if (!status) status = check_axis("block", i, d->block[i], limits->block[i], err);
        if (status) return status;
        threads *= d->block[i];
    }
    if (threads > (uint64_t)limits->threads_per_block)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "block: %ux%ux%u is %llu threads, more than %d",
                         d->block[0], d->block[1], d->block[2], (unsigned long long)threads,
                         limits->threads_per_block);
    if (d->dynamic_shared > (uint32_t)context->info.max_shared_per_block)
        return hewn_fail(
            err, HEWN_ERR_LIMIT,
            "dynamic_shared: %u B is more than the %d B a block of this device may have",
            d->dynamic_shared, context->info.max_shared_per_block);
    if (d->cooperative && !limits->cooperative_launch)
        return hewn_fail(err, HEWN_ERR_LIMIT, "cooperative: device %d has no cooperative launch",
                         context->info.ordinal);
    if (d->programmatic && context->info.cc_major < DEPENDENT_LAUNCH_CC)
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "programmatic: needs compute capability %d.0, device %d has %d.%d",
                         DEPENDENT_LAUNCH_CC, context->info.ordinal, context->info.cc_major,
                         context->info.cc_minor);
    return has_cluster(d) ? check_cluster(context, d, err) : HEWN_OK;
}

/* Other values are left to later versions. */
static int check_flag(const char *name, int value, hewn_error *err)
{
    if (value == 0 || value == 1) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %d is neither 0 nor 1", name, value);
}

static unsigned set_attributes(const hewn_launch_desc *d, hewn_cu_launch_attribute *attributes)
{
    unsigned n = 0;
    if (has_cluster(d)) {
        attributes[n].id = HEWN_CU_LAUNCH_CLUSTER_DIMENSION;
        attributes[n].value.cluster.x = d->cluster[0];
        attributes[n].value.cluster.y = d->cluster[1];
        attributes[n++].value.cluster.z = d->cluster[2];
    }
    if (d->cooperative) {
        attributes[n].id = HEWN_CU_LAUNCH_COOPERATIVE;
        attributes[n++].value.flag = 1;
    }
    if (d->programmatic) {
        attributes[n].id = HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION;
        attributes[n++].value.flag = 1;
    }
    return n;
}

int hewn_launch_config(const hewn_driver *driver, const hewn_cu_launch_config *c,
                       hewn_cu_function function, void **params, hewn_error *err)
{
    const struct hewn_driver_table *fn = &driver->fn;
    if (fn->launch_kernel_ex) {
        hewn_cu_result r = fn->launch_kernel_ex(c, function, params, NULL);
        return r ? hewn_fail_driver(err, driver, r, "cuLaunchKernelEx", "launch") : HEWN_OK;
    }
    if (c->attribute_count > 0)
        return hewn_fail(err, HEWN_ERR_SYMBOL,
                         "cluster, cooperative, programmatic: the driver lacks cuLaunchKernelEx");
    hewn_cu_result r =
        fn->launch_kernel(function, c->grid_x, c->grid_y, c->grid_z, c->block_x, c->block_y,
                          c->block_z, c->shared_bytes, c->stream, params, NULL);
    return r ? hewn_fail_driver(err, driver, r, "cuLaunchKernel", "launch") : HEWN_OK;
}

int hewn_function_launch(const hewn_context *context, hewn_function function,
                         const hewn_launch_desc *desc, void **params, hewn_error *err)
{
    if (!context) return hewn_fail_null(err, "context");
    if (!function) return hewn_fail_null(err, "function");
    hewn_launch_desc d;
    int status = hewn_struct_take(HEWN_STRUCT_hewn_launch_desc, desc, &d, err);
    if (!status) status = check_flag("cooperative", d.cooperative, err);
    if (!status) status = check_flag("programmatic", d.programmatic, err);
    if (!status) status = check_shape(context, &d, err);
    if (status) return status;
    hewn_cu_launch_attribute attributes[MAX_ATTRIBUTES] = {{0}};
    hewn_cu_launch_config config = {
        .grid_x = d.grid[0],
        .grid_y = d.grid[1],
        .grid_z = d.grid[2],
        .block_x = d.block[0],
        .block_y = d.block[1],
        .block_z = d.block[2],
        .shared_bytes = d.dynamic_shared,
        .stream = d.stream,
        .attributes = attributes,
        .attribute_count = set_attributes(&d, attributes),
    };
    return hewn_launch_config(context->driver, &config, function, params, err);
}

int hewn_function_allow_shared(const hewn_context *context, hewn_function function, uint32_t bytes,
                               hewn_error *err)
{
    if (!context) return hewn_fail_null(err, "context");
    if (!function) return hewn_fail_null(err, "function");
    const hewn_driver *driver = context->driver;
    int fixed = 0;
    hewn_cu_result r =
        driver->fn.func_get_attribute(&fixed, HEWN_CU_FUNC_SHARED_SIZE_BYTES, function);
    if (r) return hewn_fail_driver(err, driver, r, "cuFuncGetAttribute", "static shared memory");
    int limit = context->info.max_shared_per_block;
    if ((int64_t)bytes + fixed > limit)
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "bytes: %u B dynamic and %d B static shared memory are more than the %d B "
                         "a block of this device may have",
                         bytes, fixed, limit);
    r = driver->fn.func_set_attribute(function, HEWN_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      (int)bytes);
    if (r)
        return hewn_fail_driver(err, driver, r, "cuFuncSetAttribute",
                                "%u B of dynamic shared memory", bytes);
    return HEWN_OK;
}
