#include "grouped_case.h"

#include "lib/harness.h"
#include "lib/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 128 };

/* A dtype as doubles, and as the tensor core aligns them: by exponents, which subnormals share. */
static double value_of[65536], size_of[65536];

static void make_tables(int dtype)
{
    const double least = number_format(dtype).normal;
    const int count = 1 << (8 * hewn_dtype_size(dtype));
    for (int i = 0; i < count; i++) {
        uint16_t bits = (uint16_t)i;
        value_of[i] = number_load(dtype, &bits);
        size_of[i] = value_of[i] != 0 ? fmax(fabs(value_of[i]), least) : 0;
    }
}

/* The sum of a block of e4m3, and the bound H on its error. An instruction multiplies 32 bytes of a row. */
static double sum_of_8(const unsigned char *a, const unsigned char *b, int length, double *bound)
{
    double sum = 0, h = 0;
    for (int first = 0; first < length; first += 32) {
        double largest = fabs(sum) + h;
        int end = first + 32 < length ? first + 32 : length;
        for (int i = first; i < end; i++) {
            const double size = size_of[a[i]] * size_of[b[i]];
            if (size > largest) largest = size; /* fmax is a call */
            sum += value_of[a[i]] * value_of[b[i]];
        }
        h += 33 * 0x1p-13 * largest;
        h += 0x1p-13 * (fabs(sum) + h);
    }
    *bound = h;
    return sum;
}

/* The same of 16-bit inputs, E + H. */
static double sum_of_16(const unsigned char *a, const unsigned char *b, int length, double *bound)
{
    double sum = 0, h = 0;
    for (int first = 0; first < length; first += 16) {
        double largest = fabs(sum), partial = 0;
        int end = first + 16 < length ? first + 16 : length;
        for (int i = first; i < end; i++) {
            uint16_t x, y;
            double size;
            memcpy(&x, a + 2 * i, sizeof x);
            memcpy(&y, b + 2 * i, sizeof y);
            size = size_of[x] * size_of[y];
            if (size > largest) largest = size;
            sum += value_of[x] * value_of[y];
            partial += fabs(sum);
        }
        h += 17 * 0x1p-25 * largest + 0x1p-24 * partial + 0x1p-23 * fabs(sum);
    }
    *bound = h;
    return sum;
}

struct judge {
    const struct grouped_data *d;
    double worst, want, got; /* of the element that exceeds its tolerance most */
    int beyond, group, row, column;
};

/* What row `j` of B makes of a row of A; `*bound`: of its error. */
static double element(const struct grouped_data *d, int group, int plane, int row, int j,
                      double *bound)
{
    const hewn_grouped_desc *x = &d->desc;
    int a_plane, a_row = grouped_row_of_a(d, plane, row, &a_plane);
    const int nothing = a_row < 0; /* a row of zeros */
    if (nothing) a_row = 0;
    const unsigned char *a = d->a + (size_t)(a_plane * x->stride_a + a_row * x->lda) * d->element;
    const unsigned char *b = d->b + (size_t)(group * x->stride_b + j * x->ldb) * d->element;
    const float *scale_a = d->scale_a + a_plane * x->scale_a_plane + a_row;
    double want = 0, error = 0, reach = 0;
    for (int i = 0; i < d->blocks && !nothing; i++) {
        const int left = d->c.k - i * d->block, length = left < d->block ? left : d->block;
        double h, sum, scale = 1;
        if (d->element == 1) {
            scale = (double)scale_a[i * x->scale_a_k];
            scale *= (double)grouped_scale_b(d, group, j, i);
            sum = sum_of_8(a + i * BLOCK, b + i * BLOCK, length, &h);
        } else {
            sum = sum_of_16(a, b, length, &h);
        }
        want += scale * sum;
        error += fabs(scale) * (h + 0x1p-24 * fabs(sum));
        reach += fabs(scale) * (h + fabs(sum));
    }
    *bound = d->c.exact ? 0 : error + (d->blocks + 1) * 0x1p-24 * reach + 0x1p-126;
    return want;
}

/* silu(x) * y. Where the exponential overflows, 1 / (1 + 2^128 ..) has become 0. */
static double glu(double x, double x_bound, double y, double y_bound, double *bound)
{
    const double exponent = -x / log(2.0), s = x / (1.0 + exp2(exponent));
    x_bound = 1.1 * x_bound + fabs(s) * (5 * 0x1p-24 * fabs(exponent) + 0x1p-21) + 0x1p-126 +
              fabs(x) * 0x1p-128;
    *bound = fabs(s) * y_bound + fabs(y) * x_bound + x_bound * y_bound + 0x1p-24 * fabs(s * y) +
             0x1p-126;
    return s * y;
}

static void judge_element(struct judge *j, int group, int plane, int row, int column)
{
    const struct grouped_data *d = j->d;
    const hewn_grouped_desc *x = &d->desc;
    double most, want = element(d, group, plane, row, column, &most);
    if (d->c.act == HEWN_ACT_SWIGLU) {
        double up_most, up = element(d, group, plane, row, column + d->c.n, &up_most);
        want = glu(want, most, up, up_most, &most);
    }
    size_t size = hewn_dtype_size(d->c.out);
    double got =
        number_load(d->c.out, d->d + (size_t)(plane * x->stride_d + row * x->ldd + column) * size);
    most += number_half_step(d->c.out, fabs(want) + most);
    double excess = fabs(got - want) / most;
    if (d->c.exact && !d->c.act)
        excess = got == number_round(d->c.out, want) ? 0 : (double)INFINITY;
    if (isinf(got) && isinf(number_round(d->c.out, want))) excess = 0;
    if (isnan(got)) excess = (double)INFINITY;
    if (excess > 1) j->beyond++;
    if (excess <= j->worst) return;
    j->worst = excess, j->want = want, j->got = got;
    j->group = group, j->row = row, j->column = column;
}

/* Whether the row of a plane is a group's; elements of D that belong to none keep their poison. */
static bool is_written(const struct grouped_data *d, int plane, int row, int column)
{
    if (row >= d->c.m || column >= d->c.n) return false;
    for (int g = 0; g < d->c.groups; g++) {
        int first, end;
        grouped_range(d, g, &first, &end);
        if ((d->planes == 1 || g == plane) && row >= first && row < end) return true;
    }
    return false;
}

static void judge_rest(const struct grouped_data *d)
{
    const size_t size = hewn_dtype_size(d->c.out);
    for (size_t i = 0; i < d->d_bytes; i++) {
        int64_t element = (int64_t)(i / size), plane = element / d->desc.stride_d,
                inside = element % d->desc.stride_d;
        int row = (int)(inside / d->desc.ldd), column = (int)(inside % d->desc.ldd);
        if (d->d[i] == GROUPED_POISON || is_written(d, (int)plane, row, column)) continue;
        CHECK(0, "plane %d, row %d, column %d belongs to no group and is written", (int)plane, row,
              column);
        return;
    }
}

double grouped_judge(const struct grouped_data *d)
{
    struct judge j = {.d = d};
    make_tables(d->c.in);
    for (int g = 0; g < d->c.groups; g++) {
        int first, end, plane = d->planes > 1 ? g : 0;
        grouped_range(d, g, &first, &end);
        for (int row = first; row < end; row++)
            for (int column = 0; column < d->c.n; column++)
                judge_element(&j, g, plane, row, column);
    }
    judge_rest(d);
    CHECK(!j.beyond,
          "%d elements are beyond the tolerance, worst group %d [%d,%d]: want %.9g got %.9g, %.3g "
          "of it",
          j.beyond, j.group, j.row, j.column, j.want, j.got, j.worst);
    return j.worst;
}
