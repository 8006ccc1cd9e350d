/*
 * Warp-level matrices: ldmatrix, stmatrix, movmatrix on 8 x 8 tiles of 16-bit elements, and mma.sync
 * m16n8k16. PTX ISA "Warp-level matrix instructions". Lane l holds row l/4, columns 2(l%4) and 2(l%4)+1
 * of a tile, low half first.
 */
#include "access.h"
#include "mem.h"
#include "tensor.h"

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

/* Modifiers: sync aligned m8n8 xN [trans] [space] b16. */
static int bind_rows(struct decoder *dc, struct insn *out, exec_fn *fn)
{
    const uint32_t count = (uint32_t)(dc->mod[3][1] - '0');
    if (out->list_count != count)
        return bind_invalid(dc, ".%s moves %u registers, not %u", dc->mod[3], count,
                            (unsigned)out->list_count);
    out->flags = (uint16_t)(count | (mod_is(dc, 4, "trans") ? MATRIX_TRANS : 0U));
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

/* ---- mma.sync m16n8k16 ---- */

/* insn.list: D, then A (4 registers), B (2), C. */
enum { MMA_A_REGS = 4, MMA_B_REGS = 2, MMA_K = 16, MMA_N = 8 };

struct mma_sync {
    uint8_t format; /* enum tensor_format */
    bool half_d, half_c;
    uint8_t d_regs, c_regs;
};

/* B as TILE_QUADS: register r of lane l holds k = 2(l%4) + 8r and the next, of column l/4. */
static void b_fragment(struct warp *w, const struct arg *list, enum tensor_format format, float *b)
{
    static const uint8_t slot[MMA_N] = {0, 4, 1, 5, 2, 6, 3, 7};
    for (uint32_t r = 0; r < MMA_B_REGS; r++) {
        const uint32_t *reg = arg_src(w, list[r]);
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
            const uint32_t k = lane % 4U * 2U + 8U * r;
            float pair[2];
            tensor_convert(format, &reg[lane], 2, pair);
            b[k * MMA_N + slot[lane / 4U]] = pair[0];
            b[(k + 1U) * MMA_N + slot[lane / 4U]] = pair[1];
        }
    }
}

/* C as floats, whichever its format: element i in acc[i]. */
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

static enum step exec_mma_sync(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct mma_sync *m = in->aux;
    const struct arg *a_list = in->list + m->d_regs, *b_list = a_list + MMA_A_REGS;
    const uint32_t *a_reg[MMA_A_REGS];
    float a[MMA_K * TENSOR_FRAGMENT], b[MMA_K * MMA_N];
    uint32_t acc[4][WARP_LANES], *acc_reg[4];
    (void)mask;
    for (uint32_t i = 0; i < MMA_A_REGS; i++) a_reg[i] = arg_src(w, a_list[i]);
    for (uint32_t i = 0; i < 4; i++) acc_reg[i] = acc[i];
    tensor_fragment((enum tensor_format)m->format, a_reg, a);
    b_fragment(w, b_list, (enum tensor_format)m->format, b);
    c_fragment(w, m, b_list + MMA_B_REGS, acc);
    tensor_wgmma(MMA_N, MMA_K, a, b, acc_reg, true);
    for (uint32_t r = 0; r < m->d_regs; r++) {
        uint32_t *reg = arg_dst(w, in->list[r]);
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
            float pair[2];
            memcpy(&pair[0], &acc[m->half_d ? 2 * r : r][lane], sizeof pair[0]);
            memcpy(&pair[1], &acc[m->half_d ? 2 * r + 1 : r][lane], sizeof pair[1]);
            reg[lane] = m->half_d ? float_to_half(pair[0]) | (uint32_t)float_to_half(pair[1]) << 16
                                  : acc[r][lane];
        }
    }
    return STEP_NEXT;
}

/* Modifiers: sync aligned m16n8k16 row col D A B C. */
int bind_mma_sync(struct decoder *dc, struct insn *out)
{
    struct mma_sync *m = bind_alloc(dc, sizeof *m);
    if (!m) return -1;
    m->half_d = mod_type(dc, 5) == T_F16;
    m->half_c = mod_type(dc, 8) == T_F16;
    m->d_regs = m->half_d ? 2 : 4;
    m->c_regs = m->half_c ? 2 : 4;
    m->format = mod_type(dc, 6) == T_F16 ? TF_F16 : TF_BF16;
    if (mod_type(dc, 6) != mod_type(dc, 7))
        return bind_invalid(dc, "A and B must have the same type");
    if (m->format == TF_BF16 && (m->half_d || m->half_c))
        return bind_invalid(dc, "C and D are f32 when A and B are bf16");
    const uint32_t wanted = (uint32_t)MMA_A_REGS + MMA_B_REGS + m->d_regs + m->c_regs;
    if (out->list_count != wanted)
        return bind_invalid(dc, "D, A, B and C have %u registers in all, not %u", wanted,
                            (unsigned)out->list_count);
    out->aux = m;
    out->fn = exec_mma_sync;
    return 0;
}
