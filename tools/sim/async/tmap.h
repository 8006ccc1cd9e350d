/*
 * Tensor maps: the simulator's encoding of CUtensorMap, its rules, and box copies with swizzles.
 */
#ifndef SIM_TMAP_H
#define SIM_TMAP_H

#include "machine.h"

/* Decoded form; lives bit-packed in the 128 opaque bytes with a magic and a checksum, so that
 * garbage is told from a map (finding tma-desc). */
struct tmap {
    uint64_t address;
    uint8_t dtype, rank, interleave, swizzle, l2, oob, im2col;
    uint64_t dim[5], stride[5]; /* stride[0] = element size */
    uint32_t box[5], element_stride[5];
    int32_t lower[3], upper[3]; /* im2col */
    uint32_t channels, pixels;
};

/* Checks the driver's rules; 0 or CUresult 1. `why` (may be NULL) says which rule broke. */
int tmap_validate(const struct tmap *t, uint32_t cc_major, char *why, size_t why_size);
void tmap_encode(const struct tmap *t, void *opaque128);
/* False when the bytes are no map. */
bool tmap_decode(const void *opaque128, struct tmap *out);
uint32_t tmap_elem_bytes(uint32_t dtype);

/* The XOR that a swizzle mode (enum of the driver, 0..6) applies to an absolute shared address. */
uint32_t tmap_swizzle(uint32_t swizzle, uint32_t address);
/* Bytes of the box in shared memory, and those that one copy of it counts on its mbarrier: both with the
 * out-of-bounds part, the second without the padding of 4- and 6-bit types (CUTLASS expects so many). */
uint32_t tmap_box_bytes(const struct tmap *t);
uint32_t tmap_signal_bytes(const struct tmap *t);

#endif
