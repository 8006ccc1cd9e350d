/*
 * ex2, lg2 and rcp of f32 as an H200's function unit computes them, bit for bit: a table of segments,
 * a quadratic in what is left of the operand, sums cut off and not rounded. The form is that of Oberman
 * and Siu, "A High-Performance Area-Efficient Multifunction Interpolator" (ARITH 2005); coefficients,
 * constants and where bits are dropped are measured (interpolate.c).
 *
 *     C0 * 2^k + constant + C1 * x + C2 * square(x)        x: the operand's lower 17 (rcp: 16) bits
 *
 * The unit itself flushes subnormals both ways. What .f32 without .ftz adds around it is what ptxas
 * does: a scaling before and after.
 */
#ifndef SIM_INTERPOLATE_H
#define SIM_INTERPOLATE_H

#include "ops/fpbits.h"
#include "machine/lanes.h"

struct segment {
    int32_t c0, c1, c2;
};
extern const struct segment interpolate_ex2[64], interpolate_lg2[64], interpolate_rcp[128];

/* x * x / 2^19 of 17 bits, made of the partial products at 2^19 and above alone: what lies below gives
 * no carry. Of bit b these are its products with lower bits from 18 - b on, twice, and its square. */
LANE_INLINE int32_t truncated_square(uint32_t x)
{
    uint32_t sum = 0;
    for (uint32_t b = 10; b <= 16; b++) {
        uint32_t lower = (x & ((1U << b) - 1)) >> (18 - b), square = 1U << (2 * b - 19);
        sum += x >> b & 1U ? lower + square : 0;
    }
    return (int32_t)sum;
}

/* 2^f in [1, 2], units of 2^-23, of f in units of 2^-23. */
LANE_INLINE uint32_t ex2_mantissa(uint32_t f)
{
    const struct segment *s = &interpolate_ex2[f >> 17];
    const uint32_t x = f & 0x1FFFF;
    int64_t sum = (int64_t)s->c0 * 4096 + 2018 + (int64_t)s->c1 * (int64_t)x +
                  (int64_t)s->c2 * truncated_square(x); /* 2^-38 */
    return (uint32_t)(sum >> 15);
}

/* log2(1 + f), units of 2^-36, of f in units of 2^-23; 1 is not an exact case. */
LANE_INLINE int64_t lg2_mantissa(uint32_t f)
{
    const struct segment *s = &interpolate_lg2[f >> 17];
    const uint32_t x = f & 0x1FFFF;
    int64_t sum = (int64_t)s->c0 * 4096 + 837 + (int64_t)s->c1 * (int64_t)x +
                  (int64_t)s->c2 * 2 * truncated_square(x); /* 2^-38 */
    return sum >> 2;
}

/* 1 / (1 + f) in (1/2, 1], units of 2^-24, of f in units of 2^-23. */
LANE_INLINE uint32_t rcp_mantissa(uint32_t f)
{
    const struct segment *s = &interpolate_rcp[f >> 16];
    const uint32_t x = f & 0xFFFF;
    int64_t sum = (int64_t)s->c0 * 8192 + 2023 + (int64_t)s->c1 * (int64_t)x +
                  (int64_t)s->c2 * truncated_square(2 * x); /* 2^-39 */
    return (uint32_t)(sum >> 15);
}

/* A sign, a biased exponent of any size and a mantissa in [2^23, 2^24]; no subnormals. */
LANE_INLINE float interpolated(uint32_t sign, int32_t exponent, uint32_t mantissa)
{
    exponent += (int32_t)(mantissa >> 24);
    uint32_t bits = (uint32_t)exponent << 23 | (mantissa & 0x7FFFFF);
    bits = exponent >= 255 ? F32_INFINITY_BITS : bits;
    bits = exponent <= 0 ? 0 : bits;
    return f32_from(sign | bits);
}

/* The operand in fixed point with 23 bits of fraction, cut off; of a negative one the complement, a last
 * place short of negation, unless it is an integer then. */
LANE_INLINE float unit_ex2(float a)
{
    const uint32_t bits = f32_bits(a);
    const float size = fabsf(a) < 200 ? fabsf(a) : 200.0f; /* NaN too */
    const int32_t cut = (int32_t)((double)size * 0x1p23);
    const int32_t negative = cut & 0x7FFFFF ? ~cut : -cut;
    const int32_t fixed = bits >> 31 ? negative : cut;
    float r = interpolated(0, (fixed >> 23) + 127, ex2_mantissa((uint32_t)fixed & 0x7FFFFF));
    return a == a ? r : f32_from(F32_NAN_BITS);
}

/* Exponent and fraction in one sum; a negative one is complemented, which is a last place short of
 * negation, and cut off to f32. */
LANE_INLINE float unit_lg2(float a)
{
    const uint32_t bits = f32_bits(f32_flush(a));
    const int64_t exponent = (int64_t)(bits >> 23 & 255) - 127;
    const int64_t sum = exponent * ((int64_t)1 << 36) + lg2_mantissa(bits & 0x7FFFFF);
    const double size = (double)(sum < 0 ? ~sum : sum) * 0x1p-36;
    float r = f64_to_f32(size, ROUND_ZERO);
    r = sum < 0 ? -r : r;
    r = bits == 0x3F800000 ? 0.0f : r;
    r = bits == F32_INFINITY_BITS ? a : r;
    r = (bits & 0x7FFFFFFF) == 0 ? -f32_from(F32_INFINITY_BITS) : r;
    return a != a || (bits >> 31 && bits << 1) ? f32_from(F32_NAN_BITS) : r;
}

LANE_INLINE float unit_rcp(float a)
{
    const uint32_t bits = f32_bits(f32_flush(a)), sign = bits & 0x80000000U;
    const int32_t exponent = (int32_t)(bits >> 23 & 255);
    float r = interpolated(sign, 253 - exponent, rcp_mantissa(bits & 0x7FFFFF));
    r = exponent == 0 ? f32_from(sign | F32_INFINITY_BITS) : r;
    r = exponent == 255 ? f32_from(sign) : r;
    return a == a ? r : f32_from(F32_NAN_BITS);
}

/* ---- as ptxas surrounds them ---- */

LANE_INLINE float approx_ex2(float a, bool ftz)
{
    const bool small = !ftz & (a < -126);
    const float r = unit_ex2(small ? a * 0.5f : a);
    return small ? r * r : r;
}

LANE_INLINE float approx_lg2(float a, bool ftz)
{
    const bool small = !ftz & (fabsf(a) < 0x1p-126f);
    const float r = unit_lg2(small ? a * 0x1p24f : a);
    return small ? r - 24 : r;
}

LANE_INLINE float approx_rcp(float a, bool ftz)
{
    float scale = fabsf(a) < 0x1p-126f ? 0x1p24f : 1.0f;
    scale = fabsf(a) > 0x1p126f ? 0.25f : scale;
    scale = ftz ? 1.0f : scale;
    return unit_rcp(a * scale) * scale;
}

/* The quotient is a product with the reciprocal; `full`: of large divisors too. */
LANE_INLINE float approx_div(float a, float b, bool ftz, bool full)
{
    const bool small = !ftz & (fabsf(b) < 0x1p-126f), large = full & (fabsf(b) > 0x1p126f);
    const float scale = small ? 0x1p24f : large ? 0.25f : 1.0f;
    const float scaled = a * scale;
    return (ftz ? f32_flush(scaled) : scaled) * unit_rcp(b * scale);
}

#endif
