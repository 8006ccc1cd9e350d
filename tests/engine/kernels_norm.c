/* engine_norm against float64. What lies between rows, and rows that no index names, must stay as they are. */
#include "kernels.h"

#include <math.h>
#include <string.h>

struct norm_case {
    const char *name;
    int rows, x_rows, hidden, gap; /* gap: units between rows */
    bool index, y, h, out, in_place;
    double scale, eps;
    int special; /* an element of each row: 1 NaN, 2 infinity, 3 zeros alone */
};

struct data {
    struct array x, y, index, h, w, out;
};

static double add_rounded(double a, double b)
{
    return bf16_to_double(double_to_bf16((double)((float)a + (float)b)));
}

/* What row `r` of h must be; false where the row is no row. */
static bool want_row(const struct norm_case *c, const struct data *d, int r, double *h)
{
    const int step = c->hidden + 8 * c->gap;
    const int32_t s = c->index ? i32(&d->index)[r] : r;
    memset(h, 0, (size_t)c->hidden * sizeof *h);
    if (s < 0 || s >= c->x_rows) return false;
    for (int i = 0; i < c->hidden; i++) {
        const double x = bf16_to_double(bf16(&d->x)[s * step + i]);
        h[i] = c->y ? add_rounded(x, bf16_to_double(bf16(&d->y)[s * step + i])) : x;
    }
    return true;
}

static void judge_row(const struct norm_case *c, const struct data *d, const uint16_t *h,
                      const uint16_t *out, const double *want, bool is_row, int r)
{
    double sum = 0;
    for (int i = 0; i < c->hidden; i++) sum += want[i] * want[i];
    const double scale = 1 / sqrt(sum / c->hidden + (double)(float)c->eps);
    int wrong = 0;
    for (int i = 0; i < c->hidden && wrong < 3; i++) {
        const double w = is_row && c->out ? bf16_to_double(bf16(&d->w)[i]) : 0;
        const double normed = is_row ? want[i] * scale * w : 0;
        if (c->h && !near_bf16(h[i], want[i], 0))
            CHECK(++wrong == 0, "h[%d][%d]: want %g got %g", r, i, want[i], bf16_to_double(h[i]));
        if (c->out && !near_bf16(out[i], normed, fabs(normed) * 0x1p-18))
            CHECK(++wrong == 0, "out[%d][%d]: want %g got %g", r, i, normed,
                  bf16_to_double(out[i]));
    }
    for (int i = c->hidden; i < c->hidden + 8 * c->gap; i++) {
        if (c->h && !c->in_place) CHECK(h[i] == 0x5A5A, "h[%d]: written behind the row", r);
        if (c->out) CHECK(out[i] == 0x5A5A, "out[%d]: written behind the row", r);
    }
}

static void fill(const struct norm_case *c, struct data *d, struct rng *r)
{
    const int step = c->hidden + 8 * c->gap;
    array_random(&d->x, r, c->scale);
    array_random(&d->y, r, c->scale);
    array_random(&d->w, r, 2);
    for (int i = 0; c->special && i < c->x_rows; i++) {
        uint16_t *row = bf16(&d->x) + i * step;
        if (c->special == 3) memset(row, 0, (size_t)c->hidden * 2);
        if (c->special == 1 && i % 2) row[(i * 37) % c->hidden] = 0x7FC0;
        if (c->special == 2 && i % 2) row[(i * 37) % c->hidden] = 0xFF80;
    }
    for (int i = 0; i < c->rows; i++) {
        const uint32_t which = rng_below(r, 8);
        i32(&d->index)[i] = which == 0   ? -1
                            : which == 1 ? c->x_rows + (int32_t)rng_below(r, 9)
                                         : (int32_t)rng_below(r, (uint32_t)c->x_rows);
    }
}

static void run(struct bench *b, const struct norm_case *c, struct data *d)
{
    const int64_t step = c->hidden + 8 * c->gap;
    hewn_error err = {0};
    struct engine_norm a = {
        .x = array_up(b, &d->x),
        .y = c->y ? array_up(b, &d->y) : 0,
        .index = c->index ? array_up(b, &d->index) : 0,
        .w = c->out ? array_up(b, &d->w) : 0,
        .out = c->out ? array_up(b, &d->out) : 0,
        .rows = c->rows,
        .x_rows = c->x_rows,
        .hidden = c->hidden,
        .x_row = step,
        .y_row = step,
        .h_row = step,
        .out_row = step,
        .eps = c->eps,
    };
    if (c->h) a.h = c->in_place ? a.x : array_up(b, &d->h);
    if (!launched(b, engine_norm(&b->kernels, &a, NULL, &err), &err)) return;
    struct array after = {0};
    if (c->h && c->in_place) { /* the judge still needs x as it was */
        bool ready = array_new(&after, d->x.size);
        CHECK(ready && b->dev->to_host(after.host, a.x, after.size) == 0, "x cannot be read");
    }
    array_down(b, &d->h, "h");
    array_down(b, &d->out, "out");
    const struct array *h = c->in_place ? &after : &d->h;
    struct array want;
    bool ready = array_new(&want, (size_t)c->hidden * sizeof(double)) && h->host;
    for (int r = 0; ready && r < c->rows; r++) {
        bool is_row = want_row(c, d, r, want.host);
        judge_row(c, d, bf16(h) + r * step, bf16(&d->out) + r * step, want.host, is_row, r);
    }
    array_free(b, &want);
    array_free(b, &after);
}

static void run_case(struct bench *b, const struct norm_case *c, uint64_t seed)
{
    const size_t step = 2 * (size_t)(c->hidden + 8 * c->gap);
    struct rng r = {seed ^ test_seed()};
    struct data d;
    bool ready = array_new(&d.x, step * (size_t)c->x_rows);
    ready = array_new(&d.y, step * (size_t)c->x_rows) && ready;
    ready = array_new(&d.h, step * (size_t)c->rows) && ready;
    ready = array_new(&d.out, step * (size_t)c->rows) && ready;
    ready = array_new(&d.w, 2 * (size_t)c->hidden) && ready;
    ready = array_new(&d.index, 4 * (size_t)c->rows) && ready;
    CHECK(ready, "no memory for the case");
    if (ready) {
        fill(c, &d, &r);
        run(b, c, &d);
    }
    struct array *all[] = {&d.x, &d.y, &d.h, &d.out, &d.w, &d.index};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) array_free(b, all[i]);
}

static struct norm_case random_case(struct rng *r)
{
    struct norm_case c = {.name = "random", .scale = ldexp(1, (int)rng_below(r, 40) - 20)};
    c.hidden = 8 * (1 + (int)rng_below(r, rng_below(r, 4) ? 200 : 2400));
    c.rows = 1 + (int)rng_below(r, c.hidden > 2000 ? 3 : 12);
    c.index = rng_below(r, 2);
    c.x_rows = c.index ? 1 + (int)rng_below(r, 9) : c.rows + (int)rng_below(r, 2);
    c.gap = (int)rng_below(r, 3);
    c.y = rng_below(r, 2);
    c.out = rng_below(r, 4) != 0;
    c.h = rng_below(r, 2) || !c.out;
    c.in_place = c.h && !c.index && rng_below(r, 2);
    c.eps = rng_below(r, 3) ? 1e-5 : 1e-6;
    c.special = rng_below(r, 4) ? 0 : (int)rng_below(r, 4);
    return c;
}

void test_norm(struct bench *b, int random)
{
    static const struct norm_case cases[] = {
        {"embedding", 5, 7, 64, 0, true, false, true, false, false, 1, 1e-5, 0},
        {"embedding and norm", 9, 5, 136, 1, true, false, true, true, false, 1, 1e-5, 0},
        {"sum and norm", 4, 4, 4096, 0, false, true, true, true, true, 1, 1e-5, 0},
        {"sum alone", 3, 3, 8, 2, false, true, true, false, false, 1, 0, 0},
        {"norm alone, one unit behind a CTA's", 2, 2, 4104, 0, false, false, false, true, false,
         1e-3, 1e-6, 0},
        {"last rows, sum and norm", 6, 20, 2560, 1, true, true, false, true, false, 3, 1e-5, 0},
        {"several turns", 1, 1, 20488, 0, false, true, true, true, false, 1, 1e-5, 0},
        {"NaN", 4, 4, 520, 0, false, true, true, true, false, 1, 1e-5, 1},
        {"infinity", 4, 4, 520, 0, false, false, true, true, false, 1, 1e-5, 2},
        {"zeros", 3, 3, 72, 0, false, false, true, true, false, 1, 1e-6, 3},
        {"large numbers", 2, 2, 256, 0, false, true, true, true, false, 0x1p60, 1e-5, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (test_case("norm: %s, %d x %d", cases[i].name, cases[i].rows, cases[i].hidden))
            run_case(b, &cases[i], i);
    for (int i = 0; i < random; i++) {
        struct rng r = {test_seed() + 0x4E0000 + (uint64_t)i};
        const struct norm_case c = random_case(&r);
        if (test_case("norm: random %d, %d x %d", i, c.rows, c.hidden)) run_case(b, &c, r.state);
    }
}
