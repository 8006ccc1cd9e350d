/* engine_route against float64, engine_place against a sort in C. */
#include "kernels.h"

#include <math.h>
#include <string.h>

enum logits {
    SPREAD,
    FEW_VALUES,
    ODD_VALUES
}; /* random; -1, 0 or 1; NaN and infinity among them */

struct route_case {
    const char *name;
    int rows, experts, choices, groups, kept;
    bool sigmoid, normed, bias, idle;
    enum logits logits;
    double scale;
};

struct data {
    struct array logits, bias, positions, choice, weights;
    int row;
};

enum { MOST = 1024 };

/* ---- the judge -- */

static void scores_of(const struct route_case *c, const float *logits, double *out)
{
    double most = -INFINITY, sum = 0;
    for (int e = 0; e < c->experts; e++) most = fmax(most, (double)logits[e]);
    for (int e = 0; e < c->experts; e++) {
        out[e] = c->sigmoid ? 1 / (1 + exp(-(double)logits[e])) : exp((double)logits[e] - most);
        sum += out[e];
    }
    for (int e = 0; e < c->experts && !c->sigmoid; e++) out[e] /= sum;
}

/* Chances outside the best groups become NaN. False: two groups are too near for f32 to tell. */
static bool keep_groups(const struct route_case *c, double *chance)
{
    const int each = c->experts / c->groups;
    double of[32];
    for (int g = 0; g < c->groups; g++) {
        double first = -INFINITY, second = -INFINITY;
        for (int e = g * each; e < (g + 1) * each; e++) {
            second = fmax(second, fmin(first, chance[e]));
            first = fmax(first, chance[e]);
        }
        of[g] = c->sigmoid ? first + second : first;
    }
    for (int g = 0; g < c->groups; g++) {
        int before = 0;
        for (int o = 0; o < c->groups; o++) {
            if (o != g && c->logits == SPREAD && fabs(of[o] - of[g]) < 1e-5) return false;
            before += of[o] > of[g] || (o < g && !(of[o] < of[g]));
        }
        for (int e = g * each; e < (g + 1) * each && before >= c->kept; e++) chance[e] = NAN;
    }
    return true;
}

/* Follows the device's choices: each is the best one left, or as good as f32 can tell. */
static double judge_choices(const struct route_case *c, const struct data *d, int r,
                            const double *score, double *chance)
{
    const int32_t *got = i32(&d->choice) + r * c->choices;
    double sum = 0;
    for (int j = 0; j < c->choices; j++) {
        int best = -1;
        for (int e = 0; e < c->experts; e++)
            if (!isnan(chance[e]) && (best < 0 || chance[e] > chance[best])) best = e;
        const bool known = got[j] >= 0 && got[j] < c->experts && !isnan(chance[got[j]]);
        CHECK(known, "row %d choice %d: %d was not to be chosen", r, j, got[j]);
        if (!known || best < 0) return -1;
        CHECK(got[j] == best || (c->logits != FEW_VALUES && !isinf(chance[best]) &&
                                 chance[got[j]] >= chance[best] - 2e-6),
              "row %d choice %d: %d of %.9g, not %d of %.9g", r, j, got[j], chance[got[j]], best,
              chance[best]);
        sum += score[got[j]];
        chance[got[j]] = NAN;
    }
    return sum;
}

static void judge_row(const struct route_case *c, const struct data *d, int r)
{
    const int32_t *got = i32(&d->choice) + r * c->choices;
    const float *weights = f32(&d->weights) + r * c->choices;
    double score[MOST], chance[MOST], sum;
    if (c->idle && i32(&d->positions)[r] < 0) {
        for (int j = 0; j < c->choices; j++)
            CHECK(got[j] == -1 && !(weights[j] < 0 || weights[j] > 0), "idle row %d: %d of %g", r,
                  got[j], (double)weights[j]);
        return;
    }
    scores_of(c, f32(&d->logits) + r * d->row, score);
    for (int e = 0; e < c->experts; e++) {
        chance[e] = score[e] + (c->bias ? (double)f32(&d->bias)[e] : 0);
        if (isnan(chance[e])) chance[e] = -INFINITY;
    }
    if (c->kept < c->groups && !keep_groups(c, chance)) return;
    sum = judge_choices(c, d, r, score, chance);
    for (int j = 0; j < c->choices && sum >= 0; j++) {
        const double of = c->normed ? sum + 1e-20 : 1, want = score[got[j]] / of * c->scale;
        CHECK(isnan(want) ? isnan(weights[j])
                          : fabs((double)weights[j] - want) <= 4e-6 * fabs(want) + 1e-30,
              "row %d weight %d: want %.9g got %.9g", r, j, want, (double)weights[j]);
    }
}

/* ---- cases -- */

static bool data_new(const struct route_case *c, struct data *d, struct rng *r)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 1000, -1000};
    const size_t rows = (size_t)c->rows, made = 4 * rows * (size_t)c->choices;
    memset(d, 0, sizeof *d);
    d->row = c->experts + 3;
    bool ready = array_new(&d->logits, 4 * rows * (size_t)d->row);
    ready = array_new(&d->bias, 4 * (size_t)c->experts) && ready;
    ready = array_new(&d->positions, 4 * rows) && ready;
    ready = array_new(&d->choice, made) && ready;
    ready = array_new(&d->weights, made) && ready;
    if (!ready) return false;
    for (int i = 0; i < c->rows * d->row; i++) {
        float *x = &f32(&d->logits)[i];
        *x = (float)rng_unit(r) * 4;
        if (c->logits == FEW_VALUES) *x = (float)rng_below(r, 3) - 1;
        if (c->logits == ODD_VALUES && !rng_below(r, 3)) *x = (float)odd[rng_below(r, 5)];
    }
    for (int e = 0; e < c->experts; e++)
        f32(&d->bias)[e] = c->logits == FEW_VALUES ? 0.5f : (float)rng_unit(r);
    for (int i = 0; i < c->rows; i++) i32(&d->positions)[i] = i % 3 == 1 ? -1 - i : 5 * i;
    return true;
}

static void run_route(struct bench *b, const struct route_case *c, uint64_t seed)
{
    struct rng r = {seed ^ test_seed()};
    struct data d;
    hewn_error err = {0};
    const bool ready = data_new(c, &d, &r);
    CHECK(ready, "no memory for the case");
    if (ready) {
        const struct engine_route a = {.logits = array_up(b, &d.logits),
                                       .bias = c->bias ? array_up(b, &d.bias) : 0,
                                       .positions = c->idle ? array_up(b, &d.positions) : 0,
                                       .choice = array_up(b, &d.choice),
                                       .weights = array_up(b, &d.weights),
                                       .rows = c->rows,
                                       .experts = c->experts,
                                       .choices = c->choices,
                                       .groups = c->groups,
                                       .groups_kept = c->kept,
                                       .logits_row = d.row,
                                       .sigmoid = c->sigmoid,
                                       .normed = c->normed,
                                       .scale = c->scale};
        if (launched(b, engine_route(&b->kernels, &a, NULL, &err), &err)) {
            array_down(b, &d.choice, "choice");
            array_down(b, &d.weights, "weights");
            for (int i = 0; i < c->rows; i++) judge_row(c, &d, i);
        }
    }
    array_free(b, &d.logits);
    array_free(b, &d.bias);
    array_free(b, &d.positions);
    array_free(b, &d.choice);
    array_free(b, &d.weights);
}

static struct route_case random_route(struct rng *r)
{
    struct route_case c = {.name = "random", .rows = 1 + (int)rng_below(r, 9)};
    c.groups = 1 + (int)rng_below(r, 32);
    c.experts = c.groups * (2 + (int)rng_below(r, (uint32_t)(MOST / c.groups - 1)));
    c.kept = 1 + (int)rng_below(r, (uint32_t)c.groups);
    c.choices = c.experts / c.groups * c.kept;
    c.choices = 1 + (int)rng_below(r, (uint32_t)(c.choices < 32 ? c.choices : 32));
    c.sigmoid = rng_below(r, 2);
    c.normed = rng_below(r, 2);
    c.bias = c.sigmoid && rng_below(r, 2);
    c.idle = rng_below(r, 3) == 0;
    c.logits = rng_below(r, 3) ? SPREAD : FEW_VALUES;
    c.scale = 2.5;
    return c;
}

void test_route(struct bench *b, int random)
{
    static const struct route_case cases[] = {
        {"DeepSeek-V3", 9, 256, 8, 8, 4, true, true, true, false, SPREAD, 2.5},
        {"DeepSeek-V2-Lite", 5, 64, 6, 1, 1, false, false, false, false, SPREAD, 1},
        {"DeepSeek-V2", 6, 160, 6, 8, 3, false, false, false, true, SPREAD, 16},
        {"one expert", 3, 1, 1, 1, 1, false, true, false, false, SPREAD, 1},
        {"equal scores", 8, 48, 5, 6, 2, true, true, true, false, FEW_VALUES, 1},
        {"the most of all", 4, 1024, 32, 32, 5, true, false, false, false, SPREAD, 1},
        {"idle rows, every expert", 7, 24, 24, 4, 4, true, true, false, true, SPREAD, 1},
        {"NaN and infinity", 8, 40, 20, 1, 1, true, false, false, false, ODD_VALUES, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (test_case("route: %s, %d of %d", cases[i].name, cases[i].choices, cases[i].experts))
            run_route(b, &cases[i], 600 + i);
    for (int i = 0; i < random; i++) {
        struct rng r = {test_seed() + 0x640000 + (uint64_t)i};
        const struct route_case c = random_route(&r);
        if (test_case("route: random %d, %d of %d", i, c.choices, c.experts))
            run_route(b, &c, r.state);
    }
}

/* ---- places -- */

static void judge_places(const struct array *choice, const struct array *offsets,
                         const struct array *index, const struct array *place, int rows,
                         int choices, int experts)
{
    int next = 0, wrong = 0;
    for (int e = 0; e < experts; e++) {
        CHECK_INT(i32(offsets)[e], next);
        for (int i = 0; i < rows * choices; i++) {
            if (i32(choice)[i] != e) continue;
            if (i32(place)[i] != next || i32(index)[next] != i / choices)
                CHECK(++wrong > 3, "choice %d of expert %d: place %d, not %d; its row %d, not %d",
                      i, e, i32(place)[i], next, i32(index)[next], i / choices);
            next++;
        }
    }
    CHECK_INT(i32(offsets)[experts], next);
    for (int i = 0; i < rows * choices; i++)
        if (i32(choice)[i] < 0 || i32(choice)[i] >= experts) CHECK_INT(i32(place)[i], -1);
    for (; next < rows * choices; next++) CHECK_INT(i32(index)[next], 0x5A5A5A5A);
}

static void run_place(struct bench *b, int rows, int choices, int experts, bool strange,
                      uint64_t seed)
{
    struct rng r = {seed ^ test_seed()};
    const size_t size = 4 * (size_t)(rows * choices);
    struct array choice, offsets, index, place;
    hewn_error err = {0};
    bool ready = array_new(&choice, size);
    ready = array_new(&offsets, 4 * (size_t)(experts + 1)) && ready;
    ready = array_new(&index, size) && ready;
    ready = array_new(&place, size) && ready;
    CHECK(ready, "no memory for the case");
    if (ready) {
        for (int i = 0; i < rows * choices; i++) {
            i32(&choice)[i] = (int32_t)rng_below(&r, (uint32_t)experts);
            if (strange && rng_below(&r, 3) == 0)
                i32(&choice)[i] = rng_below(&r, 2) ? -1 : experts + (int32_t)rng_below(&r, 3);
        }
        const struct engine_place a = {.choice = array_up(b, &choice),
                                       .offsets = array_up(b, &offsets),
                                       .index = array_up(b, &index),
                                       .place = array_up(b, &place),
                                       .rows = rows,
                                       .choices = choices,
                                       .experts = experts};
        if (launched(b, engine_place(&b->kernels, &a, NULL, &err), &err)) {
            array_down(b, &offsets, "offsets");
            array_down(b, &index, "index");
            array_down(b, &place, "place");
            judge_places(&choice, &offsets, &index, &place, rows, choices, experts);
        }
    }
    array_free(b, &choice);
    array_free(b, &offsets);
    array_free(b, &index);
    array_free(b, &place);
}

void test_place(struct bench *b, int random)
{
    static const struct {
        int rows, choices, experts;
        bool strange;
    } cases[] = {{1, 1, 1, false},  {4, 8, 256, false}, {33, 3, 7, true},
                 {32, 1, 8, false}, {41, 6, 17, true},  {0, 2, 9, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (test_case("place: %d rows, %d of %d", cases[i].rows, cases[i].choices,
                      cases[i].experts))
            run_place(b, cases[i].rows, cases[i].choices, cases[i].experts, cases[i].strange,
                      700 + i);
    for (int i = 0; i < random; i++) {
        struct rng r = {test_seed() + 0x750000 + (uint64_t)i};
        const int rows = (int)rng_below(&r, 60), choices = 1 + (int)rng_below(&r, 9);
        const int experts = 1 + (int)rng_below(&r, 40);
        if (test_case("place: random %d, %d rows, %d of %d", i, rows, choices, experts))
            run_place(b, rows, choices, experts, rng_below(&r, 2), r.state);
    }
}
