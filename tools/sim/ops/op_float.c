/*
 * Arithmetic of f32, f32x2 and f64. f32 operations come in three forms: as written; to nearest with
 * .ftz or .sat; and any rounding mode, from a double result rounded to odd (fpbits.h). rcp and div
 * .approx and .full of f32 are an H200's (interpolate.h); sqrt.approx is rounded correctly, where
 * hardware is off by up to 2 ulp (PTX ISA states the bound): its last bits differ from a device's.
 */
#include "ops/fpflags.h"
#include "ops/interpolate.h"
#include "machine/lanes.h"

#include <fenv.h>

/* ---- one f32 operation in any rounding mode ---- */

/* An exact zero from operands of unlike signs is -0 when rounding down (IEEE 754, 6.3). */
LANE_INLINE float sum_by(double a, double b, enum round_mode mode)
{
    double s = f64_add_odd(a, b);
    bool unlike = (f64_bits(a) ^ f64_bits(b)) >> 63;
    s = ((mode == ROUND_DOWN) & (s == 0) & unlike) ? -0.0 : s;
    return f64_to_f32(s, mode);
}

LANE_INLINE float add_by(float a, float b, enum round_mode mode)
{
    return sum_by(a, b, mode);
}
LANE_INLINE float sub_by(float a, float b, enum round_mode mode)
{
    return sum_by(a, -b, mode);
}

/* The product of two f32 is exact in double. */
LANE_INLINE float mul_by(float a, float b, enum round_mode mode)
{
    return f64_to_f32((double)a * b, mode);
}

LANE_INLINE float fma_by(float a, float b, float c, enum round_mode mode)
{
    return sum_by((double)a * b, c, mode);
}

/* The remainder of a correctly rounded quotient or root is exact, and its sign says on which side
 * the true value lies. */
LANE_INLINE float div_by(float a, float b, enum round_mode mode)
{
    double q = (double)a / b, rest = fma(-q, b, a);
    return f64_to_f32(f64_odd(q, b < 0 ? -rest : rest), mode);
}

LANE_INLINE float sqrt_by(float a, enum round_mode mode)
{
    double s = sqrt((double)a);
    return f64_to_f32(f64_odd(s, fma(-s, s, a)), mode);
}

LANE_INLINE float rcp_by(float a, enum round_mode mode)
{
    return div_by(1.0f, a, mode);
}

LANE_INLINE float add_rn(float a, float b)
{
    return a + b;
}
LANE_INLINE float sub_rn(float a, float b)
{
    return a - b;
}
LANE_INLINE float mul_rn(float a, float b)
{
    return a * b;
}
LANE_INLINE float div_rn(float a, float b)
{
    return a / b;
}
LANE_INLINE float fma_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
LANE_INLINE float rcp_rn(float a)
{
    return 1.0f / a;
}
LANE_INLINE float sqrt_rn(float a)
{
    return sqrtf(a);
}

/* ---- bodies over `n` floats: 32, or 64 for f32x2, whose halves follow one another ---- */

#define FLOAT_LOOP1(n, expr)           \
    for (uint32_t i = 0; i < n; i++) { \
        const float a = pa[i];         \
        r[i] = (expr);                 \
    }
#define FLOAT_LOOP2(n, expr)                  \
    const float *pb = arg_src(w, in->arg[2]); \
    for (uint32_t i = 0; i < n; i++) {        \
        const float a = pa[i], b = pb[i];     \
        r[i] = (expr);                        \
    }
#define FLOAT_LOOP3(n, expr)                                                \
    const float *pb = arg_src(w, in->arg[2]), *pc = arg_src(w, in->arg[3]); \
    for (uint32_t i = 0; i < n; i++) {                                      \
        const float a = pa[i], b = pb[i], c = pc[i];                        \
        r[i] = (expr);                                                      \
    }
#define FLOAT_BODY(name, n, W, LOOP, expr)        \
    LANE_BODY(name)                               \
    {                                             \
        const float *pa = arg_src(w, in->arg[1]); \
        const uint32_t flags = in->flags;         \
        float r[n];                               \
        W packed[WARP_LANES];                     \
        (void)flags;                              \
        LOOP(n, expr)                             \
        memcpy(packed, r, sizeof packed);         \
        LANE_COMMIT(W, 0, packed);                \
    }                                             \
    LANE_OP(name)

/* The operands as .ftz takes them. */
#define FA flags_in(a, flags)
#define FB flags_in(b, flags)
#define FC flags_in(c, flags)
#define FR flags_round(flags)

#define FLOAT_FORMS(op, LOOP, plain, flagged, directed)                   \
    FLOAT_BODY(op##_plain, 32, uint32_t, LOOP, f32_canonical(plain))      \
    FLOAT_BODY(op##_flags, 32, uint32_t, LOOP, flags_out(flagged, flags)) \
    FLOAT_BODY(op##_modes, 32, uint32_t, LOOP, flags_out(directed, flags))
#define FLOAT_FORMS_X2(op, LOOP, plain, flagged, directed)        \
    FLOAT_FORMS(op, LOOP, plain, flagged, directed)               \
    FLOAT_BODY(op##_x2, 64, uint64_t, LOOP, f32_canonical(plain)) \
    FLOAT_BODY(op##_x2_modes, 64, uint64_t, LOOP, flags_out(directed, flags))

FLOAT_FORMS_X2(add, FLOAT_LOOP2, add_rn(a, b), add_rn(FA, FB), add_by(FA, FB, FR))
FLOAT_FORMS_X2(sub, FLOAT_LOOP2, sub_rn(a, b), sub_rn(FA, FB), sub_by(FA, FB, FR))
FLOAT_FORMS_X2(mul, FLOAT_LOOP2, mul_rn(a, b), mul_rn(FA, FB), mul_by(FA, FB, FR))
FLOAT_FORMS_X2(fma, FLOAT_LOOP3, fma_rn(a, b, c), fma_rn(FA, FB, FC), fma_by(FA, FB, FC, FR))
FLOAT_FORMS(div, FLOAT_LOOP2, div_rn(a, b), div_rn(FA, FB), div_by(FA, FB, FR))
FLOAT_FORMS(rcp, FLOAT_LOOP1, rcp_rn(a), rcp_rn(FA), rcp_by(FA, FR))
FLOAT_FORMS(sqrt, FLOAT_LOOP1, sqrt_rn(a), sqrt_rn(FA), sqrt_by(FA, FR))

/* ---- f64 ---- */

LANE_OP2(add_f64, double, double, double, f64_result(a + b, a, b, 0))
LANE_OP2(sub_f64, double, double, double, f64_result(a - b, a, b, 0))
LANE_OP2(mul_f64, double, double, double, f64_result(a *b, a, b, 0))
LANE_OP3(fma_f64, double, double, double, double, f64_result(fma(a, b, c), a, b, c))
LANE_OP2(div_f64, double, double, double, f64_result(a / b, b, a, 0)) /* a before b */
LANE_OP1(rcp_f64, double, double, f64_result(1.0 / a, a, 0, 0))
LANE_OP1(sqrt_f64, double, double, f64_result(sqrt(a), a, 0, 0))

enum f64_op { F64_ADD, F64_SUB, F64_MUL, F64_FMA, F64_DIV, F64_RCP, F64_SQRT };

/* No wider type to round from: the processor's own mode, set around the lanes' operations. volatile keeps
 * the compiler from moving or folding them. */
static void f64_by(enum f64_op op, enum round_mode mode, uint32_t mask,
                   volatile double (*x)[WARP_LANES], volatile double r[WARP_LANES])
{
    static const int modes[] = {[ROUND_NEAREST] = FE_TONEAREST,
                                [ROUND_ZERO] = FE_TOWARDZERO,
                                [ROUND_DOWN] = FE_DOWNWARD,
                                [ROUND_UP] = FE_UPWARD};
    fesetround(modes[mode]);
    for (; mask; mask &= mask - 1) {
        const uint32_t l = first_lane(mask);
        switch (op) {
        case F64_ADD: r[l] = x[0][l] + x[1][l]; break;
        case F64_SUB: r[l] = x[0][l] - x[1][l]; break;
        case F64_MUL: r[l] = x[0][l] * x[1][l]; break;
        case F64_FMA: r[l] = fma(x[0][l], x[1][l], x[2][l]); break;
        case F64_DIV: r[l] = x[0][l] / x[1][l]; break;
        case F64_RCP: r[l] = 1.0 / x[0][l]; break;
        case F64_SQRT: r[l] = sqrt(x[0][l]); break;
        }
    }
    fesetround(FE_TONEAREST);
}

/* imm[2]: enum f64_op. */
static enum step f64_modes(struct warp *w, const struct insn *in, uint32_t mask)
{
    const enum f64_op op = (enum f64_op)in->imm[2];
    const uint32_t count = op == F64_FMA ? 3 : op == F64_RCP || op == F64_SQRT ? 1 : 2;
    volatile double x[3][WARP_LANES], r[WARP_LANES];
    for (uint32_t i = 0; i < 3; i++)
        LANES(l) x[i][l] = i < count ? f64_from(arg_lane(w, in->arg[i + 1], l)) : 0;
    f64_by(op, flags_round(in->flags), mask, x, r);
    for (; mask; mask &= mask - 1) {
        const uint32_t l = first_lane(mask);
        const double d = op == F64_DIV ? f64_result(r[l], x[1][l], x[0][l], 0)
                                       : f64_result(r[l], x[0][l], x[1][l], x[2][l]);
        arg_set_lane(w, in->arg[0], l, f64_bits(d));
    }
    return STEP_NEXT;
}

/* rcp.approx.ftz.f64 and rsqrt: subnormals flush both ways. */
LANE_INLINE double f64_flush(double d)
{
    uint64_t u = f64_bits(d);
    return f64_from((u & 0x7FF0000000000000ULL) == 0 ? u & 0x8000000000000000ULL : u);
}
/* The hardware's functions see the upper half of the operand and make the upper half of the result, cut
 * off rather than rounded; the lower one is zero (that: PTX ISA; all: an H200). One NaN. */
LANE_INLINE double f64_upper(double d)
{
    return f64_from(d != d ? 0x7FFFFFFF00000000ULL : f64_bits(d) & 0xFFFFFFFF00000000ULL);
}
LANE_INLINE double f64_seen(double d)
{
    return f64_flush(f64_from(f64_bits(d) & 0xFFFFFFFF00000000ULL));
}
LANE_OP1(rcp_f64_approx, double, double, f64_upper(f64_flush(1.0 / f64_seen(a))))
LANE_OP1(rsqrt_f64, double, double, f64_result(1.0 / sqrt(a), a, 0, 0))
LANE_OP1(rsqrt_f64_ftz, double, double, f64_upper(f64_flush(1.0 / sqrt(f64_seen(a)))))

/* ---- binding ---- */

struct float_family {
    const struct lane_op *plain, *flags, *modes; /* f32 */
    const struct lane_op *x2, *x2_modes;         /* f32x2 */
    const struct lane_op *f64;
    enum f64_op op;
};

static int bind_float(struct decoder *dc, struct insn *out, const struct float_family *f)
{
    out->flags = flags_of(dc);
    if (out->type == T_F64) {
        out->imm[2] = f->op;
        if (flags_round(out->flags) == ROUND_NEAREST) return bind_lanes(dc, out, f->f64);
        out->fn = f64_modes;
        return 0;
    }
    if (out->type == T_F32X2) return bind_lanes(dc, out, out->flags ? f->x2_modes : f->x2);
    if (flags_round(out->flags) != ROUND_NEAREST) return bind_lanes(dc, out, f->modes);
    return bind_lanes(dc, out, out->flags ? f->flags : f->plain);
}

#define FAMILY(bind, op, op_f64, pair, pair_modes)                                              \
    int bind(struct decoder *dc, struct insn *out)                                              \
    {                                                                                           \
        static const struct float_family family = {&op##_plain, &op##_flags, &op##_modes, pair, \
                                                   pair_modes,  &op##_f64,   op_f64};           \
        return bind_float(dc, out, &family);                                                    \
    }
FAMILY(bind_add_float, add, F64_ADD, &add_x2, &add_x2_modes)
FAMILY(bind_sub_float, sub, F64_SUB, &sub_x2, &sub_x2_modes)
FAMILY(bind_mul_float, mul, F64_MUL, &mul_x2, &mul_x2_modes)
FAMILY(bind_fma_float, fma, F64_FMA, &fma_x2, &fma_x2_modes)
FAMILY(bind_div_float, div, F64_DIV, NULL, NULL)
FAMILY(bind_sqrt, sqrt, F64_SQRT, NULL, NULL)
FAMILY(bind_rcp, rcp, F64_RCP, NULL, NULL)

#define FTZ ((flags & FLAG_FTZ) != 0)
FLOAT_BODY(rcp_approx, 32, uint32_t, FLOAT_LOOP1, flags_out(approx_rcp(FA, FTZ), flags))
FLOAT_BODY(div_approx, 32, uint32_t, FLOAT_LOOP2, flags_out(approx_div(FA, FB, FTZ, false), flags))
FLOAT_BODY(div_full, 32, uint32_t, FLOAT_LOOP2, flags_out(approx_div(FA, FB, FTZ, true), flags))

int bind_rcp_approx(struct decoder *dc, struct insn *out)
{
    out->flags = flags_of(dc);
    return bind_lanes(dc, out, &rcp_approx);
}

int bind_div_approx(struct decoder *dc, struct insn *out)
{
    out->flags = flags_of(dc);
    return bind_lanes(dc, out, mod_has(dc, "full") ? &div_full : &div_approx);
}

int bind_rcp_approx_f64(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, &rcp_f64_approx);
}

int bind_rsqrt_f64(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, mod_has(dc, "ftz") ? &rsqrt_f64_ftz : &rsqrt_f64);
}

/* ---- f16 or bf16 operands with an f32 result: add and sub widen a, fma a and b ---- */

static float widen(const struct insn *in, uint64_t bits)
{
    return in->type2 == T_F16 ? f16_to_f32((uint16_t)bits) : bf16_to_f32((uint16_t)bits);
}

static enum step mixed(struct warp *w, const struct insn *in, uint32_t mask)
{
    enum round_mode mode = flags_round(in->flags);
    enum f64_op op = (enum f64_op)in->imm[2];
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask);
        float a = widen(in, arg_lane(w, in->arg[1], l)), r;
        uint64_t b = arg_lane(w, in->arg[2], l);
        if (op == F64_FMA)
            r = fma_by(a, widen(in, b), f32_from((uint32_t)arg_lane(w, in->arg[3], l)), mode);
        else if (op == F64_ADD)
            r = add_by(a, f32_from((uint32_t)b), mode);
        else
            r = sub_by(a, f32_from((uint32_t)b), mode);
        arg_set_lane(w, in->arg[0], l, f32_bits(flags_out(r, in->flags)));
    }
    return STEP_NEXT;
}

/* imm[2]: F64_ADD, F64_SUB or F64_FMA. */
int bind_mixed(struct decoder *dc, struct insn *out)
{
    const char *name = dc->row->name;
    out->flags = flags_of(dc);
    out->imm[2] = name[0] == 'a' ? F64_ADD : name[0] == 's' ? F64_SUB : F64_FMA;
    out->fn = mixed;
    return 0;
}
