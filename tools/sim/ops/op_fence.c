/*
 * membar and fence. Accesses take effect in program order here and every thread of a group sees
 * them at once, so a fence changes no value; the checker hears of it. (What passes between host
 * threads does so by strong accesses and atomics, which order themselves.)
 */
#include "ops/access.h"

/* imm[2]: enum fence_kind; flags: direction of a proxy fence, as event.access; space: the only memory that
 * it is for, SPACE_NONE all; imm[3]: bytes of the range at [arg[0]], 0 for all memory. */
static enum step fence(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint64_t address[WARP_LANES];
    struct event e = {.kind = EV_FENCE,
                      .access = (uint8_t)in->flags,
                      .space = in->space,
                      .lanes = mask,
                      .warp = w,
                      .in = in,
                      .cta = w->cta,
                      .value = (uint64_t)in->imm[2]};
    if (!w->cta->group->observer) return STEP_NEXT;
    if (in->imm[3]) {
        access_addresses(w, in->arg[0], in->imm[0], address);
        e.addresses = address;
        e.size = (uint64_t)in->imm[3];
    }
    observe(w->cta->group, &e);
    return STEP_NEXT;
}

static int bind_kind(struct decoder *dc, struct insn *out, enum fence_kind kind)
{
    out->imm[2] = kind;
    if (mod_has(dc, "release")) out->flags = ACCESS_WRITE;
    if (mod_has(dc, "acquire")) out->flags = ACCESS_READ;
    out->fn = fence;
    return 0;
}

int bind_fence(struct decoder *dc, struct insn *out)
{
    return bind_kind(dc, out, FENCE_MEMBAR);
}

int bind_fence_alias(struct decoder *dc, struct insn *out)
{
    return bind_kind(dc, out, FENCE_PROXY_ALIAS);
}

int bind_fence_async(struct decoder *dc, struct insn *out)
{
    out->space = mod_has(dc, "global")                                          ? SPACE_GLOBAL
                 : mod_has(dc, "shared::cta") || mod_has(dc, "shared::cluster") ? SPACE_SHARED
                                                                                : SPACE_NONE;
    return bind_kind(dc, out, FENCE_PROXY_ASYNC);
}

int bind_fence_tensormap(struct decoder *dc, struct insn *out)
{
    if (mod_has(dc, "acquire") && (!operand_constant(dc, 1, &out->imm[3]) || out->imm[3] != 128))
        return bind_invalid(dc, "the size of a tensor map is 128");
    return bind_kind(dc, out, FENCE_PROXY_TENSORMAP);
}

int bind_fence_mbarrier_init(struct decoder *dc, struct insn *out)
{
    return bind_kind(dc, out, FENCE_MBARRIER_INIT);
}
