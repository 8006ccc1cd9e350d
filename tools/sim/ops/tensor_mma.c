/*
 * The product kernels of tensor.h, compiled once per vector width and chosen at run time. They use the
 * compiler's generic vectors, a multiply and then an add (never a fused one), so every width gives
 * the same bits.
 */
#include "tensor.h"

#if defined(__x86_64__) || defined(__i386__)
#define TARGET_512 __attribute__((target("avx512f")))
#define TARGET_256 __attribute__((target("avx2")))
#else
#define TARGET_512
#define TARGET_256
#endif

#define NAN_BITS 0x7FFFFFFF

/* Four floats at p, repeated over a vector of 4, 8 or 16. */
#define QUAD(p)     (p)[0], (p)[1], (p)[2], (p)[3]
#define QUADS_4(p)  QUAD(p)
#define QUADS_8(p)  QUAD(p), QUAD(p)
#define QUADS_16(p) QUAD(p), QUAD(p), QUAD(p), QUAD(p)

/* Columns of the accumulator that a register block of tensor_mma spans. */
enum { BLOCK_N = 8 };

/*
 * mma_W: walks blocks of W rows x BLOCK_N columns that stay in vector registers for all of k.
 * wgmma_W: for 8 columns, the four accumulator registers of 32 lanes, W lanes at a time: elements
 * 0 and 1 are rows l/4, 2 and 3 rows l/4 + 8; even elements take the first quad of b.
 * widen_W: a plain loop for the vectoriser.
 */
#define KERNELS(W, TARGET)                                                                      \
    typedef float vec_##W __attribute__((vector_size(4 * W)));                                  \
    typedef int32_t mask_##W __attribute__((vector_size(4 * W)));                               \
                                                                                                \
    TARGET static inline void store_##W(uint32_t *to, const vec_##W *value)                     \
    {                                                                                           \
        const mask_##W nan = *value != *value;                                                  \
        const mask_##W bits = ((mask_##W) * value & ~nan) | (nan & NAN_BITS);                   \
        memcpy(to, &bits, sizeof bits);                                                         \
    }                                                                                           \
                                                                                                \
    TARGET static void mma_##W(const struct tensor_product *p)                                  \
    {                                                                                           \
        for (uint32_t n = 0; n < p->n; n += BLOCK_N) {                                          \
            for (uint32_t m = 0; m < p->m; m += W) {                                            \
                uint32_t *out = p->acc + (size_t)n * p->acc_stride + m;                         \
                vec_##W acc[BLOCK_N] = {{0}};                                                   \
                for (uint32_t i = 0; p->accumulate && i < BLOCK_N; i++)                         \
                    memcpy(&acc[i], out + (size_t)i * p->acc_stride, sizeof acc[i]);            \
                for (uint32_t k = 0; k < p->k; k++) {                                           \
                    const float *b = p->b + (size_t)n * p->b_n + (size_t)k * p->b_k;            \
                    vec_##W a;                                                                  \
                    memcpy(&a, p->a + (size_t)k * p->a_stride + m, sizeof a);                   \
                    for (uint32_t i = 0; i < BLOCK_N; i++) acc[i] += a * b[(size_t)i * p->b_n]; \
                }                                                                               \
                for (uint32_t i = 0; i < BLOCK_N; i++)                                          \
                    store_##W(out + (size_t)i * p->acc_stride, &acc[i]);                        \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    TARGET static void wgmma_##W(uint32_t n, uint32_t k_count, const float *a, const float *b,  \
                                 uint32_t *const *acc, bool accumulate)                         \
    {                                                                                           \
        for (uint32_t block = 0; block < n / 8U; block++, acc += 4) {                           \
            for (uint32_t lane = 0; lane < WARP_LANES; lane += W) {                             \
                vec_##W c[4] = {{0}};                                                           \
                for (uint32_t i = 0; accumulate && i < 4; i++)                                  \
                    memcpy(&c[i], acc[i] + lane, sizeof c[i]);                                  \
                for (uint32_t k = 0; k < k_count; k++) {                                        \
                    const float *q = b + ((size_t)block * k_count + k) * 8U;                    \
                    const float *rows = a + (size_t)k * TENSOR_FRAGMENT + lane;                 \
                    const vec_##W even = {QUADS_##W(q)}, odd = {QUADS_##W(q + 4)};              \
                    vec_##W low, high;                                                          \
                    memcpy(&low, rows, sizeof low);                                             \
                    memcpy(&high, rows + WARP_LANES, sizeof high);                              \
                    c[0] += low * even;                                                         \
                    c[1] += low * odd;                                                          \
                    c[2] += high * even;                                                        \
                    c[3] += high * odd;                                                         \
                }                                                                               \
                for (uint32_t i = 0; i < 4; i++) store_##W(acc[i] + lane, &c[i]);               \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    TARGET static void widen_##W(bool bf16, const uint16_t *src, uint32_t count, float *dst)    \
    {                                                                                           \
        for (uint32_t i = 0; i < count; i++) {                                                  \
            const uint32_t bits = bf16 ? (uint32_t)src[i] << 16 : half_bits(src[i]);            \
            memcpy(&dst[i], &bits, sizeof bits);                                                \
        }                                                                                       \
    }

KERNELS(16, TARGET_512)
KERNELS(8, TARGET_256)
KERNELS(4, )

/* Vector width that this CPU runs without splitting. */
static uint32_t vector_width(void)
{
#if defined(__x86_64__) || defined(__i386__)
    if (__builtin_cpu_supports("avx512f")) return 16;
    if (__builtin_cpu_supports("avx2")) return 8;
#endif
    return 4;
}

void tensor_mma(const struct tensor_product *p)
{
    switch (vector_width()) {
    case 16: mma_16(p); break;
    case 8: mma_8(p); break;
    default: mma_4(p); break;
    }
}

void tensor_wgmma(uint32_t n, uint32_t k, const float *a, const float *b, uint32_t *const *acc,
                  bool accumulate)
{
    switch (vector_width()) {
    case 16: wgmma_16(n, k, a, b, acc, accumulate); break;
    case 8: wgmma_8(n, k, a, b, acc, accumulate); break;
    default: wgmma_4(n, k, a, b, acc, accumulate); break;
    }
}

void tensor_widen(bool bf16, const uint16_t *src, uint32_t count, float *dst)
{
    switch (vector_width()) {
    case 16: widen_16(bf16, src, count, dst); break;
    case 8: widen_8(bf16, src, count, dst); break;
    default: widen_4(bf16, src, count, dst); break;
    }
}
