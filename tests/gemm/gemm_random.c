/*
 * Cases of the whole contract of hewn_gemm: every type, major, stride, batch, address and epilogue that hewn.h
 * allows, and what a caller may ask for beside them. Two of three cases leave the kernel to the library. Nothing is
 * drawn that hewn.h refuses, except kernels that cannot compute the product, and numbers of parts and slices.
 */
#include "gemm_cases.h"

#include "../../ptx/inc/gemm.plan.h"
#include "../../runtime/gemm_kernels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TERMS = 20000000, LOOSE_MOST = 9 };

static bool one_of(struct rng *r, uint32_t n)
{
    return rng_below(r, n) == 0;
}

/* 1 to 2^(bits + 1), about as often between any two powers of two, in half of the cases a multiple of `unit`. */
static int64_t extent(struct rng *r, uint32_t bits, int64_t unit)
{
    const int64_t power = INT64_C(1) << rng_below(r, bits + 1);
    const int64_t x = power + rng_below(r, (uint32_t)power + 1);
    return one_of(r, 2) ? gemm_round_up(x, unit) : x;
}

/* A quarter of the cases are batches of small problems that just fill the device, or just do not. */
static void draw_sizes(hewn_gemm_desc *s, int64_t sms, struct rng *r)
{
    do {
        s->m = extent(r, one_of(r, 2) ? 5 : 9, 8), s->n = extent(r, 10, 8),
        s->k = extent(r, 11, 16);
        s->batch = one_of(r, 2) ? (int64_t)rng_below(r, 2) : extent(r, 6, 1);
        if (!one_of(r, 4)) continue;
        s->m = 1 + rng_below(r, 130), s->n = 1 + rng_below(r, 200), s->k = extent(r, 7, 16);
        s->batch = 1 + sms / (1 + (int64_t)rng_below(r, 6)) + 1 - (int64_t)rng_below(r, 3);
    } while (s->m * s->n * s->k * (s->batch ? s->batch : 1) > MOST_TERMS);
}

static void draw_types(hewn_gemm_desc *s, bool hopper, struct rng *r)
{
    static const int types[] = {HEWN_BF16, HEWN_F16,  HEWN_BF16, HEWN_F16,
                                HEWN_E4M3, HEWN_E5M2, HEWN_S8};
    s->in = types[rng_below(r, hopper ? 7 : 6)];
    s->out = gemm_out_types[rng_below(r, 3)];
    if (s->in == HEWN_S8 && one_of(r, 2)) s->out = HEWN_S32;
    s->bias_type = one_of(r, 2) || s->out == HEWN_S32 ? HEWN_F32 : s->out;
    s->accumulate = one_of(r, 3) ? HEWN_ACCUMULATE_FAST : HEWN_ACCUMULATE_FULL;
    if (one_of(r, 3)) s->in_b = s->in;
    if (s->in == HEWN_E4M3 && one_of(r, 3)) s->in_b = HEWN_E5M2;
    if (s->in == HEWN_E5M2 && one_of(r, 2)) s->in_b = HEWN_E4M3;
    if (hewn_dtype_size(s->in) == 1) return;
    s->major_a = one_of(r, 6) ? HEWN_MAJOR_MN : HEWN_MAJOR_K;
    s->major_b = one_of(r, 6) ? HEWN_MAJOR_MN : HEWN_MAJOR_K;
}

/* Whether the description has scales of rows or columns, which are for e4m3 and s8. */
static bool has_vectors(const hewn_gemm_desc *s)
{
    return s->with & (HEWN_GEMM_WITH_SCALE_ROWS | HEWN_GEMM_WITH_SCALE_COLUMNS);
}

static void draw_finish(struct gemm_case *g, bool hopper, struct rng *r)
{
    static const float numbers[] = {1, -0.5F, 1.5F, 0};
    hewn_gemm_desc *s = &g->desc;
    const bool pairs = (s->in == HEWN_E4M3 && (!s->in_b || s->in_b == s->in)) || s->in == HEWN_S8;
    const uint32_t numbers_alone =
        HEWN_GEMM_WITH_SCALE_A | HEWN_GEMM_WITH_SCALE_B | HEWN_GEMM_WITH_ALPHA;
    if (s->out == HEWN_S32) return;
    if (!one_of(r, 3)) s->with = rng_below(r, pairs ? 128 : 32);
    if (s->with & HEWN_GEMM_WITH_SCALE_A) s->with &= ~(uint32_t)HEWN_GEMM_WITH_SCALE_ROWS;
    if (s->with & HEWN_GEMM_WITH_SCALE_B) s->with &= ~(uint32_t)HEWN_GEMM_WITH_SCALE_COLUMNS;
    s->act = one_of(r, 2) ? (int)rng_below(r, 4) : HEWN_ACT_NONE;
    const bool eight = hewn_dtype_size(s->in) == 1;
    if (one_of(r, 8) && !s->major_a && !s->major_b && !(hopper && eight)) {
        s->act = HEWN_ACT_SWIGLU;
        s->with &= numbers_alone;
        if (s->out != HEWN_F32) s->out = s->bias_type = hopper ? s->in : s->out;
    }
    g->alpha = s->with & HEWN_GEMM_WITH_ALPHA ? numbers[rng_below(r, 3)] : 1;
    g->beta = s->with & HEWN_GEMM_WITH_C ? numbers[rng_below(r, 4)] : 0;
    g->scale_a = 0.75F, g->scale_b = -1.3F;
    g->in_place = s->with & HEWN_GEMM_WITH_C && one_of(r, 3);
    g->no_c = s->with & HEWN_GEMM_WITH_C && !g->in_place && g->beta == 0 && one_of(r, 2);
}

/* How the rows of a matrix lie. */
struct rows_drawn {
    int64_t ld, stride;
};

/* `count` rows of `row` elements for each problem: one behind the other or, where `beside`, side by side in longer
 * rows; their pitches multiples of `unit` elements. */
static struct rows_drawn draw_rows(struct rng *r, int64_t count, int64_t row, int64_t batch,
                                   int64_t unit, bool beside)
{
    const uint32_t more = unit > 1 ? 3 * (uint32_t)unit : LOOSE_MOST;
    struct rows_drawn x;
    if (beside) {
        x.stride = gemm_round_up(row + rng_below(r, more), unit);
        x.ld = gemm_round_up((batch - 1) * x.stride + row + rng_below(r, more), unit);
    } else {
        x.ld = gemm_round_up(row + (one_of(r, 3) ? 0 : rng_below(r, more)), unit);
        x.stride = gemm_round_up(x.ld * count + (one_of(r, 2) ? 0 : rng_below(r, more)), unit);
    }
    return x;
}

static int64_t unit_of(bool loose, int dtype)
{
    return loose ? 1 : 16 / (int64_t)hewn_dtype_size(dtype);
}

static void draw_layout(struct gemm_case *g, bool loose, struct rng *r)
{
    hewn_gemm_desc *s = &g->desc;
    const int64_t batch = s->batch ? s->batch : 1;
    const int64_t nb = s->act == HEWN_ACT_SWIGLU ? 2 * s->n : s->n;
    const bool beside = batch > 1 && one_of(r, 6);
    const int64_t in = unit_of(loose && !one_of(r, 4), s->in);
    const int64_t in_b = unit_of(loose && !one_of(r, 4), s->in);
    const int64_t out = unit_of(loose && !one_of(r, 4), s->out);
    struct rows_drawn a = s->major_a ? draw_rows(r, s->k, s->m, batch, in, beside)
                                     : draw_rows(r, s->m, s->k, batch, in, beside);
    struct rows_drawn b = s->major_b ? draw_rows(r, s->k, nb, batch, in_b, beside)
                                     : draw_rows(r, nb, s->k, batch, in_b, beside);
    struct rows_drawn d = draw_rows(r, s->m, s->n, batch, out, beside && one_of(r, 2));
    struct rows_drawn c = g->in_place ? d : draw_rows(r, s->m, s->n, batch, out, false);
    s->lda = a.ld, s->ldb = b.ld, s->ldd = d.ld;
    s->stride_a = one_of(r, 6) ? 0 : a.stride;
    s->stride_b = one_of(r, 4) ? 0 : b.stride;
    s->stride_d = d.stride;
    if (!(s->with & HEWN_GEMM_WITH_C)) return;
    s->ldc = c.ld;
    s->stride_c = !g->in_place && one_of(r, 5) ? 0 : c.stride;
}

/* Leading dimensions of 0, where that says the same. */
static void leave_out(hewn_gemm_desc *s, struct rng *r)
{
    const int64_t nb = s->act == HEWN_ACT_SWIGLU ? 2 * s->n : s->n;
    if (s->lda == (s->major_a ? s->m : s->k) && one_of(r, 2)) s->lda = 0;
    if (s->ldb == (s->major_b ? nb : s->k) && one_of(r, 2)) s->ldb = 0;
    if (s->ldd == s->n && one_of(r, 2)) s->ldd = 0;
    if (s->ldc == s->n && one_of(r, 2)) s->ldc = 0;
}

/* What a kernel must have for the product, about. */
static uint32_t need_of(const hewn_gemm_desc *s)
{
    const bool eight = hewn_dtype_size(s->in) == 1, vectors = has_vectors(s);
    return (s->major_a || s->major_b ? GEMM_CAN_MN : 0U) | (eight ? GEMM_CAN_FP8 : 0U) |
           (s->out == HEWN_F32 ? GEMM_CAN_F32 : 0U) | (s->with || s->act ? GEMM_CAN_FINISH : 0U) |
           (s->in == HEWN_S8 || vectors ? GEMM_CAN_KINDS : 0U) |
           (s->act == HEWN_ACT_SWIGLU ? GEMM_CAN_GLU : 0U);
}

/* Of the target's kernels one that may well compute the product; for rows of any length one that is made
 * for them. */
static void draw_kernel(hewn_gemm_desc *s, const char *target, bool loose, struct rng *r)
{
    size_t count;
    const struct hewn_gemm_kernel *const first = hewn_gemm_kernels_of(target, &count), *k;
    const uint32_t need = need_of(s);
    bool suits = false;
    for (int i = 0; i < 100 && !suits; i++) {
        k = first + rng_below(r, (uint32_t)count);
        const bool any = strncmp(k->variant, "odd", 3) == 0 || strcmp(k->variant, "loose") == 0;
        suits = !(need & ~k->can) && any == loose && (k->glu != 0) == (s->act == HEWN_ACT_SWIGLU);
        s->variant = k->variant;
        s->parts = one_of(r, 2) || k->parts == 1 ? 1 : 1 + rng_below(r, k->parts);
        if (k->most_m && s->m > k->most_m) s->m = 1 + s->m % k->most_m;
    }
}

/* What a caller may ask for beside the product. */
static void draw_wishes(struct gemm_case *g, bool loose, struct rng *r)
{
    hewn_gemm_desc *s = &g->desc;
    const bool alone = s->in != HEWN_S8 && !has_vectors(s) && s->act != HEWN_ACT_SWIGLU;
    if (!s->variant && one_of(r, 6)) s->parts = 1 + rng_below(r, 8);
    if (one_of(r, 6)) s->invariant = 1;
    s->constant_b = one_of(r, 3);
    if (loose && one_of(r, 2)) {
        g->shift = (int)rng_below(r, 16 / (uint32_t)hewn_dtype_size(s->in));
        s->align = (uint32_t)hewn_dtype_size(s->in);
        if (hewn_dtype_size(s->bias_type) < s->align && s->with & HEWN_GEMM_WITH_BIAS) s->align = 1;
    } else if (one_of(r, 4)) {
        s->align = 16;
    }
    const bool slices = alone && s->batch < 2 && (s->align == 0 || s->align == 16);
    if (slices && one_of(r, 4)) {
        s->slices = 1 + rng_below(r, 8);
        if (one_of(r, 3)) s->slices += HEWN_GEMM_TURNED;
    }
    g->no_workspace = !s->slices && one_of(r, 4);
}

/* Half of the cases have 16-bit, K-major operands and nothing beside them: whatever else is asked for rules kernels
 * out. */
void gemm_drawn(struct gemm_case *g, const struct gemm_device *device, struct rng *r)
{
    static char text[128];
    hewn_gemm_desc *s = &g->desc;
    s->struct_size = sizeof *s;
    const bool hopper = device->major == SM_90A;
    g->finish = text;
    draw_sizes(s, device->sms, r);
    const bool plain = one_of(r, 2);
    draw_types(s, hopper && !plain, r);
    if (plain) {
        if (hewn_dtype_size(s->in) == 1) s->in = HEWN_BF16, s->in_b = 0;
        s->bias_type = s->out;
        s->major_a = s->major_b = HEWN_MAJOR_K;
    } else {
        draw_finish(g, hopper, r);
    }
    const bool rigid = s->in == HEWN_S8 || s->act == HEWN_ACT_SWIGLU || has_vectors(s);
    const bool loose = !rigid && one_of(r, 2);
    g->pattern = (enum pattern)rng_below(r, s->act == HEWN_ACT_SWIGLU ? SPECIALS : PATTERNS);
    if (one_of(r, 3)) draw_kernel(s, hopper ? "sm_90a" : "sm_100f", loose, r);
    draw_layout(g, loose, r);
    leave_out(s, r);
    draw_wishes(g, loose, r);
    snprintf(text, sizeof text, "with 0x%x act %d%s parts %u%s align %u shift %d%s%s%s", s->with,
             s->act, g->in_place ? " C in place" : "", s->parts, s->invariant ? " invariant" : "",
             s->align, g->shift, s->constant_b ? " constant B" : "",
             g->no_workspace ? " no workspace" : "", g->no_c ? " no C" : "");
}

/* Of the kernels that are named about a third are refused on an H200, for parts that no cluster or k allows, for
 * strides, for what a kernel of few rows lacks; of parts and slices alone, three quarters. A sixth more than that is too
 * many, beside three standard deviations of a count, each of which is at most half the root of what was asked. */
void gemm_judge_wishes(const struct gemm_wishes *wishes)
{
    const double most[2] = {0.875, 0.39};
    for (int i = 0; i < 2; i++) {
        const double asked = wishes->asked[i];
        CHECK(wishes->refused[i] <= most[i] * asked + 1.5 * sqrt(asked), "%s: %d of %d refused",
              i ? "kernels" : "parts or slices alone", wishes->refused[i], wishes->asked[i]);
    }
}
