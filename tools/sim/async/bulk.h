/*
 * What mbarrier instructions, cp.async, bulk and tensor copies share: operand addresses, places in
 * shared memory, the barrier a copy signals, and the accesses it announces.
 */
#ifndef SIM_BULK_H
#define SIM_BULK_H

#include "machine/event.h"
#include "async/mbar.h"

/* Cycles under load: a copy from global memory; each half of a copy to global memory; a copy between
 * shared memories of a cluster. */
static const struct async_latency LATENCY_LOAD = {800, 400};
static const struct async_latency LATENCY_STORE = {400, 200};
static const struct async_latency LATENCY_CLUSTER = {200, 60};

/* Bytes of a CTA's shared memory. */
struct bulk_place {
    struct cta *cta;
    uint32_t offset;
};

/* The barrier that counts a copy's bytes, and the phase it was in when the copy was issued. */
struct bulk_bar {
    struct cta *cta;
    uint32_t offset;
    uint64_t phase;
};

/* Value of address operand `n` of the instruction, whose base is arg[index]. */
uint64_t bulk_address(const struct warp *w, const struct insn *in, uint32_t lane, uint32_t index,
                      uint32_t n);
/* The same for a shared operand: rank<<24 | offset. Where `in` names no space the address is
 * generic, and faults outside the shared window. */
enum step bulk_shared_address(struct warp *w, const struct insn *in, uint32_t lane, uint32_t index,
                              uint32_t n, uint32_t *address);
/* Finds `size` bytes of shared memory; faults outside it (700) or off `align` (716). */
enum step bulk_place_at(struct warp *w, const struct insn *in, uint32_t lane, uint32_t address,
                        uint64_t size, uint32_t align, struct bulk_place *out);
/* Finds a live barrier. */
enum step bulk_bar_at(struct warp *w, const struct insn *in, uint32_t lane, uint32_t address,
                      struct bulk_bar *out);

static inline uint8_t *bulk_host(struct bulk_place p)
{
    return p.cta->shared + p.offset;
}

/* An operation keeps the CTAs it touches from being torn down, from submission to its last stage. */
static inline void bulk_hold(struct bulk_place place, const struct bulk_bar *bar)
{
    place.cta->in_flight++;
    if (bar) bar->cta->in_flight++;
}

static inline void bulk_release(struct bulk_place place, const struct bulk_bar *bar)
{
    place.cta->in_flight--;
    if (bar) bar->cta->in_flight--;
}

/* Announces the barrier of a submitted copy, ahead of what it touches. */
void bulk_announce_bar(const struct async_op *op, const struct bulk_bar *bar);
/* The copy's bytes complete on its barrier. */
void bulk_signal(const struct async_op *op, const struct bulk_bar *bar, uint32_t bytes);

/* Announces a range that a submitted operation will touch; proxy is the operation's. */
void bulk_access_shared(const struct async_op *op, enum access_kind access, enum proxy proxy,
                        struct bulk_place place, uint64_t size);
void bulk_access_global(const struct async_op *op, enum access_kind access, enum proxy proxy,
                        uint64_t address, uint64_t size);

/* Host memory ran out while issuing. */
enum step bulk_no_memory(struct warp *w, const struct insn *in, uint32_t lane);
/* A size that is not a multiple of 16 (fault 716). */
enum step bulk_check_size(struct warp *w, const struct insn *in, uint32_t lane, uint32_t size);

#endif
