/*
 * cvt. A conversion has three steps, each a loop over the lanes: operand to a common form (64-bit
 * integer, or double, which holds every floating type exactly), that to the destination's type, and
 * the result to the register. The conversions of inner loops (to f16x2 and bf16x2, between f32 and
 * the 16-bit formats or 32-bit integers) have bodies of their own.
 */
#include "ops/fpflags.h"
#include "machine/lanes.h"

#include <stdlib.h>

/* ---- floating formats narrower than f64: any rounding mode, from an exact or odd double ---- */

struct fp_format {
    uint8_t mantissa, exponent; /* bits */
    bool infinite;              /* all-ones exponents mean infinity and NaN */
    uint32_t nan, max;          /* NaN, and the largest finite number */
};

static const struct fp_format format_f16 = {10, 5, true, F16_NAN_BITS, 0x7BFF},
                              format_bf16 = {7, 8, true, F16_NAN_BITS, 0x7F7F},
                              format_tf32 = {10, 8, true, 0x3FFFF, 0x3FBFF},
                              format_e4m3 = {3, 4, false, 0x7F, 0x7E},
                              format_e5m2 = {2, 5, true, 0x7F, 0x7B},
                              /* without NaN: one becomes the largest number (PTX ISA "cvt") */
    format_e2m3 = {3, 2, false, 0x1F, 0x1F}, format_e3m2 = {2, 3, false, 0x1F, 0x1F},
                              format_e2m1 = {1, 2, false, 0x7, 0x7};

/* 1 when the magnitude `kept` with `rest` of `unit` below its last bit is to be raised by one. */
static uint64_t round_increment(uint64_t kept, uint64_t rest, uint64_t unit, bool negative,
                                enum round_mode mode)
{
    switch (mode) {
    case ROUND_ZERO: return 0;
    case ROUND_DOWN: return negative && rest;
    case ROUND_UP: return !negative && rest;
    case ROUND_AWAY: return 2 * rest >= unit;
    default: return 2 * rest > unit || (2 * rest == unit && (kept & 1));
    }
}

/* The bits of d in the format. `finite`: too large gives the largest number, not infinity. */
static uint32_t fp_encode(double d, const struct fp_format *f, enum round_mode mode, bool finite)
{
    uint64_t u = f64_bits(d), mantissa = u & 0xFFFFFFFFFFFFFULL, kept, unit;
    int exponent = (int)(u >> 52 & 0x7FF) - 1023, bias = (1 << (f->exponent - 1)) - 1;
    int drop = 52 - f->mantissa, biased = exponent + bias;
    uint32_t negative = (uint32_t)(u >> 63);
    uint32_t sign = negative << (f->mantissa + f->exponent), r;
    if (d != d) return f->nan;
    if (exponent == -1023) return sign | (mode == (negative ? ROUND_DOWN : ROUND_UP) && mantissa);
    mantissa |= 1ULL << 52;
    if (biased < 1) { /* subnormal: shift further */
        drop += 1 - biased;
        biased = 1;
        if (drop > 60) drop = 60; /* all of it lies below half a unit */
    }
    unit = 1ULL << drop;
    kept = mantissa >> drop;
    kept += round_increment(kept, mantissa & (unit - 1), unit, negative, mode);
    /* A carry out of the mantissa raises the exponent; the hidden bit adds one to it. */
    if (biased > 1 << f->exponent) biased = 1 << f->exponent;
    r = (uint32_t)((uint64_t)(biased - 1) << f->mantissa) + (uint32_t)kept;
    if (r > f->max) {
        bool toward_zero = mode == ROUND_ZERO || mode == (negative ? ROUND_UP : ROUND_DOWN);
        bool exact = exponent == 1024; /* infinity itself */
        if (finite || (toward_zero && !exact))
            r = f->max;
        else
            r = f->infinite ? f->max + 1 : f->nan;
    }
    return sign | r;
}

static double fp_decode(uint32_t v, const struct fp_format *f)
{
    uint32_t magnitude = v & ((1U << (f->mantissa + f->exponent)) - 1);
    int exponent = (int)(magnitude >> f->mantissa), bias = (1 << (f->exponent - 1)) - 1;
    double mantissa = magnitude & ((1U << f->mantissa) - 1), r;
    if (!f->infinite && magnitude == f->nan && f->nan != f->max)
        r = (double)NAN;
    else if (f->infinite && magnitude > f->max)
        r = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        r = ldexp(mantissa, 1 - bias - f->mantissa);
    else
        r = ldexp(mantissa + (1U << f->mantissa), exponent - bias - f->mantissa);
    return v >> (f->mantissa + f->exponent) & 1 ? -r : r;
}

/* ---- step 1: operand to integer or double ---- */

static bool is_float(enum ptx_type type)
{
    return ptx_type_kind(type) == 'f';
}

/* Sign- or zero-extended low `bits` of a wider register. */
static uint64_t narrow(uint64_t v, uint32_t bits, bool is_signed)
{
    uint32_t up = 64 - bits;
    return is_signed ? (uint64_t)((int64_t)(v << up) >> up) : v << up >> up;
}

/* (On an H200 .ftz does not flush the f32 operand of a conversion to f16.) */
static double float_value(uint64_t v, enum ptx_type type, bool ftz)
{
    switch (type) {
    case T_F16: return f16_to_f32((uint16_t)v);
    case T_BF16: return bf16_to_f32((uint16_t)v);
    case T_F64: return f64_from(v);
    default: return ftz ? f32_flush(f32_from((uint32_t)v)) : f32_from((uint32_t)v);
    }
}

/* ---- step 2 ---- */

static double round_whole(double d, enum round_mode mode)
{
    switch (mode) {
    case ROUND_ZERO: return trunc(d);
    case ROUND_DOWN: return floor(d);
    case ROUND_UP: return ceil(d);
    default: return nearbyint(d);
    }
}

/* Clamped to the type's range. NaN becomes 0 (PTX ISA "cvt"), but the top bit alone where source or
 * destination have 64 bits: an H200 does so. */
static uint64_t float_to_int(double d, enum ptx_type type, enum ptx_type from, enum round_mode mode)
{
    uint32_t bits = ptx_type_bits(type);
    double limit = ldexp(1.0, (int)bits);
    if (d != d) return bits == 64 || from == T_F64 ? 1ULL << (bits - 1) : 0;
    d = round_whole(d, mode);
    if (ptx_type_kind(type) != 's') {
        if (d <= 0) return 0;
        return d >= limit ? UINT64_MAX >> (64 - bits) : (uint64_t)d;
    }
    limit /= 2;
    if (d >= limit) return UINT64_MAX >> (65 - bits);
    if (d < -limit) d = -limit;
    return (uint64_t)(int64_t)d;
}

static uint64_t clamp_int(uint64_t v, enum ptx_type from, enum ptx_type to)
{
    uint32_t bits = ptx_type_bits(to);
    bool negative = ptx_type_kind(from) == 's' && (int64_t)v < 0;
    if (ptx_type_kind(to) == 's') {
        uint64_t top = UINT64_MAX >> (65 - bits);
        if (!negative) return v > top ? top : v;
        return (int64_t)v < -(int64_t)top - 1 ? ~top : v;
    }
    if (negative) return 0;
    return v > UINT64_MAX >> (64 - bits) ? UINT64_MAX >> (64 - bits) : v;
}

/* A 64-bit magnitude as a double, its last bit set when bits were lost. */
static double magnitude_odd(uint64_t v)
{
    if (v < 1ULL << 53) return (double)v;
    return (double)(v >> 11 | ((v & 2047) != 0)) * 2048.0;
}

/* The same in f64 by any mode: to nearest by the host, then a step where that went the wrong
 * way. */
static double magnitude_by(uint64_t v, bool negative, enum round_mode mode)
{
    double r = (double)v;
    bool above = r >= 0x1p64 || (uint64_t)r > v, below = !above && (uint64_t)r < v;
    bool down = mode == ROUND_ZERO || mode == (negative ? ROUND_UP : ROUND_DOWN);
    bool up = mode == (negative ? ROUND_DOWN : ROUND_UP);
    if (down && above) return f64_from(f64_bits(r) - 1);
    return up && below ? f64_from(f64_bits(r) + 1) : r;
}

static double int_to_double(uint64_t v, enum ptx_type from, enum ptx_type to, enum round_mode mode)
{
    bool negative = ptx_type_kind(from) == 's' && (int64_t)v < 0;
    uint64_t magnitude = negative ? 0 - v : v;
    double d = to == T_F64 ? magnitude_by(magnitude, negative, mode) : magnitude_odd(magnitude);
    return negative ? -d : d;
}

/* Bits of `d`, exact or rounded to odd, in a floating type. */
static uint64_t double_to_type(double d, enum ptx_type type, uint32_t flags)
{
    enum round_mode mode = flags_round(flags);
    bool finite = flags & FLAG_SATFINITE;
    if ((flags & FLAG_RELU) && d <= 0) d = 0;
    if (flags & FLAG_SAT) d = d > 0 ? (d > 1 ? 1 : d) : 0;
    switch (type) {
    case T_F16: return fp_encode(d, &format_f16, mode, finite);
    case T_BF16: return fp_encode(d, &format_bf16, mode, finite);
    case T_F64: return f64_bits(f64_result(d, d, 0, 0));
    default: return f32_bits(flags_in(f32_canonical(f64_to_f32(d, mode)), flags & FLAG_FTZ));
    }
}

/* A NaN of f64 keeps its sign and what fits of its payload, and becomes quiet. */
static uint64_t narrow_nan(double nan, enum ptx_type type)
{
    const uint64_t u = f64_bits(f64_quiet(nan));
    switch (type) {
    case T_F16: return (u >> 48 & 0x8000U) | 0x7C00U | (u >> 42 & 0x3FFU);
    case T_BF16: return (u >> 48 & 0x8000U) | 0x7F80U | (u >> 45 & 0x7FU);
    default: return (u >> 32 & 0x80000000U) | 0x7F800000U | (u >> 29 & 0x7FFFFFU);
    }
}

/* ---- the general conversion: type = destination, type2 = source ---- */

enum { CVT_WHOLE = 128 }; /* .rni and its kin between floating types: to an integral value */

/* What moves no rounding may change moves NaNs too (an H200 does so): a type to itself, and bf16 to f32,
 * of which it is the upper half. */
static bool nan_passes(enum ptx_type to, enum ptx_type from, uint32_t flags)
{
    if (flags & (FLAG_SAT | FLAG_FTZ | CVT_WHOLE)) return false;
    return (to == from && (to == T_F32 || to == T_F64)) || (to == T_F32 && from == T_BF16);
}

static uint64_t convert(uint64_t v, enum ptx_type to, enum ptx_type from, uint32_t flags)
{
    double d;
    if (!is_float(from)) {
        v = narrow(v, ptx_type_bits(from), ptx_type_kind(from) == 's');
        if (is_float(to))
            return double_to_type(int_to_double(v, from, to, flags_round(flags)), to, flags);
        return flags & FLAG_SAT ? clamp_int(v, from, to) : v;
    }
    d = float_value(v, from, (flags & FLAG_FTZ) && to != T_F16);
    if (d != d && is_float(to) && nan_passes(to, from, flags)) return from == T_BF16 ? v << 16 : v;
    if (d != d && from == T_F32 && to == T_F64 &&
        (flags & (FLAG_FTZ | FLAG_SAT)) == FLAG_FTZ) /* flushed as an f32 first */
        return f64_bits(f32_from(F32_NAN_BITS));
    if (!is_float(to)) return float_to_int(d, to, from, flags_round(flags));
    if (d != d && from == T_F64 && to != T_F64 && !(flags & (FLAG_SAT | FLAG_RELU)))
        return narrow_nan(d, to);
    if (flags & CVT_WHOLE) d = round_whole(d, flags_round(flags));
    return double_to_type(d, to, flags);
}

static enum step cvt(struct warp *w, const struct insn *in, uint32_t mask)
{
    enum ptx_type to = (enum ptx_type)in->type, from = (enum ptx_type)in->type2;
    bool extend = ptx_type_kind(to) == 's';
    uint32_t bits = ptx_type_bits(to);
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask);
        uint64_t v = convert(arg_lane(w, in->arg[1], l), to, from, in->flags);
        arg_set_lane(w, in->arg[0], l, narrow(v, bits, extend));
    }
    return STEP_NEXT;
}

/* ---- bodies for the usual pairs, where registers are as wide as their types ---- */

LANE_OP1(cvt_f32_f16, float, uint16_t, f32_canonical(f16_to_f32(a)))
LANE_OP1(cvt_f32_bf16, uint32_t, uint16_t, (uint32_t)a << 16) /* NaN as it is */
LANE_OP1(cvt_f16_f32, uint16_t, float, f32_to_f16(a))
LANE_OP1(cvt_bf16_f32, uint16_t, float, f32_to_bf16(a))
LANE_OP1(cvt_f32_s32, float, int32_t, a)
LANE_OP1(cvt_f32_u32, float, uint32_t, a)
LANE_OP1(cvt_f32_s16, float, int16_t, a)
LANE_OP1(cvt_f32_u16, float, uint16_t, a)
LANE_OP1(cvt_f64_s32, double, int32_t, a)
LANE_OP1(cvt_f64_u32, double, uint32_t, a)
LANE_OP1(cvt_f64_f32, double, float, f64_result(a, a, 0, 0))
LANE_OP1(cvt_64_u32, uint64_t, uint32_t, a)
LANE_OP1(cvt_64_s32, uint64_t, int32_t, (int64_t)a)
LANE_OP1(cvt_32_64, uint32_t, uint64_t, a)
LANE_OP1(cvt_32_u16, uint32_t, uint16_t, a)
LANE_OP1(cvt_32_s16, uint32_t, int16_t, (int32_t)a)
LANE_OP1(cvt_16_32, uint16_t, uint32_t, a)

/* Clamped in double, where every 32-bit integer is exact. */
LANE_INLINE double clamp_between(double d, double low, double high)
{
    d = d != d ? 0 : d;
    d = d < low ? low : d;
    return d > high ? high : d;
}

LANE_INLINE double nearest_whole(double d)
{
    return (d + 0x1.8p52) - 0x1.8p52;
}

LANE_OP1(cvt_rzi_s32, int32_t, float, (int32_t)clamp_between(a, INT32_MIN, INT32_MAX))
LANE_OP1(cvt_rni_s32, int32_t, float,
         (int32_t)nearest_whole(clamp_between(a, INT32_MIN, INT32_MAX)))
LANE_OP1(cvt_rzi_u32, uint32_t, float, (int64_t)clamp_between(a, 0, UINT32_MAX))

/* f32 to f32: to [0, 1], and to integral values. */
LANE_OP1(cvt_sat_f32, float, float, a > 0 ? (a > 1 ? 1.0f : a) : 0.0f)
LANE_OP1(cvt_rni_f32, float, float, f32_canonical(__builtin_nearbyintf(a)))
LANE_OP1(cvt_rzi_f32, float, float, f32_canonical(__builtin_truncf(a)))
LANE_OP1(cvt_rmi_f32, float, float, f32_canonical(__builtin_floorf(a)))
LANE_OP1(cvt_rpi_f32, float, float, f32_canonical(__builtin_ceilf(a)))

static const struct lane_op *whole_f32(const struct decoder *dc)
{
    if (mod_is(dc, 0, "rni")) return &cvt_rni_f32;
    if (mod_is(dc, 0, "rzi")) return &cvt_rzi_f32;
    return mod_is(dc, 0, "rmi") ? &cvt_rmi_f32 : &cvt_rpi_f32;
}

static const struct {
    enum ptx_type to, from;
    const struct lane_op *op;
} usual[] = {
    {T_F32, T_S16, &cvt_f32_s16},   {T_F32, T_U16, &cvt_f32_u16}, {T_F64, T_S32, &cvt_f64_s32},
    {T_F64, T_U32, &cvt_f64_u32},   {T_F64, T_F32, &cvt_f64_f32}, {T_F32, T_F16, &cvt_f32_f16},
    {T_F32, T_BF16, &cvt_f32_bf16}, {T_F16, T_F32, &cvt_f16_f32}, {T_BF16, T_F32, &cvt_bf16_f32},
    {T_F32, T_S32, &cvt_f32_s32},   {T_F32, T_U32, &cvt_f32_u32}, {T_U64, T_U32, &cvt_64_u32},
    {T_S64, T_U32, &cvt_64_u32},    {T_U64, T_S32, &cvt_64_s32},  {T_S64, T_S32, &cvt_64_s32},
    {T_U32, T_U64, &cvt_32_64},     {T_U32, T_S64, &cvt_32_64},   {T_S32, T_U64, &cvt_32_64},
    {T_S32, T_S64, &cvt_32_64},     {T_U32, T_U16, &cvt_32_u16},  {T_S32, T_U16, &cvt_32_u16},
    {T_U32, T_S16, &cvt_32_s16},    {T_S32, T_S16, &cvt_32_s16},  {T_U16, T_U32, &cvt_16_32},
    {T_S16, T_U32, &cvt_16_32},     {T_U16, T_S32, &cvt_16_32},   {T_S16, T_S32, &cvt_16_32}};

static bool rounds_whole(const struct decoder *dc)
{
    return mod_has(dc, "rni") || mod_has(dc, "rzi") || mod_has(dc, "rmi") || mod_has(dc, "rpi");
}

int bind_cvt(struct decoder *dc, struct insn *out)
{
    enum ptx_type to = (enum ptx_type)out->type, from = (enum ptx_type)out->type2;
    uint32_t to_bits = ptx_type_bits(to), from_bits = ptx_type_bits(from);
    bool named = rounds_whole(dc),
         fp_mode = mod_has(dc, "rn") || mod_has(dc, "rz") || mod_has(dc, "rm") || mod_has(dc, "rp");
    if (out->arg[0].bits < to_bits || (!out->arg[1].sink && out->arg[1].bits < from_bits))
        return bind_invalid(dc, "a register is narrower than its type");
    if (is_float(from) && !is_float(to) && !named)
        return bind_invalid(dc, "a conversion from floating point to integer needs .rni, .rzi, "
                                ".rmi or .rpi");
    if (is_float(to) && !fp_mode && !named && (!is_float(from) || to_bits < from_bits))
        return bind_invalid(dc, "a conversion that may be inexact needs .rn, .rz, .rm or .rp");
    out->flags = flags_of(dc);
    if (named && is_float(to)) out->flags |= CVT_WHOLE;
    out->fn = cvt;
    if (out->arg[0].bits != to_bits || out->arg[1].bits != from_bits) return 0;
    if (from == T_F32 && !mod_has(dc, "ftz")) { /* .sat changes nothing: they clamp anyway */
        if (to == T_S32 && mod_is(dc, 0, "rzi")) return bind_lanes(dc, out, &cvt_rzi_s32);
        if (to == T_S32 && mod_is(dc, 0, "rni")) return bind_lanes(dc, out, &cvt_rni_s32);
        if (to == T_U32 && mod_is(dc, 0, "rzi")) return bind_lanes(dc, out, &cvt_rzi_u32);
    }
    if (from == T_F32 && to == T_F32) {
        if (out->flags == FLAG_SAT) return bind_lanes(dc, out, &cvt_sat_f32);
        if (named && !mod_has(dc, "ftz") && !mod_has(dc, "sat"))
            return bind_lanes(dc, out, whole_f32(dc));
    }
    if (out->flags) return 0;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (usual[i].to == to && usual[i].from == from) return bind_lanes(dc, out, usual[i].op);
    return 0;
}

/* ---- packed: two values in one register, the first operand in the high part ---- */

#define PACK2(name, to_half) \
    LANE_OP2(name, uint32_t, float, float, (uint32_t)to_half(b) | (uint32_t)to_half(a) << 16)
PACK2(pack_f16x2, f32_to_f16)
PACK2(pack_bf16x2, f32_to_bf16)

LANE_INLINE float relu(float f)
{
    return f <= 0 ? 0.0f : f;
}
LANE_INLINE uint16_t relu_f16(float f)
{
    return f32_to_f16(relu(f));
}
LANE_INLINE uint16_t relu_bf16(float f)
{
    return f32_to_bf16(relu(f));
}
PACK2(pack_relu_f16x2, relu_f16)
PACK2(pack_relu_bf16x2, relu_bf16)

/* .rz and .satfinite */
static enum step pack_general(struct warp *w, const struct insn *in, uint32_t mask)
{
    enum ptx_type half = in->type == T_F16X2 ? T_F16 : T_BF16;
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask);
        float a = f32_from((uint32_t)arg_lane(w, in->arg[1], l));
        float b = f32_from((uint32_t)arg_lane(w, in->arg[2], l));
        arg_set_lane(w, in->arg[0], l,
                     double_to_type(b, half, in->flags) | double_to_type(a, half, in->flags) << 16);
    }
    return STEP_NEXT;
}

int bind_cvt_pack2(struct decoder *dc, struct insn *out)
{
    bool f16 = out->type == T_F16X2;
    out->flags = flags_of(dc);
    out->fn = pack_general;
    if (out->flags == 0) return bind_lanes(dc, out, f16 ? &pack_f16x2 : &pack_bf16x2);
    if (out->flags == FLAG_RELU)
        return bind_lanes(dc, out, f16 ? &pack_relu_f16x2 : &pack_relu_bf16x2);
    return 0;
}

/* tf32 is kept as f32 with the low 13 bits zero. .rna of a NaN only drops them, which can leave an
 * infinity, and with .satfinite what is above the largest number comes down by one last place (an H200
 * does so); the other modes give one NaN. */
static enum step cvt_tf32(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask);
        const uint32_t bits = (uint32_t)arg_lane(w, in->arg[1], l);
        const enum round_mode mode = flags_round(in->flags);
        double d = f32_from(bits);
        uint32_t r;
        if ((in->flags & FLAG_RELU) && d <= 0) d = 0;
        r = fp_encode(d, &format_tf32, mode, in->flags & FLAG_SATFINITE) << 13;
        if (d != d && mode == ROUND_AWAY)
            r = (bits & 0xFFFFE000U) - (in->flags & FLAG_SATFINITE ? 0x2000U : 0);
        arg_set_lane(w, in->arg[0], l, r);
    }
    return STEP_NEXT;
}

int bind_cvt_tf32(struct decoder *dc, struct insn *out)
{
    out->flags = flags_of(dc);
    out->fn = cvt_tf32;
    return 0;
}

/* Formats of 8 bits and fewer come in pairs, each in a byte, of e2m1 in half a byte. */
static const struct fp_format *narrow_format(uint32_t type)
{
    switch (type) {
    case T_E4M3X2: return &format_e4m3;
    case T_E5M2X2: return &format_e5m2;
    case T_E2M3X2: return &format_e2m3;
    case T_E3M2X2: return &format_e3m2;
    default: return &format_e2m1;
    }
}

static uint32_t narrow_bits(uint32_t type)
{
    return type == T_E2M1X2 ? 4 : 8;
}

/* The two values to be packed: two f32 (a high), or the halves of an f16x2 or bf16x2. */
static void pair_of(const struct warp *w, const struct insn *in, uint32_t lane, double pair[2])
{
    const uint32_t a = (uint32_t)arg_lane(w, in->arg[1], lane);
    const uint16_t low = (uint16_t)a, high = (uint16_t)(a >> 16);
    if (in->type2 == T_F32) {
        pair[0] = f32_from((uint32_t)arg_lane(w, in->arg[2], lane));
        pair[1] = f32_from(a);
    } else {
        pair[0] = in->type2 == T_F16X2 ? f16_to_f32(low) : bf16_to_f32(low);
        pair[1] = in->type2 == T_F16X2 ? f16_to_f32(high) : bf16_to_f32(high);
    }
}

static enum step cvt_narrow(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct fp_format *f = narrow_format(in->type);
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask), r = 0;
        double pair[2];
        pair_of(w, in, l, pair);
        for (uint32_t i = 0; i < 2; i++) {
            if ((in->flags & FLAG_RELU) && pair[i] <= 0) pair[i] = 0;
            r |= fp_encode(pair[i], f, ROUND_NEAREST, true) << i * narrow_bits(in->type);
        }
        arg_set_lane(w, in->arg[0], l, r);
    }
    return STEP_NEXT;
}

int bind_cvt_narrow(struct decoder *dc, struct insn *out)
{
    out->flags = flags_of(dc);
    out->fn = cvt_narrow;
    return 0;
}

static enum step cvt_from_narrow(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct fp_format *f = narrow_format(in->type2);
    const uint32_t bits = narrow_bits(in->type2);
    const enum ptx_type half = in->type == T_BF16X2 ? T_BF16 : T_F16;
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask), a = (uint32_t)arg_lane(w, in->arg[1], l), r = 0;
        for (uint32_t i = 0; i < 2; i++) {
            double d = fp_decode(a >> (bits * i) & ((1U << bits) - 1U), f);
            r |= (uint32_t)double_to_type(d, half, in->flags) << (16 * i);
        }
        arg_set_lane(w, in->arg[0], l, r);
    }
    return STEP_NEXT;
}

int bind_cvt_from_narrow(struct decoder *dc, struct insn *out)
{
    out->flags = flags_of(dc);
    out->fn = cvt_from_narrow;
    return 0;
}

/* The power of two at or below (.rz) or at or above (.rp) a magnitude, as its exponent + 127; the sign
 * does not count (interpretation). 0xFF is NaN, and what is too large without .satfinite. */
static uint32_t ue8m0_of(double d, uint32_t flags)
{
    int exponent;
    double fraction;
    if (d != d) return 0xFF;
    if (d == 0) return 0;
    if (isinf(d)) return flags & FLAG_SATFINITE ? 0xFE : 0xFF;
    fraction = frexp(fabs(d), &exponent); /* in [1/2, 1) */
    if (flags_round(flags) == ROUND_ZERO || fraction == 0.5) exponent--;
    if (exponent > 127) return flags & FLAG_SATFINITE ? 0xFE : 0xFF;
    return exponent < -127 ? 0 : (uint32_t)(exponent + 127);
}

static enum step cvt_ue8m0(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask);
        double pair[2];
        pair_of(w, in, l, pair);
        arg_set_lane(w, in->arg[0], l,
                     ue8m0_of(pair[0], in->flags) | ue8m0_of(pair[1], in->flags) << 8);
    }
    return STEP_NEXT;
}

int bind_cvt_ue8m0(struct decoder *dc, struct insn *out)
{
    out->flags = flags_of(dc);
    out->fn = cvt_ue8m0;
    return 0;
}

/* bf16 has the same exponent field; 2^-127 is a subnormal of it. */
static enum step cvt_from_ue8m0(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask), a = (uint32_t)arg_lane(w, in->arg[1], l), r = 0;
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t code = a >> (8 * i) & 0xFF;
            r |= (code == 0xFF ? F16_NAN_BITS : code == 0 ? 0x0040U : code << 7) << (16 * i);
        }
        arg_set_lane(w, in->arg[0], l, r);
    }
    return STEP_NEXT;
}

int bind_cvt_from_ue8m0(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = cvt_from_ue8m0;
    return 0;
}

/* cvt.pack.sat d, a, b{, c}: a above b, both above them what c's low bits are. imm[2]: bits of one;
 * flags: 1 for signed ones. */
static enum step cvt_pack_sat(struct warp *w, const struct insn *in, uint32_t mask)
{
    const uint32_t bits = (uint32_t)in->imm[2];
    const int64_t range = (int64_t)1 << bits, least = in->flags ? -range / 2 : 0;
    const int64_t most = least + range - 1;
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask);
        uint64_t r = arg_lane(w, in->arg[3], l);
        for (uint32_t i = 1; i <= 2; i++) {
            int64_t v = (int32_t)arg_lane(w, in->arg[i], l);
            v = v < least ? least : v > most ? most : v;
            r = r << bits | narrow((uint64_t)v, bits, false);
        }
        arg_set_lane(w, in->arg[0], l, r);
    }
    return STEP_NEXT;
}

int bind_cvt_pack_sat(struct decoder *dc, struct insn *out)
{
    out->flags = dc->mod[1][0] == 's';
    out->imm[2] = strtol(dc->mod[1] + 1, NULL, 10);
    out->fn = cvt_pack_sat;
    return 0;
}
