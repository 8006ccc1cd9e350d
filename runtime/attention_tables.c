/* Attention: host copies of offsets, lengths, block tables and windows, compared with a plan. */
#include "attention.h"

#include "error.h"
#include "plan.h"
#include "tables.h"

/* batch + 1 offsets into `tokens` rows, none of the sequences longer than `length`. */
static int check_offsets(struct hewn_array a, uint32_t batch, uint32_t tokens, uint32_t length,
                         hewn_error *err)
{
    if (a.values[0] != 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s%s[0]: %d is not 0", a.prefix, a.name,
                         a.values[0]);
    for (uint32_t i = 1; i <= batch; i++) {
        int32_t before = a.values[i - 1], value = a.values[i];
        if (value < before)
            return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s%s[%u]: %d is less than [%u], %d", a.prefix,
                             a.name, i, value, i - 1, before);
        if ((uint32_t)value > tokens)
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "%s%s[%u]: %d is more than the %u rows there are", a.prefix, a.name, i,
                             value, tokens);
        if ((uint32_t)(value - before) > length)
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "%s%s[%u]: %d makes sequence %u %d rows long, more than %u", a.prefix,
                             a.name, i, value, i - 1, value - before, length);
    }
    return HEWN_OK;
}

static int check_source(const struct attention_problem *p, int index,
                        const hewn_attention_source_tables *t, hewn_error *err)
{
    const struct attention_source *s = &p->source[index];
    const char *prefix = index ? "source[1]." : "source[0].";
    const struct hewn_array lengths = {prefix, "lengths", t->lengths},
                            table = {prefix, "table", t->table};
    const struct hewn_array windows = {prefix, "windows", t->windows};
    int paged = s->page_size > 0 && s->length > 0;
    int status = hewn_array_check_given(lengths, s->keys != HEWN_KEYS_FIXED, err);
    if (!status && !(s->page_size && !s->length))
        status = hewn_array_check_given(table, paged, err);
    if (!status) status = hewn_array_check_given(windows, s->windows, err);
    if (!status && s->keys == HEWN_KEYS_PACKED)
        status = check_offsets(lengths, p->batch, (uint32_t)s->k.tokens, s->length, err);
    if (!status && s->keys == HEWN_KEYS_LENGTHS)
        status = hewn_array_check_values(lengths, p->batch, s->length, err);
    const struct hewn_table_shape shape = {s->table_width, s->page_size, s->pages};
    for (uint32_t b = 0; !status && paged && b < p->batch; b++)
        status = hewn_array_check_pages(table, shape, b, 0,
                                        t->lengths ? (uint32_t)t->lengths[b] : s->length, err);
    if (!status && s->windows)
        status = hewn_array_check_values(windows, p->batch, ATTENTION_UNBOUNDED, err);
    return status;
}

int hewn_attention_plan_check_tables(const hewn_attention_plan *plan,
                                     const hewn_attention_tables *tables, hewn_error *err)
{
    hewn_attention_tables t;
    int status = hewn_plan_take(plan, HEWN_STRUCT_hewn_attention_tables, tables, &t, err);
    if (status) return status;
    const struct attention_problem *p = &plan->problem;
    const struct hewn_array cu_q = {"", "cu_q", t.cu_q};
    status = hewn_array_check_given(cu_q, p->q_packed, err);
    if (!status && p->q_packed)
        status = check_offsets(cu_q, p->batch, p->q_tokens, p->q_length, err);
    for (int i = 0; !status && i < 2; i++) {
        hewn_attention_source_tables source = {0};
        if (t.source[i])
            status = hewn_struct_take(HEWN_STRUCT_hewn_attention_source_tables, t.source[i],
                                      &source, err);
        if (!status) status = check_source(p, i, &source, err);
    }
    return status;
}
