/* Grouped products against float64: kinds, variants, ragged and empty groups, rows that break the rules. */
#include "grouped_case.h"

#include "lib/harness.h"
#include "lib/suite.h"
#include "lib/verdict.h"

#include <stdio.h>
#include <string.h>

/* ---- a run -- */

enum { A, B, D, SCALE_A, SCALE_B, ROWS, INDEX, BUFFERS };

struct buffers {
    struct guarded of[BUFFERS];
};

static bool upload_all(struct device *dev, const struct grouped_data *d, struct buffers *b,
                       hewn_grouped_args *a)
{
    const bool scaled = d->c.in == HEWN_E4M3;
    const struct {
        hewn_deviceptr *address;
        const void *host;
        size_t size;
        bool wanted;
    } list[BUFFERS] = {[A] = {&a->a, d->a, d->a_bytes, true},
                       [B] = {&a->b, d->b, d->b_bytes, true},
                       [D] = {&a->d, d->d, d->d_bytes, true},
                       [SCALE_A] = {&a->scale_a, d->scale_a, d->scale_a_count * 4, scaled},
                       [SCALE_B] = {&a->scale_b, d->scale_b, d->scale_b_count * 4, scaled},
                       [ROWS] = {&a->rows, d->rows, d->row_count * 4, d->c.kind != 0},
                       [INDEX] = {&a->index, d->index, d->index_count * 4, d->c.a_rows > 0}};
    for (int i = 0; i < BUFFERS; i++) {
        if (!list[i].wanted) continue;
        if (!guarded_new(dev, &b->of[i], list[i].size, 0xFF)) return false;
        *list[i].address = b->of[i].data;
        if (dev->to_device(b->of[i].data, list[i].host, list[i].size)) return false;
    }
    return true;
}

static void launch(struct device *dev, struct grouped_data *d, const hewn_grouped_plan *plan,
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
    verdict_check(dev->info.simulated, false);
    if (status || rc) return;
    CHECK(dev->to_host(d->d, a.d, d->d_bytes) == 0, "cannot read D");
    for (int i = 0; i < BUFFERS; i++) {
        const char *damage = b->of[i].base ? guarded_damage(dev, &b->of[i]) : NULL;
        CHECK(!damage, "buffer %d: %s", i, damage);
    }
    double used = grouped_judge(d);
    if (test_verbose()) printf("    %.3f of the tolerance\n", used);
}

/* `runs` of one plan, each with other rows and data, every other one exact. */
static void run_case(struct device *dev, struct grouped_case c, int runs)
{
    hewn_grouped_plan *plan = NULL;
    for (int i = 0; i < runs; i++, c.seed++) {
        struct grouped_data d;
        struct buffers b;
        hewn_error err = {0};
        memset(&b, 0, sizeof b);
        c.exact = i % 2;
        bool ready = grouped_data_new(&d, &c);
        int status = HEWN_OK;
        CHECK(ready, "no host memory for the case");
        if (ready && !plan) status = hewn_grouped_plan_create(dev->context, &d.desc, &plan, &err);
        if (status == HEWN_ERR_NO_MODULE)
            test_skip("%s", err.message);
        else
            CHECK(status == HEWN_OK, "plan: %s", err.message);
        if (ready && plan) launch(dev, &d, plan, &b);
        for (int n = 0; n < BUFFERS; n++) guarded_free(dev, &b.of[n]);
        grouped_data_free(&d);
    }
    hewn_grouped_plan_destroy(plan);
}

static void try_case(struct device *dev, struct grouped_case c)
{
    static uint64_t seed;
    char name[200];
    c.seed = ++seed * 0x9E3779B97F4A7C15U;
    if (c.variant && (strchr(c.variant, 'q') || !strncmp(c.variant, "256", 3) ||
                      !strncmp(c.variant, "64x64", 5)))
        c.a_rows = 0; /* four CTAs and these tiles take no rows by number */
    grouped_case_name(&c, name, sizeof name);
    if (test_case("%s", name)) run_case(dev, c, 2);
}

/* ---- the cases -- */

static const char *const variants[] = {
    "64x128",   "64x128p",  "64x256",  "64x256p",  "128x128",  "128x128p",
    "128x160",  "128x160p", "128x192", "128x192p", "128x128q", "128x256",
    "128x256p", "128x256q", "256x128", "256x128p", "64x64",
};

/* Tiles whose k-blocks CTAs share. */
static const char *const parts[] = {"64x128s2", "64x128s3", "64x128s4", "64x128s5", "64x128s8"};
enum { PARTS = sizeof parts / sizeof *parts };
enum { VARIANTS = sizeof variants / sizeof *variants };

static const struct grouped_case usual = {.kind = HEWN_GROUPED_OFFSETS,
                                          .groups = 3,
                                          .m = 300,
                                          .n = 264,
                                          .k = 400,
                                          .in = HEWN_E4M3,
                                          .out = HEWN_BF16};

/* Each variant: several tiles a group both ways, the ring more than once round; both outputs. */
static void each_variant(struct device *dev)
{
    for (int i = 0; i < VARIANTS; i++) {
        struct grouped_case c = usual;
        c.variant = variants[i];
        c.out = i % 2 ? HEWN_F32 : HEWN_BF16;
        c.kind = i % 3;
        c.m = c.kind == HEWN_GROUPED_OFFSETS ? 470 : 200;
        c.n = i % 4 < 2 ? 392 : 520;
        try_case(dev, c);
        c.out = i % 2 ? HEWN_BF16 : HEWN_F32;
        c.kind = HEWN_GROUPED_OFFSETS;
        c.rows = i % 3 == 1 ? ROWS_FEW : ROWS_ANY;
        c.m = 350;
        c.n = 333;
        c.k = 1111;
        c.spread = 1;
        try_case(dev, c);
    }
}

/* Rows of A by number, in each variant. */
static void by_number(struct device *dev)
{
    for (int i = 0; i < VARIANTS; i++) {
        struct grouped_case c = usual;
        c.variant = variants[i];
        c.kind = i % 3;
        c.out = i % 4 < 2 ? HEWN_F32 : HEWN_BF16;
        c.rows = i % 2 ? ROWS_WRONG : ROWS_ANY;
        c.a_rows = i % 3 ? 77 : 500;
        c.m = c.kind == HEWN_GROUPED_OFFSETS ? 470 : 170;
        c.k = i % 2 ? 1111 : 384;
        c.spread = i % 2;
        try_case(dev, c);
    }
}

/* Parts of K: one k-block a part and more; more tiles than clusters; all inputs, outputs, kinds. */
static void in_parts(struct device *dev)
{
    for (int i = 0; i < 4 * PARTS; i++) {
        struct grouped_case c = usual;
        const int count = parts[i % PARTS][7] - '0', form = i / PARTS;
        char name[16];
        snprintf(name, sizeof name, "64x128%s%s",
                 form == 2   ? "h"
                 : form == 3 ? "c"
                             : "",
                 parts[i % PARTS] + 6);
        c.variant = name;
        c.in = form == 2 ? i % 2 ? HEWN_F16 : HEWN_BF16 : HEWN_E4M3;
        c.scales = form == 3 ? HEWN_GROUPED_COLUMNS : HEWN_GROUPED_BLOCKS;
        c.out = i % 2 ? HEWN_F32 : form == 2 ? c.in : HEWN_BF16;
        c.kind = (i + form) % 3;
        c.rows = i % 4 == 1 ? ROWS_FEW : i % 4 == 3 ? ROWS_WRONG : ROWS_ANY;
        c.m = c.kind == HEWN_GROUPED_OFFSETS ? 300 : 130;
        c.n = i % 3 == 0 ? 264 : i % 3 == 1 ? 333 : 135;
        c.k = (form == 2 ? 64 : 128) * (form % 2 ? count : 3 * count - 1) - (i % 2 ? 17 : 0);
        c.a_rows = form == 1 ? 200 : 0;
        c.spread = i % 2;
        try_case(dev, c);
    }
}

/* Scales of B for each column: the tiles that have them, with rows by number and without. */
static void columns(struct device *dev)
{
    static const char *const list[] = {"64x128c", "64x128cp", "128x128c", "128x128cp", NULL};
    for (int i = 0; i < 10; i++) {
        struct grouped_case c = usual;
        c.scales = HEWN_GROUPED_COLUMNS;
        c.variant = list[i % 5];
        c.kind = i % 3;
        c.out = i % 2 ? HEWN_F32 : HEWN_BF16;
        c.m = c.kind == HEWN_GROUPED_OFFSETS ? 470 : 200;
        c.n = i % 4 < 2 ? 391 : 520;
        c.k = i < 5 ? 400 : 1111;
        c.spread = i % 2;
        c.a_rows = i < 5 ? 0 : 300;
        try_case(dev, c);
    }
}

static const char *const variants_16[] = {"64x128h",   "64x128hp",  "64x256h",  "64x256hp",
                                          "128x128h",  "128x128hp", "128x256h", "128x256hp",
                                          "128x128hq", "128x256hq"};
enum { VARIANTS_16 = sizeof variants_16 / sizeof *variants_16 };

/* Inputs of 16 bits: each variant with rows of A as they are, by number, and groups of few rows. */
static void of_16_bits(struct device *dev)
{
    for (int i = 0; i < 2 * VARIANTS_16; i++) {
        struct grouped_case c = usual;
        c.variant = variants_16[i / 2];
        c.in = i / 2 % 2 ^ i % 2 ? HEWN_F16 : HEWN_BF16;
        c.out = i % 4 < 2 ? c.in : HEWN_F32;
        c.kind = i % 3;
        c.rows = i % 5 == 1 ? ROWS_FEW : i % 5 == 3 ? ROWS_WRONG : ROWS_ANY;
        c.m = c.kind == HEWN_GROUPED_OFFSETS ? 470 : 200;
        c.n = i % 4 < 2 ? 391 : 520;
        c.k = i % 2 ? 701 : 200;
        c.spread = i % 2;
        c.a_rows = i % 2 ? 300 : 0;
        try_case(dev, c);
        c.out = c.out == HEWN_F32 ? c.in : HEWN_F32;
        c.a_rows = i % 2 ? 0 : 77;
        c.n = 250;
        c.k = i % 2 ? 64 : 330;
        try_case(dev, c);
    }
}

static const char *const variants_glu[] = {"128x128g",  "128x128gp", "128x256g", "128x256gp",
                                           "128x128gq", "128x256gq", NULL};
enum { VARIANTS_GLU = sizeof variants_glu / sizeof *variants_glu };

/* SwiGLU: columns of D that end in a tile of either factor, rows of A as they are and by number. */
static void swiglu(struct device *dev)
{
    for (int i = 0; i < 2 * VARIANTS_GLU; i++) {
        struct grouped_case c = usual;
        c.act = HEWN_ACT_SWIGLU;
        c.variant = variants_glu[i / 2];
        c.in = i % 4 < 2 ? HEWN_BF16 : HEWN_F16;
        c.out = i % 3 ? c.in : HEWN_F32;
        c.kind = (i + 2) % 3;
        c.rows = i % 5 == 1 ? ROWS_FEW : i % 5 == 3 ? ROWS_WRONG : ROWS_ANY;
        c.m = c.kind == HEWN_GROUPED_OFFSETS ? 470 : 200;
        c.n = i % 2 ? 201 : 328;
        c.k = i % 2 ? 300 : 72;
        c.spread = i % 2;
        c.a_rows = i % 4 == 1 ? 300 : 0;
        try_case(dev, c);
    }
}

/* Rows and ends of groups of every sort. */
static void groups(struct device *dev)
{
    for (int rows = 0; rows < ROWS_KINDS; rows++)
        for (int kind = 0; kind < 3; kind++) {
            struct grouped_case c = usual;
            if (kind == HEWN_GROUPED_PLANES && rows) continue;
            c.kind = kind;
            c.rows = (enum grouped_rows)rows;
            c.n = 130;
            c.k = 130;
            c.groups = kind ? 70 : 3; /* more than the producer's lanes */
            c.m = kind == HEWN_GROUPED_COUNTS ? 33 : 1300;
            if (kind == HEWN_GROUPED_PLANES) c.m = 130;
            try_case(dev, c);
            c.align = kind == HEWN_GROUPED_OFFSETS ? 32 : 0;
            c.groups = 33;
            c.in = HEWN_BF16;
            if (c.align) try_case(dev, c);
        }
}

/* Sizes at the ends of tiles, blocks and chunks of 16 bytes. */
static void sizes(struct device *dev)
{
    static const int list[][3] = {{1, 1, 1},     {1, 8, 16},      {16, 7, 128},
                                  {17, 9, 129},  {64, 128, 64},   {65, 129, 256},
                                  {128, 64, 31}, {129, 257, 500}, {25, 24, 320}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct grouped_case c = usual;
        c.kind = i % 2 ? HEWN_GROUPED_PLANES : HEWN_GROUPED_OFFSETS;
        c.groups = i % 3 ? 2 : 1;
        c.rows = ROWS_ALL;
        c.m = list[i][0] * (c.kind ? c.groups : 1);
        c.n = list[i][1];
        c.k = list[i][2];
        c.out = i % 4 < 2 ? HEWN_BF16 : HEWN_F32;
        try_case(dev, c);
        c.in = HEWN_BF16;
        try_case(dev, c);
    }
}

/* Everything that a description may say: one to 100 groups of no to all rows, most of them with the variant that is
 * chosen for the number of rows expected. */
static struct grouped_case random_case(struct rng *r)
{
    static const int types[] = {HEWN_E4M3, HEWN_BF16, HEWN_F16};
    struct grouped_case c = usual;
    c.kind = (int)rng_below(r, 3);
    c.groups = 1 + (int)rng_below(r, rng_below(r, 3) ? 6 : 100);
    c.m = 1 + (int)rng_below(r, c.kind == HEWN_GROUPED_OFFSETS ? 900 : 200);
    if (c.groups > 6 && c.kind != HEWN_GROUPED_OFFSETS) c.m = 1 + c.m / 8;
    c.n = 1 + (int)rng_below(r, rng_below(r, 2) ? 200 : 700);
    c.k = 1 + (int)rng_below(r, rng_below(r, 4) ? 400 : 2500);
    if (c.groups > 6) c.n = 1 + c.n / 3, c.k = 1 + c.k / 4;
    c.in = types[rng_below(r, 3)];
    c.out = rng_below(r, 2) ? c.in == HEWN_F16 ? HEWN_F16 : HEWN_BF16 : HEWN_F32;
    c.rows = (enum grouped_rows)rng_below(r, ROWS_KINDS);
    c.spread = (int)rng_below(r, 4);
    if (rng_below(r, 2)) c.expected_m = 1 + (int)rng_below(r, rng_below(r, 2) ? 100 : 5000);
    if (c.kind == HEWN_GROUPED_OFFSETS) c.align = 1 << rng_below(r, 8);
    if (!rng_below(r, 4)) c.a_rows = 1 + (int)rng_below(r, 400);
    c.scales = c.in == HEWN_E4M3 && !rng_below(r, 4);
    if (c.in != HEWN_E4M3 && !rng_below(r, 3)) c.act = HEWN_ACT_SWIGLU;
    if (c.act) {
        if (rng_below(r, 2)) c.variant = variants_glu[rng_below(r, VARIANTS_GLU)];
        c.n = 1 + c.n / 2;
    } else if (!rng_below(r, 3) && !c.scales) {
        c.variant = c.in != HEWN_E4M3                      ? variants_16[rng_below(r, VARIANTS_16)]
                    : c.k > 7 * 128 && rng_below(r, 3) < 1 ? parts[rng_below(r, PARTS)]
                                                           : variants[rng_below(r, VARIANTS)];
    }
    return c;
}

static void at_random(struct device *dev, int count)
{
    struct rng r = {test_seed()};
    for (int i = 0; i < count; i++) try_case(dev, random_case(&r));
}

int main(int argc, char **argv)
{
    struct device dev;
    int random = suite_number(&argc, argv, "--random");
    if (!suite_begin(&dev, "grouped", argc, argv)) return 1;
    if (random) {
        at_random(&dev, random);
    } else {
        each_variant(&dev);
        by_number(&dev);
        in_parts(&dev);
        columns(&dev);
        of_16_bits(&dev);
        swiglu(&dev);
        groups(&dev);
        sizes(&dev);
    }
    return suite_end(&dev);
}
