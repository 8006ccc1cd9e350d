/* engine_swiglu against float64. */
#include "kernels.h"

#include <math.h>
#include <string.h>

struct swiglu_case {
    const char *name;
    int rows, n, gap;
    bool together; /* gate and up in one row, as a product of both gives them */
    bool in_place;
    double scale;
};

static double want_of(double gate, double up)
{
    return gate / (1 + exp(-gate)) * up;
}

static void judge(const struct swiglu_case *c, const struct array *gate, const struct array *up,
                  const struct array *out, int in_row, int out_row)
{
    int wrong = 0;
    for (int r = 0; r < c->rows; r++) {
        for (int i = 0; i < c->n && wrong < 3; i++) {
            const double g = bf16_to_double(bf16(gate)[r * in_row + i]);
            const double u = bf16_to_double(bf16(up)[r * in_row + (c->together ? c->n : 0) + i]);
            const double want = want_of(g, u);
            const uint16_t got = bf16(out)[r * out_row + i];
            if (!near_bf16(got, want,
                           fabs(want) * (0x1p-20 + fabs(g) * 0x1p-23) + fabs(u) * 0x1p-110))
                CHECK(++wrong == 0, "out[%d][%d] of %g, %g: want %g got %g", r, i, g, u, want,
                      bf16_to_double(got));
        }
        for (int i = c->n; i < out_row && !c->in_place; i++)
            CHECK(bf16(out)[r * out_row + i] == 0x5A5A, "out[%d]: written behind the row", r);
    }
}

static void run_case(struct bench *b, const struct swiglu_case *c, uint64_t seed)
{
    const int in_row = c->together ? 2 * c->n + 8 * c->gap : c->n + 8 * c->gap;
    const int out_row = c->in_place ? in_row : c->n + 8 * c->gap;
    struct rng r = {seed ^ test_seed()};
    struct array gate, up, out;
    hewn_error err = {0};
    bool ready = array_new(&gate, 2 * (size_t)c->rows * (size_t)in_row);
    ready = array_new(&up, gate.size) && ready;
    ready = array_new(&out, 2 * (size_t)c->rows * (size_t)out_row) && ready;
    CHECK(ready, "no memory for the case");
    if (ready) {
        array_random(&gate, &r, c->scale);
        array_random(&up, &r, 4);
        if (c->together) memcpy(up.host, gate.host, up.size);
        struct engine_swiglu a = {.rows = c->rows, .n = c->n, .row = in_row, .out_row = out_row};
        a.gate = array_up(b, &gate);
        a.up = c->together ? a.gate + 2 * (hewn_deviceptr)c->n : array_up(b, &up);
        a.out = c->in_place ? a.gate : array_up(b, &out);
        if (launched(b, engine_swiglu(&b->kernels, &a, NULL, &err), &err)) {
            array_down(b, &out, "out");
            if (c->in_place)
                CHECK(b->dev->to_host(out.host, a.out, out.size) == 0, "out cannot be read");
            judge(c, &gate, &up, &out, in_row, out_row);
        }
    }
    array_free(b, &gate);
    array_free(b, &up);
    array_free(b, &out);
}

void test_swiglu(struct bench *b, int random)
{
    static const struct swiglu_case cases[] = {
        {"one unit", 3, 8, 1, false, false, 2},
        {"ragged CTAs", 2, 6152, 0, false, false, 8},
        {"together", 5, 344, 1, true, false, 4},
        {"in place", 2, 2056, 0, true, true, 4},
        {"large numbers", 4, 256, 0, false, false, 300},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (test_case("swiglu: %s, %d x %d", cases[i].name, cases[i].rows, cases[i].n))
            run_case(b, &cases[i], 100 + i);
    for (int i = 0; i < random; i++) {
        struct rng r = {test_seed() + 0x540000 + (uint64_t)i};
        struct swiglu_case c = {.name = "random", .rows = 1 + (int)rng_below(&r, 6)};
        c.n = 8 * (1 + (int)rng_below(&r, rng_below(&r, 3) ? 100 : 900));
        c.gap = (int)rng_below(&r, 3);
        c.together = rng_below(&r, 2);
        c.in_place = c.together && rng_below(&r, 2);
        c.scale = ldexp(1, (int)rng_below(&r, 10));
        if (test_case("swiglu: random %d, %d x %d", i, c.rows, c.n)) run_case(b, &c, r.state);
    }
}
