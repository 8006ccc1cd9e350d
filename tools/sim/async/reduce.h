/*
 * Element-wise reductions of bulk copies, st.async's sibling red.async, and tensor stores
 * (PTX ISA "cp.reduce.async.bulk").
 */
#ifndef SIM_REDUCE_H
#define SIM_REDUCE_H

#include "ptx/module.h"

#include <stddef.h>

/* dst[i] = op(dst[i], src[i]) over `bytes` bytes, a multiple of the element size. */
typedef void reduce_fn(void *dst, const void *src, size_t bytes);

/* The reduction named "add", "min", … on elements of `type`; NULL where PTX has none. */
reduce_fn *reduce_find(const char *op, enum ptx_type type);

#endif
