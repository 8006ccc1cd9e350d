/*
 * What the tcgen05 instructions share: CTA pairs, who owns which tensor-memory columns, and the
 * records of operations in flight. Tensor memory: PTX ISA "Tensor Memory"; ids there are addresses of
 * 16 bits lane, 16 bits column.
 */
#ifndef SIM_TCGEN05_H
#define SIM_TCGEN05_H

#include "async/async.h"
#include "machine/event.h"
#include "decode/names.h"

enum { TMEM_CHUNK = 32, TMEM_CHUNKS = TMEM_COLUMNS / TMEM_CHUNK };

static inline uint32_t tmem_lane(uint32_t address) { return address >> 16; }
static inline uint32_t tmem_column(uint32_t address) { return address & 0xFFFFU; }

/* 1 or 2, from the `cta_group::1|cta_group::2` group of modifiers at `index`. */
uint32_t tcgen05_bind_group(const struct decoder *dc, uint32_t index);

/* The module's target is exactly this one. */
bool tcgen05_target_is(const struct decoder *dc, const char *target);
/* 0 where the module has an `a` target; else -2 from bind_invalid, which says that `what` needs one. */
int tcgen05_needs_a(struct decoder *dc, const char *what);

/*
 * To be called first by every tcgen05 instruction with a cta_group: one cta_group for a whole CTA
 * (PTX ISA "Issue Granularity"), and for 2 a cluster in which the CTA has a peer. Faults with 715.
 */
enum step tcgen05_enter(struct warp *w, const struct insn *in, uint32_t lane, uint32_t cta_group);

/* CTA i of the `cta_group` CTAs for which `cta` issues: by even and odd rank. */
struct cta *tcgen05_cta(const struct cta *cta, uint32_t cta_group, uint32_t i);

/*
 * Every column of [first, first + count) belongs to an allocation of `cta`; else a tmem-bounds finding
 * that names `what`, and the launch fails (719).
 */
enum step tmem_check(struct warp *w, const struct insn *in, uint32_t lane, const struct cta *cta,
                     uint32_t first, uint32_t count, const char *what);

/* Blocks of 16 lanes, as the events have them: those that `count` lanes from `lane` on touch. */
enum { TMEM_BLOCK = 16, TMEM_ALL_BLOCKS = (1 << TMEM_LANES / TMEM_BLOCK) - 1 };
static inline uint32_t tmem_blocks(uint32_t lane, uint32_t count)
{
    const uint32_t first = lane / TMEM_BLOCK, last = (lane + count - 1U) / TMEM_BLOCK;
    return (2U << last) - (1U << first);
}

/* Announces an access of a submitted operation: `columns` from tmem_column(address) on, in those blocks
 * of lanes. `whole`: it means every cell of them (not only some). */
void tmem_publish(const struct async_op *op, struct cta *cta, enum access_kind access,
                  uint32_t address, uint32_t columns, uint32_t blocks, bool whole);

/* An operation in flight that touches the memory of every CTA of its cta_group: the issuer's own
 * in_flight is kept by async.c, these keep the others'. */
void tcgen05_hold(struct cta *issuer, struct cta *other);
void tcgen05_release(struct cta *issuer, struct cta *other);

/* True when `in` reads or writes a register that a tcgen05.ld of the warp has yet to deliver. The ISA
 * honours such a dependence without tcgen05.wait::ld ("Memory Consistency Model"), as hardware's register
 * interlocks do; what the wait adds is that tensor memory may be written again. */
bool tcgen05_awaits_load(const struct warp *w, const struct insn *in);

/* Takes back the tensor memory that a CTA held when its threads had exited, a finding: the next CTA would
 * find it taken. */
void tcgen05_retire(struct cta *c);

/* The launch ends for want of host memory. */
enum step tcgen05_no_memory(struct warp *w, const struct insn *in);

#endif
