/* Host copies of the arrays that kernels read on the device: rules that several families share. */
#ifndef HEWN_RUNTIME_TABLES_H
#define HEWN_RUNTIME_TABLES_H

#include "hewn.h"

/* `prefix` and `name` are for messages. */
struct hewn_array {
    const char *prefix, *name;
    const int32_t *values;
};

/* It is there if and only if the plan uses it. */
int hewn_array_check_given(struct hewn_array a, int used, hewn_error *err);
/* `count` values in 0..most. */
int hewn_array_check_values(struct hewn_array a, uint64_t count, uint32_t most, hewn_error *err);

/* A block table: entries of a sequence, keys of a page, pages of the pool. */
struct hewn_table_shape {
    uint32_t width, page_size, pages;
};
/* The pages of the keys first..end-1 of a sequence. Other entries are never read. */
int hewn_array_check_pages(struct hewn_array a, struct hewn_table_shape shape, uint32_t sequence,
                           uint32_t first, uint32_t end, hewn_error *err);

#endif
