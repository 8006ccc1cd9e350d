/* bench_products: outputs against float64 samples and against each other. */
#include "bench_products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COMPARED = 2 << 20, BANDS = 8 }; /* elements of D, and bands of rows of a larger one */

static double e4m3(unsigned char bits)
{
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    double value = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    return bits & 128 ? -value : value;
}

/* As bf16_to_double, fast enough for millions. */
static double bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

/* Element `index` of the operand that begins `at` bytes into the pool. */
static double operand(const struct product *p, const struct pools *pools, uint64_t at,
                      int64_t index)
{
    uint64_t size = p->in == HEWN_E4M3 ? 1 : 2,
             from = (at + (uint64_t)index * size) % pools->block_bytes;
    uint16_t bits;
    if (size == 1) return e4m3(pools->block[from]);
    memcpy(&bits, pools->block + from, sizeof bits);
    return bf16(bits);
}

/* The tolerance: the output is rounded to bf16, 2^-8 of its size, once, or per part where a peer adds up
 * rounded parts: twice that. The tensor core cuts a sum of 16 products to 24 bits of the running sum, which
 * a random walk keeps within four standard deviations; of 32 8-bit products, to 13 bits, of 128 k or of all. */
static double limit(const struct product *p, double want, double squares)
{
    double rms = sqrt(squares), k = (double)p->k;
    double cuts = p->in == HEWN_BF16 ? k / 16 * 0x1p-23 : (p->fast ? k / 32 : 4) * 0x1p-13;
    return 0x1p-7 * fmax(fabs(want), rms) + 4 * rms * cuts;
}

void product_samples(const struct product *p, const struct pools *pools, struct rng *r,
                     struct sample *samples, int count)
{
    for (int i = 0; i < count; i++) {
        struct sample *s = &samples[i];
        double squares = 0;
        s->row = i < 4 ? (i & 1) * (p->m - 1) : (int64_t)rng_below(r, (uint32_t)p->m);
        s->column = i < 4 ? (i >> 1) * (p->n - 1) : (int64_t)rng_below(r, (uint32_t)p->n);
        s->want = 0;
        for (int64_t k = 0; k < p->k; k++) {
            double term = operand(p, pools, 0, s->row * p->lda + k) *
                          operand(p, pools, p->a_bytes, s->column * p->ldb + k);
            s->want += term, squares += term * term;
        }
        s->limit = limit(p, s->want, squares);
    }
}

/* One launch into poisoned memory, on the first set. */
static bool launch_once(struct gpu *g, const struct side *s)
{
    int (*fill)(hewn_deviceptr, unsigned short, size_t);
    void *symbol = hewn_driver_symbol(g->d.driver, "cuMemsetD16_v2");
    memcpy(&fill, &symbol, sizeof fill);
    return symbol && !fill(s->pools->out, 0xffff, (size_t)(s->product->m * s->product->ldd)) &&
           !g->d.synchronize() && !side_launch(s, 0, g->stream) && !g->wait(g->stream);
}

double side_error(struct gpu *g, const struct side *s, const struct sample *samples, int count)
{
    double worst = 0;
    if (!launch_once(g, s)) return (double)INFINITY;
    for (int i = 0; i < count; i++) {
        uint16_t bits = 0;
        uint64_t at = 2 * (uint64_t)(samples[i].row * s->product->ldd + samples[i].column);
        if (g->d.to_host(&bits, s->pools->out + at, sizeof bits)) return (double)INFINITY;
        double error = fabs(bf16(bits) - samples[i].want) / samples[i].limit;
        if (!(error <= worst)) worst = isnan(error) ? (double)INFINITY : error;
    }
    return worst;
}

/* The bands of D that are compared: first row and rows of band `i`; 0 rows: no more. */
static int64_t band(const struct product *p, int i, int64_t *first)
{
    int64_t rows = COMPARED / p->ldd / BANDS + 1;
    if (p->m * p->ldd <= COMPARED || rows * BANDS >= p->m) {
        *first = 0;
        return i ? 0 : p->m;
    }
    *first = i * (p->m - rows) / (BANDS - 1);
    return i < BANDS ? rows : 0;
}

/* The bands of D, one behind the other, after a launch; the elements, or 0. */
static int64_t output(struct gpu *g, const struct side *s, uint16_t *to)
{
    const struct product *p = s->product;
    int64_t first, count = 0, rows;
    if (!launch_once(g, s)) return 0;
    for (int i = 0; (rows = band(p, i, &first)) > 0; i++, count += rows * p->ldd)
        if (g->d.to_host(to + count, s->pools->out + 2 * (uint64_t)(first * p->ldd),
                         2 * (size_t)(rows * p->ldd)))
            return 0;
    return count;
}

double sides_differ(struct gpu *g, const struct side *ours, const struct side *theirs)
{
    const struct product *p = ours->product;
    size_t bytes = 2 * (size_t)(COMPARED + (BANDS + 1) * p->ldd);
    uint16_t *x = gpu_host(bytes), *y = gpu_host(bytes);
    int64_t count = output(g, ours, x);
    double worst = count && output(g, theirs, y) == count ? 0 : (double)INFINITY, largest = 0;
    for (int64_t i = 0; worst < (double)INFINITY && i < count; i++) {
        if (i % p->ldd >= p->n) { /* between the rows: still poison */
            if (x[i] != 0xffff) worst = (double)INFINITY;
            continue;
        }
        double want = bf16(y[i]), difference = fabs(bf16(x[i]) - want);
        if (!(difference <= worst)) worst = isnan(difference) ? (double)INFINITY : difference;
        largest = fmax(largest, fabs(want));
    }
    free(x);
    free(y);
    return worst / (largest > 0 ? largest : 1);
}
