/* Operands of tensor-core cases: six kinds of numbers, as elements of every type. */
#ifndef TESTS_GOLDEN_OPERAND_H
#define TESTS_GOLDEN_OPERAND_H

#include "golden.h"

enum pattern { UNIFORM, WIDE, CANCEL, TINY, SPECIAL, EXTREME, PATTERNS };
extern const char *const pattern_names[PATTERNS];

/* PTX names of types throughout. Bytes of what is smaller than a byte: 0. */
uint32_t type_bits(const char *type);
uint32_t type_bytes(const char *type);

/* A real number of the pattern; `step` runs along K, so that neighbours can cancel. */
double draw(struct rng *r, enum pattern p, uint32_t step, double *last);
/* Of EXTREME: powers of two that take the products of two such to the ends of the sum's range. */
int draw_scale(struct rng *r, const char *type);
/* One element as the bits of the type; integers take the value times 128 (u8 255, s4 8, u4 15). */
uint32_t encode(const char *type, double v);
/* A register of packed elements. */
uint32_t draw_register(struct rng *r, const char *type, enum pattern p, double *last);
/* An accumulator word: one f32 or s32, or two f16. */
uint32_t draw_sum(struct rng *r, const char *type, enum pattern p);
uint64_t draw_f64(struct rng *r, enum pattern p, uint32_t step, double *last);
/* An s32 within `around` of either end of its range. */
uint32_t draw_limit(struct rng *r, uint32_t around);
/* Eight groups of sparsity metadata: two places of four, or one of two for 32-bit elements. */
uint32_t draw_metadata(struct rng *r, bool halves, bool ordered);

/* How the results of accumulator type `d` are compared. */
void set_case(struct golden_case *c, const char *d);

#endif
