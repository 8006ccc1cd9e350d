/*
 * tcgen05.cp: PTX ISA "Tensor Memory Data Movement Instructions". Rows of 16 or 32 bytes go from shared
 * memory (the K-major layouts of matrix descriptors) to lanes of tensor memory, in every CTA of the
 * group from its own to its own.
 */
#include "smem_desc.h"
#include "tcgen05.h"

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

/* insn.aux is the struct cp_shape, insn.flags the cta_group. */

struct cp_run {
    struct smem_operand source;
    uint32_t address;
};

static void write_row(struct cta *cta, const struct cp_shape *s, uint32_t address, uint32_t row,
                      uint32_t unit, const uint8_t *from)
{
    uint32_t word[UNIT_WORDS];
    memcpy(word, from, sizeof word);
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
            write_row(cta, s, r->address, row, unit, cta->shared + at);
        }
    }
    desc_publish(op, cta, &r->source, s->rows, s->units * 16U);
    tmem_publish(op, cta, ACCESS_WRITE, r->address, s->units * (uint32_t)UNIT_WORDS);
    return true;
}

static bool run_cp(struct group *g, struct async_op *op)
{
    const uint32_t cta_group = op->in->flags;
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
    for (uint32_t i = 0; i < in->flags; i++)
        if (tmem_check(w, in, lane, tcgen05_cta(w->cta, in->flags, i), tmem_column(r->address),
                       s->units * (uint32_t)UNIT_WORDS, s->name) == STEP_FAULT)
            return STEP_FAULT;
    return STEP_NEXT;
}

static enum step exec_cp(struct warp *w, const struct insn *in, uint32_t mask)
{
    if (tcgen05_enter(w, in, first_lane(mask), in->flags) == STEP_FAULT) return STEP_FAULT;
    for (; mask; mask &= mask - 1U) {
        const uint32_t lane = first_lane(mask);
        struct async_op *op = async_new(w, in, lane, run_cp, sizeof(struct cp_run));
        if (!op) return tcgen05_no_memory(w, in);
        if (decode_run(w, in, lane, async_payload(op)) == STEP_FAULT) {
            async_discard(op);
            return STEP_FAULT;
        }
        for (uint32_t i = 0; i < in->flags; i++)
            tcgen05_hold(w->cta, tcgen05_cta(w->cta, in->flags, i));
        async_submit(w->cta->group, op, &w->async->tensor, (struct async_latency){64, 32});
    }
    return STEP_NEXT;
}

int bind_tcgen05_cp(struct decoder *dc, struct insn *out)
{
    for (size_t i = 0; i < sizeof cp_shapes / sizeof cp_shapes[0]; i++) {
        const struct cp_shape *s = &cp_shapes[i];
        if (!mod_is(dc, 1, s->name) || (s->spread && !mod_is(dc, 2, s->spread))) continue;
        out->aux = s;
        break;
    }
    out->flags = (uint16_t)tcgen05_bind_group(dc, 0);
    out->fn = exec_cp;
    return 0;
}
