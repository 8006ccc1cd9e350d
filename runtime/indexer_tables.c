/* Indexer and top-k: host copies of ranges and block tables, compared with a plan. */
#include "indexer.h"

#include "plan.h"
#include "tables.h"

/* What both families know of their rows. */
struct ranges {
    uint32_t rows, queries, most; /* most: keys, or columns */
    int starts, ends;
    struct indexer_pages pages;
};

static int check_ranges(const struct ranges *r, const int32_t *starts, const int32_t *ends,
                        const int32_t *table, hewn_error *err)
{
    const struct hewn_array start = {"", "starts", starts}, end = {"", "ends", ends};
    const struct hewn_array pages = {"", "table", table};
    const struct hewn_table_shape shape = {r->pages.table_width, r->pages.page_size,
                                           r->pages.planes};
    int paged = r->pages.page_size && r->most;
    int status = hewn_array_check_given(start, r->starts, err);
    if (!status) status = hewn_array_check_given(end, r->ends, err);
    if (!status && !(r->pages.page_size && !r->most))
        status = hewn_array_check_given(pages, paged, err);
    if (!status && starts) status = hewn_array_check_values(start, r->rows, r->most, err);
    if (!status && ends) status = hewn_array_check_values(end, r->rows, r->most, err);
    for (uint32_t i = 0; !status && paged && i < r->rows; i++)
        status =
            hewn_array_check_pages(pages, shape, i / r->queries, starts ? (uint32_t)starts[i] : 0,
                                   ends ? (uint32_t)ends[i] : r->most, err);
    return status;
}

int hewn_indexer_plan_check_tables(const hewn_indexer_plan *plan, const hewn_indexer_tables *tables,
                                   hewn_error *err)
{
    hewn_indexer_tables t;
    int status = hewn_plan_take(plan, HEWN_STRUCT_hewn_indexer_tables, tables, &t, err);
    if (status) return status;
    const struct indexer_problem *p = &plan->problem;
    const struct ranges r = {p->rows, p->queries, p->length, p->starts, p->ends, p->pages};
    return check_ranges(&r, t.starts, t.ends, t.table, err);
}

int hewn_topk_plan_check_tables(const hewn_topk_plan *plan, const hewn_topk_tables *tables,
                                hewn_error *err)
{
    hewn_topk_tables t;
    int status = hewn_plan_take(plan, HEWN_STRUCT_hewn_topk_tables, tables, &t, err);
    if (status) return status;
    const struct topk_problem *p = &plan->problem;
    const struct ranges r = {p->rows, p->queries, p->columns, p->starts, p->ends, p->pages};
    return check_ranges(&r, t.starts, t.ends, t.table, err);
}
