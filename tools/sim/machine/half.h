/* f16 and bf16 from and to float. */
#ifndef SIM_HALF_H
#define SIM_HALF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t float_pattern(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* The float pattern of a half; branch-free so that loops over it vectorise. No float subnormal arises
 * on the way, so a caller's flush-to-zero mode does no harm. */
static inline uint32_t half_bits(uint16_t h)
{
    const uint32_t sign = (h & 0x8000U) << 16, shifted = (h & 0x7FFFU) << 13;
    const uint32_t rebias = 112U << 23, top = 0x0F800000U; /* exponent of infinities and NaN */
    const uint32_t least = 113U << 23; /* 2^-14: a subnormal is (least | fraction) - least */
    const uint32_t special = (shifted & top) == top ? rebias : 0U;
    const uint32_t offset = least | shifted;
    float one, two;
    uint32_t tiny;
    memcpy(&one, &offset, sizeof one);
    memcpy(&two, &least, sizeof two);
    one -= two;
    memcpy(&tiny, &one, sizeof tiny);
    return ((shifted & top) ? shifted + rebias + special : tiny) | sign;
}

static inline float half_to_float(uint16_t h)
{
    return float_of(half_bits(h));
}

static inline float bf16_to_float(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

/* Rounds to nearest even; NaN gives 0x7FFF. */
static inline uint16_t float_to_half(float f)
{
    const uint32_t bits = float_pattern(f), sign = bits >> 16 & 0x8000U, magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return 0x7FFF;
    if (magnitude >= 0x477FF000U) return (uint16_t)(sign | 0x7C00U); /* 65520 and above */
    if (magnitude < 0x33000000U) return (uint16_t)sign;              /* below 2^-25 */
    const uint32_t exponent = magnitude >> 23;
    const bool normal = exponent >= 113U;
    const uint32_t fraction =
        normal ? magnitude - (112U << 23) : (magnitude & 0x7FFFFFU) | 0x800000U;
    const uint32_t drop = normal ? 13U : 126U - exponent;
    const uint32_t kept = fraction >> drop, rest = fraction & ((1U << drop) - 1U);
    const uint32_t tie = 1U << (drop - 1U);
    return (uint16_t)(sign | (kept + (rest > tie || (rest == tie && (kept & 1U)) ? 1U : 0U)));
}

/* The same for bf16. */
static inline uint16_t float_to_bf16(float f)
{
    const uint32_t bits = float_pattern(f);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return 0x7FFF;
    return (uint16_t)((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

#endif
