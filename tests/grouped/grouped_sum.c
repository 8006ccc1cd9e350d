/*
 * hewn_grouped_sum against the same fp32 operations in C, bit for bit, and against float64: with u = 2^-24 a sum of
 * t terms is within t u * sum |weight * x| of it, beside the rounding to D. Rows of X that no term names, columns
 * behind the last, and weights of terms that are left out are NaN. Gaps between rows and guards keep their poison.
 */
#include "lib/device.h"
#include "lib/harness.h"
#include "lib/number.h"
#include "lib/suite.h"
#include "lib/verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { X, D, NUMBERS, WEIGHTS, BUFFERS, POISON = 0x5A };

struct sum_case {
    int rows, terms, n, x_rows;
    int in, out;
    int spread; /* strides larger than contiguous */
    int wrong;  /* some numbers are of no row */
    int unweighted;
    uint64_t seed;
};

struct data {
    struct sum_case c;
    hewn_grouped_sum_desc desc;
    unsigned char *x, *d;
    int32_t *index;
    float *weights;
    size_t size[BUFFERS];
};

/* ---- contents -- */

static int64_t stride(int least, int multiple, int spread)
{
    const int64_t more = (int64_t)least + (spread ? 3 * multiple : 0);
    return (more + multiple - 1) / multiple * multiple;
}

static void describe(struct data *d)
{
    const struct sum_case *c = &d->c;
    const size_t in = hewn_dtype_size(c->in), out = hewn_dtype_size(c->out);
    d->desc = (hewn_grouped_sum_desc){.struct_size = sizeof d->desc,
                                      .rows = c->rows,
                                      .terms = c->terms,
                                      .n = c->n,
                                      .x_rows = c->x_rows,
                                      .ldx = stride(c->n, 16 / (int)in, c->spread),
                                      .ldd = stride(c->n, 16 / (int)out, c->spread),
                                      .index_row = stride(c->terms, 1, c->spread),
                                      .weight_row = stride(c->terms, 1, c->spread && c->n % 2),
                                      .in = c->in,
                                      .out = c->out};
    const size_t before = (size_t)c->rows - 1;
    d->size[X] = (size_t)((c->x_rows - 1) * d->desc.ldx + c->n) * in;
    d->size[D] = (size_t)(c->rows * d->desc.ldd) * out;
    d->size[NUMBERS] = 4 * (before * (size_t)d->desc.index_row + (size_t)c->terms);
    d->size[WEIGHTS] = 4 * (before * (size_t)d->desc.weight_row + (size_t)c->terms);
}

static int32_t some_number(const struct sum_case *c, struct rng *r)
{
    if (c->wrong && rng_below(r, 3) == 0)
        return rng_below(r, 2) ? -1 - (int32_t)rng_below(r, 9)
                               : c->x_rows + (int32_t)rng_below(r, 9);
    return (int32_t)rng_below(r, (uint32_t)c->x_rows);
}

static void fill_row_of_x(struct data *d, int row, struct rng *r)
{
    const size_t size = hewn_dtype_size(d->c.in);
    for (int i = 0; i < d->c.n; i++)
        number_store(d->c.in, 2 * ((double)rng_unit(r) + (double)rng_unit(r)),
                     d->x + (size_t)(row * d->desc.ldx + i) * size);
}

static bool data_new(struct data *d, const struct sum_case *c)
{
    struct rng r = {c->seed ^ test_seed()};
    memset(d, 0, sizeof *d);
    d->c = *c;
    describe(d);
    d->x = malloc(d->size[X]);
    d->d = malloc(d->size[D]);
    d->index = malloc(d->size[NUMBERS]);
    d->weights = malloc(d->size[WEIGHTS]);
    if (!d->x || !d->d || !d->index || !d->weights) return false;
    memset(d->x, 0xFF, d->size[X]);
    memset(d->d, POISON, d->size[D]);
    memset(d->index, 0xFF, d->size[NUMBERS]);
    memset(d->weights, 0xFF, d->size[WEIGHTS]);
    for (int row = 0; row < c->rows; row++)
        for (int j = 0; j < c->terms; j++) {
            const int32_t number = some_number(c, &r);
            d->index[row * d->desc.index_row + j] = number;
            if (number < 0 || number >= c->x_rows) continue;
            d->weights[row * d->desc.weight_row + j] = rng_unit(&r);
            fill_row_of_x(d, number, &r);
        }
    return true;
}

static void data_free(struct data *d)
{
    free(d->x);
    free(d->d);
    free(d->index);
    free(d->weights);
}

/* ---- the judge -- */

struct judge {
    int beyond, unlike, row, column;
    double want, got;
};

static void judge_element(struct judge *j, const struct data *d, int row, int column)
{
    const struct sum_case *c = &d->c;
    const size_t in = hewn_dtype_size(c->in), out = hewn_dtype_size(c->out);
    float same = 0;
    double want = 0, reach = 0;
    for (int i = 0; i < c->terms; i++) {
        const int32_t number = d->index[row * d->desc.index_row + i];
        if (number < 0 || number >= c->x_rows) continue;
        const float w = c->unweighted ? 1 : d->weights[row * d->desc.weight_row + i];
        const double x = number_load(c->in, d->x + (size_t)(number * d->desc.ldx + column) * in);
        want += (double)w * x;
        reach += fabs((double)w * x);
        same = fmaf(w, (float)x, same);
    }
    const double got = number_load(c->out, d->d + (size_t)(row * d->desc.ldd + column) * out);
    const double most = c->terms * 0x1p-24 * reach + 0x1p-149;
    const int beyond = !(fabs(got - want) <= most + number_half_step(c->out, fabs(want) + most));
    const int unlike = !(got == number_round(c->out, (double)same));
    if ((beyond || unlike) && !j->beyond && !j->unlike)
        *j = (struct judge){.row = row, .column = column, .want = want, .got = got};
    j->beyond += beyond;
    j->unlike += unlike;
}

static void judge(const struct data *d)
{
    const size_t out = hewn_dtype_size(d->c.out), pitch = (size_t)d->desc.ldd * out;
    struct judge j = {0};
    int written = 0;
    for (int row = 0; row < d->c.rows; row++) {
        for (int column = 0; column < d->c.n; column++) judge_element(&j, d, row, column);
        for (size_t i = (size_t)d->c.n * out; i < pitch; i++)
            written += d->d[(size_t)row * pitch + i] != POISON;
    }
    CHECK(!j.beyond && !j.unlike,
          "%d elements are beyond the tolerance, %d have other bits than fp32 gives, the first is "
          "[%d,%d]: want %.9g got %.9g",
          j.beyond, j.unlike, j.row, j.column, j.want, j.got);
    CHECK(!written, "%d bytes behind rows are written", written);
}

/* ---- a run -- */

static void launch(struct device *dev, struct data *d, const hewn_grouped_sum_plan *plan,
                   struct guarded *b)
{
    hewn_error err = {0};
    hewn_grouped_sum_args a = {.struct_size = sizeof a};
    const void *const host[BUFFERS] = {d->x, d->d, d->index, d->weights};
    bool ready = true;
    for (int i = 0; ready && i < BUFFERS; i++)
        ready = guarded_new(dev, &b[i], d->size[i], 0xFF) &&
                !dev->to_device(b[i].data, host[i], d->size[i]);
    CHECK(ready, "no device memory for the case");
    if (!ready) return;
    a.x = b[X].data, a.d = b[D].data, a.index = b[NUMBERS].data;
    if (!d->c.unweighted) a.weights = b[WEIGHTS].data;
    int status = hewn_grouped_sum_plan_run(plan, &a, NULL, &err);
    CHECK(status == HEWN_OK, "run: %s", err.message);
    int rc = dev->synchronize();
    CHECK(rc == 0, "the kernel failed with CUresult %d", rc);
    verdict_check(dev->info.simulated, false);
    if (status || rc) return;
    CHECK(dev->to_host(d->d, a.d, d->size[D]) == 0, "cannot read D");
    for (int i = 0; i < BUFFERS; i++) {
        const char *damage = guarded_damage(dev, &b[i]);
        CHECK(!damage, "buffer %d: %s", i, damage);
    }
    judge(d);
}

static void run_case(struct device *dev, const struct sum_case *c)
{
    struct data d;
    struct guarded b[BUFFERS] = {0};
    hewn_grouped_sum_plan *plan = NULL;
    hewn_error err = {0};
    const bool ready = data_new(&d, c);
    CHECK(ready, "no host memory for the case");
    int status = ready ? hewn_grouped_sum_plan_create(dev->context, &d.desc, &plan, &err) : HEWN_OK;
    CHECK(status == HEWN_OK, "plan: %s", err.message);
    if (plan) launch(dev, &d, plan, b);
    for (int i = 0; i < BUFFERS; i++) guarded_free(dev, &b[i]);
    hewn_grouped_sum_plan_destroy(plan);
    data_free(&d);
}

static void try_case(struct device *dev, struct sum_case c)
{
    static uint64_t seed;
    c.seed = ++seed * 0x9E3779B97F4A7C15U;
    if (test_case("%d rows of %d columns, %d terms of %d rows, %s to %s%s%s%s", c.rows, c.n,
                  c.terms, c.x_rows, hewn_dtype_name(c.in), hewn_dtype_name(c.out),
                  c.spread ? ", spread" : "", c.wrong ? ", some of no row" : "",
                  c.unweighted ? ", no weights" : ""))
        run_case(dev, &c);
}

/* ---- the cases -- */

static const int types[][2] = {{HEWN_BF16, HEWN_BF16}, {HEWN_BF16, HEWN_F32}, {HEWN_F16, HEWN_F16},
                               {HEWN_F16, HEWN_F32},   {HEWN_F32, HEWN_BF16}, {HEWN_F32, HEWN_F16},
                               {HEWN_F32, HEWN_F32}};
enum { TYPES = sizeof types / sizeof *types };

/* Ends of units and of CTAs; terms around the eight that are loaded together. */
static void shapes(struct device *dev)
{
    static const int list[][3] = {{1, 1, 1},     {3, 8, 2},    {5, 7, 8},
                                  {4, 9, 9},     {2, 1024, 6}, {7, 1031, 8},
                                  {3, 2055, 17}, {9, 2063, 4}, {40, 200, 2}};
    for (int i = 0; i < 9 * TYPES; i++) {
        const int *shape = list[(i + i / 9) % 9];
        struct sum_case c = {.rows = shape[0], .n = shape[1], .terms = shape[2]};
        c.x_rows = 1 + i * 5 % 60;
        c.in = types[i % TYPES][0];
        c.out = types[i % TYPES][1];
        c.spread = i % 3 == 1;
        c.wrong = i % 4 == 2;
        c.unweighted = i % 5 == 3;
        try_case(dev, c);
    }
}

static void at_random(struct device *dev, int count)
{
    struct rng r = {test_seed()};
    for (int i = 0; i < count; i++) {
        const int *type = types[rng_below(&r, TYPES)];
        struct sum_case c = {.rows = 1 + (int)rng_below(&r, 40), .n = 1 + (int)rng_below(&r, 2500)};
        c.terms = 1 + (int)rng_below(&r, 20);
        c.x_rows = 1 + (int)rng_below(&r, 100);
        c.in = type[0], c.out = type[1];
        c.spread = (int)rng_below(&r, 2);
        c.wrong = (int)rng_below(&r, 2);
        c.unweighted = rng_below(&r, 4) == 0;
        try_case(dev, c);
    }
}

int main(int argc, char **argv)
{
    struct device dev;
    int random = suite_number(&argc, argv, "--random");
    if (!suite_begin(&dev, "grouped_sum", argc, argv)) return 1;
    if (random)
        at_random(&dev, random);
    else
        shapes(&dev);
    return suite_end(&dev);
}
