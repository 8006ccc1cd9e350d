/* Textures: handles, addressing, filtering, formats. */
#include "ops/texture.h"
#include "machine/half.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- handles ---- */

enum { SLOTS_MOST = 1 << 20 };
/* No address of anything: a handle that is taken for one faults. */
#define HANDLE_BASE 0x0007E00000000000ULL

static struct {
    struct texture **slots;
    uint32_t count, capacity;
} table;

uint64_t texture_add(struct texture *t)
{
    uint32_t i = 0;

    while (i < table.count && table.slots[i]) i++;
    if (i == table.capacity) {
        uint32_t wanted = table.capacity ? table.capacity * 2 : 64;
        struct texture **grown =
            wanted > SLOTS_MOST ? NULL : realloc(table.slots, wanted * sizeof *grown);
        if (!grown) return 0;
        table.slots = grown;
        table.capacity = wanted;
    }
    if (i == table.count) table.count++;
    table.slots[i] = t;
    return HANDLE_BASE + i;
}

const struct texture *texture_get(uint64_t handle)
{
    uint64_t i = handle - HANDLE_BASE;
    return i < table.count ? table.slots[i] : NULL;
}

bool texture_drop(uint64_t handle)
{
    uint64_t i = handle - HANDLE_BASE;

    if (i >= table.count || !table.slots[i]) return false;
    free(table.slots[i]);
    table.slots[i] = NULL;
    return true;
}

void texture_drop_all(void)
{
    for (uint32_t i = 0; i < table.count; i++) free(table.slots[i]);
    free(table.slots);
    memset(&table, 0, sizeof table);
}

/* ---- addressing ---- */

uint32_t texture_dims(const struct texture *t)
{
    switch (t->shape) {
    case TEXTURE_1D:
    case TEXTURE_1D_LAYERED:
    case TEXTURE_LINEAR: return 1;
    case TEXTURE_3D: return 3;
    default: return 2;
    }
}

uint32_t texel_bytes(const struct texel_format *format)
{
    return (uint32_t)format->bits / 8U * format->channels;
}

/* The index inside [0, size) that stands for `i`; -1: the border. */
static int32_t wrapped(enum texture_address mode, bool normalized, int32_t i, int32_t size)
{
    int32_t period = 2 * size, r;

    if (i >= 0 && i < size) return i;
    switch (normalized || mode == ADDRESS_BORDER ? mode : ADDRESS_CLAMP) {
    case ADDRESS_WRAP: r = i % size; return r < 0 ? r + size : r;
    case ADDRESS_MIRROR:
        r = i % period;
        if (r < 0) r += period;
        return r < size ? r : period - 1 - r;
    case ADDRESS_BORDER: return -1;
    default: return i < 0 ? 0 : size - 1;
    }
}

/* Hardware takes one dimension for two of height 1, sampled on the upper edge (seen on an H200). */
static bool edge_row(const struct texture *t)
{
    return t->linear && t->shape == TEXTURE_1D && t->wrap[1] == ADDRESS_BORDER;
}

bool texture_place(const struct texture *t, uint32_t level, const int32_t at[TEXTURE_DIMS],
                   uint32_t layer, uint64_t *address)
{
    const struct texture_level *l = &t->level[level];
    uint32_t dims = texture_dims(t);
    int32_t i[TEXTURE_DIMS] = {0, 0, 0};

    for (uint32_t d = 0; d < dims; d++) {
        if (t->shape == TEXTURE_LINEAR && (at[d] < 0 || (uint32_t)at[d] >= l->size[d]))
            return false;
        i[d] = wrapped(t->wrap[d], t->normalized, at[d], (int32_t)l->size[d]);
        if (i[d] < 0) return false;
    }
    if (edge_row(t) && at[1] < 0) return false;
    *address = l->address + (uint64_t)i[0] * texel_bytes(&t->format) + (uint64_t)i[1] * l->row +
               ((uint64_t)i[2] + layer) * l->slice;
    return true;
}

/* Hardware keeps eight bits of the fraction. */
static float eighth_bit(float fraction)
{
    return floorf(fraction * 256.0F + 0.5F) / 256.0F;
}

static float clamped(float x)
{
    const float most = 1 << 24;
    return x < -most ? -most : x > most ? most : x == x ? x : 0.0F; /* NaN reads as 0 */
}

void texture_taps(const struct texture *t, uint32_t level, const float coordinate[TEXTURE_DIMS],
                  struct texture_taps *out)
{
    uint32_t dims = texture_dims(t);
    int32_t first[TEXTURE_DIMS] = {0, 0, 0};
    float part[TEXTURE_DIMS] = {0, 0, 0};

    for (uint32_t d = 0; d < dims; d++) {
        float x = coordinate[d] * (t->normalized ? (float)t->level[level].size[d] : 1.0F);
        x = clamped(t->linear ? x - 0.5F : x);
        first[d] = (int32_t)floorf(x);
        part[d] = eighth_bit(x - floorf(x));
    }
    if (edge_row(t)) {
        dims = 2; /* half of the row, half of the border above it */
        first[1] = -1;
        part[1] = 0.5F;
    }
    out->count = t->linear ? 1U << dims : 1U;
    for (uint32_t tap = 0; tap < out->count; tap++) {
        out->weight[tap] = 1.0F;
        for (uint32_t d = 0; d < TEXTURE_DIMS; d++) {
            int32_t next = (int32_t)(tap >> d & 1U);
            out->at[tap][d] = first[d] + next;
            if (t->linear && d < dims) out->weight[tap] *= next ? part[d] : 1.0F - part[d];
        }
    }
}

/* Programming Guide, "Cubemap Textures": the axis of largest magnitude m names the face. */
uint32_t texture_face(const float direction[3], float out[2])
{
    float x = direction[0], y = direction[1], z = direction[2];
    float ax = fabsf(x), ay = fabsf(y), az = fabsf(z), m, s, t;
    uint32_t face;

    if (ax >= ay && ax >= az) {
        face = x >= 0 ? 0U : 1U;
        m = ax;
        s = x >= 0 ? -z : z;
        t = -y;
    } else if (ay >= az) {
        face = y >= 0 ? 2U : 3U;
        m = ay;
        s = x;
        t = y >= 0 ? z : -z;
    } else {
        face = z >= 0 ? 4U : 5U;
        m = az;
        s = z >= 0 ? x : -x;
        t = -y;
    }
    out[0] = m > 0 ? (s / m + 1.0F) / 2.0F : 0.5F;
    out[1] = m > 0 ? (t / m + 1.0F) / 2.0F : 0.5F;
    return face;
}

/* ---- formats ---- */

bool texture_floats(const struct texture *t)
{
    return t->format.kind == TEXEL_FLOAT || t->as_float;
}

static uint32_t float_word(float f)
{
    uint32_t word;
    memcpy(&word, &f, sizeof word);
    return word;
}

/* IEC 61966-2-1. */
static float from_srgb(float v)
{
    return v <= 0.04045F ? v / 12.92F : powf((v + 0.055F) / 1.055F, 2.4F);
}

static int32_t sign_extended(uint32_t raw, uint32_t bits)
{
    uint32_t unused = 32 - bits;
    return (int32_t)(raw << unused) >> unused;
}

static uint32_t channel(const struct texture *t, const uint8_t *at, uint32_t which)
{
    uint32_t bits = t->format.bits, raw = 0;
    float v;

    memcpy(&raw, at, bits / 8U);
    if (t->format.kind == TEXEL_FLOAT)
        return bits == 16 ? float_word(half_to_float((uint16_t)raw)) : raw;
    if (t->format.kind == TEXEL_UNSIGNED) {
        if (!t->as_float) return raw;
        v = (float)raw / (float)(bits == 8 ? 0xFF : 0xFFFF);
        return float_word(t->srgb && which < 3 ? from_srgb(v) : v);
    }
    if (!t->as_float) return (uint32_t)sign_extended(raw, bits);
    v = (float)sign_extended(raw, bits) / (float)(bits == 8 ? 0x7F : 0x7FFF);
    return float_word(v < -1.0F ? -1.0F : v);
}

void texture_unpack(const struct texture *t, const void *texel, uint32_t out[4])
{
    const uint8_t *at = texel;

    for (uint32_t c = 0; c < 4; c++)
        out[c] = c < t->format.channels ? channel(t, at + c * (t->format.bits / 8U), c)
                 : c == 3               ? (texture_floats(t) ? float_word(1.0F) : 1U)
                                        : 0U;
}

void texture_border(const struct texture *t, uint32_t out[4])
{
    for (uint32_t c = 0; c < 4; c++)
        out[c] = texture_floats(t) ? float_word(t->border[c]) : (uint32_t)(int32_t)t->border[c];
}
