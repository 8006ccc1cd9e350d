/* Host copies of lengths, ranges, tables and lists: each rule of MLA, the indexer and top-k. */
#include "badinput.h"

#include <limits.h>

enum { BATCH = 2, QUERIES = 3, LENGTH = 300, PAGE = 64, WIDTH = 5, POOL = 10, LIST = 8 };

struct arrays {
    int32_t lengths[BATCH * QUERIES], starts[BATCH * QUERIES], table[BATCH * WIDTH];
    int32_t lists[BATCH * QUERIES * LIST];
};

/* Everything right. Sequence 1 is short: its last entries may hold anything. */
static struct arrays good_arrays(void)
{
    struct arrays x = {.lengths = {300, 299, 0, 64, 10, 1}, .table = {9, 0, 3, 3, 1, 7, -1, 99}};
    for (int i = 0; i < BATCH * QUERIES * LIST; i++) x.lists[i] = i % 3 ? i * 13 : -1;
    return x;
}

/* ---- MLA -- */

static hewn_mla_plan *mla_plan(hewn_context *context, int list_width)
{
    hewn_mla_desc d = {.struct_size = sizeof d,
                       .batch = BATCH,
                       .q_heads = 16,
                       .q_length = QUERIES,
                       .length = list_width ? 0 : LENGTH,
                       .page_size = PAGE,
                       .pages = POOL,
                       .table_width = list_width ? 0 : WIDTH,
                       .in = HEWN_BF16,
                       .out = HEWN_BF16,
                       .lengths = list_width ? 2 : 1,
                       .list_width = list_width};
    hewn_mla_plan *plan = NULL;
    hewn_mla_plan_create(context, &d, &plan, NULL);
    return plan;
}

#define BAD_MLA(plan, table_, lists_, change, words)                                          \
    do {                                                                                      \
        struct arrays x = good_arrays();                                                      \
        hewn_mla_tables t = {                                                                 \
            .struct_size = sizeof t, .lengths = x.lengths, .table = table_, .lists = lists_}; \
        change;                                                                               \
        REFUSE("mla tables: " #change, hewn_mla_plan_check_tables(plan, &t, &err),            \
               HEWN_ERR_ARGUMENT, words);                                                     \
    } while (0)

static void mla_dense(hewn_context *context)
{
    hewn_mla_plan *plan = mla_plan(context, 0);
    if (test_case("mla tables: none is bad")) {
        struct arrays x = good_arrays();
        hewn_mla_tables t = {.struct_size = sizeof t, .lengths = x.lengths, .table = x.table};
        hewn_error err = {0};
        x.lengths[1] = PAGE;
        CHECK(!hewn_mla_plan_check_tables(plan, &t, &err), "%s", err.message);
    }
#define BAD(change, words) BAD_MLA(plan, x.table, NULL, (x.lengths[1] = PAGE, change), words)
    BAD(t.struct_size = 1, "hewn_mla_tables: struct_size 1");
    BAD(t.lengths = NULL, "lengths: must not be NULL");
    BAD(t.table = NULL, "table: must not be NULL");
    BAD(t.lists = x.lists, "lists: must be NULL, because the plan uses none");
    BAD(x.lengths[0] = LENGTH + 1, "lengths[0]: 301 is not in 0..300");
    BAD(x.lengths[1] = INT_MIN, "lengths[1]: -2147483648 is not in 0..300");
    BAD(x.lengths[1] = PAGE + 1, "table[6]: page -1 (sequence 1, keys from 64) is not in 0..9");
    BAD(x.table[4] = POOL, "table[4]: page 10 (sequence 0, keys from 256) is not in 0..9");
    BAD(x.table[0] = INT_MAX, "table[0]: page 2147483647 (sequence 0, keys from 0)");
#undef BAD
    REFUSE("mla tables: none given", hewn_mla_plan_check_tables(plan, NULL, &err),
           HEWN_ERR_ARGUMENT, "hewn_mla_tables: must not be NULL");
    REFUSE("mla tables: no plan", hewn_mla_plan_check_tables(NULL, NULL, &err), HEWN_ERR_ARGUMENT,
           "plan: must not be NULL");
    hewn_mla_plan_destroy(plan);
}

/* Second lists: the arrays of the first, as those of a second cache of 100 rows. */
static void mla_second_lists(hewn_context *context)
{
    hewn_mla_desc d = {.struct_size = sizeof d,
                       .batch = BATCH,
                       .q_heads = 16,
                       .q_length = QUERIES,
                       .length = LENGTH,
                       .in = HEWN_BF16,
                       .out = HEWN_BF16,
                       .list_width = LIST,
                       .extra_width = LIST,
                       .extra_length = 100,
                       .extra_lengths = 1};
    hewn_mla_plan *plan = NULL;
    hewn_mla_plan_create(context, &d, &plan, NULL);
#define BAD(change, words)                                                               \
    do {                                                                                 \
        struct arrays x = good_arrays(), y = x;                                          \
        for (int i = 0; i < BATCH * QUERIES * LIST; i++) y.lists[i] = i;                 \
        y.lengths[0] = LIST;                                                             \
        y.lengths[1] = 2;                                                                \
        hewn_mla_tables t = {.struct_size = sizeof t,                                    \
                             .lists = x.lists,                                           \
                             .extra_lengths = y.lengths,                                 \
                             .extra_lists = y.lists};                                    \
        for (int i = 0; i < BATCH * QUERIES * LIST; i++) x.lists[i] = i;                 \
        change;                                                                          \
        REFUSE("mla second lists: " #change, hewn_mla_plan_check_tables(plan, &t, &err), \
               HEWN_ERR_ARGUMENT, words);                                                \
    } while (0)
    BAD(t.extra_lists = NULL, "extra_lists: must not be NULL");
    BAD(t.extra_lengths = NULL, "extra_lengths: must not be NULL");
    BAD(y.lengths[1] = LIST + 1, "extra_lengths[1]: 9 is not in 0..8");
    BAD(y.lists[1] = 100, "extra_lists[1]: 100 (sequence 0, query 0) is neither -1 nor one of the "
                          "100 rows of the cache");
    BAD((y.lists[26] = -3, y.lists[25] = -2),
        "extra_lists[25]: -2 (sequence 1, query 0) is neither -1 nor one");
    BAD(x.lists[4] = LENGTH,
        "lists[4]: 300 (sequence 0, query 0) is neither -1 nor one of the 300");
#undef BAD
    hewn_mla_plan_destroy(plan);
}

static void mla_lists(hewn_context *context)
{
    hewn_mla_plan *plan = mla_plan(context, LIST);
    if (test_case("mla lists: none is bad")) {
        struct arrays x = good_arrays();
        hewn_mla_tables t = {.struct_size = sizeof t, .lengths = x.lengths, .lists = x.lists};
        hewn_error err = {0};
        for (int i = 0; i < BATCH * QUERIES; i++) x.lengths[i] = i;
        x.lists[0] = INT_MAX;                           /* query 0 has no entry that counts */
        x.lists[LIST + 1] = x.lists[2 * LIST + 7] = -7; /* behind the last one */
        CHECK(!hewn_mla_plan_check_tables(plan, &t, &err), "%s", err.message);
    }
#define BAD(change, words)                                                                    \
    BAD_MLA(plan, NULL, x.lists,                                                              \
            (x.lengths[0] = x.lengths[1] = LIST, x.lengths[3] = 0, x.lengths[4] = 2, change), \
            words)
    BAD(t.lists = NULL, "lists: must not be NULL");
    BAD(t.table = x.table, "table: must be NULL, because the plan uses none");
    BAD(x.lengths[5] = LIST + 1, "lengths[5]: 9 is not in 0..8");
    BAD(x.lists[1] = POOL * PAGE,
        "lists[1]: 640 (sequence 0, query 0) is neither -1 nor one of the 640 rows of the cache");
    BAD(x.lists[4 * LIST + 1] = -2, "lists[33]: -2 (sequence 1, query 1) is neither -1 nor one");
    BAD(x.lists[9] = INT_MIN, "lists[9]: -2147483648 (sequence 0, query 1) is neither");
#undef BAD
    hewn_mla_plan_destroy(plan);
}

/* ---- indexer and top-k -- */

static void indexer_ranges(hewn_context *context)
{
    hewn_indexer_desc d = {.struct_size = sizeof d,
                           .batch = BATCH,
                           .queries = QUERIES,
                           .heads = 32,
                           .dim = 128,
                           .length = LENGTH,
                           .page_size = PAGE,
                           .pages = POOL,
                           .table_width = WIDTH,
                           .in = HEWN_E4M3,
                           .scales = HEWN_INDEXER_SCALES_IN_PAGES,
                           .ends = 1};
    hewn_indexer_plan *plan = NULL;
    hewn_indexer_plan_create(context, &d, &plan, NULL);
#define BAD(change, words)                                                                      \
    do {                                                                                        \
        struct arrays x = good_arrays();                                                        \
        hewn_indexer_tables t = {.struct_size = sizeof t, .ends = x.lengths, .table = x.table}; \
        change;                                                                                 \
        REFUSE("indexer tables: " #change, hewn_indexer_plan_check_tables(plan, &t, &err),      \
               HEWN_ERR_ARGUMENT, words);                                                       \
    } while (0)
    if (test_case("indexer tables: none is bad")) {
        struct arrays x = good_arrays();
        hewn_indexer_tables t = {.struct_size = sizeof t, .ends = x.lengths, .table = x.table};
        hewn_error err = {0};
        CHECK(!hewn_indexer_plan_check_tables(plan, &t, &err), "%s", err.message);
    }
    BAD(t.struct_size = 1, "hewn_indexer_tables: struct_size 1");
    BAD(t.ends = NULL, "ends: must not be NULL");
    BAD(t.starts = x.starts, "starts: must be NULL, because the plan uses none");
    BAD(t.table = NULL, "table: must not be NULL");
    BAD(x.lengths[5] = -1, "ends[5]: -1 is not in 0..300");
    BAD(x.lengths[4] = 65, "table[6]: page -1 (sequence 1, keys from 64) is not in 0..9");
    REFUSE("indexer tables: no plan", hewn_indexer_plan_check_tables(NULL, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
#undef BAD
    hewn_indexer_plan_destroy(plan);
}

static void topk_ranges(hewn_context *context)
{
    hewn_topk_desc d = {.struct_size = sizeof d,
                        .batch = BATCH,
                        .queries = QUERIES,
                        .columns = LENGTH,
                        .k = 64,
                        .page_size = PAGE,
                        .pages = POOL,
                        .table_width = WIDTH,
                        .starts = 1,
                        .ends = 1};
    hewn_topk_plan *plan = NULL;
    hewn_topk_plan_create(context, &d, &plan, NULL);
#define BAD(change, words)                                                                     \
    do {                                                                                       \
        struct arrays x = good_arrays();                                                       \
        hewn_topk_tables t = {                                                                 \
            .struct_size = sizeof t, .starts = x.starts, .ends = x.lengths, .table = x.table}; \
        change;                                                                                \
        REFUSE("topk tables: " #change, hewn_topk_plan_check_tables(plan, &t, &err),           \
               HEWN_ERR_ARGUMENT, words);                                                      \
    } while (0)
    if (test_case("topk tables: none is bad")) {
        struct arrays x = good_arrays();
        hewn_topk_tables t = {
            .struct_size = sizeof t, .starts = x.starts, .ends = x.lengths, .table = x.table};
        hewn_error err = {0};
        x.starts[3] = 299; /* no column, so no page */
        x.lengths[3] = 200;
        CHECK(!hewn_topk_plan_check_tables(plan, &t, &err), "%s", err.message);
    }
    BAD(t.struct_size = 1, "hewn_topk_tables: struct_size 1");
    BAD(t.starts = NULL, "starts: must not be NULL");
    BAD(t.ends = NULL, "ends: must not be NULL");
    BAD(t.table = NULL, "table: must not be NULL");
    BAD(x.starts[0] = INT_MAX, "starts[0]: 2147483647 is not in 0..300");
    BAD(x.lengths[0] = LENGTH + 1, "ends[0]: 301 is not in 0..300");
    BAD((x.starts[4] = 128, x.lengths[4] = 129),
        "table[7]: page 99 (sequence 1, keys from 128) is not in 0..9");
    REFUSE("topk tables: no plan", hewn_topk_plan_check_tables(NULL, NULL, &err), HEWN_ERR_ARGUMENT,
           "plan: must not be NULL");
#undef BAD
    hewn_topk_plan_destroy(plan);
}

void tables(void)
{
    hewn_driver *driver = NULL;
    hewn_context *context = attach_fake(&driver, 9, 0);
    mla_dense(context);
    mla_lists(context);
    indexer_ranges(context);
    topk_ranges(context);
    detach_fake(driver, context);
    context = attach_fake(&driver, 10, 0);
    mla_second_lists(context);
    detach_fake(driver, context);
}
