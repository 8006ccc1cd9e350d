#include "attention_promotion.h"

#include "attention_data.h"
#include "attention_reference.h"
#include "attention_run.h"
#include "lib/harness.h"

#include "hewn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WAYS = 3 };
static const int64_t blocks[WAYS] = {-1, 4, 1};

static const struct {
    const char *name;
    int64_t pattern;
    bool large; /* scores so large that their own short sums count beside the rounding of P */
    double cut; /* of the error after 4 blocks, what one block may add to P's rounding */
} inputs[] = {{"normal", PATTERN_NORMAL, false, 0},
              {"one value in 1,000 is 50 times as large", PATTERN_OUTLIERS, true, 0},
              {"keys grow along the sequence", PATTERN_RISING, false, 0},
              {"the mean of V is 1", PATTERN_SHIFTED, false, 0.2}};
/* Where V has a mean, cuts do not cancel. Each step of 32 keys cuts its products by the sum so far: in a block of 4
 * steps by 1.5 parts of 4, in the 16 steps of 4 blocks by 7.5. So one block loses a fifth of what four do. */

struct table {
    const struct attention_data *data; /* WAYS of them, the same inputs */
    double squares[ATTENTION_THREADS]
                  [WAYS + 2]; /* of the errors; the ideal kernel's; the reference's */
};

struct sums_of {
    struct table *table;
    double *squares;
};

static void see(void *user, const struct attention_row *r)
{
    const struct sums_of *s = user;
    const double factor = 1 / (r->sum + r->sink);
    for (int64_t x = 0; x < r->columns; x++) {
        const double want = r->o[x] * factor;
        for (int n = 0; n < WAYS; n++) {
            const struct attention_data *d = &s->table->data[n];
            const size_t at = attention_q_row(d, &d->o, r->b, r->h, r->i) + (size_t)x;
            s->squares[n] += pow(attention_load(&d->o, at) - want, 2);
        }
        s->squares[WAYS] += pow(r->ideal[x] * factor - want, 2);
        s->squares[WAYS + 1] += want * want;
    }
}

/* Errors relative to the reference's norm; the last is the ideal kernel's. */
static bool errors(const struct attention_data data[WAYS], double relative[WAYS + 1])
{
    struct table t = {.data = data};
    struct sums_of sums[ATTENTION_THREADS];
    void *users[ATTENTION_THREADS];
    memset(t.squares, 0, sizeof t.squares);
    for (int n = 0; n < ATTENTION_THREADS; n++) {
        sums[n] = (struct sums_of){&t, t.squares[n]};
        users[n] = &sums[n];
    }
    if (!attention_reference(&data[0], see, users)) return false;
    for (int n = 0; n <= WAYS; n++) {
        double error = 0, norm = 0;
        for (int i = 0; i < ATTENTION_THREADS; i++)
            error += t.squares[i][n], norm += t.squares[i][WAYS + 1];
        relative[n] = sqrt(error / norm);
    }
    return true;
}

static bool run_ways(struct device *dev, struct attention_data data[WAYS], int64_t qk, int64_t keys,
                     int64_t pattern)
{
    struct attention_case c;
    bool done = true;
    attention_case_init(&c);
    c.in = HEWN_E4M3, c.out = HEWN_F32;
    c.qk = qk, c.source[0].sk = keys;
    c.pattern = pattern, c.splits = 1;
    for (int n = 0; n < WAYS; n++) {
        struct attention_run run = {0};
        c.promo = qk == 256 && blocks[n] > 1 ? 1 : blocks[n];
        done = done && attention_data_new(&data[n], &c);
        if (!done) continue;
        attention_run(dev, &data[n], &run);
        done = run.done;
        data[n].short_sums = false; /* its bounds are not wanted here */
    }
    return done;
}

void attention_promotion(struct device *dev, int64_t qk, int64_t keys)
{
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        struct attention_data data[WAYS];
        double e[WAYS + 1];
        if (!test_case("sums of %lld keys, %lld columns: %s", (long long)keys, (long long)qk,
                       inputs[i].name))
            continue;
        memset(data, 0, sizeof data);
        if (!run_ways(dev, data, qk, keys, inputs[i].pattern) || !errors(data, e)) {
            CHECK(false, "did not run");
        } else {
            printf("      errors, %%: never promoted %.3f, after 4 blocks %.3f, after 1 %.3f; P in "
                   "e4m3 "
                   "alone %.3f\n",
                   100 * e[0], 100 * e[1], 100 * e[2], 100 * e[WAYS]);
            CHECK(inputs[i].large || e[2] <= 1.25 * e[WAYS] + inputs[i].cut * e[1],
                  "after 1 block: %.3g, more than 1.25 times %.3g and %.1f times %.3g", e[2],
                  e[WAYS], inputs[i].cut, e[1]);
            CHECK(e[1] <= 1.02 * e[0] && e[2] <= 1.02 * e[1],
                  "errors grow where sums are promoted more often: %.4g, %.4g, %.4g", e[0], e[1],
                  e[2]);
        }
        for (int n = 0; n < WAYS; n++) attention_data_free(&data[n]);
    }
}
