/*
 * One launch of a kernel of ours for the cycle model, chosen by the library as for anybody: account.sh says what and why.
 *
 *   account_work gemm TYPE M N K                       TYPE bf16, f16, e4m3, s8; D bf16
 *   account_work scaled mx8|mw8|mx4|nv4 GROUPS M N K   planes of M rows, block scales; mw8: of 128, in words
 *   account_work grouped TYPE GROUPS M N K             groups of about M rows, 30 % more or less, behind each other
 *   account_work attention BATCH HEADS LENGTH DIM full|causal
 *   account_work decode TYPE BATCH HEADS LENGTH DIM    TYPE of K and V: bf16, e4m3; one query, one head of K and V
 *   account_work mla plain|656|584 BATCH HEADS LENGTH  one query; the type of the cache
 *   account_work indexer BATCH HEADS QUERIES LENGTH
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

/* Offsets of `groups` groups of m rows, `by` of them more or less; returns all rows. */
static int64_t draw_rows(int32_t *offset, int64_t groups, int64_t m, double by)
{
    uint64_t seed = 21;
    int64_t at = 0;
    offset[0] = 0;
    for (int64_t g = 0; g < groups; g++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        at += (int64_t)((double)m * (1 + by * (2 * (double)(seed >> 40) / (1 << 24) - 1)));
        offset[g + 1] = (int32_t)at;
    }
    return at;
}

static void grouped_run(const hewn_grouped_desc *desc, hewn_grouped_args *args,
                        const int32_t *offset, double a_row, double b_bytes)
{
    hewn_grouped_plan_info info = {.struct_size = sizeof info};
    hewn_grouped_plan *plan = NULL;
    double rows = 0, rounded = 0;
    need(hewn_grouped_plan_create(gpu.d.context, desc, &plan, &err), "plan");
    need(hewn_grouped_plan_describe(plan, &info, &err), "describe");
    need(hewn_grouped_plan_run(plan, args, NULL, &err), "run");
    for (int64_t g = 0; g < desc->groups; g++) {
        const double count = offset ? offset[g + 1] - offset[g] : (double)desc->m;
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
    const bool words = !strcmp(v[0], "mw8"), nv4 = !strcmp(v[0], "nv4");
    const bool bytes = words || !strcmp(v[0], "mx8");
    const int64_t groups = atoll(v[1]), m = atoll(v[2]), n = atoll(v[3]), k = atoll(v[4]);
    const int64_t row = bytes ? k : k / 2, of_scales = k / (nv4 ? 16 : words ? 128 : 32);
    const hewn_grouped_desc desc = {.struct_size = sizeof desc,
                                    .groups = groups,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .in = bytes ? HEWN_E4M3 : HEWN_E2M1,
                                    .out = HEWN_BF16,
                                    .kind = HEWN_GROUPED_PLANES,
                                    .scales = nv4     ? HEWN_GROUPED_UE4M3_16
                                              : words ? HEWN_GROUPED_UE8M0_128
                                                      : HEWN_GROUPED_UE8M0_32,
                                    .scale_layout =
                                        words ? HEWN_GROUPED_WORDS : HEWN_GROUPED_ATOMS};
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
    static int32_t offset[4097];
    hewn_grouped_desc desc = {.struct_size = sizeof desc,
                              .groups = groups,
                              .n = n,
                              .k = k,
                              .in = types[t].type,
                              .out = HEWN_BF16,
                              .kind = HEWN_GROUPED_OFFSETS};
    hewn_grouped_args args = {.struct_size = sizeof args};
    if (groups < 1 || groups > 4096) gpu_die("groups", "1 to 4096");
    desc.m = draw_rows(offset, groups, m, 0.3);
    args.a = gpu_allocate(&gpu, (uint64_t)(desc.m * k * types[t].bytes));
    args.b = gpu_allocate(&gpu, (uint64_t)(groups * n * k * types[t].bytes));
    args.d = gpu_allocate(&gpu, (uint64_t)(desc.m * n * 2));
    args.rows = gpu_upload(&gpu, offset, (uint64_t)(groups + 1) * sizeof *offset);
    if (types[t].type == HEWN_E4M3) {
        args.scale_a = gpu_allocate(&gpu, (uint64_t)(desc.m * ((k + 127) / 128) * 4) + 4096);
        args.scale_b =
            gpu_allocate(&gpu, (uint64_t)(groups * ((n + 127) / 128) * ((k + 127) / 128) * 4));
    }
    grouped_run(&desc, &args, offset, (double)(k * types[t].bytes),
                (double)groups * (double)n * (double)k * types[t].bytes);
}

/* Draws a block of normal values; as bytes its elements are e4m3 of any sign, below 2. */
static void *draw(int elements, bool e4m3)
{
    struct rng r = {.state = 21};
    uint16_t *block = gpu_host(2 * (uint64_t)elements);
    for (int i = 0; i < elements; i++) {
        const double u = 0.5 * (1.0000001 - rng_unit(&r)), angle = 3.14159265358979 * rng_unit(&r);
        block[i] = double_to_bf16(sqrt(-2 * log(u)) * cos(angle));
        if (e4m3) block[i] = (uint16_t)((block[i] * 0x9e37U >> 3) & 0xbfbf);
    }
    return block;
}

/* Runs attention over one source, whose K and V have elements of `kv` bytes. */
static void attention_run(hewn_attention_desc *desc, const hewn_attention_source *source, int kv)
{
    enum { BLOCK = 1 << 20 };
    hewn_attention_source_args keys = {.struct_size = sizeof keys};
    hewn_attention_args args = {.struct_size = sizeof args, .source = {&keys, NULL}};
    hewn_attention_plan_info info = {.struct_size = sizeof info};
    hewn_attention_plan *plan = NULL;
    const int64_t qk = desc->qk_dim, v = qk == 192 ? 128 : qk, length = source->length;
    const double heads = (double)(desc->batch * desc->q_heads), q_rows = (double)desc->q_length;
    const double pairs =
        heads * q_rows * (source->causal ? ((double)length + 1) / 2 : (double)length);
    const uint64_t rows = (uint64_t)(desc->batch * desc->kv_heads * length);
    const uint64_t queries = (uint64_t)(desc->batch * desc->q_heads * desc->q_length);
    void *block = draw(BLOCK, false), *narrow = draw(BLOCK, true);
    args.q = gpu_repeat(&gpu, block, 2 * BLOCK, 2 * queries * (uint64_t)qk);
    keys.k =
        gpu_repeat(&gpu, kv == 1 ? narrow : block, 2 * BLOCK, rows * (uint64_t)qk * (uint64_t)kv);
    keys.v =
        gpu_repeat(&gpu, kv == 1 ? narrow : block, 2 * BLOCK, rows * (uint64_t)v * (uint64_t)kv);
    args.o = gpu_allocate(&gpu, 2 * queries * (uint64_t)v);
    desc->source[0] = source;
    need(hewn_attention_plan_create(gpu.d.context, desc, &plan, &err), "plan");
    need(hewn_attention_plan_describe(plan, &info, &err), "describe");
    if (info.workspace) args.workspace = gpu_allocate(&gpu, info.workspace);
    need(hewn_attention_plan_run(plan, &args, NULL, &err), "run");
    told(info.module, pairs * (double)(qk + v), pairs * (double)(qk + v),
         (double)(qk + v) * ((double)rows * kv + 2.0 * (double)queries));
    gpu_need(gpu.d.synchronize(), "the kernel");
    hewn_attention_plan_destroy(plan);
    free(block);
    free(narrow);
}

static void attention(char **v)
{
    const int64_t heads = atoll(v[1]), length = atoll(v[2]);
    const hewn_attention_source source = {
        .struct_size = sizeof source, .length = length, .causal = !strcmp(v[4], "causal")};
    hewn_attention_desc desc = {.struct_size = sizeof desc,
                                .batch = atoll(v[0]),
                                .q_heads = heads,
                                .kv_heads = heads,
                                .qk_dim = atoll(v[3]),
                                .q_length = length,
                                .in = HEWN_BF16,
                                .out = HEWN_BF16};
    attention_run(&desc, &source, 2);
}

static void decode(char **v)
{
    const size_t t = type_of(v[0]);
    const hewn_attention_source source = {.struct_size = sizeof source, .length = atoll(v[3])};
    hewn_attention_desc desc = {.struct_size = sizeof desc,
                                .batch = atoll(v[1]),
                                .q_heads = atoll(v[2]),
                                .kv_heads = 1,
                                .qk_dim = atoll(v[4]),
                                .q_length = 1,
                                .in = HEWN_BF16,
                                .out = HEWN_BF16,
                                .schedule = HEWN_SCHEDULE_DECODE,
                                .kv = types[t].type == HEWN_E4M3 ? HEWN_E4M3 : 0};
    attention_run(&desc, &source, types[t].bytes);
}

static void mla(char **v)
{
    static const struct {
        const char *name;
        int cache, row, dim;
    } caches[] = {{"plain", HEWN_MLA_CACHE_PLAIN, 1152, 576},
                  {"656", HEWN_MLA_CACHE_656, 656, 576},
                  {"584", HEWN_MLA_CACHE_584, 585, 512}};
    size_t c = 0;
    while (c < 2 && strcmp(caches[c].name, v[0])) c++;
    const int64_t batch = atoll(v[1]), heads = atoll(v[2]), length = atoll(v[3]);
    const hewn_mla_desc desc = {.struct_size = sizeof desc,
                                .batch = batch,
                                .q_heads = heads,
                                .q_length = 1,
                                .length = length,
                                .in = HEWN_BF16,
                                .out = HEWN_BF16,
                                .cache = caches[c].cache};
    hewn_mla_args args = {.struct_size = sizeof args};
    hewn_mla_plan_info info = {.struct_size = sizeof info};
    hewn_mla_plan *plan = NULL;
    const double pairs = (double)(batch * heads * length), dim = caches[c].dim;
    const uint64_t queries = (uint64_t)(batch * heads);
    args.q = gpu_allocate(&gpu, 2 * queries * (uint64_t)caches[c].dim);
    args.kv = gpu_allocate(&gpu, (uint64_t)(batch * length * caches[c].row));
    args.o = gpu_allocate(&gpu, 2 * queries * 512);
    need(hewn_mla_plan_create(gpu.d.context, &desc, &plan, &err), "plan");
    need(hewn_mla_plan_describe(plan, &info, &err), "describe");
    if (info.workspace) args.workspace = gpu_allocate(&gpu, info.workspace);
    need(hewn_mla_plan_run(plan, &args, NULL, &err), "run");
    told(info.module, pairs * (dim + 512), pairs * (dim + 512),
         (double)(batch * length) * caches[c].row + 2.0 * (double)queries * (dim + 512));
    gpu_need(gpu.d.synchronize(), "the kernel");
    hewn_mla_plan_destroy(plan);
}

static void indexer(char **v)
{
    const int64_t batch = atoll(v[0]), heads = atoll(v[1]), queries = atoll(v[2]),
                  length = atoll(v[3]);
    const hewn_indexer_desc desc = {.struct_size = sizeof desc,
                                    .batch = batch,
                                    .queries = queries,
                                    .heads = heads,
                                    .dim = 128,
                                    .length = length,
                                    .in = HEWN_E4M3};
    hewn_indexer_args args = {.struct_size = sizeof args};
    hewn_indexer_plan_info info = {.struct_size = sizeof info};
    hewn_indexer_plan *plan = NULL;
    const double rows = (double)(batch * queries), keys = (double)(batch * length);
    const double sums = rows * (double)(heads * length) * 128;
    args.q = gpu_allocate(&gpu, (uint64_t)(batch * queries * heads * 128));
    args.k = gpu_allocate(&gpu, (uint64_t)(batch * length * 128));
    args.k_scale = gpu_allocate(&gpu, (uint64_t)(batch * length * 4));
    args.weights = gpu_allocate(&gpu, (uint64_t)(batch * queries * heads * 4));
    args.out = gpu_allocate(&gpu, (uint64_t)(batch * queries * length * 4));
    need(hewn_indexer_plan_create(gpu.d.context, &desc, &plan, &err), "plan");
    need(hewn_indexer_plan_describe(plan, &info, &err), "describe");
    need(hewn_indexer_plan_run(plan, &args, NULL, &err), "run");
    told(info.module, sums, sums, keys * 132 + rows * ((double)heads * 132 + (double)length * 4));
    gpu_need(gpu.d.synchronize(), "the kernel");
    hewn_indexer_plan_destroy(plan);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(char **v);
        int words;
    } kinds[] = {{"gemm", gemm, 4},           {"scaled", scaled, 5}, {"grouped", grouped, 5},
                 {"attention", attention, 5}, {"decode", decode, 5}, {"mla", mla, 4},
                 {"indexer", indexer, 4}};
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
