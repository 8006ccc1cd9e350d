/* Where the lanes of a warp access memory: how their addresses lie, and the host memory of all of them. */
#include "machine/lanes.h"
#include "machine/mem.h"

/* ---- how addresses lie ---- */

LANE_INLINE bool in_steps(const uint64_t address[WARP_LANES], uint32_t step)
{
    const uint64_t first = address[0];
    uint64_t off = 0;
    LANES(l) off |= (address[l] - first) ^ (uint64_t)(l * step);
    return off == 0;
}

/* Distances from the first lane are compared as signed numbers, which processors do faster. Addresses further
 * apart than half the address space may come out with high < low. */
LANE_INLINE struct lane_span measure_any(const uint64_t address[WARP_LANES], uint32_t mask,
                                         uint32_t size)
{
    const uint64_t first = address[first_lane(mask)];
    int64_t low = 0, high = 0, bits = 0;
    LANES(l)
    {
        const int64_t off = mask >> l & 1U ? (int64_t)(address[l] - first) : 0;
        low = off < low ? off : low;
        high = off > high ? off : high;
        bits |= off;
    }
    return (struct lane_span){.low = first + (uint64_t)low,
                              .high = first + (uint64_t)high,
                              .aligned = ((first | (uint64_t)bits) & (size - 1)) == 0};
}

LANE_INLINE struct lane_span measure_lanes(const uint64_t address[WARP_LANES], uint32_t mask,
                                           uint32_t size)
{
    const uint64_t step = address[1] - address[0], last = address[WARP_LANES - 1];
    if (mask == FULL_MASK && (step == 0 || step == size) &&
        last - address[0] == (WARP_LANES - 1) * step && in_steps(address, (uint32_t)step))
        return (struct lane_span){.low = address[0],
                                  .high = last,
                                  .shape = step ? SPAN_ROW : SPAN_ONE,
                                  .aligned = (address[0] & (size - 1)) == 0};
    return mask == FULL_MASK ? measure_any(address, FULL_MASK, size)
                             : measure_any(address, mask, size);
}

static TARGET_WIDE struct lane_span measure_wide(const uint64_t address[WARP_LANES], uint32_t mask,
                                                 uint32_t size)
{
    return measure_lanes(address, mask, size);
}

struct lane_span mem_measure(const uint64_t address[WARP_LANES], uint32_t mask, uint32_t size)
{
    return lanes_wide() ? measure_wide(address, mask, size) : measure_lanes(address, mask, size);
}

/* ---- host memory of all lanes ---- */

/* Local variables of all lanes: each has its own behind one address. */
static bool local_lanes(const struct warp *w, const uint64_t address[WARP_LANES],
                        const struct lane_span *span, uint32_t size, uint8_t *host[WARP_LANES])
{
    const uint64_t room = w->cta->group->launch->kernel->entry->local_bytes;
    const uint64_t window = span->low & WINDOW_MASK;
    const uint64_t high = span->high - window;
    const uintptr_t local = (uintptr_t)w->local - window; /* idle lanes: any address */
    if (!span->aligned || !w->local || (window && window != LOCAL_WINDOW) ||
        span->high < span->low || high >= room || room - high < size)
        return false;
    for (uint32_t l = 0; l < WARP_LANES; l++) host[l] = (uint8_t *)(local + l * room + address[l]);
    return true;
}

bool mem_lanes(struct warp *w, const struct insn *in, uint32_t mask, enum ptx_space space,
               const uint64_t address[WARP_LANES], const struct lane_span *span, uint32_t size,
               enum access_kind access, bool cluster, uint8_t *host[WARP_LANES])
{
    const uintptr_t run = (uintptr_t)mem_span(w, space, span, size);
    if (run) {
        for (uint32_t l = 0; l < WARP_LANES; l++)
            host[l] = (uint8_t *)(run + (address[l] - span->low));
        return true;
    }
    if ((space == SPACE_LOCAL ||
         (space == SPACE_NONE && (span->low & WINDOW_MASK) == LOCAL_WINDOW)) &&
        local_lanes(w, address, span, size, host))
        return true;
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask);
        host[l] = mem_at(w, in, l, space, address[l], size, size, access, cluster);
        if (!host[l]) return false;
    }
    return true;
}
