/*
 * mbarrier instructions (PTX ISA "mbarrier.*" sections): operand handling per lane around the
 * operations of mbar.h. Flags: enum mbar_flag.
 */
#include "async/bulk.h"
#include "machine/mem.h"

/* Odds, one in so many, that a wait answers False at once where it could sleep: try_wait "may"
 * time out at any moment, test_wait never sleeps. Small enough that programs get on. */
enum { EARLY_TRY = 16, EARLY_TEST = 2 };

static enum step locate(struct warp *w, const struct insn *in, uint32_t lane, uint32_t index,
                        struct cta **cta, uint32_t *offset)
{
    uint32_t address;
    enum step step = bulk_shared_address(w, in, lane, index, 0, &address);
    if (step == STEP_NEXT) step = mbar_locate(w, in, lane, address, cta, offset);
    if (step != STEP_NEXT) return step;
    if (*cta != w->cta && (in->flags & MBAR_OWN_CTA)) {
        return sim_fault(w, in, lane, 717, FIND_OOB, CAUSE_NONE, "",
                         "shared address 0x%08x is in CTA rank %u; this form reaches mbarriers of "
                         "its own CTA (rank %u) only",
                         address, (*cta)->rank, w->cta->rank);
    }
    return STEP_NEXT;
}

static struct mbar_who thread(struct warp *w, const struct insn *in, uint32_t lane)
{
    return (struct mbar_who){.warp = w, .lane = lane, .in = in};
}

/* ---- init, inval, tx-count: [bar] {value} ---- */

typedef enum step word_op(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t value);

static enum step for_lanes(struct warp *w, const struct insn *in, uint32_t mask, word_op *op)
{
    for (; mask; mask &= mask - 1) {
        uint32_t offset, lane = first_lane(mask);
        struct cta *cta;
        enum step step = locate(w, in, lane, 0, &cta, &offset);
        if (step == STEP_NEXT) {
            step = op(thread(w, in, lane), cta, offset, (uint32_t)arg_lane(w, in->arg[1], lane));
        }
        if (step != STEP_NEXT) return step;
    }
    return STEP_NEXT;
}

static enum step exec_init(struct warp *w, const struct insn *in, uint32_t mask)
{
    return for_lanes(w, in, mask, mbar_init);
}

static enum step inval(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t unused)
{
    (void)unused;
    return mbar_inval(who, cta, offset);
}

static enum step exec_inval(struct warp *w, const struct insn *in, uint32_t mask)
{
    return for_lanes(w, in, mask, inval);
}

static enum step exec_expect(struct warp *w, const struct insn *in, uint32_t mask)
{
    return for_lanes(w, in, mask, mbar_expect_tx);
}

static enum step exec_complete(struct warp *w, const struct insn *in, uint32_t mask)
{
    return for_lanes(w, in, mask, mbar_complete_tx);
}

/* ---- arrivals: state|_, [bar], {count or bytes} ---- */

/* noComplete may not complete the phase (undefined): judged before the arrival is made. */
static void check_no_complete(struct warp *w, const struct insn *in, uint32_t lane,
                              const struct cta *cta, uint32_t offset, uint32_t count)
{
    struct mbar_state s = mbar_load(cta, offset);
    if (s.pending > count || s.tx) return;
    sim_find(w->cta->group, w, in, lane, SEV_ERROR, FIND_MBARRIER_OVERRUN, CAUSE_NONE, "",
             "an arrive.noComplete of %u would complete the phase (%u pending), which it may not",
             count, s.pending);
}

static uint32_t arrivals_of(struct warp *w, const struct insn *in, uint32_t lane)
{
    return in->arg[2].sink ? 1 : (uint32_t)arg_lane(w, in->arg[2], lane);
}

/*
 * What the lanes of one instruction bring to a barrier counts together: 32 lanes at one that expects a single
 * arrival end the kernel on an H200, and so does an arrival where only bytes are pending (tests/zoo,
 * tvm-20250 and 08-parity-per-tile). `*done`: lanes that were looked at with an earlier one.
 */
static enum step bears(struct warp *w, const struct insn *in, uint32_t mask, uint32_t lane,
                       struct cta *cta, uint32_t offset, uint32_t *done)
{
    const uint64_t address = arg_lane(w, in->arg[1], lane);
    uint32_t count = 0;
    if (*done >> lane & 1) return STEP_NEXT;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const uint32_t other = first_lane(rest);
        if (arg_lane(w, in->arg[1], other) != address) continue;
        *done |= 1U << other;
        count += arrivals_of(w, in, other);
    }
    return mbar_bears(thread(w, in, lane), cta, offset, count);
}

static enum step exec_arrive(struct warp *w, const struct insn *in, uint32_t mask)
{
    bool drop = (in->flags & MBAR_DROP) != 0;
    uint32_t done = 0;
    for (; mask; mask &= mask - 1) {
        uint32_t offset, lane = first_lane(mask);
        const uint32_t count = arrivals_of(w, in, lane);
        uint64_t state;
        struct cta *cta;
        enum step step = locate(w, in, lane, 1, &cta, &offset);
        if (step == STEP_NEXT) step = bears(w, in, mask, lane, cta, offset, &done);
        if (step != STEP_NEXT) return step;
        if (in->flags & MBAR_NO_COMPLETE) check_no_complete(w, in, lane, cta, offset, count);
        step = mbar_arrive(thread(w, in, lane), cta, offset, count, drop, &state);
        if (step != STEP_NEXT) return step;
        arg_set_lane(w, in->arg[0], lane, state);
    }
    return STEP_NEXT;
}

static enum step exec_arrive_expect(struct warp *w, const struct insn *in, uint32_t mask)
{
    bool drop = (in->flags & MBAR_DROP) != 0;
    for (; mask; mask &= mask - 1) {
        uint32_t offset, lane = first_lane(mask);
        uint64_t state;
        struct cta *cta;
        enum step step = locate(w, in, lane, 1, &cta, &offset);
        if (step == STEP_NEXT) step = mbar_bears(thread(w, in, lane), cta, offset, 1);
        if (step != STEP_NEXT) return step;
        step = mbar_arrive_expect_tx(thread(w, in, lane), cta, offset,
                                     (uint32_t)arg_lane(w, in->arg[2], lane), drop, &state);
        if (step != STEP_NEXT) return step;
        arg_set_lane(w, in->arg[0], lane, state);
    }
    return STEP_NEXT;
}

static enum step exec_pending_count(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (; mask; mask &= mask - 1) {
        uint32_t lane = first_lane(mask);
        struct mbar_state s = mbar_unpack(arg_lane(w, in->arg[1], lane));
        arg_set_lane(w, in->arg[0], lane, s.pending);
    }
    return STEP_NEXT;
}

/* ---- waits: p, [bar], parity or state {, time hint} ---- */

/* What one lane asks; lanes with the same question get their answer together. */
struct question {
    struct cta *cta;
    uint32_t offset, parity;
    uint64_t phase; /* current phase of the barrier */
    bool passed;
};

static enum step ask(struct warp *w, const struct insn *in, uint32_t lane, struct question *q)
{
    uint64_t operand = arg_lane(w, in->arg[2], lane);
    enum step step = locate(w, in, lane, 1, &q->cta, &q->offset);
    if (step == STEP_NEXT) {
        step = mbar_current_phase(thread(w, in, lane), q->cta, q->offset, &q->phase);
    }
    if (step != STEP_NEXT) return step;
    q->parity = in->flags & MBAR_PARITY ? (uint32_t)operand & 1U : mbar_unpack(operand).parity;
    q->passed = (q->phase & 1U) != q->parity;
    return STEP_NEXT;
}

static void publish_answer(struct warp *w, const struct insn *in, uint32_t lanes,
                           const struct question *q)
{
    struct group *g = w->cta->group;
    if (!g->observer) return;
    observe(g, &(struct event){.kind = q->passed ? EV_MBAR_PASS : EV_MBAR_FALSE,
                               .lanes = lanes,
                               .warp = w,
                               .in = in,
                               .cta = q->cta,
                               .key = q->offset,
                               .value = q->phase - 1});
}

/* Lanes that ask the same as the first lane of `rest`. */
static uint32_t same_question(const struct warp *w, const struct insn *in, uint32_t rest)
{
    uint32_t lane = first_lane(rest), same = 0;
    uint64_t address = arg_lane(w, in->arg[1], lane), operand = arg_lane(w, in->arg[2], lane);
    for (; rest; rest &= rest - 1) {
        lane = first_lane(rest);
        if (arg_lane(w, in->arg[1], lane) == address && arg_lane(w, in->arg[2], lane) == operand) {
            same |= 1U << lane;
        }
    }
    return same;
}

/* True once every lane's phase has completed. Until then the fragment sleeps on the barrier of its
 * first unanswered lane; where nothing else can move (wait.expired) or chance has it, each lane gets
 * the answer of the moment. An answer that nothing reads is no wait, though it be True. */
static enum step exec_wait(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct question asked[WARP_LANES], *unanswered = NULL;
    uint32_t lanes[WARP_LANES], count = 0, truth = 0;
    for (uint32_t rest = mask; rest; rest &= ~lanes[count++]) {
        enum step step = ask(w, in, first_lane(rest), &asked[count]);
        if (step != STEP_NEXT) return step;
        lanes[count] = same_question(w, in, rest);
        if (asked[count].passed)
            truth |= lanes[count];
        else if (!unanswered)
            unanswered = &asked[count];
    }
    if (unanswered && !warp_frag(w)->wait.expired &&
        sim_random(w->cta->group, in->flags & MBAR_TEST ? EARLY_TEST : EARLY_TRY)) {
        return sim_block(w, WAIT_MBAR, unanswered->cta, unanswered->offset, unanswered->parity);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!in->unread) publish_answer(w, in, lanes[i], &asked[i]);
    }
    arg_set_pred(w, in->arg[0], mask, truth);
    return STEP_NEXT;
}

/* ---- cp.async.mbarrier.arrive: [bar] ---- */

static bool run_copies_arrive(struct group *g, struct async_op *op)
{
    const struct bulk_bar *bar = async_payload(op);
    struct mbar_who who = {.warp = op->warp, .lane = op->lane, .in = op->in, .token = op->token};
    (void)g;
    mbar_arrive(who, bar->cta, bar->offset, 1, false, NULL);
    bar->cta->in_flight--;
    return true;
}

/* in->imm[1]: 1 for .noinc, whose arrival the barrier's count already includes. */
static enum step exec_copies_arrive(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (; mask; mask &= mask - 1) {
        uint32_t lane = first_lane(mask);
        struct bulk_bar bar = {0};
        struct async_op *op;
        enum step step = locate(w, in, lane, 0, &bar.cta, &bar.offset);
        if (step == STEP_NEXT) {
            step = mbar_current_phase(thread(w, in, lane), bar.cta, bar.offset, &bar.phase);
        }
        if (step == STEP_NEXT && !in->imm[1]) {
            step = mbar_add_pending(thread(w, in, lane), bar.cta, bar.offset, 1);
        }
        if (step != STEP_NEXT) return step;
        op = async_new(w, in, lane, run_copies_arrive, sizeof bar);
        if (!op) return bulk_no_memory(w, in, lane);
        *(struct bulk_bar *)async_payload(op) = bar;
        bar.cta->in_flight++;
        async_submit_after_copies(w->cta->group, op, LATENCY_CLUSTER);
    }
    return STEP_NEXT;
}

/* ---- binding ---- */

/* .shared alone means ::cta (PTX ISA "Shared State Space"); no space: a generic address. */
static void bind_common(const struct decoder *dc, struct insn *out, exec_fn *fn, uint16_t flags)
{
    bool cluster = mod_has(dc, "shared::cluster");
    bool cta = mod_has(dc, "shared") || mod_has(dc, "shared::cta");
    out->fn = fn;
    out->space = cluster || cta ? SPACE_SHARED : SPACE_NONE;
    out->flags = flags;
    if (cta) out->flags |= MBAR_OWN_CTA;
    if (mod_has(dc, "relaxed")) out->flags |= MBAR_RELAXED;
    if (mod_has(dc, "cluster")) out->flags |= MBAR_CLUSTER_SCOPE;
}

int bind_mbar_init(struct decoder *dc, struct insn *out)
{
    bind_common(dc, out, exec_init, MBAR_OWN_CTA);
    return 0;
}

int bind_mbar_inval(struct decoder *dc, struct insn *out)
{
    bind_common(dc, out, exec_inval, MBAR_OWN_CTA);
    return 0;
}

int bind_mbar_expect_tx(struct decoder *dc, struct insn *out)
{
    bind_common(dc, out, exec_expect, MBAR_RELAXED);
    return 0;
}

int bind_mbar_complete_tx(struct decoder *dc, struct insn *out)
{
    bind_common(dc, out, exec_complete, MBAR_RELAXED);
    return 0;
}

/* A remote barrier's state would mean nothing here (PTX ISA "mbarrier.arrive": sink only). */
static int check_sink(struct decoder *dc, const struct insn *out)
{
    if (!mod_has(dc, "shared::cluster") || out->arg[0].sink) return 0;
    return bind_invalid(dc, "an arrive on .shared::cluster returns no state: the destination must "
                            "be '_'");
}

int bind_mbar_arrive(struct decoder *dc, struct insn *out)
{
    bind_common(dc, out, exec_arrive, 0);
    return check_sink(dc, out);
}

int bind_mbar_arrive_drop(struct decoder *dc, struct insn *out)
{
    bind_common(dc, out, exec_arrive, MBAR_DROP);
    return check_sink(dc, out);
}

int bind_mbar_arrive_no_complete(struct decoder *dc, struct insn *out)
{
    bind_common(dc, out, exec_arrive, MBAR_OWN_CTA | MBAR_NO_COMPLETE);
    return 0;
}

int bind_mbar_arrive_drop_no_complete(struct decoder *dc, struct insn *out)
{
    bind_common(dc, out, exec_arrive, MBAR_OWN_CTA | MBAR_NO_COMPLETE | MBAR_DROP);
    return 0;
}

int bind_mbar_arrive_expect(struct decoder *dc, struct insn *out)
{
    bind_common(dc, out, exec_arrive_expect, 0);
    return check_sink(dc, out);
}

int bind_mbar_arrive_drop_expect(struct decoder *dc, struct insn *out)
{
    bind_common(dc, out, exec_arrive_expect, MBAR_DROP);
    return check_sink(dc, out);
}

int bind_mbar_pending_count(struct decoder *dc, struct insn *out)
{
    bind_common(dc, out, exec_pending_count, 0);
    return 0;
}

int bind_mbar_wait(struct decoder *dc, struct insn *out)
{
    bind_common(dc, out, exec_wait, MBAR_OWN_CTA);
    if (mod_has(dc, "parity")) out->flags |= MBAR_PARITY;
    return 0;
}

int bind_mbar_test(struct decoder *dc, struct insn *out)
{
    bind_mbar_wait(dc, out);
    out->flags |= MBAR_TEST;
    return 0;
}

int bind_copies_arrive(struct decoder *dc, struct insn *out)
{
    bind_common(dc, out, exec_copies_arrive, MBAR_OWN_CTA);
    out->imm[1] = mod_has(dc, "noinc");
    return 0;
}
