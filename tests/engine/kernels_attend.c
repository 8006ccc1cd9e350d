/*
 * engine_attend against float64: O of all rows, and the new keys in a pool of pages whose other keys must keep their
 * bits. Idle rows, rows behind the table and pages outside the pool are among the cases, and launches behind one another on
 * the same counters.
 */
#include "kernels.h"

#include <math.h>
#include <string.h>

struct attend_case {
    const char *name;
    int rows, kv_heads, group, dim;
    int page_size, width, columns;
    int keys; /* of a row, at most; 0: as its table holds */
    bool by_head, normed, damaged;
};

struct data {
    struct array qkv, positions, o, workspace, counters;
    struct array k_before, v_before;
    struct cache cache;
};

enum { LAUNCHES = 2 };

static void fill_rows(const struct attend_case *c, struct data *d, struct rng *r)
{
    const int most = c->keys ? c->keys : c->page_size * c->width;
    for (int i = 0; i < c->rows; i++) {
        /* The first row is the longest there may be. */
        i32(&d->positions)[i] = i ? (int)rng_below(r, (uint32_t)most) : most - 1;
        if (!c->damaged) continue;
        if (i % 5 == 2) i32(&d->positions)[i] = -1 - i;
        if (i % 5 == 3) i32(&d->positions)[i] = c->page_size * c->width + (int)rng_below(r, 3);
        if (i % 5 == 4) i32(&d->positions)[i] = INT32_MAX;
    }
}

static bool data_new(const struct attend_case *c, struct data *d, struct rng *r)
{
    const size_t row = ((size_t)c->group + 2) * (size_t)c->kv_heads * (size_t)c->dim;
    struct cache_shape shape = {.dim = c->dim,
                                .kv_heads = c->kv_heads,
                                .page_size = c->page_size,
                                .sequences = c->rows,
                                .width = c->width,
                                .pages = c->rows * c->width * 5 / 4 + 1,
                                .by_head = c->by_head,
                                .normed = c->normed,
                                .damaged = c->damaged};
    while (shape.pages % 5 == 0) shape.pages++;
    memset(d, 0, sizeof *d);
    bool ready = cache_new(&d->cache, &shape, r);
    ready = array_new(&d->qkv, 2 * row * (size_t)c->rows) && ready;
    ready = array_new(&d->positions, 4 * (size_t)c->rows) && ready;
    ready = array_new(&d->k_before, d->cache.k.size) && ready;
    ready = array_new(&d->v_before, d->cache.k.size) && ready;
    ready = array_new(&d->o, 2 * (size_t)(c->rows * c->kv_heads * c->group * c->dim)) && ready;
    ready =
        array_new(&d->workspace, engine_attend_workspace(c->columns, c->kv_heads, c->dim)) && ready;
    ready = array_new(&d->counters, 4 * (size_t)(c->rows * c->kv_heads)) && ready;
    if (!ready) return false;
    array_random(&d->qkv, r, 3);
    array_random(&d->cache.k, r, 2);
    array_random(&d->cache.v, r, 2);
    memset(d->counters.host, 0, d->counters.size);
    fill_rows(c, d, r);
    return true;
}

static void data_free(struct bench *b, struct data *d)
{
    struct array *all[] = {&d->qkv,      &d->positions, &d->o,       &d->workspace,
                           &d->counters, &d->k_before,  &d->v_before};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) array_free(b, all[i]);
    cache_free(b, &d->cache);
}

/* ---- the judge -- */

static int keys_of(const struct data *d, int r)
{
    const int position = i32(&d->positions)[r];
    return cache_has(&d->cache, position) ? position + 1 : 0;
}

/* The new key and value of a row and head, which then count as what was there before. */
static void judge_new(const struct attend_case *c, struct data *d, int r, int head)
{
    const int keys = keys_of(d, r);
    const int64_t place = keys ? cache_place(&d->cache, r, keys - 1) : -1;
    const int64_t row = (int64_t)(c->group + 2) * c->kv_heads * c->dim;
    const uint16_t *k = bf16(&d->qkv) + r * row + (c->kv_heads * c->group + head) * c->dim;
    const uint16_t *v = k + c->kv_heads * c->dim;
    double want[128], slack[128];
    if (place < 0) return;
    const int64_t at = place + head * d->cache.head;
    cache_turn(&d->cache, keys - 1, k, &d->cache.k_norm, want, slack);
    for (int j = 0; j < c->dim; j++)
        if (!near_bf16(bf16(&d->cache.k)[at + j], want[j], slack[j])) {
            CHECK(false, "row %d head %d: new key [%d]: want %g got %g", r, head, j, want[j],
                  bf16_to_double(bf16(&d->cache.k)[at + j]));
            break;
        }
    CHECK(memcmp(v, bf16(&d->cache.v) + at, 2 * (size_t)c->dim) == 0, "row %d head %d: V", r, head);
    memcpy(bf16(&d->k_before) + at, bf16(&d->cache.k) + at, 2 * (size_t)c->dim);
    memcpy(bf16(&d->v_before) + at, bf16(&d->cache.v) + at, 2 * (size_t)c->dim);
}

/* A head of O. P is rounded to bf16 and Q, of which a normed or close element may be rounded to the other side:
 * that moves a score by a unit in the last place of q times k. */
static void judge_head(const struct attend_case *c, const struct data *d, int r, int head)
{
    const int64_t row = (int64_t)(c->group + 2) * c->kv_heads * c->dim;
    const int keys = keys_of(d, r);
    const int64_t at = (int64_t)(head / c->group) * d->cache.head;
    const uint16_t *got = bf16(&d->o) + (int64_t)(r * c->kv_heads * c->group + head) * c->dim;
    double q[128] = {0}, slack[128], o[128] = {0}, size[128] = {0}, sum = 0, top = -INFINITY;
    double off = 0;
    static double score[8192];
    const double scale = 1 / sqrt((double)c->dim);
    if (keys)
        cache_turn(&d->cache, keys - 1, bf16(&d->qkv) + r * row + head * c->dim, &d->cache.q_norm,
                   q, slack);
    for (int i = 0; i < keys; i++) {
        const int64_t place = cache_place(&d->cache, r, i);
        double x = 0, moved = 0;
        for (int j = 0; place >= 0 && j < c->dim; j++) {
            const double rounded = bf16_to_double(double_to_bf16(q[j]));
            const double k = bf16_to_double(bf16(&d->cache.k)[place + at + j]);
            x += rounded * k;
            /* Rounded to the other side only where half a unit is near. */
            if (!near_bf16(double_to_bf16(q[j]), q[j], -2 * slack[j]))
                moved += fabs(rounded * k) * 0x1p-7;
            moved += fabs(rounded * k) * 0x1p-20;
        }
        score[i] = x * scale;
        if (moved * scale > off) off = moved * scale;
        if (score[i] > top) top = score[i];
    }
    for (int i = 0; i < keys; i++) {
        const int64_t place = cache_place(&d->cache, r, i);
        const double p = exp(score[i] - top);
        sum += p;
        for (int j = 0; place >= 0 && j < c->dim; j++) {
            const double v = bf16_to_double(bf16(&d->cache.v)[place + at + j]);
            o[j] += p * v;
            size[j] += p * fabs(v);
        }
    }
    for (int j = 0; j < c->dim; j++) {
        const double want = keys ? o[j] / sum : 0;
        const double may = keys ? size[j] / sum * (0x1p-8 + 2 * off) : 0;
        if (near_bf16(got[j], want, may)) continue;
        CHECK(false, "row %d head %d [%d] of %d keys: want %g got %g, slack %g", r, head, j, keys,
              want, bf16_to_double(got[j]), may);
        return;
    }
}

static void judge(const struct attend_case *c, struct data *d)
{
    for (int r = 0; r < c->rows; r++)
        for (int h = 0; h < c->kv_heads; h++) judge_new(c, d, r, h);
    CHECK(memcmp(d->cache.k.host, d->k_before.host, d->cache.k.size) == 0,
          "another key of K was written");
    CHECK(memcmp(d->cache.v.host, d->v_before.host, d->cache.v.size) == 0,
          "another key of V was written");
    for (int r = 0; r < c->rows; r++)
        for (int h = 0; h < c->kv_heads * c->group; h++) judge_head(c, d, r, h);
    for (size_t i = 0; i < d->counters.size / 4; i++)
        CHECK(i32(&d->counters)[i] == 0, "counter %zu is %d", i, i32(&d->counters)[i]);
}

static void run_case(struct bench *b, const struct attend_case *c, uint64_t seed)
{
    struct rng r = {seed ^ test_seed()};
    struct data d;
    hewn_error err = {0};
    bool ready = data_new(c, &d, &r);
    CHECK(ready, "no memory for the case");
    if (ready) {
        memcpy(d.k_before.host, d.cache.k.host, d.cache.k.size);
        memcpy(d.v_before.host, d.cache.v.host, d.cache.v.size);
        const struct engine_attend a = {
            .cache = cache_up(b, &d.cache),
            .qkv = array_up(b, &d.qkv),
            .positions = array_up(b, &d.positions),
            .o = array_up(b, &d.o),
            .workspace = array_up(b, &d.workspace),
            .counters = array_up(b, &d.counters),
            .rows = c->rows,
            .q_heads = c->kv_heads * c->group,
            .kv_heads = c->kv_heads,
            .dim = c->dim,
            .columns = c->columns,
            .scale = 1 / sqrt((double)c->dim),
        };
        ready = true;
        for (int i = 0; ready && i < LAUNCHES; i++) /* the second on what the first has left */
            ready = launched(b, engine_attend(&b->kernels, &a, NULL, &err), &err);
        if (ready) {
            array_down(b, &d.o, "O");
            array_down(b, &d.cache.k, "K");
            array_down(b, &d.cache.v, "V");
            array_down(b, &d.workspace, "the workspace");
            array_down(b, &d.counters, "the counters");
            judge(c, &d);
        }
    }
    data_free(b, &d);
}

static struct attend_case random_case(struct rng *r)
{
    struct attend_case c = {.name = "random", .dim = rng_below(r, 2) ? 128 : 64};
    c.kv_heads = 1 + (int)rng_below(r, 4);
    c.group = 1 + (int)rng_below(r, 8);
    c.page_size = 16 * (1 + (int)rng_below(r, 6));
    c.width = 1 + (int)rng_below(r, 9);
    c.rows = 1 + (int)rng_below(r, 6);
    c.columns = c.rows + (int)rng_below(r, 12);
    c.by_head = rng_below(r, 2);
    c.normed = rng_below(r, 2);
    c.damaged = rng_below(r, 3) == 0;
    return c;
}

void test_attend(struct bench *b, int random)
{
    static const struct attend_case cases[] = {
        {"Llama, a column", 1, 2, 4, 128, 64, 2, 1, 0, false, false, false},
        {"a row's parts", 1, 2, 4, 128, 64, 9, 6, 0, false, false, false},
        {"its last strip begins", 1, 1, 4, 128, 64, 9, 5, 513, true, false, false},
        {"one key", 1, 2, 1, 128, 16, 1, 3, 1, false, false, false},
        {"heads of 64, 8 of Q", 3, 2, 8, 64, 32, 7, 8, 0, true, true, false},
        {"heads of 64, ring twice round", 1, 1, 4, 64, 64, 24, 1, 0, false, false, false},
        {"more strips than a list of pages", 1, 1, 2, 128, 256, 17, 1, 4200, false, false, false},
        {"norms of heads, 7 of Q", 2, 2, 7, 128, 48, 4, 5, 0, false, true, false},
        {"as many rows as columns", 5, 1, 4, 128, 16, 4, 5, 0, false, false, false},
        {"many rows", 32, 1, 2, 64, 16, 3, 40, 0, false, false, false},
        {"a long row", 4, 1, 4, 128, 64, 12, 9, 0, true, false, false},
        {"rows that are left alone", 10, 2, 4, 128, 32, 8, 14, 0, false, false, true},
        {"parts enough for lanes twice", 1, 1, 4, 128, 64, 70, 36, 0, false, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (test_case("attend: %s, %d rows, dim %d", cases[i].name, cases[i].rows, cases[i].dim))
            run_case(b, &cases[i], 300 + i);
    for (int i = 0; i < random; i++) {
        struct rng r = {test_seed() + 0x540000 + (uint64_t)i};
        const struct attend_case c = random_case(&r);
        if (test_case("attend: random %d, %d rows, dim %d", i, c.rows, c.dim))
            run_case(b, &c, r.state);
    }
}
