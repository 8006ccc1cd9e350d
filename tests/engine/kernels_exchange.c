/*
 * engine_exchange against float64, a rank at a time: what the other ranks send lies in the inbox before. What the
 * rank sends, and what it leaves in its inbox, is compared bit by bit. Parts hold words that look like the mark.
 */
#include "kernels.h"

#include "../../ptx/inc/engine.plan.h"

#include <math.h>
#include <string.h>

struct exchange_case {
    int ranks, rank, rows, hidden, ctas;
    int inbox_rows; /* of a rank: as many or more */
    bool h, out;
    double scale, eps;
};

struct data {
    struct array x, part, inbox, peers, sent, w, h, out;
};

static const uint32_t mark = ENGINE_EXCHANGE_MARK;

static uint32_t *words(const struct array *a)
{
    return a->host;
}

static size_t row_words(const struct exchange_case *c, int64_t rows)
{
    return (size_t)(rows * c->hidden / 2);
}

/* As a rank sends it. */
static void unmark(uint32_t *word, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (word[i] == mark) word[i] = 0;
}

static void fill(const struct exchange_case *c, struct data *d, struct rng *r)
{
    const size_t rank = row_words(c, c->inbox_rows), used = row_words(c, c->rows);
    array_random(&d->x, r, c->scale);
    array_random(&d->part, r, c->scale);
    array_random(&d->inbox, r, c->scale);
    array_random(&d->w, r, 2);
    for (size_t i = 0; i < used; i += 1 + rng_below(r, 40)) words(&d->part)[i] = mark;
    for (int q = 0; q < c->ranks; q++) {
        uint32_t *from = words(&d->inbox) + (size_t)q * rank;
        unmark(from, used);
        for (size_t i = q == c->rank ? 0 : used; i < rank; i++) from[i] = mark;
    }
}

/* x + the sum in the order of ranks; where it is not exact, f32 may round each addition: `slack`. */
static double want_sum(const struct exchange_case *c, const struct data *d, const uint16_t *inbox,
                       size_t i, double *slack)
{
    const double x = bf16_to_double(bf16(&d->x)[i]);
    double sum = 0, most = fabs(x);
    for (int q = 0; q < c->ranks; q++) {
        const size_t at = (size_t)q * 2 * row_words(c, c->inbox_rows) + i;
        const double part = bf16_to_double(q == c->rank ? bf16(&d->part)[i] : inbox[at]);
        sum += part;
        most += fabs(part);
    }
    *slack = most * (c->ranks + 1) * 0x1p-24;
    return x + sum;
}

static void judge_row(const struct exchange_case *c, const struct data *d, const uint16_t *inbox,
                      int r)
{
    const size_t row = (size_t)r * (size_t)c->hidden;
    double squares = 0, slack;
    int wrong = 0;
    for (int i = 0; i < c->hidden; i++) {
        const double h = want_sum(c, d, inbox, row + (size_t)i, &slack);
        const double kept =
            c->h ? bf16_to_double(bf16(&d->h)[row + (size_t)i]) : bf16_to_double(double_to_bf16(h));
        squares += kept * kept;
        if (c->h && !near_bf16(bf16(&d->h)[row + (size_t)i], h, slack) && wrong++ < 3)
            CHECK(false, "h[%d][%d]: want %g got %g", r, i, h, kept);
    }
    for (int i = 0; c->out && i < c->hidden; i++) {
        const double h = want_sum(c, d, inbox, row + (size_t)i, &slack);
        const double kept = c->h ? bf16_to_double(bf16(&d->h)[row + (size_t)i]) : h;
        const double scale = 1 / sqrt(squares / c->hidden + (double)(float)c->eps);
        const double want = kept * scale * bf16_to_double(bf16(&d->w)[i]);
        const uint16_t out = bf16(&d->out)[row + (size_t)i];
        if (!near_bf16(out, want, fabs(want) * (c->h ? 0x1p-17 : 0x1p-7) + slack) && wrong++ < 3)
            CHECK(false, "out[%d][%d]: want %g got %g", r, i, want, bf16_to_double(out));
    }
}

/* What went out to every other rank, and that the inbox is as it was before anything was sent. */
static void judge_words(const struct exchange_case *c, struct data *d)
{
    const size_t rank = row_words(c, c->inbox_rows), used = row_words(c, c->rows);
    size_t lost = 0, left = 0, stray = 0;
    unmark(words(&d->part), used);
    for (int q = 0; q < c->ranks; q++)
        for (size_t i = 0; i < rank; i++) {
            const uint32_t sent = words(&d->sent)[(size_t)q * rank + i];
            if (q == c->rank || i >= used)
                stray += sent != 0x5A5A5A5A;
            else
                lost += sent != words(&d->part)[i];
            left += words(&d->inbox)[(size_t)q * rank + i] != mark;
        }
    CHECK(!lost && !stray, "%zu words sent wrongly, %zu where none belong", lost, stray);
    CHECK(!left, "%zu words of the inbox are no marks", left);
}

static bool run(struct bench *b, const struct exchange_case *c, struct data *d)
{
    const size_t rank = 4 * row_words(c, c->inbox_rows);
    const hewn_deviceptr sent = array_up(b, &d->sent);
    hewn_error err = {0};
    struct engine_exchange a = {
        .x = array_up(b, &d->x),
        .part = array_up(b, &d->part),
        .inbox = array_up(b, &d->inbox),
        .h = c->h ? array_up(b, &d->h) : 0,
        .w = c->out ? array_up(b, &d->w) : 0,
        .out = c->out ? array_up(b, &d->out) : 0,
        .rank = c->rank,
        .ranks = c->ranks,
        .rows = c->rows,
        .hidden = c->hidden,
        .inbox_rank = (int64_t)rank / 2,
        .ctas = c->ctas,
        .eps = c->eps,
    };
    for (int q = 0; q < c->ranks; q++)
        ((uint64_t *)d->peers.host)[q] = q == c->rank ? 0 : sent + (uint64_t)q * rank - a.inbox;
    a.peers = array_up(b, &d->peers);
    if (!launched(b, engine_exchange(&b->kernels, &a, NULL, &err), &err)) return false;
    array_down(b, &d->h, "h");
    array_down(b, &d->out, "out");
    array_down(b, &d->inbox, "inbox");
    array_down(b, &d->sent, "sent");
    return true;
}

static void run_case(struct bench *b, const struct exchange_case *c, uint64_t seed)
{
    const size_t rows = 2 * (size_t)c->rows * (size_t)c->hidden;
    const size_t inbox = 4 * (size_t)c->ranks * row_words(c, c->inbox_rows);
    struct rng r = {seed ^ test_seed()};
    struct array before = {0};
    struct data d = {0};
    bool ready = array_new(&d.x, rows) && array_new(&d.part, rows) && array_new(&d.h, rows) &&
                 array_new(&d.out, rows) && array_new(&d.inbox, inbox) &&
                 array_new(&d.sent, inbox) && array_new(&before, inbox) &&
                 array_new(&d.peers, 8 * (size_t)c->ranks) &&
                 array_new(&d.w, 2 * (size_t)c->hidden);
    struct array *all[] = {&d.x, &d.part, &d.h, &d.out, &d.inbox, &d.sent, &before, &d.w, &d.peers};
    CHECK(ready, "no memory for the case");
    if (ready) {
        fill(c, &d, &r);
        memcpy(before.host, d.inbox.host, inbox);
        if (run(b, c, &d)) {
            for (int i = 0; i < c->rows; i++) judge_row(c, &d, bf16(&before), i);
            judge_words(c, &d);
        }
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) array_free(b, all[i]);
}

static struct exchange_case random_case(struct rng *r)
{
    struct exchange_case c = {.scale = ldexp(1, (int)rng_below(r, 40) - 20), .out = true};
    c.ranks = 2 + (int)rng_below(r, 4);
    c.rank = (int)rng_below(r, (uint32_t)c.ranks);
    c.hidden = 8 * (1 + (int)rng_below(r, rng_below(r, 4) ? 200 : 1200));
    c.rows = 1 + (int)rng_below(r, c.hidden > 2000 ? 3 : 12);
    c.inbox_rows = c.rows + (int)rng_below(r, 3);
    c.ctas = 1 + (int)rng_below(r, 9);
    c.h = rng_below(r, 3) != 0;
    c.out = rng_below(r, 4) || !c.h;
    c.eps = rng_below(r, 3) ? 1e-5 : 1e-6;
    return c;
}

void test_exchange(struct bench *b, int random)
{
    static const struct exchange_case cases[] = {
        {2, 0, 1, 4096, 132, 1, true, true, 1, 1e-5},
        {2, 1, 7, 136, 132, 8, true, true, 1, 1e-5},
        {2, 1, 5, 264, 2, 5, true, true, 1, 1e-5},
        {4, 2, 3, 4104, 132, 4, true, true, 1e-3, 1e-6},
        {3, 0, 2, 72, 1, 2, true, false, 1, 0},
        {16, 15, 2, 64, 132, 2, false, true, 3, 1e-5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (test_case("exchange: rank %d of %d, %d x %d on %d CTAs", cases[i].rank, cases[i].ranks,
                      cases[i].rows, cases[i].hidden, cases[i].ctas))
            run_case(b, &cases[i], i);
    for (int i = 0; i < random; i++) {
        struct rng r = {test_seed() + 0xE40000 + (uint64_t)i};
        const struct exchange_case c = random_case(&r);
        if (test_case("exchange: random %d, rank %d of %d, %d x %d", i, c.rank, c.ranks, c.rows,
                      c.hidden))
            run_case(b, &c, r.state);
    }
}
