/*
 * How register-to-register handlers are written: a body computes all 32 lanes into a local array in
 * a loop the compiler vectorises, then the active lanes are committed. Computing an inactive lane
 * is harmless (no operation traps) and keeps the loop free of branches.
 *
 * Every body is compiled twice, for the baseline machine and for one with AVX2 and FMA, and the
 * bind function takes the better one. Results do not depend on which: contraction is off and fma()
 * is correctly rounded in both.
 */
#ifndef SIM_LANES_H
#define SIM_LANES_H

#include "machine/machine.h"

#if defined(__x86_64__)
#define TARGET_WIDE __attribute__((target("avx2,fma")))
#else
#define TARGET_WIDE
#endif

#define LANE_INLINE static inline __attribute__((always_inline))
#define LANES(l)    for (uint32_t l = 0; l < WARP_LANES; l++)

struct lane_op {
    exec_fn *base, *wide;
};

/* After a body `name##_lanes`: the two compiled forms, and `name` to put into tables. */
#define LANE_OP(name)                                                                              \
    static enum step name##_base(struct warp *w, const struct insn *in, uint32_t mask)             \
    {                                                                                              \
        name##_lanes(w, in, mask);                                                                 \
        return STEP_NEXT;                                                                          \
    }                                                                                              \
    static TARGET_WIDE enum step name##_wide(struct warp *w, const struct insn *in, uint32_t mask) \
    {                                                                                              \
        name##_lanes(w, in, mask);                                                                 \
        return STEP_NEXT;                                                                          \
    }                                                                                              \
    static const struct lane_op name = {name##_base, name##_wide};

/* Opens the body of `name`: w, in, mask are in scope. */
#define LANE_BODY(name) \
    LANE_INLINE void name##_lanes(struct warp *w, const struct insn *in, uint32_t mask)

/* Stores the active lanes of r[] (elements of type T) into destination operand `n`. */
#define LANE_COMMIT(T, n, r)                                           \
    do {                                                               \
        T *dst_ = arg_dst(w, in->arg[n]);                              \
        if (in->arg[n].sink) break;                                    \
        if (mask == FULL_MASK) {                                       \
            memcpy(dst_, (r), WARP_LANES * sizeof(T));                 \
        } else {                                                       \
            LANES(l_) dst_[l_] = mask >> l_ & 1U ? (r)[l_] : dst_[l_]; \
        }                                                              \
    } while (0)

/* d = expr(a), (a, b) or (a, b, c): operands 1.. of types TA, TB, TC; result type T. `in` may be
 * consulted for flags; what the expression reads of it is loop-invariant. */
#define LANE_OP1(name, T, TA, expr)            \
    LANE_BODY(name)                            \
    {                                          \
        const TA *pa = arg_src(w, in->arg[1]); \
        T r[WARP_LANES];                       \
        LANES(l)                               \
        {                                      \
            const TA a = pa[l];                \
            r[l] = (T)(expr);                  \
        }                                      \
        LANE_COMMIT(T, 0, r);                  \
    }                                          \
    LANE_OP(name)

#define LANE_OP2(name, T, TA, TB, expr)        \
    LANE_BODY(name)                            \
    {                                          \
        const TA *pa = arg_src(w, in->arg[1]); \
        const TB *pb = arg_src(w, in->arg[2]); \
        T r[WARP_LANES];                       \
        LANES(l)                               \
        {                                      \
            const TA a = pa[l];                \
            const TB b = pb[l];                \
            r[l] = (T)(expr);                  \
        }                                      \
        LANE_COMMIT(T, 0, r);                  \
    }                                          \
    LANE_OP(name)

#define LANE_OP3(name, T, TA, TB, TC, expr)    \
    LANE_BODY(name)                            \
    {                                          \
        const TA *pa = arg_src(w, in->arg[1]); \
        const TB *pb = arg_src(w, in->arg[2]); \
        const TC *pc = arg_src(w, in->arg[3]); \
        T r[WARP_LANES];                       \
        LANES(l)                               \
        {                                      \
            const TA a = pa[l];                \
            const TB b = pb[l];                \
            const TC c = pc[l];                \
            r[l] = (T)(expr);                  \
        }                                      \
        LANE_COMMIT(T, 0, r);                  \
    }                                          \
    LANE_OP(name)

/* Bit l of the result is lane l's truth: packs r[] (0 or 1 each) into a predicate word. */
LANE_INLINE uint32_t lanes_pack(const uint8_t r[WARP_LANES])
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < WARP_LANES; i += 8) {
        uint64_t v;
        memcpy(&v, r + i, sizeof v);
        /* Multiplying gathers the low bit of each of the eight bytes into the top byte. */
        bits |= (uint32_t)(v * 0x0102040810204080ULL >> 56) << i;
    }
    return bits;
}

static inline bool lanes_wide(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

/* Takes the form for this machine; NULL says that the table has none for the modifiers given. */
static inline int bind_lanes(struct decoder *dc, struct insn *out, const struct lane_op *op)
{
    if (!op) return bind_unsupported(dc, "%s with these modifiers", dc->row->name);
    out->fn = lanes_wide() ? op->wide : op->base;
    return 0;
}

#endif
