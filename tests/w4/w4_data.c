/* Data of the cases, by a seed; the plainest reading of the caller's weights. */
#include "w4_case.h"

#include "lib/harness.h"
#include "lib/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {[HEWN_W4_INT4] = "int4", [HEWN_W4_UINT4] = "uint4"};

void w4_case_name(const struct w4_case *c, char *out, size_t size)
{
    (void)snprintf(out, size, "m=%d n=%d k=%d %s x %s group=%d -> %s parts=%u tile=%u%s%s", c->m,
                   c->n, c->k, hewn_dtype_name(c->in), formats[c->format], c->group,
                   hewn_dtype_name(c->out), c->parts, c->tile, c->spread ? " spread" : "",
                   c->askew ? " askew" : "");
}

static void fill_x(struct w4_data *d, struct rng *r)
{
    const struct w4_case *c = &d->c;
    memset(d->x, 0xFF, d->x_bytes); /* gaps are NaN */
    for (int i = 0; i < c->m; i++)
        for (int k = 0; k < c->k; k++) {
            const double value = c->exact ? (double)rng_below(r, 7) - 3 : (double)rng_unit(r);
            number_store(c->in, value, d->x + 2 * ((size_t)i * (size_t)d->desc.x_row + (size_t)k));
        }
}

static void fill_weights(struct w4_data *d, struct rng *r, size_t value_bytes, size_t entries)
{
    for (size_t i = 0; i < value_bytes; i++) d->values[i] = (unsigned char)rng_next(r);
    for (size_t i = 0; i < entries; i++) {
        const double scale = d->c.exact ? ldexp(1, (int)rng_below(r, 4) - 2)
                                        : (double)rng_unit(r) * ldexp(1, -(int)rng_below(r, 6));
        number_store(d->c.in, scale, d->scales + 2 * i);
        d->zeros[i] = (unsigned char)rng_below(r, 16);
    }
}

bool w4_data_new(struct w4_data *d, const struct w4_case *c)
{
    struct rng r = {c->seed};
    const int more = c->spread ? 1 : 0, k8 = (c->k + 7) / 8 * 8;
    const size_t element = hewn_dtype_size(c->out);
    hewn_error err = {0};
    memset(d, 0, sizeof *d);
    d->c = *c;
    d->groups = c->group ? (c->k + c->group - 1) / c->group : 1;
    d->desc = (hewn_w4_desc){.struct_size = sizeof d->desc,
                             .m = c->m,
                             .n = c->n,
                             .k = c->k,
                             .group = c->group,
                             .x_row = k8 + 16 * more,
                             .d_row = c->n + 5 * more,
                             .in = c->in,
                             .out = c->out,
                             .format = c->format,
                             .parts = c->parts,
                             .tile = c->tile};
    d->weights = (hewn_w4_weights){.struct_size = sizeof d->weights,
                                   .value_row = (c->k + 1) / 2 + 3 * more,
                                   .scale_row = d->groups + 2 * more,
                                   .zero_row = d->groups + 2 * more};
    const size_t value_bytes = (size_t)c->n * (size_t)d->weights.value_row;
    const size_t entries = (size_t)c->n * (size_t)d->weights.scale_row;
    int status = hewn_w4_packed_bytes(&d->desc, &d->packed_bytes, &err);
    CHECK(status == HEWN_OK, "packed_bytes: %s", err.message);
    d->x_bytes = (size_t)c->m * (size_t)d->desc.x_row * 2;
    d->d_bytes = (size_t)c->m * (size_t)d->desc.d_row * element;
    d->x = malloc(d->x_bytes);
    d->values = malloc(value_bytes);
    d->scales = malloc(2 * entries);
    d->zeros = malloc(entries);
    d->packed = malloc(d->packed_bytes + 1);
    d->d = malloc(d->d_bytes);
    if (!d->x || !d->values || !d->scales || !d->zeros || !d->packed || !d->d) return false;
    fill_x(d, &r);
    fill_weights(d, &r, value_bytes, entries);
    d->weights.values = d->values;
    d->weights.scales = d->scales;
    d->weights.zeros = c->format == HEWN_W4_UINT4 ? d->zeros : NULL;
    d->packed[d->packed_bytes] = W4_POISON;
    status = hewn_w4_pack(&d->desc, &d->weights, d->packed, d->packed_bytes, &err);
    CHECK(status == HEWN_OK, "pack: %s", err.message);
    CHECK(d->packed[d->packed_bytes] == W4_POISON, "pack writes behind its bytes");
    memset(d->d, W4_POISON, d->d_bytes);
    return !status;
}

void w4_data_free(struct w4_data *d)
{
    free(d->x);
    free(d->values);
    free(d->scales);
    free(d->zeros);
    free(d->packed);
    free(d->d);
}

double w4_weight(const struct w4_data *d, int j, int k, double *scale)
{
    const size_t row = (size_t)j, group = d->c.group ? (size_t)(k / d->c.group) : 0;
    const unsigned char byte = d->values[row * (size_t)d->weights.value_row + (size_t)k / 2];
    const int bits = k % 2 ? byte >> 4 : byte & 15;
    *scale = number_load(d->c.in, d->scales + 2 * (row * (size_t)d->weights.scale_row + group));
    if (d->c.format == HEWN_W4_UINT4)
        return bits - d->zeros[row * (size_t)d->weights.zero_row + group];
    return bits < 8 ? bits : bits - 16;
}
