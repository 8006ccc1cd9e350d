#include "scaled_case.h"

#include "lib/harness.h"
#include "lib/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An element of a row. */
static double element(int dtype, const unsigned char *row, int i)
{
    static const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    if (dtype != HEWN_E2M1) return number_load(dtype, row + i * (int)hewn_dtype_size(dtype));
    const unsigned code = row[i / 2] >> i % 2 * 4 & 0xF;
    return code & 8 ? -e2m1[code & 7] : e2m1[code];
}

static double scale_of(const struct scaled_case *c, unsigned char byte)
{
    if (c->scales == HEWN_GROUPED_UE4M3_16) return number_load(HEWN_E4M3, &byte);
    return byte == 0xFF ? (double)NAN : ldexp(1, byte - 127);
}

/* The elements of each row of a side, with their scales, as doubles: rows * k. */
static double *decode(const struct scaled_data *d, const struct scaled_side *s, int plane)
{
    const int k = d->c.k, vector = scaled_vector(&d->c);
    double *out = calloc((size_t)s->rows * (size_t)k, sizeof *out);
    for (int row = 0; out && row < s->rows; row++) {
        const unsigned char *at = s->bytes + plane * s->plane + row * s->row;
        for (int i = 0; i < k; i++)
            out[(size_t)row * (size_t)k + (size_t)i] =
                element(s->dtype, at, i) *
                (d->c.scales ? scale_of(&d->c, *scaled_scale(s, plane, row, i / vector)) : 1);
    }
    return out;
}

/* The sum of a row of each, and the bound H on its error. */
static double sum_of(const double *a, const double *b, int k, int step, double *bound)
{
    double sum = 0, h = 0;
    for (int first = 0; first < k; first += step) {
        double largest = fabs(sum) + h;
        const int end = first + step < k ? first + step : k;
        for (int i = first; i < end; i++) {
            const double product = a[i] * b[i], size = fabs(product);
            if (size > largest) largest = size; /* fmax is a call */
            sum += product;
        }
        h += (step + 1) * 0x1p-23 * largest;
        h += 0x1p-23 * (fabs(sum) + h);
    }
    *bound = h;
    return sum;
}

struct judge {
    const struct scaled_data *d;
    double worst, want, got; /* of the element that exceeds its tolerance most */
    int beyond, group, row, column;
};

static void judge_element(struct judge *j, const double *a, const double *b, int group, int plane,
                          int row, int column)
{
    const struct scaled_data *d = j->d;
    const size_t k = (size_t)d->c.k, size = hewn_dtype_size(d->c.out);
    const int both = d->a.dtype == HEWN_E2M1 && d->b.dtype == HEWN_E2M1;
    const int step = both ? 64 : d->c.scales ? 32 : 16;
    const double alpha = d->c.alpha ? (double)d->alpha[group] : 1;
    const int64_t at = plane * d->desc.stride_d + row * d->desc.ldd + column;
    double h, sum = sum_of(a + (size_t)row * k, b + (size_t)column * k, d->c.k, step, &h);
    const double want = alpha * sum, got = number_load(d->c.out, d->d + (size_t)at * size);
    double most = fabs(alpha) * (h + 0x1p-24 * (fabs(sum) + h)) + 0x1p-126;
    most += number_half_step(d->c.out, fabs(want) + most);
    double excess = fabs(got - want) / most;
    if (d->c.exact) excess = got == number_round(d->c.out, want) ? 0 : (double)INFINITY;
    if (isnan(got)) excess = (double)INFINITY;
    if (excess > 1) j->beyond++;
    if (excess <= j->worst) return;
    j->worst = excess, j->want = want, j->got = got;
    j->group = group, j->row = row, j->column = column;
}

/* Whether the element of a plane is a group's; those that are none's keep their poison. */
static bool is_written(const struct scaled_data *d, int plane, int row, int column)
{
    if (row >= d->c.m || column >= d->c.n) return false;
    for (int g = 0; g < d->c.groups; g++) {
        int first, end;
        scaled_range(d, g, &first, &end);
        if ((d->planes == 1 || g == plane) && row >= first && row < end) return true;
    }
    return false;
}

static void judge_rest(const struct scaled_data *d)
{
    const size_t size = hewn_dtype_size(d->c.out);
    for (size_t i = 0; i < d->d_bytes; i++) {
        const int64_t at = (int64_t)(i / size), plane = at / d->desc.stride_d,
                      inside = at % d->desc.stride_d;
        const int row = (int)(inside / d->desc.ldd), column = (int)(inside % d->desc.ldd);
        if (d->d[i] == SCALED_POISON || is_written(d, (int)plane, row, column)) continue;
        CHECK(0, "plane %d, row %d, column %d belongs to no group and is written", (int)plane, row,
              column);
        return;
    }
}

double scaled_judge(const struct scaled_data *d)
{
    struct judge j = {.d = d};
    for (int g = 0; g < d->c.groups; g++) {
        int first, end, plane = d->planes > 1 ? g : 0;
        scaled_range(d, g, &first, &end);
        if (first == end) continue;
        double *a = decode(d, &d->a, plane), *b = decode(d, &d->b, g);
        CHECK(a && b, "no host memory");
        for (int row = first; a && b && row < end; row++)
            for (int column = 0; column < d->c.n; column++)
                judge_element(&j, a, b, g, plane, row, column);
        free(a);
        free(b);
    }
    judge_rest(d);
    CHECK(!j.beyond,
          "%d elements are beyond the tolerance, worst group %d [%d,%d]: want %.9g got %.9g, %.3g "
          "of it",
          j.beyond, j.group, j.row, j.column, j.want, j.got, j.worst);
    return j.worst;
}
