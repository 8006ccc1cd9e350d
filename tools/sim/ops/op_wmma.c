/*
 * wmma.load and wmma.store (PTX ISA "Warp-level Matrix Multiply-Accumulate Instructions"). The layout
 * of fragments is not specified there. Ours is that of mma.sync, tile after tile, so that wmma.mma is
 * one or two mma.sync (op_mma.c):
 *   m16n16k*   A one tile of 16 rows, B two of 8 columns      D: its left and right half
 *   m32n8k16   A two tiles of 16 rows, B one of 8 columns     D: its upper and lower half
 *   m8n32k16   the product transposed: B^T two tiles of 16 rows, A^T one of 8 columns
 *   m8n8k*     A one tile of 8 rows, B one of 8 columns
 * A fragment may have more registers than that takes: they repeat it.
 */
#include "ops/access.h"
#include "async/late.h"
#include "machine/mem.h"
#include "ops/tensor.h"

#include <stdio.h>

struct wmma {
    bool wide; /* tiles of 16 (A of mma.sync), else of 8 (B); accumulators: neither */
    bool accumulator;
    bool side_by_side; /* accumulators: the second tile has the next 8 columns, not 16 rows */
    bool swapped;      /* the register's first index runs along the column of the matrix */
    bool columns;      /* .col */
    bool adjacent;     /* a register's parts lie side by side in memory */
    uint8_t element_bits;
    uint8_t part_bytes,
        parts;       /* a register's parts that are moved one by one: elements, or of elements
                                  smaller than a byte all that it holds */
    uint8_t used;    /* registers after which the fragment repeats */
    uint8_t of_tile; /* registers of a tile */
};

/* Row and column, in the matrix as the program sees it and counted in parts along k, of part `e` of
 * register `r`. */
static void element(const struct wmma *f, uint32_t r, uint32_t e, uint32_t lane, uint32_t *row,
                    uint32_t *col)
{
    const uint32_t tile = r % f->used / f->of_tile, i = r % f->of_tile;
    uint32_t first, second;
    if (f->accumulator) {
        const uint32_t n = i * f->parts + e;
        first = lane / 4U + 8U * (n / 2U) + (f->side_by_side ? 0 : 16U * tile);
        second = lane % 4U * 2U + n % 2U + (f->side_by_side ? 8U * tile : 0);
    } else if (f->wide) {
        first = 16U * tile + lane / 4U + 8U * (i % 2U);
        second = (lane % 4U + 4U * (i / 2U)) * f->parts + e;
    } else {
        first = 8U * tile + lane / 4U;
        second = (lane % 4U + 4U * i) * f->parts + e;
    }
    *row = f->swapped ? second : first;
    *col = f->swapped ? first : second;
}

/* The lanes' addresses of part `e` of register `r`. */
static void part_addresses(const struct warp *w, const struct insn *in, struct arg base,
                           struct arg stride, uint32_t r, uint32_t e, uint64_t address[WARP_LANES])
{
    const struct wmma *f = in->aux;
    access_addresses(w, base, in->imm[0], address);
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        uint32_t row, col;
        uint64_t line, ld = stride.sink ? (uint64_t)in->imm[2] : arg_lane(w, stride, lane);
        element(f, r, e, lane, &row, &col);
        line = (f->columns ? col : row) * ld * f->element_bits / 8U;
        address[lane] += line + (f->columns ? row : col) * f->part_bytes;
    }
}

/* The lanes' places for one register from part `e` on: *parts of it, all where they lie side by side; false after a
 * fault. */
static bool places(struct warp *w, const struct insn *in, uint32_t mask, struct arg base,
                   struct arg stride, uint32_t r, uint32_t e, enum access_kind access,
                   uint32_t *parts, uint8_t *host[WARP_LANES])
{
    const struct wmma *f = in->aux;
    uint64_t address[WARP_LANES];
    uint32_t bytes;
    struct lane_span span;
    part_addresses(w, in, base, stride, r, e, address);
    *parts = f->adjacent && e == 0 ? f->parts : 1;
    bytes = *parts * f->part_bytes;
    span = mem_measure(address, mask, bytes);
    if (!span.aligned && *parts > 1) {
        *parts = 1;
        bytes = f->part_bytes;
        span = mem_measure(address, mask, bytes);
    }
    if (!mem_lanes(w, in, mask, (enum ptx_space)in->space, address, &span, bytes, access, false,
                   host))
        return false;
    if (w->cta->group->late && access == ACCESS_WRITE)
        late_keep(w, mask, (enum ptx_space)in->space, address, bytes);
    if (w->cta->group->observer)
        access_publish(w, in, mask, (enum ptx_space)in->space, address, &span, bytes, access, false,
                       false);
    return true;
}

/* A register beyond the first `used` has what an earlier one has. */
static void repeat_register(const struct warp *w, const struct insn *in, uint32_t mask, uint32_t r)
{
    const struct wmma *f = in->aux;
    for (uint32_t rest = mask; rest; rest &= rest - 1)
        arg_set_lane(w, in->list[r], first_lane(rest),
                     arg_lane(w, in->list[r % f->used], first_lane(rest)));
}

static enum step exec_wmma_load(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct wmma *f = in->aux;
    uint8_t *host[WARP_LANES];
    for (uint32_t r = 0; r < in->list_count && r < f->used; r++) {
        uint64_t value[WARP_LANES] = {0};
        uint32_t parts;
        for (uint32_t e = 0; e < f->parts; e += parts) {
            if (!places(w, in, mask, in->arg[1], in->arg[2], r, e, ACCESS_READ, &parts, host))
                return STEP_FAULT;
            for (uint32_t rest = mask; rest; rest &= rest - 1) {
                const uint32_t lane = first_lane(rest);
                uint64_t part = 0;
                memcpy(&part, host[lane], (size_t)parts * f->part_bytes);
                value[lane] |= part << 8U * f->part_bytes * e;
            }
        }
        for (uint32_t rest = mask; rest; rest &= rest - 1)
            arg_set_lane(w, in->list[r], first_lane(rest), value[first_lane(rest)]);
    }
    for (uint32_t r = f->used; r && r < in->list_count; r++) repeat_register(w, in, mask, r);
    return STEP_NEXT;
}

static enum step exec_wmma_store(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct wmma *f = in->aux;
    uint8_t *host[WARP_LANES];
    for (uint32_t r = 0; r < in->list_count; r++) {
        uint32_t parts;
        for (uint32_t e = 0; e < f->parts; e += parts) {
            if (!places(w, in, mask, in->arg[0], in->arg[2], r, e, ACCESS_WRITE, &parts, host))
                return STEP_FAULT;
            for (uint32_t rest = mask; rest; rest &= rest - 1) {
                uint32_t lane = first_lane(rest);
                const uint64_t part = arg_lane(w, in->list[r], lane) >> 8U * f->part_bytes * e;
                memcpy(host[lane], &part, (size_t)parts * f->part_bytes);
            }
        }
    }
    access_changed(w->cta->group);
    return STEP_NEXT;
}

static uint32_t bits_of(const char *type)
{
    const enum tensor_format format = tensor_format_named(type);
    if (!strcmp(type, "b1")) return 1;
    if (format == TF_FORMATS) return !strcmp(type, "f64") ? 64 : 32;
    return 8U * tensor_format_bytes(format) / tensor_format_pack(format);
}

/* Registers of a tile, and how many tiles there are. `k` in elements. */
static uint32_t set_tiles(struct wmma *f, bool small, uint32_t k)
{
    const uint32_t registers = k * f->element_bits / (f->element_bits == 64 ? 64U : 32U);
    if (f->accumulator) {
        f->of_tile = (uint8_t)((small ? 2U : 4U) / f->parts);
        return small ? 1 : 2;
    }
    f->of_tile = (uint8_t)(registers / (f->wide ? 2U : 4U));
    return small || f->wide == f->side_by_side ? 1 : 2;
}

/* Modifiers: sync aligned row|col shape [space] type; `operand` is a, b, c or d. */
static int bind_wmma(struct decoder *dc, struct insn *out, char operand, exec_fn *fn)
{
    struct wmma *f = bind_alloc(dc, sizeof *f);
    const char *shape = dc->mod[3];
    const uint32_t bits = bits_of(dc->mod[5]);
    unsigned m = 0, n = 0, k = 0;
    if (!f) return -1;
    (void)sscanf(shape, "m%un%uk%u", &m, &n, &k);
    const bool transposed = n == 32, tall = m == 32, small = m == 8 && n == 8;
    f->element_bits = (uint8_t)bits;
    f->part_bytes = (uint8_t)(bits < 8 ? 4U : bits / 8U);
    f->parts = (uint8_t)(bits == 64 ? 1U : 4U / f->part_bytes);
    f->columns = mod_is(dc, 2, "col");
    f->accumulator = operand == 'c' || operand == 'd';
    f->side_by_side = !transposed && !tall;
    f->wide = !small && operand == (transposed ? 'b' : 'a');
    /* Tiles are indexed by the row of A^T or the column of B first. */
    f->swapped = f->accumulator ? transposed : operand == 'b';
    f->adjacent = f->columns == f->swapped;
    f->used = (uint8_t)(set_tiles(f, small, k) * f->of_tile);
    if (!f->used || out->list_count < f->used || out->list_count % f->used)
        return bind_invalid(dc, "a fragment of %s has %u registers here, not %u", shape, f->used,
                            (unsigned)out->list_count);
    if (out->arg[2].sink) /* no stride: rows follow one another */
        out->imm[2] = operand == 'a'   ? (f->columns ? m : k)
                      : operand == 'b' ? (f->columns ? k : n)
                                       : (f->columns ? m : n);
    out->space = dc->mod[4] ? out->space : SPACE_NONE;
    out->aux = f;
    out->fn = fn;
    return 0;
}

int bind_wmma_load_a(struct decoder *dc, struct insn *out)
{
    return bind_wmma(dc, out, 'a', exec_wmma_load);
}
int bind_wmma_load_b(struct decoder *dc, struct insn *out)
{
    return bind_wmma(dc, out, 'b', exec_wmma_load);
}
int bind_wmma_load_c(struct decoder *dc, struct insn *out)
{
    return bind_wmma(dc, out, 'c', exec_wmma_load);
}
int bind_wmma_store(struct decoder *dc, struct insn *out)
{
    return bind_wmma(dc, out, 'd', exec_wmma_store);
}
