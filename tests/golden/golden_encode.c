/*
 * Conformance of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col: which random requests the
 * driver takes, and the maps that it makes. Family `encode`: each result byte is the answer to one
 * request, 0, or 1 for "invalid argument". Family `map`: each result is the 128 bytes of a map, or the
 * filler where the driver refused.
 */
#include "golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 500, TILED_BLOCKS = 14, IM2COL_BLOCKS = 6 };
enum { MAPS = 25, TILED_MAPS = 14, IM2COL_MAPS = 10, MAP_BYTES = 128, FILLER = 0xEE };

typedef unsigned char map_bytes[MAP_BYTES];

struct request {
    struct golden_map map;
    uint64_t address;
    int l2;
};

typedef int tiled_fn(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                     const uint32_t *, const uint32_t *, int, int, int, int);
typedef int im2col_fn(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                      const int *, const int *, uint32_t, uint32_t, const uint32_t *, int, int, int,
                      int);

static const uint32_t element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 1, 1, 1};

/* A request that breaks no rule most of the time. */
static void draw_plain(struct request *q, struct rng *r, bool im2col)
{
    static const uint64_t extents[] = {1, 2, 7, 64, 100, 129, 1000, 4096};
    struct golden_map *m = &q->map;
    uint64_t row;
    memset(q, 0, sizeof *q);
    m->im2col = im2col;
    m->dtype = (int)rng_below(r, 13);
    m->rank = im2col ? 3 + rng_below(r, 3) : 1 + rng_below(r, 5);
    m->swizzle = (int)rng_below(r, 4);
    m->interleave = m->rank >= 3 && rng_below(r, 3) == 0 ? 1 + (int)rng_below(r, 2) : 0;
    q->l2 = (int)rng_below(r, 4);
    q->address = 0x7f0000000000ULL + 1024 * (uint64_t)rng_below(r, 1000);
    for (uint32_t i = 0; i < 5; i++) {
        m->dim[i] = extents[rng_below(r, 8)];
        m->box[i] = 1 + rng_below(r, i == 0 ? 64 : 24);
        m->element_stride[i] = rng_below(r, 4) ? 1 : 1 + rng_below(r, 8);
    }
    row = (16U << rng_below(r, 4)) / element_bytes[m->dtype];
    if (!m->interleave || rng_below(r, 2)) m->box[0] = row > 0 ? (uint32_t)row : 1;
    row = (m->dim[0] * element_bytes[m->dtype] + 31) / 32 * 32;
    for (uint32_t i = 0; i < 4; i++) {
        m->stride[i] = row + 32 * (uint64_t)rng_below(r, 3);
        row = m->stride[i] * m->dim[i + 1];
    }
    if (!im2col) return;
    m->channels = rng_below(r, 4) ? m->box[0] : 1 + rng_below(r, 256);
    m->pixels = 1 + rng_below(r, rng_below(r, 2) ? 64 : 1024);
    for (uint32_t i = 0; i < 3; i++) {
        m->lower[i] = (int)rng_below(r, 9) - 4;
        m->upper[i] = (int)rng_below(r, 9) - 4;
    }
}

/* Moves a field of an im2col request to where a rule lies. */
static void spoil_im2col(struct request *q, struct rng *r)
{
    static const int corners[] = {-32769, -32768, -129, -128, -17,   -16,
                                  15,     16,     127,  128,  32767, 32768};
    static const uint32_t counts[] = {0, 1, 128, 129, 255, 256, 257, 1023, 1024, 1025};
    uint32_t at = rng_below(r, 3);
    switch (rng_below(r, 4)) {
    case 0: q->map.lower[at] = corners[rng_below(r, 12)]; break;
    case 1: q->map.upper[at] = corners[rng_below(r, 12)]; break;
    case 2: q->map.channels = counts[rng_below(r, 10)]; break;
    default: q->map.pixels = counts[rng_below(r, 10)]; break;
    }
}

/* Moves one field to where a rule lies. (Never to a negative rank, on which driver 580 crashes.) */
static void spoil(struct request *q, struct rng *r)
{
    static const uint64_t dims[] = {0,         1, 0xFFFFFFFFULL, 0x100000000ULL, 0x100000001ULL,
                                    1ULL << 40};
    static const uint64_t strides[] = {
        0, 1, 8, 16, 24, 32, 48, 1ULL << 39, (1ULL << 40) - 16, 1ULL << 40, 1ULL << 41};
    static const uint32_t boxes[] = {0, 1, 2, 3, 16, 32, 33, 64, 100, 128, 255, 256, 257, 512};
    struct golden_map *m = &q->map;
    uint32_t at = rng_below(r, 5);
    if (m->im2col && rng_below(r, 3) == 0) {
        spoil_im2col(q, r);
        return;
    }
    switch (rng_below(r, 12)) {
    case 0: q->address += rng_below(r, 64); break;
    case 1: m->dtype = (int)rng_below(r, 18) - 1; break;
    case 2: m->rank = rng_below(r, 7); break;
    case 3: m->dim[at] = dims[rng_below(r, 6)]; break;
    case 4: m->stride[at % 4] = strides[rng_below(r, 11)]; break;
    case 5: m->box[at] = boxes[rng_below(r, 14)]; break;
    case 6: m->element_stride[at] = rng_below(r, 11); break;
    case 7: m->interleave = (int)rng_below(r, 5) - 1; break;
    case 8: m->swizzle = (int)rng_below(r, 9) - 1; break;
    case 9: q->l2 = (int)rng_below(r, 6) - 1; break;
    case 10: m->oob = (int)rng_below(r, 4) - 1; break;
    default: q->address = rng_below(r, 3) ? q->address : 0; break;
    }
}

static int ask(tiled_fn *tiled, im2col_fn *im2col, const struct request *q, map_bytes bytes)
{
    const struct golden_map *m = &q->map;
    void *address;
    memcpy(&address, &q->address, sizeof address);
    if (!m->im2col)
        return tiled(bytes, m->dtype, m->rank, address, m->dim, m->stride, m->box,
                     m->element_stride, m->interleave, m->swizzle, q->l2, m->oob);
    return im2col(bytes, m->dtype, m->rank, address, m->dim, m->stride, m->lower, m->upper,
                  m->channels, m->pixels, m->element_stride, m->interleave, m->swizzle, q->l2,
                  m->oob);
}

static bool find_encoders(const hewn_driver *driver, tiled_fn **tiled, im2col_fn **im2col)
{
    void *symbol = hewn_driver_symbol(driver, "cuTensorMapEncodeTiled");
    memcpy(tiled, &symbol, sizeof *tiled);
    symbol = hewn_driver_symbol(driver, "cuTensorMapEncodeIm2col");
    memcpy(im2col, &symbol, sizeof *im2col);
    return *tiled && *im2col;
}

static bool answer(const hewn_driver *driver, const struct golden_case *c, unsigned char *out)
{
    _Alignas(64) map_bytes bytes;
    struct rng r = {c->seed};
    tiled_fn *tiled;
    im2col_fn *im2col;
    if (!find_encoders(driver, &tiled, &im2col)) return false;
    for (size_t i = 0; i < c->out_bytes; i++) {
        struct request q;
        draw_plain(&q, &r, c->map.im2col);
        for (uint32_t n = rng_below(&r, 3); n > 0; n--) spoil(&q, &r);
        out[i] = (unsigned char)ask(tiled, im2col, &q, bytes);
    }
    return true;
}

/* Bits of the wide fields that draw_plain leaves zero. */
static void widen(struct request *q, struct rng *r)
{
    struct golden_map *m = &q->map;
    uint32_t at = rng_below(r, 5);
    q->address = rng_next(r) >> 8 & ~31ULL;
    m->dim[at] = 1 + (rng_next(r) >> 32);
    if (at) m->stride[at - 1] = rng_next(r) >> 24 & ~31ULL;
    m->oob =
        m->dtype >= 6 && rng_below(r, 2); /* F16 and the types after it can be filled with NaN */
}

static bool answer_maps(const hewn_driver *driver, const struct golden_case *c, unsigned char *out)
{
    _Alignas(64) map_bytes bytes;
    struct rng r = {c->seed};
    tiled_fn *tiled;
    im2col_fn *im2col;
    if (!find_encoders(driver, &tiled, &im2col)) return false;
    for (size_t i = 0; i < MAPS; i++) {
        struct request q;
        draw_plain(&q, &r, c->map.im2col);
        widen(&q, &r);
        if (rng_below(&r, 2)) spoil(&q, &r);
        /* A driver that refuses may have written some of it. */
        if (ask(tiled, im2col, &q, bytes)) memset(bytes, FILLER, sizeof bytes);
        memcpy(out + i * MAP_BYTES, bytes, MAP_BYTES);
    }
    return true;
}

static bool make_maps(struct golden_case *c, uint32_t index)
{
    if (index >= TILED_MAPS + IM2COL_MAPS) return false;
    c->seed = index * 32452843ULL + 17;
    c->map.im2col = index >= TILED_MAPS;
    snprintf(c->name, sizeof c->name, "bits of %s maps, requests %u to %u",
             c->map.im2col ? "im2col" : "tiled", index * MAPS, (index + 1) * MAPS - 1);
    c->answer = answer_maps;
    c->rule = GOLDEN_BITS;
    c->element = 4;
    c->in_bytes = c->out_bytes = (size_t)MAPS * MAP_BYTES;
    c->in = calloc(1, c->in_bytes);
    return true;
}

static bool make(struct golden_case *c, uint32_t index)
{
    if (index >= TILED_BLOCKS + IM2COL_BLOCKS) return false;
    c->seed = index * 15485863ULL + 11;
    c->map.im2col = index >= TILED_BLOCKS;
    snprintf(c->name, sizeof c->name, "%s maps, requests %u to %u",
             c->map.im2col ? "im2col" : "tiled", index * BLOCK, (index + 1) * BLOCK - 1);
    c->answer = answer;
    c->rule = GOLDEN_BITS;
    c->element = 1;
    c->in_bytes = c->out_bytes = BLOCK;
    c->in = calloc(1, BLOCK);
    return true;
}

const struct golden_family golden_encode = {"encode", make};
const struct golden_family golden_map = {"map", make_maps};
