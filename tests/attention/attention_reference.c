#include "attention_reference.h"

#include "lib/number.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 8 };

/* Keys and values of one (sequence, KV head), both sources behind each other, in panels of LANES:
 * keys[panel][dimension][lane] with lane the key, values[panel][key][lane] with lane the column. */
struct panels {
    const struct attention_data *d;
    int64_t b, kv_head, count, of_source[2];
    int64_t v;
    double *keys, *key_norm, *values, *value_norm;
    atomic_llong next_row;
};

struct worker {
    struct panels *panels;
    void (*see)(void *, const struct attention_row *);
    void *user;
    bool failed;
};

/* out[l] = sum over n of x[n] m[n][l]. Pairs by hand: left to themselves compilers shuffle here. */
typedef double pair __attribute__((vector_size(2 * sizeof(double)), may_alias));

static void product(const double *x, const double *m, int64_t n, double out[LANES])
{
    const pair *row = (const pair *)m; /* panels come from calloc, a row of one is 64 bytes */
    pair a = {0}, b = {0}, c = {0}, d = {0};
    for (int64_t i = 0; i < n; i++, row += LANES / 2) {
        a += x[i] * row[0];
        b += x[i] * row[1];
        c += x[i] * row[2];
        d += x[i] * row[3];
    }
    const pair sums[LANES / 2] = {a, b, c, d};
    memcpy(out, sums, sizeof sums);
}

/* ---- panels ---- */

static void panels_free(struct panels *p)
{
    free(p->keys);
    free(p->key_norm);
    free(p->values);
    free(p->value_norm);
}

static double load_key(const struct panels *p, const struct attention_tensor *t, size_t at,
                       int64_t n)
{
    double norm = 0;
    for (int64_t x = 0; x < t->columns; x++) {
        double value = attention_load(t, at + (size_t)x);
        p->keys[(n / LANES * t->columns + x) * LANES + n % LANES] = value;
        if (isfinite(value)) norm += value * value;
    }
    return sqrt(norm);
}

static double load_value(const struct panels *p, const struct attention_tensor *t, size_t at,
                         int64_t n, double scale)
{
    double norm = 0;
    for (int64_t x = 0; x < t->columns; x++) {
        double value = scale * attention_load(t, at + (size_t)x);
        p->values[(x / LANES * p->count + n) * LANES + x % LANES] = value;
        norm += value * value;
    }
    return sqrt(norm);
}

static bool panels_new(struct panels *p, const struct attention_data *d, int64_t b, int64_t kv_head)
{
    p->b = b, p->kv_head = kv_head, p->count = 0;
    for (int s = 0; s < 2; s++) {
        p->of_source[s] = s < d->c.sources ? attention_keys(d, s, b) : 0;
        p->count += p->of_source[s];
    }
    size_t padded = (size_t)(p->count + LANES);
    p->keys = calloc(padded * (size_t)d->c.qk, sizeof(double));
    p->values = calloc(padded * (size_t)p->v, sizeof(double));
    p->key_norm = calloc(padded, sizeof(double));
    p->value_norm = calloc(padded, sizeof(double));
    if (!p->keys || !p->values || !p->key_norm || !p->value_norm) return false;
    double scale = attention_value_scale(d, b, kv_head * (d->c.hq / d->c.hkv));
    for (int s = 0; s < d->c.sources; s++)
        for (int64_t j = 0; j < p->of_source[s]; j++) {
            int64_t n = s ? p->of_source[0] + j : j;
            p->key_norm[n] =
                load_key(p, &d->k[s], attention_kv_row(d, &d->k[s], s, b, kv_head, j), n);
            p->value_norm[n] =
                load_value(p, &d->v[s], attention_kv_row(d, &d->v[s], s, b, kv_head, j), n, scale);
        }
    return true;
}

/* ---- rows ---- */

struct scratch {
    double *q, *s, *p, *rounded, *cut, *o, *ideal;
    double q_norm;
    unsigned char *visible;
    int64_t first, last; /* visible keys lie in [first, last) */
    struct attention_row row;
    bool plain; /* has finite scores: P and O are to be had */
};

/* Rows that go through the panels together, so that these are read from memory once for all. */
enum { TOGETHER = 8 };

static bool scratch_new(struct scratch *w, const struct panels *p, int64_t qk)
{
    size_t n = (size_t)p->count + LANES, v = (size_t)p->v;
    double *all = calloc((size_t)qk + 4 * n + 2 * v, sizeof *all);
    w->visible = calloc(n, 1);
    w->q = all;
    if (!all || !w->visible) return false;
    w->s = w->q + qk, w->p = w->s + n, w->rounded = w->p + n;
    w->cut = w->rounded + n, w->o = w->cut + n, w->ideal = w->o + v;
    return true;
}

static void look(struct scratch *w, const struct panels *p, int64_t i)
{
    const int64_t n0 = p->of_source[0];
    w->first = p->count, w->last = 0;
    for (int64_t n = 0; n < p->count; n++) {
        w->visible[n] = n < n0 ? attention_visible(p->d, 0, p->b, i, n)
                               : attention_visible(p->d, 1, p->b, i, n - n0);
        if (!w->visible[n]) continue;
        if (n < w->first) w->first = n;
        w->last = n + 1;
    }
}

static void load_query(struct scratch *w, const struct panels *p)
{
    const struct attention_data *d = p->d;
    size_t at = attention_q_row(d, &d->q, w->row.b, w->row.h, w->row.i);
    w->q_norm = 0;
    for (int64_t x = 0; x < d->c.qk; x++) {
        w->q[x] = attention_load(&d->q, at + (size_t)x);
        w->q_norm += w->q[x] * w->q[x];
    }
}

/* The products of the panels that have a visible key, not yet scaled. */
static void multiply_keys(struct scratch *w, int rows, const struct panels *p)
{
    const int64_t qk = p->d->c.qk;
    for (int64_t n = 0; n < p->count; n += LANES)
        for (int i = 0; i < rows; i++)
            if (n + LANES > w[i].first && n < w[i].last)
                product(w[i].q, p->keys + n * qk, qk, w[i].s + n);
}

/* What sums of 13 fraction bits may take from a product, or add to it: of hardware's rule for 8-bit
 * floats (measured: tools/sim/SEMANTICS.md). An instruction adds 32 products and the sum so far. The
 * largest exponent among them sets the last place, 13 bits below it; that of a product is the sum of its
 * factors'. Each term is truncated there, and their sum 13 bits below its own exponent. So a product loses
 * exactly its bits below the last place, towards zero: few do, since they have 6 fraction bits. The sum so
 * far loses less than one place, and so does the result. m: the key, LANES apart. */
enum { MMA_BLOCK_8 = 32, SHORT_FRACTION = 13, LEAST_E4M3 = -6 };

static int exponent_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 52 & 0x7FF) - 1023;
}

/* Subnormals count with the smallest normal exponent. */
static int exponent_of_factor(double x)
{
    int e = exponent_of(x);
    return e < LEAST_E4M3 ? LEAST_E4M3 : e;
}

struct cut {
    double less, more; /* hardware's sum is at least sum - less, and at most sum + more */
};

/* Towards zero. */
static void add_cut(struct cut *c, double value, double by)
{
    if (value > 0)
        c->less += by;
    else
        c->more += by;
}

static double largest_of(const struct cut *c)
{
    return fmax(c->less, c->more);
}

static double cut_of_product(const double *q, const double *m, int64_t qk)
{
    double sum = 0;
    struct cut c = {0, 0};
    for (int64_t begin = 0; begin < qk; begin += MMA_BLOCK_8) {
        const int64_t end = begin + MMA_BLOCK_8 < qk ? begin + MMA_BLOCK_8 : qk;
        int top = begin ? exponent_of(fabs(sum) + largest_of(&c)) : LEAST_E4M3 * 2;
        for (int64_t x = begin; x < end; x++) {
            const int e = exponent_of_factor(q[x]) + exponent_of_factor(m[x * LANES]);
            if (e > top && q[x] * m[x * LANES] != 0) top = e;
        }
        const double place = ldexp(1.0, top - SHORT_FRACTION), before = sum;
        for (int64_t x = begin; x < end; x++) {
            const double one = q[x] * m[x * LANES];
            add_cut(&c, one, fabs(one) - place * floor(fabs(one) / place));
            sum += one;
        }
        const double wide = largest_of(&c);
        if (begin && before + wide > 0) c.less += place;
        if (begin && before - wide < 0) c.more += place;
        const double last = ldexp(1.0, exponent_of(fabs(sum) + wide + place) - SHORT_FRACTION);
        if (sum + wide > 0) c.less += last;
        if (sum - wide < 0) c.more += last;
    }
    return largest_of(&c);
}

/* Of each score of the row; the largest. */
static double find_cuts(struct scratch *w, const struct panels *p, double scale)
{
    const int64_t qk = p->d->c.qk;
    double most = 0;
    for (int64_t n = w->first; n < w->last; n++) {
        w->cut[n] = 0;
        if (!w->visible[n]) continue;
        double cut = scale * cut_of_product(w->q, p->keys + n / LANES * LANES * qk + n % LANES, qk);
        if (!isfinite(cut)) continue;
        w->cut[n] = cut;
        if (cut > most) most = cut;
    }
    return most;
}

/* What the cuts may do to the logarithm of the row's sum. */
static double cut_of_lse(const struct scratch *w, const struct attention_row *r)
{
    double more = 0;
    for (int64_t n = w->first; n < w->last; n++) more += w->p[n] * expm1(w->cut[n]);
    return log1p(more / r->sum);
}

/* Scores; the row's maximum and what is special. */
static void score(struct scratch *w, const struct panels *p, struct attention_row *r)
{
    const double scale = attention_score_scale(p->d, r->b, r->h), cap = p->d->desc.softcap;
    double k_norm = 0;
    r->max = -(double)INFINITY;
    for (int64_t n = w->first; n < w->last; n++) {
        w->s[n] *= scale;
        if (cap > 0) w->s[n] = cap * tanh(w->s[n] / cap);
        if (!w->visible[n]) continue;
        r->keys++;
        if (isnan(w->s[n]) || w->s[n] == (double)INFINITY) r->poisoned = true;
        if (w->s[n] > r->max) r->max = w->s[n];
        if (p->key_norm[n] > k_norm) k_norm = p->key_norm[n];
    }
    r->empty = r->keys == 0;
    r->undefined = !r->empty && !r->poisoned && isinf(r->max);
    r->score = scale * sqrt(w->q_norm) * k_norm + 2 * cap; /* 2^-21 of the cap */
    if (p->d->short_sums) r->cut = find_cuts(w, p, scale);
}

/* P, exactly and rounded; its sum, and what rounding may do. */
static void weigh(struct scratch *w, const struct panels *p, struct attention_row *r)
{
    const int in = p->d->desc.in;
    const double unit = in == HEWN_E4M3 ? 256.0 : 1.0;
    const struct number_format f = number_format(in);
    const double least = ldexp(1.0, f.least - f.fraction) / unit; /* the smallest step of P */
    /* a step is 2^-fraction of p's binade; 0.541 is the mean of its square over where in a binade p
     * may stand, 1/12 what rounding to nearest makes of a step */
    const double relative = ldexp(sqrt(0.541), -f.fraction);
    double squares = 0;
    for (int64_t n = w->first; n < w->last; n++) {
        const double e = w->visible[n] ? exp(w->s[n] - r->max) : 0.0;
        w->p[n] = e;
        w->rounded[n] = number_round(in, e * unit) / unit;
        if (!w->visible[n]) continue;
        const double step = fmax(e * relative, least) * p->value_norm[n];
        r->sum += e;
        r->reach += e * p->value_norm[n];
        r->floor += least / 2 * p->value_norm[n];
        r->variance += step * step / 12;
        squares += step * step * step * step / 144;
    }
    r->samples = squares > 0 ? fmin((double)p->v, r->variance * r->variance / squares) : 0;
}

static void multiply_values(struct scratch *w, int rows, const struct panels *p)
{
    for (int64_t x = 0; x < p->v; x += LANES)
        for (int i = 0; i < rows; i++) {
            const int64_t first = w[i].first, n = w[i].last - first;
            const double *values = p->values + (x / LANES * p->count + first) * LANES;
            if (!w[i].plain) continue;
            product(w[i].p + first, values, n, w[i].o + x);
            product(w[i].rounded + first, values, n, w[i].ideal + x);
        }
}

/* What the scores alone decide; what a row without P has. */
static void finish_scores(struct scratch *w, const struct panels *p)
{
    const struct attention_data *d = p->d;
    struct attention_row *r = &w->row;
    double sink = d->sink ? (double)d->sink[r->h] : -(double)INFINITY;
    r->columns = p->v, r->o = w->o, r->ideal = w->ideal;
    score(w, p, r);
    w->plain = !r->empty && !r->poisoned && !r->undefined;
    if (w->plain) {
        weigh(w, p, r);
        if (d->short_sums) r->lse_cut = cut_of_lse(w, r);
        r->sink = exp(sink - r->max);
        r->lse = log(r->sum + r->sink) + r->max;
        return;
    }
    memset(w->o, 0, (size_t)p->v * sizeof *w->o);
    memset(w->ideal, 0, (size_t)p->v * sizeof *w->ideal);
    r->lse = r->empty ? sink : (double)NAN;
    if (r->empty) r->max = 0;
}

static void *work(void *argument)
{
    struct worker *me = argument;
    struct panels *p = me->panels;
    const int64_t group = p->d->c.hq / p->d->c.hkv;
    const int64_t all = attention_queries(p->d, p->b) * group;
    struct scratch w[TOGETHER];
    memset(w, 0, sizeof w);
    for (int i = 0; i < TOGETHER; i++) me->failed |= !scratch_new(&w[i], p, p->d->c.qk);
    for (int64_t n; !me->failed && (n = atomic_fetch_add(&p->next_row, TOGETHER)) < all;) {
        const int rows = all - n < TOGETHER ? (int)(all - n) : TOGETHER;
        for (int i = 0; i < rows; i++) {
            const int64_t row = n + i;
            w[i].row = (struct attention_row){
                .b = p->b, .h = p->kv_head * group + row % group, .i = row / group};
            look(&w[i], p, w[i].row.i);
            load_query(&w[i], p);
        }
        multiply_keys(w, rows, p);
        for (int i = 0; i < rows; i++) finish_scores(&w[i], p);
        multiply_values(w, rows, p);
        for (int i = 0; i < rows; i++) me->see(me->user, &w[i].row);
    }
    for (int i = 0; i < TOGETHER; i++) {
        free(w[i].q);
        free(w[i].visible);
    }
    return NULL;
}

/* A second thread only where it earns its start. */
static bool share(struct panels *p, struct worker workers[ATTENTION_THREADS])
{
    pthread_t threads[ATTENTION_THREADS];
    const int64_t rows = attention_queries(p->d, p->b) * (p->d->c.hq / p->d->c.hkv);
    int started = 1, wanted = rows * p->count * p->v > 1 << 20 ? ATTENTION_THREADS : 1;
    bool ok = true;
    atomic_store(&p->next_row, 0);
    while (started < wanted && !pthread_create(&threads[started], NULL, work, &workers[started]))
        started++;
    work(&workers[0]);
    for (int t = 1; t < started; t++) pthread_join(threads[t], NULL);
    for (int t = 0; t < started; t++) ok = ok && !workers[t].failed;
    return ok;
}

bool attention_reference(const struct attention_data *d,
                         void (*see)(void *user, const struct attention_row *row),
                         void *const *user)
{
    struct panels p = {.d = d, .v = attention_v_dim(&d->c)};
    struct worker workers[ATTENTION_THREADS];
    bool ok = true;
    for (int t = 0; t < ATTENTION_THREADS; t++)
        workers[t] = (struct worker){.panels = &p, .see = see, .user = user[t]};
    for (int64_t b = 0; ok && b < d->c.b; b++)
        for (int64_t kv_head = 0; ok && kv_head < d->c.hkv; kv_head++) {
            ok = panels_new(&p, d, b, kv_head) && share(&p, workers);
            panels_free(&p);
        }
    return ok;
}
