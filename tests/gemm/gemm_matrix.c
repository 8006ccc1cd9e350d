/* Matrices of tests/gemm on the host. */
#include "gemm_case.h"

#include "lib/number.h"

#include <stdlib.h>

const char *const pattern_names[] = {"uniform", "integers", "mixed exponents", "specials",
                                     "positive"};

struct matrix matrix_new(int dtype, int major, int64_t rows, int64_t cols, int64_t ld,
                         int64_t stride, int64_t batch)
{
    struct matrix x = {NULL, 0, dtype, rows, cols, ld, stride, batch, major};
    int64_t stored = major == HEWN_MAJOR_MN ? cols : rows, across = rows + cols - stored;
    int64_t last = (batch - 1) * stride + (stored - 1) * ld + across;
    x.size = (size_t)last * hewn_dtype_size(dtype);
    x.bytes = malloc(x.size);
    return x;
}

size_t matrix_at(const struct matrix *x, int64_t b, int64_t r, int64_t c)
{
    int64_t at = x->major == HEWN_MAJOR_MN ? c * x->ld + r : r * x->ld + c;
    return (size_t)(b * x->stride + at) * hewn_dtype_size(x->dtype);
}

double matrix_load(const struct matrix *x, int64_t b, int64_t r, int64_t c)
{
    return number_load(x->dtype, x->bytes + matrix_at(x, b, r, c));
}

static double draw(struct rng *r, enum pattern pattern)
{
    switch (pattern) {
    case INTEGERS: return (double)rng_below(r, 9) - 4.0;
    case MIXED_EXPONENTS: return ldexp((double)rng_unit(r), (int)rng_below(r, 17) - 10);
    case SPECIALS:
        switch (rng_below(r, 2048)) {
        case 0: return (double)INFINITY;
        case 1: return -(double)INFINITY;
        case 2: return (double)NAN;
        case 3: return ldexp(1.0, -24); /* subnormal in f16 */
        default: return (double)rng_unit(r);
        }
    case POSITIVE: return fabs((double)rng_unit(r));
    default: return (double)rng_unit(r);
    }
}

void matrix_fill(struct matrix *x, struct rng *r, enum pattern pattern)
{
    memset(x->bytes, 0xFF, x->size); /* NaN in every dtype that has one */
    for (int64_t b = 0; b < x->batch; b++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < x->cols; j++)
                number_store(x->dtype,
                             x->dtype == HEWN_S8 ? (double)rng_below(r, 256) - 128
                                                 : draw(r, pattern),
                             x->bytes + matrix_at(x, b, i, j));
}
