/*
 * membar and fence. Accesses take effect in program order here and every thread of a group sees
 * them at once, so a fence changes no value; the checker hears of it. (What passes between host
 * threads does so by strong accesses and atomics, which order themselves.)
 */
#include "event.h"

/* imm[2]: enum fence_kind. */
static enum step fence(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct event e = {.kind = EV_FENCE,
                      .lanes = mask,
                      .warp = w,
                      .in = in,
                      .cta = w->cta,
                      .value = (uint64_t)in->imm[2]};
    observe(w->cta->group, &e);
    return STEP_NEXT;
}

static int bind_kind(struct insn *out, enum fence_kind kind)
{
    out->imm[2] = kind;
    out->fn = fence;
    return 0;
}

int bind_fence(struct decoder *dc, struct insn *out)
{
    (void)dc;
    return bind_kind(out, FENCE_MEMBAR);
}

int bind_fence_async(struct decoder *dc, struct insn *out)
{
    (void)dc;
    return bind_kind(out, FENCE_PROXY_ASYNC);
}

int bind_fence_tensormap(struct decoder *dc, struct insn *out)
{
    (void)dc;
    return bind_kind(out, FENCE_PROXY_TENSORMAP);
}

int bind_fence_mbarrier_init(struct decoder *dc, struct insn *out)
{
    (void)dc;
    return bind_kind(out, FENCE_MBARRIER_INIT);
}
