/* Bad input to the indexer and to top-k: descriptions and addresses, one at a time. And what plans choose. */
#include "badinput.h"

/* Where the tensors of a run lie: 256 MB apart. */
enum { AT_Q = 0x10000000, AT_K = 0x20000000, AT_OUT = 0x30000000, AT_W = 0x40000000 };
enum { AT_MORE = 0x50000000 };

/* 2 sequences x 3 queries x 40 heads; 300 keys in pages of 64, scales behind them. */
static hewn_indexer_desc good_indexer(void)
{
    return (hewn_indexer_desc){
        .struct_size = sizeof(hewn_indexer_desc),
        .batch = 2,
        .queries = 3,
        .heads = 40,
        .dim = 128,
        .length = 300,
        .page_size = 64,
        .pages = 10,
        .table_width = 5,
        .in = HEWN_E4M3,
        .scales = HEWN_INDEXER_SCALES_IN_PAGES,
        .ends = 1,
    };
}

#define BAD(change, status, words)                                                              \
    do {                                                                                        \
        hewn_indexer_desc d = good_indexer();                                                   \
        hewn_indexer_plan *plan = NULL;                                                         \
        change;                                                                                 \
        REFUSE("indexer: " #change, hewn_indexer_plan_create(context, &d, &plan, &err), status, \
               words);                                                                          \
        CHECK(plan == NULL, "a plan came back");                                                \
    } while (0)

static void shapes(hewn_context *context)
{
    BAD(d.struct_size = 0, HEWN_ERR_ARGUMENT, "hewn_indexer_desc: struct_size 0");
    BAD(d.batch = 0, HEWN_ERR_ARGUMENT, "batch: 0 is not in 1..2147483647");
    BAD(d.queries = 0, HEWN_ERR_ARGUMENT, "queries: 0 is not in 1..1073741823");
    BAD(d.queries = 1LL << 30, HEWN_ERR_ARGUMENT, "queries: 1073741824 is not in 1..1073741823");
    BAD(d.heads = 0, HEWN_ERR_ARGUMENT, "heads: 0 is not in 1..128");
    BAD(d.heads = 129, HEWN_ERR_ARGUMENT, "heads: 129 is not in 1..128");
    BAD(d.dim = 0, HEWN_ERR_ARGUMENT, "dim: 0 is not in 16..128");
    BAD(d.dim = 144, HEWN_ERR_ARGUMENT, "dim: 144 is not in 16..128");
    BAD(d.dim = 40, HEWN_ERR_ARGUMENT, "dim: 40 is not a multiple of 16");
    BAD(d.length = -1, HEWN_ERR_ARGUMENT, "length: -1 is not in 0..536870911");
    BAD(d.page_size = 4, HEWN_ERR_ARGUMENT, "page_size: 4 is not in 8..4096");
    BAD(d.page_size = 60, HEWN_ERR_ARGUMENT, "page_size: 60 is not a multiple of 8");
    BAD(d.pages = 0, HEWN_ERR_ARGUMENT, "pages: 0 is not in 1..2147483647");
    BAD(d.table_width = 4, HEWN_ERR_ARGUMENT,
        "table_width: 4 is less than the 5 pages of 300 keys");
    BAD(d.table_width = 1LL << 30, HEWN_ERR_ARGUMENT, "table_width: 1073741824 is not in 0..");
    BAD((d.batch = 1 << 12, d.queries = 1 << 10, d.length = 1 << 25, d.page_size = 0, d.scales = 0),
        HEWN_ERR_LIMIT, "batch, queries, length: 4194304 rows of 33554432 keys are more blocks");
}

static void options(hewn_context *context)
{
    BAD(d.in = HEWN_BF16, HEWN_ERR_ARGUMENT, "in: dtype 2 (bf16) is not e4m3");
    BAD(d.in = 77, HEWN_ERR_ARGUMENT, "in: dtype 77 (unknown) is not e4m3");
    BAD(d.scales = 2, HEWN_ERR_ARGUMENT, "scales: 2 is not in 0..1");
    BAD(d.page_size = 0, HEWN_ERR_ARGUMENT, "scales: 1, in the pages, needs a page_size");
    BAD(d.starts = 2, HEWN_ERR_ARGUMENT, "starts: 2 is not in 0..1");
    BAD(d.ends = -1, HEWN_ERR_ARGUMENT, "ends: -1 is not in 0..1");
}

static void strides(hewn_context *context)
{
    BAD(d.q_head = -16, HEWN_ERR_ARGUMENT, "q_head: -16 elements is negative");
    BAD(d.q_head = 136, HEWN_ERR_ARGUMENT, "q_head: 136 B is not a multiple of 16 B");
    BAD(d.q_token = 1LL << 40, HEWN_ERR_ARGUMENT,
        "q_token: 1099511627776 elements of 1 B is not below 2^40 B");
    BAD(d.k_token = 120, HEWN_ERR_ARGUMENT, "k_token: 120 B is not a multiple of 16 B");
    BAD(d.k_token = 112, HEWN_ERR_ARGUMENT, "k_token: 112 B makes rows of 128 B overlap");
    BAD(d.k_batch = 8440, HEWN_ERR_ARGUMENT, "k_batch: 8440 B is not a multiple of 16 B");
    BAD(d.k_batch = 8192, HEWN_ERR_ARGUMENT, "k_batch: 8192 B makes rows of 8448 B overlap");
    BAD((d.pages = INT32_MAX, d.k_batch = 1LL << 39), HEWN_ERR_LIMIT, "k: reaches past 2^64 B");
    BAD((d.scales = 0, d.scale_batch = -1), HEWN_ERR_ARGUMENT,
        "scale_batch: -1 elements is negative");
    BAD(d.weight_token = 1LL << 40, HEWN_ERR_ARGUMENT,
        "weight_token: 1099511627776 elements of 4 B is not below 2^40 B");
    BAD(d.out_token = 299, HEWN_ERR_ARGUMENT, "out_token: 1196 B makes rows of 1200 B overlap");
}

/* ---- addresses -- */

#define BAD_RUN(change, words)                                                       \
    do {                                                                             \
        hewn_indexer_args a = {.struct_size = sizeof a,                              \
                               .q = AT_Q,                                            \
                               .k = AT_K,                                            \
                               .weights = AT_W,                                      \
                               .out = AT_OUT,                                        \
                               .ends = AT_MORE,                                      \
                               .table = AT_MORE + 64};                               \
        change;                                                                      \
        REFUSE("indexer run: " #change, hewn_indexer_plan_run(plan, &a, NULL, &err), \
               HEWN_ERR_ARGUMENT, words);                                            \
    } while (0)

static void addresses(hewn_context *context)
{
    hewn_indexer_desc d = good_indexer();
    hewn_indexer_plan *plan = NULL;
    hewn_error why = {0};
    if (hewn_indexer_plan_create(context, &d, &plan, &why)) {
        if (test_case("indexer: a plan")) CHECK(0, "%s", why.message);
        return;
    }
    BAD_RUN(a.struct_size = 0, "hewn_indexer_args: struct_size 0");
    BAD_RUN(a.q = 0, "q: address must not be 0");
    BAD_RUN(a.q += 8, "q: address 0x10000008 is not a multiple of 16");
    BAD_RUN(a.k = 0, "k: address must not be 0");
    BAD_RUN(a.k_scale = AT_MORE, "k_scale: address 0x50000000 must be 0, because the plan uses");
    BAD_RUN(a.weights = 0, "weights: address must not be 0");
    BAD_RUN(a.out = 0, "out: address must not be 0");
    BAD_RUN(a.out += 2, "out: address 0x30000002 is not a multiple of 4");
    BAD_RUN(a.starts = AT_MORE, "starts: address 0x50000000 must be 0");
    BAD_RUN(a.ends = 0, "ends: address must not be 0");
    BAD_RUN(a.table = 0, "table: address must not be 0");
    BAD_RUN(a.out = AT_Q + 64, "out: 7200 B at 0x10000040 overlap q, 30720 B at 0x10000000");
    BAD_RUN(a.out = AT_K, "out: 7200 B at 0x20000000 overlap k, 84480 B at 0x20000000");
    BAD_RUN(a.out = AT_W, "overlap weights, 960 B at 0x40000000");
    BAD_RUN(a.q = UINT64_MAX - 15, "run past the end of memory");
    REFUSE("indexer run: no plan", hewn_indexer_plan_run(NULL, &(hewn_indexer_args){0}, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    REFUSE("indexer describe: no plan", hewn_indexer_plan_describe(NULL, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    hewn_indexer_plan_destroy(plan);
}

/* The variant by heads and queries. */
static void choices(hewn_context *context, int wide)
{
    static const struct {
        int64_t heads, queries;
        const char *module;
    } list[] = {{65, 1, "indexer_e4m3_128_1"},   {128, 2, "indexer_e4m3_128_2"},
                {100, 30, "indexer_e4m3_128_2"}, {64, 1, "indexer_e4m3_64_1"},
                {33, 2, "indexer_e4m3_64_2"},    {64, 3, "indexer_e4m3_64_4"},
                {64, 900, "indexer_e4m3_64_4"},  {32, 1, "indexer_e4m3_32_2"},
                {1, 3, "indexer_e4m3_32_4"},     {32, 5, "indexer_e4m3_32_8"},
                {32, 900, "indexer_e4m3_32_8"}};
    for (size_t i = wide ? 0 : 3; i < sizeof list / sizeof *list; i++) {
        hewn_indexer_desc d = good_indexer();
        hewn_indexer_plan *plan = NULL;
        hewn_indexer_plan_info info = {.struct_size = sizeof info};
        hewn_error err = {0};
        d.heads = list[i].heads;
        d.queries = list[i].queries;
        if (!test_case("indexer: %d heads, %d queries", (int)d.heads, (int)d.queries)) continue;
        int status = hewn_indexer_plan_create(context, &d, &plan, &err);
        if (!status) status = hewn_indexer_plan_describe(plan, &info, &err);
        CHECK(status == HEWN_OK, "%s", err.message);
        if (!status) CHECK_TEXT(info.module, list[i].module);
        hewn_indexer_plan_destroy(plan);
    }
}

/* ---- top-k -- */

static hewn_topk_desc good_topk(void)
{
    return (hewn_topk_desc){.struct_size = sizeof(hewn_topk_desc),
                            .batch = 2,
                            .queries = 3,
                            .columns = 300,
                            .k = 64,
                            .page_size = 64,
                            .pages = 10,
                            .table_width = 5,
                            .starts = 1};
}

#define BAD_TOPK(change, status, words)                                                           \
    do {                                                                                          \
        hewn_topk_desc d = good_topk();                                                           \
        hewn_topk_plan *plan = NULL;                                                              \
        change;                                                                                   \
        REFUSE("topk: " #change, hewn_topk_plan_create(context, &d, &plan, &err), status, words); \
        CHECK(plan == NULL, "a plan came back");                                                  \
    } while (0)

static void topk_shapes(hewn_context *context)
{
    BAD_TOPK(d.struct_size = 0, HEWN_ERR_ARGUMENT, "hewn_topk_desc: struct_size 0");
    BAD_TOPK(d.batch = 0, HEWN_ERR_ARGUMENT, "batch: 0 is not in 1..2147483647");
    BAD_TOPK(d.queries = 1LL << 30, HEWN_ERR_ARGUMENT, "queries: 1073741824 is not in");
    BAD_TOPK(d.columns = -1, HEWN_ERR_ARGUMENT, "columns: -1 is not in 0..536870911");
    BAD_TOPK(d.k = 0, HEWN_ERR_ARGUMENT, "k: 0 is not in 1..2048");
    BAD_TOPK(d.k = 2049, HEWN_ERR_ARGUMENT, "k: 2049 is not in 1..2048");
    BAD_TOPK(d.value_row = -1, HEWN_ERR_ARGUMENT, "value_row: -1 elements is negative");
    BAD_TOPK(d.index_row = 63, HEWN_ERR_ARGUMENT, "index_row: 252 B makes rows of 256 B overlap");
    BAD_TOPK(d.page_size = 1 << 20, HEWN_ERR_ARGUMENT, "page_size: 1048576 is not in 0..1048575");
    BAD_TOPK(d.table_width = 4, HEWN_ERR_ARGUMENT, "table_width: 4 is less than the 5 pages");
    BAD_TOPK(d.pages = 1 << 26, HEWN_ERR_LIMIT,
             "pages: 67108864 of 64 rows are more than an entry");
    BAD_TOPK(d.starts = 2, HEWN_ERR_ARGUMENT, "starts: 2 is not in 0..1");
    BAD_TOPK(d.ends = 2, HEWN_ERR_ARGUMENT, "ends: 2 is not in 0..1");
}

#define BAD_TOPK_RUN(change, words)                                                               \
    do {                                                                                          \
        hewn_topk_args a = {.struct_size = sizeof a,                                              \
                            .values = AT_Q,                                                       \
                            .indices = AT_OUT,                                                    \
                            .starts = AT_MORE,                                                    \
                            .table = AT_W};                                                       \
        change;                                                                                   \
        REFUSE("topk run: " #change, hewn_topk_plan_run(plan, &a, NULL, &err), HEWN_ERR_ARGUMENT, \
               words);                                                                            \
    } while (0)

static void topk_addresses(hewn_context *context)
{
    hewn_topk_desc d = good_topk();
    hewn_topk_plan *plan = NULL;
    hewn_error why = {0};
    if (hewn_topk_plan_create(context, &d, &plan, &why)) {
        if (test_case("topk: a plan")) CHECK(0, "%s", why.message);
        return;
    }
    BAD_TOPK_RUN(a.struct_size = 0, "hewn_topk_args: struct_size 0");
    BAD_TOPK_RUN(a.values = 0, "values: address must not be 0");
    BAD_TOPK_RUN(a.values += 2, "values: address 0x10000002 is not a multiple of 4");
    BAD_TOPK_RUN(a.indices = 0, "indices: address must not be 0");
    BAD_TOPK_RUN(a.starts = 0, "starts: address must not be 0");
    BAD_TOPK_RUN(a.ends = AT_MORE,
                 "ends: address 0x50000000 must be 0, because the plan uses none");
    BAD_TOPK_RUN(a.table = 0, "table: address must not be 0");
    BAD_TOPK_RUN(a.indices = AT_Q, "indices: 1536 B at 0x10000000 overlap values, 7200 B at");
    BAD_TOPK_RUN(a.indices = AT_W, "indices: 1536 B at 0x40000000 overlap table, 40 B at");
    REFUSE("topk run: no plan", hewn_topk_plan_run(NULL, &(hewn_topk_args){0}, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    REFUSE("topk describe: no plan", hewn_topk_plan_describe(NULL, NULL, &err), HEWN_ERR_ARGUMENT,
           "plan: must not be NULL");
    hewn_topk_plan_destroy(plan);
}

static void nothing_given(hewn_context *context)
{
    REFUSE("indexer: no context",
           hewn_indexer_plan_create(NULL, &(hewn_indexer_desc){0}, &(hewn_indexer_plan *){NULL},
                                    &err),
           HEWN_ERR_ARGUMENT, "context: must not be NULL");
    REFUSE("indexer: no out",
           hewn_indexer_plan_create(context, &(hewn_indexer_desc){0}, NULL, &err),
           HEWN_ERR_ARGUMENT, "out: must not be NULL");
    REFUSE("topk: no context",
           hewn_topk_plan_create(NULL, &(hewn_topk_desc){0}, &(hewn_topk_plan *){NULL}, &err),
           HEWN_ERR_ARGUMENT, "context: must not be NULL");
    REFUSE("topk: no out", hewn_topk_plan_create(context, &(hewn_topk_desc){0}, NULL, &err),
           HEWN_ERR_ARGUMENT, "out: must not be NULL");
}

void indexer(void)
{
    hewn_driver *driver;
    hewn_context *context = attach_fake(&driver, 9, 0);
    if (context) {
        shapes(context);
        options(context);
        strides(context);
        addresses(context);
        choices(context, 0);
        BAD(d.heads = 65, HEWN_ERR_NO_MODULE,
            "heads: 65 are more than the 64 that kernels of sm_90a have");
        topk_shapes(context);
        topk_addresses(context);
        nothing_given(context);
    }
    detach_fake(driver, context);
    context = attach_fake(&driver, 10, 0);
    if (context) choices(context, 1);
    detach_fake(driver, context);
    context = attach_fake(&driver, 12, 0);
    if (context)
        BAD(d.batch = 2, HEWN_ERR_NO_MODULE, "capability 12.0; shipped for: sm_90a, sm_100f");
    detach_fake(driver, context);
}
