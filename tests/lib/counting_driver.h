/*
 * The driver that HEWN_LIBCUDA names, seen through hewn_driver_options.resolve: every function of the
 * runtime's table is counted on its way, by name, and so is what the calling thread allocates between
 * the calls. A program that links this has malloc, free and mmap of its own, which count and go on to
 * libc's; without glibc, and under a sanitiser that has them itself, allocations are not seen.
 */
#ifndef TESTS_COUNTING_DRIVER_H
#define TESTS_COUNTING_DRIVER_H

#include "hewn.h"

#include <stdbool.h>

/* What is counted, on the thread that began, from counting_begin to counting_end. */
struct counts {
    long encodes;         /* cuTensorMapEncodeTiled, cuTensorMapReplaceAddress */
    long launches, loads; /* cuLaunchKernel(Ex); cuModuleLoad… */
    long other;           /* any other call of the driver, */
    const char *first_other; /* the first of them */
    long allocations, frees, maps; /* made outside the driver's functions */
    long inside;                   /* allocations by the driver's own code */
};

/* Options that open the driver through the counting functions; NULL, with the reason, where the library
 * cannot be opened. */
const hewn_driver_options *counting_options(hewn_error *err);
/* False where allocations are not seen. */
bool counting_sees_allocations(void);

void counting_begin(void);
struct counts counting_end(void);

/* The next launch of the calling thread is repeated `count` times by the driver's function alone, with the
 * attributes and parameters that it comes with; seconds a launch are added to *seconds. */
void counting_repeat(int count, double *seconds);

#endif
