/* Allocations of every kind, and what a pointer is. */
#include "cuda/driver.h"

#include <stdlib.h>

enum { PITCH_ALIGN = 512, HOST_PAGE = 4096 };
enum { HOST_ALLOC_FLAGS = 7, HOST_REGISTER_FLAGS = 15 }; /* portable, mapped, combined, I/O, … */

static const void *key_of(uint64_t address)
{
    return (const void *)(uintptr_t)address;
}

/* The tracked range that begins at `address`, or NULL. */
struct memory *memory_named(uint64_t address)
{
    return address ? handle_get(key_of(address), HANDLE_MEMORY) : NULL;
}

/* The tracked range around `address`, or NULL. */
static struct memory *memory_around(uint64_t address)
{
    uint64_t base, bytes;
    return mem_range(address, 1, &base, &bytes) ? memory_named(base) : NULL;
}

bool memory_holds(uint64_t address, uint64_t bytes, bool device)
{
    uint64_t base, size;

    if (!bytes) return true;
    if (mem_range(address, bytes, &base, &size)) return true;
    return !device && address && !mem_range(address, 1, &base, &size);
}

int memory_track(struct CUctx_st *context, uint64_t address, uint64_t bytes, enum memory_kind kind,
                 unsigned flags)
{
    struct memory *m = calloc(1, sizeof *m);

    if (!m) return HEWN_CU_OUT_OF_MEMORY;
    m->context = context;
    m->address = address;
    m->bytes = bytes;
    m->id = ++driver.next_id;
    m->kind = kind;
    m->flags = flags;
    if (!handle_add(key_of(address), HANDLE_MEMORY, m, context)) return 0;
    free(m);
    return HEWN_CU_OUT_OF_MEMORY;
}

void memory_release(struct memory *m)
{
    void *host = (void *)(uintptr_t)m->address;

    handle_drop(key_of(m->address));
    if (m->pool) pool_give(m->pool, m->bytes);
    switch (m->kind) {
    case MEMORY_DEVICE:
    case MEMORY_MANAGED: mem_free(m->address); break;
    case MEMORY_PINNED:
        mem_unregister(host);
        free(host);
        break;
    case MEMORY_REGISTERED: mem_unregister(host); break;
    case MEMORY_GRAPH: graph_memory_release(m->address); break;
    }
    free(m);
}

/* ---- device memory ---- */

static int allocate(struct CUctx_st *context, hewn_cu_deviceptr *out, uint64_t bytes,
                    enum memory_kind kind)
{
    uint64_t address;
    int rc;

    if (!out || !bytes) return HEWN_CU_INVALID_VALUE;
    rc = mem_alloc(bytes, &address);
    if (rc) return rc;
    rc = memory_track(context, address, bytes, kind, 0);
    if (rc) {
        mem_free(address);
        return rc;
    }
    *out = address;
    return 0;
}

int cuMemGetInfo_v2(size_t *available, size_t *total)
{
    struct call call CALL_SCOPE;
    uint64_t used;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!available || !total) return HEWN_CU_INVALID_VALUE;
    used = mem_in_use();
    *total = driver.memory_limit;
    *available = used < driver.memory_limit ? driver.memory_limit - used : 0;
    return 0;
}

int cuMemAlloc_v2(hewn_cu_deviceptr *address, size_t bytes)
{
    struct call call CALL_SCOPE;
    if (call_enter(&call, CALL_UNSAFE)) return call.rc;
    return allocate(call.context, address, bytes, MEMORY_DEVICE);
}

int cuMemAllocPitch_v2(hewn_cu_deviceptr *address, size_t *pitch, size_t width, size_t height,
                       unsigned element)
{
    struct call call CALL_SCOPE;
    size_t row = (width + PITCH_ALIGN - 1) / PITCH_ALIGN * PITCH_ALIGN;
    int rc;

    if (call_enter(&call, CALL_UNSAFE)) return call.rc;
    if (!pitch || !width || !height || row < width || row > SIZE_MAX / height)
        return HEWN_CU_INVALID_VALUE;
    if (element != 4 && element != 8 && element != 16) return HEWN_CU_INVALID_VALUE;
    rc = allocate(call.context, address, row * height, MEMORY_DEVICE);
    if (!rc) *pitch = row;
    return rc;
}

int cuMemAllocManaged(hewn_cu_deviceptr *address, size_t bytes, unsigned flags)
{
    enum { ATTACH_GLOBAL = 1, ATTACH_HOST = 2 };
    struct call call CALL_SCOPE;
    int rc;

    if (call_enter(&call, CALL_UNSAFE)) return call.rc;
    if (flags != ATTACH_GLOBAL && flags != ATTACH_HOST) return HEWN_CU_INVALID_VALUE;
    rc = allocate(call.context, address, bytes, MEMORY_MANAGED);
    /* Its pages come from the host's system, which clears them; programs rely on it. */
    if (!rc) memset((void *)(uintptr_t)*address, 0, bytes);
    return rc;
}

int memory_from_pool(struct CUctx_st *context, struct CUmemPoolHandle_st *pool, uint64_t bytes,
                     hewn_cu_deviceptr *address)
{
    int rc = pool_take(pool, bytes);

    if (rc) return rc;
    rc = allocate(context, address, bytes, MEMORY_DEVICE);
    if (rc)
        pool_give(pool, bytes);
    else
        memory_named(*address)->pool = pool;
    return rc;
}

int memory_for_stream(struct CUstream_st *stream, struct CUmemPoolHandle_st *pool, uint64_t bytes,
                      hewn_cu_deviceptr *address)
{
    const int rc = memory_from_pool(stream->context, pool, bytes, address);

    if (!rc) beside_allocated(stream, *address, bytes);
    return rc;
}

int memory_free_after(struct CUstream_st *stream, hewn_cu_deviceptr address)
{
    const struct memory *m = memory_named(address);

    if (m) beside_freed(stream, m->address, m->bytes);
    return memory_free(address);
}

bool memory_is_hosts(const struct memory *m)
{
    return m->kind == MEMORY_PINNED || m->kind == MEMORY_REGISTERED || m->kind == MEMORY_MANAGED;
}

bool memory_of_host(uint64_t address)
{
    const struct memory *m = memory_around(address);
    return m && memory_is_hosts(m);
}

/* Stream order is call order here, so the asynchronous forms take effect at once. */
int cuMemAllocAsync(hewn_cu_deviceptr *address, size_t bytes, hewn_cu_stream stream)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    s = stream_named(call.context, stream);
    if (!s) return HEWN_CU_INVALID_HANDLE;
    if (!address || !bytes) return HEWN_CU_INVALID_VALUE;
    if (s->capture) return capture_alloc(s, bytes, address);
    return memory_for_stream(s, pool_current(), bytes, address);
}

int memory_free(hewn_cu_deviceptr address)
{
    struct memory *m = memory_named(address);

    if (!address) return 0;
    if (!m || m->kind == MEMORY_PINNED || m->kind == MEMORY_REGISTERED)
        return HEWN_CU_INVALID_VALUE;
    memory_release(m);
    return 0;
}

int cuMemFree_v2(hewn_cu_deviceptr address)
{
    struct call call CALL_SCOPE;
    int rc;

    if (call_enter(&call, CALL_RELEASE | UNSAFE_IN_CAPTURE)) return call.rc;
    deferred_finish_context(call.context);
    beside_host_all();
    rc = memory_free(address);
    return call.context->fault ? call.context->fault : rc;
}

int cuMemFreeAsync(hewn_cu_deviceptr address, hewn_cu_stream stream)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;
    int rc;

    if (call_enter(&call, CALL_RELEASE)) return call.rc;
    s = stream_named(call.context, stream);
    if (!s) return HEWN_CU_INVALID_HANDLE;
    if (s->capture) return capture_free(s, address);
    if (deferred_before(s)) {
        struct work work = {.kind = WORK_FREE, .freed = address};
        return deferred_work(s, &work);
    }
    rc = memory_free_after(s, address);
    return call.context->fault ? call.context->fault : rc;
}

int cuMemGetAddressRange_v2(hewn_cu_deviceptr *base, size_t *bytes, hewn_cu_deviceptr address)
{
    struct call call CALL_SCOPE;
    uint64_t start, size;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!mem_range(address, 1, &start, &size)) return HEWN_CU_NOT_FOUND;
    if (base) *base = start;
    if (bytes) *bytes = size;
    return 0;
}

/* ---- host memory that kernels may touch ---- */

int cuMemHostAlloc(void **host, size_t bytes, unsigned flags)
{
    struct call call CALL_SCOPE;
    void *memory = NULL;
    int rc;

    if (call_enter(&call, CALL_UNSAFE)) return call.rc;
    if (!host || !bytes || flags > HOST_ALLOC_FLAGS) return HEWN_CU_INVALID_VALUE;
    if (posix_memalign(&memory, HOST_PAGE, bytes)) return HEWN_CU_OUT_OF_MEMORY;
    rc = mem_register(memory, bytes);
    if (!rc) {
        rc = memory_track(call.context, (uint64_t)(uintptr_t)memory, bytes, MEMORY_PINNED, flags);
        if (rc) mem_unregister(memory);
    }
    if (rc) {
        free(memory);
        return rc;
    }
    *host = memory;
    return 0;
}

int cuMemAllocHost_v2(void **host, size_t bytes)
{
    return cuMemHostAlloc(host, bytes, 0);
}

int cuMemFreeHost(void *host)
{
    struct call call CALL_SCOPE;
    struct memory *m;

    if (call_enter(&call, CALL_RELEASE | UNSAFE_IN_CAPTURE)) return call.rc;
    m = memory_named((uint64_t)(uintptr_t)host);
    if (!m || m->kind != MEMORY_PINNED) return HEWN_CU_INVALID_VALUE;
    memory_release(m);
    return call.context->fault;
}

int cuMemHostGetDevicePointer_v2(hewn_cu_deviceptr *address, void *host, unsigned flags)
{
    struct call call CALL_SCOPE;
    struct memory *m;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    m = memory_around((uint64_t)(uintptr_t)host);
    if (!address || flags || !m || (m->kind != MEMORY_PINNED && m->kind != MEMORY_REGISTERED))
        return HEWN_CU_INVALID_VALUE;
    *address = (uint64_t)(uintptr_t)host;
    return 0;
}

int cuMemHostGetFlags(unsigned *flags, void *host)
{
    struct call call CALL_SCOPE;
    struct memory *m;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    m = memory_named((uint64_t)(uintptr_t)host);
    if (!flags || !m || m->kind != MEMORY_PINNED) return HEWN_CU_INVALID_VALUE;
    *flags = m->flags;
    return 0;
}

int cuMemHostRegister_v2(void *host, size_t bytes, unsigned flags)
{
    struct call call CALL_SCOPE;
    uint64_t first = (uint64_t)(uintptr_t)host, base, size;
    int rc;

    if (call_enter(&call, CALL_UNSAFE)) return call.rc;
    if (!host || !bytes || flags > HOST_REGISTER_FLAGS || first + bytes < first)
        return HEWN_CU_INVALID_VALUE;
    if (mem_range(first, 1, &base, &size) || mem_range(first + bytes - 1, 1, &base, &size))
        return HEWN_CU_HOST_MEMORY_ALREADY_REGISTERED;
    rc = mem_register(host, bytes);
    if (rc) return rc;
    rc = memory_track(call.context, first, bytes, MEMORY_REGISTERED, flags);
    if (rc) mem_unregister(host);
    return rc;
}

int cuMemHostUnregister(void *host)
{
    struct call call CALL_SCOPE;
    struct memory *m;

    if (call_enter(&call, CALL_RELEASE | UNSAFE_IN_CAPTURE)) return call.rc;
    if (!host) return HEWN_CU_INVALID_VALUE;
    m = memory_named((uint64_t)(uintptr_t)host);
    if (!m || m->kind != MEMORY_REGISTERED) return HEWN_CU_HOST_MEMORY_NOT_REGISTERED;
    memory_release(m);
    return call.context->fault;
}

/* ---- what a pointer is ---- */

/* What CUpointer_attribute's page says each attribute is, as bytes to copy out. */
union pointer_value {
    hewn_cu_context context;
    unsigned word;
    int number;
    uint64_t wide;
    void *pointer;
};

/* The attribute's value and its size; 0 for an attribute that is not known. `m` is NULL for a
 * module's variable, which no allocation of the program holds. */
static size_t pointer_value(int attribute, hewn_cu_deviceptr address, const struct memory *m,
                            union pointer_value *v)
{
    bool host = m && (m->kind == MEMORY_PINNED || m->kind == MEMORY_REGISTERED);
    bool managed = m && m->kind == MEMORY_MANAGED;
    uint64_t base = 0, bytes = 0;

    mem_range(address, 1, &base, &bytes);
    switch (attribute) {
    case HEWN_CU_POINTER_CONTEXT: v->context = m ? m->context : NULL; return sizeof(void *);
    case HEWN_CU_POINTER_MEMORY_TYPE:
        v->word = host ? HEWN_CU_MEMORY_HOST : HEWN_CU_MEMORY_DEVICE;
        return sizeof v->word;
    case HEWN_CU_POINTER_DEVICE_POINTER: v->wide = address; return sizeof v->wide;
    case HEWN_CU_POINTER_HOST_POINTER:
        v->pointer = host || managed ? (void *)(uintptr_t)address : NULL;
        return sizeof(void *);
    case HEWN_CU_POINTER_SYNC_MEMOPS: v->word = m ? m->sync_memops : 0; return sizeof v->word;
    case HEWN_CU_POINTER_BUFFER_ID: v->wide = m ? m->id : 0; return sizeof v->wide;
    case HEWN_CU_POINTER_IS_MANAGED: v->word = managed; return sizeof v->word;
    case HEWN_CU_POINTER_DEVICE_ORDINAL: v->number = 0; return sizeof v->number;
    case HEWN_CU_POINTER_RANGE_START_ADDR: v->wide = base; return sizeof v->wide;
    case HEWN_CU_POINTER_RANGE_SIZE: v->wide = bytes; return sizeof v->wide;
    case HEWN_CU_POINTER_MAPPED: v->word = 1; return sizeof v->word;
    case HEWN_CU_POINTER_ALLOWED_HANDLE_TYPES: v->wide = 0; return sizeof v->wide;
    case HEWN_CU_POINTER_ACCESS_FLAGS: v->number = 3; return sizeof v->number; /* read, write */
    case HEWN_CU_POINTER_MEMPOOL_HANDLE: v->pointer = m ? m->pool : NULL; return sizeof(void *);
    default: return 0;
    }
}

int cuPointerGetAttribute(void *value, int attribute, hewn_cu_deviceptr address)
{
    struct call call CALL_SCOPE;
    union pointer_value v;
    uint64_t base, bytes;
    size_t size;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!value || !mem_range(address, 1, &base, &bytes)) return HEWN_CU_INVALID_VALUE;
    size = pointer_value(attribute, address, memory_named(base), &v);
    if (!size) return HEWN_CU_INVALID_VALUE;
    memcpy(value, &v, size);
    return 0;
}

/* As above, but an unknown pointer gives zeros (ordinal -2) rather than an error. */
int cuPointerGetAttributes(unsigned count, int *attributes, void **values,
                           hewn_cu_deviceptr address)
{
    enum { NO_DEVICE = -2 };
    struct call call CALL_SCOPE;
    uint64_t base, bytes;
    bool known;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!count || !attributes || !values) return HEWN_CU_INVALID_VALUE;
    known = mem_range(address, 1, &base, &bytes);
    for (unsigned i = 0; i < count; i++) {
        union pointer_value v;
        size_t size = pointer_value(attributes[i], address, known ? memory_named(base) : NULL, &v);
        if (!size || !values[i]) return HEWN_CU_INVALID_VALUE;
        if (!known) memset(&v, 0, sizeof v);
        if (!known && attributes[i] == HEWN_CU_POINTER_DEVICE_ORDINAL) v.number = NO_DEVICE;
        memcpy(values[i], &v, size);
    }
    return 0;
}

/* Copies are synchronous or not by their call alone here. */
int cuPointerSetAttribute(const void *value, int attribute, hewn_cu_deviceptr address)
{
    struct call call CALL_SCOPE;
    struct memory *m;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    m = memory_around(address);
    if (!value || !m || attribute != HEWN_CU_POINTER_SYNC_MEMOPS) return HEWN_CU_INVALID_VALUE;
    memcpy(&m->sync_memops, value, sizeof m->sync_memops);
    return 0;
}
