/*
 * What the plans of all kernel families share: how one is made, how its kernel and its tensor maps are found,
 * and how a run's addresses are judged.
 */
#ifndef HEWN_RUNTIME_PLAN_H
#define HEWN_RUNTIME_PLAN_H

#include "context.h"
#include "structs.h"

/* What makes a plan, zeroed before, of a description in this version's size. It keeps nothing where it fails. */
typedef int hewn_plan_fill(void *plan, hewn_context *context, const void *desc, hewn_error *err);
/*
 * Every plan_create: judges the arguments, fills a plan of `size` bytes by the caller's description, a struct of
 * type `type`, and hands it over to *out, the address of a pointer to a plan.
 */
int hewn_plan_create(size_t size, hewn_context *context, enum hewn_struct type, const void *desc,
                     hewn_plan_fill *fill, void *out, hewn_error *err);
/* How other calls begin: hewn_struct_take, where there is a plan. */
int hewn_plan_take(const void *plan, enum hewn_struct type, const void *from, void *to,
                   hewn_error *err);

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

/* ---- the launch of a run -- */

/* The addresses of a kernel's parameters, in their order. */
enum { HEWN_PARAMS_MOST = 80 };
struct hewn_params {
    void *at[HEWN_PARAMS_MOST];
    size_t count;
};
/* A list of scalars as one string, of their sizes: LIST(HEWN_SCALAR_SIZE). */
#define HEWN_SCALAR_SIZE(type, name, rule) HEWN_SCALAR_SIZE_##type
#define HEWN_SCALAR_SIZE_u64               "\10"
#define HEWN_SCALAR_SIZE_u32               "\4"
#define HEWN_SCALAR_SIZE_f32               "\4"

/* The first ones are `count` tensor maps. */
void hewn_params_begin(struct hewn_params *p, hewn_cu_tensor_map *maps, size_t count);
/* Behind them the fields of `scalars`, which lie one behind another without padding. */
void hewn_params_add(struct hewn_params *p, void *scalars, const char *sizes);
int hewn_plan_launch(const hewn_context *context, const struct hewn_loaded *loaded,
                     const hewn_cu_launch_config *config, hewn_stream stream,
                     struct hewn_params *params, hewn_error *err);

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
