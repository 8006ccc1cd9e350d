/*
 * What the memory instructions share: lane addresses, their event, and telling the scheduler that
 * memory has changed.
 */
#ifndef SIM_ACCESS_H
#define SIM_ACCESS_H

#include "machine/event.h"

/* insn.flags of ld, st, ldu, atom, red. */
enum {
    ACC_CLUSTER = 1, /* .shared::cluster: another CTA's shared memory is allowed */
    ACC_SIGNED = 2   /* narrow loads extend the sign */
};

/* base + offset for all 32 lanes (32-bit address registers are zero-extended). */
void access_addresses(const struct warp *w, struct arg base, int64_t offset,
                      uint64_t address[WARP_LANES]);

/* Publishes EV_ACCESS, one for each space that generic addresses turn out to be in. Call it when
 * the group has an observer. `span`: what mem_measure says of the addresses; `unchanged`: a write that left memory as
 * it was. */
void access_publish(struct warp *w, const struct insn *in, uint32_t mask, enum ptx_space space,
                    const uint64_t address[WARP_LANES], const struct lane_span *span, uint32_t size,
                    enum access_kind access, bool strong, bool unchanged);

/* The same of a weak access whose addresses were not measured before. */
void access_tell(struct warp *w, const struct insn *in, uint32_t mask, enum ptx_space space,
                 const uint64_t address[WARP_LANES], uint32_t size, enum access_kind access);

/* Some byte of memory has another value than before. */
static inline void access_changed(struct group *g)
{
    g->progress++;
    if (g->spinning) sim_wake_all(g, WAIT_SPIN);
}

/* Whether a multimem instruction's addresses are those of multicast memory; false after sim_fault. */
bool access_multicast(struct warp *w, const struct insn *in, uint32_t mask, struct arg base,
                      uint32_t size);

/* The rules of multimem instructions that move `bytes` a lane; what a bind function returns. */
int bind_multimem_size(struct decoder *dc, const struct insn *out, uint32_t bytes);

/* Sets space and the flags above from the modifiers; true when CTAs of different clusters may talk
 * through the access (then kernel->global_sync is set). */
bool access_bind(struct decoder *dc, struct insn *out);

#endif
