/*
 * Memory of allocation nodes. The address is settled when the node is made and stays the same in every
 * copy and launch; pages are there from the allocation node's turn until something frees them.
 */
#include "cuda/graph.h"

#include <stdlib.h>

enum {
    PAGE_BYTES = 4096,
    GRANULE = 2 << 20 /* what a device takes memory in, for its statistics */
};

/* No allocation of a program begins at an odd address. */
static const void *key_of(uint64_t address)
{
    return (const void *)(uintptr_t)(address + 1);
}

struct graph_memory *graph_memory_named(uint64_t address)
{
    return address ? handle_get(key_of(address), HANDLE_GRAPH_MEMORY) : NULL;
}

bool graph_memory_around(uint64_t address, uint64_t bytes)
{
    size_t at = 0;
    const struct graph_memory *m;

    while ((m = handle_next(HANDLE_GRAPH_MEMORY, NULL, &at)))
        if (address >= m->address && bytes <= m->bytes && address - m->address <= m->bytes - bytes)
            return true;
    return false;
}

int graph_memory_new(uint64_t bytes, struct CUgraph_st *graph, struct graph_memory **out)
{
    struct graph_memory *m = calloc(1, sizeof *m);
    int rc = m ? mem_reserve(bytes, PAGE_BYTES, &m->address) : HEWN_CU_OUT_OF_MEMORY;

    if (!rc) {
        rc = handle_add(key_of(m->address), HANDLE_GRAPH_MEMORY, m, NULL);
        if (rc) mem_unreserve(m->address);
    }
    if (rc) {
        free(m);
        return rc;
    }
    m->bytes = bytes;
    m->uses = 1;
    m->owner = graph->id;
    *out = m;
    return 0;
}

void graph_memory_use(struct graph_memory *memory)
{
    memory->uses++;
}

void graph_memory_drop(struct graph_memory *memory)
{
    if (--memory->uses) return;
    handle_drop(key_of(memory->address));
    mem_unreserve(memory->address);
    free(memory);
}

/* ---- pages ---- */

static uint64_t granules(uint64_t bytes)
{
    return (bytes + GRANULE - 1) / GRANULE * GRANULE;
}

static void count_allocation(uint64_t bytes)
{
    struct graph_memory_use *use = &driver.graph_memory;

    use->used += granules(bytes);
    if (use->used > use->used_high) use->used_high = use->used;
    if (use->used > use->reserved) use->reserved = use->used;
    if (use->reserved > use->reserved_high) use->reserved_high = use->reserved;
}

int graph_memory_allocate(struct graph_memory *memory, struct CUctx_st *context)
{
    int rc = mem_charge(memory->bytes);

    if (rc) return rc;
    rc = mem_map(memory->address, memory->bytes, -1, 0);
    if (!rc) rc = mem_show(memory->address, memory->bytes, false);
    if (!rc) {
        rc = memory_track(context, memory->address, memory->bytes, MEMORY_GRAPH, 0);
        if (rc) mem_hide(memory->address);
    }
    if (rc) {
        mem_unmap(memory->address, memory->bytes);
        mem_discharge(memory->bytes);
        return rc;
    }
    graph_memory_use(memory);
    count_allocation(memory->bytes);
    return 0;
}

void graph_memory_release(uint64_t address)
{
    struct graph_memory *memory = graph_memory_named(address);

    mem_hide(address);
    mem_unmap(address, memory->bytes);
    mem_discharge(memory->bytes);
    driver.graph_memory.used -= granules(memory->bytes);
    graph_memory_drop(memory);
}

/* ---- the API ---- */

enum { USED, USED_HIGH, RESERVED, RESERVED_HIGH, ATTRIBUTES };

int cuDeviceGetGraphMemAttribute(hewn_cu_device device, int attribute, void *value)
{
    struct call call CALL_SCOPE;
    const struct graph_memory_use *use = &driver.graph_memory;
    uint64_t values[ATTRIBUTES];

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (device) return HEWN_CU_INVALID_DEVICE;
    if (!value || attribute < 0 || attribute >= ATTRIBUTES) return HEWN_CU_INVALID_VALUE;
    values[USED] = use->used;
    values[USED_HIGH] = use->used_high;
    values[RESERVED] = use->reserved;
    values[RESERVED_HIGH] = use->reserved_high;
    memcpy(value, &values[attribute], sizeof values[0]);
    return 0;
}

/* The high marks can be set back to what is now, by zero alone. */
int cuDeviceSetGraphMemAttribute(hewn_cu_device device, int attribute, void *value)
{
    struct call call CALL_SCOPE;
    struct graph_memory_use *use = &driver.graph_memory;
    uint64_t given;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (device) return HEWN_CU_INVALID_DEVICE;
    if (!value || (attribute != USED_HIGH && attribute != RESERVED_HIGH))
        return HEWN_CU_INVALID_VALUE;
    memcpy(&given, value, sizeof given);
    if (given) return HEWN_CU_INVALID_VALUE;
    if (attribute == USED_HIGH)
        use->used_high = use->used;
    else
        use->reserved_high = use->reserved;
    return 0;
}

int cuDeviceGraphMemTrim(hewn_cu_device device)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (device) return HEWN_CU_INVALID_DEVICE;
    driver.graph_memory.reserved = driver.graph_memory.used;
    return 0;
}
