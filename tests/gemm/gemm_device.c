/*
 * One case of hewn_gemm on a device: its operands are made and uploaded, the plan runs, and what came back is judged.
 * D is poisoned before and checked byte for byte outside the result after; the unused tail of every row of an
 * operand holds NaN, so reading it shows. With --digests every case must also give the bits that a GPU gave
 * (digest.h).
 */
#include "gemm_case.h"

#include "lib/device.h"
#include "lib/digest.h"
#include "lib/plans.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything outside the result's elements still holds the poison. Problems follow each other, or lie side by side
 * in the rows. */
static void check_untouched(const struct matrix *d, unsigned char poison)
{
    size_t width = (size_t)d->cols * hewn_dtype_size(d->dtype), at = 0, damaged = 0;
    const bool beside = d->batch > 1 && d->stride < d->ld;
    for (int64_t x = 0; x < d->batch * d->rows; x++) {
        size_t start = beside ? matrix_at(d, x % d->batch, x / d->batch, 0)
                              : matrix_at(d, x / d->rows, x % d->rows, 0);
        for (; at < start; at++) damaged += d->bytes[at] != poison;
        at = start + width;
    }
    CHECK(damaged == 0, "%zu bytes between the rows of D were written", damaged);
}

/* `shift` bytes behind the start of a buffer, whose first bytes keep the pattern. */
enum { POISON = 0xA5 };

static bool upload(struct device *dev, struct guarded *g, unsigned char pattern, const void *bytes,
                   size_t size, size_t shift)
{
    return guarded_new(dev, g, size + shift, pattern) &&
           dev->to_device(g->data + shift, bytes, size) == 0;
}

static size_t shift_of(const struct gemm_case *g, int dtype)
{
    return (size_t)g->shift * hewn_dtype_size(dtype);
}

enum {
    BUFFER_A,
    BUFFER_B,
    BUFFER_C,
    BUFFER_BIAS,
    BUFFER_SCALE_A,
    BUFFER_SCALE_B,
    BUFFER_D,
    BUFFER_WORKSPACE,
    BUFFERS
};
static const char *const buffer_names[] = {"A",       "B",       "C", "bias",
                                           "scale_a", "scale_b", "D", "workspace"};

/* One for each row of an operand. */
static size_t scales_of(const struct matrix *x)
{
    return (size_t)((x->rows + 3) / 4 * 4 * x->batch);
}

static bool upload_scale(struct device *dev, struct guarded *buffer, bool one, float number,
                         bool many, const float *scales, size_t count)
{
    if (one) return upload(dev, buffer, 0xFF, &number, sizeof number, 0);
    return !many || upload(dev, buffer, 0xFF, scales, count * sizeof *scales, 0);
}

static bool upload_all(struct device *dev, const struct gemm_case *g, const struct operands *o,
                       struct guarded buffer[BUFFERS])
{
    const uint32_t with = g->desc.with;
    bool own_c = with & HEWN_GEMM_WITH_C && !g->in_place && !g->no_c;
    const hewn_gemm_desc *d = &g->desc;
    return upload(dev, &buffer[BUFFER_A], 0xFF, o->a.bytes, o->a.size, shift_of(g, d->in)) &&
           upload(dev, &buffer[BUFFER_B], 0xFF, o->b.bytes, o->b.size, shift_of(g, d->in)) &&
           (!own_c ||
            upload(dev, &buffer[BUFFER_C], 0xFF, o->c.bytes, o->c.size, shift_of(g, d->out))) &&
           (!(with & HEWN_GEMM_WITH_BIAS) || upload(dev, &buffer[BUFFER_BIAS], 0xFF, o->bias.bytes,
                                                    o->bias.size, shift_of(g, d->bias_type))) &&
           upload_scale(dev, &buffer[BUFFER_SCALE_A], with & HEWN_GEMM_WITH_SCALE_A, g->scale_a,
                        with & HEWN_GEMM_WITH_SCALE_ROWS, g->rows, scales_of(&o->a)) &&
           upload_scale(dev, &buffer[BUFFER_SCALE_B], with & HEWN_GEMM_WITH_SCALE_B, g->scale_b,
                        with & HEWN_GEMM_WITH_SCALE_COLUMNS, g->columns, scales_of(&o->b)) &&
           upload(dev, &buffer[BUFFER_D], POISON, o->d.bytes, o->d.size, shift_of(g, d->out));
}

static int launch(const struct gemm_case *g, const hewn_gemm_plan *plan,
                  const struct guarded buffer[BUFFERS], hewn_error *err)
{
    const size_t in = shift_of(g, g->desc.in), out = shift_of(g, g->desc.out);
    const hewn_deviceptr c = g->no_c ? 0 : buffer[g->in_place ? BUFFER_D : BUFFER_C].data,
                         bias = buffer[BUFFER_BIAS].data;
    if (!g->desc.with && !buffer[BUFFER_WORKSPACE].data)
        return plain_product(plan, buffer[BUFFER_A].data + in, buffer[BUFFER_B].data + in,
                             buffer[BUFFER_D].data + out, NULL, err);
    const hewn_gemm_args args = {.struct_size = sizeof args,
                                 .a = buffer[BUFFER_A].data + in,
                                 .b = buffer[BUFFER_B].data + in,
                                 .d = buffer[BUFFER_D].data + out,
                                 .c = c ? c + out : 0,
                                 .bias = bias ? bias + shift_of(g, g->desc.bias_type) : 0,
                                 .scale_a = buffer[BUFFER_SCALE_A].data,
                                 .scale_b = buffer[BUFFER_SCALE_B].data,
                                 .alpha = g->alpha,
                                 .beta = g->beta,
                                 .workspace = buffer[BUFFER_WORKSPACE].data};
    return hewn_gemm_plan_run(plan, &args, NULL, err);
}

/* The kernel; where the plan decided a side of its tile, ":" and that; "/" and the parts of K; if there are several,
 * "*" and the slices. */
static void say_choice(const hewn_gemm_plan_info *info, char choice[DIGEST_CHOICE])
{
    const bool tall = strncmp(info->variant, "any", 3) == 0,
               decided = tall || strncmp(info->variant, "128xany", 7) == 0;
    size_t n = (size_t)snprintf(choice, DIGEST_CHOICE, "%.12s", info->variant);
    if (decided)
        n += (size_t)snprintf(choice + n, DIGEST_CHOICE - n, ":%u",
                              tall ? info->tile_m : info->tile_n);
    n += (size_t)snprintf(choice + n, DIGEST_CHOICE - n, "/%u", info->parts);
    if (info->slices > 1) snprintf(choice + n, DIGEST_CHOICE - n, "*%u", info->slices);
}

/* NULL: refused, the case has failed. */
static hewn_gemm_plan *make_plan(struct device *dev, const struct gemm_case *g)
{
    hewn_gemm_desc d = g->desc;
    hewn_gemm_plan *plan = NULL;
    hewn_error err = {0};
    int status = hewn_gemm_plan_create(dev->context, &d, &plan, &err);
    const bool limits = status == HEWN_ERR_LIMIT || status == HEWN_ERR_ARGUMENT;
    const bool wishes = g->wishes && (d.variant || d.parts || d.slices);
    if (wishes) g->wishes->asked[d.variant != NULL]++;
    if (limits && wishes) {
        g->wishes->refused[d.variant != NULL]++;
        d.variant = NULL, d.parts = d.slices = 0;
        status = hewn_gemm_plan_create(dev->context, &d, &plan, &err);
    } else if (plan && d.slices) {
        hewn_gemm_plan_info info = {.struct_size = sizeof info};
        CHECK_INT(hewn_gemm_plan_describe(plan, &info, &err), HEWN_OK);
        CHECK_INT(info.slices, d.slices);
    }
    CHECK(status == HEWN_OK, "plan: %s", err.message);
    return status ? NULL : plan;
}

/* `choice`: as say_choice has it. */
static void run_on_device(struct device *dev, const struct gemm_case *g, struct operands *o,
                          char choice[DIGEST_CHOICE])
{
    struct guarded buffer[BUFFERS];
    hewn_gemm_plan *plan = NULL;
    hewn_error err = {0};
    memset(buffer, 0, sizeof buffer);
    bool ready = upload_all(dev, g, o, buffer);
    CHECK(ready, "no device memory for the case");
    if (ready) plan = make_plan(dev, g);
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    if (plan) CHECK_INT(hewn_gemm_plan_describe(plan, &info, &err), HEWN_OK);
    const bool whole = g->no_workspace && info.workspace; /* in one slice */
    o->parts = whole ? 1 : info.parts, o->slices = whole ? 1 : info.slices;
    if (info.workspace && !whole &&
        !guarded_new(dev, &buffer[BUFFER_WORKSPACE], info.workspace, 0xFF))
        CHECK(false, "no device memory for the workspace");
    if (plan && launch(g, plan, buffer, &err)) CHECK(false, "run: %s", err.message);
    if (info.variant) say_choice(&info, choice);
    int rc = plan ? dev->synchronize() : 0;
    CHECK(rc == 0, "the kernel failed with CUresult %d", rc);
    if (plan && rc == 0) {
        unsigned char before[64];
        const size_t shift = shift_of(g, g->desc.out);
        assert(shift <= sizeof before);
        CHECK_INT(dev->to_host(o->d.bytes, buffer[BUFFER_D].data + shift, o->d.size), 0);
        CHECK_INT(dev->to_host(before, buffer[BUFFER_D].data, sizeof before), 0);
        for (size_t i = 0; i < shift; i++)
            CHECK(before[i] == POISON, "byte %zu before D was written", i);
        for (int i = 0; i < BUFFERS; i++) {
            const char *damage = buffer[i].data ? guarded_damage(dev, &buffer[i]) : NULL;
            CHECK(!damage, "%s: %s", buffer_names[i], damage);
        }
    }
    hewn_gemm_plan_destroy(plan);
    for (int i = 0; i < BUFFERS; i++) guarded_free(dev, &buffer[i]);
}

static int64_t pitch_of(int64_t ld, int64_t row)
{
    return ld ? ld : row;
}

static struct operands operands_new(const hewn_gemm_desc *s)
{
    const int64_t batch = s->batch ? s->batch : 1, batch_a = s->stride_a ? batch : 1,
                  batch_b = s->stride_b ? batch : 1, batch_c = s->stride_c ? batch : 1;
    const int64_t rows_b = s->act == HEWN_ACT_SWIGLU ? 2 * s->n : s->n;
    struct operands o = {
        .a = matrix_new(s->in, s->major_a, s->m, s->k, pitch_of(s->lda, s->major_a ? s->m : s->k),
                        s->stride_a, batch_a),
        .b = matrix_new(s->in_b ? s->in_b : s->in, s->major_b, rows_b, s->k,
                        pitch_of(s->ldb, s->major_b ? rows_b : s->k), s->stride_b, batch_b),
        .d = matrix_new(s->out, HEWN_MAJOR_K, s->m, s->n, pitch_of(s->ldd, s->n), s->stride_d,
                        batch)};
    if (s->with & HEWN_GEMM_WITH_C)
        o.c = matrix_new(s->out, HEWN_MAJOR_K, s->m, s->n, pitch_of(s->ldc, s->n), s->stride_c,
                         batch_c);
    if (s->with & HEWN_GEMM_WITH_BIAS)
        o.bias = matrix_new(s->bias_type, HEWN_MAJOR_K, 1, s->n, s->n, 0, 1);
    return o;
}

/* D is poison before; with C in its place, C's elements in poison. C is NaN throughout where it must not
 * be read. */
static void operands_fill(const struct gemm_case *g, struct operands *o)
{
    struct rng r = {g->seed};
    matrix_fill(&o->a, &r, g->pattern);
    matrix_fill(&o->b, &r, g->pattern);
    memset(o->d.bytes, POISON, o->d.size);
    if (o->bias.bytes) matrix_fill(&o->bias, &r, g->pattern);
    if (!o->c.bytes) return;
    matrix_fill(&o->c, &r, g->pattern);
    if (g->beta == 0) memset(o->c.bytes, 0xFF, o->c.size);
    size_t element = hewn_dtype_size(o->d.dtype);
    for (int64_t b = 0; g->in_place && b < o->d.batch; b++)
        for (int64_t i = 0; i < o->d.rows; i++)
            memcpy(o->d.bytes + matrix_at(&o->d, b, i, 0), o->c.bytes + matrix_at(&o->c, b, i, 0),
                   (size_t)o->d.cols * element);
}

static void hold_digest(struct device *dev, const struct gemm_case *g, struct operands *o,
                        char choice[DIGEST_CHOICE])
{
    const char *recorded = digest_case(digest_bytes(DIGEST_BEGIN, o->d.bytes, o->d.size), choice);
    struct gemm_case other = *g;
    char variant[DIGEST_CHOICE];
    /* A side that the plan decides cannot be asked for; in what order parts are added depends on it. */
    if (!recorded || strchr(recorded, ':')) return;
    other.desc.slices = 1;
    if (sscanf(recorded, "%23[^/]/%u*%u", variant, &other.desc.parts, &other.desc.slices) < 2)
        variant[0] = '\0';
    other.desc.variant = variant;
    operands_fill(&other, o);
    run_on_device(dev, &other, o, choice);
    if (!test_case_failures())
        digest_case(digest_bytes(DIGEST_BEGIN, o->d.bytes, o->d.size), choice);
}

/* Scales for the rows of an operand. */
static float *draw_scales(const struct matrix *x, struct rng *r)
{
    float *scales = malloc(scales_of(x) * sizeof *scales);
    for (size_t i = 0; scales && i < scales_of(x); i++) scales[i] = 0.5F + rng_unit(r) / 4;
    return scales;
}

void gemm_run(struct device *dev, const struct gemm_case *of)
{
    char choice[DIGEST_CHOICE] = "";
    struct gemm_case own = *of, *g = &own;
    struct operands o = operands_new(&g->desc);
    struct rng r = {g->seed + 1};
    const uint32_t with = g->desc.with;
    float *rows = with & HEWN_GEMM_WITH_SCALE_ROWS ? draw_scales(&o.a, &r) : NULL;
    float *columns = with & HEWN_GEMM_WITH_SCALE_COLUMNS ? draw_scales(&o.b, &r) : NULL;
    g->rows = rows, g->columns = columns;
    if (o.a.bytes && o.b.bytes && o.d.bytes && (o.c.bytes || !(with & HEWN_GEMM_WITH_C)) &&
        (o.bias.bytes || !(with & HEWN_GEMM_WITH_BIAS)) &&
        (rows || !(with & HEWN_GEMM_WITH_SCALE_ROWS)) &&
        (columns || !(with & HEWN_GEMM_WITH_SCALE_COLUMNS))) {
        operands_fill(g, &o);
        run_on_device(dev, g, &o, choice);
        if (!test_case_failures()) {
            judge(g, &o);
            check_untouched(&o.d, POISON);
            hold_digest(dev, g, &o, choice);
        }
    } else {
        CHECK(false, "no host memory for the case");
    }
    free(o.a.bytes);
    free(o.b.bytes);
    free(o.c.bytes);
    free(o.bias.bytes);
    free(o.d.bytes);
    free(rows);
    free(columns);
}
