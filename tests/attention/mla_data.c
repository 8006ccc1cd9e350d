#include "mla_case.h"

#include "lib/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPREAD = 24, FAR = 0x40000000 };

double mla_value(int dtype, uint16_t bits)
{
    return dtype == HEWN_F16 ? f16_to_double(bits) : bf16_to_double(bits);
}

static uint16_t rounded(int dtype, double value)
{
    return dtype == HEWN_F16 ? double_to_f16(value) : double_to_bf16(value);
}

void mla_case_name(const struct mla_case *c, char *out, size_t size)
{
    static const char *const wrong[] = {"", ", lengths out of range", ", pages outside the pool"};
    snprintf(out, size,
             "%s to %s, batch %d, %d heads, %d queries, %s%d keys, pages of %d%s%s%s%s%s",
             hewn_dtype_name(c->in), hewn_dtype_name(c->out), c->batch, c->heads, c->queries,
             c->ragged ? "up to " : "", c->length, c->page, c->causal ? ", causal" : "",
             c->sink ? ", sink" : "", c->spread ? ", spread" : "", c->sharp > 4 ? ", peaked" : "",
             wrong[c->wrong]);
}

/* ---- shapes -- */

static int pages_of(const struct mla_case *c, int keys)
{
    return c->page ? (keys + c->page - 1) / c->page : 0;
}

static void describe(struct mla_data *d)
{
    const struct mla_case *c = &d->c;
    int extra = c->spread ? SPREAD : 0;
    hewn_mla_desc *x = &d->desc;
    *x = (hewn_mla_desc){.struct_size = sizeof *x,
                         .batch = c->batch,
                         .q_heads = c->heads,
                         .q_length = c->queries,
                         .length = c->length,
                         .page_size = c->page,
                         .in = c->in,
                         .out = c->out,
                         .lengths = c->ragged,
                         .causal = c->causal,
                         .sink = c->sink};
    x->kv_token = MLA_QK + extra;
    x->kv_batch = (c->page ? c->page : c->length) * x->kv_token + extra;
    x->q_head = MLA_QK + extra;
    x->q_token = x->q_head * c->heads;
    x->q_batch = x->q_token * c->queries + extra;
    x->o_head = MLA_V + extra;
    x->o_token = x->o_head * c->heads + extra;
    x->o_batch = x->o_token * c->queries;
    if (c->page) {
        x->table_width = pages_of(c, c->length) + (c->spread ? 3 : 0);
        x->pages = (int64_t)c->batch * pages_of(c, c->length) + 2;
    }
    int64_t planes = c->page ? x->pages : c->batch;
    d->q_count = (size_t)(x->q_batch * c->batch);
    d->kv_count = (size_t)(x->kv_batch * planes);
    d->o_bytes = (size_t)(x->o_batch * c->batch) * hewn_dtype_size(c->out);
    d->lse_count = (size_t)c->batch * (size_t)c->heads * (size_t)c->queries;
    d->table_count = (size_t)(x->table_width * c->batch);
}

int mla_keys(const struct mla_data *d, int sequence)
{
    int n = d->c.ragged ? d->lengths[sequence] : d->c.length;
    return n < 0 ? 0 : n > d->c.length ? d->c.length : n;
}

int64_t mla_row(const struct mla_data *d, int sequence, int key)
{
    const hewn_mla_desc *x = &d->desc;
    int64_t plane = sequence, row = key;
    if (d->c.page) {
        plane = d->table[sequence * x->table_width + key / d->c.page];
        row = key % d->c.page;
        if (plane < 0 || plane >= x->pages) return -1;
    }
    return plane * x->kv_batch + row * x->kv_token;
}

/* ---- contents -- */

static void fill_lengths(struct mla_data *d, struct rng *r)
{
    const struct mla_case *c = &d->c;
    for (int b = 0; b < c->batch; b++) {
        int n = (int)rng_below(r, (uint32_t)c->length + 1);
        if (b % 4 == 1) n = 0;
        if (b % 4 == 2) n = c->length;
        if (b % 8 == 3 && c->length > 64)
            n = 64 * (1 + (int)rng_below(r, (uint32_t)c->length / 64));
        if (c->wrong == MLA_BAD_LENGTHS && b % 3 == 0)
            n = b % 2 ? -5 : c->length + 7 + b * FAR / 64;
        d->lengths[b] = n;
    }
}

/* The sequences' pages are a permutation of the pool's. What no key needs is far outside. */
static void fill_table(struct mla_data *d, struct rng *r)
{
    int64_t pages = d->desc.pages, width = d->desc.table_width;
    int32_t *order = malloc((size_t)pages * sizeof *order);
    if (!order) return;
    for (int32_t i = 0; i < pages; i++) {
        uint32_t j = rng_below(r, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    int64_t next = 0;
    for (int b = 0; b < d->c.batch; b++)
        for (int64_t i = 0; i < width; i++) {
            int32_t *entry = &d->table[b * width + i];
            int used = i < pages_of(&d->c, mla_keys(d, b));
            *entry = used ? order[next++] : INT32_MAX;
            if (used && d->c.wrong == MLA_BAD_PAGES && i % 3 == 1)
                *entry = i % 2 ? (int32_t)pages + (int32_t)i : -1 - (int32_t)i;
        }
    free(order);
}

/* Everything that no key of a sequence is, is NaN. */
static void fill(struct mla_data *d, struct rng *r)
{
    const struct mla_case *c = &d->c;
    const hewn_mla_desc *x = &d->desc;
    double amplitude = sqrt(3.0);
    memset(d->q, 0xFF, d->q_count * sizeof *d->q);
    memset(d->kv, 0xFF, d->kv_count * sizeof *d->kv);
    for (int b = 0; b < c->batch; b++)
        for (int row = 0; row < c->heads * c->queries; row++) {
            uint16_t *q = d->q + b * x->q_batch + row * x->q_head;
            for (int i = 0; i < MLA_QK; i++)
                q[i] = rounded(c->in, amplitude * (double)c->sharp * (double)rng_unit(r));
        }
    for (int b = 0; b < c->batch; b++)
        for (int j = 0; j < mla_keys(d, b); j++) {
            int64_t at = mla_row(d, b, j);
            for (int i = 0; at >= 0 && i < MLA_QK; i++)
                d->kv[at + i] = rounded(c->in, amplitude * (double)rng_unit(r));
        }
    for (int h = 0; h < c->heads; h++) d->sink[h] = h % 5 == 4 ? -INFINITY : 6.0F * rng_unit(r);
}

bool mla_data_new(struct mla_data *d, const struct mla_case *c)
{
    struct rng r = {c->seed ^ test_seed()};
    memset(d, 0, sizeof *d);
    d->c = *c;
    describe(d);
    d->q = malloc(d->q_count * sizeof *d->q);
    d->kv = malloc(d->kv_count * sizeof *d->kv + 1);
    d->o = malloc(d->o_bytes);
    d->lse = malloc(d->lse_count * sizeof *d->lse);
    d->sink = malloc((size_t)c->heads * sizeof *d->sink);
    d->lengths = malloc((size_t)c->batch * sizeof *d->lengths);
    d->table = malloc(d->table_count * sizeof *d->table + 1);
    if (!d->q || !d->kv || !d->o || !d->lse || !d->sink || !d->lengths || !d->table) return false;
    fill_lengths(d, &r);
    fill_table(d, &r);
    fill(d, &r);
    return true;
}

void mla_data_free(struct mla_data *d)
{
    free(d->q);
    free(d->kv);
    free(d->o);
    free(d->lse);
    free(d->sink);
    free(d->lengths);
    free(d->table);
}
