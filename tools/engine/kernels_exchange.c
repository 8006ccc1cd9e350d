/* The kernel that adds up what several GPUs have computed: its rules and its launch. */
#include "kernels_launch.h"

static int check(const struct engine_exchange *a, hewn_error *err)
{
    const struct engine_size sizes[] = {
        {"rows", a->rows, 0, INT32_MAX, 1},
        {"hidden", a->hidden, ENGINE_UNIT, ENGINE_EXCHANGE_HIDDEN, ENGINE_UNIT},
        {"ranks", a->ranks, 2, ENGINE_EXCHANGE_RANKS, 1},
        {"rank", a->rank, 0, a->ranks - 1, 1},
        {"inbox_rank", a->inbox_rank, a->rows * a->hidden, ENGINE_STRIDE, ENGINE_UNIT},
        {"ctas", a->ctas, 1, INT32_MAX, 1},
    };
    const struct engine_address addresses[] = {
        {"x", a->x, 16, 1},         {"part", a->part, 16, 1}, {"inbox", a->inbox, 16, 1},
        {"peers", a->peers, 8, 1},  {"h", a->h, 16, !a->out}, {"w", a->w, 16, a->out != 0},
        {"out", a->out, 16, !a->h},
    };
    if (!(a->eps >= 0 && a->eps <= 1))
        return engine_fail(err, HEWN_ERR_ARGUMENT, "eps: %g is not in 0..1", a->eps);
    int status = engine_check_sizes(sizes, sizeof sizes / sizeof *sizes, err);
    return status ? status
                  : engine_check_addresses(addresses, sizeof addresses / sizeof *addresses, err);
}

int engine_exchange(const struct engine_kernels *k, const struct engine_exchange *a,
                    hewn_stream stream, hewn_error *err)
{
    int status = check(a, err);
    if (status || a->rows == 0) return status;
    struct engine_exchange_scalars s = {
        .x = a->x,
        .part = a->part,
        .inbox = a->inbox,
        .peers = a->peers,
        .h = a->h,
        .w = a->w,
        .out = a->out,
        .inbox_rank = 2 * (uint64_t)a->inbox_rank,
        .rank = (uint32_t)a->rank,
        .ranks = (uint32_t)a->ranks,
        .rows = (uint32_t)a->rows,
        .units = (uint32_t)(a->hidden / ENGINE_UNIT),
        .eps = (float)a->eps,
    };
    const struct engine_shape shape = {
        .kernel = ENGINE_exchange,
        .grid = {(uint32_t)(a->rows < a->ctas ? a->rows : a->ctas), 1},
        .threads = ENGINE_EXCHANGE_THREADS,
        .shared = a->out ? 4 * (uint32_t)a->hidden : 0,
    };
    void *params[] = {ENGINE_EXCHANGE_SCALARS(ENGINE_PARAM)};
    return engine_launch(k, &shape, params, stream, err);
}
