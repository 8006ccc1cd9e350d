/*
 * mov in all its forms, selp, slct, and the instructions that compute with addresses: cvta,
 * isspacep, mapa, getctarank.
 */
#include "machine/exec.h"
#include "machine/lanes.h"

/* ---- mov ---- */

LANE_OP1(mov_16, uint16_t, uint16_t, a)
LANE_OP1(mov_32, uint32_t, uint32_t, a)
LANE_OP1(mov_64, uint64_t, uint64_t, a)

static enum step mov_128(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint64_t *d = arg_dst(w, in->arg[0]);
    const uint64_t *s = arg_src(w, in->arg[1]);
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask);
        d[l] = s[l];
        d[WARP_LANES + l] = s[WARP_LANES + l];
    }
    return STEP_NEXT;
}

int bind_mov(struct decoder *dc, struct insn *out)
{
    static const struct lane_op *const by_size[] = {[2] = &mov_16, [4] = &mov_32, [8] = &mov_64};
    if (out->arg[0].bits == 128) {
        out->fn = mov_128;
        return 0;
    }
    return bind_lanes(dc, out, by_size[out->arg[0].bits / 8]);
}

static enum step mov_pred(struct warp *w, const struct insn *in, uint32_t mask)
{
    arg_set_pred(w, in->arg[0], mask, arg_pred(w, in->arg[1]));
    return STEP_NEXT;
}

int bind_mov_pred(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = mov_pred;
    return 0;
}

/* The address of lane `l`'s element `i` inside a register of `count` elements of `bytes`. A 128-bit
 * register keeps its halves apart. */
static uint8_t *element(uint8_t *slot, uint32_t bytes, uint32_t count, uint32_t i, uint32_t l)
{
    uint32_t at = i * bytes, stride = bytes * count;
    if (stride == 16) {
        slot += at / 8 * (WARP_LANES * 8);
        at %= 8;
        stride = 8;
    }
    return slot + (size_t)l * stride + at;
}

/* Elements lie little-endian inside each lane of the wide register. */
static enum step mov_pack(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint8_t *d = arg_dst(w, in->arg[0]);
    for (uint32_t i = 0; i < in->list_count; i++) {
        const uint8_t *s = arg_src(w, in->list[i]);
        uint32_t bytes = in->arg[0].bits / 8U / in->list_count, from = in->list[i].bits / 8U;
        for (uint32_t m = mask; m; m &= m - 1) {
            uint32_t l = first_lane(m);
            memcpy(element(d, bytes, in->list_count, i, l), s + (size_t)l * from, bytes);
        }
    }
    return STEP_NEXT;
}

static enum step mov_unpack(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint8_t *s = w->bank[in->arg[1].bank] + in->arg[1].offset;
    uint32_t bytes = in->arg[1].bits / 8U / in->list_count;
    for (uint32_t i = 0; i < in->list_count; i++) {
        uint8_t *d = arg_dst(w, in->list[i]);
        uint32_t to = in->list[i].bits / 8U;
        if (in->list[i].sink) continue;
        for (uint32_t m = mask; m; m &= m - 1) {
            uint32_t l = first_lane(m);
            memset(d + (size_t)l * to, 0, to);
            memcpy(d + (size_t)l * to, element(s, bytes, in->list_count, i, l), bytes);
        }
    }
    return STEP_NEXT;
}

/* The two usual shapes, two halves of a 32- or 64-bit register, a lane at a time and branch-
 * free. */
#define HALVES_OP(n, T, W)                                                    \
    LANE_BODY(pack_##n)                                                       \
    {                                                                         \
        const T *lo = arg_src(w, in->list[0]), *hi = arg_src(w, in->list[1]); \
        W r[WARP_LANES];                                                      \
        LANES(l) r[l] = (W)((W)lo[l] | (W)hi[l] << n);                        \
        LANE_COMMIT(W, 0, r);                                                 \
    }                                                                         \
    LANE_OP(pack_##n)                                                         \
    LANE_BODY(unpack_##n)                                                     \
    {                                                                         \
        const W *s = arg_src(w, in->arg[1]);                                  \
        T *lo = arg_dst(w, in->list[0]), *hi = arg_dst(w, in->list[1]);       \
        LANES(l)                                                              \
        {                                                                     \
            const W v = s[l];                                                 \
            lo[l] = mask >> l & 1U ? (T)v : lo[l];                            \
            hi[l] = mask >> l & 1U ? (T)(v >> n) : hi[l];                     \
        }                                                                     \
    }                                                                         \
    LANE_OP(unpack_##n)
HALVES_OP(16, uint16_t, uint32_t)
HALVES_OP(32, uint32_t, uint64_t)

/* 0 when the elements of the list fill a register of `bits` evenly. A .b8 register has 16 bits here. */
static int check_elements(struct decoder *dc, const struct insn *out, uint32_t bits)
{
    uint32_t each = out->list_count ? bits / out->list_count : 0;
    const uint32_t held = each == 8 ? 16 : each;
    if (each < 8 || each * out->list_count != bits)
        return bind_invalid(dc, "%u registers do not make up %u bits", (unsigned)out->list_count,
                            bits);
    for (uint32_t i = 0; i < out->list_count; i++)
        if (!out->list[i].sink && out->list[i].bits != held)
            return bind_invalid(dc, "element %u has %u bits, not %u", i,
                                (unsigned)out->list[i].bits, each);
    return 0;
}

int bind_mov_pack(struct decoder *dc, struct insn *out)
{
    int result = check_elements(dc, out, out->arg[0].bits);
    if (result) return result;
    if (out->list_count == 2 && out->arg[0].bits >= 32 && out->arg[0].bits <= 64)
        return bind_lanes(dc, out, out->arg[0].bits == 64 ? &pack_32 : &pack_16);
    out->fn = mov_pack;
    return 0;
}

int bind_mov_unpack(struct decoder *dc, struct insn *out)
{
    int result = check_elements(dc, out, out->arg[1].bits);
    if (result) return result;
    if (out->list_count == 2 && out->arg[1].bits >= 32 && out->arg[1].bits <= 64 &&
        !out->list[0].sink && !out->list[1].sink)
        return bind_lanes(dc, out, out->arg[1].bits == 64 ? &unpack_32 : &unpack_16);
    out->fn = mov_unpack;
    return 0;
}

/* Clocks: the group's cycles; the global timer: nanoseconds at the part's clock rate. */
static enum step mov_clock(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct group *g = w->cta->group;
    uint64_t khz = g->launch->gpu->clock_khz, now = frag_clock(w), value = now;
    uint64_t ns = khz ? now / khz * 1000000U + now % khz * 1000000U / khz : now;
    switch (in->arg[1].offset) {
    case SR_CLOCK_HI: value >>= 32; break;
    case SR_GLOBALTIMER:
    case SR_GLOBALTIMER_LO: value = ns; break;
    case SR_GLOBALTIMER_HI: value = ns >> 32; break;
    default: break;
    }
    for (; mask; mask &= mask - 1) arg_set_lane(w, in->arg[0], first_lane(mask), value);
    return STEP_NEXT;
}

int bind_mov_clock(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = mov_clock;
    return 0;
}

/* ---- selp, slct ---- */

/* Under .ftz a subnormal c counts as zero: -0x1.fffffcp-127 is the lowest of them. */
#define SELP(n, T)                                                        \
    LANE_BODY(selp_##n)                                                   \
    {                                                                     \
        const T *a = arg_src(w, in->arg[1]), *b = arg_src(w, in->arg[2]); \
        uint32_t p = arg_pred(w, in->arg[3]);                             \
        T r[WARP_LANES];                                                  \
        LANES(l) r[l] = p >> l & 1U ? a[l] : b[l];                        \
        LANE_COMMIT(T, 0, r);                                             \
    }                                                                     \
    LANE_OP(selp_##n)                                                     \
    LANE_OP3(slct_s##n, T, T, T, int32_t, c >= 0 ? a : b)                 \
    LANE_OP3(slct_f##n, T, T, T, float, c >= (in->flags ? -0x1.fffffcp-127f : 0.0f) ? a : b)
SELP(16, uint16_t)
SELP(32, uint32_t)
SELP(64, uint64_t)

static const struct lane_op
    *const selp_table[] = {[2] = &selp_16, [4] = &selp_32, [8] = &selp_64},
           *const slct_s_table[] = {[2] = &slct_s16, [4] = &slct_s32, [8] = &slct_s64},
           *const slct_f_table[] = {[2] = &slct_f16, [4] = &slct_f32, [8] = &slct_f64};

int bind_selp(struct decoder *dc, struct insn *out)
{
    return bind_lanes(dc, out, selp_table[out->arg[0].bits / 8]);
}

/* flags: 1 for .ftz. */
int bind_slct(struct decoder *dc, struct insn *out)
{
    out->flags = mod_has(dc, "ftz");
    return bind_lanes(dc, out,
                      (out->type2 == T_F32 ? slct_f_table : slct_s_table)[out->arg[0].bits / 8]);
}

/* ---- addresses ---- */

static uint64_t window_of(struct decoder *dc)
{
    if (mod_has(dc, "shared") || mod_has(dc, "shared::cta") || mod_has(dc, "shared::cluster"))
        return SHARED_WINDOW;
    if (mod_has(dc, "local")) return LOCAL_WINDOW;
    if (mod_has(dc, "param") || mod_has(dc, "param::entry")) return PARAM_WINDOW;
    return 0; /* global and const memory is at its generic address */
}

/* imm[1]: the window to add to a non-generic address, or for .to the bits to clear. An address that
 * already has its window (a variable's, taken as generic) stays as it is. */
#define CVTA(n, T)                                     \
    LANE_OP1(cvta_##n, T, T, a | (uint64_t)in->imm[1]) \
    LANE_OP1(cvta_to_##n, T, T, (a & WINDOW_MASK) == (uint64_t)in->imm[1] ? a & ~WINDOW_MASK : a)
CVTA(32, uint32_t)
CVTA(64, uint64_t)

int bind_cvta(struct decoder *dc, struct insn *out)
{
    const bool to = mod_has(dc, "to");
    out->imm[1] = (int64_t)window_of(dc);
    if (out->arg[0].bits == 32) return bind_lanes(dc, out, to ? &cvta_to_32 : &cvta_32);
    return bind_lanes(dc, out, to ? &cvta_to_64 : &cvta_64);
}

/* A window, or what lies in none: the module's constants, and everything else as global. */
enum { SPACEP_RANK = 1 /* .shared::cta: the CTA's own rank only */, SPACEP_CONST = 2 };

static bool in_space(const struct warp *w, const struct insn *in, uint64_t a)
{
    const struct launch *launch = w->cta->group->launch;
    uint64_t window = a & WINDOW_MASK, consts = (uint64_t)(uintptr_t)launch->consts;
    bool constant = consts && a >= consts && a - consts < launch->kernel->module->const_bytes;
    if (in->flags & SPACEP_CONST) return constant;
    if ((in->flags & SPACEP_RANK) && (uint32_t)a >> SHARED_RANK_SHIFT != w->cta->rank) return false;
    if (in->imm[1]) return window == (uint64_t)in->imm[1];
    return !constant && window != SHARED_WINDOW && window != LOCAL_WINDOW && window != PARAM_WINDOW;
}

/* imm[1]: the window, 0 for .global; flags: SPACEP_*. */
static enum step isspacep(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint32_t bits = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t l = first_lane(m);
        bits |= (uint32_t)in_space(w, in, arg_lane(w, in->arg[1], l)) << l;
    }
    arg_set_pred(w, in->arg[0], mask, bits);
    return STEP_NEXT;
}

int bind_isspacep(struct decoder *dc, struct insn *out)
{
    out->imm[1] = (int64_t)window_of(dc);
    if (mod_has(dc, "shared") || mod_has(dc, "shared::cta")) out->flags |= SPACEP_RANK;
    if (mod_has(dc, "const")) out->flags |= SPACEP_CONST;
    out->fn = isspacep;
    return 0;
}

#define RANK_MASK ((uint64_t)0xFF << SHARED_RANK_SHIFT)

/* The address keeps its offset (and window, when generic) and takes the rank of operand 2. */
static enum step mapa(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask);
        uint64_t a = arg_lane(w, in->arg[1], l), rank = arg_lane(w, in->arg[2], l) & 0xFF;
        arg_set_lane(w, in->arg[0], l, (a & ~RANK_MASK) | rank << SHARED_RANK_SHIFT);
    }
    return STEP_NEXT;
}

static enum step getctarank(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask);
        uint64_t a = arg_lane(w, in->arg[1], l);
        arg_set_lane(w, in->arg[0], l, (a & RANK_MASK) >> SHARED_RANK_SHIFT);
    }
    return STEP_NEXT;
}

int bind_mapa(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = mapa;
    return 0;
}

int bind_getctarank(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = getctarank;
    return 0;
}
