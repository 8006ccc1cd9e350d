/* Element-wise reductions: one function per operation and type, found by name. */
#include "async/reduce.h"
#include "machine/half.h"

#include <math.h>
#include <string.h>

/* Elements may stand at any address: they are moved by memcpy. */
#define REDUCTION(name, ctype, expression)                     \
    static void name(void *dst, const void *src, size_t bytes) \
    {                                                          \
        for (size_t i = 0; i < bytes; i += sizeof(ctype)) {    \
            ctype a, b;                                        \
            memcpy(&a, (char *)dst + i, sizeof a);             \
            memcpy(&b, (const char *)src + i, sizeof b);       \
            a = (ctype)(expression);                           \
            memcpy((char *)dst + i, &a, sizeof a);             \
        }                                                      \
    }

static float flushed(float x)
{
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0.0F, x) : x;
}

/* A sum that is no number is one NaN. Measured on an H200: subnormals stay, though the PTX ISA
 * ("cp.reduce.async.bulk") has add.f32 flush them; only through a map of an _FTZ type they do not. */
static float float_add(float a, float b)
{
    static const uint32_t nan_bits = 0x7FFFFFFF;
    float sum = a + b;
    if (isnan(sum)) memcpy(&sum, &nan_bits, sizeof sum);
    return sum;
}

/* A NaN passes as it is, a signalling one too (measured on an H200, where an instruction quiets it):
 * bits, for a compiler may take `a is NaN ? a : a + b` for a sum. */
static uint64_t double_add(uint64_t a, uint64_t b)
{
    const uint64_t magnitude = INT64_MAX, infinity = 0x7FF0000000000000ULL;
    double x, y;
    if ((b & magnitude) > infinity) return b;
    if ((a & magnitude) > infinity) return a;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x += y;
    memcpy(&a, &x, sizeof a);
    return a;
}

static uint16_t half_add(uint16_t a, uint16_t b)
{
    return float_to_half(half_to_float(a) + half_to_float(b));
}

static uint16_t bf16_add(uint16_t a, uint16_t b)
{
    return float_to_bf16(bf16_to_float(a) + bf16_to_float(b));
}

/* min and max: a NaN gives way to a number; -0 is less than +0. */
static float float_min(float a, float b)
{
    if (isnan(a) || isnan(b)) return isnan(a) ? b : a;
    return a < b || (a == b && signbit(a)) ? a : b;
}

static float float_max(float a, float b)
{
    if (isnan(a) || isnan(b)) return isnan(a) ? b : a;
    return a > b || (a == b && !signbit(a)) ? a : b;
}

/* op, element type, C type, result from old value a and new value b */
#define REDUCTIONS(X)                                                                    \
    X(add, U32, uint32_t, a + b)                                                         \
    X(add, S32, uint32_t, a + b)                                                         \
    X(add, U64, uint64_t, a + b)                                                         \
    X(add, S64, uint64_t, a + b)                                                         \
    X(add, F16, uint16_t, half_add(a, b))                                                \
    X(add, BF16, uint16_t, bf16_add(a, b))                                               \
    X(add, F32, float, float_add(a, b))                                                  \
    X(add_ftz, F32, float, flushed(float_add(flushed(a), flushed(b))))                   \
    X(add, F64, uint64_t, double_add(a, b))                                              \
    X(min, U32, uint32_t, a < b ? a : b)                                                 \
    X(min, S32, int32_t, a < b ? a : b)                                                  \
    X(min, U64, uint64_t, a < b ? a : b)                                                 \
    X(min, S64, int64_t, a < b ? a : b)                                                  \
    X(min, F16, uint16_t, float_to_half(float_min(half_to_float(a), half_to_float(b))))  \
    X(min, BF16, uint16_t, float_to_bf16(float_min(bf16_to_float(a), bf16_to_float(b)))) \
    X(max, U32, uint32_t, a > b ? a : b)                                                 \
    X(max, S32, int32_t, a > b ? a : b)                                                  \
    X(max, U64, uint64_t, a > b ? a : b)                                                 \
    X(max, S64, int64_t, a > b ? a : b)                                                  \
    X(max, F16, uint16_t, float_to_half(float_max(half_to_float(a), half_to_float(b))))  \
    X(max, BF16, uint16_t, float_to_bf16(float_max(bf16_to_float(a), bf16_to_float(b)))) \
    X(inc, U32, uint32_t, a >= b ? 0 : a + 1)                                            \
    X(dec, U32, uint32_t, a == 0 || a > b ? b : a - 1)                                   \
    X(and, B32, uint32_t, a &b)                                                          \
    X(and, B64, uint64_t, a &b)                                                          \
    X(or, B32, uint32_t, a | b)                                                          \
    X(or, B64, uint64_t, a | b)                                                          \
    X(xor, B32, uint32_t, a ^ b)                                                         \
    X(xor, B64, uint64_t, a ^ b)

#define X(op, type, ctype, expression) REDUCTION(reduce_##op##_##type, ctype, expression)
REDUCTIONS(X)
#undef X

reduce_fn *reduce_find(const char *op, enum ptx_type type)
{
    static const struct {
        const char *op;
        enum ptx_type type;
        reduce_fn *fn;
    } table[] = {
#define X(op, type, ctype, expression) {#op, T_##type, reduce_##op##_##type},
        REDUCTIONS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].type == type && strcmp(table[i].op, op) == 0) return table[i].fn;
    }
    return NULL;
}
