/* The published model of a B200's sums: see mma_words.h. Terms are integers times a power of two. */
#include "mma_words.h"

#include <stddef.h>

enum { FINITE, INFINITE, NOT_A_NUMBER };

/* value = significand * 2^last; `exponent` is the encoded one, of the smallest normal for a subnormal. */
struct number {
    int64_t significand;
    int32_t last, exponent;
    int kind;
};

static const struct layout {
    uint32_t bits, fraction;
    int32_t bias;
    bool infinities, nan; /* all-ones exponent; only all ones is NaN where there is no infinity */
} layouts[] = {[WF_F16] = {16, 10, 15, true, true},   [WF_BF16] = {16, 7, 127, true, true},
               [WF_TF32] = {32, 23, 127, true, true}, [WF_E4M3] = {8, 3, 7, false, true},
               [WF_E5M2] = {8, 2, 15, true, true},    [WF_E2M3] = {6, 3, 1, false, false},
               [WF_E3M2] = {6, 2, 3, false, false},   [WF_E2M1] = {4, 1, 1, false, false},
               [WF_U8] = {8, 0, 0, false, false},     [WF_S8] = {8, 0, 0, false, false}};

uint32_t word_format_bits(enum word_format format)
{
    return layouts[format].bits;
}

static struct number decode(enum word_format format, uint32_t code)
{
    const struct layout *l = &layouts[format];
    const uint32_t exponent_bits = l->bits - 1 - l->fraction, ones = (1U << exponent_bits) - 1;
    const uint32_t fraction = code & ((1U << l->fraction) - 1);
    const uint32_t field = code >> l->fraction & ones;
    struct number n = {0};
    n.exponent = (int32_t)(field ? field : 1) - l->bias;
    n.last = n.exponent - (int32_t)l->fraction;
    n.significand = (int64_t)(fraction | (field ? 1U << l->fraction : 0));
    if (code >> (l->bits - 1) & 1) n.significand = -n.significand;
    if (l->nan && field == ones) {
        if (l->infinities)
            n.kind = fraction ? NOT_A_NUMBER : INFINITE;
        else if (fraction == (1U << l->fraction) - 1)
            n.kind = NOT_A_NUMBER;
    }
    return n;
}

/* Only the upper 19 bits of a tf32 operand count. */
static struct number operand(enum word_format format, uint32_t code)
{
    return decode(format, format == WF_TF32 ? code & ~0x1FFFU : code);
}

static struct number f32_number(uint32_t bits)
{
    return decode(WF_TF32, bits);
}

/* Toward zero, in units of 2^last. */
static int64_t units(int64_t significand, int32_t at, int32_t last)
{
    int32_t shift = at - last;
    int64_t size = significand < 0 ? -significand : significand;
    if (shift >= 0)
        size = size ? (int64_t)((uint64_t)size << shift) : 0;
    else
        size = shift > -63 ? size >> -shift : 0;
    return significand < 0 ? -size : size;
}

static int32_t top_bit(int64_t size)
{
    int32_t n = -1;
    for (; size; size >>= 1) n++;
    return n;
}

static uint32_t to_f32(int64_t sum, int32_t last)
{
    const uint32_t sign = sum < 0 ? 0x80000000U : 0;
    const int64_t size = sum < 0 ? -sum : sum;
    int32_t e = top_bit(size) + last;
    if (!size) return 0;
    if (e > 127) return sign | 0x7F800000U;
    if (e < -126) {
        const uint32_t out = (uint32_t)units(size, last, -149);
        return out ? sign | out : 0;
    }
    return sign | (uint32_t)(e + 127) << 23 | ((uint32_t)units(size, last, e - 23) & 0x7FFFFFU);
}

static uint32_t to_f16(int64_t sum, int32_t last)
{
    const uint32_t sign = sum < 0 ? 0x8000U : 0;
    const int64_t size = sum < 0 ? -sum : sum;
    const int32_t e = top_bit(size) + last, least = e < -14 ? -24 : e - 10;
    if (!size) return 0;
    if (e > 15) return sign | 0x7C00U;
    int64_t digits = units(size, last, least);
    if (least > last) { /* to nearest, even on a tie */
        const int64_t rest = size - units(digits, least, last);
        const int64_t half = least - last < 63 ? (int64_t)1 << (least - last - 1) : INT64_MAX;
        if (rest > half || (rest == half && digits & 1)) digits++;
    }
    if (!digits) return 0;
    const uint32_t out = (uint32_t)digits + (e < -14 ? 0 : (uint32_t)(e + 14) << 10);
    return sign | (out >= 0x7C00U ? 0x7C00U : out);
}

/* ---- one sum ---- */

struct sum {
    const struct word_form *f;
    struct number c, product[WORDS_MAX_K]; /* scaled; significand 0 where nothing is added */
    int32_t scale[WORDS_MAX_K];            /* exponent of both factors */
    bool nan, plus, minus;
};

static struct number scale_factor(enum word_rule rule, uint8_t code)
{
    if (rule == WR_NV4) return decode(WF_E4M3, code & 0x7FU);
    return (struct number){1, code - 127, code - 127, code == 255 ? NOT_A_NUMBER : FINITE};
}

static void infinite_product(struct sum *s, struct number a, struct number b)
{
    if ((a.kind == FINITE && !a.significand) || (b.kind == FINITE && !b.significand))
        s->nan = true;
    else if ((a.significand < 0) != (b.significand < 0))
        s->minus = true;
    else
        s->plus = true;
}

static void make_product(struct sum *s, const struct word_case *x, uint32_t k)
{
    const struct word_form *f = s->f;
    const struct number a = operand(f->a, x->a[k]), b = operand(f->b, x->b[k]);
    struct number *p = &s->product[k];
    *p =
        (struct number){a.significand * b.significand, a.last + b.last, a.exponent + b.exponent, 0};
    if (a.kind == NOT_A_NUMBER || b.kind == NOT_A_NUMBER) s->nan = true;
    if (a.kind != FINITE || b.kind != FINITE) {
        infinite_product(s, a, b);
        p->significand = 0;
    }
    if (!f->scales) return;
    const uint32_t i = k * f->scales / f->k;
    const struct number sa = scale_factor(f->rule, x->sa[i]), sb = scale_factor(f->rule, x->sb[i]);
    s->nan |= sa.kind != FINITE || sb.kind != FINITE;
    s->scale[k] = sa.exponent + sb.exponent;
    p->significand *= sa.significand * sb.significand;
    p->last += sa.last + sb.last;
    p->exponent += s->scale[k];
}

/* The sum of products [from, from + count), in units of 2^*last; exact, for they share their factors. */
static int64_t group(const struct sum *s, uint32_t from, uint32_t count, int32_t *last)
{
    int64_t total = 0;
    *last = s->product[from].last;
    for (uint32_t k = from; k < from + count; k++)
        if (s->product[k].significand && s->product[k].last < *last) *last = s->product[k].last;
    for (uint32_t k = from; k < from + count; k++)
        total += units(s->product[k].significand, s->product[k].last, *last);
    return total;
}

/* Largest exponent of a product in a range, and of the factors where some product is not zero. */
static bool largest(const struct sum *s, uint32_t from, uint32_t count, int32_t *product,
                    int32_t *scale)
{
    bool any = false;
    for (uint32_t k = from; k < from + count; k++) {
        if (!s->product[k].significand) continue;
        if (!any || s->product[k].exponent > *product) *product = s->product[k].exponent;
        if (!any || s->scale[k] > *scale) *scale = s->scale[k];
        any = true;
    }
    return any;
}

static int64_t groups_at(const struct sum *s, uint32_t count, int32_t last)
{
    int64_t total = units(s->c.significand, s->c.last, last);
    for (uint32_t k = 0; k < s->f->k; k += count) {
        int32_t at;
        const int64_t sum = group(s, k, count, &at);
        total += units(sum, at, last);
    }
    return total;
}

/* Groups of sixteen under factors that are powers of two. */
static uint32_t mx4_word(const struct sum *s, int32_t scale)
{
    const int32_t last = scale - 35;
    int64_t total = units(s->c.significand, s->c.last, last), kept = total;
    for (uint32_t k = 0; k < s->f->k; k += 16) {
        int32_t product = 0, factor = 0, at, quantum = last;
        const int64_t sum = group(s, k, 16, &at);
        if (!largest(s, k, 16, &product, &factor)) continue;
        if (s->c.significand && s->c.exponent >= product && s->c.exponent - 35 > quantum)
            quantum = s->c.exponent - 35;
        const int64_t part = units(units(sum, at, quantum), quantum, last);
        total += part;
        if (last < -174 && factor < scale && units(part, last, -174) == 0) continue;
        kept += part;
    }
    const uint32_t out = to_f32(total, last), size = out & 0x7FFFFFFFU;
    return size && size < 0x800000U ? to_f32(kept, last) : out;
}

static uint32_t finite_word(const struct sum *s, uint32_t c)
{
    int32_t product = 0, scale = 0;
    const bool any = largest(s, 0, s->f->k, &product, &scale);
    if (!any && !s->c.significand) return 0;
    if (s->f->rule == WR_PLAIN || s->f->rule == WR_MX8) {
        const int32_t top =
            s->c.significand && (!any || s->c.exponent > product) ? s->c.exponent : product;
        const int64_t sum = groups_at(s, 1, top - 25);
        return s->f->half_d ? to_f16(sum, top - 25) : to_f32(sum, top - 25);
    }
    if (!any) return c;
    if (s->c.significand && s->c.exponent >= product)
        return to_f32(groups_at(s, 16, s->c.exponent - 35), s->c.exponent - 35);
    return s->f->rule == WR_MX4 ? mx4_word(s, scale)
                                : to_f32(groups_at(s, 4, scale - 35), scale - 35);
}

static uint32_t integer_word(const struct word_form *f, const struct word_case *x)
{
    int64_t sum = (int32_t)x->c;
    for (uint32_t k = 0; k < f->k; k++)
        sum += (f->a == WF_S8 ? (int8_t)x->a[k] : (int)x->a[k]) *
               (f->b == WF_S8 ? (int8_t)x->b[k] : (int)x->b[k]);
    if (f->saturate && sum > INT32_MAX) sum = INT32_MAX;
    if (f->saturate && sum < INT32_MIN) sum = INT32_MIN;
    return (uint32_t)(uint64_t)sum;
}

uint32_t word_of(const struct word_form *f, const struct word_case *x)
{
    struct sum s = {.f = f};
    if (f->rule == WR_INTEGER) return integer_word(f, x);
    s.c = f->half_d ? decode(WF_F16, x->c & 0xFFFFU) : f32_number(x->c);
    for (uint32_t k = 0; k < f->k; k++) make_product(&s, x, k);
    if (s.c.kind == INFINITE) *(s.c.significand < 0 ? &s.minus : &s.plus) = true;
    if (s.nan || s.c.kind == NOT_A_NUMBER || (s.plus && s.minus))
        return f->half_d ? 0x7FFFU : 0x7FFFFFFFU;
    if (s.plus || s.minus)
        return (f->half_d ? 0x7C00U : 0x7F800000U) |
               (s.minus ? f->half_d ? 0x8000U : 0x80000000U : 0);
    return finite_word(&s, x->c);
}
