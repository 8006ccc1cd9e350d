/*
 * Values of hewn's dtypes as doubles, and rounding to them, vectorisable: to nearest even,
 * e4m3 saturating at 448; the others overflow to infinity. A number that becomes an integer is a value of
 * that type already. tests/attention/attention.c compares the 16-bit ones with harness.c's.
 */
#ifndef TESTS_ATTENTION_NUMBER_H
#define TESTS_ATTENTION_NUMBER_H

#include "hewn.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* A float format: fraction bits, exponent bits, exponent of the smallest normal, largest value;
 * 2^least, and 1.5 * 2^(52 + least - fraction): a sum with it keeps multiples of the smallest step. */
struct number_format {
    int fraction, exponent, least;
    double most, normal, anchor;
};

static inline struct number_format number_format(int dtype)
{
    switch (dtype) {
    case HEWN_F16: return (struct number_format){10, 5, -14, 65504.0, 0x1p-14, 0x1.8p28};
    case HEWN_BF16: return (struct number_format){7, 8, -126, 0x1.fep127, 0x1p-126, 0x1.8p-81};
    case HEWN_E4M3: return (struct number_format){3, 4, -6, 448.0, 0x1p-6, 0x1.8p43};
    case HEWN_E5M2: return (struct number_format){2, 5, -14, 57344.0, 0x1p-14, 0x1.8p36};
    default: return (struct number_format){23, 8, -126, 0x1.fffffep127, 0x1p-126, 0x1.8p-97};
    }
}

/* Nearest even, the range left alone: below 2^least to multiples of 2^(least - fraction). */
static inline double number_nearest(double x, const struct number_format *f)
{
    const int drop = 52 - f->fraction;
    if (fabs(x) < f->normal) return (x + f->anchor) - f->anchor;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += (UINT64_C(1) << (drop - 1)) - 1 + (bits >> drop & 1);
    bits &= ~((UINT64_C(1) << drop) - 1);
    memcpy(&x, &bits, sizeof bits);
    return x;
}

static inline int number_is_integer(int dtype)
{
    return dtype == HEWN_S8 || dtype == HEWN_S32;
}

static inline double number_round(int dtype, double x)
{
    const struct number_format f = number_format(dtype);
    if (number_is_integer(dtype) || isnan(x) || isinf(x)) return x;
    x = number_nearest(x, &f);
    if (fabs(x) <= f.most) return x;
    return copysign(dtype == HEWN_E4M3 ? f.most : (double)INFINITY, x);
}

/* Half the distance between values next to x. */
static inline double number_half_step(int dtype, double x)
{
    const struct number_format f = number_format(dtype);
    int e;
    if (number_is_integer(dtype)) return 0;
    frexp(x, &e);
    e = x == 0 || e - 1 < f.least ? f.least : e - 1;
    return ldexp(0.5, e - f.fraction);
}

static inline double number_load(int dtype, const void *at)
{
    const struct number_format f = number_format(dtype);
    uint32_t bits = 0;
    memcpy(&bits, at, hewn_dtype_size(dtype));
    if (dtype == HEWN_S8) return (double)(int8_t)bits;
    if (dtype == HEWN_S32) return (double)(int32_t)bits;
    if (dtype == HEWN_F32 || dtype == HEWN_BF16) {
        float value;
        if (dtype == HEWN_BF16) bits <<= 16;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    const uint32_t all = (1U << f.exponent) - 1, part = bits & ((1U << f.fraction) - 1);
    const uint32_t e = bits >> f.fraction & all;
    const double sign = bits >> (f.exponent + f.fraction) & 1 ? -1.0 : 1.0;
    if ((dtype == HEWN_F16 || dtype == HEWN_E5M2) && e == all)
        return part ? (double)NAN : sign * (double)INFINITY;
    if (dtype == HEWN_E4M3 && e == all && part == 7) return (double)NAN;
    if (e == 0) return sign * ldexp((double)part, f.least - f.fraction);
    return sign * ldexp((double)(part | 1U << f.fraction), f.least - f.fraction + (int)e - 1);
}

static inline void number_store(int dtype, double x, void *at)
{
    const struct number_format f = number_format(dtype);
    const double rounded = number_round(dtype, x);
    const uint32_t all = (1U << f.exponent) - 1;
    uint32_t bits;
    if (number_is_integer(dtype)) {
        bits = (uint32_t)(int32_t)x;
    } else if (dtype == HEWN_F32 || dtype == HEWN_BF16) {
        float value = (float)rounded;
        memcpy(&bits, &value, sizeof bits);
        if (dtype == HEWN_BF16) bits = isnan(x) ? 0x7FC0 : bits >> 16;
    } else {
        const double m = fabs(rounded);
        if (isnan(x)) {
            bits = dtype == HEWN_F16 ? 0x7E00 : dtype == HEWN_E5M2 ? 0x7E : 0x7F;
        } else if (isinf(m)) {
            bits = all << f.fraction; /* where there are any infinities */
        } else {
            int e;
            frexp(m, &e);
            e = m == 0 || e - 1 < f.least ? f.least : e - 1;
            /* the leading 1 of a normal adds one to the exponent field */
            bits = (uint32_t)ldexp(m, f.fraction - e) + ((uint32_t)(e - f.least) << f.fraction);
        }
        if (signbit(x)) bits |= 1U << (f.exponent + f.fraction);
    }
    memcpy(at, &bits, hewn_dtype_size(dtype));
}

#endif
