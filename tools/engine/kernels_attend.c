/* Attention of decode in one launch: its rules, its workspace and its launch. */
#include "kernels_launch.h"

static int check(const struct engine_attend *a, hewn_error *err)
{
    const int64_t heads = a->q_heads + 2 * a->kv_heads;
    const struct engine_size sizes[] = {
        {"rows", a->rows, 0, a->columns < ENGINE_ATTEND_ROWS ? a->columns : ENGINE_ATTEND_ROWS, 1},
        {"columns", a->columns, 1, ENGINE_ATTEND_COLUMNS, 1},
        {"kv_heads", a->kv_heads, 1, ENGINE_HEADS, 1},
        {"q_heads", a->q_heads, a->kv_heads, ENGINE_ATTEND_GROUP * a->kv_heads, a->kv_heads},
        {"dim", a->dim, 64, 128, 64},
        {"qkv_row", engine_stride(a->qkv_row, heads * a->dim), heads * a->dim, ENGINE_STRIDE,
         ENGINE_UNIT},
        {"o_row", engine_stride(a->o_row, a->q_heads * a->dim), a->q_heads * a->dim, ENGINE_STRIDE,
         ENGINE_UNIT},
    };
    const struct engine_address addresses[] = {
        {"qkv", a->qkv, 16, 1}, {"positions", a->positions, 4, 1},  {"table", a->cache.table, 4, 1},
        {"o", a->o, 16, 1},     {"workspace", a->workspace, 16, 1}, {"counters", a->counters, 4, 1},
    };
    if (!(a->scale > 0 && a->scale < 1e30))
        return engine_fail(err, HEWN_ERR_ARGUMENT, "scale: %g is not above 0 and below 1e30",
                           a->scale);
    int status = engine_check_cache(&a->cache, ENGINE_ATTEND_STRIP, ENGINE_ATTEND_KEYS,
                                    INT32_MAX / ENGINE_ATTEND_ROWS, err);
    if (!status) status = engine_check_sizes(sizes, sizeof sizes / sizeof *sizes, err);
    return status ? status
                  : engine_check_addresses(addresses, sizeof addresses / sizeof *addresses, err);
}

int64_t engine_attend_columns(int64_t sms, int64_t kv_heads)
{
    const int64_t columns = ENGINE_ATTEND_CTAS * sms / kv_heads;
    return columns < ENGINE_ATTEND_COLUMNS ? columns : ENGINE_ATTEND_COLUMNS;
}

static uint64_t parts_bytes(int64_t columns, int64_t kv_heads, int64_t dim)
{
    return (uint64_t)(columns * kv_heads) * (uint64_t)ENGINE_ATTEND_PART(dim);
}

uint64_t engine_attend_workspace(int64_t columns, int64_t kv_heads, int64_t dim)
{
    return parts_bytes(columns, kv_heads, dim) +
           (uint64_t)(columns * kv_heads) * (uint64_t)ENGINE_ATTEND_BOUNDS;
}

/* A position behind the table is none. */
static int64_t positions_most(const struct engine_cache *c)
{
    const int64_t most = c->table_width * c->page_size;
    return c->positions_most < most ? c->positions_most : most;
}

int engine_attend(const struct engine_kernels *k, const struct engine_attend *a, hewn_stream stream,
                  hewn_error *err)
{
    int status = check(a, err);
    if (status || a->rows == 0) return status;
    struct engine_attend_scalars s = {
        .qkv = a->qkv,
        .positions = a->positions,
        ENGINE_SET_CACHE(&a->cache),
        .o = a->o,
        .parts = a->workspace,
        .bounds_of = a->workspace + parts_bytes(a->columns, a->kv_heads, a->dim),
        .counters = a->counters,
        .qkv_row = engine_bytes(a->qkv_row, (a->q_heads + 2 * a->kv_heads) * a->dim),
        .o_row = engine_bytes(a->o_row, a->q_heads * a->dim),
        .rows = (uint32_t)a->rows,
        .columns = (uint32_t)a->columns,
        .kv_heads = (uint32_t)a->kv_heads,
        .group = (uint32_t)(a->q_heads / a->kv_heads),
        .positions_most = (uint32_t)positions_most(&a->cache),
        .page_strips = (uint32_t)(a->cache.page_size / ENGINE_ATTEND_STRIP),
        .scale_log2 = (float)(a->scale * 1.4426950408889634),
    };
    const struct engine_shape shape = {
        .kernel = a->dim == 64 ? ENGINE_attend64 : ENGINE_attend128,
        .grid = {(uint32_t)(a->columns * a->kv_heads), 1},
        .threads = ENGINE_ATTEND_THREADS,
        .shared = ENGINE_ATTEND_RING,
    };
    void *params[] = {ENGINE_ATTEND_SCALARS(ENGINE_PARAM)};
    return engine_launch(k, &shape, params, stream, err);
}
