/* What the plans of all kernel families share. */
#include "plan.h"

#include "error.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { DESC_MOST = 1024 }; /* bytes: four times what the largest has, as structs grow */
#define X(type, last) _Static_assert(sizeof(type) <= DESC_MOST, #type ": room for a description");
HEWN_STRUCTS(X)
#undef X

int hewn_plan_create(size_t size, hewn_context *context, enum hewn_struct type, const void *desc,
                     hewn_plan_fill *fill, void *out, hewn_error *err)
{
    _Alignas(max_align_t) unsigned char taken[DESC_MOST];
    if (!context) return hewn_fail_null(err, "context");
    if (!out) return hewn_fail_null(err, "out");
    int status = hewn_struct_take(type, desc, taken, err);
    if (status) return status;
    void *plan = calloc(1, size);
    if (!plan) return hewn_fail(err, HEWN_ERR_MEMORY, "out of host memory for the plan");
    status = fill(plan, context, taken, err);
    if (status)
        free(plan);
    else
        memcpy(out, &plan, sizeof plan);
    return status;
}

int hewn_plan_take(const void *plan, enum hewn_struct type, const void *from, void *to,
                   hewn_error *err)
{
    return plan ? hewn_struct_take(type, from, to, err) : hewn_fail_null(err, "plan");
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

/* ---- the launch of a run -- */

void hewn_params_begin(struct hewn_params *p, hewn_cu_tensor_map *maps, size_t count)
{
    for (size_t i = 0; i < count; i++) p->at[i] = &maps[i];
    p->count = count;
}

void hewn_params_add(struct hewn_params *p, void *scalars, const char *sizes)
{
    char *at = scalars;
    for (; *sizes; at += *sizes++) p->at[p->count++] = at;
}

int hewn_plan_launch(const hewn_context *context, const struct hewn_loaded *loaded,
                     const hewn_cu_launch_config *config, hewn_stream stream,
                     struct hewn_params *params, hewn_error *err)
{
    hewn_cu_launch_config c = *config;
    c.stream = stream;
    return hewn_launch_config(context->driver, &c, loaded->function, params->at, err);
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
