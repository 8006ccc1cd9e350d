/*
 * tcgen05.cp and shift: PTX ISA "Tensor Memory Data Movement Instructions". Rows of 16 or 32 bytes go from shared
 * memory (the K-major layouts of matrix descriptors) to lanes of tensor memory, in every CTA of the
 * group from its own to its own; chunks of 6- or 4-bit codes become bytes on the way.
 */
#include "ops/op_tcgen05_mma.h"

enum { UNIT_WORDS = 4 }; /* a 128-bit unit is four columns of a lane */

/* Lane of row i, from the base: (i / part) * apart + i % part; each of `copies` is `again` lanes on. */
static const struct cp_shape {
    const char *name, *spread; /* spread: the multicast modifier, NULL for none */
    uint8_t rows, units, part, apart, copies, again;
} cp_shapes[] = {
    {"128x256b", NULL, 128, 2, 128, 0, 1, 0},
    {"128x128b", NULL, 128, 1, 128, 0, 1, 0},
    {"4x256b", NULL, 4, 2, 1, 32, 1, 0},
    {"64x128b", "warpx2::02_13", 64, 1, 64, 0, 2, 64},
    {"64x128b", "warpx2::01_23", 64, 1, 32, 64, 2, 32},
    {"32x128b", "warpx4", 32, 1, 32, 0, 4, 32},
};

/* insn.aux is the struct cp_shape; insn.flags the cta_group and, of a copy that decompresses, the bits of
 * a code. */
enum { CP_GROUP = 3, CP_CODE_BITS = 4 /* shift */ };

struct cp_run {
    struct smem_operand source;
    uint32_t address;
};

static void write_row(struct cta *cta, const struct insn *in, uint32_t address, uint32_t row,
                      uint32_t unit, const uint8_t *from)
{
    const struct cp_shape *s = in->aux;
    const uint32_t code_bits = (uint32_t)in->flags >> CP_CODE_BITS;
    uint32_t word[UNIT_WORDS];
    uint8_t byte[sizeof word];
    memcpy(byte, from, sizeof byte);
    if (code_bits) tensor_unpack(code_bits, byte, byte);
    memcpy(word, byte, sizeof word);
    for (uint32_t copy = 0; copy < s->copies; copy++) {
        const uint32_t lane =
            tmem_lane(address) + row / s->part * s->apart + row % s->part + copy * s->again;
        for (uint32_t i = 0; i < UNIT_WORDS; i++)
            cta->sm->tmem[tmem_column(address) + unit * UNIT_WORDS + i][lane] = word[i];
    }
}

static bool copy_cta(struct async_op *op, struct cta *cta)
{
    const struct cp_shape *s = op->in->aux;
    const struct cp_run *r = async_payload(op);
    for (uint32_t row = 0; row < s->rows; row++) {
        for (uint32_t unit = 0; unit < s->units; unit++) {
            const uint32_t at = smem_element(&r->source, row, unit * 16U);
            if (at < SHARED_RESERVED || at + 16U > cta->shared_bytes) {
                (void)sim_fault(op->warp, op->in, op->lane, 700, FIND_OOB, CAUSE_NONE, "",
                                "row %u of the source is at 0x%x, outside shared memory (window "
                                "offsets 0x%x to 0x%x)",
                                row, at, (unsigned)SHARED_RESERVED, cta->shared_bytes);
                return false;
            }
            write_row(cta, op->in, r->address, row, unit, cta->shared + at);
        }
    }
    return true;
}

static bool run_cp(struct group *g, struct async_op *op)
{
    const uint32_t cta_group = op->in->flags & CP_GROUP;
    (void)g;
    for (uint32_t i = 0; i < cta_group; i++) {
        struct cta *cta = tcgen05_cta(op->cta, cta_group, i);
        if (!copy_cta(op, cta)) return true;
        tcgen05_release(op->cta, cta);
    }
    return true;
}

static enum step decode_run(struct warp *w, const struct insn *in, uint32_t lane, struct cp_run *r)
{
    const struct cp_shape *s = in->aux;
    const uint32_t last = (uint32_t)(s->rows - 1) / s->part * s->apart +
                          (uint32_t)(s->rows - 1) % s->part + (uint32_t)(s->copies - 1) * s->again;
    const uint32_t cta_group = in->flags & CP_GROUP;
    char why[160];
    r->address = (uint32_t)arg_lane(w, in->arg[0], lane) + (uint32_t)in->imm[0];
    if (!desc_decode(DESC_TCGEN05, arg_lane(w, in->arg[1], lane), &r->source, why, sizeof why))
        return sim_fault(w, in, lane, 715, FIND_MMA_DESC, CAUSE_NONE, "",
                         "descriptor of the source: %s", why);
    r->source.elem_bytes = 1;
    if (tmem_lane(r->address) + last >= TMEM_LANES)
        return sim_fault(w, in, lane, 719, FIND_TMEM_LANE, CAUSE_NONE, "",
                         ".%s at tensor-memory lane %u (address 0x%08x) reaches lane %u of %u",
                         s->name, tmem_lane(r->address), r->address, tmem_lane(r->address) + last,
                         (unsigned)TMEM_LANES);
    for (uint32_t i = 0; i < cta_group; i++)
        if (tmem_check(w, in, lane, tcgen05_cta(w->cta, cta_group, i), tmem_column(r->address),
                       s->units * (uint32_t)UNIT_WORDS, s->name) == STEP_FAULT)
            return STEP_FAULT;
    return STEP_NEXT;
}

/* Lanes that some row goes to. */
static uint32_t cp_blocks(const struct cp_shape *s, uint32_t lane)
{
    uint32_t blocks = 0;
    for (uint32_t row = 0; row < s->rows; row++)
        for (uint32_t copy = 0; copy < s->copies; copy++)
            blocks |=
                tmem_blocks(lane + row / s->part * s->apart + row % s->part + copy * s->again, 1);
    return blocks;
}

static void announce_cp(const struct async_op *op, const struct cp_run *r)
{
    const struct cp_shape *s = op->in->aux;
    const uint32_t cta_group = op->in->flags & CP_GROUP;
    for (uint32_t i = 0; op->cta->group->observer && i < cta_group; i++) {
        struct cta *cta = tcgen05_cta(op->cta, cta_group, i);
        desc_publish(op, cta, &r->source, s->rows, s->units * 16U);
        desc_publish_product(op, cta,
                             &(struct product){.a = {&r->source, TF_U8, s->rows, s->units * 16U},
                                               .copy = true});
        tmem_publish(op, cta, ACCESS_WRITE, r->address, s->units * (uint32_t)UNIT_WORDS,
                     cp_blocks(s, tmem_lane(r->address)), true);
    }
}

/* What shared memory takes to supply the bytes, 128 a cycle: assumed, for nobody has published it. */
static uint32_t cp_cycles(const struct cp_shape *s)
{
    return s->rows * s->units * 16U / 128U;
}

static enum step exec_cp(struct warp *w, const struct insn *in, uint32_t mask)
{
    const uint32_t cta_group = in->flags & CP_GROUP;
    if (tcgen05_enter(w, in, first_lane(mask), cta_group) == STEP_FAULT) return STEP_FAULT;
    for (; mask; mask &= mask - 1U) {
        const uint32_t lane = first_lane(mask);
        struct async_op *op = async_new(w, in, lane, run_cp, sizeof(struct cp_run));
        if (!op) return tcgen05_no_memory(w, in);
        if (decode_run(w, in, lane, async_payload(op)) == STEP_FAULT) {
            async_discard(op);
            return STEP_FAULT;
        }
        for (uint32_t i = 0; i < cta_group; i++)
            tcgen05_hold(w->cta, tcgen05_cta(w->cta, cta_group, i));
        op->cost.cycles = cp_cycles(in->aux);
        async_submit(w->cta->group, op, &w->async->tensor, (struct async_latency){64, 32});
        announce_cp(op, async_payload(op));
    }
    return STEP_NEXT;
}

int bind_tcgen05_cp(struct decoder *dc, struct insn *out)
{
    if (mod_has(dc, "b8x16") != (mod_has(dc, "b6x16_p32") || mod_has(dc, "b4x16_p64")))
        return bind_invalid(dc, ".b8x16 and its source format go together");
    for (size_t i = 0; i < sizeof cp_shapes / sizeof cp_shapes[0]; i++) {
        const struct cp_shape *s = &cp_shapes[i];
        if (!mod_is(dc, 1, s->name) || (s->spread && !mod_is(dc, 2, s->spread))) continue;
        out->aux = s;
        break;
    }
    const uint32_t code_bits = mod_has(dc, "b6x16_p32") ? 6 : mod_has(dc, "b4x16_p64") ? 4 : 0;
    out->flags = (uint16_t)(tcgen05_bind_group(dc, 0) | code_bits << CP_CODE_BITS);
    out->fn = exec_cp;
    return 0;
}

/* ---- shift ---- */

enum { SHIFT_COLUMNS = 8 };

/* Payload. */
struct shift_run {
    uint32_t address;
};

static bool run_shift(struct group *g, struct async_op *op)
{
    const struct shift_run *r = async_payload(op);
    (void)g;
    for (uint32_t i = 0; i < op->in->flags; i++) {
        struct cta *cta = tcgen05_cta(op->cta, op->in->flags, i);
        tmem_shift(cta, tmem_lane(r->address), tmem_column(r->address), SHIFT_COLUMNS);
        tcgen05_release(op->cta, cta);
    }
    return true;
}

static enum step check_shift(struct warp *w, const struct insn *in, uint32_t lane, uint32_t address)
{
    if (tmem_lane(address) % WARP_LANES || tmem_lane(address) >= TMEM_LANES)
        return sim_fault(w, in, lane, 719, FIND_TMEM_LANE, CAUSE_NONE, "",
                         "shift at tensor-memory lane %u (address 0x%08x): the lane must be a "
                         "multiple of 32 below 128",
                         tmem_lane(address), address);
    for (uint32_t i = 0; i < in->flags; i++)
        if (tmem_check(w, in, lane, tcgen05_cta(w->cta, in->flags, i), tmem_column(address),
                       SHIFT_COLUMNS, "shift") == STEP_FAULT)
            return STEP_FAULT;
    return STEP_NEXT;
}

static enum step exec_shift(struct warp *w, const struct insn *in, uint32_t mask)
{
    if (tcgen05_enter(w, in, first_lane(mask), in->flags) == STEP_FAULT) return STEP_FAULT;
    for (; mask; mask &= mask - 1U) {
        const uint32_t lane = first_lane(mask);
        const uint32_t address = (uint32_t)arg_lane(w, in->arg[0], lane) + (uint32_t)in->imm[0];
        if (check_shift(w, in, lane, address) == STEP_FAULT) return STEP_FAULT;
        struct async_op *op = async_new(w, in, lane, run_shift, sizeof(struct shift_run));
        if (!op) return tcgen05_no_memory(w, in);
        struct shift_run *r = async_payload(op);
        r->address = address;
        for (uint32_t i = 0; i < in->flags; i++)
            tcgen05_hold(w->cta, tcgen05_cta(w->cta, in->flags, i));
        async_submit(w->cta->group, op, &w->async->tensor, (struct async_latency){32, 16});
        for (uint32_t i = 0; i < in->flags; i++)
            tmem_publish(op, tcgen05_cta(w->cta, in->flags, i), ACCESS_ATOMIC, address,
                         SHIFT_COLUMNS,
                         tmem_blocks(tmem_lane(address), TMEM_LANES - tmem_lane(address)), false);
    }
    return STEP_NEXT;
}

/* insn.flags: the cta_group. */
int bind_tcgen05_shift(struct decoder *dc, struct insn *out)
{
    if (tcgen05_needs_a(dc, "tcgen05.shift")) return -2;
    out->flags = (uint16_t)tcgen05_bind_group(dc, 0);
    out->fn = exec_shift;
    return 0;
}
