/*
 * Green contexts: parts of the device's SMs. A green context is a number of SMs and streams on which launches use that
 * many. Its context is the primary one (cuCtxFromGreenCtx), so the default streams there have the whole device. Which SMs a
 * part has is not modelled: two parts are just as apart as two streams are.
 */
#include "cuda/driver.h"

#include <stdlib.h>

/* As the driver tells them for compute capability 9.0 and later; a device of few SMs can be split all the same. */
enum { PARTITION_SMS = 8, APART_SMS = 2, SMALL_DEVICE = 2 * PARTITION_SMS };

struct CUgreenCtx_st {
    uint32_t sm_count;
    unsigned long long id;
    hewn_cu_context context;
};

/* A set of resources is its number of SMs, marked as such. */
enum { SET_SHIFT = 8, SET_MARK = 0x6D };

static uint32_t partition_unit(bool apart)
{
    if (driver.settings.gpu.sm_count < SMALL_DEVICE) return 1;
    return apart ? APART_SMS : PARTITION_SMS;
}

static void fill(hewn_cu_dev_resource *out, uint32_t sm_count)
{
    *out = (hewn_cu_dev_resource){.type = sm_count ? HEWN_CU_DEV_RESOURCE_SM
                                                   : HEWN_CU_DEV_RESOURCE_INVALID};
    if (!sm_count) return;
    out->sm.sm_count = sm_count;
    out->sm.min_partition = out->sm.alignment = partition_unit(false);
}

static int tell(hewn_cu_dev_resource *out, int type, uint32_t sm_count)
{
    if (!out) return HEWN_CU_INVALID_VALUE;
    if (type != HEWN_CU_DEV_RESOURCE_SM) return HEWN_CU_INVALID_RESOURCE_TYPE;
    fill(out, sm_count);
    return 0;
}

int cuDeviceGetDevResource(hewn_cu_device device, hewn_cu_dev_resource *resource, int type)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (device) return HEWN_CU_INVALID_DEVICE;
    return tell(resource, type, driver.settings.gpu.sm_count);
}

int cuCtxGetDevResource(hewn_cu_context context, hewn_cu_dev_resource *resource, int type)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!handle_get(context, HANDLE_CONTEXT)) return HEWN_CU_INVALID_CONTEXT;
    return tell(resource, type, driver.settings.gpu.sm_count);
}

static int enter_green(struct call *call, hewn_cu_green green)
{
    if (call_enter(call, NEED_INIT)) return call->rc;
    return call->rc = handle_get(green, HANDLE_GREEN) ? 0 : HEWN_CU_INVALID_CONTEXT;
}

int cuGreenCtxGetDevResource(hewn_cu_green green, hewn_cu_dev_resource *resource, int type)
{
    struct call call CALL_SCOPE;

    if (enter_green(&call, green)) return call.rc;
    return tell(resource, type, green->sm_count);
}

int cuDevSmResourceSplitByCount(hewn_cu_dev_resource *result, unsigned *groups,
                                const hewn_cu_dev_resource *input, hewn_cu_dev_resource *remaining,
                                unsigned flags, unsigned least)
{
    struct call call CALL_SCOPE;
    const uint32_t unit = partition_unit(flags & HEWN_CU_SPLIT_IGNORE_COSCHEDULING);
    uint32_t each, count;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!groups || !input || flags > 3) return HEWN_CU_INVALID_VALUE;
    if (input->type != HEWN_CU_DEV_RESOURCE_SM) return HEWN_CU_INVALID_RESOURCE_TYPE;
    if (least > input->sm.sm_count) {
        driver_note("a part of %u SMs is asked for, and there are %u (HEWN_SIM_SMS)", least,
                    input->sm.sm_count);
        return HEWN_CU_INVALID_RESOURCE_CONFIGURATION;
    }
    each = least ? (least + unit - 1) / unit * unit : unit;
    count = input->sm.sm_count / each;
    if (result && *groups < count) count = *groups;
    if (!count) return HEWN_CU_INVALID_RESOURCE_CONFIGURATION;
    for (uint32_t i = 0; result && i < count; i++) fill(&result[i], each);
    if (remaining) fill(remaining, input->sm.sm_count - count * each);
    *groups = count;
    return 0;
}

int cuDevResourceGenerateDesc(hewn_cu_resource_set *set, const hewn_cu_dev_resource *resources,
                              unsigned count)
{
    struct call call CALL_SCOPE;
    uintptr_t sms = 0;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!set || !resources || !count) return HEWN_CU_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (resources[i].type != HEWN_CU_DEV_RESOURCE_SM) return HEWN_CU_INVALID_RESOURCE_TYPE;
        sms += resources[i].sm.sm_count;
    }
    if (!sms || sms > driver.settings.gpu.sm_count) return HEWN_CU_INVALID_RESOURCE_CONFIGURATION;
    *set = (hewn_cu_resource_set)(sms << SET_SHIFT | SET_MARK);
    return 0;
}

static int green_new(hewn_cu_green *green, uint32_t sm_count, hewn_cu_context context)
{
    struct call call CALL_SCOPE;
    struct CUgreenCtx_st *fresh;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    fresh = calloc(1, sizeof *fresh);
    if (!fresh) return HEWN_CU_OUT_OF_MEMORY;
    *fresh = (struct CUgreenCtx_st){sm_count, ++driver.next_id, context};
    if (handle_add(fresh, HANDLE_GREEN, fresh, NULL)) {
        free(fresh);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    *green = fresh;
    return 0;
}

int cuGreenCtxCreate(hewn_cu_green *green, hewn_cu_resource_set set, hewn_cu_device device,
                     unsigned flags)
{
    const uintptr_t value = (uintptr_t)set;
    hewn_cu_context context = NULL;
    int rc;

    if (!green || (value & ((1U << SET_SHIFT) - 1)) != SET_MARK ||
        flags != HEWN_CU_GREEN_DEFAULT_STREAM)
        return HEWN_CU_INVALID_VALUE;
    rc = cuDevicePrimaryCtxRetain(&context, device);
    if (rc) return rc;
    rc = green_new(green, (uint32_t)(value >> SET_SHIFT), context);
    if (rc) (void)cuDevicePrimaryCtxRelease_v2(device);
    return rc;
}

static int green_drop(hewn_cu_green green)
{
    struct call call CALL_SCOPE;

    if (enter_green(&call, green)) return call.rc;
    handle_drop(green);
    free(green);
    return 0;
}

int cuGreenCtxDestroy(hewn_cu_green green)
{
    int rc = green_drop(green);
    return rc ? rc : cuDevicePrimaryCtxRelease_v2(0);
}

void greens_free_all(void)
{
    size_t at = 0;
    void *object;

    while ((object = handle_next(HANDLE_GREEN, NULL, &at))) {
        handle_drop(object);
        free(object);
    }
}

int cuCtxFromGreenCtx(hewn_cu_context *context, hewn_cu_green green)
{
    struct call call CALL_SCOPE;

    if (enter_green(&call, green)) return call.rc;
    if (!context) return HEWN_CU_INVALID_VALUE;
    *context = green->context;
    return 0;
}

int cuGreenCtxGetId(hewn_cu_green green, unsigned long long *id)
{
    struct call call CALL_SCOPE;

    if (enter_green(&call, green)) return call.rc;
    if (!id) return HEWN_CU_INVALID_VALUE;
    *id = green->id;
    return 0;
}

int cuGreenCtxRecordEvent(hewn_cu_green green, hewn_cu_event event)
{
    hewn_cu_context context;
    int rc = cuCtxFromGreenCtx(&context, green);
    return rc ? rc : cuCtxRecordEvent(context, event);
}

int cuGreenCtxWaitEvent(hewn_cu_green green, hewn_cu_event event)
{
    hewn_cu_context context;
    int rc = cuCtxFromGreenCtx(&context, green);
    return rc ? rc : cuCtxWaitEvent(context, event);
}

/* Its streams do not wait for the legacy one (Driver API, cuGreenCtxStreamCreate). */
int cuGreenCtxStreamCreate(hewn_cu_stream *stream, hewn_cu_green green, unsigned flags,
                           int priority)
{
    struct call call CALL_SCOPE;
    struct CUctx_st *context;

    if (enter_green(&call, green)) return call.rc;
    context = handle_get(green->context, HANDLE_CONTEXT);
    if (!context) return HEWN_CU_INVALID_CONTEXT;
    if (!stream || flags != HEWN_CU_STREAM_NON_BLOCKING) return HEWN_CU_INVALID_VALUE;
    return stream_new(context, flags, priority, green, green->sm_count, stream);
}

int cuStreamGetGreenCtx(hewn_cu_stream stream, hewn_cu_green *green)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;

    if (enter_stream(&call, CALL_PLAIN, stream, &s)) return call.rc;
    if (!green) return HEWN_CU_INVALID_VALUE;
    *green = handle_get(s->green, HANDLE_GREEN);
    return 0;
}
