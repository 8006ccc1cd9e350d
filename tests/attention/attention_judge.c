#include "attention_judge.h"

#include "lib/number.h"
#include "attention_reference.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAP = 32 };

struct place {
    double excess, want, got; /* excess: as a multiple of what is allowed */
    int64_t b, h, i, column;
};

/* Squares and products over elements: of the errors, of the values. */
struct sums {
    double error, ideal, reference, got, dot, ideal_size, ideal_dot;
};

struct tally {
    const struct attention_data *d;
    struct sums sums;
    double expected, fourths; /* variance of rounding, and its squares over their samples */
    double scores;            /* what fp32 scores may bring, squared, over 2^-44 */
    int64_t rows, specials, rows_beyond, lse_beyond, max_beyond;
    double lse_error;
    struct place worst, worst_lse, worst_max;
    char map[MAP + 1];
    int64_t map_from;
};

static void keep_worst(struct place *worst, struct place p)
{
    if (p.excess > worst->excess || isnan(p.excess)) *worst = p;
}

static double got_at(const struct attention_data *d, const struct attention_row *r, int64_t column)
{
    const size_t at = attention_q_row(d, &d->o, r->b, r->h, r->i) + (size_t)column;
    return attention_output_scale(d) * attention_load(&d->o, at);
}

/* ---- lse and row_max ---- */

static double size_of_scores(const struct attention_data *d, const struct attention_row *r)
{
    bool sink = d->sink && isfinite(d->sink[r->h]);
    return r->score + (sink ? fabs((double)d->sink[r->h]) : 0);
}

static double slack_of_scores(const struct attention_data *d, const struct attention_row *r)
{
    return 1e-5 + 0x1p-22 * size_of_scores(d, r);
}

static void see_lse(struct tally *t, const struct attention_row *r)
{
    const struct attention_data *d = t->d;
    double got = (double)d->lse[attention_lse_index(d, r->b, r->h, r->i)], excess;
    if (r->poisoned) {
        excess = isnan(got) || got == (double)INFINITY ? 0 : (double)INFINITY;
    } else if (isinf(r->lse)) {
        excess = got == r->lse ? 0 : (double)INFINITY;
    } else {
        double error = fabs(got - r->lse);
        excess = isfinite(got) ? error / (slack_of_scores(d, r) + r->lse_cut) : (double)INFINITY;
        if (error > t->lse_error) t->lse_error = error;
    }
    if (excess > 1) t->lse_beyond++;
    keep_worst(&t->worst_lse, (struct place){excess, r->lse, got, r->b, r->h, r->i, 0});
}

/* What the kernel's sums are relative to, for rows that are not normalised. */
static double see_row_max(struct tally *t, const struct attention_row *r)
{
    const struct attention_data *d = t->d;
    double got = (double)d->row_max[attention_lse_index(d, r->b, r->h, r->i)];
    double slack = r->empty ? 0 : slack_of_scores(d, r) + r->cut,
           below = r->empty ? 0 : 8 * log(2.0);
    if (r->poisoned) return r->max;
    if (!(got <= r->max + slack && got >= r->max - below - slack)) {
        t->max_beyond++;
        keep_worst(&t->worst_max, (struct place){1, r->max, got, r->b, r->h, r->i, 0});
        return r->max;
    }
    return got;
}

/* ---- O ---- */

static bool is_special(double want, double got)
{
    return isnan(want) != isnan(got) || (!isnan(want) && isfinite(want) != isfinite(got));
}

/* One line of x and . around the worst element of a row: x is beyond its share of the row's bound. */
static void draw_map(struct tally *t, const struct attention_row *r, double factor, double share)
{
    int64_t from = t->worst.column < MAP / 2 ? 0 : t->worst.column - MAP / 2;
    int n = 0;
    for (int64_t x = from; x < r->columns && n < MAP; x++) {
        double want = r->poisoned ? (double)NAN : r->o[x] * factor, got = got_at(t->d, r, x);
        bool bad = is_special(want, got) || fabs(got - want) > share;
        t->map[n++] = bad ? 'x' : '.';
    }
    t->map[n] = '\0';
    t->map_from = from;
}

/* How many 32s of keys each short sum has at most. */
static double short_sums_of(const struct attention_data *d, const struct attention_row *r)
{
    double all = (double)r->keys / 32 + 16;
    return d->desc.promotion > 0 ? fmin(all, 4.0 * d->desc.promotion) : all;
}

static double row_bound(const struct attention_data *d, const struct attention_row *r,
                        double factor, double norm)
{
    const struct number_format p = number_format(d->desc.in), o = number_format(d->desc.out);
    double fp32 = 0x1p-20 + 0x1p-22 * r->score + 0x1p-27 * (double)r->keys;
    if (d->short_sums) fp32 += expm1(2 * r->cut) + 34 * 0x1p-13 * short_sums_of(d, r);
    return factor * ((ldexp(0.5, -p.fraction) + fp32) * r->reach + r->floor) +
           ldexp(0.5, -o.fraction) * norm +
           ldexp(0.5, o.least - o.fraction) * sqrt((double)r->columns) * attention_output_scale(d);
}

static void add_variance(struct tally *t, double variance, double samples)
{
    t->expected += variance;
    if (samples > 0) t->fourths += variance * variance / samples;
}

static void see_element(struct sums *s, double want, double got, double ideal)
{
    s->error += (got - want) * (got - want);
    s->ideal += (ideal - want) * (ideal - want);
    s->reference += want * want;
    s->got += got * got;
    s->dot += got * want;
    s->ideal_size += ideal * ideal;
    s->ideal_dot += ideal * want;
}

static void add_sums(struct sums *to, const struct sums *u, double weight)
{
    to->error += weight * u->error, to->ideal += weight * u->ideal;
    to->reference += weight * u->reference, to->got += weight * u->got;
    to->dot += weight * u->dot, to->ideal_size += weight * u->ideal_size;
    to->ideal_dot += weight * u->ideal_dot;
}

/* A row of O, which is `factor` times the reference's sums; `weight`: of its squares in the whole. */
static void see_output(struct tally *t, const struct attention_row *r, double factor, double weight)
{
    const struct attention_data *d = t->d;
    const int out = d->desc.out;
    const double unit = attention_output_scale(d);
    double biggest = 0, variance = 0;
    struct sums s = {0};
    struct place worst = {0, 0, 0, r->b, r->h, r->i, 0};
    int64_t specials = 0;
    for (int64_t x = 0; x < r->columns; x++) {
        double want = r->poisoned ? (double)NAN : r->o[x] * factor, got = got_at(d, r, x);
        if (out == HEWN_F16 && fabs(want) > 65000.0) continue; /* either side of overflow */
        bool special = is_special(want, got);
        if (special ? specials++ == 0 : fabs(got - want) > biggest && !specials) {
            biggest = fabs(got - want);
            worst = (struct place){0, want, got, r->b, r->h, r->i, x};
        }
        if (special || isnan(want)) continue;
        double step = 2 * unit * number_half_step(out, want / unit);
        variance += step * step / 12;
        see_element(&s, want, got, unit * number_round(out, r->ideal[x] * factor / unit));
    }
    add_sums(&t->sums, &s, weight);
    add_variance(t, weight * variance, (double)r->columns);
    if (s.reference > 0)
        t->scores += pow(size_of_scores(d, r) + 0x1p22 * r->cut, 2) * weight * s.reference;
    if (r->poisoned && !specials) return;
    double bound = r->poisoned ? 0 : row_bound(d, r, factor, sqrt(s.reference));
    worst.excess = specials ? (double)INFINITY : s.error > 0 ? sqrt(s.error) / bound : 0;
    t->specials += specials;
    t->rows_beyond += worst.excess > 1;
    if (!(worst.excess > t->worst.excess)) return;
    t->worst = worst;
    draw_map(t, r, factor, bound / sqrt((double)r->columns));
}

static void see(void *user, const struct attention_row *r)
{
    struct tally *t = user;
    const struct attention_data *d = t->d;
    bool finite = !r->empty && !r->poisoned;
    double normal = finite ? 1 / (r->sum + r->sink) : 1, factor = normal;
    t->rows++;
    if (r->undefined) return;
    if (d->c.lse) see_lse(t, r);
    if (d->row_max) {
        double reference = see_row_max(t, r);
        if (finite) factor = exp(r->max - reference);
    }
    /* rows count as if they were normalised */
    see_output(t, r, factor, normal / factor * (normal / factor));
    if (!finite) return;
    add_variance(t, normal * normal * r->variance, r->samples);
}

static void add(struct tally *t, const struct tally *u)
{
    add_sums(&t->sums, &u->sums, 1);
    t->expected += u->expected, t->fourths += u->fourths;
    t->scores += u->scores;
    t->rows += u->rows, t->specials += u->specials, t->rows_beyond += u->rows_beyond;
    t->lse_beyond += u->lse_beyond, t->max_beyond += u->max_beyond;
    t->lse_error = fmax(t->lse_error, u->lse_error);
    if (u->worst.excess > t->worst.excess) {
        t->worst = u->worst;
        t->map_from = u->map_from;
        memcpy(t->map, u->map, sizeof t->map);
    }
    keep_worst(&t->worst_lse, u->worst_lse);
    keep_worst(&t->worst_max, u->worst_max);
}

/* ---- the rules ---- */

enum { SAMPLES_FOR_STRICT = 400 };

static bool usual(const struct attention_case *c)
{
    return c->pattern == PATTERN_NORMAL && c->peak == 100 && c->scale == 0 && !c->qs && !c->ks;
}

static void report_place(const char *what, const struct place *p)
{
    CHECK(false, "%s b=%lld h=%lld token=%lld column=%lld want %.9g got %.9g, %.3g x its bound",
          what, (long long)p->b, (long long)p->h, (long long)p->i, (long long)p->column, p->want,
          p->got, p->excess);
}

static void judge_output(const struct tally *t, const struct attention_figures *f, bool strict)
{
    int64_t columns = attention_v_dim(&t->d->c), rows = t->rows;
    bool whole = f->error <= f->limit, each = t->rows_beyond == 0;
    CHECK(whole, "O     relative error %.4g, ideal kernel %.4g, limit %.4g (rule: %s); N %.0f",
          f->error, f->ideal, f->limit,
          strict ? "1.25 x ideal + 2^-22" : "attention_judge.h, 1 + 5/sqrt(N)", f->samples);
    CHECK(
        each,
        "O     %lld/%lld rows beyond the bound (rule: attention_judge.h); nan/inf mismatches %lld",
        (long long)t->rows_beyond, (long long)rows, (long long)t->specials);
    if (whole && each) return;
    report_place("worst", &t->worst);
    CHECK(false, "map   row %lld, cols %lld.. of %lld: %s", (long long)t->worst.i,
          (long long)t->map_from, (long long)columns, t->map);
}

static double cosine(double dot, double size, double other)
{
    return dot > 0 ? dot / sqrt(size * other) : 0;
}

static void judge_rest(const struct tally *t, const struct attention_figures *f, bool strict)
{
    double ideal = cosine(t->sums.ideal_dot, t->sums.ideal_size, t->sums.reference);
    if (strict && 1 - ideal <= 0.8 * (1 - 0.999998))
        CHECK(f->cosine >= 0.999998, "cosine %.8f below 0.999998", f->cosine);
    CHECK(t->lse_beyond == 0, "lse   %lld/%lld beyond the bound (rule: attention_judge.h)",
          (long long)t->lse_beyond, (long long)t->rows);
    if (t->lse_beyond) report_place("worst lse", &t->worst_lse);
    CHECK(t->max_beyond == 0, "row_max %lld/%lld outside [max - 8 ln 2, max]",
          (long long)t->max_beyond, (long long)t->rows);
    if (t->max_beyond) report_place("worst row_max", &t->worst_max);
}

struct attention_figures attention_judge(const struct attention_data *d)
{
    struct tally tallies[ATTENTION_THREADS], *t = &tallies[0];
    void *users[ATTENTION_THREADS];
    struct attention_figures f = {0};
    int64_t rows = 0;
    memset(tallies, 0, sizeof tallies);
    for (int n = 0; n < ATTENTION_THREADS; n++) tallies[n].d = d, users[n] = &tallies[n];
    for (int64_t b = 0; b < d->c.b; b++) rows += attention_queries(d, b) * d->c.hq;
    bool ok = attention_reference(d, see, users);
    for (int n = 1; n < ATTENTION_THREADS; n++) add(t, &tallies[n]);
    CHECK(ok, "no host memory for the reference");
    CHECK(t->rows == rows, "compared %lld rows of %lld", (long long)t->rows, (long long)rows);
    f.samples = t->fourths > 0 ? t->expected * t->expected / t->fourths : 0;
    bool strict =
        usual(&d->c) && f.samples >= SAMPLES_FOR_STRICT && t->sums.ideal >= 0.9 * t->expected;
    double norm = t->sums.reference > 0 ? sqrt(t->sums.reference) : 1;
    f.error = sqrt(t->sums.error) / norm;
    f.ideal = sqrt(t->sums.ideal) / norm;
    f.cosine = cosine(t->sums.dot, t->sums.got, t->sums.reference);
    f.lse = t->lse_error;
    f.limit = 1.25 * f.ideal + 0x1p-22;
    if (!strict)
        f.limit =
            fmax(1.25, 1 + 5 / sqrt(fmax(1, f.samples))) * fmax(f.ideal, sqrt(t->expected) / norm) +
            0x1p-22 * (1 + sqrt(t->scores) / norm);
    judge_output(t, &f, strict);
    judge_rest(t, &f, strict);
    return f;
}
