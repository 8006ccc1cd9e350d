/*
 * tcgen05.mma (kinds f16, tf32, f8f6f4 with 8-bit types; dense), commit and fences: PTX ISA "TensorCore
 * 5th Generation Matrix Multiply and accumulate Operations". An operation runs at its completion, in
 * the order of issue of its warp, on the memories of one CTA or of a pair.
 */
#include "mbar.h"
#include "mem.h"
#include "smem_desc.h"
#include "tcgen05.h"

#include <inttypes.h>

enum mma_kind { KIND_F16, KIND_TF32, KIND_F8F6F4 };

enum { MASK_WORDS = 8, BLOCK_N = 8 };

/* insn.aux of tcgen05.mma. */
struct mma_form {
    uint8_t kind, cta_group;
    bool a_in_tmem;
    uint8_t mask_words; /* in insn.list */
    uint8_t scale;      /* D is multiplied by 2^-scale first */
};

/* Payload: what one thread issued. */
struct mma_run {
    uint32_t m, n, k;
    uint8_t format_a, format_b; /* enum tensor_format */
    bool half_d, negate, accumulate;
    uint32_t d, a_tmem; /* addresses */
    struct smem_operand a, b;
    uint32_t keep[MASK_WORDS]; /* lanes of D that stay unwritten */
};

/* How D lies in a CTA's tensor memory, PTX ISA "Data Path Layout Organization" (layouts A, B, D, F). */
struct d_layout {
    uint32_t rows;        /* of A that a CTA supplies */
    uint32_t strips;      /* groups of rows that lie apart */
    uint32_t strip_lanes; /* lanes from one to the next */
    uint32_t half_lanes;  /* lanes and columns from the first CTA's columns of B to the second's */
    uint32_t half_columns;
    uint32_t columns; /* in all */
};

static struct d_layout layout_of(const struct mma_run *r, uint32_t cta_group)
{
    struct d_layout l = {.rows = r->m / cta_group, .strips = 1, .columns = r->n};
    if (cta_group == 1 && r->m == 64) {
        l.strips = 4; /* F: 16 rows in each quarter of the lanes */
        l.strip_lanes = 32;
    } else if (cta_group == 2 && r->m == 128) {
        l.half_lanes = 64; /* B */
        l.columns = r->n / 2U;
    } else if (cta_group == 2) {
        l.half_columns = r->n / 2U; /* A */
    }
    return l;
}

/* ---- instruction descriptor, PTX ISA "Instruction descriptor" ---- */

static enum step bad_idesc(struct warp *w, const struct insn *in, uint32_t lane, uint32_t idesc,
                           const char *what)
{
    return sim_fault(w, in, lane, 715, FIND_MMA_DESC, CAUSE_NONE, "",
                     "instruction descriptor 0x%08x: %s", idesc, what);
}

/* The element format of a code in bits 7-9 or 10-12; TF_FORMATS for one that the kind lacks. */
static enum tensor_format idesc_format(enum mma_kind kind, uint32_t code)
{
    switch (kind) {
    case KIND_F16: return code == 0 ? TF_F16 : code == 1 ? TF_BF16 : TF_FORMATS;
    case KIND_TF32: return code == 2 ? TF_TF32 : TF_FORMATS;
    default: return code == 0 ? TF_E4M3 : code == 1 ? TF_E5M2 : TF_FORMATS;
    }
}

static enum step idesc_formats(struct warp *w, const struct insn *in, uint32_t lane, uint32_t idesc,
                               enum mma_kind kind, struct mma_run *r)
{
    const uint32_t a = idesc >> 7 & 7U, b = idesc >> 10 & 7U, d = idesc >> 4 & 3U;
    if (kind == KIND_F8F6F4 && (a == 3 || a == 4 || a == 5 || b == 3 || b == 4 || b == 5))
        return sim_fault(w, in, lane, 801, FIND_UNSUPPORTED, CAUSE_NONE, "",
                         "instruction descriptor 0x%08x: 6- and 4-bit operands are not modelled",
                         idesc);
    r->format_a = (uint8_t)idesc_format(kind, a);
    r->format_b = (uint8_t)idesc_format(kind, b);
    if (r->format_a == TF_FORMATS)
        return bad_idesc(w, in, lane, idesc, "bits 7 to 9 name no A format of this kind");
    if (r->format_b == TF_FORMATS)
        return bad_idesc(w, in, lane, idesc, "bits 10 to 12 name no B format of this kind");
    if (kind == KIND_F16 && a != b)
        return bad_idesc(w, in, lane, idesc, "A and B must both be f16 or both bf16");
    if (d > 1 || (d == 0 && (kind == KIND_TF32 || r->format_a == TF_BF16)))
        return bad_idesc(w, in, lane, idesc, "bits 4 and 5 name no D format for these operands");
    r->half_d = d == 0;
    return STEP_NEXT;
}

/* PTX ISA "Matrix Shape". */
static enum step idesc_shape(struct warp *w, const struct insn *in, uint32_t lane, uint32_t idesc,
                             uint32_t cta_group, const struct mma_run *r)
{
    const uint32_t step = 8U * cta_group;
    char what[160];
    if (r->m != 64U * cta_group && r->m != 128U * cta_group) {
        (void)snprintf(what, sizeof what, "M is %u, must be %u or %u with cta_group::%u", r->m,
                       64U * cta_group, 128U * cta_group, cta_group);
        return bad_idesc(w, in, lane, idesc, what);
    }
    if (r->n == 0 || r->n > 256 || r->n % step) {
        (void)snprintf(what, sizeof what,
                       "N is %u, must be a multiple of %u from %u to 256 with cta_group::%u", r->n,
                       step, step, cta_group);
        return bad_idesc(w, in, lane, idesc, what);
    }
    if (tensor_format_bytes((enum tensor_format)r->format_b) == 1 && r->b.mn_major &&
        r->n % (2U * step)) {
        (void)snprintf(what, sizeof what, "N is %u, must be a multiple of %u for MN-major 8-bit B",
                       r->n, 2U * step);
        return bad_idesc(w, in, lane, idesc, what);
    }
    return STEP_NEXT;
}

static enum step decode_idesc(struct warp *w, const struct insn *in, uint32_t lane, uint32_t idesc,
                              struct mma_run *r)
{
    const struct mma_form *f = in->aux;
    if (idesc & 0x0000000FU)
        return bad_idesc(w, in, lane, idesc,
                         "bits 0 to 3 (sparsity, saturation) must be zero here");
    if (idesc & 0xE0800040U)
        return bad_idesc(w, in, lane, idesc, "bits 6, 23 and 29 to 31 must be zero");
    if (idesc_formats(w, in, lane, idesc, (enum mma_kind)f->kind, r) == STEP_FAULT)
        return STEP_FAULT;
    r->negate = (idesc >> 13 & 1U) != (idesc >> 14 & 1U);
    r->a.mn_major = idesc >> 15 & 1U;
    r->b.mn_major = idesc >> 16 & 1U;
    r->n = (idesc >> 17 & 0x3FU) << 3;
    r->m = (idesc >> 24 & 0x1FU) << 4;
    r->k = 32U / tensor_format_bytes((enum tensor_format)r->format_a);
    if (f->a_in_tmem && r->a.mn_major)
        return bad_idesc(w, in, lane, idesc, "A in tensor memory is K-major, bit 15 must be zero");
    return idesc_shape(w, in, lane, idesc, f->cta_group, r);
}

/* ---- operands ---- */

static enum step decode_smem(struct warp *w, const struct insn *in, uint32_t lane, const char *name,
                             uint64_t desc, uint8_t format, struct smem_operand *o)
{
    const bool mn_major = o->mn_major;
    char why[160];
    if (!desc_decode(DESC_TCGEN05, desc, o, why, sizeof why))
        return sim_fault(w, in, lane, 715, FIND_MMA_DESC, CAUSE_NONE, "", "descriptor of %s: %s",
                         name, why);
    o->mn_major = mn_major;
    o->elem_bytes = (uint8_t)tensor_format_bytes((enum tensor_format)format);
    /* PTX ISA "Transpose and Negate": 32-byte atoms and MN-major tf32 go together only */
    if ((o->swizzle == 4) != (mn_major && format == TF_TF32))
        return sim_fault(w, in, lane, 715, FIND_MMA_DESC, CAUSE_NONE, "",
                         "descriptor of %s: 128-byte swizzle with 32-byte atoms (code 1) is for "
                         "MN-major tf32, which takes no other mode",
                         name);
    return STEP_NEXT;
}

/* D and an A in tensor memory, in every CTA of the group. */
static enum step check_tmem(struct warp *w, const struct insn *in, uint32_t lane,
                            const struct mma_run *r)
{
    const struct mma_form *f = in->aux;
    const struct d_layout l = layout_of(r, f->cta_group);
    const uint32_t start = tmem_lane(r->d);
    if (start != 0 && !(l.strips == 4 && start == 16))
        return sim_fault(w, in, lane, 719, FIND_TMEM_LANE, CAUSE_NONE, "",
                         "D starts at tensor-memory lane %u (address 0x%08x); M = %u with "
                         "cta_group::%u starts at lane 0%s",
                         start, r->d, r->m, (unsigned)f->cta_group, l.strips == 4 ? " or 16" : "");
    if (f->a_in_tmem && tmem_lane(r->a_tmem) != start)
        return sim_fault(w, in, lane, 719, FIND_TMEM_LANE, CAUSE_NONE, "",
                         "A starts at tensor-memory lane %u, D at lane %u: rows of A lie in the "
                         "lanes of their rows of D",
                         tmem_lane(r->a_tmem), start);
    for (uint32_t i = 0; i < f->cta_group; i++) {
        const struct cta *cta = tcgen05_cta(w->cta, f->cta_group, i);
        if (tmem_check(w, in, lane, cta, tmem_column(r->d), l.columns, "D") == STEP_FAULT)
            return STEP_FAULT;
        if (f->a_in_tmem &&
            tmem_check(w, in, lane, cta, tmem_column(r->a_tmem), 8, "A") == STEP_FAULT)
            return STEP_FAULT;
    }
    return STEP_NEXT;
}

/* Everything that the issuing thread's registers say. */
static enum step decode_run(struct warp *w, const struct insn *in, uint32_t lane, struct mma_run *r)
{
    const struct mma_form *f = in->aux;
    const uint64_t a = arg_lane(w, in->arg[1], lane), b = arg_lane(w, in->arg[2], lane);
    const uint32_t idesc = (uint32_t)arg_lane(w, in->arg[3], lane);
    r->d = (uint32_t)arg_lane(w, in->arg[0], lane) + (uint32_t)in->imm[0];
    r->accumulate = arg_pred(w, in->arg[5]) >> lane & 1U;
    for (uint32_t i = 0; i < f->mask_words; i++)
        r->keep[i] = (uint32_t)arg_lane(w, in->list[i], lane);
    if (decode_idesc(w, in, lane, idesc, r) == STEP_FAULT) return STEP_FAULT;
    if (f->a_in_tmem)
        r->a_tmem = (uint32_t)a + (uint32_t)in->imm[1];
    else if (decode_smem(w, in, lane, "A", a, r->format_a, &r->a) == STEP_FAULT)
        return STEP_FAULT;
    if (decode_smem(w, in, lane, "B", b, r->format_b, &r->b) == STEP_FAULT) return STEP_FAULT;
    return check_tmem(w, in, lane, r);
}

/* ---- the product ---- */

/* A from tensor memory as [k][lane]: element k of a row is in bits k * width of its lane's cells. */
static void gather_tmem(const struct async_op *op, struct cta *cta, const struct mma_run *r,
                        float *dst)
{
    const uint32_t bytes = tensor_format_bytes((enum tensor_format)r->format_a);
    const uint32_t first = tmem_column(r->a_tmem);
    for (uint32_t column = 0; column < 8; column++) {
        for (uint32_t lane = 0; lane < TMEM_LANES; lane++) {
            float value[4];
            tensor_convert((enum tensor_format)r->format_a, &cta->sm->tmem[first + column][lane],
                           4U / bytes, value);
            for (uint32_t i = 0; i < 4U / bytes; i++)
                dst[(size_t)(column * 4U / bytes + i) * TMEM_LANES + lane] = value[i];
        }
    }
    tmem_publish(op, cta, ACCESS_READ, r->a_tmem, 8);
}

static float cell_to_float(uint32_t cell, bool half)
{
    const uint32_t bits = half ? half_bits((uint16_t)cell) : cell;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* A product whose D is scaled, f16, or has lanes that stay: through a copy, 8 columns at a time. f16
 * lies in the low half of a cell, the high half becomes zero. */
static void multiply_staged(const struct mma_run *r, uint32_t scale, const uint32_t *keep,
                            uint32_t lane, struct tensor_product p)
{
    uint32_t stage[BLOCK_N][TMEM_LANES];
    uint32_t *const acc = p.acc;
    const float *const b = p.b;
    const uint32_t n = p.n, stride = p.acc_stride;
    p.acc = stage[0];
    p.acc_stride = TMEM_LANES;
    p.n = BLOCK_N;
    for (uint32_t first = 0; first < n; first += BLOCK_N) {
        for (uint32_t i = 0; r->accumulate && i < BLOCK_N; i++) {
            for (uint32_t m = 0; m < p.m; m++) {
                float f = cell_to_float(acc[(size_t)(first + i) * stride + m], r->half_d);
                if (scale) f *= 1.0F / (float)(1U << scale);
                memcpy(&stage[i][m], &f, sizeof f);
            }
        }
        p.b = b + (size_t)first * p.b_n;
        tensor_mma(&p);
        for (uint32_t i = 0; i < BLOCK_N; i++) {
            for (uint32_t m = 0; m < p.m; m++) {
                uint32_t *cell = &acc[(size_t)(first + i) * stride + m];
                if (keep[(lane + m) / 32U] >> (lane + m) % 32U & 1U) continue;
                *cell = r->half_d ? float_to_half(cell_to_float(stage[i][m], false)) : stage[i][m];
            }
        }
    }
}

/* One CTA's rows of D. b: the tiles of B that the CTAs of the group supply, one after another. */
static bool multiply_cta(const struct async_op *op, const struct mma_run *r, struct cta *cta,
                         const float *b)
{
    const struct mma_form *f = op->in->aux;
    const struct d_layout l = layout_of(r, f->cta_group);
    const uint32_t n = r->n / f->cta_group;
    const uint32_t *keep = r->keep + (f->cta_group == 2 ? (cta->rank & 1U) * 4U : 0U);
    const bool staged =
        r->half_d || (f->scale && r->accumulate) || (keep[0] | keep[1] | keep[2] | keep[3]);
    float a[TENSOR_MAX_K * TMEM_LANES];
    if (f->a_in_tmem)
        gather_tmem(op, cta, r, a);
    else if (!desc_gather(op, cta, "A", &r->a, (enum tensor_format)r->format_a, l.rows, r->k,
                          TILE_MN_INNER, a))
        return false;
    const uint32_t a_stride = f->a_in_tmem ? (uint32_t)TMEM_LANES : l.rows;
    for (uint32_t i = 0; r->negate && i < r->k * a_stride; i++) a[i] = -a[i];
    for (uint32_t half = 0; half < f->cta_group; half++) {
        for (uint32_t strip = 0; strip < l.strips; strip++) {
            const uint32_t lane = tmem_lane(r->d) + half * l.half_lanes + strip * l.strip_lanes;
            const uint32_t row = strip * (l.rows / l.strips);
            const uint32_t column = tmem_column(r->d) + half * l.half_columns;
            const struct tensor_product p = {
                .m = l.rows / l.strips,
                .n = n,
                .k = r->k,
                .a = a + (f->a_in_tmem ? lane : row),
                .a_stride = a_stride,
                .b = b + (size_t)half * n * r->k,
                .b_n = r->b.mn_major ? 1U : r->k,
                .b_k = r->b.mn_major ? n : 1U,
                .acc = &cta->sm->tmem[column][lane],
                .acc_stride = TMEM_LANES,
                .accumulate = r->accumulate,
            };
            if (staged)
                multiply_staged(r, f->scale, keep, lane, p);
            else
                tensor_mma(&p);
        }
    }
    tmem_publish(op, cta, r->accumulate ? ACCESS_ATOMIC : ACCESS_WRITE, r->d, l.columns);
    return true;
}

static bool run_mma(struct group *g, struct async_op *op)
{
    const struct mma_form *f = op->in->aux;
    const struct mma_run *r = async_payload(op);
    const uint32_t n = r->n / f->cta_group;
    float b[TENSOR_MAX_MN * TENSOR_MAX_K];
    bool good = true;
    (void)g;
    for (uint32_t i = 0; good && i < f->cta_group; i++)
        good = desc_gather(op, tcgen05_cta(op->cta, f->cta_group, i), "B", &r->b,
                           (enum tensor_format)r->format_b, n, r->k,
                           r->b.mn_major ? TILE_MN_INNER : TILE_K_INNER, b + (size_t)i * n * r->k);
    for (uint32_t i = 0; good && i < f->cta_group; i++)
        good = multiply_cta(op, r, tcgen05_cta(op->cta, f->cta_group, i), b);
    for (uint32_t i = 0; i < f->cta_group; i++)
        tcgen05_release(op->cta, tcgen05_cta(op->cta, f->cta_group, i));
    return true;
}

/* Measured issue to completion, in cycles: one SM 136 + N/2, A in tensor memory 104 + N/2, two SMs
 * 170 + N/2. */
static struct async_latency mma_latency(const struct mma_form *f, uint32_t n)
{
    const uint32_t fixed = f->cta_group == 2 ? 170U : f->a_in_tmem ? 104U : 136U;
    return (struct async_latency){fixed + n / 2U, 64};
}

static enum step exec_mma(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct mma_form *f = in->aux;
    if (tcgen05_enter(w, in, first_lane(mask), f->cta_group) == STEP_FAULT) return STEP_FAULT;
    for (; mask; mask &= mask - 1U) {
        const uint32_t lane = first_lane(mask);
        struct async_op *op = async_new(w, in, lane, run_mma, sizeof(struct mma_run));
        if (!op) return tcgen05_no_memory(w, in);
        struct mma_run *r = async_payload(op);
        if (decode_run(w, in, lane, r) == STEP_FAULT) {
            async_discard(op);
            return STEP_FAULT;
        }
        for (uint32_t i = 0; i < f->cta_group; i++)
            tcgen05_hold(w->cta, tcgen05_cta(w->cta, f->cta_group, i));
        async_submit(w->cta->group, op, &w->async->tensor, mma_latency(f, r->n));
    }
    return STEP_NEXT;
}

int bind_tcgen05_mma(struct decoder *dc, struct insn *out)
{
    struct mma_form *f = bind_alloc(dc, sizeof *f);
    const uint32_t last = (uint32_t)dc->src->operand_count - 1U;
    int64_t scale = 0;
    if (!f) return -1;
    f->cta_group = (uint8_t)tcgen05_bind_group(dc, 0);
    f->kind = mod_is(dc, 1, "kind::f16")    ? KIND_F16
              : mod_is(dc, 1, "kind::tf32") ? KIND_TF32
                                            : KIND_F8F6F4;
    f->a_in_tmem = dc->src->operands[1].kind == OPD_ADDRESS;
    f->mask_words = (uint8_t)out->list_count;
    if (out->list_count && out->list_count != 4U * f->cta_group)
        return bind_invalid(dc, "disable-output-lane has %u words with cta_group::%u, not %u",
                            4U * f->cta_group, (unsigned)f->cta_group, (unsigned)out->list_count);
    if (!out->arg[6].sink) {
        if (f->kind == KIND_F8F6F4)
            return bind_invalid(dc, "scale-input-d goes with kind::f16 and kind::tf32 only");
        if (!operand_constant(dc, last, &scale) || scale < 0 || scale > 15)
            return bind_invalid(dc, "scale-input-d is a constant from 0 to 15");
    }
    f->scale = (uint8_t)scale;
    out->aux = f;
    out->fn = exec_mma;
    return 0;
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

/* The shared address behind the operand: as it stands with .shared::cluster, else generic. */
static enum step commit_address(struct warp *w, const struct insn *in, uint32_t lane,
                                uint32_t *address)
{
    const uint64_t given = arg_lane(w, in->arg[0], lane) + (uint64_t)in->imm[0];
    *address = (uint32_t)given;
    if (in->space == SPACE_SHARED || (given & WINDOW_MASK) == SHARED_WINDOW) return STEP_NEXT;
    return sim_fault(w, in, lane, 717, FIND_OOB, CAUSE_NONE, "",
                     "0x%016" PRIx64 " is no generic address of shared memory", given);
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
