/*
 * One launch of a kernel of ours for the cycle model, chosen by the library as for anybody: account.sh says what and why.
 *
 *   account_work gemm TYPE M N K                       TYPE bf16, f16, e4m3, s8; D bf16
 *   account_work scaled mx8|mx4|nv4 GROUPS M N K       planes of M rows, block scales
 *   account_work grouped TYPE GROUPS M N K             groups of about M rows, 30 % more or less, behind each other
 *   account_work attention BATCH HEADS LENGTH DIM full|causal
 *
 * Prints the kernel, the multiply-adds that count, the least bytes of device memory and, grouped, the multiply-adds with each group's
 * rows rounded up to whole tiles. Operands of products are not written: their values change no time in the model. Queries and keys
 * are drawn, because attention rescales its sums only where the maxima ask for it.
 */
#include "gpu.h"

#include "lib/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gpu gpu;
static hewn_error err;

static void need(int status, const char *what)
{
    if (status != HEWN_OK) gpu_die(what, err.message);
}

static void told(const char *module, double multiply_adds, double rounded, double bytes)
{
    printf("%s %.0f %.0f %.0f\n", module, multiply_adds, rounded, bytes);
}

static const struct {
    const char *name;
    int type, bytes;
} types[] = {
    {"bf16", HEWN_BF16, 2}, {"f16", HEWN_F16, 2}, {"e4m3", HEWN_E4M3, 1}, {"s8", HEWN_S8, 1}};

static size_t type_of(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name)) return i;
    gpu_die("type", "bf16, f16, e4m3 or s8");
}

static void gemm(char **v)
{
    const size_t t = type_of(v[0]);
    const int64_t m = atoll(v[1]), n = atoll(v[2]), k = atoll(v[3]);
    const hewn_gemm_desc desc = {
        .struct_size = sizeof desc, .m = m, .n = n, .k = k, .in = types[t].type, .out = HEWN_BF16};
    hewn_gemm_args args = {.struct_size = sizeof args};
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    hewn_gemm_plan *plan = NULL;
    args.a = gpu_allocate(&gpu, (uint64_t)(m * k * types[t].bytes));
    args.b = gpu_allocate(&gpu, (uint64_t)(n * k * types[t].bytes));
    args.d = gpu_allocate(&gpu, (uint64_t)(m * n * 2));
    need(hewn_gemm_plan_create(gpu.d.context, &desc, &plan, &err), "plan");
    need(hewn_gemm_plan_describe(plan, &info, &err), "describe");
    need(hewn_gemm_plan_run(plan, &args, NULL, &err), "run");
    told(info.module, (double)m * (double)n * (double)k, (double)m * (double)n * (double)k,
         (double)(m + n) * (double)k * types[t].bytes + 2.0 * (double)m * (double)n);
    gpu_need(gpu.d.synchronize(), "the kernel");
    hewn_gemm_plan_destroy(plan);
}

/* Sizes of `groups` groups of m rows, `by` of them more or less. */
static int64_t draw_rows(int32_t *end, int64_t groups, int64_t m, double by)
{
    uint64_t seed = 21;
    int64_t at = 0;
    for (int64_t g = 0; g < groups; g++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        at += (int64_t)((double)m * (1 + by * (2 * (double)(seed >> 40) / (1 << 24) - 1)));
        end[g] = (int32_t)at;
    }
    return at;
}

static void grouped_run(const hewn_grouped_desc *desc, hewn_grouped_args *args, const int32_t *end,
                        double a_row, double b_bytes)
{
    hewn_grouped_plan_info info = {.struct_size = sizeof info};
    hewn_grouped_plan *plan = NULL;
    double rows = 0, rounded = 0;
    need(hewn_grouped_plan_create(gpu.d.context, desc, &plan, &err), "plan");
    need(hewn_grouped_plan_describe(plan, &info, &err), "describe");
    need(hewn_grouped_plan_run(plan, args, NULL, &err), "run");
    for (int64_t g = 0; g < desc->groups; g++) {
        const double count = end ? end[g] - (g ? end[g - 1] : 0) : (double)desc->m;
        rows += count;
        rounded += ceil(count / info.tile_m) * info.tile_m;
    }
    told(info.module, rows * (double)desc->n * (double)desc->k,
         rounded * (double)desc->n * (double)desc->k,
         rows * a_row + b_bytes + 2.0 * rows * (double)desc->n);
    gpu_need(gpu.d.synchronize(), "the kernel");
    hewn_grouped_plan_destroy(plan);
}

static uint64_t up(int64_t x, int64_t to)
{
    return (uint64_t)((x + to - 1) / to * to);
}

static void scaled(char **v)
{
    const bool mx8 = !strcmp(v[0], "mx8"), nv4 = !strcmp(v[0], "nv4");
    const int64_t groups = atoll(v[1]), m = atoll(v[2]), n = atoll(v[3]), k = atoll(v[4]);
    const int64_t row = mx8 ? k : k / 2, of_scales = k / (nv4 ? 16 : 32);
    const hewn_grouped_desc desc = {.struct_size = sizeof desc,
                                    .groups = groups,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .in = mx8 ? HEWN_E4M3 : HEWN_E2M1,
                                    .out = HEWN_BF16,
                                    .kind = HEWN_GROUPED_PLANES,
                                    .scales = nv4 ? HEWN_GROUPED_UE4M3_16 : HEWN_GROUPED_UE8M0_32};
    hewn_grouped_args args = {.struct_size = sizeof args};
    const uint64_t count = (uint64_t)groups, wide = up(of_scales, 4);
    args.a = gpu_allocate(&gpu, count * (uint64_t)(m * row));
    args.b = gpu_allocate(&gpu, count * (uint64_t)(n * row));
    args.d = gpu_allocate(&gpu, count * (uint64_t)(2 * m * n));
    args.scale_a = gpu_allocate(&gpu, count * up(m, 128) * wide);
    args.scale_b = gpu_allocate(&gpu, count * up(n, 128) * wide);
    grouped_run(&desc, &args, NULL, (double)(row + of_scales),
                (double)groups * (double)n * (double)(row + of_scales));
}

static void grouped(char **v)
{
    const size_t t = type_of(v[0]);
    const int64_t groups = atoll(v[1]), m = atoll(v[2]), n = atoll(v[3]), k = atoll(v[4]);
    static int32_t end[4096];
    hewn_grouped_desc desc = {.struct_size = sizeof desc,
                              .groups = groups,
                              .n = n,
                              .k = k,
                              .in = types[t].type,
                              .out = HEWN_BF16,
                              .kind = HEWN_GROUPED_OFFSETS};
    hewn_grouped_args args = {.struct_size = sizeof args};
    if (groups < 1 || groups > 4096) gpu_die("groups", "1 to 4096");
    desc.m = draw_rows(end, groups, m, 0.3);
    args.a = gpu_allocate(&gpu, (uint64_t)(desc.m * k * types[t].bytes));
    args.b = gpu_allocate(&gpu, (uint64_t)(groups * n * k * types[t].bytes));
    args.d = gpu_allocate(&gpu, (uint64_t)(desc.m * n * 2));
    args.rows = gpu_upload(&gpu, end, (uint64_t)groups * sizeof *end);
    if (types[t].type == HEWN_E4M3) {
        args.scale_a = gpu_allocate(&gpu, (uint64_t)(desc.m * ((k + 127) / 128) * 4) + 4096);
        args.scale_b =
            gpu_allocate(&gpu, (uint64_t)(groups * ((n + 127) / 128) * ((k + 127) / 128) * 4));
    }
    grouped_run(&desc, &args, end, (double)(k * types[t].bytes),
                (double)groups * (double)n * (double)k * types[t].bytes);
}

static void attention(char **v)
{
    enum { BLOCK = 1 << 20 };
    const int64_t batch = atoll(v[0]), heads = atoll(v[1]), length = atoll(v[2]), dim = atoll(v[3]);
    const int causal = !strcmp(v[4], "causal");
    const uint64_t bytes = (uint64_t)(2 * batch * heads * length * dim);
    const hewn_attention_source source = {
        .struct_size = sizeof source, .length = length, .causal = causal};
    const hewn_attention_desc desc = {.struct_size = sizeof desc,
                                      .batch = batch,
                                      .q_heads = heads,
                                      .kv_heads = heads,
                                      .qk_dim = dim,
                                      .q_length = length,
                                      .in = HEWN_BF16,
                                      .out = HEWN_BF16,
                                      .source = {&source, NULL}};
    hewn_attention_source_args keys = {.struct_size = sizeof keys};
    hewn_attention_args args = {.struct_size = sizeof args, .source = {&keys, NULL}};
    hewn_attention_plan_info info = {.struct_size = sizeof info};
    hewn_attention_plan *plan = NULL;
    struct rng r = {.state = 21};
    uint16_t *block = gpu_host(2 * BLOCK);
    const double pairs = (double)batch * (double)heads * (double)length *
                         (causal ? ((double)length + 1) / 2 : (double)length);
    for (int i = 0; i < BLOCK; i++) {
        const double u = 0.5 * (1.0000001 - rng_unit(&r)), angle = 3.14159265358979 * rng_unit(&r);
        block[i] = double_to_bf16(sqrt(-2 * log(u)) * cos(angle));
    }
    args.q = gpu_repeat(&gpu, block, 2 * BLOCK, bytes);
    keys.k = gpu_repeat(&gpu, block, 2 * BLOCK, bytes);
    keys.v = gpu_repeat(&gpu, block, 2 * BLOCK, bytes);
    args.o = gpu_allocate(&gpu, bytes);
    need(hewn_attention_plan_create(gpu.d.context, &desc, &plan, &err), "plan");
    need(hewn_attention_plan_describe(plan, &info, &err), "describe");
    if (info.workspace) args.workspace = gpu_allocate(&gpu, info.workspace);
    need(hewn_attention_plan_run(plan, &args, NULL, &err), "run");
    told(info.module, 2 * pairs * (double)dim, 2 * pairs * (double)dim, 4.0 * (double)bytes);
    gpu_need(gpu.d.synchronize(), "the kernel");
    hewn_attention_plan_destroy(plan);
    free(block);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(char **v);
        int words;
    } kinds[] = {{"gemm", gemm, 4},
                 {"scaled", scaled, 5},
                 {"grouped", grouped, 5},
                 {"attention", attention, 5}};
    gpu_open(&gpu);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (argc < 2 || strcmp(argv[1], kinds[i].name) || argc != 2 + kinds[i].words) continue;
        kinds[i].run(argv + 2);
        gpu_close(&gpu);
        return 0;
    }
    fputs("account_work: see the comment at the top of tests/bench/account_work.c\n", stderr);
    return 2;
}
