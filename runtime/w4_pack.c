/* Packs 4-bit weights, on the host, into the layout of ptx/inc/w4.plan.h. */
#include "w4.h"

#include "error.h"

#include <string.h>

enum { THREADS = 128, WORDS = 4, MIDDLE = 8 /* what int4 calls 0, with its sign bit inverted */ };

struct rows { /* of the caller's arrays, in bytes */
    const unsigned char *values, *scales, *zeros;
    uint64_t value_row, scale_row, zero_row;
};

static int take_row(const char *name, int64_t given, uint64_t least, uint64_t *row, hewn_error *err)
{
    if (given < 0 || (given && (uint64_t)given < least))
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is less than a row, %llu", name,
                         (long long)given, (unsigned long long)least);
    *row = given ? (uint64_t)given : least;
    return HEWN_OK;
}

static int take_rows(const struct w4_problem *p, const hewn_w4_weights *w, struct rows *r,
                     hewn_error *err)
{
    if (!w->values) return hewn_fail_null(err, "values");
    if (!w->scales) return hewn_fail_null(err, "scales");
    if (p->zeros != (w->zeros != NULL))
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "zeros: must %sbe NULL with format %s",
                         p->zeros ? "not " : "", hewn_w4_format_name(p->format));
    int status = take_row("value_row", w->value_row, (p->k + UINT64_C(1)) / 2, &r->value_row, err);
    if (!status) status = take_row("scale_row", w->scale_row, p->given_groups, &r->scale_row, err);
    if (!status) status = take_row("zero_row", w->zero_row, p->given_groups, &r->zero_row, err);
    r->values = w->values;
    r->scales = w->scales;
    r->zeros = w->zeros;
    return status;
}

static int check_zeros(const struct w4_problem *p, const struct rows *r, hewn_error *err)
{
    for (uint32_t j = 0; p->zeros && j < p->n; j++)
        for (uint32_t g = 0; g < p->given_groups; g++)
            if (r->zeros[j * r->zero_row + g] > 15)
                return hewn_fail(err, HEWN_ERR_ARGUMENT, "zeros: [%u][%u] is %d, not in 0..15", j,
                                 g, r->zeros[j * r->zero_row + g]);
    return HEWN_OK;
}

/* The element at row j, column k as the kernel wants it; padding is 0 of int4. */
static uint32_t element(const struct w4_problem *p, const struct rows *r, uint64_t j, uint64_t k)
{
    if (j >= p->n || k >= p->k) return p->zeros ? 0 : MIDDLE;
    uint32_t byte = r->values[j * r->value_row + k / 2], value = k % 2 ? byte >> 4 : byte & 15;
    return p->zeros ? value : value ^ MIDDLE;
}

/* Word s of thread t: the fragment of rows `row` and `row` + 8. */
static uint32_t word_of(const struct w4_problem *p, const struct rows *r, uint64_t row,
                        uint64_t column)
{
    static const unsigned char ahead[4] = {0, 8, 1, 9}; /* columns of a pair of nibbles */
    uint32_t word = 0;
    for (unsigned i = 0; i < 4; i++) {
        word |= element(p, r, row, column + ahead[i]) << (8 * i);
        word |= element(p, r, row + 8, column + ahead[i]) << (8 * i + 4);
    }
    return word;
}

static void put_32(unsigned char *at, uint32_t word)
{
    for (int i = 0; i < 4; i++) at[i] = (unsigned char)(word >> (8 * i));
}

static void pack_words(const struct w4_problem *p, const struct rows *r, uint64_t row,
                       uint64_t column, unsigned char *block)
{
    for (uint32_t half = 0; half < 2; half++)
        for (uint32_t t = 0; t < THREADS; t++)
            for (uint32_t s = 0; s < WORDS; s++)
                put_32(block + half * W4_HALF_BYTES + 16 * t + 4 * s,
                       word_of(p, r, row + t / 32 * 16 + t % 32 / 4,
                               column + half * W4_HALF_K + 16 * s + t % 4 * 2));
}

/* A row of 64 scales and zero points of group g; behind the last group of W they are 0. */
static void pack_group(const struct w4_problem *p, const struct rows *r, uint64_t row, uint64_t g,
                       unsigned char *scales, unsigned char *zeros)
{
    if (p->whole_row) g = 0;
    for (uint64_t i = 0; i < W4_CHUNK; i++) {
        uint64_t at = i / 16 * 16 + i % 8 * 2 + i / 8 % 2, j = row + i;
        int there = j < p->n && g < p->given_groups;
        memset(scales + 2 * at, 0, 2);
        if (there) memcpy(scales + 2 * at, r->scales + 2 * (j * r->scale_row + g), 2);
        if (zeros) zeros[at] = there ? r->zeros[j * r->zero_row + g] : 0;
    }
}

static void pack_block(const struct w4_problem *p, const struct rows *r, uint32_t kb, uint32_t c,
                       unsigned char *block)
{
    uint64_t row = (uint64_t)c * W4_CHUNK;
    unsigned char *scales = block + W4_WORDS_BYTES, *zeros = scales + p->groups * W4_SCALE_ROW;
    pack_words(p, r, row, (uint64_t)kb * W4_BLOCK_K, block);
    for (uint32_t g = 0; g < p->groups; g++)
        pack_group(p, r, row, (uint64_t)kb * p->groups + g, scales + g * W4_SCALE_ROW,
                   p->zeros ? zeros + g * W4_ZERO_ROW : NULL);
}

static int check(const hewn_w4_desc *desc, struct w4_problem *p, hewn_error *err)
{
    hewn_w4_desc d;
    int status = hewn_struct_take(HEWN_STRUCT_hewn_w4_desc, desc, &d, err);
    return status ? status : hewn_w4_check(&d, p, err);
}

int hewn_w4_packed_bytes(const hewn_w4_desc *desc, uint64_t *bytes, hewn_error *err)
{
    struct w4_problem p;
    int status = check(desc, &p, err);
    if (status) return status;
    if (!bytes) return hewn_fail_null(err, "bytes");
    *bytes = p.packed;
    return HEWN_OK;
}

int hewn_w4_pack(const hewn_w4_desc *desc, const hewn_w4_weights *weights, void *packed,
                 uint64_t bytes, hewn_error *err)
{
    struct w4_problem p;
    hewn_w4_weights w;
    struct rows r;
    int status = check(desc, &p, err);
    if (!status) status = hewn_struct_take(HEWN_STRUCT_hewn_w4_weights, weights, &w, err);
    if (!status) status = take_rows(&p, &w, &r, err);
    if (!status) status = check_zeros(&p, &r, err);
    if (status) return status;
    if (!packed) return hewn_fail_null(err, "packed");
    if (bytes != p.packed)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "bytes: %llu, but the packed weights have %llu",
                         (unsigned long long)bytes, (unsigned long long)p.packed);
    unsigned char *block = packed;
    for (uint32_t kb = 0; kb < p.k_blocks; kb++)
        for (uint32_t c = 0; c < p.chunks; c++) {
            pack_block(&p, &r, kb, c, block);
            block += W4_BLOCK_BYTES(p.groups, (uint32_t)p.zeros);
        }
    return HEWN_OK;
}
