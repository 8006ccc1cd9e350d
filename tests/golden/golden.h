/*
 * Conformance vectors: what an H200 answered, recorded by `make golden`, and what the simulator
 * answers, compared by `make check`. A case is a PTX text, its parameters (input, output, and a
 * tensor map where it has one), an input made from the seed and an output; or a question to the
 * driver. The file keeps outputs only, for inputs can be made again.
 */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include "lib/device.h"
#include "lib/harness.h"

#include <stddef.h>
#include <stdint.h>

enum { GOLDEN_TEXT = 1 << 18, GOLDEN_NAME = 96 };

/* How a result is judged. */
enum golden_rule {
    GOLDEN_BITS, /* the ISA, or a published model of the tensor core, defines every bit */
    /* An approximation: apart at most `bound` units of the last place, absolutely (of results above 1:
     * relatively), or relative to the recorded result. What was measured is in ulp.md beside the vectors, and is not exceeded either. */
    GOLDEN_ULP,
    GOLDEN_ABS,
    GOLDEN_REL
};

/* A tensor map over the case's input or output, encoded by the driver at hand. */
struct golden_map {
    bool used, im2col, on_out;
    int dtype, interleave, swizzle, oob;
    uint32_t rank;
    uint64_t dim[5], stride[4]; /* strides in bytes, of dimensions 1 on */
    uint32_t box[5], element_stride[5];
    int lower[3], upper[3];    /* im2col */
    uint32_t channels, pixels; /* im2col */
};

struct golden_case;
/* Answers a case that launches no kernel; false when it cannot. */
typedef bool golden_answer(const hewn_driver *driver, const struct golden_case *c,
                           unsigned char *out);

struct golden_case {
    const char *family;
    char name[GOLDEN_NAME];
    char text[GOLDEN_TEXT]; /* entry k(.param .u64 in, .param .u64 out {, .param .b8 map[128]}) */
    uint32_t grid, block, dynamic_shared;
    size_t in_bytes, out_bytes;
    unsigned char *in;
    unsigned char *before; /* what the output holds before the launch; NULL: zeros */
    struct golden_map map;
    golden_answer *answer; /* NULL: the kernel of `text` answers */
    uint64_t seed;         /* for `answer` */
    enum golden_rule rule;
    double bound;
    uint32_t element; /* bytes of one result, for comparing */
    bool floating, bfloat;
    /* A case of several forms: results of each lie together, `lanes` of them at a time. */
    uint32_t forms, lanes;
    const char *form_of;
    void (*form)(const char *form_of, uint32_t index, char name[4096]);
};

/* Makes case `index` of a family (allocating c->in); false past the last. */
typedef bool golden_make(struct golden_case *c, uint32_t index);

struct golden_family {
    const char *name;
    golden_make *make;
};

/* In the order in which they run; each has a file of vectors. */
#define GOLDEN_FAMILIES(X) \
    X(alu)                 \
    X(form)                \
    X(warp)                \
    X(memory)              \
    X(async)               \
    X(video)               \
    X(mma)                 \
    X(wgmma)               \
    X(warp_mma)            \
    X(wmma)                \
    X(tma)                 \
    X(tensormap)           \
    X(encode)              \
    X(map)
#define X(name) extern const struct golden_family golden_##name;
GOLDEN_FAMILIES(X)
#undef X

/* Checks results against recorded ones; `table` is the text of ulp.md, NULL: prints its rows instead. */
void golden_judge(const struct golden_case *c, const unsigned char *got, const unsigned char *want,
                  const char *table);

/* ---- inputs ---- */

/* A 32-bit float: uniform, wide exponents, near ties, subnormal, zero, infinite or NaN. */
uint32_t golden_f32(struct rng *r);
/* A 16-bit float likewise; `bf16` chooses the layout. */
uint16_t golden_half(struct rng *r, bool bf16);
uint64_t golden_f64(struct rng *r);
/* An integer biased to extremes and small values. */
uint64_t golden_int(struct rng *r);

#endif
