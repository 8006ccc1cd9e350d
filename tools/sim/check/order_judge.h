/*
 * What order_access.c asks of each pair of accesses: an earlier one, which the shadow remembers, and the
 * one at hand. The functions are those of struct touch (shadow.h).
 */
#ifndef SIM_ORDER_JUDGE_H
#define SIM_ORDER_JUDGE_H

#include "check/order_tell.h"

/* The access at hand; touch.context. */
struct accessor {
    struct order *o;
    struct order_warp *w;
    const struct event *e;
    const struct order_cta *cta; /* of shared and tensor memory */
    enum conflict_place place;
    uint32_t component;
    enum order_class class;
    bool strong;           /* atomic or strong: those do not race with one another … */
    enum insn_scope least; /* … if of this scope at least */
    bool gives_back;       /* tcgen05.dealloc, free */
    uint64_t at, bytes;
};

static inline const struct insn *insn_at(const struct order *o, uint32_t index)
{
    return index < o->kernel->insn_count ? &o->kernel->insns[index] : NULL;
}

/* It reads through a cache of its own, so order alone does not show that it finds what was written. */
static inline bool reads_apart(const struct insn *in)
{
    return in->is.constant || in->is.surface;
}

enum standing order_judge(struct touch *t, epoch prior, bool wrote);
enum standing order_judge_abroad(struct touch *t, epoch prior, bool wrote);
enum standing order_judge_tensor(struct touch *t, epoch prior, bool wrote);
bool order_knows_abroad(const struct touch *t, epoch prior, bool needed);
bool order_is_strong(const struct touch *t, epoch prior);
bool order_shows(const struct touch *t, epoch prior);
void order_reads_strong(const struct touch *t, epoch prior, epoch newest);

#endif
