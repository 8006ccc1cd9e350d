/* What a run of hewn_gemm hands to the driver (ptx/inc/gemm.plan.h). */
#include "params.h"

#include "../../ptx/inc/gemm.plan.h"

#include <string.h>

enum { MAPS = 3, AT_A = 0x10000000, AT_B = 0x20000000, AT_D = 0x30000000, AT_C = 0x40000000 };
enum { AT_BIAS = 0x50000000, AT_SCALE_A = 0x60000000, AT_SCALE_B = 0x60000004 };

static struct scalar kernel[GEMM_SCALAR_COUNT];
static struct fake_map maps[MAPS];

static void launching(void **params)
{
    size_t n = 0;
    for (; n < MAPS; n++) memcpy(&maps[n], params[n], sizeof maps[n]);
#define X(type, field, rule)                                                      \
    kernel[n - MAPS] = (struct scalar){#field, (double)*(const type *)params[n]}; \
    n++;
    GEMM_SCALARS(X)
#undef X
}

static hewn_gemm_args all_args(void)
{
    return (hewn_gemm_args){.struct_size = sizeof(hewn_gemm_args),
                            .a = AT_A,
                            .b = AT_B,
                            .d = AT_D,
                            .c = AT_C,
                            .bias = AT_BIAS,
                            .scale_a = AT_SCALE_A,
                            .scale_b = AT_SCALE_B,
                            .alpha = 1.5F,
                            .beta = -0.5F};
}

static int map_dtype(int dtype)
{
    return dtype == HEWN_F32    ? HEWN_TENSORMAP_F32
           : dtype == HEWN_F16  ? HEWN_TENSORMAP_F16
           : dtype == HEWN_BF16 ? HEWN_TENSORMAP_BF16
                                : HEWN_TENSORMAP_U8;
}

/* args NULL: plain_product. */
static void run(const hewn_gemm_desc *desc, const hewn_gemm_args *args,
                const struct scalar *scalars, const struct want_map want[MAPS])
{
    static const char *const names[MAPS] = {"map_a", "map_b", "map_d"};
    hewn_driver *driver = NULL;
    hewn_context *context = NULL;
    hewn_gemm_plan *plan = NULL;
    hewn_error err = {0};
    fake_reset();
    fake.launching = launching;
    memset(kernel, 0, sizeof kernel);
    memset(maps, 0, sizeof maps);
    int status = fake_open(&driver, &err);
    if (!status) status = hewn_context_attach_primary(driver, 0, &context, &err);
    if (!status) status = hewn_gemm_plan_create(context, desc, &plan, &err);
    if (!status)
        status = args ? hewn_gemm_plan_run(plan, args, NULL, &err)
                      : plain_product(plan, AT_A, AT_B, AT_D, NULL, &err);
    CHECK(status == HEWN_OK, "%s", err.message);
    CHECK_INT(fake.launches, 1);
    check_scalars("kernel", kernel, GEMM_SCALAR_COUNT, scalars);
    for (int i = 0; want && i < MAPS; i++)
        check_map(names[i], &maps[i], &want[i], map_dtype(i == 2 ? desc->out : desc->in),
                  HEWN_TENSORMAP_L2_128B);
    hewn_gemm_plan_destroy(plan);
    hewn_context_detach(context);
    hewn_driver_close(driver);
}

#define MAP(at, d0, d1, d2, s0, s1, b0, b1) \
    {                                       \
        at, {d0, d1, d2}, {s0, s1},         \
        {                                   \
            b0, b1, 1                       \
        }                                   \
    }

/* A batch with one B; K-major; nothing after the sums. */
static void plain(void)
{
    const hewn_gemm_desc d = {.struct_size = sizeof d,
                              .m = 300,
                              .n = 1101,
                              .k = 250,
                              .in = HEWN_BF16,
                              .out = HEWN_F32,
                              .lda = 256,
                              .ldb = 264,
                              .ldd = 1104,
                              .batch = 3,
                              .stride_a = 76800,
                              .stride_d = 331200,
                              .variant = "plain",
                              .parts = 1};
    static const struct scalar want[] = {{"d", AT_D},    {"d_pitch", 4416}, {"d_plane", 1324800},
                                         {"m", 300},     {"n", 1101},       {"k_blocks", 4},
                                         {"tiles_m", 3}, {"tiles_n", 5},    {"tiles", 45},
                                         {"step_a", 1},  {"step_b", 0},     {"raster_rows", 3},
                                         {"alpha", 1},   {NULL, 0}};
    static const struct want_map want_maps[] = {MAP(AT_A, 250, 300, 3, 512, 153600, 64, 128),
                                                MAP(AT_B, 250, 1101, 1, 528, 528, 64, 256),
                                                MAP(AT_D, 1100, 300, 3, 4416, 1324800, 32, 16)};
    if (test_case("gemm: plain")) run(&d, NULL, want, want_maps);
}

/* Both operands MN-major, in a pair; everything after the sums, C shared by the batch. */
static void majors_and_finish(void)
{
    const hewn_gemm_desc d = {.struct_size = sizeof d,
                              .m = 304,
                              .n = 1104,
                              .k = 250,
                              .in = HEWN_F16,
                              .out = HEWN_BF16,
                              .ldb = 1112,
                              .batch = 2,
                              .stride_a = 76000,
                              .stride_b = 278000,
                              .stride_d = 335616,
                              .variant = "pair",
                              .major_a = HEWN_MAJOR_MN,
                              .major_b = HEWN_MAJOR_MN,
                              .act = HEWN_ACT_GELU,
                              .with = HEWN_GEMM_WITH_C | HEWN_GEMM_WITH_BIAS |
                                      HEWN_GEMM_WITH_SCALE_A | HEWN_GEMM_WITH_SCALE_B |
                                      HEWN_GEMM_WITH_ALPHA,
                              .ldc = 1120,
                              .bias_type = HEWN_BF16};
    const hewn_gemm_args args = all_args();
    static const struct scalar want[] = {
        {"d", AT_D},        {"d_pitch", 2208}, {"d_plane", 671232},     {"c", AT_C},
        {"c_pitch", 2240},  {"bias", AT_BIAS}, {"scale_a", AT_SCALE_A}, {"scale_b", AT_SCALE_B},
        {"m", 304},         {"n", 1104},       {"k_blocks", 4},         {"tiles_m", 2},
        {"tiles_n", 5},     {"tiles", 20},     {"step_a", 1},           {"step_b", 1},
        {"raster_rows", 2}, {"mode", 3},       {"finish", 0x27},        {"alpha", 1.5},
        {"beta", -0.5},     {NULL, 0}};
    static const struct want_map want_maps[] = {MAP(AT_A, 304, 250, 2, 608, 152000, 64, 64),
                                                MAP(AT_B, 1104, 250, 2, 2224, 556000, 64, 64),
                                                MAP(AT_D, 1104, 304, 2, 2208, 671232, 64, 16)};
    if (test_case("gemm: MN-major, all that comes after")) run(&d, &args, want, want_maps);
}

/* beta 0: C neither read nor named; alpha 1: no factors; a bias of D's dtype that is f32. */
static void nothing_to_add(void)
{
    const hewn_gemm_desc d = {.struct_size = sizeof d,
                              .m = 128,
                              .n = 256,
                              .k = 64,
                              .in = HEWN_BF16,
                              .out = HEWN_F32,
                              .variant = "plain",
                              .act = HEWN_ACT_RELU,
                              .with = HEWN_GEMM_WITH_C | HEWN_GEMM_WITH_BIAS};
    hewn_gemm_args args = all_args();
    static const struct scalar want[] = {{"d", AT_D},       {"d_pitch", 1024}, {"d_plane", 1024},
                                         {"c_pitch", 1024}, {"bias", AT_BIAS}, {"m", 128},
                                         {"n", 256},        {"k_blocks", 1},   {"tiles_m", 1},
                                         {"tiles_n", 1},    {"tiles", 1},      {"raster_rows", 1},
                                         {"finish", 0x18},  {"alpha", 1},      {NULL, 0}};
    args.alpha = 1, args.beta = 0, args.scale_a = args.scale_b = 0;
    if (test_case("gemm: bias and relu, a C that is not read")) run(&d, &args, want, NULL);
}

/* 8 bits: e4m3 by e5m2, promoted or not, parts of K. */
static void eight_bits(int accumulate)
{
    const hewn_gemm_desc d = {.struct_size = sizeof d,
                              .m = 60,
                              .n = 1000,
                              .k = 1000,
                              .in = HEWN_E4M3,
                              .out = HEWN_F16,
                              .lda = 1008,
                              .ldb = 1024,
                              .variant = "flat",
                              .parts = 2,
                              .in_b = HEWN_E5M2,
                              .accumulate = accumulate};
    const struct scalar want[] = {
        {"d", AT_D},        {"d_pitch", 2000}, {"d_plane", 2000},
        {"m", 60},          {"n", 1000},       {"k_blocks", 8},
        {"tiles_m", 1},     {"tiles_n", 8},    {"tiles", 8},
        {"raster_rows", 1}, {"alpha", 1},      {"mode", accumulate == HEWN_ACCUMULATE_FAST ? 2 : 6},
        {NULL, 0}};
    static const struct want_map want_maps[] = {MAP(AT_A, 1000, 60, 1, 1008, 1008, 128, 64),
                                                MAP(AT_B, 1000, 1000, 1, 1024, 1024, 128, 128),
                                                MAP(AT_D, 1000, 60, 1, 2000, 2000, 64, 16)};
    if (test_case("gemm: e4m3 by e5m2, accumulate %d", accumulate)) run(&d, NULL, want, want_maps);
}

/* At most 64 rows on 132 SMs: 66 clusters of two parts, so tiles of 16 columns, and a stage for each of a part's
 * k-blocks. */
static void few_rows(void)
{
    const hewn_gemm_desc d = {.struct_size = sizeof d,
                              .m = 12,
                              .n = 1000,
                              .k = 1000,
                              .in = HEWN_BF16,
                              .out = HEWN_BF16,
                              .variant = "few",
                              .parts = 2};
    static const struct scalar want[] = {{"d", AT_D},    {"d_pitch", 2000},  {"d_plane", 2000},
                                         {"m", 12},      {"n", 1000},        {"k_blocks", 16},
                                         {"tiles_m", 1}, {"tiles_n", 63},    {"tiles", 63},
                                         {"alpha", 1},   {"raster_rows", 1}, {"columns", 16},
                                         {"stages", 8},  {NULL, 0}};
    static const struct want_map want_maps[] = {MAP(AT_A, 1000, 12, 1, 2000, 2000, 64, 12),
                                                MAP(AT_B, 1000, 1000, 1, 2000, 2000, 64, 16),
                                                MAP(AT_D, 1000, 12, 1, 2000, 2000, 64, 16)};
    if (test_case("gemm: few rows")) run(&d, NULL, want, want_maps);
}

void gemm(void)
{
    few_rows();
    plain();
    majors_and_finish();
    nothing_to_add();
    eight_bits(HEWN_ACCUMULATE_FULL);
    eight_bits(HEWN_ACCUMULATE_FAST);
}
