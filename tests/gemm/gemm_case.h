/* What the files of tests/gemm share: a case, its matrices, and the judgement of its result. */
#ifndef TESTS_GEMM_CASE_H
#define TESTS_GEMM_CASE_H

#include "lib/harness.h"

#include "hewn.h"

/* POSITIVE: sums that grow, so that truncation of what is added to them shows. */
enum pattern {
    UNIFORM,
    INTEGERS,
    MIXED_EXPONENTS,
    SPECIALS,
    PLAIN_PATTERNS,
    POSITIVE = PLAIN_PATTERNS,
    PATTERNS
};
extern const char *const pattern_names[];

/* Cases that asked for parts or slices alone, [0], and that named a kernel, [1]; those of them where that was refused. */
struct gemm_wishes {
    int asked[2], refused[2];
};

struct gemm_case {
    hewn_gemm_desc desc;
    float alpha, beta, scale_a, scale_b;
    const float *rows, *columns; /* scales, with those bits of `with`; a problem's begin at a
                                    multiple of 4. gemm_run draws them */
    bool in_place;               /* C is D */
    bool no_c, no_workspace;     /* the run gets none */
    struct gemm_wishes
        *wishes; /* or NULL: a refusal fails the case. Otherwise it is counted, and the case runs
                                   without them */
    int shift;   /* elements from an address that is a multiple of 16 to every matrix and bias */
    const char *finish; /* what all that is called */
    enum pattern pattern;
    uint64_t seed;
};

/* Host side of one operand or result, the elements of all problems: rows of `ld`, or, MN-major, columns
 * of `ld`. */
struct matrix {
    unsigned char *bytes;
    size_t size;
    int dtype;
    int64_t rows, cols, ld, stride, batch;
    int major;
};

struct matrix matrix_new(int dtype, int major, int64_t rows, int64_t cols, int64_t ld,
                         int64_t stride, int64_t batch);
/* Byte offset of an element. */
size_t matrix_at(const struct matrix *x, int64_t b, int64_t r, int64_t c);
double matrix_load(const struct matrix *x, int64_t b, int64_t r, int64_t c);
/* Elements get random values; whatever lies between rows and problems gets NaN. */
void matrix_fill(struct matrix *x, struct rng *r, enum pattern pattern);

/* All operands of a case; C and bias without bytes where the case has none. */
struct operands {
    struct matrix a, b, c, bias, d;
    uint32_t parts;  /* of K, as planned; with slices, of each */
    uint32_t slices; /* of K */
};

struct device;

/* Runs the case on the device and judges its result (gemm_device.c). */
void gemm_run(struct device *dev, const struct gemm_case *g);

/* Fails the case unless every element of D is within its bound (top of gemm_judge.c). */
void judge(const struct gemm_case *g, const struct operands *o);

#endif
