#include "indexer_case.h"

#include "lib/harness.h"
#include "lib/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPREAD = 32 };

void indexer_case_name(const struct indexer_case *c, char *out, size_t size)
{
    static const char *const wrong[] = {"", ", ranges out of bounds", ", pages outside the pool",
                                        ", NaN among the keys"};
    snprintf(out, size, "%d x %d queries, %d heads of %d, %d keys, pages of %d%s%s%s%s%s", c->batch,
             c->queries, c->heads, c->dim, c->length, c->page, c->in_pages ? " with scales" : "",
             c->starts ? ", starts" : "", c->ends ? ", ends" : "", c->spread ? ", spread" : "",
             wrong[c->wrong]);
}

/* ---- shapes -- */

static int pages_of(const struct indexer_case *c, int keys)
{
    return c->page ? (keys + c->page - 1) / c->page : 0;
}

static void describe(struct indexer_data *d)
{
    const struct indexer_case *c = &d->c;
    int64_t extra = c->spread ? SPREAD : 0, keys = c->page ? c->page : c->length;
    hewn_indexer_desc *x = &d->desc;
    *x = (hewn_indexer_desc){.struct_size = sizeof *x,
                             .batch = c->batch,
                             .queries = c->queries,
                             .heads = c->heads,
                             .dim = c->dim,
                             .length = c->length,
                             .page_size = c->page,
                             .in = HEWN_E4M3,
                             .scales = c->in_pages,
                             .starts = c->starts,
                             .ends = c->ends};
    x->q_head = c->dim + extra;
    x->q_token = x->q_head * c->heads + extra;
    x->k_token = c->dim + extra;
    x->k_batch = keys * (x->k_token + (c->in_pages ? 4 : 0)) + extra;
    x->scale_batch = c->in_pages ? 0 : keys + (c->spread ? 3 : 0);
    x->weight_token = c->heads + (c->spread ? 3 : 0);
    x->out_token = c->length + (c->spread ? 5 : 0);
    if (c->page) {
        x->table_width = pages_of(c, c->length) + (c->spread ? 3 : 0);
        x->pages = (int64_t)c->batch * pages_of(c, c->length) + 2;
    }
    int64_t planes = c->page ? x->pages : c->batch;
    d->rows = c->batch * c->queries;
    d->q_bytes = (size_t)(x->q_token * d->rows);
    d->k_bytes = (size_t)(x->k_batch * planes);
    d->scale_count = (size_t)(x->scale_batch * planes);
    d->weight_count = (size_t)(x->weight_token * d->rows);
    d->out_count = (size_t)(x->out_token * d->rows);
    d->table_count = (size_t)(x->table_width * c->batch);
}

static int clamp(int x, int most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

void indexer_range(const struct indexer_data *d, int row, int *from, int *to)
{
    *from = d->c.starts ? clamp(d->starts[row], d->c.length) : 0;
    *to = d->c.ends ? clamp(d->ends[row], d->c.length) : d->c.length;
}

/* The plane and row of a key; false outside the pool. */
static bool place(const struct indexer_data *d, int sequence, int key, int64_t *plane, int64_t *row)
{
    *plane = sequence, *row = key;
    if (!d->c.page) return true;
    *plane = d->table[sequence * d->desc.table_width + key / d->c.page];
    *row = key % d->c.page;
    return *plane >= 0 && *plane < d->desc.pages;
}

bool indexer_key(const struct indexer_data *d, int sequence, int key, const unsigned char **at,
                 float *scale)
{
    int64_t plane, row;
    if (!place(d, sequence, key, &plane, &row)) return false;
    const unsigned char *page = d->k + plane * d->desc.k_batch;
    *at = page + row * d->desc.k_token;
    if (d->c.in_pages)
        memcpy(scale, page + d->c.page * d->desc.k_token + 4 * row, sizeof *scale);
    else
        *scale = d->scales[plane * d->desc.scale_batch + row];
    return true;
}

/* ---- contents -- */

static void fill_ranges(struct indexer_data *d, struct rng *r)
{
    int n = d->c.length;
    for (int i = 0; i < d->rows; i++) {
        int to = (int)rng_below(r, (uint32_t)n + 1), from = (int)rng_below(r, (uint32_t)to + 1);
        if (i % 5 == 1) to = from; /* empty */
        if (i % 5 == 2) from = 0, to = n;
        if (i % 5 == 3) from = to / 64 * 64;
        if (d->c.wrong == BAD_RANGES && i % 3 == 0) {
            from = i % 2 ? -7 : INT32_MIN;
            to = i % 4 ? n + 1000 : INT32_MAX;
        }
        if (d->c.wrong == BAD_RANGES && i % 7 == 5) to = -1;
        d->starts[i] = from;
        d->ends[i] = to;
    }
}

/* The end of the last range among a sequence's queries. */
static int last_key(const struct indexer_data *d, int sequence)
{
    int last = 0;
    for (int i = 0; i < d->c.queries; i++) {
        int from, to;
        indexer_range(d, sequence * d->c.queries + i, &from, &to);
        if (from < to && to > last) last = to;
    }
    return last;
}

/* The sequences' pages are a permutation of the pool's. What no key needs is far outside. */
static void fill_table(struct indexer_data *d, struct rng *r)
{
    int64_t pages = d->desc.pages, width = d->desc.table_width, next = 0;
    int32_t *order = calloc((size_t)pages + 1, sizeof *order);
    if (!order) return;
    for (int32_t i = 0; i < pages; i++) {
        uint32_t j = rng_below(r, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int b = 0; b < d->c.batch; b++)
        for (int64_t i = 0; i < width; i++) {
            int32_t *entry = &d->table[b * width + i];
            bool used = i < pages_of(&d->c, last_key(d, b));
            *entry = used ? order[next++] : INT32_MAX;
            if (used && d->c.wrong == BAD_PAGES && i % 3 == 1)
                *entry = i % 2 ? (int32_t)pages + (int32_t)i : -1 - (int32_t)i;
        }
    free(order);
}

static void fill_bytes(const struct indexer_case *c, unsigned char *at, struct rng *r)
{
    for (int i = 0; i < c->dim; i++) {
        double x = c->exact ? (int)rng_below(r, 5) - 2 : 2 * (double)(rng_unit(r) + rng_unit(r));
        number_store(HEWN_E4M3, x, at + i);
    }
}

/* Everything that no key or query is, is NaN. */
static void fill(struct indexer_data *d, struct rng *r)
{
    const struct indexer_case *c = &d->c;
    const hewn_indexer_desc *x = &d->desc;
    memset(d->q, 0xFF, d->q_bytes);
    memset(d->k, 0xFF, d->k_bytes);
    memset(d->scales, 0xFF, d->scale_count * 4);
    memset(d->weights, 0xFF, d->weight_count * 4);
    for (int row = 0; row < d->rows; row++)
        for (int h = 0; h < c->heads; h++) {
            fill_bytes(c, d->q + row * x->q_token + h * x->q_head, r);
            d->weights[row * x->weight_token + h] =
                c->exact ? (float)rng_below(r, 9) - 4 : rng_unit(r);
        }
    for (int b = 0; b < c->batch; b++)
        for (int j = 0; j < last_key(d, b); j++) {
            int64_t plane, row;
            float scale = 0.01F + 0.5F * (1 + rng_unit(r));
            if (!place(d, b, j, &plane, &row)) continue;
            unsigned char *page = d->k + plane * x->k_batch;
            fill_bytes(c, page + row * x->k_token, r);
            if (c->exact) scale = rng_below(r, 2) ? 0.5F : 4;
            if (c->wrong == NAN_KEYS && j % 11 == 3) page[row * x->k_token + j % c->dim] = 0x7F;
            if (c->in_pages)
                memcpy(page + c->page * x->k_token + 4 * row, &scale, sizeof scale);
            else
                d->scales[plane * x->scale_batch + row] = scale;
        }
}

bool indexer_data_new(struct indexer_data *d, const struct indexer_case *c)
{
    struct rng r = {c->seed ^ test_seed()};
    memset(d, 0, sizeof *d);
    d->c = *c;
    describe(d);
    d->q = malloc(d->q_bytes);
    d->k = malloc(d->k_bytes + 1);
    d->scales = malloc(d->scale_count * sizeof *d->scales + 1);
    d->weights = malloc(d->weight_count * sizeof *d->weights);
    d->out = malloc(d->out_count * sizeof *d->out + 1);
    d->starts = calloc((size_t)d->rows, sizeof *d->starts);
    d->ends = calloc((size_t)d->rows, sizeof *d->ends);
    d->table = calloc(d->table_count + 1, sizeof *d->table);
    if (!d->q || !d->k || !d->scales || !d->weights || !d->out || !d->starts || !d->ends ||
        !d->table)
        return false;
    fill_ranges(d, &r);
    fill_table(d, &r);
    fill(d, &r);
    return true;
}

void indexer_data_free(struct indexer_data *d)
{
    free(d->q);
    free(d->k);
    free(d->scales);
    free(d->weights);
    free(d->out);
    free(d->starts);
    free(d->ends);
    free(d->table);
}
