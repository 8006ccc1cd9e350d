/*
 * engine_rope against float64: Q where it lies, K and V in a pool of pages, whose other keys must keep their poison.
 * Rows of all kinds are among the cases: idle, of no sequence, behind the table, with a page outside the pool.
 */
#include "kernels.h"

#include <math.h>
#include <string.h>

struct rope_case {
    const char *name;
    int rows, q_heads, kv_heads, dim;
    int page_size, width, pages; /* width 0: no table */
    bool by_head;                /* a page's heads lie behind one another: BHSD, else BSHD */
    bool sequences, normed;
    bool damaged; /* rows that are left alone */
};

enum { SEQUENCES = 5 };

struct data {
    struct array qkv, positions, sequences;
    struct array before; /* qkv */
    struct cache cache;
};

/* Each row of its own sequence and position, so that no two write one key: the table names pages once. */
static void fill_rows(const struct rope_case *c, struct data *d, struct rng *r)
{
    const int width = c->width ? c->width : 1, most = c->page_size * width;
    for (int i = 0; i < c->rows; i++) {
        const int sequence = c->sequences ? i % SEQUENCES : i;
        i32(&d->sequences)[i] = sequence;
        i32(&d->positions)[i] = (i / SEQUENCES * 7 + (int)rng_below(r, 7)) % most;
        if (!c->damaged) continue;
        if (i % 7 == 3) i32(&d->positions)[i] = -1 - i;
        if (i % 7 == 4) i32(&d->positions)[i] = most + (int)rng_below(r, 3); /* behind the table */
        if (i % 7 == 5) i32(&d->positions)[i] = INT32_MAX;
        if (i % 7 == 6 && c->sequences) i32(&d->sequences)[i] = i % 2 ? -1 : SEQUENCES;
    }
}

static bool data_new(const struct rope_case *c, struct data *d, struct rng *r)
{
    const size_t row = 2 * (size_t)((c->q_heads + 2 * c->kv_heads) * c->dim);
    const struct cache_shape shape = {.dim = c->dim,
                                      .kv_heads = c->kv_heads,
                                      .page_size = c->page_size,
                                      .sequences = SEQUENCES,
                                      .width = c->width,
                                      .pages = c->pages,
                                      .by_head = c->by_head,
                                      .normed = c->normed,
                                      .damaged = c->damaged};
    memset(d, 0, sizeof *d);
    bool ready = cache_new(&d->cache, &shape, r);
    ready = array_new(&d->qkv, row * (size_t)c->rows) && ready;
    ready = array_new(&d->before, d->qkv.size) && ready;
    ready = array_new(&d->positions, 4 * (size_t)c->rows) && ready;
    ready = array_new(&d->sequences, 4 * (size_t)c->rows) && ready;
    if (!ready) return false;
    array_random(&d->qkv, r, 3);
    memcpy(d->before.host, d->qkv.host, d->qkv.size);
    fill_rows(c, d, r);
    return true;
}

static void data_free(struct bench *b, struct data *d)
{
    struct array *all[] = {&d->qkv, &d->positions, &d->sequences, &d->before};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) array_free(b, all[i]);
    cache_free(b, &d->cache);
}

/* ---- the judge -- */

/* The place of a row's key in the pools, or -1; *alone: the row is left alone. */
static int64_t place_of(const struct rope_case *c, const struct data *d, int r, bool *alone)
{
    const int position = i32(&d->positions)[r];
    const int sequence = c->sequences ? i32(&d->sequences)[r] : r;
    *alone = !cache_has(&d->cache, position) || sequence < 0 || sequence >= SEQUENCES;
    return *alone ? -1 : cache_place(&d->cache, sequence, position);
}

static void judge_head(const struct rope_case *c, const struct data *d, int r, int head,
                       int64_t place, bool alone, struct array *k_left, struct array *v_left)
{
    const int heads = c->q_heads + 2 * c->kv_heads, of_k = head - c->q_heads;
    const int64_t at = ((int64_t)r * heads + head) * c->dim;
    const uint16_t *from = bf16(&d->before) + at, *got = bf16(&d->qkv) + at;
    const bool is_q = head < c->q_heads, is_v = of_k >= c->kv_heads;
    double want[256], slack[256];
    int wrong = 0;
    if (!is_q || alone)
        CHECK(memcmp(from, got, 2 * (size_t)c->dim) == 0, "row %d: head %d was written", r, head);
    if (alone || (!is_q && place < 0)) return;
    if (!is_q) {
        const int64_t to = place + (is_v ? of_k - c->kv_heads : of_k) * d->cache.head;
        struct array *left = is_v ? v_left : k_left;
        got = bf16(is_v ? &d->cache.v : &d->cache.k) + to;
        memset(bf16(left) + to, POISON, 2 * (size_t)c->dim);
    }
    if (is_v) {
        CHECK(memcmp(from, got, 2 * (size_t)c->dim) == 0, "row %d: head %d of V differs", r, head);
        return;
    }
    cache_turn(&d->cache, i32(&d->positions)[r], from, is_q ? &d->cache.q_norm : &d->cache.k_norm,
               want, slack);
    for (int j = 0; j < c->dim && wrong < 2; j++)
        if (!near_bf16(got[j], want[j], slack[j]))
            CHECK(++wrong == 0, "row %d head %d [%d]: want %g got %g", r, head, j, want[j],
                  bf16_to_double(got[j]));
}

static void judge(struct bench *b, const struct rope_case *c, struct data *d)
{
    struct array left[2]; /* the pools without what was expected there */
    bool ready = array_new(&left[0], d->cache.k.size), alone;
    ready = array_new(&left[1], d->cache.v.size) && ready;
    CHECK(ready, "no memory for the judge");
    if (ready) {
        memcpy(left[0].host, d->cache.k.host, d->cache.k.size);
        memcpy(left[1].host, d->cache.v.host, d->cache.v.size);
        for (int r = 0; r < c->rows; r++) {
            const int64_t place = place_of(c, d, r, &alone);
            for (int h = 0; h < c->q_heads + 2 * c->kv_heads; h++)
                judge_head(c, d, r, h, place, alone, &left[0], &left[1]);
        }
        for (int i = 0; i < 2; i++)
            for (size_t j = 0; j < left[i].size / 2; j++)
                if (bf16(&left[i])[j] != 0x5A5A) {
                    CHECK(false, "%s: element %zu was written", i ? "V" : "K", j);
                    break;
                }
    }
    array_free(b, &left[0]);
    array_free(b, &left[1]);
}

static void run_case(struct bench *b, const struct rope_case *c, uint64_t seed)
{
    struct rng r = {seed ^ test_seed()};
    struct data d;
    hewn_error err = {0};
    bool ready = data_new(c, &d, &r);
    CHECK(ready, "no memory for the case");
    if (ready) {
        const struct engine_rope a = {
            .cache = cache_up(b, &d.cache),
            .qkv = array_up(b, &d.qkv),
            .positions = array_up(b, &d.positions),
            .sequences = c->sequences ? array_up(b, &d.sequences) : 0,
            .rows = c->rows,
            .q_heads = c->q_heads,
            .kv_heads = c->kv_heads,
            .dim = c->dim,
            .sequences_most = SEQUENCES,
        };
        if (launched(b, engine_rope(&b->kernels, &a, NULL, &err), &err)) {
            array_down(b, &d.qkv, "qkv");
            array_down(b, &d.cache.k, "K");
            array_down(b, &d.cache.v, "V");
            judge(b, c, &d);
        }
    }
    data_free(b, &d);
}

static struct rope_case random_case(struct rng *r)
{
    struct rope_case c = {.name = "random", .dim = 8 * (1 + (int)rng_below(r, 32))};
    c.kv_heads = 1 + (int)rng_below(r, 4);
    c.q_heads = c.kv_heads * (1 + (int)rng_below(r, 4));
    c.width = (int)rng_below(r, 6);
    c.page_size = c.width ? 1 + (int)rng_below(r, 20) : 64;
    c.sequences = rng_below(r, 2);
    c.rows = 1 + (int)rng_below(r, SEQUENCES);
    c.pages = c.width ? 3 * SEQUENCES * c.width + 1 : SEQUENCES;
    c.by_head = rng_below(r, 2);
    c.normed = rng_below(r, 2);
    c.damaged = rng_below(r, 3) == 0;
    return c;
}

void test_rope(struct bench *b, int random)
{
    static const struct rope_case cases[] = {
        {"Llama, pages", 5, 8, 2, 128, 16, 4, 61, false, true, false, false},
        {"several rows of a sequence", 12, 4, 4, 64, 8, 6, 91, true, true, false, false},
        {"every row its sequence, no table", 5, 3, 1, 96, 64, 0, 5, false, false, false, false},
        {"norms of heads", 4, 4, 2, 128, 16, 3, 46, true, true, true, false},
        {"norms of 12 lanes", 3, 5, 1, 96, 4, 3, 46, false, false, true, false},
        {"least heads", 5, 3, 2, 8, 4, 3, 46, false, true, true, false},
        {"largest heads", 3, 2, 1, 256, 16, 2, 31, false, true, true, false},
        {"Q alone", 5, 3, 0, 64, 8, 3, 46, true, true, false, false},
        {"K and V alone", 5, 0, 2, 64, 8, 3, 46, true, true, true, false},
        {"rows that are left alone", 14, 4, 2, 40, 8, 4, 61, true, true, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (test_case("rope: %s, %d rows, dim %d", cases[i].name, cases[i].rows, cases[i].dim))
            run_case(b, &cases[i], 200 + i);
    for (int i = 0; i < random; i++) {
        struct rng r = {test_seed() + 0x520000 + (uint64_t)i};
        const struct rope_case c = random_case(&r);
        if (test_case("rope: random %d, %d rows, dim %d", i, c.rows, c.dim))
            run_case(b, &c, r.state);
    }
}
