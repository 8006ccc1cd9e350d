/*
 * Tensor maps: the bits of CUtensorMap, the driver's rules, and box copies with swizzles.
 */
#ifndef SIM_TMAP_H
#define SIM_TMAP_H

#include "machine/machine.h"

/* Decoded form of the 128 opaque bytes. */
struct tmap {
    uint64_t address;
    uint8_t dtype, rank, interleave, swizzle, l2, oob, im2col;
    uint64_t dim[5], stride[5]; /* stride[0] = element size */
    uint32_t box[5], element_stride[5];
    int32_t lower[3], upper[3]; /* im2col */
    uint32_t channels, pixels;
    uint8_t atomicity; /* of the 128-byte swizzle, tensormap.replace's encoding, when not in use */
    uint8_t foreign;   /* enum tmap_foreign: what a driver's encoder would not have written */
    uint8_t wide;      /* enum tmap_wide: of im2col maps */
    /* Of one copy, not of the map: */
    uint8_t rows4; /* gather4, scatter4: four rows, each at a coordinate of its own */
    uint16_t halo; /* im2col::w: pixels after the column, or after every 32 of W128 */
};

/* tmap.foreign: bits. TMAP_CHANGED: the sizes behind the fields are not those of the fields, because
 * tensormap.replace changed the map or because a program encoded it itself. TMAP_WAS_TF32: the flag of TF32
 * stands beside another type. tensormap.replace never clears it; an H200 refuses (715) integers with it. */
enum tmap_foreign { TMAP_CHANGED = 1, TMAP_WAS_TF32 = 2 };

/* im2col::w takes a bounding box of one row, as many pixels as the map says or always 128. */
enum tmap_wide { TMAP_NARROW, TMAP_WIDE, TMAP_WIDE_128 };
enum { TMAP_W128_PIXELS = 128, TMAP_W128_RUN = 32 };

/* Checks the driver's rules; 0 or CUresult 1. `why` (may be NULL) says which rule broke. */
int tmap_validate(const struct tmap *t, uint32_t cc_major, char *why, size_t why_size);
/* The driver's own bits (tmap_bits.c); `foreign` keeps the flag of TF32 alone. */
void tmap_encode(const struct tmap *t, void *opaque128);
/* False when bits are set that no map has. What the fields hold may break rules: tmap_validate. */
bool tmap_decode(const void *opaque128, struct tmap *out);

/* What tensormap.replace can store. */
enum tmap_field {
    TMAP_FIELD_ADDRESS,
    TMAP_FIELD_RANK,
    TMAP_FIELD_BOX,
    TMAP_FIELD_DIM,
    TMAP_FIELD_STRIDE,
    TMAP_FIELD_ELEMENT_STRIDE,
    TMAP_FIELD_TYPE,
    TMAP_FIELD_INTERLEAVE,
    TMAP_FIELD_SWIZZLE,
    TMAP_FIELD_ATOMICITY,
    TMAP_FIELD_FILL
};
/* Stores `value`, in the instruction's numbers, as an H200 does: the bits that the field has, no others.
 * `d`: the dimension, where the field has one. */
void tmap_replace(void *opaque128, enum tmap_field field, uint32_t d, uint64_t value);
uint32_t tmap_elem_bytes(uint32_t dtype);

/* Bytes of the box in shared memory, and those that one copy of it counts on its mbarrier: both with the
 * out-of-bounds part, the second without the padding of 4- and 6-bit types (CUTLASS expects so many). */
uint32_t tmap_box_bytes(const struct tmap *t);
uint32_t tmap_signal_bytes(const struct tmap *t);

#endif
