#include "grouped_case.h"

#include "lib/harness.h"
#include "lib/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 128 };

void grouped_case_name(const struct grouped_case *c, char *out, size_t size)
{
    static const char *const kinds[] = {"planes", "counts", "offsets"};
    static const char *const rows[] = {"", ", few rows", ", all rows", ", rows out of bounds"};
    snprintf(out, size, "%d %s of %d x %d x %d, %s, %s%s%s, %s", c->groups, kinds[c->kind], c->m,
             c->n, c->k, hewn_dtype_name(c->in), hewn_dtype_name(c->out), rows[c->rows],
             c->spread ? ", spread" : "", c->variant ? c->variant : "chosen");
    if (c->a_rows) snprintf(out + strlen(out), size - strlen(out), ", by number of %d", c->a_rows);
    if (c->scales) snprintf(out + strlen(out), size - strlen(out), ", scales of columns");
    if (c->align) snprintf(out + strlen(out), size - strlen(out), ", align %d", c->align);
    if (c->expected_m)
        snprintf(out + strlen(out), size - strlen(out), ", expected %d", c->expected_m);
    if (c->act) snprintf(out + strlen(out), size - strlen(out), ", SwiGLU");
}

static int clamp(int x, int most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

void grouped_range(const struct grouped_data *d, int group, int *first, int *end)
{
    const int64_t align = d->c.align ? d->c.align : 1;
    *first = 0, *end = d->c.m;
    if (d->c.kind == HEWN_GROUPED_COUNTS) *end = clamp(d->rows[group], d->c.m);
    if (d->c.kind != HEWN_GROUPED_OFFSETS) return;
    int64_t begin = (clamp(d->rows[group], d->c.m) + align - 1) / align * align;
    *end = clamp(d->rows[group + 1], d->c.m);
    if (begin > *end) begin = *end;
    *first = (int)begin;
}

int grouped_row_of_a(const struct grouped_data *d, int plane, int row, int *a_plane)
{
    *a_plane = d->c.a_rows ? 0 : plane;
    if (!d->c.a_rows) return row;
    int at = d->index[(int64_t)plane * d->c.m + row];
    return at >= 0 && at < d->c.a_rows ? at : -1;
}

static int64_t scale_b_at(const struct grouped_data *d, int group, int column, int block)
{
    const hewn_grouped_desc *x = &d->desc;
    const int64_t inside =
        d->c.scales ? block * x->scale_b_n + column : column / BLOCK * x->scale_b_n + block;
    return group * x->scale_b_plane + inside;
}

float grouped_scale_b(const struct grouped_data *d, int group, int column, int block)
{
    return d->scale_b[scale_b_at(d, group, column, block)];
}

/* ---- shapes -- */

static int64_t up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

static int rows_of_b(const struct grouped_case *c)
{
    return c->act == HEWN_ACT_SWIGLU ? 2 * c->n : c->n;
}

static void describe(struct grouped_data *d)
{
    const struct grouped_case *c = &d->c;
    hewn_grouped_desc *x = &d->desc;
    const int64_t extra = 16 * c->spread;
    d->planes = c->kind == HEWN_GROUPED_OFFSETS ? 1 : c->groups;
    d->element = hewn_dtype_size(c->in);
    d->block = c->in == HEWN_E4M3 ? BLOCK : c->k;
    d->blocks = (c->k + d->block - 1) / d->block;
    d->blocks_n = (c->n + BLOCK - 1) / BLOCK;
    *x = (hewn_grouped_desc){.struct_size = sizeof *x,
                             .groups = c->groups,
                             .m = c->m,
                             .n = c->n,
                             .k = c->k,
                             .align = c->align,
                             .variant = c->variant,
                             .in = c->in,
                             .out = c->out,
                             .kind = c->kind,
                             .scales = c->scales,
                             .act = c->act,
                             .a_rows = c->a_rows,
                             .expected_m = c->expected_m};
    const int64_t a_rows = c->a_rows ? c->a_rows : c->m, a_planes = c->a_rows ? 1 : d->planes;
    x->lda = up(c->k, 16) + extra;
    x->ldb = up(c->k, 16) + 2 * extra;
    x->ldd = up(c->n, 8) + extra;
    x->stride_a = a_rows * x->lda + extra;
    x->stride_b = rows_of_b(c) * x->ldb + extra;
    x->stride_d = c->m * x->ldd + extra;
    x->scale_a_k = up(a_rows, 4) + (c->spread ? 8 : 0);
    x->scale_a_plane = x->scale_a_k * d->blocks + (c->spread ? 4 : 0);
    x->scale_b_n = d->blocks + (c->spread ? 3 : 0);
    x->scale_b_plane = x->scale_b_n * d->blocks_n + (c->spread ? 1 : 0);
    if (c->scales) {
        x->scale_b_n = up(c->n, 4) + (c->spread ? 8 : 0);
        x->scale_b_plane = x->scale_b_n * d->blocks + (c->spread ? 4 : 0);
    }
    d->a_bytes = (size_t)(x->stride_a * a_planes) * d->element;
    d->b_bytes = (size_t)(x->stride_b * c->groups) * d->element;
    d->d_bytes = (size_t)(x->stride_d * d->planes) * hewn_dtype_size(c->out);
    d->scale_a_count = (size_t)(x->scale_a_plane * a_planes);
    d->index_count = (size_t)c->m * (size_t)d->planes;
    d->scale_b_count = (size_t)(x->scale_b_plane * c->groups);
    d->row_count = (size_t)c->groups + (c->kind == HEWN_GROUPED_OFFSETS);
}

/* ---- contents -- */

static int some_rows(const struct grouped_data *d, int i, struct rng *r)
{
    const uint32_t m = (uint32_t)d->c.m;
    if (d->c.rows == ROWS_ALL) return d->c.m;
    if (d->c.rows == ROWS_WRONG && i % 3 == 0) return i % 2 ? INT32_MIN + 5 : d->c.m + 77;
    if (d->c.rows == ROWS_FEW) return i % 3 ? 0 : (int)rng_below(r, m < 20 ? m + 1 : 20);
    return i % 5 == 1 ? 0 : (int)rng_below(r, m + 1);
}

static int compare(const void *x, const void *y)
{
    const int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    return (a > b) - (a < b);
}

/* Offsets ascend, so that groups do not overlap; where they break the rules, their ends do. */
static void fill_rows(struct grouped_data *d, struct rng *r)
{
    const struct grouped_case *c = &d->c;
    const int align = c->align ? c->align : 1;
    for (size_t i = 0; i < d->row_count; i++) d->rows[i] = some_rows(d, (int)i, r);
    if (c->kind != HEWN_GROUPED_OFFSETS) return;
    for (size_t i = 0; i < d->row_count; i++)
        if (c->rows == ROWS_FEW) d->rows[i] = (int32_t)rng_below(r, (uint32_t)c->m + 1) / 8 * 8;
    qsort(d->rows, d->row_count, sizeof *d->rows, compare);
    if (c->rows != ROWS_WRONG) d->rows[0] = d->rows[0] / align * align;
    if (c->rows == ROWS_ALL)
        for (size_t i = 0; i < d->row_count; i++)
            d->rows[i] = (int32_t)((int64_t)c->m * (int64_t)i / c->groups);
}

/* Any rows of A, some more than once. What belongs to no group is far outside. */
static void fill_index(struct grouped_data *d, struct rng *r)
{
    if (!d->c.a_rows) return;
    for (size_t i = 0; i < d->index_count; i++) d->index[i] = INT32_MAX;
    for (int g = 0; g < d->c.groups; g++) {
        int first, end, plane = d->planes > 1 ? g : 0;
        grouped_range(d, g, &first, &end);
        for (int i = first; i < end; i++) {
            int32_t row = (int32_t)rng_below(r, (uint32_t)d->c.a_rows);
            if (d->c.rows == ROWS_WRONG && i % 7 == 3) row = i % 2 ? -1 - i : d->c.a_rows + i;
            d->index[(int64_t)plane * d->c.m + i] = row;
        }
    }
}

static void fill_row(const struct grouped_data *d, unsigned char *to, int64_t at, struct rng *r)
{
    const struct grouped_case *c = &d->c;
    to += (size_t)at * d->element;
    for (int i = 0; i < c->k; i++, to += d->element) {
        double x = c->exact ? (int)rng_below(r, 5) - 2 : 2 * (double)(rng_unit(r) + rng_unit(r));
        number_store(c->in, x, to);
    }
}

static float some_scale(const struct grouped_case *c, struct rng *r)
{
    if (c->exact) return rng_below(r, 2) ? 0.5F : 2;
    return 0.01F + 0.5F * (1 + rng_unit(r));
}

/* Everything that belongs to no group is NaN. */
static void fill(struct grouped_data *d, struct rng *r)
{
    const struct grouped_case *c = &d->c;
    const hewn_grouped_desc *x = &d->desc;
    memset(d->a, 0xFF, d->a_bytes);
    memset(d->b, 0xFF, d->b_bytes);
    memset(d->d, GROUPED_POISON, d->d_bytes);
    memset(d->scale_a, 0xFF, d->scale_a_count * 4);
    memset(d->scale_b, 0xFF, d->scale_b_count * 4);
    for (int g = 0; g < c->groups; g++) {
        int first, end, plane = d->planes > 1 ? g : 0;
        grouped_range(d, g, &first, &end);
        for (int i = first; i < end; i++) {
            int a_plane, row = grouped_row_of_a(d, plane, i, &a_plane);
            if (row < 0) continue;
            fill_row(d, d->a, a_plane * x->stride_a + row * x->lda, r);
            for (int b = 0; b < d->blocks; b++)
                d->scale_a[a_plane * x->scale_a_plane + b * x->scale_a_k + row] = some_scale(c, r);
        }
        for (int j = 0; j < rows_of_b(c); j++) fill_row(d, d->b, g * x->stride_b + j * x->ldb, r);
        for (int j = 0; j < c->n; j += c->scales ? 1 : BLOCK)
            for (int b = 0; b < d->blocks; b++)
                d->scale_b[scale_b_at(d, g, j, b)] = some_scale(c, r);
    }
}

bool grouped_data_new(struct grouped_data *d, const struct grouped_case *c)
{
    struct rng r = {c->seed ^ test_seed()};
    memset(d, 0, sizeof *d);
    d->c = *c;
    describe(d);
    d->a = malloc(d->a_bytes);
    d->b = malloc(d->b_bytes);
    d->d = malloc(d->d_bytes);
    d->scale_a = malloc(d->scale_a_count * sizeof *d->scale_a);
    d->scale_b = malloc(d->scale_b_count * sizeof *d->scale_b);
    d->rows = calloc(d->row_count, sizeof *d->rows);
    d->index = calloc(d->index_count, sizeof *d->index);
    if (!d->a || !d->b || !d->d || !d->scale_a || !d->scale_b || !d->rows || !d->index)
        return false;
    fill_rows(d, &r);
    fill_index(d, &r);
    fill(d, &r);
    return true;
}

void grouped_data_free(struct grouped_data *d)
{
    free(d->a);
    free(d->b);
    free(d->d);
    free(d->scale_a);
    free(d->scale_b);
    free(d->rows);
    free(d->index);
}
