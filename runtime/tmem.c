/*
 * Tensor memory (PTX ISA, "Tensor Memory Allocation"): 512 columns an SM, allocated in powers of two
 * from 32. A CTA that finds too few free columns waits in tcgen05.alloc. So the allocations of
 * CTAs that share an SM must fit together, or the CTAs block each other.
 */
#include "error.h"

#include <stdint.h>

enum { SM_COLUMNS = 512, MIN_COLUMNS = 32 };

static uint32_t align_of(const hewn_tmem_region *region)
{
    return region->align ? region->align : 1;
}

static int check_regions(const hewn_tmem_region *regions, size_t count, hewn_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const hewn_tmem_region *r = &regions[i];
        const char *name = r->name ? r->name : "unnamed";
        uint32_t align = align_of(r);
        if (r->columns == 0 || r->columns > SM_COLUMNS)
            return hewn_fail(err, HEWN_ERR_ARGUMENT, "region %zu (%s): columns %u is not in 1..%d",
                             i, name, r->columns, SM_COLUMNS);
        if ((align & (align - 1)) || align > SM_COLUMNS)
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "region %zu (%s): align %u is not a power of two in 1..%d", i, name,
                             align, SM_COLUMNS);
    }
    return HEWN_OK;
}

/* Walks the regions, largest alignment first, then in their order, and returns where the last one
 * ends. With `assign` it also writes down the columns; without, nothing is changed. */
static uint64_t place(hewn_tmem_region *regions, size_t count, int assign)
{
    uint64_t at = 0;
    for (uint32_t align = SM_COLUMNS; align > 0; align /= 2)
        for (size_t i = 0; i < count; i++) {
            if (align_of(&regions[i]) != align) continue;
            at = (at + align - 1) / align * align;
            if (assign) regions[i].column = (uint32_t)at;
            at += regions[i].columns;
        }
    return at;
}

int hewn_tmem_place(hewn_tmem_region *regions, size_t count, uint32_t ctas_per_sm,
                    hewn_tmem_plan *out, hewn_error *err)
{
    if (!regions) return hewn_fail_null(err, "regions");
    if (!out) return hewn_fail_null(err, "out");
    if (count == 0) return hewn_fail(err, HEWN_ERR_ARGUMENT, "count: 0 regions, at least 1 needed");
    int status = check_regions(regions, count, err);
    if (status) return status;
    uint64_t used = place(regions, count, 0);
    if (used > SM_COLUMNS)
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "%zu regions take %llu columns, gaps included; an SM has %d", count,
                         (unsigned long long)used, SM_COLUMNS);
    uint32_t columns = MIN_COLUMNS;
    while (columns < used) columns *= 2;
    if (ctas_per_sm > SM_COLUMNS / columns)
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "ctas_per_sm: %u CTAs of %u columns each do not fit the %d of an SM: they "
                         "would wait for each other in tcgen05.alloc",
                         ctas_per_sm, columns, SM_COLUMNS);
    place(regions, count, 1);
    out->columns = columns;
    out->used = (uint32_t)used;
    out->ctas_per_sm = SM_COLUMNS / columns;
    return HEWN_OK;
}
