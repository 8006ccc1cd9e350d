/* Box copies: a walk over the rows of a box, and what loads, stores and reductions do per row. */
#include "async/tmap_copy.h"
#include "async/bulk.h"
#include "machine/mem.h"

#include <stdio.h>

enum { ROW_MAX = 256 * 8 }; /* bytes of the widest row */

/* One row of a box: along dimension 0, or one slice where it is interleaved. [lo, hi) are the bytes of it, as they stand in shared memory, that
 * lie inside the tensor; global is the address of lo. */
struct box_row {
    uint32_t index; /* 0, 1, … in shared order */
    uint32_t lo, hi;
    uint64_t global;
};

struct box_walk {
    const struct tmap *t;
    const int32_t *coord;
    uint32_t rows, done;
    uint32_t first;  /* dimension that rows are counted in: 1, interleaved 0 */
    int64_t at[5];   /* coordinates in dimensions first.. */
    int64_t last[5]; /* the same of the last pixel that is no halo */
    uint32_t lo, hi; /* of a row whose other coordinates are inside */
    int64_t start;   /* address of its lo, less the terms of dimensions first.. */
};

/* Bytes of global memory behind `bytes` of a shared row: the padded types hold 16 elements in 16
 * bytes of shared memory and in 8 or 12 of global memory. */
static uint32_t global_bytes(const struct tmap *t, uint32_t bytes)
{
    if (t->dtype == TMAP_U4_ALIGN16) return bytes / 2;
    if (t->dtype == TMAP_U6_ALIGN16) return bytes / 4 * 3;
    return bytes;
}

/* Shared bytes of the first `elements` of a row. */
static uint32_t row_offset(const struct tmap *t, int64_t elements)
{
    bool padded = t->dtype == TMAP_U4_ALIGN16 || t->dtype == TMAP_U6_ALIGN16;
    return (uint32_t)(padded ? elements : elements * tmap_unit_bits(t) / 8);
}

static void walk_begin(struct box_walk *walk, const struct tmap *t, const int32_t *coord)
{
    uint32_t elements = t->im2col ? t->channels : t->box[0];
    int64_t first = coord[0] < 0 ? -(int64_t)coord[0] : 0;
    int64_t end = (int64_t)t->dim[0] - coord[0];
    if (end > elements) end = elements;
    memset(walk, 0, sizeof *walk);
    walk->t = t;
    walk->coord = coord;
    walk->rows = tmap_rows(t);
    walk->first = t->interleave ? 0 : 1;
    for (uint32_t d = walk->first; d < t->rank; d++) walk->at[d] = coord[d];
    if (t->interleave) {
        walk->hi = tmap_row_bytes(t);
        walk->start = (int64_t)t->address;
        return;
    }
    if (first >= end) return; /* lo = hi = 0: nothing of any row is inside */
    walk->lo = row_offset(t, first);
    walk->hi = row_offset(t, end);
    walk->start = (int64_t)t->address + (coord[0] + first) * (int64_t)tmap_unit_bits(t) / 8;
}

/* Dimensions of an im2col map that a pixel's place is counted in: all but channels (interleaved: the
 * slices of a pixel) and batch. */
static bool is_spatial(const struct tmap *t, uint32_t d)
{
    return t->im2col && (t->interleave ? d + 2 < t->rank : d && d + 1 < t->rank);
}

/* The next row of a box, or the next pixel of the bounding box of an im2col copy: that spans
 * [lower, size + upper) of each spatial dimension, in steps of the element stride. */
static void walk_step(struct box_walk *walk)
{
    const struct tmap *t = walk->t;
    if (t->rows4) {
        if (walk->done < 4) walk->at[1] = walk->coord[1 + walk->done];
        return;
    }
    if (t->wide) { /* along W alone, then the next image */
        walk->at[1] += t->element_stride[1];
        if (walk->at[1] < (int64_t)t->dim[1] + t->upper[0]) return;
        walk->at[1] = t->lower[0];
        walk->at[t->rank - 1] += t->element_stride[t->rank - 1];
        return;
    }
    for (uint32_t d = walk->first; d < t->rank; d++) {
        bool spatial = is_spatial(t, d), slices = t->interleave && d + 2 == t->rank;
        int64_t end = spatial ? (int64_t)t->dim[d] + t->upper[d - walk->first]
                              : walk->coord[d] + (int64_t)tmap_extent(t, d) * t->element_stride[d];
        if (t->im2col && slices) continue;
        walk->at[d] += t->element_stride[d];
        if (walk->at[d] < end || (t->im2col && !spatial)) break;
        walk->at[d] = spatial ? t->lower[d - walk->first] : walk->coord[d];
    }
}

/* How many-eth halo pixel the next one is, from 1; 0: it is none. Interpretation: halo pixels go on
 * along W from the last pixel before them, beyond the bounding box. */
static uint32_t walk_halo(const struct box_walk *walk)
{
    const struct tmap *t = walk->t;
    uint32_t run = TMAP_W128_RUN, i = walk->done;
    if (!t->halo) return 0;
    if (t->wide == TMAP_WIDE_128)
        i %= run + t->halo;
    else
        run = t->pixels;
    return i < run ? 0 : i - run + 1;
}

static bool walk_next(struct box_walk *walk, struct box_row *row)
{
    const struct tmap *t = walk->t;
    int64_t global = walk->start;
    bool inside = walk->hi > walk->lo;
    uint32_t halo = walk_halo(walk);
    if (walk->done == walk->rows) return false;
    if (!halo) memcpy(walk->last, walk->at, sizeof walk->last);
    for (uint32_t d = walk->first; d < t->rank; d++) {
        int64_t c = walk->last[d], pitch = (int64_t)(d ? t->stride[d] : tmap_row_bytes(t));
        if (d == 1) c += (int64_t)halo * t->element_stride[1];
        if (is_spatial(t, d)) c += walk->coord[TMAP_OFFSETS + d - walk->first];
        inside = inside && c >= 0 && c < (int64_t)t->dim[d];
        global += inside ? c * pitch : 0;
    }
    *row = (struct box_row){.index = walk->done++,
                            .lo = inside ? walk->lo : 0,
                            .hi = inside ? walk->hi : 0,
                            .global = (uint64_t)global};
    if (!halo) walk_step(walk);
    return true;
}

/* Positions [*first, *last] of dimension d that lie inside the tensor; false when none does. */
static bool inside_range(const struct tmap *t, int64_t c, uint32_t d, int64_t *first, int64_t *last)
{
    int64_t step = d || t->interleave ? t->element_stride[d] : 1;
    *first = c < 0 ? (-c + step - 1) / step : 0;
    *last = ((int64_t)t->dim[d] - 1 - c) / step;
    if (c > (int64_t)t->dim[d] - 1) return false;
    if (*last > (int64_t)tmap_extent(t, d) - 1) *last = tmap_extent(t, d) - 1;
    return *first <= *last;
}

bool tmap_outside(const struct tmap *t, const int32_t *coord)
{
    int64_t first, last;
    if (t->im2col) return false; /* rows are not a rectangle: not told */
    if (t->rows4) {
        bool any = false;
        for (uint32_t i = 1; i <= 4; i++)
            any = any || (coord[i] >= 0 && coord[i] < (int64_t)t->dim[1]);
        return !any || !inside_range(t, coord[0], 0, &first, &last);
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!inside_range(t, coord[d], d, &first, &last)) return true;
    }
    return false;
}

uint32_t tmap_box_span(const struct tmap *t)
{
    uint32_t bytes = tmap_row_pitch(t) * tmap_rows(t);
    /* A swizzle moves chunks within a row of its span; dense rows of slices may be shorter. */
    return t->swizzle && t->interleave ? (bytes + 127) & ~127U : bytes;
}

/* ---- global memory ---- */

/* True when one allocation holds everything from the box's first byte to its last, so that rows
 * need no check of their own. */
static bool box_mapped(const struct tmap *t, const int32_t *coord)
{
    int64_t first, last, low = (int64_t)t->address, high = low;
    uint64_t base, size;
    if (t->im2col || t->rows4 || t->interleave) return false;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!inside_range(t, coord[d], d, &first, &last)) return false;
        if (d == 0) {
            uint32_t bits = tmap_unit_bits(t);
            low += (coord[0] + first) * (int64_t)bits / 8;
            high += ((coord[0] + last + 1) * (int64_t)bits + 7) / 8;
        } else {
            low += (coord[d] + first * t->element_stride[d]) * (int64_t)t->stride[d];
            high += (coord[d] + last * t->element_stride[d]) * (int64_t)t->stride[d];
        }
    }
    return low > 0 && mem_range((uint64_t)low, (uint64_t)(high - low), &base, &size);
}

/* Host pointer to the inside part of a row; NULL after a fault. */
static uint8_t *row_host(const struct async_op *op, const struct tmap *t, const struct box_row *row,
                         bool mapped, enum access_kind access)
{
    char what[48];
    if (mapped) return (uint8_t *)(uintptr_t)row->global;
    snprintf(what, sizeof what, "row %u of the box", row->index);
    return mem_global(op->warp, op->in, op->lane, row->global, global_bytes(t, row->hi - row->lo),
                      access, what);
}

void tmap_announce(const struct async_op *op, const struct tmap *t, const int32_t *coord,
                   enum access_kind access)
{
    struct box_walk walk;
    struct box_row row;
    uint64_t start = 0, end = 0;
    if (!op->cta->group->observer) return;
    for (walk_begin(&walk, t, coord); walk_next(&walk, &row);) {
        if (row.lo == row.hi) continue;
        if (row.global != end || start == end) {
            if (start != end) bulk_access_global(op, access, PROXY_ASYNC, start, end - start);
            start = row.global;
        }
        end = row.global + global_bytes(t, row.hi - row.lo);
    }
    if (start != end) bulk_access_global(op, access, PROXY_ASYNC, start, end - start);
}

/* ---- shared memory ---- */

static void put_row(struct swizzle_shape shape, uint8_t *window, uint32_t offset,
                    const uint8_t *src, uint32_t bytes)
{
    if (!shape.mask) {
        memcpy(window + offset, src, bytes);
    } else if (shape.chunk == 16) {
        for (uint32_t i = 0; i < bytes; i += 16) {
            memcpy(window + tmap_swizzle_by(shape, offset + i), src + i, 16);
        }
    } else {
        for (uint32_t i = 0; i < bytes; i += 8) {
            memcpy(window + tmap_swizzle_by(shape, offset + i), src + i, 8);
        }
    }
}

static void get_row(struct swizzle_shape shape, const uint8_t *window, uint32_t offset,
                    uint8_t *dst, uint32_t bytes)
{
    if (!shape.mask) {
        memcpy(dst, window + offset, bytes);
    } else if (shape.chunk == 16) {
        for (uint32_t i = 0; i < bytes; i += 16) {
            memcpy(dst + i, window + tmap_swizzle_by(shape, offset + i), 16);
        }
    } else {
        for (uint32_t i = 0; i < bytes; i += 8) {
            memcpy(dst + i, window + tmap_swizzle_by(shape, offset + i), 8);
        }
    }
}

void tmap_unswizzle(const struct tmap *t, const uint8_t *window, uint32_t offset, uint8_t *dense)
{
    struct swizzle_shape shape = tmap_swizzle_shape(t->swizzle);
    uint32_t bytes = tmap_row_bytes(t), pitch = tmap_row_pitch(t), rows = tmap_rows(t);
    for (uint32_t i = 0; i < rows; i++, offset += pitch, dense += bytes) {
        get_row(shape, window, offset, dense, bytes);
    }
}

/* ---- rows in and out ---- */

/* What stands in for elements outside the tensor: zeros, or the bytes f7 7f over and over, which is
 * a NaN of every floating type. */
static void fill_row(const struct tmap *t, uint8_t *row, uint32_t bytes)
{
    memset(row, t->oob ? 0xF7 : 0, bytes);
    for (uint32_t i = 1; t->oob && i < bytes; i += 2) row[i] = 0x7F;
}

/* Loads of the TF32 types keep 10 fraction bits, rounded to nearest, and make one NaN of all. (No
 * _FTZ type flushes subnormals on its way in: only reductions do.) */
static bool converts(const struct tmap *t)
{
    return t->dtype == TMAP_TF32 || t->dtype == TMAP_TF32_FTZ;
}

static uint32_t to_tf32(uint32_t x)
{
    if ((x & 0x7FFFFFFFU) > 0x7F800000U) return 0x7FFFE000U;
    return (x + 0x1000U) & ~0x1FFFU;
}

static void convert_row(uint8_t *row, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i += 4) {
        uint32_t x;
        memcpy(&x, row + i, 4);
        x = to_tf32(x);
        memcpy(row + i, &x, 4);
    }
}

/* `bytes` shared bytes from packed global ones; padding reads as zeros [interpretation]. */
static void unpack_row(const struct tmap *t, uint8_t *dst, const uint8_t *src, uint32_t bytes)
{
    uint32_t data = global_bytes(t, 16);
    if (data == 16) {
        memcpy(dst, src, bytes);
        return;
    }
    for (uint32_t i = 0; i < bytes; i += 16, src += data) {
        memcpy(dst + i, src, data);
        memset(dst + i + data, 0, 16 - data);
    }
}

static void pack_row(const struct tmap *t, uint8_t *dst, const uint8_t *src, uint32_t bytes)
{
    uint32_t data = global_bytes(t, 16);
    if (data == 16) {
        memcpy(dst, src, bytes);
        return;
    }
    for (uint32_t i = 0; i < bytes; i += 16, dst += data) memcpy(dst, src + i, data);
}

bool tmap_load(const struct async_op *op, const struct tmap *t, const int32_t *coord,
               uint8_t *window, uint32_t offset)
{
    struct swizzle_shape shape = tmap_swizzle_shape(t->swizzle);
    uint32_t bytes = tmap_row_bytes(t), pitch = tmap_row_pitch(t);
    bool mapped = box_mapped(t, coord);
    bool plain = !converts(t) && global_bytes(t, 16) == 16;
    struct box_walk walk;
    struct box_row row;
    for (walk_begin(&walk, t, coord); walk_next(&walk, &row); offset += pitch) {
        uint8_t built[ROW_MAX];
        const uint8_t *src = NULL;
        if (row.hi > row.lo) {
            src = row_host(op, t, &row, mapped, ACCESS_READ);
            if (!src) return false;
        }
        if (!src || row.hi - row.lo < bytes || !plain) {
            fill_row(t, built, bytes);
            if (src) unpack_row(t, built + row.lo, src, row.hi - row.lo);
            if (src && converts(t)) convert_row(built + row.lo, row.hi - row.lo);
            src = built;
        }
        put_row(shape, window, offset, src, bytes);
    }
    return true;
}

/*
 * The map as stores and reductions see it: they clip rows at 16-byte chunks, not elements, so that a
 * row of 37 bytes takes 48 from shared memory. Measured on an H200 (U8, U16, U32, F32, every swizzle
 * tried); loads do clip at elements.
 */
static struct tmap tmap_whole_chunks(const struct tmap *t)
{
    struct tmap whole = *t;
    uint32_t elements = 128 / tmap_elem_bits(t->dtype);
    if (t->interleave) return whole; /* of slices, which are chunks */
    if (128 % tmap_elem_bits(t->dtype) == 0)
        whole.dim[0] = (t->dim[0] + elements - 1) / elements * elements;
    return whole;
}

bool tmap_store(const struct async_op *op, const struct tmap *map, const int32_t *coord,
                const uint8_t *dense)
{
    const struct tmap whole = tmap_whole_chunks(map), *t = &whole;
    uint32_t bytes = tmap_row_bytes(t);
    bool mapped = box_mapped(t, coord);
    struct box_walk walk;
    struct box_row row;
    for (walk_begin(&walk, t, coord); walk_next(&walk, &row); dense += bytes) {
        uint8_t *dst;
        if (row.hi == row.lo) continue;
        dst = row_host(op, t, &row, mapped, ACCESS_WRITE);
        if (!dst) return false;
        pack_row(t, dst, dense + row.lo, row.hi - row.lo);
    }
    return true;
}

bool tmap_reduce(const struct async_op *op, const struct tmap *map, const int32_t *coord,
                 const uint8_t *dense, reduce_fn *reduce)
{
    const struct tmap whole = tmap_whole_chunks(map), *t = &whole;
    uint32_t bytes = tmap_row_bytes(t);
    bool mapped = box_mapped(t, coord);
    struct box_walk walk;
    struct box_row row;
    for (walk_begin(&walk, t, coord); walk_next(&walk, &row); dense += bytes) {
        uint8_t *dst;
        if (row.hi == row.lo) continue;
        dst = row_host(op, t, &row, mapped, ACCESS_ATOMIC);
        if (!dst) return false;
        reduce(dst, dense + row.lo, row.hi - row.lo);
    }
    return true;
}
