/*
 * Integer arithmetic. Register contents are untyped: wrap-around operations use the unsigned form
 * for both signs. Quotient and remainder by zero are all ones, as an H200 has it (unspecified in the
 * ISA).
 */
#include "machine/lanes.h"

__extension__ typedef unsigned __int128 uint128_t;
__extension__ typedef __int128 int128_t;

typedef const struct lane_op *const type_table[T_COUNT];

/* X(suffix, type, signed type) for the three widths. */
#define WIDTHS(X)            \
    X(16, uint16_t, int16_t) \
    X(32, uint32_t, int32_t) \
    X(64, uint64_t, int64_t)

/* Table entries for an operation whose signed and unsigned forms agree. */
#define TABLE_SAME(op)                                                                  \
    [T_U16] = &op##_u16, [T_S16] = &op##_u16, [T_U32] = &op##_u32, [T_S32] = &op##_u32, \
    [T_U64] = &op##_u64, [T_S64] = &op##_u64
#define TABLE_BOTH(op)                                                                  \
    [T_U16] = &op##_u16, [T_S16] = &op##_s16, [T_U32] = &op##_u32, [T_S32] = &op##_s32, \
    [T_U64] = &op##_u64, [T_S64] = &op##_s64

/* Two 16-bit halves of a word, each by `expr` over T a, b. */
#define HALVES(T, word_a, word_b, fn)                   \
    ((uint32_t)(uint16_t)fn((T)(word_a), (T)(word_b)) | \
     (uint32_t)(uint16_t)fn((T)((word_a) >> 16), (T)((word_b) >> 16)) << 16)

/* ---- add, sub ---- */

LANE_INLINE int32_t clamp_s32(int64_t v)
{
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

#define X(n, T, S)                     \
    LANE_OP2(add_u##n, T, T, T, a + b) \
    LANE_OP2(sub_u##n, T, T, T, a - b)
WIDTHS(X)
#undef X
LANE_OP2(add_sat_s32, int32_t, int32_t, int32_t, clamp_s32((int64_t)a + b))
LANE_OP2(sub_sat_s32, int32_t, int32_t, int32_t, clamp_s32((int64_t)a - b))
LANE_OP2(add_x2, uint32_t, uint32_t, uint32_t,
         ((a & 0x7FFF7FFFU) + (b & 0x7FFF7FFFU)) ^ ((a ^ b) & 0x80008000U))

static type_table add_table = {TABLE_SAME(add), [T_U16X2] = &add_x2, [T_S16X2] = &add_x2};
static type_table sub_table = {TABLE_SAME(sub)};

/* add/sub: .sat only for s32 (the rows see to it). */
int bind_add_int(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, mod_has(dc, "sat") ? &add_sat_s32 : add_table[out->type]);
}

int bind_sub_int(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, mod_has(dc, "sat") ? &sub_sat_s32 : sub_table[out->type]);
}

/* ---- the carry flag: one bit a lane in warp.carry ----
 *
 * A subtraction leaves the carry of a + ~b + 1 there, which is no borrow, and subc takes it so: seen
 * on an H200 where a chain mixes additions and subtractions (the ISA says borrow, for either alone). */

enum { CARRY_IN = 1, CARRY_OUT = 2, CARRY_HI = 4 };

/* Bits 0..width of a sum; bit `width` is the carry. */
static enum step carry_commit(struct warp *w, const struct insn *in, uint32_t mask,
                              const uint64_t value[WARP_LANES], uint32_t carry)
{
    for (uint32_t m = mask; m; m &= m - 1)
        arg_set_lane(w, in->arg[0], first_lane(m), value[first_lane(m)]);
    if (in->flags & CARRY_OUT) w->carry = (w->carry & ~mask) | (carry & mask);
    return STEP_NEXT;
}

static enum step carry_exec(struct warp *w, const struct insn *in, uint32_t mask, bool subtract,
                            uint32_t first,
                            uint64_t (*left)(const struct warp *, const struct insn *, uint32_t))
{
    uint32_t bits = in->arg[0].bits, carry = 0;
    const uint128_t ones = UINT64_MAX >> (64 - bits);
    uint64_t value[WARP_LANES] = {0};
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t l = first_lane(m);
        uint128_t a = left(w, in, l), b = arg_lane(w, in->arg[first], l), sum;
        bool set = in->flags & CARRY_IN ? w->carry >> l & 1U : subtract;
        sum = a + (subtract ? ~b & ones : b) + set;
        value[l] = (uint64_t)sum;
        carry |= (uint32_t)(sum >> bits & 1U) << l;
    }
    return carry_commit(w, in, mask, value, carry);
}

static uint64_t first_source(const struct warp *w, const struct insn *in, uint32_t lane)
{
    return arg_lane(w, in->arg[1], lane);
}

/* The low or high half of the product of operands 1 and 2. */
static uint64_t product_half(const struct warp *w, const struct insn *in, uint32_t lane)
{
    uint64_t a = arg_lane(w, in->arg[1], lane), b = arg_lane(w, in->arg[2], lane);
    bool is_signed = ptx_type_kind(in->type) == 's';
    if (in->arg[0].bits == 32) {
        uint64_t p = is_signed ? (uint64_t)((int64_t)(int32_t)a * (int32_t)b) : a * b;
        return in->flags & CARRY_HI ? p >> 32 : p & UINT32_MAX;
    }
    if (!(in->flags & CARRY_HI)) return a * b;
    if (is_signed) return (uint64_t)(((int128_t)(int64_t)a * (int64_t)b) >> 64);
    return (uint64_t)((uint128_t)a * b >> 64);
}

static enum step add_carry(struct warp *w, const struct insn *in, uint32_t mask)
{
    return carry_exec(w, in, mask, false, 2, first_source);
}

static enum step sub_carry(struct warp *w, const struct insn *in, uint32_t mask)
{
    return carry_exec(w, in, mask, true, 2, first_source);
}

static enum step mad_carry(struct warp *w, const struct insn *in, uint32_t mask)
{
    return carry_exec(w, in, mask, false, 3, product_half);
}

/* add.cc addc{.cc} sub.cc subc{.cc} mad.cc madc{.cc}; flags: CARRY_*. */
int bind_carry(struct decoder *dc, struct insn *out)
{
    const char *name = dc->row->name;
    if (strlen(name) == 4) out->flags |= CARRY_IN; /* addc, subc, madc */
    if (mod_has(dc, "cc")) out->flags |= CARRY_OUT;
    if (mod_has(dc, "hi")) out->flags |= CARRY_HI;
    out->fn = name[0] == 'a' ? add_carry : name[0] == 's' ? sub_carry : mad_carry;
    return 0;
}

/* ---- mul, mad ---- */

LANE_OP2(mul_lo_u16, uint16_t, uint16_t, uint16_t, (uint32_t)a *b)
LANE_OP2(mul_lo_u32, uint32_t, uint32_t, uint32_t, a *b)
LANE_OP2(mul_lo_u64, uint64_t, uint64_t, uint64_t, a *b)
LANE_OP2(mul_hi_u16, uint16_t, uint16_t, uint16_t, (uint32_t)a *b >> 16)
LANE_OP2(mul_hi_s16, int16_t, int16_t, int16_t, (int32_t)a *b >> 16)
LANE_OP2(mul_hi_u32, uint32_t, uint32_t, uint32_t, (uint64_t)a *b >> 32)
LANE_OP2(mul_hi_s32, int32_t, int32_t, int32_t, (int64_t)a *b >> 32)
LANE_OP2(mul_hi_u64, uint64_t, uint64_t, uint64_t, (uint128_t)a *b >> 64)
LANE_OP2(mul_hi_s64, int64_t, int64_t, int64_t, (int128_t)a *b >> 64)
LANE_OP2(mul_wide_u16, uint32_t, uint16_t, uint16_t, (uint32_t)a *b)
LANE_OP2(mul_wide_s16, int32_t, int16_t, int16_t, (int32_t)a *b)
LANE_OP2(mul_wide_u32, uint64_t, uint32_t, uint32_t, (uint64_t)a *b)
LANE_OP2(mul_wide_s32, int64_t, int32_t, int32_t, (int64_t)a *b)

/* The product of polynomials whose coefficients are bits, 127 bits of it. */
static uint128_t carryless(uint64_t a, uint64_t b)
{
    uint128_t product = 0;
    for (; b; b &= b - 1) product ^= (uint128_t)a << __builtin_ctzll(b);
    return product;
}

LANE_OP3(clmad_lo, uint64_t, uint64_t, uint64_t, uint64_t, (uint64_t)carryless(a, b) ^ c)
LANE_OP3(clmad_hi, uint64_t, uint64_t, uint64_t, uint64_t, (uint64_t)(carryless(a, b) >> 64) ^ c)

int bind_clmad(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, mod_has(dc, "hi") ? &clmad_hi : &clmad_lo);
}

LANE_OP3(mad_lo_u16, uint16_t, uint16_t, uint16_t, uint16_t, (uint32_t)a *b + c)
LANE_OP3(mad_lo_u32, uint32_t, uint32_t, uint32_t, uint32_t, a *b + c)
LANE_OP3(mad_lo_u64, uint64_t, uint64_t, uint64_t, uint64_t, a *b + c)
LANE_OP3(mad_hi_u16, uint16_t, uint16_t, uint16_t, uint16_t, ((uint32_t)a * b >> 16) + c)
LANE_OP3(mad_hi_s16, uint16_t, int16_t, int16_t, uint16_t, ((int32_t)a * b >> 16) + c)
LANE_OP3(mad_hi_u32, uint32_t, uint32_t, uint32_t, uint32_t, ((uint64_t)a * b >> 32) + c)
LANE_OP3(mad_hi_s32, uint32_t, int32_t, int32_t, uint32_t, (uint32_t)((int64_t)a *b >> 32) + c)
LANE_OP3(mad_hi_u64, uint64_t, uint64_t, uint64_t, uint64_t, (uint64_t)((uint128_t)a *b >> 64) + c)
LANE_OP3(mad_hi_s64, uint64_t, int64_t, int64_t, uint64_t, (uint64_t)((int128_t)a *b >> 64) + c)
LANE_OP3(mad_hi_sat_s32, int32_t, int32_t, int32_t, int32_t, clamp_s32(((int64_t)a * b >> 32) + c))
LANE_OP3(mad_wide_u16, uint32_t, uint16_t, uint16_t, uint32_t, (uint32_t)a *b + c)
LANE_OP3(mad_wide_s16, uint32_t, int16_t, int16_t, uint32_t, (uint32_t)((int32_t)a *b) + c)
LANE_OP3(mad_wide_u32, uint64_t, uint32_t, uint32_t, uint64_t, (uint64_t)a *b + c)
LANE_OP3(mad_wide_s32, uint64_t, int32_t, int32_t, uint64_t, (uint64_t)((int64_t)a *b) + c)

#define TABLE_WIDE(op) \
    [T_U16] = &op##_u16, [T_S16] = &op##_s16, [T_U32] = &op##_u32, [T_S32] = &op##_s32

static type_table mul_lo_table = {TABLE_SAME(mul_lo)}, mul_hi_table = {TABLE_BOTH(mul_hi)},
                  mul_wide_table = {TABLE_WIDE(mul_wide)}, mad_lo_table = {TABLE_SAME(mad_lo)},
                  mad_hi_table = {TABLE_BOTH(mad_hi)}, mad_wide_table = {TABLE_WIDE(mad_wide)};

int bind_mul_int(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out,
                      mod_has(dc, "wide") ? mul_wide_table[out->type]
                      : mod_has(dc, "hi") ? mul_hi_table[out->type]
                                          : mul_lo_table[out->type]);
}

int bind_mad_int(struct decoder *dc, struct insn *out)
{
    if (mod_has(dc, "sat")) return bind_lanes(dc, out, &mad_hi_sat_s32);
    return bind_lanes(dc, out,
                      mod_has(dc, "wide") ? mad_wide_table[out->type]
                      : mod_has(dc, "hi") ? mad_hi_table[out->type]
                                          : mad_lo_table[out->type]);
}

/* 24-bit factors; .lo is bits 31..0 of the 48-bit product, .hi bits 47..16. */
LANE_INLINE int64_t product24(uint32_t a, uint32_t b, bool is_signed)
{
    if (!is_signed) return (int64_t)((uint64_t)(a & 0xFFFFFFU) * (b & 0xFFFFFFU));
    return ((int64_t)(int32_t)(a << 8) >> 8) * ((int64_t)(int32_t)(b << 8) >> 8);
}

LANE_OP2(mul24_lo, uint32_t, uint32_t, uint32_t, product24(a, b, in->type == T_S32))
LANE_OP2(mul24_hi, uint32_t, uint32_t, uint32_t, product24(a, b, in->type == T_S32) >> 16)
LANE_OP3(mad24_lo, uint32_t, uint32_t, uint32_t, uint32_t,
         (uint32_t)product24(a, b, in->type == T_S32) + c)
LANE_OP3(mad24_hi, uint32_t, uint32_t, uint32_t, uint32_t,
         (uint32_t)(product24(a, b, in->type == T_S32) >> 16) + c)
LANE_OP3(mad24_hi_sat, int32_t, uint32_t, uint32_t, int32_t,
         clamp_s32((int32_t)(product24(a, b, true) >> 16) + (int64_t)c))

int bind_mul24(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, mod_has(dc, "hi") ? &mul24_hi : &mul24_lo);
}

int bind_mad24(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out,
                      mod_has(dc, "sat")  ? &mad24_hi_sat
                      : mod_has(dc, "hi") ? &mad24_hi
                                          : &mad24_lo);
}

/* ---- sad, div, rem, abs, neg, min, max ---- */

#define X(n, T, S)                                                          \
    LANE_OP3(sad_u##n, T, T, T, T, c + (a > b ? a - b : b - a))             \
    LANE_OP3(sad_s##n, T, S, S, T, c + (a > b ? (T)a - (T)b : (T)b - (T)a)) \
    LANE_OP2(div_u##n, T, T, T, b ? a / b : (T)-1)                          \
    LANE_OP2(div_s##n, S, S, S, b == -1 ? (S)(0 - (T)a) : b ? a / b : -1)   \
    LANE_OP2(rem_u##n, T, T, T, b ? a % b : (T)-1)                          \
    LANE_OP2(rem_s##n, S, S, S, b == -1 ? 0 : b ? a % b : -1)               \
    LANE_OP1(abs_s##n, T, S, a < 0 ? 0 - (T)a : (T)a)                       \
    LANE_OP1(neg_s##n, T, T, 0 - a)                                         \
    LANE_OP2(min_u##n, T, T, T, a < b ? a : b)                              \
    LANE_OP2(min_s##n, S, S, S, a < b ? a : b)                              \
    LANE_OP2(max_u##n, T, T, T, a > b ? a : b)                              \
    LANE_OP2(max_s##n, S, S, S, a > b ? a : b)
WIDTHS(X)
#undef X

LANE_INLINE int32_t min_s(int32_t a, int32_t b)
{
    return a < b ? a : b;
}
LANE_INLINE int32_t max_s(int32_t a, int32_t b)
{
    return a > b ? a : b;
}
LANE_INLINE int32_t min_relu_s(int32_t a, int32_t b)
{
    return max_s(min_s(a, b), 0);
}
LANE_INLINE int32_t max_relu_s(int32_t a, int32_t b)
{
    return max_s(max_s(a, b), 0);
}

LANE_OP2(min_u16x2, uint32_t, uint32_t, uint32_t, HALVES(uint16_t, a, b, min_s))
LANE_OP2(min_s16x2, uint32_t, uint32_t, uint32_t, HALVES(int16_t, a, b, min_s))
LANE_OP2(max_u16x2, uint32_t, uint32_t, uint32_t, HALVES(uint16_t, a, b, max_s))
LANE_OP2(max_s16x2, uint32_t, uint32_t, uint32_t, HALVES(int16_t, a, b, max_s))
LANE_OP2(min_relu_s16x2, uint32_t, uint32_t, uint32_t, HALVES(int16_t, a, b, min_relu_s))
LANE_OP2(max_relu_s16x2, uint32_t, uint32_t, uint32_t, HALVES(int16_t, a, b, max_relu_s))
LANE_OP2(min_relu_s32, int32_t, int32_t, int32_t, min_relu_s(a, b))
LANE_OP2(max_relu_s32, int32_t, int32_t, int32_t, max_relu_s(a, b))

static type_table sad_table = {TABLE_BOTH(sad)}, div_table = {TABLE_BOTH(div)},
                  rem_table = {TABLE_BOTH(rem)},
                  abs_table = {[T_S16] = &abs_s16, [T_S32] = &abs_s32, [T_S64] = &abs_s64},
                  neg_table = {[T_S16] = &neg_s16, [T_S32] = &neg_s32, [T_S64] = &neg_s64},
                  min_table = {TABLE_BOTH(min), [T_U16X2] = &min_u16x2, [T_S16X2] = &min_s16x2},
                  max_table = {TABLE_BOTH(max), [T_U16X2] = &max_u16x2, [T_S16X2] = &max_s16x2},
                  min_relu_table = {[T_S32] = &min_relu_s32, [T_S16X2] = &min_relu_s16x2},
                  max_relu_table = {[T_S32] = &max_relu_s32, [T_S16X2] = &max_relu_s16x2};

int bind_sad(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, sad_table[out->type]);
}

int bind_div_int(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, div_table[out->type]);
}

int bind_rem(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, rem_table[out->type]);
}

int bind_abs_int(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, abs_table[out->type]);
}

int bind_neg_int(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, neg_table[out->type]);
}

int bind_min_int(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out,
                      mod_has(dc, "relu") ? min_relu_table[out->type] : min_table[out->type]);
}

int bind_max_int(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out,
                      mod_has(dc, "relu") ? max_relu_table[out->type] : max_table[out->type]);
}

/* ---- dot products of bytes ---- */

LANE_INLINE int32_t byte_of(uint32_t word, uint32_t index, bool is_signed)
{
    uint32_t v = word >> (8 * index) & 0xFFU;
    return is_signed ? (int32_t)(v ^ 0x80U) - 0x80 : (int32_t)v;
}

LANE_INLINE int32_t half_of(uint32_t word, uint32_t index, bool is_signed)
{
    uint32_t v = word >> (16 * index) & 0xFFFFU;
    return is_signed ? (int32_t)(v ^ 0x8000U) - 0x8000 : (int32_t)v;
}

LANE_INLINE uint32_t dot4(uint32_t a, uint32_t b, bool sa, bool sb)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 4; i++) sum += (uint32_t)(byte_of(a, i, sa) * byte_of(b, i, sb));
    return sum;
}

/* Two halves of a with bytes `at`, at+1 of b. */
LANE_INLINE uint32_t dot2(uint32_t a, uint32_t b, bool sa, bool sb, uint32_t at)
{
    return (uint32_t)half_of(a, 0, sa) * (uint32_t)byte_of(b, at, sb) +
           (uint32_t)half_of(a, 1, sa) * (uint32_t)byte_of(b, at + 1, sb);
}

LANE_OP3(dp4a, uint32_t, uint32_t, uint32_t, uint32_t,
         dot4(a, b, in->type == T_S32, in->type2 == T_S32) + c)
LANE_OP3(dp2a_lo, uint32_t, uint32_t, uint32_t, uint32_t,
         dot2(a, b, in->type == T_S32, in->type2 == T_S32, 0) + c)
LANE_OP3(dp2a_hi, uint32_t, uint32_t, uint32_t, uint32_t,
         dot2(a, b, in->type == T_S32, in->type2 == T_S32, 2) + c)

int bind_dp4a(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, &dp4a);
}

int bind_dp2a(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, mod_has(dc, "hi") ? &dp2a_hi : &dp2a_lo);
}
