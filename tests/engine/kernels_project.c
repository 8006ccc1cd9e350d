/*
 * engine_project against float64: rows rounded to e4m3 as the device rounds them, so that what is left are the
 * scales' and the sums' own errors in f32.
 */
#include "kernels.h"

#include "../../tools/engine/weights.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct project_case {
    const char *name;
    int rows, n, k, ctas;
    bool norms, given, gated, biased, adds; /* given: rows come as e4m3 with scales */
    int gap;                                /* units between rows */
    int special; /* of every other row: 1 NaN, 2 infinity, 3 zeros alone */
};

struct data {
    struct array x, x_scales, w, b, b_scales, bias, c, d;
};

static int columns(const struct project_case *c)
{
    return c->gated ? c->n / 2 : c->n;
}

/* Elements from a row of x, and of c and d, to the next. */
static int x_row(const struct project_case *c)
{
    return c->k + 16 * c->gap;
}
static int d_row(const struct project_case *c)
{
    return columns(c) + c->gap;
}

/* Row r as it is multiplied, in q; its scale. */
static double round_row(const struct project_case *c, const struct data *d, int r, double *q)
{
    double squares = 0;
    float most = 0, factor;
    if (c->given) {
        for (int i = 0; i < c->k; i++)
            q[i] = (double)e4m3_value(((const uint8_t *)d->x.host)[r * x_row(c) + i]);
        return (double)f32(&d->x_scales)[r];
    }
    for (int i = 0; i < c->k; i++) {
        const double x = bf16_to_double(bf16(&d->x)[r * x_row(c) + i]);
        squares += x * x;
        q[i] = c->norms ? x * bf16_to_double(bf16(&d->w)[i]) : x;
        if (isnan(q[i]) || fabsf((float)q[i]) > most)
            most = isnan(most) ? most : fabsf((float)q[i]);
    }
    factor = most == 0 ? 1 : 448 / most < FLT_MAX ? 448 / most : FLT_MAX;
    if (isnan(most)) factor = NAN;
    for (int i = 0; i < c->k; i++) q[i] = (double)e4m3_value(e4m3_of((float)q[i] * factor));
    return (c->norms ? 1 / sqrt(squares / c->k + EPS) : 1) / (double)factor;
}

/* Row j of b times q, and in *most the sum of the products' sizes. */
static double sum_of(const struct project_case *c, const struct data *d, int j, const double *q,
                     double *most)
{
    double sum = 0;
    *most = 0;
    for (int i = 0; i < c->k; i++) {
        const double product =
            q[i] *
            (double)e4m3_value(((const uint8_t *)d->b.host)[(size_t)j * (size_t)c->k + (size_t)i]);
        sum += product;
        *most += fabs(product);
    }
    return sum;
}

/* An addition of a tensor core loses less than 2^-22 of what it adds; a warp makes k / 128 of 16 products and
 * as many between their halves. Scales lose some 2^-22 more. */
static double slack_of(const struct project_case *c)
{
    const int sums = c->k / 64 + 8;
    return ldexp(sums, -22);
}

static void judge_row(const struct project_case *c, const struct data *d, int r, double *q)
{
    const double scale = round_row(c, d, r, q);
    const double slack = slack_of(c);
    int wrong = 0;
    for (int j = 0; j < columns(c); j++) {
        const size_t at = (size_t)r * (size_t)d_row(c) + (size_t)j;
        const uint16_t got = bf16(&d->d)[at];
        double most, want = sum_of(c, d, j, q, &most), off;
        const double b_scale = (double)f32(&d->b_scales)[j] * scale;
        want *= b_scale;
        off = most * fabs(b_scale) * slack;
        if (c->biased) want += bf16_to_double(bf16(&d->bias)[j]);
        if (c->gated) {
            double up_most;
            const double up_scale = (double)f32(&d->b_scales)[j + c->n / 2] * scale;
            const double up = sum_of(c, d, j + c->n / 2, q, &up_most) * up_scale;
            const double gate = want / (1 + exp(-want));
            /* The gate's slope is 1.1 at most; exp and the reciprocal are approximate. */
            off = 1.1 * off * fabs(up) + fabs(gate) * up_most * fabs(up_scale) * slack +
                  fabs(gate * up) * 0x1p-18;
            want = gate * up;
        }
        /* The device's c is gone where d is c. */
        if (c->adds) want += bf16_to_double(bf16(&d->c)[at]);
        off += fabs(want) * 0x1p-22;
        if (!near_bf16(got, want, off) && wrong++ < 3)
            CHECK(false, "d[%d][%d]: want %g got %g, off by %g, slack %g", r, j, want,
                  bf16_to_double(got), fabs(want - bf16_to_double(got)), off);
    }
    for (int j = columns(c); j < d_row(c) && r + 1 < c->rows; j++)
        CHECK(bf16(&d->d)[(size_t)r * (size_t)d_row(c) + (size_t)j] == 0x0101 * POISON,
              "d[%d][%d]: written behind the row", r, j);
}

static void run(struct bench *b, const struct project_case *c, struct data *d)
{
    hewn_error err = {0};
    struct array q;
    const struct engine_project a = {
        .x = array_up(b, &d->x),
        .x_scales = c->given ? array_up(b, &d->x_scales) : 0,
        .w = c->norms ? array_up(b, &d->w) : 0,
        .b = array_up(b, &d->b),
        .b_scales = array_up(b, &d->b_scales),
        .bias = c->biased ? array_up(b, &d->bias) : 0,
        .c = c->adds ? array_up(b, &d->c) : 0,
        .d = array_up(b, &d->d),
        .rows = c->rows,
        .n = c->n,
        .k = c->k,
        .x_row = x_row(c),
        .c_row = d_row(c),
        .d_row = d_row(c),
        .ctas = c->ctas,
        .gated = c->gated,
        .eps = EPS,
    };
    if (!launched(b, engine_project(&b->kernels, &a, NULL, &err), &err)) return;
    array_down(b, &d->d, "d");
    if (array_new(&q, (size_t)c->k * sizeof(double)))
        for (int r = 0; r < c->rows; r++) judge_row(c, d, r, q.host);
    array_free(b, &q);
}

static void random_e4m3(struct array *a, struct rng *r)
{
    for (size_t i = 0; i < a->size; i++)
        ((uint8_t *)a->host)[i] = e4m3_of(rng_unit(r) * (rng_below(r, 8) ? 16.0F : 448.0F));
}

static void random_f32(struct array *a, struct rng *r)
{
    for (size_t i = 0; i < a->size / 4; i++) f32(a)[i] = (1.5F + rng_unit(r)) * 0x1p-9F;
}

static void run_case(struct bench *b, const struct project_case *c, uint64_t seed)
{
    const size_t rows = (size_t)c->rows, n = (size_t)c->n, k = (size_t)c->k;
    struct rng r = {seed ^ test_seed()};
    struct data d;
    bool ready = array_new(&d.x, (c->given ? 1 : 2) * rows * (size_t)x_row(c));
    ready = array_new(&d.x_scales, 4 * rows) && ready;
    ready = array_new(&d.w, 2 * k) && ready;
    ready = array_new(&d.b, n * k) && ready;
    ready = array_new(&d.b_scales, 4 * n) && ready;
    ready = array_new(&d.bias, 2 * n) && ready;
    ready = array_new(&d.c, 2 * rows * (size_t)d_row(c)) && ready;
    ready = array_new(&d.d, 2 * rows * (size_t)d_row(c)) && ready;
    CHECK(ready, "no memory for the case");
    if (ready) {
        if (c->given)
            random_e4m3(&d.x, &r);
        else
            array_random(&d.x, &r, 3);
        random_f32(&d.x_scales, &r);
        array_random(&d.w, &r, 2);
        random_e4m3(&d.b, &r);
        random_f32(&d.b_scales, &r);
        array_random(&d.bias, &r, 2);
        array_random(&d.c, &r, 2);
        for (int i = 1; c->special && i < c->rows; i += 2) {
            uint16_t *row = bf16(&d.x) + (size_t)i * (size_t)x_row(c);
            if (c->special == 3) memset(row, 0, k * 2);
            if (c->special == 1) row[i * 37 % c->k] = 0x7FC0;
            if (c->special == 2) row[i * 37 % c->k] = 0xFF80;
        }
        run(b, c, &d);
    }
    struct array *list[] = {&d.x, &d.x_scales, &d.w, &d.b, &d.b_scales, &d.bias, &d.c, &d.d};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) array_free(b, list[i]);
}

void test_project(struct bench *b, int random)
{
    static const struct project_case cases[] = {
        {"one row", 1, 16, 64, 1, false, false, false, false, false, 0, 0},
        {"norm, more than a ring", 1, 80, 4096, 2, true, false, false, true, false, 0, 0},
        {"SwiGLU", 1, 96, 1088, 2, true, false, true, false, false, 0, 0},
        {"onto the stream", 2, 48, 2112, 3, false, false, false, true, true, 1, 0},
        {"the widest row", 1, 16, 16384, 1, false, false, false, false, true, 0, 0},
        {"eight rows of two turns", 8, 32, 2176, 2, true, false, false, false, true, 2, 0},
        {"eight rows of one turn", 8, 48, 512, 1, true, false, true, false, false, 1, 0},
        {"three rows of e4m3", 3, 32, 3136, 2, false, true, false, false, true, 1, 0},
        {"wide rows of e4m3", 8, 32, 14336, 2, false, true, true, false, false, 0, 0},
        {"NaN", 4, 32, 576, 2, true, false, false, false, false, 0, 1},
        {"infinity", 5, 32, 576, 2, false, false, false, false, false, 0, 2},
        {"zeros", 4, 32, 576, 2, true, false, false, true, false, 0, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (test_case("project: %s, %d x %d x %d", cases[i].name, cases[i].rows, cases[i].n,
                      cases[i].k))
            run_case(b, &cases[i], 900 + i);
    for (int i = 0; i < random; i++) {
        struct rng r = {test_seed() + 0x530000 + (uint64_t)i};
        struct project_case c = {.name = "random", .rows = 1 + (int)rng_below(&r, 8)};
        c.n = 16 * (1 + (int)rng_below(&r, 9));
        c.k = 64 * (1 + (int)rng_below(&r, rng_below(&r, 3) ? 40 : 200));
        c.ctas = 1 + (int)rng_below(&r, 4);
        c.given = rng_below(&r, 3) == 0;
        c.norms = !c.given && rng_below(&r, 2);
        c.gated = rng_below(&r, 3) == 0;
        c.biased = !c.gated && rng_below(&r, 2);
        c.adds = !c.gated && rng_below(&r, 2);
        c.gap = (int)rng_below(&r, 3);
        c.special = c.given || rng_below(&r, 4) ? 0 : (int)rng_below(&r, 4);
        if (test_case("project: random %d, %d x %d x %d", i, c.rows, c.n, c.k))
            run_case(b, &c, r.state);
    }
}
