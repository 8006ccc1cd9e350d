/* Stores that write the same value in every order, and kernels that wait for nobody. */
#ifndef SIM_CONSTANT_H
#define SIM_CONSTANT_H

#include "machine/machine.h"

/* Whether both instructions store one element of one type and the same constant. A constant is a
 * literal, or a register whose only writer in the kernel is a mov of a literal, as compilers write
 * it. */
bool same_constant(const struct kernel *k, const struct insn *x, const struct insn *y);

/* The same for stores of two kernels, of which one may be gone. */
struct stored {
    uint64_t value;
    uint8_t bytes; /* 0: no constant */
};
bool same_stored(const struct stored *a, const struct stored *b);
/* By instruction; the caller's to free, or NULL. */
struct stored *stored_constants(const struct kernel *k);

/* What the kernel executes, or where, depends on what a strong access to global memory brings: it may wait for another
 * launch, or find out that one is over. */
bool kernel_waits(const struct kernel *k);

#endif
