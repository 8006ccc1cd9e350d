/*
 * Sums of mxf4 and mxf4nvf4, in integers, by the published model that agrees with a B200 on millions of
 * recorded words (SEMANTICS.md, "Sums"). An E2M1 element counts in halves, a product in quarters; with the
 * significands of its two scale factors, in eighths each, a product counts in 2^-8 of its scales.
 */
#include "ops/tensor.h"

enum {
    ABSENT = -100,    /* exponent of a zero element: its products never are the largest */
    NOTHING = -10000, /* no product at all */
    MERGE = 16,       /* stored elements whose products are added before anything is cut off */
    PART = 4,         /* elements likewise, with ue4m3 scales under products larger than C */
    WINDOW = 35,      /* bits of the last place below the largest exponent */
    FRACTION = 8,     /* bits of a product below the exponents of its scales */
    UNDERFLOW_LAST =
        -174, /* of a subnormal sum: what groups with lesser scales have below is lost */
    MAX_PARTS = TENSOR_FP4_K / PART,
    MAX_GROUPS = TENSOR_FP4_K / MERGE
};

/* Parts of products of one column, by rows; and the largest exponent of a merged group's products. */
struct fp4_column {
    int16_t part[MAX_PARTS][TENSOR_MAX_M];
    int8_t top[MAX_GROUPS][TENSOR_MAX_M];
};

/* One element of D, scaled, before it is cut off. */
struct fp4_sum {
    uint32_t parts, per_group, groups; /* parts in all and in a merged group */
    int64_t part[MAX_PARTS];           /* in units of 2^(scale - FRACTION) */
    int32_t scale[MAX_GROUPS];         /* sum of the exponents of both scale factors */
    int32_t top[MAX_GROUPS];           /* largest exponent of a product, or NOTHING */
    int64_t c;                         /* significand of C */
    int32_t c_exponent;                /* a subnormal has that of the smallest normal number */
};

static int8_t exponent_of_half(int16_t half)
{
    const int size = half < 0 ? -half : half;
    return size == 0 ? ABSENT : size < 4 ? 0 : size < 8 ? 1 : 2;
}

/* value * 2^exponent in units of 2^last, toward zero. */
static int64_t cut(int64_t value, int32_t exponent, int32_t last)
{
    const int32_t shift = exponent - last;
    const uint64_t size = value < 0 ? (uint64_t)-value : (uint64_t)value;
    const uint64_t out = shift >= 0 ? size << (shift & 63) : shift > -64 ? size >> -shift : 0;
    return value < 0 ? -(int64_t)out : (int64_t)out;
}

/* units * 2^exponent as f32, toward zero. */
static uint32_t f32_of(int64_t units, int32_t exponent)
{
    const uint32_t sign = units < 0 ? 0x80000000U : 0;
    const uint64_t size = units < 0 ? (uint64_t)-units : (uint64_t)units;
    if (!size) return 0;
    const int32_t e = 63 - __builtin_clzll(size) + exponent;
    if (e > 127) return sign | 0x7F800000U;
    const int32_t shift = (e < -126 ? -149 : e - 23) - exponent;
    const uint64_t digits = shift > 63 ? 0 : shift >= 0 ? size >> shift : size << -shift;
    if (!digits) return 0;
    return sign | (uint32_t)(e < -126 ? digits : ((uint64_t)(e + 126) << 23) + digits);
}

static int64_t group_sum(const struct fp4_sum *s, uint32_t group)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < s->per_group; i++) sum += s->part[group * s->per_group + i];
    return sum;
}

static int64_t c_units(const struct fp4_sum *s, int32_t last)
{
    return cut(s->c, s->c_exponent - 23, last);
}

/* C's exponent is at least that of every product: it sets the last place. */
static uint32_t sum_under_c(const struct fp4_sum *s)
{
    const int32_t last = s->c_exponent - WINDOW;
    int64_t sum = c_units(s, last);
    for (uint32_t g = 0; g < s->groups; g++)
        sum += cut(group_sum(s, g), s->scale[g] - FRACTION, last);
    return f32_of(sum, last);
}

/* ue4m3: parts of four products, at the place that the largest scales set. */
static uint32_t sum_parts(const struct fp4_sum *s, int32_t last)
{
    int64_t sum = c_units(s, last);
    for (uint32_t i = 0; i < s->parts; i++)
        sum += cut(s->part[i], s->scale[i / s->per_group] - FRACTION, last);
    return f32_of(sum, last);
}

/* ue8m0: merged groups likewise; one whose products C is not smaller than, at C's place where that is
 * higher. */
static uint32_t sum_groups(const struct fp4_sum *s, int32_t largest)
{
    const int32_t last = largest - WINDOW;
    int64_t sum = c_units(s, last), lasting = sum;
    for (uint32_t g = 0; g < s->groups; g++) {
        const bool below_c = s->c && s->c_exponent >= s->top[g];
        const int32_t at = below_c && s->c_exponent - WINDOW > last ? s->c_exponent - WINDOW : last;
        const int64_t sum_g =
            cut(group_sum(s, g), s->scale[g] - FRACTION, at) * (1LL << (at - last));
        const bool lost =
            last < UNDERFLOW_LAST && s->scale[g] < largest && cut(sum_g, last, UNDERFLOW_LAST) == 0;
        sum += sum_g;
        lasting += lost ? 0 : sum_g;
    }
    const uint32_t out = f32_of(sum, last), size = out & 0x7FFFFFFFU;
    return size && size < 0x800000U ? f32_of(lasting, last) : out;
}

/* A zero group, whatever its scale, does not count. */
static uint32_t finish(const struct fp4_sum *s, bool ue4m3, uint32_t before)
{
    int32_t top = NOTHING, largest = NOTHING;
    for (uint32_t g = 0; g < s->groups; g++) {
        if (s->top[g] == NOTHING) continue;
        if (s->top[g] > top) top = s->top[g];
        if (s->scale[g] > largest) largest = s->scale[g];
    }
    if (top == NOTHING) return s->c ? before : 0;
    if (s->c && s->c_exponent >= top) return sum_under_c(s);
    return ue4m3 ? sum_parts(s, largest - WINDOW) : sum_groups(s, largest);
}

/* What factors of one row and one column make of a column's parts. False for a NaN among the factors. */
static bool scale_sum(const struct tensor_fp4 *p, const struct fp4_column *x, uint32_t m,
                      const struct fp4_scale *sb, struct fp4_sum *s)
{
    const struct fp4_scale *sa = p->sa + (size_t)m * TENSOR_FP4_SCALES;
    const uint32_t per_scale = s->groups / p->scales;
    for (uint32_t i = 0; i < p->scales; i++)
        if (sa[i].significand == FP4_SCALE_NAN || sb[i].significand == FP4_SCALE_NAN) return false;
    for (uint32_t g = 0; g < s->groups; g++) {
        const struct fp4_scale *a = &sa[g / per_scale], *b = &sb[g / per_scale];
        const int32_t significand = a->significand * b->significand;
        const bool none = x->top[g][m] < 0 || !significand;
        s->scale[g] = a->exponent + b->exponent;
        s->top[g] = none ? NOTHING : s->scale[g] + x->top[g][m];
        for (uint32_t i = g * s->per_group; i < (g + 1) * s->per_group; i++)
            s->part[i] = (int64_t)x->part[i][m] * significand;
    }
    return true;
}

static uint32_t element(const struct tensor_fp4 *p, const struct fp4_column *x, uint32_t m,
                        const struct fp4_scale *sb, uint32_t before, struct fp4_sum *s)
{
    const uint32_t c = p->accumulate ? before : 0, field = c >> 23 & 0xFFU;
    const int32_t size = (int32_t)((c & 0x7FFFFFU) | (field ? 0x800000U : 0U));
    if ((c & 0x7FFFFFFFU) > 0x7F800000U || !scale_sum(p, x, m, sb, s)) return 0x7FFFFFFFU;
    if (field == 255) return c;
    s->c = c >> 31 ? -size : size;
    s->c_exponent = (int32_t)(field ? field : 1U) - 127;
    return finish(s, p->ue4m3, c);
}

/* Products of all rows with one column. */
static void multiply_column(const struct tensor_fp4 *p, const int16_t *a, const int8_t *a_exponent,
                            uint32_t n, uint32_t per_group, struct fp4_column *x)
{
    memset(x->part, 0, p->k / PART * sizeof x->part[0]);
    memset(x->top, ABSENT, sizeof x->top);
    for (uint32_t k = 0; k < p->k; k++) {
        const int16_t b = (int16_t)(2.0F * p->b[(size_t)n * p->b_n + (size_t)k * p->b_k]);
        const int8_t e = exponent_of_half(b);
        int16_t *part = x->part[k / PART];
        int8_t *top = x->top[k / PART / per_group];
        const int16_t *ak = a + (size_t)k * TENSOR_MAX_M;
        const int8_t *ek = a_exponent + (size_t)k * TENSOR_MAX_M;
        if (!b) continue;
        for (uint32_t m = 0; m < p->m; m++) {
            const int8_t both = (int8_t)(ek[m] + e);
            /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): set to 0 above */
            part[m] = (int16_t)(part[m] + ak[m] * b);
            top[m] = both > top[m] ? both : top[m];
        }
    }
}

void tensor_fp4(const struct tensor_fp4 *p)
{
    int16_t a[TENSOR_FP4_K * TENSOR_MAX_M];
    int8_t exponent[TENSOR_FP4_K * TENSOR_MAX_M];
    struct fp4_column x;
    struct fp4_sum s = {
        .parts = p->k / PART, .per_group = p->merge / PART, .groups = p->k / p->merge};
    for (uint32_t k = 0; k < p->k; k++) {
        for (uint32_t m = 0; m < p->m; m++) {
            const size_t at = (size_t)k * TENSOR_MAX_M + m;
            a[at] = (int16_t)(2.0F * p->a[(size_t)k * p->a_stride + m]);
            exponent[at] = exponent_of_half(a[at]);
        }
    }
    for (uint32_t n = 0; n < p->n; n++) {
        multiply_column(p, a, exponent, n, s.per_group, &x);
        for (uint32_t m = 0; m < p->m; m++) {
            uint32_t *d = &p->acc[(size_t)n * p->acc_stride + m];
            const struct fp4_scale *sb =
                p->sb + ((size_t)(m / WARP_LANES) * p->sb_quarter + n) * TENSOR_FP4_SCALES;
            *d = element(p, &x, m, sb, *d, &s);
        }
    }
}
