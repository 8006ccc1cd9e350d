#include "golden_operand.h"

#include <math.h>
#include <string.h>

const char *const pattern_names[PATTERNS] = {"uniform",    "wide exponents", "cancellation",
                                             "subnormals", "specials",       "ends of range"};

double draw(struct rng *r, enum pattern p, uint32_t step, double *last)
{
    double v = (double)rng_unit(r);
    switch (p) {
    case WIDE: return ldexp(v, (int)rng_below(r, 24) - 14);
    case CANCEL:
        if (step % 2) return -*last * (rng_below(r, 4) ? 1.0 : 1.0 + 0x1p-7);
        return *last = ldexp(v, (int)rng_below(r, 10) - 2);
    case TINY: return ldexp(v, -10 - (int)rng_below(r, 14));
    case SPECIAL:
        switch (rng_below(r, 96)) {
        case 0: return INFINITY;
        case 1: return -INFINITY;
        case 2: return NAN;
        default: return v;
        }
    default: return v;
    }
}

/* Nearest code of an 8-bit float with `exponent` exponent bits; e4m3 has no infinities. */
static uint8_t float8(double v, int exponent)
{
    int fraction = 7 - exponent, bias = (1 << (exponent - 1)) - 1, e;
    double top = exponent == 4 ? 448 : 57344, m = fabs(v);
    uint8_t sign = signbit(v) ? 0x80 : 0;
    if (isnan(v)) return 0x7F;
    if (isinf(v) && exponent == 5) return sign | 0x7C;
    if (m > top) m = top;
    if (m == 0) return sign;
    frexp(m, &e);
    e = e - 1 < 1 - bias ? 1 - bias : e - 1;
    int steps = (int)nearbyint(ldexp(m, fraction - e));
    return (uint8_t)(sign | (((e + bias - 1) << fraction) + steps));
}

uint32_t encode(const char *type, double v)
{
    float f = (float)v;
    uint32_t u;
    if (!strcmp(type, "f16")) return double_to_f16(v);
    if (!strcmp(type, "bf16")) return double_to_bf16(v);
    if (!strcmp(type, "e4m3")) return float8(v, 4);
    if (!strcmp(type, "e5m2")) return float8(v, 5);
    if (!strcmp(type, "s8"))
        return (uint8_t)(int8_t)(isfinite(v) ? fmax(-128, fmin(127, v * 128)) : 127);
    if (!strcmp(type, "u8")) return (uint8_t)(isfinite(v) ? fmin(255, fabs(v) * 255) : 255);
    if (!strcmp(type, "s4"))
        return 15U & (uint32_t)(int32_t)fmax(-8, fmin(7, isfinite(v) ? v * 8 : 7));
    if (!strcmp(type, "u4")) return isfinite(v) ? (uint32_t)fmin(15, fabs(v) * 15) : 15U;
    if (!strcmp(type, "b1")) return v > 0;
    memcpy(&u, &f, sizeof u);
    return isnan(v) ? 0x7FFFFFFF : u; /* tf32, f32 */
}

uint32_t type_bits(const char *type)
{
    if (!strcmp(type, "b1")) return 1;
    if (!strcmp(type, "s4") || !strcmp(type, "u4")) return 4;
    if (!strcmp(type, "tf32") || !strcmp(type, "f32") || !strcmp(type, "s32")) return 32;
    if (!strcmp(type, "f64")) return 64;
    return !strcmp(type, "f16") || !strcmp(type, "bf16") ? 16 : 8;
}

uint32_t type_bytes(const char *type)
{
    return type_bits(type) / 8;
}

uint32_t draw_sum(struct rng *r, const char *type, enum pattern p)
{
    double last = 0, v = draw(r, p == CANCEL ? UNIFORM : p, 0, &last);
    if (p == EXTREME) {
        bool half = !strcmp(type, "f16");
        switch (rng_below(r, 3)) {
        case 0: v = ldexp(v, (half ? 16 : 128) - (int)rng_below(r, 8)); break;
        case 1: v = ldexp(v, (half ? -14 : -126) - (int)rng_below(r, half ? 8 : 20)); break;
        default: v = ldexp(v, (int)rng_below(r, 24) - 12); break;
        }
    }
    if (!strcmp(type, "s32")) {
        uint32_t word = (uint32_t)rng_next(r);
        return word >> rng_below(r, 16);
    }
    if (!strcmp(type, "f16"))
        return (uint32_t)double_to_f16(v) | (uint32_t)double_to_f16(draw(r, p, 0, &last)) << 16;
    return encode("f32", v);
}

static int type_reach(const char *type)
{
    if (!strcmp(type, "e4m3")) return 8;
    return !strcmp(type, "f16") || !strcmp(type, "e5m2") ? 15 : 63;
}

int draw_scale(struct rng *r, const char *type)
{
    int reach = type_reach(type);
    if (rng_below(r, 2)) return reach - (int)rng_below(r, (uint32_t)reach / 8 + 1);
    return -reach - (int)rng_below(r, (uint32_t)reach / 4 + 1);
}

uint32_t draw_register(struct rng *r, const char *type, enum pattern p, double *last)
{
    uint32_t bits = type_bits(type), word = 0;
    int scale = p == EXTREME ? draw_scale(r, type) : 0;
    for (uint32_t i = 0; i < 32 / bits; i++)
        word |= encode(type, ldexp(draw(r, p, i, last), scale)) << bits * i;
    return word;
}

void set_case(struct golden_case *c, const char *d)
{
    c->rule = GOLDEN_BITS;
    c->floating = strcmp(d, "s32") != 0;
    c->element = type_bytes(d);
}

uint64_t draw_f64(struct rng *r, enum pattern p, uint32_t step, double *last)
{
    double v = draw(r, p == TINY ? UNIFORM : p, step, last);
    uint64_t bits;
    v *= 1 + ldexp((double)rng_unit(r), -24); /* all 53 bits */
    if (p == TINY) v = ldexp(v, -500 - (int)rng_below(r, 60));
    if (p == EXTREME)
        v = ldexp(v, (int)rng_below(r, 2) ? 480 + (int)rng_below(r, 32) : -(int)rng_below(r, 540));
    if (p == WIDE) v = ldexp(v, (int)rng_below(r, 40) - 20);
    memcpy(&bits, &v, sizeof bits);
    return isnan(v) ? bits | rng_below(r, 1 << 20) : bits;
}

uint32_t draw_limit(struct rng *r, uint32_t around)
{
    const uint32_t end = 0x7FFFFFFFU + rng_below(r, 2);
    return end + rng_below(r, around) - around / 2;
}

uint32_t draw_metadata(struct rng *r, bool halves, bool ordered)
{
    uint32_t word = 0;
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t first = rng_below(r, 4), second = (first + 1 + rng_below(r, 3)) % 4;
        if (ordered && first > second) {
            uint32_t t = first;
            first = second;
            second = t;
        }
        word |= (halves ? (rng_below(r, 2) ? 14U : 4U) : first | second << 2) << 4 * i;
    }
    return word;
}
