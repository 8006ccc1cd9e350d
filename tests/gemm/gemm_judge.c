/*
 * The result of a product against float64. Tolerance of one element, sum = Σ_k a_k b_k, p_k its partial
 * sums, u = 2^-24:
 *     |D - ref| <= T + half an ulp of the output type at ref
 *     E = u · Σ_k |p_k|                     fp32 additions one k at a time, to nearest
 *     H = Σ_blocks 17·2^-25·M + 2u·|p_end|  the tensor core: per block of 16 products it aligns these
 *         and the running sum to the largest exponent, truncates each at 25 fraction bits, adds, and
 *         truncates to fp32 (model of arXiv 2511.10909, reproduced on B200 and H200 by others). M is
 *         the largest |p| before the block or |a_k b_k| in it, where a subnormal operand counts as
 *         the smallest normal: alignment goes by exponents, which subnormals share.
 *     T = E + H for plain products of 16 bits.
 * Products of 8-bit floats are summed up with 13 fraction bits in place of 25, 32 of them an instruction,
 * and the sum is cut to 13, too (measured: tools/sim/SEMANTICS.md, wgmma). M counts the error so far, too,
 * which is no longer small, and sums begin anew with each part and slice of K:
 *     H8 = Σ_blocks 33·2^-13·(M + H8 so far) + 2^-13·(|p_end| + H8 so far)
 *     T  = Σ_parts H8 + u·|s|                  HEWN_ACCUMULATE_FAST; s: the sum of the parts so far
 *     T  = Σ_{parts, 128 k} H8 + u·(|s| + T)   HEWN_ACCUMULATE_FULL; each 128 k begin anew and are added
 * Sums of s8 are exact; T is u·|s| for the conversion to fp32, 0 where D is s32.
 * Then T goes through the formula of hewn.h, operation by operation, x what has been computed so far in
 * float64:
 *         times alpha · scale_a · scale_b = f:  |f| · T + 3u · |x|   (three roundings)
 *         times a row's scale, a column's:      |scale| · T + u · |x| (one each)
 *         plus beta · c, plus bias:              T + u · (|x| + T)    (one each)
 *         activation:                           S · T + |y| · (5u · |s| + 2^-21) + 2^-126 + |x| · 2^-128
 *           S: the steepest slope, 1 of relu (which adds no error), 1.13 of gelu, 1.1 of silu; the rest
 *           is 1 / (1 + 2^s), whose exponent is rounded up to five times, and which is made by
 *           ex2.approx (2^-22 by the ISA), rcp.approx (2^-23), an addition and a product. Where 2^s overflows, y is
 *           0: less than |x| · 2^-128 is lost.
 *         SwiGLU, x and y with bounds X, Y:      |silu(x)| · Y + |y| · silu's bound of X + their product
 *                                               + u · |D|
 * Integer-valued inputs make every partial sum exact: there E = H = H8 = 0.
 */
#include "gemm_case.h"

#include "lib/number.h"

#include <stdlib.h>

struct comparison {
    int64_t beyond, specials, total;
    double worst, want, got; /* of the element that exceeds its tolerance most */
    int64_t b, row, col;
    int64_t first_row, first_col;
};

static void compare_element(struct comparison *c, const struct matrix *d, int64_t b, int64_t i,
                            int64_t j, double ref, double tolerance)
{
    double got = matrix_load(d, b, i, j), want = number_round(d->dtype, ref), excess;
    c->total++;
    if (isnan(want) != isnan(got) || isinf(want) != isinf(got) || (isinf(want) && want != got)) {
        /* next to the overflow threshold either side is a correct rounding */
        if (fabs(fabs(ref) - 65520.0) <= tolerance && d->dtype == HEWN_F16) return;
        c->specials++;
        excess = (double)INFINITY;
    } else if (isnan(want) || isinf(want)) {
        return;
    } else if (got == ref) {
        return; /* of integers, whose tolerance is 0 */
    } else {
        excess = fabs(got - ref) / (tolerance + number_half_step(d->dtype, ref));
        if (excess <= 1.0) return;
        c->beyond++;
    }
    if (c->beyond + c->specials == 1) c->first_row = i, c->first_col = j;
    if (excess > c->worst) {
        c->worst = excess, c->want = want, c->got = got;
        c->b = b, c->row = i, c->col = j;
    }
}

/* ---- the sum ---- */

/* Rows of both operands as doubles, and their magnitudes as the tensor core aligns them. */
struct rows {
    double *a, *a_size; /* one row of A */
    double *b, *b_size; /* all of B, row by row */
};

static void row_of(const struct matrix *x, int64_t b, int64_t r, double *out, double *size)
{
    const double least = number_format(x->dtype).normal;
    for (int64_t j = 0; j < x->cols; j++) {
        out[j] = matrix_load(x, b, r, j);
        size[j] = out[j] != 0 ? fmax(fabs(out[j]), least) : 0.0;
    }
}

enum { MMA_BLOCK = 16, MMA_BLOCK_8 = 32, PROMOTED = 128 };

/* k from `first` to `end`, summed up by 8-bit instructions without a break: the sum, H8 added to it. */
static double run_of_8(const struct rows *r, int64_t j, int64_t k, int64_t first, int64_t end,
                       double *bound)
{
    double sum = 0, h = 0, largest = 0;
    for (int64_t x = first; x < end; x++) {
        double size = r->a_size[x] * r->b_size[j * k + x];
        if ((x - first) % MMA_BLOCK_8 == 0) largest = fabs(sum) + h;
        largest = size > largest ? size : largest;
        sum += r->a[x] * r->b[j * k + x];
        if ((x - first) % MMA_BLOCK_8 == MMA_BLOCK_8 - 1 || x == end - 1) {
            h += 33 * 0x1p-13 * largest;
            h += 0x1p-13 * (fabs(sum) + h);
        }
    }
    *bound += h;
    return sum;
}

/* One element's sum of 8-bit products and T. Parts of slices of K are whole blocks. */
static double sum_of_8(const struct gemm_case *g, const struct operands *o, const struct rows *r,
                       int64_t j, double *bound)
{
    const int64_t slices = o->slices % HEWN_GEMM_TURNED, parts = o->parts, k = g->desc.k;
    const int64_t blocks = (k + PROMOTED - 1) / PROMOTED;
    double sum = 0;
    *bound = 0;
    for (int64_t p = 0; p < slices * parts; p++) {
        const int64_t slice = p / parts, part = p % parts, longer = blocks % slices;
        const int64_t begin = blocks / slices * slice + (slice < longer ? slice : longer);
        const int64_t count = blocks / slices + (slice < longer);
        const int64_t first = begin + count * part / parts;
        const int64_t end = begin + count * (part + 1) / parts;
        const int64_t step = g->desc.accumulate == HEWN_ACCUMULATE_FULL ? 1 : end - first;
        for (int64_t x = first; x < end; x += step) {
            const int64_t last = (x + step) * PROMOTED;
            sum += run_of_8(r, j, k, x * PROMOTED, last < k ? last : k, bound);
            *bound += 0x1p-24 * (fabs(sum) + *bound);
        }
    }
    return sum;
}

/* One element's sum of 16-bit products and E + H. */
static double sum_of(const struct rows *r, int64_t j, int64_t k, double *bound)
{
    double sum = 0, one_by_one = 0, by_block = 0, largest = 0;
    for (int64_t x = 0; x < k; x++) {
        double before = fabs(sum), size = r->a_size[x] * r->b_size[j * k + x];
        if (x % MMA_BLOCK == 0) largest = before;
        largest = size > largest ? size : largest;
        sum += r->a[x] * r->b[j * k + x];
        one_by_one += fabs(sum);
        if (x % MMA_BLOCK == MMA_BLOCK - 1 || x == k - 1)
            by_block += 17 * 0x1p-25 * largest + 0x1p-23 * fabs(sum);
    }
    *bound = 0x1p-24 * one_by_one + by_block;
    return sum;
}

/* One element's sum of s8 products, and what its conversion loses. */
static double sum_of_integers(const struct rows *r, int64_t j, int64_t k, int out, double *bound)
{
    int64_t sum = 0;
    for (int64_t x = 0; x < k; x++) sum += (int64_t)r->a[x] * (int64_t)r->b[j * k + x];
    const double wrapped = (double)(int32_t)(uint32_t)(uint64_t)sum;
    *bound = out == HEWN_S32 ? 0 : 0x1p-24 * fabs(wrapped);
    return wrapped;
}

static double sum_for(const struct gemm_case *g, const struct operands *o, const struct rows *r,
                      int64_t j, double *bound)
{
    const int in = g->desc.in;
    if (in == HEWN_S8) return sum_of_integers(r, j, g->desc.k, g->desc.out, bound);
    return hewn_dtype_size(in) == 1 ? sum_of_8(g, o, r, j, bound) : sum_of(r, j, g->desc.k, bound);
}

/* ---- what comes after ---- */

/* Times the scale of a row or column: of `count` in each problem. */
static double scaled(double x, const float *scales, int64_t problem, int64_t count, int64_t i,
                     double *bound)
{
    const double s = (double)scales[problem * ((count + 3) / 4 * 4) + i];
    *bound = fabs(s) * *bound + 0x1p-24 * fabs(x * s);
    return x * s;
}

static double activate(int act, double x, double *bound)
{
    const double s = act == HEWN_ACT_GELU
                         ? -2.0 * sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x) / log(2.0)
                         : -x / log(2.0);
    if (act == HEWN_ACT_NONE || act == HEWN_ACT_SWIGLU) return x;
    if (act == HEWN_ACT_RELU) return x > 0 || isnan(x) ? x : 0.0;
    /* Where 2^s overflows fp32, y is 0, and 0 times an infinity no number. */
    const double y = x / (1.0 + (s < 128 ? exp2(s) : (double)INFINITY));
    *bound = (act == HEWN_ACT_GELU ? 1.13 : 1.1) * *bound +
             fabs(y) * (5 * 0x1p-24 * fabs(s) + 0x1p-21) + 0x1p-126 + fabs(x) * 0x1p-128;
    return y;
}

/* The element that the sum becomes, and its bound. */
static double finish(const struct gemm_case *g, const struct operands *o, int64_t b, int64_t i,
                     int64_t j, double x, double *bound)
{
    const uint32_t with = g->desc.with;
    double factor = (double)g->alpha;
    if (with & HEWN_GEMM_WITH_SCALE_A) factor *= (double)g->scale_a;
    if (with & HEWN_GEMM_WITH_SCALE_B) factor *= (double)g->scale_b;
    if (factor != 1) {
        x *= factor;
        *bound = fabs(factor) * *bound + 3 * 0x1p-24 * fabs(x);
    }
    if (with & HEWN_GEMM_WITH_SCALE_ROWS)
        x = scaled(x, g->rows, o->a.batch > 1 ? b : 0, o->a.rows, i, bound);
    if (with & HEWN_GEMM_WITH_SCALE_COLUMNS)
        x = scaled(x, g->columns, o->b.batch > 1 ? b : 0, o->b.rows, j, bound);
    if (with & HEWN_GEMM_WITH_C && g->beta != 0) {
        x += (double)g->beta * matrix_load(&o->c, o->c.batch > 1 ? b : 0, i, j);
        *bound += 0x1p-24 * (fabs(x) + *bound);
    }
    if (with & HEWN_GEMM_WITH_BIAS) {
        x += matrix_load(&o->bias, 0, 0, j);
        *bound += 0x1p-24 * (fabs(x) + *bound);
    }
    return activate(g->desc.act, x, bound);
}

/* silu(x) * y. */
static double glu(double x, double x_bound, double y, double y_bound, double *bound)
{
    const double s = activate(HEWN_ACT_SILU, x, &x_bound);
    *bound = fabs(s) * y_bound + fabs(y) * x_bound + x_bound * y_bound + 0x1p-24 * fabs(s * y);
    return s * y;
}

/* Sum and what comes after it, for row j of B. */
static double element(const struct gemm_case *g, const struct operands *o, const struct rows *r,
                      int64_t b, int64_t i, int64_t j, double *bound)
{
    const double x = sum_for(g, o, r, j, bound);
    if (g->pattern == INTEGERS && g->desc.in != HEWN_S8) *bound = 0;
    return finish(g, o, b, i, j, x, bound);
}

static void compare(struct comparison *c, const struct gemm_case *g, const struct operands *o)
{
    const struct matrix *a = &o->a, *bm = &o->b, *d = &o->d;
    size_t k = (size_t)g->desc.k, n = (size_t)bm->rows;
    double *store = calloc(2 * k + 2 * k * n, sizeof *store), bound;
    if (!store) return; /* the caller counts the compared elements */
    struct rows r = {store, store + k, store + 2 * k, store + 2 * k + k * n};
    for (int64_t b = 0; b < d->batch; b++) {
        for (int64_t j = 0; j < bm->rows; j++)
            row_of(bm, bm->batch > 1 ? b : 0, j, r.b + j * g->desc.k, r.b_size + j * g->desc.k);
        for (int64_t i = 0; i < d->rows; i++) {
            row_of(a, a->batch > 1 ? b : 0, i, r.a, r.a_size);
            for (int64_t j = 0; j < d->cols; j++) {
                double x = element(g, o, &r, b, i, j, &bound), up_bound;
                if (g->desc.act == HEWN_ACT_SWIGLU) {
                    const double up = element(g, o, &r, b, i, j + d->cols, &up_bound);
                    x = glu(x, bound, up, up_bound, &bound);
                }
                compare_element(c, d, b, i, j, x, bound);
            }
        }
    }
    free(store);
}

/* ---- the report ---- */

/* One line of x and . around the worst element. */
static void difference_map(const struct matrix *d, const struct comparison *c, char *out)
{
    int64_t first = c->col - 16 < 0 ? 0 : c->col - 16;
    int n = 0;
    for (int64_t j = first; j < d->cols && j < first + 32; j++)
        out[n++] = fabs(matrix_load(d, c->b, c->row, j)) > 0 ? (j == c->col ? 'x' : '.') : '0';
    out[n] = '\0';
}

void judge(const struct gemm_case *g, const struct operands *o)
{
    const struct matrix *d = &o->d;
    struct comparison c;
    char map[40];
    memset(&c, 0, sizeof c);
    compare(&c, g, o);
    CHECK(c.total == d->rows * d->cols * d->batch, "compared %lld elements", (long long)c.total);
    if (c.beyond + c.specials == 0) return;
    difference_map(d, &c, map);
    CHECK(
        false,
        "D     %lld/%lld beyond the bound (rule: T, top of gemm_judge.c); nan/inf mismatches %lld",
        (long long)c.beyond, (long long)c.total, (long long)c.specials);
    CHECK(false,
          "worst [%lld][%lld,%lld] want %.9g got %.9g, %.3g x its bound; first at [%lld,%lld]",
          (long long)c.b, (long long)c.row, (long long)c.col, c.want, c.got, c.worst,
          (long long)c.first_row, (long long)c.first_col);
    CHECK(false, "map   row %lld around col %lld: %s", (long long)c.row, (long long)c.col, map);
}
