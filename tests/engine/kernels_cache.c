/* A paged cache for the tests of engine_rope and engine_attend, and a rotated head in float64. */
#include "kernels.h"

#include <math.h>
#include <string.h>

static void fill_rotation(struct cache *c)
{
    const int dim = c->shape.dim;
    for (int p = 0; p < c->positions; p++)
        for (int j = 0; j < dim / 2; j++) {
            const double angle = p * pow(10000, -2.0 * j / dim);
            f32(&c->rotation)[p * dim + 2 * j] = (float)cos(angle);
            f32(&c->rotation)[p * dim + 2 * j + 1] = (float)sin(angle);
        }
}

bool cache_new(struct cache *c, const struct cache_shape *s, struct rng *r)
{
    const int width = s->width ? s->width : 1, entries = s->sequences * s->width;
    const int key = s->kv_heads * s->dim;
    memset(c, 0, sizeof *c);
    c->shape = *s;
    c->positions = s->page_size * width + (s->damaged ? 3 : 0);
    c->page = (int64_t)s->page_size * key;
    c->token = s->by_head ? s->dim : key;
    c->head = s->by_head ? s->page_size * s->dim : s->dim;
    bool ready = array_new(&c->rotation, 4 * (size_t)(c->positions * s->dim));
    ready = array_new(&c->q_norm, 2 * (size_t)s->dim) && ready;
    ready = array_new(&c->k_norm, 2 * (size_t)s->dim) && ready;
    ready = array_new(&c->k, 2 * (size_t)(c->page * s->pages)) && ready;
    ready = array_new(&c->v, c->k.size) && ready;
    ready = array_new(&c->table, 4 * (size_t)entries) && ready;
    if (!ready) return false;
    array_random(&c->q_norm, r, 2);
    array_random(&c->k_norm, r, 2);
    fill_rotation(c);
    for (int i = 0; i < entries; i++) {
        i32(&c->table)[i] = (int)((int64_t)(i * 5 + 1) % s->pages);
        if (s->damaged && i % 4 == 2) i32(&c->table)[i] = i % 8 == 2 ? -2 : s->pages + i;
    }
    return true;
}

struct engine_cache cache_up(struct bench *b, struct cache *c)
{
    const struct cache_shape *s = &c->shape;
    return (struct engine_cache){
        .rotation = array_up(b, &c->rotation),
        .q_norm = s->normed ? array_up(b, &c->q_norm) : 0,
        .k_norm = s->normed ? array_up(b, &c->k_norm) : 0,
        .k = array_up(b, &c->k),
        .v = array_up(b, &c->v),
        .table = s->width ? array_up(b, &c->table) : 0,
        .positions_most = c->positions,
        .pages = s->pages,
        .page_size = s->page_size,
        .table_width = s->width ? s->width : 1,
        .page = c->page,
        .head = c->head,
        .token = c->token,
        .eps = EPS,
    };
}

void cache_free(struct bench *b, struct cache *c)
{
    struct array *all[] = {&c->rotation, &c->q_norm, &c->k_norm, &c->k, &c->v, &c->table};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) array_free(b, all[i]);
}

bool cache_has(const struct cache *c, int position)
{
    const int width = c->shape.width ? c->shape.width : 1;
    return position >= 0 && position < c->positions && position / c->shape.page_size < width;
}

int64_t cache_place(const struct cache *c, int sequence, int key)
{
    const struct cache_shape *s = &c->shape;
    const int page = s->width ? i32(&c->table)[sequence * s->width + key / s->page_size] : sequence;
    return page < 0 || page >= s->pages ? -1
                                        : page * c->page + (int64_t)(key % s->page_size) * c->token;
}

void cache_turn(const struct cache *c, int position, const uint16_t *from,
                const struct array *weights, double *want, double *slack)
{
    const int dim = c->shape.dim, half = dim / 2;
    const float *turn = f32(&c->rotation) + (int64_t)position * dim;
    double x[256] = {0}, sum = 0, scale = 1;
    for (int j = 0; j < dim; j++) sum += bf16_to_double(from[j]) * bf16_to_double(from[j]);
    if (c->shape.normed) scale = 1 / sqrt(sum / dim + EPS);
    for (int j = 0; j < dim; j++) {
        x[j] = bf16_to_double(from[j]);
        if (c->shape.normed) x[j] *= scale * bf16_to_double(bf16(weights)[j]);
    }
    for (int j = 0; j < half; j++) {
        const double cosine = (double)turn[2 * j], sine = (double)turn[2 * j + 1];
        want[j] = x[j] * cosine - x[j + half] * sine;
        want[j + half] = x[j + half] * cosine + x[j] * sine;
        slack[j] = slack[j + half] = (fabs(x[j]) + fabs(x[j + half])) * 0x1p-20;
    }
}
