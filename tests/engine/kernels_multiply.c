/* engine_multiply against float64: norms, sums, biases, rows of every number, one chunk of k and many. */
#include "kernels.h"

#include <math.h>
#include <string.h>

struct multiply_case {
    const char *name;
    int rows, n, k, ctas;
    bool normed, adds, biased, in_place, gaps;
};

struct data {
    struct array x, norm, weights, bias, c, d;
    int64_t x_row, d_row;
};

static bool data_new(const struct multiply_case *m, struct data *d, struct rng *r)
{
    const size_t weights = (size_t)m->n * (size_t)m->k;
    memset(d, 0, sizeof *d);
    d->x_row = m->k + (m->gaps ? 8 : 0);
    d->d_row = m->n + (m->gaps ? 3 : 0);
    bool ready = array_new(&d->x, 2 * (size_t)(m->rows * d->x_row));
    ready = array_new(&d->norm, 2 * (size_t)m->k) && ready;
    ready = array_new(&d->weights, 2 * weights) && ready;
    ready = array_new(&d->bias, 2 * (size_t)m->n) && ready;
    ready = array_new(&d->c, 2 * (size_t)(m->rows * d->d_row)) && ready;
    ready = array_new(&d->d, 2 * (size_t)(m->rows * d->d_row)) && ready;
    if (!ready) return false;
    array_random(&d->x, r, 2);
    array_random(&d->norm, r, 1);
    array_random(&d->weights, r, 1);
    array_random(&d->bias, r, 8);
    array_random(&d->c, r, 8);
    if (m->in_place) memcpy(d->d.host, d->c.host, d->d.size);
    return true;
}

/* A row of x as it is multiplied, and by how much a rounded element may be off. */
static void row_of(const struct multiply_case *m, const struct data *d, int r, double *x,
                   double *off)
{
    const uint16_t *from = bf16(&d->x) + r * d->x_row;
    double sum = 0;
    for (int i = 0; i < m->k; i++) sum += bf16_to_double(from[i]) * bf16_to_double(from[i]);
    const double scale = 1 / sqrt(sum / m->k + EPS);
    for (int i = 0; i < m->k; i++) {
        x[i] = bf16_to_double(from[i]);
        off[i] = 0;
        if (!m->normed) continue;
        const double exact = x[i] * scale * bf16_to_double(bf16(&d->norm)[i]);
        x[i] = bf16_to_double(double_to_bf16(exact));
        /* f32 may round to the other side what lies near the middle of two numbers */
        if (!near_bf16(double_to_bf16(exact), exact, -fabs(exact) * 0x1p-20))
            off[i] = fabs(exact) * 0x1p-7;
    }
}

static double product(const struct multiply_case *m, const struct data *d, const double *x,
                      const double *off, int row, double *slack)
{
    const uint16_t *w = bf16(&d->weights) + (int64_t)row * m->k;
    double sum = 0;
    *slack = 0;
    for (int i = 0; i < m->k; i++) {
        const double by = bf16_to_double(w[i]);
        sum += x[i] * by;
        *slack += fabs(x[i] * by) * 0x1p-20 + off[i] * fabs(by);
    }
    return sum;
}

static void judge_row(const struct multiply_case *m, const struct data *d, int r)
{
    static double x[1 << 15], off[1 << 15];
    int wrong = 0;
    row_of(m, d, r, x, off);
    for (int n = 0; n < m->n && wrong < 3; n++) {
        double slack, want = product(m, d, x, off, n, &slack);
        if (m->biased) want += bf16_to_double(bf16(&d->bias)[n]);
        if (m->adds) want += bf16_to_double(bf16(&d->c)[r * d->d_row + n]);
        const uint16_t got = bf16(&d->d)[r * d->d_row + n];
        if (!near_bf16(got, want, slack))
            CHECK(++wrong == 0, "d[%d][%d]: want %g got %g", r, n, want, bf16_to_double(got));
    }
    for (int64_t i = m->n; i < d->d_row; i++)
        CHECK(bf16(&d->d)[r * d->d_row + i] ==
                  (m->in_place ? bf16(&d->c)[r * d->d_row + i] : 0x5A5A),
              "d[%d][%lld] was written", r, (long long)i);
}

static void run_case(struct bench *b, const struct multiply_case *m, uint64_t seed)
{
    struct rng r = {seed ^ test_seed()};
    struct data d;
    hewn_error err = {0};
    bool ready = data_new(m, &d, &r);
    CHECK(ready, "no memory for the case");
    if (ready) {
        const hewn_deviceptr to = array_up(b, &d.d);
        const struct engine_multiply a = {
            .x = array_up(b, &d.x),
            .norm = m->normed ? array_up(b, &d.norm) : 0,
            .weights = array_up(b, &d.weights),
            .bias = m->biased ? array_up(b, &d.bias) : 0,
            .c = !m->adds      ? 0
                 : m->in_place ? to
                               : array_up(b, &d.c),
            .d = to,
            .rows = m->rows,
            .n = m->n,
            .k = m->k,
            .x_row = m->gaps ? d.x_row : 0,
            .d_row = m->gaps ? d.d_row : 0,
            .ctas = m->ctas,
            .eps = EPS,
        };
        if (launched(b, engine_multiply(&b->kernels, &a, NULL, &err), &err)) {
            array_down(b, &d.d, "d");
            for (int i = 0; i < m->rows; i++) judge_row(m, &d, i);
        }
    }
    struct array *all[] = {&d.x, &d.norm, &d.weights, &d.bias, &d.c, &d.d};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) array_free(b, all[i]);
}

static struct multiply_case random_case(struct rng *r)
{
    struct multiply_case m = {.name = "random", .rows = 1 + (int)rng_below(r, 8)};
    m.n = 16 * (1 + (int)rng_below(r, 9));
    m.normed = rng_below(r, 2);
    m.k = 256 * (1 + (int)rng_below(r, m.normed ? 16 : 40));
    m.ctas = 1 + (int)rng_below(r, 6);
    m.adds = rng_below(r, 2);
    m.biased = rng_below(r, 2);
    m.in_place = m.adds && rng_below(r, 2);
    m.gaps = rng_below(r, 2);
    return m;
}

void test_multiply(struct bench *b, int random)
{
    static const struct multiply_case cases[] = {
        {"a tile of one chunk", 1, 16, 256, 4, false, false, false, false, false},
        {"norm, 16 chunks", 1, 80, 4096, 2, true, false, false, false, false},
        {"norm, 8 rows, bias", 8, 48, 2304, 2, true, false, true, false, true},
        {"sum in place", 3, 64, 2048, 3, false, true, false, true, false},
        {"many chunks", 2, 32, 7168, 1, false, true, true, false, false},
        {"chunks that warps have unequally", 5, 48, 4864, 2, false, true, false, true, true},
        {"more tiles than turns", 1, 320, 512, 1, false, true, false, true, false},
        {"norm, 7 rows", 7, 80, 1024, 2, true, false, false, false, false},
        {"many chunks, gaps", 1, 48, 5120, 2, false, false, false, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (test_case("multiply: %s, %d x %d x %d", cases[i].name, cases[i].rows, cases[i].n,
                      cases[i].k))
            run_case(b, &cases[i], 400 + i);
    for (int i = 0; i < random; i++) {
        struct rng r = {test_seed() + 0x550000 + (uint64_t)i};
        const struct multiply_case m = random_case(&r);
        if (test_case("multiply: random %d, %d x %d x %d", i, m.rows, m.n, m.k))
            run_case(b, &m, r.state);
    }
}
