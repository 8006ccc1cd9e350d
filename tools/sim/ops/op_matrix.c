/*
 * Warp-level matrices between registers and shared memory: ldmatrix, stmatrix, movmatrix. PTX ISA
 * "Warp-level matrix instructions". A row in shared memory is 16 bytes; lane l, with g = l/4 and q = l%4:
 *   m8n8.b16           a register is columns 2q and 2q + 1 of row g, low half first; .trans: rows 2q and
 *                      2q + 1 of column g
 *   m8n16.b8x16.*      columns 4q to 4q + 3 of row g, of codes that were unpacked to a byte each
 *   m16n16.trans.*     register r: byte j is row 4q + j, column g + 8r (two registers a matrix)
 *   stmatrix m16n8.b8  byte j is row 2q + j%2, column g + 8(j/2) of the eight rows that are stored
 */
#include "ops/access.h"
#include "async/late.h"
#include "machine/mem.h"
#include "ops/tensor.h"

enum { ROWS = 8, ROW_BYTES = 16, MAX_ROWS = WARP_LANES };

typedef uint16_t tile[ROWS][ROWS];

/* insn.flags of all three. */
enum {
    MATRIX_COUNT = 7,
    MATRIX_TRANS = 8,
    MATRIX_TALL = 16,     /* 16 rows a matrix, bytes */
    MATRIX_BYTES = 32,    /* stmatrix of bytes */
    MATRIX_BITS_SHIFT = 8 /* bits of packed codes in shared memory, 0: none */
};

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

/* Rows of a matrix. */
static uint32_t rows_of(const struct insn *in)
{
    return in->flags & MATRIX_TALL ? 2U * ROWS : ROWS;
}

/* Rows of matrices in shared memory. */
struct rows {
    uint32_t lanes; /* that address one */
    uint64_t address[WARP_LANES];
    struct lane_span span;
    uint8_t *host[WARP_LANES];
};

/* Lane 8k + r (tall ones: 16k + r) addresses row r of tile k; the lanes beyond are not looked at. False
 * after a fault. */
static bool locate_rows(struct warp *w, const struct insn *in, struct arg base,
                        enum access_kind access, struct rows *rows)
{
    const uint32_t count = in->flags & MATRIX_COUNT;
    rows->lanes = FULL_MASK >> (WARP_LANES - rows_of(in) * count);
    access_addresses(w, base, in->imm[0], rows->address);
    rows->span = mem_measure(rows->address, rows->lanes, ROW_BYTES);
    return mem_lanes(w, in, rows->lanes, (enum ptx_space)in->space, rows->address, &rows->span,
                     ROW_BYTES, access, false, rows->host);
}

static void publish_rows(struct warp *w, const struct insn *in, const struct rows *rows,
                         enum access_kind access, bool unchanged)
{
    if (w->cta->group->observer)
        access_publish(w, in, rows->lanes, (enum ptx_space)in->space, rows->address, &rows->span,
                       ROW_BYTES, access, false, unchanged);
}

/* A tall matrix to its two registers. */
static void rows_to_registers(uint8_t (*row)[ROW_BYTES], struct warp *w, const struct arg *list)
{
    for (uint32_t r = 0; r < 2; r++) {
        uint32_t *reg = arg_dst(w, list[r]);
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
            const uint32_t first = lane % 4U * 4U, column = lane / 4U + 8U * r;
            reg[lane] = 0;
            for (uint32_t j = 0; j < 4; j++)
                reg[lane] |= (uint32_t)row[first + j][column] << 8U * j;
        }
    }
}

static enum step exec_ldmatrix(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct rows from;
    const uint32_t bits = in->flags >> MATRIX_BITS_SHIFT;
    (void)mask;
    if (!locate_rows(w, in, in->arg[1], ACCESS_READ, &from)) return STEP_FAULT;
    publish_rows(w, in, &from, ACCESS_READ, false);
    for (uint32_t k = 0; k < (in->flags & MATRIX_COUNT); k++) {
        const uint32_t rows = rows_of(in);
        uint8_t row[2 * ROWS][ROW_BYTES];
        tile t;
        for (uint32_t r = 0; r < rows; r++) {
            memcpy(row[r], from.host[rows * k + r], ROW_BYTES);
            if (bits) tensor_unpack(bits, row[r], row[r]);
        }
        memcpy(t, row, sizeof t);
        if (in->flags & MATRIX_TALL)
            rows_to_registers(row, w, in->list + (size_t)2 * k);
        else
            tile_to_register(t, in->flags & MATRIX_TRANS, arg_dst(w, in->list[k]));
    }
    return STEP_NEXT;
}

static void register_to_rows(const uint32_t *reg, uint8_t (*row)[ROW_BYTES])
{
    for (uint32_t lane = 0; lane < WARP_LANES; lane++)
        for (uint32_t j = 0; j < 4; j++)
            row[lane % 4U * 2U + j % 2U][lane / 4U + 8U * (j / 2U)] =
                (uint8_t)(reg[lane] >> 8U * j);
}

static enum step exec_stmatrix(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct rows rows;
    uint8_t row[MAX_ROWS][ROW_BYTES];
    bool changed = false;
    (void)mask;
    if (!locate_rows(w, in, in->arg[0], ACCESS_WRITE, &rows)) return STEP_FAULT;
    for (uint32_t k = 0; k < (in->flags & MATRIX_COUNT); k++) {
        const uint32_t *reg = arg_src(w, in->list[k]);
        tile t;
        if (in->flags & MATRIX_BYTES) {
            register_to_rows(reg, row + (size_t)ROWS * k);
        } else {
            register_to_tile(reg, in->flags & MATRIX_TRANS, t);
            memcpy(row[ROWS * k], t, sizeof t);
        }
    }
    if (w->cta->group->late)
        late_keep(w, rows.lanes, (enum ptx_space)in->space, rows.address, ROW_BYTES);
    for (uint32_t i = 0; i < ROWS * (in->flags & MATRIX_COUNT); i++) {
        changed |= memcmp(rows.host[i], row[i], ROW_BYTES) != 0;
        memcpy(rows.host[i], row[i], ROW_BYTES);
    }
    publish_rows(w, in, &rows, ACCESS_WRITE, !changed);
    if (changed) access_changed(w->cta->group);
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

/* Modifiers: sync aligned, then shape, xN and [trans] in an order of the rows', [space] type [packed type]. */
static int bind_rows(struct decoder *dc, struct insn *out, exec_fn *fn, uint32_t flags)
{
    uint32_t count = 0;
    bool trans = false;
    for (uint32_t i = 2; i < 5; i++) {
        if (dc->mod[i] && dc->mod[i][0] == 'x') count = (uint32_t)(dc->mod[i][1] - '0');
        if (mod_is(dc, i, "trans")) trans = true;
    }
    const uint32_t registers = flags & MATRIX_TALL ? 2 * count : count;
    if (out->list_count != registers)
        return bind_invalid(dc, ".x%u moves %u registers, not %u", count, registers,
                            (unsigned)out->list_count);
    if (mod_is(dc, 2, "m8n16") && dc->mod[4]) return bind_invalid(dc, ".m8n16 has no .trans");
    out->flags = (uint16_t)(count | flags | (trans ? MATRIX_TRANS : 0U));
    out->space = dc->mod[5] ? SPACE_SHARED : SPACE_NONE;
    out->fn = fn;
    return 0;
}

int bind_ldmatrix(struct decoder *dc, struct insn *out)
{
    const uint32_t bits = mod_has(dc, "b6x16_p32") ? 6 : mod_has(dc, "b4x16_p64") ? 4 : 0;
    const uint32_t tall = mod_is(dc, 2, "m16n16") ? MATRIX_TALL : 0;
    return bind_rows(dc, out, exec_ldmatrix, tall | bits << MATRIX_BITS_SHIFT);
}
int bind_stmatrix(struct decoder *dc, struct insn *out)
{
    return bind_rows(dc, out, exec_stmatrix, mod_is(dc, 2, "m16n8") ? MATRIX_BYTES : 0);
}

int bind_movmatrix(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_movmatrix;
    return 0;
}
