/*
 * Logic, shifts, bit fields and permutations. Shift amounts are unsigned 32-bit and clamp at the
 * width (PTX ISA "Logic and Shift Instructions").
 */
#include "machine/lanes.h"

typedef const struct lane_op *const size_table[9]; /* by bytes of the first type */

#define SIZES(op)                                      \
    {                                                  \
        [2] = &op##_16, [4] = &op##_32, [8] = &op##_64 \
    }
#define WIDTHS(X)            \
    X(16, uint16_t, int16_t) \
    X(32, uint32_t, int32_t) \
    X(64, uint64_t, int64_t)

static int bind_by_size(struct decoder *dc, struct insn *out, size_table table)
{
    return bind_lanes(dc, out, table[ptx_type_bits((enum ptx_type)out->type) / 8]);
}

/* ---- and or xor not cnot, shl shr ---- */

#define X(n, T, S)                                                      \
    LANE_OP2(and_##n, T, T, T, a &b)                                    \
    LANE_OP2(or_##n, T, T, T, a | b)                                    \
    LANE_OP2(xor_##n, T, T, T, a ^ b)                                   \
    LANE_OP1(not_##n, T, T, ~a)                                         \
    LANE_OP1(cnot_##n, T, T, a == 0)                                    \
    LANE_OP2(shl_##n, T, T, uint32_t, b >= n ? 0 : a << (b & (n - 1)))  \
    LANE_OP2(shru_##n, T, T, uint32_t, b >= n ? 0 : a >> (b & (n - 1))) \
    LANE_OP2(shrs_##n, S, S, uint32_t, a >> (b >= n ? n - 1 : b))
WIDTHS(X)
#undef X

static size_table and_table = SIZES(and), or_table = SIZES(or), xor_table = SIZES(xor),
                  not_table = SIZES(not ), cnot_table = SIZES(cnot), shl_table = SIZES(shl),
                  shru_table = SIZES(shru), shrs_table = SIZES(shrs);

#define PRED_OP(name, expr)                                                            \
    static enum step name##_pred(struct warp *w, const struct insn *in, uint32_t mask) \
    {                                                                                  \
        uint32_t a = arg_pred(w, in->arg[1]), b = arg_pred(w, in->arg[2]);             \
        arg_set_pred(w, in->arg[0], mask, expr);                                       \
        return STEP_NEXT;                                                              \
    }
PRED_OP(and, a &b)
PRED_OP(or, a | b)
PRED_OP(xor, a ^ b)

static enum step not_pred(struct warp *w, const struct insn *in, uint32_t mask)
{
    arg_set_pred(w, in->arg[0], mask, ~arg_pred(w, in->arg[1]));
    return STEP_NEXT;
}

static int bind_logic(struct decoder *dc, struct insn *out, exec_fn *pred, size_table table)
{
    if (out->type != T_PRED) return bind_by_size(dc, out, table);
    out->fn = pred;
    return 0;
}

int bind_and(struct decoder *dc, struct insn *out)
{
    return bind_logic(dc, out, and_pred, and_table);
}

int bind_or(struct decoder *dc, struct insn *out)
{
    return bind_logic(dc, out, or_pred, or_table);
}

int bind_xor(struct decoder *dc, struct insn *out)
{
    return bind_logic(dc, out, xor_pred, xor_table);
}

int bind_not(struct decoder *dc, struct insn *out)
{
    return bind_logic(dc, out, not_pred, not_table);
}

int bind_cnot(struct decoder *dc, struct insn *out)
{
    return bind_by_size(dc, out, cnot_table);
}

int bind_shl(struct decoder *dc, struct insn *out)
{
    return bind_by_size(dc, out, shl_table);
}

int bind_shr(struct decoder *dc, struct insn *out)
{
    bool is_signed = ptx_type_kind((enum ptx_type)out->type) == 's';
    if (is_signed) return bind_by_size(dc, out, shrs_table);
    return bind_by_size(dc, out, shru_table);
}

/* ---- shf: funnel shifts of the 64-bit value b:a ---- */

LANE_INLINE uint64_t join(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

LANE_OP3(shf_l_clamp, uint32_t, uint32_t, uint32_t, uint32_t,
         c >= 32 ? a : (uint32_t)(join(a, b) << (c & 31) >> 32))
LANE_OP3(shf_l_wrap, uint32_t, uint32_t, uint32_t, uint32_t, join(a, b) << (c & 31) >> 32)
LANE_OP3(shf_r_clamp, uint32_t, uint32_t, uint32_t, uint32_t,
         c >= 32 ? b : (uint32_t)(join(a, b) >> (c & 31)))
LANE_OP3(shf_r_wrap, uint32_t, uint32_t, uint32_t, uint32_t, join(a, b) >> (c & 31))

int bind_shf(struct decoder *dc, struct insn *out)
{
    if (mod_is(dc, 0, "l"))
        return bind_lanes(dc, out, mod_has(dc, "clamp") ? &shf_l_clamp : &shf_l_wrap);
    return bind_lanes(dc, out, mod_has(dc, "clamp") ? &shf_r_clamp : &shf_r_wrap);
}

/* ---- lop3 ---- */

/* Bit i of the table is the result where (a,b,c) = (i>>2&1, i>>1&1, i&1). imm[2] = table. */
struct lop3_masks {
    uint32_t base[4], flip[4]; /* for (a,b): the value at c=0, and its change at c=1 */
};

LANE_INLINE struct lop3_masks lop3_expand(int64_t table)
{
    struct lop3_masks m;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t at0 = 0U - (uint32_t)(table >> (2 * i) & 1);
        uint32_t at1 = 0U - (uint32_t)(table >> (2 * i + 1) & 1);
        m.base[i] = at0;
        m.flip[i] = at0 ^ at1;
    }
    return m;
}

LANE_INLINE uint32_t lop3_apply(struct lop3_masks m, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t v00 = m.base[0] ^ (m.flip[0] & c), v01 = m.base[1] ^ (m.flip[1] & c);
    uint32_t v10 = m.base[2] ^ (m.flip[2] & c), v11 = m.base[3] ^ (m.flip[3] & c);
    uint32_t v0 = v00 ^ ((v00 ^ v01) & b), v1 = v10 ^ ((v10 ^ v11) & b);
    return v0 ^ ((v0 ^ v1) & a);
}

LANE_BODY(lop3)
{
    const uint32_t *a = arg_src(w, in->arg[1]), *b = arg_src(w, in->arg[2]),
                   *c = arg_src(w, in->arg[3]);
    const struct lop3_masks m = lop3_expand(in->imm[2]);
    uint32_t r[WARP_LANES];
    LANES(l) r[l] = lop3_apply(m, a[l], b[l], c[l]);
    LANE_COMMIT(uint32_t, 0, r);
}
LANE_OP(lop3)

static int bind_lop3_table(struct decoder *dc, struct insn *out)
{
    int64_t table;
    if (!operand_constant(dc, 4, &table) || table < 0 || table > 255)
        return bind_invalid(dc, "the look-up table must be a constant from 0 to 255");
    out->imm[2] = table;
    return 0;
}

int bind_lop3(struct decoder *dc, struct insn *out)
{
    int result = bind_lop3_table(dc, out);
    return result ? result : bind_lanes(dc, out, &lop3);
}

/* lop3.{or,and}.b32 d|p, a, b, c, table, q: p = (d != 0) op q. flags: 1 for .and. */
static enum step lop3_pred(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct lop3_masks masks = lop3_expand(in->imm[2]);
    uint32_t bits = 0, q = arg_pred(w, in->arg[6]);
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t l = first_lane(m);
        uint32_t a = (uint32_t)arg_lane(w, in->arg[2], l), b = (uint32_t)arg_lane(w, in->arg[3], l);
        uint32_t r = lop3_apply(masks, a, b, (uint32_t)arg_lane(w, in->arg[4], l));
        bits |= (uint32_t)(r != 0) << l;
        arg_set_lane(w, in->arg[0], l, r);
    }
    arg_set_pred(w, in->arg[1], mask, in->flags ? bits & q : bits | q);
    return STEP_NEXT;
}

int bind_lop3_pred(struct decoder *dc, struct insn *out)
{
    out->flags = mod_has(dc, "and");
    out->fn = lop3_pred;
    return bind_lop3_table(dc, out);
}

/* ---- counting and searching ---- */

LANE_OP1(popc_32, uint32_t, uint32_t, __builtin_popcount(a))
LANE_OP1(popc_64, uint32_t, uint64_t, __builtin_popcountll(a))
LANE_OP1(clz_32, uint32_t, uint32_t, a ? __builtin_clz(a) : 32)
LANE_OP1(clz_64, uint32_t, uint64_t, a ? __builtin_clzll(a) : 64)

/* Position of the most significant bit that is not the sign; -1 when there is none. */
LANE_INLINE uint32_t find_top(uint64_t v, uint32_t width, bool is_signed, bool amount)
{
    uint64_t ones = width == 64 ? UINT64_MAX : UINT32_MAX;
    uint32_t top;
    v &= ones;
    if (is_signed && v >> (width - 1) & 1) v = ~v & ones;
    if (!v) return UINT32_MAX;
    top = 63 - (uint32_t)__builtin_clzll(v);
    return amount ? width - 1 - top : top;
}

/* flags: 1 for .shiftamt */
LANE_OP1(bfind_u32, uint32_t, uint32_t, find_top(a, 32, false, in->flags))
LANE_OP1(bfind_s32, uint32_t, uint32_t, find_top(a, 32, true, in->flags))
LANE_OP1(bfind_u64, uint32_t, uint64_t, find_top(a, 64, false, in->flags))
LANE_OP1(bfind_s64, uint32_t, uint64_t, find_top(a, 64, true, in->flags))

LANE_INLINE uint64_t reverse(uint64_t v)
{
    v = (v >> 1 & 0x5555555555555555ULL) | (v & 0x5555555555555555ULL) << 1;
    v = (v >> 2 & 0x3333333333333333ULL) | (v & 0x3333333333333333ULL) << 2;
    v = (v >> 4 & 0x0F0F0F0F0F0F0F0FULL) | (v & 0x0F0F0F0F0F0F0F0FULL) << 4;
    return __builtin_bswap64(v);
}

LANE_OP1(brev_32, uint32_t, uint32_t, reverse(a) >> 32)
LANE_OP1(brev_64, uint64_t, uint64_t, reverse(a))

/* The offset-th set bit of the mask at or above base, below it for negative offsets; base itself for 0;
 * all ones if there is none (PTX ISA "fns"). For the least offset, whose magnitude does not fit, an H200 answers 0. */
LANE_INLINE uint32_t find_nth(uint32_t mask, uint32_t base, int32_t offset)
{
    const int64_t step = offset < 0 ? -1 : 1;
    int64_t left = offset < 0 ? -(int64_t)offset : offset;
    if (offset == 0) return base < 32 && (mask >> base & 1U) ? base : UINT32_MAX;
    if (offset == INT32_MIN) return 0;
    for (int64_t at = base; at >= 0 && at < 32; at += step)
        if ((mask >> at & 1U) && --left == 0) return (uint32_t)at;
    return UINT32_MAX;
}
LANE_OP3(fns_32, uint32_t, uint32_t, uint32_t, int32_t, find_nth(a, b, c))

static size_table popc_table = {[4] = &popc_32, [8] = &popc_64},
                  clz_table = {[4] = &clz_32, [8] = &clz_64},
                  brev_table = {[4] = &brev_32, [8] = &brev_64};

int bind_popc(struct decoder *dc, struct insn *out)
{
    return bind_by_size(dc, out, popc_table);
}
int bind_clz(struct decoder *dc, struct insn *out)
{
    return bind_by_size(dc, out, clz_table);
}
int bind_brev(struct decoder *dc, struct insn *out)
{
    return bind_by_size(dc, out, brev_table);
}

int bind_fns(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, &fns_32);
}

int bind_bfind(struct decoder *dc, struct insn *out)
{
    static const struct lane_op *const table[T_COUNT] = {
        [T_U32] = &bfind_u32, [T_S32] = &bfind_s32, [T_U64] = &bfind_u64, [T_S64] = &bfind_s64};
    out->flags = mod_has(dc, "shiftamt");
    return bind_lanes(dc, out, table[out->type]);
}

/* ---- bit fields: position and length clamp at the width; 32-bit forms take them modulo 256, where an H200
 * (the ISA: at most 255) does, 64-bit ones as they are ---- */

LANE_INLINE uint64_t field_mask(uint32_t length)
{
    return length >= 64 ? UINT64_MAX : ((uint64_t)1 << length) - 1;
}

LANE_INLINE uint64_t extract(uint64_t a, uint32_t pos, uint32_t len, uint32_t width, bool is_signed)
{
    uint32_t last, sign = 0;
    uint64_t value;
    if (width == 32) {
        pos &= 0xFF;
        len &= 0xFF;
    }
    if (is_signed && len) {
        last = pos < width && len - 1 < width - 1 - pos ? pos + len - 1 : width - 1;
        sign = (uint32_t)(a >> last & 1);
    }
    value = pos >= width ? 0 : a >> (pos & 63) & field_mask(len);
    if (!sign) return value;
    /* Everything above the field, or above what the source had of it, is copies of the sign. */
    last = pos >= width ? 0 : len < width - pos ? len : width - pos;
    return value | ~field_mask(last);
}

LANE_INLINE uint64_t insert(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, uint32_t width)
{
    uint64_t mask;
    if (width == 32) {
        pos &= 0xFF;
        len &= 0xFF;
    }
    if (pos >= 64) return b;
    mask = field_mask(len) << pos;
    return (b & ~mask) | (a << pos & mask);
}

LANE_OP3(bfe_u32, uint32_t, uint32_t, uint32_t, uint32_t, extract(a, b, c, 32, false))
LANE_OP3(bfe_s32, uint32_t, uint32_t, uint32_t, uint32_t, extract(a, b, c, 32, true))
LANE_OP3(bfe_u64, uint64_t, uint64_t, uint32_t, uint32_t, extract(a, b, c, 64, false))
LANE_OP3(bfe_s64, uint64_t, uint64_t, uint32_t, uint32_t, extract(a, b, c, 64, true))

int bind_bfe(struct decoder *dc, struct insn *out)
{
    static const struct lane_op *const table[T_COUNT] = {
        [T_U32] = &bfe_u32, [T_S32] = &bfe_s32, [T_U64] = &bfe_u64, [T_S64] = &bfe_s64};
    return bind_lanes(dc, out, table[out->type]);
}

#define BFI(n, T)                                                                    \
    LANE_BODY(bfi_##n)                                                               \
    {                                                                                \
        const T *a = arg_src(w, in->arg[1]), *b = arg_src(w, in->arg[2]);            \
        const uint32_t *pos = arg_src(w, in->arg[3]), *len = arg_src(w, in->arg[4]); \
        T r[WARP_LANES];                                                             \
        LANES(l) r[l] = (T)insert(a[l], b[l], pos[l], len[l], n);                    \
        LANE_COMMIT(T, 0, r);                                                        \
    }                                                                                \
    LANE_OP(bfi_##n)
BFI(32, uint32_t)
BFI(64, uint64_t)

int bind_bfi(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, out->type == T_B64 ? &bfi_64 : &bfi_32);
}

/* b ones from bit a on; .clamp limits both at 32, .wrap takes them modulo 32. */
LANE_OP2(bmsk_clamp, uint32_t, uint32_t, uint32_t,
         a >= 32 ? 0 : field_mask(b >= 32 ? 32 : b) << (a & 31))
LANE_OP2(bmsk_wrap, uint32_t, uint32_t, uint32_t, field_mask(b & 31) << (a & 31))

int bind_bmsk(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, mod_has(dc, "clamp") ? &bmsk_clamp : &bmsk_wrap);
}

/* Sign- or zero-extends the low b bits of a; flags: 1 for .wrap. */
LANE_INLINE uint32_t extend(uint32_t a, uint32_t b, bool is_signed, bool wrap)
{
    uint32_t top;
    if (wrap) b &= 31;
    if (b == 0) return 0;
    if (b >= 32) return a;
    top = 32 - b;
    return is_signed ? (uint32_t)((int32_t)(a << top) >> top) : a << top >> top;
}

LANE_OP2(szext_u32, uint32_t, uint32_t, uint32_t, extend(a, b, false, in->flags))
LANE_OP2(szext_s32, uint32_t, uint32_t, uint32_t, extend(a, b, true, in->flags))

int bind_szext(struct decoder *dc, struct insn *out)
{
    out->flags = mod_has(dc, "wrap");
    return bind_lanes(dc, out, out->type == T_S32 ? &szext_s32 : &szext_u32);
}

/* ---- prmt ---- */

/* Byte `sel & 7` of b:a, or eight copies of its top bit when bit 3 of sel is set. */
LANE_INLINE uint32_t pick_byte(uint64_t bytes, uint32_t sel)
{
    uint32_t v = (uint32_t)(bytes >> (8 * (sel & 7))) & 0xFF;
    return sel & 8 ? (v & 0x80 ? 0xFF : 0) : v;
}

LANE_INLINE uint32_t permute(uint32_t a, uint32_t b, uint32_t sel)
{
    uint64_t bytes = join(a, b);
    return pick_byte(bytes, sel) | pick_byte(bytes, sel >> 4) << 8 |
           pick_byte(bytes, sel >> 8) << 16 | pick_byte(bytes, sel >> 12) << 24;
}

/* The selectors that a mode makes of the two low bits of c (PTX ISA "prmt", table of modes). */
#define PRMT_MODES(X)                        \
    X("f4e", 0x3210, 0x4321, 0x5432, 0x6543) \
    X("b4e", 0x5670, 0x6701, 0x7012, 0x0123) \
    X("rc8", 0x0000, 0x1111, 0x2222, 0x3333) \
    X("ecl", 0x3210, 0x3211, 0x3222, 0x3333) \
    X("ecr", 0x0000, 0x1110, 0x2210, 0x3210) \
    X("rc16", 0x1010, 0x3232, 0x1010, 0x3232)

static const struct prmt_mode {
    const char *name;
    uint16_t select[4];
} prmt_modes[] = {
#define X(name, s0, s1, s2, s3) {name, {s0, s1, s2, s3}},
    PRMT_MODES(X)
#undef X
};

LANE_OP3(prmt, uint32_t, uint32_t, uint32_t, uint32_t, permute(a, b, c))
LANE_OP3(prmt_mode, uint32_t, uint32_t, uint32_t, uint32_t,
         permute(a, b, ((const struct prmt_mode *)in->aux)->select[c & 3]))

int bind_prmt(struct decoder *dc, struct insn *out)
{
    for (size_t i = 0; i < sizeof prmt_modes / sizeof *prmt_modes; i++)
        if (mod_has(dc, prmt_modes[i].name)) out->aux = &prmt_modes[i];
    return bind_lanes(dc, out, out->aux ? &prmt_mode : &prmt);
}
