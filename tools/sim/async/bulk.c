/* Operand addresses, barriers and announcements of asynchronous copies: bulk.h. */
#include "async/bulk.h"
#include "machine/mem.h"

uint64_t bulk_address(const struct warp *w, const struct insn *in, uint32_t lane, uint32_t index,
                      uint32_t n)
{
    return arg_lane(w, in->arg[index], lane) + (uint64_t)in->imm[n];
}

enum step bulk_shared_address(struct warp *w, const struct insn *in, uint32_t lane, uint32_t index,
                              uint32_t n, uint32_t *address)
{
    uint64_t value = bulk_address(w, in, lane, index, n);
    if (in->space == SPACE_NONE && (value & WINDOW_MASK) != SHARED_WINDOW) {
        return sim_fault(w, in, lane, 717, FIND_OOB, CAUSE_NONE, "",
                         "generic address 0x%llx does not lie in shared memory",
                         (unsigned long long)value);
    }
    *address = (uint32_t)value;
    return STEP_NEXT;
}

enum step bulk_place_at(struct warp *w, const struct insn *in, uint32_t lane, uint32_t address,
                        uint64_t size, uint32_t align, struct bulk_place *out)
{
    if (address % align) {
        return sim_fault(w, in, lane, 716, FIND_MISALIGNED, CAUSE_NONE, "",
                         "shared address 0x%08x is not a multiple of %u", address, align);
    }
    if (!mem_shared(w, address, &out->cta, &out->offset)) {
        return sim_fault(w, in, lane, 700, FIND_OOB, CAUSE_NONE, "",
                         "shared address 0x%08x lies in no CTA of the cluster", address);
    }
    if (out->offset < SHARED_RESERVED || out->offset + size > out->cta->shared_bytes) {
        return sim_fault(w, in, lane, 700, FIND_OOB, CAUSE_NONE, "",
                         "%llu bytes at shared offset %u do not lie in the CTA's shared memory, "
                         "offsets %d to %u",
                         (unsigned long long)size, out->offset, SHARED_RESERVED,
                         out->cta->shared_bytes);
    }
    if (out->cta != w->cta && !out->cta->warps_live) {
        sim_find(w->cta->group, w, in, lane, SEV_ERROR, FIND_CLUSTER_EXIT, CAUSE_NONE, "",
                 "copy into shared memory of CTA rank %u, whose threads have all exited",
                 out->cta->rank);
    }
    return STEP_NEXT;
}

enum step bulk_bar_at(struct warp *w, const struct insn *in, uint32_t lane, uint32_t address,
                      struct bulk_bar *out)
{
    struct mbar_who who = {.warp = w, .lane = lane, .in = in};
    enum step step = mbar_locate(w, in, lane, address, &out->cta, &out->offset);
    if (step != STEP_NEXT) return step;
    return mbar_current_phase(who, out->cta, out->offset, &out->phase);
}

void bulk_signal(const struct async_op *op, const struct bulk_bar *bar, uint32_t bytes)
{
    struct mbar_who who = {.warp = op->warp, .lane = op->lane, .in = op->in, .token = op->token};
    mbar_copy_landed(who, bar->cta, bar->offset, bytes, bar->phase);
}

static void announce(const struct async_op *op, struct event e)
{
    e.kind = EV_ACCESS;
    e.lanes = 1U << op->lane;
    e.warp = op->warp;
    e.in = op->in;
    e.token = op->token;
    observe(op->cta->group, &e);
}

void bulk_announce_bar(const struct async_op *op, const struct bulk_bar *bar)
{
    if (!op->cta->group->observer) return;
    observe(op->cta->group, &(struct event){.kind = EV_ASYNC_BAR,
                                            .lanes = 1U << op->lane,
                                            .warp = op->warp,
                                            .in = op->in,
                                            .cta = bar->cta,
                                            .key = bar->offset,
                                            .value = bar->phase,
                                            .token = op->token});
}

void bulk_access_shared(const struct async_op *op, enum access_kind access, enum proxy proxy,
                        struct bulk_place place, uint64_t size)
{
    if (!op->cta->group->observer) return;
    announce(op, (struct event){.space = SPACE_SHARED,
                                .access = (uint8_t)access,
                                .proxy = (uint8_t)proxy,
                                .cta = place.cta,
                                .address = place.offset,
                                .size = size});
}

void bulk_access_global(const struct async_op *op, enum access_kind access, enum proxy proxy,
                        uint64_t address, uint64_t size)
{
    if (!op->cta->group->observer) return;
    announce(op, (struct event){.space = SPACE_GLOBAL,
                                .access = (uint8_t)access,
                                .proxy = (uint8_t)proxy,
                                .address = address,
                                .size = size});
}

enum step bulk_no_memory(struct warp *w, const struct insn *in, uint32_t lane)
{
    return sim_fault(w, in, lane, 2, FIND_UNSUPPORTED, CAUSE_NONE, "",
                     "host memory exhausted while issuing an asynchronous operation");
}

enum step bulk_check_size(struct warp *w, const struct insn *in, uint32_t lane, uint32_t size)
{
    if (size % 16 == 0) return STEP_NEXT;
    return sim_fault(w, in, lane, 716, FIND_MISALIGNED, CAUSE_NONE, "",
                     "size of a bulk copy is %u bytes, not a multiple of 16", size);
}
