/*
 * Multicast objects: addresses that stand for the same place in the memory of every device of a team,
 * for multimem instructions. There is one device, so a team is that device and a mapping of the object
 * is another mapping of the memory bound to it. The order is create, add the device, bind, map: what is
 * not bound cannot be mapped, and what is mapped cannot be unbound.
 */
#include "cuda/virtual.h"

#include <stdlib.h>

struct binding {
    uint64_t at, bytes, offset; /* in the object; in the memory */
    struct physical *memory;
    struct binding *next; /* ascending */
};

struct multicast {
    uint64_t bytes;
    uint32_t mappings;
    bool device, released;
    struct binding *bindings;
};

struct multicast *multicast_named(hewn_cu_memory handle)
{
    return handle_get((const void *)(uintptr_t)handle, HANDLE_MULTICAST);
}

uint64_t multicast_bytes(const struct multicast *m)
{
    return m->bytes;
}

struct physical *multicast_part(const struct multicast *m, uint64_t at, uint64_t *offset,
                                uint64_t *bytes)
{
    for (const struct binding *b = m->bindings; b; b = b->next) {
        if (at < b->at || at - b->at >= b->bytes) continue;
        *offset = b->offset + (at - b->at);
        *bytes = b->bytes - (at - b->at);
        return b->memory;
    }
    return NULL;
}

static void unbind(struct binding **link)
{
    struct binding *b = *link;

    *link = b->next;
    physical_drop(b->memory);
    free(b);
}

static void discard(struct multicast *m)
{
    while (m->bindings) unbind(&m->bindings);
    free(m);
}

void multicast_mapped(struct multicast *m, int change)
{
    m->mappings += (uint32_t)change;
    if (!m->mappings && m->released) discard(m);
}

void multicast_release(struct multicast *m)
{
    handle_drop(m);
    m->released = true;
    if (!m->mappings) discard(m);
}

void multicast_free_all(void)
{
    size_t at = 0;
    struct multicast *m;

    while ((m = handle_next(HANDLE_MULTICAST, NULL, &at))) multicast_release(m);
}

/* ---- the API ---- */

static int props_check(const hewn_cu_multicast_props *p)
{
    if (!p || p->flags || p->devices != 1 || !p->bytes || p->bytes % GRANULE)
        return HEWN_CU_INVALID_VALUE;
    return p->handle_types ? HEWN_CU_NOT_SUPPORTED : 0;
}

int cuMulticastGetGranularity(size_t *granularity, const hewn_cu_multicast_props *props, int option)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!granularity || !props || option < 0 || option > 1) return HEWN_CU_INVALID_VALUE;
    *granularity = GRANULE;
    return 0;
}

int cuMulticastCreate(hewn_cu_memory *handle, const hewn_cu_multicast_props *props)
{
    struct call call CALL_SCOPE;
    struct multicast *m;
    int rc;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    rc = handle ? props_check(props) : HEWN_CU_INVALID_VALUE;
    if (rc) return rc;
    m = calloc(1, sizeof *m);
    if (!m || handle_add(m, HANDLE_MULTICAST, m, NULL)) {
        free(m);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    m->bytes = props->bytes;
    *handle = (uintptr_t)m;
    return 0;
}

int cuMulticastAddDevice(hewn_cu_memory handle, hewn_cu_device device)
{
    struct call call CALL_SCOPE;
    struct multicast *m;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    m = multicast_named(handle);
    if (!m || m->device) return HEWN_CU_INVALID_VALUE;
    if (device) return HEWN_CU_INVALID_DEVICE;
    m->device = true;
    return 0;
}

static int bind(struct multicast *m, uint64_t at, struct physical *memory, uint64_t offset,
                uint64_t bytes)
{
    struct binding **link = &m->bindings, *b;

    if (!m->device) return HEWN_CU_ILLEGAL_STATE;
    if (!bytes || at % GRANULE || offset % GRANULE || bytes % GRANULE || at > m->bytes ||
        bytes > m->bytes - at)
        return HEWN_CU_INVALID_VALUE;
    while (*link && (*link)->at + (*link)->bytes <= at) link = &(*link)->next;
    if (*link && (*link)->at < at + bytes) return HEWN_CU_INVALID_VALUE; /* bound already */
    b = malloc(sizeof *b);
    if (!b) return HEWN_CU_OUT_OF_MEMORY;
    *b = (struct binding){at, bytes, offset, memory, *link};
    *link = b;
    physical_keep(memory);
    return 0;
}

int cuMulticastBindMem(hewn_cu_memory handle, size_t at, hewn_cu_memory memory, size_t offset,
                       size_t bytes, unsigned long long flags)
{
    struct call call CALL_SCOPE;
    struct multicast *m;
    struct physical *p;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    m = multicast_named(handle);
    p = physical_named(memory);
    if (!m || !p || flags || offset > physical_bytes(p) || bytes > physical_bytes(p) - offset)
        return HEWN_CU_INVALID_VALUE;
    return bind(m, at, p, offset, bytes);
}

int cuMulticastBindAddr(hewn_cu_memory handle, size_t at, hewn_cu_deviceptr address, size_t bytes,
                        unsigned long long flags)
{
    struct call call CALL_SCOPE;
    uint64_t offset = 0;
    struct multicast *m;
    struct physical *p;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    m = multicast_named(handle);
    p = bytes ? physical_behind(address, bytes, &offset) : NULL;
    return m && p && !flags ? bind(m, at, p, offset, bytes) : HEWN_CU_INVALID_VALUE;
}

int cuMulticastUnbind(hewn_cu_memory handle, hewn_cu_device device, size_t at, size_t bytes)
{
    struct call call CALL_SCOPE;
    struct multicast *m;
    struct binding **link;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    m = multicast_named(handle);
    if (!m) return HEWN_CU_INVALID_VALUE;
    if (device) return HEWN_CU_INVALID_DEVICE;
    for (link = &m->bindings; *link && (*link)->at != at;) link = &(*link)->next;
    if (!*link || (*link)->bytes != bytes) return HEWN_CU_INVALID_VALUE;
    if (m->mappings) return HEWN_CU_NOT_SUPPORTED;
    unbind(link);
    return 0;
}
