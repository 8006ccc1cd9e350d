/*
 * Values of the dtypes of attention as doubles, and rounding to them, vectorisable: to nearest even,
 * e4m3 saturating at 448. f32 and f16 outputs overflow to infinity. tests/attention.c compares the
 * 16-bit ones with harness.c's.
 */
#ifndef TESTS_ATTENTION_NUMBER_H
#define TESTS_ATTENTION_NUMBER_H

#include "hewn.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* A float format: fraction bits, exponent of the smallest normal, largest value. */
struct number_format {
    int fraction, least;
    double most;
};

static inline struct number_format number_format(int dtype)
{
    switch (dtype) {
    case HEWN_F16: return (struct number_format){10, -14, 65504.0};
    case HEWN_BF16: return (struct number_format){7, -126, 0x1.fep127};
    case HEWN_E4M3: return (struct number_format){3, -6, 448.0};
    default: return (struct number_format){23, -126, 0x1.fffffep127};
    }
}

/* Nearest even, the range left alone: below 2^least to multiples of 2^(least - fraction). */
static inline double number_nearest(double x, int fraction, int least)
{
    const int drop = 52 - fraction;
    const double magnitude = fabs(x), anchor = ldexp(1.5, 52 + least - fraction);
    if (magnitude < ldexp(1.0, least)) return (x + anchor) - anchor;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += (UINT64_C(1) << (drop - 1)) - 1 + (bits >> drop & 1);
    bits &= ~((UINT64_C(1) << drop) - 1);
    memcpy(&x, &bits, sizeof bits);
    return x;
}

static inline double number_round(int dtype, double x)
{
    const struct number_format f = number_format(dtype);
    if (isnan(x) || isinf(x)) return x;
    x = number_nearest(x, f.fraction, f.least);
    if (fabs(x) <= f.most) return x;
    return copysign(dtype == HEWN_E4M3 ? f.most : (double)INFINITY, x);
}

/* Half the distance between values next to x. */
static inline double number_half_step(int dtype, double x)
{
    const struct number_format f = number_format(dtype);
    int e;
    frexp(x, &e);
    e = x == 0 || e - 1 < f.least ? f.least : e - 1;
    return ldexp(0.5, e - f.fraction);
}

static inline double number_load(int dtype, const void *at)
{
    const struct number_format f = number_format(dtype);
    uint32_t bits = 0;
    memcpy(&bits, at, hewn_dtype_size(dtype));
    if (dtype == HEWN_F32 || dtype == HEWN_BF16) {
        float value;
        if (dtype == HEWN_BF16) bits <<= 16;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    const int width = dtype == HEWN_F16 ? 15 : 7, exponent = width - f.fraction;
    const uint32_t all = (1U << exponent) - 1, part = bits & ((1U << f.fraction) - 1);
    const uint32_t e = bits >> f.fraction & all;
    const double sign = bits >> width & 1 ? -1.0 : 1.0;
    if (dtype == HEWN_F16 && e == all) return part ? (double)NAN : sign * (double)INFINITY;
    if (dtype == HEWN_E4M3 && e == all && part == 7) return (double)NAN;
    if (e == 0) return sign * ldexp((double)part, f.least - f.fraction);
    return sign * ldexp((double)(part | 1U << f.fraction), f.least - f.fraction + (int)e - 1);
}

static inline void number_store(int dtype, double x, void *at)
{
    const struct number_format f = number_format(dtype);
    const double rounded = number_round(dtype, x);
    uint32_t bits;
    if (dtype == HEWN_F32 || dtype == HEWN_BF16) {
        float value = (float)rounded;
        memcpy(&bits, &value, sizeof bits);
        if (dtype == HEWN_BF16) bits = isnan(x) ? 0x7FC0 : bits >> 16;
    } else {
        const int width = dtype == HEWN_F16 ? 15 : 7;
        const double m = fabs(rounded);
        if (isnan(x)) {
            bits = dtype == HEWN_F16 ? 0x7E00 : 0x7F;
        } else if (isinf(m)) {
            bits = 0x7C00;
        } else {
            int e;
            frexp(m, &e);
            e = m == 0 || e - 1 < f.least ? f.least : e - 1;
            /* the leading 1 of a normal adds one to the exponent field */
            bits = (uint32_t)ldexp(m, f.fraction - e) + ((uint32_t)(e - f.least) << f.fraction);
        }
        if (signbit(x)) bits |= 1U << width;
    }
    memcpy(at, &bits, hewn_dtype_size(dtype));
}

#endif
