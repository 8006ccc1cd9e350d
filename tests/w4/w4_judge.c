#include "w4_case.h"

#include "lib/harness.h"
#include "lib/number.h"

#include <math.h>
#include <stdlib.h>

enum { STEP = 16, HALF = 64 };

struct judge {
    const struct w4_data *d;
    unsigned parts;
    double *w, *scale; /* a row of W */
    double worst, want, got;
    int beyond, row, column;
};

static double x_at(const struct w4_data *d, int i, int k)
{
    return number_load(d->c.in, d->x + 2 * ((size_t)i * (size_t)d->desc.x_row + (size_t)k));
}

/* The sum of products [first, end), and the bound H on its error. */
static double piece(const struct judge *j, int i, int first, int end, double *bound)
{
    double sum = 0, h = 0;
    for (int at = first; at < end; at += STEP) {
        double largest = fabs(sum);
        for (int k = at; k < at + STEP && k < end; k++) {
            const double x = x_at(j->d, i, k), p = x * j->w[k];
            largest = fmax(largest, fmax(fabs(x), 0x1p-126) * fabs(j->w[k]));
            sum += p;
        }
        h += 17 * 0x1p-25 * largest + 0x1p-23 * fabs(sum);
    }
    *bound = h;
    return sum;
}

static void judge_element(struct judge *j, int i, int column)
{
    const struct w4_data *d = j->d;
    const int step = d->c.group == 32 ? 32 : HALF;
    double sum = 0, error = 0, reach = 0;
    for (int first = 0; first < d->c.k; first += step) {
        double h;
        const int end = first + step < d->c.k ? first + step : d->c.k;
        const double s = j->scale[first], p = piece(j, i, first, end, &h);
        sum += s * p;
        reach += fabs(s * p);
        error += fabs(s) * h + 0x1p-24 * reach;
    }
    error += j->parts * 0x1p-24 * reach + 0x1p-140;
    const size_t element = hewn_dtype_size(d->c.out);
    const double got = number_load(
        d->c.out, d->d + element * ((size_t)i * (size_t)d->desc.d_row + (size_t)column));
    double excess = fabs(got - sum) / (error + number_half_step(d->c.out, sum));
    if (d->c.exact) excess = got == number_round(d->c.out, sum) ? 0 : (double)INFINITY;
    if (isnan(got)) excess = (double)INFINITY;
    if (excess > 1) j->beyond++;
    if (excess <= j->worst) return;
    j->worst = excess, j->want = sum, j->got = got, j->row = i, j->column = column;
}

static void judge_gaps(const struct w4_data *d)
{
    const size_t element = hewn_dtype_size(d->c.out);
    const size_t row = (size_t)d->desc.d_row * element, used = (size_t)d->c.n * element;
    int written = 0;
    for (size_t i = 0; i < (size_t)d->c.m; i++)
        for (size_t at = used; at < row; at++) written += d->d[i * row + at] != W4_POISON;
    CHECK(!written, "%d bytes between rows of D are written", written);
}

double w4_judge(const struct w4_data *d, unsigned parts)
{
    const size_t k = (size_t)d->c.k;
    struct judge j = {.d = d, .parts = parts};
    j.w = malloc(2 * k * sizeof *j.w);
    if (!j.w) return 0;
    j.scale = j.w + k;
    for (int column = 0; column < d->c.n; column++) {
        for (int i = 0; i < d->c.k; i++) j.w[i] = w4_weight(d, column, i, &j.scale[i]);
        for (int i = 0; i < d->c.m; i++) judge_element(&j, i, column);
    }
    free(j.w);
    judge_gaps(d);
    CHECK(!j.beyond,
          "%d elements are beyond the tolerance, worst [%d,%d]: want %.9g got %.9g, %.3g of it",
          j.beyond, j.row, j.column, j.want, j.got, j.worst);
    return j.worst;
}
