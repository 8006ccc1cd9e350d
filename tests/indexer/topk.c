/*
 * hewn_topk against a sort in C, exactly: rows of every shape, equal elements, NaN, infinities, ranges and
 * pages out of bounds. Columns outside a row's range hold +infinity, which would win. Gaps between rows of
 * indices and guards keep their poison.
 */
#include "lib/device.h"
#include "lib/harness.h"
#include "lib/suite.h"
#include "lib/verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NORMAL, FEW_VALUES, ASCENDING, DESCENDING, SPECIALS, NEAR, ALL_BITS, CONSTANT, KINDS };
static const char *const kinds[] = {"normal",   "few values", "ascending", "descending",
                                    "specials", "near",       "all bits",  "constant"};

struct topk_case {
    int batch, queries, columns, k;
    int page;   /* 0: entries are columns */
    int starts; /* ranges begin anywhere */
    int ends;   /* and end anywhere, both sometimes out of bounds */
    int gap;    /* elements between rows of values and of indices */
    int wrong;  /* entries of the table outside the pool */
    enum kind kind;
    uint64_t seed;
};

struct data {
    struct topk_case c;
    int rows, pages, width;
    int first; /* of the values: rows begin anywhere */
    float *values;
    int32_t *indices, *starts, *ends, *table;
    size_t value_count, index_count, table_count;
};

enum { POISON = 0x5A5A5A5A };

/* ---- contents -- */

static float value_of(const struct topk_case *c, struct rng *r, int j)
{
    static const float specials[] = {NAN,   -INFINITY, INFINITY, 0.0F, -0.0F,    1e-42F,
                                     -1.0F, 1.0F,      -1e-42F,  -NAN, 3.4e+38F, -3.4e+38F};
    uint32_t bits;
    float x;
    switch (c->kind) {
    case FEW_VALUES: return (float)rng_below(r, 5) - 2;
    case ASCENDING: return (float)j * 0.25F;
    case DESCENDING: return -(float)j;
    case SPECIALS: return specials[rng_below(r, 12)];
    case NEAR: return 1.0F + (float)rng_below(r, 3000) * 0x1p-23F;
    case CONSTANT: return -7.5F;
    case ALL_BITS:
        bits = (uint32_t)rng_next(r);
        memcpy(&x, &bits, sizeof x);
        return x;
    default: return rng_unit(r) + rng_unit(r) + rng_unit(r);
    }
}

static int clamp(int x, int most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

static void range_of(const struct data *d, int row, int *from, int *to)
{
    *from = d->c.starts ? clamp(d->starts[row], d->c.columns) : 0;
    *to = d->c.ends ? clamp(d->ends[row], d->c.columns) : d->c.columns;
}

static int32_t bound(struct rng *r, int columns)
{
    uint32_t which = rng_below(r, 12);
    if (which == 0) return -3;
    if (which == 1) return INT32_MAX;
    if (which == 2) return INT32_MIN;
    return (int32_t)rng_below(r, (uint32_t)columns + 1);
}

static void fill(struct data *d)
{
    const struct topk_case *c = &d->c;
    struct rng r = {c->seed ^ test_seed()};
    int step = c->columns + c->gap;
    for (size_t i = 0; i < d->value_count; i++) d->values[i] = INFINITY;
    for (int row = 0; row < d->rows; row++) {
        int from, to;
        d->starts[row] = row % 3 ? bound(&r, c->columns) / 4 : bound(&r, c->columns);
        d->ends[row] = row % 3 ? c->columns : bound(&r, c->columns);
        range_of(d, row, &from, &to);
        for (int j = from; j < to; j++)
            d->values[(size_t)row * (size_t)step + (size_t)(d->first + j)] = value_of(c, &r, j);
    }
    for (size_t i = 0; i < d->table_count; i++) {
        d->table[i] = (int32_t)rng_below(&r, (uint32_t)d->pages);
        if (c->wrong && i % 3 == 1) d->table[i] = i % 2 ? d->pages + (int32_t)i : -1 - (int32_t)i;
    }
}

static bool data_new(struct data *d, const struct topk_case *c)
{
    memset(d, 0, sizeof *d);
    d->c = *c;
    d->rows = c->batch * c->queries;
    d->first = c->gap > 0;
    d->width = c->page ? (c->columns + c->page - 1) / c->page + 1 : 0;
    d->pages = d->width * 2;
    d->value_count = (size_t)d->rows * (size_t)(c->columns + c->gap) + 1;
    d->index_count = (size_t)d->rows * (size_t)(c->k + c->gap);
    d->table_count = (size_t)d->width * (size_t)c->batch;
    d->values = malloc(d->value_count * sizeof *d->values);
    d->indices = malloc(d->index_count * sizeof *d->indices);
    d->starts = malloc((size_t)d->rows * sizeof *d->starts);
    d->ends = malloc((size_t)d->rows * sizeof *d->ends);
    d->table = malloc(d->table_count * sizeof *d->table + 1);
    if (!d->values || !d->indices || !d->starts || !d->ends || !d->table) return false;
    fill(d);
    return true;
}

static void data_free(struct data *d)
{
    free(d->values);
    free(d->indices);
    free(d->starts);
    free(d->ends);
    free(d->table);
}

/* ---- the judge -- */

struct element {
    float value;
    int32_t column;
};

static int better_first(const void *a, const void *b)
{
    const struct element *x = a, *y = b;
    if (x->value > y->value) return -1;
    if (x->value < y->value) return 1;
    return (x->column > y->column) - (x->column < y->column);
}

static int column_first(const void *a, const void *b)
{
    const struct element *x = a, *y = b;
    return (x->column > y->column) - (x->column < y->column);
}

static int32_t mapped(const struct data *d, int row, int32_t column)
{
    if (!d->c.page) return column;
    int32_t page = d->table[row / d->c.queries * d->width + column / d->c.page];
    return page < 0 || page >= d->pages ? -1 : page * d->c.page + column % d->c.page;
}

/* The wanted entries of a row: `room` holds its columns. */
static void want_row(const struct data *d, int row, struct element *room, int32_t *want)
{
    const float *values = d->values + d->first + (size_t)row * (size_t)(d->c.columns + d->c.gap);
    int from, to, n = 0;
    range_of(d, row, &from, &to);
    for (int j = from; j < to; j++)
        if (values[j] > -INFINITY) room[n++] = (struct element){values[j], j};
    qsort(room, (size_t)n, sizeof *room, better_first);
    if (n > d->c.k) n = d->c.k;
    qsort(room, (size_t)n, sizeof *room, column_first);
    for (int i = 0; i < d->c.k; i++) want[i] = i < n ? mapped(d, row, room[i].column) : -1;
}

static void judge(const struct data *d)
{
    const struct topk_case *c = &d->c;
    struct element *room = malloc(((size_t)c->columns + 1) * sizeof *room);
    int32_t *want = malloc((size_t)c->k * sizeof *want);
    CHECK(room && want, "no host memory for the judge");
    for (int row = 0; room && want && row < d->rows; row++) {
        const int32_t *got = d->indices + (size_t)row * (size_t)(c->k + c->gap);
        int wrong = 0, first = -1;
        want_row(d, row, room, want);
        for (int i = 0; i < c->k; i++)
            if (got[i] != want[i] && !wrong++) first = i;
        CHECK(!wrong, "row %d: %d of %d entries are wrong, the first is [%d]: want %d got %d", row,
              wrong, c->k, first, want[first < 0 ? 0 : first], got[first < 0 ? 0 : first]);
        for (int i = c->k; i < c->k + c->gap; i++)
            CHECK(got[i] == POISON, "row %d: written behind its entries", row);
    }
    free(room);
    free(want);
}

/* ---- a run -- */

struct buffers {
    struct guarded values, indices, starts, ends, table;
};

static bool upload(struct device *dev, struct guarded *g, const void *host, size_t size,
                   hewn_deviceptr *address)
{
    if (!guarded_new(dev, g, size, 0xFF)) return false;
    *address = g->data;
    return size == 0 || dev->to_device(g->data, host, size) == 0;
}

static void launch(struct device *dev, struct data *d, const hewn_topk_plan *plan,
                   struct buffers *b)
{
    hewn_error err = {0};
    hewn_topk_args a = {.struct_size = sizeof a};
    size_t rows = (size_t)d->rows * 4;
    for (size_t i = 0; i < d->index_count; i++) d->indices[i] = POISON;
    bool ok = upload(dev, &b->values, d->values, d->value_count * 4, &a.values) &&
              upload(dev, &b->indices, d->indices, d->index_count * 4, &a.indices);
    if (ok && d->c.starts) ok = upload(dev, &b->starts, d->starts, rows, &a.starts);
    if (ok && d->c.ends) ok = upload(dev, &b->ends, d->ends, rows, &a.ends);
    if (ok && d->c.page) ok = upload(dev, &b->table, d->table, d->table_count * 4, &a.table);
    CHECK(ok, "no device memory for the case");
    if (!ok) return;
    a.values += 4 * (hewn_deviceptr)d->first;
    int status = hewn_topk_plan_run(plan, &a, NULL, &err);
    CHECK(status == HEWN_OK, "run: %s", err.message);
    int rc = dev->synchronize();
    CHECK(rc == 0, "the kernel failed with CUresult %d", rc);
    verdict_check(dev->info.simulated, false);
    if (status || rc) return;
    CHECK(dev->to_host(d->indices, a.indices, d->index_count * 4) == 0, "cannot read the indices");
    const struct guarded *list[] = {&b->values, &b->indices, &b->starts, &b->ends, &b->table};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const char *damage = list[i]->base ? guarded_damage(dev, list[i]) : NULL;
        CHECK(!damage, "buffer %zu: %s", i, damage);
    }
    judge(d);
}

static void run_case(struct device *dev, const struct topk_case *c)
{
    struct data d;
    struct buffers b;
    hewn_topk_plan *plan = NULL;
    hewn_error err = {0};
    memset(&b, 0, sizeof b);
    bool ready = data_new(&d, c);
    CHECK(ready, "no host memory for the case");
    const hewn_topk_desc desc = {.struct_size = sizeof desc,
                                 .batch = c->batch,
                                 .queries = c->queries,
                                 .columns = c->columns,
                                 .k = c->k,
                                 .value_row = c->gap ? c->columns + c->gap : 0,
                                 .index_row = c->gap ? c->k + c->gap : 0,
                                 .page_size = c->page,
                                 .pages = d.pages,
                                 .table_width = d.width,
                                 .starts = c->starts,
                                 .ends = c->ends};
    int status = ready ? hewn_topk_plan_create(dev->context, &desc, &plan, &err) : HEWN_OK;
    CHECK(status == HEWN_OK, "plan: %s", err.message);
    if (plan) {
        launch(dev, &d, plan, &b);
        hewn_topk_plan_info info = {.struct_size = sizeof info};
        if (!hewn_topk_plan_describe(plan, &info, NULL) && test_verbose())
            printf("    %s, %u CTAs a row, %u B of shared memory\n", info.module, info.cluster,
                   info.dynamic_shared);
    }
    struct guarded *list[] = {&b.values, &b.indices, &b.starts, &b.ends, &b.table};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) guarded_free(dev, list[i]);
    hewn_topk_plan_destroy(plan);
    data_free(&d);
}

static void try_case(struct device *dev, struct topk_case c)
{
    static uint64_t seed;
    c.seed = ++seed * 0x9E3779B97F4A7C15U;
    if (test_case("%d x %d rows of %d, the largest %d, %s%s%s%s%s%s", c.batch, c.queries, c.columns,
                  c.k, kinds[c.kind], c.starts ? ", starts" : "", c.ends ? ", ends" : "",
                  c.page ? ", pages" : "", c.wrong ? " outside the pool" : "",
                  c.gap ? ", gaps" : ""))
        run_case(dev, &c);
}

/* ---- the cases -- */

static const struct topk_case usual = {.batch = 2, .queries = 1, .columns = 3000, .k = 512};

static void kinds_of_values(struct device *dev)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct topk_case c = usual;
        c.kind = (enum kind)kind;
        c.k = kind % 2 ? 700 : 64;
        try_case(dev, c);
        c.batch = 1;
        c.columns = 20000; /* a cluster of CTAs */
        c.k = 2048;
        c.gap = kind % 3;
        try_case(dev, c);
    }
}

static void shapes(struct device *dev)
{
    static const int columns[] = {0, 1, 3, 4, 5, 31, 127, 1024, 4096, 8191, 8193, 33000};
    static const int ks[] = {1, 2, 5, 512, 1024, 2048};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        struct topk_case c = usual;
        c.columns = columns[i];
        c.k = ks[i % 6];
        c.gap = (int)(i % 4);
        c.kind = i % 2 ? NORMAL : SPECIALS;
        try_case(dev, c);
    }
}

static void ranges(struct device *dev)
{
    for (int i = 0; i < 6; i++) {
        struct topk_case c = usual;
        c.batch = 3;
        c.queries = 2 + i % 2;
        c.starts = i != 1;
        c.ends = i != 2;
        c.columns = 1500 + i;
        c.k = i % 2 ? 512 : 2048;
        c.gap = i % 3;
        c.page = i > 2 ? 16 << i % 3 : 0;
        c.wrong = i == 4;
        c.kind = i == 5 ? FEW_VALUES : NORMAL;
        try_case(dev, c);
    }
}

/* More than one CTA keeps in shared memory; many rows. */
static void large(struct device *dev)
{
    struct topk_case c = usual;
    c.batch = 1;
    c.columns = 600000;
    c.k = 2048;
    try_case(dev, c);
    c.batch = 300;
    c.columns = 300;
    c.k = 20;
    c.ends = 1;
    try_case(dev, c);
}

static void at_random(struct device *dev, int count)
{
    struct rng r = {test_seed()};
    for (int i = 0; i < count; i++) {
        struct topk_case c = usual;
        c.batch = 1 + (int)rng_below(&r, 4);
        c.queries = 1 + (int)rng_below(&r, 3);
        c.columns = (int)rng_below(&r, rng_below(&r, 4) ? 5000 : 40000);
        c.k = 1 + (int)rng_below(&r, 2048);
        c.page = rng_below(&r, 2) ? 0 : 1 + (int)rng_below(&r, 200);
        c.starts = (int)rng_below(&r, 2);
        c.ends = (int)rng_below(&r, 2);
        c.gap = (int)rng_below(&r, 6);
        c.wrong = (int)rng_below(&r, 2);
        c.kind = (enum kind)rng_below(&r, KINDS);
        try_case(dev, c);
    }
}

int main(int argc, char **argv)
{
    struct device dev;
    int random = suite_number(&argc, argv, "--random");
    if (!suite_begin(&dev, "topk", argc, argv)) return 1;
    if (random) {
        at_random(&dev, random);
    } else {
        kinds_of_values(&dev);
        shapes(&dev);
        ranges(&dev);
        large(&dev);
    }
    return suite_end(&dev);
}
