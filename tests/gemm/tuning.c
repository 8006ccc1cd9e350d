/*
 * Tuning at run time, its tables, and products whose rows have the same bits whatever m is. On a device:
 * what a table names is what a plan takes; tuning notes a kernel that computes the product, and writes to its
 * scratch alone. Texts: what is written can be read, what is wrong is named and changes nothing.
 */
#include "lib/device.h"
#include "lib/harness.h"
#include "lib/plans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 4096, K = 600, N = 96, M_MOST = 300, PARTS = 8 };

static hewn_gemm_desc product(int64_t m, int64_t n, int64_t k)
{
    return (hewn_gemm_desc){.struct_size = sizeof(hewn_gemm_desc),
                            .m = m,
                            .n = n,
                            .k = k,
                            .in = HEWN_BF16,
                            .out = HEWN_BF16};
}

static hewn_gemm_table *new_table(void)
{
    hewn_gemm_table *table = NULL;
    hewn_error err = {0};
    CHECK(!hewn_gemm_table_create(&table, &err), "%s", err.message);
    return table;
}

/* Variant, parts and, if there are several, slices: "split/3", "split/3*2". */
static void name_choice(char name[32], const char *variant, uint32_t parts, uint32_t slices)
{
    int n = snprintf(name, 32, "%.16s/%u", variant, parts);
    if (slices > 1) snprintf(name + n, 32 - (size_t)n, "*%u", slices);
}

/* What a plan takes. */
static void planned(struct device *dev, const hewn_gemm_desc *desc, char name[32])
{
    hewn_gemm_plan *plan = NULL;
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    hewn_error err = {0};
    snprintf(name, 32, "none");
    if (!hewn_gemm_plan_create(dev->context, desc, &plan, &err) &&
        !hewn_gemm_plan_describe(plan, &info, &err))
        name_choice(name, info.variant, info.parts, info.slices);
    CHECK(!err.status, "%s", err.message);
    hewn_gemm_plan_destroy(plan);
}

static hewn_deviceptr filled(struct device *dev, size_t count, struct rng *r)
{
    hewn_deviceptr at = 0;
    uint16_t *host = malloc(2 * count);
    if (host && !dev->mem_alloc(&at, 2 * count)) {
        for (size_t i = 0; i < count; i++) host[i] = double_to_bf16((double)rng_unit(r));
        CHECK_INT(dev->to_device(at, host, 2 * count), 0);
    }
    free(host);
    CHECK(at != 0, "no memory for %zu elements", count);
    return at;
}

/* ---- texts ---- */

static void check_line(struct device *dev, const char *what, const char *line, const char *want)
{
    char text[ROOM], name[32];
    hewn_error err = {0};
    hewn_gemm_desc desc = product(40, N, K);
    if (!test_case("a line with %s", what)) return;
    hewn_gemm_table *table = new_table();
    const char *target = dev->info.cc_major == 9 ? "sm_90a" : "sm_100f";
    planned(dev, &desc, name);
    snprintf(text, sizeof text, line, target, dev->info.sm_count);
    CHECK(!hewn_gemm_table_read(table, text, strlen(text), &err), "%s", err.message);
    desc.table = table;
    if (want) snprintf(name, sizeof name, "%s", want);
    char got[32];
    planned(dev, &desc, got);
    CHECK(!strcmp(got, name), "want %s got %s", name, got);
    hewn_gemm_table_destroy(table);
}

static void check_lines(struct device *dev)
{
    int hopper = dev->info.cc_major == 9;
    check_line(dev, "another kernel", "%s %d bf16 bf16 bf16 k k full 1 40 96 600 split/3 1.5\n",
               hopper ? "split/3" : NULL);
    check_line(dev, "comments around it",
               "# text\n\n  %s %d bf16 bf16 bf16 k k full 1 40 96 600 plain/1 0\t\r\n#", "plain/1");
    check_line(dev, "two for one product",
               "%1$s %2$d bf16 bf16 bf16 k k full 1 40 96 600 pair/1 1\n"
               "%1$s %2$d bf16 bf16 bf16 k k full 1 40 96 600 plain/1 2",
               "plain/1");
    check_line(dev, "an unknown kernel", "%s %d bf16 bf16 bf16 k k full 1 40 96 600 cube/1 1",
               NULL);
    check_line(dev, "too many parts", "%s %d bf16 bf16 bf16 k k full 1 40 96 600 split/9 1", NULL);
    check_line(dev, "more parts than k-blocks",
               "%s %d bf16 bf16 bf16 k k full 1 40 96 600 split/11 1", NULL);
    check_line(dev, "slices", "%s %d bf16 bf16 bf16 k k full 1 40 96 600 split/2*3 1.5\n",
               hopper ? "split/2*3" : NULL);
    check_line(dev, "one slice", "%s %d bf16 bf16 bf16 k k full 1 40 96 600 plain/1*1 1",
               "plain/1");
    check_line(dev, "more slices than k-blocks",
               "%s %d bf16 bf16 bf16 k k full 1 40 96 600 split/1*11 1", NULL);
    check_line(dev, "more parts than k-blocks of a slice",
               "%s %d bf16 bf16 bf16 k k full 1 40 96 600 split/3*4 1", NULL);
    check_line(dev, "more slices than there can be",
               "%s %d bf16 bf16 bf16 k k full 1 40 96 600 split/1*75 1", NULL);
    check_line(dev, "slices of a kernel without sums in f32",
               "%s %d bf16 bf16 bf16 k k full 1 40 96 600 80x128/1*3 1", NULL);
    check_line(dev, "another m", "%s %d bf16 bf16 bf16 k k full 1 41 96 600 split/3 1", NULL);
    check_line(dev, "another type", "%s %d bf16 bf16 f32 k k full 1 40 96 600 split/3 1", NULL);
    check_line(dev, "another number of SMs", "%s 1%d bf16 bf16 bf16 k k full 1 40 96 600 split/3 1",
               NULL);
}

static void check_bad(const char *what, const char *text, size_t length, const char *words)
{
    static const char good[] = "sm_90a 8 e4m3 e5m2 f32 k mn fast 3 1 2 3 flat/2 12.5\n";
    char before[ROOM], after[ROOM];
    size_t length_before, length_after;
    hewn_error err = {0};
    if (!test_case("text: %s", what)) return;
    hewn_gemm_table *table = new_table();
    CHECK(!hewn_gemm_table_read(table, good, sizeof good - 1, &err), "%s", err.message);
    CHECK(!hewn_gemm_table_write(table, before, sizeof before, &length_before, &err), "%s",
          err.message);
    CHECK_INT(hewn_gemm_table_read(table, text, length, &err), HEWN_ERR_ARGUMENT);
    CHECK_TEXT(err.message, words);
    CHECK(!hewn_gemm_table_write(table, after, sizeof after, &length_after, &err), "write");
    CHECK(length_before == length_after && !strcmp(before, after), "the table has changed");
    CHECK_INT(hewn_gemm_table_count(table), 1);
    hewn_gemm_table_destroy(table);
}

static void check_texts(void)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"sm_90a 132", "table: line 1 has 2 fields, not 14"},
        {"# x\nsm_90a 8 e4m3 e5m2 f32 k mn fast 3 1 2 3 flat/2 12.5 9", "line 2 has 15 fields"},
        {"\n\na_name_longer_than_the_longest 8 bf16 bf16 f32 k k full 1 1 2 3 flat/2 1",
         "line 3, field 1: \"a_name_longer_than_the_longest\" cannot be"},
        {"sm_90a 0 bf16 bf16 f32 k k full 1 1 2 3 flat/2 1", "field 2: \"0\""},
        {"sm_90a 8 b16 bf16 f32 k k full 1 1 2 3 flat/2 1", "field 3: \"b16\""},
        {"sm_90a 8 bf16 x f32 k k full 1 1 2 3 flat/2 1", "field 4: \"x\""},
        {"sm_90a 8 bf16 bf16 y k k full 1 1 2 3 flat/2 1", "field 5: \"y\""},
        {"sm_90a 8 bf16 bf16 f32 m k full 1 1 2 3 flat/2 1", "field 6: \"m\""},
        {"sm_90a 8 bf16 bf16 f32 k n full 1 1 2 3 flat/2 1", "field 7: \"n\""},
        {"sm_90a 8 bf16 bf16 f32 k k slow 1 1 2 3 flat/2 1", "field 8: \"slow\""},
        {"sm_90a 8 bf16 bf16 f32 k k full -1 1 2 3 flat/2 1", "field 9: \"-1\""},
        {"sm_90a 8 bf16 bf16 f32 k k full 1 1x 2 3 flat/2 1", "field 10: \"1x\""},
        {"sm_90a 8 bf16 bf16 f32 k k full 1 1 99999999999 3 flat/2 1", "field 11"},
        {"sm_90a 8 bf16 bf16 f32 k k full 1 1 2 0x3 flat/2 1", "field 12: \"0x3\""},
        {"sm_90a 8 bf16 bf16 f32 k k full 1 1 2 3 flat 1", "field 13: \"flat\""},
        {"sm_90a 8 bf16 bf16 f32 k k full 1 1 2 3 /2 1", "field 13: \"/2\""},
        {"sm_90a 8 bf16 bf16 f32 k k full 1 1 2 3 flat/0 1", "field 13: \"flat/0\""},
        {"sm_90a 8 bf16 bf16 f32 k k full 1 1 2 3 flat/2*0 1", "field 13: \"flat/2*0\""},
        {"sm_90a 8 bf16 bf16 f32 k k full 1 1 2 3 flat/2*x 1", "field 13: \"flat/2*x\""},
        {"sm_90a 8 bf16 bf16 f32 k k full 1 1 2 3 flat*2 1", "field 13: \"flat*2\""},
        {"sm_90a 8 bf16 bf16 f32 k k full 1 1 2 3 flat/2 nan", "field 14: \"nan\""},
        {"sm_90a 8 bf16 bf16 f32 k k full 1 1 2 3 flat/2 -3", "field 14: \"-3\""},
    };
    char wide[300];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_bad(bad[i].words, bad[i].text, strlen(bad[i].text), bad[i].words);
    memset(wide, 'x', sizeof wide);
    check_bad("a long line", wide, sizeof wide, "line 1 is no text of fewer than 256 characters");
    check_bad("a NUL", "# a\0b", 5, "line 1 is no text");
    if (test_case("text: capacities")) {
        hewn_gemm_table *table = new_table();
        size_t length = 0, again = 0;
        char text[ROOM];
        hewn_error err = {0};
        CHECK_INT(hewn_gemm_table_write(table, NULL, 0, &length, &err), HEWN_ERR_LIMIT);
        CHECK(length > 0 && length < ROOM, "length %zu", length);
        CHECK_INT(hewn_gemm_table_write(table, text, length, &again, &err), HEWN_ERR_LIMIT);
        CHECK_TEXT(err.message, "do not hold the text of");
        CHECK(!hewn_gemm_table_write(table, text, length + 1, &again, &err), "%s", err.message);
        CHECK(strlen(text) == length && again == length, "%zu and %zu", strlen(text), length);
        hewn_gemm_table_destroy(table);
    }
}

/* ---- tuning ---- */

static void check_tune(struct device *dev, const char *what, hewn_gemm_desc desc, bool flush,
                       size_t workspace, uint64_t copies)
{
    struct rng r = {test_seed()};
    struct guarded d = {0}, work = {0};
    hewn_error err = {0};
    hewn_gemm_tuned tuned = {.struct_size = sizeof tuned};
    char text[ROOM], name[32], got[32];
    size_t length = 0;
    if (!test_case("tune: %s", what)) return;
    hewn_gemm_table *table = new_table(), *copy = new_table();
    hewn_gemm_args args = {.struct_size = sizeof args,
                           .a = filled(dev, (size_t)(desc.m * desc.k), &r),
                           .b = filled(dev, (size_t)(desc.n * desc.k) * (copies ? copies : 1), &r)};
    CHECK(guarded_new(dev, &d, (size_t)(2 * desc.m * desc.n), 0xa5), "no memory");
    args.d = d.data;
    if (workspace) {
        CHECK(guarded_new(dev, &work, workspace, 0xa5), "no memory");
        args.workspace = work.data;
    }
    hewn_gemm_tune_args how = {.struct_size = sizeof how,
                               .args = &args,
                               .flush = flush ? filled(dev, 4096, &r) : 0,
                               .flush_bytes = flush ? 8192 : 0,
                               .rounds = 2,
                               .workspace_bytes = workspace,
                               .copies = copies,
                               .copy_stride = desc.n * desc.k};
    CHECK(!hewn_gemm_tune(dev->context, &desc, &how, table, &tuned, &err), "%s", err.message);
    CHECK(tuned.tried >= 1 && tuned.seconds <= tuned.chosen_seconds, "%u tried, %g of %g",
          tuned.tried, tuned.seconds, tuned.chosen_seconds);
    CHECK_INT(hewn_gemm_table_count(table), 1);
    CHECK(!hewn_gemm_table_write(table, text, sizeof text, &length, &err), "%s", err.message);
    CHECK(!hewn_gemm_table_read(copy, text, length, &err), "%s", err.message);
    if (tuned.variant) {
        name_choice(name, tuned.variant, tuned.parts, tuned.slices);
        CHECK(tuned.slices == 1 || workspace, "%u slices without a workspace", tuned.slices);
        uint32_t parts = dev->info.sm_count < PARTS ? (uint32_t)dev->info.sm_count : PARTS;
        CHECK(!workspace || dev->info.cc_major != 9 || tuned.tried > 1 + parts,
              "%u tried: none with slices", tuned.tried);
        if (desc.variant) CHECK(!strcmp(tuned.variant, desc.variant), "got %s", tuned.variant);
        desc.table = copy, desc.variant = NULL;
        planned(dev, &desc, got);
        CHECK(desc.invariant || !strcmp(got, name), "want %s got %s", name, got);
    }
    const char *damage = guarded_damage(dev, &d);
    CHECK(!damage, "D: %s", damage);
    damage = workspace ? guarded_damage(dev, &work) : NULL;
    CHECK(!damage, "workspace: %s", damage);
    if (workspace) guarded_free(dev, &work);
    guarded_free(dev, &d);
    dev->mem_free(args.a), dev->mem_free(args.b);
    if (flush) dev->mem_free(how.flush);
    hewn_gemm_table_destroy(table), hewn_gemm_table_destroy(copy);
}

/* A second matrix B that begins where none may: its launch, and so the tuning, is refused. */
static void check_copies(struct device *dev)
{
    struct rng r = {test_seed()};
    hewn_error err = {0};
    const hewn_gemm_desc desc = product(40, N, K);
    if (!test_case("tune: the second matrix is used")) return;
    const hewn_gemm_args args = {.struct_size = sizeof args,
                                 .a = filled(dev, (size_t)(desc.m * desc.k), &r),
                                 .b = filled(dev, (size_t)(desc.n * desc.k) + 1, &r),
                                 .d = filled(dev, (size_t)(desc.m * desc.n), &r)};
    const hewn_gemm_tune_args how = {
        .struct_size = sizeof how, .args = &args, .rounds = 1, .copies = 2, .copy_stride = 1};
    CHECK_INT(hewn_gemm_tune(dev->context, &desc, &how, NULL, NULL, &err), HEWN_ERR_ARGUMENT);
    CHECK(!strncmp(err.message, "B: ", 3), "%s", err.message);
    dev->mem_free(args.a), dev->mem_free(args.b), dev->mem_free(args.d);
}

static void check_tunes(struct device *dev)
{
    hewn_gemm_desc desc = product(40, N, K);
    check_tune(dev, "a few rows", desc, false, 0, 0);
    check_copies(dev);
    desc.invariant = 1;
    check_tune(dev, "invariant", desc, false, 0, 0);
    desc = product(150, 72, 200);
    desc.variant = "plain";
    check_tune(dev, "one kernel, L2 flushed", desc, true, 0, 0);
    check_tune(dev, "one kernel, three matrices in turn", desc, false, 0, 3);
    desc = product(8, 16, 4096);
    desc.variant = dev->info.cc_major == 9 ? "split" : "plain";
    check_tune(dev, "slices of one kernel", desc, false, 4 * 8 * 16 * 4, 0);
}

/* ---- invariance ---- */

/* The first row of a product of `m` rows, the others differ. */
static void first_row(struct device *dev, const hewn_gemm_args *args, int64_t m, uint16_t row[N],
                      uint32_t *parts)
{
    hewn_gemm_desc desc = product(m, N, K);
    hewn_gemm_plan *plan = NULL;
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    hewn_error err = {0};
    desc.invariant = 1;
    int status = hewn_gemm_plan_create(dev->context, &desc, &plan, &err);
    if (!status) status = hewn_gemm_plan_describe(plan, &info, &err);
    if (!status) status = hewn_gemm_plan_run(plan, args, NULL, &err);
    CHECK(!status, "%s", err.message);
    CHECK_INT(dev->synchronize(), 0);
    CHECK_INT(dev->to_host(row, args->d, 2 * N), 0);
    *parts = info.parts;
    hewn_gemm_plan_destroy(plan);
}

static void check_invariant(struct device *dev)
{
    static const int64_t rows[] = {1, 16, 64, 65, 128, 129, M_MOST};
    struct rng r = {test_seed()};
    uint16_t first[N], other[N];
    uint32_t parts = 0, now = 0;
    if (!test_case("a row has the same bits whatever m is")) return;
    hewn_gemm_args args = {.struct_size = sizeof args,
                           .a = filled(dev, M_MOST * K, &r),
                           .b = filled(dev, N * K, &r),
                           .d = filled(dev, M_MOST * N, &r)};
    first_row(dev, &args, rows[0], first, &parts);
    for (size_t i = 1; i < sizeof rows / sizeof rows[0]; i++) {
        first_row(dev, &args, rows[i], other, &now);
        CHECK(now == parts, "%u parts with %lld rows, %u with one", now, (long long)rows[i], parts);
        CHECK(!memcmp(first, other, sizeof first), "other bits with %lld rows", (long long)rows[i]);
    }
    dev->mem_free(args.a), dev->mem_free(args.b), dev->mem_free(args.d);
}

/* Slices that cost what the whole product costs, to the last bit, are not taken. */
static void check_whole(struct device *dev)
{
    const hewn_gemm_desc descs[] = {product(125, 680, 1152), product(3, 2264, 3752)};
    char name[32];
    if (dev->info.cc_major != 9 || dev->info.sm_count != 132) return;
    for (size_t i = 0; i < sizeof descs / sizeof descs[0]; i++) {
        if (!test_case("m=%lld n=%lld k=%lld whole", (long long)descs[i].m, (long long)descs[i].n,
                       (long long)descs[i].k))
            continue;
        planned(dev, &descs[i], name);
        CHECK(!strchr(name, '*'), "the choice is %s", name);
    }
}

int main(int argc, char **argv)
{
    struct device dev;
    hewn_error err = {0};
    test_begin("tuning", argc, argv);
    if (!device_open(&dev, &err)) {
        if (test_case("open the device")) CHECK(false, "%s", err.message);
        return test_end();
    }
    test_where("%s", dev.info.name);
    check_texts();
    check_lines(&dev);
    check_tunes(&dev);
    check_invariant(&dev);
    check_whole(&dev);
    device_close(&dev);
    return test_end();
}
