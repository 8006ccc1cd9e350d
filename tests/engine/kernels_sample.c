/*
 * engine_sample against float64. The kernel's masses are rounded and its exponential is approximate, so a threshold
 * or a token beside the one that float64 gives is right where the two differ by less than that. What needs no
 * tolerance is exact: the first token, top_k, equal logits, the random number. Last, frequencies by chi-square.
 */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind { NORMAL, FLAT, FEW_VALUES, SPECIALS, PEAK, NEGATIVE, NOTHING, KINDS };

struct sample_case {
    const char *name;
    int rows, vocab, type;
    enum kind kind;
    float temperature, top_p; /* below 0: of every row another */
    int top_k;
    int gap;     /* 16-byte units between rows */
    bool chosen; /* rows are of some slots */
};

struct data {
    struct array logits, slot_of, positions, settings, sampled;
    int slots;
    size_t row; /* bytes */
};

/* ---- the random number: Philox4x32-10 -- */

static uint64_t philox(uint64_t seed, uint32_t c0, uint32_t c1)
{
    uint32_t c[4] = {c0, c1, 0, 0}, key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int i = 0; i < 10; i++) {
        const uint64_t a = (uint64_t)0xD2511F53 * c[0], b = (uint64_t)0xCD9E8D57 * c[2];
        const uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ key[0], (uint32_t)b,
                                  (uint32_t)(a >> 32) ^ c[3] ^ key[1], (uint32_t)a};
        memcpy(c, next, sizeof c);
        key[0] += 0x9E3779B9;
        key[1] += 0xBB67AE85;
    }
    return (uint64_t)c[1] << 32 | c[0];
}

/* ---- contents -- */

static double logit_of(const struct sample_case *c, struct rng *r)
{
    static const double specials[] = {NAN, -INFINITY, 0.0, -0.0, 3.5, 4, -1e30, -NAN};
    switch (c->kind) {
    case FLAT: return 9 + (double)rng_unit(r) * 0.001;
    case FEW_VALUES: return (double)rng_below(r, 4) - 8;
    case SPECIALS: return specials[rng_below(r, 8)];
    case PEAK: return (double)rng_unit(r) * 4 + (rng_below(r, (uint32_t)c->vocab) == 0 ? 30 : 0);
    case NEGATIVE: return -100 - fabs((double)rng_unit(r)) * 3;
    case NOTHING: return rng_below(r, 2) ? NAN : -INFINITY;
    default: return 6.0 * ((double)rng_unit(r) + (double)rng_unit(r) + (double)rng_unit(r));
    }
}

static double logit_at(const struct sample_case *c, const struct data *d, int row, int i)
{
    const char *at = (const char *)d->logits.host + (size_t)row * d->row;
    float f;
    uint16_t h;
    if (c->type == HEWN_F32) {
        memcpy(&f, at + 4 * (size_t)i, 4);
        return (double)f;
    }
    memcpy(&h, at + 2 * (size_t)i, 2);
    return bf16_to_double(h);
}

static void fill(const struct sample_case *c, struct data *d, struct rng *r)
{
    struct engine_sampling *s = d->settings.host;
    for (int row = 0; row < c->rows; row++) {
        char *at = (char *)d->logits.host + (size_t)row * d->row;
        for (int i = 0; i < c->vocab; i++) {
            const float f = (float)logit_of(c, r);
            const uint16_t h = double_to_bf16((double)f);
            memcpy(c->type == HEWN_F32 ? at + 4 * (size_t)i : at + 2 * (size_t)i,
                   c->type == HEWN_F32 ? (const void *)&f : &h, c->type == HEWN_F32 ? 4 : 2);
        }
        i32(&d->slot_of)[row] = row % 5 == 4 ? d->slots + row : d->slots - 1 - row;
    }
    for (int i = 0; i < d->slots; i++) {
        i32(&d->positions)[i] = c->chosen && i % 4 == 1 ? -1 - i : (int32_t)rng_below(r, 1 << 20);
        s[i] = (struct engine_sampling){c->temperature, c->top_p, c->top_k, (uint32_t)i * 7,
                                        rng_next(r)};
        if (c->top_p >= 0) continue;
        s[i].temperature = i % 5 ? 0.25F + (float)rng_below(r, 8) * 0.25F : 0;
        s[i].top_p = i % 3 ? 0.05F + (float)rng_below(r, 19) * 0.05F : 1;
        s[i].top_k = i % 2 ? 1 + (int32_t)rng_below(r, rng_below(r, 2) ? 50 : 3000) : 0;
    }
}

/* ---- the judge -- */

struct token {
    double logit, mass;
    int index;
};

static int better_first(const void *a, const void *b)
{
    const struct token *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Where the drawn token may be, if the first `kept` of the order are kept. */
static bool may_be(const struct token *t, int kept, int got, double u, double slack)
{
    double sum = 0, before = 0, own = -1;
    for (int i = 0; i < kept; i++) {
        sum += t[i].mass;
        if (t[i].index < got) before += t[i].mass;
        if (t[i].index == got) own = t[i].mass;
    }
    const double r = u * sum;
    return own >= 0 && r >= before - slack && r <= before + own + slack;
}

/* How many are kept at least and at most. */
static void range_of(const struct token *t, int n, double p, double slack, int *least, int *most)
{
    double sum = 0, to = 0;
    *least = *most = n;
    if (!(p > 0 && p < 1)) return;
    for (int i = 0; i < n; i++) sum += t[i].mass;
    *least = 0;
    for (int i = 0; i < n; i++) {
        to += t[i].mass;
        if (!*least && to >= p * sum - slack) *least = i + 1;
        if (to >= p * sum + slack) {
            *most = i + 1;
            return;
        }
    }
}

static void judge_row(const struct sample_case *c, const struct data *d, int row, int slot,
                      struct token *t)
{
    const struct engine_sampling *s = (const struct engine_sampling *)d->settings.host + slot;
    const int got = i32(&d->sampled)[slot];
    int n = 0, least, most;
    for (int i = 0; i < c->vocab; i++) {
        const double x = logit_at(c, d, row, i);
        if (x > -INFINITY) t[n++] = (struct token){x, 0, i};
    }
    if (n == 0) {
        CHECK(got == -1, "row %d has no logit: want -1 got %d", row, got);
        return;
    }
    qsort(t, (size_t)n, sizeof *t, better_first);
    if (!(s->temperature > 0)) {
        CHECK(got == t[0].index, "row %d: want the first one, %d, got %d", row, t[0].index, got);
        return;
    }
    if (s->top_k > 0 && s->top_k < n) n = s->top_k;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        t[i].mass =
            t[i].logit == t[0].logit ? 1 : exp((t[i].logit - t[0].logit) / (double)s->temperature);
        sum += t[i].mass;
    }
    const double slack = sum * 0x1p-18 + n * 0x1p-32;
    const double u =
        ldexp((double)philox(s->seed, (uint32_t)i32(&d->positions)[slot], s->request), -64);
    range_of(t, n, (double)s->top_p, slack, &least, &most);
    bool good = false;
    for (int kept = least; kept <= most && kept < least + 40 && !good; kept++)
        good = may_be(t, kept, got, u, 2 * slack);
    CHECK(good, "row %d: token %d cannot be, with u %g, %d of %d kept (temperature %g, p %g, k %d)",
          row, got, u, least, c->vocab, (double)s->temperature, (double)s->top_p, s->top_k);
}

static void judge(const struct sample_case *c, const struct data *d)
{
    struct token *t = malloc(((size_t)c->vocab + 1) * sizeof *t);
    CHECK(t, "no memory for the judge");
    for (int i = 0; t && i < d->slots; i++) {
        int row = -1;
        for (int j = 0; j < c->rows; j++)
            if ((c->chosen ? i32(&d->slot_of)[j] : j) == i) row = j;
        if (row < 0)
            CHECK_INT(i32(&d->sampled)[i], 0x5A5A5A5A);
        else if (i32(&d->positions)[i] < 0)
            CHECK_INT(i32(&d->sampled)[i], -1);
        else
            judge_row(c, d, row, i, t);
    }
    free(t);
}

/* ---- a case -- */

static bool data_new(const struct sample_case *c, struct data *d)
{
    const size_t element = c->type == HEWN_F32 ? 4 : 2;
    memset(d, 0, sizeof *d);
    d->slots = c->rows + (c->chosen ? 3 : 0);
    d->row = ((size_t)c->vocab * element + 15) / 16 * 16 + 16 * (size_t)c->gap;
    bool ready = array_new(&d->logits, d->row * (size_t)c->rows);
    ready = array_new(&d->slot_of, 4 * (size_t)c->rows) && ready;
    ready = array_new(&d->positions, 4 * (size_t)d->slots) && ready;
    ready = array_new(&d->sampled, 4 * (size_t)d->slots) && ready;
    return array_new(&d->settings, sizeof(struct engine_sampling) * (size_t)d->slots) && ready;
}

static void run(struct bench *b, const struct sample_case *c, struct data *d)
{
    const size_t element = c->type == HEWN_F32 ? 4 : 2;
    hewn_error err = {0};
    const struct engine_slots slots = {
        .positions = array_up(b, &d->positions),
        .settings = array_up(b, &d->settings),
        .sampled = array_up(b, &d->sampled),
        .slots = d->slots,
    };
    const struct engine_sample a = {
        .logits = array_up(b, &d->logits),
        .slot_of = c->chosen ? array_up(b, &d->slot_of) : 0,
        .slots = &slots,
        .rows = c->rows,
        .vocab = c->vocab,
        .row = (int64_t)(d->row / element),
        .type = c->type,
    };
    if (launched(b, engine_sample(&b->kernels, &a, NULL, &err), &err))
        array_down(b, &d->sampled, "sampled");
}

static void data_free(struct bench *b, struct data *d)
{
    struct array *all[] = {&d->logits, &d->slot_of, &d->positions, &d->settings, &d->sampled};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) array_free(b, all[i]);
}

static void run_case(struct bench *b, const struct sample_case *c, uint64_t seed)
{
    struct rng r = {seed ^ test_seed()};
    struct data d;
    bool ready = data_new(c, &d);
    CHECK(ready, "no memory for the case");
    if (ready) {
        fill(c, &d, &r);
        run(b, c, &d);
        judge(c, &d);
    }
    data_free(b, &d);
}

/* ---- frequencies -- */

/* Rows of the same logits at positions 0, 1, ..: a token's number of draws is near rows * its probability. */
static void frequencies(struct bench *b, int rows)
{
    struct sample_case c = {.name = "chi-square",
                            .rows = rows,
                            .vocab = 24,
                            .type = HEWN_F32,
                            .kind = FLAT,
                            .temperature = 2,
                            .top_p = 0.9F};
    double p[24], sum = 0, square = 0;
    int drawn[24] = {0}, kept = 0;
    struct data d;
    bool ready = data_new(&c, &d);
    CHECK(ready, "no memory for the case");
    struct rng r = {test_seed()};
    if (ready) fill(&c, &d, &r);
    for (int row = 0; ready && row < rows; row++) {
        for (int i = 0; i < c.vocab; i++)
            f32(&d.logits)[row * c.vocab + i] = (float)(i * 11 % 24) * 0.25F;
        i32(&d.positions)[row] = row;
        ((struct engine_sampling *)d.settings.host)[row] =
            (struct engine_sampling){2, 0.9F, 0, 5, 77};
    }
    if (ready) run(b, &c, &d);
    for (int row = 0; ready && row < rows; row++) {
        const int token = i32(&d.sampled)[row];
        if (token >= 0 && token < 24) drawn[token]++;
    }
    for (int rank = 23; rank >= 0; rank--) sum += exp(rank * 0.125);
    for (int rank = 23, i; rank >= 0; rank--) { /* the fewest from the top that reach 0.9 */
        double above = 0;
        for (i = rank + 1; i < 24; i++) above += exp(i * 0.125);
        p[rank] = above < 0.9 * sum ? exp(rank * 0.125) : 0;
        if (p[rank] > 0) kept++;
    }
    sum = 0;
    for (int rank = 0; rank < 24; rank++) sum += p[rank];
    for (int i = 0; ready && i < 24; i++) {
        const double want = rows * p[i * 11 % 24] / sum;
        CHECK(want > 0 || drawn[i] == 0, "token %d was drawn, and is not kept", i);
        if (want > 0) square += (drawn[i] - want) * (drawn[i] - want) / want;
    }
    /* Wilson and Hilferty: the cube root is nearly normal. 4 deviations: once in 30,000. */
    const double f = kept - 1, z = (cbrt(square / f) - (1 - 2 / (9 * f))) / sqrt(2 / (9 * f));
    CHECK(z < 4 && z > -4, "chi-square %g of %g degrees: %g deviations", square, f, z);
    data_free(b, &d);
}

static struct sample_case random_case(struct rng *r)
{
    struct sample_case c = {.name = "random", .temperature = 1, .top_p = -1};
    c.vocab = 1 + (int)rng_below(r, rng_below(r, 3) ? 300 : 20000);
    c.rows = 1 + (int)rng_below(r, c.vocab > 300 ? 2 : 6);
    c.type = rng_below(r, 2) ? HEWN_F32 : HEWN_BF16;
    c.kind = (enum kind)rng_below(r, KINDS);
    c.gap = (int)rng_below(r, 2);
    c.chosen = rng_below(r, 2);
    return c;
}

void test_sample(struct bench *b, int random)
{
    static const struct sample_case cases[] = {
        {"the first", 4, 333, HEWN_F32, NORMAL, 0, 0.5F, 0, 1, false},
        {"the first of equals", 3, 1000, HEWN_BF16, FEW_VALUES, 0, 1, 0, 0, false},
        {"all", 6, 77, HEWN_F32, NORMAL, 1, 1, 0, 0, false},
        {"top_k", 5, 300, HEWN_BF16, NORMAL, 1, 1, 7, 1, false},
        {"top_p", 6, 500, HEWN_F32, NORMAL, 0.8F, 0.9F, 0, 0, false},
        {"both, some slots", 9, 200, HEWN_F32, NORMAL, 1, -1, 0, 0, true},
        {"equals", 6, 600, HEWN_BF16, FEW_VALUES, 1, -1, 0, 0, false},
        {"no numbers", 5, 90, HEWN_F32, SPECIALS, 1, -1, 0, 0, false},
        {"no logit", 2, 40, HEWN_BF16, NOTHING, 1, 0.9F, 3, 0, false},
        {"flat, a cluster of 2", 2, 20011, HEWN_F32, FLAT, 1, 0.97F, 0, 0, false},
        {"negative, top_k beyond the threads", 2, 3000, HEWN_F32, NEGATIVE, 2, 0.5F, 2000, 0,
         false},
        {"a cluster of 4", 2, 70001, HEWN_F32, NORMAL, 0.9F, 0.8F, 0, 0, false},
        {"a cluster of 8", 1, 140003, HEWN_BF16, NORMAL, 0.7F, 0.8F, 40, 0, false},
        {"one token", 2, 1, HEWN_F32, NORMAL, 1, 0.5F, 0, 0, false},
        {"rows in turns", 40, 8205, HEWN_F32, NORMAL, 0.8F, 0.9F, 0, 0, false},
    };
    if (test_case("sample: Philox4x32-10 by its authors' vectors"))
        CHECK(philox(0, 0, 0) == 0xE169C58D6627E8D5, "0, 0: %llx",
              (unsigned long long)philox(0, 0, 0));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (test_case("sample: %s, %d x %d", cases[i].name, cases[i].rows, cases[i].vocab))
            run_case(b, &cases[i], 400 + i);
    if (test_case("sample: frequencies")) frequencies(b, b->dev->info.simulated ? 400 : 20000);
    for (int i = 0; i < random; i++) {
        struct rng r = {test_seed() + 0x5A0000 + (uint64_t)i};
        const struct sample_case c = random_case(&r);
        if (test_case("sample: random %d, %d x %d", i, c.rows, c.vocab)) run_case(b, &c, r.state);
    }
}
