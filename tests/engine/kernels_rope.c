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
    struct array qkv, positions, sequences, rotation, q_norm, k_norm, k, v, table;
    struct array before; /* qkv */
    int64_t page, head, token;
};

static int positions_most(const struct rope_case *c)
{
    return c->page_size * (c->width ? c->width : 1) + (c->damaged ? 3 : 0);
}

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
    for (int i = 0; i < SEQUENCES * c->width; i++) {
        i32(&d->table)[i] = (i * 3 + 1) % c->pages; /* 3 and the number of pages have no divisor */
        if (c->damaged && i % 4 == 2) i32(&d->table)[i] = i % 8 == 2 ? -2 : c->pages + i;
    }
}

static bool data_new(const struct rope_case *c, struct data *d, struct rng *r)
{
    const size_t row = 2 * (size_t)((c->q_heads + 2 * c->kv_heads) * c->dim);
    const size_t page = (size_t)c->page_size * (size_t)c->kv_heads * (size_t)c->dim;
    memset(d, 0, sizeof *d);
    bool ready = array_new(&d->qkv, row * (size_t)c->rows);
    ready = array_new(&d->before, d->qkv.size) && ready;
    ready = array_new(&d->positions, 4 * (size_t)c->rows) && ready;
    ready = array_new(&d->sequences, 4 * (size_t)c->rows) && ready;
    ready = array_new(&d->rotation, 4 * (size_t)(positions_most(c) * c->dim)) && ready;
    ready = array_new(&d->q_norm, 2 * (size_t)c->dim) && ready;
    ready = array_new(&d->k_norm, 2 * (size_t)c->dim) && ready;
    ready = array_new(&d->k, 2 * page * (size_t)c->pages) && ready;
    ready = array_new(&d->v, d->k.size) && ready;
    ready = array_new(&d->table, 4 * (size_t)(SEQUENCES * c->width)) && ready;
    if (!ready) return false;
    array_random(&d->qkv, r, 3);
    memcpy(d->before.host, d->qkv.host, d->qkv.size);
    array_random(&d->q_norm, r, 2);
    array_random(&d->k_norm, r, 2);
    for (int p = 0; p < positions_most(c); p++)
        for (int j = 0; j < c->dim / 2; j++) {
            const double angle = p * pow(10000, -2.0 * j / c->dim);
            f32(&d->rotation)[p * c->dim + 2 * j] = (float)cos(angle);
            f32(&d->rotation)[p * c->dim + 2 * j + 1] = (float)sin(angle);
        }
    d->page = (int64_t)page;
    d->token = c->by_head ? c->dim : c->kv_heads * c->dim;
    d->head = c->by_head ? c->page_size * c->dim : c->dim;
    fill_rows(c, d, r);
    return true;
}

static void data_free(struct bench *b, struct data *d)
{
    struct array *all[] = {&d->qkv,    &d->positions, &d->sequences, &d->rotation, &d->q_norm,
                           &d->k_norm, &d->k,         &d->v,         &d->table,    &d->before};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) array_free(b, all[i]);
}

/* ---- the judge -- */

/* The place of a row's key in the pools, or -1; *alone: the row is left alone. */
static int64_t place_of(const struct rope_case *c, const struct data *d, int r, bool *alone)
{
    const int position = i32(&d->positions)[r], width = c->width ? c->width : 1;
    const int sequence = c->sequences ? i32(&d->sequences)[r] : r;
    *alone = position < 0 || position >= positions_most(c) || sequence < 0 ||
             sequence >= SEQUENCES || position / c->page_size >= width;
    if (*alone) return -1;
    const int page =
        c->width ? i32(&d->table)[sequence * width + position / c->page_size] : sequence;
    return page < 0 || page >= c->pages
               ? -1
               : page * d->page + (int64_t)(position % c->page_size) * d->token;
}

/* A head as it must become; slack[j]: what f32 may add to half a unit in the last place. */
static void want_head(const struct rope_case *c, const struct data *d, int r, int head,
                      const uint16_t *from, double *want, double *slack)
{
    const int half = c->dim / 2;
    const struct array *weights = head < c->q_heads ? &d->q_norm : &d->k_norm;
    double x[256] = {0}, sum = 0, scale = 1;
    for (int j = 0; j < c->dim; j++) sum += bf16_to_double(from[j]) * bf16_to_double(from[j]);
    if (c->normed) scale = 1 / sqrt(sum / c->dim + (double)1e-6F);
    for (int j = 0; j < c->dim; j++) {
        x[j] = bf16_to_double(from[j]);
        if (c->normed) x[j] *= scale * bf16_to_double(bf16(weights)[j]);
    }
    const float *turn = f32(&d->rotation) + (int64_t)i32(&d->positions)[r] * c->dim;
    for (int j = 0; j < half; j++) {
        const double cosine = (double)turn[2 * j], sine = (double)turn[2 * j + 1];
        want[j] = x[j] * cosine - x[j + half] * sine;
        want[j + half] = x[j + half] * cosine + x[j] * sine;
        slack[j] = slack[j + half] = (fabs(x[j]) + fabs(x[j + half])) * 0x1p-20;
    }
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
        const int64_t to = place + (is_v ? of_k - c->kv_heads : of_k) * d->head;
        struct array *left = is_v ? v_left : k_left;
        got = bf16(is_v ? &d->v : &d->k) + to;
        memset(bf16(left) + to, POISON, 2 * (size_t)c->dim);
    }
    if (is_v) {
        CHECK(memcmp(from, got, 2 * (size_t)c->dim) == 0, "row %d: head %d of V differs", r, head);
        return;
    }
    want_head(c, d, r, head, from, want, slack);
    for (int j = 0; j < c->dim && wrong < 2; j++)
        if (!near_bf16(got[j], want[j], slack[j]))
            CHECK(++wrong == 0, "row %d head %d [%d]: want %g got %g", r, head, j, want[j],
                  bf16_to_double(got[j]));
}

static void judge(struct bench *b, const struct rope_case *c, struct data *d)
{
    struct array left[2]; /* the pools without what was expected there */
    bool ready = array_new(&left[0], d->k.size), alone;
    ready = array_new(&left[1], d->v.size) && ready;
    CHECK(ready, "no memory for the judge");
    if (ready) {
        memcpy(left[0].host, d->k.host, d->k.size);
        memcpy(left[1].host, d->v.host, d->v.size);
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
            .qkv = array_up(b, &d.qkv),
            .positions = array_up(b, &d.positions),
            .sequences = c->sequences ? array_up(b, &d.sequences) : 0,
            .rotation = array_up(b, &d.rotation),
            .q_norm = c->normed ? array_up(b, &d.q_norm) : 0,
            .k_norm = c->normed ? array_up(b, &d.k_norm) : 0,
            .k = array_up(b, &d.k),
            .v = array_up(b, &d.v),
            .table = c->width ? array_up(b, &d.table) : 0,
            .rows = c->rows,
            .q_heads = c->q_heads,
            .kv_heads = c->kv_heads,
            .dim = c->dim,
            .positions_most = positions_most(c),
            .sequences_most = SEQUENCES,
            .pages = c->pages,
            .page_size = c->page_size,
            .table_width = c->width ? c->width : 1,
            .page = d.page,
            .head = d.head,
            .token = d.token,
            .eps = 1e-6,
        };
        if (launched(b, engine_rope(&b->kernels, &a, NULL, &err), &err)) {
            array_down(b, &d.qkv, "qkv");
            array_down(b, &d.k, "K");
            array_down(b, &d.v, "V");
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
