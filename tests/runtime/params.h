/* What the files of params share: parameters and tensor maps held against what they should be. */
#ifndef TESTS_PARAMS_H
#define TESTS_PARAMS_H

#include "lib/fake_driver.h"
#include "lib/harness.h"
#include "lib/plans.h"

/* The types of the kernels' parameter lists. */
typedef uint64_t u64;
typedef uint32_t u32;
typedef float f32;

struct scalar {
    const char *name;
    double value; /* 64-bit integers here are below 2^53 */
};

/* A list ends with a NULL name; a parameter that it does not name must be 0. */
void check_scalars(const char *what, const struct scalar *got, size_t count,
                   const struct scalar *want);

/* A map's rank is how many of its dim are not 0. */
struct want_map {
    uint64_t at, dim[5], stride[4];
    uint16_t box[5];
};

/* 128-byte swizzle, no interleave, element strides 1, zeros out of bounds. */
void check_map(const char *name, const struct fake_map *got, const struct want_map *want, int dtype,
               int l2);

void gemm(void); /* params_gemm.c */
void w4(void);   /* params_w4.c */

#endif
