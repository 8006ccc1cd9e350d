/* Products with 4-bit weights against float64: rows, tails of n and k, groups, formats, parts,
 * tiles, alignment. */
#include "w4_case.h"

#include "lib/digest.h"
#include "lib/harness.h"
#include "lib/suite.h"
#include "lib/verdict.h"

#include <stdio.h>
#include <string.h>

/* ---- a run -- */

enum { XS, WS, DS, BUFFERS };

static bool upload(struct device *dev, const struct w4_data *d, struct guarded *b, hewn_w4_args *a)
{
    const size_t off = (size_t)d->c.askew * hewn_dtype_size(d->c.out);
    const struct {
        hewn_deviceptr *address;
        const void *host;
        size_t size, off;
    } list[BUFFERS] = {[XS] = {&a->x, d->x, d->x_bytes, 0},
                       [WS] = {&a->w, d->packed, d->packed_bytes, 0},
                       [DS] = {&a->d, d->d, d->d_bytes, off}};
    for (int i = 0; i < BUFFERS; i++) {
        if (!guarded_new(dev, &b[i], list[i].size + list[i].off, 0xFF)) return false;
        *list[i].address = b[i].data + list[i].off;
        if (dev->to_device(*list[i].address, list[i].host, list[i].size)) return false;
    }
    return true;
}

static void launch(struct device *dev, struct w4_data *d, const hewn_w4_plan *plan)
{
    struct guarded b[BUFFERS];
    hewn_error err = {0};
    hewn_w4_args a = {.struct_size = sizeof a};
    hewn_w4_plan_info info = {.struct_size = sizeof info};
    memset(b, 0, sizeof b);
    bool ready = upload(dev, d, b, &a);
    CHECK(ready, "no device memory for the case");
    int status = hewn_w4_plan_describe(plan, &info, &err);
    if (!status && ready) status = hewn_w4_plan_run(plan, &a, NULL, &err);
    CHECK(status == HEWN_OK, "run: %s", err.message);
    int rc = dev->synchronize();
    CHECK(rc == 0, "the kernel failed with CUresult %d", rc);
    verdict_check(dev->info.simulated, false);
    if (ready && !status && !rc) {
        CHECK(dev->to_host(d->d, a.d, d->d_bytes) == 0, "cannot read D");
        for (int i = 0; i < BUFFERS; i++) {
            const char *damage = guarded_damage(dev, &b[i]);
            CHECK(!damage, "buffer %d: %s", i, damage);
        }
        double used = w4_judge(d, info.parts);
        if (test_verbose()) printf("    %.3f of the tolerance\n", used);
        char choice[DIGEST_CHOICE];
        (void)snprintf(choice, sizeof choice, "%u", info.parts);
        if (d->c.parts) digest_case(digest_bytes(DIGEST_BEGIN, d->d, d->d_bytes), choice);
    }
    for (int i = 0; i < BUFFERS; i++) guarded_free(dev, &b[i]);
}

static void run_case(struct device *dev, struct w4_case c)
{
    hewn_w4_plan *plan = NULL;
    hewn_error err = {0};
    struct w4_data d;
    bool ready = w4_data_new(&d, &c);
    CHECK(ready, "no data for the case");
    int status = ready ? hewn_w4_plan_create(dev->context, &d.desc, &plan, &err) : HEWN_OK;
    if (status == HEWN_ERR_NO_MODULE)
        test_skip("%s", err.message);
    else
        CHECK(status == HEWN_OK, "plan: %s", err.message);
    if (plan) launch(dev, &d, plan);
    w4_data_free(&d);
    hewn_w4_plan_destroy(plan);
}

/* Twice: with any numbers, and with small integers. */
static void try_case(struct device *dev, struct w4_case c)
{
    char name[200];
    w4_case_name(&c, name, sizeof name);
    c.seed = digest_bytes(test_seed(), name, strlen(name));
    for (c.exact = 0; c.exact < 2; c.exact++)
        if (test_case("%s%s", name, c.exact ? ", integers" : "")) run_case(dev, c);
}

/* ---- the cases -- */

static const struct w4_case usual = {
    .m = 5, .n = 128, .k = 256, .group = 128, .in = HEWN_BF16, .out = HEWN_BF16, .parts = 1};

/* Every number of columns of the MMA, whole and not, several tiles of rows. */
static void rows(struct device *dev)
{
    static const int list[] = {1, 7, 8, 9, 16, 17, 32, 33, 64, 65, 150};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct w4_case c = usual;
        c.m = list[i];
        c.in = i % 2 ? HEWN_BF16 : HEWN_F16;
        c.format = i / 2 % 2;
        c.out = i % 3 == 0 ? HEWN_F32 : i % 3 == 1 ? HEWN_BF16 : HEWN_F16;
        c.spread = i % 4 == 3;
        try_case(dev, c);
    }
}

/* Every loop: format, type, group, tile with each number of columns of the MMA. */
static void loops(struct device *dev)
{
    static const int ms[] = {8, 16, 32, 64}, groups[] = {0, 32, 64, 128};
    for (unsigned i = 0; i < 64; i++) {
        struct w4_case c = usual;
        c.m = ms[i % 4];
        c.group = groups[i / 4 % 4];
        c.tile = i / 16 % 2 ? 256 : 128;
        if (c.group == 32 && c.m > 32) c.tile = 128;
        c.format = i / 32 % 2;
        c.in = (i / 4 + i) % 2 ? HEWN_BF16 : HEWN_F16;
        c.n = 300;
        c.k = 3 * 128;
        c.out = HEWN_F32;
        try_case(dev, c);
    }
}

/* Ends of n and of k, one element and more. */
static void tails(struct device *dev)
{
    static const int list[][2] = {{1, 1},    {1, 8},    {3, 40},   {63, 64},  {65, 128},
                                  {64, 129}, {130, 72}, {200, 33}, {77, 191}, {129, 520}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct w4_case c = usual;
        c.n = list[i][0];
        c.k = list[i][1];
        c.m = 1 + (int)i * 3;
        c.group = (int)(32u << i % 3);
        c.format = i % 2;
        c.in = i / 2 % 2 ? HEWN_F16 : HEWN_BF16;
        c.out = i % 2 ? HEWN_F32 : HEWN_F16;
        c.askew = i % 4 == 1;
        try_case(dev, c);
    }
}

/* Parts of K, more k-blocks than stages; what the library chooses. */
static void parts(struct device *dev)
{
    for (unsigned n = 0; n <= 8; n++) {
        struct w4_case c = usual;
        c.parts = n;
        c.k = n % 3 == 1 ? 128 * 30 : 128 * 8 + 64;
        c.n = 100;
        c.m = n % 2 ? 40 : 3;
        c.group = n % 4 == 2 ? 32 : 128;
        c.tile = n == 5 ? 192 : 0;
        c.format = n % 2;
        c.spread = n % 2;
        try_case(dev, c);
    }
}

/* With `invariant`, parts and bits of a row are the same whatever m is. */
static void invariant(struct device *dev)
{
    static const int ms[] = {1, 9, 40, 64};
    uint32_t parts = 0;
    if (!test_case("invariant: parts do not depend on m")) return;
    for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
        hewn_w4_desc d = {.struct_size = sizeof d,
                          .m = ms[i],
                          .n = 4096,
                          .k = 8192,
                          .group = 64,
                          .in = HEWN_F16,
                          .out = HEWN_F16,
                          .invariant = 1};
        hewn_w4_plan_info info = {.struct_size = sizeof info};
        hewn_w4_plan *plan = NULL;
        hewn_error err = {0};
        int status = hewn_w4_plan_create(dev->context, &d, &plan, &err);
        if (status == HEWN_ERR_NO_MODULE) {
            test_skip("%s", err.message);
            return;
        }
        CHECK(status == HEWN_OK, "plan: %s", err.message);
        if (!status) status = hewn_w4_plan_describe(plan, &info, &err);
        if (i == 0) parts = info.parts;
        CHECK(!status && info.parts == parts, "m %d: want %u parts got %u", ms[i], parts,
              info.parts);
        hewn_w4_plan_destroy(plan);
    }
}

static void at_random(struct device *dev, int count)
{
    struct rng r = {test_seed()};
    static const int groups[] = {0, 32, 64, 128};
    for (int i = 0; i < count; i++) {
        struct w4_case c = usual;
        c.m = 1 + (int)rng_below(&r, rng_below(&r, 4) ? 64 : 200);
        c.n = 1 + (int)rng_below(&r, 400);
        c.k = 1 + (int)rng_below(&r, 1500);
        c.group = groups[rng_below(&r, 4)];
        c.in = rng_below(&r, 2) ? HEWN_BF16 : HEWN_F16;
        c.out = (int)rng_below(&r, 3);
        c.format = (int)rng_below(&r, 2);
        c.parts = rng_below(&r, 2) ? 0 : 1 + rng_below(&r, (uint32_t)(c.k + 127) / 128);
        if (c.parts > 8) c.parts = 8;
        c.spread = (int)rng_below(&r, 2);
        c.askew = (int)rng_below(&r, 3);
        try_case(dev, c);
    }
}

int main(int argc, char **argv)
{
    struct device dev;
    int random = suite_number(&argc, argv, "--random");
    argc = digest_options(argc, argv);
    if (!suite_begin(&dev, "w4", argc, argv)) return 1;
    digest_device(&dev);
    if (random) {
        at_random(&dev, random);
    } else {
        rows(&dev);
        loops(&dev);
        tails(&dev);
        parts(&dev);
        invariant(&dev);
    }
    digest_end();
    return suite_end(&dev);
}
