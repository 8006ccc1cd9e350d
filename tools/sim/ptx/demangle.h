/*
 * Names as people wrote them, from those of the Itanium C++ ABI that nvcc and clang give to kernels and variables:
 * scopes, names and template arguments; what a function's parameters are is left out.
 */
#ifndef SIM_DEMANGLE_H
#define SIM_DEMANGLE_H

#include <stddef.h>

enum { DEMANGLED_BYTES = 160 };

/* `_ZN3foo3barILi4EfEEvPf` as "foo::bar<4, float>", a function's local `_ZZ3barvE4tile` as "tile". Cut to `size`; a
 * name that is not understood stays as it is. Returns `out`. */
char *demangle(const char *name, char *out, size_t size);

#endif
