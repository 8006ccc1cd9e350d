/*
 * tcgen05.mma in all its forms, commit and fences: PTX ISA "TensorCore 5th Generation Matrix Multiply and
 * accumulate Operations". An operation runs at its completion (op_tcgen05_run.c), in the order of issue
 * of its warp, on the memories of one CTA or of a pair.
 */
#include "ops/op_tcgen05_mma.h"

#include "async/mbar.h"
#include "machine/mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static bool block_scaled(const struct mma_form *f)
{
    return f->kind >= KIND_MXF8F6F4;
}

/* ---- instruction descriptor, PTX ISA "Instruction descriptor" ---- */

/* Where a broken rule is reported. */
struct issue {
    struct warp *w;
    const struct insn *in;
    uint32_t lane;
    uint32_t idesc;
};

__attribute__((format(printf, 2, 3))) static enum step bad_idesc(const struct issue *at,
                                                                 const char *format, ...)
{
    char what[192];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return sim_fault(at->w, at->in, at->lane, 715, FIND_MMA_DESC, CAUSE_NONE, "",
                     "instruction descriptor 0x%08x: %s", at->idesc, what);
}

/* The element format of a code in bits 7-9 or 10-12; TF_FORMATS for one that the kind lacks. */
static enum tensor_format idesc_format(enum mma_kind kind, uint32_t code)
{
    static const uint8_t f8f6f4[8] = {TF_E4M3, TF_E5M2, TF_FORMATS, TF_E2M3,
                                      TF_E3M2, TF_E2M1, TF_FORMATS, TF_FORMATS};
    switch (kind) {
    case KIND_F16: return code == 0 ? TF_F16 : code == 1 ? TF_BF16 : TF_FORMATS;
    case KIND_TF32: return code == 2 ? TF_TF32 : TF_FORMATS;
    case KIND_I8: return code == 0 ? TF_U8 : code == 1 ? TF_S8 : TF_FORMATS;
    case KIND_MXF4:
    case KIND_MXF4NVF4: return code == 1 ? TF_E2M1X2 : TF_FORMATS;
    default: return (enum tensor_format)f8f6f4[code];
    }
}

/* The code of D's type in bits 4 and 5, for the kinds that have one. */
static enum step idesc_d_format(const struct issue *at, enum mma_kind kind, struct mma_run *r)
{
    const uint32_t d = at->idesc >> 4 & 3U;
    const bool only_wide = kind == KIND_TF32 || r->format_a == TF_BF16;
    r->half_d = d == 0;
    if (kind == KIND_I8 ? d != 2 : d > 1 || (r->half_d && only_wide))
        return bad_idesc(at, "bits 4 and 5 name no D format for these operands");
    return STEP_NEXT;
}

static enum step idesc_formats(const struct issue *at, const struct mma_form *f, struct mma_run *r)
{
    const enum mma_kind kind = (enum mma_kind)f->kind;
    const uint32_t a = at->idesc >> 7 & 7U, b = at->idesc >> 10 & 7U;
    r->format_a = (uint8_t)idesc_format(kind, a);
    r->format_b = (uint8_t)idesc_format(kind, b);
    if (r->format_a == TF_FORMATS)
        return bad_idesc(at, "bits 7 to 9 name no A format of this kind");
    if (r->format_b == TF_FORMATS)
        return bad_idesc(at, "bits 10 to 12 name no B format of this kind");
    if (kind == KIND_F16 && a != b) return bad_idesc(at, "A and B must both be f16 or both bf16");
    if (kind == KIND_I8 && at->idesc >> 13 & 3U)
        return bad_idesc(at, "bits 13 and 14 (negation) must be zero with kind::i8");
    r->a.mn_major = at->idesc >> 15 & 1U;
    r->b.mn_major = at->idesc >> 16 & 1U;
    if ((r->a.mn_major &&
         (tensor_format_padded((enum tensor_format)r->format_a) || r->format_a == TF_E2M1X2)) ||
        (r->b.mn_major &&
         (tensor_format_padded((enum tensor_format)r->format_b) || r->format_b == TF_E2M1X2)))
        return bad_idesc(at, "operands of 6 and 4 bits are K-major, bits 15 and 16 must be zero");
    if (f->a_in_tmem && r->a.mn_major)
        return bad_idesc(at, "A in tensor memory is K-major, bit 15 must be zero");
    return STEP_NEXT;
}

/* Sparsity, saturation, and what bits 29 to 31 are without block scaling. */
static enum step idesc_plain(const struct issue *at, const struct mma_form *f, struct mma_run *r)
{
    const uint32_t idesc = at->idesc;
    if (idesc & 0x20800040U || (!f->ws && idesc & 0xC0000000U))
        return bad_idesc(at, "bits 6, 23 and 29%s must be zero", f->ws ? "" : " to 31");
    r->selector = idesc & 3U;
    r->saturate = idesc >> 3 & 1U;
    if (r->selector && (!f->sparse || (f->kind != KIND_F16 && f->kind != KIND_TF32)))
        return bad_idesc(at, "bits 0 and 1 (sparsity selector) must be zero here");
    if (r->saturate && f->kind != KIND_I8)
        return bad_idesc(at, "bit 3 (saturation) goes with kind::i8 only");
    r->m = (idesc >> 24 & 0x1FU) << 4;
    return idesc_d_format(at, (enum mma_kind)f->kind, r);
}

/* Types and places of scale factors, PTX ISA "Block Scaling". */
static enum step idesc_scales(const struct issue *at, const struct mma_form *f, struct mma_run *r)
{
    const uint32_t idesc = at->idesc;
    const bool fp4 = f->kind != KIND_MXF8F6F4, wide = idesc >> 31;
    const uint32_t steps = f->vectors == 1 || (wide && f->vectors == 2) ? 1 : f->vectors;
    if (idesc & 0x0700004BU) return bad_idesc(at, "bits 0, 1, 3, 6 and 24 to 26 must be zero");
    r->ue8m0 = idesc >> 23 & 1U;
    r->sfa_id = idesc >> 29 & 3U;
    r->sfb_id = idesc >> 4 & 3U;
    r->m = (idesc >> 27 & 3U) << 7;
    r->vectors = f->vectors;
    if (!r->ue8m0 && (f->kind != KIND_MXF4NVF4 || f->vectors != 4))
        return bad_idesc(at, "bit 23: ue4m3 scales go with mxf4nvf4 and vectors of 16 only");
    if (wide) {
        if (!fp4 || f->sparse)
            return bad_idesc(at, "bit 31 (K = 96) is for dense mxf4 and mxf4nvf4");
        if (!f->sm_103a) return bad_idesc(at, "bit 31 (K = 96) needs .target sm_103a");
        r->vectors = f->vectors == 4 ? 6 : 3;
        if (f->vectors == 4 && ((r->sfa_id | r->sfb_id) & 1U))
            return bad_idesc(at, "scale-factor ids of vectors of 16 with K = 96 are 0 and 2");
    } else if (r->sfa_id % steps || r->sfb_id % steps) {
        return bad_idesc(at, "scale-factor ids are multiples of %u here", steps);
    }
    return STEP_NEXT;
}

static bool shape_m_valid(const struct mma_form *f, uint32_t m)
{
    if (f->ws) return m == 32 || m == 64 || m == 128;
    if (block_scaled(f)) return f->cta_group == 1 ? m == 128 : m == 256 || (m == 128 && !f->sparse);
    return m == 64U * f->cta_group || m == 128U * f->cta_group;
}

/* PTX ISA "Matrix Shape". */
static enum step idesc_shape(const struct issue *at, const struct mma_form *f,
                             const struct mma_run *r)
{
    const uint32_t n = r->n, bytes = tensor_format_bytes((enum tensor_format)r->format_b);
    uint32_t step = 8U * f->cta_group, least = step;
    if (!shape_m_valid(f, r->m))
        return bad_idesc(at, "M is %u, which %s with cta_group::%u does not have", r->m,
                         f->ws             ? ".ws"
                         : block_scaled(f) ? "this block-scaled form"
                                           : "this kind",
                         f->cta_group);
    if (f->ws) {
        if (n != 64 && n != 128 && (n != 256 || f->sparse))
            return bad_idesc(at, "N is %u, must be 64%s with .ws%s", n,
                             f->sparse ? " or 128" : ", 128 or 256", f->sparse ? ".sp" : "");
        return STEP_NEXT;
    }
    if (f->kind == KIND_I8 && (f->cta_group == 2 || n > 32)) step = 16U * f->cta_group;
    if (f->kind == KIND_I8 && f->cta_group == 2) least = 32;
    if (n < least || n > 256 || n % step)
        return bad_idesc(at, "N is %u, must be a multiple of %u from %u to 256 with cta_group::%u",
                         n, step, least, f->cta_group);
    if (bytes == 1 && r->b.mn_major && n % (16U * f->cta_group))
        return bad_idesc(at, "N is %u, must be a multiple of %u for MN-major 8-bit B", n,
                         16U * f->cta_group);
    return STEP_NEXT;
}

static enum step decode_idesc(const struct issue *at, struct mma_run *r)
{
    const struct mma_form *f = at->in->aux;
    const uint32_t idesc = at->idesc;
    if ((idesc >> 2 & 1U) != f->sparse)
        return bad_idesc(at, "bit 2 (sparsity) is %u, but the instruction is %s", idesc >> 2 & 1U,
                         f->sparse ? ".sp" : "dense");
    if (idesc_formats(at, f, r) == STEP_FAULT) return STEP_FAULT;
    if ((block_scaled(f) ? idesc_scales(at, f, r) : idesc_plain(at, f, r)) == STEP_FAULT)
        return STEP_FAULT;
    r->negate = (idesc >> 13 & 1U) != (idesc >> 14 & 1U);
    r->n = (idesc >> 17 & 0x3FU) << 3;
    r->stored_k = (r->vectors > 4 || r->vectors == 3 ? 48U : 32U) /
                  tensor_format_bytes((enum tensor_format)r->format_a) *
                  tensor_format_pack((enum tensor_format)r->format_a);
    r->k = r->stored_k << f->sparse;
    if (f->a_shift && r->m < 128) return bad_idesc(at, "M is %u, .ashift needs 128 or 256", r->m);
    return idesc_shape(at, f, r);
}

/* ---- operands ---- */

/* Which swizzles go with what. */
static enum step smem_modes(const struct issue *at, const char *name, const struct mma_run *r,
                            uint8_t format, const struct smem_operand *o)
{
    /* PTX ISA "Transpose and Negate": 32-byte atoms and MN-major tf32 go together only */
    if ((o->swizzle == 4) != (o->mn_major && format == TF_TF32))
        return sim_fault(at->w, at->in, at->lane, 715, FIND_MMA_DESC, CAUSE_NONE, "",
                         "descriptor of %s: 128-byte swizzle with 32-byte atoms (code 1) is for "
                         "MN-major tf32, which takes no other mode",
                         name);
    if ((r->vectors == 3 || r->vectors == 6) && !(o->wraps && o->swizzle == 3))
        return sim_fault(at->w, at->in, at->lane, 801, FIND_UNSUPPORTED, CAUSE_NONE, "",
                         "descriptor of %s: K = 96 is modelled with 128-byte swizzle and an "
                         "absolute leading offset (bit 52) only",
                         name);
    return STEP_NEXT;
}

static enum step decode_smem(const struct issue *at, const char *name, uint64_t desc,
                             const struct mma_run *r, uint8_t format, struct smem_operand *o)
{
    const bool mn_major = o->mn_major;
    const enum desc_kind kind =
        r->vectors == 3 || r->vectors == 6 ? DESC_TCGEN05_WRAP : DESC_TCGEN05;
    char why[160];
    if (!desc_decode(kind, desc, o, why, sizeof why))
        return sim_fault(at->w, at->in, at->lane, 715, FIND_MMA_DESC, CAUSE_NONE, "",
                         "descriptor of %s: %s", name, why);
    o->mn_major = mn_major;
    o->elem_bytes = (uint8_t)tensor_format_bytes((enum tensor_format)format);
    return smem_modes(at, name, r, format, o);
}

static enum step check_lane(const struct issue *at, const char *name, uint32_t address,
                            uint32_t lane)
{
    if (tmem_lane(address) == lane) return STEP_NEXT;
    return sim_fault(at->w, at->in, at->lane, 719, FIND_TMEM_LANE, CAUSE_NONE, "",
                     "%s starts at tensor-memory lane %u (address 0x%08x), must start at lane %u",
                     name, tmem_lane(address), address, lane);
}

/* One operand in tensor memory, of `columns`, in every CTA of the group. */
static enum step check_columns(const struct issue *at, const char *name, uint32_t address,
                               uint32_t columns)
{
    const struct mma_form *f = at->in->aux;
    for (uint32_t i = 0; i < f->cta_group; i++)
        if (tmem_check(at->w, at->in, at->lane, tcgen05_cta(at->w->cta, f->cta_group, i),
                       tmem_column(address), columns, name) == STEP_FAULT)
            return STEP_FAULT;
    return STEP_NEXT;
}

/* Scale factors of `rows` rows: 32 to a column, and once more where ids run past a column's four. */
static enum step check_scales(const struct issue *at, const char *name, uint32_t address,
                              uint32_t id, uint32_t rows, const struct mma_run *r)
{
    const uint32_t more = id + r->vectors > 4 ? (rows + 127U) / 128U * 4U : 0;
    if (check_lane(at, name, address, 0) == STEP_FAULT) return STEP_FAULT;
    return check_columns(at, name, address, (rows + 31U) / 32U + more);
}

/* D, and what else of the operands lies in tensor memory. */
static enum step check_tmem(const struct issue *at, const struct mma_run *r)
{
    const struct mma_form *f = at->in->aux;
    const struct d_layout l = mma_layout(f, r);
    const uint32_t start = tmem_lane(r->d);
    if (start != 0 && !(l.strips == 4 && start == 16))
        return sim_fault(at->w, at->in, at->lane, 719, FIND_TMEM_LANE, CAUSE_NONE, "",
                         "D starts at tensor-memory lane %u (address 0x%08x); M = %u with "
                         "cta_group::%u starts at lane 0%s",
                         start, r->d, r->m, (unsigned)f->cta_group, l.strips == 4 ? " or 16" : "");
    if (f->a_in_tmem && tmem_lane(r->a_tmem) != start)
        return sim_fault(at->w, at->in, at->lane, 719, FIND_TMEM_LANE, CAUSE_NONE, "",
                         "A starts at tensor-memory lane %u, D at lane %u: rows of A lie in the "
                         "lanes of their rows of D",
                         tmem_lane(r->a_tmem), start);
    if (check_columns(at, "D", r->d, l.columns) == STEP_FAULT) return STEP_FAULT;
    if (f->a_in_tmem && check_columns(at, "A", r->a_tmem, mma_a_columns(r)) == STEP_FAULT)
        return STEP_FAULT;
    if (f->sparse) {
        const uint32_t columns = f->kind == KIND_F16 || f->kind == KIND_TF32 ? 1U : 2U;
        if (check_lane(at, "the sparsity metadata", r->meta, start) == STEP_FAULT ||
            check_columns(at, "the sparsity metadata", r->meta + r->selector, columns) ==
                STEP_FAULT)
            return STEP_FAULT;
    }
    if (!block_scaled(f)) return STEP_NEXT;
    if (check_scales(at, "scale factors of A", r->sfa, r->sfa_id, l.rows, r) == STEP_FAULT)
        return STEP_FAULT;
    return check_scales(at, "scale factors of B", r->sfb, r->sfb_id,
                        l.bank_lanes ? r->n / l.banks : r->n, r);
}

/* PTX ISA "Zero-Column Mask Descriptor". */
static enum step decode_zero_mask(const struct issue *at, uint64_t mask, struct mma_run *r)
{
    static const uint8_t most[] = {0, 8, 16, 32};
    const uint32_t limit = most[at->idesc >> 30], shift = (uint32_t)(mask >> 56) & 63U;
    r->b_shift = shift;
    if (mask & 0xC000007000000000ULL || shift > limit || (r->m == 32 && shift > 16))
        return sim_fault(
            at->w, at->in, at->lane, 715, FIND_MMA_DESC, CAUSE_NONE, "",
            "zero-column mask 0x%016" PRIx64 ": %s", mask,
            shift > limit || shift > 16
                ? "it shifts B by more columns than the instruction descriptor (bits 30, "
                  "31) or M allows"
                : "bits 36 to 38, 62 and 63 must be zero");
    r->zero_mask = mask >> 39 & 1U ? mask : 0;
    return STEP_NEXT;
}

static uint32_t address_at(const struct issue *at, uint32_t arg, uint32_t imm)
{
    return (uint32_t)arg_lane(at->w, at->in->arg[arg], at->lane) + (uint32_t)at->in->imm[imm];
}

/* Everything that the issuing thread's registers say. */
static enum step decode_run(struct warp *w, const struct insn *in, uint32_t lane, struct mma_run *r)
{
    const struct mma_form *f = in->aux;
    const uint64_t a = arg_lane(w, in->arg[1], lane), b = arg_lane(w, in->arg[2], lane);
    const struct issue at = {w, in, lane, (uint32_t)arg_lane(w, in->arg[f->idesc], lane)};
    r->d = address_at(&at, 0, 0);
    r->accumulate = arg_pred(w, in->arg[f->accumulate]) >> lane & 1U;
    for (uint32_t i = 0; i < f->mask_words; i++)
        r->keep[i] = (uint32_t)arg_lane(w, in->list[i], lane);
    if (decode_idesc(&at, r) == STEP_FAULT) return STEP_FAULT;
    if (f->sparse) r->meta = address_at(&at, f->meta, f->meta_imm);
    if (block_scaled(
            f)) { /* the two top bits may hold the id, which counts only in the descriptor */
        r->sfa = address_at(&at, f->sfa, f->scale_imm) & 0x3FFFFFFFU;
        r->sfb = address_at(&at, f->sfb, f->scale_imm + 1U) & 0x3FFFFFFFU;
    }
    if (f->zero_mask &&
        decode_zero_mask(&at, arg_lane(w, in->arg[f->zero_mask], lane), r) == STEP_FAULT)
        return STEP_FAULT;
    if (f->a_in_tmem)
        r->a_tmem = address_at(&at, 1, 1);
    else if (decode_smem(&at, "A", a, r, r->format_a, &r->a) == STEP_FAULT)
        return STEP_FAULT;
    if (decode_smem(&at, "B", b, r, r->format_b, &r->b) == STEP_FAULT) return STEP_FAULT;
    return check_tmem(&at, r);
}

/* ---- issue ---- */

/* Measured issue to completion, in cycles: one SM 136 + N/2, A in tensor memory 104 + N/2, two SMs
 * 170 + N/2. */
static struct async_latency mma_latency(const struct mma_form *f, uint32_t n)
{
    const uint32_t fixed = f->cta_group == 2 ? 170U : f->a_in_tmem ? 104U : 136U;
    return (struct async_latency){fixed + n / 2U, 64};
}

/* Measured issue interval, in cycles: of each CTA's tensor core N/2 for 32 bytes of k, or what its shared
 * memory takes to supply the operands at 128 bytes a cycle. */
static uint32_t mma_cycles(const struct mma_form *f, const struct mma_run *r)
{
    const enum tensor_format a = (enum tensor_format)r->format_a,
                             b = (enum tensor_format)r->format_b;
    const uint32_t a_row = r->stored_k * tensor_format_bytes(a) / tensor_format_pack(a),
                   b_row = r->k * tensor_format_bytes(b) / tensor_format_pack(b),
                   a_bytes = f->a_in_tmem ? 0 : r->m * a_row, b_bytes = r->n * b_row,
                   fetch = (a_bytes + b_bytes) / (f->cta_group == 2 ? 256U : 128U),
                   multiply = r->n / 2U * (a_row < 32U ? 32U : a_row) / 32U;
    return fetch > multiply ? fetch : multiply;
}

static enum step exec_mma(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct mma_form *f = in->aux;
    if (tcgen05_enter(w, in, first_lane(mask), f->cta_group) == STEP_FAULT) return STEP_FAULT;
    for (; mask; mask &= mask - 1U) {
        const uint32_t lane = first_lane(mask);
        struct async_op *op = async_new(w, in, lane, mma_run_op, sizeof(struct mma_run));
        if (!op) return tcgen05_no_memory(w, in);
        struct mma_run *r = async_payload(op);
        if (decode_run(w, in, lane, r) == STEP_FAULT) {
            async_discard(op);
            return STEP_FAULT;
        }
        for (uint32_t i = 0; i < f->cta_group; i++)
            tcgen05_hold(w->cta, tcgen05_cta(w->cta, f->cta_group, i));
        op->cost.cycles = mma_cycles(f, r);
        async_submit(w->cta->group, op, &w->async->tensor, mma_latency(f, r->n));
        mma_announce(op, r);
    }
    return STEP_NEXT;
}

/* ---- binding ---- */

static const struct {
    const char *name;
    uint8_t kind;
} kinds[] = {{"kind::f16", KIND_F16},           {"kind::tf32", KIND_TF32},
             {"kind::f8f6f4", KIND_F8F6F4},     {"kind::i8", KIND_I8},
             {"kind::mxf8f6f4", KIND_MXF8F6F4}, {"kind::mxf4", KIND_MXF4},
             {"kind::mxf4nvf4", KIND_MXF4NVF4}};

static int bind_scale_vectors(struct decoder *dc, struct mma_form *f)
{
    const char *size = dc->mod[3];
    const bool by_count = size && !strncmp(size, "scale_vec", 9);
    f->vectors = f->kind == KIND_MXF8F6F4 ? 1 : 2;
    if (!size)
        return f->kind == KIND_MXF4NVF4
                   ? bind_invalid(dc, "kind::mxf4nvf4 needs .block16, .block32 or .scale_vec::")
                   : 0;
    if (by_count && tcgen05_needs_a(dc, ".scale_vec::")) return -2;
    const uint32_t wanted = by_count                   ? (uint32_t)(size[11] - '0')
                            : !strcmp(size, "block16") ? 4U
                                                       : f->vectors;
    if (wanted != f->vectors && !(f->kind == KIND_MXF4NVF4 && wanted == 4))
        return bind_invalid(dc, "%s has no .%s", dc->mod[1], size);
    f->vectors = (uint8_t)wanted;
    return 0;
}

/* What operands and modifiers demand of each other and of the target. */
static int bind_rules(struct decoder *dc, const struct mma_form *f)
{
    if (f->kind == KIND_I8 && !tcgen05_target_is(dc, "sm_100a") &&
        !tcgen05_target_is(dc, "sm_101a") && !tcgen05_target_is(dc, "sm_110a"))
        return bind_invalid(dc, "kind::i8 needs .target sm_100a or sm_110a, not %s",
                            dc->module->target);
    if (f->sparse && f->kind > KIND_MXF8F6F4 && tcgen05_needs_a(dc, ".sp of 4-bit types"))
        return -2;
    if (f->a_shift && !f->a_in_tmem) return bind_invalid(dc, ".ashift needs A in tensor memory");
    if (f->a_shift && (mod_has(dc, "collector::a::fill") || mod_has(dc, "collector::a::use")))
        return bind_invalid(dc, ".ashift goes with neither collector::a::fill nor ::use");
    if (f->mask_words && f->mask_words != 4U * f->cta_group)
        return bind_invalid(dc, "disable-output-lane has %u words with cta_group::%u, not %u",
                            4U * f->cta_group, (unsigned)f->cta_group, (unsigned)f->mask_words);
    return 0;
}

static int bind_scale_d(struct decoder *dc, struct mma_form *f)
{
    const uint32_t last = (uint32_t)dc->src->operand_count - 1U;
    int64_t scale = 0;
    if (f->kind != KIND_F16 && f->kind != KIND_TF32)
        return bind_invalid(dc, "scale-input-d goes with kind::f16 and kind::tf32 only");
    if (!strncmp(dc->module->target, "sm_11", 5) || !strncmp(dc->module->target, "sm_101", 6))
        return bind_invalid(dc, "scale-input-d is not there on .target %s", dc->module->target);
    if (!operand_constant(dc, last, &scale) || scale < 0 || scale > 15)
        return bind_invalid(dc, "scale-input-d is a constant from 0 to 15");
    f->scale = (uint8_t)scale;
    return 0;
}

/* Operands: d, A, B, then metadata for .sp, the descriptor, and by form lanes and scale-input-d, scale
 * factors, or the zero-column mask. */
int bind_tcgen05_mma(struct decoder *dc, struct insn *out)
{
    struct mma_form *f = bind_alloc(dc, sizeof *f);
    uint8_t next = 3;
    if (!f) return -1;
    f->cta_group = (uint8_t)tcgen05_bind_group(dc, 0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (mod_is(dc, 1, kinds[i].name)) f->kind = kinds[i].kind;
    f->sparse = strstr(dc->row->name, ".sp") != NULL;
    f->ws = strstr(dc->row->name, ".ws") != NULL;
    f->a_shift = mod_has(dc, "ashift");
    f->sm_103a = tcgen05_target_is(dc, "sm_103a");
    f->a_in_tmem = dc->src->operands[1].kind == OPD_ADDRESS;
    f->mask_words = (uint8_t)out->list_count;
    f->meta_imm = f->a_in_tmem ? 2 : 1;
    f->scale_imm = (uint8_t)(f->meta_imm + f->sparse);
    if (f->sparse) f->meta = next++;
    f->idesc = next++;
    out->aux = f;
    out->fn = exec_mma;
    if (block_scaled(f)) {
        f->sfa = next++;
        f->sfb = next++;
        f->accumulate = next;
        if (bind_scale_vectors(dc, f)) return -2;
    } else if (f->ws) {
        f->accumulate = next++;
        if (!out->arg[next].sink) f->zero_mask = next;
    } else {
        f->accumulate = ++next;
        if (!out->arg[next + 1].sink && bind_scale_d(dc, f)) return -2;
    }
    return bind_rules(dc, f);
}

/* ---- commit ---- */

/* Payload: the barriers to arrive at. */
struct commit_run {
    uint32_t offset;
    uint32_t count;
    struct cta *cta[CLUSTER_CTAS];
};

/* insn.flags of tcgen05.commit. */
enum { COMMIT_GROUP = 3, COMMIT_MULTICAST = 4 };

static bool run_commit(struct group *g, struct async_op *op)
{
    const struct commit_run *r = async_payload(op);
    const struct mbar_who who = {op->warp, op->lane, op->in, op->token};
    (void)g;
    for (uint32_t i = 0; i < r->count; i++) {
        if (mbar_arrive(who, r->cta[i], r->offset, 1, false, NULL) == STEP_FAULT) return true;
        tcgen05_release(op->cta, r->cta[i]);
    }
    return true;
}

/* The shared address behind the operand: as it stands with .shared::cluster, else generic. Without it a
 * B200 also takes a shared address as it stands (kernels that run there pass one); strictly, a warning. */
static enum step commit_address(struct warp *w, const struct insn *in, uint32_t lane,
                                uint32_t *address)
{
    const uint64_t given = arg_lane(w, in->arg[0], lane) + (uint64_t)in->imm[0];
    *address = (uint32_t)given;
    if (in->space == SPACE_SHARED || (given & WINDOW_MASK) == SHARED_WINDOW) return STEP_NEXT;
    if (given >> 32)
        return sim_fault(w, in, lane, 717, FIND_OOB, CAUSE_NONE, "",
                         "0x%016" PRIx64 " is no generic address of shared memory", given);
    sim_idiom(w->cta->group, in, IDIOM_COMMIT_WINDOW);
    if (w->cta->group->launch->check_level >= 2)
        sim_find(w->cta->group, w, in, lane, SEV_WARNING, FIND_OOB, CAUSE_NONE, "",
                 "0x%08x is a shared address, and no generic one: .shared::cluster is missing",
                 *address);
    return STEP_NEXT;
}

static enum step commit_targets(struct warp *w, const struct insn *in, uint32_t lane,
                                struct commit_run *r)
{
    const struct cluster *cluster = w->cta->cluster;
    uint32_t address;
    if (commit_address(w, in, lane, &address) == STEP_FAULT ||
        mbar_locate(w, in, lane, address, &r->cta[0], &r->offset) == STEP_FAULT)
        return STEP_FAULT;
    r->count = 1;
    if (!(in->flags & COMMIT_MULTICAST)) return STEP_NEXT;
    const uint32_t ranks = (uint32_t)arg_lane(w, in->arg[1], lane) & 0xFFFFU;
    if (ranks == 0 || ranks >> cluster->cta_count)
        return sim_fault(w, in, lane, 715, FIND_OOB, CAUSE_NONE, "",
                         "multicast mask 0x%04x names %s; the cluster has %u", ranks,
                         ranks ? "a CTA that does not exist" : "no CTA", cluster->cta_count);
    r->count = 0;
    for (uint32_t rank = 0; rank < cluster->cta_count; rank++)
        if (ranks >> rank & 1U) r->cta[r->count++] = cluster->ctas[rank];
    return STEP_NEXT;
}

static enum step exec_commit(struct warp *w, const struct insn *in, uint32_t mask)
{
    if (tcgen05_enter(w, in, first_lane(mask), in->flags & COMMIT_GROUP) == STEP_FAULT)
        return STEP_FAULT;
    for (; mask; mask &= mask - 1U) {
        const uint32_t lane = first_lane(mask);
        struct async_op *op = async_new(w, in, lane, run_commit, sizeof(struct commit_run));
        if (!op) return tcgen05_no_memory(w, in);
        struct commit_run *r = async_payload(op);
        if (commit_targets(w, in, lane, r) == STEP_FAULT) {
            async_discard(op);
            return STEP_FAULT;
        }
        for (uint32_t i = 0; i < r->count; i++) tcgen05_hold(w->cta, r->cta[i]);
        async_submit(w->cta->group, op, &w->async->tensor, (struct async_latency){12, 8});
    }
    return STEP_NEXT;
}

int bind_tcgen05_commit(struct decoder *dc, struct insn *out)
{
    const bool multicast = mod_has(dc, "multicast::cluster");
    out->flags = (uint16_t)(tcgen05_bind_group(dc, 0) | (multicast ? COMMIT_MULTICAST : 0U));
    out->space = mod_has(dc, "shared::cluster") ? SPACE_SHARED : SPACE_NONE;
    if (multicast == out->arg[1].sink)
        return bind_invalid(dc, multicast ? ".multicast::cluster needs a 16-bit mask of CTAs"
                                          : "a mask of CTAs needs .multicast::cluster");
    out->fn = exec_commit;
    return 0;
}

/* ---- fences ---- */

static enum step exec_fence(struct warp *w, const struct insn *in, uint32_t mask)
{
    observe(w->cta->group, &(struct event){.kind = EV_FENCE,
                                           .lanes = mask,
                                           .warp = w,
                                           .in = in,
                                           .cta = w->cta,
                                           .value = in->flags});
    return STEP_NEXT;
}

int bind_tcgen05_fence_before(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_fence;
    out->flags = FENCE_TCGEN05_BEFORE;
    return 0;
}

int bind_tcgen05_fence_after(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_fence;
    out->flags = FENCE_TCGEN05_AFTER;
    return 0;
}
