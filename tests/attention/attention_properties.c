/*
 * Properties of hewn_attention that need more than one run or damaged inputs:
 *   - normalised O is unnormalised O * exp(row_max - lse)
 *   - merging splits costs no more than fp32 sums
 *   - equal inputs give equal bits, on any number of SMs
 *   - where invariant, a sequence alone has the bits that it has in a batch
 *   - NaN stays where hewn.h says
 *   - what breaks the rules of lengths and tables is empty or zero
 */
#include "attention_properties.h"

#include "attention_judge.h"
#include "lib/number.h"
#include "attention_run.h"
#include "lib/harness.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool start(struct attention_data *d, const char *text)
{
    struct attention_case c;
    char word[64];
    bool ok = attention_case_parse(&c, text, word);
    CHECK(ok, "'%s' is not understood", word);
    memset(d, 0, sizeof *d);
    if (ok) ok = attention_data_new(d, &c);
    CHECK(ok, "no host memory for the case");
    return ok;
}

static bool run(struct device *dev, struct attention_data *d)
{
    struct attention_run r = {0};
    attention_run(dev, d, &r);
    return r.done;
}

static double output(const struct attention_data *d, int64_t b, int64_t h, int64_t i, int64_t x)
{
    return attention_load(&d->o, attention_q_row(d, &d->o, b, h, i) + (size_t)x);
}

/* ---- one output rounding ---- */

/* lse is fp32 itself: exp(row_max - lse) is known to 2^-18 where |lse| < 64. */
static void compare_normalised(const struct attention_data *raw, const struct attention_data *n)
{
    int64_t beyond = 0, elements = 0;
    for (int64_t b = 0; b < n->c.b; b++)
        for (int64_t h = 0; h < n->c.hq; h++)
            for (int64_t i = 0; i < attention_queries(n, b); i++) {
                size_t at = attention_lse_index(n, b, h, i);
                double factor = isinf(raw->lse[at])
                                    ? 1.0
                                    : exp((double)raw->row_max[at] - (double)raw->lse[at]);
                for (int64_t x = 0; x < n->o.columns; x++) {
                    double want = output(raw, b, h, i, x) * factor, got = output(n, b, h, i, x);
                    double bound = number_half_step(n->o.dtype, want) + 0x1p-18 * fabs(want);
                    elements++;
                    if (fabs(got - want) <= bound) continue;
                    if (beyond++ == 0)
                        CHECK(false,
                              "b=%lld h=%lld token=%lld column=%lld want %.9g got %.9g (rule: one "
                              "output rounding and 2^-18 of lse's)",
                              (long long)b, (long long)h, (long long)i, (long long)x, want, got);
                }
            }
    CHECK(beyond == 0, "%lld of %lld elements beyond", (long long)beyond, (long long)elements);
}

static void normalised(struct device *dev, const char *text)
{
    struct attention_data raw, n;
    char all[ATTENTION_TEXT];
    snprintf(all, sizeof all, "%s unnorm=1 out=f32 splits=1", text);
    if (start(&raw, all) && run(dev, &raw)) {
        static const char *const outs[] = {"f32", "f16", "bf16"};
        for (int o = 0; o < 3; o++) {
            snprintf(all, sizeof all, "%s out=%s splits=1", text, outs[o]);
            if (start(&n, all) && run(dev, &n)) compare_normalised(&raw, &n);
            attention_data_free(&n);
        }
    }
    attention_data_free(&raw);
}

/* ---- splits ---- */

/* Scores that are multiples of ln 2, so that P is a power of two relative to any maximum and rounding
 * it changes nothing: Q has one 1 in a row, K small integers, the scale is ln 2. */
static void exact_scores(struct attention_data *d)
{
    struct rng r = {(uint64_t)d->c.data};
    d->desc.scale = log(2.0);
    d->c.scale = 1; /* d->desc.scale counts */
    for (int64_t h = 0; h < d->c.hq; h++)
        for (int64_t i = 0; i < d->c.sq; i++)
            for (int64_t x = 0; x < d->c.qk; x++)
                attention_store(&d->q, attention_q_row(d, &d->q, 0, h, i) + (size_t)x,
                                x == (h + i) % d->c.qk ? 1.0 : 0.0);
    for (int64_t h = 0; h < d->c.hkv; h++)
        for (int64_t j = 0; j < d->c.source[0].sk; j++)
            for (int64_t x = 0; x < d->c.qk; x++)
                attention_store(&d->k[0], attention_kv_row(d, &d->k[0], 0, 0, h, j) + (size_t)x,
                                (double)rng_below(&r, 6) - 4.0);
}

/* Sums of `keys` terms in fp32, in whatever order, of numbers of the size of 1. Short sums are cut to
 * 13 bits each 32 keys, in either of two. Sums of P in e4m3 are 2^8 as large, their log2 above 16. */
static void compare_splits(const struct attention_data *one, const struct attention_data *many)
{
    double bound = 0x1p-20 + 0x1p-25 * (double)one->c.source[0].sk, worst = 0, lse = 0;
    const double ulp = one->c.in == HEWN_E4M3 ? 0x1p-19 : 0x1p-20;
    if (one->short_sums) bound += 2 * 0x1p-13 * (double)one->c.source[0].sk / 32;
    for (int64_t h = 0; h < one->c.hq; h++)
        for (int64_t i = 0; i < one->c.sq; i++) {
            size_t at = attention_lse_index(one, 0, h, i);
            lse = fmax(lse, fabs((double)one->lse[at] - (double)many->lse[at]));
            for (int64_t x = 0; x < one->o.columns; x++)
                worst = fmax(worst, fabs(output(one, 0, h, i, x) - output(many, 0, h, i, x)));
        }
    CHECK(worst <= bound, "O differs by %.3g, bound %.3g", worst, bound);
    CHECK(lse <= ulp, "lse differs by %.3g, bound %.3g", lse, ulp);
}

static void splits(struct device *dev, const char *text)
{
    struct attention_data one, many;
    char all[ATTENTION_TEXT];
    snprintf(all, sizeof all, "%s splits=1", text);
    if (start(&one, all)) {
        exact_scores(&one);
        bool ran = run(dev, &one);
        if (ran) attention_judge(&one);
        for (int n = 2; ran && n < 8; n += 2) {
            snprintf(all, sizeof all, "%s splits=%d", text, n);
            if (start(&many, all)) {
                exact_scores(&many);
                if (run(dev, &many)) compare_splits(&one, &many);
            }
            attention_data_free(&many);
        }
    }
    attention_data_free(&one);
}

/* ---- scores far from 0 ---- */

enum { FAR_OTHERS = 3 }; /* of so many keys one has the largest score */

/* The keys of the second half have larger scores than those of the first, and the score of each third key is the largest of its
 * half: numbers of 2^33 and more, where neighbouring fp32 are hundreds apart. Rows of odd heads have scores near 0 with the same keys. */
static void far_inputs(struct attention_data *d)
{
    const double top = d->c.kv == HEWN_E4M3 ? 448 : 13926, large = 5325;
    d->desc.scale = d->c.kv == HEWN_E4M3 ? 64 : 1;
    d->c.scale = 1; /* d->desc.scale counts */
    for (int64_t h = 0; h < d->c.hq; h++)
        for (int64_t i = 0; i < d->c.sq; i++)
            for (int64_t x = 0; x < d->c.qk; x++)
                attention_store(&d->q, attention_q_row(d, &d->q, 0, h, i) + (size_t)x,
                                h % 2 == 0 ? large
                                : x == 0   ? 0x1p-12
                                           : 0.0);
    for (int64_t h = 0; h < d->c.hkv; h++)
        for (int64_t j = 0; j < d->c.source[0].sk; j++)
            for (int64_t x = 0; x < d->c.qk; x++)
                attention_store(&d->k[0], attention_kv_row(d, &d->k[0], 0, 0, h, j) + (size_t)x,
                                (j % FAR_OTHERS == 0 ? top : -top) *
                                    (2 * j < d->c.source[0].sk ? 0.5 : 1.0));
}

/* Each row of an even head is the mean of V over the keys with the largest score, and its lse that score. */
static void far_scores(struct device *dev, const char *text)
{
    struct attention_data d;
    if (dev->info.cc_major < 10) {
        test_skip("sm_90a: a reference is a number of log2, which rounds");
        return;
    }
    if (start(&d, text)) {
        far_inputs(&d);
        if (run(dev, &d)) {
            const int64_t keys = d.c.source[0].sk, first = (keys + 1) / 2;
            double worst = 0, lse = 0;
            for (int64_t h = 0; h < d.c.hq; h += 2)
                for (int64_t x = 0; x < d.o.columns; x++) {
                    const int64_t kv = h / (d.c.hq / d.c.hkv);
                    const size_t last = (size_t)x;
                    double sum = 0, count = 0, error;
                    for (int64_t j = first; j < keys; j++) {
                        if (j % FAR_OTHERS) continue;
                        sum += attention_load(&d.v[0],
                                              attention_kv_row(&d, &d.v[0], 0, 0, kv, j) + last);
                        count += 1;
                    }
                    error = fabs(output(&d, 0, h, 0, x) - sum / count);
                    worst = isnan(error) ? INFINITY : fmax(worst, error);
                }
            for (int64_t h = 0; h < d.c.hq; h += 2) {
                const double score =
                    attention_load(&d.q, attention_q_row(&d, &d.q, 0, h, 0)) * (double)d.c.qk *
                    attention_load(&d.k[0],
                                   attention_kv_row(&d, &d.k[0], 0, 0, 0,
                                                    (keys - 1) / FAR_OTHERS * FAR_OTHERS)) *
                    (double)d.desc.scale;
                const double error =
                    fabs((double)d.lse[attention_lse_index(&d, 0, h, 0)] / score - 1);
                lse = isnan(error) ? INFINITY : fmax(lse, error);
            }
            CHECK(worst <= 0x1p-16, "O differs by %.3g, bound %.3g", worst, 0x1p-16);
            CHECK(lse <= 0x1p-20, "lse differs by %.3g of itself, bound %.3g", lse, 0x1p-20);
        }
    }
    attention_data_free(&d);
}

/* ---- bits ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *p = bytes;
    for (size_t n = 0; p && n < size; n++) hash = (hash ^ p[n]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_outputs(const struct attention_data *d)
{
    uint64_t hash = hash_bytes(UINT64_C(0xcbf29ce484222325), d->o.bytes, d->o.size);
    hash = hash_bytes(hash, d->lse, d->lse_count * sizeof(float));
    return hash_bytes(hash, d->row_max, d->row_max ? d->lse_count * sizeof(float) : 0);
}

bool attention_hash(struct device *dev, const struct attention_case *c, uint64_t *hash)
{
    struct attention_data d;
    bool ok = attention_data_new(&d, c) && run(dev, &d);
    if (ok) *hash = hash_outputs(&d);
    attention_data_free(&d);
    return ok;
}

/* The hash that another process gets on `sms` SMs: the simulator reads the number once a process. */
static bool hash_elsewhere(const char *text, int sms, uint64_t *hash)
{
    char command[ATTENTION_TEXT + 128], line[64];
    snprintf(command, sizeof command,
             "env -u HEWN_SIM_REPORT HEWN_SIM_SMS=%d '/proc/%ld/exe' --hash '%s'", sms,
             (long)getpid(), text);
    FILE *f = popen(command, "r");
    bool ok = f && fgets(line, sizeof line, f) && sscanf(line, "hash %" SCNx64, hash) == 1;
    return f && pclose(f) == 0 && ok;
}

static void determinism(struct device *dev, const char *text)
{
    struct attention_data d;
    struct attention_run first_run = {0};
    static const int sms[] = {1, 3, 16};
    if (start(&d, text)) attention_run(dev, &d, &first_run);
    if (!first_run.done) {
        attention_data_free(&d);
        return;
    }
    /* Who shares keys among SMs without being told how has bits that follow their number. */
    bool by_device = first_run.info.schedule == HEWN_SCHEDULE_DECODE || first_run.info.splits > 1;
    bool shared = by_device && !d.c.splits && !d.c.inv;
    bool elsewhere = dev->info.simulated && !shared;
    uint64_t first = hash_outputs(&d), other = 0;
    if (run(dev, &d)) CHECK(hash_outputs(&d) == first, "a second run gives other bits");
    for (int n = 0; elsewhere && n < 3; n++) {
        bool ok = hash_elsewhere(text, sms[n], &other);
        CHECK(ok, "on %d SMs: no hash", sms[n]);
        CHECK(!ok || other == first, "on %d SMs: other bits", sms[n]);
    }
    attention_data_free(&d);
}

/* ---- scales ---- */

/* All scales of an array the same. */
static void level(float *scales, size_t count)
{
    for (size_t n = 1; n < count; n++) scales[n] = *scales;
}

/* d with so many scales, all of a tensor's the same, and the Q, K and V of `from` if that is not NULL. */
static bool start_level(struct attention_data *d, const char *text, int scaling,
                        const struct attention_data *from)
{
    char all[ATTENTION_TEXT];
    snprintf(all, sizeof all, "%s qs=%d ks=%d vs=%d sgap=2", text, scaling, scaling, scaling);
    if (!start(d, all)) return false;
    *d->q_scale = 1.25F, *d->k_scale = 0.75F, *d->v_scale = 1.125F;
    level(d->q_scale, d->q_scale_count);
    level(d->k_scale, d->k_scale_count);
    level(d->v_scale, d->v_scale_count);
    if (!from) return true;
    memcpy(d->q.bytes, from->q.bytes, d->q.size);
    memcpy(d->k[0].bytes, from->k[0].bytes, d->k[0].size);
    memcpy(d->v[0].bytes, from->v[0].bytes, d->v[0].size);
    return true;
}

/* One scale a tensor, or as many of its value as there may be: equal bits. */
static void equal_scales(struct device *dev, const char *text)
{
    struct attention_data one, d;
    bool done = start_level(&one, text, SCALING_TENSOR, NULL) && run(dev, &one);
    uint64_t first = done ? hash_outputs(&one) : 0;
    if (done) attention_judge(&one);
    for (int scaling = SCALING_HEAD; done && scaling <= SCALING_SEQUENCE_KV_HEAD; scaling++) {
        if (start_level(&d, text, scaling, &one) && run(dev, &d))
            CHECK(hash_outputs(&d) == first, "scales of kind %d: other bits", scaling - 1);
        attention_data_free(&d);
    }
    attention_data_free(&one);
}

/* ---- invariance ---- */

static void copy_row(const struct attention_tensor *to, size_t at,
                     const struct attention_tensor *from, size_t row)
{
    size_t size = hewn_dtype_size(from->dtype);
    memcpy(to->bytes + at * size, from->bytes + row * size, (size_t)from->columns * size);
}

/* Sequence b of d as a batch of its own: not packed, its lengths the largest, the same inputs. */
static bool alone(struct attention_data *one, const struct attention_data *d, int64_t b)
{
    struct attention_case c = d->c;
    c.b = 1, c.sq = attention_queries(d, b), c.packed = c.ragged = 0;
    for (int s = 0; s < c.sources; s++)
        c.source[s].sk = attention_keys(d, s, b), c.source[s].keys = HEWN_KEYS_FIXED;
    bool ok = attention_data_new(one, &c);
    CHECK(ok, "no host memory for the case");
    for (int64_t h = 0; ok && h < c.hq; h++)
        for (int64_t i = 0; i < c.sq; i++)
            copy_row(&one->q, attention_q_row(one, &one->q, 0, h, i), &d->q,
                     attention_q_row(d, &d->q, b, h, i));
    for (int s = 0; ok && s < c.sources; s++)
        for (int64_t h = 0; h < c.hkv; h++)
            for (int64_t j = 0; j < c.source[s].sk; j++) {
                copy_row(&one->k[s], attention_kv_row(one, &one->k[s], s, 0, h, j), &d->k[s],
                         attention_kv_row(d, &d->k[s], s, b, h, j));
                copy_row(&one->v[s], attention_kv_row(one, &one->v[s], s, 0, h, j), &d->v[s],
                         attention_kv_row(d, &d->v[s], s, b, h, j));
            }
    if (ok && d->sink) memcpy(one->sink, d->sink, d->sink_count * sizeof *d->sink);
    return ok;
}

/* Rows of sequence b of d that have other bits than in a batch of their own. */
static int64_t other_rows(const struct attention_data *d, const struct attention_data *one,
                          int64_t b)
{
    const unsigned char *lse = (const unsigned char *)d->lse;
    const unsigned char *one_lse = (const unsigned char *)one->lse;
    const size_t element = hewn_dtype_size(d->o.dtype), size = (size_t)d->o.columns * element;
    int64_t others = 0;
    for (int64_t h = 0; h < d->c.hq; h++)
        for (int64_t i = 0; i < one->c.sq; i++) {
            size_t here = attention_q_row(d, &d->o, b, h, i) * element;
            size_t there = attention_q_row(one, &one->o, 0, h, i) * element;
            size_t at = attention_lse_index(d, b, h, i) * sizeof(float);
            size_t one_at = attention_lse_index(one, 0, h, i) * sizeof(float);
            others += memcmp(d->o.bytes + here, one->o.bytes + there, size) != 0 ||
                      memcmp(lse + at, one_lse + one_at, sizeof(float)) != 0;
        }
    return others;
}

static void invariance(struct device *dev, const char *text)
{
    struct attention_data d, one;
    bool ran = start(&d, text) && run(dev, &d);
    if (ran) attention_judge(&d);
    for (int64_t b = 0; ran && b < d.c.b; b++) {
        if (!attention_queries(&d, b)) continue;
        if (alone(&one, &d, b) && run(dev, &one)) {
            int64_t others = other_rows(&d, &one, b);
            CHECK(others == 0, "sequence %lld: %lld of %lld rows have other bits alone",
                  (long long)b, (long long)others, (long long)(one.c.sq * one.c.hq));
        }
        attention_data_free(&one);
    }
    attention_data_free(&d);
}

/* ---- NaN ---- */

/* Bytes of O and lse as one run left them. */
struct outputs {
    unsigned char *o, *lse;
};

static bool keep(struct outputs *k, const struct attention_data *d)
{
    size_t lse = d->lse_count * sizeof(float);
    k->o = malloc(d->o.size);
    k->lse = malloc(lse);
    if (!k->o || !k->lse) return false;
    memcpy(k->o, d->o.bytes, d->o.size);
    memcpy(k->lse, d->lse, lse);
    return true;
}

static bool same_row(const struct outputs *k, const struct attention_data *d, int64_t b, int64_t h,
                     int64_t i)
{
    size_t size = hewn_dtype_size(d->o.dtype), at = attention_q_row(d, &d->o, b, h, i) * size;
    size_t lse = attention_lse_index(d, b, h, i) * sizeof(float);
    const unsigned char *bytes = (const unsigned char *)d->lse;
    return !memcmp(k->o + at, d->o.bytes + at, (size_t)d->o.columns * size) &&
           !memcmp(k->lse + lse, bytes + lse, sizeof(float));
}

static bool nan_row(const struct attention_data *d, int64_t b, int64_t h, int64_t i)
{
    int64_t nans = 0;
    for (int64_t x = 0; x < d->o.columns; x++) nans += isnan(output(d, b, h, i, x));
    return nans == d->o.columns;
}

static void spoil_row(const struct attention_tensor *t, size_t row)
{
    for (int64_t x = 0; x < t->columns; x++) attention_store(t, row + (size_t)x, (double)NAN);
}

/* A NaN in a row of Q, a row of K, one after the other: the reference says which rows they reach. */
static void nan_in_q_and_k(struct device *dev, const char *text)
{
    struct attention_data d;
    if (start(&d, text)) {
        size_t q = attention_q_row(&d, &d.q, 0, d.c.hq - 1, d.c.sq / 2) + 5;
        attention_store(&d.q, q, (double)NAN);
        if (run(dev, &d)) attention_judge(&d);
        attention_store(&d.q, q, 0.5);
        size_t k = attention_kv_row(&d, &d.k[0], 0, 0, 0, d.c.source[0].sk / 3) + 9;
        attention_store(&d.k[0], k, (double)NAN);
        if (run(dev, &d)) attention_judge(&d);
        if (d.c.in != HEWN_E4M3) {
            attention_store(&d.k[0], k, (double)INFINITY);
            if (run(dev, &d)) attention_judge(&d);
        }
    }
    attention_data_free(&d);
}

/* Does a row that a CTA computes together with row i see a key of key j's block? */
static bool may_reach(const struct attention_data *d, const hewn_attention_plan_info *info,
                      int64_t i, int64_t j)
{
    int64_t tokens = info->tile_rows / info->pack * info->item_tiles, first = i / tokens * tokens;
    int64_t block = j / info->block_keys * info->block_keys;
    for (int64_t t = first; t < first + tokens && t < attention_queries(d, 0); t++)
        for (int64_t key = block; key < block + info->block_keys; key++)
            if (attention_visible(d, 0, 0, t, key)) return true;
    return false;
}

/* NaN in a row of V: certain where the key is seen, possible in the rows hewn.h names, and without
 * any effect beyond. */
static void nan_in_v(struct device *dev, const char *text)
{
    struct attention_data d;
    struct outputs clean = {0};
    struct attention_run r = {0};
    int64_t wrong = 0;
    if (start(&d, text) && run(dev, &d) && keep(&clean, &d)) {
        int64_t j = d.c.source[0].sk * 2 / 5;
        spoil_row(&d.v[0], attention_kv_row(&d, &d.v[0], 0, 0, 0, j));
        attention_run(dev, &d, &r);
        for (int64_t i = 0; r.done && i < d.c.sq; i++)
            for (int64_t h = 0; h < d.c.hq; h++) {
                bool same = same_row(&clean, &d, 0, h, i), nan = nan_row(&d, 0, h, i);
                bool mine = h / (d.c.hq / d.c.hkv) == 0;
                bool ok = mine && attention_visible(&d, 0, 0, i, j) ? nan
                          : mine && may_reach(&d, &r.info, i, j)    ? nan || same
                                                                    : same;
                if (!ok && wrong++ == 0)
                    CHECK(false, "h=%lld token=%lld, NaN in V at key %lld: %s", (long long)h,
                          (long long)i, (long long)j, nan ? "reached" : "missing or changed");
            }
        CHECK(wrong == 0, "%lld rows wrong", (long long)wrong);
    }
    free(clean.o);
    free(clean.lse);
    attention_data_free(&d);
}

/* Sequence 1 is NaN all over: the others keep their bits. */
static void nan_sequence(struct device *dev, const char *text)
{
    struct attention_data d;
    struct outputs clean = {0};
    int64_t wrong = 0;
    if (start(&d, text) && run(dev, &d) && keep(&clean, &d)) {
        for (int64_t i = 0; i < attention_queries(&d, 1); i++)
            for (int64_t h = 0; h < d.c.hq; h++)
                spoil_row(&d.q, attention_q_row(&d, &d.q, 1, h, i));
        for (int s = 0; s < d.c.sources; s++)
            for (int64_t j = 0; j < attention_keys(&d, s, 1); j++)
                for (int64_t h = 0; h < d.c.hkv; h++) {
                    spoil_row(&d.k[s], attention_kv_row(&d, &d.k[s], s, 1, h, j));
                    spoil_row(&d.v[s], attention_kv_row(&d, &d.v[s], s, 1, h, j));
                }
        bool ran = run(dev, &d);
        for (int64_t b = 0; ran && b < d.c.b; b++)
            for (int64_t i = 0; b != 1 && i < attention_queries(&d, b); i++)
                for (int64_t h = 0; h < d.c.hq; h++) wrong += !same_row(&clean, &d, b, h, i);
        CHECK(wrong == 0, "%lld rows of other sequences changed", (long long)wrong);
    }
    free(clean.o);
    free(clean.lse);
    attention_data_free(&d);
}

/* ---- tables that break the rules ---- */

static void run_wrong(struct device *dev, struct attention_data *d, bool *done)
{
    struct attention_run r = {.tables_wrong = true};
    attention_run(dev, d, &r);
    *done = r.done;
}

static void wrong_lengths(struct device *dev, const char *text)
{
    struct attention_data d;
    bool done = false;
    if (start(&d, text)) {
        d.lengths[0][0] = -5;
        d.lengths[0][1] = (int32_t)d.c.source[0].sk + 100;
        run_wrong(dev, &d, &done);
        if (done) attention_judge(&d);
    }
    attention_data_free(&d);
}

/* A page in use that the pool does not have is zeros: for the reference a spare page of zeros. */
static void wrong_page(struct device *dev, const char *text)
{
    struct attention_data d;
    bool done = false;
    if (start(&d, text)) {
        int32_t pages = (int32_t)d.source[0].pages, spare = 0;
        for (size_t n = 0; n < d.table_count[0]; n++)
            if (d.table[0][n] == spare) spare++, n = (size_t)-1;
        for (int n = 0; n < 2; n++) {
            d.table[0][1] = n ? -3 : pages + 7;
            run_wrong(dev, &d, &done);
            d.table[0][1] = spare;
            for (int64_t h = 0; done && h < d.c.hkv; h++)
                for (int64_t j = d.c.source[0].page; j < 2 * d.c.source[0].page; j++)
                    for (int64_t x = 0; x < d.c.qk; x++) {
                        attention_store(&d.k[0],
                                        attention_kv_row(&d, &d.k[0], 0, 0, h, j) + (size_t)x, 0);
                        attention_store(&d.v[0],
                                        attention_kv_row(&d, &d.v[0], 0, 0, h, j) + (size_t)x, 0);
                    }
            if (done) attention_judge(&d);
        }
    }
    attention_data_free(&d);
}

/* ---- the list ---- */

static const struct property {
    const char *name;
    void (*check)(struct device *dev, const char *text);
    const char *text;
} properties[] = {
    {"normalised inside and outside", normalised, "qk=64 sq=140 sk=300 causal=1 hq=2"},
    {"normalised inside and outside", normalised, "qk=128 sq=130 sk=400 sink=1 pattern=1"},
    {"normalised inside and outside", normalised, "qk=256 in=f16 sq=70 sk=260 left=50 causal=1"},
    {"normalised inside and outside", normalised, "qk=512 sq=40 sk=260 hq=4 hkv=1"},
    {"normalised inside and outside", normalised, "in=e4m3 qk=128 sq=40 sk=260 vs=1"},
    {"normalised inside and outside", normalised, "in=e4m3 qk=64 sq=140 sk=300 causal=1 hq=2"},
    {"splits merge exactly", splits, "in=e4m3 qk=128 out=f32 sq=9 sk=1000 hq=4 hkv=2"},
    {"equal bits", determinism, "in=e4m3 qk=128 sq=300 sk=500 causal=1 hq=4 hkv=2 b=2"},
    {"equal bits", determinism, "in=e4m3 qk=64 sq=5 sk=900 splits=3 hq=8 hkv=2"},
    {"equal scales", equal_scales, "in=e4m3 qk=64 sq=30 sk=140 hq=4 hkv=2 b=3 causal=1"},
    {"equal scales", equal_scales, "in=e4m3 out=f32 qk=128 sq=9 sk=400 hq=4 hkv=2 b=2 splits=2"},
    {"NaN in Q, in K", nan_in_q_and_k, "in=e4m3 qk=128 sq=140 sk=400 left=40 right=30 hq=2"},
    {"NaN in V", nan_in_v, "in=e4m3 qk=128 sq=700 sk=700 causal=1 left=100 hq=2 hkv=2"},
    {"a packed sequence of NaN", nan_sequence,
     "in=e4m3 qk=128 packed=1 keys=2 b=3 sq=90 sk=200 hq=2 hkv=1 causal=1"},
    {"a paged sequence of NaN", nan_sequence,
     "in=e4m3 qk=64 page=16 keys=1 ragged=1 b=3 sq=50 sk=300"},
    {"lengths below 0 and above the longest", wrong_lengths,
     "in=e4m3 qk=128 keys=1 b=3 sq=50 sk=200"},
    {"a page outside the pool", wrong_page, "in=e4m3 qk=128 page=32 b=2 sq=50 sk=200 hkv=2 hq=2"},
    {"splits merge exactly", splits, "qk=128 out=f32 sq=9 sk=1000 hq=4 hkv=2"},
    {"splits merge exactly", splits, "qk=512 out=f32 sq=5 sk=900"},
    {"equal bits", determinism, "qk=128 sq=300 sk=500 causal=1 hq=4 hkv=2 b=2"},
    {"equal bits", determinism, "qk=64 sq=5 sk=900 splits=3 hq=8 hkv=2"},
    {"equal bits", determinism, "qk=512 sq=140 sk=300 causal=1"},
    {"NaN in Q, in K", nan_in_q_and_k, "qk=64 sq=200 sk=300 causal=1 hq=2"},
    {"NaN in Q, in K", nan_in_q_and_k, "qk=128 in=f16 sq=140 sk=400 left=40 right=30 hq=2"},
    {"NaN in Q, in K", nan_in_q_and_k, "qk=256 in=e4m3 sq=60 sk=300 causal=1 hq=2"},
    {"NaN in V", nan_in_v, "qk=128 sq=700 sk=700 causal=1 left=100 hq=2 hkv=2"},
    {"NaN in V", nan_in_v, "qk=512 sq=200 sk=400 causal=1 hq=2 hkv=2"},
    {"a packed sequence of NaN", nan_sequence,
     "qk=128 packed=1 keys=2 b=3 sq=90 sk=200 hq=2 hkv=1 causal=1"},
    {"a paged sequence of NaN", nan_sequence, "qk=64 page=16 keys=1 ragged=1 b=3 sq=50 sk=300"},
    {"lengths below 0 and above the longest", wrong_lengths, "qk=128 keys=1 b=3 sq=50 sk=200"},
    {"a page outside the pool", wrong_page, "qk=128 page=32 b=2 sq=50 sk=200 hkv=2 hq=2"},
};

static const struct property far_from_zero[] = {
    {"scores far from 0", far_scores,
     "qk=128 in=f16 out=f32 sq=1 sk=900 hq=12 hkv=1 schedule=2 inv=1"},
    {"scores far from 0", far_scores, "qk=64 out=f32 sq=1 sk=600 hq=40 hkv=1 schedule=2 inv=1"},
    {"scores far from 0", far_scores,
     "qk=64 in=f16 kv=3 out=f32 sq=1 sk=700 hq=28 hkv=1 schedule=2 inv=1"},
};

static const struct property invariant[] = {
    {"alone as in a batch", invariance, "qk=128 sq=1 sk=5000 hq=4 hkv=2 keys=1 ragged=2 b=4 inv=1"},
    {"alone as in a batch", invariance,
     "qk=64 sq=3 sk=4300 hq=8 hkv=2 keys=1 ragged=1 b=3 inv=1 causal=1 sink=1 page=16 out=f32"},
    {"alone as in a batch", invariance,
     "qk=64 sq=90 sk=2500 hq=2 b=4 inv=1 schedule=2 packed=1 keys=2 ragged=2 causal=1 tail=5 "
     "in=f16"},
    {"alone as in a batch", invariance,
     "qk=96 sq=2 sk=4500 hq=2 b=3 inv=1 left=2500 keys=1 ragged=1 cap=2000"},
    {"alone as in a batch", invariance,
     "qk=128 sq=4 sk=70 hq=4 b=9 inv=1 keys=1 ragged=2 schedule=2"},
    {"alone as in a batch", invariance,
     "qk=128 sq=300 sk=700 hq=3 b=3 inv=1 schedule=1 packed=1 keys=2 ragged=1 causal=1"},
    {"alone as in a batch", invariance,
     "qk=64 sq=5 sk=900 hq=4 b=2 inv=1 schedule=1 keys=1 ragged=1"},
    {"alone as in a batch", invariance,
     "qk=128 sq=5 sk=900 hq=4 b=2 inv=1 splits=3 keys=1 ragged=1"},
    {"equal bits", determinism,
     "qk=128 sq=2 sk=5000 hq=4 hkv=2 keys=1 ragged=1 b=3 inv=1 causal=1"},
};

static void check_all(struct device *dev, const struct property *list, size_t count,
                      bool (*wanted)(void *, const struct attention_case *), void *user)
{
    for (size_t n = 0; n < count; n++) {
        const char *text = list[n].text;
        struct attention_case c;
        char word[64];
        if (attention_case_parse(&c, text, word) && !wanted(user, &c)) continue;
        if (test_case("%s: %s", list[n].name, text)) list[n].check(dev, text);
    }
}

void attention_properties(struct device *dev, bool (*wanted)(void *, const struct attention_case *),
                          void *user)
{
    check_all(dev, properties, sizeof properties / sizeof properties[0], wanted, user);
}

void attention_invariant(struct device *dev, bool (*wanted)(void *, const struct attention_case *),
                         void *user)
{
    check_all(dev, invariant, sizeof invariant / sizeof invariant[0], wanted, user);
}

void attention_far_from_zero(struct device *dev,
                             bool (*wanted)(void *, const struct attention_case *), void *user)
{
    check_all(dev, far_from_zero, sizeof far_from_zero / sizeof far_from_zero[0], wanted, user);
}
