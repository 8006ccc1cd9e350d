/*
 * Tiled tensor maps: the rules of cuTensorMapEncodeTiled (CUDA Driver API, "Tensor Map Object
 * Management"), checked before the driver's bare "invalid argument", and the encoding.
 *
 * A case that the reference leaves open is refused, so the driver accepts everything that passes. Each
 * such place says "interpretation".
 */
#include "context.h"

#include "error.h"
#include "structs.h"

#include <stdint.h>
#include <string.h>

enum {
    MAX_BOX = 256,
    MAX_BOX_BYTES = 233472, /* undocumented: an SM's shared memory (H200, driver 580) */
    MAX_ELEMENT_STRIDE = 8,
    P16_BOX = 128,    /* the only inner box, and the unit of dim[0], of the 16-byte packed types */
    PACKED_CC = 10,   /* compute capability, major, that brought packed types and atom swizzles */
    ADDRESS_BITS = 57 /* widest device address of the parts so far (interpretation) */
};

static const uint64_t max_dim = UINT64_C(1) << 32;
static const uint64_t stride_end = UINT64_C(1) << 40;

enum kind { INTEGER, FLOATING, PACKED_8, PACKED_16 };

/* In the order of hewn_tensormap_dtype. box_bytes_16: bytes that 16 elements take in shared memory (the
 * ALIGN16B types spread theirs). */
static const struct dtype {
    const char *name;
    enum kind kind;
    uint32_t box_bytes_16;
    uint32_t swizzles; /* bit s: swizzle mode s is allowed */
} dtypes[] = {
    {"U8", INTEGER, 16, 0x7f},
    {"U16", INTEGER, 32, 0x7f},
    {"U32", INTEGER, 64, 0x7f},
    {"I32", INTEGER, 64, 0x7f},
    {"U64", INTEGER, 128, 0x7f},
    {"I64", INTEGER, 128, 0x7f},
    {"F16", FLOATING, 32, 0x7f},
    {"F32", FLOATING, 64, 0x7f},
    {"F64", FLOATING, 128, 0x7f},
    {"BF16", FLOATING, 32, 0x7f},
    {"F32_FTZ", FLOATING, 64, 0x7f},
    {"TF32", FLOATING, 64, 0x7f},
    {"TF32_FTZ", FLOATING, 64, 0x7f},
    {"16U4_ALIGN8B", PACKED_8, 8, 0x7f},
    {"16U4_ALIGN16B", PACKED_16, 16, 0x19}, /* none, 128B, 128B_ATOM_32B */
    {"16U6_ALIGN16B", PACKED_16, 16, 0x59}, /* those and 128B_ATOM_64B, which can only be stored */
};

static const struct swizzle {
    const char *name;
    uint32_t span; /* bytes that an inner box row may fill; 0: any */
    int cc_major;
} swizzles[] = {
    {"NONE", 0, 9},
    {"32B", 32, 9},
    {"64B", 64, 9},
    {"128B", 128, 9},
    {"128B_ATOM_32B", 128, PACKED_CC},
    {"128B_ATOM_32B_FLIP_8B", 128, PACKED_CC},
    {"128B_ATOM_64B", 128, PACKED_CC},
};

enum {
    DTYPES = sizeof dtypes / sizeof dtypes[0],
    SWIZZLES = sizeof swizzles / sizeof swizzles[0],
    INTERLEAVES = 3,
    PROMOTIONS = 4,
    FILLS = 2
};

static int is_packed(const struct dtype *type)
{
    return type->kind >= PACKED_8;
}

/* The alignment that interleave and dtype ask of the address and of every stride. */
static uint32_t alignment(const hewn_tensormap_desc *d)
{
    int wide = d->interleave == HEWN_TENSORMAP_INTERLEAVE_32B || dtypes[d->dtype].kind == PACKED_16;
    return wide ? 32 : 16;
}

static int check_range(const char *what, const char *field, int value, int count, hewn_error *err)
{
    if (value >= 0 && value < count) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %s %d is not in 0..%d", what, field, value,
                     count - 1);
}

static int check_modes(const hewn_tensormap_desc *d, const char *what, int cc_major,
                       hewn_error *err)
{
    if (check_range(what, "dtype", d->dtype, DTYPES, err) ||
        check_range(what, "interleave", d->interleave, INTERLEAVES, err) ||
        check_range(what, "swizzle", d->swizzle, SWIZZLES, err) ||
        check_range(what, "l2", d->l2, PROMOTIONS, err) ||
        check_range(what, "oob", d->oob, FILLS, err))
        return HEWN_ERR_ARGUMENT;
    const struct dtype *type = &dtypes[d->dtype];
    const struct swizzle *swizzle = &swizzles[d->swizzle];
    if (is_packed(type) && cc_major < PACKED_CC)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s: dtype %s needs compute capability %d.0, the device has %d.x", what,
                         type->name, PACKED_CC, cc_major);
    if (cc_major < swizzle->cc_major)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s: swizzle %s needs compute capability %d.0, the device has %d.x", what,
                         swizzle->name, swizzle->cc_major, cc_major);
    if (!(type->swizzles >> d->swizzle & 1))
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: swizzle %s does not go with dtype %s", what,
                         swizzle->name, type->name);
    /* The reference says so of 16U6 alone; refused for the other packed types (interpretation). */
    if (is_packed(type) && d->interleave != HEWN_TENSORMAP_INTERLEAVE_NONE)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: interleave %d does not go with dtype %s",
                         what, d->interleave, type->name);
    /* The reference asks for swizzle 32B with interleave 32B; driver 580 takes any. */
    if (d->oob == HEWN_TENSORMAP_OOB_NAN && type->kind != FLOATING)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: oob NaN needs a floating-point dtype, not %s",
                         what, type->name);
    return HEWN_OK;
}

static int check_global(const hewn_tensormap_desc *d, const char *what, hewn_error *err)
{
    const struct dtype *type = &dtypes[d->dtype];
    uint32_t align = alignment(d);
    if (d->address % align)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: address 0x%llx is not a multiple of %u", what,
                         d->address, align);
    if (d->address >> ADDRESS_BITS)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: address 0x%llx is not below 2^%d", what,
                         d->address, ADDRESS_BITS);
    for (int i = 0; i < d->rank; i++)
        if (d->dim[i] == 0 || d->dim[i] > max_dim)
            return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: dim[%d] %llu is not in 1..2^32", what, i,
                             (unsigned long long)d->dim[i]);
    uint64_t unit = type->kind == PACKED_16 ? P16_BOX : type->kind == PACKED_8 ? 2 : 1;
    if (d->dim[0] % unit)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s: dim[0] %llu is not a multiple of %llu, which dtype %s needs", what,
                         (unsigned long long)d->dim[0], (unsigned long long)unit, type->name);
    static const char *const names[] = {"row stride", "stride[1]", "stride[2]", "stride[3]"};
    for (int i = 0; i + 1 < d->rank; i++) {
        unsigned long long stride = d->stride[i];
        if (stride % align)
            return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %s %llu B is not a multiple of %u B",
                             what, names[i], stride, align);
        if (stride >= stride_end)
            return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %s %llu B is not below 2^40 B", what,
                             names[i], stride);
    }
    return HEWN_OK;
}

static int check_box(const hewn_tensormap_desc *d, const char *what, hewn_error *err)
{
    const struct dtype *type = &dtypes[d->dtype];
    for (int i = 0; i < d->rank; i++) {
        if (d->box[i] == 0 || d->box[i] > MAX_BOX)
            return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: box[%d] %u is not in 1..%d", what, i,
                             d->box[i], MAX_BOX);
        /* The driver ignores element_stride[0] without interleave. The rule applies to it all the
         * same, because a value there is a mistake (interpretation). */
        if (d->element_stride[i] > MAX_ELEMENT_STRIDE)
            return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: element_stride[%d] %u is not in 1..%d",
                             what, i, d->element_stride[i], MAX_ELEMENT_STRIDE);
    }
    if (type->kind == PACKED_16 && d->box[0] != P16_BOX)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: box[0] %u must be %d for dtype %s", what,
                         d->box[0], P16_BOX, type->name);
    /* Measured: the driver divides by the stride and rounds down, in dimension 0 too. So a box smaller
     * than its stride makes the product 0. The slices of interleave do not count. */
    uint64_t bytes = type->box_bytes_16;
    for (int i = 0; i < d->rank; i++)
        bytes *= d->box[i] / (d->element_stride[i] ? d->element_stride[i] : 1);
    if (bytes / 16 > MAX_BOX_BYTES)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: a box of %llu B is more than %d B", what,
                         (unsigned long long)(bytes / 16), MAX_BOX_BYTES);
    /* Measured: with interleave too, which the reference does not mention. */
    uint32_t bits = d->box[0] * type->box_bytes_16 * 8 / 16;
    if (bits % 128)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s: box[0] %u of dtype %s is %u.%u B, not a multiple of 16 B", what,
                         d->box[0], type->name, bits / 8, bits % 8 * 10 / 8);
    if (d->interleave != HEWN_TENSORMAP_INTERLEAVE_NONE) return HEWN_OK;
    uint32_t span = swizzles[d->swizzle].span;
    if (span && bits / 8 > span)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s: box[0] %u of dtype %s is %u B, more than the %u B of swizzle %s",
                         what, d->box[0], type->name, bits / 8, span, swizzles[d->swizzle].name);
    return HEWN_OK;
}

static int check(const hewn_tensormap_desc *desc, const char *what, int cc_major, int cc_minor,
                 hewn_error *err)
{
    if (cc_major < 9)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s: tensor maps need compute capability 9.0, the device has %d.%d", what,
                         cc_major, cc_minor);
    int status = check_modes(desc, what, cc_major, err);
    if (status) return status;
    int least = desc->interleave == HEWN_TENSORMAP_INTERLEAVE_NONE ? 1 : 3;
    if (desc->rank < least || desc->rank > 5)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: rank %d is not in %d..5%s", what, desc->rank,
                         least, least == 3 ? ", which interleave needs" : "");
    status = check_global(desc, what, err);
    if (status) return status;
    return check_box(desc, what, err);
}

int hewn_tensormap_check(const hewn_tensormap_desc *desc, const char *what, int cc_major,
                         int cc_minor, hewn_error *err)
{
    hewn_tensormap_desc d;
    int status = hewn_struct_take(HEWN_STRUCT_hewn_tensormap_desc, desc, &d, err);
    return status ? status : check(&d, what ? what : "tensor", cc_major, cc_minor, err);
}

hewn_cu_result hewn_tensormap_encode_raw(const hewn_driver *driver, hewn_cu_tensor_map *map,
                                         const hewn_tensormap_desc *d, hewn_deviceptr address)
{
    return driver->fn.tensor_map_encode_tiled(map, d->dtype, (uint32_t)d->rank,
                                              hewn_as_pointer(address), d->dim, d->stride, d->box,
                                              d->element_stride, d->interleave, d->swizzle, d->l2,
                                              d->oob);
}

hewn_cu_result hewn_map_prepare(const hewn_driver *driver, struct hewn_map *map)
{
    enum { SOMEWHERE = 1 << 20 }; /* aligned as any map asks */
    hewn_cu_tensor_map encoded;
    if (!driver->fn.tensor_map_replace_address) return HEWN_CU_SUCCESS;
    hewn_cu_result r = hewn_tensormap_encode_raw(driver, &encoded, &map->desc, SOMEWHERE);
    if (!r) memcpy(map->encoded, &encoded, sizeof encoded);
    return r;
}

hewn_cu_result hewn_map_place(const hewn_driver *driver, const struct hewn_map *map,
                              hewn_deviceptr address, hewn_cu_tensor_map *out)
{
    if (!driver->fn.tensor_map_replace_address)
        return hewn_tensormap_encode_raw(driver, out, &map->desc, address);
    memcpy(out, map->encoded, sizeof *out);
    return driver->fn.tensor_map_replace_address(out, hewn_as_pointer(address));
}

const char *hewn_map_call(const hewn_driver *driver)
{
    return driver->fn.tensor_map_replace_address ? "cuTensorMapReplaceAddress"
                                                 : "cuTensorMapEncodeTiled";
}

int hewn_tensormap_encode(const hewn_context *context, const hewn_tensormap_desc *desc,
                          const char *what, hewn_tensormap *out, hewn_error *err)
{
    if (!what) what = "tensor";
    if (!context) return hewn_fail_null(err, "context");
    if (!out) return hewn_fail_null(err, "out");
    if ((uintptr_t)out % _Alignof(hewn_cu_tensor_map))
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "out: address %p is not a multiple of %zu",
                         (void *)out, _Alignof(hewn_cu_tensor_map));
    hewn_tensormap_desc full;
    int status = hewn_struct_take(HEWN_STRUCT_hewn_tensormap_desc, desc, &full, err);
    if (!status) status = check(&full, what, context->info.cc_major, context->info.cc_minor, err);
    if (status) return status;
    if (!context->driver->fn.tensor_map_encode_tiled)
        return hewn_fail(err, HEWN_ERR_SYMBOL, "%s: the driver lacks cuTensorMapEncodeTiled", what);
    for (int i = 0; i < full.rank; i++)
        if (full.element_stride[i] == 0) full.element_stride[i] = 1;
    hewn_cu_tensor_map map;
    hewn_cu_result r = hewn_tensormap_encode_raw(context->driver, &map, &full, full.address);
    if (r) return hewn_fail_driver(err, context->driver, r, "cuTensorMapEncodeTiled", "%s", what);
    memcpy(out, &map, sizeof map);
    return HEWN_OK;
}
