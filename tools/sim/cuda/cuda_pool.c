/* Pools of stream-ordered memory, and advice about managed memory. */
#include "cuda/driver.h"

#include <stdlib.h>

enum { BLOCK_BYTES = 32 << 20 }; /* what a pool takes from the device at a time */

enum { /* CUmemPool_attribute; the first three are switches */
       POOL_REUSE_FIRST = 1,
       POOL_REUSE_LAST = 3,
       POOL_THRESHOLD = 4,
       POOL_RESERVED = 5,
       POOL_RESERVED_HIGH = 6,
       POOL_USED = 7,
       POOL_USED_HIGH = 8
};

struct CUmemPoolHandle_st {
    hewn_cu_pool_props props;
    int reuse[POOL_REUSE_LAST + 1];
    uint64_t threshold, reserved, reserved_high, used, used_high;
    uint32_t allocations;
    bool is_default, gone; /* gone: freed with its last allocation */
};

static uint64_t blocks(uint64_t bytes)
{
    return (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

static struct CUmemPoolHandle_st *pool_new(const hewn_cu_pool_props *props)
{
    struct CUmemPoolHandle_st *pool = calloc(1, sizeof *pool);

    if (!pool || handle_add(pool, HANDLE_POOL, pool, NULL)) {
        free(pool);
        return NULL;
    }
    pool->props = *props;
    for (int i = POOL_REUSE_FIRST; i <= POOL_REUSE_LAST; i++) pool->reuse[i] = 1;
    return pool;
}

static void pool_free(struct CUmemPoolHandle_st *pool)
{
    handle_drop(pool);
    if (driver.pool == pool) driver.pool = NULL;
    if (driver.default_pool == pool) driver.default_pool = NULL;
    free(pool);
}

void pools_free_all(void)
{
    size_t at = 0;
    struct CUmemPoolHandle_st *pool;

    while ((pool = handle_next(HANDLE_POOL, NULL, &at))) pool_free(pool);
}

static struct CUmemPoolHandle_st *pool_named(hewn_cu_pool handle)
{
    struct CUmemPoolHandle_st *pool = handle_get(handle, HANDLE_POOL);
    return pool && !pool->gone ? pool : NULL;
}

/* The device's own pool, made at first need. */
static struct CUmemPoolHandle_st *default_pool(void)
{
    static const hewn_cu_pool_props props = {.type = 1, .location = {.type = 1}};

    if (!driver.default_pool) driver.default_pool = pool_new(&props);
    if (driver.default_pool) driver.default_pool->is_default = true;
    return driver.default_pool;
}

struct CUmemPoolHandle_st *pool_current(void)
{
    return driver.pool ? driver.pool : default_pool();
}

/* Memory above the threshold goes back to the device. */
static void settle(struct CUmemPoolHandle_st *pool, uint64_t keep)
{
    uint64_t need = blocks(pool->used);
    uint64_t kept = pool->reserved < keep ? pool->reserved : keep;

    pool->reserved = need > kept ? need : kept;
    if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
}

int pool_take(struct CUmemPoolHandle_st *pool, uint64_t bytes)
{
    if (!pool) return HEWN_CU_OUT_OF_MEMORY;
    if (pool->props.max_bytes && bytes > pool->props.max_bytes - pool->used)
        return HEWN_CU_OUT_OF_MEMORY;
    pool->used += bytes;
    pool->allocations++;
    if (pool->used > pool->used_high) pool->used_high = pool->used;
    settle(pool, UINT64_MAX);
    return 0;
}

void pool_give(struct CUmemPoolHandle_st *pool, uint64_t bytes)
{
    pool->used -= bytes;
    pool->allocations--;
    settle(pool, pool->threshold);
    if (pool->gone && !pool->allocations) pool_free(pool);
}

/* ---- the API: pools ---- */

int cuMemPoolCreate(hewn_cu_pool *pool, const hewn_cu_pool_props *props)
{
    enum { PINNED = 1, MANAGED = 2 };
    struct call call CALL_SCOPE;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!pool || !props) return HEWN_CU_INVALID_VALUE;
    if (props->type == MANAGED || props->handle_types) return HEWN_CU_NOT_SUPPORTED;
    if (props->type != PINNED) return HEWN_CU_INVALID_VALUE;
    if (props->location.type == HEWN_CU_ON_HOST) return HEWN_CU_NOT_SUPPORTED;
    if (props->location.type != HEWN_CU_ON_DEVICE) return HEWN_CU_INVALID_VALUE;
    if (props->location.id) return HEWN_CU_INVALID_VALUE;
    *pool = pool_new(props);
    return *pool ? 0 : HEWN_CU_OUT_OF_MEMORY;
}

int cuMemPoolDestroy(hewn_cu_pool pool)
{
    struct call call CALL_SCOPE;
    struct CUmemPoolHandle_st *p;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    p = pool_named(pool);
    if (!p || p->is_default) return HEWN_CU_INVALID_VALUE;
    if (driver.pool == p) driver.pool = NULL; /* the default one takes its place */
    if (p->allocations)
        p->gone = true;
    else
        pool_free(p);
    return 0;
}

int cuMemPoolTrimTo(hewn_cu_pool pool, size_t keep)
{
    struct call call CALL_SCOPE;
    struct CUmemPoolHandle_st *p;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    p = pool_named(pool);
    if (!p) return HEWN_CU_INVALID_VALUE;
    settle(p, keep);
    return 0;
}

int cuMemPoolGetAttribute(hewn_cu_pool pool, int attribute, void *value)
{
    struct call call CALL_SCOPE;
    const struct CUmemPoolHandle_st *p;
    uint64_t v;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    p = pool_named(pool);
    if (!p || !value) return HEWN_CU_INVALID_VALUE;
    switch (attribute) {
    case POOL_THRESHOLD: v = p->threshold; break;
    case POOL_RESERVED: v = p->reserved; break;
    case POOL_RESERVED_HIGH: v = p->reserved_high; break;
    case POOL_USED: v = p->used; break;
    case POOL_USED_HIGH: v = p->used_high; break;
    default:
        if (attribute < POOL_REUSE_FIRST || attribute > POOL_REUSE_LAST)
            return HEWN_CU_INVALID_VALUE;
        memcpy(value, &p->reuse[attribute], sizeof(int));
        return 0;
    }
    memcpy(value, &v, sizeof v);
    return 0;
}

/* The high marks can be set back to what is now, by zero alone. */
int cuMemPoolSetAttribute(hewn_cu_pool pool, int attribute, const void *value)
{
    struct call call CALL_SCOPE;
    struct CUmemPoolHandle_st *p;
    uint64_t v;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    p = pool_named(pool);
    if (!p || !value) return HEWN_CU_INVALID_VALUE;
    if (attribute >= POOL_REUSE_FIRST && attribute <= POOL_REUSE_LAST) {
        memcpy(&p->reuse[attribute], value, sizeof(int));
        return 0;
    }
    if (attribute != POOL_THRESHOLD && attribute != POOL_RESERVED_HIGH &&
        attribute != POOL_USED_HIGH)
        return HEWN_CU_INVALID_VALUE;
    memcpy(&v, value, sizeof v);
    if (attribute == POOL_THRESHOLD) {
        p->threshold = v;
        return 0;
    }
    if (v) return HEWN_CU_INVALID_VALUE;
    if (attribute == POOL_RESERVED_HIGH) p->reserved_high = p->reserved;
    if (attribute == POOL_USED_HIGH) p->used_high = p->used;
    return 0;
}

/* The pool's own device reaches it always. */
int cuMemPoolSetAccess(hewn_cu_pool pool, const hewn_cu_access *access, size_t count)
{
    enum { READ_WRITE = 3 };
    struct call call CALL_SCOPE;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!pool_named(pool) || (count && !access)) return HEWN_CU_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.type != HEWN_CU_ON_DEVICE) return HEWN_CU_INVALID_VALUE;
        if (access[i].location.id) return HEWN_CU_INVALID_DEVICE;
        if (access[i].flags != READ_WRITE) return HEWN_CU_INVALID_VALUE;
    }
    return 0;
}

int cuMemPoolGetAccess(int *flags, hewn_cu_pool pool, hewn_cu_location *location)
{
    enum { READ_WRITE = 3 };
    struct call call CALL_SCOPE;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!flags || !location || !pool_named(pool)) return HEWN_CU_INVALID_VALUE;
    if (location->type != HEWN_CU_ON_DEVICE && location->type != HEWN_CU_ON_HOST)
        return HEWN_CU_INVALID_VALUE;
    if (location->type == HEWN_CU_ON_DEVICE && location->id) return HEWN_CU_INVALID_VALUE;
    *flags = location->type == HEWN_CU_ON_DEVICE ? READ_WRITE : 0;
    return 0;
}

/* ---- the API: the device's pools ---- */

static int give_pool(hewn_cu_device device, hewn_cu_pool *out, bool current)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (device) return HEWN_CU_INVALID_DEVICE;
    if (!out) return HEWN_CU_INVALID_VALUE;
    *out = current ? pool_current() : default_pool();
    return *out ? 0 : HEWN_CU_OUT_OF_MEMORY;
}

int cuDeviceGetDefaultMemPool(hewn_cu_pool *pool, hewn_cu_device device)
{
    return give_pool(device, pool, false);
}

int cuDeviceGetMemPool(hewn_cu_pool *pool, hewn_cu_device device)
{
    return give_pool(device, pool, true);
}

int cuDeviceSetMemPool(hewn_cu_device device, hewn_cu_pool pool)
{
    struct call call CALL_SCOPE;
    struct CUmemPoolHandle_st *p;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    p = pool_named(pool);
    if (device) return HEWN_CU_INVALID_DEVICE;
    if (!p) return HEWN_CU_INVALID_VALUE;
    driver.pool = p;
    return 0;
}

/* The forms of CUDA 13 name a place and a kind of memory; there are pools of device memory alone. */
static int place_ok(const hewn_cu_location *location, int type)
{
    enum { PINNED = 1, MANAGED = 2 };

    if (!location || (type != PINNED && type != MANAGED)) return HEWN_CU_INVALID_VALUE;
    return location->type == HEWN_CU_ON_DEVICE && type == PINNED ? 0 : HEWN_CU_NOT_SUPPORTED;
}

int cuMemGetDefaultMemPool(hewn_cu_pool *pool, hewn_cu_location *location, int type)
{
    int rc = place_ok(location, type);
    return rc ? rc : give_pool(location->id, pool, false);
}

int cuMemGetMemPool(hewn_cu_pool *pool, hewn_cu_location *location, int type)
{
    int rc = place_ok(location, type);
    return rc ? rc : give_pool(location->id, pool, true);
}

int cuMemSetMemPool(hewn_cu_location *location, int type, hewn_cu_pool pool)
{
    int rc = place_ok(location, type);
    return rc ? rc : cuDeviceSetMemPool(location->id, pool);
}

int cuMemAllocFromPoolAsync(hewn_cu_deviceptr *address, size_t bytes, hewn_cu_pool pool,
                            hewn_cu_stream stream)
{
    struct call call CALL_SCOPE;
    struct CUmemPoolHandle_st *p;
    struct CUstream_st *s;

    if (enter_stream(&call, CALL_PLAIN, stream, &s)) return call.rc;
    p = pool_named(pool);
    if (!p || !address || !bytes) return HEWN_CU_INVALID_VALUE;
    if (s->capture) return capture_alloc(s, bytes, address);
    return memory_for_stream(s, p, bytes, address);
}
