/* What the host's side of the engine's kernels shares: rules of arguments, launches. */
#ifndef HEWN_ENGINE_KERNELS_LAUNCH_H
#define HEWN_ENGINE_KERNELS_LAUNCH_H

#include "kernels.h"

#include "../../ptx/inc/engine.plan.h"

#include <stddef.h>

#define ENGINE_STRIDE    (INT64_C(1) << 40) /* at most, in elements */
#define ENGINE_COLUMNS   (8 * 512 * 65535)  /* of swiglu: grid.y */
#define ENGINE_HEADS     65536
#define ENGINE_STOPS     1024
#define ENGINE_PROJECT_N (1 << 26) /* rows of b */

/* The kernels' parameters, as structs. */
#define ENGINE_SCALAR_u64                     uint64_t
#define ENGINE_SCALAR_u32                     uint32_t
#define ENGINE_SCALAR_f32                     float
#define ENGINE_SCALAR_FIELD(type, name, rule) ENGINE_SCALAR_##type name;
struct engine_norm_scalars {
    ENGINE_NORM_SCALARS(ENGINE_SCALAR_FIELD)
};
struct engine_rope_scalars {
    ENGINE_ROPE_SCALARS(ENGINE_SCALAR_FIELD)
};
struct engine_attend_scalars {
    ENGINE_ATTEND_SCALARS(ENGINE_SCALAR_FIELD)
};
struct engine_multiply_scalars {
    ENGINE_MULTIPLY_SCALARS(ENGINE_SCALAR_FIELD)
};
struct engine_swiglu_scalars {
    ENGINE_SWIGLU_SCALARS(ENGINE_SCALAR_FIELD)
};
struct engine_quant_scalars {
    ENGINE_QUANT_SCALARS(ENGINE_SCALAR_FIELD)
};
struct engine_project_scalars {
    ENGINE_PROJECT_SCALARS(ENGINE_SCALAR_FIELD)
};
struct engine_sample_scalars {
    ENGINE_SAMPLE_SCALARS(ENGINE_SCALAR_FIELD)
};
struct engine_advance_scalars {
    ENGINE_ADVANCE_SCALARS(ENGINE_SCALAR_FIELD)
};
struct engine_route_scalars {
    ENGINE_ROUTE_SCALARS(ENGINE_SCALAR_FIELD)
};
struct engine_place_scalars {
    ENGINE_PLACE_SCALARS(ENGINE_SCALAR_FIELD)
};
struct engine_latent_scalars {
    ENGINE_LATENT_SCALARS(ENGINE_SCALAR_FIELD)
};
struct engine_exchange_scalars {
    ENGINE_EXCHANGE_SCALARS(ENGINE_SCALAR_FIELD)
};
/* The address of parameter `name` of scalars `s`, for a list of them. */
#define ENGINE_PARAM(type, name, rule) &s.name,

/* The fields of scalars that say where a cache lies, in an initialiser. */
#define ENGINE_SET_CACHE(c)                                                               \
    .rotation = (c)->rotation, .q_norm = (c)->q_norm, .k_norm = (c)->k_norm, .k = (c)->k, \
    .v = (c)->v, .table = (c)->table, .page_row = 2 * (uint64_t)(c)->page,                \
    .head_row = 2 * (uint64_t)(c)->head, .token_row = 2 * (uint64_t)(c)->token,           \
    .pages = (uint32_t)(c)->pages, .table_width = (uint32_t)(c)->table_width,             \
    .eps = (float)(c)->eps

struct engine_size { /* an argument and its range */
    const char *name;
    int64_t value, least, most, multiple;
};
struct engine_address {
    const char *name;
    hewn_deviceptr at;
    uint32_t align;
    int must; /* 0: may be 0 */
};
struct engine_shape { /* of a launch */
    int kernel;       /* ENGINE_norm, .. */
    uint32_t grid[2], threads, shared, cluster;
};

__attribute__((format(printf, 3, 4))) int engine_fail(hewn_error *err, int status,
                                                      const char *format, ...);
int engine_check_sizes(const struct engine_size *list, size_t count, hewn_error *err);
int engine_check_addresses(const struct engine_address *list, size_t count, hewn_error *err);
/* `strip`: what page_size is a multiple of; `keys`: of a sequence or a page, at most; `width`: of the table. */
int engine_check_cache(const struct engine_cache *c, int64_t strip, int64_t keys, int64_t width,
                       hewn_error *err);
int engine_launch(const struct engine_kernels *k, const struct engine_shape *s, void **params,
                  hewn_stream stream, hewn_error *err);

/* A stride in elements, or what 0 stands for; the same in bytes of bf16. */
static inline int64_t engine_stride(int64_t stride, int64_t otherwise)
{
    return stride ? stride : otherwise;
}
static inline uint64_t engine_bytes(int64_t stride, int64_t otherwise)
{
    return 2 * (uint64_t)engine_stride(stride, otherwise);
}

#endif
