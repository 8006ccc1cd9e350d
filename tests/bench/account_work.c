/*
 * One launch of a kernel of ours for the cycle model, chosen by the library as for anybody: account.sh says what and why.
 *
 *   account_work gemm TYPE M N K [VARIANT]             TYPE bf16, f16, e4m3, s8; D bf16
 *   account_work scaled mx8|mw8|mx4|nv4 GROUPS M N K   planes of M rows, block scales; mw8: of 128, in words
 *   account_work grouped TYPE GROUPS M N K             groups of about M rows, 30 % more or less, behind each other
 *   account_work ragged bf16|e4m3|mx8|mw8|mx4|nv4 SEED drawn groups, then the dense product of as many rows: see ragged
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

enum { GROUPS_MOST = 4096 };
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

static void product(size_t t, int64_t m, int64_t n, int64_t k, const char *variant)
{
    const hewn_gemm_desc desc = {.struct_size = sizeof desc,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .in = types[t].type,
                                 .out = HEWN_BF16,
                                 .variant = variant};
    hewn_gemm_args args = {.struct_size = sizeof args};
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    hewn_gemm_plan *plan = NULL;
    args.a = gpu_allocate(&gpu, (uint64_t)(m * k * types[t].bytes));
    args.b = gpu_allocate(&gpu, (uint64_t)(n * k * types[t].bytes));
    args.d = gpu_allocate(&gpu, (uint64_t)(m * n * 2));
    need(hewn_gemm_plan_create(gpu.d.context, &desc, &plan, &err), "plan");
    need(hewn_gemm_plan_describe(plan, &info, &err), "describe");
    if (info.workspace) args.workspace = gpu_allocate(&gpu, info.workspace);
    need(hewn_gemm_plan_run(plan, &args, NULL, &err), "run");
    told(info.module, (double)m * (double)n * (double)k, (double)m * (double)n * (double)k,
         (double)(m + n) * (double)k * types[t].bytes + 2.0 * (double)m * (double)n);
    gpu_need(gpu.d.synchronize(), "the kernel");
    hewn_gemm_plan_destroy(plan);
}

static void gemm(char **v)
{
    product(type_of(v[0]), atoll(v[1]), atoll(v[2]), atoll(v[3]), v[4]);
}

/* From 0 up to 1. */
static double draw_unit(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (double)(*state >> 40) / (1 << 24);
}

/* Runs groups of count[] rows each, NULL: of m. A row of A, and of each group's B, has row_bytes. Bytes: what is read,
 * and if `stored` is true what is stored. Returns the rows of all groups, rounded up to whole tiles. */
static double grouped_run(const hewn_grouped_desc *desc, hewn_grouped_args *args,
                          const int32_t *count, double row_bytes, bool stored)
{
    hewn_grouped_plan_info info = {.struct_size = sizeof info};
    hewn_grouped_plan *plan = NULL;
    const double nk = (double)desc->n * (double)desc->k;
    double rows = 0, rounded = 0, columns = 0;
    need(hewn_grouped_plan_create(gpu.d.context, desc, &plan, &err), "plan");
    need(hewn_grouped_plan_describe(plan, &info, &err), "describe");
    need(hewn_grouped_plan_run(plan, args, NULL, &err), "run");
    for (int64_t g = 0; g < desc->groups; g++) {
        const double m = count ? count[g] : (double)desc->m;
        rows += m;
        rounded += ceil(m / info.tile_m) * info.tile_m;
        columns += m > 0 ? (double)desc->n : 0;
    }
    told(info.module, rows * nk, rounded * nk,
         (rows + columns) * row_bytes + (stored ? 2.0 * rows * (double)desc->n : 0));
    gpu_need(gpu.d.synchronize(), "the kernel");
    hewn_grouped_plan_destroy(plan);
    return rounded;
}

static uint64_t up(int64_t x, int64_t to)
{
    return (uint64_t)((x + to - 1) / to * to);
}

/* Planes of block-scaled inputs; returns the bytes of a row and its scales. */
static double scaled_new(hewn_grouped_desc *desc, hewn_grouped_args *args, const char *type)
{
    const bool words = !strcmp(type, "mw8"), nv4 = !strcmp(type, "nv4");
    const bool bytes = words || !strcmp(type, "mx8");
    const int64_t m = desc->m, n = desc->n, row = bytes ? desc->k : desc->k / 2;
    const int64_t of_scales = desc->k / (nv4 ? 16 : words ? 128 : 32);
    const uint64_t count = (uint64_t)desc->groups, wide = up(of_scales, 4);
    desc->in = bytes ? HEWN_E4M3 : HEWN_E2M1;
    desc->scales = nv4     ? HEWN_GROUPED_UE4M3_16
                   : words ? HEWN_GROUPED_UE8M0_128
                           : HEWN_GROUPED_UE8M0_32;
    desc->scale_layout = words ? HEWN_GROUPED_WORDS : HEWN_GROUPED_ATOMS;
    args->a = gpu_allocate(&gpu, count * (uint64_t)(m * row));
    args->b = gpu_allocate(&gpu, count * (uint64_t)(n * row));
    args->d = gpu_allocate(&gpu, count * (uint64_t)(2 * m * n));
    args->scale_a = gpu_allocate(&gpu, count * up(m, 128) * wide);
    args->scale_b = gpu_allocate(&gpu, count * up(n, 128) * wide);
    return (double)(row + of_scales);
}

static void scaled(char **v)
{
    hewn_grouped_desc desc = {.struct_size = sizeof desc,
                              .groups = atoll(v[1]),
                              .m = atoll(v[2]),
                              .n = atoll(v[3]),
                              .k = atoll(v[4]),
                              .out = HEWN_BF16,
                              .kind = HEWN_GROUPED_PLANES};
    hewn_grouped_args args = {.struct_size = sizeof args};
    const double row = scaled_new(&desc, &args, v[0]);
    grouped_run(&desc, &args, NULL, row, true);
}

/* Groups of 16-bit inputs, or of e4m3 with f32 scales; returns the bytes of a row. count[]: rows of each group. */
static double grouped_new(hewn_grouped_desc *desc, hewn_grouped_args *args, const char *type,
                          const int32_t *count)
{
    const size_t t = type_of(type);
    static int32_t offset[GROUPS_MOST + 1];
    const int64_t blocks = (desc->k + 127) / 128, rows = (int64_t)up(desc->m, 4);
    const uint64_t groups = (uint64_t)desc->groups, bytes = (uint64_t)types[t].bytes;
    const bool offsets = desc->kind == HEWN_GROUPED_OFFSETS;
    const uint64_t planes = offsets ? 1 : groups;
    desc->in = types[t].type;
    for (uint64_t g = 0; offsets && g < groups; g++) offset[g + 1] = offset[g] + count[g];
    args->a = gpu_allocate(&gpu, planes * (uint64_t)(desc->m * desc->k) * bytes);
    args->b = gpu_allocate(&gpu, groups * (uint64_t)(desc->n * desc->k) * bytes);
    args->d = gpu_allocate(&gpu, planes * (uint64_t)(desc->m * desc->n * 2));
    if (offsets) args->rows = gpu_upload(&gpu, offset, (groups + 1) * sizeof *offset);
    if (desc->in == HEWN_E4M3) {
        args->scale_a = gpu_allocate(&gpu, planes * (uint64_t)(rows * blocks * 4));
        args->scale_b = gpu_allocate(&gpu, groups * (uint64_t)((desc->n + 127) / 128 * blocks * 4));
    }
    return (double)desc->k * (double)bytes;
}

static void grouped(char **v)
{
    const int64_t groups = atoll(v[1]), m = atoll(v[2]);
    static int32_t count[GROUPS_MOST];
    uint64_t draws = 21;
    hewn_grouped_desc desc = {.struct_size = sizeof desc,
                              .groups = groups,
                              .n = atoll(v[3]),
                              .k = atoll(v[4]),
                              .out = HEWN_BF16,
                              .kind = HEWN_GROUPED_OFFSETS};
    hewn_grouped_args args = {.struct_size = sizeof args};
    if (groups < 1 || groups > GROUPS_MOST) gpu_die("groups", "1 to 4096");
    for (int64_t g = 0; g < groups; g++)
        desc.m += count[g] = (int32_t)((double)m * (1 + 0.3 * (2 * draw_unit(&draws) - 1)));
    const double row = grouped_new(&desc, &args, v[0], count);
    grouped_run(&desc, &args, count, row, true);
}

/* ---- drawn groups -- */

static struct ragged {
    int64_t groups, n, k, most; /* most: rows of a group */
    double mean;
    int32_t count[GROUPS_MOST];
} drawn;

/* 4 to 256 groups of about 8 to 2,048 rows, a tenth of them empty; n and k 1,024 to 7,168. Returns us that its bytes
 * read or its multiply-adds take at the model's rates. */
static double ragged_draw(uint64_t *draws, double rate, double row)
{
    double rows = 0, columns = 0;
    drawn.groups = 4LL << (int)(7 * draw_unit(draws));
    drawn.mean = pow(2, 3 + 8 * draw_unit(draws));
    drawn.n = 128 * (8 + (int64_t)(49 * draw_unit(draws)));
    drawn.k = 128 * (8 + (int64_t)(49 * draw_unit(draws)));
    drawn.most = 0;
    for (int64_t g = 0; g < drawn.groups; g++) {
        const bool empty = draw_unit(draws) < 0.1;
        drawn.count[g] = empty ? 0 : (int32_t)(drawn.mean * (0.3 + 1.4 * draw_unit(draws))) + 1;
        if (drawn.count[g] > drawn.most) drawn.most = drawn.count[g];
        rows += drawn.count[g];
        columns += empty ? 0 : (double)drawn.n;
    }
    const double k = (double)drawn.k, cycles = rows * (double)drawn.n * k / (148 * rate);
    return fmax(cycles / 1538, (rows + columns) * k * row / 7.4e6);
}

/* Groups that would take 30 to 60 us at the rates of the model, then one dense product of their rows, each group's
 * rounded up to the tile. Block scales: planes with counts. The others: planes with counts, or with odd seeds rows
 * behind each other. */
static void ragged(char **v)
{
    const bool scales = v[0][0] == 'm' || v[0][0] == 'n', sixteen = !scales && v[0][0] != 'e';
    const bool four = !strcmp(v[0], "nv4") || !strcmp(v[0], "mx4");
    uint64_t draws = strtoull(v[1], NULL, 10) * 0x9E3779B97F4A7C15U;
    hewn_grouped_args args = {.struct_size = sizeof args}, whole = args;
    double floor = 0;
    while (floor < 30 || floor > 60)
        floor = ragged_draw(&draws,
                            sixteen ? 4096
                            : four  ? 16384
                                    : 8192,
                            sixteen ? 2
                            : four  ? 0.5
                                    : 1);
    hewn_grouped_desc desc = {.struct_size = sizeof desc,
                              .groups = drawn.groups,
                              .m = drawn.most,
                              .n = drawn.n,
                              .k = drawn.k,
                              .expected_m = (int64_t)drawn.mean,
                              .out = HEWN_BF16,
                              .kind = HEWN_GROUPED_COUNTS};
    if (!scales && atoll(v[1]) % 2) {
        desc.kind = HEWN_GROUPED_OFFSETS;
        for (int64_t g = desc.m = 0; g < desc.groups; g++) desc.m += drawn.count[g];
    } else {
        args.rows = gpu_upload(&gpu, drawn.count, (uint64_t)desc.groups * sizeof *drawn.count);
    }
    printf("%lld groups of about %.0f rows, n %lld, k %lld, %s\n", (long long)desc.groups,
           drawn.mean, (long long)desc.n, (long long)desc.k, args.rows ? "counts" : "offsets");
    double row =
        scales ? scaled_new(&desc, &args, v[0]) : grouped_new(&desc, &args, v[0], drawn.count);
    const int64_t rows = (int64_t)grouped_run(&desc, &args, drawn.count, row, false);
    if (sixteen) {
        product(type_of(v[0]), rows, desc.n, desc.k, NULL);
        return;
    }
    hewn_grouped_desc dense = {.struct_size = sizeof dense,
                               .groups = 1,
                               .m = rows,
                               .n = drawn.n,
                               .k = drawn.k,
                               .out = HEWN_BF16,
                               .kind = HEWN_GROUPED_PLANES};
    row =
        scales ? scaled_new(&dense, &whole, v[0]) : grouped_new(&dense, &whole, v[0], drawn.count);
    grouped_run(&dense, &whole, NULL, row, false);
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

/* Draws a sequence of an MLA cache. Of records of 584 bytes the scales stand behind the rows of data. All scales are 1. */
static unsigned char *mla_sequence(int cache, int64_t length, uint64_t bytes, const void *block,
                                   const void *narrow)
{
    enum { PART = 1 << 20 };
    unsigned char *at = gpu_host(bytes);
    const int64_t row = cache == HEWN_MLA_CACHE_584   ? 576
                        : cache == HEWN_MLA_CACHE_656 ? 656
                                                      : 1152;
    const int64_t vector = cache == HEWN_MLA_CACHE_584   ? 448
                           : cache == HEWN_MLA_CACHE_656 ? 512
                                                         : 0;
    const int64_t scales = cache == HEWN_MLA_CACHE_656 ? 16 : 0;
    const float one[4] = {1, 1, 1, 1};
    memset(at, 127, bytes); /* 1 as a power of two of 8 bits */
    for (int64_t i = 0; i < length; i++) {
        const int64_t from = i * row % PART, left = row - vector - scales;
        memcpy(at + i * row, (const char *)narrow + from, (size_t)vector);
        memcpy(at + i * row + vector, one, (size_t)scales);
        memcpy(at + i * row + vector + scales, (const char *)block + from, (size_t)left);
    }
    return at;
}

static void mla(char **v)
{
    enum { BLOCK = 1 << 20 };
    static const struct {
        const char *name;
        int cache, row, dim;
    } caches[] = {{"plain", HEWN_MLA_CACHE_PLAIN, 1152, 576},
                  {"656", HEWN_MLA_CACHE_656, 656, 576},
                  {"584", HEWN_MLA_CACHE_584, 584, 512}};
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
    uint64_t sequence = (uint64_t)(length * caches[c].row);
    if (c == 2) sequence = (sequence + 575) / 576 * 576;
    void *block = draw(BLOCK, false), *narrow = draw(BLOCK, true);
    void *keys = mla_sequence(caches[c].cache, length, sequence, block, narrow);
    args.q = gpu_repeat(&gpu, block, 2 * BLOCK, 2 * queries * (uint64_t)caches[c].dim);
    args.kv = gpu_repeat(&gpu, keys, sequence, (uint64_t)batch * sequence);
    args.o = gpu_allocate(&gpu, 2 * queries * 512);
    need(hewn_mla_plan_create(gpu.d.context, &desc, &plan, &err), "plan");
    need(hewn_mla_plan_describe(plan, &info, &err), "describe");
    if (info.workspace) args.workspace = gpu_allocate(&gpu, info.workspace);
    need(hewn_mla_plan_run(plan, &args, NULL, &err), "run");
    told(info.module, pairs * (dim + 512), pairs * (dim + 512),
         (double)(batch * length) * caches[c].row + 2.0 * (double)queries * (dim + 512));
    gpu_need(gpu.d.synchronize(), "the kernel");
    hewn_mla_plan_destroy(plan);
    free(block);
    free(narrow);
    free(keys);
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
    } kinds[] = {{"gemm", gemm, 4},     {"scaled", scaled, 5},       {"grouped", grouped, 5},
                 {"ragged", ragged, 2}, {"attention", attention, 5}, {"decode", decode, 5},
                 {"mla", mla, 4},       {"indexer", indexer, 4}};
    gpu_open(&gpu);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (argc < 2 || strcmp(argv[1], kinds[i].name) || argc < 2 + kinds[i].words ||
            argc > 2 + kinds[i].words + !i)
            continue;
        kinds[i].run(argv + 2);
        gpu_close(&gpu);
        return 0;
    }
    fputs("account_work: see the comment at the top of tests/bench/account_work.c\n", stderr);
    return 2;
}
