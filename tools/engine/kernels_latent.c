/* The kernel that fills the latent cache: its rules and launch. */
#include "kernels_launch.h"

#include <stddef.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

static int check_latent(const struct engine_latent *a, hewn_error *err)
{
    const int64_t page = a->token * (a->page_size - 1) + ENGINE_LATENT_ROW;
    const struct engine_size sizes[] = {
        {"rows", a->rows, 0, INT32_MAX, 1},
        {"heads", a->heads, 1, ENGINE_HEADS, 1},
        {"vector_row", a->vector_row, ENGINE_LATENT_ROW, ENGINE_STRIDE, ENGINE_UNIT},
        {"q_head", a->q_head, ENGINE_LATENT_ROTARY, ENGINE_STRIDE, ENGINE_UNIT},
        {"q_row", a->q_row, ENGINE_LATENT_ROTARY, ENGINE_STRIDE, ENGINE_UNIT},
        {"out_head", a->out_head, ENGINE_LATENT_ROTARY, ENGINE_STRIDE, ENGINE_UNIT},
        {"out_row", a->out_row, ENGINE_LATENT_ROTARY, ENGINE_STRIDE, ENGINE_UNIT},
        {"positions_most", a->positions_most, 1, INT32_MAX, 1},
        {"sequences_most", a->sequences_most, 1, INT32_MAX, 1},
        {"pages", a->pages, 1, INT32_MAX, 1},
        {"page_size", a->page_size, 1, 65536, 1},
        {"table_width", a->table_width, 1, INT32_MAX, 1},
        {"token", a->token, ENGINE_LATENT_ROW, ENGINE_STRIDE / 65536, ENGINE_UNIT},
        {"page", a->page, page, ENGINE_STRIDE, ENGINE_UNIT},
    };
    const struct engine_address addresses[] = {
        {"vector", a->vector, 16, 1},
        {"q", a->q, 16, 1},
        {"out", a->out, 16, 1},
        {"positions", a->positions, 4, 1},
        {"sequences", a->sequences, 4, 0},
        {"rotation", a->rotation, 16, 1},
        {"norm", a->norm, 16, 1},
        {"cache", a->cache, 16, 1},
        {"table", a->table, 4, 1},
    };
    if (!(a->eps >= 0 && a->eps <= 1))
        return engine_fail(err, HEWN_ERR_ARGUMENT, "eps: %g is not in 0..1", a->eps);
    int status = engine_check_sizes(sizes, COUNT(sizes), err);
    return status ? status : engine_check_addresses(addresses, COUNT(addresses), err);
}

int engine_latent(const struct engine_kernels *k, const struct engine_latent *a, hewn_stream stream,
                  hewn_error *err)
{
    int status = check_latent(a, err);
    if (status || a->rows == 0) return status;
    struct engine_latent_scalars s = {
        .vector = a->vector,
        .q = a->q,
        .out = a->out,
        .positions = a->positions,
        .sequences = a->sequences,
        .rotation = a->rotation,
        .norm = a->norm,
        .cache = a->cache,
        .table = a->table,
        .vector_row = 2 * (uint64_t)a->vector_row,
        .q_row = 2 * (uint64_t)a->q_row,
        .q_head = 2 * (uint64_t)a->q_head,
        .out_row = 2 * (uint64_t)a->out_row,
        .out_head = 2 * (uint64_t)a->out_head,
        .page_row = 2 * (uint64_t)a->page,
        .token_row = 2 * (uint64_t)a->token,
        .heads = (uint32_t)a->heads,
        .positions_most = (uint32_t)a->positions_most,
        .sequences_most = (uint32_t)a->sequences_most,
        .pages = (uint32_t)a->pages,
        .page_size = (uint32_t)a->page_size,
        .table_width = (uint32_t)a->table_width,
        .eps = (float)a->eps,
    };
    const uint32_t warps = 1 + (s.heads + ENGINE_LATENT_HEADS - 1) / ENGINE_LATENT_HEADS;
    const struct engine_shape shape = {
        .kernel = ENGINE_latent,
        .grid = {(uint32_t)a->rows, (warps + ENGINE_LATENT_WARPS - 1) / ENGINE_LATENT_WARPS},
        .threads = ENGINE_LATENT_THREADS,
    };
    void *params[] = {ENGINE_LATENT_SCALARS(ENGINE_PARAM)};
    return engine_launch(k, &shape, params, stream, err);
}
