/*
 * The 128 bytes of a CUtensorMap. NVIDIA documents none of this. The layout was read from some 9,700
 * maps that driver 580 encoded on an H200, and from what tensormap.replace changed there;
 * tests/golden/map.bin holds such maps.
 *
 *   word   bits
 *   0, 1   address
 *   2      0 im2col; 4-6 rank - 1; 7-10 type; 11-12 interleave; 13-14 swizzle; 15 fill with NaN;
 *          16 TF32; 17-18 L2 promotion
 *   3-6    strides of dimensions 1 to 4, by 16 bytes; word 7 has bits 32 to 35 of each
 *   8-12   dimensions - 1
 *   13     0-14 element strides - 1, 3 bits each; 24-31 box of dimension 0 - 1, or channels - 1
 *   14     tiled: boxes of dimensions 1 to 4 - 1, 8 bits each
 *          im2col: lower corners from bit 0, upper ones from bit 16, of 16, 8 or 5 bits each by the rank
 *   15     im2col: pixels - 1
 *   16     bytes of the box, each dimension divided by its element stride and rounded down
 *   18     the alignment that the swizzle asks of shared memory
 *
 * tensormap.replace leaves words 16 and 18 as they are, and copies do not read them. CuTe DSL 4.8 encodes maps itself,
 * for sm_90a too, and leaves words 16 to 31 as its stack has them. So they are not looked at. In word 2 it sets bit 1,
 * and CUTLASS clears bit 21 for some drivers; both are ignored. Where Blackwell has more, the place is ours, because no
 * such map has been recorded: the atomicity of the swizzle (word 2, bits 19-20), the 96-byte swizzle (bit 22),
 * im2col::w (bits 23-24). The three packed types have the numbers of the instruction.
 */
#include "async/tmap.h"
#include "async/tmap_copy.h"

enum {
    WORDS = 32,
    DIMS = 5,
    W_MODE = 2,
    W_STRIDE = 3,
    W_STRIDE_HIGH = 7,
    W_DIM = 8,
    W_STEPS = 13,
    W_BOX = 14,
    W_PIXELS = 15,
    W_BYTES = 16,
    W_ALIGN = 18,
    TYPE_F32 = 7,
    TYPE_F32_FTZ = 8
};

/* Word, first bit and bits of a field that has one place. */
struct place {
    uint8_t word, shift, bits;
};
static const struct place im2col = {W_MODE, 0, 1}, wide = {W_MODE, 23, 2}, rank = {W_MODE, 4, 3},
                          type = {W_MODE, 7, 4}, interleave = {W_MODE, 11, 2},
                          swizzle = {W_MODE, 13, 2}, fill = {W_MODE, 15, 1}, tf32 = {W_MODE, 16, 1},
                          l2 = {W_MODE, 17, 2}, atomicity = {W_MODE, 19, 2},
                          swizzle_high = {W_MODE, 22, 1}, channels = {W_STEPS, 24, 8},
                          pixels = {W_PIXELS, 0, 10};

/* Bits that a map may have, by word; the others of these words are zero. */
static const uint32_t known[W_BYTES] = {UINT32_MAX, UINT32_MAX, 0x01FFFFF3, UINT32_MAX,
                                        UINT32_MAX, UINT32_MAX, UINT32_MAX, 0xFFFF,
                                        UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
                                        UINT32_MAX, 0xFF007FFF, UINT32_MAX, 0x3FF};

/* The instruction's element types in the driver's numbers; the map holds 11 and 12 as 7 and 8 with
 * the flag of TF32. */
static const uint8_t of_instruction[16] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12, 13, 14, 15};

static uint32_t get(const uint32_t *w, struct place p)
{
    return w[p.word] >> p.shift & ((1U << p.bits) - 1);
}

static void put(uint32_t *w, struct place p, uint32_t value)
{
    uint32_t mask = ((1U << p.bits) - 1) << p.shift;
    w[p.word] = (w[p.word] & ~mask) | (value << p.shift & mask);
}

static struct place step_of(uint32_t d)
{
    return (struct place){W_STEPS, (uint8_t)(3 * d), 3};
}

static struct place box_of(uint32_t d)
{
    return d ? (struct place){W_BOX, (uint8_t)(8 * (d - 1)), 8} : channels;
}

static struct place corner_of(const struct tmap *t, uint32_t i, bool upper)
{
    uint32_t bits = t->wide || t->rank < 4 ? 16 : t->rank == 4 ? 8 : 5;
    return (struct place){W_BOX, (uint8_t)(bits * i + (upper ? 16 : 0)), (uint8_t)bits};
}

static uint32_t corners(const struct tmap *t)
{
    return t->wide || t->rank < 3 ? 1 : t->rank > 4 ? 3 : t->rank - 2U;
}

static void put_stride(uint32_t *w, uint32_t d, uint64_t bytes)
{
    w[W_STRIDE + d - 1] = (uint32_t)(bytes >> 4);
    put(w, (struct place){W_STRIDE_HIGH, (uint8_t)(4 * (d - 1)), 4}, (uint32_t)(bytes >> 36));
}

static void put_type(uint32_t *w, uint32_t instruction)
{
    if (instruction == 11 || instruction == 12) {
        put(w, tf32, 1);
        instruction -= 11 - TYPE_F32;
    }
    put(w, type, instruction);
}

/* ---- what follows from the fields ---- */

static uint32_t bytes_word(const struct tmap *t)
{
    uint64_t bits = t->dtype >= TMAP_U4_ALIGN16 ? 8 : tmap_elem_bits(t->dtype);
    /* A map of W128 takes any count of pixels, of which the field keeps ten bits. */
    uint32_t kept = ((t->pixels - 1) & ((1U << pixels.bits) - 1)) + 1;

    if (t->im2col) return (uint32_t)(bits * t->channels * kept / 8);
    for (uint32_t d = 0; d < t->rank && d < DIMS; d++) bits *= t->box[d] / t->element_stride[d];
    return (uint32_t)(bits / 8);
}

static uint32_t align_word(const struct tmap *t)
{
    static const uint16_t by_mode[] = {16, 256, 512, 1024, 1024, 1024, 1024, 1024};
    return by_mode[t->swizzle & 7];
}

/* ---- both ways ---- */

static bool of_128_bytes(const struct tmap *t)
{
    return t->swizzle >= TMAP_SWIZZLE_128 && t->swizzle <= TMAP_SWIZZLE_LAST;
}

static void put_mode(uint32_t *w, const struct tmap *t)
{
    uint32_t number = 0;
    while (number < 15 && of_instruction[number] != t->dtype) number++;
    put_type(w, number);
    if (t->foreign & TMAP_WAS_TF32) put(w, tf32, 1);
    put(w, im2col, t->im2col != 0);
    put(w, wide, t->wide);
    put(w, rank, t->rank - 1U);
    put(w, interleave, t->interleave);
    put(w, fill, t->oob);
    put(w, l2, t->l2);
    put(w, swizzle, of_128_bytes(t) ? 3 : t->swizzle == TMAP_SWIZZLE_96 ? 0 : t->swizzle);
    put(w, swizzle_high, t->swizzle == TMAP_SWIZZLE_96);
    put(w, atomicity, of_128_bytes(t) ? t->swizzle - TMAP_SWIZZLE_128 : t->atomicity);
}

void tmap_encode(const struct tmap *t, void *opaque128)
{
    uint32_t w[WORDS] = {(uint32_t)t->address, (uint32_t)(t->address >> 32)};
    put_mode(w, t);
    for (uint32_t d = 0; d < t->rank; d++) {
        w[W_DIM + d] = (uint32_t)(t->dim[d] - 1);
        put(w, step_of(d), t->element_stride[d] - 1);
        if (d) put_stride(w, d, t->stride[d]);
        if (!t->im2col) put(w, box_of(d), t->box[d] - 1);
    }
    if (t->im2col) {
        put(w, channels, t->channels - 1);
        put(w, pixels, t->pixels - 1);
        for (uint32_t i = 0; i < corners(t); i++) {
            put(w, corner_of(t, i, false), (uint32_t)t->lower[i]);
            put(w, corner_of(t, i, true), (uint32_t)t->upper[i]);
        }
    }
    w[W_BYTES] = bytes_word(t);
    w[W_ALIGN] = align_word(t);
    memcpy(opaque128, w, sizeof w);
}

static int32_t corner(const uint32_t *w, const struct tmap *t, uint32_t i, bool upper)
{
    struct place p = corner_of(t, i, upper);
    uint32_t sign = 1U << (p.bits - 1);
    return (int32_t)(get(w, p) ^ sign) - (int32_t)sign;
}

static void get_mode(const uint32_t *w, struct tmap *t)
{
    uint32_t mode = get(w, swizzle), number = get(w, type);
    t->address = (uint64_t)w[1] << 32 | w[0];
    t->im2col = (uint8_t)get(w, im2col);
    t->wide = (uint8_t)get(w, wide);
    t->rank = (uint8_t)(get(w, rank) + 1);
    t->interleave = (uint8_t)get(w, interleave);
    t->oob = (uint8_t)get(w, fill);
    t->l2 = (uint8_t)get(w, l2);
    t->atomicity = (uint8_t)get(w, atomicity);
    if (mode == 3) mode += t->atomicity;
    if (get(w, swizzle_high)) mode = TMAP_SWIZZLE_96;
    t->swizzle = (uint8_t)mode;
    t->dtype = of_instruction[number];
    if (get(w, tf32) && (number == TYPE_F32 || number == TYPE_F32_FTZ))
        t->dtype = of_instruction[number + 11 - TYPE_F32];
    else if (get(w, tf32))
        t->foreign = TMAP_WAS_TF32;
}

static bool is_map(const uint32_t *w)
{
    uint32_t number = get(w, type), any = 0;
    for (uint32_t i = 0; i < W_BYTES; i++) {
        if (w[i] & ~known[i]) return false;
        any |= w[i];
    }
    return any && number != 11 && number != 12;
}

bool tmap_decode(const void *opaque128, struct tmap *out)
{
    uint32_t w[WORDS];
    struct tmap t = {0};
    memcpy(w, opaque128, sizeof w);
    if (!is_map(w)) return false;
    get_mode(w, &t);
    for (uint32_t d = 0; d < DIMS; d++) {
        t.dim[d] = w[W_DIM + d] + 1ULL;
        t.element_stride[d] = get(w, step_of(d)) + 1;
        t.box[d] = t.im2col ? 1 : get(w, box_of(d)) + 1;
        t.stride[d] = d ? (uint64_t)get(w, (struct place){W_STRIDE_HIGH, (uint8_t)(4 * (d - 1)), 4})
                                  << 36 |
                              (uint64_t)w[W_STRIDE + d - 1] << 4
                        : tmap_elem_bytes(t.dtype);
    }
    if (t.im2col) {
        t.channels = get(w, channels) + 1;
        t.pixels = get(w, pixels) + 1;
        for (uint32_t i = 0; i < corners(&t); i++) {
            t.lower[i] = corner(w, &t, i, false);
            t.upper[i] = corner(w, &t, i, true);
        }
    }
    if (w[W_BYTES] != bytes_word(&t) || w[W_ALIGN] != align_word(&t)) t.foreign |= TMAP_CHANGED;
    *out = t;
    return true;
}

void tmap_replace(void *opaque128, enum tmap_field field, uint32_t d, uint64_t value)
{
    uint32_t w[WORDS], less = (uint32_t)value - 1;
    memcpy(w, opaque128, sizeof w);
    switch (field) {
    case TMAP_FIELD_ADDRESS:
        w[0] = (uint32_t)value;
        w[1] = (uint32_t)(value >> 32);
        break;
    case TMAP_FIELD_RANK: put(w, rank, (uint32_t)value); break;
    case TMAP_FIELD_BOX: put(w, box_of(d), less); break;
    case TMAP_FIELD_DIM: w[W_DIM + d] = less; break;
    case TMAP_FIELD_STRIDE:
        if (d < 4) put_stride(w, d + 1, value);
        break;
    case TMAP_FIELD_ELEMENT_STRIDE: put(w, step_of(d), less); break;
    case TMAP_FIELD_TYPE: put_type(w, (uint32_t)value); break;
    case TMAP_FIELD_INTERLEAVE: put(w, interleave, (uint32_t)value); break;
    case TMAP_FIELD_SWIZZLE:
        put(w, swizzle, value == 4 ? 0 : (uint32_t)value);
        put(w, swizzle_high, value == 4);
        break;
    case TMAP_FIELD_ATOMICITY: put(w, atomicity, (uint32_t)value); break;
    case TMAP_FIELD_FILL: put(w, fill, (uint32_t)value); break;
    }
    memcpy(opaque128, w, sizeof w);
}
