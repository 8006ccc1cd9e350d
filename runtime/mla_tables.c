/* MLA: host copies of lengths, block tables and lists, compared with a plan. */
#include "mla.h"

#include "error.h"
#include "structs.h"
#include "tables.h"

/* The keys of a sequence, or of a query's list. */
static uint32_t keys_of(const struct mla_problem *p, const int32_t *lengths, uint64_t query)
{
    uint32_t all = p->list_width ? p->list_width : p->length;
    if (!lengths) return all;
    return (uint32_t)lengths[p->lengths == 2 ? query : query / p->q_length];
}

static int check_lists(const struct mla_problem *p, struct hewn_array lists, const int32_t *lengths,
                       hewn_error *err)
{
    uint64_t rows = p->kv.count[1] * p->kv.count[2], step = p->list_step / sizeof(int32_t);
    for (uint64_t q = 0; q < (uint64_t)p->batch * p->q_length; q++)
        for (uint64_t i = q * step; i < q * step + keys_of(p, lengths, q); i++) {
            int32_t row = lists.values[i];
            if (row == -1 || (row >= 0 && (uint64_t)row < rows)) continue;
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "lists[%llu]: %d (sequence %llu, query %llu) is neither -1 nor one of "
                             "the %llu rows of the cache",
                             (unsigned long long)i, row, (unsigned long long)(q / p->q_length),
                             (unsigned long long)(q % p->q_length), (unsigned long long)rows);
        }
    return HEWN_OK;
}

int hewn_mla_plan_check_tables(const hewn_mla_plan *plan, const hewn_mla_tables *tables,
                               hewn_error *err)
{
    if (!plan) return hewn_fail(err, HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    hewn_mla_tables t;
    int status = hewn_struct_take(HEWN_STRUCT_hewn_mla_tables, tables, &t, err);
    if (status) return status;
    const struct mla_problem *p = &plan->problem;
    const struct hewn_array lengths = {"", "lengths", t.lengths}, table = {"", "table", t.table};
    const struct hewn_array lists = {"", "lists", t.lists};
    const struct hewn_table_shape shape = {p->table_width, p->page_size, p->planes};
    int listed = p->list_width > 0, paged = p->page_size && p->length && !listed;
    uint64_t counts = (uint64_t)p->batch * (p->lengths == 2 ? p->q_length : 1);
    status = hewn_array_check_given(lengths, p->lengths, err);
    if (!status && !(p->page_size && !p->length && !listed))
        status = hewn_array_check_given(table, paged, err);
    if (!status) status = hewn_array_check_given(lists, listed, err);
    if (!status && p->lengths)
        status = hewn_array_check_values(lengths, counts, listed ? p->list_width : p->length, err);
    if (!status && listed) status = check_lists(p, lists, t.lengths, err);
    for (uint32_t b = 0; !status && paged && b < p->batch; b++)
        status = hewn_array_check_pages(table, shape, b, 0,
                                        keys_of(p, t.lengths, (uint64_t)b * p->q_length), err);
    return status;
}
