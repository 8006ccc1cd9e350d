/* MLA decode against float64: heads, queries, pages, lengths, tails that hold NaN, nonsense. */
#include "mla_case.h"

#include "lib/harness.h"
#include "lib/suite.h"
#include "lib/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a of all outputs so far, for --digest: bits depend neither on seed nor on host threads. */
static uint64_t digest = 0xcbf29ce484222325U;

static void add_digest(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) digest = (digest ^ bytes[i]) * 0x100000001b3U;
}

/* ---- a run -- */

struct buffers {
    struct guarded q, kv, o, lse, sink, lengths, table, lists, workspace;
    struct guarded extra_kv, extra_lists, extra_lengths;
};

static bool upload(struct device *dev, struct guarded *g, const void *host, size_t size,
                   hewn_deviceptr *address)
{
    if (!guarded_new(dev, g, size, 0xFF)) return false;
    *address = g->data;
    return size == 0 || dev->to_device(g->data, host, size) == 0;
}

static bool upload_extra(struct device *dev, const struct mla_data *d, struct buffers *b,
                         hewn_mla_args *a)
{
    const struct mla_pool *p = &d->pool[1];
    return upload(dev, &b->extra_kv, d->kv + p->base, p->bytes, &a->extra_kv) &&
           upload(dev, &b->extra_lists, p->lists, p->list_count * 4, &a->extra_lists) &&
           (!p->ragged ||
            upload(dev, &b->extra_lengths, p->lengths, p->length_count * 4, &a->extra_lengths));
}

static bool upload_all(struct device *dev, const struct mla_data *d, struct buffers *b,
                       hewn_mla_args *a, size_t workspace)
{
    const struct mla_case *c = &d->c;
    const struct mla_pool *p = &d->pool[0];
    bool ok = upload(dev, &b->q, d->q, d->q_count * 2, &a->q) &&
              upload(dev, &b->kv, d->kv, d->pool[0].bytes, &a->kv) &&
              upload(dev, &b->o, d->o, d->o_bytes, &a->o);
    if (ok && c->lse) ok = upload(dev, &b->lse, d->lse, d->lse_count * 4, &a->lse);
    if (ok && c->sink) ok = upload(dev, &b->sink, d->sink, (size_t)c->heads * 4, &a->sink);
    if (ok && c->ragged)
        ok = upload(dev, &b->lengths, p->lengths, p->length_count * 4, &a->lengths);
    if (ok && c->list) ok = upload(dev, &b->lists, p->lists, p->list_count * 4, &a->lists);
    if (ok && c->extra) ok = upload_extra(dev, d, b, a);
    if (ok && c->page && !c->list)
        ok = upload(dev, &b->table, d->table, d->table_count * 4, &a->table);
    if (ok && workspace) {
        ok = guarded_new(dev, &b->workspace, workspace, 0xFF);
        a->workspace = b->workspace.data;
    }
    return ok;
}

static void check_guards(struct device *dev, const struct buffers *b)
{
    const struct {
        const char *name;
        const struct guarded *g;
    } list[] = {{"q", &b->q},
                {"kv", &b->kv},
                {"o", &b->o},
                {"lse", &b->lse},
                {"sink", &b->sink},
                {"lengths", &b->lengths},
                {"table", &b->table},
                {"lists", &b->lists},
                {"workspace", &b->workspace},
                {"extra_kv", &b->extra_kv},
                {"extra_lists", &b->extra_lists},
                {"extra_lengths", &b->extra_lengths}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const char *damage = list[i].g->base ? guarded_damage(dev, list[i].g) : NULL;
        CHECK(!damage, "%s: %s", list[i].name, damage);
    }
}

static void free_all(struct device *dev, struct buffers *b)
{
    struct guarded *list[] = {&b->q,         &b->kv,       &b->o,           &b->lse,
                              &b->sink,      &b->lengths,  &b->table,       &b->lists,
                              &b->workspace, &b->extra_kv, &b->extra_lists, &b->extra_lengths};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) guarded_free(dev, list[i]);
}

/* True where the outputs are on the host. */
static bool launch(struct device *dev, struct mla_data *d, const hewn_mla_plan *plan,
                   struct buffers *b)
{
    hewn_error err = {0};
    hewn_mla_plan_info info = {.struct_size = sizeof info};
    hewn_mla_args a = {.struct_size = sizeof a};
    int status = hewn_mla_plan_describe(plan, &info, &err);
    CHECK(status == HEWN_OK, "describe: %s", err.message);
    d->exact = status == HEWN_OK && strstr(info.module, "x16") != NULL;
    memset(d->o, MLA_POISON, d->o_bytes);
    memset(d->lse, MLA_POISON, d->lse_count * 4);
    bool ready = upload_all(dev, d, b, &a, (size_t)info.workspace);
    CHECK(ready, "no device memory for the case");
    if (!ready) return false;
    status = hewn_mla_plan_run(plan, &a, NULL, &err);
    CHECK(status == HEWN_OK, "run: %s", err.message);
    int rc = dev->synchronize();
    CHECK(rc == 0, "the kernel failed with CUresult %d", rc);
    verdict_check(dev->info.simulated, d->c.wrong == MLA_BAD_PAGES);
    if (status || rc) return false;
    bool back = dev->to_host(d->o, a.o, d->o_bytes) == 0 &&
                (!a.lse || dev->to_host(d->lse, a.lse, d->lse_count * 4) == 0);
    CHECK(back, "cannot read the outputs");
    add_digest(d->o, d->o_bytes);
    if (a.lse) add_digest(d->lse, d->lse_count * 4);
    check_guards(dev, b);
    return back;
}

static void run_data(struct device *dev, struct mla_data *d, const hewn_mla_plan *plan)
{
    struct buffers b;
    memset(&b, 0, sizeof b);
    if (launch(dev, d, plan, &b)) {
        struct mla_figures f = mla_judge(d);
        if (test_verbose())
            printf("    error %.3g, of rounding alone %.3g, lse %.2g\n", f.error, f.ideal, f.lse);
    }
    free_all(dev, &b);
}

/* `runs` of one plan, each with other data: lengths, tables, a dirty workspace of its own. */
static void run_case(struct device *dev, struct mla_case c, int runs)
{
    hewn_mla_plan *plan = NULL;
    for (int i = 0; i < runs; i++, c.seed++) {
        struct mla_data d;
        hewn_error err = {0};
        bool ready = mla_data_new(&d, &c);
        int status = HEWN_OK;
        CHECK(ready, "no host memory for the case");
        if (ready && !plan) status = hewn_mla_plan_create(dev->context, &d.desc, &plan, &err);
        if (status == HEWN_ERR_NO_MODULE)
            test_skip("%s", err.message);
        else
            CHECK(status == HEWN_OK, "plan: %s", err.message);
        if (plan) run_data(dev, &d, plan);
        mla_data_free(&d);
    }
    hewn_mla_plan_destroy(plan);
}

static void try_runs(struct device *dev, struct mla_case c, int runs)
{
    static uint64_t seed;
    char name[200];
    c.seed = ++seed * 0x9E3779B97F4A7C15U;
    mla_case_name(&c, name, sizeof name);
    if (test_case("%s%s", name, runs > 1 ? ", run again with others" : "")) run_case(dev, c, runs);
}

static void try_case(struct device *dev, struct mla_case c)
{
    try_runs(dev, c, 1);
}

/* ---- the cases -- */

static const struct mla_case usual = {.batch = 2,
                                      .heads = 16,
                                      .queries = 1,
                                      .length = 200,
                                      .page = 64,
                                      .in = HEWN_BF16,
                                      .out = HEWN_BF16,
                                      .lse = 1,
                                      .ragged = 0,
                                      .sharp = 1};

/* The ends of blocks, and items of no block, one, two and three. */
static void lengths(struct device *dev)
{
    static const int list[] = {0, 1, 63, 64, 65, 127, 128, 129, 1000};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct mla_case c = usual;
        c.length = list[i];
        c.page = i % 2 ? 64 : 0;
        try_case(dev, c);
    }
}

static void heads(struct device *dev)
{
    static const int list[] = {1, 8, 17, 64, 100, 128};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct mla_case c = usual;
        c.heads = list[i];
        c.queries = 1 << i % 3;
        c.causal = i % 2 == 0;
        c.length = 130;
        c.out = i % 2 ? HEWN_F32 : HEWN_BF16;
        c.in = i % 3 == 2 ? HEWN_F16 : HEWN_BF16;
        try_case(dev, c);
    }
}

static void pages(struct device *dev)
{
    static const int list[] = {1, 8, 16, 24, 61, 128, 256};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct mla_case c = usual;
        c.batch = 3;
        c.length = 300;
        c.page = list[i];
        c.ragged = 1;
        c.spread = i % 2 == 1;
        c.out = i % 2 ? HEWN_F16 : HEWN_F32;
        try_case(dev, c);
    }
}

static void others(struct device *dev)
{
    struct mla_case c = usual;
    c.batch = 9; /* several items a CTA, of every length */
    c.length = 260;
    c.ragged = c.sink = 1;
    try_case(dev, c);
    c.queries = 4;
    c.causal = 1;
    c.page = 0;
    c.spread = 1;
    try_case(dev, c);
    c = usual;
    c.sharp = 8;
    c.length = 700;
    c.out = HEWN_F32;
    try_case(dev, c);
    c.sharp = 1;
    c.batch = 6;
    c.length = 150;
    c.ragged = 1;
    c.wrong = MLA_BAD_LENGTHS;
    try_case(dev, c);
    c.wrong = MLA_RIGHT;
    c.batch = 3;
    c.length = 900; /* now whole, now over several CTAs */
    try_runs(dev, c, 4);
    c.batch = 6;
    c.length = 150;
    c.wrong = MLA_BAD_PAGES;
    c.page = 16;
    try_case(dev, c);
    c.page = 7;
    try_case(dev, c);
}

/* Widths around blocks; every number of heads; both kinds of length; pages or one cache of all rows. */
static void lists(struct device *dev, int packed)
{
    static const int width[] = {1, 63, 64, 65, 200, 700, 130};
    static const int heads_of[] = {8, 64, 128, 100, 16, 1, 65};
    static const int page[] = {0, 64, 2, 61, 0, 256, 53};
    for (size_t i = 0; i < sizeof width / sizeof *width; i++) {
        struct mla_case c = usual;
        c.list = width[i];
        c.packed = packed;
        c.heads = heads_of[i];
        c.queries = 1 + (int)(i * 3) % 5;
        c.length = i == 4 ? 70 : 500;
        c.page = page[i];
        c.in = i % 3 == 2 && !packed ? HEWN_F16 : HEWN_BF16;
        c.out = i % 2 ? HEWN_F32 : HEWN_BF16;
        c.ragged = (int)i % 3;
        c.sink = i % 2 == 0;
        c.spread = i % 3 == 1;
        c.wrong = i % 2 ? MLA_BAD_LISTS : c.ragged ? MLA_BAD_LENGTHS : MLA_RIGHT;
        try_case(dev, c);
    }
    struct mla_case c = usual; /* prefill: more queries than CTAs, which share none */
    c.list = 70;
    c.packed = packed;
    c.batch = 1;
    c.queries = 150;
    c.heads = 3;
    c.length = 300;
    c.page = 0;
    c.wrong = MLA_BAD_LISTS;
    try_case(dev, c);
    c.length = 0; /* no row at all */
    c.queries = 2;
    try_case(dev, c);
}

/* A second cache: widths around the border of both lists in a block; either list, or both, without a key. */
static void second_caches(struct device *dev)
{
    static const int width[] = {1, 64, 100, 130, 7, 300}, more[] = {1, 64, 29, 200, 500, 3};
    static const int page[] = {0, 64, 2, 61, 0, 256}, extra_page[] = {0, 256, 64, 0, 1, 17};
    static const int packed[] = {0, MLA_SPLIT_RECORD, MLA_WIDE_RECORD};
    for (size_t i = 0; i < 2 * sizeof width / sizeof *width; i++) {
        size_t k = i % 6;
        struct mla_case c = usual;
        c.list = width[k];
        c.extra = more[k];
        c.packed = packed[i % 3 == 0 ? 1 : i % 3 == 1 ? 2 * (i < 6) : i < 6];
        c.page = page[k];
        c.extra_page = extra_page[k];
        c.heads = i % 4 == 3 ? 128 : 1 << i % 7;
        c.queries = 1 + (int)i % 3;
        c.length = 400;
        c.ragged = (int)i % 3;
        c.extra_ragged = (int)(i + i / 3) % 3;
        c.out = i % 2 ? HEWN_F32 : HEWN_BF16;
        c.sink = i % 2 == 0;
        c.spread = i % 3 == 1;
        c.wrong = i % 4 == 1 ? MLA_BAD_LISTS : i % 4 == 2 ? MLA_BAD_LENGTHS : MLA_RIGHT;
        try_case(dev, c);
    }
    struct mla_case c = usual; /* prefill; and no row at all */
    c.list = 70;
    c.extra = 40;
    c.batch = 1;
    c.queries = 150;
    c.heads = 3;
    c.length = 300;
    c.page = 0;
    c.packed = MLA_SPLIT_RECORD;
    c.wrong = MLA_BAD_LISTS;
    try_case(dev, c);
    c.length = 0;
    c.queries = 2;
    try_case(dev, c);
}

/* Records by block tables. */
static void records(struct device *dev, int packed)
{
    static const int page[] = {0, 64, 16, 61, 1};
    for (size_t i = 0; i < sizeof page / sizeof *page; i++) {
        struct mla_case c = usual;
        c.packed = packed;
        c.page = page[i];
        c.batch = 3;
        c.length = i == 1 ? 900 : 300;
        c.ragged = i % 2 == 1;
        c.heads = i == 2 ? 100 : 16;
        c.queries = 1 + (int)i % 3;
        c.causal = 1;
        c.spread = i % 2 == 0;
        c.out = i % 2 ? HEWN_F16 : HEWN_F32;
        c.wrong = i == 3 ? MLA_BAD_PAGES : MLA_RIGHT;
        try_case(dev, c);
    }
}

/* Records: few rows, items of every length, queries that share a tile, scales that grow. Then more rows. */
static void more_records(struct device *dev, int packed)
{
    struct mla_case c = usual;
    c.packed = packed;
    c.batch = 9; /* several items a CTA */
    c.length = 330;
    c.heads = 8;
    c.ragged = c.sink = 1;
    try_case(dev, c);
    c.queries = 2;
    c.causal = 1;
    c.out = HEWN_F32;
    try_case(dev, c);
    c.heads = 3;
    c.queries = 4;
    c.page = 24;
    c.out = HEWN_F16;
    try_case(dev, c);
    c = usual;
    c.packed = packed;
    c.steep = packed == MLA_WIDE_RECORD;
    c.length = 1000;
    c.out = HEWN_F32;
    try_case(dev, c);
    c.page = 0;
    c.sharp = 8;
    c.heads = 5;
    try_case(dev, c);
    c.list = 700;
    c.wrong = MLA_BAD_LISTS;
    try_case(dev, c);
    c = usual;
    c.packed = packed;
    c.batch = 3;
    c.length = 900; /* now whole, now over several CTAs */
    c.ragged = 1;
    try_runs(dev, c, 4);
    c.heads = 17;
    c.steep = packed == MLA_WIDE_RECORD;
    c.queries = 3;
    c.causal = 1;
    try_runs(dev, c, 2);
    c.heads = 128;
    c.queries = 1;
    c.causal = c.ragged = 0;
    c.sharp = 8;
    c.out = HEWN_F32;
    try_case(dev, c);
}

static void at_random(struct device *dev, int count)
{
    struct rng r = {test_seed()};
    static const int page[] = {0, 1, 16, 61, 64, 128, 256};
    for (int i = 0; i < count; i++) {
        struct mla_case c = usual;
        c.batch = 1 + (int)rng_below(&r, 6);
        c.heads = 1 + (int)rng_below(&r, 128);
        c.queries = 1 + (int)rng_below(&r, 4);
        c.length = (int)rng_below(&r, rng_below(&r, 4) ? 300 : 1200);
        c.page = page[rng_below(&r, 7)];
        c.in = rng_below(&r, 2) ? HEWN_BF16 : HEWN_F16;
        c.out = (int)rng_below(&r, 3);
        c.causal = (int)rng_below(&r, 2);
        c.sink = (int)rng_below(&r, 2);
        c.lse = (int)rng_below(&r, 2);
        c.ragged = (int)rng_below(&r, 2);
        c.spread = (int)rng_below(&r, 2);
        c.sharp = rng_below(&r, 3) ? 1 : 6;
        if (c.ragged) c.wrong = rng_below(&r, 5) ? MLA_RIGHT : MLA_BAD_LENGTHS;
        if (c.page && !rng_below(&r, 6)) c.wrong = MLA_BAD_PAGES;
        if (!rng_below(&r, 2)) c.packed = rng_below(&r, 2) ? MLA_WIDE_RECORD : MLA_SPLIT_RECORD;
        if (c.packed) c.in = HEWN_BF16;
        if (c.packed == MLA_WIDE_RECORD) c.steep = (int)rng_below(&r, 2);
        if (c.packed && rng_below(&r, 2)) c.heads = 1 + c.heads % (16 / c.queries);
        if (rng_below(&r, 2)) {
            c.list = 1 + (int)rng_below(&r, rng_below(&r, 4) ? 300 : 1200);
            c.causal = 0;
            c.queries = 1 + (int)rng_below(&r, 5);
            c.ragged = (int)rng_below(&r, 3);
            if (!rng_below(&r, 3)) {
                c.extra = 1 + (int)rng_below(&r, rng_below(&r, 4) ? 200 : 600);
                c.extra_page = page[rng_below(&r, 7)];
                c.extra_ragged = (int)rng_below(&r, 3);
            }
            if (c.wrong != MLA_BAD_LENGTHS) c.wrong = rng_below(&r, 2) ? MLA_RIGHT : MLA_BAD_LISTS;
        }
        try_case(dev, c);
    }
}

/* The longest sequence has the same bits, whatever the others' lengths are. */
static void run_invariant(struct device *dev, const struct mla_case *c)
{
    struct mla_data d;
    hewn_error err = {0};
    hewn_mla_plan *plan = NULL;
    hewn_mla_plan_info info = {.struct_size = sizeof info};
    const bool ready = mla_data_new(&d, c);
    CHECK(ready, "no host memory for the case");
    d.desc.invariant = 1;
    if (ready && hewn_mla_plan_create(dev->context, &d.desc, &plan, &err) == HEWN_OK) {
        const size_t size = d.o_bytes / (size_t)c->batch;
        unsigned char *first = malloc(size);
        int at = 0;
        hewn_mla_plan_describe(plan, &info, NULL);
        CHECK_INT(info.workspace, 0);
        run_data(dev, &d, plan);
        while (at + 1 < c->batch && d.pool[0].lengths[at] < c->length) at++;
        if (first) memcpy(first, d.o + (size_t)at * size, size);
        for (int i = 0; i < c->batch; i++)
            if (i != at && d.pool[0].lengths[i] > 1) d.pool[0].lengths[i] = 1;
        run_data(dev, &d, plan);
        CHECK(first && !memcmp(first, d.o + (size_t)at * size, size),
              "sequence %d has other bits beside others", at);
        free(first);
    } else {
        CHECK(false, "plan: %s", err.message);
    }
    hewn_mla_plan_destroy(plan);
    mla_data_free(&d);
}

/* The first query has the same bits, whether others and other sequences are there or not. */
static void run_alone(struct device *dev, const struct mla_case *c)
{
    struct mla_data d;
    hewn_error err = {0};
    const size_t size = (size_t)c->heads * MLA_V * sizeof(float);
    unsigned char *first = malloc(size);
    const bool ready = mla_data_new(&d, c);
    CHECK(ready && first, "no host memory for the case");
    d.desc.invariant = 1;
    for (int turn = 0; ready && first && turn < 2; turn++) {
        hewn_mla_plan *plan = NULL;
        const int status = hewn_mla_plan_create(dev->context, &d.desc, &plan, &err);
        CHECK(status == HEWN_OK, "plan: %s", err.message);
        if (plan) run_data(dev, &d, plan);
        hewn_mla_plan_destroy(plan);
        if (turn)
            CHECK(!memcmp(first, d.o, size), "query 0 has other bits beside others");
        else
            memcpy(first, d.o, size);
        memset(d.o, MLA_POISON, d.o_bytes);
        d.c.batch = d.c.queries = 1;
        d.desc.batch = d.desc.q_length = 1;
    }
    free(first);
    mla_data_free(&d);
}

static void invariance(struct device *dev)
{
    static const int caches[] = {0, MLA_WIDE_RECORD, MLA_SPLIT_RECORD};
    struct mla_case c = usual;
    c.batch = 3;
    c.length = 700;
    c.ragged = 1;
    c.out = HEWN_F32;
    if (test_case("invariant, pages")) run_invariant(dev, &c);
    c.page = 0;
    c.heads = 70; /* two tiles of rows */
    c.packed = MLA_WIDE_RECORD;
    if (test_case("invariant, records")) run_invariant(dev, &c);
    c.heads = 8; /* of records, few rows have kernels of their own */
    c.queries = 3;
    c.ragged = 0;
    c.lse = 0;
    for (int i = 0; i < 6; i++) {
        c.packed = caches[i % 3];
        c.list = i < 3 ? 0 : 150;
        if (test_case("invariant, alone, records of %d, lists of %d", c.packed, c.list))
            run_alone(dev, &c);
    }
}

int main(int argc, char **argv)
{
    struct device dev;
    int random = suite_number(&argc, argv, "--random");
    int show = suite_flag(&argc, argv, "--digest");
    if (!suite_begin(&dev, "mla", argc, argv)) return 1;
    if (random) {
        at_random(&dev, random);
    } else {
        lengths(&dev);
        heads(&dev);
        pages(&dev);
        others(&dev);
        lists(&dev, 0);
        lists(&dev, MLA_WIDE_RECORD);
        records(&dev, MLA_WIDE_RECORD);
        more_records(&dev, MLA_WIDE_RECORD);
        lists(&dev, MLA_SPLIT_RECORD);
        records(&dev, MLA_SPLIT_RECORD);
        second_caches(&dev);
        more_records(&dev, MLA_SPLIT_RECORD);
        invariance(&dev);
    }
    if (show) printf("digest %016llx\n", (unsigned long long)digest);
    return suite_end(&dev);
}
