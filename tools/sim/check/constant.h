/* Values that stores write whatever runs first. */
#ifndef SIM_CONSTANT_H
#define SIM_CONSTANT_H

#include "machine/machine.h"

/* Both are stores of one element of one type, and of the same constant: a literal, or a register to which
 * one instruction of the kernel writes, a mov of a literal. Compilers write the latter. */
bool same_constant(const struct kernel *k, const struct insn *x, const struct insn *y);

#endif
