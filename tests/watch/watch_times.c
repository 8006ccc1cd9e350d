/*
 * Times of products and attention, for what hewn watch costs: medians of graphs of launches, one line each. A number
 * names one of them. Results
 * are compared elsewhere (tests/watch/hardware.sh).
 */
#include "bench/gpu.h"

#include <stdio.h>
#include <stdlib.h>

enum { LAUNCHES = 10, BLOCK = 1 << 20, HEADS = 16 };

/* `count` elements of two bytes at most, and small in every type. */
static hewn_deviceptr values(struct gpu *g, const uint16_t *block, int64_t count)
{
    return gpu_repeat(g, block, sizeof *block * BLOCK, sizeof *block * (uint64_t)count);
}

static void product(struct gpu *g, const uint16_t *block, int in, int64_t m, int64_t n, int64_t k)
{
    const hewn_gemm_desc desc = {
        .struct_size = sizeof desc, .m = m, .n = n, .k = k, .batch = 1, .in = in, .out = HEWN_BF16};
    const hewn_gemm_args args = {.struct_size = sizeof args,
                                 .a = values(g, block, m * k),
                                 .b = values(g, block, n * k),
                                 .d = gpu_allocate(g, 2 * (uint64_t)(m * n)),
                                 .alpha = 1};
    hewn_gemm_plan *plan = NULL;
    hewn_error err = {0};

    if (hewn_gemm_plan_create(g->d.context, &desc, &plan, &err)) gpu_die("product", err.message);
    gpu_time_begin(g);
    for (int i = 0; i < LAUNCHES; i++)
        if (hewn_gemm_plan_run(plan, &args, g->stream, &err)) gpu_die("product", err.message);
    printf("product of %s, %lldx%lldx%lld\t%.1f us\n", hewn_dtype_name(in), (long long)m,
           (long long)n, (long long)k, 1e6 * gpu_time_end(g, LAUNCHES));
    hewn_gemm_plan_destroy(plan);
    g->d.mem_free(args.a), g->d.mem_free(args.b), g->d.mem_free(args.d);
}

static void attention(struct gpu *g, const uint16_t *block, int64_t dim, int64_t batch,
                      int64_t queries, int64_t keys)
{
    const hewn_attention_source source = {
        .struct_size = sizeof source, .length = keys, .causal = 1};
    const hewn_attention_desc desc = {.struct_size = sizeof desc,
                                      .batch = batch,
                                      .q_heads = HEADS,
                                      .kv_heads = HEADS,
                                      .qk_dim = dim,
                                      .q_length = queries,
                                      .in = HEWN_BF16,
                                      .out = HEWN_BF16,
                                      .source = {&source}};
    const int64_t row = HEADS * dim;
    const hewn_attention_source_args from = {.struct_size = sizeof from,
                                             .k = values(g, block, batch * keys * row),
                                             .v = values(g, block, batch * keys * row)};
    hewn_attention_args args = {.struct_size = sizeof args,
                                .q = values(g, block, batch * queries * row),
                                .o = gpu_allocate(g, 2 * (uint64_t)(batch * queries * row)),
                                .source = {&from}};
    hewn_attention_plan_info info = {.struct_size = sizeof info};
    hewn_attention_plan *plan = NULL;
    hewn_error err = {0};

    if (hewn_attention_plan_create(g->d.context, &desc, &plan, &err) ||
        hewn_attention_plan_describe(plan, &info, &err))
        gpu_die("attention", err.message);
    if (info.workspace) args.workspace = gpu_allocate(g, info.workspace);
    gpu_time_begin(g);
    for (int i = 0; i < LAUNCHES; i++)
        if (hewn_attention_plan_run(plan, &args, g->stream, &err))
            gpu_die("attention", err.message);
    printf("attention, dim %lld, causal, %lld x %lld queries, %lld keys\t%.1f us\n", (long long)dim,
           (long long)batch, (long long)queries, (long long)keys, 1e6 * gpu_time_end(g, LAUNCHES));
    hewn_attention_plan_destroy(plan);
    g->d.mem_free(from.k), g->d.mem_free(from.v);
    g->d.mem_free(args.q), g->d.mem_free(args.o);
    if (args.workspace) g->d.mem_free(args.workspace);
}

int main(int argc, char **argv)
{
    const int only = argc > 1 ? atoi(argv[1]) : -1; /* a row, from 0; -1: all */
    struct gpu gpu = {.pool_bytes = 0};
    uint16_t *block = gpu_host(sizeof *block * BLOCK);
    uint32_t bits = 1;
    int64_t shrink;

    /* Both bytes are below 0x40 but for the sign: finite and below 2 in bf16, f16, e4m3 and e5m2. */
    for (int i = 0; i < BLOCK; i++) {
        bits = bits * 1664525U + 1013904223U;
        block[i] = (uint16_t)(bits >> 16 & 0xBFBFU);
    }
    gpu_open(&gpu);
    shrink = gpu.d.info.simulated ? 32 : 1; /* there, only that all of it runs counts */
    if (only < 0 || only == 0)
        product(&gpu, block, HEWN_BF16, 8192 / shrink, 8192 / shrink, 4096 / shrink);
    if (only < 0 || only == 1)
        product(&gpu, block, HEWN_E4M3, 8192 / shrink, 8192 / shrink, 4096 / shrink);
    if (only < 0 || only == 2)
        product(&gpu, block, HEWN_BF16, 512 / shrink, 4096 / shrink, 4096 / shrink);
    if (only < 0 || only == 3) attention(&gpu, block, 128, 2, 8192 / shrink, 8192 / shrink);
    if (only < 0 || only == 4) attention(&gpu, block, 64, 2, 8192 / shrink, 8192 / shrink);
    if (only < 0 || only == 5) attention(&gpu, block, 128, 64 / shrink, 1, 8192 / shrink);
    gpu_close(&gpu);
    free(block);
    return 0;
}
