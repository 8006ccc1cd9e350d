/*
 * clusterlaunchcontrol (PTX ISA "clusterlaunchcontrol.try_cancel", "clusterlaunchcontrol.query_cancel"):
 * a cluster that has not started is taken off the grid, and who asked does its work.
 *
 * A request takes the next cluster of its group's share, so that what it gets does not depend on host
 * threads; when the share is used up it fails, even if other SMs have clusters left (a request may
 * fail at any time). The response is opaque; ours: word 0 to 2 the first CTA's %ctaid, word 3 1 for a
 * cluster taken, 0 for a failure.
 */
#include "async/bulk.h"
#include "machine/exec.h"

enum { RESPONSE_BYTES = 16 };

struct clc_target {
    struct bulk_place place;
    struct bulk_bar bar;
};

struct clc_request {
    uint32_t count;
    struct clc_target to[CLUSTER_CTAS];
};

/* ---- try_cancel ---- */

/* Takes the next cluster of the group's share; false when there is none. */
static bool take_cluster(struct group *g, uint32_t ctaid[3])
{
    struct launch *l = g->launch;
    uint32_t nx = l->grid[0] / l->cluster[0], ny = l->grid[1] / l->cluster[1];
    uint32_t linear = g->next_cluster, size = launch_cluster_size(l);
    if (linear >= launch_cluster_count(l)) return false;
    g->next_cluster += l->group_count;
    ctaid[0] = linear % nx * l->cluster[0];
    ctaid[1] = linear / nx % ny * l->cluster[1];
    ctaid[2] = linear / nx / ny * l->cluster[2];
    g->ctas_done += size;
    for (uint32_t i = 0; i < size; i++) progress_cta(l);
    return true;
}

static bool run_cancel(struct group *g, struct async_op *op)
{
    struct clc_request *r = async_payload(op);
    uint32_t response[4] = {0};
    response[3] = take_cluster(g, response);
    for (uint32_t i = 0; i < r->count; i++) {
        memcpy(bulk_host(r->to[i].place), response, RESPONSE_BYTES);
        bulk_signal(op, &r->to[i].bar, RESPONSE_BYTES);
        bulk_release(r->to[i].place, &r->to[i].bar);
    }
    return true;
}

/* One destination: the operands' offsets in the CTA of that rank. */
static enum step add_target(struct warp *w, const struct insn *in, uint32_t lane,
                            struct clc_request *r, uint32_t rank, uint32_t place, uint32_t bar)
{
    struct clc_target *t = &r->to[r->count];
    uint32_t base = rank << SHARED_RANK_SHIFT;
    enum step step = bulk_place_at(w, in, lane, base | (place & SHARED_OFFSET_MASK), RESPONSE_BYTES,
                                   RESPONSE_BYTES, &t->place);
    if (step == STEP_NEXT)
        step = bulk_bar_at(w, in, lane, base | (bar & SHARED_OFFSET_MASK), &t->bar);
    if (step == STEP_NEXT) r->count++;
    return step;
}

static enum step cancel_lane(struct warp *w, const struct insn *in, uint32_t lane)
{
    struct clc_request request = {.count = 0};
    struct cluster *cl = w->cta->cluster;
    uint32_t place, bar, ranks = in->flags ? cl->cta_count : 1;
    struct async_op *op;
    enum step step = bulk_shared_address(w, in, lane, 0, 0, &place);
    if (step == STEP_NEXT) step = bulk_shared_address(w, in, lane, 1, 1, &bar);
    for (uint32_t r = 0; r < ranks && step == STEP_NEXT; r++)
        step = add_target(w, in, lane, &request, in->flags ? r : w->cta->rank, place, bar);
    if (step != STEP_NEXT) return step;
    if (cl->cancel_failed)
        sim_find(
            w->cta->group, w, in, lane, SEV_ERROR, FIND_CLUSTER_CANCEL, CAUSE_NONE, "",
            "asks for another cluster of the grid after an answer said that none is left: what "
            "comes is undefined; leave the loop once is_canceled is false");
    op = async_new(w, in, lane, run_cancel, sizeof request);
    if (!op) return bulk_no_memory(w, in, lane);
    memcpy(async_payload(op), &request, sizeof request);
    for (uint32_t i = 0; i < request.count; i++) bulk_hold(request.to[i].place, &request.to[i].bar);
    async_submit(w->cta->group, op, NULL, LATENCY_LOAD);
    for (uint32_t i = 0; i < request.count; i++) {
        bulk_announce_bar(op, &request.to[i].bar);
        bulk_access_shared(op, ACCESS_WRITE, PROXY_ASYNC, request.to[i].place, RESPONSE_BYTES);
    }
    return STEP_NEXT;
}

static enum step exec_cancel(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (; mask; mask &= mask - 1) {
        enum step step = cancel_lane(w, in, first_lane(mask));
        if (step != STEP_NEXT) return step;
    }
    return STEP_NEXT;
}

/* flags: 1 for all CTAs of the cluster. Without .shared::cta the addresses are generic. */
int bind_clc_cancel(struct decoder *dc, struct insn *out)
{
    out->flags = mod_has(dc, "multicast::cluster::all");
    out->space = mod_has(dc, "shared::cta") ? SPACE_SHARED : SPACE_NONE;
    out->fn = exec_cancel;
    return 0;
}

/* ---- query_cancel ---- */

/* Word `n` of a lane's response, a 128-bit operand: two halves of 64 bits, low first. */
static uint32_t response_word(const struct warp *w, struct arg a, uint32_t lane, uint32_t n)
{
    const uint8_t *p = arg_src(w, a);
    uint32_t word;
    memcpy(&word, p + (n / 2 * WARP_LANES + lane) * 8 + n % 2 * 4, sizeof word);
    return word;
}

static enum step exec_is_canceled(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint32_t taken = 0;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t lane = first_lane(rest);
        if (response_word(w, in->arg[1], lane, 3) == 1) taken |= 1U << lane;
    }
    if (mask & ~taken) w->cta->cluster->cancel_failed = true;
    arg_set_pred(w, in->arg[0], mask, taken);
    return STEP_NEXT;
}

/* imm[2], imm[3]: the first coordinate and how many; destinations in the list, or arg[0]. */
static enum step exec_first_ctaid(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (; mask; mask &= mask - 1) {
        uint32_t lane = first_lane(mask);
        if (response_word(w, in->arg[1], lane, 3) != 1)
            sim_find(w->cta->group, w, in, lane, SEV_ERROR, FIND_CLUSTER_CANCEL, CAUSE_NONE, "",
                     "the first CTA of a request that took no cluster is undefined");
        for (uint32_t i = 0; i < (uint32_t)in->imm[3]; i++) {
            uint32_t n = (uint32_t)in->imm[2] + i;
            struct arg to = in->list_count ? in->list[i] : in->arg[0];
            arg_set_lane(w, to, lane, n < 3 ? response_word(w, in->arg[1], lane, n) : 0);
        }
    }
    return STEP_NEXT;
}

int bind_clc_query(struct decoder *dc, struct insn *out)
{
    out->fn = mod_has(dc, "is_canceled") ? exec_is_canceled : exec_first_ctaid;
    out->imm[2] = mod_has(dc, "get_first_ctaid::y") ? 1 : mod_has(dc, "get_first_ctaid::z") ? 2 : 0;
    out->imm[3] = out->list_count ? out->list_count : 1;
    if (mod_has(dc, "v4") && out->list_count != 4)
        return bind_invalid(dc, "get_first_ctaid.v4 has four destinations");
    return 0;
}
