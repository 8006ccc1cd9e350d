/*
 * The product kernels of tensor.h, compiled once per vector width and chosen at run time. They use the
 * compiler's generic vectors. Products are exact, terms are truncated to integers, integers are added:
 * nothing depends on the width or on the order of the terms.
 */
#include "ops/fpbits.h"
#include "ops/tensor.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#define TARGET_512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))
#define TARGET_256 __attribute__((target("avx2")))
#endif
#define INLINE static inline __attribute__((always_inline))

enum {
    NO_EXPONENT = -1000, /* of a zero: its products never are the largest */
    BIAS = 127,
    SPECIAL = 255, /* exponent field of infinities and NaN */
    PART = 8,      /* terms below 2^27 that an int32_t holds together with an addend */
    SUMS = 4,      /* vectors of sums that a loop over k makes */
    COLUMNS = 4    /* of B that repeat in a quad */
};
#define NAN_BITS      0x7FFFFFFF
#define INFINITY_BITS 0x7F800000
#define FRACTION_BITS 0x007FFFFF
#define IMPLICIT_BIT  0x00800000

/* Larger of two, and four numbers repeated, in vectors of 4, 8 or 16: compilers do not find these
 * instructions in generic code. */
#define MAX_16(a, b)    ((ints_16)_mm512_max_epi32((__m512i)(a), (__m512i)(b)))
#define MAX_8(a, b)     ((ints_8)_mm256_max_epi32((__m256i)(a), (__m256i)(b)))
#define MAX_4(a, b)     (((a) & ((a) > (b))) | ((b) & ~((a) > (b))))
#define QUAD_16(p)      ((vec_16)_mm512_broadcast_f32x4(_mm_loadu_ps(p)))
#define QUAD_8(p)       ((vec_8)_mm256_broadcast_ps((const __m128 *)(const void *)(p)))
#define QUAD_4(p)       ((vec_4){(p)[0], (p)[1], (p)[2], (p)[3]})
#define QUAD_INTS_16(p) ((ints_16)_mm512_broadcast_i32x4(_mm_loadu_si128((const void *)(p))))
#define QUAD_INTS_8(p)  ((ints_8)_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(p))))
#define QUAD_INTS_4(p)  ((ints_4){(p)[0], (p)[1], (p)[2], (p)[3]})

/* An operand made ready: a value and an exponent per element. */
struct side {
    float *value;      /* of zeros, infinities and NaN 0; a significand where products may leave the
                          range of float, see `direct` */
    int32_t *exponent; /* or NO_EXPONENT */
    int32_t least, largest; /* over elements that are not zero */
    bool special;           /* some element is infinite or NaN */
};

/* A and B as they came, infinities included. */
struct raw {
    const float *x, *y;
    size_t x_step, y_step; /* of k */
    size_t y_column;
};

struct sum {
    struct tensor_rule rule;
    uint32_t k;
    bool direct; /* products stay in the range of float: no significands are needed */
    bool quad;   /* fragments: B has four columns, for lanes modulo 4 */
    bool special;
};

/* Rows of A by columns of B. Without quads: W rows by columns y[0 .. 3]. With them, as fragments have
 * it: rows x and rows x[WARP_LANES], by columns y[0 .. 3] and columns y[4 .. 7]. */
struct factors {
    const float *x, *y;
    const int32_t *x_exponent, *y_exponent;
    size_t x_step, y_step; /* of k */
};

/* The sum where an infinity or NaN takes part, else `sum`. */
static uint32_t special_sum(const float *x, size_t x_step, const float *y, size_t y_step,
                            uint32_t k, bool sparse, uint32_t c, uint32_t sum)
{
    bool plus = c == INFINITY_BITS, minus = c == (INFINITY_BITS | 0x80000000U);
    bool nan = (c & 0x7FFFFFFFU) > INFINITY_BITS;
    for (uint32_t i = 0; i < k; i++, x += x_step, y += y_step) {
        if (__builtin_isfinite(*x) && __builtin_isfinite(*y)) continue;
        if (sparse && *x == 0 && __builtin_signbit(*x)) continue; /* no element */
        const float product = *x * *y;
        nan |= __builtin_isnan(product);
        plus |= product > 0;
        minus |= product < 0;
    }
    if (nan || (plus && minus)) return NAN_BITS;
    return plus ? INFINITY_BITS : minus ? INFINITY_BITS | 0x80000000U : sum;
}

/* Bit i: row or column i, of k elements `step` apart, has an infinity or NaN. */
static uint32_t special_lines(const float *from, uint32_t lines, size_t step, uint32_t k)
{
    uint32_t special = 0;
    for (uint32_t i = 0; i < k; i++, from += step)
        for (uint32_t line = 0; line < lines; line++)
            special |= (uint32_t)!__builtin_isfinite(from[line]) << line;
    return special;
}

/* Sums `i` of `width` lanes, from accumulators c: those that an infinity or NaN takes part in. */
static void put_special(const struct sum *s, const struct raw *raw, uint32_t i, uint32_t width,
                        const uint32_t *c, uint32_t *to)
{
    const uint32_t repeat = s->quad ? COLUMNS : 1;
    const float *x = raw->x + (s->quad ? i / 2 * WARP_LANES : 0);
    const float *y = raw->y + (s->quad ? i % 2 * COLUMNS : i * raw->y_column);
    const uint32_t rows = special_lines(x, width, raw->x_step, s->k);
    const uint32_t columns = special_lines(y, repeat, raw->y_step, s->k);
    for (uint32_t l = 0; l < width; l++) {
        const bool finite = (c[l] & NAN_BITS) < INFINITY_BITS;
        if (finite && !(rows >> l & 1) && !(columns >> l % repeat & 1)) continue;
        to[l] = special_sum(x + l, raw->x_step, y + l % repeat, raw->y_step, s->k, s->rule.sparse,
                            c[l], to[l]);
    }
}

/* The f16 of a RESULT_ODD pattern; a negative sum that rounds to zero loses its sign. */
INLINE uint32_t half_result(uint32_t bits)
{
    const uint32_t half = f32_to_f16(f32_from(bits));
    return half == 0x8000U ? 0 : half;
}

/*
 * prepare_W: value and exponent of `count` elements, a multiple of 16. significands_W: values to [1, 2) and subnormals in
 * step, so that value * 2^exponent is what it was.
 * sum_W: a vector of fused sums; c are float patterns. The largest exponent of all products and of c
 * puts the last place at 2^(largest - fraction); every term is truncated to a multiple of it.
 * The integer sum is kept as high * 2^16 + low, then becomes a float truncated, or rounded to odd
 * where it is to be rounded to f16 later.
 */
#define KERNELS(W, TARGET)                                                                        \
    typedef float vec_##W __attribute__((vector_size(4 * W)));                                    \
    typedef int32_t ints_##W __attribute__((vector_size(4 * W)));                                 \
    typedef uint32_t bits_##W __attribute__((vector_size(4 * W)));                                \
                                                                                                  \
    TARGET INLINE ints_##W max_##W(ints_##W a, ints_##W b)                                        \
    {                                                                                             \
        return MAX_##W(a, b);                                                                     \
    }                                                                                             \
                                                                                                  \
    TARGET static void prepare_##W(struct side *s, const float *from, uint32_t count,             \
                                   int32_t least)                                                 \
    {                                                                                             \
        const ints_##W absent = (ints_##W){0} + NO_EXPONENT;                                      \
        ints_##W high = absent, minus_low = absent, special = {0};                                \
        for (uint32_t i = 0; i < count; i += W) {                                                 \
            ints_##W bits;                                                                        \
            memcpy(&bits, &from[i], sizeof bits);                                                 \
            const ints_##W magnitude = bits & NAN_BITS, infinite = magnitude >= INFINITY_BITS;    \
            const ints_##W none = infinite | (magnitude == 0);                                    \
            const ints_##W e = max_##W((magnitude >> 23) - BIAS, (ints_##W){0} + least);          \
            const ints_##W some = (e & ~none) | (absent & none);                                  \
            bits &= ~none;                                                                        \
            memcpy(&s->value[i], &bits, sizeof bits);                                             \
            memcpy(&s->exponent[i], &some, sizeof some);                                          \
            special |= infinite;                                                                  \
            high = max_##W(high, some);                                                           \
            minus_low = max_##W(minus_low, (-e & ~none) | (absent & none));                       \
        }                                                                                         \
        s->largest = s->least = NO_EXPONENT;                                                      \
        s->special = false;                                                                       \
        for (uint32_t i = 0; i < W; i++) {                                                        \
            s->largest = high[i] > s->largest ? high[i] : s->largest;                             \
            s->least = minus_low[i] > s->least ? minus_low[i] : s->least;                         \
            s->special |= special[i] != 0;                                                        \
        }                                                                                         \
        s->least = -s->least;                                                                     \
    }                                                                                             \
                                                                                                  \
    TARGET static void significands_##W(struct side *s, uint32_t count)                           \
    {                                                                                             \
        for (uint32_t i = 0; i < count; i++) {                                                    \
            uint32_t bits, one;                                                                   \
            memcpy(&bits, &s->value[i], sizeof bits);                                             \
            const float tiny = (float)(int32_t)(bits & FRACTION_BITS) * 0x1p-23F;                 \
            memcpy(&one, &tiny, sizeof one);                                                      \
            one = bits & INFINITY_BITS ? (bits & FRACTION_BITS) | BIAS << 23 : one;               \
            one |= bits & 0x80000000U;                                                            \
            memcpy(&s->value[i], &one, sizeof one);                                               \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    /* high * 2^16 + low, times 2^scale */                                                        \
    TARGET INLINE bits_##W result_##W(ints_##W high, ints_##W low, ints_##W scale,                \
                                      const struct tensor_rule *rule)                             \
    {                                                                                             \
        const vec_##W h = __builtin_convertvector(high, vec_##W) * 0x1p16F;                       \
        const vec_##W l = __builtin_convertvector(low, vec_##W);                                  \
        const vec_##W total = h + l, rest = l - (total - h); /* rest: what rounding left */       \
        const ints_##W inexact = rest != 0.0F;                                                    \
        const ints_##W up = ((ints_##W)total ^ (ints_##W)rest) < 0;                               \
        bits_##W f = (bits_##W)total + (bits_##W)(up & inexact);                                  \
        if (rule->result == RESULT_ODD) f |= (bits_##W)inexact & 1U;                              \
        const bits_##W sign = f & 0x80000000U;                                                    \
        const ints_##W field = (ints_##W)((f & INFINITY_BITS) >> 23) + scale;                     \
        const ints_##W huge = field >= SPECIAL, tiny = field <= 0, zero = total == 0.0F;          \
        const ints_##W by = 31 - max_##W(30 + field, (ints_##W){0});                              \
        bits_##W subnormal = ((f & FRACTION_BITS) | IMPLICIT_BIT) >> (bits_##W)(by & tiny);       \
        subnormal |= sign & (bits_##W)(subnormal != 0);                                           \
        f += (bits_##W)scale << 23;                                                               \
        f = (f & ~(bits_##W)huge) | ((sign | INFINITY_BITS) & (bits_##W)huge);                    \
        f = (f & ~(bits_##W)tiny) | (subnormal & (bits_##W)tiny);                                 \
        if (rule->result == RESULT_SHORT) f &= ~0x3FFU;                                           \
        return f & ~(bits_##W)zero;                                                               \
    }                                                                                             \
                                                                                                  \
    /* c as a vector of integers in the last place of a sum whose largest exponent is `top` */    \
    TARGET INLINE ints_##W addend_##W(ints_##W c, ints_##W top, int32_t fraction)                 \
    {                                                                                             \
        const ints_##W field = (c & NAN_BITS) >> 23, sign = c >> 31;                              \
        const ints_##W exponent = max_##W(field, (ints_##W){0} + 1) - BIAS;                       \
        const ints_##W hidden = (field != 0) & IMPLICIT_BIT;                                      \
        const ints_##W below = max_##W(top - exponent + 25 - fraction, (ints_##W){0});            \
        const ints_##W drop = 31 - max_##W(31 - below, (ints_##W){0});                            \
        const ints_##W magnitude = ((c & FRACTION_BITS) | hidden) << 2 >> drop;                   \
        return (magnitude ^ sign) - sign;                                                         \
    }                                                                                             \
                                                                                                  \
    TARGET INLINE ints_##W exponent_##W(ints_##W c, int32_t least)                                \
    {                                                                                             \
        const ints_##W magnitude = c & NAN_BITS, zero = magnitude == 0;                           \
        const ints_##W e = max_##W((magnitude >> 23) - BIAS, (ints_##W){0} + least);              \
        return (e & ~zero) | (NO_EXPONENT & zero);                                                \
    }                                                                                             \
                                                                                                  \
    TARGET INLINE void largest_##W(const struct sum *s, const struct factors *f, bool quad,       \
                                   ints_##W top[SUMS])                                            \
    {                                                                                             \
        const int32_t *xe = f->x_exponent, *ye = f->y_exponent;                                   \
        for (uint32_t k = 0; k < s->k; k++, xe += f->x_step, ye += f->y_step) {                   \
            ints_##W x[2];                                                                        \
            memcpy(&x[0], xe, sizeof x[0]);                                                       \
            if (quad) memcpy(&x[1], xe + WARP_LANES, sizeof x[1]);                                \
            for (uint32_t i = 0; i < SUMS; i++)                                                   \
                top[i] = max_##W(top[i], quad ? x[i / 2] + QUAD_INTS_##W(ye + i % 2 * COLUMNS)    \
                                              : x[0] + ye[i]);                                    \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    TARGET INLINE void sum_##W(const struct sum *s, struct factors f, const ints_##W c[SUMS],     \
                               bits_##W out[SUMS], bool direct, bool quad)                        \
    {                                                                                             \
        const int32_t fraction = s->rule.fraction;                                                \
        ints_##W top[SUMS], base[SUMS], part[SUMS], high[SUMS] = {{0}}, low[SUMS] = {{0}};        \
        vec_##W scale[SUMS];                                                                      \
        for (uint32_t i = 0; i < SUMS; i++) top[i] = exponent_##W(c[i], s->rule.least_c);         \
        largest_##W(s, &f, quad, top);                                                            \
        for (uint32_t i = 0; i < SUMS; i++) {                                                     \
            base[i] = fraction + BIAS - top[i];                                                   \
            scale[i] = (vec_##W)((254 - max_##W(254 - base[i], (ints_##W){0})) << 23);            \
            part[i] = addend_##W(c[i], top[i], fraction);                                         \
        }                                                                                         \
        for (uint32_t k = 0; k < s->k;) {                                                         \
            const uint32_t end = s->k - k < PART ? s->k : k + PART;                               \
            for (; k < end; k++, f.x += f.x_step, f.y += f.y_step) {                              \
                vec_##W x[2];                                                                     \
                ints_##W xe[2];                                                                   \
                memcpy(&x[0], f.x, sizeof x[0]);                                                  \
                if (quad) memcpy(&x[1], f.x + WARP_LANES, sizeof x[1]);                           \
                if (!direct) memcpy(&xe[0], f.x_exponent, sizeof xe[0]);                          \
                if (!direct && quad) memcpy(&xe[1], f.x_exponent + WARP_LANES, sizeof xe[1]);     \
                for (uint32_t i = 0; i < SUMS; i++) {                                             \
                    const vec_##W product =                                                       \
                        quad ? x[i / 2] * QUAD_##W(f.y + i % 2 * COLUMNS) : x[0] * f.y[i];        \
                    if (!direct) {                                                                \
                        const ints_##W e =                                                        \
                            quad ? xe[i / 2] + QUAD_INTS_##W(f.y_exponent + i % 2 * COLUMNS)      \
                                 : xe[0] + f.y_exponent[i];                                       \
                        scale[i] = (vec_##W)(max_##W(e + base[i], (ints_##W){0}) << 23);          \
                    }                                                                             \
                    part[i] += __builtin_convertvector(product * scale[i], ints_##W);             \
                }                                                                                 \
                f.x_exponent += f.x_step;                                                         \
                f.y_exponent += f.y_step;                                                         \
            }                                                                                     \
            for (uint32_t i = 0; i < SUMS; i++) {                                                 \
                low[i] += part[i] & 0xFFFF;                                                       \
                high[i] += part[i] >> 16;                                                         \
                part[i] = (ints_##W){0};                                                          \
            }                                                                                     \
        }                                                                                         \
        for (uint32_t i = 0; i < SUMS; i++) {                                                     \
            const ints_##W magnitude = c[i] & NAN_BITS;                                           \
            const bits_##W special = (bits_##W)(magnitude >= INFINITY_BITS);                      \
            const bits_##W nan = (bits_##W)(magnitude > INFINITY_BITS) & NAN_BITS;                \
            out[i] = result_##W(high[i], low[i], top[i] - fraction, &s->rule) & ~special;         \
            out[i] |= ((bits_##W)c[i] & special & ~(nan << 1)) | nan;                             \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    /* to: SUMS times W accumulators                         */                                   \
    TARGET INLINE void put_##W(const struct sum *s, struct factors f, const struct raw *raw,      \
                               uint32_t *const to[SUMS], bool accumulate)                         \
    {                                                                                             \
        ints_##W c[SUMS] = {{0}};                                                                 \
        bits_##W out[SUMS];                                                                       \
        for (uint32_t i = 0; accumulate && i < SUMS; i++) memcpy(&c[i], to[i], sizeof c[i]);      \
        if (s->quad && s->direct)                                                                 \
            sum_##W(s, f, c, out, true, true);                                                    \
        else if (s->quad)                                                                         \
            sum_##W(s, f, c, out, false, true);                                                   \
        else if (s->direct)                                                                       \
            sum_##W(s, f, c, out, true, false);                                                   \
        else                                                                                      \
            sum_##W(s, f, c, out, false, false);                                                  \
        for (uint32_t i = 0; i < SUMS; i++) {                                                     \
            uint32_t before[W];                                                                   \
            memcpy(before, &c[i], sizeof before);                                                 \
            memcpy(to[i], &out[i], sizeof out[i]);                                                \
            if (s->special) put_special(s, raw, i, W, before, to[i]);                             \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    TARGET static void mma_##W(const struct tensor_product *p, const struct sum *s,               \
                               const struct side *a, const struct side *b)                        \
    {                                                                                             \
        for (uint32_t n = 0; n < p->n; n += SUMS) {                                               \
            for (uint32_t m = 0; m < p->m; m += W) {                                              \
                const size_t at = (size_t)n * p->k;                                               \
                const struct factors f = {a->value + m,     b->value + at, a->exponent + m,       \
                                          b->exponent + at, p->m,          SUMS};                 \
                const struct raw raw = {p->a + m, p->b + (size_t)n * p->b_n, p->a_stride, p->b_k, \
                                        p->b_n};                                                  \
                uint32_t *const first = p->acc + (size_t)n * p->acc_stride + m;                   \
                uint32_t *const to[SUMS] = {first, first + p->acc_stride,                         \
                                            first + 2 * (size_t)p->acc_stride,                    \
                                            first + 3 * (size_t)p->acc_stride};                   \
                put_##W(s, f, &raw, to, p->accumulate);                                           \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    /* For 8 columns the four accumulator registers of 32 lanes, W lanes at a time: elements 0  \
     * and 1 are rows l/4, 2 and 3 rows l/4 + 8; even elements take the first quad of b. */ \
    TARGET static void wgmma_##W(const struct tensor_fragments *p, const struct sum *s,           \
                                 const struct side *a, const struct side *b)                      \
    {                                                                                             \
        for (uint32_t block = 0; block < p->n / 8U; block++) {                                    \
            for (uint32_t lane = 0; lane < WARP_LANES; lane += W) {                               \
                const size_t at = (size_t)block * p->k * 8U;                                      \
                uint32_t *const *acc = p->acc + (size_t)SUMS * block;                             \
                const struct factors f = {a->value + lane,  b->value + at,   a->exponent + lane,  \
                                          b->exponent + at, TENSOR_FRAGMENT, 8};                  \
                const struct raw raw = {p->a + lane, p->b + at, TENSOR_FRAGMENT, 8, 0};           \
                uint32_t *const to[SUMS] = {acc[0] + lane, acc[1] + lane, acc[2] + lane,          \
                                            acc[3] + lane};                                       \
                put_##W(s, f, &raw, to, p->accumulate);                                           \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    /* 8-bit integers as floats: their products and sums over k are exact in float. */            \
    TARGET static void integers_##W(const struct tensor_fragments *p, bool saturate)              \
    {                                                                                             \
        for (uint32_t i = 0; i < p->n / 2U; i++) {                                                \
            for (uint32_t lane = 0; lane < WARP_LANES; lane += W) {                               \
                const float *x = p->a + i / 2U % 2U * WARP_LANES + lane;                          \
                const float *y = p->b + (size_t)(i / 4U) * p->k * 8U + i % 2U * COLUMNS;          \
                vec_##W dot = {0};                                                                \
                bits_##W c = {0};                                                                 \
                for (uint32_t k = 0; k < p->k; k++, x += TENSOR_FRAGMENT, y += 8) {               \
                    vec_##W row;                                                                  \
                    memcpy(&row, x, sizeof row);                                                  \
                    dot += row * QUAD_##W(y);                                                     \
                }                                                                                 \
                if (p->accumulate) memcpy(&c, p->acc[i] + lane, sizeof c);                        \
                const bits_##W d = (bits_##W) __builtin_convertvector(dot, ints_##W);             \
                bits_##W out = c + d;                                                             \
                if (saturate) {                                                                   \
                    const bits_##W over = (bits_##W)((ints_##W)(~(c ^ d) & (c ^ out)) < 0);       \
                    const bits_##W limit = NAN_BITS + (c >> 31);                                  \
                    out = (out & ~over) | (limit & over);                                         \
                }                                                                                 \
                memcpy(p->acc[i] + lane, &out, sizeof out);                                       \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    /* Plain loops for the vectoriser. */                                                         \
    TARGET static void widen_##W(bool bf16, const uint16_t *src, uint32_t count, float *dst)      \
    {                                                                                             \
        for (uint32_t i = 0; i < count; i++) {                                                    \
            const uint32_t bits = bf16 ? (uint32_t)src[i] << 16 : half_bits(src[i]);              \
            memcpy(&dst[i], &bits, sizeof bits);                                                  \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    TARGET static void unpack_##W(const uint32_t *from, uint32_t *low, uint32_t *high)            \
    {                                                                                             \
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {                                      \
            low[lane] = half_bits((uint16_t)from[lane]);                                          \
            high[lane] = half_bits((uint16_t)(from[lane] >> 16));                                 \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    TARGET static void pack_##W(const uint32_t *low, const uint32_t *high, uint32_t *to)          \
    {                                                                                             \
        for (uint32_t lane = 0; lane < WARP_LANES; lane++)                                        \
            to[lane] = half_result(low[lane]) | half_result(high[lane]) << 16;                    \
    }

#if defined(__x86_64__) || defined(__i386__)
KERNELS(16, TARGET_512)
KERNELS(8, TARGET_256)
#endif
KERNELS(4, )

#if defined(__x86_64__) || defined(__i386__)
/* Vector width that this CPU runs without splitting. */
static uint32_t vector_width(void)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return 16;
    if (__builtin_cpu_supports("avx2")) return 8;
    return 4;
}
#endif

/* Calls the kernel of the width that suits this CPU. */
#if defined(__x86_64__) || defined(__i386__)
#define DISPATCH(kernel, ...)                     \
    do {                                          \
        switch (vector_width()) {                 \
        case 16: kernel##_16(__VA_ARGS__); break; \
        case 8: kernel##_8(__VA_ARGS__); break;   \
        default: kernel##_4(__VA_ARGS__); break;  \
        }                                         \
    } while (0)
#else
#define DISPATCH(kernel, ...) kernel##_4(__VA_ARGS__)
#endif

static int16_t least_exponent(enum tensor_format format)
{
    static const int8_t least[TF_FORMATS] = {
        [TF_F16] = -14,  [TF_BF16] = -126, [TF_TF32] = -126, [TF_E4M3] = -6,
        [TF_E5M2] = -14, [TF_E3M2] = -2}; /* of the others 0: E2M3, E2M1 and integers */
    return least[format];
}

struct tensor_rule tensor_rule_of(enum tensor_format a, enum tensor_format b, bool half_c,
                                  bool half_d, bool short_sum)
{
    return (struct tensor_rule){.least_a = least_exponent(a),
                                .least_b = least_exponent(b),
                                .least_c = half_c ? -14 : -126,
                                .fraction = short_sum ? 13 : 25,
                                .result = half_d      ? RESULT_ODD
                                          : short_sum ? RESULT_SHORT
                                                      : RESULT_F32};
}

/* A product that is less than 2^-100 may lose bits in a float; all terms of such a sum need care then. */
static struct sum begin_sum(const struct tensor_rule *rule, uint32_t k, const struct side *a,
                            const struct side *b)
{
    const bool empty = a->largest == NO_EXPONENT || b->largest == NO_EXPONENT;
    return (struct sum){.rule = *rule,
                        .k = k,
                        .direct = empty ||
                                  (a->largest + b->largest <= 125 && a->least + b->least >= -100),
                        .special = a->special || b->special};
}

/* Elements become significands of their exponents, which take the scales' on: `scale[i]` is that of element
 * i. */
static void scale_side(struct side *s, uint32_t count, const int16_t *scale, uint32_t rows,
                       uint32_t k)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t power = (uint32_t)(BIAS - s->exponent[i]) << 23;
        const uint32_t row = rows ? i % rows : i / (SUMS * k) * SUMS + i % SUMS;
        float by;
        if (s->exponent[i] == NO_EXPONENT) continue;
        memcpy(&by, &power, sizeof by);
        s->value[i] *= by;
        s->exponent[i] += scale[row];
    }
}

void tensor_mma(const struct tensor_product *p)
{
    float a_value[TENSOR_PRODUCT_K * TENSOR_MAX_M], b_value[TENSOR_MAX_MN * TENSOR_PRODUCT_K];
    int32_t a_exponent[TENSOR_PRODUCT_K * TENSOR_MAX_M];
    int32_t b_exponent[TENSOR_MAX_MN * TENSOR_PRODUCT_K];
    struct side a = {.value = a_value, .exponent = a_exponent};
    struct side b = {.value = b_value, .exponent = b_exponent};
    for (uint32_t k = 0; k < p->k; k++)
        memcpy(a_value + (size_t)k * p->m, p->a + (size_t)k * p->a_stride, p->m * sizeof *a_value);
    for (uint32_t n = 0; n < p->n; n++)
        for (uint32_t k = 0; k < p->k; k++)
            b_value[(n / SUMS * p->k + k) * SUMS + n % SUMS] =
                p->b[(size_t)n * p->b_n + (size_t)k * p->b_k];
    DISPATCH(prepare, &a, a_value, p->m * p->k, p->rule.least_a);
    DISPATCH(prepare, &b, b_value, p->n * p->k, p->rule.least_b);
    struct sum s = begin_sum(&p->rule, p->k, &a, &b);
    if (p->a_scale) {
        s.direct = false;
        scale_side(&a, p->m * p->k, p->a_scale, p->m, 0);
        scale_side(&b, p->n * p->k, p->b_scale, 0, p->k);
    } else if (!s.direct) {
        DISPATCH(significands, &a, p->m * p->k);
        DISPATCH(significands, &b, p->n * p->k);
    }
    DISPATCH(mma, p, &s, &a, &b);
}

void tensor_wgmma(const struct tensor_fragments *p, const struct tensor_rule *rule)
{
    float a_value[TENSOR_PRODUCT_K * TENSOR_FRAGMENT], b_value[TENSOR_MAX_MN * TENSOR_PRODUCT_K];
    int32_t a_exponent[TENSOR_PRODUCT_K * TENSOR_FRAGMENT];
    int32_t b_exponent[TENSOR_MAX_MN * TENSOR_PRODUCT_K];
    struct side a = {.value = a_value, .exponent = a_exponent};
    struct side b = {.value = b_value, .exponent = b_exponent};
    DISPATCH(prepare, &a, p->a, p->k * TENSOR_FRAGMENT, rule->least_a);
    DISPATCH(prepare, &b, p->b, p->n * p->k, rule->least_b);
    struct sum s = begin_sum(rule, p->k, &a, &b);
    s.quad = true;
    if (!s.direct) {
        DISPATCH(significands, &a, p->k * TENSOR_FRAGMENT);
        DISPATCH(significands, &b, p->n * p->k);
    }
    DISPATCH(wgmma, p, &s, &a, &b);
}

uint16_t tensor_half_result(uint32_t bits)
{
    return (uint16_t)half_result(bits);
}

void tensor_pack_halves(const uint32_t *low, const uint32_t *high, uint32_t *to)
{
    DISPATCH(pack, low, high, to);
}

void tensor_wgmma_half(const struct tensor_fragments *p, const struct tensor_rule *rule)
{
    uint32_t wide[TENSOR_MAX_REGS][WARP_LANES], *wide_acc[TENSOR_MAX_REGS];
    const uint32_t regs = p->n / 4U;
    struct tensor_fragments sums = *p;
    sums.acc = wide_acc;
    for (uint32_t i = 0; i < TENSOR_MAX_REGS; i++) wide_acc[i] = wide[i];
    for (uint32_t r = 0; p->accumulate && r < regs; r++)
        DISPATCH(unpack, p->acc[r], wide[2 * r], wide[2 * r + 1]);
    tensor_wgmma(&sums, rule);
    for (uint32_t r = 0; r < regs; r++) tensor_pack_halves(wide[2 * r], wide[2 * r + 1], p->acc[r]);
}

void tensor_wgmma_integer(const struct tensor_fragments *p, bool saturate)
{
    DISPATCH(integers, p, saturate);
}

void tensor_widen(bool bf16, const uint16_t *src, uint32_t count, float *dst)
{
    DISPATCH(widen, bf16, src, count, dst);
}
