#include "scaled_case.h"

#include "lib/harness.h"
#include "lib/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATOM = 512, ATOM_ROWS = 128, ATOM_SCALES = 4 };

void scaled_case_name(const struct scaled_case *c, char *out, size_t size)
{
    static const char *const kinds[] = {"planes", "counts", "offsets"};
    static const char *const scales[] = {
        "no scales", [HEWN_GROUPED_UE8M0_32] = "ue8m0", [HEWN_GROUPED_UE4M3_16] = "ue4m3",
        [HEWN_GROUPED_UE8M0_128] = "ue8m0 of 128"};
    snprintf(out, size, "%d %s of %d x %d x %d, %s x %s, %s%s, %s%s%s%s, %s", c->groups,
             kinds[c->kind], c->m, c->n, c->k, hewn_dtype_name(c->in),
             hewn_dtype_name(c->in_b ? c->in_b : c->in), scales[c->scales],
             c->layout ? " in words" : "", hewn_dtype_name(c->out), c->spread ? ", spread" : "",
             c->alpha ? ", alpha" : "", c->few ? ", few rows" : "",
             c->variant ? c->variant : "chosen");
    if (c->align) snprintf(out + strlen(out), size - strlen(out), ", align %d", c->align);
}

int scaled_vector(const struct scaled_case *c)
{
    return c->scales == HEWN_GROUPED_UE4M3_16 ? 16 : c->scales == HEWN_GROUPED_UE8M0_128 ? 128 : 32;
}

static int clamp(int x, int most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

void scaled_range(const struct scaled_data *d, int group, int *first, int *end)
{
    const int64_t align = d->c.align ? d->c.align : d->c.layout ? 4 : ATOM_ROWS;
    *first = 0, *end = d->c.m;
    if (d->c.kind == HEWN_GROUPED_COUNTS) *end = clamp(d->rows[group], d->c.m);
    if (d->c.kind != HEWN_GROUPED_OFFSETS) return;
    int64_t begin = (clamp(d->rows[group], d->c.m) + align - 1) / align * align;
    *end = clamp(d->rows[group + 1], d->c.m);
    if (begin > *end) begin = *end;
    *first = (int)begin;
}

unsigned char *scaled_scale(const struct scaled_side *s, int plane, int row, int j)
{
    if (s->words)
        return s->scales + plane * s->atom_plane + j / ATOM_SCALES * s->atom_row +
               row * ATOM_SCALES + j % ATOM_SCALES;
    return s->scales + plane * s->atom_plane + row / ATOM_ROWS * s->atom_row +
           j / ATOM_SCALES * ATOM + row % 32 * 16 + row / 32 % 4 * 4 + j % ATOM_SCALES;
}

/* ---- shapes -- */

static int64_t up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

/* Bytes of a row of elements, and elements in so many bytes. */
static int64_t row_bytes(int dtype, int64_t elements)
{
    return dtype == HEWN_E2M1 ? (elements + 1) / 2 : elements * (int64_t)hewn_dtype_size(dtype);
}

static int64_t elements_of(int dtype, int64_t bytes)
{
    return dtype == HEWN_E2M1 ? bytes * 2 : bytes / (int64_t)hewn_dtype_size(dtype);
}

static bool shape_side(struct scaled_side *s, const struct scaled_case *c, int dtype, int rows,
                       int planes)
{
    const int64_t extra = c->spread ? 32 : 0, vectors = up(c->k, scaled_vector(c));
    s->dtype = dtype, s->rows = rows, s->planes = planes;
    s->row = up(row_bytes(dtype, c->k), 32) + extra;
    s->plane = rows * s->row + 2 * extra;
    s->atom_row = up(vectors / scaled_vector(c), ATOM_SCALES) / ATOM_SCALES * ATOM + extra;
    int64_t atom_rows = up(rows, ATOM_ROWS) / ATOM_ROWS;
    s->words = c->layout == HEWN_GROUPED_WORDS;
    if (s->words) {
        atom_rows = up(vectors / scaled_vector(c), ATOM_SCALES) / ATOM_SCALES;
        s->atom_row = up(rows, 4) * ATOM_SCALES + extra;
    }
    s->atom_plane = atom_rows * s->atom_row + 2 * extra;
    s->size = (size_t)(s->plane * planes);
    s->scale_size = (size_t)(s->atom_plane * planes);
    s->bytes = malloc(s->size);
    s->scales = malloc(s->scale_size);
    return s->bytes && s->scales;
}

static bool describe(struct scaled_data *d)
{
    const struct scaled_case *c = &d->c;
    hewn_grouped_desc *x = &d->desc;
    const int in_b = c->in_b ? c->in_b : c->in;
    d->planes = c->kind == HEWN_GROUPED_OFFSETS ? 1 : c->groups;
    const bool ready = shape_side(&d->a, c, c->in, c->m, d->planes);
    if (!shape_side(&d->b, c, in_b, c->n, c->groups) || !ready) return false;
    *x = (hewn_grouped_desc){.struct_size = sizeof *x,
                             .groups = c->groups,
                             .m = c->m,
                             .n = c->n,
                             .k = c->k,
                             .align = c->align,
                             .variant = c->variant,
                             .in = c->in,
                             .in_b = c->in_b,
                             .out = c->out,
                             .kind = c->kind,
                             .scales = c->scales,
                             .scale_layout = c->layout};
    x->lda = elements_of(c->in, d->a.row);
    x->ldb = elements_of(in_b, d->b.row);
    x->stride_a = elements_of(c->in, d->a.plane);
    x->stride_b = elements_of(in_b, d->b.plane);
    x->ldd = up(c->n, 8) + (c->spread ? 16 : 0);
    x->stride_d = c->m * x->ldd + (c->spread ? 16 : 0);
    const int unit = c->layout == HEWN_GROUPED_WORDS ? ATOM_SCALES : 1; /* words, or bytes */
    x->scale_a_k = d->a.atom_row / unit;
    x->scale_a_plane = d->a.atom_plane / unit;
    x->scale_b_n = d->b.atom_row / unit;
    x->scale_b_plane = d->b.atom_plane / unit;
    d->d_bytes = (size_t)(x->stride_d * d->planes) * hewn_dtype_size(c->out);
    d->row_count = (size_t)c->groups + (c->kind == HEWN_GROUPED_OFFSETS);
    return true;
}

/* ---- contents -- */

static int compare(const void *x, const void *y)
{
    const int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    return (a > b) - (a < b);
}

static void fill_rows(struct scaled_data *d, struct rng *r)
{
    const struct scaled_case *c = &d->c;
    for (size_t i = 0; i < d->row_count; i++) {
        d->rows[i] = (int32_t)rng_below(r, (uint32_t)c->m + 1);
        if (c->few) d->rows[i] = i % 3 ? 0 : (int32_t)rng_below(r, (uint32_t)clamp(c->m, 9) + 1);
        if (i % 5 == 4) d->rows[i] = i % 2 ? c->m + 9 : -3; /* clamped */
    }
    if (c->kind == HEWN_GROUPED_OFFSETS) qsort(d->rows, d->row_count, sizeof *d->rows, compare);
    if (c->kind == HEWN_GROUPED_OFFSETS && d->row_count == 2) d->rows[0] = 0;
}

/* An element of a row; e2m1 in the lower half of a byte first. */
static void store(int dtype, unsigned char *row, int i, bool exact, struct rng *r)
{
    if (dtype == HEWN_E2M1) {
        /* exact: up to 2 */
        const unsigned code = rng_below(r, exact ? 5 : 8) | rng_below(r, 2) << 3;
        const int shift = i % 2 * 4;
        row[i / 2] = (unsigned char)((row[i / 2] & ~(0xFU << shift)) | code << shift);
        return;
    }
    const double x = exact ? (int)rng_below(r, 5) - 2 : 4 * ((double)rng_unit(r) + rng_unit(r));
    number_store(dtype, x, row + i * (int)hewn_dtype_size(dtype));
}

/* ue8m0: powers of two; ue4m3: with their fractions; exact: 0.5 to 2, or of ue4m3 to 1.875. */
static unsigned char some_scale(const struct scaled_case *c, struct rng *r)
{
    if (c->scales != HEWN_GROUPED_UE4M3_16)
        return (unsigned char)(c->exact ? 126 + rng_below(r, 3) : 117 + rng_below(r, 20));
    return (unsigned char)(c->exact ? 0x30 + rng_below(r, 16) : 1 + rng_below(r, 0x7E));
}

static void fill_row(const struct scaled_data *d, struct scaled_side *s, int plane, int row,
                     struct rng *r)
{
    unsigned char *at = s->bytes + plane * s->plane + row * s->row;
    const int vectors = (d->c.k + scaled_vector(&d->c) - 1) / scaled_vector(&d->c);
    for (int i = 0; i < d->c.k; i++) store(s->dtype, at, i, d->c.exact, r);
    if (!d->c.scales) return;
    /* those behind k are anything but NaN */
    for (int j = 0; j < (int)up(vectors, ATOM_SCALES); j++)
        *scaled_scale(s, plane, row, j) = j < vectors ? some_scale(&d->c, r) : 0x7E;
}

/* Everything that belongs to no group is NaN. */
static void fill(struct scaled_data *d, struct rng *r)
{
    memset(d->a.bytes, 0xFF, d->a.size);
    memset(d->a.scales, 0xFF, d->a.scale_size);
    memset(d->b.bytes, 0xFF, d->b.size);
    memset(d->b.scales, 0xFF, d->b.scale_size);
    memset(d->d, SCALED_POISON, d->d_bytes);
    for (int g = 0; g < d->c.groups; g++) {
        int first, end, plane = d->planes > 1 ? g : 0;
        d->alpha[g] = d->c.exact ? rng_below(r, 2) ? 0.5F : -2 : 0.1F + rng_unit(r);
        scaled_range(d, g, &first, &end);
        for (int i = first; i < end; i++) fill_row(d, &d->a, plane, i, r);
        for (int j = 0; j < d->c.n; j++) fill_row(d, &d->b, g, j, r);
    }
}

bool scaled_data_new(struct scaled_data *d, const struct scaled_case *c)
{
    struct rng r = {c->seed ^ test_seed()};
    memset(d, 0, sizeof *d);
    d->c = *c;
    if (!describe(d)) return false;
    d->d = malloc(d->d_bytes);
    d->alpha = calloc((size_t)c->groups, sizeof *d->alpha);
    d->rows = calloc(d->row_count, sizeof *d->rows);
    if (!d->d || !d->alpha || !d->rows) return false;
    fill_rows(d, &r);
    fill(d, &r);
    return true;
}

void scaled_data_free(struct scaled_data *d)
{
    free(d->a.bytes);
    free(d->a.scales);
    free(d->b.bytes);
    free(d->b.scales);
    free(d->d);
    free(d->alpha);
    free(d->rows);
}
