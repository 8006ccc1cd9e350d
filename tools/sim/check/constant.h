/* Stores that write the same value in every order. */
#ifndef SIM_CONSTANT_H
#define SIM_CONSTANT_H

#include "machine/machine.h"

/* Whether both instructions store one element of one type and the same constant. A constant is a
 * literal, or a register whose only writer in the kernel is a mov of a literal, as compilers write
 * it. */
bool same_constant(const struct kernel *k, const struct insn *x, const struct insn *y);

#endif
