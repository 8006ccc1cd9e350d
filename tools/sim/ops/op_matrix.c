/*
 * Warp-level matrices: ldmatrix, stmatrix, movmatrix on 8 x 8 tiles of 16-bit elements, and mma.sync
 * m16n8. PTX ISA "Warp-level matrix instructions". Lane l holds row l/4, columns 2(l%4) and 2(l%4)+1
 * of a tile, low half first.
 */
#include "access.h"
#include "mem.h"
#include "tensor.h"

#include <stdio.h>

enum { ROWS = 8, ROW_BYTES = 16, TILES = 4 };

typedef uint16_t tile[ROWS][ROWS];

/* insn.flags of all three. */
enum { MATRIX_COUNT = 7, MATRIX_TRANS = 8 };

static void tile_to_register(tile t, bool trans, uint32_t *reg)
{
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        const uint32_t g = lane / 4U, q = lane % 4U * 2U;
        const uint16_t low = trans ? t[q][g] : t[g][q];
        const uint16_t high = trans ? t[q + 1][g] : t[g][q + 1];
        reg[lane] = low | (uint32_t)high << 16;
    }
}

static void register_to_tile(const uint32_t *reg, bool trans, tile t)
{
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        const uint32_t g = lane / 4U, q = lane % 4U * 2U;
        *(trans ? &t[q][g] : &t[g][q]) = (uint16_t)reg[lane];
        *(trans ? &t[q + 1][g] : &t[g][q + 1]) = (uint16_t)(reg[lane] >> 16);
    }
}

/* Lane 8k + r addresses row r of tile k; the lanes beyond are not looked at. False after a fault. */
static bool locate_rows(struct warp *w, const struct insn *in, struct arg base,
                        enum access_kind access, uint8_t *host[WARP_LANES])
{
    const uint32_t count = in->flags & MATRIX_COUNT;
    const uint32_t lanes = FULL_MASK >> (WARP_LANES - ROWS * count);
    uint64_t address[WARP_LANES];
    access_addresses(w, base, in->imm[0], address);
    if (!mem_lanes(w, in, lanes, (enum ptx_space)in->space, address, ROW_BYTES, access, false,
                   host))
        return false;
    if (w->cta->group->observer)
        access_publish(w, in, lanes, (enum ptx_space)in->space, address, ROW_BYTES, access, false);
    return true;
}

static enum step exec_ldmatrix(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint8_t *host[WARP_LANES];
    tile t[TILES];
    (void)mask;
    if (!locate_rows(w, in, in->arg[1], ACCESS_READ, host)) return STEP_FAULT;
    for (uint32_t i = 0; i < ROWS * (in->flags & MATRIX_COUNT); i++)
        memcpy(t[i / ROWS][i % ROWS], host[i], ROW_BYTES);
    for (uint32_t k = 0; k < (in->flags & MATRIX_COUNT); k++)
        tile_to_register(t[k], in->flags & MATRIX_TRANS, arg_dst(w, in->list[k]));
    return STEP_NEXT;
}

static enum step exec_stmatrix(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint8_t *host[WARP_LANES];
    tile t[TILES];
    (void)mask;
    if (!locate_rows(w, in, in->arg[0], ACCESS_WRITE, host)) return STEP_FAULT;
    for (uint32_t k = 0; k < (in->flags & MATRIX_COUNT); k++)
        register_to_tile(arg_src(w, in->list[k]), in->flags & MATRIX_TRANS, t[k]);
    for (uint32_t i = 0; i < ROWS * (in->flags & MATRIX_COUNT); i++)
        memcpy(host[i], t[i / ROWS][i % ROWS], ROW_BYTES);
    access_changed(w->cta->group);
    return STEP_NEXT;
}

static enum step exec_movmatrix(struct warp *w, const struct insn *in, uint32_t mask)
{
    tile t;
    (void)mask;
    register_to_tile(arg_src(w, in->arg[1]), false, t);
    tile_to_register(t, true, arg_dst(w, in->arg[0]));
    return STEP_NEXT;
}

/* Modifiers: sync aligned, then m8n8, xN and [trans] in an order of the rows', [space] b16. */
static int bind_rows(struct decoder *dc, struct insn *out, exec_fn *fn)
{
    uint32_t count = 0;
    bool trans = false;
    for (uint32_t i = 2; i < 5; i++) {
        if (dc->mod[i] && dc->mod[i][0] == 'x') count = (uint32_t)(dc->mod[i][1] - '0');
        if (mod_is(dc, i, "trans")) trans = true;
    }
    if (out->list_count != count)
        return bind_invalid(dc, ".x%u moves %u registers, not %u", count, count,
                            (unsigned)out->list_count);
    out->flags = (uint16_t)(count | (trans ? MATRIX_TRANS : 0U));
    out->space = dc->mod[5] ? SPACE_SHARED : SPACE_NONE;
    out->fn = fn;
    return 0;
}

int bind_ldmatrix(struct decoder *dc, struct insn *out)
{
    return bind_rows(dc, out, exec_ldmatrix);
}
int bind_stmatrix(struct decoder *dc, struct insn *out)
{
    return bind_rows(dc, out, exec_stmatrix);
}

int bind_movmatrix(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_movmatrix;
    return 0;
}

/* ---- mma.sync m16n8 ---- */

/* insn.list: D, then A (2 or 4 registers), B (half as many), C. */
enum { MMA_A_REGS = 4, MMA_MAX_K = 32, MMA_N = 8 };

struct mma_sync {
    uint8_t format_a, format_b; /* enum tensor_format */
    bool half_d, half_c, saturate;
    uint8_t a_regs, d_regs;
    uint8_t k;
};

/* B as TILE_QUADS: register r of lane l holds, of column l/4, the (l%4 + 4r)-th 32 bits of k. */
static void b_fragment(struct warp *w, const struct mma_sync *m, const struct arg *list, float *b)
{
    static const uint8_t slot[MMA_N] = {0, 4, 1, 5, 2, 6, 3, 7};
    const enum tensor_format format = (enum tensor_format)m->format_b;
    const uint32_t per_reg = 4U / tensor_format_bytes(format);
    for (uint32_t r = 0; r < m->a_regs / 2U; r++) {
        const uint32_t *reg = arg_src(w, list[r]);
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
            const uint32_t k = (lane % 4U + 4U * r) * per_reg;
            float value[4];
            tensor_convert(format, &reg[lane], per_reg, value);
            for (uint32_t i = 0; i < per_reg; i++) b[(k + i) * MMA_N + slot[lane / 4U]] = value[i];
        }
    }
}

/* C as 32-bit patterns, whichever its format: element i in acc[i]. */
static void c_fragment(struct warp *w, const struct mma_sync *m, const struct arg *list,
                       uint32_t acc[4][WARP_LANES])
{
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t *reg = arg_src(w, list[m->half_c ? i / 2U : i]);
        for (uint32_t lane = 0; lane < WARP_LANES; lane++)
            acc[i][lane] =
                m->half_c ? half_bits((uint16_t)(reg[lane] >> 16U * (i & 1U))) : reg[lane];
    }
}

static void write_d(struct warp *w, const struct insn *in, const struct mma_sync *m,
                    uint32_t acc[4][WARP_LANES])
{
    for (uint32_t r = 0; r < m->d_regs; r++) {
        uint32_t *reg = arg_dst(w, in->list[r]);
        for (uint32_t lane = 0; lane < WARP_LANES; lane++)
            reg[lane] = m->half_d ? tensor_half_result(acc[2 * r][lane]) |
                                        (uint32_t)tensor_half_result(acc[2 * r + 1][lane]) << 16
                                  : acc[r][lane];
    }
}

/* A and B as floats, C as patterns, `p` set up over them. */
struct mma_operands {
    float a[MMA_MAX_K * TENSOR_FRAGMENT], b[MMA_MAX_K * MMA_N];
    uint32_t acc[4][WARP_LANES], *acc_reg[4];
    struct tensor_fragments p;
};

static void read_operands(struct warp *w, const struct insn *in, struct mma_operands *o)
{
    const struct mma_sync *m = in->aux;
    const struct arg *a_list = in->list + m->d_regs, *b_list = a_list + m->a_regs;
    const uint32_t *a_reg[MMA_A_REGS];
    for (uint32_t i = 0; i < m->a_regs; i++) a_reg[i] = arg_src(w, a_list[i]);
    /* cppcheck-suppress uninitvar ; only the rows' addresses are taken */
    for (uint32_t i = 0; i < 4; i++) o->acc_reg[i] = o->acc[i];
    tensor_fragment((enum tensor_format)m->format_a, a_reg, m->a_regs, o->a);
    b_fragment(w, m, b_list, o->b);
    c_fragment(w, m, b_list + m->a_regs / 2U, o->acc);
    o->p = (struct tensor_fragments){MMA_N, m->k, o->a, o->b, o->acc_reg, true};
}

static enum step exec_mma_sync(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct mma_sync *m = in->aux;
    const struct tensor_rule rule =
        tensor_rule_of((enum tensor_format)m->format_a, (enum tensor_format)m->format_b, m->half_c,
                       m->half_d, false);
    struct mma_operands o;
    (void)mask;
    read_operands(w, in, &o);
    tensor_wgmma(&o.p, &rule);
    write_d(w, in, m, o.acc);
    return STEP_NEXT;
}

/* C plus the sum of the products, an ordinary addition of f32 or of f16. */
static void add_c(const struct mma_sync *m, uint32_t acc[4][WARP_LANES],
                  uint32_t sum[4][WARP_LANES])
{
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
            float c, d;
            memcpy(&c, &acc[i][lane], sizeof c);
            memcpy(&d, &sum[i][lane], sizeof d);
            d += c; /* exact enough in f32 for one rounding to f16 */
            memcpy(&acc[i][lane], &d, sizeof d);
            if (d != d) acc[i][lane] = 0x7FFFFFFFU;
            if (m->half_d) acc[i][lane] = float_to_half(d);
        }
    }
}

/*
 * 8-bit floats become f16 and go through two products of half of K: first the lower two elements of
 * every register, with C = 0, then the upper two; C comes last. That is what ptxas makes of the
 * instruction, and what an H200 answers.
 */
static enum step exec_mma_fp8(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct mma_sync *m = in->aux;
    const struct tensor_rule rule = tensor_rule_of(TF_F16, TF_F16, m->half_d, m->half_d, false);
    const uint32_t k_half = m->k / 2U;
    struct mma_operands o;
    uint32_t sum[4][WARP_LANES] = {{0}}, *sum_reg[4] = {sum[0], sum[1], sum[2], sum[3]};
    (void)mask;
    read_operands(w, in, &o);
    for (uint32_t half = 0; half < 2; half++) {
        float a[MMA_MAX_K / 2 * TENSOR_FRAGMENT], b[MMA_MAX_K / 2 * MMA_N];
        for (uint32_t k = 0; k < k_half; k++) {
            const size_t from = (k / 2U * 4U) + 2U * half + k % 2U;
            memcpy(a + (size_t)k * TENSOR_FRAGMENT, o.a + from * TENSOR_FRAGMENT,
                   TENSOR_FRAGMENT * sizeof *a);
            memcpy(b + (size_t)k * MMA_N, o.b + from * MMA_N, MMA_N * sizeof *b);
        }
        tensor_wgmma(&(struct tensor_fragments){MMA_N, k_half, a, b, sum_reg, half == 1}, &rule);
        for (uint32_t i = 0; m->half_d && i < 4; i++)
            for (uint32_t lane = 0; lane < WARP_LANES; lane++)
                sum[i][lane] = half_bits(tensor_half_result(sum[i][lane]));
    }
    add_c(m, o.acc, sum);
    for (uint32_t r = 0; r < m->d_regs; r++) {
        uint32_t *reg = arg_dst(w, in->list[r]);
        for (uint32_t lane = 0; lane < WARP_LANES; lane++)
            reg[lane] =
                m->half_d ? o.acc[2 * r][lane] | o.acc[2 * r + 1][lane] << 16 : o.acc[r][lane];
    }
    return STEP_NEXT;
}

static enum step exec_mma_integer(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct mma_sync *m = in->aux;
    struct mma_operands o;
    (void)mask;
    read_operands(w, in, &o);
    tensor_wgmma_integer(&o.p, m->saturate);
    write_d(w, in, m, o.acc);
    return STEP_NEXT;
}

static enum tensor_format format_of(enum ptx_type type)
{
    switch (type) {
    case T_F16: return TF_F16;
    case T_BF16: return TF_BF16;
    case T_TF32: return TF_TF32;
    case T_E4M3: return TF_E4M3;
    case T_E5M2: return TF_E5M2;
    case T_S8: return TF_S8;
    default: return TF_U8;
    }
}

/* The types of D, A, B and C are modifiers `first` to first + 3; the shape is modifier 2. */
static struct mma_sync *bind_mma(struct decoder *dc, struct insn *out, uint32_t first)
{
    struct mma_sync *m = bind_alloc(dc, sizeof *m);
    unsigned k = 0;
    if (!m) return NULL;
    (void)sscanf(dc->mod[2], "m16n8k%u", &k);
    m->k = (uint8_t)k;
    m->half_d = mod_type(dc, first) == T_F16;
    m->half_c = mod_type(dc, first + 3) == T_F16;
    m->d_regs = m->half_d ? 2 : 4;
    m->format_a = (uint8_t)format_of(mod_type(dc, first + 1));
    m->format_b = (uint8_t)format_of(mod_type(dc, first + 2));
    m->a_regs =
        (uint8_t)(m->k * tensor_format_bytes((enum tensor_format)m->format_a) > 16U ? 4U : 2U);
    const uint32_t wanted = m->a_regs + m->a_regs / 2U + m->d_regs + (m->half_c ? 2U : 4U);
    if (out->list_count != wanted) {
        (void)bind_invalid(dc, "D, A, B and C have %u registers in all, not %u", wanted,
                           (unsigned)out->list_count);
        return NULL;
    }
    out->aux = m;
    return m;
}

/* Modifiers: sync aligned shape row col D A B C. */
int bind_mma_sync(struct decoder *dc, struct insn *out)
{
    out->fn = exec_mma_sync;
    return bind_mma(dc, out, 5) ? 0 : -1;
}

int bind_mma_fp8(struct decoder *dc, struct insn *out)
{
    out->fn = exec_mma_fp8;
    if (mod_type(dc, 5) != mod_type(dc, 8))
        return bind_invalid(dc, "C and D must have the same type when A and B have 8 bits");
    return bind_mma(dc, out, 5) ? 0 : -1;
}

/* Modifiers: sync aligned shape row col [satfinite] D A B C. */
int bind_mma_integer(struct decoder *dc, struct insn *out)
{
    struct mma_sync *m = bind_mma(dc, out, 6);
    if (!m) return -1;
    m->saturate = dc->mod[5] != NULL;
    out->fn = exec_mma_integer;
    return 0;
}
