/* Contexts: the primary one and created ones, the stack of each thread, and a context's end. */
#include "cuda/array.h"

#include <stdlib.h>

enum { STACK_DEPTH = 256 };

static _Thread_local struct {
    struct CUctx_st *contexts[STACK_DEPTH];
    unsigned depth;
} stack;

/* As the driver's defaults read on these devices; bytes but for the two counts. */
static const size_t default_limits[LIMIT_COUNT] = {
    [HEWN_CU_LIMIT_STACK_SIZE] = 1024,
    [HEWN_CU_LIMIT_PRINTF_FIFO_SIZE] = 7 << 20,
    [HEWN_CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
    [HEWN_CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
    [HEWN_CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
};

struct CUctx_st *context_current(void)
{
    return stack.depth ? stack.contexts[stack.depth - 1] : NULL;
}

static struct CUctx_st *context_new(bool primary, unsigned flags)
{
    struct CUctx_st *context = calloc(1, sizeof *context);

    if (!context) return NULL;
    if (handle_add(context, HANDLE_CONTEXT, context, NULL)) {
        free(context);
        return NULL;
    }
    context->primary = primary;
    context->alive = true;
    context->flags = flags;
    context->api_version = 3020;
    context->id = ++driver.next_id;
    memcpy(context->limits, default_limits, sizeof default_limits);
    context->legacy_stream = (struct CUstream_st){.context = context, .id = 1, .legacy = true};
    context->thread_stream = (struct CUstream_st){.context = context, .id = 2, .slot = SLOT_THREAD};
    return context;
}

void context_clear(struct CUctx_st *context)
{
    size_t at = 0;
    void *object;

    deferred_clear(context);
    beside_host_all();
    stream_clear(&context->legacy_stream);
    stream_clear(&context->thread_stream);
    while ((object = handle_next(HANDLE_STREAM, context, &at))) stream_destroy(object);
    for (at = 0; (object = handle_next(HANDLE_EVENT, context, &at));) event_destroy(object);
    for (at = 0; (object = handle_next(HANDLE_LINK, context, &at));) link_destroy(object);
    for (at = 0; (object = handle_next(HANDLE_MODULE, context, &at));) module_unload(object);
    for (at = 0; (object = handle_next(HANDLE_MEMORY, context, &at));) memory_release(object);
    for (at = 0; (object = handle_next(HANDLE_TEXTURE, context, &at));)
        texture_object_destroy(object);
    for (at = 0; (object = handle_next(HANDLE_MIPMAPPED, context, &at));) mipmapped_destroy(object);
    for (at = 0; (object = handle_next(HANDLE_ARRAY, context, &at));) array_destroy(object);
    for (struct context_value *v; (v = context->values);) {
        context->values = v->next;
        v->next = driver.ended;
        driver.ended = v;
    }
    context->fault = 0;
    context->strict_fault = 0;
    memcpy(context->limits, default_limits, sizeof default_limits);
}

int context_take(struct CUctx_st *context, int result)
{
    if (!result_is_sticky(result)) return result;
    if (!context->fault) context->fault = result;
    return 0;
}

static int push(struct CUctx_st *context)
{
    if (stack.depth == STACK_DEPTH) return HEWN_CU_OUT_OF_MEMORY;
    stack.contexts[stack.depth++] = context;
    return 0;
}

/* The live context behind a handle: 0, 201 for what was never one, 709 for one destroyed. */
static int context_named(hewn_cu_context handle, struct CUctx_st **out)
{
    *out = handle ? handle_get(handle, HANDLE_CONTEXT) : NULL;
    if (!*out) return HEWN_CU_INVALID_CONTEXT;
    return (*out)->alive ? 0 : HEWN_CU_CONTEXT_IS_DESTROYED;
}

/* ---- the primary context ---- */

static int enter_device(struct call *call, hewn_cu_device device)
{
    if (call_enter(call, NEED_INIT)) return call->rc;
    return call->rc = device ? HEWN_CU_INVALID_DEVICE : 0;
}

/* The primary context, made at first need and kept for the life of the process. */
static struct CUctx_st *primary_context(void)
{
    if (!driver.primary) {
        driver.primary = context_new(true, 0);
        if (driver.primary) driver.primary->alive = false;
    }
    return driver.primary;
}

int cuDevicePrimaryCtxRetain(hewn_cu_context *context, hewn_cu_device device)
{
    struct call call CALL_SCOPE;
    struct CUctx_st *primary;

    if (enter_device(&call, device)) return call.rc;
    if (!context) return HEWN_CU_INVALID_VALUE;
    primary = primary_context();
    if (!primary) return HEWN_CU_OUT_OF_MEMORY;
    primary->retained++;
    primary->alive = true;
    *context = primary;
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(hewn_cu_device device)
{
    struct call call CALL_SCOPE;

    if (enter_device(&call, device)) return call.rc;
    if (!driver.primary || !driver.primary->retained) return HEWN_CU_INVALID_CONTEXT;
    if (--driver.primary->retained) return 0;
    context_clear(driver.primary);
    driver.primary->alive = false;
    return 0;
}

int cuDevicePrimaryCtxReset_v2(hewn_cu_device device)
{
    struct call call CALL_SCOPE;

    if (enter_device(&call, device)) return call.rc;
    if (driver.primary) context_clear(driver.primary);
    return 0;
}

int cuDevicePrimaryCtxSetFlags_v2(hewn_cu_device device, unsigned flags)
{
    struct call call CALL_SCOPE;

    if (enter_device(&call, device)) return call.rc;
    if (flags > 0xFF) return HEWN_CU_INVALID_VALUE;
    if (!primary_context()) return HEWN_CU_OUT_OF_MEMORY;
    driver.primary->flags = flags;
    return 0;
}

int cuDevicePrimaryCtxGetState(hewn_cu_device device, unsigned *flags, int *active)
{
    struct call call CALL_SCOPE;

    if (enter_device(&call, device)) return call.rc;
    if (!flags || !active) return HEWN_CU_INVALID_VALUE;
    *flags = driver.primary ? driver.primary->flags : 0;
    *active = driver.primary && driver.primary->alive;
    return 0;
}

/* ---- created contexts ---- */

int cuCtxCreate_v2(hewn_cu_context *context, unsigned flags, hewn_cu_device device)
{
    struct call call CALL_SCOPE;
    struct CUctx_st *fresh;

    if (enter_device(&call, device)) return call.rc;
    if (!context || flags > 0xFF) return HEWN_CU_INVALID_VALUE;
    if (stack.depth == STACK_DEPTH) return HEWN_CU_OUT_OF_MEMORY;
    fresh = context_new(false, flags);
    if (!fresh) return HEWN_CU_OUT_OF_MEMORY;
    push(fresh);
    *context = fresh;
    return 0;
}

int cuCtxCreate_v3(hewn_cu_context *context, void *affinity, int count, unsigned flags,
                   hewn_cu_device device)
{
    if (affinity || count) return HEWN_CU_NOT_SUPPORTED; /* execution affinity is not modelled */
    return cuCtxCreate_v2(context, flags, device);
}

int cuCtxCreate_v4(hewn_cu_context *context, void *params, unsigned flags, hewn_cu_device device)
{
    /* CUctxCreateParams: affinity list, its length, graphics interop; none of it is modelled. */
    const struct {
        void *affinity;
        int count;
        void *cig;
    } *p = params;

    if (p && (p->affinity || p->count || p->cig)) return HEWN_CU_NOT_SUPPORTED;
    return cuCtxCreate_v2(context, flags, device);
}

static int destroy(struct CUctx_st *dying)
{
    if (dying->primary) return HEWN_CU_INVALID_CONTEXT; /* released, never destroyed */
    if (dying == context_current()) stack.depth--;
    context_clear(dying);
    dying->alive = false;
    return 0;
}

int cuCtxDestroy_v2(hewn_cu_context context)
{
    struct call call CALL_SCOPE;
    struct CUctx_st *dying;
    int rc;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    rc = context_named(context, &dying);
    return rc ? rc : destroy(dying);
}

/* As of CUDA before 4: the current context is used once more. */
int cuCtxAttach(hewn_cu_context *context, unsigned flags)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!context || flags) return HEWN_CU_INVALID_VALUE;
    if (!call.context || call.context->primary) return HEWN_CU_INVALID_CONTEXT;
    call.context->retained++;
    *context = call.context;
    return 0;
}

/* And once less; the last use destroys it. */
int cuCtxDetach(hewn_cu_context context)
{
    struct call call CALL_SCOPE;
    struct CUctx_st *named;
    int rc;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    rc = context_named(context, &named);
    if (rc) return rc;
    if (named->primary || named != context_current()) return HEWN_CU_INVALID_CONTEXT;
    if (!named->retained) return destroy(named);
    named->retained--;
    return 0;
}

int cuCtxPushCurrent_v2(hewn_cu_context context)
{
    struct call call CALL_SCOPE;
    struct CUctx_st *named;
    int rc;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    rc = context_named(context, &named);
    return rc ? rc : push(named);
}

int cuCtxPopCurrent_v2(hewn_cu_context *context)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!call.context) return HEWN_CU_INVALID_CONTEXT;
    if (context) *context = call.context;
    stack.depth--;
    return 0;
}

/* Replaces the top of the stack; NULL pops it. */
int cuCtxSetCurrent(hewn_cu_context context)
{
    struct call call CALL_SCOPE;
    struct CUctx_st *named;
    int rc;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!context) {
        if (stack.depth) stack.depth--;
        return 0;
    }
    rc = context_named(context, &named);
    if (rc) return rc;
    if (!stack.depth) return push(named);
    stack.contexts[stack.depth - 1] = named;
    return 0;
}

int cuCtxGetCurrent(hewn_cu_context *context)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!context) return HEWN_CU_INVALID_VALUE;
    *context = call.context;
    return 0;
}

/* ---- about a context ---- */

/* Enters a call about `context`, or about the current one where that is NULL. */
static int enter_named(struct call *call, hewn_cu_context context, unsigned needs)
{
    if (!context) return call_enter(call, needs);
    if (call_enter(call, NEED_INIT)) return call->rc;
    return call->rc = context_named(context, &call->context);
}

int cuCtxGetDevice(hewn_cu_device *device)
{
    return cuCtxGetDevice_v2(device, NULL);
}

int cuCtxGetDevice_v2(hewn_cu_device *device, hewn_cu_context context)
{
    struct call call CALL_SCOPE;

    if (enter_named(&call, context, NEED_INIT | NEED_CONTEXT)) return call.rc;
    if (!device) return HEWN_CU_INVALID_VALUE;
    *device = 0;
    return 0;
}

int cuCtxGetId(hewn_cu_context context, unsigned long long *id)
{
    struct call call CALL_SCOPE;

    if (enter_named(&call, context, NEED_INIT | NEED_CONTEXT)) return call.rc;
    if (!id) return HEWN_CU_INVALID_VALUE;
    *id = call.context->id;
    return 0;
}

int cuCtxSynchronize(void)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_SYNC)) return call.rc;
    deferred_finish_context(call.context);
    beside_host_all();
    return call.context->fault;
}

int cuCtxSynchronize_v2(hewn_cu_context context)
{
    struct call call CALL_SCOPE;
    int fault;

    if (enter_named(&call, context, CALL_SYNC)) return call.rc;
    deferred_finish_context(call.context);
    beside_host_all();
    if (call.context->fault) return call.context->fault;
    fault = call.context->strict_fault;
    call.context->strict_fault = 0;
    return fault;
}

int cuCtxGetApiVersion(hewn_cu_context context, unsigned *version)
{
    struct call call CALL_SCOPE;

    if (enter_named(&call, context, NEED_INIT | NEED_CONTEXT)) return call.rc;
    if (!version) return HEWN_CU_INVALID_VALUE;
    *version = call.context->api_version;
    return 0;
}

int cuCtxGetFlags(unsigned *flags)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_RELEASE)) return call.rc;
    if (!flags) return HEWN_CU_INVALID_VALUE;
    *flags = call.context->flags;
    return 0;
}

int cuCtxSetFlags(unsigned flags)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_RELEASE)) return call.rc;
    if (flags > 0xFF) return HEWN_CU_INVALID_VALUE;
    call.context->flags = flags;
    return 0;
}

int cuCtxGetLimit(size_t *value, int limit)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!value) return HEWN_CU_INVALID_VALUE;
    if (limit == LIMIT_GRAPHICS) {
        *value = 0;
        return 0;
    }
    if (limit < 0 || limit >= LIMIT_COUNT) return HEWN_CU_UNSUPPORTED_LIMIT;
    *value = call.context->limits[limit];
    return 0;
}

int cuCtxSetLimit(int limit, size_t value)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (limit < 0 || limit >= LIMIT_COUNT || limit == HEWN_CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH)
        return HEWN_CU_UNSUPPORTED_LIMIT;
    call.context->limits[limit] = value;
    return 0;
}

static int get_config(const struct call *call, int *out, int value)
{
    if (call->rc) return call->rc;
    if (!out) return HEWN_CU_INVALID_VALUE;
    *out = value;
    return 0;
}

int cuCtxGetCacheConfig(int *config)
{
    struct call call CALL_SCOPE;
    call_enter(&call, CALL_PLAIN);
    return get_config(&call, config, call.rc ? 0 : call.context->cache_config);
}

int cuCtxSetCacheConfig(int config)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (config < 0 || config > 3) return HEWN_CU_INVALID_VALUE;
    call.context->cache_config = config;
    return 0;
}

int cuCtxGetSharedMemConfig(int *config)
{
    struct call call CALL_SCOPE;
    call_enter(&call, CALL_PLAIN);
    return get_config(&call, config, call.rc ? 0 : call.context->shared_config);
}

int cuCtxSetSharedMemConfig(int config)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (config < 0 || config > 2) return HEWN_CU_INVALID_VALUE;
    call.context->shared_config = config;
    return 0;
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return 0;
}

int cuCtxResetPersistingL2Cache(void)
{
    struct call call CALL_SCOPE;
    return call_enter(&call, CALL_PLAIN);
}
