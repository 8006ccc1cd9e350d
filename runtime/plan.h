/*
 * What the plans of all kernel families share: how one is made, how its kernel and its tensor maps are found,
 * and how a run's addresses are judged.
 */
#ifndef HEWN_RUNTIME_PLAN_H
#define HEWN_RUNTIME_PLAN_H

#include "context.h"
#include "structs.h"

/*
 * The first part of every plan_create: judges the arguments, copies the caller's description, a struct of
 * type `type`, to `taken`, and gives `size` zeroed bytes for the plan. NULL with *status set on failure. The
 * caller fills the plan and hands it over, or frees it.
 */
void *hewn_plan_begin(size_t size, const hewn_context *context, enum hewn_struct type,
                      const void *desc, void *taken, const void *out, int *status, hewn_error *err);

/* The family's module of that name for the context's device, or HEWN_ERR_NO_MODULE. */
int hewn_plan_choose(const hewn_context *context, const hewn_family *family, const char *name,
                     const hewn_module **out, hewn_error *err);
/* The same, its kernel loaded and allowed that many bytes of dynamic shared memory. */
int hewn_plan_load(hewn_context *context, const hewn_family *family, const char *name,
                   uint32_t dynamic_shared, const struct hewn_loaded **out, hewn_error *err);
/* Whether the driver can encode the tensor maps of the kernel `name`. */
int hewn_plan_need_maps(const hewn_context *context, const char *name, hewn_error *err);

/* `count` maps: encoded without addresses, and placed at addresses. `names` are for messages. */
int hewn_plan_prepare_maps(const hewn_context *context, struct hewn_map *maps,
                           const char *const *names, size_t count, hewn_error *err);
int hewn_plan_place_maps(const hewn_context *context, const struct hewn_map *maps,
                         const char *const *names, const hewn_deviceptr *at, size_t count,
                         hewn_cu_tensor_map *placed, hewn_error *err);

/* ---- addresses of a run -- */

enum hewn_need { ADDRESS_NONE = -1, ADDRESS_MAY = 0, ADDRESS_MUST = 1 };

struct hewn_address {
    const char *name;
    hewn_deviceptr at;
    enum hewn_need need;
    uint32_t align; /* a power of two: a run judges up to twenty addresses */
    uint64_t span;  /* bytes; 0: too few to be compared with others */
    int written;    /* 1: may overlap none of the others */
};

static inline enum hewn_need hewn_needed(int condition)
{
    return condition ? ADDRESS_MUST : ADDRESS_NONE;
}

/* The rules of one address. `prefix` stands before its name in messages. */
int hewn_address_check(const char *prefix, const struct hewn_address *a, hewn_error *err);
/* Whether two ranges share no byte, and the words for two that do. */
static inline int hewn_ranges_apart(hewn_deviceptr x, uint64_t x_span, hewn_deviceptr y,
                                    uint64_t y_span)
{
    return x + x_span <= y || y + y_span <= x;
}
int hewn_fail_overlap(const char *name, hewn_deviceptr at, uint64_t span, const char *other,
                      hewn_deviceptr other_at, uint64_t other_span, hewn_error *err);
/* All rules: each address by itself, then what is written against everything else. */
int hewn_addresses_check(const struct hewn_address *list, size_t count, hewn_error *err);

#endif
