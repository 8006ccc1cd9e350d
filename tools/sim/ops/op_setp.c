/*
 * set and setp. Every comparison is one of seven relations or its negation: an unordered form (ltu)
 * is the negation of the opposite ordered one (ge). The comparison of a type is one routine that
 * returns a word, bit = lane.
 */
#include "ops/fpbits.h"
#include "machine/lanes.h"

enum relation { REL_LT, REL_GT, REL_LE, REL_GE, REL_EQ, REL_NE, REL_NUM };

/* insn.flags */
enum {
    CMP_RELATION = 7,
    CMP_NEGATE = 8,
    CMP_FTZ = 16,
    CMP_AND = 32,
    CMP_OR = 64,
    CMP_XOR = 128,
    CMP_COMBINE = CMP_AND | CMP_OR | CMP_XOR
};

/* name, relation, negated, needs a floating type */
#define COMPARISONS(X)  \
    X("eq", EQ, 0, 0)   \
    X("ne", NE, 0, 0)   \
    X("lt", LT, 0, 0)   \
    X("le", LE, 0, 0)   \
    X("gt", GT, 0, 0)   \
    X("ge", GE, 0, 0)   \
    X("lo", LT, 0, 0)   \
    X("ls", LE, 0, 0)   \
    X("hi", GT, 0, 0)   \
    X("hs", GE, 0, 0)   \
    X("equ", NE, 1, 1)  \
    X("neu", EQ, 1, 1)  \
    X("ltu", GE, 1, 1)  \
    X("leu", GT, 1, 1)  \
    X("gtu", LE, 1, 1)  \
    X("geu", LT, 1, 1)  \
    X("num", NUM, 0, 1) \
    X("nan", NUM, 1, 1)

/* Compares all lanes; packed types use both words (low and high halves), others the first. */
typedef void compare_fn(const void *a, const void *b, uint32_t flags, uint32_t bits[2]);

/* ---- one word from two arrays ---- */

#define COMPARE_WITH(expr)           \
    LANES(l) r[l] = (uint8_t)(expr); \
    break

#define WORD_BODY(name, T, num)                                                                \
    LANE_INLINE uint32_t name(const T a[WARP_LANES], const T b[WARP_LANES], uint32_t flags)    \
    {                                                                                          \
        uint8_t r[WARP_LANES];                                                                 \
        uint32_t bits;                                                                         \
        switch (flags & CMP_RELATION) {                                                        \
        case REL_LT: COMPARE_WITH(a[l] < b[l]);                                                \
        case REL_GT: COMPARE_WITH(a[l] > b[l]);                                                \
        case REL_LE: COMPARE_WITH(a[l] <= b[l]);                                               \
        case REL_GE: COMPARE_WITH(a[l] >= b[l]);                                               \
        case REL_EQ: COMPARE_WITH(a[l] == b[l]);                                               \
        case REL_NE: COMPARE_WITH((a[l] < b[l]) | (a[l] > b[l])); /* ordered: false for NaN */ \
        default: COMPARE_WITH(num);                                                            \
        }                                                                                      \
        bits = lanes_pack(r);                                                                  \
        return flags & CMP_NEGATE ? ~bits : bits;                                              \
    }
WORD_BODY(word_u16, uint16_t, true)
WORD_BODY(word_s16, int16_t, true)
WORD_BODY(word_u32, uint32_t, true)
WORD_BODY(word_s32, int32_t, true)
WORD_BODY(word_u64, uint64_t, true)
WORD_BODY(word_s64, int64_t, true)
WORD_BODY(word_f32, float, (a[l] == a[l]) & (b[l] == b[l]))
WORD_BODY(word_f64, double, (a[l] == a[l]) & (b[l] == b[l]))

/* ---- by type ---- */

struct compare {
    compare_fn *base, *wide;
};

#define COMPARE(name)                                                                       \
    static void name##_base(const void *a, const void *b, uint32_t flags, uint32_t bits[2]) \
    {                                                                                       \
        name##_body(a, b, flags, bits);                                                     \
    }                                                                                       \
    static TARGET_WIDE void name##_wide(const void *a, const void *b, uint32_t flags,       \
                                        uint32_t bits[2])                                   \
    {                                                                                       \
        name##_body(a, b, flags, bits);                                                     \
    }                                                                                       \
    static const struct compare name = {name##_base, name##_wide};

#define COMPARE_PLAIN(t)                                                              \
    LANE_INLINE void compare_##t##_body(const void *a, const void *b, uint32_t flags, \
                                        uint32_t bits[2])                             \
    {                                                                                 \
        bits[0] = bits[1] = word_##t(a, b, flags);                                    \
    }                                                                                 \
    COMPARE(compare_##t)
COMPARE_PLAIN(u16)
COMPARE_PLAIN(s16)
COMPARE_PLAIN(u32)
COMPARE_PLAIN(s32)
COMPARE_PLAIN(u64)
COMPARE_PLAIN(s64)
COMPARE_PLAIN(f64)

LANE_INLINE void compare_f32_body(const void *a, const void *b, uint32_t flags, uint32_t bits[2])
{
    const float *pa = a, *pb = b;
    float fa[WARP_LANES], fb[WARP_LANES];
    if (flags & CMP_FTZ) {
        LANES(l)
        {
            fa[l] = f32_flush(pa[l]);
            fb[l] = f32_flush(pb[l]);
        }
        pa = fa;
        pb = fb;
    }
    bits[0] = bits[1] = word_f32(pa, pb, flags);
}
COMPARE(compare_f32)

/* f16 and bf16, by way of f32; packed forms take the halves of a 32-bit word. */
#define COMPARE_HALF(t, flush)                                                          \
    LANE_INLINE void compare_##t##_body(const void *a, const void *b, uint32_t flags,   \
                                        uint32_t bits[2])                               \
    {                                                                                   \
        const uint16_t *pa = a, *pb = b;                                                \
        float fa[WARP_LANES], fb[WARP_LANES];                                           \
        LANES(l)                                                                        \
        {                                                                               \
            fa[l] = t##_to_f32(flags & CMP_FTZ ? flush(pa[l]) : pa[l]);                 \
            fb[l] = t##_to_f32(flags & CMP_FTZ ? flush(pb[l]) : pb[l]);                 \
        }                                                                               \
        bits[0] = bits[1] = word_f32(fa, fb, flags);                                    \
    }                                                                                   \
    COMPARE(compare_##t)                                                                \
    LANE_INLINE void compare_##t##x2_body(const void *a, const void *b, uint32_t flags, \
                                          uint32_t bits[2])                             \
    {                                                                                   \
        const uint32_t *pa = a, *pb = b;                                                \
        for (uint32_t half = 0; half < 2; half++) {                                     \
            uint16_t ha[WARP_LANES], hb[WARP_LANES];                                    \
            uint32_t both[2];                                                           \
            LANES(l)                                                                    \
            {                                                                           \
                ha[l] = (uint16_t)(pa[l] >> (16 * half));                               \
                hb[l] = (uint16_t)(pb[l] >> (16 * half));                               \
            }                                                                           \
            compare_##t##_body(ha, hb, flags, both);                                    \
            bits[half] = both[0];                                                       \
        }                                                                               \
    }                                                                                   \
    COMPARE(compare_##t##x2)
COMPARE_HALF(f16, f16_flush)
COMPARE_HALF(bf16, (uint16_t))

static const struct compare *const compare_table[T_COUNT] = {
    [T_B16] = &compare_u16,   [T_U16] = &compare_u16,     [T_S16] = &compare_s16,
    [T_B32] = &compare_u32,   [T_U32] = &compare_u32,     [T_S32] = &compare_s32,
    [T_B64] = &compare_u64,   [T_U64] = &compare_u64,     [T_S64] = &compare_s64,
    [T_F32] = &compare_f32,   [T_F64] = &compare_f64,     [T_F16] = &compare_f16,
    [T_BF16] = &compare_bf16, [T_F16X2] = &compare_f16x2, [T_BF16X2] = &compare_bf16x2};

/* ---- handlers; aux is the compare_fn, wrapped as a function pointer may not be a void * ---- */

struct compare_aux {
    compare_fn *fn;
};

static uint32_t combine(uint32_t flags, uint32_t bits, uint32_t c)
{
    if (flags & CMP_AND) return bits & c;
    if (flags & CMP_OR) return bits | c;
    if (flags & CMP_XOR) return bits ^ c;
    return bits;
}

/* setp p|q, a, b{, c}: q is the negated comparison, combined likewise; of packed types p is the low
 * half's and q the high half's. */
static enum step setp(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct compare_aux *aux = in->aux;
    uint32_t bits[2], c = in->flags & CMP_COMBINE ? arg_pred(w, in->arg[4]) : 0;
    aux->fn(arg_src(w, in->arg[2]), arg_src(w, in->arg[3]), in->flags, bits);
    if (ptx_type_kind((enum ptx_type)in->type) != 'v') bits[1] = ~bits[0];
    arg_set_pred(w, in->arg[0], mask, combine(in->flags, bits[0], c));
    arg_set_pred(w, in->arg[1], mask, combine(in->flags, bits[1], c));
    return STEP_NEXT;
}

/* set d, a, b{, c}: all ones or 0 for integer results, 1.0 or 0 for floating ones. imm[2]: what
 * True is, in each half for packed results. */
static enum step set(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct compare_aux *aux = in->aux;
    uint32_t bits[2], c = in->flags & CMP_COMBINE ? arg_pred(w, in->arg[3]) : 0;
    uint64_t truth = (uint64_t)in->imm[2];
    bool packed = ptx_type_kind((enum ptx_type)in->type2) == 'v';
    aux->fn(arg_src(w, in->arg[1]), arg_src(w, in->arg[2]), in->flags, bits);
    bits[0] = combine(in->flags, bits[0], c);
    bits[1] = combine(in->flags, bits[1], c);
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask);
        uint64_t v = bits[0] >> l & 1 ? truth : 0;
        if (packed) v = (v & 0xFFFFU) | (bits[1] >> l & 1 ? truth & 0xFFFF0000U : 0);
        arg_set_lane(w, in->arg[0], l, v);
    }
    return STEP_NEXT;
}

static int bind_compare(struct decoder *dc, struct insn *out, enum ptx_type type)
{
    static const struct {
        const char *name;
        uint8_t relation, negate, floating;
    } names[] = {
#define X(name, relation, negate, floating) {name, REL_##relation, negate, floating},
        COMPARISONS(X)
#undef X
    };
    const struct compare *compare = compare_table[type];
    struct compare_aux *aux = bind_alloc(dc, sizeof *aux);
    char kind = ptx_type_kind(type);
    if (!aux) return -1;
    if (!compare) return bind_unsupported(dc, "comparison of %s", ptx_type_text(type));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!mod_is(dc, 0, names[i].name)) continue;
        if (names[i].floating && kind != 'f' && kind != 'v')
            return bind_invalid(dc, ".%s compares floating-point values", names[i].name);
        if (kind == 'b' && names[i].relation != REL_EQ && names[i].relation != REL_NE)
            return bind_invalid(dc, ".%s does not compare bits", names[i].name);
        if (kind == 's' && (names[i].name[0] == 'h' || !strcmp(names[i].name, "lo") ||
                            !strcmp(names[i].name, "ls")))
            return bind_invalid(dc, ".%s compares unsigned values", names[i].name);
        out->flags = names[i].relation;
        if (names[i].negate) out->flags |= CMP_NEGATE;
        /* Integers have no NaN: compare for equality instead of two orders. */
        if (names[i].relation == REL_NE && kind != 'f' && kind != 'v')
            out->flags = REL_EQ | CMP_NEGATE;
    }
    if (mod_has(dc, "ftz")) out->flags |= CMP_FTZ;
    if (mod_has(dc, "and")) out->flags |= CMP_AND;
    if (mod_has(dc, "or")) out->flags |= CMP_OR;
    if (mod_has(dc, "xor")) out->flags |= CMP_XOR;
    aux->fn = lanes_wide() ? compare->wide : compare->base;
    out->aux = aux;
    return 0;
}

int bind_setp(struct decoder *dc, struct insn *out)
{
    out->fn = setp;
    return bind_compare(dc, out, (enum ptx_type)out->type);
}

int bind_set(struct decoder *dc, struct insn *out)
{
    static const uint32_t truths[T_COUNT] = {
        [T_U32] = UINT32_MAX,   [T_S32] = UINT32_MAX, [T_U16] = 0xFFFF,
        [T_S16] = 0xFFFF,       [T_F32] = 0x3F800000, [T_F16] = 0x3C00,
        [T_F16X2] = 0x3C003C00, [T_BF16] = 0x3F80,    [T_BF16X2] = 0x3F803F80};
    out->fn = set;
    out->imm[2] = truths[out->type];
    return bind_compare(dc, out, (enum ptx_type)out->type2);
}
