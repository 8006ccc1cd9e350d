/* Staged boxes (boxes.h). */
#include "check/boxes.h"

#include <stdio.h>
#include <stdlib.h>

void boxes_free(struct boxes *b)
{
    for (uint32_t i = 1; i <= b->count; i++) free(b->at[i]);
    free(b->at);
    *b = (struct boxes){0};
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
    return hash ^ hash >> 29;
}

static uint64_t shape_of(const struct box *box)
{
    const struct tmap *t = &box->map;
    uint64_t hash = mix(box->start, t->swizzle);
    hash = mix(hash, t->dtype | (uint64_t)t->rank << 8 | (uint64_t)t->im2col << 16 |
                         (uint64_t)t->rows4 << 24 | (uint64_t)t->interleave << 32);
    hash = mix(hash, box->pitch | (uint64_t)box->bytes << 32);
    hash = mix(hash, box->rows);
    for (uint32_t d = 0; d < t->rank; d++)
        hash = mix(hash, box->extent[d] | (uint64_t)t->element_stride[d] << 32);
    return hash;
}

/* An unused record. */
static struct box *take(struct boxes *b)
{
    struct box *box;
    if (b->free) {
        box = b->at[b->free];
        b->free = box->next_free;
        return box;
    }
    if (b->count + 1 >= b->room) {
        const uint32_t room = b->room ? 2 * b->room : 64;
        struct box **grown = realloc(b->at, room * sizeof(struct box *));
        if (!grown) return NULL;
        b->at = grown;
        b->room = room;
    }
    box = calloc(1, sizeof *box);
    if (!box) return NULL;
    box->number = b->count + 1;
    b->at[++b->count] = box;
    return box;
}

struct box *box_new(struct boxes *b, const struct event *tile)
{
    struct box *box = take(b);
    uint32_t number;
    if (!box) return NULL;
    number = box->number;
    memset(box, 0, sizeof *box);
    box->number = number;
    box->serial = ++b->serial;
    box->in = tile->in;
    box->cta = tile->cta;
    box->start = (uint32_t)tile->address;
    box->span = (uint32_t)tile->size;
    box->map = *tile->tile->map;
    memcpy(box->coord, tile->tile->coord, sizeof box->coord);
    box->pitch = tmap_row_pitch(&box->map);
    box->bytes = tmap_row_bytes(&box->map);
    box->rows = tmap_rows(&box->map);
    for (uint32_t d = 0; d < box->map.rank; d++) box->extent[d] = tmap_extent(&box->map, d);
    box->shape = shape_of(box);
    return box;
}

void box_drop(struct boxes *b, struct box *box)
{
    box->next_free = b->free;
    b->free = box->number;
}

bool box_plain(const struct box *box)
{
    return !box->map.im2col && !box->map.rows4;
}

bool box_place(const struct box *box, uint32_t address, struct box_place *out)
{
    const struct swizzle_shape swizzle = tmap_swizzle_shape(box->map.swizzle);
    uint32_t offset, row;
    if (swizzle.chunk != CHUNK || box->map.interleave) return false;
    offset = tmap_swizzle_by(swizzle, address) - box->start; /* the XOR undoes itself */
    row = offset / box->pitch;
    *out = (struct box_place){.at = {(int32_t)(offset % box->pitch)}, .row = row};
    if (row >= box->rows || (uint32_t)out->at[0] >= box->bytes) return false;
    if (!box_plain(box)) {
        out->at[1] = (int32_t)row;
        return true;
    }
    for (uint32_t d = 1; d < box->map.rank; d++) {
        out->at[d] = (int32_t)(row % box->extent[d]);
        row /= box->extent[d];
    }
    return true;
}

uint32_t box_address(const struct box *box, uint32_t row, uint32_t byte)
{
    return tmap_swizzle_by(tmap_swizzle_shape(box->map.swizzle),
                           box->start + row * box->pitch + byte);
}

int64_t box_coordinate(const struct box *box, const struct box_place *p, uint32_t d)
{
    const struct tmap *t = &box->map;
    if (d)
        return p->at[d] * (int64_t)t->element_stride[d] +
               (d < t->rank && !t->rows4 ? box->coord[d] : 0);
    return p->at[0] + (int64_t)box->coord[0] * box->bytes / (t->im2col ? t->channels : t->box[0]);
}

void box_text(const struct box *box, const struct box_place *p, uint32_t byte, char *text,
              size_t size)
{
    const struct tmap *t = &box->map;
    const uint32_t bits = tmap_row_bytes(t) * 8U / (t->im2col ? t->channels : t->box[0]);
    int n =
        snprintf(text, size, "{%d",
                 box->coord[0] + (int32_t)(((uint32_t)p->at[0] + byte) * 8U / (bits ? bits : 8U)));
    for (uint32_t d = 1; d < t->rank && n > 0 && (size_t)n < size && box_plain(box); d++)
        n += snprintf(text + n, size - (size_t)n, ", %d",
                      box->coord[d] + p->at[d] * (int32_t)t->element_stride[d]);
    if (n > 0 && (size_t)n < size)
        (void)snprintf(text + n, size - (size_t)n, box_plain(box) ? "}" : "} of row %u of the box",
                       p->row);
}

const char *swizzle_text(uint32_t swizzle)
{
    static const char *const texts[] = {"no swizzle",
                                        "the 32-byte swizzle",
                                        "the 64-byte swizzle",
                                        "the 128-byte swizzle",
                                        "the 128-byte swizzle of 32-byte atoms",
                                        "the 128-byte swizzle of flipped 32-byte atoms",
                                        "the 128-byte swizzle of 64-byte atoms"};
    return swizzle < sizeof texts / sizeof texts[0] ? texts[swizzle] : "an unknown swizzle";
}
