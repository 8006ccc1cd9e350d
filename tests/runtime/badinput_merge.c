/* Bad input to the merge of partial results: descriptions and addresses, one at a time. */
#include "badinput.h"

enum { AT_PART = 0x10000000, AT_PART_LSE = 0x20000000, AT_O = 0x30000000, AT_LSE = 0x40000000 };
enum { AT_SINK = 0x50000000 };

/* 2 x 3 x 4 rows of 64 columns in 5 parts. */
static hewn_merge_desc good_merge(void)
{
    return (hewn_merge_desc){.struct_size = sizeof(hewn_merge_desc),
                             .batch = 2,
                             .length = 3,
                             .heads = 4,
                             .dim = 64,
                             .parts = 5,
                             .in = HEWN_F32,
                             .out = HEWN_BF16,
                             .sink = 1};
}

#define BAD(change, status, words)                                                          \
    do {                                                                                    \
        hewn_merge_desc d = good_merge();                                                   \
        hewn_merge_plan *plan = NULL;                                                       \
        change;                                                                             \
        REFUSE("merge: " #change, hewn_merge_plan_create(context, &d, &plan, &err), status, \
               words);                                                                      \
        CHECK(plan == NULL, "a plan came back");                                            \
    } while (0)

static void shapes(hewn_context *context)
{
    BAD(d.struct_size = 0, HEWN_ERR_ARGUMENT, "hewn_merge_desc: struct_size 0");
    BAD(d.batch = 0, HEWN_ERR_ARGUMENT, "batch: 0 is not in 1..2147483647");
    BAD(d.length = -1, HEWN_ERR_ARGUMENT, "length: -1 is not in 0..2147483647");
    BAD(d.heads = 0, HEWN_ERR_ARGUMENT, "heads: 0 is not in 1..2147483647");
    BAD(d.dim = 0, HEWN_ERR_ARGUMENT, "dim: 0 is not in 32..512");
    BAD(d.dim = 544, HEWN_ERR_ARGUMENT, "dim: 544 is not in 32..512");
    BAD(d.dim = 80, HEWN_ERR_ARGUMENT, "dim: 80 is not a multiple of 32");
    BAD(d.parts = 0, HEWN_ERR_ARGUMENT, "parts: 0 is not in 1..256");
    BAD(d.parts = 257, HEWN_ERR_ARGUMENT, "parts: 257 is not in 1..256");
    BAD(d.in = HEWN_E4M3, HEWN_ERR_ARGUMENT, "in: dtype 3 (e4m3) is none of f32, f16, bf16");
    BAD(d.out = 77, HEWN_ERR_ARGUMENT, "out: dtype 77 (unknown) is none of f32, f16, bf16");
    BAD(d.layout = 2, HEWN_ERR_ARGUMENT, "layout: 2 is not in 0..1");
    BAD(d.sink = -1, HEWN_ERR_ARGUMENT, "sink: -1 is not in 0..1");
    BAD(d.length = INT32_MAX / 4, HEWN_ERR_LIMIT,
        "batch, length, heads: 2, 536870911, 4 are more than 2147483647 rows");
}

static void strides(hewn_context *context)
{
    BAD(d.part_token = -4, HEWN_ERR_ARGUMENT, "part_token: -4 elements is negative");
    BAD(d.part_head = 66, HEWN_ERR_ARGUMENT, "part_head: 264 B is not a multiple of 16 B");
    BAD(d.part_step = 2, HEWN_ERR_ARGUMENT, "part_step: 8 B is not a multiple of 16 B");
    BAD(d.part_step = -4, HEWN_ERR_ARGUMENT, "part_step: -4 elements is negative");
    BAD(d.part_step = 1LL << 38, HEWN_ERR_ARGUMENT,
        "part_step: 274877906944 elements of 4 B is not below 2^40 B");
    BAD(d.lse_head = -1, HEWN_ERR_ARGUMENT, "lse_head: -1 elements is negative");
    BAD(d.lse_step = 1LL << 40, HEWN_ERR_ARGUMENT,
        "lse_step: 1099511627776 elements of 4 B is not below 2^40 B");
    BAD((d.batch = d.heads = 1, d.length = INT32_MAX, d.part_token = 16, d.o_token = 64,
         d.lse_token = (1LL << 38) - 1),
        HEWN_ERR_LIMIT, "lse_token: 2147483646 times 1099511627772 B is past 2^64 B");
    BAD(d.o_token = 256 + 4, HEWN_ERR_ARGUMENT, "o_token: 520 B is not a multiple of 16 B");
    BAD(d.o_head = 32, HEWN_ERR_ARGUMENT,
        "o_head: 64 B makes rows of O overlap: what it steps over covers 128 B");
}

static hewn_merge_args good_args(void)
{
    return (hewn_merge_args){.struct_size = sizeof(hewn_merge_args),
                             .part_o = AT_PART,
                             .part_lse = AT_PART_LSE,
                             .o = AT_O,
                             .lse = AT_LSE,
                             .sink = AT_SINK};
}

#define BAD_RUN(change, words)                                                   \
    do {                                                                         \
        hewn_merge_args a = good_args();                                         \
        change;                                                                  \
        REFUSE("merge run: " #change, hewn_merge_plan_run(plan, &a, NULL, &err), \
               HEWN_ERR_ARGUMENT, words);                                        \
    } while (0)

static void addresses(hewn_context *context)
{
    hewn_merge_desc d = good_merge();
    hewn_merge_plan *plan = NULL;
    hewn_error why = {0};
    if (hewn_merge_plan_create(context, &d, &plan, &why)) {
        if (test_case("merge: a plan")) CHECK(0, "%s", why.message);
        return;
    }
    BAD_RUN(a.struct_size = 0, "hewn_merge_args: struct_size 0");
    BAD_RUN(a.part_o = 0, "part_o: address must not be 0");
    BAD_RUN(a.part_o += 8, "part_o: address 0x10000008 is not a multiple of 16");
    BAD_RUN(a.part_lse = 0, "part_lse: address must not be 0");
    BAD_RUN(a.part_lse += 2, "part_lse: address 0x20000002 is not a multiple of 4");
    BAD_RUN(a.o = 0, "o: address must not be 0");
    BAD_RUN(a.lse += 1, "lse: address 0x40000001 is not a multiple of 4");
    BAD_RUN(a.sink = 0, "sink: address must not be 0");
    BAD_RUN(a.o = AT_PART + 30720 - 16, "o: 3072 B at 0x100077f0 overlap part_o, 30720 B");
    BAD_RUN(a.lse = AT_PART_LSE + 476, "lse: 96 B at 0x200001dc overlap part_lse, 480 B");
    BAD_RUN(a.lse = AT_O + 3068, "lse: 96 B at 0x30000bfc overlap o, 3072 B at 0x30000000");
    BAD_RUN(a.part_o = UINT64_MAX - 15, "run past the end of memory");
    REFUSE("merge run: no plan", hewn_merge_plan_run(NULL, &(hewn_merge_args){0}, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    REFUSE("merge describe: no plan", hewn_merge_plan_describe(NULL, NULL, &err), HEWN_ERR_ARGUMENT,
           "plan: must not be NULL");
    hewn_merge_plan_destroy(plan);
    d.sink = 0;
    if (hewn_merge_plan_create(context, &d, &plan, &why)) return;
    BAD_RUN(a.sink = AT_SINK, "sink: address 0x50000000 must be 0, because the plan uses none");
    hewn_merge_plan_destroy(plan);
}

void merge(void)
{
    hewn_driver *driver;
    hewn_context *context = attach_fake(&driver, 10, 0);
    if (context) {
        shapes(context);
        strides(context);
        addresses(context);
        REFUSE("merge: no context",
               hewn_merge_plan_create(NULL, &(hewn_merge_desc){0}, &(hewn_merge_plan *){NULL},
                                      &err),
               HEWN_ERR_ARGUMENT, "context: must not be NULL");
        REFUSE("merge: no out", hewn_merge_plan_create(context, &(hewn_merge_desc){0}, NULL, &err),
               HEWN_ERR_ARGUMENT, "out: must not be NULL");
    }
    detach_fake(driver, context);
}
