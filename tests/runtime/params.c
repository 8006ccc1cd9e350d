/*
 * What a run of attention hands to the driver: every kernel parameter and every tensor map, against
 * numbers worked out by hand from the contract (ptx/inc/attention.plan.h); params_gemm.c does so for
 * products. On the fake driver: it needs neither GPU nor simulator.
 */
#include "params.h"

#include "../../ptx/inc/decode.plan.h"
#include "../../ptx/sm_100f/attention.plan.h"
#include "../../ptx/sm_90a/attention.plan.h"

#include <math.h>
#include <string.h>

enum { AT_Q = 0x10000000, AT_O = 0x20000000, AT_K0 = 0x30000000, AT_V0 = 0x40000000 };
enum { AT_K1 = 0x50000000, AT_V1 = 0x60000000, AT_WORK = 0x70000000, AT_LSE = 0x1000 };
enum { AT_MAX = 0x2000, AT_SINK = 0x3000, AT_CU = 0x4000, AT_LEN0 = 0x5000, AT_LEN1 = 0x6000 };
enum { AT_TABLE = 0x7000, AT_WINDOWS = 0x8000, AT_SCALE = 0x9000 };

/* ---- what was told -- */

static struct scalar kernel[ATTENTION_SCALAR_COUNT], combine[ATTENTION_COMBINE_SCALAR_COUNT];
static struct fake_map maps[ATTENTION_MAP_COUNT];

static void read_kernel(void **params)
{
    size_t n = 0;
    for (; n < ATTENTION_MAP_COUNT; n++) memcpy(&maps[n], params[n], sizeof maps[n]);
#define X(type, field, rule)                                                                     \
    kernel[n - ATTENTION_MAP_COUNT] = (struct scalar){#field, (double)*(const type *)params[n]}; \
    n++;
    ATTENTION_SCALARS(X)
#undef X
}

static void read_combine(void **params)
{
    size_t n = 0;
#define X(type, field, rule)                                                \
    combine[n] = (struct scalar){#field, (double)*(const type *)params[n]}; \
    n++;
    ATTENTION_COMBINE_SCALARS(X)
#undef X
}

/* Within one run the first launch is the kernel, a second the combine kernel. */
static void launching(void **params)
{
    if (fake.launches == 1)
        read_kernel(params);
    else
        read_combine(params);
}

/* ---- expectations -- */

void check_scalars(const char *what, const struct scalar *got, size_t count,
                   const struct scalar *want)
{
    for (size_t i = 0; i < count; i++) {
        double value = 0;
        for (const struct scalar *w = want; w->name; w++)
            if (strcmp(w->name, got[i].name) == 0) value = w->value;
        CHECK(fabs(got[i].value - value) <= 1e-7 * fabs(value), "%s: %s: want %.9g got %.9g", what,
              got[i].name, value, got[i].value);
    }
}

void check_map(const char *name, const struct fake_map *got, const struct want_map *want, int dtype,
               int l2)
{
    int rank = 0;
    while (rank < 5 && want->dim[rank]) rank++;
    CHECK_INT(got->rank, rank);
    CHECK(got->address == want->at, "%s: at 0x%llx", name, (unsigned long long)got->address);
    CHECK(got->dtype == dtype, "%s: dtype %d, want %d", name, got->dtype, dtype);
    CHECK(got->swizzle == HEWN_TENSORMAP_SWIZZLE_128B && !got->interleave && !got->oob, "%s: modes",
          name);
    CHECK(got->l2 == l2, "%s: l2 %d, want %d", name, got->l2, l2);
    for (int i = 0; i < rank; i++) {
        CHECK(got->dim[i] == want->dim[i], "%s: dim[%d] %llu, want %llu", name, i,
              (unsigned long long)got->dim[i], (unsigned long long)want->dim[i]);
        CHECK(got->box[i] == want->box[i], "%s: box[%d] %d, want %d", name, i, got->box[i],
              want->box[i]);
        CHECK(got->element_stride[i] == 1, "%s: element_stride[%d]", name, i);
        if (i < rank - 1)
            CHECK(got->stride[i] == want->stride[i], "%s: stride[%d] %llu, want %llu", name, i,
                  (unsigned long long)got->stride[i], (unsigned long long)want->stride[i]);
    }
}

/* Q's map, then K's and V's of each source; of one source twice. All of one dtype and L2 promotion. */
static void check_maps(const struct want_map *want, int sources, int dtype, int l2)
{
    static const char *const names[] = {"map_q", "map_k0", "map_v0", "map_k1", "map_v1"};
    for (int i = 0; i < ATTENTION_MAP_COUNT; i++)
        check_map(names[i], &maps[i], &want[i > 2 * sources ? i - 2 : i], dtype, l2);
}

/* Plans, runs, and leaves what the driver was told in the variables above. */
static void run(const hewn_attention_desc *desc, const hewn_attention_args *args, int launches)
{
    hewn_driver *driver = NULL;
    hewn_context *context = NULL;
    hewn_attention_plan *plan = NULL;
    hewn_error err = {0};
    fake_reset();
    fake.cc_major = 10;
    fake.launching = launching;
    memset(kernel, 0, sizeof kernel);
    memset(combine, 0, sizeof combine);
    memset(maps, 0, sizeof maps);
    int status = fake_open(&driver, &err);
    if (!status) status = hewn_context_attach_primary(driver, 0, &context, &err);
    if (!status) status = hewn_attention_plan_create(context, desc, &plan, &err);
    if (!status) status = hewn_attention_plan_run(plan, args, NULL, &err);
    CHECK(status == HEWN_OK, "%s", err.message);
    CHECK_INT(fake.launches, launches);
    hewn_attention_plan_destroy(plan);
    hewn_context_detach(context);
    hewn_driver_close(driver);
}

/* ---- cases -- */

/* GQA with few tokens, so heads are packed; contiguous; causal, in a window. */
static void padded(void)
{
    hewn_attention_desc d = {.struct_size = sizeof d,
                             .batch = 3,
                             .q_heads = 6,
                             .kv_heads = 2,
                             .qk_dim = 192,
                             .q_length = 50,
                             .in = HEWN_F16,
                             .out = HEWN_BF16,
                             .splits = 1,
                             .source = {SOURCE(.keys = HEWN_KEYS_LENGTHS, .length = 300,
                                               .causal = 1, .window_back = 41, .window_ahead = 8)}};
    hewn_attention_args a = {.struct_size = sizeof a,
                             .q = AT_Q,
                             .o = AT_O,
                             .lse = AT_LSE,
                             .source = {SOURCE_ARGS(.k = AT_K0, .v = AT_V0, .lengths = AT_LEN0)}};
    static const struct scalar want[] = {
        {"o", AT_O},       {"lse", AT_LSE},    {"lengths_0", AT_LEN0},
        {"o_token", 1536}, {"o_head", 256},    {"o_batch", 76800},
        {"lse_token", 4},  {"lse_head", 200},  {"lse_batch", 1200},
        {"items", 6},      {"q_blocks", 1},    {"batch", 3},
        {"kv_heads", 2},   {"head_blocks", 1}, {"splits", 1},
        {"group", 3},      {"pack", 3},        {"tokens", 42},
        {"q_len", 50},     {"q_tokens", 50},   {"out_type", HEWN_BF16},
        {"normalise", 1},  {"sources", 1},     {"kv_len_0", 300},
        {"left_0", 40},    {"box_k_0", 128},   {"box_v_0", 64},
        {"box_k_1", 128},  {"box_v_1", 64},    {"scale_log2", 0.104117551},
        {NULL, 0},
    };
    static const struct want_map want_maps[] = {
        {AT_Q, {192, 3, 2, 50, 3}, {384, 1152, 2304, 115200}, {64, 3, 1, 42, 1}},
        {AT_K0, {192, 300, 2, 3}, {768, 384, 230400}, {64, 128, 1, 1}},
        {AT_V0, {128, 300, 2, 3}, {512, 256, 153600}, {64, 64, 1, 1}},
    };
    if (!test_case("padded, one source")) return;
    run(&d, &a, 1);
    check_scalars("kernel", kernel, ATTENTION_SCALAR_COUNT, want);
    check_maps(want_maps, 1, HEWN_TENSORMAP_F16, HEWN_TENSORMAP_L2_256B);
}

/* Heads outermost, explicit strides; unnormalised; window lengths; no mask to the right. */
static void strided(void)
{
    hewn_attention_desc d = {
        .struct_size = sizeof d,
        .batch = 2,
        .q_heads = 2,
        .kv_heads = 2,
        .qk_dim = 64,
        .q_length = 600,
        .in = HEWN_BF16,
        .out = HEWN_F32,
        .layout = HEWN_LAYOUT_BHSD,
        .o_token = 72,
        .o_head = 50000,
        .o_batch = 200000,
        .scale = 2,
        .sink = 1,
        .unnormalised = 1,
        .source = {SOURCE(.length = 700, .k_token = 80, .v_batch = 1000000, .windows = 1)}};
    hewn_attention_args a = {
        .struct_size = sizeof a,
        .q = AT_Q,
        .o = AT_O,
        .row_max = AT_MAX,
        .sink = AT_SINK,
        .source = {SOURCE_ARGS(.k = AT_K0, .v = AT_V0, .windows = AT_WINDOWS)}};
    static const struct scalar want[] = {
        {"o", AT_O},
        {"row_max", AT_MAX},
        {"sink", AT_SINK},
        {"window", AT_WINDOWS},
        {"o_token", 288},
        {"o_head", 200000},
        {"o_batch", 800000},
        {"lse_token", 4},
        {"lse_head", 2400},
        {"lse_batch", 4800},
        {"items", 12},
        {"q_blocks", 3},
        {"batch", 2},
        {"kv_heads", 2},
        {"head_blocks", 1},
        {"splits", 1},
        {"group", 1},
        {"pack", 1},
        {"tokens", 128},
        {"q_len", 600},
        {"q_tokens", 600},
        {"out_type", HEWN_F32},
        {"sources", 1},
        {"kv_len_0", 700},
        {"left_0", 1 << 29},
        {"right_0", 1 << 29},
        {"box_k_0", 128},
        {"box_v_0", 64},
        {"box_k_1", 128},
        {"box_v_1", 64},
        {"scale_log2", 2 * 1.44269504},
        {NULL, 0},
    };
    static const struct want_map want_maps[] = {
        {AT_Q, {64, 1, 2, 600, 2}, {76800, 76800, 128, 153600}, {64, 1, 1, 128, 1}},
        {AT_K0, {64, 700, 2, 2}, {160, 89600, 179200}, {64, 128, 1, 1}},
        {AT_V0, {64, 700, 2, 2}, {128, 89600, 2000000}, {64, 64, 1, 1}},
    };
    if (!test_case("strides of its own, window lengths, unnormalised")) return;
    run(&d, &a, 1);
    check_scalars("kernel", kernel, ATTENTION_SCALAR_COUNT, want);
    check_maps(want_maps, 1, HEWN_TENSORMAP_BF16, HEWN_TENSORMAP_L2_128B);
}

/* e4m3; packed queries; pages of 48 keys beside packed keys; V's columns in two halves. */
static void two_sources(void)
{
    hewn_attention_desc d = {
        .struct_size = sizeof d,
        .batch = 4,
        .q_heads = 8,
        .kv_heads = 2,
        .qk_dim = 512,
        .q_length = 90,
        .q_packed = 1,
        .q_tokens = 200,
        .in = HEWN_E4M3,
        .out = HEWN_E4M3,
        .q_scales = HEWN_SCALES_HEAD,
        .k_scales = HEWN_SCALES_SEQUENCE_HEAD,
        .v_scales = HEWN_SCALES_KV_HEAD,
        .promotion = 4,
        .k_scale_batch = 5,
        .pack = 3,
        .splits = 1,
        .source = {SOURCE(.length = 1000, .page_size = 48, .pages = 500, .table_width = 21,
                          .window_back = 1LL << 40, .window_ahead = 6),
                   SOURCE(.keys = HEWN_KEYS_PACKED, .length = 333, .tokens = 777, .window_back = 1,
                          .window_ahead = 1)}};
    hewn_attention_args a = {.struct_size = sizeof a,
                             .q = AT_Q,
                             .o = AT_O,
                             .lse = AT_LSE,
                             .q_scale = AT_SCALE,
                             .k_scale = AT_SCALE + 256,
                             .v_scale = AT_SCALE + 512,
                             .o_scale = AT_SCALE + 768,
                             .cu_q = AT_CU,
                             .source = {SOURCE_ARGS(.k = AT_K0, .v = AT_V0, .table = AT_TABLE),
                                        SOURCE_ARGS(.k = AT_K1, .v = AT_V1, .lengths = AT_LEN1)}};
    static const struct scalar want[] = {
        {"o", AT_O},
        {"lse", AT_LSE},
        {"q_scale", AT_SCALE},
        {"k_scale", AT_SCALE + 256},
        {"v_scale", AT_SCALE + 512},
        {"o_scale", AT_SCALE + 768},
        {"cu_q", AT_CU},
        {"lengths_1", AT_LEN1},
        {"table_0", AT_TABLE},
        {"o_token", 4096},
        {"o_head", 512},
        {"lse_token", 4},
        {"lse_head", 800},
        {"items", 3 * 4 * 2 * 2 * 2},
        {"q_blocks", 3},
        {"batch", 4},
        {"kv_heads", 2},
        {"head_blocks", 2},
        {"splits", 1},
        {"group", 4},
        {"pack", 3},
        {"tokens", 42},
        {"q_len", 90},
        {"q_tokens", 200},
        {"q_scale_step", 1},
        {"k_scale_step", 1},
        {"v_scale_step", 1},
        {"k_scale_batch", 5},
        {"promotion", 4},
        {"out_type", HEWN_E4M3},
        {"normalise", 1},
        {"sources", 2},
        {"kv_len_0", 1000},
        {"kv_len_1", 333},
        {"offsets_1", 1},
        {"left_0", 1 << 29},
        {"right_0", 5},
        {"page_size_0", 48},
        {"table_width_0", 21},
        {"box_k_0", 16},
        {"box_v_0", 16},
        {"box_k_1", 128},
        {"box_v_1", 64},
        {"scale_log2", 0.0637587160},
        {NULL, 0},
    };
    static const struct want_map want_maps[] = {
        {AT_Q, {512, 4, 2, 200, 1}, {512, 2048, 4096, 16}, {128, 3, 1, 42, 1}},
        {AT_K0, {512, 48, 2, 500}, {1024, 512, 49152}, {128, 16, 1, 1}},
        {AT_V0, {512, 48, 2, 500}, {1024, 512, 49152}, {128, 16, 1, 1}},
        {AT_K1, {512, 777, 2, 1}, {1024, 512, 16}, {128, 128, 1, 1}},
        {AT_V1, {512, 777, 2, 1}, {1024, 512, 16}, {128, 64, 1, 1}},
    };
    if (!test_case("packed, paged, two sources, e4m3")) return;
    run(&d, &a, 1);
    check_scalars("kernel", kernel, ATTENTION_SCALAR_COUNT, want);
    check_maps(want_maps, 2, HEWN_TENSORMAP_U8, HEWN_TENSORMAP_L2_256B);
}

/* Parts go to the workspace, without the sink; what was asked for goes to the combine kernel. */
static void split(int packed)
{
    hewn_attention_desc d = {.struct_size = sizeof d,
                             .batch = 2,
                             .q_heads = 4,
                             .kv_heads = 1,
                             .qk_dim = 96,
                             .q_length = 10,
                             .q_packed = packed,
                             .q_tokens = 15,
                             .in = HEWN_BF16,
                             .out = HEWN_F16,
                             .sink = 1,
                             .splits = 5,
                             .source = {SOURCE(.length = 1000, .causal = 1)}};
    hewn_attention_args a = {.struct_size = sizeof a,
                             .q = AT_Q,
                             .o = AT_O,
                             .lse = AT_LSE,
                             .sink = AT_SINK,
                             .cu_q = packed ? AT_CU : 0,
                             .workspace = AT_WORK,
                             .source = {SOURCE_ARGS(.k = AT_K0, .v = AT_V0)}};
    double rows = packed ? 60 : 80, plane = packed ? 0 : 40;
    const struct scalar want[] = {
        {"o", AT_WORK},
        {"lse", AT_WORK + 5 * rows * 384},
        {"cu_q", packed ? AT_CU : 0},
        {"o_token", 1536},
        {"o_head", 384},
        {"o_batch", plane * 384},
        {"o_split", rows * 384},
        {"lse_token", 16},
        {"lse_head", 4},
        {"lse_batch", plane * 4},
        {"lse_split", rows * 4},
        {"items", 10},
        {"q_blocks", 1},
        {"batch", 2},
        {"kv_heads", 1},
        {"head_blocks", 1},
        {"splits", 5},
        {"group", 4},
        {"pack", 4},
        {"tokens", 32},
        {"q_len", 10},
        {"q_tokens", packed ? 15 : 10},
        {"out_type", HEWN_F32},
        {"normalise", 1},
        {"sources", 1},
        {"kv_len_0", 1000},
        {"left_0", 1 << 29},
        {"box_k_0", 128},
        {"box_v_0", 64},
        {"box_k_1", 128},
        {"box_v_1", 64},
        {"scale_log2", 0.147244453},
        {NULL, 0},
    };
    const struct scalar want_combine[] = {
        {"part_o", AT_WORK},
        {"part_lse", AT_WORK + 5 * rows * 384},
        {"o", AT_O},
        {"lse", AT_LSE},
        {"sink", AT_SINK},
        {"o_token", 768},
        {"o_head", 192},
        {"o_batch", plane * 192},
        {"lse_token", 4},
        {"lse_head", packed ? 60 : 40},
        {"lse_batch", plane * 4},
        {"part_o_token", 1536},
        {"part_o_head", 384},
        {"part_o_batch", plane * 384},
        {"part_o_split", rows * 384},
        {"part_lse_token", 16},
        {"part_lse_head", 4},
        {"part_lse_batch", plane * 4},
        {"part_lse_split", rows * 4},
        {"part_type", HEWN_F32},
        {"rows", rows},
        {"q_tokens", packed ? 15 : 10},
        {"q_heads", 4},
        {"v_dim", 96},
        {"splits", 5},
        {"out_type", HEWN_F16},
        {NULL, 0},
    };
    if (!test_case("splits, %s", packed ? "packed" : "padded")) return;
    run(&d, &a, 2);
    check_scalars("kernel", kernel, ATTENTION_SCALAR_COUNT, want);
    check_scalars("combine", combine, ATTENTION_COMBINE_SCALAR_COUNT, want_combine);
    CHECK_INT(fake.grid[0], packed ? 15 : 20);
    CHECK_INT(fake.block[0], 128);
}

/* A source without rows is told to the driver as one row of Q; of two empty kinds. */
static void without_keys(void)
{
    hewn_attention_desc d = {.struct_size = sizeof d,
                             .batch = 1,
                             .q_heads = 1,
                             .kv_heads = 1,
                             .qk_dim = 192,
                             .q_length = 1,
                             .in = HEWN_BF16,
                             .source = {SOURCE(.length = 0, .page_size = 7),
                                        SOURCE(.keys = HEWN_KEYS_PACKED, .length = 9)}};
    hewn_attention_args a = {.struct_size = sizeof a,
                             .q = AT_Q,
                             .o = AT_O,
                             .source = {NULL, SOURCE_ARGS(.lengths = AT_LEN1)}};
    if (!test_case("no keys at all")) return;
    run(&d, &a, 1);
    for (int i = 1; i < ATTENTION_MAP_COUNT; i++) {
        struct want_map want = {AT_Q, {i % 2 ? 192 : 128, 1, 1, 1}, {16, 16, 16}, {64, 0, 1, 1}};
        want.box[1] = i < 3 ? 1 : i == 3 ? 128 : 64;
        check_map("an empty map", &maps[i], &want, HEWN_TENSORMAP_BF16, HEWN_TENSORMAP_L2_256B);
    }
}

/* A packed batch without a token: nothing is launched, by neither schedule. */
static void without_queries(int64_t q_length)
{
    hewn_attention_desc d = {.struct_size = sizeof d,
                             .batch = 2,
                             .q_heads = 2,
                             .kv_heads = 1,
                             .qk_dim = 128,
                             .q_length = q_length,
                             .q_packed = 1,
                             .in = HEWN_BF16,
                             .source = {SOURCE(.length = 9)}};
    hewn_attention_args a = {
        .struct_size = sizeof a, .cu_q = AT_CU, .source = {SOURCE_ARGS(.k = AT_K0, .v = AT_V0)}};
    if (!test_case("no queries, q_length %d", (int)q_length)) return;
    run(&d, &a, 0);
}

/* Each variant is run by its own kernel, which is all that is loaded. */
static void variant(const char *module, int in, int64_t qk, int64_t v, unsigned shared,
                    unsigned threads, unsigned slots)
{
    hewn_driver *driver = NULL;
    hewn_context *context = NULL;
    hewn_attention_plan *plan = NULL;
    hewn_attention_plan_info info = {.struct_size = sizeof info};
    hewn_attention_desc d = {.struct_size = sizeof d,
                             .batch = 1,
                             .q_heads = 1,
                             .kv_heads = 1,
                             .qk_dim = qk,
                             .v_dim = v,
                             .q_length = 65, /* more rows than the decode schedule takes */
                             .in = in,
                             .source = {SOURCE(.length = 1)}};
    hewn_error err = {0};
    if (!test_case("%s", module)) return;
    fake_reset();
    fake.cc_major = 10;
    int status = fake_open(&driver, &err);
    if (!status) status = hewn_context_attach_primary(driver, 0, &context, &err);
    if (!status) status = hewn_attention_plan_create(context, &d, &plan, &err);
    if (!status) status = hewn_attention_plan_describe(plan, &info, &err);
    CHECK(status == HEWN_OK, "%s", err.message);
    if (!status) CHECK(strcmp(info.module, module) == 0, "%s is chosen", info.module);
    CHECK_INT(fake.loads, 1);
    CHECK_INT(info.dynamic_shared, shared);
    CHECK_INT(info.block[0], threads);
    CHECK_INT(info.slots, slots);
    hewn_attention_plan_destroy(plan);
    hewn_context_detach(context);
    hewn_driver_close(driver);
}

#define VARIANT(P, in, qk, v, e)                                            \
    variant("attention_" #in "_" #qk "_" #v, HEWN_DTYPE_##in, qk, v,        \
            P##_ATTENTION_DYNAMIC_SHARED(qk, e), P##_ATTENTION_THREADS(qk), \
            P##_ATTENTION_SLOTS(qk, e));
#define VARIANT_OF_2(P, t, qk, v) VARIANT(P, bf16, qk, v, 2) VARIANT(P, f16, qk, v, 2)
#define VARIANT_OF_1(P, t, qk, v) VARIANT(P, e4m3, qk, v, 1)
#define VARIANTS(P, t, qk, v, e)  VARIANT_OF_##e(P, t, qk, v)
enum { HEWN_DTYPE_bf16 = HEWN_BF16, HEWN_DTYPE_f16 = HEWN_F16, HEWN_DTYPE_e4m3 = HEWN_E4M3 };

static void variants(void)
{
    SM100F_ATTENTION_VARIANTS(VARIANTS)
}

/* ---- how decode fetches keys on Hopper -- */

static struct {
    u32 gather, groups, box;
} fetched;

static void read_decode(void **params)
{
    size_t n = DECODE_MAP_COUNT;
    if (fake.launches > 1) return; /* the combine kernel */
#define X(type, field, rule)                                                             \
    if (strcmp(#field, "gather") == 0) fetched.gather = (u32) * (const type *)params[n]; \
    if (strcmp(#field, "groups") == 0) fetched.groups = (u32) * (const type *)params[n]; \
    if (strcmp(#field, "box") == 0) fetched.box = (u32) * (const type *)params[n];       \
    n++;
    DECODE_SCALARS(X)
#undef X
}

/* A block is 128 keys of a KV head. From 4,096 blocks of all heads on, some pages are fetched row by row, with CTAs in groups:
 * runtime/decode.c. */
static const struct fetch {
    const char *name;
    int kv;
    int64_t qk, batch, kv_heads, length, page;
    u32 gather, groups, box;
} fetches[] = {
    {"64 columns, pages of 16: 4,096 blocks", 0, 64, 64, 8, 1024, 16, 1, 4, 16},
    {"the same: 3,584 blocks", 0, 64, 64, 8, 896, 16, 0, 4, 16},
    {"pages of 64: 4,096 blocks", 0, 64, 64, 8, 1024, 64, 1, 4, 64},
    {"pages of 8 in groups of none", 0, 64, 64, 8, 1024, 8, 1, 1, 8},
    {"no pages", 0, 64, 64, 8, 1024, 0, 0, 4, 32},
    {"one KV head: 4,096 blocks", 0, 64, 128, 1, 4096, 16, 1, 1, 16},
    {"64 columns, few sequences, pages of 64: heads in pairs", 0, 64, 8, 2, 32768, 64, 1, 1, 64},
    {"the same, pages of 32", 0, 64, 8, 2, 32768, 32, 1, 1, 32},
    {"the same, pages of 16: one by one", 0, 64, 8, 2, 32768, 16, 1, 2, 16},
    {"128 columns, pages of 16: 4,096 blocks", 0, 128, 64, 8, 1024, 16, 1, 8, 16},
    {"the same: 3,584 blocks", 0, 128, 64, 8, 896, 16, 0, 8, 16},
    {"8,192 keys of few heads: apart", 0, 128, 2, 8, 8192, 16, 1, 1, 16},
    {"pages of 64: boxes", 0, 128, 64, 8, 1024, 64, 0, 8, 64},
    {"256 columns: boxes", 0, 256, 64, 8, 1024, 16, 0, 8, 16},
    {"e4m3, 8,192 keys: 4,096 blocks", HEWN_E4M3, 128, 8, 8, 8192, 64, 1, 8, 64},
    {"e4m3, 8,191 keys: boxes", HEWN_E4M3, 128, 8, 8, 8191, 64, 0, 8, 64},
};

static void decode_fetches(const struct fetch *f)
{
    hewn_driver *driver = NULL;
    hewn_context *context = NULL;
    hewn_attention_plan *plan = NULL;
    hewn_error err = {0};
    hewn_attention_plan_info info = {.struct_size = sizeof info};
    const int64_t width = f->page ? f->length / f->page + 1 : 0;
    hewn_attention_desc d = {.struct_size = sizeof d,
                             .batch = f->batch,
                             .q_heads = 4 * f->kv_heads,
                             .kv_heads = f->kv_heads,
                             .qk_dim = f->qk,
                             .q_length = 1,
                             .in = HEWN_BF16,
                             .kv = f->kv,
                             .source = {SOURCE(.length = f->length, .page_size = f->page,
                                               .pages = width * f->batch, .table_width = width)}};
    hewn_attention_args a = {
        .struct_size = sizeof a,
        .q = AT_Q,
        .o = AT_O,
        .workspace = AT_WORK,
        .source = {SOURCE_ARGS(.k = AT_K0, .v = AT_V0, .table = f->page ? AT_TABLE : 0)}};
    if (!test_case("decode: %s", f->name)) return;
    memset(&fetched, 0, sizeof fetched);
    fake_reset();
    fake.launching = read_decode;
    int status = fake_open(&driver, &err);
    if (!status) status = hewn_context_attach_primary(driver, 0, &context, &err);
    if (!status) status = hewn_attention_plan_create(context, &d, &plan, &err);
    if (!status) status = hewn_attention_plan_describe(plan, &info, &err);
    if (!info.workspace) a.workspace = 0;
    if (!status) status = hewn_attention_plan_run(plan, &a, NULL, &err);
    CHECK(status == HEWN_OK, "%s", err.message);
    CHECK_INT(info.schedule, HEWN_SCHEDULE_DECODE);
    CHECK_INT(info.gather, f->gather);
    CHECK_INT(fetched.gather, f->gather);
    CHECK_INT(fetched.groups, f->groups);
    CHECK_INT(fetched.box, f->box);
    hewn_attention_plan_destroy(plan);
    hewn_context_detach(context);
    hewn_driver_close(driver);
}

int main(int argc, char **argv)
{
    test_begin("params", argc, argv);
    test_where("a driver made of functions");
    padded();
    strided();
    two_sources();
    split(0);
    split(1);
    without_keys();
    without_queries(1);
    without_queries(65);
    variants();
    for (size_t i = 0; i < sizeof fetches / sizeof *fetches; i++) decode_fetches(&fetches[i]);
    gemm();
    w4();
    return test_end();
}
