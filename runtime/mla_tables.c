/* MLA: host copies of lengths, block tables and lists, compared with a plan. */
#include "mla.h"

#include "error.h"
#include "plan.h"
#include "tables.h"

/* Arrays of lengths, and what they are of: sequences' keys or entries of lists, at most `all`. */
struct counts {
    const int32_t *lengths;
    int kind; /* as hewn_mla_desc.lengths */
    uint32_t all, queries;
};

/* The keys of a sequence, or of a query's list. */
static uint32_t keys_of(const struct counts *c, uint64_t query)
{
    if (!c->lengths) return c->all;
    return (uint32_t)c->lengths[c->kind == 2 ? query : query / c->queries];
}

static int check_lists(const struct mla_problem *p, struct hewn_array lists,
                       const struct mla_tensor *kv, uint64_t step, const struct counts *c,
                       hewn_error *err)
{
    uint64_t rows = kv->count[1] * kv->count[2];
    for (uint64_t q = 0; q < (uint64_t)p->batch * p->q_length; q++)
        for (uint64_t i = q * step; i < q * step + keys_of(c, q); i++) {
            int32_t row = lists.values[i];
            if (row == -1 || (row >= 0 && (uint64_t)row < rows)) continue;
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "%s[%llu]: %d (sequence %llu, query %llu) is neither -1 nor one of "
                             "the %llu rows of the cache",
                             lists.name, (unsigned long long)i, row,
                             (unsigned long long)(q / p->q_length),
                             (unsigned long long)(q % p->q_length), (unsigned long long)rows);
        }
    return HEWN_OK;
}

/* The second lists. */
static int check_extra(const struct mla_problem *p, const hewn_mla_tables *t, hewn_error *err)
{
    const struct hewn_array lengths = {"", "extra_lengths", t->extra_lengths};
    const struct hewn_array lists = {"", "extra_lists", t->extra_lists};
    const struct mla_extra *e = &p->extra;
    const struct counts c = {t->extra_lengths, e->lengths, e->width, p->q_length};
    uint64_t count = (uint64_t)p->batch * (e->lengths == 2 ? p->q_length : 1);
    int status = hewn_array_check_given(lengths, e->lengths, err);
    if (!status) status = hewn_array_check_given(lists, e->width > 0, err);
    if (!status && e->lengths) status = hewn_array_check_values(lengths, count, e->width, err);
    if (status || !e->width) return status;
    return check_lists(p, lists, &e->kv, e->step / sizeof(int32_t), &c, err);
}

int hewn_mla_plan_check_tables(const hewn_mla_plan *plan, const hewn_mla_tables *tables,
                               hewn_error *err)
{
    hewn_mla_tables t;
    int status = hewn_plan_take(plan, HEWN_STRUCT_hewn_mla_tables, tables, &t, err);
    if (status) return status;
    const struct mla_problem *p = &plan->problem;
    const struct hewn_array lengths = {"", "lengths", t.lengths}, table = {"", "table", t.table};
    const struct hewn_array lists = {"", "lists", t.lists};
    const struct hewn_table_shape shape = {p->table_width, p->page_size, p->planes};
    const struct counts c = {t.lengths, p->lengths, p->list_width ? p->list_width : p->length,
                             p->q_length};
    int listed = p->list_width > 0, paged = p->page_size && p->length && !listed;
    uint64_t counts = (uint64_t)p->batch * (p->lengths == 2 ? p->q_length : 1);
    status = hewn_array_check_given(lengths, p->lengths, err);
    if (!status && !(p->page_size && !p->length && !listed))
        status = hewn_array_check_given(table, paged, err);
    if (!status) status = hewn_array_check_given(lists, listed, err);
    if (!status && p->lengths)
        status = hewn_array_check_values(lengths, counts, listed ? p->list_width : p->length, err);
    if (!status && listed)
        status = check_lists(p, lists, &p->kv, p->list_step / sizeof(int32_t), &c, err);
    for (uint32_t b = 0; !status && paged && b < p->batch; b++)
        status =
            hewn_array_check_pages(table, shape, b, 0, keys_of(&c, (uint64_t)b * p->q_length), err);
    return status ? status : check_extra(p, &t, err);
}
