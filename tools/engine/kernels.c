/* The engine's kernels: their rules and launches. What they expect is in ptx/inc/engine.plan.h. */
#include "kernels_launch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int engine_fail(hewn_error *err, int status, const char *format, ...)
{
    va_list args;
    if (!err) return status;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    err->status = status;
    err->driver_code = 0;
    return status;
}

int engine_check_sizes(const struct engine_size *list, size_t count, hewn_error *err)
{
    for (const struct engine_size *s = list; s < list + count; s++) {
        if (s->value < s->least || s->value > s->most)
            return engine_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is not in %lld..%lld", s->name,
                               (long long)s->value, (long long)s->least, (long long)s->most);
        if (s->multiple > 1 && s->value % s->multiple)
            return engine_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is not a multiple of %lld",
                               s->name, (long long)s->value, (long long)s->multiple);
    }
    return HEWN_OK;
}

int engine_check_addresses(const struct engine_address *list, size_t count, hewn_error *err)
{
    for (const struct engine_address *a = list; a < list + count; a++) {
        if (!a->at && a->must)
            return engine_fail(err, HEWN_ERR_ARGUMENT, "%s: must not be 0", a->name);
        if (a->at % a->align)
            return engine_fail(err, HEWN_ERR_ARGUMENT, "%s: 0x%llx is not a multiple of %u",
                               a->name, a->at, a->align);
    }
    return HEWN_OK;
}

int engine_launch(const struct engine_kernels *k, const struct engine_shape *s, void **params,
                  hewn_stream stream, hewn_error *err)
{
    const hewn_launch_desc desc = {
        .struct_size = sizeof desc,
        .grid = {s->grid[0], s->grid[1], 1},
        .block = {s->threads, 1, 1},
        .cluster = {s->cluster, s->cluster ? 1 : 0, s->cluster ? 1 : 0},
        .dynamic_shared = s->shared,
        .programmatic = 1,
        .stream = stream,
    };
    return hewn_function_launch(k->context, k->function[s->kernel], &desc, params, err);
}

/* ---- loading -- */

static const struct {
    const char *module;
    uint32_t shared; /* dynamic, at most */
} kernels[] = {
#define KERNEL(name, module, shared) {module, shared},
    ENGINE_KERNELS(KERNEL)
#undef KERNEL
};

static int find(struct engine_kernels *k, size_t which, hewn_error *err)
{
    const hewn_family *family = hewn_engine_family();
    hewn_module_info info = {.struct_size = sizeof info};
    for (size_t i = 0; i < hewn_family_count(family); i++) {
        const hewn_module *module = hewn_family_module(family, i);
        int status = hewn_module_describe(module, &info, err);
        if (status) return status;
        k->function[which] = hewn_module_function(k->context, module);
        if (k->function[which] && strcmp(info.name, kernels[which].module) == 0)
            return kernels[which].shared
                       ? hewn_function_allow_shared(k->context, k->function[which],
                                                    kernels[which].shared, err)
                       : HEWN_OK;
    }
    return engine_fail(err, HEWN_ERR_NO_MODULE, "%s: the device has no such kernel",
                       kernels[which].module);
}

int engine_kernels_open(struct engine_kernels *k, hewn_context *context, hewn_error *err)
{
    hewn_device_info info = {.struct_size = sizeof info};
    int status = hewn_family_preload(context, hewn_engine_family(), err);
    if (!status) status = hewn_context_describe_device(context, &info, err);
    memset(k, 0, sizeof *k);
    k->context = context;
    k->sms = info.sm_count;
    for (size_t i = 0; !status && i < ENGINE_KERNEL_COUNT; i++) status = find(k, i, err);
    return status;
}

/* ---- norm -- */

static int check_norm(const struct engine_norm *a, hewn_error *err)
{
    const struct engine_size sizes[] = {
        {"rows", a->rows, 0, INT32_MAX, 1},
        {"x_rows", a->x_rows, a->index ? 0 : a->rows, INT32_MAX, 1},
        {"hidden", a->hidden, ENGINE_UNIT, ENGINE_NORM_HIDDEN, ENGINE_UNIT},
        {"x_row", engine_stride(a->x_row, a->hidden), a->hidden, ENGINE_STRIDE, ENGINE_UNIT},
        {"y_row", engine_stride(a->y_row, a->hidden), a->hidden, ENGINE_STRIDE, ENGINE_UNIT},
        {"h_row", engine_stride(a->h_row, a->hidden), a->hidden, ENGINE_STRIDE, ENGINE_UNIT},
        {"out_row", engine_stride(a->out_row, a->hidden), a->hidden, ENGINE_STRIDE, ENGINE_UNIT},
    };
    const struct engine_address addresses[] = {
        {"x", a->x, 16, 1},       {"y", a->y, 16, 0},           {"index", a->index, 4, 0},
        {"h", a->h, 16, !a->out}, {"w", a->w, 16, a->out != 0}, {"out", a->out, 16, !a->h},
    };
    if (!(a->eps >= 0 && a->eps <= 1))
        return engine_fail(err, HEWN_ERR_ARGUMENT, "eps: %g is not in 0..1", a->eps);
    if (a->index && (a->h == a->x || a->out == a->x || (a->y && (a->h == a->y || a->out == a->y))))
        return engine_fail(err, HEWN_ERR_ARGUMENT,
                           "%s: must not be x or y where rows are chosen by an index",
                           a->h == a->x || (a->y && a->h == a->y) ? "h" : "out");
    int status = engine_check_sizes(sizes, sizeof sizes / sizeof *sizes, err);
    return status ? status
                  : engine_check_addresses(addresses, sizeof addresses / sizeof *addresses, err);
}

int engine_norm(const struct engine_kernels *k, const struct engine_norm *a, hewn_stream stream,
                hewn_error *err)
{
    int status = check_norm(a, err);
    if (status || a->rows == 0) return status;
    struct engine_norm_scalars s = {
        .x = a->x,
        .y = a->y,
        .index = a->index,
        .h = a->h,
        .w = a->w,
        .out = a->out,
        .x_row = engine_bytes(a->x_row, a->hidden),
        .y_row = engine_bytes(a->y_row, a->hidden),
        .h_row = engine_bytes(a->h_row, a->hidden),
        .out_row = engine_bytes(a->out_row, a->hidden),
        .x_rows = (uint32_t)a->x_rows,
        .units = (uint32_t)(a->hidden / ENGINE_UNIT),
        .eps = (float)a->eps,
    };
    const struct engine_shape shape = {
        .kernel = ENGINE_norm,
        .grid = {(uint32_t)a->rows, 1},
        .threads = ENGINE_NORM_THREADS,
        .shared = a->out ? 2 * (uint32_t)a->hidden : 0,
    };
    void *params[] = {ENGINE_NORM_SCALARS(ENGINE_PARAM)};
    return engine_launch(k, &shape, params, stream, err);
}

/* ---- rope -- */

int engine_check_cache(const struct engine_cache *c, int64_t strip, int64_t keys, int64_t width,
                       hewn_error *err)
{
    const struct engine_size sizes[] = {
        {"positions_most", c->positions_most, 1, keys, 1},
        {"pages", c->pages, 1, INT32_MAX, 1},
        {"page_size", c->page_size, strip, keys, strip},
        {"table_width", c->table_width, 1, width, 1},
        {"page", c->page, 0, ENGINE_STRIDE, ENGINE_UNIT},
        {"head", c->head, 0, ENGINE_STRIDE, ENGINE_UNIT},
        {"token", c->token, 0, ENGINE_STRIDE, ENGINE_UNIT},
    };
    const struct engine_address addresses[] = {
        {"rotation", c->rotation, 16, 1},
        {"q_norm", c->q_norm, 16, c->k_norm != 0},
        {"k_norm", c->k_norm, 16, c->q_norm != 0},
        {"k", c->k, 16, 1},
        {"v", c->v, 16, 1},
        {"table", c->table, 4, 0},
    };
    if (!(c->eps >= 0 && c->eps <= 1))
        return engine_fail(err, HEWN_ERR_ARGUMENT, "eps: %g is not in 0..1", c->eps);
    int status = engine_check_sizes(sizes, sizeof sizes / sizeof *sizes, err);
    return status ? status
                  : engine_check_addresses(addresses, sizeof addresses / sizeof *addresses, err);
}

static int check_rope(const struct engine_rope *a, hewn_error *err)
{
    const int64_t row = (a->q_heads + 2 * a->kv_heads) * a->dim;
    const struct engine_size sizes[] = {
        {"rows", a->rows, 0, INT32_MAX, 1},
        {"q_heads", a->q_heads, a->kv_heads ? 0 : 1, ENGINE_HEADS, 1},
        {"kv_heads", a->kv_heads, 0, a->q_heads ? a->q_heads : ENGINE_HEADS, 1},
        {"dim", a->dim, ENGINE_UNIT, ENGINE_ROPE_DIM, ENGINE_UNIT},
        {"qkv_row", engine_stride(a->qkv_row, row), row, ENGINE_STRIDE, ENGINE_UNIT},
        {"sequences_most", a->sequences_most, 1, INT32_MAX, 1},
    };
    const struct engine_address addresses[] = {
        {"qkv", a->qkv, 16, 1},
        {"positions", a->positions, 4, 1},
        {"sequences", a->sequences, 4, 0},
    };
    int status = engine_check_cache(&a->cache, 1, INT32_MAX, a->cache.table ? INT32_MAX : 1, err);
    if (!status) status = engine_check_sizes(sizes, sizeof sizes / sizeof *sizes, err);
    return status ? status
                  : engine_check_addresses(addresses, sizeof addresses / sizeof *addresses, err);
}

static struct engine_rope_scalars rope_scalars(const struct engine_rope *a)
{
    const int64_t row = (a->q_heads + 2 * a->kv_heads) * a->dim;
    const uint32_t lanes = (uint32_t)a->dim / ENGINE_UNIT;
    return (struct engine_rope_scalars){
        .qkv = a->qkv,
        .positions = a->positions,
        .sequences = a->sequences,
        .qkv_row = engine_bytes(a->qkv_row, row),
        ENGINE_SET_CACHE(&a->cache),
        .q_heads = (uint32_t)a->q_heads,
        .kv_heads = (uint32_t)a->kv_heads,
        .lanes = lanes,
        .warp_heads = 32 / lanes,
        .positions_most = (uint32_t)a->cache.positions_most,
        .sequences_most = (uint32_t)a->sequences_most,
        .page_size = (uint32_t)a->cache.page_size,
    };
}

int engine_rope(const struct engine_kernels *k, const struct engine_rope *a, hewn_stream stream,
                hewn_error *err)
{
    int status = check_rope(a, err);
    if (status || a->rows == 0) return status;
    struct engine_rope_scalars s = rope_scalars(a);
    const uint32_t heads = s.q_heads + 2 * s.kv_heads, of_cta = s.warp_heads * ENGINE_ROPE_WARPS;
    const struct engine_shape shape = {
        .kernel = ENGINE_rope,
        .grid = {(uint32_t)a->rows, (heads + of_cta - 1) / of_cta},
        .threads = ENGINE_ROPE_THREADS,
    };
    void *params[] = {ENGINE_ROPE_SCALARS(ENGINE_PARAM)};
    return engine_launch(k, &shape, params, stream, err);
}

/* ---- swiglu -- */

int engine_swiglu(const struct engine_kernels *k, const struct engine_swiglu *a, hewn_stream stream,
                  hewn_error *err)
{
    const struct engine_size sizes[] = {
        {"rows", a->rows, 0, INT32_MAX, 1},
        {"n", a->n, ENGINE_UNIT, ENGINE_COLUMNS, ENGINE_UNIT},
        {"row", engine_stride(a->row, a->n), a->n, ENGINE_STRIDE, ENGINE_UNIT},
        {"out_row", engine_stride(a->out_row, a->n), a->n, ENGINE_STRIDE, ENGINE_UNIT},
    };
    const struct engine_address addresses[] = {
        {"gate", a->gate, 16, 1}, {"up", a->up, 16, 1}, {"out", a->out, 16, 1}};
    int status = engine_check_sizes(sizes, sizeof sizes / sizeof *sizes, err);
    if (!status) status = engine_check_addresses(addresses, 3, err);
    if (status || a->rows == 0) return status;
    struct engine_swiglu_scalars s = {
        .gate = a->gate,
        .up = a->up,
        .out = a->out,
        .in_row = engine_bytes(a->row, a->n),
        .out_row = engine_bytes(a->out_row, a->n),
        .units = (uint32_t)(a->n / ENGINE_UNIT),
    };
    const uint32_t of_cta = 2 * ENGINE_SWIGLU_THREADS;
    const struct engine_shape shape = {
        .kernel = ENGINE_swiglu,
        .grid = {(uint32_t)a->rows, (s.units + of_cta - 1) / of_cta},
        .threads = ENGINE_SWIGLU_THREADS,
    };
    void *params[] = {ENGINE_SWIGLU_SCALARS(ENGINE_PARAM)};
    return engine_launch(k, &shape, params, stream, err);
}

/* ---- quant -- */

enum { QUANT_CTAS = 256 }; /* that run at once */

static int check_quant(const struct engine_quant *a, hewn_error *err)
{
    const struct engine_size sizes[] = {
        {"rows", a->rows, 0, INT32_MAX, 1},
        {"n", a->n, ENGINE_UNIT, ENGINE_QUANT_COLUMNS, ENGINE_UNIT},
        {"row", engine_stride(a->row, a->n), a->n, ENGINE_STRIDE, ENGINE_UNIT},
        {"out_row", engine_stride(a->out_row, a->n), a->n, ENGINE_STRIDE, ENGINE_UNIT},
    };
    const struct engine_address addresses[] = {
        {"x", a->x, 16, 1},    {"up", a->up, 16, 0},        {"w", a->w, 16, 0},
        {"out", a->out, 8, 1}, {"scales", a->scales, 4, 1},
    };
    if (!(a->eps >= 0 && a->eps <= 1))
        return engine_fail(err, HEWN_ERR_ARGUMENT, "eps: %g is not in 0..1", a->eps);
    if (a->up && a->w) return engine_fail(err, HEWN_ERR_ARGUMENT, "w: must be 0 beside up");
    int status = engine_check_sizes(sizes, sizeof sizes / sizeof *sizes, err);
    return status ? status
                  : engine_check_addresses(addresses, sizeof addresses / sizeof *addresses, err);
}

/* CTAs of a row: more than one where rows are wide and too few to fill a GPU. Without a norm, whose sum has an
 * order, the result does not depend on it. */
static uint32_t quant_ctas(const struct engine_quant *a)
{
    uint32_t ctas = 1;
    while (!a->w && ctas < ENGINE_QUANT_MOST_CTAS && 2 * ctas * a->rows <= QUANT_CTAS &&
           a->n > (int64_t)ctas * ENGINE_UNIT * ENGINE_QUANT_THREADS)
        ctas *= 2;
    return ctas;
}

int engine_quant(const struct engine_kernels *k, const struct engine_quant *a, hewn_stream stream,
                 hewn_error *err)
{
    int status = check_quant(a, err);
    if (status || a->rows == 0) return status;
    struct engine_quant_scalars s = {
        .x = a->x,
        .up = a->up,
        .w = a->w,
        .out = a->out,
        .scales = a->scales,
        .x_row = engine_bytes(a->row, a->n),
        .out_row = (uint64_t)engine_stride(a->out_row, a->n),
        .units = (uint32_t)(a->n / ENGINE_UNIT),
        .eps = (float)a->eps,
    };
    const uint32_t ctas = quant_ctas(a), turns = (s.units + ctas * ENGINE_QUANT_THREADS - 1) /
                                                 (ctas * ENGINE_QUANT_THREADS);
    const struct engine_shape shape = {
        .kernel = ENGINE_quant,
        .grid = {(uint32_t)a->rows * ctas, 1},
        .threads = ENGINE_QUANT_THREADS,
        .shared = 16 * (turns > 1                        ? turns * ENGINE_QUANT_THREADS
                        : s.units < ENGINE_QUANT_THREADS ? s.units
                                                         : ENGINE_QUANT_THREADS),
        .cluster = ctas > 1 ? ctas : 0,
    };
    void *params[] = {ENGINE_QUANT_SCALARS(ENGINE_PARAM)};
    return engine_launch(k, &shape, params, stream, err);
}
