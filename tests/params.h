/* What the files of params share: parameters and tensor maps held against what they should be. */
#ifndef TESTS_PARAMS_H
#define TESTS_PARAMS_H

#include "fake_driver.h"
#include "harness.h"

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
void check_map(const char *name, const struct fake_map *got, const struct fake_map *want);

void gemm(void); /* params_gemm.c */

#endif
