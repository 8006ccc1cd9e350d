/*
 * Weighted sums of rows on a GPU: microseconds, TB/s of the bytes that must move.
 *
 *   bench_grouped_sum
 *
 * Rows of X are a permutation, as those that experts have made: each is read once. X and D of several launches lie
 * behind one another, so that L2 has none of them. A time is a launch's in a graph of several.
 */
#include "gpu.h"

#include "lib/harness.h"

#include <stdio.h>
#include <stdlib.h>

enum { LAUNCHES = 24, ROTATED = 6, BLOCK = 1 << 20 };

struct row {
    int rows, terms, n, in, out;
};

static const struct row rows[] = {
    {1, 8, 7168, HEWN_BF16, HEWN_BF16},    {8, 8, 7168, HEWN_BF16, HEWN_BF16},
    {32, 8, 7168, HEWN_BF16, HEWN_BF16},   {128, 8, 7168, HEWN_BF16, HEWN_BF16},
    {512, 8, 7168, HEWN_BF16, HEWN_BF16},  {4096, 8, 7168, HEWN_BF16, HEWN_BF16},
    {4096, 8, 4096, HEWN_BF16, HEWN_BF16}, {4096, 4, 2880, HEWN_BF16, HEWN_BF16},
    {8192, 6, 2048, HEWN_BF16, HEWN_BF16}, {16384, 2, 4096, HEWN_F16, HEWN_F16},
    {4096, 8, 7168, HEWN_F32, HEWN_BF16},  {4096, 8, 7168, HEWN_BF16, HEWN_F32},
    {4096, 6, 7167, HEWN_BF16, HEWN_BF16},
};

static hewn_deviceptr some_index(struct gpu *g, const struct row *r)
{
    const size_t count = (size_t)r->rows * (size_t)r->terms;
    int32_t *index = gpu_host(count * sizeof *index);
    struct rng random = {7};
    for (size_t i = 0; i < count; i++) index[i] = (int32_t)i;
    for (size_t i = count; i-- > 1;) {
        const size_t j = rng_below(&random, (uint32_t)i + 1);
        const int32_t t = index[i];
        index[i] = index[j], index[j] = t;
    }
    const hewn_deviceptr at = gpu_upload(g, index, count * sizeof *index);
    free(index);
    return at;
}

static void bench_row(struct gpu *g, const struct row *r)
{
    static float block[BLOCK / 4]; /* zeros are numbers of every type */
    const uint64_t in = hewn_dtype_size(r->in), out = hewn_dtype_size(r->out);
    const uint64_t pitch = ((uint64_t)r->n + 7) / 8 * 8,
                   terms = (uint64_t)r->rows * (uint64_t)r->terms;
    const uint64_t x_bytes = terms * pitch * in, d_bytes = (uint64_t)r->rows * pitch * out;
    const uint64_t moved = (terms * in + (uint64_t)r->rows * out) * (uint64_t)r->n + 8 * terms;
    const hewn_deviceptr x = gpu_repeat(g, block, BLOCK, ROTATED * x_bytes);
    const hewn_deviceptr d = gpu_repeat(g, block, BLOCK, ROTATED * d_bytes);
    const hewn_deviceptr weights = gpu_repeat(g, block, BLOCK, 4 * terms), index = some_index(g, r);
    const hewn_grouped_sum_desc desc = {.struct_size = sizeof desc,
                                        .rows = r->rows,
                                        .terms = r->terms,
                                        .n = r->n,
                                        .x_rows = (int64_t)terms,
                                        .ldx = (int64_t)pitch,
                                        .ldd = (int64_t)pitch,
                                        .in = r->in,
                                        .out = r->out};
    hewn_grouped_sum_plan *plan = NULL;
    hewn_error err = {0};
    gpu_need(g->d.synchronize(), "copy");
    if (hewn_grouped_sum_plan_create(g->d.context, &desc, &plan, &err))
        gpu_die("plan", err.message);
    gpu_time_begin(g);
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        const hewn_grouped_sum_args a = {.struct_size = sizeof a,
                                         .x = x + i % ROTATED * x_bytes,
                                         .d = d + i % ROTATED * d_bytes,
                                         .index = index,
                                         .weights = weights};
        if (hewn_grouped_sum_plan_run(plan, &a, g->stream, &err)) gpu_die("run", err.message);
    }
    const double seconds = gpu_time_end(g, LAUNCHES);
    printf("| %d x %d | %d | %s, %s | %.2f | %.2f |\n", r->rows, r->n, r->terms,
           hewn_dtype_name(r->in), hewn_dtype_name(r->out), seconds * 1e6,
           (double)moved / seconds * 1e-12);
    fflush(stdout);
    hewn_grouped_sum_plan_destroy(plan);
    const hewn_deviceptr list[] = {x, d, weights, index};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        gpu_need(g->d.mem_free(list[i]), "free");
}

int main(void)
{
    struct gpu g;
    gpu_open(&g);
    printf("| rows of D | terms | types | us | TB/s |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) bench_row(&g, &rows[i]);
    gpu_close(&g);
    return 0;
}
