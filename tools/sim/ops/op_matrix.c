/*
 * Warp-level matrices between registers and shared memory: ldmatrix, stmatrix, movmatrix on 8 x 8 tiles
 * of 16-bit elements. PTX ISA "Warp-level matrix instructions". Lane l holds row l/4, columns 2(l%4)
 * and 2(l%4)+1 of a tile, low half first.
 */
#include "access.h"
#include "mem.h"

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
