/* The indexer's logits against float64: heads, queries, dimensions, pages, ranges, tails that hold NaN. */
#include "indexer_case.h"

#include "lib/harness.h"
#include "lib/suite.h"
#include "lib/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a run -- */

enum { Q, K, SCALES, WEIGHTS, OUT, STARTS, ENDS, TABLE, BUFFERS };

struct buffers {
    struct guarded of[BUFFERS];
};

static bool upload_all(struct device *dev, const struct indexer_data *d, struct buffers *b,
                       hewn_indexer_args *a)
{
    const struct indexer_case *c = &d->c;
    const size_t rows = (size_t)d->rows * 4;
    const struct {
        hewn_deviceptr *address;
        const void *host;
        size_t size;
        bool wanted;
    } list[BUFFERS] = {[Q] = {&a->q, d->q, d->q_bytes, true},
                       [K] = {&a->k, d->k, d->k_bytes, true},
                       [SCALES] = {&a->k_scale, d->scales, d->scale_count * 4, !c->in_pages},
                       [WEIGHTS] = {&a->weights, d->weights, d->weight_count * 4, true},
                       [OUT] = {&a->out, d->out, d->out_count * 4, true},
                       [STARTS] = {&a->starts, d->starts, rows, c->starts},
                       [ENDS] = {&a->ends, d->ends, rows, c->ends},
                       [TABLE] = {&a->table, d->table, d->table_count * 4, c->page > 0}};
    for (int i = 0; i < BUFFERS; i++) {
        if (!list[i].wanted) continue;
        if (!guarded_new(dev, &b->of[i], list[i].size, 0xFF)) return false;
        *list[i].address = b->of[i].data;
        if (list[i].size && dev->to_device(b->of[i].data, list[i].host, list[i].size)) return false;
    }
    return true;
}

static void launch(struct device *dev, struct indexer_data *d, const hewn_indexer_plan *plan,
                   struct buffers *b)
{
    hewn_error err = {0};
    hewn_indexer_args a = {.struct_size = sizeof a};
    for (size_t i = 0; i < d->out_count; i++) d->out[i] = INDEXER_POISON;
    bool ready = upload_all(dev, d, b, &a);
    CHECK(ready, "no device memory for the case");
    if (!ready) return;
    int status = hewn_indexer_plan_run(plan, &a, NULL, &err);
    CHECK(status == HEWN_OK, "run: %s", err.message);
    int rc = dev->synchronize();
    CHECK(rc == 0, "the kernel failed with CUresult %d", rc);
    verdict_check(dev->info.simulated, d->c.wrong == BAD_PAGES);
    if (status || rc) return;
    CHECK(dev->to_host(d->out, a.out, d->out_count * 4) == 0, "cannot read the logits");
    for (int i = 0; i < BUFFERS; i++) {
        const char *damage = b->of[i].base ? guarded_damage(dev, &b->of[i]) : NULL;
        CHECK(!damage, "buffer %d: %s", i, damage);
    }
    double used = indexer_judge(d);
    if (test_verbose()) printf("    %.3f of the tolerance\n", used);
}

/* `runs` of one plan, each with other data, every other one exact. */
static void run_case(struct device *dev, struct indexer_case c, int runs)
{
    hewn_indexer_plan *plan = NULL;
    for (int i = 0; i < runs; i++, c.seed++) {
        struct indexer_data d;
        struct buffers b;
        hewn_error err = {0};
        memset(&b, 0, sizeof b);
        c.exact = i % 2;
        bool ready = indexer_data_new(&d, &c);
        int status = HEWN_OK;
        CHECK(ready, "no host memory for the case");
        if (ready && !plan) status = hewn_indexer_plan_create(dev->context, &d.desc, &plan, &err);
        if (status == HEWN_ERR_NO_MODULE)
            test_skip("%s", err.message);
        else
            CHECK(status == HEWN_OK, "plan: %s", err.message);
        if (plan) launch(dev, &d, plan, &b);
        for (int n = 0; n < BUFFERS; n++) guarded_free(dev, &b.of[n]);
        indexer_data_free(&d);
    }
    hewn_indexer_plan_destroy(plan);
}

static void try_runs(struct device *dev, struct indexer_case c, int runs)
{
    static uint64_t seed;
    char name[200];
    c.seed = ++seed * 0x9E3779B97F4A7C15U;
    indexer_case_name(&c, name, sizeof name);
    if (test_case("%s%s", name, runs > 2 ? ", run again with others" : "")) run_case(dev, c, runs);
}

static void try_case(struct device *dev, struct indexer_case c)
{
    try_runs(dev, c, 2);
}

/* ---- the cases -- */

static const struct indexer_case usual = {.batch = 2,
                                          .queries = 1,
                                          .heads = 64,
                                          .dim = 128,
                                          .length = 200,
                                          .page = 64,
                                          .in_pages = 1,
                                          .ends = 1};

/* The ends of blocks. */
static void lengths(struct device *dev)
{
    static const int list[] = {0, 1, 63, 64, 65, 127, 128, 129, 1000, 2500};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct indexer_case c = usual;
        c.length = list[i];
        c.ends = i % 3 == 1;
        if (i % 2) c.page = c.in_pages = 0;
        try_case(dev, c);
    }
}

/* Every variant, whole tiles and parts of one. */
static void heads(struct device *dev)
{
    static const int list[][2] = {
        {64, 1}, {64, 2}, {64, 3}, {64, 4},  {64, 9},  {32, 1}, {32, 2},
        {32, 3}, {32, 5}, {32, 8}, {32, 17}, {1, 1},   {17, 4}, {33, 2},
        {50, 7}, {8, 8},  {65, 1}, {128, 1}, {100, 2}, {128, 3}}; /* more than 64: on sm_100f */
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct indexer_case c = usual;
        c.heads = list[i][0];
        c.queries = list[i][1];
        c.length = 150;
        c.starts = i % 2;
        c.spread = i % 3 == 0;
        try_case(dev, c);
    }
}

static void pages(struct device *dev)
{
    static const int list[] = {8, 16, 24, 32, 48, 128, 256};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct indexer_case c = usual;
        c.batch = 3;
        c.length = 400;
        c.page = list[i];
        c.in_pages = i % 2;
        c.spread = i % 3 == 1;
        c.starts = i % 3 == 2;
        try_case(dev, c);
    }
}

static void dims(struct device *dev)
{
    static const int list[] = {16, 32, 48, 64, 112};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct indexer_case c = usual;
        c.dim = list[i];
        c.queries = 1 << i % 3;
        c.spread = i % 2;
        try_case(dev, c);
    }
}

static void others(struct device *dev)
{
    struct indexer_case c = usual;
    c.batch = 1; /* prefill: several items a CTA, ranges of every kind */
    c.queries = 70;
    c.length = 700;
    c.page = c.in_pages = 0;
    c.starts = 1;
    try_runs(dev, c, 3);
    c.wrong = BAD_RANGES;
    try_case(dev, c);
    c = usual;
    c.batch = 9;
    c.length = 2000;
    c.queries = 2;
    try_runs(dev, c, 4);
    c.wrong = NAN_KEYS;
    c.batch = 3;
    c.length = 300;
    try_case(dev, c);
    c.wrong = BAD_RANGES;
    c.starts = 1;
    try_case(dev, c);
    c.wrong = BAD_PAGES;
    try_case(dev, c);
    c.page = 16;
    c.in_pages = 0;
    try_case(dev, c);
}

static void at_random(struct device *dev, int count)
{
    struct rng r = {test_seed()};
    static const int page[] = {0, 8, 16, 40, 64, 64, 128, 192};
    for (int i = 0; i < count; i++) {
        struct indexer_case c = usual;
        c.batch = 1 + (int)rng_below(&r, 6);
        c.queries = 1 + (int)rng_below(&r, rng_below(&r, 3) ? 5 : 30);
        c.heads = rng_below(&r, 2) ? 64 : 1 + (int)rng_below(&r, 64);
        if (dev->info.cc_major >= 10 && !rng_below(&r, 4)) c.heads = 65 + (int)rng_below(&r, 64);
        c.dim = 16 * (1 + (int)rng_below(&r, 8));
        c.length = (int)rng_below(&r, rng_below(&r, 4) ? 300 : 1500);
        c.page = page[rng_below(&r, 8)];
        c.in_pages = c.page ? (int)rng_below(&r, 2) : 0;
        c.starts = (int)rng_below(&r, 2);
        c.ends = (int)rng_below(&r, 2);
        c.spread = (int)rng_below(&r, 2);
        c.wrong = (enum indexer_wrong)rng_below(&r, 4);
        if (c.wrong == BAD_PAGES && !c.page) c.wrong = RIGHT;
        try_case(dev, c);
    }
}

int main(int argc, char **argv)
{
    struct device dev;
    int random = suite_number(&argc, argv, "--random");
    if (!suite_begin(&dev, "indexer", argc, argv)) return 1;
    if (random) {
        at_random(&dev, random);
    } else {
        lengths(&dev);
        heads(&dev);
        pages(&dev);
        dims(&dev);
        others(&dev);
    }
    return suite_end(&dev);
}
