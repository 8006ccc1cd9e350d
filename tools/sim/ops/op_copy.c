/*
 * Copies without a tensor map (PTX ISA "Asynchronous copy"): cp.async, cp.async.bulk,
 * cp.reduce.async.bulk, st.async, red.async, and their commit groups.
 */
#include "async/bulk.h"
#include "machine/mem.h"
#include "async/reduce.h"

enum { BULK_ALIGN = 16 };

/* A global operand, checked for alignment; the range is checked by mem_global on the operation. */
static enum step global_operand(struct warp *w, const struct insn *in, uint32_t lane,
                                uint32_t index, uint32_t align, uint64_t *address)
{
    *address = bulk_address(w, in, lane, index, index);
    if (*address % align == 0) return STEP_NEXT;
    return sim_fault(w, in, lane, 716, FIND_MISALIGNED, CAUSE_NONE, "",
                     "global address 0x%llx is not a multiple of %u", (unsigned long long)*address,
                     align);
}

static enum step shared_operand(struct warp *w, const struct insn *in, uint32_t lane,
                                uint32_t index, uint32_t n, uint64_t size, uint32_t align,
                                bool own_cta, struct bulk_place *place)
{
    uint32_t address;
    enum step step = bulk_shared_address(w, in, lane, index, n, &address);
    if (step == STEP_NEXT) step = bulk_place_at(w, in, lane, address, size, align, place);
    if (step != STEP_NEXT || !own_cta || place->cta == w->cta) return step;
    return sim_fault(w, in, lane, 717, FIND_OOB, CAUSE_NONE, "",
                     ".shared::cta address 0x%08x is in CTA rank %u, not the executing CTA's %u",
                     address, place->cta->rank, w->cta->rank);
}

/* The mbarrier of a copy, which must be in the destination's CTA. */
static enum step bar_operand(struct warp *w, const struct insn *in, uint32_t lane, uint32_t index,
                             uint32_t n, const struct cta *dst, struct bulk_bar *bar)
{
    uint32_t address;
    enum step step = bulk_shared_address(w, in, lane, index, n, &address);
    if (step == STEP_NEXT) step = bulk_bar_at(w, in, lane, address, bar);
    if (step != STEP_NEXT || bar->cta == dst) return step;
    return sim_fault(w, in, lane, 719, FIND_MBARRIER_TX, CAUSE_NONE, "",
                     "the mbarrier is in CTA rank %u, the destination in CTA rank %u; it must be "
                     "in the same CTA",
                     bar->cta->rank, dst->rank);
}

/* After a fault between async_new and async_submit. */
static enum step discard(struct async_op *op)
{
    async_discard(op);
    return STEP_FAULT;
}

typedef enum step lane_fn(struct warp *w, const struct insn *in, uint32_t lane);

static enum step for_lanes(struct warp *w, const struct insn *in, uint32_t mask, lane_fn *fn)
{
    for (; mask; mask &= mask - 1) {
        enum step step = fn(w, in, first_lane(mask));
        if (step != STEP_NEXT) return step;
    }
    return STEP_NEXT;
}

/* ---- cp.async: [dst], [src], size{, src-size | ignore-src}; size in imm[2] ---- */

enum cp_flag { CP_SRC_SIZE = 1, CP_IGNORE_SRC = 2 };
enum { CP_MOST = 16 }; /* bytes of a copy */

struct cp_copy {
    struct bulk_place dst;
    const uint8_t *src;
    uint32_t size, src_size; /* what src_size leaves of size is zeros */
};

static bool run_cp(struct group *g, struct async_op *op)
{
    const struct cp_copy *c = async_payload(op);
    (void)g;
    if (c->src_size == CP_MOST) { /* mostly: no call */
        memcpy(bulk_host(c->dst), c->src, CP_MOST);
        return true;
    }
    if (c->src_size) memcpy(bulk_host(c->dst), c->src, c->src_size);
    memset(bulk_host(c->dst) + c->src_size, 0, c->size - c->src_size);
    return true;
}

static enum step cp_lane(struct warp *w, const struct insn *in, uint32_t lane)
{
    struct group *g = w->cta->group;
    struct cp_copy c = {.size = (uint32_t)in->imm[2], .src_size = (uint32_t)in->imm[2]};
    struct async_op *op;
    uint64_t address;
    enum step step = shared_operand(w, in, lane, 0, 0, c.size, c.size, true, &c.dst);
    if (step == STEP_NEXT) step = global_operand(w, in, lane, 1, c.size, &address);
    if (step != STEP_NEXT) return step;
    if (in->flags & CP_SRC_SIZE) {
        uint32_t given = (uint32_t)arg_lane(w, in->arg[3], lane);
        if (given < c.size) c.src_size = given; /* more than size is undefined: all of it here */
    }
    if ((in->flags & CP_IGNORE_SRC) && arg_lane(w, in->arg[3], lane)) c.src_size = 0;
    op = async_new(w, in, lane, run_cp, sizeof c);
    if (!op) return bulk_no_memory(w, in, lane);
    if (c.src_size) {
        c.src = mem_global(w, in, lane, address, c.src_size, ACCESS_READ, "source of cp.async");
        if (!c.src) return discard(op);
    }
    *(struct cp_copy *)async_payload(op) = c;
    async_in_group(op, COMMIT_CP_ASYNC);
    op->cost = (struct async_cost){.bytes = c.src_size, .where = address};
    async_submit(g, op, NULL, LATENCY_LOAD);
    if (c.src_size) bulk_access_global(op, ACCESS_READ, PROXY_GENERIC, address, c.src_size);
    bulk_access_shared(op, ACCESS_WRITE, PROXY_GENERIC, c.dst, c.size);
    return STEP_NEXT;
}

static enum step exec_cp(struct warp *w, const struct insn *in, uint32_t mask)
{
    return for_lanes(w, in, mask, cp_lane);
}

static int bind_cp(struct decoder *dc, struct insn *out, uint16_t flags)
{
    int64_t size;
    if (!operand_constant(dc, 2, &size)) return bind_invalid(dc, "cp-size is not a constant");
    if (size != 16 && (mod_is(dc, 0, "cg") || (size != 4 && size != 8))) {
        return bind_invalid(dc, "cp-size %lld is not %s", (long long)size,
                            mod_is(dc, 0, "cg") ? "16" : "4, 8 or 16");
    }
    out->fn = exec_cp;
    out->space = SPACE_SHARED;
    out->flags = flags;
    out->imm[2] = size;
    return 0;
}

int bind_cp_async(struct decoder *dc, struct insn *out)
{
    return bind_cp(dc, out, out->arg[3].sink ? 0 : CP_SRC_SIZE);
}

int bind_cp_async_ignore(struct decoder *dc, struct insn *out)
{
    return bind_cp(dc, out, CP_IGNORE_SRC);
}

int bind_cp_async_hint(struct decoder *dc, struct insn *out)
{
    return bind_cp(dc, out, 0);
}

/* ---- commit groups: imm[0] the kind, imm[1] groups that may be pending, imm[2] 1 for .read ---- */

static void publish_group(struct warp *w, const struct insn *in, uint32_t mask,
                          enum event_kind kind, uint64_t value)
{
    struct group *g = w->cta->group;
    if (!g->observer) return;
    observe(g, &(struct event){.kind = (uint8_t)kind,
                               .lanes = mask,
                               .warp = w,
                               .in = in,
                               .cta = w->cta,
                               .key = (uint32_t)in->imm[0],
                               .value = value});
}

static enum step exec_commit(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint64_t number = commit_close(w, (enum commit_kind)in->imm[0], mask);
    publish_group(w, in, mask, EV_GROUP_COMMIT, number);
    return STEP_NEXT;
}

static enum step exec_wait(struct warp *w, const struct insn *in, uint32_t mask)
{
    enum commit_kind kind = (enum commit_kind)in->imm[0];
    if (!commit_done(w, kind, mask, (uint64_t)in->imm[1], in->imm[2] != 0)) {
        return sim_block(w, WAIT_GROUPS, w->cta, (uint32_t)kind, (uint64_t)in->imm[1]);
    }
    publish_group(w, in, mask, EV_GROUP_WAIT, (uint64_t)in->imm[1]);
    return STEP_NEXT;
}

/* A commit, then wait_group 0; closing again on each wake-up adds empty groups, which are over. */
static enum step exec_wait_all(struct warp *w, const struct insn *in, uint32_t mask)
{
    commit_close(w, (enum commit_kind)in->imm[0], mask);
    return exec_wait(w, in, mask);
}

static int bind_group(struct insn *out, exec_fn *fn, enum commit_kind kind)
{
    out->fn = fn;
    out->imm[0] = kind;
    out->imm[1] = out->imm[2] = 0;
    return 0;
}

static int bind_group_wait(struct decoder *dc, struct insn *out, enum commit_kind kind)
{
    int64_t pending;
    if (!operand_constant(dc, 0, &pending) || pending < 0) {
        return bind_invalid(dc, "the number of groups is not a constant of 0 or more");
    }
    bind_group(out, exec_wait, kind);
    out->imm[1] = pending;
    out->imm[2] = mod_has(dc, "read");
    return 0;
}

int bind_cp_commit(struct decoder *dc, struct insn *out)
{
    (void)dc;
    return bind_group(out, exec_commit, COMMIT_CP_ASYNC);
}

int bind_cp_wait(struct decoder *dc, struct insn *out)
{
    return bind_group_wait(dc, out, COMMIT_CP_ASYNC);
}

int bind_cp_wait_all(struct decoder *dc, struct insn *out)
{
    (void)dc;
    return bind_group(out, exec_wait_all, COMMIT_CP_ASYNC);
}

int bind_bulk_commit(struct decoder *dc, struct insn *out)
{
    (void)dc;
    return bind_group(out, exec_commit, COMMIT_BULK);
}

int bind_bulk_wait(struct decoder *dc, struct insn *out)
{
    return bind_group_wait(dc, out, COMMIT_BULK);
}

/* ---- bulk copies into shared memory: [dst], [src], size, [bar]{, mask} ---- */

/* insn.aux of bulk copies. */
struct bulk_form {
    bool own_cta;      /* .shared::cta destination */
    bool ignores;      /* .ignore_oob: two operands before the barrier */
    uint32_t mask_arg; /* cp_mask; 0: none */
    reduce_fn *reduce; /* NULL: a copy */
};

/* From global memory or another part of the executing CTA's shared memory. */
struct bulk_in {
    struct bulk_place dst;
    struct bulk_bar bar;
    const uint8_t *src;
    uint32_t size;
    uint32_t left, right; /* bytes at the ends that need not exist; src is behind the left ones */
    reduce_fn *reduce;
};

/* What the destination has for bytes that were ignored: unspecified, so not what anybody expects. */
enum { BULK_IGNORED = 0xC5, BULK_IGNORED_MOST = 15 };

static bool run_in(struct group *g, struct async_op *op)
{
    const struct bulk_in *c = async_payload(op);
    (void)g;
    if (c->left || c->right) memset(bulk_host(c->dst), BULK_IGNORED, c->size);
    if (c->reduce)
        c->reduce(bulk_host(c->dst), c->src, c->size);
    else
        memmove(bulk_host(c->dst) + c->left, c->src, c->size - c->left - c->right);
    bulk_signal(op, &c->bar, c->size);
    bulk_release(c->dst, &c->bar);
    return true;
}

static void submit_in(struct group *g, struct async_op *op, const struct bulk_in *c,
                      struct async_latency latency)
{
    *(struct bulk_in *)async_payload(op) = *c;
    bulk_hold(c->dst, &c->bar);
    op->cost = (struct async_cost){.bytes = c->size, .where = (uint64_t)(uintptr_t)c->src};
    async_submit(g, op, NULL, latency);
    bulk_announce_bar(op, &c->bar);
    bulk_access_shared(op, c->reduce ? ACCESS_ATOMIC : ACCESS_WRITE, PROXY_ASYNC, c->dst, c->size);
}

static enum step load_lane_to(struct warp *w, const struct insn *in, uint32_t lane, uint64_t source,
                              struct bulk_in *c)
{
    struct group *g = w->cta->group;
    struct async_op *op = async_new(w, in, lane, run_in, sizeof *c);
    const uint32_t size = c->size - c->left - c->right;
    if (!op) return bulk_no_memory(w, in, lane);
    source += c->left;
    if (size) {
        c->src = mem_global(w, in, lane, source, size, ACCESS_READ, "source of the bulk copy");
        if (!c->src) return discard(op);
    } else {
        c->src = bulk_host(c->dst); /* nothing to read: an address that is valid */
    }
    submit_in(g, op, c, LATENCY_LOAD);
    if (size) bulk_access_global(op, ACCESS_READ, PROXY_ASYNC, source, size);
    return STEP_NEXT;
}

static enum step ignored_operands(struct warp *w, const struct insn *in, uint32_t lane,
                                  struct bulk_in *c)
{
    c->left = (uint32_t)arg_lane(w, in->arg[3], lane);
    c->right = (uint32_t)arg_lane(w, in->arg[4], lane);
    if (c->left > BULK_IGNORED_MOST || c->right > BULK_IGNORED_MOST || c->left + c->right > c->size)
        return sim_fault(w, in, lane, 715, FIND_OOB, CAUSE_NONE, "",
                         "%u bytes to ignore on the left and %u on the right of %u: 0 to %d each "
                         "are allowed, and no more than the size",
                         c->left, c->right, c->size, BULK_IGNORED_MOST);
    return STEP_NEXT;
}

static enum step load_lane(struct warp *w, const struct insn *in, uint32_t lane)
{
    const struct bulk_form *form = in->aux;
    struct bulk_in c = {.size = (uint32_t)arg_lane(w, in->arg[2], lane)};
    uint64_t source;
    enum step step = bulk_check_size(w, in, lane, c.size);
    if (step == STEP_NEXT) step = global_operand(w, in, lane, 1, BULK_ALIGN, &source);
    if (step == STEP_NEXT) {
        step = shared_operand(w, in, lane, 0, 0, c.size, BULK_ALIGN, form->own_cta, &c.dst);
    }
    if (step == STEP_NEXT && form->ignores) step = ignored_operands(w, in, lane, &c);
    if (step == STEP_NEXT)
        step = bar_operand(w, in, lane, form->ignores ? 5 : 3, 2, c.dst.cta, &c.bar);
    if (step == STEP_NEXT) step = load_lane_to(w, in, lane, source, &c);
    return step;
}

static enum step exec_load(struct warp *w, const struct insn *in, uint32_t mask)
{
    return for_lanes(w, in, mask, load_lane);
}

/* The copy to CTA `rank` of a multicast, at the CTA-relative offsets of destination and barrier. */
static enum step multicast_to(struct warp *w, const struct insn *in, uint32_t lane, uint32_t rank,
                              uint32_t shared, uint32_t bar, uint64_t source, uint32_t size)
{
    struct bulk_in c = {.size = size};
    uint32_t top = rank << SHARED_RANK_SHIFT;
    enum step step =
        bulk_place_at(w, in, lane, (shared & SHARED_OFFSET_MASK) | top, size, BULK_ALIGN, &c.dst);
    if (step == STEP_NEXT) {
        step = bulk_bar_at(w, in, lane, (bar & SHARED_OFFSET_MASK) | top, &c.bar);
    }
    if (step == STEP_NEXT) step = load_lane_to(w, in, lane, source, &c);
    return step;
}

static enum step multicast_lane(struct warp *w, const struct insn *in, uint32_t lane)
{
    uint32_t size = (uint32_t)arg_lane(w, in->arg[2], lane);
    uint32_t ranks = (uint32_t)arg_lane(w, in->arg[4], lane) & 0xFFFFU, shared, bar;
    uint64_t source;
    enum step step = bulk_check_size(w, in, lane, size);
    if (step == STEP_NEXT) step = global_operand(w, in, lane, 1, BULK_ALIGN, &source);
    if (step == STEP_NEXT) step = bulk_shared_address(w, in, lane, 0, 0, &shared);
    if (step == STEP_NEXT) step = bulk_shared_address(w, in, lane, 3, 2, &bar);
    if (step != STEP_NEXT) return step;
    if (ranks >> w->cta->cluster->cta_count) {
        return sim_fault(w, in, lane, 700, FIND_OOB, CAUSE_NONE, "",
                         "multicast mask 0x%x names CTAs beyond the cluster's %u", ranks,
                         w->cta->cluster->cta_count);
    }
    for (; ranks && step == STEP_NEXT; ranks &= ranks - 1) {
        step = multicast_to(w, in, lane, first_lane(ranks), shared, bar, source, size);
    }
    return step;
}

static enum step exec_multicast(struct warp *w, const struct insn *in, uint32_t mask)
{
    return for_lanes(w, in, mask, multicast_lane);
}

static enum step cluster_lane(struct warp *w, const struct insn *in, uint32_t lane)
{
    const struct bulk_form *form = in->aux;
    struct bulk_in c = {.size = (uint32_t)arg_lane(w, in->arg[2], lane), .reduce = form->reduce};
    struct bulk_place src;
    struct async_op *op;
    enum step step = bulk_check_size(w, in, lane, c.size);
    if (step == STEP_NEXT) {
        step = shared_operand(w, in, lane, 0, 0, c.size, BULK_ALIGN, false, &c.dst);
    }
    if (step == STEP_NEXT) {
        step = shared_operand(w, in, lane, 1, 1, c.size, BULK_ALIGN, true, &src);
    }
    if (step == STEP_NEXT) step = bar_operand(w, in, lane, 3, 2, c.dst.cta, &c.bar);
    if (step != STEP_NEXT) return step;
    if (c.reduce && w->cta->cluster->cta_count == 1) { /* measured, for each operation and type */
        return sim_fault(w, in, lane, 715, FIND_OOB, CAUSE_NONE, "",
                         "reduction into shared memory outside a cluster of two CTAs or more: an "
                         "H200 ends the kernel with an illegal instruction");
    }
    op = async_new(w, in, lane, run_in, sizeof c);
    if (!op) return bulk_no_memory(w, in, lane);
    c.src = bulk_host(src);
    submit_in(w->cta->group, op, &c, LATENCY_CLUSTER);
    bulk_access_shared(op, ACCESS_READ, PROXY_ASYNC, src, c.size);
    return STEP_NEXT;
}

static enum step exec_cluster(struct warp *w, const struct insn *in, uint32_t mask)
{
    return for_lanes(w, in, mask, cluster_lane);
}

/* ---- bulk copies to global memory: [dst], [src], size{, policy}{, mask} ---- */

struct bulk_out {
    uint8_t *dst;
    struct bulk_place src;
    uint32_t size;
    uint32_t mask; /* byte i of each 16 is written where bit i is set */
    reduce_fn *reduce;
    _Alignas(16) uint8_t bytes[]; /* read by stage 0 */
};

static bool run_out(struct group *g, struct async_op *op)
{
    struct bulk_out *c = async_payload(op);
    (void)g;
    if (op->stage == 0) {
        memcpy(c->bytes, bulk_host(c->src), c->size);
        return false;
    }
    if (c->reduce) {
        c->reduce(c->dst, c->bytes, c->size);
    } else if (c->mask == 0xFFFFU) {
        memcpy(c->dst, c->bytes, c->size);
    } else {
        for (uint32_t i = 0; i < c->size; i++) {
            if (c->mask >> i % 16 & 1U) c->dst[i] = c->bytes[i];
        }
    }
    return true;
}

static enum step store_lane(struct warp *w, const struct insn *in, uint32_t lane)
{
    const struct bulk_form *form = in->aux;
    enum access_kind access = form->reduce ? ACCESS_ATOMIC : ACCESS_WRITE;
    struct bulk_out c = {
        .size = (uint32_t)arg_lane(w, in->arg[2], lane), .mask = 0xFFFFU, .reduce = form->reduce};
    struct async_op *op;
    uint64_t target;
    enum step step = bulk_check_size(w, in, lane, c.size);
    if (step == STEP_NEXT) step = global_operand(w, in, lane, 0, BULK_ALIGN, &target);
    if (step == STEP_NEXT) {
        step = shared_operand(w, in, lane, 1, 1, c.size, BULK_ALIGN, true, &c.src);
    }
    if (step != STEP_NEXT || !c.size) return step;
    if (form->mask_arg) c.mask = (uint32_t)arg_lane(w, in->arg[form->mask_arg], lane) & 0xFFFFU;
    op = async_new(w, in, lane, run_out, sizeof c + c.size);
    if (!op) return bulk_no_memory(w, in, lane);
    c.dst = mem_global(w, in, lane, target, c.size, access, "destination of the bulk copy");
    if (!c.dst) return discard(op);
    *(struct bulk_out *)async_payload(op) = c;
    async_in_group(op, COMMIT_BULK);
    op->cost = (struct async_cost){.bytes = c.size, .where = target};
    async_submit(w->cta->group, op, NULL, LATENCY_STORE);
    bulk_access_shared(op, ACCESS_READ, PROXY_ASYNC, c.src, c.size);
    bulk_access_global(op, access, PROXY_ASYNC, target, c.size);
    return STEP_NEXT;
}

static enum step exec_store(struct warp *w, const struct insn *in, uint32_t mask)
{
    return for_lanes(w, in, mask, store_lane);
}

/* A hint without effect. */
static enum step exec_prefetch(struct warp *w, const struct insn *in, uint32_t mask)
{
    (void)w, (void)in, (void)mask;
    return STEP_NEXT;
}

/* ---- binding of bulk copies ---- */

static int bind_bulk(struct decoder *dc, struct insn *out, exec_fn *fn, struct bulk_form form)
{
    struct bulk_form *kept = bind_alloc(dc, sizeof *kept);
    int64_t size;
    if (!kept) return -1;
    if (operand_constant(dc, 2, &size) && size % BULK_ALIGN) {
        return bind_invalid(dc, "size %lld is not a multiple of 16", (long long)size);
    }
    *kept = form;
    out->aux = kept;
    out->fn = fn;
    out->space = SPACE_SHARED;
    return 0;
}

int bind_bulk_load(struct decoder *dc, struct insn *out)
{
    return bind_bulk(dc, out, exec_load,
                     (struct bulk_form){.own_cta = mod_is(dc, 0, "shared::cta"),
                                        .ignores = mod_has(dc, "ignore_oob")});
}

int bind_bulk_multicast(struct decoder *dc, struct insn *out)
{
    return bind_bulk(dc, out, exec_multicast, (struct bulk_form){0});
}

int bind_bulk_cluster(struct decoder *dc, struct insn *out)
{
    return bind_bulk(dc, out, exec_cluster, (struct bulk_form){0});
}

int bind_bulk_store(struct decoder *dc, struct insn *out)
{
    return bind_bulk(dc, out, exec_store, (struct bulk_form){0});
}

int bind_bulk_store_mask(struct decoder *dc, struct insn *out)
{
    return bind_bulk(dc, out, exec_store,
                     (struct bulk_form){.mask_arg = mod_has(dc, "L2::cache_hint") ? 4 : 3});
}

int bind_bulk_prefetch(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_prefetch;
    return 0;
}

/* The operation is the word before the type, or before .noftz; `op_group` is its place in the row's
 * modifiers. */
static int bind_reduction(struct decoder *dc, struct insn *out, exec_fn *fn, uint32_t op_group)
{
    enum ptx_type type = mod_type(dc, dc->mod_count - 1);
    reduce_fn *reduce = reduce_find(dc->mod[op_group], type);
    if (!reduce) {
        return bind_invalid(dc, "no reduction .%s on .%s", dc->mod[op_group], ptx_type_text(type));
    }
    return bind_bulk(dc, out, fn, (struct bulk_form){.reduce = reduce});
}

int bind_bulk_reduce_cluster(struct decoder *dc, struct insn *out)
{
    return bind_reduction(dc, out, exec_cluster, 3);
}

int bind_bulk_reduce(struct decoder *dc, struct insn *out)
{
    bool half = mod_has(dc, "f16") || mod_has(dc, "bf16");
    uint32_t op_group = mod_has(dc, "L2::cache_hint") ? 4 : 3;
    if (mod_is(dc, op_group, "add") && half != mod_has(dc, "noftz") && !mod_has(dc, "f32")) {
        return bind_invalid(dc, "add.f16 and add.bf16 need .noftz; of other types f32 may have it");
    }
    if (mod_is(dc, op_group, "add") && mod_has(dc, "s64")) {
        return bind_invalid(dc, "there is no add.s64; add.u64 gives the same bits");
    }
    return bind_reduction(dc, out, exec_store, op_group);
}

/* ---- st.async, red.async: [dst], value(s), [bar] ---- */

struct async_store {
    struct bulk_place dst;
    struct bulk_bar bar;
    uint32_t size;
    reduce_fn *reduce;
    uint8_t bytes[16];
};

static bool run_async_store(struct group *g, struct async_op *op)
{
    const struct async_store *s = async_payload(op);
    (void)g;
    if (s->reduce)
        s->reduce(bulk_host(s->dst), s->bytes, s->size);
    else
        memcpy(bulk_host(s->dst), s->bytes, s->size);
    bulk_signal(op, &s->bar, s->size);
    bulk_release(s->dst, &s->bar);
    return true;
}

static enum step async_store_lane(struct warp *w, const struct insn *in, uint32_t lane)
{
    const struct bulk_form *form = in->aux;
    uint32_t elem = ptx_type_bits(in->type) / 8;
    uint32_t count = in->list_count ? in->list_count : 1;
    struct async_store s = {.size = elem * count, .reduce = form->reduce};
    struct async_op *op;
    enum step step = shared_operand(w, in, lane, 0, 0, s.size, s.size, false, &s.dst);
    if (step == STEP_NEXT) step = bar_operand(w, in, lane, 2, 1, s.dst.cta, &s.bar);
    if (step != STEP_NEXT) return step;
    for (uint32_t i = 0; i < count; i++) {
        const struct arg from = in->list_count ? in->list[i] : in->arg[1];
        uint64_t value[2] = {arg_lane(w, from, lane), 0};
        if (elem == sizeof value && !from.sink) /* two halves, each of all lanes */
            memcpy(&value[1], (const uint64_t *)arg_src(w, from) + WARP_LANES + lane, 8);
        memcpy(s.bytes + (size_t)i * elem, value, elem);
    }
    op = async_new(w, in, lane, run_async_store, sizeof s);
    if (!op) return bulk_no_memory(w, in, lane);
    *(struct async_store *)async_payload(op) = s;
    bulk_hold(s.dst, &s.bar);
    async_submit(w->cta->group, op, NULL, LATENCY_CLUSTER);
    bulk_announce_bar(op, &s.bar);
    bulk_access_shared(op, s.reduce ? ACCESS_ATOMIC : ACCESS_WRITE, PROXY_GENERIC, s.dst, s.size);
    return STEP_NEXT;
}

static enum step exec_async_store(struct warp *w, const struct insn *in, uint32_t mask)
{
    return for_lanes(w, in, mask, async_store_lane);
}

/* Without .shared::cluster the address is generic. */
static int bind_remote(struct decoder *dc, struct insn *out, reduce_fn *reduce)
{
    int result = bind_bulk(dc, out, exec_async_store, (struct bulk_form){.reduce = reduce});
    if (!mod_has(dc, "shared::cluster")) out->space = SPACE_NONE;
    return result;
}

int bind_st_async(struct decoder *dc, struct insn *out)
{
    uint32_t wanted = mod_has(dc, "v2") ? 2 : mod_has(dc, "v4") ? 4 : 1;
    uint32_t bytes = wanted * ptx_type_bits(mod_type(dc, dc->mod_count - 1)) / 8;
    if (out->list_count != wanted || bytes > 16) {
        return bind_invalid(dc, "%u values of %u bytes in all; the vector takes %u and 16 at most",
                            out->list_count, bytes, wanted);
    }
    return bind_remote(dc, out, NULL);
}

int bind_red_async(struct decoder *dc, struct insn *out)
{
    /* mods: relaxed, cluster, space, completion, operation, type; and/or/xor take .b32 */
    const char *op = dc->mod[4];
    enum ptx_type type = mod_type(dc, 5);
    reduce_fn *reduce = reduce_find(op, type);
    if (!reduce) return bind_invalid(dc, "no reduction .%s on .%s", op, ptx_type_text(type));
    return bind_remote(dc, out, reduce);
}
