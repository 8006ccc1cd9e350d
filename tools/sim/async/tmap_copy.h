/*
 * Box copies of tensor maps between global memory and a CTA's shared window (PTX ISA "Tensors",
 * "Tile Mode", "im2col mode", "Swizzling Modes").
 *
 * A box is rows of dimension 0; where it is interleaved, of one slice each. In shared memory they follow one another at a pitch of whole
 * swizzle spans (without a swizzle, densely), and the swizzle then moves 16-byte chunks by the
 * absolute address. Gaps beside narrow rows keep what they held, and do not count on the mbarrier.
 * Interleaved: an element of dimension 0 is a slice of 16 or 32 bytes, of the last but one
 * dimension (the slices of a pixel) a copy takes one position, im2col as well, whatever the box or the
 * channels say, and rows are dense in spite of a swizzle. All this, the fill
 * and the conversions were measured on an H200: tests/golden/golden_tma.c.
 */
#ifndef SIM_TMAP_COPY_H
#define SIM_TMAP_COPY_H

#include "machine/event.h"
#include "async/reduce.h"
#include "async/tmap.h"

struct async_op;

/* Driver enum values that have rules of their own. */
enum tmap_dtype {
    TMAP_F16 = 6, /* the types below are integers */
    TMAP_F32 = 7,
    TMAP_F64,
    TMAP_BF16,
    TMAP_F32_FTZ = 10,
    TMAP_TF32,
    TMAP_TF32_FTZ = 12,
    TMAP_U4_ALIGN8,
    TMAP_U4_ALIGN16,
    TMAP_U6_ALIGN16
};
enum tmap_swizzle_mode {
    TMAP_SWIZZLE_NONE,
    TMAP_SWIZZLE_32,
    TMAP_SWIZZLE_64,
    TMAP_SWIZZLE_128,
    TMAP_SWIZZLE_ATOM_32,
    TMAP_SWIZZLE_ATOM_32_FLIP_8,
    TMAP_SWIZZLE_ATOM_64,
    TMAP_SWIZZLE_LAST = TMAP_SWIZZLE_ATOM_64,
    TMAP_SWIZZLE_96 /* by tensormap.replace alone, sm_103a */
};

/* address ^ (address >> shift & mask) ^ (address >> flip_shift & flip_mask) */
struct swizzle_shape {
    uint8_t shift, mask, flip_shift, flip_mask;
    uint8_t chunk; /* bytes that stay together */
};

static inline struct swizzle_shape tmap_swizzle_shape(uint32_t mode)
{
    /* FLIP_8B: the two 8-byte halves of a chunk change places in every other 128-byte row
     * [interpretation of "alternate row"]. */
    static const struct swizzle_shape shapes[] = {
        {0, 0, 0, 0, 16},    {3, 0x10, 0, 0, 16}, {3, 0x30, 0, 0, 16}, {3, 0x70, 0, 0, 16},
        {2, 0x60, 0, 0, 16}, {2, 0x60, 4, 8, 8},  {1, 0x40, 0, 0, 16}, {3, 0x10, 0, 0, 16},
    };
    return shapes[mode <= TMAP_SWIZZLE_96 ? mode : 0];
}

static inline uint32_t tmap_swizzle_by(struct swizzle_shape s, uint32_t address)
{
    return address ^ (address >> s.shift & s.mask) ^ (address >> s.flip_shift & s.flip_mask);
}

uint32_t tmap_elem_bits(uint32_t dtype);       /* 4 and 6 for the packed ones */
uint32_t tmap_unit_bits(const struct tmap *t); /* of one step along dimension 0 */
uint32_t tmap_row_bytes(const struct tmap *t); /* in shared memory */
uint32_t tmap_row_pitch(const struct tmap *t); /* from row to row there */
uint32_t tmap_rows(const struct tmap *t);
uint32_t tmap_extent(const struct tmap *t, uint32_t d); /* elements the box delivers */

/* Where a copy starts: coordinates, then the offsets of im2col loads. */
enum { TMAP_COORDS = 8, TMAP_OFFSETS = 5 };

/* One copy of a box, for EV_TILE. */
struct tmap_tile {
    const struct tmap *map;
    const int32_t *coord;
};

/* True when no element of the box lies inside the tensor. */
bool tmap_outside(const struct tmap *t, const int32_t *coord);
/* Bytes from a box's start within which all its chunks lie, swizzled or not. */
uint32_t tmap_box_span(const struct tmap *t);

/* Copies between global memory and `window`, a CTA's shared memory, at `offset`. Each is one stage of
 * `op`; false after a fault. */
bool tmap_load(const struct async_op *op, const struct tmap *t,
               const int32_t *coord, uint8_t *window, uint32_t offset);
/* Shared memory to a dense box without swizzle (tmap_box_bytes). */
void tmap_unswizzle(const struct tmap *t, const uint8_t *window, uint32_t offset, uint8_t *dense);
/* A dense box to global memory; elements outside the tensor are skipped. */
bool tmap_store(const struct async_op *op, const struct tmap *t,
                const int32_t *coord, const uint8_t *dense);
/* The same through a reduction. */
bool tmap_reduce(const struct async_op *op, const struct tmap *t,
                 const int32_t *coord, const uint8_t *dense, reduce_fn *reduce);

/* Announces the global ranges of the box that lie inside the tensor, joined where they touch. */
void tmap_announce(const struct async_op *op, const struct tmap *t, const int32_t *coord,
                   enum access_kind access);

#endif
