/*
 * Names that the source gives to roles, shared memory and tensor-memory columns, for reports.
 *
 * Static .shared variables name themselves. The rest comes from comment lines ahead of an entry or
 * inside it (numbers as in C):
 *     //@ role <name> <first_warp> <warp_count>
 *     //@ shared <name> <offset_in_dynamic_shared> <element_bytes> <count>
 *     //@ tmem <name> <first_column> <columns>
 * Notes of other kinds are left alone; those that declare a worksheet: worksheet/worksheet_declared.c.
 */
#ifndef SIM_NAMES_H
#define SIM_NAMES_H

#include "decode/decode.h"

#include <stddef.h>

/* Fills kernel->roles, ->buffers and ->columns from its entry. 0; -1 out of memory; -2 with `diag`:
 * a note of a known kind that does not parse. */
int names_collect(struct kernel *kernel, struct ptx_diag *diag);

/* Each writes a NUL-terminated name, cut to `size`, and returns `out`. */

/* "full_bar[2]", "tile_a[1]+0x80", "shared+0x1c00"; `offset` is a window offset (rank bits are
 * ignored). */
char *name_shared(const struct kernel *kernel, uint32_t offset, char *out, size_t size);
/* "producer (warp 4)", "warp 4" */
char *name_warp(const struct kernel *kernel, uint32_t warp, char *out, size_t size);
/* "acc[128..255] (TMEM columns 384..511)", "TMEM columns 256..383", "TMEM column 7" */
char *name_columns(const struct kernel *kernel, uint32_t first, uint32_t count, char *out,
                   size_t size);

/* The role that holds `warp`, or NULL. */
const struct name_range *role_of_warp(const struct kernel *kernel, uint32_t warp);

#endif
