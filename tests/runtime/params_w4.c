/* What a run of hewn_w4 hands to the driver (ptx/inc/w4.plan.h), and the bytes of packed weights. */
#include "params.h"

#include "../../ptx/inc/w4.plan.h"

#include <string.h>

enum { AT_X = 0x10000000, AT_W = 0x20000000, AT_D = 0x30000000 };

static struct scalar kernel[W4_SCALAR_COUNT];
static struct fake_map map;

static void launching(void **params)
{
    size_t n = W4_MAP_COUNT;
    memcpy(&map, params[0], sizeof map);
#define X(type, field, rule)                                                              \
    kernel[n - W4_MAP_COUNT] = (struct scalar){#field, (double)*(const type *)params[n]}; \
    n++;
    W4_SCALARS(X)
#undef X
}

static void run(const hewn_w4_desc *desc, hewn_deviceptr d, const struct scalar *scalars,
                const struct want_map *want)
{
    hewn_driver *driver = NULL;
    hewn_context *context = NULL;
    hewn_w4_plan *plan = NULL;
    hewn_error err = {0};
    const hewn_w4_args args = {.struct_size = sizeof args, .x = AT_X, .w = AT_W, .d = d};
    fake_reset();
    fake.launching = launching;
    memset(kernel, 0, sizeof kernel);
    memset(&map, 0, sizeof map);
    int status = fake_open(&driver, &err);
    if (!status) status = hewn_context_attach_primary(driver, 0, &context, &err);
    if (!status) status = hewn_w4_plan_create(context, desc, &plan, &err);
    if (!status) status = hewn_w4_plan_run(plan, &args, NULL, &err);
    CHECK(status == HEWN_OK, "%s", err.message);
    CHECK_INT(fake.launches, 1);
    check_scalars("kernel", kernel, W4_SCALAR_COUNT, scalars);
    check_map("map_x", &map, want, desc->in == HEWN_F16 ? HEWN_TENSORMAP_F16 : HEWN_TENSORMAP_BF16,
              HEWN_TENSORMAP_L2_128B);
    hewn_w4_plan_destroy(plan);
    hewn_context_detach(context);
    hewn_driver_close(driver);
}

static void few(void)
{
    const hewn_w4_desc d = {.struct_size = sizeof d,
                            .m = 5,
                            .n = 300,
                            .k = 1000,
                            .group = 64,
                            .x_row = 1008,
                            .in = HEWN_BF16,
                            .out = HEWN_F32,
                            .parts = 2,
                            .tile = 128};
    static const struct scalar want[] = {{"w", AT_W},       {"d", AT_D},        {"d_row", 1200},
                                         {"m", 5},          {"n", 300},         {"k_blocks", 8},
                                         {"all_chunks", 5}, {"tile_chunks", 2}, {"tiles_n", 3},
                                         {"rows", 8},       {"groups", 2},      {"stages", 4},
                                         {"wide", 1},       {NULL, 0}};
    static const struct want_map want_map = {AT_X, {1000, 5, 1}, {2016, 2016}, {64, 8, 1}};
    if (test_case("w4: few rows")) run(&d, AT_D, want, &want_map);
}

static void many(void)
{
    const hewn_w4_desc d = {.struct_size = sizeof d,
                            .m = 130,
                            .n = 301,
                            .k = 1000,
                            .in = HEWN_F16,
                            .out = HEWN_F16,
                            .format = HEWN_W4_UINT4,
                            .parts = 1,
                            .tile = 64};
    static const struct scalar want[] = {{"w", AT_W},       {"d", AT_D + 2},    {"d_row", 602},
                                         {"m", 130},        {"n", 301},         {"k_blocks", 8},
                                         {"all_chunks", 5}, {"tile_chunks", 1}, {"tiles_n", 5},
                                         {"rows", 64},      {"groups", 1},      {"stages", 8},
                                         {"out", 2},        {NULL, 0}};
    static const struct want_map want_map = {AT_X, {1000, 130, 1}, {2000, 2000}, {64, 64, 1}};
    if (test_case("w4: several tiles of rows, D by element")) run(&d, AT_D + 2, want, &want_map);
}

/* An element of each kind where the plan header says it is. */
static void packing(void)
{
    enum { N = 128, K = 256, BLOCK = W4_BLOCK_BYTES(2, 1), GROUPS = 4 };
    static unsigned char values[N * K / 2], zeros[N * GROUPS], packed[4 * BLOCK];
    static uint16_t scales[N * GROUPS];
    const hewn_w4_desc d = {.struct_size = sizeof d,
                            .m = 1,
                            .n = N,
                            .k = K,
                            .group = 64,
                            .in = HEWN_BF16,
                            .out = HEWN_BF16,
                            .format = HEWN_W4_UINT4};
    const hewn_w4_weights w = {
        .struct_size = sizeof w, .values = values, .scales = scales, .zeros = zeros};
    hewn_error err = {0};
    if (!test_case("w4: packed weights")) return;
    /* Row 64 + 27 is row 16 + 8 + 3 of chunk 1: warp 1, r 3, high. Column 128 + 64 + 32 + 4 + 9 is column 9 of
     * q 2 in word 2 of half 1 of k-block 1. */
    values[(91 * K + 237) / 2] = 0xD0;
    scales[91 * GROUPS + 3] = 0x1234;
    zeros[91 * GROUPS + 3] = 11;
    CHECK(!hewn_w4_pack(&d, &w, packed, sizeof packed, &err), "%s", err.message);
    const unsigned char *block = packed + 3 * BLOCK; /* (1 * 2 chunks + 1) */
    const int thread = 32 + 4 * 3 + 2, entry = 2 * (8 + 3) + 1;
    CHECK_INT(block[W4_HALF_BYTES + 16 * thread + 4 * 2 + 3], 0xD0);
    CHECK_INT(block[W4_WORDS_BYTES + W4_SCALE_ROW + 2 * entry], 0x34);
    CHECK_INT(block[W4_WORDS_BYTES + 2 * W4_SCALE_ROW + W4_ZERO_ROW + entry], 11);
    size_t others = 0;
    for (size_t i = 0; i < sizeof packed; i++) others += packed[i] != 0;
    CHECK_INT(others, 4);
}

void w4(void)
{
    few();
    many();
    packing();
}
