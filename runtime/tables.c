#include "tables.h"

#include "error.h"

int hewn_array_check_given(struct hewn_array a, int used, hewn_error *err)
{
    if (used && !a.values)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s%s: must not be NULL", a.prefix, a.name);
    if (!used && a.values)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s%s: must be NULL, because the plan uses none",
                         a.prefix, a.name);
    return HEWN_OK;
}

int hewn_array_check_values(struct hewn_array a, uint64_t count, uint32_t most, hewn_error *err)
{
    for (uint64_t i = 0; i < count; i++)
        if (a.values[i] < 0 || (uint32_t)a.values[i] > most)
            return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s%s[%llu]: %d is not in 0..%u", a.prefix,
                             a.name, (unsigned long long)i, a.values[i], most);
    return HEWN_OK;
}

int hewn_array_check_pages(struct hewn_array a, struct hewn_table_shape shape, uint32_t sequence,
                           uint32_t first, uint32_t end, hewn_error *err)
{
    if (first >= end) return HEWN_OK;
    for (uint32_t i = first / shape.page_size; i <= (end - 1) / shape.page_size; i++) {
        uint64_t at = (uint64_t)sequence * shape.width + i;
        if (a.values[at] >= 0 && (uint32_t)a.values[at] < shape.pages) continue;
        if (!shape.pages)
            return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s%s[%llu]: page %d: the pool has no pages",
                             a.prefix, a.name, (unsigned long long)at, a.values[at]);
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s%s[%llu]: page %d (sequence %u, keys from %llu) is not in 0..%u",
                         a.prefix, a.name, (unsigned long long)at, a.values[at], sequence,
                         (unsigned long long)i * shape.page_size, shape.pages - 1);
    }
    return HEWN_OK;
}
