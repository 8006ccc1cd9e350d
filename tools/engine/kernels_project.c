/* The kernel that multiplies up to 8 rows by a matrix of e4m3: its rules and its launch. */
#include "kernels_launch.h"

enum {
    OF_CTA = SM_SHARED_BYTES + 1024, /* what an SM has, of which the driver keeps 1,024 a CTA */
    HALF = OF_CTA / 2 - 1024 - ENGINE_PROJECT_STATIC - 128,
    LEAST_STAGES = 4, /* that make two CTAs of an SM worth while */
};

/* Warps of a row, 0 if eight are not enough: one for each 2,048 columns, more where rows are few. */
static uint32_t warps_of(const struct engine_project *a)
{
    uint32_t warps = 1;
    while (warps < ENGINE_PROJECT_WARPS && (warps * ENGINE_PROJECT_ROUNDED < (uint32_t)a->k ||
                                            warps * a->rows < ENGINE_PROJECT_WARPS))
        warps *= 2;
    return warps * ENGINE_PROJECT_ROUNDED < (uint32_t)a->k ? 0 : warps;
}

/* Half an SM's memory, so that the next launch's CTAs fit beside; or all of it. */
static uint32_t stages_of(uint32_t rows_bytes)
{
    uint32_t stages = rows_bytes < HALF ? (HALF - rows_bytes) / ENGINE_PROJECT_STAGE : 0;
    if (stages < LEAST_STAGES) stages = (ENGINE_PROJECT_SHARED - rows_bytes) / ENGINE_PROJECT_STAGE;
    return stages < ENGINE_PROJECT_STAGES ? stages : ENGINE_PROJECT_STAGES;
}

/* Of rows of e4m3; a ring of two stages must have room beside them. */
static int64_t rows_bytes(const struct engine_project *a)
{
    return a->rows * (a->k + ENGINE_PROJECT_PAD);
}

static int check(const struct engine_project *a, hewn_error *err)
{
    const int64_t unit = ENGINE_PROJECT_TILE;
    const int64_t of_x = a->x_scales ? 16 : ENGINE_UNIT;
    const int64_t columns = a->gated ? a->n / 2 : a->n;
    const struct engine_size sizes[] = {
        {"rows", a->rows, 0, ENGINE_PROJECT_ROWS, 1},
        {"k", a->k, ENGINE_PROJECT_PIECE,
         a->x_scales ? ENGINE_PROJECT_COLUMNS : ENGINE_PROJECT_WARPS * ENGINE_PROJECT_ROUNDED,
         ENGINE_PROJECT_PIECE},
        {"n", a->n, unit, ENGINE_PROJECT_N, unit},
        {"x_row", engine_stride(a->x_row, a->k), a->k, ENGINE_STRIDE, of_x},
        {"c_row", engine_stride(a->c_row, columns), columns, ENGINE_STRIDE, 1},
        {"d_row", engine_stride(a->d_row, columns), columns, ENGINE_STRIDE, 1},
        {"ctas", a->ctas, 1, INT32_MAX, 1},
    };
    const struct engine_address addresses[] = {
        {"x", a->x, 16, 1},
        {"x_scales", a->x_scales, 4, 0},
        {"w", a->w, 16, 0},
        {"b", a->b, 16, 1},
        {"b_scales", a->b_scales, 4, 1},
        {"bias", a->bias, 2, 0},
        {"c", a->c, 2, 0},
        {"d", a->d, 2, 1},
    };
    int status = engine_check_sizes(sizes, sizeof sizes / sizeof *sizes, err);
    if (status) return status;
    if (!(a->eps >= 0 && a->eps <= 1))
        return engine_fail(err, HEWN_ERR_ARGUMENT, "eps: %g is not in 0..1", a->eps);
    if (a->w && a->x_scales)
        return engine_fail(err, HEWN_ERR_ARGUMENT, "w: must be 0 beside x_scales");
    if (a->gated && (a->bias || a->c))
        return engine_fail(err, HEWN_ERR_ARGUMENT, "%s: must be 0 with gated", a->c ? "c" : "bias");
    if (rows_bytes(a) + 2 * ENGINE_PROJECT_STAGE > ENGINE_PROJECT_SHARED)
        return engine_fail(err, HEWN_ERR_ARGUMENT, "k: %lld is too much for %lld rows",
                           (long long)a->k, (long long)a->rows);
    return engine_check_addresses(addresses, sizeof addresses / sizeof *addresses, err);
}

int engine_project(const struct engine_kernels *k, const struct engine_project *a,
                   hewn_stream stream, hewn_error *err)
{
    const int64_t columns = a->gated ? a->n / 2 : a->n;
    int status = check(a, err);
    if (status || a->rows == 0) return status;
    const uint32_t held = (uint32_t)rows_bytes(a);
    struct engine_project_scalars s = {
        .x = a->x,
        .x_scales = a->x_scales,
        .w = a->w,
        .b = a->b,
        .b_scales = a->b_scales,
        .bias = a->bias,
        .c = a->c,
        .d = a->d,
        .x_row = (a->x_scales ? 1U : 2U) * (uint64_t)engine_stride(a->x_row, a->k),
        .c_row = engine_bytes(a->c_row, columns),
        .d_row = engine_bytes(a->d_row, columns),
        .rows = (uint32_t)a->rows,
        .k = (uint32_t)a->k,
        .half = a->gated ? (uint32_t)columns : 0,
        .tiles = (uint32_t)(a->n / ENGINE_PROJECT_TILE),
        .stages = stages_of(held),
        .warps = warps_of(a),
        .eps = (float)a->eps,
    };
    const struct engine_shape shape = {
        .kernel = ENGINE_project,
        .grid = {s.tiles < a->ctas ? s.tiles : (uint32_t)a->ctas, 1},
        .threads = ENGINE_PROJECT_THREADS,
        .shared = s.stages * ENGINE_PROJECT_STAGE + held,
    };
    void *params[] = {ENGINE_PROJECT_SCALARS(ENGINE_PARAM)};
    return engine_launch(k, &shape, params, stream, err);
}
