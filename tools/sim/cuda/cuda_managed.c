/*
 * Advice about managed memory, and moves of it ahead of use. Every place holds the same bytes here, so advice is
 * kept to be read back and changes nothing else. It is kept for an allocation as a whole: what was said last
 * about any part of it counts for all.
 */
#include "cuda/driver.h"

enum { /* CUmem_advise, CUmem_range_attribute */
       READ_MOSTLY = 1,
       NOT_READ_MOSTLY = 2,
       PREFER = 3,
       PREFER_NOTHING = 4,
       ACCESSED_BY = 5,
       NOT_ACCESSED_BY = 6,
       GET_READ_MOSTLY = 1,
       GET_PREFERRED = 2,
       GET_ACCESSED_BY = 3,
       GET_PREFETCHED = 4,
       GET_PREFERRED_TYPE = 5,
       GET_PREFERRED_ID = 6,
       GET_PREFETCHED_TYPE = 7,
       GET_PREFETCHED_ID = 8
};
enum { DEVICE_CPU = -1, DEVICE_NONE = -2 };

/* The managed allocation around a range, or NULL. */
static struct memory *managed(hewn_cu_deviceptr address, size_t bytes)
{
    uint64_t base, size;
    struct memory *m;

    if (!bytes || !mem_range(address, bytes, &base, &size)) return NULL;
    m = memory_named(base);
    return m && m->kind == MEMORY_MANAGED ? m : NULL;
}

/* 0, or what is wrong with a place. */
static int place_check(hewn_cu_location l)
{
    switch (l.type) {
    case HEWN_CU_ON_DEVICE: return l.id ? HEWN_CU_INVALID_DEVICE : 0;
    case HEWN_CU_ON_HOST:
    case HEWN_CU_ON_HOST_NUMA_CURRENT: return 0;
    case HEWN_CU_ON_HOST_NUMA: return l.id < 0 ? HEWN_CU_INVALID_VALUE : 0;
    default: return HEWN_CU_INVALID_VALUE;
    }
}

/* The forms before CUDA 12 name a device, or the host as -1. */
static hewn_cu_location place_of(hewn_cu_device device)
{
    return device == DEVICE_CPU ? (hewn_cu_location){HEWN_CU_ON_HOST, 0}
                                : (hewn_cu_location){HEWN_CU_ON_DEVICE, device};
}

static int device_of(hewn_cu_location l)
{
    return l.type == HEWN_CU_ON_DEVICE ? l.id
           : l.type == HEWN_CU_NOWHERE ? DEVICE_NONE
                                       : DEVICE_CPU;
}

int cuMemAdvise_v2(hewn_cu_deviceptr address, size_t bytes, int advice, hewn_cu_location location)
{
    struct call call CALL_SCOPE;
    bool placed = advice == PREFER || advice == ACCESSED_BY || advice == NOT_ACCESSED_BY;
    struct memory *m;
    int rc = 0;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    m = managed(address, bytes);
    if (!m || advice < READ_MOSTLY || advice > NOT_ACCESSED_BY) return HEWN_CU_INVALID_VALUE;
    if (placed) rc = place_check(location);
    if (rc) return rc;
    switch (advice) {
    case READ_MOSTLY: m->advice.read_mostly = true; break;
    case NOT_READ_MOSTLY: m->advice.read_mostly = false; break;
    case PREFER: m->advice.preferred = location; break;
    case PREFER_NOTHING: m->advice.preferred = (hewn_cu_location){0}; break;
    default:
        if (location.type == HEWN_CU_ON_DEVICE) m->advice.device_reads = advice == ACCESSED_BY;
        if (location.type != HEWN_CU_ON_DEVICE) m->advice.host_reads = advice == ACCESSED_BY;
        break;
    }
    return 0;
}

int cuMemAdvise(hewn_cu_deviceptr address, size_t bytes, int advice, hewn_cu_device device)
{
    return cuMemAdvise_v2(address, bytes, advice, place_of(device));
}

/* Enters a call that moves managed memory in a stream. */
static int enter_move(struct call *call, hewn_cu_stream stream)
{
    struct CUstream_st *s;

    if (enter_stream(call, CALL_PLAIN, stream, &s)) return call->rc;
    if (!s->capture) return 0;
    capture_invalidate(s->capture);
    return call->rc = HEWN_CU_STREAM_CAPTURE_UNSUPPORTED;
}

int cuMemPrefetchAsync_v2(hewn_cu_deviceptr address, size_t bytes, hewn_cu_location location,
                          unsigned flags, hewn_cu_stream stream)
{
    struct call call CALL_SCOPE;
    struct memory *m;
    int rc;

    if (enter_move(&call, stream)) return call.rc;
    m = managed(address, bytes);
    if (!m || flags) return HEWN_CU_INVALID_VALUE;
    rc = place_check(location);
    if (!rc) m->advice.prefetched = location;
    return rc;
}

int cuMemPrefetchAsync(hewn_cu_deviceptr address, size_t bytes, hewn_cu_device device,
                       hewn_cu_stream stream)
{
    return cuMemPrefetchAsync_v2(address, bytes, place_of(device), 0, stream);
}

/* ---- several ranges at once ---- */

/* Place i counts from range first[i] on, up to that of the next. */
static int batch(const hewn_cu_deviceptr *addresses, const size_t *bytes, size_t count,
                 const hewn_cu_location *places, const size_t *first, size_t place_count,
                 unsigned long long flags, hewn_cu_stream stream)
{
    struct call call CALL_SCOPE;
    int rc = 0;

    if (enter_move(&call, stream)) return call.rc;
    if (!addresses || !bytes || !count || flags || place_count > count)
        return HEWN_CU_INVALID_VALUE;
    if (places && (!first || !place_count || first[0])) return HEWN_CU_INVALID_VALUE;
    for (size_t i = 0; i < place_count && !rc; i++) {
        rc = place_check(places[i]);
        if (i && (first[i] <= first[i - 1] || first[i] >= count)) rc = HEWN_CU_INVALID_VALUE;
    }
    for (size_t i = 0; i < count && !rc; i++)
        if (!managed(addresses[i], bytes[i])) rc = HEWN_CU_INVALID_VALUE;
    for (size_t i = 0, place = 0; i < count && !rc && places; i++) {
        if (place + 1 < place_count && first[place + 1] == i) place++;
        managed(addresses[i], bytes[i])->advice.prefetched = places[place];
    }
    return rc;
}

int cuMemPrefetchBatchAsync(hewn_cu_deviceptr *addresses, size_t *bytes, size_t count,
                            hewn_cu_location *places, size_t *first, size_t place_count,
                            unsigned long long flags, hewn_cu_stream stream)
{
    if (!places) return HEWN_CU_INVALID_VALUE;
    return batch(addresses, bytes, count, places, first, place_count, flags, stream);
}

/* Discarded bytes may keep what they hold until they are written again. */
int cuMemDiscardBatchAsync(hewn_cu_deviceptr *addresses, size_t *bytes, size_t count,
                           unsigned long long flags, hewn_cu_stream stream)
{
    return batch(addresses, bytes, count, NULL, NULL, 0, flags, stream);
}

int cuMemDiscardAndPrefetchBatchAsync(hewn_cu_deviceptr *addresses, size_t *bytes, size_t count,
                                      hewn_cu_location *places, size_t *first, size_t place_count,
                                      unsigned long long flags, hewn_cu_stream stream)
{
    return cuMemPrefetchBatchAsync(addresses, bytes, count, places, first, place_count, flags,
                                   stream);
}

/* ---- reading advice back ---- */

static int value_of(const struct memory *m, int attribute)
{
    const struct advice *a = &m->advice;

    switch (attribute) {
    case GET_READ_MOSTLY: return a->read_mostly;
    case GET_PREFERRED: return device_of(a->preferred);
    case GET_PREFETCHED: return device_of(a->prefetched);
    case GET_PREFERRED_TYPE: return a->preferred.type;
    case GET_PREFERRED_ID: return a->preferred.id;
    case GET_PREFETCHED_TYPE: return a->prefetched.type;
    default: return a->prefetched.id;
    }
}

/* The devices that were named, and -2 for the rest of the array. */
static void list_readers(const struct memory *m, int *out, size_t count)
{
    size_t n = 0;

    if (m->advice.device_reads && n < count) out[n++] = 0;
    if (m->advice.host_reads && n < count) out[n++] = DEVICE_CPU;
    while (n < count) out[n++] = DEVICE_NONE;
}

static int get(const struct memory *m, void *data, size_t size, int attribute)
{
    int value;

    if (!data || attribute < GET_READ_MOSTLY || attribute > GET_PREFETCHED_ID || !size ||
        size % sizeof value)
        return HEWN_CU_INVALID_VALUE;
    if (attribute == GET_ACCESSED_BY) {
        list_readers(m, data, size / sizeof value);
        return 0;
    }
    if (size != sizeof value) return HEWN_CU_INVALID_VALUE;
    value = value_of(m, attribute);
    memcpy(data, &value, sizeof value);
    return 0;
}

int cuMemRangeGetAttributes(void **data, size_t *sizes, int *attributes, size_t count,
                            hewn_cu_deviceptr address, size_t bytes)
{
    struct call call CALL_SCOPE;
    const struct memory *m;
    int rc = 0;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    m = managed(address, bytes);
    if (!m || !data || !sizes || !attributes || !count) return HEWN_CU_INVALID_VALUE;
    for (size_t i = 0; i < count && !rc; i++) rc = get(m, data[i], sizes[i], attributes[i]);
    return rc;
}

int cuMemRangeGetAttribute(void *data, size_t size, int attribute, hewn_cu_deviceptr address,
                           size_t bytes)
{
    return cuMemRangeGetAttributes(&data, &size, &attribute, 1, address, bytes);
}
