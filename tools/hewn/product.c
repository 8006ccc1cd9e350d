/* One matrix product on the device, from host arrays to host arrays. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* TMA wants row strides of 16 bytes: elements a row takes on the device. */
static int64_t padded(int64_t cols, size_t element)
{
    int64_t unit = 16 / (int64_t)element;
    return (cols + unit - 1) / unit * unit;
}

enum { SLAB_A, SLAB_B, SLAB_D, SLAB_C, SLAB_BIAS, SLABS };

/* A host matrix with rows contiguous, copied to a device matrix with rows padded; or back. */
struct slab {
    hewn_deviceptr device;
    unsigned char *host; /* padded image */
    size_t bytes;
    int64_t ld;
};

static int slab_new(const hewn_driver *driver, const struct cli_calls *c, struct slab *s,
                    int64_t rows, int64_t cols, size_t element)
{
    int rc;
    s->ld = padded(cols, element);
    s->bytes = (size_t)rows * (size_t)s->ld * element;
    s->host = calloc(1, s->bytes);
    if (!s->host) return cli_fail("no host memory for %zu bytes", s->bytes);
    rc = c->alloc(&s->device, s->bytes);
    if (rc) return cli_fail("%zu bytes of device memory: %s", s->bytes, cli_cuda_error(driver, rc));
    return 0;
}

static void slab_free(const struct cli_calls *c, struct slab *s)
{
    if (s->device) c->release(s->device);
    free(s->host);
}

static void copy_rows(unsigned char *to, size_t to_pitch, const unsigned char *from,
                      size_t from_pitch, size_t width, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + (size_t)i * to_pitch, from + (size_t)i * from_pitch, width);
}

static int upload(const hewn_driver *driver, const struct cli_calls *c, struct slab *s,
                  const void *src, int64_t rows, int64_t cols, size_t element)
{
    size_t width = (size_t)cols * element;
    int rc;
    copy_rows(s->host, (size_t)s->ld * element, src, width, width, rows);
    rc = c->to_device(s->device, s->host, s->bytes);
    return rc ? cli_fail("copy to the device: %s", cli_cuda_error(driver, rc)) : 0;
}

/* Enqueues and waits, twice where that is cheap: a first launch also pays for set-up. */
static int run_timed(const hewn_driver *driver, const struct cli_calls *c, struct product *p,
                     const hewn_gemm_plan *plan, const struct slab s[SLABS], bool warm)
{
    const hewn_gemm_args args = {.struct_size = sizeof args,
                                 .a = s[SLAB_A].device,
                                 .b = s[SLAB_B].device,
                                 .d = s[SLAB_D].device,
                                 .c = s[SLAB_C].device,
                                 .bias = s[SLAB_BIAS].device,
                                 .alpha = p->finish ? p->finish->alpha : 0,
                                 .beta = p->finish ? p->finish->beta : 0};
    hewn_error err = {0};
    for (int pass = warm ? 0 : 1; pass < 2; pass++) {
        double start = cli_seconds();
        int rc;
        if (hewn_gemm_plan_run(plan, &args, NULL, &err)) return cli_fail("%s", err.message);
        rc = c->synchronize();
        if (rc) return cli_fail("the kernel failed: %s (%d)", cli_cuda_error(driver, rc), rc);
        p->seconds = cli_seconds() - start;
    }
    return 0;
}

static hewn_gemm_desc describe(const struct product *p, const struct slab s[SLABS])
{
    const struct finish *f = p->finish;
    return (hewn_gemm_desc){.struct_size = sizeof(hewn_gemm_desc),
                            .m = p->m,
                            .n = p->n,
                            .k = p->k,
                            .in = p->in,
                            .out = p->out,
                            .lda = s[SLAB_A].ld,
                            .ldb = s[SLAB_B].ld,
                            .ldd = s[SLAB_D].ld,
                            .ldc = s[SLAB_C].ld,
                            .batch = 1,
                            .variant = p->variant,
                            .slices = 1,
                            .major_a = p->major_a,
                            .major_b = p->major_b,
                            .act = f ? f->act : HEWN_ACT_NONE,
                            .with = (f && f->c ? HEWN_GEMM_WITH_C : 0U) |
                                    (f && f->bias ? HEWN_GEMM_WITH_BIAS : 0U) |
                                    (f && f->alpha != 1 ? HEWN_GEMM_WITH_ALPHA : 0U)};
}

static int run_slabs(hewn_context *context, const hewn_driver *driver, const struct cli_calls *c,
                     struct product *p, struct slab s[SLABS])
{
    const hewn_gemm_desc desc = describe(p, s);
    hewn_gemm_plan *plan = NULL;
    hewn_error err = {0};
    size_t out = hewn_dtype_size(p->out);
    int rc = 1;
    if (hewn_gemm_plan_create(context, &desc, &plan, &err)) return cli_fail("%s", err.message);
    p->plan.struct_size = sizeof p->plan;
    if (hewn_gemm_plan_describe(plan, &p->plan, &err))
        cli_fail("%s", err.message);
    else
        rc = run_timed(driver, c, p, plan, s, !hewn_driver_symbol(driver, "hewn_sim_version"));
    hewn_gemm_plan_destroy(plan);
    if (rc) return rc;
    struct slab *d = &s[SLAB_D];
    rc = c->to_host(d->host, d->device, d->bytes);
    if (rc) return cli_fail("copy from the device: %s", cli_cuda_error(driver, rc));
    copy_rows(p->d, (size_t)p->n * out, d->host, (size_t)d->ld * out, (size_t)p->n * out, p->m);
    return 0;
}

/* The matrix on the device, if there is one. */
static int slab_fill(const hewn_driver *driver, const struct cli_calls *c, struct slab *s,
                     const void *src, int64_t rows, int64_t cols, size_t element)
{
    if (!src) return 0;
    int rc = slab_new(driver, c, s, rows, cols, element);
    return rc ? rc : upload(driver, c, s, src, rows, cols, element);
}

int product_run(hewn_context *context, const hewn_driver *driver, struct product *p)
{
    struct cli_calls c;
    struct slab s[SLABS];
    const struct finish *f = p->finish;
    const int64_t a_rows = p->major_a == HEWN_MAJOR_MN ? p->k : p->m, a_cols = p->m + p->k - a_rows;
    const int64_t b_rows = p->major_b == HEWN_MAJOR_MN ? p->k : p->n, b_cols = p->n + p->k - b_rows;
    const size_t in = hewn_dtype_size(p->in), out = hewn_dtype_size(p->out);
    int rc = 1;
    memset(s, 0, sizeof s);
    if (!cli_load_calls(driver, &c)) return 1;
    if (!slab_fill(driver, &c, &s[SLAB_A], p->a, a_rows, a_cols, in) &&
        !slab_fill(driver, &c, &s[SLAB_B], p->b, b_rows, b_cols, in) &&
        !slab_fill(driver, &c, &s[SLAB_C], f ? f->c : NULL, p->m, p->n, out) &&
        !slab_fill(driver, &c, &s[SLAB_BIAS], f ? f->bias : NULL, 1, p->n, sizeof *f->bias) &&
        !slab_new(driver, &c, &s[SLAB_D], p->m, p->n, out))
        rc = run_slabs(context, driver, &c, p, s);
    for (int i = 0; i < SLABS; i++) slab_free(&c, &s[i]);
    return rc;
}

/* ---- element types ---- */

static double half_value(uint16_t h)
{
    int e = h >> 10 & 31, f = h & 1023;
    double v = e == 31 ? (f ? (double)NAN : (double)INFINITY)
               : e     ? ldexp((double)(f + 1024), e - 25)
                       : ldexp((double)f, -24);
    return h >> 15 ? -v : v;
}

static float bits_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

double element_value(int dtype, const void *data, size_t index)
{
    if (dtype == HEWN_F32) return (double)((const float *)data)[index];
    uint16_t h = ((const uint16_t *)data)[index];
    return dtype == HEWN_F16 ? half_value(h) : (double)bits_float((uint32_t)h << 16);
}

static uint16_t bf16_from(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if (isnan(f)) return (uint16_t)(u >> 16 | 64);
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

static uint16_t f16_from(float f)
{
    uint32_t u, sign, e, m;
    memcpy(&u, &f, sizeof u);
    sign = u >> 16 & 0x8000, e = u >> 23 & 255, m = u & 0x7FFFFF;
    if (e == 255) return (uint16_t)(sign | 0x7C00 | (m ? 0x200 | m >> 13 : 0));
    if (e > 142) return (uint16_t)(sign | 0x7C00);
    if (e < 102) return (uint16_t)sign; /* below half the smallest subnormal, 2^-25 */
    m |= 0x800000;
    uint32_t shift = e < 113 ? 126 - e : 13; /* 24-bit significand to the target's last place */
    uint32_t rest = m & ((1U << shift) - 1), half = 1U << (shift - 1);
    uint32_t r = m >> shift;
    r += rest > half || (rest == half && (r & 1));
    return (uint16_t)(sign | (e < 113 ? r : r + ((e - 113) << 10)));
}

void convert_inputs(int from, int to, const void *src, uint16_t *dst, size_t count)
{
    if (from == to) {
        memcpy(dst, src, count * sizeof *dst);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        float f = (float)element_value(from, src, i);
        dst[i] = to == HEWN_F16 ? f16_from(f) : bf16_from(f);
    }
}
