/* Attention: host copies of offsets, lengths, block tables and windows, compared with a plan. */
#include "attention.h"

#include "error.h"
#include "structs.h"

struct array {
    const char *prefix, *name;
    const int32_t *values;
};

static int check_given(struct array a, int used, hewn_error *err)
{
    if (used && !a.values)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s%s: must not be NULL", a.prefix, a.name);
    if (!used && a.values)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s%s: must be NULL, because the plan uses none",
                         a.prefix, a.name);
    return HEWN_OK;
}

/* batch + 1 offsets into `tokens` rows, none of the sequences longer than `length`. */
static int check_offsets(struct array a, uint32_t batch, uint32_t tokens, uint32_t length,
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

static int check_values(struct array a, uint32_t count, uint32_t most, hewn_error *err)
{
    for (uint32_t i = 0; i < count; i++)
        if (a.values[i] < 0 || (uint32_t)a.values[i] > most)
            return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s%s[%u]: %d is not in 0..%u", a.prefix,
                             a.name, i, a.values[i], most);
    return HEWN_OK;
}

/* The pages of the keys in use; what the table holds behind them is never read. */
static int check_table(struct array a, const struct attention_source *s, uint32_t batch,
                       const int32_t *lengths, hewn_error *err)
{
    for (uint32_t b = 0; b < batch; b++) {
        uint32_t keys = lengths ? (uint32_t)lengths[b] : s->length;
        uint32_t pages = (keys + s->page_size - 1) / s->page_size;
        for (uint32_t i = 0; i < pages; i++) {
            uint32_t at = b * s->table_width + i;
            if (a.values[at] < 0 || (uint32_t)a.values[at] >= s->pages)
                return hewn_fail(err, HEWN_ERR_ARGUMENT,
                                 "%s%s[%u]: page %d (sequence %u, keys from %u) is not in 0..%u",
                                 a.prefix, a.name, at, a.values[at], b, i * s->page_size,
                                 s->pages - 1);
        }
    }
    return HEWN_OK;
}

static int check_source(const struct attention_problem *p, int index,
                        const hewn_attention_source_tables *t, hewn_error *err)
{
    const struct attention_source *s = &p->source[index];
    const char *prefix = index ? "source[1]." : "source[0].";
    const struct array lengths = {prefix, "lengths", t->lengths},
                       table = {prefix, "table", t->table};
    const struct array windows = {prefix, "windows", t->windows};
    int paged = s->page_size > 0 && s->length > 0;
    int status = check_given(lengths, s->keys != HEWN_KEYS_FIXED, err);
    if (!status && !(s->page_size && !s->length)) status = check_given(table, paged, err);
    if (!status) status = check_given(windows, s->windows, err);
    if (!status && s->keys == HEWN_KEYS_PACKED)
        status = check_offsets(lengths, p->batch, (uint32_t)s->k.tokens, s->length, err);
    if (!status && s->keys == HEWN_KEYS_LENGTHS)
        status = check_values(lengths, p->batch, s->length, err);
    if (!status && paged) status = check_table(table, s, p->batch, t->lengths, err);
    if (!status && s->windows) status = check_values(windows, p->batch, ATTENTION_UNBOUNDED, err);
    return status;
}

int hewn_attention_plan_check_tables(const hewn_attention_plan *plan,
                                     const hewn_attention_tables *tables, hewn_error *err)
{
    if (!plan) return hewn_fail(err, HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    hewn_attention_tables t;
    int status = hewn_struct_take(HEWN_STRUCT_hewn_attention_tables, tables, &t, err);
    if (status) return status;
    const struct attention_problem *p = &plan->problem;
    const struct array cu_q = {"", "cu_q", t.cu_q};
    status = check_given(cu_q, p->q_packed, err);
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
