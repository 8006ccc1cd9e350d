/*
 * wgmma (sm_90a): PTX ISA "Asynchronous Warpgroup Level Matrix Instructions". An operation is the
 * warpgroup's: it starts once all four warps have issued it, and is over for all of them at once, so
 * that a thread behind its wait_group knows that no warp of the four still reads the operands (kernels
 * give shared memory back on the word of one). Each warp multiplies its own 16 of the 64 rows; registers
 * are read and written when the operation completes.
 */
#include "ops/smem_desc.h"

#include <inttypes.h>
#include <stdio.h>

enum { WGMMA_ROWS = 16, WARPGROUP_WARPS = 4 };

/* insn.aux of wgmma.mma_async. */
struct wgmma {
    uint16_t n, k;
    uint8_t format_a, format_b; /* enum tensor_format */
    bool half_d;                /* accumulators are f16, two a register */
    bool integer, saturate;     /* s32 accumulators */
    bool bits;                  /* b1; k counts bytes then */
    bool sparse;
    uint8_t selector; /* of sparsity metadata */
    uint16_t a_k;     /* elements of a row of A as stored */
    bool a_in_regs;
    bool negate; /* exactly one of imm-scale-a and imm-scale-b is -1 */
    bool trans_a, trans_b;
    uint16_t d_regs; /* in insn.list, the A fragment's follow */
};

/* Payload of one warp's share of the operation. */
struct wgmma_run {
    uint64_t b_desc;
    struct smem_operand a, b;
    bool accumulate;
    struct wgmma_steps steps[WGMMA_STEPS]; /* of the warp before it */
};

/* ---- binding ---- */

static int bind_immediates(struct decoder *dc, struct wgmma *m)
{
    /* d, a, b, of .sp metadata and selector, scale-d, then imm-scale-a, imm-scale-b and the transposes
     * of what is in memory; integers have no more than scale-d */
    const bool transposes =
        !m->integer && tensor_format_bytes((enum tensor_format)m->format_a) == 2;
    const uint32_t first = m->sparse ? 6U : 4U;
    const uint32_t wanted =
        m->integer ? first : first + 2U + (transposes ? (m->a_in_regs ? 1U : 2U) : 0U);
    int64_t value[4] = {1, 1, 0, 0};
    if (dc->src->operand_count != wanted)
        return bind_invalid(dc, "wgmma.mma_async of this form has %u operands, not %u", wanted,
                            (unsigned)dc->src->operand_count);
    for (uint32_t i = 0; i < wanted - first; i++) {
        if (!operand_constant(dc, first + i, &value[i]))
            return bind_invalid(dc, "operand %u must be an integer constant", first + i + 1U);
        const bool good = i < 2 ? value[i] == 1 || value[i] == -1 : value[i] == 0 || value[i] == 1;
        if (!good)
            return bind_invalid(dc, "operand %u is %" PRId64 ", must be %s", first + i + 1U,
                                value[i], i < 2 ? "1 or -1" : "0 or 1");
    }
    m->negate = value[0] != value[1];
    m->trans_a = !m->a_in_regs && value[2];
    m->trans_b = m->a_in_regs ? value[2] : value[3];
    return 0;
}

static int bind_selector(struct decoder *dc, struct wgmma *m)
{
    const uint32_t selectors = tensor_selectors((enum tensor_format)m->format_a, m->k);
    int64_t selector = 0;
    if (!operand_constant(dc, 4, &selector) || selector < 0 || selector >= selectors)
        return bind_invalid(dc, "the sparsity selector of this form is a constant below %u",
                            selectors);
    m->selector = (uint8_t)selector;
    return 0;
}

static exec_fn exec_mma_async;

/* Modifiers: sync aligned shape, of 8-bit integers [satfinite], then D A B, of b1 and popc. */
int bind_wgmma_mma(struct decoder *dc, struct insn *out)
{
    struct wgmma *m = bind_alloc(dc, sizeof *m);
    unsigned n = 0, k = 0;
    if (!m) return -1;
    if (sscanf(dc->mod[2], "m64n%uk%u", &n, &k) != 2)
        return bind_invalid(dc, "'%s' is no shape of wgmma", dc->mod[2]);
    const uint32_t types = mod_is(dc, 4, "s32") ? 4 : 3;
    m->integer = mod_is(dc, types, "s32");
    m->bits = m->integer && mod_is(dc, types + 1, "b1");
    m->saturate = types == 4 && dc->mod[3];
    m->sparse = !strcmp(dc->row->name, "wgmma.mma_async.sp");
    m->n = (uint16_t)n;
    m->k = (uint16_t)(m->bits ? k / 8U : k);
    m->a_k = m->sparse ? m->k / 2U : m->k;
    m->half_d = mod_is(dc, types, "f16");
    m->format_a = m->bits ? TF_U8 : (uint8_t)tensor_format_named(dc->mod[types + 1]);
    m->format_b = m->bits ? TF_U8 : (uint8_t)tensor_format_named(dc->mod[types + 2]);
    m->a_in_regs = dc->src->operands[1].kind == OPD_VECTOR;
    m->d_regs = (uint16_t)(n / (m->half_d ? 4U : 2U));
    if (m->integer && n > 24 && n % 16U)
        return bind_invalid(dc, "N of integer forms is 8, 16, 24 or a multiple of 16, not %u", n);
    const uint32_t a_regs = m->a_in_regs ? 4U : 0U;
    if (out->list_count != m->d_regs + a_regs)
        return bind_invalid(dc, "%s needs %u accumulator registers%s, not %u in all", dc->mod[2],
                            (unsigned)m->d_regs, a_regs ? " and 4 of A" : "",
                            (unsigned)out->list_count);
    out->aux = m;
    out->fn = exec_mma_async;
    if (m->sparse && bind_selector(dc, m)) return -2;
    return bind_immediates(dc, m);
}

/* ---- execution ---- */

/* The rows of a tile [k][16] as tensor_wgmma wants them: each serves four lanes. */
static void tile_to_rows(const float *tile, uint32_t k_count, float *a)
{
    for (uint32_t k = 0; k < k_count; k++, tile += WGMMA_ROWS, a += 4 * WGMMA_ROWS)
        for (uint32_t i = 0; i < 4 * WGMMA_ROWS; i++) a[i] = tile[i / 4U];
}

/* A's 16 rows as tensor_wgmma wants them, from registers or memory, with its sign; of a sparse one what
 * is stored. False after a fault. */
static bool take_a(const struct wgmma *m, struct async_op *op, float *a)
{
    const struct wgmma_run *run = async_payload(op);
    const struct warp *w = op->warp;
    const enum tensor_format format = (enum tensor_format)m->format_a;
    if (m->a_in_regs) {
        const uint32_t *reg[4];
        for (uint32_t i = 0; i < 4; i++) reg[i] = arg_src(w, op->in->list[m->d_regs + i]);
        tensor_fragment(format, reg, 4, a);
    } else {
        float tile[TENSOR_MAX_K * WGMMA_ROWS];
        const struct smem_operand rows =
            smem_from_row(&run->a, w->id % WARPGROUP_WARPS * WGMMA_ROWS);
        if (!desc_gather(op, op->cta, "A", &rows, format, WGMMA_ROWS, m->a_k, TILE_MN_INNER, tile))
            return false;
        tile_to_rows(tile, m->a_k, a);
    }
    for (uint32_t i = 0; m->negate && i < m->a_k * TENSOR_FRAGMENT; i++) a[i] = -a[i];
    return true;
}

/* The same in full: zeros where a sparse row has nothing. */
static bool take_whole_a(const struct wgmma *m, struct async_op *op, float *a)
{
    float stored[TENSOR_MAX_K * TENSOR_FRAGMENT];
    struct tensor_places places;
    uint32_t lane = 0;
    if (!m->sparse) return take_a(m, op, a);
    if (!take_a(m, op, stored)) return false;
    const uint32_t *meta = arg_src(op->warp, op->in->arg[3]);
    if (!tensor_places((enum tensor_format)m->format_a, m->k, m->selector, meta, &places, &lane)) {
        (void)sim_fault(op->warp, op->in, lane, 715, FIND_MMA_DESC, CAUSE_NONE, "",
                        "sparsity metadata 0x%08x gives two elements of a group one place",
                        meta[lane]);
        return false;
    }
    tensor_spread(&places, stored, a);
    return true;
}

/* Bytes that were taken as numbers, as words of bits. */
static uint32_t word_at(const float *bytes, uint32_t step)
{
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4; i++) word |= (uint32_t)bytes[(size_t)i * step] << 8U * i;
    return word;
}

/* `a` as tensor_wgmma has it, b[n][k], elements bytes. */
static void multiply_bits(const struct wgmma *m, const float *a, const float *b,
                          uint32_t *const *acc, bool accumulate)
{
    struct tensor_bits p = {.n = m->n, .words = TENSOR_BIT_WORDS};
    for (uint32_t word = 0; word < TENSOR_BIT_WORDS; word++) {
        for (uint32_t row = 0; row < WGMMA_ROWS; row++) {
            const uint32_t slot = row % 8U * 4U + row / 8U * WARP_LANES;
            p.a[row][word] = word_at(a + 4U * word * TENSOR_FRAGMENT + slot, TENSOR_FRAGMENT);
        }
        for (uint32_t n = 0; n < m->n; n++) p.b[n][word] = word_at(b + n * m->k + 4U * word, 1);
    }
    tensor_popcount(&p, acc, accumulate);
}

static void run_share(const struct wgmma *m, struct async_op *op, const float *a, const float *b)
{
    const struct wgmma_run *run = async_payload(op);
    const enum tensor_format format_a = (enum tensor_format)m->format_a;
    uint32_t *acc[TENSOR_MAX_REGS];
    for (uint32_t r = 0; r < m->d_regs; r++) acc[r] = arg_dst(op->warp, op->in->list[r]);
    const struct tensor_fragments p = {m->n, m->k, a, b, acc, run->accumulate};
    struct tensor_rule rule = tensor_rule_of(format_a, (enum tensor_format)m->format_b, m->half_d,
                                             m->half_d, tensor_format_bytes(format_a) == 1);
    rule.sparse = m->sparse;
    if (m->bits)
        multiply_bits(m, a, b, acc, run->accumulate);
    else if (m->integer)
        tensor_wgmma_integer(&p, m->saturate);
    else if (m->half_d)
        tensor_wgmma_half(&p, &rule);
    else
        tensor_wgmma(&p, &rule);
}

/* "All threads in the warpgroup must execute the same wgmma.mma_async." */
static bool mismatch(const struct async_op *op, const struct async_op *first)
{
    (void)sim_fault(
        op->warp, op->in, NO_LANE, 715, FIND_COLLECTIVE_PARTIAL, CAUSE_NONE, "",
        "the warps of a warpgroup issue different wgmma operations: warp %u this one, warp "
        "%u that of line %u",
        op->warp->id, first->warp->id, first->in->src->pos.line);
    return true;
}

static const char *const step_names[] = {
    [WGMMA_WAIT] = "wgmma.wait_group",
    [WGMMA_COMMIT] = "wgmma.commit_group",
    [WGMMA_FENCE] = "wgmma.fence",
};

/* The rule is the same for fence, commit_group and wait_group: .aligned speaks of the warpgroup. Hardware
 * lets a warp wait once more than the others; compute-sanitizer's synccheck does not. */
static void check_steps(struct group *g, struct async_op *op, struct async_op *first)
{
    const struct wgmma_run *run = async_payload(op), *other = async_payload(first);
    for (int kind = 0; kind < WGMMA_STEPS && !first->warp->async->wgmma_uneven; kind++) {
        const struct wgmma_steps *a = &run->steps[kind], *b = &other->steps[kind];
        const bool more = a->count > b->count;
        if (a->count == b->count) continue;
        first->warp->async->wgmma_uneven = true;
        sim_find(g, more ? op->warp : first->warp, more ? a->last : b->last, NO_LANE, SEV_ERROR,
                 FIND_COLLECTIVE_PARTIAL, CAUSE_NONE, "",
                 "all warps of a warpgroup must execute the same %s: before the wgmma of line %u "
                 "warp %u has executed %u, warp %u %u",
                 step_names[kind], first->in->src->pos.line, op->warp->id, a->count,
                 first->warp->id, b->count);
    }
}

static bool run_mma_async(struct group *g, struct async_op *first)
{
    const struct wgmma *m = first->in->aux;
    float a[TENSOR_PRODUCT_K * TENSOR_FRAGMENT], b[TENSOR_MAX_MN * TENSOR_PRODUCT_K];
    const struct wgmma_run *gathered = NULL; /* whose B is in b: as a rule one for all four warps */
    for (struct async_op *op = first; op; op = op->joined) {
        const struct wgmma_run *run = async_payload(op);
        if (op->in != first->in) return mismatch(op, first);
        check_steps(g, op, first);
        if (!take_whole_a(m, op, a)) return true;
        if ((!gathered || gathered->b_desc != run->b_desc) &&
            !desc_gather(op, op->cta, "B", &run->b, (enum tensor_format)m->format_b, m->n, m->k,
                         m->bits ? TILE_K_INNER : TILE_QUADS, b))
            return true;
        gathered = run;
        run_share(m, op, a, b);
    }
    return true;
}

static enum step decode_operand(struct warp *w, const struct insn *in, const char *name,
                                uint64_t desc, uint8_t format, bool trans, struct smem_operand *out)
{
    char why[160];
    if (!desc_decode(DESC_WGMMA, desc, out, why, sizeof why))
        return sim_fault(w, in, 0, 715, FIND_MMA_DESC, CAUSE_NONE, "", "descriptor of %s: %s", name,
                         why);
    out->mn_major = trans;
    out->elem_bytes = (uint8_t)tensor_format_bytes((enum tensor_format)format);
    return STEP_NEXT;
}

/* All of the warpgroup exists; one descriptor for all lanes. */
static enum step check_warpgroup(struct warp *w, const struct insn *in, const struct wgmma *m)
{
    if ((w->id | 3U) >= w->cta->warp_count)
        return sim_fault(
            w, in, NO_LANE, 715, FIND_COLLECTIVE_PARTIAL, CAUSE_NONE, "",
            "wgmma needs all four warps of a warpgroup; warps %u to %u are %u of %u in "
            "this block",
            w->id & ~3U, w->id | 3U, w->cta->warp_count - (w->id & ~3U), 4U);
    for (uint32_t i = m->a_in_regs ? 2U : 1U; i < 3; i++) {
        for (uint32_t lane = 1; lane < WARP_LANES; lane++) {
            const uint64_t first = arg_lane(w, in->arg[i], 0),
                           other = arg_lane(w, in->arg[i], lane);
            if (first != other)
                return sim_fault(w, in, lane, 715, FIND_MMA_DESC, CAUSE_NONE, "",
                                 "descriptor of %s is 0x%016" PRIx64 " in lane %u but 0x%016" PRIx64
                                 " in lane 0: it must be the same in all lanes",
                                 i == 1 ? "A" : "B", other, lane, first);
        }
    }
    return STEP_NEXT;
}

/* N/2 cycles of the tensor cores, which the warpgroup has to itself meanwhile, or what shared memory
 * takes to supply the operands at 128 bytes a cycle. */
static uint32_t mma_cycles(const struct wgmma *m)
{
    const uint32_t rows = m->n + (m->a_in_regs ? 0U : 4U * WGMMA_ROWS),
                   fetch =
                       rows * m->k * tensor_format_bytes((enum tensor_format)m->format_b) / 128U;
    return fetch > m->n / 2U ? fetch : m->n / 2U;
}

/* Starts the warpgroup's next operation where all four warps have issued it. */
static void start_warpgroup(struct warp *w, const struct wgmma *m)
{
    struct async_pipe *held[WARPGROUP_WARPS];
    const uint32_t first = w->id - w->id % WARPGROUP_WARPS;
    for (uint32_t i = 0; i < WARPGROUP_WARPS; i++)
        held[i] = &w->cta->warps[first + i].async->wgmma_held;
    /* N/2 cycles on the tensor core behind the operand fetch */
    async_join(w->cta->group, held, WARPGROUP_WARPS, &w->cta->warps[first].async->wgmma,
               (struct async_latency){32U + m->n / 2U, m->n / 4U});
}

/* Once for the four warps, whose descriptors are the same. */
static void publish_product(struct async_op *op, const struct wgmma *m)
{
    const struct wgmma_run *run = async_payload(op);
    if (op->warp->id % WARPGROUP_WARPS) return;
    desc_publish_product(op, op->cta,
                         &(struct product){
                             .a = {m->a_in_regs ? NULL : &run->a, (enum tensor_format)m->format_a,
                                   WGMMA_ROWS * WARPGROUP_WARPS, m->a_k},
                             .b = {&run->b, (enum tensor_format)m->format_b, m->n, m->k},
                             .sparse = m->sparse,
                             .accumulate = run->accumulate,
                             .d = op->in->list[0].offset,
                         });
}

static enum step exec_mma_async(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct wgmma *m = in->aux;
    struct group *g = w->cta->group;
    if (mask != FULL_MASK)
        return sim_fault(w, in, first_lane(~mask), 715, FIND_COLLECTIVE_PARTIAL, CAUSE_NONE, "",
                         "wgmma needs all 32 lanes of the warp; mask is 0x%08x", mask);
    if (check_warpgroup(w, in, m) == STEP_FAULT) return STEP_FAULT;
    if (!w->async->wgmma_fenced) {
        sim_find(g, w, in, NO_LANE, SEV_ERROR, FIND_WGMMA_FENCE, CAUSE_NONE, "",
                 "wgmma.mma_async with no wgmma.fence before it: its registers may not be written "
                 "yet");
        w->async->wgmma_fenced = true; /* say it once */
    }
    struct async_op *op = async_new(w, in, 0, run_mma_async, sizeof(struct wgmma_run));
    if (!op)
        return sim_fault(w, in, NO_LANE, 2, FIND_UNSUPPORTED, CAUSE_NONE, "",
                         "out of host memory for an operation in flight");
    struct wgmma_run *run = async_payload(op);
    run->accumulate = arg_pred(w, in->arg[m->sparse ? 5 : 3]) & 1U;
    run->b_desc = arg_lane(w, in->arg[2], 0);
    memcpy(run->steps, w->async->wgmma_steps, sizeof run->steps);
    if ((!m->a_in_regs && decode_operand(w, in, "A", arg_lane(w, in->arg[1], 0), m->format_a,
                                         m->trans_a, &run->a) == STEP_FAULT) ||
        decode_operand(w, in, "B", run->b_desc, m->format_b, m->trans_b, &run->b) == STEP_FAULT) {
        async_discard(op);
        return STEP_FAULT;
    }
    async_in_group(op, COMMIT_WGMMA);
    op->cost.cycles = mma_cycles(m);
    async_hold(g, op, &w->async->wgmma_held);
    if (!m->a_in_regs) {
        const struct smem_operand rows = smem_from_row(&run->a, w->id % 4U * WGMMA_ROWS);
        desc_publish(op, w->cta, &rows, WGMMA_ROWS, m->a_k);
    }
    desc_publish(op, w->cta, &run->b, m->n, m->k);
    publish_product(op, m);
    start_warpgroup(w, m);
    return STEP_NEXT;
}

/* ---- fence, commit, wait ---- */

static void count_step(struct warp *w, const struct insn *in, enum wgmma_step kind)
{
    w->async->wgmma_steps[kind].count++;
    w->async->wgmma_steps[kind].last = in;
}

static enum step exec_fence(struct warp *w, const struct insn *in, uint32_t mask)
{
    w->async->wgmma_fenced = true;
    count_step(w, in, WGMMA_FENCE);
    observe(w->cta->group, &(struct event){.kind = EV_FENCE,
                                           .lanes = mask,
                                           .warp = w,
                                           .in = in,
                                           .cta = w->cta,
                                           .value = FENCE_WGMMA});
    return STEP_NEXT;
}

static enum step exec_commit(struct warp *w, const struct insn *in, uint32_t mask)
{
    const uint64_t number = commit_close(w, COMMIT_WGMMA, mask);
    count_step(w, in, WGMMA_COMMIT);
    sim_wake(w->cta, WAIT_GROUPS, COMMIT_WGMMA); /* other warps of the warpgroup wait for it */
    observe(w->cta->group, &(struct event){.kind = EV_GROUP_COMMIT,
                                           .lanes = mask,
                                           .warp = w,
                                           .in = in,
                                           .cta = w->cta,
                                           .key = COMMIT_WGMMA,
                                           .value = number});
    return STEP_NEXT;
}

/* The operation is one of the warpgroup (PTX ISA "wgmma.mma_async"): it is complete when every warp's
 * part is. */
static bool group_reached(const struct warp *w, uint64_t pending)
{
    const uint64_t closed = commit_closed(w, COMMIT_WGMMA);
    for (uint32_t i = w->id & ~3U; closed > pending && i <= (w->id | 3U); i++) {
        if (i < w->cta->warp_count &&
            !commit_reached(&w->cta->warps[i], COMMIT_WGMMA, closed - pending))
            return false;
    }
    return true;
}

static enum step exec_wait(struct warp *w, const struct insn *in, uint32_t mask)
{
    const uint64_t pending = arg_lane(w, in->arg[0], 0);
    if (!commit_done(w, COMMIT_WGMMA, mask, pending, false) || !group_reached(w, pending))
        return sim_block(w, WAIT_GROUPS, w->cta, COMMIT_WGMMA, pending);
    count_step(w, in, WGMMA_WAIT);
    observe(w->cta->group, &(struct event){.kind = EV_GROUP_WAIT,
                                           .lanes = mask,
                                           .warp = w,
                                           .in = in,
                                           .cta = w->cta,
                                           .key = COMMIT_WGMMA,
                                           .value = pending});
    return STEP_NEXT;
}

int bind_wgmma_fence(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_fence;
    return 0;
}

int bind_wgmma_commit(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_commit;
    return 0;
}

int bind_wgmma_wait(struct decoder *dc, struct insn *out)
{
    int64_t pending = 0;
    if (!operand_constant(dc, 0, &pending) || pending < 0)
        return bind_invalid(dc, "wgmma.wait_group takes a constant that is not negative");
    out->fn = exec_wait;
    return 0;
}
