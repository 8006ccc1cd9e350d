/* Shared by the tcgen05 instructions (tcgen05.h). */
#include "ops/tcgen05.h"

uint32_t tcgen05_bind_group(const struct decoder *dc, uint32_t index)
{
    return mod_is(dc, index, "cta_group::2") ? 2 : 1;
}

bool tcgen05_target_is(const struct decoder *dc, const char *target)
{
    return !strcmp(dc->module->target, target);
}

int tcgen05_needs_a(struct decoder *dc, const char *what)
{
    const char *target = dc->module->target;
    if (target[strlen(target) - 1U] == 'a') return 0;
    return bind_invalid(dc, "%s needs an architecture-specific target (sm_100a), not %s", what,
                        target);
}

enum step tcgen05_enter(struct warp *w, const struct insn *in, uint32_t lane, uint32_t cta_group)
{
    struct cta *cta = w->cta;
    if (cta->cta_group == cta_group) return STEP_NEXT;
    if (cta->cta_group)
        return sim_fault(w, in, lane, 715, FIND_MMA_DESC, CAUSE_NONE, "",
                         "cta_group::%u after an instruction with cta_group::%u: all tcgen05 "
                         "instructions of a kernel use the same one",
                         cta_group, cta->cta_group);
    if (cta_group == 2 && (cta->rank ^ 1U) >= cta->cluster->cta_count)
        return sim_fault(
            w, in, lane, 715, FIND_MMA_DESC, CAUSE_NONE, "",
            "cta_group::2 in CTA %u of a cluster of %u: there is no CTA %u to pair with", cta->rank,
            cta->cluster->cta_count, cta->rank ^ 1U);
    cta->cta_group = cta_group;
    return STEP_NEXT;
}

struct cta *tcgen05_cta(const struct cta *cta, uint32_t cta_group, uint32_t i)
{
    return cta->cluster->ctas[cta_group == 2 ? (cta->rank & ~1U) + i : cta->rank];
}

enum step tmem_check(struct warp *w, const struct insn *in, uint32_t lane, const struct cta *cta,
                     uint32_t first, uint32_t count, const char *what)
{
    char object[96];
    const char *peer = cta == w->cta ? "" : " in the peer CTA";
    const struct kernel *kernel = cta->group->launch->kernel;
    (void)name_columns(kernel, first, count, object, sizeof object);
    if (first + count > TMEM_COLUMNS)
        return sim_fault(w, in, lane, 719, FIND_TMEM_BOUNDS, CAUSE_NONE, object,
                         "%s takes columns %u to %u%s; tensor memory has %u", what, first,
                         first + count - 1U, peer, (unsigned)TMEM_COLUMNS);
    for (uint32_t chunk = first / TMEM_CHUNK; chunk <= (first + count - 1U) / TMEM_CHUNK; chunk++) {
        if (cta->sm->tmem_owner[chunk] == cta) continue;
        if (cta->tmem_freed >> chunk & 1)
            return sim_fault(w, in, lane, 719, FIND_TMEM_DEALLOC, CAUSE_NONE, object,
                             "%s takes columns %u to %u%s, which the CTA has given back (line %u): "
                             "nothing made tcgen05.dealloc wait for this",
                             what, first, first + count - 1U, peer,
                             cta->tmem_free_in->src->pos.line);
        return sim_fault(w, in, lane, 719, FIND_TMEM_BOUNDS, CAUSE_NONE, object,
                         "%s takes columns %u to %u%s, of which %u to %u are not allocated by that "
                         "CTA",
                         what, first, first + count - 1U, peer, chunk * TMEM_CHUNK,
                         chunk * TMEM_CHUNK + TMEM_CHUNK - 1U);
    }
    return STEP_NEXT;
}

void tmem_publish(const struct async_op *op, struct cta *cta, enum access_kind access,
                  uint32_t address, uint32_t columns, uint32_t blocks, bool whole)
{
    if (!observes_accesses(cta->group)) return;
    observe(cta->group, &(struct event){.kind = EV_ACCESS,
                                        .access = (uint8_t)access,
                                        .proxy = PROXY_ASYNC,
                                        .tensor = true,
                                        .lanes = 1U << op->lane,
                                        .warp = op->warp,
                                        .in = op->in,
                                        .cta = cta,
                                        .token = op->token,
                                        .key = blocks,
                                        .value = whole,
                                        .address = address,
                                        .size = columns});
}

void tcgen05_hold(struct cta *issuer, struct cta *other)
{
    if (other != issuer) other->in_flight++;
}

void tcgen05_release(struct cta *issuer, struct cta *other)
{
    if (other != issuer) other->in_flight--;
}

enum step tcgen05_no_memory(struct warp *w, const struct insn *in)
{
    return sim_fault(w, in, NO_LANE, 2, FIND_UNSUPPORTED, CAUSE_NONE, "",
                     "out of host memory for an operation in flight");
}
