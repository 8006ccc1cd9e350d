/*
 * engine_latent against float64: Q's rotary elements where they go, rows of the cache in a pool of pages, whose other
 * rows must keep their poison.
 */
#include "kernels.h"

#include <math.h>
#include <string.h>

struct latent_case {
    const char *name;
    int rows, heads, nope; /* nope: elements of a head of Q before those that rotate */
    int page_size, width, pages;
    bool sequences, damaged;
};

enum { SEQUENCES = 5, RANK = 512, ROTARY = 64, ROW = RANK + ROTARY, GAP = 16 };

struct data {
    struct array vector, q, out, positions, sequences, rotation, norm, cache, table;
    int q_head, vector_row;
};

static int positions_most(const struct latent_case *c)
{
    return c->page_size * c->width + 3;
}

static void fill_rows(const struct latent_case *c, struct data *d, struct rng *r)
{
    const int most = c->page_size * c->width;
    for (int i = 0; i < c->rows; i++) {
        const int sequence = c->sequences ? i % SEQUENCES : i;
        i32(&d->sequences)[i] = sequence;
        i32(&d->positions)[i] = (i / SEQUENCES * 7 + (int)rng_below(r, 7)) % most;
        if (!c->damaged) continue;
        if (i % 7 == 3) i32(&d->positions)[i] = -1 - i;
        if (i % 7 == 4) i32(&d->positions)[i] = most + (int)rng_below(r, 3); /* behind the table */
        if (i % 7 == 5) i32(&d->positions)[i] = INT32_MAX;
        if (i % 7 == 6) i32(&d->sequences)[i] = i % 2 ? -1 : SEQUENCES;
    }
    for (int i = 0; i < SEQUENCES * c->width; i++) {
        i32(&d->table)[i] = (i * 3 + 1) % c->pages; /* 3 and the number of pages have no divisor */
        if (c->damaged && i % 4 == 2) i32(&d->table)[i] = i % 8 == 2 ? -2 : c->pages + i;
    }
}

static bool data_new(const struct latent_case *c, struct data *d, struct rng *r)
{
    const size_t rows = (size_t)c->rows, heads = (size_t)c->heads;
    memset(d, 0, sizeof *d);
    d->q_head = c->nope + ROTARY;
    d->vector_row = ROW + GAP;
    bool ready = array_new(&d->vector, 2 * rows * (size_t)d->vector_row);
    ready = array_new(&d->q, 2 * rows * heads * (size_t)d->q_head) && ready;
    ready = array_new(&d->out, 2 * rows * heads * ROW) && ready;
    ready = array_new(&d->positions, 4 * rows) && ready;
    ready = array_new(&d->sequences, 4 * rows) && ready;
    ready = array_new(&d->rotation, 4 * (size_t)positions_most(c) * ROTARY) && ready;
    ready = array_new(&d->norm, 2 * RANK) && ready;
    ready = array_new(&d->cache, 2 * ROW * (size_t)(c->pages * c->page_size)) && ready;
    ready = array_new(&d->table, 4 * (size_t)(SEQUENCES * c->width)) && ready;
    if (!ready) return false;
    array_random(&d->vector, r, 3);
    array_random(&d->q, r, 3);
    array_random(&d->norm, r, 2);
    for (int p = 0; p < positions_most(c); p++)
        for (int j = 0; j < ROTARY / 2; j++) {
            const double angle = p * pow(10000, -2.0 * j / ROTARY);
            f32(&d->rotation)[p * ROTARY + 2 * j] = (float)cos(angle);
            f32(&d->rotation)[p * ROTARY + 2 * j + 1] = (float)sin(angle);
        }
    fill_rows(c, d, r);
    return true;
}

static void data_free(struct bench *b, struct data *d)
{
    struct array *all[] = {&d->vector,   &d->q,    &d->out,   &d->positions, &d->sequences,
                           &d->rotation, &d->norm, &d->cache, &d->table};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) array_free(b, all[i]);
}

/* ---- the judge -- */

/* The row of the pool that row r goes to, or -1; *alone: the row is left alone. */
static int place_of(const struct latent_case *c, const struct data *d, int r, bool *alone)
{
    const int position = i32(&d->positions)[r];
    const int sequence = c->sequences ? i32(&d->sequences)[r] : r;
    *alone = position < 0 || position >= positions_most(c) || sequence < 0 ||
             sequence >= SEQUENCES || position / c->page_size >= c->width;
    if (*alone) return -1;
    const int page = i32(&d->table)[sequence * c->width + position / c->page_size];
    return page < 0 || page >= c->pages ? -1 : page * c->page_size + position % c->page_size;
}

static void judge_rotary(const struct data *d, int r, const char *what, const uint16_t *from,
                         const uint16_t *got)
{
    const float *turn = f32(&d->rotation) + (int64_t)i32(&d->positions)[r] * ROTARY;
    for (int j = 0; j < ROTARY; j += 2) {
        const double a = bf16_to_double(from[j]), b = bf16_to_double(from[j + 1]);
        const double c = (double)turn[j], s = (double)turn[j + 1];
        const double want[2] = {a * c - b * s, b * c + a * s};
        for (int i = 0; i < 2; i++)
            if (!near_bf16(got[j + i], want[i], (fabs(a) + fabs(b)) * 0x1p-20)) {
                CHECK(false, "row %d %s [%d]: want %g got %g", r, what, j + i, want[i],
                      bf16_to_double(got[j + i]));
                return;
            }
    }
}

static void judge_vector(const struct data *d, int r, const uint16_t *got)
{
    const uint16_t *from = bf16(&d->vector) + r * d->vector_row;
    double sum = 0;
    for (int e = 0; e < RANK; e++) sum += bf16_to_double(from[e]) * bf16_to_double(from[e]);
    for (int e = 0; e < RANK; e++) {
        const double want =
            bf16_to_double(from[e]) * bf16_to_double(bf16(&d->norm)[e]) / sqrt(sum / RANK + EPS);
        if (!near_bf16(got[e], want, fabs(want) * 0x1p-20)) {
            CHECK(false, "row %d vector [%d]: want %g got %g", r, e, want, bf16_to_double(got[e]));
            return;
        }
    }
    judge_rotary(d, r, "vector", from + RANK, got + RANK);
}

/* What was expected becomes poison; then all must be poison. */
static void judge(const struct latent_case *c, struct data *d)
{
    for (int r = 0; r < c->rows; r++) {
        bool alone;
        const int place = place_of(c, d, r, &alone);
        for (int h = 0; h < c->heads && !alone; h++) {
            const int64_t head = (int64_t)r * c->heads + h;
            uint16_t *got = bf16(&d->out) + head * ROW + RANK;
            judge_rotary(d, r, "Q", bf16(&d->q) + head * d->q_head + c->nope, got);
            memset(got, POISON, 2 * ROTARY);
        }
        if (place < 0) continue;
        judge_vector(d, r, bf16(&d->cache) + (int64_t)place * ROW);
        memset(bf16(&d->cache) + (int64_t)place * ROW, POISON, 2 * ROW);
    }
    const struct array *all[] = {&d->cache, &d->out};
    for (int a = 0; a < 2; a++)
        for (size_t i = 0; i < all[a]->size / 2; i++)
            if (bf16(all[a])[i] != 0x5A5A) {
                CHECK(false, "%s: element %zu was written", a ? "Q" : "the cache", i);
                break;
            }
}

static void run_case(struct bench *b, const struct latent_case *c, uint64_t seed)
{
    struct rng r = {seed ^ test_seed()};
    struct data d;
    hewn_error err = {0};
    const bool ready = data_new(c, &d, &r);
    CHECK(ready, "no memory for the case");
    if (ready) {
        const struct engine_latent a = {
            .vector = array_up(b, &d.vector),
            .q = array_up(b, &d.q) + 2 * (hewn_deviceptr)c->nope,
            .out = array_up(b, &d.out) + 2 * RANK,
            .positions = array_up(b, &d.positions),
            .sequences = c->sequences ? array_up(b, &d.sequences) : 0,
            .rotation = array_up(b, &d.rotation),
            .norm = array_up(b, &d.norm),
            .cache = array_up(b, &d.cache),
            .table = array_up(b, &d.table),
            .rows = c->rows,
            .heads = c->heads,
            .vector_row = d.vector_row,
            .q_row = (int64_t)d.q_head * c->heads,
            .q_head = d.q_head,
            .out_row = (int64_t)ROW * c->heads,
            .out_head = ROW,
            .positions_most = positions_most(c),
            .sequences_most = SEQUENCES,
            .pages = c->pages,
            .page_size = c->page_size,
            .table_width = c->width,
            .page = (int64_t)ROW * c->page_size,
            .token = ROW,
            .eps = EPS,
        };
        if (launched(b, engine_latent(&b->kernels, &a, NULL, &err), &err)) {
            array_down(b, &d.out, "Q");
            array_down(b, &d.cache, "the cache");
            judge(c, &d);
        }
    }
    data_free(b, &d);
}

void test_latent(struct bench *b, int random)
{
    static const struct latent_case cases[] = {
        {"16 heads", 4, 16, 128, 64, 2, 31, false, false},
        {"several rows of a sequence", 12, 3, 32, 8, 6, 91, true, false},
        {"more heads than a CTA has", 2, 37, 8, 16, 3, 46, true, false},
        {"rows that are left alone", 14, 5, 64, 8, 4, 61, true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (test_case("latent: %s, %d rows", cases[i].name, cases[i].rows))
            run_case(b, &cases[i], 800 + i);
    for (int i = 0; i < random; i++) {
        struct rng r = {test_seed() + 0x860000 + (uint64_t)i};
        struct latent_case c = {.name = "random", .rows = 1 + (int)rng_below(&r, SEQUENCES)};
        c.heads = 1 + (int)rng_below(&r, 70);
        c.nope = 8 * (1 + (int)rng_below(&r, 16));
        c.page_size = 1 + (int)rng_below(&r, 20);
        c.width = 1 + (int)rng_below(&r, 5);
        c.pages = 3 * SEQUENCES * c.width + 1;
        c.sequences = rng_below(&r, 2);
        c.damaged = c.sequences && rng_below(&r, 3) == 0;
        if (test_case("latent: random %d, %d rows, %d heads", i, c.rows, c.heads))
            run_case(b, &c, r.state);
    }
}
