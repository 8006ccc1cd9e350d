/* The element types of hewn.h, apart from any kernel family so that naming one links no kernel. */
#include "hewn.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {[HEWN_F32] = {"f32", 4},   [HEWN_F16] = {"f16", 2},   [HEWN_BF16] = {"bf16", 2},
              [HEWN_E4M3] = {"e4m3", 1}, [HEWN_E5M2] = {"e5m2", 1}, [HEWN_S8] = {"s8", 1},
              [HEWN_S32] = {"s32", 4},   [HEWN_E2M1] = {"e2m1", 0}};

static int is_dtype(int dtype)
{
    return dtype >= 0 && (size_t)dtype < sizeof dtypes / sizeof dtypes[0];
}

size_t hewn_dtype_size(int dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].size : 0;
}

const char *hewn_dtype_name(int dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].name : NULL;
}
