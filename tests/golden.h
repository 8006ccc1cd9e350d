/*
 * Conformance vectors: what an H200 answered, recorded by `make golden`, and what the simulator answers,
 * compared by `make check`. A case is a PTX text, a block of parameters, an input made from the seed and
 * an output; the file keeps outputs only, for inputs can be made again.
 */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include "device.h"
#include "harness.h"

#include <stddef.h>
#include <stdint.h>

enum { GOLDEN_TEXT = 1 << 16, GOLDEN_NAME = 96 };

/* How a result is judged. */
enum golden_rule {
    GOLDEN_BITS, /* the ISA defines every bit */
    GOLDEN_MMA,  /* tensor-core sums: bit for bit, misses counted (99.99 % must agree) */
    GOLDEN_ULP   /* an approximation: at most `ulp` units of the last place apart */
};

struct golden_case {
    char name[GOLDEN_NAME];
    char text[GOLDEN_TEXT]; /* entry k(.param .u64 in, .param .u64 out) */
    uint32_t grid, block, dynamic_shared;
    size_t in_bytes, out_bytes;
    unsigned char *in;
    enum golden_rule rule;
    uint32_t ulp;
    uint32_t element; /* bytes of one result, for comparing */
    bool floating;
};

/* Makes case `index` of a family (allocating c->in); false past the last. */
typedef bool golden_make(struct golden_case *c, uint32_t index);

struct golden_family {
    const char *name;
    golden_make *make;
};

extern const struct golden_family golden_alu, golden_mma;

/* ---- inputs ---- */

/* A 32-bit float: uniform, wide exponents, near ties, subnormal, zero, infinite or NaN. */
uint32_t golden_f32(struct rng *r);
/* A 16-bit float likewise; `bf16` chooses the layout. */
uint16_t golden_half(struct rng *r, bool bf16);
uint64_t golden_f64(struct rng *r);
/* An integer biased to extremes and small values. */
uint64_t golden_int(struct rng *r);

#endif
