/* Encoding of tensor maps. The driver says no more than "invalid argument"; the rule that was
 * broken goes to stderr, since whoever debugs on the simulator wants to know it. */
#include "cuda/driver.h"
#include "async/tmap.h"

enum { MAP_ALIGN = 64, RANK_MAX = 5 };

/* What both encoders share. */
struct map_request {
    void *map;
    int type;
    uint32_t rank;
    void *address;
    const uint64_t *dim, *strides;
    const uint32_t *element_strides;
    int interleave, swizzle, l2, oob;
};

static bool in_byte(int value)
{
    return value >= 0 && value <= UINT8_MAX;
}

/* Fills what the two kinds of map have in common; `why` names the argument that cannot be. */
static int gather(const struct map_request *r, struct tmap *t, const char **why)
{
    *why = NULL;
    if (!r->map || (uintptr_t)r->map % MAP_ALIGN)
        *why = "tensorMap is not 64-byte aligned";
    else if (!r->dim)
        *why = "globalDim is NULL";
    else if (!r->element_strides)
        *why = "elementStrides is NULL";
    else if (!r->rank || r->rank > RANK_MAX)
        *why = "tensorRank is not within 1..5";
    else if (r->rank > 1 && !r->strides)
        *why = "globalStrides is NULL";
    else if (!in_byte(r->type) || !in_byte(r->interleave) || !in_byte(r->swizzle) ||
             !in_byte(r->l2) || !in_byte(r->oob))
        *why = "an enumeration has a value that it does not know";
    if (*why) return HEWN_CU_INVALID_VALUE;
    *t = (struct tmap){.address = (uint64_t)(uintptr_t)r->address,
                       .dtype = (uint8_t)r->type,
                       .rank = (uint8_t)r->rank,
                       .interleave = (uint8_t)r->interleave,
                       .swizzle = (uint8_t)r->swizzle,
                       .l2 = (uint8_t)r->l2,
                       .oob = (uint8_t)r->oob};
    t->stride[0] = tmap_elem_bytes(t->dtype);
    for (uint32_t i = 0; i < r->rank; i++) {
        t->dim[i] = r->dim[i];
        t->element_stride[i] = r->element_strides[i];
        if (i) t->stride[i] = r->strides[i - 1];
    }
    return 0;
}

static int finish(const struct tmap *t, void *map, const char *function)
{
    char why[256] = "";
    int rc = tmap_validate(t, driver.settings.gpu.cc_major, why, sizeof why);

    if (rc) {
        driver_note("%s: %s", function, why);
        return rc;
    }
    tmap_encode(t, map);
    return 0;
}

int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dim,
                           const uint64_t *strides, const uint32_t *box,
                           const uint32_t *element_strides, int interleave, int swizzle, int l2,
                           int oob)
{
    struct call call CALL_SCOPE;
    const struct map_request request = {
        map, type, rank, address, dim, strides, element_strides, interleave, swizzle, l2, oob};
    const char *why;
    struct tmap t;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (gather(&request, &t, &why) || !box) {
        driver_note("cuTensorMapEncodeTiled: %s", why ? why : "boxDim is NULL");
        return HEWN_CU_INVALID_VALUE;
    }
    for (uint32_t i = 0; i < rank; i++) t.box[i] = box[i];
    return finish(&t, map, "cuTensorMapEncodeTiled");
}

int cuTensorMapEncodeIm2col(void *map, int type, uint32_t rank, void *address, const uint64_t *dim,
                            const uint64_t *strides, const int *lower, const int *upper,
                            uint32_t channels, uint32_t pixels, const uint32_t *element_strides,
                            int interleave, int swizzle, int l2, int oob)
{
    struct call call CALL_SCOPE;
    const struct map_request request = {
        map, type, rank, address, dim, strides, element_strides, interleave, swizzle, l2, oob};
    const char *why;
    struct tmap t;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (gather(&request, &t, &why) || !lower || !upper) {
        driver_note("cuTensorMapEncodeIm2col: %s", why ? why : "a box corner is NULL");
        return HEWN_CU_INVALID_VALUE;
    }
    t.im2col = 1;
    t.channels = channels;
    t.pixels = pixels;
    for (uint32_t i = 0; i + 2 < rank; i++) { /* every dimension but channels and batch */
        t.lower[i] = lower[i];
        t.upper[i] = upper[i];
    }
    return finish(&t, map, "cuTensorMapEncodeIm2col");
}

int cuTensorMapEncodeIm2colWide(void *map, int type, uint32_t rank, void *address,
                                const uint64_t *dim, const uint64_t *strides, int lower, int upper,
                                uint32_t channels, uint32_t pixels, const uint32_t *element_strides,
                                int interleave, int mode, int swizzle, int l2, int oob)
{
    struct call call CALL_SCOPE;
    const struct map_request request = {
        map, type, rank, address, dim, strides, element_strides, interleave, swizzle, l2, oob};
    const char *why;
    struct tmap t;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (gather(&request, &t, &why) || mode < 0 || mode > 1) {
        driver_note("cuTensorMapEncodeIm2colWide: %s", why ? why : "mode is not 0 or 1");
        return HEWN_CU_INVALID_VALUE;
    }
    t.im2col = 1;
    /* Measured: for an H200 the driver judges and encodes it as any im2col map. */
    if (driver.settings.gpu.cc_major >= 10) t.wide = (uint8_t)(TMAP_WIDE + mode);
    t.channels = channels;
    t.pixels = pixels;
    t.lower[0] = lower;
    t.upper[0] = upper;
    return finish(&t, map, "cuTensorMapEncodeIm2colWide");
}

/* Measured: the driver asks nothing of the map, and takes an address of 54 bits, not one of 61. */
int cuTensorMapReplaceAddress(void *map, void *address)
{
    enum { ADDRESS_BITS = 57, ADDRESS_ALIGN = 16 };
    struct call call CALL_SCOPE;
    uint64_t value = (uint64_t)(uintptr_t)address;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!map || (uintptr_t)map % MAP_ALIGN || value % ADDRESS_ALIGN || value >> ADDRESS_BITS)
        return HEWN_CU_INVALID_VALUE;
    tmap_replace(map, TMAP_FIELD_ADDRESS, 0, value);
    return 0;
}
