/*
 * Tensor maps: the driver's rules (CUDA Driver API, cuTensorMapEncodeTiled / Im2col). The 128 opaque
 * bytes: tmap_bits.c. What a box copy does with a map: tmap_copy.c.
 */
#include "async/tmap.h"
#include "async/tmap_copy.h"

#include <stdarg.h>
#include <stdio.h>

/* name, bits of an element, floating */
#define TMAP_DTYPES(X)       \
    X("U8", 8, 0)            \
    X("U16", 16, 0)          \
    X("U32", 32, 0)          \
    X("I32", 32, 0)          \
    X("U64", 64, 0)          \
    X("I64", 64, 0)          \
    X("F16", 16, 1)          \
    X("F32", 32, 1)          \
    X("F64", 64, 1)          \
    X("BF16", 16, 1)         \
    X("F32_FTZ", 32, 1)      \
    X("TF32", 32, 1)         \
    X("TF32_FTZ", 32, 1)     \
    X("16U4_ALIGN8B", 4, 0)  \
    X("16U4_ALIGN16B", 4, 0) \
    X("16U6_ALIGN16B", 6, 0)

static const struct dtype {
    const char *name;
    uint8_t bits;
    bool floating;
} dtypes[] = {
#define X(name, bits, floating) {name, bits, floating},
    TMAP_DTYPES(X)
#undef X
};

enum {
    DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0],
    MAX_BOX = 256,
    MAX_ELEMENT_STRIDE = 8,
    MAX_BOX_BYTES = 233472 /* measured: driver 580 on an H200 takes 233,472 and refuses more */
};

/* Interleave values of the driver's enum. */
enum { INTERLEAVE_NONE, INTERLEAVE_16B, INTERLEAVE_32B };

/* Bytes that a row may fill, by swizzle; 0: any. */
static const uint16_t swizzle_spans[] = {0, 32, 64, 128, 128, 128, 128, 96};

static bool is_packed16(uint32_t dtype)
{
    return dtype == TMAP_U4_ALIGN16 || dtype == TMAP_U6_ALIGN16;
}

uint32_t tmap_elem_bits(uint32_t dtype)
{
    return dtype < DTYPE_COUNT ? dtypes[dtype].bits : 0;
}

uint32_t tmap_elem_bytes(uint32_t dtype)
{
    return tmap_elem_bits(dtype) / 8; /* 0 for the packed ones */
}

uint32_t tmap_unit_bits(const struct tmap *t)
{
    if (t->interleave) return t->interleave == INTERLEAVE_32B ? 256 : 128;
    return tmap_elem_bits(t->dtype);
}

uint32_t tmap_row_bytes(const struct tmap *t)
{
    uint32_t elements = t->im2col ? t->channels : t->box[0];
    if (t->interleave) return tmap_unit_bits(t) / 8;
    /* Packed into shared memory with padding: 16 elements take 16 bytes. */
    if (is_packed16(t->dtype)) return elements;
    return elements * tmap_unit_bits(t) / 8;
}

uint32_t tmap_row_pitch(const struct tmap *t)
{
    uint32_t bytes = tmap_row_bytes(t), span = swizzle_spans[t->swizzle];
    return span && !t->interleave ? (bytes + span - 1) / span * span : bytes;
}

uint32_t tmap_extent(const struct tmap *t, uint32_t d)
{
    if (d == 0 && !t->interleave) return t->box[0];
    if (t->interleave && d + 2 == t->rank)
        return 1; /* one slice at a time, whatever the box says */
    return (t->box[d] + t->element_stride[d] - 1) / t->element_stride[d];
}

uint32_t tmap_rows(const struct tmap *t)
{
    uint32_t rows = 1;
    if (t->rows4) return 4;
    if (t->wide == TMAP_WIDE_128)
        return TMAP_W128_PIXELS + (uint32_t)(TMAP_W128_PIXELS / TMAP_W128_RUN * t->halo);
    if (t->im2col) return t->pixels + t->halo;
    for (uint32_t d = t->interleave ? 0 : 1; d < t->rank; d++) rows *= tmap_extent(t, d);
    return rows;
}

uint32_t tmap_box_bytes(const struct tmap *t)
{
    return tmap_row_bytes(t) * tmap_rows(t);
}

uint32_t tmap_signal_bytes(const struct tmap *t)
{
    const uint32_t bytes = tmap_box_bytes(t);
    return t->dtype == TMAP_U4_ALIGN16   ? bytes / 2
           : t->dtype == TMAP_U6_ALIGN16 ? bytes / 4 * 3
                                         : bytes;
}

/* ---- validation ---- */

struct judge {
    const struct tmap *t;
    char *why;
    size_t why_size;
    uint32_t cc_major;
};

/* Says which rule broke; 1 is CUDA_ERROR_INVALID_VALUE. */
__attribute__((format(printf, 2, 3))) static int refuse(const struct judge *j, const char *format,
                                                        ...)
{
    va_list args;
    if (!j->why || !j->why_size) return 1;
    va_start(args, format);
    vsnprintf(j->why, j->why_size, format, args);
    va_end(args);
    return 1;
}

static int check_enums(const struct judge *j)
{
    const struct tmap *t = j->t;
    uint32_t least = t->im2col || t->interleave ? 3 : 1;
    if (t->dtype >= DTYPE_COUNT) return refuse(j, "data type %u is not 0 to 15", t->dtype);
    if (t->dtype >= TMAP_U4_ALIGN8 && j->cc_major < 10) {
        return refuse(j, "data type %s needs compute capability 10.0; this device has %u.x",
                      dtypes[t->dtype].name, j->cc_major);
    }
    if (t->rank < least || t->rank > 5) {
        return refuse(j, "rank %u is not %u to 5%s", t->rank, least,
                      t->im2col       ? " (im2col)"
                      : t->interleave ? " (interleaved)"
                                      : "");
    }
    if (t->interleave > INTERLEAVE_32B) {
        return refuse(j, "interleave %u is not 0 to 2", t->interleave);
    }
    if (t->swizzle > TMAP_SWIZZLE_LAST && !(t->foreign && t->swizzle == TMAP_SWIZZLE_96))
        return refuse(j, "swizzle %u is not 0 to 6", t->swizzle);
    if (t->swizzle >= TMAP_SWIZZLE_ATOM_32 && j->cc_major < 10) {
        return refuse(j,
                      "swizzle %u (an atom mode) needs compute capability 10.0; this device has "
                      "%u.x",
                      t->swizzle, j->cc_major);
    }
    if (t->l2 > 3) return refuse(j, "L2 promotion %u is not 0 to 3", t->l2);
    if (t->oob > 1) return refuse(j, "out-of-bounds fill %u is not 0 or 1", t->oob);
    if (t->oob && !dtypes[t->dtype].floating) {
        return refuse(j, "NaN fill needs a floating-point data type, not %s",
                      dtypes[t->dtype].name);
    }
    return 0;
}

static int check_global(const struct judge *j)
{
    const struct tmap *t = j->t;
    uint32_t align = t->interleave == INTERLEAVE_32B || is_packed16(t->dtype) ? 32 : 16;
    uint32_t multiple = is_packed16(t->dtype) ? 128 : t->dtype == TMAP_U4_ALIGN8 ? 2 : 1;
    if (t->address % align) {
        return refuse(j, "global address 0x%llx is not a multiple of %u",
                      (unsigned long long)t->address, align);
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!t->dim[d] || t->dim[d] > 1ULL << 32) {
            return refuse(j, "dimension %u is %llu, not 1 to 2^32", d,
                          (unsigned long long)t->dim[d]);
        }
    }
    if (t->dim[0] % multiple) {
        return refuse(j, "dimension 0 is %llu, not a multiple of %u as %s asks",
                      (unsigned long long)t->dim[0], multiple, dtypes[t->dtype].name);
    }
    for (uint32_t d = 1; d < t->rank; d++) {
        if (t->stride[d] % align) {
            return refuse(j, "stride of dimension %u is %llu bytes, not a multiple of %u", d,
                          (unsigned long long)t->stride[d], align);
        }
        if (t->stride[d] >> 40) {
            return refuse(j, "stride of dimension %u is %llu bytes, not below 2^40", d,
                          (unsigned long long)t->stride[d]);
        }
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        if (t->element_stride[d] < 1 || t->element_stride[d] > MAX_ELEMENT_STRIDE) {
            return refuse(j, "element stride %u is %u, not 1 to %d", d, t->element_stride[d],
                          MAX_ELEMENT_STRIDE);
        }
    }
    return 0;
}

/* Swizzles that the packed types take. */
static int check_packed_swizzle(const struct judge *j)
{
    const struct tmap *t = j->t;
    bool plain = t->swizzle == TMAP_SWIZZLE_NONE || t->swizzle == TMAP_SWIZZLE_128 ||
                 t->swizzle == TMAP_SWIZZLE_ATOM_32;
    bool u6 = t->dtype == TMAP_U6_ALIGN16;
    if (!is_packed16(t->dtype)) return 0;
    if (u6 && t->interleave) return refuse(j, "16U6_ALIGN16B takes no interleave");
    if (plain || (u6 && t->swizzle == TMAP_SWIZZLE_ATOM_64)) return 0;
    return refuse(j, "%s does not take swizzle %u", dtypes[t->dtype].name, t->swizzle);
}

static int check_swizzle(const struct judge *j, uint64_t inner_bytes)
{
    const struct tmap *t = j->t;
    /* The reference asks for swizzle 32B with interleave 32B; driver 580 takes any. */
    if (t->interleave == INTERLEAVE_NONE && t->swizzle && inner_bytes > swizzle_spans[t->swizzle]) {
        return refuse(j, "inner box of %llu bytes is wider than the %u-byte span of swizzle %u",
                      (unsigned long long)inner_bytes, swizzle_spans[t->swizzle], t->swizzle);
    }
    return check_packed_swizzle(j);
}

static int check_tiled(const struct judge *j)
{
    const struct tmap *t = j->t;
    uint64_t bytes = tmap_elem_bits(t->dtype);
    uint32_t inner;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!t->box[d] || t->box[d] > MAX_BOX) {
            return refuse(j, "box dimension %u is %u, not 1 to %d", d, t->box[d], MAX_BOX);
        }
    }
    if (is_packed16(t->dtype) && t->box[0] != 128) {
        return refuse(j, "box dimension 0 is %u; %s takes 128 only", t->box[0],
                      dtypes[t->dtype].name);
    }
    inner = t->box[0] * tmap_elem_bits(t->dtype); /* bits, so that 4-bit halves are not lost */
    if (!is_packed16(t->dtype) && inner % 128) {
        return refuse(j, "inner box of %u %s elements is not a multiple of 16 bytes", t->box[0],
                      dtypes[t->dtype].name);
    }
    /* Measured: the driver divides rounding down, dimension 0 too, so that a box below its stride
     * makes the product 0; what an interleaved box really takes does not count. */
    if (is_packed16(t->dtype)) bytes = 8;
    for (uint32_t d = 0; d < t->rank; d++) bytes *= t->box[d] / t->element_stride[d];
    bytes /= 8;
    if (bytes > MAX_BOX_BYTES) {
        return refuse(j, "a box of %llu bytes is more than the %d of an SM's shared memory",
                      (unsigned long long)bytes, MAX_BOX_BYTES);
    }
    return check_swizzle(j, is_packed16(t->dtype) ? t->box[0] : inner / 8);
}

static int check_im2col(const struct judge *j)
{
    /* Signed range of each corner offset by spatial dimensions: 16, 8 and 5 bits. */
    static const int32_t limits[] = {1 << 15, 1 << 7, 1 << 4};
    const struct tmap *t = j->t;
    uint64_t bytes;
    uint32_t inner, spatial = t->wide ? 1 : t->rank - 2u;
    uint32_t most = is_packed16(t->dtype) ? 128 : 256;
    int32_t limit = t->rank > 2 && t->rank < 6 ? limits[spatial - 1] : 0;
    for (uint32_t i = 0; i < spatial; i++) {
        /* Measured: interleaved maps count from dimension 0, and the sum wraps at 32 bits. */
        uint32_t dim = (uint32_t)t->dim[t->interleave ? i : i + 1];
        int32_t size = (int32_t)(dim + (uint32_t)t->upper[i] - (uint32_t)t->lower[i]);
        if (t->lower[i] < -limit || t->lower[i] >= limit || t->upper[i] < -limit ||
            t->upper[i] >= limit) {
            return refuse(j, "corner offsets %d and %d of spatial dimension %u are not in [%d, %d]",
                          t->lower[i], t->upper[i], i, -limit, limit - 1);
        }
        if (size <= 0) {
            return refuse(j, "the corner offsets leave spatial dimension %u empty", i);
        }
    }
    if (!t->channels || t->channels > most) {
        return refuse(j, "%u channels per pixel is not 1 to %u", t->channels, most);
    }
    if ((t->wide != TMAP_WIDE_128 || j->cc_major < 10) && (!t->pixels || t->pixels > 1024)) {
        return refuse(j, "%u pixels per column is not 1 to 1024", t->pixels);
    }
    inner = is_packed16(t->dtype) ? 8 * t->channels : t->channels * tmap_elem_bits(t->dtype);
    if (inner % 128) {
        return refuse(j, "%u channels of %s are not a multiple of 16 bytes", t->channels,
                      dtypes[t->dtype].name);
    }
    bytes = (uint64_t)inner / 8 * tmap_rows(t);
    if (bytes > MAX_BOX_BYTES) {
        return refuse(j, "%llu bytes of pixels are more than the %d of an SM's shared memory",
                      (unsigned long long)bytes, MAX_BOX_BYTES);
    }
    return check_swizzle(j, inner / 8);
}

/* CUDA Driver API, cuTensorMapEncodeIm2colWide. */
static int check_wide(const struct judge *j)
{
    const struct tmap *t = j->t;
    if (t->wide > TMAP_WIDE_128) return refuse(j, "wide mode %u is not 0 or 1", t->wide - 1U);
    /* Measured: on an H200, which has no use for it, it is judged as any im2col map. */
    if (j->cc_major < 10) return 0;
    if (t->interleave) return refuse(j, "im2col wide maps take no interleave");
    if (is_packed16(t->dtype) && t->channels != 128) {
        return refuse(j, "%u channels per pixel; %s takes 128", t->channels, dtypes[t->dtype].name);
    }
    if (t->swizzle == TMAP_SWIZZLE_64 || t->swizzle == TMAP_SWIZZLE_128 ||
        t->swizzle == TMAP_SWIZZLE_ATOM_32) {
        return 0;
    }
    return refuse(j, "im2col wide maps take swizzle 64B, 128B or 128B_ATOM_32B, not %u",
                  t->swizzle);
}

int tmap_validate(const struct tmap *t, uint32_t cc_major, char *why, size_t why_size)
{
    struct judge j = {t, why, why_size, cc_major};
    if (cc_major < 9) return refuse(&j, "tensor maps need compute capability 9.0 or higher");
    if (check_enums(&j) || check_global(&j) || (t->wide && check_wide(&j))) return 1;
    return t->im2col ? check_im2col(&j) : check_tiled(&j);
}
