/* Block-scaled products against float64: inputs, scales, variants, ragged and empty groups. */
#include "scaled_quantised.h"

#include "lib/harness.h"
#include "lib/suite.h"
#include "lib/verdict.h"

#include <stdio.h>
#include <string.h>

/* ---- a run -- */

enum { A, B, D, SCALE_A, SCALE_B, ROWS, ALPHA, BUFFERS };

struct buffers {
    struct guarded of[BUFFERS];
};

static bool upload_all(struct device *dev, const struct scaled_data *d, struct buffers *b,
                       hewn_grouped_args *a)
{
    const struct {
        hewn_deviceptr *address;
        const void *host;
        size_t size;
        bool wanted;
    } list[BUFFERS] = {[A] = {&a->a, d->a.bytes, d->a.size, true},
                       [B] = {&a->b, d->b.bytes, d->b.size, true},
                       [D] = {&a->d, d->d, d->d_bytes, true},
                       [SCALE_A] = {&a->scale_a, d->a.scales, d->a.scale_size, true},
                       [SCALE_B] = {&a->scale_b, d->b.scales, d->b.scale_size, true},
                       [ROWS] = {&a->rows, d->rows, d->row_count * 4, d->c.kind != 0},
                       [ALPHA] = {&a->alpha, d->alpha, (size_t)d->c.groups * 4, d->c.alpha}};
    for (int i = 0; i < BUFFERS; i++) {
        if (!list[i].wanted) continue;
        if (!guarded_new(dev, &b->of[i], list[i].size, 0xFF)) return false;
        *list[i].address = b->of[i].data;
        if (dev->to_device(b->of[i].data, list[i].host, list[i].size)) return false;
    }
    return true;
}

static void launch(struct device *dev, struct scaled_data *d, const hewn_grouped_plan *plan,
                   struct buffers *b)
{
    hewn_error err = {0};
    hewn_grouped_args a = {.struct_size = sizeof a};
    bool ready = upload_all(dev, d, b, &a);
    CHECK(ready, "no device memory for the case");
    if (!ready) return;
    int status = hewn_grouped_plan_run(plan, &a, NULL, &err);
    CHECK(status == HEWN_OK, "run: %s", err.message);
    int rc = dev->synchronize();
    CHECK(rc == 0, "the kernel failed with CUresult %d", rc);
    /* the second CTA of a pair may have no rows, or no columns */
    hewn_grouped_plan_info info = {.struct_size = sizeof info};
    CHECK(hewn_grouped_plan_describe(plan, &info, &err) == HEWN_OK, "describe: %s", err.message);
    verdict_check(dev->info.simulated, info.cluster[0] > 1);
    if (status || rc) return;
    CHECK(dev->to_host(d->d, a.d, d->d_bytes) == 0, "cannot read D");
    for (int i = 0; i < BUFFERS; i++) {
        const char *damage = b->of[i].base ? guarded_damage(dev, &b->of[i]) : NULL;
        CHECK(!damage, "buffer %d: %s", i, damage);
    }
    double used = scaled_judge(d);
    if (test_verbose()) printf("    %.3f of the tolerance\n", used);
}

/* Two runs of one plan with other rows and data, one of them exact. */
static void run_case(struct device *dev, struct scaled_case c)
{
    hewn_grouped_plan *plan = NULL;
    for (int i = 0; i < 2; i++, c.seed++) {
        struct scaled_data d;
        struct buffers b;
        hewn_error err = {0};
        memset(&b, 0, sizeof b);
        c.exact = i;
        bool ready = scaled_data_new(&d, &c);
        int status = HEWN_OK;
        CHECK(ready, "no host memory for the case");
        if (ready && !plan) status = hewn_grouped_plan_create(dev->context, &d.desc, &plan, &err);
        if (status == HEWN_ERR_NO_MODULE)
            test_skip("%s", err.message);
        else
            CHECK(status == HEWN_OK, "plan: %s", err.message);
        if (ready && plan) launch(dev, &d, plan, &b);
        for (int n = 0; n < BUFFERS; n++) guarded_free(dev, &b.of[n]);
        scaled_data_free(&d);
    }
    hewn_grouped_plan_destroy(plan);
}

static void try_case(struct device *dev, struct scaled_case c)
{
    static uint64_t seed;
    char name[200];
    c.seed = ++seed * 0x9E3779B97F4A7C15U;
    scaled_case_name(&c, name, sizeof name);
    if (test_case("%s", name)) run_case(dev, c);
}

/* ---- the cases -- */

/* Inputs: A, B and scales, their layout; what k must be a multiple of. */
static const struct inputs {
    int a, b, scales, layout, k;
} inputs[] = {
    {HEWN_E4M3, 0, HEWN_GROUPED_UE8M0_32, 0, 1},
    {HEWN_E2M1, 0, HEWN_GROUPED_UE8M0_32, 0, 2},
    {HEWN_E2M1, 0, HEWN_GROUPED_UE4M3_16, 0, 2},
    {HEWN_E5M2, HEWN_E4M3, HEWN_GROUPED_UE8M0_32, 0, 1},
    {HEWN_E4M3, HEWN_E2M1, HEWN_GROUPED_UE8M0_32, 0, 128},
    {HEWN_E2M1, HEWN_E5M2, HEWN_GROUPED_UE8M0_32, 0, 128},
    /* words: */
    {HEWN_E4M3, HEWN_E5M2, HEWN_GROUPED_UE8M0_32, HEWN_GROUPED_WORDS, 1},
    {HEWN_E4M3, 0, HEWN_GROUPED_UE8M0_128, HEWN_GROUPED_WORDS, 1},
    {HEWN_E2M1, 0, HEWN_GROUPED_UE8M0_32, HEWN_GROUPED_WORDS, 128},
    {HEWN_E4M3, HEWN_E2M1, HEWN_GROUPED_UE8M0_128, HEWN_GROUPED_WORDS, 128},
};
enum { INPUTS = sizeof inputs / sizeof *inputs, OF_ATOMS = 6 }; /* OF_ATOMS: the first of them */

static const char *const variants[] = {"128x128", "128x192", "256x128", "256x192", "256x192p"};
enum { VARIANTS = sizeof variants / sizeof *variants };

static struct scaled_case of_inputs(int i)
{
    return (struct scaled_case){.kind = HEWN_GROUPED_PLANES,
                                .groups = 1,
                                .m = 130,
                                .n = 136,
                                .k = 384,
                                .in = inputs[i].a,
                                .in_b = inputs[i].b,
                                .scales = inputs[i].scales,
                                .layout = inputs[i].layout,
                                .out = HEWN_BF16};
}

/* k of about that, as the inputs need it. */
static int k_of(int i, int k)
{
    const int step = inputs[i].k;
    return (k + step - 1) / step * step;
}

/* Each kind of inputs in each variant: several tiles both ways, the rings more than once round. */
static void each_variant(struct device *dev)
{
    for (int i = 0; i < INPUTS; i++)
        for (int v = 0; v < VARIANTS; v++) {
            struct scaled_case c = of_inputs(i);
            c.variant = variants[v];
            c.kind = (i + v) % 3;
            c.out = (i + v) % 2 ? HEWN_F32 : HEWN_BF16;
            c.groups = c.kind == HEWN_GROUPED_PLANES ? 1 : 3;
            c.m = c.kind == HEWN_GROUPED_OFFSETS ? 520 : 200;
            c.n = (v + v / 4 * i) % 2 ? 397 : 264;
            c.k = k_of(i, 1290);
            c.alpha = v % 2;
            c.align = c.layout && c.kind == HEWN_GROUPED_OFFSETS ? 8 : 0;
            try_case(dev, c);
        }
}

/* Ends of groups of every sort. */
static void groups(struct device *dev)
{
    for (int kind = 1; kind < 3; kind++)
        for (int few = 0; few < 3; few++) {
            struct scaled_case c = of_inputs(few == 2 ? OF_ATOMS + kind : (kind + few) % 3);
            c.kind = kind;
            c.few = few == 1;
            c.groups = few == 1 ? 70 : 5; /* more than the lanes of a warp */
            c.m = kind == HEWN_GROUPED_OFFSETS ? 1300 : few == 1 ? 33 : 140;
            c.n = 70;
            c.k = 128;
            c.alpha = 1;
            c.align = few == 1 && kind == HEWN_GROUPED_OFFSETS ? 256 : 0;
            try_case(dev, c);
        }
}

/*
 * A last column of tiles that is narrower than others: of 64 and of 128 columns of each pair, beside whole ones and alone;
 * the scales of its first column in the middle of an atom; ends of groups; groups of more than the lanes of a warp.
 */
static void narrow_tiles(struct device *dev)
{
    static const int list[][2] = {{3, 250}, {3, 300}, {4, 448}, {4, 600}, {4, 90}};
    for (int i = 0; i < INPUTS; i++)
        for (int n = i % 2; n < 5; n += 2) {
            struct scaled_case c = of_inputs(i);
            c.variant = variants[list[n][0]];
            c.kind = (i + n) % 3;
            c.few = n == 4;
            c.groups = c.few ? 40 : 2;
            c.m = c.kind == HEWN_GROUPED_OFFSETS && !c.few ? 300 : 140;
            c.n = list[n][1];
            c.k = k_of(i, c.few ? 128 : 400);
            c.out = (i + n / 2) % 2 ? HEWN_F32 : HEWN_BF16;
            try_case(dev, c);
        }
}

/* Sizes at the ends of tiles, blocks, atoms and chunks of 16 bytes. */
static void sizes(struct device *dev)
{
    static const int list[][3] = {{1, 1, 2},     {1, 8, 16},      {16, 7, 128},  {17, 9, 130},
                                  {64, 128, 64}, {127, 129, 256}, {128, 64, 30}, {129, 193, 514}};
    for (int n = 0; n < 8; n++)
        for (int i = n % 2; i < INPUTS; i += 2) {
            struct scaled_case c = of_inputs(i);
            c.m = list[n][0];
            c.n = list[n][1];
            c.k = k_of(i, list[n][2]);
            c.out = n % 4 < 2 ? HEWN_BF16 : HEWN_F32;
            c.spread = n % 2;
            try_case(dev, c);
        }
}

static struct scaled_case random_case(struct rng *r)
{
    const int i = (int)rng_below(r, INPUTS);
    struct scaled_case c = of_inputs(i);
    c.kind = (int)rng_below(r, 3);
    c.groups = 1 + (int)rng_below(r, rng_below(r, 3) ? 4 : 40);
    c.m = 1 + (int)rng_below(r, c.kind == HEWN_GROUPED_OFFSETS ? 900 : 200);
    c.n = 1 + (int)rng_below(r, rng_below(r, 2) ? 200 : 500);
    c.k = 1 + (int)rng_below(r, rng_below(r, 4) ? 400 : 1500);
    if (c.groups > 6) c.n = 1 + c.n / 4, c.k = 1 + c.k / 4, c.m = 1 + c.m / 4;
    c.k = k_of(i, c.k);
    c.out = rng_below(r, 2) ? HEWN_BF16 : HEWN_F32;
    c.few = !rng_below(r, 3);
    c.spread = (int)rng_below(r, 2);
    c.alpha = (int)rng_below(r, 2);
    if (c.kind == HEWN_GROUPED_OFFSETS && rng_below(r, 2))
        c.align = (c.layout ? 4 : 128) << rng_below(r, 3);
    if (rng_below(r, 3)) c.variant = variants[rng_below(r, VARIANTS)];
    return c;
}

static void at_random(struct device *dev, int count)
{
    struct rng r = {test_seed()};
    for (int n = 0; n < count; n++) try_case(dev, random_case(&r));
}

int main(int argc, char **argv)
{
    struct device dev;
    int random = suite_number(&argc, argv, "--random");
    int quantised = suite_number(&argc, argv, "--quantised"); /* at random */
    if (!suite_begin(&dev, "scaled", argc, argv)) return 1;
    if (random || quantised) {
        at_random(&dev, random);
        quantised_random(&dev, random_case, quantised);
    } else {
        each_variant(&dev);
        groups(&dev);
        sizes(&dev);
        narrow_tiles(&dev);
        quantised_each(&dev, of_inputs, INPUTS, variants, VARIANTS);
    }
    return suite_end(&dev);
}
