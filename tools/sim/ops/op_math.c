/*
 * Floating-point functions of one value, minimum and maximum, signs and classes. Of the .approx
 * functions ex2 and lg2 of f32 are an H200's (interpolate.h); the others are computed in double and
 * rounded once, so they are within 0.5 ulp (and a hair), where hardware's are allowed, of f32: rsqrt
 * 2^-22.4 relative, sin and cos an absolute 2^-20.5 in [-pi, pi], tanh 2^-11 relative (PTX ISA, the
 * instructions' notes).
 */
#include "ops/fpflags.h"
#include "ops/interpolate.h"
#include "machine/lanes.h"

#define F32_FUNCTION(name, expr) LANE_OP1(name, float, float, flags_out((float)(expr), in->flags))

#define X_IN ((double)flags_in(a, in->flags))
F32_FUNCTION(rsqrt_f32, 1.0 / sqrt(X_IN))
#define FTZ ((in->flags & FLAG_FTZ) != 0)
F32_FUNCTION(ex2_f32, approx_ex2(flags_in(a, in->flags), FTZ))
F32_FUNCTION(lg2_f32, approx_lg2(flags_in(a, in->flags), FTZ))

/* The angle in turns, as hardware has it: a product with 1/2pi that is cut to f32, subnormals flushed.
 * What is left of it by whole turns is exact; the rest is in -1/2 to 1/2. */
LANE_INLINE double turns(float a, uint32_t flags)
{
    const float t =
        f32_flush(f64_to_f32((double)flags_in(a, flags) * (double)0x1.45f306p-3f, ROUND_ZERO));
    return t == 0 ? (double)t : (double)t - rint((double)t);
}
#define TWO_PI 0x1.921fb54442d18p2
F32_FUNCTION(sin_f32, sin(TWO_PI *turns(a, in->flags)))
F32_FUNCTION(cos_f32, cos(TWO_PI *turns(a, in->flags)))
F32_FUNCTION(tanh_f32, tanh(X_IN))

/* ---- f16 and bf16, alone (32 elements) or in pairs (64): flags .ftz .sat .relu and min/max's
 * ---- */

LANE_INLINE float f16_in(uint16_t h, uint32_t flags)
{
    return f16_to_f32(flags & FLAG_FTZ ? f16_flush(h) : h);
}

LANE_INLINE uint16_t f16_out(float r, uint32_t flags)
{
    uint16_t h = f32_to_f16(flags_clamp(r, flags));
    return flags & FLAG_FTZ ? f16_flush(h) : h;
}

/* bf16 has f32's exponents: .ftz (of ex2) flushes by f32's rule. */
LANE_INLINE float bf16_in(uint16_t h, uint32_t flags)
{
    return flags_in(bf16_to_f32(h), flags);
}

LANE_INLINE uint16_t bf16_out(float r, uint32_t flags)
{
    return f32_to_bf16(flags_out(r, flags));
}

/* A factor is the NaN that fills tiles out of bounds (PTX ISA "Tensors"; the same bits in f16 and bf16). */
LANE_INLINE bool half_oob(uint16_t a, uint16_t b, uint32_t flags)
{
    return (flags & FLAG_OOB) && (a == 0x7FF7 || b == 0x7FF7);
}

#define HALF_BODY(name, n, W, LOAD, expr, fmt)                                     \
    LANE_BODY(name)                                                                \
    {                                                                              \
        const uint32_t flags = in->flags;                                          \
        uint16_t r[n];                                                             \
        W packed[WARP_LANES];                                                      \
        const uint16_t *pa = arg_src(w, in->arg[1]), *pb = arg_src(w, in->arg[2]), \
                       *pc = arg_src(w, in->arg[3]);                               \
        for (uint32_t i = 0; i < n; i++) {                                         \
            LOAD(fmt)                                                              \
            r[i] = fmt##_out(expr, flags);                                         \
        }                                                                          \
        (void)pb, (void)pc;                                                        \
        memcpy(packed, r, sizeof packed);                                          \
        LANE_COMMIT(W, 0, packed);                                                 \
    }                                                                              \
    LANE_OP(name)

#define LOAD1(fmt) const float a = fmt##_in(pa[i], flags);
#define LOAD2(fmt) LOAD1(fmt) const float b = fmt##_in(pb[i], flags);
#define LOAD3(fmt) LOAD2(fmt) const float c = fmt##_in(pc[i], flags);

/* The four types of one operation, and the table of them. */
#define HALF_OP(op, LOAD, expr)                                                        \
    HALF_BODY(op##_f16, 32, uint16_t, LOAD, expr, f16)                                 \
    HALF_BODY(op##_f16x2, 64, uint32_t, LOAD, expr, f16)                               \
    HALF_BODY(op##_bf16, 32, uint16_t, LOAD, expr, bf16)                               \
    HALF_BODY(op##_bf16x2, 64, uint32_t, LOAD, expr, bf16)                             \
    static const struct lane_op *const op##_table[T_COUNT] = {[T_F16] = &op##_f16,     \
                                                              [T_F16X2] = &op##_f16x2, \
                                                              [T_BF16] = &op##_bf16,   \
                                                              [T_BF16X2] = &op##_bf16x2};

/* min and max with their modifiers, of f32 and of halves widened to it. */
LANE_INLINE float min_of(float a, float b, uint32_t flags)
{
    uint32_t sign = flags & FLAG_XORSIGN ? (f32_bits(a) ^ f32_bits(b)) & 0x80000000U : 0;
    float r = flags & FLAG_ABS ? f32_min(fabsf(a), fabsf(b), flags & FLAG_NAN)
                               : f32_min(a, b, flags & FLAG_NAN);
    return f32_from(f32_bits(r) | (r == r ? sign : 0));
}

LANE_INLINE float max_of(float a, float b, uint32_t flags)
{
    uint32_t sign = flags & FLAG_XORSIGN ? (f32_bits(a) ^ f32_bits(b)) & 0x80000000U : 0;
    float r = flags & FLAG_ABS ? f32_max(fabsf(a), fabsf(b), flags & FLAG_NAN)
                               : f32_max(a, b, flags & FLAG_NAN);
    return f32_from(f32_bits(r) | (r == r ? sign : 0));
}

/* A sum of two halves rounded to f32 first is still rounded right (24 >= 2 * 11 + 2 bits); products
 * and fma go through rounding to odd, as bf16's may underflow f32. */
HALF_OP(add_half, LOAD2, a + b)
HALF_OP(sub_half, LOAD2, a - b)
HALF_OP(mul_half, LOAD2, f64_to_f32_odd((double)a *b))
HALF_OP(fma_half, LOAD3,
        half_oob(pa[i], pb[i], flags) ? 0.0f : f64_to_f32_odd(f64_add_odd((double)a *b, c)))
HALF_OP(min_half, LOAD2, min_of(a, b, flags))
HALF_OP(max_half, LOAD2, max_of(a, b, flags))
HALF_OP(ex2_half, LOAD1, f64_to_f32_odd(f64_exp2(a)))
HALF_OP(tanh_half, LOAD1, f64_to_f32_odd(tanh((double)a)))

static int bind_half(struct decoder *dc, struct insn *out, const struct lane_op *const *table)
{
    out->flags = flags_of(dc);
    return bind_lanes(dc, out, table[out->type]);
}

int bind_add_half(struct decoder *dc, struct insn *out)
{
    return bind_half(dc, out, add_half_table);
}
int bind_sub_half(struct decoder *dc, struct insn *out)
{
    return bind_half(dc, out, sub_half_table);
}
int bind_mul_half(struct decoder *dc, struct insn *out)
{
    return bind_half(dc, out, mul_half_table);
}
int bind_fma_half(struct decoder *dc, struct insn *out)
{
    return bind_half(dc, out, fma_half_table);
}
int bind_min_half(struct decoder *dc, struct insn *out)
{
    return bind_half(dc, out, min_half_table);
}
int bind_max_half(struct decoder *dc, struct insn *out)
{
    return bind_half(dc, out, max_half_table);
}

HALF_OP(abs_half, LOAD1, fabsf(a))
HALF_OP(neg_half, LOAD1, -a)

int bind_abs_half(struct decoder *dc, struct insn *out)
{
    return bind_half(dc, out, abs_half_table);
}
int bind_neg_half(struct decoder *dc, struct insn *out)
{
    return bind_half(dc, out, neg_half_table);
}

/* ---- binding of the one-value functions ---- */

static int bind_function(struct decoder *dc, struct insn *out, const struct lane_op *f32,
                         const struct lane_op *const *half)
{
    out->flags = flags_of(dc);
    if (out->type == T_F32) return bind_lanes(dc, out, f32);
    return bind_lanes(dc, out, half ? half[out->type] : NULL);
}

int bind_rsqrt(struct decoder *dc, struct insn *out)
{
    return bind_function(dc, out, &rsqrt_f32, NULL);
}

int bind_ex2(struct decoder *dc, struct insn *out)
{
    return bind_function(dc, out, &ex2_f32, ex2_half_table);
}

int bind_lg2(struct decoder *dc, struct insn *out)
{
    return bind_function(dc, out, &lg2_f32, NULL);
}
int bind_sin(struct decoder *dc, struct insn *out)
{
    return bind_function(dc, out, &sin_f32, NULL);
}
int bind_cos(struct decoder *dc, struct insn *out)
{
    return bind_function(dc, out, &cos_f32, NULL);
}

int bind_tanh(struct decoder *dc, struct insn *out)
{
    return bind_function(dc, out, &tanh_f32, tanh_half_table);
}

/* ---- f32, f64: min max abs neg copysign testp ---- */

LANE_OP2(min_plain, float, float, float, f32_min(a, b, false))
LANE_OP2(max_plain, float, float, float, f32_max(a, b, false))
LANE_OP2(min_f32, float, float, float,
         min_of(flags_in(a, in->flags), flags_in(b, in->flags), in->flags))
LANE_OP2(max_f32, float, float, float,
         max_of(flags_in(a, in->flags), flags_in(b, in->flags), in->flags))
LANE_OP3(min3_f32, float, float, float, float,
         min_of(min_of(flags_in(a, in->flags), flags_in(b, in->flags), in->flags),
                flags_in(c, in->flags), in->flags))
LANE_OP3(max3_f32, float, float, float, float,
         max_of(max_of(flags_in(a, in->flags), flags_in(b, in->flags), in->flags),
                flags_in(c, in->flags), in->flags))

LANE_INLINE double f64_min(double a, double b)
{
    double r = a < b ? a : b;
    r = a == b ? f64_from(f64_bits(a) | f64_bits(b)) : r;
    r = b != b ? a : r;
    return f64_result(a != a ? b : r, a, b, 0);
}

LANE_INLINE double f64_max(double a, double b)
{
    double r = a > b ? a : b;
    r = a == b ? f64_from(f64_bits(a) & f64_bits(b)) : r;
    r = b != b ? a : r;
    return f64_result(a != a ? b : r, a, b, 0);
}
LANE_OP2(min_f64, double, double, double, f64_min(a, b))
LANE_OP2(max_f64, double, double, double, f64_max(a, b))

int bind_min_float(struct decoder *dc, struct insn *out)
{
    out->flags = flags_of(dc);
    if (out->type == T_F64) return bind_lanes(dc, out, &min_f64);
    if (out->src->operand_count == 4) return bind_lanes(dc, out, &min3_f32);
    return bind_lanes(dc, out, out->flags ? &min_f32 : &min_plain);
}

int bind_max_float(struct decoder *dc, struct insn *out)
{
    out->flags = flags_of(dc);
    if (out->type == T_F64) return bind_lanes(dc, out, &max_f64);
    if (out->src->operand_count == 4) return bind_lanes(dc, out, &max3_f32);
    return bind_lanes(dc, out, out->flags ? &max_f32 : &max_plain);
}

LANE_OP1(abs_f32, float, float, f32_canonical(fabsf(flags_in(a, in->flags))))
LANE_OP1(neg_f32, float, float, f32_canonical(-flags_in(a, in->flags)))
LANE_OP1(abs_f64, double, double, f64_result(fabs(a), a, 0, 0)) /* a NaN keeps its sign */
LANE_OP1(neg_f64, double, double, f64_result(-a, a, 0, 0))
LANE_OP2(copysign_f32, uint32_t, uint32_t, uint32_t, (b & 0x7FFFFFFFU) | (a & 0x80000000U))
LANE_OP2(copysign_f64, uint64_t, uint64_t, uint64_t,
         (b & 0x7FFFFFFFFFFFFFFFULL) | (a & 0x8000000000000000ULL))

int bind_abs_float(struct decoder *dc, struct insn *out)
{
    out->flags = flags_of(dc);
    return bind_lanes(dc, out, out->type == T_F64 ? &abs_f64 : &abs_f32);
}

int bind_neg_float(struct decoder *dc, struct insn *out)
{
    out->flags = flags_of(dc);
    return bind_lanes(dc, out, out->type == T_F64 ? &neg_f64 : &neg_f32);
}

int bind_copysign(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, out->type == T_F64 ? &copysign_f64 : &copysign_f32);
}

enum float_class {
    CLASS_FINITE,
    CLASS_INFINITE,
    CLASS_NUMBER,
    CLASS_NOTANUMBER,
    CLASS_NORMAL,
    CLASS_SUBNORMAL
};

static bool is_class(double v, bool subnormal, enum float_class kind)
{
    switch (kind) {
    case CLASS_FINITE: return isfinite(v);
    case CLASS_INFINITE: return isinf(v);
    case CLASS_NUMBER: return !isnan(v);
    case CLASS_NOTANUMBER: return isnan(v);
    case CLASS_NORMAL: return isfinite(v) && !subnormal; /* zeros count as normal */
    default: return subnormal;
    }
}

/* flags: enum float_class. */
static enum step testp(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint32_t bits = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t l = first_lane(m);
        uint64_t u = arg_lane(w, in->arg[1], l);
        bool is_double = in->type == T_F64, subnormal;
        double v = is_double ? f64_from(u) : (double)f32_from((uint32_t)u);
        subnormal = v != 0 && fabs(v) < (is_double ? 0x1p-1022 : 0x1p-126);
        bits |= (uint32_t)is_class(v, subnormal, (enum float_class)in->flags) << l;
    }
    arg_set_pred(w, in->arg[0], mask, bits);
    return STEP_NEXT;
}

int bind_testp(struct decoder *dc, struct insn *out)
{
    static const char *const names[] = {"finite",     "infinite", "number",
                                        "notanumber", "normal",   "subnormal"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (mod_is(dc, 0, names[i])) out->flags = (uint16_t)i;
    out->fn = testp;
    return 0;
}
