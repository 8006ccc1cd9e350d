/*
 * Cubins that hold their PTX. ptxas keeps the text in the section .nv_debug_ptx_txt if it is asked for line numbers
 * (-lineinfo, -g): a NUL ends each line, and comments are gone. Lines keep their numbers.
 */
#ifndef PTX_CUBIN_H
#define PTX_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

bool cubin_is(const char *image, size_t size);

enum cubin_status { CUBIN_OK = 0, CUBIN_NO_PTX = -1, CUBIN_NO_MEMORY = -2 };

/* The PTX text of a cubin, to be freed. `size`: its bytes, or SIZE_MAX where only the image itself knows, as in
 * cuModuleLoadData: then its tables are believed. A cubin that does not fit its size has no PTX. */
int cubin_ptx(const char *image, size_t size, char **out);

/* In place of PTX that it lacks: a text with an entry for each of its functions by name, without parameters, that traps,
 * and its variables in global memory, zero. To be freed. */
int cubin_names(const char *image, size_t size, char **out);

#endif
