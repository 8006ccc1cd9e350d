/* Products of few rows with constant weights: their rules and their launch. */
#include "kernels_launch.h"

enum { TILE = 16 }; /* rows of weights */

static int check(const struct engine_multiply *a, hewn_error *err)
{
    const int64_t k_most = (int64_t)ENGINE_MULTIPLY_CHUNK *
                           (a->norm ? ENGINE_MULTIPLY_KEPT : INT32_MAX / 2 / ENGINE_MULTIPLY_CHUNK);
    const struct engine_size sizes[] = {
        {"rows", a->rows, 0, ENGINE_MULTIPLY_ROWS, 1},
        {"k", a->k, ENGINE_MULTIPLY_CHUNK, k_most, ENGINE_MULTIPLY_CHUNK},
        {"n", a->n, TILE, INT32_MAX / 2, TILE},
        {"x_row", engine_stride(a->x_row, a->k), a->k, ENGINE_STRIDE, ENGINE_UNIT},
        {"d_row", engine_stride(a->d_row, a->n), a->n, ENGINE_STRIDE, 1},
        {"ctas", a->ctas, 1, INT32_MAX, 1},
    };
    const struct engine_address addresses[] = {
        {"x", a->x, 16, 1},      {"norm", a->norm, 16, 0}, {"weights", a->weights, 16, 1},
        {"bias", a->bias, 2, 0}, {"c", a->c, 2, 0},        {"d", a->d, 2, 1},
    };
    if (!(a->eps >= 0 && a->eps <= 1))
        return engine_fail(err, HEWN_ERR_ARGUMENT, "eps: %g is not in 0..1", a->eps);
    int status = engine_check_sizes(sizes, sizeof sizes / sizeof *sizes, err);
    return status ? status
                  : engine_check_addresses(addresses, sizeof addresses / sizeof *addresses, err);
}

int engine_multiply(const struct engine_kernels *k, const struct engine_multiply *a,
                    hewn_stream stream, hewn_error *err)
{
    int status = check(a, err);
    if (status || a->rows == 0) return status;
    const int64_t tiles = a->n / TILE;
    struct engine_multiply_scalars s = {
        .x = a->x,
        .norm = a->norm,
        .weights = a->weights,
        .bias = a->bias,
        .c = a->c,
        .d = a->d,
        .x_row = engine_bytes(a->x_row, a->k),
        .d_row = engine_bytes(a->d_row, a->n),
        .rows = (uint32_t)a->rows,
        .chunks = (uint32_t)(a->k / ENGINE_MULTIPLY_CHUNK),
        .tiles = (uint32_t)tiles,
        .eps = (float)a->eps,
    };
    const struct engine_shape shape = {
        .kernel = ENGINE_multiply,
        .grid = {(uint32_t)(tiles < a->ctas ? tiles : a->ctas), 1},
        .threads = ENGINE_MULTIPLY_THREADS,
        .shared = ENGINE_MULTIPLY_SHARED,
    };
    void *params[] = {ENGINE_MULTIPLY_SCALARS(ENGINE_PARAM)};
    return engine_launch(k, &shape, params, stream, err);
}
