/* Products with 4-bit weights: every rule of a description, of weights, of a run's addresses. */
#include "badinput.h"

#include <string.h>

enum { AT_X = 0x10000000, AT_W = 0x20000000, AT_D = 0x30000000 };

static hewn_w4_desc good(void)
{
    return (hewn_w4_desc){.struct_size = sizeof(hewn_w4_desc),
                          .m = 5,
                          .n = 100,
                          .k = 520,
                          .group = 128,
                          .in = HEWN_BF16,
                          .out = HEWN_BF16};
}

/* Refused when a plan is made and when weights are packed. */
#define BAD(change, status, words)                                                            \
    do {                                                                                      \
        hewn_w4_desc d = good();                                                              \
        hewn_w4_plan *plan = NULL;                                                            \
        uint64_t bytes = 0;                                                                   \
        change;                                                                               \
        REFUSE("w4: " #change, hewn_w4_plan_create(context, &d, &plan, &err), status, words); \
        REFUSE("w4 bytes: " #change, hewn_w4_packed_bytes(&d, &bytes, &err), status, words);  \
    } while (0)

static void descriptions(hewn_context *context)
{
    BAD(d.struct_size = 8, HEWN_ERR_ARGUMENT, "hewn_w4_desc: struct_size 8 is not in");
    BAD(d.m = 0, HEWN_ERR_ARGUMENT, "m: 0 is not in 1..2147483647");
    BAD(d.n = -1, HEWN_ERR_ARGUMENT, "n: -1 is not in 1..2147483647");
    BAD(d.k = INT64_C(1) << 31, HEWN_ERR_ARGUMENT, "k: 2147483648 is not in 1..2147483647");
    BAD(d.group = 16, HEWN_ERR_ARGUMENT, "group: 16 is none of 32, 64, 128, 0");
    BAD(d.in = HEWN_F32, HEWN_ERR_ARGUMENT, "in: dtype 0 (f32) is none of bf16, f16");
    BAD(d.out = HEWN_E4M3, HEWN_ERR_ARGUMENT, "out: dtype 3 (e4m3) is none of f32, bf16, f16");
    BAD(d.format = 3, HEWN_ERR_ARGUMENT, "format: 3 is not in 0..");
    BAD(d.parts = 9, HEWN_ERR_ARGUMENT, "parts: 9 is not in 0..8");
    BAD(d.parts = 6, HEWN_ERR_ARGUMENT, "parts: 6 are more than the 5 blocks of 128 in k = 520");
    BAD(d.tile = 32, HEWN_ERR_ARGUMENT, "tile: 32 is none of 64, 128, 192, 256, 0");
    BAD(d.tile = 320, HEWN_ERR_ARGUMENT, "tile: 320 is none of 64, 128, 192, 256, 0");
    BAD(d.invariant = 2, HEWN_ERR_ARGUMENT, "invariant: 2 is not in 0..1");
    BAD(d.x_row = -8, HEWN_ERR_ARGUMENT, "x_row: -8 elements of 2 B is negative or not below 2^40");
    BAD(d.x_row = 512, HEWN_ERR_ARGUMENT, "x_row: 512 is less than the row of 520 elements");
    BAD(d.x_row = 524, HEWN_ERR_ARGUMENT, "x_row: 1048 B is not a multiple of 16 B");
    BAD(d.k = 521, HEWN_ERR_ARGUMENT, "x_row: 1042 B is not a multiple of 16 B");
    BAD(d.d_row = 99, HEWN_ERR_ARGUMENT, "d_row: 99 is less than the row of 100 elements");
    BAD(d.d_row = INT64_C(1) << 40, HEWN_ERR_ARGUMENT, "d_row: 1099511627776 elements of 2 B");
    BAD((d.m = INT32_MAX, d.d_row = (INT64_C(1) << 38)), HEWN_ERR_LIMIT, "d: reaches past 2^64 B");
}

static void choices(hewn_context *context)
{
    hewn_w4_plan *plan = NULL;
    hewn_w4_desc d = good();
    d.m = 33, d.group = 32, d.tile = 192;
    REFUSE("w4: a tile for which registers do not suffice",
           hewn_w4_plan_create(context, &d, &plan, &err), HEWN_ERR_ARGUMENT,
           "tile: 192 is more than 128, the most with groups of 32 and m above 32");
    d = good();
    d.m = d.n = INT32_MAX;
    REFUSE("w4: too many tiles", hewn_w4_plan_create(context, &d, &plan, &err), HEWN_ERR_LIMIT,
           "are more than a grid holds");
    REFUSE("w4: no context", hewn_w4_plan_create(NULL, &d, &plan, &err), HEWN_ERR_ARGUMENT,
           "context: must not be NULL");
    REFUSE("w4: no description", hewn_w4_plan_create(context, NULL, &plan, &err), HEWN_ERR_ARGUMENT,
           "hewn_w4_desc: must not be NULL");
    REFUSE("w4: no out", hewn_w4_plan_create(context, &d, NULL, &err), HEWN_ERR_ARGUMENT,
           "out: must not be NULL");
}

/* ---- weights -- */

static unsigned char values[100 * 260], scales[2 * 100 * 5], zeros[100 * 5], packed[5 * 2 * 4224];

#define BAD_WEIGHTS(change, words)                                                             \
    do {                                                                                       \
        hewn_w4_desc d = good();                                                               \
        uint64_t bytes = sizeof packed;                                                        \
        void *out = packed;                                                                    \
        hewn_w4_weights w = {.struct_size = sizeof w, .values = values, .scales = scales};     \
        change;                                                                                \
        REFUSE("w4 pack: " #change, hewn_w4_pack(&d, &w, out, bytes, &err), HEWN_ERR_ARGUMENT, \
               words);                                                                         \
    } while (0)

static void weights(void)
{
    if (test_case("w4 pack: none is bad")) {
        hewn_w4_desc d = good();
        hewn_error err = {0};
        hewn_w4_weights w = {.struct_size = sizeof w, .values = values, .scales = scales};
        CHECK(!hewn_w4_pack(&d, &w, packed, sizeof packed, &err), "%s", err.message);
    }
    BAD_WEIGHTS(w.struct_size = 0, "hewn_w4_weights: struct_size 0");
    BAD_WEIGHTS(w.values = NULL, "values: must not be NULL");
    BAD_WEIGHTS(w.scales = NULL, "scales: must not be NULL");
    BAD_WEIGHTS(w.zeros = zeros, "zeros: must be NULL with format int4");
    BAD_WEIGHTS(d.format = HEWN_W4_UINT4, "zeros: must not be NULL with format uint4");
    BAD_WEIGHTS((d.format = HEWN_W4_UINT4, w.zeros = zeros, zeros[7] = 16),
                "zeros: [1][2] is 16, not in 0..15");
    BAD_WEIGHTS(w.value_row = 259, "value_row: 259 is less than a row, 260");
    BAD_WEIGHTS(w.scale_row = 4, "scale_row: 4 is less than a row, 5");
    BAD_WEIGHTS(w.zero_row = -1, "zero_row: -1 is less than a row, 5");
    BAD_WEIGHTS(out = NULL, "packed: must not be NULL");
    BAD_WEIGHTS(bytes--, "bytes: 42239, but the packed weights have 42240");
    hewn_w4_desc d = good();
    REFUSE("w4 pack: no weights", hewn_w4_pack(&d, NULL, packed, sizeof packed, &err),
           HEWN_ERR_ARGUMENT, "hewn_w4_weights: must not be NULL");
    REFUSE("w4: no bytes", hewn_w4_packed_bytes(&d, NULL, &err), HEWN_ERR_ARGUMENT,
           "bytes: must not be NULL");
}

/* ---- addresses -- */

#define BAD_RUN(change, words)                                                                \
    do {                                                                                      \
        hewn_w4_args a = {.struct_size = sizeof a, .x = AT_X, .w = AT_W, .d = AT_D};          \
        change;                                                                               \
        REFUSE("w4 run: " #change, hewn_w4_plan_run(plan, &a, NULL, &err), HEWN_ERR_ARGUMENT, \
               words);                                                                        \
    } while (0)

static void addresses(hewn_context *context)
{
    hewn_w4_desc d = good();
    hewn_w4_plan *plan = NULL;
    hewn_error why = {0};
    if (hewn_w4_plan_create(context, &d, &plan, &why)) {
        if (test_case("w4: a plan")) CHECK(0, "%s", why.message);
        return;
    }
    BAD_RUN(a.struct_size = 0, "hewn_w4_args: struct_size 0");
    BAD_RUN(a.x = 0, "x: address must not be 0");
    BAD_RUN(a.x += 8, "x: address 0x10000008 is not a multiple of 16");
    BAD_RUN(a.w = 0, "w: address must not be 0");
    BAD_RUN(a.w += 8, "w: address 0x20000008 is not a multiple of 16");
    BAD_RUN(a.d = 0, "d: address must not be 0");
    BAD_RUN(a.d += 1, "d: address 0x30000001 is not a multiple of 2");
    BAD_RUN(a.d = AT_X + 5198, "d: 1000 B at 0x1000144e overlap x, 5200 B at 0x10000000");
    BAD_RUN(a.d = AT_W, "d: 1000 B at 0x20000000 overlap w, 42240 B at 0x20000000");
    REFUSE("w4 run: no plan", hewn_w4_plan_run(NULL, &(hewn_w4_args){0}, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    REFUSE("w4 describe: no plan", hewn_w4_plan_describe(NULL, NULL, &err), HEWN_ERR_ARGUMENT,
           "plan: must not be NULL");
    hewn_w4_plan_destroy(plan);
}

void w4(void)
{
    hewn_driver *driver;
    hewn_context *context = attach_fake(&driver, 9, 0);
    if (context) {
        descriptions(context);
        choices(context);
        weights();
        addresses(context);
    }
    detach_fake(driver, context);
    context = attach_fake(&driver, 10, 0);
    if (context) {
        hewn_w4_desc d = good();
        hewn_w4_plan *plan = NULL;
        REFUSE("w4: a device that has no such kernel",
               hewn_w4_plan_create(context, &d, &plan, &err), HEWN_ERR_NO_MODULE, "10.0");
    }
    detach_fake(driver, context);
}
