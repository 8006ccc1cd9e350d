/*
 * Arithmetic shared by wgmma and tcgen05.mma: operand tiles gathered from shared memory through a
 * canonical layout, and two product kernels. The formulas of PTX ISA "Shared Memory Matrix Layout",
 * "Canonical Layouts", "Swizzling Modes".
 *
 * Numerics, bit for bit those of an H200 (tests/golden/mma.bin): one instruction adds all its K exact
 * products and C at once. The largest exponent among them sets the last place, 25 bits below it (13 for
 * wgmma on 8-bit floats); each term is truncated to a multiple of that place and the sum is exact. The
 * exponent of a product is the sum of its factors' own, before its significand in [1, 4) is normalised;
 * subnormals count with the smallest normal exponent, zeros not at all. The sum is truncated to f32 (to
 * 13 fraction bits for wgmma on 8-bit floats) or rounded to nearest even to f16. NaN, inf * 0 and
 * inf - inf give 0x7FFFFFFF (f16 0x7FFF).
 */
#ifndef SIM_TENSOR_H
#define SIM_TENSOR_H

#include "machine/half.h"
#include "machine/machine.h"

enum {
    TENSOR_MAX_M = 128,
    TENSOR_MAX_MN = 256,
    TENSOR_MAX_K = 32,
    TENSOR_PRODUCT_K = 64 /* of tensor_mma: sparse 8-bit operands, spread out */
};

/* A shared-memory operand after descriptor decoding; wgmma and tcgen05 descriptors both lower to it. */
struct smem_operand {
    uint32_t start, lbo, sbo; /* bytes */
    uint32_t phase;           /* subtracted from an address before its bits drive the swizzle: the
                                 descriptor's base offset x 128 bytes (interpretation) */
    bool wraps;      /* K-major, 128B: lbo is the address at which rows go on that the start
                                 leaves no room for (absolute leading offset, K = 96) */
    uint8_t swizzle; /* driver's swizzle enum: 0 none, 1 32B, 2 64B, 3 128B, 4 128B atom 32B */
    bool mn_major;
    uint8_t elem_bytes;
};

/* Shared-window offset of element (mn, k). */
uint32_t smem_element(const struct smem_operand *o, uint32_t mn, uint32_t k);
/* The operand whose row 0 is row `mn` of `o`; mn a multiple of 16, and of what the pattern spans or a
 * divisor of it. */
struct smem_operand smem_from_row(const struct smem_operand *o, uint32_t mn);

/* E2M3 to E2M1 fill a byte each once unpacked (tensor_unpack), in shared memory 16 of them a padded
 * 16-byte chunk; of E2M1X2 a byte holds two, the first in its low half. */
enum tensor_format {
    TF_F16,
    TF_BF16,
    TF_TF32,
    TF_E4M3,
    TF_E5M2,
    TF_E2M3,
    TF_E3M2,
    TF_E2M1,
    TF_U8,
    TF_S8,
    TF_E2M1X2,
    TF_U4, /* two in a byte, as E2M1X2 */
    TF_S4,
    TF_FORMATS
};

/* By the PTX name of a type, such as "e4m3"; TF_FORMATS for another. */
enum tensor_format tensor_format_named(const char *type);
uint32_t tensor_format_bytes(enum tensor_format format);
/* Elements in these bytes: 1, or 2 for 4-bit formats. */
uint32_t tensor_format_pack(enum tensor_format format);
/* True for formats that lie 16 to a padded chunk in shared memory. */
static inline bool tensor_format_padded(enum tensor_format format)
{
    return format == TF_E2M3 || format == TF_E3M2 || format == TF_E2M1;
}

/* A padded chunk of 16 codes of 6 or 4 bits (PTX ISA "Packing formats", b6x16_p32 and b4x16_p64), first
 * one lowest, to the byte containers of tensor memory: 6 bits in bits 0 to 5 (interpretation), 4 bits
 * in bits 2 to 5. `to` may be `from`. */
void tensor_unpack(uint32_t bits, const uint8_t from[16], uint8_t to[16]);

/* How a gathered tile lies in memory. */
enum tile_order {
    TILE_K_INNER,  /* dst[mn][k] */
    TILE_MN_INNER, /* dst[k][mn] */
    TILE_QUADS     /* dst[mn/8][k][8], the eight in the order 0 2 4 6 1 3 5 7: the columns that the
                      four threads of a quad hold, even ones first (wgmma accumulator fragments) */
};

/*
 * Gathers elements [0, mn) x [0, k) as float; mn a multiple of 8, k a multiple of 16 bytes' worth of
 * elements; with 16-bit ones mn * k at most TENSOR_MAX_MN * TENSOR_MAX_K. `shared` is the CTA's window;
 * false when an element lies outside [SHARED_RESERVED, shared_bytes).
 */
bool tensor_gather(const struct smem_operand *o, enum tensor_format format, const uint8_t *shared,
                   uint32_t shared_bytes, uint32_t mn, uint32_t k, enum tile_order order,
                   float *dst);
/* The shared ranges that a gather reads, merged where adjacent, in gather order. k in containers of
 * elem_bytes. */
typedef void smem_range_fn(void *context, uint32_t offset, uint32_t bytes);
void tensor_ranges(const struct smem_operand *o, uint32_t mn, uint32_t k, smem_range_fn *emit,
                   void *context);

/* `count` elements of `format`, packed as in memory, to float. */
void tensor_convert(enum tensor_format format, const void *src, uint32_t count, float *dst);

/* How an instruction rounds; see the top. */
struct tensor_rule {
    int16_t least_a, least_b, least_c; /* exponents of the smallest normal numbers */
    uint8_t fraction;                  /* bits of the last place below the largest exponent */
    uint8_t result;
    bool sparse; /* -0 in A is no element: it takes no part whatever B has there */
};
enum {
    RESULT_F32,
    RESULT_SHORT, /* f32 with 13 fraction bits */
    RESULT_ODD    /* f32 whose last bit is set when bits were lost: for tensor_half_result */
};
/* short_sum: wgmma on 8-bit floats. */
struct tensor_rule tensor_rule_of(enum tensor_format a, enum tensor_format b, bool half_c,
                                  bool half_d, bool short_sum);
/* The f16 of a RESULT_ODD pattern. */
uint16_t tensor_half_result(uint32_t bits);
/* The same of 32 lanes' low and high halves of a register. */
void tensor_pack_halves(const uint32_t *low, const uint32_t *high, uint32_t *to);

/*
 * acc[n][m] (+)= sum_k a[k][m] * b(n, k): tcgen05.mma, accumulator rows contiguous as the lanes of a
 * tensor-memory column are. Strides in elements; m a multiple of 16 up to TENSOR_MAX_M, n of 8. `acc`
 * holds float bits.
 */
struct tensor_product {
    uint32_t m, n, k;
    const float *a;
    uint32_t a_stride; /* of k */
    const float *b;
    uint32_t b_n, b_k; /* of n and k */
    uint32_t *acc;
    uint32_t acc_stride; /* of n */
    bool accumulate;     /* false: acc is overwritten */
    struct tensor_rule rule;
    const int16_t *a_scale,
        *b_scale; /* exponents added to those of a row of A and a column of B, for
                                         8-bit and narrower formats; both or neither NULL */
};
void tensor_mma(const struct tensor_product *p);

/* The same for E2M1 operands of mxf4 and mxf4nvf4, whose sums are cut off by rules of their own. */
enum { TENSOR_FP4_K = 128, TENSOR_FP4_SCALES = 6, FP4_SCALE_NAN = 255 };
struct fp4_scale {
    uint8_t significand; /* in eighths: 8 for ue8m0; or FP4_SCALE_NAN */
    int16_t exponent;
};
struct tensor_fp4 {
    uint32_t m, n, k;
    uint32_t merge;  /* neighbours along k that share a rounding: 16 stored elements */
    uint32_t scales; /* factors along k */
    bool ue4m3, accumulate;
    const float *a;
    uint32_t a_stride; /* of k */
    const float *b;
    uint32_t b_n, b_k;
    const struct fp4_scale *sa; /* [m][TENSOR_FP4_SCALES] */
    const struct fp4_scale *sb; /* [m / 32][sb_quarter columns][TENSOR_FP4_SCALES] */
    uint32_t sb_quarter;
    uint32_t *acc;
    uint32_t acc_stride;
};
void tensor_fp4(const struct tensor_fp4 *p);

/*
 * One warp's 16 rows of wgmma, and of mma.sync m16n8. a[k][TENSOR_FRAGMENT]: row l/4 in lane l, then
 * row l/4 + 8; b: TILE_QUADS. acc[i][lane] are accumulator registers, PTX ISA "Register Fragments for
 * wgmma.mma_async": element i of lane l is row l/4 + 8(i/2 % 2), column 8(i/4) + 2(l%4) + i%2. The
 * half form has f16 elements, 2i and 2i + 1 in register i, low half first. The integer form takes
 * 8-bit integers as floats and adds to s32, wrapping or saturating.
 */
enum { TENSOR_FRAGMENT = 2 * WARP_LANES, TENSOR_MAX_REGS = TENSOR_MAX_MN / 2 };
struct tensor_fragments {
    uint32_t n, k;
    const float *a, *b;
    uint32_t *const *acc;
    bool accumulate;
};
void tensor_wgmma(const struct tensor_fragments *p, const struct tensor_rule *rule);
void tensor_wgmma_half(const struct tensor_fragments *p, const struct tensor_rule *rule);
void tensor_wgmma_integer(const struct tensor_fragments *p, bool saturate);

/* The 2 or 4 registers of an A fragment (16 rows x 16 or 32 bytes of k) as tensor_wgmma wants them:
 * register r of lane l holds row l/4 + 8(r%2), and of k the (l%4 + 4(r/2))-th 32 bits. */
void tensor_fragment(enum tensor_format format, const uint32_t *const *reg, uint32_t registers,
                     float *a);

/* Sparse A, tensor_sparse.c: where in k the stored elements of each of 16 rows belong. */
enum { TENSOR_ROWS = 16, TENSOR_MAX_STORED = 64 };
struct tensor_places {
    uint32_t k; /* of the whole row; half as many are stored */
    uint8_t at[TENSOR_ROWS][TENSOR_MAX_STORED];
};
/* How many selectors of metadata a form has: 1, 2 or 4. */
uint32_t tensor_selectors(enum tensor_format format, uint32_t k);
/* From the metadata registers of a warp, for mma.sp and wgmma.sp. False where two elements of a group
 * would have one place: `lane` holds the code. */
bool tensor_places(enum tensor_format format, uint32_t k, uint32_t selector,
                   const uint32_t meta[WARP_LANES], struct tensor_places *out, uint32_t *lane);
/* a[k][TENSOR_FRAGMENT] from stored[k/2][TENSOR_FRAGMENT], for a rule that is `sparse`. */
void tensor_spread(const struct tensor_places *places, const float *stored, float *a);

/* 1-bit operands: sums of `words` 32-bit words each of 16 rows of A and n columns of B, bits that are
 * set in both (or, exclusive, in one) counted into accumulators as of tensor_wgmma. */
enum { TENSOR_BIT_WORDS = 8 };
struct tensor_bits {
    uint32_t n, words;
    uint32_t a[TENSOR_ROWS][TENSOR_BIT_WORDS];
    uint32_t b[TENSOR_MAX_MN][TENSOR_BIT_WORDS];
    bool exclusive;
};
void tensor_popcount(const struct tensor_bits *p, uint32_t *const *acc, bool accumulate);

/* As tensor_convert, for f16 and bf16. */
void tensor_widen(bool bf16, const uint16_t *src, uint32_t count, float *dst);

#endif
