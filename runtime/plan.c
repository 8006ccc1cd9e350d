/* What the plans of all kernel families share. */
#include "plan.h"

#include "error.h"

#include <stdlib.h>

void *hewn_plan_begin(size_t size, const hewn_context *context, enum hewn_struct type,
                      const void *desc, void *taken, const void *out, int *status, hewn_error *err)
{
    void *plan = NULL;
    if (!context)
        *status = hewn_fail(err, HEWN_ERR_ARGUMENT, "context: must not be NULL");
    else if (!out)
        *status = hewn_fail(err, HEWN_ERR_ARGUMENT, "out: must not be NULL");
    else
        *status = hewn_struct_take(type, desc, taken, err);
    if (*status) return NULL;
    plan = calloc(1, size);
    if (!plan) *status = hewn_fail(err, HEWN_ERR_MEMORY, "out of host memory for the plan");
    return plan;
}

/* ---- the kernel -- */

int hewn_plan_choose(const hewn_context *context, const hewn_family *family, const char *name,
                     const hewn_module **out, hewn_error *err)
{
    *out = hewn_family_choose(family, name, context->info.cc_major, context->info.cc_minor);
    if (*out) return HEWN_OK;
    hewn_error_set_no_module(context, family, name, err);
    return HEWN_ERR_NO_MODULE;
}

int hewn_plan_load(hewn_context *context, const hewn_family *family, const char *name,
                   uint32_t dynamic_shared, const struct hewn_loaded **out, hewn_error *err)
{
    const hewn_module *module = NULL;
    int status = hewn_plan_choose(context, family, name, &module, err);
    return status ? status : hewn_load_kernel(context, module, dynamic_shared, out, err);
}

int hewn_plan_need_maps(const hewn_context *context, const char *name, hewn_error *err)
{
    if (context->driver->fn.tensor_map_encode_tiled) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_SYMBOL, "%s: the driver lacks cuTensorMapEncodeTiled", name);
}

/* ---- tensor maps -- */

int hewn_plan_prepare_maps(const hewn_context *context, struct hewn_map *maps,
                           const char *const *names, size_t count, hewn_error *err)
{
    for (size_t i = 0; i < count; i++) {
        hewn_cu_result r = hewn_map_prepare(context->driver, &maps[i]);
        if (r)
            return hewn_fail_driver(err, context->driver, r, "cuTensorMapEncodeTiled", "%s",
                                    names[i]);
    }
    return HEWN_OK;
}

int hewn_plan_place_maps(const hewn_context *context, const struct hewn_map *maps,
                         const char *const *names, const hewn_deviceptr *at, size_t count,
                         hewn_cu_tensor_map *placed, hewn_error *err)
{
    const hewn_driver *driver = context->driver;
    for (size_t i = 0; i < count; i++) {
        hewn_cu_result r = hewn_map_place(driver, &maps[i], at[i], &placed[i]);
        if (r)
            return hewn_fail_driver(err, driver, r, hewn_map_call(driver), "%s at 0x%llx", names[i],
                                    at[i]);
    }
    return HEWN_OK;
}

/* ---- addresses of a run -- */

int hewn_address_check(const char *prefix, const struct hewn_address *a, hewn_error *err)
{
    if (a->need == ADDRESS_MUST && a->at == 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s%s: address must not be 0", prefix, a->name);
    if (a->need == ADDRESS_NONE && a->at != 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s%s: address 0x%llx must be 0, because the plan uses none", prefix,
                         a->name, a->at);
    if (a->at & (a->align - 1))
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s%s: address 0x%llx is not a multiple of %u",
                         prefix, a->name, a->at, a->align);
    if (a->at && a->span > UINT64_MAX - a->at)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s%s: address 0x%llx and %llu B run past the end of memory", prefix,
                         a->name, a->at, (unsigned long long)a->span);
    return HEWN_OK;
}

int hewn_fail_overlap(const char *name, hewn_deviceptr at, uint64_t span, const char *other,
                      hewn_deviceptr other_at, uint64_t other_span, hewn_error *err)
{
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %llu B at 0x%llx overlap %s, %llu B at 0x%llx",
                     name, (unsigned long long)span, at, other, (unsigned long long)other_span,
                     other_at);
}

static int check_apart(const struct hewn_address *a, const struct hewn_address *b, hewn_error *err)
{
    if (!a->at || !b->at || !a->span || !b->span) return HEWN_OK;
    if (hewn_ranges_apart(a->at, a->span, b->at, b->span)) return HEWN_OK;
    return hewn_fail_overlap(a->name, a->at, a->span, b->name, b->at, b->span, err);
}

int hewn_addresses_check(const struct hewn_address *list, size_t count, hewn_error *err)
{
    int status = HEWN_OK;
    for (size_t i = 0; !status && i < count; i++) status = hewn_address_check("", &list[i], err);
    for (size_t i = 0; !status && i < count; i++)
        for (size_t j = 0; !status && list[i].written && j < count; j++)
            if (j < i || (j > i && !list[j].written)) status = check_apart(&list[i], &list[j], err);
    return status;
}
