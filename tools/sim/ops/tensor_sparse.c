/*
 * Sparse A of mma.sp and wgmma.sp: metadata to places. PTX ISA "Sparse Matrix Storage" of mma.sp.
 *
 * A row has k/4 groups of four elements (4-bit ones: k/8 groups of four pairs), of which two are stored,
 * and four bits of metadata a group: the place of the first in the lower two bits, of the second in
 * the upper two. Of 32-bit elements k/2 groups of two, one stored: 0x4 the first, 0xE the second.
 *
 * The 16 rows' groups fill a fourth of a register of every thread a group. With 4 groups a row, thread
 * `selector` of each quad q holds row q in its low half, row q + 8 in its high half. With 8, threads
 * 2 * selector and the next: of 16- and 32-bit elements the first has groups 0 to 3 of both rows, as
 * before, of smaller ones it has all groups of row q. With 16 all four threads: rows q and q + 8 in
 * turn, groups 0 to 7 in the first two.
 */
#include "ops/tensor.h"

/* The thread of a quad and the first bit that hold a group's metadata. */
static void locate(uint32_t element_bits, uint32_t groups, uint32_t selector, uint32_t row,
                   uint32_t group, uint32_t *thread, uint32_t *bit)
{
    const uint32_t upper = row / 8U;
    if (groups == 4 || element_bits >= 16) {
        *thread = selector * (groups / 4U) + group / 4U;
        *bit = 16U * upper + 4U * (group % 4U);
    } else {
        *thread = 2U * (selector + group / 8U) + upper;
        *bit = 4U * (group % 8U);
    }
}

/* Elements of a group. */
static uint32_t group_of(enum tensor_format format)
{
    return tensor_format_bytes(format) == 4 ? 2 : tensor_format_pack(format) == 2 ? 8 : 4;
}

uint32_t tensor_selectors(enum tensor_format format, uint32_t k)
{
    return 16U * group_of(format) / k;
}

bool tensor_places(enum tensor_format format, uint32_t k, uint32_t selector,
                   const uint32_t meta[WARP_LANES], struct tensor_places *out, uint32_t *lane)
{
    const uint32_t bits = 8U * tensor_format_bytes(format) / tensor_format_pack(format);
    const uint32_t whole = group_of(format),
                   run = bits == 4 ? 2 : 1; /* run: elements that stay together */
    out->k = k;
    for (uint32_t row = 0; row < TENSOR_ROWS; row++) {
        uint8_t *at = out->at[row];
        for (uint32_t group = 0; group < k / whole; group++) {
            uint32_t thread, bit;
            locate(bits, k / whole, selector, row, group, &thread, &bit);
            *lane = row % 8U * 4U + thread;
            const uint32_t code = meta[*lane] >> bit & 15U, first = code & 3U, second = code >> 2;
            const uint32_t base = group * whole;
            if (bits == 32) {
                if (code != 0x4 && code != 0xE) return false;
                *at++ = (uint8_t)(base + (code == 0xE));
                continue;
            }
            if (first == second) return false;
            for (uint32_t i = 0; i < 2 * run; i++)
                *at++ = (uint8_t)(base + (i < run ? first : second) * run + i % run);
        }
    }
    return true;
}

void tensor_spread(const struct tensor_places *places, const float *stored, float *a)
{
    for (uint32_t i = 0; i < places->k * TENSOR_FRAGMENT; i++) a[i] = -0.0F;
    for (uint32_t i = 0; i < places->k / 2U; i++) {
        for (uint32_t slot = 0; slot < TENSOR_FRAGMENT; slot++) {
            const uint32_t row = slot % WARP_LANES / 4U + 8U * (slot / WARP_LANES);
            const float value = stored[i * TENSOR_FRAGMENT + slot];
            a[places->at[row][i] * TENSOR_FRAGMENT + slot] = value == 0 ? 0.0F : value;
        }
    }
}

void tensor_popcount(const struct tensor_bits *p, uint32_t *const *acc, bool accumulate)
{
    for (uint32_t i = 0; i < p->n / 2U; i++) {
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
            const uint32_t *a = p->a[lane / 4U + 8U * (i / 2U % 2U)];
            const uint32_t *b = p->b[8U * (i / 4U) + 2U * (lane % 4U) + i % 2U];
            uint32_t sum = accumulate ? acc[i][lane] : 0;
            for (uint32_t word = 0; word < p->words; word++)
                sum += (uint32_t)__builtin_popcount(p->exclusive ? a[word] ^ b[word]
                                                                 : a[word] & b[word]);
            acc[i][lane] = sum;
        }
    }
}
