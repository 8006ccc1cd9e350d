/* engine_quant against float64: e4m3 rows and their scales behind nothing, SwiGLU or a norm. */
#include "kernels.h"

#include "../../tools/engine/weights.h"

#include <math.h>
#include <string.h>

struct quant_case {
    const char *name;
    int rows, n, gap;  /* gap: pairs of units between rows */
    bool gates, norms; /* one of them at most */
    double scale;
    int special; /* of every other row: 1 NaN, 2 infinity, 3 zeros alone */
};

struct data {
    struct array x, up, w, out, scales;
};

static double gated(double gate, double up)
{
    return bf16_to_double(double_to_bf16(gate / (1 + exp(-gate)) * up));
}

/* A row of v: element i into want[i]; its largest size. */
static double want_row(const struct quant_case *c, const struct data *d, int r, double *want)
{
    const int step = c->n + 16 * c->gap;
    double squares = 0, most = 0, factor;
    for (int i = 0; i < c->n; i++) {
        const double x = bf16_to_double(bf16(&d->x)[r * step + i]);
        squares += x * x;
        want[i] = c->gates ? gated(x, bf16_to_double(bf16(&d->up)[r * step + i])) : x;
    }
    factor = c->norms ? 1 / sqrt(squares / c->n + EPS) : 1;
    for (int i = 0; i < c->n; i++) {
        if (c->norms) want[i] *= factor * bf16_to_double(bf16(&d->w)[i]);
        if (!isnan(most) && !(fabs(want[i]) <= most)) most = fabs(want[i]); /* a NaN stays */
    }
    return most;
}

/* Half a step of e4m3 at `x`, its numbers being `scale` times as large, and `slack` of x beside. */
static double bound(double x, double scale, double slack)
{
    int exponent;
    (void)frexp(x / scale, &exponent);
    if (exponent < -5) exponent = -5;
    return ldexp(0.5, exponent - 4) * scale + fabs(x) * slack;
}

static void judge_row(const struct quant_case *c, const struct data *d, int r, const double *want,
                      double most)
{
    const uint8_t *out = (const uint8_t *)d->out.host + r * (c->n + 16 * c->gap);
    const double scale = (double)f32(&d->scales)[r];
    /* A gated product that lies between two of bf16 may become either. */
    const double slack = c->gates ? 0x1p-8 : 0x1p-18;
    int wrong = 0;
    if (isnan(most) || isinf(most)) {
        int bad = 0;
        for (int i = 0; i < c->n; i++) bad += !isnan(e4m3_value(out[i]) * (float)scale);
        CHECK(!bad, "row %d: %d numbers of a row with NaN are none", r, bad);
        return;
    }
    if (most > 0) {
        const double fair = most / 448 > 0x1p-128 ? most / 448 : 0x1p-128;
        CHECK(fabs(scale - fair) <= fair * slack, "scales[%d]: want %g got %g", r, fair, scale);
    }
    for (int i = 0; i < c->n && wrong < 3; i++) {
        const double got = (double)e4m3_value(out[i]) * scale;
        if (!(fabs(got - want[i]) <= bound(want[i], scale, 2 * slack)))
            CHECK(++wrong == 0, "out[%d][%d]: want %g got %g", r, i, want[i], got);
    }
    for (int i = c->n; i < c->n + 16 * c->gap; i++)
        CHECK(out[i] == POISON, "out[%d]: written behind the row", r);
}

static void run(struct bench *b, const struct quant_case *c, struct data *d)
{
    hewn_error err = {0};
    struct array want;
    const struct engine_quant a = {
        .x = array_up(b, &d->x),
        .up = c->gates ? array_up(b, &d->up) : 0,
        .w = c->norms ? array_up(b, &d->w) : 0,
        .out = array_up(b, &d->out),
        .scales = array_up(b, &d->scales),
        .rows = c->rows,
        .n = c->n,
        .row = c->n + 16 * c->gap,
        .out_row = c->n + 16 * c->gap,
        .eps = EPS,
    };
    if (!launched(b, engine_quant(&b->kernels, &a, NULL, &err), &err)) return;
    array_down(b, &d->out, "out");
    array_down(b, &d->scales, "scales");
    if (array_new(&want, (size_t)c->n * sizeof(double)))
        for (int r = 0; r < c->rows; r++)
            judge_row(c, d, r, want.host, want_row(c, d, r, want.host));
    array_free(b, &want);
}

static void run_case(struct bench *b, const struct quant_case *c, uint64_t seed)
{
    const size_t step = (size_t)c->n + 16 * (size_t)c->gap, all = (size_t)c->rows * step;
    struct rng r = {seed ^ test_seed()};
    struct data d;
    bool ready = array_new(&d.x, 2 * all);
    ready = array_new(&d.up, 2 * all) && ready;
    ready = array_new(&d.w, 2 * (size_t)c->n) && ready;
    ready = array_new(&d.out, all) && ready;
    ready = array_new(&d.scales, 4 * (size_t)c->rows) && ready;
    CHECK(ready, "no memory for the case");
    if (ready) {
        array_random(&d.x, &r, c->scale);
        array_random(&d.up, &r, 4);
        array_random(&d.w, &r, 2);
        for (int i = 1; c->special && i < c->rows; i += 2) {
            uint16_t *row = bf16(&d.x) + (size_t)i * step;
            if (c->special == 3) memset(row, 0, (size_t)c->n * 2);
            if (c->special == 1) row[i * 37 % c->n] = 0x7FC0;
            if (c->special == 2) row[i * 37 % c->n] = 0xFF80;
        }
        run(b, c, &d);
    }
    struct array *list[] = {&d.x, &d.up, &d.w, &d.out, &d.scales};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) array_free(b, list[i]);
}

void test_quant(struct bench *b, int random)
{
    static const struct quant_case cases[] = {
        {"one unit", 3, 8, 1, false, false, 2, 0},
        {"ragged turns", 2, 8328, 0, false, false, 1e-3, 0},
        {"norm", 3, 4096, 0, false, true, 1, 0},
        {"norm of a ragged row", 2, 8216, 1, false, true, 30, 0},
        {"SwiGLU", 3, 1048, 1, true, false, 8, 0},
        {"SwiGLU, several turns", 1, 14336, 0, true, false, 3, 0},
        {"NaN", 4, 520, 0, false, true, 1, 1},
        {"infinity", 4, 520, 0, false, false, 1, 2},
        {"zeros", 3, 72, 0, false, true, 1, 3},
        {"small numbers", 2, 256, 0, false, false, 0x1p-126, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (test_case("quant: %s, %d x %d", cases[i].name, cases[i].rows, cases[i].n))
            run_case(b, &cases[i], 700 + i);
    for (int i = 0; i < random; i++) {
        struct rng r = {test_seed() + 0x510000 + (uint64_t)i};
        struct quant_case c = {.name = "random", .rows = 1 + (int)rng_below(&r, 5)};
        c.n = 8 * (1 + (int)rng_below(&r, rng_below(&r, 3) ? 200 : 2400));
        c.gap = (int)rng_below(&r, 3);
        c.gates = rng_below(&r, 3) == 0;
        c.norms = !c.gates && rng_below(&r, 2);
        c.scale = ldexp(1, (int)rng_below(&r, 16) - (c.gates ? 8 : 12));
        c.special = rng_below(&r, 4) ? 0 : (int)rng_below(&r, 4);
        if (test_case("quant: random %d, %d x %d", i, c.rows, c.n)) run_case(b, &c, r.state);
    }
}
