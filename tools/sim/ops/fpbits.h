/*
 * Floating-point formats as bits, in forms the compiler vectorises: f16 and bf16 from and to f32,
 * flushing of subnormals, and rounding to odd.
 *
 * Rounding to odd (inexact results get their last bit set) makes a wider intermediate safe:
 * rounding it again to a format at least two bits narrower gives what one rounding of the exact
 * value would. So f16 and bf16 results, and the directed modes of f32, come from double arithmetic
 * exactly.
 */
#ifndef SIM_FPBITS_H
#define SIM_FPBITS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FP_INLINE static inline __attribute__((always_inline))

/* What arithmetic makes of NaN operands and of invalid operations; f64 keeps the sign and payload of a
 * NaN operand and has its own for invalid operations alone. */
#define F32_NAN_BITS 0x7FFFFFFFU
#define F32_INFINITY_BITS 0x7F800000U
#define F64_NAN_BITS 0xFFF8000000000000ULL
#define F16_NAN_BITS 0x7FFFU /* and bf16's */

enum round_mode { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP, ROUND_AWAY };

FP_INLINE uint32_t f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

FP_INLINE float f32_from(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

FP_INLINE uint64_t f64_bits(double d)
{
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}

FP_INLINE double f64_from(uint64_t u)
{
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

FP_INLINE float f32_canonical(float f)
{
    return f != f ? f32_from(F32_NAN_BITS) : f;
}

FP_INLINE double f64_quiet(double nan)
{
    return f64_from(f64_bits(nan) | 0x0008000000000000ULL);
}

/* r, unless it is NaN: then the operand that is NaN, made quiet, b before c before a (as an H200 has
 * it), or the NaN of invalid operations. Operands a form lacks are 0. */
FP_INLINE double f64_result(double r, double a, double b, double c)
{
    const double nan = b != b ? b : c != c ? c : a;
    return r == r ? r : nan != nan ? f64_quiet(nan) : f64_from(F64_NAN_BITS);
}

/* Subnormals become zero of their sign. */
FP_INLINE float f32_flush(float f)
{
    uint32_t u = f32_bits(f);
    return f32_from((u & 0x7F800000U) == 0 ? u & 0x80000000U : u);
}

FP_INLINE uint16_t f16_flush(uint16_t h)
{
    return (uint16_t)((h & 0x7C00U) == 0 ? h & 0x8000U : h);
}

/* ---- to f32, exact ---- */

FP_INLINE float f16_to_f32(uint16_t h)
{
    /* The exponent's bias differs by 112; the product is exact for subnormals too. */
    uint32_t magnitude = f32_bits(f32_from((h & 0x7FFFU) << 13) * 0x1p112f);
    if ((h & 0x7C00U) == 0x7C00U) magnitude |= 0x7F800000U;
    return f32_from(magnitude | (h & 0x8000U) << 16);
}

FP_INLINE float bf16_to_f32(uint16_t h)
{
    return f32_from((uint32_t)h << 16);
}

/* ---- from f32, to nearest even; NaN becomes the canonical one ---- */

FP_INLINE uint16_t f32_to_f16(float f)
{
    uint32_t u = f32_bits(f), sign = u >> 16 & 0x8000U, a = u & 0x7FFFFFFFU;
    /* Adding 0.5 aligns a subnormal result's last bit with the sum's. */
    uint32_t small = f32_bits(f32_from(a) + 0.5f) - 0x3F000000U;
    uint32_t normal = (a + 0xFFFU + (a >> 13 & 1U) - 0x38000000U) >> 13;
    uint32_t r = a < 0x38800000U ? small : normal;
    r = a >= 0x477FF000U ? 0x7C00U : r;
    r = r | sign;
    return (uint16_t)(a > 0x7F800000U ? F16_NAN_BITS : r);
}

FP_INLINE uint16_t f32_to_bf16(float f)
{
    uint32_t u = f32_bits(f), r = (u + 0x7FFFU + (u >> 16 & 1U)) >> 16;
    return (uint16_t)((u & 0x7FFFFFFFU) > 0x7F800000U ? F16_NAN_BITS : r);
}

/* ---- rounding to odd ---- */

/* The exact value is s + e with |e| below half an ulp of s; NaN and infinity pass. */
FP_INLINE double f64_odd(double s, double e)
{
    uint64_t u = f64_bits(s), inexact = (uint64_t)((e < 0) | (e > 0));
    u -= inexact & (uint64_t)((e < 0) == (s > 0));
    return f64_from(u | inexact);
}

/* a + b. The error of the rounded sum is exact (Knuth's two-sum). */
FP_INLINE double f64_add_odd(double a, double b)
{
    double s = a + b, t = s - a;
    return f64_odd(s, (a - (s - t)) + (b - t));
}

FP_INLINE float f64_to_f32_odd(double d)
{
    float f = (float)d;
    uint32_t u = f32_bits(f), inexact = (uint32_t)((d < (double)f) | (d > (double)f));
    u -= (uint32_t)(fabs((double)f) > fabs(d));
    return f32_from(u | inexact);
}

/* Rounds d, itself exact or rounded to odd. */
FP_INLINE float f64_to_f32(double d, enum round_mode mode)
{
    float f = (float)d;
    uint32_t u = f32_bits(f), above = (double)f > d, below = (double)f < d, negative = u >> 31;
    if (mode == ROUND_ZERO) u -= negative ? below : above;
    if (mode == ROUND_DOWN) u = negative ? u + above : u - above;
    if (mode == ROUND_UP) u = negative ? u - below : u + below;
    return f32_from(u);
}

/* ---- functions that f32, f16 and bf16 share ---- */

/* -0 is below +0; a NaN gives way to a number unless `keep_nan`. */
FP_INLINE float f32_min(float a, float b, bool keep_nan)
{
    float r = a < b ? a : b;
    r = a == b ? f32_from(f32_bits(a) | f32_bits(b)) : r;
    r = b != b ? a : r;
    r = a != a ? b : r;
    r = (keep_nan & ((a != a) | (b != b))) ? f32_from(F32_NAN_BITS) : r;
    return f32_canonical(r);
}

FP_INLINE float f32_max(float a, float b, bool keep_nan)
{
    float r = a > b ? a : b;
    r = a == b ? f32_from(f32_bits(a) & f32_bits(b)) : r;
    r = b != b ? a : r;
    r = a != a ? b : r;
    r = (keep_nan & ((a != a) | (b != b))) ? f32_from(F32_NAN_BITS) : r;
    return f32_canonical(r);
}

/* 2^x for x of f32's range, to about 2e-13: a polynomial, as a library's may differ by machine. */
FP_INLINE double f64_exp2(double x)
{
    /* ln(2)^k / k! */
    static const double c[] = {1.0,
                               0x1.62e42fefa39efp-1,
                               0x1.ebfbdff82c58ep-3,
                               0x1.c6b08d704a0bfp-5,
                               0x1.3b2ab6fba4e77p-7,
                               0x1.5d87fe78a6730p-10,
                               0x1.430912f86c786p-13,
                               0x1.ffcbfc588b0c5p-17,
                               0x1.62c0223a5c822p-20,
                               0x1.b5253d395e7c1p-24,
                               0x1.e4cf5158b8ec7p-28};
    /* Beyond these the f32 result is 0 or infinite; NaN fails both tests and passes through. */
    double clamped = x < -200 ? -200 : x, magic = 0x1.8p52, n, f, r;
    clamped = clamped > 200 ? 200 : clamped;
    n = clamped + magic; /* the integer in its low bits */
    f = clamped - (n - magic);
    r = c[10];
    for (int i = 9; i >= 0; i--) r = r * f + c[i];
    return r * f64_from((f64_bits(n) + 1023) << 52);
}

#endif
