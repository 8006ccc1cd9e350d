/* The kernels that send rows to experts: their rules and launches. */
#include "kernels_launch.h"

#include <stddef.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

static int check_route(const struct engine_route *a, hewn_error *err)
{
    const int64_t most = a->groups > 0 ? a->experts / a->groups * a->groups_kept : 0;
    const struct engine_size sizes[] = {
        {"rows", a->rows, 0, INT32_MAX, 1},
        {"experts", a->experts, 1, ENGINE_ROUTE_EXPERTS, a->groups},
        {"groups", a->groups, 1, ENGINE_ROUTE_GROUPS, 1},
        {"groups_kept", a->groups_kept, 1, a->groups, 1},
        {"choices", a->choices, 1, most < ENGINE_ROUTE_CHOICES ? most : ENGINE_ROUTE_CHOICES, 1},
        {"logits_row", engine_stride(a->logits_row, a->experts), a->experts, ENGINE_STRIDE, 1},
        {"sigmoid", a->sigmoid, 0, 1, 1},
        {"normed", a->normed, 0, 1, 1},
    };
    const struct engine_address addresses[] = {
        {"logits", a->logits, 4, 1},       {"bias", a->bias, 4, 0},
        {"positions", a->positions, 4, 0}, {"choice", a->choice, 4, 1},
        {"weights", a->weights, 4, 1},
    };
    int status = engine_check_sizes(sizes, COUNT(sizes), err);
    if (status) return status;
    if (a->sigmoid && a->groups_kept < a->groups && a->experts < 2 * a->groups)
        return engine_fail(err, HEWN_ERR_ARGUMENT,
                           "experts: %lld are not two for each of %lld groups",
                           (long long)a->experts, (long long)a->groups);
    return engine_check_addresses(addresses, COUNT(addresses), err);
}

int engine_route(const struct engine_kernels *k, const struct engine_route *a, hewn_stream stream,
                 hewn_error *err)
{
    int status = check_route(a, err);
    if (status || a->rows == 0) return status;
    struct engine_route_scalars s = {
        .logits = a->logits,
        .bias = a->bias,
        .positions = a->positions,
        .choice = a->choice,
        .weights = a->weights,
        .logits_row = 4 * (uint64_t)engine_stride(a->logits_row, a->experts),
        .rows = (uint32_t)a->rows,
        .experts = (uint32_t)a->experts,
        .choices = (uint32_t)a->choices,
        .groups = (uint32_t)a->groups,
        .groups_kept = (uint32_t)a->groups_kept,
        .group_experts = (uint32_t)(a->experts / a->groups),
        .sigmoid = (uint32_t)a->sigmoid,
        .normed = (uint32_t)a->normed,
        .scale = (float)a->scale,
    };
    const struct engine_shape shape = {
        .kernel = ENGINE_route,
        .grid = {(s.rows + ENGINE_ROUTE_WARPS - 1) / ENGINE_ROUTE_WARPS, 1},
        .threads = ENGINE_ROUTE_THREADS,
        .shared = 8 * ENGINE_ROUTE_WARPS * s.experts,
    };
    void *params[] = {ENGINE_ROUTE_SCALARS(ENGINE_PARAM)};
    return engine_launch(k, &shape, params, stream, err);
}

int engine_place(const struct engine_kernels *k, const struct engine_place *a, hewn_stream stream,
                 hewn_error *err)
{
    const struct engine_size sizes[] = {
        {"choices", a->choices, 1, INT32_MAX, 1},
        {"rows", a->rows, 0, a->choices > 0 ? INT32_MAX / a->choices : 0, 1},
        {"experts", a->experts, 1, 65536, 1},
    };
    const struct engine_address addresses[] = {
        {"choice", a->choice, 4, 1},
        {"offsets", a->offsets, 4, 1},
        {"index", a->index, 4, 1},
        {"place", a->place, 4, 1},
    };
    int status = engine_check_sizes(sizes, COUNT(sizes), err);
    if (!status) status = engine_check_addresses(addresses, COUNT(addresses), err);
    if (status) return status;
    struct engine_place_scalars s = {
        .choice = a->choice,
        .offsets = a->offsets,
        .index = a->index,
        .place = a->place,
        .count = (uint32_t)(a->rows * a->choices),
        .choices = (uint32_t)a->choices,
        .experts = (uint32_t)a->experts,
    };
    const struct engine_shape shape = {
        .kernel = ENGINE_place,
        .grid = {(s.experts + ENGINE_PLACE_WARPS - 1) / ENGINE_PLACE_WARPS, 1},
        .threads = ENGINE_PLACE_THREADS,
    };
    void *params[] = {ENGINE_PLACE_SCALARS(ENGINE_PARAM)};
    return engine_launch(k, &shape, params, stream, err);
}
