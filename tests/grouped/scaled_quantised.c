/* Cases of quantised results: plans, data, the second product. */
#include "scaled_quantised.h"

#include "lib/harness.h"
#include "lib/verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENT = 10 };

/* What a run has on the device. */
struct sent {
    struct guarded of[SENT];
    int count;
    bool failed;
};

static hewn_deviceptr send(struct device *dev, struct sent *s, const void *host, size_t size)
{
    struct guarded *g = &s->of[s->count++];
    if (s->failed || !guarded_new(dev, g, size, 0xFF) || dev->to_device(g->data, host, size)) {
        s->failed = true;
        return 0;
    }
    return g->data;
}

static void drop(struct device *dev, struct sent *s)
{
    for (int i = 0; i < s->count; i++) {
        const char *damage = s->failed ? NULL : guarded_damage(dev, &s->of[i]);
        CHECK(!damage, "buffer %d: %s", i, damage);
        guarded_free(dev, &s->of[i]);
    }
}

/* ---- a product -- */

/* Runs a plan of the data's, whose D, and the scales of a quantised one, come back in place. */
static bool run_plan(struct device *dev, const hewn_grouped_desc *desc,
                     const struct scaled_data *in, const struct quantised_terms *t,
                     struct scaled_data *out)
{
    hewn_error err = {0};
    hewn_grouped_plan *plan = NULL;
    struct sent s = {.count = 0};
    const size_t rows = (size_t)in->c.groups * 4;
    int status = hewn_grouped_plan_create(dev->context, desc, &plan, &err), rc = 0;
    if (status == HEWN_ERR_NO_MODULE)
        test_skip("%s", err.message);
    else
        CHECK(status == HEWN_OK, "plan: %s", err.message);
    if (status) return false;
    hewn_grouped_args a = {.struct_size = sizeof a};
    a.a = send(dev, &s, in->a.bytes, in->a.size);
    a.b = send(dev, &s, in->b.bytes, in->b.size);
    if (in->c.scales) a.scale_a = send(dev, &s, in->a.scales, in->a.scale_size);
    if (in->c.scales) a.scale_b = send(dev, &s, in->b.scales, in->b.scale_size);
    if (in->c.kind) a.rows = send(dev, &s, in->rows, in->row_count * 4);
    if (in->c.alpha && (t || in->c.scales)) a.alpha = send(dev, &s, in->alpha, rows);
    if (t && t->bias) a.bias = send(dev, &s, t->bias, rows * (size_t)in->c.n);
    if (t && t->factor) a.factor = send(dev, &s, t->factor, rows);
    unsigned char *d = t ? out->a.bytes : out->d;
    const size_t size = t ? out->a.size : out->d_bytes;
    a.d = send(dev, &s, d, size);
    if (t) a.scale_d = send(dev, &s, out->a.scales, out->a.scale_size);
    CHECK(!s.failed, "no device memory for the case");
    if (!s.failed) {
        status = hewn_grouped_plan_run(plan, &a, NULL, &err);
        CHECK(status == HEWN_OK, "run: %s", err.message);
        rc = dev->synchronize();
        CHECK(rc == 0, "the kernel failed with CUresult %d", rc);
        verdict_check(dev->info.simulated, true); /* the second CTA of a pair may have no rows */
        rc |= dev->to_host(d, a.d, size);
        if (t) rc |= dev->to_host(out->a.scales, a.scale_d, out->a.scale_size);
    }
    drop(dev, &s);
    hewn_grouped_plan_destroy(plan);
    return !s.failed && !status && !rc;
}

/* ---- a case -- */

static bool terms_new(struct quantised_terms *t, const struct quantised_case *q)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 1e38F, -3e38F, 0, 1e-40F, 448};
    static const float odd_factors[] = {1, 0, 1e-38F, 1e38F, -2, 0x1p-126F, INFINITY, NAN};
    struct rng r = {q->first.seed ^ 0x5EED};
    const size_t groups = (size_t)q->first.groups, n = groups * (size_t)q->first.n;
    if (q->bias) t->bias = malloc(n * sizeof *t->bias);
    if (q->factor) t->factor = malloc(groups * sizeof *t->factor);
    if ((q->bias && !t->bias) || (q->factor && !t->factor)) return false;
    for (size_t i = 0; q->bias && i < n; i++) {
        t->bias[i] = 16 * (rng_unit(&r) - 0.5F);
        if (q->special && !rng_below(&r, 40)) t->bias[i] = odd[rng_below(&r, 8)];
    }
    for (size_t i = 0; q->factor && i < groups; i++)
        t->factor[i] = q->special ? odd_factors[i % 8] : 0.25F + rng_unit(&r);
    return true;
}

/* D in f32. Of 16-bit inputs the kernel is another, which takes no alpha. */
static bool run_from(struct device *dev, struct scaled_data *from)
{
    hewn_grouped_desc desc = from->desc;
    if (!from->c.scales) desc.variant = NULL;
    if (!run_plan(dev, &desc, from, NULL, from)) return false;
    for (int g = 0; g < from->c.groups && from->c.alpha && !from->c.scales; g++) {
        int first, end;
        scaled_range(from, g, &first, &end);
        for (int row = first; row < end; row++)
            for (int column = 0; column < from->c.n; column++) {
                unsigned char *at =
                    from->d +
                    ((from->planes > 1 ? g : 0) * desc.stride_d + row * desc.ldd + column) * 4;
                float x;
                memcpy(&x, at, sizeof x);
                x *= from->alpha[g];
                memcpy(at, &x, sizeof x);
            }
    }
    return true;
}

static hewn_grouped_desc quantised_desc(const struct quantised_case *q,
                                        const struct scaled_data *from,
                                        const struct scaled_data *got)
{
    hewn_grouped_desc d = from->desc;
    d.n = q->second.k;
    d.out = q->second.in;
    d.act = q->act;
    d.ldd = got->desc.lda;
    d.stride_d = got->desc.stride_a;
    d.scale_d_m = got->desc.scale_a_k;
    d.scale_d_plane = got->desc.scale_a_plane;
    return d;
}

static void run_data(struct device *dev, const struct quantised_case *q, struct scaled_data *from,
                     struct scaled_data *got)
{
    struct quantised_terms t = {NULL, NULL};
    const hewn_grouped_desc d = quantised_desc(q, from, got);
    bool ready = terms_new(&t, q);
    CHECK(ready, "no host memory for the case");
    memcpy(got->rows, from->rows, from->row_count * sizeof *from->rows);
    memset(got->a.bytes, SCALED_POISON, got->a.size);
    memset(got->a.scales, SCALED_POISON, got->a.scale_size);
    ready = ready && run_from(dev, from) && run_plan(dev, &d, from, &t, got);
    if (ready) {
        scaled_judge(from);
        quantised_judge(q, &t, from, got);
        if (!q->special && run_plan(dev, &got->desc, got, NULL, got)) scaled_judge(got);
    }
    free(t.bias);
    free(t.factor);
}

static void run_case(struct device *dev, struct quantised_case q)
{
    for (int i = 0; i < 2; i++, q.first.seed++, q.second.seed++) {
        struct scaled_data from, got;
        q.first.exact = i;
        const bool made = scaled_data_new(&from, &q.first);
        const bool ready = scaled_data_new(&got, &q.second) && made;
        CHECK(ready, "no host memory for the case");
        if (ready) run_data(dev, &q, &from, &got);
        scaled_data_free(&from);
        scaled_data_free(&got);
    }
}

static void try_case(struct device *dev, struct quantised_case q)
{
    static const char *const acts[] = {"", ", relu", ", gelu", ", silu", ", swiglu"};
    static uint64_t seed = 1000;
    char name[200];
    struct scaled_case *a = &q.first, *b = &q.second;
    b->kind = a->kind, b->groups = a->groups, b->m = a->m;
    b->scales = b->in == HEWN_E4M3 ? HEWN_GROUPED_UE8M0_32 : HEWN_GROUPED_UE4M3_16;
    b->out = HEWN_F32;
    a->out = HEWN_F32;
    a->align = b->align = a->kind == HEWN_GROUPED_OFFSETS ? 128 : 0;
    a->n = q.act == HEWN_ACT_SWIGLU ? 2 * b->k : b->k;
    a->seed = b->seed = ++seed * 0x9E3779B97F4A7C15U;
    scaled_case_name(a, name, sizeof name);
    if (test_case("%s, quantised to %s%s%s%s%s", name, hewn_dtype_name(b->in), acts[q.act],
                  q.bias ? ", bias" : "", q.factor ? ", factor" : "", q.special ? ", special" : ""))
        run_case(dev, q);
}

/* ---- the cases -- */

static const char *const half_variants[] = {"128x128", "128x192", "256x192", "256x192p", "256x256"};
enum { HALF_VARIANTS = sizeof half_variants / sizeof *half_variants };

/* A case becomes one of 16-bit inputs. */
static void make_half(struct scaled_case *c, int in, const char *variant)
{
    c->in = in, c->in_b = 0;
    c->scales = c->layout = 0;
    c->variant = variant;
}

/* Case `i` of the lists below: activations, terms and n's ends in turn. */
static void try_number(struct device *dev, struct quantised_case q, int i)
{
    static const int columns[] = {224, 100, 320, 129, 64, 258, 416, 30, 192, 1};
    q.first.kind = i % 3;
    q.first.groups = q.first.kind ? 3 : 1;
    q.first.m = q.first.kind == HEWN_GROUPED_OFFSETS ? 520 : 200;
    q.first.alpha = i % 2;
    q.act = (i + i / 2) % 5;
    q.bias = i % 3 == 1, q.factor = i % 4 == 1;
    q.second.in = i % 2 ? HEWN_E2M1 : HEWN_E4M3;
    q.second.k = columns[i % 10];
    if (q.act == HEWN_ACT_SWIGLU) q.second.k = (q.second.k + 31) / 32 * 32;
    if (i % 2) q.second.k += q.second.k % 2;
    q.second.n = 72;
    q.second.spread = i % 2;
    try_case(dev, q);
}

/* Each variant, with D of either type. */
void quantised_each(struct device *dev, struct scaled_case (*of_inputs)(int), int inputs,
                    const char *const *variants, int variant_count)
{
    /* The last variant twice: with atoms of scales, then with words. */
    for (int i = 0; i < 2 * variant_count + 2; i++) {
        const int v = i / 2 < variant_count ? i / 2 : variant_count - 1;
        int input = i % inputs;
        if (i / 2 == variant_count - 1) input = i % 3;
        if (i / 2 == variant_count) input = inputs - 1 - i % 2;
        struct quantised_case q = {.first = of_inputs(input)};
        q.first.variant = variants[v];
        q.first.k = 384;
        try_number(dev, q, i);
    }
    for (int i = 0; i < 2 * HALF_VARIANTS; i++) {
        struct quantised_case q = {.first = of_inputs(0)};
        make_half(&q.first, i % 4 < 2 ? HEWN_BF16 : HEWN_F16, half_variants[i / 2]);
        q.first.k = i % 3 ? 456 : 72;
        q.first.spread = i % 2;
        try_number(dev, q, i);
    }
    for (int o = 0; o < 4; o++) { /* what is no number, zeros, the ends of fp32 */
        struct quantised_case q = {
            .first = of_inputs(o % 3), .bias = 1, .factor = o < 2, .special = 1};
        q.first.kind = HEWN_GROUPED_COUNTS;
        q.first.groups = 8, q.first.m = 40;
        q.act = o == 3 ? HEWN_ACT_RELU : HEWN_ACT_NONE;
        q.second.in = o % 2 ? HEWN_E2M1 : HEWN_E4M3;
        q.second.k = 150;
        q.second.n = 8;
        try_case(dev, q);
    }
}

void quantised_random(struct device *dev, struct scaled_case (*at_random)(struct rng *), int count)
{
    struct rng r = {test_seed() + 77};
    for (int n = 0; n < count; n++) {
        struct quantised_case q = {.first = at_random(&r)};
        if (!rng_below(&r, 3))
            make_half(&q.first, rng_below(&r, 2) ? HEWN_BF16 : HEWN_F16,
                      rng_below(&r, 3) ? half_variants[rng_below(&r, HALF_VARIANTS)] : NULL);
        q.act = rng_below(&r, 2) ? (int)rng_below(&r, 5) : HEWN_ACT_NONE;
        q.bias = (int)rng_below(&r, 2), q.factor = (int)rng_below(&r, 2);
        q.special = q.act < HEWN_ACT_GELU && !rng_below(&r, 6);
        q.second.in = rng_below(&r, 2) ? HEWN_E2M1 : HEWN_E4M3;
        q.second.k = q.first.n;
        if (q.act == HEWN_ACT_SWIGLU) q.second.k = (q.second.k / 2 + 32) / 32 * 32;
        if (q.second.in == HEWN_E2M1) q.second.k += q.second.k % 2;
        q.second.n = 1 + (int)rng_below(&r, 100);
        q.second.spread = (int)rng_below(&r, 2);
        q.second.alpha = (int)rng_below(&r, 2);
        try_case(dev, q);
    }
}
