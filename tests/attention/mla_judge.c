#include "mla_case.h"

#include "lib/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ENOUGH = 1 << 14 /* roundings of P */, ROWS = 64 /* of the cache, that keys differ */ };

struct row {
    double p[2]; /* sums of exp(s - max): exact; of what the ideal kernel multiplies */
    double o[MLA_V], ideal[MLA_V], reach[MLA_V];
    double max, score; /* score; bound on rounded sums of one */
    int keys;
};

struct judge {
    const struct mla_data *d;
    double *c;          /* a sequence's cache rows as doubles; zeros outside the pool */
    double *scores;     /* of a row */
    int keys;           /* in c */
    double scale, code; /* the largest of their records */
    double whole, ideal, reference, samples;
    double worst, want, got;
    int worst_b, worst_row, worst_column, beyond;
    struct mla_figures figures;
};

static double step_at_one(int dtype)
{
    return dtype == HEWN_BF16 ? 0x1p-8 : dtype == HEWN_F16 ? 0x1p-11 : 0x1p-24;
}

static double smallest(int dtype)
{
    return dtype == HEWN_F16 ? 0x1p-25 : 0x1p-126;
}

static double round_to(int dtype, double x)
{
    if (dtype == HEWN_F32) return (double)(float)x;
    return dtype == HEWN_F16 ? f16_to_double(double_to_f16(x)) : bf16_to_double(double_to_bf16(x));
}

/* The keys of a sequence, or of a query that has a list, whose entries may be none. */
static void load_keys(struct judge *j, int b, int query)
{
    j->keys = 0;
    j->scale = j->code = 0;
    for (int key = 0; key < mla_keys(j->d, b, query); key++) {
        int64_t at = mla_row(j->d, b, query, key);
        double *to = j->c + (size_t)j->keys * MLA_QK;
        if (at >= 0 && j->d->exact) mla_extremes(j->d, at, &j->scale, &j->code);
        if (at >= 0)
            mla_key(j->d, at, to);
        else if (j->d->c.list)
            continue;
        else
            memset(to, 0, MLA_QK * sizeof *to);
        j->keys++;
    }
}

static void score_row(struct judge *j, struct row *r, int b, int row)
{
    const struct mla_case *c = &j->d->c;
    const int columns = mla_columns(c);
    const double scale = 1 / sqrt(columns);
    const uint16_t *bits = j->d->q + b * j->d->desc.q_batch + row * j->d->desc.q_head;
    double q[MLA_QK], q_norm = 0, c_norm = 0;
    for (int i = 0; i < columns; i++) {
        q[i] = mla_value(c->in, bits[i]);
        q_norm += q[i] * q[i];
    }
    r->keys = j->keys - (c->causal ? c->queries - 1 - row / c->heads : 0);
    r->max = -INFINITY;
    for (int key = 0; key < r->keys; key++) {
        const double *v = j->c + key * MLA_QK;
        double dot = 0, norm = 0;
        for (int i = 0; i < columns; i++) {
            dot += q[i] * v[i];
            norm += v[i] * v[i];
        }
        j->scores[key] = dot * scale;
        r->max = fmax(r->max, j->scores[key]);
        c_norm = fmax(c_norm, norm);
    }
    r->score = sqrt(q_norm * c_norm) * scale;
}

static void sum_row(struct judge *j, struct row *r, int number)
{
    /* between 1 and 2: what the largest of the ideal kernel's P is */
    const double up = exp2(fmod(number * 0.6180339887498949, 1));
    memset(r->p, 0, sizeof r->p);
    memset(r->o, 0, sizeof r->o);
    memset(r->ideal, 0, sizeof r->ideal);
    memset(r->reach, 0, sizeof r->reach);
    for (int key = 0; key < r->keys; key++) {
        const double *v = j->c + key * MLA_QK;
        double p = exp(j->scores[key] - r->max), near = round_to(j->d->c.in, up * p) / up;
        r->p[0] += p;
        for (int i = 0; i < MLA_V; i++) {
            r->o[i] += p * v[i];
            r->ideal[i] += near * v[i];
            r->reach[i] += p * fabs(v[i]);
        }
    }
}

static double output(const struct mla_data *d, int b, int row, int column)
{
    const hewn_mla_desc *x = &d->desc;
    int64_t at =
        b * x->o_batch + row / d->c.heads * x->o_token + row % d->c.heads * x->o_head + column;
    float f;
    uint16_t h;
    if (d->c.out == HEWN_F32) {
        memcpy(&f, d->o + 4 * at, sizeof f);
        return (double)f;
    }
    memcpy(&h, d->o + 2 * at, sizeof h);
    return mla_value(d->c.out, h);
}

static void judge_row(struct judge *j, const struct row *r, int b, int row)
{
    const struct mla_case *c = &j->d->c;
    int head = row % c->heads, query = row / c->heads;
    double sink = c->sink ? (double)j->d->sink[head] : -INFINITY;
    double top = fmax(r->max, sink), total = 0;
    if (r->keys > 0) total = r->p[0] * exp(r->max - top);
    if (isfinite(sink)) total += exp(sink - top);
    double part = r->keys > 0 ? exp(r->max - top) / total : 0;
    double near = step_at_one(c->in) + 0x1p-20 + 0x1p-22 * r->score + 0x1p-27 * fmax(r->keys, 0);
    double least = smallest(c->in) * fmax(r->keys, 0) * 8 + smallest(c->out);
    if (j->d->exact) least += 0x1p-34 * j->scale * j->code * fmax(r->keys, 0) * part;
    for (int i = 0; i < MLA_V; i++) {
        double want = r->keys > 0 ? r->o[i] * part : 0, got = output(j->d, b, row, i);
        double ideal = round_to(c->out, r->keys > 0 ? r->ideal[i] * part : 0);
        double bound = r->keys > 0 ? near * r->reach[i] * part : 0;
        double error = fabs(got - want) / (bound + step_at_one(c->out) * fabs(want) + least);
        j->whole += (got - want) * (got - want);
        j->ideal += (ideal - want) * (ideal - want);
        j->reference += want * want;
        if (!(error <= 1)) j->beyond++;
        if (!(error <= j->worst)) {
            j->worst = isnan(error) ? INFINITY : error;
            j->want = want;
            j->got = got;
            j->worst_b = b;
            j->worst_row = row;
            j->worst_column = i;
        }
    }
    if (r->keys > 0) j->samples += r->keys;
    if (!c->lse) return;
    double got = (double)j->d->lse[(b * c->heads + head) * c->queries + query];
    double want = total > 0 ? top + log(total) : -INFINITY;
    double room = 1e-5 + 0x1p-22 * (r->score + (isfinite(sink) ? fabs(sink) : 0));
    if (isfinite(want) && isfinite(got)) j->figures.lse = fmax(j->figures.lse, fabs(got - want));
    CHECK(got == want || fabs(got - want) <= room,
          "lse of sequence %d, head %d, query %d: want %g got %g", b, head, query, want, got);
}

/* Bytes of O that no row has keep their poison. */
static size_t touched(const struct mla_data *d)
{
    const hewn_mla_desc *x = &d->desc;
    size_t element = hewn_dtype_size(d->c.out), count = 0;
    unsigned char *used = calloc(1, d->o_bytes);
    if (!used) return 0;
    for (int b = 0; b < d->c.batch; b++)
        for (int row = 0; row < d->c.heads * d->c.queries; row++) {
            int64_t at =
                b * x->o_batch + row / d->c.heads * x->o_token + row % d->c.heads * x->o_head;
            memset(used + (size_t)at * element, 1, MLA_V * element);
        }
    for (size_t i = 0; i < d->o_bytes; i++) count += !used[i] && d->o[i] != MLA_POISON;
    free(used);
    return count;
}

struct mla_figures mla_judge(const struct mla_data *d)
{
    struct judge j = {.d = d};
    struct row r;
    const struct mla_case *c = &d->c;
    size_t most = (size_t)(d->pool[0].most + d->pool[1].most) + 1;
    j.c = calloc(most * MLA_QK, sizeof *j.c);
    j.scores = malloc(most * sizeof *j.scores);
    CHECK(j.c && j.scores, "no memory for the reference");
    for (int b = 0; j.c && j.scores && b < c->batch; b++) {
        for (int row = 0; row < c->heads * c->queries; row++) {
            if (row == 0 || (c->list && row % c->heads == 0)) load_keys(&j, b, row / c->heads);
            score_row(&j, &r, b, row);
            sum_row(&j, &r, b * c->heads * c->queries + row);
            judge_row(&j, &r, b, row);
        }
    }
    free(j.c);
    free(j.scores);
    CHECK(
        j.beyond == 0,
        "%d elements of O beyond the bound; worst, %.3g times it: sequence %d, head %d, query %d, "
        "column %d: want %g got %g",
        j.beyond, j.worst, j.worst_b, j.worst_row % c->heads, j.worst_row / c->heads,
        j.worst_column, j.want, j.got);
    size_t wrong = touched(d);
    CHECK(wrong == 0, "%zu bytes outside the rows of O were written", wrong);
    j.figures.error = j.reference > 0 ? sqrt(j.whole / j.reference) : sqrt(j.whole);
    j.figures.ideal = j.reference > 0 ? sqrt(j.ideal / j.reference) : sqrt(j.ideal);
    if (j.samples >= ENOUGH && c->sharp <= 2 && c->length >= ROWS)
        CHECK(j.figures.error <= 1.25 * j.figures.ideal,
              "error of O %.3g, more than 1.25 times that of rounding P and O alone, %.3g",
              j.figures.error, j.figures.ideal);
    return j.figures;
}
