/*
 * Launches as of CUDA 2: block, shared memory and parameters are set at the function, one call each, and stay. PyCUDA
 * still calls the first of these.
 */
#include "cuda/driver.h"

#include <stdlib.h>
#include <string.h>

enum { PARAMETERS_MOST = 4096 /* bytes, as of CUDA before 12.1 */ };

struct legacy_launch {
    unsigned block[3], shared_bytes;
    size_t bytes;
    unsigned char parameters[PARAMETERS_MOST];
};

/* What was set at the function, made when first needed. */
static int legacy_of(hewn_cu_function function, struct legacy_launch **out)
{
    struct CUfunc_st *f = handle_get(function, HANDLE_FUNCTION);

    if (!f) return HEWN_CU_INVALID_HANDLE;
    if (!f->legacy) f->legacy = calloc(1, sizeof *f->legacy);
    if (!f->legacy) return HEWN_CU_OUT_OF_MEMORY;
    *out = f->legacy;
    return 0;
}

int cuFuncSetBlockShape(hewn_cu_function function, int x, int y, int z)
{
    struct call call CALL_SCOPE;
    struct legacy_launch *l;
    int rc;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (x <= 0 || y <= 0 || z <= 0) return HEWN_CU_INVALID_VALUE;
    rc = legacy_of(function, &l);
    if (rc) return rc;
    l->block[0] = (unsigned)x;
    l->block[1] = (unsigned)y;
    l->block[2] = (unsigned)z;
    return 0;
}

int cuFuncSetSharedSize(hewn_cu_function function, unsigned bytes)
{
    struct call call CALL_SCOPE;
    struct legacy_launch *l;
    int rc;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    rc = legacy_of(function, &l);
    if (!rc) l->shared_bytes = bytes;
    return rc;
}

int cuParamSetSize(hewn_cu_function function, unsigned bytes)
{
    struct call call CALL_SCOPE;
    struct legacy_launch *l;
    int rc;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (bytes > PARAMETERS_MOST) return HEWN_CU_INVALID_VALUE;
    rc = legacy_of(function, &l);
    if (!rc) l->bytes = bytes;
    return rc;
}

int cuParamSetv(hewn_cu_function function, int offset, void *from, unsigned bytes)
{
    struct call call CALL_SCOPE;
    struct legacy_launch *l;
    int rc;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!from || offset < 0 || bytes > PARAMETERS_MOST ||
        (unsigned)offset > PARAMETERS_MOST - bytes)
        return HEWN_CU_INVALID_VALUE;
    rc = legacy_of(function, &l);
    if (!rc) memcpy(l->parameters + offset, from, bytes);
    return rc;
}

int cuParamSeti(hewn_cu_function function, int offset, unsigned value)
{
    return cuParamSetv(function, offset, &value, sizeof value);
}

int cuParamSetf(hewn_cu_function function, int offset, float value)
{
    return cuParamSetv(function, offset, &value, sizeof value);
}

static int legacy_copy(hewn_cu_function function, struct legacy_launch *out)
{
    struct call call CALL_SCOPE;
    struct legacy_launch *l;
    int rc;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    rc = legacy_of(function, &l);
    if (!rc) *out = *l;
    return rc;
}

int cuLaunchGridAsync(hewn_cu_function function, int width, int height, hewn_cu_stream stream)
{
    struct legacy_launch l = {.bytes = 0};
    void *extra[] = {HEWN_CU_PARAM_BUFFER_POINTER, l.parameters, HEWN_CU_PARAM_BUFFER_SIZE,
                     &l.bytes, NULL};
    int rc = legacy_copy(function, &l);

    if (rc) return rc;
    if (width <= 0 || height <= 0 || !l.block[0]) return HEWN_CU_INVALID_VALUE;
    return cuLaunchKernel(function, (unsigned)width, (unsigned)height, 1, l.block[0], l.block[1],
                          l.block[2], l.shared_bytes, stream, NULL, extra);
}

int cuLaunchGrid(hewn_cu_function function, int width, int height)
{
    return cuLaunchGridAsync(function, width, height, NULL);
}

int cuLaunch(hewn_cu_function function)
{
    return cuLaunchGridAsync(function, 1, 1, NULL);
}
