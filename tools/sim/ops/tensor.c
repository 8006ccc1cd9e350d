/*
 * Operand tiles: canonical layouts, swizzles, number formats (tensor.h).
 *
 * Every canonical layout keeps 16-byte chunks whole, so a tile is fetched chunk by chunk: eight chunks
 * of neighbouring lines make an 8 x 8 block of 16-bit elements, which is transposed where the wanted
 * order asks for it and then converted.
 */
#include "ops/tensor.h"

enum { CHUNK = 16, LINES = 8 };

/* ---- layouts ---- */

/* By swizzle mode, logarithms: span of the pattern in bytes, lines of MN-major data before the pattern
 * moves on by SBO; and the XOR, address ^ (address >> shift & mask), PTX ISA "Swizzling Modes". */
static const struct swizzle {
    uint32_t span, lines, shift, mask;
} swizzles[] = {
    {4, 3, 0, 0}, {5, 3, 3, 0x10}, {6, 3, 3, 0x30}, {7, 3, 3, 0x70}, {7, 2, 2, 0x60},
};

static inline uint32_t swizzled(struct swizzle s, uint32_t phase, uint32_t address)
{
    return address ^ ((address - phase) >> s.shift & s.mask);
}

static inline uint32_t low(uint32_t value, uint32_t bits)
{
    return value & ((1U << bits) - 1U);
}

/* Address of element (mn, k) before the swizzle, PTX ISA "Canonical Layouts". */
static inline uint32_t linear(const struct smem_operand *o, uint32_t mn, uint32_t k)
{
    const struct swizzle *s = &swizzles[o->swizzle];
    const uint32_t element = o->elem_bytes >> 1; /* logarithm of 1, 2, 4 */
    if (!o->mn_major) {
        const uint32_t byte = k << element;
        const uint32_t apart = (low(mn, 3) << s->span) + (mn >> 3) * o->sbo;
        const uint32_t row = o->start + apart;
        if (o->wraps && low(o->start, s->span) + byte >= 1U << s->span)
            return o->lbo + apart + low(o->start + byte, s->span);
        /* a row wider than its swizzle's span goes on one leading offset later (sparse B in 32 bytes) */
        return row + (byte >> s->span) * o->lbo + low(byte, s->span);
    }
    const uint32_t pattern = mn >> (s->span - element), step = k >> s->lines;
    const uint32_t line =
        o->start + (low(mn, s->span - element) << element) + (low(k, s->lines) << s->span);
    return o->swizzle ? line + pattern * o->lbo + step * o->sbo
                      : line + pattern * o->sbo + step * o->lbo;
}

uint32_t smem_element(const struct smem_operand *o, uint32_t mn, uint32_t k)
{
    return swizzled(swizzles[o->swizzle], o->phase, linear(o, mn, k));
}

struct smem_operand smem_from_row(const struct smem_operand *o, uint32_t mn)
{
    struct smem_operand from = *o;
    from.start = linear(o, mn, 0);
    return from;
}

/* ---- formats ---- */

enum tensor_format tensor_format_named(const char *type)
{
    static const struct {
        const char *type;
        enum tensor_format format;
    } names[] = {{"f16", TF_F16},   {"bf16", TF_BF16}, {"tf32", TF_TF32},
                 {"e4m3", TF_E4M3}, {"e5m2", TF_E5M2}, {"u8", TF_U8},
                 {"s8", TF_S8},     {"u4", TF_U4},     {"s4", TF_S4}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(type, names[i].type)) return names[i].format;
    return TF_FORMATS;
}

uint32_t tensor_format_bytes(enum tensor_format format)
{
    static const uint8_t bytes[TF_FORMATS] = {2, 2, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    return bytes[format];
}

uint32_t tensor_format_pack(enum tensor_format format)
{
    return format == TF_E2M1X2 || format == TF_U4 || format == TF_S4 ? 2 : 1;
}

void tensor_unpack(uint32_t bits, const uint8_t from[16], uint8_t to[16])
{
    uint8_t code[CHUNK];
    for (uint32_t i = 0; i < CHUNK; i++) {
        const uint32_t bit = i * bits, byte = bit / 8U;
        const uint32_t pair = from[byte] | (uint32_t)from[byte + 1U] << 8; /* the padding follows */
        const uint32_t value = pair >> bit % 8U & ((1U << bits) - 1U);
        code[i] = (uint8_t)(bits == 4 ? value << 2 : value);
    }
    memcpy(to, code, sizeof code);
}

/* e4m3: bias 7, no infinities, 0x7F and 0xFF are NaN. */
static float widen_e4m3(uint8_t v)
{
    const uint32_t sign = (v & 0x80U) << 24, exponent = v >> 3 & 15U, fraction = v & 7U;
    if ((v & 0x7FU) == 0x7FU) return float_of(0x7FFFFFFFU);
    if (!exponent) return float_of(float_pattern((float)fraction / 512.0F) | sign);
    return float_of((exponent + 120U) << 23 | fraction << 20 | sign);
}

/* Six bits or fewer: a sign, `exponents` and `fractions` bits; neither infinities nor NaN. */
static float widen_small(uint32_t v, uint32_t exponents, uint32_t fractions)
{
    const uint32_t exponent = v >> fractions & ((1U << exponents) - 1U);
    const uint32_t fraction = v & ((1U << fractions) - 1U), bias = (1U << (exponents - 1U)) - 1U;
    const uint32_t whole = exponent ? fraction | 1U << fractions : fraction;
    const float magnitude =
        (float)(whole << (exponent ? exponent - 1U : 0)) / (float)(1U << (bias + fractions - 1U));
    return v >> (exponents + fractions) & 1U ? -magnitude : magnitude;
}

static float widen_nibble(enum tensor_format format, uint32_t v)
{
    if (format == TF_E2M1X2) return widen_small(v, 2, 1);
    return format == TF_S4 ? (float)(int32_t)((v ^ 8U) - 8U) : (float)v;
}

static float widen_e5m2(uint8_t v)
{
    return half_to_float((uint16_t)(v << 8));
}

void tensor_convert(enum tensor_format format, const void *src, uint32_t count, float *dst)
{
    const uint8_t *bytes = src;
    if (format == TF_F16 || format == TF_BF16) {
        tensor_widen(format == TF_BF16, src, count, dst);
        return;
    }
    const bool nibbles = tensor_format_pack(format) == 2;
    for (uint32_t i = 0; nibbles && i < count; i++)
        dst[i] = widen_nibble(format, (uint32_t)bytes[i / 2U] >> i % 2U * 4U & 15U);
    for (uint32_t i = 0; !nibbles && i < count; i++) {
        uint32_t word = 0;
        memcpy(&word, bytes + (size_t)i * tensor_format_bytes(format), tensor_format_bytes(format));
        switch (format) {
        case TF_TF32: dst[i] = float_of(word & 0xFFFFE000U); break; /* 19 bits, truncated */
        case TF_E4M3: dst[i] = widen_e4m3((uint8_t)word); break;
        case TF_E5M2: dst[i] = widen_e5m2((uint8_t)word); break;
        case TF_E2M3: dst[i] = widen_small(word & 63U, 2, 3); break;
        case TF_E3M2: dst[i] = widen_small(word & 63U, 3, 2); break;
        case TF_E2M1: dst[i] = widen_small(word >> 2 & 15U, 2, 1); break;
        case TF_U8: dst[i] = (float)word; break;
        case TF_S8: dst[i] = (float)(int8_t)word; break;
        default: dst[i] = 0; break;
        }
    }
}

/* ---- register fragments ---- */

void tensor_fragment(enum tensor_format format, const uint32_t *const *reg, uint32_t registers,
                     float *a)
{
    const uint32_t per_reg = 4U / tensor_format_bytes(format) * tensor_format_pack(format);
    for (uint32_t r = 0; r < registers; r++) {
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
            const uint32_t row = lane / 4U, k = (lane % 4U + 4U * (r / 2U)) * per_reg;
            float value[8];
            tensor_convert(format, &reg[r][lane], per_reg, value);
            for (uint32_t i = 0; i < per_reg; i++) {
                float *to = a + (size_t)(k + i) * TENSOR_FRAGMENT + (r & 1U) * WARP_LANES;
                for (uint32_t q = 0; q < 4; q++) to[row * 4U + q] = value[i];
            }
        }
    }
}

/* ---- tiles ---- */

typedef uint16_t vec_u16 __attribute__((vector_size(CHUNK)));

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (vec_u16){__VA_ARGS__})
#endif

/* Interleaves element pairs: three rounds of it over rows i and i+4 transpose an 8 x 8 block. */
static void transpose(vec_u16 v[LINES])
{
    for (uint32_t round = 0; round < 3; round++) {
        vec_u16 t[LINES];
        for (uint32_t i = 0; i < 4; i++) {
            t[2 * i] = SHUFFLE(v[i], v[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            t[2 * i + 1] = SHUFFLE(v[i], v[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        memcpy(v, t, sizeof t);
    }
}

static inline bool in_window(uint32_t offset, uint32_t shared_bytes)
{
    return offset >= SHARED_RESERVED && offset <= shared_bytes - CHUNK;
}

/* A tile being gathered. */
struct gather {
    const struct smem_operand *o;
    const uint8_t *shared;
    uint32_t shared_bytes;
    uint32_t mn, k;
    enum tile_order order;
};

/* TILE_QUADS: the column in each slot, and the slot of each column. */
static const uint8_t quad_order[LINES] = {0, 2, 4, 6, 1, 3, 5, 7};
static const uint8_t quad_slot[LINES] = {0, 4, 1, 5, 2, 6, 3, 7};

static inline size_t tile_index(const struct gather *g, uint32_t mn, uint32_t k)
{
    switch (g->order) {
    case TILE_K_INNER: return (size_t)mn * g->k + k;
    case TILE_MN_INNER: return (size_t)k * g->mn + mn;
    default: return ((size_t)(mn / 8U) * g->k + k) * 8U + quad_slot[mn % 8U];
    }
}

/* The 8 x 8 block of 16-bit elements at (mn, k). Its lines run along the major direction: rows of
 * K-major data, k of MN-major; `turn` makes them run the other way. */
static inline bool gather_block(const struct gather *g, uint32_t mn, uint32_t k, uint16_t *tile)
{
    const struct smem_operand *o = g->o;
    const bool quads = g->order == TILE_QUADS;
    const bool turn = o->mn_major == (g->order == TILE_K_INNER);
    const bool along_k = o->mn_major != turn; /* after the turn line i is k + i, else mn + i */
    const struct swizzle s = swizzles[o->swizzle];
    const uint32_t pitch = 1U << s.span, phase = o->phase;
    /* no layout breaks its pitch inside four lines */
    const uint32_t base[2] = {linear(o, mn, k),
                              o->mn_major ? linear(o, mn, k + 4) : linear(o, mn + 4, k)};
    vec_u16 v[LINES];
    uint32_t at[LINES];
    bool inside = true;
    for (uint32_t i = 0; i < LINES; i++) {
        at[i] = swizzled(s, phase, base[i >> 2] + (i & 3U) * pitch);
        inside &= in_window(at[i], g->shared_bytes);
    }
    if (!inside) return false;
    for (uint32_t i = 0; i < LINES; i++) {
        const uint32_t line = quads && turn ? quad_order[i] : i;
        memcpy(&v[i], g->shared + at[line], CHUNK);
    }
    if (turn) transpose(v);
    uint16_t *to = tile + (quads ? ((size_t)(mn / 8U) * g->k + k) * 8U : tile_index(g, mn, k));
    const size_t step = quads ? 8U : along_k ? g->mn : g->k;
    for (uint32_t i = 0; i < LINES; i++) {
        if (quads && !turn) v[i] = SHUFFLE(v[i], v[i], 0, 2, 4, 6, 1, 3, 5, 7);
        memcpy(to + i * step, &v[i], sizeof v[i]);
    }
    return true;
}

static bool gather_16(const struct gather *g, enum tensor_format format, float *dst)
{
    uint16_t tile[TENSOR_MAX_MN * TENSOR_MAX_K];
    for (uint32_t x = 0; x < g->mn; x += LINES)
        for (uint32_t y = 0; y < g->k; y += LINES)
            if (!gather_block(g, x, y, tile)) return false;
    tensor_convert(format, tile, g->mn * g->k, dst);
    return true;
}

/* One chunk of elements of other than 16 bits whose first is (mn, k). */
static bool gather_chunk(const struct gather *g, enum tensor_format format, uint32_t mn, uint32_t k,
                         float *dst)
{
    uint8_t chunk[CHUNK];
    float value[2 * CHUNK];
    const uint32_t pack = tensor_format_pack(format), count = CHUNK / g->o->elem_bytes * pack;
    const uint32_t at = smem_element(g->o, mn, k / pack);
    if (!in_window(at, g->shared_bytes)) return false;
    memcpy(chunk, g->shared + at, CHUNK);
    if (tensor_format_padded(format)) tensor_unpack(format == TF_E2M1 ? 4 : 6, chunk, chunk);
    tensor_convert(format, chunk, count, value);
    for (uint32_t i = 0; i < count; i++)
        dst[g->o->mn_major ? tile_index(g, mn + i, k) : tile_index(g, mn, k + i)] = value[i];
    return true;
}

bool tensor_gather(const struct smem_operand *o, enum tensor_format format, const uint8_t *shared,
                   uint32_t shared_bytes, uint32_t mn, uint32_t k, enum tile_order order,
                   float *dst)
{
    const struct gather g = {o, shared, shared_bytes, mn, k, order};
    const uint32_t per_chunk = CHUNK / o->elem_bytes * tensor_format_pack(format);
    const uint32_t step_mn = o->mn_major ? per_chunk : 1U, step_k = o->mn_major ? 1U : per_chunk;
    if (o->elem_bytes == 2) return gather_16(&g, format, dst);
    for (uint32_t x = 0; x < mn; x += step_mn)
        for (uint32_t y = 0; y < k; y += step_k)
            if (!gather_chunk(&g, format, x, y, dst)) return false;
    return true;
}

void tensor_ranges(const struct smem_operand *o, uint32_t mn, uint32_t k, smem_range_fn *emit,
                   void *context)
{
    const uint32_t per_chunk = CHUNK / o->elem_bytes;
    const uint32_t lines = o->mn_major ? k : mn, across = o->mn_major ? mn : k;
    uint32_t first = 0, bytes = 0;
    for (uint32_t line = 0; line < lines; line++) {
        for (uint32_t i = 0; i < across; i += per_chunk) {
            const uint32_t at = o->mn_major ? smem_element(o, i, line) : smem_element(o, line, i);
            if (bytes && (at == first + bytes || at + CHUNK == first)) {
                first = at < first ? at : first;
                bytes += CHUNK;
                continue;
            }
            if (bytes) emit(context, first, bytes);
            first = at;
            bytes = CHUNK;
        }
    }
    if (bytes) emit(context, first, bytes);
}
