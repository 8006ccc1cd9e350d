/* Bad input to grouped products: descriptions, addresses, rows, one at a time. And what plans choose. */
#include "badinput.h"

#include <string.h>

/* Where the tensors of a run lie: 256 MB apart. */
enum { AT_A = 0x10000000, AT_B = 0x20000000, AT_D = 0x30000000, AT_SCALE_A = 0x40000000 };
enum { AT_SCALE_B = 0x50000000, AT_ROWS = 0x60000000 };

/* Four groups in 1,000 rows. */
static hewn_grouped_desc good(void)
{
    return (hewn_grouped_desc){
        .struct_size = sizeof(hewn_grouped_desc),
        .groups = 4,
        .m = 1000,
        .n = 512,
        .k = 384,
        .in = HEWN_E4M3,
        .out = HEWN_BF16,
        .kind = HEWN_GROUPED_OFFSETS,
    };
}

#define BAD(change, status, words)                                                              \
    do {                                                                                        \
        hewn_grouped_desc d = good();                                                           \
        hewn_grouped_plan *plan = NULL;                                                         \
        change;                                                                                 \
        REFUSE("grouped: " #change, hewn_grouped_plan_create(context, &d, &plan, &err), status, \
               words);                                                                          \
        CHECK(plan == NULL, "a plan came back");                                                \
    } while (0)

static void shapes(hewn_context *context)
{
    BAD(d.struct_size = 0, HEWN_ERR_ARGUMENT, "hewn_grouped_desc: struct_size 0");
    BAD(d.groups = 0, HEWN_ERR_ARGUMENT, "groups: 0 is not in 1..2147483647");
    BAD(d.m = 0, HEWN_ERR_ARGUMENT, "m: 0 is not in 1..2147483647");
    BAD(d.n = -1, HEWN_ERR_ARGUMENT, "n: -1 is not in 1..2147483647");
    BAD(d.k = 1LL << 31, HEWN_ERR_ARGUMENT, "k: 2147483648 is not in 1..2147483647");
    BAD(d.expected_m = -1, HEWN_ERR_ARGUMENT, "expected_m: -1 is not in 0..2147483647");
    BAD(d.align = 24, HEWN_ERR_ARGUMENT, "align: 24 is no power of two");
    BAD((d.kind = HEWN_GROUPED_PLANES, d.align = 16), HEWN_ERR_ARGUMENT,
        "align: 16 is not in 0..0");
    BAD(d.a_rows = -1, HEWN_ERR_ARGUMENT, "a_rows: -1 is not in 0..2147483647");
    BAD((d.a_rows = 2000, d.scale_a_k = 1000), HEWN_ERR_ARGUMENT,
        "scale_a_k: 1000 is less than the 2000 elements inside");
    BAD(d.kind = 3, HEWN_ERR_ARGUMENT, "kind: 3 is not in 0..2");
    BAD(d.scales = 5, HEWN_ERR_ARGUMENT, "scales: 5 is not in 0..4");
    BAD((d.scales = HEWN_GROUPED_COLUMNS, d.variant = "128x192"), HEWN_ERR_ARGUMENT,
        "variant: there is no kernel \"128x192\"");
    BAD(d.in = HEWN_E5M2, HEWN_ERR_ARGUMENT, "in: dtype 4 (e5m2) is none of e4m3, bf16, f16");
    BAD((d.in = HEWN_F16, d.out = HEWN_BF16), HEWN_ERR_ARGUMENT,
        "out: dtype 2 (bf16) is none of f16, f32");
    BAD((d.in = HEWN_BF16, d.scales = HEWN_GROUPED_COLUMNS), HEWN_ERR_ARGUMENT,
        "scales: 1 is not in 0..0");
    BAD(d.act = HEWN_ACT_SWIGLU, HEWN_ERR_ARGUMENT,
        "act: 4, beside e4m3, is neither HEWN_ACT_NONE nor HEWN_ACT_SWIGLU of 16-bit inputs");
    BAD((d.in = HEWN_BF16, d.act = HEWN_ACT_RELU), HEWN_ERR_ARGUMENT, "act: 1, beside bf16, is");
    BAD((d.in = HEWN_BF16, d.act = HEWN_ACT_SWIGLU, d.stride_b = 512 * 384), HEWN_ERR_ARGUMENT,
        "stride_b: 196608 is less than the 393216");
    BAD((d.in = HEWN_BF16, d.k = 1 << 30), HEWN_ERR_ARGUMENT,
        "k: 1073741824 is not in 1..1073741823");
    BAD((d.in = HEWN_BF16, d.variant = "128x192"), HEWN_ERR_ARGUMENT,
        "variant: there is no kernel \"128x192\"");
    BAD(d.variant = "128x256h", HEWN_ERR_ARGUMENT, "variant: there is no kernel \"128x256h\"");
    BAD(d.out = HEWN_F16, HEWN_ERR_ARGUMENT, "out: dtype 1 (f16) is none of bf16, f32");
    BAD(d.out = 77, HEWN_ERR_ARGUMENT, "out: dtype 77 (unknown) is none of bf16, f32");
    BAD(d.variant = "64x96", HEWN_ERR_ARGUMENT, "variant: there is no kernel \"64x96\"");
    BAD(d.variant = "64x64p", HEWN_ERR_ARGUMENT, "variant: there is no kernel \"64x64p\"");
    BAD((d.a_rows = 5, d.variant = "64x64"), HEWN_ERR_ARGUMENT,
        "variant: there is no kernel \"64x64\" of rows by number");
    BAD(d.variant = "64x128s6", HEWN_ERR_ARGUMENT, "variant: there is no kernel \"64x128s6\"");
    BAD((d.k = 272, d.variant = "64x128s4"), HEWN_ERR_ARGUMENT,
        "variant: \"64x128s4\" has 4 parts, and k 3 blocks of 128");
    BAD((d.a_rows = 5, d.variant = "256x128"), HEWN_ERR_ARGUMENT,
        "variant: there is no kernel \"256x128\" of rows by number");
    BAD((d.groups = 1 << 20, d.m = 1 << 20, d.n = 1 << 14), HEWN_ERR_LIMIT, "m, n, groups: ");
}

static void block_scales(hewn_context *context)
{
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.in = HEWN_BF16), HEWN_ERR_ARGUMENT,
        "in: dtype 2 (bf16) is none of e4m3, e5m2, e2m1");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.in_b = HEWN_S8), HEWN_ERR_ARGUMENT,
        "in_b: dtype 5 (s8) is none of e4m3, e5m2, e2m1");
    BAD(d.scales = HEWN_GROUPED_UE4M3_16, HEWN_ERR_ARGUMENT, "in: dtype 3 (e4m3) is not e2m1");
    BAD(d.in_b = HEWN_BF16, HEWN_ERR_ARGUMENT, "in_b: dtype 2 is not that of `in`, 3");
    BAD(d.scale_layout = 1, HEWN_ERR_ARGUMENT, "scale_layout: 1 is not in 0..0");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.align = 64), HEWN_ERR_ARGUMENT,
        "align: 64 is less than 128, the rows at which scales of a group may begin");
    BAD(d.scales = HEWN_GROUPED_UE8M0_128, HEWN_ERR_ARGUMENT, "scale_layout: 0 is not in 1..1");
    BAD((d.scales = HEWN_GROUPED_UE4M3_16, d.in = HEWN_E2M1, d.scale_layout = 1), HEWN_ERR_ARGUMENT,
        "scale_layout: 1 is not in 0..0");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.scale_layout = 1, d.align = 2), HEWN_ERR_ARGUMENT,
        "align: 2 is less than 4, the rows at which scales of a group may begin");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.scale_layout = 1, d.scale_b_n = 6), HEWN_ERR_ARGUMENT,
        "scale_b_n: 6 ");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.scale_layout = 1, d.in = HEWN_E2M1, d.k = 64),
        HEWN_ERR_ARGUMENT, "k: 64 elements of e2m1 are no multiple of 128");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.a_rows = 9), HEWN_ERR_ARGUMENT,
        "a_rows: 9 is not in 0..0");
    BAD((d.scales = HEWN_GROUPED_UE4M3_16, d.in = HEWN_E2M1, d.k = 33), HEWN_ERR_ARGUMENT,
        "k: 33 elements of e2m1 are no multiple of 2");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.in_b = HEWN_E2M1, d.k = 64), HEWN_ERR_ARGUMENT,
        "k: 64 elements of e2m1 are no multiple of 128");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.in = HEWN_E2M1, d.lda = 400), HEWN_ERR_ARGUMENT,
        "lda: 400 elements of e2m1 are no multiple of 32");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.in = HEWN_E2M1, d.k = 2050), HEWN_ERR_ARGUMENT,
        "lda: 2050 elements, 1025 B, are no multiple of 16 B");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.in = HEWN_E2M1, d.ldb = 352), HEWN_ERR_ARGUMENT,
        "ldb: 352 is less than the 384 elements inside");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.in = HEWN_E2M1, d.stride_b = 512 * 384 - 32),
        HEWN_ERR_ARGUMENT, "stride_b: 196576 is less than the 196608 elements inside");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.in = HEWN_E2M1, d.lda = 1LL << 41), HEWN_ERR_ARGUMENT,
        "lda: 2199023255552 elements of 4 bits are not in 0..2^40-1 B");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.scale_a_k = 512), HEWN_ERR_ARGUMENT,
        "scale_a_k: 512 is less than the 1536 elements inside");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.scale_b_n = 1544), HEWN_ERR_ARGUMENT,
        "scale_b_n: 1544 elements, 1544 B, are no multiple of 16 B");
}

/* D with scales of its own. */
static void quantised(hewn_context *context)
{
    BAD(d.out = HEWN_E4M3, HEWN_ERR_ARGUMENT, "out: dtype 3 (e4m3) is none of bf16, f32");
    BAD((d.in = HEWN_BF16, d.out = HEWN_F16), HEWN_ERR_ARGUMENT,
        "out: dtype 1 (f16) is none of bf16, f32, e4m3, e2m1");
    BAD((d.in = HEWN_BF16, d.out = HEWN_E4M3), HEWN_ERR_NO_MODULE, "shipped for: sm_100f");
    BAD((d.in = HEWN_BF16, d.out = HEWN_E4M3, d.a_rows = 9), HEWN_ERR_ARGUMENT,
        "a_rows: 9 is not in 0..0");
    BAD((d.in = HEWN_F16, d.out = HEWN_E2M1, d.scales = HEWN_GROUPED_UE4M3_16), HEWN_ERR_ARGUMENT,
        "in: dtype 1 (f16) is not e2m1");
    BAD((d.in = HEWN_F16, d.out = HEWN_E4M3, d.scale_d_m = 1024), HEWN_ERR_ARGUMENT,
        "scale_d_m: 1024 is less than the 2048 elements inside");
    BAD((d.in = HEWN_F16, d.out = HEWN_E4M3, d.act = HEWN_ACT_SWIGLU, d.n = 500), HEWN_ERR_ARGUMENT,
        "n: 500, with SwiGLU, is no multiple of 32");
    BAD(d.scale_d_m = 2048, HEWN_ERR_ARGUMENT, "scale_d_m: 2048 is not in 0..0");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.scale_d_plane = 16384), HEWN_ERR_ARGUMENT,
        "scale_d_plane: 16384 is not in 0..0");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.out = HEWN_E5M2), HEWN_ERR_ARGUMENT,
        "out: dtype 4 (e5m2) is none of bf16, f32, e4m3, e2m1");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.act = HEWN_ACT_RELU), HEWN_ERR_ARGUMENT,
        "act: 1, beside e4m3, is neither");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.out = HEWN_E4M3, d.act = 5), HEWN_ERR_ARGUMENT,
        "act: 5 is not in 0..4");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.out = HEWN_E4M3, d.act = HEWN_ACT_SWIGLU, d.n = 500),
        HEWN_ERR_ARGUMENT, "n: 500, with SwiGLU, is no multiple of 32");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.out = HEWN_E2M1, d.n = 511), HEWN_ERR_ARGUMENT,
        "n: 511 elements of e2m1 are no multiple of 2");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.out = HEWN_E2M1, d.ldd = 520), HEWN_ERR_ARGUMENT,
        "ldd: 520 elements of e2m1 are no multiple of 32");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.out = HEWN_E4M3, d.scale_d_m = 1024),
        HEWN_ERR_ARGUMENT, "scale_d_m: 1024 is less than the 2048 elements inside");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.out = HEWN_E2M1, d.scale_d_m = 4104),
        HEWN_ERR_ARGUMENT, "scale_d_m: 4104 elements, 4104 B, are no multiple of 16 B");
    BAD((d.scales = HEWN_GROUPED_UE8M0_32, d.out = HEWN_E4M3, d.kind = HEWN_GROUPED_COUNTS,
         d.scale_d_plane = 16),
        HEWN_ERR_ARGUMENT, "scale_d_plane: 16 is less than the 16384 elements inside");
}

static void strides(hewn_context *context)
{
    BAD(d.k = 100, HEWN_ERR_ARGUMENT, "lda: 100 elements, 100 B, are no multiple of 16 B");
    BAD((d.in = HEWN_BF16, d.k = 100), HEWN_ERR_ARGUMENT,
        "lda: 100 elements, 200 B, are no multiple of 16 B");
    BAD(d.lda = -16, HEWN_ERR_ARGUMENT, "lda: -16 elements of 8 bits are not in 0..2^40-1 B");
    BAD(d.lda = 1LL << 40, HEWN_ERR_ARGUMENT, "lda: 1099511627776 elements of 8 bits are not in");
    BAD(d.ldb = 368, HEWN_ERR_ARGUMENT, "ldb: 368 is less than the 384 elements inside");
    BAD(d.ldd = 516, HEWN_ERR_ARGUMENT, "ldd: 516 elements, 1032 B, are no multiple of 16 B");
    BAD(d.stride_b = 512 * 384 - 16, HEWN_ERR_ARGUMENT, "stride_b: 196592 is less than the 196608");
    BAD((d.kind = HEWN_GROUPED_COUNTS, d.stride_a = 16), HEWN_ERR_ARGUMENT,
        "stride_a: 16 is less than the 384000 elements inside");
    BAD(d.scale_a_k = 1001, HEWN_ERR_ARGUMENT, "scale_a_k: 1001 elements, 4004 B, are no multiple");
    BAD(d.scale_a_k = 996, HEWN_ERR_ARGUMENT, "scale_a_k: 996 is less than the 1000 elements");
    BAD(d.scale_b_n = 2, HEWN_ERR_ARGUMENT, "scale_b_n: 2 is less than the 3 elements inside");
    BAD((d.scales = HEWN_GROUPED_COLUMNS, d.scale_b_n = 514), HEWN_ERR_ARGUMENT,
        "scale_b_n: 514 elements, 2056 B, are no multiple of 16 B");
    BAD((d.scales = HEWN_GROUPED_COLUMNS, d.scale_b_n = 508), HEWN_ERR_ARGUMENT,
        "scale_b_n: 508 is less than the 512 elements inside");
    BAD((d.scales = HEWN_GROUPED_COLUMNS, d.scale_b_plane = 1532), HEWN_ERR_ARGUMENT,
        "scale_b_plane: 1532 is less than the 1536 elements inside");
    BAD(d.scale_b_plane = 11, HEWN_ERR_ARGUMENT, "scale_b_plane: 11 is less than the 12 elements");
    BAD((d.groups = INT32_MAX, d.n = 8, d.k = 16, d.m = 8, d.stride_b = 1LL << 39),
        HEWN_ERR_ARGUMENT, "ldb, stride_b: the tensor ends behind 2^63 B");
}

#define BAD_RUN(change, words)                                                       \
    do {                                                                             \
        hewn_grouped_args a = {.struct_size = sizeof a,                              \
                               .a = AT_A,                                            \
                               .b = AT_B,                                            \
                               .d = AT_D,                                            \
                               .scale_a = AT_SCALE_A,                                \
                               .scale_b = AT_SCALE_B,                                \
                               .rows = AT_ROWS};                                     \
        change;                                                                      \
        REFUSE("grouped run: " #change, hewn_grouped_plan_run(plan, &a, NULL, &err), \
               HEWN_ERR_ARGUMENT, words);                                            \
    } while (0)

static void addresses(hewn_grouped_plan *plan)
{
    BAD_RUN(a.struct_size = 0, "hewn_grouped_args: struct_size 0");
    BAD_RUN(a.a = 0, "a: address must not be 0");
    BAD_RUN(a.b += 8, "b: address 0x20000008 is not a multiple of 16");
    BAD_RUN(a.d = AT_A + 16, "d: 1024000 B at 0x10000010 overlap a, 384000 B at 0x10000000");
    BAD_RUN(a.d = 0, "d: address must not be 0");
    BAD_RUN(a.scale_a += 4, "scale_a: address 0x40000004 is not a multiple of 16");
    BAD_RUN(a.scale_b += 2, "scale_b: address 0x50000002 is not a multiple of 4");
    BAD_RUN(a.rows = 0, "rows: address must not be 0");
    BAD_RUN(a.index = AT_ROWS + 4096, "index: address 0x60001000 must be 0");
    BAD_RUN(a.bias = AT_ROWS + 4096, "bias: address 0x60001000 must be 0");
    BAD_RUN(a.factor = AT_ROWS + 4096, "factor: address 0x60001000 must be 0");
    BAD_RUN(a.scale_d = AT_ROWS + 4096, "scale_d: address 0x60001000 must be 0");
    REFUSE("grouped run: no plan", hewn_grouped_plan_run(NULL, &(hewn_grouped_args){0}, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    REFUSE("grouped describe: no plan", hewn_grouped_plan_describe(NULL, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
}

/* 16-bit inputs, D quantised: the scales of D alone have an address. */
static void quantised_addresses(hewn_context *context)
{
    hewn_grouped_plan *plan = NULL;
    hewn_grouped_desc d = good();
    hewn_error why = {0};
    d.in = HEWN_BF16, d.out = HEWN_E4M3;
    if (hewn_grouped_plan_create(context, &d, &plan, &why)) {
        if (test_case("grouped: a plan of quantised results")) CHECK(0, "%s", why.message);
        return;
    }
    BAD_RUN((a.scale_a = a.scale_b = 0), "scale_d: address must not be 0");
    BAD_RUN((a.scale_b = 0, a.scale_d = AT_ROWS + 4096), "scale_a: address 0x40000000 must be 0");
    BAD_RUN((a.scale_a = 0, a.scale_d = AT_ROWS + 4096), "scale_b: address 0x50000000 must be 0");
    hewn_grouped_plan_destroy(plan);
}

/* Inputs of 16 bits have no scales, whose addresses must be 0. */
static void unscaled(hewn_context *context)
{
    hewn_grouped_plan *plan = NULL;
    hewn_grouped_desc d = good();
    hewn_error why = {0};
    d.in = HEWN_BF16;
    if (hewn_grouped_plan_create(context, &d, &plan, &why)) {
        if (test_case("grouped: a plan of bf16")) CHECK(0, "%s", why.message);
        return;
    }
    BAD_RUN(a.scale_b = 0, "scale_a: address 0x40000000 must be 0");
    BAD_RUN(a.scale_a = 0, "scale_b: address 0x50000000 must be 0");
    hewn_grouped_plan_destroy(plan);
}

#define BAD_ROWS(change, words)                                                          \
    do {                                                                                 \
        int32_t rows[] = {0, 100, 100, 700, 1000};                                       \
        hewn_grouped_tables t = {.struct_size = sizeof t, .rows = rows};                 \
        change;                                                                          \
        REFUSE("grouped rows: " #change, hewn_grouped_plan_check_tables(plan, &t, &err), \
               HEWN_ERR_ARGUMENT, words);                                                \
    } while (0)

static void rows_of(const hewn_grouped_plan *plan)
{
    if (test_case("grouped rows: none is bad")) {
        const int32_t rows[] = {0, 100, 100, 700, 1000};
        const hewn_grouped_tables t = {.struct_size = sizeof t, .rows = rows};
        hewn_error err = {0};
        CHECK(!hewn_grouped_plan_check_tables(plan, &t, &err), "%s", err.message);
    }
    BAD_ROWS(t.struct_size = 1, "hewn_grouped_tables: struct_size 1");
    BAD_ROWS(t.rows = NULL, "rows: must not be NULL");
    BAD_ROWS(rows[0] = -1, "rows[0]: -1 is not in 0..1000");
    BAD_ROWS(rows[4] = 1001, "rows[4]: 1001 is not in 0..1000");
    BAD_ROWS(t.index = rows, "index: must be NULL, because the plan uses none");
    BAD_ROWS(rows[2] = 99, "rows[1]: 100 is behind rows[2], 99");
    REFUSE("grouped rows: no plan", hewn_grouped_plan_check_tables(NULL, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
}

#define BAD_INDEX(change, words)                                                          \
    do {                                                                                  \
        int32_t rows[] = {0, 3, 8}, index[] = {3, 0, 4, 77, -1, 2, 1, 0};                 \
        hewn_grouped_tables t = {.struct_size = sizeof t, .rows = rows, .index = index};  \
        change;                                                                           \
        REFUSE("grouped index: " #change, hewn_grouped_plan_check_tables(plan, &t, &err), \
               HEWN_ERR_ARGUMENT, words);                                                 \
    } while (0)

/* Groups of rows 0 to 2 and 4 to 7: what stands at 3 is not judged. */
static void index_of(hewn_context *context)
{
    hewn_grouped_plan *plan = NULL;
    hewn_grouped_desc d = good();
    hewn_error why = {0};
    d.groups = 2, d.m = 8, d.a_rows = 5, d.align = 4;
    int status = hewn_grouped_plan_create(context, &d, &plan, &why);
    if (status == HEWN_OK && test_case("grouped index: none is bad")) {
        const int32_t rows[] = {0, 3, 8}, index[] = {3, 0, 4, 77, -1, 2, 1, 0};
        const hewn_grouped_tables t = {.struct_size = sizeof t, .rows = rows, .index = index};
        CHECK(!hewn_grouped_plan_check_tables(plan, &t, &why), "%s", why.message);
        const hewn_grouped_tables other = {.struct_size = sizeof other, .rows = rows};
        CHECK(!hewn_grouped_plan_check_tables(plan, &other, &why), "%s", why.message);
    }
    if (status && test_case("grouped index: a plan")) CHECK(0, "%s", why.message);
    if (!plan) return;
    BAD_INDEX(index[0] = 5, "index[0], of group 0: 5 is not in -1..4");
    BAD_INDEX(index[7] = -2, "index[7], of group 1: -2 is not in -1..4");
    BAD_INDEX(rows[1] = 4, "index[3], of group 0: 77 is not in -1..4");
    hewn_grouped_plan_destroy(plan);
}

/* Few rows a group take tiles of 64, whatever `m` has room for. */
static void choices(hewn_context *context)
{
    static const int list[][4] = {
        {20, 64, 0, HEWN_E4M3}, {8000, 256, 0, HEWN_E4M3}, {20, 128, 1, HEWN_E4M3},
        {20, 64, 0, HEWN_BF16}, {8000, 128, 0, HEWN_BF16},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        hewn_grouped_desc d = good();
        hewn_grouped_plan *plan = NULL;
        hewn_grouped_plan_info info = {.struct_size = sizeof info};
        hewn_error err = {0};
        d.m = 32768;
        d.expected_m = list[i][0];
        d.groups = 32, d.n = 6144, d.k = 7168;
        d.in = list[i][3];
        d.variant = list[i][2] ? "128x160p" : NULL;
        if (!test_case("grouped: %d rows of %s expected%s", list[i][0], hewn_dtype_name(d.in),
                       d.variant ? ", a variant" : ""))
            continue;
        int status = hewn_grouped_plan_create(context, &d, &plan, &err);
        if (!status) status = hewn_grouped_plan_describe(plan, &info, &err);
        CHECK(!status, "%s", err.message);
        CHECK_INT((int)info.tile_m, list[i][1]);
        CHECK(!d.variant || (info.variant && !strcmp(info.variant, d.variant)), "another variant");
        hewn_grouped_plan_destroy(plan);
    }
}

#define BAD_SUM(change, status, words)                                                          \
    do {                                                                                        \
        hewn_grouped_sum_desc d = good_sum();                                                   \
        hewn_grouped_sum_plan *plan = NULL;                                                     \
        change;                                                                                 \
        REFUSE("grouped sum: " #change, hewn_grouped_sum_plan_create(context, &d, &plan, &err), \
               status, words);                                                                  \
        CHECK(plan == NULL, "a plan came back");                                                \
    } while (0)

static hewn_grouped_sum_desc good_sum(void)
{
    return (hewn_grouped_sum_desc){.struct_size = sizeof(hewn_grouped_sum_desc),
                                   .rows = 100,
                                   .terms = 8,
                                   .n = 512,
                                   .x_rows = 800,
                                   .in = HEWN_BF16,
                                   .out = HEWN_BF16};
}

static void sums(hewn_context *context)
{
    BAD_SUM(d.struct_size = 0, HEWN_ERR_ARGUMENT, "hewn_grouped_sum_desc: struct_size 0");
    BAD_SUM(d.rows = 0, HEWN_ERR_ARGUMENT, "rows: 0 is not in 1..2147483647");
    BAD_SUM(d.terms = 1LL << 31, HEWN_ERR_ARGUMENT, "terms: 2147483648 is not in 1..2147483647");
    BAD_SUM(d.n = -1, HEWN_ERR_ARGUMENT, "n: -1 is not in 1..2147483647");
    BAD_SUM(d.x_rows = 0, HEWN_ERR_ARGUMENT, "x_rows: 0 is not in 1..2147483647");
    BAD_SUM(d.in = HEWN_E4M3, HEWN_ERR_ARGUMENT,
            "in, out: dtypes 3 (e4m3) and 2 (bf16) are not two of bf16, f16, f32");
    BAD_SUM(d.out = HEWN_F16, HEWN_ERR_ARGUMENT, "in, out: dtypes 2 (bf16) and 1 (f16)");
    BAD_SUM(d.ldx = 516, HEWN_ERR_ARGUMENT, "ldx: 516 elements, 1032 B, are no multiple of 16 B");
    BAD_SUM(d.ldd = 504, HEWN_ERR_ARGUMENT, "ldd: 504 is less than the 512 elements inside");
    BAD_SUM(d.index_row = 7, HEWN_ERR_ARGUMENT, "index_row: 7 is less than the 8 elements inside");
    BAD_SUM(d.weight_row = -8, HEWN_ERR_ARGUMENT, "weight_row: -8 elements of 32 bits are not in");
    BAD_SUM((d.x_rows = INT32_MAX, d.ldx = 1LL << 38), HEWN_ERR_ARGUMENT,
            "ldx, x_rows: the tensor ends behind 2^63 B");
    BAD_SUM((d.rows = INT32_MAX, d.n = 4096), HEWN_ERR_LIMIT,
            "rows, n: 2147483647 rows of 4 CTAs are more than 2147483647");
}

#define BAD_SUM_RUN(change, words)                                                           \
    do {                                                                                     \
        hewn_grouped_sum_args a = {.struct_size = sizeof a,                                  \
                                   .x = AT_A,                                                \
                                   .d = AT_D,                                                \
                                   .index = AT_ROWS,                                         \
                                   .weights = AT_SCALE_A};                                   \
        change;                                                                              \
        REFUSE("grouped sum run: " #change, hewn_grouped_sum_plan_run(plan, &a, NULL, &err), \
               HEWN_ERR_ARGUMENT, words);                                                    \
    } while (0)

static void sum_addresses(hewn_context *context)
{
    const hewn_grouped_sum_desc d = good_sum();
    hewn_grouped_sum_plan *plan = NULL;
    hewn_error why = {0};
    if (hewn_grouped_sum_plan_create(context, &d, &plan, &why)) {
        if (test_case("grouped sum: a plan")) CHECK(0, "%s", why.message);
        return;
    }
    BAD_SUM_RUN(a.struct_size = 0, "hewn_grouped_sum_args: struct_size 0");
    BAD_SUM_RUN(a.x = 0, "x: address must not be 0");
    BAD_SUM_RUN(a.x += 8, "x: address 0x10000008 is not a multiple of 16");
    BAD_SUM_RUN(a.d = AT_A + 16, "d: 102400 B at 0x10000010 overlap x, 819200 B at 0x10000000");
    BAD_SUM_RUN(a.index = 0, "index: address must not be 0");
    BAD_SUM_RUN(a.index = AT_D, "d: 102400 B at 0x30000000 overlap index, 3200 B at 0x30000000");
    BAD_SUM_RUN(a.weights += 2, "weights: address 0x40000002 is not a multiple of 4");
    hewn_grouped_sum_plan_destroy(plan);
    REFUSE("grouped sum run: no plan",
           hewn_grouped_sum_plan_run(NULL, &(hewn_grouped_sum_args){0}, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    REFUSE("grouped sum describe: no plan", hewn_grouped_sum_plan_describe(NULL, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
}

void grouped(void)
{
    hewn_driver *driver;
    hewn_context *context = attach_fake(&driver, 9, 0);
    if (context) {
        hewn_grouped_desc d = good();
        hewn_grouped_plan *plan = NULL;
        hewn_error why = {0};
        shapes(context);
        block_scales(context);
        quantised(context);
        strides(context);
        choices(context);
        index_of(context);
        unscaled(context);
        sums(context);
        sum_addresses(context);
        if (hewn_grouped_plan_create(context, &d, &plan, &why)) {
            if (test_case("grouped: a plan")) CHECK(0, "%s", why.message);
        } else {
            addresses(plan);
            rows_of(plan);
        }
        hewn_grouped_plan_destroy(plan);
    }
    detach_fake(driver, context);
    context = attach_fake(&driver, 10, 0);
    if (context) {
        BAD(d.scales = HEWN_GROUPED_COLUMNS, HEWN_ERR_NO_MODULE, "shipped for: sm_90a");
        BAD(d.variant = "64x128", HEWN_ERR_NO_MODULE,
            "variant: \"64x128\" is of sm_90a, which this device does not run");
        quantised_addresses(context);
    }
    detach_fake(driver, context);
}
