/*
 * tcgen05.ld, ld.red, st, wait: PTX ISA "Tensor Memory and Register Load/Store Instructions"; fragments:
 * "Data Movement Shape". Each warp has a pipe of loads and one of stores. Loads write their registers
 * when they complete; stores read theirs at issue (a later write of the register does not reach them).
 */
#include "ops/tcgen05.h"

#include <stdio.h>

enum tmem_shape { SHAPE_32X32B, SHAPE_16X64B, SHAPE_16X128B, SHAPE_16X256B, SHAPE_16X32BX2 };

/* Indexed by enum tmem_shape: registers and columns for x1, and the largest x. */
static const struct shape_row {
    const char *name;
    uint8_t regs, columns, most, lanes;
} shape_rows[] = {
    {"32x32b", 1, 1, 128, 32}, {"16x64b", 1, 2, 128, 16},   {"16x128b", 2, 4, 64, 16},
    {"16x256b", 4, 8, 32, 16}, {"16x32bx2", 1, 1, 128, 16},
};

enum reduction { RED_NONE, RED_MIN, RED_MAX };

/* insn.aux of ld and st. */
struct tmem_access {
    uint8_t red; /* enum reduction: of ld.red, over what a thread loads */
    bool red_abs, red_nan;
    uint8_t shape; /* enum tmem_shape */
    bool halves;   /* .pack::16b, .unpack::16b: two 16-bit columns a register */
    uint16_t regs;
    uint32_t split;   /* 16x32bx2: columns from the first half to the second */
    uint32_t columns; /* that a block of lanes spans (16x32bx2: one of the two) */
    uint8_t address_arg;
};

/* Lane and column, from the base, of register r of thread t. `halves` doubles the column. */
static void place(const struct tmem_access *a, uint32_t t, uint32_t r, uint32_t *lane,
                  uint32_t *column)
{
    const uint32_t scale = a->halves ? 2 : 1;
    uint32_t x = t, c = r, base = 0;
    switch (a->shape) {
    case SHAPE_16X64B:
        x = t / 4U + 8U * (t & 1U);
        c = (t >> 1 & 1U) + 2U * r;
        break;
    case SHAPE_16X128B:
        x = t / 4U + 8U * (r & 1U);
        c = (t & 3U) + 4U * (r >> 1);
        break;
    case SHAPE_16X256B:
        x = t / 4U + 8U * (r >> 1 & 1U);
        c = 2U * (t & 3U) + (r & 1U) + 8U * (r >> 2);
        break;
    case SHAPE_16X32BX2:
        x = t & 15U;
        base = (t >> 4) * a->split;
        break;
    default: break;
    }
    *lane = x;
    *column = base + c * scale;
}

/* ---- binding ---- */

static int bind_access(struct decoder *dc, struct insn *out, uint32_t address_arg,
                       uint32_t split_operand)
{
    struct tmem_access *a = bind_alloc(dc, sizeof *a);
    unsigned times = 0;
    int64_t split = 0;
    if (!a) return -1;
    while (!mod_is(dc, 2, shape_rows[a->shape].name)) a->shape++;
    const struct shape_row *row = &shape_rows[a->shape];
    if (sscanf(dc->mod[3], "x%u", &times) != 1 || times > row->most)
        return bind_invalid(dc, ".%s goes up to .x%u, not .%s", row->name, (unsigned)row->most,
                            dc->mod[3]);
    a->halves = mod_has(dc, "pack::16b") || mod_has(dc, "unpack::16b");
    a->regs = (uint16_t)(row->regs * times);
    a->columns = row->columns * times * (a->halves ? 2U : 1U);
    a->address_arg = (uint8_t)address_arg;
    if (out->list_count != a->regs)
        return bind_invalid(dc, ".%s.%s moves %u registers, not %u", row->name, dc->mod[3],
                            (unsigned)a->regs, (unsigned)out->list_count);
    if (a->shape == SHAPE_16X32BX2 &&
        (!operand_constant(dc, split_operand, &split) || split < 0 || split > TMEM_COLUMNS))
        return bind_invalid(dc, "the split of .16x32bx2 must be a constant from 0 to %u",
                            (unsigned)TMEM_COLUMNS);
    a->split = (uint32_t)split;
    out->aux = a;
    return 0;
}

/* ---- execution ---- */

static uint32_t access_base(const struct warp *w, const struct insn *in)
{
    const struct tmem_access *a = in->aux;
    return (uint32_t)arg_lane(w, in->arg[a->address_arg], 0) + (uint32_t)in->imm[0];
}

/* What a B200 makes of the lane field: the warp's own quarter, then bits 16 to 20 (SEMANTICS.md). */
static uint32_t own_lane(const struct warp *w, uint32_t address)
{
    return w->id % 4U * WARP_LANES + tmem_lane(address) % WARP_LANES;
}

/* The field names the warp's quarter, or leaves the quarter at 0 (libraries do, PTX ISA "Access
 * restrictions" does not allow it); another quarter is not what the program gets. */
static void check_quarter(struct warp *w, const struct insn *in, uint32_t address,
                          const char *shape)
{
    const uint32_t named = tmem_lane(address) / WARP_LANES % 4U, own = w->id % 4U;
    if (named == own) return;
    if (named == 0) sim_idiom(w->cta->group, in, IDIOM_QUARTER_LEFT_OUT);
    if (named == 0 && w->cta->group->launch->check_level < 2) return;
    sim_find(
        w->cta->group, w, in, NO_LANE, named ? SEV_ERROR : SEV_WARNING, FIND_TMEM_LANE, CAUSE_NONE,
        "",
        "warp %u reaches tensor-memory lanes %u to %u only; .%s at lane %u (address 0x%08x) is "
        "outside them: the hardware takes lane %u",
        w->id, own * WARP_LANES, own * WARP_LANES + WARP_LANES - 1U, shape, tmem_lane(address),
        address, own_lane(w, address));
}

/* One address for the warp; lanes of the warp's own quarter; columns that the CTA owns. */
static enum step check_access(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct tmem_access *a = in->aux;
    const struct shape_row *row = &shape_rows[a->shape];
    const struct arg arg = in->arg[a->address_arg];
    const uint32_t base = access_base(w, in), lane = tmem_lane(base), column = tmem_column(base);
    const uint32_t quarter = w->id % 4U * WARP_LANES;
    if (mask != FULL_MASK)
        return sim_fault(w, in, first_lane(~mask), 715, FIND_COLLECTIVE_PARTIAL, CAUSE_NONE, "",
                         "all 32 lanes of the warp must execute this; mask is 0x%08x", mask);
    for (uint32_t l = 1; l < WARP_LANES; l++)
        if (arg_lane(w, arg, l) != arg_lane(w, arg, 0))
            return sim_fault(
                w, in, l, 719, FIND_TMEM_BOUNDS, CAUSE_NONE, "",
                "lane %u gives the address 0x%08x, lane 0 gives 0x%08x: it must be the "
                "same in the whole warp",
                l, (unsigned)arg_lane(w, arg, l), (unsigned)arg_lane(w, arg, 0));
    if (lane % WARP_LANES % row->lanes)
        return sim_fault(w, in, NO_LANE, 719, FIND_TMEM_LANE, CAUSE_NONE, "",
                         "warp %u reaches tensor-memory lanes %u to %u only; .%s at lane %u "
                         "(address 0x%08x) must start at the first or the sixteenth of them",
                         w->id, quarter, quarter + WARP_LANES - 1U, row->name, lane, base);
    check_quarter(w, in, base, row->name);
    if (a->shape == SHAPE_16X32BX2 &&
        tmem_check(w, in, NO_LANE, w->cta, column + a->split, a->columns,
                   "the second half of .16x32bx2") == STEP_FAULT)
        return STEP_FAULT;
    return tmem_check(w, in, NO_LANE, w->cta, column, a->columns, row->name);
}

static void publish_access(const struct async_op *op, uint32_t base, enum access_kind access)
{
    const struct tmem_access *a = op->in->aux;
    const uint32_t blocks = tmem_blocks(tmem_lane(base), shape_rows[a->shape].lanes);
    tmem_publish(op, op->cta, access, base, a->columns, blocks, false);
    if (a->shape == SHAPE_16X32BX2)
        tmem_publish(op, op->cta, access, base + a->split, a->columns, blocks, false);
}

/* Payload. */
struct access_run {
    uint32_t base;    /* address */
    uint32_t words[]; /* st: registers, WARP_LANES each */
};

/* ---- ld.red ---- */

/* Floating minimum and maximum as `min` and `max` have them: NaN loses, or wins under .NaN; -0 < +0. */
static uint32_t reduce_float(const struct tmem_access *a, uint32_t x, uint32_t y)
{
    const uint32_t top = 0x7F800000U, magnitude = 0x7FFFFFFFU;
    const bool x_nan = (x & magnitude) > top, y_nan = (y & magnitude) > top;
    if (x_nan || y_nan) return a->red_nan || (x_nan && y_nan) ? 0x7FFFFFFFU : x_nan ? y : x;
    /* order of the patterns as signed numbers, negative ones turned round */
    const int32_t i = (int32_t)(x >> 31 ? ~(x & magnitude) : x);
    const int32_t j = (int32_t)(y >> 31 ? ~(y & magnitude) : y);
    return (a->red == RED_MIN) == (i < j) ? x : y;
}

static uint32_t reduce_pair(const struct tmem_access *a, enum ptx_type type, uint32_t x, uint32_t y)
{
    if (type == T_F32) return reduce_float(a, x, y);
    const bool less = type == T_S32 ? (int32_t)x < (int32_t)y : x < y;
    return (a->red == RED_MIN) == less ? x : y;
}

static void reduce_loaded(struct warp *w, const struct insn *in)
{
    const struct tmem_access *a = in->aux;
    const uint32_t keep = a->red_abs ? 0x7FFFFFFFU : 0xFFFFFFFFU;
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        uint32_t all = (uint32_t)arg_lane(w, in->list[0], lane) & keep;
        for (uint32_t r = 1; r < a->regs; r++)
            all = reduce_pair(a, (enum ptx_type)in->type, all,
                              (uint32_t)arg_lane(w, in->list[r], lane) & keep);
        arg_set_lane(w, in->arg[1], lane, all);
    }
}

static bool run_ld(struct group *g, struct async_op *op)
{
    const struct tmem_access *a = op->in->aux;
    const struct access_run *run = async_payload(op);
    const uint32_t first_column = tmem_column(run->base), first_row = tmem_lane(run->base);
    struct warp *w = op->warp;
    uint32_t(*tmem)[TMEM_LANES] = op->cta->sm->tmem;
    (void)g;
    for (uint32_t r = 0; r < a->regs; r++) {
        uint32_t *reg = arg_dst(w, op->in->list[r]);
        if (a->shape == SHAPE_32X32B && !a->halves) {
            memcpy(reg, &tmem[first_column + r][first_row], WARP_LANES * sizeof *reg);
            continue;
        }
        for (uint32_t t = 0; t < WARP_LANES; t++) {
            uint32_t lane, column;
            place(a, t, r, &lane, &column);
            const uint32_t *cell = &tmem[first_column + column][first_row + lane];
            reg[t] = a->halves ? (cell[0] & 0xFFFFU) | cell[TMEM_LANES] << 16 : cell[0];
        }
    }
    if (a->red) reduce_loaded(w, op->in);
    w->loading--;
    return true;
}

static bool uses_register(const struct insn *in, struct arg r)
{
    for (uint32_t i = 0; i < INSN_ARGS; i++) {
        const struct arg a = in->arg[i];
        if (a.offset == r.offset && a.bank == BANK_REGS && a.bits > 1 && !a.sink) return true;
    }
    for (uint32_t i = 0; i < in->list_count; i++) {
        const struct arg a = in->list[i];
        if (a.offset == r.offset && a.bank == BANK_REGS && !a.sink) return true;
    }
    return false;
}

bool tcgen05_awaits_load(const struct warp *w, const struct insn *in)
{
    for (const struct async_op *op = w->async->tmem_ld.head; op; op = op->next) {
        const struct tmem_access *a = op->in->aux;
        for (uint32_t i = 0; i < a->regs; i++)
            if (uses_register(in, op->in->list[i])) return true;
        if (a->red && uses_register(in, op->in->arg[1])) return true;
    }
    return false;
}

static bool run_st(struct group *g, struct async_op *op)
{
    const struct tmem_access *a = op->in->aux;
    const struct access_run *run = async_payload(op);
    uint32_t(*tmem)[TMEM_LANES] = op->cta->sm->tmem;
    (void)g;
    for (uint32_t r = 0; r < a->regs; r++) {
        const uint32_t *reg = run->words + (size_t)r * WARP_LANES;
        for (uint32_t t = 0; t < WARP_LANES; t++) {
            uint32_t lane, column;
            place(a, t, r, &lane, &column);
            uint32_t *cell = &tmem[tmem_column(run->base) + column][tmem_lane(run->base) + lane];
            if (!a->halves) {
                *cell = reg[t];
                continue;
            }
            /* interpretation: the upper halves of the cells stay as they are */
            cell[0] = (cell[0] & 0xFFFF0000U) | (reg[t] & 0xFFFFU);
            cell[TMEM_LANES] = (cell[TMEM_LANES] & 0xFFFF0000U) | reg[t] >> 16;
        }
    }
    op->warp->async->tmem_st_pending--;
    return true;
}

/* A cycle per column on top of a latency of some tens. */
static struct async_latency access_latency(const struct tmem_access *a)
{
    return (struct async_latency){24U + a->columns, 12};
}

static enum step exec_ld(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct async_op *op;
    struct access_run *run;
    if (check_access(w, in, mask) == STEP_FAULT) return STEP_FAULT;
    op = async_new(w, in, 0, run_ld, sizeof *run);
    if (!op) return tcgen05_no_memory(w, in);
    run = async_payload(op);
    run->base = own_lane(w, access_base(w, in)) << 16 | tmem_column(access_base(w, in));
    w->loading++;
    op->cost.cycles = ((const struct tmem_access *)in->aux)->columns;
    async_submit(w->cta->group, op, &w->async->tmem_ld, access_latency(in->aux));
    publish_access(op, run->base, ACCESS_READ);
    return STEP_NEXT;
}

static enum step exec_st(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct tmem_access *a = in->aux;
    const size_t row = WARP_LANES * sizeof(uint32_t);
    struct async_op *op;
    struct access_run *run;
    if (check_access(w, in, mask) == STEP_FAULT) return STEP_FAULT;
    op = async_new(w, in, 0, run_st, sizeof *run + a->regs * row);
    if (!op) return tcgen05_no_memory(w, in);
    run = async_payload(op);
    run->base = own_lane(w, access_base(w, in)) << 16 | tmem_column(access_base(w, in));
    for (uint32_t r = 0; r < a->regs; r++)
        memcpy(run->words + (size_t)r * WARP_LANES, arg_src(w, in->list[r]), row);
    w->async->tmem_st_pending++;
    op->cost.cycles = a->columns;
    async_submit(w->cta->group, op, &w->async->tmem_st, access_latency(a));
    publish_access(op, run->base, ACCESS_WRITE);
    return STEP_NEXT;
}

int bind_tcgen05_ld(struct decoder *dc, struct insn *out)
{
    out->fn = exec_ld;
    return bind_access(dc, out, 1, 2);
}

int bind_tcgen05_ld_red(struct decoder *dc, struct insn *out)
{
    const char *target = dc->module->target;
    if (bind_access(dc, out, 2, 3)) return -2;
    struct tmem_access *a = bind_alloc(dc, sizeof *a);
    if (!a) return -1;
    *a = *(const struct tmem_access *)out->aux;
    a->red = mod_has(dc, "min") ? RED_MIN : RED_MAX;
    a->red_abs = mod_has(dc, "abs");
    a->red_nan = mod_has(dc, "NaN");
    if (!strncmp(target, "sm_100", 6))
        return bind_invalid(dc, "tcgen05.ld.red needs a target of sm_103 or later, not %s", target);
    if (a->regs < 2) return bind_invalid(dc, "tcgen05.ld.red has no .x1");
    if ((a->red_abs || a->red_nan) && out->type != T_F32)
        return bind_invalid(dc, ".abs and .NaN go with .f32");
    out->aux = a;
    out->fn = exec_ld;
    return 0;
}

int bind_tcgen05_st(struct decoder *dc, struct insn *out)
{
    out->fn = exec_st;
    return bind_access(dc, out, 0, 1);
}

/* insn.flags: 1 for stores. */
static enum step exec_wait(struct warp *w, const struct insn *in, uint32_t mask)
{
    if (in->flags ? w->async->tmem_st_pending : w->loading)
        return sim_block(w, WAIT_TENSOR, w->cta, in->flags, 0);
    observe(w->cta->group, &(struct event){.kind = EV_TMEM_WAIT,
                                           .lanes = mask,
                                           .warp = w,
                                           .in = in,
                                           .cta = w->cta,
                                           .value = in->flags});
    return STEP_NEXT;
}

int bind_tcgen05_wait_ld(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_wait;
    out->flags = 0;
    return 0;
}

int bind_tcgen05_wait_st(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_wait;
    out->flags = 1;
    return 0;
}
