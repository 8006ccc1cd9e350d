/*
 * Device memory: allocations at host addresses (device pointers are host pointers inside a reserved
 * range), address windows, bounds and alignment. Shared by the driver API and the machine.
 */
#ifndef SIM_MEM_H
#define SIM_MEM_H

#include "machine/event.h"

/* ---- allocations (thread-safe) ---- */

/* 256-byte aligned, never adjacent to another allocation; fresh memory is filled with 0xC5 bytes.
 * 0 on success, else a CUresult (2 out of memory, 1 for size 0). */
int mem_alloc(uint64_t size, uint64_t *address);
/* CUresult: 1 when `address` is no allocation's start. Freed ranges are remembered for a while. */
int mem_free(uint64_t address);
/* The same for malloc and free in device code: what one side allocated the other cannot free. */
int mem_heap_alloc(uint64_t size, uint64_t *address);
int mem_heap_free(uint64_t address);
/* Host memory that device code may touch (pinned allocations, registered ranges). */
int mem_register(void *host, uint64_t size);
int mem_unregister(void *host);
/* The allocation that holds [address, address+size), or false. */
bool mem_range(uint64_t address, uint64_t size, uint64_t *base, uint64_t *bytes);
uint64_t mem_in_use(void);
/* A piece of memory of the host. */
struct mem_piece {
    void *at;
    size_t bytes;
};
/* Every allocation and registered range, up to `room` of them; returns how many there are. */
size_t mem_live(struct mem_piece *out, size_t room);
/* Some memory may be seen at two addresses: pages that were put there by mem_map. */
bool mem_aliased(void);
/* Addresses without memory behind them, kept from other allocations: 0, 1 (bad size or alignment,
 * which is a power of two of at least a page), 2. */
int mem_reserve(uint64_t bytes, uint64_t align, uint64_t *address);
int mem_unreserve(uint64_t address);
/* Pages for reserved addresses: fresh ones (`file` is -1), or those of a file from `offset` on. Device
 * code sees them from mem_show to mem_hide, which name one range of bytes inside the pages. `multicast`:
 * the addresses stand for the memory of every device of a team, of which there is one. */
int mem_map(uint64_t address, uint64_t bytes, int file, uint64_t offset);
void mem_unmap(uint64_t address, uint64_t bytes);
int mem_show(uint64_t address, uint64_t bytes, bool multicast);
int mem_hide(uint64_t address);
/* Counts memory that mem_alloc did not lend: 2 where it is over the limit. */
int mem_charge(uint64_t bytes);
void mem_discharge(uint64_t bytes);
/* Gives back everything, the reserved range included; no launch may be running. */
void mem_reset(void);
void mem_set_limit(uint64_t bytes);

/* ---- accesses by device code ---- */

/*
 * Host pointer for `size` bytes at `address` of `space` (SPACE_NONE: generic) as `lane` of `w` sees
 * it, after bounds and alignment (natural, `align` bytes); NULL after sim_fault. For SPACE_SHARED the
 * address may carry a cluster rank; `cluster` permits another CTA's.
 */
void *mem_at(struct warp *w, const struct insn *in, uint32_t lane, enum ptx_space space,
             uint64_t address, uint32_t size, uint32_t align, enum access_kind access,
             bool cluster);

/* One byte to read at a generic address, or NULL: no fault, for reports. */
const void *mem_peek(struct warp *w, uint32_t lane, uint64_t address);

/* How the addresses of the lanes of `mask` (not 0) lie, of `size` bytes each, a power of two. */
struct lane_span mem_measure(const uint64_t address[WARP_LANES], uint32_t mask, uint32_t size);

/* Host pointer of the bytes at span->low, where all of the span is aligned and lies in one allocation or in
 * the CTA's own shared memory: then lanes are as far apart in host memory as their addresses are. NULL:
 * ask mem_lanes. */
uint8_t *mem_span(struct warp *w, enum ptx_space space, const struct lane_span *span,
                  uint32_t size);

/* As mem_at for all lanes of `mask` at once, aligned to `size`: host[lane] for each, the others'
 * unspecified. `span` is what mem_measure says of them. False after sim_fault. */
bool mem_lanes(struct warp *w, const struct insn *in, uint32_t mask, enum ptx_space space,
               const uint64_t address[WARP_LANES], const struct lane_span *span, uint32_t size,
               enum access_kind access, bool cluster, uint8_t *host[WARP_LANES]);

/* True when the bytes at each of the addresses lie in multicast memory; else sim_fault was called. */
bool mem_multicast(struct warp *w, const struct insn *in, uint32_t mask,
                   const uint64_t address[WARP_LANES], uint32_t size);

/* As mem_at for global ranges that an asynchronous operation touches, on behalf of `lane` of `w`, which
 * issued it by `in`; `what` completes the message ("row 3 of the box"). */
void *mem_global(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address,
                 uint64_t size, enum access_kind access, const char *what);

/* The CTA and window offset behind a shared address. False when it lies outside every window. */
bool mem_shared(const struct warp *w, uint32_t address, struct cta **cta, uint32_t *offset);

#endif
