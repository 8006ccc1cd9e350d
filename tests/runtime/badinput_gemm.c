/* Every bad input to hewn_gemm: the error names argument, value and rule, and nothing is launched. */
#include "badinput.h"

#include <math.h>

static hewn_gemm_desc good_gemm(void)
{
    return (hewn_gemm_desc){.struct_size = sizeof(hewn_gemm_desc),
                            .m = 100,
                            .n = 200,
                            .k = 64,
                            .in = HEWN_BF16,
                            .out = HEWN_F32};
}

#define BAD_GEMM(change, status, words)                                                           \
    do {                                                                                          \
        hewn_gemm_desc d = good_gemm();                                                           \
        hewn_gemm_plan *plan = NULL;                                                              \
        change;                                                                                   \
        REFUSE("gemm: " #change, hewn_gemm_plan_create(context, &d, &plan, &err), status, words); \
        CHECK(plan == NULL, "a plan came back");                                                  \
    } while (0)

static void gemm_problem(hewn_context *context)
{
    BAD_GEMM(d.struct_size = 0, HEWN_ERR_ARGUMENT, "hewn_gemm_desc: struct_size 0");
    BAD_GEMM(d.m = 0, HEWN_ERR_ARGUMENT, "m: 0 is not at least 1");
    BAD_GEMM(d.n = -5, HEWN_ERR_ARGUMENT, "n: -5 is not at least 1");
    BAD_GEMM(d.k = 0, HEWN_ERR_ARGUMENT, "k: 0 is not at least 1");
    BAD_GEMM(d.m = INT64_MAX, HEWN_ERR_LIMIT, "m: 9223372036854775807 is more than 2147483647");
    BAD_GEMM(d.k = 1LL << 31, HEWN_ERR_LIMIT, "k: 2147483648 is more than 2147483647");
    BAD_GEMM(d.batch = -1, HEWN_ERR_ARGUMENT, "batch: -1 is not at least 1");
    BAD_GEMM((d.m = d.n = INT32_MAX, d.ldd = 1LL << 31, d.variant = "wide"), HEWN_ERR_LIMIT,
             "m, n, batch: 8388608 x 5592406 tiles of 256 x 384, 1 times, are more than");
    BAD_GEMM(d.variant = "square", HEWN_ERR_ARGUMENT,
             "variant, parts: no kernel for sm_90a is called \"square\"");
    BAD_GEMM((d.variant = "few", d.m = 65), HEWN_ERR_ARGUMENT,
             "variant: \"few\" has at most 64 rows, m is 65");
    BAD_GEMM((d.variant = "oddfew", d.m = 65), HEWN_ERR_ARGUMENT,
             "variant: \"oddfew\" has at most 64 rows, m is 65");
    BAD_GEMM(
        (d.variant = "oddfew", d.m = 64, d.parts = 1, d.invariant = 1), HEWN_ERR_LIMIT,
        "invariant: sums in an order of all kernels: kernel oddfew for sm_90a does not have it");
    BAD_GEMM((d.variant = "oddfew", d.m = 64, d.major_b = HEWN_MAJOR_MN), HEWN_ERR_LIMIT,
             "major_b: MN-major B: kernel oddfew for sm_90a does not have it");
    BAD_GEMM((d.variant = "odd64", d.in = d.in_b = HEWN_E4M3), HEWN_ERR_LIMIT,
             "in: 8-bit inputs: kernel odd64 for sm_90a does not have it");
    BAD_GEMM((d.variant = "odd128", d.batch = 2, d.stride_d = 20000, d.stride_b = d.n * d.k + 4),
             HEWN_ERR_LIMIT,
             "B: a batch stride that is not a multiple of 16 B: kernel odd128 for sm_90a does not");
    BAD_GEMM((d.variant = "odd256", d.parts = 5), HEWN_ERR_ARGUMENT,
             "is called \"odd256\" and takes 5 parts of K");
    BAD_GEMM((d.variant = "odd64", d.k = 7 * 64, d.parts = 4), HEWN_ERR_ARGUMENT,
             "is called \"odd64\" and takes 4 parts of K");
    BAD_GEMM((d.variant = "pair", d.parts = 2), HEWN_ERR_ARGUMENT,
             "is called \"pair\" and takes 2 parts of K");
    BAD_GEMM(d.parts = 9, HEWN_ERR_ARGUMENT, "takes 9 parts of K");
    BAD_GEMM(d.in = HEWN_F32, HEWN_ERR_ARGUMENT,
             "in: dtype 0 (f32) is none of f16, bf16, e4m3, e5m2");
    BAD_GEMM(d.in = 77, HEWN_ERR_ARGUMENT, "in: dtype 77 (unknown) is none of f16, bf16");
    BAD_GEMM(d.out = -1, HEWN_ERR_ARGUMENT, "out: dtype -1 (unknown) is none of f32, f16, bf16");
    BAD_GEMM(d.major_a = 2, HEWN_ERR_ARGUMENT,
             "major_a: 2 is neither HEWN_MAJOR_K nor HEWN_MAJOR_MN");
    BAD_GEMM(d.major_b = -1, HEWN_ERR_ARGUMENT, "major_b: -1 is neither");
    BAD_GEMM(d.act = 5, HEWN_ERR_ARGUMENT, "act: 5 is not in 0..4");
    BAD_GEMM((d.act = HEWN_ACT_SWIGLU, d.with = HEWN_GEMM_WITH_BIAS, d.bias_type = HEWN_F32),
             HEWN_ERR_ARGUMENT, "with: 0x2 has C or bias, which HEWN_ACT_SWIGLU is not for");
    BAD_GEMM((d.act = HEWN_ACT_SWIGLU, d.variant = "pair"), HEWN_ERR_LIMIT,
             "act: SwiGLU: kernel pair for sm_90a does not have it");
    BAD_GEMM(d.variant = "glu64", HEWN_ERR_LIMIT, "act: none: kernel glu64 for sm_90a does not");
    BAD_GEMM((d.act = HEWN_ACT_SWIGLU, d.in = HEWN_E4M3), HEWN_ERR_LIMIT,
             "in: 8-bit inputs: kernel glu");
    BAD_GEMM((d.act = HEWN_ACT_SWIGLU, d.n = 1 << 30), HEWN_ERR_LIMIT, "n: B has twice 1073741824");
    BAD_GEMM((d.act = HEWN_ACT_SWIGLU, d.in = HEWN_BF16, d.out = HEWN_F16), HEWN_ERR_NO_MODULE,
             "the library has no such kernel for any target");
    BAD_GEMM(d.with = 128, HEWN_ERR_ARGUMENT, "with: 0x80 has bits that no HEWN_GEMM_WITH_... has");
    BAD_GEMM(
        d.with = HEWN_GEMM_WITH_SCALE_ROWS, HEWN_ERR_LIMIT,
        "with: 0x20 has scales of rows or columns, but A and B are neither both e4m3 nor both s8");
    BAD_GEMM((d.in = HEWN_E4M3, d.in_b = HEWN_E5M2, d.with = HEWN_GEMM_WITH_SCALE_COLUMNS),
             HEWN_ERR_LIMIT, "with: 0x40 has scales of rows or columns, but A and B");
    BAD_GEMM((d.in = HEWN_S8, d.with = HEWN_GEMM_WITH_SCALE_A | HEWN_GEMM_WITH_SCALE_ROWS),
             HEWN_ERR_ARGUMENT, "with: 0x24 has scale_a or scale_b twice");
    BAD_GEMM((d.in = HEWN_S8, d.in_b = HEWN_E4M3), HEWN_ERR_ARGUMENT,
             "in_b: dtype 3 (e4m3) does not go with `in`, s8");
    BAD_GEMM((d.in = HEWN_S8, d.out = HEWN_S32, d.act = HEWN_ACT_RELU), HEWN_ERR_ARGUMENT,
             "out: s32 is for sums alone, but `with` is 0x0 and `act` 1");
    BAD_GEMM((d.in = HEWN_S8, d.slices = 2), HEWN_ERR_LIMIT,
             "slices: 2 is not 1, which s8, scales of rows or columns, SwiGLU ask for");
    BAD_GEMM((d.in = HEWN_S8, d.variant = "pair"), HEWN_ERR_LIMIT,
             "in: s8: kernel pair for sm_90a does not have it");
    BAD_GEMM((d.in = HEWN_E4M3, d.variant = "96x128", d.out = HEWN_BF16,
              d.with = HEWN_GEMM_WITH_SCALE_ROWS),
             HEWN_ERR_LIMIT,
             "with: scales of rows and columns: kernel 96x128 for sm_90a does not have it");
    BAD_GEMM((d.in = HEWN_S8, d.lda = 100), HEWN_ERR_LIMIT,
             "A: row stride 100 B is not a multiple");
    BAD_GEMM(d.out = HEWN_S32, HEWN_ERR_ARGUMENT, "out: dtype 6 (s32) is none of f32, f16, bf16");
    BAD_GEMM((d.with = HEWN_GEMM_WITH_BIAS, d.bias_type = HEWN_F16), HEWN_ERR_ARGUMENT,
             "bias_type: dtype 1 (f16) is neither f32 nor D's");
    BAD_GEMM(d.ldc = 200, HEWN_ERR_ARGUMENT,
             "ldc, stride_c: 200 and 0 must be 0, because `with` lacks HEWN_GEMM_WITH_C");
    BAD_GEMM(d.in_b = HEWN_F16, HEWN_ERR_ARGUMENT,
             "in_b: dtype 1 (f16) does not go with `in`, bf16");
    BAD_GEMM(d.in_b = HEWN_E4M3, HEWN_ERR_ARGUMENT, "in_b: dtype 3 (e4m3) does not go with");
    BAD_GEMM((d.in = HEWN_E4M3, d.in_b = HEWN_BF16), HEWN_ERR_ARGUMENT,
             "in_b: dtype 2 (bf16) does not go with `in`, e4m3");
    BAD_GEMM((d.in = HEWN_E4M3, d.in_b = HEWN_S8), HEWN_ERR_ARGUMENT, "in_b: dtype 5 (s8)");
    BAD_GEMM((d.in = HEWN_E5M2, d.major_b = 1), HEWN_ERR_ARGUMENT,
             "major_b: HEWN_MAJOR_MN, but e5m2 inputs are K-major");
    BAD_GEMM(d.accumulate = 2, HEWN_ERR_ARGUMENT, "accumulate: 2 is neither HEWN_ACCUMULATE_FULL");
    BAD_GEMM((d.in = HEWN_E4M3, d.parts = 2), HEWN_ERR_ARGUMENT, "takes 2 parts of K here");
    BAD_GEMM((d.in = HEWN_E4M3, d.variant = "wide"), HEWN_ERR_LIMIT,
             "in: 8-bit inputs: kernel wide for sm_90a does not have it");
    BAD_GEMM(d.out = HEWN_E4M3, HEWN_ERR_ARGUMENT, "out: dtype 3 (e4m3) is none of f32, f16, bf16");
    BAD_GEMM(d.invariant = 2, HEWN_ERR_ARGUMENT, "invariant: 2 is not in 0..1");
}

static void gemm_strides(hewn_context *context)
{
    BAD_GEMM(d.ldb = 56, HEWN_ERR_ARGUMENT,
             "B: leading dimension 56 is less than the row's 64 elements");
    BAD_GEMM((d.major_b = 1, d.ldb = 192), HEWN_ERR_ARGUMENT,
             "B: leading dimension 192 is less than the row's 200 elements");
    BAD_GEMM((d.lda = 4100, d.variant = "pair"), HEWN_ERR_LIMIT,
             "A: row stride 8200 B is not a multiple of 16 B, which kernel pair for sm_90a needs");
    BAD_GEMM((d.align = 8, d.variant = "flat"), HEWN_ERR_LIMIT,
             "A: alignment of the address, 8 B is not a multiple of 16 B, which kernel flat");
    BAD_GEMM(d.constant_b = 2, HEWN_ERR_ARGUMENT, "constant_b: 2 is not in 0..1");
    BAD_GEMM(d.slices = 65, HEWN_ERR_ARGUMENT, "slices: 65 is not in 0..64, nor in 130..192");
    BAD_GEMM(d.slices = HEWN_GEMM_TURNED + 1, HEWN_ERR_ARGUMENT, "slices: 129 is not in 0..64");
    BAD_GEMM(d.slices = 193, HEWN_ERR_ARGUMENT, "slices: 193 is not in 0..64");
    BAD_GEMM(d.slices = 258, HEWN_ERR_ARGUMENT, "slices: 258 is not in 0..64");
    BAD_GEMM(d.slices = HEWN_GEMM_TURNED + 9, HEWN_ERR_ARGUMENT,
             "slices: k = 64 is too short to be cut into 9 slices of whole k-blocks");
    BAD_GEMM(d.slices = 2, HEWN_ERR_ARGUMENT,
             "slices: k = 64 is too short to be cut into 2 slices of whole k-blocks");
    BAD_GEMM((d.slices = 10, d.k = 520), HEWN_ERR_ARGUMENT, "be cut into 10 slices");
    BAD_GEMM((d.slices = 4, d.parts = 3, d.k = 520, d.variant = "split"), HEWN_ERR_ARGUMENT,
             "slices: kernel split with 3 parts cannot cut k = 520 into 4 slices");
    BAD_GEMM((d.slices = 2, d.batch = 3, d.stride_a = d.stride_b = 12800, d.stride_d = 20000),
             HEWN_ERR_LIMIT, "slices: 2 is not 1, but batch is 3");
    BAD_GEMM((d.slices = 2, d.align = 2), HEWN_ERR_LIMIT,
             "slices: 2 is not 1, but align is 2, not 16");
    BAD_GEMM((d.variant = "96x128", d.out = HEWN_F32), HEWN_ERR_LIMIT,
             "out: 32 bits: kernel 96x128 for sm_90a does not have it");
    BAD_GEMM(d.align = 3, HEWN_ERR_ARGUMENT, "align: 3 is none of 0, 1, 2, 4, 8, 16");
    BAD_GEMM(d.align = 32, HEWN_ERR_ARGUMENT, "align: 32 is none of");
    BAD_GEMM(d.lda = -64, HEWN_ERR_ARGUMENT, "A: row stride -64 elements is negative");
    BAD_GEMM(d.lda = INT64_MAX, HEWN_ERR_ARGUMENT,
             "A: row stride 9223372036854775807 elements of 2 B is not below 2^40 B");
    BAD_GEMM(d.ldd = 100, HEWN_ERR_ARGUMENT, "D: leading dimension 100 is less than");
    BAD_GEMM((d.with = HEWN_GEMM_WITH_C, d.ldc = 100), HEWN_ERR_ARGUMENT,
             "C: leading dimension 100 is less than the row's 200 elements");
    BAD_GEMM((d.with = HEWN_GEMM_WITH_C, d.batch = 2, d.stride_d = 20000, d.stride_c = -4),
             HEWN_ERR_ARGUMENT, "C: batch stride -4 elements is negative");
    BAD_GEMM(d.batch = 2, HEWN_ERR_ARGUMENT, "D: batch stride 0 elements makes problems overlap");
    BAD_GEMM((d.batch = 2, d.stride_d = 19996), HEWN_ERR_ARGUMENT,
             "D: batch stride 19996 elements makes problems overlap: a problem spans 20000");
    BAD_GEMM((d.batch = 3, d.ldd = 600, d.stride_d = 204), HEWN_ERR_ARGUMENT,
             "D: batch stride 204 elements makes problems overlap");
    BAD_GEMM((d.batch = 2, d.stride_d = 20000, d.stride_b = -64), HEWN_ERR_ARGUMENT,
             "B: batch stride -64 elements is negative");
    BAD_GEMM((d.m = d.batch = INT32_MAX, d.ldd = 1LL << 37, d.stride_d = 1LL << 37), HEWN_ERR_LIMIT,
             "past 2^64 B");
}

static void gemm_calls(hewn_context *context)
{
    hewn_gemm_desc d = good_gemm();
    hewn_gemm_plan *plan = NULL;
    hewn_gemm_plan_info info = {.struct_size = 3};
    REFUSE("gemm: no context", hewn_gemm_plan_create(NULL, &d, &plan, &err), HEWN_ERR_ARGUMENT,
           "context: must not be NULL");
    REFUSE("gemm: no problem", hewn_gemm_plan_create(context, NULL, &plan, &err), HEWN_ERR_ARGUMENT,
           "hewn_gemm_desc: must not be NULL");
    REFUSE("gemm: no output", hewn_gemm_plan_create(context, &d, NULL, &err), HEWN_ERR_ARGUMENT,
           "out: must not be NULL");
    REFUSE("gemm: run of no plan", plain_product(NULL, 16, 16, 16, NULL, &err), HEWN_ERR_ARGUMENT,
           "plan: must not be NULL");
    if (hewn_gemm_plan_create(context, &d, &plan, NULL)) return;
    REFUSE("gemm: describe without struct_size", hewn_gemm_plan_describe(plan, &info, &err),
           HEWN_ERR_ARGUMENT, "hewn_gemm_plan_info: struct_size 3");
    REFUSE("gemm: describe no plan", hewn_gemm_plan_describe(NULL, &info, &err), HEWN_ERR_ARGUMENT,
           "plan: must not be NULL");
    hewn_gemm_plan_destroy(plan);
}

static void gemm_addresses(hewn_context *context)
{
    enum { AT_A = 0x100000, AT_B = 0x200000, AT_D = 0x300000, A_BYTES = 100 * 64 * 2 };
    hewn_gemm_desc d = good_gemm();
    hewn_gemm_plan *plan = NULL;
    if (hewn_gemm_plan_create(context, &d, &plan, NULL)) return;
    REFUSE("gemm: A is 0", plain_product(plan, 0, AT_B, AT_D, NULL, &err), HEWN_ERR_ARGUMENT,
           "A: address must not be 0");
    REFUSE("gemm: B askew", plain_product(plan, AT_A, AT_B + 8, AT_D, NULL, &err),
           HEWN_ERR_ARGUMENT, "B: address 0x200008 is not a multiple of 16");
    REFUSE("gemm: D past the end of memory",
           plain_product(plan, AT_A, AT_B, UINT64_MAX - 79999 + 16, NULL, &err), HEWN_ERR_ARGUMENT,
           "D: address 0xfffffffffffec790 and 80000 B run past the end of memory");
    REFUSE("gemm: D is A", plain_product(plan, AT_A, AT_B, AT_A, NULL, &err), HEWN_ERR_ARGUMENT,
           "D: 80000 B at 0x100000 overlap A, 12800 B at 0x100000");
    REFUSE("gemm: D begins in the last bytes of A",
           plain_product(plan, AT_A, AT_B, AT_A + A_BYTES - 16, NULL, &err), HEWN_ERR_ARGUMENT,
           "overlap A");
    REFUSE("gemm: D ends in the first bytes of B",
           plain_product(plan, AT_A, AT_B, AT_B - 80000 + 16, NULL, &err), HEWN_ERR_ARGUMENT,
           "overlap B");
    hewn_gemm_plan_destroy(plan);
    plan = NULL;
    d.align = 1;
    if (hewn_gemm_plan_create(context, &d, &plan, NULL)) return;
    REFUSE("gemm: B inside an element",
           plain_product(plan, AT_A + 2, AT_B + 1, AT_D + 4, NULL, &err), HEWN_ERR_ARGUMENT,
           "B: address 0x200001 is not a multiple of 2");
    REFUSE("gemm: D inside an element",
           plain_product(plan, AT_A + 2, AT_B + 6, AT_D + 6, NULL, &err), HEWN_ERR_ARGUMENT,
           "D: address 0x300006 is not a multiple of 4");
    CHECK_INT(fake.launches, 0);
    if (test_case("gemm: D right behind A, right before B")) {
        hewn_error err = {0};
        CHECK(!plain_product(plan, AT_A, AT_B, AT_A + A_BYTES, NULL, &err), "%s", err.message);
        CHECK(!plain_product(plan, AT_A, AT_B, AT_B - 80000, NULL, &err), "%s", err.message);
        CHECK_INT(fake.launches, 2);
    }
    hewn_gemm_plan_destroy(plan);
}

#define BAD_ARGS(change, words)                                                  \
    do {                                                                         \
        hewn_gemm_args a = good_args();                                          \
        change;                                                                  \
        REFUSE("gemm: args: " #change, hewn_gemm_plan_run(plan, &a, NULL, &err), \
               HEWN_ERR_ARGUMENT, words);                                        \
    } while (0)

static hewn_gemm_args good_args(void)
{
    return (hewn_gemm_args){.struct_size = sizeof(hewn_gemm_args),
                            .a = 0x100000,
                            .b = 0x200000,
                            .d = 0x300000,
                            .c = 0x400000,
                            .bias = 0x500000,
                            .scale_a = 0x600000,
                            .scale_b = 0x600004,
                            .alpha = 1,
                            .beta = 1};
}

static void gemm_args(hewn_context *context)
{
    hewn_gemm_desc d = good_gemm();
    hewn_gemm_plan *plan = NULL;
    const long launches = fake.launches;
    d.with =
        HEWN_GEMM_WITH_C | HEWN_GEMM_WITH_BIAS | HEWN_GEMM_WITH_SCALE_A | HEWN_GEMM_WITH_SCALE_B;
    d.ldc = 208;
    if (hewn_gemm_plan_create(context, &d, &plan, NULL)) return;
    REFUSE("gemm: args: none", hewn_gemm_plan_run(plan, NULL, NULL, &err), HEWN_ERR_ARGUMENT,
           "hewn_gemm_args: must not be NULL");
    BAD_ARGS(a.struct_size = 8, "hewn_gemm_args: struct_size 8");
    BAD_ARGS(a.a = 0, "A: address must not be 0");
    BAD_ARGS(a.c = 0, "C: address must not be 0");
    BAD_ARGS(a.c += 8, "C: address 0x400008 is not a multiple of 16");
    BAD_ARGS(a.c = UINT64_MAX - 15, "C: address 0xfffffffffffffff0 and 83168 B run past the end");
    BAD_ARGS(a.c = a.d, "D: 80000 B at 0x300000 overlap C, 83168 B at 0x300000");
    BAD_ARGS(a.c = a.d + 79984, "D: 80000 B at 0x300000 overlap C");
    BAD_ARGS(a.bias = 0, "bias: address must not be 0");
    BAD_ARGS(a.bias += 4, "bias: address 0x500004 is not a multiple of 16");
    BAD_ARGS(a.bias = a.d + 79984, "D: 80000 B at 0x300000 overlap bias, 800 B at 0x313870");
    BAD_ARGS(a.scale_a = 0, "scale_a: address must not be 0");
    BAD_ARGS(a.scale_a += 2, "scale_a: address 0x600002 is not a multiple of 4");
    BAD_ARGS(a.scale_b = a.d + 4, "overlap scale_b, 4 B at 0x300004");
    REFUSE("gemm: args: run without bias",
           plain_product(plan, 0x100000, 0x200000, 0x300000, NULL, &err), HEWN_ERR_ARGUMENT,
           "bias: address must not be 0");
    CHECK_INT(fake.launches, launches);
    if (test_case("gemm: args: C may be 0 where beta is")) {
        hewn_gemm_args a = good_args();
        hewn_error err = {0};
        a.c = 0, a.beta = 0;
        CHECK(!hewn_gemm_plan_run(plan, &a, NULL, &err), "%s", err.message);
    }
    hewn_gemm_plan_destroy(plan);
    d = good_gemm();
    if (hewn_gemm_plan_create(context, &d, &plan, NULL)) return;
    BAD_ARGS(a.alpha = 0.5F,
             "alpha: 0.5 must be 0 or 1, because the plan lacks HEWN_GEMM_WITH_ALPHA");
    BAD_ARGS(a.alpha = NAN, "alpha: nan must be 0 or 1");
    BAD_ARGS(a.beta = 0.5F, "beta: 0.5 must be 0, because the plan lacks HEWN_GEMM_WITH_C");
    BAD_ARGS(a.beta = 0, "C: address 0x400000 must be 0, because the plan uses none");
    BAD_ARGS((a.beta = 0, a.c = 0), "bias: address 0x500000 must be 0, because the plan uses none");
    BAD_ARGS((a.beta = 0, a.c = a.bias = 0),
             "scale_a: address 0x600000 must be 0, because the plan uses none");
    hewn_gemm_plan_destroy(plan);
}

/* Slices of K need a workspace of their own. */
static void gemm_workspace(hewn_context *context)
{
    hewn_gemm_desc d = good_gemm();
    hewn_gemm_plan *plan = NULL;
    d.slices = 4;
    d.with = HEWN_GEMM_WITH_C | HEWN_GEMM_WITH_BIAS;
    if (hewn_gemm_plan_create(context, &d, &plan, NULL)) return;
    hewn_gemm_args a = good_args();
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    const long launches = fake.launches;
    a.scale_a = a.scale_b = 0;
    if (test_case("gemm: a plan with slices names its workspace")) {
        CHECK(!hewn_gemm_plan_describe(plan, &info, NULL), "describe failed");
        CHECK_INT(info.slices, 4);
        CHECK_INT((long)info.workspace, 4 * 100 * 200 * 4);
    }
    REFUSE("gemm: slices: no workspace", hewn_gemm_plan_run(plan, &a, NULL, &err),
           HEWN_ERR_ARGUMENT, "workspace: address must not be 0");
    a.workspace = 0x700008;
    REFUSE("gemm: slices: workspace askew", hewn_gemm_plan_run(plan, &a, NULL, &err),
           HEWN_ERR_ARGUMENT, "workspace: address 0x700008 is not a multiple of 16");
    a.workspace = a.c - 16;
    REFUSE("gemm: slices: workspace on C", hewn_gemm_plan_run(plan, &a, NULL, &err),
           HEWN_ERR_ARGUMENT, "workspace: 320000 B at 0x3ffff0 overlap C");
    a.workspace = a.bias;
    REFUSE("gemm: slices: workspace on bias", hewn_gemm_plan_run(plan, &a, NULL, &err),
           HEWN_ERR_ARGUMENT, "overlap bias");
    CHECK_INT(fake.launches, launches);
    if (test_case("gemm: slices: two launches")) {
        hewn_error err = {0};
        a.workspace = 0x800000;
        CHECK(!hewn_gemm_plan_run(plan, &a, NULL, &err), "%s", err.message);
        CHECK_INT(fake.launches, launches + 2);
    }
    hewn_gemm_plan_destroy(plan);
}

/* C in D's place: the same elements, or refused. */
static void gemm_in_place(hewn_context *context)
{
    hewn_gemm_desc d = good_gemm();
    hewn_gemm_plan *plan = NULL;
    d.with = HEWN_GEMM_WITH_C;
    d.batch = 3;
    d.stride_a = 6400;
    d.stride_c = d.stride_d = 20000;
    if (hewn_gemm_plan_create(context, &d, &plan, NULL)) return;
    hewn_gemm_args a = good_args();
    a.c = a.d;
    a.bias = a.scale_a = a.scale_b = 0;
    if (test_case("gemm: C is D")) {
        hewn_error err = {0};
        CHECK(!hewn_gemm_plan_run(plan, &a, NULL, &err), "%s", err.message);
    }
    hewn_gemm_plan_destroy(plan);
    d.stride_c = 0;
    if (hewn_gemm_plan_create(context, &d, &plan, NULL)) return;
    REFUSE("gemm: one C for all problems is D's first", hewn_gemm_plan_run(plan, &a, NULL, &err),
           HEWN_ERR_ARGUMENT, "overlap C");
    hewn_gemm_plan_destroy(plan);
}

/* A, B and D as columns of one wide matrix: their ranges overlap, their elements do not. */
static void gemm_columns(hewn_context *context)
{
    enum { AT = 0x100000, PITCH = 1024 };
    hewn_gemm_desc d = good_gemm();
    hewn_gemm_plan *plan = NULL;
    d.n = 64;
    d.lda = d.ldb = PITCH / 2;
    d.ldd = PITCH / 4;
    if (hewn_gemm_plan_create(context, &d, &plan, NULL)) return;
    if (test_case("gemm: operands side by side in one matrix")) {
        hewn_error err = {0};
        CHECK(!plain_product(plan, AT, AT + 128, AT + 256, NULL, &err), "%s", err.message);
        CHECK(!plain_product(plan, AT + 256, AT + 384, AT, NULL, &err), "%s", err.message);
    }
    REFUSE("gemm: operands side by side, one column too close",
           plain_product(plan, AT, AT + 128, AT + 240, NULL, &err), HEWN_ERR_ARGUMENT, "overlap B");
    REFUSE("gemm: operands side by side, D runs into the next row of A",
           plain_product(plan, AT, AT + 128, AT + PITCH - 240, NULL, &err), HEWN_ERR_ARGUMENT,
           "overlap A");
    hewn_gemm_plan_destroy(plan);
}

#define BAD_TUNE(change, status, words)                                                            \
    do {                                                                                           \
        hewn_gemm_desc d = good_gemm();                                                            \
        hewn_gemm_args a = {.struct_size = sizeof a, .a = 0x100000, .b = 0x200000, .d = 0x300000}; \
        hewn_gemm_tune_args how = {.struct_size = sizeof how, .args = &a};                         \
        change;                                                                                    \
        REFUSE("gemm: tune: " #change, hewn_gemm_tune(context, &d, &how, table, NULL, &err),       \
               status, words);                                                                     \
        CHECK_INT(hewn_gemm_table_count(table), 0);                                                \
    } while (0)

static void gemm_tuning(hewn_context *context)
{
    hewn_gemm_table *table = NULL;
    char text[8];
    size_t length = 0;
    if (hewn_gemm_table_create(&table, NULL)) return;
    REFUSE("gemm: tune: no context", hewn_gemm_tune(NULL, NULL, NULL, table, NULL, &err),
           HEWN_ERR_ARGUMENT, "context: must not be NULL");
    BAD_TUNE(d.struct_size = 1, HEWN_ERR_ARGUMENT, "hewn_gemm_desc: struct_size 1");
    BAD_TUNE(how.struct_size = 1, HEWN_ERR_ARGUMENT, "hewn_gemm_tune_args: struct_size 1");
    BAD_TUNE(how.args = NULL, HEWN_ERR_ARGUMENT, "hewn_gemm_args: must not be NULL");
    BAD_TUNE(a.struct_size = 1, HEWN_ERR_ARGUMENT, "hewn_gemm_args: struct_size 1");
    BAD_TUNE(how.rounds = 1001, HEWN_ERR_ARGUMENT, "rounds: 1001 is more than 1000");
    BAD_TUNE(how.flush_bytes = 9, HEWN_ERR_ARGUMENT,
             "flush, flush_bytes: 0x0 and 9: both or neither must be 0");
    BAD_TUNE(how.flush = 0x400000, HEWN_ERR_ARGUMENT, "flush, flush_bytes: 0x400000 and 0:");
    BAD_TUNE((how.copies = 2, how.copy_stride = -8), HEWN_ERR_ARGUMENT,
             "copy_stride: -8 must be positive with 2 copies");
    BAD_TUNE(a.a += 0, HEWN_ERR_SYMBOL, "tuning: the driver lacks cuEventCreate");
    REFUSE("gemm: table: no out", hewn_gemm_table_create(NULL, &err), HEWN_ERR_ARGUMENT,
           "out: must not be NULL");
    REFUSE("gemm: table: read no table", hewn_gemm_table_read(NULL, "", 0, &err), HEWN_ERR_ARGUMENT,
           "table: must not be NULL");
    REFUSE("gemm: table: read no text", hewn_gemm_table_read(table, NULL, 1, &err),
           HEWN_ERR_ARGUMENT, "text: must not be NULL");
    REFUSE("gemm: table: write no table", hewn_gemm_table_write(NULL, text, 8, &length, &err),
           HEWN_ERR_ARGUMENT, "table: must not be NULL");
    REFUSE("gemm: table: write no text", hewn_gemm_table_write(table, NULL, 8, &length, &err),
           HEWN_ERR_ARGUMENT, "text: must not be NULL");
    REFUSE("gemm: table: write no length", hewn_gemm_table_write(table, text, 8, NULL, &err),
           HEWN_ERR_ARGUMENT, "length: must not be NULL");
    hewn_gemm_table_destroy(table);
    hewn_gemm_table_destroy(NULL);
}

/* What the kernel for sm_100f does not do. */
static void gemm_blackwell(hewn_context *context)
{
    BAD_GEMM((d.lda = 4100, d.variant = "pair"), HEWN_ERR_LIMIT,
             "A: row stride 8200 B is not a multiple of 16 B, which kernel pair for sm_100f needs");
    BAD_GEMM((d.ldd = 202, d.variant = "plain"), HEWN_ERR_LIMIT,
             "D: row stride 808 B is not a multiple of 16 B");
    BAD_GEMM((d.batch = 2, d.stride_d = 20000, d.stride_b = 100, d.variant = "128x64"),
             HEWN_ERR_LIMIT, "B: batch stride 200 B is not a multiple of 16 B");
    BAD_GEMM((d.align = 4, d.variant = "pair128"), HEWN_ERR_LIMIT,
             "A: alignment of the address, 4 B is not a multiple of");
    BAD_GEMM((d.variant = "loose", d.parts = 2), HEWN_ERR_ARGUMENT,
             "variant, parts: no kernel for sm_100f is called \"loose\" and takes 2 parts");
    BAD_GEMM(d.in = HEWN_S8, HEWN_ERR_LIMIT, "in: s8: kernel ");
    BAD_GEMM((d.in = HEWN_S8, d.lda = 100), HEWN_ERR_LIMIT, "in: s8: kernel ");
}

void gemm(void)
{
    hewn_driver *driver = NULL;
    hewn_context *context = attach_fake(&driver, 9, 0);
    gemm_problem(context);
    gemm_strides(context);
    gemm_calls(context);
    gemm_addresses(context);
    gemm_columns(context);
    gemm_args(context);
    gemm_workspace(context);
    gemm_in_place(context);
    gemm_tuning(context);
    detach_fake(driver, context);
    context = attach_fake(&driver, 10, 0);
    gemm_blackwell(context);
    detach_fake(driver, context);
    context = attach_fake(&driver, 9, 0);
    fake.max_shared = 101376;
    hewn_context_detach(context);
    if (!hewn_context_attach_primary(driver, 0, &context, NULL))
        BAD_GEMM(d.m = 1, HEWN_ERR_LIMIT, "are more than the 101376 B a block of this device");
    detach_fake(driver, context);
}
